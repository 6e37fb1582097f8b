//! Whose loss was it that a retransmission repaired?

use latpcap_core::base::At;
use latpcap_core::judge::{Because, Grade, Owner, Paths};
use latpcap_core::observe::{Repair, Wait};

use crate::common::MS;
use crate::step::{US, cut};

#[test]
fn a_first_copy_that_came_to_its_host_was_not_taken_there() {
    for (client, server, owner) in [
        (70 * US - 1, 750 * US, Owner::Client),
        (70 * US, 750 * US, Owner::Network),
        (70 * US - 1, 750 * US - 1, Owner::Network),
    ] {
        let paths = Paths {
            best_rtts_ns: [Some(client), Some(server)],
            ..Paths::default()
        };
        let first = Some(At { frame: 1, time_ns: 0 });
        let (how, filled) = (Repair::Timeout, None);
        let wait = Wait::repair(how, first, filled, true);
        let rows = cut(wait, 0, 300 * MS, &[], &paths);
        assert_eq!(rows.last().unwrap().owner, owner, "{client} {server}");
    }
    // a hole that its peer called for is no frame that the capture alone lacks
    for (filled, grade) in [
        (None, Grade::Probable),
        (Some(At { frame: 1, time_ns: 0 }), Grade::Proven),
    ] {
        let (how, first) = (Repair::Fast, None);
        let rows = cut(
            Wait::repair(how, first, filled, true),
            0,
            30 * MS,
            &[],
            &Paths::default(),
        );
        assert_eq!(rows.last().unwrap().grounds.grade, grade);
    }
}

/// A capture at the receiver that has the first copy: the packet had come as far as that host.
#[test]
fn what_reached_the_receivers_host_was_not_lost_on_the_path() {
    let first = Some(At { frame: 1, time_ns: 0 });
    let wait = |how, first| Wait::repair(how, first, None, true);
    for (how, first, min, owner) in [
        (Repair::Timeout, first, [Some(10 * US), Some(MS)], Owner::Client),
        (Repair::TailProbe, first, [Some(10 * US), Some(MS)], Owner::Client),
        (Repair::Timeout, None, [Some(10 * US), Some(MS)], Owner::Network),
        (Repair::Fast, first, [Some(10 * US), Some(MS)], Owner::Network),
        (Repair::Timeout, first, [Some(MS), Some(10 * US)], Owner::Network),
        (
            Repair::Timeout,
            first,
            [Some(10 * US), Some(20 * US)],
            Owner::Network,
        ),
        (Repair::Timeout, first, [Some(10 * US), None], Owner::Network),
    ] {
        let rows = cut(
            wait(how, first),
            0,
            230 * MS,
            &[],
            &Paths {
                best_rtts_ns: min,
                ..Paths::default()
            },
        );
        assert_eq!(rows[0].owner, owner, "{how:?} {first:?} {min:?}");
        assert_eq!(
            rows[0].grounds.grade != Grade::Proven,
            owner == Owner::Client || first.is_none()
        );
    }
}

#[test]
fn what_nobody_tells_of_a_repeat_proves_no_loss() {
    let first = Some(At { frame: 1, time_ns: 0 });
    let paths = Paths {
        best_rtts_ns: [Some(20 * MS), Some(10 * US)],
        ..Paths::default()
    };
    for (how, told, grade, because) in [
        (Repair::TailProbe, true, Grade::Proven, Because::TimerRanOut),
        (Repair::TailProbe, false, Grade::Probable, Because::NobodyTells),
        (Repair::Timeout, false, Grade::Probable, Because::NobodyTells),
        (Repair::Fast, false, Grade::Probable, Because::NobodyTells),
        (Repair::Syn, false, Grade::Proven, Because::SentAgain),
    ] {
        let wait = Wait::repair(how, first, None, told);
        let rows = cut(wait, 0, 225 * MS, &[], &paths);
        let grounds = rows.last().unwrap().grounds;
        assert_eq!((grounds.grade, grounds.because), (grade, because), "{how:?}");
    }
}
