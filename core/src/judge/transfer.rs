//! What limits a transfer: hypotheses over the time between its segments.
//!
//! Reads `observe::transfer`; gives the limit, its owner, the grade and what else it may be. It knows of no exchange. The
//! receiver's window and the line show themselves at both ends. That a sender waited for no ACK shows at both, too, but not
//! why: far from the sender its program, its timer and its buffer are one another's rivals.

use super::limits::{
    ENDED_SHARE, EVEN_SHARE, LESSER_LIMIT_SHARE, LIMIT_SHARE, REORDERED_SHARE, SHUT_SHARE, STANDING_NS,
    STANDING_SHARE, STEADY_SHARE, SURE_SHARE, TRANSFER_BYTES,
};
use super::vocabulary::{Grade, Limiter};
use crate::observe::transfer::{Round, Transfer};

/// Where what was seen leads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    pub limit: Limiter,
    pub grade: Grade,
    pub rival: Option<Limiter>,
    /// What made the sender's window smaller, where that is the limit.
    pub cut_by: Option<&'static str>,
}

/// What one direction of a stream moved, and what held it back.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub verdict: Verdict,
    /// From the first to the last byte at the receiver, without waits for the other side's data.
    pub duration: i64,
    pub rtt_idle: Option<i64>,
    pub rtt_load: Option<i64>,
    pub queue: Option<i64>,
    /// Time on the slowest line of a full segment, as far as bursts show it.
    pub each: Option<i64>,
}

impl Transfer {
    fn share(&self, ns: i64) -> f64 {
        ns as f64 / self.waited.all().max(1) as f64
    }
}

/// Is this more than some messages?
pub fn matters(transfer: &Transfer) -> bool {
    transfer.longest >= TRANSFER_BYTES.get()
}

/// `idle`: the best round trip between the two ends.
pub fn judge(t: &Transfer, idle: Option<i64>, http2: bool) -> Judged {
    let loaded = || rest(&t.rounds).filter(|round| round.best > 0);
    let stands = mean(loaded().map(|round| (round.best, round.ns)));
    let tail = t.rounds.last().map_or(0, |round| round.best);
    let over = |best: i64| idle.map(|idle| (best - idle).max(0));
    let queue = stands.and_then(over);
    let rtt_load = median(rest(&t.rounds).map(|round| round.smooth).filter(|ns| *ns > 0));
    let each = if t.near {
        t.acks.median()
    } else {
        t.arrivals.median()
    };
    let verdict = verdict(t, idle, queue, each, http2);
    let behind = if t.near { over(tail).unwrap_or(0) } else { 0 };
    let mut duration = t.last + behind - t.first - t.waited.turns;
    if verdict.limit == Limiter::ReceiverProgram {
        // what the receiver's kernel still holds is not there yet: its program goes on at its rate
        let (all, held) = (t.bytes() as f64, (t.window_most - t.window_last).max(0) as f64);
        if held + held < all {
            duration = (duration as f64 * all / (all - held)) as i64;
        }
    }
    Judged {
        verdict,
        duration,
        rtt_idle: idle,
        rtt_load: rtt_load.filter(|_| t.near || verdict.limit != Limiter::SenderProgram),
        queue: queue.filter(|_| t.near || verdict.limit != Limiter::SenderProgram),
        each,
    }
}

/// The last two thirds of the time: the beginning is not under load yet.
fn rest(rounds: &[Round]) -> impl Iterator<Item = &Round> + Clone {
    let first = rounds.first().map_or(0, |round| round.start);
    let last = rounds.last().map_or(0, |round| round.start + round.ns);
    let from = first + (last - first) / 3;
    rounds.iter().filter(move |round| round.start + round.ns > from)
}

fn mean(weighed: impl Iterator<Item = (i64, i64)>) -> Option<i64> {
    let (sum, weight) = weighed.fold((0_i128, 0_i128), |(sum, all), (value, weight)| {
        (
            sum + i128::from(value) * i128::from(weight),
            all + i128::from(weight),
        )
    });
    (weight > 0).then(|| (sum / weight) as i64)
}

