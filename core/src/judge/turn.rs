//! Turns: the time from the peer's last byte to the first segment of the answer. The path has its part of it, and the
//! program the rest, unless one of their rivals explains it (`elsewhere`, `cork`, `nagle`, `repair`).
//!
//! Claims, predictions and rivals: see `path` and `program`.

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::path::{attribute_path, attribute_request_path, queue_by_timestamps};
use super::program::program_attribution;
use super::vocabulary::{Because, Cause, Grade, Hypothesis, Owner, Rule};
use crate::base::{At, Side};
use crate::limits::{AT_HOST_NS, DELACK_LEAST_NS, HELD_ELSEWHERE_NS, NOISE_NS};
use crate::observe::Turn;

/// Judges the first segment of a turn. A pure ACK by its kernel bounds the path's share, unless that ACK was held.
#[inline(always)]
pub(super) fn judge(cutter: &mut Cutter<'_>, turn: &Turn) {
    let (slice, paths, since) = (cutter.slice, cutter.paths, turn.since);
    let side = slice.sender;
    if let Some(far) = paths.rtt_behind_middlebox(side, slice.step.to.time_ns - since.time_ns) {
        return judge_behind_middlebox(cutter, since.time_ns + far);
    }
    attribute_turn_path(cutter, since);
    let mut program = turn_attribution_bounded_by_ack(cutter, turn, 0);
    if !paths.is_away(side)
        && side == Side::Server
        && since.time_ns - slice.request_at_ns >= NOISE_NS.get()
        && slice.step.to.time_ns - since.time_ns <= AT_HOST_NS.get()
    {
        // the peer's last segment is not the request, but carried an ACK: the answer may have been written before
        let freed = Grounds::probable(Because::WithTheAck, Cause::Nagle);
        program.grounds.at_most(freed);
    }
    if HELD_ELSEWHERE_NS.contains(slice.end_ns - cutter.attributed_until_ns) {
        program
            .grounds
            .at_most(Grounds::probable(Because::TimerLength, Hypothesis::OtherPath));
    }
    cutter.attribute(slice.end_ns, queue_if_likelier(program, cutter));
}

/// Judges the first segment of a turn that was late on its way, by its sender's timestamps. The numbers are those of
/// `TurnDoubt::Queued`.
pub(super) fn judge_queued(
    cutter: &mut Cutter<'_>,
    turn: &Turn,
    late_ns: u32,
    queued_ns: u32,
    is_clock_fine: bool,
) {
    let since = turn.since;
    let (paths, side, end) = (cutter.paths, cutter.slice.sender, cutter.slice.end_ns);
    // A long handshake may have stood in the queue that delays this segment. It shows a middlebox only if the proven
    // delay is less than an eighth of it.
    let far_rtt_ns = paths.rtt_behind_middlebox(side, cutter.slice.step.to.time_ns - since.time_ns);
    if let Some(far_rtt_ns) = far_rtt_ns.filter(|far_rtt_ns| i64::from(queued_ns) < far_rtt_ns / 8) {
        return judge_behind_middlebox(cutter, since.time_ns + far_rtt_ns);
    }
    attribute_turn_path(cutter, since);
    let left_at = |passed: u32| end.saturating_sub(i64::from(passed));
    let is_stamped = is_clock_fine && queued_ns == 0 && paths.is_away(side);
    cutter.end_ns = left_at(if is_stamped { late_ns } else { queued_ns }).max(cutter.attributed_until_ns);
    let late_ns = if queued_ns > 0 { 0 } else { late_ns };
    let program = turn_attribution_bounded_by_ack(cutter, turn, late_ns);
    if late_ns > 0 && !is_stamped && paths.is_away(side) && program.grounds.grade != Grade::Suspected {
        // the timestamp shows when the answer left its host, although the clock's rate is not known well yet
        cutter.end_ns = left_at(late_ns).max(cutter.attributed_until_ns);
    }
    cutter.attribute(cutter.end_ns, queue_if_likelier(program, cutter));
    cutter.end_ns = end;
    cutter.attribute(end, queue_by_timestamps(cutter.end_frames()));
}

