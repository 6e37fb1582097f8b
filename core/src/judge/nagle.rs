//! Nagle's algorithm: a small segment waits until an earlier small one is acknowledged (RFC 896; Linux' variant is
//! Minshall's, tcp_minshall_check); and the delayed ACK that it may wait for (RFC 1122 4.2.3.2).
//!
//! Claims: a small segment that left after the ACK of the previous small one waited for that ACK; where the ACK was
//! pure and late, its receiver held it back.
//! Predicts: over many waits the segments follow the ACKs wherever these fall (slope 1), as promptly as a kernel, and
//! none leaves over an unacknowledged small one.
//! Rivals: a program's pause that ends near the ACK (`program`), a relay whose bytes have just come, a socket whose
//! option was set later.

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::path::{Paths, attribute_request_path, queue_by_timestamps};
use super::program::{paused, program_attribution};
use super::sender::{Control, NagleUse, SenderVerdict};
use super::turn::{attribute_turn_path, turn_attribution};
use super::vocabulary::{Because, Cause, Grade, Hypothesis, Owner, Rule};
use crate::base::{At, Side};
use crate::evidence::AckWait;
use crate::limits::{AT_HOST_NS, HELD_NS, MIN_SAMPLES, NOISE_NS, SOON_NS, UNHELD_NS};
use crate::observe::{Candidate, Wait};

/// Packet that ended a wait for an ACK that was not held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckKind {
    /// A pure ACK.
    ByAck,
    /// An ACK with data.
    ByData,
    ByFin,
}

/// Verdict on one candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ruling {
    /// A wait by Nagle's algorithm for an ACK that was held for `hold` ns. The program had written at most `program` ns
    /// after the small segment, about `likely` ns.
    Held {
        hold: i64,
        grounds: Grounds,
        program: i64,
        likely: i64,
    },
    /// A wait by Nagle's algorithm for an ACK that was not held.
    Waited { freed: AckKind, grounds: Grounds },
    /// A pause of the program.
    Pause { grounds: Grounds },
}

impl SenderVerdict {
    /// Judges one candidate of this sender.
    pub fn rule(&self, sender: Side, stream: u32, c: &Candidate) -> Ruling {
        self.rule_ack_wait(sender, c, &AckWait::new(stream, c))
    }

    /// Judges a candidate whose freed segment begins a message. Later writes in that segment do not matter, so its size
    /// counts as 0: the message waited from its first byte on.
    pub fn rule_first(&self, sender: Side, stream: u32, c: &Candidate) -> Ruling {
        let bytes = 0;
        self.rule_ack_wait(
            sender,
            c,
            &AckWait {
                bytes,
                ..AckWait::new(stream, c)
            },
        )
    }

    /// Judges a candidate in steps, of which the first that applies decides:
    ///
    /// 1. Left before the ACK: a pause.
    /// 2. The capture lacks the ACK: a stall only if timestamps prove it.
    /// 3. Left later than a kernel sends: a pause.
    /// 4. As long as the program's own pauses: a pause.
    /// 5. The ACK was held: see `held`.
    /// 6. This sender does not wait for ACKs: a pause, or the congestion window.
    /// 7. Else Nagle's algorithm waited for an ACK that came at once.
    fn rule_ack_wait(&self, sender: Side, c: &Candidate, ack_wait: &AckWait) -> Ruling {
        let stream = ack_wait.stream;
        let (wait, release) = (ack_wait.wait, ack_wait.release);
        let hold = self.hold(ack_wait);
        let late = self.late_ns(ack_wait);
        let program = |grounds: Grounds| {
            let mut grounds = grounds;
            if c.held_back {
                // the path (by the timestamps) or pacing may have made it
                grounds.at_most(Grounds::probable(Because::PathMayBeMore, Cause::Queueing));
            }
            Ruling::Pause { grounds }
        };
        let proven = |because| program(Grounds::proven(because));
        let probable = |because| program(Grounds::probable(because, Cause::Nagle));
        if self.before_ack(release, c.arrived) {
            // the round trip may contain a program's time, and a kernel is sooner
            let sure = self.rtt_is_best || c.arrived.is_some();
            return if sure {
                program(self.early(wait + release, c.freed_bytes))
            } else {
                probable(Because::RoundTripByProgram)
            };
        }
        if c.unseen {
            return self.unseen(ack_wait, hold, late);
        }
        if !self.is_prompt(ack_wait) {
            return match self.nagle_use {
                NagleUse::Off if self.goes_without(stream, c.freed.frame) => proven(Because::GoesWithoutAck),
                NagleUse::AppPause if self.keeps_its_length(ack_wait, late) => {
                    proven(Because::KeepsItsLength)
                }
                // no kernel holds a segment for so long; a person may have typed it
                _ if late > HELD_NS.most() => {
                    program(Grounds::probable(Because::LateAfterAck, Hypothesis::NotAsked))
                }
                _ => probable(Because::LateAfterAck),
            };
        }
        if self.may_be_pause(ack_wait) {
            return probable(Because::ControlUnclear);
        }
        if c.ack_pure && !c.ack_fin && HELD_NS.contains(hold) {
            return match self.held(ack_wait, hold, late, sender) {
                Ok(held) => held,
                Err(because) => probable(because),
            };
        }
        if self.nagle_use == NagleUse::Off {
            // a segment that a kernel sends upon an ACK that was not held may have lacked congestion window before
            let by_kernel = late <= AT_HOST_NS.get() && hold < HELD_NS.least() && c.ack_pure;
            return if by_kernel || !self.controls.leaves_early(stream, c.freed.frame) {
                program(Grounds::probable(Because::WithTheAck, Cause::Cwnd))
            } else {
                proven(Because::GoesWithoutAck)
            };
        }
        Ruling::Waited {
            freed: match (c.ack_fin, c.ack_pure) {
                (true, _) => AckKind::ByFin,
                (false, false) => AckKind::ByData,
                (false, true) => AckKind::ByAck,
            },
            grounds: self.probable(sender),
        }
    }

