//! AMQP 0-9-1 with RabbitMQ's confirms. A method that waits for its "-ok" is a request, found by its channel; so is a
//! publish once the channel confirms, found by its delivery tag. What the server delivers is a push. Heartbeats, and
//! what a client acknowledges or publishes without confirms, are neither. Reads names of queues and exchanges.
//!
//! Delivery tags count a channel's publishes. Where its beginning is not in the capture the count is taken up at the
//! server's next confirmation that leaves no publish open.

mod channel;
mod frame;

use std::collections::BTreeMap;

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use smol_str::SmolStr;

use super::{FirstBytes, Guess, Kind, Listener, RequestName, Side, Status, errors};
use channel::{Channel, Content, Of};
use frame::{Frame, Method};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Amqp,
    sniff,
    begins_message: |side, first| {
        frame::speaker(first) == Some(side) && framed::fit::<Amqp>(side, first) != Fit::No
    },
    begins_inside_turn: |side, first| framed::fit::<Amqp>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Amqp(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Amqp>;

const OK: Status<'static> = Status {
    code: Some(0),
    text: Some("ok"),
    error: false,
};
/// Channels that are remembered; RabbitMQ allows 2,047, clients use a few.
const MAX_CHANNELS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Amqp {
    channels: BTreeMap<u16, Channel>,
    /// The key of the next request.
    next: u64,
    /// The connection's beginning was read, so a channel's publishes are counted from its own.
    whole: bool,
    /// Both sides say who they are and what they can.
    logs_in: bool,
}

/// A client begins with `AMQP`, and the server answers with its version.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    let begun = frame::HEADER.get(..first.input.len()).unwrap_or(frame::HEADER);
    match first.side {
        Side::Client if first.input == begun => Guess::More,
        Side::Client if first.input.starts_with(frame::HEADER) => Guess::Yes,
        _ => framed::sniff::<Amqp>(first),
    }
}

impl WireFormat for Amqp {
    const MAX_HEAD: usize = 1024;
    const MIN_PROOF: usize = 12;
    const LOST_REASON: &'static str = "not a frame of AMQP";

    fn length(&self, _side: Side, first: &[u8]) -> Length {
        frame::length(first)
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        frame::fits(side, head)
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        let Some((channel, frame)) = frame::read(head) else {
            return Role::Ignored;
        };
        let side = sink.side();
        if !self.channels.contains_key(&channel) && self.channels.len() >= MAX_CHANNELS {
            return Role::Ignored;
        }
        let (key, whole) = (self.next, self.whole);
        let channel = self
            .channels
            .entry(channel)
            .or_insert_with(|| Channel::new(whole));
        let role = match frame {
            Frame::Protocol if side == Side::Client => {
                (self.whole, self.logs_in) = (true, true);
                logs_in(sink, head.len);
                None
            }
            Frame::Method(method) if self.logs_in && method.is_of_login() => {
                self.logs_in = !logged_in(sink, method, head.len);
                None
            }
            Frame::Protocol | Frame::Heartbeat => None,
            Frame::Method(method) if side == Side::Client => client(sink, channel, key, method),
            Frame::Method(method) => server(sink, channel, method, head.len),
            Frame::Header(size) => Some(channel.content(side).header(size, head.len)),
            Frame::Body(size) => Some(channel.content(side).body(size, head.len)),
        };
        self.next += 1;
        role.unwrap_or_default()
    }

    fn lost(&mut self, side: Side) {
        self.channels.values_mut().for_each(|channel| channel.lost(side));
    }
}

/// From the client's first bytes to the server's "open-ok" it is one dialogue.
fn logs_in(sink: &mut MessageSink<'_, impl Listener>, len: u64) {
    sink.count(len);
    sink.request(&SmolStr::new_static("connection.open"), &SmolStr::default());
    sink.kind(Kind::Setup);
    sink.dialogue();
    sink.end();
}

