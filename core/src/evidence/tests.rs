//! What is remembered of many senders is bounded, and the rest is counted.

use std::net::Ipv4Addr;

use super::*;
use crate::base::At;

fn key(server: u32) -> Key {
    Key {
        server: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + server)),
        server_port: 80,
        client: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1)),
        sender: Side::Server,
    }
}

fn candidate(pool: u32) -> Candidate {
    let at = |frame, time_ns| At { frame, time_ns };
    Candidate {
        small: at(1, 0),
        held_from: at(1, 0),
        ack: at(2, 40),
        ack_pure: true,
        freed: at(3, 41),
        small_bytes: 1,
        freed_bytes: 1,
        pool,
        ..Candidate::default()
    }
}

#[test]
fn a_pool_too_many_has_no_number() {
    let mut pools = SenderStore::default();
    assert!(pools.is_empty());
    for number in 0..MAX_POOLS as u32 {
        assert_eq!(pools.id(key(number), 0), number);
    }
    assert_eq!(pools.id(key(MAX_POOLS as u32), 0), u32::MAX);
    assert_eq!(pools.id(key(7), 0), 7);
    assert!(!pools.is_empty() && pools.len() == MAX_POOLS);
    assert!(!pools.add(0, &candidate(u32::MAX)));
}

#[test]
fn candidates_too_many_are_counted() {
    let mut pools = SenderStore::default();
    let id = pools.id(key(1), 0);
    let kept = (0..KEPT + 3).filter(|_| pools.add(0, &candidate(id))).count();
    let early = Early {
        pause: 1,
        at: 1,
        frame: 1,
    };
    pools.refute(id, 0, &[early; KEPT + 2]);
    for time in 0..2_000 {
        pools.message_began(id, Some((time, time)));
        pools.answered_late(id, time, time);
    }
    assert_eq!(kept, KEPT);
    for pool in pools.iter() {
        assert_eq!((pool.ack_waits.len(), pool.early.len()), (KEPT, KEPT));
        assert_eq!(pool.evidence(), 2 * KEPT as u64 + 5);
        assert_eq!((pool.starts.late.len(), pool.starts.timed.len()), (1_024, 1_024));
        assert_eq!(pool.starts.count(), 2_048);
    }
    for number in 2..=33 {
        let id = pools.id(key(number), 0);
        for _ in 0..KEPT {
            pools.add(0, &candidate(id));
        }
    }
    assert_eq!(pools.kept, KEPT_IN_ALL, "and in all pools together");
}

/// So many pools with as much evidence as one remembers: as much as makes a crowd.
fn crowd() -> SenderStore {
    let mut pools = SenderStore::default();
    for number in 0..CROWDED / KEPT {
        let id = pools.id(key(number as u32), 0);
        for _ in 0..KEPT {
            pools.add(0, &candidate(id));
        }
    }
    pools
}

#[test]
fn the_senders_that_were_quiet_longest_are_let_go_until_half_is_left() {
    let early = Early {
        pause: 1,
        at: 1,
        frame: 1,
    };
    let mut pools = SenderStore::default();
    for number in 0..CROWDED / KEPT {
        assert!(!pools.should_evict());
        let id = pools.id(key(number as u32), 0);
        if number % 2 == 1 {
            pools.refute(id, 0, &[early; KEPT]);
            continue;
        }
        for _ in 0..KEPT {
            assert!(!pools.should_evict());
            pools.add(0, &candidate(id));
        }
    }
    assert!(pools.should_evict() && pools.kept == CROWDED);
    pools.refute(0, 0, &[early]); // it is heard of again
    pools.answered_late(2, 1, 1);
    assert_eq!(
        pools.least_recently_used(),
        [1].into_iter().chain(3..=14).collect::<Vec<u32>>()
    );
    for id in pools.least_recently_used() {
        pools.evict(id);
    }
    assert!(pools.least_recently_used().is_empty() && !pools.should_evict());
    assert_eq!(pools.kept, CROWDED - 13 * KEPT + 2);
    let of = |id| {
        pools
            .get(id)
            .map(|pool| (pool.is_quiet(), pool.evidence(), pool.seen()))
    };
    let all = KEPT as u64;
    assert_eq!((of(2), of(1)), (Some((false, all, all)), Some((true, 0, all))));
    pools.evict(u32::MAX); // there is none
}

#[test]
fn who_comes_back_is_known_anew() {
    let mut pools = crowd();
    pools.evict(3);
    pools.message_began(3, None);
    assert!(
        pools.get(3).is_some_and(SenderEvidence::is_quiet),
        "that is no evidence"
    );
    assert!(pools.add(0, &candidate(3)));
    let known = pools
        .get(3)
        .map(|pool| (pool.is_quiet(), pool.evidence(), pool.seen()));
    assert_eq!(known, Some((false, 1, KEPT as u64 + 1)));
    assert_eq!(pools.kept, CROWDED - KEPT + 1);
}

#[test]
fn beyond_the_cap_segments_that_left_early_are_counted_too() {
    let mut pools = crowd();
    let early = Early {
        pause: 1,
        at: 1,
        frame: 1,
    };
    for number in 0..=(KEPT_IN_ALL - CROWDED) / KEPT {
        let id = pools.id(key(1_000 + number as u32), 0);
        pools.refute(id, 0, &[early; KEPT]);
        pools.message_began(id, Some((1, 1)));
    }
    assert_eq!(pools.kept, KEPT_IN_ALL);
    let last = pools.get(pools.len() as u32 - 1);
    assert!(last.is_some_and(|pool| pool.refutations == KEPT as u64 && pool.early.len() < KEPT));
}
