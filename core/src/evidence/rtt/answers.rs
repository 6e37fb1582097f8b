//! Who answered, and how soon a kernel does by itself: its handshakes.

use super::{Rtt, brief};

/// Handshakes kept; the newest replace the oldest.
const SHAKEN: usize = 16;
/// Room for so many is made at a time: the least that the heap gives.
const GROWN: usize = 4;

impl Rtt {
    /// Whether a kernel has ever answered by itself: what programs alone answer may take longer than the path does.
    pub fn has_kernels_answer(&self) -> bool {
        self.kernel
    }

    /// Whether one answer of a program is all that was ever seen: it shows nothing of the path.
    pub fn is_one_answer(&self) -> bool {
        self.count == 1 && !self.kernel
    }

    pub(super) fn add_handshake_rtt(&mut self, sample: i64) {
        self.add(sample, false);
        self.handshake = Some(self.handshake.map_or(sample, |soonest| soonest.min(sample)));
        if self.shaken.len() < SHAKEN {
            if self.shaken.len() == self.shaken.capacity() {
                self.shaken.reserve_exact(GROWN); // most pairs of addresses have few
            }
            self.shaken.push(brief(sample));
        } else if let Some(slot) = self.shaken.get_mut(self.shakes % SHAKEN) {
            *slot = brief(sample);
        }
        self.shakes += 1;
    }

    /// How long its kernel took at most for three of four of the newest handshakes: no program has a part in those.
    pub fn kernel_took(&self) -> Option<i64> {
        let mut took = [0; SHAKEN];
        let took = took.get_mut(..self.shaken.len())?;
        took.copy_from_slice(&self.shaken);
        let third = (took.len() * 3).div_ceil(4).checked_sub(1)?;
        Some(i64::from(*took.select_nth_unstable(third).1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_four_of_the_newest_handshakes_are_the_kernels_time() {
        let took = |shakes: &[i64]| {
            let mut rtt = Rtt::default();
            shakes.iter().for_each(|ns| rtt.add_handshake_rtt(*ns));
            rtt.add(1, false); // an ACK alone is less work
            rtt.kernel_took()
        };
        assert_eq!(took(&[]), None);
        assert_eq!((took(&[20]), took(&[40, 10, 20, 30])), (Some(20), Some(30)));
        let mut slow_once: Vec<i64> = vec![900; 16];
        slow_once.extend([20; 13]);
        assert_eq!((took(&slow_once), took(&slow_once[..27])), (Some(20), Some(900)));
    }
}
