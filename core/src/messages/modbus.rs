//! Modbus/TCP (MODBUS Messaging on TCP/IP 1.0b). Requests and answers behind a head of seven bytes, paired by their
//! number, unit and function; several may be open, also with one number. Reads function and exception, no value.

use std::collections::VecDeque;

use smol_str::format_smolstr;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{Kind, Listener, RequestName, Side, Status};
use crate::cursor::{self, Cursor};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Modbus,
    sniff: |first| framed::sniff_by_id::<Modbus>(first, |_, head| id(head)),
    // an answer to a write of one value repeats its request, and shows no side
    begins_inside_turn: |side, first| framed::fit::<Modbus>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Modbus(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Modbus>;

/// Number, protocol and length.
const BEFORE: u64 = 6;
/// Unit, function and the longest data of a function.
const MAX_LENGTH: u16 = 254;
/// The high bit of an answer's function: it is an exception.
const EXCEPTION: u8 = 0x80;
/// Requests that may wait; beyond it the oldest is forgotten. A master has one to a few dozen.
const MAX_WAITING: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Modbus {
    /// Requests that wait, oldest first: what identifies each, and its key.
    waiting: VecDeque<(u64, u64)>,
    /// The key of the next request.
    next: u64,
}

/// Number, unit and function, which an answer repeats.
fn id(head: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(head);
    let number = cursor.u16be()?;
    cursor.u32be()?;
    let (unit, function) = (cursor.u8()?, cursor.u8()? & !EXCEPTION);
    Some(u64::from(number) << 16 | u64::from(unit) << 8 | u64::from(function))
}

fn word(function: u8) -> Option<&'static str> {
    Some(match function {
        1 => "ReadCoils",
        2 => "ReadDiscreteInputs",
        3 => "ReadHoldingRegisters",
        4 => "ReadInputRegisters",
        5 => "WriteSingleCoil",
        6 => "WriteSingleRegister",
        7 => "ReadExceptionStatus",
        8 => "Diagnostics",
        11 => "GetCommEventCounter",
        12 => "GetCommEventLog",
        15 => "WriteMultipleCoils",
        16 => "WriteMultipleRegisters",
        17 => "ReportServerID",
        20 => "ReadFileRecord",
        21 => "WriteFileRecord",
        22 => "MaskWriteRegister",
        23 => "ReadWriteMultipleRegisters",
        24 => "ReadFIFOQueue",
        43 => "EncapsulatedInterfaceTransport",
        _ => return None,
    })
}

/// How long a function's request or answer is, from the unit on (MODBUS Application Protocol 6); 0 where it varies.
fn length_of(side: Side, function: u8, counted: Option<&u8>) -> u64 {
    let counts = |before: u64| counted.map_or(0, |count| before + u64::from(*count));
    match (side, function) {
        (Side::Server, EXCEPTION..) => 3,
        (Side::Client, 1..=6) | (Side::Server, 5 | 6 | 15 | 16) => 6,
        (Side::Client, 15 | 16) => counts(7),
        (Side::Server, 1..=4 | 23) => counts(3),
        (Side::Client, 7 | 11 | 12 | 17) => 2,
        _ => 0,
    }
}

impl WireFormat for Modbus {
    const MAX_HEAD: usize = 32;
    const MIN_PROOF: usize = 9;
    const LOST_REASON: &'static str = "not a message of Modbus";

    fn length(&self, _side: Side, first: &[u8]) -> Length {
        let protocol = first.get(2..4).unwrap_or_default();
        match cursor::be16_at(first, 4) {
            _ if protocol.iter().any(|byte| *byte != 0) => Length::Wrong,
            None => Length::More,
            Some(len) if (2..=MAX_LENGTH).contains(&len) => Length::Is(u64::from(len) + BEFORE),
            Some(_) => Length::Wrong,
        }
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        let Some(function) = cursor::u8_at(head.bytes, 7) else {
            return true;
        };
        let place = if side == Side::Client { 12 } else { 8 };
        let counted = head.bytes.get(place);
        let want = length_of(side, function, counted);
        let known = match side {
            Side::Client => word(function),
            Side::Server => word(function & !EXCEPTION),
        };
        known.is_some() && (want == 0 || head.len == want + BEFORE)
    }

    fn has_magic(_side: Side) -> bool {
        false
    }

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        match sink.side() {
            Side::Client => self.asks(sink, head.bytes),
            Side::Server => self.answers(sink, head.bytes),
        }
        .unwrap_or_default()
    }

    fn lost(&mut self, side: Side) {
        if side == Side::Server {
            self.waiting.clear(); // the next answer may be another's
        }
    }
}

impl Modbus {
    fn asks(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let (id, key) = (id(head)?, self.next);
        let (unit, function) = (cursor::u8_at(head, 6)?, cursor::u8_at(head, 7)?);
        self.next += 1;
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((id, key));
        let number = format_smolstr!("{function}");
        let mut exchange = sink.exchange(key);
        exchange.begin_request(Kind::Request);
        exchange.name(RequestName {
            method: word(function).unwrap_or(&number),
            target: &format_smolstr!("{unit}"),
            host: "",
        });
        Some(Role::Last(key))
    }

    fn answers(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let id = id(head)?;
        let place = self.waiting.iter().position(|(of, _)| *of == id)?;
        let (_, key) = self.waiting.remove(place)?;
        let failed = cursor::u8_at(head, 7)? & EXCEPTION != 0;
        let code = if failed { cursor::u8_at(head, 8) } else { Some(0) };
        let input = match code {
            Some(code) if failed => format_smolstr!("exception {code}"),
            _ => "ok".into(),
        };
        let mut exchange = sink.exchange(key);
        exchange.begin_answer();
        exchange.status(Status {
            code: code.map(u16::from),
            text: Some(&input),
            error: failed,
        });
        Some(Role::Last(key))
    }
}
