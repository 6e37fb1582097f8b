//! How late a freed segment may pass a capture away from its sender: as late as the path delays packets now and then.
//!
//! Rival: a program that wakes up by a timer of its own after the ACK, within the same bound. But the program's time
//! keeps its length wherever the ACK falls, and the path's delay does not.

use super::SenderVerdict;
use super::spread::{at_share, deviation, sorted};
use crate::evidence::rtt::{Rtt, p95};
use crate::limits::{
    AT_HOST_NS, CLEAR_RATIO, HELD_NS, MIN_SAMPLES, NOISE_NS, OUTLIER_ONE_IN, PROMPT_NS, SOON_NS, TICK_NS,
};
use crate::observe::Candidate;

/// Returns the upper bound on a prompt release: twice the path's 95th percentile, for the ACK and the segment, and at
/// least a busy host's delay.
pub(super) fn limit(path: Option<&Rtt>) -> i64 {
    let late = path.map_or(0, Rtt::p95_above_best);
    PROMPT_NS
        .get()
        .max((late as f64 * CLEAR_RATIO.get() as f64) as i64)
}

/// Returns the release beyond which the program wrote a segment after the ACK, by the sender's timestamps: those
/// separate the path to the capture from the time before sending. There are two cases:
///
/// 1. Pauses are seen directly: several held segments were sent late, more than the path delays, and the whole wait
///    keeps its length. Then the limit is what a timestamp's ticks explain.
/// 2. Pauses are likely: where nothing is held, the program's pauses are about as long as a hold. Then the limit is the
///    path's variation by the timestamps.
///
/// None elsewhere, beside the sender, and where `prompt_limit_ns` is stricter anyway.
pub(super) fn limit_by_clock(candidates: &[Candidate], judged: &SenderVerdict) -> Option<i64> {
    if judged.sender_rtt < AT_HOST_NS.get() || judged.prompt_limit_ns <= NOISE_NS.get() {
        return None;
    }
    let delays: Vec<i64> = candidates
        .iter()
        .filter_map(|candidate| candidate.lateness)
        .map(i64::from)
        .collect();
    let delayed = delays.iter().filter(|delay| **delay > NOISE_NS.get()).count();
    let held: Vec<&Candidate> = candidates
        .iter()
        .filter(|candidate| judged.is_held(candidate) && candidate.lateness.is_some())
        .collect();
    let sent_late: Vec<&Candidate> = held
        .iter()
        .copied()
        .filter(|candidate| judged.was_sent_after(candidate, NOISE_NS.get()))
        .collect();
    let by_path = CLEAR_RATIO.get() as f64 * (delayed * held.len()) as f64 / (delays.len() as f64).max(1.0);
    let has_pauses = sent_late.len() >= MIN_SAMPLES.get()
        && sent_late.len() as f64 > by_path
        && keep_their_length(&sent_late);
    if has_pauses {
        return Some(NOISE_NS.get());
    }
    let unheld = candidates
        .iter()
        .filter(|candidate| candidate.is_pure_ack() && !judged.is_held(candidate));
    let unheld = sorted(unheld.map(Candidate::total_ns));
    let pauses_like_holds = at_share(&unheld, 0.5) >= Some(HELD_NS.least() / 2);
    if !pauses_like_holds || unheld.len().min(delays.len()) < MIN_SAMPLES.get() {
        return None;
    }
    Some(NOISE_NS.get() + (p95(delays) as f64 * CLEAR_RATIO.get() as f64) as i64)
}

/// Whether the sender's timestamps show the path's share of a release: they count every millisecond, and nearly no
/// share exceeds the whole release by more than two ticks.
pub(super) fn clock_shows_path(candidates: &[Candidate], judged: &SenderVerdict) -> bool {
    let dated = candidates.iter().filter(|candidate| judged.is_held(candidate));
    let dated = dated.filter_map(|candidate| {
        candidate
            .lateness
            .map(|delay| (candidate.release_ns() - judged.sender_rtt, i64::from(delay)))
    });
    let (mut count, mut beyond) = (0, 0);
    for (late, delay) in dated {
        count += 1;
        beyond += usize::from(delay > late.max(0) + 2 * TICK_NS);
    }
    candidates.iter().any(|candidate| candidate.is_clock_fine)
        && count >= MIN_SAMPLES.get()
        && OUTLIER_ONE_IN.get() * beyond <= count
}

