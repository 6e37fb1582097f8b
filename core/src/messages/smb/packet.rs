//! Messages of SMB2 as their first bytes show them (MS-SMB2 2.1, 2.2): heads, commands, names, statuses. Remembers
//! nothing.

use smol_str::SmolStr;

use crate::cursor::{self, Cursor};
use crate::messages::framed::Length;
use crate::messages::{Side, text};

/// The fewest bytes that tell a message: its length, the mark, the size of its head.
pub(super) const MIN_PACKET_BYTES: usize = 10;
/// Before each message: a zero and its length in three bytes (2.1). A server takes 8 MiB at once and a head.
const BEFORE: usize = 4;
const MAX_MESSAGE: u32 = 16 << 20;
/// A session's keep-alive on port 139, how one is requested and granted (RFC 1002 4.3.2, 4.3.3, 4.3.6).
const KEEP_ALIVE: u8 = 0x85;
const SESSION: &[u8] = &[0x81, 0, 0, 68, 32];
const GRANTED: &[u8] = &[0x82, 0, 0, 0];
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

/// What of a number is no command of SMB1.
const OLD: u16 = 0x100;

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

/// Those of SMB1 that are answered (MS-CIFS 2.2.2.1), without the tail that announces others.
const OLD_WORDS: [(u8, &str); 29] = [
    (0x00, "CreateDirectory"),
    (0x01, "DeleteDirectory"),
    (0x02, "Open"),
    (0x03, "Create"),
    (0x04, "Close"),
    (0x05, "Flush"),
    (0x06, "Delete"),
    (0x07, "Rename"),
    (0x08, "QueryInformation"),
    (0x09, "SetInformation"),
    (0x0A, "Read"),
    (0x0B, "Write"),
    (0x10, "CheckDirectory"),
    (LOCKING_1, "Locking"),
    (0x25, "Transaction"),
    (0x2B, "Echo"),
    (0x2D, "Open"),
    (0x2E, "Read"),
    (0x2F, "Write"),
    (0x32, "Transaction2"),
    (0x34, "FindClose2"),
    (0x70, "TreeConnect"),
    (0x71, "TreeDisconnect"),
    (NEGOTIATE_1, "Negotiate"),
    (0x73, "SessionSetup"),
    (0x74, "Logoff"),
    (0x75, "TreeConnect"),
    (0xA0, "NTTransact"),
    (0xA2, "Create"),
];
/// More of a request, and what nobody answers.
const OLD_SILENT: [u8; 4] = [0x26, 0x33, 0xA1, 0xA4];

fn old_word(command: u8) -> Option<&'static str> {
    let known = OLD_WORDS.iter().find(|(number, _)| *number == command);
    known.map(|(_, word)| *word)
}

impl Command {
    const OLD_CREATE: Command = Command(OLD | 0xA2);
    const OLD_TRANSACT: Command = Command(OLD | 0xA0);
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
            Command(number) if number >= OLD => old_word((number - OLD) as u8),
            Command(number) => WORDS.get(usize::from(number)).copied(),
        }
    }

    /// Of SMB1, whose files have other numbers.
    pub(super) fn is_old(self) -> bool {
        self.0 >= OLD
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
        let got = cursor::from(first, BEFORE);
        got.iter().zip(mark).all(|(got, want)| got == want)
    };
    match cursor::be32_at(first, 0) {
        None if matches!(first.first(), Some(0 | &KEEP_ALIVE)) || first.is_empty() => Length::More,
        None if begins(first, SESSION) || begins(first, GRANTED) => Length::More,
        Some(len) if len == u32::from(KEEP_ALIVE) << 24 => Length::Is(BEFORE as u64),
        Some(_) if first.starts_with(GRANTED) => Length::Is(BEFORE as u64),
        Some(_) if begins(first, SESSION) => match first.len() {
            ..5 => Length::More,
            _ => Length::Is(BEFORE as u64 + 68),
        },
        Some(len) if !(36..=MAX_MESSAGE).contains(&len) || !marked(MARK) && !marked(MARK_1) => Length::Wrong,
        Some(_) if first.len() <= BEFORE => Length::More,
        Some(len) => Length::Is(u64::from(len) + BEFORE as u64),
        None => Length::Wrong,
    }
}

fn begins(bytes: &[u8], want: &[u8]) -> bool {
    bytes.iter().zip(want).all(|(here, want)| here == want)
}

