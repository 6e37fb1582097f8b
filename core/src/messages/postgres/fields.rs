//! Fields of PostgreSQL's messages (its documentation, "Message Formats"), and recognition by them. Reads names and
//! codes, never a value.

use super::super::{Guess, Side};
use crate::cursor::Cursor;

/// Upper bound on a startup packet: the server's `MAX_STARTUP_PACKET_LENGTH`.
const LONGEST_STARTUP: u32 = 10_000;
/// Upper bound on messages by which a stream is recognised in its middle. Four letters as a length are longer, so text
/// is not taken for a message.
const LONGEST_JOINED: usize = 1 << 24;
/// Upper bound on a database's name (`NAMEDATALEN`).
pub(super) const MAX_DATABASE: usize = 64;
/// Bytes of a message's header.
pub(super) const TYPE_AND_LENGTH: usize = 5;

/// A message of the client without a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    Startup,
    /// SSLRequest, GSSENCRequest: one byte answers.
    Encrypt,
    /// CancelRequest: the server does not answer it.
    Cancel,
}

/// Returns the kind and the length of a message without a type, by its length and its version or request code.
pub(super) fn opening(header: [u8; 8]) -> Option<(Opening, u32)> {
    let [a, b, c, d, code @ ..] = header;
    let len = u32::from_be_bytes([a, b, c, d]);
    match (u32::from_be_bytes(code), len) {
        (80_877_103 | 80_877_104, 8) => Some((Opening::Encrypt, len)),
        (80_877_102, 16..=264) => Some((Opening::Cancel, len)),
        (0x0003_0000..=0x0003_00FF, 9..=LONGEST_STARTUP) => Some((Opening::Startup, len)),
        _ => None,
    }
}

/// Whether a client's first bytes are a message without a type.
pub(super) fn sniff(input: &[u8]) -> Guess {
    let Some(header) = input.first_chunk::<8>() else {
        let zeros = input.iter().take(2).all(|byte| *byte == 0);
        return if zeros { Guess::More } else { Guess::No };
    };
    match (opening(*header), input.get(8)) {
        (None, _) => Guess::No,
        // names of parameters follow; a Kafka request can have the same first 8 bytes
        (Some((Opening::Startup, _)), None) => Guess::More,
        (Some((Opening::Startup, _)), Some(first)) if !first.is_ascii_lowercase() && *first != b'_' => {
            Guess::No
        }
        _ => Guess::Yes,
    }
}

/// Returns the length of a message's body. None if this side sends no message of such type and length.
pub(super) fn body_length(side: Side, header: &[u8; TYPE_AND_LENGTH]) -> Option<u64> {
    let [kind, length @ ..] = *header;
    let len = u64::from(u32::from_be_bytes(length)).checked_sub(4)?;
    let fits = match (side, kind) {
        (Side::Client, b'S' | b'H' | b'X' | b'c')
        | (Side::Server, b'1' | b'2' | b'3' | b'n' | b's' | b'I' | b'c') => len == 0,
        (Side::Client, b'Q' | b'P' | b'B' | b'D' | b'E' | b'C' | b'F' | b'd' | b'f' | b'p')
        | (
            Side::Server,
            b'T' | b'D' | b'C' | b'E' | b'N' | b'A' | b'S' | b'R' | b't' | b'G' | b'H' | b'W' | b'd' | b'V'
            | b'v',
        ) => len <= 1 << 30,
        (Side::Server, b'K') => (8..=260).contains(&len),
        (Side::Server, b'Z') => len == 1,
        _ => false,
    };
    fits.then_some(len)
}

