//! Delay of a segment on its way to the capture, beyond the path's best, by its sender's TCP timestamps (RFC 7323). A
//! program's time before sending is not part of it: the sender's clock has counted that.
//!
//! The offset of a segment is the capture's elapsed time less the ticks counted; the smallest offset belongs to the
//! best path. Example: offsets of 0, 0 and 20 ms: the third segment was 20 ms late on its way.

use crate::limits::{
    CLOCK_WINDOW_NS, LARGE_RATIO, MIN_SAMPLES, MOST_LATE_NS, NOISE_NS, OUTLIER_ONE_IN, RATED_NS, TICK_NS,
    TICKS_NS, TWO_TICKS_NS,
};

/// Offset of an empty window: larger than any other.
const NONE: i64 = i64::MAX;

/// Timestamps of one sender against the capture's clock. Times in ns.
#[derive(Debug)]
pub struct Clock {
    /// Capture time and timestamp of the first segment.
    base: Option<(i64, u32)>,
    /// Smallest offsets in the window before and in the current one (`CLOCK_WINDOW_NS`).
    lowest_offsets_ns: [i64; 2],
    /// Begin of the current window.
    window_start_ns: i64,
    /// Number of segments with a timestamp.
    segment_count: u32,
    /// Number of those that were late.
    late_count: u32,
    /// The timestamps do not count milliseconds.
    counts_other: bool,
    /// Remainders of timestamps modulo 4 that occurred, one bit each.
    remainders: u8,
}

impl Default for Clock {
    fn default() -> Self {
        Clock {
            base: None,
            lowest_offsets_ns: [NONE; 2],
            window_start_ns: 0,
            segment_count: 0,
            late_count: 0,
            counts_other: false,
            remainders: 0,
        }
    }
}

impl Clock {
    /// Returns the capture's time and the ticks since the first segment; None before that.
    fn since_base(&self, time_ns: i64, tsval: u32) -> Option<(i64, i64)> {
        self.base.map(|(since, first)| {
            let ticks = i64::from(tsval.wrapping_sub(first).cast_signed());
            (time_ns.wrapping_sub(since), ticks)
        })
    }

    /// Whether the timestamps have counted milliseconds for `RATED_NS`.
    pub fn counts_ms(&self, time_ns: i64, tsval: u32) -> bool {
        self.since_base(time_ns, tsval).is_some_and(|(elapsed, ticks)| {
            elapsed >= RATED_NS.get()
                && (ticks * TICK_NS).saturating_sub(elapsed).saturating_abs() <= elapsed / LARGE_RATIO.get()
        })
    }

    /// Returns how much later than the best so far a segment passes; None if the timestamps do not count milliseconds.
    pub fn lateness(&self, time_ns: i64, tsval: u32) -> Option<u32> {
        let (elapsed, ticks) = self
            .since_base(time_ns, tsval)
            .filter(|_| !self.is_other(time_ns, tsval))?;
        let [before, now] = self.lowest_offsets_ns;
        let offset = elapsed.wrapping_sub(ticks * TICK_NS);
        let late_ns = offset.saturating_sub(now.min(before)).max(0);
        Some(u32::try_from(late_ns).unwrap_or(u32::MAX))
    }

    /// Whether the timestamps count every millisecond: those that grow by 4 or 10 have few remainders modulo 4.
    pub fn is_fine(&self) -> bool {
        self.remainders.count_ones() > 2
    }

    /// Whether the timestamps are known not to count milliseconds.
    fn is_other(&self, time_ns: i64, tsval: u32) -> bool {
        self.since_base(time_ns, tsval).is_some_and(|(elapsed, ticks)| {
            self.counts_other
                || elapsed >= RATED_NS.get()
                    && (ticks * TICK_NS).saturating_sub(elapsed).saturating_abs()
                        > elapsed / LARGE_RATIO.get()
        })
    }

    /// Whether the timestamps are so far behind that they may count something slower than milliseconds.
    fn may_be_slower(&self, time_ns: i64, tsval: u32) -> bool {
        self.since_base(time_ns, tsval).is_some_and(|(elapsed, ticks)| {
            elapsed.saturating_sub(ticks * TICK_NS) > elapsed / LARGE_RATIO.get()
        })
    }

