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
pub(super) fn repeat(cutter: &mut Cutter<'_>, repaired: Repaired, context: &ExchangeContext<'_>) {
    let Repaired {
        how,
        first,
        filled,
        receiver_reports,
    } = repaired;
    let (slice, side) = (cutter.slice, cutter.slice.sender);
    let (from, to) = (slice.step.from, slice.step.to);
    if context.is_needless(to.frame) {
        let (cause, rule, grounds) = match how {
            Repair::Fast | Repair::Reordered => {
                let grounds = Grounds::proven(Because::ReceiverSaysTwice);
                (Cause::Reordering, Rule::Overtaken, grounds)
            }
            // the segment that seemed lost, or its ACK, was late: on the path, or at a busy host
            _ => {
                let grounds = Grounds::probable(Because::ReceiverSaysTwice, Hypothesis::BusyHost);
                (Cause::Queueing, Rule::NotLost, grounds)
            }
        };
        let needless = Attribution::new(cause, Owner::Network, rule, grounds, cutter.ends());
        return cutter.attribute(slice.end, needless);
    }
    let proven = Grounds::proven;
    let filled_late = Grounds::probable(Because::FilledLate, Cause::Queueing);
    let by_ip_id = Grounds::probable(Because::ByIpId, Cause::CaptureGap);
    let (cause, rule, grounds) = match (how, first) {
        (Repair::Fast, None) if filled.is_none() => (
            Cause::FastRetransmit,
            Rule::CopyNotSeen,
            Grounds::probable(Because::NoFirstCopy, Cause::CaptureGap),
        ),
        (Repair::Fast, _) => (
            Cause::FastRetransmit,
            Rule::SackOrDuplicateAcks,
            proven(Because::CalledFor),
        ),
        (Repair::TailProbe, Some(_)) => (Cause::Tlp, Rule::TailProbe, proven(Because::TimerRanOut)),
        (Repair::Timeout, Some(_)) => (Cause::Rto, Rule::Timeout, proven(Because::TimerRanOut)),
        // missing bytes came long after later ones
        (Repair::TailProbe, None) if filled.is_some() => (Cause::Tlp, Rule::HoleFilled, filled_late),
        (Repair::Timeout, None) if filled.is_some() => (Cause::Rto, Rule::HoleFilled, filled_late),
        // only the gap in the sender's IP identifications shows
        (Repair::TailProbe, None) => (Cause::Tlp, Rule::IpIdGap, by_ip_id),
        (Repair::Timeout, None) => (Cause::Rto, Rule::IpIdGap, by_ip_id),
        (Repair::Reordered, _) => (
            Cause::Reordering,
            Rule::Overtaken,
            Grounds::probable(Because::OlderPacket, Cause::FastRetransmit),
        ),
        (Repair::Syn, _) => (Cause::SynRto, Rule::HandshakeRepeated, proven(Because::SentAgain)),
    };
    let evidence = [first.map_or(from.frame, |copy| copy.frame), to.frame, 0];
    let by_timer = matches!(how, Repair::TailProbe | Repair::Timeout);
    let (owner, grounds) = if by_timer && first.is_some() && cutter.paths.is_near_host(side.other()) {
        // the first copy had arrived at its host, where the capture was taken
        let grounds = Grounds::probable(Because::NotTaken, Cause::Queueing);
        (Owner::of(side.other()), grounds)
    } else {
        (Owner::Network, grounds)
    };
    let mut attribution = Attribution::new(cause, owner, rule, grounds, evidence);
    if !receiver_reports && how != Repair::Syn {
        let silent = Grounds::probable(Because::NobodyTells, Cause::Queueing);
        attribution.grounds.at_most(silent);
    }
    cutter.attribute(slice.end, attribution);
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
                slice.end,
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
                spread: false,
                needless: None,
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
