//! Kafka's protocol (kafka.apache.org/protocol). Requests and answers behind a length of four bytes, paired by the
//! number that the client gave (correlation id). Reads the API, the topic of Produce and Fetch, and how long a
//! Fetch may wait; records, and error codes deep inside answers, are not read. A Produce that wants no answer is no
//! request.

mod apis;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{Kind, Listener, RequestName, Side, Status, errors, text};
use crate::cursor::{self, Cursor};
use apis::Body;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Kafka,
    sniff: |first| framed::sniff_by_id::<Kafka>(first, id),
    begins_message: |side, first| {
        side == Side::Client && framed::fit::<Kafka>(side, first) == Fit::Whole && names_client(first)
    },
    begins_inside_turn: |side, first| framed::fit::<Kafka>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Kafka(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Kafka>;

/// A length, and the shortest message behind it: a number.
const LENGTH: u64 = 4;
/// The longest message: `socket.request.max.bytes` of a broker, `fetch.max.bytes` of a client may be as much.
const MAX_MESSAGE: u32 = 100 << 20;
/// The highest version of a request; the newest APIs have fewer.
const MAX_VERSION: u16 = 25;
/// A client's name is shorter.
const MAX_CLIENT: u16 = 256;

/// Such requests that may wait; beyond it the oldest is forgotten.
const MAX_WAITING: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Kafka {
    /// Requests whose answer has an error code: key, API and version.
    waiting: VecDeque<(u64, u16, u16)>,
}

/// The head of a request.
struct Request<'a> {
    api: u16,
    version: u16,
    id: u32,
    body: Cursor<'a>,
}

impl<'a> Request<'a> {
    fn read(head: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(head);
        cursor.u32be()?;
        let (api, version, id) = (cursor.u16be()?, cursor.u16be()?, cursor.u32be()?);
        let len = cursor.u16be()?;
        let client = if len == u16::MAX {
            Some(&[][..])
        } else {
            cursor.take(usize::from(len))
        };
        let is_name = client?.iter().all(|byte| (b' '..=b'~').contains(byte));
        (is_name && fits(api, version, id, len)).then_some(Request {
            api,
            version,
            id,
            body: cursor,
        })
    }
}

/// Zeros alone are no head: any length before a block of zeros looks so, and the answer's number is then 0 as well.
fn fits(api: u16, version: u16, id: u32, client: u16) -> bool {
    let known = apis::word(api).is_some() && version <= MAX_VERSION;
    let is_request = (api, version, id, client) != (0, 0, 0, 0);
    is_request && known && id <= i32::MAX as u32 && (client <= MAX_CLIENT || client == u16::MAX)
}

/// Whether a request has its client's name. Without one it may be an answer: the number that this repeats stands where
/// an API and its version would, and zeros behind it.
fn names_client(first: &[u8]) -> bool {
    cursor::be16_at(first, 12).is_some_and(|len| (1..=MAX_CLIENT).contains(&len))
}

/// The number of a message; a request's stands behind its API.
fn id(side: Side, head: &[u8]) -> Option<u64> {
    let place = if side == Side::Client { 8 } else { 4 };
    cursor::be32_at(head, place).map(u64::from)
}

impl WireFormat for Kafka {
    const MAX_HEAD: usize = 512;
    const MIN_PROOF: usize = 14;
    const LOST_REASON: &'static str = "not a message of Kafka";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let shortest = if side == Side::Client { 10 } else { 4 };
        match cursor::be32_at(first, 0) {
            None => Length::More,
            Some(len) if (shortest..=MAX_MESSAGE).contains(&len) => Length::Is(u64::from(len) + LENGTH),
            Some(_) => Length::Wrong,
        }
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        let part = |at| cursor::be16_at(head.bytes, at);
        if side == Side::Server {
            return cursor::be32_at(head.bytes, 4).is_none_or(|id| id <= i32::MAX as u32);
        }
        if head.bytes.len() < 14 {
            return part(4).is_none_or(|api| apis::word(api).is_some())
                && part(6).is_none_or(|version| version <= MAX_VERSION);
        }
        let is_cut = (head.bytes.len() as u64) < head.len.min(Self::MAX_HEAD as u64);
        Request::read(head.bytes).is_some()
            || is_cut
                && fits(
                    part(4).unwrap_or(u16::MAX),
                    part(6).unwrap_or(0),
                    0,
                    part(12).unwrap_or(0),
                )
    }

    fn has_magic(side: Side) -> bool {
        side == Side::Client
    }

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        match sink.side() {
            Side::Client => self.asks(sink, head.bytes),
            Side::Server => self.answers(sink, head.bytes),
        }
        .unwrap_or_default()
    }

    fn lost(&mut self, _side: Side) {
        self.waiting.clear();
    }
}

impl Kafka {
    fn asks(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let request = Request::read(head)?;
        let (key, method) = (u64::from(request.id), apis::word(request.api)?);
        let body = Body::read(request.api, request.version, request.body).unwrap_or_default();
        if body.no_answer {
            return None;
        }
        let kind = if body.waits { Kind::LongPoll } else { Kind::Request };
        if apis::has_error(request.api) {
            if self.waiting.len() >= MAX_WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back((key, request.api, request.version));
        }
        let target = body.topic.map_or(SmolStr::default(), text::name);
        let mut exchange = sink.exchange(key);
        exchange.begin_request(kind);
        exchange.name(RequestName {
            method,
            target: &target,
            host: "",
        });
        Some(Role::Last(key))
    }

    fn answers(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let key = id(Side::Server, head)?;
        let mut exchange = sink.exchange(key);
        exchange.begin_answer();
        let place = self.waiting.iter().position(|(waits, ..)| *waits == key);
        let request = place.and_then(|place| self.waiting.remove(place));
        if let Some(code) =
            request.and_then(|(_, api, version)| apis::error(api, version, cursor::from(head, 8)))
        {
            exchange.status(Status {
                code: Some(code),
                text: errors::word(errors::KAFKA, code),
                error: code > 0,
            });
        }
        Some(Role::Last(key))
    }
}
