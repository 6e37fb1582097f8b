//! `exchanges`: one row per request and its answer.

use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};

use super::addresses::Addresses;
use super::columns::{Address, EVERY, Flag, Full, Instant, Partial, SomeFlag, SomeInstant, blocks};
use super::spent::Spent;
use super::words::{Fixed, Interned, Listed, Texts};
use super::{Batch, Column, ms};
use crate::base::Side;
use crate::evidence::rtt::Pairs;
use crate::exchange::{CutBy, Exchange, Message};
use crate::judge::{Cause, Paths, Row};
use crate::messages::{Kind, Tags};

/// What a row has, a bit each.
mod has {
    pub const METHOD: u32 = 1 << 0;
    pub const STATUS: u32 = 1 << 1;
    pub const RESPONSE: u32 = 1 << 2;
    /// A whole answer.
    pub const LATENCY: u32 = 1 << 3;
    pub const CLIENT_LATENCY: u32 = 1 << 4;
    pub const COMPLETE: u32 = 1 << 5;
    pub const CUT_BY: u32 = 1 << 6;
    pub const TOP_CAUSE: u32 = 1 << 7;
    pub const HOST: u32 = 1 << 8;
    pub const KIND: u32 = 1 << 9;
    pub const ERROR: u32 = 1 << 10;
    /// Whether the answer is an error is known.
    pub const ERROR_KNOWN: u32 = 1 << 11;
    pub const PIECES: u32 = 1 << 12;
    /// Two pieces and more.
    pub const GAP: u32 = 1 << 13;
    /// The side that accepted the connection asks.
    pub const SERVER_ASKS: u32 = 1 << 14;
}

blocks! {
    struct Columns {
        exchange: Full<UInt64Type> = "exchange",
        stream: Full<UInt32Type> = "stream",
        index: Full<UInt32Type> = "index",
        client: Address = "client",
        client_port: Full<UInt16Type> = "client_port",
        server: Address = "server",
        server_port: Full<UInt16Type> = "server_port",
        protocol: Fixed<EVERY> = "protocol",
        method: Interned<{ has::METHOD }> = "method",
        target: Texts = "target",
        host: Interned<{ has::HOST }> = "host",
        trace_id: Texts = "trace_id",
        request_id: Texts = "request_id",
        forwarded_for: Texts = "forwarded_for",
        kind: Fixed<{ has::KIND }> = "kind",
        server_asks: Flag<{ has::SERVER_ASKS }> = "server_asks",
        status: Partial<UInt32Type, { has::STATUS }> = "status",
        status_text: Texts = "status_text",
        error: SomeFlag<{ has::ERROR }, { has::ERROR_KNOWN }> = "error",
        start: Instant = "start",
        end: Instant = "end",
        request_first_frame: Full<UInt64Type> = "request_first_frame",
        request_last_frame: Full<UInt64Type> = "request_last_frame",
        request_end: Instant = "request_end",
        response_first_frame: Partial<UInt64Type, { has::RESPONSE }> = "response_first_frame",
        response_last_frame: Partial<UInt64Type, { has::RESPONSE }> = "response_last_frame",
        response_start: SomeInstant<{ has::RESPONSE }> = "response_start",
        request_bytes: Full<UInt64Type> = "request_bytes",
        response_bytes: Partial<UInt64Type, { has::RESPONSE }> = "response_bytes",
        latency: Partial<Float64Type, { has::LATENCY }> = "latency_ms",
        client_latency: Partial<Float64Type, { has::CLIENT_LATENCY }> = "client_latency_ms",
        ttfb: Partial<Float64Type, { has::RESPONSE }> = "ttfb_ms",
        pieces: Partial<UInt32Type, { has::PIECES }> = "pieces",
        first_piece: Partial<Float64Type, { has::PIECES }> = "first_chunk_ms",
        longest_gap: Partial<Float64Type, { has::GAP }> = "longest_gap_ms",
        request_spread: Partial<Float64Type, { has::LATENCY }> = "request_spread_ms",
        service: Partial<Float64Type, { has::LATENCY }> = "service_ms",
        response_spread: Partial<Float64Type, { has::LATENCY }> = "response_spread_ms",
        complete: Flag<{ has::COMPLETE }> = "complete",
        cut_by: Fixed<{ has::CUT_BY }> = "cut_by",
        spent: Spent = "ms",
        top_cause: Listed<{ Cause::COUNT }, { has::TOP_CAUSE }> = "top_cause",
    }
}

#[derive(Default)]
pub struct Exchanges {
    columns: Columns,
    addresses: Addresses,
}

impl Exchanges {
    /// A cause of the exchange that comes next.
    #[inline(always)]
    pub fn spend(&mut self, cause: &Row) {
        self.columns.spent.add(cause);
    }

