//! Lines that hand over packets in batches, and what looks alike.

use super::*;

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

/// So many ACKs that come after so long or up to 5 ms later, over a line that hands over packets so often, both ways, and takes
/// 1 ms. What `sends` says is when the next segment is sent: by when the ACK comes, since the small segment was sent.
fn held(least: i64, period: i64, count: i64, sends: impl Fn(i64, i64) -> i64) -> Vec<Gap> {
    let gap = |number: i64| {
        let small = next((number * 70 + number % 3) * MS, period);
        let passed = next(small + MS, period);
        let acked_at = passed + least + number * 7 % 11 * 500 * US;
        let took = sends(number, next(acked_at + MS, period) - small);
        let wait = acked_at - passed;
        Gap {
            wait,
            release: next(small + took + MS, period) - acked_at,
            covered: wait,
            acked_at,
            ticks: i32::try_from(took / MS).ok(),
            timer: true,
            ..Gap::default()
        }
    };
    (0..count).map(gap).collect()
}

fn over(period: i64, count: i64, sends: impl Fn(i64, i64) -> i64) -> Vec<Gap> {
    held(38 * MS, period, count, sends)
}

fn follows(_: i64, comes: i64) -> i64 {
    comes
}

/// A sender whose best round trip is so long.
fn to(sender_rtt: i64) -> Judged {
    Judged {
        sender_rtt,
        hold_least: 25 * MS,
        tight_limit: 20 * MS,
        ..Judged::default()
    }
}

/// The period that is found, in microseconds.
fn found(gaps: &[Gap], sender_rtt: i64) -> Option<i64> {
    of(gaps, &to(sender_rtt)).map(|batches| batches.period / US)
}

/// How late these are, in milliseconds.
fn late(gaps: &[Gap], sender_rtt: i64) -> Vec<i64> {
    let mut judged = to(sender_rtt);
    judged.batches = of(gaps, &judged);
    let late = gaps.iter().map(|gap| judged.late(gap));
    late.map(|late| late / MS).collect()
}

#[test]
fn what_passes_with_the_next_batch_is_not_late() {
    for period in [3, 5, 6, 7] {
        let gaps = over(period * MS, 30, follows);
        assert_eq!(found(&gaps, (period + 1) * MS), Some(period * 1_000));
        assert_eq!(late(&gaps, (period + 1) * MS), [0; 30], "{period} ms");
        let raw = gaps.iter().map(|gap| gap.release - (period + 1) * MS);
        assert!(raw.max().is_some_and(|late| late >= (period - 1) * MS));
        // some milliseconds after the ACK is the batch after that
        let after = over(period * MS, 30, |_, comes| comes + 15 * MS);
        assert!(late(&after, (period + 1) * MS).iter().all(|late| *late >= period));
    }
}

#[test]
fn batches_come_so_far_apart() {
    let longest = |least, period| found(&held(least, period, 40, follows), period + MS);
    assert_eq!(longest(45 * MS, 12 * MS), Some(12_000));
    // of a longer one a part is taken
    assert_eq!(longest(49 * MS, 13 * MS), Some(4_333), "BATCH_MOST_NS");
    assert_eq!(found(&over(2 * MS, 40, follows), 2 * MS), Some(2_000));
    assert_eq!(
        found(&over(1_700 * US, 40, follows), 2 * MS),
        None,
        "BATCH_LEAST_NS"
    );
    // no line without a way
    assert_eq!(found(&over(6 * MS, 30, follows), MS - 1), None);
    let few = over(6 * MS, 7, follows);
    assert_eq!(found(&few, 7 * MS), None, "ENOUGH");
}

