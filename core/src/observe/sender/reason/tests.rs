//! Each reason on both sides of what it asks for. The sender's state is written down, the next segment given.

mod small;
mod turns;

use super::*;
use crate::observe::sender::Advanced;
use crate::observe::sender::PeerWindow;
use crate::observe::sender::{Acked, Gaps, Newest, Peer};

const MS: i64 = 1_000_000;
const MSS: i64 = 1000;
const RTT: i64 = 10 * MS;
const BURST: i64 = 200_000;

fn at(frame: u64, time_ns: i64) -> At {
    At { frame, time_ns }
}

/// It has sent bytes 0 to 100 at 0 in frame 1, all acknowledged, and nothing else is known.
fn sender() -> Sender {
    Sender {
        newest: Newest {
            at: Some(at(1, 0)),
            ..Newest::default()
        },
        acked: Acked {
            una: 100,
            ..Acked::default()
        },
        next_seq: Some(100),
        ..Sender::default()
    }
}

/// The same, and nobody has acknowledged these.
fn in_flight() -> Sender {
    Sender {
        acked: Acked {
            una: 0,
            ..sender().acked
        },
        ..sender()
    }
}

/// Its small segment, with an ACK that came in frame 2, so long after it.
fn small(acked: Option<i64>) -> Small {
    Small {
        at: at(1, 0),
        end_seq: 100,
        tsecr: None,
        ack: acked.map(|time_ns| AckSeen {
            at: at(2, time_ns),
            lacks_data: true,
            has_fin: false,
            tsval: None,
            is_echoed: true,
            held_from: at(1, 0),
        }),
        is_tainted: false,
        begins_message: false,
    }
}

/// The next segment: small, pushed, captured beside its sender.
fn next(time_ns: i64) -> Data {
    Data {
        at: at(9, time_ns),
        start_seq: 100,
        end_seq: 300,
        is_small: true,
        is_pushed: true,
        mss: MSS as u32,
        rtt_ns: RTT,
        is_from_server: true,
        sender_id: 7,
        ..Data::default()
    }
}

fn full(time_ns: i64) -> Data {
    Data {
        end_seq: 100 + MSS,
        is_small: false,
        ..next(time_ns)
    }
}

/// The gap between the first segment and this one, without any hole.
fn gap(data: &Data) -> Gap {
    Gap {
        from: at(1, 0),
        ns: data.at.time_ns,
        has_hole: false,
        is_even: false,
        missing_count: Some(0),
    }
}

fn why(sender: Sender, data: Data) -> Wait {
    why_so(sender, data, false, 0)
}

fn why_of(sender: &mut Sender, data: &Data) -> Wait {
    sender.classify(data, gap(data))
}

fn why_so(mut sender: Sender, data: Data, has_hole: bool, missing_count: u16) -> Wait {
    let from = sender.newest.at.unwrap_or(data.at);
    let gap = Gap {
        from,
        ns: data.at.time_ns - from.time_ns,
        has_hole,
        missing_count: Some(missing_count),
        ..gap(&data)
    };
    sender.classify(&data, gap)
}

fn repaired(wait: &Wait) -> Option<Repair> {
    match wait {
        Wait::Repair(repaired) => Some(repaired.how),
        _ => None,
    }
}

#[test]
fn a_full_segment_over_a_small_one_may_have_been_written_in_parts() {
    let behind = |small, data| {
        why(
            Sender {
                small: Some(small),
                ..in_flight()
            },
            data,
        )
    };
    let filled = Wait::Filled { sender_id: 7 };
    assert_eq!(behind(small(None), full(4 * MS)), filled);
    // its ACK had come as far as the burst's time before, or not
    assert_eq!(behind(small(Some(2 * MS)), full(2 * MS + BURST)), filled);
    assert_eq!(behind(small(Some(2 * MS)), full(2 * MS + BURST + 1)), Wait::App);
    assert_eq!(behind(small(None), full(BURST)), Wait::Burst);
    let tainted = true;
    assert_eq!(
        behind(
            Small {
                is_tainted: tainted,
                ..small(None)
            },
            full(4 * MS)
        ),
        Wait::App
    );
}