    /// True when the batch is full.
    pub fn push(&mut self, e: &Exchange, paths: &Paths, pairs: &Pairs) -> bool {
        let row = self.columns.place();
        let top_cause = self.columns.spent.set(row);
        let number = self.columns.rows;
        self.columns.target.set(number, e.target.as_deref());
        self.columns.status_text.set(number, e.status_text.as_deref());
        if let Some(tags) = &e.tags {
            self.tag(number, tags);
        }
        let mut ends = self.addresses.keys(e.pair, false, || pairs.ends(e.pair));
        let mut ports = e.ports;
        if e.by_server {
            (ends, ports) = ((ends.1, ends.0), [ports[1], ports[0]]);
        }
        let ((client, server), [client_port, server_port]) = (ends, ports);
        let columns = &mut self.columns;
        let mut has = 0;
        let (start, end) = (e.start(), e.end().time_ns.max(e.start()));
        columns.exchange.set(row, e.id);
        columns.stream.set(row, e.stream);
        columns.index.set(row, e.index);
        columns.client.set(row, client);
        columns.client_port.set(row, client_port);
        columns.server.set(row, server);
        columns.server_port.set(row, server_port);
        columns.protocol.set(row, e.protocol.unwrap_or_default().word());
        if let Some(method) = &e.method {
            columns.method.set(row, method);
            has |= has::METHOD;
        }
        if let Some(host) = &e.host {
            columns.host.set(row, host);
            has |= has::HOST;
        }
        has |= columns.kind.set_some(row, e.kind.word());
        if e.by_server {
            has |= has::SERVER_ASKS;
        }
        has |= columns.status.set_some(row, e.status.map(u32::from));
        has |= errors(e);
        columns.start.set(row, start);
        columns.end.set(row, end);
        columns.request_first_frame.set(row, e.request.first.frame);
        columns.request_last_frame.set(row, e.request.last.frame);
        columns.request_end.set(row, e.request.last.time_ns);
        columns.request_bytes.set(row, e.request.bytes);
        if let Some(m) = &e.response {
            columns.response_first_frame.set(row, m.first.frame);
            columns.response_last_frame.set(row, m.last.frame);
            columns.response_start.set(row, m.first.time_ns);
            columns.response_bytes.set(row, m.bytes);
            columns.ttfb.set(row, ms(m.first.time_ns - start));
            has |= has::RESPONSE;
            if e.complete {
                columns.latency.set(row, ms(end - start));
                let (request_spread, service, response_spread) = split(start, end, &e.request, m);
                columns.request_spread.set(row, ms(request_spread));
                columns.service.set(row, ms(service));
                columns.response_spread.set(row, ms(response_spread));
                has |= has::LATENCY;
                let latency = client_latency(end - start, e.asker(), paths).map(ms);
                has |= columns.client_latency.set_some(row, latency);
            }
        }
        if e.complete {
            has |= has::COMPLETE;
        }
        let pieces = &e.pieces;
        if pieces.count > 0 {
            columns.pieces.set(row, pieces.count);
            columns.first_piece.set(row, ms(pieces.first_ns - start));
            has |= has::PIECES;
        }
        if pieces.count > 1 {
            columns.longest_gap.set(row, ms(pieces.longest_gap_ns));
            has |= has::GAP;
        }
        has |= columns.cut_by.set_some(row, e.cut_by.map(CutBy::word));
        if let Some(top) = top_cause {
            columns.top_cause.set(row, top, Cause::word);
            has |= has::TOP_CAUSE;
        }
        columns.has.set(row, has);
        columns.done(row)
    }

    #[cold]
    fn tag(&mut self, number: usize, tags: &Tags) {
        let c = &mut self.columns;
        let columns = [&mut c.trace_id, &mut c.request_id, &mut c.forwarded_for];
        let texts = [&tags.trace_id, &tags.request_id, &tags.forwarded_for];
        for (column, text) in columns.into_iter().zip(texts) {
            column.set(number, (!text.is_empty()).then_some(text));
        }
    }
}

impl Batch for Exchanges {
    fn rows(&self) -> usize {
        self.columns.rows
    }

    fn take(&mut self) -> Vec<Column> {
        let mut taken = self.columns.end();
        taken.addresses = Some(self.addresses.take());
        self.columns.columns(&taken, "")
    }
}

/// Whether the answer of a request is an error: unknown without a protocol, and without an answer.
fn errors(e: &Exchange) -> u32 {
    if e.error {
        has::ERROR | has::ERROR_KNOWN
    } else if e.complete && matches!(e.kind, Kind::Request | Kind::LongPoll | Kind::EventStream) {
        has::ERROR_KNOWN
    } else {
        0
    }
}

/// The asker's own clock starts half a round trip before the request passes the capture and ends half a
/// round trip after the response did.
fn client_latency(latency: i64, asker: Side, paths: &Paths) -> Option<i64> {
    let round_trip = paths.min.get(asker.index()).copied().flatten();
    Some(latency + round_trip?)
}

/// TRANSUM's three: the request on the wire, until the first answer, the answer on the wire. Their sum is
/// the latency also where an answer begins before the request has ended.
fn split(start: i64, end: i64, request: &Message, response: &Message) -> (i64, i64, i64) {
    let request_end = request.last.time_ns.clamp(start, end);
    let answered = response.first.time_ns.clamp(request_end, end);
    (request_end - start, answered - request_end, end - answered)
}
