//! The unacknowledged segments of one direction, in the order in which they were sent.
//!
//! Nearly always their sequence numbers rise without overlap, so that both ends of the list are the extremes. Long
//! lists with repeats or disorder are kept in a tree by first byte (`Sorted`), where a segment costs O(log n); short
//! ones are scanned. Lists whose numbers are too far apart for an order keep only the first `MAX_UNSORTED` segments.

use super::Flow;
use std::collections::{BTreeMap, VecDeque};

use super::{Covered, Facts, MAX_UNACKED};
use crate::seq::{le, lt};

/// Number of segments that a direction may always keep; longer lists count for the limit of all streams, and are
/// sorted if they do not rise.
const ALWAYS_KEPT: usize = 64;
/// Upper bound on the segments in all lists longer than `ALWAYS_KEPT` together.
const MAX_UNACKED_IN_ALL: usize = 1 << 18;
/// Upper bound on a list without an order, which is scanned for every segment.
const MAX_UNSORTED: usize = 512;
/// Upper bound on the segments kept that begin with one byte: the oldest of them, and the newest.
const MAX_SAME_START: usize = 8;
/// Upper bound on the segments scanned, backwards from a byte, for the first that contained it.
const MAX_SCANNED: usize = 512;
/// Numbers closer than this have the same order modulo 2^32 and relative to the base.
const NEAR: u32 = 1 << 31;

/// A sent segment: first sequence number, the number after its last byte, frame, and time in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub(super) seq: u32,
    pub(super) next: u32,
    pub(super) frame: u64,
    pub(super) time_ns: i64,
}

/// Result of an ACK: the segment that it acknowledges, and the bytes that it newly covers.
type Acknowledged = (Option<Sent>, Option<Covered>);

/// The list; either `list` or `sorted` contains the segments.
#[derive(Debug, Clone)]
pub struct Unacked {
    list: VecDeque<Sent>,
    sorted: Option<Box<Sorted>>,
    /// The list rises without overlap, and `sorted` is None.
    rising: bool,
    /// It had more than `ALWAYS_KEPT` segments when it was last counted for the limit of all streams.
    long: bool,
    /// No more segments may be added.
    is_full: bool,
    /// Length last counted for the limit of all streams; 0 while not counted.
    counted: u32,
}

impl Default for Unacked {
    fn default() -> Self {
        Unacked {
            list: VecDeque::new(),
            sorted: None,
            rising: true,
            long: false,
            is_full: false,
            counted: 0,
        }
    }
}

impl From<Sent> for Unacked {
    fn from(sent: Sent) -> Self {
        Unacked {
            list: VecDeque::from([sent]),
            ..Unacked::default()
        }
    }
}

impl Unacked {
    /// Its only segment, if that is its whole state.
    pub(super) fn single(&self) -> Option<Sent> {
        let is_plain = self.rising && !self.is_full && self.counted == 0;
        let sent = self.list.front().filter(|_| is_plain && self.len() == 1)?;
        Some(*sent)
    }

    pub(super) fn len(&self) -> usize {
        self.list.len() + self.sorted.as_ref().map_or(0, |sorted| sorted.by_start.len())
    }

