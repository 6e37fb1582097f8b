//! The line: bytes leave at its rate, or at that of the sender's pacing.
//!
//! Claims: the next segment was ready, and the line was busy with the ones before it.
//! Predicts: full segments right behind each other, or at an even pace.
//! Rivals: pacing (SO_MAX_PACING_RATE, BBR), a program that writes at an even pace (`program`).

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rule};

/// Judges a segment right behind a full one.
#[inline(always)]
pub(super) fn burst(cutter: &mut Cutter<'_>) {
    let grounds = Grounds::probable(Because::FullSegments, Hypothesis::Pacing);
    attribute_to_line(cutter, Rule::Burst, grounds);
}

/// Judges a segment at an even pace.
#[inline(always)]
pub(super) fn spaced(cutter: &mut Cutter<'_>) {
    let grounds = Grounds::probable(Because::EvenPace, Hypothesis::Pacing);
    attribute_to_line(cutter, Rule::Spacing, grounds);
}

#[inline(always)]
fn attribute_to_line(cutter: &mut Cutter<'_>, rule: Rule, grounds: Grounds) {
    let ends = cutter.ends();
    cutter.attribute(
        cutter.slice.end,
        Attribution::new(Cause::Bandwidth, Owner::Network, rule, grounds, ends),
    );
}
