//! How bytes come again, and what is remembered of those that are missing.

use super::*;
use crate::observe::sender::Advanced;
use crate::observe::sender::Recent;

mod late;

const MS: i64 = 1_000_000;

/// A segment on a path of 10 ms, captured beside its sender.
fn data(time_ns: i64, start: i64, end: i64) -> Data {
    Data {
        at: At {
            frame: time_ns as u64 + 1,
            time_ns,
        },
        start_seq: start,
        end_seq: end,
        is_small: true,
        is_pushed: true,
        mss: 1448,
        rtt_ns: 10 * MS,
        is_from_server: true,
        ..Data::default()
    }
}

/// A sender of one hundred bytes, at 0.
fn sent() -> Sender {
    let mut sender = Sender::default();
    sender.data(&data(0, 0, 100), Some(0), None);
    sender
}

/// How these bytes came again, so long after they left.
fn again(mut sender: Sender, time_ns: i64) -> Option<Repair> {
    match sender.data(&data(time_ns, 0, 100), Some(0), None) {
        Outcome::Forward(Step {
            wait: Wait::Repair(repaired),
            ..
        }) => Some(repaired.how),
        _ => None,
    }
}

#[test]
fn a_hole_closes_soon_or_by_a_timer_or_as_its_number_tells() {
    let how = |age, number: Option<u16>, behind: Option<u16>, rtt_ns| {
        let seen = At {
            frame: 1,
            time_ns: 7 * MS,
        };
        let hole = Hole {
            start_seq: 0,
            end_seq: 100,
            shown_by: seen,
            next_id: behind,
            is_tail: false,
        };
        let late = Data {
            ip_id: number,
            rtt_ns,
            ..data(7 * MS + age, 0, 100)
        };
        filled_how(&late, &hole)
    };
    let unnumbered = |age, rtt| how(age, None, Some(6), rtt);
    assert_eq!(unnumbered(3 * MS - 1, 0), Repair::Reordered);
    assert_eq!(unnumbered(3 * MS, 0), Repair::Fast);
    assert_eq!(
        unnumbered(6 * MS - 1, 8 * MS),
        Repair::Reordered,
        "three quarters of a round trip"
    );
    assert_eq!(unnumbered(6 * MS, 8 * MS), Repair::Fast);
    assert_eq!(unnumbered(190 * MS - 1, 0), Repair::Fast);
    assert_eq!(unnumbered(190 * MS, 0), Repair::Timeout);
    assert_eq!(
        how(300 * MS, Some(5), Some(6), 0),
        Repair::Reordered,
        "an older number"
    );
    assert_eq!(how(300 * MS, Some(0), Some(6), 0), Repair::Reordered);
    assert_eq!(
        (how(1, Some(6), Some(6), 0), how(1, Some(7), Some(6), 0)),
        (Repair::Fast, Repair::Fast)
    );
    assert_eq!(how(1, Some(5), Some(0), 0), Repair::Fast);
    assert_eq!(how(1, Some(0), Some(0), 0), Repair::Reordered, "nobody counts");
}

#[test]
fn a_tail_is_probed_until_two_round_trips_and_the_probe_timer() {
    let how = |time_ns| sent().tail_how(&data(time_ns, 0, 100));
    assert_eq!(
        (how(273 * MS - 1), how(273 * MS)),
        (Repair::TailProbe, Repair::Timeout)
    );
    assert_eq!(again(sent(), 233 * MS - 1), Some(Repair::TailProbe));
    assert_eq!(again(sent(), 233 * MS), Some(Repair::Timeout));
    // a long path's probe is none of the first timer, which is 3 s, nor sooner than the path allows
    let far = |time_ns, rtt_ns| {
        let retransmission = Data {
            rtt_ns,
            ..data(time_ns, 0, 100)
        };
        match sent().data(&retransmission, Some(0), None) {
            Outcome::Forward(Step {
                wait: Wait::Repair(repaired),
                ..
            }) => Some(repaired.how),
            _ => None,
        }
    };
    let second = 1_000 * MS;
    assert_eq!(far(3 * second, 3 * second / 2), Some(Repair::Timeout));
    assert_eq!(
        far(3 * second - 101 * MS, 3 * second / 2),
        Some(Repair::TailProbe)
    );
    assert_eq!(far(second, second), Some(Repair::Timeout), "one round trip");
    assert_eq!(far(second, second / 2), Some(Repair::TailProbe));
    let mut more = sent();
    more.data(&data(0, 100, 200), Some(0), None);
    assert_eq!(again(more, 200 * MS), Some(Repair::Timeout), "no tail");
}

