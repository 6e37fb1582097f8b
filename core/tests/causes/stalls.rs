//! A stall is cut into the path, the held ACK and the release.

use latpcap_core::base::At;
use latpcap_core::judge::{Cause, Grade, Owner, Paths};
use latpcap_core::observe::{Candidate, Wait};

use crate::common::MS;
use crate::step::{US, cut, proven, stall};

#[test]
fn what_an_ack_frees_in_a_turn_had_waited_since_the_peer_spoke() {
    let c = stall();
    let since = At {
        frame: 2,
        time_ns: c.small.time_ns + 10 * MS,
    };
    let paths = Paths {
        best_rtts_ns: [Some(2 * MS), Some(0)],
        ..Paths::default()
    };
    for (late, cause) in [(0, Cause::Nagle), (9 * MS, Cause::ServerThink)] {
        let freed = At {
            time_ns: c.freed.time_ns + late,
            ..c.freed
        };
        let candidate = Box::new(Candidate { freed, ..c });
        let rows = cut(
            Wait::FreedTurn { since, candidate },
            since.time_ns,
            freed.time_ns,
            &[proven()],
            &paths,
        );
        let row = rows.last().unwrap();
        assert_eq!((row.cause, row.end_ns), (cause, freed.time_ns));
        assert!(late == 0 || row.grounds.grade == Grade::Probable);
    }
}

#[test]
fn a_stall_is_cut_into_path_hold_and_release() {
    let c = stall();
    let paths = Paths {
        best_rtts_ns: [Some(2 * MS), Some(2 * MS)],
        ..Paths::default()
    };
    let rows = cut(
        Wait::Small(Box::new(c)),
        c.small.time_ns,
        c.freed.time_ns,
        &[proven()],
        &paths,
    );
    let shape: Vec<_> = rows
        .iter()
        .map(|r| (r.cause, r.parent, r.owner, r.end_ns - r.start_ns))
        .collect();
    let nagle = (Cause::Nagle, None, Owner::Server, 2 * MS);
    let held = (Cause::DelayedAck, Some(Cause::Nagle), Owner::Client, 43 * MS);
    assert_eq!(
        shape,
        [nagle, held, (Cause::Nagle, None, Owner::Server, 2 * MS + 10 * US)]
    );
    assert!(
        rows.iter()
            .all(|r| r.evidence == [c.small.frame, c.ack.frame, c.freed.frame])
    );
}

/// The one segment in flight was acknowledged 42 ms late, and the next one left with that ACK.
#[test]
fn a_held_ack_stalls_a_sender_with_a_window_of_one_segment() {
    let at = |frame, time_ns| At { frame, time_ns };
    let paths = Paths {
        best_rtts_ns: [Some(2 * MS), Some(10 * US)],
        ..Paths::default()
    };
    let rows = |held: i64, collapsed: bool| {
        let wait = Wait::LoneClocked {
            ack: at(4, 2 * MS + held),
            acked: at(1, 0),
            single: collapsed,
        };
        let rows = cut(wait, 0, 2 * MS + held + 30 * US, &[], &paths);
        rows.iter()
            .map(|r| (r.cause, r.parent, r.owner, r.end_ns - r.start_ns))
            .collect::<Vec<_>>()
    };
    let waits = |ns| (Cause::Cwnd, None, Owner::Server, ns);
    let held = (Cause::DelayedAck, Some(Cause::Cwnd), Owner::Client, 42 * MS);
    assert_eq!(rows(42 * MS, true), [waits(2 * MS), held, waits(30 * US)]);
    // with a window of two and more, nothing had to wait for it
    let think = (Cause::ServerThink, None, Owner::Server, 44 * MS + 20 * US);
    let path = (Cause::Network, None, Owner::Network, 10 * US);
    assert_eq!(rows(42 * MS, false), [path, think]);
    assert_eq!(rows(0, true), [waits(2 * MS + 30 * US)]);
}
