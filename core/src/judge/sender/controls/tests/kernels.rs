//! What tells that a kernel sent what followed held ACKs.

use super::*;

#[test]
fn kernels_send_two_of_three_at_once_beside_them() {
    let kernels = |count, soon, at_host| {
        Controls {
            at_host,
            soon,
            ..followed(count, &[])
        }
        .are_kernels()
    };
    assert!(kernels(67, 100, true) && !kernels(66, 100, true) && kernels(1, 100, false));
    let slow = |count| Controls {
        at_host: true,
        soon: 100,
        by_kernel: [0, count],
        ..Controls::default()
    };
    assert!(slow(67).may_be_kernels() && !slow(66).may_be_kernels() && !slow(100).are_kernels());
}

#[test]
fn one_in_four_that_left_before_a_program_could_are_a_kernels() {
    let kernels = |unwoken, soon| {
        let controls = Controls {
            at_host: true,
            soon,
            unwoken,
            ..Controls::default()
        };
        (controls.are_kernels(), controls.may_be_kernels())
    };
    assert_eq!(
        (kernels(25, 100), kernels(24, 100)),
        ((true, true), (false, false))
    );
    assert_eq!((kernels(3, 12), kernels(2, 8)), ((true, true), (false, false)));
}

#[test]
fn what_leaves_within_fifteen_microseconds_left_before_a_program_could() {
    let count = |release| {
        let gap = Gap {
            wait: 41 * MS,
            release,
            covered: 41 * MS,
            timer: true,
            ..Gap::default()
        };
        let judged = Judged {
            hold_least: 25 * MS,
            ..Judged::default()
        };
        let mut controls = Controls::default();
        controls.add(&gap, 0, &judged);
        controls.unwoken
    };
    assert_eq!((count(15_000), count(15_001)), (1, 0));
}
