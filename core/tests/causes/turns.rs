//! A server's turn: its program, its path, or an ACK elsewhere.

use latpcap_core::base::At;
use latpcap_core::judge::{Because, Cause, Grade, Paths, Row};
use latpcap_core::observe::{Turn, TurnDoubt, Wait};

use crate::common::MS;
use crate::step::{US, cut, proven};

#[test]
fn an_answer_is_its_programs_until_it_left_by_its_own_time_stamp() {
    let paths = Paths {
        best_rtts_ns: [None, Some(6 * MS)],
        ..Paths::default()
    };
    let judged = |acked: i64, late: i64, took: i64| {
        let since = At { frame: 1, time_ns: 0 };
        let (acked, late) = ((acked * MS) as u32, (late * MS) as u32);
        let turn = Wait::Turn(Turn {
            since,
            acked_ns: acked,
            doubt: Some(TurnDoubt::Queued {
                late_ns: late,
                queued_ns: 0,
                is_clock_fine: false,
            }),
        });
        let timed = Wait::Turn(Turn {
            since,
            acked_ns: acked,
            doubt: Some(TurnDoubt::CorkLength {
                late_ns: late,
                sender_id: 0,
                may_be_retransmission: false,
            }),
        });
        let [turn, timed] = [turn, timed].map(|wait| {
            let rows = cut(wait, 0, (6 + took) * MS, &[], &paths);
            let of = |row: &Row| (row.cause, (row.end_ns - 6 * MS) / MS, row.grounds.grade);
            rows.iter().skip(1).map(of).collect::<Vec<_>>()
        });
        assert_eq!(turn, timed, "{acked} {late} {took}");
        turn
    };
    let (think, queue) = (Cause::ServerThink, Cause::Queueing);
    let (proven, probable) = (Grade::Proven, Grade::Probable);
    assert_eq!(judged(6, 20, 57), [(think, 37, proven), (queue, 57, probable)]);
    assert_eq!(judged(6, 20, 21), [(think, 1, proven), (queue, 21, probable)]);
    assert_eq!(judged(7, 20, 21), [(think, 21, Grade::Suspected)]);
    // its kernel was late as well
    let both = [(queue, 9, probable), (think, 37, proven), (queue, 57, probable)];
    assert_eq!(judged(15, 20, 57), both);
    // or it held its ACK back; where the path may have been the larger part of the wait, no more than suspected
    let suspected = Grade::Suspected;
    assert_eq!(
        judged(41, 40, 77),
        [(think, 37, suspected), (queue, 77, probable)]
    );
    assert_eq!(judged(41, 38, 77), [(think, 39, probable), (queue, 77, probable)]);
    // no kernel says when the request came
    assert_eq!(judged(0, 20, 57), [(think, 37, probable), (queue, 57, probable)]);
    assert_eq!(judged(0, 20, 39), [(think, 39, Grade::Suspected)]);
    // not even then was it the program's alone
    assert_eq!(judged(6, 20, 20), [(think, 20, Grade::Suspected)]);
}

#[test]
fn a_wait_that_no_kernel_bounds_is_not_proven_the_programs_however_it_is_told() {
    let since = At { frame: 1, time_ns: 0 };
    let waits = |acked| {
        [
            Wait::Turn(Turn {
                since,
                acked_ns: acked,
                doubt: None,
            }),
            Wait::Turn(Turn {
                since,
                acked_ns: acked,
                doubt: Some(TurnDoubt::Queued {
                    late_ns: 0,
                    queued_ns: 0,
                    is_clock_fine: false,
                }),
            }),
            Wait::Turn(Turn {
                since,
                acked_ns: acked,
                doubt: Some(TurnDoubt::Queued {
                    late_ns: 0,
                    queued_ns: 20 * MS as u32,
                    is_clock_fine: false,
                }),
            }),
            Wait::Turn(Turn {
                since,
                acked_ns: acked,
                doubt: Some(TurnDoubt::CorkLength {
                    late_ns: 0,
                    sender_id: 0,
                    may_be_retransmission: false,
                }),
            }),
        ]
    };
    let proven = |wait, path| {
        let paths = Paths {
            best_rtts_ns: [None, Some(path)],
            ..Paths::default()
        };
        let rows = cut(wait, 0, 230 * MS, &[], &paths);
        let think = |row: &&Row| row.cause == Cause::ServerThink;
        rows.iter().find(think).unwrap().grounds.grade == Grade::Proven
    };
    for wait in waits(0) {
        assert!(!proven(wait.clone(), 6 * MS), "{wait:?}");
        assert!(proven(wait.clone(), 69_999), "{wait:?} beside its host");
    }
    for wait in waits(7 * MS as u32) {
        assert!(proven(wait.clone(), 6 * MS), "{wait:?}");
    }
}

