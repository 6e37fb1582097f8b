//! State of one direction of a stream: what its sender has sent and what the peer has acknowledged. `reason` finds from
//! it why the next segment left when it did.

mod freed;
mod pacer;
mod peer_clock;
mod reason;
mod refuting;
mod repair;
mod window;

use std::collections::{BTreeMap, VecDeque};

use super::clock::Clock;
use super::{Data, Early, Outcome, PeerPacket, Step};
use crate::base::At;
use crate::limits::{BURST_NS, LARGE_RATIO};

use freed::NagleReleases;
use pacer::Pacer;
use peer_clock::PeerClock;
use reason::Gap;
pub use repair::answers_late_copy;
use repair::{Hole, Retransmission};
use window::PeerWindow;

/// Upper bound on holes, whole ones, that are remembered at once.
const MAX_HOLES: usize = 64;
/// Upper bound on holes and the parts that segments inside them leave.
const MAX_PARTS: usize = 4096;
/// Number of newest segments kept: copies by the network follow closely.
const RECENT: usize = 4;

/// The ACK that first covered a small segment.
#[derive(Debug, Clone, Copy)]
struct AckSeen {
    at: At,
    lacks_data: bool,
    has_fin: bool,
    tsval: Option<u32>,
    is_echoed: bool,
    held_from: At,
}

/// A small segment, for which Nagle's algorithm may make the next one wait.
#[derive(Debug, Clone, Copy)]
struct Small {
    at: At,
    end_seq: i64,
    tsecr: Option<u32>,
    ack: Option<AckSeen>,
    /// A loss since then may explain waits as well, so no candidate begins with it.
    is_tainted: bool,
    /// The first segment after data of the peer.
    begins_message: bool,
}

/// Identification of a segment, to recognise its copies.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    start_seq: i64,
    ip_id: u16,
    tsval: Option<u32>,
}

/// The peer's newest ACK of new bytes.
#[derive(Debug, Clone, Copy)]
struct Advanced {
    ack: At,
    /// The last segment that it covers.
    acked: At,
    bytes: u32,
    /// The ACK is pure, and nothing else was in flight.
    is_lone: bool,
}

/// The newest segment with new data.
#[derive(Debug, Default)]
struct Newest {
    /// None before the first.
    at: Option<At>,
    was_full: bool,
    /// It was full and not pushed: its sender had more to send.
    had_more: bool,
}

/// Gaps between segments.
#[derive(Debug, Default)]
struct Gaps {
    /// The gap before the newest segment.
    newest_ns: i64,
    /// The longer of the last two gaps: segments may leave in pairs.
    pace_ns: i64,
    /// Number of gaps in a row between full segments that were alike.
    even_count: u8,
}

/// What the peer has acknowledged.
#[derive(Debug, Default)]
struct Acked {
    /// The oldest unacknowledged byte (SND.UNA, RFC 9293).
    una: i64,
    /// The newest ACK of new bytes.
    newest: Option<Advanced>,
    /// The highest byte that the peer has selectively acknowledged.
    highest_sacked: i64,
    /// Duplicate ACKs since the newest ACK of new bytes.
    duplicates: u32,
    /// Something was retransmitted since the newest ACK of new bytes.
    has_retransmitted: bool,
}

/// Small segments that left over an unacknowledged small one: Nagle's algorithm is off.
#[derive(Debug, Default)]
struct Refutations {
    /// The newest segment if it is one.
    newest: Option<Early>,
    /// They stand unless the peer's next packet shows that the capture lacks an ACK.
    awaiting: Vec<Early>,
}

/// The peer, as its packets show it.
#[derive(Debug, Default)]
struct Peer {
    /// Its newest packet.
    newest: Option<At>,
    /// Its newest packet with new data.
    newest_data: Option<At>,
    /// Its first data that this side has not answered.
    unanswered: Option<At>,
    has_sent_fin: bool,
    window: PeerWindow,
    /// Its timestamps against the capture's clock.
    clock: PeerClock,
    /// Its newest timestamp in a packet without data, and in one with data.
    stamps: [Option<u32>; 2],
}

/// The newest segments, to recognise copies.
#[derive(Debug, Default)]
struct Recent {
    ring: [Option<Sent>; RECENT],
    /// Number of segments so far; modulo `RECENT` it is the next place in the ring.
    count: usize,
}