/// Judges a turn where a nearer host may acknowledge for this side: the path takes as long as a SYN/ACK, until
/// `reached`, and the program probably the rest.
#[cold]
fn judge_behind_middlebox(cutter: &mut Cutter<'_>, reached: i64) {
    let (slice, evidence) = (cutter.slice, cutter.end_frames());
    let probable = |cause, owner, rule, rival| {
        let grounds = Grounds::probable(Because::AnsweredFor, rival);
        Attribution::new(cause, owner, rule, grounds, evidence)
    };
    let program = Cause::program_of(slice.sender);
    cutter.attribute(
        reached,
        probable(Cause::Network, Owner::Network, Rule::Rtt, program),
    );
    cutter.attribute(
        slice.end_ns,
        probable(program, Owner::of(slice.sender), Rule::Turn, Cause::Network),
    );
}

/// Attributes the path from the peer's last byte to the answer's first one. The program's time mostly follows.
#[inline(always)]
pub(super) fn attribute_turn_path(cutter: &mut Cutter<'_>, since: At) {
    if cutter.slice.sender == Side::Server {
        return attribute_request_path(cutter);
    }
    if since.time_ns > cutter.attributed_until_ns {
        attribute_until_continued(cutter, since);
    }
    attribute_path(cutter, cutter.attributed_until_ns, Side::Client);
}

/// Attributes the time inside a request until the server has let the client continue ("100 Continue").
#[cold]
fn attribute_until_continued(cutter: &mut Cutter<'_>, since: At) {
    let (end, to_frame) = (cutter.end_ns, cutter.to_frame);
    (cutter.end_ns, cutter.to_frame) = (since.time_ns.min(end), since.frame);
    attribute_path(cutter, cutter.attributed_until_ns, Side::Server);
    cutter.attribute(cutter.end_ns, turn_attribution(cutter, Side::Server, 0));
    (cutter.end_ns, cutter.from_frame, cutter.to_frame) = (end, since.frame, to_frame);
}

/// Returns the attribution of a turn to the program. `late_ns` is the delay of its segment by timestamps. Only
/// suspected where the larger part may be the path's: over labelled paths of varying delay, a tenth of such time was
/// the program's.
#[inline(always)]
pub(super) fn turn_attribution(cutter: &Cutter<'_>, side: Side, late_ns: u32) -> Attribution {
    let grounds = match cutter.paths.best_rtt(side) {
        None => Grounds::probable(Because::NoRoundTrip, Cause::Network),
        Some(best) => {
            let kernel_rtt = *side.pick(&cutter.paths.kernel_rtts);
            let beyond = kernel_rtt.beyond(best) + i64::from(late_ns);
            if beyond >= NOISE_NS.get() && beyond > (cutter.end_ns - cutter.attributed_until_ns) / 2 {
                Grounds::suspected(Because::PathMayBeMore, Cause::Queueing)
            } else {
                Grounds::proven(Because::PathBounded)
            }
        }
    };
    program_attribution(side, Rule::Turn, grounds, cutter.end_frames())
}

/// Replaces a suspected program by a suspected queue if kernels' recent answers took most of this time on the path.
/// Over labelled paths of varying delay, a twentieth of such time was the program's.
fn queue_if_likelier(program: Attribution, cutter: &Cutter<'_>) -> Attribution {
    let (side, paths) = (cutter.slice.sender, cutter.paths);
    let kernel_rtt = *side.pick(&paths.kernel_rtts);
    let is_mostly_path =
        2 * kernel_rtt.beyond(paths.rtt_to(side)) > cutter.end_ns - cutter.attributed_until_ns;
    if !is_mostly_path || program.grounds.because != Because::PathMayBeMore {
        return program;
    }
    let grounds = Grounds::suspected(Because::PathMayBeMore, Cause::program_of(side));
    Attribution::new(
        Cause::Queueing,
        Owner::Network,
        Rule::Queue,
        grounds,
        cutter.end_frames(),
    )
}

/// Returns the attribution of a turn to the program. Away from its host the request's arrival is known only by the
/// kernel's own ACK: the time before it is attributed to a queue or a held ACK. `late_ns` is as in
/// `turn_attribution`.
#[inline(always)]
pub(super) fn turn_attribution_bounded_by_ack(
    cutter: &mut Cutter<'_>,
    turn: &Turn,
    late_ns: u32,
) -> Attribution {
    let waited = cutter.end_ns - turn.since.time_ns;
    let mut program = attribute_until_kernel_answer(cutter, turn, late_ns);
    if cutter
        .paths
        .rtt_behind_middlebox(cutter.slice.sender, waited)
        .is_some()
    {
        // a nearer host may have acknowledged for this side
        program
            .grounds
            .at_most(Grounds::probable(Because::AnsweredFor, Cause::Network));
    }
    program
}

