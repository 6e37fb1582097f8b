//! Times between a sender, the capture and the receiver, and what they show about one segment that an ACK freed.
//!
//! A hold is the time for which the receiver held an ACK. A release is the time from the passing of an ACK to that of
//! the segment that it freed, less the round trip from the capture to the sender.

use super::{kernel, prompt};
use crate::base::Side;
use crate::evidence::SenderEvidence;
use crate::evidence::rtt::{Pairs, Rtt};
use crate::limits::{
    AT_HOST_NS, CORK_ROUND_NS, HELD_NS, KERNEL_NS, LARGE_RATIO, MAJORITY_ONE_IN, MIN_SAMPLES, NOISE_NS,
    PROMPT_NS, SOON_NS, TICK_NS,
};
use crate::observe::Candidate;

/// Best round trips from the capture to a sender and to its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BestRtts {
    pub(super) sender_ns: i64,
    pub(super) receiver_ns: i64,
}

/// Upper bounds on a release beside the sender, beyond the round trip to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelLimits {
    /// Most segments that the sender's kernel sends leave within this.
    pub prompt_ns: i64,
    /// Those of a slow kernel, or of a quick relay, leave within this.
    pub slow_ns: i64,
}

/// The path between a sender, the capture and its receiver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SenderPath {
    /// Best round trip to the sender.
    pub sender_rtt_ns: i64,
    /// Best round trip to the receiver.
    pub receiver_rtt_ns: i64,
    /// The sender's kernel has answered by itself, so `sender_rtt_ns` contains no program's time.
    pub is_rtt_best: bool,
    /// Variation of the round trip to the sender, a program's time included.
    pub sender_jitter_ns: i64,
    /// Variation of the round trip to the sender, without the time that a program always takes.
    pub jitter_within_kind_ns: i64,
    /// Longest recent time to an ACK of the receiver, at most a delayed ACK beyond the path.
    pub longest_ack_ns: i64,
    /// Upper bound on the release of a segment that a kernel sent.
    pub prompt_limit_ns: i64,
    pub kernel_limits: KernelLimits,
    /// The sender's timestamps show the path's share of a release.
    pub clock_shows_path: bool,
    /// Release beyond which the program wrote the segment after the ACK; None if timestamps do not show the path's
    /// share.
    pub pause_limit_ns: Option<i64>,
}

impl SenderPath {
    pub(super) fn new(evidence: &SenderEvidence, pairs: &Pairs) -> SenderPath {
        let sender = evidence.key.sender;
        let best = BestRtts::new(evidence, pairs);
        let [to_sender, to_receiver] = [sender, sender.other()].map(|side| pairs.rtt(evidence.pair, side));
        let longest_ack = to_receiver.map_or(0, |rtt| rtt.longest());
        let mut path = SenderPath {
            sender_rtt_ns: best.sender_ns,
            receiver_rtt_ns: best.receiver_ns,
            is_rtt_best: to_sender.is_none_or(|rtt| rtt.has_recent_kernel_answer()),
            jitter_within_kind_ns: to_sender.map_or(0, |rtt| rtt.jitter_within_kind()),
            longest_ack_ns: longest_ack.min(CORK_ROUND_NS.get()).max(best.receiver_ns),
            ..SenderPath::default()
        };
        if path.is_at_sender() {
            // there is no path to vary, and a program's time to answer shows nothing of the kernel
            let jitter = to_sender.map_or(0, |rtt| rtt.kernel_jitter_above_best());
            path.sender_jitter_ns = jitter.min(SOON_NS.get());
            path.kernel_limits = kernel::limits([to_sender, to_receiver], path.sender_jitter_ns, best);
            path.prompt_limit_ns = KERNEL_NS.get().max(path.sender_jitter_ns);
        } else {
            path.sender_jitter_ns = to_sender.map_or(0, |rtt| rtt.jitter_above_best());
            path.prompt_limit_ns = prompt::limit(to_sender);
        }
        path.clock_shows_path = prompt::clock_shows_path(&evidence.candidates, &path);
        path.pause_limit_ns = prompt::limit_by_clock(&evidence.candidates, &path);
        path
    }

    /// Whether the capture was taken at the sender's host.
    pub(in crate::judge) fn is_at_sender(&self) -> bool {
        self.sender_rtt_ns < AT_HOST_NS.get()
    }

    /// Whether the round trips are still those of this judgement.
    pub(super) fn has_same_rtts(&self, evidence: &SenderEvidence, pairs: &Pairs) -> bool {
        let best = BestRtts::new(evidence, pairs);
        (self.sender_rtt_ns, self.receiver_rtt_ns) == (best.sender_ns, best.receiver_ns)
    }

    /// Whether the receiver held this ACK, which carried nothing else.
    pub(in crate::judge) fn is_held(&self, candidate: &Candidate) -> bool {
        candidate.is_pure_ack() && !candidate.is_ack_unseen && HELD_NS.contains(self.hold_ns(candidate))
    }

