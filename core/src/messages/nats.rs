//! NATS (docs.nats.io, "Client Protocol"). Messages are lines, some with a payload behind them whose length is the
//! line's last word. One exchange is a publish with a reply subject and the first message delivered to that subject, or
//! a SUB, which has no response. Other deliveries are pushes of their subscription. CONNECT and PING are ignored, and
//! payloads are not read.

use std::collections::VecDeque;

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::pending_queue::{push_dropping_oldest, take_first};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{FirstBytes, Guess, Kind, Listener, Side, text};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Nats,
    sniff,
    begins_inside_turn: |side, first| framed::fit::<Nats>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Nats(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Nats>;

/// Upper bound on a payload: the highest `max_payload` of a server; the default is 1 MiB.
const MAX_PAYLOAD: u64 = 64 << 20;
/// Upper bound on open requests, and on subscriptions; beyond it the oldest is dropped.
const MAX_WAITING: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Nats {
    /// Requests without a response, oldest first: reply subject and key.
    waiting: VecDeque<(Box<[u8]>, u64)>,
    /// Subscriptions, oldest first: the client's id and the key.
    subscriptions: VecDeque<(Box<[u8]>, u64)>,
    next_key: u64,
}

/// The server's first line is proof enough; without it both sides' lines have to fit.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    match framed::fit::<Nats>(first.side, first.input) {
        Fit::No => Guess::No,
        _ if first.side == Side::Server && first.input.starts_with(b"INFO {\"server_") => Guess::Yes,
        // other servers answer PING with PONG, too
        _ if is_ping(first.input) && is_ping(first.other) => Guess::NeedsOtherSide,
        _ => framed::sniff::<Nats>(first),
    }
}

/// Whether all lines are PING or PONG.
fn is_ping(lines: &[u8]) -> bool {
    let mut lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.all(|line| matches!(line, b"PING\r" | b"PONG\r"))
}

/// Returns the first line without its end; None if it is not whole.
fn line(head: &[u8]) -> Option<&[u8]> {
    let end = head.iter().position(|byte| *byte == b'\n')?;
    head.get(..end)?.strip_suffix(b"\r")
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|word| !word.is_empty())
}

/// Returns the verb of a side's line, and whether a payload follows. Verbs are in capitals, as all clients write them,
/// although servers ignore case.
fn verb(side: Side, head: &[u8]) -> Option<(&'static [u8], bool)> {
    let verbs: &[(&'static [u8], bool)] = match side {
        Side::Client => &[
            (b"CONNECT ", false),
            (b"PUB ", true),
            (b"HPUB ", true),
            (b"SUB ", false),
            (b"UNSUB ", false),
            (b"PING\r\n", false),
            (b"PONG\r\n", false),
        ],
        Side::Server => &[
            (b"INFO ", false),
            (b"MSG ", true),
            (b"HMSG ", true),
            (b"PING\r\n", false),
            (b"PONG\r\n", false),
            (b"+OK\r\n", false),
            (b"-ERR ", false),
        ],
    };
    let fits = |(verb, _): &&(&'static [u8], bool)| verb.iter().zip(head).all(|(want, byte)| want == byte);
    verbs.iter().find(fits).copied()
}

impl WireFormat for Nats {
    const MAX_HEAD: usize = 4096;
    const MIN_PROOF: usize = 6;
    const LOST_REASON: &'static str = "not a line of NATS";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let Some((_, has_payload)) = verb(side, first) else {
            return Length::Wrong;
        };
        let Some(line) = line(first) else {
            return if first.contains(&b'\n') {
                Length::Wrong
            } else {
                Length::More
            };
        };
        let line_len = line.len() as u64 + 2;
        if !has_payload {
            return Length::Is(line_len);
        }
        let size = words(line).last().and_then(|word| std::str::from_utf8(word).ok());
        match size.and_then(|size| size.parse::<u64>().ok()) {
            Some(size) if size <= MAX_PAYLOAD => Length::Is(line_len + size + 2),
            _ => Length::Wrong,
        }
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        let count = |line| words(line).count();
        match (verb(side, head.bytes), line(head.bytes)) {
            (Some((b"PUB " | b"SUB ", _)), Some(line)) => (3..=4).contains(&count(line)),
            (Some((b"HPUB " | b"MSG ", _)), Some(line)) => (4..=5).contains(&count(line)),
            (Some((b"CONNECT ", _)), Some(line)) => line.starts_with(b"CONNECT {"),
            (Some((b"INFO ", _)), Some(line)) => line.starts_with(b"INFO {"),
            (Some(_), _) => true,
            _ => false,
        }
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let side = sink.side();
        let (Some((verb, _)), Some(line)) = (verb(side, head.bytes), line(head.bytes)) else {
            return Role::Ignored;
        };
        let mut words = words(line).skip(1);
        let Some(subject) = words.next() else {
            return Role::Ignored;
        };
        // after the subject: the reply subject, if any, and one size or two
        let rest = self::words(line).skip(2).count();
        match verb {
            b"PUB " if rest == 2 => self.publish(sink, subject, words.next()),
            b"HPUB " if rest == 3 => self.publish(sink, subject, words.next()),
            b"SUB " => self.subscribe(sink, subject, self::words(line).last()),
            b"MSG " | b"HMSG " => self.deliver(sink, subject, words.next()),
            b"-ERR " => Role::push("-ERR", ""),
            _ => Role::Ignored,
        }
    }

    fn lost(&mut self, side: Side) {
        if side == Side::Server {
            self.waiting.clear();
        }
    }
}

impl Nats {
    /// Begins the request of a publish with a reply subject.
    fn publish(&mut self, sink: &mut Sink<'_, impl Listener>, subject: &[u8], reply: Option<&[u8]>) -> Role {
        let Some(reply) = reply else {
            return Role::Ignored;
        };
        let key = self.begin_request(sink, "request", subject);
        push_dropping_oldest(&mut self.waiting, MAX_WAITING, (reply.into(), key));
        Role::Last(key)
    }

    fn begin_request(&mut self, sink: &mut Sink<'_, impl Listener>, method: &str, subject: &[u8]) -> u64 {
        let key = self.next_key;
        self.next_key += 1;
        sink.exchange(key)
            .request(Kind::Request, method, &text::name(subject));
        key
    }

    fn subscribe(&mut self, sink: &mut Sink<'_, impl Listener>, subject: &[u8], id: Option<&[u8]>) -> Role {
        let Some(id) = id else {
            return Role::Ignored;
        };
        let key = self.begin_request(sink, "SUB", subject);
        sink.exchange(key).subscribes(key);
        push_dropping_oldest(&mut self.subscriptions, MAX_WAITING, (id.into(), key));
        Role::Unanswered(key)
    }

    /// Reads a delivered message: the response to a request, or a push of the subscription with this id.
    fn deliver(&mut self, sink: &mut Sink<'_, impl Listener>, subject: &[u8], id: Option<&[u8]>) -> Role {
        if let Some((_, key)) = take_first(&mut self.waiting, |(reply, _)| **reply == *subject) {
            sink.exchange(key).begin_answer();
            return Role::Last(key);
        }
        Role::Push(PushedMessage {
            method: "MSG",
            target: text::name(subject),
            subscription: self
                .subscriptions
                .iter()
                .rev()
                .find(|(listed, _)| Some(&**listed) == id)
                .map(|(_, key)| *key),
            ..PushedMessage::default()
        })
    }
}
