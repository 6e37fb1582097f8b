//! STOMP 1.0 to 1.2 (stomp.github.io). A frame is a command, headers, an empty line, a body and a zero byte; the body's
//! length may be in a header. One exchange is a connect and `CONNECTED`, or a frame with a `receipt` header and its
//! `RECEIPT`; a `SUBSCRIBE` without one has no response. What the broker delivers is a push, of the subscription that
//! it names. Line ends between frames are heart-beats, and bodies are not read.

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::pending_queue::push_dropping_oldest;
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{
    BySide, FirstBytes, Guess, Kind, Listener, MessageReader, Outcome, RequestName, Side, Status, Stretch,
    text,
};
use crate::cursor;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Stomp,
    sniff,
    begins_message: |side, first| side == Side::Client && begins(side, first) == Some(true),
    begins_inside_turn: |side, first| begins(side, first) == Some(true),
    reader: |_| AnyReader::Stomp(Box::default()),
    ..Recognition::NEVER
};

/// Upper bound on a frame's head; most have some hundred bytes.
const MAX_HEAD: usize = 16 << 10;
/// Upper bound on requests without a receipt, and on subscriptions; beyond it the oldest is dropped.
const MAX_WAITING: usize = 1024;
/// Key of the connect; those of other requests are higher.
const CONNECT: u64 = 0;

#[rustfmt::skip]
const CLIENT: [&str; 11] = [
    "CONNECT", "STOMP", "SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT",
    "DISCONNECT",
];
const SERVER: [&str; 4] = ["CONNECTED", "MESSAGE", "RECEIPT", "ERROR"];

#[derive(Debug, Default)]
pub(super) struct Stomp {
    sides: BySide<Half>,
    /// Requests without a receipt, oldest first: the receipt's id and the key.
    waiting: VecDeque<(Box<[u8]>, u64)>,
    /// Subscriptions, oldest first: the client's id and the key.
    subscriptions: VecDeque<(Box<[u8]>, u64)>,
    /// Key of the newest request.
    newest: u64,
    /// The connect was sent and not answered.
    is_connecting: bool,
}

/// Per-direction state of the reader.
#[derive(Debug, Default)]
struct Half {
    /// The head that is being read.
    head: Vec<u8>,
    /// The frame whose body is being read.
    frame: Option<Frame>,
}

/// A frame whose head was read.
#[derive(Debug)]
struct Frame {
    role: Role,
    /// Bytes still to come, with the zero byte. None: unknown, the body ends at a zero byte.
    remaining: Option<u64>,
    /// Bytes read, with the head.
    bytes: u64,
}

#[derive(Debug)]
enum Role {
    Ignored,
    Request(u64),
    Answer(u64),
    Unanswered(u64),
    Push(&'static str, SmolStr, Option<u64>),
}

/// Whether these bytes begin a frame of this side. None: too few bytes.
fn begins(side: Side, input: &[u8]) -> Option<bool> {
    match side {
        Side::Client => begins_with(&CLIENT, input),
        Side::Server => begins_with(&SERVER, input),
    }
}

fn begins_with(commands: &[&str], input: &[u8]) -> Option<bool> {
    let mut partly = false;
    for command in commands {
        let common = command.len().min(input.len());
        if input.get(..common) != command.as_bytes().get(..common) {
            continue;
        }
        let after = cursor::from(input, command.len());
        match after.strip_prefix(b"\r").unwrap_or(after) {
            [b'\n', next, ..] => return Some(next.is_ascii_lowercase() || matches!(next, b'\r' | b'\n')),
            [] | [b'\n'] => partly = true,
            _ => {}
        }
    }
    if partly { None } else { Some(false) }
}

/// A connect is proof enough; with other frames both sides have to fit.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    match begins(first.side, first.input) {
        Some(false) => Guess::No,
        None => Guess::More,
        Some(true) if first.side == Side::Client && is_connect(first.input) == Some(true) => Guess::Yes,
        Some(true) if first.other.is_empty() => Guess::NeedsOtherSide,
        Some(true) if begins(first.side.other(), first.other) == Some(true) => Guess::Yes,
        Some(true) => Guess::No,
    }
}

/// Whether a client's first bytes are a connect; also used inside WebSocket. None: too few bytes.
pub(super) fn is_connect(input: &[u8]) -> Option<bool> {
    begins_with(&["CONNECT", "STOMP"], input)
}

