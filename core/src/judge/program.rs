//! The program: it had not produced the next byte, and nothing held it back.
//!
//! Claims: the program took the time from the peer's last byte to its answer, less the path; or it paused inside a
//! message.
//! Predicts: the wait ends with no ACK, window update or timer, and by its timestamp the segment left when it passed,
//! less the path.
//! Rivals: a queue on the path (`path`), the kernel's pacing (`line`), a cork (`cork`), Nagle's algorithm (`nagle`).

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter, EvidenceFrames, row};
use super::path::{Paths, network, reach};
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rule};
use crate::base::{At, Side};
use crate::exchange::TimeSlice;
use crate::limits::{AT_HOST_NS, DELACK_LEAST_NS, HELD_ELSEWHERE_NS, NOISE_NS};

pub(super) fn think(side: Side) -> Cause {
    match side {
        Side::Client => Cause::ClientThink,
        Side::Server => Cause::ServerThink,
    }
}

/// Returns an attribution to the program of `side`.
#[inline(always)]
pub(super) fn program_row(side: Side, rule: Rule, grounds: Grounds, evidence: EvidenceFrames) -> Attribution {
    row(think(side), Owner::of(side), rule, grounds, evidence)
}

/// Attributes the path from the peer's last byte to the answer's first one. The program's time mostly follows.
#[inline(always)]
pub(super) fn approach(cutter: &mut Cutter<'_>, since: At, slice: &TimeSlice<'_>, paths: &Paths) {
    if slice.sender == Side::Server {
        return reach(cutter, slice, paths);
    }
    if since.time_ns > cutter.at {
        continued(cutter, since, paths);
    }
    network(cutter, cutter.at, Side::Client, paths);
}

/// Attributes the time inside a request until the server has let the client continue ("100 Continue").
#[cold]
fn continued(cutter: &mut Cutter<'_>, since: At, paths: &Paths) {
    let (end, to_frame) = (cutter.end, cutter.to_frame);
    (cutter.end, cutter.to_frame) = (since.time_ns.min(end), since.frame);
    network(cutter, cutter.at, Side::Server, paths);
    think_on(cutter, Side::Server, paths);
    (cutter.end, cutter.from_frame, cutter.to_frame) = (end, since.frame, to_frame);
}

/// Returns the attribution of a turn to the program. `late` is the delay of its segment by timestamps. Only suspected
/// where the larger part may be the path's: over labelled paths of varying delay, a tenth of such time was the
/// program's.
#[inline(always)]
pub(super) fn thought(cutter: &Cutter<'_>, side: Side, paths: &Paths, late: u32) -> Attribution {
    let evidence = cutter.ends();
    let grounds = match paths.best_rtt(side) {
        None => Grounds::probable(Because::NoRoundTrip, Cause::Network),
        Some(best) => {
            let round = *side.pick(&paths.rounds);
            let beyond = round.beyond(best) + i64::from(late);
            let doubt = beyond >= NOISE_NS.get() && beyond > (cutter.end - cutter.at) / 2;
            if doubt {
                Grounds::suspected(Because::PathMayBeMore, Cause::Queueing)
            } else {
                Grounds::proven(Because::PathBounded)
            }
        }
    };
    program_row(side, Rule::Turn, grounds, evidence)
}

/// Judges the first segment of a turn. A pure ACK by its kernel after `acked` ns (0: none) bounds the path's share,
/// unless that ACK was held.
#[inline(always)]
pub(super) fn turn(cutter: &mut Cutter<'_>, since: At, acked: u32, slice: &TimeSlice<'_>, paths: &Paths) {
    let side = slice.sender;
    if let Some(far) = paths.behind(side, slice.step.to.time_ns - since.time_ns) {
        return behind(cutter, since.time_ns + far, slice);
    }
    approach(cutter, since, slice, paths);
    let mut named = bounded(cutter, since, acked, 0, side, paths);
    if !paths.away(side)
        && side == Side::Server
        && since.time_ns - slice.request_at >= NOISE_NS.get()
        && slice.step.to.time_ns - since.time_ns <= AT_HOST_NS.get()
    {
        // the peer's last segment is not the request, but carried an ACK: the answer may have been written before
        let freed = Grounds::probable(Because::WithTheAck, Cause::Nagle);
        named.grounds.at_most(freed);
    }
    if HELD_ELSEWHERE_NS.contains(slice.end - cutter.at) {
        named
            .grounds
            .at_most(Grounds::probable(Because::TimerLength, Hypothesis::OtherPath));
    }
    cutter.cut(slice.end, more_likely(named, cutter, side, paths));
}

