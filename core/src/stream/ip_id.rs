//! Counts the frames of a sender that the capture lacks, by IPv4 identifications. Works for senders that count
//! packets one by one per connection, as Linux does; returns None for others.
//!
//! A quiet host with one counter for all its packets (Windows) looks the same, and its packets to others seem to be
//! missing. So a gap counts only if the counter is shown to be the connection's own. That is the case for a server
//! that answers a SYN with identification 0, as a connection that does not exist yet has no counter (Linux,
//! ip_build_and_send_pkt). It is also the case for a client that offers timestamps, which Windows does not.

use crate::limits::{COUNTED_OWN, MAJORITY_ONE_IN, MIN_SAMPLES, NEAR_IDS, RARE_ONE_IN, SEVERAL};

/// One sender's counter.
#[derive(Debug, Clone, Copy, Default)]
pub struct IpIds {
    /// The newest identification.
    last: u16,
    /// The identification expected next.
    next: u16,
    /// Number of packets with the expected identification, or one soon after it.
    steps: u32,
    /// Number of these that were not the expected one.
    gaps: u32,
    /// Number of packets whose identification is far from the expected one.
    unrelated: u32,
    /// Number of identifications skipped.
    unseen: u32,
    /// Number of steps by one at the last packet that was no such step.
    last_break: u32,
    /// The counter is the connection's own.
    pub own: bool,
}

impl IpIds {
    /// Reads a packet's identification; `frames` is the number of frames that the network made of it (segmentation
    /// offload). Returns the number of frames missing before it; None if unknown.
    #[inline]
    pub fn packet(&mut self, id: Option<u16>, frames: u32) -> Option<u16> {
        if id == Some(self.next) && self.steps > 0 {
            self.steps = self.steps.saturating_add(1);
            (self.last, self.next) = (self.next, self.next.wrapping_add(frames as u16));
            Some(0)
        } else {
            self.unexpected(id, frames)
        }
    }

    /// Reads an identification that is not the expected one.
    fn unexpected(&mut self, id: Option<u16>, frames: u32) -> Option<u16> {
        // an unexpected 0 is written by hosts that do not number the packet
        let id = id.filter(|id| *id != 0 || self.steps > 0 && self.next == 0)?;
        let mut missing = None;
        let gap = id.wrapping_sub(self.next).cast_signed();
        if self.steps == 0 && self.unrelated == 0 {
            self.unrelated = 1; // the first packet
        } else if id == self.last {
            return None; // the same packet twice
        } else if (0..NEAR_IDS.get()).contains(&gap) {
            let min_count = if self.own {
                COUNTED_OWN.get()
            } else {
                MIN_SAMPLES.get() as u32
            };
            let is_counter = self.by_one().saturating_sub(self.last_break) >= min_count;
            missing = (is_counter || gap == 0).then_some(gap.unsigned_abs());
            self.steps = self.steps.saturating_add(1);
            self.gaps = self.gaps.saturating_add(u32::from(gap > 0));
            self.unseen = self.unseen.saturating_add(u32::from(gap.unsigned_abs()));
        } else if (-NEAR_IDS.get()..0).contains(&gap) {
            self.unseen = self.unseen.saturating_sub(1); // a late packet, counted as missing before
            self.last_break = self.by_one();
            return None;
        } else {
            self.unrelated = self.unrelated.saturating_add(1);
            self.last_break = self.by_one();
        }
        (self.last, self.next) = (id, id.wrapping_add(frames as u16));
        missing
    }

    /// Number of packets with exactly the expected identification.
    fn by_one(&self) -> u32 {
        self.steps.saturating_sub(self.gaps)
    }

    /// Reads the SYN (`answer`: the SYN/ACK): whether it shows a counter of the connection's own. `has_stamp`: with
    /// timestamps.
    pub fn handshake(&mut self, id: Option<u16>, answer: bool, has_stamp: bool) {
        self.own |= if answer { id == Some(0) } else { has_stamp };
    }

