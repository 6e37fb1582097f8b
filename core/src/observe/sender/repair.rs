//! Retransmitted and late segments: which bytes are missing, how they were repaired, and whether that was needed.

use super::{MAX_HOLES, MAX_PARTS, Sender, Sent};
use crate::base::At;
use crate::limits::{
    DELACK_MIN_NS, DUPLICATES, INITIAL_RTO_NS, MOST_LATE_NS, NEAR_IDS, NEARLY_ALL, NOISE_NS, PROBE_NS,
    RTO_NS, TWO_TICKS_NS,
};
use crate::observe::{Data, Outcome, PeerPacket, Repair, Step, Wait};

/// Number of newest retransmissions kept, which a DSACK may still report.
const MAX_RETRANSMISSIONS: usize = 16;

/// Bytes that the capture lacks so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hole {
    pub(super) start_seq: i64,
    pub(super) end_seq: i64,
    /// The packet that showed the hole.
    pub(super) shown_by: At,
    /// Its IP identification.
    pub(super) next_id: Option<u16>,
    /// A packet without data showed it: no data followed, so no SACK can have caused a retransmission.
    pub(super) is_tail: bool,
}

/// A retransmission.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retransmission {
    start_seq: i64,
    end_seq: i64,
    at: At,
    tsval: Option<u32>,
}

impl Sender {
    /// Returns the newest retransmission, whose first copy may still be under way.
    pub fn newest_retransmission(&self) -> Option<At> {
        self.retransmissions
            .as_ref()?
            .back()
            .map(|retransmission| retransmission.at)
    }

    /// Returns the newest retransmission that a packet of the peer shows to be spurious, before that packet is read.
    /// There are two signs:
    ///
    /// 1. It acknowledges those bytes with a timestamp from before the retransmission (RFC 3522), or without timestamps
    ///    sooner than a round trip of `rtt` after it.
    /// 2. It is a duplicate ACK although nothing else has arrived: it answers a late first copy.
    pub fn answers_first_copy(&mut self, packet: &PeerPacket, rtt: Option<i64>) -> Option<At> {
        let too_soon = |sent: At| {
            rtt.is_some_and(|rtt| ((packet.at.time_ns - sent.time_ns) as f64) < rtt as f64 * NEARLY_ALL.get())
        };
        let mut newest = self.retransmissions.as_ref()?.iter().rev();
        if packet.ack > self.acked.una {
            let una = self.acked.una;
            let retransmission = newest.find(|retransmission| {
                retransmission.start_seq <= una
                    && una < retransmission.end_seq
                    && retransmission.end_seq <= packet.ack
            })?;
            let earlier = match (retransmission.tsval, packet.tsecr) {
                (Some(sent), Some(echo)) => echo.wrapping_sub(sent).cast_signed() < 0,
                _ => too_soon(retransmission.at),
            };
            return earlier.then_some(retransmission.at);
        }
        let retransmission = newest.next()?.at;
        let newest_sent = self.newest();
        // more than the retransmission may be under way
        let is_one_under_way = self.newest.at != Some(retransmission)
            && newest_sent.is_some_and(|sent| sent.start_seq == self.acked.una);
        let is_quiet = self.is_acknowledged() || is_one_under_way && self.newest.at.is_some_and(too_soon);
        let is_unprompted =
            packet.is_duplicate && packet.len == 0 && packet.highest_sacked.is_none() && is_quiet;
        (is_unprompted && answers_late_copy(retransmission, packet.at)).then_some(retransmission)
    }

    /// Returns the newest retransmission of bytes that the peer received twice.
    pub fn came_twice(&mut self, (start, end): (i64, i64)) -> Option<At> {
        let mut newest = self.retransmissions.as_ref()?.iter().rev();
        newest
            .find(|retransmission| retransmission.start_seq < end && retransmission.end_seq > start)
            .map(|retransmission| retransmission.at)
    }

    /// Takes a packet of this sender without data. A sequence number beyond all that was seen shows a hole: the bytes
    /// below were sent, and lost before the capture or, if the peer has acknowledged them, by it.
    #[inline(always)]
    pub fn passed(&mut self, seq: i64, at: At, ip_id: Option<u16>) {
        if self.next_seq.is_some_and(|next| seq > next) {
            self.passed_beyond(seq, at, ip_id);
        }
    }

