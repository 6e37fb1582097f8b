//! DNP3 over TCP (IEEE 1815). Each link frame begins with 05 64 and a 1-byte length, and has a checksum for every 16
//! bytes. One exchange is a master's request and the outstation's response with the same addresses and sequence number.
//! Unsolicited responses are pushes, confirmations are ignored. Values are not read.

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{FirstBytes, Guess, Kind, Listener, Side, Status};
use crate::cursor::{self, Cursor};
use smol_str::format_smolstr;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Dnp3,
    sniff,
    begins_message: |side, first| first.len() >= BLOCK && framed::fit::<Dnp3>(side, first) == Fit::Whole,
    begins_inside_turn: |side, first| first.len() >= BLOCK && framed::fit::<Dnp3>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Dnp3(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Dnp3>;

/// The first two bytes of a frame.
const START: u16 = 0x0564;
/// Bytes of a frame's header with its checksum.
const BLOCK: usize = 10;
/// Header bytes that the length field counts: control, destination and source.
const COUNTED: u8 = 5;
/// Data bytes before each further checksum.
const CHECKED: u64 = 16;
/// Bits of the transport header: the segment is the last, or the first, of its message.
const FINAL: u8 = 0x80;
const FIRST: u8 = 0x40;
/// Bits of the application control that hold the sequence number.
const SEQUENCE: u8 = 0x0F;
const RESPONSE: u8 = 0x81;
const UNSOLICITED: u8 = 0x82;
/// Bits of a response's second indication byte: function not supported, object unknown, parameter error.
const REFUSED: u8 = 0x07;

#[derive(Debug, Default)]
pub(super) struct Dnp3 {
    /// Key of the exchange whose response has further segments.
    continued: Option<u64>,
    /// The server's present message is a push.
    is_push: bool,
}

/// Returns the name of a request's function, and whether the outstation answers it.
fn function_name(function: u8) -> Option<(&'static str, bool)> {
    Some(match function {
        1 => ("Read", true),
        2 => ("Write", true),
        3 => ("Select", true),
        4 => ("Operate", true),
        5 => ("DirectOperate", true),
        6 => ("DirectOperateNoAck", false),
        7 => ("ImmediateFreeze", true),
        8 => ("ImmediateFreezeNoAck", false),
        9 => ("FreezeClear", true),
        10 => ("FreezeClearNoAck", false),
        11 => ("FreezeAtTime", true),
        12 => ("FreezeAtTimeNoAck", false),
        13 => ("ColdRestart", true),
        14 => ("WarmRestart", true),
        15 => ("InitializeData", true),
        16 => ("InitializeApplication", true),
        17 => ("StartApplication", true),
        18 => ("StopApplication", true),
        19 => ("SaveConfiguration", true),
        20 => ("EnableUnsolicited", true),
        21 => ("DisableUnsolicited", true),
        22 => ("AssignClass", true),
        23 => ("DelayMeasurement", true),
        24 => ("RecordCurrentTime", true),
        25 => ("OpenFile", true),
        26 => ("CloseFile", true),
        27 => ("DeleteFile", true),
        28 => ("GetFileInfo", true),
        29 => ("AuthenticateFile", true),
        30 => ("AbortFile", true),
        31 => ("ActivateConfiguration", true),
        32 => ("AuthenticateRequest", true),
        33 => ("AuthenticateRequestNoAck", false),
        _ => return None,
    })
}

/// Returns the checksum of a header (CRC-16/DNP).
fn checksum(head: &[u8]) -> u16 {
    let step = |crc: u16| if crc & 1 == 1 { crc >> 1 ^ 0xA6BC } else { crc >> 1 };
    let fold = |crc: u16, byte: &u8| (0..8).fold(crc ^ u16::from(*byte), |crc, _| step(crc));
    !head.iter().fold(0, fold)
}

/// The checksum of one side's first frame is proof enough.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    match framed::fit::<Dnp3>(first.side, first.input) {
        Fit::No => Guess::No,
        _ if first.input.len() < BLOCK => Guess::More,
        _ => Guess::Yes,
    }
}

