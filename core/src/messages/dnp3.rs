//! DNP3 over TCP (IEEE 1815): requests of a master and answers of an outstation, in link frames with checksums. Pairs
//! them by station and number; unsolicited responses are pushes, confirmations get no note. Reads
//! functions, no values.

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{FirstBytes, Guess, Kind, Listener, RequestName, Side, Status};
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
/// The head with its checksum; what its length counts of it; the bytes between two checksums.
const BLOCK: usize = 10;
const COUNTED: u8 = 5;
const CHECKED: u64 = 16;
/// A segment that ends its message, one that begins it, and the message's number (transport header, application control).
const FINAL: u8 = 0x80;
const FIRST: u8 = 0x40;
const NUMBER: u8 = 0x0F;
const RESPONSE: u8 = 0x81;
const UNSOLICITED: u8 = 0x82;
/// Bits of the second byte of an answer's indications: the request could not be served.
const REFUSED: u8 = 0x07;

#[derive(Debug, Default)]
pub(super) struct Dnp3 {
    /// What goes on: the exchange whose answer has further segments.
    going: Option<u64>,
    /// A push that goes on.
    pushes: bool,
}

/// The functions of requests, and which of them nobody answers.
fn word(function: u8) -> Option<(&'static str, bool)> {
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

/// The checksum of a head (CRC-16/DNP).
fn checksum(head: &[u8]) -> u16 {
    let step = |crc: u16| if crc & 1 == 1 { crc >> 1 ^ 0xA6BC } else { crc >> 1 };
    let fold = |crc: u16, byte: &u8| (0..8).fold(crc ^ u16::from(*byte), |crc, _| step(crc));
    !head.iter().fold(0, fold)
}

/// One side's first frame proves it by its checksum.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    match framed::fit::<Dnp3>(first.side, first.input) {
        Fit::No => Guess::No,
        _ if first.input.len() < BLOCK => Guess::More,
        _ => Guess::Yes,
    }
}

/// Fields of a frame's head.
struct Frame {
    /// The outstation's address, and what both addresses are together.
    station: u16,
    both: u16,
    transport: u8,
    control: u8,
    function: u8,
    /// The second byte of an answer's indications.
    refused: u8,
}

impl Frame {
    fn read(side: Side, bytes: &[u8]) -> Option<Frame> {
        let mut cursor = Cursor::new(cursor::from(bytes, 4));
        let (to, from) = (cursor.u16le()?, cursor.u16le()?);
        cursor.u16le()?;
        Some(Frame {
            station: if side == Side::Client { to } else { from },
            both: to ^ from,
            transport: cursor.u8()?,
            control: cursor.u8().unwrap_or(0),
            function: cursor.u8().unwrap_or(0),
            refused: cursor::u8_at(bytes, 14).unwrap_or(0),
        })
    }

    /// Which request between which stations; addresses that were made anonymous may stand the other way round.
    fn key(&self) -> u64 {
        u64::from(self.both) << 4 | u64::from(self.control & NUMBER)
    }

    fn ends(&self) -> bool {
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

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        let side = sink.side();
        // without application data: the link's own requests
        let Some(frame) = Frame::read(side, head.bytes) else {
            return Role::Ignored;
        };
        match side {
            Side::Client => asks(sink, &frame),
            Side::Server => self.answers(sink, &frame),
        }
    }

    fn lost(&mut self, side: Side) {
        if side == Side::Server {
            *self = Dnp3::default();
        }
    }
}

fn asks(sink: &mut MessageSink<'_, impl Listener>, frame: &Frame) -> Role {
    let Some((method, true)) = word(frame.function).filter(|_| frame.transport & FIRST != 0) else {
        return Role::Ignored;
    };
    let mut exchange = sink.exchange(frame.key());
    exchange.begin_request(Kind::Request);
    exchange.name(RequestName {
        method,
        target: &format_smolstr!("{}", frame.station),
        host: "",
    });
    Role::Last(frame.key())
}

impl Dnp3 {
    fn answers(&mut self, sink: &mut MessageSink<'_, impl Listener>, frame: &Frame) -> Role {
        if frame.transport & FIRST == 0 {
            let Some(key) = self.going.filter(|_| !self.pushes) else {
                return Role::Ignored;
            };
            return if frame.ends() {
                Role::Last(key)
            } else {
                Role::Part(key)
            };
        }
        (self.going, self.pushes) = (None, frame.function == UNSOLICITED);
        match frame.function {
            UNSOLICITED => Role::Push(PushedMessage {
                method: "UnsolicitedResponse",
                ..PushedMessage::default()
            }),
            RESPONSE => {
                let (key, failed) = (frame.key(), frame.refused & REFUSED);
                let mut exchange = sink.exchange(key);
                exchange.begin_answer();
                exchange.status(Status {
                    code: None,
                    text: Some(&match failed {
                        0 => "ok".into(),
                        bits => format_smolstr!("refused {bits}"),
                    }),
                    error: failed != 0,
                });
                if frame.ends() {
                    return Role::Last(key);
                }
                self.going = Some(key);
                Role::Part(key)
            }
            _ => Role::Ignored,
        }
    }
}
