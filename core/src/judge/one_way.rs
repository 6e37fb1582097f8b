//! A capture of one direction: a gap that Nagle's wait for a held ACK may explain.
//!
//! Claims: the gap is as long as a delayed ACK, and a packet of the peer came in it. Nothing is more than suspected.
//! Predicts: the echoed timestamp moves inside the gap by a hold.
//! Rivals: a program's pause of that length, which only the other direction could exclude.

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::vocabulary::{Because, Cause, Owner, Rule};
use crate::base::At;

/// Judges a gap as long as a delayed ACK. `held_ack` is this side's late ACK if the receiver was captured, with a round
/// trip on either side of it; None if the sender was.
pub(super) fn suspected(cutter: &mut Cutter<'_>, held_ack: Option<At>) {
    let (slice, sender) = (cutter.slice, cutter.slice.sender);
    let middle = held_ack.map_or(0, |ack| ack.frame);
    let evidence = [slice.from_frame, middle, slice.to_frame];
    let grounds = Grounds::suspected(Because::OneDirection, Cause::program_of(sender));
    let one_way = |cause, owner| Attribution::new(cause, owner, Rule::OneWay, grounds, evidence);
    let delayed = Attribution {
        parent: Some(Cause::Nagle),
        ..one_way(Cause::DelayedAck, Owner::of(sender.other()))
    };
    if let Some(ack) = held_ack {
        let round = cutter.end_ns.saturating_sub(ack.time_ns);
        cutter.attribute(
            cutter.attributed_until_ns.saturating_add(round),
            one_way(Cause::Network, Owner::Network),
        );
        cutter.attribute(ack.time_ns, delayed);
        cutter.attribute(cutter.end_ns, one_way(Cause::Nagle, Owner::of(sender)));
    } else {
        cutter.attribute(cutter.end_ns, delayed);
    }
}
