//! Both sides of the limits by which a sender is judged.

use std::net::{IpAddr, Ipv4Addr};

use super::controls::Pause;
use super::*;
use crate::base::{At, Side};
use crate::evidence::Key;
use crate::observe::Early;

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

/// A sender with this round trip, and with pauses of these lengths where nothing was held; in ns.
pub(in crate::judge) fn paused(sender_rtt: i64, pauses: &[i64]) -> SenderVerdict {
    let of_program = pauses.iter().map(|ns| Pause::of_program(*ns));
    let measures = SenderMeasures {
        path: SenderPath {
            sender_rtt_ns: sender_rtt,
            prompt_limit_ns: 3 * MS,
            ..SenderPath::default()
        },
        controls: Controls::paused(of_program.collect()),
        ..SenderMeasures::default()
    };
    SenderVerdict {
        measures,
        ..SenderVerdict::default()
    }
}

/// Its pool and the paths to it, with so many refutations.
fn seen(sender_rtt: i64, refutations: usize) -> (SenderStore, Pairs) {
    let [client, server] = [1, 2].map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
    let (mut store, mut pairs) = (SenderStore::default(), Pairs::default());
    let pair = pairs.id(client, server);
    pairs.add(pair, Side::Server, sender_rtt, false);
    let key = Key {
        server,
        server_port: 80,
        client,
        sender: Side::Server,
    };
    let id = store.id(key, pair);
    refute(&mut store, id, refutations);
    (store, pairs)
}

fn refute(store: &mut SenderStore, id: u32, count: usize) {
    let early = Early {
        pause_ns: 5 * MS,
        time_ns: 0,
        frame: 1,
    };
    store.refute(id, 0, &vec![early; count]);
}

/// A small segment whose ACK came so long after it, and what followed that so much later.
fn add(store: &mut SenderStore, stream: u32, start: i64, wait: i64, release: i64) {
    let at = |frame, time_ns| At { frame, time_ns };
    let candidate = Candidate {
        small: at(1, start),
        held_from: at(1, start),
        ack: at(2, start + wait),
        ack_lacks_data: true,
        freed: at(3, start + wait + release),
        freed_bytes: 1,
        stream,
        ..Candidate::default()
    };
    store.add(&candidate);
}

/// So many held ACKs, each followed after so long.
fn follow(store: &mut SenderStore, stream: u32, count: i64, release: i64) {
    for number in 0..count {
        add(store, stream, number * 50 * MS, 41 * MS, release);
    }
}

/// The one sender, judged.
fn judged(store: &SenderStore, pairs: &Pairs) -> SenderVerdict {
    store
        .iter()
        .map(|evidence| SenderVerdict::new(evidence, pairs))
        .next()
        .unwrap()
}

fn refuted(judged: &[SenderVerdict]) -> Vec<u64> {
    judged.iter().map(|judged| judged.measures.refuted).collect()
}

#[test]
fn a_segment_that_left_before_the_ack_came_is_told_to_the_nanosecond() {
    let before = |sender_jitter, release| {
        let measures = SenderMeasures {
            path: SenderPath {
                sender_rtt_ns: 2 * MS,
                sender_jitter_ns: sender_jitter,
                ..SenderPath::default()
            },
            ..SenderMeasures::default()
        };
        measures.path.left_before_ack(&Candidate::of_times(0, release))
    };
    // the path wavers by AT_HOST_NS at least, and by a quarter at most (WAVER_PART)
    for (jitter, granted) in [
        (0, 70 * US),
        (70 * US, 70 * US),
        (150 * US, 150 * US),
        (500 * US, 500 * US),
        (MS, 500 * US),
    ] {
        assert!(!before(jitter, 2 * MS - granted), "{jitter}");
        assert!(before(jitter, 2 * MS - granted - 1), "{jitter}");
    }
    let stamped = SenderMeasures::default();
    let left_before = |release, arrived| {
        stamped.path.left_before_ack(&Candidate {
            arrived,
            ..Candidate::of_times(0, release)
        })
    };
    assert!(left_before(5, Some(false)) && !left_before(-5, Some(true)));
}

