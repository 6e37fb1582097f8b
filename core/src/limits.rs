//! The thresholds of the core's verdicts, each with its unit and source. Those of the findings are in
//! `limits/findings.rs` and beside the rules in Python. `.ci/sensitivity.py` shows how half and double of each change
//! the scores.
//!
//! `get()` reads a limit. It is a constant, unless the feature `scaled-limits` (of `.ci/sensitivity.py` alone) multiplies
//! limits at run time.
//!
//! A source is a function of the Linux kernel, an RFC, a measurement on the labelled recordings, or "chosen": then only
//! the scores support the number. Upper bounds on memory are constants of the modules that hold the memory.

mod findings;
mod limit;

pub use findings::OF_FINDINGS;
use limit::limits;
#[cfg(feature = "scaled-limits")]
pub use limit::scaled;
pub use limit::{Band, Derived, Limit, LimitRow};

/// Scheduler ticks of kernels, the longest first: CONFIG_HZ of 100, 250, 300 and 1000.
pub const TICKS_NS: [i64; 4] = [10_000_000, 4_000_000, 3_333_333, 1_000_000];
/// Tick of TCP timestamps of Linux, BSD and macOS.
pub const TICK_NS: i64 = 1_000_000;

// Numbers of standards and kernels: facts, which are not scaled.

/// Upper bound in bytes on a segment that is surely not full: no path makes the MSS smaller (RFC 9293 3.7.1).
pub const SMALLEST_MSS: Derived<u32> = Derived(|| 536);
/// Assumed MSS without an MSS option: the payload of an Ethernet frame (RFC 894) without IPv4 and TCP headers.
pub const USUAL_MSS: Derived<u16> = Derived(|| 1460);
/// Number of full segments whose ACK must not be delayed (RFC 9293 3.8.6.3).
pub const ACK_AT_ONCE: Derived<u32> = Derived(|| 2);
/// Number of duplicate ACKs that cause a fast retransmit (RFC 5681 3.2).
pub const DUPLICATES: Derived<u32> = Derived(|| 3);
/// First lone segment of a connection whose ACK may be delayed (TCP_MAX_QUICKACKS and one).
pub const QUICK_ACKS: Derived<u32> = Derived(|| 17);
/// Number of segments at the start of a connection that the kernel does not pace (tcp_update_skb_after_send).
pub const UNPACED: Derived<i64> = Derived(|| 10);
/// Shortest delayed-ACK timer (TCP_DELACK_MIN).
pub const DELACK_MIN_NS: Derived<i64> = Derived(|| 40_000_000);
/// Least retransmission timeout, and a cork's timer (TCP_RTO_MIN, tcp_check_probe_timer).
pub const RTO_MIN_NS: Derived<i64> = Derived(|| 200_000_000);
/// Longest tail loss probe: the timeout of a connection without a sample of its round trip (TCP_TIMEOUT_INIT).
pub const MOST_PROBE_NS: Derived<i64> = Derived(|| 1_000_000_000);

// Numbers that follow from these and from limits.

/// Largest lateness of a kernel timer: three ticks of 250 Hz and one of the capture's milliseconds.
const LATE_TIMER_NS: i64 = 3 * TICKS_NS[1] + TICK_NS;
/// Rounding of a kernel timer: a tick of 250 Hz and one of a millisecond clock.
const TICK_MORE_NS: i64 = TICKS_NS[1] + TICK_NS;

