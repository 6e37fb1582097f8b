//! Every number that a verdict rests on. Reads nothing; gives each limit once, with its unit and where it comes from;
//! knows of no segment, sender or exchange.
//!
//! Bounds of memory are none of these: they stand where the memory is.

use std::ops::RangeInclusive;

// --- the path

/// A round trip to the host that the capture sits at is shorter than this. Measured: 20 to 60 us, lab.
pub const AT_HOST_NS: i64 = 100_000;
/// A round trip to another host is longer than this. Chosen: ten times the one above, less a half.
pub const AWAY_NS: i64 = 500_000;
/// A sample that is this much above the best says something about a host, not about the path's jitter. Chosen.
pub const HOST_NS: i64 = 15_000_000;
/// Jitter above this is no basis for a verdict. Chosen.
pub const MOST_JITTER_NS: i64 = 10_000_000;
/// What an ACK releases passes within this of the round trip to its sender, unless the path wavers more. Measured: lab.
pub const PROMPT_NS: i64 = 2_000_000;
/// The same beside the sender. Measured: lab, loaded hosts.
pub const PROMPT_AT_HOST_NS: i64 = 200_000;

/// A release may be as late as the ACK and the segment together: times the ninety-fifth of a hundred samples. Chosen.
pub const PATH_LATE: f64 = 2.0;

// --- held ACKs

/// No delayed-ACK timer is shorter: Linux holds an ACK for 40 ms (TCP_DELACK_MIN) less a tick, others longer.
pub const DELACK_LEAST_NS: i64 = 35_000_000;
/// An ACK that came this much later than the path needs was held. RFC 1122 4.2.3.2 allows 500 ms.
pub const HELD_NS: RangeInclusive<i64> = 25_000_000..=520_000_000;

/// As long as an answer takes that waits for a held ACK on another connection, behind a proxy say: the timer of
/// TCP_DELACK_MIN, up to three ticks of 250 Hz late.
pub const HELD_ELSEWHERE_NS: RangeInclusive<i64> = 38_000_000..=52_000_000;

// --- Nagle's algorithm

/// What a kernel needs at most to send what an ACK has freed, seen at its own side. Measured: 4 to 60 us, lab.
pub const INSTANT_NS: i64 = 60_000;
/// What a busy host adds at most: to the promptest tenth of its releases, seen from elsewhere, and to half of them
/// beside it. Measured: lab.
pub const SOON_NS: i64 = 750_000;
/// A small segment with more of its sender's data this close behind it was cut from a longer queue: Nagle looks at the
/// queue's last buffer only (tcp_nagle_test), so it refutes nothing.
pub const QUEUE_NS: i64 = 100_000;
/// An echoed time stamp that moved this far shows that the peer was heard meanwhile. Chosen: half of the shortest hold.
pub const HEARD_TICKS: u32 = 20;
/// An ACK that the capture lacks is dated by two clocks that count milliseconds.
pub const DATED_NS: i64 = 3 * TICK_NS;
/// So many of a kind make a verdict; fewer are at most probable. Chosen.
pub const ENOUGH: usize = 8;
/// Of so many one may stray: a held ACK that is followed late, a corked message that left at once. Chosen.
pub const STRAY_SHARE: usize = 10;
/// Refutations that are no accident: a frame that the capture lacks makes one. Chosen.
pub const REFUTED: u64 = 3;
/// The chance that a program's own times look like a kernel's by luck. Chosen.
pub const LUCK: f64 = 1e-4;
/// A sender that has been judged is judged again when its evidence has grown by this share. Chosen.
pub const GROWN: f64 = 0.25;

// --- the control group: what the program takes where nothing was held