#[test]
fn a_kernel_sends_half_of_them_at_once_beside_it_and_as_the_path_wavers_elsewhere() {
    let by_kernel = |sender_rtt, median, [sender_jitter, sender_jitter_within_kind]: [i64; 2]| {
        let measures = SenderMeasures {
            path: SenderPath {
                sender_rtt_ns: sender_rtt,
                sender_jitter_ns: sender_jitter,
                jitter_within_kind_ns: sender_jitter_within_kind,
                ..SenderPath::default()
            },
            holds: Holds {
                sent_median_ns: Some(median),
                ..Holds::default()
            },
            ..SenderMeasures::default()
        };
        measures.kernel_sends_most()
    };
    let near = |median, jitter| by_kernel(70 * US - 1, median, [jitter, 9 * MS]);
    assert!(near(70 * US, 0) && !near(70 * US + 1, 0));
    assert!(near(80 * US, 10 * US) && !near(81 * US, 10 * US));
    let far = |median, wavering| by_kernel(70 * US, median, [9 * MS, wavering]);
    assert!(far(750 * US, 0) && !far(750 * US + 1, 0));
    assert!(far(2_750 * US, 2 * MS) && !far(2_751 * US, 2 * MS));
    assert!(!SenderMeasures::default().kernel_sends_most());
}

#[test]
fn by_its_clock_a_kernel_sends_half_of_them_at_once_on_a_late_path() {
    let median = |late: i64, way: Option<u32>, clock_shows_path| {
        let gap = Candidate {
            lateness_ns: way,
            ..Candidate::of_times(41 * MS, 6 * MS + late)
        };
        let measures = SenderMeasures {
            path: SenderPath {
                sender_rtt_ns: 6 * MS,
                clock_shows_path,
                ..SenderPath::default()
            },
            ..SenderMeasures::default()
        };
        let holds = Holds::new(&[gap; 3], measures.promptness());
        (holds.release_median_ns, holds.sent_median_ns)
    };
    let both = |ns| (Some(ns), Some(ns));
    assert_eq!(
        median(6 * MS, Some(5_500_000), true),
        (Some(1_500 * US), Some(500 * US))
    );
    assert_eq!(median(6 * MS, Some(6_900_000), true), (Some(100 * US), Some(0)));
    assert_eq!(median(6 * MS, Some(5_500_000), false), both(6 * MS));
    assert_eq!(median(6 * MS, None, true), both(6 * MS));
}

#[test]
fn seen_from_elsewhere_even_what_a_control_group_bounds_leaves_as_a_kernel_sends() {
    let proves = |sender_rtt, release| {
        let (mut store, mut pairs) = seen(sender_rtt, 0);
        for _ in 0..8 {
            pairs.add(0, Side::Server, sender_rtt + 9 * MS, true); // its own server is so far
        }
        follow(&mut store, 0, 8, sender_rtt + release);
        add(&mut store, 0, 0, MS, sender_rtt + 5 * MS);
        let judged = judged(&store, &pairs);
        let control = judged
            .measures
            .compare(&Candidate::of_times(0, 41 * MS + release));
        assert!(matches!(control, Control::Shorter { .. }));
        judged.measures.proves_nagle(0, control)
    };
    assert!(proves(2 * MS, 750 * US) && !proves(2 * MS, 751 * US));
}

#[test]
fn a_connection_that_goes_without_late_acks_is_no_proof() {
    let proven = |sender_rtt, pause, refutations| {
        let (mut store, pairs) = seen(sender_rtt, 0);
        follow(&mut store, 0, 20, sender_rtt + 40 * US);
        add(&mut store, 0, 0, MS, sender_rtt + 5 * MS);
        let early = Early {
            pause_ns: pause,
            time_ns: 0,
            frame: 1,
        };
        store.refute(0, 0, &vec![early; refutations]);
        judged(&store, &pairs).measures.proves_nagle(
            0,
            Control::Shorter {
                max_ns: MS,
                likely_ns: MS,
                exact: true,
            },
        )
    };
    assert!(proven(2 * MS, 35 * MS, 2) && !proven(2 * MS, 35 * MS, 3));
    assert!(
        proven(2 * MS, 35 * MS - 1, 3),
        "right behind: the option was set on the way"
    );
    let beside = [70 * US - 1, 70 * US].map(|sender_rtt| proven(sender_rtt, 35 * MS, 3));
    assert_eq!(beside, [true, false], "a kernel's promptness tells");
}

