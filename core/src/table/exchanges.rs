//! `exchanges`: one row per request and its answer.

use std::sync::Arc;

use arrow_array::types::{
    Float64Type, Int32Type, TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type,
};

use super::addresses::Addresses;
use super::columns::{EVERY, Full, Partial, blocks, instants, some_instants};
use super::spent::Spent;
use super::words::{Fixed, Interned, Listed, Texts, dictionary};
use super::{Column, column, ms, nullable};
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
        exchange: Full<UInt64Type>,
        stream: Full<UInt32Type>,
        index: Full<UInt32Type>,
        client: Full<Int32Type>,
        client_port: Full<UInt16Type>,
        server: Full<Int32Type>,
        server_port: Full<UInt16Type>,
        protocol: Fixed<EVERY>,
        method: Interned<{ has::METHOD }>,
        host: Interned<{ has::HOST }>,
        kind: Fixed<{ has::KIND }>,
        status: Partial<UInt32Type, { has::STATUS }>,
        start: Full<TimestampNanosecondType>,
        end: Full<TimestampNanosecondType>,
        request_first_frame: Full<UInt64Type>,
        request_last_frame: Full<UInt64Type>,
        request_end: Full<TimestampNanosecondType>,
        response_first_frame: Partial<UInt64Type, { has::RESPONSE }>,
        response_last_frame: Partial<UInt64Type, { has::RESPONSE }>,
        response_start: Partial<TimestampNanosecondType, { has::RESPONSE }>,
        request_bytes: Full<UInt64Type>,
        response_bytes: Partial<UInt64Type, { has::RESPONSE }>,
        latency: Partial<Float64Type, { has::LATENCY }>,
        client_latency: Partial<Float64Type, { has::CLIENT_LATENCY }>,
        ttfb: Partial<Float64Type, { has::RESPONSE }>,
        request_spread: Partial<Float64Type, { has::LATENCY }>,
        pieces: Partial<UInt32Type, { has::PIECES }>,
        first_piece: Partial<Float64Type, { has::PIECES }>,
        longest_gap: Partial<Float64Type, { has::GAP }>,
        service: Partial<Float64Type, { has::LATENCY }>,
        response_spread: Partial<Float64Type, { has::LATENCY }>,
        cut_by: Fixed<{ has::CUT_BY }>,
        spent: Spent,
        top_cause: Listed<{ Cause::COUNT }, { has::TOP_CAUSE }>,
    }
}

#[derive(Default)]
pub struct Exchanges {
    columns: Columns,
    addresses: Addresses,
    target: Texts,
    status_text: Texts,
    trace_id: Texts,
    request_id: Texts,
    forwarded_for: Texts,
}

impl Exchanges {
    pub fn len(&self) -> usize {
        self.columns.rows
    }

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
        self.target.set(number, e.target.as_deref());
        self.status_text.set(number, e.status_text.as_deref());
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
        let columns = [&mut self.trace_id, &mut self.request_id, &mut self.forwarded_for];
        let texts = [&tags.trace_id, &tags.request_id, &tags.forwarded_for];
        for (column, text) in columns.into_iter().zip(texts) {
            column.set(number, (!text.is_empty()).then_some(text));
        }
    }

    /// The columns of the rows so far; the next batch begins empty.
    pub fn take(&mut self) -> Vec<Column> {
        let c = &mut self.columns;
        let has = c.end();
        let rows = has.rows();
        let addresses = self.addresses.take();
        let mut columns = vec![
            c.exchange.column(rows, "exchange"),
            c.stream.column(rows, "stream"),
            c.index.column(rows, "index"),
            column("client", dictionary(c.client.take(rows), Arc::clone(&addresses))),
            c.client_port.column(rows, "client_port"),
            column("server", dictionary(c.server.take(rows), addresses)),
            c.server_port.column(rows, "server_port"),
            column("protocol", c.protocol.take(&has)),
            nullable("method", c.method.take(&has)),
            nullable("target", self.target.take(rows)),
            nullable("host", c.host.take(&has)),
            nullable("trace_id", self.trace_id.take(rows)),
            nullable("request_id", self.request_id.take(rows)),
            nullable("forwarded_for", self.forwarded_for.take(rows)),
            nullable("kind", c.kind.take(&has)),
            column("server_asks", has.booleans(has::SERVER_ASKS)),
            c.status.column(&has, "status"),
            nullable("status_text", self.status_text.take(rows)),
            nullable("error", has.some_booleans(has::ERROR, has::ERROR_KNOWN)),
            instants(&mut c.start, rows, "start"),
            instants(&mut c.end, rows, "end"),
            c.request_first_frame.column(rows, "request_first_frame"),
            c.request_last_frame.column(rows, "request_last_frame"),
            instants(&mut c.request_end, rows, "request_end"),
            c.response_first_frame.column(&has, "response_first_frame"),
            c.response_last_frame.column(&has, "response_last_frame"),
            some_instants(&mut c.response_start, &has, "response_start"),
            c.request_bytes.column(rows, "request_bytes"),
            c.response_bytes.column(&has, "response_bytes"),
            c.latency.column(&has, "latency_ms"),
            c.client_latency.column(&has, "client_latency_ms"),
            c.ttfb.column(&has, "ttfb_ms"),
            c.pieces.column(&has, "pieces"),
            c.first_piece.column(&has, "first_chunk_ms"),
            c.longest_gap.column(&has, "longest_gap_ms"),
            c.request_spread.column(&has, "request_spread_ms"),
            c.service.column(&has, "service_ms"),
            c.response_spread.column(&has, "response_spread_ms"),
            column("complete", has.booleans(has::COMPLETE)),
            nullable("cut_by", c.cut_by.take(&has)),
        ];
        columns.extend(c.spent.take(rows));
        let top_cause = c.top_cause.take(&has);
        columns.push(nullable("top_cause", top_cause));
        columns
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
