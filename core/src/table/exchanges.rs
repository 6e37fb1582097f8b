//! `exchanges`: one row per request and its answer.

use std::sync::Arc;

use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{RecordBatch, StringArray};
use arrow_schema::ArrowError;

use super::{booleans, column, duration_options, instant_options, instants, ms, nullable, option, plain, words};
use crate::cause::Cause;
use crate::engine::Settled;
use crate::exchange::Message;

pub fn batch(rows: &[Settled]) -> Result<RecordBatch, ArrowError> {
    let response = |r: &Settled| r.exchange.response.clone();
    let whole = |r: &Settled| response(r).filter(|_| r.exchange.complete);
    let mut columns = vec![
        column("exchange", plain::<UInt64Type, Settled>(rows, |r| r.exchange.id)),
        column("stream", plain::<UInt32Type, Settled>(rows, |r| r.exchange.stream)),
        column("index", plain::<UInt32Type, Settled>(rows, |r| r.exchange.index)),
        column("protocol", words(rows, |r| Some(r.exchange.protocol))),
        nullable("method", words(rows, |r| r.exchange.method.as_deref())),
        nullable(
            "target",
            Arc::new(rows.iter().map(|r| r.exchange.target.as_deref()).collect::<StringArray>()),
        ),
        nullable("status", option::<UInt16Type, Settled>(rows, |r| r.exchange.status)),
        column("start", instants(rows, |r| r.exchange.start())),
        column("end", instants(rows, |r| end(r))),
        column("request_first_frame", plain::<UInt64Type, Settled>(rows, |r| r.exchange.request.first.frame)),
        column("request_last_frame", plain::<UInt64Type, Settled>(rows, |r| r.exchange.request.last.frame)),
        column("request_end", instants(rows, |r| r.exchange.request.last.time_ns)),
        nullable("response_first_frame", option::<UInt64Type, Settled>(rows, |r| response(r).map(|m| m.first.frame))),
        nullable("response_last_frame", option::<UInt64Type, Settled>(rows, |r| response(r).map(|m| m.last.frame))),
        nullable("response_start", instant_options(rows, |r| response(r).map(|m| m.first.time_ns))),
        column("request_bytes", plain::<UInt64Type, Settled>(rows, |r| r.exchange.request.bytes)),
        nullable("response_bytes", option::<UInt64Type, Settled>(rows, |r| response(r).map(|m| m.bytes))),
        nullable("latency_ms", duration_options(rows, |r| whole(r).map(|_| end(r) - r.exchange.start()))),
        nullable("client_latency_ms", duration_options(rows, client_latency)),
        nullable(
            "ttfb_ms",
            duration_options(rows, |r| response(r).map(|m| m.first.time_ns - r.exchange.start())),
        ),
        nullable("request_spread_ms", duration_options(rows, |r| whole(r).map(|m| split(r, &m).0))),
        nullable("service_ms", duration_options(rows, |r| whole(r).map(|m| split(r, &m).1))),
        nullable("response_spread_ms", duration_options(rows, |r| whole(r).map(|m| split(r, &m).2))),
        column("complete", booleans(rows, |r| r.exchange.complete)),
        nullable("cut_by", words(rows, |r| r.exchange.cut_by)),
    ];
    for (cause, name) in Cause::ALL {
        let spent = plain::<Float64Type, Settled>(rows, |r| ms(spent(r, cause)));
        columns.push(column(format!("{name}_ms"), spent));
    }
    columns.push(nullable("top_cause", words(rows, |r| top(r))));
    super::batch(columns)
}

fn end(row: &Settled) -> i64 {
    row.exchange.end().time_ns.max(row.exchange.start())
}

/// The client's own clock starts half a round trip before the request passes the capture and ends half a
/// round trip after the response did.
fn client_latency(row: &Settled) -> Option<i64> {
    let [client, _] = row.legs.min;
    row.exchange.complete.then_some(())?;
    Some(end(row) - row.exchange.start() + client?)
}

/// TRANSUM's three: the request on the wire, until the first answer, the answer on the wire. Their sum is
/// the latency also where an answer begins before the request has ended.
fn split(row: &Settled, response: &Message) -> (i64, i64, i64) {
    let (start, end) = (row.exchange.start(), end(row));
    let asked = row.exchange.request.last.time_ns.clamp(start, end);
    let answered = response.first.time_ns.clamp(asked, end);
    (asked - start, answered - asked, end - answered)
}

fn spent(row: &Settled, cause: Cause) -> i64 {
    row.causes.iter().filter(|c| c.cause == cause).map(|c| c.end - c.start).sum()
}

fn top(row: &Settled) -> Option<&'static str> {
    let most = Cause::ALL.iter().map(|(cause, name)| (spent(row, *cause), *name)).reduce(|a, b| {
        if b.0 > a.0 { b } else { a } // the first of equals, in the table's order
    })?;
    (most.0 > 0).then_some(most.1)
}
