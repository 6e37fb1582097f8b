//! How much of one direction is in flight.

use super::Marks;
use super::unacked::Unacked;
use crate::segment::{FIN, PSH, SYN, Segment};

/// Step 18: what is out and not acknowledged, and how much of it since the last PSH.
#[inline(always)]
pub(super) fn in_flight(
    segment: &Segment<'_>,
    fwd: &mut Marks,
    unacked: &Unacked,
    rev: &Marks,
) -> (Option<u32>, Option<u32>) {
    let extremes = unacked.extremes(fwd.base.unwrap_or(0));
    let Some((low, high)) = extremes.filter(|_| fwd.bytes_in_flight_valid) else {
        return (None, None);
    };
    let mut flying = high.wrapping_sub(low).wrapping_sub(rev.sacked_bytes);
    if flying == 0 || flying >= 2_000_000_000 {
        flying = 0;
    } else if segment.flags & (SYN | FIN) != 0 {
        flying -= 1;
    }
    fwd.push_bytes_sent = if fwd.push_set_last {
        segment.len
    } else {
        fwd.push_bytes_sent.wrapping_add(segment.len)
    };
    fwd.push_set_last = segment.has(PSH);
    if flying == 0 {
        (None, None)
    } else {
        (Some(flying), Some(fwd.push_bytes_sent))
    }
}
