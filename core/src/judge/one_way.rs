//! A capture of one direction: a gap that Nagle's wait for a held ACK may explain.
//!
//! Claims: the gap is as long as a delayed ACK, and a packet of the peer came in it. Nothing is more than suspected.
//! Predicts: the echoed timestamp moves inside the gap by a hold.
//! Rivals: a program's pause of that length, which only the other direction could exclude.

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter, row};
use super::program::think;
use super::vocabulary::{Because, Cause, Owner, Rule};
use crate::base::At;
use crate::exchange::TimeSlice;

/// Judges such a gap. `held` is this side's late ACK if the receiver was captured, with a round trip on either side of
/// it; None if the sender was.
pub(super) fn suspected(cutter: &mut Cutter<'_>, held: Option<At>, slice: &TimeSlice<'_>) {
    let sender = slice.sender;
    let middle = held.map_or(0, |ack| ack.frame);
    let evidence = [slice.from_frame, middle, slice.to_frame];
    let grounds = Grounds::suspected(Because::OneDirection, think(sender));
    let row_of = |cause, owner| row(cause, owner, Rule::OneWay, grounds, evidence);
    let delayed = Attribution {
        parent: Some(Cause::Nagle),
        ..row_of(Cause::DelayedAck, Owner::of(sender.other()))
    };
    if let Some(ack) = held {
        let round = cutter.end.saturating_sub(ack.time_ns);
        cutter.cut(
            cutter.at.saturating_add(round),
            row_of(Cause::Network, Owner::Network),
        );
        cutter.cut(ack.time_ns, delayed);
        cutter.cut(cutter.end, row_of(Cause::Nagle, Owner::of(sender)));
    } else {
        cutter.cut(cutter.end, delayed);
    }
}