/// Returns the value of the first header of this name; repeated ones are ignored (1.2, "Repeated Header Entries").
fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        line.strip_prefix(name)?.strip_prefix(b":")
    })
}

/// Whether a head ends with its blank line.
fn is_whole(head: &[u8]) -> bool {
    head.ends_with(b"\n\n") || head.ends_with(b"\n\r\n")
}

impl MessageReader for Stomp {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let side = sink.side();
        match stretch {
            Stretch::Bytes(mut bytes) => {
                while !bytes.is_empty() {
                    let before = bytes;
                    if self.sides[side].frame.is_some() {
                        self.read_body(&mut sink, &mut bytes);
                    } else if !self.read_head(&mut sink, &mut bytes) {
                        sink.lost("not a frame of STOMP");
                        return Outcome::Lost(Stretch::Bytes(before));
                    }
                }
                Outcome::All
            }
            Stretch::Missing(missing) => {
                let frame = self.sides[side].frame.as_mut();
                if let Some(frame) =
                    frame.filter(|frame| frame.remaining.is_some_and(|remaining| missing < remaining))
                {
                    frame.remaining = frame.remaining.map(|remaining| remaining - missing);
                    self.count(&mut sink, missing);
                    return Outcome::All;
                }
                sink.lost("a frame's beginning is not in the capture");
                Outcome::Lost(stretch)
            }
        }
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        self.sides = BySide::default();
        self.is_connecting = false;
        self.waiting.clear();
    }
}

impl Stomp {
    /// Reads a frame's head. Returns false if the bytes are not a frame.
    fn read_head(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: &mut &[u8]) -> bool {
        let side = sink.side();
        let half = &mut self.sides[side];
        if half.head.is_empty() {
            let beats = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
            let beats = beats.count();
            *bytes = cursor::from(bytes, beats);
            if bytes.is_empty() {
                return true;
            }
        }
        sink.mark();
        while !is_whole(&half.head) {
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
            if end == 0 {
                return begins(side, &half.head) != Some(false);
            }
            let (line, rest) = cursor::split(bytes, end);
            half.head.extend_from_slice(line);
            *bytes = rest;
            if half.head.len() > MAX_HEAD || begins(side, &half.head) == Some(false) {
                return false;
            }
        }
        let head = std::mem::take(&mut half.head);
        let length =
            header(&head, b"content-length").map(|value| std::str::from_utf8(value).ok()?.parse().ok());
        let remaining = match length {
            Some(None) => return false,
            Some(Some(length)) => Some(u64::saturating_add(length, 1)),
            None => None,
        };
        let role = self.begin_frame(sink, &head);
        let frame = Frame {
            role,
            remaining,
            bytes: 0,
        };
        self.sides[side].frame = Some(frame);
        self.count(sink, head.len() as u64);
        true
    }

    /// Reads a body and the zero byte after it.
    fn read_body(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: &mut &[u8]) {
        let side = sink.side();
        let Some(frame) = &mut self.sides[side].frame else {
            return;
        };
        let (count, ends) = match &mut frame.remaining {
            Some(remaining) => {
                let count = usize::try_from(*remaining).unwrap_or(usize::MAX).min(bytes.len());
                *remaining -= count as u64;
                (count, *remaining == 0)
            }
            None => match memchr::memchr(0, bytes) {
                Some(end) => (end + 1, true),
                None => (bytes.len(), false),
            },
        };
        *bytes = cursor::from(bytes, count);
        self.count(sink, count as u64);
        if ends && let Some(frame) = self.sides[side].frame.take() {
            match frame.role {
                Role::Ignored => {}
                Role::Request(key) => sink.exchange(key).end_request(),
                Role::Answer(key) => sink.exchange(key).end_answer(),
                Role::Unanswered(key) => sink.exchange(key).end_unanswered(),
                Role::Push(method, target, subscription) => {
                    let first = sink.marked();
                    sink.push_since(first, method, &target, frame.bytes, subscription);
                }
            }
            sink.unmark();
        }
    }

    /// Counts bytes of the present frame.
    fn count(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u64) {
        if let Some(frame) = &mut self.sides[sink.side()].frame {
            frame.bytes += bytes;
            if let Role::Request(key) | Role::Answer(key) | Role::Unanswered(key) = frame.role {
                sink.exchange(key).count(bytes);
            }
        }
    }

