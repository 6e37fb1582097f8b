//! Nagle's algorithm: a small segment waits until an earlier small one is acknowledged (RFC 896; Linux' variant is
//! Minshall's, tcp_minshall_check); and the delayed ACK that it may wait for (RFC 1122 4.2.3.2).
//!
//! Claims: a small segment that left after the ACK of the previous small one waited for that ACK; where the ACK was
//! pure and late, its receiver held it back.
//! Predicts: over many waits the segments follow the ACKs wherever these fall (slope 1), as promptly as a kernel, and
//! none leaves over an unacknowledged small one.
//! Rivals: a program's pause that ends near the ACK (`program`), a relay whose bytes have just come, a socket whose
//! option was set later.

use std::ops::Range;

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter, EvidenceFrames};
use super::path::{Paths, attribute_request_path, queue_by_timestamps};
use super::program::{paused, program_attribution};
use super::sender::{Control, NagleUse, SenderVerdict};
use super::turn::{attribute_turn_path, turn_attribution};
use super::vocabulary::{Because, Cause, Grade, Hypothesis, Owner, Rule};
use crate::base::{At, Side};
use crate::limits::{AT_HOST_NS, HELD_NS, MIN_SAMPLES, NOISE_NS, SOON_NS, UNHELD_NS};
use crate::observe::{Candidate, Wait};

/// How long after the small segment the program had written the freed one. Times in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProgramTime {
    pub max_ns: i64,
    /// 0 where unknown.
    pub likely_ns: i64,
}

/// Verdict on one candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ruling {
    /// A wait by Nagle's algorithm for an ACK that was held.
    Held {
        hold_ns: i64,
        program: ProgramTime,
        grounds: Grounds,
    },
    /// A wait by Nagle's algorithm for an ACK that was not held; the rule names what came with that ACK.
    Waited { rule: Rule, grounds: Grounds },
    /// A pause of the program.
    Pause { grounds: Grounds },
}

impl SenderVerdict {
    /// Judges one candidate of this sender.
    pub fn rule(&self, sender: Side, candidate: &Candidate) -> Ruling {
        self.rule_sized(sender, candidate, candidate.freed_bytes)
    }

    /// Judges a candidate whose freed segment begins a message. Later writes in that segment do not matter, so its size
    /// counts as 0: the message waited from its first byte on.
    pub fn rule_first(&self, sender: Side, candidate: &Candidate) -> Ruling {
        let first_byte = Candidate {
            freed_bytes: 0,
            ..*candidate
        };
        self.rule_sized(sender, &first_byte, candidate.freed_bytes)
    }

    /// Judges a candidate in steps, of which the first that applies decides:
    ///
    /// 1. Left before the ACK: a pause.
    /// 2. The capture lacks the ACK: a stall only if timestamps prove it.
    /// 3. Left later than a kernel sends: a pause.
    /// 4. As long as the program's own pauses: a pause.
    /// 5. The ACK was held: see `rule_held`.
    /// 6. This sender does not wait for ACKs: a pause, or the congestion window.
    /// 7. Else Nagle's algorithm waited for an ACK that came at once.
    ///
    /// `freed_bytes` is the true size of the freed segment.
    fn rule_sized(&self, sender: Side, candidate: &Candidate, freed_bytes: u32) -> Ruling {
        let (stream, freed_frame) = (candidate.stream, candidate.freed.frame);
        let hold_ns = self.measures.path.hold_ns(candidate);
        let late_ns = self.measures.path.late_ns(candidate);
        let pause = |mut grounds: Grounds| {
            if candidate.may_be_delayed {
                // the path (by the timestamps) or pacing may have made it
                grounds.at_most(Grounds::probable(Because::PathMayBeMore, Cause::Queueing));
            }
            Ruling::Pause { grounds }
        };
        let probable_pause = |because| pause(Grounds::probable(because, Cause::Nagle));
        if self.measures.path.left_before_ack(candidate) {
            // the round trip may contain a program's time, and a kernel is sooner
            return if self.measures.path.is_rtt_best || candidate.arrived.is_some() {
                pause(self.early_grounds(candidate.total_ns(), freed_bytes))
            } else {
                probable_pause(Because::RoundTripByProgram)
            };
        }
        if candidate.is_ack_unseen {
            return self.rule_unseen(candidate, hold_ns, late_ns);
        }
        if !self.measures.is_prompt(candidate) {
            return pause(self.late_grounds(candidate, late_ns));
        }
        if self.measures.may_be_pause(candidate) {
            return probable_pause(Because::ControlUnclear);
        }
        if candidate.is_pure_ack() && HELD_NS.contains(hold_ns) {
            return match self.rule_held(candidate, hold_ns, late_ns, sender) {
                Ok(held) => held,
                Err(because) => probable_pause(because),
            };
        }
        if self.nagle_use == NagleUse::Off {
            // a segment that a kernel sends upon an ACK that was not held may have lacked congestion window before
            let is_by_kernel =
                late_ns <= AT_HOST_NS.get() && hold_ns < HELD_NS.least() && candidate.ack_lacks_data;
            return if is_by_kernel || !self.measures.controls.leaves_early(stream, freed_frame) {
                pause(Grounds::probable(Because::WithTheAck, Cause::Cwnd))
            } else {
                pause(Grounds::proven(Because::GoesWithoutAck))
            };
        }
        Ruling::Waited {
            rule: match (candidate.ack_has_fin, candidate.ack_lacks_data) {
                (true, _) => Rule::NagleFinRelease,
                (false, false) => Rule::NaglePiggyback,
                (false, true) => Rule::NagleWait,
            },
            grounds: self.probable_stall(sender),
        }
    }

