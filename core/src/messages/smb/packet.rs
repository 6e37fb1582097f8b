//! Messages of SMB2 as their first bytes show them (MS-SMB2 2.1, 2.2): heads, commands, names, statuses. Remembers
//! nothing.

use smol_str::SmolStr;

use crate::cursor::{self, Cursor};
use crate::messages::framed::Length;
use crate::messages::{Side, text};

/// The fewest bytes that tell a message: its length, the mark, the size of its head.
pub(super) const LEAST: usize = 10;
/// Before each message: a zero and its length in three bytes (2.1). A server takes 8 MiB at once and a head.
const BEFORE: usize = 4;
const MAX_MESSAGE: u32 = 16 << 20;
/// A session's keep-alive on port 139 (RFC 1002 4.3.6).
const KEEP_ALIVE: u8 = 0x85;
const MARK: &[u8] = b"\xfeSMB";
const MARK_1: &[u8] = b"\xffSMB";
const HEAD: usize = 64;
/// SMB1's NEGOTIATE, with which a client may offer SMB2, too (2.2.1, 3.2.4.2.1).
const NEGOTIATE_1: u8 = 0x72;
/// From this dialect on it is SMB3.
const DIALECT_3: u16 = 0x0300;
const PENDING: u32 = 0x0000_0103;
/// A log-in goes on with another round.
const MORE_PROCESSING: u32 = 0xC000_0016;
const RESPONSE: u32 = 1;
/// Names are cut at this many bytes.
const MAX_NAME: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Command(u16);

/// By their numbers.
const WORDS: [&str; 19] = [
    "Negotiate",
    "SessionSetup",
    "Logoff",
    "TreeConnect",
    "TreeDisconnect",
    "Create",
    "Close",
    "Flush",
    "Read",
    "Write",
    "Lock",
    "Ioctl",
    "Cancel",
    "Echo",
    "QueryDirectory",
    "ChangeNotify",
    "QueryInfo",
    "SetInfo",
    "OplockBreak",
];

impl Command {
    const NEGOTIATE: Command = Command(0);
    pub(super) const TREE_CONNECT: Command = Command(3);
    pub(super) const CREATE: Command = Command(5);
    const CANCEL: Command = Command(12);
    pub(super) const CHANGE_NOTIFY: Command = Command(15);

    /// What it is called; `None` for one that nobody answers.
    pub(super) fn word(self, packet: &Packet<'_>) -> Option<&'static str> {
        match self {
            Command::CANCEL => None,
            Command::NEGOTIATE if packet.offers_3() => Some("SMB3Negotiate"),
            Command(number) => WORDS.get(usize::from(number)).copied(),
        }
    }

    /// Where a request's body has the number of its file.
    fn file_at(self) -> Option<usize> {
        match self.0 {
            6 | 7 | 10 | 11 | 14 | 15 => Some(8),
            8 | 9 | 17 => Some(16),
            16 => Some(24),
            _ => None,
        }
    }
}

pub(super) fn length(first: &[u8]) -> Length {
    let marked = |mark: &[u8]| {
        let said = cursor::from(first, BEFORE);
        said.iter().zip(mark).all(|(said, want)| said == want)
    };
    match cursor::be32_at(first, 0) {
        None if matches!(first.first(), Some(0 | &KEEP_ALIVE)) || first.is_empty() => Length::More,
        Some(len) if len == u32::from(KEEP_ALIVE) << 24 => Length::Is(BEFORE as u64),
        Some(len) if !(36..=MAX_MESSAGE).contains(&len) || !marked(MARK) && !marked(MARK_1) => Length::Wrong,
        Some(_) if first.len() <= BEFORE => Length::More,
        Some(len) => Length::Is(u64::from(len) + BEFORE as u64),
        None => Length::Wrong,
    }
}

/// Whether `side` may say what begins so.
pub(super) fn fits(side: Side, message: &[u8]) -> bool {
    let body = cursor::from(message, BEFORE);
    if body.starts_with(MARK_1) {
        let said = |flags: &u8| (flags & 0x80 != 0) == (side == Side::Server);
        return body.get(4).is_none_or(|kind| *kind == NEGOTIATE_1) && body.get(9).is_none_or(said);
    }
    let begins = |want: &[u8]| body.iter().zip(want).all(|(here, want)| here == want);
    let flags = le32(body, 16);
    let said = flags.is_none_or(|flags| (flags & RESPONSE != 0) == (side == Side::Server));
    begins(b"\xfeSMB\x40\0") && said && le16(body, 12).is_none_or(|number| usize::from(number) < WORDS.len())
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    Cursor::new(cursor::from(bytes, at)).u16le()
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    Cursor::new(cursor::from(bytes, at)).u32le()
}

fn le128(bytes: &[u8], at: usize) -> Option<u128> {
    let number = cursor::from(bytes, at).first_chunk::<16>()?;
    Some(u128::from_le_bytes(*number))
}

/// One command of a message (2.2.1).
#[derive(Debug)]
pub(super) struct Packet<'a> {
    /// All of it, as far as it is here.
    pub(super) bytes: &'a [u8],
    pub(super) status: u32,
    pub(super) command: Command,
    flags: u32,
    pub(super) number: u64,
}

