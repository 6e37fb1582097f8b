//! Both sides of what makes a ruling of a candidate, on senders that are judged by what their pools hold.

mod rows;
mod unseen;

use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::evidence::rtt::Pairs;
use crate::evidence::{Key, SenderStore};
use crate::judge::Grade;
use crate::judge::{Owner, Row};
use crate::observe::{Early, Step, Wait};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

/// One server's pool, and the path to it: 20 us, as beside it.
struct Seen {
    store: SenderStore,
    pairs: Pairs,
}

impl Seen {
    fn new() -> Seen {
        let [client, server] = [1, 2].map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        let (mut store, mut pairs) = (SenderStore::default(), Pairs::default());
        let pair = pairs.id(client, server);
        pairs.add(pair, Side::Server, 20 * US, false);
        let key = Key {
            server,
            server_port: 80,
            client,
            sender: Side::Server,
        };
        store.id(key, pair);
        Seen { store, pairs }
    }

    /// So many held ACKs, followed as a kernel does, and so many that came at once, with a pause of 5 ms after them.
    fn with(held: usize, pauses: usize) -> Seen {
        let mut seen = Seen::new();
        for _ in 0..held {
            seen.store.add(&candidate(41 * MS, 40 * US));
        }
        for _ in 0..pauses {
            seen.store.add(&candidate(MS, 4 * MS));
        }
        seen
    }

    fn refuted(mut self, count: usize) -> Seen {
        let early = Early {
            pause_ns: 5 * MS,
            time_ns: 0,
            frame: 1,
        };
        self.store.refute(0, 1, &vec![early; count]);
        self
    }

    fn judged(&self) -> SenderVerdict {
        let mut all = self
            .store
            .iter()
            .map(|evidence| SenderVerdict::new(evidence, &self.pairs));
        all.next().unwrap()
    }

    fn rules(&self, candidate: Candidate) -> Ruling {
        self.judged().rule(Side::Server, &candidate)
    }
}

/// A small segment at 0, its ACK, and what followed it so much later.
fn candidate(ack: i64, release: i64) -> Candidate {
    let at = |frame, time_ns| At { frame, time_ns };
    Candidate {
        small: at(1, 0),
        held_from: at(1, 0),
        ack: at(2, ack),
        ack_lacks_data: true,
        freed: at(3, ack + release),
        freed_bytes: 1,
        ..Candidate::default()
    }
}

fn pause(ruling: Ruling) -> Option<(Grade, Because)> {
    match ruling {
        Ruling::Pause { grounds } => Some((grounds.grade, grounds.because)),
        _ => None,
    }
}

fn held(ruling: Ruling) -> Option<(Grade, Because, i64, i64)> {
    match ruling {
        Ruling::Held { program, grounds, .. } => {
            Some((grounds.grade, grounds.because, program.max_ns, program.likely_ns))
        }
        _ => None,
    }
}

#[test]
fn what_left_before_its_ack_is_a_pause_as_sure_as_the_path() {
    // a path of 2 ms: the sender cannot have had an ACK that came less than 1.8 ms ago
    let early = |by_kernel, arrived, release| {
        let mut judged = Seen::with(0, 0).judged();
        (
            judged.measures.path.sender_rtt_ns,
            judged.measures.path.is_rtt_best,
        ) = (2 * MS, by_kernel);
        let candidate = Candidate {
            arrived,
            ..candidate(41 * MS, release)
        };
        pause(judged.rule(Side::Server, &candidate))
    };
    let proven = Some((Grade::Proven, Because::LeftBeforeAck));
    assert_eq!(early(true, None, MS), proven);
    assert_eq!(
        early(false, None, MS),
        Some((Grade::Probable, Because::RoundTripByProgram))
    );
    assert_eq!(
        early(false, Some(false), 2 * MS),
        proven,
        "its time stamp says so"
    );
    assert_eq!(early(true, None, 2 * MS), None);
}

