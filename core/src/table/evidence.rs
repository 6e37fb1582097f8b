//! `evidence`: one row per sender and peer for whom Nagle's algorithm could have acted: what was counted
//! for and against it, over all their streams.

use std::sync::Arc;

use arrow_array::types::{Float64Type, UInt16Type, UInt64Type};
use arrow_array::{ArrayRef, StringArray};

use super::{Column, column, duration_options, durations, fixed_words, nullable, option, plain};
use crate::base::Side;
use crate::evidence::SenderEvidence;
use crate::judge::{Change, Judged};
use crate::stream::Streams;

type Row<'a> = (&'a SenderEvidence, &'a Judged);

fn changed(rows: &[Row<'_>], of: fn(Change) -> u64) -> ArrayRef {
    option::<UInt64Type, Row<'_>>(rows, |r| r.1.change.map(of))
}

pub fn columns(streams: &Streams, judged: &[Judged]) -> Vec<Column> {
    let rows: Vec<Row<'_>> = streams
        .context
        .sender_store
        .iter()
        .zip(judged)
        .filter(|(evidence, _)| evidence.total_observations() > 0)
        .collect();
    let text = |of: fn(&SenderEvidence) -> String| {
        Arc::new(StringArray::from_iter_values(rows.iter().map(|r| of(r.0))))
    };
    vec![
        column("server", text(|p| p.key.server.to_string())),
        column(
            "server_port",
            plain::<UInt16Type, Row<'_>>(&rows, |r| r.0.key.server_port),
        ),
        column("client", text(|p| p.key.client.to_string())),
        column(
            "sender",
            fixed_words(&rows, |r| {
                Some(if r.0.key.sender == Side::Client {
                    "client"
                } else {
                    "server"
                })
            }),
        ),
        column("verdict", fixed_words(&rows, |r| Some(r.1.verdict.name()))),
        column(
            "opportunities",
            plain::<UInt64Type, Row<'_>>(&rows, |r| r.0.total_observations()),
        ),
        column("held", plain::<UInt64Type, Row<'_>>(&rows, |r| r.1.held as u64)),
        column(
            "tight",
            plain::<UInt64Type, Row<'_>>(&rows, |r| r.1.prompt_releases as u64),
        ),
        column("refuted", plain::<UInt64Type, Row<'_>>(&rows, |r| r.1.refuted)),
        column("prompt", plain::<UInt64Type, Row<'_>>(&rows, |r| r.1.prompt)),
        nullable("slope", option::<Float64Type, Row<'_>>(&rows, |r| r.1.slope)),
        column("sender_rtt_ms", durations(&rows, |r| r.1.sender_rtt)),
        column("receiver_rtt_ms", durations(&rows, |r| r.1.receiver_rtt)),
        column("tight_ms", durations(&rows, |r| r.1.prompt_limit_ns)),
        nullable("hold_min_ms", duration_options(&rows, |r| r.1.hold_min)),
        nullable("hold_median_ms", duration_options(&rows, |r| r.1.hold_median)),
        nullable("hold_max_ms", duration_options(&rows, |r| r.1.hold_max)),
        nullable(
            "release_median_ms",
            duration_options(&rows, |r| r.1.release_median),
        ),
        nullable("release_p95_ms", duration_options(&rows, |r| r.1.release_p95)),
        nullable("tick_ms", duration_options(&rows, |r| r.1.tick_ns)),
        nullable("tick_p", option::<Float64Type, Row<'_>>(&rows, |r| r.1.tick_p)),
        column(
            "streams",
            plain::<UInt64Type, Row<'_>>(&rows, |r| r.1.streams as u64),
        ),
        column(
            "nagle_streams",
            plain::<UInt64Type, Row<'_>>(&rows, |r| r.1.nagle_streams as u64),
        ),
        column(
            "nodelay_streams",
            plain::<UInt64Type, Row<'_>>(&rows, |r| r.1.nodelay_streams as u64),
        ),
        nullable("changed_frame", changed(&rows, |change| change.frame)),
        nullable(
            "changed_to",
            fixed_words(&rows, |r| {
                r.1.change
                    .map(|change| if change.nagle { "nagle" } else { "nodelay" })
            }),
        ),
        nullable("changed_before", changed(&rows, |change| change.before)),
        nullable("changed_after", changed(&rows, |change| change.after)),
        nullable(
            "changed_grade",
            fixed_words(&rows, |r| {
                r.1.change
                    .map(|change| if change.clean { "proven" } else { "probable" })
            }),
        ),
    ]
}