    /// Returns the grounds for the program's time before a small segment that left over another small one.
    pub(super) fn early(&self, waited: i64, bytes: u32) -> Grounds {
        if self.controls.may_flush(waited, bytes) {
            Grounds::probable(Because::OptionMayChange, Cause::Nagle)
        } else {
            Grounds::proven(Because::LeftBeforeAck)
        }
    }

    /// Judges a segment that followed a held ACK promptly; the error is the reason why it is a pause.
    fn held(&self, ack_wait: &AckWait, hold: i64, late: i64, sender: Side) -> Result<Ruling, Because> {
        let (stream, waited) = (ack_wait.stream, ack_wait.wait + ack_wait.release);
        let control = self.compare_last(ack_wait);
        let (program, likely) = program_took(control, waited);
        let sure = self.proves(stream, control);
        let because = match control {
            // a kernel sent it upon the ACK, so it had been written before; when is not known
            Control::Explains { .. } if self.sent_by_kernel(stream, late) => Because::ControlExplains,
            Control::Explains { .. } => return Err(Because::ControlExplains),
            _ if !sure && self.nagle_use == NagleUse::Off && !self.controls.follows_alone(stream) => {
                return Err(Because::OptionMayChange);
            }
            _ if !self.controls.may_be_kernels() => return Err(Because::NotAsKernel),
            _ if !self.controls.are_kernels() => Because::NotAsKernel,
            Control::Nothing if !sure && self.nagle_use == NagleUse::AppPause => {
                return Err(Because::KeepsItsLength);
            }
            Control::Unclear => Because::ControlUnclear,
            // later writes in it may have been made at any time of the wait
            Control::Shorter { .. } if self.may_gather(ack_wait) => Because::FollowsAcks,
            Control::Shorter { .. } => Because::ControlShorter,
            Control::Nothing => Because::FollowsAcks,
        };
        let grounds = match control {
            _ if sure => Grounds::proven(because),
            _ if because == Because::NotAsKernel => Grounds::probable(because, Cause::program_of(sender)),
            Control::Unclear | Control::Explains { .. } => {
                Grounds::probable(because, Cause::program_of(sender))
            }
            _ => self.probable(sender),
        };
        Ok(Ruling::Held {
            hold,
            grounds,
            program,
            likely,
        })
    }

    /// Judges a segment behind an ACK that the capture lacks.
    fn unseen(&self, ack_wait: &AckWait, hold: i64, late: i64) -> Ruling {
        let control = self.compare_last(ack_wait);
        let dated = late.abs() <= NOISE_NS.get() + self.prompt_limit_ns && HELD_NS.contains(hold);
        match control {
            Control::Shorter { most, likely, exact } if dated && self.proves(ack_wait.stream, control) => {
                Ruling::Held {
                    hold,
                    grounds: Grounds::proven(Because::ControlShorter),
                    program: most,
                    likely: if exact { likely } else { 0 },
                }
            }
            _ => Ruling::Pause {
                grounds: Grounds::probable(Because::AckNotSeen, Cause::Nagle),
            },
        }
    }

