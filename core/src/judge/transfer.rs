//! Finds what limits a transfer, by the time between its segments. Reads `observe::transfer`; returns the limit, its
//! grade and its rival.
//!
//! Captures at both ends show the receiver's window and the line. They also show that a sender waited for no ACK, but
//! far from the sender not why: its program, pacing and buffer are rivals of one another there.

use super::vocabulary::{Grade, Limiter};
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
    /// Reason for a smaller congestion window: "losses", "ecn" or "reordering".
    pub cut_by: Option<&'static str>,
}

/// Judgement on one direction of a stream. Times in ns; None where unknown.
#[derive(Debug, Clone)]
pub struct Judged {
    pub verdict: Verdict,
    /// From the first to the last byte at the receiver, without waits for the other side's data.
    pub duration: i64,
    /// Best round trip, and median round trip under load.
    pub rtt_idle: Option<i64>,
    pub rtt_load: Option<i64>,
    /// Mean delay by the queue at the bottleneck.
    pub queue: Option<i64>,
    pub waited: Waited,
    /// Time of a full segment on the slowest line, as far as bursts show it.
    pub each: Option<i64>,
}

/// Whether a transfer is large enough to be judged.
pub fn matters(transfer: &Transfer) -> bool {
    transfer.longest >= i64::from(TRANSFER_BYTES.get())
}

/// Judges a transfer. `idle` is the best round trip between the ends. `sealed`: the stream is encrypted, so it may
/// contain HTTP/2, whose windows may be the limit.
pub fn judge(t: &Transfer, idle: Option<i64>, sealed: bool) -> Judged {
    let loaded = rest(&t.rounds).filter(|round| round.best > 0);
    let stands = mean(loaded.clone().map(|round| (round.best, round.ns)));
    // the delay of a growing queue is least where a round begins; its mean is half way to the next round's least
    let next = loaded.clone().skip(1).map(|round| round.best).chain([0]);
    let grows = mean(
        loaded
            .zip(next)
            .map(|(round, next)| (round.best.midpoint(round.best.max(next)), round.ns)),
    );
    let tail = t.rounds.last().map_or(0, |round| round.smooth);
    let over = |best: i64| idle.map(|idle| (best - idle).max(0));
    let queue = stands.and_then(over);
    let smooth = rest(&t.rounds).filter(|round| round.smooth > 0);
    let smooth = smooth.map(|round| (round.smooth, round.ns));
    let rtt_load = median(smooth.clone());
    let each = if t.near {
        t.acks.median()
    } else {
        t.arrivals.median()
    };
    let waited = t.waited;
    let mut verdict = verdict(t, &waited, idle, queue, each);
    if sealed && verdict.limit == Limiter::SenderBuffer && t.near {
        verdict.rival = Some(Limiter::Http2Window);
    }
    let mut duration = end(t, over(tail).unwrap_or(0), idle) - t.first - waited.turns;
    if verdict.limit == Limiter::ReceiverProgram {
        duration = duration.max(read_within(t, idle));
    }
    let near = t.near || verdict.limit != Limiter::SenderProgram;
    // where a program is the limit, ACKs are late without a queue
    let program = matches!(
        verdict.limit,
        Limiter::ReceiverProgram | Limiter::ReceiverWindow | Limiter::SenderProgram
    );
    let standing = mean(smooth).filter(|_| !program);
    // away from the sender, few samples are seen while the queue grows
    let standing = if t.near { standing } else { standing.max(grows) };
    Judged {
        verdict,
        duration,
        waited,
        rtt_idle: idle,
        rtt_load: rtt_load.filter(|_| near),
        queue: standing.or(grows).and_then(over).filter(|_| near),
        each,
    }
}

/// Returns for how long the receiving program read. The bytes that its kernel holds when the window's edge moves last
/// are assumed to be read at the rate before. If the receiver sends or closes within two further reads, that bounds the
/// time.
fn read_within(t: &Transfer, idle: Option<i64>) -> i64 {
    let way = if t.near { idle.unwrap_or(0) } else { 0 };
    let since = t.first + t.waited.turns + way;
    let (left, opens) = (t.unread() as f64, t.opens.max(1) as f64);
    let read = t.bytes() as f64 - left;
    let until = (t.opened_at - since) as f64;
    if left > read {
        return 0; // the rate is unknown: most bytes were not read by then
    }
    let each = until / opens;
    let goes_on = (left * opens / read).ceil() * each;
    let ends = (t.answered_at - t.opened_at) as f64;
    let seen = t.answered_at != 0 && ends < goes_on + each + each;
    (until
        + if seen {
            goes_on.max(ends - each).min(ends)
        } else {
            goes_on
        }) as i64
}

