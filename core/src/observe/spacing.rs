//! Spacing of segments: a histogram of the time per full segment, weighted by bytes.
//!
//! Where a queue stands before the slowest line, the median is the time of a segment on that line, whatever the pauses
//! between bursts.

/// Number of bins: four per octave, from 2^`LEAST_BITS` ns (1 us) on.
const BINS: usize = 96;
const LEAST_BITS: usize = 10;

/// The histogram.
#[derive(Debug, Clone)]
pub struct Spacing {
    bins: [u32; BINS],
}

impl Default for Spacing {
    fn default() -> Self {
        Spacing { bins: [0; BINS] }
    }
}

impl Spacing {
    /// Adds a segment of `bytes` that came `gap` ns after the one before, scaled to a full segment of `mss` bytes.
    pub fn add(&mut self, gap: i64, bytes: u32, mss: u16) {
        let mss = u64::from(mss.max(1));
        let segment_ns = (gap.max(0) as u64).saturating_mul(mss) / u64::from(bytes.max(1));
        let weight = u64::from(bytes).div_ceil(mss).min(1 << 16) as u32;
        if let Some(bin) = self.bins.get_mut(bin(segment_ns)) {
            *bin = bin.saturating_add(weight);
        }
    }

    /// Returns the median time per segment, in ns, as the middle of its bin.
    pub fn median(&self) -> Option<i64> {
        let total: u64 = self.bins.iter().map(|weight| u64::from(*weight)).sum();
        let mut sum = 0;
        for (bin, weight) in self.bins.iter().enumerate() {
            sum += u64::from(*weight);
            if *weight > 0 && sum * 2 >= total {
                return Some(middle(bin));
            }
        }
        None
    }
}

/// Returns the bin of a time.
fn bin(ns: u64) -> usize {
    let bits = 63 - (ns | 1).leading_zeros() as usize;
    if bits < LEAST_BITS {
        return 0;
    }
    let quarter = (ns >> (bits - 2)) & 3;
    ((bits - LEAST_BITS) * 4 + quarter as usize + 1).min(BINS - 1)
}

/// Returns the middle of a bin.
fn middle(bin: usize) -> i64 {
    let Some(steps) = bin.checked_sub(1) else {
        return 1 << (LEAST_BITS - 1);
    };
    let (octave, quarter) = (steps / 4, steps % 4);
    let unit = 1_i64 << (LEAST_BITS + octave - 3);
    unit * (2 * (quarter as i64 + 4) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_within_an_eighth() {
        for ns in [1_500, 12_000, 120_000, 1_200_000, 48_000_000] {
            let mut spacing = Spacing::default();
            (0..9).for_each(|_| spacing.add(ns, 1448, 1448));
            spacing.add(ns * 50, 1448, 1448);
            let median = spacing.median().unwrap();
            assert!((median - ns).abs() * 8 <= ns, "{ns}: {median}");
        }
    }

    #[test]
    fn two_segments_take_twice_as_long() {
        let mut spacing = Spacing::default();
        spacing.add(2_400_000, 2896, 1448);
        let median = spacing.median().unwrap();
        assert!((median - 1_200_000).abs() * 8 <= 1_200_000);
    }
}
