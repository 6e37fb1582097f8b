//! MQTT 3.1.1 and 5 (OASIS). A client's CONNECT, SUBSCRIBE, UNSUBSCRIBE and PUBLISH above QoS 0 are requests, each
//! with its packet's number; what the server publishes is a push. Pings, a PUBLISH of QoS 0 and what a client answers
//! to pushes are neither. A push belongs to the newest subscription that takes its topic. Reads topics, knows nothing of what is published.

mod packet;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{FirstBytes, Guess, Kind, Listener, RequestName, Side, Status, errors, text};
use packet::{Kind as Packet, Publish};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Mqtt,
    sniff,
    begins_message: |side, first| {
        side == Side::Client && (packet::is_connect(first) == Some(true) || subscribes(first))
    },
    begins_inside_turn: |side, first| framed::fit::<Mqtt>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Mqtt(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Mqtt>;

/// The key of CONNECT, which has no number of its own; those of others have 16 bits.
const CONNECT: u64 = 1 << 16;
/// Topics of version 5 that a short number stands for (3.3.2.3.4). More are not remembered: most servers allow ten.
const MAX_ALIASES: usize = 16;
/// Filters that are remembered; beyond it the oldest is forgotten.
const MAX_FILTERS: usize = 256;
/// From here on a reason code is an error (version 5, 2.4); in 3.1.1 a SUBACK's only one.
const FAILURE: u8 = 0x80;

#[derive(Debug, Default)]
pub(super) struct Mqtt {
    /// The version of the protocol, where the capture shows it.
    version: Option<u8>,
    client: Aliases,
    server: Aliases,
    /// Filters that the client subscribed to, and which SUBSCRIBE it was, oldest first.
    filters: VecDeque<(Box<[u8]>, u64)>,
    subscriptions: u64,
}

#[derive(Debug, Default)]
struct Aliases(Vec<(u16, SmolStr)>);

fn sniff(first: &FirstBytes<'_>) -> Guess {
    match packet::is_connect(first.input) {
        Some(true) if first.side == Side::Client => Guess::Yes,
        None if first.side == Side::Client => Guess::More,
        _ => framed::sniff::<Mqtt>(first),
    }
}

/// Whether a client's first bytes, however few, may begin a connection.
pub(super) fn may_connect(first: &[u8]) -> bool {
    !first.is_empty() && packet::is_connect(first) != Some(false)
}

/// Packets of which one subscribes: only a client does.
fn subscribes(first: &[u8]) -> bool {
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

    fn has_magic(_side: Side) -> bool {
        false
    }

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        let Some((kind, flags, body)) = packet::split(head.bytes) else {
            return Role::Ignored;
        };
        match sink.side() {
            Side::Client => self.asks(sink, kind, flags, body),
            Side::Server => self.speaks(sink, kind, flags, body),
        }
        .unwrap_or_default()
    }

    fn lost(&mut self, side: Side) {
        *self.aliases(side) = Aliases::default();
    }
}

impl Mqtt {
    fn aliases(&mut self, side: Side) -> &mut Aliases {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn asks(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
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
                let topic = self.client.topic(&publish);
                (u64::from(publish.id?), topic)
            }
            Packet::Subscribe | Packet::Unsubscribe => {
                let (id, filters, version) = packet::filters(kind, body)?;
                self.version = self.version.or(version);
                let name = filters.first().map(|filter| text::name(filter));
                if kind == Packet::Subscribe {
                    self.subscribes(&filters);
                }
                (u64::from(id), name?)
            }
            _ => return None,
        };
        let mut exchange = sink.exchange(key);
        exchange.begin_request(Kind::Request);
        exchange.name(RequestName {
            method: kind.word(),
            target: &target,
            host: "",
        });
        if kind == Packet::Subscribe {
            exchange.subscribes(self.subscriptions);
        }
        Some(Role::Last(key))
    }

    fn subscribes(&mut self, filters: &[&[u8]]) {
        self.subscriptions += 1;
        for filter in filters {
            if self.filters.len() >= MAX_FILTERS {
                self.filters.pop_front();
            }
            self.filters.push_back(((*filter).into(), self.subscriptions));
        }
    }

    fn speaks(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        kind: Packet,
        flags: u8,
        body: &[u8],
    ) -> Option<Role> {
        let method = kind.word();
        let push = |target| PushedMessage {
            method,
            target,
            ..PushedMessage::default()
        };
        let (key, reason) = match kind {
            Packet::Publish => {
                let publish = Publish::read(flags, body, self.version.is_none_or(|version| version == 5))?;
                let topic = self.server.topic(&publish);
                let mut newest = self.filters.iter().rev();
                let taker = newest.find(|(filter, _)| packet::takes(filter, topic.as_bytes()));
                return Some(Role::Push(PushedMessage {
                    subscription: taker.map(|(_, subscription)| *subscription),
                    ..push(topic)
                }));
            }
            Packet::Disconnect => return Some(Role::Push(push(SmolStr::default()))),
            Packet::Connack => (CONNECT, *body.get(1)?),
            // more words of the same dialogue (version 5, 4.12)
            Packet::Auth => {
                sink.exchange(CONNECT).begin_answer();
                return Some(Role::Part(CONNECT));
            }
            _ => packet::answer(kind, body, self.version)?,
        };
        let refused = self.version != Some(5) && kind == Packet::Connack && reason > 0;
        let error = reason >= FAILURE || refused;
        let mut exchange = sink.exchange(key);
        exchange.begin_answer();
        if kind == Packet::Pubrec && !error {
            return Some(Role::Part(key)); // the client sends PUBREL, and PUBCOMP is the last message
        }
        let words = if refused {
            errors::MQTT_CONNECT
        } else {
            errors::MQTT
        };
        exchange.status(Status {
            code: Some(u16::from(reason)),
            text: errors::word(words, u16::from(reason)),
            error,
        });
        Some(Role::Last(key))
    }
}

impl Aliases {
    /// A message's topic, which a number may stand for.
    fn topic(&mut self, publish: &Publish<'_>) -> SmolStr {
        let room = self.0.len() < MAX_ALIASES;
        let known = self
            .0
            .iter_mut()
            .find(|(number, _)| Some(*number) == publish.alias);
        if publish.topic.is_empty() {
            return known.map(|(_, topic)| topic.clone()).unwrap_or_default();
        }
        let topic = text::name(publish.topic);
        match (known, publish.alias) {
            (Some((_, input)), _) => *input = topic.clone(),
            (None, Some(alias)) if room => self.0.push((alias, topic.clone())),
            _ => {}
        }
        topic
    }
}
