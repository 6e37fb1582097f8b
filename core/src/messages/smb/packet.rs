//! Messages of SMB (MS-SMB2 2.1, 2.2; MS-CIFS 2.2): headers, commands, names, status. Stateless. Sections without a
//! document are MS-SMB2's.

use smol_str::SmolStr;

use crate::cursor::{self, Cursor};
use crate::messages::framed::Length;
use crate::messages::{Side, text};

/// Bytes by which a message is recognised: its length, the protocol id, the header's size.
pub(super) const MIN_PACKET_BYTES: usize = 10;
/// Bytes before each message: a zero and its length in three bytes (2.1).
const BEFORE: usize = 4;
/// Bytes of the shortest message: SMB1's header, no words, no bytes (MS-CIFS 2.2.3).
const MIN_MESSAGE: u32 = 32 + 1 + 2;
/// Upper bound on a message; a server reads or writes at most 8 MiB at once.
const MAX_MESSAGE: u32 = 16 << 20;
/// NetBIOS session on port 139: keepalive, beginning of a request, positive response (RFC 1002 4.3.2, 4.3.3, 4.3.6).
const KEEP_ALIVE: u8 = 0x85;
const SESSION: &[u8] = &[0x81, 0, 0, 68, 32];
const GRANTED: &[u8] = &[0x82, 0, 0, 0];
/// Protocol ids of SMB2 and 3, and of SMB1.
const MARK: &[u8] = b"\xfeSMB";
const MARK_1: &[u8] = b"\xffSMB";
/// Bytes of an SMB2 header.
const HEAD: usize = 64;
/// SMB1's NEGOTIATE, with which a client may offer SMB2, too (2.2.1, 3.2.4.2.1).
const NEGOTIATE_1: u8 = 0x72;
/// The lowest dialect of SMB3.
const DIALECT_3: u16 = 0x0300;
/// STATUS_PENDING.
const PENDING: u32 = 0x0000_0103;
/// STATUS_MORE_PROCESSING_REQUIRED: the log-in has another round.
const MORE_PROCESSING: u32 = 0xC000_0016;
/// Flag of a header: the message is a response.
const RESPONSE: u32 = 1;
/// Upper bound on the bytes kept of a name.
const MAX_NAME: usize = 1024;

/// A command's number; those of SMB1 have the bit `SMB1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Command(u16);

const SMB1: u16 = 0x100;
const LOCKING_1: u8 = 0x24;

/// Names of SMB2's commands, by their numbers.
#[rustfmt::skip]
const NAMES: [&str; 19] = [
    "Negotiate", "SessionSetup", "Logoff", "TreeConnect", "TreeDisconnect", "Create", "Close", "Flush",
    "Read", "Write", "Lock", "Ioctl", "Cancel", "Echo", "QueryDirectory", "ChangeNotify", "QueryInfo",
    "SetInfo", "OplockBreak",
];

/// Commands of SMB1 that are answered (MS-CIFS 2.2.2.1), without the suffixes `_ANDX`.
#[rustfmt::skip]
const NAMES_1: [(u8, &str); 29] = [
    (0x00, "CreateDirectory"), (0x01, "DeleteDirectory"), (0x02, "Open"), (0x03, "Create"), (0x04, "Close"),
    (0x05, "Flush"), (0x06, "Delete"), (0x07, "Rename"), (0x08, "QueryInformation"),
    (0x09, "SetInformation"), (0x0A, "Read"), (0x0B, "Write"), (0x10, "CheckDirectory"),
    (LOCKING_1, "Locking"), (0x25, "Transaction"), (0x2B, "Echo"), (0x2D, "Open"), (0x2E, "Read"),
    (0x2F, "Write"), (0x32, "Transaction2"), (0x34, "FindClose2"), (0x70, "TreeConnect"),
    (0x71, "TreeDisconnect"), (NEGOTIATE_1, "Negotiate"), (0x73, "SessionSetup"), (0x74, "Logoff"),
    (0x75, "TreeConnect"), (0xA0, "NTTransact"), (0xA2, "Create"),
];
/// Commands of SMB1 that are not answered: the secondary parts of a request, and NT_CANCEL.
const UNANSWERED_1: [u8; 4] = [0x26, 0x33, 0xA1, 0xA4];

fn smb1_name(command: u8) -> Option<&'static str> {
    let entry = NAMES_1.iter().find(|(number, _)| *number == command);
    entry.map(|(_, name)| *name)
}

impl Command {
    const CREATE_1: Command = Command(SMB1 | 0xA2);
    const TRANSACT_1: Command = Command(SMB1 | 0xA0);
    const NEGOTIATE: Command = Command(0);
    pub(super) const TREE_CONNECT: Command = Command(3);
    pub(super) const CREATE: Command = Command(5);
    const CANCEL: Command = Command(12);
    pub(super) const CHANGE_NOTIFY: Command = Command(15);