/// One direction of a stream. Times in ns, sequence numbers unwrapped.
#[derive(Debug, Default)]
pub struct Sender {
    newest: Newest,
    gaps: Gaps,
    /// The sequence number after the newest byte; None before the first.
    next_seq: Option<i64>,
    acked: Acked,
    /// The newest small segment that Nagle's algorithm may have to wait for.
    small: Option<Small>,
    /// Small segments that left with the ACK of the one before.
    freed: NagleReleases,
    refutations: Refutations,
    peer: Peer,
    /// This side's first pure ACK of all data of the peer.
    own_ack: Option<At>,
    /// A timeout left a congestion window of one segment, and no two have been in flight since.
    has_collapsed: bool,
    /// Full segments in a row that left with the ACK of the one before, while no two were in flight: the sender has
    /// room for one (small embedded stacks).
    lockstep_count: u8,
    /// Bytes that the capture lacks so far, by their first byte.
    holes: BTreeMap<i64, Hole>,
    /// The peer has acknowledged bytes that the capture lacks.
    has_passed_hole: bool,
    recent: Recent,
    /// The newest retransmissions; few streams have any.
    #[allow(clippy::box_collection)] // 8 bytes in place of 32
    retransmissions: Option<Box<VecDeque<Retransmission>>>,
    /// Segments that are in the capture twice.
    copies: u32,
    /// Timestamps of this side against the capture's clock.
    clock: Clock,
    /// Gaps of a paced sender (fq, BBR).
    pacer: Pacer,
    /// This side has echoed a timestamp of a packet without data: some stacks never do.
    echoes_acks: bool,
}

impl Sender {
    /// Takes the timestamp of a handshake packet.
    pub fn handshake_stamp(&mut self, time_ns: i64, tsval: u32) {
        self.clock.add(time_ns, tsval);
    }

    /// Takes this side's SYN: its data begin at 1.
    pub fn syn_seen(&mut self) {
        (self.next_seq, self.acked.una) = (Some(1), 1);
    }

    /// Takes a packet of the peer with new data.
    pub fn peer_spoke(&mut self, at: At) {
        self.peer.newest_data = Some(at);
        self.peer.unanswered.get_or_insert(at);
    }

    /// Takes a pure ACK by this side of all that the peer sent, with its timestamp.
    pub fn kernel_answered(&mut self, at: At, tsval: Option<u32>) {
        let peer_frame = self.peer.newest_data.map_or(0, |data| data.frame);
        if self.own_ack.is_none_or(|ack| ack.frame < peer_frame) {
            self.own_ack = Some(at);
            if let Some(tsval) = tsval {
                self.clock.add(at.time_ns, tsval);
            }
        }
    }

    pub fn has_sent(&self) -> bool {
        self.newest.at.is_some()
    }

    /// Whether a segment begins too far beyond the peer's room to be data of this connection (a damaged packet).
    pub fn is_beyond(&self, start: i64) -> bool {
        self.peer.window.is_far_beyond(start)
    }

    /// Whether the peer has acknowledged all that this sender sent so far.
    pub fn is_acknowledged(&self) -> bool {
        self.next_seq.is_none_or(|next| self.acked.una >= next)
    }

    /// Takes a packet of the peer: what it acknowledges, how it moves the window, and what it reports lost.
    #[inline(always)]
    pub fn answer(&mut self, packet: &PeerPacket) {
        let at = packet.at;
        self.peer.has_sent_fin |= packet.has_fin;
        if let Some(tsval) = packet.tsval {
            self.peer.clock.record(at.time_ns, tsval);
            let [alone, with_data] = &mut self.peer.stamps;
            *(if packet.len == 0 { alone } else { with_data }) = Some(tsval);
        }
        if let Some(covered) = packet.covered {
            let acked = At {
                frame: covered.last_frame,
                time_ns: covered.last_time_ns,
            };
            self.acked.newest = Some(Advanced {
                ack: at,
                acked,
                bytes: covered.bytes,
                is_lone: packet.len == 0
                    && !packet.has_fin
                    && self.next_seq.is_some_and(|next| packet.ack >= next),
            });
        }
        if let Some(small) = &mut self.small
            && small.ack.is_none()
            && packet.ack >= small.end_seq
        {
            let held_from = packet.covered.map_or(small.at, |covered| At {
                frame: covered.first_frame,
                time_ns: covered.first_time_ns,
            });
            small.ack = Some(AckSeen {
                at,
                lacks_data: packet.len == 0,
                has_fin: packet.has_fin,
                tsval: packet.tsval,
                is_echoed: packet.is_echoed,
                held_from,
            });
        }
        if packet.ack > self.acked.una {
            self.acked.una = packet.ack;
            (self.acked.duplicates, self.acked.has_retransmitted) = (0, false);
            if !self.holes.is_empty() {
                self.pass_holes();
            }
        } else if packet.is_duplicate {
            self.acked.duplicates += 1;
        }
        self.peer.window.take(packet);
        // a SACK beyond the window is wrong: a middlebox rewrote the sequence numbers, but not the option
        if let Some(sacked) = packet.highest_sacked
            && self.peer.window.right_edge.is_none_or(|edge| sacked <= edge)
        {
            self.acked.highest_sacked = self.acked.highest_sacked.max(sacked);
        }
        self.peer.newest = Some(at);
    }

    /// Forgets acknowledged holes: the capture lacks those bytes, the network did not lose them.
    #[cold]
    fn pass_holes(&mut self) {
        let (before, una) = (self.holes.len(), self.acked.una);
        self.holes = self.holes.split_off(&una);
        self.has_passed_hole |= self.holes.len() < before;
    }

