//! Why a segment left when it did, by what its sender had sent and what its peer had answered.

use super::peer_clock::PeerClock;
use super::{AckSeen, Sender, Small, had_arrived};
use crate::base::At;
use crate::limits::{
    AT_HOST_NS, BURST_NS, CORK_NS, DELACK_LEAST_NS, DELACK_MIN_NS, HELD_ELSEWHERE_NS, LARGE_RATIO,
    MOST_PROBE_NS, NOISE_NS, PROBE_NS, PROMPT_NS, RATED_NS, RTO_NS, SEVERAL, SMALLEST_MSS, SOON_NS,
    TWO_TICKS_NS,
};
use crate::observe::{Candidate, Data, Repair, Turn, TurnDoubt, Wait};

/// What passed between a data segment and the one before it, or the peer's data that a first segment answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    /// The segment before it, or the peer's data.
    pub from: At,
    pub ns: i64,
    /// Bytes between the two are missing from the capture.
    pub has_hole: bool,
    /// About as long as the gap before it.
    pub is_even: bool,
    /// Frames of this sender that the capture lacks between the two, by IP identification; None where unknown.
    pub missing_count: Option<u16>,
}

impl Gap {
    /// Whether frames may be missing: no IP identification excludes it.
    #[inline(always)]
    fn may_lack_frames(self) -> bool {
        self.missing_count != Some(0)
    }

    /// Whether frames are missing for sure.
    #[inline(always)]
    fn lacks_frames(self) -> bool {
        self.missing_count.is_some_and(|count| count > 0)
    }
}

impl Sender {
    /// Returns what a data segment waited for: the first step that applies. Each step excludes one reason, so that the
    /// last one can conclude that only the program is left.
    #[inline(always)]
    pub(super) fn classify(&mut self, data: &Data, gap: Gap) -> Wait {
        // gap in the capture: without these bytes nothing can be concluded
        if std::mem::take(&mut self.has_passed_hole) {
            self.taint();
            return Wait::Hole;
        }
        let turn = self
            .peer
            .newest_data
            .filter(|peer_sent| self.newest.at.is_none_or(|last| peer_sent.frame > last.frame));
        // Nagle's algorithm across turns: the ACK of a small segment came with the data that this one seems to answer
        if let Some(wait) = self.freed_with_peer_data(turn, data) {
            return wait;
        }
        let since_ns = turn.map_or(gap.ns, |peer_sent| data.at.time_ns - peer_sent.time_ns);
        // retransmission of a segment that never reached the capture
        if gap.lacks_frames() && since_ns >= RTO_NS.get() && !gap.has_hole {
            self.taint();
            let is_probe = gap.missing_count == Some(1)
                && since_ns < 2 * data.rtt_ns + PROBE_NS.get() + DELACK_MIN_NS.get();
            let how = if is_probe {
                Repair::TailProbe
            } else {
                Repair::Timeout
            };
            return Wait::repair(how, None, None, true);
        }
        // receive window: the segment did not fit before
        if let Some(wait) = self.peer.window.wait_for_room(gap.from, data) {
            return wait;
        }
        if data.is_small
            && self.acked.una >= data.start_seq
            && let Some(since) = self.peer.newest
            && self.peer.window.is_filled_by(data, since)
        {
            return Wait::FillsWindow { since };
        }
        // Nagle's algorithm, or a tail loss probe: small segments after an unacknowledged small one
        if data.is_small
            && !data.has_fin
            && !gap.has_hole
            && let Some(small) = self.small
            && !small.is_tainted
            && let Some(wait) = match turn {
                Some(peer_sent) => self.freed_in_turn(&small, peer_sent, data),
                None => self.behind_small(small, gap, data),
            }
        {
            return wait;
        }
        match turn {
            Some(peer_sent) => self.begins_turn(peer_sent, gap, data),
            None => self.continues_message(gap, data),
        }
    }

