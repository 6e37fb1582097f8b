//! WebSocket (RFC 6455), behind a 101 of HTTP/1 or joined in the middle. Reads both sides' frames, gives the client's
//! messages as requests and the server's as answers or pushes; control frames are neither.
//!
//! The protocol does not pair requests and answers. A message of the server answers the one whose id it repeats. Where
//! ids are not used, it answers the oldest that waits, as long as the server has never pushed; a server that
//! has answers only where a single message waits, and not with what begins as its pushes do. Calls of JSON-RPC say which
//! is which, and either side may ask; what comes for its subscriptions, and for those of GraphQL, is theirs. Where the messages carry
//! another protocol that is known, its reader reads them as one stream (`inner.rs`).

mod frames;
mod id;
mod inner;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{
    BySide, FirstBytes, Guess, Kind, Listener, MessageReader, Outcome, RequestName, Side, Status, Stretch,
};
use frames::{Fit, Frame, Frames, Part};
use id::Members;
use inner::Inner;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::WebSocket,
    sniff,
    begins_message: |side, first| side == Side::Client && frames::chain(side, first),
    begins_inside_turn: frames::chain,
    reader: |_| AnyReader::WebSocket(WebSocket::joined()),
    ..Recognition::NEVER
};

const METHOD: &str = "message";
/// Messages that may wait for their answer; beyond it the oldest is forgotten.
const MAX_WAITING: usize = 128;
/// So much of a message is searched for its id.
const MAX_LOOKED: usize = 4096;
/// Subscriptions that are remembered; beyond it the oldest is forgotten.
const MAX_SUBSCRIPTIONS: usize = 64;
/// Bytes of a push that distinguish it from an answer.
const OPENING: usize = 8;
/// Beginnings of pushes that are remembered.
const MAX_OPENINGS: usize = 4;

#[derive(Debug, Default)]
pub(super) struct WebSocket {
    sides: BySide<Half>,
    /// The client's messages that were not answered, oldest first.
    waiting: VecDeque<PendingCall>,
    /// The key of the client's next message.
    next: u64,
    /// The server has repeated an id.
    by_id: bool,
    /// How the server's messages begin that answered nothing; it has sent some if there are any.
    pushed_openings: Vec<[u8; OPENING]>,
    /// A message of the client may not be in the capture, so its answer seems to answer nothing.
    unsure: bool,
    /// What the messages carry.
    inner: Inner,
    /// They are calls of JSON-RPC.
    is_rpc: bool,
    /// What the server requested, oldest first.
    requested: VecDeque<PendingCall>,
    /// What the messages of a subscription repeat, and the key of the request for it.
    subscriptions: VecDeque<(SmolStr, u64)>,
}

/// Requests of the server have keys of their own.
const BY_SERVER: u64 = 1 << 40;

#[derive(Debug)]
struct PendingCall {
    key: u64,
    id: Option<SmolStr>,
    subscribes: bool,
}

/// One side.
#[derive(Debug, Default)]
struct Half {
    frames: Frames,
    /// The frame whose payload is being read belongs to a message.
    counts: bool,
    message: Option<Message>,
    search: Search,
}

/// Whether it is known where the next frame begins.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Search {
    #[default]
    Found,
    /// Nothing of this side was read: its first bytes were matched before, as far as they came.
    First,
    /// Only with whole frames.
    Lost,
}

/// A message that is being read.
#[derive(Debug, Default)]
struct Message {
    bytes: u64,
    /// Its beginning, as text; empty where it cannot be read.
    text: Vec<u8>,
    readable: bool,
    /// It is not compressed.
    plain: bool,
    /// The frame that is being read is its last.
    last: bool,
}

/// Weak for one side alone: wait for the other's. One of them must end with its packet.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    let other = first.side.other();
    match (
        frames::fit(first.side, first.input),
        frames::fit(other, first.other),
    ) {
        (Fit::No, _) => Guess::No,
        (_, _) if first.other.is_empty() => Guess::NeedsOtherSide,
        (Fit::Whole, Fit::Whole | Fit::Cut) | (Fit::Cut, Fit::Whole) => Guess::Yes,
        _ => Guess::No,
    }
}

impl MessageReader for WebSocket {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        match stretch {
            Stretch::Bytes(bytes) => match self.bytes(&mut sink, bytes) {
                Ok(()) => Outcome::All,
                Err(rest) => Outcome::Lost(Stretch::Bytes(rest)),
            },
            Stretch::Missing(missing) => {
                self.missing(&mut sink, missing);
                Outcome::All
            }
        }
    }

    fn resume(&mut self, _side: Side, _inside: bool) {
        *self = *WebSocket::joined();
    }
}

impl WebSocket {
    /// Behind the answer that switched protocols.
    pub(super) fn upgraded() -> Box<WebSocket> {
        Box::default()
    }

    /// What its messages carry, where that is a protocol of its own.
    pub(super) fn inner_protocol(&self) -> Option<Protocol> {
        self.inner.protocol().or(self.is_rpc.then_some(Protocol::JsonRpc))
    }

