//! TLS connections with a key log. The handshake is read from the records as without keys. The decrypted data after it
//! is read by a second `Messages`, as if it were on the wire: a record's first byte belongs to the packet with the
//! record's first byte, the others to the packet that completed it. TLS inside TLS is not decrypted.

use std::sync::Arc;

use smol_str::SmolStr;

use super::super::sink::Sink;
use super::super::{At, Close, Listener, Messages, Outcome, Protocol, Side, Stretch};
use super::{Stage, Tls};
use crate::decrypt::{Connection, KeyLog, Sealed, Taker};

#[derive(Debug, Default)]
pub(super) struct Inside {
    connection: Connection,
    messages: Messages,
    /// Some application data was decrypted.
    has_data: bool,
    /// Decrypted data that `messages` has not read: held until the handshake's end (early data, or a server that sends
    /// before the client's Finished).
    unread: Plaintext,
}

/// Upper bound on the data held before the handshake's end; beyond it the handshake counts as finished.
const MAX_EARLY: usize = 64 << 10;

/// Decrypted data in the order of the records.
#[derive(Debug, Default)]
pub(super) struct Plaintext(Vec<(Side, Part)>);

#[derive(Debug)]
enum Part {
    Plain { begun: At, at: At, bytes: Vec<u8> },
    Missing { at: At, len: u64 },
}

impl Taker for Plaintext {
    fn plain(&mut self, side: Side, begun: At, at: At, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.0.push((side, Part::Plain { begun, at, bytes }));
    }

    fn missing(&mut self, side: Side, at: At, len: u64) {
        self.0.push((side, Part::Missing { at, len }));
    }
}

impl Inside {
    /// The protocol in the decrypted part of the handshake.
    pub(super) fn alpn(&self) -> Option<&SmolStr> {
        self.connection.alpn()
    }

    /// Decrypts the records that this stretch completes; `read` reads the data.
    fn open(&mut self, side: Side, at: At, stretch: Stretch<'_>, keys: &Arc<KeyLog>) {
        match stretch {
            Stretch::Bytes(bytes) => self.connection.bytes(side, at, bytes, keys, &mut self.unread),
            Stretch::Missing(len) => self.connection.missing(side, at, len, &mut self.unread),
        }
        self.has_data |= self.has_unread();
    }

    fn has_unread(&self) -> bool {
        !self.unread.0.is_empty()
    }

    /// Whether too much data is held to wait for the handshake's end.
    fn is_full(&self) -> bool {
        let parts = self.unread.0.iter().map(|(_, part)| match part {
            Part::Plain { bytes, .. } => bytes.len(),
            Part::Missing { .. } => 1,
        });
        parts.sum::<usize>() > MAX_EARLY
    }

    /// Reads the held data.
    pub(super) fn read(&mut self, sink: &mut Sink<'_, impl Listener>) {
        for (side, part) in std::mem::take(&mut self.unread).0 {
            match part {
                Part::Plain { begun, at, bytes } => {
                    let first = usize::from(begun != at && bytes.len() > 1);
                    let (first, rest) = crate::cursor::split(&bytes, first);
                    self.feed(side, begun, Stretch::Bytes(first), sink);
                    self.feed(side, at, Stretch::Bytes(rest), sink);
                }
                Part::Missing { at, len } => self.feed(side, at, Stretch::Missing(len), sink),
            }
        }
    }

    /// Whether bytes of this side were read that no note covers yet.
    fn has_unreported_bytes(&self, side: Side) -> bool {
        self.messages.has_unreported_bytes() || self.has_unread() || self.connection.holds(side)
    }

    fn feed(&mut self, side: Side, at: At, stretch: Stretch<'_>, sink: &mut Sink<'_, impl Listener>) {
        sink.memory().inside_tls = true;
        self.messages.feed(side, at, stretch, sink.listener());
        sink.memory().inside_tls = false;
    }

    /// Ends the decrypted data of `side`.
    pub(super) fn close(&mut self, side: Side, how: Close, sink: &mut Sink<'_, impl Listener>) {
        let at = sink.at();
        self.messages.close(side, at, how, sink.listener());
    }
}

impl Tls {
    /// The protocol of the decrypted data.
    pub(in crate::messages) fn inner_protocol(&self) -> Option<Protocol> {
        self.inside.as_ref().and_then(|inside| inside.messages.protocol())
    }

    /// The server's software, as its decrypted data names it.
    pub(in crate::messages) fn inner_software(&self) -> Option<&str> {
        self.inside.as_ref().and_then(|inside| inside.messages.software())
    }

    /// Whether both hellos were read and the key log has the connection's keys.
    pub(super) fn has_keys(&self) -> bool {
        self.inside
            .as_ref()
            .is_some_and(|inside| inside.connection.keyed())
    }

    /// Decrypts a stretch: reads the handshake from its records, and the decrypted data once the handshake is finished.
    pub(super) fn decrypt<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        stretch: Stretch<'a>,
        mut inside: Box<Inside>,
    ) -> Outcome<'a> {
        let keys = sink.memory().keys.clone().unwrap_or_default();
        inside.open(sink.side(), sink.at(), stretch, &keys);
        if let Some(why) = inside.connection.sealed() {
            return self.stop_decrypting(sink, stretch, why, inside);
        }
        let has_keys = inside.connection.keyed();
        let is_finished = inside.connection.finished() || inside.is_full();
        self.inside = Some(inside);
        self.skips_records |= has_keys && self.stage == Stage::Data;
        if !self.skips_records {
            match self.read_records(sink, stretch) {
                Outcome::All => {}
                lost if !has_keys => return lost,
                _ => self.skips_records = true,
            }
        }
        if is_finished && self.stage != Stage::Data {
            self.end_handshake(sink);
        }
        if let Some(inside) = &mut self.inside {
            let is_over = self.stage == Stage::Data;
            if is_over {
                inside.read(sink);
            }
            for side in Side::BOTH {
                let holds = if is_over {
                    inside.has_unreported_bytes(side)
                } else {
                    inside.has_unread()
                };
                sink.hold(side, holds);
            }
        }
        Outcome::All
    }

    /// Stops decrypting. The stream is read as encrypted records if none were skipped; else the reader is lost.
    #[cold]
    fn stop_decrypting<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        stretch: Stretch<'a>,
        why: Sealed,
        mut inside: Box<Inside>,
    ) -> Outcome<'a> {
        for side in Side::BOTH {
            sink.hold(side, false);
        }
        if !inside.has_data {
            sink.sealed(why);
        }
        if !inside.has_data && !self.skips_records {
            return self.read_records(sink, stretch);
        }
        if self.stage != Stage::Data {
            self.end_handshake(sink);
        }
        inside.read(sink);
        for side in Side::BOTH {
            inside.close(side, Close::CaptureEnd, sink);
        }
        sink.protocol(Protocol::Tls);
        sink.lost(why.reason());
        Outcome::Lost(stretch)
    }
}
