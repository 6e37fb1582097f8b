//! What the capture cannot show.
//!
//! Claims nothing; gives the reason why no cause can be given.
//! Predicts: bytes that were acknowledged and are not in the capture, time that no step covers, more evidence than is kept.
//! Rivals: everything.

use super::grounds::Grounds;
use super::partition::{Cutter, row};
use super::vocabulary::{Because, Cause, Owner, Rule};
use crate::exchange::TimeSlice;

/// The capture lacks frames here.
pub(super) fn hole(cutter: &mut Cutter<'_>, piece: &TimeSlice<'_>) {
    let grounds = Grounds::proven(Because::FramesMissing);
    cut(cutter, Cause::CaptureGap, Rule::FramesMissing, grounds, piece);
}

/// There are too many senders, or too much evidence, to judge this one.
pub(super) fn unjudged(cutter: &mut Cutter<'_>, piece: &TimeSlice<'_>) {
    let grounds = Grounds::unknown(Because::NotRemembered);
    cut(cutter, Cause::Unknown, Rule::NoPool, grounds, piece);
}

fn cut(cutter: &mut Cutter<'_>, cause: Cause, rule: Rule, grounds: Grounds, piece: &TimeSlice<'_>) {
    let ends = [piece.from_frame, piece.to_frame, 0];
    cutter.cut(piece.end, row(cause, Owner::Capture, rule, grounds, ends));
}
