//! What the capture cannot show.
//!
//! Claims: nothing; says why nothing can be said.
//! Predicts: bytes that were acknowledged and are not in the capture, time that no step covers, more evidence than is kept.
//! Rivals: everything.

use super::partition::{Cutter, row};
use super::vocabulary::{Cause, Owner, Rule};
use crate::exchange::Piece;

/// The capture lacks frames here.
pub(super) fn hole(cutter: &mut Cutter<'_>, piece: &Piece<'_>) {
    cut(cutter, Cause::CaptureGap, Rule::FramesMissing, 0.9, piece);
}

/// There are too many senders, or too much evidence, to judge this one.
pub(super) fn unjudged(cutter: &mut Cutter<'_>, piece: &Piece<'_>) {
    cut(cutter, Cause::Unknown, Rule::NoPool, 0.3, piece);
}

fn cut(cutter: &mut Cutter<'_>, cause: Cause, rule: Rule, confidence: f64, piece: &Piece<'_>) {
    let ends = [piece.from_frame, piece.to_frame, 0];
    cutter.cut(piece.end, row(cause, Owner::Capture, rule, confidence, ends));
}