#[test]
fn an_option_may_send_early_what_outlasts_the_usual_pauses() {
    // three pauses of 5 ms, the round trip of 20 us included; a wait lies 5 ms above them, with its release
    let early = |wait, freed_bytes| {
        let mut judged = Seen::with(0, 3).judged();
        (
            judged.measures.path.sender_rtt_ns,
            judged.measures.path.is_rtt_best,
        ) = (2 * MS, true);
        let candidate = Candidate {
            freed_bytes,
            ..candidate(wait, MS)
        };
        pause(judged.rule(Side::Server, &candidate))
    };
    let proven = Some((Grade::Proven, Because::LeftBeforeAck));
    let may_change = Some((Grade::Probable, Because::OptionMayChange));
    assert_eq!((early(9 * MS, 2), early(9 * MS - 1, 2)), (may_change, proven));
    assert_eq!(early(9 * MS, 1), proven, "no longer than what paused");
}

#[test]
fn a_hold_moves_behind_a_program_only_where_it_is_more_than_a_busy_host() {
    let candidate = candidate(41 * MS, MS);
    let moved = |max_ns, rtt| {
        let program = ProgramTime { max_ns, likely_ns: 0 };
        held_time(&candidate, 40 * MS, program, rtt).start - MS
    };
    assert_eq!(moved(750 * US, 2 * MS), 0);
    assert_eq!(moved(750 * US + 1, 2 * MS), 2 * MS);
    assert_eq!((moved(MS, 70 * US - 1), moved(MS, 70 * US)), (0, 70 * US));
}

#[test]
fn what_the_path_may_have_held_back_proves_no_pause() {
    let ruling = |held_back| {
        let candidate = Candidate {
            may_be_delayed: held_back,
            arrived: Some(false),
            ..candidate(41 * MS, 30 * US)
        };
        pause(Seen::new().rules(candidate))
    };
    assert_eq!(ruling(false), Some((Grade::Proven, Because::LeftBeforeAck)));
    assert_eq!(ruling(true), Some((Grade::Probable, Because::PathMayBeMore)));
}

#[test]
fn what_follows_later_than_a_kernel_is_a_pause() {
    let late = |seen: &Seen, release| pause(seen.rules(candidate(41 * MS, release)));
    let unknown = Seen::with(3, 0);
    assert_eq!(late(&unknown, 120 * US), None);
    let after = Some((Grade::Probable, Because::LateAfterAck));
    assert_eq!(late(&unknown, 120 * US + 1), after);
    // of who goes without ACKs it is known
    let refuted = Seen::new().refuted(9);
    assert_eq!(late(&refuted, MS), Some((Grade::Proven, Because::GoesWithoutAck)));
    let short = |seen: &Seen, release| pause(seen.rules(candidate(MS, release)));
    assert_eq!(short(&unknown, 30 * US), None);
    let mut refuted = refuted;
    let own = Early {
        pause_ns: 5 * MS,
        time_ns: 0,
        frame: 1,
    };
    refuted.store.refute(0, 0, &[own, Early { frame: 9, ..own }]);
    // with the ACK, as a kernel sends: a congestion window of one segment, perhaps
    let by_window = Some((Grade::Probable, Because::WithTheAck));
    assert_eq!(short(&refuted, 90 * US), by_window);
    let proven = Some((Grade::Proven, Because::GoesWithoutAck));
    assert_eq!(short(&refuted, 90 * US + 1), proven);
    let along = Candidate {
        ack_lacks_data: false,
        ..candidate(MS, 90 * US)
    };
    assert_eq!(pause(refuted.rules(along)), proven);
    let after = |wait| pause(refuted.rules(candidate(wait, 30 * US)));
    assert_eq!(
        (after(34 * MS), after(521 * MS)),
        (by_window, proven),
        "an ACK that came at once"
    );
}

