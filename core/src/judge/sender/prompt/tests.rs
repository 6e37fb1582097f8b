//! Both sides of what is prompt, with and without its sender's clock.

use super::*;
use crate::judge::sender::batches::Batches;

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

fn judged() -> Judged {
    Judged {
        sender_rtt: 2 * MS,
        hold_least: 25 * MS,
        tight_limit: 20 * MS,
        ..Judged::default()
    }
}

/// So many ACKs that come after 40 to 44 ms, and what follows each takes so long from the small segment on.
fn gaps(count: i64, total: impl Fn(i64, i64) -> i64) -> Vec<Gap> {
    let gap = |n: i64| {
        let wait = 40 * MS + n * 7 % 5 * MS;
        Gap {
            wait,
            release: total(n, wait) - wait,
            covered: wait,
            timer: true,
            ..Gap::default()
        }
    };
    (0..count).map(gap).collect()
}

/// The limit where so many take so long, and so many others so long.
fn limit_of(count: i64, total: impl Fn(i64, i64) -> i64, others: (i64, fn(i64) -> i64)) -> i64 {
    let others = gaps(others.0, |_, wait| others.1(wait));
    beside_pauses(&[gaps(count, total), others].concat(), &judged())
}

#[test]
fn what_keeps_its_length_wherever_the_ack_falls_is_not_the_paths() {
    let at_once: (i64, fn(i64) -> i64) = (8, |wait| wait + 2 * MS + 100 * US);
    let limit = |count, total: &dyn Fn(i64, i64) -> i64| limit_of(count, total, at_once);
    assert_eq!(limit(8, &|_, _| 60 * MS), 10 * MS);
    assert_eq!(limit(7, &|_, _| 60 * MS), 20 * MS, "ENOUGH");
    assert_eq!(limit(20, &|_, wait| wait + 8 * MS), 20 * MS, "it follows");
    assert_eq!(
        limit(20, &|n, wait| wait + 5 * MS + n * 3 % 11 * MS),
        20 * MS,
        "the path"
    );
    // a host that is busy now and then is later
    assert_eq!(
        limit(20, &|n, _| if n % 3 == 0 { 61 * MS } else { 60 * MS }),
        10 * MS
    );
    // ACKs stray by 1 ms, so what keeps its length strays by half of that
    let strays = |by: i64| limit(20, &|n, _| 60 * MS + (n % 3 - 1) * by);
    assert_eq!(
        (strays(500 * US), strays(501 * US)),
        (10 * MS, 20 * MS),
        "STEADIER"
    );
}

#[test]
fn where_batches_are_known_lengths_tell_nothing() {
    let among = [
        gaps(8, |_, _| 60 * MS),
        gaps(8, |_, wait| wait + 2 * MS + 100 * US),
    ]
    .concat();
    let mut j = judged();
    assert_eq!(beside_pauses(&among, &j), 10 * MS);
    j.batches = Some(Batches::every(6 * MS));
    assert_eq!(beside_pauses(&among, &j), 14 * MS);
}

#[test]
fn a_senders_clock_tells_how_the_path_wavers() {
    // so many came with the best, and so many 4 ms later
    let limit_of = |sender_rtt, tight_limit, soon: usize, late: usize| {
        let gap = |ns| Gap {
            lateness: ns,
            ..Gap::default()
        };
        let mut seen = vec![gap(Some(0)); soon];
        seen.extend(vec![gap(Some(4_000_000)); late]);
        seen.push(gap(None));
        by_its_clock(
            &seen,
            &Judged {
                sender_rtt,
                tight_limit,
                ..judged()
            },
        )
    };
    let limit = |sender_rtt, soon, late| limit_of(sender_rtt, 20 * MS, soon, late);
    assert_eq!((limit(MS, 8, 0), limit(MS, 7, 0)), (Some(3 * MS), None), "ENOUGH");
    assert_eq!(limit(MS, 20, 1), Some(3 * MS), "LATE_PERCENT");
    assert_eq!(limit(MS, 19, 1), Some(11 * MS), "PATH_LATE, NOISE_NS");
    let near = AT_HOST_NS.get();
    assert_eq!((limit(near, 8, 0), limit(near - 1, 8, 0)), (Some(3 * MS), None));
    // what leaves within 3 ms no clock tells from the path
    let tight = |ns| limit_of(MS, ns, 8, 0);
    assert_eq!(
        (tight(3 * MS + 1), tight(3 * MS)),
        (Some(3 * MS), None),
        "NOISE_NS"
    );
}

