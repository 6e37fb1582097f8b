//! Which rows a stall becomes.

use super::*;
use crate::exchange::TimeSlice;

/// The rows of a stall of 41 ms and 40 us beside its sender, held for 40 ms, of which the program had taken `program`
/// at most and about `likely`, on a path of 1 ms and 20 us.
fn rows(program: i64, likely: i64, because: Because) -> Vec<(Cause, Rule, Grade, i64)> {
    rows_at([MS, 20 * US], program, likely, because)
}

/// The same so far from its receiver and its sender.
fn rows_at(
    [receiver, sender]: [i64; 2],
    program: i64,
    likely: i64,
    because: Because,
) -> Vec<(Cause, Rule, Grade, i64)> {
    let candidate = candidate(40 * MS + receiver, sender + 20 * US);
    let step = Step {
        from: candidate.small,
        to: candidate.freed,
        wait: Wait::App,
    };
    let slice = TimeSlice {
        start_ns: 0,
        end_ns: candidate.freed.time_ns,
        from_frame: 1,
        to_frame: 3,
        request_at_ns: 0,
        sender: Side::Server,
        step: &step,
    };
    let paths = Paths {
        best_rtts_ns: [Some(receiver), Some(sender)],
        ..Paths::default()
    };
    let ruling = Ruling::Held {
        hold_ns: 40 * MS,
        program: ProgramTime {
            max_ns: program,
            likely_ns: likely,
        },
        grounds: Grounds::proven(because),
    };
    let mut rows: Vec<Row> = Vec::new();
    attribute(&mut Cutter::new(&slice, &paths, &mut rows), &candidate, ruling);
    assert!(rows.iter().all(|row| row.owner != Owner::Network));
    rows.iter()
        .map(|row| (row.cause, row.rule, row.grounds.grade, row.end_ns))
        .collect()
}

const NAGLE: (Cause, Rule) = (Cause::Nagle, Rule::NagleDelayedAck);
const HELD: (Cause, Rule) = (Cause::DelayedAck, Rule::NagleDelayedAck);
const PROGRAM: (Cause, Rule) = (Cause::ServerThink, Rule::Control);

/// Rows by what they are, how sure that is, and when they end.
fn of(rows: &[((Cause, Rule), Grade, i64)]) -> Vec<(Cause, Rule, Grade, i64)> {
    let row = |((cause, rule), grade, end): &_| (*cause, *rule, *grade, *end);
    rows.iter().map(row).collect()
}

#[test]
fn what_the_program_had_taken_of_a_stall_is_its_first_part() {
    const END: i64 = 41 * MS + 40 * US;
    let (proven, probable) = (Grade::Proven, Grade::Probable);
    let because = Because::ControlShorter;
    let whole = |first| of(&[(NAGLE, first, MS), (HELD, proven, 41 * MS), (NAGLE, proven, END)]);
    let soon = SOON_NS.get();
    assert_eq!(rows(0, 0, because), whole(proven));
    assert_eq!(rows(soon, 0, because), whole(proven), "a busy host");
    assert_eq!(
        rows(soon + 1, 0, because),
        whole(probable),
        "about the round trip"
    );
    assert_eq!(rows(MS + soon, 0, because), whole(probable));
    let bounded = of(&[
        (NAGLE, probable, MS),
        (HELD, probable, MS + soon + 1),
        (HELD, proven, 41 * MS),
        (NAGLE, proven, END),
    ]);
    assert_eq!(rows(MS + soon + 1, 0, because), bounded);
    let most = MS + 20 * US + 3 * MS;
    let known = of(&[
        (PROGRAM, probable, most),
        (HELD, proven, 41 * MS),
        (NAGLE, proven, END),
    ]);
    assert_eq!(rows(most, most, because), known);
    let likely = of(&[
        (NAGLE, probable, MS),
        (HELD, probable, most),
        (HELD, proven, 41 * MS),
        (NAGLE, proven, END),
    ]);
    assert_eq!(rows(most, most - 1, because), likely, "a round trip, and noise");
    // what explains all of it ends with the ACK
    let all = of(&[(PROGRAM, probable, 41 * MS), (NAGLE, probable, END)]);
    assert_eq!(rows(90 * MS, 90 * MS, Because::ControlExplains), all);
}

