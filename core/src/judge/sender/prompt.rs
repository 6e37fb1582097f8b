//! How late what an ACK freed may pass, away from its sender: as late as the path is now and then.
//!
//! Rival: a program that wakes up after a time of its own, behind the ACK. What answers take at such a host, a busy one above
//! all, is no shorter than that. But the program's time keeps its length wherever the ACK falls, and the path's does not.

use super::Judged;
use super::spread::deviation;
use crate::evidence::Gap;
use crate::evidence::rtt::{Rtt, now_and_then};
use crate::judge::limits::{
    AT_HOST_NS, CONTROL_STRAYS, ENOUGH, NOISE_NS, PATH_LATE, PROMPT_NS, SOON_NS, STEADIER, TICK_NS,
};

/// Twice as late as now and then, for the ACK and the segment, and no less than a busy host makes it.
pub(super) fn limit(path: Option<&Rtt>, jitter: i64) -> i64 {
    let late = path.map_or(0, Rtt::latest);
    PROMPT_NS
        .get()
        .max(jitter)
        .max((late as f64 * PATH_LATE.get()) as i64)
}

/// The same by the sender's clock, which tells the way to the capture from what the program took before: the way of the ACK
/// wavers as much. No later than its ticks explain where its program's pauses are seen: more was sent later than such a way makes
/// late, and it keeps its length. None where the clock does not tell, beside the sender, and where all that is prompt is sooner.
pub(super) fn by_its_clock(gaps: &[Gap], j: &Judged) -> Option<i64> {
    if j.sender_rtt < AT_HOST_NS.get() || j.tight_limit <= NOISE_NS.get() {
        return None;
    }
    let late = gaps.iter().filter_map(|gap| gap.lateness);
    let late: Vec<i64> = late.map(i64::from).collect();
    if late.len() < ENOUGH.get() {
        return None;
    }
    let held: Vec<&Gap> = gaps
        .iter()
        .filter(|gap| j.is_held(gap) && gap.lateness.is_some())
        .collect();
    let sent_late = held
        .iter()
        .copied()
        .filter(|gap| j.sent_after(gap, NOISE_NS.get()));
    let sent_late: Vec<&Gap> = sent_late.collect();
    let passed_late = late.iter().filter(|late| **late > NOISE_NS.get()).count();
    let by_path = PATH_LATE.get() * (passed_late * held.len()) as f64 / late.len() as f64;
    let pauses =
        sent_late.len() >= ENOUGH.get() && sent_late.len() as f64 > by_path && keep_their_length(&sent_late);
    let wavers = if pauses { 0 } else { now_and_then(late) };
    Some(NOISE_NS.get() + (wavers as f64 * PATH_LATE.get()) as i64)
}

/// The same where a program's pauses are seen among what the path would explain: no later than on any path. What follows
/// at once does not keep its length there; it does where a line hands over its frames together, whatever sent them.
pub(super) fn beside_pauses(gaps: &[Gap], j: &Judged) -> i64 {
    if let Some(batches) = j.batches {
        return batches.limit(j.tight_limit);
    }
    // what came this way was later now and then, and a quarter of all was later than it wavers
    let now_and_then = (j.tight_limit as f64 / PATH_LATE.get()) as i64;
    let usual = PROMPT_NS.get().max(j.sender_jitter).max(now_and_then);
    if j.sender_rtt < AT_HOST_NS.get() || j.tight_limit <= usual {
        return j.tight_limit;
    }
    let late = |gap: &Gap| gap.release - j.sender_rtt;
    let held = gaps
        .iter()
        .filter(|gap| j.is_held(gap) && late(gap) <= j.tight_limit);
    let (late, prompt): (Vec<&Gap>, Vec<&Gap>) = held.partition(|gap| late(gap) > usual);
    let enough = late.len().min(prompt.len()) >= ENOUGH.get();
    if enough && keep_their_length(&late) && !keep_their_length(&prompt) {
        usual
    } else {
        j.tight_limit
    }
}

/// What was freed later than the path explains at best, but not by more than kernels' answers took around that time beyond what
/// they usually take: a relay that is always slower is no slow path.
pub(super) fn slower(gaps: &[Gap], path: Option<&Rtt>, j: &Judged) -> Vec<(u64, i64)> {
    let Some(path) = path.filter(|_| j.sender_rtt >= AT_HOST_NS.get()) else {
        return Vec::new();
    };
    let Some(usual) = path.usual() else {
        return Vec::new();
    };
    let late = gaps
        .iter()
        .filter(|gap| gap.release - j.sender_rtt > SOON_NS.get());
    let more = late.map(|gap| {
        let until = gap.acked_at + gap.release;
        (gap.frame, path.more(gap.acked_at, until, usual))
    });
    let mut slower: Vec<(u64, i64)> = more.filter(|(_, more)| *more > 0).collect();
    slower.sort_unstable();
    slower
}

