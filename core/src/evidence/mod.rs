//! Evidence on each sender, collected over all its connections: waits for ACKs, segments sent without waiting, and
//! delays before the first segment of a message. This module only stores and counts; `judge` draws the conclusions.
//!
//! One gap near 40 ms does not prove Nagle's algorithm: a program may pause for just that long. But over many exchanges
//! no program can follow the peer's ACKs wherever they fall. So evidence is collected per server address and port,
//! client address and direction.

mod hosts;
pub mod rtt;

use std::net::IpAddr;

use ahash::AHashMap;

use crate::base::Side;
use crate::observe::{Candidate, Early};
pub use hosts::Hosts;

/// Upper bound on candidates, and on segments sent early, stored per sender; further ones are only counted.
const MAX_CANDIDATES: usize = 16_384;
/// Upper bound on the waits of each list of `MessageStarts`: enough to find a timer's tick in them.
const MAX_STARTS: usize = 1024;
/// Upper bound on the stored entries of all senders together, of whatever kind.
const MAX_ENTRIES: usize = 524_288;
/// Number of stored entries at which the longest-idle senders are evicted, until half are left.
const EVICTION_THRESHOLD: usize = MAX_ENTRIES / 4 * 3;
/// Upper bound on senders; candidates of further ones are not judged.
const MAX_SENDERS: usize = 65_536;

/// Identity of a sender: one direction between a client address and a server's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub server: IpAddr,
    pub server_port: u16,
    pub client: IpAddr,
    pub sender: Side,
}

/// Delays before the first segment of each message, over all streams of one sender. The judge looks for the timers of
/// corks and of held ACKs in them. A wait is its length and its end, in nanoseconds.
#[derive(Debug, Default)]
pub struct MessageStarts {
    /// Small messages that began sooner than a cork's timer, counted for as long as `cork_waits` had room: a ratio of
    /// the two has to cover the same messages.
    pub prompt_count: u64,
    /// Waits of small messages that a cork's timer may have held.
    pub cork_waits: Vec<(i64, i64)>,
    /// Waits of messages that may have waited for a held ACK on another connection.
    pub hold_waits: Vec<(i64, i64)>,
}

impl MessageStarts {
    /// Returns the number of stored waits.
    pub fn count(&self) -> u64 {
        (self.cork_waits.len() + self.hold_waits.len()) as u64
    }
}

/// Appends a wait; returns false if the list is full.
fn push_if_room(waits: &mut Vec<(i64, i64)>, wait: (i64, i64)) -> bool {
    let has_room = waits.len() < MAX_STARTS;
    if has_room {
        waits.push(wait);
    }
    has_room
}

/// Evidence on one sender.
#[derive(Debug)]
pub struct SenderEvidence {
    pub key: Key,
    /// Number of the address pair in `rtt::Pairs`.
    pub pair: u32,
    /// Small segments sent over unacknowledged small ones, including those not stored in `early`.
    pub refutations: u64,
    /// Candidates that were counted but not stored.
    unstored: u64,
    pub candidates: Vec<Candidate>,
    /// Segments sent before the ACK, each with its stream.
    pub early: Vec<(u32, Early)>,
    pub starts: MessageStarts,
    /// Observations up to the last eviction; None if this sender was never evicted.
    evicted: Option<u64>,
    /// Serial number of the newest entry among those of all senders: the order of eviction.
    newest: u64,
}

/// Evidence on all senders. A sender's number is its index here, `sender_id` elsewhere.
#[derive(Debug, Default)]
pub struct SenderStore {
    index: AHashMap<Key, u32>,
    senders: Vec<SenderEvidence>,
    /// Number looked up last, by `Side` of the sender: a cache, as connections of the same hosts follow each other.
    newest: [u32; 2],
    /// Entries stored now, over all senders.
    stored: usize,
    /// Entries ever stored.
    added: u64,
    pub hosts: Hosts,
}

impl SenderStore {
    /// Returns the number of a sender, new if needed; `u32::MAX` beyond `MAX_SENDERS`, whose candidates are not judged.
    pub fn id(&mut self, key: Key, pair: u32) -> u32 {
        let newest = *key.sender.pick(&self.newest);
        if (self.senders.get(newest as usize)).is_some_and(|sender| sender.key == key) {
            return newest;
        }
        let id = self.find_or_insert(key, pair);
        *key.sender.pick_mut(&mut self.newest) = id;
        id
    }

    fn find_or_insert(&mut self, key: Key, pair: u32) -> u32 {
        if let Some(&id) = self.index.get(&key) {
            return id;
        }
        if self.senders.len() >= MAX_SENDERS {
            return u32::MAX;
        }
        let id = self.senders.len() as u32;
        self.index.insert(key, id);
        if key.sender == Side::Client {
            self.hosts.add(&key);
        }
        self.senders.push(SenderEvidence::new(key, pair));
        id
    }