    /// Returns what a segment waited for that continues a message: nothing of the peer's came before it.
    #[inline(always)]
    fn continues_message(&mut self, gap: Gap, data: &Data) -> Wait {
        // pacing, or the line: full segments at an even pace, unless each waits for the ACK of the one before
        let in_step = gap.ns > BURST_NS.get() && self.leaves_with_lone_ack(gap.from, data);
        if in_step {
            self.lockstep_count = self.lockstep_count.saturating_add(1);
        }
        let is_in_lockstep = in_step && self.lockstep_count >= SEVERAL.get() as u8;
        if gap.is_even && self.gaps.even_count >= SEVERAL.get() as u8 && !is_in_lockstep {
            return Wait::Spaced;
        }
        // cork or congestion window
        if let Some(wait) = self.held_by_kernel(gap, is_in_lockstep, data) {
            return wait;
        }
        // no wait at all, or one that the line or the path may have made
        if gap.ns <= BURST_NS.get() {
            return if self.newest.was_full {
                Wait::FullBurst
            } else {
                Wait::Burst
            };
        }
        if self.keeps_pace(data, gap.ns) {
            return Wait::Spaced;
        }
        if gap.has_hole
            || self.newest.was_full && self.acked.una < data.start_seq
            || self.may_be_held(data, gap.ns)
        {
            return Wait::Unsure;
        }
        // the program, which wrote late; small segments in flight say whether Nagle's algorithm would have let it go
        if self.may_have_filled(data) {
            return match self.echoes_first(data) {
                Some(ack) => Wait::Clocked { ack, acked: ack },
                None => Wait::Filled {
                    sender_id: data.sender_id,
                },
            };
        }
        if self.left_over_small(data) {
            return Wait::Early {
                sender_id: data.sender_id,
                bytes: (data.end_seq - data.start_seq) as u32,
            };
        }
        Wait::App
    }

    /// Returns the wait of a segment that the ACK in the peer's data freed. Forgets a small segment that was
    /// acknowledged before those data.
    #[inline(always)]
    fn freed_with_peer_data(&mut self, turn: Option<At>, data: &Data) -> Option<Wait> {
        let peer_sent = turn?;
        if let Some(small) = self.small
            && let Some(ack) = small.ack.filter(|ack| ack.at.frame <= peer_sent.frame)
        {
            self.small = None; // the data that this one answers came with that ACK or after it
            if ack.at.frame == peer_sent.frame {
                return self.freed_by_peer_data(&small, peer_sent, data);
            }
            self.answers_freely(peer_sent, data);
        } else if self.newest.at.is_none() {
            self.answers_freely(peer_sent, data);
        }
        None
    }

    /// Returns the wait of a small segment after an unacknowledged small one of its message: Nagle's algorithm, a tail
    /// loss probe, or None if the segment did not wait.
    #[inline(always)]
    fn behind_small(&mut self, small: Small, gap: Gap, data: &Data) -> Option<Wait> {
        if self.peer.window.opened_after(small.at.frame, data) {
            return None;
        }
        match small.ack {
            Some(ack) => {
                let mut candidate = candidate(&small, &ack, data, self.echoes_acks);
                candidate.may_be_delayed = self.may_be_held(data, gap.ns)
                    || gap.may_lack_frames() && may_be_retransmission(data, small.at, 0);
                candidate.is_after_peer_end = self.peer.has_sent_fin;
                candidate.ack_late_ns = ack
                    .tsval
                    .map_or(0, |tsval| self.peer.clock.late_ns(ack.at.time_ns, tsval));
                if data.own_rtt_ns >= AT_HOST_NS.get() {
                    candidate.is_clock_fine = self.clock.is_fine();
                    candidate.lateness_ns = data
                        .tsval
                        .and_then(|now| self.clock.lateness(data.at.time_ns, now));
                }
                if candidate.arrived == Some(false) && has_probe_length(gap.ns, data) {
                    return Some(Wait::TailLossProbe {
                        sender_id: data.sender_id,
                        small: small.at,
                    });
                }
                self.count_freed(&candidate, data.own_rtt_ns);
                Some(Wait::Small(Box::new(candidate)))
            }
            None if self.received_unseen(&small, data) => {
                Some(match candidate_with_unseen_ack(&small, data, &self.peer.clock) {
                    Some(candidate) => Wait::Small(Box::new(candidate)),
                    None => Wait::Unsure, // the time of the ACK is unknown
                })
            }
            None if has_probe_length(gap.ns, data) => Some(Wait::TailLossProbe {
                sender_id: data.sender_id,
                small: small.at,
            }),
            None => {
                self.overtakes();
                self.refute(&small, data);
                None
            }
        }
    }

