//! `exchanges`: one row per request and its response.

use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type};

use super::addresses::Addresses;
use super::cause_times::CauseTimes;
use super::columns::{Address, EVERY_ROW, Flag, Instant, Optional, OptionalFlag, Required, batch_columns};
use super::words::{CaptureWords, CodedWords, StaticWords, Texts};
use super::{Batch, Column, ms};
use crate::base::Side;
use crate::evidence::rtt::Pairs;
use crate::exchange::{BodyPartStats, CutBy, Exchange, Message};
use crate::judge::{Cause, Paths, Row};
use crate::messages::{Kind, Tags};

/// Bits of the optional columns and flags.
mod bit {
    pub const METHOD: u32 = 1 << 0;
    pub const STATUS: u32 = 1 << 1;
    pub const RESPONSE: u32 = 1 << 2;
    /// The response is complete.
    pub const LATENCY: u32 = 1 << 3;
    pub const CLIENT_LATENCY: u32 = 1 << 4;
    pub const COMPLETE: u32 = 1 << 5;
    pub const CUT_BY: u32 = 1 << 6;
    pub const TOP_CAUSE: u32 = 1 << 7;
    pub const HOST: u32 = 1 << 8;
    pub const KIND: u32 = 1 << 9;
    pub const ERROR: u32 = 1 << 10;
    /// It is known whether the response is an error.
    pub const ERROR_KNOWN: u32 = 1 << 11;
    pub const PIECES: u32 = 1 << 12;
    /// The response has at least two pieces.
    pub const GAP: u32 = 1 << 13;
    /// The server of the connection sent the request.
    pub const SERVER_ASKS: u32 = 1 << 14;
}

batch_columns! {
    struct Columns {
        exchange: Required<UInt64Type> = "exchange",
        stream: Required<UInt32Type> = "stream",
        index: Required<UInt32Type> = "index",
        client: Address = "client",
        client_port: Required<UInt16Type> = "client_port",
        server: Address = "server",
        server_port: Required<UInt16Type> = "server_port",
        protocol: StaticWords<EVERY_ROW> = "protocol",
        method: CaptureWords<{ bit::METHOD }> = "method",
        target: Texts = "target",
        host: CaptureWords<{ bit::HOST }> = "host",
        trace_id: Texts = "trace_id",
        request_id: Texts = "request_id",
        forwarded_for: Texts = "forwarded_for",
        kind: StaticWords<{ bit::KIND }> = "kind",
        server_asks: Flag<{ bit::SERVER_ASKS }> = "server_asks",
        status: Optional<UInt32Type, { bit::STATUS }> = "status",
        status_text: Texts = "status_text",
        error: OptionalFlag<{ bit::ERROR }, { bit::ERROR_KNOWN }> = "error",
        start: Instant = "start",
        end: Instant = "end",
        request_first_frame: Required<UInt64Type> = "request_first_frame",
        request_last_frame: Required<UInt64Type> = "request_last_frame",
        request_end: Instant = "request_end",
        response_first_frame: Optional<UInt64Type, { bit::RESPONSE }> = "response_first_frame",
        response_last_frame: Optional<UInt64Type, { bit::RESPONSE }> = "response_last_frame",
        response_start: Optional<TimestampNanosecondType, { bit::RESPONSE }> = "response_start",
        request_bytes: Required<UInt64Type> = "request_bytes",
        response_bytes: Optional<UInt64Type, { bit::RESPONSE }> = "response_bytes",
        latency: Optional<Float64Type, { bit::LATENCY }> = "latency_ms",
        client_latency: Optional<Float64Type, { bit::CLIENT_LATENCY }> = "client_latency_ms",
        ttfb: Optional<Float64Type, { bit::RESPONSE }> = "ttfb_ms",
        pieces: Optional<UInt32Type, { bit::PIECES }> = "pieces",
        first_piece: Optional<Float64Type, { bit::PIECES }> = "first_chunk_ms",
        longest_gap: Optional<Float64Type, { bit::GAP }> = "longest_gap_ms",
        request_spread: Optional<Float64Type, { bit::LATENCY }> = "request_spread_ms",
        service: Optional<Float64Type, { bit::LATENCY }> = "service_ms",
        response_spread: Optional<Float64Type, { bit::LATENCY }> = "response_spread_ms",
        complete: Flag<{ bit::COMPLETE }> = "complete",
        cut_by: StaticWords<{ bit::CUT_BY }> = "cut_by",
        cause_times: CauseTimes = "ms",
        top_cause: CodedWords<{ Cause::COUNT }, { bit::TOP_CAUSE }> = "top_cause",
    }
}

