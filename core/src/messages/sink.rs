//! The interface through which readers report messages. Readers count bytes and name what they read; the sink
//! guarantees for all protocols that each `Begin` has exactly one `End` or `Cut` before the next.
//!
//! Protocols that answer in the order of the requests use the sink itself. It has one open message per side, which
//! begins with the first byte counted: `count(18)`, `request(GET, /)`, `end()` reports a request of 18 bytes.
//! Protocols that answer in any order report each exchange by a key (`Sink::exchange`).

mod exchange;

pub(super) use exchange::ExchangeSink;

use super::tags::Tags;
use super::{
    At, BySide, Close, FlowEvent, Kind, Listener, Memory, Note, Protocol, Push, Side, Status, TlsSetup,
};
use crate::decrypt::Sealed;
use smol_str::SmolStr;

/// The open messages of a stream.
#[derive(Debug, Default)]
pub(super) struct Open {
    client: Message,
    server: Message,
    /// Per `Side`, the packet of the first byte that no note covers yet: the next message of the side begins there.
    marks: BySide<Option<At>>,
    /// Whether any reader has named a message of this stream.
    pub(super) is_recognised: bool,
    /// The server's software, as its first message names it.
    pub(super) software: Option<Box<str>>,
}

#[derive(Debug, Default)]
struct Message {
    is_open: bool,
    /// Its request or status line was reported.
    is_named: bool,
    bytes: u64,
    /// The packet of its newest byte.
    last: At,
}

impl Open {
    /// Bytes of the client's open message; `None` where none is open.
    pub(super) fn open_request_bytes(&self) -> Option<u64> {
        self.client.is_open.then_some(self.client.bytes)
    }

    pub(super) fn has_marks(&self) -> bool {
        self.marks != BySide::default()
    }

    pub(super) fn take_mark(&mut self, side: Side) -> Option<At> {
        self.marks[side].take()
    }

    #[inline(always)]
    fn message(&mut self, side: Side) -> &mut Message {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

/// Reports messages of one side (`side`), as of one packet (`at`).
pub(super) struct Sink<'a, L> {
    open: &'a mut Open,
    listener: &'a mut L,
    side: Side,
    at: At,
}

impl<'a, L: Listener> Sink<'a, L> {
    pub(super) fn new(open: &'a mut Open, listener: &'a mut L, side: Side, at: At) -> Self {
        Sink {
            open,
            listener,
            side,
            at,
        }
    }

    /// Reborrows the sink for a function that takes it by value, which lets LLVM keep it in registers.
    #[inline(always)]
    pub(super) fn lend(&mut self) -> Sink<'_, L> {
        Sink {
            open: self.open,
            listener: self.listener,
            ..*self
        }
    }