#[test]
fn what_nothing_held_is_the_programs_or_left_at_once() {
    assert_eq!(why(sender(), next(BURST)), Wait::Burst);
    assert_eq!(why(sender(), next(BURST + 1)), Wait::App);
    let behind_full = |una, data| {
        let last_full = true;
        why(
            Sender {
                newest: Newest {
                    was_full: last_full,
                    ..sender().newest
                },
                acked: Acked {
                    una,
                    ..sender().acked
                },
                ..sender()
            },
            data,
        )
    };
    assert_eq!(behind_full(100, next(BURST)), Wait::FullBurst);
    assert_eq!(behind_full(100, next(BURST + 1)), Wait::App);
    assert_eq!(behind_full(99, next(BURST + 1)), Wait::Unsure);
    assert_eq!(
        why_so(sender(), next(MS), true, 0),
        Wait::Unsure,
        "bytes are missing"
    );
}

#[test]
fn the_line_is_busy_behind_full_segments_that_were_not_pushed() {
    let behind = |last_more, last_full, una, data| {
        let pace = MS;
        let state = Sender {
            newest: Newest {
                had_more: last_more,
                was_full: last_full,
                ..sender().newest
            },
            acked: Acked {
                una,
                ..sender().acked
            },
            gaps: Gaps {
                pace_ns: pace,
                ..sender().gaps
            },
            ..sender()
        };
        why(state, data)
    };
    assert_eq!(behind(true, true, 0, full(90 * MS)), Wait::Spaced, "however late");
    assert_eq!(
        behind(true, true, 0, next(4 * MS)),
        Wait::Spaced,
        "a tail in the pace"
    );
    assert_eq!(behind(true, true, 0, next(4 * MS + 1)), Wait::Unsure);
    // pushed: only a full one after an unacknowledged one, in the pace
    assert_eq!(behind(false, true, 99, full(4 * MS)), Wait::Spaced);
    assert_eq!(behind(false, true, 99, full(4 * MS + 1)), Wait::Unsure);
    assert_eq!(behind(false, true, 100, full(4 * MS)), Wait::App);
    assert_eq!(behind(false, true, 99, next(4 * MS)), Wait::Unsure);
    assert_eq!(behind(false, false, 99, full(4 * MS)), Wait::App);
}

#[test]
fn a_timer_after_a_missing_frame_sent_this_one_again() {
    let how = |missing, hole, time_ns| repaired(&why_so(sender(), next(time_ns), hole, missing));
    assert_eq!(how(1, false, 190 * MS - 1), None);
    assert_eq!(how(1, false, 190 * MS), Some(Repair::TailProbe));
    assert_eq!(how(0, false, 190 * MS), None, "the capture has all frames");
    assert_eq!(how(1, true, 190 * MS), None, "and this one was sent behind those");
    let probe = 2 * RTT + 253 * MS;
    assert_eq!(how(1, false, probe - 1), Some(Repair::TailProbe));
    assert_eq!(how(1, false, probe), Some(Repair::Timeout));
    assert_eq!(
        how(2, false, 190 * MS),
        Some(Repair::Timeout),
        "a probe sends one"
    );
    // in a turn since the peer spoke, and what was small then tells of no Nagle any more
    let turn = |spoke| {
        let mut state = sender();
        (state.peer.newest_data, state.small) = (Some(at(5, spoke)), Some(small(None)));
        let data = next(300 * MS);
        let missing_count = Some(1);
        let wait = state.classify(
            &data,
            Gap {
                missing_count,
                ..gap(&data)
            },
        );
        (
            repaired(&wait).is_some(),
            state.small.is_some_and(|small| small.is_tainted),
        )
    };
    assert_eq!(
        (turn(110 * MS), turn(110 * MS + 1)),
        ((true, true), (false, false))
    );
}

