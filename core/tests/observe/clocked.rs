//! What else lets a segment go: the one before it, the ACK clock, a pace, the window, the kernel's timer.

use latpcap_core::observe::{Data, PeerPacket, Repair, Wait};

use crate::play::{MSS, Play, repaired};

#[test]
fn burst_follows_at_once_and_after_a_while_a_small_one_leaves_over_small_ones() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, MSS);
    assert_eq!(play.send(1_050, 1001, MSS), Wait::FullBurst);
    assert_eq!(play.send(1_100, 2001, 300), Wait::FullBurst);
    assert_eq!(play.send(1_150, 2301, 300), Wait::Burst);
    assert_eq!(
        play.send(31_150, 2601, 300),
        Wait::Early {
            sender_id: 7,
            bytes: 300
        }
    );
}

#[test]
fn clocked_by_the_ack_of_full_segments() {
    let mut play = Play::new();
    play.asked(0);
    for i in 0..10 {
        play.send(1_000 + i, 1 + i * MSS, MSS);
    }
    let ack = play.ack(11_000, 2001);
    match play.send(11_020, 10_001, MSS) {
        Wait::Clocked { ack: by, acked } => assert_eq!((by, acked.time_ns), (ack, 1_001_000)),
        other => panic!("{other:?}"),
    }
    assert_eq!(play.send(11_030, 11_001, MSS), Wait::FullBurst);
}

#[test]
fn spaced_at_an_even_pace() {
    let mut play = Play::new();
    play.asked(0);
    let waits: Vec<Wait> = (0..8)
        .map(|i| play.send(1_000 + i * 900, 1 + i * MSS, MSS))
        .collect();
    assert!(waits[4..].iter().all(|w| *w == Wait::Spaced), "{waits:?}");
}

#[test]
fn window_and_zero_window() {
    let mut play = Play::new();
    play.window = 2000;
    play.asked(0);
    play.ack(500, 1);
    play.send(1_000, 1, MSS);
    play.send(1_010, 1001, MSS);
    let opened = play.ack(20_000, 2001);
    assert_eq!(
        play.send(20_010, 2001, MSS),
        Wait::Window {
            opened,
            was_zero: false
        }
    );
    play.send(20_020, 3001, MSS);
    play.window = 0;
    play.ack(30_000, 4001);
    play.window = 2000;
    let opened = play.ack(900_000, 4001);
    assert_eq!(
        play.send(900_010, 4001, MSS),
        Wait::Window {
            opened,
            was_zero: true
        }
    );
    // within the window it is the ACK clock
    play.window = 1 << 20;
    play.ack(950_000, 4001);
    play.ack(960_000, 5001);
    assert!(matches!(
        play.send(960_010, 5001, MSS),
        Wait::LoneClocked { .. } | Wait::Window { .. }
    ));
    play.ack(970_000, 6001);
    assert!(matches!(
        play.send(970_010, 6001, MSS),
        Wait::LoneClocked { single: false, .. }
    ));
}

#[test]
fn data_far_beyond_all_room_are_none() {
    const MORE: i64 = 64 << 20; // BEYOND_ROOM in bytes
    for (scale_known, most) in [(true, 9999), (false, 9999 << 14)] {
        let mut play = Play::new();
        assert!(!play.sender.is_beyond(i64::MAX), "no window was seen");
        let at = play.at(10);
        play.sender.answer(&PeerPacket {
            at,
            ack: 1,
            window: 9999,
            is_scale_known: scale_known,
            is_echoed: true,
            ..PeerPacket::default()
        });
        assert!(!play.sender.is_beyond(1 + most + MORE));
        assert!(play.sender.is_beyond(2 + most + MORE));
    }
}