impl Columns {
    /// Sets the columns of a response, which may be incomplete. Returns their bits.
    #[inline(always)]
    fn set_response(&mut self, slot: usize, response: &Message, start: i64) -> u32 {
        self.response_first_frame.set(slot, response.first.frame);
        self.response_last_frame.set(slot, response.last.frame);
        self.response_start.set(slot, response.first.time_ns);
        self.response_bytes.set(slot, response.bytes);
        self.ttfb.set(slot, ms(response.first.time_ns - start));
        bit::RESPONSE
    }

    /// Sets the latency and its parts, if the response is complete. Returns the bits of these columns.
    #[inline(always)]
    fn set_latency(&mut self, slot: usize, exchange: &Exchange, response: &Message, paths: &Paths) -> u32 {
        let (start, end) = (exchange.start(), exchange.end().time_ns.max(exchange.start()));
        let (request_spread, service, response_spread) =
            split_latency(start, end, &exchange.request, response);
        self.latency.set(slot, ms(end - start));
        self.request_spread.set(slot, ms(request_spread));
        self.service.set(slot, ms(service));
        self.response_spread.set(slot, ms(response_spread));
        let client_latency = client_latency(end - start, exchange.requester(), paths).map(ms);
        bit::LATENCY | self.client_latency.set_some(slot, client_latency)
    }

    /// Sets the columns of a response that came in pieces. Returns their bits.
    #[inline(always)]
    fn set_pieces(&mut self, slot: usize, pieces: &BodyPartStats, start: i64) -> u32 {
        let mut bits = 0;
        if pieces.count > 0 {
            self.pieces.set(slot, pieces.count);
            self.first_piece.set(slot, ms(pieces.first_ns - start));
            bits |= bit::PIECES;
        }
        if pieces.count > 1 {
            self.longest_gap.set(slot, ms(pieces.longest_gap_ns));
            bits |= bit::GAP;
        }
        bits
    }
}

#[derive(Default)]
pub struct Exchanges {
    columns: Columns,
    addresses: Addresses,
}

impl Exchanges {
    /// Adds a cause of the exchange that is pushed next.
    #[inline(always)]
    pub fn add_cause(&mut self, cause: &Row) {
        self.columns.cause_times.add(cause);
    }

