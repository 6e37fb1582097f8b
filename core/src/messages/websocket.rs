//! WebSocket (RFC 6455), after a 101 of HTTP/1 or in mid-stream. A message is one frame or several. Messages of the
//! client are requests, messages of the server are answers or pushes; control frames are neither.
//!
//! The protocol does not pair requests and answers. They are paired in this order:
//!
//! 1. Another protocol inside the messages (MQTT, STOMP) is read by its own reader, as one stream (`inner.rs`).
//! 2. JSON-RPC marks requests, answers and notifications, and either side may send requests. Messages of its
//!    subscriptions, and of GraphQL's, are pushes.
//! 3. A message of the server answers the request whose id it repeats (`id.rs`).
//! 4. Without ids it answers the oldest unanswered request, as long as the server has never sent a push.
//! 5. After a push it does so only if one request alone is unanswered, and if it does not begin like a push.

mod frames;
mod id;
mod inner;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::pending_queue::{push_dropping_oldest, take_first};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, FirstBytes, Guess, Kind, Listener, MessageReader, Outcome, Side, Status, Stretch};
use frames::{Fit, Frame, Frames, Part};
use id::Members;
use inner::Inner;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::WebSocket,
    sniff,
    begins_message: |side, first| side == Side::Client && frames::are_whole_frames(side, first),
    begins_inside_turn: frames::are_whole_frames,
    reader: |_| AnyReader::WebSocket(WebSocket::joined()),
    ..Recognition::NEVER
};

const METHOD: &str = "message";
/// The bit that distinguishes keys of the server's requests from those of the client's.
const BY_SERVER: u64 = 1 << 40;
/// Upper bound on unanswered requests; beyond it the oldest is dropped.
const MAX_WAITING: usize = 128;
/// Upper bound on the bytes of a message that are searched for its id.
const MAX_LOOKED: usize = 4096;
/// Upper bound on subscriptions; beyond it the oldest is dropped.
const MAX_SUBSCRIPTIONS: usize = 64;
/// Bytes at the beginning of a push by which it is distinguished from an answer.
const OPENING: usize = 8;
/// Upper bound on the beginnings of pushes that are kept.
const MAX_OPENINGS: usize = 4;

#[derive(Debug, Default)]
pub(super) struct WebSocket {
    sides: BySide<Half>,
    /// The client's unanswered requests, oldest first.
    waiting: VecDeque<PendingCall>,
    /// The next request's key.
    next: u64,
    /// The server has repeated an id, so all its answers do.
    are_answers_by_id: bool,
    /// The beginnings of the server's pushes; not empty once it has sent one.
    pushed_openings: Vec<[u8; OPENING]>,
    /// A request may be missing from the capture, so a message that seems to be a push may be its answer.
    may_lack_request: bool,
    /// The protocol inside the messages.
    inner: Inner,
    /// The messages are JSON-RPC.
    is_rpc: bool,
    /// The server's unanswered requests, oldest first.
    requested: VecDeque<PendingCall>,
    /// The id that the messages of a subscription repeat, and the key of the request for it.
    subscriptions: VecDeque<(SmolStr, u64)>,
}

#[derive(Debug)]
struct PendingCall {
    key: u64,
    id: Option<SmolStr>,
    subscribes: bool,
}

/// Per-direction state.
#[derive(Debug, Default)]
struct Half {
    frames: Frames,
    /// The current frame is of a message, not a control frame.
    is_data: bool,
    message: Option<Message>,
    search: Search,
}

/// Whether it is known where the next frame begins.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Search {
    #[default]
    Found,
    /// Nothing of this side was read. `sniff` has compared its first bytes, so an incomplete frame is accepted.
    First,
    /// Unknown: only whole frames are accepted.
    Lost,
}

/// A message that is being read.
#[derive(Debug)]
struct Message {
    bytes: u64,
    content: Content,
    /// The beginning of its text; empty unless the content is `Text`.
    text: Vec<u8>,
    /// The current frame is its last.
    is_last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Text that is not compressed, without a hole.
    Text,
    /// Neither compressed nor text, or with a hole.
    Other,
    Compressed,
}

/// Requires frames on both sides, because those of one side prove little. One of them must be whole frames.
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
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        match stretch {
            Stretch::Bytes(bytes) => match self.read_bytes(&mut sink, bytes) {
                Ok(()) => Outcome::All,
                Err(rest) => Outcome::Lost(Stretch::Bytes(rest)),
            },
            Stretch::Missing(missing) => {
                self.skip_hole(&mut sink, missing);
                Outcome::All
            }
        }
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        *self = *WebSocket::joined();
    }
}

impl WebSocket {
    /// The reader after a 101.
    pub(super) fn upgraded() -> Box<WebSocket> {
        Box::default()
    }

    /// The protocol inside the messages, if it is known.
    pub(super) fn inner_protocol(&self) -> Option<Protocol> {
        self.inner.protocol().or(self.is_rpc.then_some(Protocol::JsonRpc))
    }

