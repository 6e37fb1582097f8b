//! Wireshark's rules, one test per rule: scripts of segments and the facts that tshark 4.0 would show.
//! Expected flags are complete: what a line does not name must not be set.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::{Wire, check, check_from, script};
use latpcap_core::facts::{Facts, Scale};

/// Frames 1 to 3, 0 to 2 ms: a handshake without options.
const OPEN: &str = "
    c S  0 0 0 64000 0 |
    s SA 0 1 0 64000 1 | acks=1 rtt=1
    c A  1 1 0 64000 2 | acks=2 rtt=1
";

fn opened(text: &str) {
    check(&format!("{OPEN}{text}"));
}

#[test]
fn steps_0_and_3_a_lost_segment_bars_bytes_in_flight_until_the_peer_acknowledges() {
    opened(
        "c PA 1   1   100 64000 3 | flight=100 push=100
         c PA 201 1   100 64000 4 | lost_segment flight=- push=-
         c PA 301 1   100 64000 4 | flight=-
         s A  1   101 0   64000 5 | acks=4 rtt=2
         c PA 401 1   100 64000 6 | flight=300 push=100
         c A  601 1   0   64000 7 | lost_segment
         c R  901 0   0   64000 8 |",
    );
    check("c A 70 1 10 64000 0 |"); // the first one seen has no predecessor
}

#[test]
fn steps_1_2_and_8_zero_windows_and_their_probes() {
    opened(
        "s A  1 1 0 0     3 | zero_window
         c A  1 1 1 64000 4 | zero_window_probe flight=1 push=1
         s A  1 1 0 0     5 | zero_window zero_window_probe_ack
         c A  1 1 1 64000 6 | zero_window_probe flight=1 push=2
         s A  1 2 0 64000 7 | ack_lost_segment acks=5 rtt=3
         c PA 1 1 9 64000 8 |",
    );
    opened("c A  1 1 9 0 3 | zero_window"); // also with data
    opened("c FA 1 1 0 0 3 |");
    opened("c RA 1 1 0 0 3 |");
    // the probe's answer opens the window: an ordinary update
    opened(
        "s A 1 1 0 0     3 | zero_window
         c A 1 1 1 64000 4 | zero_window_probe
         s A 1 1 0 500   5 | window_update",
    );
}

#[test]
fn steps_4_and_7_keep_alives() {
    opened(
        "c A  0 1 0 64000 3000 | keep_alive
         s A  1 1 0 64000 3001 | keep_alive_ack
         c A  0 1 1 64000 6000 | keep_alive flight=1
         s A  1 1 0 64000 6001 | keep_alive_ack acks=6 rtt=1
         s A  1 1 0 64000 6002 | keep_alive_ack
         c A  1 1 0 64000 6003 | duplicate_ack
         s A  1 1 0 64000 6004 | duplicate_ack",
    );
    opened("c FA 0 1 0 64000 3000 | retransmission"); // a FIN is none: bytes that were sent before
    opened("c PA 0 1 2 64000 3000 |"); // two bytes are none, and go beyond what was sent
    opened("c A  0 1 0 64000 9 | keep_alive\n s A 1 1 0 500 9 | window_update");
}

#[test]
fn step_5_window_updates() {
    opened(
        "c A 1 1 0 30000 3 | window_update
         c A 1 1 0 30001 4 sack=101-201 | window_update
         c A 1 1 5 30002 5 |
         c A 6 1 0 0     6 | zero_window
         c A 5 1 0 7     7 | keep_alive
         s A 1 6 0 9     8 | acks=6",
    );
}