    /// Adds a row. Returns true if the batch is full.
    pub fn push(&mut self, exchange: &Exchange, paths: &Paths, pairs: &Pairs) -> bool {
        let slot = self.columns.slot();
        let top_cause = self.columns.cause_times.set(slot);
        let row = self.columns.rows;
        self.columns.target.set(row, exchange.target.as_deref());
        self.columns.status_text.set(row, exchange.status_text.as_deref());
        if let Some(tags) = &exchange.tags {
            self.set_tags(row, tags);
        }
        let mut ends = self
            .addresses
            .keys(exchange.pair, false, || pairs.ends(exchange.pair));
        let mut ports = exchange.ports;
        if exchange.by_server {
            (ends, ports) = ((ends.1, ends.0), [ports[1], ports[0]]);
        }
        let ((client, server), [client_port, server_port]) = (ends, ports);
        let columns = &mut self.columns;
        let mut bits = 0;
        let (start, end) = (exchange.start(), exchange.end().time_ns.max(exchange.start()));
        columns.exchange.set(slot, exchange.id);
        columns.stream.set(slot, exchange.stream);
        columns.index.set(slot, exchange.index);
        columns.client.set(slot, client);
        columns.client_port.set(slot, client_port);
        columns.server.set(slot, server);
        columns.server_port.set(slot, server_port);
        columns
            .protocol
            .set(slot, exchange.protocol.unwrap_or_default().word());
        bits |= columns.method.set_some(slot, exchange.method.as_ref());
        bits |= columns.host.set_some(slot, exchange.host.as_ref());
        bits |= columns.kind.set_some(slot, exchange.kind.word());
        if exchange.by_server {
            bits |= bit::SERVER_ASKS;
        }
        bits |= columns.status.set_some(slot, exchange.status.map(u32::from));
        bits |= error_bits(exchange);
        columns.start.set(slot, start);
        columns.end.set(slot, end);
        columns
            .request_first_frame
            .set(slot, exchange.request.first.frame);
        columns.request_last_frame.set(slot, exchange.request.last.frame);
        columns.request_end.set(slot, exchange.request.last.time_ns);
        columns.request_bytes.set(slot, exchange.request.bytes);
        if let Some(response) = &exchange.response {
            bits |= columns.set_response(slot, response, start);
            if exchange.is_complete {
                bits |= columns.set_latency(slot, exchange, response, paths);
            }
        }
        if exchange.is_complete {
            bits |= bit::COMPLETE;
        }
        bits |= columns.set_pieces(slot, &exchange.pieces, start);
        bits |= columns.cut_by.set_some(slot, exchange.cut_by.map(CutBy::word));
        let top_cause = top_cause.map(|index| (index, Cause::word_at(index)));
        bits |= columns.top_cause.set_some(slot, top_cause);
        columns.row_bits.set(slot, bits);
        columns.end_row(slot)
    }

    #[cold]
    fn set_tags(&mut self, row: usize, tags: &Tags) {
        let columns = &mut self.columns;
        for (column, text) in [
            (&mut columns.trace_id, &tags.trace_id),
            (&mut columns.request_id, &tags.request_id),
            (&mut columns.forwarded_for, &tags.forwarded_for),
        ] {
            column.set(row, (!text.is_empty()).then_some(text));
        }
    }
}

impl Batch for Exchanges {
    fn rows(&self) -> usize {
        self.columns.rows
    }

    fn take(&mut self) -> Vec<Column> {
        let mut bits = self.columns.end_batch();
        bits.addresses = Some(self.addresses.take());
        self.columns.build(&bits, "")
    }
}

/// Returns the bits of the column `error`. It is null without a known protocol and without a complete response.
fn error_bits(exchange: &Exchange) -> u32 {
    if exchange.is_error {
        bit::ERROR | bit::ERROR_KNOWN
    } else if exchange.is_complete
        && matches!(exchange.kind, Kind::Request | Kind::LongPoll | Kind::EventStream)
    {
        bit::ERROR_KNOWN
    } else {
        0
    }
}

/// Estimates the latency that the requesting side saw: its clock started half a round trip before the request passed
/// the capture point and ended half a round trip after the response did.
fn client_latency(latency: i64, requester: Side, paths: &Paths) -> Option<i64> {
    paths.best_rtt(requester).map(|rtt| latency + rtt)
}

/// Splits the latency as Wireshark's TRANSUM does: request spread, service time, response spread. They add up to the
/// latency even if the response begins before the request has ended.
fn split_latency(start: i64, end: i64, request: &Message, response: &Message) -> (i64, i64, i64) {
    let request_end = request.last.time_ns.clamp(start, end);
    let response_start = response.first.time_ns.clamp(request_end, end);
    (
        request_end - start,
        response_start - request_end,
        end - response_start,
    )
}
