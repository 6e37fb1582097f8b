//! Why a segment left when it did, by what its sender had sent and what its peer had answered.

use super::peer_clock::PeerClock;
use super::{AckSeen, Sender, Small, reached};
use crate::base::At;
use crate::limits::{
    AT_HOST_NS, BURST_NS, CORK_NS, DELACK_LEAST_NS, DELACK_MIN_NS, HELD_ELSEWHERE_NS, LARGE_RATIO,
    MOST_PROBE_NS, NOISE_NS, PROBE_NS, PROMPT_NS, RATED_NS, RTO_NS, SEVERAL, SMALLEST_MSS, SOON_NS,
    TWO_TICKS_NS,
};
use crate::observe::{Candidate, Data, Repair, Turn, TurnDoubt, Wait};

impl Sender {
    /// Returns what a data segment waited for: the first step that applies. Each step excludes one reason, so that the
    /// last one can conclude that only the program is left.
    ///
    /// - `from`: the segment before it, or the peer's data that a first segment answers.
    /// - `hole`: bytes before it are missing from the capture.
    /// - `even`: the gap is about as long as the one before.
    /// - `missing`: frames of this sender that the capture lacks before it, by IP identification; None where unknown.
    #[inline(always)]
    pub(super) fn classify(
        &mut self,
        d: &Data,
        from: At,
        hole: bool,
        even: bool,
        missing: Option<u16>,
    ) -> Wait {
        let gap = d.at.time_ns - from.time_ns;
        // 1. gap in the capture: without these bytes nothing can be concluded
        if std::mem::take(&mut self.hole_passed) {
            self.taint();
            return Wait::Hole;
        }
        let turn = self
            .peer_data
            .filter(|p| self.last.is_none_or(|last| p.frame > last.frame));
        // 2. Nagle's algorithm across turns: the ACK of a small segment came with the data that this one seems to
        //    answer
        if let Some(wait) = self.freed_with_peer_data(turn, d) {
            return wait;
        }
        let since = turn.map_or(gap, |p| d.at.time_ns - p.time_ns);
        let lacks = missing.filter(|n| *n > 0);
        // 3. retransmission of a segment that never reached the capture
        if let Some(lacks) = lacks.filter(|_| since >= RTO_NS.get() && !hole) {
            self.taint();
            let probe = lacks == 1 && since < 2 * d.rtt_ns + PROBE_NS.get() + DELACK_MIN_NS.get();
            let how = if probe { Repair::TailProbe } else { Repair::Timeout };
            return Wait::repair(how, None, None, true);
        }
        // 4. receive window: the segment did not fit before
        if let Some(opened) = self.had_no_room(from, d) {
            return if self.zero_seen > from.frame {
                Wait::ZeroWindow { opened }
            } else {
                Wait::Window { opened }
            };
        }
        if let Some(since) = self.answered.filter(|_| d.small && self.fills_window(d)) {
            return Wait::FillsWindow { since };
        }
        // 5. Nagle's algorithm, or a tail loss probe: small segments behind an unacknowledged small one
        if d.small
            && !d.fin
            && !hole
            && let Some(p) = self.small
            && !p.tainted
            && let Some(wait) = match turn {
                Some(peer_sent) => self.freed_in_turn(&p, peer_sent, d),
                None => self.behind_small(p, gap, missing, d),
            }
        {
            return wait;
        }
        match turn {
            Some(peer_sent) => self.begins_turn(peer_sent, gap, hole, missing, d),
            None => self.continues_message(from, hole, even, lacks.is_some(), d),
        }
    }

    /// Steps 6 to 9 of `classify` for a segment with nothing of the peer's before it.
    #[inline(always)]
    fn continues_message(&mut self, from: At, hole: bool, even: bool, lacks: bool, d: &Data) -> Wait {
        let gap = d.at.time_ns - from.time_ns;
        // 6. pacing, or the line: full segments at an even pace, unless each waits for the ACK of the one before
        let in_step = gap > BURST_NS.get() && self.leaves_with_lone(from, d);
        if in_step {
            self.lockstep = self.lockstep.saturating_add(1);
        }
        let lockstep = in_step && self.lockstep >= SEVERAL.get() as u8;
        if even && self.even >= SEVERAL.get() as u8 && !lockstep {
            return Wait::Spaced;
        }
        // 7. cork or congestion window
        if let Some(wait) = self.held_by_kernel(from, lockstep, lacks, d) {
            return wait;
        }
        // 8. no wait at all, or one that the line or the path may have made
        if gap <= BURST_NS.get() {
            return if self.last_full {
                Wait::FullBurst
            } else {
                Wait::Burst
            };
        }
        if self.keeps_pace(d, gap) {
            return Wait::Spaced;
        }
        if hole || self.last_full && self.una < d.start || self.may_be_held(d, gap) {
            return Wait::Unsure;
        }
        // 9. the program, which wrote late; small segments in flight say whether Nagle's algorithm would have let this
        //    one go
        if self.may_have_filled(d) {
            return match self.echoes_first(d) {
                Some(ack) => Wait::Clocked { ack, acked: ack },
                None => Wait::Filled {
                    sender_id: d.sender_id,
                },
            };
        }
        if self.left_over_small(d) {
            return Wait::Early {
                sender_id: d.sender_id,
                bytes: (d.end - d.start) as u32,
            };
        }
        Wait::App
    }