    /// Whether the timestamps fit a clock with ticks of 4 or 10 ms.
    fn fits_coarse(&self, time_ns: i64, tsval: u32) -> bool {
        self.since_base(time_ns, tsval).is_some_and(|(elapsed, ticks)| {
            TICKS_NS.into_iter().take(2).any(|tick| {
                let off = elapsed
                    .saturating_sub(ticks.saturating_mul(tick))
                    .saturating_abs();
                off <= tick + NOISE_NS.get()
            })
        })
    }

    /// Whether the path may have made the larger part of the gap before a segment. By the timestamps it left with the
    /// one before it (which has the timestamp `before`), or it passed that much later than the best.
    pub fn may_have_held(&self, time_ns: i64, tsval: u32, before: Option<u32>, gap: i64) -> bool {
        let is_unknown = gap >= RATED_NS.get() && !self.counts_ms(time_ns, tsval);
        if gap < NOISE_NS.get() || is_unknown || self.is_other(time_ns, tsval) {
            return false;
        }
        let is_late = |ticks: i64, elapsed: i64| {
            let late_ns = elapsed.saturating_sub(ticks * TICK_NS);
            late_ns > gap / 2 && late_ns <= MOST_LATE_NS.get().cast_signed()
        };
        let since = |from: u32| i64::from(tsval.wrapping_sub(from).cast_signed());
        let left_together = before.is_some_and(|before| since(before) >= 0 && is_late(since(before), gap));
        let [low, now] = self.lowest_offsets_ns;
        left_together
            || self.base.is_some_and(|(start, first)| {
                let elapsed = time_ns.wrapping_sub(start).saturating_sub(low.min(now));
                is_late(since(first), elapsed)
            })
    }

    /// Adds a first copy of a segment, and returns its delay beyond the best of its time; 0 if a tick or a busy host
    /// explains that.
    #[inline(always)]
    pub fn add(&mut self, time_ns: i64, tsval: u32) -> i64 {
        let (since, first) = *self.base.get_or_insert((time_ns, tsval));
        self.remainders |= 1 << (tsval & 3);
        let ticks = i64::from(tsval.wrapping_sub(first).cast_signed());
        let elapsed = time_ns.wrapping_sub(since);
        let offset = elapsed.wrapping_sub(ticks * TICK_NS);
        let off = offset.unsigned_abs();
        self.counts_other |= off > MOST_LATE_NS.get()
            && off - MOST_LATE_NS.get() > elapsed.unsigned_abs() / OUTLIER_ONE_IN.get() as u64;
        if self.counts_other {
            return 0;
        }
        if time_ns.wrapping_sub(self.window_start_ns) > CLOCK_WINDOW_NS.get() {
            let [_, now] = self.lowest_offsets_ns;
            (self.lowest_offsets_ns, self.window_start_ns) = ([now, NONE], time_ns);
        }
        let [before, now] = &mut self.lowest_offsets_ns;
        *now = offset.min(*now);
        let late_ns = offset.wrapping_sub(*now.min(before));
        self.segment_count = self.segment_count.saturating_add(1);
        if late_ns < NOISE_NS.get() {
            return 0;
        }
        late_ns
    }

