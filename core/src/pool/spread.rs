//! How values lie: their spread, and what moves with what. Times of waits in, numbers that a judgement rests on out.

use super::Sample;

/// Candidates that enter the pairwise slopes, evenly picked (their number is squared).
const SLOPED: usize = 96;
/// Slopes between ACK times that differ less than this are noise.
const SLOPE_APART_NS: i64 = 300_000;

/// Median slope of (small -> freed) over (small -> ACK): near 1 where the sender follows the ACK, near 0
/// where a program pauses for a time of its own. None where the ACKs vary too little to tell.
pub(super) fn slope(held: &[&Sample]) -> Option<f64> {
    let used: Vec<&Sample> = held.iter().step_by(held.len() / SLOPED + 1).copied().collect();
    if used.len() < 5 {
        return None;
    }
    let total = |s: &Sample| s.wait + s.release;
    let spread = |of: &dyn Fn(&Sample) -> i64| deviation(used.iter().map(|s| of(s)).collect());
    let informative = spread(&|s| total(s)).min(spread(&|s| s.release)) < spread(&|s| s.wait);
    if !informative {
        return None;
    }
    let mut slopes = Vec::new();
    for (i, a) in used.iter().enumerate() {
        for b in used.iter().skip(i + 1) {
            let apart = b.wait - a.wait;
            if apart.abs() > SLOPE_APART_NS {
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

pub(super) fn at_share(sorted: &[i64], share: f64) -> Option<i64> {
    let rank = ((sorted.len() as f64 * share).ceil() as usize).max(1);
    sorted.get(rank - 1).copied()
}

/// Kernel timers end on the host's scheduler tick: folds the ends of the waits and tests whether they
/// fall together (Rayleigh). The longest tick that fits is the tick.
pub(super) fn lattice(ends: impl Iterator<Item = i64> + Clone, least: usize) -> (Option<i64>, Option<f64>) {
    let count = ends.clone().count();
    if count < least {
        return (None, None);
    }
    let n = count as f64;
    for period in [10_000_000i64, 4_000_000, 3_333_333, 1_000_000] {
        let (mut x, mut y) = (0.0, 0.0);
        for end in ends.clone() {
            let turn = end.rem_euclid(period) as f64 / period as f64 * std::f64::consts::TAU;
            x += turn.cos();
            y += turn.sin();
        }
        let together = (x * x + y * y).sqrt() / n;
        if together > 0.7 {
            return (Some(period), Some((-n * together * together).exp()));
        }
    }
    (None, None)
}