    #[cold]
    #[inline(never)]
    fn passed_beyond(&mut self, seq: i64, at: At, ip_id: Option<u16>) {
        if let Some(next) = self.next_seq
            && seq > self.acked.una
            && self.holes.len() < MAX_HOLES
        {
            let hole = Hole {
                start_seq: next,
                end_seq: seq,
                shown_by: at,
                next_id: ip_id,
                is_tail: true,
            };
            self.holes.insert(next, hole);
            self.next_seq = Some(seq);
        }
    }

    /// Whether a segment that begins at `start` makes a hole that cannot be remembered, or may leave too many parts of
    /// one.
    pub fn has_too_many_holes(&self, start: i64) -> bool {
        let parts = self.holes.len();
        parts >= MAX_PARTS || parts >= MAX_HOLES && self.next_seq.is_some_and(|next| start > next)
    }

    /// Returns the first hole that overlaps these bytes.
    fn first_hole(&self, start: i64, end: i64) -> Option<Hole> {
        let around = self
            .holes
            .range(..=start)
            .next_back()
            .filter(|(_, hole)| hole.end_seq > start);
        let behind = || self.holes.range(start..end).next();
        around.or_else(behind).map(|(_, hole)| *hole)
    }

    /// Whether more than half of the segments are in the capture twice: two capture points, or a mirror port of both
    /// ways.
    pub fn is_doubled(&self) -> bool {
        self.copies as usize > self.recent.count / 2
    }

    /// Whether a segment was sent before the newest one, by its timestamp or IP identification. A retransmission has
    /// new ones.
    fn is_older(&self, data: &Data) -> bool {
        let last = self.newest();
        let ticks = match (data.tsval, last.and_then(|last| last.tsval)) {
            (Some(now), Some(last)) => now.wrapping_sub(last).cast_signed(),
            _ => 0,
        };
        let ids = match (data.ip_id.unwrap_or(0), last.map_or(0, |last| last.ip_id)) {
            (0, _) | (_, 0) => 0,
            (now, last) => now.wrapping_sub(last).cast_signed(),
        };
        ticks < 0 || ticks == 0 && (-NEAR_IDS.get()..0).contains(&ids)
    }

    /// Takes bytes that were sent before, or that fill a hole.
    pub(super) fn retransmit(&mut self, data: &Data, next: i64, first_copy: Option<At>) -> Outcome {
        let from = self.newest.at.unwrap_or(data.at);
        if let Some(hole) = self.first_hole(data.start_seq, data.end_seq) {
            self.holes.remove(&hole.start_seq);
            for (start, end) in [(hole.start_seq, data.start_seq), (data.end_seq, hole.end_seq)] {
                if start < end && self.holes.len() < MAX_PARTS {
                    self.holes.insert(
                        start,
                        Hole {
                            start_seq: start,
                            end_seq: end,
                            ..hole
                        },
                    );
                }
            }
            let how = match filled_how(data, &hole) {
                Repair::Fast if hole.is_tail => self.tail_how(data),
                how => how,
            };
            return self.repaired(data, from, how, None, Some(hole.shown_by));
        }
        let is_copy = self.is_copy(data);
        if is_copy && first_copy.is_some_and(|first| data.at.time_ns - first.time_ns < TWO_TICKS_NS.get()) {
            self.copies = self.copies.saturating_add(1);
        }
        if is_copy || (data.end_seq <= self.acked.una && data.end_seq <= next) {
            return Outcome::NothingNew;
        }
        let how = self.retransmitted_how(data, from, next);
        self.acked.has_retransmitted = true;
        let retransmissions = self.retransmissions.get_or_insert_default();
        if retransmissions.len() >= MAX_RETRANSMISSIONS {
            retransmissions.pop_front();
        }
        retransmissions.push_back(Retransmission {
            start_seq: data.start_seq,
            end_seq: data.end_seq,
            at: data.at,
            tsval: data.tsval,
        });
        self.repaired(data, from, how, first_copy, None)
    }

