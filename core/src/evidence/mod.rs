//! What was seen of each sender, over all its streams: small segments that left after an ACK, those that left over
//! unacknowledged ones, how its messages began. It counts and remembers; what that says of the sender is `judge`'s.
//!
//! A lone gap near 40 ms proves nothing: a program may pause for just that long. What a program cannot
//! do over many exchanges is to follow the peer's ACK wherever it falls. So every candidate of the same
//! server address and port, direction and client address is collected here.

mod hosts;
mod relay;
pub mod rtt;
mod starts;

use std::net::IpAddr;

use ahash::AHashMap;

use crate::base::Side;
use crate::observe::{Candidate, Early};
pub use hosts::Hosts;
use relay::Relay;
pub use starts::Starts;

/// Candidates remembered per pool, and in all pools together; later ones are only counted.
const KEPT: usize = 16_384;
const KEPT_IN_ALL: usize = 524_288;
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
    /// Of the freed segment.
    pub frame: u64,
    pub stream: u32,
    pub arrived: Option<bool>,
    pub timer: bool,
    /// The capture lacks the ACK; time stamps say when it left.
    pub unseen: bool,
    /// The peer had ended before the freed segment.
    pub after_end: bool,
    /// A connection with another server brought its sender such a segment while it waited.
    pub relayed: bool,
}

impl Key {
    /// Who sends, and to whom.
    fn ends(&self) -> (IpAddr, IpAddr) {
        match self.sender {
            Side::Server => (self.server, self.client),
            Side::Client => (self.client, self.server),
        }
    }
}

#[derive(Debug)]
pub struct Pool {
    pub key: Key,
    pub pair: u32,
    pub refutations: u64,
    /// Candidates that are only counted.
    more: u64,
    pub gaps: Vec<Gap>,
    /// Segments that left before the ACK, by stream: what their program took.
    pub early: Vec<(u32, Early)>,
    pub starts: Starts,
}

#[derive(Debug, Default)]
pub struct Pools {
    index: AHashMap<Key, u32>,
    pools: Vec<Pool>,
    /// By its sender's `Side`, the one that was asked for last: connections of the same hosts follow each other.
    newest: [u32; 2],
    kept: usize,
    /// What was brought to each host, by the `Side` that sent it.
    relays: AHashMap<(IpAddr, Side), Relay>,
    pub hosts: Hosts,
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
        if key.sender == Side::Client {
            self.hosts.add(&key);
        }
        self.pools.push(Pool {
            key,
            pair,
            refutations: 0,
            more: 0,
            gaps: Vec::new(),
            early: Vec::new(),
            starts: Starts::default(),
        });
        id
    }

    /// Small segments that were sent over unacknowledged small ones on a stream.
    pub fn refute(&mut self, id: u32, stream: u32, early: impl Iterator<Item = Early>) {
        let Some(pool) = self.pools.get_mut(id as usize) else {
            return;
        };
        for early in early {
            pool.refutations += 1;
            if pool.early.len() < KEPT {
                pool.early.push((stream, early));
            }
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

    /// A message began after about as long as a held ACK elsewhere makes it wait: how long, and until when.
    pub fn answered_late(&mut self, id: u32, waited: i64, end: i64) {
        if let Some(pool) = self.pools.get_mut(id as usize) {
            pool.starts.add_timed(waited, end);
        }
    }

    /// Whether a connection with another server brought this candidate's sender such a segment while it waited.
    fn is_relayed(&mut self, c: &Candidate) -> bool {
        let Some(Pool { key, .. }) = self.pools.get(c.pool as usize) else {
            return false;
        };
        let (from, to) = key.ends();
        if self.relays.len() < MAX_POOLS || self.relays.contains_key(&(to, key.sender)) {
            let relay = self.relays.entry((to, key.sender)).or_default();
            relay.passed(c.pool, c.freed.time_ns);
        }
        let relay = self.relays.get(&(from, key.sender));
        let brought = relay.and_then(|relay| relay.since(c.pool, c.small.time_ns));
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
            frame: c.freed.frame,
            stream,
            arrived: c.arrived,
            timer: c.ack_pure && !c.ack_fin,
            unseen: c.unseen,
            after_end: c.after_end,
            relayed,
        });
        true
    }

    pub fn key(&self, id: u32) -> Option<Key> {
        self.pools.get(id as usize).map(|pool| pool.key)
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
}

#[cfg(test)]
mod tests;
