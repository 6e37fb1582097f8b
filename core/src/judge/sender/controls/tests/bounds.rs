//! What bounds the next pause.

use super::super::group::longest;
use super::*;

#[test]
fn one_pause_in_ten_is_a_stray() {
    let rising: Vec<i64> = (1..=10).collect();
    let of = |first| longest(&unheld(&rising), first).map(|(most, middle)| (most.ns, middle));
    assert_eq!(
        (of(0), of(1), of(9), of(10)),
        (None, Some((1, 1)), Some((9, 5)), Some((9, 5)))
    );
}

#[test]
fn one_pause_alone_may_be_half_as_long_again_the_next_time() {
    let bound = |pauses: &[Pause]| longest(pauses, pauses.len()).map(|(most, middle)| (most.ns, middle));
    assert_eq!(bound(&unheld(&[20 * MS])), Some((30 * MS, 20 * MS)));
    assert_eq!(bound(&unheld(&[20 * MS, 21 * MS])), Some((21 * MS, 20 * MS)));
    // an ACK ended it: it was shorter than it is
    let freed = |ms: i64| pause(0, ms * MS, false);
    assert_eq!(bound(&[freed(20)]), Some((20 * MS, 20 * MS)));
    let alone = pause(0, 20 * MS, true);
    assert_eq!(
        bound(&[freed(5), alone]),
        Some((30 * MS, 5 * MS)),
        "one ended by itself"
    );
    assert_eq!(
        bound(&[freed(5), freed(5), alone]),
        Some((20 * MS, 5 * MS)),
        "they are several"
    );
}
