//! Compares a wait with a group of pauses: those are as long, shorter, or show nothing clear.

use super::super::spread::at_share;
use super::{Control, Lists};
use crate::limits::{
    CONTROL_NEAR_NS, LONGER_TIMES, MIN_SAMPLES, NOISE_NS, OUTLIER_ONE_IN, PROMPT_NS, SEVERAL,
};

/// A pause of the program on a stream. `exact`: the segment left by itself; else an ACK freed it, and `ns` is an upper
/// bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    pub(in crate::judge::sender) stream: u32,
    pub(in crate::judge::sender) ns: i64,
    pub(in crate::judge::sender) exact: bool,
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

    /// Whether the program wrote again without a pause, as far as is known: an ACK freed the segment, or it left soon.
    pub fn is_at_once(&self) -> bool {
        !self.exact || self.ns <= NOISE_NS.get()
    }

    /// Returns a sort key: by length, exact pauses behind others. One number, because long lists are sorted often.
    pub(super) fn rank(&self) -> i64 {
        self.ns.saturating_mul(2).saturating_add(i64::from(self.exact))
    }
}

/// Pauses of all streams or of one, each list rising.
#[derive(Default)]
pub(super) struct Group<'a> {
    pub(super) unheld: &'a [Pause],
    pub(super) early: &'a [Pause],
    pub(super) outlasting: &'a [Pause],
    pub(super) held: usize,
}

/// Counts the pauses of a rising list that are clearly shorter than the wait, about as long, and clearly longer.
pub(super) fn partition_about(rising: &[Pause], wait: i64) -> (usize, usize, usize) {
    let below = rising.partition_point(|pause| pause.ns <= wait - CONTROL_NEAR_NS.get());
    let reach = rising.partition_point(|pause| pause.ns <= wait + CONTROL_NEAR_NS.get());
    (below, reach - below, rising.len() - reach)
}

/// Returns an upper bound on the next pause, and the median, by the first `count` pauses of a rising list. The bound is
/// the longest without outliers. A single exact pause does not show how pauses vary, so it is multiplied by
/// `LONGER_TIMES`.
pub(super) fn longest(rising: &[Pause], count: usize) -> Option<(Pause, i64)> {
    let without_outliers = count - count / OUTLIER_ONE_IN.get();
    let mut bound = rising.get(without_outliers.checked_sub(1)?).copied()?;
    let middle = rising.get((count - 1) / 2)?.ns;
    if bound.exact
        && count < SEVERAL.get()
        && rising.iter().take(count).filter(|pause| pause.exact).count() == 1
    {
        bound.ns = (bound.ns as f64 * LONGER_TIMES.get()) as i64;
    }
    Some((bound, middle))
}

impl Group<'_> {
    pub(super) fn new(lists: &Lists) -> Group<'_> {
        Group {
            unheld: &lists.unheld,
            early: &lists.early,
            outlasting: &lists.outlasting,
            held: lists.held.len(),
        }
    }

    pub(super) fn pauses(&self) -> usize {
        self.unheld.len() + self.early.len()
    }

    /// Compares a wait with these pauses.
    pub(super) fn compare(&self, wait: i64) -> Control {
        let (below_count, near_count, above_count) = partition_about(self.unheld, wait);
        let (early_below, early_near, _) = partition_about(self.early, wait);
        if self.unheld.is_empty() && self.early.is_empty() {
            return Control::Nothing;
        }
        if 2 * near_count > self.unheld.len() || early_near > early_below.max(self.held) {
            let shorter = |rising: &[Pause]| {
                let first = rising.partition_point(|pause| pause.ns < wait);
                longest(rising, first).map(|(_, likely_ns)| likely_ns)
            };
            let likely_ns = shorter(self.unheld).or_else(|| shorter(self.early));
            return Control::Explains {
                likely_ns: likely_ns.unwrap_or(wait / 2),
            };
        }
        let are_early_strays = OUTLIER_ONE_IN.get() * early_near <= early_near + self.held;
        let reach = (wait as f64 * LONGER_TIMES.get()) as i64;
        let longer = self.outlasting.partition_point(|pause| pause.ns <= reach);
        let unheld_longer = self.unheld.get(below_count..).unwrap_or_default(); // needed only where none is near
        let are_strays = OUTLIER_ONE_IN.get() * (near_count + above_count) <= self.unheld.len()
            || near_count == 0
                && above_count + longer >= SEVERAL.get()
                && self.have_two_lengths([below_count, early_below, longer], unheld_longer);
        // a segment that left before a held ACK shows too that the program was done by then
        let are_late_strays = OUTLIER_ONE_IN.get() * longer <= longer + self.held + early_below
            || self.have_two_lengths([below_count, early_below, longer], &[]);
        let shorter = longest(self.unheld, below_count).or_else(|| longest(self.early, early_below));
        match shorter {
            Some((bound, likely_ns))
                if are_strays && are_early_strays && are_late_strays && bound.ns < wait =>
            {
                Control::Shorter {
                    max_ns: bound.ns,
                    likely_ns,
                    exact: bound.exact,
                }
            }
            _ => Control::Unclear,
        }
    }

    /// Whether pauses have just two lengths, a short one and one that outlasts held ACKs, or would (`unheld_longer`):
    /// then none ends in between, shortly before an ACK. A few exact pauses do not show how much pauses vary.
    fn have_two_lengths(&self, [unheld, early, longer]: [usize; 3], unheld_longer: &[Pause]) -> bool {
        let first = |rising: &[Pause], count| rising.get(..count).unwrap_or_default().to_vec();
        let (unheld, early) = (first(self.unheld, unheld), first(self.early, early));
        let are_few = unheld.len() + early.len() < SEVERAL.get();
        let are_conclusive = !are_few || unheld.iter().chain(&early).all(|pause| !pause.exact);
        // of many longer pauses, compare the shorter half: a busy host adds to the others
        let share = if longer < MIN_SAMPLES.get() { 0.95 } else { 0.5 };
        let mut longer = first(self.outlasting, longer);
        longer.extend(unheld_longer);
        longer.sort_unstable_by_key(Pause::rank);
        are_conclusive
            && have_one_length(&unheld, 0.95)
            && have_one_length(&early, 0.95)
            && have_one_length(&longer, share)
    }
}

/// Whether rising pauses, up to this share of them, have one length, but for the shortest twentieth.
fn have_one_length(rising: &[Pause], share: f64) -> bool {
    let rising: Vec<i64> = rising.iter().map(|pause| pause.ns).collect();
    let (low, high) = (at_share(&rising, 0.05), at_share(&rising, share));
    low.zip(high)
        .is_none_or(|(low, high)| high - low <= PROMPT_NS.get())
}
