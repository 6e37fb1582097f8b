//! Time without a cause: bytes acknowledged but not in the capture, or more senders and evidence than are stored. Every
//! cause is a rival.

use super::grounds::Grounds;
use super::partition::{Cutter, row};
use super::vocabulary::{Because, Cause, Owner, Rule};
use crate::exchange::TimeSlice;

/// Judges time in which the capture lacks frames.
pub(super) fn hole(cutter: &mut Cutter<'_>, slice: &TimeSlice<'_>) {
    let grounds = Grounds::proven(Because::FramesMissing);
    cut(cutter, Cause::CaptureGap, Rule::FramesMissing, grounds, slice);
}

/// Judges a wait of a sender beyond the bound on senders.
pub(super) fn unjudged(cutter: &mut Cutter<'_>, slice: &TimeSlice<'_>) {
    let grounds = Grounds::unknown(Because::NotRemembered);
    cut(cutter, Cause::Unknown, Rule::NoPool, grounds, slice);
}

fn cut(cutter: &mut Cutter<'_>, cause: Cause, rule: Rule, grounds: Grounds, slice: &TimeSlice<'_>) {
    let ends = cutter.ends();
    cutter.cut(slice.end, row(cause, Owner::Capture, rule, grounds, ends));
}
