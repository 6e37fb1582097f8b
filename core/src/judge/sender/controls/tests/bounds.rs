//! What bounds the next pause.

use std::net::IpAddr;

use super::super::group::longest;
use super::*;
use crate::base::Side;
use crate::evidence::{Key, Pools};

#[test]
fn what_the_path_wavers_is_none_of_a_pause_that_an_ack_ended() {
    let bound = |exact, path_wavers| {
        let pauses = [9 * MS, 12 * MS, 30 * MS].map(|ns| pause(0, ns, exact));
        longest(&pauses, 3, path_wavers).map(|(most, middle)| (most.ns, middle))
    };
    assert_eq!(bound(false, 5 * MS), Some((25 * MS, 12 * MS)));
    assert_eq!(
        bound(false, 20 * MS),
        Some((12 * MS, 12 * MS)),
        "half took no longer"
    );
    assert_eq!(
        bound(true, 5 * MS),
        Some((30 * MS, 12 * MS)),
        "it ended by itself"
    );
    let says = |sender_rtt, path_wavers| {
        let judged = Judged {
            sender_rtt,
            path_wavers,
            ..Judged::default()
        };
        let mut pools = Pools::default();
        let [server, client] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let key = Key {
            server,
            server_port: 80,
            client,
            sender: Side::Server,
        };
        let id = pools.id(key, 0);
        let Some(pool) = pools.get(id) else { return [0, 0] };
        let mut controls = Controls::of(pool, &judged);
        controls.all.unheld = [9 * MS, 12 * MS, 30 * MS].map(|ns| pause(0, ns, false)).to_vec();
        match (controls.says(0, 60 * MS), controls.says(1, 60 * MS)) {
            (Control::Shorter { most: own, .. }, Control::Shorter { most: all, .. }) => [own, all],
            _ => [0, 0],
        }
    };
    let near = AT_HOST_NS.get();
    assert_eq!(
        (says(near, 5 * MS), says(near - 1, 5 * MS)),
        ([25 * MS; 2], [30 * MS; 2])
    );
}

#[test]
fn one_pause_in_ten_is_a_stray() {
    let rising: Vec<i64> = (1..=10).collect();
    let of = |first| longest(&unheld(&rising), first, 0).map(|(most, middle)| (most.ns, middle));
    assert_eq!(
        (of(0), of(1), of(9), of(10)),
        (None, Some((1, 1)), Some((9, 5)), Some((9, 5)))
    );
}

#[test]
fn one_pause_alone_may_be_half_as_long_again_the_next_time() {
    let bound = |pauses: &[Pause]| longest(pauses, pauses.len(), 0).map(|(most, middle)| (most.ns, middle));
    assert_eq!(bound(&unheld(&[20 * MS])), Some((30 * MS, 20 * MS)));
    assert_eq!(bound(&unheld(&[20 * MS, 21 * MS])), Some((21 * MS, 20 * MS)));
    // an ACK ended it: it was shorter than it is
    assert_eq!(bound(&[pause(0, 20 * MS, false)]), Some((20 * MS, 20 * MS)));
}
