//! Whether the kernel's pacing may have made a gap (SO_MAX_PACING_RATE, BBR, fq). It waits after a burst for as long as
//! its rate needs for those bytes (tcp_update_skb_after_send).
//!
//! A program's pause can look the same, unless the sender was faster before. Gaps in proportion to the bytes before
//! them show pacing. So do tails of messages that left at once before pacing begins (`UNPACED`), and wait in every
//! later message.

use crate::limits::{ALIKE, BURST_NS, LARGE_RATIO, NOISE_NS, RARE_ONE_IN, SEVERAL, SLOWEST, UNPACED};
use crate::observe::Data;

/// Sequence number of no burst.
const NOTHING: i64 = 0;

/// A sender's gaps after bursts of full segments.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pacer {
    /// Sequence number of the first full segment of the current burst, or `NOTHING`.
    burst_start_seq: i64,
    /// Highest rate seen, in bytes per second.
    fastest_rate: u32,
    /// Rate by the newest gap.
    rate: u32,
    /// Bytes before that gap.
    bytes: u32,
    /// Score of equal rates after bursts of different lengths.
    alike_score: u8,
    /// Messages of several segments that left whole before pacing begins; reset if one does later.
    whole_messages: u8,
    /// The current burst began before pacing does.
    began_early: bool,
}

impl Pacer {
    /// Whether a segment is of interest: it is full, or part of a burst.
    #[inline(always)]
    pub(super) fn is_relevant(&self, data: &Data) -> bool {
        self.burst_start_seq != NOTHING || data.end_seq - data.start_seq >= i64::from(data.mss)
    }

    /// Takes a segment that left `gap` ns after the one before; `sent` is the number of earlier segments.
    #[cold]
    #[inline(never)]
    pub(super) fn sent(&mut self, data: &Data, gap: i64, sent: usize) {
        if self.burst_start_seq != NOTHING && gap > BURST_NS.get() {
            self.end_burst(data.start_seq, gap);
            self.burst_start_seq = NOTHING;
        } else if self.burst_start_seq != NOTHING && data.is_small {
            self.whole_messages = if self.began_early {
                self.whole_messages.saturating_add(1)
            } else {
                0
            };
        }
        if self.burst_start_seq == NOTHING && data.end_seq - data.start_seq >= i64::from(data.mss) {
            self.burst_start_seq = data.start_seq;
            self.began_early = (sent as i64) < UNPACED.get();
        }
    }

    /// Takes the gap that ends a burst.
    fn end_burst(&mut self, start: i64, gap: i64) {
        if self.began_early {
            return;
        }
        let (bytes, rate) = self.rate(start, gap);
        if self.rate != 0 && !self.is_alike(rate) {
            self.whole_messages = 0;
        }
        self.fastest_rate = self.fastest_rate.max(rate);
        if !self.is_alike(rate) {
            self.alike_score = self.alike_score.saturating_sub(1);
        } else if bytes.abs_diff(self.bytes) > self.bytes / LARGE_RATIO.get() as u32 {
            self.alike_score = (self.alike_score + 2).min(RARE_ONE_IN.get() as u8);
        }
        (self.rate, self.bytes) = (rate, bytes);
    }

    /// Forgets the burst upon a retransmission, which makes its bytes uncertain.
    pub(super) fn forget_burst(&mut self) {
        self.burst_start_seq = NOTHING;
    }

    /// Returns the bytes before a gap, and the pacing rate in bytes per second that would explain the gap.
    fn rate(&self, start: i64, gap: i64) -> (u32, u32) {
        let bytes = u32::try_from(start.saturating_sub(self.burst_start_seq)).unwrap_or(0);
        let rate = u64::from(bytes) * 1_000_000_000 / gap.unsigned_abs().max(1);
        (bytes, u32::try_from(rate).unwrap_or(u32::MAX))
    }

    fn is_alike(&self, rate: u32) -> bool {
        rate.abs_diff(self.rate) <= self.rate / ALIKE.get()
    }

