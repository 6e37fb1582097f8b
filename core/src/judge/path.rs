//! The path: round trips to both hosts, and queues on it.
//!
//! Claims: packets were under way (`network`), or waited in a queue (`queueing`).
//! Predicts: no kernel answers sooner than the path's best round trip; the timestamp of a queued packet is older than
//! the best path explains.
//! Rivals: a program that works (`program`), a host too busy for its packets.

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter, EvidenceFrames};
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rule};
use crate::base::Side;
use crate::evidence::rtt::KernelRtt;
use crate::limits::{AT_HOST_NS, SOON_NS};

/// Round trips from the capture to each side, by `Side`, in ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Paths {
    /// Best round trips; None where none was seen.
    pub best_rtts_ns: [Option<i64>; 2],
    /// Recent round trips of the exchange's own connection, by answers of kernels.
    pub kernel_rtts: [KernelRtt; 2],
    /// No kernel has answered by itself: the best round trip may contain a program's time.
    pub by_program: [bool; 2],
    /// The only round trip ever seen is an answer of the program.
    pub by_one_answer: [bool; 2],
    /// Best handshake, where it is much longer than ACKs take: a nearer host may acknowledge for this side.
    pub handshake_behind_middlebox_ns: [Option<i64>; 2],
}

impl Paths {
    /// Returns the best round trip to a side, 0 if unknown.
    pub fn rtt_to(&self, side: Side) -> i64 {
        self.best_rtt(side).unwrap_or(0)
    }

    pub fn best_rtt(&self, side: Side) -> Option<i64> {
        *side.pick(&self.best_rtts_ns)
    }

    /// Returns the round trip to a host behind one that acknowledges for it, if the wait is long enough for that.
    pub fn rtt_behind_middlebox(&self, side: Side, waited: i64) -> Option<i64> {
        let far_rtt_ns = side.pick(&self.handshake_behind_middlebox_ns);
        far_rtt_ns.filter(|far_rtt_ns| waited >= far_rtt_ns / 4 * 3)
    }

    /// Whether the capture may have been taken away from this side's host.
    #[inline(always)]
    pub fn is_away(&self, side: Side) -> bool {
        self.best_rtt(side).is_none_or(|best| best >= AT_HOST_NS.get())
    }

    /// Whether the capture was taken at this side's host, and clearly not at the other's.
    pub fn is_near_host(&self, side: Side) -> bool {
        let [own_rtt, peer_rtt] = [side, side.other()].map(|side| self.best_rtt(side));
        own_rtt.is_some_and(|rtt| rtt < AT_HOST_NS.get()) && peer_rtt.is_some_and(|rtt| rtt >= SOON_NS.get())
    }
}

/// Attributes the time until the request has reached the server and an answer can be back. (A pipelined request may
/// still be under way while earlier answers come.)
#[inline(always)]
pub(super) fn attribute_request_path(cutter: &mut Cutter<'_>) {
    if cutter.slice.sender == Side::Server {
        attribute_path(cutter, cutter.slice.request_at_ns, Side::Server);
    }
}

/// Attributes the best round trip to a side, from `from` on, to the path.
#[inline(always)]
pub(super) fn attribute_path(cutter: &mut Cutter<'_>, from: i64, side: Side) {
    let (paths, evidence) = (cutter.paths, cutter.end_frames());
    let is_away = paths.best_rtt(side).is_some_and(|best| best >= AT_HOST_NS.get());
    let grounds = if is_away && *side.pick(&paths.by_one_answer) {
        Grounds::suspected(Because::OwnRoundTrip, Cause::program_of(side))
    } else if is_away && *side.pick(&paths.by_program) {
        Grounds::probable(Because::RoundTripByProgram, Cause::program_of(side))
    } else {
        Grounds::proven(Because::BestRoundTrip)
    };
    cutter.attribute(
        from + paths.rtt_to(side),
        Attribution::new(Cause::Network, Owner::Network, Rule::Rtt, grounds, evidence),
    );
}

/// Returns the attribution to a queue that timestamps show.
pub(super) fn queue_by_timestamps(evidence: EvidenceFrames) -> Attribution {
    let grounds = Grounds::probable(Because::StampIsOlder, Hypothesis::BusyHost);
    Attribution::new(
        Cause::Queueing,
        Owner::Network,
        Rule::Timestamps,
        grounds,
        evidence,
    )
}

/// Judges a kernel's answer to a SYN or SYN/ACK. Kernels answer at once, so the time above the best round trip is the
/// path's or a busy host's.
pub(super) fn handshake(cutter: &mut Cutter<'_>) {
    let (slice, ends) = (cutter.slice, cutter.end_frames());
    let network = |cause, rule, grounds| Attribution::new(cause, Owner::Network, rule, grounds, ends);
    if cutter.paths.best_rtt(slice.sender).is_some() {
        attribute_path(cutter, slice.start_ns, slice.sender);
        let grounds = Grounds::probable(Because::KernelWasLate, Hypothesis::BusyHost);
        cutter.attribute(slice.end_ns, network(Cause::Queueing, Rule::Handshake, grounds));
    } else {
        let grounds = Grounds::probable(Because::NoRoundTrip, Cause::Queueing);
        cutter.attribute(slice.end_ns, network(Cause::Network, Rule::Rtt, grounds));
    }
}
