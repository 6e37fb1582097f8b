//! A whole stream for readers of its plaintext. Takes its bytes in order as they are on the wire, gives them
//! as plain text: TLS from the ClientHello on, wherever that is (STARTTLS). Without its handshake and alerts.

use std::sync::Arc;

use super::connection::{Connection, Taker};
use super::keylog::KeyLog;
use crate::base::{At, Side};

/// What one frame brought of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub frame: u64,
    /// Of whoever sent the stream's first segment.
    pub from_first: bool,
    pub data: Vec<u8>,
    /// So many bytes more are not in the capture, or stay sealed.
    pub lost: u64,
}

#[derive(Debug)]
pub struct Decryption {
    keys: Arc<KeyLog>,
    tls: Option<Tls>,
    opened: bool,
}

#[derive(Debug)]
struct Tls {
    connection: Connection,
    /// Whether whoever sent the stream's first segment is the client.
    first_is_client: bool,
}

/// Keeps the plaintext of one call.
struct Kept {
    first_is_client: bool,
    parts: Vec<Part>,
}

impl Taker for Kept {
    fn plain(&mut self, side: Side, _: At, at: At, bytes: &[u8]) {
        self.part(side, at, bytes.to_vec(), 0);
    }

    fn missing(&mut self, side: Side, at: At, len: u64) {
        self.part(side, at, Vec::new(), len);
    }
}

impl Kept {
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

    /// Anything was opened.
    pub fn opened(&self) -> bool {
        self.opened
    }

    /// The next part of the stream, in the order in which its ends would read it.
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
        let mut kept = Kept {
            first_is_client: *first_is_client,
            parts: Vec::new(),
        };
        connection.bytes(side, at, &part.data, &self.keys, &mut kept);
        connection.missing(side, at, part.lost, &mut kept);
        self.opened |= kept.parts.iter().any(|part| !part.data.is_empty());
        kept.parts
    }
}

/// A handshake record that holds a ClientHello.
fn is_hello(data: &[u8]) -> bool {
    matches!(data, [22, 3, 0..=4, _, _, 1, 0, _, _, 3, 0..=4, ..])
}
