//! `exchanges`: one row per request and its answer.

use std::sync::Arc;

use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{BooleanArray, Float64Array, RecordBatch};
use arrow_schema::ArrowError;

use super::columns::{Fixed, Full, Heard, Sparse, Texts, instants, renewed, some_instants};
use super::{Column, column, ms, nullable};
use crate::cause::{Cause, Legs, Row};
use crate::exchange::{Exchange, Message};

const CAUSES: usize = Cause::ALL.len();

#[derive(Default)]
pub struct Exchanges {
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
    complete: Vec<bool>,
    cut_by: Fixed,
    /// Row, cause, nanoseconds: most exchanges have few causes.
    spent: Vec<(usize, usize, i64)>,
    top_cause: Fixed,
}

impl Exchanges {
    pub fn len(&self) -> usize {
        self.complete.len()
    }

    pub fn push(&mut self, e: &Exchange, causes: &[Row], legs: &Legs) {
        let (start, end) = (e.start(), e.end().time_ns.max(e.start()));
        let answer = e.response.as_ref();
        let whole = answer.filter(|_| e.complete);
        self.exchange.push(e.id);
        self.stream.push(e.stream);
        self.index.push(e.index);
        self.protocol.push(Some(e.protocol));
        self.method.push(e.method.as_deref());
        self.target.push(e.target.as_deref());
        self.status.push(e.status);
        self.start.push(start);
        self.end.push(end);
        self.request_first_frame.push(e.request.first.frame);
        self.request_last_frame.push(e.request.last.frame);
        self.request_end.push(e.request.last.time_ns);
        self.response_first_frame.push(answer.map(|m| m.first.frame));
        self.response_last_frame.push(answer.map(|m| m.last.frame));
        self.response_start.push(answer.map(|m| m.first.time_ns));
        self.request_bytes.push(e.request.bytes);
        self.response_bytes.push(answer.map(|m| m.bytes));
        self.latency.push(whole.map(|_| ms(end - start)));
        self.client_latency
            .push(whole.and_then(|_| client_latency(end - start, legs)).map(ms));
        self.ttfb.push(answer.map(|m| ms(m.first.time_ns - start)));
        let split = whole.map(|m| split(start, end, &e.request, m));
        self.request_spread.push(split.map(|s| ms(s.0)));
        self.service.push(split.map(|s| ms(s.1)));
        self.response_spread.push(split.map(|s| ms(s.2)));
        self.complete.push(e.complete);
        self.cut_by.push(e.cut_by);
        self.causes(causes);
    }

    /// The time by cause, and the cause that took the most (the first of equals in the table's order).
    fn causes(&mut self, causes: &[Row]) {
        let mut spent = [0i64; CAUSES];
        for row in causes {
            if let Some(sum) = spent.get_mut(row.cause as usize) {
                *sum += row.end - row.start;
            }
        }
        let row = self.complete.len() - 1;
        let mut top = (0, None);
        for (at, (time, (_, name))) in spent.iter().zip(&Cause::ALL).enumerate() {
            if *time > 0 {
                self.spent.push((row, at, *time));
            }
            if *time > top.0 {
                top = (*time, Some(*name));
            }
        }
        self.top_cause.push(top.1);
    }

    /// One column of milliseconds per cause.
    fn spent(&mut self, rows: usize) -> impl Iterator<Item = Column> {
        let mut columns = vec![vec![0.0; rows]; CAUSES];
        for (row, cause, time) in self.spent.drain(..) {
            if let Some(slot) = columns.get_mut(cause).and_then(|c| c.get_mut(row)) {
                *slot = ms(time);
            }
        }
        let named = columns.into_iter().zip(&Cause::ALL);
        named.map(|(times, (_, name))| column(format!("{name}_ms"), Arc::new(Float64Array::from(times))))
    }

    /// The rows so far as a batch; the next one begins empty.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = self.len();
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
                Arc::new(BooleanArray::from(renewed(&mut self.complete))),
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
