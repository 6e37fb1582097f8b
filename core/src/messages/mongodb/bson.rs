//! Headers of MongoDB's messages, and the first elements of their documents (bsonspec.org). Reads the names of commands
//! and collections, and error codes; stateless.

use smol_str::SmolStr;

use super::super::{Guess, Side, text};
use crate::cursor::le32_at;

pub(super) const HEADER: usize = 16;
// opcodes
pub(super) const REPLY: u32 = 1;
pub(super) const QUERY: u32 = 2004;
pub(super) const COMPRESSED: u32 = 2012;
pub(super) const MSG: u32 = 2013;
/// Upper bound on a message: the server's `maxMessageSizeBytes`.
const MAX_MESSAGE_BYTES: u32 = 48_000_000;
/// Flag of OP_MSG: the receiver does not answer, or another response follows.
pub(super) const MORE_TO_COME: u32 = 2;
/// All flags of OP_MSG: checksumPresent, moreToCome, exhaustAllowed.
const FLAGS: u32 = 0x0001_0003;
/// Upper bound on the elements read of a document.
const MAX_ELEMENTS: usize = 16;
/// Upper bound on the bytes of a command's or collection's name: that of a namespace.
const MAX_NAME: usize = 255;

#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    len: u32,
    pub(super) id: u32,
    /// Id of the request that the message answers.
    pub(super) to: u32,
    pub(super) code: u32,
}

impl Header {
    /// Reads a header. None if this side sends no such message.
    pub(super) fn of(side: Side, header: &[u8; HEADER]) -> Option<Header> {
        let at = |offset| le32_at(header, offset);
        let (len, id, to, code) = (at(0)?, at(4)?, at(8)?, at(12)?);
        let fits = match side {
            Side::Client => to == 0 && matches!(code, MSG | QUERY | COMPRESSED | 2001 | 2002 | 2005..=2007),
            Side::Server => to != 0 && matches!(code, MSG | REPLY | COMPRESSED),
        };
        (fits && (HEADER as u32 + 4..=MAX_MESSAGE_BYTES).contains(&len)).then_some(Header {
            len,
            id,
            to,
            code,
        })
    }

    pub(super) fn body(self) -> u64 {
        u64::from(self.len) - HEADER as u64
    }
}

/// Whether this side's first bytes are a message of MongoDB.
pub(super) fn begins(side: Side, input: &[u8]) -> Guess {
    let Some((header, body)) = input.split_first_chunk::<HEADER>() else {
        // the length's high byte, and the client's `responseTo` of 0
        let is_short = input.get(3).is_none_or(|high| *high <= 2);
        let answers_none = side == Side::Server || input.iter().skip(8).take(4).all(|byte| *byte == 0);
        return if is_short && answers_none && side == Side::Client {
            Guess::More
        } else {
            Guess::No
        };
    };
    match (Header::of(side, header), le32_at(body, 0)) {
        (
            Some(Header {
                code: MSG | QUERY | REPLY | COMPRESSED,
                ..
            }),
            None,
        ) => Guess::More,
        (Some(Header { code: MSG, .. }), Some(flags)) if flags & !FLAGS == 0 => Guess::Yes,
        (
            Some(Header {
                code: QUERY | REPLY, ..
            }),
            Some(flags),
        ) if flags < 0x100 => Guess::Yes,
        (Some(Header { code: COMPRESSED, .. }), Some(MSG | QUERY | REPLY)) => Guess::Yes,
        _ => Guess::No,
    }
}

/// Returns the document of an OP_MSG, as far as it was kept. Flags precede it, and maybe sequences of documents.
pub(super) fn document(body: &[u8]) -> &[u8] {
    let mut rest = body.get(4..).unwrap_or_default();
    while let Some((1, sequence)) = rest.split_first() {
        let len = le32_at(sequence, 0).unwrap_or(u32::MAX);
        rest = sequence.get(len as usize..).unwrap_or_default();
    }
    rest.strip_prefix(&[0]).unwrap_or_default()
}