    /// Calls `add` with a sender and whether the store has room; `add` returns whether it stored an entry.
    #[inline(always)]
    fn store(&mut self, id: u32, add: impl FnOnce(&mut SenderEvidence, bool) -> bool) -> bool {
        let Some(sender) = self.senders.get_mut(id as usize) else {
            return false;
        };
        let is_stored = add(sender, self.stored < MAX_ENTRIES);
        if is_stored {
            self.stored += 1;
            self.added += 1;
            sender.newest = self.added;
        }
        is_stored
    }

    /// Adds small segments that were sent over unacknowledged small ones on a stream.
    pub fn refute(&mut self, id: u32, stream: u32, early: &[Early]) {
        let Some(sender) = self.senders.get_mut(id as usize) else {
            return;
        };
        sender.refutations += early.len() as u64;
        let room = MAX_ENTRIES
            .saturating_sub(self.stored)
            .min(MAX_CANDIDATES.saturating_sub(sender.early.len()));
        let stored = early.get(..room).unwrap_or(early);
        sender.early.extend(stored.iter().map(|early| (stream, *early)));
        self.stored += stored.len();
        self.added += stored.len() as u64;
        sender.newest = self.added;
    }

    /// Adds the start of a small message: its wait and the end of that if a cork's timer may have held it, else None.
    #[inline(always)]
    pub fn message_began(&mut self, id: u32, cork_wait: Option<(i64, i64)>) {
        self.store(id, |sender, has_room| {
            let starts = &mut sender.starts;
            match cork_wait {
                Some(wait) => has_room && push_if_room(&mut starts.cork_waits, wait),
                None => {
                    starts.prompt_count += u64::from(has_room && starts.cork_waits.len() < MAX_STARTS);
                    false
                }
            }
        });
    }

    /// Adds a message that began after about the wait for an ACK held on another connection.
    pub fn answered_late(&mut self, id: u32, waited: i64, end: i64) {
        self.store(id, |sender, has_room| {
            has_room && push_if_room(&mut sender.starts.hold_waits, (waited, end))
        });
    }

    /// Adds a candidate; returns false if it was only counted, for want of room.
    pub fn add(&mut self, candidate: &Candidate) -> bool {
        self.store(candidate.sender_id, |sender, has_room| {
            let has_room = has_room && sender.candidates.len() < MAX_CANDIDATES;
            if has_room {
                sender.candidates.push(*candidate);
            } else {
                sender.unstored += 1;
            }
            has_room
        })
    }

    pub fn should_evict(&self) -> bool {
        self.stored >= EVICTION_THRESHOLD
    }

    /// Returns the longest-idle senders whose eviction leaves half of `EVICTION_THRESHOLD` entries.
    pub fn least_recently_used(&self) -> Vec<u32> {
        let mut idle: Vec<(u64, u32, usize)> = (0..)
            .zip(&self.senders)
            .map(|(id, sender)| (sender.newest, id, sender.stored()))
            .filter(|(.., stored)| *stored > 0)
            .collect();
        idle.sort_unstable();
        let mut remaining = self.stored;
        idle.iter()
            .take_while(|(.., stored)| {
                let is_crowded = remaining > EVICTION_THRESHOLD / 2;
                remaining = remaining.saturating_sub(*stored);
                is_crowded
            })
            .map(|(_, id, _)| *id)
            .collect()
    }

    pub fn get(&self, id: u32) -> Option<&SenderEvidence> {
        self.senders.get(id as usize)
    }

    /// Drops the evidence on a sender, which is from then on judged as if the capture began there.
    pub fn evict(&mut self, id: u32) {
        if let Some(sender) = self.senders.get_mut(id as usize) {
            self.stored = self.stored.saturating_sub(sender.stored());
            *sender = SenderEvidence {
                evicted: Some(sender.total_observations()),
                newest: sender.newest,
                ..SenderEvidence::new(sender.key, sender.pair)
            };
        }
    }

    pub fn key(&self, id: u32) -> Option<Key> {
        self.senders.get(id as usize).map(|sender| sender.key)
    }

    pub fn len(&self) -> usize {
        self.senders.len()
    }

    pub fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &SenderEvidence> {
        self.senders.iter()
    }
}

impl SenderEvidence {
    fn new(key: Key, pair: u32) -> Self {
        SenderEvidence {
            key,
            pair,
            refutations: 0,
            unstored: 0,
            candidates: Vec::new(),
            early: Vec::new(),
            starts: MessageStarts::default(),
            evicted: None,
            newest: 0,
        }
    }

    /// Returns the number of candidates and refutations that a verdict rests on, stored or not.
    pub fn observations(&self) -> u64 {
        self.refutations + self.unstored + self.candidates.len() as u64
    }

    /// Returns `observations` with those that were evicted.
    pub fn total_observations(&self) -> u64 {
        self.evicted.unwrap_or(0) + self.observations()
    }

    /// Whether all evidence was evicted and nothing was added since.
    pub fn is_quiet(&self) -> bool {
        self.evicted.is_some() && self.observations() + self.starts.count() == 0
    }

    /// Returns the number of stored entries.
    fn stored(&self) -> usize {
        self.candidates.len() + self.early.len() + self.starts.count() as usize
    }
}

#[cfg(test)]
mod tests;
