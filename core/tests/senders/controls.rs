//! The control group: what the program takes where no ACK was held.

use latpcap_core::judge::{Because, Cause, Grounds, NagleUse, ProgramTime, Ruling};

use crate::common::{Lcg, MS};
use crate::endpoint::{Endpoint, US, VANTAGES, confident};

/// The control group: the first exchange, whose ACK is not held, takes what the program takes.
#[test]
fn what_the_program_takes_where_nothing_is_held_is_no_stall() {
    for rtts in VANTAGES {
        for (program, stall) in [(0, true), (20 * MS, true), (39 * MS, false)] {
            let (mut e, mut random) = (Endpoint::new(rtts), Lcg(29));
            e.gap(0, rtts.1 + 20 * US, (rtts.0 + rtts.1 + 20 * US).max(program));
            for i in 1..20 {
                e.nagle(i * 90 * MS, 40 * MS + random.below(4 * MS), 20 * US);
            }
            let rulings = e.rulings();
            let explains = Grounds::probable(Because::ControlExplains, Cause::ServerThink);
            for ruling in rulings.iter().skip(1) {
                let Ruling::Held {
                    program:
                        ProgramTime {
                            max_ns: most,
                            likely_ns: likely,
                        },
                    grounds,
                    ..
                } = ruling
                else {
                    // from afar nobody can tell a kernel's release from a write just then
                    assert!(!stall && rtts != VANTAGES[0], "{ruling:?} {program} {rtts:?}");
                    continue;
                };
                if *grounds == explains {
                    assert_eq!((stall, *likely), (false, program), "{rtts:?}");
                    continue;
                }
                // where the one pause that is known, and half as much again, reaches the wait it bounds nothing
                if *grounds == Grounds::probable(Because::ControlUnclear, Cause::ServerThink) {
                    assert!(!stall, "{program} {rtts:?}");
                    continue;
                }
                assert_eq!(
                    *grounds,
                    Grounds::proven(Because::ControlShorter),
                    "{program} {rtts:?}"
                );
                // a pause that no ACK ended, and the only one, may be half as long again the next time
                let exact = program > rtts.0 + rtts.1 + MS;
                let (seen, known) = if exact {
                    (most * 2 / 3, most * 2 / 3)
                } else {
                    (*most, 0)
                };
                assert!(
                    (0..=MS).contains(&(seen - program.max(rtts.0 + rtts.1))),
                    "{ruling:?}"
                );
                assert_eq!(*likely, known);
            }
        }
    }
}

/// One control more or less than a tenth that is as long as the wait decides between a stall and a doubt.
#[test]
fn a_tenth_of_the_control_group_may_stray() {
    for (strays, sure) in [(1, true), (2, false)] {
        let (mut e, mut random) = (Endpoint::new(VANTAGES[0]), Lcg(31));
        for i in 0..15 {
            let took = if i < strays { 43 * MS } else { 5 * MS };
            e.gap(i * 90 * MS, i * 90 * MS + 4 * MS + 20 * US, i * 90 * MS + took);
        }
        for i in 15..40 {
            e.nagle(i * 90 * MS, 40 * MS + random.below(MS), 20 * US);
        }
        let held: Vec<f64> = e.rulings().iter().filter_map(confident).collect();
        assert!(held.iter().all(|c| (*c >= 0.9) == sure), "{strays} {held:?}");
    }
}

/// An option that is switched: what left early at one time left at once, so what waits at another waits for the ACK.
#[test]
fn what_left_early_on_a_connection_is_a_control_of_what_was_held() {
    for (refuted, verdict) in [(0, NagleUse::Acts), (3, NagleUse::Mixed), (5, NagleUse::Mixed)] {
        let (mut e, mut random) = (Endpoint::new(VANTAGES[2]), Lcg(5));
        e.stalls(40, &mut random);
        for _ in 0..refuted {
            e.refute(50 * US);
        }
        assert_eq!(e.judged().nagle_use, verdict, "{refuted}");
        assert!(e.rulings().iter().all(|r| confident(r).is_some_and(|c| c >= 0.9)));
    }
}
