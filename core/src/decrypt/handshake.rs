//! Handshake messages (RFC 8446 4, RFC 5246 7.4): splits the content of records into messages and reads the hellos'
//! fields that decide the encryption. Certificates and other messages are skipped.

use smol_str::SmolStr;

use super::keylog::Random;
use crate::cursor::Cursor;

pub(crate) const CLIENT_HELLO: u8 = 1;
pub(crate) const SERVER_HELLO: u8 = 2;
pub(super) const END_OF_EARLY_DATA: u8 = 5;
pub(super) const ENCRYPTED_EXTENSIONS: u8 = 8;
pub(super) const FINISHED: u8 = 20;
pub(super) const KEY_UPDATE: u8 = 24;

pub(crate) const SERVER_NAME: u16 = 0;
pub(crate) const ALPN: u16 = 16;
const ENCRYPT_THEN_MAC: u16 = 22;
pub(crate) const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const SUPPORTED_VERSIONS: u16 = 43;

pub(crate) const TLS13: u16 = 0x0304;

/// Upper bound on the bytes kept of a message. A ServerHello with the largest key shares in use is half as long.
const MAX_MESSAGE_BYTES: usize = 4096;
/// Length of a message header: type and length.
const HEADER: usize = 4;

/// SHA-256 of "HelloRetryRequest". A ServerHello with this random is a HelloRetryRequest (RFC 8446 4.1.3).
const RETRY: Random = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Splits the messages of one sender. Buffers at most `MAX_MESSAGE_BYTES` bytes.
#[derive(Debug, Default)]
pub(super) struct HandshakeMessages {
    kept: Vec<u8>,
    /// Number of bytes of a message that are still to be skipped.
    to_skip: usize,
}

impl HandshakeMessages {
    /// Takes the content of the next handshake record. Calls `message` with the type and the first bytes of each
    /// message.
    pub fn feed(&mut self, content: &[u8], mut message: impl FnMut(u8, &[u8])) {
        let mut rest = content;
        loop {
            let (skipped, after) = crate::cursor::split(rest, self.to_skip);
            self.to_skip -= skipped.len();
            rest = after;
            if self.to_skip > 0 {
                return;
            }
            let len = self.needed();
            let Some(missing) = len.checked_sub(self.kept.len()).filter(|missing| *missing > 0) else {
                let total = self.total();
                let kept = std::mem::take(&mut self.kept);
                if let [kind, _, _, _, body @ ..] = kept.as_slice() {
                    message(*kind, body);
                }
                self.to_skip = total.saturating_sub(kept.len());
                if rest.is_empty() && self.to_skip == 0 {
                    return;
                }
                continue;
            };
            if rest.is_empty() {
                return;
            }
            let (taken, after) = crate::cursor::split(rest, missing);
            self.kept.extend_from_slice(taken);
            rest = after;
        }
    }

    /// Number of bytes that are kept before a message is read.
    fn needed(&self) -> usize {
        match self.kept.len() {
            0..HEADER => HEADER,
            _ => self.total().min(MAX_MESSAGE_BYTES),
        }
    }

    /// Length of the current message with its header.
    fn total(&self) -> usize {
        match *self.kept.as_slice() {
            [_, high, middle, low, ..] => HEADER + u32::from_be_bytes([0, high, middle, low]) as usize,
            _ => HEADER,
        }
    }
}

/// Returns the random of a ClientHello.
pub(super) fn client_random(hello: &[u8]) -> Option<Random> {
    let mut cursor = Cursor::new(hello);
    cursor.u16be()?;
    cursor.take(32)?.try_into().ok()
}

/// Whether a ClientHello announces early data.
pub(super) fn offers_early_data(hello: &[u8]) -> bool {
    let mut offers = false;
    each_extension(of_client(hello), |kind, _| offers |= kind == EARLY_DATA);
    offers
}

/// Returns a cursor at the extensions of a ClientHello; empty if the fields before them are cut.
pub(crate) fn of_client(hello: &[u8]) -> Cursor<'_> {
    let mut cursor = Cursor::new(hello);
    let mut fields = || {
        cursor.take(2 + 32)?;
        let session = cursor.u8()?;
        cursor.take(session.into())?;
        let suites = cursor.u16be()?;
        cursor.take(suites.into())?;
        let compressions = cursor.u8()?;
        cursor.take(compressions.into())
    };
    fields().map_or(Cursor::new(&[]), |_| cursor)
}

/// The fields of a ServerHello that are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerHello {
    pub random: Random,
    /// 0x0303 is TLS 1.2, 0x0304 is 1.3.
    pub version: u16,
    pub suite: u16,
    pub encrypt_then_mac: bool,
    /// Whether it resumes a session with a pre-shared key (RFC 8446 4.2.11).
    pub by_key: bool,
    /// The chosen application protocol (RFC 7301).
    pub alpn: Option<SmolStr>,
    /// Whether it is a HelloRetryRequest: the client must send another ClientHello.
    pub is_retry: bool,
}

pub(crate) fn server_hello(hello: &[u8]) -> Option<ServerHello> {
    let mut cursor = Cursor::new(hello);
    let mut version = cursor.u16be()?;
    let random: Random = cursor.take(32)?.try_into().ok()?;
    let session = cursor.u8()?;
    cursor.take(session.into())?;
    let suite = cursor.u16be()?;
    cursor.u8()?;
    let (mut encrypt_then_mac, mut by_key, mut alpn) = (false, false, None);
    each_extension(cursor, |kind, body| match (kind, body) {
        (SUPPORTED_VERSIONS, [high, low]) => version = u16::from_be_bytes([*high, *low]),
        (ENCRYPT_THEN_MAC, _) => encrypt_then_mac = true,
        (PRE_SHARED_KEY, _) => by_key = true,
        (ALPN, body) => alpn = chosen_protocol(body),
        _ => {}
    });
    Some(ServerHello {
        random,
        version,
        suite,
        encrypt_then_mac,
        by_key,
        alpn,
        is_retry: random == RETRY,
    })
}

/// Returns whether EncryptedExtensions accept early data (RFC 8446 4.2.10), and the application protocol they choose.
pub(super) fn encrypted_extensions(extensions: &[u8]) -> (bool, Option<SmolStr>) {
    let (mut accepts, mut alpn) = (false, None);
    each_extension(Cursor::new(extensions), |kind, body| match kind {
        EARLY_DATA => accepts = true,
        ALPN => alpn = chosen_protocol(body),
        _ => {}
    });
    (accepts, alpn)
}

/// Returns the names in an ALPN extension (RFC 7301 3.1).
pub(crate) fn protocols(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut cursor = Cursor::new(crate::cursor::from(body, 2));
    std::iter::from_fn(move || {
        let len = cursor.u8()?;
        cursor.take(len.into())
    })
}

/// Returns the protocol in a server's ALPN extension, whose list has one entry.
fn chosen_protocol(body: &[u8]) -> Option<SmolStr> {
    let name = protocols(body).next()?;
    Some(String::from_utf8_lossy(name).into())
}

/// Calls `extension` with the type and body of each extension.
pub(crate) fn each_extension(mut cursor: Cursor<'_>, mut extension: impl FnMut(u16, &[u8])) {
    if cursor.u16be().is_none() {
        return;
    }
    while let (Some(kind), Some(len)) = (cursor.u16be(), cursor.u16be()) {
        let Some(body) = cursor.take(len.into()) else {
            return;
        };
        extension(kind, body);
    }
}