/// So many that are sent long after their ACKs, so many that pass so late, and others at once.
fn paused_beside(paused: i64, total: &dyn Fn(i64, i64) -> i64, passed: i64, passed_late: u32) -> Vec<Gap> {
    let passes = |gaps: Vec<Gap>, late| {
        gaps.into_iter().map(move |gap| Gap {
            lateness: Some(late),
            ..gap
        })
    };
    let sent_late = passes(gaps(paused, total), 0);
    let late = passes(
        gaps(passed, |_, wait| wait + 2 * MS + i64::from(passed_late)),
        passed_late,
    );
    let others = passes(gaps(20, |_, wait| wait + 2 * MS), 0);
    sent_late.chain(late).chain(others).collect()
}

#[test]
fn no_path_makes_pauses_that_keep_their_length_late() {
    let limit = |paused, total: &dyn Fn(i64, i64) -> i64, passed| {
        by_its_clock(&paused_beside(paused, total, passed, 4_000_000), &judged())
    };
    let pause = |_, _| 60 * MS;
    assert_eq!(limit(8, &pause, 3), Some(3 * MS), "NOISE_NS");
    assert_eq!(
        limit(8, &pause, 4),
        Some(11 * MS),
        "PATH_LATE: as many would be late"
    );
    assert_eq!(limit(7, &pause, 3), Some(11 * MS), "ENOUGH");
    assert_eq!(
        limit(8, &|_, wait| wait + 15 * MS, 3),
        Some(11 * MS),
        "they follow"
    );
    // 3 ms later than the ACK lets them is not late, nor by 3 ms on the way
    let sent = |late: i64| limit(8, &|n, _| 49 * MS + late + n % 2, 3);
    assert_eq!((sent(2), sent(0)), (Some(3 * MS), Some(11 * MS)));
    let passed = |late| by_its_clock(&paused_beside(8, &pause, 4, late), &judged());
    assert_eq!(
        (passed(3_000_000), passed(3_000_001)),
        (Some(3 * MS), Some(9 * MS + 2))
    );
}

#[test]
fn only_held_acks_and_told_ways_are_compared() {
    let limit = |other: Gap| {
        let mut seen = paused_beside(8, &|_, _| 60 * MS, 3, 4_000_000);
        seen.extend(vec![other; 40]);
        by_its_clock(&seen, &judged())
    };
    let follows = gaps(1, |_, wait| wait + 2 * MS);
    assert_eq!(limit(follows[0]), Some(3 * MS), "no clock tells");
    // the three are fewer of all, and no more late than now and then
    let unheld = Gap {
        timer: false,
        lateness: Some(0),
        ..follows[0]
    };
    assert_eq!(limit(unheld), Some(3 * MS));
}

#[test]
fn what_a_quarter_of_all_takes_is_the_paths() {
    let jitter = |sender_jitter| {
        let mut j = judged();
        j.sender_jitter = sender_jitter;
        let late = gaps(8, |_, _| 60 * MS);
        let at_once = gaps(8, |_, wait| wait + 10 * MS);
        beside_pauses(&[late, at_once].concat(), &j)
    };
    // the eight pass 14 to 18 ms behind the round trip
    assert_eq!((jitter(13 * MS), jitter(14 * MS)), (13 * MS, 20 * MS));
}

