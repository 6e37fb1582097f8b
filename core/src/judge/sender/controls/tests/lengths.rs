//! Programs that pause for two lengths, and what is written one by one into one segment.

use super::*;
use crate::judge::SenderMeasures;

/// What such pauses say of a wait of 50 ms, nine of which were held.
fn says(short: &[Pause], longer: &[i64], outlasting: &[i64]) -> Control {
    Group {
        unheld: &[short, &unheld(longer)].concat(),
        early: &[],
        outlasting: &unheld(outlasting),
        held: 9,
    }
    .compare(50 * MS)
}

#[test]
fn pauses_of_two_lengths_say_nothing_of_what_ends_in_between() {
    // what an ACK let go, as most of a program that writes at once
    let short = [pause(0, MS, false); 2];
    let bound = Control::Shorter {
        max_ns: MS,
        likely_ns: MS,
        exact: false,
    };
    assert_eq!(says(&short, &[66 * MS; 3], &[]), bound);
    assert_eq!(says(&short, &[66 * MS; 2], &[]), Control::Unclear, "SEVERAL");
    assert_eq!(
        says(&short, &[66 * MS; 1], &[66 * MS; 2]),
        bound,
        "beyond held ACKs, too"
    );
    assert_eq!(
        says(&short, &[66 * MS; 2], &[66 * MS; 1]),
        bound,
        "both are counted"
    );
    // the longer ones differ, some reach the wait, or the short ones differ
    assert_eq!(
        says(&short, &[66 * MS, 66 * MS, 68 * MS], &[]),
        bound,
        "ONE_LENGTH_NS"
    );
    assert_eq!(
        says(&short, &[66 * MS, 66 * MS, 68 * MS + 1], &[]),
        Control::Unclear
    );
    assert_eq!(
        says(&short, &[66 * MS, 66 * MS, 66 * MS], &[68 * MS + 1]),
        Control::Unclear
    );
    assert_eq!(
        says(&short, &[55 * MS, 56 * MS, 56 * MS], &[]),
        Control::Unclear,
        "near"
    );
    let differ = [pause(0, MS, false), pause(0, 4 * MS, false)];
    assert_eq!(says(&differ, &[66 * MS; 3], &[]), Control::Unclear);
    let few = [pause(0, MS, true); 2];
    assert_eq!(
        says(&few, &[66 * MS; 3], &[]),
        Control::Unclear,
        "two that ended by themselves"
    );
}

/// A sender whose unheld segment had 300 bytes, and which paused so long after it or after the one before.
fn of_300_bytes(first: bool, pause: i64) -> Controls {
    let measures = SenderMeasures {
        path: SenderPath {
            prompt_limit_ns: 100_000,
            ..SenderPath::default()
        },
        ..SenderMeasures::default()
    };
    let gap = Candidate {
        freed_bytes: 300,
        begins_message: first,
        ..Candidate::of_times(MS, pause - MS)
    };
    let mut controls = Controls::default();
    controls.add(&gap, 0, measures.promptness());
    controls
}

#[test]
fn whether_a_long_segment_holds_several_writes_is_open_where_none_was_seen_to_follow() {
    let held = |bytes| Candidate {
        freed_bytes: bytes,
        ..Candidate::default()
    };
    let may = |first, bytes| of_300_bytes(first, 12 * MS).may_gather(&held(bytes));
    assert_eq!([449, 450, 600].map(|bytes| may(true, bytes)), [false, true, true]);
    assert!(!may(false, 600), "how it pauses there is known");
    assert!(!Controls::default().may_gather(&held(600)), "nothing left freely");
    let lacking = Controls {
        lacks_acks: true,
        ..of_300_bytes(true, 12 * MS)
    };
    assert!(!lacking.may_gather(&held(600)), "its writes may be missing");
}

#[test]
fn a_segment_behind_the_first_may_hold_the_third_write_where_messages_have_three() {
    let may = |third, first, bytes| {
        let (measures, mut controls) = (SenderMeasures::default(), of_300_bytes(true, 12 * MS));
        if third {
            // an ACK that came at once let it go
            let gap = Candidate {
                freed_bytes: 300,
                ..Candidate::of_times(4 * MS, 0)
            };
            controls.add(&gap, 0, measures.promptness());
        }
        controls.may_gather(&Candidate {
            freed_bytes: bytes,
            begins_message: first,
            ..Candidate::default()
        })
    };
    assert!(may(true, true, 301) && !may(true, true, 300));
    assert!(!may(false, true, 301), "no message had a third");
    assert!(!may(true, false, 301), "it is the third");
}

#[test]
fn what_is_longer_than_what_left_freely_may_hold_several_writes() {
    let gathered = |first, pause, bytes| of_300_bytes(first, pause).gathered(bytes);
    assert_eq!(
        [300, 301, 600, 601].map(|bytes| gathered(false, 12 * MS, bytes)),
        [0, 1, 1, 2]
    );
    assert_eq!(gathered(false, 12 * MS, 0), 0);
    assert_eq!(
        gathered(true, 12 * MS, 900),
        0,
        "it was never seen to pause again in a message"
    );
    // a busy host's pause is none
    assert_eq!(
        (gathered(false, 3 * MS, 900), gathered(false, 3 * MS + 1, 900)),
        (0, 2)
    );
    let lacking = Controls {
        most_bytes: 300,
        goes_on: true,
        lacks_acks: true,
        ..Controls::default()
    };
    assert_eq!(lacking.gathered(900), 0, "a request may be missing");
    let nothing = Controls {
        goes_on: true,
        ..Controls::default()
    };
    assert_eq!(nothing.gathered(900), 0, "nothing left freely");
}
