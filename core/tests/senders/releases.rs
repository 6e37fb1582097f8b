//! What left with the ACK that it had waited for.

use std::net::IpAddr;

use latpcap_core::base::Side;
use latpcap_core::judge::{Because, Grounds, NagleUse, Rule, Ruling};
use latpcap_core::observe::Candidate;

use crate::common::{CLIENT, Lcg, MS, SERVER};
use crate::endpoint::{Endpoint, US, VANTAGES, confident};

#[test]
fn true_nagle_is_proven_and_held() {
    for rtts in VANTAGES {
        let (mut e, mut random) = (Endpoint::new(rtts), Lcg(1));
        for i in 0..42 {
            let (hold, slack) = (40 * MS + random.below(4 * MS), random.below(60 * US));
            e.nagle(i * 47 * MS, hold, slack);
        }
        let judged = e.judged();
        assert_eq!(
            (
                judged.nagle_use,
                judged.measures.holds.count,
                judged.measures.refuted
            ),
            (NagleUse::Acts, 42, 0),
            "{rtts:?}"
        );
        assert!(
            judged.measures.holds.slope.is_some_and(|slope| slope > 0.9),
            "{judged:?}"
        );
        let rulings = e.rulings();
        for (c, ruling) in e.candidates.iter().zip(rulings) {
            let Ruling::Held { hold_ns, grounds, .. } = ruling else {
                panic!("{ruling:?} at {rtts:?}")
            };
            assert!(
                grounds == Grounds::proven(Because::FollowsAcks)
                    && hold_ns == c.ack.time_ns - c.small.time_ns - rtts.1
            );
        }
    }
}

#[test]
fn few_candidates_are_at_most_probable() {
    for n in 1..8 {
        let (mut e, mut random) = (Endpoint::new(VANTAGES[0]), Lcg(7));
        e.stalls(n, &mut random);
        for ruling in e.rulings() {
            assert!(
                confident(&ruling).is_some_and(|c| (0.5..0.9).contains(&c)),
                "{n}: {ruling:?}"
            );
        }
    }
}

#[test]
fn a_fin_and_data_release_too_but_are_no_delayed_acks() {
    for (ack_pure, ack_fin, by) in [
        (true, true, Rule::NagleFinRelease),
        (false, false, Rule::NaglePiggyback),
    ] {
        let (mut e, mut random) = (Endpoint::new(VANTAGES[0]), Lcg(11));
        e.stalls(10, &mut random);
        let c = e.nagle(900 * MS, 34 * MS, 10 * US).unwrap();
        let judged = e.judged();
        let ruling = judged.rule(
            Side::Server,
            &Candidate {
                ack_lacks_data: ack_pure,
                ack_has_fin: ack_fin,
                ..c
            },
        );
        assert!(
            matches!(ruling, Ruling::Waited { rule, .. } if rule == by),
            "{ruling:?}"
        );
    }
}

#[test]
fn timestamps_overrule_the_round_trips() {
    let (mut e, mut random) = (Endpoint::new(VANTAGES[1]), Lcg(13));
    for i in 0..20 {
        let mut c = e
            .nagle(i * 47 * MS, 40 * MS + random.below(4 * MS), 10 * US)
            .unwrap();
        c.arrived = Some(false);
        let ruling = e.judged().rule(Side::Server, &c);
        assert!(matches!(ruling, Ruling::Pause { .. }), "{ruling:?}");
        c.arrived = Some(true);
        c.freed.time_ns = c.ack.time_ns; // too early for the round trip, yet it echoes the ACK
        assert!(i < 10 || matches!(e.judged().rule(Side::Server, &c), Ruling::Held { .. }));
    }
    let mut e = Endpoint::new(VANTAGES[1]);
    for i in 0..20 {
        let candidate = e.nagle(i * 47 * MS, 41 * MS, 10 * US).unwrap();
        e.add(Candidate {
            arrived: Some(false),
            ..candidate
        });
    }
    assert_eq!(e.judged().nagle_use, NagleUse::Off);
}

#[test]
fn jittered_releases_are_proven() {
    for rtts in [VANTAGES[1], VANTAGES[2]] {
        for seed in 0..20 {
            let (mut e, mut random) = (Endpoint::new(rtts), Lcg(100 + seed));
            for i in 0..42 {
                let burst = if random.below(10) == 0 {
                    random.below(12 * MS)
                } else {
                    0
                };
                let slack = random.below(1200 * US) + burst;
                e.nagle(i * 60 * MS, 40 * MS + random.below(4 * MS), slack);
                // what else comes over that path wavers as much
                let other = random.below(1200 * US) + if i % 10 == 0 { random.below(12 * MS) } else { 0 };
                let pair = e.pairs.id(IpAddr::V4(CLIENT), IpAddr::V4(SERVER));
                e.pairs.add(pair, Side::Server, rtts.0 + other, false);
            }
            let judged = e.judged();
            assert_eq!(judged.nagle_use, NagleUse::Acts, "{rtts:?} {seed}: {judged:?}");
            let sure = e.rulings().iter().filter(|r| confident(r) == Some(0.99)).count();
            assert!(
                judged.measures.holds.slope.is_some() && sure >= 36,
                "{sure} of 42"
            ); // beyond what the path does they are not sure
        }
    }
}

/// Small writes that queue up leave one over the other, and only the queue's tail waits for the ACK. At the sender
/// itself that shows: all of the held ones leave within microseconds of their ACK, which no program's pause does.
#[test]
fn instant_releases_at_the_sender_outweigh_refutations_but_prove_nothing() {
    for (slack, verdict) in [(10 * US, NagleUse::Unknown), (90 * US, NagleUse::Off)] {
        let mut e = Endpoint::new(VANTAGES[0]);
        for i in 0..2 {
            e.nagle(i * 47 * MS, 41 * MS + i * MS, slack);
        }
        for _ in 0..14 {
            e.refute(50 * US);
        }
        assert_eq!(e.judged().nagle_use, verdict);
        let sure: Vec<f64> = e.rulings().iter().filter_map(confident).collect();
        assert_eq!(sure.len(), if verdict == NagleUse::Unknown { 2 } else { 0 });
        assert!(sure.iter().all(|c| *c < 0.9));
    }
}

#[test]
fn judging_early_does_not_change_the_last_word() {
    let (mut early, mut late) = (Endpoint::new(VANTAGES[0]), Endpoint::new(VANTAGES[0]));
    let (mut random, mut same) = (Lcg(23), Lcg(23));
    for _ in 0..30 {
        early.stalls(1, &mut random);
        early.judged.judge(&early.store, &early.pairs, false);
        late.stalls(1, &mut same);
    }
    assert_eq!(format!("{:?}", early.judged()), format!("{:?}", late.judged()));
}