    /// Step 2 of `classify`. Also forgets a small segment that was acknowledged before the peer's data.
    #[inline(always)]
    fn freed_with_peer_data(&mut self, turn: Option<At>, d: &Data) -> Option<Wait> {
        let peer_sent = turn?;
        if let Some(small) = self.small
            && let Some(ack) = small.ack.filter(|ack| ack.at.frame <= peer_sent.frame)
        {
            self.small = None; // the data that this one answers came with that ACK or after it
            if ack.at.frame == peer_sent.frame {
                return self.freed_by_peer_data(&small, peer_sent, d);
            }
            self.answers_freely(peer_sent, d);
        } else if self.last.is_none() {
            self.answers_freely(peer_sent, d);
        }
        None
    }

    /// Step 5 of `classify` within a message: Nagle's algorithm, a tail loss probe, or None if the segment did not
    /// wait.
    #[inline(always)]
    fn behind_small(&mut self, p: Small, gap: i64, missing: Option<u16>, d: &Data) -> Option<Wait> {
        if self.fits_since(&p, d) {
            return None;
        }
        match p.ack {
            Some(ack) => {
                let mut candidate = candidate(&p, &ack, d, self.echoes_acks);
                candidate.held_back =
                    self.may_be_held(d, gap) || missing != Some(0) && may_be_retransmission(d, p.at, 0);
                candidate.after_end = self.peer_ended;
                candidate.ack_late = ack
                    .tsval
                    .map_or(0, |tsval| self.peer_clock.late_ns(ack.at.time_ns, tsval));
                if d.own_rtt_ns >= AT_HOST_NS.get() {
                    candidate.fine = self.clock.is_fine();
                    candidate.lateness = d.tsval.and_then(|now| self.clock.lateness(d.at.time_ns, now));
                }
                if candidate.arrived == Some(false) && has_probe_length(gap, d) {
                    return Some(Wait::TailLossProbe {
                        sender_id: d.sender_id,
                        small: p.at,
                    });
                }
                self.count_freed(&candidate, d.own_rtt_ns);
                Some(Wait::Small(Box::new(candidate)))
            }
            None if self.received_unseen(&p, d) => {
                Some(match candidate_with_unseen_ack(&p, d, &self.peer_clock) {
                    Some(candidate) => Wait::Small(Box::new(candidate)),
                    None => Wait::Unsure, // the time of the ACK is unknown
                })
            }
            None if has_probe_length(gap, d) => Some(Wait::TailLossProbe {
                sender_id: d.sender_id,
                small: p.at,
            }),
            None => {
                self.overtakes();
                self.refute(&p, d);
                None
            }
        }
    }

    /// Step 7 of `classify`: a cork, or an ACK that made room in the congestion window.
    #[inline(always)]
    fn held_by_kernel(&mut self, from: At, lockstep: bool, lacks: bool, d: &Data) -> Option<Wait> {
        let gap = d.at.time_ns - from.time_ns;
        if d.small && self.last_full && self.una >= d.start {
            // nothing in flight, and silence since the last packet of either side
            let quiet = d.at.time_ns
                - self
                    .answered
                    .map_or(from.time_ns, |a| a.time_ns.max(from.time_ns));
            // the timer is the retransmission timeout: 200 ms and a round trip (tcp_probe0_base)
            if (CORK_NS.least()..=CORK_NS.most() + d.rtt_ns).contains(&quiet) {
                return Some(Wait::Cork);
            }
        }
        if !d.pushed
            && d.end - d.start <= i64::from(SMALLEST_MSS.get())
            && let Some((small, ack)) = self.unfinished(from, gap)
        {
            return Some(Wait::Corked { small, ack });
        }
        if let Some(a) = self.advanced
            && a.ack.frame > from.frame
            && gap > BURST_NS.get()
        {
            let (ack, acked) = (a.ack, a.acked);
            if !lockstep
                && d.at.time_ns - ack.time_ns > d.own_rtt_ns + PROMPT_NS.get()
                && self.keeps_pace(d, gap)
            {
                return Some(Wait::Spaced);
            }
            // (the ACK of a small segment would release by Nagle's algorithm instead)
            let lone = a.lone && self.last_full && a.bytes <= d.mss;
            return Some(if lone && lacks {
                // the first copy never reached the capture; that ACK, or a timer, caused this one
                self.taint();
                Wait::repair(Repair::Fast, None, None, true)
            } else if lone {
                Wait::LoneClocked {
                    ack,
                    acked,
                    single: self.collapsed || lockstep,
                }
            } else {
                Wait::Clocked { ack, acked }
            });
        }
        None
    }

