//! iSCSI (RFC 7143). Each PDU begins with a 48-byte header, which has the length of its data. One exchange is a SCSI
//! command, log-in or other request and the response with its initiator task tag; the data of a write belong to the
//! request. NOPs are ignored. Digests are not supported: a connection with digests is read in turns.

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{FirstBytes, Guess, Kind, Listener, Side, Status};
use crate::cursor;
use smol_str::{SmolStr, format_smolstr};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Iscsi,
    sniff,
    begins_inside_turn: |side, first| framed::fit::<Iscsi>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Iscsi(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Iscsi>;

/// Bytes of the basic header segment.
const HEADER: usize = 48;
/// Upper bound on a data segment; most targets accept 256 KiB (`MaxRecvDataSegmentLength`).
const MAX_DATA: u32 = 1 << 20;
/// Flag of Data-In: the command's status is in it.
const WITH_STATUS: u8 = 1;
/// SCSI statuses that are not errors (SAM-5 5.3.1).
const GOOD: u8 = 0;
const CONDITION_MET: u8 = 4;

/// Opcodes of the initiator and, from `NOP_IN`, of the target (11.1.1).
mod opcode {
    pub(super) const NOP_OUT: u8 = 0x00;
    pub(super) const SCSI_COMMAND: u8 = 0x01;
    pub(super) const TASK_MANAGEMENT: u8 = 0x02;
    pub(super) const LOGIN: u8 = 0x03;
    pub(super) const TEXT: u8 = 0x04;
    pub(super) const DATA_OUT: u8 = 0x05;
    pub(super) const LOGOUT: u8 = 0x06;
    pub(super) const SNACK: u8 = 0x10;
    pub(super) const NOP_IN: u8 = 0x20;
    pub(super) const SCSI_RESPONSE: u8 = 0x21;
    pub(super) const TASK_MANAGEMENT_RESPONSE: u8 = 0x22;
    pub(super) const LOGIN_RESPONSE: u8 = 0x23;
    pub(super) const TEXT_RESPONSE: u8 = 0x24;
    pub(super) const DATA_IN: u8 = 0x25;
    pub(super) const LOGOUT_RESPONSE: u8 = 0x26;
    pub(super) const READY_TO_TRANSFER: u8 = 0x31;
    pub(super) const ASYNC_MESSAGE: u8 = 0x32;
    pub(super) const REJECT: u8 = 0x3F;
}

#[derive(Debug, Default)]
pub(super) struct Iscsi;

/// Returns a PDU's opcode, without the bit of immediate delivery.
fn operation(head: &[u8]) -> Option<u8> {
    Some(cursor::u8_at(head, 0)? & 0x3F)
}

/// Returns the initiator task tag.
fn tag(head: &[u8]) -> Option<u64> {
    cursor::be32_at(head, 16).map(u64::from)
}

/// The target repeats the tag of a request. 0, which any protocol may repeat, counts in log-ins only.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    framed::sniff_by_id::<Iscsi>(first, |_, head| {
        let is_login = matches!(operation(head)?, opcode::LOGIN | opcode::LOGIN_RESPONSE);
        tag(head).filter(|tag| is_login || (1..u64::from(u32::MAX)).contains(tag))
    })
}

/// Returns the name of a SCSI command by its operation code.
fn command_name(command: u8) -> &'static str {
    match command {
        0x00 => "TEST UNIT READY",
        0x03 => "REQUEST SENSE",
        0x08 | 0x28 | 0x88 | 0xA8 => "READ",
        0x0A | 0x2A | 0x8A | 0xAA => "WRITE",
        0x12 => "INQUIRY",
        0x1A | 0x5A => "MODE SENSE",
        0x1B => "START STOP UNIT",
        0x25 | 0x9E => "READ CAPACITY",
        0x35 | 0x91 => "SYNCHRONIZE CACHE",
        0x41 | 0x93 => "WRITE SAME",
        0x42 => "UNMAP",
        0x5E => "PERSISTENT RESERVE IN",
        0x5F => "PERSISTENT RESERVE OUT",
        0x89 => "COMPARE AND WRITE",
        0xA0 => "REPORT LUNS",
        0xA3 => "MAINTENANCE IN",
        _ => "SCSI",
    }
}

/// Returns the name of a SCSI status.
fn status(code: u8) -> SmolStr {
    match code {
        GOOD => "ok".into(),
        2 => "CHECK CONDITION".into(),
        CONDITION_MET => "CONDITION MET".into(),
        8 => "BUSY".into(),
        0x18 => "RESERVATION CONFLICT".into(),
        0x28 => "TASK SET FULL".into(),
        0x40 => "TASK ABORTED".into(),
        _ => format_smolstr!("status {code}"),
    }
}

