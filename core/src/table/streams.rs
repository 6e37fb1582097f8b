//! `streams`: one row per TCP stream, in Wireshark's numbering.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use arrow_array::types::{Float64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use smol_str::SmolStr;

use super::addresses::address_texts;
use super::columns::{
    BatchBits, ColumnBuffer, EVERY_ROW, Flag, Instant, Optional, OptionalFlag, Required, batch_columns,
};
use super::words::{CodedWords, StaticWords, Texts};
use super::{Batch, Column, column, community, ms};
use crate::base::Side;
use crate::exchange::Context;
use crate::limits::{AT_ENDPOINT_NS, AT_HOST_NS, LARGE_RATIO};
use crate::messages::Protocol;
use crate::stream::{Closing, Counts, Ending, RolesBy, Stream};

/// Bits of the optional columns and flags.
mod bit {
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

/// Bits of the optional columns of one side.
mod side_bit {
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

batch_columns! {
    struct Columns {
        stream: Required<UInt32Type> = "stream",
        client: AddressTexts = "client",
        client_port: Required<UInt16Type> = "client_port",
        server: AddressTexts = "server",
        server_port: Required<UInt16Type> = "server_port",
        roles_by: CodedWords<{ RolesBy::COUNT }, EVERY_ROW> = "roles_by",
        protocol: StaticWords<{ bit::PROTOCOL }> = "protocol",
        server_name: Texts = "server_name",
        software: Texts = "server_software",
        control: Optional<UInt32Type, { bit::CONTROL }> = "control_stream",
        command: Texts = "command",
        start: Instant = "start",
        end: Instant = "end",
        first_frame: Required<UInt64Type> = "first_frame",
        last_frame: Required<UInt64Type> = "last_frame",
        completeness: Required<UInt8Type> = "completeness",
        initial_rtt: Optional<Float64Type, { bit::INITIAL_RTT }> = "initial_rtt_ms",
        client_rtt: Optional<Float64Type, { bit::CLIENT_RTT }> = "client_rtt_ms",
        server_rtt: Optional<Float64Type, { bit::SERVER_RTT }> = "server_rtt_ms",
        position: CodedWords<{ Position::COUNT }, { bit::POSITION }> = "position",
        client_columns: SideColumns = "client",
        server_columns: SideColumns = "server",
        timestamps: Flag<{ bit::TIMESTAMPS }> = "timestamps",
        exchanges: Required<UInt32Type> = "exchanges",
        closed_by: CodedWords<{ Closing::COUNT }, { bit::CLOSED_BY }> = "closed_by",
        closed_how: CodedWords<{ Ending::COUNT }, { bit::CLOSED_HOW }> = "closed_how",
        community_id: Texts<false> = "community_id",
    }
}

batch_columns! {
    /// The columns about the packets that one side sent.
    struct SideColumns {
        packets: Required<UInt64Type> = "packets",
        bytes: Required<UInt64Type> = "bytes",
        payload: Required<UInt64Type> = "payload_bytes",
        retransmissions: Required<UInt64Type> = "retransmissions",
        out_of_order: Required<UInt64Type> = "out_of_order",
        spurious: Required<UInt64Type> = "spurious_retransmissions",
        unseen: Optional<UInt64Type, { side_bit::UNSEEN }> = "unseen_frames",
        sacks: Required<UInt64Type> = "sacks",
        dsacks: Required<UInt64Type> = "dsacks",
        too_big: Required<UInt32Type> = "icmp_too_big",
        next_mtu: Optional<UInt32Type, { side_bit::NEXT_MTU }> = "icmp_next_mtu",
        mss: Optional<UInt16Type, { side_bit::MSS }> = "mss",
        scale: Optional<UInt8Type, { side_bit::SCALE }> = "wscale",
        sack: OptionalFlag<{ side_bit::SACK_YES }, { side_bit::SACK }> = "sack",
        window_min: Optional<UInt32Type, { side_bit::WINDOW_MIN }> = "window_min",
        samples: Required<UInt64Type> = "rtt_samples",
        mean: Optional<Float64Type, { side_bit::RTT }> = "rtt_mean_ms",
        stdev: Optional<Float64Type, { side_bit::RTT_STDEV }> = "rtt_stdev_ms",
        max: Optional<Float64Type, { side_bit::RTT }> = "rtt_max_ms",
        held: Required<UInt64Type> = "held_acks",
    }
}

/// A string column of addresses.
#[derive(Default)]
struct AddressTexts(Vec<IpAddr>);

impl ColumnBuffer for AddressTexts {
    fn build(&mut self, _: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        columns.push(column(name, address_texts(self.0.drain(..).map(Some))));
    }
}

/// Has rows and blocks of its own, in step with those of the table, so `flush_block` has nothing to do.
impl ColumnBuffer for SideColumns {
    fn build(&mut self, _: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let bits = self.end_batch();
        columns.extend(self.build(&bits, &name));
    }
}

#[derive(Default)]
pub struct StreamColumns {
    columns: Columns,
}

impl StreamColumns {
    /// Adds a row. Returns true if the batch is full.
    pub fn push(&mut self, id: u32, stream: &Stream, context: &Context) -> bool {
        let columns = &mut self.columns;
        let (row, slot) = (columns.rows, columns.slot());
        let read = stream.tracking.read_so_far();
        let ((client, client_port), (server, server_port)) = (stream.client(), stream.server());
        columns.client.0.push(client);
        columns.server.0.push(server);
        let name = |symbol| context.names.get(symbol).map(SmolStr::as_str);
        let secured = read.begun.secured.and_then(|symbol| context.secured.get(symbol));
        let sni = secured.and_then(|how| how.server_name.as_deref());
        columns
            .server_name
            .set(row, sni.or_else(|| name(read.begun.named?)));
        columns.software.set(row, read.software.and_then(name));
        let carried = read.begun.carries.and_then(|symbol| context.carried.get(symbol));
        let command = carried.map(|carried| carried.command.as_str());
        columns.command.set(row, command);
        let client_end = SocketAddr::new(client, client_port);
        let community_id = community::id(client_end, SocketAddr::new(server, server_port));
        columns.community_id.set(row, Some(&community_id));
        columns.stream.set(slot, id);
        columns.client_port.set(slot, client_port);
        columns.server_port.set(slot, server_port);
        let by = stream.roles_by;
        columns.roles_by.set(slot, by as usize, |_| by.word());
        columns.start.set(slot, stream.first.time_ns);
        columns.end.set(slot, stream.last.time_ns);
        columns.first_frame.set(slot, stream.first.frame);
        columns.last_frame.set(slot, stream.last.frame);
        columns.completeness.set(slot, stream.completeness());
        columns.exchanges.set(slot, read.exchange_count);
        let protocol = read.protocol.map(Protocol::word);
        let mut bits = columns.initial_rtt.set_some(slot, stream.initial_rtt().map(ms));
        bits |= columns.protocol.set_some(slot, protocol);
        bits |= columns
            .control
            .set_some(slot, carried.map(|carried| carried.control));
        let [client_rtt, server_rtt] = stream.rtts_ns;
        bits |= columns.client_rtt.set_some(slot, client_rtt.map(ms));
        bits |= columns.server_rtt.set_some(slot, server_rtt.map(ms));
        let position = position(stream).map(|at| (at as usize, at.word()));
        bits |= columns.position.set_some(slot, position);
        let closing = stream.closed_by.map(|first| (first.code(), first.word()));
        bits |= columns.closed_by.set_some(slot, closing);
        let ending = stream.ending().map(|how| (how as usize, how.word()));
        bits |= columns.closed_how.set_some(slot, ending);
        if stream.timestamps {
            bits |= bit::TIMESTAMPS;
        }
        columns.row_bits.set(slot, bits);
        for (side_columns, side) in [
            (&mut columns.client_columns, Side::Client),
            (&mut columns.server_columns, Side::Server),
        ] {
            side_columns.push(stream.side(side), stream.window_min(side));
        }
        columns.end_row(slot)
    }
}

impl Batch for StreamColumns {
    fn rows(&self) -> usize {
        self.columns.rows
    }

