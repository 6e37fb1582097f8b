//! Evidence about one sender's Nagle and its peer's delayed ACKs, pooled over all their streams.
//!
//! A lone gap near 40 ms proves nothing: a program may pause for just that long. What a program cannot
//! do over many exchanges is to follow the peer's ACK wherever it falls. So every candidate of the same
//! server address and port, direction and client address is collected here and judged together.

mod apart;
mod idle;
mod judged;
mod relay;
mod spread;

use std::net::IpAddr;

use ahash::AHashMap;

use crate::base::Side;
use crate::leg::Pairs;
use crate::wait::Candidate;
pub use apart::Apart;
use idle::Idle;
use judged::{AT_ENDPOINT_NS, SOON_NS, verdict};
pub use judged::{Freed, HELD_NS, Judged, Ruling, Verdict};
use relay::Relay;
use spread::slope;

/// Candidates remembered per pool, and in all pools together; later ones are only counted.
const KEPT: usize = 16_384;
const KEPT_IN_ALL: usize = 524_288;
/// Notes per pool of which streams refute: where there are more, nobody can say which do not.
const REFUTERS: usize = 16_384;
/// A pool that has been judged is judged again when its evidence has grown by this share.
const GROWN: f64 = 0.25;
const TIGHT_NS: i64 = 2_000_000;
const TIGHT_AT_ENDPOINT_NS: i64 = 200_000;
const MAX_POOLS: usize = 65_536;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub server: IpAddr,
    pub server_port: u16,
    pub client: IpAddr,
    pub sender: Side,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Small segment to ACK, ACK to freed segment, first byte covered to ACK.
    wait: i64,
    release: i64,
    covered: i64,
    acked_at: i64,
    stream: u32,
    arrived: Option<bool>,
    timer: bool,
    /// Another server's connection brought such a segment between ACK and freed segment.
    relayed: bool,
}

/// A stream that has refuted: how often, and when. Written down at 1, 2, 4 times and so on.
#[derive(Debug, Clone, Copy)]
struct Refuter {
    stream: u32,
    times: u32,
    at: i64,
    first: bool,
}

#[derive(Debug)]
pub struct Pool {
    pub key: Key,
    pub pair: u32,
    pub refutations: u64,
    more: u64,
    samples: Vec<Sample>,
    refuters: Vec<Refuter>,
    idle: Idle,
    /// The last judgement, and how much evidence it had.
    judged: Option<(Judged, u64)>,
}

#[derive(Debug, Default)]
pub struct Pools {
    index: AHashMap<Key, u32>,
    pools: Vec<Pool>,
    /// By its sender's `Side`, the one that was asked for last: connections of the same hosts follow each other.
    newest: [u32; 2],
    kept: usize,
    /// By the `Side` that sent it.
    relays: [Relay; 2],
}

impl Pools {
    /// The pool's number, or `u32::MAX` where there are too many (such candidates stay unjudged).
    pub fn id(&mut self, key: Key, pair: u32) -> u32 {
        let place = key.sender.index();
        let newest = self.newest.get(place).copied().unwrap_or_default();
        if (self.pools.get(newest as usize)).is_some_and(|pool| pool.key == key) {
            return newest;
        }
        let id = self.id_of(key, pair);
        if let Some(newest) = self.newest.get_mut(place) {
            *newest = id;
        }
        id
    }

    fn id_of(&mut self, key: Key, pair: u32) -> u32 {
        if let Some(&id) = self.index.get(&key) {
            return id;
        }
        if self.pools.len() >= MAX_POOLS {
            return u32::MAX;
        }
        let id = self.pools.len() as u32;
        self.index.insert(key, id);
        self.pools.push(Pool {
            key,
            pair,
            refutations: 0,
            more: 0,
            samples: Vec::new(),
            refuters: Vec::new(),
            idle: Idle::default(),
            judged: None,
        });
        id
    }

    /// So many small segments were sent over unacknowledged small ones on a stream, after `before` of them, until now.
    pub fn refute(&mut self, id: u32, stream: u32, times: u64, before: &mut u32, now_ns: i64) {
        let Some(pool) = self.pools.get_mut(id as usize) else {
            return;
        };
        pool.refutations += times;
        let had = before.leading_zeros();
        *before = before.saturating_add(times as u32);
        if before.leading_zeros() != had && pool.refuters.len() < REFUTERS {
            pool.refuters.push(Refuter {
                stream,
                times: *before,
                at: now_ns,
                first: had == u32::BITS,
            });
        }
    }

    /// A small message began; `late` where it may have waited for a cork's timer: how long, and until when.
    pub fn began(&mut self, id: u32, late: Option<(i64, i64)>) {
        if let Some(pool) = self.pools.get_mut(id as usize) {
            match late {
                Some((waited, end)) => pool.idle.add_late(waited, end),
                None => pool.idle.add_prompt(),
            }
        }
    }

    /// Whether another server's connection brought, in the same direction, a late small segment after this candidate's ACK.
    fn is_relayed(&mut self, c: &Candidate) -> bool {
        let Some(Pool { key, .. }) = self.pools.get(c.pool as usize) else {
            return false;
        };
        let [client, server] = &mut self.relays;
        let relay = if key.sender == Side::Client {
            client
        } else {
            server
        };
        let brought = relay.since(c.pool, c.ack.time_ns);
        relay.passed(c.pool, c.freed.time_ns);
        let other = brought.and_then(|id| self.pools.get(id as usize));
        other.is_some_and(|other| (other.key.server, other.key.server_port) != (key.server, key.server_port))
    }

