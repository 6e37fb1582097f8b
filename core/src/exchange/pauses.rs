//! Waits that belong to no request, each a row of its own beside them: a client's pause before it asks again, and what
//! one direction alone lets us suspect. Like a connection's set-up they are never complete and have no latency.

use super::{Context, RowKind};
use crate::base::{At, Side};
use crate::evidence::rtt::KernelRtt;
use crate::limits::{OUTLIER_ONE_IN, RTO_MIN_NS, TWO_TICKS_NS};
use crate::observe::{Candidate, Step, Suspect, Wait};

/// Where such a row belongs: its stream, the index of the request that follows it, and the addresses.
#[derive(Debug, Clone, Copy)]
pub struct RowPlace {
    pub stream: u32,
    pub index: u32,
    pub pair: u32,
    pub rounds: [KernelRtt; 2],
    pub doubled: bool,
}

/// The peer's last byte, where this step is the wait after it.
fn turn(step: &Step) -> Option<At> {
    match step.wait {
        Wait::Turn { since, .. }
        | Wait::LateTurn { since, .. }
        | Wait::AgainTurn { since, .. }
        | Wait::TimedTurn { since, .. }
        | Wait::FreedTurn { since, .. }
        | Wait::QueuedTurn { since, .. } => Some(since),
        _ => None,
    }
}

/// How long the client paused in its step before a request, with a round trip of `rtt` to it; 0 where that was no pause.
pub fn paused(step: &Step, rtt: i64) -> i64 {
    let Some(since) = turn(step) else { return 0 };
    let waited = step.to.time_ns.saturating_sub(since.time_ns).saturating_sub(rtt);
    if waited >= TWO_TICKS_NS.get() { waited } else { 0 }
}

/// Whether a busy host may have made this pause.
pub fn is_short(step: &Step) -> bool {
    turn(step).is_some_and(|since| step.to.time_ns.saturating_sub(since.time_ns) < RTO_MIN_NS.get())
}

/// Whether pauses of so long in all are worth rows, beside requests that took so long.
pub fn matters(paused: i64, busy: i64) -> bool {
    paused.saturating_mul(OUTLIER_ONE_IN.get() as i64 - 1) >= busy
}

/// From the answer's last byte to the client's next request.
pub fn pause(step: Step, place: RowPlace, context: &mut Context) {
    let Some(since) = turn(&step) else { return };
    push(
        RowKind::Pause,
        Step { from: since, ..step },
        Side::Client,
        place,
        context,
    );
}

/// What the client may have written long before its segment left, with an ACK that the server's data brought.
#[cold]
pub fn held(candidate: Box<Candidate>, place: RowPlace, context: &mut Context) {
    let (since, to) = (candidate.small, candidate.freed);
    if to.time_ns.saturating_sub(since.time_ns) >= TWO_TICKS_NS.get() {
        let wait = Wait::FreedTurn { since, candidate };
        push(
            RowKind::Pause,
            Step {
                from: since,
                to,
                wait,
            },
            Side::Client,
            place,
            context,
        );
    }
}

/// What the client sent behind a small segment of its own, when that was acknowledged, and which is no request.
#[cold]
pub fn held_unsolicited(mut step: Step, place: RowPlace, context: &mut Context) {
    if let Wait::FreedTurn { since, .. } = &step.wait {
        step.from = *since;
    }
    if step.to.time_ns.saturating_sub(step.from.time_ns) >= TWO_TICKS_NS.get() {
        push(RowKind::Held, step, Side::Client, place, context);
    }
}

/// A gap that may be a stall, of a stream whose packets are all from `seen`.
pub fn suspect(found: &Suspect, seen: Side, place: RowPlace, context: &mut Context) {
    let step = Step {
        from: found.from,
        to: found.to,
        wait: Wait::Suspected { held: found.held },
    };
    let sender = if found.held.is_some() { seen.other() } else { seen };
    push(RowKind::OneWay, step, sender, place, context);
}

fn push(row: RowKind, step: Step, sender: Side, place: RowPlace, context: &mut Context) {
    let mut exchange = context.open(place.stream, place.index, place.pair);
    (exchange.rounds, exchange.doubled) = (place.rounds, place.doubled);
    exchange.row = row;
    (exchange.request.first, exchange.request.last) = (step.from, step.to);
    exchange.dialogue = true;
    let [client, server] = &mut exchange.steps;
    let steps = if sender == Side::Client { client } else { server };
    steps.push(step);
    context.queue(exchange);
}
