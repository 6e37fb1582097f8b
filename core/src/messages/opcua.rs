//! OPC UA over TCP (OPC 10000-6, 7.1). Each chunk begins with a 3-letter type, a chunk letter and a 4-byte length. One
//! exchange is a service's request and the response with its request id. If messages are encrypted, a response is
//! paired with the oldest request. Services and results are read, no values.

use std::collections::VecDeque;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::pending_queue::push_dropping_oldest;
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, FirstBytes, Guess, Kind, Listener, Side, Status, errors};
use crate::cursor::{self, Cursor};
use smol_str::{SmolStr, format_smolstr};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::OpcUa,
    sniff,
    begins_message: |side, first| {
        side == Side::Client && first.starts_with(b"HELF") && framed::fit::<OpcUa>(side, first) == Fit::Whole
    },
    begins_inside_turn: |side, first| framed::fit::<OpcUa>(side, first) == Fit::Whole,
    reader: |_| AnyReader::OpcUa(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<OpcUa>;

/// Bytes of a header: type, chunk letter, length.
const HEADER: u32 = 8;
/// Upper bound on a chunk; most stacks use 64 KiB.
const MAX_CHUNK: u32 = 1 << 24;
/// Offsets of the request id and of the service's id in a message.
const ID: usize = 20;
const SERVICE: usize = 24;
/// Offset of a response's result: after the service, its time and the handle of the request.
const RESULT: usize = SERVICE + 16;
/// Upper bound on encrypted requests without a response; beyond it the oldest is dropped.
const MAX_WAITING: usize = 256;
/// Id of ServiceFault, the response to any request that failed.
const FAULT: u16 = 397;
/// By how much the id of a response is above that of its request.
const RESPONSE_OFFSET: u16 = 3;
/// Encoding of a NodeId with an id of two bytes.
const FOUR_BYTE_NODE_ID: u16 = 1;
/// Keys of set-ups and of encrypted requests. Request ids have 32 bits.
const SETUP: u64 = 1 << 40;
const ENCRYPTED: u64 = 1 << 41;

#[derive(Debug, Default)]
pub(super) struct OpcUa {
    /// Keys of encrypted requests without a response, oldest first.
    waiting: VecDeque<u64>,
    /// Number of encrypted requests.
    encrypted: u64,
    /// Key of each side's message whose further chunks follow.
    continued: BySide<Option<u64>>,
}

/// Returns the name of a service by the id of its request in the binary encoding.
fn service_name(service: u16) -> Option<&'static str> {
    Some(match service {
        422 => "FindServers",
        428 => "GetEndpoints",
        446 => "OpenSecureChannel",
        461 => "CreateSession",
        467 => "ActivateSession",
        473 => "CloseSession",
        527 => "Browse",
        533 => "BrowseNext",
        554 => "TranslateBrowsePaths",
        560 => "RegisterNodes",
        566 => "UnregisterNodes",
        631 => "Read",
        664 => "HistoryRead",
        673 => "Write",
        712 => "Call",
        751 => "CreateMonitoredItems",
        763 => "ModifyMonitoredItems",
        769 => "SetMonitoringMode",
        781 => "DeleteMonitoredItems",
        787 => "CreateSubscription",
        793 => "ModifySubscription",
        799 => "SetPublishingMode",
        826 => "Publish",
        832 => "Republish",
        847 => "DeleteSubscriptions",
        _ => return None,
    })
}

fn sniff(first: &FirstBytes<'_>) -> Guess {
    match framed::sniff::<OpcUa>(first) {
        Guess::NeedsOtherSide if first.input.starts_with(b"HELF") && first.input.len() >= 32 => Guess::Yes,
        guess => guess,
    }
}

/// Returns the id of a message's service, a NodeId of four bytes. None if the message is encrypted.
fn service(head: &[u8]) -> Option<u16> {
    let mut cursor = Cursor::new(cursor::from(head, SERVICE));
    let encoding = cursor.u16le()?;
    cursor.u16le().filter(|_| encoding == FOUR_BYTE_NODE_ID)
}

