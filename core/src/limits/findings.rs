//! Limits of the findings, which Python reads by name.

/// Limits by name; the name ends in the unit unless the limit is a count, a ratio or a share.
pub const OF_FINDINGS: [(&str, f64); 75] = [
    // Least share of a side's segments that are in the capture twice at which a second capture point or a mirror port
    // explains them, not the path. Chosen.
    ("doubled_most_share", 0.5),
    // Share of doubled segments below which the path explains them. Chosen.
    ("doubled_some_share", 0.05),
    // Upper bound on the time to a copy: no timer retransmits sooner, and a retransmission has a new timestamp.
    ("double_ns", 20_000_000.0),
    // Shares of exchanges with missing bytes, and the confidence left to verdicts above each. Chosen.
    ("gaps_most_share", 0.5),
    ("gaps_most_confidence", 0.88),
    ("gaps_some_share", 0.1),
    ("gaps_some_confidence", 0.95),
    // Confidence left where the interface counted dropped packets. Chosen.
    ("dropped_confidence", 0.95),
    // Share of missing IP identifications above which the host uses one counter for all connections (Windows), and
    // share of missing ones tolerated on streams without a sign of loss. Chosen.
    ("unseen_most_share", 0.25),
    ("unseen_few_share", 0.02),
    // Least time beyond the round trip at which a request is slow, unless the user sets a threshold; less where a
    // program sends tens (database) or hundreds (cache) of requests for one page. Chosen.
    ("slow_ms", 20.0),
    ("slow_database_ms", 10.0),
    ("slow_cache_ms", 5.0),
    // As `slow_ms`, for a step of a log-in: key exchange, deliberately slow password hashes, delays after wrong ones.
    // Chosen.
    ("slow_login_ms", 500.0),
    // Share of frames with a time before their predecessor's, above which short times are doubtful. Chosen.
    ("clock_back_share", 0.001),
    ("clock_back_confidence", 0.88),
    // Least forward jump of the capture's clock that differs from a host's wait: the lowest timeout (TCP_RTO_MIN).
    ("clock_ahead_ns", 200_000_000.0),
    // Share of the exchanges' time inside such jumps above which no verdict is given. Chosen.
    ("clock_ahead_share", 0.05),
    // Silence, without an open connection, that shows recordings merged into one file: a month. Chosen.
    ("merged_ns", 2_592_000_000_000_000.0),
    ("merged_confidence", 0.85),
    // Time after which the rate of a sender's timestamps is known: five ticks. Chosen.
    ("stamp_rate_ns", 5_000_000.0),
    // Upper bound on the confidence in exchanges that never ended. Chosen.
    ("cut_confidence", 0.7),
    // Upper bound on the confidence in a program's time on a server whose sockets differ. Chosen.
    ("mixed_confidence", 0.7),
    // --- connections: least number, rate and share of half-open connections that are a flood. Chosen.
    ("flood_connections", 100.0),
    ("flood_per_s", 20.0),
    ("flood_share", 0.9),
    ("flood_sources", 10.0),
    ("flood_sure_per_s", 100.0),
    // --- before a request: pauses below this are a program's start. Chosen.
    ("setup_ms", 200.0),
    // --- a queue at the server: least requests, steps (each twice as many requests ahead) and requests in each step.
    // Chosen.
    ("queue_requests", 100.0),
    ("queue_steps", 4.0),
    ("queue_in_step", 3.0),
    // Least ratio of the last step's median time to the first's, and of each step's to that of the step before. Chosen:
    // slow work in parallel takes as long with any number of requests ahead.
    ("queue_grows", 2.0),
    ("queue_least_rise", 0.9),
    // Bounds on the growth for each request ahead, as a ratio to the time between two answers. Chosen.
    ("queue_least_slope", 0.5),
    ("queue_most_slope", 1.5),
    // Least share of the median latency that the wait for other requests has. Chosen.
    ("queue_least_share", 0.3),
    // --- one direction: least number of suspected gaps for a finding. Chosen.
    ("one_way_gaps", 3.0),
    // --- held ACKs that nothing waited for: bounds on a hold (RFC 1122 4.2.3.2: 500 ms, and a tick), and the number of
    // holds that shows a receiver with delayed ACKs. Chosen.
    ("held_ms", 25.0),
    ("held_most_ms", 520.0),
    ("held_few", 3.0),
    // --- socket options: number of events that show one, number that makes it certain, and the ratio to events that
    // show the contrary. Chosen.
    ("option_few", 3.0),
    ("option_enough", 5.0),
    ("option_against_times", 9.0),
    // Error of a hold where the path was measured too long, distance from a timer beyond which a hold without a tick
    // shows nothing, slack of a timer, and probability below which a tick is no chance. Chosen.
    ("timer_early_ms", 1.5),
    ("timer_clear_ms", 4.5),
    ("timer_slack_ms", 10.0),
    ("tick_luck", 0.001),
    // --- rivals: slope above which segments follow the ACKs, and least prompt releases of mixed senders: as a share of
    // the held ones, and as a ratio to the refutations. Chosen.
    ("slope_follows", 0.5),
    ("mixed_tight_share", 0.5),
    ("mixed_tight_times", 3.0),
    // --- which exchanges are judged Wait for TCP from which on an exchange that never ended is judged. Chosen.
    ("stuck_ms", 1_000.0),
    // Least silence at which a connection was idle. Chosen: pauses inside a page are shorter.
    ("idle_least_ms", 1_000.0),
    // Least payload that a path may be too narrow for: 576 bytes pass everywhere (RFC 791), less headers and options.
    ("mtu_least_bytes", 500.0),
    // Copies of one unacknowledged packet, where smaller ones pass, that are not an accident. Chosen: at a loss of 10 %
    // four in a row are one in 10,000.
    ("mtu_copies", 4.0),
    // Unacknowledged copies of one packet that show a hung connection. Chosen.
    ("hung_copies", 3.0),
    // A pool of workers: bounds on the number of requests, least time of the quickest, least growth to the slowest,
    // error of the times that a queue predicts, and share of requests that fit. Chosen.
    ("pool_least", 5.0),
    ("pool_most", 1_000.0),
    ("pool_least_ms", 5.0),
    ("pool_grows", 3.0),
    ("pool_near_share", 0.2),
    ("pool_fits_share", 0.8),
    // Excess of an idle time over a known timer, as a share, within which that timer ended the connection. Chosen.
    ("timer_near_share", 0.1),
    // Time from a side's last message to its FIN above which it had waited for an answer. Chosen.
    ("goodbye_ns", 1_000_000_000.0),
    // --- predictions: least exchanges, and signs of a closed loop and of a busy server. Chosen.
    ("gain_exchanges", 8.0),
    ("loop_pause_share", 0.5),
    ("loop_early_share", 0.05),
    ("busy_requests", 4.0),
    ("busy_answers", 200.0),
    ("busy_share", 0.01),
    // Bounds on median over mean of the times between answers of a saturated server. Measured: lab.
    ("saturated_least", 0.7),
    ("saturated_most", 1.1),
    // Share of waiting requests answered out of turn, up to which a server takes turns. Measured: 0 to 0.02 where one
    // loop serves all (nginx), 0.15 to 0.9 where each connection has a thread.
    ("overtaken_share", 0.1),
    // --- least time of a GET answered 204, always after the same time, that is a long poll. Chosen: servers end them
    // after tens of seconds (RFC 6202 5.5), and no program's work takes the same second twice.
    ("poll_ms", 1_000.0),
    // --- advice: silence from which on a wait may be a long poll.
    ("long_poll_ms", 2_000.0),
];
