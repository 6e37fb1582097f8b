//! What was seen of each sender, over all its streams: small segments that left after an ACK, those that left over
//! unacknowledged ones, how its messages began. It only counts and remembers; `judge` draws the conclusions.
//!
//! A lone gap near 40 ms proves nothing: a program may pause for just that long. What a program cannot
//! do over many exchanges is to follow the peer's ACK wherever it falls. So every candidate of the same
//! server address and port, direction and client address is collected here.

mod hosts;
pub mod rtt;
mod starts;

use std::net::IpAddr;

use ahash::AHashMap;

use crate::base::Side;
use crate::observe::{Candidate, Early};
pub use hosts::Hosts;
pub use starts::Starts;

/// Candidates, and segments that left early, remembered per pool; later ones are only counted.
const KEPT: usize = 16_384;
/// Both and the waits of `Starts` in all pools together.
const KEPT_IN_ALL: usize = 524_288;
/// Eviction starts at this many remembered entries and drops the longest-idle senders until half are left.
const CROWDED: usize = KEPT_IN_ALL / 4 * 3;
const MAX_SENDERS: usize = 65_536;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub server: IpAddr,
    pub server_port: u16,
    pub client: IpAddr,
    pub sender: Side,
}

/// A candidate as it is remembered. Times in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct AckWait {
    /// Small segment to ACK, ACK to freed segment, first byte covered to ACK.
    pub wait: i64,
    pub release: i64,
    pub covered: i64,
    /// How much later than at best the ACK passed, by its sender's clock.
    pub ack_late: i64,
    pub acked_at: i64,
    /// Of the freed segment, as are its bytes.
    pub frame: u64,
    pub bytes: u32,
    pub stream: u32,
    pub arrived: Option<bool>,
    pub timer: bool,
    /// The capture lacks the ACK; time stamps say when it left.
    pub unseen: bool,
    /// The peer had ended before the freed segment.
    pub after_end: bool,
    /// The small segment was its message's first.
    pub first: bool,
    /// By its sender's clock the freed segment passed so much later than at best, if that clock is fine enough.
    pub lateness: Option<u32>,
    /// That clock was seen to count every millisecond.
    pub fine: bool,
}

impl AckWait {
    /// A stream's candidate, without what is known of other connections.
    pub fn of(stream: u32, c: &Candidate) -> AckWait {
        AckWait {
            wait: c.ack.time_ns - c.small.time_ns,
            release: c.freed.time_ns - c.ack.time_ns,
            covered: c.ack.time_ns - c.held_from.time_ns,
            ack_late: c.ack_late,
            acked_at: c.ack.time_ns,
            frame: c.freed.frame,
            bytes: c.freed_bytes,
            stream,
            arrived: c.arrived,
            timer: c.ack_pure && !c.ack_fin,
            unseen: c.unseen,
            after_end: c.after_end,
            first: c.first,
            lateness: c.lateness,
            fine: c.fine,
        }
    }
}

#[derive(Debug)]
pub struct SenderEvidence {
    pub key: Key,
    pub pair: u32,
    pub refutations: u64,
    /// Candidates that are only counted.
    more: u64,
    pub ack_waits: Vec<AckWait>,
    /// Segments that left before the ACK, by stream: what their program took.
    pub early: Vec<(u32, Early)>,
    pub starts: Starts,
    /// Evidence counted up to the last eviction; none where nothing was evicted.
    evicted_seen: Option<u64>,
    /// The newest evidence, by its place among all.
    newest: u64,
}

#[derive(Debug, Default)]
pub struct SenderStore {
    index: AHashMap<Key, u32>,
    senders: Vec<SenderEvidence>,
    /// By its sender's `Side`, the one that was looked up last: connections of the same hosts follow each other.
    newest: [u32; 2],
    /// What is remembered in all pools, and what ever was.
    kept: usize,
    added: u64,
    pub hosts: Hosts,
}