    fn joined() -> Box<WebSocket> {
        let mut reader = WebSocket {
            unsure: true,
            ..WebSocket::default()
        };
        (reader.sides.client.search, reader.sides.server.search) = (Search::First, Search::First);
        Box::new(reader)
    }

    /// Reads bytes; the error is the rest that is no WebSocket, after `Lost` has been written.
    fn bytes<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), &'a [u8]> {
        let side = sink.side();
        let half = &mut self.sides[side];
        if half.search != Search::Found {
            let fit = frames::fit(side, bytes);
            if fit == Fit::No || fit == Fit::Cut && half.search == Search::Lost {
                half.search = Search::Lost;
                return Ok(());
            }
            half.search = Search::Found;
        }
        while !bytes.is_empty() {
            let half = &mut self.sides[side];
            let here = bytes;
            if !half.frames.is_inside() && !self.inner.is_known() {
                sink.mark();
            }
            let half = &mut self.sides[side];
            let fits = match half.frames.next(side, &mut bytes) {
                Part::Partly => true,
                Part::Header(frame) => half.begins(frame),
                Part::Payload(piece) => {
                    self.payload(sink, piece);
                    true
                }
                Part::Wrong => false,
            };
            if !fits {
                sink.lost("not a frame of WebSocket");
                return Err(here);
            }
            if !self.sides[side].frames.is_inside() {
                self.frame_ends(sink);
            }
        }
        Ok(())
    }

    /// A piece of a frame's payload.
    fn payload(&mut self, sink: &mut MessageSink<'_, impl Listener>, piece: &[u8]) {
        let side = sink.side();
        let reads = self.inner.reads();
        let half = &mut self.sides[side];
        half.payload(piece);
        if reads && half.counts {
            let plain = half.message.as_ref().is_some_and(|message| message.plain);
            let text: Vec<u8> = half.frames.unmasked(piece).collect();
            self.inner.read(sink, &text, plain);
        }
    }

    fn frame_ends(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        let side = sink.side();
        let known = self.inner.is_known();
        let half = &mut self.sides[side];
        if let Some(message) = half.message.take_if(|message| half.counts && message.last) {
            match side {
                _ if known => return,
                Side::Client => self.asks(sink, &message),
                Side::Server => self.speaks(sink, &message),
            }
        }
        if self.sides[side].message.is_none() && !known {
            sink.unmark();
        }
    }

    /// A message of the client is whole.
    fn asks(&mut self, sink: &mut MessageSink<'_, impl Listener>, message: &Message) {
        let members = self.members(sink, message);
        if members.is_notice() {
            return;
        }
        if members.answers() {
            answered(sink, &mut self.requested, message, &members);
            return;
        }
        let key = self.next_key();
        begin(sink, key, message, &members);
        if let Some(id) = members.id.clone().filter(|_| members.is_graph) {
            return self.subscribed(id, key);
        }
        self.waiting.push_back(PendingCall::of(key, members));
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_front();
        }
    }

    /// A message of the server is whole.
    fn speaks(&mut self, sink: &mut MessageSink<'_, impl Listener>, message: &Message) {
        let members = self.members(sink, message);
        if members.asks() {
            let key = BY_SERVER | self.next_key();
            begin(sink, key, message, &members);
            self.requested.push_back(PendingCall::of(key, members));
            if self.requested.len() > MAX_WAITING {
                self.requested.pop_front();
            }
            return;
        }
        if members.answers() && members.id.is_some() {
            self.by_id = true;
            let call = answered(sink, &mut self.waiting, message, &members);
            if let (Some(call), Some(id)) = (call.filter(|call| call.subscribes), members.subscription) {
                self.subscribed(id, call.key);
            }
            return;
        }
        let about = if members.is_rpc {
            &members.subscription
        } else {
            &members.id
        };
        if let Some((_, key)) = self
            .subscriptions
            .iter()
            .rev()
            .find(|(id, _)| Some(id) == about.as_ref())
        {
            return sink.push_since(sink.marked(), members.method(), "", message.bytes, Some(*key));
        }
        if let Some(answered) = self
            .answered(message, &members)
            .and_then(|place| self.waiting.remove(place))
        {
            let mut exchange = sink.exchange(answered.key);
            exchange.begin_answer();
            exchange.count(message.bytes);
            return exchange.end_answer();
        }
        if self.waiting.is_empty() && !self.by_id {
            if std::mem::take(&mut self.unsure) {
                return;
            }
            let opening = message.opening();
            if !self.pushed_openings.contains(&opening) && self.pushed_openings.len() < MAX_OPENINGS {
                self.pushed_openings.push(opening);
            }
        }
        sink.push(members.method(), "", message.bytes);
    }

    /// What a message's members say; from the first one of JSON-RPC on the connection is read so.
    fn members(&mut self, sink: &mut MessageSink<'_, impl Listener>, message: &Message) -> Members {
        let members = id::of(&message.text);
        if members.is_rpc && !std::mem::replace(&mut self.is_rpc, true) {
            sink.protocol(Protocol::JsonRpc);
        }
        members
    }

    /// What comes for this subscription will repeat this.
    fn subscribed(&mut self, id: SmolStr, key: u64) {
        if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            self.subscriptions.pop_front();
        }
        self.subscriptions.push_back((id, key));
    }

    fn next_key(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Which of the client's messages this one answers.
    fn answered(&mut self, message: &Message, members: &Members) -> Option<usize> {
        let same = |waiting: &PendingCall| waiting.id.is_some() && waiting.id == members.id;
        if let Some(place) = self.waiting.iter().position(same) {
            self.by_id = true;
            return Some(place);
        }
        let alone = self.waiting.len() == 1;
        let pushed = message.readable && self.pushed_openings.contains(&message.opening());
        let sure = self.pushed_openings.is_empty() || alone && !pushed;
        (!self.by_id && !members.is_notice() && !self.waiting.is_empty() && sure).then_some(0)
    }

    /// So many bytes are not in the capture.
    fn missing(&mut self, sink: &mut MessageSink<'_, impl Listener>, missing: u64) {
        let side = sink.side();
        let half = &mut self.sides[side];
        if half.counts || !half.frames.is_inside() {
            self.inner.missing(sink, missing);
        }
        let half = &mut self.sides[side];
        let searching = half.search != Search::Found;
        if searching || half.frames.skip(missing) {
            if let Some(message) = half.message.as_mut().filter(|_| half.counts) {
                message.bytes += missing;
                (message.readable, message.text) = (false, Vec::new());
            }
            if !searching && !half.frames.is_inside() {
                self.frame_ends(sink);
            }
            return;
        }
        *half = Half {
            search: Search::Lost,
            ..Half::default()
        };
        sink.unmark();
        match side {
            Side::Client => self.unsure = true,
            // the answer of some may be in the hole
            Side::Server => self.waiting.retain(|waiting| waiting.id.is_some()),
        }
    }
}