impl WireFormat for Iscsi {
    const MAX_HEAD: usize = HEADER;
    const MIN_PROOF: usize = 20;
    const LOST_REASON: &'static str = "not a unit of iSCSI";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let may_send = |operation: u8| match side {
            Side::Client => matches!(operation, opcode::NOP_OUT..=opcode::LOGOUT | opcode::SNACK),
            Side::Server => matches!(
                operation,
                opcode::NOP_IN
                    ..=opcode::LOGOUT_RESPONSE
                        | opcode::READY_TO_TRANSFER
                        | opcode::ASYNC_MESSAGE
                        | opcode::REJECT
            ),
        };
        if operation(first).is_some_and(|operation| !may_send(operation)) || first.first() > Some(&0x7F) {
            return Length::Wrong;
        }
        match cursor::be32_at(first, 4) {
            None => Length::More,
            Some(lengths) if lengths & 0xFF_FFFF > MAX_DATA => Length::Wrong,
            Some(lengths) => {
                let (additional, data) = (u64::from(lengths >> 24) * 4, u64::from(lengths & 0xFF_FFFF));
                Length::Is(HEADER as u64 + additional + data.next_multiple_of(4))
            }
        }
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        // bytes 2 and 3 of a request are reserved, except in a log-in
        let is_unused = cursor::be16_at(head.bytes, 2).is_none_or(|reserved| reserved == 0);
        side == Side::Server || is_unused || operation(head.bytes) == Some(opcode::LOGIN)
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let (Some(operation), Some(key)) = (operation(head.bytes), tag(head.bytes)) else {
            return Role::Ignored;
        };
        match sink.side() {
            Side::Client => read_request(sink, key, operation, head.bytes),
            Side::Server => read_response(sink, key, operation, head.bytes),
        }
    }
}

fn read_request(sink: &mut Sink<'_, impl Listener>, key: u64, operation: u8, head: &[u8]) -> Role {
    let byte = |at| cursor::u8_at(head, at).unwrap_or(0);
    let unit = format_smolstr!("lun {}", byte(9));
    let (kind, method, target) = match operation {
        opcode::SCSI_COMMAND => (Kind::Request, command_name(byte(32)), unit.as_str()),
        opcode::TASK_MANAGEMENT => (Kind::Request, "TASK MANAGEMENT", unit.as_str()),
        opcode::LOGIN => (Kind::Setup, "LOGIN", ""),
        opcode::TEXT => (Kind::Request, "TEXT", ""),
        opcode::DATA_OUT => return Role::Part(key),
        opcode::LOGOUT => (Kind::Request, "LOGOUT", ""),
        _ => return Role::Ignored,
    };
    sink.exchange(key).request(kind, method, target);
    Role::Last(key)
}

fn read_response(sink: &mut Sink<'_, impl Listener>, key: u64, operation: u8, head: &[u8]) -> Role {
    let byte = |at| cursor::u8_at(head, at).unwrap_or(0);
    let (code, text, is_error) = match operation {
        opcode::READY_TO_TRANSFER => {
            sink.exchange(key).dialogue();
            return Role::Ignored;
        }
        opcode::DATA_IN if byte(1) & WITH_STATUS == 0 => {
            sink.exchange(key).begin_answer();
            return Role::Part(key);
        }
        opcode::DATA_IN | opcode::SCSI_RESPONSE => {
            let failure = if operation == opcode::SCSI_RESPONSE {
                byte(2)
            } else {
                0
            };
            let code = byte(3);
            let text = if failure > 0 {
                format_smolstr!("failure {failure}")
            } else {
                status(code)
            };
            let is_error = failure > 0 || !matches!(code, GOOD | CONDITION_MET);
            (u16::from(code), text, is_error)
        }
        opcode::LOGIN_RESPONSE => {
            let code = u16::from(byte(36)) << 8 | u16::from(byte(37));
            let text = match code {
                0 => "ok".into(),
                _ => format_smolstr!("{code:04x}"),
            };
            (code, text, byte(36) > 1)
        }
        opcode::TASK_MANAGEMENT_RESPONSE | opcode::LOGOUT_RESPONSE => {
            let code = byte(2);
            let text = match code {
                0 => "ok".into(),
                _ => format_smolstr!("{code}"),
            };
            (u16::from(code), text, code != 0)
        }
        opcode::TEXT_RESPONSE => (0, "ok".into(), false),
        opcode::REJECT => (u16::from(byte(2)), "reject".into(), true),
        opcode::ASYNC_MESSAGE => return Role::push("ASYNC MESSAGE", ""),
        _ => return Role::Ignored,
    };
    let status = Status::new(Some(code), Some(&text), is_error);
    sink.exchange(key).answer(status);
    Role::Last(key)
}
