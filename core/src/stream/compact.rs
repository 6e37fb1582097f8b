//! Compact forms of streams: of one with SYNs only, and of one that has ended. With its next packet a stream becomes
//! whole again, and its rows are as if it had stayed whole.

use super::counts::{Counts, count, sample_rtt};
use super::tuple::CompactEnds;
use super::{Closing, Endpoint, RolesBy, Stream, Tracking};
use crate::base::At;
use crate::exchange::ReadSoFar;
use crate::exchange::setup::{CompactSetup, Setup};
use crate::facts::{Facts, Marks, Outstanding, Shared};
use crate::observe::transfer::Transfers;
use crate::segment::{Multipath, Options, RST, SYN, Sack, Segment};

/// Upper bound on the packets of a stream with SYNs only: Linux sends a SYN seven times (tcp_syn_retries).
pub(super) const MAX_SYN_PACKETS: usize = 7;

/// A stream with only SYNs, SYN/ACKs and RSTs: those packets.
pub(super) struct SynsOnly {
    pub(super) ends: CompactEnds,
    pub(super) bases: [Option<u32>; 2],
    reused: bool,
    syn_packets: Vec<SynPacket>,
}

/// Header of a SYN, SYN/ACK or RST, without addresses and ports.
#[derive(Debug, Clone, Copy)]
pub(super) struct SynPacket {
    at: At,
    frame_bytes: u32,
    from_low: bool,
    seq: u32,
    ack: u32,
    flags: u16,
    window: u16,
    ip_id: Option<u16>,
    mss: Option<u16>,
    wscale: Option<u8>,
    timestamps: Option<(u32, u32)>,
    sack_permitted: bool,
    multipath: Multipath,
    cut: bool,
    ttl: u8,
}

impl SynPacket {
    /// None if the packet is anything but a SYN, SYN/ACK or RST.
    pub(super) fn new(segment: &Segment<'_>, at: At, frame_bytes: u32, from_low: bool) -> Option<Self> {
        let options = &segment.options;
        let is_syn_or_rst = segment.len == 0 && segment.flags & (SYN | RST) != 0;
        (is_syn_or_rst && segment.payload.is_empty() && options.sack.count == 0).then_some(SynPacket {
            at,
            frame_bytes,
            from_low,
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window: segment.window,
            ip_id: segment.ip_id,
            mss: options.mss,
            wscale: options.wscale,
            timestamps: options.timestamps,
            sack_permitted: options.sack_permitted,
            multipath: options.multipath,
            cut: options.cut,
            ttl: segment.ttl,
        })
    }

    fn segment(&self, low: Endpoint, high: Endpoint) -> Segment<'static> {
        let (from, to) = if self.from_low { (low, high) } else { (high, low) };
        Segment {
            src: from.0,
            dst: to.0,
            sport: from.1,
            dport: to.1,
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            len: 0,
            payload: &[],
            options: Options {
                mss: self.mss,
                wscale: self.wscale,
                sack_permitted: self.sack_permitted,
                timestamps: self.timestamps,
                sack: Sack::default(),
                multipath: self.multipath,
                cut: self.cut,
            },
            ip_id: self.ip_id,
            ttl: self.ttl,
            tos: 0, // needed for rows only, which exist already
        }
    }
}

/// A stream that both sides, or an RST, have ended: the values of its row, and the state by which late packets are
/// judged.
pub(super) struct Closed {
    pub(super) ends: CompactEnds,
    marks: [Marks; 2],
    waiting: Option<Box<Outstanding>>,
    shared: Shared,
    client_is_low: bool,
    roles_by: RolesBy,
    timestamps: bool,
    closed_by: Option<Closing>,
    reused: bool,
    setting_up: bool,
    first: At,
    last: At,
    counts: [Counts; 2],
    /// `i64::MAX` for None.
    rtts_ns: [i64; 2],
    /// Set if the set-up may have a row, or further segments may belong to it.
    setup: Option<CompactSetup>,
    read: ReadSoFar,
    /// Set if a transfer was watched: most connections move too little.
    transfers: Option<Box<Transfers>>,
}

impl Closed {
    pub(super) fn bases(&self) -> [Option<u32>; 2] {
        let [low, high] = &self.marks;
        [low.base, high.base]
    }
}

impl Stream {
    /// Keeps a SYN, SYN/ACK or RST while the stream has nothing else.
    pub(super) fn record_syn_packet(
        &mut self,
        segment: &Segment<'_>,
        at: At,
        frame_bytes: u32,
        from_low: bool,
    ) {
        match SynPacket::new(segment, at, frame_bytes, from_low) {
            Some(packet) if self.syn_packets.len() < MAX_SYN_PACKETS => {
                self.syn_packets.reserve_exact(1);
                self.syn_packets.push(packet);
            }
            _ => self.drop_syn_packets(),
        }
    }

