//! Control groups by the place in a message.

use super::*;

fn at_place(first: bool, frame: u64, ack: i64, release: i64) -> Candidate {
    let c = candidate(ack, release);
    Candidate {
        first,
        freed: At { frame, ..c.freed },
        ..c
    }
}

/// Free answers, with a part right behind the head, and so many later ones, each after so long; then eight whose heads' ACKs were
/// held. Behind those, only what outlasted the hold is seen: it tells of no place.
fn answers(free: u64, later: u64, pause: i64) -> Seen {
    let mut seen = Seen::new();
    for frame in (0..free).map(|n| 100 * n) {
        seen.pools.add(0, &at_place(true, frame, MS, 40 * US));
        for part in 1..=later {
            seen.pools.add(0, &at_place(false, frame + part, MS, pause));
        }
    }
    for frame in (100..108).map(|n| 100 * n) {
        seen.pools.add(0, &at_place(true, frame, 41 * MS, 40 * US));
        seen.pools.add(0, &at_place(false, frame + 1, MS, 20 * MS));
    }
    seen
}

/// What the program took of a wait behind a head at most, and what it likely took.
fn took(seen: &Seen, first: bool) -> Option<(i64, i64)> {
    let ruling = held(seen.rules(at_place(first, 9, 41 * MS, 40 * US)))?;
    assert_eq!((ruling.0, ruling.1), (Grade::Proven, Because::ControlShorter));
    Some((ruling.2, ruling.3))
}

#[test]
fn behind_a_head_its_own_control_group_bounds() {
    let at_once = 1_040 * US;
    assert_eq!(took(&answers(3, 3, 20 * MS), true), Some((at_once, 0)));
    // behind later parts nothing was held so far
    let later = at_place(false, 9, 41 * MS, 40 * US);
    let ruling = held(answers(3, 3, 20 * MS).rules(later));
    assert_eq!(
        ruling.map(|(grade, _, most, _)| (grade, most)),
        Some((Grade::Probable, 21 * MS))
    );
    // two free answers bound nothing: but they say what is likely
    assert_eq!(took(&answers(2, 4, 20 * MS), true), Some((21 * MS, 0)));
}

#[test]
fn what_pauses_at_no_place_or_at_times_has_one_control_group() {
    // 3 ms are a busy host's
    assert_eq!(
        took(&answers(3, 3, 2 * MS), true).map(|took| took.0),
        Some(21 * MS)
    );
    assert_eq!(
        took(&answers(3, 3, 2 * MS + 1), true).map(|took| took.0),
        Some(1_040 * US)
    );
    let mut seen = answers(3, 3, 20 * MS);
    seen.pools.add(0, &at_place(true, 20_000, MS, 8 * MS));
    assert_eq!(took(&seen, true), Some((21 * MS, 21 * MS)));
    // a segment that left over an unacknowledged one was no pause's end
    assert_eq!(
        took(&answers(3, 3, 20 * MS).refuted(1), true).map(|took| took.0),
        Some(21 * MS)
    );
}

#[test]
fn what_began_a_message_waited_from_its_first_byte_on() {
    // two parts of one byte each left freely, 20 ms apart; then three waited together
    let (mut seen, c) = (Seen::new(), at_place(true, 9, 81 * MS, 40 * US));
    for frame in (0..3).map(|n| 100 * n) {
        seen.pools.add(0, &at_place(true, frame, MS, 20 * MS));
        seen.pools.add(0, &at_place(false, frame + 1, MS, 20 * MS));
    }
    for frame in (100..108).map(|n| 100 * n) {
        seen.pools.add(0, &at_place(true, frame, 81 * MS, 40 * US));
    }
    let three = Candidate { freed_bytes: 3, ..c };
    let (judged, side) = (seen.judged(), Side::Server);
    let took = |ruling| held(ruling).map(|(grade, _, most, likely)| (grade, most, likely));
    let known = |most| Some((Grade::Proven, most, 21 * MS));
    assert_eq!(took(judged.rule(side, 0, &c)), known(21 * MS));
    assert_eq!(took(judged.rule(side, 0, &three)), known(63 * MS));
    assert_eq!(took(judged.rule_first(side, 0, &three)), known(21 * MS));
}