/// Two ticks of the slowest kernel: the longest delay by a busy host before a client's next request, the longest
/// standstill of a clock that counts milliseconds, and the largest distance between two capture points.
pub const TWO_TICKS_NS: Derived<i64> = Derived(|| 2 * TICKS_NS[0]);
/// Lower bound on a delayed ACK: the shortest timer less its rounding.
pub const DELACK_LEAST_NS: Derived<i64> = Derived(|| DELACK_MIN_NS.get() - TICK_MORE_NS);
/// Longest smoothed round trip assumed in a cork's timer where the path shows less: it may contain a delayed ACK.
pub const CORK_ROUND_NS: Derived<i64> = Derived(|| DELACK_MIN_NS.get() + TICK_MORE_NS);
/// Lower bound on a retransmission timeout: the least one less a tick.
pub const RTO_NS: Derived<i64> = Derived(|| RTO_MIN_NS.get() - TICKS_NS[0]);
/// Upper bound on a tail loss probe beyond two round trips (tcp_schedule_loss_probe).
pub const PROBE_NS: Derived<i64> = Derived(|| RTO_MIN_NS.get() + LATE_TIMER_NS);
/// Silence after an acknowledged message that ends a turn of an unknown protocol: longer than a kernel holds a segment.
pub const SILENCE_NS: Derived<i64> = Derived(|| RTO_MIN_NS.get() / 2 * 3);
/// Upper bound on the delay of a write after a message without an answer (MySQL): Nagle's algorithm holds it until the
/// longest delayed ACK (TCP_DELACK_MAX), and a quarter as long is added.
pub const HELD_BEHIND_NS: Derived<i64> = Derived(|| RTO_MIN_NS.get() / 4 * 5);

/// Lateness of an ACK, beyond the path, that shows that its receiver held it.
pub const HELD_NS: Band = Band {
    least: || DELACK_LEAST_NS.get(),
    most: || HELD_MOST_NS.get(),
};
/// Time to an answer that waits for a held ACK on another connection.
pub const HELD_ELSEWHERE_NS: Band = Band {
    least: || DELACK_MIN_NS.get() - TICKS_NS[1] / 2,
    most: || DELACK_MIN_NS.get() + LATE_TIMER_NS,
};
/// Length of a cork's timer.
pub const CORK_NS: Band = Band {
    least: || RTO_MIN_NS.get(),
    most: || PROBE_NS.get(),
};
/// First retransmission timeout of hosts that follow RFC 2988 2.1: 3 s, on coarse ticks.
pub const INITIAL_RTO_NS: Band = Band {
    least: || 2_900_000_000,
    most: || 3_300_000_000,
};
/// Gap in a capture of one direction that may be a held ACK and its round trip.
pub const ONE_WAY_GAP_NS: Band = Band {
    least: || DELACK_LEAST_NS.get(),
    most: || 2 * CORK_ROUND_NS.get(),
};

/// `OUTLIER_ONE_IN` and `RARE_ONE_IN` as shares, and the share of all but rare values.
pub const OUTLIER_SHARE: Derived<f64> = Derived(|| 1.0 / OUTLIER_ONE_IN.get() as f64);
pub const RARE_SHARE: Derived<f64> = Derived(|| 1.0 / RARE_ONE_IN.get() as f64);
pub const NEARLY_ALL: Derived<f64> = Derived(|| 1.0 - RARE_SHARE.get());
/// Tolerated probability of chance where a cause rests on nothing else: stricter than `CHANCE_MAX`.
pub const CHANCE_MAX_ALONE: Derived<f64> = Derived(|| CHANCE_MAX.get() * OUTLIER_SHARE.get());

