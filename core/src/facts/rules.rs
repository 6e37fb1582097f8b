//! The flags of one segment by its numbers beside what was expected (steps 1 to 9 and 12 of the order).

use super::{DUPACKS_BARRED, Flow, Scale, Shared, flag};
use crate::segment::{RST, Segment};
use crate::seq::{le, lt};

/// Out-of-order against retransmission while the round trip is unknown.
const DEFAULT_REORDER_NS: u64 = 3_000_000;
const FAST_RETRANSMIT_NS: u64 = 20_000_000;

/// Steps 1 to 9: what the numbers say beside what was expected.
#[inline(always)]
pub(super) fn sequence_flags(segment: &Segment<'_>, plain: bool, fwd: &mut Flow, rev: &Flow) -> u16 {
    let Segment { seq, ack, len, .. } = *segment;
    let window = u32::from(segment.window);
    let mut flags = 0;
    if len == 1 && seq == fwd.next_seq && rev.window == 0 {
        return flag::ZERO_WINDOW_PROBE;
    }
    if window == 0 && plain {
        flags |= flag::ZERO_WINDOW;
    }
    if fwd.next_seq != 0 && lt(fwd.next_seq, seq) && !segment.has(RST) {
        flags |= flag::LOST_SEGMENT;
        fwd.bytes_in_flight_valid = false;
    }
    if len <= 1 && seq == fwd.next_seq.wrapping_sub(1) && plain {
        flags |= flag::KEEP_ALIVE;
    }
    let repeats_ack = len == 0 && plain && seq == fwd.next_seq && ack == fwd.last_ack;
    if repeats_ack && window != 0 && window != fwd.window {
        flags |= flag::WINDOW_UPDATE;
    }
    if len > 0 && plain && rev.scale != Scale::Unknown {
        let shift = match rev.scale {
            Scale::Shift(shift) if !rev.first_ack_pending => shift.min(14),
            _ => 0,
        };
        if seq.wrapping_add(len) == rev.last_ack.wrapping_add(rev.window << shift) {
            flags |= flag::WINDOW_FULL;
        }
    }
    if repeats_ack && window == fwd.window {
        if window != 0 && rev.last_flags & flag::KEEP_ALIVE != 0 {
            return flags | flag::KEEP_ALIVE_ACK;
        }
        if window == 0 && rev.last_flags & flag::ZERO_WINDOW_PROBE != 0 {
            return flags | flag::ZERO_WINDOW_PROBE_ACK;
        }
        if window != 0 {
            fwd.duplicate_acks = if fwd.duplicate_acks == DUPACKS_BARRED {
                1
            } else {
                fwd.duplicate_acks + 1
            };
            flags |= flag::DUPLICATE_ACK;
        }
    }
    flags
}

/// Step 12: the retransmission family; its members exclude one another.
#[inline(always)]
pub(super) fn repeat_flags(
    segment: &Segment<'_>,
    next: u32,
    now: i64,
    fwd: &Flow,
    rev: &Flow,
    shared: &Shared,
) -> u16 {
    let Segment { seq, len, .. } = *segment;
    let mut not_advanced = fwd.next_seq != 0 && lt(seq, fwd.next_seq);
    if len > 1 && seq == fwd.next_seq.wrapping_sub(1) {
        not_advanced = false; // real data after a one-byte probe
    }
    if len > 0 && rev.last_ack != 0 && le(seq.wrapping_add(len), rev.last_ack) {
        return flag::SPURIOUS_RETRANSMISSION | flag::RETRANSMISSION;
    }
    if !not_advanced {
        return 0;
    }
    // differences are unsigned in Wireshark: a clock that went back makes them huge
    let since_ack = now.wrapping_sub(rev.last_ack_time) as u64;
    if rev.duplicate_acks >= 2 && rev.last_ack == seq && since_ack < FAST_RETRANSMIT_NS {
        return flag::FAST_RETRANSMISSION | flag::RETRANSMISSION;
    }
    let since_next = now.wrapping_sub(fwd.next_seq_time) as u64;
    let limit = match shared.initial_rtt_ns {
        Some(rtt) if rtt != 0 => rtt as u64,
        _ => DEFAULT_REORDER_NS,
    };
    if since_next < limit && fwd.next_seq != next {
        return flag::OUT_OF_ORDER;
    }
    flag::RETRANSMISSION
}

/// `tcp.options.sack.dsack` (RFC 2883 4): the first block ends below the acknowledgement, or inside the second.
#[inline(always)]
pub(super) fn repeats_sacked(segment: &Segment<'_>) -> bool {
    match *segment.options.sack.blocks() {
        [] => false,
        [(_, right), ..] if le(right, segment.ack) => true,
        [(_, right), (second, end), ..] => lt(second, right) && le(right, end),
        _ => false,
    }
}