fn median(values: impl Iterator<Item = i64>) -> Option<i64> {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
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

fn verdict(t: &Transfer, idle: Option<i64>, queue: Option<i64>, each: Option<i64>, http2: bool) -> Verdict {
    let w = &t.waited;
    let all = w.all();
    if all <= 0 || t.rounds.is_empty() {
        return is(Limiter::None, Grade::Unknown);
    }
    let edge: i64 = t.rounds.iter().map(|round| round.edge_ns).sum();
    let window = t.share(w.window).max(if t.waited.timer > 0 {
        t.share(edge.min(all))
    } else {
        0.0
    });
    let lost = t.repeats > 0;
    let even = each.is_some_and(|each| each as f64 * t.segments as f64 >= EVEN_SHARE.get() * all as f64);
    let stands = idle.zip(queue).is_some_and(|(idle, queue)| {
        queue >= STANDING_NS.get() && queue as f64 >= STANDING_SHARE.get() * idle as f64
    });
    let ends = w.program > 0 && t.short_gaps as f64 >= ENDED_SHARE.get() * t.gaps.0 as f64;
    let unasked = t.share(w.program + w.timer);
    let shut = t.zero_windows > 1 || t.acked_shut as f64 >= SHUT_SHARE.get() * t.acked as f64;
    if even && stands && !(ends && t.near && unasked >= LIMIT_SHARE.get()) {
        if window < LIMIT_SHARE.get() {
            return Verdict {
                cut_by: lost.then_some("losses"),
                ..is(Limiter::Line, Grade::Proven)
            };
        }
        if !shut {
            // a window that is full because a queue is: more of it would make the queue longer
            return or(Limiter::Line, Grade::Probable, Limiter::ReceiverWindow);
        }
    }
    let sure = |share: f64| {
        if share >= LIMIT_SHARE.get() {
            Grade::Probable
        } else {
            Grade::Suspected
        }
    };
    let program = if ends { unasked } else { t.share(w.program) };
    let timer = if ends { 0.0 } else { t.share(w.timer) };
    let cut = t.share(w.repair + w.cut);
    let http2_share = t.share(w.upon_data);
    let shares = [
        (window, Limiter::ReceiverWindow),
        (program, Limiter::SenderProgram),
        (http2_share, Limiter::Http2Window),
        (cut, Limiter::Congestion),
        (timer, Limiter::Pacing),
        (t.share(w.level), Limiter::SenderBuffer),
        (t.share(w.growing), Limiter::Start),
    ];
    let (share, most) =
        shares.into_iter().fold(
            (0.0, Limiter::None),
            |best, one| if one.0 > best.0 { one } else { best },
        );
    if share < LESSER_LIMIT_SHARE.get() {
        return is(Limiter::None, Grade::Unknown);
    }
    let reordered = (t.late as f64) >= REORDERED_SHARE.get() * t.segments as f64
        || t.near && t.holes > 2 * t.holes_mended && t.holes >= 3;
    match most {
        Limiter::ReceiverWindow => {
            let limit = if shut { Limiter::ReceiverProgram } else { most };
            let grade = if window >= SURE_SHARE.get() {
                Grade::Proven
            } else {
                sure(window)
            };
            is(limit, grade)
        }
        Limiter::SenderProgram if t.near => is(most, sure(share)),
        Limiter::SenderProgram => or(most, Grade::Suspected, Limiter::SenderBuffer),
        Limiter::Http2Window if http2 => is(most, sure(share)),
        Limiter::Http2Window => or(Limiter::SenderProgram, Grade::Suspected, Limiter::Http2Window),
        Limiter::Congestion | Limiter::Start | Limiter::SenderBuffer if reordered => Verdict {
            cut_by: Some("reordering"),
            ..is(Limiter::Congestion, Grade::Suspected)
        },
        Limiter::Congestion => Verdict {
            cut_by: Some(if t.congestion_marks > 0 { "ecn" } else { "losses" }),
            ..is(most, sure(share))
        },
        Limiter::Pacing => {
            let (n, sum, squares) = t.gaps;
            let each = sum / n as f64;
            let steady = squares / n as f64 - each * each <= (STEADY_SHARE.get() * each).powi(2);
            if t.near && steady && share >= LIMIT_SHARE.get() {
                is(most, Grade::Probable)
            } else if even && !t.near {
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
