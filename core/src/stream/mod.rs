//! TCP streams: assigns segments to connections, numbered as Wireshark does, decides which endpoint is the client,
//! and counts the columns of `streams`. `Streams::segment` appends the segment's `events` row, and passes data to the
//! stream's `Tracker`.

mod closing;
mod compact;
mod counts;
mod event;
mod full_size;
mod index;
mod ip_id;
mod roles;
mod setups;
mod store;
mod syns;
mod tracking;
mod tuple;

use std::net::IpAddr;

use crate::base::{At, Side};
use crate::evidence::rtt::Pairs;
use crate::exchange::Context;
use crate::exchange::setup::Setup;
use crate::facts::{self, Analysis, Facts, Flow, Shared, UnackedBudget};
use crate::issue::{Issue, Kind};
use crate::observe::Release;
use crate::observe::transfer::{self, Transfers};
use crate::segment::{Multipath, RST, SYN, Segment};

pub use closing::{Closing, Ending};
use compact::SynPacket;
pub use counts::Counts;
use counts::{count, sample_rtt};
use event::relative_sack;
pub use event::{Event, Rows};
use index::Index;
pub use roles::RolesBy;
use roles::roles;
use store::Store;
pub use syns::{AnswerKind, SentSyn, SynAnswer};
pub use tracking::Tracking;
use tracking::{Counted, track};
use tuple::FourTuple;

/// Number of slots of the cache of recent streams.
const RECENT_SLOTS: usize = 1024;

/// Address and port.
pub type Endpoint = (IpAddr, u16);

/// State of one connection.
pub struct Stream {
    /// The smaller endpoint.
    low: Endpoint,
    /// The larger endpoint.
    high: Endpoint,
    /// TCP state of the packets from `low`, and from `high`.
    flows: [Flow; 2],
    /// TCP state of both directions together.
    shared: Shared,
    /// The client is the endpoint `low`.
    client_is_low: bool,
    pub roles_by: RolesBy,
    pub first: At,
    pub last: At,
    /// By `Side`.
    pub counts: [Counts; 2],
    /// Best RTTs from the capture point to each side and back in ns, by `Side`.
    pub rtts_ns: [Option<i64>; 2],
    /// Some segment had the timestamps option.
    pub timestamps: bool,
    pub closed_by: Option<Closing>,
    /// An older stream had the same endpoints.
    pub reused: bool,
    /// State of the handshake, from the second packet on, if the first was a SYN.
    setup: Option<Setup>,
    /// Further segments may belong to the handshake.
    setting_up: bool,
    /// The SYNs, until data is sent.
    pub syns: Vec<SentSyn>,
    /// Only SYNs, SYN/ACKs and RSTs were captured, and `syn_packets` contains all of them.
    only_syns: bool,
    syn_packets: Vec<SynPacket>,
    /// It is queued to become compact.
    compactable: bool,
    pub tracking: Tracking,
    pub transfers: Transfers,
}

impl Stream {
    pub fn client(&self) -> Endpoint {
        if self.client_is_low { self.low } else { self.high }
    }

    pub fn server(&self) -> Endpoint {
        if self.client_is_low { self.high } else { self.low }
    }

    /// Sender and receiver of the segments of one direction.
    pub fn ends(&self, from_low: bool) -> (Endpoint, Endpoint) {
        if from_low {
            (self.low, self.high)
        } else {
            (self.high, self.low)
        }
    }

    pub fn completeness(&self) -> u8 {
        self.shared.completeness
    }

    pub fn initial_rtt(&self) -> Option<i64> {
        self.shared.initial_rtt_ns()
    }

    /// Initial sequence numbers of the smaller and the larger endpoint; None if unknown.
    fn bases(&self) -> [Option<u32>; 2] {
        let [low, high] = &self.flows;
        [low.marks.base, high.marks.base]
    }