/// Returns when the last byte reached the receiver, less the path. Near the sender the ACK of all data bounds it.
fn end(t: &Transfer, behind: i64, idle: Option<i64>) -> i64 {
    if !t.near {
        return t.last;
    }
    let sent = t.last + behind;
    match idle.filter(|_| t.done >= t.last) {
        Some(idle) if swapped(t) => (t.done - idle).max(t.last),
        Some(idle) => sent.min(t.done - idle),
        None => sent,
    }
}

/// Whether the path reorders segments.
fn swapped(t: &Transfer) -> bool {
    t.late as f64 >= REORDERED_SHARE.get() * t.segments as f64
        || t.near && t.holes > 2 * t.holes_mended && t.holes >= 3
}

/// Returns the round trips in the last two thirds of the time: the begin is not under load yet.
fn rest(rounds: &[RoundTrip]) -> impl Iterator<Item = &RoundTrip> + Clone {
    let first = rounds.first().map_or(0, |round| round.start);
    let last = rounds.last().map_or(0, |round| round.start + round.ns);
    let from = first + (last - first) / 3;
    rounds.iter().filter(move |round| round.start + round.ns > from)
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

fn is(limit: Limiter, grade: Grade) -> Verdict {
    Verdict {
        limit,
        grade,
        rival: None,
        cut_by: None,
    }
}

fn or(limit: Limiter, grade: Grade, rival: Limiter) -> Verdict {
    Verdict {
        rival: Some(rival),
        ..is(limit, grade)
    }
}

fn verdict(t: &Transfer, w: &Waited, idle: Option<i64>, queue: Option<i64>, each: Option<i64>) -> Verdict {
    let all = w.all();
    let part = |ns: i64| ns as f64 / all.max(1) as f64;
    if all <= 0 || t.rounds.is_empty() {
        return is(Limiter::None, Grade::Unknown);
    }
    let edge: i64 = t.rounds.iter().map(|round| round.edge_ns).sum();
    let window = part(w.window).max(if w.timer > 0 { part(edge.min(all)) } else { 0.0 });
    let lost = t.repeats > 0;
    // time before retransmissions is in no sum, so a line's rate does not explain it
    let unexplained = (t.last - t.first - w.turns - all) as f64 >= LIMIT_SHARE.get() * all as f64;
    let even = !unexplained
        && each.is_some_and(|each| each as f64 * t.segments as f64 >= EVEN_SHARE.get() * all as f64);
    // away from the sender, pacing by two segments looks like a queue of them
    let paced = if t.near { 0 } else { 4 * each.unwrap_or(0) };
    let stands = idle.zip(queue).is_some_and(|(idle, queue)| {
        let least = STANDING_NS.get().max(paced);
        queue >= least && queue as f64 >= STANDING_SHARE.get() * idle as f64
    });
    let ends = w.program > 0 && t.short_gaps as f64 >= ENDED_SHARE.get() * t.gaps.0 as f64;
    let unprompted = part(w.program + w.timer);
    let full = (t.segments as f64) * t.acks.median().unwrap_or(0) as f64;
    let metered = full >= PACED_SHARE.get() * all as f64 && !stands && !lost;
    // (with reordering, the segments behind a hole take the room)
    let low = t.acked_low as f64 >= LOW_SHARE.get() * t.acked as f64 && !swapped(t);
    let shut = t.zero_windows > 1 || low;
    if even && stands && !(ends && t.near && unprompted >= LIMIT_SHARE.get()) {
        if window < LIMIT_SHARE.get() {
            // a window that losses limit has an even rate too, and a busy host looks like a short queue
            let short = lost && queue.zip(idle).is_some_and(|(queue, idle)| 2 * queue < idle);
            let line = if short {
                or(Limiter::Line, Grade::Suspected, Limiter::Congestion)
            } else {
                is(Limiter::Line, Grade::Proven)
            };
            return Verdict {
                cut_by: lost.then_some("losses"),
                ..line
            };
        }
        if !shut {
            // a larger window would make the queue longer, but nothing faster
            return or(Limiter::Line, Grade::Suspected, Limiter::ReceiverWindow);
        }
    }
    if even && !t.near && queue.is_none() && window < LIMIT_SHARE.get() && !ends {
        return or(Limiter::Line, Grade::Suspected, Limiter::Pacing);
    }
    let program = if ends { unprompted } else { part(w.program) };
    let timer = if ends { 0.0 } else { part(w.timer) };
    let cut = part(w.repair + w.cut);
    let http2_share = part(w.http2);
    let shares = [
        (window, Limiter::ReceiverWindow),
        (program, Limiter::SenderProgram),
        (http2_share, Limiter::Http2Window),
        (cut, Limiter::Congestion),
        (timer, Limiter::Pacing),
        (part(w.level), Limiter::SenderBuffer),
        (part(w.growing), Limiter::Start),
    ];
    let (share, most) =
        shares.into_iter().fold(
            (0.0, Limiter::None),
            |best, one| if one.0 > best.0 { one } else { best },
        );
    if share < LESSER_LIMIT_SHARE.get() {
        return is(Limiter::None, Grade::Unknown);
    }
    let signs = Signs {
        even,
        metered,
        shut,
        reordered: swapped(t),
    };
    largest(t, most, share, &signs)
}

/// Returns the grade of a limit that took this share of the time.
fn sure(share: f64) -> Grade {
    if share >= LIMIT_SHARE.get() {
        Grade::Probable
    } else {
        Grade::Suspected
    }
}

/// Signs of a transfer besides its shares of time.
struct Signs {
    /// Segments come at an even rate.
    even: bool,
    /// ACKs come at an even rate, and no queue stands.
    metered: bool,
    /// The receiving program leaves data in the window.
    shut: bool,
    reordered: bool,
}

/// Returns the verdict where the limiter `most` took the largest `share` of the time.
fn largest(t: &Transfer, most: Limiter, share: f64, signs: &Signs) -> Verdict {
    match most {
        Limiter::ReceiverWindow => {
            let limit = if signs.shut {
                Limiter::ReceiverProgram
            } else {
                most
            };
            let grade = if share >= SURE_SHARE.get() {
                Grade::Proven
            } else {
                sure(share)
            };
            is(limit, grade)
        }
        Limiter::SenderBuffer | Limiter::Pacing if signs.metered => {
            let grade = if t.near && most == Limiter::Pacing {
                Grade::Probable
            } else {
                Grade::Suspected
            };
            let rival = if t.near {
                Limiter::SenderBuffer
            } else {
                Limiter::Line
            };
            or(Limiter::Pacing, grade, rival)
        }
        Limiter::SenderProgram if t.near => is(most, sure(share)),
        Limiter::SenderProgram => or(most, Grade::Suspected, Limiter::SenderBuffer),
        Limiter::Http2Window if share >= SURE_SHARE.get() => is(most, Grade::Proven),
        Limiter::Congestion | Limiter::Start | Limiter::SenderBuffer if signs.reordered => Verdict {
            cut_by: Some("reordering"),
            ..is(Limiter::Congestion, Grade::Suspected)
        },
        Limiter::Congestion => Verdict {
            cut_by: Some(if t.slowed > 0 { "ecn" } else { "losses" }),
            ..is(most, sure(share))
        },
        Limiter::Pacing => {
            let (n, sum, squares) = t.gaps;
            let each = sum / n as f64;
            let steady = squares / n as f64 - each * each <= (STEADY_SHARE.get() * each).powi(2);
            // a kernel's pacer sends a millisecond's worth at a time (tcp_tso_autosize), at least two segments
            let burst = t.segments as f64 / n as f64;
            let fine = burst <= PACED_BURST.get().max(PACED_BURST.get() * burst / each);
            if !fine {
                or(Limiter::SenderProgram, Grade::Suspected, most)
            } else if t.near && steady && share >= LIMIT_SHARE.get() {
                is(most, Grade::Probable)
            } else if signs.even && !t.near {
                or(most, Grade::Suspected, Limiter::Line)
            } else if steady {
                or(most, Grade::Suspected, Limiter::SenderProgram)
            } else {
                or(Limiter::SenderProgram, Grade::Suspected, most)
            }
        }
        Limiter::SenderBuffer if t.near => is(most, Grade::Suspected),
        Limiter::SenderBuffer => or(most, Grade::Suspected, Limiter::SenderProgram),
        _ => is(most, sure(share)),
    }
}