impl<'a> Packet<'a> {
    /// The commands of a message, one behind the other (NextCommand).
    pub(super) fn all(message: &'a [u8]) -> impl Iterator<Item = Packet<'a>> {
        let mut rest = Some(cursor::from(message, BEFORE));
        std::iter::from_fn(move || {
            let here = rest.take()?;
            let next = le32(here, 20).filter(|_| here.starts_with(MARK)).unwrap_or(0) as usize;
            let (bytes, behind) = if next >= HEAD {
                cursor::split(here, next)
            } else {
                (here, &[][..])
            };
            rest = (!behind.is_empty()).then_some(behind);
            Packet::read(bytes)
        })
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        if bytes.starts_with(MARK_1) {
            let offers = bytes.get(4) == Some(&NEGOTIATE_1);
            return offers.then_some(Packet {
                bytes,
                status: 0,
                command: Command::NEGOTIATE,
                flags: 0,
                number: 0,
            });
        }
        if !bytes.starts_with(MARK) {
            return None;
        }
        let mut cursor = Cursor::new(cursor::from(bytes, 24));
        Some(Packet {
            bytes,
            status: le32(bytes, 8)?,
            command: Command(le16(bytes, 12)?),
            flags: le32(bytes, 16)?,
            number: cursor.u64le()?,
        })
    }

    fn body(&self) -> &'a [u8] {
        cursor::from(self.bytes, HEAD)
    }

    /// The answer is still to come (3.3.4.2).
    pub(super) fn is_pending(&self) -> bool {
        self.status == PENDING
    }

    /// The highest two bits are set for errors (MS-ERREF 2.3).
    pub(super) fn failed(&self) -> bool {
        self.status >> 30 == 3 && self.status != MORE_PROCESSING
    }

    /// The share or the file that is asked for.
    pub(super) fn name(&self) -> Option<SmolStr> {
        let at = if self.command == Command::CREATE { 44 } else { 4 };
        let (offset, len) = (le16(self.body(), at)?, le16(self.body(), at + 2)?);
        let bytes = cursor::from(self.bytes, usize::from(offset));
        let name = bytes.get(..usize::from(len))?;
        let units = name.chunks_exact(2).filter_map(|unit| le16(unit, 0));
        let letters = char::decode_utf16(units).map(|letter| letter.unwrap_or('\u{FFFD}'));
        let name: String = letters.collect();
        Some(text::name_up_to(name.as_bytes(), MAX_NAME, false))
    }

    /// The number of the file that a request is about.
    pub(super) fn asked_file(&self) -> Option<u128> {
        le128(self.body(), self.command.file_at()?)
    }

    /// The number of the file that an answer to CREATE opened.
    pub(super) fn opened_file(&self) -> Option<u128> {
        le128(self.body(), 64)
    }

    /// A NEGOTIATE that offers a dialect of SMB3 (2.2.3).
    fn offers_3(&self) -> bool {
        let count = le16(self.body(), 2).unwrap_or(0);
        let request = self.flags & RESPONSE == 0 && self.bytes.starts_with(MARK);
        let mut dialects = Cursor::new(cursor::from(self.body(), 36));
        request && (0..count.min(16)).any(|_| dialects.u16le().is_some_and(|dialect| dialect >= DIALECT_3))
    }
}
