//! The receive window: the peer had no room for the next segment.
//!
//! Claims: the segment was ready and did not fit before a packet of the peer that moved the window's edge.
//! Predicts: it ends beyond the edge that was announced before that packet, and leaves with it.
//! Rivals: none, where window scaling is known. (No capture shows whether the program had written the bytes yet.)

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::vocabulary::{Because, Cause, Owner, Rule};
use crate::base::At;

/// Judges a segment that did not fit before the packet `opened`. `was_zero`: the window was 0 meanwhile.
pub(super) fn opened(cutter: &mut Cutter<'_>, opened: At, was_zero: bool) {
    let slice = cutter.slice;
    let cause = if was_zero {
        Cause::ZeroWindow
    } else {
        Cause::ReceiveWindow
    };
    let evidence = [slice.step.from.frame, opened.frame, slice.step.to.frame];
    let (owner, grounds) = (
        Owner::of(slice.sender.other()),
        Grounds::proven(Because::DidNotFit),
    );
    cutter.attribute(
        slice.end_ns,
        Attribution::new(cause, owner, Rule::Window, grounds, evidence),
    );
}

/// Judges a segment that fills the window to the byte: the room was less than a full segment, so its sender waited for
/// its probe timer.
pub(super) fn filled(cutter: &mut Cutter<'_>, since: At) {
    let slice = cutter.slice;
    let evidence = [slice.step.from.frame, since.frame, slice.step.to.frame];
    let owner = Owner::of(slice.sender.other());
    let grounds = Grounds::probable(Because::FillsWindow, Cause::program_of(slice.sender));
    cutter.attribute(
        slice.end_ns,
        Attribution::new(Cause::ReceiveWindow, owner, Rule::Window, grounds, evidence),
    );
}