    /// Whether one more segment may be added.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        !self.long || !self.is_full && self.len() < MAX_UNACKED
    }

    /// Empties the list.
    pub(super) fn restart(&mut self) {
        let mut list = std::mem::take(&mut self.list);
        list.clear();
        list.shrink_to(ALWAYS_KEPT);
        *self = Unacked {
            list,
            ..Unacked::default()
        };
    }

    /// Shrinks the capacity to this many segments.
    pub(super) fn shrink(&mut self, room: usize) {
        self.list.shrink_to(room);
    }

    /// Updates the list after the base has changed.
    pub(super) fn base_moved(&mut self) {
        self.unsort();
        self.rising &= self.list.is_empty();
        self.list.truncate(MAX_UNSORTED);
    }

    /// Adds a sent segment.
    ///
    /// `rising` holds for both orders that the rules compare by: relative to the base, and modulo 2^32. (Bytes from
    /// before the base are high in the first and low in the second.)
    #[inline(always)]
    pub(super) fn push(&mut self, base: u32, new: Sent) {
        if self.sorted.is_some() {
            return self.push_sorted(base, new);
        }
        let (start, end) = (new.seq.wrapping_sub(base), new.next.wrapping_sub(base));
        self.rising = start <= end
            && self.list.back().is_none_or(|last| {
                self.rising && last.next.wrapping_sub(base) <= start && !lt(new.seq, last.next)
            });
        self.list.push_back(new);
        if self.list.len() > ALWAYS_KEPT {
            self.sort_or_truncate(base);
        }
    }

    /// Handles a long list: sorts it if it does not rise, or truncates it if its numbers have no order.
    #[cold]
    fn sort_or_truncate(&mut self, base: u32) {
        self.long = true;
        if self.rising {
            return;
        }
        // sorting is tried again whenever the length has doubled
        let has_doubled = (self.list.len() - 1).is_power_of_two() && self.list.len() <= MAX_UNSORTED;
        if has_doubled || self.was_rising(base) {
            let mut sorted = Box::new(Sorted::default());
            if self.list.iter().all(|sent| sorted.add(base, *sent)) {
                self.list = VecDeque::new();
                self.sorted = Some(sorted);
                return;
            }
        }
        self.list.truncate(MAX_UNSORTED);
    }

    /// Whether all but the newest segment rise.
    fn was_rising(&self, base: u32) -> bool {
        let before = self.list.len().saturating_sub(1);
        let pairs = self
            .list
            .iter()
            .zip(self.list.iter().skip(1))
            .take(before.saturating_sub(1));
        pairs.into_iter().all(|(earlier, next)| {
            earlier.next.wrapping_sub(base) <= next.seq.wrapping_sub(base) && !lt(next.seq, earlier.next)
        })
    }

    #[cold]
    fn push_sorted(&mut self, base: u32, new: Sent) {
        if let Some(sorted) = &mut self.sorted {
            sorted.add(base, new); // dropped if it does not fit into their order
        }
    }

    fn unsort(&mut self) {
        if let Some(sorted) = self.sorted.take() {
            self.list = sorted.in_order_of_sending();
            self.rising = false;
        }
    }

    /// Lowest sequence number, and the number after the highest, relative to the base.
    #[inline(always)]
    pub(super) fn extremes(&self, base: u32) -> Option<(u32, u32)> {
        if !self.rising {
            return self.extremes_any(base);
        }
        let (first, last) = (self.list.front()?, self.list.back()?);
        Some((first.seq.wrapping_sub(base), last.next.wrapping_sub(base)))
    }

    /// `extremes` for a list with repeats or disorder.
    #[cold]
    fn extremes_any(&self, base: u32) -> Option<(u32, u32)> {
        if let Some(sorted) = &self.sorted {
            return sorted.extremes();
        }
        let ends = self.list.iter().map(|sent| {
            let (start, end) = (sent.seq.wrapping_sub(base), sent.next.wrapping_sub(base));
            (start, end)
        });
        ends.reduce(|(low, high), (start, end)| (low.min(start), high.max(end)))
    }

    /// The first segment that contained the byte `seq`.
    pub(super) fn first_copy(&self, base: u32, seq: u32) -> Option<Sent> {
        if let Some(sorted) = &self.sorted {
            sorted.first_copy(base, seq)
        } else if self.rising {
            let number = seq.wrapping_sub(base);
            let before = |sent: &Sent| sent.next.wrapping_sub(base) <= number;
            let sent = self.list.get(self.list.partition_point(before))?;
            sent.holds(seq).then_some(*sent)
        } else {
            self.list.iter().find(|sent| sent.holds(seq)).copied()
        }
    }

    /// Removes the acknowledged segments and sets the facts of their ACK. It acknowledges the oldest copy that ends
    /// at `ack`.
    #[inline(always)]
    pub(super) fn acknowledge(&mut self, base: u32, ack: u32, now: i64, facts: &mut Facts) {
        if !self.rising {
            let (credited, covered) = self.acknowledge_any(base, ack);
            facts.acks = credited.map(|sent| (sent.frame, now.wrapping_sub(sent.time_ns)));
            facts.covered = covered;
            return;
        }
        while let Some(front) = self.list.front_mut() {
            let is_whole = !lt(ack, front.next);
            if !is_whole && !lt(front.seq, ack) {
                break;
            }
            let covered = facts.covered.get_or_insert(Covered {
                bytes: ack.wrapping_sub(front.seq),
                first_frame: front.frame,
                first_time_ns: front.time_ns,
                last_frame: front.frame,
                last_time_ns: front.time_ns,
            });
            (covered.last_frame, covered.last_time_ns) = (front.frame, front.time_ns);
            if !is_whole {
                front.seq = ack;
                break;
            }
            if front.next == ack {
                facts.acks = Some((front.frame, now.wrapping_sub(front.time_ns)));
            }
            self.list.pop_front();
        }
    }

    /// `acknowledge` for a list with repeats or disorder.
    #[cold]
    fn acknowledge_any(&mut self, base: u32, ack: u32) -> Acknowledged {
        if let Some(sorted) = &mut self.sorted {
            if let Some(covered) = sorted.acknowledge(base, ack) {
                if sorted.by_start.is_empty() {
                    self.sorted = None;
                }
                return covered;
            }
            self.unsort();
            self.list.truncate(MAX_UNSORTED);
        }
        let mut acked = AckedSegments::default();
        // from newest to oldest, so that the oldest match wins
        for sent in self.list.iter_mut().rev() {
            let partial = lt(ack, sent.next);
            if partial && !lt(sent.seq, ack) {
                continue;
            }
            acked.add(*sent, ack);
            if partial {
                sent.seq = ack;
            }
        }
        self.list.retain(|sent| lt(ack, sent.next));
        acked.covered(ack)
    }
}

