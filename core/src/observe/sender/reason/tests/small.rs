//! What small segments wait for: their ACKs, those that the capture lacks, and corks.

use super::*;

#[test]
fn small_behind_acknowledged_small_may_be_nagles() {
    let freed = |earlier: Small, data: Data, hole: bool, turn: bool| {
        let state = Sender {
            peer: Peer {
                newest_data: turn.then_some(at(5, 41 * MS)),
                ..sender().peer
            },
            small: Some(earlier),
            ..sender()
        };
        matches!(why_so(state, data, hole, 0), Wait::Small(_))
    };
    let acked = small(Some(40 * MS));
    assert!(freed(acked, next(41 * MS), false, false));
    assert!(!freed(acked, next(42 * MS), false, true), "the peer had spoken");
    assert!(!freed(acked, full(41 * MS), false, false));
    assert!(!freed(
        acked,
        Data {
            has_fin: true,
            ..next(41 * MS)
        },
        false,
        false
    ));
    assert!(!freed(acked, next(41 * MS), true, false), "bytes are missing");
    let tainted = true;
    assert!(!freed(
        Small {
            is_tainted: tainted,
            ..acked
        },
        next(41 * MS),
        false,
        false
    ));
}

#[test]
fn behind_a_timers_time_an_earlier_copy_may_be_lost() {
    // 5 ms from the capture to its sender, 10 ms between the hosts
    let held_back = |time_ns, missing_count| {
        let state = Sender {
            small: Some(small(Some(MS))),
            ..sender()
        };
        let data = Data {
            own_rtt_ns: 5 * MS,
            ..next(time_ns)
        };
        let mut state = state;
        let gap = Gap {
            missing_count,
            ..gap(&data)
        };
        match state.classify(&data, gap) {
            Wait::Small(candidate) => candidate.may_be_delayed,
            other => panic!("{other:?}"),
        }
    };
    assert!(held_back(205 * MS, None) && !held_back(205 * MS - 1, None));
    assert!(
        !held_back(205 * MS, Some(0)),
        "its IP identification follows the one before"
    );
}

#[test]
fn what_left_over_small_after_a_probes_time_is_a_probe() {
    let probe = |data: Data, earlier: Small| {
        let state = Sender {
            small: Some(earlier),
            ..in_flight()
        };
        matches!(why(state, data), Wait::TailLossProbe { sender_id: 7, small } if small == at(1, 0))
    };
    let (least, most) = (RTT + 200 * MS, 2 * RTT + 1_000 * MS);
    assert!(probe(next(least), small(None)) && !probe(next(least - 1), small(None)));
    assert!(probe(next(most - 1), small(None)) && !probe(next(most), small(None)));
    // its ACK was in the capture, but had not come: the time stamps say so
    let stamped = |time_ns, echo| {
        let mut earlier = small(Some(MS));
        earlier.tsecr = Some(1_000);
        earlier.ack = earlier.ack.map(|ack| AckSeen {
            tsval: Some(1_010),
            ..ack
        });
        let tsecr = Some(echo);
        probe(
            Data {
                tsecr,
                ..next(time_ns)
            },
            earlier,
        )
    };
    assert!(stamped(least, 1_009));
    assert!(!stamped(least, 1_010), "it had come");
    assert!(!stamped(least - 1, 1_009));
}

#[test]
fn small_over_small_refutes_unless_an_ack_was_heard() {
    let ticks = |echo| {
        let mut earlier = small(None);
        earlier.tsecr = Some(1_000);
        let mut state = Sender {
            peer: Peer {
                stamps: [Some(1_005), Some(990)],
                ..in_flight().peer
            },
            small: Some(earlier),
            ..in_flight()
        };
        let data = Data {
            tsecr: Some(echo),
            ..next(30 * MS)
        };
        let wait = why_of(&mut state, &data);
        (wait == Wait::Unsure, state.refutations.newest.is_some())
    };
    // newer than any stamp of the peer that the capture has
    assert_eq!((ticks(1_005), ticks(1_006)), ((false, true), (true, false)));
    // as late as a probe, but it echoes what was said meanwhile: its ACK came, and nobody can say when
    let mut earlier = small(None);
    earlier.tsecr = Some(1_000);
    let state = Sender {
        small: Some(earlier),
        ..in_flight()
    };
    let tsecr = Some(1_020);
    assert_eq!(
        why(
            state,
            Data {
                tsecr,
                ..next(220 * MS)
            }
        ),
        Wait::Unsure
    );
}

