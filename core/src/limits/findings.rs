//! Limits that findings use: Python reads them by name.

/// The limits that findings use: each name ends in its unit unless it is a count or a share.
pub const OF_FINDINGS: [(&str, f64); 75] = [
    // More than this share of a side's segments twice: a second point or a mirror port, not the path. Chosen.
    ("doubled_most_share", 0.5),
    // Fewer doubles than this are a path's. Chosen.
    ("doubled_some_share", 0.05),
    // No timer repeats a segment sooner, and a repeat has a new time stamp.
    ("double_ns", 20_000_000.0),
    // Exchanges with holes above the first share leave verdicts of the first confidence, above the second of the
    // second. Chosen.
    ("gaps_most_share", 0.5),
    ("gaps_most_confidence", 0.88),
    ("gaps_some_share", 0.1),
    ("gaps_some_confidence", 0.95),
    // Packets that the interface shows it dropped. Chosen.
    ("dropped_confidence", 0.95),
    // Hosts that count identifications for all connections together (Windows) skip more than the first share; on
    // streams without a sign of loss nearly all have to be there. Chosen.
    ("unseen_most_share", 0.25),
    ("unseen_few_share", 0.02),
    // A request is slow from here on beyond the path's round trip, unless the user sets another threshold; sooner where
    // a program sends tens, or hundreds, of requests for one page. Chosen.
    ("slow_ms", 20.0),
    ("slow_database_ms", 10.0),
    ("slow_cache_ms", 5.0),
    // A step of a log-in: keys are exchanged, passwords hashed to be slow, and guesses delayed. Chosen.
    ("slow_login_ms", 500.0),
    // A clock that goes back in more than this share of the frames makes short times doubtful. Chosen.
    ("clock_back_share", 0.001),
    ("clock_back_confidence", 0.88),
    // A clock that is set ahead by less cannot be distinguished from a host's wait: the lowest timeout of TCP (TCP_RTO_MIN).
    ("clock_ahead_ns", 200_000_000.0),
    // Jumps that hold more than this share of the exchanges' time forbid a verdict. Chosen.
    ("clock_ahead_share", 0.05),
    // A month without a packet, and without a connection over it: recordings that were put into one file. Chosen.
    ("merged_ns", 2_592_000_000_000_000.0),
    ("merged_confidence", 0.85),
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
    // --- before a request: shorter pauses are a program's start. Chosen.
    ("setup_ms", 200.0),
    // --- a queue at the server: so many requests, in so many steps of twice as many ahead, so many in each. Chosen.
    ("queue_requests", 100.0),
    ("queue_steps", 4.0),
    ("queue_in_step", 3.0),
    // From the first step to the last its time grows so many times, and from none to the next below this share of it.
    // Chosen: slow work in parallel takes as long with any number ahead.
    ("queue_grows", 2.0),
    ("queue_least_rise", 0.9),
    // It grows for each request ahead by as much as answers are apart, within these factors. Chosen.
    ("queue_least_slope", 0.5),
    ("queue_most_slope", 1.5),
    // The wait for others is at least this share of the median latency. Chosen.
    ("queue_least_share", 0.3),
    // --- one direction: so many gaps, and what they are worth where data or only ACKs were seen. Chosen.
    ("one_way_gaps", 3.0),
    // --- ACKs that nobody waited for: held from the first to the second (RFC 1122 4.2.3.2: 500 ms, and a tick), and so many
    // of them show a receiver that delays its ACKs. Chosen.
    ("held_ms", 25.0),
    ("held_most_ms", 520.0),
    ("held_few", 3.0),
    // --- socket options: so many moments show one, so many make it certain, where those that show the
    // contrary are fewer by this factor. Chosen.
    ("option_few", 3.0),
    ("option_enough", 5.0),
    ("option_against_times", 9.0),
    // A hold seems this much shorter where the path was measured too long; holds further from a timer without a tick
    // say nothing of whose it is; a tick is luck with less than this chance. Chosen.
    ("timer_early_ms", 1.5),
    ("timer_clear_ms", 4.5),
    ("timer_slack_ms", 10.0),
    ("tick_luck", 0.001),
    // --- rivals: a slope above the first follows the ACKs. The others are chosen.
    ("slope_follows", 0.5),
    ("mixed_tight_share", 0.5),
    ("mixed_tight_times", 3.0),
    // --- whose exchanges are judged
    // An exchange that never ended and waited for TCP this long is judged. Chosen.
    ("stuck_ms", 1_000.0),
    // A connection was idle when nothing was sent on it for this long. Chosen: pauses inside a page are shorter.
    ("idle_least_ms", 1_000.0),
    // Payload of the least packet that a path may be too narrow for: 576 bytes pass everywhere (RFC 791), less headers and
    // options.
    ("mtu_least_bytes", 500.0),
    // So many copies of one packet, and nothing of its size acknowledged, are no accident where smaller ones pass. Chosen:
    // at a loss of 10 % four in a row are one in 10,000.
    ("mtu_copies", 4.0),
    // A packet of which the capture has so many copies without an ACK hangs. Chosen.
    ("hung_copies", 3.0),
    // A pool: so many requests at least; the quickest takes so long; the longest grows to so many times that; answers are
    // as a line would give them within this share, so many of them. Chosen.
    ("pool_least", 5.0),
    ("pool_most", 1_000.0),
    ("pool_least_ms", 5.0),
    ("pool_grows", 3.0),
    ("pool_near_share", 0.2),
    ("pool_fits_share", 0.8),
    // A connection that was idle for longer than a known timer, by less than this share, ran into it. Chosen.
    ("timer_near_share", 0.1),
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
    // A server takes turns where so many of the requests that wait together are at most answered out of turn. Measured:
    // 0 to 0.02 where one loop serves all (nginx), 0.15 to 0.9 where each connection has a thread.
    ("overtaken_share", 0.1),
    // --- GET answered 204 after the same time again and again is a long poll from here on. Chosen: servers end them after
    // tens of seconds (RFC 6202 5.5), and no program's work takes the same second twice.
    ("poll_ms", 1_000.0),
    // --- advice: a longer silence may be a long poll.
    ("long_poll_ms", 2_000.0),
];