#[test]
fn a_program_has_its_part_of_a_stall_first_wherever_it_is_seen() {
    const END: i64 = 55 * MS + 40 * US;
    let (proven, probable) = (Grade::Proven, Grade::Probable);
    let because = Because::ControlShorter;
    let (here, far) = (20 * US, 15 * MS);
    // beside the receiver the hold is seen first, where the program had no part
    let whole = of(&[
        (NAGLE, proven, here),
        (HELD, proven, 40 * MS + here),
        (NAGLE, proven, END),
    ]);
    assert_eq!(rows_at([here, far], 0, 0, because), whole);
    // it wrote again within a round trip: its part, then the hold
    let within = of(&[
        (NAGLE, probable, far + here),
        (HELD, proven, 55 * MS + here),
        (NAGLE, proven, END),
    ]);
    assert_eq!(rows_at([here, far], far + here, 0, because), within);
    // or within less
    let less = of(&[
        (NAGLE, probable, 5 * MS),
        (NAGLE, proven, far + here),
        (HELD, proven, 55 * MS + here),
        (NAGLE, proven, END),
    ]);
    assert_eq!(rows_at([here, far], 5 * MS, 0, because), less);
    let longer = of(&[
        (PROGRAM, probable, 20 * MS),
        (HELD, proven, 55 * MS + here),
        (NAGLE, proven, END),
    ]);
    assert_eq!(rows_at([here, far], 20 * MS, 20 * MS, because), longer);
    // half way
    let half = of(&[
        (NAGLE, probable, far),
        (HELD, proven, 55 * MS),
        (NAGLE, proven, 55 * MS + 20 * US),
    ]);
    assert_eq!(rows_at([far / 2; 2], far, 0, because), half);
    // beside the sender to the microsecond
    let at = |sender| rows_at([MS, sender], 2 * MS, 0, because).get(2).map(|row| row.3);
    let near = AT_HOST_NS.get();
    assert_eq!((at(near - 1), at(near)), (Some(41 * MS), Some(41 * MS + near)));
}

#[test]
fn what_began_a_message_was_held_since_it_was_written() {
    let held_by = |side, mut judged: SenderVerdict, ack| {
        judged.measures.path.receiver_rtt_ns = MS;
        let wait = Wait::Small(Box::new(candidate(ack, 40 * US)));
        let since = held_since(&wait, side, &[judged], &Paths::default());
        since.map(|at| at.time_ns)
    };
    let since = |judged, ack| held_by(Side::Client, judged, ack);
    let paused = |ns| {
        let mut seen = Seen::with(3, 0);
        for _ in 0..3 {
            seen.store.add(&candidate(ns - MS, MS));
        }
        seen.judged()
    };
    assert_eq!(since(paused(3 * MS - 1), 41 * MS), Some(0), "with the small one");
    assert_eq!(
        since(paused(3 * MS), 41 * MS),
        Some(4 * MS),
        "so long it may have taken"
    );
    assert_eq!(since(paused(5 * MS), 41 * MS), Some(6 * MS));
    assert_eq!(since(Seen::with(2, 3).judged(), 41 * MS), None, "not proven");
    let pushed = |judged, ack| held_by(Side::Server, judged, ack);
    assert_eq!(pushed(paused(5 * MS), 41 * MS), Some(6 * MS));
    assert_eq!(
        pushed(Seen::with(2, 3).judged(), 41 * MS),
        Some(6 * MS),
        "probable will do"
    );
    assert_eq!(pushed(paused(5 * MS), 20 * MS), None, "no hold");
    assert_eq!(since(paused(5 * MS), 20 * MS), None, "no hold");
}

#[test]
fn without_a_control_group_the_end_is_proven_and_not_the_length() {
    const END: i64 = 41 * MS + 40 * US;
    let (proven, probable) = (Grade::Proven, Grade::Probable);
    let known = 41 * MS - UNHELD_NS.get();
    let expected = of(&[
        (NAGLE, probable, MS),
        (HELD, probable, known),
        (HELD, proven, 41 * MS),
        (NAGLE, proven, END),
    ]);
    assert_eq!(rows(0, 0, Because::FollowsAcks), expected);
    let whole = of(&[(NAGLE, proven, MS), (HELD, proven, 41 * MS), (NAGLE, proven, END)]);
    assert_eq!(rows(0, 0, Because::ControlShorter), whole, "a control group");
}