/// Replaces a suspected program by a suspected queue if kernels' recent answers took most of this time on the path.
/// Over labelled paths of varying delay, a twentieth of such time was the program's.
pub(super) fn more_likely(named: Attribution, cutter: &Cutter<'_>, side: Side, paths: &Paths) -> Attribution {
    let round = *side.pick(&paths.rounds);
    let path = 2 * round.beyond(paths.to(side)) > cutter.end - cutter.at;
    if !path || named.grounds.because != Because::PathMayBeMore {
        return named;
    }
    let grounds = Grounds::suspected(Because::PathMayBeMore, think(side));
    row(
        Cause::Queueing,
        Owner::Network,
        Rule::Queue,
        grounds,
        cutter.ends(),
    )
}

/// Returns the attribution of a turn to the program. Away from its host the request's arrival is known only by the
/// kernel's own ACK after `acked` ns: the time before it is cut off as a queue's or a held ACK's. `late` is as in
/// `thought`.
#[inline(always)]
pub(super) fn bounded(
    cutter: &mut Cutter<'_>,
    since: At,
    acked: u32,
    late: u32,
    side: Side,
    paths: &Paths,
) -> Attribution {
    let waited = cutter.end - since.time_ns;
    let mut named = from_kernels_answer(cutter, since, acked, late, side, paths);
    if paths.behind(side, waited).is_some() {
        // a nearer host may have acknowledged for this side
        named
            .grounds
            .at_most(Grounds::probable(Because::AnsweredFor, Cause::Network));
    }
    named
}

#[inline(always)]
fn from_kernels_answer(
    cutter: &mut Cutter<'_>,
    since: At,
    acked: u32,
    late: u32,
    side: Side,
    paths: &Paths,
) -> Attribution {
    let mut named = thought(cutter, side, paths, late);
    if !paths.away(side) {
        return named;
    }
    if acked == 0 {
        named.grounds.at_most(unbound());
        return named;
    }
    let beyond = i64::from(acked) - paths.to(side);
    let mut queue = false;
    if beyond >= NOISE_NS.get() {
        let bounded = since.time_ns + i64::from(acked);
        let evidence = cutter.ends();
        // ACKs that could not be held were as late just before: this one was in the same queue
        let round = *side.pick(&paths.rounds);
        if beyond < DELACK_LEAST_NS.get() || beyond <= round.beyond(paths.to(side)) + NOISE_NS.get() {
            queue = beyond >= DELACK_LEAST_NS.get();
            let late = Grounds::probable(Because::KernelWasLate, Hypothesis::BusyHost);
            cutter.cut(
                bounded,
                row(Cause::Queueing, Owner::Network, Rule::Queue, late, evidence),
            );
        } else {
            let mut held = Grounds::probable(Because::KernelWasLate, Cause::Queueing);
            if late > 0 {
                held.at_most(named.grounds); // the path may have delayed that ACK like the answer
            }
            cutter.cut(bounded, program_row(side, Rule::Turn, held, evidence));
        }
    }
    let between = cutter.end - since.time_ns - i64::from(acked);
    if late == 0 || i64::from(late) < between {
        named.grounds = Grounds::proven(Because::KernelAnswered);
    }
    if queue {
        // the answer may have been in such a queue as well
        named
            .grounds
            .at_most(Grounds::probable(Because::KernelWasLate, Cause::Queueing));
    }
    named
}

/// Returns the grounds where no kernel's answer bounds the path's share.
pub(super) fn unbound() -> Grounds {
    Grounds::probable(Because::NoKernelAnswer, Cause::Network)
}

/// Judges a turn where a nearer host may acknowledge for this side: the path takes as long as a SYN/ACK, until
/// `reached`, and the program probably the rest.
#[cold]
pub(super) fn behind(cutter: &mut Cutter<'_>, reached: i64, slice: &TimeSlice<'_>) {
    let (side, evidence) = (slice.sender, cutter.ends());
    let probable = |cause, owner, rule, rival| {
        let grounds = Grounds::probable(Because::AnsweredFor, rival);
        row(cause, owner, rule, grounds, evidence)
    };
    let think = think(side);
    cutter.cut(
        reached,
        probable(Cause::Network, Owner::Network, Rule::Rtt, think),
    );
    cutter.cut(
        slice.end,
        probable(think, Owner::of(side), Rule::Turn, Cause::Network),
    );
}

