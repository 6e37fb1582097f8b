//! TLS (RFC 8446, RFC 5246) by its records: a header of 5 bytes (type, version, length), then mostly encrypted data.
//! The handshake is one exchange, from the ClientHello to the last Finished. After it the records of application data
//! are read in turns, without alerts and session tickets. With a key log the decrypted data is read instead
//! (`inside.rs`).

mod handshake;
mod inside;
mod recognise;

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{At, BySide, Close, Listener, MessageReader, Outcome, Side, Status, Stretch};
use handshake::Handshake;
use inside::Inside;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Tls,
    sniff: |first| recognise::sniff(first.side, first.input),
    begins_message: recognise::begins_message,
    takes_over_turn: recognise::takes_over_turn,
    reader: |_| AnyReader::Tls(Box::default()),
    ..Recognition::NEVER
};
/// Bytes of a record's header.
const HEADER: usize = 5;
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
/// Length of an alert in clear text: its level and its description.
const ALERT_BYTES: u32 = 2;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const HEARTBEAT: u8 = 24;
/// Upper bound on a record's body (RFC 5246 6.2.3; RFC 8446 5.2 allows less).
const MAX_RECORD_BYTES: u32 = (1 << 14) + 2048;
/// Length of an encrypted alert of TLS 1.3: two bytes, the inner type, the tag (RFC 8446 5.2, 6). Records of TLS 1.3
/// have the type of application data whatever they hold, so one that is not longer may be an alert.
const ENCRYPTED_ALERT_BYTES: u32 = 2 + 1 + 16;

#[derive(Debug, Default)]
pub(super) struct Tls {
    sides: BySide<Half>,
    stage: Stage,
    /// The ClientHello was read, so the handshake is an exchange that has begun.
    has_client_hello: bool,
    /// What the handshake shows in clear text, until its end.
    handshake: Option<Box<Handshake>>,
    /// TLS 1.3: handshake messages after the ServerHello look like application data.
    is_tls13: bool,
    tickets: Tickets,
    /// Length of the possible ticket when the client sent data. Another of this length is the second ticket, which the
    /// server's Nagle algorithm held back.
    lone_ticket_len: Option<u32>,
    /// The key log has been searched.
    has_searched_keys: bool,
    /// The decryption, where there is a key log that has the connection's keys.
    inside: Option<Box<Inside>>,
    /// Records are not read any more: their decrypted data is, or a hole hides where the next one begins.
    skips_records: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No record was read.
    #[default]
    Unknown,
    Handshake,
    Data,
}

/// The server's session tickets after the handshake of TLS 1.3.
#[derive(Debug, Default, Clone, Copy)]
enum Tickets {
    #[default]
    Awaited,
    /// The first record after the handshake. It is a ticket if the next record has the same length, because servers
    /// mostly send two tickets; otherwise it begins a message.
    Possible(DataRecord),
    Over,
}

/// A record of application data: the packet of its last bytes so far, and its length without the header.
#[derive(Debug, Clone, Copy)]
struct DataRecord {
    at: At,
    len: u32,
}

/// Per-direction state: the record that is being read.
#[derive(Debug, Default)]
struct Half {
    header: [u8; HEADER],
    /// Bytes of the header read so far.
    have: usize,
    /// Bytes of the body not read yet.
    remaining: u32,
    kind: u8,
    len: u32,
    counts_for: CountsFor,
    /// Up to TLS 1.2, the side has sent ChangeCipherSpec.
    has_changed_cipher: bool,
    /// Up to TLS 1.2, the side has sent its Finished.
    has_finished: bool,
    /// The newest record may be the closing alert, so the side has sent all its data.
    may_be_closed: bool,
    /// The description of the newest alert in clear text (RFC 8446 6).
    alert: u8,
}

/// The message that a record's bytes count for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum CountsFor {
    #[default]
    None,
    Message,
    /// The record in `Tickets::Possible`.
    PossibleTicket,
}

impl MessageReader for Tls {
    #[inline(never)]
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        if !self.has_searched_keys {
            self.has_searched_keys = true;
            let memory = sink.memory();
            self.inside = (memory.keys.is_some() && !memory.inside_tls).then(Box::default);
        }
        if let Some(inside) = self.inside.take() {
            return self.decrypt(&mut sink, stretch, inside);
        }
        self.read_records(&mut sink, stretch)
    }

    fn close(&mut self, sink: &mut Sink<'_, impl Listener>, how: Close) {
        if let Some(inside) = &mut self.inside {
            if self.stage == Stage::Data {
                inside.read(sink);
            }
            inside.close(sink.side(), how, sink);
        }
        if how != Close::Fin || self.stage == Stage::Data {
            self.report_handshake(sink, self.stage == Stage::Data);
        }
        self.release_record(sink);
        match (self.stage, how) {
            (Stage::Data | Stage::Unknown, Close::Fin) => sink.end(),
            (Stage::Data, _) if self.sides[sink.side()].may_be_closed => sink.end(),
            _ => sink.cut(how),
        }
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        *self = Tls::default();
    }
}

