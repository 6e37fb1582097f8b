//! Answers, and what the clock or the pacing of a sender says of a wait.

use super::*;

#[test]
fn even_gaps_in_a_row_are_a_pace() {
    let spaced = |is_even, gaps, turn: bool| {
        let mut state = Sender {
            gaps: Gaps {
                even_count: gaps,
                ..sender().gaps
            },
            peer: Peer {
                newest_data: turn.then_some(at(5, MS)),
                ..sender().peer
            },
            ..sender()
        };
        let data = full(4 * MS);
        let wait = state.classify(
            &data,
            Gap {
                is_even,
                ..gap(&data)
            },
        );
        wait == Wait::Spaced
    };
    assert!(spaced(true, 3, false));
    assert!(!spaced(true, 2, false) && !spaced(false, 3, false) && !spaced(true, 3, true));
}

/// Its clock has counted milliseconds for a second when it sent the last segment.
fn clocked() -> Sender {
    let mut state = sender();
    state.clock.add(-1_000 * MS, 0);
    state.remember(&Data {
        tsval: Some(1_000),
        ..next(0)
    });
    state
}

#[test]
fn what_the_path_may_have_held_is_not_surely_the_programs() {
    let wait = |tsval: Option<u32>| {
        why(
            clocked(),
            Data {
                tsval,
                ..next(8 * MS)
            },
        )
    };
    assert_eq!(wait(Some(1_003)), Wait::Unsure);
    assert_eq!(wait(Some(1_008)), Wait::App);
    assert_eq!(wait(None), Wait::App);
}

/// After thirteen full segments, of which the last two left 9 ms ago: 3 Mbit/s, as the pacing may do.
fn paced() -> Sender {
    let mut state = sender();
    state.recent.count = 12;
    state.pacer.sent(
        &Data {
            start_seq: 1,
            end_seq: 1 + 3 * MSS,
            is_small: false,
            ..next(0)
        },
        0,
        12,
    );
    state
}

#[test]
fn what_may_have_been_paced_is_not_surely_the_programs() {
    let after = |time_ns| {
        let start = 1 + 3 * MSS;
        let end = start + 200;
        why(
            paced(),
            Data {
                start_seq: start,
                end_seq: end,
                ..next(time_ns)
            },
        )
    };
    assert_eq!((after(9 * MS), after(90 * MS)), (Wait::Unsure, Wait::Unsure));
    assert_eq!(after(95 * MS), Wait::App, "nobody paces so slowly");
    assert_eq!(after(2 * MS), Wait::App, "a busy host");
}

fn doubt(wait: Wait) -> Option<TurnDoubt> {
    match wait {
        Wait::Turn(turn) => turn.doubt,
        _ => None,
    }
}

fn is_certain(wait: &Wait) -> bool {
    matches!(wait, Wait::Turn(Turn { doubt: None, .. }))
}

/// The peer's last byte came at 0 in frame 5.
fn asked() -> Sender {
    Sender {
        peer: Peer {
            newest_data: Some(at(5, 0)),
            ..sender().peer
        },
        ..sender()
    }
}

#[test]
fn an_answer_as_late_as_a_timer_is_suspected() {
    let state = || Sender {
        peer: Peer {
            newest_data: Some(at(5, 7 * MS)),
            ..sender().peer
        },
        ..sender()
    };
    let late = |data| {
        matches!(
            doubt(why(state(), data)),
            Some(TurnDoubt::CorkLength { sender_id: 7, .. })
        )
    };
    let (least, most) = (207 * MS, 720 * MS);
    assert!(late(next(least)) && !late(next(least - 1)));
    assert!(late(next(most)) && !late(next(most + 1)));
    assert!(!late(full(least)));
}

#[test]
fn what_leaves_a_hole_before_it_after_a_timers_time_tells_nothing_of_the_program() {
    let lost = |has_hole, time_ns| {
        let data = next(time_ns);
        match asked().classify(
            &data,
            Gap {
                has_hole,
                ..gap(&data)
            },
        ) {
            Wait::Turn(Turn {
                acked_ns: 0,
                doubt: Some(TurnDoubt::Queued { late_ns: late, .. }),
                ..
            }) => Some(i64::from(late)),
            _ => None,
        }
    };
    assert_eq!(lost(true, 190 * MS), Some(190 * MS));
    assert_eq!(lost(true, 190 * MS - 1), None, "no timer is as short");
    assert_eq!(lost(false, 240 * MS), None);
}

