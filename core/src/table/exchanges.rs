//! `exchanges`: one row per request and its answer.

use std::sync::Arc;

use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch};
use arrow_schema::ArrowError;

use super::columns::{BLOCK_ROWS, Bits, Fixed, Full, Heard, Listed, Sparse, Texts, instants, some_instants};
use super::{Column, column, ms, nullable};
use crate::cause::{Cause, Legs, Row};
use crate::exchange::{Exchange, Message};
use crate::messages::At;

const CAUSES: usize = Cause::ALL.len();
/// One bit each tells which of them a row has.
const _: () = assert!(CAUSES <= u32::BITS as usize);

/// One row as it came, before it becomes columns.
#[derive(Clone, Copy)]
struct Line {
    id: u64,
    stream: u32,
    index: u32,
    protocol: &'static str,
    status: Option<u16>,
    start: i64,
    end: i64,
    request: Ends,
    response: Option<Ends>,
    latency: Option<i64>,
    client_latency: Option<i64>,
    split: Option<(i64, i64, i64)>,
    complete: bool,
    cut_by: Option<&'static str>,
    top_cause: Option<usize>,
}

/// A message's first and last packet, and its bytes.
#[derive(Clone, Copy)]
struct Ends {
    first: At,
    last: At,
    bytes: u64,
}

impl Ends {
    fn of(m: &Message) -> Self {
        Ends {
            first: m.first,
            last: m.last,
            bytes: m.bytes,
        }
    }
}

#[derive(Default)]
pub struct Exchanges {
    block: Vec<Line>,
    rows: usize,
    exchange: Full<UInt64Type>,
    stream: Full<UInt32Type>,
    index: Full<UInt32Type>,
    protocol: Fixed,
    method: Heard,
    target: Texts,
    status: Sparse<UInt16Type>,
    start: Full<TimestampNanosecondType>,
    end: Full<TimestampNanosecondType>,
    request_first_frame: Full<UInt64Type>,
    request_last_frame: Full<UInt64Type>,
    request_end: Full<TimestampNanosecondType>,
    response_first_frame: Sparse<UInt64Type>,
    response_last_frame: Sparse<UInt64Type>,
    response_start: Sparse<TimestampNanosecondType>,
    request_bytes: Full<UInt64Type>,
    response_bytes: Sparse<UInt64Type>,
    latency: Sparse<Float64Type>,
    client_latency: Sparse<Float64Type>,
    ttfb: Sparse<Float64Type>,
    request_spread: Sparse<Float64Type>,
    service: Sparse<Float64Type>,
    response_spread: Sparse<Float64Type>,
    complete: Bits,
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

    pub fn push(&mut self, e: &Exchange, causes: &[Row], legs: &Legs) {
        let (start, end) = (e.start(), e.end().time_ns.max(e.start()));
        let whole = e.response.as_ref().filter(|_| e.complete);
        self.method.push(e.method.as_deref());
        self.target.push(e.target.as_deref());
        let top_cause = self.causes(causes);
        self.block.push(Line {
            id: e.id,
            stream: e.stream,
            index: e.index,
            protocol: e.protocol,
            status: e.status,
            start,
            end,
            request: Ends::of(&e.request),
            response: e.response.as_ref().map(Ends::of),
            latency: whole.map(|_| end - start),
            client_latency: whole.and_then(|_| client_latency(end - start, legs)),
            split: whole.map(|m| split(start, end, &e.request, m)),
            complete: e.complete,
            cut_by: e.cut_by,
            top_cause,
        });
        self.rows += 1;
        if self.block.len() >= BLOCK_ROWS {
            self.columns();
        }
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

    /// The block's rows go to the columns: each in one tight loop, and the next block begins empty.
    fn columns(&mut self) {
        let block = std::mem::take(&mut self.block);
        let rows = block.as_slice();
        self.exchange.extend(rows, |r| r.id);
        self.stream.extend(rows, |r| r.stream);
        self.index.extend(rows, |r| r.index);
        self.protocol.extend(rows, |r| Some(r.protocol));
        self.status.extend(rows, |r| r.status);
        self.start.extend(rows, |r| r.start);
        self.end.extend(rows, |r| r.end);
        self.request_first_frame.extend(rows, |r| r.request.first.frame);
        self.request_last_frame.extend(rows, |r| r.request.last.frame);
        self.request_end.extend(rows, |r| r.request.last.time_ns);
        self.response_first_frame
            .extend(rows, |r| r.response.map(|m| m.first.frame));
        self.response_last_frame
            .extend(rows, |r| r.response.map(|m| m.last.frame));
        self.response_start
            .extend(rows, |r| r.response.map(|m| m.first.time_ns));
        self.request_bytes.extend(rows, |r| r.request.bytes);
        self.response_bytes.extend(rows, |r| r.response.map(|m| m.bytes));
        self.latency.extend(rows, |r| r.latency.map(ms));
        self.client_latency.extend(rows, |r| r.client_latency.map(ms));
        self.ttfb
            .extend(rows, |r| r.response.map(|m| ms(m.first.time_ns - r.start)));
        self.request_spread.extend(rows, |r| r.split.map(|s| ms(s.0)));
        self.service.extend(rows, |r| r.split.map(|s| ms(s.1)));
        self.response_spread.extend(rows, |r| r.split.map(|s| ms(s.2)));
        self.complete.extend(rows, |r| r.complete);
        self.cut_by.extend(rows, |r| r.cut_by);
        self.top_cause.extend(rows, |r| r.top_cause, Cause::word);
        self.block = block;
        self.block.clear();
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
        self.columns();
        let rows = std::mem::take(&mut self.rows);
        let spent: Vec<Column> = self.spent(rows).collect();
        let mut columns = vec![
            self.exchange.column("exchange"),
            self.stream.column("stream"),
            self.index.column("index"),
            column("protocol", self.protocol.take()),
            nullable("method", self.method.take()),
            nullable("target", self.target.take()),
            self.status.column("status"),
            instants(&mut self.start, "start"),
            instants(&mut self.end, "end"),
            self.request_first_frame.column("request_first_frame"),
            self.request_last_frame.column("request_last_frame"),
            instants(&mut self.request_end, "request_end"),
            self.response_first_frame.column("response_first_frame"),
            self.response_last_frame.column("response_last_frame"),
            some_instants(&mut self.response_start, "response_start"),
            self.request_bytes.column("request_bytes"),
            self.response_bytes.column("response_bytes"),
            self.latency.column("latency_ms"),
            self.client_latency.column("client_latency_ms"),
            self.ttfb.column("ttfb_ms"),
            self.request_spread.column("request_spread_ms"),
            self.service.column("service_ms"),
            self.response_spread.column("response_spread_ms"),
            column(
                "complete",
                Arc::new(BooleanArray::new(self.complete.take(), None)),
            ),
            nullable("cut_by", self.cut_by.take()),
        ];
        columns.extend(spent);
        columns.push(nullable("top_cause", self.top_cause.take()));
        super::batch(columns)
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
