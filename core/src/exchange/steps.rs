//! The steps of one direction: cut to an exchange, and merged where there are too many.

use crate::messages::{At, Side};
use crate::wait::{Step, Wait};

/// A step, cut to the exchange that it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    pub start: i64,
    pub end: i64,
    /// The packets at its two ends: the step's own, or the exchange's where it was cut there.
    pub from_frame: u64,
    pub to_frame: u64,
    /// When this side's part of the exchange began: for the server, when it had been asked.
    pub asked: i64,
    pub sender: Side,
    pub step: &'a Step,
}

/// What no step covers is unknown.
static UNSEEN: Step = Step {
    from: NOWHERE,
    to: NOWHERE,
    wait: Wait::Hole,
};
const NOWHERE: At = At { frame: 0, time_ns: 0 };

/// The steps that end after `start`.
fn after(steps: &[Step], start: At) -> &[Step] {
    let before = |step: &Step| step.to.time_ns <= start.time_ns;
    match steps.first() {
        Some(first) if before(first) => steps.get(steps.partition_point(before)..).unwrap_or_default(),
        _ => steps,
    }
}

/// The steps that overlap [start, end].
pub(super) fn between(steps: &[Step], start: At, end: At) -> impl Iterator<Item = &Step> {
    after(steps, start)
        .iter()
        .take_while(move |step| step.from.time_ns < end.time_ns)
}

/// One side's steps, cut to [start, end] without gap.
#[inline]
pub(super) fn cut<'a>(steps: &'a [Step], sender: Side, start: At, end: At, give: &mut impl FnMut(Piece<'a>)) {
    if start.time_ns >= end.time_ns {
        return;
    }
    let mut at = start;
    for step in between(steps, start, end) {
        if at.time_ns >= end.time_ns {
            break;
        }
        if step.from.time_ns > at.time_ns {
            give(unseen(at, step.from, sender));
            at = step.from;
        }
        let until = if step.to.time_ns <= end.time_ns {
            step.to
        } else {
            end
        };
        if until.time_ns > at.time_ns {
            give(Piece {
                start: at.time_ns,
                end: until.time_ns,
                from_frame: at.frame,
                to_frame: until.frame,
                asked: start.time_ns,
                sender,
                step,
            });
        }
        if until.time_ns >= at.time_ns {
            at = until; // also where both packets have one time stamp
        }
    }
    if at.time_ns < end.time_ns {
        give(unseen(at, end, sender));
    }
}

/// The steps of both sides, each from where the one before ended, whoever's that was.
pub(super) fn take_turns<'a>(steps: [&'a [Step]; 2], start: At, end: At, give: &mut impl FnMut(Piece<'a>)) {
    let [client, server] = steps.map(|steps| after(steps, start).iter().peekable());
    let (mut client, mut server, mut at) = (client, server, start);
    while at.time_ns < end.time_ns {
        let (sender, step) = match (client.peek(), server.peek()) {
            (Some(c), Some(s)) if s.to.time_ns < c.to.time_ns => (Side::Server, server.next()),
            (None, Some(_)) => (Side::Server, server.next()),
            _ => (Side::Client, client.next()),
        };
        let Some(step) = step else { break };
        let until = if step.to.time_ns <= end.time_ns {
            step.to
        } else {
            end
        };
        if until.time_ns > at.time_ns {
            give(Piece {
                start: at.time_ns,
                end: until.time_ns,
                // of packets with one time stamp the step's own
                from_frame: if step.from.time_ns == at.time_ns {
                    step.from.frame
                } else {
                    at.frame
                },
                to_frame: until.frame,
                asked: at.time_ns,
                sender,
                step,
            });
            at = until;
        }
    }
    if at.time_ns < end.time_ns {
        give(unseen(at, end, Side::Server));
    }
}

fn unseen(from: At, to: At, sender: Side) -> Piece<'static> {
    Piece {
        start: from.time_ns,
        end: to.time_ns,
        from_frame: from.frame,
        to_frame: to.frame,
        asked: from.time_ns,
        sender,
        step: &UNSEEN,
    }
}

/// Halves the number of steps: two neighbours become one under the longer one's name.
pub(super) fn merge_pairs(steps: &mut Vec<Step>) {
    let mut all = std::mem::take(steps).into_iter();
    while let Some(a) = all.next() {
        let Some(b) = all.next() else {
            steps.push(a);
            break;
        };
        let (from, to) = (a.from, b.to);
        let longer = if b.to.time_ns - b.from.time_ns > a.to.time_ns - a.from.time_ns {
            b
        } else {
            a
        };
        steps.push(Step { from, to, ..longer });
    }
}