    fn take(&mut self) -> Vec<Column> {
        let bits = self.columns.end_batch();
        self.columns.build(&bits, "")
    }
}

impl SideColumns {
    fn push(&mut self, counts: &Counts, window_min: Option<u32>) {
        let (trips, slot) = (&counts.trips, self.slot());
        let unusual = counts.unusual();
        self.packets.set(slot, counts.packets);
        self.bytes.set(slot, counts.bytes);
        self.payload.set(slot, counts.payload);
        self.retransmissions.set(slot, unusual.retransmissions);
        self.out_of_order.set(slot, unusual.out_of_order);
        self.spurious.set(slot, unusual.spurious);
        self.sacks.set(slot, unusual.sacks);
        self.dsacks.set(slot, unusual.dsacks);
        self.too_big.set(slot, unusual.too_big);
        self.samples.set(slot, trips.samples());
        self.held.set(slot, trips.held());
        let mut bits = self.unseen.set_some(slot, counts.ip_ids.unseen());
        bits |= self.next_mtu.set_some(slot, unusual.next_mtu);
        bits |= self.mss.set_some(slot, counts.mss);
        bits |= self.scale.set_some(slot, counts.scale);
        bits |= self.window_min.set_some(slot, window_min);
        if let Some(sack) = counts.sack {
            bits |= side_bit::SACK | if sack { side_bit::SACK_YES } else { 0 };
        }
        if let (Some(mean), Some(max)) = (trips.mean_ms(), trips.max()) {
            self.mean.set(slot, mean);
            self.max.set(slot, ms(max));
            bits |= side_bit::RTT;
        }
        bits |= self.stdev.set_some(slot, trips.stdev_ms());
        self.row_bits.set(slot, bits);
        self.end_row(slot);
    }
}

/// Where on the path the capture was taken.
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

/// Estimates the position from the round trips between the capture and each side. `None` if both are so short that
/// either side could be the host of the capture.
fn position(stream: &Stream) -> Option<Position> {
    let [Some(client), Some(server)] = stream.rtts_ns else {
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
