//! What passed on other connections of the same two hosts while one waited. A connection that one side alone sends on,
//! and that ends, carries what another was asked for (FTP's data connections). Until it has ended, the wait for an
//! answer to that request is no program's delay.

use std::collections::VecDeque;

use super::Exchange;
use crate::observe::{Step, Wait};

/// Transfers that are remembered, of all hosts.
const MOST: usize = 32;

#[derive(Debug, Clone, Copy)]
struct Transfer {
    pair: u32,
    stream: u32,
    start: i64,
    end: i64,
}

/// The newest ones.
#[derive(Debug, Default)]
pub struct Transfers(VecDeque<Transfer>);

impl Transfers {
    /// A side of this stream, on which one alone had sent since `start`, has ended.
    pub fn ended(&mut self, pair: u32, stream: u32, start: i64, end: i64) {
        if let Some(known) = self.0.iter_mut().find(|known| known.stream == stream) {
            known.end = end;
            return;
        }
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(Transfer {
            pair,
            stream,
            start,
            end,
        });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where a transfer between the same hosts took the larger part of what looks like a program's time, and was over before
    /// that was: no proof against the program.
    #[cold]
    pub fn excuse(&self, exchange: &mut Exchange) {
        let (pair, stream) = (exchange.pair, exchange.stream);
        for step in exchange.steps.iter_mut().flatten() {
            self.doubt(step, pair, stream);
        }
    }

    fn doubt(&self, step: &mut Step, pair: u32, stream: u32) {
        let since = match step.wait {
            Wait::App => step.from,
            Wait::Turn { since, .. } | Wait::TimedTurn { since, .. } | Wait::QueuedTurn { since, .. } => {
                since
            }
            _ => return,
        };
        let (from, to) = (since.time_ns, step.to.time_ns);
        let passed = self
            .0
            .iter()
            .filter(|t| t.pair == pair && t.stream != stream && (from..=to).contains(&t.end));
        let longest = passed.map(|t| t.end - t.start.max(from)).max().unwrap_or(0);
        if longest <= (to - from) / 2 {
            return;
        }
        let busy = u32::try_from(longest).unwrap_or(u32::MAX);
        step.wait = match step.wait {
            Wait::Turn { since, .. } | Wait::TimedTurn { since, .. } => Wait::QueuedTurn {
                since,
                late: busy,
                queued: 0,
            },
            Wait::QueuedTurn { since, late, queued } => Wait::QueuedTurn {
                since,
                late: late.max(busy),
                queued,
            },
            _ => Wait::Unsure,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::At;

    fn at(ms: i64) -> At {
        At {
            frame: 1,
            time_ns: ms * 1_000_000,
        }
    }

    #[test]
    fn a_transfer_that_took_the_larger_part_excuses_the_program() {
        let mut all = Transfers::default();
        let ms = |ms: i64| ms * 1_000_000;
        all.ended(7, 2, ms(10), ms(60));
        all.ended(7, 2, ms(10), ms(80));
        all.ended(8, 3, ms(0), ms(99));
        let doubted = |pair, stream, wait: Wait| {
            let mut step = Step {
                from: at(0),
                to: at(100),
                wait,
            };
            all.doubt(&mut step, pair, stream);
            step.wait
        };
        let turn = Wait::Turn {
            since: at(5),
            acked: 0,
        };
        let late = Wait::QueuedTurn {
            since: at(5),
            late: 70_000_000,
            queued: 0,
        };
        assert_eq!(doubted(7, 1, Wait::App), Wait::Unsure);
        assert_eq!(doubted(7, 1, turn.clone()), late);
        assert_eq!(doubted(7, 2, turn.clone()), turn); // itself
        assert_eq!(doubted(9, 1, turn.clone()), turn); // other hosts
        assert_eq!(doubted(7, 1, Wait::Hole), Wait::Hole);
        let short = Wait::Turn {
            since: at(81),
            acked: 0,
        };
        assert_eq!(doubted(7, 1, short.clone()), short); // it was over before
        for stream in 0..2 * MOST as u32 {
            all.ended(6, stream + 9, 0, 1);
        }
        assert_eq!(all.0.len(), MOST);
    }
}