impl Sent {
    fn holds(&self, seq: u32) -> bool {
        le(self.seq, seq) && lt(seq, self.next)
    }
}

/// Collects the segments that an ACK covers.
#[derive(Default)]
struct AckedSegments {
    credited: Option<Sent>,
    first: Option<Sent>,
    last: Option<Sent>,
}

impl AckedSegments {
    fn add(&mut self, sent: Sent, ack: u32) {
        let before =
            |first: Sent| lt(sent.seq, first.seq) || sent.seq == first.seq && sent.frame < first.frame;
        if self.first.is_none_or(before) {
            self.first = Some(sent);
        }
        if self.last.is_none_or(|last| sent.frame > last.frame) {
            self.last = Some(sent);
        }
        if sent.next == ack && self.credited.is_none_or(|credited| sent.frame <= credited.frame) {
            self.credited = Some(sent);
        }
    }

    fn covered(self, ack: u32) -> Acknowledged {
        let covered = self.first.zip(self.last).map(|(first, last)| Covered {
            bytes: ack.wrapping_sub(first.seq),
            first_frame: first.frame,
            first_time_ns: first.time_ns,
            last_frame: last.frame,
            last_time_ns: last.time_ns,
        });
        (self.credited, covered)
    }
}

/// Segments by their first byte relative to the base, then in the order of sending. All of them are so close that the
/// order modulo 2^32 is the same.
#[derive(Debug, Clone, Default)]
struct Sorted {
    by_start: BTreeMap<(u32, u32), Sent>,
    /// Number of segments added.
    added: u32,
    /// Relative number after the highest byte.
    end: u32,
    /// Length of the longest segment.
    longest: u32,
}

impl Sorted {
    /// Returns false if its numbers are too far from the others'.
    fn add(&mut self, base: u32, new: Sent) -> bool {
        let (start, end) = (new.seq.wrapping_sub(base), new.next.wrapping_sub(base));
        if start > end || !self.is_near(start) || !self.is_near(end) {
            return false;
        }
        self.insert(start, self.added, new);
        self.added += 1;
        self.end = self.end.max(end);
        self.longest = self.longest.max(end - start);
        true
    }

    /// Adds a segment. If more than `MAX_SAME_START` begin with one byte, the second newest of them is dropped.
    fn insert(&mut self, start: u32, added: u32, new: Sent) {
        self.by_start.insert((start, added), new);
        let mut same_start = self.by_start.range((start, 0)..=(start, u32::MAX)).rev();
        let second = same_start.nth(1).map(|(key, _)| *key);
        if let (Some(second), Some(_)) = (second, same_start.nth(MAX_SAME_START - 2)) {
            self.by_start.remove(&second);
        }
    }

    /// Whether this number and all segments have one order.
    fn is_near(&self, number: u32) -> bool {
        let Some((low, high)) = self.extremes() else {
            return true;
        };
        high.max(number) - low.min(number) < NEAR
    }

    fn extremes(&self) -> Option<(u32, u32)> {
        let ((start, _), _) = self.by_start.first_key_value()?;
        Some((*start, self.end))
    }

    fn first_copy(&self, base: u32, seq: u32) -> Option<Sent> {
        let number = seq.wrapping_sub(base);
        let from = number.saturating_sub(self.longest);
        let near = self.by_start.range((from, 0)..=(number, u32::MAX)).rev();
        near.take(MAX_SCANNED)
            .filter(|(_, sent)| sent.holds(seq))
            .min_by_key(|((_, added), _)| *added)
            .map(|(_, sent)| *sent)
    }