#[test]
fn a_window_held_what_did_not_fit_before_it_opened() {
    let window = |opened, before, zero: Option<u64>| {
        let mut state = sender();
        state.peer.window.last_move = Some((at(opened, 5 * MS), before));
        state.peer.window.zero_frame = zero.unwrap_or(0);
        // an ACK that clocks it else
        why(state, next(6 * MS))
    };
    let opened = at(3, 5 * MS);
    assert_eq!(
        window(3, 299, None),
        Wait::Window {
            opened,
            was_zero: false
        }
    );
    assert_eq!(window(3, 300, None), Wait::App, "it had fitted");
    assert_eq!(window(0, 299, None), Wait::App, "it was open before");
    assert_eq!(
        window(3, 299, Some(2)),
        Wait::Window {
            opened,
            was_zero: true
        }
    );
    assert_eq!(
        window(3, 299, Some(0)),
        Wait::Window {
            opened,
            was_zero: false
        },
        "shut before that"
    );
}

#[test]
fn a_window_that_opened_twice_held_what_did_not_fit_before_the_first_time() {
    let window = |before, meanwhile| {
        let mut state = sender();
        let first = at(3, 4 * MS);
        state.peer.window.first_move = Some((first, before));
        state.peer.window.last_move = Some((at(4, first.time_ns + meanwhile), 1_000));
        let data = Data {
            own_rtt_ns: MS,
            ..next(6 * MS)
        };
        why(state, data)
    };
    let opened = at(3, 4 * MS);
    assert_eq!(
        window(299, MS),
        Wait::Window {
            opened,
            was_zero: false
        }
    );
    assert_eq!(window(300, MS), Wait::App, "it had fitted");
    assert_eq!(window(299, MS + 1), Wait::App, "time enough to send it");
}

#[test]
fn what_fills_the_window_after_a_timer_had_no_room() {
    let fills = |edge, una, time_ns, data: Data| {
        let state = Sender {
            peer: Peer {
                newest: Some(at(1, -MS)),
                window: PeerWindow {
                    right_edge: Some(edge),
                    ..PeerWindow::default()
                },
                ..sender().peer
            },
            acked: Acked {
                una,
                ..sender().acked
            },
            ..sender()
        };
        let at = at(9, time_ns);
        matches!(why(state, Data { at, ..data }), Wait::FillsWindow { .. })
    };
    assert!(fills(300, 100, 189 * MS, next(0)));
    assert!(!fills(300, 100, 189 * MS - 1, next(0)));
    assert!(!fills(301, 100, 189 * MS, next(0)), "there was room");
    assert!(!fills(300, 99, 189 * MS, next(0)), "something was in flight");
    let end = 100 + MSS;
    assert!(fills(
        end - 1,
        100,
        189 * MS,
        Data {
            end_seq: end - 1,
            ..next(0)
        }
    ));
    assert!(
        !fills(
            end,
            100,
            189 * MS,
            Data {
                end_seq: end,
                ..next(0)
            }
        ),
        "a full segment"
    );
    assert!(!fills(
        300,
        100,
        189 * MS,
        Data {
            is_small: false,
            ..next(0)
        }
    ));
}

#[test]
fn a_cork_lets_go_after_its_timer() {
    let corked = |time_ns, state: Sender, data: Data| {
        let at = at(9, time_ns);
        why(state, Data { at, ..data }) == Wait::Cork
    };
    let last_full = true;
    let state = || Sender {
        newest: Newest {
            was_full: last_full,
            ..sender().newest
        },
        ..sender()
    };
    let (least, most) = (200 * MS, 213 * MS + RTT);
    assert!(corked(least, state(), next(0)) && !corked(least - 1, state(), next(0)));
    assert!(corked(most, state(), next(0)) && !corked(most + 1, state(), next(0)));
    assert!(!corked(least, sender(), next(0)), "behind a small one");
    assert!(
        !corked(
            least,
            Sender {
                acked: Acked {
                    una: 99,
                    ..state().acked
                },
                ..state()
            },
            next(0)
        ),
        "in flight"
    );
    assert!(!corked(least, state(), full(0)));
    let peer_data = Some(at(5, 0));
    assert!(
        !corked(
            least,
            Sender {
                peer: Peer {
                    newest_data: peer_data,
                    ..state().peer
                },
                ..state()
            },
            next(0)
        ),
        "an answer"
    );
    // since the peer was last heard
    let heard = |time_ns| Sender {
        peer: Peer {
            newest: Some(at(2, time_ns)),
            ..state().peer
        },
        ..state()
    };
    assert!(corked(least + MS, heard(MS), next(0)) && !corked(least, heard(MS), next(0)));
    assert!(corked(least, heard(-MS), next(0)));
}

