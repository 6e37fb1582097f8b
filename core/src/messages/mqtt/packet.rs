//! Packets of MQTT: type, length, packet identifier, topic, reason code (sections 2 and 3 of both standards).
//! Stateless.

use crate::cursor::Cursor;
use crate::messages::Side;
use crate::messages::framed::{Head, Length};

/// Type of a packet (2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::messages) enum Kind {
    Connect,
    Connack,
    Publish,
    Puback,
    Pubrec,
    Pubrel,
    Pubcomp,
    Subscribe,
    Suback,
    Unsubscribe,
    Unsuback,
    Ping,
    Pong,
    Disconnect,
    Auth,
}

/// Packet types in the order of their numbers, from 1.
const KINDS: [Kind; 15] = [
    Kind::Connect,
    Kind::Connack,
    Kind::Publish,
    Kind::Puback,
    Kind::Pubrec,
    Kind::Pubrel,
    Kind::Pubcomp,
    Kind::Subscribe,
    Kind::Suback,
    Kind::Unsubscribe,
    Kind::Unsuback,
    Kind::Ping,
    Kind::Pong,
    Kind::Disconnect,
    Kind::Auth,
];
/// The property Topic Alias of version 5.
const TOPIC_ALIAS: u8 = 0x23;
/// Upper bound on the length of packets without a payload: reason codes and properties.
const MAX_SMALL: u64 = 1 << 16;

impl Kind {
    /// Returns the name of packets that are requests or pushes; "" for others.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Connect => "CONNECT",
            Kind::Publish => "PUBLISH",
            Kind::Subscribe => "SUBSCRIBE",
            Kind::Unsubscribe => "UNSUBSCRIBE",
            Kind::Disconnect => "DISCONNECT",
            _ => "",
        }
    }

    /// Whether `side` may send this packet with these flags and of this length.
    fn fits(self, side: Side, flags: u8, len: u64) -> bool {
        let is_client = side == Side::Client;
        match self {
            Kind::Publish => flags & 6 != 6 && len >= 3,
            Kind::Pubrel => flags == 2 && (2..MAX_SMALL).contains(&len),
            Kind::Subscribe | Kind::Unsubscribe => is_client && flags == 2 && len >= 5,
            _ if flags != 0 => false,
            Kind::Connect => is_client && len >= 10,
            Kind::Ping => is_client && len == 0,
            Kind::Connack => !is_client && (2..MAX_SMALL).contains(&len),
            Kind::Suback => !is_client && len >= 3,
            Kind::Unsuback => !is_client && len >= 2,
            Kind::Pong => !is_client && len == 0,
            Kind::Puback | Kind::Pubrec | Kind::Pubcomp => (2..MAX_SMALL).contains(&len),
            Kind::Disconnect | Kind::Auth => len < MAX_SMALL,
        }
    }
}

/// Splits a packet's first byte into type and flags.
fn kind(first: u8) -> Option<(Kind, u8)> {
    let number = usize::from(first >> 4).checked_sub(1)?;
    Some((*KINDS.get(number)?, first & 15))
}

/// Reads a Variable Byte Integer (2.2.3). `None`: it has more than four bytes. `Some(None)`: it is cut.
fn varint(cursor: &mut Cursor<'_>) -> Option<Option<u64>> {
    let mut value = 0;
    for group in 0..4 {
        let Some(byte) = cursor.u8() else {
            return Some(None);
        };
        value |= u64::from(byte & 0x7F) << (7 * group);
        if byte & 0x80 == 0 {
            return Some(Some(value));
        }
    }
    None
}

pub(super) fn length(side: Side, first: &[u8]) -> Length {
    let mut cursor = Cursor::new(first);
    let Some(byte) = cursor.u8() else {
        return Length::More;
    };
    let Some((kind, flags)) = kind(byte) else {
        return Length::Wrong;
    };
    match varint(&mut cursor) {
        Some(Some(len)) if kind.fits(side, flags, len) => {
            Length::Is(len + (first.len() - cursor.left()) as u64)
        }
        Some(None) if kind.fits(side, flags, 0) || kind.fits(side, flags, 128) => Length::More,
        _ => Length::Wrong,
    }
}