    /// None if the ACK is, modulo 2^32, above some and below others of the segments although it is far from all.
    fn acknowledge(&mut self, base: u32, ack: u32) -> Option<Acknowledged> {
        let number = ack.wrapping_sub(base);
        let mut are_all_below = false;
        if let (false, Some((low, high))) = (self.is_near(number), self.extremes()) {
            let [first, last] = [low, high].map(|end| lt(end.wrapping_add(base), ack));
            if first != last {
                return None;
            } else if !first {
                return Some((None, None));
            }
            are_all_below = true;
        }
        let (mut acked, mut cut) = (AckedSegments::default(), Vec::new());
        while let Some(first) = self.by_start.first_entry() {
            let (start, added) = *first.key();
            if !are_all_below && start >= number {
                break;
            }
            let sent = first.remove();
            acked.add(sent, ack);
            if lt(ack, sent.next) {
                cut.push(((number, added), Sent { seq: ack, ..sent }));
            }
        }
        for ((start, added), sent) in cut {
            self.insert(start, added, sent);
        }
        Some(acked.covered(ack))
    }

    fn in_order_of_sending(self) -> VecDeque<Sent> {
        let mut all: Vec<((u32, u32), Sent)> = self.by_start.into_iter().collect();
        all.sort_unstable_by_key(|((_, added), _)| *added);
        all.into_iter().map(|(_, sent)| sent).collect()
    }
}

/// The unacknowledged segments of both directions of an ended stream, in compact form.
pub enum Outstanding {
    /// One segment: the usual case after an RST.
    One {
        from_low: bool,
        sent: Sent,
    },
    More(Box<[Unacked; 2]>),
}

impl Outstanding {
    /// Takes the segments out of the flows; None if there are none.
    pub fn of(flows: &mut [Flow; 2]) -> Option<Box<Self>> {
        if flows.iter().all(|flow| flow.unacked.len() == 0) {
            return None; // the next stream in this box reuses the capacity of the lists
        }
        let [low, high] = flows.each_mut().map(|flow| std::mem::take(&mut flow.unacked));
        let only = match (low.len(), high.len()) {
            (_, 0) => low.single().map(|sent| (true, sent)),
            (0, _) => high.single().map(|sent| (false, sent)),
            _ => None,
        };
        Some(Box::new(match only {
            Some((from_low, sent)) => Outstanding::One { from_low, sent },
            None => {
                let mut lists = Box::new([low, high]);
                lists.iter_mut().for_each(|unacked| unacked.shrink(0));
                Outstanding::More(lists)
            }
        }))
    }

    /// Restores the segments.
    pub fn give_back(self, flows: &mut [Flow; 2]) {
        let lists = match self {
            Outstanding::One { from_low: true, sent } => [sent.into(), Unacked::default()],
            Outstanding::One { sent, .. } => [Unacked::default(), sent.into()],
            Outstanding::More(lists) => *lists,
        };
        for (flow, unacked) in flows.iter_mut().zip(lists) {
            flow.unacked = unacked;
        }
    }
}

/// Limits the unacknowledged segments of all streams together: a capture of one direction has many.
#[derive(Debug, Default)]
pub struct UnackedBudget {
    /// Segments in the lists longer than `ALWAYS_KEPT`.
    used: usize,
}

impl Flow {
    /// Whether `UnackedBudget` must count its unacknowledged segments.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.unacked.long
    }
}

impl UnackedBudget {
    /// Updates the count of a flow after a segment. Returns false if the budget leaves no room in its list.
    #[cold]
    pub fn count(&mut self, flow: &mut Flow) -> bool {
        let len = flow.unacked.len();
        self.forget(flow);
        if len > ALWAYS_KEPT {
            flow.unacked.counted = len as u32;
            self.used += len;
        } else {
            flow.unacked.long = false;
            flow.unacked.shrink(ALWAYS_KEPT);
        }
        flow.unacked.is_full = len > ALWAYS_KEPT && len < MAX_UNACKED && self.used >= MAX_UNACKED_IN_ALL;
        !flow.unacked.is_full
    }

    /// Stops counting a flow whose stream has ended.
    pub fn forget(&mut self, flow: &mut Flow) {
        let counted = std::mem::take(&mut flow.unacked.counted) as usize;
        self.used = self.used.saturating_sub(counted);
    }
}

#[cfg(test)]
mod tests;
