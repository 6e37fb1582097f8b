//! Repairs: a segment was lost, or overtaken, and what waited for it waited for its repeat.
//!
//! Claims: the bytes that ended the wait are a repeat, or fill a hole; which timer or ACK sent them.
//! Predicts: the same bytes twice, or a hole that closes; the repeat comes with duplicate or selective ACKs, two round
//! trips after a tail, or a timer after anything.
//! Rivals: a late first copy (the receiver's DSACK says so), reordering, a capture that lacks the first copy.

use super::Context;
use super::partition::{Cutter, row};
use super::program::paused;
use super::sender::Verdict;
use super::vocabulary::{Cause, Owner, Rule};
use crate::base::At;
use crate::exchange::Piece;
use crate::observe::Repair;

/// A repeat, or what fills a hole.
pub(super) fn repeat(
    cutter: &mut Cutter<'_>,
    how: Repair,
    first: Option<At>,
    filled: Option<At>,
    piece: &Piece<'_>,
    known: &Context<'_>,
) {
    let (paths, side) = (known.paths, piece.sender);
    let (from, to) = (piece.step.from, piece.step.to);
    if known.is_needless(to.frame) {
        let (cause, rule) = match how {
            Repair::Fast | Repair::Reordered => (Cause::Reordering, Rule::Overtaken),
            // what looked lost was late, or its ACK was lost or late
            _ => (Cause::Queueing, Rule::NotLost),
        };
        let ends = [piece.from_frame, piece.to_frame, 0];
        return cutter.cut(piece.end, row(cause, Owner::Network, rule, 0.9, ends));
    }
    let (cause, rule, confidence) = match (how, first) {
        (Repair::Fast, None) if filled.is_none() => (Cause::FastRetransmit, Rule::CopyNotSeen, 0.7),
        (Repair::Fast, _) => (Cause::FastRetransmit, Rule::SackOrDuplicateAcks, 0.9),
        (Repair::TailProbe, Some(_)) => (Cause::Tlp, Rule::TailProbe, 0.9),
        (Repair::Timeout, Some(_)) => (Cause::Rto, Rule::Timeout, 0.9),
        // bytes that were missing came, long after they were missed
        (Repair::TailProbe, None) if filled.is_some() => (Cause::Tlp, Rule::HoleFilled, 0.8),
        (Repair::Timeout, None) if filled.is_some() => (Cause::Rto, Rule::HoleFilled, 0.8),
        // only the gap in the sender's IP identifications tells
        (Repair::TailProbe, None) => (Cause::Tlp, Rule::IpIdGap, 0.7),
        (Repair::Timeout, None) => (Cause::Rto, Rule::IpIdGap, 0.7),
        (Repair::Reordered, _) => (Cause::Reordering, Rule::Overtaken, 0.8),
        (Repair::Syn, _) => (Cause::SynRto, Rule::HandshakeRepeated, 0.95),
    };
    let evidence = [first.map_or(from.frame, |f| f.frame), to.frame, 0];
    let by_timer = matches!(how, Repair::TailProbe | Repair::Timeout);
    let (owner, confidence) = if by_timer && first.is_some() && paths.beside(side.other()) {
        (Owner::of(side.other()), 0.8) // the first copy had come as far as its host
    } else {
        (Owner::Network, confidence)
    };
    cutter.cut(piece.end, row(cause, owner, rule, confidence, evidence));
}

/// Small over unacknowledged small, as late as a tail loss probe: it was one where Nagle's algorithm acts, which a probe
/// passes by.
pub(super) fn probe(cutter: &mut Cutter<'_>, small: At, pool: u32, piece: &Piece<'_>, known: &Context<'_>) {
    let judged = known.pools.get(pool as usize);
    match judged.map_or(Verdict::Open, |judged| judged.verdict_on(known.stream)) {
        Verdict::Proven => {
            let evidence = [small.frame, piece.step.to.frame, 0];
            cutter.cut(
                piece.end,
                row(Cause::Tlp, Owner::Network, Rule::TailProbe, 0.9, evidence),
            );
        }
        Verdict::Open => paused(cutter, 0.6, piece, known.paths),
        _ => paused(cutter, 0.9, piece, known.paths),
    }
}
