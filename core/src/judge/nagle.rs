//! Nagle's algorithm: a small segment waits until an earlier small one is acknowledged (RFC 896; Linux' variant is
//! Minshall's, tcp_minshall_check); and the delayed ACK that it may wait for (RFC 1122 4.2.3.2).
//!
//! Claims: a small segment that left after the ACK of the previous small one waited for that ACK; where the ACK was pure
//! and late, its receiver held it back.
//! Predicts: over many waits the segments follow the ACKs wherever these fall (slope 1), as promptly as a kernel, and none
//! leaves over an unacknowledged small one.
//! Rivals: a program's pause that ends near the ACK (`program`), a relay whose bytes have just come, a socket whose option
//! was set later.

use super::grounds::Grounds;
use super::limits::{AT_HOST_NS, ENOUGH, HELD_NS, LOOSE_NS, PROMPT_NS};
use super::partition::{Cutter, Named, row};
use super::path::{Paths, reach};
use super::program::think;
use super::sender::{Judged, Verdict};
use super::vocabulary::{Because, Cause, Owner, Rule};
use crate::base::Side;
use crate::exchange::Piece;
use crate::observe::Candidate;

/// What ended a wait for an ACK that came at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    /// An ACK of its own.
    ByAck,
    /// An ACK that came along with data.
    ByData,
    ByFin,
}

/// How one candidate is to be named.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ruling {
    /// Nagle's wait with a held ACK of so many nanoseconds inside.
    Held { hold: i64, grounds: Grounds },
    /// Nagle's wait for an ACK that came at once.
    Waited { freed: Freed, grounds: Grounds },
    /// The program paused.
    Pause { grounds: Grounds },
}

impl Judged {
    /// What one candidate of this sender is, on its stream.
    pub fn rule(&self, sender: Side, stream: u32, c: &Candidate) -> Ruling {
        let release = c.freed.time_ns - c.ack.time_ns;
        let late = release - self.sender_rtt;
        let hold = c.ack.time_ns - c.held_from.time_ns - self.receiver_rtt;
        let wait = c.ack.time_ns - c.small.time_ns;
        let program = |grounds: Grounds| {
            let mut grounds = grounds;
            if c.held_back {
                // no proof of a pause: the path's, by its own clock, or the pacing's
                grounds.at_most(Grounds::probable(Because::PathMayBeMore, Cause::Queueing));
            }
            Ruling::Pause { grounds }
        };
        let proven = |because| program(Grounds::proven(because));
        let probable = |because| program(Grounds::probable(because, Cause::Nagle));
        if self.before_ack(release, c.arrived) {
            // as soon as a program answers at best: a kernel may be sooner
            let sure = self.rtt_is_best || c.arrived.is_some();
            return if sure {
                proven(Because::LeftBeforeAck)
            } else {
                probable(Because::RoundTripByProgram)
            };
        }
        let (verdict, held) = self.on(stream);
        if verdict == Verdict::Refuted
            && late <= self.tight_limit.min(PROMPT_NS)
            && self.yet_unset(stream, c, hold)
        {
            return probable(Because::OptionMayChange); // one alone does not tell
        }
        match verdict {
            Verdict::Refuted if self.follows() => return probable(Because::OptionMayChange),
            Verdict::Refuted => return proven(Because::GoesWithoutAck),
            Verdict::AppPause => return proven(Because::KeepsItsLength),
            Verdict::Proven if late > LOOSE_NS => return probable(Because::LateAfterAck),
            Verdict::Open if late > self.tight_limit => return probable(Because::LateAfterAck),
            Verdict::Open if self.is_relay() => return probable(Because::Relayed),
            Verdict::Proven if late > self.tight_limit && self.pauses_too() => {
                return probable(Because::LateAfterAck);
            }
            _ => {}
        }
        let grounds = match (verdict, held) {
            (Verdict::Proven, n) if n >= ENOUGH => Grounds::proven(Because::FollowsAcks),
            (_, n) if n >= ENOUGH => Grounds::probable(Because::SenderNotKnown, think(sender)),
            _ => Grounds::probable(Because::FewWaits, think(sender)),
        };
        if c.ack_pure && !c.ack_fin && HELD_NS.contains(&hold) {
            return Ruling::Held { hold, grounds };
        }
        // a release much later than the wait is long was no release
        let prompt = late <= self.tight_limit && late <= ((wait + release) / 2).max(AT_HOST_NS);
        match (c.ack_fin, c.ack_pure, prompt) {
            (true, _, true) => Ruling::Waited {
                freed: Freed::ByFin,
                grounds,
            },
            (false, false, true) => Ruling::Waited {
                freed: Freed::ByData,
                grounds,
            },
            (false, true, true) => Ruling::Waited {
                freed: Freed::ByAck,
                grounds,
            },
            _ => probable(Because::LateAfterAck),
        }
    }
}

/// Gives the time of a candidate to what it is by its ruling.
pub(super) fn cut(cutter: &mut Cutter<'_>, c: &Candidate, ruling: Ruling, piece: &Piece<'_>, paths: &Paths) {
    let side = piece.sender;
    let evidence = [c.small.frame, c.ack.frame, c.freed.frame];
    let nagle = |rule, grounds| row(Cause::Nagle, Owner::of(side), rule, grounds, evidence);
    match ruling {
        Ruling::Held { hold, grounds } => {
            let rule = Rule::NagleDelayedAck;
            let receiver = Owner::of(side.other());
            let delayed = Named {
                parent: Some(Cause::Nagle),
                ..row(Cause::DelayedAck, receiver, rule, grounds, evidence)
            };
            cutter.cut(c.ack.time_ns - hold, nagle(rule, grounds));
            cutter.cut(c.ack.time_ns, delayed);
            cutter.cut(cutter.end, nagle(rule, grounds));
        }
        Ruling::Waited { freed, grounds } => {
            let rule = match freed {
                Freed::ByAck => Rule::NagleWait,
                Freed::ByData => Rule::NaglePiggyback,
                Freed::ByFin => Rule::NagleFinRelease,
            };
            cutter.cut(cutter.end, nagle(rule, grounds));
        }
        Ruling::Pause { grounds } => {
            reach(cutter, piece, paths);
            let program = row(think(side), Owner::of(side), Rule::LookAlike, grounds, evidence);
            cutter.cut(cutter.end, program);
        }
    }
}
