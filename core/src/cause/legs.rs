//! The path to both hosts, as the cuts need it.

use crate::base::Side;
use crate::leg::{AT_HOST_NS, Round};

/// A round trip to another host than the one that the capture sits at is longer than this.
const AWAY_NS: i64 = 500_000;

/// The path as far as it is known: best round trips to the client and to the server, by `Side`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Legs {
    pub min: [Option<i64>; 2],
    /// What the exchange's own connection took lately, by the answers of kernels.
    pub rounds: [Round; 2],
}

impl Legs {
    pub(super) fn to(&self, side: Side) -> i64 {
        self.min.get(side.index()).copied().flatten().unwrap_or(0)
    }

    /// The capture sits at this side's host, and clearly not at the other's.
    pub(super) fn beside(&self, side: Side) -> bool {
        let [near, far] = [side, side.other()].map(|side| self.min.get(side.index()).copied().flatten());
        near.is_some_and(|leg| leg < AT_HOST_NS) && far.is_some_and(|leg| leg >= AWAY_NS)
    }
}