    /// Number of frames that the capture lacks before the newest one; None if unknown.
    pub fn unseen(&self) -> Option<u64> {
        let unrelated = self
            .unrelated
            .saturating_sub(2)
            .saturating_mul(RARE_ONE_IN.get() as u32);
        let gaps = self.gaps.saturating_mul(MAJORITY_ONE_IN.get() as u32);
        let are_gaps_wide = self.unseen > self.gaps.saturating_mul(SEVERAL.get() as u32);
        let is_own_or_gapless = self.own || self.unseen == 0;
        let is_conclusive = self.steps >= MIN_SAMPLES.get() as u32
            && unrelated <= self.steps
            && gaps <= self.steps
            && !are_gaps_wide
            && is_own_or_gapless;
        is_conclusive.then_some(u64::from(self.unseen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ids: impl IntoIterator<Item = u16>) -> Option<u64> {
        counted(ids, true)
    }

    fn counted(ids: impl IntoIterator<Item = u16>, own: bool) -> Option<u64> {
        let mut ip_ids = IpIds {
            own,
            ..IpIds::default()
        };
        for id in ids {
            ip_ids.packet(Some(id), 1);
        }
        ip_ids.unseen()
    }

    #[test]
    fn gaps_are_frames_that_never_came_by() {
        assert_eq!(of(1..9), None, "seven steps show no counter");
        assert_eq!(of(1..10), Some(0));
        let across_zero = [65_530, 65_531, 65_533, 65_534, 65_535, 1, 2, 3, 4, 5, 6];
        assert_eq!(of(across_zero), Some(2));
        assert_eq!(
            of([65_530, 65_531, 65_532, 65_533, 65_534, 65_535, 0, 1, 2, 0, 3]),
            Some(0)
        );
        assert_eq!(of((1..30).filter(|id| !matches!(id, 7 | 8 | 20))), Some(3));
    }

    #[test]
    fn what_was_overtaken_or_doubled_is_not_missing() {
        assert_eq!(of([1, 2, 3, 5, 6, 7, 4, 8, 9, 10, 11]), Some(0));
        assert_eq!(of([1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10]), Some(0));
        assert_eq!(
            of([1, 2, 3, 4, 0, 5, 6, 7, 8, 9, 10]),
            Some(0),
            "a RST without a number"
        );
    }

    #[test]
    fn of_a_counter_that_may_be_the_hosts_no_gap_is_told() {
        let quiet = || (1..40).filter(|id| *id != 17);
        assert_eq!((counted(quiet(), true), counted(quiet(), false)), (Some(1), None));
        assert_eq!(counted(1..40, false), Some(0), "whose it is does not matter");
        assert_eq!(counted([1, 2, 3, 5, 6, 7, 4, 8, 9, 10, 11], false), Some(0));
        let own = |id, answer, stamped| {
            let mut ids = IpIds::default();
            ids.handshake(id, answer, stamped);
            ids.own
        };
        assert!(own(Some(0), true, false) && own(Some(9), false, true));
        assert!(!own(Some(9), true, true) && !own(Some(0), false, false) && !own(None, true, true));
    }

    #[test]
    fn other_counters_tell_nothing() {
        assert_eq!(of((0..40).map(|k: u16| k.wrapping_mul(40_503))), None, "random");
        assert_eq!(of((0..40).map(|k| 100 + 2 * k)), None, "every other number");
        assert_eq!(of((0..40).map(|k| 100 + k + k / 10 * 50)), None, "shared");
        assert_eq!(of([0; 40]), None);
    }

    #[test]
    fn each_limit_holds_on_both_sides() {
        let row = |steps: u16, more: &[u16]| (1..=steps + 1).chain(more.iter().copied()).collect::<Vec<_>>();
        let near = 64; // NEAR_IDS
        // a wide gap is of a shared counter, another counter's number proves nothing
        let far = [near - 1, near].map(|gap| of(row(99, &[101 + gap])));
        assert_eq!(far, [None, Some(0)]);
        let wide = [near - 1, near].map(|gap| missing(row(99, &[101 + gap])).pop());
        assert_eq!(wide, [Some(Some(near - 1)), Some(None)]);
        let run = 8; // MIN_SAMPLES
        let steps = [run - 1, run].map(|steps| missing(row(steps, &[steps + 3])).pop());
        assert_eq!(steps, [Some(None), Some(Some(1))]);
        let own = |steps: u16| {
            let mut seen = IpIds {
                own: true,
                ..IpIds::default()
            };
            let last = row(steps, &[steps + 3]).into_iter();
            last.map(|id| seen.packet(Some(id), 1)).last()
        };
        let least = 2; // COUNTED_OWN
        assert_eq!([least - 1, least].map(own), [Some(None), Some(Some(1))]);
        let part = 20; // RARE_ONE_IN
        let unrelated = [part - 1, part].map(|steps| of(row(steps, &[5000, 9000])));
        assert_eq!(unrelated, [None, Some(0)]);
        // four gaps of eight steps, and two: MAJORITY_ONE_IN
        assert_eq!(
            [
                of([1, 2, 4, 5, 7, 8, 10, 11, 13]),
                of([1, 2, 4, 5, 7, 8, 9, 10, 11])
            ],
            [None, Some(2)]
        );
        let wide = 3; // SEVERAL
        let frames = [wide, wide + 1].map(|gap| of(row(99, &[101 + gap])));
        assert_eq!(frames, [Some(u64::from(wide)), None]);
    }

    /// What is missing before each.
    fn missing(ids: impl IntoIterator<Item = u16>) -> Vec<Option<u16>> {
        let mut seen = IpIds::default();
        ids.into_iter().map(|id| seen.packet(Some(id), 1)).collect()
    }

    #[test]
    fn a_gap_in_a_row_of_steps_by_one_is_missing() {
        let row = || 1..12;
        assert_eq!(
            missing(row().chain([12, 14, 15, 18])).split_off(11),
            [0, 1, 0, 2].map(Some)
        );
        assert_eq!(
            missing(row().chain([11, 13])).split_off(11),
            [None, Some(1)],
            "one came twice"
        );
        assert_eq!(missing((1..6).chain([8])).pop(), Some(None), "too few");
        assert_eq!(
            missing([7, 8]),
            [None, Some(0)],
            "the second is known to follow the first"
        );
        assert_eq!(
            missing(row().chain([90, 91, 93])).pop(),
            Some(None),
            "another counter"
        );
        assert_eq!(missing(row().chain([5, 12, 14])).pop(), Some(None), "an old one");
        assert_eq!(
            missing((0..40).map(|k| 100 + 2 * k)),
            [None; 40],
            "every other number"
        );
        let mut seen = IpIds::default();
        let offloaded = (0..20)
            .filter_map(|k| seen.packet(Some(1 + 4 * k), 4))
            .sum::<u16>();
        assert_eq!((offloaded, seen.packet(Some(82), 1)), (0, Some(1)));
    }

    #[test]
    fn an_offloaded_segment_takes_a_number_for_each_of_its_frames() {
        let mut seen = IpIds::default();
        for k in 0..20 {
            seen.packet(Some(1 + 4 * k), 4);
        }
        assert_eq!(seen.unseen(), Some(0));
    }
}
