//! What was sent more than once, or later than what follows it: which bytes are missing, how they came again,
//! and whether that was needed.

use super::{MAX_HOLES, MAX_PARTS, RECENT, Sender};
use crate::base::At;
use crate::judge::limits::{DOUBLE_NS, DUPLICATES, LATE_NS, NEAR_IDS, PROBE_NS, REORDERED_NS, RTO_NS};
use crate::observe::{Data, Outcome, Repair, Step, Wait};

/// Repeats that a DSACK may still name.
const RESENT: usize = 16;

#[derive(Debug, Clone, Copy)]
pub(super) struct Hole {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) seen: At,
    pub(super) next_id: Option<u16>,
    /// Shown by a packet without data: nothing of this sender came behind it, so no SACK called for a repeat.
    pub(super) tail: bool,
}

/// A repeat: which bytes, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resent {
    start: i64,
    end: i64,
    at: At,
}

impl Sender {
    /// The peer got these bytes twice: the newest repeat of them, if there was one.
    pub fn came_twice(&mut self, (start, end): (i64, i64)) -> Option<At> {
        let mut newest = self.resent.iter().rev();
        newest.find(|r| r.start < end && r.end > start).map(|r| r.at)
    }

    /// A packet of this sender without data whose number lies beyond all that was seen: the bytes below it were
    /// sent, and lost before the capture or by it (by it where the peer has acknowledged them).
    pub fn passed(&mut self, seq: i64, at: At, ip_id: Option<u16>) {
        if let Some(next) = self.next
            && seq > next
            && seq > self.una
            && self.holes.len() < MAX_HOLES
        {
            let hole = Hole {
                start: next,
                end: seq,
                seen: at,
                next_id: ip_id,
                tail: true,
            };
            self.holes.insert(next, hole);
            self.next = Some(seq);
        }
    }

    /// A segment that begins here makes a hole that cannot be remembered, or may leave too many parts of one.
    pub fn too_many_holes(&self, start: i64) -> bool {
        let parts = self.holes.len();
        parts >= MAX_PARTS || parts >= MAX_HOLES && self.next.is_some_and(|next| start > next)
    }

    /// The first hole that holds a byte of these.
    fn first_hole(&self, start: i64, end: i64) -> Option<Hole> {
        let around = self
            .holes
            .range(..=start)
            .next_back()
            .filter(|(_, hole)| hole.end > start);
        let behind = || self.holes.range(start..end).next();
        around.or_else(behind).map(|(_, hole)| *hole)
    }

    /// Every second segment and more is in the capture twice: it was taken at two points, or a mirror port sends both ways.
    pub fn is_doubled(&self) -> bool {
        self.copies > 0 && self.copies as usize > self.sent / 2
    }

    /// By its time stamp, or its IPv4 identification, it was sent before a segment that passed already: what is sent again
    /// has new ones.
    fn is_older(&self, d: &Data) -> bool {
        let last = self.recent.get(self.sent.wrapping_sub(1) % RECENT);
        let ticks = match (d.tsval, last.and_then(|last| last.tsval)) {
            (Some(now), Some(last)) => now.wrapping_sub(last).cast_signed(),
            _ => 0,
        };
        let ids = match (d.ip_id.unwrap_or(0), last.map_or(0, |last| last.ip_id)) {
            (0, _) | (_, 0) => 0,
            (now, last) => now.wrapping_sub(last).cast_signed(),
        };
        ticks < 0 || ticks == 0 && (-NEAR_IDS.get()..0).contains(&ids)
    }