#[test]
fn step_6_window_full_takes_the_scale_after_the_first_plain_ack() {
    check(
        "c S  0    0    0    1000 0 ws=2 | window=1000
         s SA 0    1    0    1000 1 ws=2 | window=1000
         c A  1    1    0    1000 2 | window=4000
         c PA 1    1    1000 1000 3 | window_full flight=1000
         s A  1    1001 0    1000 4 | acks=4 window=4000
         c A  1001 1    1000 1000 5 |
         c A  2001 1    3000 1000 6 | window_full
         c A  5001 1    1    1000 7 |",
    );
    opened("s A 1 1 0 500 3 | window_update\n c PA 1 1 500 64000 4 | window_full");
    opened("s A 1 1 0 500 3 | window_update\n c FA 1 1 500 64000 4 |");
    check("s A 1 1 0 500 0 |\n c A 1 1 500 64000 1 |"); // scale unknown: cannot be told
    // nor where the snap length cut the SYN's options: the scale may have been there
    for (cut, full) in [("", "window_full flight=64"), ("cut=1", "flight=64")] {
        check(&format!(
            "c S  0 0 0  9000 0 {cut} |
             s SA 0 1 0  9000 1 {cut} |
             c A  1 1 0  64   2 | window=64
             s A  1 1 64 64   3 | {full}"
        ));
    }
}

#[test]
fn step_9_duplicate_acks_need_no_data_outstanding() {
    opened(
        "c A  1 1 0 64000 3 | duplicate_ack
         c A  1 1 0 64000 4 | duplicate_ack
         c A  1 1 0 63000 5 | window_update
         c A  1 1 0 63000 6 | duplicate_ack
         c A  1 1 0 0     7 | zero_window
         c A  1 1 0 0     8 | zero_window
         c FA 1 1 0 0     9 |
         c A  1 1 0 0     9 | zero_window keep_alive",
    );
}

/// Three segments of the server, the second one acknowledged again and again.
const THREE: &str = "
    s PA 1   1   100 64000 3 |
    s PA 101 1   100 64000 3 |
    s PA 201 1   100 64000 3 |
    c A  1   101 0   64000 4 | acks=4 rtt=1
    c A  1   101 0   64000 5 | duplicate_ack
    c A  1   101 0   64000 6 | duplicate_ack
";

#[test]
fn steps_10_and_12e_fast_retransmission() {
    opened(&format!(
        "{THREE} s PA 101 1 100 64000 25.999 | fast_retransmission retransmission"
    ));
    opened(&format!("{THREE} s PA 101 1 100 64000 26 | retransmission")); // 20 ms are over
    opened(&format!("{THREE} s PA 101 1 100 64000 5.5 | retransmission")); // the clock went back
    opened(&format!("{THREE} s PA 111 1 90 64000 7 | retransmission")); // not where the client waits
    // a new acknowledgement begins the count anew
    opened(&format!(
        "{THREE} c A 1 201 0 64000 7 | acks=5\n s PA 201 1 100 64000 8 | retransmission"
    ));
}

#[test]
fn step_11_acknowledged_but_never_seen() {
    opened(
        "c A 1   1   100 64000 3 |
         c A 201 1   100 64000 4 | lost_segment
         s A 1   301 0   64000 5 | ack_lost_segment acks=5
         s A 1   401 0   64000 6 | ack_lost_segment
         s A 1   501 0   64000 7 |
         c A 301 2   0   64000 8 | ack_lost_segment",
    );
    opened("s R 1 5000 0 64000 3 |"); // no ACK flag
}

#[test]
fn step_11_its_bar_is_an_unsigned_minus_one() {
    // the bar passes for "two or more duplicate ACKs" ...
    let barred = "
        s PA 1   1  100 64000 3 |
        s A  101 51 0   64000 5 | ack_lost_segment
    ";
    opened(&format!(
        "{barred} s PA 1 1 100 64000 6 | fast_retransmission retransmission"
    ));
    // ... a duplicate ACK makes it 1 ...
    opened(&format!(
        "{barred} c A 1 1 0 64000 6 | duplicate_ack\n s PA 1 1 100 64000 7 | retransmission"
    ));
    // ... and only another acknowledgement number clears it
    opened(&format!(
        "{barred} c A 1 51 0 64000 6 |\n s PA 51 1 50 64000 7 | retransmission"
    ));
}

