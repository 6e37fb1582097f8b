//! Frames and methods of AMQP 0-9-1 (specification 2.3.5 and its method reference). Stateless.

use smol_str::SmolStr;

use crate::cursor::{self, Cursor};
use crate::messages::framed::{Head, Length};
use crate::messages::{Side, text};

/// A client's first bytes: the protocol header, for version 0-9-1.
pub(super) const HEADER: &[u8] = b"AMQP\0\0\x09\x01";
/// Bytes of a frame around its payload: type, channel and size, and the end byte.
const AROUND: u64 = 8;
const END: u8 = 0xCE;
/// Upper bound on a frame's payload; RabbitMQ's default is 128 KiB.
const MAX_FRAME: u32 = 1 << 20;
/// Highest channel accepted; RabbitMQ's default is 2,047.
const MAX_CHANNEL: u16 = 4095;

/// Types of frames.
mod types {
    pub(super) const METHOD: u8 = 1;
    pub(super) const HEADER: u8 = 2;
    pub(super) const BODY: u8 = 3;
    pub(super) const HEARTBEAT: u8 = 8;
}

/// The classes of methods.
mod class {
    pub(super) const CONNECTION: u16 = 10;
    pub(super) const CHANNEL: u16 = 20;
    pub(super) const ACCESS: u16 = 30;
    pub(super) const EXCHANGE: u16 = 40;
    pub(super) const QUEUE: u16 = 50;
    pub(super) const BASIC: u16 = 60;
    pub(super) const CONFIRM: u16 = 85;
    pub(super) const TX: u16 = 90;
}

/// Class and number of the methods that decide something.
type MethodId = (u16, u16);
const CONNECTION_START: MethodId = (class::CONNECTION, 10);
const CONNECTION_OPEN: MethodId = (class::CONNECTION, 40);
const CONNECTION_OPEN_OK: MethodId = (class::CONNECTION, 41);
const CONNECTION_CLOSE: MethodId = (class::CONNECTION, 50);
const CHANNEL_OPEN: MethodId = (class::CHANNEL, 10);
const CHANNEL_FLOW_OK: MethodId = (class::CHANNEL, 21);
const CHANNEL_CLOSE: MethodId = (class::CHANNEL, 40);
const CONSUME: MethodId = (class::BASIC, 20);
const CONSUME_OK: MethodId = (class::BASIC, 21);
const CANCEL: MethodId = (class::BASIC, 30);
const PUBLISH: MethodId = (class::BASIC, 40);
const RETURN: MethodId = (class::BASIC, 50);
const DELIVER: MethodId = (class::BASIC, 60);
const GET_OK: MethodId = (class::BASIC, 71);
const GET_EMPTY: MethodId = (class::BASIC, 72);
const ACK: MethodId = (class::BASIC, 80);
const NACK: MethodId = (class::BASIC, 120);
const CONFIRM_SELECT: MethodId = (class::CONFIRM, 10);

pub(super) enum Frame<'a> {
    /// The protocol header of a connection.
    Protocol,
    Method(Method<'a>),
    /// A content header, with the size of the content.
    Header(u64),
    /// A part of a content, with its size.
    Body(u64),
    Heartbeat,
}

/// A method: its class and method number, and its arguments as far as they were kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Method<'a> {
    id: MethodId,
    arguments: &'a [u8],
}

/// A method of a client: its answer, and the layout of its arguments.
struct ClientMethod {
    id: MethodId,
    name: &'static str,
    /// Method number of the answer in the same class; 0 if the server does not answer.
    answer: u16,
    /// Bytes before its short strings.
    before: usize,
    /// Number of short strings before its bits.
    strings: usize,
    /// Index of the short string that is the target.
    target: Option<usize>,
    /// Index of the no-wait bit.
    no_wait: Option<u8>,
}

const fn method(
    id: MethodId,
    name: &'static str,
    answer: u16,
    (before, strings, target): (usize, usize, Option<usize>),
    no_wait: Option<u8>,
) -> ClientMethod {
    ClientMethod {
        id,
        name,
        answer,
        before,
        strings,
        target,
        no_wait,
    }
}

const NONE: (usize, usize, Option<usize>) = (0, 0, None);

