//! Round trips by pair of addresses, and those of one connection.

use super::*;

const MS: i64 = 1_000_000;

#[test]
fn a_path_is_firm_when_both_round_trips_were_measured_often() {
    let mut pairs = Pairs::default();
    let address = |last| IpAddr::from([10, 0, 0, last]);
    let pair = pairs.id(address(1), address(2));
    assert!(!pairs.is_firm(pair + 1), "nothing is known of it");
    for _ in 0..64 {
        assert!(!pairs.is_firm(pair));
        pairs.add(pair, Side::Client, MS, false);
    }
    assert!(!pairs.is_firm(pair), "one side says nothing of the other");
    for _ in 0..64 {
        assert!(!pairs.is_firm(pair));
        pairs.add(pair, Side::Server, MS, false);
    }
    assert!(pairs.is_firm(pair));
}

#[test]
fn what_a_program_takes_is_no_kernels_jitter() {
    let mut rtt = Rtt::default();
    assert_eq!((rtt.jitter_above_best(), rtt.kernel_jitter_above_best()), (0, 0));
    for ns in [1_000, 8 * MS, 9 * MS, 7 * MS, i64::from(u32::MAX)] {
        rtt.add(ns, true);
    }
    assert_eq!(
        (rtt.jitter_above_best(), rtt.kernel_jitter_above_best()),
        (9 * MS - 1_000, 0)
    );
    rtt.add(3_000, false);
    assert_eq!((rtt.min(), rtt.kernel_jitter_above_best()), (Some(1_000), 2_000));
    assert_eq!(
        rtt.p95_above_best(),
        9 * MS - 1_000,
        "a timer's is none of the path"
    );
}

#[test]
fn what_a_program_always_takes_is_no_wavering() {
    let wavering = |kernels: &[i64], programs: &[i64]| {
        let mut rtt = Rtt::default();
        kernels.iter().for_each(|ns| rtt.add(*ns, false));
        programs.iter().for_each(|ns| rtt.add(*ns, true));
        rtt.jitter_within_kind()
    };
    assert_eq!(wavering(&[], &[]), 0);
    assert_eq!(wavering(&[4 * MS], &[14 * MS, 14 * MS, 15 * MS]), 0);
    assert_eq!(wavering(&[4 * MS], &[14 * MS, 15 * MS, 15 * MS]), MS);
    // the promptest tenth: one of ten is no measure of the rest, two of twenty-one are
    let answers = |soon: usize, all: usize| {
        let took: Vec<i64> = (0..all)
            .map(|n| if n < soon { 4 * MS } else { 14 * MS })
            .collect();
        wavering(&[], &took)
    };
    assert_eq!((answers(1, 10), answers(1, 11)), (10 * MS, 0));
    // and no timer's
    assert_eq!(wavering(&[MS, 36 * MS - 1, 36 * MS - 1], &[]), 35 * MS - 1);
    assert_eq!(wavering(&[MS, 36 * MS, 36 * MS], &[]), 0);
}

