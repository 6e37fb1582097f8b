//! The steps of one direction: cut to an exchange, and merged where there are too many.

use std::collections::VecDeque;

use super::Piece;
use crate::messages::{At, Side};
use crate::wait::{Step, Wait};

/// The steps that overlap [start, end], without gap: what no step covers is unknown. They are taken away where no
/// other exchange needs them.
pub(super) fn slice(
    steps: &mut VecDeque<Step>,
    last: bool,
    sender: Side,
    start: At,
    end: At,
    pieces: &mut Vec<Piece>,
) {
    let from = steps.partition_point(|s| s.to.time_ns <= start.time_ns);
    if last {
        steps.drain(..from);
        cut(
            std::iter::from_fn(|| steps.pop_front()),
            sender,
            start,
            end,
            pieces,
        );
    } else {
        cut(steps.range(from..).cloned(), sender, start, end, pieces);
    }
}

#[inline(always)]
fn cut(steps: impl Iterator<Item = Step>, sender: Side, start: At, end: At, pieces: &mut Vec<Piece>) {
    let mut at = start;
    for step in steps {
        if at.time_ns >= end.time_ns || step.from.time_ns >= end.time_ns {
            break;
        }
        if step.from.time_ns > at.time_ns {
            pieces.push(unseen(at, step.from, sender));
            at = step.from;
        }
        let until = if step.to.time_ns <= end.time_ns {
            step.to
        } else {
            end
        };
        if until.time_ns > at.time_ns {
            pieces.push(Piece {
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
        pieces.push(unseen(at, end, sender));
    }
}

/// The steps of both sides, each from where the one before ended, whoever's that was.
pub(super) fn take_turns(steps: [&VecDeque<Step>; 2], start: At, end: At, pieces: &mut Vec<Piece>) {
    let [client, server] = steps.map(|steps| {
        let first = steps.partition_point(|s| s.to.time_ns <= start.time_ns);
        steps.range(first..).peekable()
    });
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
            pieces.push(Piece {
                start: at.time_ns,
                end: until.time_ns,
                from_frame: at.frame,
                to_frame: until.frame,
                asked: at.time_ns,
                sender,
                step: step.clone(),
            });
            at = until;
        }
    }
    if at.time_ns < end.time_ns {
        pieces.push(unseen(at, end, Side::Server));
    }
}

fn unseen(from: At, to: At, sender: Side) -> Piece {
    Piece {
        start: from.time_ns,
        end: to.time_ns,
        from_frame: from.frame,
        to_frame: to.frame,
        asked: from.time_ns,
        sender,
        step: Step {
            from,
            to,
            wait: Wait::Hole,
        },
    }
}

/// Halves the number of steps: two neighbours become one under the longer one's name.
pub(super) fn merge_pairs(steps: &mut VecDeque<Step>) {
    let mut merged = VecDeque::with_capacity(steps.len() / 2 + 1);
    while let Some(a) = steps.pop_front() {
        match steps.pop_front() {
            Some(b) => {
                let longer = if b.to.time_ns - b.from.time_ns > a.to.time_ns - a.from.time_ns {
                    &b
                } else {
                    &a
                };
                merged.push_back(Step {
                    from: a.from,
                    to: b.to,
                    wait: longer.wait.clone(),
                });
            }
            None => merged.push_back(a),
        }
    }
    *steps = merged;
}