limits! {
    // names

    /// Upper bound on the time from a name's answer to a connect that waited for that lookup.
    LOOKED_UP_NS: i64 = 1_000_000_000, "ns", "chosen: a resolver hands over at once; RFC 8305 waits 250 ms for another address";

    /// Upper bound on the time from a port named on FTP's control connection to the data connection that carries the
    /// file.
    ANNOUNCED_NS: i64 = 60_000_000_000, "ns", "accept_timeout and connect_timeout of vsftpd";

    // what is read

    /// Largest distance of data beyond the receiver's room: data further off belong to a damaged packet or to another
    /// connection.
    BEYOND_ROOM: i64 = 67_108_864, "bytes", "chosen: no capture of one connection lacks more than a window and this";

    // where a turn ends, and what is worth a row beside the requests

    /// Silence that ends a server's answer inside TLS: longer than programs compute between a head and its body.
    SEALED_SILENCE_NS: i64 = 3_000_000_000, "ns", "chosen";
    /// Number of turns of one form, each a heartbeat and its reply, that show a rhythm.
    BEATS: i64 = 4, "turns", "chosen: three periods of either side";
    /// Upper bound on the size of a heartbeat inside TLS.
    BEAT_BYTES: i64 = 128, "bytes", "chosen: keepalives of BGP (19), AMQP (8), WebSocket and TLS records around them";
    /// Lower bound on the time to a retransmitted SYN, SYN/ACK or neighbour request: copies that follow sooner are
    /// duplicates.
    SYN_TIMER_NS: i64 = 100_000_000, "ns", "chosen: far below one second (RFC 6298 2.1)";

    // what limits a transfer

    /// Least number of bytes without data of the other side at which a direction is watched for its limit.
    WATCHED_BYTES: u32 = 8_192, "bytes", "chosen: less than the ten segments of a first window (RFC 6928)";
    /// Lower bound on the size of a transfer.
    TRANSFER_BYTES: u32 = 30_000, "bytes", "two first windows (RFC 6928)";
    /// Number of segments, a quarter of the flight too, whose common ACK shows the pace of the receiving program, not
    /// of the line.
    WHOLE_SEGMENTS: u32 = 8, "segments", "own recordings: 45 with a slow reader, 2 to 4 behind a line";
    /// Least share of the time at which a limit is the transfer's.
    LIMIT_SHARE: f64 = 0.5, "share", "chosen";
    /// Least share of the time at which a limit is proven.
    SURE_SHARE: f64 = 0.8, "share", "chosen";
    /// Least share of the time at which the largest limit is suspected.
    LESSER_LIMIT_SHARE: f64 = 0.3, "share", "chosen";
    /// Share of the time that evenly spaced segments fill: then a line delivers them at its own rate.
    EVEN_SHARE: f64 = 0.75, "share", "the labelled transfers: 0.99 behind a line, 0.08 and less elsewhere";
    /// Rise of each turn's best round trip above the idle one, as a share, that shows a standing queue.
    STANDING_SHARE: f64 = 0.08, "share", "the labelled transfers: 0.2 to 5 behind a line, 0.01 elsewhere";
    /// Rise of each turn's best round trip above the idle one that shows a standing queue.
    STANDING_NS: i64 = 700_000, "ns", "chosen: the delay by a busy host";
    /// Least share of bytes acknowledged with less than 3/4 of the largest window open at which the receiving program
    /// reads slowly.
    LOW_SHARE: f64 = 0.4, "share", "own recordings: 0.59 and more with a slow reader, 0.0 without";
    /// Standard deviation of pauses, as a share of their mean, below which a timer makes them.
    STEADY_SHARE: f64 = 0.5, "share", "chosen";
    /// Least share of the time that single ACKs fill without a standing queue at which the sender paces itself.
    PACED_SHARE: f64 = 0.85, "share", "own recordings: 0.95 and more where paced, 0.7 and less behind a small buffer";
    /// Upper bound on a pacer's burst, in segments or in milliseconds of its rate.
    PACED_BURST: f64 = 3.0, "segments, ms", "tcp_tso_autosize: 1 ms or two segments, and half as much again";
    /// Least share of pauses after the end of a write at which the program makes them.
    ENDED_SHARE: f64 = 0.12, "share", "the labelled transfers: 0.2 and more of a slow writer, 0 of a paced sender";
    /// Least share of segments that are late by less than a round trip at which the path reorders.
    REORDERED_SHARE: f64 = 0.01, "share", "the labelled transfers: 0.04 where 5 of 100 are late, 0 elsewhere";

    // what a capture shows of its senders

    /// Upper bound on the time to a copy of an unanswered ping (a bridge, a capture on all interfaces); later its
    /// numbers have wrapped.
    ECHO_COPY_NS: i64 = 1_000_000_000, "ns", "chosen: ping sends one a second";
    /// Least number of unanswered repeats of a neighbour request at which the missing host is a row.
    UNANSWERED_NEIGHBOUR: u32 = 2, "count", "chosen: Linux asks three times (mcast_solicit)";
    /// Silence after which a neighbour request is a new one: Linux asks once a second and gives up after three.
    NEIGHBOUR_ANEW_NS: i64 = 3_000_000_000, "ns", "chosen: three of retrans_time_ms (1 s)";
    /// Silence after which a request of a UDP service is a new one, not a repeat.
    SERVICE_ANEW_NS: i64 = 30_000_000_000, "ns", "chosen: SIP repeats for 32 s at intervals of 4 s (RFC 3261 17.1.2.2)";
    /// Upper bound on the round trip to an endpoint at which the capture was taken.
    AT_ENDPOINT_NS: i64 = 1_000_000, "ns", "chosen: a busy host, a virtual machine";
    /// Number of consecutive IP identifications in a handshake that show a counter per connection.
    COUNTED_OWN: u32 = 2, "count", "chosen: by chance two numbers follow each other once in 2^32";

    // the path

    /// Upper bound on the round trip to the host at which the capture was taken: stricter than `AT_ENDPOINT_NS`, no
    /// path at all.
    AT_HOST_NS: i64 = 70_000, "ns", "measured: up to 65 us beside a host, 75 us and more half way on a path of 0.1 ms";
    /// Upper bound on the time from an ACK to the segment that it freed, beyond the round trip, unless the path varies
    /// more.
    PROMPT_NS: i64 = 2_000_000, "ns", "measured: lab, loaded hosts";

    // notions that many rules share

    /// Least ratio at which one value is clearly larger; also the two delays, of the ACK and of the segment, in a
    /// release.
    CLEAR_RATIO: i64 = 2, "times", "measured: releases by kernels take 0.9 to 1.7 of their handshakes, a relay's 2.1 and more";
    /// Least ratio at which one value is far larger; its inverse is the variation of even values and of a path.
    LARGE_RATIO: i64 = 4, "times", "measured: on paths of 2 to 5 ms kernels freed segments up to a fifth sooner than the best answer of a program; public captures behind a NAT have 100 ms and 0.1 ms";
    /// Share, one in this many, that is too large for outliers; all but it is the majority.
    MAJORITY_ONE_IN: usize = 3, "parts", "measured: 31 of 83 late ACKs over Wi-Fi come sooner than a timer, at most 12 of 44 where a timer holds them; 90 of 100 releases leave as a kernel sends, 38 where a program waits for the ACK";
    /// Share, one in this many, that is rare: a release as late as the path is now and then, a segment without its ACK,
    /// a relay's own request.
    RARE_ONE_IN: usize = 20, "parts", "chosen";
    /// Tolerated probability that a rule's prediction comes true by chance.
    CHANCE_MAX: f64 = 0.001, "chance", "chosen";

    // held ACKs

    /// Longest time for which a receiver holds an ACK.
    HELD_MOST_NS: i64 = 520_000_000, "ns", "RFC 1122 4.2.3.2: less than 500 ms, and a tick";

    // Nagle's algorithm

    /// Upper bound on a busy host's delay of the median release, of a program's pause, and of events that count as
    /// simultaneous.
    SOON_NS: i64 = 750_000, "ns", "measured: lab";
    /// Minimum sample size of a verdict; fewer are at most probable.
    MIN_SAMPLES: usize = 8, "count", "chosen";
    /// Tolerated outliers, one in this many: a held ACK that is followed late, a corked message that left at once, a
    /// pause of the control group (a busy host, an ACK that the capture lacks), a segment that went without its ACK.
    OUTLIER_ONE_IN: usize = 10, "parts", "chosen";
    /// Growth of the evidence, as a share, upon which a sender is judged again.
    GROWN: f64 = 0.25, "share", "chosen";

    // the control group: pauses of the program where nothing was held

    /// Upper bound on the lateness, beyond the path, of an ACK that was not held.
    UNHELD_NS: i64 = 15_000_000, "ns", "chosen: below the shortest hold, above the variation of paths";
    /// Largest difference between a pause of the control group and a wait that it explains.
    CONTROL_NEAR_NS: i64 = 5_000_000, "ns", "chosen: a tick of CONFIG_HZ=250, and one more";
    /// Ratio of a program's next pause to a single known one, at most; also of a pause that outlasts a held ACK to the
    /// wait: a longer one belongs to another answer.
    LONGER_TIMES: f64 = 1.5, "times", "measured: real, a program that works for 5 to 35 ms; twice costs 5 % of simulated stalls with frames missing";
    /// Share of held ACKs, one in this many, that a busy host outlasts, seen beside the sender, where no pause of the
    /// program is known.
    OUTLASTED: usize = 1000, "parts", "chosen: one in a hundred is a program that works for 20 to 60 ms (real)";
    /// Upper bound on the time from an ACK to the segment that a kernel sends upon it, seen beside the sender.
    KERNEL_NS: i64 = 100_000, "ns", "measured: at most 50 us in lab and real; a program that waits for the ACK takes 80 to 200 us";
    /// Lower bound on the time granted to a kernel with cold caches, whatever its handshakes took.
    COLD_NS: i64 = 40_000, "ns", "measured: real, lab and lab3: four of five releases of any kernel; of any relay at most one in two";
    /// Number of events that are not an accident together: held ACKs before a clean control group beside the sender (by
    /// chance (KERNEL_NS / hold)^held), refutations, pauses that show how a program's time varies.
    SEVERAL: usize = 3, "count", "chosen";
    /// As `SEVERAL`, away from the sender: held ACKs, late releases of one length, points of a slope.
    HELD_AWAY: usize = 5, "count", "chosen; case decoy_pauses_on_a_line_of_jitter";

    // values that lie together

    /// Least concentration of times folded by a tick (0 to 1) at which they end on it.
    FITS_WELL: f64 = 0.85, "share", "chosen";

    // the sender's clock

    /// Window of the best offset between two clocks: their drift over two windows is negligible.
    CLOCK_WINDOW_NS: i64 = 10_000_000_000, "ns", "chosen";
    /// Longest delay by a path.
    MOST_LATE_NS: u64 = 2_000_000_000, "ns", "chosen";
    /// Delay that a tick, drift and a busy host explain, and the error of two millisecond clocks; also the age below
    /// which a closed hole was reordering, where no other sign exists.
    NOISE_NS: i64 = 3_000_000, "ns", "chosen: three ticks of a time stamp";
    /// Time after which a clock's rate is known.
    RATED_NS: i64 = 500_000_000, "ns", "chosen";

    // the line, and pacing

    /// Largest gap between segments that nothing held back.
    BURST_NS: i64 = 200_000, "ns", "measured: lab";
    /// Lowest rate of a pacer.
    SLOWEST: u32 = 32_000, "bytes a second", "chosen";
    /// Tolerated difference of equal rates, one part in this many.
    ALIKE: u32 = 32, "parts", "chosen; cases decoy_paced_answers, paced_tails_by_the_kernel";

    // repairs

    /// Largest step between IP identifications of one counter; others lie further apart.
    NEAR_IDS: i16 = 64, "count", "chosen";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_unit_a_source_and_a_sentence() {
        let all = all();
        assert!(all.iter().all(|limit| {
            let texts = [limit.unit, limit.source, limit.doc];
            limit.value > 0.0 && texts.iter().all(|text| !text.is_empty()) && limit.doc.ends_with('.')
        }));
        let mut names: Vec<&str> = all.iter().map(|limit| limit.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn a_band_holds_both_its_ends() {
        let (least, most) = (HELD_NS.least(), HELD_NS.most());
        assert!(HELD_NS.contains(least) && HELD_NS.contains(most));
        assert!(!HELD_NS.contains(least - 1) && !HELD_NS.contains(most + 1));
    }
}