    /// Whether gaps were in proportion to the bytes before them, and this one is too.
    #[inline(always)]
    pub(super) fn keeps(&self, start: i64, gap: i64) -> bool {
        self.alike_score >= SEVERAL.get() as u8 && self.is_paced(start, gap)
    }

    #[cold]
    #[inline(never)]
    fn is_paced(&self, start: i64, gap: i64) -> bool {
        self.burst_start_seq != NOTHING && self.is_alike(self.rate(start, gap).1)
    }

    /// Whether this is the tail of a message that left whole before pacing begins, and waits as long in each later one.
    #[inline(always)]
    pub(super) fn holds_tail(&self, data: &Data, gap: i64, sent: usize) -> bool {
        self.whole_messages >= SEVERAL.get() as u8
            && data.is_small
            && self.may_have_held(data.start_seq, gap, sent, data.mss)
            && { self.rate == 0 || self.is_alike(self.rate(data.start_seq, gap).1) }
    }

    /// Whether pacing may have made the gap before a segment; `full` is the size of a full one.
    #[inline(always)]
    pub(super) fn may_have_held(&self, start: i64, gap: i64, sent: usize, full: u32) -> bool {
        self.burst_start_seq != NOTHING && gap >= NOISE_NS.get() && self.is_possible(start, gap, sent, full)
    }

