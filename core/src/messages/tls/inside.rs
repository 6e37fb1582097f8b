//! A TLS connection for which there are keys: what programs say inside is read as if it were on the wire, by a second
//! `Messages`. A record's content belongs to the packet that completed it, its first byte to the packet of the record's
//! first. A connection inside this one stays sealed.

use std::sync::Arc;

use smol_str::SmolStr;

use super::super::Messages;
use super::super::sink::MessageSink;
use super::super::{At, Close, Listener, Protocol, Side, Stretch};
use crate::decrypt::{Connection, KeyLog, Sealed, Taker};

#[derive(Debug, Default)]
pub(super) struct Inside {
    connection: Connection,
    messages: Messages,
    /// Programs have spoken.
    spoken: bool,
    /// What they sent before the handshake was over: early data, and a server that does not wait.
    before: Plaintext,
}

/// What programs sent before the handshake is over may be so long; then it counts as over.
const MAX_BEFORE: usize = 64 << 10;

/// Plaintext in the order of the records.
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
    /// Both hellos are read, and there are keys.
    pub(super) fn keyed(&self) -> bool {
        self.connection.keyed()
    }

    /// Both sides have finished their handshake.
    pub(super) fn finished(&self) -> bool {
        self.connection.finished()
    }

    /// The protocol that the server chose under its keys.
    pub(super) fn alpn(&self) -> Option<&SmolStr> {
        self.connection.alpn()
    }

    pub(super) fn sealed(&self) -> Option<Sealed> {
        self.connection.sealed()
    }

    pub(super) fn spoken(&self) -> bool {
        self.spoken
    }

    /// What programs speak, once that is known.
    pub(super) fn protocol(&self) -> Option<Protocol> {
        self.messages.protocol()
    }

    pub(super) fn software(&self) -> Option<&str> {
        self.messages.software()
    }

    /// Opens the records that this stretch completes. What they hold waits for `read`.
    pub(super) fn open(&mut self, side: Side, at: At, stretch: Stretch<'_>, keys: &Arc<KeyLog>) {
        match stretch {
            Stretch::Bytes(bytes) => self.connection.bytes(side, at, bytes, keys, &mut self.before),
            Stretch::Missing(len) => self.connection.missing(side, at, len, &mut self.before),
        }
        self.spoken |= !self.before.0.is_empty();
    }

    /// The plaintext that is held is too much to wait for the handshake's end.
    pub(super) fn is_full(&self) -> bool {
        let parts = self.before.0.iter().map(|(_, part)| match part {
            Part::Plain { bytes, .. } => bytes.len(),
            Part::Missing { .. } => 1,
        });
        parts.sum::<usize>() > MAX_BEFORE
    }

    /// Reads the held plaintext.
    pub(super) fn read(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        for (side, part) in std::mem::take(&mut self.before).0 {
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

    /// Plaintext came before the handshake's end.
    pub(super) fn is_early(&self) -> bool {
        !self.before.0.is_empty()
    }

    /// Bytes of this side were read that no note covers yet.
    pub(super) fn waits(&self, side: Side) -> bool {
        self.messages.has_held_bytes() || !self.before.0.is_empty() || self.connection.holds(side)
    }

    fn feed(&mut self, side: Side, at: At, stretch: Stretch<'_>, sink: &mut MessageSink<'_, impl Listener>) {
        sink.memory().inside = true;
        self.messages.feed(side, at, stretch, sink.listener());
        sink.memory().inside = false;
    }

    /// A side sends no more, or nothing more of it can be opened.
    pub(super) fn close(&mut self, side: Side, how: Close, sink: &mut MessageSink<'_, impl Listener>) {
        let at = sink.at();
        self.messages.close(side, at, how, sink.listener());
    }
}