#[rustfmt::skip]
const CLIENT: [ClientMethod; 24] = [
    method(CONNECTION_CLOSE, "connection.close", 51, NONE, None),
    method(CHANNEL_OPEN, "channel.open", 11, NONE, None),
    method((class::CHANNEL, 20), "channel.flow", 21, NONE, None),
    method(CHANNEL_CLOSE, "channel.close", 41, NONE, None),
    method((class::EXCHANGE, 10), "exchange.declare", 11, (2, 2, Some(0)), Some(4)),
    method((class::EXCHANGE, 20), "exchange.delete", 21, (2, 1, Some(0)), Some(1)),
    method((class::EXCHANGE, 30), "exchange.bind", 31, (2, 3, Some(0)), Some(0)),
    method((class::EXCHANGE, 40), "exchange.unbind", 51, (2, 3, Some(0)), Some(0)),
    method((class::QUEUE, 10), "queue.declare", 11, (2, 1, Some(0)), Some(4)),
    method((class::QUEUE, 20), "queue.bind", 21, (2, 3, Some(0)), Some(0)),
    method((class::QUEUE, 30), "queue.purge", 31, (2, 1, Some(0)), Some(0)),
    method((class::QUEUE, 40), "queue.delete", 41, (2, 1, Some(0)), Some(2)),
    method((class::QUEUE, 50), "queue.unbind", 51, (2, 3, Some(0)), None),
    method((class::BASIC, 10), "basic.qos", 11, NONE, None),
    method(CONSUME, "basic.consume", 21, (2, 2, Some(0)), Some(3)),
    method(CANCEL, "basic.cancel", 31, (0, 1, None), Some(0)),
    method(PUBLISH, "basic.publish", 0, (2, 2, Some(0)), None),
    method((class::BASIC, 70), "basic.get", 71, (2, 1, Some(0)), None),
    method((class::BASIC, 100), "basic.recover-async", 0, NONE, None),
    method((class::BASIC, 110), "basic.recover", 111, NONE, None),
    method(CONFIRM_SELECT, "confirm.select", 11, (0, 0, None), Some(0)),
    method((class::TX, 10), "tx.select", 11, NONE, None),
    method((class::TX, 20), "tx.commit", 21, NONE, None),
    method((class::TX, 30), "tx.rollback", 31, NONE, None),
];
/// Methods that a server sends without a request, and the bytes before the exchange and the routing key in them.
const UNSOLICITED: [(MethodId, &str, usize); 7] = [
    (CONNECTION_CLOSE, "connection.close", 0),
    ((class::CONNECTION, 60), "connection.blocked", 0),
    ((class::CONNECTION, 61), "connection.unblocked", 0),
    (CHANNEL_CLOSE, "channel.close", 0),
    (CANCEL, "basic.cancel", 0),
    (RETURN, "basic.return", 2),
    (DELIVER, "basic.deliver", 9),
];

/// Class, first and last method number of all methods.
const CLASSES: [(u16, u16, u16); 8] = [
    (class::CONNECTION, 10, 70),
    (class::CHANNEL, 10, 41),
    (class::EXCHANGE, 10, 51),
    (class::QUEUE, 10, 51),
    (class::BASIC, 10, 120),
    (class::CONFIRM, 10, 11),
    (class::TX, 10, 31),
    (class::ACCESS, 10, 11),
];

pub(super) fn length(first: &[u8]) -> Length {
    let protocol = HEADER.get(..4).unwrap_or(HEADER);
    if first.iter().zip(protocol).all(|(byte, want)| byte == want) {
        // a header of any version: the server answers others with its own
        return if first.len() < 4 {
            Length::More
        } else {
            Length::Is(AROUND)
        };
    }
    let mut cursor = Cursor::new(first);
    let fits = |kind, channel, size| match kind {
        types::METHOD => size >= 4,
        types::HEADER => channel > 0 && size >= 14,
        types::BODY => channel > 0,
        types::HEARTBEAT => channel == 0 && size == 0,
        _ => false,
    };
    match (cursor.u8(), cursor.u16be(), cursor.u32be()) {
        (Some(types::METHOD..=types::BODY | types::HEARTBEAT), _, None) => Length::More,
        (Some(kind), Some(channel), Some(size))
            if fits(kind, channel, size) && size <= MAX_FRAME && channel <= MAX_CHANNEL =>
        {
            Length::Is(u64::from(size) + AROUND)
        }
        _ => Length::Wrong,
    }
}

