//! Modbus/TCP (MODBUS Messaging on TCP/IP Implementation Guide 1.0b). Each message begins with the 7-byte MBAP header:
//! transaction id, protocol id 0, length, unit. One exchange is a request and the response with the same transaction
//! id, unit and function; several may be open, even with one transaction id. Register values are not read.

use std::collections::VecDeque;

use smol_str::format_smolstr;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::pending_queue::{push_dropping_oldest, take_first};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{Kind, Listener, Side, Status};
use crate::cursor::{self, Cursor};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Modbus,
    sniff: |first| framed::sniff_by_id::<Modbus>(first, |_, head| exchange_id(head)),
    // the response to a write of one value repeats its request, so a message does not show which side sent it
    begins_inside_turn: |side, first| framed::fit::<Modbus>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Modbus(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Modbus>;

/// Bytes of the header that the length field does not count: transaction id, protocol id and the length itself.
const UNCOUNTED: u64 = 6;
/// Upper bound on the length field: unit, function and 252 bytes of data (MODBUS Application Protocol 4.1).
const MAX_LENGTH: u16 = 254;
/// High bit of a response's function code: the response is an exception.
const EXCEPTION: u8 = 0x80;
/// Upper bound on requests without a response; beyond it the oldest is dropped. A master has at most a few dozen.
const MAX_WAITING: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Modbus {
    /// Requests without a response, oldest first: `exchange_id` of each, and its key for the sink.
    waiting: VecDeque<(u64, u64)>,
    /// Key of the next request.
    next_key: u64,
}

/// Returns transaction id, unit and function as one number. A response repeats all three.
fn exchange_id(head: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(head);
    let number = cursor.u16be()?;
    cursor.u32be()?;
    let (unit, function) = (cursor.u8()?, cursor.u8()? & !EXCEPTION);
    Some(u64::from(number) << 16 | u64::from(unit) << 8 | u64::from(function))
}

fn function_name(function: u8) -> Option<&'static str> {
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

/// Returns the length field that a message of this function has (MODBUS Application Protocol 6); 0 where it varies.
/// `count` is the message's own byte count, if it has one.
fn expected_length(side: Side, function: u8, count: Option<&u8>) -> u64 {
    let counts = |before: u64| count.map_or(0, |count| before + u64::from(*count));
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
            Some(len) if (2..=MAX_LENGTH).contains(&len) => Length::Is(u64::from(len) + UNCOUNTED),
            Some(_) => Length::Wrong,
        }
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        let Some(function) = cursor::u8_at(head.bytes, 7) else {
            return true;
        };
        let count_at = if side == Side::Client { 12 } else { 8 };
        let expected = expected_length(side, function, head.bytes.get(count_at));
        let name = match side {
            Side::Client => function_name(function),
            Side::Server => function_name(function & !EXCEPTION),
        };
        name.is_some() && (expected == 0 || head.len == expected + UNCOUNTED)
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        match sink.side() {
            Side::Client => self.read_request(sink, head.bytes),
            Side::Server => self.read_response(sink, head.bytes),
        }
        .unwrap_or_default()
    }

    fn lost(&mut self, side: Side) {
        if side == Side::Server {
            self.waiting.clear(); // a later response with the same id may answer a request in the hole
        }
    }
}

impl Modbus {
    fn read_request(&mut self, sink: &mut Sink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let (id, key) = (exchange_id(head)?, self.next_key);
        let (unit, function) = (cursor::u8_at(head, 6)?, cursor::u8_at(head, 7)?);
        self.next_key += 1;
        push_dropping_oldest(&mut self.waiting, MAX_WAITING, (id, key));
        let (number, target) = (format_smolstr!("{function}"), format_smolstr!("{unit}"));
        let method = function_name(function).unwrap_or(&number);
        sink.exchange(key).request(Kind::Request, method, &target);
        Some(Role::Last(key))
    }

    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let id = exchange_id(head)?;
        let (_, key) = take_first(&mut self.waiting, |(waiting, _)| *waiting == id)?;
        let is_error = cursor::u8_at(head, 7)? & EXCEPTION != 0;
        let code = if is_error { cursor::u8_at(head, 8) } else { Some(0) };
        let text = match code {
            Some(code) if is_error => format_smolstr!("exception {code}"),
            _ => "ok".into(),
        };
        sink.exchange(key)
            .answer(Status::new(code.map(u16::from), Some(&text), is_error));
        Some(Role::Last(key))
    }
}
