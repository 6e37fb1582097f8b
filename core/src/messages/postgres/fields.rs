//! What stands in PostgreSQL's messages ("Message Formats" of its documentation), and which bytes may be some. Reads
//! names and codes, never a value.

use super::super::{Guess, Side};
use crate::cursor::Cursor;

/// A startup packet is no longer.
const LONGEST_STARTUP: u32 = 10_000;
/// What joins in the middle must be shorter: then text is none.
const LONGEST_JOINED: usize = 1 << 24;
/// The longest name of a database (`NAMEDATALEN`).
pub(super) const MAX_DATABASE: usize = 64;
pub(super) const TYPE_AND_LENGTH: usize = 5;

/// The client's first message, which has no type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    Startup,
    /// SSLRequest, GSSENCRequest: one byte answers.
    Encrypt,
    /// CancelRequest: nothing does.
    Cancel,
}

/// By length and version.
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

/// Whether a stream begins so.
pub(super) fn sniff(input: &[u8]) -> Guess {
    let Some(header) = input.first_chunk::<8>() else {
        let zeros = input.iter().take(2).all(|byte| *byte == 0);
        return if zeros { Guess::More } else { Guess::No };
    };
    match (opening(*header), input.get(8)) {
        (None, _) => Guess::No,
        // the names of parameters follow; a Kafka request has the same first bytes
        (Some((Opening::Startup, _)), None) => Guess::More,
        (Some((Opening::Startup, _)), Some(first)) if !first.is_ascii_lowercase() && *first != b'_' => {
            Guess::No
        }
        _ => Guess::Yes,
    }
}

/// The length of the body of a message with this type and length; none where this side has none such.
pub(super) fn body(side: Side, header: &[u8; TYPE_AND_LENGTH]) -> Option<u64> {
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

/// Whether a piece in the middle of a stream is messages of this side, from the first byte to the last.
pub(super) fn chain(side: Side, mut bytes: &[u8]) -> bool {
    let mut sure = false;
    while let Some((header, rest)) = bytes.split_first_chunk::<TYPE_AND_LENGTH>() {
        let Some(len) = body(side, header)
            .and_then(|len| usize::try_from(len).ok())
            .filter(|len| *len < LONGEST_JOINED)
        else {
            return false;
        };
        let content = rest.get(..len);
        sure |= match (header, content) {
            ([b'Z', ..], Some(status)) => matches!(status, [b'I' | b'T' | b'E']),
            ([b'Q', ..], Some(text)) if side == Side::Client => is_text(text) && text.contains(&0),
            ([b'P', ..], Some(parse)) if side == Side::Client => is_parse(parse),
            ([b'B', ..], Some(bind)) if side == Side::Client => sure || is_bind(bind).is_some(),
            ([b'Q', ..], None) => return is_text(rest) && rest.len() > 16,
            // how far a replica has come, and the log that it gets (protocol-replication)
            ([b'd', ..], Some([b'r', status @ ..])) if side == Side::Client => status.len() == 33,
            ([b'd', ..], Some([b'w', log @ ..])) if side == Side::Server => log.len() > 24,
            ([b'A', ..], Some([_, _, _, _, names @ ..])) => names.ends_with(b"\0") && is_text(names),
            // rows that go on with the next packet
            ([b'T' | b'1' | b'2', ..], None) if side == Side::Server => return sure,
            ([b'D', ..], None) if side == Side::Server => return sure,
            ([b'1' | b'2' | b'T', ..], Some(_)) if side == Side::Server => true,
            ([b'S', ..], Some(_)) if side == Side::Client => sure || rest.is_empty(),
            _ => sure,
        };
        let Some(behind) = rest.get(len..) else {
            return false;
        };
        bytes = behind;
    }
    sure && bytes.is_empty()
}

/// A Parse: a name, a statement, and the types of its parameters, four bytes each.
fn is_parse(body: &[u8]) -> bool {
    let (_, rest) = text(body);
    let (statement, types) = text(rest);
    let mut types = Cursor::new(types);
    is_text(statement)
        && types
            .u16be()
            .is_some_and(|count| types.left() == usize::from(count) * 4)
}

/// A Bind: two names, then as many formats, values and formats of results as the count before each.
fn is_bind(body: &[u8]) -> Option<()> {
    let (_, rest) = text(body);
    let mut rest = Cursor::new(text(rest).1);
    let formats = rest.u16be()?;
    rest.take(usize::from(formats) * 2)?;
    for _ in 0..rest.u16be()? {
        // -1 is NULL's
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

/// Up to its end a statement has no control characters but white space.
fn is_text(text: &[u8]) -> bool {
    let statement = text.strip_suffix(b"\0").unwrap_or(text);
    let control = |byte: &u8| *byte < 0x20 && !byte.is_ascii_whitespace() && *byte != 0;
    !statement.iter().take(256).any(control) && statement.iter().any(u8::is_ascii_alphabetic)
}

/// A text up to its NUL, and what is behind; all of a text whose end was not kept.
pub(super) fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    (
        bytes.get(..end).unwrap_or_default(),
        bytes.get(end + 1..).unwrap_or_default(),
    )
}

/// Of a startup packet: the database, else the user, whose name it has then.
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

/// The SQLSTATE of an error, or the severity of a notice: the field with this letter.
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

/// Whether a statement copies what the client sends: `COPY t FROM STDIN`.
pub(super) fn copies_in(statement: &[u8]) -> bool {
    let is = |word: &[u8], known: &[u8]| word.eq_ignore_ascii_case(known);
    let mut words = statement
        .split(|byte| !byte.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.next().is_some_and(|word| is(word, b"COPY"))
        && words.any(|word| is(word, b"FROM"))
        && words.next().is_some_and(|word| is(word, b"STDIN"))
}