#[test]
fn one_in_twenty_may_go_without_its_ack() {
    let follows = |held, refuted| {
        let measures = SenderMeasures {
            holds: Holds {
                count: held,
                sent_median_ns: Some(0),
                ..Holds::default()
            },
            refuted,
            ..SenderMeasures::default()
        };
        measures.follows_alone()
    };
    assert!(follows(20, 1) && !follows(19, 1) && follows(8, 0));
}

#[test]
fn what_refutes_is_weighed_against_what_was_held() {
    let verdict = |refuted, held, sender_rtt, release_max| {
        let measures = SenderMeasures {
            path: SenderPath {
                sender_rtt_ns: sender_rtt,
                ..SenderPath::default()
            },
            holds: Holds {
                count: held,
                release_max_ns: Some(release_max),
                ..Holds::default()
            },
            refuted,
            ..SenderMeasures::default()
        };
        measures.nagle_use(false, &[])
    };
    // one in ten is not above OUTLIER_ONE_IN
    assert_eq!(verdict(1, 9, 2 * MS, 0), NagleUse::Unknown);
    assert_eq!(verdict(1, 8, 2 * MS, 0), NagleUse::Off);
    // the tail of a queue follows to the microsecond, beside its sender
    assert_eq!(verdict(1, 8, 70 * US - 1, 70 * US), NagleUse::Unknown);
    assert_eq!(verdict(1, 8, 70 * US - 1, 70 * US + 1), NagleUse::Off);
    assert_eq!(verdict(1, 8, 70 * US, 70 * US), NagleUse::Off);
    assert_eq!(verdict(1, 2, 0, 0), NagleUse::Unknown);
    assert_eq!(verdict(1, 1, 0, 0), NagleUse::Off);
}

#[test]
fn a_judgement_stands_until_its_evidence_has_grown_by_a_quarter() {
    let (mut store, mut pairs) = seen(2 * MS, 8);
    let mut senders = Senders::default();
    assert_eq!(refuted(senders.judge(&store, &pairs, false)), [8]);
    refute(&mut store, 0, 1);
    assert_eq!(refuted(senders.judge(&store, &pairs, false)), [8]);
    refute(&mut store, 0, 1);
    assert_eq!(refuted(senders.judge(&store, &pairs, false)), [10]);
    refute(&mut store, 0, 1);
    assert_eq!(
        refuted(senders.judge(&store, &pairs, true)),
        [11],
        "the last time"
    );
    // the same evidence on a path that is now known to be shorter
    let rtts = |judged: &[SenderVerdict]| {
        judged
            .iter()
            .map(|judged| judged.measures.path.sender_rtt_ns)
            .collect::<Vec<_>>()
    };
    pairs.add(0, Side::Server, MS, false);
    assert_eq!(rtts(senders.judge(&store, &pairs, false)), [2 * MS]);
    assert_eq!(rtts(senders.judge(&store, &pairs, true)), [MS]);
}

#[test]
fn messages_that_begin_promptly_end_the_judgement_of_a_cork() {
    let (mut store, pairs) = seen(70 * US, 0);
    for end in [0, 52, 96, 148, 200, 252, 296, 348, 400, 452] {
        store.message_began(0, Some((204 * MS, end * MS + 9_000)));
    }
    let mut senders = Senders::default();
    let corked = |judged: &[SenderVerdict]| {
        judged
            .iter()
            .map(|judged| judged.measures.is_always_corked)
            .collect::<Vec<_>>()
    };
    assert_eq!(corked(senders.judge(&store, &pairs, false)), [true]);
    for _ in 0..3 {
        store.message_began(0, None);
    }
    assert_eq!(corked(senders.judge(&store, &pairs, true)), [false]);
}