/// A method of the log-in: whether it was the last.
fn logged_in(sink: &mut MessageSink<'_, impl Listener>, method: Method<'_>, len: u64) -> bool {
    if sink.side() == Side::Client {
        return false;
    }
    if let Some(software) = method.software() {
        sink.software(software);
    }
    sink.count(len);
    let refused = method.closes();
    if !method.ends_login() {
        return false;
    }
    let error = refused.is_some();
    sink.status(Status {
        code: refused.or(Some(0)),
        text: refused.map_or(Some("ok"), |code| errors::word(errors::AMQP, code)),
        error,
    });
    sink.end();
    true
}

/// A request begins.
fn begins(sink: &mut MessageSink<'_, impl Listener>, key: u64, method: Method<'_>) {
    let mut exchange = sink.exchange(key);
    exchange.begin_request(Kind::Request);
    exchange.name(RequestName {
        method: method.word(),
        target: &method.target(),
        host: "",
    });
}

fn client(
    sink: &mut MessageSink<'_, impl Listener>,
    channel: &mut Channel,
    key: u64,
    method: Method<'_>,
) -> Option<Role> {
    if method.is_publish() {
        let counted = channel.publishes(key, sink.at().time_ns);
        *channel.content(Side::Client) = Content::of(counted.then_some(Of::Exchange(key)));
        if !counted {
            return None;
        }
        begins(sink, key, method);
        return Some(Role::Part(key));
    }
    let (consumer, is_answered) = (method.consumer(), method.answer().is_some());
    if !is_answered && consumer.is_none() {
        return None;
    }
    begins(sink, key, method);
    if let Some(tag) = consumer {
        sink.exchange(key).subscribes(key);
        channel.consumes(key, tag);
    }
    if !is_answered {
        return Some(Role::Unanswered(key));
    }
    channel.waits(key, method);
    Some(Role::Last(key))
}

fn server(
    sink: &mut MessageSink<'_, impl Listener>,
    channel: &mut Channel,
    method: Method<'_>,
    len: u64,
) -> Option<Role> {
    if let Some((tag, multiple)) = method.confirms() {
        let (text, error) = if method.refuses() {
            ("nack", true)
        } else {
            ("ok", false)
        };
        let at = sink.at().time_ns;
        for key in channel.confirmed(tag, multiple, at) {
            answers(
                sink,
                key,
                Status {
                    code: (!error).then_some(0),
                    text: Some(text),
                    error,
                },
            );
            sink.exchange(key).end_answer();
        }
        return None;
    }
    if let Some(code) = method.closes() {
        let status = Status {
            code: Some(code),
            text: errors::word(errors::AMQP, code),
            error: true,
        };
        // it answers the oldest that waits, the others get no answer
        let mut keys = channel.all().into_iter();
        let Some(key) = keys.next() else {
            return Some(push(method));
        };
        keys.for_each(|key| sink.exchange(key).reset());
        answers(sink, key, status);
        return Some(Role::Last(key));
    }
    if method.has_content() {
        let of = match channel.answered(method) {
            Some(key) => {
                answers(sink, key, OK);
                Of::Exchange(key)
            }
            None => {
                let subscription = method.consumer().and_then(|tag| channel.consumer(tag));
                Of::Push(sink.marked(), method.word(), method.target(), subscription)
            }
        };
        let content = channel.content(Side::Server);
        *content = Content::of(Some(of));
        return Some(content.part(len));
    }
    if method.is_unsolicited() {
        return Some(push(method));
    }
    let key = channel.answered(method)?;
    if let Some(tag) = method.consumer() {
        channel.consumes_as(key, tag);
    }
    answers(sink, key, OK);
    Some(Role::Last(key))
}

fn push(method: Method<'_>) -> Role {
    Role::Push(PushedMessage {
        method: method.word(),
        target: method.target(),
        ..PushedMessage::default()
    })
}

fn answers(sink: &mut MessageSink<'_, impl Listener>, key: u64, status: Status<'_>) {
    let mut exchange = sink.exchange(key);
    exchange.begin_answer();
    exchange.status(status);
}
