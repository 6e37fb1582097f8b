//! Receives the notes of the protocol reader while a stretch of one side is read, and passes them to the stream's
//! pairing.

use smol_str::SmolStr;

use super::BIAS;
use super::pairing::Pairing;
use crate::base::{At, Side};
use crate::exchange::{Context, FlowControl};
use crate::lookup;
use crate::messages::{FIRST_ERROR, Kind, Listener, Memory, Messages, Note, Stretch};

/// The listener while a stretch of one side is read.
pub(super) struct PairingListener<'a> {
    pub(super) pairing: &'a mut Pairing,
    pub(super) context: &'a mut Context,
    /// The sender of the stretch.
    pub(super) side: Side,
    /// Offsets of the stretch in this side's stream.
    pub(super) from: u64,
    pub(super) to: u64,
    /// How far the other side's stream has been read; None before its first data.
    pub(super) other: Option<u64>,
}

impl<'a> PairingListener<'a> {
    /// The listener before any stretch, with this side read up to `from`.
    #[inline(always)]
    pub(super) fn new(
        pairing: &'a mut Pairing,
        context: &'a mut Context,
        side: Side,
        from: u64,
        other: Option<u64>,
    ) -> Self {
        PairingListener {
            pairing,
            context,
            side,
            from,
            to: from,
            other,
        }
    }
}

impl Listener for PairingListener<'_> {
    #[inline(always)]
    fn note(&mut self, note: Note<'_>) {
        let (pairing, context) = (&mut *self.pairing, &mut *self.context);
        match note {
            Note::Begin {
                side: Side::Client,
                at,
                ..
            } => pairing.open_exchange(at, context),
            Note::Begin {
                side: Side::Server,
                at,
                other,
            } => pairing.answer(at, self.from, other, context),
            Note::Request { method, target } => {
                if let Some(request) = pairing.newest_request() {
                    set_text(&mut request.method, method);
                    set_text(&mut request.target, target);
                }
            }
            Note::Host(host) => {
                if let Some(request) = pairing.newest_request() {
                    set_text(&mut request.host, host);
                }
            }
            Note::Tags { side, tags } => {
                let exchange = match side {
                    Side::Client => pairing.newest_request(),
                    Side::Server => pairing.answered_exchange(),
                };
                if let Some(exchange) = exchange {
                    exchange.add_tags(tags);
                }
            }
            Note::ConnectionTags(tags) => pairing.tags = Some(Box::new(tags.clone())),
            Note::Kind(kind) => {
                if let Some(request) = pairing.newest_request() {
                    request.kind = kind;
                }
            }
            Note::Status(status) => {
                if let Some(exchange) = pairing.answered_exchange() {
                    exchange.set_status(status);
                }
            }
            Note::IsEventStream => {
                if let Some(exchange) = pairing.answered_exchange() {
                    exchange.kind = Kind::EventStream;
                }
            }
            Note::Piece { at } => pairing.piece(at),
            Note::Keyed { key, side, at, event } => {
                let read_until = self.read_until(side);
                self.pairing.keyed(key, side, at, event, read_until, self.context);
            }
            Note::Push(push) => pairing.push(&push, context),
            Note::Sealed { at, why } => context.sealed(why, at),
            Note::TlsSetup { at, setup } => {
                let secured = &mut pairing.begun.secured;
                *secured = secured.or_else(|| context.secured(setup, at));
            }
            Note::DataPort { at, port } => {
                context
                    .data_connections
                    .announced(pairing.ids.stream, pairing.ids.pair, port, at)
            }
            Note::Transfer { method, target } => {
                context
                    .data_connections
                    .requested(pairing.ids.stream, method, target)
            }
            Note::Dns { side, at, message } => context.dns.push(lookup::DnsMessage {
                stream: pairing.ids.stream,
                side,
                at,
                message: message.into(),
            }),
            Note::Flow(event) => {
                let acked = *self.side.pick(&pairing.acked_seqs);
                let position = self.to as i64 - BIAS;
                FlowControl::frame(&mut pairing.flow_control, self.side, event, position, acked);
            }
            Note::Dialogue => {
                if let Some(request) = pairing.newest_request() {
                    request.is_dialogue = true;
                }
            }
            Note::Response { status, interim } => {
                pairing.is_interim = interim;
                if let Some(exchange) = pairing.answered_exchange().filter(|_| !interim) {
                    exchange.status = Some(status);
                    exchange.is_error = status >= FIRST_ERROR;
                }
            }
            Note::End { side, at, bytes } => {
                let read_until = self.read_until(side);
                self.pairing.message_end(side, at, bytes, read_until, None);
            }
            Note::Cut { side, at, bytes, by } => {
                let read_until = self.read_until(side);
                self.pairing.message_end(side, at, bytes, read_until, Some(by));
            }
            Note::Lost { side, at, reason } => {
                pairing.lose_keyed(context);
                pairing.lost_answers.has_hole |= side == Side::Server;
                context.distrust(pairing.layer(), reason, at)
            }
            Note::Protocol(protocol) => pairing.protocol = Some(protocol),
        }
    }

    fn memory(&mut self) -> &mut Memory {
        &mut self.context.memory
    }
}

impl PairingListener<'_> {
    /// Reads the next stretch of this side; a hole below `holes` has no packet.
    pub(super) fn read(&mut self, messages: &mut Messages, at: At, holes: u64, stretch: Stretch<'_>) {
        let is_lost = matches!(stretch, Stretch::Missing(_)) && self.to < holes;
        let frame = if is_lost { 0 } else { at.frame };
        self.from = self.to;
        self.to = self.to.saturating_add(stretch.len());
        messages.feed(self.side, At { frame, ..at }, stretch, self);
    }

    /// How far a side's stream has been read, with the present stretch, as a relative sequence number.
    fn read_until(&self, side: Side) -> i64 {
        let to = if side == self.side {
            Some(self.to)
        } else {
            self.other
        };
        to.map_or(0, |to| to as i64 - BIAS)
    }
}

/// Copies a text. Short texts are inline and copied as a whole here: if one branch served both kinds, the compiler
/// would copy them field by field.
#[inline(always)]
fn set_text(slot: &mut Option<SmolStr>, text: &SmolStr) {
    if text.is_heap_allocated() {
        set_long_text(slot, text);
    } else {
        *slot = Some(text.clone());
    }
}

#[cold]
#[inline(never)]
fn set_long_text(slot: &mut Option<SmolStr>, text: &SmolStr) {
    *slot = Some(text.clone());
}