    /// The TCP state of the stream while a segment of this direction is analysed.
    #[inline(always)]
    fn analysis(&mut self, from_low: bool, is_reuse: bool) -> Analysis<'_> {
        let [low, high] = &mut self.flows;
        let (fwd, rev) = if from_low { (low, high) } else { (high, low) };
        let shared = &mut self.shared;
        Analysis {
            fwd,
            rev,
            shared,
            is_reuse,
        }
    }

    pub fn side(&self, side: Side) -> &Counts {
        side.pick(&self.counts)
    }

    /// The side that sent this segment, as far as known; the segment itself may improve the roles.
    #[inline(always)]
    fn sender(&mut self, segment: &Segment<'_>, from_low: bool) -> Side {
        if self.tracking.is_before() && (segment.len > 0 || segment.has(SYN)) {
            self.better_roles(segment, from_low);
        }
        self.side_of(from_low)
    }

    #[inline(always)]
    fn side_of(&self, from_low: bool) -> Side {
        if from_low == self.client_is_low {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// An empty stream.
    fn unused() -> Self {
        let nobody = (IpAddr::from([0; 4]), 0);
        Stream {
            low: nobody,
            high: nobody,
            flows: Default::default(),
            shared: Shared::default(),
            client_is_low: false,
            roles_by: RolesBy::FirstPacket,
            first: At::default(),
            last: At::default(),
            counts: Default::default(),
            rtts_ns: [None; 2],
            timestamps: false,
            closed_by: None,
            reused: false,
            setup: None,
            setting_up: true,
            syns: Vec::new(),
            only_syns: true,
            syn_packets: Vec::new(),
            compactable: false,
            tracking: Tracking::default(),
            transfers: Transfers::default(),
        }
    }

    /// Reads a segment of a stream that moves more than a first window.
    #[inline(never)]
    fn watch_transfers(&mut self, segment: &Segment<'_>, facts: &Facts, side: Side, at: At, scaled: bool) {
        let stream = transfer::StreamFacts {
            rtts: &self.rtts_ns,
            mss: self.side(side).full.mss() as u16,
            scaled,
        };
        let opened = || self.tracking.opened(side, facts.ack);
        self.transfers.segment(segment, facts, side, at, &stream, opened);
    }

    /// Begins a stream in a reused box. In place, as a new value would be built on the stack and copied.
    fn begin(&mut self, segment: &Segment<'_>, from_low: bool, ends: [Endpoint; 2], at: At, is_reuse: bool) {
        let (sender_is_client, by) = roles(segment);
        let Stream {
            low,
            high,
            flows,
            shared,
            client_is_low,
            roles_by,
            first,
            last,
            counts,
            rtts_ns,
            timestamps,
            closed_by,
            reused,
            setup,
            setting_up,
            syns,
            only_syns,
            syn_packets,
            compactable,
            tracking,
            transfers,
        } = self;
        ([*low, *high], *first, *last) = (ends, at, at);
        (*client_is_low, *roles_by) = (sender_is_client == from_low, by);
        (*timestamps, *reused, *setting_up) = (false, is_reuse, true);
        (*rtts_ns, *closed_by, *setup) = ([None; 2], None, None);
        *shared = Shared::default();
        flows.iter_mut().for_each(Flow::restart);
        counts.iter_mut().for_each(|side| *side = Counts::default());
        syns.clear();
        (*only_syns, *compactable) = (true, false);
        syn_packets.clear();
        *tracking = Tracking::default();
        *transfers = Transfers::default();
    }
}

/// All streams, and what they share.
#[derive(Default)]
pub struct Streams {
    index: Index,
    store: Store,
    /// Streams whose endpoints a newer connection uses, with their ids. Their rows may be written.
    pub retired: Vec<(u32, Box<Stream>)>,
    /// Cache of streams by 4-tuple, so that most packets need no look-up in the large table.
    recent: Vec<Option<(FourTuple, u32)>>,
    pub pairs: Pairs,
    pub context: Context,
    unacked_budget: UnackedBudget,
}

impl Streams {
    /// Records that the capture contains DNS lookups.
    pub fn set_has_lookups(&mut self) {
        self.store.has_lookups = true;
    }

    pub fn len(&self) -> usize {
        self.store.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records an ICMP answer to the SYN that it quotes.
    pub fn answered(&mut self, quoted: &Segment<'_>, answer: SynAnswer) {
        let (key, from_low) = FourTuple::of(quoted);
        if let Some((id, _)) = self.index.get(self.index.half(&key), &key, &self.store)
            && let Some(stream) = self.store.whole(id)
        {
            stream.answered(from_low, quoted.seq, answer);
        }
    }

    /// Records an ICMP message that this segment, which it quotes, exceeds the MTU of the next hop.
    #[cold]
    pub fn too_big(&mut self, quoted: &Segment<'_>, mtu: u32) {
        let (key, from_low) = FourTuple::of(quoted);
        if let Some((id, _)) = self.index.get(self.index.half(&key), &key, &self.store)
            && let Some(stream) = self.store.whole(id)
        {
            stream.side_of(from_low).pick_mut(&mut stream.counts).too_big(mtu);
        }
    }

    /// Finds or opens the segment's stream. Returns its id, whether the segment comes from the smaller endpoint, and
    /// whether it reuses the endpoints of an older stream.
    #[inline(always)]
    fn find(&mut self, segment: &Segment<'_>, at: At) -> (u32, bool, bool) {
        let (key, from_low) = FourTuple::of(segment);
        match self.recent.get(key.slot() % RECENT_SLOTS) {
            Some(Some((recent, id))) if *recent == key && !segment.has(SYN) => (*id, from_low, false),
            _ => self.find_or_open(segment, at, key, from_low),
        }
    }

    /// The cold path of `find`: the stream is not in the cache, or a SYN may open one.
    #[inline(never)]
    fn find_or_open(
        &mut self,
        segment: &Segment<'_>,
        at: At,
        key: FourTuple,
        from_low: bool,
    ) -> (u32, bool, bool) {
        let slot = key.slot() % RECENT_SLOTS;
        let half = self.index.half(&key);
        let recent = match self.recent.get(slot) {
            Some(Some((recent, id))) if *recent == key => Some(*id),
            _ => None,
        };
        let existing = match recent {
            Some(id) => self.store.head(id).map(|head| (id, head)),
            None => self.index.get(half, &key, &self.store),
        };
        let mut before = None;
        if let Some((id, head)) = existing {
            let [of_low, of_high] = head.bases;
            let base = if from_low { of_low } else { of_high };
            if !facts::is_reuse(segment, base) {
                if recent.is_none() {
                    self.remember(slot, key, id);
                }
                if segment.options.multipath != Multipath::Nothing {
                    self.context.agreed(id, segment, at);
                }
                return (id, from_low, false);
            }
            self.retire(id, at);
            before = Some(id);
        }
        let (src, dst) = ((segment.src, segment.sport), (segment.dst, segment.dport));
        let ends = if from_low { [src, dst] } else { [dst, src] };
        let is_reuse = before.is_some();
        let begin = |stream: &mut Stream| stream.begin(segment, from_low, ends, at, is_reuse);
        let id = self.store.open(begin);
        self.index.insert(half, id, before);
        self.remember(slot, key, id);
        (id, from_low, is_reuse)
    }

    /// Ends a stream whose endpoints a new one uses.
    fn retire(&mut self, id: u32, at: At) {
        self.store.end(id, at, &mut self.context);
        if let Some(mut stream) = self.store.take(id) {
            stream
                .flows
                .iter_mut()
                .for_each(|flow| self.unacked_budget.forget(flow));
            self.retired.push((id, stream));
        }
    }

    fn remember(&mut self, slot: usize, key: FourTuple, id: u32) {
        if self.recent.is_empty() {
            self.recent.resize(RECENT_SLOTS, None);
        }
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = Some((key, id));
        }
    }

    /// Reads a header quoted inside an ICMP error. It counts for its stream, but has no `events` row.
    pub fn quoted(&mut self, segment: &Segment<'_>, at: At) {
        let (id, from_low, reused) = self.find(segment, at);
        if let Some(stream) = self.store.whole(id) {
            stream.last = at;
            // Wireshark takes the payload of the quoted packet as empty
            let segment = Segment { len: 0, ..*segment };
            stream.analysis(from_low, reused).quoted(&segment, at.time_ns);
        }
    }

    /// Assigns a segment whose header is incomplete to a stream, for the numbering only.
    #[cold]
    pub fn unreadable_header(&mut self, segment: &Segment<'_>, at: At) {
        let (id, ..) = self.find(segment, at);
        if let Some(stream) = self.store.whole(id) {
            stream.last = at;
        }
    }

    /// Appends the row of a segment with an impossible header: without facts, and without effect on the stream.
    #[cold]
    pub fn malformed(&mut self, segment: &Segment<'_>, at: At, to: &mut impl Rows) {
        let (id, from_low, _) = self.find(segment, at);
        let Some(stream) = self.store.whole(id) else {
            return;
        };
        let time_delta = at.time_ns - stream.last.time_ns;
        stream.last = at;
        let [low, high] = &stream.flows;
        let (fwd, rev) = if from_low { (low, high) } else { (high, low) };
        let facts = facts::unanalysed(segment, fwd, rev);
        to.event(&Event {
            at,
            stream: id,
            from_client: from_low == stream.client_is_low,
            from_low,
            segment,
            facts: &facts,
            sack: None,
            time_delta_ns: time_delta,
            hold_ns: None,
            release: &Release::default(),
        });
    }

    /// Reads one segment and appends its `events` row.
    #[inline(always)]
    pub fn segment(&mut self, segment: &Segment<'_>, at: At, frame_bytes: u32, to: &mut impl Rows) {
        let (id, from_low, reused) = self.find(segment, at);
        let Some(stream) = self.store.get(id) else {
            return;
        };
        let side = stream.sender(segment, from_low);
        let mut analysis = stream.analysis(from_low, reused);
        let scale_known = analysis.fwd.is_scaled() || reused;
        let mut facts = Facts::default();
        analysis.segment(segment, at, &mut facts);
        let Analysis { fwd, rev, .. } = analysis;
        if fwd.is_long() || rev.is_long() {
            self.unacked_budget.count(rev);
            if !self.unacked_budget.count(fwd) && segment.len > 0 {
                let reason =
                    "too many unacknowledged segments in all streams; further ones are not remembered";
                let note = Issue::new(Kind::Distrusted, "tcp", reason);
                self.context.issues.push(note.in_frame(at.frame));
            }
        }
        let sack = if facts.is_ordinary {
            None
        } else {
            relative_sack(segment, rev)
        };
        let sack = sack.as_deref();
        let time_delta = at.time_ns - stream.last.time_ns;
        stream.last = at;
        let (small, missing) = count(stream, segment, at.frame, frame_bytes, side, &facts);
        let hold = sample_rtt(stream, Some(&mut self.pairs), segment, side, &facts, at);
        if stream.setting_up {
            stream.track_handshake(segment, side, at);
        }
        if !facts.is_ordinary {
            stream.track_syn(segment, from_low, at);
        }

        if segment.len > 0 {
            stream.transfers.sent(side, segment.len, at.time_ns);
        }
        if stream.transfers.is_watching() {
            stream.watch_transfers(segment, &facts, side, at, scale_known);
        }

        let mut release = Release::default();
        track(
            stream,
            id,
            &mut self.pairs,
            &mut self.context,
            Counted {
                segment,
                facts: &facts,
                side,
                at,
                scale_known,
                small,
                missing,
                sack,
            },
            &mut release,
        );
        to.event(&Event {
            at,
            stream: id,
            from_client: side == Side::Client,
            from_low,
            segment,
            facts: &facts,
            sack,
            time_delta_ns: time_delta,
            hold_ns: hold,
            release: &release,
        });
        if stream.only_syns || stream.tracking.is_over() {
            if stream.only_syns {
                stream.record_syn_packet(segment, at, frame_bytes, from_low);
            }
            self.store.mark_compactable(id);
        } else if segment.has(RST) {
            self.store.cut(id, at, &mut self.context);
        }
    }

    /// Ends a stream at the end of the capture.
    pub fn end(&mut self, id: u32, at: At) {
        self.store.end(id, at, &mut self.context);
    }

    /// Reuses the box of a stream that has its row.
    pub fn recycle(&mut self, stream: Box<Stream>) {
        self.store.recycle(stream);
    }

    /// Removes and returns the stream, for its row.
    pub fn take(&mut self, id: u32) -> Option<Box<Stream>> {
        self.store.take(id)
    }
}