/// Reads a frame; returns its channel, too.
pub(super) fn read(head: Head<'_>) -> Option<(u16, Frame<'_>)> {
    if head.bytes.starts_with(b"AMQP") {
        return Some((0, Frame::Protocol));
    }
    let mut cursor = Cursor::new(head.bytes);
    let (kind, channel) = (cursor.u8()?, cursor.u16be()?);
    cursor.u32be()?;
    let frame = match kind {
        types::METHOD => Frame::Method(Method {
            id: (cursor.u16be()?, cursor.u16be()?),
            arguments: cursor.rest(),
        }),
        types::HEADER => {
            cursor.take(4)?;
            Frame::Header(cursor.u64be()?)
        }
        types::BODY => Frame::Body(head.len.saturating_sub(AROUND)),
        _ => Frame::Heartbeat,
    };
    Some((channel, frame))
}

/// Whether a frame's payload fits its type and side, as far as it was read.
pub(super) fn fits(side: Side, head: Head<'_>) -> bool {
    let (bytes, is_cut) = (head.bytes, (head.bytes.len() as u64) < head.len);
    if bytes.starts_with(b"AMQP") {
        return side == Side::Client && HEADER.starts_with(cursor::upto(bytes, HEADER.len()));
    }
    let ends = is_cut || bytes.last() == Some(&END);
    ends && match read(head) {
        Some((_, Frame::Method(method))) => {
            method.exists() && method.sender().is_none_or(|sender| sender == side)
        }
        Some((_, Frame::Header(size))) => cursor::be16_at(bytes, 7) == Some(class::BASIC) && size < 1 << 40,
        Some(_) => true,
        None => is_cut,
    }
}

/// Returns the sender of the frame that these bytes begin with; None if both sides can send it.
pub(super) fn sender(first: &[u8]) -> Option<Side> {
    let Length::Is(len) = length(first) else {
        return None;
    };
    match read(Head { bytes: first, len })? {
        (_, Frame::Protocol) if first == HEADER => Some(Side::Client),
        (_, Frame::Method(method)) if method.exists() => method.sender(),
        _ => None,
    }
}

/// Reads a short string: a length byte, and the text.
fn short_string<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = cursor.u8()?;
    cursor.take(usize::from(len))
}