    /// Returns the grounds for the program's time before a small segment that left over another small one.
    pub(super) fn early_grounds(&self, waited: i64, bytes: u32) -> Grounds {
        if self.measures.controls.may_flush(waited, bytes) {
            Grounds::probable(Because::OptionMayChange, Cause::Nagle)
        } else {
            Grounds::proven(Because::LeftBeforeAck)
        }
    }

    /// Returns the grounds for the program's time before a segment that left later after its ACK than a kernel sends.
    fn late_grounds(&self, candidate: &Candidate, late_ns: i64) -> Grounds {
        match self.nagle_use {
            NagleUse::Off if self.goes_without(candidate.stream, candidate.freed.frame) => {
                Grounds::proven(Because::GoesWithoutAck)
            }
            NagleUse::AppPause if self.measures.keeps_its_length(candidate, late_ns) => {
                Grounds::proven(Because::KeepsItsLength)
            }
            // no kernel holds a segment for so long; a person may have typed it
            _ if late_ns > HELD_NS.most() => Grounds::probable(Because::LateAfterAck, Hypothesis::NotAsked),
            _ => Grounds::probable(Because::LateAfterAck, Cause::Nagle),
        }
    }

    /// Judges a segment that followed a held ACK promptly; the error is the reason why it is a pause. The first line
    /// that applies decides:
    ///
    /// | pauses where nothing was held | further sign | ruling |
    /// | --- | --- | --- |
    /// | as long | its kernel sent this upon the ACK | stall, probable |
    /// | as long | none | pause |
    /// | any other | the option was off, and this connection does not always wait; no proof | pause |
    /// | any other | segments leave later than any kernel sends | pause |
    /// | any other | ... than a prompt kernel sends | stall; proven if so |
    /// | none seen | this sender pauses; no proof | pause |
    /// | unclear | | stall, probable |
    /// | shorter, or none seen | | stall; proven if so |
    ///
    /// "Proven if so" is `proves_nagle`.
    fn rule_held(
        &self,
        candidate: &Candidate,
        hold_ns: i64,
        late_ns: i64,
        sender: Side,
    ) -> Result<Ruling, Because> {
        let stream = candidate.stream;
        let control = self.measures.compare_last(candidate);
        let is_proven = self.measures.proves_nagle(stream, control);
        let because = match control {
            // a kernel sent it upon the ACK, so it had been written before; when is not known
            Control::Explains { .. } if self.sent_by_kernel(stream, late_ns) => Because::ControlExplains,
            Control::Explains { .. } => return Err(Because::ControlExplains),
            _ if !is_proven
                && self.nagle_use == NagleUse::Off
                && !self.measures.controls.follows_alone(stream) =>
            {
                return Err(Because::OptionMayChange);
            }
            _ if !self.measures.controls.may_be_kernels() => return Err(Because::NotAsKernel),
            _ if !self.measures.controls.are_kernels() => Because::NotAsKernel,
            Control::Nothing if !is_proven && self.nagle_use == NagleUse::AppPause => {
                return Err(Because::KeepsItsLength);
            }
            Control::Unclear => Because::ControlUnclear,
            // later writes in it may have been made at any time of the wait
            Control::Shorter { .. } if self.measures.controls.may_gather(candidate) => Because::FollowsAcks,
            Control::Shorter { .. } => Because::ControlShorter,
            Control::Nothing => Because::FollowsAcks,
        };
        let grounds = match control {
            _ if is_proven => Grounds::proven(because),
            _ if because == Because::NotAsKernel => Grounds::probable(because, Cause::program_of(sender)),
            Control::Unclear | Control::Explains { .. } => {
                Grounds::probable(because, Cause::program_of(sender))
            }
            _ => self.probable_stall(sender),
        };
        Ok(Ruling::Held {
            hold_ns,
            program: program_took(control, candidate.total_ns()),
            grounds,
        })
    }

