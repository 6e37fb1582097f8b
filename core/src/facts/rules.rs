//! The flags of one segment, by comparison of its numbers with the expected ones.

use super::{Analysis, DUPACKS_BARRED, Marks, Scale, flag};
use crate::segment::{ACK, FIN, RST, SYN, Segment};
use crate::seq::{le, lt};

/// Time that separates out-of-order segments from retransmissions while the RTT is unknown.
const DEFAULT_REORDER_NS: u64 = 3_000_000;
/// Longest time from the last duplicate ACK to a fast retransmission.
const FAST_RETRANSMIT_NS: u64 = 20_000_000;

/// Sequence number after the segment's last byte; SYN and FIN occupy one number.
#[inline(always)]
pub(super) fn next_of(segment: &Segment<'_>) -> u32 {
    let Segment { seq, len, flags, .. } = *segment;
    seq.wrapping_add(len)
        .wrapping_add(u32::from(flags & (SYN | FIN) != 0))
}

/// Returns `WINDOW_FULL` if the segment fills the window that the peer offered, and its scale is known.
#[inline(always)]
pub(super) fn window_full(segment: &Segment<'_>, rev: &Marks) -> u16 {
    if segment.len == 0 || rev.scale == Scale::Unknown {
        return 0;
    }
    let shift = match rev.scale {
        Scale::Shift(shift) if !rev.first_ack_pending => shift.min(14),
        _ => 0,
    };
    let is_filled = segment.seq.wrapping_add(segment.len) == rev.last_ack.wrapping_add(rev.window << shift);
    if is_filled { flag::WINDOW_FULL } else { 0 }
}

impl Analysis<'_> {
    /// Whether no rule except `window_full` can apply: after the handshake, data that follows the sender's last, or an
    /// ACK of new data. Nine of ten segments are ordinary.
    #[inline(always)]
    pub(super) fn is_ordinary(&self, segment: &Segment<'_>) -> bool {
        let (fwd, rev) = (&self.fwd.marks, &self.rev.marks);
        let Segment { seq, ack, len, .. } = *segment;
        self.shared.is_settled
            && segment.flags & (SYN | FIN | RST | ACK) == ACK
            && seq == fwd.next_seq
            && seq != 0
            && (rev.max_seq_to_be_acked == 0 || !lt(rev.max_seq_to_be_acked, ack))
            && match len {
                0 => ack != fwd.last_ack,
                _ => rev.last_ack == 0 || !le(seq.wrapping_add(len), rev.last_ack),
            }
            && segment.window != 0
            && rev.window != 0
            && segment.options.sack.count == 0
            && segment.options.wscale.is_none()
    }

    /// Returns all flags of a segment, and updates the bases and the state of duplicate ACKs.
    pub(super) fn all_flags(&mut self, segment: &Segment<'_>, now: i64) -> u16 {
        let mut flags = 0;
        if is_dsack(segment) {
            flags |= flag::DSACK;
        }
        if self.set_bases(segment) || self.is_reuse {
            flags |= flag::REUSED_PORTS;
        }
        let (fwd, rev) = (&mut self.fwd.marks, &mut self.rev.marks);
        flags |= sequence_flags(segment, fwd, rev);
        let ack = segment.ack;
        if segment.has(ACK) && rev.max_seq_to_be_acked != 0 && lt(rev.max_seq_to_be_acked, ack) {
            if lt(rev.max_seq_to_be_acked, rev.next_seq) {
                rev.max_seq_to_be_acked = rev.next_seq;
                flags |= flag::ACK_LOST_SEGMENT;
            } else {
                if rev.duplicate_acks == 0 {
                    flags |= flag::ACK_LOST_SEGMENT;
                }
                rev.duplicate_acks = DUPACKS_BARRED;
            }
        }
        let occupies_numbers = segment.len > 0 || segment.flags & (SYN | FIN) != 0;
        if occupies_numbers && flags & flag::KEEP_ALIVE == 0 {
            flags |= self.retransmission_flags(segment, now);
        }
        flags
    }

    /// Returns the retransmission flags, of which at most one kind applies.
    fn retransmission_flags(&self, segment: &Segment<'_>, now: i64) -> u16 {
        let (fwd, rev) = (&self.fwd.marks, &self.rev.marks);
        let Segment { seq, len, .. } = *segment;
        let mut has_not_advanced = fwd.next_seq != 0 && lt(seq, fwd.next_seq);
        if len > 1 && seq == fwd.next_seq.wrapping_sub(1) {
            has_not_advanced = false; // real data after a one-byte probe
        }
        if len > 0 && rev.last_ack != 0 && le(seq.wrapping_add(len), rev.last_ack) {
            return flag::SPURIOUS_RETRANSMISSION | flag::RETRANSMISSION;
        }
        if !has_not_advanced {
            return 0;
        }
        // differences are unsigned in Wireshark: a clock that was set back makes them huge
        let since_ack = now.wrapping_sub(rev.last_ack_time_ns) as u64;
        if rev.duplicate_acks >= 2 && rev.last_ack == seq && since_ack < FAST_RETRANSMIT_NS {
            return flag::FAST_RETRANSMISSION | flag::RETRANSMISSION;
        }
        let since_next = now.wrapping_sub(fwd.next_seq_time_ns) as u64;
        let limit = match self.shared.initial_rtt_ns() {
            Some(rtt) => rtt as u64,
            _ => DEFAULT_REORDER_NS,
        };
        if since_next < limit && fwd.next_seq != next_of(segment) {
            return flag::OUT_OF_ORDER;
        }
        flag::RETRANSMISSION
    }
}

/// Returns the flags that follow from a comparison of the numbers with the expected ones.
fn sequence_flags(segment: &Segment<'_>, fwd: &mut Marks, rev: &Marks) -> u16 {
    let is_plain = segment.flags & (SYN | FIN | RST) == 0;
    let Segment { seq, ack, len, .. } = *segment;
    let window = u32::from(segment.window);
    let mut flags = 0;
    if len == 1 && seq == fwd.next_seq && rev.window == 0 {
        return flag::ZERO_WINDOW_PROBE;
    }
    if window == 0 && is_plain {
        flags |= flag::ZERO_WINDOW;
    }
    if fwd.next_seq != 0 && lt(fwd.next_seq, seq) && !segment.has(RST) {
        flags |= flag::LOST_SEGMENT;
        fwd.bytes_in_flight_valid = false;
    }
    if len <= 1 && seq == fwd.next_seq.wrapping_sub(1) && is_plain {
        flags |= flag::KEEP_ALIVE;
    }
    let repeats_ack = len == 0 && is_plain && seq == fwd.next_seq && ack == fwd.last_ack;
    if repeats_ack && window != 0 && window != fwd.window {
        flags |= flag::WINDOW_UPDATE;
    }
    if is_plain {
        flags |= window_full(segment, rev);
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

/// `tcp.options.sack.dsack` (RFC 2883 4): the first block ends below the acknowledgement number, or inside the second
/// block.
fn is_dsack(segment: &Segment<'_>) -> bool {
    match *segment.options.sack.blocks() {
        [] => false,
        [(_, right), ..] if le(right, segment.ack) => true,
        [(_, right), (second, end), ..] => lt(second, right) && le(right, end),
        _ => false,
    }
}