    /// Returns the wait of a segment that a cork held, or that waited for room in the congestion window.
    #[inline(always)]
    fn held_by_kernel(&mut self, gap: Gap, is_in_lockstep: bool, data: &Data) -> Option<Wait> {
        if data.is_small && self.newest.was_full && self.acked.una >= data.start_seq {
            // nothing in flight, and silence since the last packet of either side
            let quiet = data.at.time_ns
                - self
                    .peer
                    .newest
                    .map_or(gap.from.time_ns, |answer| answer.time_ns.max(gap.from.time_ns));
            // the timer is the retransmission timeout: 200 ms and a round trip (tcp_probe0_base)
            if (CORK_NS.least()..=CORK_NS.most() + data.rtt_ns).contains(&quiet) {
                return Some(Wait::Cork);
            }
        }
        if !data.is_pushed
            && data.end_seq - data.start_seq <= i64::from(SMALLEST_MSS.get())
            && let Some((small, ack)) = self.unfinished(gap.from, gap.ns)
        {
            return Some(Wait::Corked { small, ack });
        }
        if let Some(advanced) = self.acked.newest
            && advanced.ack.frame > gap.from.frame
            && gap.ns > BURST_NS.get()
        {
            let (ack, acked) = (advanced.ack, advanced.acked);
            if !is_in_lockstep
                && data.at.time_ns - ack.time_ns > data.own_rtt_ns + PROMPT_NS.get()
                && self.keeps_pace(data, gap.ns)
            {
                return Some(Wait::Spaced);
            }
            // (the ACK of a small segment would release by Nagle's algorithm instead)
            let is_lone = advanced.is_lone && self.newest.was_full && advanced.bytes <= data.mss;
            return Some(if is_lone && gap.lacks_frames() {
                // the first copy never reached the capture; that ACK, or a timer, caused this one
                self.taint();
                Wait::repair(Repair::Fast, None, None, true)
            } else if is_lone {
                Wait::LoneClocked {
                    ack,
                    acked,
                    single: self.has_collapsed || is_in_lockstep,
                }
            } else {
                Wait::Clocked { ack, acked }
            });
        }
        None
    }

    /// Returns the wait of the first segment after data of the peer: the program's turn, and the path's share of it by
    /// this side's timestamps.
    #[inline(always)]
    fn begins_turn(&mut self, since: At, gap: Gap, data: &Data) -> Wait {
        if gap.has_hole {
            // the missing bytes left sooner and may have been lost: then a timer sent this segment
            let unanswered = self.unanswered_for(data, since);
            if unanswered >= RTO_NS.get() {
                let doubt = Some(may_be_late_by(unanswered));
                return Wait::Turn(Turn {
                    since,
                    acked_ns: 0,
                    doubt,
                });
            }
        }
        let acked_ns = self.kernel_answered_after(since);
        let doubt = self.doubt_of_turn(since, acked_ns, gap, data);
        Wait::Turn(Turn {
            since,
            acked_ns,
            doubt,
        })
    }

    /// Returns what besides the best path and the program may have taken a turn. Takes the segment's timestamp.
    fn doubt_of_turn(&mut self, since: At, acked_ns: u32, gap: Gap, data: &Data) -> Option<TurnDoubt> {
        let (time_ns, tsval, sender_id) = (data.at.time_ns, data.tsval.unwrap_or(0), data.sender_id);
        let late_ns = data.tsval.map_or(0, |tsval| self.clock.add(time_ns, tsval));
        if data.is_small && has_cork_length(data.at, since) {
            let late_ns = if late_ns == 0 {
                0
            } else {
                self.clock.believed(late_ns, time_ns, tsval).0
            };
            return Some(TurnDoubt::CorkLength {
                late_ns,
                sender_id,
                may_be_retransmission: gap.may_lack_frames() && may_be_retransmission(data, since, acked_ns),
            });
        }
        if self.pacer.keeps(data.start_seq, gap.ns) {
            return Some(may_be_late_by(gap.ns));
        }
        if late_ns > 0 {
            let (late_ns, queued_ns) = self.clock.believed(late_ns, time_ns, tsval);
            let is_sure = i64::from(queued_ns) >= TWO_TICKS_NS.get() || data.own_rtt_ns >= AT_HOST_NS.get();
            return Some(TurnDoubt::Queued {
                late_ns,
                queued_ns: if is_sure { queued_ns } else { 0 },
                is_clock_fine: self.clock.is_fine() && late_ns < u32::MAX,
            });
        }
        // (bytes that are missing before it were lost on the path, so this may be a retransmission too)
        if gap.has_hole && data.own_rtt_ns >= AT_HOST_NS.get()
            || gap.may_lack_frames() && may_be_retransmission(data, since, acked_ns)
        {
            return Some(TurnDoubt::Retransmission);
        }
        may_wait_elsewhere(data, since).then_some(TurnDoubt::HoldLength { sender_id })
    }

