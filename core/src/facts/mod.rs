//! Wireshark's TCP analysis: takes one segment and the state of its stream, returns the segment's facts.
//!
//! The rules and their order are those of `tcp_analyze_sequence_number` in Wireshark 4.0 (`tcp.analysis.*`,
//! packet-tcp.c), quirks included, so that every fact can be compared with it.

mod handshake;
mod rules;
mod unacked;

use crate::base::At;
use crate::segment::{ACK, FIN, PSH, SYN, Segment};
use crate::seq::{lt, unwrap_near};

pub use handshake::completeness;
use rules::{next_of, window_full};
pub use unacked::{Outstanding, UnackedBudget};
use unacked::{Sent, Unacked};

/// Wireshark's flags of one segment, as bits of a row.
pub mod flag {
    pub const RETRANSMISSION: u16 = 1 << 0;
    pub const FAST_RETRANSMISSION: u16 = 1 << 1;
    pub const SPURIOUS_RETRANSMISSION: u16 = 1 << 2;
    pub const OUT_OF_ORDER: u16 = 1 << 3;
    pub const LOST_SEGMENT: u16 = 1 << 4;
    pub const ACK_LOST_SEGMENT: u16 = 1 << 5;
    pub const DUPLICATE_ACK: u16 = 1 << 6;
    pub const KEEP_ALIVE: u16 = 1 << 7;
    pub const KEEP_ALIVE_ACK: u16 = 1 << 8;
    pub const WINDOW_UPDATE: u16 = 1 << 9;
    pub const WINDOW_FULL: u16 = 1 << 10;
    pub const ZERO_WINDOW: u16 = 1 << 11;
    pub const ZERO_WINDOW_PROBE: u16 = 1 << 12;
    pub const ZERO_WINDOW_PROBE_ACK: u16 = 1 << 13;
    pub const REUSED_PORTS: u16 = 1 << 14;
    /// The first SACK block is a D-SACK (RFC 2883).
    pub const DSACK: u16 = 1 << 15;
    /// In the order of the bits; these are the column names.
    pub const NAMES: [&str; 16] = [
        "retransmission",
        "fast_retransmission",
        "spurious_retransmission",
        "out_of_order",
        "lost_segment",
        "ack_lost_segment",
        "duplicate_ack",
        "keep_alive",
        "keep_alive_ack",
        "window_update",
        "window_full",
        "zero_window",
        "zero_window_probe",
        "zero_window_probe_ack",
        "reused_ports",
        "dsack",
    ];
}

/// Upper bound on the unacknowledged segments kept per direction, as in Wireshark.
const MAX_UNACKED: usize = 10_000;
/// Value of `Marks::window` before the first segment.
const WINDOW_UNKNOWN: u32 = u32::MAX;
/// Mark that duplicate ACKs do not count, in Wireshark an unsigned -1, which passes the test for "two or more".
const DUPACKS_BARRED: u32 = u32::MAX;

/// Window scale of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// No SYN was captured: windows are shown raw, and "window full" is unknown.
    #[default]
    Unknown,
    /// The handshake went without the option.
    Unused,
    Shift(u8),
}

/// State of one direction of a stream.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    pub marks: Marks,
    unacked: Unacked,
}

/// State of a direction without its unacknowledged segments. Names follow Wireshark's structure where it has the
/// field.
#[derive(Debug, Clone)]
pub struct Marks {
    /// Sequence number from which relative numbers count.
    pub base: Option<u32>,
    pub scale: Scale,
    window: u32,
    next_seq: u32,
    next_seq_time_ns: i64,
    max_seq_to_be_acked: u32,
    last_ack: u32,
    last_ack_time_ns: i64,
    duplicate_acks: u32,
    last_flags: u16,
    bytes_in_flight_valid: bool,
    first_ack_pending: bool,
    push_set_last: bool,
    /// Bytes sent since the last PSH.
    push_bytes_sent: u32,
    sacked_bytes: u32,
    /// Highest relative sequence number so far, unwrapped.
    pub highest_seq: i64,
}

impl Default for Marks {
    fn default() -> Self {
        Marks {
            base: None,
            scale: Scale::Unknown,
            window: WINDOW_UNKNOWN,
            next_seq: 0,
            next_seq_time_ns: 0,
            max_seq_to_be_acked: 0,
            last_ack: 0,
            last_ack_time_ns: 0,
            duplicate_acks: 0,
            last_flags: 0,
            bytes_in_flight_valid: true,
            first_ack_pending: false,
            push_set_last: false,
            push_bytes_sent: 0,
            sacked_bytes: 0,
            highest_seq: 0,
        }
    }
}

impl Marks {
    /// Moves the highest numbers on to a segment from `seq` up to `next`.
    #[inline(always)]
    fn advance(&mut self, seq: u32, next: u32, now: i64) {
        if self.next_seq == 0 || lt(self.next_seq, next) {
            (self.next_seq, self.next_seq_time_ns) = (next, now);
        }
        if self.max_seq_to_be_acked == 0 || self.max_seq_to_be_acked == seq {
            self.max_seq_to_be_acked = self.next_seq;
        }
    }
}