#[test]
fn what_is_let_go_stands_and_who_comes_back_is_judged_anew() {
    let (mut store, mut pairs) = seen(2 * MS, 8);
    let mut senders = Senders::default();
    senders.judge(&store, &pairs, false);
    refute(&mut store, 0, 1);
    senders.evict_sender(0, &mut store, &pairs);
    pairs.add(0, Side::Server, MS, false);
    for last in [false, true] {
        let judged = senders.judge(&store, &pairs, last);
        assert_eq!(refuted(judged), [9], "as it was judged when it went");
        assert_eq!(
            judged.iter().map(|verdict| verdict.nagle_use).collect::<Vec<_>>(),
            [NagleUse::Off]
        );
        assert_eq!(
            judged
                .iter()
                .map(|verdict| verdict.measures.controls.followed())
                .sum::<usize>(),
            0
        );
    }
    refute(&mut store, 0, 1);
    assert_eq!(refuted(senders.judge(&store, &pairs, false)), [1]);
}

#[test]
fn the_path_grants_a_release_what_it_wavers() {
    let (store, mut pairs) = seen(70 * US, 0);
    let tight = |pairs: &Pairs| {
        store
            .iter()
            .map(|evidence| SenderVerdict::new(evidence, pairs).measures.path.prompt_limit_ns)
            .sum::<i64>()
    };
    assert_eq!(tight(&pairs), 2 * MS, "PROMPT_NS");
    for _ in 0..40 {
        pairs.add(0, Side::Server, 3 * MS + 70 * US, false);
    }
    assert_eq!(
        tight(&pairs),
        6 * MS,
        "PATH_LATE times what the path is late now and then"
    );
    let (_, near) = seen(70 * US - 1, 0);
    assert_eq!(tight(&near), 100 * US, "KERNEL_NS beside it");
}

#[test]
fn beside_its_sender_a_kernel_sends_at_once() {
    let (mut store, pairs) = seen(20 * US, 0);
    follow(&mut store, 0, 3, 40 * US);
    let mut judged = judged(&store, &pairs);
    assert_eq!(
        (judged.measures.holds.count, judged.measures.holds.prompt_count),
        (3, 3)
    );
    assert!(judged.sent_by_kernel(0, 70 * US) && !judged.sent_by_kernel(0, 70 * US + 1));
    assert!(
        !judged.sent_by_kernel(1, 0),
        "nothing is known of that connection"
    );
    judged.measures.path.sender_rtt_ns = 70 * US - 1;
    assert!(judged.sent_by_kernel(0, 0));
    judged.measures.path.sender_rtt_ns = 70 * US;
    assert!(!judged.sent_by_kernel(0, 0), "elsewhere");
    (judged.measures.path.sender_rtt_ns, judged.nagle_use) = (0, NagleUse::Off);
    assert!(!judged.sent_by_kernel(0, 0));
}

#[test]
fn refutations_beside_stalls_tell_that_connections_differ() {
    let verdict = |stalls, refutations| {
        let (mut store, pairs) = seen(20 * US, 0);
        follow(&mut store, 0, stalls, 40 * US);
        let early = Early {
            pause_ns: 5 * MS,
            time_ns: 0,
            frame: 1,
        };
        store.refute(0, 1, &vec![early; refutations]);
        judged(&store, &pairs).nagle_use
    };
    // fewer than SEVERAL are a missing frame's doing
    assert_eq!((verdict(8, 2), verdict(8, 3)), (NagleUse::Acts, NagleUse::Mixed));
}

