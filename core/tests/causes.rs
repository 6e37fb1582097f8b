//! The partition of an exchange's time: rows that follow each other without gap or overlap, and a stall cut
//! into its three parts.

mod common;

use common::{Lcg, MS};
use latpcap_core::base::At;
use latpcap_core::exchange::Exchange;
use latpcap_core::judge::{self, Because, Cause, Context, Grade, Judged, Owner, Paths, Row, Tick, Verdict};
use latpcap_core::observe::{Candidate, Repair, Step, Wait};

const US: i64 = 1000;

/// The capture is 2 ms there and back from either end.
fn proven() -> Judged {
    let (sender_rtt, receiver_rtt) = (2 * MS, 2 * MS);
    Judged {
        verdict: Verdict::Proven,
        held: 20,
        tight_limit: 2 * MS,
        hold_least: 25 * MS,
        sender_rtt,
        receiver_rtt,
        ..Judged::default()
    }
}

/// The ACK was held for 43 ms.
fn stall() -> Candidate {
    let at = |frame, time_ns| At { frame, time_ns };
    Candidate {
        small: at(3, 0),
        held_from: at(3, 0),
        ack: at(4, 45 * MS),
        ack_pure: true,
        ack_fin: false,
        arrived: None,
        unseen: false,
        after_end: false,
        freed: at(5, 47 * MS + 10 * US),
        small_bytes: 238,
        freed_bytes: 612,
        held_back: false,
        pool: 0,
    }
}

/// The rows of one step of the server, from 0 on.
fn cut(wait: Wait, from: i64, to: i64, judged: &[Judged], paths: &Paths) -> Vec<Row> {
    let at = |frame, time_ns| At { frame, time_ns };
    let step = Step {
        from: at(1, from),
        to: at(9, to),
        wait,
    };
    let mut rows = Vec::new();
    let mut exchange = Exchange::default();
    (exchange.request.first, exchange.request.last) = (step.from, step.to);
    exchange.dialogue = true;
    exchange.steps[1].push(step);
    let known = Context {
        paths,
        stream: 0,
        pools: judged,
        needless: None,
        spread: false,
        asked: false,
    };
    judge::partition(&exchange, &known, &mut rows);
    rows
}

#[test]
fn a_turn_that_may_be_the_paths_for_the_larger_part_is_not_proven() {
    let paths = Paths {
        min: [None, Some(6 * MS)],
        ..Paths::default()
    };
    for (late, took, proven) in [(0, 4, true), (20, 57, true), (20, 39, false), (2, 3, true)] {
        let wait = Wait::QueuedTurn {
            since: At { frame: 1, time_ns: 0 },
            acked: 6 * MS as u32,
            late: (late * MS) as u32,
            queued: 0,
        };
        let rows = cut(wait, 0, (6 + took) * MS, &[], &paths);
        let think = rows.last().unwrap();
        assert_eq!((think.cause, think.end), (Cause::ServerThink, (6 + took) * MS));
        assert_eq!(
            think.grounds.grade == Grade::Proven,
            proven,
            "{late} ms late, {took} ms"
        );
    }
}

#[test]
fn a_wait_that_no_kernel_bounds_is_not_proven_the_programs_however_it_is_told() {
    let since = At { frame: 1, time_ns: 0 };
    let waits = |acked| {
        [
            Wait::Turn { since, acked },
            Wait::QueuedTurn {
                since,
                acked,
                late: 0,
                queued: 0,
            },
            Wait::QueuedTurn {
                since,
                acked,
                late: 0,
                queued: 20 * MS as u32,
            },
            Wait::LateTurn {
                since,
                acked,
                pool: 0,
            },
        ]
    };
    let proven = |wait, path| {
        let paths = Paths {
            min: [None, Some(path)],
            ..Paths::default()
        };
        let rows = cut(wait, 0, 230 * MS, &[], &paths);
        let think = |row: &&Row| row.cause == Cause::ServerThink;
        rows.iter().find(think).unwrap().grounds.grade == Grade::Proven
    };
    for wait in waits(0) {
        assert!(!proven(wait.clone(), 6 * MS), "{wait:?}");
        assert!(proven(wait.clone(), 99_999), "{wait:?} beside its host");
    }
    for wait in waits(7 * MS as u32) {
        assert!(proven(wait.clone(), 6 * MS), "{wait:?}");
    }
}