/// Each full segment leaves with the ACK of the one before: the third shows a sender with room for one. Two in flight end
/// that, and so does a program that writes later than the ACK.
#[test]
fn a_sender_with_room_for_one_segment_is_known_by_its_third_wait() {
    let alone = |wait: Wait| matches!(wait, Wait::LoneClocked { single: true, .. });
    let play = |late: i64, two: bool| {
        let mut play = Play::new();
        play.asked(0);
        play.send(1_000, 1, MSS);
        let mut found = Vec::new();
        for step in 0..4 {
            let (at, next) = (1_000 + 200_000 * (step + 1), 1 + MSS * (step + 1));
            play.ack(at, next);
            found.push(alone(play.send(at + late, next, MSS)));
            if two && step == 2 {
                play.send(at + late + 1, next + MSS, MSS);
                play.ack(at + 100_000, next + MSS);
            }
        }
        found
    };
    assert_eq!(play(20, false), [false, false, true, true]);
    assert_eq!(play(30_000, false), [false; 4], "its program wrote later");
    assert!(!*play(20, true).last().unwrap());
}

/// A sender whose timer ran out has a window of one segment, until two are in flight again.
#[test]
fn the_ack_of_the_one_full_segment_in_flight_is_told_from_others() {
    let lone = |wait: Wait| match wait {
        Wait::LoneClocked { single, .. } => Some(single),
        Wait::Clocked { .. } => None,
        other => panic!("{other:?}"),
    };
    for timeout in [false, true] {
        let mut play = Play::new();
        play.asked(0);
        let mut at = 1_000;
        play.send(at, 1, MSS);
        if timeout {
            at = 700_000;
            play.send(300_000, 1, MSS); // the probe
            assert_eq!(repaired(play.send(at, 1, MSS)), (Repair::Timeout, Some(1_000)));
        }
        play.ack(at + 51_000, 1001);
        assert_eq!(lone(play.send(at + 51_020, 1001, MSS)), Some(timeout));
        play.send(at + 51_030, 2001, MSS);
        play.ack(at + 61_000, 3001);
        assert_eq!(lone(play.send(at + 61_020, 3001, MSS)), None, "of two segments");
        play.ack(at + 99_000, 4001);
        assert_eq!(
            lone(play.send(at + 99_020, 4001, 300)),
            Some(false),
            "the window had grown"
        );
    }
}

/// A full segment that was not pushed had more behind it; what follows it while it is unacknowledged was there, too.
#[test]
fn behind_full_segments_the_line_was_busy() {
    let mut play = Play::new();
    play.asked(0);
    let first = play.data(1_000, 1, MSS);
    play.give(&Data {
        is_pushed: false,
        ..first
    });
    play.ack(1_010, 1001);
    assert_eq!(play.send(25_000, 1001, MSS), Wait::Spaced);
    play.ack(25_010, 2001);
    assert!(
        matches!(play.send(55_000, 2001, MSS), Wait::LoneClocked { .. }),
        "a program may pause here"
    );
    assert_eq!(play.send(59_000, 3001, MSS), Wait::Spaced);
}

#[test]
fn cork_leaves_without_any_trigger_after_the_kernels_timer() {
    let cork = |ack: Option<i64>, us: i64, len: i64| {
        let mut play = Play::new();
        play.asked(0);
        play.send(1_000, 1, MSS);
        if let Some(ack) = ack {
            play.ack(ack, 1001);
        }
        play.send(1_000 + us, 1001, len)
    };
    // the cork timer: nothing in flight, 200 ms and a few ticks, small, after a full segment
    assert_eq!(cork(Some(2_000), 204_000, 300), Wait::Cork);
    assert_ne!(cork(Some(2_000), 150_000, 300), Wait::Cork);
    assert_ne!(cork(Some(2_000), 260_000, 300), Wait::Cork);
    assert_ne!(cork(Some(2_000), 204_000, MSS), Wait::Cork);
    assert_ne!(
        cork(Some(204_990), 204_000, 300),
        Wait::Cork,
        "an ACK set it free"
    );
}
