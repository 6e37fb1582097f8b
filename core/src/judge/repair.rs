//! Repairs: a segment was lost, or overtaken, and what waited for it waited for its repeat.
//!
//! Claims: the bytes that ended the wait are a repeat, or fill a hole; which timer or ACK sent them.
//! Predicts: the same bytes twice, or a hole that closes; the repeat comes with duplicate or selective ACKs, two round
//! trips after a tail, or a timer after anything.
//! Rivals: a late first copy (what the receiver sends shows it, or cannot: then nothing is proven), reordering, a capture that lacks the first copy.

use super::CaptureFacts;
use super::grounds::Grounds;
use super::partition::{Cutter, row};
use super::program::{paused, think};
use super::sender::NagleUse;
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rule};
use crate::base::At;
use crate::exchange::TimeSlice;
use crate::observe::{Repair, Repaired};

/// A repeat, or what fills a hole.
pub(super) fn repeat(
    cutter: &mut Cutter<'_>,
    repaired: Repaired,
    piece: &TimeSlice<'_>,
    known: &CaptureFacts<'_>,
) {
    let Repaired {
        how,
        first,
        filled,
        receiver_reports,
    } = repaired;
    let (paths, side) = (known.paths, piece.sender);
    let (from, to) = (piece.step.from, piece.step.to);
    if known.is_needless(to.frame) {
        let (cause, rule, grounds) = match how {
            Repair::Fast | Repair::Reordered => {
                let grounds = Grounds::proven(Because::ReceiverSaysTwice);
                (Cause::Reordering, Rule::Overtaken, grounds)
            }
            // what looked lost was late, or its ACK was: on the path, or at a host without time for it
            _ => {
                let grounds = Grounds::probable(Because::ReceiverSaysTwice, Hypothesis::BusyHost);
                (Cause::Queueing, Rule::NotLost, grounds)
            }
        };
        let ends = [piece.from_frame, piece.to_frame, 0];
        return cutter.cut(piece.end, row(cause, Owner::Network, rule, grounds, ends));
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
        // bytes that were missing came, long after they were missed
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
    let evidence = [first.map_or(from.frame, |f| f.frame), to.frame, 0];
    let by_timer = matches!(how, Repair::TailProbe | Repair::Timeout);
    let (owner, grounds) = if by_timer && first.is_some() && paths.beside(side.other()) {
        // the first copy had come as far as its host
        let grounds = Grounds::probable(Because::NotTaken, Cause::Queueing);
        (Owner::of(side.other()), grounds)
    } else {
        (Owner::Network, grounds)
    };
    let mut named = row(cause, owner, rule, grounds, evidence);
    if !receiver_reports && how != Repair::Syn {
        let silent = Grounds::probable(Because::NobodyTells, Cause::Queueing);
        named.grounds.at_most(silent);
    }
    cutter.cut(piece.end, named);
}

/// What came first of an answer came as late as a repeat: it is the program's time at most probably.
pub(super) fn may_be_again(cutter: &mut Cutter<'_>, piece: &TimeSlice<'_>) {
    let think = think(piece.sender);
    if let Some(last) = cutter.rows.last_mut().filter(|last| last.cause == think) {
        let lost = Grounds::probable(Because::CopyMayBeLost, Cause::Rto);
        last.grounds.at_most(lost);
    }
}

/// Small over unacknowledged small, as late as a tail loss probe: it was one where Nagle's algorithm acts, which a probe
/// passes by.
pub(super) fn probe(
    cutter: &mut Cutter<'_>,
    small: At,
    sender_id: u32,
    piece: &TimeSlice<'_>,
    known: &CaptureFacts<'_>,
) {
    let judged = known.judged_senders.get(sender_id as usize);
    match judged.map_or(NagleUse::Unknown, |judged| judged.verdict) {
        NagleUse::Acts => {
            let evidence = [small.frame, piece.step.to.frame, 0];
            let grounds = Grounds::proven(Because::TimerRanOut);
            cutter.cut(
                piece.end,
                row(Cause::Tlp, Owner::Network, Rule::TailProbe, grounds, evidence),
            );
        }
        NagleUse::Unknown => {
            // of such time in labelled captures one part in five was the program's
            let grounds = Grounds::suspected(Because::SenderNotKnown, Cause::Tlp);
            paused(cutter, grounds, piece, known.paths);
        }
        _ => paused(
            cutter,
            Grounds::proven(Because::GoesWithoutAck),
            piece,
            known.paths,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Side;
    use crate::judge::{Grade, Judged, Paths, Row};
    use crate::observe::{Step, Wait};

    #[test]
    fn what_left_as_late_as_a_probe_is_one_where_nagles_algorithm_acts() {
        let at = |frame, time_ns| At { frame, time_ns };
        let judged = |verdict| {
            let step = Step {
                from: at(1, 0),
                to: at(9, 220_000_000),
                wait: Wait::App,
            };
            let piece = TimeSlice {
                start: 0,
                end: 220_000_000,
                from_frame: 1,
                to_frame: 9,
                request_at: 0,
                sender: Side::Client,
                step: &step,
            };
            let paths = Paths::default();
            let known = CaptureFacts {
                paths: &paths,
                stream: 0,
                calls_others: false,
                many: false,
                judged_senders: &[Judged {
                    verdict,
                    ..Judged::default()
                }],
                spread: false,
                needless: None,
            };
            let mut rows: Vec<Row> = Vec::new();
            probe(&mut Cutter::new(&piece, &mut rows), at(1, 0), 0, &piece, &known);
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
