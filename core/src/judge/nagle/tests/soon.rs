//! What leaves a moment after an ACK, behind others that left with theirs: a busy kernel's.

use super::*;

/// So much later than the path a segment leaves behind an ACK that came after so long.
fn after(seen: &Seen, ack: i64, late: i64) -> Option<(bool, Because)> {
    match seen.rules(candidate(ack, 20 * US + late)) {
        Ruling::Held { grounds, .. } => Some((true, grounds.because)),
        Ruling::Waited { grounds, .. } => Some((false, grounds.because)),
        Ruling::Pause { .. } => None,
    }
}

#[test]
fn a_busy_kernel_sends_a_moment_later() {
    let seen = Seen::with(8, 0);
    let (soon, late) = (SOON_NS.get(), Because::LateAfterAck);
    assert_eq!(after(&seen, 41 * MS, soon), Some((true, late)));
    assert_eq!(after(&seen, 41 * MS, soon + 1), None);
    // an ACK that came at once: not behind a wait that is hardly longer
    assert_eq!(after(&seen, 10 * MS, soon), Some((false, late)));
    assert_eq!(after(&seen, 280 * US, 300 * US), Some((false, late)));
    assert_eq!(after(&seen, 280 * US - 2, 300 * US), None);
    let c = |ack_pure, ack_fin| Candidate {
        ack_pure,
        ack_fin,
        ..candidate(41 * MS, soon)
    };
    assert!(held(seen.rules(c(true, false))).is_some());
    assert!(held(seen.rules(c(false, false))).is_none() && held(seen.rules(c(true, true))).is_none());
}

#[test]
fn of_a_sender_that_is_not_known_to_wait_it_is_a_pause() {
    let (soon, late) = (SOON_NS.get(), Because::LateAfterAck);
    assert_eq!(after(&Seen::with(7, 0), 41 * MS, soon), None, "not proven");
    assert_eq!(after(&Seen::with(3, 3), 41 * MS, soon), Some((true, late)));
    assert_eq!(after(&Seen::with(2, 3), 41 * MS, soon), None, "not proven");
    let early = [Early {
        pause: MS,
        at: 0,
        frame: 1,
    }];
    let mut option = Seen::with(80, 3);
    option.pools.refute(0, 0, &early);
    assert_eq!(after(&option, 41 * MS, soon), None, "its connection goes without");
    // pauses of 40 ms, where nothing was held: such a one may end just then
    let mut works = Seen::with(8, 0);
    for _ in 0..4 {
        works.pools.add(0, &candidate(MS, 40 * MS));
    }
    assert_eq!(after(&works, 41 * MS, soon), None);
}

#[test]
fn away_from_its_host_the_path_is_all_that_is_known() {
    let mut judged = Seen::with(8, 0).judged();
    judged.tight_limit = 0;
    let rules = |judged: &Judged| pause(judged.rule(Side::Server, 0, &candidate(41 * MS, 150 * US)));
    judged.sender_rtt = AT_HOST_NS.get() - 1;
    assert_eq!(rules(&judged), None);
    judged.sender_rtt = AT_HOST_NS.get();
    assert_eq!(rules(&judged), Some((Grade::Probable, Because::LateAfterAck)));
}
