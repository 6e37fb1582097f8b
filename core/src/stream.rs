//! TCP streams: their numbers as Wireshark gives them, who is the client, and the counters of one row of
//! `streams`. Segments in, event rows out; data goes on to the stream's `Tracker`.

use std::net::IpAddr;

use ahash::AHashMap;

use crate::exchange::{Ledger, Seen, Tracker};
use crate::facts::{self, Facts, Flow, Scale, Shared, flag};
use crate::leg::Pairs;
use crate::messages::{At, Close, Side};
use crate::pool::Key;
use crate::segment::{ACK, FIN, RST, SYN, Segment};
use crate::seq::unwrap_near;
use crate::wait::{Repair, Step, Wait};

/// A TCP or IP header takes at least this off an Ethernet frame when no MSS option was seen.
const DEFAULT_MSS: u32 = 1460;
const TIMESTAMP_BYTES: u32 = 12;
/// How much later than the path explains a segment may follow the ACK that freed it (event rows only).
const RELEASED_NS: i64 = 2_000_000;

type Endpoint = (IpAddr, u16);

/// One row of `events`, before it becomes columns.
#[derive(Debug, Clone)]
pub struct Event {
    pub frame: u64,
    pub time: i64,
    pub stream: u32,
    pub from_client: bool,
    pub src: Endpoint,
    pub dst: Endpoint,
    pub len: u32,
    pub header_flags: u16,
    pub mss: Option<u16>,
    pub wscale: Option<u8>,
    pub timestamps: Option<(u32, u32)>,
    pub sack: Option<Box<[(i64, i64)]>>,
    pub time_delta: i64,
    pub facts: Facts,
    pub hold: Option<i64>,
    pub released_by: Option<&'static str>,
    pub release_frame: Option<u64>,
    pub waited: Option<i64>,
}

/// What one side of a stream did.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub packets: u64,
    pub bytes: u64,
    pub payload: u64,
    pub retransmissions: u64,
    pub out_of_order: u64,
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack: bool,
    pub window_min: Option<u32>,
    /// Best round trip from the capture to this side and back.
    pub leg: Option<i64>,
    syn: bool,
    /// Acknowledgements up to here measure a repeat, not the path (Karn).
    poisoned: i64,
}

pub struct Stream {
    low: Endpoint,
    high: Endpoint,
    flows: [Flow; 2],
    shared: Shared,
    /// The client is the endpoint `low`.
    client_is_low: bool,
    pub roles_by: &'static str,
    pub first: At,
    pub last: At,
    /// By `Side`.
    pub counts: [Counts; 2],
    pub timestamps: bool,
    pub closed_by: Option<&'static str>,
    pub reused: bool,
    pub tracker: Option<Box<Tracker>>,
}

impl Stream {
    pub fn client(&self) -> Endpoint {
        if self.client_is_low { self.low } else { self.high }
    }

    pub fn server(&self) -> Endpoint {
        if self.client_is_low { self.high } else { self.low }
    }

    pub fn completeness(&self) -> u8 {
        self.shared.completeness
    }

    pub fn initial_rtt(&self) -> Option<i64> {
        self.shared.initial_rtt_ns
    }

    pub fn side(&self, side: Side) -> &Counts {
        let [client, server] = &self.counts;
        if side == Side::Client { client } else { server }
    }

    fn open(segment: &Segment<'_>, from_low: bool, low: Endpoint, high: Endpoint, at: At, reused: bool) -> Self {
        let (sender_is_client, roles_by) = roles(segment);
        Stream {
            low,
            high,
            flows: Default::default(),
            shared: Shared::default(),
            client_is_low: sender_is_client == from_low,
            roles_by,
            first: at,
            last: at,
            counts: Default::default(),
            timestamps: false,
            closed_by: None,
            reused,
            tracker: None,
        }
    }