impl Flow {
    /// Whether its windows have a known size.
    pub fn is_scaled(&self) -> bool {
        self.marks.scale != Scale::Unknown
    }

    /// Resets the state. A short list keeps its capacity, which short connections would otherwise allocate each time.
    pub fn restart(&mut self) {
        self.resume(Marks::default());
    }

    /// Restores the state of an ended stream, without unacknowledged segments.
    pub fn resume(&mut self, marks: Marks) {
        self.marks = marks;
        self.unacked.restart();
    }

    /// Keeps a segment until it is acknowledged. Returns the number after its end as Wireshark stores it.
    #[inline(always)]
    fn keep_sent(&mut self, segment: &Segment<'_>, next: u32, at: At) -> u32 {
        let seq = segment.seq;
        if !self.unacked.has_room() {
            return seq.wrapping_add(segment.len); // a quirk of Wireshark: without the one of SYN or FIN
        }
        let sent = Sent {
            seq,
            next,
            frame: at.frame,
            time_ns: at.time_ns,
        };
        self.unacked.push(self.marks.base.unwrap_or(0), sent);
        next
    }

    /// The packet that first sent the byte `seq`, if that is still unacknowledged.
    fn first_copy(&self, seq: u32) -> Option<At> {
        let marks = &self.marks;
        if marks.next_seq == 0 || !lt(seq, marks.next_seq) {
            return None;
        }
        let first = self.unacked.first_copy(marks.base.unwrap_or(0), seq)?;
        Some(At {
            frame: first.frame,
            time_ns: first.time_ns,
        })
    }
}

/// The RTT of the handshake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FirstTrip {
    #[default]
    Unknown,
    /// Time of the newest SYN without ACK, in ns, until the first plain ACK.
    Since(i64),
    Took(i64),
}

impl Shared {
    #[inline(always)]
    pub fn initial_rtt_ns(&self) -> Option<i64> {
        match self.first_trip {
            FirstTrip::Took(ns) => Some(ns),
            _ => None,
        }
    }
}

/// State of the handshake that both directions share.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shared {
    first_trip: FirstTrip,
    pub completeness: u8,
    has_started: bool,
    /// Both directions have a base, and no handshake RTT is being measured.
    is_settled: bool,
}

/// The unacknowledged bytes that an ACK newly covers; times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered {
    pub bytes: u32,
    pub first_frame: u64,
    pub first_time_ns: i64,
    pub last_frame: u64,
    pub last_time_ns: i64,
}

/// One segment's facts. Relative numbers are unwrapped to 64 bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts {
    pub seq: i64,
    pub ack: i64,
    pub next_seq: i64,
    pub window: u32,
    pub flags: u16,
    /// The segment has numbers only: no SYN, FIN or RST, no flag but `WINDOW_FULL`, no SACK.
    pub is_ordinary: bool,
    /// Frame that the segment acknowledges, and the time since that frame in ns.
    pub acks: Option<(u64, i64)>,
    pub bytes_in_flight: Option<u32>,
    pub push_bytes_sent: Option<u32>,
    pub covered: Option<Covered>,
    /// The packet that first sent its first byte, if it repeats unacknowledged bytes.
    pub first_copy: Option<At>,
}

/// Whether a SYN opens a new connection on the endpoints of a stream whose sender has the initial sequence number
/// `base`.
pub fn is_reuse(segment: &Segment<'_>, base: Option<u32>) -> bool {
    segment.has(SYN) && !segment.has(ACK) && base.is_some_and(|base| base != segment.seq)
}

/// Facts of a segment that is not analysed: its own numbers, relative if the stream's bases are known.
pub fn unanalysed(segment: &Segment<'_>, fwd: &Flow, rev: &Flow) -> Facts {
    let relative = |number: u32, flow: &Flow| match flow.marks.base {
        Some(base) => unwrap_near(number.wrapping_sub(base), flow.marks.highest_seq),
        None => i64::from(number),
    };
    let seq = relative(segment.seq, fwd);
    Facts {
        seq,
        ack: if segment.has(ACK) {
            relative(segment.ack, rev)
        } else {
            0
        },
        next_seq: seq,
        window: u32::from(segment.window),
        ..Facts::default()
    }
}

/// A stream's state while one of its segments is analysed.
pub struct Analysis<'a> {
    /// State of the segment's direction.
    pub fwd: &'a mut Flow,
    /// State of the other direction.
    pub rev: &'a mut Flow,
    pub shared: &'a mut Shared,
    /// Whether the segment opened the stream on endpoints that were in use.
    pub is_reuse: bool,
}

