//! `streams`: one row per TCP stream, in Wireshark's numbering.

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::{
    Float64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::{ArrowError, SchemaRef};

use super::columns::{Fixed, Full, Masks, Texts, instants, renewed};
use super::{Column, addresses, column, ms, nullable};
use crate::exchange::Names;
use crate::messages::Side;
use crate::stream::{Counts, Stream};

/// Nearer than this to an endpoint's answer, and four times nearer than to the other's: the capture is there.
const AT_ENDPOINT_NS: i64 = 1_000_000;
/// Both endpoints answer within this: they share a machine or a wire, and the packets cannot say more.
const SAME_PLACE_NS: i64 = 50_000;

/// What a row has, a bit each.
mod has {
    pub const PROTOCOL: u32 = 1 << 0;
    pub const INITIAL_RTT: u32 = 1 << 1;
    pub const POSITION: u32 = 1 << 2;
    pub const TIMESTAMPS: u32 = 1 << 3;
    pub const CLOSED_BY: u32 = 1 << 4;
    pub const CLOSED_HOW: u32 = 1 << 5;
}

/// What one side of a row has.
mod side_has {
    pub const LEG: u32 = 1 << 0;
    pub const UNSEEN: u32 = 1 << 1;
    pub const MSS: u32 = 1 << 2;
    pub const SCALE: u32 = 1 << 3;
    pub const SACK: u32 = 1 << 4;
    pub const SACK_YES: u32 = 1 << 5;
    pub const WINDOW_MIN: u32 = 1 << 6;
    pub const RTT: u32 = 1 << 7;
    pub const RTT_STDEV: u32 = 1 << 8;
}

#[derive(Default)]
pub struct Rows {
    rows: usize,
    schema: Option<SchemaRef>,
    has: Masks,
    stream: Full<UInt32Type>,
    clients: Vec<IpAddr>,
    client_port: Full<UInt16Type>,
    servers: Vec<IpAddr>,
    server_port: Full<UInt16Type>,
    roles_by: Fixed,
    protocol: Fixed,
    software: Texts,
    start: Full<TimestampNanosecondType>,
    end: Full<TimestampNanosecondType>,
    first_frame: Full<UInt64Type>,
    last_frame: Full<UInt64Type>,
    completeness: Full<UInt8Type>,
    initial_rtt: Full<Float64Type>,
    position: Fixed,
    client: OfSide,
    server: OfSide,
    exchanges: Full<UInt32Type>,
    closed_by: Fixed,
    closed_how: Fixed,
}

/// What one side sent, and how long the path to it and back takes.
#[derive(Default)]
struct OfSide {
    has: Masks,
    leg: Full<Float64Type>,
    packets: Full<UInt64Type>,
    bytes: Full<UInt64Type>,
    payload: Full<UInt64Type>,
    retransmissions: Full<UInt64Type>,
    out_of_order: Full<UInt64Type>,
    unseen: Full<UInt64Type>,
    sacks: Full<UInt64Type>,
    dsacks: Full<UInt64Type>,
    mss: Full<UInt16Type>,
    scale: Full<UInt8Type>,
    window_min: Full<UInt32Type>,
    samples: Full<UInt64Type>,
    mean: Full<Float64Type>,
    stdev: Full<Float64Type>,
    max: Full<Float64Type>,
    held: Full<UInt64Type>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.rows
    }

    /// There must be room: fewer than `BATCH_ROWS` rows.
    pub fn push(&mut self, id: u32, stream: &Stream, names: &Names) {
        let row = self.rows;
        let mut has = 0;
        let told = stream.tracking.told();
        let ((client, client_port), (server, server_port)) = (stream.client(), stream.server());
        self.stream.set(row, id);
        self.clients.push(client);
        self.client_port.set(row, client_port);
        self.servers.push(server);
        self.server_port.set(row, server_port);
        self.roles_by.set(row, stream.roles_by);
        self.software.push(told.software.and_then(|name| names.get(name)));
        self.start.set(row, stream.first.time_ns);
        self.end.set(row, stream.last.time_ns);
        self.first_frame.set(row, stream.first.frame);
        self.last_frame.set(row, stream.last.frame);
        self.completeness.set(row, stream.completeness());
        self.exchanges.set(row, told.exchanges);
        if let Some(rtt) = stream.initial_rtt() {
            self.initial_rtt.set(row, ms(rtt));
            has |= has::INITIAL_RTT;
        }
        let mut word = |words: &mut Fixed, word: Option<&'static str>, bit: u32| {
            if let Some(word) = word {
                words.set(row, word);
                has |= bit;
            }
        };
        let protocol = Some(told.protocol).filter(|protocol| !protocol.is_empty());
        word(&mut self.protocol, protocol, has::PROTOCOL);
        word(&mut self.position, position(stream), has::POSITION);
        word(&mut self.closed_by, stream.closed_by, has::CLOSED_BY);
        word(&mut self.closed_how, stream.closed_how(), has::CLOSED_HOW);
        if stream.timestamps {
            has |= has::TIMESTAMPS;
        }
        for (rows, side) in [(&mut self.client, Side::Client), (&mut self.server, Side::Server)] {
            rows.set(row, stream.side(side), stream.window_min(side));
        }
        self.has.set(row, has);
        self.rows += 1;
    }

    /// The rows so far as a batch; the next one begins empty.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let taken = self.has.take(rows);
        let nulls = |bit| taken.nulls(bit);
        let (clients, servers) = (renewed(&mut self.clients), renewed(&mut self.servers));
        let text = |ends: Vec<IpAddr>| addresses(ends.iter(), |end| Some(*end));
        let (client, server) = (self.client.take(rows, "client"), self.server.take(rows, "server"));
        let ((client_leg, client), (server_leg, server)) = (client, server);
        let mut columns = vec![
            self.stream.column(rows, "stream"),
            column("client", text(clients)),
            self.client_port.column(rows, "client_port"),
            column("server", text(servers)),
            self.server_port.column(rows, "server_port"),
            column("roles_by", self.roles_by.take(rows, None)),
            nullable("protocol", self.protocol.take(rows, Some(nulls(has::PROTOCOL)))),
            nullable("server_software", self.software.take()),
            instants(&mut self.start, rows, "start"),
            instants(&mut self.end, rows, "end"),
            self.first_frame.column(rows, "first_frame"),
            self.last_frame.column(rows, "last_frame"),
            self.completeness.column(rows, "completeness"),
            self.initial_rtt.some(nulls(has::INITIAL_RTT), "initial_rtt_ms"),
            client_leg,
            server_leg,
            nullable("position", self.position.take(rows, Some(nulls(has::POSITION)))),
        ];
        columns.extend(client.into_iter().chain(server));
        columns.extend([
            column("timestamps", taken.booleans(has::TIMESTAMPS)),
            self.exchanges.column(rows, "exchanges"),
            nullable(
                "closed_by",
                self.closed_by.take(rows, Some(nulls(has::CLOSED_BY))),
            ),
            nullable(
                "closed_how",
                self.closed_how.take(rows, Some(nulls(has::CLOSED_HOW))),
            ),
        ]);
        super::next_batch(&mut self.schema, columns)
    }
}

