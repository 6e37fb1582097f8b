//! The congestion window: the sender may have no more bytes in flight until an ACK comes.
//!
//! Claims: a segment that left with an ACK of earlier data, and nothing small outstanding, waited for that ACK.
//! Predicts: it leaves as promptly as the path allows, and the round trip of what was acknowledged is the path's.
//! Rivals: the line (`line`: it left too soon to have been released, or the round trip grew), the send buffer, pacing, a
//! program that wrote just then (`program`).

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter, row};
use super::path::{Paths, reach};
use super::program::think;
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rival, Rule};
use crate::base::At;
use crate::exchange::TimeSlice;
use crate::limits::{HELD_NS, PROMPT_NS};

/// After an ACK of earlier data, with nothing small outstanding: the congestion window's turn, or the line's, or by chance.
#[inline(always)]
pub(super) fn clocked(cutter: &mut Cutter<'_>, ack: At, acked: At, piece: &TimeSlice<'_>, paths: &Paths) {
    let named = named(ack, acked, piece, paths);
    if named.cause == think(piece.sender) {
        reach(cutter, piece, paths);
    }
    cutter.cut(piece.end, named);
}

/// A segment that left after the ACK of the one full segment in flight. Where its sender has room for one (`alone`: a
/// timeout left such a congestion window, or each left with the ACK of the one before), it waited for that ACK, and what
/// the ACK took beyond the path its receiver held it. Any other sender of Linux has a window of two and more, and lets
/// small segments go behind full ones (tcp_minshall_check): then a late ACK held nobody up.
pub(super) fn lone(
    cutter: &mut Cutter<'_>,
    ack: At,
    acked: At,
    single: bool,
    piece: &TimeSlice<'_>,
    paths: &Paths,
) {
    let side = piece.sender;
    let hold = ack.time_ns - acked.time_ns - paths.to(side.other());
    let named = named(ack, acked, piece, paths);
    let program = named.cause == think(side);
    let held = !program && named.rule != Rule::Spacing && HELD_NS.contains(hold);
    let evidence = [acked.frame, ack.frame, piece.step.to.frame];
    if held && single {
        let rule = Rule::CwndDelayedAck;
        let grounds = Grounds::probable(Because::WindowOfOne, think(side));
        let waits = row(Cause::Cwnd, Owner::of(side), rule, grounds, evidence);
        let delayed = Attribution {
            parent: Some(Cause::Cwnd),
            ..row(
                Cause::DelayedAck,
                Owner::of(side.other()),
                rule,
                grounds,
                evidence,
            )
        };
        cutter.cut(ack.time_ns - hold, waits);
        cutter.cut(ack.time_ns, delayed);
        return cutter.cut(cutter.end, waits);
    }
    if program || held {
        reach(cutter, piece, paths);
    }
    let named = if held {
        let grounds = Grounds::probable(Because::FullBefore, Cause::Nagle);
        row(think(side), Owner::of(side), Rule::LookAlike, grounds, evidence)
    } else {
        named
    };
    cutter.cut(cutter.end, named);
}

fn named(ack: At, acked: At, piece: &TimeSlice<'_>, paths: &Paths) -> Attribution {
    let (side, from, to) = (piece.sender, piece.step.from, piece.step.to);
    let evidence = [acked.frame, ack.frame, to.frame];
    let sender = paths.to(side);
    let release = to.time_ns - ack.time_ns;
    let line = |rule, because, rival| {
        let grounds = Grounds::probable(because, rival);
        row(Cause::Bandwidth, Owner::Network, rule, grounds, evidence)
    };
    if release - sender > PROMPT_NS.get() {
        let ends = [from.frame, to.frame, 0];
        let grounds = Grounds::probable(Because::LateAfterAck, Cause::Cwnd);
        return row(think(side), Owner::of(side), Rule::App, grounds, ends);
    }
    if release < sender / 2 {
        let pacing = Rival::from(Hypothesis::Pacing);
        return line(Rule::Spacing, Because::SoonerThanAck, pacing);
    }
    let round = ack.time_ns - acked.time_ns;
    let receiver = paths.to(side.other());
    if round > receiver + (receiver / 2).max(PROMPT_NS.get()) {
        // the bottleneck's queue was full
        return line(Rule::Queue, Because::RoundTripGrew, Cause::Cwnd.into());
    }
    let grounds = Grounds::probable(Because::WithTheAck, Hypothesis::Pacing);
    row(Cause::Cwnd, Owner::of(side), Rule::AckClocked, grounds, evidence)
}
