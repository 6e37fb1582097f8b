//! Statistics of waits: slope, deviation and fit to a timer's tick.

pub(super) use crate::evidence::rtt::at_share;
use crate::limits::{CHANCE_MAX, FITS_WELL, HELD_AWAY, MIN_SAMPLES, SOON_NS, TICK_NS, TICKS_NS};
use crate::observe::Candidate;

/// Upper bound on candidates in pairwise slopes, evenly picked: the work grows with the square.
const MAX_SLOPED: usize = 96;

/// Returns the Theil-Sen slope of the whole wait against the wait for the ACK. Near 1 the sender follows the ACK, near
/// 0 its program pauses for a time of its own. None where the ACKs vary too little.
pub(super) fn slope(held: &[&Candidate]) -> Option<f64> {
    let used: Vec<&Candidate> = held
        .iter()
        .step_by(held.len() / MAX_SLOPED + 1)
        .copied()
        .collect();
    if used.len() < HELD_AWAY.get() {
        return None;
    }
    let spread = |time: fn(&Candidate) -> i64| deviation(used.iter().map(|candidate| time(candidate)));
    let is_informative =
        spread(Candidate::total_ns).min(spread(Candidate::release_ns)) < spread(Candidate::wait_ns);
    if !is_informative {
        return None;
    }
    let mut slopes = Vec::new();
    for (i, earlier) in used.iter().enumerate() {
        for later in used.iter().skip(i + 1) {
            let apart = later.wait_ns() - earlier.wait_ns();
            if apart.abs() > SOON_NS.get() {
                slopes.push((later.total_ns() - earlier.total_ns()) as f64 / apart as f64);
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

/// Returns the median absolute deviation.
pub(super) fn deviation(values: impl Iterator<Item = i64>) -> i64 {
    let values = sorted(values);
    let middle = at_share(&values, 0.5).unwrap_or(0);
    let away = sorted(values.iter().map(|value| (value - middle).abs()));
    at_share(&away, 0.5).unwrap_or(0)
}

/// Returns the values in rising order.
pub(super) fn sorted(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    values
}

/// A host's scheduler tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    pub period_ns: i64,
    /// Probability of such a fit by chance.
    pub luck: f64,
}

/// Returns the longest scheduler tick on which these times end, as kernel timers do. Folds the times by each tick and
/// tests whether they concentrate (Rayleigh test). Times closer than `SOON_NS` count once, as one tick may end many
/// timers.
pub(crate) fn fit_tick(ends: impl Iterator<Item = i64>) -> Option<Tick> {
    let mut ends = sorted(ends);
    ends.dedup_by(|end, before| *end - *before < SOON_NS.get());
    if ends.len() < MIN_SAMPLES.get() {
        return None;
    }
    let count = ends.len() as f64;
    let fits = |period: i64| {
        let (mut x, mut y) = (0.0, 0.0);
        for end in &ends {
            let turn = end.rem_euclid(period) as f64 / period as f64 * std::f64::consts::TAU;
            x += turn.cos();
            y += turn.sin();
        }
        (period, (x * x + y * y).sqrt() / count)
    };
    // a capture whose clock counts steps of 1 or 10 ms shows only longer ticks
    let is_step = |step: i64| ends.iter().all(|end| end % step == 0);
    let step = [10 * TICK_NS, TICK_NS].into_iter().find(|step| is_step(*step));
    let (period_ns, concentration) = TICKS_NS
        .into_iter()
        .filter(|period| step.is_none_or(|step| *period > step))
        .map(fits)
        .find(|(_, concentration)| *concentration > FITS_WELL.get())?;
    let luck = (-count * concentration * concentration).exp();
    (luck <= CHANCE_MAX.get()).then_some(Tick { period_ns, luck })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn tick(ends: impl IntoIterator<Item = i64>) -> Option<i64> {
        fit_tick(ends.into_iter()).map(|tick| tick.period_ns)
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
    fn what_the_captures_clock_rounds_ends_on_no_tick_of_its_own() {
        let ends = [0, 7, 23, 58, 101, 146, 199, 235, 314];
        let rounded = |to: i64| ends.map(|at| (at * 4 * MS + 500_000) / to * to);
        assert_eq!(tick(rounded(1_000)), Some(4 * MS));
        assert_eq!(tick(rounded(MS)), Some(4 * MS));
        assert_eq!(tick(rounded(10 * MS)), None);
        let any = ends.map(|at| at * MS);
        assert_eq!(tick(any), None);
        assert_eq!(tick(any.map(|end| end + 9_000)), Some(MS));
    }

    #[test]
    fn timers_that_end_together_are_one() {
        let ends = [0, 52, 96, 148, 200, 252, 296, 348].map(|at| at * MS + 9_000);
        let alone = fit_tick(ends.into_iter());
        let together = ends.iter().flat_map(|end| (0..10).map(move |n| end + n * 40_000));
        assert_eq!(fit_tick(together), alone);
        assert_eq!(alone.map(|tick| tick.period_ns), Some(4 * MS));
        let twice = [0, 50 * MS]
            .into_iter()
            .flat_map(|end| (0..10).map(move |n| end + n * 40_000));
        assert_eq!(tick(twice), None);
    }

    #[test]
    fn what_ends_within_what_a_busy_host_adds_ends_together() {
        let ends = |apart: i64| fit_tick([0, apart].into_iter().chain((4..10).map(|n| n * 10 * MS)));
        assert_eq!(ends(MS / 4 * 3).map(|tick| tick.period_ns), Some(10 * MS));
        assert_eq!(ends(MS / 4 * 3 - 1), None, "seven are too few");
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
