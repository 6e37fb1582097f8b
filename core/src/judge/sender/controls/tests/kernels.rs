//! What tells that a kernel sent what followed held ACKs.

use super::*;

#[test]
fn kernels_send_two_of_three_at_once_beside_them() {
    let kernels = |count, soon, at_host| {
        Controls {
            is_at_host: at_host,
            soon_count: soon,
            ..followed(count, &[])
        }
        .are_kernels()
    };
    assert!(kernels(67, 100, true) && !kernels(66, 100, true) && kernels(1, 100, false));
    let slow = |count| Controls {
        is_at_host: true,
        soon_count: 100,
        slow_kernel_count: count,
        ..Controls::default()
    };
    assert!(slow(67).may_be_kernels() && !slow(66).may_be_kernels() && !slow(100).are_kernels());
}
