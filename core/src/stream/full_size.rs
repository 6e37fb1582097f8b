//! Estimates the payload of a full segment of one side. The MSS options are an upper bound only: a path with a
//! smaller MTU, or an option in every segment (MPTCP, MD5), leaves less. Without the SYNs the options are unknown.

use crate::facts::Facts;
use crate::limits::{MIN_SAMPLES, SMALLEST_MSS, USUAL_MSS};
use crate::observe::is_small;

/// The estimate for one side.
///
/// Kernels set PSH at the end of what a program wrote (tcp_mark_push). A segment without PSH, although the window had
/// room, is therefore a full one: the program's data goes on after it.
#[derive(Debug, Clone, Copy)]
pub struct FullSize {
    /// The estimate, in bytes.
    mss: u16,
    /// Upper bound by the options of both sides.
    announced: u16,
    /// Size of a segment without PSH, below `mss`; one more of that size confirms it. 0 for none.
    candidate: u16,
    /// Number of times that `mss` was lowered.
    learnt: u8,
    /// Number of small segments without PSH, before any with PSH.
    unpushed: u8,
}

impl Default for FullSize {
    fn default() -> Self {
        FullSize {
            mss: USUAL_MSS.get(),
            announced: USUAL_MSS.get(),
            candidate: 0,
            learnt: 0,
            unpushed: 0,
        }
    }
}

impl FullSize {
    #[inline(always)]
    pub(super) fn mss(&self) -> u32 {
        u32::from(self.mss)
    }

    /// Sets the upper bound by the options.
    pub(super) fn announce(&mut self, announced: u16) {
        if self.mss == self.announced || self.mss > announced {
            self.mss = announced;
        }
        self.announced = announced;
    }

    /// Whether the segment is smaller than a full one, and the end of what the program wrote.
    #[inline(always)]
    pub(super) fn small(&mut self, len: u32, pushed: bool, fin: bool, facts: &Facts) -> bool {
        len > 0
            && is_small(len, self.mss())
            && (pushed && self.learnt == 0 || self.is_end(len, pushed, fin, facts))
    }

    /// Whether a small segment ends what the program wrote. Learns from those that do not.
    #[cold]
    #[inline(never)]
    fn is_end(&mut self, len: u32, pushed: bool, fin: bool, facts: &Facts) -> bool {
        if pushed && (len < self.mss() || len > u32::from(self.announced)) || fin {
            return true;
        }
        if len > SMALLEST_MSS.get() && facts.is_ordinary && facts.flags == 0 {
            self.learn(len);
        }
        pushed && is_small(len, self.mss()) || !pushed && self.never_pushes(facts)
    }

    /// Whether the sender never sets PSH, so that its absence proves nothing.
    fn never_pushes(&mut self, facts: &Facts) -> bool {
        let since_push = facts.push_bytes_sent.map(i64::from);
        let has_never_pushed = since_push.is_some_and(|bytes| bytes >= facts.next_seq - 1);
        self.unpushed += u8::from(has_never_pushed && self.unpushed < MIN_SAMPLES.get() as u8);
        has_never_pushed && self.unpushed == MIN_SAMPLES.get() as u8
    }

    /// Lowers the estimate after two segments of one size.
    fn learn(&mut self, len: u32) {
        // a captured frame may contain several segments of one size (TSO, GRO)
        let mut frames = len.div_ceil(u32::from(self.announced))..=len / SMALLEST_MSS.get();
        let Some(frames) = frames.find(|frames| len.is_multiple_of(*frames)) else {
            return;
        };
        let size = (len / frames) as u16; // at most the announced MSS
        let before = if self.learnt > 0 { self.mss } else { self.candidate };
        let common = common_divisor(size, before);
        if size < self.mss
            && (before == 0 || u32::from(common) < SMALLEST_MSS.get())
            && size != self.candidate
        {
            self.candidate = size; // the next one decides: a middlebox may have split a single one
        } else if usize::from(self.learnt) < MIN_SAMPLES.get() {
            self.learnt += 1;
            self.mss = if u32::from(common) < SMALLEST_MSS.get() {
                size
            } else {
                common
            };
        } else {
            self.mss = self.announced;
        }
    }
}