/// An ACK of so many bytes in frame 4, and whether nothing else was in flight.
fn advanced(frame: u64, time_ns: i64, bytes: u32, lone: bool) -> Sender {
    let (ack, acked) = (at(frame, time_ns), at(1, 0));
    Sender {
        acked: Acked {
            newest: Some(Advanced {
                ack,
                acked,
                bytes,
                is_lone: lone,
            }),
            ..sender().acked
        },
        newest: Newest {
            was_full: true,
            ..sender().newest
        },
        ..sender()
    }
}

#[test]
fn an_ack_clocks_what_follows_it() {
    let clocked = |state, data| matches!(why(state, data), Wait::Clocked { .. } | Wait::LoneClocked { .. });
    assert!(clocked(advanced(4, 0, 100, false), full(BURST + 1)));
    assert!(!clocked(advanced(4, 0, 100, false), full(BURST)));
    assert!(
        !clocked(advanced(0, 0, 100, false), full(MS)),
        "before the last segment"
    );
    let peer_data = Some(at(5, 0));
    let turn = Sender {
        peer: Peer {
            newest_data: peer_data,
            ..advanced(4, 0, 100, false).peer
        },
        ..advanced(4, 0, 100, false)
    };
    assert!(!clocked(turn, full(MS)));
    // later than promptly it may keep the line's pace instead
    let late = |time_ns, pace, own_rtt_ns| {
        let state = Sender {
            acked: Acked {
                una: 0,
                ..advanced(4, MS, 100, false).acked
            },
            gaps: Gaps {
                pace_ns: pace,
                ..advanced(4, MS, 100, false).gaps
            },
            ..advanced(4, MS, 100, false)
        };
        clocked(
            state,
            Data {
                own_rtt_ns,
                ..full(time_ns)
            },
        )
    };
    assert!(late(3 * MS, 2 * MS, 0) && !late(4 * MS + 1, 2 * MS, 0));
    assert!(late(4 * MS + 1, 100_000, 0), "not in the pace");
    assert!(late(4 * MS, 2 * MS, MS) && !late(4 * MS + 1, 2 * MS, MS));
}

#[test]
fn the_ack_of_the_one_full_segment_in_flight_may_have_been_held() {
    let lone = |state, missing| why_so(state, full(50 * MS), false, missing);
    let held = |bytes, lone_ack, last_full| {
        let state = Sender {
            newest: Newest {
                was_full: last_full,
                ..advanced(4, 49 * MS, bytes, lone_ack).newest
            },
            ..advanced(4, 49 * MS, bytes, lone_ack)
        };
        matches!(lone(state, 0), Wait::LoneClocked { single: false, .. })
    };
    let mss = MSS as u32;
    assert!(held(mss, true, true) && !held(mss + 1, true, true));
    assert!(!held(mss, false, true) && !held(mss, true, false));
    let collapsed = Sender {
        has_collapsed: true,
        ..advanced(4, 49 * MS, mss, true)
    };
    assert!(matches!(
        lone(collapsed, 0),
        Wait::LoneClocked { single: true, .. }
    ));
    // a first copy that never passed the capture
    let again = |lone_ack, missing| repaired(&lone(advanced(4, 49 * MS, mss, lone_ack), missing));
    assert_eq!(again(true, 1), Some(Repair::Fast));
    assert_eq!((again(true, 0), again(false, 1)), (None, None));
}