#[test]
fn step_12b_real_data_over_a_one_byte_probe_is_new() {
    opened("c PA 1 1 1 64000 3 |\n c PA 1 1 100 64000 9 | flight=100");
    opened("c PA 1 1 1 64000 3 |\n c PA 1 1 1 64000 9 | keep_alive");
}

#[test]
fn step_12c_spurious_retransmissions() {
    opened(
        "c PA 1   1   100 64000 3  |
         s A  1   101 0   64000 4  | acks=4 rtt=1
         c PA 1   1   100 64000 50 | spurious_retransmission retransmission
         c PA 51  1   50  64000 51 | spurious_retransmission retransmission
         c PA 51  1   100 64000 52 | retransmission
         c FA 151 1   0   64000 53 |
         s A  1   152 0   64000 54 | ack_lost_segment acks=9
         c FA 151 1   0   64000 90 | retransmission",
    );
}

#[test]
fn steps_12f_and_12g_out_of_order_within_the_initial_round_trip() {
    let gap = "
        c A 1   1 100 64000 3   |
        c A 201 1 100 64000 3.5 | lost_segment
    ";
    opened(&format!(
        "{gap} c A 101 1 100 64000 5 | out_of_order\n c A 101 1 100 64000 5.5 | retransmission"
    ));
    opened(&format!("{gap} c A 201 1 100 64000 3.6 | retransmission")); // its end is the newest end
    // 3 ms where the handshake was not seen
    check(&format!(
        "{gap} c A 101 1 100 64000 6.499 | out_of_order\n c A 101 1 100 64000 6.5 | retransmission"
    ));
    check("c S 0 0 0 64000 0 |\n c S 0 0 0 64000 1000 | retransmission");
}

#[test]
fn step_13_ten_thousand_unacknowledged_segments() {
    let mut text = OPEN.to_string();
    for i in 0..10_000 {
        text.push_str(&format!("c A {} 1 7 64000 3 |\n", 1 + 7 * i));
    }
    // not stored, and the FIN's one is forgotten
    text.push_str("c FA 70001 1 7 64000 4 | flight=69999\n c A 70009 1 0 64000 5 | lost_segment");
    check(&text);
}

#[test]
fn steps_14_to_16_what_is_remembered() {
    // a RST moves the expectation, a repeated SYN mends it
    check(
        "c S 0   0 0   64000 0    |
         c R 500 0 0   64000 1    |
         c A 1   1 100 64000 2    | out_of_order
         c A 101 1 100 64000 9    | retransmission",
    );
    check(
        "c S 0   0 0   64000 0    |
         c R 500 0 0   64000 1    |
         c S 0   0 0   64000 1000 | retransmission
         c A 1   1 100 64000 1001 |",
    );
    // the acknowledgement field counts without its flag
    opened(
        "c A 1 1 0 64000 3 | duplicate_ack
         c R 1 0 0 64000 4 |
         c A 1 1 0 64000 5 |
         c A 1 1 0 64000 6 | duplicate_ack",
    );
}

#[test]
fn step_17_the_oldest_copy_is_credited() {
    opened(
        "c A 1   1   100 64000 3   |
         c A 1   1   100 64000 300 | retransmission
         s A 1   101 0   64000 301 | acks=4 rtt=298",
    );
    // an ACK of many segments gets the time of the last; inside a segment it gets none
    opened(
        "c A 1   1   100 64000 3 |
         c A 101 1   100 64000 4 |
         c A 201 1   100 64000 5 |
         s A 1   201 0   64000 6 | acks=5 rtt=2
         s A 1   251 0   64000 7 | acks=-
         c A 301 1   100 64000 8 | flight=150
         s A 1   301 0   64000 9 | acks=6 rtt=4",
    );
}