    pub(super) fn at(&self) -> At {
        self.at
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// Whether a message of this side is open.
    #[inline(always)]
    pub(super) fn is_open(&mut self) -> bool {
        self.message(self.side).is_open
    }

    #[inline(always)]
    pub(super) fn other_is_open(&mut self) -> bool {
        self.message(self.side.other()).is_open
    }

    pub(super) fn memory(&mut self) -> &mut Memory {
        self.listener.memory()
    }

    /// Adds bytes to this side's message. Begins the message, at the mark or else at this packet, if none is open.
    #[inline(always)]
    pub(super) fn count(&mut self, bytes: u64) {
        self.count_for(self.side, self.at, bytes);
    }

    /// `count` for either side, and for an earlier packet.
    #[inline(always)]
    pub(super) fn count_for(&mut self, side: Side, at: At, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let message = self.message(side);
        if message.is_open {
            message.bytes = message.bytes.saturating_add(bytes);
            message.last = at;
        } else {
            let last = at;
            let at = self.open.take_mark(side).unwrap_or(at);
            *self.message(side) = Message {
                is_open: true,
                is_named: false,
                bytes,
                last,
            };
            let other = self.message(side.other());
            let other = other.is_open.then_some((other.last, other.bytes));
            self.listener.note(Note::Begin { side, at, other });
        }
    }

    /// Counts the last bytes of a piece of the body. A piece is an event, a record or a frame where the reader knows
    /// one, else the bytes that one packet brought.
    #[inline(always)]
    pub(super) fn piece(&mut self, bytes: u64) {
        self.count(bytes);
        if self.side == Side::Server {
            self.listener.note(Note::Piece { at: self.at });
        }
    }

    /// Marks this packet as the beginning of the side's next message, unless an earlier one is marked. For readers
    /// that know only after more bytes whether and under which key the message is reported.
    pub(super) fn mark(&mut self) {
        self.open.marks[self.side].get_or_insert(self.at);
    }

    /// Sets or clears the mark of `side`, for a reader that holds bytes of both sides before it reports them.
    pub(super) fn hold(&mut self, side: Side, holds: bool) {
        let mark = &mut self.open.marks[side];
        *mark = holds.then(|| mark.unwrap_or(self.at));
    }

    pub(super) fn flow(&mut self, event: FlowEvent) {
        self.listener.note(Note::Flow(event));
    }

    /// The listener itself, for notes without a function of the sink, and for a second `Messages` inside this stream.
    pub(super) fn listener(&mut self) -> &mut L {
        self.listener
    }

    pub(super) fn sealed(&mut self, why: Sealed) {
        self.listener.note(Note::Sealed { at: self.at, why });
    }

    pub(super) fn dns(&mut self, at: At, message: &[u8]) {
        let side = self.side;
        self.listener.note(Note::Dns { side, at, message });
    }

    pub(super) fn tls_setup(&mut self, setup: &TlsSetup) {
        self.listener.note(Note::TlsSetup { at: self.at, setup });
    }

    /// Drops the mark: the marked bytes get no note.
    pub(super) fn unmark(&mut self) {
        self.open.take_mark(self.side);
    }

    /// The packet of this side's mark, else this packet.
    pub(super) fn marked(&self) -> At {
        self.open.marks[self.side].unwrap_or(self.at)
    }

    /// The exchange with this key. Bytes of the client count for its request, bytes of the server for its answer.
    pub(super) fn exchange(&mut self, key: u64) -> ExchangeSink<'_, 'a, L> {
        ExchangeSink { sink: self, key }
    }

    /// Sets the kind of the client's open message. Call it after `request`.
    pub(super) fn kind(&mut self, kind: Kind) {
        if self.is_open() && self.side == Side::Client {
            self.listener.note(Note::Kind(kind));
        }
    }

    #[inline(always)]
    pub(super) fn host(&mut self, host: &SmolStr) {
        if self.is_open() && self.side == Side::Client {
            self.listener.note(Note::Host(host));
        }
    }

    #[cold]
    pub(super) fn tags(&mut self, tags: &Tags) {
        if self.is_open() {
            let side = self.side;
            self.listener.note(Note::Tags { side, tags });
        }
    }

    pub(super) fn connection_tags(&mut self, tags: &Tags) {
        self.open.is_recognised = true;
        self.listener.note(Note::ConnectionTags(tags));
    }

    /// Sets the status of the server's open message.
    pub(super) fn status(&mut self, status: Status<'_>) {
        if self.side == Side::Server {
            self.server_status(status);
        }
    }

    /// `status`, also while the client's bytes are read: a TLS alert of the client ends the server's message.
    pub(super) fn server_status(&mut self, status: Status<'_>) {
        if self.message(Side::Server).is_open {
            self.open.is_recognised = true;
            self.listener.note(Note::Status(status));
        }
    }

    /// Notes that the server's message is a stream of events.
    pub(super) fn mark_event_stream(&mut self) {
        self.listener.note(Note::IsEventStream);
    }

    /// Reports a push of the server from the mark to this packet.
    pub(super) fn push(&mut self, method: &str, target: &str, bytes: u64) {
        let first = self.open.take_mark(self.side).unwrap_or(self.at);
        self.push_since(first, method, target, bytes, None);
    }

    /// Reports a push that began in the packet `first`: a value that `marked` returned earlier, if other messages lie
    /// between its parts.
    pub(super) fn push_since(
        &mut self,
        first: At,
        method: &str,
        target: &str,
        bytes: u64,
        subscription: Option<u64>,
    ) {
        if self.side == Side::Server {
            self.open.is_recognised = true;
            self.listener.note(Note::Push(Push {
                first,
                last: self.at,
                bytes,
                method,
                target,
                subscription,
            }));
        }
    }

    #[inline(always)]
    pub(super) fn request(&mut self, method: &SmolStr, target: &SmolStr) {
        self.name(Side::Client, Note::Request { method, target });
    }

    #[inline(always)]
    pub(super) fn response(&mut self, status: u16, interim: bool) {
        self.name(Side::Server, Note::Response { status, interim });
    }

    /// Reports that the open request begins a dialogue: both sides send more before its answer ends.
    pub(super) fn dialogue(&mut self) {
        if self.is_open() {
            self.listener.note(Note::Dialogue);
        }
    }

    /// Ends this side's message with the last byte counted.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        self.end_side(self.side);
    }

    /// Ends the other side's message with its last byte, because this side sends.
    pub(super) fn end_other(&mut self) {
        self.end_side(self.side.other());
    }

    /// Ends this side's message with this packet, which has no byte of it (a FIN).
    pub(super) fn end_at_packet(&mut self) {
        self.end_side_at_packet(self.side);
    }

    /// Ends a side's message with this packet, which either side may have sent.
    pub(super) fn end_side_at_packet(&mut self, side: Side) {
        self.message(side).last = self.at;
        self.end_side(side);
    }

    /// Reports that this side's open message, if there is one, stops before its end.
    pub(super) fn cut(&mut self, by: Close) {
        let side = self.side;
        let message = self.open.message(side);
        if std::mem::take(&mut message.is_open) {
            let note = Note::Cut {
                side,
                at: message.last,
                bytes: message.bytes,
                by,
            };
            self.listener.note(note);
        }
    }

    pub(super) fn protocol(&mut self, protocol: Protocol) {
        self.listener.note(Note::Protocol(protocol));
    }

    /// Sets the server's software; the first name stays.
    pub(super) fn software(&mut self, name: Box<str>) {
        self.open.software.get_or_insert(name);
    }

    pub(super) fn lost(&mut self, reason: &'static str) {
        self.listener.note(Note::Lost {
            side: self.side,
            at: self.at,
            reason,
        });
    }

    /// Names the open message of `side`, once, and only while bytes of that side are read.
    #[inline(always)]
    fn name(&mut self, side: Side, note: Note<'_>) {
        if side != self.side {
            return;
        }
        let message = self.message(side);
        if message.is_open && !std::mem::replace(&mut message.is_named, true) {
            self.listener.note(note);
            self.open.is_recognised = true;
        }
    }

    /// Ends a side's message, if one is open, with its last byte counted.
    #[inline(always)]
    pub(super) fn end_side(&mut self, side: Side) {
        let message = self.open.message(side);
        if std::mem::take(&mut message.is_open) {
            let note = Note::End {
                side,
                at: message.last,
                bytes: message.bytes,
            };
            self.listener.note(note);
        }
    }

    #[inline(always)]
    fn message(&mut self, side: Side) -> &mut Message {
        self.open.message(side)
    }
}
