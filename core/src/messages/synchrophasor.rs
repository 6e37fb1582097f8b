//! Synchrophasors over TCP (IEEE C37.118.2). Each frame begins with AA, a type, a 2-byte length and a station id, and
//! ends with a checksum. One exchange is a command for a header or a configuration and the frame of that type. Data
//! frames, which the station sends at a fixed rate, are pushes. Values are not read.

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{FirstBytes, Guess, Kind, Listener, Side, Status};
use crate::cursor;
use smol_str::format_smolstr;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Synchrophasor,
    sniff,
    begins_message: |side, first| {
        begins(first) == Some(true) && framed::fit::<Synchrophasor>(side, first) == Fit::Whole
    },
    begins_inside_turn: |side, first| framed::fit::<Synchrophasor>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Synchrophasor(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Synchrophasor>;

/// First byte of a frame. The second one has the frame type in bits 4 to 6, and the standard's version in bits 0 to 3.
const SYNC: u8 = 0xAA;
const DATA: u8 = 0;
const HEADER: u8 = 1;
const CONFIGURATION_1: u8 = 2;
const CONFIGURATION_2: u8 = 3;
const COMMAND: u8 = 4;
const CONFIGURATION_3: u8 = 5;
/// Bytes of a frame without data: sync, size, station, two words of time, and the checksum.
const MIN_FRAME_BYTES: u16 = 16;
/// Offset of a command's word.
const WORD: usize = 14;
/// Bytes of a command without an extended frame.
const COMMAND_LEN: u64 = 18;

#[derive(Debug, Default)]
pub(super) struct Synchrophasor;

/// Whether the last two bytes of a frame are the checksum (CRC-CCITT) of those before.
fn has_checksum(frame: &[u8]) -> bool {
    let step = |crc: u16| {
        if crc & 0x8000 == 0 {
            crc << 1
        } else {
            crc << 1 ^ 0x1021
        }
    };
    let fold = |crc: u16, byte: &u8| (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| step(crc));
    frame
        .split_last_chunk::<2>()
        .is_some_and(|(input, check)| input.iter().fold(0xFFFF, fold) == u16::from_be_bytes(*check))
}

/// Whether the first frame's checksum is right; None if the frame is not whole.
fn begins(input: &[u8]) -> Option<bool> {
    let len = usize::from(cursor::be16_at(input, 2)?);
    Some(has_checksum(input.get(..len)?))
}

/// The checksum of one side's first frame is proof enough; a longer frame needs the other side's.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    match framed::fit::<Synchrophasor>(first.side, first.input) {
        Fit::No => Guess::No,
        _ if first.input.len() < usize::from(MIN_FRAME_BYTES) => Guess::More,
        _ => match begins(first.input) {
            Some(true) => Guess::Yes,
            Some(false) => Guess::No,
            None => framed::sniff::<Synchrophasor>(first),
        },
    }
}

/// Returns the frame type.
fn kind(head: &[u8]) -> Option<u8> {
    Some(cursor::u8_at(head, 1)? >> 4)
}

/// Returns a command's name, and the type of the frame that answers it.
fn command(word: u16) -> Option<(&'static str, u8)> {
    Some(match word {
        3 => ("SendHeader", HEADER),
        4 => ("SendConfiguration1", CONFIGURATION_1),
        5 => ("SendConfiguration2", CONFIGURATION_2),
        6 => ("SendConfiguration3", CONFIGURATION_3),
        _ => return None,
    })
}

impl WireFormat for Synchrophasor {
    const MAX_HEAD: usize = 32;
    const MIN_PROOF: usize = 14;
    const LOST_REASON: &'static str = "not a frame of C37.118";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let wrong = |byte: u8| {
            let kind = byte >> 4;
            let is_command = kind == COMMAND;
            kind > CONFIGURATION_3 || is_command != (side == Side::Client) || byte & 0xF == 0
        };
        match (cursor::u8_at(first, 0), cursor::u8_at(first, 1)) {
            (Some(sync), _) if sync != SYNC => Length::Wrong,
            (_, Some(byte)) if wrong(byte) => Length::Wrong,
            _ => match cursor::be16_at(first, 2) {
                Some(len) if len >= MIN_FRAME_BYTES => Length::Is(u64::from(len)),
                Some(_) => Length::Wrong,
                None => Length::More,
            },
        }
    }

    fn fits(_side: Side, head: Head<'_>) -> bool {
        kind(head.bytes) != Some(COMMAND) || head.len >= COMMAND_LEN
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let Some(kind) = kind(head.bytes) else {
            return Role::Ignored;
        };
        let station = format_smolstr!("{}", cursor::be16_at(head.bytes, 4).unwrap_or(0));
        match kind {
            COMMAND => {
                let Some((method, answer)) = cursor::be16_at(head.bytes, WORD).and_then(command) else {
                    return Role::Ignored; // data on, data off: not answered
                };
                sink.exchange(u64::from(answer))
                    .request(Kind::Request, method, &station);
                Role::Last(u64::from(answer))
            }
            DATA => Role::push("Data", station),
            _ => {
                sink.exchange(u64::from(kind)).answer(Status::word("ok", false));
                Role::Last(u64::from(kind))
            }
        }
    }
}
