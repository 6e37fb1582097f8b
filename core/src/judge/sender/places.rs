//! The control group by the place in a message: what a sender's program takes behind a message's first segment, and behind
//! later ones. An answer's head may be followed at once, and its other parts one by one.
//!
//! Only what left freely tells of a place: with what waits for a held ACK goes all that is written meanwhile, and of the
//! pauses behind it only the longer ones are seen.
//! Rivals: pauses that differ by luck, as few heads are followed freely; pauses that grow, as these are the earliest.

use ahash::AHashMap;

use super::Judged;
use super::controls::{Controls, Pause};
use crate::evidence::{Gap, Pool};
use crate::judge::limits::{ENOUGH, PLACE_CONTROLS, PLACE_PARTS};

/// By whether the segment behind which a program pauses is its message's first.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// None where the places do not differ beyond doubt: then all pauses are one group.
    controls: Option<Box<[Controls; 2]>>,
    /// It was never seen to pause there, but at the other place.
    at_once: [bool; 2],
}

impl Places {
    /// Of these pauses behind later segments, and behind first ones.
    #[cfg(test)]
    pub(super) fn apart(controls: [Controls; 2]) -> Places {
        Places {
            controls: Some(Box::new(controls)),
            ..Places::default()
        }
    }

    pub(super) fn of(pool: &Pool, j: &Judged) -> Places {
        if j.controls.pauses().all(Pause::is_at_once) {
            return Places::default(); // it pauses nowhere
        }
        let held = behind_held(pool, j);
        let free = |place| {
            let counts = |gap: &Gap| gap.first == place && held.binary_search(&gap.frame).is_err();
            let pauses = Controls::seen(pool, j, counts);
            pauses.pauses().copied().collect::<Vec<_>>()
        };
        let (later, first) = (free(false), free(true));
        let differ = pauses_alone(&later, &first) || pauses_alone(&first, &later);
        let controls = |place| Controls::seen(pool, j, |gap| gap.first == place);
        Places {
            controls: differ.then(|| Box::new([false, true].map(controls))),
            at_once: [is_at_once(&later, &first), is_at_once(&first, &later)],
        }
    }

    /// The control group of this place, where it is another than that of the other one.
    #[inline]
    pub(super) fn at(&self, first: bool) -> Option<&Controls> {
        let [later, behind_first] = self.controls.as_deref()?;
        Some(if first { behind_first } else { later })
    }

    /// Whether its program was never seen to pause at this place, but at the other.
    pub(in crate::judge) fn is_at_once(&self, first: bool) -> bool {
        self.at_once.get(usize::from(first)).copied().unwrap_or_default()
    }
}

fn is_at_once(here: &[Pause], there: &[Pause]) -> bool {
    !here.is_empty() && here.iter().all(Pause::is_at_once) && !there.iter().all(Pause::is_at_once)
}

/// Whether its program pauses here, and never there.
fn pauses_alone(here: &[Pause], there: &[Pause]) -> bool {
    let at_once = here.iter().filter(|pause| pause.is_at_once()).count();
    is_at_once(there, here)
        && there.len() >= PLACE_CONTROLS.get()
        && here.len() >= ENOUGH.get()
        && PLACE_PARTS.get() * at_once <= here.len()
}

/// The frames in whose message something had waited for a held ACK before, rising.
fn behind_held(pool: &Pool, j: &Judged) -> Vec<u64> {
    let mut waited: AHashMap<u32, bool> = AHashMap::new();
    let mut behind = Vec::new();
    for gap in &pool.gaps {
        let waited = waited.entry(gap.stream).or_default();
        *waited &= !gap.first;
        if *waited {
            behind.push(gap.frame);
        }
        *waited |= j.is_held(gap);
    }
    behind.sort_unstable();
    behind
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn pauses(ms: &[i64]) -> Vec<Pause> {
        ms.iter().map(|ms| Pause::of_program(ms * MS)).collect()
    }

    #[test]
    fn a_place_is_known_where_its_program_pauses_and_elsewhere_never() {
        let alone = |here: &[i64], there: &[i64]| pauses_alone(&pauses(here), &pauses(there));
        assert!(alone(&[20; 8], &[3; 3]));
        assert!(!alone(&[20; 7], &[3; 3]), "ENOUGH");
        assert!(!alone(&[20; 8], &[3; 2]), "PLACE_CONTROLS");
        assert!(!alone(&[20; 8], &[3, 3, 4]), "it pauses at both");
        // a third of the pauses may be none, and no more
        assert!(alone(&[20, 20, 0, 20, 20, 0, 20, 20, 0], &[0; 3]));
        assert!(!alone(&[20, 20, 0, 20, 20, 0, 20, 0], &[0; 3]), "PLACE_PARTS");
    }

    #[test]
    fn where_it_was_never_seen_to_pause_it_likely_does_not() {
        let at_once = |here: &[i64], there: &[i64]| is_at_once(&pauses(here), &pauses(there));
        assert!(at_once(&[3], &[0, 0, 4]));
        assert!(!at_once(&[4], &[20]));
        assert!(!at_once(&[3], &[3, 0]), "nor does it elsewhere");
        assert!(!at_once(&[], &[20]));
    }
}
