//! One segment as a row of `events`, and the trait that receives it.

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
    /// Sent by the smaller endpoint. Unlike the roles this never changes.
    pub from_low: bool,
    pub segment: &'a Segment<'a>,
    pub facts: &'a Facts,
    /// SACK blocks, relative and unwrapped; None without the option.
    pub sack: Option<&'a [(i64, i64)]>,
    /// Time since the stream's previous packet, in ns.
    pub time_delta_ns: i64,
    /// How long an ACK was delayed beyond the best RTT, in ns; None if it measures no RTT.
    pub hold_ns: Option<i64>,
    pub release: &'a Release,
}

/// Receives the rows of `events`.
pub trait Rows {
    fn event(&mut self, event: &Event<'_>);
}

/// SACK blocks relative to the acknowledged direction, unwrapped; None without the option.
pub(super) fn relative_sack(segment: &Segment<'_>, rev: &Flow) -> Option<Box<[(i64, i64)]>> {
    if segment.options.sack.count == 0 {
        return None;
    }
    let blocks = segment.options.sack.blocks();
    let base = rev.marks.base.unwrap_or(0);
    let relative = |n: u32| unwrap_near(n.wrapping_sub(base), rev.marks.highest_seq);
    Some(
        blocks
            .iter()
            .map(|(left, right)| (relative(*left), relative(*right)))
            .collect(),
    )
}