#[test]
fn a_line_that_hands_over_frames_together_keeps_all_lengths() {
    // frames come every 6 ms: what an ACK frees is at hand up to so much later, and then all of it
    let both = |others| limit_of(20, |_, _| 60 * MS, others);
    assert_eq!(both((40, |_| 50 * MS)), 20 * MS);
    assert_eq!(both((8, |wait| wait + 3 * MS)), 10 * MS);
    assert_eq!(both((7, |wait| wait + 3 * MS)), 20 * MS, "ENOUGH");
}

/// Held ACKs behind which segments passed so late, and by their sender's clock the path took so much of that.
fn clocked(each: &[(usize, i64, u32)], fine: bool) -> Vec<Gap> {
    let gap = |late: i64, way| Gap {
        wait: 40 * MS,
        release: 2 * MS + late,
        covered: 40 * MS,
        timer: true,
        lateness: Some(way),
        fine,
        ..Gap::default()
    };
    let each = each
        .iter()
        .map(|(count, late, way)| vec![gap(*late, *way); *count]);
    each.collect::<Vec<_>>().concat()
}

#[test]
fn a_clock_tells_what_the_path_took_where_that_was_possible() {
    let tells = |each: &[(usize, i64, u32)]| clock_tells(&clocked(each, true), &judged());
    assert!(
        tells(&[(8, 9 * MS, 9_000_000)]) && !tells(&[(7, 9 * MS, 9_000_000)]),
        "ENOUGH"
    );
    assert!(
        tells(&[(8, 9 * MS, 11_000_000)]) && !tells(&[(8, 9 * MS, 11_000_001)]),
        "two ticks"
    );
    assert!(tells(&[(8, -MS, 2_000_000)]) && !tells(&[(8, -MS, 2_000_001)]));
    // one in ten may be a stray
    let strays = |right| tells(&[(1, 0, 9_000_000), (right, 9 * MS, 9_000_000)]);
    assert!(strays(9) && !strays(8), "CONTROL_STRAYS");
    assert!(
        !clock_tells(&clocked(&[(20, 9 * MS, 9_000_000)], false), &judged()),
        "a coarse clock"
    );
    let mut one_fine = clocked(&[(20, 9 * MS, 9_000_000)], false);
    one_fine.extend(clocked(&[(1, 9 * MS, 9_000_000)], true));
    assert!(clock_tells(&one_fine, &judged()), "of another connection");
    let untold: Vec<Gap> = one_fine
        .iter()
        .map(|gap| Gap {
            lateness: None,
            ..*gap
        })
        .collect();
    assert!(!clock_tells(&untold, &judged()));
    let unheld: Vec<Gap> = one_fine.iter().map(|gap| Gap { timer: false, ..*gap }).collect();
    assert!(!clock_tells(&unheld, &judged()));
}

#[test]
fn what_the_path_took_was_not_late() {
    let late = |late, way, clock_tells| {
        let gaps = clocked(&[(1, late, way)], true);
        Judged {
            clock_tells,
            ..judged()
        }
        .late(&gaps[0])
    };
    assert_eq!(late(9 * MS, 6_000_000, true), 4 * MS, "but for a tick");
    assert_eq!(late(9 * MS, 6_000_000, false), 9 * MS);
    assert_eq!(late(9 * MS, 900_000, true), 9 * MS);
    assert_eq!(late(9 * MS, 11_000_000, true), 0);
    assert_eq!(late(-MS, 11_000_000, true), -MS, "sooner than the best");
    let gaps = clocked(&[(1, 9 * MS, 6_000_000)], true);
    let batches = Some(Batches::every(6 * MS));
    let mut j = Judged {
        clock_tells: true,
        batches,
        ..judged()
    };
    assert_eq!(j.late(&gaps[0]), 4 * MS);
    j.clock_tells = false;
    assert_eq!(j.late(&gaps[0]), 9 * MS);
}

