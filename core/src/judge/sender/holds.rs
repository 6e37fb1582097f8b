//! Whether a delayed-ACK timer explains the lateness of a receiver's ACKs.
//!
//! Rivals: a path of varying delay, a link that aggregates frames, a receiver too busy to answer.

use ahash::AHashMap;

use super::SenderPath;
use crate::evidence::SenderEvidence;
use crate::limits::{
    DELACK_LEAST_NS, HELD_NS, MAJORITY_ONE_IN, MIN_SAMPLES, OUTLIER_ONE_IN, QUICK_ACKS, UNHELD_NS,
};
use crate::observe::Candidate;

/// Whether late ACKs scatter on both sides of the shortest delayed-ACK timer, more than one in `MAJORITY_ONE_IN` on
/// each. A link does that (Wi-Fi, cellular); a timer is never shorter, whatever the link adds to it.
pub(super) fn are_scattered(evidence: &SenderEvidence, path: &SenderPath) -> bool {
    let holds_ns = pure_acks(evidence).map(|candidate| path.hold_ns(candidate));
    let holds_ns = holds_ns.filter(|hold_ns| (UNHELD_NS.get()..=HELD_NS.most()).contains(hold_ns));
    let (longer, shorter): (Vec<i64>, Vec<i64>) =
        holds_ns.partition(|hold_ns| *hold_ns >= DELACK_LEAST_NS.get());
    let fewer = longer.len().min(shorter.len());
    fewer >= MIN_SAMPLES.get() && MAJORITY_ONE_IN.get() * fewer > longer.len() + shorter.len()
}

/// Counts lone small segments that the peer acknowledged at once although it could have delayed the ACK (RFC 1122
/// 4.2.3.2). Returns 0 where more than one ACK in `OUTLIER_ONE_IN` was later than the path explains. The segments
/// before number `QUICK_ACKS` of a stream do not count, as Linux acknowledges those at once.
pub(super) fn count_prompt_acks(evidence: &SenderEvidence, receiver_rtt: i64) -> u64 {
    let mut counts: AHashMap<u32, u32> = AHashMap::new();
    let (mut prompt, mut later) = (0, 0);
    for candidate in pure_acks(evidence).filter(|candidate| candidate.covered_ns() == candidate.wait_ns()) {
        let count = counts.entry(candidate.stream).or_default();
        *count += 1;
        if *count < QUICK_ACKS.get() {
            continue;
        }
        let is_late = candidate.covered_ns() - receiver_rtt >= UNHELD_NS.get();
        *(if is_late { &mut later } else { &mut prompt }) += 1;
    }
    if later * OUTLIER_ONE_IN.get() as u64 > prompt {
        0
    } else {
        prompt
    }
}

/// Returns the waits for a pure ACK that is in the capture and came before the peer's FIN.
fn pure_acks(evidence: &SenderEvidence) -> impl Iterator<Item = &Candidate> {
    let candidates = evidence.candidates.iter();
    candidates.filter(|candidate| {
        candidate.is_pure_ack() && !candidate.is_ack_unseen && !candidate.is_after_peer_end
    })
}