#[test]
fn an_ack_of_its_own_with_data_or_a_fin_frees() {
    let freed = |ack_pure, ack_fin| {
        let candidate = Candidate {
            ack_lacks_data: ack_pure,
            ack_has_fin: ack_fin,
            ..candidate(MS, 30 * US)
        };
        match Seen::new().rules(candidate) {
            Ruling::Waited { rule, .. } => Some(rule),
            _ => None,
        }
    };
    assert_eq!(freed(true, false), Some(Rule::NagleWait));
    assert_eq!(freed(false, false), Some(Rule::NaglePiggyback));
    assert_eq!(
        (freed(true, true), freed(false, true)),
        (Some(Rule::NagleFinRelease), Some(Rule::NagleFinRelease))
    );
    // only one of its own is held
    let hold = |ack_pure, ack_fin, wait| {
        let candidate = Candidate {
            ack_lacks_data: ack_pure,
            ack_has_fin: ack_fin,
            ..candidate(wait, 30 * US)
        };
        held(Seen::with(3, 0).rules(candidate)).is_some()
    };
    assert!(hold(true, false, 35 * MS) && !hold(true, false, 35 * MS - 1));
    assert!(!hold(false, false, 41 * MS) && !hold(true, true, 41 * MS));
}

#[test]
fn eight_held_acks_are_many() {
    let because = |count| match Seen::with(count, 0).rules(candidate(MS, 30 * US)) {
        Ruling::Waited { grounds, .. } => Some(grounds.because),
        _ => None,
    };
    assert_eq!(because(7), Some(Because::FewWaits));
    assert_eq!(because(8), Some(Because::SenderNotKnown));
}

#[test]
fn a_held_ack_is_as_sure_as_its_control_group() {
    let ruling = |seen: Seen| held(seen.rules(candidate(41 * MS, 40 * US)));
    let five = 5 * MS;
    // three beside their sender are no luck where the program's own pauses are short
    let shorter = Because::ControlShorter;
    assert_eq!(
        ruling(Seen::with(3, 3)),
        Some((Grade::Proven, shorter, five, five))
    );
    let few = Because::FewWaits;
    assert_eq!(ruling(Seen::with(2, 3)), Some((Grade::Probable, few, five, five)));
    // without any it takes eight
    let follows = Because::FollowsAcks;
    assert_eq!(ruling(Seen::with(8, 0)), Some((Grade::Proven, follows, 0, 0)));
    assert_eq!(ruling(Seen::with(7, 0)), Some((Grade::Probable, few, 0, 0)));
}

#[test]
fn pauses_as_long_as_the_wait_explain_it_unless_a_kernel_sent() {
    let explained = |release| {
        let mut seen = Seen::with(3, 0);
        for _ in 0..4 {
            seen.store.add(&candidate(MS, 40 * MS));
        }
        seen.rules(candidate(41 * MS, release))
    };
    let (wait, likely) = (41 * MS + 90 * US, 41 * MS);
    let explains = Because::ControlExplains;
    assert_eq!(
        held(explained(90 * US)),
        Some((Grade::Probable, explains, wait, likely))
    );
    assert_eq!(pause(explained(90 * US + 1)), Some((Grade::Probable, explains)));
}

#[test]
fn who_refutes_it_elsewhere_may_have_changed_the_option() {
    // two held ACKs on this connection, and nine segments without theirs on another
    let ruling = |count| {
        let mut seen = Seen::new().refuted(9);
        for _ in 0..count {
            seen.store.add(&candidate(41 * MS, 91 * US));
        }
        seen.rules(candidate(41 * MS, 91 * US))
    };
    assert_eq!(
        pause(ruling(2)),
        Some((Grade::Probable, Because::OptionMayChange))
    );
    assert_eq!(pause(ruling(3)), None, "three of its own follow alone");
}

