//! Finds what limits a transfer, by the time between its segments. Reads `observe::transfer`; returns the limit, its
//! grade and its rival.
//!
//! Captures at both ends show the receiver's window and the line. They also show that a sender waited for no ACK, but
//! far from the sender not why: its program, pacing and buffer are rivals of one another there.

use super::vocabulary::{Grade, Limiter, ReducedBy};
use crate::limits::{
    ENDED_SHARE, EVEN_SHARE, LESSER_LIMIT_SHARE, LIMIT_SHARE, LOW_SHARE, PACED_BURST, PACED_SHARE,
    REORDERED_SHARE, STANDING_NS, STANDING_SHARE, STEADY_SHARE, SURE_SHARE, TRANSFER_BYTES,
};
use crate::observe::transfer::{RoundTrip, Transfer, Waited};

/// Verdict on a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    pub limit: Limiter,
    pub grade: Grade,
    pub rival: Option<Limiter>,
    pub reduced_by: Option<ReducedBy>,
}

/// Judgement on one direction of a stream. Times in ns; None where unknown.
#[derive(Debug, Clone)]
pub struct TransferVerdict {
    pub verdict: Verdict,
    /// From the first to the last byte at the receiver, without waits for the other side's data.
    pub duration_ns: i64,
    /// Best round trip, and median round trip under load.
    pub idle_rtt_ns: Option<i64>,
    pub loaded_rtt_ns: Option<i64>,
    /// Mean delay by the queue at the bottleneck.
    pub queue_ns: Option<i64>,
    pub waited: Waited,
    /// Time of a full segment on the slowest line, as far as bursts show it.
    pub segment_ns: Option<i64>,
}

/// Whether a transfer is large enough to be judged.
pub fn matters(transfer: &Transfer) -> bool {
    transfer.largest_message_bytes >= i64::from(TRANSFER_BYTES.get())
}

/// Judges a transfer. `idle` is the best round trip between the ends. An encrypted stream may contain HTTP/2, whose
/// windows may be the limit.
pub fn judge(transfer: &Transfer, idle: Option<i64>, is_encrypted: bool) -> TransferVerdict {
    let loaded = under_load(&transfer.rounds.finished).filter(|round| round.best_rtt_ns > 0);
    let standing_queue_rtt = mean(loaded.clone().map(|round| (round.best_rtt_ns, round.duration_ns)));
    // the delay of a growing queue is least where a round begins; its mean is half way to the next round's least
    let next = loaded.clone().skip(1).map(|round| round.best_rtt_ns).chain([0]);
    let growing_rtt = mean(loaded.zip(next).map(|(round, next)| {
        (
            round.best_rtt_ns.midpoint(round.best_rtt_ns.max(next)),
            round.duration_ns,
        )
    }));
    let last_rtt = transfer
        .rounds
        .finished
        .last()
        .map_or(0, |round| round.smoothed_rtt_ns);
    let above_idle = |best: i64| idle.map(|idle| (best - idle).max(0));
    let queue_ns = standing_queue_rtt.and_then(above_idle);
    let smooth = under_load(&transfer.rounds.finished).filter(|round| round.smoothed_rtt_ns > 0);
    let smooth = smooth.map(|round| (round.smoothed_rtt_ns, round.duration_ns));
    let rtt_load = median(smooth.clone());
    let segment_ns = if transfer.is_near {
        transfer.ack_spacing.median()
    } else {
        transfer.arrival_spacing.median()
    };
    let waited = transfer.waited;
    let mut verdict = verdict(transfer, idle, queue_ns, segment_ns);
    if is_encrypted && verdict.limit == Limiter::SenderBuffer && transfer.is_near {
        verdict.rival = Some(Limiter::Http2Window);
    }
    let mut duration =
        end(transfer, above_idle(last_rtt).unwrap_or(0), idle) - transfer.first_ns - waited.turns_ns;
    if verdict.limit == Limiter::ReceiverProgram {
        duration = duration.max(read_within(transfer, idle));
    }
    let shows_path = transfer.is_near || verdict.limit != Limiter::SenderProgram;
    // where a program is the limit, ACKs are late without a queue
    let is_program_limit = matches!(
        verdict.limit,
        Limiter::ReceiverProgram | Limiter::ReceiverWindow | Limiter::SenderProgram
    );
    let standing_rtt = mean(smooth).filter(|_| !is_program_limit);
    // away from the sender, few samples are seen while the queue grows
    let standing_rtt = if transfer.is_near {
        standing_rtt
    } else {
        standing_rtt.max(growing_rtt)
    };
    TransferVerdict {
        verdict,
        duration_ns: duration,
        waited,
        idle_rtt_ns: idle,
        loaded_rtt_ns: rtt_load.filter(|_| shows_path),
        queue_ns: standing_rtt
            .or(growing_rtt)
            .and_then(above_idle)
            .filter(|_| shows_path),
        segment_ns,
    }
}