    /// Returns for how long the receiver held this ACK, without the path's share.
    pub(in crate::judge) fn hold_ns(&self, candidate: &Candidate) -> i64 {
        candidate.covered_ns() - self.receiver_rtt_ns - candidate.ack_late_ns
    }

    /// Whether a segment left before the ACK can have reached its sender: by the timestamps, else by the best round
    /// trip less its variation.
    pub(in crate::judge) fn left_before_ack(&self, candidate: &Candidate) -> bool {
        match candidate.arrived {
            Some(arrived) => !arrived,
            None => {
                let max_jitter_ns = AT_HOST_NS.get().max(self.sender_rtt_ns / LARGE_RATIO.get());
                let jitter = self.sender_jitter_ns.clamp(AT_HOST_NS.get(), max_jitter_ns);
                candidate.release_ns() < self.sender_rtt_ns - jitter
            }
        }
    }

    /// Returns how much later than the path's best a freed segment passed, without the share that the path had for
    /// sure.
    #[inline]
    pub(in crate::judge) fn late_ns(&self, candidate: &Candidate) -> i64 {
        let late_ns = candidate.release_ns() - self.sender_rtt_ns;
        late_ns - self.path_share(candidate).min(late_ns.max(0))
    }

    /// Returns the least share that the path had in a release, beyond its best: the timestamps show it to a tick.
    fn path_share(&self, candidate: &Candidate) -> i64 {
        let delay = candidate.lateness_ns.filter(|_| self.clock_shows_path);
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

    /// Whether the program wrote this after the ACK, by the timestamps.
    pub(super) fn wrote_after_ack_by_clock(&self, candidate: &Candidate) -> bool {
        self.pause_limit_ns
            .is_some_and(|limit| self.was_sent_after(candidate, limit))
    }

    /// Whether the program wrote this after the ACK: neither timestamps nor the path's variation explain the delay.
    /// False without timestamps, except beside the sender.
    pub(super) fn wrote_after_ack(&self, candidate: &Candidate) -> bool {
        let is_known = candidate.lateness_ns.is_some() || self.is_at_sender();
        let delay = i64::from(candidate.lateness_ns.unwrap_or_default());
        is_known
            && candidate.release_ns() - self.sender_rtt_ns - delay > self.prompt_limit_ns + NOISE_NS.get()
    }

    /// Whether a segment left `late_ns` after its ACK, longer than a busy host explains: the program wrote it then.
    pub(super) fn outlasts(&self, late_ns: i64) -> bool {
        late_ns > PROMPT_NS.get().max(self.prompt_limit_ns)
    }

    /// Whether the timestamps show that this was sent more than `limit` after the ACK had arrived.
    pub(super) fn was_sent_after(&self, candidate: &Candidate, limit: i64) -> bool {
        let late_ns = candidate.release_ns() - self.sender_rtt_ns;
        candidate
            .lateness_ns
            .is_some_and(|delay| late_ns - i64::from(delay) > limit)
    }
}

impl BestRtts {
    /// Where only programs answered at the sender's host, a segment that echoes the timestamp of the ACK before it
    /// (RFC 7323 4.3) bounds its round trip: the ACK had arrived by then.
    fn new(evidence: &SenderEvidence, pairs: &Pairs) -> BestRtts {
        let rtt = |side: Side| pairs.min(evidence.pair, side).unwrap_or(0);
        let least_ns = if has_millisecond_times(evidence) {
            AT_HOST_NS.get()
        } else {
            0
        };
        let sender = evidence.key.sender;
        let mut best = BestRtts {
            sender_ns: rtt(sender).max(least_ns),
            receiver_ns: rtt(sender.other()),
        };
        if !pairs
            .rtt(evidence.pair, sender)
            .is_none_or(Rtt::has_kernel_answer)
        {
            let echoed = evidence
                .candidates
                .iter()
                .filter(|candidate| candidate.arrived == Some(true) && !candidate.is_ack_unseen);
            let releases = echoed.map(|candidate| candidate.release_ns().max(0));
            best.sender_ns = releases.min().unwrap_or(best.sender_ns).min(best.sender_ns);
        }
        best
    }
}

/// Whether the capture's times are whole milliseconds, and more than one release in three took one or more. A round
/// trip of 0 then does not show that the capture was taken at this host.
fn has_millisecond_times(evidence: &SenderEvidence) -> bool {
    let is_whole = |candidate: &Candidate| {
        [candidate.ack.time_ns, candidate.wait_ns(), candidate.release_ns()].map(|ns| ns % TICK_NS) == [0; 3]
    };
    let away = evidence
        .candidates
        .iter()
        .filter(|candidate| candidate.release_ns() >= TICK_NS)
        .count();
    evidence.candidates.len() >= MIN_SAMPLES.get()
        && MAJORITY_ONE_IN.get() * away > evidence.candidates.len()
        && evidence.candidates.iter().all(is_whole)
}