    /// Remembers that bytes are missing before this segment.
    #[cold]
    fn found_hole(&mut self, start: i64, data: &Data) {
        if self.acked.una > start {
            self.has_passed_hole = true; // the peer has acknowledged them already
        } else if self.holes.len() < MAX_HOLES {
            let hole = Hole {
                start_seq: start,
                end_seq: data.start_seq,
                shown_by: data.at,
                next_id: data.ip_id,
                is_tail: false,
            };
            self.holes.insert(start, hole);
        }
    }

    /// Whether the bytes right before `start` are missing, as a packet without data showed (`passed`).
    #[inline(always)]
    fn is_behind_hole(&self, start: i64) -> bool {
        let newest = || self.holes.last_key_value();
        !self.holes.is_empty() && newest().is_some_and(|(_, hole)| hole.end_seq == start)
    }

    /// Takes a data segment of this sender. `missing_count` is the number of its frames that the capture lacks before
    /// this one, None where unknown; `first_copy` is an earlier segment with the same bytes.
    #[inline(always)]
    pub fn data(&mut self, data: &Data, missing_count: Option<u16>, first_copy: Option<At>) -> Outcome {
        self.settle_refutation(data.at.time_ns);
        self.refutations.newest = None;
        let next = self.next_seq.unwrap_or(data.start_seq);
        if data.start_seq < next {
            return self.retransmit(data, next, first_copy);
        }
        // the wait for a side's first segment begins with the peer's data
        let from = self.newest.at.or(self.peer.unanswered).unwrap_or(data.at);
        let shows_hole = data.start_seq > next;
        if shows_hole {
            self.found_hole(next, data);
        }
        let has_hole = shows_hole || self.is_behind_hole(data.start_seq);
        if !self.echoes_acks
            && let ([Some(alone), with_data], Some(echo)) = (self.peer.stamps, data.tsecr)
            && echo == alone
            && with_data != Some(alone)
        {
            self.echoes_acks = true;
        }
        let forward_gap_ns = self.newest.at.map_or(0, |last| data.at.time_ns - last.time_ns);
        let gap = Gap {
            from,
            ns: data.at.time_ns - from.time_ns,
            has_hole,
            is_even: forward_gap_ns > BURST_NS.get() && self.is_even(forward_gap_ns),
            missing_count,
        };
        let wait = self.classify(data, gap);
        self.forward(data, forward_gap_ns, gap.is_even);
        Outcome::Forward(Step {
            from,
            to: data.at,
            wait,
        })
    }

    fn is_even(&self, gap_ns: i64) -> bool {
        let difference_ns = gap_ns.saturating_sub(self.gaps.newest_ns).saturating_abs();
        difference_ns.saturating_mul(LARGE_RATIO.get()) <= gap_ns && self.newest.was_full
    }

    #[inline(always)]
    fn forward(&mut self, data: &Data, gap_ns: i64, is_even: bool) {
        if self.pacer.is_relevant(data) {
            self.pacer.sent(data, gap_ns, self.recent.count);
        }
        self.peer.window.first_move = None;
        if self.acked.una < data.start_seq {
            (self.has_collapsed, self.lockstep_count) = (false, 0);
        }
        if data.is_small {
            self.small = Some(Small {
                at: data.at,
                end_seq: data.end_seq,
                tsecr: data.tsecr,
                ack: None,
                is_tainted: false,
                begins_message: self.peer.unanswered.is_some(),
            });
        } else if self
            .small
            .as_ref()
            .and_then(|small| small.ack.as_ref())
            .is_some_and(|ack| had_arrived(ack, data))
        {
            self.small = None; // the small segment was acknowledged when this full one left
        }
        self.peer.unanswered = None;
        self.next_seq = Some(self.next_seq.map_or(data.end_seq, |next| next.max(data.end_seq)));
        self.gaps.even_count = if is_even {
            self.gaps.even_count.saturating_add(1)
        } else {
            0
        };
        (self.gaps.pace_ns, self.gaps.newest_ns) = (gap_ns.max(self.gaps.newest_ns), gap_ns);
        (self.newest.at, self.newest.was_full) = (Some(data.at), !data.is_small);
        self.newest.had_more = !data.is_small && !data.is_pushed;
        self.remember(data);
    }

    fn remember(&mut self, data: &Data) {
        if let Some(slot) = self.recent.ring.get_mut(self.recent.count % RECENT) {
            *slot = Some(Sent {
                start_seq: data.start_seq,
                ip_id: data.ip_id.unwrap_or(0),
                tsval: data.tsval,
            });
        }
        self.recent.count = self.recent.count.wrapping_add(1);
    }

    /// Returns the newest segment.
    fn newest(&self) -> Option<&Sent> {
        self.recent
            .ring
            .get(self.recent.count.wrapping_sub(1) % RECENT)?
            .as_ref()
    }

    /// Excludes the newest small segment from candidates, because a loss may explain the next wait.
    fn taint(&mut self) {
        if let Some(small) = &mut self.small {
            small.is_tainted = true;
        }
    }
}

/// Whether the ACK had reached the sender when this segment left, by the path's best round trip.
fn had_arrived(ack: &AckSeen, data: &Data) -> bool {
    data.at.time_ns - ack.at.time_ns > data.own_rtt_ns + BURST_NS.get()
}

#[cfg(test)]
mod tests;