    /// Returns how long the path may have held a segment that passed `late_ns` after the best, and how long it did for
    /// sure; 0 where the timestamps show neither. `u32::MAX` is any time: the timestamps may count something slower
    /// than milliseconds.
    #[cold]
    #[inline(never)]
    pub fn believed(&mut self, late_ns: i64, time_ns: i64, tsval: u32) -> (u32, u32) {
        let late_ns = u32::try_from(late_ns).unwrap_or(u32::MAX);
        self.late_count = self.late_count.saturating_add(1);
        let is_rare = self.late_count.saturating_mul(LARGE_RATIO.get() as u32) <= self.segment_count;
        let is_fine =
            (self.is_fine() || i64::from(late_ns) >= TWO_TICKS_NS.get()) && self.counts_ms(time_ns, tsval);
        let may_be_slower = self.may_be_slower(time_ns, tsval);
        let is_coarse = may_be_slower && self.fits_coarse(time_ns, tsval);
        let is_certain =
            self.segment_count as usize >= MIN_SAMPLES.get() && (is_rare || is_fine) && !is_coarse;
        let certain = if is_certain { late_ns - TICK_NS as u32 } else { 0 };
        let possible = match certain {
            _ if self.is_other(time_ns, tsval) => 0,
            0 if may_be_slower => u32::MAX,
            _ => late_ns,
        };
        (possible, certain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const S: i64 = 1_000 * MS;

    /// A clock that began at 0 with the time stamp 0.
    fn began() -> Clock {
        let mut clock = Clock::default();
        clock.add(0, 0);
        clock
    }

    #[test]
    fn a_clock_is_believed_that_counts_milliseconds_for_half_a_second() {
        let clock = began();
        assert!(clock.counts_ms(500 * MS, 500) && !clock.counts_ms(500 * MS - 1, 500));
        // a quarter too fast or too slow is not too much
        assert!(clock.counts_ms(S, 1_250) && !clock.counts_ms(S, 1_251));
        assert!(clock.counts_ms(S, 750) && !clock.counts_ms(S, 749));
        assert!(!Clock::default().counts_ms(S, 1_000));
    }

    #[test]
    fn a_clock_that_is_far_off_counts_something_else() {
        let clock = began();
        assert!(clock.is_other(500 * MS, 374) && !clock.is_other(500 * MS, 375));
        assert!(!clock.is_other(500 * MS - 1, 100), "not known yet");
        assert!(!clock.is_other(S, 1_250) && clock.is_other(S, 1_251));
        assert!(!clock.is_other(S, 750) && clock.is_other(S, 749));
        assert!(!Clock::default().is_other(S, 0));
    }

    #[test]
    fn late_is_what_no_tick_explains() {
        let mut clock = began();
        assert_eq!(clock.add(103 * MS - 1, 100), 0);
        assert_eq!(clock.add(203 * MS, 200), 3 * MS);
        assert_eq!(clock.add(299 * MS, 300), 0, "the best so far");
        assert_eq!(clock.add(402 * MS, 400), 3 * MS);
    }

    #[test]
    fn lateness_is_told_to_the_nanosecond() {
        let mut clock = began();
        assert_eq!(Clock::default().lateness(MS, 1), None);
        assert_eq!(clock.lateness(105 * MS + 7, 100), Some(5_000_007));
        clock.add(199 * MS, 200);
        assert_eq!(clock.lateness(302 * MS, 300), Some(3_000_000));
        assert_eq!(clock.lateness(298 * MS, 300), Some(0), "better than the best");
        assert_eq!(clock.lateness(S, 300), None, "it counts something else");
    }

    #[test]
    fn a_clock_is_fine_that_counts_every_millisecond() {
        let fine = |every: u32, stamps: u32| {
            let mut clock = began();
            for stamp in 0..stamps {
                clock.add(0, 80 + stamp * every);
            }
            clock.is_fine()
        };
        assert!(fine(1, 3) && !fine(1, 2), "more than two remainders");
        assert!(!fine(4, 90) && !fine(10, 90));
    }

    #[test]
    fn the_best_is_that_of_two_windows() {
        let mut clock = began();
        assert_eq!(clock.add(10 * S, 9_000), S);
        assert_eq!(
            clock.add(10 * S + 1, 9_000),
            S + 1,
            "a new window, and the one before it"
        );
        assert_eq!(clock.add(20 * S + 1, 19_000), S + 1, "still the same");
        assert_eq!(clock.add(20 * S + 2, 19_000), 0, "the first one is forgotten");
    }

    #[test]
    fn a_queue_is_rare_or_later_than_the_grain_of_a_clock_that_is_known() {
        let held = |seen, late, stood, ns: i64| {
            let mut clock = Clock {
                segment_count: seen,
                late_count: late,
                remainders: stood,
                ..began()
            };
            clock.believed(ns, 900 * MS, 900).1
        };
        // one in four of eight at least
        assert_eq!((held(8, 1, 1, 5 * MS), held(8, 2, 1, 5 * MS)), (4_000_000, 0));
        assert_eq!(held(7, 0, 1, 5 * MS), 0, "MIN_SAMPLES");
        // or by a clock that counts every millisecond, or so late as none stands still
        assert_eq!((held(8, 9, 7, 5 * MS), held(8, 9, 3, 5 * MS)), (4_000_000, 0));
        assert_eq!(
            (held(8, 9, 1, 20 * MS), held(8, 9, 1, 20 * MS - 1)),
            (19_000_000, 0)
        );
        let mut other = Clock {
            segment_count: 8,
            ..began()
        };
        assert_eq!(other.believed(5 * MS, 900 * MS, 100), (0, 4_000_000));
        let mut slow = Clock {
            segment_count: 8,
            late_count: 9,
            ..began()
        };
        assert_eq!(
            slow.believed(30 * MS, 900 * MS, 600),
            (0, 0),
            "not believed in a pause"
        );
    }

    /// Three ticks of four milliseconds are the time that passed, and no queue.
    #[test]
    fn a_clock_that_may_be_slower_proves_no_queue() {
        let held = |rate: u32, tsval: u32| {
            let mut clock = began();
            for second in 1..=20 {
                clock.add(i64::from(second) * 4 * MS, second * rate);
            }
            let late = clock.add(92 * MS, tsval);
            clock.believed(late, 92 * MS, tsval).1
        };
        assert_eq!(held(1, 23), 0, "it counts four milliseconds each");
        assert!(held(4, 80) > 0, "and this one each millisecond");
        let mut queue = Clock {
            segment_count: 8,
            ..began()
        };
        let late = queue.add(250 * MS, 20);
        assert!(
            queue.believed(late, 250 * MS, 20).1 > 0,
            "no tick fits: the path's queue"
        );
    }

    #[test]
    fn a_clock_that_was_seen_briefly_may_be_a_slower_one() {
        let late = |time_ns, tsval| {
            let mut clock = began();
            let late = clock.add(time_ns, tsval);
            clock.believed(late, time_ns, tsval).0
        };
        assert_eq!(
            late(300 * MS, 75),
            u32::MAX,
            "four milliseconds each, or the path"
        );
        assert_eq!(late(300 * MS, 225), 75 * MS as u32);
        assert_eq!(late(300 * MS, 224), u32::MAX);
        // then its rate shows
        assert_eq!(late(500 * MS - 1, 290), u32::MAX);
        assert_eq!((late(500 * MS, 374), late(500 * MS, 375)), (0, 125 * MS as u32));
    }

    #[test]
    fn the_path_may_have_made_the_larger_part_of_a_gap() {
        let clock = began();
        let held = |time_ms: i64, tsval, before, gap| clock.may_have_held(time_ms * MS, tsval, before, gap);
        // left with the one before it, by its time stamp
        assert!(held(400, 400, Some(400), 3 * MS) && !held(400, 400, Some(400), 3 * MS - 1));
        assert!(!held(400, 400, Some(395), 9 * MS) && held(400, 400, Some(396), 9 * MS));
        assert!(!held(400, 400, Some(401), 9 * MS) && !held(400, 400, None, 9 * MS));
        // or passed that much later than at best
        assert!(held(406, 400, None, 11 * MS) && !held(406, 400, None, 12 * MS));
        let by_two_seconds = |more| clock.may_have_held(100 * S + more, 98_000, None, 400 * MS);
        assert!(by_two_seconds(0) && !by_two_seconds(1));
        // a clock that is not known to count milliseconds shows nothing of a long pause
        assert!(!clock.may_have_held(499 * MS, 100, Some(100), 500 * MS));
        assert!(clock.may_have_held(600 * MS, 600, Some(600), 500 * MS));
        assert!(
            !clock.may_have_held(900 * MS, 300, Some(300), 400 * MS),
            "it counts something else"
        );
    }
}
