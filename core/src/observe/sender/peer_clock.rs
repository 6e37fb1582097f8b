//! Times of packets by the peer's TCP timestamps, to a tick: when a packet that the capture lacks passed, and how much
//! later than the path's best one passed that it has.

use crate::limits::{CLOCK_WINDOW_NS, DELACK_MIN_NS, LARGE_RATIO, TICK_NS};

/// The peer's timestamps against the capture's clock.
#[derive(Debug, Default)]
pub(super) struct PeerClock {
    began: bool,
    /// First timestamp.
    first: u32,
    /// Newest timestamp.
    newest: u32,
    /// Capture time of the first.
    first_ns: i64,
    /// Capture time of the newest.
    newest_ns: i64,
    /// Least values of `ahead` in the window before and in the current one (`CLOCK_WINDOW_NS`).
    least_ahead_ns: [i64; 2],
    /// Start of the current window.
    window_start_ns: i64,
}

impl PeerClock {
    #[inline(always)]
    pub(super) fn record(&mut self, time_ns: i64, tsval: u32) {
        if !self.began {
            (self.began, self.first_ns, self.first) = (true, time_ns, tsval);
        }
        (self.newest_ns, self.newest) = (time_ns, tsval);
        let ahead = self.ahead(time_ns, tsval);
        if time_ns.wrapping_sub(self.window_start_ns) > CLOCK_WINDOW_NS.get() {
            (self.least_ahead_ns, self.window_start_ns) = ([self.least_ahead_ns[1], ahead], time_ns);
        }
        self.least_ahead_ns[1] = ahead.min(self.least_ahead_ns[1]);
    }

    /// Returns the delay of a packet beyond the path's best and a tick; 0 unless the timestamps count milliseconds.
    pub(super) fn late_ns(&self, time_ns: i64, tsval: u32) -> i64 {
        if !self.counts_ms() {
            return 0;
        }
        let [before, now] = self.least_ahead_ns;
        (self.ahead(time_ns, tsval) - before.min(now) - TICK_NS).max(0)
    }

    fn counts_ms(&self) -> bool {
        let elapsed = self.newest_ns.saturating_sub(self.first_ns);
        let ahead = self.ahead(self.newest_ns, self.newest);
        self.began && elapsed >= DELACK_MIN_NS.get() && ahead.saturating_abs() <= elapsed / LARGE_RATIO.get()
    }

    /// Returns how much more time passed in the capture since the first timestamp than on the peer's clock.
    fn ahead(&self, time_ns: i64, tsval: u32) -> i64 {
        let counted = i64::from(tsval.wrapping_sub(self.first).cast_signed()) * TICK_NS;
        time_ns.wrapping_sub(self.first_ns).wrapping_sub(counted)
    }

    /// Returns when a packet with this timestamp passed; None unless the timestamps count milliseconds.
    pub(super) fn passed(&self, tsval: u32) -> Option<i64> {
        if !self.counts_ms() {
            return None;
        }
        let since = i64::from(tsval.wrapping_sub(self.newest).cast_signed()) * TICK_NS;
        Some(self.newest_ns.saturating_add(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_milliseconds_dates_what_was_not_seen() {
        let ms = |ms: i64| ms * 1_000_000;
        let mut clock = PeerClock::default();
        clock.record(ms(10), 5_000);
        assert_eq!(clock.passed(5_100), None, "its rate is not known");
        clock.record(ms(1_010), 6_000);
        assert_eq!(clock.passed(6_040), Some(ms(1_050)));
        let mut coarse = PeerClock::default();
        coarse.record(ms(10), 5_000);
        coarse.record(ms(1_010), 5_100);
        assert_eq!(coarse.passed(5_104), None, "it counts ten milliseconds");
    }

    #[test]
    fn what_passed_later_than_at_best_beyond_a_tick_was_late_on_its_way() {
        let ms = |ms: i64| ms * 1_000_000;
        let mut clock = PeerClock::default();
        assert_eq!(clock.late_ns(ms(99), 0), 0);
        clock.record(ms(10), 5_000);
        assert_eq!(clock.late_ns(ms(90), 5_000), 0, "its rate is not known");
        clock.record(ms(1_010), 6_000);
        assert_eq!(
            (clock.late_ns(ms(1_061), 6_030), clock.late_ns(ms(1_041), 6_030)),
            (ms(20), 0)
        );
        clock.record(ms(1_105), 6_100); // sooner than any
        assert_eq!(clock.late_ns(ms(1_061), 6_030), ms(25));
        // the best of two windows: clocks drift
        clock.record(ms(12_020), 17_000);
        assert_eq!(clock.late_ns(ms(12_061), 17_030), ms(25));
        clock.record(ms(23_021), 28_000);
        assert_eq!(
            clock.late_ns(ms(23_071), 28_030),
            ms(20),
            "the first is forgotten"
        );
        let mut coarse = PeerClock::default();
        coarse.record(0, 0);
        coarse.record(ms(1_000), 250);
        assert_eq!(coarse.late_ns(ms(1_090), 250), 0, "it counts four milliseconds");
    }

    #[test]
    fn ten_ticks_of_four_milliseconds_show_its_rate_to_a_quarter() {
        let passed = |elapsed_ns, ticks| {
            let mut clock = PeerClock::default();
            clock.record(0, 0);
            clock.record(elapsed_ns, ticks);
            clock.passed(ticks)
        };
        assert_eq!(passed(40_000_000, 40), Some(40_000_000));
        assert_eq!(passed(39_999_999, 40), None);
        assert!(passed(1_000_000_000, 1_250).is_some() && passed(1_000_000_000, 1_251).is_none());
        assert!(passed(1_000_000_000, 750).is_some() && passed(1_000_000_000, 749).is_none());
    }
}
