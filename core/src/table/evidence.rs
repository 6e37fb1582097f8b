//! `evidence`: one row per sender and peer between whom Nagle's algorithm could have acted. Counts what speaks for and
//! against it, over all streams of the two.

use super::Column;
use super::cells::{Ms, Text, optional, required};
use crate::base::Side;
use crate::evidence::SenderEvidence;
use crate::judge::SenderVerdict;
use crate::stream::Streams;

pub fn columns(streams: &Streams, judged: &[SenderVerdict]) -> Vec<Column> {
    let rows: Vec<(&SenderEvidence, &SenderVerdict)> = streams
        .context
        .sender_store
        .iter()
        .zip(judged)
        .filter(|(evidence, _)| evidence.total_observations() > 0)
        .collect();
    let rows = &rows;
    vec![
        required("server", rows, |r| Text(r.0.key.server.to_string())),
        required("server_port", rows, |r| r.0.key.server_port),
        required("client", rows, |r| Text(r.0.key.client.to_string())),
        required("sender", rows, |r| match r.0.key.sender {
            Side::Client => "client",
            Side::Server => "server",
        }),
        required("verdict", rows, |r| r.1.nagle_use.word()),
        required("opportunities", rows, |r| r.0.total_observations()),
        required("held", rows, |r| r.1.holds.count as u64),
        required("tight", rows, |r| r.1.holds.prompt_count as u64),
        required("refuted", rows, |r| r.1.refuted),
        required("prompt", rows, |r| r.1.prompt),
        optional("slope", rows, |r| r.1.holds.slope),
        required("sender_rtt_ms", rows, |r| Ms(r.1.path.sender_rtt_ns)),
        required("receiver_rtt_ms", rows, |r| Ms(r.1.path.receiver_rtt_ns)),
        required("tight_ms", rows, |r| Ms(r.1.path.prompt_limit_ns)),
        optional("hold_min_ms", rows, |r| r.1.holds.shortest_ns.map(Ms)),
        optional("hold_median_ms", rows, |r| r.1.holds.median_ns.map(Ms)),
        optional("hold_max_ms", rows, |r| r.1.holds.longest_ns.map(Ms)),
        optional("release_median_ms", rows, |r| r.1.holds.release_median_ns.map(Ms)),
        optional("release_p95_ms", rows, |r| r.1.holds.release_p95_ns.map(Ms)),
        optional("tick_ms", rows, |r| r.1.holds.tick.map(|tick| Ms(tick.period_ns))),
        optional("tick_p", rows, |r| r.1.holds.tick.map(|tick| tick.luck)),
        required("streams", rows, |r| r.1.streams.all as u64),
        required("nagle_streams", rows, |r| r.1.streams.nagle as u64),
        required("nodelay_streams", rows, |r| r.1.streams.nodelay as u64),
        optional("changed_frame", rows, |r| Some(r.1.change?.frame)),
        optional("changed_to", rows, |r| {
            Some(if r.1.change?.nagle { "nagle" } else { "nodelay" })
        }),
        optional("changed_before", rows, |r| Some(r.1.change?.before)),
        optional("changed_after", rows, |r| Some(r.1.change?.after)),
        optional("changed_grade", rows, |r| {
            Some(if r.1.change?.clean { "proven" } else { "probable" })
        }),
    ]
}
