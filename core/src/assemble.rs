//! Orders the bytes of one direction. Takes segments as captured (repeated, overlapping, reordered, cut short,
//! missing), and returns `Stretch`es of captured or missing bytes, in order and without overlap.
//!
//! A hole waits for its segment until the capture proves that it will not come. The proof has two parts: the peer has
//! acknowledged data beyond the hole, and that data was captured. Both are required, because captures from several
//! queues may contain an ACK some frames before the data that it acknowledges.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::messages::Stretch;

/// Upper bound on the bytes that one direction holds out of order. Linux's default receive buffer grows to 6 MiB, but
/// data that far beyond a hole is normally acknowledged before.
pub const MAX_HELD_BYTES: usize = 1 << 20;
/// Upper bound on the stretches that one direction holds out of order: it bounds the overhead of tiny segments.
pub const MAX_HELD_SEGMENTS: usize = 4096;

/// Memory of a stretch besides its bytes: its entry in the tree, and its allocation.
const STRETCH_BYTES: usize = 64;

/// Value of `end` before a FIN.
const NO_END: u64 = u64::MAX;

/// Whether the upper bounds sufficed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a cap that was hit has to become an issue"]
pub enum Caps {
    Sufficed,
    /// A bound was exceeded: a hole was returned as `Missing` although its bytes may still come.
    Exceeded,
}

/// Orders one direction. Allocates nothing until something is out of order.
#[derive(Debug)]
pub struct Assembler {
    /// Offset of the next byte to return; None before the first segment.
    next: Option<u64>,
    /// Highest offset that the peer has acknowledged.
    acked: u64,
    /// Offset of the FIN, or `NO_END`.
    end: u64,
    held: Option<Box<Held>>,
}

/// Stretches beyond the first hole, by offset, without overlap.
#[derive(Debug, Default)]
struct Held {
    stretches: BTreeMap<u64, HeldStretch>,
    /// Start and end of each run of stretches without a hole, so that a repeat of many stretches is skipped in one
    /// step.
    runs: BTreeMap<u64, u64>,
    bytes: usize,
}

impl Held {
    /// End of the run that contains the byte at `at`.
    fn covered(&self, at: u64) -> Option<u64> {
        let (_, end) = self.runs.range(..=at).next_back()?;
        Some(*end).filter(|end| *end > at)
    }

    /// Stores bytes that no run contains.
    fn keep(&mut self, at: u64, len: u64, captured: &[u8]) {
        self.bytes += captured.len();
        let captured = captured.into();
        self.stretches.insert(at, HeldStretch { len, captured });
        let mut end = at.saturating_add(len);
        if let Some(behind) = self.runs.remove(&end) {
            end = behind;
        }
        match self.runs.range_mut(..=at).next_back() {
            Some((_, before)) if *before == at => *before = end,
            _ => drop(self.runs.insert(at, end)),
        }
    }
}

/// `len` bytes of the stream, of which the first `captured.len()` were captured.
#[derive(Debug)]
struct HeldStretch {
    len: u64,
    captured: Box<[u8]>,
}

impl Default for Assembler {
    fn default() -> Self {
        Assembler::new()
    }
}

impl Assembler {
    pub fn new() -> Self {
        Assembler {
            next: None,
            acked: 0,
            end: NO_END,
            held: None,
        }
    }

    /// Sets the offset of the stream's first byte (64-bit, unwrapped): SYN + 1, or the first captured segment. Only
    /// the first call counts, so that a repeated SYN does no harm.
    pub fn start(&mut self, offset: u64) {
        self.next.get_or_insert(offset);
    }