#[test]
fn an_ack_that_the_capture_lacks_is_dated_between_the_segments() {
    // the peer's clock: 1,000 at 0, and a tick each millisecond
    let dated = |echo: u32, time_ns, own_rtt_ns| {
        let mut state = Sender {
            small: Some(small(None)),
            ..in_flight()
        };
        state.small = state.small.map(|earlier| Small {
            tsecr: Some(900),
            ..earlier
        });
        state.peer.clock.record(-1_000 * MS, 0);
        state.peer.clock.record(0, 1_000);
        let tsecr = Some(echo);
        let data = Data {
            tsecr,
            own_rtt_ns,
            ..next(time_ns)
        };
        match why(state, data) {
            Wait::Small(candidate) => Some((
                candidate.is_ack_unseen,
                candidate.ack.frame,
                candidate.ack.time_ns,
                candidate.freed_bytes,
            )),
            _ => None,
        }
    };
    assert_eq!(dated(1_041, 42 * MS, 0), Some((true, 0, 41 * MS, 200)));
    assert_eq!(dated(1_000, 42 * MS, 0), None, "before the small segment");
    assert_eq!(dated(1_001, 42 * MS, 0), Some((true, 0, MS, 200)));
    // two clocks that count milliseconds are three ticks off at most, and no ACK came after what it freed
    assert_eq!(dated(1_045, 42 * MS, 0), Some((true, 0, 42 * MS, 200)));
    assert_eq!(dated(1_045, 42 * MS - 1, 0), None);
    assert_eq!(dated(1_041, 48 * MS, RTT), Some((true, 0, 38 * MS, 200)));
    assert_eq!(dated(1_042, 48 * MS, RTT), None);
}

#[test]
fn a_stamp_tells_whether_the_ack_had_come() {
    let arrived = |stamps: [Option<u32>; 3], echoed, echoes, own_rtt_ns| {
        let [before, acked, tsecr] = stamps;
        let mut earlier = small(Some(40 * MS));
        earlier.tsecr = before;
        let ack = AckSeen {
            tsval: acked,
            is_echoed: echoed,
            ..earlier.ack.unwrap_or_else(|| unreachable!())
        };
        let data = Data {
            tsecr,
            own_rtt_ns,
            ..next(41 * MS)
        };
        candidate(&earlier, &ack, &data, echoes).arrived
    };
    let some = |a, b, c| [Some(a), Some(b), Some(c)];
    assert_eq!(arrived(some(10, 20, 20), true, true, RTT), Some(true));
    assert_eq!(arrived(some(10, 20, 19), true, true, RTT), Some(false));
    assert_eq!(
        arrived(some(20, 20, 20), true, true, RTT),
        None,
        "the clock stood"
    );
    assert_eq!(arrived(some(19, 20, 20), true, true, RTT), Some(true));
    assert_eq!(arrived([None, Some(20), Some(20)], true, true, RTT), None);
    // an old one tells only of who echoes such, or beside the host
    assert_eq!(arrived(some(10, 20, 19), false, true, RTT), None);
    assert_eq!(arrived(some(10, 20, 20), false, false, RTT), Some(true));
    let away = 750_000;
    assert_eq!(arrived(some(10, 20, 19), true, false, away - 1), Some(false));
    assert_eq!(arrived(some(10, 20, 19), true, false, away), None);
}

#[test]
fn neither_full_nor_pushed_behind_small_was_corked() {
    let corked = |earlier: Small, data: Data| {
        let state = Sender {
            small: Some(earlier),
            ..sender()
        };
        matches!(why(state, data), Wait::Corked { .. })
    };
    // what is Nagle's otherwise, as neither is small to him: it was not pushed
    let open = |time_ns| Data {
        is_small: false,
        is_pushed: false,
        ..next(time_ns)
    };
    let acked = small(Some(100_000));
    assert!(corked(acked, open(BURST + 1)) && !corked(acked, open(BURST)));
    assert!(!corked(small(None), open(MS)), "not acknowledged");
    let pushed = true;
    assert!(!corked(
        acked,
        Data {
            is_pushed: pushed,
            ..open(MS)
        }
    ));
    let tainted = true;
    assert!(!corked(
        Small {
            is_tainted: tainted,
            ..acked
        },
        open(MS)
    ));
    let behind = at(0, 0);
    assert!(
        !corked(Small { at: behind, ..acked }, open(MS)),
        "not right before it"
    );
    let end = 100 + 536;
    assert!(
        corked(
            acked,
            Data {
                end_seq: end,
                ..open(MS)
            }
        ) && !corked(
            acked,
            Data {
                end_seq: end + 1,
                ..open(MS)
            }
        )
    );
    let turn = Sender {
        peer: Peer {
            newest_data: Some(at(5, 0)),
            ..sender().peer
        },
        small: Some(acked),
        ..sender()
    };
    assert!(!matches!(why(turn, open(MS)), Wait::Corked { .. }));
}

#[test]
fn a_freed_segment_says_how_its_senders_clock_counts() {
    let fine = |stamps: [u32; 3]| {
        let mut before = Sender {
            small: Some(small(Some(40 * MS))),
            ..sender()
        };
        for stamp in stamps {
            before.clock.add(0, stamp);
        }
        let freed = Data {
            own_rtt_ns: AT_HOST_NS.get(),
            ..next(42 * MS)
        };
        match why(before, freed) {
            Wait::Small(candidate) => Some(candidate.is_clock_fine),
            _ => None,
        }
    };
    assert_eq!((fine([4, 5, 6]), fine([4, 6, 8])), (Some(true), Some(false)));
}