/// Returns for how long the receiving program read. The bytes that its kernel holds when the window's edge moves last
/// are assumed to be read at the rate before. If the receiver sends or closes within two further reads, that bounds the
/// time.
fn read_within(transfer: &Transfer, idle: Option<i64>) -> i64 {
    let way_ns = if transfer.is_near { idle.unwrap_or(0) } else { 0 };
    let since = transfer.first_ns + transfer.waited.turns_ns + way_ns;
    let (unread, read_count) = (transfer.unread() as f64, transfer.reads.count.max(1) as f64);
    let read_bytes = transfer.bytes() as f64 - unread;
    let until_ns = (transfer.reads.newest_ns - since) as f64;
    if unread > read_bytes {
        return 0; // the rate is unknown: most bytes were not read by then
    }
    let read_ns = until_ns / read_count;
    let unread_ns = (unread * read_count / read_bytes).ceil() * read_ns;
    let answered_ns = (transfer.answered_ns - transfer.reads.newest_ns) as f64;
    let is_bounded = transfer.answered_ns != 0 && answered_ns < unread_ns + read_ns + read_ns;
    (until_ns
        + if is_bounded {
            unread_ns.max(answered_ns - read_ns).min(answered_ns)
        } else {
            unread_ns
        }) as i64
}

/// Returns when the last byte reached the receiver, less the path. Near the sender the ACK of all data bounds it.
fn end(transfer: &Transfer, behind: i64, idle: Option<i64>) -> i64 {
    if !transfer.is_near {
        return transfer.last_ns;
    }
    let sent = transfer.last_ns + behind;
    match idle.filter(|_| transfer.acked_all_ns >= transfer.last_ns) {
        Some(idle) if is_reordered(transfer) => (transfer.acked_all_ns - idle).max(transfer.last_ns),
        Some(idle) => sent.min(transfer.acked_all_ns - idle),
        None => sent,
    }
}

/// Whether the path reorders segments.
fn is_reordered(transfer: &Transfer) -> bool {
    transfer.losses.reordered as f64 >= REORDERED_SHARE.get() * transfer.segments as f64
        || transfer.is_near
            && transfer.losses.holes > 2 * transfer.losses.holes_retransmitted
            && transfer.losses.holes >= 3
}

/// Returns the round trips in the last two thirds of the time: the start is not under load yet.
fn under_load(rounds: &[RoundTrip]) -> impl Iterator<Item = &RoundTrip> + Clone {
    let first = rounds.first().map_or(0, |round| round.start_ns);
    let last = rounds
        .last()
        .map_or(0, |round| round.start_ns + round.duration_ns);
    let from = first + (last - first) / 3;
    rounds
        .iter()
        .filter(move |round| round.start_ns + round.duration_ns > from)
}

/// Returns the mean of values, each weighted by its duration.
fn mean(weighed: impl Iterator<Item = (i64, i64)>) -> Option<i64> {
    let (sum, weight) = weighed.fold((0_i128, 0_i128), |(sum, all), (value, weight)| {
        (
            sum + i128::from(value) * i128::from(weight),
            all + i128::from(weight),
        )
    });
    (weight > 0).then(|| (sum / weight) as i64)
}

