//! EtherNet/IP (ODVA, "The CIP Networks Library", volume 2) and the CIP services that it carries. Each message begins
//! with a 24-byte header, which has its length. One exchange is a request and the response with the same sender
//! context, or the same sequence number of a connected message. Services and their status are read, no values.

use std::collections::VecDeque;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::pending_queue::{push_dropping_oldest, take_first};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{Kind, Listener, Side, Status, errors};
use crate::cursor::{self, Cursor};
use smol_str::{SmolStr, format_smolstr};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Enip,
    sniff: framed::sniff::<Enip>,
    begins_inside_turn: |side, first| framed::fit::<Enip>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Enip(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Enip>;

/// Bytes of a header: command, length, session, status, sender context, options.
const HEADER: u64 = 24;
/// RegisterSession, and UnRegisterSession, which is not answered.
const REGISTER: u16 = 0x65;
const UNREGISTER: u16 = 0x66;
/// SendRRData, with an unconnected message.
const SEND: u16 = 0x6F;
/// SendUnitData, with a message of a connection.
const SEND_CONNECTED: u16 = 0x70;
/// Types of the items that carry data (volume 2, 2-6.1).
const CONNECTED_DATA: u16 = 0xB1;
const UNCONNECTED_DATA: u16 = 0xB2;
/// Bit of a CIP service: the message is a response.
const ANSWER: u8 = 0x80;
/// Statuses of CIP that are not errors: success, and partial transfer, whose remainder is requested separately.
const NO_ERRORS: [u32; 2] = [0, 6];
/// Upper bound on requests without a response; beyond it the oldest is dropped.
const MAX_WAITING: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Enip {
    /// Requests without a response, oldest first: `Message::id` of each, and its key.
    waiting: VecDeque<(u64, u64)>,
    next_key: u64,
}

fn command_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x04 => "ListServices",
        0x63 => "ListIdentity",
        0x64 => "ListInterfaces",
        REGISTER => "RegisterSession",
        UNREGISTER => "UnRegisterSession",
        SEND => "SendRRData",
        SEND_CONNECTED => "SendUnitData",
        _ => return None,
    })
}

fn service_name(number: u8) -> &'static str {
    match number {
        0x01 => "GetAttributesAll",
        0x03 => "GetAttributeList",
        0x04 => "SetAttributeList",
        0x0A => "MultipleServicePacket",
        0x0E => "GetAttributeSingle",
        0x10 => "SetAttributeSingle",
        0x4B => "ExecutePCCC",
        0x4C => "ReadTag",
        0x4D => "WriteTag",
        0x4E => "ForwardClose",
        0x52 => "ReadTagFragmented",
        0x53 => "WriteTagFragmented",
        0x54 => "ForwardOpen",
        0x55 => "GetInstanceAttributeList",
        0x5B => "LargeForwardOpen",
        _ => "CIP",
    }
}

struct Message<'a> {
    command: u16,
    status: u32,
    context: u64,
    /// Sequence number of a connected message.
    sequence: Option<u16>,
    /// The CIP message; empty if there is none.
    cip: &'a [u8],
}

impl<'a> Message<'a> {
    fn read(head: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(head);
        let (command, _, _) = (cursor.u16le()?, cursor.u16le()?, cursor.u32le()?);
        let (status, context, _) = (cursor.u32le()?, cursor.u64le()?, cursor.u32le()?);
        let (sequence, cip) = data_item(cursor).unwrap_or_default();
        Some(Message {
            command,
            status,
            context,
            sequence,
            cip,
        })
    }

    /// Returns what a response repeats of its request: command and sequence number or context.
    fn id(&self) -> u64 {
        let number = self.sequence.map_or(self.context, u64::from);
        u64::from(self.command) << 48 ^ number
    }
}