#[test]
fn what_passes_far_apart_tells_nothing() {
    // from one small segment to what follows it, and from there to the next
    let apart = |wait: i64| {
        let gaps = over(6 * MS, 30, follows).into_iter().enumerate();
        let gaps = gaps.map(|(number, gap)| Gap {
            wait: gap.wait + wait,
            covered: gap.covered + wait,
            acked_at: gap.acked_at + wait + number as i64 * 600 * MS,
            ..gap
        });
        found(&gaps.collect::<Vec<_>>(), 7 * MS)
    };
    assert_eq!(apart(42 * MS), Some(6_000));
    assert_eq!(apart(60 * MS), None, "BATCH_APART_NS");
}

#[test]
fn a_release_that_is_prompt_needs_no_batch() {
    // they are 0 to 5.5 ms later than 7 ms
    let gaps = over(6 * MS, 30, follows);
    let mut late: Vec<i64> = gaps.iter().map(|gap| gap.release).collect();
    late.sort_unstable();
    let middle = at_share(&late, 0.5).unwrap();
    assert_eq!(found(&gaps, middle - SOON_NS.get() - 1), Some(6_000));
    assert_eq!(found(&gaps, middle - SOON_NS.get()), None, "SOON_NS");
}

#[test]
fn a_programs_pause_of_one_length_is_no_batch() {
    // 60 ms on a line of 12 ms: on many grids
    let pauses = |count, others: &dyn Fn(i64) -> i64| {
        let gaps = (0..count).map(|number| {
            let wait = 40 * MS + number * 7 % 11 * 500 * US;
            let acked_at = number * 72 * MS + wait;
            Gap {
                wait,
                release: others(number) - wait,
                covered: wait,
                acked_at,
                timer: true,
                ..Gap::default()
            }
        });
        found(&gaps.collect::<Vec<_>>(), 12 * MS)
    };
    assert_eq!(pauses(30, &|_| 60 * MS), None);
    assert_eq!(
        pauses(30, &|number| if number == 7 { 48 * MS } else { 60 * MS }),
        None,
        "a stray"
    );
    // nor is one of two lengths, which follows no ACK
    assert_eq!(
        pauses(30, &|number| if number % 4 == 0 { 72 * MS } else { 60 * MS }),
        None
    );
    // every third one that differs is a line's
    let third = |part| {
        pauses(30, &move |number| {
            if number % part == 0 { 72 * MS } else { 60 * MS }
        })
    };
    assert_eq!((third(3), third(4)), (Some(12_000), None), "BATCH_PARTS");
}

#[test]
fn acks_that_lie_on_the_grid_themselves_need_no_batch() {
    // all of them on a kernel's tick of 4 ms, as what follows them
    let gaps = (0..30).map(|number| {
        let wait = 40 * MS + number % 3 * 4 * MS;
        Gap {
            wait,
            release: 12 * MS,
            covered: wait,
            acked_at: number * 100 * MS + wait,
            timer: true,
            ..Gap::default()
        }
    });
    assert_eq!(found(&gaps.collect::<Vec<_>>(), 8 * MS), None);
}

#[test]
fn what_was_sent_between_two_batches_is_late() {
    // one of four is written 56 ms after the small one, whenever the ACK came, and passes with a batch as well
    let mixed = |part| {
        let sends = move |number, comes| if number % part == 0 { 56 * MS } else { comes };
        over(6 * MS, 39, sends)
    };
    let gaps = mixed(4);
    assert_eq!(found(&gaps, 7 * MS), Some(6_000));
    let paused = |late: Vec<i64>| late.iter().step_by(4).filter(|late| **late > 0).count();
    assert_eq!(paused(late(&gaps, 7 * MS)), 10);
    let others = late(&gaps, 7 * MS).into_iter().enumerate();
    assert!(
        others
            .filter(|(number, _)| number % 4 > 0)
            .all(|(_, late)| late == 0)
    );
    // a clock that does not tell tells of none
    let untold: Vec<Gap> = gaps.iter().map(|gap| Gap { ticks: None, ..*gap }).collect();
    assert!(paused(late(&untold, 7 * MS)) < 10);
    let slow = gaps.iter().map(|gap| Gap {
        ticks: gap.ticks.map(|ticks| ticks / 4),
        ..*gap
    });
    assert_eq!(late(&slow.collect::<Vec<_>>(), 7 * MS), late(&untold, 7 * MS));
    // what came before its ACK can have freed it is no later for that
    let mut judged = to(7 * MS);
    judged.batches = of(&gaps, &judged);
    assert_eq!(
        judged.late(&Gap {
            wait: 40 * MS,
            release: 5 * MS,
            ..Gap::default()
        }),
        -2 * MS
    );
    // where as many are, the times of their sending say nothing
    assert_eq!(found(&mixed(3), 7 * MS), Some(6_000));
    assert_eq!(found(&mixed(2), 7 * MS), None, "BATCH_PARTS");
}