impl<'a> Method<'a> {
    fn listed(self) -> Option<&'static ClientMethod> {
        CLIENT.iter().find(|listed| listed.id == self.id)
    }

    fn unsolicited(self) -> Option<&'static (MethodId, &'static str, usize)> {
        UNSOLICITED.iter().find(|(id, ..)| *id == self.id)
    }

    fn exists(self) -> bool {
        let (class, number) = self.id;
        let has =
            |(listed, first, last): &(u16, u16, u16)| *listed == class && (*first..=*last).contains(&number);
        CLASSES.iter().any(has)
    }

    /// Returns the side that sends the method; None if both do.
    fn sender(self) -> Option<Side> {
        let is_answer = CLIENT
            .iter()
            .any(|listed| (listed.id.0, listed.answer) == self.id && listed.id.0 != class::CONNECTION);
        match (self.listed().is_some(), self.unsolicited().is_some()) {
            (true, false) => Some(Side::Client),
            (false, true) => Some(Side::Server),
            // both sides may send close and close-ok; flow-ok answers either side's flow
            _ if self.id.1 == 41 && self.id.0 != class::QUEUE || self.id == CHANNEL_FLOW_OK => None,
            (false, false) if matches!(self.id, (class::CONNECTION, 11 | 21 | 31) | CONNECTION_OPEN) => {
                Some(Side::Client)
            }
            (false, false)
                if matches!(
                    self.id,
                    CONNECTION_START | (class::CONNECTION, 20 | 30) | CONNECTION_OPEN_OK
                ) =>
            {
                Some(Side::Server)
            }
            _ if is_answer || self.id == GET_EMPTY => Some(Side::Server),
            _ => None,
        }
    }

    /// Returns the method's name; "" for answers.
    pub(super) fn name(self) -> &'static str {
        let listed = self.listed().map(|listed| listed.name);
        listed
            .or(self.unsolicited().map(|(_, name, _)| *name))
            .unwrap_or("")
    }

    /// Whether the method belongs to the log-in, which "open-ok" or "close" ends.
    pub(super) fn is_of_login(self) -> bool {
        self.id.0 == class::CONNECTION && self.id <= CONNECTION_CLOSE
    }

    pub(super) fn ends_login(self) -> bool {
        matches!(self.id, CONNECTION_OPEN_OK | CONNECTION_CLOSE)
    }

    /// Returns the queue or the exchange that the method names; for the default exchange the routing key, which is the
    /// queue's name.
    pub(super) fn target(self) -> SmolStr {
        self.target_bytes().map(text::name).unwrap_or_default()
    }

    fn target_bytes(self) -> Option<&'a [u8]> {
        let mut cursor = Cursor::new(self.arguments);
        let (before, target) = match (self.unsolicited(), self.listed()) {
            (Some((DELIVER, _, before)), _) => {
                short_string(&mut cursor)?; // consumer tag
                (*before, Some(0))
            }
            (Some((RETURN, _, before)), _) => {
                cursor.take(*before)?;
                short_string(&mut cursor)?; // reply text
                (0, Some(0))
            }
            (_, Some(listed)) => (listed.before, listed.target),
            _ => return None,
        };
        cursor.take(before)?;
        for _ in 0..target? {
            short_string(&mut cursor)?;
        }
        let first = short_string(&mut cursor)?;
        let is_default = first.is_empty() && matches!(self.id, PUBLISH | DELIVER | RETURN);
        if is_default {
            short_string(&mut cursor)
        } else {
            Some(first)
        }
    }

    /// Returns class and method number of the answer; None if the server does not answer.
    pub(super) fn answer(self) -> Option<MethodId> {
        let listed = self.listed().filter(|listed| listed.answer > 0)?;
        (!self.is_no_wait(listed).unwrap_or(false)).then_some((listed.id.0, listed.answer))
    }

    fn is_no_wait(self, listed: &ClientMethod) -> Option<bool> {
        let (bit, mut cursor) = (listed.no_wait?, Cursor::new(self.arguments));
        cursor.take(listed.before)?;
        for _ in 0..listed.strings {
            short_string(&mut cursor)?;
        }
        Some(cursor.u8()? >> bit & 1 == 1)
    }

    pub(super) fn is_answer(self, answer: MethodId) -> bool {
        self.id == answer || self.id == GET_EMPTY && answer == GET_OK
    }

    pub(super) fn is_publish(self) -> bool {
        self.id == PUBLISH
    }

    /// Returns the consumer tag of a basic.consume (which may be empty), of its answer, or of a delivery.
    pub(super) fn consumer(self) -> Option<&'a [u8]> {
        let mut cursor = Cursor::new(self.arguments);
        match self.id {
            CONSUME => {
                cursor.take(2)?;
                short_string(&mut cursor)?; // queue
                short_string(&mut cursor)
            }
            CONSUME_OK | DELIVER => short_string(&mut cursor),
            _ => None,
        }
    }

    pub(super) fn opens_channel(self) -> bool {
        self.id == CHANNEL_OPEN
    }

    pub(super) fn selects_confirms(self) -> bool {
        self.id == CONFIRM_SELECT
    }

    /// Whether a content follows the server's method.
    pub(super) fn has_content(self) -> bool {
        matches!(self.id, DELIVER | RETURN | GET_OK)
    }

    pub(super) fn is_unsolicited(self) -> bool {
        self.unsolicited().is_some()
    }

    /// Returns the delivery tag of an ACK or NACK, and whether it confirms all before it, too.
    pub(super) fn confirmation(self) -> Option<(u64, bool)> {
        let mut cursor = Cursor::new(self.arguments);
        let confirms = matches!(self.id, ACK | NACK).then(|| Some((cursor.u64be()?, cursor.u8()? & 1 == 1)));
        confirms.flatten()
    }

    pub(super) fn is_nack(self) -> bool {
        self.id == NACK
    }

    /// Returns the reply code with which the server closes a channel or the connection.
    pub(super) fn close_code(self) -> Option<u16> {
        let closes = matches!(self.id, CONNECTION_CLOSE | CHANNEL_CLOSE);
        closes.then(|| Cursor::new(self.arguments).u16be()).flatten()
    }

    /// Returns product and version of the server, from its connection.start.
    pub(super) fn software(self) -> Option<Box<str>> {
        if self.id != CONNECTION_START {
            return None;
        }
        let value = |key: &[u8]| {
            let value_start = memchr::memmem::find(self.arguments, key)? + key.len();
            let mut cursor = Cursor::new(cursor::from(self.arguments, value_start));
            let len = cursor.u32be()?.min(64) as usize;
            std::str::from_utf8(cursor.take(len)?).ok()
        };
        let product = value(b"\x07productS")?;
        Some(match value(b"\x07versionS") {
            Some(version) => format!("{product} {version}").into(),
            None => product.into(),
        })
    }
}