    /// Returns the command's name; None if the server does not answer it.
    pub(super) fn name(self, packet: &Packet<'_>) -> Option<&'static str> {
        match self {
            Command::CANCEL => None,
            Command::NEGOTIATE if packet.offers_3() => Some("SMB3Negotiate"),
            Command(number) if number >= SMB1 => smb1_name((number - SMB1) as u8),
            Command(number) => NAMES.get(usize::from(number)).copied(),
        }
    }

    pub(super) fn is_smb1(self) -> bool {
        self.0 >= SMB1
    }

    /// Returns the offset of the file id in a request's body.
    fn file_at(self) -> Option<usize> {
        match self.0 {
            6 | 7 | 10 | 11 | 14 | 15 => Some(8),
            8 | 9 | 17 => Some(16),
            16 => Some(24),
            _ => None,
        }
    }
}

/// Returns the length of the message that these bytes begin.
pub(super) fn length(first: &[u8]) -> Length {
    let marked = |mark: &[u8]| {
        let protocol_id = cursor::from(first, BEFORE);
        protocol_id.iter().zip(mark).all(|(byte, want)| byte == want)
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
        Some(len) if !(MIN_MESSAGE..=MAX_MESSAGE).contains(&len) => Length::Wrong,
        Some(_) if !marked(MARK) && !marked(MARK_1) => Length::Wrong,
        Some(_) if first.len() <= BEFORE => Length::More,
        Some(len) => Length::Is(u64::from(len) + BEFORE as u64),
        None => Length::Wrong,
    }
}

/// Whether bytes are equal up to the end of the shorter ones.
fn begins(bytes: &[u8], want: &[u8]) -> bool {
    bytes.iter().zip(want).all(|(byte, want)| byte == want)
}

/// Whether `side` may send a message that begins with these bytes.
pub(super) fn fits(side: Side, message: &[u8]) -> bool {
    let session = if side == Side::Client { SESSION } else { GRANTED };
    if !message.is_empty() && begins(message, session) {
        return true;
    }
    let body = cursor::from(message, BEFORE);
    if body.starts_with(MARK_1) {
        // LOCKING is also a request of the server, which takes back an exclusive lock
        let is_break = side == Side::Server && body.get(4) == Some(&LOCKING_1);
        let fits_side = |flags: &u8| is_break || (flags & 0x80 != 0) == (side == Side::Server);
        let is_command = |kind: &u8| smb1_name(*kind).is_some() || UNANSWERED_1.contains(kind);
        return body.get(4).is_none_or(is_command) && body.get(9).is_none_or(fits_side);
    }
    let flags = cursor::le32_at(body, 16);
    begins(body, b"\xfeSMB\x40\0")
        && flags.is_none_or(|flags| (flags & RESPONSE != 0) == (side == Side::Server))
        && cursor::le16_at(body, 12).is_none_or(|number| usize::from(number) < NAMES.len())
}

fn le128(bytes: &[u8], at: usize) -> Option<u128> {
    let number = cursor::from(bytes, at).first_chunk::<16>()?;
    Some(u128::from_le_bytes(*number))
}

/// One command of a message, with its header (2.2.1).
#[derive(Debug)]
pub(super) struct Packet<'a> {
    /// Header and body, as far as they were kept.
    pub(super) bytes: &'a [u8],
    pub(super) status: u32,
    pub(super) command: Command,
    flags: u32,
    /// Message id; u64::MAX for the server's own requests.
    pub(super) number: u64,
    /// Names have two bytes per letter; false only in SMB1.
    is_wide: bool,
    /// The status is one of DOS, not of NT; true only in SMB1.
    is_dos: bool,
}

/// Multiplex id of the server's own requests in SMB1 (MS-CIFS 2.2.4.32.1).
const UNSOLICITED_1: u16 = 0xFFFF;
/// Keys of SMB1 have this bit, so that they differ from SMB2's message ids. NEGOTIATE, which SMB2 may answer, has not.
const KEYS_1: u64 = 1 << 32;
/// NT_TRANSACT_NOTIFY_CHANGE, and the offset of that function (MS-CIFS 2.2.4.62.1, 2.2.7.4.1).
const NOTIFY_1: u16 = 4;
const FUNCTION_1: usize = 69;

impl<'a> Packet<'a> {
    /// Whether another command follows in the message.
    pub(super) fn has_next(&self) -> bool {
        self.bytes.starts_with(MARK)
            && cursor::le32_at(self.bytes, 20).is_some_and(|next| next as usize >= HEAD)
    }