    /// Returns the grounds of a stall that is not proven.
    fn probable(&self, sender: Side) -> Grounds {
        let because = if self.held >= MIN_SAMPLES.get() {
            Because::SenderNotKnown
        } else {
            Because::FewWaits
        };
        Grounds::probable(because, Cause::program_of(sender))
    }
}

/// Returns how much of a wait the program took at most, and about how much.
fn program_took(control: Control, waited: i64) -> (i64, i64) {
    match control {
        Control::Shorter { most, likely, exact } => (most, if exact { likely } else { 0 }),
        Control::Explains { likely } => (waited, likely),
        Control::Nothing | Control::Unclear => (0, 0),
    }
}

/// Attributes the time of a candidate by its ruling.
pub(super) fn attribute(cutter: &mut Cutter<'_>, c: &Candidate, ruling: Ruling) {
    let (paths, side) = (cutter.paths, cutter.slice.sender);
    let evidence = [c.small.frame, c.ack.frame, c.freed.frame];
    let nagle = |rule, grounds| Attribution::new(Cause::Nagle, Owner::of(side), rule, grounds, evidence);
    match ruling {
        Ruling::Held {
            hold,
            grounds,
            program,
            likely,
        } => {
            let rule = Rule::NagleDelayedAck;
            let receiver = Owner::of(side.other());
            let delayed = |grounds| Attribution {
                parent: Some(Cause::Nagle),
                ..Attribution::new(Cause::DelayedAck, receiver, rule, grounds, evidence)
            };
            let [held_from, held_to] = held_at(c, hold, program, paths.to(side));
            // without a control group the end of the wait is known, but not its start
            let (within, known_from) = match grounds.because {
                Because::FollowsAcks => (Because::FollowsAcks, held_to - UNHELD_NS.get()),
                _ => (Because::WithinControl, known_from(c, held_from, program)),
            };
            let within = grounds.weaker(Grounds::probable(within, Cause::program_of(side)));
            if beyond(likely, paths) > 0 {
                let why = match grounds.because {
                    Because::ControlExplains => Because::ControlExplains,
                    _ => Because::WithinControl,
                };
                let took = Grounds::probable(why, Cause::Nagle);
                cutter.attribute(
                    (c.small.time_ns + likely).min(held_to),
                    program_attribution(side, Rule::Control, took, evidence),
                );
            }
            for (until, grounds) in [(known_from, within), (cutter.end, grounds)] {
                cutter.attribute(until.min(held_from), nagle(rule, grounds));
                cutter.attribute(until.min(held_to), delayed(grounds));
                cutter.attribute(until, nagle(rule, grounds));
            }
        }
        Ruling::Waited { freed, grounds } => {
            let rule = match freed {
                AckKind::ByAck => Rule::NagleWait,
                AckKind::ByData => Rule::NaglePiggyback,
                AckKind::ByFin => Rule::NagleFinRelease,
            };
            cutter.attribute(cutter.end, nagle(rule, grounds));
        }
        Ruling::Pause { grounds } => {
            attribute_request_path(cutter);
            let program = program_attribution(side, Rule::LookAlike, grounds, evidence);
            let end = cutter.end;
            // the segment was late on its way, by the timestamps: that part is the path's
            let delay = c.lateness.filter(|_| c.fine && grounds.grade == Grade::Proven);
            let delay = delay.map_or(0, i64::from);
            if delay > NOISE_NS.get() {
                cutter.end = (end - delay).max(cutter.at);
            }
            cutter.attribute(cutter.end, program);
            cutter.end = end;
            cutter.attribute(end, queue_by_timestamps(evidence));
        }
    }
}

