//! What the handshake and options show about a stream: initial sequence numbers, window scales, the handshake RTT,
//! SACK blocks, and how complete the capture of the stream is.

use super::{Analysis, FirstTrip, Flow, Scale};
use crate::segment::{ACK, FIN, RST, SYN, Segment};

/// Bits of Wireshark's `tcp.completeness`.
pub mod completeness {
    pub const SYN: u8 = 1;
    pub const SYN_ACK: u8 = 2;
    pub const ACK: u8 = 4;
    pub const DATA: u8 = 8;
    pub const FIN: u8 = 16;
    pub const RST: u8 = 32;
}

impl Flow {
    /// Handles a SYN of this side; returns whether it moves the base that the side has.
    pub(super) fn move_base(&mut self, segment: &Segment<'_>) -> bool {
        let Some(base) = self.marks.base else { return false };
        if !segment.has(ACK) {
            // a repeated SYN repairs state that a stray RST may have broken
            self.marks.next_seq = self.marks.max_seq_to_be_acked;
            return false;
        }
        if base != segment.seq {
            self.marks.base = Some(segment.seq);
            self.unacked.base_moved();
        }
        base != segment.seq
    }
}

impl Analysis<'_> {
    /// Sets the bases of relative numbers; returns whether a SYN/ACK moves the base of its side.
    pub(super) fn set_bases(&mut self, segment: &Segment<'_>) -> bool {
        let is_moved = segment.has(SYN) && self.fwd.move_base(segment);
        if self.fwd.marks.base.is_none() {
            self.fwd.marks.base = Some(segment.seq.wrapping_sub(u32::from(!segment.has(SYN))));
        }
        if segment.has(ACK) && self.rev.marks.base.is_none() {
            self.rev.marks.base = Some(segment.ack.wrapping_sub(1));
        }
        is_moved
    }

    /// Updates the state after an ordinary segment (`is_ordinary`).
    #[inline(always)]
    pub(super) fn after_ordinary(&mut self, segment: &Segment<'_>) {
        self.fwd.marks.sacked_bytes = 0;
        self.fwd.marks.first_ack_pending = false;
        self.shared.completeness |= data_or_ack(segment);
    }

    /// Updates the state by options and handshake, after the analysis of the same segment.
    pub(super) fn after_options(&mut self, segment: &Segment<'_>, now: i64) {
        let (fwd, rev, shared) = (&mut self.fwd.marks, &mut self.rev.marks, &mut *self.shared);
        fwd.sacked_bytes = match segment.options.sack.count {
            0 => 0,
            _ => sacked_bytes(segment),
        };
        let (has_syn, has_ack) = (segment.has(SYN), segment.has(ACK));
        if let Some(shift) = segment.options.wscale {
            fwd.scale = Scale::Shift(shift); // also where the option does not belong, on a segment without SYN
        }
        if has_syn {
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
        self.update_completeness(segment);
        let has_bases = self.fwd.marks.base.is_some() && self.rev.marks.base.is_some();
        self.shared.is_settled = has_bases && !matches!(self.shared.first_trip, FirstTrip::Since(_));
    }

    /// Updates `tcp.completeness`, as in Wireshark's window and two-pass tshark (one pass leaves out the packet that
    /// opens the stream). A SYN counts only if it opens the stream, and its data only if the endpoints are not reused.
    fn update_completeness(&mut self, segment: &Segment<'_>) {
        let is_first = !std::mem::replace(&mut self.shared.has_started, true);
        let has_ack = segment.has(ACK);
        self.shared.completeness |= match (segment.has(SYN), has_ack) {
            (true, false) if is_first && segment.len > 0 && !self.is_reuse => {
                completeness::SYN | completeness::DATA
            }
            (true, false) if is_first => completeness::SYN,
            (true, true) => completeness::SYN_ACK,
            (false, true) => data_or_ack(segment),
            _ => 0,
        };
        if has_ack && segment.has(FIN) {
            self.shared.completeness |= completeness::FIN;
        }
        if segment.has(RST) {
            self.shared.completeness |= completeness::RST;
        }
    }
}

/// Sum of the first three SACK blocks: Wireshark 4.0 ignores a fourth.
#[cold]
fn sacked_bytes(segment: &Segment<'_>) -> u32 {
    let blocks = segment.options.sack.blocks().iter().take(3);
    blocks.fold(0u32, |sum, &(left, right)| {
        sum.wrapping_add(right.wrapping_sub(left))
    })
}

/// The bit of the completeness for a segment with ACK.
#[inline(always)]
fn data_or_ack(segment: &Segment<'_>) -> u8 {
    if segment.len > 0 {
        completeness::DATA
    } else {
        completeness::ACK
    }
}