    /// Judges a segment after an ACK that the capture lacks.
    fn rule_unseen(&self, candidate: &Candidate, hold_ns: i64, late_ns: i64) -> Ruling {
        let control = self.measures.compare_last(candidate);
        let is_dated =
            late_ns.abs() <= NOISE_NS.get() + self.measures.path.prompt_limit_ns && HELD_NS.contains(hold_ns);
        if matches!(control, Control::Shorter { .. })
            && is_dated
            && self.measures.proves_nagle(candidate.stream, control)
        {
            return Ruling::Held {
                hold_ns,
                program: program_took(control, candidate.total_ns()),
                grounds: Grounds::proven(Because::ControlShorter),
            };
        }
        Ruling::Pause {
            grounds: Grounds::probable(Because::AckNotSeen, Cause::Nagle),
        }
    }

    /// Returns the grounds of a stall that is not proven.
    fn probable_stall(&self, sender: Side) -> Grounds {
        let because = if self.measures.holds.count >= MIN_SAMPLES.get() {
            Because::SenderNotKnown
        } else {
            Because::FewWaits
        };
        Grounds::probable(because, Cause::program_of(sender))
    }
}

/// Returns how much of a wait the program took, by the control group.
fn program_took(control: Control, waited_ns: i64) -> ProgramTime {
    let (max_ns, likely_ns) = match control {
        Control::Shorter {
            max_ns, exact: false, ..
        } => (max_ns, 0),
        Control::Shorter {
            max_ns, likely_ns, ..
        } => (max_ns, likely_ns),
        Control::Explains { likely_ns } => (waited_ns, likely_ns),
        Control::Nothing | Control::Unclear => (0, 0),
    };
    ProgramTime { max_ns, likely_ns }
}

/// Attributes the time of a candidate by its ruling.
pub(super) fn attribute(cutter: &mut Cutter<'_>, candidate: &Candidate, ruling: Ruling) {
    let side = cutter.slice.sender;
    let evidence = evidence_of(candidate);
    match ruling {
        Ruling::Held {
            hold_ns,
            program,
            grounds,
        } => {
            let held = held_time(candidate, hold_ns, program, cutter.paths.rtt_to(side));
            if beyond_round_trip(program.likely_ns, cutter.paths) > 0 {
                let because = match grounds.because {
                    Because::ControlExplains => Because::ControlExplains,
                    _ => Because::WithinControl,
                };
                let grounds = Grounds::probable(because, Cause::Nagle);
                cutter.attribute(
                    (candidate.small.time_ns + program.likely_ns).min(held.end),
                    program_attribution(side, Rule::Control, grounds, evidence),
                );
            }
            attribute_stall(cutter, candidate, held, program, grounds);
        }
        Ruling::Waited { rule, grounds } => {
            let nagle = Attribution::new(Cause::Nagle, Owner::of(side), rule, grounds, evidence);
            cutter.attribute(cutter.end_ns, nagle);
        }
        Ruling::Pause { grounds } => {
            attribute_request_path(cutter);
            let end = cutter.end_ns;
            // the segment was late on its way, by the timestamps: that part is the path's
            let delay = candidate
                .lateness_ns
                .filter(|_| candidate.is_clock_fine && grounds.grade == Grade::Proven);
            let delay = delay.map_or(0, i64::from);
            if delay > NOISE_NS.get() {
                cutter.end_ns = (end - delay).max(cutter.attributed_until_ns);
            }
            let program = program_attribution(side, Rule::LookAlike, grounds, evidence);
            cutter.attribute(cutter.end_ns, program);
            cutter.end_ns = end;
            cutter.attribute(end, queue_by_timestamps(evidence));
        }
    }
}

fn evidence_of(candidate: &Candidate) -> EvidenceFrames {
    [candidate.small.frame, candidate.ack.frame, candidate.freed.frame]
}