/// An ACK that came no later than this beyond the path was not held. Chosen: below the shortest hold of `HELD_NS`, above what
/// paths waver.
pub const UNHELD_NS: i64 = 15_000_000;
/// A pause explains a wait that is up to this much longer, or shorter by the other. Chosen: a tick of 250 Hz, and one more.
pub const CONTROL_SHORT_NS: i64 = 5_000_000;
pub const CONTROL_LONG_NS: i64 = 5_000_000;
/// The control group may have so many strays: a busy host, an ACK that the capture lacks. One in so many. Chosen.
pub const CONTROL_STRAYS: usize = 10;
/// Where the pauses of all connections explain some waits, one connection's own say something else from so many on. Chosen.
pub const OWN_CONTROLS: usize = 3;
/// Beside the sender a kernel sends what an ACK freed within this. Measured: at most 50 us in lab and real recordings; a
/// program that waits for the ACK takes 80 to 200 us.
pub const KERNEL_NS: i64 = 100_000;
/// Of the segments that left soon after a held ACK beside their sender, so many hundredths left as promptly as a kernel.
/// Measured: 90 to 100 where a kernel sent them, 38 where a program waited for the ACK.
pub const KERNEL_PERCENT: usize = 67;
/// Of the held ACKs one in so many has to be followed at once. Chosen.
pub const FOLLOWED: usize = 3;
/// So many held ACKs make a stall proven where the control group is clean: beside the sender, where luck would be
/// (KERNEL_NS / hold)^held, and elsewhere. Chosen.
pub const HELD_AT_HOST: usize = 3;
pub const HELD_AWAY: usize = 5;
/// A program with pauses of one length beyond every hold: they differ by no more than this, and lie so far beyond the holds.
/// Chosen.
pub const ONE_LENGTH_NS: i64 = 2_000_000;
pub const BEYOND_HOLDS_NS: i64 = 4_000_000;

// --- values that lie together

/// Slopes between ACK times that differ less than this are noise. Chosen: a tick of 250 Hz spreads holds by 4 ms.
pub const SLOPE_APART_NS: i64 = 300_000;
/// Timers of many connections that end on one tick are handled one after the other, within this time. Measured: lab.
pub const TOGETHER_NS: i64 = 500_000;
/// The ticks of kernels (CONFIG_HZ of 100, 250, 300, 1000), the longest first.
pub const TICKS_NS: [i64; 4] = [10_000_000, 4_000_000, 3_333_333, 1_000_000];
/// How far ends lie together on a tick: 1 if they fall on one point of it, 0 if anywhere. Beside it, and on it. Chosen.
pub const FITS: f64 = 0.7;
pub const FITS_WELL: f64 = 0.85;
/// The chance that times without a tick fall together. Chosen.
pub const TICK_LUCK: f64 = 1e-3;

// --- the sender's clock

/// Linux, BSD and macOS count milliseconds in their time stamps.
pub const TICK_NS: i64 = 1_000_000;
/// Neither clock drifts by much in two of these. Chosen.
pub const CLOCK_WINDOW_NS: i64 = 10_000_000_000;
/// Clocks whose rate differs by more than one in so many count something else than milliseconds. Chosen.
pub const CLOCK_RATE: u64 = 100;
/// No path holds a segment for longer. Chosen.
pub const MOST_LATE_NS: u64 = 2_000_000_000;
/// Segments before the best time is known. Chosen.
pub const CLOCK_ENOUGH: u32 = 8;
/// What a tick, the drift and a busy host explain. Chosen.
pub const NOISE_NS: i64 = 3_000_000;
/// No clock that counts milliseconds stands still for longer. Chosen.
pub const GRAIN_NS: i64 = 20_000_000;
/// After more late ones in a row the capture's clock has been set, or the best time is not known. Chosen.
pub const CLOCK_RUN: u32 = 8;
/// A clock's rate shows after this. Chosen.
pub const RATED_NS: i64 = 500_000_000;
/// The same where only milliseconds have to be told from ticks of 4 ms and more: ten of those.
pub const PEER_RATED_NS: i64 = 40_000_000;
/// Lateness that is not rare among a sender's segments is its clock's grain: one in so many. Chosen.
pub const RARE: u32 = 4;

// --- one direction alone

/// A held ACK, its way and the path's: where the path is not known. Chosen.
pub const ONE_WAY_GAP_NS: RangeInclusive<i64> = 35_000_000..=90_000_000;
/// How far the clocks that are read here may be from their ticks over a stream: one part in so many. Chosen.
pub const DRIFT: i64 = 50;
/// ACKs that lie so far apart in their gaps tell whether the gaps go with them; a tick on either side tells nothing.
pub const APART_NS: i64 = 2 * TICK_NS;
/// So many pairs of gaps make a judgement. Chosen.
pub const ENOUGH_PAIRS: u32 = 5;

