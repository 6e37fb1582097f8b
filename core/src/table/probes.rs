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
        required("kind", rows, |row| {
            if syn(row).is_some() {
                "tcp_syn"
            } else {
                "icmp_echo"
            }
        }),
        optional("stream", rows, |row| Some(syn(row)?.0)),
        required("src", rows, |row| row.src),
        required("dst", rows, |row| row.dst),
        optional("sport", rows, |row| Some(syn(row)?.1)),
        optional("dport", rows, |row| Some(syn(row)?.2)),
        optional("id", rows, |row| Some(echo(row)?.0)),
        optional("seq", rows, |row| Some(echo(row)?.1)),
        required("ttl", rows, |row| match row.kind {
            ProbeKind::Syn { ttl, .. } | ProbeKind::Echo { ttl, .. } => ttl,
        }),
        required("sent_frame", rows, |row| row.sent.frame),
        required("sent", rows, |row| Time(row.sent.time_ns)),
        optional("answer", rows, |row| Some(row.answer?.kind.word())),
        optional("answer_from", rows, |row| Some(row.answer?.from)),
        optional("answer_frame", rows, |row| Some(row.answer?.at.frame)),
        optional("answered", rows, |row| Some(Time(row.answer?.at.time_ns))),
        optional("rtt_ms", rows, |row| {
            Some(Ms(row.answer?.at.time_ns.saturating_sub(row.sent.time_ns)))
        }),
        required("repeats", rows, |row| row.retransmissions),
    ]
}
