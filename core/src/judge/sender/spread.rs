//! How values lie: their spread, and what moves with what. Times of waits in, numbers that a judgement rests on out.

use crate::evidence::Gap;
pub(super) use crate::evidence::rtt::at_share;
use crate::limits::{ENOUGH, FITS, FITS_WELL, HELD_AWAY, TICK_LUCK, TICKS_NS, TOGETHER_NS};

/// Candidates that enter the pairwise slopes, evenly picked (their number is squared).
const SLOPED: usize = 96;

/// Median slope of (small -> freed) over (small -> ACK): near 1 where the sender follows the ACK, near 0
/// where a program pauses for a time of its own. None where the ACKs vary too little to tell.
pub(super) fn slope(held: &[&Gap]) -> Option<f64> {
    let used: Vec<&Gap> = held.iter().step_by(held.len() / SLOPED + 1).copied().collect();
    if used.len() < HELD_AWAY.get() {
        return None;
    }
    let total = |s: &Gap| s.wait + s.release;
    let spread = |of: &dyn Fn(&Gap) -> i64| deviation(used.iter().map(|s| of(s)).collect());
    let informative = spread(&|s| total(s)).min(spread(&|s| s.release)) < spread(&|s| s.wait);
    if !informative {
        return None;
    }
    let mut slopes = Vec::new();
    for (i, a) in used.iter().enumerate() {
        for b in used.iter().skip(i + 1) {
            let apart = b.wait - a.wait;
            if apart.abs() > TOGETHER_NS.get() {
                slopes.push((total(b) - total(a)) as f64 / apart as f64);
            }
        }
    }
    let middle = slopes.len() / 2;
    if slopes.is_empty() {
        return None;
    }
    let (_, median, _) = slopes.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*median)
}

/// Median absolute deviation.
pub(super) fn deviation(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    let middle = at_share(&values, 0.5).unwrap_or(0);
    let mut away: Vec<i64> = values.iter().map(|v| (v - middle).abs()).collect();
    away.sort_unstable();
    at_share(&away, 0.5).unwrap_or(0)
}

/// A host's scheduler tick: its length, and the chance that this is luck.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    pub period: i64,
    pub luck: f64,
}

/// Kernel timers end on the host's scheduler tick: folds the ends of the waits and tests whether they fall together
/// (Rayleigh). The longest tick that fits is the tick. Where it fits badly none of its parts is, as those fit as well; others
/// may be: requests in lockstep with a tick of 4 ms lie on 10 ms by halves. Timers that ended together are one piece of
/// evidence.
pub(crate) fn lattice(ends: impl Iterator<Item = i64>) -> Option<Tick> {
    let mut ends: Vec<i64> = ends.collect();
    ends.sort_unstable();
    ends.dedup_by(|end, before| *end - *before < TOGETHER_NS.get());
    if ends.len() < ENOUGH.get() {
        return None;
    }
    let n = ends.len() as f64;
    let fits = |period: i64| {
        let (mut x, mut y) = (0.0, 0.0);
        for end in &ends {
            let turn = end.rem_euclid(period) as f64 / period as f64 * std::f64::consts::TAU;
            x += turn.cos();
            y += turn.sin();
        }
        (period, (x * x + y * y).sqrt() / n)
    };
    let mut badly: Vec<i64> = Vec::new();
    for (period, together) in TICKS_NS.into_iter().map(fits) {
        if together <= FITS.get() || badly.iter().any(|longer| is_part(period, *longer)) {
            continue;
        }
        let luck = (-n * together * together).exp();
        if together > FITS_WELL.get() && luck <= TICK_LUCK.get() {
            return Some(Tick { period, luck });
        }
        badly.push(period);
    }
    None
}

/// So many of this period are the longer one, but for what rounding to nanoseconds leaves.
fn is_part(period: i64, longer: i64) -> bool {
    longer % period <= longer / period
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn tick(ends: impl IntoIterator<Item = i64>) -> Option<i64> {
        lattice(ends.into_iter()).map(|tick| tick.period)
    }

    #[test]
    fn timers_end_on_a_tick() {
        for period in [4 * MS, 10_000_000 / 3, MS] {
            let ends = [0, 7, 23, 58, 101, 146, 199, 235, 314].map(|at| at * period + at % 3 * 40_000);
            assert_eq!(tick(ends), Some(period));
        }
        let pauses = (0..40).map(|n| n * 46_770_000);
        assert_eq!(tick(pauses), None);
    }

    #[test]
    fn timers_that_end_together_are_one() {
        let ends = [0, 52, 96, 148, 200, 252, 296, 348].map(|at| at * MS);
        let alone = lattice(ends.into_iter());
        let together = ends.iter().flat_map(|end| (0..10).map(move |n| end + n * 40_000));
        assert_eq!(lattice(together), alone);
        assert_eq!(alone.map(|tick| tick.period), Some(4 * MS));
        let twice = [0, 50 * MS]
            .into_iter()
            .flat_map(|end| (0..10).map(move |n| end + n * 40_000));
        assert_eq!(tick(twice), None);
    }

    #[test]
    fn what_fits_a_tick_badly_shows_none_of_its_parts() {
        let ends = (0..24).map(|n| n * 44 * MS + n % 2 * MS); // on a tick of 4 ms, or a quarter of it later
        assert_eq!(tick(ends), None);
    }

    #[test]
    fn what_fits_a_tick_badly_may_lie_on_one_that_is_no_part_of_it() {
        // 220 ms after each other, and two of them 4 ms later: on a tick of 4 ms, and six of seven on one of 10
        let ends = (0..14).map(|n| (n * 220 + if n % 7 == 6 { 4 } else { 0 }) * MS);
        assert_eq!(tick(ends), Some(4 * MS));
        assert!(is_part(MS, 10 * MS) && is_part(10_000_000 / 3, 10 * MS) && is_part(MS, 4 * MS));
        assert!(!is_part(4 * MS, 10 * MS) && !is_part(10_000_000 / 3, 4 * MS));
    }

    #[test]
    fn what_ends_within_half_a_millisecond_ends_together() {
        let ends = |apart: i64| lattice([0, apart].into_iter().chain((4..10).map(|n| n * 10 * MS)));
        assert_eq!(ends(MS / 2).map(|tick| tick.period), Some(10 * MS));
        assert_eq!(ends(MS / 2 - 1), None, "seven are too few");
    }

    #[test]
    fn luck_is_less_than_one_in_a_thousand() {
        // half of eight ends lie so far from the other half: together they fit by 0.93, where luck is one in a thousand
        let ends = |apart| {
            let times = [0, 7, 23, 58, 101, 146, 199, 235].map(|at| at * 4 * MS);
            tick(
                times
                    .into_iter()
                    .enumerate()
                    .map(move |(n, at)| at + n as i64 % 2 * apart),
            )
        };
        assert_eq!((ends(440_000), ends(515_000)), (Some(4 * MS), None));
    }
}
