//! `lookups`: one row per question to a name server or request to another service over UDP, with the answer.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::{TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray};

use super::{
    Column, addresses, column, duration_options, fixed_words, instants, interned_words, nullable, option,
    plain,
};
use crate::lookup::Lookup;

pub fn columns(rows: &[Lookup]) -> Vec<Column> {
    type Row = Lookup;
    let answered = rows.iter().map(|r| r.answered.map(|at| at.time_ns));
    let answered = PrimitiveArray::<TimestampNanosecondType>::from_iter(answered).with_timezone("UTC");
    let latency = |r: &Row| Some(r.answered?.time_ns.saturating_sub(r.sent.time_ns).max(0));
    let error = rows.iter().map(|r| r.status.map(|status| status.error));
    vec![
        column("lookup", plain::<UInt64Type, Row>(rows, |r| r.number)),
        nullable("stream", option::<UInt32Type, Row>(rows, |r| r.stream)),
        column("client", addresses(rows.iter().map(|r| Some(r.client.0)))),
        column("client_port", plain::<UInt16Type, Row>(rows, |r| r.client.1)),
        column("server", addresses(rows.iter().map(|r| Some(r.server.0)))),
        column("server_port", plain::<UInt16Type, Row>(rows, |r| r.server.1)),
        column("id", plain::<UInt16Type, Row>(rows, |r| r.id)),
        column("method", interned_words(rows, |r| Some(r.kind.as_str()))),
        column("target", interned_words(rows, |r| Some(r.name.as_str()))),
        nullable(
            "status",
            option::<UInt32Type, Row>(rows, |r| Some(r.status?.code?.into())),
        ),
        nullable("status_text", fixed_words(rows, |r| r.status?.text)),
        nullable("error", Arc::new(error.collect::<BooleanArray>())),
        column("start", instants(rows, |r| r.sent.time_ns)),
        nullable("end", Arc::new(answered)),
        nullable("latency_ms", duration_options(rows, latency)),
        column("request_frame", plain::<UInt64Type, Row>(rows, |r| r.sent.frame)),
        nullable(
            "response_frame",
            option::<UInt64Type, Row>(rows, |r| Some(r.answered?.frame)),
        ),
        column("last_sent", instants(rows, |r| r.last)),
        column("repeats", plain::<UInt32Type, Row>(rows, |r| r.repeats)),
        column("addresses", lists(rows)),
    ]
}

/// The addresses of each answer, as text.
fn lists(rows: &[Lookup]) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in rows {
        for address in &row.addresses {
            lists.values().append_value(address.to_string());
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}