    /// Iterates over the commands of a message (NextCommand).
    pub(super) fn all(message: &'a [u8]) -> impl Iterator<Item = Packet<'a>> {
        let mut rest = Some(cursor::from(message, BEFORE));
        std::iter::from_fn(move || {
            let bytes = rest.take()?;
            let next = cursor::le32_at(bytes, 20)
                .filter(|_| bytes.starts_with(MARK))
                .unwrap_or(0) as usize;
            let (bytes, after) = if next >= HEAD {
                cursor::split(bytes, next)
            } else {
                (bytes, &[][..])
            };
            rest = (!after.is_empty()).then_some(after);
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
            status: cursor::le32_at(bytes, 8)?,
            command: Command(cursor::le16_at(bytes, 12)?),
            flags: cursor::le32_at(bytes, 16)?,
            number: cursor.u64le()?,
            is_wide: true,
            is_dos: false,
        })
    }

    /// Reads a message of SMB1 (MS-CIFS 2.2.3.1).
    fn read_1(bytes: &'a [u8]) -> Option<Self> {
        let kind = cursor::u8_at(bytes, 4)?;
        let (flags, more) = (cursor::u8_at(bytes, 9)?, cursor::le16_at(bytes, 10)?);
        let (process, number) = (cursor::le16_at(bytes, 26)?, cursor::le16_at(bytes, 30)?);
        let (command, number) = match kind {
            NEGOTIATE_1 => (Command::NEGOTIATE, 0),
            _ if number == UNSOLICITED_1 && flags & 0x80 == 0 => (Command(SMB1 | u16::from(kind)), u64::MAX),
            _ => {
                let key = KEYS_1 | u64::from(process) << 16 | u64::from(number);
                (Command(SMB1 | u16::from(kind)), key)
            }
        };
        Some(Packet {
            bytes,
            status: cursor::le32_at(bytes, 5)?,
            command,
            flags: u32::from(flags >> 7),
            number,
            is_wide: more & 0x8000 != 0,
            is_dos: more & 0x4000 == 0,
        })
    }

    /// Whether the server answers when a directory changes.
    pub(super) fn is_long_poll(&self) -> bool {
        let function = || cursor::le16_at(self.bytes, FUNCTION_1);
        self.command == Command::CHANGE_NOTIFY
            || self.command == Command::TRANSACT_1 && function() == Some(NOTIFY_1)
    }

    /// Returns the file of an SMB1 open (MS-SMB 2.2.4.9.1).
    fn name_1(&self) -> Option<SmolStr> {
        let len = usize::from(cursor::le16_at(self.bytes, 38)?);
        let at = if self.is_wide { 84 } else { 83 };
        let name = cursor::from(self.bytes, at).get(..len)?;
        Some(self.decode(name))
    }

    /// Decodes a name.
    fn decode(&self, name: &[u8]) -> SmolStr {
        if !self.is_wide {
            return text::name_up_to(name, MAX_NAME, false);
        }
        let units = name.chunks_exact(2).filter_map(|unit| cursor::le16_at(unit, 0));
        let letters = char::decode_utf16(units).map(|letter| letter.unwrap_or('\u{FFFD}'));
        let name: String = letters.collect();
        text::name_up_to(name.as_bytes(), MAX_NAME, false)
    }

    fn body(&self) -> &'a [u8] {
        cursor::from(self.bytes, HEAD)
    }

    /// Whether the final response is still to come (3.3.4.2).
    pub(super) fn is_pending(&self) -> bool {
        self.status == PENDING
    }

    /// Whether the status is an error: one with the two highest bits (MS-ERREF 2.3), or any of DOS.
    pub(super) fn is_error(&self) -> bool {
        (self.status >> 30 == 3 || self.is_dos && self.status != 0) && self.status != MORE_PROCESSING
    }

    /// Returns the share or the file that is requested.
    pub(super) fn name(&self) -> Option<SmolStr> {
        if self.command == Command::CREATE_1 {
            return self.name_1();
        }
        let at = match self.command {
            Command::CREATE => 44,
            Command::TREE_CONNECT => 4,
            _ => return None,
        };
        let (offset, len) = (
            cursor::le16_at(self.body(), at)?,
            cursor::le16_at(self.body(), at + 2)?,
        );
        let name = cursor::from(self.bytes, usize::from(offset)).get(..usize::from(len))?;
        Some(self.decode(name))
    }

    /// Returns the id of the file that a request is about.
    pub(super) fn requested_file(&self) -> Option<u128> {
        le128(self.body(), self.command.file_at()?)
    }

    /// Returns the id of the file that a response to CREATE has opened.
    pub(super) fn opened_file(&self) -> Option<u128> {
        le128(self.body(), 64)
    }

    /// Whether a NEGOTIATE offers a dialect of SMB3 (2.2.3).
    fn offers_3(&self) -> bool {
        let count = cursor::le16_at(self.body(), 2).unwrap_or(0);
        let is_request = self.flags & RESPONSE == 0 && self.bytes.starts_with(MARK);
        let mut dialects = Cursor::new(cursor::from(self.body(), 36));
        is_request && (0..count.min(16)).any(|_| dialects.u16le().is_some_and(|dialect| dialect >= DIALECT_3))
    }
}