#[test]
fn three_duplicates_call_for_a_repeat_and_silence_for_a_timer() {
    let how = |duplicates, repeated, time_ns| {
        let mut sender = sent();
        (sender.acked.duplicates, sender.acked.has_retransmitted) = (duplicates, repeated);
        sender.peer.newest = Some(At { frame: 1, time_ns: 0 });
        again(sender, time_ns)
    };
    assert_eq!(
        (how(2, false, MS), how(3, false, MS)),
        (Some(Repair::TailProbe), Some(Repair::Fast))
    );
    assert_eq!(
        (how(3, false, 190 * MS - 1), how(3, false, 190 * MS)),
        (Some(Repair::Fast), Some(Repair::Timeout))
    );
    assert_eq!(
        how(2, true, MS),
        Some(Repair::Timeout),
        "nothing was acknowledged since"
    );
    let sacked = |sacked| {
        let mut sender = sent();
        (sender.acked.highest_sacked, sender.peer.newest) = (sacked, Some(At { frame: 1, time_ns: 0 }));
        again(sender, MS)
    };
    assert_eq!(
        (sacked(0), sacked(1)),
        (Some(Repair::TailProbe), Some(Repair::Fast))
    );
    let acknowledged = |una| {
        let mut sender = sent();
        sender.acked.una = una;
        again(sender, MS)
    };
    assert_eq!(
        (acknowledged(99), acknowledged(100)),
        (Some(Repair::TailProbe), None),
        "spurious"
    );
}

#[test]
fn a_second_point_of_capture_lies_near_the_first() {
    let copies = |time_ns| {
        let mut sender = Sender::default();
        let numbered = |time_ns| Data {
            ip_id: Some(5),
            ..data(time_ns, 0, 100)
        };
        sender.data(&numbered(0), Some(0), None);
        let first = Some(At {
            frame: 1,
            time_ns: 5 * MS,
        });
        let spurious = matches!(
            sender.data(&numbered(time_ns), Some(0), first),
            Outcome::NothingNew
        );
        (spurious, sender.copies, sender.is_doubled())
    };
    assert_eq!(copies(25 * MS - 1), (true, 1, true));
    assert_eq!(copies(25 * MS), (true, 0, false));
}

#[test]
fn more_than_half_came_twice_where_a_capture_is_of_two_points() {
    let doubled = |copies, sent| {
        let sender = Sender {
            recent: Recent {
                count: sent,
                ..Recent::default()
            },
            copies,
            ..Sender::default()
        };
        sender.is_doubled()
    };
    assert!(doubled(2, 2) && !doubled(1, 2) && doubled(1, 1) && !doubled(0, 0));
}

#[test]
fn an_older_stamp_or_number_was_sent_before() {
    let older = |now: (u32, u16), last: (u32, u16)| {
        let with = |(tsval, ip_id): (u32, u16), data| Data {
            tsval: (tsval > 0).then_some(tsval),
            ip_id: (ip_id > 0).then_some(ip_id),
            ..data
        };
        let mut sender = Sender::default();
        sender.data(&with(last, data(0, 0, 100)), Some(0), None);
        sender.is_older(&with(now, data(MS, 0, 100)))
    };
    assert!(older((8, 0), (9, 0)) && !older((9, 0), (9, 0)) && !older((10, 0), (9, 0)));
    assert!(older((0, 8), (0, 9)) && !older((0, 9), (0, 9)) && !older((0, 10), (0, 9)));
    assert!(older((9, 8), (9, 9)) && !older((10, 8), (9, 9)), "a newer stamp");
    assert!(older((8, 10), (9, 9)));
    // identifications that are far from each other are not counted
    assert!(older((0, 136), (0, 200)) && !older((0, 135), (0, 200)));
    assert!(!older((0, 0), (0, 9)) && !older((0, 9), (0, 0)));
}

#[test]
fn the_newest_repeats_of_these_bytes_are_remembered() {
    let mut sender = sent();
    for number in 1..=MAX_RETRANSMISSIONS as i64 + 3 {
        sender.data(&data(number * MS, 0, 100), Some(0), None);
    }
    assert_eq!(
        sender.retransmissions.as_ref().map_or(0, |all| all.len()),
        MAX_RETRANSMISSIONS
    );
    assert_eq!(
        sender.came_twice((99, 300)).map(|at| at.time_ns),
        Some((MAX_RETRANSMISSIONS as i64 + 3) * MS)
    );
    assert_eq!(
        (sender.came_twice((100, 300)), sender.came_twice((-50, 0))),
        (None, None)
    );
    assert!(sender.came_twice((-50, 1)).is_some());
}