#[test]
fn releases_are_counted_from_the_soonest() {
    let (mut store, pairs) = seen(20 * US, 0);
    for number in 1..=20 {
        add(&mut store, 0, number * 50 * MS, 41 * MS, (20 + number) * US);
    }
    let judged = judged(&store, &pairs);
    assert_eq!(
        [
            judged.measures.holds.release_median_ns,
            judged.measures.holds.release_p95_ns,
            judged.measures.holds.release_max_ns
        ],
        [10, 19, 20].map(|us| Some(us * US))
    );
}

/// What the control group holds of its sender's pauses, with an ACK so much later than the path needs.
#[test]
fn an_ack_within_fifteen_milliseconds_was_not_held() {
    let bounded = |wait| {
        let (mut store, pairs) = seen(20 * US, 0);
        follow(&mut store, 0, 3, 40 * US);
        add(&mut store, 0, 0, wait, 3 * MS);
        let judged = judged(&store, &pairs);
        judged.measures.controls.compare(0, 41 * MS) != Control::Nothing
    };
    assert!(bounded(15 * MS - 1) && !bounded(15 * MS));
}

#[test]
fn an_option_that_was_set_on_the_way_shows_from_a_frame_on() {
    // stalls in the first seconds, segments that waited for nothing at ten, and late ones after them
    let changed_at = |at, sender_rtt, release, stalls, early: usize, late| {
        let (mut store, pairs) = seen(sender_rtt, 0);
        follow(&mut store, 0, stalls, release);
        let free = Early {
            pause_ns: 5 * MS,
            time_ns: at,
            frame: 77,
        };
        store.refute(0, 1, &vec![free; early]);
        for number in 0..late {
            add(&mut store, 2, (20_000 + number) * MS, 41 * MS, 30 * MS);
        }
        let change = judged(&store, &pairs).change;
        change.map(|change| {
            (
                change.frame,
                change.nagle,
                change.before,
                change.after,
                change.clean,
            )
        })
    };
    let changed = |sender_rtt, release, stalls, early, late| {
        changed_at(10_000 * MS, sender_rtt, release, stalls, early, late)
    };
    let (near, kernels) = (20 * US, 120 * US);
    let last = 7 * 50 * MS + 41 * MS + kernels; // the last of eight stalls ended then
    assert_eq!(changed_at(last - 1, near, kernels, 8, 8, 0), None);
    assert!(changed_at(last + 1, near, kernels, 8, 8, 0).is_some());
    assert_eq!(changed(near, kernels, 8, 8, 0), Some((77, false, 8, 8, true)));
    assert_eq!(changed(near, 100 * US, 8, 8, 0), Some((77, false, 8, 8, true)));
    assert_eq!(changed(near, kernels, 8, 7, 0), None);
    assert_eq!(
        changed(2 * MS, 2 * MS, 8, 8, 0),
        None,
        "pauses that drift past the ACKs"
    );
}

#[test]
fn two_refutations_among_many_are_an_accident() {
    let verdict = |refutations, waits: i64| {
        let (mut store, pairs) = seen(10 * US, refutations);
        for number in 0..waits {
            add(&mut store, 0, number * 50 * MS, MS, 10 * US);
        }
        judged(&store, &pairs).nagle_use
    };
    assert_eq!(verdict(2, 18), NagleUse::Unknown, "a tenth");
    assert_eq!(verdict(2, 17), NagleUse::Off, "more than a tenth");
    assert_eq!(verdict(3, 40), NagleUse::Off);
}

#[test]
fn late_waits_of_one_length_lie_three_milliseconds_beyond_the_longest_hold() {
    // eight held ACKs that were followed after 43 ms in all, and three waits of another length
    let follow_always = |wait| {
        let (mut store, pairs) = seen(2 * MS, 0);
        follow(&mut store, 0, 8, 2 * MS);
        for number in 0..3 {
            add(&mut store, 1, number * 50 * MS, 38 * MS, wait - 38 * MS);
        }
        judged(&store, &pairs).measures.controls.always_follow()
    };
    assert!(follow_always(46 * MS) && !follow_always(46 * MS - 1));
}