#[test]
fn what_the_path_may_be_of_a_turn_is_told_to_the_nanosecond() {
    let paths = Paths {
        min: [None, Some(6 * MS)],
        ..Paths::default()
    };
    let since = At { frame: 1, time_ns: 0 };
    for (late, took, proven) in [
        (3 * MS, 6 * MS - 1, false),
        (3 * MS, 6 * MS, true),
        (3 * MS - 1, 5 * MS, true),
    ] {
        let wait = Wait::QueuedTurn {
            since,
            acked: 6 * MS as u32,
            late: late as u32,
            queued: 0,
        };
        let rows = cut(wait, 0, 6 * MS + took, &[], &paths);
        assert_eq!(
            rows.last().unwrap().grounds.grade == Grade::Proven,
            proven,
            "{late} {took}"
        );
    }
    // so much later than the path its kernel had acknowledged the request: a busy host, or a timer
    for (beyond, between) in [
        (3 * MS - 1, None),
        (3 * MS, Some((Cause::Queueing, 9 * MS))),
        (35 * MS - 1, Some((Cause::Queueing, 41 * MS - 1))),
        (35 * MS, Some((Cause::ServerThink, 200 * MS))), // one row with the rest
    ] {
        let acked = (6 * MS + beyond) as u32;
        let rows = cut(Wait::Turn { since, acked }, 0, 200 * MS, &[], &paths);
        let mut late = rows
            .iter()
            .filter(|row| row.grounds.because == Because::KernelWasLate);
        assert_eq!(late.next().map(|row| (row.cause, row.end)), between, "{beyond}");
    }
}

#[test]
fn a_first_copy_that_came_to_its_host_was_not_taken_there() {
    for (client, server, owner) in [
        (100 * US - 1, 500 * US, Owner::Client),
        (100 * US, 500 * US, Owner::Network),
        (100 * US - 1, 500 * US - 1, Owner::Network),
    ] {
        let paths = Paths {
            min: [Some(client), Some(server)],
            ..Paths::default()
        };
        let first = Some(At { frame: 1, time_ns: 0 });
        let (how, filled) = (Repair::Timeout, None);
        let rows = cut(Wait::Repair { how, first, filled }, 0, 300 * MS, &[], &paths);
        assert_eq!(rows.last().unwrap().owner, owner, "{client} {server}");
    }
    // a hole that its peer called for is no frame that the capture alone lacks
    for (filled, grade) in [
        (None, Grade::Probable),
        (Some(At { frame: 1, time_ns: 0 }), Grade::Proven),
    ] {
        let (how, first) = (Repair::Fast, None);
        let rows = cut(
            Wait::Repair { how, first, filled },
            0,
            30 * MS,
            &[],
            &Paths::default(),
        );
        assert_eq!(rows.last().unwrap().grounds.grade, grade);
    }
}

