//! Programs that pause about as long as a receiver holds its ACK: none of them is a proven stall.

use latpcap_core::base::Side;
use latpcap_core::judge::{Because, Cause, Grounds, NagleUse, Ruling};

use crate::common::{Lcg, MS};
use crate::endpoint::{Endpoint, US, VANTAGES, confident, timer};

#[test]
fn pauses_near_the_timer_are_never_proven_stalls() {
    for (vantage, rtts) in VANTAGES.into_iter().enumerate() {
        for step in 0..=15 {
            for seed in 0..20 {
                let pause = 40_500 * US + step * 500 * US;
                let mut random = Lcg(1 + seed * 1000 + step as u64 * 7 + vantage as u64);
                let mut e = Endpoint::new(rtts);
                for _stream in 0..3 {
                    let mut now = random.below(1000 * MS);
                    for _exchange in 0..14 {
                        let passing = rtts.1 / 2; // to the receiver, and the same back
                        let hold = timer(now + passing, &mut random);
                        let pause = pause + 50 * US + random.below(250 * US);
                        e.pause(now, hold, pause);
                        now += pause + rtts.0 + rtts.1 + 100 * US + random.below(300 * US);
                    }
                }
                let judged = e.judged();
                let sure = e.sure();
                let case = format!("pause {pause} rtts {rtts:?} seed {seed}: {judged:?}");
                assert!(
                    judged.nagle_use != NagleUse::Acts && sure == 0,
                    "{sure} stalls, {case}"
                );
            }
        }
    }
}

/// A socket's timeout (SO_RCVTIMEO) ends on the kernel's tick, as the delayed-ACK timer does. Where both hosts are one
/// kernel such a program follows the ACKs, but it has to be woken up, or passes the path's time beside them.
#[test]
fn a_program_that_sleeps_on_the_receivers_tick_is_no_proven_stall() {
    for (rtts, beside) in [
        ((10 * US, 12 * US), 100 * US),
        ((6500 * US, 15 * US), 800 * US),
        ((15 * US, 6500 * US), 800 * US),
        ((2 * MS, 2 * MS), 1500 * US),
    ] {
        let (mut e, mut random) = (Endpoint::new(rtts), Lcg(17));
        for i in 0..40 {
            let hold = timer(i * 47 * MS + random.below(9 * MS), &mut random);
            e.nagle(i * 60 * MS, hold, beside + random.below(150 * US));
        }
        let judged = e.judged();
        assert_eq!(judged.nagle_use, NagleUse::Unknown, "{judged:?}");
        assert!(e.rulings().iter().filter_map(confident).all(|c| c < 0.9));
    }
}

/// Nagle acts, and the program works before its second write, now for less than the hold and now for more: where it had
/// written nobody can tell, and what left later than a kernel would is the program's.
#[test]
fn a_program_that_works_before_its_second_write_is_no_proven_stall() {
    for rtts in VANTAGES {
        let (mut e, mut random) = (Endpoint::new(rtts), Lcg(19));
        for i in 0..40 {
            let (hold, pause) = (40 * MS + random.below(4 * MS), 20 * MS + random.below(40 * MS));
            let waited = (rtts.0 + rtts.1 + hold).max(pause);
            e.gap(
                i * 90 * MS,
                i * 90 * MS + rtts.1 + hold,
                i * 90 * MS + waited + 20 * US,
            );
        }
        assert!(e.judged().nagle_use != NagleUse::Acts);
        let rulings = e.rulings();
        assert!(rulings.iter().filter_map(confident).all(|c| c < 0.9));
        for (c, ruling) in e.candidates.iter().zip(&rulings) {
            let late = c.freed.time_ns - c.ack.time_ns - rtts.0 > 3 * MS;
            assert!(
                !late || matches!(ruling, Ruling::Pause { .. }),
                "{rtts:?} {ruling:?}"
            );
        }
    }
}

/// Beside its sender a kernel sends at once; a program that waits for the ACK (SIOCOUTQ, TCP_INFO) has to be woken up.
#[test]
fn a_program_that_waits_for_the_ack_is_no_kernel() {
    for (slack, kernel) in [
        (50 * US, true),
        (60 * US, true),
        (61 * US, false),
        (130 * US, false),
    ] {
        let mut e = Endpoint::new(VANTAGES[0]);
        e.gap(0, 4 * MS + 20 * US, 4 * MS + 40 * US);
        for i in 1..20 {
            // the clock of one in four is finer: its program polls just then
            let late = if i % 4 == 0 { 40 * US } else { slack };
            e.nagle(i * 90 * MS, 41 * MS, late);
        }
        let sure = e.sure();
        assert_eq!(sure > 0, kernel, "{slack}");
    }
}

/// The same of a relay whose own server waits for an ACK that is held until the same tick: its kernel is as prompt as it shakes
/// hands. What a slow kernel may send as well is probably held; what none sends is probably the program's.
#[test]
fn a_relay_is_later_than_its_kernel_shakes_hands() {
    let program = Grounds::probable(Because::NotAsKernel, Cause::Nagle);
    let (kernel, slow) = (
        Grounds::proven(Because::FollowsAcks),
        Grounds::probable(Because::NotAsKernel, Cause::ServerThink),
    );
    for (handshake, release, expected) in [
        (17 * US, 40 * US, kernel),
        (17 * US, 41 * US, slow),
        (17 * US, 75 * US, slow),
        (17 * US, 76 * US, program),
        (45 * US, 90 * US, kernel),
        (45 * US, 91 * US, program),
    ] {
        let mut e = Endpoint::new((5 * US, 4 * MS));
        e.pairs.add_handshake_rtt(0, Side::Server, handshake);
        for i in 0..20 {
            e.nagle(
                i * 90 * MS,
                40 * MS + i % 4 * MS + i * 40 * US,
                release - e.rtts.0,
            );
        }
        for ruling in e.rulings() {
            let (Ruling::Held { grounds, .. } | Ruling::Pause { grounds }) = ruling else {
                panic!("{ruling:?}")
            };
            assert_eq!(grounds, expected, "{handshake} {release}");
        }
    }
}

#[test]
fn a_pause_of_43_ms_is_named_a_pause() {
    for rtts in VANTAGES {
        let (mut e, mut random) = (Endpoint::new(rtts), Lcg(3));
        for i in 0..42 {
            let hold = 40 * MS + random.below(4 * MS);
            e.pause(i * 50 * MS, hold, 43 * MS + random.below(200 * US));
        }
        let judged = e.judged();
        assert!(
            matches!(judged.nagle_use, NagleUse::AppPause | NagleUse::Off),
            "{judged:?}"
        );
        assert!(e.rulings().iter().all(|r| matches!(r, Ruling::Pause { .. })));
    }
}
