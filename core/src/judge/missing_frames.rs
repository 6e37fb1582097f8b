//! Time without a cause: bytes acknowledged but not in the capture, or more senders and evidence than are stored. Every
//! cause is a rival.

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::vocabulary::{Because, Cause, Owner, Rule};

/// Judges time in which the capture lacks frames.
pub(super) fn hole(cutter: &mut Cutter<'_>) {
    let grounds = Grounds::proven(Because::FramesMissing);
    attribute_to_capture(cutter, Cause::CaptureGap, Rule::FramesMissing, grounds);
}

/// Judges a wait of a sender beyond the bound on senders.
pub(super) fn unjudged(cutter: &mut Cutter<'_>) {
    let grounds = Grounds::unknown(Because::NotRemembered);
    attribute_to_capture(cutter, Cause::Unknown, Rule::NoPool, grounds);
}

fn attribute_to_capture(cutter: &mut Cutter<'_>, cause: Cause, rule: Rule, grounds: Grounds) {
    let attribution = Attribution::new(cause, Owner::Capture, rule, grounds, cutter.end_frames());
    cutter.attribute(cutter.slice.end_ns, attribution);
}