#[test]
fn a_pause_that_keeps_its_length_is_known_as_one() {
    let ruling = |held| {
        let mut judged = Seen::with(held, 0).judged();
        judged.nagle_use = NagleUse::AppPause;
        judged.rule(Side::Server, &candidate(41 * MS, 40 * US))
    };
    assert_eq!(pause(ruling(3)), Some((Grade::Probable, Because::KeepsItsLength)));
    assert_eq!(pause(ruling(8)), None, "eight that follow are no luck");
    let mut judged = Seen::new().judged();
    judged.nagle_use = NagleUse::AppPause;
    let known = Some((Grade::Proven, Because::KeepsItsLength));
    let late = Some((Grade::Probable, Because::LateAfterAck));
    let rule =
        |judged: &SenderVerdict, ack, release| pause(judged.rule(Side::Server, &candidate(ack, release)));
    // beyond what a busy host explains
    assert_eq!(rule(&judged, 41 * MS, 2 * MS + 20 * US + 1), known);
    assert_eq!(rule(&judged, 41 * MS, 2 * MS + 20 * US), late);
    // and where nothing was held it took less
    let mut judged = Seen::with(0, 3).judged();
    judged.nagle_use = NagleUse::AppPause;
    assert_eq!(rule(&judged, 41 * MS, MS), late);
}

#[test]
fn goes_without_its_ack_only_who_was_seen_to() {
    let judged = |held, elsewhere: bool| {
        let mut seen = Seen::with(held, 0);
        let early = Early {
            pause_ns: 5 * MS,
            time_ns: 0,
            frame: 3,
        };
        let count = 99;
        seen.store.refute(0, u32::from(elsewhere), &vec![early; count]);
        seen.judged()
    };
    let rule = |judged: &SenderVerdict, ack| {
        let grounds = pause(judged.rule(Side::Server, &candidate(ack, MS)));
        assert_eq!(judged.nagle_use, NagleUse::Off);
        grounds
    };
    let known = Some((Grade::Proven, Because::GoesWithoutAck));
    let late = Some((Grade::Probable, Because::LateAfterAck));
    assert_eq!(rule(&judged(1, false), 41 * MS), known);
    assert_eq!(rule(&judged(0, true), 41 * MS), known, "no connection waited");
    assert_eq!(rule(&judged(1, true), 41 * MS), late, "another connection's");
    let goes = [2, 3, 4].map(|frame| judged(1, false).goes_without(0, frame));
    assert_eq!(goes, [false, true, false], "not yet, and no more");
    // with the ACK: this connection's own
    let with_ack = |judged: SenderVerdict| pause(judged.rule(Side::Server, &candidate(MS, 91 * US)));
    assert_eq!(with_ack(judged(0, false)), known);
    assert_eq!(
        with_ack(judged(0, true)),
        Some((Grade::Probable, Because::WithTheAck))
    );
}

#[test]
fn what_left_soon_but_later_than_a_kernel_sends_was_a_programs() {
    let ruling = |soon| {
        let mut seen = Seen::with(4, 0);
        for _ in 0..soon {
            seen.store.add(&candidate(41 * MS, MS));
        }
        pause(seen.rules(candidate(41 * MS, 40 * US)))
    };
    // two of three as promptly
    assert_eq!(ruling(1), None);
    assert_eq!(ruling(3), Some((Grade::Probable, Because::NotAsKernel)));
}

#[test]
fn what_a_busy_host_sends_late_outlasts_no_ack() {
    // ten held ACKs that were followed at once, and two later ones
    let ruling = |late| {
        let mut seen = Seen::with(10, 2);
        for _ in 0..2 {
            seen.store.add(&candidate(41 * MS, late));
        }
        held(seen.rules(candidate(41 * MS, 40 * US))).map(|(grade, because, ..)| (grade, because))
    };
    let shorter = Some((Grade::Proven, Because::ControlShorter));
    assert_eq!(ruling(2 * MS + 20 * US), shorter);
    let unclear = Some((Grade::Probable, Because::ControlUnclear));
    assert_eq!(ruling(2 * MS + 20 * US + 1), unclear);
}
