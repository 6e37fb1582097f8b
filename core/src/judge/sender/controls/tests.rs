//! Both sides of the limits of control groups.

use super::*;
use crate::limits::SOON_NS;

mod bounds;
mod kernels;
mod lengths;
mod pauses;

const MS: i64 = 1_000_000;

fn pause(stream: u32, ns: i64, exact: bool) -> Pause {
    Pause { stream, ns, exact }
}

fn unheld(pauses: &[i64]) -> Vec<Pause> {
    pauses.iter().map(|ns| pause(0, *ns, true)).collect()
}

/// So many held ACKs that were followed at once, all on stream 0, and so many late ones that waited so long.
fn followed(count: usize, late: &[i64]) -> Controls {
    let lists = Lists {
        held: vec![0; count],
        ..Lists::default()
    };
    Controls {
        all: lists,
        late_waits: late.to_vec(),
        soon_count: count,
        kernel_count: count,
        slow_kernel_count: count,
        ..Controls::default()
    }
}

#[test]
fn a_pause_is_near_a_wait_from_five_milliseconds_below_to_five_above() {
    let of = |ns| partition_about(&unheld(&[ns]), 50 * MS);
    assert_eq!((of(45 * MS), of(45 * MS + 1)), ((1, 0, 0), (0, 1, 0)));
    assert_eq!((of(55 * MS), of(55 * MS + 1)), ((0, 1, 0), (0, 0, 1)));
}

#[test]
fn one_near_the_wait_and_one_longer_are_two_strays() {
    let says = |short: usize| {
        let mut pauses = vec![MS; short];
        pauses.extend([50 * MS, 70 * MS]);
        let unheld = unheld(&pauses);
        let group = Group {
            unheld: &unheld,
            held: 9,
            ..Group::default()
        };
        group.compare(50 * MS)
    };
    assert_eq!(says(17), Control::Unclear, "OUTLIER_ONE_IN");
    assert!(matches!(says(18), Control::Shorter { .. }));
}

#[test]
fn what_outlasts_one_held_ack_in_ten_may_end_within_any() {
    let says = |held, late: &[i64]| {
        Group {
            unheld: &unheld(&[MS, MS]),
            early: &[],
            outlasting: &unheld(late),
            held,
        }
        .compare(40 * MS)
    };
    let shorter = Control::Shorter {
        max_ns: MS,
        likely_ns: MS,
        exact: true,
    };
    assert_eq!(
        (says(9, &[50 * MS]), says(8, &[50 * MS])),
        (shorter, Control::Unclear)
    );
    // what took half as long again and more are other answers
    assert_eq!(
        (says(1, &[60 * MS]), says(1, &[60 * MS + 1])),
        (Control::Unclear, shorter)
    );
}

#[test]
fn what_left_before_a_held_ack_outweighs_what_outlasted_one() {
    let says = |early: usize| {
        Group {
            unheld: &[],
            early: &vec![pause(0, MS, true); early],
            outlasting: &unheld(&[44 * MS, 50 * MS]),
            held: 9,
        }
        .compare(40 * MS)
    };
    assert!(matches!(says(9), Control::Shorter { .. }));
    assert_eq!(says(8), Control::Unclear);
}

#[test]
fn what_outlasted_held_acks_of_a_connection_speaks_against_its_stalls() {
    let says = |outlasting: usize, stream| {
        let mut controls = followed(9, &[]);
        controls.all.held.extend([2; 81]); // other connections' are many
        controls.all.unheld = vec![pause(0, MS, true); 3];
        controls.all.outlasting = [45, 50].map(|ms| pause(stream, ms * MS, true))[..outlasting].to_vec();
        controls.compare(0, 40 * MS)
    };
    assert!(matches!(says(1, 0), Control::Shorter { .. }));
    assert_eq!(says(2, 0), Control::Unclear);
    assert!(matches!(says(2, 1), Control::Shorter { .. }));
}

#[test]
fn pauses_of_two_lengths_end_never_in_between() {
    let proves = |unheld: &[Pause], early: &[i64], longer: &[i64]| {
        let said = Group {
            unheld,
            early: &self::unheld(early),
            outlasting: &self::unheld(longer),
            held: 1,
        }
        .compare(40 * MS);
        assert!(said == Control::Unclear || matches!(said, Control::Shorter { .. }));
        said != Control::Unclear
    };
    let (short, long) = ([MS, 2 * MS, 3 * MS], [48 * MS, 50 * MS]);
    assert!(proves(&unheld(&short), &[], &long));
    assert!(
        !proves(&unheld(&short), &[], &[48 * MS, 50 * MS + 1]),
        "PROMPT_NS"
    );
    // a busy host makes some of many longer
    let busy =
        |shorter: usize, longer: usize, ms: i64| [vec![50 * MS; shorter], vec![ms * MS; longer]].concat();
    assert!(proves(&unheld(&short), &[], &busy(4, 4, 58)));
    assert!(!proves(&unheld(&short), &[], &busy(4, 3, 58)), "MIN_SAMPLES");
    assert!(
        !proves(&unheld(&short), &[], &busy(3, 5, 58)),
        "most are of another length"
    );
    let apart = [MS, 2 * MS, 3 * MS + 1];
    assert!(!proves(&unheld(&apart), &[], &long) && !proves(&unheld(&[MS]), &apart, &[50 * MS; 9]));
    assert!(proves(&unheld(&[MS, MS]), &[MS], &[50 * MS; 9]), "SEVERAL");
    assert!(!proves(&unheld(&[MS]), &[MS], &[50 * MS; 9]), "SEVERAL");
    // what an ACK freed had been written by then
    assert!(proves(&[pause(0, MS, false)], &[], &long));
    assert!(!proves(&[pause(0, MS, false), pause(0, MS, true)], &[], &long));
}

