//! The line: bytes leave at its rate, or at that of the sender's pacing.
//!
//! Claims: the next segment was ready, and the line was busy with the ones before it.
//! Predicts: full segments right after each other, or at an even pace.
//! Rivals: pacing (SO_MAX_PACING_RATE, BBR), a program that writes at an even pace (`program`).

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rule};

/// Judges a segment right after a full one, or at an even pace, as `rule` and `because` name it.
#[inline(always)]
pub(super) fn judge(cutter: &mut Cutter<'_>, rule: Rule, because: Because) {
    let grounds = Grounds::probable(because, Hypothesis::Pacing);
    let frames = cutter.end_frames();
    let bandwidth = Attribution::new(Cause::Bandwidth, Owner::Network, rule, grounds, frames);
    cutter.attribute(cutter.slice.end_ns, bandwidth);
}