impl Analysis<'_> {
    /// Fills in the facts of one segment.
    #[inline(always)]
    pub fn segment(&mut self, segment: &Segment<'_>, at: At, facts: &mut Facts) {
        if self.is_ordinary(segment) {
            let flags = window_full(segment, &self.rev.marks);
            self.update_flows::<true>(segment, flags, at, facts);
            self.after_ordinary(segment);
            facts.is_ordinary = true;
        } else {
            // another value, as the call would otherwise keep the fields of this one in memory on both paths
            let unusual = Analysis {
                fwd: self.fwd,
                rev: self.rev,
                shared: self.shared,
                is_reuse: self.is_reuse,
            };
            unusual.unusual(segment, at, facts);
        }
    }

    /// The cold path, about one segment in ten: SYN, FIN, RST, retransmissions, holes, zero windows.
    #[inline(never)]
    fn unusual(mut self, segment: &Segment<'_>, at: At, facts: &mut Facts) {
        facts.first_copy = self.fwd.first_copy(segment.seq);
        let flags = self.all_flags(segment, at.time_ns);
        self.update_flows::<false>(segment, flags, at, facts);
        self.after_options(segment, at.time_ns);
    }

    /// Reads a header quoted inside an ICMP error: as in Wireshark, its handshake and options count, its sequence
    /// numbers do not.
    pub fn quoted(&mut self, segment: &Segment<'_>, now: i64) {
        if segment.has(SYN) {
            self.fwd.move_base(segment);
        }
        self.after_options(segment, now);
    }

    /// Updates what both directions remember, and sets the facts except `first_copy`.
    #[inline(always)]
    fn update_flows<const ORDINARY: bool>(
        &mut self,
        segment: &Segment<'_>,
        flags: u16,
        at: At,
        facts: &mut Facts,
    ) {
        let (now, Segment { seq, ack, len, .. }) = (at.time_ns, *segment);
        if ORDINARY || segment.has(ACK) {
            self.rev.marks.bytes_in_flight_valid = true;
        }
        if ack != self.fwd.marks.last_ack {
            self.fwd.marks.duplicate_acks = 0;
        }
        let mut next = if ORDINARY {
            seq.wrapping_add(len)
        } else {
            next_of(segment)
        };
        if len > 0 || !ORDINARY && segment.flags & (SYN | FIN) != 0 {
            next = self.fwd.keep_sent(segment, next, at);
        }
        let marks = &mut self.fwd.marks;
        if flags & flag::ZERO_WINDOW_PROBE == 0 {
            marks.advance(seq, next, now);
        }
        marks.window = u32::from(segment.window);
        marks.last_ack = ack;
        marks.last_ack_time_ns = now;
        marks.last_flags = flags;

        let peer_base = self.rev.marks.base.unwrap_or(0);
        self.rev.unacked.acknowledge(peer_base, ack, now, facts);
        if len > 0 {
            (facts.bytes_in_flight, facts.push_bytes_sent) = self.in_flight(segment);
        }
        facts.flags = flags;
        self.set_numbers::<ORDINARY>(segment, facts);
    }

    /// Unacknowledged bytes, and bytes sent since the last PSH; None if nothing is in flight, or a hole makes it
    /// unknown.
    #[inline(always)]
    fn in_flight(&mut self, segment: &Segment<'_>) -> (Option<u32>, Option<u32>) {
        let marks = &mut self.fwd.marks;
        let extremes = self.fwd.unacked.extremes(marks.base.unwrap_or(0));
        let Some((low, high)) = extremes.filter(|_| marks.bytes_in_flight_valid) else {
            return (None, None);
        };
        let mut flying = high.wrapping_sub(low).wrapping_sub(self.rev.marks.sacked_bytes);
        if flying == 0 || flying >= 2_000_000_000 {
            flying = 0;
        } else if segment.flags & (SYN | FIN) != 0 {
            flying -= 1;
        }
        marks.push_bytes_sent = if marks.push_set_last {
            segment.len
        } else {
            marks.push_bytes_sent.wrapping_add(segment.len)
        };
        marks.push_set_last = segment.has(PSH);
        if flying == 0 {
            (None, None)
        } else {
            (Some(flying), Some(marks.push_bytes_sent))
        }
    }

    /// Sets the scaled window and the relative numbers.
    #[inline(always)]
    fn set_numbers<const ORDINARY: bool>(&mut self, segment: &Segment<'_>, facts: &mut Facts) {
        let (marks, peer_marks) = (&mut self.fwd.marks, &self.rev.marks);
        let has = |flags| !ORDINARY && segment.flags & flags != 0;
        let window = u32::from(segment.window);
        facts.window = match marks.scale {
            Scale::Shift(shift) if !has(SYN) => window << shift.min(14),
            _ => window,
        };
        facts.seq = unwrap_near(
            segment.seq.wrapping_sub(marks.base.unwrap_or(0)),
            marks.highest_seq,
        );
        facts.next_seq = facts.seq + i64::from(segment.len) + i64::from(has(SYN | FIN));
        if facts.next_seq > marks.highest_seq {
            marks.highest_seq = facts.next_seq;
        }
        facts.ack = match peer_marks.base {
            Some(base) if ORDINARY || segment.has(ACK) => {
                unwrap_near(segment.ack.wrapping_sub(base), peer_marks.highest_seq)
            }
            _ => i64::from(segment.ack),
        };
    }
}

#[cfg(test)]
mod tests;
