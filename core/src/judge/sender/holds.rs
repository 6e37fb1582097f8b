//! Whether the receiver's ACKs are as late as a timer makes them.
//!
//! Rivals: a path that wavers, a line that gathers frames, a receiver too busy to answer.

use ahash::AHashMap;

use super::Judged;
use crate::evidence::{AckWait, SenderEvidence};
use crate::limits::{
    DELACK_LEAST_NS, HELD_NS, MAJORITY_ONE_IN, MIN_SAMPLES, OUTLIER_ONE_IN, QUICK_ACKS, UNHELD_NS,
};

/// Whether ACKs were late on both sides of the shortest timer, each more than one in so many of the late ones: a line does that
/// (Wi-Fi, cellular), and a timer has a shortest time, whatever the line adds to it.
pub(super) fn are_scattered(evidence: &SenderEvidence, j: &Judged) -> bool {
    let late = timed(evidence).map(|gap| j.hold(gap));
    let late = late.filter(|late| (UNHELD_NS.get()..=HELD_NS.most()).contains(late));
    let (longer, shorter): (Vec<i64>, Vec<i64>) = late.partition(|late| *late >= DELACK_LEAST_NS.get());
    let few = longer.len().min(shorter.len());
    few >= MIN_SAMPLES.get() && MAJORITY_ONE_IN.get() * few > longer.len() + shorter.len()
}

/// How often the peer acknowledged a lone small segment at once, which it might have held back (RFC 1122 4.2.3.2); 0 where as
/// many ACKs came later than a path explains. Linux acknowledges the first segments of a connection at once
/// (TCP_MAX_QUICKACKS), and two full ones always.
pub(super) fn prompt(evidence: &SenderEvidence, receiver_rtt: i64) -> u64 {
    let mut seen: AHashMap<u32, u32> = AHashMap::new();
    let (mut prompt, mut later) = (0, 0);
    for gap in timed(evidence).filter(|gap| gap.covered == gap.wait) {
        let count = seen.entry(gap.stream).or_default();
        *count += 1;
        if *count < QUICK_ACKS.get() {
            continue;
        }
        let late = gap.covered - receiver_rtt >= UNHELD_NS.get();
        *(if late { &mut later } else { &mut prompt }) += 1;
    }
    if later * OUTLIER_ONE_IN.get() as u64 > prompt {
        0
    } else {
        prompt
    }
}

/// Those whose ACK came by itself, before the peer had ended.
fn timed(evidence: &SenderEvidence) -> impl Iterator<Item = &AckWait> {
    let gaps = evidence.ack_waits.iter();
    gaps.filter(|gap| gap.timer && !gap.unseen && !gap.after_end)
}
