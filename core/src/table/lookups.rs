//! `lookups`: one row per DNS query or other request over UDP, with its response.

use super::Column;
use super::cells::{Ms, Time, optional, required};
use crate::lookup::Lookup;

pub fn columns(rows: &[Lookup]) -> Vec<Column> {
    let latency_ns = |row: &Lookup| Some(row.answered?.time_ns.saturating_sub(row.sent.time_ns).max(0));
    vec![
        required("lookup", rows, |row| row.number),
        optional("stream", rows, |row| row.stream),
        required("client", rows, |row| row.client.0),
        required("client_port", rows, |row| row.client.1),
        required("server", rows, |row| row.server.0),
        required("server_port", rows, |row| row.server.1),
        required("id", rows, |row| row.id),
        required("method", rows, |row| row.kind.as_str()),
        required("target", rows, |row| row.name.as_str()),
        optional("status", rows, |row| Some(u32::from(row.status?.code?))),
        optional("status_text", rows, |row| row.status?.text),
        optional("error", rows, |row| row.status.map(|status| status.error)),
        required("start", rows, |row| Time(row.sent.time_ns)),
        optional("end", rows, |row| row.answered.map(|at| Time(at.time_ns))),
        optional("latency_ms", rows, |row| latency_ns(row).map(Ms)),
        required("request_frame", rows, |row| row.sent.frame),
        optional("response_frame", rows, |row| Some(row.answered?.frame)),
        required("last_sent", rows, |row| Time(row.last_ns)),
        required("repeats", rows, |row| row.retransmissions),
        required("addresses", rows, |row| row.addresses.as_slice()),
    ]
}
