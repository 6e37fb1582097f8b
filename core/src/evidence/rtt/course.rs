//! What the round trip took when: its least value by time. Samples of what kernels answered in, in order of time; out what the
//! path took around an instant, and what it usually took.
//!
//! An estimate from above: of a time without samples nothing is known. So the least of all near the instant counts. Where a
//! capture is long, each value stands for more time, and so is less.

use super::brief;
use crate::judge::limits::FINEST_NS;

/// Values kept; where there are more, each stands for twice the time.
const KEPT: usize = 1024;

#[derive(Debug, Clone)]
pub(super) struct Course {
    /// By the number of their time, rising; in nanoseconds.
    least: Vec<(i64, u32)>,
    each: i64,
}

impl Default for Course {
    fn default() -> Self {
        Course {
            least: Vec::new(),
            each: FINEST_NS.get(),
        }
    }
}

impl Course {
    #[inline]
    pub(super) fn add(&mut self, at: i64, sample: i64) {
        let (number, sample) = (at.div_euclid(self.each), brief(sample));
        match self.least.last_mut() {
            Some((newest, least)) if *newest >= number => *least = sample.min(*least),
            _ => self.begin(number, sample),
        }
    }

    #[cold]
    fn begin(&mut self, number: i64, sample: u32) {
        if self.least.len() < KEPT {
            self.least.push((number, sample));
            return;
        }
        self.each *= 2;
        let mut halved: Vec<(i64, u32)> = Vec::with_capacity(KEPT);
        for (number, sample) in self.least.iter().copied().chain([(number, sample)]) {
            match halved.last_mut() {
                Some((newest, least)) if *newest == number.div_euclid(2) => *least = sample.min(*least),
                _ => halved.push((number.div_euclid(2), sample)),
            }
        }
        self.least = halved;
    }

    /// The least around this time: None where nothing was sampled near it.
    pub(super) fn around(&self, from: i64, until: i64) -> Option<i64> {
        let [first, last] = [from - self.each, until + self.each].map(|at| at.div_euclid(self.each));
        let begin = self.least.partition_point(|(number, _)| *number < first);
        let near = self.least.get(begin..).unwrap_or_default().iter();
        let near = near.take_while(|(number, _)| *number <= last);
        near.map(|(_, least)| i64::from(*least)).min()
    }

    /// What the path and who answered usually took: the median of the values.
    pub(super) fn usual(&self) -> Option<i64> {
        let mut values: Vec<u32> = self.least.iter().map(|(_, least)| *least).collect();
        values.sort_unstable();
        values.get(values.len() / 2).map(|least| i64::from(*least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_least_of_the_time_around_counts() {
        let mut course = Course::default();
        assert_eq!(course.around(0, MS), None);
        for (at, sample) in [(0, 9), (10, 7), (1_000, 40), (1_010, 30), (2_000, 5)] {
            course.add(at * MS, sample * MS);
        }
        let around = |from: i64, until: i64| course.around(from * MS, until * MS).map(|ns| ns / MS);
        assert_eq!((around(0, 0), around(1_000, 1_005)), (Some(7), Some(30)));
        assert_eq!((around(900, 2_000), around(500, 510)), (Some(5), None));
        // one stretch of time to either side
        assert_eq!((around(1_100, 1_110), around(1_200, 1_210)), (Some(30), None));
    }

    #[test]
    fn the_median_is_usual() {
        let mut course = Course::default();
        assert_eq!(course.usual(), None);
        for (n, sample) in [9, 2, 7, 30, 7].into_iter().enumerate() {
            course.add(n as i64 * FINEST_NS.get(), sample * MS);
        }
        assert_eq!(course.usual(), Some(7 * MS));
    }

    #[test]
    fn a_long_capture_is_remembered_more_coarsely_and_less_is_known() {
        let mut course = Course::default();
        for n in 0..5 * KEPT as i64 {
            course.add(n * FINEST_NS.get(), if n % 2 == 0 { MS } else { 9 * MS });
        }
        assert!(course.least.len() <= KEPT && course.each == 8 * FINEST_NS.get());
        assert_eq!(
            course.around(4_000 * FINEST_NS.get(), 4_001 * FINEST_NS.get()),
            Some(MS)
        );
        course.add(0, 1); // a clock that went back
        assert_eq!(
            course.around(5 * KEPT as i64 * FINEST_NS.get(), i64::MAX / 2),
            Some(1)
        );
    }
}
