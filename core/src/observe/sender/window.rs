//! The peer's receive window, as its packets announce it.

use crate::base::At;
use crate::limits::{BEYOND_ROOM, RTO_NS};
use crate::observe::{Data, PeerPacket, Wait};

/// Largest window scale (RFC 7323 2.3).
const MAX_SCALE: usize = 14;

/// The peer's receive window. A move is the packet that moved the right edge, and the edge before it.
#[derive(Debug, Default)]
pub(super) struct PeerWindow {
    /// The right edge.
    pub(super) right_edge: Option<i64>,
    pub(super) last_move: Option<(At, i64)>,
    /// The first move since this side last sent.
    pub(super) first_move: Option<(At, i64)>,
    /// The newest frame in which the window was 0.
    pub(super) zero_frame: u64,
    /// Upper bound on the last byte that the peer had room for, where its window scale is unknown.
    pub(super) room_end: Option<i64>,
}

impl PeerWindow {
    pub(super) fn take(&mut self, packet: &PeerPacket) {
        if packet.is_scale_known {
            let edge = packet.ack + packet.window;
            let before = self.right_edge.unwrap_or(edge);
            if edge > before || self.right_edge.is_none() {
                self.last_move = Some((packet.at, before));
                self.first_move.get_or_insert((packet.at, before));
            }
            self.right_edge = Some(before.max(edge));
        } else {
            let max_edge = packet.ack.saturating_add(packet.window << MAX_SCALE);
            self.room_end = self.room_end.max(Some(max_edge));
        }
        if packet.window == 0 {
            self.zero_frame = packet.at.frame;
        }
    }

    /// Whether a segment begins too far beyond the window to be data of this connection.
    pub(super) fn is_far_beyond(&self, start: i64) -> bool {
        let room = self.right_edge.or(self.room_end);
        room.is_some_and(|room| start > room.saturating_add(BEYOND_ROOM.get()))
    }

    /// Returns the wait of a segment that did not fit into the window at `from`; None if it did.
    pub(super) fn wait_for_room(&self, from: At, data: &Data) -> Option<Wait> {
        let (opened, was_zero) = (self.opened_for(from, data)?, self.zero_frame > from.frame);
        Some(Wait::Window { opened, was_zero })
    }

    /// Returns the packet that opened the window for a segment, if one did since `from`. A second update within a round
    /// trip of the first was sent before the sender can have used the first, so the first counts.
    fn opened_for(&self, from: At, data: &Data) -> Option<At> {
        let (newest, before) = self.last_move.filter(|(newest, _)| newest.frame > from.frame)?;
        if data.end_seq > before {
            return Some(newest);
        }
        let (first, before) = self.first_move?;
        let is_meanwhile = newest.time_ns - first.time_ns <= data.own_rtt_ns;
        (first.frame > from.frame && data.end_seq > before && is_meanwhile).then_some(first)
    }

    /// Whether the window opened for a segment only after the small one before it (`small_frame`): then the window held
    /// it, not Nagle's algorithm.
    pub(super) fn opened_after(&self, small_frame: u64, data: &Data) -> bool {
        self.last_move
            .is_some_and(|(opened, before)| opened.frame > small_frame && data.end_seq > before)
    }

    /// Whether a segment, not full, ends at the window's edge and left a timer's time after the peer's newest packet
    /// (`newest_answer`): the sender had more data (RFC 9293 3.8.6.2.1), and its probe timer sent the part that fits.
    pub(super) fn is_filled_by(&self, data: &Data, newest_answer: At) -> bool {
        self.right_edge == Some(data.end_seq)
            && data.end_seq - data.start_seq < i64::from(data.mss)
            && data.at.time_ns - newest_answer.time_ns >= RTO_NS.get()
    }
}