    /// Returns the unseen packet of the peer upon which this segment left, if it is the first to echo that packet's
    /// timestamp (RFC 7323 4.3) and passes one round trip after it: away from the sender, a packet passes long before
    /// the segment that it releases. The frame is 0.
    #[cold]
    fn echoes_first(&self, data: &Data) -> Option<At> {
        let (before, echo) = (self.small?.tsecr?, data.tsecr?);
        let passed = self.peer.clock.passed(echo)?;
        let newest = data.at.time_ns - data.own_rtt_ns;
        let is_first = (echo.wrapping_sub(before) as i32) > 0 && data.own_rtt_ns >= SOON_NS.get();
        let passes_with_it = (newest - passed).abs() <= NOISE_NS.get();
        (is_first && passes_with_it).then_some(At {
            frame: 0,
            time_ns: passed.min(newest),
        })
    }

    /// Whether this is a full segment that left while a small one was unacknowledged, as far as the sender knew.
    fn may_have_filled(&self, data: &Data) -> bool {
        let small = self.small.as_ref().filter(|small| !small.is_tainted);
        let is_open = |small: &Small| small.ack.as_ref().is_none_or(|ack| !had_arrived(ack, data));
        !data.is_small && small.is_some_and(is_open)
    }

    /// Whether this is a small segment that left while another small one was unacknowledged.
    #[cold]
    fn left_over_small(&self, data: &Data) -> bool {
        let small = self.small.as_ref().filter(|small| !small.is_tainted);
        let is_open = |small: &Small| !self.peer.window.opened_after(small.at.frame, data);
        data.is_small && !data.has_fin && small.is_some_and(is_open)
    }

    /// Returns for how long this side has sent nothing since the peer's data: since the first that it did not answer.
    #[cold]
    fn unanswered_for(&self, data: &Data, since: At) -> i64 {
        let first = self.peer.unanswered.unwrap_or(data.at);
        (data.at.time_ns - since.time_ns).max(data.at.time_ns - first.time_ns)
    }

    /// Returns the time from the peer's last byte to this side's pure ACK of it; 0 if there was none.
    fn kernel_answered_after(&self, since: At) -> u32 {
        let acked = self.own_ack.filter(|ack| ack.frame > since.frame);
        let took = acked.map_or(0, |ack| ack.time_ns.saturating_sub(since.time_ns).max(1));
        u32::try_from(took).unwrap_or(u32::MAX)
    }

    /// Returns the small segment right before this one, and its ACK, if that came between them.
    #[cold]
    fn unfinished(&self, from: At, gap_ns: i64) -> Option<(At, At)> {
        let small = self
            .small
            .as_ref()
            .filter(|small| small.at.frame == from.frame && !small.is_tainted)?;
        let ack = small.ack.as_ref().filter(|_| gap_ns > BURST_NS.get())?;
        Some((small.at, ack.at))
    }

    /// Whether this segment left upon the ACK of the one full segment in flight.
    #[inline(always)]
    fn leaves_with_lone_ack(&self, from: At, data: &Data) -> bool {
        self.acked.newest.is_some_and(|advanced| {
            let release = data.at.time_ns - advanced.ack.time_ns;
            let is_prompt = (data.own_rtt_ns / 2..=data.own_rtt_ns + PROMPT_NS.get()).contains(&release);
            advanced.is_lone
                && self.newest.was_full
                && advanced.bytes <= data.mss
                && advanced.ack.frame > from.frame
                && is_prompt
        })
    }

    /// Whether the path may have delayed this segment, by the timestamps, or the sender's pacing, by the bytes before
    /// it.
    #[cold]
    fn may_be_held(&self, data: &Data, gap_ns: i64) -> bool {
        let last_tsval = self.newest().and_then(|last| last.tsval);
        let by_path = |now| self.clock.may_have_held(data.at.time_ns, now, last_tsval, gap_ns);
        data.tsval.is_some_and(by_path)
            || self
                .pacer
                .may_have_held(data.start_seq, gap_ns, self.recent.count, data.mss)
    }

    /// Whether this segment kept the pace of the line or of its sender's pacing.
    fn keeps_pace(&self, data: &Data, gap_ns: i64) -> bool {
        self.line_was_busy(data, gap_ns)
            || self.pacer.keeps(data.start_seq, gap_ns)
            || self.pacer.holds_tail(data, gap_ns, self.recent.count)
    }

    /// Whether the line may have been busy with the segments before this one. A full segment without PSH shows that
    /// there was more to send, so a full one after it always counts. Behind a full one with PSH the program may have
    /// paused, and a small tail may have been corked: those have to keep the pace.
    fn line_was_busy(&self, data: &Data, gap_ns: i64) -> bool {
        let is_paced = gap_ns <= LARGE_RATIO.get() * self.gaps.pace_ns;
        if data.is_small || !self.newest.had_more {
            is_paced
                && (self.newest.had_more
                    || self.newest.was_full && self.acked.una < data.start_seq && !data.is_small)
        } else {
            true
        }
    }
}