impl SenderStore {
    /// The pool's number, or `u32::MAX` where there are too many (such candidates stay unjudged).
    pub fn id(&mut self, key: Key, pair: u32) -> u32 {
        let place = key.sender.index();
        let newest = self.newest.get(place).copied().unwrap_or_default();
        if (self.senders.get(newest as usize)).is_some_and(|sender| sender.key == key) {
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
        if self.senders.len() >= MAX_SENDERS {
            return u32::MAX;
        }
        let id = self.senders.len() as u32;
        self.index.insert(key, id);
        if key.sender == Side::Client {
            self.hosts.add(&key);
        }
        self.senders.push(SenderEvidence {
            key,
            pair,
            refutations: 0,
            more: 0,
            ack_waits: Vec::new(),
            early: Vec::new(),
            starts: Starts::default(),
            evicted_seen: None,
            newest: 0,
        });
        id
    }

    /// The pool, and whether there is room for more in it; `add` decides what is remembered there.
    fn remember(&mut self, id: u32, add: impl FnOnce(&mut SenderEvidence, bool) -> bool) -> bool {
        let Some(sender) = self.senders.get_mut(id as usize) else {
            return false;
        };
        let kept = add(sender, self.kept < KEPT_IN_ALL);
        if kept {
            self.kept += 1;
            self.added += 1;
            sender.newest = self.added;
        }
        kept
    }

    /// Small segments that were sent over unacknowledged small ones on a stream.
    pub fn refute(&mut self, id: u32, stream: u32, early: &[Early]) {
        let Some(sender) = self.senders.get_mut(id as usize) else {
            return;
        };
        sender.refutations += early.len() as u64;
        let room = KEPT_IN_ALL
            .saturating_sub(self.kept)
            .min(KEPT.saturating_sub(sender.early.len()));
        let kept = early.get(..room).unwrap_or(early);
        sender.early.extend(kept.iter().map(|early| (stream, *early)));
        self.kept += kept.len();
        self.added += kept.len() as u64;
        sender.newest = self.added;
    }

    /// A small message began; `late` where it may have waited for a cork's timer: how long, and until when.
    pub fn message_began(&mut self, id: u32, late: Option<(i64, i64)>) {
        match late {
            Some((waited, end)) => {
                self.remember(id, |sender, room| room && sender.starts.add_late(waited, end));
            }
            None => {
                if self.kept < KEPT_IN_ALL
                    && let Some(sender) = self.senders.get_mut(id as usize)
                {
                    sender.starts.add_prompt();
                }
            }
        }
    }

    /// A message began after about as long as a held ACK elsewhere makes it wait: how long, and until when.
    pub fn answered_late(&mut self, id: u32, waited: i64, end: i64) {
        self.remember(id, |sender, room| room && sender.starts.add_timed(waited, end));
    }

    /// Remembers a stream's candidate; false where it can only be counted, because there are too many of them or of pools.
    pub fn add(&mut self, stream: u32, c: &Candidate) -> bool {
        self.remember(c.sender_id, |sender, room| {
            let room = room && sender.ack_waits.len() < KEPT;
            if room {
                sender.ack_waits.push(AckWait::of(stream, c));
            } else {
                sender.more += 1;
            }
            room
        })
    }

    /// Whether some of it should be let go.
    pub fn should_evict(&self) -> bool {
        self.kept >= CROWDED
    }

    /// The longest-idle senders whose eviction brings what is remembered down to half of `CROWDED`.
    pub fn least_recently_used(&self) -> Vec<u32> {
        let mut held: Vec<(u64, u32, usize)> = (0..)
            .zip(&self.senders)
            .map(|(id, sender)| (sender.newest, id, sender.held()))
            .filter(|(.., held)| *held > 0)
            .collect();
        held.sort_unstable();
        let mut left = self.kept;
        held.iter()
            .take_while(|(.., held)| {
                let more = left > CROWDED / 2;
                left = left.saturating_sub(*held);
                more
            })
            .map(|(_, id, _)| *id)
            .collect()
    }

    pub fn get(&self, id: u32) -> Option<&SenderEvidence> {
        self.senders.get(id as usize)
    }

    /// Forgets what was seen of a sender: from here on it is known as if the capture began here.
    pub fn evict(&mut self, id: u32) {
        if let Some(sender) = self.senders.get_mut(id as usize) {
            self.kept = self.kept.saturating_sub(sender.held());
            sender.evicted_seen = Some(sender.total_observations());
            (sender.refutations, sender.more) = (0, 0);
            (sender.ack_waits, sender.early, sender.starts) = (Vec::new(), Vec::new(), Starts::default());
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
    /// What a judgement rests on.
    pub fn observations(&self) -> u64 {
        self.refutations + self.more + self.ack_waits.len() as u64
    }

    /// What was seen in all, with what was dropped since.
    pub fn total_observations(&self) -> u64 {
        self.evicted_seen.unwrap_or(0) + self.observations()
    }

    /// Whether all of it was let go, and nothing was seen since.
    pub fn is_quiet(&self) -> bool {
        self.evicted_seen.is_some() && self.observations() + self.starts.count() == 0
    }

    /// What is remembered.
    fn held(&self) -> usize {
        self.ack_waits.len() + self.early.len() + self.starts.count() as usize
    }
}

#[cfg(test)]
mod tests;