/// Nothing but a wait of so long, which the server ends in frame 3.
fn wait_of<T>(
    end: i64,
    paths: &Paths,
    rows_of: impl FnOnce(&mut Cutter<'_>) -> T,
) -> Vec<(Cause, Rule, Grade, i64)> {
    let at = |frame, time_ns| At { frame, time_ns };
    let step = Step {
        from: at(1, 0),
        to: at(3, end),
        wait: Wait::App,
    };
    let slice = TimeSlice {
        start_ns: 0,
        end_ns: end,
        from_frame: 1,
        to_frame: 3,
        request_at_ns: 0,
        sender: Side::Server,
        step: &step,
    };
    let mut rows: Vec<Row> = Vec::new();
    rows_of(&mut Cutter::new(&slice, paths, &mut rows));
    rows.iter()
        .map(|row| (row.cause, row.rule, row.grounds.grade, row.end_ns))
        .collect()
}

#[test]
fn the_first_of_the_pieces_that_fill_a_segment_was_held() {
    let of_sender = |judged: &SenderVerdict| {
        wait_of(20 * MS, &Paths::default(), |cutter| {
            filled(cutter, Some(judged), 0);
        })
    };
    let probable = Grade::Probable;
    let program = (Cause::ServerThink, Rule::App);
    let held = of(&[
        (program, probable, 5 * MS),
        ((Cause::Nagle, Rule::NagleWait), probable, 20 * MS),
    ]);
    assert_eq!(of_sender(&Seen::with(3, 3).judged()), held);
    let whole = of(&[(program, probable, 20 * MS)]);
    assert_eq!(of_sender(&Seen::with(8, 0).judged()), whole, "it writes once");
    let few = Seen::with(2, 3).judged();
    assert_eq!(of_sender(&few), whole, "it is not known to wait for ACKs");
}

#[test]
fn what_the_end_of_a_pause_was_late_on_its_way_is_none_of_the_pause() {
    let pause = |fine, late, grounds| {
        let candidate = Candidate {
            is_clock_fine: fine,
            lateness_ns: Some(late),
            ..candidate(40 * MS, 10 * MS)
        };
        wait_of(50 * MS, &Paths::default(), |cutter| {
            attribute(cutter, &candidate, Ruling::Pause { grounds });
        })
    };
    let (program, proven) = ((Cause::ServerThink, Rule::LookAlike), Grade::Proven);
    let queue = (Cause::Queueing, Rule::Timestamps);
    let known = Grounds::proven(Because::GoesWithoutAck);
    let split = of(&[(program, proven, 40 * MS), (queue, Grade::Probable, 50 * MS)]);
    assert_eq!(pause(true, 10_000_000, known), split);
    let whole = of(&[(program, proven, 50 * MS)]);
    assert_eq!(pause(false, 10_000_000, known), whole, "a coarse clock");
    assert_eq!(pause(true, 3_000_000, known), whole, "no more than noise");
    let unclear = Grounds::probable(Because::LateAfterAck, Cause::Nagle);
    let whole = of(&[(program, Grade::Probable, 50 * MS)]);
    assert_eq!(pause(true, 10_000_000, unclear), whole, "not proven anyway");
}

#[test]
fn pauses_inside_messages_do_not_bound_how_long_an_answer_took() {
    let candidate = candidate(41 * MS, 40 * US);
    let paths = Paths {
        best_rtts_ns: [Some(MS), Some(20 * US)],
        ..Paths::default()
    };
    let held = |because| {
        let ruling = Ruling::Held {
            hold_ns: 40 * MS,
            program: ProgramTime::default(),
            grounds: Grounds::proven(because),
        };
        let rows = wait_of(candidate.freed.time_ns, &paths, |cutter| {
            judge_turn(cutter, candidate.small, &candidate, Some(ruling));
        });
        let proven = rows
            .iter()
            .find(|row| row.1 == Rule::NagleDelayedAck && row.2 == Grade::Proven);
        (rows.len(), proven.map(|row| row.3))
    };
    let from = 41 * MS - UNHELD_NS.get();
    assert_eq!(held(Because::ControlShorter), held(Because::FollowsAcks));
    assert!(
        held(Because::FollowsAcks).1 > Some(from),
        "the end alone is proven"
    );
}
