//! Which rows a stall becomes.

use super::*;

/// The rows of a stall of 41 ms and 40 us, held for 40 ms, of which the program had taken `program` at most and about
/// `likely`, on a path of 1 ms and 20 us.
fn rows(program: i64, likely: i64, because: Because) -> Vec<(Cause, Rule, Grade, i64)> {
    let c = candidate(41 * MS, 40 * US);
    let step = Step {
        from: c.small,
        to: c.freed,
        wait: Wait::App,
    };
    let piece = Piece {
        start: 0,
        end: c.freed.time_ns,
        from_frame: 1,
        to_frame: 3,
        asked: 0,
        sender: Side::Server,
        step: &step,
    };
    let paths = Paths {
        min: [Some(MS), Some(20 * US)],
        ..Paths::default()
    };
    let ruling = Ruling::Held {
        hold: 40 * MS,
        grounds: Grounds::proven(because),
        program,
        likely,
    };
    let mut rows: Vec<Row> = Vec::new();
    cut(&mut Cutter::of(&piece, &mut rows), &c, ruling, &piece, &paths);
    assert!(rows.iter().all(|row| row.owner != Owner::Network));
    rows.iter()
        .map(|row| (row.cause, row.rule, row.grounds.grade, row.end))
        .collect()
}

#[test]
fn what_the_program_had_taken_of_a_stall_goes_into_its_round_trip_first() {
    const END: i64 = 41 * MS + 40 * US;
    const PATH: i64 = MS + 20 * US;
    let (nagle, held, rule) = (Cause::Nagle, Cause::DelayedAck, Rule::NagleDelayedAck);
    let (proven, probable) = (Grade::Proven, Grade::Probable);
    let because = Because::ControlShorter;
    let whole = |grade| {
        vec![
            (nagle, rule, grade, MS),
            (held, rule, proven, 41 * MS),
            (nagle, rule, grade, END),
        ]
    };
    assert_eq!(rows(0, 0, because), whole(proven));
    assert_eq!(rows(3 * MS - 1, 0, because), whole(proven), "a busy host");
    assert_eq!(
        rows(3 * MS, 0, because),
        whole(probable),
        "less than the round trip and a busy host"
    );
    assert_eq!(rows(PATH + 3 * MS - 1, 0, because), whole(probable));
    let most = PATH + 3 * MS;
    let bounded = vec![
        (nagle, rule, probable, MS),
        (held, rule, probable, 4 * MS),
        (held, rule, proven, 41 * MS),
        (nagle, rule, probable, END),
    ];
    assert_eq!(rows(most, 0, because), bounded);
    let known = vec![
        (Cause::ServerThink, Rule::Control, probable, 4 * MS),
        (held, rule, proven, 41 * MS),
        (nagle, rule, probable, END),
    ];
    assert_eq!(rows(most, most, because), known);
    // what explains all of it ends with the ACK
    let all = vec![
        (Cause::ServerThink, Rule::Control, probable, 41 * MS),
        (nagle, rule, probable, END),
    ];
    assert_eq!(rows(90 * MS, 90 * MS, Because::ControlExplains), all);
}

#[test]
fn what_began_a_message_was_held_since_it_was_written_for_sure() {
    let since = |mut judged: Judged, ack| {
        judged.receiver_rtt = MS;
        let wait = Wait::Small(Box::new(candidate(ack, 40 * US)));
        let since = held_since(&wait, Side::Server, 0, &[judged], &Paths::default());
        since.map(|at| at.time_ns)
    };
    let paused = |ns| {
        let mut seen = Seen::with(3, 0);
        for _ in 0..3 {
            seen.pools.add(0, &candidate(ns - MS, MS));
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
    assert_eq!(since(paused(5 * MS), 20 * MS), None, "no hold");
}