#[test]
fn a_batch_explains_its_own_part_of_what_is_late() {
    let batches = Batches {
        period: 6 * MS,
        sent: None,
    };
    assert_eq!(
        (batches.limit(9 * MS), batches.limit(8 * MS), batches.limit(MS)),
        (3 * MS, 2 * MS, 2 * MS)
    );
}

#[test]
fn what_is_sent_with_a_batch_is_sent_within_two_ticks() {
    let batches = Batches {
        period: 6 * MS,
        sent: Some(0),
    };
    let between = |ticks| batches.is_between(i64::from(ticks) * MS, Some(ticks));
    assert_eq!([60, 61, 62, 65].map(between), [false, false, true, true]);
}

#[test]
fn a_period_is_not_taken_for_a_part_of_it() {
    for us in [2_100, 4_135, 4_172, 4_394, 4_690, 5_023, 5_726, 6_059] {
        let found = found(&over(us * US, 40, follows), us * US + MS);
        assert!(
            found.is_some_and(|found| (found - us).abs() <= 1),
            "{us}: {found:?}"
        );
    }
}

#[test]
fn times_of_sending_tell_where_most_have_them_and_batches_are_long_enough() {
    let told = |period: i64, without: usize| {
        let gaps = over(period, 30, follows).into_iter().enumerate();
        let gaps = gaps.map(|(number, gap)| Gap {
            ticks: gap.ticks.filter(|_| number >= without),
            ..gap
        });
        let batches = of(&gaps.collect::<Vec<_>>(), &to(period + MS));
        batches.map(|batches| batches.sent.is_some())
    };
    assert_eq!(told(6 * MS, 10), Some(true));
    assert_eq!(told(6 * MS, 11), Some(false), "BATCH_PARTS");
    assert_eq!(told(3 * MS, 0), Some(true));
    assert_eq!(told(2_990 * US, 0), Some(false), "BATCH_SENT_NS");
}

#[test]
fn only_what_held_acks_free_shows_batches() {
    // the others were not held, as many as wanted
    let held = |count: usize| {
        let gaps = over(6 * MS, 40, follows).into_iter().enumerate();
        let gaps = gaps.map(|(number, gap)| Gap {
            covered: if number < count { gap.covered } else { MS },
            ..gap
        });
        found(&gaps.collect::<Vec<_>>(), 7 * MS)
    };
    assert_eq!((held(8), held(7)), (Some(6_000), None), "ENOUGH");
    // what is of one length elsewhere hides nothing
    let mut gaps = over(6 * MS, 30, follows);
    gaps.extend(
        over(6 * MS, 90, |_, _| 53 * MS)
            .into_iter()
            .map(|gap| Gap { covered: MS, ..gap }),
    );
    assert_eq!(found(&gaps, 7 * MS), Some(6_000));
}

#[test]
fn a_batch_ends_with_its_last_nanosecond_and_a_clock_is_believed_to_a_quarter() {
    assert_eq!([11, 12, 13].map(|time| super::next(time, 6)), [12, 12, 18]);
    let parts = BELIEVED_PART.get();
    let told = |ticks: i64| sent(parts * MS, ticks as i32, 7 * MS);
    assert_eq!((told(parts - 1), told(parts - 2)), (Some((parts - 1) * MS), None));
}