impl WireFormat for OpcUa {
    const MAX_HEAD: usize = 64;
    const MIN_PROOF: usize = 8;
    const LOST_REASON: &'static str = "not a message of OPC UA";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let types: &[&[u8]] = match side {
            Side::Client => &[b"HELF", b"OPNF", b"MSGF", b"MSGC", b"MSGA", b"CLOF"],
            Side::Server => &[b"ACKF", b"ERRF", b"RHEF", b"OPNF", b"MSGF", b"MSGC", b"MSGA"],
        };
        let fits = |kind: &&[u8]| kind.iter().zip(first).all(|(want, byte)| want == byte);
        if !types.iter().any(fits) {
            return Length::Wrong;
        }
        match cursor::le32_at(first, 4) {
            Some(len) if (HEADER..=MAX_CHUNK).contains(&len) => Length::Is(u64::from(len)),
            Some(_) => Length::Wrong,
            None => Length::More,
        }
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let side = sink.side();
        let is_last = head.bytes.get(3) != Some(&b'C');
        let continued = self.continued[side];
        if is_last {
            self.continued[side] = None;
        }
        if let Some(key) = continued
            && head.bytes.starts_with(b"MSG")
        {
            return if is_last { Role::Last(key) } else { Role::Part(key) };
        }
        let role = match (side, head.bytes.get(..3).unwrap_or_default()) {
            (Side::Client, b"HEL") => begin_request(sink, SETUP, Kind::Setup, "Hello"),
            (Side::Server, b"ACK") => begin_answer(sink, SETUP, 0),
            (Side::Server, b"ERR") => {
                let code = cursor::le32_at(head.bytes, 8).unwrap_or(0);
                let key = self.waiting.pop_front().unwrap_or(SETUP);
                begin_answer(sink, key, code)
            }
            (Side::Client, b"OPN") => begin_request(sink, SETUP, Kind::Setup, "OpenSecureChannel"),
            (Side::Server, b"OPN") => begin_answer(sink, SETUP, 0),
            (Side::Client, b"MSG") => self.read_request(sink, head.bytes),
            (Side::Server, b"MSG") => self.read_response(sink, head.bytes),
            _ => Role::Ignored,
        };
        match role {
            Role::Last(key) if !is_last => {
                self.continued[side] = Some(key);
                Role::Part(key)
            }
            role => role,
        }
    }

    fn lost(&mut self, side: Side) {
        self.continued[side] = None;
        self.waiting.clear();
    }
}

impl OpcUa {
    fn read_request(&mut self, sink: &mut Sink<'_, impl Listener>, head: &[u8]) -> Role {
        let service = service(head).and_then(service_name);
        let id = cursor::le32_at(head, ID);
        if let (Some(method), Some(id)) = (service, id) {
            let kind = match method {
                "Publish" => Kind::LongPoll,
                "CreateSession" | "ActivateSession" => Kind::Setup,
                _ => Kind::Request,
            };
            return begin_request(sink, u64::from(id), kind, method);
        }
        let key = ENCRYPTED + self.encrypted;
        self.encrypted += 1;
        push_dropping_oldest(&mut self.waiting, MAX_WAITING, key);
        begin_request(sink, key, Kind::Request, "message")
    }

    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>, head: &[u8]) -> Role {
        let request_of = |response: u16| response.checked_sub(RESPONSE_OFFSET);
        let is_readable =
            service(head).is_some_and(|id| id == FAULT || request_of(id).and_then(service_name).is_some());
        let id = cursor::le32_at(head, ID).filter(|_| is_readable);
        let result = cursor::le32_at(head, RESULT);
        match id {
            Some(id) => begin_answer(sink, u64::from(id), result.unwrap_or(0)),
            None => self.waiting.pop_front().map_or(Role::Ignored, |key| {
                sink.exchange(key).begin_answer();
                Role::Last(key)
            }),
        }
    }
}

fn begin_request(sink: &mut Sink<'_, impl Listener>, key: u64, kind: Kind, method: &str) -> Role {
    sink.exchange(key).request(kind, method, "");
    Role::Last(key)
}

/// Begins a response with this result, whose high bit means an error (OPC 10000-4, 7.39).
fn begin_answer(sink: &mut Sink<'_, impl Listener>, key: u64, result: u32) -> Role {
    let is_error = result >> 31 == 1;
    let text: SmolStr = if result == 0 {
        "ok".into()
    } else {
        // the high half is the code, the low half has flags
        errors::word(errors::OPC_UA, (result >> 16) as u16)
            .map_or_else(|| format_smolstr!("{result:08x}"), SmolStr::new_static)
    };
    sink.exchange(key).answer(Status::word(&text, is_error));
    Role::Last(key)
}