/// Returns the median of values, each weighted by its duration.
fn median(weighed: impl Iterator<Item = (i64, i64)>) -> Option<i64> {
    let mut values: Vec<(i64, i64)> = weighed.collect();
    values.sort_unstable();
    let mut half = values.iter().map(|(_, weight)| weight).sum::<i64>() / 2;
    let middle = values.iter().find(|(_, weight)| {
        half -= weight;
        half < 0
    });
    middle.map(|(value, _)| *value)
}

impl Verdict {
    /// A verdict without a rival.
    fn certain(limit: Limiter, grade: Grade) -> Verdict {
        Verdict {
            limit,
            grade,
            rival: None,
            reduced_by: None,
        }
    }

    fn with_rival(limit: Limiter, grade: Grade, rival: Limiter) -> Verdict {
        Verdict {
            rival: Some(rival),
            ..Verdict::certain(limit, grade)
        }
    }
}

/// Shares of the time between segments that each limiter explains.
struct Shares {
    window: f64,
    program: f64,
    timer: f64,
    http2: f64,
    cut: f64,
    level: f64,
    growing: f64,
}

impl Shares {
    fn new(transfer: &Transfer) -> Shares {
        let waited = &transfer.waited;
        let total = waited.all();
        let share = |ns: i64| ns as f64 / total.max(1) as f64;
        let edge: i64 = transfer.rounds.finished.iter().map(|round| round.edge_ns).sum();
        let edge = if waited.timer_ns > 0 {
            share(edge.min(total))
        } else {
            0.0
        };
        Shares {
            window: share(waited.window_ns).max(edge),
            program: share(waited.program_ns),
            timer: share(waited.timer_ns),
            http2: share(waited.http2_ns),
            cut: share(waited.repair_ns + waited.cut_ns),
            level: share(waited.level_ns),
            growing: share(waited.growing_ns),
        }
    }

    /// Returns the largest share and its limiter.
    fn largest(&self) -> (f64, Limiter) {
        let shares = [
            (self.window, Limiter::ReceiverWindow),
            (self.program, Limiter::SenderProgram),
            (self.http2, Limiter::Http2Window),
            (self.cut, Limiter::Congestion),
            (self.timer, Limiter::Pacing),
            (self.level, Limiter::SenderBuffer),
            (self.growing, Limiter::Start),
        ];
        let longer = |best: (f64, Limiter), next: (f64, Limiter)| if next.0 > best.0 { next } else { best };
        shares.into_iter().fold((0.0, Limiter::None), longer)
    }
}

/// Signs of a transfer besides its shares of time.
struct Signs {
    /// Segments come at an even rate.
    is_even: bool,
    /// ACKs come at an even rate, and there is no standing queue.
    is_metered: bool,
    /// The receiving program leaves data in the window.
    keeps_window_shut: bool,
    is_reordered: bool,
    has_standing_queue: bool,
    /// The sender mostly pauses after the end of a write.
    pauses_at_message_ends: bool,
}

