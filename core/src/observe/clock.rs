//! How much later than at best a segment passed the capture, by its sender's own clock. Time stamps of TCP in
//! (RFC 7323), the excess of the way from the sender out: what the program took before, the clock has counted.

use crate::judge::limits::{
    BELIEVED_PART, CLOCK_ENOUGH, CLOCK_RATE, CLOCK_RUN, CLOCK_WINDOW_NS, GRAIN_NS, MOST_LATE_NS, NOISE_NS,
    OTHER_SHARE, RARE, RATED_NS, TICK_NS,
};

/// Later than any offset.
const NONE: i64 = i64::MAX;

/// One sender's clock against the capture's.
#[derive(Debug)]
pub struct Clock {
    base: Option<(i64, u32)>,
    /// The smallest offset in the window before this one, and in this one; `NONE` before there is one.
    low: [i64; 2],
    window: i64,
    seen: u32,
    late: u32,
    /// So many in a row were late.
    running: u32,
    /// It does not count milliseconds.
    odd: bool,
}

impl Default for Clock {
    fn default() -> Self {
        Clock {
            base: None,
            low: [NONE; 2],
            window: 0,
            seen: 0,
            late: 0,
            running: 0,
            odd: false,
        }
    }
}

impl Clock {
    /// Whether this clock was seen to count milliseconds for long enough to believe a pause in it.
    pub fn counts_ms(&self, time_ns: i64, tsval: u32) -> bool {
        let Some((since, first)) = self.base else {
            return false;
        };
        let counted = i64::from(tsval.wrapping_sub(first).cast_signed()) * TICK_NS;
        let elapsed = time_ns.wrapping_sub(since);
        elapsed >= RATED_NS.get()
            && counted.saturating_sub(elapsed).saturating_abs() <= elapsed / BELIEVED_PART.get()
    }

    /// Whether this clock was seen to count something else than milliseconds.
    fn is_other(&self, time_ns: i64, tsval: u32) -> bool {
        let Some((since, first)) = self.base else {
            return false;
        };
        let counted = i64::from(tsval.wrapping_sub(first).cast_signed()) * TICK_NS;
        let elapsed = time_ns.wrapping_sub(since);
        self.odd
            || elapsed >= RATED_NS.get()
                && counted.saturating_sub(elapsed).saturating_abs()
                    > (elapsed as f64 * OTHER_SHARE.get()) as i64
    }

    /// Whether the path may have made the larger part of the gap before a segment: by its sender's clock it left with the
    /// one before it (which has the time stamp `before`), or passed that much later than at best.
    pub fn may_have_held(&self, time_ns: i64, tsval: u32, before: Option<u32>, gap: i64) -> bool {
        let unknown = gap >= RATED_NS.get() && !self.counts_ms(time_ns, tsval);
        if gap < NOISE_NS.get() || unknown || self.is_other(time_ns, tsval) {
            return false;
        }
        let late = |ticks: i64, elapsed: i64| {
            let late = elapsed.saturating_sub(ticks * TICK_NS);
            late > gap / 2 && late <= MOST_LATE_NS.get().cast_signed()
        };
        let since = |from: u32| i64::from(tsval.wrapping_sub(from).cast_signed());
        let together = before.is_some_and(|before| since(before) >= 0 && late(since(before), gap));
        let [low, now] = self.low;
        together
            || self.base.is_some_and(|(start, first)| {
                let elapsed = time_ns.wrapping_sub(start).saturating_sub(low.min(now));
                late(since(first), elapsed)
            })
    }

    /// A segment that was sent for the first time: how much later than the best one of its time it passed; 0 where a tick or
    /// a busy host explains that.
    #[inline(always)]
    pub fn late(&mut self, time_ns: i64, tsval: u32) -> i64 {
        let (since, first) = *self.base.get_or_insert((time_ns, tsval));
        let ticks = i64::from(tsval.wrapping_sub(first).cast_signed());
        let elapsed = time_ns.wrapping_sub(since);
        let offset = elapsed.wrapping_sub(ticks * TICK_NS);
        let off = offset.unsigned_abs();
        self.odd |=
            off > MOST_LATE_NS.get() && off - MOST_LATE_NS.get() > elapsed.unsigned_abs() / CLOCK_RATE.get();
        if self.odd {
            return 0;
        }
        if time_ns.wrapping_sub(self.window) > CLOCK_WINDOW_NS.get() {
            let [_, now] = self.low;
            (self.low, self.window) = ([now, NONE], time_ns);
        }
        let [before, now] = &mut self.low;
        *now = offset.min(*now);
        let late = offset.wrapping_sub(*now.min(before));
        self.seen = self.seen.saturating_add(1);
        if late < NOISE_NS.get() {
            self.running = 0;
            return 0;
        }
        late
    }

    /// How long the path may have held such a segment beyond its best, and how long it did so for sure; 0 where this clock
    /// does not tell.
    #[cold]
    #[inline(never)]
    pub fn believed(&mut self, late: i64, time_ns: i64, tsval: u32) -> (u32, u32) {
        let late = u32::try_from(late).unwrap_or(u32::MAX);
        self.late = self.late.saturating_add(1);
        let rare = self.late.saturating_mul(RARE.get()) <= self.seen;
        self.running = self.running.saturating_add(1);
        let queue = i64::from(late) >= GRAIN_NS.get()
            && self.running <= CLOCK_RUN.get()
            && self.counts_ms(time_ns, tsval);
        let sure = self.seen >= CLOCK_ENOUGH.get() && (rare || queue);
        let held = if sure { late - TICK_NS as u32 } else { 0 };
        (if self.is_other(time_ns, tsval) { 0 } else { late }, held)
    }
}