/// The first bytes of a frame: link header, transport header, application header.
struct Frame {
    /// Address of the outstation.
    station: u16,
    /// Both addresses combined, without regard to their order.
    addresses: u16,
    transport: u8,
    control: u8,
    function: u8,
    /// The second byte of a response's indications.
    indications: u8,
}

impl Frame {
    fn read(side: Side, bytes: &[u8]) -> Option<Frame> {
        let mut cursor = Cursor::new(cursor::from(bytes, 4));
        let (to, from) = (cursor.u16le()?, cursor.u16le()?);
        cursor.u16le()?;
        Some(Frame {
            station: if side == Side::Client { to } else { from },
            addresses: to ^ from,
            transport: cursor.u8()?,
            control: cursor.u8().unwrap_or(0),
            function: cursor.u8().unwrap_or(0),
            indications: cursor::u8_at(bytes, 14).unwrap_or(0),
        })
    }

    /// Returns the key of the exchange. The order of the addresses is ignored: in anonymised captures it may be wrong.
    fn key(&self) -> u64 {
        u64::from(self.addresses) << 4 | u64::from(self.control & SEQUENCE)
    }

    fn is_first(&self) -> bool {
        self.transport & FIRST != 0
    }

    fn is_last(&self) -> bool {
        self.transport & FINAL != 0
    }
}

impl WireFormat for Dnp3 {
    const MAX_HEAD: usize = 16;
    const MIN_PROOF: usize = BLOCK;
    const LOST_REASON: &'static str = "not a frame of DNP3";

    fn length(&self, _side: Side, first: &[u8]) -> Length {
        match (cursor::be16_at(first, 0), cursor::u8_at(first, 2)) {
            (Some(START), Some(len)) if len >= COUNTED => {
                let counted = u64::from(len - COUNTED);
                Length::Is(BLOCK as u64 + counted + 2 * counted.div_ceil(CHECKED))
            }
            (Some(START), None) => Length::More,
            (None, _) if first.first().is_none_or(|byte| *byte == 5) => Length::More,
            _ => Length::Wrong,
        }
    }

    fn fits(_side: Side, head: Head<'_>) -> bool {
        let (counted, check) = (head.bytes.get(..BLOCK - 2), cursor::from(head.bytes, BLOCK - 2));
        let Some(check) = Cursor::new(check).u16le() else {
            return true;
        };
        counted.is_some_and(|counted| checksum(counted) == check)
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let side = sink.side();
        // a frame without data is a request or a response of the link layer
        let Some(frame) = Frame::read(side, head.bytes) else {
            return Role::Ignored;
        };
        match side {
            Side::Client => read_request(sink, &frame),
            Side::Server => self.read_response(sink, &frame),
        }
    }

    fn lost(&mut self, side: Side) {
        if side == Side::Server {
            *self = Dnp3::default();
        }
    }
}

fn read_request(sink: &mut Sink<'_, impl Listener>, frame: &Frame) -> Role {
    let (Some((method, true)), true) = (function_name(frame.function), frame.is_first()) else {
        return Role::Ignored;
    };
    let target = format_smolstr!("{}", frame.station);
    sink.exchange(frame.key()).request(Kind::Request, method, &target);
    Role::Last(frame.key())
}

impl Dnp3 {
    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>, frame: &Frame) -> Role {
        if !frame.is_first() {
            return match self.continued {
                Some(key) if !self.is_push && frame.is_last() => Role::Last(key),
                Some(key) if !self.is_push => Role::Part(key),
                _ => Role::Ignored,
            };
        }
        (self.continued, self.is_push) = (None, frame.function == UNSOLICITED);
        match frame.function {
            UNSOLICITED => Role::push("UnsolicitedResponse", ""),
            RESPONSE => {
                let (key, failed) = (frame.key(), frame.indications & REFUSED);
                let text = match failed {
                    0 => "ok".into(),
                    bits => format_smolstr!("refused {bits}"),
                };
                sink.exchange(key).answer(Status::word(&text, failed != 0));
                if frame.is_last() {
                    return Role::Last(key);
                }
                self.continued = Some(key);
                Role::Part(key)
            }
            _ => Role::Ignored,
        }
    }
}