    /// Last step of `classify` for the first segment after data of the peer: the program's turn, and the path's share
    /// of it by this side's timestamps.
    #[inline(always)]
    fn begins_turn(&mut self, since: At, gap: i64, hole: bool, missing: Option<u16>, d: &Data) -> Wait {
        if hole {
            // the missing bytes left sooner and may have been lost: then a timer sent this segment
            let unanswered = self.unanswered_for(d, since);
            if unanswered >= RTO_NS.get() {
                let doubt = Some(may_be_late_by(unanswered));
                return Wait::Turn(Turn {
                    since,
                    acked: 0,
                    doubt,
                });
            }
        }
        let acked = self.kernel_answered_after(since);
        let doubt = self.doubt_of_turn(since, acked, gap, hole, missing, d);
        Wait::Turn(Turn { since, acked, doubt })
    }

    /// Returns what besides the best path and the program may have taken a turn. Takes the segment's timestamp.
    #[inline(always)]
    fn doubt_of_turn(
        &mut self,
        since: At,
        acked: u32,
        gap: i64,
        hole: bool,
        missing: Option<u16>,
        d: &Data,
    ) -> Option<TurnDoubt> {
        let (time_ns, tsval, sender_id) = (d.at.time_ns, d.tsval.unwrap_or(0), d.sender_id);
        let late = d.tsval.map_or(0, |tsval| self.clock.add(time_ns, tsval));
        if d.small && has_cork_length(d.at, since) {
            let late = if late == 0 {
                0
            } else {
                self.clock.believed(late, time_ns, tsval).0
            };
            return Some(TurnDoubt::CorkLength {
                late,
                sender_id,
                may_be_retransmission: missing != Some(0) && may_be_retransmission(d, since, acked),
            });
        }
        if self.pacer.keeps(d.start, gap) {
            return Some(may_be_late_by(gap));
        }
        if late > 0 {
            let (late, queued) = self.clock.believed(late, time_ns, tsval);
            let is_sure = i64::from(queued) >= TWO_TICKS_NS.get() || d.own_rtt_ns >= AT_HOST_NS.get();
            return Some(TurnDoubt::Queued {
                late,
                queued: if is_sure { queued } else { 0 },
                fine: self.clock.is_fine() && late < u32::MAX,
            });
        }
        // (bytes that are missing before it were lost on the path, so this may be a retransmission too)
        if hole && d.own_rtt_ns >= AT_HOST_NS.get()
            || missing != Some(0) && may_be_retransmission(d, since, acked)
        {
            return Some(TurnDoubt::Retransmission);
        }
        may_wait_elsewhere(d, since).then_some(TurnDoubt::HoldLength { sender_id })
    }

    /// Returns the unseen packet of the peer upon which this segment left, if it is the first to echo that packet's
    /// timestamp (RFC 7323 4.3) and passes one round trip after it: away from the sender, a packet passes long before
    /// the segment that it releases. The frame is 0.
    #[cold]
    fn echoes_first(&self, d: &Data) -> Option<At> {
        let (before, echo) = (self.small?.tsecr?, d.tsecr?);
        let passed = self.peer_clock.passed(echo)?;
        let newest = d.at.time_ns - d.own_rtt_ns;
        let first = (echo.wrapping_sub(before) as i32) > 0 && d.own_rtt_ns >= SOON_NS.get();
        let with_it = (newest - passed).abs() <= NOISE_NS.get();
        (first && with_it).then_some(At {
            frame: 0,
            time_ns: passed.min(newest),
        })
    }

    /// Whether this is a full segment that left while a small one was unacknowledged, as far as the sender knew.
    fn may_have_filled(&self, d: &Data) -> bool {
        let open = self.small.as_ref().filter(|p| !d.small && !p.tainted);
        open.is_some_and(|p| p.ack.as_ref().is_none_or(|ack| !reached(ack, d)))
    }

