//! ISO transport on TCP (RFC 1006, X.224) with S7 of Siemens' controllers, or MMS (ISO 9506, IEC 61850). Each TPKT
//! packet begins with version 3, a zero and a 2-byte length, and holds one unit of X.224. One exchange is the set-up of
//! the connection, or a request of either side and the response with its number. Reports without a request are pushes.
//! Other protocols on the same transport are not recognised, and values are not read.

mod mms;
mod s7;

use smol_str::SmolStr;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, FirstBytes, Guess, Kind, Listener, Side, Status};
use crate::cursor::{self, Cursor};

macro_rules! recognition {
    ($name:ident, $protocol:ident, $inner:ident) => {
        pub(super) const $name: Recognition = Recognition {
            protocol: Protocol::$protocol,
            sniff: |first| sniff(first, $inner::is_known),
            begins_inside_turn: |side, first| {
                framed::fit::<Iso>(side, first) == Fit::Whole && has_known_data(first, $inner::is_known)
            },
            reader: |_| AnyReader::$protocol(Box::default()),
            ..Recognition::NEVER
        };
    };
}
recognition!(S7, S7, s7);
recognition!(MMS, Mms, mms);

pub(super) type Reader = Framed<Iso>;

/// Bytes of the TPKT header, which its length field counts, too.
const HEADER: u16 = 4;
/// Types of X.224's units (13.2.2), without the low bits.
const CONNECT: u8 = 0xE0;
const CONFIRM: u8 = 0xD0;
const DATA: u8 = 0xF0;
const DISCONNECT: u8 = 0x80;
const REFUSED: u8 = 0x70;
/// The EOT bit of a data unit: it ends a message.
const END: u8 = 0x80;
/// Key of the set-up's exchange. Keys of requests have 33 bits.
const SETUP: u64 = 1 << 40;

#[derive(Debug, Default)]
pub(super) struct Iso {
    /// The message that each side's next unit continues.
    continued: BySide<Continued>,
}

/// The message that the next unit of a side continues.
#[derive(Debug, Default, Clone, Copy)]
enum Continued {
    /// The unit begins a message.
    #[default]
    Nothing,
    /// A message that is not an exchange.
    Ignored,
    /// The request of the exchange with this key, or its response.
    Request(u64),
    Answer(u64),
}

/// A message of S7 or MMS.
pub(super) enum Meaning {
    Request {
        id: u32,
        method: &'static str,
        target: SmolStr,
    },
    Answer {
        id: u32,
        /// Text of the error; None for a positive response.
        error: Option<SmolStr>,
    },
    Push(&'static str),
    Setup,
    SetupAnswer(Option<SmolStr>),
    Other,
}

/// A unit of X.224.
struct Unit<'a> {
    kind: u8,
    /// The unit ends a message.
    ends: bool,
    data: &'a [u8],
}

impl<'a> Unit<'a> {
    fn read(head: &'a [u8]) -> Option<Unit<'a>> {
        let mut cursor = Cursor::new(cursor::from(head, usize::from(HEADER)));
        let len = usize::from(cursor.u8()?);
        let (header, data) = cursor.rest().split_at_checked(len)?;
        let (kind, numbered) = (header.first()? & 0xF0, header.get(1));
        Some(Unit {
            kind,
            ends: numbered.is_none_or(|byte| byte & END != 0),
            data,
        })
    }
}

/// Both sides' units have to fit, and data of one side must be of the protocol that `is_known` recognises.
fn sniff(first: &FirstBytes<'_>, is_known: fn(&[u8]) -> bool) -> Guess {
    let guess = framed::sniff::<Iso>(first);
    if guess != Guess::Yes {
        return guess;
    }
    let sides = [first.input, first.other];
    if sides.iter().any(|input| has_known_data(input, is_known)) {
        Guess::Yes
    } else if sides
        .iter()
        .all(|input| Units(input).all(|unit| unit.kind != DATA))
    {
        Guess::NeedsOtherSide // only the set-up was sent: the first data will decide
    } else {
        Guess::No
    }
}

/// Whether one of the data units is of the protocol that `is_known` recognises.
fn has_known_data(input: &[u8], is_known: fn(&[u8]) -> bool) -> bool {
    Units(input).any(|unit| unit.kind == DATA && is_known(unit.data))
}

/// Iterator over the whole units of one side.
struct Units<'a>(&'a [u8]);

impl<'a> Iterator for Units<'a> {
    type Item = Unit<'a>;

    fn next(&mut self) -> Option<Unit<'a>> {
        let len = usize::from(cursor::be16_at(self.0, 2)?);
        let (unit, rest) = self.0.split_at_checked(len).filter(|_| len > 0)?;
        self.0 = rest;
        Unit::read(unit)
    }
}

