//! How late what an ACK freed may pass, away from its sender: as late as the path is now and then.
//!
//! Rival: a program that wakes up after a time of its own, behind the ACK. What answers take at such a host, a busy one above
//! all, is no shorter than that. But the program's time keeps its length wherever the ACK falls, and the path's does not.

use super::Judged;
use super::spread::{at_share, deviation};
use crate::evidence::AckWait;
use crate::evidence::rtt::{Rtt, now_and_then};
use crate::limits::{
    AT_HOST_NS, CLEAR_RATIO, HELD_NS, MIN_SAMPLES, NOISE_NS, OUTLIER_ONE_IN, PROMPT_NS, SOON_NS, TICK_NS,
};

/// Twice as late as now and then, for the ACK and the segment, and no less than a busy host makes it.
pub(super) fn limit(path: Option<&Rtt>) -> i64 {
    let late = path.map_or(0, Rtt::latest);
    PROMPT_NS
        .get()
        .max((late as f64 * CLEAR_RATIO.get() as f64) as i64)
}

/// Where its program's pauses are seen, by the sender's clock, which separates the path to the capture from the program's time
/// before: no later than the clock's ticks explain, as more was sent later than such a way makes late and keeps its length; or
/// than the path varies by that clock, as the program takes about as long as ACKs are held where nothing holds it. None
/// elsewhere, beside the sender, and where all that is prompt is sooner.
pub(super) fn by_its_clock(gaps: &[AckWait], j: &Judged) -> Option<i64> {
    if j.sender_rtt < AT_HOST_NS.get() || j.prompt_limit_ns <= NOISE_NS.get() {
        return None;
    }
    let late = gaps.iter().filter_map(|gap| gap.lateness);
    let (mut all, mut passed_late) = (0, 0);
    for late in late {
        all += 1;
        passed_late += usize::from(i64::from(late) > NOISE_NS.get());
    }
    let held = gaps.iter().filter(|gap| j.is_held(gap) && gap.lateness.is_some());
    let held: Vec<&AckWait> = held.collect();
    let sent_late = held
        .iter()
        .copied()
        .filter(|gap| j.sent_after(gap, NOISE_NS.get()));
    let sent_late: Vec<&AckWait> = sent_late.collect();
    let by_path = CLEAR_RATIO.get() as f64 * (passed_late * held.len()) as f64 / f64::from(all).max(1.0);
    let pauses = sent_late.len() >= MIN_SAMPLES.get()
        && sent_late.len() as f64 > by_path
        && keep_their_length(&sent_late);
    if pauses {
        return Some(NOISE_NS.get());
    }
    let unheld = gaps.iter().filter(|gap| gap.timer && !j.is_held(gap));
    let mut unheld: Vec<i64> = unheld.map(|gap| gap.wait + gap.release).collect();
    unheld.sort_unstable();
    let ways: Vec<i64> = gaps
        .iter()
        .filter_map(|gap| gap.lateness)
        .map(i64::from)
        .collect();
    let works = at_share(&unheld, 0.5) >= Some(HELD_NS.least() / 2);
    if !works || unheld.len().min(ways.len()) < MIN_SAMPLES.get() {
        return None;
    }
    let wavers = now_and_then(ways);
    Some(NOISE_NS.get() + (wavers as f64 * CLEAR_RATIO.get() as f64) as i64)
}

/// Whether the sender's clock shows what the path took: it counts every millisecond, and the path took no more than all by which
/// the segments passed late, but for a tick.
pub(super) fn clock_tells(gaps: &[AckWait], j: &Judged) -> bool {
    let dated = gaps.iter().filter(|gap| j.is_held(gap));
    let dated = dated.filter_map(|gap| {
        gap.lateness
            .map(|way| (gap.release - j.sender_rtt, i64::from(way)))
    });
    let (mut all, mut beyond) = (0, 0);
    for (late, way) in dated {
        all += 1;
        beyond += usize::from(way > late.max(0) + 2 * TICK_NS);
    }
    gaps.iter().any(|gap| gap.fine) && all >= MIN_SAMPLES.get() && OUTLIER_ONE_IN.get() * beyond <= all
}

impl Judged {
    /// How much later than the path needs what an ACK freed passed, without what the path took for sure.
    #[inline]
    pub(in crate::judge) fn late(&self, gap: &AckWait) -> i64 {
        let late = gap.release - self.sender_rtt;
        late - self.took(gap).min(late.max(0))
    }

    /// What the path took of a release beyond its best, for sure: its sender's clock shows that to a tick.
    fn took(&self, gap: &AckWait) -> i64 {
        let way = gap.lateness.filter(|_| self.clock_tells);
        way.map_or(0, |way| (i64::from(way) - TICK_NS).max(0))
    }

    /// How late its sender sent this, without all that the path took by its clock, where it is fine enough. It may be a tick wrong: the
    /// middle one of many is not.
    pub(super) fn sent(&self, gap: &AckWait) -> i64 {
        let tick = if self.took(gap) > 0 { TICK_NS } else { 0 };
        self.late(gap) - tick
    }

    /// Whether this left as what a kernel sends: no later than the path may have made it.
    pub(in crate::judge) fn is_prompt(&self, gap: &AckWait) -> bool {
        self.late(gap) <= self.prompt_limit_ns && !self.paused(gap) || self.is_together(gap)
    }

    /// Whether this left as promptly as its sender's kernel sends, and as a slow one.
    pub(super) fn is_by_kernel(&self, gap: &AckWait) -> [bool; 2] {
        let late = self.late(gap);
        self.kernel_limits
            .map(|limit| late <= limit.min(self.prompt_limit_ns) || self.is_together(gap))
    }

    fn is_together(&self, gap: &AckWait) -> bool {
        self.together.binary_search(&gap.frame).is_ok()
    }

    /// Whether its program wrote this later than the path may have made it, by its own clock.
    fn paused(&self, gap: &AckWait) -> bool {
        self.pause_limit.is_some_and(|limit| self.sent_after(gap, limit))
    }

    /// Whether its program wrote this after the ACK: neither its sender's clock nor how much the path wavers say that it was the
    /// path that was late. Without that clock nobody knows, but beside it.
    pub(super) fn wrote_after(&self, gap: &AckWait) -> bool {
        let known = gap.lateness.is_some() || self.sender_rtt < AT_HOST_NS.get();
        let way = i64::from(gap.lateness.unwrap_or_default());
        known && gap.release - self.sender_rtt - way > self.prompt_limit_ns + NOISE_NS.get()
    }

    /// Whether its sender's clock shows that this was sent by so much later than its ACK let it.
    fn sent_after(&self, gap: &AckWait, limit: i64) -> bool {
        let late = gap.release - self.sender_rtt;
        gap.lateness.is_some_and(|way| late - i64::from(way) > limit)
    }

    /// Whether this came later than a kernel sends, after as long as its program's pauses take beyond held ACKs.
    pub(in crate::judge) fn may_be_pause(&self, gap: &AckWait) -> bool {
        self.sender_rtt >= AT_HOST_NS.get()
            && self.late(gap) > SOON_NS.get() + self.sender_wavering
            && self.controls.pauses_for(gap.wait + gap.release)
    }
}

/// Whether segments left after one time, wherever the ACKs before them fell.
fn keep_their_length(gaps: &[&AckWait]) -> bool {
    let spread = |of: fn(&AckWait) -> i64| deviation(gaps.iter().map(|gap| of(gap)).collect());
    CLEAR_RATIO.get() * spread(|gap| gap.wait + gap.release) <= spread(|gap| gap.wait)
}

#[cfg(test)]
mod tests;
