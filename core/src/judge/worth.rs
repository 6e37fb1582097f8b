//! What rows of each rule and grade are worth: the share of their milliseconds that is right.

use super::vocabulary::Grade;

/// By grade, of a rule that has not been measured.
pub const DEFAULT: [f64; Grade::COUNT] = [0.90, 0.70, 0.50, 0.00];

/// By rule, then by grade, in the order of their lists; rules behind the last one have the default.
#[rustfmt::skip]
pub const WORTH: &[[f64; Grade::COUNT]] = &[
    // proven, probable, suspected, unknown
    [0.90, 0.70, 0.50, 0.00], // rtt
    [0.90, 0.70, 0.50, 0.00], // turn
    [0.90, 0.70, 0.50, 0.00], // app
    [0.90, 0.70, 0.50, 0.00], // write_gap
    [0.90, 0.80, 0.50, 0.00], // burst
    [0.90, 0.70, 0.50, 0.00], // spacing
    [0.90, 0.70, 0.50, 0.00], // queue
    [0.90, 0.70, 0.50, 0.00], // ack_clocked
    [0.90, 0.80, 0.50, 0.00], // cwnd_delayed_ack
    [0.95, 0.60, 0.50, 0.00], // look_alike
    [0.90, 0.70, 0.50, 0.00], // control
    [0.90, 0.70, 0.50, 0.00], // no_pool
    [0.95, 0.70, 0.50, 0.00], // window
    [0.90, 0.80, 0.50, 0.00], // overtaken
    [0.90, 0.70, 0.50, 0.00], // not_lost
    [0.90, 0.70, 0.50, 0.00], // copy_not_seen
    [0.90, 0.70, 0.50, 0.00], // sack_or_duplicate_acks
    [0.90, 0.80, 0.50, 0.00], // tail_probe
    [0.90, 0.80, 0.50, 0.00], // timeout
    [0.90, 0.80, 0.50, 0.00], // hole_filled
    [0.90, 0.70, 0.50, 0.00], // ip_id_gap
    [0.95, 0.70, 0.50, 0.00], // handshake_repeated
    [0.90, 0.60, 0.50, 0.00], // handshake
    [0.90, 0.70, 0.50, 0.00], // cork_timer
    [0.90, 0.60, 0.50, 0.00], // cork_pool
    [0.90, 0.70, 0.50, 0.00], // cork_ack
    [0.90, 0.70, 0.50, 0.00], // frames_missing
    [0.90, 0.80, 0.50, 0.00], // timestamps
    [0.90, 0.70, 0.50, 0.00], // one_way
    [0.99, 0.80, 0.50, 0.00], // nagle_delayed_ack
    [0.99, 0.80, 0.50, 0.00], // nagle_wait
    [0.99, 0.80, 0.50, 0.00], // nagle_piggyback
    [0.99, 0.80, 0.50, 0.00], // nagle_fin_release
];
