//! OpenFlow 1.0 to 1.5 (ONF TS-025). Each message begins with version, type, a 2-byte length and a transaction id. One
//! exchange is a request and the replies with its transaction id. Mostly the controller sends requests, although the
//! switch opens the connection; so an exchange's key has the requesting side. Echoes, reports of the switch and
//! commands without a reply are ignored, and flows are not read.

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{FirstBytes, Guess, Kind, Listener, Side, Status, errors};
use crate::cursor::{self, Cursor};
use smol_str::format_smolstr;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::OpenFlow,
    sniff,
    // both sides may send requests, so a message does not show which side sent it
    begins_inside_turn: |side, first| framed::fit::<OpenFlow>(side, first) == Fit::Whole,
    reader: |_| AnyReader::OpenFlow(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<OpenFlow>;

/// Bytes of a header: version, type, length, transaction id.
const HEADER: u16 = 8;
const HELLO: u8 = 0;
const ERROR: u8 = 1;
/// The highest message type of any version.
const LAST_TYPE: u8 = 35;
/// Error type OFPET_BAD_REQUEST.
const BAD_REQUEST: u16 = 1;
/// Flag of a multipart reply: another part follows.
const MORE: u16 = 1;
/// Type of the HELLO element that lists versions (1.3.1 and later).
const VERSIONS: u16 = 1;

#[derive(Debug, Default)]
pub(super) struct OpenFlow;

/// The role of a message type.
enum Meaning {
    Request(&'static str),
    Reply,
    /// A reply that may have several parts.
    Parts,
    Error,
    Other,
}

fn meaning(version: u8, kind: u8) -> Meaning {
    use Meaning::{Error, Other, Parts, Reply, Request};
    match (version, kind) {
        (_, ERROR) => Error,
        (_, 5) => Request("FEATURES_REQUEST"),
        (_, 7) => Request("GET_CONFIG_REQUEST"),
        (_, 6 | 8) => Reply,
        (1, 16) => Request("STATS_REQUEST"),
        (1, 17) => Parts,
        (1, 18) => Request("BARRIER_REQUEST"),
        (1, 20) => Request("QUEUE_GET_CONFIG_REQUEST"),
        (1, 19 | 21) => Reply,
        (1, _) => Other,
        (_, 18) => Request("MULTIPART_REQUEST"),
        (_, 19) => Parts,
        (_, 20) => Request("BARRIER_REQUEST"),
        (_, 22) => Request("QUEUE_GET_CONFIG_REQUEST"),
        (_, 24) => Request("ROLE_REQUEST"),
        (_, 26) => Request("GET_ASYNC_REQUEST"),
        (_, 21 | 23 | 25 | 27) => Reply,
        (5.., 34) => Request("BUNDLE_CONTROL"),
        _ => Other,
    }
}

/// Returns the name of a multipart request's type (7.3.5). The first ones are also STATS_REQUEST's in 1.0.
fn multipart_name(kind: u16) -> &'static str {
    match kind {
        0 => "DESC",
        1 => "FLOW",
        2 => "AGGREGATE",
        3 => "TABLE",
        4 => "PORT_STATS",
        5 => "QUEUE",
        6 => "GROUP",
        7 => "GROUP_DESC",
        8 => "GROUP_FEATURES",
        9 => "METER",
        10 => "METER_CONFIG",
        11 => "METER_FEATURES",
        12 => "TABLE_FEATURES",
        13 => "PORT_DESC",
        _ => "",
    }
}

/// Both sides' messages have to fit, with at least one whole header each.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    let min_len = usize::from(HEADER);
    match framed::sniff::<OpenFlow>(first) {
        Guess::Yes if first.input.len() < min_len || first.other.len() < min_len => Guess::NeedsOtherSide,
        guess => guess,
    }
}

struct Message {
    version: u8,
    kind: u8,
    id: u32,
}

