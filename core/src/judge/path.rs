//! The path: the way to both hosts and back, and what queues on it.
//!
//! Claims: packets were on their way for so long (`network`), or stood in a queue (`queueing`).
//! Predicts: no kernel answers sooner than the path's best round trip; what a queue held left its host sooner, by its
//! sender's clock, than it passed the capture.
//! Rivals: a program that takes its time (`program`), a host too busy for its packets.

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter, EvidenceFrames, row};
use super::program::{approach, behind, bounded, more_likely, think};
use super::vocabulary::{Because, Cause, Grade, Hypothesis, Owner, Rule};
use crate::base::{At, Side};
use crate::evidence::rtt::KernelRtt;
use crate::exchange::TimeSlice;
use crate::limits::{AT_HOST_NS, SOON_NS};

/// The path as far as it is known: best round trips to the client and to the server, by `Side`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Paths {
    pub min: [Option<i64>; 2],
    /// What the exchange's own connection took lately, by the answers of kernels.
    pub rounds: [KernelRtt; 2],
    /// No kernel has answered by itself: the best round trip may hold a program's time.
    pub by_program: [bool; 2],
    /// The one round trip to each side that was ever seen is an answer of its program.
    pub alone: [bool; 2],
    /// What the handshakes took at best, where that is much more: something nearer may acknowledge for this side.
    pub behind: [Option<i64>; 2],
}

impl Paths {
    pub fn to(&self, side: Side) -> i64 {
        self.known(side).unwrap_or(0)
    }

    pub fn known(&self, side: Side) -> Option<i64> {
        self.min.get(side.index()).copied().flatten()
    }

    /// The way to this side's host, of which its ACKs tell nothing, where the wait is long enough for it.
    pub fn behind(&self, side: Side, waited: i64) -> Option<i64> {
        let far = self.behind.get(side.index()).copied().flatten();
        far.filter(|far| waited >= far / 4 * 3)
    }

    /// The capture does not sit at this side's host, as far as anybody knows.
    #[inline(always)]
    pub fn away(&self, side: Side) -> bool {
        self.known(side).is_none_or(|best| best >= AT_HOST_NS.get())
    }

    /// The capture sits at this side's host, and clearly not at the other's.
    pub fn beside(&self, side: Side) -> bool {
        let [near, far] = [side, side.other()].map(|side| self.known(side));
        near.is_some_and(|rtt| rtt < AT_HOST_NS.get()) && far.is_some_and(|rtt| rtt >= SOON_NS.get())
    }
}

/// Until the request has reached the server and an answer could be back: the path. A pipelined request is
/// still on its way while earlier answers come.
#[inline(always)]
pub(super) fn reach(cutter: &mut Cutter<'_>, piece: &TimeSlice<'_>, paths: &Paths) {
    if piece.sender == Side::Server {
        network(cutter, piece.request_at, Side::Server, paths);
    }
}

#[inline(always)]
pub(super) fn network(cutter: &mut Cutter<'_>, from: i64, side: Side, paths: &Paths) {
    let evidence = [cutter.from_frame, cutter.to_frame, 0];
    let away = paths.known(side).is_some_and(|best| best >= AT_HOST_NS.get());
    let grounds = if away && paths.alone.get(side.index()) == Some(&true) {
        Grounds::suspected(Because::OwnRoundTrip, think(side))
    } else if away && paths.by_program.get(side.index()) == Some(&true) {
        Grounds::probable(Because::RoundTripByProgram, think(side))
    } else {
        Grounds::proven(Because::BestRoundTrip)
    };
    cutter.cut(
        from + paths.to(side),
        row(Cause::Network, Owner::Network, Rule::Rtt, grounds, evidence),
    );
}

/// The first segment after the peer spoke. By its sender's clock it passed `late` nanoseconds later than at best, `queued` of
/// them for sure; `fine`: that clock was seen to count every millisecond. `acked`: the kernel there had acknowledged by
/// the peer's data itself, so these had reached its host.
pub(super) fn queued_turn(
    cutter: &mut Cutter<'_>,
    since: At,
    acked: u32,
    [late, queued]: [u32; 2],
    fine: bool,
    piece: &TimeSlice<'_>,
    paths: &Paths,
) {
    let (side, end) = (piece.sender, piece.end);
    // (where its clock is sure of a part of that, the handshakes stood in the same queue)
    let far = paths.behind(side, piece.step.to.time_ns - since.time_ns);
    if let Some(far) = far.filter(|far| i64::from(queued) < far / 8) {
        return behind(cutter, since.time_ns + far, piece);
    }
    approach(cutter, since, piece, paths);
    let left = |passed: u32| end.saturating_sub(i64::from(passed));
    let stamped = fine && queued == 0 && paths.away(side);
    cutter.end = left(if stamped { late } else { queued }).max(cutter.at);
    let late = if queued > 0 { 0 } else { late };
    let named = bounded(cutter, since, acked, late, side, paths);
    if late > 0 && !stamped && paths.away(side) && named.grounds.grade != Grade::Suspected {
        // its time stamp shows when the answer left its host, as far as that clock is to be believed so soon
        cutter.end = left(late).max(cutter.at);
    }
    cutter.cut(cutter.end, more_likely(named, cutter, side, paths));
    cutter.end = end;
    cutter.cut(end, queue([cutter.from_frame, cutter.to_frame, 0]));
}

/// A queue, by the time stamps of its sender.
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

/// A kernel's answer to a SYN or SYN/ACK. Kernels answer at once: what is above the best is the path's, or a host
/// without time for its packets.
pub(super) fn handshake(cutter: &mut Cutter<'_>, piece: &TimeSlice<'_>, paths: &Paths) {
    let ends = [piece.from_frame, piece.to_frame, 0];
    let of = |cause, rule, grounds| row(cause, Owner::Network, rule, grounds, ends);
    if paths.known(piece.sender).is_some() {
        network(cutter, piece.start, piece.sender, paths);
        let grounds = Grounds::probable(Because::KernelWasLate, Hypothesis::BusyHost);
        cutter.cut(piece.end, of(Cause::Queueing, Rule::Handshake, grounds));
    } else {
        let grounds = Grounds::probable(Because::NoRoundTrip, Cause::Queueing);
        cutter.cut(piece.end, of(Cause::Network, Rule::Rtt, grounds));
    }
}
