//! `probes`: one row per ping, and per SYN of a connection that never carried data, with the answer.

use super::Column;
use super::cells::{Ms, Time, optional, required};
use crate::probe::{Probe, ProbeKind};

/// The columns of a batch whose first row has number `first`.
pub fn columns(first: u64, rows: &[Probe]) -> Vec<Column> {
    /// Stream, source port and destination port of a SYN.
    fn syn(row: &Probe) -> Option<(u32, u16, u16)> {
        match row.kind {
            ProbeKind::Syn {
                stream, sport, dport, ..
            } => Some((stream, sport, dport)),
            ProbeKind::Echo { .. } => None,
        }
    }
    /// Identifier and sequence number of an echo request.
    fn echo(row: &Probe) -> Option<(u16, u16)> {
        match row.kind {
            ProbeKind::Echo { id, seq, .. } => Some((id, seq)),
            ProbeKind::Syn { .. } => None,
        }
    }
    let numbers: Vec<u64> = (first..first + rows.len() as u64).collect();
    vec![
        required("probe", &numbers, |number| *number),
        required("kind", rows, |r| {
            if syn(r).is_some() { "tcp_syn" } else { "icmp_echo" }
        }),
        optional("stream", rows, |r| Some(syn(r)?.0)),
        required("src", rows, |r| r.src),
        required("dst", rows, |r| r.dst),
        optional("sport", rows, |r| Some(syn(r)?.1)),
        optional("dport", rows, |r| Some(syn(r)?.2)),
        optional("id", rows, |r| Some(echo(r)?.0)),
        optional("seq", rows, |r| Some(echo(r)?.1)),
        required("ttl", rows, |r| match r.kind {
            ProbeKind::Syn { ttl, .. } | ProbeKind::Echo { ttl, .. } => ttl,
        }),
        required("sent_frame", rows, |r| r.sent.frame),
        required("sent", rows, |r| Time(r.sent.time_ns)),
        optional("answer", rows, |r| Some(r.answer?.kind.word())),
        optional("answer_from", rows, |r| Some(r.answer?.from)),
        optional("answer_frame", rows, |r| Some(r.answer?.at.frame)),
        optional("answered", rows, |r| Some(Time(r.answer?.at.time_ns))),
        optional("rtt_ms", rows, |r| {
            Some(Ms(r.answer?.at.time_ns.saturating_sub(r.sent.time_ns)))
        }),
        required("repeats", rows, |r| r.retransmissions),
    ]
}
