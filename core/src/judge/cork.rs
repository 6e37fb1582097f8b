//! A cork: the sending socket holds back what is smaller than a segment (TCP_CORK, MSG_MORE).
//!
//! Claims: the program had written, and its kernel waited for the cork's timer or for an ACK.
//! Predicts: waits of the kernel's probe timer (200 ms, up to three ticks late), never shorter ones, on the sender's
//! tick; or a segment that was not pushed and left with the ACK of the small one before it.
//! Rivals: a program that sleeps for as long, on the same tick (`program`). So a cork is never proven.

use super::grounds::Grounds;
use super::limits::{CORK_NS, ENOUGH, LUCK, PROMPT_NS, STRAY_PART};
use super::partition::{Cutter, row};
use super::path::{Paths, reach};
use super::program::{approach, think, thought};
use super::sender::{Judged, lattice};
use super::vocabulary::{Because, Cause, Owner, Rule};
use crate::base::At;
use crate::evidence::Starts;
use crate::exchange::Piece;

/// Whether messages of this sender may wait for the timer, and whether all of them do; `rtt` is the path to it and back.
pub(super) fn corked(starts: &Starts, rtt: i64) -> (bool, bool) {
    let held = || {
        let late = starts.late.iter();
        late.filter(|(waited, _)| CORK_NS.contains(waited - rtt))
    };
    let count = held().count();
    if count < ENOUGH.get() {
        return (count > 0, false); // too few to show a tick
    }
    let timed = lattice(held().map(|(_, end)| *end)).is_some_and(|(_, luck)| luck <= LUCK.get());
    let sooner = starts
        .late
        .iter()
        .filter(|(waited, _)| waited - rtt < CORK_NS.least.get());
    let prompt = starts.prompt + sooner.count() as u64;
    (timed, timed && prompt * STRAY_PART.get() as u64 <= count as u64)
}

/// A small first segment of a message after about the probe timer.
pub(super) fn late_turn(
    cutter: &mut Cutter<'_>,
    since: At,
    judged: Option<&Judged>,
    piece: &Piece<'_>,
    paths: &Paths,
) {
    let side = piece.sender;
    approach(cutter, since, piece, paths);
    let waited = piece.step.to.time_ns - since.time_ns - paths.to(side);
    let judged = judged.filter(|_| CORK_NS.contains(waited));
    let rest = if judged.is_some_and(|judged| judged.corked) {
        // a program that sleeps on the same tick would look alike
        let grounds = Grounds::probable(Because::TimerOnTick, think(side));
        let evidence = [cutter.from_frame, cutter.to_frame, 0];
        row(Cause::Cork, Owner::of(side), Rule::CorkPool, grounds, evidence)
    } else {
        let mut named = thought(cutter, side, paths, 0);
        if judged.is_some_and(|judged| judged.timed) {
            let most = Grounds::probable(Because::TimerLength, Cause::Cork);
            named.grounds.at_most(most);
        }
        named
    };
    cutter.cut(piece.end, rest);
}

/// A small tail behind full segments, nothing in flight, no trigger, the probe timer's length.
pub(super) fn tail(cutter: &mut Cutter<'_>, piece: &Piece<'_>) {
    let (side, ends) = (piece.sender, [piece.from_frame, piece.to_frame, 0]);
    let grounds = Grounds::probable(Because::TimerLength, think(side));
    cutter.cut(
        piece.end,
        row(Cause::Cork, Owner::of(side), Rule::CorkTimer, grounds, ends),
    );
}

/// Neither full nor pushed, after the ACK of the small one before it: its program had said that there is more.
pub(super) fn unfinished(cutter: &mut Cutter<'_>, small: At, ack: At, piece: &Piece<'_>, paths: &Paths) {
    let (side, to) = (piece.sender, piece.step.to);
    let rest = if to.time_ns - ack.time_ns - paths.to(side) <= PROMPT_NS.get() {
        let evidence = [small.frame, ack.frame, to.frame];
        let grounds = Grounds::probable(Because::NotPushed, Cause::Nagle);
        row(Cause::Cork, Owner::of(side), Rule::CorkAck, grounds, evidence)
    } else {
        reach(cutter, piece, paths);
        let ends = [piece.from_frame, piece.to_frame, 0];
        let grounds = Grounds::probable(Because::LateAfterAck, Cause::Cork);
        row(think(side), Owner::of(side), Rule::App, grounds, ends)
    };
    cutter.cut(piece.end, rest);
}