/// A command, by its document.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) method: SmolStr,
    pub(super) target: SmolStr,
    /// The response may wait for an event.
    pub(super) is_long_poll: bool,
}

impl Command {
    pub(super) fn of(document: &[u8]) -> Command {
        let mut command = Command::default();
        let (mut limited, mut awaits) = (false, false);
        for (index, (name, kind, value)) in elements(document).enumerate() {
            if index == 0 {
                command.method = text::name_up_to(name, MAX_NAME, false);
            }
            match name {
                b"collection" => command.target = string(kind, value),
                _ if index == 0 => command.target = string(kind, value),
                b"maxAwaitTimeMS" | b"maxTimeMS" => limited = true,
                b"awaitData" => awaits = value == [1],
                _ => {}
            }
        }
        let may_wait = matches!(&*command.method, "hello" | "isMaster" | "ismaster" | "getMore");
        command.is_long_poll = awaits || may_wait && limited;
        command
    }

    /// Reads an OP_QUERY: flags, the name of a collection, two numbers, a document.
    pub(super) fn of_query(body: &[u8]) -> Command {
        let rest = body.get(4..).unwrap_or_default();
        let end = memchr::memchr(0, rest).unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default();
        if name.ends_with(b".$cmd") {
            return Command::of(rest.get(end + 9..).unwrap_or_default());
        }
        Command {
            method: SmolStr::new_static("query"),
            target: text::name_up_to(name, MAX_NAME, false),
            is_long_poll: false,
        }
    }
}

/// Returns the value if it is a string, else an empty one.
fn string(kind: u8, value: &[u8]) -> SmolStr {
    let text = value.get(4..).filter(|_| kind == 2).unwrap_or_default();
    text::name_up_to(text.strip_suffix(b"\0").unwrap_or(text), MAX_NAME, false)
}

/// Returns the error's code of a response, 0 if it has none. None if the response is not an error.
pub(super) fn error_code(document: &[u8]) -> Option<u32> {
    let (mut failed, mut code) = (false, 0);
    for (name, kind, value) in elements(document) {
        match (name, kind) {
            (b"ok", _) => failed |= value.iter().all(|byte| *byte == 0),
            (b"code", 16) => code = le32_at(value, 0).unwrap_or(0),
            (b"writeErrors", _) => {
                failed = true;
                let first = elements(value)
                    .next()
                    .map(|(_, _, error)| error)
                    .unwrap_or_default();
                let written = elements(first).find(|(name, ..)| *name == b"code");
                code = written
                    .and_then(|(_, _, value)| le32_at(value, 0))
                    .unwrap_or(code);
            }
            _ => {}
        }
    }
    failed.then_some(code)
}

/// Iterates over name, type and value of the first elements, up to one that was not kept.
fn elements(document: &[u8]) -> impl Iterator<Item = (&[u8], u8, &[u8])> {
    let mut rest = document.get(4..).unwrap_or_default();
    let next = move || {
        let (kind, named) = rest.split_first().filter(|(kind, _)| **kind != 0)?;
        let end = memchr::memchr(0, named)?;
        let (name, after) = (named.get(..end)?, named.get(end + 1..)?);
        let len = match kind {
            0x01 | 0x09 | 0x11 | 0x12 => 8,
            0x02 => le32_at(after, 0)? as usize + 4,
            0x03 | 0x04 => le32_at(after, 0)? as usize,
            0x05 => le32_at(after, 0)? as usize + 5,
            0x07 => 12,
            0x08 => 1,
            0x0a => 0,
            0x10 => 4,
            0x13 => 16,
            _ => return None,
        };
        let (value, after) = after.split_at_checked(len)?;
        rest = after;
        Some((name, *kind, value))
    };
    std::iter::from_fn(next).take(MAX_ELEMENTS)
}
