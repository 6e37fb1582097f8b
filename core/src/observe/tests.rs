//! What an event says of its release, by the past alone.

use super::*;

const MS: i64 = 1_000_000;
const RTT: i64 = 10 * MS;

fn at(frame: u64, time_ns: i64) -> At {
    At { frame, time_ns }
}

/// Of a segment in frame 9, 40 ms after the one in frame 1.
fn release(wait: Wait) -> Release {
    let (from, to) = (at(1, 0), at(9, 40 * MS));
    Step { from, to, wait }.release(RTT)
}

fn said(by: Released, frame: Option<u64>) -> Release {
    Release::new(by, frame, 40 * MS)
}

fn candidate(ack_ns: i64) -> Box<Candidate> {
    Box::new(Candidate {
        small: at(1, 0),
        held_from: at(1, 0),
        ack: at(5, ack_ns),
        ack_lacks_data: true,
        freed: at(9, 40 * MS),
        freed_bytes: 1,
        ..Candidate::default()
    })
}

#[test]
fn an_ack_releases_what_leaves_within_two_milliseconds_of_the_path() {
    let (prompt, late) = (28 * MS, 28 * MS - 1);
    let acked = at(1, 0);
    let single = false;
    for (wait, by) in [
        (
            (|ns| Wait::Small(candidate(ns))) as fn(i64) -> Wait,
            Released::NagleAck,
        ),
        (
            |ns| Wait::FreedTurn {
                since: at(4, 0),
                candidate: candidate(ns),
            },
            Released::NagleAck,
        ),
        (
            |ns| Wait::Clocked {
                ack: at(5, ns),
                acked: at(1, 0),
            },
            Released::CwndAck,
        ),
        (
            |ns| Wait::Corked {
                small: at(1, 0),
                ack: at(5, ns),
            },
            Released::Cork,
        ),
    ] {
        assert_eq!(release(wait(prompt)), said(by, Some(5)));
        assert_eq!(release(wait(late)), said(Released::App, None), "{by:?}");
    }
    let ack = at(5, prompt);
    let lone = Wait::LoneClocked { ack, acked, single };
    assert_eq!(release(lone), said(Released::CwndAck, Some(5)));
}

#[test]
fn an_ack_that_was_not_there_released_nothing() {
    let small = |arrived, unseen| {
        Wait::Small(Box::new(Candidate {
            arrived,
            is_ack_unseen: unseen,
            ..*candidate(39 * MS)
        }))
    };
    assert_eq!(release(small(Some(false), false)), said(Released::App, None));
    assert_eq!(
        release(small(Some(true), false)),
        said(Released::NagleAck, Some(5))
    );
    assert_eq!(release(small(None, true)), Release::default(), "it has no frame");
}

#[test]
fn each_wait_has_its_word() {
    let (since, opened, small) = (at(4, 30 * MS), at(5, 0), at(1, 0));
    let answer = Release::new(Released::First, Some(4), 10 * MS);
    let (sender_id, acked, late, queued) = (0, 0, 0, 0);
    for doubt in [
        None,
        Some(TurnDoubt::CorkLength {
            late_ns: late,
            sender_id,
            may_be_retransmission: false,
        }),
        Some(TurnDoubt::Retransmission),
        Some(TurnDoubt::HoldLength { sender_id }),
        Some(TurnDoubt::Queued {
            late_ns: late,
            queued_ns: queued,
            is_clock_fine: false,
        }),
    ] {
        let turn = Turn {
            since,
            acked_ns: acked,
            doubt,
        };
        assert_eq!(release(Wait::Turn(turn)), answer);
    }
    let repaired = |how| Wait::repair(how, Some(at(3, 0)), None, true);
    for (wait, by, frame) in [
        (Wait::App, Released::App, None),
        (Wait::Unsure, Released::App, None),
        (Wait::TailLossProbe { small, sender_id }, Released::App, None),
        (Wait::Burst, Released::Burst, Some(1)),
        (Wait::FullBurst, Released::Burst, Some(1)),
        (Wait::Spaced, Released::Pacing, None),
        (
            Wait::Window {
                opened,
                was_zero: false,
            },
            Released::WindowOpen,
            Some(5),
        ),
        (
            Wait::Window {
                opened,
                was_zero: true,
            },
            Released::WindowOpen,
            Some(5),
        ),
        (Wait::FillsWindow { since }, Released::WindowOpen, Some(4)),
        (Wait::Cork, Released::Cork, None),
        (repaired(Repair::Fast), Released::FastRetransmit, Some(3)),
        (repaired(Repair::TailProbe), Released::Tlp, Some(3)),
        (repaired(Repair::Timeout), Released::Rto, Some(3)),
    ] {
        assert_eq!(release(wait), said(by, frame));
    }
    for nothing in [
        Wait::Hole,
        Wait::Handshake,
        Wait::Suspected { held_ack: None },
        repaired(Repair::Reordered),
        repaired(Repair::Syn),
    ] {
        assert_eq!(release(nothing), Release::default());
    }
}

#[test]
fn what_a_message_begins_with_has_waited_for_nothing() {
    let first = Release {
        by: Some(Released::First),
        frame: None,
        waited_ns: None,
    };
    let (from, to) = (at(1, 0), at(1, 0));
    for wait in [Wait::App, Wait::Burst, Wait::FullBurst, Wait::Hole] {
        assert_eq!(Step { from, to, wait }.release(RTT), first);
    }
}

#[test]
fn small_is_no_whole_number_of_full_segments() {
    for (len, small) in [
        (0, false),
        (1, true),
        (999, true),
        (1000, false),
        (1001, true),
        (2000, false),
    ] {
        assert_eq!(is_small(len, 1000), small, "{len}");
    }
    assert!(!is_small(5, 0));
}
