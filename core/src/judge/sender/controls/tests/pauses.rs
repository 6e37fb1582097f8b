//! What is told to be a program's pause by what its sender's clock and its other pauses say.

use super::*;
use crate::judge::SenderMeasures;
use crate::limits::AT_HOST_NS;

#[test]
fn what_left_later_than_the_path_wavers_was_the_programs_pause() {
    // an ACK that came at once, and a segment 12 ms later than the path's best: as prompt as what others take there
    let exact = |pause_limit, lateness| {
        let measures = SenderMeasures {
            path: SenderPath {
                sender_rtt_ns: 6 * MS,
                prompt_limit_ns: 25 * MS,
                pause_limit_ns: pause_limit,
                ..SenderPath::default()
            },
            ..SenderMeasures::default()
        };
        let gap = Candidate {
            lateness_ns: lateness,
            ..Candidate::of_times(MS, 18 * MS)
        };
        let mut controls = Controls::default();
        controls.add(&gap, 0, measures.promptness());
        controls.all.unheld.first().map(|pause| pause.exact)
    };
    assert_eq!(exact(Some(12 * MS - 1), Some(0)), Some(true));
    assert_eq!(exact(Some(12 * MS), Some(0)), Some(false));
    // it passed late itself
    assert_eq!(exact(Some(8 * MS), Some(4_000_000)), Some(false));
    assert_eq!(exact(Some(8 * MS), Some(3_999_999)), Some(true));
    assert_eq!(exact(Some(0), None), Some(false), "its clock does not tell");
    assert_eq!(exact(None, Some(0)), Some(false));
}

#[test]
fn what_comes_late_after_as_long_as_pauses_take_may_be_one() {
    // so many left 60 ms after their small segments, and one after `total`, so late after its ACK
    let may_be = |pauses, sender_rtt, total, late| {
        let measures = SenderMeasures {
            path: SenderPath {
                sender_rtt_ns: sender_rtt,
                jitter_within_kind_ns: MS,
                ..SenderPath::default()
            },
            controls: followed(0, &vec![60 * MS; pauses]),
            ..SenderMeasures::default()
        };
        let release = sender_rtt + late;
        measures.may_be_pause(&Candidate::of_times(total - release, release))
    };
    let soon = SOON_NS.get() + MS;
    assert!(
        may_be(5, 6 * MS, 60 * MS, soon + 1) && !may_be(5, 6 * MS, 60 * MS, soon),
        "SOON_NS"
    );
    assert!(!may_be(4, 6 * MS, 60 * MS, soon + 1), "HELD_AWAY");
    let by = PROMPT_NS.get();
    for (off, may) in [(by, true), (by + 1, false), (-by, true), (-by - 1, false)] {
        assert_eq!(may_be(5, 6 * MS, 60 * MS + off, soon + 1), may, "PROMPT_NS");
    }
    let near = AT_HOST_NS.get();
    assert!(may_be(5, near, 60 * MS, soon + 1) && !may_be(5, near - 1, 60 * MS, soon + 1));
}
