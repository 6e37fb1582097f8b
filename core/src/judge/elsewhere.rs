//! A held ACK on another connection: a proxy that waits for its backend, whose kernel waits for the proxy's ACK.
//!
//! Claims: the server's answer could not leave before a delayed ACK (RFC 1122 4.2.3.2) that this connection does not show.
//! Predicts: many answers take the timer's length, and end on a kernel's tick, wherever the requests fall.
//! Rivals: a program that sleeps for as long on the same tick (`program`). So it is never proven.

use super::grounds::Grounds;
use super::partition::{Cutter, row};
use super::path::Paths;
use super::program::{self, approach};
use super::sender::{Judged, Tick, lattice};
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rule};
use crate::base::{At, Side};
use crate::evidence::Starts;
use crate::exchange::Piece;
use crate::limits::{ENOUGH, HELD_ELSEWHERE_NS, LUCK, MOST_ELSEWHERE_NS};

/// The median wait and the tick, where enough of a sender's messages waited about as long as a held ACK, and so many until a
/// tick that it is no luck; `rtt` is the path to it and back.
pub(super) fn on_tick(starts: &Starts, rtt: i64) -> Option<(i64, Tick)> {
    let timed = starts.timed.iter();
    let (mut waits, ends): (Vec<i64>, Vec<i64>) = timed
        .map(|(waited, end)| (waited - rtt, end))
        .filter(|(waited, _)| HELD_ELSEWHERE_NS.contains(*waited))
        .unzip();
    if waits.len() < ENOUGH.get() {
        return None;
    }
    let middle = waits.len() / 2;
    let (_, middle, _) = waits.select_nth_unstable(middle);
    let tick = lattice(ends.into_iter()).filter(|tick| tick.luck <= LUCK.get());
    Some(*middle).zip(tick)
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
    let waits = judged.and_then(|judged| judged.waits_elsewhere);
    let near = paths
        .behind(Side::Server, piece.step.to.time_ns - since.time_ns)
        .is_none();
    let Some((usual, tick)) = waits.filter(|_| piece.sender == Side::Server && near) else {
        return program::turn(cutter, since, acked, piece, paths);
    };
    let to = piece.step.to.time_ns;
    let waited = to - since.time_ns - paths.to(Side::Server);
    let longer = waited > HELD_ELSEWHERE_NS.most.get();
    if waited < HELD_ELSEWHERE_NS.least.get() || waited > MOST_ELSEWHERE_NS.get() {
        return program::turn(cutter, since, acked, piece, paths);
    }
    approach(cutter, since, piece, paths);
    let evidence = [cutter.from_frame, cutter.to_frame, 0];
    if longer {
        // its program took its time before that wait, or instead of it
        let work = Grounds::probable(Because::TimerLength, Hypothesis::OtherPath);
        let on_tick = tick.has(to);
        let until = if on_tick { piece.end - usual } else { piece.end };
        let think = row(Cause::ServerThink, Owner::Server, Rule::Turn, work, evidence);
        cutter.cut(until, think);
    }
    let grounds = Grounds::probable(Because::TimerOnTick, Cause::ServerThink);
    let held = row(
        Cause::DelayedAck,
        Owner::Server,
        Rule::Elsewhere,
        grounds,
        evidence,
    );
    cutter.cut(piece.end, held);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// So many answers that took 43 ms each, until a tick of 4 ms.
    fn answers(count: usize) -> Starts {
        let ends = [0, 52, 96, 148, 200, 252, 296, 348, 400, 452];
        Starts {
            timed: ends.iter().take(count).map(|end| (44 * MS, end * MS)).collect(),
            ..Starts::default()
        }
    }

    #[test]
    fn ten_answers_on_a_tick_wait_elsewhere() {
        let usual = |starts: &Starts| on_tick(starts, MS).map(|(usual, _)| usual);
        assert_eq!(usual(&answers(10)), Some(43 * MS));
        assert_eq!(usual(&answers(9)), None, "it might be luck");
        assert_eq!(usual(&answers(7)), None);
        let mut longer = answers(10);
        for wait in &mut longer.timed {
            wait.0 = 54 * MS; // one beyond the band, less the path
        }
        assert_eq!(usual(&longer), None);
    }
}