    /// Drops the kept packets, which no longer describe the whole stream.
    pub(super) fn drop_syn_packets(&mut self) {
        self.only_syns = false;
        self.syn_packets.clear(); // the next stream in this box reuses the allocation
    }

    /// Updates the stream by a kept packet as `Streams::segment` does, but without a row.
    fn replay(&mut self, segment: &Segment<'_>, at: At, frame_bytes: u32, from_low: bool, reused: bool) {
        let side = self.sender(segment, from_low);
        let mut facts = Facts::default();
        self.analysis(from_low, reused).segment(segment, at, &mut facts);
        self.last = at;
        count(self, segment, at.frame, frame_bytes, side, &facts);
        sample_rtt(self, None, segment, side, &facts, at);
        if self.setting_up {
            self.track_handshake(segment, side, at);
        }
        self.track_syn(segment, from_low, at);
    }

    /// Restores a stream from its kept packets.
    pub(super) fn restore_syns(&mut self, syns_only: SynsOnly) {
        let (low, high) = syns_only.ends.both();
        if let Some(first) = syns_only.syn_packets.first() {
            self.begin(
                &first.segment(low, high),
                first.from_low,
                [low, high],
                first.at,
                syns_only.reused,
            );
        }
        let mut reused = syns_only.reused;
        for packet in &syns_only.syn_packets {
            let segment = packet.segment(low, high);
            self.replay(&segment, packet.at, packet.frame_bytes, packet.from_low, reused);
            reused = false; // only the first packet found the ports in use
        }
        self.syn_packets = syns_only.syn_packets;
    }

    /// Takes the compact form of a stream with SYNs only. The box may then be reused.
    pub(super) fn take_syns(&mut self) -> SynsOnly {
        SynsOnly {
            ends: CompactEnds::of(self.low, self.high),
            bases: self.bases(),
            reused: self.reused,
            syn_packets: std::mem::take(&mut self.syn_packets),
        }
    }

    /// Takes the compact form of an ended stream. `has_lookups`: the capture contains DNS lookups, so that any set-up
    /// may have a row.
    pub(super) fn take_closed(&mut self, has_lookups: bool) -> Closed {
        let read = self.tracking.read_so_far();
        let lasts =
            |setup: &Setup| has_lookups || setup.pending() || setup.deserves_row(read.busy_ns, 0, read.begun);
        let waiting = Outstanding::of(&mut self.flows);
        let [low, high] = &self.flows;
        Closed {
            ends: CompactEnds::of(self.low, self.high),
            marks: [low.marks.clone(), high.marks.clone()],
            waiting,
            shared: self.shared,
            client_is_low: self.client_is_low,
            roles_by: self.roles_by,
            timestamps: self.timestamps,
            closed_by: self.closed_by,
            reused: self.reused,
            setting_up: self.setting_up,
            first: self.first,
            last: self.last,
            counts: std::mem::take(&mut self.counts),
            rtts_ns: self.rtts_ns.map(|rtt| rtt.unwrap_or(i64::MAX)),
            setup: self
                .setup
                .take()
                .filter(lasts)
                .map(|setup| CompactSetup::of(setup, self.first)),
            read,
            transfers: self.transfers.taken(),
        }
    }

    /// Restores an ended stream.
    pub(super) fn reopen(&mut self, closed: Closed) {
        (self.low, self.high) = closed.ends.both();
        for (flow, marks) in self.flows.iter_mut().zip(closed.marks) {
            flow.resume(marks);
        }
        if let Some(waiting) = closed.waiting {
            waiting.give_back(&mut self.flows);
        }
        self.shared = closed.shared;
        self.client_is_low = closed.client_is_low;
        self.roles_by = closed.roles_by;
        self.timestamps = closed.timestamps;
        self.closed_by = closed.closed_by;
        self.reused = closed.reused;
        self.setting_up = closed.setting_up;
        (self.first, self.last) = (closed.first, closed.last);
        self.counts = closed.counts;
        self.rtts_ns = closed.rtts_ns.map(|rtt| (rtt != i64::MAX).then_some(rtt));
        self.transfers = closed
            .transfers
            .map_or_else(Transfers::default, |transfers| *transfers);
        self.setup = closed.setup.map(|kept| kept.setup(closed.first));
        self.syns.clear();
        self.drop_syn_packets();
        self.tracking = Tracking::Over(closed.read);
    }
}

#[cfg(test)]
mod tests;
