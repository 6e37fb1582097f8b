//! TLS (RFC 8446, RFC 5246): records tell the handshake from what programs say, and both from tickets and alerts. The
//! handshake is a message pair of its own, from the ClientHello to the last Finished; behind it the records of
//! application data are read as turns. What a record holds is seen only where there are keys (`inside.rs`): then that is
//! read instead of the records.

mod handshake;
mod inside;
mod keyed;
mod recognise;

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{At, BySide, Close, Listener, MessageReader, Outcome, Side, Status, Stretch};
use handshake::Handshake;
use inside::Inside;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Tls,
    sniff: |first| recognise::sniff(first.side, first.input),
    begins_message: recognise::begins_message,
    begins_inside_turn: |_, _| false, // where a turn ends is all that can be known
    takes_over_turn: recognise::takes_over_turn,
    reader: |_| AnyReader::Tls(Box::default()),
};
const HEADER: usize = 5;
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
/// An alert in the clear: its level, and its description.
const ALERT_BYTES: u32 = 2;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const HEARTBEAT: u8 = 24;
/// RFC 5246 6.2.3; RFC 8446 5.2 allows less.
const MAX_RECORD_BYTES: u32 = (1 << 14) + 2048;
/// An alert of TLS 1.3: two bytes, the inner type, the tag (RFC 8446 5.2, 6).
const SHORTEST_ALERT: u32 = 2 + 1 + 16;

#[derive(Debug, Default)]
pub(super) struct Tls {
    sides: BySide<Half>,
    stage: Stage,
    /// The client's hello was read: what is set up is the answer to it.
    keys_searched: bool,
    /// What the handshake shows, until it is over.
    handshake: Option<Box<Handshake>>,
    /// TLS 1.3: handshake messages behind the ServerHello look like application data.
    modern: bool,
    /// The server's first record behind the handshake: a ticket, if another of its length follows.
    held: Option<Held>,
    tickets_over: bool,
    /// So long was a lone record before the client spoke: another of that length is the second ticket, which the
    /// server's Nagle algorithm held back.
    lone: Option<u32>,
    /// The key log has been searched.
    begun: bool,
    /// Where there are keys, and they open it.
    inside: Option<Box<Inside>>,
    /// With keys records are not read here any more: what is inside is, or where the next one begins is not known.
    blind: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Joined in the middle, or nothing read yet.
    #[default]
    Unknown,
    Handshake,
    Data,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    at: At,
    len: u32,
}

/// One side.
#[derive(Debug, Default)]
struct Half {
    header: [u8; HEADER],
    have: usize,
    /// Bytes of the record that are still to come.
    left: u32,
    kind: u8,
    len: u32,
    belongs: Belongs,
    /// It has changed to its keys, and has sent its Finished under them (up to TLS 1.2).
    changed: bool,
    finished: bool,
    /// Its newest record was an alert, or as short as one: whoever closes has sent all.
    over: bool,
    /// The description of its newest alert (RFC 8446 6), where that can be read.
    alert: u8,
}

/// Where a record's bytes are counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Belongs {
    #[default]
    Nowhere,
    Message,
    Held,
}

impl MessageReader for Tls {
    #[inline(never)]
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, piece: Stretch<'a>) -> Outcome<'a> {
        if !self.begun {
            self.begun = true;
            let memory = sink.memory();
            self.inside = (memory.keys.is_some() && !memory.inside).then(Box::default);
        }
        if let Some(inside) = self.inside.take() {
            return self.unsealed(&mut sink, piece, inside);
        }
        self.records(&mut sink, piece)
    }

    fn close(&mut self, sink: &mut MessageSink<'_, impl Listener>, how: Close) {
        if let Some(inside) = &mut self.inside {
            if self.stage == Stage::Data {
                inside.read(sink);
            }
            inside.close(sink.side(), how, sink);
        }
        if how != Close::Fin || self.stage == Stage::Data {
            self.tell_handshake(sink, self.stage == Stage::Data);
        }
        self.give_held(sink);
        match (self.stage, how) {
            (Stage::Data | Stage::Unknown, Close::Fin) => sink.end(),
            (Stage::Data, _) if self.sides[sink.side()].over => sink.end(),
            _ => sink.cut(how),
        }
    }

    fn resume(&mut self, _side: Side, _inside: bool) {
        *self = Tls::default();
    }
}

impl Tls {
    fn records<'a>(&mut self, sink: &mut MessageSink<'_, impl Listener>, piece: Stretch<'a>) -> Outcome<'a> {
        match piece {
            Stretch::Bytes(bytes) => self.bytes(sink, bytes),
            Stretch::Missing(missing) => self.missing(sink, missing),
        }
    }

