//! The line: bytes leave at its rate, or at that of the sender's pacing.
//!
//! Claims: the next segment was ready, and the line was busy with the ones before it.
//! Predicts: full segments right behind each other, or at an even pace.
//! Rivals: pacing (SO_MAX_PACING_RATE, BBR), a program that writes at an even pace (`program`).

use super::grounds::Grounds;
use super::partition::{Cutter, row};
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rule};
use crate::exchange::TimeSlice;

/// Judges a segment right behind a full one.
#[inline(always)]
pub(super) fn burst(cutter: &mut Cutter<'_>, slice: &TimeSlice<'_>) {
    let grounds = Grounds::probable(Because::FullSegments, Hypothesis::Pacing);
    cut(cutter, Rule::Burst, grounds, slice);
}

/// Judges a segment at an even pace.
#[inline(always)]
pub(super) fn spaced(cutter: &mut Cutter<'_>, slice: &TimeSlice<'_>) {
    let grounds = Grounds::probable(Because::EvenPace, Hypothesis::Pacing);
    cut(cutter, Rule::Spacing, grounds, slice);
}

#[inline(always)]
fn cut(cutter: &mut Cutter<'_>, rule: Rule, grounds: Grounds, slice: &TimeSlice<'_>) {
    let ends = cutter.ends();
    cutter.cut(
        slice.end,
        row(Cause::Bandwidth, Owner::Network, rule, grounds, ends),
    );
}
