//! `streams`: one row per TCP stream, in Wireshark's numbering.

use arrow_array::types::{Float64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{BooleanArray, RecordBatch, StringArray};
use arrow_schema::ArrowError;
use std::net::IpAddr;
use std::sync::Arc;

use super::{Column, booleans, column, duration_options, fixed_words, instants, nullable, option, plain};
use crate::exchange::Names;
use crate::messages::Side;
use crate::stream::{Counts, Stream};

/// Nearer than this to an endpoint's answer, and four times nearer than to the other's: the capture is there.
const AT_ENDPOINT_NS: i64 = 1_000_000;
/// Both endpoints answer within this: they share a machine or a wire, and the packets cannot say more.
const SAME_PLACE_NS: i64 = 50_000;

type Row = (u32, Box<Stream>);

pub fn batch(rows: &[Row], names: &Names) -> Result<RecordBatch, ArrowError> {
    let text = |of: fn(&Stream) -> IpAddr| super::addresses(rows.iter(), |r: &Row| Some(of(&r.1)));
    let mut columns = vec![
        column("stream", plain::<UInt32Type, Row>(rows, |r| r.0)),
        column("client", text(|s| s.client().0)),
        column("client_port", plain::<UInt16Type, Row>(rows, |r| r.1.client().1)),
        column("server", text(|s| s.server().0)),
        column("server_port", plain::<UInt16Type, Row>(rows, |r| r.1.server().1)),
        column("roles_by", fixed_words(rows, |r| Some(r.1.roles_by))),
        nullable("protocol", fixed_words(rows, |r| protocol(&r.1))),
        nullable("server_software", Arc::new(software(names, rows))),
        column("start", instants(rows, |r| r.1.first.time_ns)),
        column("end", instants(rows, |r| r.1.last.time_ns)),
        column("first_frame", plain::<UInt64Type, Row>(rows, |r| r.1.first.frame)),
        column("last_frame", plain::<UInt64Type, Row>(rows, |r| r.1.last.frame)),
        column(
            "completeness",
            plain::<UInt8Type, Row>(rows, |r| r.1.completeness()),
        ),
        nullable("initial_rtt_ms", duration_options(rows, |r| r.1.initial_rtt())),
        nullable(
            "client_rtt_ms",
            duration_options(rows, |r| r.1.side(Side::Client).leg),
        ),
        nullable(
            "server_rtt_ms",
            duration_options(rows, |r| r.1.side(Side::Server).leg),
        ),
        nullable("position", fixed_words(rows, |r| position(&r.1))),
    ];
    for (side, name) in [(Side::Client, "client"), (Side::Server, "server")] {
        columns.extend(of_side(rows, side, name));
    }
    columns.extend([
        column("timestamps", booleans(rows, |r| r.1.timestamps)),
        column(
            "exchanges",
            plain::<UInt32Type, Row>(rows, |r| r.1.tracking.told().exchanges),
        ),
        nullable("closed_by", fixed_words(rows, |r| r.1.closed_by)),
        nullable("closed_how", fixed_words(rows, |r| r.1.closed_how())),
    ]);
    super::batch(columns)
}

/// What one side sent, and how long the path to it and back takes.
fn of_side(rows: &[Row], side: Side, name: &str) -> Vec<Column> {
    let count = |what: &str, of: fn(&Counts) -> u64| {
        let values = plain::<UInt64Type, Row>(rows, |r| of(r.1.side(side)));
        column(format!("{name}_{what}"), values)
    };
    let ms = |what: &str, of: fn(&Counts) -> Option<f64>| {
        let values = option::<Float64Type, Row>(rows, |r| of(r.1.side(side)));
        nullable(format!("{name}_{what}"), values)
    };
    vec![
        count("packets", |c| c.packets),
        count("bytes", |c| c.bytes),
        count("payload_bytes", |c| c.payload),
        count("retransmissions", |c| c.retransmissions),
        count("out_of_order", |c| c.out_of_order),
        nullable(
            format!("{name}_unseen_frames"),
            option::<UInt64Type, Row>(rows, |r| r.1.side(side).ids.unseen()),
        ),
        count("sacks", |c| c.sacks),
        count("dsacks", |c| c.dsacks),
        nullable(
            format!("{name}_mss"),
            option::<UInt16Type, Row>(rows, |r| r.1.side(side).mss),
        ),
        nullable(
            format!("{name}_wscale"),
            option::<UInt8Type, Row>(rows, |r| r.1.side(side).scale),
        ),
        nullable(
            format!("{name}_sack"),
            Arc::new(rows.iter().map(|r| r.1.side(side).sack).collect::<BooleanArray>()),
        ),
        nullable(
            format!("{name}_window_min"),
            option::<UInt32Type, Row>(rows, |r| r.1.window_min(side)),
        ),
        count("rtt_samples", |c| c.trips.samples()),
        ms("rtt_mean_ms", |c| c.trips.mean_ms()),
        ms("rtt_stdev_ms", |c| c.trips.stdev_ms()),
        ms("rtt_max_ms", |c| c.trips.max().map(super::ms)),
        count("held_acks", |c| c.trips.held),
    ]
}

fn protocol(stream: &Stream) -> Option<&'static str> {
    Some(stream.tracking.told().protocol).filter(|p| !p.is_empty())
}

/// What each row's server calls itself.
fn software(names: &Names, rows: &[Row]) -> StringArray {
    let said = rows.iter().map(|r| r.1.tracking.told().software);
    said.map(|name| name.and_then(|name| names.get(name))).collect()
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
