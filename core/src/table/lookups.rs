//! `lookups`: one row per DNS query or other request over UDP, with its response.

use super::Column;
use super::cells::{Ms, Time, optional, required};
use crate::lookup::Lookup;

pub fn columns(rows: &[Lookup]) -> Vec<Column> {
    let latency_ns = |r: &Lookup| Some(r.answered?.time_ns.saturating_sub(r.sent.time_ns).max(0));
    vec![
        required("lookup", rows, |r| r.number),
        optional("stream", rows, |r| r.stream),
        required("client", rows, |r| r.client.0),
        required("client_port", rows, |r| r.client.1),
        required("server", rows, |r| r.server.0),
        required("server_port", rows, |r| r.server.1),
        required("id", rows, |r| r.id),
        required("method", rows, |r| r.kind.as_str()),
        required("target", rows, |r| r.name.as_str()),
        optional("status", rows, |r| Some(u32::from(r.status?.code?))),
        optional("status_text", rows, |r| r.status?.text),
        optional("error", rows, |r| r.status.map(|status| status.error)),
        required("start", rows, |r| Time(r.sent.time_ns)),
        optional("end", rows, |r| r.answered.map(|at| Time(at.time_ns))),
        optional("latency_ms", rows, |r| latency_ns(r).map(Ms)),
        required("request_frame", rows, |r| r.sent.frame),
        optional("response_frame", rows, |r| Some(r.answered?.frame)),
        required("last_sent", rows, |r| Time(r.last_ns)),
        required("repeats", rows, |r| r.retransmissions),
        required("addresses", rows, |r| r.addresses.as_slice()),
    ]
}
