//! How late a freed segment may pass a capture away from its sender: as late as the path delays packets now and then.
//!
//! Rival: a program that wakes up by a timer of its own after the ACK, within the same bound. But the program's time
//! keeps its length wherever the ACK falls, and the path's delay does not.

use super::spread::{at_share, deviation, sorted};
use super::{SenderMeasures, SenderPath};
use crate::evidence::rtt::{Rtt, p95};
use crate::limits::{
    AT_HOST_NS, CLEAR_RATIO, HELD_NS, MIN_SAMPLES, NOISE_NS, OUTLIER_ONE_IN, PROMPT_NS, SOON_NS, TICK_NS,
};
use crate::observe::Candidate;

/// Returns the upper bound on a prompt release: twice the path's 95th percentile, for the ACK and the segment, and at
/// least a busy host's delay.
pub(super) fn limit(path: Option<&Rtt>) -> i64 {
    let p95_ns = path.map_or(0, Rtt::p95_above_best);
    PROMPT_NS
        .get()
        .max((p95_ns as f64 * CLEAR_RATIO.get() as f64) as i64)
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
pub(super) fn limit_by_clock(candidates: &[Candidate], path: &SenderPath) -> Option<i64> {
    if path.sender_rtt_ns < AT_HOST_NS.get() || path.prompt_limit_ns <= NOISE_NS.get() {
        return None;
    }
    let delays: Vec<i64> = candidates
        .iter()
        .filter_map(|candidate| candidate.lateness_ns)
        .map(i64::from)
        .collect();
    let delayed = delays.iter().filter(|delay| **delay > NOISE_NS.get()).count();
    let held: Vec<&Candidate> = candidates
        .iter()
        .filter(|candidate| path.is_held(candidate) && candidate.lateness_ns.is_some())
        .collect();
    let sent_late: Vec<&Candidate> = held
        .iter()
        .copied()
        .filter(|candidate| path.was_sent_after(candidate, NOISE_NS.get()))
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
        .filter(|candidate| candidate.is_pure_ack() && !path.is_held(candidate));
    let unheld = sorted(unheld.map(Candidate::total_ns));
    let pauses_like_holds = at_share(&unheld, 0.5) >= Some(HELD_NS.least() / 2);
    if !pauses_like_holds || unheld.len().min(delays.len()) < MIN_SAMPLES.get() {
        return None;
    }
    Some(NOISE_NS.get() + (p95(delays) as f64 * CLEAR_RATIO.get() as f64) as i64)
}

/// Whether the sender's timestamps show the path's share of a release: they count every millisecond, and nearly no
/// share exceeds the whole release by more than two ticks.
pub(super) fn clock_shows_path(candidates: &[Candidate], path: &SenderPath) -> bool {
    let dated = candidates.iter().filter(|candidate| path.is_held(candidate));
    let dated = dated.filter_map(|candidate| {
        candidate
            .lateness_ns
            .map(|delay| (candidate.release_ns() - path.sender_rtt_ns, i64::from(delay)))
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

/// What a release is compared with to be prompt: the path, and the frames that were freed in one batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Promptness<'a> {
    pub(super) path: &'a SenderPath,
    pub(super) batched_frames: &'a [u64],
}

impl Promptness<'_> {
    /// Whether this left as promptly as a kernel sends, given the path's variation.
    pub(super) fn is_prompt(self, candidate: &Candidate) -> bool {
        self.path.late_ns(candidate) <= self.path.prompt_limit_ns
            && !self.path.wrote_after_ack_by_clock(candidate)
            || self.is_together(candidate)
    }

    /// Whether this left within `limit_ns`, one of `KernelLimits`.
    pub(super) fn is_by_kernel(self, candidate: &Candidate, limit_ns: i64) -> bool {
        self.path.late_ns(candidate) <= limit_ns.min(self.path.prompt_limit_ns) || self.is_together(candidate)
    }

    fn is_together(self, candidate: &Candidate) -> bool {
        self.batched_frames.binary_search(&candidate.freed.frame).is_ok()
    }
}

impl SenderMeasures {
    /// Whether this left as promptly as a kernel sends, given the path's variation.
    pub(in crate::judge) fn is_prompt(&self, candidate: &Candidate) -> bool {
        self.promptness().is_prompt(candidate)
    }

    pub(super) fn promptness(&self) -> Promptness<'_> {
        Promptness {
            path: &self.path,
            batched_frames: &self.batched_frames,
        }
    }

    /// Whether this left later than a kernel sends, and the whole wait is as long as pauses of the program that
    /// outlasted held ACKs.
    pub(in crate::judge) fn may_be_pause(&self, candidate: &Candidate) -> bool {
        !self.path.is_at_sender()
            && self.path.late_ns(candidate) > SOON_NS.get() + self.path.jitter_within_kind_ns
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
