//! One segment as a row of facts, and who takes it.

use crate::base::At;
use crate::facts::{Facts, Flow};
use crate::observe::Release;
use crate::segment::Segment;
use crate::seq::unwrap_near;

/// One row of `events`, before it becomes columns.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub at: At,
    pub stream: u32,
    pub from_client: bool,
    /// From the smaller endpoint; unlike the roles this never changes.
    pub from_low: bool,
    pub segment: &'a Segment<'a>,
    pub facts: &'a Facts,
    /// SACK blocks, relative and unwrapped.
    pub sack: Option<&'a [(i64, i64)]>,
    pub time_delta: i64,
    pub hold: Option<i64>,
    pub release: &'a Release,
}

/// Takes the rows of facts.
pub trait Rows {
    fn event(&mut self, event: &Event<'_>);
}

/// SACK blocks relative to the acknowledged direction, unwrapped; none without the option.
pub(super) fn relative_sack(segment: &Segment<'_>, rev: &Flow) -> Option<Box<[(i64, i64)]>> {
    if segment.options.sack.count == 0 {
        return None;
    }
    let blocks = segment.options.sack.blocks();
    let base = rev.marks.base.unwrap_or(0);
    let relative = |n: u32| unwrap_near(n.wrapping_sub(base), rev.marks.high);
    Some(
        blocks
            .iter()
            .map(|(left, right)| (relative(*left), relative(*right)))
            .collect(),
    )
}
