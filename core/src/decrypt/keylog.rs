//! Key logs (draft-ietf-tls-keylogfile; SSLKEYLOGFILE): text with lines `LABEL client_random secret`, the last two in
//! hexadecimal. A connection's secrets are found by the random of its ClientHello.

use std::fmt;

use hashbrown::HashMap;

use super::schedule::Secret;
use crate::cursor;
use crate::issue::{Issue, Kind};

/// Upper bound on the text that is read: some 300,000 connections of TLS 1.3.
const MAX_TEXT_BYTES: usize = 64 << 20;
/// Upper bound on the lines that are read.
const MAX_LINES: usize = 1_000_000;
/// Length of a master secret of TLS 1.2 (RFC 5246 8.1).
const MASTER_SECRET_BYTES: usize = 48;

const LAYER: &str = "keylog";

/// The random of a ClientHello, by which a connection's secrets are found.
pub(super) type Random = [u8; 32];

/// The secrets of a connection that are used.
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

/// The kind of a line, by its label.
enum Use {
    Kept(Label),
    /// A label of the draft or of Wireshark that no record of TLS over TCP needs.
    Unused,
    /// A premaster secret, which would require reading the key exchange.
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
        // secrets after a KeyUpdate (OpenSSL ends the label in N) are derived from the first
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
    is_full: bool,
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

    /// Number of secrets.
    pub fn len(&self) -> usize {
        self.secrets.len()
    }

    /// Adds the secrets in `text`. Each line that cannot be used is an issue.
    pub fn read(&mut self, text: &[u8], mut issue: impl FnMut(Issue)) {
        let before = self.secrets.len();
        let mut has_usable_line = false;
        for line in text.split(|byte| *byte == b'\n') {
            self.bytes = self.bytes.saturating_add(line.len() + 1);
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.lines += 1;
            if self.bytes > MAX_TEXT_BYTES + 1 || self.lines > MAX_LINES {
                if !std::mem::replace(&mut self.is_full, true) {
                    let reason = "key log is longer than 64 MiB or 1,000,000 lines: the rest is not read";
                    issue(Issue::new(Kind::Skipped, LAYER, reason));
                }
                return;
            }
            match self.read_line(line) {
                Ok(()) => has_usable_line = true,
                Err(reason) => {
                    let detail = format!("the first is line {}", self.lines);
                    issue(Issue::new(Kind::Skipped, LAYER, reason).detail(detail));
                }
            }
        }
        if !has_usable_line && self.secrets.len() == before && self.lines > 0 {
            let reason = "key log holds no line that can be used";
            issue(Issue::new(Kind::Skipped, LAYER, reason));
        }
    }

    /// Reads a line that is not a comment. Returns the reason if it cannot be used.
    fn read_line(&mut self, line: &[u8]) -> Result<(), &'static str> {
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
        let malformed = "lines of a key log are malformed";
        let (Some(random), Some(secret), None) = (random, secret, fields.next()) else {
            return Err(malformed);
        };
        let random: Random = unhex(random)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(malformed)?;
        let secret = unhex(secret)
            .and_then(|bytes| Secret::new(&bytes))
            .ok_or(malformed)?;
        if label == Label::Master && secret.bytes().len() != MASTER_SECRET_BYTES {
            return Err(malformed);
        }
        self.secrets.insert((random, label), secret);
        Ok(())
    }

    pub(super) fn get(&self, random: &Random, label: Label) -> Option<&Secret> {
        self.secrets.get(&(*random, label))
    }
}

/// Decodes hexadecimal digits. `None` for other characters, and for more digits than the longest secret has.
fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || digits.len() > 2 * super::schedule::MAX_SECRET_BYTES {
        return None;
    }
    let value = |at| cursor::u8_at(digits, at).and_then(|digit| char::from(digit).to_digit(16));
    (0..digits.len() / 2)
        .map(|at| Some((value(2 * at)? << 4 | value(2 * at + 1)?) as u8))
        .collect()
}