#[test]
fn an_answer_that_ends_with_a_timer_may_wait_for_a_held_ack_elsewhere() {
    let paths = Paths {
        min: [None, Some(2 * MS)],
        ..Paths::default()
    };
    let tick = Tick {
        period: 4 * MS,
        luck: 0.0,
        phase: 2 * MS,
    };
    for (waits, took, rows_are) in [
        (true, 38 * MS, vec![(Cause::DelayedAck, 38 * MS)]),
        (true, 38 * MS - 1, vec![(Cause::ServerThink, 38 * MS - 1)]),
        (true, 52 * MS, vec![(Cause::DelayedAck, 52 * MS)]),
        (true, 53 * MS, vec![(Cause::ServerThink, 53 * MS)]), // off the tick
        (
            true,
            56 * MS, // its program had worked for 13 ms before
            vec![(Cause::ServerThink, 13 * MS), (Cause::DelayedAck, 43 * MS)],
        ),
        (
            true,
            100 * MS,
            vec![(Cause::ServerThink, 57 * MS), (Cause::DelayedAck, 43 * MS)],
        ),
        (true, 100 * MS + 1, vec![(Cause::ServerThink, 100 * MS + 1)]),
        (false, 44 * MS, vec![(Cause::ServerThink, 44 * MS)]),
    ] {
        let judged = Judged {
            waits_elsewhere: waits.then_some((43 * MS, tick)),
            ..proven()
        };
        let since = At { frame: 1, time_ns: 0 };
        let wait = Wait::TimedTurn {
            since,
            acked: 0,
            pool: 0,
        };
        let rows = cut(wait, 0, 2 * MS + took, &[judged], &paths);
        let shape: Vec<_> = rows.iter().map(|r| (r.cause, r.end - r.start)).collect();
        assert_eq!(shape, [vec![(Cause::Network, 2 * MS)], rows_are].concat());
        assert!(rows[1].grounds.grade == Grade::Probable);
    }
}

#[test]
fn what_an_ack_frees_in_a_turn_had_waited_since_the_peer_spoke() {
    let c = stall();
    let since = At {
        frame: 2,
        time_ns: c.small.time_ns + 10 * MS,
    };
    let paths = Paths {
        min: [Some(2 * MS), Some(0)],
        ..Paths::default()
    };
    for (late, cause) in [(0, Cause::Nagle), (9 * MS, Cause::ServerThink)] {
        let freed = At {
            time_ns: c.freed.time_ns + late,
            ..c.freed
        };
        let candidate = Box::new(Candidate { freed, ..c });
        let rows = cut(
            Wait::FreedTurn { since, candidate },
            since.time_ns,
            freed.time_ns,
            &[proven()],
            &paths,
        );
        let row = rows.last().unwrap();
        assert_eq!((row.cause, row.end), (cause, freed.time_ns));
        assert!(late == 0 || row.grounds.grade == Grade::Probable);
    }
}

#[test]
fn a_stall_is_cut_into_path_hold_and_release() {
    let c = stall();
    let paths = Paths {
        min: [Some(2 * MS), Some(2 * MS)],
        ..Paths::default()
    };
    let rows = cut(
        Wait::Small(Box::new(c)),
        c.small.time_ns,
        c.freed.time_ns,
        &[proven()],
        &paths,
    );
    let shape: Vec<_> = rows
        .iter()
        .map(|r| (r.cause, r.parent, r.owner, r.end - r.start))
        .collect();
    let nagle = (Cause::Nagle, None, Owner::Server, 2 * MS);
    let held = (Cause::DelayedAck, Some(Cause::Nagle), Owner::Client, 43 * MS);
    assert_eq!(
        shape,
        [nagle, held, (Cause::Nagle, None, Owner::Server, 2 * MS + 10 * US)]
    );
    assert!(
        rows.iter()
            .all(|r| r.evidence == [c.small.frame, c.ack.frame, c.freed.frame])
    );
}

/// The one segment in flight was acknowledged 42 ms late, and the next one left with that ACK.
#[test]
fn a_held_ack_stalls_a_sender_with_a_window_of_one_segment() {
    let at = |frame, time_ns| At { frame, time_ns };
    let paths = Paths {
        min: [Some(2 * MS), Some(10 * US)],
        ..Paths::default()
    };
    let rows = |held: i64, collapsed: bool| {
        let wait = Wait::LoneClocked {
            ack: at(4, 2 * MS + held),
            acked: at(1, 0),
            collapsed,
        };
        let rows = cut(wait, 0, 2 * MS + held + 30 * US, &[], &paths);
        rows.iter()
            .map(|r| (r.cause, r.parent, r.owner, r.end - r.start))
            .collect::<Vec<_>>()
    };
    let waits = |ns| (Cause::Cwnd, None, Owner::Server, ns);
    let held = (Cause::DelayedAck, Some(Cause::Cwnd), Owner::Client, 42 * MS);
    assert_eq!(rows(42 * MS, true), [waits(2 * MS), held, waits(30 * US)]);
    // with a window of two and more, nothing had to wait for it
    let think = (Cause::ServerThink, None, Owner::Server, 44 * MS + 20 * US);
    let path = (Cause::Network, None, Owner::Network, 10 * US);
    assert_eq!(rows(42 * MS, false), [path, think]);
    assert_eq!(rows(0, true), [waits(2 * MS + 30 * US)]);
}