/// Judges a full segment that left over a small one. If this sender waits for ACKs and makes small writes, Nagle's
/// algorithm held the first of them until they filled a segment (RFC 896).
pub(super) fn filled(cutter: &mut Cutter<'_>, judged: Option<&SenderVerdict>, stream: u32) {
    let (slice, side) = (cutter.slice, cutter.slice.sender);
    let evidence = [slice.from_frame, 0, slice.to_frame];
    let grounds = match judged {
        Some(judged) if judged.goes_without(stream, slice.from_frame) => {
            Grounds::proven(Because::GoesWithoutAck)
        }
        _ => Grounds::probable(Because::FillsSegment, Cause::Nagle),
    };
    let first = judged.and_then(|judged| judged.first_of_many(stream, slice.end - slice.start));
    if let Some(first) = first {
        attribute_request_path(cutter);
        let program = program_attribution(side, Rule::App, grounds, evidence);
        cutter.attribute((slice.start + first).min(slice.end), program);
        let grounds = Grounds::probable(Because::FillsSegment, Cause::program_of(side));
        let held = Attribution::new(Cause::Nagle, Owner::of(side), Rule::NagleWait, grounds, evidence);
        return cutter.attribute(slice.end, held);
    }
    paused(cutter, grounds);
}

/// Returns start and end of the row for the held ACK. A capture away from the sender sees the ACK earlier than the
/// sender does, and segments later. So where the program may have taken the wait's first part, the hold moves by one
/// round trip.
fn held_at(c: &Candidate, hold: i64, program: i64, sender_rtt: i64) -> [i64; 2] {
    let moves = program > SOON_NS.get() && sender_rtt >= AT_HOST_NS.get();
    let later = if moves { sender_rtt } else { 0 };
    [c.ack.time_ns - hold, c.ack.time_ns].map(|at| at + later)
}

/// Returns since when the freed segment had waited in its kernel for sure, if its program took at most `program` ns:
/// since the small segment if a busy host explains that, else since the write, or the hold if both are about equal.
fn known_from(c: &Candidate, held_from: i64, program: i64) -> i64 {
    match c.small.time_ns + program {
        _ if program <= SOON_NS.get() => c.small.time_ns,
        wrote if (wrote - held_from).abs() <= SOON_NS.get() => held_from,
        wrote => wrote,
    }
}

/// Returns the part of the program's time beyond a round trip. A wait is a hold and a round trip, and the program's
/// time may lie in the latter.
fn beyond(took: i64, paths: &Paths) -> i64 {
    let beyond = took - paths.to(Side::Client) - paths.to(Side::Server);
    if beyond < NOISE_NS.get() { 0 } else { beyond }
}

/// Returns since when the first segment of a message had waited in its kernel for a held ACK, behind another message of
/// its sender. A request needs a proof, as its latency begins there; for a push, a probable wait is enough.
pub fn held_since(
    wait: &Wait,
    side: Side,
    stream: u32,
    judged_senders: &[SenderVerdict],
    paths: &Paths,
) -> Option<At> {
    let Wait::Small(c) = wait else { return None };
    let judged = judged_senders.get(c.sender_id as usize)?;
    let (since, grounds) = match judged.rule_first(side, stream, c) {
        Ruling::Held { grounds, program, .. } if program < NOISE_NS.get() => (c.small, grounds),
        Ruling::Held {
            hold,
            grounds,
            program,
            ..
        } => {
            let time_ns = c.ack.time_ns - hold + beyond(program, paths);
            (At { time_ns, ..c.small }, grounds)
        }
        _ => return None,
    };
    let weakest = match side {
        Side::Client => Grade::Proven,
        Side::Server => Grade::Probable,
    };
    (grounds.grade <= weakest && since.time_ns < c.ack.time_ns).then_some(since)
}

/// Judges a wait by Nagle's algorithm at the start of a turn: after the peer's data came the ACK upon which this
/// segment left.
pub(super) fn judge_turn(cutter: &mut Cutter<'_>, since: At, c: &Candidate, ruling: Option<Ruling>) {
    attribute_turn_path(cutter, since);
    match ruling {
        Some(Ruling::Held {
            hold,
            mut grounds,
            program,
            likely,
        }) => {
            if grounds.because == Because::ControlShorter {
                // pauses inside messages do not show the program's time to answer
                grounds.because = Because::FollowsAcks;
            }
            let held = Ruling::Held {
                hold,
                grounds,
                program,
                likely,
            };
            attribute(cutter, c, held);
        }
        Some(ruling @ Ruling::Waited { .. }) => attribute(cutter, c, ruling),
        _ => {
            let mut program = turn_attribution(cutter, cutter.slice.sender, 0);
            let cap = Grounds::probable(Because::SenderNotKnown, Cause::Nagle);
            program.grounds.at_most(cap);
            cutter.attribute(cutter.end, program);
        }
    }
}

#[cfg(test)]
mod tests;