impl Signs {
    fn new(transfer: &Transfer, idle: Option<i64>, queue: Option<i64>, segment_ns: Option<i64>) -> Signs {
        let waited = &transfer.waited;
        let total = waited.all();
        // time before retransmissions is in no sum, so a line's rate does not explain it
        let unexplained = transfer.last_ns - transfer.first_ns - waited.turns_ns - total;
        let is_unexplained = unexplained as f64 >= LIMIT_SHARE.get() * total as f64;
        let is_even = !is_unexplained
            && segment_ns.is_some_and(|segment_ns| {
                segment_ns as f64 * transfer.segments as f64 >= EVEN_SHARE.get() * total as f64
            });
        // away from the sender, pacing by two segments looks like a queue of them
        let paced = if transfer.is_near {
            0
        } else {
            4 * segment_ns.unwrap_or(0)
        };
        let has_standing_queue = idle.zip(queue).is_some_and(|(idle, queue)| {
            let least_queue = STANDING_NS.get().max(paced);
            queue >= least_queue && queue as f64 >= STANDING_SHARE.get() * idle as f64
        });
        let after_writes = transfer.pauses_after_writes as f64;
        let full = (transfer.segments as f64) * transfer.ack_spacing.median().unwrap_or(0) as f64;
        let is_reordered = is_reordered(transfer);
        // (with reordering, the segments after a hole take the room)
        let is_low = transfer.window.acked_bytes_below as f64
            >= LOW_SHARE.get() * transfer.window.acked_bytes as f64
            && !is_reordered;
        Signs {
            is_even,
            is_metered: full >= PACED_SHARE.get() * total as f64
                && !has_standing_queue
                && transfer.losses.retransmissions == 0,
            keeps_window_shut: transfer.window.zero_count > 1 || is_low,
            is_reordered,
            has_standing_queue,
            pauses_at_message_ends: waited.program_ns > 0
                && after_writes >= ENDED_SHARE.get() * transfer.pauses.count as f64,
        }
    }
}

fn verdict(transfer: &Transfer, idle: Option<i64>, queue: Option<i64>, segment_ns: Option<i64>) -> Verdict {
    let waited = &transfer.waited;
    let total = waited.all();
    if total <= 0 || transfer.rounds.finished.is_empty() {
        return Verdict::certain(Limiter::None, Grade::Unknown);
    }
    let mut shares = Shares::new(transfer);
    let signs = Signs::new(transfer, idle, queue, segment_ns);
    let unprompted = (waited.program_ns + waited.timer_ns) as f64 / total as f64;
    if let Some(line) = line_limit(transfer, idle, queue, shares.window, unprompted, &signs) {
        return line;
    }
    if signs.pauses_at_message_ends {
        (shares.program, shares.timer) = (unprompted, 0.0);
    }
    let (share, limiter) = shares.largest();
    if share < LESSER_LIMIT_SHARE.get() {
        return Verdict::certain(Limiter::None, Grade::Unknown);
    }
    largest(transfer, limiter, share, &signs)
}

/// Returns the verdict where the line limits the transfer: segments at an even rate. `window` and `unprompted` are
/// shares of the time: without room in the window, and before segments that left without an ACK.
fn line_limit(
    transfer: &Transfer,
    idle: Option<i64>,
    queue: Option<i64>,
    window: f64,
    unprompted: f64,
    signs: &Signs,
) -> Option<Verdict> {
    if !signs.is_even {
        return None;
    }
    let is_by_program = signs.pauses_at_message_ends && transfer.is_near && unprompted >= LIMIT_SHARE.get();
    if signs.has_standing_queue && !is_by_program {
        if window < LIMIT_SHARE.get() {
            // a window that losses limit has an even rate too, and a busy host looks like a short queue
            let has_losses = transfer.losses.retransmissions > 0;
            let is_short_queue = has_losses && queue.zip(idle).is_some_and(|(queue, idle)| 2 * queue < idle);
            let line = if is_short_queue {
                Verdict::with_rival(Limiter::Line, Grade::Suspected, Limiter::Congestion)
            } else {
                Verdict::certain(Limiter::Line, Grade::Proven)
            };
            let reduced_by = has_losses.then_some(ReducedBy::Losses);
            return Some(Verdict { reduced_by, ..line });
        }
        if !signs.keeps_window_shut {
            // a larger window would make the queue longer, but nothing faster
            return Some(Verdict::with_rival(
                Limiter::Line,
                Grade::Suspected,
                Limiter::ReceiverWindow,
            ));
        }
    }
    let is_queue_unseen = !transfer.is_near && queue.is_none();
    (is_queue_unseen && window < LIMIT_SHARE.get() && !signs.pauses_at_message_ends)
        .then(|| Verdict::with_rival(Limiter::Line, Grade::Suspected, Limiter::Pacing))
}

