//! Cuts a piece of an exchange's time into rows, each of which starts where the one before it ends.

use super::grounds::Grounds;
use super::path::Paths;
use super::vocabulary::{Cause, Owner, Rule};
use crate::exchange::TimeSlice;

/// Up to three frames that a user can look up in Wireshark; 0 is none.
pub type EvidenceFrames = [u64; 3];

/// A piece of time with its cause. Times in ns since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    pub start_ns: i64,
    pub end_ns: i64,
    pub cause: Cause,
    /// The cause that this one is a part of: of a delayed ACK, Nagle's algorithm.
    pub parent: Option<Cause>,
    pub owner: Owner,
    /// Frames around the time.
    pub from_frame: u64,
    pub to_frame: u64,
    pub evidence: EvidenceFrames,
    pub rule: Rule,
    pub grounds: Grounds,
}

impl Row {
    /// Returns the measured precision of rows with this rule and grade.
    pub fn confidence(&self) -> f64 {
        self.grounds.confidence(self.rule)
    }

    /// Exchanges client and server: in an exchange that the accepting side requests, that side is the client.
    #[cold]
    pub fn with_sides_swapped(&self) -> Row {
        Row {
            cause: self.cause.with_sides_swapped(),
            parent: self.parent.map(Cause::with_sides_swapped),
            owner: self.owner.with_sides_swapped(),
            grounds: self.grounds.with_sides_swapped(),
            ..*self
        }
    }
}

/// A row without its time and the frames around it.
#[derive(Clone, Copy)]
pub(super) struct Attribution {
    pub(super) cause: Cause,
    pub(super) parent: Option<Cause>,
    pub(super) owner: Owner,
    pub(super) rule: Rule,
    pub(super) grounds: Grounds,
    pub(super) evidence: EvidenceFrames,
}

impl Attribution {
    #[inline(always)]
    pub(super) fn new(
        cause: Cause,
        owner: Owner,
        rule: Rule,
        grounds: Grounds,
        evidence: EvidenceFrames,
    ) -> Attribution {
        Attribution {
            cause,
            parent: None,
            owner,
            rule,
            grounds,
            evidence,
        }
    }
}

/// A piece of time that is being attributed, from its start on.
pub(super) struct Cutter<'a> {
    pub(super) rows: &'a mut Vec<Row>,
    pub(super) slice: &'a TimeSlice<'a>,
    pub(super) paths: &'a Paths,
    /// End of the attributed part.
    pub(super) attributed_until_ns: i64,
    pub(super) end_ns: i64,
    pub(super) from_frame: u64,
    pub(super) to_frame: u64,
}

impl<'a> Cutter<'a> {
    #[inline(always)]
    pub(super) fn new(slice: &'a TimeSlice<'a>, paths: &'a Paths, rows: &'a mut Vec<Row>) -> Self {
        Cutter {
            rows,
            slice,
            paths,
            attributed_until_ns: slice.start_ns,
            end_ns: slice.end_ns,
            from_frame: slice.from_frame,
            to_frame: slice.to_frame,
        }
    }

    /// Returns the frames around the time, as evidence.
    #[inline(always)]
    pub(super) fn end_frames(&self) -> EvidenceFrames {
        [self.from_frame, self.to_frame, 0]
    }

    /// Attributes the time up to `until`, if it is not attributed yet.
    #[inline(always)]
    pub(super) fn attribute(&mut self, until: i64, attribution: Attribution) {
        let until = until.min(self.end_ns);
        if until <= self.attributed_until_ns {
            return;
        }
        let start = std::mem::replace(&mut self.attributed_until_ns, until);
        let Attribution {
            cause,
            parent,
            owner,
            rule,
            grounds,
            evidence,
        } = attribution;
        match self.rows.last_mut() {
            // adjacent rows of one rule are merged, but for stalls, each of which has its own evidence
            Some(last)
                if last.end_ns == start
                    && (last.cause, last.parent, last.owner, last.rule) == (cause, parent, owner, rule)
                    && !matches!(cause, Cause::Nagle | Cause::DelayedAck) =>
            {
                last.end_ns = until;
                last.to_frame = self.to_frame;
                last.grounds = last.grounds.weaker(grounds);
                if let Some(slot) = last.evidence.last_mut() {
                    *slot = self.to_frame;
                }
            }
            _ => self.rows.push(Row {
                start_ns: start,
                end_ns: until,
                cause,
                parent,
                owner,
                from_frame: self.from_frame,
                to_frame: self.to_frame,
                evidence,
                rule,
                grounds,
            }),
        }
    }
}

/// Pieces of time for tests, from frame 1 at 0 ns to frame 9.
#[cfg(test)]
pub(super) mod slices {
    use crate::base::{At, Side};
    use crate::exchange::TimeSlice;
    use crate::observe::{Step, Wait};

    pub(in crate::judge) fn step(end: i64) -> Step {
        let at = |frame, time_ns| At { frame, time_ns };
        let (from, to, wait) = (at(1, 0), at(9, end), Wait::App);
        Step { from, to, wait }
    }

    pub(in crate::judge) fn slice(step: &Step, sender: Side) -> TimeSlice<'_> {
        TimeSlice {
            start_ns: 0,
            end_ns: step.to.time_ns,
            from_frame: 1,
            to_frame: 9,
            request_at_ns: 0,
            sender,
            step,
        }
    }
}