    /// Returns the role of the frame with this head, and reports its beginning.
    fn begin_frame(&mut self, sink: &mut Sink<'_, impl Listener>, head: &[u8]) -> Role {
        let end = head
            .iter()
            .position(|byte| matches!(byte, b'\r' | b'\n'))
            .unwrap_or(0);
        let command = cursor::upto(head, end);
        let named = |names: &[&'static str]| names.iter().find(|name| name.as_bytes() == command).copied();
        match sink.side() {
            Side::Client => self.begin_client_frame(sink, named(&CLIENT).unwrap_or_default(), head),
            Side::Server => self.begin_server_frame(sink, named(&SERVER).unwrap_or_default(), head),
        }
    }

    fn begin_client_frame(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        command: &'static str,
        head: &[u8],
    ) -> Role {
        let is_connect = matches!(command, "CONNECT" | "STOMP");
        // version 1.0 allows a subscription without id, which its destination stands for
        let id = header(head, b"id").or(header(head, b"destination"));
        let id = id.filter(|_| command == "SUBSCRIBE");
        let receipt = header(head, b"receipt").filter(|_| !is_connect);
        let (key, kind) = if is_connect {
            (CONNECT, Kind::Setup)
        } else if id.or(receipt).is_some() {
            self.newest += 1;
            (self.newest, Kind::Request)
        } else {
            return Role::Ignored;
        };
        for (list, name) in [(&mut self.waiting, receipt), (&mut self.subscriptions, id)] {
            if let Some(name) = name {
                push_dropping_oldest(list, MAX_WAITING, (name.into(), key));
            }
        }
        self.is_connecting |= is_connect;
        let target = ["destination", "id", "transaction"].iter();
        let target = target
            .filter(|_| !is_connect)
            .find_map(|name| header(head, name.as_bytes()));
        let host = header(head, b"host").filter(|_| is_connect);
        let mut exchange = sink.exchange(key);
        exchange.begin_request(kind);
        exchange.name(RequestName {
            method: command,
            target: &target.map_or(SmolStr::default(), text::name),
            host: &host.map_or(SmolStr::default(), text::name),
        });
        if id.is_some() {
            exchange.subscribes(key);
        }
        if is_connect || receipt.is_some() {
            Role::Request(key)
        } else {
            Role::Unanswered(key)
        }
    }

    fn begin_server_frame(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        command: &'static str,
        head: &[u8],
    ) -> Role {
        let receipt = header(head, b"receipt-id");
        let is_named = |(waiting, _): &(Box<[u8]>, u64)| Some(&**waiting) == receipt;
        let by_receipt = self.waiting.iter().position(is_named);
        // An error ends the connection. It answers the receipt that it names; without one (RabbitMQ) the oldest
        // request, or the connect.
        let oldest = (command == "ERROR" && receipt.is_none() && !self.waiting.is_empty()).then_some(0);
        let index = by_receipt.or(oldest);
        let key = match command {
            "CONNECTED" => Some(CONNECT),
            "ERROR" if index.is_none() && self.is_connecting => Some(CONNECT),
            "RECEIPT" | "ERROR" => index
                .and_then(|index| self.waiting.remove(index))
                .map(|(_, key)| key),
            _ => None,
        };
        self.is_connecting &= key != Some(CONNECT);
        let Some(key) = key else {
            let target = header(head, b"destination").map_or(SmolStr::default(), text::name);
            let id = header(head, b"subscription").or(header(head, b"destination"));
            let mut newest = self.subscriptions.iter().rev();
            let subscription = newest.find(|(listed, _)| command == "MESSAGE" && Some(&**listed) == id);
            return Role::Push(command, target, subscription.map(|(_, key)| *key));
        };
        if key == CONNECT
            && let Some(server) = header(head, b"server")
        {
            sink.software(text::name_up_to(server, 64, false).as_str().into());
        }
        let is_error = command == "ERROR";
        let text = if is_error {
            header(head, b"message").map_or("error".into(), text::name)
        } else {
            "ok".into()
        };
        sink.exchange(key).answer(Status::word(&text, is_error));
        Role::Answer(key)
    }
}