/// Finds the item with the CIP message, and the sequence number of a connected one.
fn data_item(mut cursor: Cursor<'_>) -> Option<(Option<u16>, &[u8])> {
    let (_, _, count) = (cursor.u32le()?, cursor.u16le()?, cursor.u16le()?);
    for _ in 0..count.min(4) {
        let (kind, len) = (cursor.u16le()?, usize::from(cursor.u16le()?));
        match kind {
            UNCONNECTED_DATA => return Some((None, cursor.rest())),
            CONNECTED_DATA => return Some((Some(cursor.u16le()?), cursor.rest())),
            _ => cursor.take(len)?,
        };
    }
    None
}

impl WireFormat for Enip {
    const MAX_HEAD: usize = 96;
    const MIN_PROOF: usize = 24;
    const LOST_REASON: &'static str = "not a message of EtherNet/IP";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let mut cursor = Cursor::new(first);
        match cursor.u16le() {
            None => return Length::More,
            Some(number) if command_name(number).is_none() => return Length::Wrong,
            // the session handle is 0 before there is a session
            Some(..=REGISTER)
                if side == Side::Client && first.iter().skip(4).take(4).any(|byte| *byte != 0) =>
            {
                return Length::Wrong;
            }
            Some(_) => {}
        }
        match cursor.u16le() {
            Some(len) => Length::Is(u64::from(len) + HEADER),
            None => Length::More,
        }
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        let Some(message) = Message::read(head.bytes) else {
            return true;
        };
        let has_no_options = cursor::be32_at(head.bytes, 20).is_none_or(|options| options == 0);
        let is_whole = match message.command {
            REGISTER => head.len == HEADER + 4,
            SEND | SEND_CONNECTED => head.len >= HEADER + 16,
            _ => true,
        };
        has_no_options && is_whole && (side == Side::Server || message.status == 0)
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let Some(message) = Message::read(head.bytes) else {
            return Role::Ignored;
        };
        match sink.side() {
            Side::Client => self.read_request(sink, &message),
            Side::Server => self.read_response(sink, &message),
        }
        .unwrap_or_default()
    }

    fn lost(&mut self, side: Side) {
        if side == Side::Server {
            self.waiting.clear(); // a later response with the same id may answer a request in the hole
        }
    }
}

impl Enip {
    fn read_request(&mut self, sink: &mut Sink<'_, impl Listener>, message: &Message<'_>) -> Option<Role> {
        let method = match (message.command, message.cip.first()) {
            (UNREGISTER, _) => return None,
            (SEND | SEND_CONNECTED, Some(number)) if number & ANSWER == 0 => service_name(*number),
            (SEND_CONNECTED, _) => return None,
            (number, _) => command_name(number)?,
        };
        let key = self.next_key;
        self.next_key += 1;
        push_dropping_oldest(&mut self.waiting, MAX_WAITING, (message.id(), key));
        let sets_up = matches!(method, "RegisterSession" | "ForwardOpen" | "LargeForwardOpen");
        let kind = if sets_up { Kind::Setup } else { Kind::Request };
        sink.exchange(key).request(kind, method, "");
        Some(Role::Last(key))
    }

    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>, message: &Message<'_>) -> Option<Role> {
        let id = message.id();
        let (_, key) = take_first(&mut self.waiting, |(waiting, _)| *waiting == id)?;
        // after the service and a zero
        let cip_status = match message.cip {
            [service, _, status, ..] if *service >= ANSWER => *status,
            _ => 0,
        };
        let (code, word) = match message.status {
            0 => (cip_status.into(), errors::word(errors::CIP, cip_status.into())),
            status => (status, None),
        };
        let text = match word {
            _ if code == 0 => SmolStr::new_static("ok"),
            Some(word) => SmolStr::new_static(word),
            None => format_smolstr!("error {code:#04x}"),
        };
        let is_error = !NO_ERRORS.contains(&code);
        let status = Status::new(u16::try_from(code).ok(), Some(&text), is_error);
        sink.exchange(key).answer(status);
        Some(Role::Last(key))
    }
}
