//! Waits that belong to no request, with rows of their own: a client's pause before its next request, data that an
//! ACK released, and suspected stalls in captures of one direction. Like a connection's set-up, they are never
//! complete and have no latency.

use super::{Context, RowKind};
use crate::base::{At, Side};
use crate::evidence::rtt::KernelRtt;
use crate::limits::{OUTLIER_ONE_IN, RTO_MIN_NS, TWO_TICKS_NS};
use crate::observe::{Candidate, Step, Suspect, Wait};

/// Stream and hosts of such a row, and the index of the request that follows it.
#[derive(Debug, Clone, Copy)]
pub struct RowOrigin {
    pub stream: u32,
    pub index: u32,
    pub pair: u32,
    pub rounds: [KernelRtt; 2],
    pub doubled: bool,
}

/// The client's pauses between requests.
#[derive(Default)]
pub struct Pauses {
    /// The client's step that the current packet ends, if it is a pause that deserves a row.
    pub current: Option<Step>,
    /// The first pause, if it was short, until another one; and the index of the request after it.
    first_short: Option<Box<(Step, u32)>>,
    has_paused: bool,
    /// Total time of all pauses.
    total_ns: i64,
}

impl Pauses {
    /// Reads the step before the client's data, with a round trip of `rtt_ns` to the client; `busy_ns` is the total
    /// time of the requests.
    pub fn read(&mut self, step: &Step, rtt_ns: i64, busy_ns: i64) {
        let pause_ns = pause_ns(step, rtt_ns);
        self.total_ns = self.total_ns.saturating_add(pause_ns);
        let deserves_row = self.total_ns.saturating_mul(OUTLIER_ONE_IN.get() as i64 - 1) >= busy_ns;
        if pause_ns > 0 && deserves_row {
            self.current = Some(step.clone());
        }
    }

    /// Adds the row of a pause that a request ended. A single short one may be a busy host's; it has a row only when
    /// another follows.
    #[cold]
    pub fn end(&mut self, step: Step, origin: RowOrigin, context: &mut Context) {
        if !std::mem::replace(&mut self.has_paused, true) && is_short(&step) {
            self.first_short = Some(Box::new((step, origin.index)));
            return;
        }
        if let Some(first) = self.first_short.take() {
            let (first, index) = *first;
            push_pause(first, RowOrigin { index, ..origin }, context);
        }
        push_pause(step, origin, context);
    }
}

/// The last packet of the peer's data, if the step is the wait after it.
fn turn_since(step: &Step) -> Option<At> {
    match step.wait {
        Wait::Turn(turn) => Some(turn.since),
        Wait::FreedTurn { since, .. } => Some(since),
        _ => None,
    }
}

/// Length in ns of the client's pause in its step before a request; 0 if too short for a pause.
fn pause_ns(step: &Step, rtt_ns: i64) -> i64 {
    let Some(since) = turn_since(step) else { return 0 };
    let waited = step
        .to
        .time_ns
        .saturating_sub(since.time_ns)
        .saturating_sub(rtt_ns);
    if waited >= TWO_TICKS_NS.get() { waited } else { 0 }
}

/// Whether the pause is so short that a busy host may have caused it.
fn is_short(step: &Step) -> bool {
    turn_since(step).is_some_and(|since| step.to.time_ns.saturating_sub(since.time_ns) < RTO_MIN_NS.get())
}

/// Adds the row of a pause: from the response's last byte to the next request.
fn push_pause(step: Step, origin: RowOrigin, context: &mut Context) {
    if let Some(from) = turn_since(&step) {
        push(
            RowKind::Pause,
            Step { from, ..step },
            Side::Client,
            origin,
            context,
        );
    }
}

/// Adds the row of data that the client may have written long before its segment left, released by an ACK that the
/// server's data carried.
#[cold]
pub fn push_pause_before_ack(candidate: Box<Candidate>, origin: RowOrigin, context: &mut Context) {
    let (since, to) = (candidate.small, candidate.freed);
    if to.time_ns.saturating_sub(since.time_ns) >= TWO_TICKS_NS.get() {
        let wait = Wait::FreedTurn { since, candidate };
        let from = since;
        push(
            RowKind::Pause,
            Step { from, to, wait },
            Side::Client,
            origin,
            context,
        );
    }
}

/// Adds the row of data that is no request and left when the ACK of a small segment before it arrived.
#[cold]
pub fn push_held_data(mut step: Step, origin: RowOrigin, context: &mut Context) {
    if let Wait::FreedTurn { since, .. } = &step.wait {
        step.from = *since;
    }
    if step.to.time_ns.saturating_sub(step.from.time_ns) >= TWO_TICKS_NS.get() {
        push(RowKind::Held, step, Side::Client, origin, context);
    }
}

/// Adds the row of a possible stall in a stream of which only the packets from `seen` were captured.
pub fn push_suspected(gap: &Suspect, seen: Side, origin: RowOrigin, context: &mut Context) {
    let step = Step {
        from: gap.from,
        to: gap.to,
        wait: Wait::Suspected { held_ack: gap.ack },
    };
    let sender = if gap.ack.is_some() { seen.other() } else { seen };
    push(RowKind::OneWay, step, sender, origin, context);
}

fn push(row: RowKind, step: Step, sender: Side, origin: RowOrigin, context: &mut Context) {
    let mut exchange = context.open(origin.stream, origin.index, origin.pair);
    (exchange.kernel_rtts, exchange.is_doubled) = (origin.rounds, origin.doubled);
    exchange.row = row;
    (exchange.request.first, exchange.request.last) = (step.from, step.to);
    exchange.is_dialogue = true;
    sender.pick_mut(&mut exchange.steps).push(step);
    context.queue(exchange);
}
