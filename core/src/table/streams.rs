//! `streams`: one row per TCP stream, in Wireshark's numbering.

use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{RecordBatch, StringArray};
use arrow_schema::ArrowError;
use std::sync::Arc;

use super::{booleans, column, duration_options, fixed_words, instants, nullable, option, plain};
use crate::messages::Side;
use crate::stream::{Stream, Streams};

/// Nearer than this to an endpoint's answer, and four times nearer than to the other's: the capture is there.
const AT_ENDPOINT_NS: i64 = 1_000_000;
/// Both endpoints answer within this: they share a machine or a wire, and the packets cannot say more.
const SAME_PLACE_NS: i64 = 50_000;

pub fn batch(streams: &Streams) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<(u32, &Stream)> = streams.iter().enumerate().map(|(id, s)| (id as u32, s)).collect();
    type Row<'a> = (u32, &'a Stream);
    let text =
        |of: fn(&Stream) -> String| Arc::new(StringArray::from_iter_values(rows.iter().map(|r| of(r.1))));
    let mut columns = vec![
        column("stream", plain::<UInt32Type, Row<'_>>(&rows, |r| r.0)),
        column("client", text(|s| s.client().0.to_string())),
        column(
            "client_port",
            plain::<UInt16Type, Row<'_>>(&rows, |r| r.1.client().1),
        ),
        column("server", text(|s| s.server().0.to_string())),
        column(
            "server_port",
            plain::<UInt16Type, Row<'_>>(&rows, |r| r.1.server().1),
        ),
        column("roles_by", fixed_words(&rows, |r| Some(r.1.roles_by))),
        nullable("protocol", fixed_words(&rows, |r| protocol(r.1))),
        column("start", instants(&rows, |r| r.1.first.time_ns)),
        column("end", instants(&rows, |r| r.1.last.time_ns)),
        column(
            "first_frame",
            plain::<UInt64Type, Row<'_>>(&rows, |r| r.1.first.frame),
        ),
        column(
            "last_frame",
            plain::<UInt64Type, Row<'_>>(&rows, |r| r.1.last.frame),
        ),
        column(
            "completeness",
            plain::<UInt8Type, Row<'_>>(&rows, |r| r.1.completeness()),
        ),
        nullable("initial_rtt_ms", duration_options(&rows, |r| r.1.initial_rtt())),
        nullable(
            "client_rtt_ms",
            duration_options(&rows, |r| r.1.side(Side::Client).leg),
        ),
        nullable(
            "server_rtt_ms",
            duration_options(&rows, |r| r.1.side(Side::Server).leg),
        ),
        nullable("position", fixed_words(&rows, |r| position(r.1))),
    ];
    for (side, name) in [(Side::Client, "client"), (Side::Server, "server")] {
        let counts = move |r: &Row<'_>| r.1.side(side).clone();
        columns.extend([
            column(
                format!("{name}_packets"),
                plain::<UInt64Type, Row<'_>>(&rows, |r| counts(r).packets),
            ),
            column(
                format!("{name}_bytes"),
                plain::<UInt64Type, Row<'_>>(&rows, |r| counts(r).bytes),
            ),
            column(
                format!("{name}_payload_bytes"),
                plain::<UInt64Type, Row<'_>>(&rows, |r| counts(r).payload),
            ),
            column(
                format!("{name}_retransmissions"),
                plain::<UInt64Type, Row<'_>>(&rows, |r| counts(r).retransmissions),
            ),
            column(
                format!("{name}_out_of_order"),
                plain::<UInt64Type, Row<'_>>(&rows, |r| counts(r).out_of_order),
            ),
            nullable(
                format!("{name}_mss"),
                option::<UInt16Type, Row<'_>>(&rows, |r| counts(r).mss),
            ),
            nullable(
                format!("{name}_wscale"),
                option::<UInt8Type, Row<'_>>(&rows, |r| counts(r).scale),
            ),
            column(format!("{name}_sack"), booleans(&rows, |r| counts(r).sack)),
            nullable(
                format!("{name}_window_min"),
                option::<UInt32Type, Row<'_>>(&rows, |r| counts(r).window_min),
            ),
        ]);
    }
    columns.extend([
        column("timestamps", booleans(&rows, |r| r.1.timestamps)),
        column(
            "exchanges",
            plain::<UInt32Type, Row<'_>>(&rows, |r| r.1.tracker.as_ref().map_or(0, |t| t.exchanges)),
        ),
        nullable("closed_by", fixed_words(&rows, |r| r.1.closed_by)),
    ]);
    super::batch(columns)
}

fn protocol(stream: &Stream) -> Option<&'static str> {
    stream
        .tracker
        .as_ref()
        .map(|t| t.protocol())
        .filter(|p| !p.is_empty())
}

/// Where the capture was taken, as far as the two legs tell.
fn position(stream: &Stream) -> Option<&'static str> {
    let (client, server) = (stream.side(Side::Client).leg?, stream.side(Side::Server).leg?);
    if client < SAME_PLACE_NS && server < SAME_PLACE_NS {
        return None;
    }
    if client < AT_ENDPOINT_NS && client * 4 < server {
        Some("at_client")
    } else if server < AT_ENDPOINT_NS && server * 4 < client {
        Some("at_server")
    } else {
        Some("between")
    }
}