    /// The reader in mid-stream.
    fn joined() -> Box<WebSocket> {
        let mut reader = WebSocket {
            may_lack_request: true,
            ..WebSocket::default()
        };
        (reader.sides.client.search, reader.sides.server.search) = (Search::First, Search::First);
        Box::new(reader)
    }

    /// Reads bytes. The error is the rest that is not WebSocket, after `Lost` was noted.
    fn read_bytes<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
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
            let unread = bytes;
            if !half.frames.is_inside() && !self.inner.is_known() {
                sink.mark();
            }
            let half = &mut self.sides[side];
            let fits = match half.frames.next(side, &mut bytes) {
                Part::Partly => true,
                Part::Header(frame) => half.begin_frame(frame),
                Part::Payload(piece) => {
                    self.read_payload(sink, piece);
                    true
                }
                Part::Wrong => false,
            };
            if !fits {
                sink.lost("not a frame of WebSocket");
                return Err(unread);
            }
            if !self.sides[side].frames.is_inside() {
                self.end_frame(sink);
            }
        }
        Ok(())
    }

    /// Takes a piece of a frame's payload.
    fn read_payload(&mut self, sink: &mut Sink<'_, impl Listener>, piece: &[u8]) {
        let side = sink.side();
        let needs_payload = self.inner.needs_payload();
        let half = &mut self.sides[side];
        half.read_payload(piece);
        if needs_payload && half.is_data {
            let message = half.message.as_ref();
            let is_plain = message.is_some_and(|message| message.content != Content::Compressed);
            let text: Vec<u8> = half.frames.unmasked(piece).collect();
            self.inner.read(sink, &text, is_plain);
        }
    }

    fn end_frame(&mut self, sink: &mut Sink<'_, impl Listener>) {
        let side = sink.side();
        let is_known = self.inner.is_known();
        let half = &mut self.sides[side];
        if let Some(message) = half.message.take_if(|message| half.is_data && message.is_last) {
            match side {
                _ if is_known => return,
                Side::Client => self.read_client_message(sink, &message),
                Side::Server => self.read_server_message(sink, &message),
            }
        }
        if self.sides[side].message.is_none() && !is_known {
            sink.unmark();
        }
    }

    /// Reports a whole message of the client.
    fn read_client_message(&mut self, sink: &mut Sink<'_, impl Listener>, message: &Message) {
        let members = self.read_members(sink, message);
        if members.is_notification() {
            return;
        }
        if members.is_answer() {
            report_answer(sink, &mut self.requested, message, &members);
            return;
        }
        let key = self.next_key();
        report_request(sink, key, message, &members);
        if members.is_graphql_subscription
            && let Some(id) = members.id
        {
            return self.add_subscription(id, key);
        }
        push_dropping_oldest(&mut self.waiting, MAX_WAITING, PendingCall::new(key, members));
    }

    /// Reports a whole message of the server, in the order of the list at the top of this file.
    fn read_server_message(&mut self, sink: &mut Sink<'_, impl Listener>, message: &Message) {
        let members = self.read_members(sink, message);
        if members.is_request() {
            let key = BY_SERVER | self.next_key();
            report_request(sink, key, message, &members);
            push_dropping_oldest(&mut self.requested, MAX_WAITING, PendingCall::new(key, members));
            return;
        }
        if members.is_answer() && members.id.is_some() {
            self.are_answers_by_id = true;
            let call = report_answer(sink, &mut self.waiting, message, &members);
            if let (Some(call), Some(id)) = (call.filter(|call| call.subscribes), members.subscription) {
                self.add_subscription(id, call.key);
            }
            return;
        }
        let subscription = if members.is_rpc {
            &members.subscription
        } else {
            &members.id
        };
        if let Some((_, key)) = self
            .subscriptions
            .iter()
            .rev()
            .find(|(id, _)| Some(id) == subscription.as_ref())
        {
            return sink.push_since(sink.marked(), members.method(), "", message.bytes, Some(*key));
        }
        if let Some(request) = self
            .answered_request(message, &members)
            .and_then(|index| self.waiting.remove(index))
        {
            let mut exchange = sink.exchange(request.key);
            exchange.begin_answer();
            exchange.count(message.bytes);
            return exchange.end_answer();
        }
        if self.waiting.is_empty() && !self.are_answers_by_id {
            if std::mem::take(&mut self.may_lack_request) {
                return;
            }
            let opening = message.opening();
            if !self.pushed_openings.contains(&opening) && self.pushed_openings.len() < MAX_OPENINGS {
                self.pushed_openings.push(opening);
            }
        }
        sink.push(members.method(), "", message.bytes);
    }

    /// Parses a message's members. The first message of JSON-RPC makes it the protocol of the connection.
    fn read_members(&mut self, sink: &mut Sink<'_, impl Listener>, message: &Message) -> Members {
        let members = Members::parse(&message.text);
        if members.is_rpc && !std::mem::replace(&mut self.is_rpc, true) {
            sink.protocol(Protocol::JsonRpc);
        }
        members
    }

    /// Adds a subscription, whose messages will repeat the id.
    fn add_subscription(&mut self, id: SmolStr, key: u64) {
        push_dropping_oldest(&mut self.subscriptions, MAX_SUBSCRIPTIONS, (id, key));
    }

    fn next_key(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns the index in `waiting` of the request that the server's message answers.
    fn answered_request(&mut self, message: &Message, members: &Members) -> Option<usize> {
        let same_id = |waiting: &PendingCall| waiting.id.is_some() && waiting.id == members.id;
        if let Some(index) = self.waiting.iter().position(same_id) {
            self.are_answers_by_id = true;
            return Some(index);
        }
        let is_only_one = self.waiting.len() == 1;
        let begins_like_push =
            message.content == Content::Text && self.pushed_openings.contains(&message.opening());
        let is_sure = self.pushed_openings.is_empty() || is_only_one && !begins_like_push;
        (!self.are_answers_by_id && !members.is_notification() && !self.waiting.is_empty() && is_sure)
            .then_some(0)
    }

    /// Passes over a hole.
    fn skip_hole(&mut self, sink: &mut Sink<'_, impl Listener>, missing: u64) {
        let side = sink.side();
        let half = &mut self.sides[side];
        if half.is_data || !half.frames.is_inside() {
            self.inner.skip_hole(sink, missing);
        }
        let half = &mut self.sides[side];
        let is_searching = half.search != Search::Found;
        if is_searching || half.frames.skip(missing) {
            if let Some(message) = &mut half.message
                && half.is_data
            {
                message.bytes += missing;
                if message.content == Content::Text {
                    (message.content, message.text) = (Content::Other, Vec::new());
                }
            }
            if !is_searching && !half.frames.is_inside() {
                self.end_frame(sink);
            }
            return;
        }
        *half = Half {
            search: Search::Lost,
            ..Half::default()
        };
        sink.unmark();
        match side {
            Side::Client => self.may_lack_request = true,
            // answers may be in the hole, and only ids still pair the others
            Side::Server => self.waiting.retain(|waiting| waiting.id.is_some()),
        }
    }
}