    /// Whether this is a small segment that left while another small one was unacknowledged.
    #[cold]
    fn left_over_small(&self, d: &Data) -> bool {
        let open = self.small.as_ref().filter(|p| d.small && !d.fin && !p.tainted);
        open.is_some_and(|p| !self.fits_since(p, d))
    }

    /// Returns for how long this side has sent nothing since the peer's data: since the first that it did not answer.
    #[cold]
    fn unanswered_for(&self, d: &Data, since: At) -> i64 {
        let first = self.unanswered.unwrap_or(d.at);
        (d.at.time_ns - since.time_ns).max(d.at.time_ns - first.time_ns)
    }

    /// Returns the time from the peer's last byte to this side's pure ACK of it; 0 if there was none.
    fn kernel_answered_after(&self, since: At) -> u32 {
        let acked = self.own_ack.filter(|ack| ack.frame > since.frame);
        let took = acked.map_or(0, |ack| ack.time_ns.saturating_sub(since.time_ns).max(1));
        u32::try_from(took).unwrap_or(u32::MAX)
    }

    /// Returns the small segment right before this one, and its ACK, if that came between them.
    #[cold]
    fn unfinished(&self, from: At, gap: i64) -> Option<(At, At)> {
        let small = self
            .small
            .as_ref()
            .filter(|p| p.at.frame == from.frame && !p.tainted)?;
        let ack = small.ack.as_ref().filter(|_| gap > BURST_NS.get())?;
        Some((small.at, ack.at))
    }

    /// Returns the packet that opened the window for this segment, if one did since `from`. A second update within a
    /// round trip of the first was sent before the sender can have used the first, so the first counts.
    #[inline(always)]
    fn had_no_room(&self, from: At, d: &Data) -> Option<At> {
        let (newest, before) = self.edge_moved.filter(|(newest, _)| newest.frame > from.frame)?;
        if d.end > before {
            return Some(newest);
        }
        let (first, before) = self.edge_freed?;
        let meanwhile = newest.time_ns - first.time_ns <= d.own_rtt_ns;
        (first.frame > from.frame && d.end > before && meanwhile).then_some(first)
    }

    /// Whether the window opened for this segment only after the small one: then the window held it, not Nagle's
    /// algorithm.
    fn fits_since(&self, p: &Small, d: &Data) -> bool {
        self.edge_moved
            .is_some_and(|(opened, before)| opened.frame > p.at.frame && d.end > before)
    }

    /// Whether this segment, not full, ends at the window's edge and left a timer's time after the peer's last packet:
    /// the sender had more data (RFC 9293 3.8.6.2.1), and its probe timer sent the part that fits.
    fn fills_window(&self, d: &Data) -> bool {
        let since = self.answered.map_or(0, |at| d.at.time_ns - at.time_ns);
        self.edge == Some(d.end)
            && d.end - d.start < i64::from(d.mss)
            && since >= RTO_NS.get()
            && self.una >= d.start
    }

    /// Whether this segment left upon the ACK of the one full segment in flight.
    #[inline(always)]
    fn leaves_with_lone(&self, from: At, d: &Data) -> bool {
        self.advanced.is_some_and(|a| {
            let release = d.at.time_ns - a.ack.time_ns;
            let prompt = (d.own_rtt_ns / 2..=d.own_rtt_ns + PROMPT_NS.get()).contains(&release);
            a.lone && self.last_full && a.bytes <= d.mss && a.ack.frame > from.frame && prompt
        })
    }

    /// Whether the path may have delayed this segment, by the timestamps, or the sender's pacing, by the bytes before
    /// it.
    #[cold]
    fn may_be_held(&self, d: &Data, gap: i64) -> bool {
        let last_tsval = self.newest().and_then(|last| last.tsval);
        let by_path = |now| self.clock.may_have_held(d.at.time_ns, now, last_tsval, gap);
        d.tsval.is_some_and(by_path) || self.pacer.may_have_held(d.start, gap, self.sent, d.mss)
    }

    /// Whether this segment kept the pace of the line or of its sender's pacing.
    fn keeps_pace(&self, d: &Data, gap: i64) -> bool {
        self.line_was_busy(d, gap)
            || self.pacer.keeps(d.start, gap)
            || self.pacer.holds_tail(d, gap, self.sent)
    }

    /// Whether the line may have been busy with the segments before this one. A full segment without PSH shows that
    /// there was more to send, so a full one behind it always counts. Behind a full one with PSH the program may have
    /// paused, and a small tail may have been corked: those have to keep the pace.
    fn line_was_busy(&self, d: &Data, gap: i64) -> bool {
        let paced = gap <= LARGE_RATIO.get() * self.pace;
        if d.small || !self.last_more {
            paced && (self.last_more || self.last_full && self.una < d.start && !d.small)
        } else {
            true
        }
    }
}