#[test]
fn a_clock_that_tells_of_the_path_tells_when_a_segment_was_sent() {
    let sent = |late, way, clock_tells| {
        let gaps = clocked(&[(1, late, way)], true);
        let judged = Judged {
            clock_tells,
            ..judged()
        };
        (judged.late(&gaps[0]), judged.sent(&gaps[0]))
    };
    assert_eq!(
        sent(7 * MS, 6_000_000, true),
        (2 * MS, MS),
        "half a tick, on average"
    );
    assert_eq!(
        sent(7 * MS, 1_000_000, true),
        (7 * MS, 7 * MS),
        "a tick tells nothing"
    );
    assert_eq!(sent(7 * MS, 6_000_000, false), (7 * MS, 7 * MS));
}

#[test]
fn what_its_program_wrote_later_is_not_prompt() {
    let prompt = |pause_limit, together: Vec<u64>| {
        let gaps = clocked(&[(1, 9 * MS, 2_000_000)], true);
        Judged {
            pause_limit,
            together,
            ..judged()
        }
        .is_prompt(&gaps[0])
    };
    assert!(prompt(None, vec![]) && prompt(Some(7 * MS), vec![]));
    assert!(
        !prompt(Some(7 * MS - 1), vec![]) && prompt(Some(0), vec![0]),
        "it left with others"
    );
}

#[test]
fn what_the_path_took_around_that_time_is_no_lateness() {
    let path = |by_program| {
        let mut path = Rtt::default();
        for n in 0..12 {
            path.add_at(n * 70 * MS, 2 * MS, false);
        }
        for n in 0..9 {
            path.add_at(10_000 * MS + n * 50 * MS, 12 * MS, by_program);
        }
        path
    };
    let (busy, path) = (path(true), path(false));
    let gap = |at, release, frame| Gap {
        acked_at: at,
        release,
        frame,
        lateness: Some(0),
        ..Gap::default()
    };
    let gaps = [
        gap(10_200 * MS, 15 * MS, 7),
        gap(200 * MS, 15 * MS, 8),
        gap(5_000 * MS, 15 * MS, 9),
    ];
    let mut judged = judged();
    judged.tight_limit = 2 * MS;
    judged.slower = slower(&gaps, Some(&path), &judged);
    let late = gaps.map(|gap| judged.late(&gap));
    assert_eq!(
        late,
        [3 * MS, 13 * MS, 13 * MS],
        "nothing is known of the last one's time"
    );
    assert!(!judged.wrote_after(&gaps[0]) && judged.wrote_after(&gaps[1]));
    assert!(
        slower(&gaps, Some(&busy), &judged).is_empty(),
        "a program was busy then, and not the path"
    );
    let mut far = Rtt::default();
    for n in 0..200 {
        far.add_at(n * 70 * MS, if n == 0 { 2 * MS } else { 12 * MS }, false);
    }
    assert!(
        slower(&gaps, Some(&far), &judged).is_empty(),
        "it always takes so long"
    );
    judged.sender_rtt = AT_HOST_NS.get() - 1;
    assert!(
        slower(&gaps, Some(&path), &judged).is_empty(),
        "beside it there is no path"
    );
    judged.sender_rtt = AT_HOST_NS.get();
    let least = |late| {
        slower(
            &[gap(10_200 * MS, AT_HOST_NS.get() + late, 7)],
            Some(&path),
            &judged,
        )
        .len()
    };
    assert_eq!((least(SOON_NS.get()), least(SOON_NS.get() + 1)), (0, 1));
}

#[test]
fn what_left_later_than_any_path_its_program_wrote_then() {
    let wrote = |late, lateness| {
        judged().wrote_after(&Gap {
            release: 2 * MS + late,
            lateness,
            ..Gap::default()
        })
    };
    assert!(
        wrote(23 * MS + 1, Some(0)) && !wrote(23 * MS, Some(0)),
        "NOISE_NS"
    );
    assert!(!wrote(99 * MS, None), "nobody knows");
    assert!(wrote(27 * MS + 1, Some(4_000_000)) && !wrote(27 * MS, Some(4_000_000)));
}