    /// Bytes that were sent before, or that fill a hole.
    pub(super) fn repeat(&mut self, d: &Data, next: i64, first_copy: Option<At>) -> Outcome {
        let from = self.last.unwrap_or(d.at);
        if let Some(hole) = self.first_hole(d.start, d.end) {
            self.holes.remove(&hole.start);
            for (start, end) in [(hole.start, d.start), (d.end, hole.end)] {
                if start < end && self.holes.len() < MAX_PARTS {
                    self.holes.insert(start, Hole { start, end, ..hole });
                }
            }
            let how = match filled_how(d, &hole) {
                Repair::Fast if hole.tail => self.tail_how(d),
                how => how,
            };
            return self.repaired(d, from, how, None, Some(hole.seen));
        }
        // a network's duplicate has the original's IP identification and time stamp, a sender's repeat new ones
        let id = d.ip_id.unwrap_or(0);
        let copied = (id != 0 || d.tsval.is_some())
            && self
                .recent
                .iter()
                .any(|s| s.start == Some(d.start) && s.ip_id == id && s.tsval == d.tsval);
        let copied = copied || self.is_older(d);
        if copied && first_copy.is_some_and(|first| d.at.time_ns - first.time_ns < DOUBLE_NS.get()) {
            self.copies = self.copies.saturating_add(1);
        }
        if copied || (d.end <= self.una && d.end <= next) {
            return Outcome::Needless;
        }
        let gap = d.at.time_ns - from.time_ns;
        // a timer runs out long after the last ACK of anything: what leaves sooner was called for by that ACK
        let called = self.sacked > d.start || self.duplicates >= DUPLICATES.get();
        let heard = if called {
            self.answered
        } else {
            self.advanced.map(|a| a.ack)
        };
        let since = heard.map_or(i64::MAX, |ack| d.at.time_ns - ack.time_ns - d.own_rtt_ns);
        let silent = since >= RTO_NS.get();
        let how = if called && !silent {
            Repair::Fast
        } else if !called && self.repeats == 0 && d.end >= next && gap < 2 * d.rtt_ns + PROBE_NS.get() {
            Repair::TailProbe
        } else if silent {
            Repair::Timeout
        } else {
            Repair::Fast
        };
        self.repeats += 1;
        if self.resent.len() >= RESENT {
            self.resent.pop_front();
        }
        self.resent.push_back(Resent {
            start: d.start,
            end: d.end,
            at: d.at,
        });
        self.repaired(d, from, how, first_copy, None)
    }

    /// How a lost tail was sent again, by the time since the peer was last heard.
    fn tail_how(&self, d: &Data) -> Repair {
        let since = self
            .peer_data
            .or(self.last)
            .map_or(0, |at| d.at.time_ns - at.time_ns);
        if since < 2 * d.rtt_ns + PROBE_NS.get() + LATE_NS.get() {
            Repair::TailProbe
        } else {
            Repair::Timeout
        }
    }

    fn repaired(
        &mut self,
        d: &Data,
        from: At,
        how: Repair,
        first: Option<At>,
        filled: Option<At>,
    ) -> Outcome {
        self.taint();
        self.next = Some(self.next.map_or(d.end, |n| n.max(d.end)));
        self.pacer.again();
        self.last = Some(d.at);
        self.last_full = !d.small;
        self.collapsed |= how == Repair::Timeout;
        self.remember(d);
        Outcome::Forward(Step {
            from,
            to: d.at,
            wait: Wait::Repair { how, first, filled },
        })
    }
}

