//! Fields of MySQL's and MariaDB's packets: lengths, greetings, commands, the last packet of a result. Reads numbers
//! and SQL, never a row.

use super::super::Guess;
use crate::cursor::{le16_at, le32_at};

/// Bytes of a packet's header: a 3-byte length, little-endian, and a sequence number that each command starts at 0.
pub(super) const HEADER: usize = 4;
/// Length of a packet that the next one continues.
const MAX_PACKET_BYTES: u32 = (1 << 24) - 1;
/// Upper bound on an OK packet that ends rows; a row with the same first byte is longer.
const LONGEST_OK: u64 = 1 << 24;
/// Length of an EOF packet.
const EOF: u64 = 5;
/// Upper bound on a greeting.
const LONGEST_GREETING: u32 = 512;
/// Status flag SERVER_MORE_RESULTS_EXISTS: another result set follows.
pub(super) const MORE_RESULTS: u16 = 0x0008;
/// Status flag SERVER_STATUS_CURSOR_EXISTS: rows follow only when the client fetches them.
pub(super) const CURSOR_EXISTS: u16 = 0x0040;

// capability flags
pub(super) const CLIENT_SSL: u32 = 0x0800;
const CLIENT_COMPRESS: u32 = 0x20;
const CLIENT_DEPRECATE_EOF: u32 = 1 << 24;
const CLIENT_OPTIONAL_METADATA: u32 = 1 << 25;
const CLIENT_QUERY_ATTRIBUTES: u32 = 1 << 27;
const CLIENT_ZSTD: u32 = 1 << 26;

/// The commands that decide something (`COM_QUERY` and so on).
pub(super) mod com {
    pub const INIT_DB: u8 = 0x02;
    pub const QUERY: u8 = 0x03;
    pub const FIELD_LIST: u8 = 0x04;
    pub const CREATE_DB: u8 = 0x05;
    pub const DROP_DB: u8 = 0x06;
    pub const STATISTICS: u8 = 0x09;
    pub const PING: u8 = 0x0e;
    pub const CHANGE_USER: u8 = 0x11;
    pub const BINLOG_DUMP: u8 = 0x12;
    pub const PREPARE: u8 = 0x16;
    pub const EXECUTE: u8 = 0x17;
    pub const CLOSE: u8 = 0x19;
    pub const RESET: u8 = 0x1a;
    pub const FETCH: u8 = 0x1c;
    pub const BINLOG_DUMP_GTID: u8 = 0x1e;
    pub const RESET_CONNECTION: u8 = 0x1f;
}

/// The capability flags of a greeting, a log-in, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capabilities(pub(super) u32);

impl Capabilities {
    pub(super) fn compresses(self) -> bool {
        self.0 & (CLIENT_COMPRESS | CLIENT_ZSTD) != 0
    }

    pub(super) fn ends_without_eof(self) -> bool {
        self.0 & CLIENT_DEPRECATE_EOF != 0
    }

    /// Whether a result begins with a byte that shows whether column definitions follow.
    pub(super) fn has_optional_metadata(self) -> bool {
        self.0 & CLIENT_OPTIONAL_METADATA != 0
    }

    pub(super) fn sends_attributes(self) -> bool {
        self.0 & CLIENT_QUERY_ATTRIBUTES != 0
    }
}

pub(super) fn length(header: &[u8; HEADER]) -> u32 {
    let [low, middle, high, _] = *header;
    u32::from_le_bytes([low, middle, high, 0])
}

/// Whether the next packet continues this one.
pub(super) fn is_continued(header: &[u8; HEADER]) -> bool {
    length(header) == MAX_PACKET_BYTES
}

/// Whether a server's first bytes are a greeting: protocol 10 and a server version that begins with a digit, or an
/// error ("too many connections").
pub(super) fn greets(input: &[u8]) -> Guess {
    let [low, middle, high, number, first, rest @ ..] = input else {
        let fits =
            input.get(2).is_none_or(|high| *high == 0) && input.get(3).is_none_or(|number| *number == 0);
        return if fits { Guess::More } else { Guess::No };
    };
    let len = length(&[*low, *middle, *high, *number]);
    if *number != 0 || !(8..=LONGEST_GREETING).contains(&len) {
        return Guess::No;
    }
    match (first, rest) {
        (0x0a, [version, minor, ..])
            if version.is_ascii_digit() && (minor.is_ascii_digit() || *minor == b'.') =>
        {
            Guess::Yes
        }
        (0xff, [low, high, text, ..]) => {
            let code = u16::from_le_bytes([*low, *high]);
            let is_whole = input.len() as u64 >= u64::from(len) + HEADER as u64;
            let fits = (1000..5000).contains(&code) && (*text == b'#' || text.is_ascii_alphabetic());
            match (fits, is_whole) {
                (true, true) => Guess::Yes,
                (true, false) => Guess::More,
                _ => Guess::No,
            }
        }
        (0x0a | 0xff, _) if rest.len() < 3 => Guess::More,
        _ => Guess::No,
    }
}

