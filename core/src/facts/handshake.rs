//! What the handshake and options show about a stream: initial sequence numbers, window scales, the handshake RTT,
//! SACK blocks, and how complete the capture of the stream is.

use super::{FirstTrip, Flow, Marks, Scale, Shared};
use crate::segment::{ACK, FIN, RST, SYN, Segment};

/// Sets the bases of relative numbers; returns whether a SYN/ACK moves the base of its side.
pub(super) fn anchor(segment: &Segment<'_>, fwd: &mut Flow, rev: &mut Flow) -> bool {
    if !segment.has(SYN) && fwd.marks.base.is_some() && rev.marks.base.is_some() {
        return false;
    }
    begin(segment, fwd, rev)
}

/// `anchor` for a segment with SYN, or of a side without a base.
fn begin(segment: &Segment<'_>, fwd: &mut Flow, rev: &mut Flow) -> bool {
    let moved = segment.has(SYN) && restart(segment, fwd);
    if fwd.marks.base.is_none() {
        fwd.marks.base = Some(segment.seq.wrapping_sub(u32::from(!segment.has(SYN))));
    }
    if segment.has(ACK) && rev.marks.base.is_none() {
        rev.marks.base = Some(segment.ack.wrapping_sub(1));
    }
    moved
}

/// Handles a SYN of a side that has a base; returns whether it moves the base.
pub(super) fn restart(segment: &Segment<'_>, fwd: &mut Flow) -> bool {
    let Some(base) = fwd.marks.base else { return false };
    if !segment.has(ACK) {
        // a repeated SYN repairs state that a stray RST may have broken
        fwd.marks.next_seq = fwd.marks.max_seq_to_be_acked;
        return false;
    }
    if base != segment.seq {
        fwd.marks.base = Some(segment.seq);
        fwd.unacked.base_moved();
    }
    base != segment.seq
}

/// Updates the state after an ordinary segment (`is_ordinary`).
#[inline(always)]
pub(super) fn after_ordinary(segment: &Segment<'_>, fwd: &mut Marks, shared: &mut Shared) {
    fwd.sacked_bytes = 0;
    fwd.first_ack_pending = false;
    shared.completeness |= content(segment);
}

/// Updates the state by options and handshake, after the analysis of the same segment.
pub(super) fn after_options(
    segment: &Segment<'_>,
    now: i64,
    fwd: &mut Marks,
    rev: &mut Marks,
    shared: &mut Shared,
    reused: bool,
) {
    fwd.sacked_bytes = match segment.options.sack.count {
        0 => 0,
        _ => sacked_bytes(segment),
    };
    let (syn, has_ack) = (segment.has(SYN), segment.has(ACK));
    if let Some(shift) = segment.options.wscale {
        fwd.scale = Scale::Shift(shift); // also where the option does not belong, on a segment without SYN
    }
    if syn {
        if fwd.scale == Scale::Unknown && !segment.options.cut {
            (fwd.scale, rev.scale) = (Scale::Unused, Scale::Unused);
        } else if has_ack && rev.scale == Scale::Unused {
            fwd.scale = Scale::Unused;
        }
        fwd.first_ack_pending = true;
        if !has_ack && !matches!(shared.first_trip, FirstTrip::Took(_)) {
            shared.first_trip = FirstTrip::Since(now);
        }
    } else if has_ack {
        fwd.first_ack_pending = false;
        if let FirstTrip::Since(syn_time) = shared.first_trip
            && now != syn_time
        {
            // an RTT of 0 is Wireshark's "not measured yet"
            shared.first_trip = FirstTrip::Took(now.wrapping_sub(syn_time));
        }
    }
    completeness(segment, shared, reused);
    shared.settled =
        fwd.base.is_some() && rev.base.is_some() && !matches!(shared.first_trip, FirstTrip::Since(_));
}

/// Sum of the first three SACK blocks: Wireshark 4.0 ignores a fourth.
#[cold]
fn sacked_bytes(segment: &Segment<'_>) -> u32 {
    let blocks = segment.options.sack.blocks().iter().take(3);
    blocks.fold(0u32, |sum, &(left, right)| {
        sum.wrapping_add(right.wrapping_sub(left))
    })
}

/// `tcp.completeness`: SYN 1, SYN/ACK 2, ACK 4, data 8, FIN 16, RST 32, as in Wireshark's window and two-pass tshark
/// (one pass leaves out the packet that opens the stream). A SYN counts only if it opens the stream, and its data
/// only if the endpoints are not reused.
fn completeness(segment: &Segment<'_>, shared: &mut Shared, reused: bool) {
    let (syn, has_ack) = (segment.has(SYN), segment.has(ACK));
    let opens = !std::mem::replace(&mut shared.started, true);
    let content = content(segment);
    shared.completeness |= match (syn, has_ack) {
        (true, false) if opens => 1 | if reused { 0 } else { content & 8 },
        (true, true) => 2,
        (false, true) => content,
        _ => 0,
    };
    if segment.flags & (FIN | RST) != 0 {
        shared.completeness |= if has_ack && segment.has(FIN) { 16 } else { 0 };
        shared.completeness |= if segment.has(RST) { 32 } else { 0 };
    }
}

/// Bit of the completeness for a segment with ACK: 8 with data, 4 without.
#[inline(always)]
fn content(segment: &Segment<'_>) -> u8 {
    if segment.len > 0 { 8 } else { 4 }
}
