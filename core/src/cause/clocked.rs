//! What a segment waited for that left after an ACK with nothing small outstanding: the congestion window, the line,
//! a held ACK, or nothing of the kind.

use super::{Cause, Cutter, Legs, Named, Owner, Rule, reach, row, think};
use crate::base::{At, Side};
use crate::exchange::Piece;
use crate::pool::HELD_NS;

/// Release by an ACK is seen within this of the leg, unless the path wavers more.
pub(super) const PROMPT_NS: i64 = 2_000_000;

/// A segment that left after the ACK of the one full segment in flight. Where a timeout had left a congestion window
/// of one segment, it waited for that ACK, and what the ACK took beyond the path its receiver held it. Any other
/// sender of Linux has a window of two and more, and lets small segments go behind full ones (tcp_minshall_check):
/// then a late ACK held nobody up.
pub(super) fn lone(
    cutter: &mut Cutter<'_>,
    ack: At,
    acked: At,
    collapsed: bool,
    piece: &Piece<'_>,
    legs: &Legs,
) {
    let side = piece.sender;
    let hold = ack.time_ns - acked.time_ns - legs.to(side.other());
    let named = clocked(ack, acked, piece.step.from, piece.step.to, side, legs);
    let program = named.cause == think(side);
    let held = !program && named.rule != Rule::Spacing && HELD_NS.contains(&hold);
    let evidence = [acked.frame, ack.frame, piece.step.to.frame];
    if held && collapsed {
        let rule = Rule::CwndDelayedAck;
        let waits = row(Cause::Cwnd, Owner::of(side), rule, 0.8, evidence);
        let delayed = Named {
            parent: Some(Cause::Cwnd),
            ..row(Cause::DelayedAck, Owner::of(side.other()), rule, 0.8, evidence)
        };
        cutter.cut(ack.time_ns - hold, waits);
        cutter.cut(ack.time_ns, delayed);
        return cutter.cut(cutter.end, waits);
    }
    if program || held {
        reach(cutter, piece, legs);
    }
    let named = if held {
        row(think(side), Owner::of(side), Rule::LookAlike, 0.6, evidence)
    } else {
        named
    };
    cutter.cut(cutter.end, named);
}

/// A segment that left after an ACK with nothing small outstanding: the congestion window's turn, or the
/// line's, or by chance.
pub(super) fn clocked(ack: At, acked: At, from: At, to: At, side: Side, legs: &Legs) -> Named {
    let evidence = [acked.frame, ack.frame, to.frame];
    let sender = legs.to(side);
    let release = to.time_ns - ack.time_ns;
    let line = |rule| row(Cause::Bandwidth, Owner::Network, rule, 0.7, evidence);
    if release - sender > PROMPT_NS {
        return row(
            think(side),
            Owner::of(side),
            Rule::App,
            0.7,
            [from.frame, to.frame, 0],
        );
    }
    if release < sender / 2 {
        return line(Rule::Spacing); // it was under way before that ACK reached the sender
    }
    let round = ack.time_ns - acked.time_ns;
    let receiver = legs.to(side.other());
    if round > receiver + (receiver / 2).max(PROMPT_NS) {
        return line(Rule::Queue); // its round trip grew: the bottleneck's queue was full
    }
    row(Cause::Cwnd, Owner::of(side), Rule::AckClocked, 0.7, evidence)
}
