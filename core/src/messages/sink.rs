//! Where readers put what they find. Readers only count bytes and name what they saw; that every `Begin` has exactly
//! one `End` or `Cut` before the next is settled here, once for all protocols. Knows no protocol.
//!
//! Protocols that answer in the order of the requests use the sink itself: it has one open message a side, which
//! begins with the first byte that is counted. Protocols that answer in any order name each exchange by a key of
//! their own (`MessageSink::of`).

mod exchange;

pub(super) use exchange::ExchangeSink;

use super::http1::HeadCache;
use super::tags::Tags;
use super::{At, Close, FlowEvent, Kind, Listener, Memory, Note, Protocol, Push, Side, Status, TlsSetup};
use crate::decrypt::Sealed;
use smol_str::SmolStr;

/// The messages that are open now.
#[derive(Debug, Default)]
pub(super) struct Open {
    client: Message,
    server: Message,
    /// By `Side`: where a message may have begun, that no note covers yet.
    marks: [Option<At>; 2],
    /// A start line has been read at some time.
    pub(super) recognised: bool,
    /// What the server calls itself.
    pub(super) software: Option<Box<str>>,
}

#[derive(Debug, Default)]
struct Message {
    open: bool,
    named: bool,
    bytes: u64,
    last: At,
}

impl Open {
    /// Of the client's message that has no end yet.
    pub(super) fn open_request_bytes(&self) -> Option<u64> {
        self.client.open.then_some(self.client.bytes)
    }

    /// A message has begun that no note covers yet.
    pub(super) fn has_marks(&self) -> bool {
        self.marks != [None; 2]
    }

    pub(super) fn take_mark(&mut self, side: Side) -> Option<At> {
        let [client, server] = &mut self.marks;
        match side {
            Side::Client => client.take(),
            Side::Server => server.take(),
        }
    }

    #[inline(always)]
    fn message(&mut self, side: Side) -> &mut Message {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

/// Takes one side's messages, on behalf of one packet.
pub(super) struct MessageSink<'a, L> {
    open: &'a mut Open,
    listener: &'a mut L,
    side: Side,
    at: At,
}

impl<'a, L: Listener> MessageSink<'a, L> {
    pub(super) fn new(open: &'a mut Open, listener: &'a mut L, side: Side, at: At) -> Self {
        MessageSink {
            open,
            listener,
            side,
            at,
        }
    }

    /// For who reads further. Passed by value so that LLVM keeps it in registers.
    #[inline(always)]
    pub(super) fn lend(&mut self) -> MessageSink<'_, L> {
        MessageSink {
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
        self.message(self.side).open
    }

    #[inline(always)]
    pub(super) fn other_is_open(&mut self) -> bool {
        self.message(self.side.other()).open
    }

    pub(super) fn memory(&mut self) -> &mut Memory {
        self.listener.memory()
    }

    /// Heads read before, on any stream.
    pub(super) fn head_cache(&mut self) -> &mut Option<Box<HeadCache>> {
        &mut self.listener.memory().head_cache
    }

    /// So many bytes belong to this side's message, which begins with them if none is open.
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
        if message.open {
            message.bytes = message.bytes.saturating_add(bytes);
            message.last = at;
        } else {
            let last = at;
            let at = self.open.take_mark(side).unwrap_or(at);
            *self.message(side) = Message {
                open: true,
                named: false,
                bytes,
                last,
            };
            let other = self.message(side.other());
            let other = other.open.then_some((other.last, other.bytes));
            self.listener.note(Note::Begin { side, at, other });
        }
    }

    /// `count` of a body's piece that ends with these bytes. What a piece is, the reader decides: an event, a frame,
    /// else what a packet brought.
    #[inline(always)]
    pub(super) fn piece(&mut self, bytes: u64) {
        self.count(bytes);
        if self.side == Side::Server {
            self.listener.note(Note::Piece { at: self.at });
        }
    }

    /// A message begins with this packet's bytes; what it is, the rest of its header will say. What begins next on
    /// this side begins here.
    pub(super) fn mark(&mut self) {
        if let Some(mark) = self.open.marks.get_mut(self.side.index()) {
            mark.get_or_insert(self.at);
        }
    }

    /// Bytes of `side` are held, here or by who reads further, that no note covers yet; or none are.
    pub(super) fn hold(&mut self, side: Side, holds: bool) {
        let at = self.at;
        if let Some(mark) = self.open.marks.get_mut(side.index()) {
            *mark = holds.then(|| mark.unwrap_or(at));
        }
    }

    /// What flow control counts of this side.
    pub(super) fn flow(&mut self, event: FlowEvent) {
        self.listener.note(Note::Flow(event));
    }

    /// For who reads what lies inside this stream's messages, with messages of its own.
    pub(super) fn listener(&mut self) -> &mut L {
        self.listener
    }

    /// What stays sealed, and why.
    pub(super) fn sealed(&mut self, why: Sealed) {
        self.listener.note(Note::Sealed { at: self.at, why });
    }

    /// A whole message of DNS.
    pub(super) fn dns(&mut self, at: At, message: &[u8]) {
        let side = self.side;
        self.listener.note(Note::Dns { side, at, message });
    }