#[test]
fn one_answer_of_a_program_is_no_measure_of_the_path() {
    let alone = |samples: &[(i64, bool)]| {
        let mut pairs = Pairs::default();
        let pair = pairs.id(IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for (ns, by_program) in samples {
            pairs.add(pair, Side::Server, *ns, *by_program);
        }
        pairs
            .get(pair)
            .map(|pair| pair.rtts.each_ref().map(Rtt::is_one_answer))
    };
    assert_eq!(alone(&[]), Some([false, false]));
    assert_eq!(alone(&[(400 * MS, true)]), Some([false, true]));
    assert_eq!(alone(&[(400 * MS, true), (400 * MS, true)]), Some([false, false]));
    assert_eq!(alone(&[(MS, false)]), Some([false, false]), "a kernel's own");
}

#[test]
fn what_a_kernel_has_answered_tells_the_path_of_a_connection() {
    let mut trips = RoundTrips::default();
    assert_eq!(trips.round(true).beyond(MS), 0);
    trips.add(40 * MS, false);
    assert_eq!(trips.round(true).beyond(MS), 0, "that may have been a timer");
    assert_eq!(trips.round(true).beyond(10 * MS), 30 * MS);
    trips.add(44 * MS, true);
    trips.add(6 * MS, false);
    for (stamped, rtt, beyond) in [(true, MS, 5 * MS), (false, MS, 43 * MS), (false, 9 * MS, 35 * MS)] {
        assert_eq!(trips.round(stamped).beyond(rtt), beyond + 1);
    }
    trips.add(20_000, true);
    assert_eq!(trips.round(false), trips.round(true), "the host's own queue");
}

#[test]
fn held_acks_do_not_spoil_the_round_trips() {
    let mut trips = RoundTrips::default();
    trips.add(MS, true);
    for ns in [2 * MS, 43 * MS, 3 * MS, 41 * MS] {
        trips.add(ns, false);
    }
    assert_eq!((trips.samples(), trips.held, trips.max()), (3, 2, Some(3 * MS)));
    assert_eq!((trips.mean_ms(), trips.stdev_ms()), (Some(2.0), Some(1.0)));
    trips.add(90 * MS, true); // two full segments: a queue, not a hold
    assert_eq!((trips.samples(), trips.max()), (4, Some(90 * MS)));
}

#[test]
fn what_came_before_a_much_better_sample_was_held() {
    let mut trips = RoundTrips::default();
    trips.add(44 * MS, false);
    trips.add(42 * MS, false);
    assert_eq!((trips.samples(), trips.held), (2, 0));
    trips.add(MS, false);
    assert_eq!((trips.samples(), trips.held, trips.mean_ms()), (1, 2, Some(1.0)));
    assert_eq!((trips.max(), trips.stdev_ms()), (Some(MS), None));
    assert_eq!(RoundTrips::default().mean_ms(), None);
}

#[test]
fn acks_that_come_much_sooner_than_any_syn_ack_may_be_another_hosts() {
    let behind = |handshakes: &[i64], ack: i64| {
        let mut pairs = Pairs::default();
        let pair = pairs.id(IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for ns in handshakes {
            pairs.add_handshake_rtt(pair, Side::Server, *ns);
        }
        pairs.add(pair, Side::Server, ack, false);
        let [client, server] = pairs
            .get(pair)?
            .rtts
            .each_ref()
            .map(Rtt::handshake_behind_middlebox);
        assert_eq!(client, None);
        server
    };
    assert_eq!(behind(&[120 * MS, 100 * MS], MS), Some(100 * MS));
    assert_eq!(
        behind(&[100 * MS, 2 * MS], MS),
        None,
        "a kernel did answer sooner"
    );
    assert_eq!(behind(&[40 * MS], 10 * MS), Some(40 * MS), "four times");
    assert_eq!(behind(&[40 * MS - 1], 10 * MS), None);
    assert_eq!(behind(&[16 * MS], MS), Some(16 * MS), "15 ms more");
    assert_eq!(behind(&[16 * MS - 1], MS), None);
}

#[test]
fn no_timer_reaches_35_ms_above_the_best() {
    let by_kernel = |ns| {
        let mut rtt = Rtt::default();
        rtt.add(ns, false);
        rtt.has_recent_kernel_answer()
    };
    assert!(by_kernel(35 * MS - 1) && !by_kernel(35 * MS));
    let answered = |ns| {
        let mut rtt = Rtt::default();
        rtt.add(MS, true);
        rtt.add(MS + ns, false);
        (rtt.has_kernel_answer(), rtt.p95_above_best())
    };
    assert_eq!(answered(35 * MS - 1), (true, 35 * MS - 1));
    assert_eq!(answered(35 * MS), (false, 0));
    let trips = |first, second| {
        let mut trips = RoundTrips::default();
        trips.add(first, false);
        trips.add(second, false);
        (trips.samples(), trips.held())
    };
    assert_eq!((trips(MS, 36 * MS - 1), trips(MS, 36 * MS)), ((2, 0), (1, 1)));
    assert_eq!((trips(36 * MS, MS), trips(36 * MS + 1, MS)), ((2, 0), (1, 1)));
    let round = KernelRtt::new(36 * MS, false);
    assert_eq!((round.beyond(MS), round.beyond(MS + 2)), (0, 35 * MS - 2));
    assert_eq!(KernelRtt::new(36 * MS, true).beyond(MS), 35 * MS + 1);
}

#[test]
fn what_is_far_above_the_best_is_a_host_and_no_path() {
    let jitter = |samples: &[i64]| {
        let mut rtt = Rtt::default();
        samples.iter().for_each(|ns| rtt.add(*ns, false));
        rtt.jitter_above_best()
    };
    assert_eq!(
        jitter(&[MS, 2 * MS, 3 * MS, 4 * MS]),
        3 * MS,
        "the third quartile"
    );
    assert_eq!(
        (jitter(&[0, 15 * MS - 1]), jitter(&[0, 15 * MS])),
        (15 * MS - 1, 0),
        "UNHELD_NS"
    );
    let mut late = Rtt::default();
    for n in 0..20 {
        late.add(n * MS, false);
    }
    assert_eq!(late.p95_above_best(), 19 * MS, "RARE_ONE_IN");
    late.add(-1, false);
    assert_eq!(late.min(), Some(0), "the clock went back");
    let mut near = RoundTrips::default();
    near.add(70_000 - 1, true);
    near.add(5 * MS, true);
    near.add(4 * MS, true);
    assert_eq!(
        near.round(false),
        near.round(true),
        "AT_HOST_NS: the host's own queue"
    );
    let mut far = RoundTrips::default();
    far.add(100_000, true);
    far.add(5 * MS, true);
    far.add(4 * MS, true);
    assert_ne!(far.round(false), far.round(true));
}

#[test]
fn three_of_four_of_the_newest_handshakes_are_the_kernels_time() {
    let took = |shakes: &[i64]| {
        let mut rtt = Rtt::default();
        shakes.iter().for_each(|ns| rtt.add_handshake_rtt(*ns));
        rtt.add(1, false); // an ACK alone is less work
        rtt.kernel_took()
    };
    assert_eq!(took(&[]), None);
    assert_eq!((took(&[20]), took(&[40, 10, 20, 30])), (Some(20), Some(30)));
    let mut slow_once: Vec<i64> = vec![900; 16];
    slow_once.extend([20; 13]);
    assert_eq!((took(&slow_once), took(&slow_once[..27])), (Some(20), Some(900)));
}