fn common_divisor(a: u16, b: u16) -> u16 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: u32 = 1448;
    const PUSHED: bool = true;
    const NOT: bool = false;

    struct Side {
        full: FullSize,
        sent: i64,
        since_push: u32,
    }

    impl Side {
        fn new() -> Self {
            let mut full = FullSize::default();
            full.announce(SAID as u16);
            Side {
                full,
                sent: 1,
                since_push: 0,
            }
        }

        /// Whether a segment is small, and the MSS after it.
        fn sends(&mut self, len: u32, pushed: bool) -> (bool, u32) {
            self.since_push += len;
            self.sent += i64::from(len);
            let facts = Facts {
                is_ordinary: true,
                next_seq: self.sent,
                push_bytes_sent: Some(self.since_push),
                ..Facts::default()
            };
            let small = self.full.small(len, pushed, false, &facts);
            if pushed {
                self.since_push = 0;
            }
            (small, self.full.mss())
        }

        fn all<const N: usize>(&mut self, segments: [(u32, bool); N]) -> [(bool, u32); N] {
            segments.map(|(len, pushed)| self.sends(len, pushed))
        }
    }

    const FULL: (bool, u32) = (false, SAID);
    const SMALL: (bool, u32) = (true, SAID);

    #[test]
    fn what_is_not_pushed_is_full() {
        let announced = [(1448, NOT), (2896, NOT), (612, PUSHED), (1448, PUSHED)];
        assert_eq!(Side::new().all(announced), [FULL, FULL, SMALL, FULL]);
        let less = [(1360, NOT), (1360, NOT), (1360, PUSHED), (88, PUSHED)];
        assert_eq!(
            Side::new().all(less),
            [FULL, (false, 1360), (false, 1360), (true, 1360)]
        );
        let in_one_frame = [(13600, NOT), (27200, NOT), (13688, PUSHED)];
        assert_eq!(Side::new().all(in_one_frame), [FULL, (false, 1360), (true, 1360)]);
    }

    #[test]
    fn each_limit_holds_on_both_sides() {
        let usual = 1460; // USUAL_MSS
        let small = |len| FullSize::default().small(len, true, false, &Facts::default());
        assert_eq!([usual / 2, usual - 1, usual].map(small), [true, true, false]);
        let least = 536; // SMALLEST_MSS
        let learnt = [least, least + 1].map(|len| Side::new().all([(len, NOT), (len, NOT)])[1].1);
        assert_eq!(learnt, [SAID, least + 1]);
        let mut side = Side::new();
        let learnt: Vec<u32> = (0..=8)
            .map(|i| side.all([(1400 - 7 * i, NOT), (1400 - 7 * i, NOT)])[1].1)
            .collect();
        let mut sizes: Vec<u32> = (0..8).map(|i| 1400 - 7 * i).collect();
        sizes.push(SAID);
        assert_eq!(learnt, sizes);
    }

    #[test]
    fn one_that_was_cut_in_two_changes_nothing() {
        let mut side = Side::new();
        side.all([(1388, NOT), (1388, NOT), (300, PUSHED)]);
        let cut = [(616, NOT), (772, NOT), (616, NOT), (772, NOT), (1388, NOT)];
        assert_eq!(side.all(cut), [(false, 1388); 5]);
    }

    #[test]
    fn paths_change() {
        let mut side = Side::new();
        side.all([(1360, NOT), (1360, NOT), (1300, NOT)]);
        assert_eq!(side.sends(1300, NOT), (false, 1300));
        assert_eq!(side.sends(1448, PUSHED), FULL);
    }

    #[test]
    fn what_changes_all_the_time_is_no_size() {
        let mut side = Side::new();
        side.sends(100, PUSHED);
        for i in 0..40 {
            side.sends(600 + 7 * (i / 2), NOT);
        }
        assert_eq!(side.sends(1000, PUSHED), SMALL);
    }

    /// The first few segments of a sender that never sets PSH count as full.
    #[test]
    fn who_never_pushes_sends_small_ones_all_the_same() {
        let mut side = Side::new();
        let small: Vec<bool> = (0..10).map(|_| side.sends(100, NOT).0).collect();
        assert_eq!(small, [[false; 5], [false, false, true, true, true]].concat());
        side.sends(100, PUSHED);
        assert_eq!(side.sends(100, NOT), FULL);
    }
}
