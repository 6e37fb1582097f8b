//! `exchanges`: one row per request and its answer.

use std::sync::Arc;

use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};

use super::columns::{Fixed, Full, Heard, Listed, Masks, Texts, instants, some_instants};
use super::{Column, column, ms, nullable};
use crate::cause::{Cause, Legs, Row};
use crate::exchange::{Exchange, Message};

const CAUSES: usize = Cause::ALL.len();
/// One bit each tells which of them a row has.
const _: () = assert!(CAUSES <= u32::BITS as usize);

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
}

#[derive(Default)]
pub struct Exchanges {
    rows: usize,
    schema: Option<SchemaRef>,
    has: Masks,
    exchange: Full<UInt64Type>,
    stream: Full<UInt32Type>,
    index: Full<UInt32Type>,
    protocol: Fixed,
    method: Heard,
    target: Texts,
    status: Full<UInt16Type>,
    start: Full<TimestampNanosecondType>,
    end: Full<TimestampNanosecondType>,
    request_first_frame: Full<UInt64Type>,
    request_last_frame: Full<UInt64Type>,
    request_end: Full<TimestampNanosecondType>,
    response_first_frame: Full<UInt64Type>,
    response_last_frame: Full<UInt64Type>,
    response_start: Full<TimestampNanosecondType>,
    request_bytes: Full<UInt64Type>,
    response_bytes: Full<UInt64Type>,
    latency: Full<Float64Type>,
    client_latency: Full<Float64Type>,
    ttfb: Full<Float64Type>,
    request_spread: Full<Float64Type>,
    service: Full<Float64Type>,
    response_spread: Full<Float64Type>,
    cut_by: Fixed,
    /// Row, cause, nanoseconds: most exchanges have few causes.
    spent: Vec<(usize, usize, i64)>,
    /// By cause, of the row that is being summed; 0 between rows.
    sums: [i64; CAUSES],
    top_cause: Listed<CAUSES>,
}

impl Exchanges {
    pub fn len(&self) -> usize {
        self.rows
    }

    /// There must be room: fewer than `BATCH_ROWS` rows.
    pub fn push(&mut self, e: &Exchange, causes: &[Row], legs: &Legs) {
        let row = self.rows;
        let mut has = 0;
        let (start, end) = (e.start(), e.end().time_ns.max(e.start()));
        self.exchange.set(row, e.id);
        self.stream.set(row, e.stream);
        self.index.set(row, e.index);
        self.protocol.set(row, e.protocol);
        if let Some(method) = e.method.as_deref() {
            self.method.set(row, method);
            has |= has::METHOD;
        }
        self.target.push(e.target.as_deref());
        if let Some(status) = e.status {
            self.status.set(row, status);
            has |= has::STATUS;
        }
        self.start.set(row, start);
        self.end.set(row, end);
        self.request_first_frame.set(row, e.request.first.frame);
        self.request_last_frame.set(row, e.request.last.frame);
        self.request_end.set(row, e.request.last.time_ns);
        self.request_bytes.set(row, e.request.bytes);
        if let Some(m) = &e.response {
            self.response_first_frame.set(row, m.first.frame);
            self.response_last_frame.set(row, m.last.frame);
            self.response_start.set(row, m.first.time_ns);
            self.response_bytes.set(row, m.bytes);
            self.ttfb.set(row, ms(m.first.time_ns - start));
            has |= has::RESPONSE;
            if e.complete {
                self.latency.set(row, ms(end - start));
                let (request_spread, service, response_spread) = split(start, end, &e.request, m);
                self.request_spread.set(row, ms(request_spread));
                self.service.set(row, ms(service));
                self.response_spread.set(row, ms(response_spread));
                has |= has::LATENCY;
                if let Some(latency) = client_latency(end - start, legs) {
                    self.client_latency.set(row, ms(latency));
                    has |= has::CLIENT_LATENCY;
                }
            }
        }
        if e.complete {
            has |= has::COMPLETE;
        }
        if let Some(cut_by) = e.cut_by {
            self.cut_by.set(row, cut_by);
            has |= has::CUT_BY;
        }
        if let Some(top) = self.causes(causes) {
            self.top_cause.set(row, top, Cause::word);
            has |= has::TOP_CAUSE;
        }
        self.has.set(row, has);
        self.rows += 1;
    }