    fn bytes<'a>(&mut self, sink: &mut MessageSink<'_, impl Listener>, mut bytes: &'a [u8]) -> Outcome<'a> {
        while let Some(&next) = bytes.first() {
            let half = &mut self.sides[sink.side()];
            if half.left > 0 {
                let here = bytes.len().min(half.left as usize);
                let (body, rest) = bytes.split_at_checked(here).unwrap_or((bytes, &[]));
                let in_clear = half.kind == HANDSHAKE && half.belongs == Belongs::Message && !half.changed;
                if half.kind == ALERT && half.len == ALERT_BYTES && !half.changed {
                    half.alert = body.last().copied().unwrap_or_default();
                }
                if let (Some(handshake), true) = (&mut self.handshake, in_clear) {
                    handshake.feed(sink.side(), body);
                }
                bytes = rest;
                self.count(sink, here as u32);
                continue;
            }
            if let Some(slot) = half.header.get_mut(half.have) {
                *slot = next;
            }
            half.have += 1;
            if half.have < HEADER {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let [kind, major, _, high, low] = half.header;
            let len = u32::from(high) << 8 | u32::from(low);
            if !(CHANGE_CIPHER_SPEC..=HEARTBEAT).contains(&kind) || major != 3 || len > MAX_RECORD_BYTES {
                self.tell_handshake(sink, false);
                sink.lost("not a TLS record");
                return Outcome::Lost(Stretch::Bytes(bytes));
            }
            bytes = bytes.get(1..).unwrap_or_default();
            (half.have, half.kind, half.len, half.left) = (0, kind, len, len);
            self.begin_record(sink);
            if len == 0 {
                self.end_record(sink);
            }
        }
        Outcome::All
    }

    /// Whether its records tell who speaks, and no more.
    pub(super) fn turns(&self) -> bool {
        self.stage == Stage::Data && self.inside.is_none()
    }

    /// A hole is passed over inside a record; anywhere else the next record's beginning is unknown.
    fn missing<'a>(&mut self, sink: &mut MessageSink<'_, impl Listener>, missing: u64) -> Outcome<'a> {
        let left = self.sides[sink.side()].left;
        if missing > u64::from(left) || left == 0 {
            if self.keyed() {
                return Outcome::Lost(Stretch::Missing(missing));
            }
            self.give_held(sink);
            self.tell_handshake(sink, false);
            sink.lost("a record's beginning is not in the capture");
            return Outcome::Lost(Stretch::Missing(missing));
        }
        if let Some(handshake) = &mut self.handshake {
            handshake.misses(sink.side());
        }
        self.count(sink, missing as u32);
        Outcome::All
    }

    /// A record's header is read: where do its bytes belong?
    fn begin_record(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        let side = sink.side();
        let half = &mut self.sides[side];
        let (kind, len) = (half.kind, half.len);
        if self.stage == Stage::Unknown {
            self.stage = if kind == HANDSHAKE {
                Stage::Handshake
            } else {
                Stage::Data
            };
            self.handshake = (kind == HANDSHAKE).then(Box::default);
        }
        let belongs = match self.stage {
            Stage::Handshake => match side {
                // the client's second flight belongs to the pair that its hello began
                Side::Client if kind == HANDSHAKE && !self.server_spoke(sink) => Belongs::Message,
                Side::Client => Belongs::Nowhere,
                Side::Server => Belongs::Message,
            },
            _ if self.keyed() => Belongs::Nowhere,
            _ if kind != APPLICATION_DATA || self.modern && len <= SHORTEST_ALERT => Belongs::Nowhere,
            _ => self.data_record(sink, len),
        };
        let may_be_alert = self.modern && len <= SHORTEST_ALERT;
        let half = &mut self.sides[side];
        half.over = kind == ALERT || kind == APPLICATION_DATA && may_be_alert;
        half.belongs = belongs;
        match belongs {
            Belongs::Message => sink.count(HEADER as u64),
            Belongs::Held | Belongs::Nowhere => {}
        }
    }

    fn server_spoke(&self, sink: &mut MessageSink<'_, impl Listener>) -> bool {
        sink.other_is_open()
    }

    /// Application data behind the handshake: a message's, or maybe a ticket's.
    fn data_record(&mut self, sink: &mut MessageSink<'_, impl Listener>, len: u32) -> Belongs {
        if sink.side() == Side::Server && self.modern && !self.tickets_over {
            match self.held.take() {
                None => {
                    self.held = Some(Held { at: sink.at(), len });
                    return Belongs::Held;
                }
                Some(first) if first.len == len => {
                    self.tickets_over = true; // two of one length before anything else
                    return Belongs::Nowhere;
                }
                Some(first) => self.held = Some(first),
            }
        }
        if sink.side() == Side::Server && self.lone.take() == Some(len) {
            return Belongs::Nowhere;
        }
        if sink.side() == Side::Client {
            self.lone = self.held.map(|held| held.len);
        }
        self.give_held(sink);
        sink.end_other();
        Belongs::Message
    }

    /// The record that was held for a ticket was the beginning of a message.
    fn give_held(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        if let Some(held) = self.held.take() {
            self.tickets_over = true;
            sink.end_side(Side::Client);
            sink.count_for(Side::Server, held.at, u64::from(held.len) + HEADER as u64);
        }
    }

    /// So many bytes of the record's body.
    fn count(&mut self, sink: &mut MessageSink<'_, impl Listener>, here: u32) {
        let half = &mut self.sides[sink.side()];
        half.left -= here.min(half.left);
        let done = half.left == 0;
        if half.belongs == Belongs::Message {
            sink.count(u64::from(here));
        }
        if half.belongs == Belongs::Held
            && let Some(held) = &mut self.held
        {
            held.at = sink.at();
        }
        if done {
            self.end_record(sink);
        }
    }

    fn end_record(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        if self.stage != Stage::Handshake {
            return;
        }
        let (side, modern, keyed) = (sink.side(), self.modern, self.keyed());
        let kind = self.sides[side].kind;
        if kind == ALERT {
            self.fails(sink);
        }
        let mut padded = false;
        if let Some(handshake) = &mut self.handshake {
            handshake.record(side, kind);
            padded = handshake.is_modern();
        }
        let half = &mut self.sides[side];
        match kind {
            CHANGE_CIPHER_SPEC => half.changed = !padded,
            HANDSHAKE if half.changed => half.finished = true,
            HANDSHAKE if side == Side::Client && half.belongs == Belongs::Message => {
                let name = self
                    .handshake
                    .as_ref()
                    .and_then(|handshake| handshake.server_name());
                sink.request(&"handshake".into(), &name.unwrap_or_default());
                sink.dialogue();
                sink.end();
                self.keys_searched = true;
            }
            APPLICATION_DATA if side == Side::Server && !half.finished => self.modern = true,
            // with keys the connection itself knows
            APPLICATION_DATA if side == Side::Client && keyed => {}
            // the client's Finished, in TLS 1.3
            APPLICATION_DATA if side == Side::Client && modern => return self.established(sink),
            // a fatal one: nothing was set up
            ALERT if side == Side::Server => sink.end(),
            _ => {}
        }
        if self.sides.client.finished && self.sides.server.finished {
            self.established(sink);
        }
    }

    /// An alert that can be read ends the handshake: its word is the answer's status. A name that is not recognised is a warning.
    fn fails(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        let side = sink.side();
        let word = match std::mem::take(&mut self.sides[side].alert) {
            10 => "unexpected_message",
            20 => "bad_record_mac",
            22 => "record_overflow",
            40 => "handshake_failure",
            42 => "bad_certificate",
            43 => "unsupported_certificate",
            44 => "certificate_revoked",
            45 => "certificate_expired",
            46 => "certificate_unknown",
            47 => "illegal_parameter",
            48 => "unknown_ca",
            49 => "access_denied",
            50 => "decode_error",
            51 => "decrypt_error",
            70 => "protocol_version",
            71 => "insufficient_security",
            80 => "internal_error",
            86 => "inappropriate_fallback",
            109 => "missing_extension",
            116 => "certificate_required",
            120 => "no_application_protocol",
            _ => return,
        };
        let text = match side {
            Side::Client => format!("client alert {word}"),
            Side::Server => format!("server alert {word}"),
        };
        sink.server_status(Status {
            code: None,
            text: Some(&text),
            error: true,
        });
    }

    /// The handshake ends with the packet that the sink stands for.
    fn established(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        self.stage = Stage::Data;
        self.tell_handshake(sink, true);
        if self.keys_searched {
            sink.end_side_at_packet(Side::Server);
        } else {
            sink.end_side(Side::Server); // no dialogue without its first word
        }
    }

    /// Gives the handshake's note, once: it is over, or ends without having set up anything.
    fn tell_handshake(&mut self, sink: &mut MessageSink<'_, impl Listener>, whole: bool) {
        let Some(handshake) = self.handshake.take() else {
            return;
        };
        let hidden = self.inside.as_ref().and_then(|inside| inside.alpn());
        if let (Some(how), true) = (
            handshake.secured(whole, hidden),
            self.keys_searched && !sink.memory().inside,
        ) {
            sink.secured(&how);
        }
    }
}