impl PendingCall {
    fn new(key: u64, members: Members) -> PendingCall {
        PendingCall {
            key,
            id: members.id,
            subscribes: members.is_rpc && members.subscribes,
        }
    }
}

impl Members {
    /// Whether this is a request of JSON-RPC: a method and an id.
    fn is_request(&self) -> bool {
        self.is_rpc && self.method.is_some() && self.id.is_some()
    }

    /// Whether this is a notification of JSON-RPC: a method without an id, which gets no answer.
    fn is_notification(&self) -> bool {
        self.is_rpc && self.method.is_some() && self.id.is_none() && self.is_whole
    }

    fn is_answer(&self) -> bool {
        self.is_rpc && self.method.is_none()
    }

    fn method(&self) -> &str {
        self.method.as_deref().filter(|_| self.is_rpc).unwrap_or(METHOD)
    }
}

/// Reports a whole request.
fn report_request(sink: &mut Sink<'_, impl Listener>, key: u64, message: &Message, members: &Members) {
    let mut exchange = sink.exchange(key);
    exchange.request(Kind::Request, members.method(), "");
    exchange.count(message.bytes);
    if members.is_graphql_subscription || members.is_rpc && members.subscribes {
        exchange.subscribes(key);
    }
    if members.is_graphql_subscription && members.id.is_some() {
        exchange.end_unanswered();
    } else {
        exchange.end_request();
    }
}

/// Reports a whole answer of JSON-RPC, and removes and returns the request with its id. `None` if there is no such
/// request.
fn report_answer(
    sink: &mut Sink<'_, impl Listener>,
    waiting: &mut VecDeque<PendingCall>,
    message: &Message,
    members: &Members,
) -> Option<PendingCall> {
    let request = take_first(waiting, |call| call.id == members.id)?;
    let mut exchange = sink.exchange(request.key);
    exchange.answer(Status::ok_unless(members.error.as_deref()));
    exchange.count(message.bytes);
    exchange.end_answer();
    Some(request)
}

impl Half {
    /// Takes a frame's header. Returns false if the frame is not allowed after the frames before it.
    fn begin_frame(&mut self, frame: Frame) -> bool {
        self.is_data = !frame.is_control();
        if frame.is_control() {
            return true;
        }
        let continues = frame.opcode == frames::CONTINUATION;
        if continues != self.message.is_some() {
            return false;
        }
        let message = self.message.get_or_insert_with(|| Message {
            bytes: 0,
            content: match frame.opcode {
                _ if frame.is_compressed => Content::Compressed,
                frames::TEXT => Content::Text,
                _ => Content::Other,
            },
            text: Vec::new(),
            is_last: false,
        });
        message.bytes += frame.header;
        message.is_last = frame.is_final;
        true
    }

    fn read_payload(&mut self, piece: &[u8]) {
        if let Some(message) = &mut self.message
            && self.is_data
        {
            message.bytes += piece.len() as u64;
            if message.content == Content::Text {
                let room = MAX_LOOKED.saturating_sub(message.text.len());
                message.text.extend(self.frames.unmasked(piece).take(room));
            }
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
