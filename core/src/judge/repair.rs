//! Repairs of losses: a segment was lost or reordered, and the receiver waited for its retransmission.
//!
//! Claims: the segment that ended the wait is a retransmission, or fills a hole; and which timer or ACK caused it.
//! Predicts: the same bytes twice, or a hole that closes; duplicate or selective ACKs before it, two round trips after
//! a tail, or a retransmission timeout.
//! Rivals: a late first copy (nothing is proven if the receiver cannot report one), reordering, a capture that lacks
//! the first copy.

use super::ExchangeContext;
use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::program::paused;
use super::sender::NagleUse;
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rule};
use crate::base::At;
use crate::observe::{Repair, Repaired};

/// Judges a retransmission, or a segment that fills a hole.
pub(super) fn judge(cutter: &mut Cutter<'_>, repaired: &Repaired, context: &ExchangeContext<'_>) {
    let (slice, side) = (cutter.slice, cutter.slice.sender);
    let (from, to) = (slice.step.from, slice.step.to);
    if context.is_spurious(to.frame) {
        let (cause, rule, grounds) = spurious_cause(repaired.how);
        let spurious = Attribution::new(cause, Owner::Network, rule, grounds, cutter.end_frames());
        return cutter.attribute(slice.end_ns, spurious);
    }
    let (cause, rule, grounds) = repair_cause(repaired);
    let first = repaired.first_copy;
    let evidence = [first.map_or(from.frame, |copy| copy.frame), to.frame, 0];
    let is_by_timer = matches!(repaired.how, Repair::TailProbe | Repair::Timeout);
    let (owner, grounds) = if is_by_timer && first.is_some() && cutter.paths.is_near_host(side.other()) {
        // the first copy had arrived at its host, where the capture was taken
        let grounds = Grounds::probable(Because::NotTaken, Cause::Queueing);
        (Owner::of(side.other()), grounds)
    } else {
        (Owner::Network, grounds)
    };
    let mut attribution = Attribution::new(cause, owner, rule, grounds, evidence);
    if !repaired.receiver_reports && repaired.how != Repair::Syn {
        let silent = Grounds::probable(Because::NobodyTells, Cause::Queueing);
        attribution.grounds.at_most(silent);
    }
    cutter.attribute(slice.end_ns, attribution);
}

/// Returns the cause of a wait for a retransmission whose first copy had arrived, the rule, and the grounds.
fn spurious_cause(how: Repair) -> (Cause, Rule, Grounds) {
    match how {
        Repair::Fast | Repair::Reordered => {
            let grounds = Grounds::proven(Because::ReceiverSaysTwice);
            (Cause::Reordering, Rule::Overtaken, grounds)
        }
        // the segment that seemed lost, or its ACK, was late: on the path, or at a busy host
        _ => {
            let grounds = Grounds::probable(Because::ReceiverSaysTwice, Hypothesis::BusyHost);
            (Cause::Queueing, Rule::NotLost, grounds)
        }
    }
}

/// Returns the cause of a wait for a repair, the rule, and the grounds.
fn repair_cause(repaired: &Repaired) -> (Cause, Rule, Grounds) {
    let by_timer = |cause, rule| match (repaired.first_copy, repaired.filled) {
        (Some(_), _) => (cause, rule, Grounds::proven(Because::TimerRanOut)),
        // missing bytes came long after later ones
        (None, Some(_)) => {
            let grounds = Grounds::probable(Because::FilledLate, Cause::Queueing);
            (cause, Rule::HoleFilled, grounds)
        }
        // only the gap in the sender's IP identifications shows
        (None, None) => {
            let grounds = Grounds::probable(Because::ByIpId, Cause::CaptureGap);
            (cause, Rule::IpIdGap, grounds)
        }
    };
    match repaired.how {
        Repair::TailProbe => by_timer(Cause::Tlp, Rule::TailProbe),
        Repair::Timeout => by_timer(Cause::Rto, Rule::Timeout),
        Repair::Fast if repaired.first_copy.is_none() && repaired.filled.is_none() => {
            let grounds = Grounds::probable(Because::NoFirstCopy, Cause::CaptureGap);
            (Cause::FastRetransmit, Rule::CopyNotSeen, grounds)
        }
        Repair::Fast => {
            let grounds = Grounds::proven(Because::CalledFor);
            (Cause::FastRetransmit, Rule::SackOrDuplicateAcks, grounds)
        }
        Repair::Reordered => {
            let grounds = Grounds::probable(Because::OlderPacket, Cause::FastRetransmit);
            (Cause::Reordering, Rule::Overtaken, grounds)
        }
        Repair::Syn => {
            let grounds = Grounds::proven(Because::SentAgain);
            (Cause::SynRto, Rule::HandshakeRepeated, grounds)
        }
    }
}

