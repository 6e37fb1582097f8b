//! Small segments that ACKs let go across turns: an ACK that comes along with the peer's data frees what its sender had
//! written meanwhile, and so it looks like an answer to those data.

use super::reason::candidate;
use super::{AckSeen, Sender, Small};
use crate::base::At;
use crate::judge::limits::{HELD_AT_HOST, INSTANT_NS, PROMPT_NS, STRAY_PART};
use crate::observe::{Candidate, Data, Wait};

/// What was freed on this connection.
#[derive(Debug, Default)]
pub(super) struct Freed {
    /// By ACKs without data: its program writes without waiting for answers, as one that takes turns has nothing to send then.
    by_acks: u32,
    /// Just when the peer's data acknowledged the small segment before.
    along: u32,
    /// The soonest that its program answered with nothing of its own in flight: no kernel held that.
    pub(super) answered_in: Option<i64>,
    /// And later than a kernel sends.
    later: u32,
    /// Something small went over something small that was not acknowledged: no Nagle's algorithm.
    overtook: bool,
    newest: Option<Box<Candidate>>,
}

impl Sender {
    /// The client's small segment that left with this one's data, which the server's data had acknowledged just then.
    pub fn take_freed(&mut self) -> Option<Box<Candidate>> {
        self.freed.newest.take()
    }

    /// The first segment after the peer spoke, with nothing of its own in flight then.
    pub(super) fn answers_freely(&mut self, heard: At, d: &Data) {
        let took = d.at.time_ns - heard.time_ns;
        self.freed.answered_in = Some(self.freed.answered_in.map_or(took, |best| best.min(took)));
    }

    /// A small segment behind an acknowledged one, between which the peer said nothing.
    pub(super) fn count_freed(&mut self, c: &Candidate, rtt: i64) {
        if c.ack_pure && !c.ack_fin && at_once(c.ack, c.freed, rtt) {
            self.freed.by_acks = self.freed.by_acks.saturating_add(1);
        }
    }

    /// A small segment left over an unacknowledged one.
    pub(super) fn overtakes(&mut self) {
        self.freed.overtook = true;
    }

    /// The first small segment after the peer spoke (`heard`), where the one before it was acknowledged with those data.
    #[inline(always)]
    pub(super) fn freed_along(&mut self, p: &Small, heard: At, d: &Data) -> Option<Wait> {
        let freed = &self.freed;
        let may_be = freed.by_acks > 0 && !freed.overtook && d.small && !d.fin && !p.tainted;
        if may_be {
            self.weigh_freed(p, heard, d)
        } else {
            None
        }
    }

    /// One that takes turns but writes each of its messages in two parts is freed by an ACK without data once a turn. A server
    /// that had not been asked before answers those very data.
    #[cold]
    fn weigh_freed(&mut self, p: &Small, heard: At, d: &Data) -> Option<Wait> {
        let ack = p.ack.filter(|ack| ack.at.frame == heard.frame && !ack.fin)?;
        if !d.server {
            self.weigh_asking(p, &ack, d);
            return None;
        }
        let since = self.unanswered.filter(|first| first.frame < heard.frame)?;
        let release = d.at.time_ns - ack.at.time_ns;
        // beside its host, where a kernel is told from a program that answers
        let by_kernel = self.freed.answered_in.is_some_and(|took| 2 * release <= took);
        if !by_kernel || release > INSTANT_NS.get() {
            return None;
        }
        self.freed.along = self.freed.along.saturating_add(1);
        (self.freed.along > self.freed.by_acks).then(|| Wait::FreedTurn {
            since,
            candidate: Box::new(candidate(p, &ack, d, self.echoes_acks)),
        })
    }

    /// The same of a client, which writes again as soon as it is answered, or has written before: each that leaves later than a
    /// kernel sends speaks for the first, and those that do not only let us suspect the second.
    fn weigh_asking(&mut self, p: &Small, ack: &AckSeen, d: &Data) {
        if at_once(ack.at, d.at, 0) {
            self.freed.along = self.freed.along.saturating_add(1);
        } else {
            self.freed.later = self.freed.later.saturating_add(1);
        }
        let least = self
            .freed
            .by_acks
            .saturating_add(STRAY_PART.get() as u32 * self.freed.later);
        if self.freed.along > least.max(HELD_AT_HOST.get() as u32) {
            self.freed.newest = Some(Box::new(candidate(p, ack, d, self.echoes_acks)));
        }
    }

    /// The first small segment after the peer spoke, where one before it was not acknowledged by then.
    #[cold]
    pub(super) fn freed_in_turn(&mut self, p: &Small, since: At, d: &Data) -> Option<Wait> {
        let Some(ack) = p.ack else {
            self.overtakes();
            return None;
        };
        let candidate = candidate(p, &ack, d, self.echoes_acks);
        let prompt = d.at.time_ns - ack.at.time_ns - d.own_rtt_ns <= PROMPT_NS.get();
        if candidate.arrived == Some(false) || !prompt {
            return None;
        }
        self.count_freed(&candidate, d.own_rtt_ns);
        Some(Wait::FreedTurn {
            since,
            candidate: Box::new(candidate),
        })
    }
}

/// As a kernel sends what an ACK has freed.
fn at_once(ack: At, freed: At, rtt: i64) -> bool {
    freed.time_ns - ack.time_ns - rtt <= INSTANT_NS.get()
}
