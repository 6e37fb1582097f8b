//! Both sides of what is prompt, with and without its sender's clock.

use super::*;

const MS: i64 = 1_000_000;

fn measures() -> SenderMeasures {
    SenderMeasures {
        path: SenderPath {
            sender_rtt_ns: 2 * MS,
            prompt_limit_ns: 20 * MS,
            ..SenderPath::default()
        },
        ..SenderMeasures::default()
    }
}

/// So many ACKs that come after 40 to 44 ms, and what follows each takes so long from the small segment on.
fn gaps(count: i64, total: impl Fn(i64, i64) -> i64) -> Vec<Candidate> {
    let gap = |n: i64| {
        let wait = 40 * MS + n * 7 % 5 * MS;
        Candidate::of_times(wait, total(n, wait) - wait)
    };
    (0..count).map(gap).collect()
}

/// So many that are sent long after their ACKs, so many that pass so late, and others at once.
fn paused_beside(
    paused: i64,
    total: &dyn Fn(i64, i64) -> i64,
    passed: i64,
    passed_late: u32,
) -> Vec<Candidate> {
    let passes = |gaps: Vec<Candidate>, late| {
        gaps.into_iter().map(move |gap| Candidate {
            lateness_ns: Some(late),
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
        limit_by_clock(&paused_beside(paused, total, passed, 4_000_000), &measures().path)
    };
    let pause = |_, _| 60 * MS;
    assert_eq!(limit(8, &pause, 3), Some(3 * MS), "NOISE_NS");
    assert_eq!(limit(8, &pause, 4), None, "CLEAR_RATIO: as many would be late");
    assert_eq!(limit(7, &pause, 3), None, "MIN_SAMPLES");
    assert_eq!(limit(8, &|_, wait| wait + 15 * MS, 3), None, "they follow");
    // 3 ms later than the ACK lets them is not late, nor by 3 ms on the way
    let sent = |late: i64| limit(8, &|n, _| 49 * MS + late + n % 2, 3);
    assert_eq!((sent(2), sent(0)), (Some(3 * MS), None));
    let passed = |late| limit_by_clock(&paused_beside(8, &pause, 4, late), &measures().path);
    assert_eq!((passed(3_000_000), passed(3_000_001)), (Some(3 * MS), None));
    let among = |path: SenderPath| limit_by_clock(&paused_beside(8, &pause, 3, 4_000_000), &path);
    let near = SenderPath {
        sender_rtt_ns: AT_HOST_NS.get() - 1,
        ..measures().path
    };
    assert_eq!(among(near), None, "beside it");
    let tight = |prompt_limit_ns| {
        among(SenderPath {
            prompt_limit_ns,
            ..measures().path
        })
    };
    assert_eq!((tight(3 * MS + 1), tight(3 * MS)), (Some(3 * MS), None));
}

/// Held ACKs after which segments passed so late, and by their sender's clock the path took so much of that.
fn clocked(each: &[(usize, i64, u32)], fine: bool) -> Vec<Candidate> {
    let gap = |late: i64, way| Candidate {
        lateness_ns: Some(way),
        is_clock_fine: fine,
        ..Candidate::of_times(40 * MS, 2 * MS + late)
    };
    let each = each
        .iter()
        .map(|(count, late, way)| vec![gap(*late, *way); *count]);
    each.collect::<Vec<_>>().concat()
}

#[test]
fn a_clock_tells_what_the_path_took_where_that_was_possible() {
    let tells = |each: &[(usize, i64, u32)]| clock_shows_path(&clocked(each, true), &measures().path);
    assert!(
        tells(&[(8, 9 * MS, 9_000_000)]) && !tells(&[(7, 9 * MS, 9_000_000)]),
        "MIN_SAMPLES"
    );
    assert!(
        tells(&[(8, 9 * MS, 11_000_000)]) && !tells(&[(8, 9 * MS, 11_000_001)]),
        "two ticks"
    );
    assert!(tells(&[(8, -MS, 2_000_000)]) && !tells(&[(8, -MS, 2_000_001)]));
    // one in ten may be a stray
    let strays = |right| tells(&[(1, 0, 9_000_000), (right, 9 * MS, 9_000_000)]);
    assert!(strays(9) && !strays(8), "OUTLIER_ONE_IN");
    assert!(
        !clock_shows_path(&clocked(&[(20, 9 * MS, 9_000_000)], false), &measures().path),
        "a coarse clock"
    );
    let mut one_fine = clocked(&[(20, 9 * MS, 9_000_000)], false);
    one_fine.extend(clocked(&[(1, 9 * MS, 9_000_000)], true));
    assert!(
        clock_shows_path(&one_fine, &measures().path),
        "of another connection"
    );
    let untold: Vec<Candidate> = one_fine
        .iter()
        .map(|gap| Candidate {
            lateness_ns: None,
            ..*gap
        })
        .collect();
    assert!(!clock_shows_path(&untold, &measures().path));
    let unheld: Vec<Candidate> = one_fine
        .iter()
        .map(|gap| Candidate {
            ack_lacks_data: false,
            ..*gap
        })
        .collect();
    assert!(!clock_shows_path(&unheld, &measures().path));
}

#[test]
fn what_the_path_took_was_not_late() {
    let late = |late, way, clock_shows_path| {
        let gaps = clocked(&[(1, late, way)], true);
        SenderPath {
            clock_shows_path,
            ..measures().path
        }
        .late_ns(&gaps[0])
    };
    assert_eq!(late(9 * MS, 6_000_000, true), 4 * MS, "but for a tick");
    assert_eq!(late(9 * MS, 6_000_000, false), 9 * MS);
    assert_eq!(late(9 * MS, 900_000, true), 9 * MS);
    assert_eq!(late(9 * MS, 11_000_000, true), 0);
    assert_eq!(late(-MS, 11_000_000, true), -MS, "sooner than the best");
}

#[test]
fn a_clock_that_tells_of_the_path_tells_when_a_segment_was_sent() {
    let sent = |late, way, clock_shows_path| {
        let gaps = clocked(&[(1, late, way)], true);
        let path = SenderPath {
            clock_shows_path,
            ..measures().path
        };
        (path.late_ns(&gaps[0]), path.sent_late_ns(&gaps[0]))
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
    let prompt = |pause_limit| {
        let gaps = clocked(&[(1, 9 * MS, 2_000_000)], true);
        SenderMeasures {
            path: SenderPath {
                pause_limit_ns: pause_limit,
                ..measures().path
            },
            ..measures()
        }
        .is_prompt(&gaps[0])
    };
    assert!(prompt(None) && prompt(Some(7 * MS)) && !prompt(Some(7 * MS - 1)));
}

#[test]
fn what_left_later_than_any_path_its_program_wrote_then() {
    let wrote = |late, lateness| {
        measures().path.wrote_after_ack(&Candidate {
            lateness_ns: lateness,
            ..Candidate::of_times(0, 2 * MS + late)
        })
    };
    assert!(
        wrote(23 * MS + 1, Some(0)) && !wrote(23 * MS, Some(0)),
        "NOISE_NS"
    );
    assert!(!wrote(99 * MS, None), "nobody knows");
    assert!(wrote(27 * MS + 1, Some(4_000_000)) && !wrote(27 * MS, Some(4_000_000)));
}