    /// Remembers a stream's candidate; false where it can only be counted, because there are too many of them or of pools.
    pub fn add(&mut self, stream: u32, c: &Candidate) -> bool {
        let relayed = self.is_relayed(c);
        let Some(pool) = self.pools.get_mut(c.pool as usize) else {
            return false;
        };
        if pool.samples.len() >= KEPT || self.kept >= KEPT_IN_ALL {
            pool.more += 1;
            return false;
        }
        self.kept += 1;
        pool.samples.push(Sample {
            wait: c.ack.time_ns - c.small.time_ns,
            release: c.freed.time_ns - c.ack.time_ns,
            covered: c.ack.time_ns - c.held_from.time_ns,
            acked_at: c.ack.time_ns,
            stream,
            arrived: c.arrived,
            timer: c.ack_pure && !c.ack_fin,
            relayed,
        });
        true
    }

    /// All pools judged with the legs known by now, in the order of their numbers. Before the `last` time a
    /// judgement stands until there is notably more evidence: slopes over many pools are dear.
    pub fn judge(&mut self, pairs: &Pairs, last: bool) -> Vec<Judged> {
        let judged = self.pools.iter_mut().map(|pool| {
            let evidence = pool.evidence() + pool.idle.evidence();
            match &pool.judged {
                Some((judged, had)) if *had == evidence && pool.same_legs(judged, pairs) => judged.clone(),
                Some((judged, had)) if !last && (evidence as f64) < *had as f64 * (1.0 + GROWN) => {
                    judged.clone()
                }
                _ => {
                    let judged = pool.judge(pairs);
                    pool.judged = Some((judged.clone(), evidence));
                    judged
                }
            }
        });
        judged.collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.pools.iter()
    }
}

impl Pool {
    fn same_legs(&self, judged: &Judged, pairs: &Pairs) -> bool {
        let leg = |side: Side| pairs.min(self.pair, side.index()).unwrap_or(0);
        (judged.sender_leg, judged.receiver_leg) == (leg(self.key.sender), leg(self.key.sender.other()))
    }

    fn evidence(&self) -> u64 {
        self.refutations + self.more + self.samples.len() as u64
    }

    fn judge(&self, pairs: &Pairs) -> Judged {
        let (sender, receiver) = (self.key.sender.index(), self.key.sender.other().index());
        let leg = |side: usize| pairs.min(self.pair, side).unwrap_or(0);
        let mut j = Judged {
            opportunities: self.evidence(),
            sender_leg: leg(sender),
            receiver_leg: leg(receiver),
            ..Judged::default()
        };
        let path = pairs.get(self.pair).and_then(|p| p.legs.get(sender));
        j.sender_jitter = path.map_or(0, |l| l.jitter());
        j.leg_is_best = path.is_none_or(|l| l.is_by_kernel());
        j.tight_limit = if j.sender_leg < AT_ENDPOINT_NS {
            // there is no path, and of what its program takes to answer little can be a busy host's
            let kernels = path.map_or(0, |leg| leg.kernels_jitter());
            j.sender_jitter = j.sender_jitter.min(SOON_NS.max(kernels));
            TIGHT_AT_ENDPOINT_NS.max(j.sender_jitter)
        } else {
            TIGHT_NS.max(j.sender_jitter)
        };
        j.sender_late = path.map_or(0.0, |leg| leg.late(j.tight_limit));
        let held = j.count(self.samples.iter(), self.refutations);
        j.slope = slope(&held);
        j.held_by_timer(&held);
        (j.timed, j.corked) = self.idle.corked(j.sender_leg);
        j.verdict = verdict(&j);
        self.part(&mut j);
        if matches!(j.verdict, Verdict::Refuted | Verdict::Mixed) {
            j.refuted_since = self.refuted_since(&j);
        }
        j
    }

    /// When each stream refuted for the first time, by the streams' numbers.
    fn refuted_since(&self, j: &Judged) -> Vec<(u32, i64)> {
        if self.refuters.len() >= REFUTERS || self.more > 0 {
            return Vec::new(); // the first may not be among them
        }
        let before_ack = self.samples.iter().filter(|s| j.before_ack(s.release, s.arrived));
        let mut since: Vec<(u32, i64)> = self
            .refuters
            .iter()
            .filter(|r| r.first)
            .map(|r| (r.stream, r.at))
            .chain(before_ack.map(|s| (s.stream, s.acked_at)))
            .collect();
        since.sort_unstable();
        since.dedup_by_key(|(stream, _)| *stream);
        since
    }

    /// Do its connections differ? Then what was held tells of those alone that Nagle's algorithm holds up.
    fn part(&self, j: &mut Judged) {
        if self.refuters.len() >= REFUTERS || self.more > 0 {
            return; // not all of them are known
        }
        let (apart, counts) = Apart::of(&self.samples, &self.refuters, j);
        [j.streams, j.nagle_streams, j.nodelay_streams] = counts;
        if let Some(apart) = apart {
            let nagle = |s: &&Sample| apart.on(s.stream).0 == Verdict::Proven;
            let refuted = j.refuted;
            let held = j.count(self.samples.iter().filter(nagle), 0);
            j.slope = slope(&held);
            j.held_by_timer(&held);
            (j.refuted, j.verdict, j.apart) = (refuted, apart.verdict, Some(apart));
        }
    }
}
