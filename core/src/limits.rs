//! Every number of the core's verdicts; those of the findings are in `limits/findings.rs` and beside the rules in Python.
//! Reads nothing; gives each limit once, with its unit and its source; knows of no
//! segment, sender or exchange. `.ci/sensitivity.py` shows what half and double of each does to the scores.
//!
//! A source is a function of the Linux kernel, an RFC, a measurement on the labelled recordings, or "chosen": nothing but
//! the scores speaks for that number. Bounds of memory are no limits: they stand where the memory is.

mod findings;
mod limit;

pub use findings::OF_FINDINGS;
use limit::limits;
#[cfg(feature = "scaled-limits")]
pub use limit::scaled;
pub use limit::{Band, Derived, Limit, LimitRow};

/// The ticks of kernels, the longest first: CONFIG_HZ of 100, 250, 300 and 1000.
pub const TICKS_NS: [i64; 4] = [10_000_000, 4_000_000, 3_333_333, 1_000_000];
/// Linux, BSD and macOS count milliseconds in their time stamps.
pub const TICK_NS: i64 = 1_000_000;

// Numbers of standards and kernels: facts, of which half or double means nothing.

/// A segment of at most this size was one frame and is no full one: the path does not make segments so short (RFC 9293 3.7.1).
pub const SMALLEST_MSS: Derived<u32> = Derived(|| 536);
/// What an Ethernet frame leaves for the payload, where no MSS option was seen (RFC 894, less the headers of IPv4 and TCP).
pub const USUAL_MSS: Derived<u16> = Derived(|| 1460);
/// An ACK of so many full segments may not wait (RFC 9293 3.8.6.3).
pub const ACK_AT_ONCE: Derived<u32> = Derived(|| 2);
/// So many duplicate ACKs call for a repeat (RFC 5681 3.2).
pub const DUPLICATES: Derived<u32> = Derived(|| 3);
/// So many lone segments of a connection at least are acknowledged at once (TCP_MAX_QUICKACKS, and one).
pub const QUICK_ACKS: Derived<u32> = Derived(|| 17);
/// The kernel paces nothing before so many segments (tcp_update_skb_after_send).
pub const UNPACED: Derived<i64> = Derived(|| 10);
/// The shortest delayed-ACK timer (TCP_DELACK_MIN).
pub const DELACK_MIN_NS: Derived<i64> = Derived(|| 40_000_000);
/// The least retransmission timeout, and a cork's timer (TCP_RTO_MIN, tcp_check_probe_timer).
pub const RTO_MIN_NS: Derived<i64> = Derived(|| 200_000_000);
/// The first timer of a connection without a sample of its round trip (TCP_TIMEOUT_INIT): the longest tail loss probe.
pub const MOST_PROBE_NS: Derived<i64> = Derived(|| 1_000_000_000);

// What follows from these and from limits.

/// A timer of 250 Hz is up to three ticks late.
const LATE_TIMER_NS: i64 = 3 * TICKS_NS[1] + TICK_NS;
/// A tick of 250 Hz, and one of a clock of milliseconds.
const TICK_MORE_NS: i64 = TICKS_NS[1] + TICK_NS;

/// Two of the slowest kernel's ticks: a client that sends its next request sooner did not pause, its host was busy; no clock
/// that counts milliseconds stands still for longer; and a capture's two points lie no further apart.
pub const TWO_TICKS_NS: Derived<i64> = Derived(|| 2 * TICKS_NS[0]);
/// No delayed-ACK timer ends sooner.
pub const DELACK_LEAST_NS: Derived<i64> = Derived(|| DELACK_MIN_NS.get() - TICK_MORE_NS);
/// The smoothed round trip in a cork's timer may contain a delayed ACK: it may be this long, whatever was seen.
pub const CORK_ROUND_NS: Derived<i64> = Derived(|| DELACK_MIN_NS.get() + TICK_MORE_NS);
/// The lowest retransmission timeout less a tick.
pub const RTO_NS: Derived<i64> = Derived(|| RTO_MIN_NS.get() - TICKS_NS[0]);
/// A tail loss probe waits at most this and two round trips (tcp_schedule_loss_probe).
pub const PROBE_NS: Derived<i64> = Derived(|| RTO_MIN_NS.get() + LATE_TIMER_NS);
/// End of a turn, where no protocol is known: no data for this long after everything was acknowledged: longer than a kernel
/// holds a segment or its ACK back.
pub const SILENCE_NS: Derived<i64> = Derived(|| RTO_MIN_NS.get() / 2 * 3);
/// What was written behind a message without an answer (MySQL) has left within this: Nagle's algorithm holds it until the
/// longest delayed ACK has come (TCP_DELACK_MAX), and a quarter as long again.
pub const HELD_BEHIND_NS: Derived<i64> = Derived(|| RTO_MIN_NS.get() / 4 * 5);

