//! `probes`: one row per ping and per SYN of a connection that never carried data, with the answer.

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::PrimitiveArray;
use arrow_array::types::{TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use super::{Column, column, duration_options, fixed_words, instants, nullable, option, plain};
use crate::probe::{Probe, What};
use crate::stream::SynAnswer;

/// The rows from number `first` on.
pub fn columns(first: u64, rows: &[Probe]) -> Vec<Column> {
    type Row = Probe;
    let syn = |row: &Row| match row.what {
        What::Syn {
            stream, sport, dport, ..
        } => Some((stream, sport, dport)),
        What::Echo { .. } => None,
    };
    let echo = |row: &Row| match row.what {
        What::Echo { id, seq, .. } => Some((id, seq)),
        What::Syn { .. } => None,
    };
    let answer = |row: &Row| -> Option<SynAnswer> { row.answer };
    let answered = PrimitiveArray::<TimestampNanosecondType>::from_iter(
        rows.iter().map(|r| Some(answer(r)?.at.time_ns)),
    );
    let text = |of: fn(&Row) -> IpAddr| super::addresses(rows.iter().map(|r| Some(of(r))));
    let numbers = first..first + rows.len() as u64;
    vec![
        column(
            "probe",
            Arc::new(PrimitiveArray::<UInt64Type>::from_iter_values(numbers)),
        ),
        column(
            "kind",
            fixed_words(rows, |r| {
                Some(if syn(r).is_some() { "tcp_syn" } else { "icmp_echo" })
            }),
        ),
        nullable("stream", option::<UInt32Type, Row>(rows, |r| Some(syn(r)?.0))),
        column("src", text(|r| r.src)),
        column("dst", text(|r| r.dst)),
        nullable("sport", option::<UInt16Type, Row>(rows, |r| Some(syn(r)?.1))),
        nullable("dport", option::<UInt16Type, Row>(rows, |r| Some(syn(r)?.2))),
        nullable("id", option::<UInt16Type, Row>(rows, |r| Some(echo(r)?.0))),
        nullable("seq", option::<UInt16Type, Row>(rows, |r| Some(echo(r)?.1))),
        column(
            "ttl",
            plain::<UInt8Type, Row>(rows, |r| match r.what {
                What::Syn { ttl, .. } | What::Echo { ttl, .. } => ttl,
            }),
        ),
        column("sent_frame", plain::<UInt64Type, Row>(rows, |r| r.sent.frame)),
        column("sent", instants(rows, |r| r.sent.time_ns)),
        nullable("answer", fixed_words(rows, |r| Some(answer(r)?.kind.word()))),
        nullable(
            "answer_from",
            super::addresses(rows.iter().map(|r| Some(answer(r)?.from))),
        ),
        nullable(
            "answer_frame",
            option::<UInt64Type, Row>(rows, |r| Some(answer(r)?.at.frame)),
        ),
        nullable("answered", Arc::new(answered.with_timezone("UTC"))),
        nullable(
            "rtt_ms",
            duration_options(rows, |r| {
                Some(answer(r)?.at.time_ns.saturating_sub(r.sent.time_ns))
            }),
        ),
        column("repeats", plain::<UInt32Type, Row>(rows, |r| r.repeats)),
    ]
}
