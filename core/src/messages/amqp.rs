//! AMQP 0-9-1 (its specification 0-9-1; RabbitMQ, "Publisher Confirms"). Each frame begins with type, channel and
//! 4-byte size. One exchange is a method and its "-ok" on the same channel, or, on a channel with confirms, a publish
//! and the ACK or NACK of its delivery tag. Deliveries are pushes. Heartbeats, acknowledgements and unconfirmed
//! publishes are neither. Only names of queues and exchanges are read.
//!
//! Delivery tags count a channel's publishes. If its beginning is not in the capture, the count starts at the server's
//! next confirmation that leaves no publish open.

mod channel;
mod frame;

use std::collections::BTreeMap;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use smol_str::SmolStr;

use super::{FirstBytes, Guess, Kind, Listener, Side, Status, errors};
use channel::{Channel, Content, Owner};
use frame::{Frame, Method};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Amqp,
    sniff,
    begins_message: |side, first| {
        frame::sender(first) == Some(side) && framed::fit::<Amqp>(side, first) != Fit::No
    },
    begins_inside_turn: |side, first| framed::fit::<Amqp>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Amqp(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Amqp>;

const OK: Status<'static> = Status::new(Some(0), Some("ok"), false);
/// Upper bound on the channels kept. RabbitMQ allows 2,047 by default, clients use a few.
const MAX_CHANNELS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Amqp {
    channels: BTreeMap<u16, Channel>,
    /// Key of the next request.
    next_key: u64,
    /// The beginning of the connection was read, so that publishes are counted from each channel's beginning.
    from_start: bool,
    /// Between the client's first bytes and the server's "open-ok".
    is_login: bool,
}

/// A client begins with `AMQP` and a version; in the middle of a connection both sides' frames have to fit.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    let prefix = frame::HEADER.get(..first.input.len()).unwrap_or(frame::HEADER);
    match first.side {
        Side::Client if first.input == prefix => Guess::More,
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

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let Some((channel, frame)) = frame::read(head) else {
            return Role::Ignored;
        };
        let side = sink.side();
        if !self.channels.contains_key(&channel) && self.channels.len() >= MAX_CHANNELS {
            return Role::Ignored;
        }
        let (key, from_start) = (self.next_key, self.from_start);
        let channel = self
            .channels
            .entry(channel)
            .or_insert_with(|| Channel::new(from_start));
        let role = match frame {
            Frame::Protocol if side == Side::Client => {
                (self.from_start, self.is_login) = (true, true);
                begin_login(sink, head.len);
                None
            }
            Frame::Method(method) if self.is_login && method.is_of_login() => {
                self.is_login = !read_login_method(sink, method, head.len);
                None
            }
            Frame::Protocol | Frame::Heartbeat => None,
            Frame::Method(method) if side == Side::Client => read_client_method(sink, channel, key, method),
            Frame::Method(method) => read_server_method(sink, channel, method, head.len),
            Frame::Header(size) => Some(channel.contents[side].begin(size, head.len)),
            Frame::Body(size) => Some(channel.contents[side].count_body(size, head.len)),
        };
        self.next_key += 1;
        role.unwrap_or_default()
    }

    fn lost(&mut self, side: Side) {
        self.channels.values_mut().for_each(|channel| channel.lost(side));
    }
}

/// Begins the exchange of the log-in: a dialogue from the client's first bytes to the server's "open-ok".
fn begin_login(sink: &mut Sink<'_, impl Listener>, len: u64) {
    sink.count(len);
    sink.request(&SmolStr::new_static("connection.open"), &SmolStr::default());
    sink.kind(Kind::Setup);
    sink.dialogue();
    sink.end();
}

/// Reads a method of the log-in. Returns whether it was the last.
fn read_login_method(sink: &mut Sink<'_, impl Listener>, method: Method<'_>, len: u64) -> bool {
    if sink.side() == Side::Client {
        return false;
    }
    if let Some(software) = method.software() {
        sink.software(software);
    }
    sink.count(len);
    let refused = method.close_code();
    if !method.ends_login() {
        return false;
    }
    sink.status(match refused {
        Some(code) => Status::new(Some(code), errors::word(errors::AMQP, code), true),
        None => OK,
    });
    sink.end();
    true
}

fn read_client_method(
    sink: &mut Sink<'_, impl Listener>,
    channel: &mut Channel,
    key: u64,
    method: Method<'_>,
) -> Option<Role> {
    if method.is_publish() {
        let is_confirmed = channel.publish(key, sink.at().time_ns);
        channel.contents.client = Content::new(is_confirmed.then_some(Owner::Exchange(key)));
        if !is_confirmed {
            return None;
        }
        sink.exchange(key)
            .request(Kind::Request, method.name(), &method.target());
        return Some(Role::Part(key));
    }
    let (consumer, is_answered) = (method.consumer(), method.answer().is_some());
    if !is_answered && consumer.is_none() {
        return None;
    }
    let mut exchange = sink.exchange(key);
    exchange.request(Kind::Request, method.name(), &method.target());
    if let Some(tag) = consumer {
        exchange.subscribes(key);
        channel.add_consumer(key, tag);
    }
    if !is_answered {
        return Some(Role::Unanswered(key));
    }
    channel.add_waiting(key, method);
    Some(Role::Last(key))
}

fn read_server_method(
    sink: &mut Sink<'_, impl Listener>,
    channel: &mut Channel,
    method: Method<'_>,
    len: u64,
) -> Option<Role> {
    if let Some((tag, multiple)) = method.confirmation() {
        let status = if method.is_nack() {
            Status::word("nack", true)
        } else {
            OK
        };
        let at = sink.at().time_ns;
        for key in channel.take_confirmed(tag, multiple, at) {
            let mut exchange = sink.exchange(key);
            exchange.answer(status);
            exchange.end_answer();
        }
        return None;
    }
    if let Some(code) = method.close_code() {
        // the close answers the oldest request; the others get no answer
        let mut keys = channel.take_all().into_iter();
        let Some(key) = keys.next() else {
            return Some(Role::push(method.name(), method.target()));
        };
        keys.for_each(|key| sink.exchange(key).reset());
        let word = errors::word(errors::AMQP, code);
        sink.exchange(key).answer(Status::new(Some(code), word, true));
        return Some(Role::Last(key));
    }
    if method.has_content() {
        let owner = match channel.take_answered(method) {
            Some(key) => {
                sink.exchange(key).answer(OK);
                Owner::Exchange(key)
            }
            None => {
                let subscription = method.consumer().and_then(|tag| channel.consumer(tag));
                Owner::Push(sink.marked(), method.name(), method.target(), subscription)
            }
        };
        channel.contents.server = Content::new(Some(owner));
        return Some(channel.contents.server.count(len));
    }
    if method.is_unsolicited() {
        return Some(Role::push(method.name(), method.target()));
    }
    let key = channel.take_answered(method)?;
    if let Some(tag) = method.consumer() {
        channel.name_consumer(key, tag);
    }
    sink.exchange(key).answer(OK);
    Some(Role::Last(key))
}