    /// The current MSS of both senders: the smaller option less what the timestamps take.
    fn mss(&self) -> u32 {
        let [a, b] = &self.counts;
        let mss = match (a.mss, b.mss) {
            (Some(a), Some(b)) => u32::from(a.min(b)),
            (Some(one), None) | (None, Some(one)) => u32::from(one),
            (None, None) => DEFAULT_MSS,
        };
        mss.saturating_sub(if self.timestamps { TIMESTAMP_BYTES } else { 0 }).max(1)
    }
}

/// Who is the client, from a stream's first packet: handshake, then content, then ports.
fn roles(segment: &Segment<'_>) -> (bool, &'static str) {
    if segment.has(SYN) {
        return if segment.has(ACK) { (false, "syn_ack") } else { (true, "syn") };
    }
    if segment.payload.starts_with(b"HTTP/1.") {
        return (false, "http");
    }
    const METHODS: [&[u8]; 5] = [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE "];
    if METHODS.iter().any(|m| segment.payload.starts_with(m)) {
        return (true, "http");
    }
    match segment.sport.cmp(&segment.dport) {
        std::cmp::Ordering::Greater => (true, "port"),
        std::cmp::Ordering::Less => (false, "port"),
        std::cmp::Ordering::Equal => (true, "first_packet"),
    }
}

#[derive(Default)]
pub struct Streams {
    index: AHashMap<(Endpoint, Endpoint), u32>,
    streams: Vec<Stream>,
    newest: Option<((Endpoint, Endpoint), u32)>,
    pub pairs: Pairs,
    pub ledger: Ledger,
}

impl Streams {
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter()
    }

    pub fn get(&self, id: u32) -> Option<&Stream> {
        self.streams.get(id as usize)
    }

    /// The segment's stream, opened where it is new.
    fn find(&mut self, segment: &Segment<'_>, at: At) -> (u32, bool) {
        let (src, dst) = ((segment.src, segment.sport), (segment.dst, segment.dport));
        let from_low = src <= dst;
        let (low, high) = if from_low { (src, dst) } else { (dst, src) };
        let key = (low, high);
        let known = match self.newest {
            Some((newest, id)) if newest == key => Some(id),
            _ => self.index.get(&key).copied(),
        };
        let mut reused = false;
        if let Some(id) = known {
            let flow = self.streams.get(id as usize).and_then(|s| s.flows.get(usize::from(!from_low)));
            reused = flow.is_some_and(|flow| facts::reuses_ports(segment, flow));
            if !reused {
                self.newest = Some((key, id));
                return (id, false);
            }
            self.end(id, at);
        }
        let id = self.streams.len() as u32;
        self.streams.push(Stream::open(segment, from_low, low, high, at, reused));
        self.index.insert(key, id);
        self.newest = Some((key, id));
        (id, reused)
    }

    /// A header quoted inside an ICMP error takes part in the numbering only.
    pub fn quoted(&mut self, segment: &Segment<'_>, at: At) {
        let (id, _) = self.find(segment, at);
        if let Some(stream) = self.streams.get_mut(id as usize) {
            stream.last = at;
        }
    }

    /// One segment: its row of facts.
    pub fn segment(&mut self, segment: &Segment<'_>, at: At) -> Option<Event> {
        let (id, reused) = self.find(segment, at);
        let stream = self.streams.get_mut(id as usize)?;
        let from_low = (segment.src, segment.sport) == stream.low;
        let side = if from_low == stream.client_is_low { Side::Client } else { Side::Server };
        let [low, high] = &mut stream.flows;
        let (fwd, rev) = if from_low { (low, high) } else { (high, low) };
        let first_copy = fwd.first_copy(segment.seq);
        let scale_known = fwd.scale != Scale::Unknown || reused;
        let facts = facts::analyse(segment, at.frame, at.time_ns, fwd, rev, &mut stream.shared, reused);
        let sack = relative_sack(segment, rev);
        let sacked = sack.iter().flat_map(|blocks| blocks.iter()).map(|block| block.1).max();
        let time_delta = at.time_ns - stream.last.time_ns;
        stream.last = At { frame: at.frame, time_ns: at.time_ns };
        count(stream, segment, side, &facts);
        let leg = sample_leg(stream, &mut self.pairs, segment, side, &facts, at);

        let step = track(stream, id, &mut self.pairs, &mut self.ledger, segment, &facts, side, at, scale_known, first_copy, sacked);
        let known_leg = stream.side(side).leg;
        let (released_by, release_frame, waited) = match &step {
            Some(step) => released(step, known_leg.unwrap_or(0)),
            None => (None, None, None),
        };
        Some(Event {
            frame: at.frame,
            time: at.time_ns,
            stream: id,
            from_client: side == Side::Client,
            src: (segment.src, segment.sport),
            dst: (segment.dst, segment.dport),
            len: segment.len,
            header_flags: segment.flags,
            mss: segment.options.mss,
            wscale: segment.options.wscale,
            timestamps: segment.options.timestamps,
            sack,
            time_delta,
            facts,
            hold: leg,
            released_by,
            release_frame,
            waited,
        })
    }

    /// Nothing more will come on this stream.
    fn end(&mut self, id: u32, at: At) {
        if let Some(tracker) = self.streams.get_mut(id as usize).and_then(|s| s.tracker.as_mut()) {
            tracker.close(Side::Client, at, Close::CaptureEnd, &mut self.ledger);
            tracker.close(Side::Server, at, Close::CaptureEnd, &mut self.ledger);
        }
    }

    /// The capture ended.
    pub fn finish(&mut self, at: At) {
        for id in 0..self.streams.len() as u32 {
            self.end(id, at);
        }
    }
}