impl PendingCall {
    fn of(key: u64, members: Members) -> PendingCall {
        PendingCall {
            key,
            id: members.id,
            subscribes: members.is_rpc && members.subscribes,
        }
    }
}

impl Members {
    /// Calls of JSON-RPC have a method and an id.
    fn asks(&self) -> bool {
        self.is_rpc && self.method.is_some() && self.id.is_some()
    }

    /// Without an id nobody answers them.
    fn is_notice(&self) -> bool {
        self.is_rpc && self.method.is_some() && self.id.is_none() && self.whole
    }

    fn answers(&self) -> bool {
        self.is_rpc && self.method.is_none()
    }

    fn method(&self) -> &str {
        self.method.as_deref().filter(|_| self.is_rpc).unwrap_or(METHOD)
    }
}

/// A request is whole.
fn begin(sink: &mut MessageSink<'_, impl Listener>, key: u64, message: &Message, members: &Members) {
    let mut exchange = sink.exchange(key);
    exchange.begin_request(Kind::Request);
    exchange.name(RequestName {
        method: members.method(),
        ..RequestName::default()
    });
    exchange.count(message.bytes);
    if members.is_graph || members.is_rpc && members.subscribes {
        exchange.subscribes(key);
    }
    if members.is_graph && members.id.is_some() {
        exchange.end_unanswered();
    } else {
        exchange.end_request();
    }
}

/// An answer of JSON-RPC is whole: of what waits with its id, if anything does, which is given.
fn answered(
    sink: &mut MessageSink<'_, impl Listener>,
    waiting: &mut VecDeque<PendingCall>,
    message: &Message,
    members: &Members,
) -> Option<PendingCall> {
    let place = waiting.iter().position(|waiting| waiting.id == members.id)?;
    let waited = waiting.remove(place)?;
    let mut exchange = sink.exchange(waited.key);
    exchange.begin_answer();
    exchange.status(Status {
        code: None,
        text: Some(members.error.as_deref().unwrap_or("ok")),
        error: members.error.is_some(),
    });
    exchange.count(message.bytes);
    exchange.end_answer();
    Some(waited)
}

impl Half {
    /// A frame's header is read: whether it may stand here.
    fn begins(&mut self, frame: Frame) -> bool {
        self.counts = !frame.is_control();
        if frame.is_control() {
            return true;
        }
        let goes_on = frame.opcode == frames::CONTINUATION;
        if goes_on != self.message.is_some() {
            return false;
        }
        let message = self.message.get_or_insert_with(|| Message {
            readable: frame.opcode == frames::TEXT && !frame.compressed,
            plain: !frame.compressed,
            ..Message::default()
        });
        message.bytes += frame.header;
        message.last = frame.fin;
        true
    }

    fn payload(&mut self, piece: &[u8]) {
        let Some(message) = self.message.as_mut().filter(|_| self.counts) else {
            return;
        };
        message.bytes += piece.len() as u64;
        if message.readable {
            let room = MAX_LOOKED.saturating_sub(message.text.len());
            message.text.extend(self.frames.unmasked(piece).take(room));
        }
    }
}

impl Message {
    fn opening(&self) -> [u8; OPENING] {
        let mut opening = [0; OPENING];
        opening
            .iter_mut()
            .zip(&self.text)
            .for_each(|(slot, byte)| *slot = *byte);
        opening
    }
}
