//! `streams`: one row per TCP stream, in Wireshark's numbering.

use std::net::{IpAddr, SocketAddr};

use arrow_array::types::{
    Float64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use smol_str::SmolStr;

use super::columns::{EVERY, Full, Partial, blocks, instants};
use super::words::{Fixed, Listed, Texts};
use super::{Column, addresses, column, community, ms, nullable};
use crate::base::Side;
use crate::exchange::Context;
use crate::limits::{AT_ENDPOINT_NS, AT_HOST_NS, FAR_MORE};
use crate::messages::Protocol;
use crate::stream::{Closing, Counts, Ending, RolesBy, Stream};

/// What a row has, a bit each.
mod has {
    pub const PROTOCOL: u32 = 1 << 0;
    pub const INITIAL_RTT: u32 = 1 << 1;
    pub const POSITION: u32 = 1 << 2;
    pub const TIMESTAMPS: u32 = 1 << 3;
    pub const CLOSED_BY: u32 = 1 << 4;
    pub const CLOSED_HOW: u32 = 1 << 5;
    pub const CONTROL: u32 = 1 << 6;
}

/// What one side of a row has.
mod side_has {
    pub const BEST_RTT: u32 = 1 << 0;
    pub const UNSEEN: u32 = 1 << 1;
    pub const MSS: u32 = 1 << 2;
    pub const SCALE: u32 = 1 << 3;
    pub const SACK: u32 = 1 << 4;
    pub const SACK_YES: u32 = 1 << 5;
    pub const WINDOW_MIN: u32 = 1 << 6;
    pub const RTT: u32 = 1 << 7;
    pub const RTT_STDEV: u32 = 1 << 8;
    pub const NEXT_MTU: u32 = 1 << 9;
}

blocks! {
    struct Columns {
        stream: Full<UInt32Type>,
        client_port: Full<UInt16Type>,
        server_port: Full<UInt16Type>,
        roles_by: Listed<{ RolesBy::COUNT }, EVERY>,
        protocol: Fixed<{ has::PROTOCOL }>,
        control: Partial<UInt32Type, { has::CONTROL }>,
        start: Full<TimestampNanosecondType>,
        end: Full<TimestampNanosecondType>,
        first_frame: Full<UInt64Type>,
        last_frame: Full<UInt64Type>,
        completeness: Full<UInt8Type>,
        initial_rtt: Partial<Float64Type, { has::INITIAL_RTT }>,
        position: Listed<{ Position::COUNT }, { has::POSITION }>,
        exchanges: Full<UInt32Type>,
        closed_by: Listed<{ Closing::COUNT }, { has::CLOSED_BY }>,
        closed_how: Listed<{ Ending::COUNT }, { has::CLOSED_HOW }>,
    }
}

blocks! {
    /// What one side sent, and how long the path to it and back takes.
    struct OfSide {
        best_rtt: Partial<Float64Type, { side_has::BEST_RTT }>,
        packets: Full<UInt64Type>,
        bytes: Full<UInt64Type>,
        payload: Full<UInt64Type>,
        retransmissions: Full<UInt64Type>,
        out_of_order: Full<UInt64Type>,
        spurious: Full<UInt64Type>,
        unseen: Partial<UInt64Type, { side_has::UNSEEN }>,
        sacks: Full<UInt64Type>,
        dsacks: Full<UInt64Type>,
        too_big: Full<UInt32Type>,
        next_mtu: Partial<UInt32Type, { side_has::NEXT_MTU }>,
        mss: Partial<UInt16Type, { side_has::MSS }>,
        scale: Partial<UInt8Type, { side_has::SCALE }>,
        window_min: Partial<UInt32Type, { side_has::WINDOW_MIN }>,
        samples: Full<UInt64Type>,
        mean: Partial<Float64Type, { side_has::RTT }>,
        stdev: Partial<Float64Type, { side_has::RTT_STDEV }>,
        max: Partial<Float64Type, { side_has::RTT }>,
        held: Full<UInt64Type>,
    }
}

#[derive(Default)]
pub struct StreamColumns {
    columns: Columns,
    clients: Vec<IpAddr>,
    servers: Vec<IpAddr>,
    software: Texts,
    names: Texts,
    commands: Texts,
    communities: Texts,
    client: OfSide,
    server: OfSide,
}

impl StreamColumns {
    pub fn len(&self) -> usize {
        self.columns.rows
    }

    /// True when the batch is full.
    pub fn push(&mut self, id: u32, stream: &Stream, context: &Context) -> bool {
        let columns = &mut self.columns;
        let (number, row) = (columns.rows, columns.place());
        let read = stream.tracking.read_so_far();
        let ((client, client_port), (server, server_port)) = (stream.client(), stream.server());
        self.clients.push(client);
        self.servers.push(server);
        let name = |place| context.names.get(place).map(SmolStr::as_str);
        let secured = read.begun.secured.and_then(|how| context.secured.get(how));
        let sni = secured.and_then(|how| how.server_name.as_deref());
        self.names.set(number, sni.or_else(|| name(read.begun.named?)));
        self.software.set(number, read.software.and_then(name));
        let carried = read.begun.carries.and_then(|what| context.carried.get(what));
        self.commands
            .set(number, carried.map(|carried| carried.command.as_str()));
        let ends = (
            SocketAddr::new(client, client_port),
            SocketAddr::new(server, server_port),
        );
        self.communities.set(number, Some(&community::id(ends.0, ends.1)));
        columns.stream.set(row, id);
        columns.client_port.set(row, client_port);
        columns.server_port.set(row, server_port);
        let by = stream.roles_by;
        columns.roles_by.set(row, by as usize, |_| by.word());
        columns.start.set(row, stream.first.time_ns);
        columns.end.set(row, stream.last.time_ns);
        columns.first_frame.set(row, stream.first.frame);
        columns.last_frame.set(row, stream.last.frame);
        columns.completeness.set(row, stream.completeness());
        columns.exchanges.set(row, read.exchanges);
        let protocol = read.protocol.map(Protocol::word);
        let mut has = columns.initial_rtt.set_some(row, stream.initial_rtt().map(ms));
        has |= columns.protocol.set_some(row, protocol);
        has |= columns
            .control
            .set_some(row, carried.map(|carried| carried.control));
        let position = position(stream).map(|at| (at as usize, at.word()));
        has |= columns.position.set_some(row, position);
        let closing = stream.closed_by.map(|first| (first.code(), first.word()));
        has |= columns.closed_by.set_some(row, closing);
        let ending = stream.ending().map(|how| (how as usize, how.word()));
        has |= columns.closed_how.set_some(row, ending);
        if stream.timestamps {
            has |= has::TIMESTAMPS;
        }
        columns.has.set(row, has);
        let sides = [(&mut self.client, Side::Client), (&mut self.server, Side::Server)];
        for ((rows, side), rtt) in sides.into_iter().zip(stream.rtts) {
            rows.push(stream.side(side), rtt, stream.window_min(side));
        }
        columns.done(row)
    }

    /// The columns of the rows so far; the next batch begins empty.
    pub fn take(&mut self) -> Vec<Column> {
        let c = &mut self.columns;
        let has = c.end();
        let rows = has.rows();
        let text = |ends: &mut Vec<IpAddr>| addresses(ends.drain(..).map(Some));
        let (client_rtt, client) = self.client.take("client");
        let (server_rtt, server) = self.server.take("server");
        let mut columns = vec![
            c.stream.column(rows, "stream"),
            column("client", text(&mut self.clients)),
            c.client_port.column(rows, "client_port"),
            column("server", text(&mut self.servers)),
            c.server_port.column(rows, "server_port"),
            column("roles_by", c.roles_by.take(&has)),
            nullable("protocol", c.protocol.take(&has)),
            nullable("server_name", self.names.take(rows)),
            nullable("server_software", self.software.take(rows)),
            c.control.column(&has, "control_stream"),
            nullable("command", self.commands.take(rows)),
            instants(&mut c.start, rows, "start"),
            instants(&mut c.end, rows, "end"),
            c.first_frame.column(rows, "first_frame"),
            c.last_frame.column(rows, "last_frame"),
            c.completeness.column(rows, "completeness"),
            c.initial_rtt.column(&has, "initial_rtt_ms"),
            client_rtt,
            server_rtt,
            nullable("position", c.position.take(&has)),
        ];
        columns.extend(client.into_iter().chain(server));
        columns.extend([
            column("timestamps", has.booleans(has::TIMESTAMPS)),
            c.exchanges.column(rows, "exchanges"),
            nullable("closed_by", c.closed_by.take(&has)),
            nullable("closed_how", c.closed_how.take(&has)),
            column("community_id", self.communities.take(rows)),
        ]);
        columns
    }
}

impl OfSide {
    fn push(&mut self, counts: &Counts, rtt: Option<i64>, window_min: Option<u32>) {
        let (trips, row) = (&counts.trips, self.place());
        let unusual = counts.unusual();
        self.packets.set(row, counts.packets);
        self.bytes.set(row, counts.bytes);
        self.payload.set(row, counts.payload);
        self.retransmissions.set(row, unusual.retransmissions);
        self.out_of_order.set(row, unusual.out_of_order);
        self.spurious.set(row, unusual.spurious);
        self.sacks.set(row, unusual.sacks);
        self.dsacks.set(row, unusual.dsacks);
        self.too_big.set(row, unusual.too_big);
        self.samples.set(row, trips.samples());
        self.held.set(row, trips.held());
        let mut has = self.best_rtt.set_some(row, rtt.map(ms));
        has |= self.unseen.set_some(row, counts.ip_ids.unseen());
        has |= self.next_mtu.set_some(row, unusual.next_mtu);
        has |= self.mss.set_some(row, counts.mss);
        has |= self.scale.set_some(row, counts.scale);
        has |= self.window_min.set_some(row, window_min);
        if let Some(sack) = counts.sack {
            has |= side_has::SACK | if sack { side_has::SACK_YES } else { 0 };
        }
        if let (Some(mean), Some(max)) = (trips.mean_ms(), trips.max()) {
            self.mean.set(row, mean);
            self.max.set(row, ms(max));
            has |= side_has::RTT;
        }
        has |= self.stdev.set_some(row, trips.stdev_ms());
        self.has.set(row, has);
        self.done(row);
    }

    /// The column of the path, and the others.
    fn take(&mut self, side: &str) -> (Column, Vec<Column>) {
        let has = self.end();
        let rows = has.rows();
        let name = |what: &str| format!("{side}_{what}");
        let columns = vec![
            self.packets.column(rows, name("packets")),
            self.bytes.column(rows, name("bytes")),
            self.payload.column(rows, name("payload_bytes")),
            self.retransmissions.column(rows, name("retransmissions")),
            self.out_of_order.column(rows, name("out_of_order")),
            self.spurious.column(rows, name("spurious_retransmissions")),
            self.unseen.column(&has, name("unseen_frames")),
            self.sacks.column(rows, name("sacks")),
            self.dsacks.column(rows, name("dsacks")),
            self.too_big.column(rows, name("icmp_too_big")),
            self.next_mtu.column(&has, name("icmp_next_mtu")),
            self.mss.column(&has, name("mss")),
            self.scale.column(&has, name("wscale")),
            nullable(
                name("sack"),
                has.some_booleans(side_has::SACK_YES, side_has::SACK),
            ),
            self.window_min.column(&has, name("window_min")),
            self.samples.column(rows, name("rtt_samples")),
            self.mean.column(&has, name("rtt_mean_ms")),
            self.stdev.column(&has, name("rtt_stdev_ms")),
            self.max.column(&has, name("rtt_max_ms")),
            self.held.column(rows, name("held_acks")),
        ];
        (self.best_rtt.column(&has, name("rtt_ms")), columns)
    }
}

/// Where the capture was taken.
#[derive(Debug, Clone, Copy)]
enum Position {
    AtClient,
    AtServer,
    Between,
}

impl Position {
    const COUNT: usize = Position::Between as usize + 1;

    fn word(self) -> &'static str {
        match self {
            Position::AtClient => "at_client",
            Position::AtServer => "at_server",
            Position::Between => "between",
        }
    }
}

/// Where the capture was taken, as far as the two round trips tell.
fn position(stream: &Stream) -> Option<Position> {
    let [Some(client), Some(server)] = stream.rtts else {
        return None;
    };
    if client.max(server) < AT_HOST_NS.get() {
        return None;
    }
    if client < AT_ENDPOINT_NS.get() && client * FAR_MORE.get() < server {
        Some(Position::AtClient)
    } else if server < AT_ENDPOINT_NS.get() && server * FAR_MORE.get() < client {
        Some(Position::AtServer)
    } else {
        Some(Position::Between)
    }
}
