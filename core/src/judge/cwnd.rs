//! The congestion window: the sender may have no more bytes in flight until an ACK comes.
//!
//! Claims: a segment that left upon an ACK of earlier data, with nothing small in flight, waited for that ACK.
//! Predicts: it leaves as promptly as the path allows, and the acknowledged segment took one round trip of the path.
//! Rivals: the line (`line`: the segment left too soon for that ACK, or the round trip grew), the send buffer, pacing,
//! a program that wrote just then (`program`).

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter, row};
use super::path::{Paths, reach};
use super::program::{program_row, think};
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rival, Rule};
use crate::base::At;
use crate::exchange::TimeSlice;
use crate::limits::{HELD_NS, PROMPT_NS};

/// Judges a segment after an ACK of earlier data, with nothing small in flight.
#[inline(always)]
pub(super) fn clocked(cutter: &mut Cutter<'_>, ack: At, acked: At, slice: &TimeSlice<'_>, paths: &Paths) {
    let named = released_by(ack, acked, slice, paths);
    if named.cause == think(slice.sender) {
        reach(cutter, slice, paths);
    }
    cutter.cut(slice.end, named);
}

/// Judges a segment after the ACK of the only full segment in flight. If its sender has room for one (`single`), it
/// waited for that ACK, which the receiver held beyond the path's time. Other senders have a window of two and more,
/// and Linux sends small segments behind full ones (tcp_minshall_check): then the late ACK delayed nothing.
pub(super) fn lone(
    cutter: &mut Cutter<'_>,
    ack: At,
    acked: At,
    single: bool,
    slice: &TimeSlice<'_>,
    paths: &Paths,
) {
    let side = slice.sender;
    let hold = ack.time_ns - acked.time_ns - paths.to(side.other());
    let named = released_by(ack, acked, slice, paths);
    let program = named.cause == think(side);
    let held = !program && named.rule != Rule::Spacing && HELD_NS.contains(hold);
    let evidence = [acked.frame, ack.frame, slice.step.to.frame];
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
        reach(cutter, slice, paths);
    }
    let named = if held {
        let grounds = Grounds::probable(Because::FullBefore, Cause::Nagle);
        program_row(side, Rule::LookAlike, grounds, evidence)
    } else {
        named
    };
    cutter.cut(cutter.end, named);
}

/// Returns what a segment after an ACK waited for: that ACK, the line, or its program.
fn released_by(ack: At, acked: At, slice: &TimeSlice<'_>, paths: &Paths) -> Attribution {
    let (side, from, to) = (slice.sender, slice.step.from, slice.step.to);
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
        return program_row(side, Rule::App, grounds, ends);
    }
    if release < sender / 2 {
        let pacing = Rival::from(Hypothesis::Pacing);
        return line(Rule::Spacing, Because::SoonerThanAck, pacing);
    }
    let round = ack.time_ns - acked.time_ns;
    let receiver = paths.to(side.other());
    if round > receiver + (receiver / 2).max(PROMPT_NS.get()) {
        // the segment was in the bottleneck's queue
        return line(Rule::Queue, Because::RoundTripGrew, Cause::Cwnd.into());
    }
    let grounds = Grounds::probable(Because::WithTheAck, Hypothesis::Pacing);
    row(Cause::Cwnd, Owner::of(side), Rule::AckClocked, grounds, evidence)
}