#[test]
fn what_was_sent_below_a_number_is_a_hole_once() {
    let at = At { frame: 9, time_ns: 9 };
    let holes = |una, seq| {
        let mut sender = sent();
        sender.acked.una = una;
        sender.passed(seq, at, None);
        (sender.holes.len(), sender.next_seq)
    };
    assert_eq!((holes(0, 100), holes(0, 101)), ((0, Some(100)), (1, Some(101))));
    assert_eq!(
        (holes(150, 150), holes(150, 151)),
        ((0, Some(100)), (1, Some(151)))
    );
    let mut sender = sent();
    for number in 0..MAX_HOLES as i64 + 5 {
        assert_eq!(sender.has_too_many_holes(1_000_000), number >= MAX_HOLES as i64);
        sender.passed(200 + number, at, None);
    }
    assert_eq!(sender.holes.len(), MAX_HOLES);
    assert!(!sender.has_too_many_holes(sender.next_seq.unwrap()), "it follows");
    assert_eq!(sender.first_hole(100, 101).map(|hole| hole.end_seq), Some(200));
    assert_eq!(sender.first_hole(199, 200).map(|hole| hole.start_seq), Some(100));
    assert_eq!(sender.first_hole(200, 201).map(|hole| hole.start_seq), Some(200));
}

/// The last segment, and then every other one: no more parts of that hole are remembered than is stated, and that is
/// told.
#[test]
fn what_is_left_of_holes_is_bounded_and_told() {
    let (mut sender, mut told, mut most) = (Sender::default(), false, 0);
    for number in 0..9_000i64 {
        let start = match number {
            0 => 0,
            1 => 10_000_000,
            _ => 200 * number,
        };
        told |= sender.has_too_many_holes(start);
        let data = data(number * 1000, start, start + 100);
        sender.data(&data, Some(0), None);
        most = most.max(sender.holes.len());
    }
    assert_eq!((told, most), (true, MAX_PARTS));
    let mut behind = 0;
    for (start, hole) in &sender.holes {
        assert!(*start == hole.start_seq && behind <= *start && hole.start_seq < hole.end_seq);
        behind = hole.end_seq;
    }
}

#[test]
fn a_timer_runs_from_the_last_ack_and_its_way() {
    let how = |called: bool, time_ns| {
        let ack = At {
            frame: 2,
            time_ns: 7 * MS,
        };
        let mut sender = sent();
        sender.acked.has_retransmitted = true;
        if called {
            (sender.acked.highest_sacked, sender.peer.newest) = (1, Some(ack));
        } else {
            sender.acked.newest = Some(Advanced {
                ack,
                acked: ack,
                bytes: 1,
                is_lone: false,
            });
        }
        let own_rtt_ns = 3 * MS;
        let data = Data {
            own_rtt_ns,
            ..data(time_ns, 0, 100)
        };
        match sender.data(&data, Some(0), None) {
            Outcome::Forward(Step {
                wait: Wait::Repair(repaired),
                ..
            }) => Some(repaired.how),
            _ => None,
        }
    };
    for called in [true, false] {
        assert_eq!(how(called, 200 * MS - 1), Some(Repair::Fast));
        assert_eq!(how(called, 200 * MS), Some(Repair::Timeout));
    }
}

#[test]
fn a_tail_is_waited_for_since_the_peer_was_heard() {
    let how = |time_ns| {
        let mut sender = sent();
        sender.peer.newest_data = Some(At {
            frame: 2,
            time_ns: 7 * MS,
        });
        sender.tail_how(&data(time_ns, 0, 100))
    };
    assert_eq!(
        (how(280 * MS - 1), how(280 * MS)),
        (Repair::TailProbe, Repair::Timeout)
    );
    // what an empty packet showed to be missing is such a tail
    let filled = |tail| {
        let mut sender = sent();
        sender.passed(
            200,
            At {
                frame: 2,
                time_ns: MS,
            },
            None,
        );
        if let Some(hole) = sender.holes.get_mut(&100) {
            hole.is_tail = tail;
        }
        match sender.data(&data(21 * MS, 100, 200), Some(0), None) {
            Outcome::Forward(Step {
                wait: Wait::Repair(repaired),
                ..
            }) => (Some(repaired.how), sender.holes.len()),
            _ => (None, sender.holes.len()),
        }
    };
    assert_eq!(filled(true), (Some(Repair::TailProbe), 0));
    assert_eq!(filled(false), (Some(Repair::Fast), 0));
}

#[test]
fn a_hole_that_ends_where_a_segment_begins_holds_none_of_it() {
    let mut sender = sent();
    sender.passed(
        200,
        At {
            frame: 2,
            time_ns: MS,
        },
        None,
    );
    assert!(sender.first_hole(200, 300).is_none() && sender.first_hole(0, 100).is_none());
    assert!(sender.first_hole(199, 300).is_some() && sender.first_hole(0, 101).is_some());
}