/// Splits a packet into its type, its flags, and the bytes after its length.
pub(super) fn split(head: &[u8]) -> Option<(Kind, u8, &[u8])> {
    let mut cursor = Cursor::new(head);
    let (kind, flags) = kind(cursor.u8()?)?;
    varint(&mut cursor)??;
    Some((kind, flags, cursor.rest()))
}

/// Whether a packet's body fits its type, as far as it was read.
pub(super) fn fits(side: Side, head: Head<'_>) -> bool {
    let Some((kind, flags, body)) = split(head.bytes) else {
        return false;
    };
    let is_cut = (head.bytes.len() as u64) < head.len;
    let checked = match kind {
        Kind::Connect => connect(body).map(|_| true),
        Kind::Publish if !has_topic(body, head.len) => Some(false),
        Kind::Publish => Publish::read(flags, body, true)
            .or_else(|| Publish::read(flags, body, false))
            .map(|publish| publish.fits()),
        Kind::Subscribe | Kind::Unsubscribe => {
            filters(kind, body).map(|(id, filters, _)| id > 0 && filters.iter().all(|filter| is_text(filter)))
        }
        Kind::Connack => Some(body.first().is_none_or(|flags| *flags < 2)),
        Kind::Ping | Kind::Pong | Kind::Disconnect | Kind::Auth => Some(true),
        _ => Cursor::new(body).u16be().map(|id| id > 0),
    };
    checked.unwrap_or(is_cut) && length(side, head.bytes) != Length::Wrong
}

/// Whether a PUBLISH's topic ends within its packet and, as far as it was read, is text.
fn has_topic(body: &[u8], len: u64) -> bool {
    let mut cursor = Cursor::new(body);
    let Some(topic) = cursor.u16be().map(usize::from) else {
        return true;
    };
    let read = cursor.rest().get(..topic).unwrap_or(cursor.rest());
    (topic as u64) < len && !read.iter().any(u8::is_ascii_control)
}

fn is_text(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(u8::is_ascii_control) && std::str::from_utf8(name).is_ok()
}

/// Reads bytes after their 2-byte length.
fn length_prefixed<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = cursor.u16be()?;
    cursor.take(usize::from(len))
}

/// Whether these bytes begin a CONNECT; None if they are too few.
pub(super) fn is_connect(first: &[u8]) -> Option<bool> {
    if first.first() != Some(&0x10) {
        return Some(false);
    }
    let mut cursor = Cursor::new(first);
    cursor.u8()?;
    let Some(len) = varint(&mut cursor) else {
        return Some(false);
    };
    len?;
    let (rest, names) = (cursor.rest(), [&b"\0\x04MQTT"[..], b"\0\x06MQIsdp"]);
    let name = names
        .iter()
        .find(|name| rest.iter().zip(name.iter()).all(|(byte, want)| byte == want));
    let Some(name) = name else {
        return Some(false);
    };
    // bridges between servers set the high bit
    rest.get(name.len())
        .map(|version| (3..=5).contains(&(version & 0x7F)))
}

/// Returns version and client identifier of a CONNECT.
pub(super) fn connect(body: &[u8]) -> Option<(u8, &[u8])> {
    let mut cursor = Cursor::new(body);
    let name = length_prefixed(&mut cursor)?;
    let version = cursor.u8()? & 0x7F;
    if !matches!(name, b"MQTT" | b"MQIsdp") {
        return None;
    }
    cursor.take(3)?; // flags, keep-alive
    if version == 5 {
        let len = varint(&mut cursor)??;
        cursor.take(usize::try_from(len).ok()?)?;
    }
    Some((version, length_prefixed(&mut cursor)?))
}

/// Packet identifier of a SUBSCRIBE or UNSUBSCRIBE, its filters, and the version if its layout shows it.
pub(super) type Filters<'a> = (u16, Vec<&'a [u8]>, Option<u8>);

/// Reads the body of a SUBSCRIBE or UNSUBSCRIBE.
pub(super) fn filters(kind: Kind, body: &[u8]) -> Option<Filters<'_>> {
    let mut cursor = Cursor::new(body);
    let id = cursor.u16be()?;
    let list = cursor.rest();
    if let Some(filters) = whole_list(kind, list) {
        return Some((id, filters, Some(4)));
    }
    let len = varint(&mut cursor)??;
    cursor.take(usize::try_from(len).ok()?)?;
    if let Some(filters) = whole_list(kind, cursor.rest()) {
        return Some((id, filters, Some(5)));
    }
    // the list is cut: return its first filter
    Some((id, vec![length_prefixed(&mut cursor)?], None))
}

