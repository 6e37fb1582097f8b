//! What one group of pauses shows of a wait: that they are as long, that they are shorter, or nothing clear.

use super::super::spread::at_share;
use super::{Control, Lists, Pause};
use crate::limits::{CONTROL_NEAR_NS, LONGER_TIMES, MIN_SAMPLES, OUTLIER_ONE_IN, PROMPT_NS, SEVERAL};

/// A part of the lists: rising pauses.
#[derive(Default)]
pub(super) struct Group<'a> {
    pub(super) unheld: &'a [Pause],
    pub(super) early: &'a [Pause],
    pub(super) outlasting: &'a [Pause],
    pub(super) held: usize,
}

/// How many of a rising list end well before the wait, reach it, and are longer.
pub(super) fn about(rising: &[Pause], wait: i64) -> (usize, usize, usize) {
    let below = rising.partition_point(|pause| pause.ns <= wait - CONTROL_NEAR_NS.get());
    let reach = rising.partition_point(|pause| pause.ns <= wait + CONTROL_NEAR_NS.get());
    (below, reach - below, rising.len() - reach)
}

/// What bounds the next of so many first pauses of a rising list: the longest of them, without the strays of a long one; what
/// ended by itself, and once, may be longer the next time. And the middle one.
pub(super) fn longest(rising: &[Pause], first: usize) -> Option<(Pause, i64)> {
    let counted = first - first / OUTLIER_ONE_IN.get();
    let mut most = rising.get(counted.checked_sub(1)?).copied()?;
    let middle = rising.get((first - 1) / 2)?.ns;
    if most.exact
        && first < SEVERAL.get()
        && rising.iter().take(first).filter(|pause| pause.exact).count() == 1
    {
        most.ns = (most.ns as f64 * LONGER_TIMES.get()) as i64;
    }
    Some((most, middle))
}

impl Group<'_> {
    pub(super) fn of(lists: &Lists) -> Group<'_> {
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

    /// What these pauses say of a wait.
    pub(super) fn compare(&self, wait: i64) -> Control {
        let (below, near, above) = about(self.unheld, wait);
        let (early_below, early_near, _) = about(self.early, wait);
        if self.unheld.is_empty() && self.early.is_empty() {
            return Control::Nothing;
        }
        if 2 * near > self.unheld.len() || early_near > early_below.max(self.held) {
            let shorter = |rising: &[Pause]| {
                let first = rising.partition_point(|pause| pause.ns < wait);
                longest(rising, first).map(|(_, likely)| likely)
            };
            let likely = shorter(self.unheld).or_else(|| shorter(self.early));
            return Control::Explains {
                likely: likely.unwrap_or(wait / 2),
            };
        }
        let early_strays = OUTLIER_ONE_IN.get() * early_near <= early_near + self.held;
        let reach = (wait as f64 * LONGER_TIMES.get()) as i64;
        let longer = self.outlasting.partition_point(|pause| pause.ns <= reach);
        let unheld_longer = self.unheld.get(below..).unwrap_or_default(); // needed only where none is near
        let strays = OUTLIER_ONE_IN.get() * (near + above) <= self.unheld.len()
            || near == 0
                && above + longer >= SEVERAL.get()
                && self.have_two_lengths([below, early_below, longer], unheld_longer);
        // what left before a held ACK shows as well that the program was done by then
        let late_strays = OUTLIER_ONE_IN.get() * longer <= longer + self.held + early_below
            || self.have_two_lengths([below, early_below, longer], &[]);
        let most = longest(self.unheld, below);
        let most = most.or_else(|| longest(self.early, early_below));
        match most {
            Some((most, likely)) if strays && early_strays && late_strays && most.ns < wait => {
                Control::Shorter {
                    most: most.ns,
                    likely,
                    exact: most.exact,
                }
            }
            _ => Control::Unclear,
        }
    }

    /// Whether its pauses are of two lengths, one short and one that outlasts held ACKs, or would (`unheld_longer`): then none
    /// ends in between, shortly before an ACK. A few that ended by themselves do not show how they differ.
    fn have_two_lengths(&self, [unheld, early, longer]: [usize; 3], unheld_longer: &[Pause]) -> bool {
        let first = |rising: &[Pause], count| rising.get(..count).unwrap_or_default().to_vec();
        let (unheld, early) = (first(self.unheld, unheld), first(self.early, early));
        let few = unheld.len() + early.len() < SEVERAL.get();
        let show = !few || unheld.iter().chain(&early).all(|pause| !pause.exact);
        // where many are longer, use the shorter half: a busy host adds to the others
        let share = if longer < MIN_SAMPLES.get() { 0.95 } else { 0.5 };
        let mut longer = first(self.outlasting, longer);
        longer.extend(unheld_longer);
        longer.sort_unstable_by_key(Pause::rank);
        show && alike(&unheld, 0.95) && alike(&early, 0.95) && alike(&longer, share)
    }
}

/// Whether rising pauses, this share of them, are of one length, but for strays.
fn alike(rising: &[Pause], share: f64) -> bool {
    let rising: Vec<i64> = rising.iter().map(|pause| pause.ns).collect();
    let (low, high) = (at_share(&rising, 0.05), at_share(&rising, share));
    low.zip(high)
        .is_none_or(|(low, high)| high - low <= PROMPT_NS.get())
}
