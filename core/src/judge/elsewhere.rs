//! A held ACK on another connection: a proxy that waits for its backend, whose kernel waits for the proxy's ACK.
//!
//! Claims: the server's answer could not leave before a delayed ACK (RFC 1122 4.2.3.2) that this connection does not show.
//! Predicts: many answers take the timer's length, and end on a kernel's tick, wherever the requests fall.
//! Rivals: a program that sleeps for as long on the same tick (`program`). So it is never proven.

use super::grounds::Grounds;
use super::limits::{ENOUGH, HELD_ELSEWHERE_NS, LUCK};
use super::partition::{Cutter, row};
use super::path::Paths;
use super::program::{self, approach};
use super::sender::{Judged, lattice};
use super::vocabulary::{Because, Cause, Owner, Rule};
use crate::base::{At, Side};
use crate::evidence::Starts;
use crate::exchange::Piece;

/// Whether so many of a sender's messages waited for as long, and until a tick, that it is no luck; `rtt` is the path to
/// it and back.
pub(super) fn on_tick(starts: &Starts, rtt: i64) -> bool {
    let timed = starts.timed.iter();
    let ends: Vec<i64> = timed
        .filter(|(waited, _)| HELD_ELSEWHERE_NS.contains(waited - rtt))
        .map(|(_, end)| *end)
        .collect();
    ends.len() >= ENOUGH.get() && lattice(ends.into_iter()).is_some_and(|(_, luck)| luck <= LUCK.get())
}

/// The first segment after the peer spoke, after about the timer's length.
pub(super) fn turn(
    cutter: &mut Cutter<'_>,
    since: At,
    acked: u32,
    judged: Option<&Judged>,
    piece: &Piece<'_>,
    paths: &Paths,
) {
    let timed = judged.is_some_and(|judged| judged.waits_elsewhere);
    let waited = piece.step.to.time_ns - since.time_ns - paths.to(Side::Server);
    if timed && piece.sender == Side::Server && HELD_ELSEWHERE_NS.contains(waited) {
        approach(cutter, since, piece, paths);
        let grounds = Grounds::probable(Because::TimerOnTick, Cause::ServerThink);
        let evidence = [cutter.from_frame, cutter.to_frame, 0];
        cutter.cut(
            piece.end,
            row(
                Cause::DelayedAck,
                Owner::Server,
                Rule::Elsewhere,
                grounds,
                evidence,
            ),
        );
    } else {
        program::turn(cutter, since, acked, piece, paths);
    }
}
