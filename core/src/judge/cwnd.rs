//! The congestion window: the sender may have no more bytes in flight until an ACK comes.
//!
//! Claims: a segment that left upon an ACK of earlier data, with nothing small in flight, waited for that ACK.
//! Predicts: it leaves as promptly as the path allows, and the acknowledged segment took one round trip of the path.
//! Rivals: the line (`line`: the segment left too soon for that ACK, or the round trip grew), the send buffer, pacing,
//! a program that wrote just then (`program`).

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::path::attribute_request_path;
use super::program::program_attribution;
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rival, Rule};
use crate::base::At;
use crate::limits::{HELD_NS, PROMPT_NS};

/// Judges a segment after an ACK of earlier data, with nothing small in flight.
#[inline(always)]
pub(super) fn clocked(cutter: &mut Cutter<'_>, ack: At, acked: At) {
    let slice = cutter.slice;
    let releaser = released_by(ack, acked, cutter);
    if releaser.cause == Cause::program_of(slice.sender) {
        attribute_request_path(cutter);
    }
    cutter.attribute(slice.end_ns, releaser);
}

/// Judges a segment after the ACK of the only full segment in flight. If its sender has room for one (`single`), it
/// waited for that ACK, which the receiver held beyond the path's time. Other senders have a window of two and more,
/// and Linux sends small segments after full ones (tcp_minshall_check): then the late ACK delayed nothing.
pub(super) fn lone(cutter: &mut Cutter<'_>, ack: At, acked: At, single: bool) {
    let side = cutter.slice.sender;
    let hold = ack.time_ns - acked.time_ns - cutter.paths.rtt_to(side.other());
    let releaser = released_by(ack, acked, cutter);
    let is_by_program = releaser.cause == Cause::program_of(side);
    let is_held = !is_by_program && releaser.rule != Rule::Spacing && HELD_NS.contains(hold);
    let evidence = [acked.frame, ack.frame, cutter.slice.step.to.frame];
    if is_held && single {
        let rule = Rule::CwndDelayedAck;
        let grounds = Grounds::probable(Because::WindowOfOne, Cause::program_of(side));
        let waits = Attribution::new(Cause::Cwnd, Owner::of(side), rule, grounds, evidence);
        let delayed = Attribution {
            parent: Some(Cause::Cwnd),
            ..Attribution::new(
                Cause::DelayedAck,
                Owner::of(side.other()),
                rule,
                grounds,
                evidence,
            )
        };
        cutter.attribute(ack.time_ns - hold, waits);
        cutter.attribute(ack.time_ns, delayed);
        return cutter.attribute(cutter.end_ns, waits);
    }
    if is_by_program || is_held {
        attribute_request_path(cutter);
    }
    let attribution = if is_held {
        let grounds = Grounds::probable(Because::FullBefore, Cause::Nagle);
        program_attribution(side, Rule::LookAlike, grounds, evidence)
    } else {
        releaser
    };
    cutter.attribute(cutter.end_ns, attribution);
}

/// Returns what a segment after an ACK waited for: that ACK, the line, or its program.
fn released_by(ack: At, acked: At, cutter: &Cutter<'_>) -> Attribution {
    let (slice, paths) = (cutter.slice, cutter.paths);
    let (side, from, to) = (slice.sender, slice.step.from, slice.step.to);
    let evidence = [acked.frame, ack.frame, to.frame];
    let sender = paths.rtt_to(side);
    let release = to.time_ns - ack.time_ns;
    let line = |rule, because, rival| {
        let grounds = Grounds::probable(because, rival);
        Attribution::new(Cause::Bandwidth, Owner::Network, rule, grounds, evidence)
    };
    if release - sender > PROMPT_NS.get() {
        let ends = [from.frame, to.frame, 0];
        let grounds = Grounds::probable(Because::LateAfterAck, Cause::Cwnd);
        return program_attribution(side, Rule::App, grounds, ends);
    }
    if release < sender / 2 {
        let pacing = Rival::from(Hypothesis::Pacing);
        return line(Rule::Spacing, Because::SoonerThanAck, pacing);
    }
    let round = ack.time_ns - acked.time_ns;
    let receiver = paths.rtt_to(side.other());
    if round > receiver + (receiver / 2).max(PROMPT_NS.get()) {
        // the segment was in the bottleneck's queue
        return line(Rule::Queue, Because::RoundTripGrew, Cause::Cwnd.into());
    }
    let grounds = Grounds::probable(Because::WithTheAck, Hypothesis::Pacing);
    Attribution::new(Cause::Cwnd, Owner::of(side), Rule::AckClocked, grounds, evidence)
}