/// A capture at the receiver that has the first copy: the packet had come as far as that host.
#[test]
fn what_reached_the_receivers_host_was_not_lost_on_the_path() {
    let first = Some(At { frame: 1, time_ns: 0 });
    let wait = |how, first| Wait::Repair {
        how,
        first,
        filled: None,
    };
    for (how, first, min, owner) in [
        (Repair::Timeout, first, [Some(10 * US), Some(MS)], Owner::Client),
        (Repair::TailProbe, first, [Some(10 * US), Some(MS)], Owner::Client),
        (Repair::Timeout, None, [Some(10 * US), Some(MS)], Owner::Network),
        (Repair::Fast, first, [Some(10 * US), Some(MS)], Owner::Network),
        (Repair::Timeout, first, [Some(MS), Some(10 * US)], Owner::Network),
        (
            Repair::Timeout,
            first,
            [Some(10 * US), Some(20 * US)],
            Owner::Network,
        ),
        (Repair::Timeout, first, [Some(10 * US), None], Owner::Network),
    ] {
        let rows = cut(
            wait(how, first),
            0,
            230 * MS,
            &[],
            &Paths {
                min,
                ..Paths::default()
            },
        );
        assert_eq!(rows[0].owner, owner, "{how:?} {first:?} {min:?}");
        assert_eq!(
            rows[0].grounds.grade != Grade::Proven,
            owner == Owner::Client || first.is_none()
        );
    }
}

#[test]
fn every_wait_fills_its_time_exactly() {
    let (c, judged, mut random) = (stall(), [proven()], Lcg(19));
    for _ in 0..2000 {
        let mut at = |frame| At {
            frame,
            time_ns: random.below(100 * MS) - 20 * MS,
        };
        let (a, b, small) = (at(5), at(6), at(7));
        let [first, second, third] = [at(1).time_ns, at(2).time_ns, at(3).time_ns];
        let how = Repair::Fast;
        let late = third.unsigned_abs() as u32;
        let odd = Candidate {
            small,
            ack: a,
            held_from: b,
            freed: small,
            ..c
        };
        let waits = [
            Wait::Turn { since: a, acked: 0 },
            Wait::LateTurn {
                since: b,
                acked: 0,
                pool: 0,
            },
            Wait::TimedTurn {
                since: b,
                acked: late,
                pool: 0,
            },
            Wait::FreedTurn {
                since: b,
                candidate: Box::new(odd),
            },
            Wait::QueuedTurn {
                since: b,
                acked: 0,
                late,
                queued: third.unsigned_abs() as u32,
            },
            Wait::Suspected { held: None },
            Wait::Suspected { held: Some(a) },
            Wait::App,
            Wait::Small(Box::new(odd)),
            Wait::Small(Box::new(Candidate {
                pool: u32::MAX,
                ..odd
            })),
            Wait::Clocked { ack: a, acked: b },
            Wait::LoneClocked {
                ack: a,
                acked: b,
                collapsed: third > 0,
            },
            Wait::Window { opened: a },
            Wait::Repair {
                how,
                first: None,
                filled: None,
            },
            Wait::Hole,
        ];
        let (from, to) = (first.min(second), first.max(second));
        let paths = Paths {
            min: [Some(third.abs()), None],
            ..Paths::default()
        };
        for wait in waits {
            let rows = cut(wait.clone(), from, to, &judged, &paths);
            let mut reached = from;
            for row in &rows {
                assert!(row.start == reached && row.end > row.start, "{wait:?} {rows:?}");
                reached = row.end;
            }
            assert_eq!(reached, to, "{wait:?}");
        }
    }
}