#[test]
fn step_18_bytes_in_flight_and_since_the_last_push() {
    opened(
        "c PA  1   1 100 64000 3 | flight=100 push=100
         c A   101 1 50  64000 3 | flight=150 push=50
         c A   151 1 25  64000 3 | flight=175 push=75
         c PA  176 1 25  64000 3 | flight=200 push=100
         c PA  201 1 10  64000 3 | flight=210 push=10
         s A   1   1 0   64000 4 sack=101-151 | duplicate_ack
         c PA  211 1 10  64000 5 | flight=170 push=10
         s A   1   1 0   64000 6 sack=11-21,31-41,51-61,71-81 | duplicate_ack
         c PA  221 1 10  64000 7 | flight=200 push=10
         s A   1   1 0   64000 8 | duplicate_ack
         c FPA 231 1 10  64000 9 | flight=240 push=10
         s A   1   1 0   64000 9 sack=1-242 | duplicate_ack
         c PA  231 1 10  64000 9 | out_of_order flight=- push=-",
    );
}

#[test]
fn a3_relative_numbers_and_scaled_windows() {
    check(
        "c S  0   0   0 1000 0 ws=15 | seq=0 ack=0 next=1 window=1000
         s SA 0   1   0 1000 1 ws=0  | seq=0 ack=1 next=1 window=1000
         c A  1   1   0 3    2 | seq=1 ack=1 window=49152
         s A  1   1   7 3    3 | seq=1 next=8 window=3
         c FA 1   8   5 3    4 | next=7 acks=4
         c R  7   12  0 3    5 | seq=7 ack=12",
    );
    // one side without the option: neither scales
    for (client, server) in [("ws=7", ""), ("", "ws=7")] {
        check(&format!(
            "c S  0 0 0 64 0 {client} | window=64
             s SA 0 1 0 64 1 {server} | window=64
             c A  1 1 0 64 2 | window=64
             s PA 1 1 9 64 3 | window=64"
        ));
    }
    // seen from the middle: the first byte is relative 1
    check_from([70_000, 9], "c A 500 300 10 64 0 |\n s A 300 510 0 64 1 |");
    let mut wire = Wire::default();
    let facts: Vec<Facts> = script("c A 500 300 10 64 0 |\n s A 300 510 0 64 1 |", [7, 9])
        .iter()
        .map(|l| wire.push(l, false))
        .collect();
    assert_eq!(
        [facts[0].seq, facts[0].ack, facts[1].seq, facts[1].ack],
        [1, 1, 1, 11]
    );
    assert_eq!(wire.client.marks.scale, Scale::Unknown);
}

#[test]
fn a5_completeness() {
    let cases = [
        (1, "c S 0 0 0 9 0 |"),
        (9, "c S 0 0 9 9 0 |"), // data in the SYN that opens (RFC 7413)
        (9, "c S 0 0 9 9 0 |\n c S 0 0 9 9 0 |"),
        (1, "c S 0 0 0 9 0 |\n c S 0 0 9 9 0 |"), // a repeated SYN counts nothing
        (8, "c PA 1 1 9 9 0 |"),
        (32, "c R 1 0 0 9 0 |"),
        (36, "c RA 1 1 0 9 0 |"),
        (12, "c PA 1 1 9 9 0 |\n s A 1 10 0 9 0 |"),
        (7, OPEN),
        (6, "s SA 0 1 0 9 0 |\n c A 1 1 0 9 0 |"),
        (2, "s SA 0 1 9 9 0 |"),
        (19, "c S 0 0 0 9 0 |\n s SFA 0 1 0 9 1 |"), // FIN with ACK counts on a SYN too
        (37, "c S 0 0 0 9 0 |\n s RA 0 1 0 9 1 |"),
        (36, "c A 1 1 0 9 0 |\n c R 1 0 0 9 0 |"),
        (28, "c A 1 1 0 9 0 |\n c FA 1 1 9 9 0 |\n c A 1 1 0 9 0 |"),
        (4, "c A 1 1 0 9 0 |\n c F 1 0 0 9 0 |"),
    ];
    for (want, text) in cases {
        let mut wire = Wire::default();
        for line in script(text, [1000, 5000]) {
            wire.push(&line, false);
        }
        assert_eq!(wire.shared.completeness, want, "{text}");
    }
}
