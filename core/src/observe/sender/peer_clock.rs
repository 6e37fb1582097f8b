//! When did a packet of the peer pass whose time stamp is known, but not the packet? The peer's time stamps in, a time of the
//! capture out, to a tick of that clock.

use crate::judge::limits::{BELIEVED_PART, PEER_RATED_NS, TICK_NS};

/// The peer's clock: the first time stamp that passed, and the newest.
#[derive(Debug, Default)]
pub(super) struct PeerClock {
    first: Option<(i64, u32)>,
    newest: (i64, u32),
}

impl PeerClock {
    pub(super) fn heard(&mut self, time_ns: i64, tsval: u32) {
        self.first.get_or_insert((time_ns, tsval));
        self.newest = (time_ns, tsval);
    }

    /// When a packet with this time stamp passed; None while the clock was not seen to count milliseconds.
    pub(super) fn passed(&self, tsval: u32) -> Option<i64> {
        let (first, (time_ns, newest)) = (self.first?, self.newest);
        let elapsed = time_ns.saturating_sub(first.0);
        let counted = i64::from(newest.wrapping_sub(first.1).cast_signed()) * TICK_NS;
        if elapsed < PEER_RATED_NS.get()
            || counted.saturating_sub(elapsed).saturating_abs() > elapsed / BELIEVED_PART.get()
        {
            return None;
        }
        let since = i64::from(tsval.wrapping_sub(newest).cast_signed()) * TICK_NS;
        Some(time_ns.saturating_add(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_milliseconds_dates_what_was_not_seen() {
        let ms = |ms: i64| ms * 1_000_000;
        let mut clock = PeerClock::default();
        clock.heard(ms(10), 5_000);
        assert_eq!(clock.passed(5_100), None, "its rate is not known");
        clock.heard(ms(1_010), 6_000);
        assert_eq!(clock.passed(6_040), Some(ms(1_050)));
        let mut coarse = PeerClock::default();
        coarse.heard(ms(10), 5_000);
        coarse.heard(ms(1_010), 5_100);
        assert_eq!(coarse.passed(5_104), None, "it counts ten milliseconds");
    }

    #[test]
    fn ten_ticks_of_four_milliseconds_show_its_rate_to_a_quarter() {
        let passed = |elapsed_ns, ticks| {
            let mut clock = PeerClock::default();
            clock.heard(0, 0);
            clock.heard(elapsed_ns, ticks);
            clock.passed(ticks)
        };
        assert_eq!(passed(40_000_000, 40), Some(40_000_000));
        assert_eq!(passed(39_999_999, 40), None);
        assert!(passed(1_000_000_000, 1_250).is_some() && passed(1_000_000_000, 1_251).is_none());
        assert!(passed(1_000_000_000, 750).is_some() && passed(1_000_000_000, 749).is_none());
    }
}