/// Whether a packet in the middle of a stream consists of this side's messages, from its first byte to its last (or
/// into a row), and one of them is sure to be PostgreSQL's.
pub(super) fn are_messages(side: Side, mut bytes: &[u8]) -> bool {
    let mut is_sure = false;
    while let Some((header, rest)) = bytes.split_first_chunk::<TYPE_AND_LENGTH>() {
        let Some(len) = body_length(side, header)
            .and_then(|len| usize::try_from(len).ok())
            .filter(|len| *len < LONGEST_JOINED)
        else {
            return false;
        };
        let content = rest.get(..len);
        is_sure |= match (header, content) {
            ([b'Z', ..], Some(status)) => matches!(status, [b'I' | b'T' | b'E']),
            ([b'Q', ..], Some(text)) if side == Side::Client => is_text(text) && text.contains(&0),
            ([b'P', ..], Some(parse)) if side == Side::Client => is_parse(parse),
            ([b'B', ..], Some(bind)) if side == Side::Client => is_sure || is_bind(bind).is_some(),
            ([b'Q', ..], None) => return is_text(rest) && rest.len() > 16,
            // a standby's status update, and the log sent to it ("Streaming Replication Protocol")
            ([b'd', ..], Some([b'r', status @ ..])) if side == Side::Client => status.len() == 33,
            ([b'd', ..], Some([b'w', log @ ..])) if side == Side::Server => log.len() > 24,
            ([b'A', ..], Some([_, _, _, _, names @ ..])) => names.ends_with(b"\0") && is_text(names),
            // rows that continue in the next packet
            ([b'T' | b'1' | b'2', ..], None) if side == Side::Server => return is_sure,
            ([b'D', ..], None) if side == Side::Server => return is_sure,
            ([b'1' | b'2' | b'T', ..], Some(_)) if side == Side::Server => true,
            ([b'S', ..], Some(_)) if side == Side::Client => is_sure || rest.is_empty(),
            _ => is_sure,
        };
        let Some(after) = rest.get(len..) else {
            return false;
        };
        bytes = after;
    }
    is_sure && bytes.is_empty()
}

/// Whether this is the body of a Parse: a name, a statement, and the types of its parameters, four bytes each.
fn is_parse(body: &[u8]) -> bool {
    let (_, rest) = text(body);
    let (statement, types) = text(rest);
    let mut types = Cursor::new(types);
    is_text(statement)
        && types
            .u16be()
            .is_some_and(|count| types.left() == usize::from(count) * 4)
}

/// Whether this is the body of a Bind: two names, then formats, values and formats of results, each after its count.
fn is_bind(body: &[u8]) -> Option<()> {
    let (_, rest) = text(body);
    let mut rest = Cursor::new(text(rest).1);
    let formats = rest.u16be()?;
    rest.take(usize::from(formats) * 2)?;
    for _ in 0..rest.u16be()? {
        // -1 stands for NULL
        let len = rest.u32be()?;
        rest.take(if len == u32::MAX {
            0
        } else {
            usize::try_from(len).ok()?
        })?;
    }
    let results = usize::from(rest.u16be()?) * 2;
    (rest.left() == results).then_some(())
}

/// Whether this may be a statement: it has letters, and no control characters but white space.
fn is_text(text: &[u8]) -> bool {
    let statement = text.strip_suffix(b"\0").unwrap_or(text);
    let control = |byte: &u8| *byte < 0x20 && !byte.is_ascii_whitespace() && *byte != 0;
    !statement.iter().take(256).any(control) && statement.iter().any(u8::is_ascii_alphabetic)
}

/// Splits off a text up to its NUL. Without a NUL all bytes are the text, whose end was not kept.
pub(super) fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    (
        bytes.get(..end).unwrap_or_default(),
        bytes.get(end + 1..).unwrap_or_default(),
    )
}

/// Returns the database that a startup packet names, else its user, after whom the database is then named.
pub(super) fn database(mut pairs: &[u8]) -> &[u8] {
    let mut user: &[u8] = &[];
    while !pairs.is_empty() {
        let (name, rest) = text(pairs);
        let (value, rest) = text(rest);
        match name {
            b"database" => return value,
            b"user" => user = value,
            _ => {}
        }
        pairs = rest;
    }
    user
}

/// Returns the field with this letter of an error or a notice: `C` is the SQLSTATE, `S` the severity.
pub(super) fn field(mut fields: &[u8], letter: u8) -> &[u8] {
    while let Some((kind, rest)) = fields.split_first() {
        let (value, rest) = text(rest);
        if *kind == letter {
            return value;
        }
        fields = rest;
    }
    &[]
}

/// Whether the client sends data after this statement: `COPY t FROM STDIN`.
pub(super) fn copies_in(statement: &[u8]) -> bool {
    let is = |word: &[u8], known: &[u8]| word.eq_ignore_ascii_case(known);
    let mut words = statement
        .split(|byte| !byte.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.next().is_some_and(|word| is(word, b"COPY"))
        && words.any(|word| is(word, b"FROM"))
        && words.next().is_some_and(|word| is(word, b"STDIN"))
}
