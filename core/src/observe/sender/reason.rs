//! Why a segment left when it did, by what its sender had sent and its peer had answered.

use super::peer_clock::PeerClock;
use super::{AckSeen, Sender, Small, reached};
use crate::base::At;
use crate::limits::{
    AT_HOST_NS, BURST_NS, CORK_NS, DELACK_LEAST_NS, DELACK_MIN_NS, HELD_ELSEWHERE_NS, LARGE_RATIO,
    MOST_PROBE_NS, NOISE_NS, PROBE_NS, PROMPT_NS, RATED_NS, RTO_NS, SEVERAL, SMALLEST_MSS, SOON_NS,
    TWO_TICKS_NS,
};
use crate::observe::{Candidate, Data, Repair, Wait};

impl Sender {
    /// What a data segment waited for. The first rule that fits wins: holes, the first segment of a turn, repairs,
    /// windows, small segments, pacing, then the kernel; its program where none does.
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
        if std::mem::take(&mut self.hole_passed) {
            self.taint();
            return Wait::Hole;
        }
        let turn = self
            .peer_data
            .filter(|p| self.last.is_none_or(|last| p.frame > last.frame));
        if let Some(wait) = self.first_of_turn(turn, d) {
            return wait;
        }
        let since = turn.map_or(gap, |p| d.at.time_ns - p.time_ns);
        let lacks = missing.filter(|n| *n > 0);
        if let Some(lacks) = lacks.filter(|_| since >= RTO_NS.get() && !hole) {
            // frames of this sender never reached the capture, and this one came a timer later
            self.taint();
            let probe = lacks == 1 && since < 2 * d.rtt_ns + PROBE_NS.get() + DELACK_MIN_NS.get();
            let how = if probe { Repair::TailProbe } else { Repair::Timeout };
            return Wait::repair(how, None, None, true);
        }
        if let Some(opened) = self.had_no_room(from, d) {
            return if self.zero_seen > from.frame {
                Wait::ZeroWindow { opened }
            } else {
                Wait::Window { opened }
            };
        }
        let small = d.small;
        if let Some(since) = self.answered.filter(|_| small && self.fills_window(d)) {
            return Wait::FillsWindow { since };
        }
        if turn.is_none()
            && small
            && !d.fin
            && !hole
            && let Some(p) = self.small
            && !p.tainted
            && let Some(wait) = self.behind_small(p, gap, missing, d)
        {
            return wait;
        }
        if small
            && !d.fin
            && !hole
            && let Some(since) = turn
            && let Some(p) = self.small
            && !p.tainted
            && let Some(wait) = self.freed_in_turn(&p, since, d)
        {
            return wait;
        }
        let in_step = turn.is_none() && gap > BURST_NS.get() && self.leaves_with_lone(from, d);
        self.lockstep = if in_step {
            self.lockstep.saturating_add(1)
        } else {
            self.lockstep
        };
        let lockstep = in_step && self.lockstep >= SEVERAL.get() as u8;
        if turn.is_none() && even && self.even >= SEVERAL.get() as u8 && !lockstep {
            return Wait::Spaced;
        }
        if turn.is_none()
            && let Some(wait) = self.held_by_kernel(from, lockstep, lacks.is_some(), d)
        {
            return wait;
        }
        match turn {
            // what is missing before it left sooner, and that may have been lost: then a timer sent this one
            Some(peer_sent) if hole && self.unanswered_for(d, since) >= RTO_NS.get() => Wait::QueuedTurn {
                since: peer_sent,
                acked: 0,
                late: u32::try_from(self.unanswered_for(d, since)).unwrap_or(u32::MAX),
                queued: 0,
                fine: false,
            },
            Some(since) => self.behind_peer(since, gap, hole, missing, d),
            None if gap <= BURST_NS.get() && self.last_full => Wait::FullBurst,
            None if gap <= BURST_NS.get() => Wait::Burst,
            None if self.keeps_pace(d, gap) => Wait::Spaced,
            None if hole || self.last_full && self.una < d.start || self.may_be_held(d, gap) => Wait::Unsure,
            None if self.may_have_filled(d) => match self.echoes_first(d) {
                Some(ack) => Wait::Clocked { ack, acked: ack },
                None => Wait::Filled {
                    sender_id: d.sender_id,
                },
            },
            None if self.left_over_small(d) => Wait::Early {
                sender_id: d.sender_id,
                bytes: (d.end - d.start) as u32,
            },
            None => Wait::App,
        }
    }

    /// The first segment behind data of the peer: a small one that waited may have been freed along with it.
    #[inline(always)]
    fn first_of_turn(&mut self, turn: Option<At>, d: &Data) -> Option<Wait> {
        let peer_sent = turn?;
        if let Some(small) = self.small
            && let Some(ack) = small.ack.filter(|ack| ack.at.frame <= peer_sent.frame)
        {
            self.small = None; // what is answered now came with or after that ACK
            if ack.at.frame == peer_sent.frame {
                return self.freed_along(&small, peer_sent, d);
            }
            self.answers_freely(peer_sent, d);
        } else if self.last.is_none() {
            self.answers_freely(peer_sent, d);
        }
        None
    }

    /// A small segment behind another, with nothing of the peer's between them: Nagle's algorithm, a probe, or neither.
    #[inline(always)]
    fn behind_small(&mut self, p: Small, gap: i64, missing: Option<u16>, d: &Data) -> Option<Wait> {
        if self.fits_since(&p, d) {
            return None;
        }
        match p.ack {
            Some(ack) => {
                let mut candidate = candidate(&p, &ack, d, self.echoes_acks);
                candidate.held_back =
                    self.may_be_held(d, gap) || missing != Some(0) && may_be_again(d, p.at, 0);
                candidate.after_end = self.peer_ended;
                candidate.ack_late = ack
                    .tsval
                    .map_or(0, |tsval| self.peer_clock.late(ack.at.time_ns, tsval));
                if d.own_rtt_ns >= AT_HOST_NS.get() {
                    candidate.fine = self.clock.is_fine();
                    candidate.lateness = d.tsval.and_then(|now| self.clock.lateness(d.at.time_ns, now));
                }
                if candidate.arrived == Some(false) && overdue(gap, d) {
                    return Some(Wait::Probe {
                        sender_id: d.sender_id,
                        small: p.at,
                    });
                }
                self.count_freed(&candidate, d.own_rtt_ns);
                Some(Wait::Small(Box::new(candidate)))
            }
            None if overdue(gap, d) && !self.received_unseen(&p, d) => Some(Wait::Probe {
                sender_id: d.sender_id,
                small: p.at,
            }),
            None if self.received_unseen(&p, d) => Some(match unseen(&p, d, &self.peer_clock) {
                Some(candidate) => Wait::Small(Box::new(candidate)),
                None => Wait::Unsure, // acknowledged, but the time of the ACK is unknown
            }),
            None => {
                self.overtakes();
                self.refute(&p, d);
                None
            }
        }
    }

    /// A segment with nothing of the peer's before it: corked, or released by an ACK that made room.
    #[inline(always)]
    fn held_by_kernel(&mut self, from: At, lockstep: bool, lacks: bool, d: &Data) -> Option<Wait> {
        let gap = d.at.time_ns - from.time_ns;
        if d.small && self.last_full && self.una >= d.start {
            // nothing in flight, and nothing happened since the last packet of either side
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
            // of a small one it would be Nagle's
            let lone = a.lone && self.last_full && a.bytes <= d.mss;
            return Some(if lone && lacks {
                // its first copy never reached the capture: that ACK, or a timer, called for this one
                self.taint();
                Wait::repair(Repair::Fast, None, None, true)
            } else if lone {
                Wait::LoneClocked {
                    ack,
                    acked,
                    alone: self.collapsed || lockstep,
                }
            } else {
                Wait::Clocked { ack, acked }
            });
        }
        None
    }

    /// Behind data of the peer: a turn of the program, and how late by its own clock.
    #[inline(always)]
    fn behind_peer(&mut self, since: At, gap: i64, hole: bool, missing: Option<u16>, d: &Data) -> Wait {
        let (time_ns, tsval) = (d.at.time_ns, d.tsval.unwrap_or(0));
        let acked = self.kernel_took(since);
        let late = match d.tsval {
            Some(tsval) => self.clock.late(time_ns, tsval),
            None => 0,
        };
        match late {
            late if d.small && timed(d.at, since) => Wait::LateTurn {
                since,
                acked,
                late: if late == 0 {
                    0
                } else {
                    self.clock.believed(late, time_ns, tsval).0
                },
                sender_id: d.sender_id,
                again: missing != Some(0) && may_be_again(d, since, acked),
            },
            _ if self.pacer.keeps(d.start, gap) => Wait::QueuedTurn {
                since,
                acked,
                late: u32::try_from(gap).unwrap_or(u32::MAX),
                queued: 0,
                fine: false,
            },
            // (what is missing before it was lost on its way, and this may be sent again as well)
            0 if hole && d.own_rtt_ns >= AT_HOST_NS.get()
                || missing != Some(0) && may_be_again(d, since, acked) =>
            {
                Wait::AgainTurn { since, acked }
            }
            0 if as_if_held(d, since) => Wait::TimedTurn {
                since,
                acked,
                sender_id: d.sender_id,
            },
            0 => Wait::Turn { since, acked },
            late => {
                let (late, queued) = self.clock.believed(late, time_ns, tsval);
                let sure = i64::from(queued) >= TWO_TICKS_NS.get() || d.own_rtt_ns >= AT_HOST_NS.get();
                let queued = if sure { queued } else { 0 };
                Wait::QueuedTurn {
                    since,
                    acked,
                    late,
                    queued,
                    fine: self.clock.is_fine() && late < u32::MAX,
                }
            }
        }
    }

    /// Away from the sender, an ACK passes long before what it let go. So what is the first to echo a packet of the peer's
    /// (RFC 7323 4.3), and passes as long after that as the path takes, left with it: that packet, without its frame.
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

    /// A full segment that left while a small one was not acknowledged, or before that ACK had come.
    fn may_have_filled(&self, d: &Data) -> bool {
        let open = self.small.as_ref().filter(|p| !d.small && !p.tainted);
        open.is_some_and(|p| p.ack.as_ref().is_none_or(|ack| !reached(ack, d)))
    }

    /// A small segment that left while another small one was not acknowledged: behind one that was, its wait is known.
    #[cold]
    fn left_over_small(&self, d: &Data) -> bool {
        let open = self.small.as_ref().filter(|p| d.small && !d.fin && !p.tainted);
        open.is_some_and(|p| !self.fits_since(p, d))
    }

    /// How long nothing of this side has passed since the peer spoke, whose last byte, or a repeat of it, is so old.
    #[cold]
    fn unanswered_for(&self, d: &Data, since: i64) -> i64 {
        let first = self.unanswered.unwrap_or(d.at);
        since.max(d.at.time_ns - first.time_ns)
    }

    /// How long after the peer's last byte this side's kernel had acknowledged all of them by itself; 0 where it did not.
    fn kernel_took(&self, since: At) -> u32 {
        let acked = self.own_ack.filter(|ack| ack.frame > since.frame);
        let took = acked.map_or(0, |ack| ack.time_ns.saturating_sub(since.time_ns).max(1));
        u32::try_from(took).unwrap_or(u32::MAX)
    }

    /// The small segment right before, and its ACK, where that came after it.
    #[cold]
    fn unfinished(&self, from: At, gap: i64) -> Option<(At, At)> {
        let small = self
            .small
            .as_ref()
            .filter(|p| p.at.frame == from.frame && !p.tainted)?;
        let ack = small.ack.as_ref().filter(|_| gap > BURST_NS.get())?;
        Some((small.at, ack.at))
    }

    /// The packet before which this segment did not fit, since what left before it. What moved the edge again meanwhile
    /// was on its way before the sender can have answered the first.
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

    /// It did not fit until the window opened, behind this small one: what the receiver had no room for nobody else held.
    fn fits_since(&self, p: &Small, d: &Data) -> bool {
        self.edge_moved
            .is_some_and(|(opened, before)| opened.frame > p.at.frame && d.end > before)
    }

    /// It ends where the window does, though no full segment, as long after the peer was peer_sent as a timer takes: the sender had
    /// more (RFC 9293 3.8.6.2.1), and its probe timer sent what fits.
    fn fills_window(&self, d: &Data) -> bool {
        let since = self.answered.map_or(0, |at| d.at.time_ns - at.time_ns);
        self.edge == Some(d.end)
            && d.end - d.start < i64::from(d.mss)
            && since >= RTO_NS.get()
            && self.una >= d.start
    }

    /// It left with the ACK of the one full segment that was in flight.
    #[inline(always)]
    fn leaves_with_lone(&self, from: At, d: &Data) -> bool {
        self.advanced.is_some_and(|a| {
            let release = d.at.time_ns - a.ack.time_ns;
            let prompt = (d.own_rtt_ns / 2..=d.own_rtt_ns + PROMPT_NS.get()).contains(&release);
            a.lone && self.last_full && a.bytes <= d.mss && a.ack.frame > from.frame && prompt
        })
    }

    /// The path may have held it back by its sender's clock, or the sender's pacing by its bytes.
    #[cold]
    fn may_be_held(&self, d: &Data, gap: i64) -> bool {
        let path = |now| {
            self.clock
                .may_have_held(d.at.time_ns, now, self.last_tsval(), gap)
        };
        d.tsval.is_some_and(path) || self.pacer.may_have_held(d.start, gap, self.sent, d.mss)
    }

    fn last_tsval(&self) -> Option<u32> {
        self.newest().and_then(|last| last.tsval)
    }

    /// It kept the line's pace, or the one that its sender's kernel keeps.
    fn keeps_pace(&self, d: &Data, gap: i64) -> bool {
        self.line_was_busy(d, gap)
            || self.pacer.keeps(d.start, gap)
            || self.pacer.holds_tail(d, gap, self.sent)
    }

    /// Behind a full segment that was not pushed there was more, and few writes end just where an unacknowledged one is
    /// full. That one may be followed by a pause all the same, and a small tail may have been corked: those have to keep
    /// the pace.
    fn line_was_busy(&self, d: &Data, gap: i64) -> bool {
        let paced = gap <= LARGE_RATIO.get() * self.pace;
        if d.small || !self.last_more {
            paced && (self.last_more || self.last_full && self.una < d.start && !d.small)
        } else {
            true
        }
    }
}