impl WireFormat for Iso {
    const MAX_HEAD: usize = 192;
    const MIN_PROOF: usize = 7;
    const LOST_REASON: &'static str = "not a unit of ISO transport";

    fn length(&self, _side: Side, first: &[u8]) -> Length {
        match (cursor::u8_at(first, 0), cursor::u8_at(first, 1)) {
            (Some(version), _) if version != 3 => Length::Wrong,
            (_, Some(reserved)) if reserved != 0 => Length::Wrong,
            _ => match cursor::be16_at(first, 2) {
                Some(len) if len >= HEADER + 3 => Length::Is(u64::from(len)),
                Some(_) => Length::Wrong,
                None => Length::More,
            },
        }
    }

    fn fits(_side: Side, head: Head<'_>) -> bool {
        let (len, kind) = (cursor::u8_at(head.bytes, 4), cursor::u8_at(head.bytes, 5));
        match (len, kind.map(|kind| kind & 0xF0)) {
            (Some(len), Some(DATA)) => len == 2 || len == 4,
            (Some(len), Some(CONNECT | CONFIRM)) => {
                has_addresses(head.bytes) && u64::from(len) + 5 == head.len
            }
            (Some(len), Some(DISCONNECT | REFUSED)) => u64::from(len) + 5 == head.len,
            (_, Some(_)) => false,
            _ => true,
        }
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let Some(unit) = Unit::read(head.bytes) else {
            return Role::Ignored;
        };
        let side = sink.side();
        match unit.kind {
            CONNECT => begin_request(sink, SETUP, Kind::Setup, "CONNECT", ""),
            CONFIRM => begin_answer(sink, SETUP, None),
            DISCONNECT => begin_answer(sink, SETUP, Some("disconnected")),
            DATA => self.data(sink, side, &unit),
            _ => Role::Ignored,
        }
    }

    fn lost(&mut self, side: Side) {
        self.continued[side] = Continued::Nothing;
    }
}

/// Whether the parameters of a connect are sizes and transport addresses (X.224 13.3.4). Other protocols with a TPKT
/// header have others.
fn has_addresses(unit: &[u8]) -> bool {
    let mut cursor = Cursor::new(cursor::from(unit, 11));
    while let Some(code) = cursor.u8() {
        if !(0xC0..=0xC7).contains(&code) && !(0x85..=0x8B).contains(&code) {
            return false;
        }
        let Some(len) = cursor.u8() else { break };
        if cursor.take(usize::from(len)).is_none() {
            break;
        }
    }
    true
}

fn begin_request(
    sink: &mut Sink<'_, impl Listener>,
    key: u64,
    kind: Kind,
    method: &str,
    target: &str,
) -> Role {
    sink.exchange(key).request(kind, method, target);
    Role::Request(key)
}

fn begin_answer(sink: &mut Sink<'_, impl Listener>, key: u64, error: Option<&str>) -> Role {
    sink.exchange(key).answer(Status::ok_unless(error));
    Role::Answer(key)
}

/// Returns the key of a request's exchange. Each side numbers its own requests.
fn key(requester: Side, id: u32) -> u64 {
    (requester.index() as u64) << 32 | u64::from(id)
}

impl Iso {
    fn data(&mut self, sink: &mut Sink<'_, impl Listener>, side: Side, unit: &Unit<'_>) -> Role {
        let continued = self.continued[side];
        if unit.ends {
            self.continued[side] = Continued::Nothing;
        }
        match continued {
            Continued::Nothing if unit.data.is_empty() => return Role::Ignored, // a controller's keepalive
            Continued::Nothing => {}
            Continued::Ignored => return Role::Ignored,
            Continued::Request(key) if unit.ends => return Role::Request(key),
            Continued::Answer(key) if unit.ends => return Role::Answer(key),
            Continued::Request(key) | Continued::Answer(key) => return Role::Part(key),
        }
        let meaning = s7::read(unit.data).or_else(|| mms::read(unit.data));
        let role = match meaning.unwrap_or(Meaning::Other) {
            Meaning::Request { id, method, target } => {
                begin_request(sink, key(side, id), Kind::Request, method, &target)
            }
            Meaning::Answer { id, error } => begin_answer(sink, key(side.other(), id), error.as_deref()),
            Meaning::Push(method) => Role::push(method, ""),
            Meaning::Setup => begin_request(sink, SETUP, Kind::Setup, "CONNECT", ""),
            Meaning::SetupAnswer(error) => begin_answer(sink, SETUP, error.as_deref()),
            Meaning::Other => Role::Ignored,
        };
        if unit.ends {
            return role;
        }
        let (continued, role) = match role {
            Role::Request(key) => (Continued::Request(key), Role::Part(key)),
            Role::Answer(key) => (Continued::Answer(key), Role::Part(key)),
            // the first unit of a push is reported as the whole push
            role => (Continued::Ignored, role),
        };
        self.continued[side] = continued;
        role
    }
}
