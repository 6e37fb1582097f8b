//! How much later than at best a segment passed the capture, by its sender's own clock. Time stamps of TCP in
//! (RFC 7323), the excess of the way from the sender out: what the program took before, the clock has counted.

/// Linux, BSD and macOS count milliseconds.
pub(super) const TICK_NS: i64 = 1_000_000;
/// Neither clock drifts by much in two of these.
const WINDOW_NS: i64 = 10_000_000_000;
/// Clocks whose rate differs by more than one in so many count something else than milliseconds.
const RATE: u64 = 100;
/// No path holds a segment for longer.
const MAX_LATE_NS: u64 = 2_000_000_000;
/// Segments before the best time is known.
const ENOUGH: u32 = 8;
/// What a tick, the drift and a busy host explain.
const NOISE_NS: i64 = 3_000_000;
/// No clock that counts milliseconds stands still for longer.
pub(super) const GRAIN_NS: i64 = 20_000_000;
/// After more late ones in a row the capture's clock has been set, or the best time is not known.
const RUN: u32 = 8;
/// A clock's rate shows after this.
const RATED_NS: i64 = 500_000_000;
/// Lateness that is not rare among a sender's segments is its clock's grain.
const RARE: u32 = 4;

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

crate::pack::packed!(struct Clock { base, low, window, seen, late, running, odd });

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
        elapsed >= RATED_NS && counted.saturating_sub(elapsed).saturating_abs() <= elapsed / 4
    }

    /// A segment that was sent for the first time: how long the path held it beyond its best; 0 where that is not sure.
    #[inline(always)]
    pub fn excess(&mut self, time_ns: i64, tsval: u32) -> i64 {
        let (since, first) = *self.base.get_or_insert((time_ns, tsval));
        let ticks = i64::from(tsval.wrapping_sub(first).cast_signed());
        let elapsed = time_ns.wrapping_sub(since);
        let offset = elapsed.wrapping_sub(ticks * TICK_NS);
        let off = offset.unsigned_abs();
        self.odd |= off > MAX_LATE_NS && off - MAX_LATE_NS > elapsed.unsigned_abs() / RATE;
        if self.odd {
            return 0;
        }
        if time_ns.wrapping_sub(self.window) > WINDOW_NS {
            let [_, now] = self.low;
            (self.low, self.window) = ([now, NONE], time_ns);
        }
        let [before, now] = &mut self.low;
        *now = offset.min(*now);
        let late = offset.wrapping_sub(*now.min(before));
        self.seen = self.seen.saturating_add(1);
        if late < NOISE_NS {
            self.running = 0;
            return 0;
        }
        self.excess_of(late, time_ns, tsval)
    }

    /// The same of a segment that is later than the best one of its time.
    #[cold]
    #[inline(never)]
    fn excess_of(&mut self, late: i64, time_ns: i64, tsval: u32) -> i64 {
        self.late = self.late.saturating_add(1);
        let rare = self.late.saturating_mul(RARE) <= self.seen;
        self.running = self.running.saturating_add(1);
        let queue = late >= GRAIN_NS && self.running <= RUN && self.counts_ms(time_ns, tsval);
        if self.seen < ENOUGH || !rare && !queue {
            return 0;
        }
        late - TICK_NS
    }
}