/// An ACK that came this much later than the path needs was held.
pub const HELD_NS: Band = Band {
    least: || DELACK_LEAST_NS.get(),
    most: || HELD_MOST_NS.get(),
};
/// As long as an answer takes that waits for a held ACK on another connection.
pub const HELD_ELSEWHERE_NS: Band = Band {
    least: || DELACK_MIN_NS.get() - TICKS_NS[1] / 2,
    most: || DELACK_MIN_NS.get() + LATE_TIMER_NS,
};
/// A cork's timer.
pub const CORK_NS: Band = Band {
    least: || RTO_MIN_NS.get(),
    most: || PROBE_NS.get(),
};
/// The first timer of hosts that follow RFC 2988 2.1: 3 s, on coarse ticks.
pub const INITIAL_RTO_NS: Band = Band {
    least: || 2_900_000_000,
    most: || 3_300_000_000,
};
/// A gap in one direction alone that may be a held ACK and its way.
pub const ONE_WAY_GAP_NS: Band = Band {
    least: || DELACK_LEAST_NS.get(),
    most: || 2 * CORK_ROUND_NS.get(),
};

/// One in so many that may stray, and all but those that are rare, as shares.
pub const OUTLIER_SHARE: Derived<f64> = Derived(|| 1.0 / OUTLIER_ONE_IN.get() as f64);
pub const RARE_SHARE: Derived<f64> = Derived(|| 1.0 / RARE_ONE_IN.get() as f64);
pub const NEARLY_ALL: Derived<f64> = Derived(|| 1.0 - RARE_SHARE.get());
/// Chance that is tolerated where a cause rests on nothing else: below `CHANCE_MAX`.
pub const CHANCE_MAX_ALONE: Derived<f64> = Derived(|| CHANCE_MAX.get() * OUTLIER_SHARE.get());

