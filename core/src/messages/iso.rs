//! Industrial protocols over ISO transport on TCP (RFC 1006, X.224): S7 of Siemens' controllers and MMS (ISO 9506, IEC
//! 61850). Reads how the connection is made, functions and references, no value; either side may ask. What is reported
//! without a request is a push. Other protocols behind the same head are left out.

mod mms;
mod s7;

use smol_str::SmolStr;

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{FirstBytes, Guess, Kind, Listener, RequestName, Side, Status};
use crate::cursor::{self, Cursor};

macro_rules! recognition {
    ($name:ident, $protocol:ident, $inner:ident) => {
        pub(super) const $name: Recognition = Recognition {
            protocol: Protocol::$protocol,
            sniff: |first| sniff(first, $inner::is_mine),
            begins_inside_turn: |side, first| {
                framed::fit::<Iso>(side, first) == Fit::Whole && behind(first, $inner::is_mine)
            },
            reader: |_| AnyReader::$protocol(Box::default()),
            ..Recognition::NEVER
        };
    };
}
recognition!(S7, S7, s7);
recognition!(MMS, Mms, mms);

pub(super) type Reader = Framed<Iso>;

/// RFC 1006: version, a zero, the length with these four bytes.
const HEADER: u16 = 4;
/// Types of X.224's units (13.2.2), the low bits left out.
const CONNECT: u8 = 0xE0;
const CONFIRM: u8 = 0xD0;
const DATA: u8 = 0xF0;
const DISCONNECT: u8 = 0x80;
const REFUSED: u8 = 0x70;
/// The unit that ends a message.
const END: u8 = 0x80;
/// The key of the set-up; those of requests have 33 bits.
const SETUP: u64 = 1 << 40;

#[derive(Debug, Default)]
pub(super) struct Iso {
    /// By side.
    going: [Going; 2],
}

/// What the next unit of a side belongs to.
#[derive(Debug, Default, Clone, Copy)]
enum Going {
    #[default]
    Nothing,
    /// To a message that is left out.
    Ignored,
    /// To the request of the exchange with this key, or to its answer.
    Request(u64),
    Answer(u64),
}

/// What a message behind the transport is.
pub(super) enum Meaning {
    Request {
        id: u32,
        method: &'static str,
        target: SmolStr,
    },
    Answer {
        id: u32,
        /// Its words, where it is an error.
        error: Option<SmolStr>,
    },
    Push(&'static str),
    Setup,
    SetupAnswer(Option<SmolStr>),
    Other,
}

/// A unit of X.224: its type, and of data whether it ends and what it holds.
struct Unit<'a> {
    kind: u8,
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

/// Requests to connect with transport addresses are of these protocols, and so is data that one of them knows.
fn sniff(first: &FirstBytes<'_>, is_mine: fn(&[u8]) -> bool) -> Guess {
    let guess = framed::sniff::<Iso>(first);
    if guess != Guess::Yes {
        return guess;
    }
    let mine = [first.input, first.other]
        .into_iter()
        .any(|input| behind(input, is_mine));
    let connects = [first.input, first.other]
        .into_iter()
        .all(|input| Units(input).all(|unit| unit.kind != DATA));
    match (mine, connects) {
        (true, _) => Guess::Yes,
        (false, true) => Guess::NeedsOtherSide, // the first data will tell
        _ => Guess::No,
    }
}

/// Whether a unit of data here is known.
fn behind(input: &[u8], is_mine: fn(&[u8]) -> bool) -> bool {
    Units(input).any(|unit| unit.kind == DATA && is_mine(unit.data))
}

/// The units of one side, as far as they are whole.
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
            (Some(len), Some(CONNECT | CONFIRM)) => addresses(head.bytes) && u64::from(len) + 5 == head.len,
            (Some(len), Some(DISCONNECT | REFUSED)) => u64::from(len) + 5 == head.len,
            (_, Some(_)) => false,
            _ => true,
        }
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        let Some(unit) = Unit::read(head.bytes) else {
            return Role::Ignored;
        };
        let side = sink.side();
        match unit.kind {
            CONNECT => ask(sink, SETUP, Kind::Setup, "CONNECT", ""),
            CONFIRM => answered(sink, SETUP, None),
            DISCONNECT => answered(sink, SETUP, Some("disconnected")),
            DATA => self.data(sink, side, &unit),
            _ => Role::Ignored,
        }
    }

    fn lost(&mut self, side: Side) {
        self.goes_on(side, Going::Nothing);
    }
}

/// Whether the parameters of a connect are sizes and transport addresses (13.3.4), as other protocols that use the same
/// head do not have them.
fn addresses(unit: &[u8]) -> bool {
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

fn ask(sink: &mut MessageSink<'_, impl Listener>, key: u64, kind: Kind, method: &str, target: &str) -> Role {
    let mut exchange = sink.exchange(key);
    exchange.begin_request(kind);
    exchange.name(RequestName {
        method,
        target,
        host: "",
    });
    Role::Request(key)
}

fn answered(sink: &mut MessageSink<'_, impl Listener>, key: u64, error: Option<&str>) -> Role {
    let mut exchange = sink.exchange(key);
    exchange.begin_answer();
    exchange.status(Status {
        code: None,
        text: Some(error.unwrap_or("ok")),
        error: error.is_some(),
    });
    Role::Answer(key)
}

/// Requests of both sides have numbers of their own.
fn key(asker: Side, id: u32) -> u64 {
    (asker.index() as u64) << 32 | u64::from(id)
}

impl Iso {
    fn data(&mut self, sink: &mut MessageSink<'_, impl Listener>, side: Side, unit: &Unit<'_>) -> Role {
        let going = self.going.get(side.index()).copied().unwrap_or_default();
        if unit.ends {
            self.goes_on(side, Going::Nothing);
        }
        match going {
            Going::Nothing if unit.data.is_empty() => return Role::Ignored, // a controller's sign of life
            Going::Nothing => {}
            Going::Ignored => return Role::Ignored,
            Going::Request(key) if unit.ends => return Role::Request(key),
            Going::Answer(key) if unit.ends => return Role::Answer(key),
            Going::Request(key) | Going::Answer(key) => return Role::Part(key),
        }
        let meaning = s7::read(unit.data).or_else(|| mms::read(unit.data));
        let role = match meaning.unwrap_or(Meaning::Other) {
            Meaning::Request { id, method, target } => {
                ask(sink, key(side, id), Kind::Request, method, &target)
            }
            Meaning::Answer { id, error } => answered(sink, key(side.other(), id), error.as_deref()),
            Meaning::Push(method) => Role::Push(PushedMessage {
                method,
                ..PushedMessage::default()
            }),
            Meaning::Setup => ask(sink, SETUP, Kind::Setup, "CONNECT", ""),
            Meaning::SetupAnswer(error) => answered(sink, SETUP, error.as_deref()),
            Meaning::Other => Role::Ignored,
        };
        if unit.ends {
            return role;
        }
        let (going, role) = match role {
            Role::Request(key) => (Going::Request(key), Role::Part(key)),
            Role::Answer(key) => (Going::Answer(key), Role::Part(key)),
            // (a push is named by its first unit)
            role => (Going::Ignored, role),
        };
        self.goes_on(side, going);
        role
    }

    fn goes_on(&mut self, side: Side, going: Going) {
        if let Some(own) = self.going.get_mut(side.index()) {
            *own = going;
        }
    }
}