/// Attributes the rest of the cutter's time to this side's program.
pub(super) fn think_on(cutter: &mut Cutter<'_>, side: Side, paths: &Paths) {
    let named = thought(cutter, side, paths, 0);
    cutter.cut(cutter.end, named);
}

/// Attributes the time before a further segment of a message to the program.
#[inline(always)]
pub(super) fn paused(cutter: &mut Cutter<'_>, grounds: Grounds, slice: &TimeSlice<'_>, paths: &Paths) {
    reach(cutter, slice, paths);
    let (side, ends) = (slice.sender, cutter.ends());
    cutter.cut(slice.end, program_row(side, Rule::App, grounds, ends));
}

/// Attributes the time from an answer's last byte to the FIN that ends it: the program closed late. Away from its host
/// the FIN may be a retransmission.
pub(super) fn closed_late(cutter: &mut Cutter<'_>, slice: &TimeSlice<'_>, paths: &Paths) {
    let (side, ends) = (slice.sender, cutter.ends());
    let grounds = if paths.away(side) {
        Grounds::probable(Because::CopyMayBeLost, Cause::Rto)
    } else {
        Grounds::proven(Because::NothingOpen)
    };
    cutter.cut(slice.end, program_row(side, Rule::LateClose, grounds, ends));
}

/// Attributes the time between two writes: a segment right behind one that was not full.
#[inline(always)]
pub(super) fn wrote_again(cutter: &mut Cutter<'_>, slice: &TimeSlice<'_>) {
    let (side, ends) = (slice.sender, cutter.ends());
    let grounds = Grounds::proven(Because::NothingOpen);
    cutter.cut(slice.end, program_row(side, Rule::WriteGap, grounds, ends));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::rtt::KernelRtt;
    use crate::judge::Row;
    use crate::judge::partition::slices::{slice, step};

    const MS: i64 = 1_000_000;

    #[test]
    fn what_kernels_took_just_before_is_suspected_to_be_a_queue() {
        let suspected = |round: i64, because| {
            let step = step(40 * MS);
            let slice = slice(&step, Side::Server);
            let paths = Paths {
                min: [Some(0), Some(6 * MS)],
                rounds: [KernelRtt::default(), KernelRtt::new(round, true)],
                ..Paths::default()
            };
            let mut rows: Vec<Row> = Vec::new();
            let cutter = &Cutter::new(&slice, &mut rows);
            let grounds = Grounds::suspected(because, Cause::Queueing);
            let named = row(Cause::ServerThink, Owner::Server, Rule::Turn, grounds, [0; 3]);
            more_likely(named, cutter, Side::Server, &paths).cause
        };
        assert_eq!(suspected(26 * MS, Because::PathMayBeMore), Cause::Queueing);
        assert_eq!(suspected(26 * MS - 2, Because::PathMayBeMore), Cause::ServerThink);
        assert_eq!(suspected(40 * MS, Because::NoKernelAnswer), Cause::ServerThink);
    }

    #[test]
    fn no_turn_is_proven_where_something_nearer_acknowledges() {
        // ACKs come after 1 ms, handshakes took 100 ms at best
        let turn = |waited: i64, behind| {
            let step = step(waited);
            let slice = slice(&step, Side::Server);
            let paths = Paths {
                min: [Some(0), Some(MS)],
                behind: [None, behind],
                ..Paths::default()
            };
            let mut rows: Vec<Row> = Vec::new();
            let cutter = &mut Cutter::new(&slice, &mut rows);
            bounded(cutter, step.from, MS as u32, 0, Side::Server, &paths).grounds
        };
        let proven = Grounds::proven(Because::KernelAnswered);
        assert_eq!(turn(200 * MS, None), proven);
        let capped = Grounds::probable(Because::AnsweredFor, Cause::Network);
        assert_eq!(turn(75 * MS, Some(100 * MS)), capped);
        assert_eq!(
            turn(75 * MS - 1, Some(100 * MS)),
            proven,
            "sooner than that host answers"
        );
    }
}