    /// How TLS was set up.
    pub(super) fn secured(&mut self, how: &TlsSetup) {
        self.listener.note(Note::TlsSetup { at: self.at, how });
    }

    /// What was marked is no message that gets a note.
    pub(super) fn unmark(&mut self) {
        self.open.take_mark(self.side);
    }

    /// Where what is marked began; else this packet.
    pub(super) fn marked(&self) -> At {
        let [client, server] = self.open.marks;
        let mark = if self.side == Side::Client { client } else { server };
        mark.unwrap_or(self.at)
    }

    /// The exchange with this key, whichever side speaks. The client's bytes are its request's, the server's its
    /// answer's.
    pub(super) fn exchange(&mut self, key: u64) -> ExchangeSink<'_, 'a, L> {
        ExchangeSink { sink: self, key }
    }

    /// What the client's open message is, where that is no plain request. Say it behind `request`.
    pub(super) fn kind(&mut self, kind: Kind) {
        if self.is_open() && self.side == Side::Client {
            self.listener.note(Note::Kind(kind));
        }
    }

    /// The server's name in the client's open message.
    #[inline(always)]
    pub(super) fn host(&mut self, host: &SmolStr) {
        if self.is_open() && self.side == Side::Client {
            self.listener.note(Note::Host(host));
        }
    }

    /// What the head of this side's open message names beside its request.
    #[cold]
    pub(super) fn tags(&mut self, tags: &Tags) {
        if self.is_open() {
            let side = self.side;
            self.listener.note(Note::Tags { side, tags });
        }
    }

    /// What is true of all requests of this connection from here on.
    pub(super) fn connection_tags(&mut self, tags: &Tags) {
        self.open.recognised = true;
        self.listener.note(Note::ConnectionTags(tags));
    }

    /// How the server's open message ends, in the protocol's own words.
    pub(super) fn status(&mut self, status: Status<'_>) {
        if self.is_open() && self.side == Side::Server {
            self.open.recognised = true;
            self.listener.note(Note::Status(status));
        }
    }

    /// How the server's open message ends, as either side's newest packet shows it.
    pub(super) fn server_status(&mut self, status: Status<'_>) {
        if self.message(Side::Server).open {
            self.open.recognised = true;
            self.listener.note(Note::Status(status));
        }
    }

    /// The pieces of the server's message come when there is something to say.
    pub(super) fn streams(&mut self) {
        self.listener.note(Note::Streams);
    }

    /// A push of the server is whole with this packet: so many bytes since the mark.
    pub(super) fn push(&mut self, method: &str, target: &str, bytes: u64) {
        let first = self.open.take_mark(self.side).unwrap_or(self.at);
        self.push_since(first, method, target, bytes, None);
    }

    /// A push that began with an earlier packet (`marked` gives it), while other messages passed; and the subscription
    /// that it belongs to.
    pub(super) fn push_since(
        &mut self,
        first: At,
        method: &str,
        target: &str,
        bytes: u64,
        subscription: Option<u64>,
    ) {
        if self.side == Side::Server {
            self.open.recognised = true;
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

    /// The open request is the first word of a dialogue: both sides say more before its answer ends.
    pub(super) fn dialogue(&mut self) {
        if self.is_open() {
            self.listener.note(Note::Dialogue);
        }
    }

    /// This side's message ended with the last byte that was counted.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        self.end_side(self.side);
    }

    /// The other side's message ended with its last byte, because this side speaks.
    pub(super) fn end_other(&mut self) {
        self.end_side(self.side.other());
    }

    /// This side's message ends with this packet, which brought no byte of it (a FIN).
    pub(super) fn end_at_packet(&mut self) {
        self.end_side_at_packet(self.side);
    }

    /// A side's message ends with this packet, whoever sent it.
    pub(super) fn end_side_at_packet(&mut self, side: Side) {
        self.message(side).last = self.at;
        self.end_side(side);
    }

    /// This side's message, if one is open, stops before its end.
    pub(super) fn cut(&mut self, by: Close) {
        let side = self.side;
        let message = self.open.message(side);
        if std::mem::take(&mut message.open) {
            let note = Note::Cut {
                side,
                at: message.last,
                bytes: message.bytes,
                by,
            };
            self.listener.note(note);
        }
    }

    /// What is read from here on.
    pub(super) fn protocol(&mut self, protocol: Protocol) {
        self.listener.note(Note::Protocol(protocol));
    }

    /// What the server calls itself; the first name stays.
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

    /// Only a message of the side that speaks, and only once.
    #[inline(always)]
    fn name(&mut self, side: Side, note: Note<'_>) {
        if side != self.side {
            return;
        }
        let message = self.message(side);
        if message.open && !std::mem::replace(&mut message.named, true) {
            self.listener.note(note);
            self.open.recognised = true;
        }
    }

    /// A side's message ended with its last byte.
    #[inline(always)]
    pub(super) fn end_side(&mut self, side: Side) {
        let message = self.open.message(side);
        if std::mem::take(&mut message.open) {
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