impl OfSide {
    fn set(&mut self, row: usize, counts: &Counts, window_min: Option<u32>) {
        let mut has = 0;
        self.packets.set(row, counts.packets);
        self.bytes.set(row, counts.bytes);
        self.payload.set(row, counts.payload);
        self.retransmissions.set(row, counts.retransmissions);
        self.out_of_order.set(row, counts.out_of_order);
        self.sacks.set(row, counts.sacks);
        self.dsacks.set(row, counts.dsacks);
        self.samples.set(row, counts.trips.samples());
        self.held.set(row, counts.trips.held);
        if let Some(leg) = counts.leg {
            self.leg.set(row, ms(leg));
            has |= side_has::LEG;
        }
        if let Some(unseen) = counts.ids.unseen() {
            self.unseen.set(row, unseen);
            has |= side_has::UNSEEN;
        }
        if let Some(mss) = counts.mss {
            self.mss.set(row, mss);
            has |= side_has::MSS;
        }
        if let Some(scale) = counts.scale {
            self.scale.set(row, scale);
            has |= side_has::SCALE;
        }
        if let Some(sack) = counts.sack {
            has |= side_has::SACK | if sack { side_has::SACK_YES } else { 0 };
        }
        if let Some(window) = window_min {
            self.window_min.set(row, window);
            has |= side_has::WINDOW_MIN;
        }
        if let (Some(mean), Some(max)) = (counts.trips.mean_ms(), counts.trips.max()) {
            self.mean.set(row, mean);
            self.max.set(row, ms(max));
            has |= side_has::RTT;
        }
        if let Some(stdev) = counts.trips.stdev_ms() {
            self.stdev.set(row, stdev);
            has |= side_has::RTT_STDEV;
        }
        self.has.set(row, has);
    }

    /// The column of the path, and the others.
    fn take(&mut self, rows: usize, side: &str) -> (Column, Vec<Column>) {
        let taken = self.has.take(rows);
        let nulls = |bit| taken.nulls(bit);
        let name = |what: &str| format!("{side}_{what}");
        let sack = taken.some_booleans(side_has::SACK_YES, side_has::SACK);
        let columns = vec![
            self.packets.column(rows, &name("packets")),
            self.bytes.column(rows, &name("bytes")),
            self.payload.column(rows, &name("payload_bytes")),
            self.retransmissions.column(rows, &name("retransmissions")),
            self.out_of_order.column(rows, &name("out_of_order")),
            self.unseen.some(nulls(side_has::UNSEEN), &name("unseen_frames")),
            self.sacks.column(rows, &name("sacks")),
            self.dsacks.column(rows, &name("dsacks")),
            self.mss.some(nulls(side_has::MSS), &name("mss")),
            self.scale.some(nulls(side_has::SCALE), &name("wscale")),
            nullable(name("sack"), Arc::new(sack)),
            self.window_min
                .some(nulls(side_has::WINDOW_MIN), &name("window_min")),
            self.samples.column(rows, &name("rtt_samples")),
            self.mean.some(nulls(side_has::RTT), &name("rtt_mean_ms")),
            self.stdev.some(nulls(side_has::RTT_STDEV), &name("rtt_stdev_ms")),
            self.max.some(nulls(side_has::RTT), &name("rtt_max_ms")),
            self.held.column(rows, &name("held_acks")),
        ];
        (self.leg.some(nulls(side_has::LEG), &name("rtt_ms")), columns)
    }
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