    /// Offset of the next byte to return.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// Whether anything is held out of order.
    pub fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Captured bytes that are held out of order.
    pub fn held(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.bytes)
    }

    /// Memory that the held stretches take.
    #[inline(always)]
    pub fn held_memory(&self) -> usize {
        let memory = |held: &Held| held.bytes + held.stretches.len() * STRETCH_BYTES;
        self.held.as_deref().map_or(0, memory)
    }

    /// Fast path for a segment that was captured whole. If it is the next and nothing is held, it counts as returned,
    /// and the caller reads it without a copy.
    #[inline(always)]
    pub fn take_if_next(&mut self, offset: u64, len: u64) -> bool {
        let is_next = self.next == Some(offset) && self.held.is_none();
        if is_next {
            self.next = Some(offset.saturating_add(len));
        }
        is_next
    }

    /// Takes a segment with payload [offset, offset + len). `captured` is its first bytes, fewer than `len` if the
    /// snap length cut it. Returns every stretch that is in order now; the first copy of a byte wins. Without `start`
    /// the stream starts here.
    pub fn data(
        &mut self,
        offset: u64,
        len: u64,
        captured: &[u8],
        give: &mut (impl FnMut(Stretch<'_>) + ?Sized),
    ) -> Caps {
        let next = *self.next.get_or_insert(offset);
        let end = offset.saturating_add(len);
        if end <= next {
            return Caps::Sufficed;
        }
        if offset <= next && self.held.is_none() {
            give_stretch(end - next, from(captured, next - offset), give);
            self.next = Some(end);
            return Caps::Sufficed;
        }
        self.data_around_holes(
            offset.max(next),
            end,
            from(captured, next.saturating_sub(offset)),
            give,
        );
        self.pass_acked_holes(give);
        self.pass_until_it_fits(give)
    }

    /// The peer acknowledged everything below `offset`. A hole below it was lost by the capture, not by the network.
    /// It is returned as `Missing` once data beyond it, or the FIN, was captured.
    pub fn acked(&mut self, offset: u64, give: &mut (impl FnMut(Stretch<'_>) + ?Sized)) {
        self.acked = self.acked.max(offset);
        if self.held.is_some() || self.end != NO_END {
            self.pass_acked_holes(give);
        }
    }

    /// Fast path of `acked`; returns false if held data may be returned, which `acked` must do.
    #[inline]
    pub fn acked_in_order(&mut self, offset: u64) -> bool {
        let is_ordered = self.held.is_none() && self.end == NO_END;
        if is_ordered {
            self.acked = self.acked.max(offset);
        }
        is_ordered
    }

    /// Sets the offset of the FIN, which is after the last byte. It may arrive before bytes that are still to be
    /// retransmitted; see `is_ended`.
    pub fn fin(&mut self, offset: u64, give: &mut (impl FnMut(Stretch<'_>) + ?Sized)) {
        self.next.get_or_insert(offset);
        if self.end == NO_END {
            self.end = offset;
        }
        self.pass_acked_holes(give);
    }

    /// Whether a FIN was captured.
    pub fn has_fin(&self) -> bool {
        self.end != NO_END
    }

    /// Whether every byte before the FIN has been returned.
    pub fn is_ended(&self) -> bool {
        self.end != NO_END && self.next.is_some_and(|next| next >= self.end)
    }

    /// Whether something may be returned without new data: held data, or the hole before a FIN.
    pub fn has_pending(&self) -> bool {
        self.is_holding() || self.has_fin() && !self.is_ended()
    }

    /// Returns all held data, holes as `Missing`, at an RST or the end of the capture. A hole before the FIN is not
    /// returned, since it may still be acknowledged.
    pub fn finish(&mut self, give: &mut (impl FnMut(Stretch<'_>) + ?Sized)) {
        while self.held.is_some() {
            self.pass_first_hole(give);
        }
        self.end = NO_END;
    }

    /// Takes new bytes while others are held: returns bytes up to the first held stretch, that stretch, and so on.
    /// Stores bytes beyond a hole.
    fn data_around_holes(
        &mut self,
        mut at: u64,
        end: u64,
        captured: &[u8],
        give: &mut (impl FnMut(Stretch<'_>) + ?Sized),
    ) {
        let first = at;
        while at < end {
            // the run that contains `at`, or the next one, limits the new bytes
            let held = self.held.get_or_insert_default();
            if let Some(covered) = held.covered(at) {
                at = covered;
                continue;
            }
            let until = held
                .runs
                .range(at..)
                .next()
                .map_or(end, |(start, _)| end.min(*start));
            let new = from(captured, at - first);
            let new = upto(new, until - at);
            if self.next == Some(at) {
                give_stretch(until - at, new, give);
                self.next = Some(until);
                self.give_held(give);
            } else {
                held.keep(at, until - at, new);
            }
            at = self.next.map_or(until, |next| until.max(next));
        }
        self.give_held(give);
    }

    /// Returns the held stretches that are in order now.
    fn give_held(&mut self, give: &mut (impl FnMut(Stretch<'_>) + ?Sized)) {
        let (Some(held), Some(next)) = (&mut self.held, &mut self.next) else {
            return;
        };
        while let Some(first) = held.stretches.first_entry() {
            if *first.key() > *next {
                return;
            }
            held.runs.remove(first.key()); // all its stretches are returned
            let stretch = first.remove();
            held.bytes = held.bytes.saturating_sub(stretch.captured.len());
            *next = next.saturating_add(stretch.len);
            give_stretch(stretch.len, &stretch.captured, give);
        }
        self.held = None;
    }

    /// Returns the first hole as `Missing`, and the held bytes after it.
    fn pass_first_hole(&mut self, give: &mut (impl FnMut(Stretch<'_>) + ?Sized)) {
        if let (Some(next), Some(start)) = (&mut self.next, first_held(&self.held))
            && start > *next
        {
            give(Stretch::Missing(start - *next));
            *next = start;
        }
        self.give_held(give);
    }

    fn pass_acked_holes(&mut self, give: &mut (impl FnMut(Stretch<'_>) + ?Sized)) {
        while first_held(&self.held).is_some_and(|start| start <= self.acked) {
            self.pass_first_hole(give);
        }
        // a hole before the FIN: nothing is held behind it, but the FIN was seen and acknowledged
        if let Some(next) = &mut self.next
            && self.held.is_none()
            && self.end != NO_END
            && (*next < self.end && self.end <= self.acked)
        {
            give(Stretch::Missing(self.end - *next));
            *next = self.end;
        }
    }

    fn pass_until_it_fits(&mut self, give: &mut (impl FnMut(Stretch<'_>) + ?Sized)) -> Caps {
        let mut room = Caps::Sufficed;
        while self
            .held
            .as_ref()
            .is_some_and(|held| held.bytes > MAX_HELD_BYTES || held.stretches.len() > MAX_HELD_SEGMENTS)
        {
            self.pass_first_hole(give);
            room = Caps::Exceeded;
        }
        room
    }
}

fn first_held(held: &Option<Box<Held>>) -> Option<u64> {
    held.as_ref()?
        .stretches
        .first_key_value()
        .map(|(start, _)| *start)
}

/// `bytes` without the first `skip`.
fn from(bytes: &[u8], skip: u64) -> &[u8] {
    usize::try_from(skip)
        .ok()
        .and_then(|skip| bytes.get(skip..))
        .unwrap_or_default()
}

/// At most the first `len` of `bytes`.
fn upto(bytes: &[u8], len: u64) -> &[u8] {
    usize::try_from(len)
        .ok()
        .and_then(|len| bytes.get(..len))
        .unwrap_or(bytes)
}

fn give_stretch(len: u64, captured: &[u8], give: &mut (impl FnMut(Stretch<'_>) + ?Sized)) {
    let captured = upto(captured, len);
    if !captured.is_empty() {
        give(Stretch::Bytes(captured));
    }
    let missing = len - captured.len() as u64;
    if missing > 0 {
        give(Stretch::Missing(missing));
    }
}