/// Counters of `streams`.
fn count(stream: &mut Stream, segment: &Segment<'_>, side: Side, facts: &Facts) {
    let [client, server] = &mut stream.counts;
    let counts = if side == Side::Client { client } else { server };
    counts.packets += 1;
    counts.payload += u64::from(segment.len);
    if facts.flags & flag::RETRANSMISSION != 0 {
        counts.retransmissions += 1;
        counts.poisoned = counts.poisoned.max(facts.next_seq);
    }
    if facts.flags & flag::OUT_OF_ORDER != 0 {
        counts.out_of_order += 1;
        counts.poisoned = counts.poisoned.max(facts.next_seq);
    }
    if segment.has(SYN) {
        counts.syn = true;
        counts.mss = segment.options.mss.or(counts.mss);
        counts.scale = segment.options.wscale;
        counts.sack = segment.options.sack_permitted;
    } else {
        counts.window_min = Some(counts.window_min.map_or(facts.window, |w| w.min(facts.window)));
    }
    stream.timestamps |= segment.options.timestamps.is_some();
    if segment.has(RST) {
        stream.closed_by.get_or_insert(if side == Side::Client { "client_rst" } else { "server_rst" });
    } else if segment.has(FIN) {
        stream.closed_by.get_or_insert(if side == Side::Client { "client_fin" } else { "server_fin" });
    }
}

/// Takes a leg sample from an ACK, and says how long the ACK was held beyond the best round trip so far.
fn sample_leg(
    stream: &mut Stream,
    pairs: &mut Pairs,
    segment: &Segment<'_>,
    side: Side,
    facts: &Facts,
    at: At,
) -> Option<i64> {
    let covered = facts.covered.filter(|_| segment.has(ACK))?;
    let [client, server] = &mut stream.counts;
    let (own, peer) = if side == Side::Client { (client, server) } else { (server, client) };
    if facts.ack <= peer.poisoned {
        return None;
    }
    let sample = at.time_ns - covered.last_time;
    if sample < 0 {
        return None;
    }
    own.leg = Some(own.leg.map_or(sample, |leg| leg.min(sample)));
    if let Some(tracker) = &stream.tracker {
        pairs.add(tracker.pair(), side.index(), sample);
    }
    if segment.has(SYN) {
        return None;
    }
    let held = at.time_ns - covered.first_time;
    own.leg.map(|leg| (held - leg).max(0))
}