    /// The time by cause, and the cause that took the most (the first of equals in the table's order).
    fn causes(&mut self, causes: &[Row]) -> Option<usize> {
        let mut touched = 0u32;
        for row in causes {
            if let Some(sum) = self.sums.get_mut(row.cause as usize) {
                *sum += row.end - row.start;
                touched |= 1 << row.cause as usize;
            }
        }
        let mut top = (0, None);
        while touched != 0 {
            let at = touched.trailing_zeros() as usize;
            touched &= touched - 1;
            let time = self.sums.get_mut(at).map_or(0, std::mem::take);
            if time > 0 {
                self.spent.push((self.rows, at, time));
            }
            if time > top.0 {
                top = (time, Some(at));
            }
        }
        top.1
    }

    /// One column of milliseconds per cause. Most causes have no row: those share a column of zeros.
    fn spent(&mut self, rows: usize) -> impl Iterator<Item = Column> {
        let mut columns: [Vec<f64>; CAUSES] = Default::default();
        for (row, cause, time) in self.spent.drain(..) {
            let Some(column) = columns.get_mut(cause) else {
                continue;
            };
            if column.is_empty() {
                column.resize(rows, 0.0);
            }
            if let Some(slot) = column.get_mut(row) {
                *slot = ms(time);
            }
        }
        let none: ArrayRef = Arc::new(Float64Array::from(vec![0.0; rows]));
        let named = columns.into_iter().zip(&Cause::ALL);
        named.map(move |(times, (_, name))| {
            let values = if times.is_empty() {
                Arc::clone(&none)
            } else {
                Arc::new(Float64Array::from(times))
            };
            column(format!("{name}_ms"), values)
        })
    }

    /// The rows so far as a batch; the next one begins empty.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let taken = self.has.take(rows);
        let nulls = |bit| taken.nulls(bit);
        let (answered, whole) = (nulls(has::RESPONSE), nulls(has::LATENCY));
        let answered = || answered.clone();
        let whole = || whole.clone();
        let spent: Vec<Column> = self.spent(rows).collect();
        let mut columns = vec![
            self.exchange.column(rows, "exchange"),
            self.stream.column(rows, "stream"),
            self.index.column(rows, "index"),
            column("protocol", self.protocol.take(rows, None)),
            nullable("method", self.method.take(nulls(has::METHOD))),
            nullable("target", self.target.take()),
            self.status.some(nulls(has::STATUS), "status"),
            instants(&mut self.start, rows, "start"),
            instants(&mut self.end, rows, "end"),
            self.request_first_frame.column(rows, "request_first_frame"),
            self.request_last_frame.column(rows, "request_last_frame"),
            instants(&mut self.request_end, rows, "request_end"),
            self.response_first_frame.some(answered(), "response_first_frame"),
            self.response_last_frame.some(answered(), "response_last_frame"),
            some_instants(&mut self.response_start, answered(), "response_start"),
            self.request_bytes.column(rows, "request_bytes"),
            self.response_bytes.some(answered(), "response_bytes"),
            self.latency.some(whole(), "latency_ms"),
            self.client_latency
                .some(nulls(has::CLIENT_LATENCY), "client_latency_ms"),
            self.ttfb.some(answered(), "ttfb_ms"),
            self.request_spread.some(whole(), "request_spread_ms"),
            self.service.some(whole(), "service_ms"),
            self.response_spread.some(whole(), "response_spread_ms"),
            column("complete", taken.booleans(has::COMPLETE)),
            nullable("cut_by", self.cut_by.take(rows, Some(nulls(has::CUT_BY)))),
        ];
        columns.extend(spent);
        let top_cause = self.top_cause.take(rows, Some(nulls(has::TOP_CAUSE)));
        columns.push(nullable("top_cause", top_cause));
        super::next_batch(&mut self.schema, columns)
    }
}

/// The client's own clock starts half a round trip before the request passes the capture and ends half a
/// round trip after the response did.
fn client_latency(latency: i64, legs: &Legs) -> Option<i64> {
    let [client, _] = legs.min;
    Some(latency + client?)
}

/// TRANSUM's three: the request on the wire, until the first answer, the answer on the wire. Their sum is
/// the latency also where an answer begins before the request has ended.
fn split(start: i64, end: i64, request: &Message, response: &Message) -> (i64, i64, i64) {
    let asked = request.last.time_ns.clamp(start, end);
    let answered = response.first.time_ns.clamp(asked, end);
    (asked - start, answered - asked, end - answered)
}
