//! The steps of one direction: cut to an exchange, and merged where there are too many.

use std::collections::VecDeque;

use super::Piece;
use crate::messages::{At, Side};
use crate::wait::{Step, Wait};

/// The steps that overlap [start, end], without gap: what no step covers is unknown.
pub(super) fn slice(steps: &VecDeque<Step>, sender: Side, start: i64, end: i64, pieces: &mut Vec<Piece>) {
    let mut at = start;
    let from = steps.partition_point(|s| s.to.time_ns <= start);
    for step in steps.range(from..) {
        if at >= end || step.from.time_ns >= end {
            break;
        }
        if step.from.time_ns > at {
            pieces.push(unseen(at, step.from.time_ns, sender, step));
            at = step.from.time_ns;
        }
        let until = step.to.time_ns.min(end);
        if until > at {
            pieces.push(Piece {
                start: at,
                end: until,
                sender,
                step: step.clone(),
            });
            at = until;
        }
    }
    if at < end {
        let last = steps.back().cloned();
        let step = last.unwrap_or(Step {
            from: At::default(),
            to: At::default(),
            wait: Wait::Hole,
        });
        pieces.push(unseen(at, end, sender, &step));
    }
}

fn unseen(start: i64, end: i64, sender: Side, near: &Step) -> Piece {
    Piece {
        start,
        end,
        sender,
        step: Step {
            wait: Wait::Hole,
            ..near.clone()
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