    #[cold]
    #[inline(never)]
    fn is_possible(&self, start: i64, gap: i64, sent: usize, full: u32) -> bool {
        // a segment in the capture may be many on the wire (offloads)
        let max_segments = sent as i64 + start / i64::from(full.max(1));
        let rate = self.rate(start, gap).1;
        max_segments >= UNPACED.get()
            && rate >= SLOWEST.get()
            && rate.saturating_mul(LARGE_RATIO.get() as u32) >= self.fastest_rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u32 = 1448;

    fn sent(pacer: &mut Pacer, start: i64, bytes: i64, gap: i64, sent: usize) {
        pacer.sent(&data(start, bytes), gap, sent);
    }

    fn data(start: i64, bytes: i64) -> Data {
        Data {
            start_seq: start,
            end_seq: start + bytes,
            is_pushed: true,
            mss: FULL,
            is_from_server: true,
            ..Data::default()
        }
    }

    /// Pacer after segments of these lengths, each followed by this gap in ms, and a last one of `bytes`; with its end.
    fn after(gaps: &[(i64, f64)], bytes: i64) -> (Pacer, i64) {
        let (mut pacer, mut start, mut gap) = (Pacer::default(), 100_000, 50.0);
        for (bytes, next) in gaps.iter().chain([&(bytes, 0.0)]) {
            sent(&mut pacer, start, *bytes, (gap * 1e6) as i64, 10);
            (start, gap) = (start + bytes, *next);
        }
        (pacer, start)
    }

    #[test]
    fn a_pause_may_be_the_pacing_s_unless_its_sender_was_faster() {
        let held = |gaps: &[(i64, f64)], bytes: i64, gap: f64| {
            let (pacer, start) = after(gaps, bytes);
            pacer.may_have_held(start, (gap * 1e6) as i64, 10, FULL)
        };
        assert!(held(&[], 2896, 7.2));
        assert!(held(&[(2896, 7.2), (3000, 40.0)], 2896, 7.2));
        assert!(!held(&[(2896, 1.5)], 2896, 7.2)); // it was faster
        assert!(!held(&[], 2896, 95.0)); // nobody paces so slowly
        assert!(!held(&[], 200, 4.0) && !held(&[], 2896, 2.0));
        let mut new = Pacer::default();
        sent(&mut new, 1, 2896, 0, 0);
        assert!(!new.may_have_held(2897, 7_200_000, 2, FULL)); // nor so early
        assert!(new.may_have_held(20_273, 7_200_000, 3, FULL)); // fourteen segments, put together by a card
    }

    #[test]
    fn tails_that_left_at_once_before_anything_was_paced_are_paced_later() {
        // messages of two full segments and a tail: how long the tail of each waited
        let last = |waits: &[f64]| {
            let (mut pacer, mut start, mut count, mut held) = (Pacer::default(), 1, 0, false);
            for wait in waits {
                for (bytes, gap) in [(FULL, 6e6), (FULL, 1e4), (200, wait * 1e6)] {
                    let data = Data {
                        is_small: bytes < FULL,
                        ..data(start, i64::from(bytes))
                    };
                    held = pacer.holds_tail(&data, gap as i64, count);
                    pacer.sent(&data, gap as i64, count);
                    (start, count) = (data.end_seq, count + 1);
                }
            }
            held
        };
        assert!(last(&[0.0, 0.0, 0.0, 0.0, 78.0]));
        assert!(last(&[0.0, 0.0, 0.0, 0.0, 78.0, 79.0, 78.0]));
        assert!(last(&[0.0, 0.0, 78.0, 0.0, 78.0]), "two are enough");
        assert!(!last(&[0.0, 78.0, 78.0, 78.0, 78.0]), "one is not");
        assert!(
            !last(&[0.0, 0.0, 0.0, 0.0, 78.0, 60.0, 78.0]),
            "a program's time wavers"
        );
        assert!(
            !last(&[0.0, 0.0, 0.0, 0.0, 78.0, 0.0, 78.0]),
            "nothing paced that one"
        );
        assert!(!last(&[0.0, 0.0, 0.0, 0.0, 100.0]), "nobody paces so slowly");
    }

    #[test]
    fn a_pace_shows_in_gaps_that_are_in_proportion() {
        let paced = [(2896, 7.2), (9000, 22.4), (1448, 3.6), (7000, 17.5)];
        let (pacer, start) = after(&paced, 3000);
        assert!(pacer.keeps(start, 7_500_000) && !pacer.keeps(start, 9_500_000));
        let paused = [(2896, 7.2), (9000, 7.2), (1448, 7.2), (7000, 7.2), (2896, 7.2)];
        let (pacer, start) = after(&paused, 3000);
        assert!(!pacer.keeps(start, 3_000_000) && !pacer.keeps(start, 7_200_000));
        let alike = [(2896, 7.2); 9];
        let (pacer, start) = after(&alike, 2896);
        assert!(!pacer.keeps(start, 7_200_000)); // a program that always does the same
    }

    #[test]
    fn the_limits_of_pacing_are_kept_to_the_byte() {
        let held = |fastest: f64, bytes: i64, gap_ns: i64| {
            let (pacer, start) = after(&[(2896, fastest)], bytes);
            pacer.may_have_held(start, gap_ns, 10, FULL)
        };
        assert!(
            held(5.0, 2896, 20_000_000) && !held(5.0, 2896, 20_100_000),
            "a large ratio"
        );
        assert!(
            held(90.5, 3200, 100_000_000) && !held(90.5, 3200, 100_010_000),
            "SLOWEST"
        );
        assert!(
            held(2.0, 2896, 3_000_000) && !held(2.0, 2896, 2_999_999),
            "NOISE_NS"
        );
        let mut new = Pacer::default();
        sent(&mut new, 1, 2896, 0, 0);
        let start = i64::from(2 * FULL);
        assert!(new.may_have_held(start, 7_200_000, 8, FULL), "UNPACED");
        assert!(!new.may_have_held(start, 7_200_000, 7, FULL));
        let rated = Pacer { rate: 320_000, ..new };
        assert!(
            rated.is_alike(330_000) && !rated.is_alike(330_001) && !rated.is_alike(309_999),
            "ALIKE"
        );
        assert!(
            rated.burst_start_seq == 1
                && rated.is_relevant(&data(1, 7))
                && !Pacer::default().is_relevant(&data(1, 1447))
        );
    }

    #[test]
    fn what_is_in_proportion_counts_twice_and_what_is_not_takes_one_away() {
        // a thousand bytes per millisecond
        let alike = |lengths: &[i64]| {
            let gaps: Vec<_> = lengths
                .iter()
                .map(|bytes| (*bytes, *bytes as f64 / 1_000.0))
                .collect();
            after(&gaps, 2_000).0.alike_score
        };
        assert_eq!(
            alike(&[4_000, 5_000]),
            0,
            "LARGE_RATIO: by a quarter is by too little"
        );
        assert_eq!((alike(&[4_000, 5_001]), alike(&[4_000, 6_000, 4_000])), (2, 4));
        assert_eq!(alike(&[4_000, 6_000].repeat(20)), 20, "RARE_ONE_IN");
        let (mut pacer, start) = after(&[(4_000, 4.0), (6_000, 6.0), (4_000, 4.0)], 2_000);
        assert!(pacer.keeps(start, 2_000_000), "SEVERAL");
        pacer.alike_score = 2;
        assert!(!pacer.keeps(start, 2_000_000));
    }

    #[test]
    fn what_leaves_together_begins_with_a_full_segment() {
        let begun = |bytes| {
            let mut pacer = Pacer::default();
            sent(&mut pacer, 5, bytes, 0, 10);
            pacer.burst_start_seq
        };
        assert_eq!((begun(1447), begun(1448)), (NOTHING, 5));
        assert!(
            !Pacer::default().is_relevant(&data(1, 1447)) && Pacer::default().is_relevant(&data(1, 1448))
        );
        // and ends with a gap
        let ended = |gap| {
            let mut pacer = Pacer::default();
            sent(&mut pacer, 5, 1448, 0, 10);
            sent(&mut pacer, 1453, 1448, gap, 11);
            pacer.burst_start_seq
        };
        assert_eq!((ended(200_000), ended(200_001)), (5, 1453));
    }

    #[test]
    fn nothing_before_the_tenth_segment_shows_a_rate() {
        let rate = |segments| {
            let mut pacer = Pacer::default();
            sent(&mut pacer, 1, 1448, 0, segments);
            sent(&mut pacer, 1449, 1448, 1_000_000, segments + 1);
            pacer.rate
        };
        assert_eq!((rate(9), rate(10)), (0, 1_448_000));
    }

    #[test]
    fn messages_that_left_whole_before_anything_was_paced_are_counted() {
        let whole = |segments| {
            let mut pacer = Pacer {
                whole_messages: 5,
                ..Pacer::default()
            };
            sent(&mut pacer, 1, 1448, 0, segments);
            let tail = Data {
                is_small: true,
                ..data(1449, 100)
            };
            pacer.sent(&tail, 0, segments + 1);
            pacer.whole_messages
        };
        assert_eq!((whole(0), whole(9), whole(10)), (6, 6, 0));
        // another rate shows that the waits are the program's
        let after_gap = |rate| {
            let mut pacer = Pacer {
                burst_start_seq: 1,
                whole_messages: 5,
                rate,
                ..Pacer::default()
            };
            sent(&mut pacer, 1449, 1448, 1_000_000, 20);
            pacer.whole_messages
        };
        assert_eq!(
            (after_gap(1_448_000), after_gap(1_000_000), after_gap(0)),
            (5, 0, 5)
        );
    }

    #[test]
    fn three_whole_messages_make_a_tails_wait_the_pacings() {
        let held = |whole, rate, gap, bytes| {
            let pacer = Pacer {
                burst_start_seq: 1,
                whole_messages: whole,
                rate,
                ..Pacer::default()
            };
            let tail = Data {
                is_small: bytes < 1448,
                ..data(2897, bytes)
            };
            pacer.holds_tail(&tail, gap, 20)
        };
        assert!(held(3, 0, 7_200_000, 100) && !held(2, 0, 7_200_000, 100));
        assert!(!held(3, 0, 7_200_000, 1448), "no tail");
        assert!(!held(3, 0, 2_999_999, 100), "a busy host");
        assert!(held(3, 400_000, 7_200_000, 100) && !held(3, 300_000, 7_200_000, 100));
    }
}
