//! A held ACK on another connection: a proxy that waits for its backend, whose kernel waits for the proxy's ACK.
//!
//! Claims: the server's answer waited for a delayed ACK (RFC 1122 4.2.3.2) on a connection that is not in the capture.
//! Predicts: many answers take the timer's length, hardly any a little less, and they end on a kernel's tick, wherever
//! the requests fall.
//! Rivals: a program that sleeps for as long on the same tick (`program`). So this is never proven.

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::sender::{SenderVerdict, fit_tick};
use super::turn::{self, attribute_turn_path};
use super::vocabulary::{Because, Cause, Hypothesis, Owner, Rule};
use crate::base::Side;
use crate::evidence::MessageStarts;
use crate::limits::{CHANCE_MAX_ALONE, HELD_ELSEWHERE_NS, MIN_SAMPLES, OUTLIER_ONE_IN, SOON_NS};
use crate::observe::Turn;

/// Whether enough messages waited as long as a held ACK, hardly any waited between half of that and its least, and the
/// waits end on a tick too regularly for chance. `rtt` is the round trip to the sender.
pub(super) fn on_tick(starts: &MessageStarts, rtt: i64) -> bool {
    let timed = || starts.hold_waits.iter().map(|(waited, end)| (waited - rtt, end));
    let held = timed().filter(|(waited, _)| HELD_ELSEWHERE_NS.contains(*waited));
    let ends: Vec<i64> = held.map(|(_, end)| *end).collect();
    // a program's time varies around its middle; a timer is never shorter
    let (half, least) = (HELD_ELSEWHERE_NS.least() / 2, HELD_ELSEWHERE_NS.least());
    let shorter = timed().filter(|(waited, _)| (half..least).contains(waited));
    ends.len() >= MIN_SAMPLES.get()
        && OUTLIER_ONE_IN.get() * shorter.count() <= ends.len()
        && fit_tick(ends.into_iter()).is_some_and(|tick| tick.luck <= CHANCE_MAX_ALONE.get())
}

/// Judges the first segment of a turn, sent after about the timer's length.
pub(super) fn judge_turn(cutter: &mut Cutter<'_>, turn: &Turn, judged: Option<&SenderVerdict>) {
    let (slice, paths) = (cutter.slice, cutter.paths);
    let waits_elsewhere = judged.is_some_and(|judged| judged.measures.waits_elsewhere);
    let is_direct = paths
        .rtt_behind_middlebox(Side::Server, slice.step.to.time_ns - turn.since.time_ns)
        .is_none();
    let waited = slice.step.to.time_ns - turn.since.time_ns - paths.rtt_to(Side::Server);
    let is_longer = waited > HELD_ELSEWHERE_NS.most() + SOON_NS.get(); // (of a busy host)
    if !waits_elsewhere || slice.sender != Side::Server || !is_direct || waited < HELD_ELSEWHERE_NS.least() {
        return turn::judge(cutter, turn);
    }
    attribute_turn_path(cutter, turn.since);
    let evidence = cutter.end_frames();
    let (cause, rule, grounds) = if is_longer {
        // the program worked before that wait, or instead of it
        let grounds = Grounds::probable(Because::TimerLength, Hypothesis::OtherPath);
        (Cause::ServerThink, Rule::Turn, grounds)
    } else {
        let grounds = Grounds::probable(Because::TimerOnTick, Cause::ServerThink);
        (Cause::DelayedAck, Rule::Elsewhere, grounds)
    };
    let attribution = Attribution::new(cause, Owner::Server, rule, grounds, evidence);
    cutter.attribute(slice.end_ns, attribution);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Answers after 43 ms each, which end shortly after a tick of 4 ms.
    fn answers(count: usize) -> MessageStarts {
        let ends = [0, 52, 96, 148, 200, 252, 296, 348, 400, 452];
        MessageStarts {
            hold_waits: ends
                .iter()
                .take(count)
                .map(|end| (44 * MS, end * MS + 9_000))
                .collect(),
            ..MessageStarts::default()
        }
    }

    #[test]
    fn ten_answers_on_a_tick_wait_elsewhere() {
        let wait = |starts: &MessageStarts| on_tick(starts, MS);
        assert!(wait(&answers(10)));
        assert!(!wait(&answers(9)), "it might be luck");
        assert!(!wait(&answers(7)));
        let mut stamped = answers(10);
        for (_, end) in &mut stamped.hold_waits {
            *end -= 9_000;
        }
        assert!(wait(&stamped), "no clock of the capture has steps of 4 ms");
        for (_, end) in &mut stamped.hold_waits {
            *end += *end / (4 * MS) % 4 * MS;
        }
        assert!(!wait(&stamped), "the capture's own milliseconds");
        let mut varied = answers(10);
        varied.hold_waits.push((34 * MS, 500 * MS));
        assert!(wait(&varied), "one stray");
        varied.hold_waits.push((36 * MS, 544 * MS));
        assert!(!wait(&varied), "a program whose time varies");
        varied.hold_waits.truncate(10);
        varied.hold_waits.extend([(19 * MS, 500 * MS); 9]);
        assert!(wait(&varied), "answers that did not wait");
        let mut longer = answers(10);
        for wait in &mut longer.hold_waits {
            wait.0 = 56 * MS; // one beyond the band, less the path
        }
        assert!(!wait(&longer));
    }
}
