//! The first segment after the peer spoke.

use latpcap_core::observe::{Turn, TurnDoubt, Wait};

use crate::common::MS;
use crate::play::{MSS, Play};

#[test]
fn turn_is_the_first_segment_after_the_peer_spoke() {
    let mut play = Play::new();
    let asked = play.asked(0);
    assert_eq!(
        play.send(3_000, 1, 200),
        Wait::Turn(Turn {
            since: asked,
            acked_ns: 0,
            doubt: None
        })
    );
    let asked = play.asked(60_000);
    assert_eq!(
        play.send(63_000, 201, 200),
        Wait::Turn(Turn {
            since: asked,
            acked_ns: 0,
            doubt: None
        })
    );
}

#[test]
fn a_small_turn_as_late_as_the_kernels_timer_may_be_corked() {
    for (late, bytes, corked) in [
        (199_999, 200, false),
        (200_000, 200, true),
        (713_000, 200, true), // the path is not known here
        (713_001, 200, false),
        (204_000, MSS, false),
    ] {
        let mut play = Play::new();
        let since = play.asked(0);
        let want = if corked {
            Wait::Turn(Turn {
                since,
                acked_ns: 0,
                doubt: Some(TurnDoubt::CorkLength {
                    late_ns: 0,
                    sender_id: 7,
                    may_be_retransmission: false,
                }),
            })
        } else {
            Wait::Turn(Turn {
                since,
                acked_ns: 0,
                doubt: None,
            })
        };
        assert_eq!(play.send(late, 1, bytes), want, "{late} us, {bytes} bytes");
    }
}

#[test]
fn a_turn_as_long_as_a_held_ack_may_wait_for_one_elsewhere() {
    for (us, timed) in [(18_999, false), (19_000, true), (116_000, true), (116_001, false)] {
        let mut play = Play::new();
        let since = play.asked(0);
        let want = if timed {
            let (acked, sender_id) = (0, 7);
            Wait::Turn(Turn {
                since,
                acked_ns: acked,
                doubt: Some(TurnDoubt::HoldLength { sender_id }),
            })
        } else {
            Wait::Turn(Turn {
                since,
                acked_ns: 0,
                doubt: None,
            })
        };
        assert_eq!(play.send(us, 1, MSS), want, "{us} us");
    }
}

#[test]
fn in_a_turn_too_small_leaves_with_the_ack_of_small() {
    for (freed, held) in [
        (29_990, false), // over the unacknowledged one
        (30_020, true),
        (32_000, true),
        (32_001, false),
    ] {
        let mut play = Play::new();
        play.asked(0);
        play.send(1_000, 1, 200);
        let since = play.asked(20_000);
        if freed > 30_000 {
            play.ack(30_000, 201);
        }
        match play.send(freed, 201, 300) {
            Wait::FreedTurn {
                since: from,
                candidate,
            } => {
                assert!(held, "{freed} us");
                assert_eq!((from, candidate.ack.time_ns), (since, 30 * MS));
            }
            other => assert_eq!(
                (other, held),
                (
                    Wait::Turn(Turn {
                        since,
                        acked_ns: 0,
                        doubt: None
                    }),
                    false
                )
            ),
        }
    }
}
