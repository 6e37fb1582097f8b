//! How late a freed segment may pass a capture away from its sender: as late as the path delays packets now and then.
//!
//! Rival: a program that wakes up by a timer of its own after the ACK, within the same bound. But the program's time
//! keeps its length wherever the ACK falls, and the path's delay does not.

use super::SenderVerdict;
use super::spread::{at_share, deviation};
use crate::evidence::AckWait;
use crate::evidence::rtt::{Rtt, p95};
use crate::limits::{
    AT_HOST_NS, CLEAR_RATIO, HELD_NS, MIN_SAMPLES, NOISE_NS, OUTLIER_ONE_IN, PROMPT_NS, SOON_NS, TICK_NS,
};

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
pub(super) fn limit_by_clock(ack_waits: &[AckWait], judged: &SenderVerdict) -> Option<i64> {
    if judged.sender_rtt < AT_HOST_NS.get() || judged.prompt_limit_ns <= NOISE_NS.get() {
        return None;
    }
    let delays: Vec<i64> = ack_waits
        .iter()
        .filter_map(|ack_wait| ack_wait.lateness)
        .map(i64::from)
        .collect();
    let delayed = delays.iter().filter(|delay| **delay > NOISE_NS.get()).count();
    let held: Vec<&AckWait> = ack_waits
        .iter()
        .filter(|ack_wait| judged.is_held(ack_wait) && ack_wait.lateness.is_some())
        .collect();
    let sent_late: Vec<&AckWait> = held
        .iter()
        .copied()
        .filter(|ack_wait| judged.sent_after(ack_wait, NOISE_NS.get()))
        .collect();
    let by_path = CLEAR_RATIO.get() as f64 * (delayed * held.len()) as f64 / (delays.len() as f64).max(1.0);
    let has_pauses = sent_late.len() >= MIN_SAMPLES.get()
        && sent_late.len() as f64 > by_path
        && keep_their_length(&sent_late);
    if has_pauses {
        return Some(NOISE_NS.get());
    }
    let unheld = ack_waits
        .iter()
        .filter(|ack_wait| ack_wait.is_pure_ack && !judged.is_held(ack_wait));
    let mut unheld: Vec<i64> = unheld.map(|ack_wait| ack_wait.wait + ack_wait.release).collect();
    unheld.sort_unstable();
    let pauses_like_holds = at_share(&unheld, 0.5) >= Some(HELD_NS.least() / 2);
    if !pauses_like_holds || unheld.len().min(delays.len()) < MIN_SAMPLES.get() {
        return None;
    }
    Some(NOISE_NS.get() + (p95(delays) as f64 * CLEAR_RATIO.get() as f64) as i64)
}

/// Whether the sender's timestamps show the path's share of a release: they count every millisecond, and nearly no
/// share exceeds the whole release by more than two ticks.
pub(super) fn clock_tells(ack_waits: &[AckWait], judged: &SenderVerdict) -> bool {
    let dated = ack_waits.iter().filter(|ack_wait| judged.is_held(ack_wait));
    let dated = dated.filter_map(|ack_wait| {
        ack_wait
            .lateness
            .map(|delay| (ack_wait.release - judged.sender_rtt, i64::from(delay)))
    });
    let (mut all, mut beyond) = (0, 0);
    for (late, delay) in dated {
        all += 1;
        beyond += usize::from(delay > late.max(0) + 2 * TICK_NS);
    }
    ack_waits.iter().any(|ack_wait| ack_wait.fine)
        && all >= MIN_SAMPLES.get()
        && OUTLIER_ONE_IN.get() * beyond <= all
}

impl SenderVerdict {
    /// Returns how much later than the path's best a freed segment passed, without the share that the path had for
    /// sure.
    #[inline]
    pub(in crate::judge) fn late_ns(&self, ack_wait: &AckWait) -> i64 {
        let late_ns = ack_wait.release - self.sender_rtt;
        late_ns - self.path_share(ack_wait).min(late_ns.max(0))
    }

    /// Returns the least share that the path had in a release, beyond its best: the timestamps show it to a tick.
    fn path_share(&self, ack_wait: &AckWait) -> i64 {
        let delay = ack_wait.lateness.filter(|_| self.clock_tells);
        delay.map_or(0, |delay| (i64::from(delay) - TICK_NS).max(0))
    }

    /// Returns how late the sender sent this, without the path's share. One value may be wrong by a tick; the median of
    /// many is not.
    pub(super) fn sent(&self, ack_wait: &AckWait) -> i64 {
        let tick = if self.path_share(ack_wait) > 0 { TICK_NS } else { 0 };
        self.late_ns(ack_wait) - tick
    }

    /// Whether this left as promptly as a kernel sends, given the path's variation.
    pub(in crate::judge) fn is_prompt(&self, ack_wait: &AckWait) -> bool {
        self.late_ns(ack_wait) <= self.prompt_limit_ns && !self.paused(ack_wait) || self.is_together(ack_wait)
    }

    /// Whether this left within each of `kernel_limits`.
    pub(super) fn is_by_kernel(&self, ack_wait: &AckWait) -> [bool; 2] {
        let late_ns = self.late_ns(ack_wait);
        self.kernel_limits
            .map(|limit| late_ns <= limit.min(self.prompt_limit_ns) || self.is_together(ack_wait))
    }

    fn is_together(&self, ack_wait: &AckWait) -> bool {
        self.together.binary_search(&ack_wait.frame).is_ok()
    }

    /// Whether the program wrote this after the ACK, by the timestamps.
    fn paused(&self, ack_wait: &AckWait) -> bool {
        self.pause_limit
            .is_some_and(|limit| self.sent_after(ack_wait, limit))
    }

    /// Whether the program wrote this after the ACK: neither timestamps nor the path's variation explain the delay.
    /// False without timestamps, except beside the sender.
    pub(super) fn wrote_after(&self, ack_wait: &AckWait) -> bool {
        let is_known = ack_wait.lateness.is_some() || self.sender_rtt < AT_HOST_NS.get();
        let delay = i64::from(ack_wait.lateness.unwrap_or_default());
        is_known && ack_wait.release - self.sender_rtt - delay > self.prompt_limit_ns + NOISE_NS.get()
    }

    /// Whether the timestamps show that this was sent more than `limit` after the ACK had arrived.
    fn sent_after(&self, ack_wait: &AckWait, limit: i64) -> bool {
        let late_ns = ack_wait.release - self.sender_rtt;
        ack_wait
            .lateness
            .is_some_and(|delay| late_ns - i64::from(delay) > limit)
    }

    /// Whether this left later than a kernel sends, and the whole wait is as long as pauses of the program that
    /// outlasted held ACKs.
    pub(in crate::judge) fn may_be_pause(&self, ack_wait: &AckWait) -> bool {
        self.sender_rtt >= AT_HOST_NS.get()
            && self.late_ns(ack_wait) > SOON_NS.get() + self.sender_jitter_within_kind
            && self.controls.pauses_for(ack_wait.wait + ack_wait.release)
    }
}

/// Whether whole waits vary less than half as much as the ACKs in them: pauses of one length.
fn keep_their_length(ack_waits: &[&AckWait]) -> bool {
    let spread = |time: fn(&AckWait) -> i64| deviation(ack_waits.iter().map(|wait| time(wait)).collect());
    CLEAR_RATIO.get() * spread(|ack_wait| ack_wait.wait + ack_wait.release)
        <= spread(|ack_wait| ack_wait.wait)
}

#[cfg(test)]
mod tests;
