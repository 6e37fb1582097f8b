//! Decryption of a whole stream. Takes its bytes in order and returns them as plaintext. TLS begins with the first
//! ClientHello, which may follow unencrypted bytes (STARTTLS). Handshake messages and alerts are left out.

use std::sync::Arc;

use super::connection::{Connection, Taker};
use super::keylog::KeyLog;
use crate::base::{At, Side};

/// Bytes that one frame added to one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub frame: u64,
    /// Whether the sender of the stream's first segment sent them.
    pub from_first: bool,
    pub data: Vec<u8>,
    /// Number of bytes after `data` that are not in the capture or stay encrypted.
    pub lost: u64,
}

/// The decryption of one stream.
#[derive(Debug)]
pub struct Decryption {
    keys: Arc<KeyLog>,
    tls: Option<Tls>,
    opened: bool,
}

#[derive(Debug)]
struct Tls {
    connection: Connection,
    /// Whether the sender of the stream's first segment is the TLS client.
    first_is_client: bool,
}

/// Collects the plaintext of one call.
struct Collected {
    first_is_client: bool,
    parts: Vec<Part>,
}

impl Taker for Collected {
    fn plain(&mut self, side: Side, _: At, at: At, bytes: &[u8]) {
        self.part(side, at, bytes.to_vec(), 0);
    }

    fn missing(&mut self, side: Side, at: At, len: u64) {
        self.part(side, at, Vec::new(), len);
    }
}

impl Collected {
    fn part(&mut self, side: Side, at: At, data: Vec<u8>, lost: u64) {
        self.parts.push(Part {
            frame: at.frame,
            from_first: (side == Side::Client) == self.first_is_client,
            data,
            lost,
        });
    }
}

impl Decryption {
    pub fn new(keys: Arc<KeyLog>) -> Self {
        Decryption {
            keys,
            tls: None,
            opened: false,
        }
    }

    /// Whether any record was decrypted.
    pub fn opened(&self) -> bool {
        self.opened
    }

    /// Takes the next part of the stream, in the order in which its receiver reads it. Returns its plaintext.
    pub fn feed(&mut self, part: Part) -> Vec<Part> {
        if self.tls.is_none() && is_hello(&part.data) {
            self.tls = Some(Tls {
                connection: Connection::new(),
                first_is_client: part.from_first,
            });
        }
        let Some(Tls {
            connection,
            first_is_client,
        }) = &mut self.tls
        else {
            return vec![part];
        };
        if connection.sealed().is_some() {
            let lost = part.lost + part.data.len() as u64;
            let data = Vec::new();
            return vec![Part { data, lost, ..part }];
        }
        let side = match part.from_first == *first_is_client {
            true => Side::Client,
            false => Side::Server,
        };
        let at = At {
            frame: part.frame,
            time_ns: 0,
        };
        let mut collected = Collected {
            first_is_client: *first_is_client,
            parts: Vec::new(),
        };
        connection.bytes(side, at, &part.data, &self.keys, &mut collected);
        connection.missing(side, at, part.lost, &mut collected);
        self.opened |= collected.parts.iter().any(|part| !part.data.is_empty());
        collected.parts
    }
}

/// Whether `data` begins with a handshake record that holds a ClientHello.
fn is_hello(data: &[u8]) -> bool {
    matches!(data, [22, 3, 0..=4, _, _, 1, 0, _, _, 3, 0..=4, ..])
}
