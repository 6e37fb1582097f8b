//! What can be wrong with a block of pcapng, as issues that name its place and, of a packet, its frame.

use super::packet;
use crate::capture::Position;
use crate::issue::{Issue, Kind};

/// A block carries its length at both ends.
#[inline(always)]
pub(super) fn same_length(
    total: u32,
    end: u32,
    begin: u64,
    place: &Position,
    frame: bool,
) -> Result<(), Box<Issue>> {
    if total == end {
        Ok(())
    } else {
        other_length(total, end, begin, place, frame)
    }
}

#[cold]
fn other_length(total: u32, end: u32, begin: u64, place: &Position, frame: bool) -> Result<(), Box<Issue>> {
    if total.checked_next_multiple_of(4) == Some(end) {
        return Ok(());
    }
    let issue = Issue::new(
        Kind::Damaged,
        "pcapng",
        "lengths at the two ends of a block differ",
    );
    let issue = issue.at(begin).detail(format!("{total} and {end}"));
    Err(Box::new(framed(issue, place, frame)))
}

#[cold]
pub(super) fn damaged(
    place: &Position,
    kind: u32,
    reason: &'static str,
    needed: u32,
    had: u32,
) -> Box<Issue> {
    let issue = Issue::new(Kind::Damaged, "pcapng", reason).at(place.offset);
    let issue = issue
        .lengths(needed.into(), had.into())
        .detail(format!("block type {kind:#x}"));
    Box::new(framed(issue, place, packet::holds(kind)))
}

/// Names the frame that would have been the next one, where the block is a frame.
pub(super) fn framed(issue: Issue, place: &Position, frame: bool) -> Issue {
    if frame {
        issue.in_frame(place.frames.saturating_add(1))
    } else {
        issue
    }
}
