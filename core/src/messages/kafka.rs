//! Kafka's protocol (kafka.apache.org/protocol). Each message begins with a 4-byte length. One exchange is a request
//! and the response with its correlation id, which the client chose. The reader takes the API, the topic of Produce and
//! Fetch, and how long a Fetch may wait, but no records. A Produce with `acks` 0 gets no response and is not a request.

mod apis;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::pending_queue::{push_dropping_oldest, take_first};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{Kind, Listener, Side, Status, errors, text};
use crate::cursor::{self, Cursor};
use apis::Body;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Kafka,
    sniff: |first| framed::sniff_by_id::<Kafka>(first, correlation_id),
    begins_message: |side, first| {
        side == Side::Client && framed::fit::<Kafka>(side, first) == Fit::Whole && has_client_id(first)
    },
    begins_inside_turn: |side, first| framed::fit::<Kafka>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Kafka(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Kafka>;

/// Bytes of the length field, which it does not count.
const LENGTH_BYTES: u64 = 4;
/// Upper bound on a message: the default of a broker's `socket.request.max.bytes`.
const MAX_MESSAGE: u32 = 100 << 20;
/// Upper bound on a request's version; no API has reached it.
const MAX_VERSION: u16 = 25;
/// Upper bound on the bytes of a client id.
const MAX_CLIENT_ID: u16 = 256;
/// Upper bound on `Kafka::waiting`; beyond it the oldest request is dropped.
const MAX_WAITING: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Kafka {
    /// Requests whose response will have an error code: correlation id, API and version.
    waiting: VecDeque<(u64, u16, u16)>,
}

/// The header of a request; `body` stands at what follows the client id.
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
        let client_id = if len == u16::MAX {
            Some(&[][..])
        } else {
            cursor.take(usize::from(len))
        };
        let is_name = client_id?.iter().all(|byte| (b' '..=b'~').contains(byte));
        (is_name && is_header(api, version, id, len)).then_some(Request {
            api,
            version,
            id,
            body: cursor,
        })
    }
}

/// Whether these fields may be a request's header. All zeros are refused: a block of zeros after any length would fit,
/// and the response's correlation id would then be 0, too.
fn is_header(api: u16, version: u16, id: u32, client_id: u16) -> bool {
    let exists = apis::name(api).is_some() && version <= MAX_VERSION;
    let is_request = (api, version, id, client_id) != (0, 0, 0, 0);
    is_request && exists && id <= i32::MAX as u32 && (client_id <= MAX_CLIENT_ID || client_id == u16::MAX)
}

/// Whether a request has a client id. Without one it may be a response: a small correlation id stands where a request
/// has its API and version, and zeros follow.
fn has_client_id(first: &[u8]) -> bool {
    cursor::be16_at(first, 12).is_some_and(|len| (1..=MAX_CLIENT_ID).contains(&len))
}

/// Returns the correlation id of a message.
fn correlation_id(side: Side, head: &[u8]) -> Option<u64> {
    let offset = if side == Side::Client { 8 } else { 4 };
    cursor::be32_at(head, offset).map(u64::from)
}

impl WireFormat for Kafka {
    const MAX_HEAD: usize = 512;
    const MIN_PROOF: usize = 14;
    const LOST_REASON: &'static str = "not a message of Kafka";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let shortest = if side == Side::Client { 10 } else { 4 };
        match cursor::be32_at(first, 0) {
            None => Length::More,
            Some(len) if (shortest..=MAX_MESSAGE).contains(&len) => Length::Is(u64::from(len) + LENGTH_BYTES),
            Some(_) => Length::Wrong,
        }
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        let field = |at| cursor::be16_at(head.bytes, at);
        if side == Side::Server {
            return cursor::be32_at(head.bytes, 4).is_none_or(|id| id <= i32::MAX as u32);
        }
        if head.bytes.len() < 14 {
            return field(4).is_none_or(|api| apis::name(api).is_some())
                && field(6).is_none_or(|version| version <= MAX_VERSION);
        }
        let is_cut = (head.bytes.len() as u64) < head.len.min(Self::MAX_HEAD as u64);
        Request::read(head.bytes).is_some()
            || is_cut
                && is_header(
                    field(4).unwrap_or(u16::MAX),
                    field(6).unwrap_or(0),
                    0,
                    field(12).unwrap_or(0),
                )
    }

    fn has_magic(side: Side) -> bool {
        side == Side::Client
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        match sink.side() {
            Side::Client => self.read_request(sink, head.bytes),
            Side::Server => self.read_response(sink, head.bytes),
        }
        .unwrap_or_default()
    }

    fn lost(&mut self, _side: Side) {
        self.waiting.clear();
    }
}

impl Kafka {
    fn read_request(&mut self, sink: &mut Sink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let request = Request::read(head)?;
        let (key, method) = (u64::from(request.id), apis::name(request.api)?);
        let body = Body::read(request.api, request.version, request.body).unwrap_or_default();
        if body.has_no_answer {
            return None;
        }
        let kind = if body.waits { Kind::LongPoll } else { Kind::Request };
        if apis::has_error(request.api) {
            let entry = (key, request.api, request.version);
            push_dropping_oldest(&mut self.waiting, MAX_WAITING, entry);
        }
        let target = body.topic.map_or(SmolStr::default(), text::name);
        sink.exchange(key).request(kind, method, &target);
        Some(Role::Last(key))
    }

    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let key = correlation_id(Side::Server, head)?;
        let mut exchange = sink.exchange(key);
        exchange.begin_answer();
        let request = take_first(&mut self.waiting, |(id, ..)| *id == key);
        if let Some(code) =
            request.and_then(|(_, api, version)| apis::error(api, version, cursor::from(head, 8)))
        {
            let word = errors::word(errors::KAFKA, code);
            exchange.status(Status::new(Some(code), word, code > 0));
        }
        Some(Role::Last(key))
    }
}
