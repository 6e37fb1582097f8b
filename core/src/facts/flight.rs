//! The list of unacknowledged segments: what an ACK takes off it, and how much is in flight.

use super::{Covered, Facts, Flow, Unacked};
use crate::segment::{FIN, PSH, SYN, Segment};
use crate::seq::lt;

/// Adds a sent segment. "Rising" is meant in both orders that the rules compare by: relative to the base, and
/// on the circle (bytes from before the base are high in the one and low in the other).
#[inline(always)]
pub(super) fn push_unacked(flow: &mut Flow, new: Unacked) {
    let base = flow.base.unwrap_or(0);
    let (start, end) = (new.seq.wrapping_sub(base), new.next.wrapping_sub(base));
    let after = flow
        .unacked
        .back()
        .is_none_or(|last| last.next.wrapping_sub(base) <= start && !lt(new.seq, last.next));
    if flow.unacked.is_empty() {
        flow.rising = start <= end;
    } else {
        flow.rising &= after && start <= end;
    }
    flow.unacked.push_back(new);
}

/// Step 17: takes the acknowledged segments off the list. The oldest copy that ends at `ack` is credited.
#[inline(always)]
pub(super) fn acknowledge(rev: &mut Flow, ack: u32, now: i64, facts: &mut Facts) {
    if !rev.rising {
        (facts.acks, facts.covered) = acknowledge_any(rev, ack, now);
        return;
    }
    while let Some(front) = rev.unacked.front_mut() {
        let whole = !lt(ack, front.next);
        if !whole && !lt(front.seq, ack) {
            break;
        }
        let c = facts.covered.get_or_insert(Covered {
            bytes: ack.wrapping_sub(front.seq),
            first_frame: front.frame,
            first_time: front.time,
            last_frame: front.frame,
            last_time: front.time,
        });
        (c.last_frame, c.last_time) = (front.frame, front.time);
        if !whole {
            front.seq = ack;
            break;
        }
        if front.next == ack {
            facts.acks = Some((front.frame, now.wrapping_sub(front.time)));
        }
        rev.unacked.pop_front();
    }
}

/// The same for a list with repeats or disorder: from newest to oldest, the last match wins.
#[cold]
fn acknowledge_any(rev: &mut Flow, ack: u32, now: i64) -> (Option<(u64, i64)>, Option<Covered>) {
    let mut credited = None;
    let mut first: Option<Unacked> = None;
    let mut last: Option<Unacked> = None;
    for u in rev.unacked.iter_mut().rev() {
        let partial = lt(ack, u.next);
        if partial && !lt(u.seq, ack) {
            continue;
        }
        if first.is_none_or(|f| lt(u.seq, f.seq) || (u.seq == f.seq && u.frame < f.frame)) {
            first = Some(*u);
        }
        if last.is_none_or(|l| u.frame > l.frame) {
            last = Some(*u);
        }
        if partial {
            u.seq = ack;
        } else if u.next == ack {
            credited = Some((u.frame, now.wrapping_sub(u.time)));
        }
    }
    rev.unacked.retain(|u| lt(ack, u.next));
    let covered = first.zip(last).map(|(first, last)| Covered {
        bytes: ack.wrapping_sub(first.seq),
        first_frame: first.frame,
        first_time: first.time,
        last_frame: last.frame,
        last_time: last.time,
    });
    (credited, covered)
}

/// Step 18: what is out and not acknowledged, and how much of it since the last PSH.
#[inline(always)]
pub(super) fn in_flight(segment: &Segment<'_>, fwd: &mut Flow, rev: &Flow) -> (Option<u32>, Option<u32>) {
    if fwd.unacked.is_empty() || !fwd.bytes_in_flight_valid {
        return (None, None);
    }
    let base = fwd.base.unwrap_or(0);
    let (low, high) = match (fwd.rising, fwd.unacked.front(), fwd.unacked.back()) {
        (true, Some(first), Some(last)) => (first.seq.wrapping_sub(base), last.next.wrapping_sub(base)),
        _ => fwd.unacked.iter().fold((u32::MAX, 0), |(low, high), u| {
            (
                low.min(u.seq.wrapping_sub(base)),
                high.max(u.next.wrapping_sub(base)),
            )
        }),
    };
    let mut flying = high.wrapping_sub(low).wrapping_sub(rev.sacked_bytes);
    if flying == 0 || flying >= 2_000_000_000 {
        flying = 0;
    } else if segment.flags & (SYN | FIN) != 0 {
        flying -= 1;
    }
    let push = segment.has(PSH);
    fwd.push_bytes_sent = match (push, fwd.push_set_last) {
        (true, false) | (false, false) => fwd.push_bytes_sent.wrapping_add(segment.len),
        (true, true) | (false, true) => segment.len,
    };
    fwd.push_set_last = push;
    if flying == 0 {
        (None, None)
    } else {
        (Some(flying), Some(fwd.push_bytes_sent))
    }
}
