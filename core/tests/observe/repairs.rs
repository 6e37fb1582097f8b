//! What was sent again, what was overtaken, and what the capture alone lacks.

use latpcap_core::observe::{Data, Outcome, Repair, Wait};

use crate::play::{MSS, Play, repaired, wait};

#[test]
fn fast_retransmission_has_a_sack_above_or_three_duplicates() {
    for by_sack in [true, false] {
        let mut play = Play::new();
        play.asked(0);
        for i in 0..10 {
            play.send(1_000 + i, 1 + i * MSS, MSS);
        }
        for i in 0..3 {
            let at = play.at(11_000 + i);
            play.answer_at(at, 1, Some(if by_sack { 2001 + i * MSS } else { 0 }));
        }
        assert_eq!(repaired(play.send(11_100, 1, MSS)), (Repair::Fast, Some(1_000)));
    }
}

#[test]
fn tail_probe_then_timeouts() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, MSS);
    play.send(1_010, 1001, 300);
    assert_eq!(
        repaired(play.send(222_000, 1001, 300)),
        (Repair::TailProbe, Some(1_010))
    );
    assert_eq!(
        repaired(play.send(450_000, 1, MSS)),
        (Repair::Timeout, Some(1_000))
    );
    assert_eq!(
        repaired(play.send(850_000, 1, MSS)),
        (Repair::Timeout, Some(1_000))
    );
}

/// Some firewalls change sequence numbers and leave the SACK option as it was.
#[test]
fn a_sack_of_what_cannot_have_been_sent_calls_for_nothing() {
    let mut play = Play::new();
    let at = play.asked(0);
    play.answer_at(at, 1, Some(1 << 30));
    play.send(300_000, 1, MSS);
    assert_eq!(
        repaired(play.send(330_000, 1, MSS)),
        (Repair::TailProbe, Some(300_000))
    );
}

#[test]
fn a_lost_tail_that_never_came_by_shows_in_the_identifications() {
    let mut play = Play::new();
    for i in 0..12 {
        play.asked(i * 20_000);
        play.send(i * 20_000 + 1_000, 1 + i * 100, 100);
        play.ack(i * 20_000 + 2_000, 101 + i * 100);
    }
    play.asked(300_000);
    play.id += 1; // the first copy
    assert_eq!(repaired(play.send(530_000, 1201, 100)), (Repair::TailProbe, None));
    play.asked(600_000);
    play.id += 2; // the first copy and the probe
    assert_eq!(repaired(play.send(1_100_000, 1301, 100)), (Repair::Timeout, None));
}

#[test]
fn a_segment_after_a_gap_in_the_identifications_was_sent_before() {
    let mut play = Play::new();
    for i in 0..12 {
        play.asked(i * 20_000);
        play.send(i * 20_000 + 1_000, 1 + i * MSS, MSS);
        play.ack(i * 20_000 + 2_000, 1 + (i + 1) * MSS);
    }
    play.asked(300_000);
    play.send(301_000, 12_001, MSS);
    play.id += 1; // the first copy of what follows
    play.ack(342_000, 13_001);
    assert_eq!(repaired(play.send(352_000, 13_001, 700)), (Repair::Fast, None));
}

#[test]
fn holes_that_close_were_overtaken_or_repaired() {
    for (us, earlier, how) in [
        (1_300, true, Repair::Reordered),
        (12_000, false, Repair::Fast),
        (400_000, false, Repair::Timeout),
    ] {
        let mut play = Play::new();
        play.asked(0);
        play.send(1_000, 1, MSS);
        play.id += 1;
        let overtaken = play.id;
        play.send(1_010, 2001, MSS);
        let mut d = play.data(us, 1001, MSS);
        if earlier {
            d.ip_id = Some(overtaken);
        }
        assert_eq!(repaired(wait(play.give(&d))), (how, None));
    }
}

#[test]
fn a_hole_that_is_acknowledged_is_the_captures() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, 200);
    play.send(1_010, 401, 200);
    play.ack(41_000, 601);
    assert_eq!(play.send(41_020, 601, 200), Wait::Hole);
}

#[test]
fn a_hole_that_was_acknowledged_before_it_shows_is_the_captures() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, 200);
    play.ack(41_000, 401);
    assert_eq!(play.send(41_020, 401, 200), Wait::Hole);
    assert_ne!(
        play.send(81_020, 601, 200),
        Wait::Hole,
        "that gap has an end of its own"
    );
}

#[test]
fn duplicates_by_the_network_and_bytes_that_arrived_are_needless() {
    let mut play = Play::new();
    play.asked(0);
    let first = play.data(1_000, 1, 300);
    play.give(&first);
    let copy = Data {
        at: play.at(1_020),
        ..first
    };
    assert_eq!(play.give(&copy), Outcome::NothingNew);
    assert_eq!(
        play.send(1_100, 301, 300),
        Wait::Burst,
        "a duplicate is nobody's wait"
    );
    play.ack(11_000, 601);
    let again = play.data(240_000, 301, 300);
    assert_eq!(
        play.give(&again),
        Outcome::NothingNew,
        "acknowledged before it left"
    );
}