/// Whether the sender's clock tells what the path took: it counts every millisecond, and the path took no more than all by which
/// the segments passed late, but for a tick.
pub(super) fn clock_tells(gaps: &[Gap], j: &Judged) -> bool {
    let told = gaps.iter().filter(|gap| j.is_held(gap));
    let told = told.filter_map(|gap| {
        gap.lateness
            .map(|way| (gap.release - j.sender_rtt, i64::from(way)))
    });
    let (mut all, mut beyond) = (0, 0);
    for (late, way) in told {
        all += 1;
        beyond += usize::from(way > late.max(0) + 2 * TICK_NS);
    }
    gaps.iter().any(|gap| gap.fine) && all >= ENOUGH.get() && CONTROL_STRAYS.get() * beyond <= all
}

impl Judged {
    /// What the path took of a release beyond its best, for sure: its sender's clock tells that to a tick.
    pub(super) fn took(&self, gap: &Gap) -> i64 {
        let way = gap.lateness.filter(|_| self.clock_tells);
        way.map_or(0, |way| (i64::from(way) - TICK_NS).max(0))
            .max(self.slower_by(gap))
    }

    /// What other answers of that time took beyond the path's best at least.
    fn slower_by(&self, gap: &Gap) -> i64 {
        let place = self.slower.binary_search_by_key(&gap.frame, |(frame, _)| *frame);
        let more = place.ok().and_then(|place| self.slower.get(place));
        more.map_or(0, |(_, more)| *more)
    }

    /// How late its sender sent this, without all that the path took by its clock, where that tells. It may be a tick wrong: the
    /// middle one of many is not.
    pub(super) fn sent(&self, gap: &Gap) -> i64 {
        let tick = if self.took(gap) > 0 { TICK_NS } else { 0 };
        self.late(gap) - tick
    }

    /// Whether this left as what a kernel sends: no later than the path may have made it.
    pub(in crate::judge) fn is_prompt(&self, gap: &Gap) -> bool {
        self.late(gap) <= self.tight_limit && !self.paused(gap) || self.is_together(gap)
    }

    /// Whether this left as promptly as its sender's kernel sends, and as a slow one.
    pub(super) fn is_by_kernel(&self, gap: &Gap) -> [bool; 2] {
        let late = self.late(gap);
        self.kernel_limits
            .map(|limit| late <= limit.min(self.tight_limit) || self.is_together(gap))
    }

    fn is_together(&self, gap: &Gap) -> bool {
        self.together.binary_search(&gap.frame).is_ok()
    }

    /// Whether its program wrote this later than the path may have made it, by its own clock.
    fn paused(&self, gap: &Gap) -> bool {
        self.pause_limit.is_some_and(|limit| self.sent_after(gap, limit))
    }

    /// Whether its program wrote this after the ACK: neither its sender's clock nor other answers of that time, nor how much the
    /// path wavers, say that it was the path that was late. Without that clock nobody knows, but beside it.
    pub(super) fn wrote_after(&self, gap: &Gap) -> bool {
        let known = gap.lateness.is_some() || self.sender_rtt < AT_HOST_NS.get();
        let way = i64::from(gap.lateness.unwrap_or_default()).max(self.slower_by(gap));
        known && gap.release - self.sender_rtt - way > self.tight_limit + NOISE_NS.get()
    }

    /// Whether its sender's clock says that this was sent by so much later than its ACK let it.
    fn sent_after(&self, gap: &Gap, limit: i64) -> bool {
        let late = gap.release - self.sender_rtt;
        gap.lateness
            .is_some_and(|way| late - i64::from(way).max(self.slower_by(gap)) > limit)
    }

    /// Whether this came later than a kernel sends, after as long as its program's pauses take beyond held ACKs.
    pub(in crate::judge) fn may_be_pause(&self, gap: &Gap) -> bool {
        self.sender_rtt >= AT_HOST_NS.get()
            && self.late(gap) > SOON_NS.get() + self.sender_wavering
            && self.controls.pauses_for(gap.wait + gap.release)
    }
}

/// Whether segments left after one time, wherever the ACKs before them fell.
fn keep_their_length(gaps: &[&Gap]) -> bool {
    let spread = |of: fn(&Gap) -> i64| deviation(gaps.iter().map(|gap| of(gap)).collect());
    STEADIER.get() * spread(|gap| gap.wait + gap.release) <= spread(|gap| gap.wait)
}

#[cfg(test)]
mod tests;