#[test]
fn acks_on_both_sides_of_the_shortest_timer_are_a_lines() {
    let is_scattered = |shorter, longer| {
        let (mut store, pairs) = seen(20 * US, 0);
        for (count, wait) in [(shorter, 30 * MS), (longer, 41 * MS)] {
            for number in 0..count {
                add(&mut store, 0, number * 50 * MS, wait, 40 * US);
            }
        }
        judged(&store, &pairs).measures.is_scattered
    };
    assert!(is_scattered(8, 15) && !is_scattered(8, 16), "SCATTERED_PARTS");
    assert!(is_scattered(15, 8) && !is_scattered(16, 8) && !is_scattered(30, 0));
    assert!(!is_scattered(7, 8), "MIN_SAMPLES");
}

#[test]
fn what_an_ack_was_late_on_its_way_is_no_hold() {
    let hold = |ack_late| {
        let (mut store, pairs) = seen(20 * US, 0);
        let at = |frame, time_ns| At { frame, time_ns };
        let candidate = Candidate {
            ack: at(2, 60 * MS),
            ack_lacks_data: true,
            ack_late_ns: ack_late,
            freed: at(3, 60 * MS),
            ..Candidate::default()
        };
        store.add(&candidate);
        let judged = judged(&store, &pairs);
        let last = store
            .iter()
            .next()
            .and_then(|evidence| evidence.candidates.last().copied());
        last.map(|gap| {
            (
                judged.measures.path.hold_ns(&gap),
                judged.measures.path.is_held(&gap),
            )
        })
    };
    assert_eq!(hold(20 * MS), Some((40 * MS, true)));
    assert_eq!(hold(40 * MS), Some((20 * MS, false)));
}

#[test]
fn an_echo_of_the_ack_bounds_the_way_to_a_host_for_which_only_programs_answered() {
    let sender_rtt = |by_program, arrived| {
        let (mut store, _) = seen(MS, 0);
        let mut pairs = Pairs::default();
        let [client, server] = [1, 2].map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        let pair = pairs.id(client, server);
        pairs.add(pair, Side::Server, MS, by_program);
        let at = |frame, time_ns| At { frame, time_ns };
        let candidate = Candidate {
            small: at(1, 0),
            held_from: at(1, 0),
            ack: at(2, 41 * MS),
            ack_lacks_data: true,
            freed: at(3, 41 * MS + 20 * US),
            arrived,
            ..Candidate::default()
        };
        store.add(&candidate);
        judged(&store, &pairs).measures.path.sender_rtt_ns
    };
    assert_eq!(sender_rtt(true, Some(true)), 20 * US);
    assert_eq!(sender_rtt(true, None), MS, "it may have left before the ACK came");
    assert_eq!(sender_rtt(false, Some(true)), MS, "a kernel answered");
}

#[test]
fn one_segment_that_its_program_wrote_behind_the_ack_shows_that_it_works_as_long() {
    let always = |late| {
        let (mut store, pairs) = seen(20 * US, 0);
        follow(&mut store, 0, 20, 30 * US);
        add(&mut store, 0, 2_000 * MS, 41 * MS, 20 * US + late);
        judged(&store, &pairs).measures.controls.always_follow()
    };
    assert!(always(750 * US), "a busy host");
    assert!(!always(751 * US) && !always(1_900 * US));
}

#[test]
fn a_clock_of_milliseconds_puts_no_capture_beside_a_host() {
    let rtt = |at_once: i64, later: i64, more: i64| {
        let (mut store, pairs) = seen(0, 0);
        follow(&mut store, 0, at_once, 0);
        follow(&mut store, 1, later, MS + more);
        SenderPath::new(store.get(0).unwrap(), &pairs).sender_rtt_ns
    };
    assert_eq!(rtt(5, 3, 0), AT_HOST_NS.get());
    assert_eq!(rtt(6, 3, 0), 0, "as a busy host answers");
    assert_eq!(rtt(4, 3, 0), 0, "MIN_SAMPLES");
    assert_eq!(rtt(5, 3, 1), 0, "a finer clock");
}
