//! `evidence`: one row per sender and peer between whom Nagle's algorithm could have acted. Counts what speaks for and
//! against it, over all streams of the two.

use super::Column;
use super::cells::{Ms, Text, optional, required};
use crate::base::Side;
use crate::evidence::SenderEvidence;
use crate::judge::SenderVerdict;
use crate::stream::Streams;

pub fn columns(streams: &Streams, judged: &[SenderVerdict]) -> Vec<Column> {
    let (senders, verdicts): (Vec<&SenderEvidence>, Vec<&SenderVerdict>) = streams
        .context
        .sender_store
        .iter()
        .zip(judged)
        .filter(|(evidence, _)| evidence.total_observations() > 0)
        .unzip();
    let holds: Vec<_> = verdicts.iter().map(|verdict| &verdict.measures.holds).collect();
    let paths: Vec<_> = verdicts.iter().map(|verdict| &verdict.measures.path).collect();
    let (senders, verdicts, holds, paths) = (&senders, &verdicts, &holds, &paths);
    vec![
        required("server", senders, |sender| Text(sender.key.server.to_string())),
        required("server_port", senders, |sender| sender.key.server_port),
        required("client", senders, |sender| Text(sender.key.client.to_string())),
        required("sender", senders, |sender| match sender.key.sender {
            Side::Client => "client",
            Side::Server => "server",
        }),
        required("verdict", verdicts, |verdict| verdict.nagle_use.word()),
        required("opportunities", senders, |sender| sender.total_observations()),
        required("held", holds, |holds| holds.count as u64),
        required("tight", holds, |holds| holds.prompt_count as u64),
        required("refuted", verdicts, |verdict| verdict.measures.refuted),
        required("prompt", verdicts, |verdict| verdict.measures.prompt),
        optional("slope", holds, |holds| holds.slope),
        required("sender_rtt_ms", paths, |path| Ms(path.sender_rtt_ns)),
        required("receiver_rtt_ms", paths, |path| Ms(path.receiver_rtt_ns)),
        required("tight_ms", paths, |path| Ms(path.prompt_limit_ns)),
        optional("hold_min_ms", holds, |holds| holds.shortest_ns.map(Ms)),
        optional("hold_median_ms", holds, |holds| holds.median_ns.map(Ms)),
        optional("hold_max_ms", holds, |holds| holds.longest_ns.map(Ms)),
        optional("release_median_ms", holds, |holds| {
            holds.release_median_ns.map(Ms)
        }),
        optional("release_p95_ms", holds, |holds| holds.release_p95_ns.map(Ms)),
        optional("tick_ms", holds, |holds| {
            holds.tick.map(|tick| Ms(tick.period_ns))
        }),
        optional("tick_p", holds, |holds| holds.tick.map(|tick| tick.luck)),
        required("streams", verdicts, |verdict| verdict.streams.all as u64),
        required("nagle_streams", verdicts, |verdict| verdict.streams.nagle as u64),
        required("nodelay_streams", verdicts, |verdict| {
            verdict.streams.nodelay as u64
        }),
        optional("changed_frame", verdicts, |verdict| Some(verdict.change?.frame)),
        optional("changed_to", verdicts, |verdict| {
            Some(if verdict.change?.nagle { "nagle" } else { "nodelay" })
        }),
        optional("changed_before", verdicts, |verdict| Some(verdict.change?.before)),
        optional("changed_after", verdicts, |verdict| Some(verdict.change?.after)),
        optional("changed_grade", verdicts, |verdict| {
            Some(if verdict.change?.clean {
                "proven"
            } else {
                "probable"
            })
        }),
    ]
}