/// Returns the doubt that the path or the pacing may have delayed a turn by `late` ns, none of them for sure.
#[cold]
fn may_be_late_by(late: i64) -> TurnDoubt {
    TurnDoubt::Queued {
        late: u32::try_from(late).unwrap_or(u32::MAX),
        queued: 0,
        fine: false,
    }
}

/// Whether a gap is as long as a tail loss probe waits. The retransmission timeout bounds that, and it grows where the
/// round trip has varied.
fn has_probe_length(gap: i64, d: &Data) -> bool {
    (d.rtt_ns + CORK_NS.least()..2 * d.rtt_ns + MOST_PROBE_NS.get()).contains(&gap)
}

/// Whether a wait is as long as the cork's timer, for any path.
fn has_cork_length(at: At, since: At) -> bool {
    let waited = at.time_ns - since.time_ns;
    (CORK_NS.least()..=CORK_NS.most() + RATED_NS.get()).contains(&waited)
}

/// Whether a segment came so late that a timer may have sent it after a first copy that never reached the capture.
/// Where the kernel's ACK after `acked` ns was held, the data were written after it: an earlier copy would have carried
/// that ACK.
fn may_be_retransmission(d: &Data, since: At, acked: u32) -> bool {
    let acked = i64::from(acked);
    let held = acked - d.own_rtt_ns >= DELACK_LEAST_NS.get();
    let unseen = d.at.time_ns - since.time_ns - if held { acked } else { d.own_rtt_ns };
    d.own_rtt_ns >= AT_HOST_NS.get() && unseen >= d.rtt_ns + RTO_NS.get()
}

/// Whether an answer took between half and twice the wait for a held ACK on another connection. (The judge needs the
/// shorter ones too: a timer makes none.)
fn may_wait_elsewhere(d: &Data, since: At) -> bool {
    let waited = d.at.time_ns - since.time_ns;
    2 * waited >= HELD_ELSEWHERE_NS.least() && waited - d.rtt_ns <= 2 * HELD_ELSEWHERE_NS.most()
}

/// Returns the candidate of a small segment behind another where the capture lacks the ACK between them. The timestamp
/// that the second one echoes shows when that ACK left (RFC 7323 4.3), on the peer's clock.
fn candidate_with_unseen_ack(p: &Small, d: &Data, peer: &PeerClock) -> Option<Candidate> {
    let time_ns = peer.passed(d.tsecr?)?;
    let latest = d.at.time_ns - d.own_rtt_ns;
    let in_time = p.at.time_ns < time_ns && time_ns <= latest + NOISE_NS.get();
    let time_ns = time_ns.min(latest);
    let ack = At { frame: 0, time_ns };
    in_time.then_some(Candidate {
        small: p.at,
        held_from: p.at,
        ack,
        ack_pure: true, // with data a hole would show
        arrived: Some(true),
        unseen: true,
        freed: d.at,
        small_bytes: p.bytes,
        freed_bytes: (d.end - d.start) as u32,
        first: p.first,
        sender_id: d.sender_id,
        stream: d.stream,
        ..Candidate::default()
    })
}

/// Returns the candidate of a small segment behind an acknowledged one. The ACK had arrived if the segment echoes its
/// timestamp. If it echoes an older one, the ACK had not arrived, unless the stack never echoes timestamps of pure
/// ACKs: so an old echo counts only if the stack was seen to do that (`echoes`), or beside the host, where the round
/// trip shows no more.
pub(super) fn candidate(p: &Small, ack: &AckSeen, d: &Data, echoes: bool) -> Candidate {
    let arrived = match (p.tsecr, ack.tsval, d.tsecr) {
        // only where the peer's clock moved between the two
        (Some(before), Some(acked), Some(freed)) if (acked.wrapping_sub(before) as i32) > 0 => {
            let moved = (freed.wrapping_sub(acked) as i32) >= 0;
            let shows = ack.echoed && (echoes || d.own_rtt_ns < SOON_NS.get());
            (moved || shows).then_some(moved)
        }
        _ => None,
    };
    Candidate {
        small: p.at,
        held_from: ack.held_from,
        ack: ack.at,
        ack_pure: ack.pure,
        ack_fin: ack.fin,
        arrived,
        freed: d.at,
        small_bytes: p.bytes,
        freed_bytes: (d.end - d.start) as u32,
        first: p.first,
        sender_id: d.sender_id,
        stream: d.stream,
        ..Candidate::default()
    }
}

#[cfg(test)]
mod tests;