#[test]
fn three_pauses_of_a_connection_speak_for_it_where_others_differ() {
    // of the pauses on the other connection two are as long as the wait
    let says = |early: usize| {
        let mut controls = followed(9, &[]);
        let others = [50 * MS; 2].map(|ns| pause(1, ns, true));
        controls.all.unheld = [unheld(&[MS, MS]), others.to_vec()].concat();
        controls.all.early = vec![pause(0, MS, true); early];
        controls.compare(0, 50 * MS)
    };
    assert!(matches!(says(1), Control::Shorter { .. }));
    assert!(!matches!(says(0), Control::Shorter { .. }));
}

#[test]
fn a_bound_that_reaches_the_wait_bounds_nothing() {
    let says = |wait| {
        Group {
            unheld: &unheld(&[20 * MS]),
            early: &[],
            outlasting: &[],
            held: 9,
        }
        .compare(wait)
    };
    assert_eq!(says(30 * MS), Control::Unclear);
    assert!(matches!(says(30 * MS + 1), Control::Shorter { .. }));
}

#[test]
fn a_stream_leaves_early_from_its_first_such_segment_to_its_last() {
    let mut controls = Controls::default();
    for frame in [9, 7, 8] {
        controls.left_before(3, frame);
    }
    let leaves = [6, 7, 8, 9, 10].map(|frame| controls.leaves_early(3, frame));
    assert_eq!(leaves, [false, true, true, true, false]);
    assert!(!controls.leaves_early(4, 9));
}

#[test]
fn pauses_that_are_as_long_explain_and_shorter_ones_bound() {
    let says = |unheld: &[Pause], early: &[Pause], held| {
        Group {
            unheld,
            early,
            outlasting: &[],
            held,
        }
        .compare(50 * MS)
    };
    assert_eq!(says(&[], &[], 9), Control::Nothing);
    let short = unheld(&[MS; 10]);
    let shorter = Control::Shorter {
        max_ns: MS,
        likely_ns: MS,
        exact: true,
    };
    assert_eq!(says(&short, &[], 0), shorter);
    // half of the pauses reach the wait: unclear; more than half: they explain it
    let half = unheld(&[MS, 50 * MS]);
    assert_eq!(says(&half, &[], 0), Control::Unclear);
    assert_eq!(
        says(&unheld(&[MS, 50 * MS, 50 * MS]), &[], 0),
        Control::Explains { likely_ns: MS }
    );
    assert_eq!(
        says(&unheld(&[52 * MS]), &[], 0),
        Control::Explains { likely_ns: 25 * MS }
    );
    // one in ten may be a stray
    let mut nine = vec![MS; 9];
    nine.push(50 * MS);
    assert_eq!(says(&unheld(&nine), &[], 0), shorter);
    assert_eq!(
        says(&unheld(nine.get(1..).unwrap_or_default()), &[], 0),
        Control::Unclear
    );
    // what left early explains where more of it reaches the wait than was shorter, and than was held
    assert_eq!(says(&[], &half, 0), Control::Unclear);
    assert_eq!(
        says(&[], &unheld(&[50 * MS]), 0),
        Control::Explains { likely_ns: 25 * MS }
    );
    assert_eq!(says(&[], &unheld(&[50 * MS]), 1), Control::Unclear);
    assert_eq!(says(&short, &unheld(&[50 * MS]), 9), shorter);
    assert_eq!(says(&short, &unheld(&[50 * MS]), 8), Control::Unclear);
}

#[test]
fn so_many_held_acks_are_no_luck() {
    let follow = |count, late: usize, at_host| {
        let controls = Controls {
            is_at_host: at_host,
            ..followed(count, &vec![0; late])
        };
        controls.follow()
    };
    assert!(follow(3, 0, true) && !follow(2, 0, true));
    assert!(follow(5, 0, false) && !follow(4, 0, false));
    let always = |count, late: usize, wrote_late| {
        let controls = Controls {
            has_written_late: wrote_late,
            ..followed(count, &vec![0; late])
        };
        controls.always_follow()
    };
    assert!(always(8, 0, false) && !always(7, 0, false));
    assert!(
        always(10, 1, false) && !always(9, 1, false),
        "late ones were the path's"
    );
    assert!(!always(999, 1, true), "its program outlasted one");
}