#[test]
fn what_leaves_a_hole_before_it_may_be_sent_again_where_the_path_lies_between() {
    let again = |has_hole, own_rtt_ns| {
        let data = Data {
            own_rtt_ns,
            ..next(23 * MS)
        };
        let gap = Gap {
            has_hole,
            missing_count: None,
            ..gap(&data)
        };
        doubt(asked().classify(&data, gap)) == Some(TurnDoubt::Retransmission)
    };
    assert!(again(true, 7 * MS) && !again(false, 7 * MS));
    assert!(!again(true, 69_999), "beside its host the capture lacks it");
}

#[test]
fn an_answer_as_late_as_a_hold_elsewhere_is_suspected() {
    let timed = |data| doubt(why(asked(), data)) == Some(TurnDoubt::HoldLength { sender_id: 7 });
    // from half a hold on: answers that take less than a whole one show a program
    let (least, most) = (19 * MS, 106 * MS + RTT);
    assert!(timed(next(least)) && !timed(next(least - 1)));
    assert!(timed(next(most)) && !timed(next(most + 1)));
}

#[test]
fn the_kernels_own_ack_bounds_an_answers_path() {
    let acked = |frame, time_ns, data| {
        let mut state = asked();
        state.own_ack = Some(at(frame, time_ns));
        match why(state, data) {
            Wait::Turn(Turn {
                acked_ns: acked,
                doubt: None | Some(TurnDoubt::HoldLength { .. }),
                ..
            }) => Some(acked),
            _ => None,
        }
    };
    assert_eq!(acked(6, 3 * MS, next(30 * MS)), Some(3_000_000));
    assert_eq!(acked(6, 3 * MS, next(50 * MS)), Some(3_000_000));
    assert_eq!(acked(6, 0, next(30 * MS)), Some(1), "in the same instant");
    assert_eq!(acked(4, -MS, next(30 * MS)), Some(0), "of what was said before");
    assert_eq!(
        why(asked(), next(18 * MS)),
        Wait::Turn(Turn {
            since: at(5, 0),
            acked_ns: 0,
            doubt: None
        })
    );
}

#[test]
fn an_answer_that_was_late_by_its_clock_was_queued() {
    let queued = |late: i64, own_rtt_ns| {
        let mut state = asked();
        for i in -100..-50 {
            state.clock.add(10 * i * MS, (1_000 + 10 * i) as u32);
        }
        let tsval = Some(1_000);
        let data = Data {
            tsval,
            own_rtt_ns,
            ..next(late)
        };
        match doubt(why(state, data)) {
            Some(TurnDoubt::Queued {
                late_ns: late,
                queued_ns: queued,
                ..
            }) => Some((late, queued)),
            _ => None,
        }
    };
    let ms = |ms: u32| ms * 1_000_000;
    assert_eq!(queued(2 * MS, 0), None);
    // beside its sender only what is longer than a tick is sure
    assert_eq!(queued(10 * MS, 69_999), Some((ms(10), 0)));
    assert_eq!(queued(10 * MS, 70_000), Some((ms(10), ms(9))));
    assert_eq!(queued(21 * MS, 0), Some((ms(21), ms(20))));
    assert_eq!(queued(21 * MS - 1, 0), Some((ms(21) - 1, 0)));
}

#[test]
fn what_came_in_time_as_late_as_a_timer_was_not_queued() {
    let mut state = asked();
    let mut wait = |time_ns: i64, tsval, data: Data| {
        state.peer.newest_data = Some(at(5, time_ns - 210 * MS));
        let tsval = Some(tsval);
        why_of(
            &mut state,
            &Data {
                at: at(9, time_ns),
                tsval,
                own_rtt_ns: RTT,
                ..data
            },
        )
    };
    for n in 0..9 {
        let waited = wait(n * 1_000 * MS, n as u32 * 1_000, next(0));
        assert!(matches!(
            doubt(waited),
            Some(TurnDoubt::CorkLength { late_ns: 0, .. })
        ));
    }
    // one of ten is rare: RARE
    let waited = wait(9_005 * MS, 9_000, full(0));
    assert!(matches!(
        doubt(waited),
        Some(TurnDoubt::Queued {
            queued_ns: 4_000_000,
            ..
        })
    ));
}