/// Attributes a wait for a held ACK: the hold to the delayed ACK, the time around it to Nagle's algorithm alone.
fn attribute_stall(
    cutter: &mut Cutter<'_>,
    candidate: &Candidate,
    held: Range<i64>,
    program: ProgramTime,
    grounds: Grounds,
) {
    let evidence = evidence_of(candidate);
    let (side, rule) = (cutter.slice.sender, Rule::NagleDelayedAck);
    let nagle = |grounds| Attribution::new(Cause::Nagle, Owner::of(side), rule, grounds, evidence);
    let receiver = Owner::of(side.other());
    let delayed = |grounds| Attribution {
        parent: Some(Cause::Nagle),
        ..Attribution::new(Cause::DelayedAck, receiver, rule, grounds, evidence)
    };
    // without a control group the end of the wait is known, but not its start
    let (because, known_from) = match grounds.because {
        Because::FollowsAcks => (Because::FollowsAcks, held.end - UNHELD_NS.get()),
        _ => (
            Because::WithinControl,
            known_from(candidate, held.start, program.max_ns),
        ),
    };
    let before_known = grounds.weaker(Grounds::probable(because, Cause::program_of(side)));
    for (until, grounds) in [(known_from, before_known), (cutter.end_ns, grounds)] {
        cutter.attribute(until.min(held.start), nagle(grounds));
        cutter.attribute(until.min(held.end), delayed(grounds));
        cutter.attribute(until, nagle(grounds));
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
    let first_write_ns =
        judged.and_then(|judged| judged.first_write_ns(stream, slice.end_ns - slice.start_ns));
    if let Some(first_write_ns) = first_write_ns {
        attribute_request_path(cutter);
        let program = program_attribution(side, Rule::App, grounds, evidence);
        cutter.attribute((slice.start_ns + first_write_ns).min(slice.end_ns), program);
        let grounds = Grounds::probable(Because::FillsSegment, Cause::program_of(side));
        let nagle = Attribution::new(Cause::Nagle, Owner::of(side), Rule::NagleWait, grounds, evidence);
        return cutter.attribute(slice.end_ns, nagle);
    }
    paused(cutter, grounds);
}

/// Returns the time of the row for the held ACK. A capture away from the sender sees the ACK earlier than the sender
/// does, and segments later. So where the program may have taken the wait's first part, the hold moves by one round
/// trip.
fn held_time(candidate: &Candidate, hold_ns: i64, program: ProgramTime, sender_rtt_ns: i64) -> Range<i64> {
    let is_shifted = program.max_ns > SOON_NS.get() && sender_rtt_ns >= AT_HOST_NS.get();
    let acked_ns = candidate.ack.time_ns + if is_shifted { sender_rtt_ns } else { 0 };
    acked_ns - hold_ns..acked_ns
}

/// Returns since when the freed segment had waited in its kernel for sure: since the small segment if a busy host
/// explains the program's time, else since the write, or the hold if both are about equal.
fn known_from(candidate: &Candidate, held_from: i64, program_max_ns: i64) -> i64 {
    match candidate.small.time_ns + program_max_ns {
        _ if program_max_ns <= SOON_NS.get() => candidate.small.time_ns,
        wrote if (wrote - held_from).abs() <= SOON_NS.get() => held_from,
        wrote => wrote,
    }
}

/// Returns the part of the program's time beyond a round trip. A wait is a hold and a round trip, and the program's
/// time may lie in the latter.
fn beyond_round_trip(program_ns: i64, paths: &Paths) -> i64 {
    let beyond = program_ns - paths.rtt_to(Side::Client) - paths.rtt_to(Side::Server);
    if beyond < NOISE_NS.get() { 0 } else { beyond }
}

/// Returns since when the first segment of a message had waited in its kernel for a held ACK, after another message of
/// its sender. A request needs a proof, as its latency begins there; for a push, a probable wait is enough.
pub fn held_since(wait: &Wait, side: Side, judged_senders: &[SenderVerdict], paths: &Paths) -> Option<At> {
    let Wait::Small(candidate) = wait else {
        return None;
    };
    let judged = judged_senders.get(candidate.sender_id as usize)?;
    let Ruling::Held {
        hold_ns,
        program,
        grounds,
    } = judged.rule_first(side, candidate)
    else {
        return None;
    };
    let since = if program.max_ns < NOISE_NS.get() {
        candidate.small
    } else {
        At {
            time_ns: candidate.ack.time_ns - hold_ns + beyond_round_trip(program.max_ns, paths),
            ..candidate.small
        }
    };
    let weakest = match side {
        Side::Client => Grade::Proven,
        Side::Server => Grade::Probable,
    };
    (grounds.grade <= weakest && since.time_ns < candidate.ack.time_ns).then_some(since)
}

/// Judges a wait by Nagle's algorithm at the start of a turn: after the peer's data came the ACK upon which this
/// segment left.
pub(super) fn judge_turn(cutter: &mut Cutter<'_>, since: At, candidate: &Candidate, ruling: Option<Ruling>) {
    attribute_turn_path(cutter, since);
    match ruling {
        Some(mut ruling @ (Ruling::Held { .. } | Ruling::Waited { .. })) => {
            if let Ruling::Held { grounds, .. } = &mut ruling
                && grounds.because == Because::ControlShorter
            {
                // pauses inside messages do not show the program's time to answer
                grounds.because = Because::FollowsAcks;
            }
            attribute(cutter, candidate, ruling);
        }
        _ => {
            let mut program = turn_attribution(cutter, cutter.slice.sender, 0);
            let cap = Grounds::probable(Because::SenderNotKnown, Cause::Nagle);
            program.grounds.at_most(cap);
            cutter.attribute(cutter.end_ns, program);
        }
    }
}

#[cfg(test)]
mod tests;
