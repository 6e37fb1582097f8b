//! RabbitMQ's stream protocol (PROTOCOL.adoc of its plugin): commands behind a length, paired by their number; the broker
//! may ask as well. What it delivers and confirms is a push, of a subscription where it delivers. Heartbeats, credits and what is published are left out.
//! Reads commands and streams, no message.

use std::collections::BTreeMap;

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{Kind, Listener, RequestName, Side, Status, errors, text};
use crate::cursor::{self, Cursor};
use smol_str::{SmolStr, format_smolstr};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::RabbitStreams,
    sniff: framed::sniff::<RabbitStreams>,
    begins_inside_turn: |side, first| framed::fit::<RabbitStreams>(side, first) == Fit::Whole,
    reader: |_| AnyReader::RabbitStreams(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<RabbitStreams>;

/// The length of what follows, which counts the command and its version.
const LENGTH: u64 = 4;
/// The longest frame that is believed; brokers take 1 MiB (`stream.frame_max`), chunks are larger.
const MAX_FRAME: u32 = 1 << 26;
/// A command that answers.
const ANSWER: u16 = 0x8000;
/// Versions of commands so far.
const MAX_VERSION: u16 = 2;
const OK: u16 = 1;
const LAST: u16 = 31;
const HEARTBEAT: u16 = 23;
const SUBSCRIBE: u16 = 7;
const DELIVER: u16 = 8;

#[derive(Debug, Default)]
pub(super) struct RabbitStreams {
    /// Numbers of subscriptions, and the keys of what subscribed them: at most one for each.
    subscriptions: BTreeMap<u8, u64>,
}

/// What is requested, and whether a stream's name stands behind the number, or behind one byte more.
fn word(command: u16) -> Option<(&'static str, Option<usize>)> {
    Some(match command {
        1 => ("DeclarePublisher", None),
        5 => ("QueryPublisherSequence", None),
        6 => ("DeletePublisher", None),
        7 => ("Subscribe", Some(1)),
        11 => ("QueryOffset", None),
        12 => ("Unsubscribe", None),
        13 => ("Create", Some(0)),
        14 => ("Delete", Some(0)),
        15 => ("Metadata", None),
        17 => ("PeerProperties", None),
        18 => ("SaslHandshake", None),
        19 => ("SaslAuthenticate", None),
        21 => ("Open", Some(0)),
        22 => ("Close", None),
        24 => ("Route", None),
        25 => ("Partitions", Some(0)),
        26 => ("ConsumerUpdate", None),
        27 => ("ExchangeCommandVersions", None),
        28 => ("StreamStats", Some(0)),
        29 => ("CreateSuperStream", Some(0)),
        30 => ("DeleteSuperStream", Some(0)),
        31 => ("ResolveOffsetSpec", Some(0)),
        _ => return None,
    })
}

/// Whether a side sends this command. Who publishes, credits and stores offsets is the client; who delivers and confirms
/// the broker.
fn may_send(side: Side, command: u16) -> bool {
    match command & !ANSWER {
        20 | 22 | HEARTBEAT => true,
        3 | 4 | DELIVER | 16 => side == Side::Server && command & ANSWER == 0,
        26 => (side == Side::Server) == (command & ANSWER == 0),
        2 | 10 => side == Side::Client && command & ANSWER == 0,
        1..=LAST => (side == Side::Client) == (command & ANSWER == 0),
        _ => false,
    }
}

impl WireFormat for RabbitStreams {
    const MAX_HEAD: usize = 280;
    const MIN_PROOF: usize = 8;
    const LOST_REASON: &'static str = "not a frame of RabbitMQ's streams";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        if cursor::be16_at(first, 4).is_some_and(|command| !may_send(side, command)) {
            return Length::Wrong;
        }
        match cursor::be16_at(first, 6) {
            Some(version) if (1..=MAX_VERSION).contains(&version) => {}
            Some(_) => return Length::Wrong,
            None => return Length::More,
        }
        match cursor::be32_at(first, 0) {
            Some(len) if (4..=MAX_FRAME).contains(&len) => Length::Is(u64::from(len) + LENGTH),
            _ => Length::Wrong,
        }
    }

    fn fits(_side: Side, head: Head<'_>) -> bool {
        let command = cursor::be16_at(head.bytes, 4).unwrap_or(HEARTBEAT);
        match command {
            HEARTBEAT => head.len == 8,
            2..=4 | DELIVER | 10 | 16 | 20 => true,
            // an answer has its number and a code
            _ if command & ANSWER != 0 => head.len >= 10,
            _ => head.len >= 9,
        }
    }

    fn has_magic(_side: Side) -> bool {
        false
    }

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        self.read(sink, head.bytes).unwrap_or_default()
    }

    fn lost(&mut self, _side: Side) {}
}

impl RabbitStreams {
    fn read(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let mut cursor = Cursor::new(head);
        cursor.u32be()?;
        let (command, _) = (cursor.u16be()?, cursor.u16be()?);
        let side = sink.side();
        if side == Side::Server
            && let Some(method) = pushed(command)
        {
            let number = cursor.u8().filter(|_| command == DELIVER);
            return Some(Role::Push(PushedMessage {
                method,
                subscription: number.and_then(|number| self.subscriptions.get(&number)).copied(),
                ..PushedMessage::default()
            }));
        }
        let (method, named) = word(command & !ANSWER)?;
        let (asker, id) = match command & ANSWER {
            0 => (side, cursor.u32be()?),
            _ => (side.other(), cursor.u32be()?),
        };
        let key = (asker.index() as u64) << 32 | u64::from(id);
        let mut exchange = sink.exchange(key);
        if command & ANSWER == 0 {
            let number = cursor::u8_at(cursor.rest(), 0).filter(|_| command == SUBSCRIBE);
            let target = named.and_then(|skip| {
                cursor.take(skip)?;
                let len = cursor.u16be()?;
                cursor.take(usize::from(len)).map(text::name)
            });
            let sets_up = matches!(command, 17..=21);
            exchange.begin_request(if sets_up { Kind::Setup } else { Kind::Request });
            exchange.name(RequestName {
                method,
                target: &target.unwrap_or_default(),
                host: "",
            });
            if let Some(number) = number {
                exchange.subscribes(key);
                self.subscriptions.insert(number, key);
            }
            return Some(Role::Request(key));
        }
        exchange.begin_answer();
        // (a list of streams has a result for each)
        if let Some(code) = cursor.u16be().filter(|_| method != "Metadata") {
            let text: SmolStr = if code == OK {
                "ok".into()
            } else {
                errors::word(errors::RABBIT_STREAMS, code)
                    .map_or_else(|| format_smolstr!("error {code}"), SmolStr::new_static)
            };
            exchange.status(Status {
                code: Some(code),
                text: Some(&text),
                error: code != OK,
            });
        }
        Some(Role::Answer(key))
    }
}

fn pushed(command: u16) -> Option<&'static str> {
    Some(match command {
        3 => "PublishConfirm",
        4 => "PublishError",
        DELIVER => "Deliver",
        16 => "MetadataUpdate",
        _ => return None,
    })
}