#[test]
fn an_answer_in_its_senders_pace_may_have_been_paced() {
    let wait = |factor: i64, shown: bool| {
        let mut state = asked();
        let mut start = 1;
        for segments in if shown { [3, 6, 3, 6] } else { [3, 3, 3, 3] } {
            let end = start + segments * MSS;
            let before = if segments == 3 && shown { 6 } else { 3 };
            let data = Data {
                start_seq: start,
                end_seq: end,
                is_small: false,
                ..next(0)
            };
            state.pacer.sent(&data, before * MS, 20);
            start = end;
        }
        let last = if shown { 6 } else { 3 };
        let end = start + 200;
        let data = Data {
            start_seq: start,
            end_seq: end,
            ..next(last * factor * MS)
        };
        why(state, data)
    };
    assert!(matches!(
        doubt(wait(1, true)),
        Some(TurnDoubt::Queued {
            queued_ns: 0,
            late_ns: 6_000_000,
            ..
        })
    ));
    assert!(is_certain(&wait(2, true)));
    assert!(is_certain(&wait(1, false)), "all of one length show no pace");
}

/// What leaves soon after the peer spoke is an answer to it, where nothing of its sender was in flight then.
#[test]
fn a_program_is_as_quick_as_it_answers_freely() {
    let answered = |first: bool, acked: Option<u64>, heard: u64| {
        let mut state = asked();
        state.peer.newest_data = Some(at(heard, 0));
        if first {
            state.newest.at = None;
        }
        state.small = acked.map(|frame| {
            let earlier = small(Some(0));
            let ack = earlier.ack.map(|ack| AckSeen {
                at: at(frame, 0),
                ..ack
            });
            Small { ack, ..earlier }
        });
        why_of(&mut state, &next(3 * MS));
        state.freed.fastest_answer_ns
    };
    assert_eq!(answered(true, None, 5), Some(3 * MS), "its first message");
    assert_eq!(answered(false, None, 5), None);
    assert_eq!(answered(false, Some(4), 5), Some(3 * MS), "acknowledged before");
    assert_eq!(answered(false, Some(5), 5), None, "with the data themselves");
    assert_eq!(answered(false, Some(6), 5), None, "after them");
}

#[test]
fn what_came_as_late_as_a_repeat_may_be_one_unless_the_numbers_go_on() {
    let wait = |missing_count, acked: Option<i64>, own_rtt_ns, time_ns| {
        let mut state = Sender {
            peer: Peer {
                newest_data: Some(at(5, 7 * MS)),
                ..sender().peer
            },
            ..sender()
        };
        if let Some(acked) = acked {
            state.own_ack = Some(at(6, 7 * MS + acked));
        }
        let data = Data {
            rtt_ns: 20 * MS,
            own_rtt_ns,
            ..full(time_ns)
        };
        let gap = Gap {
            missing_count,
            ..gap(&data)
        };
        doubt(state.classify(&data, gap)) == Some(TurnDoubt::Retransmission)
    };
    let far = 20 * MS;
    let least = 7 * MS + far + far + 190 * MS; // RTO_NS, a round trip, and the way to the sender and back
    let soon = Some(far);
    assert!(wait(None, soon, far, least) && !wait(None, soon, far, least - 1));
    assert!(
        !wait(Some(0), soon, far, least),
        "its sender counts, and nothing is missing"
    );
    // a held ACK would have carried what had been written: the timer began after it
    let held = 20 * MS + 35 * MS; // DELACK_LEAST_NS
    assert!(!wait(None, Some(held), far, least) && wait(None, Some(held - 1), far, least));
    assert!(
        wait(None, Some(held), far, least + 35 * MS) && !wait(None, Some(held), far, least + 35 * MS - 1)
    );
    let near = 70_000; // AT_HOST_NS
    let beside = 7 * MS + 20 * MS + 190 * MS;
    assert!(wait(None, None, near, beside + near) && !wait(None, None, near - 1, beside + near));
}