impl Message {
    fn read(head: &[u8]) -> Option<Message> {
        let mut cursor = Cursor::new(head);
        let (version, kind, _) = (cursor.u8()?, cursor.u8()?, cursor.u16be()?);
        let id = cursor.u32be()?;
        Some(Message { version, kind, id })
    }

    /// Returns the key of the exchange whose request `requester` sends.
    fn key(&self, requester: Side) -> u64 {
        (requester.index() as u64) << 32 | u64::from(self.id)
    }
}

impl WireFormat for OpenFlow {
    const MAX_HEAD: usize = 16;
    const MIN_PROOF: usize = 8;
    const LOST_REASON: &'static str = "not a message of OpenFlow";

    fn length(&self, _side: Side, first: &[u8]) -> Length {
        let (version, kind) = (cursor::u8_at(first, 0), cursor::u8_at(first, 1));
        if version.is_some_and(|version| !(1..=6).contains(&version)) {
            return Length::Wrong;
        }
        match (kind, cursor::be16_at(first, 2)) {
            (Some(kind), _) if kind > LAST_TYPE => Length::Wrong,
            (_, Some(len)) if len >= HEADER => Length::Is(u64::from(len)),
            (_, Some(_)) => Length::Wrong,
            _ => Length::More,
        }
    }

    fn fits(_side: Side, head: Head<'_>) -> bool {
        let kind = cursor::u8_at(head.bytes, 1);
        let header_len = u64::from(HEADER);
        match kind {
            Some(HELLO) if head.len > header_len => {
                // since 1.3.1 a HELLO has elements, each with its length; one type of them is known
                match (cursor::be16_at(head.bytes, 8), cursor::be16_at(head.bytes, 10)) {
                    (Some(kind), _) if kind != VERSIONS => false,
                    (_, Some(len)) => len >= 8 && header_len + u64::from(len) <= head.len,
                    _ => true,
                }
            }
            Some(ERROR) => head.len >= header_len + 4,
            _ => true,
        }
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let Some(message) = Message::read(head.bytes) else {
            return Role::Ignored;
        };
        let side = sink.side();
        let has_more = cursor::be16_at(head.bytes, 10).is_some_and(|flags| flags & MORE != 0);
        match meaning(message.version, message.kind) {
            Meaning::Request(method) => {
                let is_multipart = matches!(method, "STATS_REQUEST" | "MULTIPART_REQUEST");
                let multipart = cursor::be16_at(head.bytes, 8).filter(|_| is_multipart);
                let key = message.key(side);
                sink.exchange(key)
                    .request(Kind::Request, method, multipart.map_or("", multipart_name));
                Role::Request(key)
            }
            Meaning::Parts if has_more => {
                let key = message.key(side.other());
                sink.exchange(key).begin_answer();
                Role::Part(key)
            }
            Meaning::Reply | Meaning::Parts => begin_answer(sink, &message, None),
            Meaning::Error => begin_answer(sink, &message, cursor::be32_at(head.bytes, 8)),
            Meaning::Other => Role::Ignored,
        }
    }
}

/// Begins the response to the other side's request. `error` has the type and the code of an error, 16 bits each.
fn begin_answer(sink: &mut Sink<'_, impl Listener>, message: &Message, error: Option<u32>) -> Role {
    let text = match error.map(|error| ((error >> 16) as u16, error as u16)) {
        Some((kind, code)) => {
            let names = if message.version == 1 {
                errors::OPENFLOW_1_0
            } else {
                errors::OPENFLOW
            };
            let exact = errors::word(errors::OPENFLOW_REQUEST, code).filter(|_| kind == BAD_REQUEST);
            match (errors::word(names, kind), exact) {
                (Some(kind), Some(exact)) => format_smolstr!("{kind}/{exact}"),
                (Some(kind), None) => format_smolstr!("{kind}/{code}"),
                _ => format_smolstr!("error {kind}/{code}"),
            }
        }
        None => "ok".into(),
    };
    let key = message.key(sink.side().other());
    sink.exchange(key).answer(Status::word(&text, error.is_some()));
    Role::Answer(key)
}
