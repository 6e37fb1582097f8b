//! `streams`: one row per TCP stream, in Wireshark's numbering.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use arrow_array::types::{Float64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use smol_str::SmolStr;

use super::columns::{Block, EVERY, Flag, Full, Instant, Partial, SomeFlag, Taken, blocks};
use super::words::{Fixed, Listed, Texts};
use super::{Batch, Column, addresses, column, community, ms};
use crate::base::Side;
use crate::exchange::Context;
use crate::limits::{AT_ENDPOINT_NS, AT_HOST_NS, LARGE_RATIO};
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
    pub const CLIENT_RTT: u32 = 1 << 7;
    pub const SERVER_RTT: u32 = 1 << 8;
}

/// What one side of a row has.
mod side_has {
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
        stream: Full<UInt32Type> = "stream",
        client: Addresses = "client",
        client_port: Full<UInt16Type> = "client_port",
        server: Addresses = "server",
        server_port: Full<UInt16Type> = "server_port",
        roles_by: Listed<{ RolesBy::COUNT }, EVERY> = "roles_by",
        protocol: Fixed<{ has::PROTOCOL }> = "protocol",
        server_name: Texts = "server_name",
        software: Texts = "server_software",
        control: Partial<UInt32Type, { has::CONTROL }> = "control_stream",
        command: Texts = "command",
        start: Instant = "start",
        end: Instant = "end",
        first_frame: Full<UInt64Type> = "first_frame",
        last_frame: Full<UInt64Type> = "last_frame",
        completeness: Full<UInt8Type> = "completeness",
        initial_rtt: Partial<Float64Type, { has::INITIAL_RTT }> = "initial_rtt_ms",
        client_rtt: Partial<Float64Type, { has::CLIENT_RTT }> = "client_rtt_ms",
        server_rtt: Partial<Float64Type, { has::SERVER_RTT }> = "server_rtt_ms",
        position: Listed<{ Position::COUNT }, { has::POSITION }> = "position",
        of_client: OfSide = "client",
        of_server: OfSide = "server",
        timestamps: Flag<{ has::TIMESTAMPS }> = "timestamps",
        exchanges: Full<UInt32Type> = "exchanges",
        closed_by: Listed<{ Closing::COUNT }, { has::CLOSED_BY }> = "closed_by",
        closed_how: Listed<{ Ending::COUNT }, { has::CLOSED_HOW }> = "closed_how",
        community: Texts<false> = "community_id",
    }
}

blocks! {
    /// What one side sent.
    struct OfSide {
        packets: Full<UInt64Type> = "packets",
        bytes: Full<UInt64Type> = "bytes",
        payload: Full<UInt64Type> = "payload_bytes",
        retransmissions: Full<UInt64Type> = "retransmissions",
        out_of_order: Full<UInt64Type> = "out_of_order",
        spurious: Full<UInt64Type> = "spurious_retransmissions",
        unseen: Partial<UInt64Type, { side_has::UNSEEN }> = "unseen_frames",
        sacks: Full<UInt64Type> = "sacks",
        dsacks: Full<UInt64Type> = "dsacks",
        too_big: Full<UInt32Type> = "icmp_too_big",
        next_mtu: Partial<UInt32Type, { side_has::NEXT_MTU }> = "icmp_next_mtu",
        mss: Partial<UInt16Type, { side_has::MSS }> = "mss",
        scale: Partial<UInt8Type, { side_has::SCALE }> = "wscale",
        sack: SomeFlag<{ side_has::SACK_YES }, { side_has::SACK }> = "sack",
        window_min: Partial<UInt32Type, { side_has::WINDOW_MIN }> = "window_min",
        samples: Full<UInt64Type> = "rtt_samples",
        mean: Partial<Float64Type, { side_has::RTT }> = "rtt_mean_ms",
        stdev: Partial<Float64Type, { side_has::RTT_STDEV }> = "rtt_stdev_ms",
        max: Partial<Float64Type, { side_has::RTT }> = "rtt_max_ms",
        held: Full<UInt64Type> = "held_acks",
    }
}

/// Addresses as texts.
#[derive(Default)]
struct Addresses(Vec<IpAddr>);

impl Block for Addresses {
    fn build(&mut self, _: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        columns.push(column(name, addresses(self.0.drain(..).map(Some))));
    }
}

/// It moves its blocks itself: it has as many rows as the table.
impl Block for OfSide {
    fn build(&mut self, _: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let taken = self.end();
        columns.extend(self.columns(&taken, &name));
    }
}

#[derive(Default)]
pub struct StreamColumns {
    columns: Columns,
}

impl StreamColumns {
    /// True when the batch is full.
    pub fn push(&mut self, id: u32, stream: &Stream, context: &Context) -> bool {
        let columns = &mut self.columns;
        let (number, row) = (columns.rows, columns.place());
        let read = stream.tracking.read_so_far();
        let ((client, client_port), (server, server_port)) = (stream.client(), stream.server());
        columns.client.0.push(client);
        columns.server.0.push(server);
        let name = |place| context.names.get(place).map(SmolStr::as_str);
        let secured = read.begun.secured.and_then(|how| context.secured.get(how));
        let sni = secured.and_then(|how| how.server_name.as_deref());
        columns
            .server_name
            .set(number, sni.or_else(|| name(read.begun.named?)));
        columns.software.set(number, read.software.and_then(name));
        let carried = read.begun.carries.and_then(|what| context.carried.get(what));
        let command = carried.map(|carried| carried.command.as_str());
        columns.command.set(number, command);
        let ends = (
            SocketAddr::new(client, client_port),
            SocketAddr::new(server, server_port),
        );
        columns
            .community
            .set(number, Some(&community::id(ends.0, ends.1)));
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
        let [client_rtt, server_rtt] = stream.rtts;
        has |= columns.client_rtt.set_some(row, client_rtt.map(ms));
        has |= columns.server_rtt.set_some(row, server_rtt.map(ms));
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
        for (rows, side) in [
            (&mut columns.of_client, Side::Client),
            (&mut columns.of_server, Side::Server),
        ] {
            rows.push(stream.side(side), stream.window_min(side));
        }
        columns.done(row)
    }
}

impl Batch for StreamColumns {
    fn rows(&self) -> usize {
        self.columns.rows
    }

    fn take(&mut self) -> Vec<Column> {
        let taken = self.columns.end();
        self.columns.columns(&taken, "")
    }
}

impl OfSide {
    fn push(&mut self, counts: &Counts, window_min: Option<u32>) {
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
        let mut has = self.unseen.set_some(row, counts.ip_ids.unseen());
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
    if client < AT_ENDPOINT_NS.get() && client * LARGE_RATIO.get() < server {
        Some(Position::AtClient)
    } else if server < AT_ENDPOINT_NS.get() && server * LARGE_RATIO.get() < client {
        Some(Position::AtServer)
    } else {
        Some(Position::Between)
    }
}