/// As long after what is unacknowledged as a tail loss probe waits: the retransmission timeout bounds it, and that
/// grows where the path has wavered.
fn overdue(gap: i64, d: &Data) -> bool {
    (d.rtt_ns + CORK_NS.least()..2 * d.rtt_ns + MOST_PROBE_NS.get()).contains(&gap)
}

/// As long as the kernel's probe timer, whatever the path is.
fn timed(at: At, since: At) -> bool {
    let waited = at.time_ns - since.time_ns;
    (CORK_NS.least()..=CORK_NS.most() + RATED_NS.get()).contains(&waited)
}

/// It came so late that a timer may have sent it, and first copies of it may never have reached the capture. What a held
/// ACK of the peer's bytes would have carried had not been written by then.
fn may_be_again(d: &Data, since: At, acked: u32) -> bool {
    let acked = i64::from(acked);
    let held = acked - d.own_rtt_ns >= DELACK_LEAST_NS.get();
    let unseen = d.at.time_ns - since.time_ns - if held { acked } else { d.own_rtt_ns };
    d.own_rtt_ns >= AT_HOST_NS.get() && unseen >= d.rtt_ns + RTO_NS.get()
}

/// As long as an answer that waits for a held ACK elsewhere, and as long again for its program, as far as the path is known; or
/// from half as long on, which no such answer takes.
fn as_if_held(d: &Data, since: At) -> bool {
    let waited = d.at.time_ns - since.time_ns;
    2 * waited >= HELD_ELSEWHERE_NS.least() && waited - d.rtt_ns <= 2 * HELD_ELSEWHERE_NS.most()
}

/// A small segment after another, where the capture lacks the ACK between them (`peer_sent`): the time stamp that this one echoes
/// shows when that ACK left (RFC 7323 4.3), on the peer's clock.
fn unseen(p: &Small, d: &Data, peer: &PeerClock) -> Option<Candidate> {
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
        ..Candidate::default()
    })
}

/// Some stacks repeat no stamp that came without data, ever: without an example (`echoes`) an old one shows nothing. Beside
/// the host its absence still does: there the path's round trip shows no more.
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
        ..Candidate::default()
    }
}

#[cfg(test)]
mod tests;