/// Returns the doubt that the path or the pacing may have delayed a turn by `late_ns`, none of them for sure.
#[cold]
fn may_be_late_by(late_ns: i64) -> TurnDoubt {
    TurnDoubt::Queued {
        late_ns: u32::try_from(late_ns).unwrap_or(u32::MAX),
        queued_ns: 0,
        is_clock_fine: false,
    }
}

/// Whether a gap is as long as a tail loss probe waits. The retransmission timeout bounds that, and it grows where the
/// round trip has varied.
fn has_probe_length(gap_ns: i64, data: &Data) -> bool {
    (data.rtt_ns + CORK_NS.least()..2 * data.rtt_ns + MOST_PROBE_NS.get()).contains(&gap_ns)
}

/// Whether a wait is as long as the cork's timer, for any path.
fn has_cork_length(at: At, since: At) -> bool {
    let waited = at.time_ns - since.time_ns;
    (CORK_NS.least()..=CORK_NS.most() + RATED_NS.get()).contains(&waited)
}

/// Whether a segment came so late that a timer may have sent it after a first copy that never reached the capture.
/// Where the kernel's ACK after `acked_ns` was held, the data were written after it: an earlier copy would have carried
/// that ACK.
fn may_be_retransmission(data: &Data, since: At, acked_ns: u32) -> bool {
    let acked_ns = i64::from(acked_ns);
    let was_held = acked_ns - data.own_rtt_ns >= DELACK_LEAST_NS.get();
    let unseen_ns = data.at.time_ns - since.time_ns - if was_held { acked_ns } else { data.own_rtt_ns };
    data.own_rtt_ns >= AT_HOST_NS.get() && unseen_ns >= data.rtt_ns + RTO_NS.get()
}

/// Whether an answer took between half and twice the wait for a held ACK on another connection. (The judge needs the
/// shorter ones too: a timer makes none.)
fn may_wait_elsewhere(data: &Data, since: At) -> bool {
    let waited = data.at.time_ns - since.time_ns;
    2 * waited >= HELD_ELSEWHERE_NS.least() && waited - data.rtt_ns <= 2 * HELD_ELSEWHERE_NS.most()
}

/// Returns the candidate of a small segment after another where the capture lacks the ACK between them. The timestamp
/// that the second one echoes shows when that ACK left (RFC 7323 4.3), on the peer's clock.
fn candidate_with_unseen_ack(small: &Small, data: &Data, peer: &PeerClock) -> Option<Candidate> {
    let time_ns = peer.passed(data.tsecr?)?;
    let latest = data.at.time_ns - data.own_rtt_ns;
    let in_time = small.at.time_ns < time_ns && time_ns <= latest + NOISE_NS.get();
    let time_ns = time_ns.min(latest);
    let ack = At { frame: 0, time_ns };
    in_time.then_some(Candidate {
        ack_lacks_data: true, // with data a hole would show
        arrived: Some(true),
        is_ack_unseen: true,
        ..candidate_around(small, ack, data)
    })
}

/// Returns the candidate of a small segment after an acknowledged one. The ACK had arrived if the segment echoes its
/// timestamp. If it echoes an older one, the ACK had not arrived, unless the stack never echoes timestamps of pure
/// ACKs: so an old echo counts only if the stack was seen to do that (`echoes`), or beside the host, where the round
/// trip shows no more.
pub(super) fn candidate(small: &Small, ack: &AckSeen, data: &Data, echoes: bool) -> Candidate {
    let arrived = match (small.tsecr, ack.tsval, data.tsecr) {
        // only where the peer's clock moved between the two
        (Some(before), Some(acked), Some(freed)) if (acked.wrapping_sub(before) as i32) > 0 => {
            let moved = (freed.wrapping_sub(acked) as i32) >= 0;
            let shows = ack.is_echoed && (echoes || data.own_rtt_ns < SOON_NS.get());
            (moved || shows).then_some(moved)
        }
        _ => None,
    };
    Candidate {
        held_from: ack.held_from,
        ack_lacks_data: ack.lacks_data,
        ack_has_fin: ack.has_fin,
        arrived,
        ..candidate_around(small, ack.at, data)
    }
}

/// Returns the candidate of two small segments and the ACK between them.
fn candidate_around(small: &Small, ack: At, data: &Data) -> Candidate {
    Candidate {
        small: small.at,
        held_from: small.at,
        ack,
        freed: data.at,
        freed_bytes: (data.end_seq - data.start_seq) as u32,
        begins_message: small.begins_message,
        sender_id: data.sender_id,
        stream: data.stream,
        ..Candidate::default()
    }
}

#[cfg(test)]
mod tests;