#[test]
fn what_outlasts_held_acks_beside_its_host_was_seen_to_pause() {
    let proven = |count, outlasting: &[i64], at_host| {
        let mut controls = Controls {
            is_at_host: at_host,
            longest_held_ns: 44 * MS,
            ..followed(count, outlasting)
        };
        controls.all.outlasting = outlasting.iter().map(|ns| pause(1, *ns, true)).collect();
        controls.always_follow()
    };
    // on another connection of the same program
    let (lone, two) = ([47 * MS], [47 * MS, 52 * MS]);
    assert!(proven(1000, &lone, true));
    assert!(!proven(999, &lone, true), "OUTLASTED");
    assert_eq!(
        (proven(2000, &two, true), proven(1999, &two, true)),
        (true, false)
    );
    assert!(proven(99, &lone, false), "a path wavers");
    // pauses of one length beyond every hold are other answers, and so are much longer ones
    assert!(proven(99, &[50 * MS; 3], true));
    assert!(proven(99, &[66 * MS + 1], true));
    assert!(!proven(99, &[66 * MS], true), "LONGER_TIMES");
}

#[test]
fn a_tenth_and_three_that_left_before_late_acks_go_without_them() {
    let goes = |held, early, ns| {
        let mut controls = followed(held, &[]);
        controls.all.early = vec![pause(0, ns, true); early];
        controls.goes_without(0)
    };
    assert!(goes(9, 3, 35 * MS) && !goes(9, 2, 35 * MS) && !goes(9, 3, 35 * MS - 1));
    assert!(goes(26, 3, 40 * MS) && !goes(27, 3, 40 * MS));
}

#[test]
fn pauses_of_one_length_lie_beyond_every_hold() {
    let one_length = |late: &[i64], longest_held, unheld_ns: &[i64]| {
        let mut controls = Controls {
            longest_held_ns: longest_held,
            ..followed(8, late)
        };
        controls.all.unheld = unheld(unheld_ns);
        controls.are_other_answers(45 * MS)
    };
    let three = [60 * MS, 61 * MS, 62 * MS];
    assert!(one_length(&three, 57 * MS, &[]) && !one_length(&three, 57 * MS + 1, &[]));
    assert!(!one_length(&[60 * MS, 61 * MS, 62 * MS + 1], 50 * MS, &[]));
    assert!(!one_length(&[60 * MS, 61 * MS], 50 * MS, &[]), "SEVERAL");
    assert!(one_length(&[60 * MS, 61 * MS], 50 * MS, &[60 * MS]));
    assert!(
        !one_length(&three, 50 * MS, &[MS]),
        "a shorter one is of these answers"
    );
    // then eight held ACKs follow, whatever the late ones are
    let mut controls = Controls {
        longest_held_ns: 45 * MS,
        ..followed(8, &three)
    };
    assert!(controls.always_follow());
    (controls.late_waits, controls.has_written_late) = (vec![60 * MS, 70 * MS, 80 * MS], true);
    assert!(!controls.always_follow());
}

#[test]
fn three_pauses_of_a_connection_outweigh_those_of_all() {
    let says = |own: usize| {
        let mut controls = followed(8, &[]);
        // others pause for as long as the wait is
        let (short, long) = (pause(1, MS, true), pause(1, 50 * MS, true));
        let own_and_others = [vec![pause(0, MS, true); own], vec![short; 3 - own], vec![long; 7]];
        controls.all.unheld = own_and_others.concat();
        controls.compare(0, 50 * MS)
    };
    assert_eq!(says(2), Control::Explains { likely_ns: MS });
    assert_eq!(
        says(3),
        Control::Shorter {
            max_ns: MS,
            likely_ns: MS,
            exact: true
        }
    );
}

#[test]
fn what_leaves_early_may_be_flushed_where_it_is_longer_and_took_longer_than_what_left_freely() {
    let flushed = |pauses: &[i64], wait, bytes| {
        let all = Lists {
            unheld: unheld(pauses),
            ..Lists::default()
        };
        let controls = Controls {
            all,
            most_bytes: 100,
            ..Controls::default()
        };
        controls.may_flush(wait, bytes)
    };
    let seven = [7 * MS; 3];
    assert!(flushed(&seven, 12 * MS, 101));
    assert!(!flushed(&seven, 12 * MS, 100), "one write more");
    assert!(!flushed(&seven, 12 * MS - 1, 101), "it pauses so");
    assert!(!flushed(&seven[1..], 12 * MS, 101), "SEVERAL");
    // one pause in ten is a stray
    let mut with_stray = vec![7 * MS; 9];
    with_stray.push(30 * MS);
    assert!(flushed(&with_stray, 28 * MS, 101));
    assert!(!flushed(&with_stray[1..], 28 * MS, 101), "OUTLIER_ONE_IN");
    with_stray[9] = 60 * MS;
    assert!(flushed(&with_stray, 28 * MS, 101));
    assert!(!flushed(&with_stray[1..], 28 * MS, 101), "nor may one be longer");
    assert!(!flushed(&[], 28 * MS, 101));
}