/// Whether a client's first bytes are a log-in. Used inside TLS, where the greeting was sent before encryption.
pub(super) fn logs_in(input: &[u8]) -> Guess {
    const PROTOCOL_41: u32 = 0x0200;
    let Some((header, body)) = input.split_first_chunk::<HEADER>() else {
        let fits =
            input.get(1).is_none_or(|middle| *middle < 0x10) && input.get(2).is_none_or(|high| *high == 0);
        return if fits { Guess::More } else { Guess::No };
    };
    let [.., number] = *header;
    let zeros = body
        .get(9..)
        .unwrap_or_default()
        .iter()
        .take(19)
        .all(|byte| *byte == 0);
    let is_new = le32_at(body, 0).is_none_or(|flags| flags & PROTOCOL_41 != 0);
    if !(1..=3).contains(&number) || !(32..4096).contains(&length(header)) || !zeros || !is_new {
        Guess::No
    } else if body.len() < 28 {
        Guess::More
    } else {
        Guess::Yes
    }
}

/// Returns the capability flags of a greeting.
pub(super) fn greeting_capabilities(body: &[u8]) -> Option<Capabilities> {
    let end = memchr::memchr(0, body)?;
    let low = le16_at(body, end + 14)?;
    let high = le16_at(body, end + 19).unwrap_or(0);
    Some(Capabilities(u32::from(low) | u32::from(high) << 16))
}

/// Whether a packet of the client in the middle of a stream is one whole command.
pub(super) fn begins_message(first: &[u8]) -> bool {
    let Some((header, body)) = first.split_first_chunk::<HEADER>() else {
        return false;
    };
    let [.., number] = *header;
    let is_whole = length(header) as usize == body.len() && number == 0;
    match body {
        _ if !is_whole => false,
        [com::QUERY | com::PREPARE, statement @ ..] => statement.len() > 2 && is_text(statement),
        [com::INIT_DB, name @ ..] => !name.is_empty() && is_text(name),
        [com::EXECUTE, rest @ ..] => rest.len() >= 9 && rest.get(5..9) == Some(&[1, 0, 0, 0]),
        [com::PING | com::STATISTICS | com::RESET_CONNECTION, rest @ ..] => rest.is_empty(),
        [com::RESET, rest @ ..] => rest.len() == 4,
        _ => false,
    }
}

fn is_text(text: &[u8]) -> bool {
    let control = |byte: &u8| *byte < 0x20 && !byte.is_ascii_whitespace();
    !text.iter().take(64).any(control) && text.iter().take(16).any(u8::is_ascii_alphabetic)
}

/// Returns a length-encoded integer, and the bytes after it.
pub(super) fn length_encoded(body: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = body.split_first()?;
    let len = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
        small => return Some((u64::from(*small), rest)),
    };
    let (bytes, rest) = rest.split_at_checked(len)?;
    let value = bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value, rest))
}

/// A packet that ends definitions or rows, with the server's status flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Eof(u16),
    Ok(u16),
}

/// Returns the kind of a packet that ends definitions or rows. None for a row, which may begin with the same byte but
/// is then longer.
pub(super) fn as_last(body: &[u8], len: u64) -> Option<Last> {
    let rest = body.strip_prefix(&[0xfe])?;
    if len == EOF {
        return Some(Last::Eof(le16_at(rest, 2).unwrap_or(0)));
    }
    (len < LONGEST_OK).then(|| Last::Ok(ok_status(rest).unwrap_or(0)))
}

/// Returns the status flags of an OK packet; `body` begins after its first byte.
pub(super) fn ok_status(body: &[u8]) -> Option<u16> {
    let (_rows, rest) = length_encoded(body)?;
    let (_id, rest) = length_encoded(rest)?;
    le16_at(rest, 0)
}

/// Returns the statement of COM_QUERY; empty if query attributes with values stand before it.
pub(super) fn statement(body: &[u8], has_attributes: bool) -> &[u8] {
    match body {
        // CLIENT_QUERY_ATTRIBUTES: 0 attributes in 1 set
        [0, 1, statement @ ..] => statement,
        [count, ..] if has_attributes && *count < 0x20 && !count.is_ascii_whitespace() => &[],
        _ => body,
    }
}

/// Returns a command's name, and whether the server answers it.
pub(super) fn command(code: u8) -> Option<(&'static str, bool)> {
    Some(match code {
        0x01 => ("QUIT", false),
        com::INIT_DB => ("INIT_DB", true),
        com::QUERY => ("QUERY", true),
        com::FIELD_LIST => ("FIELD_LIST", true),
        com::CREATE_DB => ("CREATE_DB", true),
        com::DROP_DB => ("DROP_DB", true),
        0x07 => ("REFRESH", true),
        0x08 => ("SHUTDOWN", true),
        com::STATISTICS => ("STATISTICS", true),
        0x0a => ("PROCESS_INFO", true),
        0x0c => ("PROCESS_KILL", true),
        0x0d => ("DEBUG", true),
        com::PING => ("PING", true),
        com::CHANGE_USER => ("CHANGE_USER", true),
        com::BINLOG_DUMP => ("BINLOG_DUMP", true),
        0x15 => ("REGISTER_SLAVE", true),
        com::PREPARE => ("PREPARE", true),
        com::EXECUTE => ("EXECUTE", true),
        0x18 => ("SEND_LONG_DATA", false),
        com::CLOSE => ("CLOSE", false),
        com::RESET => ("RESET", true),
        0x1b => ("SET_OPTION", true),
        com::FETCH => ("FETCH", true),
        com::BINLOG_DUMP_GTID => ("BINLOG_DUMP", true),
        com::RESET_CONNECTION => ("RESET_CONNECTION", true),
        _ => return None,
    })
}
