//! The text of a key log (draft-ietf-tls-keylogfile; SSLKEYLOGFILE): lines `LABEL client_random secret`, the last two in
//! hexadecimal. Gives the secret of a connection by the random of its ClientHello. Never prints one.

use std::fmt;

use hashbrown::HashMap;

use super::schedule::Secret;
use crate::cursor;
use crate::issue::{Issue, Kind};

/// Text beyond this is not read: some 300,000 connections of TLS 1.3.
const MAX_TEXT: usize = 64 << 20;
/// Lines beyond this are not read.
const MAX_LINES: usize = 1_000_000;
/// Master secrets of TLS 1.2 (RFC 5246 8.1).
const MASTER: usize = 48;

const LAYER: &str = "keylog";

/// The random of a ClientHello, by which a connection's secrets are found.
pub(super) type Random = [u8; 32];

/// Which of a connection's secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Label {
    /// TLS 1.2's master secret.
    Master,
    ClientEarly,
    ClientHandshake,
    ServerHandshake,
    ClientTraffic,
    ServerTraffic,
}

/// What a line is for.
enum Use {
    Kept(Label),
    /// A label of the draft or of Wireshark's that opens no record of TLS over TCP.
    Unused,
    /// Encrypted or plain premaster secrets would need the key exchange to be read.
    Premaster,
    Unknown,
}

fn use_of(label: &[u8]) -> Use {
    match label {
        b"CLIENT_RANDOM" => Use::Kept(Label::Master),
        b"CLIENT_EARLY_TRAFFIC_SECRET" => Use::Kept(Label::ClientEarly),
        b"CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Use::Kept(Label::ClientHandshake),
        b"SERVER_HANDSHAKE_TRAFFIC_SECRET" => Use::Kept(Label::ServerHandshake),
        b"CLIENT_TRAFFIC_SECRET_0" => Use::Kept(Label::ClientTraffic),
        b"SERVER_TRAFFIC_SECRET_0" => Use::Kept(Label::ServerTraffic),
        b"EXPORTER_SECRET" | b"EARLY_EXPORTER_SECRET" | b"EARLY_EXPORTER_MASTER_SECRET" => Use::Unused,
        b"ECH_SECRET" | b"ECH_CONFIG" => Use::Unused,
        b"RSA" | b"PMS_CLIENT_RANDOM" => Use::Premaster,
        // of a key update (OpenSSL ends them in N): they follow from the first
        _ if label.starts_with(b"CLIENT_TRAFFIC_SECRET_") => Use::Unused,
        _ if label.starts_with(b"SERVER_TRAFFIC_SECRET_") => Use::Unused,
        _ if label.starts_with(b"QUIC_") => Use::Unused,
        _ => Use::Unknown,
    }
}

/// The secrets of many connections.
#[derive(Default, Clone)]
pub struct KeyLog {
    secrets: HashMap<(Random, Label), Secret, ahash::RandomState>,
    bytes: usize,
    lines: usize,
    full: bool,
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyLog of {} secrets", self.secrets.len())
    }
}

impl KeyLog {
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// How many secrets there are.
    pub fn len(&self) -> usize {
        self.secrets.len()
    }

    /// Adds what `text` holds; what was there before stays. Each line that cannot be used gives an issue.
    pub fn read(&mut self, text: &[u8], mut issue: impl FnMut(Issue)) {
        let before = self.secrets.len();
        let mut usable = false;
        for line in text.split(|byte| *byte == b'\n') {
            self.bytes = self.bytes.saturating_add(line.len() + 1);
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.lines += 1;
            if self.bytes > MAX_TEXT + 1 || self.lines > MAX_LINES {
                if !std::mem::replace(&mut self.full, true) {
                    let reason = "key log is longer than 64 MiB or 1,000,000 lines: the rest is not read";
                    issue(Issue::new(Kind::Skipped, LAYER, reason));
                }
                return;
            }
            match self.line(line) {
                Ok(()) => usable = true,
                Err(reason) => {
                    let place = format!("the first is line {}", self.lines);
                    issue(Issue::new(Kind::Skipped, LAYER, reason).detail(place));
                }
            }
        }
        if !usable && self.secrets.len() == before && self.lines > 0 {
            issue(Issue::new(
                Kind::Skipped,
                LAYER,
                "key log holds no line that can be used",
            ));
        }
    }

    /// Parses one line that is no comment; the reason where it cannot be used.
    fn line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let mut fields = line
            .split(u8::is_ascii_whitespace)
            .filter(|field| !field.is_empty());
        let (label, random, secret) = (fields.next(), fields.next(), fields.next());
        let label = match use_of(label.unwrap_or_default()) {
            Use::Kept(label) => label,
            Use::Unused => return Ok(()),
            Use::Premaster => {
                return Err("lines with premaster secrets are not used, only master secrets are");
            }
            Use::Unknown => return Err("lines are no key log's"),
        };
        let bad = "lines of a key log are malformed";
        let (Some(random), Some(secret), None) = (random, secret, fields.next()) else {
            return Err(bad);
        };
        let random: Random = unhex(random).and_then(|bytes| bytes.try_into().ok()).ok_or(bad)?;
        let secret = unhex(secret).and_then(|bytes| Secret::new(&bytes)).ok_or(bad)?;
        if label == Label::Master && secret.bytes().len() != MASTER {
            return Err(bad);
        }
        self.secrets.insert((random, label), secret);
        Ok(())
    }

    pub(super) fn get(&self, random: &Random, label: Label) -> Option<&Secret> {
        self.secrets.get(&(*random, label))
    }
}

/// Hexadecimal digits to bytes; none for anything else, and for more than the longest secret.
fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || digits.len() > 2 * super::schedule::MAX_SECRET_BYTES {
        return None;
    }
    let value = |at| cursor::u8_at(digits, at).and_then(|digit| char::from(digit).to_digit(16));
    (0..digits.len() / 2)
        .map(|at| Some((value(2 * at)? << 4 | value(2 * at + 1)?) as u8))
        .collect()
}