/// Attributes the time before the kernel's ACK, and returns the attribution of the rest to the program.
#[inline(always)]
fn attribute_until_kernel_answer(cutter: &mut Cutter<'_>, turn: &Turn, late_ns: u32) -> Attribution {
    let (since, acked_ns) = (turn.since, turn.acked_ns);
    let (side, paths) = (cutter.slice.sender, cutter.paths);
    let mut program = turn_attribution(cutter, side, late_ns);
    if !paths.is_away(side) {
        return program;
    }
    if acked_ns == 0 {
        let no_answer = Grounds::probable(Because::NoKernelAnswer, Cause::Network);
        program.grounds.at_most(no_answer);
        return program;
    }
    let beyond = i64::from(acked_ns) - paths.rtt_to(side);
    let mut was_queued = false;
    if beyond >= NOISE_NS.get() {
        let acked_at = since.time_ns + i64::from(acked_ns);
        let evidence = cutter.end_frames();
        // ACKs that could not be held were as late just before: this one was in the same queue
        let kernel_rtt = *side.pick(&paths.kernel_rtts);
        if beyond < DELACK_LEAST_NS.get() || beyond <= kernel_rtt.beyond(paths.rtt_to(side)) + NOISE_NS.get()
        {
            was_queued = beyond >= DELACK_LEAST_NS.get();
            let grounds = Grounds::probable(Because::KernelWasLate, Hypothesis::BusyHost);
            cutter.attribute(
                acked_at,
                Attribution::new(Cause::Queueing, Owner::Network, Rule::Queue, grounds, evidence),
            );
        } else {
            let mut held = Grounds::probable(Because::KernelWasLate, Cause::Queueing);
            if late_ns > 0 {
                held.at_most(program.grounds); // the path may have delayed that ACK like the answer
            }
            cutter.attribute(acked_at, program_attribution(side, Rule::Turn, held, evidence));
        }
    }
    let after_ack = cutter.end_ns - since.time_ns - i64::from(acked_ns);
    if late_ns == 0 || i64::from(late_ns) < after_ack {
        program.grounds = Grounds::proven(Because::KernelAnswered);
    }
    if was_queued {
        // the answer may have been in such a queue as well
        program
            .grounds
            .at_most(Grounds::probable(Because::KernelWasLate, Cause::Queueing));
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::rtt::KernelRtt;
    use crate::judge::partition::slices::{slice, step};
    use crate::judge::{Paths, Row};

    const MS: i64 = 1_000_000;

    #[test]
    fn what_kernels_took_just_before_is_suspected_to_be_a_queue() {
        let suspected = |round: i64, because| {
            let step = step(40 * MS);
            let slice = slice(&step, Side::Server);
            let paths = Paths {
                best_rtts_ns: [Some(0), Some(6 * MS)],
                kernel_rtts: [KernelRtt::default(), KernelRtt::new(round, true)],
                ..Paths::default()
            };
            let mut rows: Vec<Row> = Vec::new();
            let cutter = &Cutter::new(&slice, &paths, &mut rows);
            let grounds = Grounds::suspected(because, Cause::Queueing);
            let program = Attribution::new(Cause::ServerThink, Owner::Server, Rule::Turn, grounds, [0; 3]);
            queue_if_likelier(program, cutter).cause
        };
        assert_eq!(suspected(26 * MS, Because::PathMayBeMore), Cause::Queueing);
        assert_eq!(suspected(26 * MS - 2, Because::PathMayBeMore), Cause::ServerThink);
        assert_eq!(suspected(40 * MS, Because::NoKernelAnswer), Cause::ServerThink);
    }

    #[test]
    fn no_turn_is_proven_where_something_nearer_acknowledges() {
        // ACKs come after 1 ms, handshakes took 100 ms at best
        let turn = |waited: i64, far_handshake| {
            let step = step(waited);
            let slice = slice(&step, Side::Server);
            let paths = Paths {
                best_rtts_ns: [Some(0), Some(MS)],
                handshake_behind_middlebox_ns: [None, far_handshake],
                ..Paths::default()
            };
            let mut rows: Vec<Row> = Vec::new();
            let cutter = &mut Cutter::new(&slice, &paths, &mut rows);
            let turn = Turn {
                since: step.from,
                acked_ns: MS as u32,
                doubt: None,
            };
            turn_attribution_bounded_by_ack(cutter, &turn, 0).grounds
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
