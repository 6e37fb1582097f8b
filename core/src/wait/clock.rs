//! How much later than at best a segment passed the capture, by its sender's own clock. Time stamps of TCP in
//! (RFC 7323), the excess of the way from the sender out: what the program took before, the clock has counted.

/// Linux, BSD and macOS count milliseconds.
const TICK_NS: i64 = 1_000_000;
/// Neither clock drifts by much in two of these.
const WINDOW_NS: i64 = 10_000_000_000;
/// Clocks whose rate differs by more than one in so many count something else than milliseconds.
const RATE: i64 = 100;
/// No path holds a segment for longer.
const MAX_LATE_NS: i64 = 2_000_000_000;
/// Segments before the best time is known.
const ENOUGH: u32 = 8;
/// What a tick, the drift and a busy host explain.
const NOISE_NS: i64 = 3_000_000;
/// Lateness that is not rare among a sender's segments is its clock's grain.
const RARE: u32 = 4;

/// One sender's clock against the capture's.
#[derive(Debug, Default)]
pub struct Clock {
    base: Option<(i64, u32)>,
    /// The smallest offset in the window before this one, and in this one.
    low: [Option<i64>; 2],
    window: i64,
    seen: u32,
    late: u32,
    /// It does not count milliseconds.
    odd: bool,
}

crate::pack::packed!(struct Clock { base, low, window, seen, late, odd });

impl Clock {
    /// A segment that was sent for the first time: how long the path held it beyond its best; 0 where that is not sure.
    pub fn excess(&mut self, time_ns: i64, tsval: u32) -> i64 {
        let (since, first) = *self.base.get_or_insert((time_ns, tsval));
        let ticks = i64::from(tsval.wrapping_sub(first).cast_signed());
        let elapsed = time_ns.saturating_sub(since);
        let offset = elapsed.saturating_sub(ticks.saturating_mul(TICK_NS));
        self.odd |= offset.saturating_abs() > MAX_LATE_NS + elapsed / RATE;
        if self.odd {
            return 0;
        }
        let [_, now] = self.low;
        if time_ns.saturating_sub(self.window) > WINDOW_NS {
            (self.low, self.window) = ([now, None], time_ns);
        }
        let [before, now] = &mut self.low;
        let least = now.map_or(offset, |low| low.min(offset));
        *now = Some(least);
        let best = before.map_or(least, |low| low.min(least));
        let late = offset.saturating_sub(best);
        self.seen = self.seen.saturating_add(1);
        self.late = self.late.saturating_add(u32::from(late >= NOISE_NS));
        let rare = self.late.saturating_mul(RARE) <= self.seen;
        if late < NOISE_NS || self.seen < ENOUGH || !rare {
            return 0;
        }
        late - TICK_NS
    }
}
