//! Is it a cork that holds a sender's messages back, or its program? How long the first segments of its messages
//! waited in, over all streams of an endpoint; a judgement out.
//!
//! A corked socket keeps what is smaller than a segment until the kernel's probe timer sends it, 200 ms later: every
//! time, never sooner, and on the host's tick. A program that sleeps for as long is not bound to the tick.

use super::spread::lattice;
use crate::wait::CORK_NS;

/// Waits remembered; later ones say the same.
const KEPT: usize = 1024;
/// So many waits make a judgement.
const ENOUGH: usize = 8;
/// Of ten small messages one may have left at once: the first of a socket that was corked later.
const PROMPT_SHARE: u64 = 10;
/// The chance that the waits end on one tick by luck.
const LUCK: f64 = 1e-4;

#[derive(Debug, Default)]
pub(super) struct Idle {
    /// Small messages that began sooner than a cork's timer.
    prompt: u64,
    /// Wait and its end, of those that may have waited for it.
    late: Vec<(i64, i64)>,
}

impl Idle {
    pub(super) fn add_prompt(&mut self) {
        self.prompt += 1;
    }

    pub(super) fn add_late(&mut self, waited: i64, end: i64) {
        if self.late.len() < KEPT {
            self.late.push((waited, end));
        }
    }

    pub(super) fn evidence(&self) -> u64 {
        self.late.len() as u64
    }

    /// Whether messages of this sender may wait for the timer, and whether all of them do; `leg` is the path to it and back.
    pub(super) fn corked(&self, leg: i64) -> (bool, bool) {
        let held = || {
            self.late
                .iter()
                .filter(|(waited, _)| CORK_NS.contains(&(waited - leg)))
        };
        let count = held().count();
        if count < ENOUGH {
            return (count > 0, false); // too few to show a tick
        }
        let timed = lattice(held().map(|(_, end)| *end)).is_some_and(|(_, luck)| luck <= LUCK);
        let sooner = self
            .late
            .iter()
            .filter(|(waited, _)| waited - leg < *CORK_NS.start());
        let prompt = self.prompt + sooner.count() as u64;
        (timed, timed && prompt * PROMPT_SHARE <= count as u64)
    }
}
