//! MQTT 3.1.1 and 5 (OASIS standards). Each packet begins with a type and a length of up to four bytes. One exchange is
//! a client's CONNECT, SUBSCRIBE, UNSUBSCRIBE or PUBLISH above QoS 0 and the response with its packet identifier. What
//! the server publishes is a push, of the newest subscription whose filter matches. Pings, a PUBLISH of QoS 0, and a
//! client's acknowledgements are ignored. Topics are read, payloads are not.

mod packet;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::pending_queue::push_dropping_oldest;
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, FirstBytes, Guess, Kind, Listener, Side, Status, errors, text};
use packet::{Kind as Packet, Publish};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Mqtt,
    sniff,
    begins_message: |side, first| {
        side == Side::Client && (packet::is_connect(first) == Some(true) || is_subscribe(first))
    },
    begins_inside_turn: |side, first| framed::fit::<Mqtt>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Mqtt(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Mqtt>;

/// Key of CONNECT, which has no packet identifier; those of other packets have 16 bits.
const CONNECT: u64 = 1 << 16;
/// Upper bound on the topic aliases kept of each side (version 5, 3.3.2.3.4); most servers allow ten.
const MAX_ALIASES: usize = 16;
/// Upper bound on the filters kept; beyond it the oldest is dropped.
const MAX_FILTERS: usize = 256;
/// Lowest reason code that is an error (version 5, 2.4); in 3.1.1 the only one of SUBACK.
const FAILURE: u8 = 0x80;

#[derive(Debug, Default)]
pub(super) struct Mqtt {
    /// Version of the protocol; None if the capture does not show it.
    version: Option<u8>,
    aliases: BySide<Aliases>,
    /// Filters of the client, oldest first, with the number of their SUBSCRIBE.
    filters: VecDeque<(Box<[u8]>, u64)>,
    /// Number of SUBSCRIBEs.
    subscriptions: u64,
}

/// Topic aliases of one side, with the topics that they stand for.
#[derive(Debug, Default)]
struct Aliases(Vec<(u16, SmolStr)>);

fn sniff(first: &FirstBytes<'_>) -> Guess {
    match packet::is_connect(first.input) {
        Some(true) if first.side == Side::Client => Guess::Yes,
        None if first.side == Side::Client => Guess::More,
        _ => framed::sniff::<Mqtt>(first),
    }
}

/// Whether a client's first bytes, however few, may be a CONNECT.
pub(super) fn may_connect(first: &[u8]) -> bool {
    !first.is_empty() && packet::is_connect(first) != Some(false)
}

/// Whether these bytes are packets beginning with a SUBSCRIBE, which only a client sends.
fn is_subscribe(first: &[u8]) -> bool {
    first.first() == Some(&0x82) && framed::fit::<Mqtt>(Side::Client, first) == Fit::Whole
}

impl WireFormat for Mqtt {
    const MAX_HEAD: usize = 512;
    const MIN_PROOF: usize = 8;
    const LOST_REASON: &'static str = "not a packet of MQTT";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        packet::length(side, first)
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        packet::fits(side, head)
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let Some((kind, flags, body)) = packet::split(head.bytes) else {
            return Role::Ignored;
        };
        match sink.side() {
            Side::Client => self.read_client(sink, kind, flags, body),
            Side::Server => self.read_server(sink, kind, flags, body),
        }
        .unwrap_or_default()
    }

    fn lost(&mut self, side: Side) {
        self.aliases[side] = Aliases::default();
    }
}

impl Mqtt {
    fn read_client(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        kind: Packet,
        flags: u8,
        body: &[u8],
    ) -> Option<Role> {
        let (key, target) = match kind {
            Packet::Connect => {
                let (version, name) = packet::connect(body)?;
                self.version = Some(version);
                (CONNECT, text::name(name))
            }
            Packet::Publish => {
                let publish = Publish::read(flags, body, self.version == Some(5))?;
                let topic = self.aliases.client.topic(&publish);
                (u64::from(publish.id?), topic)
            }
            Packet::Subscribe | Packet::Unsubscribe => {
                let (id, filters, version) = packet::filters(kind, body)?;
                self.version = self.version.or(version);
                let name = filters.first().map(|filter| text::name(filter));
                if kind == Packet::Subscribe {
                    self.add_filters(&filters);
                }
                (u64::from(id), name?)
            }
            _ => return None,
        };
        let mut exchange = sink.exchange(key);
        exchange.request(Kind::Request, kind.name(), &target);
        if kind == Packet::Subscribe {
            exchange.subscribes(self.subscriptions);
        }
        Some(Role::Last(key))
    }

    fn add_filters(&mut self, filters: &[&[u8]]) {
        self.subscriptions += 1;
        for filter in filters {
            let entry = ((*filter).into(), self.subscriptions);
            push_dropping_oldest(&mut self.filters, MAX_FILTERS, entry);
        }
    }

    fn read_server(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        kind: Packet,
        flags: u8,
        body: &[u8],
    ) -> Option<Role> {
        let method = kind.name();
        let push = |target| PushedMessage {
            method,
            target,
            ..PushedMessage::default()
        };
        let (key, reason) = match kind {
            Packet::Publish => {
                let publish = Publish::read(flags, body, self.version.is_none_or(|version| version == 5))?;
                let topic = self.aliases.server.topic(&publish);
                let mut newest = self.filters.iter().rev();
                let matching = newest.find(|(filter, _)| packet::matches(filter, topic.as_bytes()));
                return Some(Role::Push(PushedMessage {
                    subscription: matching.map(|(_, subscription)| *subscription),
                    ..push(topic)
                }));
            }
            Packet::Disconnect => return Some(Role::Push(push(SmolStr::default()))),
            Packet::Connack => (CONNECT, *body.get(1)?),
            // enhanced authentication: the log-in takes another round (version 5, 4.12)
            Packet::Auth => {
                sink.exchange(CONNECT).begin_answer();
                return Some(Role::Part(CONNECT));
            }
            _ => packet::answer(kind, body, self.version)?,
        };
        let is_refused = self.version != Some(5) && kind == Packet::Connack && reason > 0;
        let is_error = reason >= FAILURE || is_refused;
        let mut exchange = sink.exchange(key);
        exchange.begin_answer();
        if kind == Packet::Pubrec && !is_error {
            return Some(Role::Part(key)); // the client sends PUBREL, and PUBCOMP ends the response
        }
        let words = if is_refused {
            errors::MQTT_CONNECT
        } else {
            errors::MQTT
        };
        let code = u16::from(reason);
        exchange.status(Status::new(Some(code), errors::word(words, code), is_error));
        Some(Role::Last(key))
    }
}

impl Aliases {
    /// Returns a PUBLISH's topic, which an alias may stand for.
    fn topic(&mut self, publish: &Publish<'_>) -> SmolStr {
        let has_room = self.0.len() < MAX_ALIASES;
        let alias = self
            .0
            .iter_mut()
            .find(|(number, _)| Some(*number) == publish.alias);
        if publish.topic.is_empty() {
            return alias.map(|(_, topic)| topic.clone()).unwrap_or_default();
        }
        let topic = text::name(publish.topic);
        match (alias, publish.alias) {
            (Some((_, alias_topic)), _) => *alias_topic = topic.clone(),
            (None, Some(alias)) if has_room => self.0.push((alias, topic.clone())),
            _ => {}
        }
        topic
    }
}
