//! Waits for ACKs that the capture lacks.

use super::*;

#[test]
fn an_ack_that_the_capture_lacks_may_be_three_ticks_off() {
    let unseen = |seen: &Seen, ack, release| {
        held(seen.rules(Candidate {
            is_ack_unseen: true,
            arrived: Some(true),
            ..candidate(ack, release)
        }))
    };
    let seen = Seen::with(3, 3);
    let shorter = Some((Grade::Proven, Because::ControlShorter, 5 * MS, 5 * MS));
    // three milliseconds and what a kernel needs, from the round trip of 20 us on, in either direction
    let (latest, soonest) = (3_120 * US, -3_080 * US);
    assert_eq!(unseen(&seen, 41 * MS, latest), shorter);
    assert_eq!(unseen(&seen, 41 * MS, latest + 1), None);
    assert_eq!(unseen(&seen, 45 * MS, soonest), shorter);
    assert_eq!(unseen(&seen, 45 * MS, soonest - 1), None);
    // a hold, and no less
    assert_eq!(unseen(&seen, 35 * MS, 0), shorter);
    assert_eq!(unseen(&seen, 35 * MS - 1, 0), None);
    assert_eq!(unseen(&Seen::with(2, 3), 41 * MS, 0), None, "few that follow");
    assert_eq!(unseen(&Seen::with(9, 0), 41 * MS, 0), None, "no control group");
    let ruling = Seen::with(9, 0).rules(Candidate {
        is_ack_unseen: true,
        ..candidate(41 * MS, 30 * US)
    });
    assert_eq!(pause(ruling), Some((Grade::Probable, Because::AckNotSeen)));
}

#[test]
fn an_unseen_ack_whose_control_an_ack_let_go_bounds_only() {
    let mut seen = Seen::with(3, 0);
    for _ in 0..3 {
        seen.store.add(&candidate(5 * MS, 50 * US)); // with its ACK: at most 5 ms
    }
    let ruling = seen.rules(Candidate {
        is_ack_unseen: true,
        ..candidate(41 * MS, 30 * US)
    });
    let most = 5 * MS + 50 * US;
    assert_eq!(
        held(ruling),
        Some((Grade::Proven, Because::ControlShorter, most, 0))
    );
    let seen_one = seen.rules(candidate(41 * MS, 30 * US));
    assert_eq!(
        held(seen_one),
        Some((Grade::Proven, Because::ControlShorter, most, 0))
    );
}

#[test]
fn an_unseen_ack_belongs_to_a_wait_of_its_release_too() {
    // pauses of 39 ms bound waits from 44 ms on
    let mut seen = Seen::with(3, 0);
    for _ in 0..3 {
        seen.store.add(&candidate(MS, 38 * MS));
    }
    let unseen = |release| {
        held(seen.rules(Candidate {
            is_ack_unseen: true,
            arrived: Some(true),
            ..candidate(41 * MS, release)
        }))
    };
    let shorter = Some((Grade::Proven, Because::ControlShorter, 39 * MS, 39 * MS));
    assert_eq!((unseen(3 * MS), unseen(3 * MS - 1)), (shorter, None));
}