#[test]
fn a_fine_clock_says_when_an_answer_left_though_the_path_may_have_been_as_late_before() {
    let paths = Paths {
        best_rtts_ns: [None, Some(6 * MS)],
        ..Paths::default()
    };
    let judged = |late: i64, fine: bool, paths: &Paths| {
        let wait = Wait::Turn(Turn {
            since: At { frame: 1, time_ns: 0 },
            acked_ns: 0,
            doubt: Some(TurnDoubt::Queued {
                late_ns: (late * MS) as u32,
                queued_ns: 0,
                is_clock_fine: fine,
            }),
        });
        let rows = cut(wait, 0, 30 * MS, &[], paths);
        let of = |row: &Row| (row.cause, row.end_ns / MS, row.grounds.grade);
        rows.iter().map(of).collect::<Vec<_>>()
    };
    let (path, think) = ((Cause::Network, 6, Grade::Proven), Cause::ServerThink);
    let queue = (Cause::Queueing, 30, Grade::Probable);
    assert_eq!(
        judged(20, true, &paths),
        [path, (think, 10, Grade::Suspected), queue]
    );
    assert_eq!(judged(20, false, &paths), [path, (think, 30, Grade::Suspected)]);
    assert_eq!(
        judged(5, true, &paths),
        [path, (think, 25, Grade::Probable), queue]
    );
    let at_host = Paths {
        best_rtts_ns: [None, Some(0)],
        ..Paths::default()
    };
    assert_eq!(judged(20, true, &at_host), judged(20, false, &at_host));
}

#[test]
fn what_the_path_may_be_of_a_turn_is_told_to_the_nanosecond() {
    let paths = Paths {
        best_rtts_ns: [None, Some(6 * MS)],
        ..Paths::default()
    };
    let since = At { frame: 1, time_ns: 0 };
    for (acked, late, took, grade) in [
        (0, 3 * MS, 6 * MS - 1, Grade::Suspected),
        (0, 3 * MS, 6 * MS, Grade::Probable),
        (0, 3 * MS - 1, 5 * MS, Grade::Probable),
        (6 * MS, 3 * MS, 3 * MS, Grade::Suspected),
        (6 * MS, 3 * MS, 3 * MS + 1, Grade::Proven),
    ] {
        let (acked, late) = (acked as u32, late as u32);
        let wait = Wait::Turn(Turn {
            since,
            acked_ns: acked,
            doubt: Some(TurnDoubt::Queued {
                late_ns: late,
                queued_ns: 0,
                is_clock_fine: false,
            }),
        });
        let rows = cut(wait, 0, 6 * MS + took, &[], &paths);
        let think = rows.iter().find(|row| row.cause == Cause::ServerThink).unwrap();
        assert_eq!(think.grounds.grade, grade, "{late} {took}");
    }
    // so much later than the path its kernel had acknowledged the request: a busy host, or a timer
    for (beyond, between) in [
        (3 * MS - 1, None),
        (3 * MS, Some((Cause::Queueing, 9 * MS))),
        (35 * MS - 1, Some((Cause::Queueing, 41 * MS - 1))),
        (35 * MS, Some((Cause::ServerThink, 200 * MS))), // one row with the rest
    ] {
        let acked = (6 * MS + beyond) as u32;
        let rows = cut(
            Wait::Turn(Turn {
                since,
                acked_ns: acked,
                doubt: None,
            }),
            0,
            200 * MS,
            &[],
            &paths,
        );
        let mut late = rows
            .iter()
            .filter(|row| row.grounds.because == Because::KernelWasLate);
        assert_eq!(
            late.next().map(|row| (row.cause, row.end_ns)),
            between,
            "{beyond}"
        );
    }
}

#[test]
fn an_answer_that_ends_with_a_timer_may_wait_for_a_held_ack_elsewhere() {
    let paths = Paths {
        best_rtts_ns: [None, Some(2 * MS)],
        ..Paths::default()
    };
    for (waits, took, cause) in [
        (true, 38 * MS, Cause::DelayedAck),
        (true, 38 * MS - 1, Cause::ServerThink),
        (true, 53 * MS + 750 * US, Cause::DelayedAck),
        (true, 53 * MS + 750 * US + 1, Cause::ServerThink), // its program had worked before, or instead
        (false, 44 * MS, Cause::ServerThink),
    ] {
        let mut judged = proven();
        judged.measures.waits_elsewhere = waits;
        let since = At { frame: 1, time_ns: 0 };
        let wait = Wait::Turn(Turn {
            since,
            acked_ns: 0,
            doubt: Some(TurnDoubt::HoldLength { sender_id: 0 }),
        });
        let rows = cut(wait, 0, 2 * MS + took, &[judged], &paths);
        let shape: Vec<_> = rows.iter().map(|r| (r.cause, r.end_ns - r.start_ns)).collect();
        assert_eq!(shape, [(Cause::Network, 2 * MS), (cause, took)]);
        assert!(rows[1].grounds.grade == Grade::Probable);
    }
}

#[test]
fn what_came_as_late_as_a_repeat_is_not_proven_the_programs() {
    let since = At { frame: 1, time_ns: 0 };
    let acked = 20 * MS as u32;
    let paths = Paths {
        best_rtts_ns: [Some(10 * US), Some(20 * MS)],
        ..Paths::default()
    };
    let grade = |wait| {
        cut(wait, 0, 245 * MS, &[], &paths)
            .last()
            .map(|row| row.grounds.grade)
    };
    let late = |again| {
        Wait::Turn(Turn {
            since,
            acked_ns: acked,
            doubt: Some(TurnDoubt::CorkLength {
                late_ns: 0,
                sender_id: 0,
                may_be_retransmission: again,
            }),
        })
    };
    let proven = Some(Grade::Proven);
    assert_eq!(
        grade(Wait::Turn(Turn {
            since,
            acked_ns: acked,
            doubt: None
        })),
        proven
    );
    assert_eq!(grade(late(false)), proven);
    assert_eq!(
        grade(Wait::Turn(Turn {
            since,
            acked_ns: acked,
            doubt: Some(TurnDoubt::Retransmission)
        })),
        Some(Grade::Probable)
    );
    assert_eq!(grade(late(true)), Some(Grade::Probable));
}
