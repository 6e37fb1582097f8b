//! Path legs: how long the path from the capture to an endpoint and back takes at its best.
//!
//! A sample is the time from a packet that passes towards an endpoint to that endpoint's first packet
//! that acknowledges it. The smallest one is the leg; whatever an ACK took beyond it was a hold, a
//! queue or a program.

use std::net::IpAddr;

use ahash::AHashMap;

/// Samples kept for the spread; the newest replace the oldest.
const KEPT: usize = 64;
/// A sample that is this much above the minimum says something about a host, not about the path's jitter.
const HOST_NS: i64 = 15_000_000;
/// Jitter above this is no basis for a verdict.
const MAX_JITTER_NS: i64 = 10_000_000;

#[derive(Debug, Clone, Default)]
pub struct Leg {
    min: Option<i64>,
    count: u64,
    recent: Vec<i64>,
}

impl Leg {
    pub fn add(&mut self, sample: i64) {
        if sample < 0 {
            return; // the clock went back
        }
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
        if self.recent.len() < KEPT {
            self.recent.push(sample);
        } else if let Some(slot) = self.recent.get_mut((self.count % KEPT as u64) as usize) {
            *slot = sample;
        }
        self.count += 1;
    }

    pub fn min(&self) -> Option<i64> {
        self.min
    }

    /// Third quartile of the samples above their minimum: how much the path itself wavers.
    pub fn jitter(&self) -> i64 {
        let Some(min) = self.min else { return 0 };
        let mut above: Vec<i64> = self
            .recent
            .iter()
            .map(|s| s - min)
            .filter(|d| *d < HOST_NS)
            .collect();
        above.sort_unstable();
        above
            .get(above.len() * 3 / 4)
            .copied()
            .unwrap_or(0)
            .min(MAX_JITTER_NS)
    }
}

/// Both legs between one client address and one server address.
#[derive(Debug, Clone, Default)]
pub struct Pair {
    /// Indexed by `Side`: the leg to the client and back, the leg to the server and back.
    pub legs: [Leg; 2],
}

/// All address pairs seen with data; streams of a pair share its legs.
#[derive(Debug, Default)]
pub struct Pairs {
    index: AHashMap<(IpAddr, IpAddr), u32>,
    pairs: Vec<Pair>,
}

impl Pairs {
    pub fn id(&mut self, client: IpAddr, server: IpAddr) -> u32 {
        let next = self.pairs.len() as u32;
        let id = *self.index.entry((client, server)).or_insert(next);
        if id == next {
            self.pairs.push(Pair::default());
        }
        id
    }

    pub fn get(&self, id: u32) -> Option<&Pair> {
        self.pairs.get(id as usize)
    }

    pub fn add(&mut self, id: u32, side: usize, sample: i64) {
        if let Some(leg) = self.pairs.get_mut(id as usize).and_then(|p| p.legs.get_mut(side)) {
            leg.add(sample);
        }
    }

    pub fn min(&self, id: u32, side: usize) -> Option<i64> {
        self.get(id).and_then(|p| p.legs.get(side)).and_then(Leg::min)
    }
}
