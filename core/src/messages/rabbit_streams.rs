//! RabbitMQ's stream protocol (PROTOCOL.adoc of the rabbitmq_stream plugin). Each frame begins with a 4-byte length, a
//! command and its version. One exchange is a command of either side and the response with its correlation id. The
//! broker's deliveries (of a subscription) and confirmations are pushes. Heartbeats, credits and publishes are ignored,
//! and messages are not read.

use std::collections::BTreeMap;

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{Kind, Listener, Side, Status, errors, text};
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

/// Bytes of the length field, which it does not count.
const LENGTH: u64 = 4;
/// Upper bound on a frame. The default of `stream.frame_max` is 1 MiB, but delivered chunks are larger.
const MAX_FRAME: u32 = 1 << 26;
/// Bit of a command's key: the frame is a response.
const ANSWER: u16 = 0x8000;
/// The highest version of any command.
const MAX_VERSION: u16 = 2;
/// Response code of success.
const OK: u16 = 1;

/// Keys of the commands that decide something.
mod command {
    pub(super) const DECLARE_PUBLISHER: u16 = 1;
    pub(super) const PUBLISH: u16 = 2;
    pub(super) const PUBLISH_CONFIRM: u16 = 3;
    pub(super) const PUBLISH_ERROR: u16 = 4;
    pub(super) const SUBSCRIBE: u16 = 7;
    pub(super) const DELIVER: u16 = 8;
    pub(super) const STORE_OFFSET: u16 = 10;
    pub(super) const METADATA: u16 = 15;
    pub(super) const METADATA_UPDATE: u16 = 16;
    pub(super) const PEER_PROPERTIES: u16 = 17;
    pub(super) const TUNE: u16 = 20;
    pub(super) const OPEN: u16 = 21;
    pub(super) const CLOSE: u16 = 22;
    pub(super) const HEARTBEAT: u16 = 23;
    pub(super) const CONSUMER_UPDATE: u16 = 26;
    /// The highest one.
    pub(super) const RESOLVE_OFFSET_SPEC: u16 = 31;
}

#[derive(Debug, Default)]
pub(super) struct RabbitStreams {
    /// Ids of subscriptions, with the keys of their requests; ids have 8 bits.
    subscriptions: BTreeMap<u8, u64>,
}

/// Returns a command's name, and, if it names a stream, how many bytes precede that name after the correlation id.
fn command_name(command: u16) -> Option<(&'static str, Option<usize>)> {
    Some(match command {
        command::DECLARE_PUBLISHER => ("DeclarePublisher", None),
        5 => ("QueryPublisherSequence", None),
        6 => ("DeletePublisher", None),
        command::SUBSCRIBE => ("Subscribe", Some(1)),
        11 => ("QueryOffset", None),
        12 => ("Unsubscribe", None),
        13 => ("Create", Some(0)),
        14 => ("Delete", Some(0)),
        command::METADATA => ("Metadata", None),
        command::PEER_PROPERTIES => ("PeerProperties", None),
        18 => ("SaslHandshake", None),
        19 => ("SaslAuthenticate", None),
        command::OPEN => ("Open", Some(0)),
        command::CLOSE => ("Close", None),
        24 => ("Route", None),
        25 => ("Partitions", Some(0)),
        command::CONSUMER_UPDATE => ("ConsumerUpdate", None),
        27 => ("ExchangeCommandVersions", None),
        28 => ("StreamStats", Some(0)),
        29 => ("CreateSuperStream", Some(0)),
        30 => ("DeleteSuperStream", Some(0)),
        command::RESOLVE_OFFSET_SPEC => ("ResolveOffsetSpec", Some(0)),
        _ => return None,
    })
}

/// Whether a side sends this command. Only the client publishes, grants credits and stores offsets; only the broker
/// delivers and confirms.
fn may_send(side: Side, command: u16) -> bool {
    let is_request = command & ANSWER == 0;
    match command & !ANSWER {
        command::TUNE | command::CLOSE | command::HEARTBEAT => true,
        number if push_name(number).is_some() => side == Side::Server && is_request,
        command::CONSUMER_UPDATE => (side == Side::Server) == is_request,
        command::PUBLISH | command::STORE_OFFSET => side == Side::Client && is_request,
        command::DECLARE_PUBLISHER..=command::RESOLVE_OFFSET_SPEC => (side == Side::Client) == is_request,
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
        let command = cursor::be16_at(head.bytes, 4).unwrap_or(command::HEARTBEAT);
        match command {
            command::HEARTBEAT => head.len == 8,
            // without a correlation id
            command::PUBLISH | command::STORE_OFFSET | command::TUNE => true,
            number if push_name(number).is_some() => true,
            // a response has a correlation id and a code
            _ if command & ANSWER != 0 => head.len >= 10,
            _ => head.len >= 9,
        }
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        self.read(sink, head.bytes).unwrap_or_default()
    }
}

impl RabbitStreams {
    fn read(&mut self, sink: &mut Sink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let mut cursor = Cursor::new(head);
        cursor.u32be()?;
        let (command, _) = (cursor.u16be()?, cursor.u16be()?);
        let side = sink.side();
        if side == Side::Server
            && let Some(method) = push_name(command)
        {
            let id = cursor.u8().filter(|_| command == command::DELIVER);
            return Some(Role::Push(PushedMessage {
                method,
                subscription: id.and_then(|id| self.subscriptions.get(&id)).copied(),
                ..PushedMessage::default()
            }));
        }
        let (method, stream_at) = command_name(command & !ANSWER)?;
        let is_request = command & ANSWER == 0;
        let requester = if is_request { side } else { side.other() };
        let key = (requester.index() as u64) << 32 | u64::from(cursor.u32be()?);
        let mut exchange = sink.exchange(key);
        if is_request {
            let subscription = cursor::u8_at(cursor.rest(), 0).filter(|_| command == command::SUBSCRIBE);
            let target = stream_at.and_then(|skip| {
                cursor.take(skip)?;
                let len = cursor.u16be()?;
                cursor.take(usize::from(len)).map(text::name)
            });
            let is_setup = (command::PEER_PROPERTIES..=command::OPEN).contains(&command);
            let kind = if is_setup { Kind::Setup } else { Kind::Request };
            exchange.request(kind, method, &target.unwrap_or_default());
            if let Some(id) = subscription {
                exchange.subscribes(key);
                self.subscriptions.insert(id, key);
            }
            return Some(Role::Request(key));
        }
        exchange.begin_answer();
        // Metadata has a code for each stream
        if command & !ANSWER != command::METADATA
            && let Some(code) = cursor.u16be()
        {
            let text: SmolStr = if code == OK {
                "ok".into()
            } else {
                errors::word(errors::RABBIT_STREAMS, code)
                    .map_or_else(|| format_smolstr!("error {code}"), SmolStr::new_static)
            };
            exchange.status(Status::new(Some(code), Some(&text), code != OK));
        }
        Some(Role::Answer(key))
    }
}

/// Returns the name of a command that the broker sends as a push.
fn push_name(command: u16) -> Option<&'static str> {
    Some(match command {
        command::PUBLISH_CONFIRM => "PublishConfirm",
        command::PUBLISH_ERROR => "PublishError",
        command::DELIVER => "Deliver",
        command::METADATA_UPDATE => "MetadataUpdate",
        _ => return None,
    })
}