/// Whether `side` may say what begins so.
pub(super) fn fits(side: Side, message: &[u8]) -> bool {
    let session = if side == Side::Client { SESSION } else { GRANTED };
    if !message.is_empty() && begins(message, session) {
        return true;
    }
    let body = cursor::from(message, BEFORE);
    if body.starts_with(MARK_1) {
        // a server asks too: it takes back an exclusive lock (LOCKING)
        let asks = side == Side::Server && body.get(4) == Some(&LOCKING_1);
        let got = |flags: &u8| asks || (flags & 0x80 != 0) == (side == Side::Server);
        let known = |kind: &u8| old_word(*kind).is_some() || OLD_SILENT.contains(kind);
        return body.get(4).is_none_or(known) && body.get(9).is_none_or(got);
    }
    let begins = |want: &[u8]| begins(body, want);
    let flags = le32(body, 16);
    let got = flags.is_none_or(|flags| (flags & RESPONSE != 0) == (side == Side::Server));
    begins(b"\xfeSMB\x40\0") && got && le16(body, 12).is_none_or(|number| usize::from(number) < WORDS.len())
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
    /// Of SMB1: its names have two bytes a letter; its status is none of NT's.
    wide: bool,
    dos: bool,
}

/// The key of the server's own requests in SMB2; SMB1 has 0xFFFF for them (MS-CIFS 2.2.4.32.1).
const UNASKED_1: u16 = 0xFFFF;
/// Keys of SMB1 lie above those of SMB2's first requests: its NEGOTIATE alone may be answered in SMB2.
const KEYS_1: u64 = 1 << 32;
const LOCKING_1: u8 = 0x24;
/// NT_TRANSACT_NOTIFY_CHANGE, and where its number stands (MS-CIFS 2.2.4.62.1, 2.2.7.4.1).
const NOTIFY_1: u16 = 4;
const FUNCTION_1: usize = 69;

impl<'a> Packet<'a> {
    /// Does another command follow it in its message?
    pub(super) fn is_joined(&self) -> bool {
        self.bytes.starts_with(MARK) && le32(self.bytes, 20).is_some_and(|next| next as usize >= HEAD)
    }

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
            return Packet::read_1(bytes);
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
            wide: true,
            dos: false,
        })
    }

    /// Of SMB1 (MS-CIFS 2.2.3.1).
    fn read_1(bytes: &'a [u8]) -> Option<Self> {
        let kind = cursor::u8_at(bytes, 4)?;
        let (flags, more) = (cursor::u8_at(bytes, 9)?, le16(bytes, 10)?);
        let (process, number) = (le16(bytes, 26)?, le16(bytes, 30)?);
        let (command, number) = match kind {
            NEGOTIATE_1 => (Command::NEGOTIATE, 0),
            _ if number == UNASKED_1 && flags & 0x80 == 0 => (Command(OLD | u16::from(kind)), u64::MAX),
            _ => {
                let key = KEYS_1 | u64::from(process) << 16 | u64::from(number);
                (Command(OLD | u16::from(kind)), key)
            }
        };
        Some(Packet {
            bytes,
            status: le32(bytes, 5)?,
            command,
            flags: u32::from(flags >> 7),
            number,
            wide: more & 0x8000 != 0,
            dos: more & 0x4000 == 0,
        })
    }

    /// It is answered when something happens.
    pub(super) fn waits(&self) -> bool {
        let function = || le16(self.bytes, FUNCTION_1);
        self.command == Command::CHANGE_NOTIFY
            || self.command == Command::OLD_TRANSACT && function() == Some(NOTIFY_1)
    }

    /// The file of an SMB1 open (MS-SMB 2.2.4.9.1).
    fn name_1(&self) -> Option<SmolStr> {
        let len = usize::from(le16(self.bytes, 38)?);
        let at = if self.wide { 84 } else { 83 };
        let name = cursor::from(self.bytes, at).get(..len)?;
        Some(self.letters(name))
    }

    fn letters(&self, name: &[u8]) -> SmolStr {
        if !self.wide {
            return text::name_up_to(name, MAX_NAME, false);
        }
        let units = name.chunks_exact(2).filter_map(|unit| le16(unit, 0));
        let letters = char::decode_utf16(units).map(|letter| letter.unwrap_or('\u{FFFD}'));
        let name: String = letters.collect();
        text::name_up_to(name.as_bytes(), MAX_NAME, false)
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
        (self.status >> 30 == 3 || self.dos && self.status != 0) && self.status != MORE_PROCESSING
    }

    /// The share or the file that is requested.
    pub(super) fn name(&self) -> Option<SmolStr> {
        if self.command == Command::OLD_CREATE {
            return self.name_1();
        }
        let at = match self.command {
            Command::CREATE => 44,
            Command::TREE_CONNECT => 4,
            _ => return None,
        };
        let (offset, len) = (le16(self.body(), at)?, le16(self.body(), at + 2)?);
        let name = cursor::from(self.bytes, usize::from(offset)).get(..usize::from(len))?;
        Some(self.letters(name))
    }

    /// The number of the file that a request is about.
    pub(super) fn requested_file(&self) -> Option<u128> {
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