/// Reads a list of filters; None if it is cut, or no such list.
fn whole_list(kind: Kind, list: &[u8]) -> Option<Vec<&[u8]>> {
    let mut cursor = Cursor::new(list);
    let mut filters = Vec::new();
    while !cursor.is_empty() {
        let filter = length_prefixed(&mut cursor)?;
        if !is_text(filter) || kind == Kind::Subscribe && cursor.u8()? > 0x2E {
            return None;
        }
        filters.push(filter);
    }
    (!filters.is_empty()).then_some(filters)
}

/// Whether a filter matches a topic (4.7). A shared one, `$share/group/filter` (version 5, 4.8.2), matches without its
/// group.
pub(super) fn matches(filter: &[u8], topic: &[u8]) -> bool {
    let shared = filter.strip_prefix(b"$share/").and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'/')?;
        rest.get(end + 1..)
    });
    let mut levels = topic.split(|byte| *byte == b'/');
    for filter_level in shared.unwrap_or(filter).split(|byte| *byte == b'/') {
        match (filter_level, levels.next()) {
            (b"#", _) => return true,
            (b"+", Some(_)) => {}
            (filter_level, Some(level)) if filter_level == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// Returns the packet identifier of a server's response, and the highest reason code in it.
pub(super) fn answer(kind: Kind, body: &[u8], version: Option<u8>) -> Option<(u64, u8)> {
    let mut cursor = Cursor::new(body);
    let id = u64::from(cursor.u16be()?);
    let reasons = match kind {
        Kind::Puback | Kind::Pubrec | Kind::Pubcomp => cursor.rest().get(..1),
        Kind::Suback | Kind::Unsuback => {
            if version == Some(5) {
                let len = varint(&mut cursor)??;
                cursor.take(usize::try_from(len).ok()?)?;
            }
            Some(cursor.rest())
        }
        _ => return None,
    };
    let worst = reasons.unwrap_or_default().iter().max();
    Some((id, worst.copied().unwrap_or(0)))
}

/// A PUBLISH (3.3).
#[derive(Debug)]
pub(super) struct Publish<'a> {
    pub(super) topic: &'a [u8],
    pub(super) alias: Option<u16>,
    /// Packet identifier; None for QoS 0, which the server does not answer.
    pub(super) id: Option<u16>,
}

impl<'a> Publish<'a> {
    /// Reads a body; `has_properties`: in the layout of version 5.
    pub(super) fn read(flags: u8, body: &'a [u8], has_properties: bool) -> Option<Self> {
        let mut cursor = Cursor::new(body);
        let topic = length_prefixed(&mut cursor)?;
        let id = if flags & 6 > 0 {
            Some(cursor.u16be()?)
        } else {
            None
        };
        let alias = if has_properties { alias(&mut cursor) } else { None };
        Some(Publish { topic, alias, id })
    }

    fn fits(&self) -> bool {
        let is_named = is_text(self.topic) && !self.topic.iter().any(|byte| b"+#".contains(byte));
        self.id != Some(0) && (is_named || self.topic.is_empty() && self.alias.is_some())
    }
}

/// Returns the topic alias among a PUBLISH's properties (version 5, 3.3.2.3).
fn alias(cursor: &mut Cursor<'_>) -> Option<u16> {
    let len = varint(cursor)??;
    let mut properties = Cursor::new(cursor.take(usize::try_from(len).ok()?)?);
    while let Some(property) = properties.u8() {
        match property {
            TOPIC_ALIAS => return properties.u16be(),
            0x01 => properties.u8().map(drop)?,
            0x02 => properties.u32be().map(drop)?,
            0x0B => varint(&mut properties)?.map(drop)?,
            0x03 | 0x08 | 0x09 => length_prefixed(&mut properties).map(drop)?,
            0x26 => {
                length_prefixed(&mut properties)?;
                length_prefixed(&mut properties)?;
            }
            _ => return None,
        }
    }
    None
}