// --- the line, and pacing

/// Segments that follow each other this closely were never held by anybody. Measured: lab.
pub const BURST_NS: i64 = 200_000;
/// So many even gaps in a row are a pace. Chosen.
pub const EVEN_GAPS: u8 = 2;
/// What keeps the pace comes at most so many times as late as the one before it. Chosen.
pub const PACE: i64 = 3;
/// The kernel paces nothing before so many segments (tcp_update_skb_after_send).
pub const UNPACED: i64 = 10;
/// Nobody paces more slowly, in bytes a second. Chosen.
pub const SLOWEST: u32 = 32_000;
/// What was idle before is paced at up to twice the rate, and a path may compress gaps by as much.
pub const HASTE: u32 = 4;
/// Rates that differ by less than one part in so many are one rate. Chosen.
pub const ALIKE: u32 = 32;
/// Numbers of bytes that differ by less than one part in so many tell nothing of proportion. Chosen.
pub const DIFFER: u32 = 4;
/// Of pairs of gaps that are in proportion, one after the other, how many show a pace; each that is not takes half of
/// one away. Chosen.
pub const PACE_SHOWN: u8 = 4;
pub const PACE_MOST: u8 = 12;

// --- corks

/// Linux' cork timer: the probe timer at its lowest, up to three ticks late (tcp_check_probe_timer).
pub const CORK_NS: RangeInclusive<i64> = 200_000_000..=213_000_000;
/// A path to the sender that is longer than this is not looked at for a cork. Chosen.
pub const LONG_PATH_NS: i64 = 500_000_000;
/// No segment is so short because the path takes no longer ones (RFC 9293 3.7.1), in bytes.
pub const UNFINISHED: i64 = 536;

// --- repairs

/// The lowest retransmission timeout of Linux (TCP_RTO_MIN) less a tick.
pub const RTO_NS: i64 = 190_000_000;
/// A tail loss probe waits at most 2 RTT + TCP_RTO_MIN (tcp_schedule_loss_probe), and fires a few ticks late.
pub const PROBE_NS: i64 = 215_000_000;
/// A tail loss probe's least and longest wait beyond the round trip: the retransmission timeout bounds it.
pub const LEAST_PROBE_NS: i64 = 200_000_000;
pub const MOST_PROBE_NS: i64 = 1_000_000_000;
/// What a program may take before the segment that the probe repeats. Chosen.
pub const LATE_NS: i64 = 40_000_000;
/// Identifications that are counted lie near each other, others hardly ever. Chosen.
pub const NEAR_IDS: i16 = 64;
/// A capture's two points lie no further apart; what a path doubles may come later. Chosen.
pub const DOUBLE_NS: i64 = 20_000_000;

// --- what a capture can carry; from here on read by the findings (`latpcap/findings`), by name