impl SenderVerdict {
    /// Returns how much later than the path's best a freed segment passed, without the share that the path had for
    /// sure.
    #[inline]
    pub(in crate::judge) fn late_ns(&self, candidate: &Candidate) -> i64 {
        let late_ns = candidate.release_ns() - self.sender_rtt;
        late_ns - self.path_share(candidate).min(late_ns.max(0))
    }

    /// Returns the least share that the path had in a release, beyond its best: the timestamps show it to a tick.
    fn path_share(&self, candidate: &Candidate) -> i64 {
        let delay = candidate.lateness.filter(|_| self.clock_shows_path);
        delay.map_or(0, |delay| (i64::from(delay) - TICK_NS).max(0))
    }

    /// Returns how late the sender sent this, without the path's share. One value may be wrong by a tick; the median of
    /// many is not.
    pub(super) fn sent_late_ns(&self, candidate: &Candidate) -> i64 {
        let tick = if self.path_share(candidate) > 0 {
            TICK_NS
        } else {
            0
        };
        self.late_ns(candidate) - tick
    }

    /// Whether this left as promptly as a kernel sends, given the path's variation.
    pub(in crate::judge) fn is_prompt(&self, candidate: &Candidate) -> bool {
        self.late_ns(candidate) <= self.prompt_limit_ns && !self.wrote_after_ack_by_clock(candidate)
            || self.is_together(candidate)
    }

    /// Whether this left within each of `kernel_limits`.
    pub(super) fn is_by_kernel(&self, candidate: &Candidate) -> [bool; 2] {
        let late_ns = self.late_ns(candidate);
        self.kernel_limits
            .map(|limit| late_ns <= limit.min(self.prompt_limit_ns) || self.is_together(candidate))
    }

    fn is_together(&self, candidate: &Candidate) -> bool {
        self.batched_frames.binary_search(&candidate.freed.frame).is_ok()
    }

    /// Whether the program wrote this after the ACK, by the timestamps.
    fn wrote_after_ack_by_clock(&self, candidate: &Candidate) -> bool {
        self.pause_limit
            .is_some_and(|limit| self.was_sent_after(candidate, limit))
    }

    /// Whether the program wrote this after the ACK: neither timestamps nor the path's variation explain the delay.
    /// False without timestamps, except beside the sender.
    pub(super) fn wrote_after_ack(&self, candidate: &Candidate) -> bool {
        let is_known = candidate.lateness.is_some() || self.sender_rtt < AT_HOST_NS.get();
        let delay = i64::from(candidate.lateness.unwrap_or_default());
        is_known && candidate.release_ns() - self.sender_rtt - delay > self.prompt_limit_ns + NOISE_NS.get()
    }

    /// Whether the timestamps show that this was sent more than `limit` after the ACK had arrived.
    fn was_sent_after(&self, candidate: &Candidate, limit: i64) -> bool {
        let late_ns = candidate.release_ns() - self.sender_rtt;
        candidate
            .lateness
            .is_some_and(|delay| late_ns - i64::from(delay) > limit)
    }

    /// Whether this left later than a kernel sends, and the whole wait is as long as pauses of the program that
    /// outlasted held ACKs.
    pub(in crate::judge) fn may_be_pause(&self, candidate: &Candidate) -> bool {
        self.sender_rtt >= AT_HOST_NS.get()
            && self.late_ns(candidate) > SOON_NS.get() + self.sender_jitter_within_kind
            && self.controls.pauses_for(candidate.total_ns())
    }
}

/// Whether whole waits vary less than half as much as the ACKs in them: pauses of one length.
fn keep_their_length(candidates: &[&Candidate]) -> bool {
    let spread = |time: fn(&Candidate) -> i64| deviation(candidates.iter().map(|candidate| time(candidate)));
    CLEAR_RATIO.get() * spread(Candidate::total_ns) <= spread(Candidate::wait_ns)
}

#[cfg(test)]
mod tests;