limits! {
    // names

    /// A connect within this of the answer that gave its address waited for that lookup.
    LOOKED_UP_NS: i64 = 1_000_000_000, "ns", "chosen: a resolver hands over at once; RFC 8305 waits 250 ms for another address";

    /// A connection to a port that FTP's control connection named within this carries the file that was requested.
    ANNOUNCED_NS: i64 = 60_000_000_000, "ns", "accept_timeout and connect_timeout of vsftpd";

    // what is read

    /// Data that begin so far behind all that the receiver had room for are a damaged packet's, or another connection's.
    BEYOND_ROOM: i64 = 67_108_864, "bytes", "chosen: a capture that lacks more than a window and so much is none of one connection";

    // where a turn ends, and what is worth a row beside the requests

    /// A server inside TLS may go on with its answer until then: no program computes for longer between a head and its body.
    SEALED_SILENCE_NS: i64 = 3_000_000_000, "ns", "chosen";
    /// So many turns of one form, each two heartbeats, show a rhythm.
    BEATS: i64 = 4, "turns", "chosen: three periods of either side";
    /// A heartbeat inside TLS is no longer.
    BEAT_BYTES: i64 = 128, "bytes", "chosen: keepalives of BGP (19), AMQP (8), WebSocket and TLS records around them";
    /// No kernel repeats a SYN or its answer sooner.
    SYN_TIMER_NS: i64 = 100_000_000, "ns", "RFC 6298 2.1: one second; far below it";

    // what limits a transfer

    /// A direction is watched for what limits it from this many bytes on that the other side did not answer with data.
    WATCHED_BYTES: u32 = 8_192, "bytes", "chosen: less than the ten segments of a first window (RFC 6928)";
    /// Fewer bytes in one go are no transfer.
    TRANSFER_BYTES: u32 = 30_000, "bytes", "two first windows (RFC 6928)";
    /// An ACK of more segments, and of a quarter of what is in flight, comes at its program's pace, not at the line's.
    WHOLE_SEGMENTS: u32 = 8, "segments", "own recordings: 45 with a slow reader, 2 to 4 behind a line";
    /// A limit that holds this share of the time is the transfer's.
    LIMIT_SHARE: f64 = 0.5, "share", "chosen";
    /// A limit that holds this share of the time explains all of it.
    SURE_SHARE: f64 = 0.8, "share", "chosen";
    /// The largest share decides from here on, and is less sure.
    LESSER_LIMIT_SHARE: f64 = 0.3, "share", "chosen";
    /// Segments that arrive one by one fill this share of the time: a line hands them over at its own rate.
    EVEN_SHARE: f64 = 0.75, "share", "the labelled transfers: 0.99 behind a line, 0.08 and less elsewhere";
    /// The best round trip of each turn is longer than the idle one by this share: a queue stands.
    STANDING_SHARE: f64 = 0.08, "share", "the labelled transfers: 0.2 to 5 behind a line, 0.01 elsewhere";
    /// A queue stands where the best round trip of each turn is longer than the idle one by at least this.
    STANDING_NS: i64 = 700_000, "ns", "chosen: what a busy host takes";
    /// Bytes that the receiver acknowledged with less than 3/4 of its largest window left, as a share: its program
    /// leaves them there.
    LOW_SHARE: f64 = 0.4, "share", "own recordings: 0.59 and more with a slow reader, 0.0 without";
    /// Pauses that vary by less than this share of their mean are a timer's.
    STEADY_SHARE: f64 = 0.5, "share", "chosen";
    /// ACKs that come one by one fill this share of the time, and no queue stands: the sender itself meters what it sends.
    PACED_SHARE: f64 = 0.85, "share", "own recordings: 0.95 and more where paced, 0.7 and less behind a small buffer";
    /// A pacer sends no more segments at a time, or milliseconds' worth.
    PACED_BURST: f64 = 3.0, "segments, ms", "tcp_tso_autosize: 1 ms or two segments, and half as much again";
    /// Pauses that end a write, as a share: a program's.
    ENDED_SHARE: f64 = 0.12, "share", "the labelled transfers: 0.2 and more of a slow writer, 0 of a paced sender";
    /// Of all segments so many came late, and soon: the path changes their order.
    REORDERED_SHARE: f64 = 0.01, "share", "the labelled transfers: 0.04 where 5 of 100 are late, 0 elsewhere";

    // what a capture shows of its senders

    /// An unanswered ping that is seen again sooner is a copy (a bridge, a capture on all interfaces); later its numbers
    /// have come round.
    ECHO_COPY_NS: i64 = 1_000_000_000, "ns", "chosen: ping sends one a second";
    /// A host on the link that did not answer so many repeated requests for its address is a row of its own.
    UNANSWERED_NEIGHBOUR: u32 = 2, "count", "chosen: Linux asks three times (mcast_solicit)";
    /// After so long without a request the next one begins anew: Linux asks once a second, and gives up after three.
    NEIGHBOUR_ANEW_NS: i64 = 3_000_000_000, "ns", "chosen: three of retrans_time_ms (1 s)";
    /// A client of a service over UDP repeats its request within this, or has given up.
    SERVICE_ANEW_NS: i64 = 30_000_000_000, "ns", "chosen: SIP repeats for 32 s at intervals of 4 s (RFC 3261 17.1.2.2)";
    /// A capture beside a host measures a round trip to it below this.
    AT_ENDPOINT_NS: i64 = 1_000_000, "ns", "chosen: a busy host, a virtual machine";
    /// Of the connection's own counter, as its handshake shows, so many do.
    COUNTED_OWN: u32 = 2, "count", "chosen: by luck two numbers follow each other once in 2^32";

    // the path

    /// A round trip to the host that the capture sits at is shorter than this.
    AT_HOST_NS: i64 = 70_000, "ns", "measured: up to 65 us beside a host, 75 us and more half way on a path of 0.1 ms";
    /// What an ACK releases passes within this of the round trip to its sender, unless the path wavers more.
    PROMPT_NS: i64 = 2_000_000, "ns", "measured: lab, loaded hosts";

    // notions that many rules share

    /// So many times as much is clearly more; and a release may be as late as the ACK and the segment together.
    CLEAR_RATIO: i64 = 2, "times", "measured: releases by kernels take 0.9 to 1.7 of their handshakes, a relay's 2.1 and more";
    /// So many times as much is far more, and one part in so many is as much as even things differ, and as a path wavers.
    LARGE_RATIO: i64 = 4, "times", "measured: on paths of 2 to 5 ms kernels freed segments up to a fifth sooner than the best answer of a program; public captures behind a NAT have 100 ms and 0.1 ms";
    /// One in so many is too many to be strays, and two of them are most.
    MAJORITY_ONE_IN: usize = 3, "parts", "measured: 31 of 83 late ACKs over Wi-Fi come sooner than a timer, at most 12 of 44 where a timer holds them; 90 of 100 releases leave as a kernel sends, 38 where a program waits for the ACK";
    /// One in so many is rare: a release as late as the path is now and then, a segment that goes without its ACK, a request of a relay's own.
    RARE_ONE_IN: usize = 20, "parts", "chosen";
    /// The chance that what a rule predicts comes about by luck.
    CHANCE_MAX: f64 = 0.001, "chance", "chosen";

    // held ACKs

    /// No receiver holds an ACK for longer.
    HELD_MOST_NS: i64 = 520_000_000, "ns", "RFC 1122 4.2.3.2: less than 500 ms, and a tick";

    // Nagle's algorithm

    /// What a busy host adds at most to half of its releases: seen from elsewhere to what the path wavers, and beside it;
    /// what it adds to its program's pauses, and to a release behind which others of its sender were prompt.
    SOON_NS: i64 = 750_000, "ns", "measured: lab";
    /// Minimum sample size of a verdict; fewer are at most probable.
    MIN_SAMPLES: usize = 8, "count", "chosen";
    /// Tolerated outliers, one in this many: a held ACK that is followed late, a corked message that left at once, a pause of the control
    /// group (a busy host, an ACK that the capture lacks), a segment that went without its ACK.
    OUTLIER_ONE_IN: usize = 10, "parts", "chosen";
    /// A sender that has been judged is judged again when its evidence has grown by this share.
    GROWN: f64 = 0.25, "share", "chosen";

    // the control group: what the program takes where nothing was held

    /// An ACK that came no later than this beyond the path was not held.
    UNHELD_NS: i64 = 15_000_000, "ns", "chosen: below the shortest hold, above what paths waver";
    /// A pause of the control group explains a wait that is up to this much longer or shorter.
    CONTROL_NEAR_NS: i64 = 5_000_000, "ns", "chosen: a tick of CONFIG_HZ=250, and one more";
    /// A program of which one pause alone was seen takes up to so many times as long the next time; and what outlasted a held ACK
    /// show that the program may also have ended within one, up to this many times the wait: longer ones are other answers.
    LONGER_TIMES: f64 = 1.5, "times", "measured: real, a program that works for 5 to 35 ms; twice costs 5 % of simulated stalls with frames missing";
    /// Where no pause of a program is known otherwise, a busy host outlasts one in so many held ACKs at most, seen beside it.
    OUTLASTED: usize = 1000, "parts", "chosen: one in a hundred is a program that works for 20 to 60 ms (real)";
    /// Beside the sender a kernel sends what an ACK freed within this.
    KERNEL_NS: i64 = 100_000, "ns", "measured: at most 50 us in lab and real; a program that waits for the ACK takes 80 to 200 us";
    /// A kernel whose caches are cold needs so long, whatever its handshakes took.
    COLD_NS: i64 = 40_000, "ns", "measured: real, lab and lab3: four of five releases of any kernel; of any relay at most one in two";
    /// So many are no accident, where each alone may be one: held ACKs in front of a clean control group beside the sender (luck
    /// would be (KERNEL_NS / hold)^held), refutations, pauses that show how a program's time differs.
    SEVERAL: usize = 3, "count", "chosen";
    /// As `SEVERAL`, away from the sender: of held ACKs, late releases of one length, and what gives a slope.
    HELD_AWAY: usize = 5, "count", "chosen; case decoy_pauses_on_a_line_of_jitter";

    // values that lie together

    /// Above this the tick that was tried is theirs.
    FITS_WELL: f64 = 0.85, "share", "chosen";

    // the sender's clock

    /// Neither clock drifts by much in two of these.
    CLOCK_WINDOW_NS: i64 = 10_000_000_000, "ns", "chosen";
    /// No path holds a segment for longer.
    MOST_LATE_NS: u64 = 2_000_000_000, "ns", "chosen";
    /// What a tick, the drift and a busy host explain, and what two clocks that count milliseconds leave open. A hole that closes
    /// sooner was reordering, where no other sign exists.
    NOISE_NS: i64 = 3_000_000, "ns", "chosen: three ticks of a time stamp";
    /// A clock's rate shows after this.
    RATED_NS: i64 = 500_000_000, "ns", "chosen";

    // the line, and pacing

    /// Segments that follow each other this closely were never held by anybody.
    BURST_NS: i64 = 200_000, "ns", "measured: lab";
    /// Nobody paces more slowly.
    SLOWEST: u32 = 32_000, "bytes a second", "chosen";
    /// Rates that differ by less than one part in so many are one rate.
    ALIKE: u32 = 32, "parts", "chosen; cases decoy_paced_answers, paced_tails_by_the_kernel";

    // repairs

    /// Identifications that are counted lie near each other, others hardly ever.
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
