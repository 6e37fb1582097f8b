//! One pause of a program, as the control group keeps it.

use crate::limits::NOISE_NS;

/// A pause of the program, on a stream. `exact`: its segment left by itself; else an ACK let it go, and it took at most so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    pub(super) stream: u32,
    pub(super) ns: i64,
    pub(super) exact: bool,
}

impl Pause {
    #[cfg(test)]
    pub fn of_program(ns: i64) -> Pause {
        Pause {
            stream: 0,
            ns,
            exact: true,
        }
    }

    /// Its program wrote again without a pause, as far as is known: an ACK let it go, or it left soon.
    pub fn is_at_once(&self) -> bool {
        !self.exact || self.ns <= NOISE_NS.get()
    }

    /// Its place in a list: by length, and what is exact behind what is not. One number, as long lists are sorted often.
    pub(super) fn rank(&self) -> i64 {
        self.ns.saturating_mul(2).saturating_add(i64::from(self.exact))
    }
}