/// The limits that findings use: each name ends in its unit unless it is a count or a share.
pub const OF_FINDINGS: [(&str, f64); 63] = [
    // More than this share of a side's segments twice: a second point or a mirror port, not the path. Chosen.
    ("doubled_most_share", 0.5),
    // Fewer doubles than this are a path's. Chosen.
    ("doubled_some_share", 0.05),
    // No timer repeats a segment sooner, and a repeat has a new time stamp.
    ("double_ns", DOUBLE_NS as f64),
    // Exchanges with holes above the first share leave verdicts of the first confidence, above the second of the
    // second. Chosen.
    ("gaps_most_share", 0.5),
    ("gaps_most_confidence", 0.88),
    ("gaps_some_share", 0.1),
    ("gaps_some_confidence", 0.95),
    // Packets that the interface says it dropped. Chosen.
    ("dropped_confidence", 0.95),
    // Hosts that count identifications for all connections together (Windows) skip more than the first share; on
    // streams without a sign of loss nearly all have to be there. Chosen.
    ("unseen_most_share", 0.25),
    ("unseen_few_share", 0.02),
    // A clock that goes back in more than this share of the frames makes short times doubtful. Chosen.
    ("clock_back_share", 0.001),
    ("clock_back_confidence", 0.88),
    // A clock that is set ahead by less cannot be told from a host's wait: the lowest timeout of TCP (TCP_RTO_MIN).
    ("clock_ahead_ns", 200_000_000.0),
    // Jumps that hold more than this share of the exchanges' time forbid a verdict. Chosen.
    ("clock_ahead_share", 0.05),
    // The rate of a sender's time stamps shows after this. Chosen: five of its ticks.
    ("stamp_rate_ns", 5_000_000.0),
    // Exchanges that never ended carry no more than this. Chosen.
    ("cut_confidence", 0.7),
    // A program's time on a server whose sockets differ carries no more than this. Chosen.
    ("mixed_confidence", 0.7),
    // --- connections: half-open ones so many, so fast and so large a share of all are a flood. Chosen.
    ("flood_connections", 100.0),
    ("flood_per_s", 20.0),
    ("flood_share", 0.9),
    ("flood_sources", 10.0),
    ("flood_sure_per_s", 100.0),
    ("flood_sure_confidence", 0.95),
    ("flood_confidence", 0.85),
    ("unanswered_confidence", 0.8),
    ("half_open_confidence", 0.6),
    ("refused_confidence", 0.95),
    ("reset_confidence", 0.9),
    // --- before a request: shorter pauses are a program's start. Chosen.
    ("setup_ms", 200.0),
    ("setup_confidence", 0.9),
    ("corked_request_confidence", 0.6),
    // --- one direction: so many gaps, and what they are worth where data or only ACKs were seen. Chosen.
    ("one_way_gaps", 3.0),
    ("one_way_data_confidence", 0.5),
    ("one_way_acks_confidence", 0.4),
    // --- ACKs that nobody waited for
    ("held_ms", 25.0),
    ("held_most_ms", 520.0),
    ("held_few", 3.0),
    ("held_confidence", 0.9),
    // --- socket options: so many moments show one, so many more make it certain. Chosen.
    ("option_few", 3.0),
    ("option_enough", 5.0),
    ("option_against_share", 9.0),
    // Linux sends up to 16 ACKs at once when a connection begins (TCP_MAX_QUICKACKS).
    ("quick_acks", 17.0),
    // A hold seems this much shorter where the path was measured too long; holds further from a timer without a tick
    // say nothing of whose it is; a tick is luck with less than this chance. Chosen.
    ("timer_early_ms", 1.5),
    ("timer_clear_ms", 4.5),
    ("timer_slack_ms", 10.0),
    ("tick_luck", TICK_LUCK),
    // --- rivals: a slope above it follows the ACKs. Chosen: half way between 0 and 1.
    ("slope_follows", 0.5),
    ("mixed_tight_share", 0.5),
    ("mixed_tight_times", 3.0),
    // Linux' cork timer at its lowest, less a tick.
    ("cork_ms", 190.0),
    // --- whose exchanges are judged
    // An exchange that never ended and waited for TCP this long is judged. Chosen.
    ("stuck_ms", 1_000.0),
    // Who closes later than this after its last message had waited for an answer. Chosen.
    ("goodbye_ns", 1_000_000_000.0),
    // --- predictions: exchanges from which one is made, and what shows a closed loop and a busy server. Chosen.
    ("gain_exchanges", 8.0),
    ("loop_pause_share", 0.5),
    ("loop_early_share", 0.05),
    ("busy_requests", 4.0),
    ("busy_answers", 200.0),
    ("busy_share", 0.01),
    // Median over mean of the answers of a saturated server, least and most. Measured: lab.
    ("saturated_least", 0.7),
    ("saturated_most", 1.1),
    // --- advice: a longer silence may be a long poll; curl waits about a second for 100 Continue (RFC 9110 10.1.1).
    ("long_poll_ms", 2_000.0),
    ("continue_least_ms", 970.0),
    ("continue_most_ms", 1_100.0),
];