    /// Whether the network made this copy of an earlier segment. It has the IP identification and timestamp of the
    /// original, a retransmission new ones.
    fn is_copy(&self, data: &Data) -> bool {
        let id = data.ip_id.unwrap_or(0);
        let is_same =
            |sent: &Sent| sent.start_seq == data.start_seq && sent.ip_id == id && sent.tsval == data.tsval;
        (id != 0 || data.tsval.is_some()) && self.recent.ring.iter().flatten().any(is_same)
            || self.is_older(data)
    }

    /// Returns what caused a retransmission: a timer expires long after the last ACK, and an ACK caused one that leaves
    /// sooner.
    fn retransmitted_how(&self, data: &Data, from: At, next: i64) -> Repair {
        let gap = data.at.time_ns - from.time_ns;
        let is_called_for =
            self.acked.highest_sacked > data.start_seq || self.acked.duplicates >= DUPLICATES.get();
        let signal = if is_called_for {
            self.peer.newest
        } else {
            self.acked.newest.map(|advanced| advanced.ack)
        };
        let since = signal.map_or(i64::MAX, |ack| data.at.time_ns - ack.time_ns - data.own_rtt_ns);
        // a tail loss probe waits two round trips, and never as long as a connection's first timeout
        let may_probe = !INITIAL_RTO_NS.contains(gap) && (gap < RTO_NS.get() || gap >= data.rtt_ns * 3 / 2);
        if !is_called_for
            && !self.acked.has_retransmitted
            && data.end_seq >= next
            && may_probe
            && gap < 2 * data.rtt_ns + PROBE_NS.get()
        {
            Repair::TailProbe
        } else if since >= RTO_NS.get() {
            Repair::Timeout
        } else {
            Repair::Fast
        }
    }

    /// Returns which timer repaired a lost tail, by the time since the peer's last data.
    fn tail_how(&self, data: &Data) -> Repair {
        let since = self
            .peer
            .newest_data
            .or(self.newest.at)
            .map_or(0, |at| data.at.time_ns - at.time_ns);
        if since < 2 * data.rtt_ns + PROBE_NS.get() + DELACK_MIN_NS.get() {
            Repair::TailProbe
        } else {
            Repair::Timeout
        }
    }

    /// Records a repair, and returns its step.
    fn repaired(
        &mut self,
        data: &Data,
        from: At,
        how: Repair,
        first: Option<At>,
        filled: Option<At>,
    ) -> Outcome {
        self.taint();
        self.next_seq = Some(self.next_seq.map_or(data.end_seq, |next| next.max(data.end_seq)));
        self.pacer.forget_burst();
        self.newest.at = Some(data.at);
        self.newest.was_full = !data.is_small;
        self.has_collapsed |= how == Repair::Timeout;
        self.remember(data);
        Outcome::Forward(Step {
            from,
            to: data.at,
            wait: Wait::repair(how, first, filled, data.has_sacks || data.tsval.is_some()),
        })
    }
}

/// Whether an ACK of nothing new may answer a late first copy: it follows the retransmission within a path's longest
/// delay.
pub fn answers_late_copy(retransmission: At, ack: At) -> bool {
    (0..=MOST_LATE_NS.get().cast_signed()).contains(&(ack.time_ns - retransmission.time_ns))
}

/// Returns how a hole was filled: by a reordered segment or by a retransmission.
fn filled_how(data: &Data, hole: &Hole) -> Repair {
    let age = data.at.time_ns - hole.shown_by.time_ns;
    // IP identifications count packets: a lower one than that of the packet that showed the hole was sent before it
    let older = match (data.ip_id, hole.next_id) {
        (Some(id), Some(next)) if id != 0 || next != 0 => Some((id.wrapping_sub(next) as i16) < 0),
        _ => None,
    };
    match older {
        Some(true) => Repair::Reordered,
        None if age < (data.rtt_ns * 3 / 4).max(NOISE_NS.get()) => Repair::Reordered,
        _ if age >= RTO_NS.get() => Repair::Timeout,
        _ => Repair::Fast,
    }
}

#[cfg(test)]
mod tests;
