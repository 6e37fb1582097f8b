//! How long receivers hold their ACKs, and on which tick they end.

use std::net::IpAddr;

use latpcap_core::base::Side;
use latpcap_core::evidence::rtt::Pairs;
use latpcap_core::judge::{Because, Cause, Grounds, Rule, Ruling};

use latpcap_core::observe::Candidate;

use crate::common::{CLIENT, Lcg, MS, SERVER};
use crate::endpoint::{Endpoint, US, VANTAGES};

#[test]
fn a_path_of_40_ms_is_no_hold() {
    for rtts in [(20 * US, 40 * MS), (40 * MS, 20 * US), (20 * MS, 20 * MS)] {
        let mut e = Endpoint::new(rtts);
        for i in 0..20 {
            e.nagle(i * 90 * MS, 30 * US, 20 * US);
        }
        assert_eq!(e.judged().measures.holds.count, 0);
        for ruling in e.rulings() {
            assert!(
                matches!(
                    ruling,
                    Ruling::Waited {
                        rule: Rule::NagleWait,
                        ..
                    }
                ),
                "{ruling:?} {rtts:?}"
            );
        }
    }
}

#[test]
fn the_tick_shows_in_the_ends_of_the_holds() {
    let ends = |period: i64, seed: u64| {
        let (mut e, mut random) = (Endpoint::new(VANTAGES[0]), Lcg(seed));
        for i in 0..60 {
            let small = i * 50 * MS + random.below(10 * MS);
            let free = small + 40 * MS + random.below(8 * MS);
            let end = if period == 0 {
                free
            } else {
                (free * 3 / period + 1) * period / 3
            };
            e.gap(small, end + random.below(30 * US), end + 50 * US);
        }
        let judged = e.judged();
        (
            judged.measures.holds.tick.map(|tick| tick.period_ns),
            judged.measures.holds.tick.map(|tick| tick.luck),
        )
    };
    for seed in 1..20 {
        assert_eq!(ends(0, seed), (None, None), "spread evenly, seed {seed}");
        // thirds of nanoseconds: HZ 100, 250, 300, 1000
        for (period, tick) in [
            (30 * MS, 10 * MS),
            (12 * MS, 4 * MS),
            (10 * MS, 3_333_333),
            (3 * MS, MS),
        ] {
            let (found, p) = ends(period, seed);
            assert_eq!(found, Some(tick), "seed {seed}");
            assert!(p.is_some_and(|p| p < 1e-6), "{p:?}");
        }
    }
}

#[test]
fn answers_that_end_on_a_tick_wait_for_a_held_ack_elsewhere() {
    let waits = |n: i64, took: i64, tick: i64| {
        let mut e = Endpoint::new(VANTAGES[0]);
        for i in 0..n {
            e.store.answered_late(e.id, took, i * 47 * tick + i % 3 * 50 * US);
        }
        e.judged().measures.waits_elsewhere
    };
    assert!(waits(12, 44 * MS, 4 * MS));
    assert!(!waits(7, 44 * MS, 4 * MS)); // too few to show a tick
    assert!(!waits(12, 44 * MS, 4_370 * US)); // on none
    assert!(!waits(12, 36 * MS, 4 * MS)); // shorter than any held ACK
    assert!(!waits(12, 54 * MS, 4 * MS));
}

#[test]
fn what_programs_alone_have_answered_is_no_best_round_trip() {
    for (by_program, grounds) in [
        (false, Grounds::proven(Because::LeftBeforeAck)),
        (true, Grounds::probable(Because::RoundTripByProgram, Cause::Nagle)),
    ] {
        let mut endpoint = Endpoint::new((3 * MS, MS));
        endpoint.pairs = Pairs::default();
        let pair = endpoint.pairs.id(IpAddr::V4(CLIENT), IpAddr::V4(SERVER));
        endpoint.pairs.add(pair, Side::Server, 3 * MS, by_program);
        // sooner behind the ACK than anything came back
        endpoint.gap(0, 170 * MS, 170 * MS + 250 * US);
        assert_eq!(endpoint.rulings(), [Ruling::Pause { grounds }]);
    }
}

#[test]
fn lone_segments_that_are_acknowledged_at_once_are_counted_past_the_quick_acks() {
    let prompt = |streams: &[(i64, i64)], late: i64| {
        let mut e = Endpoint::new(VANTAGES[0]);
        for (stream, (count, took)) in streams.iter().enumerate() {
            e.stream = stream as u32;
            for i in 0..*count {
                e.nagle(i * 47 * MS, *took, 10 * US);
            }
        }
        for i in 0..late {
            e.nagle((100 + i) * 47 * MS, 16 * MS, 10 * US);
        }
        e.judged().measures.prompt
    };
    assert_eq!(prompt(&[(16, 0)], 0), 0);
    assert_eq!(prompt(&[(17, 0)], 0), 1);
    assert_eq!(prompt(&[(17, 0), (20, 0)], 0), 5);
    assert_eq!(prompt(&[(36, 15 * MS - 1)], 0), 20);
    assert_eq!(prompt(&[(36, 15 * MS)], 0), 0, "that was no answer at once");
    assert_eq!(prompt(&[(36, 0)], 2), 20);
    assert_eq!(prompt(&[(36, 0)], 3), 0, "some came late: nobody knows");
    // an ACK of a full segment too, with data, that the capture lacks, or behind a FIN says nothing of the timer
    let others: [fn(&mut Candidate); 5] = [
        |_| {},
        |c| c.held_from.time_ns -= 5 * US,
        |c| c.ack_lacks_data = false,
        |c| c.is_ack_unseen = true,
        |c| c.is_after_peer_end = true,
    ];
    let counted = others.map(|change| {
        let mut e = Endpoint::new(VANTAGES[0]);
        for i in 0..40 {
            let mut c = Endpoint::new(VANTAGES[0]).nagle(i * 47 * MS, 0, 10 * US).unwrap();
            change(&mut c);
            e.add(c);
        }
        e.judged().measures.prompt
    });
    assert_eq!(counted, [24, 0, 0, 0, 0]);
}