/// Returns the grade of a limit that took this share of the time.
fn grade_of_share(share: f64) -> Grade {
    if share >= LIMIT_SHARE.get() {
        Grade::Probable
    } else {
        Grade::Suspected
    }
}

/// Returns the verdict where this `limiter` took the largest `share` of the time.
fn largest(transfer: &Transfer, limiter: Limiter, share: f64, signs: &Signs) -> Verdict {
    match limiter {
        Limiter::ReceiverWindow => {
            let limit = if signs.keeps_window_shut {
                Limiter::ReceiverProgram
            } else {
                limiter
            };
            let grade = if share >= SURE_SHARE.get() {
                Grade::Proven
            } else {
                grade_of_share(share)
            };
            Verdict::certain(limit, grade)
        }
        Limiter::SenderBuffer | Limiter::Pacing if signs.is_metered => {
            let grade = if transfer.is_near && limiter == Limiter::Pacing {
                Grade::Probable
            } else {
                Grade::Suspected
            };
            let rival = if transfer.is_near {
                Limiter::SenderBuffer
            } else {
                Limiter::Line
            };
            Verdict::with_rival(Limiter::Pacing, grade, rival)
        }
        Limiter::SenderProgram if transfer.is_near => Verdict::certain(limiter, grade_of_share(share)),
        Limiter::SenderProgram => Verdict::with_rival(limiter, Grade::Suspected, Limiter::SenderBuffer),
        Limiter::Http2Window if share >= SURE_SHARE.get() => Verdict::certain(limiter, Grade::Proven),
        Limiter::Congestion | Limiter::Start | Limiter::SenderBuffer if signs.is_reordered => Verdict {
            reduced_by: Some(ReducedBy::Reordering),
            ..Verdict::certain(Limiter::Congestion, Grade::Suspected)
        },
        Limiter::Congestion => Verdict {
            reduced_by: Some(if transfer.losses.window_reductions > 0 {
                ReducedBy::Ecn
            } else {
                ReducedBy::Losses
            }),
            ..Verdict::certain(limiter, grade_of_share(share))
        },
        Limiter::Pacing => pacing_limit(transfer, share, signs),
        Limiter::SenderBuffer if transfer.is_near => Verdict::certain(limiter, Grade::Suspected),
        Limiter::SenderBuffer => Verdict::with_rival(limiter, Grade::Suspected, Limiter::SenderProgram),
        _ => Verdict::certain(limiter, grade_of_share(share)),
    }
}

/// Returns the verdict where pauses without an ACK, after full segments, took the largest `share` of the time: the
/// kernel's pacing or the program.
fn pacing_limit(transfer: &Transfer, share: f64, signs: &Signs) -> Verdict {
    let pauses = &transfer.pauses;
    let count = pauses.count as f64;
    let mean_ms = pauses.sum_ms / count;
    let variance = pauses.sum_of_squares / count - mean_ms * mean_ms;
    let is_steady = variance <= (STEADY_SHARE.get() * mean_ms).powi(2);
    // a kernel's pacer sends a millisecond's worth at a time (tcp_tso_autosize), at least two segments
    let burst = transfer.segments as f64 / count;
    let is_fine = burst <= PACED_BURST.get().max(PACED_BURST.get() * burst / mean_ms);
    let is_far_and_even = signs.is_even && !transfer.is_near;
    if is_fine && transfer.is_near && is_steady && share >= LIMIT_SHARE.get() {
        Verdict::certain(Limiter::Pacing, Grade::Probable)
    } else if is_fine && is_far_and_even {
        Verdict::with_rival(Limiter::Pacing, Grade::Suspected, Limiter::Line)
    } else if is_fine && is_steady {
        Verdict::with_rival(Limiter::Pacing, Grade::Suspected, Limiter::SenderProgram)
    } else {
        Verdict::with_rival(Limiter::SenderProgram, Grade::Suspected, Limiter::Pacing)
    }
}
