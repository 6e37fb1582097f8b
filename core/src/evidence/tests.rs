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

fn candidate(sender_id: u32) -> Candidate {
    let at = |frame, time_ns| At { frame, time_ns };
    Candidate {
        small: at(1, 0),
        held_from: at(1, 0),
        ack: at(2, 40),
        ack_lacks_data: true,
        freed: at(3, 41),
        freed_bytes: 1,
        sender_id,
        ..Candidate::default()
    }
}

#[test]
fn a_pool_too_many_has_no_number() {
    let mut store = SenderStore::default();
    assert!(store.is_empty());
    for number in 0..MAX_SENDERS as u32 {
        assert_eq!(store.id(key(number), 0), number);
    }
    assert_eq!(store.id(key(MAX_SENDERS as u32), 0), u32::MAX);
    assert_eq!(store.id(key(7), 0), 7);
    assert!(!store.is_empty() && store.len() == MAX_SENDERS);
    assert!(!store.add(&candidate(u32::MAX)));
}

#[test]
fn candidates_too_many_are_counted() {
    let mut store = SenderStore::default();
    let id = store.id(key(1), 0);
    let kept = (0..MAX_CANDIDATES + 3)
        .filter(|_| store.add(&candidate(id)))
        .count();
    let early = Early {
        pause_ns: 1,
        time_ns: 1,
        frame: 1,
    };
    store.refute(id, 0, &[early; MAX_CANDIDATES + 2]);
    for time in 0..2_000 {
        store.message_began(id, Some((time, time)));
        store.answered_late(id, time, time);
    }
    assert_eq!(kept, MAX_CANDIDATES);
    for sender in store.iter() {
        assert_eq!(
            (sender.candidates.len(), sender.early.len()),
            (MAX_CANDIDATES, MAX_CANDIDATES)
        );
        assert_eq!(sender.observations(), 2 * MAX_CANDIDATES as u64 + 5);
        assert_eq!(
            (sender.starts.cork_waits.len(), sender.starts.hold_waits.len()),
            (1_024, 1_024)
        );
        assert_eq!(sender.starts.count(), 2_048);
    }
    for number in 2..=33 {
        let id = store.id(key(number), 0);
        for _ in 0..MAX_CANDIDATES {
            store.add(&candidate(id));
        }
    }
    assert_eq!(store.stored, MAX_ENTRIES, "and in all pools together");
}

/// So many pools with as much evidence as one remembers: as much as makes a crowd.
fn crowd() -> SenderStore {
    let mut store = SenderStore::default();
    for number in 0..EVICTION_THRESHOLD / MAX_CANDIDATES {
        let id = store.id(key(number as u32), 0);
        for _ in 0..MAX_CANDIDATES {
            store.add(&candidate(id));
        }
    }
    store
}

#[test]
fn the_senders_that_were_quiet_longest_are_let_go_until_half_is_left() {
    let early = Early {
        pause_ns: 1,
        time_ns: 1,
        frame: 1,
    };
    let mut store = SenderStore::default();
    for number in 0..EVICTION_THRESHOLD / MAX_CANDIDATES {
        assert!(!store.should_evict());
        let id = store.id(key(number as u32), 0);
        if number % 2 == 1 {
            store.refute(id, 0, &[early; MAX_CANDIDATES]);
            continue;
        }
        for _ in 0..MAX_CANDIDATES {
            assert!(!store.should_evict());
            store.add(&candidate(id));
        }
    }
    assert!(store.should_evict() && store.stored == EVICTION_THRESHOLD);
    store.refute(0, 0, &[early]); // it is heard of again
    store.answered_late(2, 1, 1);
    assert_eq!(
        store.least_recently_used(),
        [1].into_iter().chain(3..=14).collect::<Vec<u32>>()
    );
    for id in store.least_recently_used() {
        store.evict(id);
    }
    assert!(store.least_recently_used().is_empty() && !store.should_evict());
    assert_eq!(store.stored, EVICTION_THRESHOLD - 13 * MAX_CANDIDATES + 2);
    let of = |id| {
        store.get(id).map(|sender| {
            (
                sender.is_quiet(),
                sender.observations(),
                sender.total_observations(),
            )
        })
    };
    let all = MAX_CANDIDATES as u64;
    assert_eq!((of(2), of(1)), (Some((false, all, all)), Some((true, 0, all))));
    store.evict(u32::MAX); // there is none
}

#[test]
fn who_comes_back_is_known_anew() {
    let mut store = crowd();
    store.evict(3);
    store.message_began(3, None);
    assert!(
        store.get(3).is_some_and(SenderEvidence::is_quiet),
        "that is no evidence"
    );
    assert!(store.add(&candidate(3)));
    let known = store.get(3).map(|sender| {
        (
            sender.is_quiet(),
            sender.observations(),
            sender.total_observations(),
        )
    });
    assert_eq!(known, Some((false, 1, MAX_CANDIDATES as u64 + 1)));
    assert_eq!(store.stored, EVICTION_THRESHOLD - MAX_CANDIDATES + 1);
}

#[test]
fn beyond_the_cap_segments_that_left_early_are_counted_too() {
    let mut store = crowd();
    let early = Early {
        pause_ns: 1,
        time_ns: 1,
        frame: 1,
    };
    for number in 0..=(MAX_ENTRIES - EVICTION_THRESHOLD) / MAX_CANDIDATES {
        let id = store.id(key(1_000 + number as u32), 0);
        store.refute(id, 0, &[early; MAX_CANDIDATES]);
        store.message_began(id, Some((1, 1)));
    }
    assert_eq!(store.stored, MAX_ENTRIES);
    let last = store.get(store.len() as u32 - 1);
    assert!(last.is_some_and(
        |sender| sender.refutations == MAX_CANDIDATES as u64 && sender.early.len() < MAX_CANDIDATES
    ));
}