/// A hole that closes was either overtaken by later segments or lost and sent again.
fn filled_how(d: &Data, hole: &Hole) -> Repair {
    let age = d.at.time_ns - hole.seen.time_ns;
    // the sender counts its packets: an older number than the one that showed the hole was sent before it
    let older = match (d.ip_id, hole.next_id) {
        (Some(a), Some(b)) if a != 0 || b != 0 => Some((a.wrapping_sub(b) as i16) < 0),
        _ => None,
    };
    match older {
        Some(true) => Repair::Reordered,
        None if age < (d.rtt_ns * 3 / 4).max(REORDERED_NS.get()) => Repair::Reordered,
        _ if age >= RTO_NS.get() => Repair::Timeout,
        _ => Repair::Fast,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A segment on a path of 10 ms, captured beside its sender.
    fn data(time_ns: i64, start: i64, end: i64) -> Data {
        Data {
            at: At {
                frame: time_ns as u64 + 1,
                time_ns,
            },
            start,
            end,
            small: true,
            fin: false,
            pushed: true,
            mss: 1448,
            tsval: None,
            tsecr: None,
            ip_id: None,
            rtt_ns: 10 * MS,
            own_rtt_ns: 0,
            server: true,
            pool: 0,
        }
    }

    /// A sender of one hundred bytes, at 0.
    fn sent() -> Sender {
        let mut sender = Sender::default();
        sender.data(&data(0, 0, 100), 0, None);
        sender
    }

    /// How these bytes came again, so long after they left.
    fn again(mut sender: Sender, time_ns: i64) -> Option<Repair> {
        match sender.data(&data(time_ns, 0, 100), 0, None) {
            Outcome::Forward(Step {
                wait: Wait::Repair { how, .. },
                ..
            }) => Some(how),
            _ => None,
        }
    }

    #[test]
    fn a_hole_closes_soon_or_by_a_timer_or_as_its_number_tells() {
        let how = |age, number: Option<u16>, behind: Option<u16>, rtt_ns| {
            let seen = At { frame: 1, time_ns: 0 };
            let hole = Hole {
                start: 0,
                end: 100,
                seen,
                next_id: behind,
                tail: false,
            };
            let late = Data {
                ip_id: number,
                rtt_ns,
                ..data(age, 0, 100)
            };
            filled_how(&late, &hole)
        };
        let unnumbered = |age, rtt| how(age, None, Some(6), rtt);
        assert_eq!(unnumbered(3 * MS - 1, 0), Repair::Reordered);
        assert_eq!(unnumbered(3 * MS, 0), Repair::Fast);
        assert_eq!(
            unnumbered(6 * MS - 1, 8 * MS),
            Repair::Reordered,
            "three quarters of a round trip"
        );
        assert_eq!(unnumbered(6 * MS, 8 * MS), Repair::Fast);
        assert_eq!(unnumbered(190 * MS - 1, 0), Repair::Fast);
        assert_eq!(unnumbered(190 * MS, 0), Repair::Timeout);
        assert_eq!(
            how(300 * MS, Some(5), Some(6), 0),
            Repair::Reordered,
            "an older number"
        );
        assert_eq!(how(300 * MS, Some(0), Some(6), 0), Repair::Reordered);
        assert_eq!(
            (how(1, Some(6), Some(6), 0), how(1, Some(7), Some(6), 0)),
            (Repair::Fast, Repair::Fast)
        );
        assert_eq!(how(1, Some(5), Some(0), 0), Repair::Fast);
        assert_eq!(how(1, Some(0), Some(0), 0), Repair::Reordered, "nobody counts");
    }

    #[test]
    fn a_tail_is_probed_until_two_round_trips_and_the_probe_timer() {
        let how = |time_ns| sent().tail_how(&data(time_ns, 0, 100));
        assert_eq!(
            (how(275 * MS - 1), how(275 * MS)),
            (Repair::TailProbe, Repair::Timeout)
        );
        assert_eq!(again(sent(), 235 * MS - 1), Some(Repair::TailProbe));
        assert_eq!(again(sent(), 235 * MS), Some(Repair::Timeout));
        let mut more = sent();
        more.data(&data(0, 100, 200), 0, None);
        assert_eq!(again(more, 200 * MS), Some(Repair::Timeout), "no tail");
    }

    #[test]
    fn three_duplicates_call_for_a_repeat_and_silence_for_a_timer() {
        let how = |duplicates, repeats, time_ns| {
            let mut sender = sent();
            (sender.duplicates, sender.repeats) = (duplicates, repeats);
            sender.answered = Some(At { frame: 1, time_ns: 0 });
            again(sender, time_ns)
        };
        assert_eq!(
            (how(2, 0, MS), how(3, 0, MS)),
            (Some(Repair::TailProbe), Some(Repair::Fast))
        );
        assert_eq!(
            (how(3, 0, 190 * MS - 1), how(3, 0, 190 * MS)),
            (Some(Repair::Fast), Some(Repair::Timeout))
        );
        assert_eq!(
            how(2, 1, MS),
            Some(Repair::Timeout),
            "nothing was acknowledged since"
        );
        let sacked = |sacked| {
            let mut sender = sent();
            (sender.sacked, sender.answered) = (sacked, Some(At { frame: 1, time_ns: 0 }));
            again(sender, MS)
        };
        assert_eq!(
            (sacked(0), sacked(1)),
            (Some(Repair::TailProbe), Some(Repair::Fast))
        );
        let acknowledged = |una| {
            let mut sender = sent();
            sender.una = una;
            again(sender, MS)
        };
        assert_eq!(
            (acknowledged(99), acknowledged(100)),
            (Some(Repair::TailProbe), None),
            "needless"
        );
    }

    #[test]
    fn a_second_point_of_capture_lies_near_the_first() {
        let copies = |time_ns| {
            let mut sender = Sender::default();
            let numbered = |time_ns| Data {
                ip_id: Some(5),
                ..data(time_ns, 0, 100)
            };
            sender.data(&numbered(0), 0, None);
            let first = Some(At { frame: 1, time_ns: 0 });
            let needless = matches!(sender.data(&numbered(time_ns), 0, first), Outcome::Needless);
            (needless, sender.copies, sender.is_doubled())
        };
        assert_eq!(copies(20 * MS - 1), (true, 1, true));
        assert_eq!(copies(20 * MS), (true, 0, false));
    }

    #[test]
    fn the_newest_repeats_of_these_bytes_are_remembered() {
        let mut sender = sent();
        for number in 1..=RESENT as i64 + 3 {
            sender.data(&data(number * MS, 0, 100), 0, None);
        }
        assert_eq!(sender.resent.len(), RESENT);
        assert_eq!(
            sender.came_twice((99, 300)).map(|at| at.time_ns),
            Some((RESENT as i64 + 3) * MS)
        );
        assert_eq!(
            (sender.came_twice((100, 300)), sender.came_twice((-50, 0))),
            (None, None)
        );
        assert!(sender.came_twice((-50, 1)).is_some());
    }

    #[test]
    fn what_was_sent_below_a_number_is_a_hole_once() {
        let at = At { frame: 9, time_ns: 9 };
        let holes = |una, seq| {
            let mut sender = sent();
            sender.una = una;
            sender.passed(seq, at, None);
            (sender.holes.len(), sender.next)
        };
        assert_eq!((holes(0, 100), holes(0, 101)), ((0, Some(100)), (1, Some(101))));
        assert_eq!(
            (holes(150, 150), holes(150, 151)),
            ((0, Some(100)), (1, Some(151)))
        );
        let mut sender = sent();
        for number in 0..MAX_HOLES as i64 + 5 {
            assert_eq!(sender.too_many_holes(1_000_000), number >= MAX_HOLES as i64);
            sender.passed(200 + number, at, None);
        }
        assert_eq!(sender.holes.len(), MAX_HOLES);
        assert!(!sender.too_many_holes(sender.next.unwrap()), "it follows");
        assert_eq!(sender.first_hole(100, 101).map(|hole| hole.end), Some(200));
        assert_eq!(sender.first_hole(199, 200).map(|hole| hole.start), Some(100));
        assert_eq!(sender.first_hole(200, 201).map(|hole| hole.start), Some(200));
    }

    /// The last segment, and then every other one: no more parts of that hole are remembered than is stated, and that is told.
    #[test]
    fn what_is_left_of_holes_is_bounded_and_told() {
        let (mut sender, mut told, mut most) = (Sender::default(), false, 0);
        for number in 0..9_000i64 {
            let start = match number {
                0 => 0,
                1 => 10_000_000,
                _ => 200 * number,
            };
            told |= sender.too_many_holes(start);
            let data = data(number * 1000, start, start + 100);
            sender.data(&data, 0, None);
            most = most.max(sender.holes.len());
        }
        assert_eq!((told, most), (true, MAX_PARTS));
        let mut behind = 0;
        for (start, hole) in &sender.holes {
            assert!(*start == hole.start && behind <= *start && hole.start < hole.end);
            behind = hole.end;
        }
    }
}