/// Weakens the program's time before a segment that may be a retransmission to probable.
pub(super) fn may_be_retransmission(cutter: &mut Cutter<'_>) {
    let program = Cause::program_of(cutter.slice.sender);
    if let Some(last) = cutter.rows.last_mut().filter(|last| last.cause == program) {
        let lost = Grounds::probable(Because::CopyMayBeLost, Cause::Rto);
        last.grounds.at_most(lost);
    }
}

/// Judges a small segment over an unacknowledged small one, as late as a tail loss probe. It was a probe if Nagle's
/// algorithm acts at this sender, as probes ignore that.
pub(super) fn probe(cutter: &mut Cutter<'_>, small: At, sender_id: u32, context: &ExchangeContext<'_>) {
    let slice = cutter.slice;
    let judged = context.sender(sender_id);
    match judged.map_or(NagleUse::Unknown, |judged| judged.nagle_use) {
        NagleUse::Acts => {
            let evidence = [small.frame, slice.step.to.frame, 0];
            let grounds = Grounds::proven(Because::TimerRanOut);
            cutter.attribute(
                slice.end_ns,
                Attribution::new(Cause::Tlp, Owner::Network, Rule::TailProbe, grounds, evidence),
            );
        }
        NagleUse::Unknown => {
            // in labelled captures, a fifth of such time was the program's
            let grounds = Grounds::suspected(Because::SenderNotKnown, Cause::Tlp);
            paused(cutter, grounds);
        }
        _ => paused(cutter, Grounds::proven(Because::GoesWithoutAck)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Side;
    use crate::judge::partition::slices::{slice, step};
    use crate::judge::{Grade, Paths, Row, SenderVerdict};

    #[test]
    fn what_left_as_late_as_a_probe_is_one_where_nagles_algorithm_acts() {
        let judged = |nagle_use| {
            let step = step(220_000_000);
            let slice = slice(&step, Side::Client);
            let paths = Paths::default();
            let context = ExchangeContext {
                paths: &paths,
                stream: 0,
                calls_others: false,
                is_multi_message: false,
                judged_senders: &[SenderVerdict {
                    nagle_use,
                    ..SenderVerdict::default()
                }],
                is_spread: false,
                spurious_frames: None,
            };
            let mut rows: Vec<Row> = Vec::new();
            probe(
                &mut Cutter::new(&slice, &paths, &mut rows),
                step.from,
                0,
                &context,
            );
            rows.last()
                .map(|row| (row.cause, row.grounds.grade, row.grounds.because))
        };
        let think = Cause::ClientThink;
        let probed = (Cause::Tlp, Grade::Proven, Because::TimerRanOut);
        assert_eq!(judged(NagleUse::Acts), Some(probed));
        assert_eq!(
            judged(NagleUse::Unknown),
            Some((think, Grade::Suspected, Because::SenderNotKnown))
        );
        assert_eq!(
            judged(NagleUse::Off),
            Some((think, Grade::Proven, Because::GoesWithoutAck))
        );
    }
}