impl Tls {
    fn read_records<'a>(&mut self, sink: &mut Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        match stretch {
            Stretch::Bytes(bytes) => self.read_bytes(sink, bytes),
            Stretch::Missing(missing) => self.skip_hole(sink, missing),
        }
    }

    fn read_bytes<'a>(&mut self, sink: &mut Sink<'_, impl Listener>, mut bytes: &'a [u8]) -> Outcome<'a> {
        while let Some(&next) = bytes.first() {
            let half = &mut self.sides[sink.side()];
            if half.remaining > 0 {
                let body_len = bytes.len().min(half.remaining as usize);
                let (body, rest) = bytes.split_at_checked(body_len).unwrap_or((bytes, &[]));
                let in_clear = half.kind == HANDSHAKE
                    && half.counts_for == CountsFor::Message
                    && !half.has_changed_cipher;
                if half.kind == ALERT && half.len == ALERT_BYTES && !half.has_changed_cipher {
                    half.alert = body.last().copied().unwrap_or_default();
                }
                if let Some(handshake) = &mut self.handshake
                    && in_clear
                {
                    handshake.feed(sink.side(), body);
                }
                bytes = rest;
                self.count(sink, body_len as u32);
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
                self.report_handshake(sink, false);
                sink.lost("not a TLS record");
                return Outcome::Lost(Stretch::Bytes(bytes));
            }
            bytes = bytes.get(1..).unwrap_or_default();
            (half.have, half.kind, half.len, half.remaining) = (0, kind, len, len);
            self.begin_record(sink);
            if len == 0 {
                self.end_record(sink);
            }
        }
        Outcome::All
    }

    /// Whether encrypted application data is read in turns.
    pub(super) fn is_read_in_turns(&self) -> bool {
        self.stage == Stage::Data && self.inside.is_none()
    }

    /// Counts a hole inside a record. Any other hole hides where the next record begins.
    fn skip_hole<'a>(&mut self, sink: &mut Sink<'_, impl Listener>, missing: u64) -> Outcome<'a> {
        let remaining = self.sides[sink.side()].remaining;
        if missing > u64::from(remaining) || remaining == 0 {
            if self.has_keys() {
                return Outcome::Lost(Stretch::Missing(missing));
            }
            self.release_record(sink);
            self.report_handshake(sink, false);
            sink.lost("a record's beginning is not in the capture");
            return Outcome::Lost(Stretch::Missing(missing));
        }
        if let Some(handshake) = &mut self.handshake {
            handshake.skip_hole(sink.side());
        }
        self.count(sink, missing as u32);
        Outcome::All
    }

    /// Decides, after a record's header, which message its bytes count for.
    fn begin_record(&mut self, sink: &mut Sink<'_, impl Listener>) {
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
        let may_be_alert = self.is_tls13 && len <= ENCRYPTED_ALERT_BYTES;
        let counts_for = match self.stage {
            Stage::Handshake => match side {
                // the client's second flight is part of the exchange, but not of its first message, the ClientHello
                Side::Client if kind == HANDSHAKE && !sink.other_is_open() => CountsFor::Message,
                Side::Client => CountsFor::None,
                Side::Server => CountsFor::Message,
            },
            _ if self.has_keys() => CountsFor::None,
            _ if kind != APPLICATION_DATA || may_be_alert => CountsFor::None,
            _ => self.begin_data_record(sink, len),
        };
        let half = &mut self.sides[side];
        half.may_be_closed = kind == ALERT || kind == APPLICATION_DATA && may_be_alert;
        half.counts_for = counts_for;
        if counts_for == CountsFor::Message {
            sink.count(HEADER as u64);
        }
    }

    /// Decides whether a record after the handshake is of a message or a ticket.
    fn begin_data_record(&mut self, sink: &mut Sink<'_, impl Listener>, len: u32) -> CountsFor {
        if sink.side() == Side::Server && self.is_tls13 {
            match self.tickets {
                Tickets::Awaited => {
                    self.tickets = Tickets::Possible(DataRecord { at: sink.at(), len });
                    return CountsFor::PossibleTicket;
                }
                Tickets::Possible(first) if first.len == len => {
                    self.tickets = Tickets::Over; // two tickets
                    return CountsFor::None;
                }
                Tickets::Possible(_) | Tickets::Over => {}
            }
        }
        if sink.side() == Side::Server && self.lone_ticket_len.take() == Some(len) {
            return CountsFor::None;
        }
        if sink.side() == Side::Client {
            self.lone_ticket_len = match self.tickets {
                Tickets::Possible(record) => Some(record.len),
                _ => None,
            };
        }
        self.release_record(sink);
        sink.end_other();
        CountsFor::Message
    }

    /// Counts the possible ticket for the server's message, because it is not a ticket.
    fn release_record(&mut self, sink: &mut Sink<'_, impl Listener>) {
        if let Tickets::Possible(record) = self.tickets {
            self.tickets = Tickets::Over;
            sink.end_side(Side::Client);
            sink.count_for(Side::Server, record.at, u64::from(record.len) + HEADER as u64);
        }
    }

    /// Counts bytes of the record's body.
    fn count(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u32) {
        let half = &mut self.sides[sink.side()];
        half.remaining -= bytes.min(half.remaining);
        let is_done = half.remaining == 0;
        if half.counts_for == CountsFor::Message {
            sink.count(u64::from(bytes));
        }
        if half.counts_for == CountsFor::PossibleTicket
            && let Tickets::Possible(record) = &mut self.tickets
        {
            record.at = sink.at();
        }
        if is_done {
            self.end_record(sink);
        }
    }

    fn end_record(&mut self, sink: &mut Sink<'_, impl Listener>) {
        if self.stage != Stage::Handshake {
            return;
        }
        let (side, is_tls13, has_keys) = (sink.side(), self.is_tls13, self.has_keys());
        let kind = self.sides[side].kind;
        if kind == ALERT {
            self.report_alert(sink);
        }
        let mut has_agreed_tls13 = false;
        if let Some(handshake) = &mut self.handshake {
            handshake.record(side, kind);
            has_agreed_tls13 = handshake.is_tls13();
        }
        let half = &mut self.sides[side];
        match kind {
            CHANGE_CIPHER_SPEC => half.has_changed_cipher = !has_agreed_tls13,
            HANDSHAKE if half.has_changed_cipher => half.has_finished = true,
            HANDSHAKE if side == Side::Client && half.counts_for == CountsFor::Message => {
                let handshake = self.handshake.as_ref();
                let name = handshake.and_then(|handshake| handshake.server_name());
                sink.request(&"handshake".into(), &name.unwrap_or_default());
                sink.dialogue();
                sink.end();
                self.has_client_hello = true;
            }
            APPLICATION_DATA if side == Side::Server && !half.has_finished => self.is_tls13 = true,
            // with keys, the decrypted Finished shows the end
            APPLICATION_DATA if side == Side::Client && has_keys => {}
            // the client's Finished, in TLS 1.3
            APPLICATION_DATA if side == Side::Client && is_tls13 => return self.end_handshake(sink),
            // a fatal alert: the handshake failed
            ALERT if side == Side::Server => sink.end(),
            _ => {}
        }
        if self.sides.client.has_finished && self.sides.server.has_finished {
            self.end_handshake(sink);
        }
    }

    /// Makes a clear-text alert during the handshake the answer's status. Other codes, as unrecognized_name, may be
    /// warnings.
    fn report_alert(&mut self, sink: &mut Sink<'_, impl Listener>) {
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
        sink.server_status(Status::word(&text, true));
    }

    /// Ends the handshake with this packet.
    fn end_handshake(&mut self, sink: &mut Sink<'_, impl Listener>) {
        self.stage = Stage::Data;
        self.report_handshake(sink, true);
        if self.has_client_hello {
            sink.end_side_at_packet(Side::Server);
        } else {
            sink.end_side(Side::Server); // the exchange did not begin in the capture
        }
    }

    /// Notes once what the handshake showed. `is_finished` is false for a handshake that failed.
    fn report_handshake(&mut self, sink: &mut Sink<'_, impl Listener>, is_finished: bool) {
        let Some(handshake) = self.handshake.take() else {
            return;
        };
        let hidden = self.inside.as_ref().and_then(|inside| inside.alpn());
        if self.has_client_hello
            && !sink.memory().inside_tls
            && let Some(setup) = handshake.setup(is_finished, hidden)
        {
            sink.tls_setup(&setup);
        }
    }
}
