//! The program: it had not produced the next byte, and nothing held it back.
//!
//! Claims: the program took the time from the peer's last byte to its answer, less the path; or it paused inside a
//! message.
//! Predicts: the wait ends with no ACK, window update or timer, and by its timestamp the segment left when it passed,
//! less the path.
//! Rivals: a queue on the path (`path`), the kernel's pacing (`line`), a cork (`cork`), Nagle's algorithm (`nagle`).

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter, EvidenceFrames};
use super::path::attribute_request_path;
use super::vocabulary::{Because, Cause, Owner, Rule};
use crate::base::Side;

/// Returns an attribution to the program of `side`.
#[inline(always)]
pub(super) fn program_attribution(
    side: Side,
    rule: Rule,
    grounds: Grounds,
    evidence: EvidenceFrames,
) -> Attribution {
    Attribution::new(Cause::program_of(side), Owner::of(side), rule, grounds, evidence)
}

/// Attributes the time before a further segment of a message to the program.
#[inline(always)]
pub(super) fn paused(cutter: &mut Cutter<'_>, grounds: Grounds) {
    attribute_request_path(cutter);
    let (slice, ends) = (cutter.slice, cutter.end_frames());
    cutter.attribute(
        slice.end_ns,
        program_attribution(slice.sender, Rule::App, grounds, ends),
    );
}

/// Attributes the time from an answer's last byte to the FIN that ends it: the program closed late. Away from its host
/// the FIN may be a retransmission.
pub(super) fn closed_late(cutter: &mut Cutter<'_>) {
    let (slice, ends) = (cutter.slice, cutter.end_frames());
    let grounds = if cutter.paths.is_away(slice.sender) {
        Grounds::probable(Because::CopyMayBeLost, Cause::Rto)
    } else {
        Grounds::proven(Because::NothingOpen)
    };
    cutter.attribute(
        slice.end_ns,
        program_attribution(slice.sender, Rule::LateClose, grounds, ends),
    );
}

/// Attributes the time between two writes: a segment right after one that was not full.
#[inline(always)]
pub(super) fn wrote_again(cutter: &mut Cutter<'_>) {
    let (slice, ends) = (cutter.slice, cutter.end_frames());
    let grounds = Grounds::proven(Because::NothingOpen);
    cutter.attribute(
        slice.end_ns,
        program_attribution(slice.sender, Rule::WriteGap, grounds, ends),
    );
}
