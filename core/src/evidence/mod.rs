//! What was seen of each sender, over all its streams: small segments that left after an ACK, those that left over
//! unacknowledged ones, how its messages began. It counts and remembers; what that says of the sender is `judge`'s.
//!
//! A lone gap near 40 ms proves nothing: a program may pause for just that long. What a program cannot
//! do over many exchanges is to follow the peer's ACK wherever it falls. So every candidate of the same
//! server address and port, direction and client address is collected here.

mod relay;
pub mod rtt;
mod starts;

use std::net::IpAddr;

use ahash::AHashMap;

use crate::base::Side;
use crate::observe::Candidate;
use relay::Relay;
pub use starts::Starts;

/// Candidates remembered per pool, and in all pools together; later ones are only counted.
const KEPT: usize = 16_384;
const KEPT_IN_ALL: usize = 524_288;
/// Notes per pool of which streams refute: where there are more, nobody can say which do not.
const REFUTERS: usize = 16_384;
const MAX_POOLS: usize = 65_536;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub server: IpAddr,
    pub server_port: u16,
    pub client: IpAddr,
    pub sender: Side,
}

/// A candidate as it is remembered. Times in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// Small segment to ACK, ACK to freed segment, first byte covered to ACK.
    pub wait: i64,
    pub release: i64,
    pub covered: i64,
    pub acked_at: i64,
    pub stream: u32,
    pub arrived: Option<bool>,
    pub timer: bool,
    /// Another server's connection brought such a segment between ACK and freed segment.
    pub relayed: bool,
}

/// A stream that has refuted: how often, and when. Written down at 1, 2, 4 times and so on.
#[derive(Debug, Clone, Copy)]
pub struct Refuter {
    pub stream: u32,
    pub times: u32,
    pub at: i64,
    pub first: bool,
}

#[derive(Debug)]
pub struct Pool {
    pub key: Key,
    pub pair: u32,
    pub refutations: u64,
    /// Candidates that are only counted.
    more: u64,
    pub gaps: Vec<Gap>,
    pub refuters: Vec<Refuter>,
    pub starts: Starts,
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
            gaps: Vec::new(),
            refuters: Vec::new(),
            starts: Starts::default(),
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
                Some((waited, end)) => pool.starts.add_late(waited, end),
                None => pool.starts.add_prompt(),
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
        if pool.gaps.len() >= KEPT || self.kept >= KEPT_IN_ALL {
            pool.more += 1;
            return false;
        }
        self.kept += 1;
        pool.gaps.push(Gap {
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

    pub fn len(&self) -> usize {
        self.pools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.pools.iter()
    }
}

impl Pool {
    pub fn evidence(&self) -> u64 {
        self.refutations + self.more + self.gaps.len() as u64
    }

    /// All that was seen of the sender is remembered.
    pub fn is_whole(&self) -> bool {
        self.refuters.len() < REFUTERS && self.more == 0
    }
}