#[allow(clippy::too_many_arguments)]
fn track(
    stream: &mut Stream,
    id: u32,
    pairs: &mut Pairs,
    ledger: &mut Ledger,
    segment: &Segment<'_>,
    facts: &Facts,
    side: Side,
    at: At,
    scale_known: bool,
    first_copy: Option<At>,
    sacked: Option<i64>,
) -> Option<Step> {
    if stream.tracker.is_none() {
        if segment.len == 0 {
            return None;
        }
        let (client, server) = (stream.client(), stream.server());
        let pair = pairs.id(client.0, server.0);
        for (side, counts) in stream.counts.iter().enumerate() {
            if let Some(leg) = counts.leg {
                pairs.add(pair, side, leg);
            }
        }
        let pools = pool_keys(client, server).map(|key| ledger.pools.id(key, pair));
        stream.tracker = Some(Box::new(Tracker::new(id, pair, pools)));
    }
    let mss = stream.mss();
    let [client, server] = &stream.counts;
    let rtt_ns = client.leg.unwrap_or(0) + server.leg.unwrap_or(0);
    let seen = Seen {
        segment,
        facts,
        side,
        at,
        mss,
        rtt_ns,
        syn_seen: stream.side(side).syn,
        scale_known,
        first_copy,
        legs: [client.leg, server.leg],
        sacked,
    };
    stream.tracker.as_mut().and_then(|t| t.segment(&seen, ledger))
}

/// The events' own words for why a segment left, from the past alone: word, frame, wait.
fn released(step: &Step, leg: i64) -> (Option<&'static str>, Option<u64>, Option<i64>) {
    let waited = step.to.time_ns - step.from.time_ns;
    let by_ack = |ack: At, word: &'static str| {
        let prompt = step.to.time_ns - ack.time_ns - leg <= RELEASED_NS;
        if prompt { (Some(word), Some(ack.frame), Some(waited)) } else { (Some("app"), None, Some(waited)) }
    };
    match &step.wait {
        Wait::Turn { since } => (Some("first"), Some(since.frame), Some(step.to.time_ns - since.time_ns)),
        Wait::App | Wait::Hole if step.from == step.to => (Some("first"), None, None),
        Wait::App => (Some("app"), None, Some(waited)),
        Wait::Hole => (None, None, None),
        Wait::Burst { .. } if step.from == step.to => (Some("first"), None, None),
        Wait::Burst { .. } => (Some("burst"), Some(step.from.frame), Some(waited)),
        Wait::Spaced => (Some("pacing"), None, Some(waited)),
        Wait::Small(c) if c.arrived == Some(false) => (Some("app"), None, Some(waited)),
        Wait::Small(c) => by_ack(c.ack, "nagle_ack"),
        Wait::Clocked { ack, .. } => by_ack(*ack, "cwnd_ack"),
        Wait::Window { opened, .. } => (Some("window_open"), Some(opened.frame), Some(waited)),
        Wait::Cork => (Some("cork"), None, Some(waited)),
        Wait::Repair { how, first } => {
            let word = match how {
                Repair::Fast => "fast_retransmit",
                Repair::TailProbe => "tlp",
                Repair::Timeout => "rto",
                Repair::Reordered => return (None, None, None),
            };
            (Some(word), first.map(|f| f.frame), Some(waited))
        }
    }
}

/// SACK blocks relative to the acknowledged direction, unwrapped; none without the option.
fn relative_sack(segment: &Segment<'_>, rev: &Flow) -> Option<Box<[(i64, i64)]>> {
    let blocks = segment.options.sack.blocks();
    if blocks.is_empty() {
        return None;
    }
    let base = rev.base.unwrap_or(0);
    let relative = |n: u32| unwrap_near(n.wrapping_sub(base), rev.high);
    Some(blocks.iter().map(|(left, right)| (relative(*left), relative(*right))).collect())
}

/// Where the evidence about the two senders of a stream is pooled, by `Side`.
fn pool_keys(client: Endpoint, server: Endpoint) -> [Key; 2] {
    [Side::Client, Side::Server].map(|sender| Key {
        server: server.0,
        server_port: server.1,
        client: client.0,
        sender,
    })
}
