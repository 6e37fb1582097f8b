//! The path: round trips to both hosts, and queues on it.
//!
//! Claims: packets were under way (`network`), or waited in a queue (`queueing`).
//! Predicts: no kernel answers sooner than the path's best round trip; the timestamp of a queued packet is older than
//! the best path explains.
//! Rivals: a program that works (`program`), a host too busy for its packets.

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter, EvidenceFrames, row};
use super::program::{approach, behind, bounded, more_likely, think};
use super::vocabulary::{Because, Cause, Grade, Hypothesis, Owner, Rule};
use crate::base::{At, Side};
use crate::evidence::rtt::KernelRtt;
use crate::exchange::TimeSlice;
use crate::limits::{AT_HOST_NS, SOON_NS};

/// Round trips from the capture to each side, by `Side`, in ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Paths {
    /// Best round trips; None where none was seen.
    pub min: [Option<i64>; 2],
    /// Recent round trips of the exchange's own connection, by answers of kernels.
    pub rounds: [KernelRtt; 2],
    /// No kernel has answered by itself: the best round trip may contain a program's time.
    pub by_program: [bool; 2],
    /// The only round trip ever seen is an answer of the program.
    pub alone: [bool; 2],
    /// Best handshake, where it is much longer than ACKs take: a nearer host may acknowledge for this side.
    pub behind: [Option<i64>; 2],
}

impl Paths {
    /// Returns the best round trip to a side, 0 if unknown.
    pub fn to(&self, side: Side) -> i64 {
        self.best_rtt(side).unwrap_or(0)
    }

    pub fn best_rtt(&self, side: Side) -> Option<i64> {
        *side.pick(&self.min)
    }

    /// Returns the round trip to a host behind one that acknowledges for it, if the wait is long enough for that.
    pub fn behind(&self, side: Side, waited: i64) -> Option<i64> {
        side.pick(&self.behind).filter(|far| waited >= far / 4 * 3)
    }

    /// Whether the capture may have been taken away from this side's host.
    #[inline(always)]
    pub fn away(&self, side: Side) -> bool {
        self.best_rtt(side).is_none_or(|best| best >= AT_HOST_NS.get())
    }

    /// Whether the capture was taken at this side's host, and clearly not at the other's.
    pub fn beside(&self, side: Side) -> bool {
        let [near, far] = [side, side.other()].map(|side| self.best_rtt(side));
        near.is_some_and(|rtt| rtt < AT_HOST_NS.get()) && far.is_some_and(|rtt| rtt >= SOON_NS.get())
    }
}

/// Attributes the time until the request has reached the server and an answer can be back. (A pipelined request may
/// still be under way while earlier answers come.)
#[inline(always)]
pub(super) fn reach(cutter: &mut Cutter<'_>, slice: &TimeSlice<'_>, paths: &Paths) {
    if slice.sender == Side::Server {
        network(cutter, slice.request_at, Side::Server, paths);
    }
}

/// Attributes the best round trip to a side, from `from` on, to the path.
#[inline(always)]
pub(super) fn network(cutter: &mut Cutter<'_>, from: i64, side: Side, paths: &Paths) {
    let evidence = cutter.ends();
    let away = paths.best_rtt(side).is_some_and(|best| best >= AT_HOST_NS.get());
    let grounds = if away && *side.pick(&paths.alone) {
        Grounds::suspected(Because::OwnRoundTrip, think(side))
    } else if away && *side.pick(&paths.by_program) {
        Grounds::probable(Because::RoundTripByProgram, think(side))
    } else {
        Grounds::proven(Because::BestRoundTrip)
    };
    cutter.cut(
        from + paths.to(side),
        row(Cause::Network, Owner::Network, Rule::Rtt, grounds, evidence),
    );
}

/// Judges the first segment of a turn that was late on its way, by its sender's timestamps. The fields are those of
/// `Wait::QueuedTurn`.
pub(super) fn queued_turn(
    cutter: &mut Cutter<'_>,
    since: At,
    acked: u32,
    [late, queued]: [u32; 2],
    fine: bool,
    slice: &TimeSlice<'_>,
    paths: &Paths,
) {
    let (side, end) = (slice.sender, slice.end);
    // (where timestamps prove a part of the delay, the handshakes were in the same queue)
    let far = paths.behind(side, slice.step.to.time_ns - since.time_ns);
    if let Some(far) = far.filter(|far| i64::from(queued) < far / 8) {
        return behind(cutter, since.time_ns + far, slice);
    }
    approach(cutter, since, slice, paths);
    let left_at = |passed: u32| end.saturating_sub(i64::from(passed));
    let stamped = fine && queued == 0 && paths.away(side);
    cutter.end = left_at(if stamped { late } else { queued }).max(cutter.at);
    let late = if queued > 0 { 0 } else { late };
    let named = bounded(cutter, since, acked, late, side, paths);
    if late > 0 && !stamped && paths.away(side) && named.grounds.grade != Grade::Suspected {
        // the timestamp shows when the answer left its host, although the clock's rate is not known well yet
        cutter.end = left_at(late).max(cutter.at);
    }
    cutter.cut(cutter.end, more_likely(named, cutter, side, paths));
    cutter.end = end;
    cutter.cut(end, queue(cutter.ends()));
}

/// Returns the attribution to a queue that timestamps show.
pub(super) fn queue(evidence: EvidenceFrames) -> Attribution {
    let grounds = Grounds::probable(Because::StampIsOlder, Hypothesis::BusyHost);
    row(
        Cause::Queueing,
        Owner::Network,
        Rule::Timestamps,
        grounds,
        evidence,
    )
}

/// Judges a kernel's answer to a SYN or SYN/ACK. Kernels answer at once, so the time above the best round trip is the
/// path's or a busy host's.
pub(super) fn handshake(cutter: &mut Cutter<'_>, slice: &TimeSlice<'_>, paths: &Paths) {
    let ends = cutter.ends();
    let network_row = |cause, rule, grounds| row(cause, Owner::Network, rule, grounds, ends);
    if paths.best_rtt(slice.sender).is_some() {
        network(cutter, slice.start, slice.sender, paths);
        let grounds = Grounds::probable(Because::KernelWasLate, Hypothesis::BusyHost);
        cutter.cut(slice.end, network_row(Cause::Queueing, Rule::Handshake, grounds));
    } else {
        let grounds = Grounds::probable(Because::NoRoundTrip, Cause::Queueing);
        cutter.cut(slice.end, network_row(Cause::Network, Rule::Rtt, grounds));
    }
}
