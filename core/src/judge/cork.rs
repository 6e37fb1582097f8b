//! A cork: the sending socket holds back a segment that is not full (TCP_CORK, MSG_MORE).
//!
//! Claims: the program had written, and its kernel waited for the cork's timer or for an ACK.
//! Predicts: waits as long as the kernel's probe timer (200 ms, up to three ticks late), never shorter ones, that end
//! on the sender's tick; or a segment without PSH sent upon the ACK of the small one before it.
//! Rivals: a program that sleeps for as long, on the same tick (`program`). So a cork is never proven.

use super::grounds::Grounds;
use super::partition::{Attribution, Cutter};
use super::path::attribute_request_path;
use super::program::program_attribution;
use super::sender::{SenderVerdict, fit_tick};
use super::turn::{self, attribute_turn_path, turn_attribution_bounded_by_ack};
use super::vocabulary::{Because, Cause, Owner, Rule};
use crate::base::At;
use crate::evidence::MessageStarts;
use crate::limits::{
    CHANCE_MAX_ALONE, CORK_NS, CORK_ROUND_NS, MIN_SAMPLES, OUTLIER_ONE_IN, PROMPT_NS, RATED_NS,
};
use crate::observe::Turn;

/// Whether a wait is as long as the cork timer: the retransmission timeout, which is 200 ms and a smoothed round trip,
/// delayed ACKs included (tcp_probe0_base, tcp_set_rto). `sender_rtt_ns` is the round trip from the capture to the
/// sender, `longest_ack_ns` the longest time to an ACK of the receiver.
///
/// Example: 2 ms to the sender and ACKs after up to 60 ms: waits of 202 to 277 ms.
fn has_timer_length(waited_ns: i64, sender_rtt_ns: i64, longest_ack_ns: i64) -> bool {
    let longer = (sender_rtt_ns + longest_ack_ns).clamp(0, RATED_NS.get());
    (CORK_NS.least()..=CORK_NS.most() + longer).contains(&(waited_ns - sender_rtt_ns))
}

/// Returns whether messages of a sender may wait for the timer, and whether all of them do. The times are as in
/// `has_timer_length`.
pub(super) fn cork_use(starts: &MessageStarts, sender_rtt_ns: i64, longest_ack_ns: i64) -> (bool, bool) {
    let timer_waits = || {
        let waits = starts.cork_waits.iter();
        waits.filter(|(waited, _)| has_timer_length(*waited, sender_rtt_ns, longest_ack_ns))
    };
    let count = timer_waits().count();
    if count < MIN_SAMPLES.get() {
        return (count > 0, false); // too few to show a tick
    }
    let is_on_tick =
        fit_tick(timer_waits().map(|(_, end)| *end)).is_some_and(|tick| tick.luck <= CHANCE_MAX_ALONE.get());
    let sooner = starts
        .cork_waits
        .iter()
        .filter(|(waited, _)| waited - sender_rtt_ns < CORK_NS.least());
    let prompt = starts.prompt_count + sooner.count() as u64;
    let are_all = prompt * OUTLIER_ONE_IN.get() as u64 <= count as u64;
    (is_on_tick || are_all, is_on_tick && are_all)
}

/// Judges a small first segment of a message, sent after about the probe timer. `late_ns` is that of
/// `TurnDoubt::CorkLength`.
pub(super) fn judge_turn(cutter: &mut Cutter<'_>, turn: &Turn, late_ns: u32, judged: Option<&SenderVerdict>) {
    let (slice, paths) = (cutter.slice, cutter.paths);
    let side = slice.sender;
    let waited = slice.step.to.time_ns - turn.since.time_ns;
    let is_as_long_as_timer = |longest_ack| has_timer_length(waited, paths.rtt_to(side), longest_ack);
    match judged {
        Some(judged)
            if judged.measures.is_always_corked
                && is_as_long_as_timer(judged.measures.path.longest_ack_ns) =>
        {
            attribute_turn_path(cutter, turn.since);
            // a program that sleeps on the same tick would look alike
            let grounds = Grounds::probable(Because::TimerOnTick, Cause::program_of(side));
            let evidence = cutter.end_frames();
            let cork = Attribution::new(Cause::Cork, Owner::of(side), Rule::CorkPool, grounds, evidence);
            cutter.attribute(slice.end_ns, cork);
        }
        _ if paths.rtt_behind_middlebox(side, waited).is_some() => turn::judge(cutter, turn),
        Some(judged)
            if (judged.measures.is_sometimes_corked || judged.measures.is_always_corked)
                && is_as_long_as_timer(judged.measures.path.longest_ack_ns.max(CORK_ROUND_NS.get())) =>
        {
            attribute_turn_path(cutter, turn.since);
            let mut program = turn_attribution_bounded_by_ack(cutter, turn, 0);
            let cap = Grounds::probable(Because::TimerLength, Cause::Cork);
            program.grounds.at_most(cap);
            cutter.attribute(slice.end_ns, program);
        }
        _ if late_ns > 0 => turn::judge_queued(cutter, turn, late_ns, 0, false),
        _ => turn::judge(cutter, turn),
    }
}

/// Judges a small tail after full segments that left after the probe timer's length, with nothing in flight.
pub(super) fn tail(cutter: &mut Cutter<'_>) {
    let (slice, side, ends) = (cutter.slice, cutter.slice.sender, cutter.end_frames());
    let grounds = Grounds::probable(Because::TimerLength, Cause::program_of(side));
    cutter.attribute(
        slice.end_ns,
        Attribution::new(Cause::Cork, Owner::of(side), Rule::CorkTimer, grounds, ends),
    );
}

/// Judges a segment that is neither full nor pushed, after the ACK of the small one before it: its program had
/// announced more data (MSG_MORE).
pub(super) fn unfinished(cutter: &mut Cutter<'_>, small: At, ack: At) {
    let (slice, side, to) = (cutter.slice, cutter.slice.sender, cutter.slice.step.to);
    let attribution = if to.time_ns - ack.time_ns - cutter.paths.rtt_to(side) <= PROMPT_NS.get() {
        let evidence = [small.frame, ack.frame, to.frame];
        let grounds = Grounds::probable(Because::NotPushed, Cause::Nagle);
        Attribution::new(Cause::Cork, Owner::of(side), Rule::CorkAck, grounds, evidence)
    } else {
        attribute_request_path(cutter);
        let ends = cutter.end_frames();
        let grounds = Grounds::probable(Because::LateAfterAck, Cause::Cork);
        program_attribution(side, Rule::App, grounds, ends)
    };
    cutter.attribute(slice.end_ns, attribution);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Side;
    use crate::evidence::{Key, SenderStore};
    use crate::judge::partition::slices::{slice, step};
    use crate::judge::sender::SenderPath;
    use crate::judge::{Grade, Paths, Row, SenderMeasures};

    const MS: i64 = 1_000_000;
    /// Multiples of 4 ms that lie on no longer tick.
    const ENDS: [i64; 10] = [0, 52, 96, 148, 200, 252, 296, 348, 400, 452];

    /// Messages of which `late` waited for 204 ms until such a tick, and `prompt` left sooner.
    fn starts(late: usize, prompt: u64) -> MessageStarts {
        MessageStarts {
            prompt_count: prompt,
            cork_waits: ENDS
                .iter()
                .take(late)
                .map(|end| (204 * MS, end * MS + 9_000))
                .collect(),
            ..MessageStarts::default()
        }
    }

    #[test]
    fn the_timer_is_200_ms_and_up_to_three_ticks_and_a_round_trip_late() {
        let far = [2 * MS, 60 * MS];
        for (waited, path, is) in [
            (200 * MS, [0, 0], true),
            (200 * MS - 1, [0, 0], false),
            (213 * MS, [0, 0], true),
            (213 * MS + 1, [0, 0], false),
            (257 * MS, [0, 44 * MS], true), // its receiver delays ACKs
            (257 * MS + 1, [0, 44 * MS], false),
            (202 * MS, far, true),
            (202 * MS - 1, far, false),
            (277 * MS, far, true),
            (277 * MS + 1, far, false),
            (714 * MS, [MS, 600 * MS], true), // no more than RATED_NS is granted
            (714 * MS + 1, [MS, 600 * MS], false),
        ] {
            assert_eq!(
                has_timer_length(waited, path[0], path[1]),
                is,
                "{waited} {path:?}"
            );
        }
    }

    #[test]
    fn what_a_long_round_trip_in_the_timer_may_explain_is_not_proven() {
        let judged = |waited, corked, to_answer| {
            let step = step(waited);
            let slice = slice(&step, Side::Server);
            let measures = SenderMeasures {
                path: SenderPath {
                    longest_ack_ns: to_answer,
                    ..SenderPath::default()
                },
                is_sometimes_corked: true,
                is_always_corked: corked,
                ..SenderMeasures::default()
            };
            let judged = SenderVerdict {
                measures,
                ..SenderVerdict::default()
            };
            let paths = Paths {
                best_rtts_ns: [Some(MS), Some(0)],
                ..Paths::default()
            };
            let mut rows: Vec<Row> = Vec::new();
            judge_turn(
                &mut Cutter::new(&slice, &paths, &mut rows),
                &Turn {
                    since: step.from,
                    acked_ns: 0,
                    doubt: None,
                },
                0,
                Some(&judged),
            );
            rows.last().map(|row| (row.cause, row.grounds.grade))
        };
        let think = Cause::ServerThink;
        let (cork, spared) = (
            Some((Cause::Cork, Grade::Probable)),
            Some((think, Grade::Probable)),
        );
        let program = Some((think, Grade::Proven));
        assert_eq!(
            (judged(213 * MS, true, 0), judged(213 * MS + 1, true, 0)),
            (cork, spared)
        );
        assert_eq!(judged(258 * MS + 1, true, 0), program);
        assert_eq!(
            (judged(220 * MS, true, 7 * MS), judged(220 * MS + 1, true, 7 * MS)),
            (cork, spared)
        );
        assert_eq!(
            (judged(258 * MS, false, 0), judged(258 * MS + 1, false, 0)),
            (spared, program)
        );
        assert_eq!(judged(263 * MS + 1, false, 50 * MS), program, "a longer path");
        assert_eq!(judged(263 * MS, false, 50 * MS), spared);
    }

    #[test]
    fn ten_on_a_tick_are_a_timers_and_few_prompt_ones_do_not_matter() {
        // (it may be, all are): 9 might lie on a tick by luck, 7 are too few to ask
        assert_eq!(cork_use(&starts(10, 0), 0, 0), (true, true));
        assert_eq!(cork_use(&starts(10, 1), 0, 0), (true, true));
        assert_eq!(cork_use(&starts(10, 2), 0, 0), (true, false));
        assert_eq!(cork_use(&starts(9, 0), 0, 0), (true, false));
        assert_eq!(cork_use(&starts(9, 2), 0, 0), (false, false));
        assert_eq!(cork_use(&starts(8, 9), 0, 0), (false, false));
        assert_eq!(cork_use(&starts(7, 9), 0, 0), (true, false));
        assert_eq!(cork_use(&starts(0, 9), 0, 0), (false, false));
    }

    #[test]
    fn late_and_prompt_messages_are_counted_over_the_same_part_of_the_capture() {
        let mut store = SenderStore::default();
        let [server, client] = [1, 2].map(|last| [10, 0, 0, last].into());
        let sender = Side::Server;
        let id = store.id(
            Key {
                server,
                server_port: 80,
                client,
                sender,
            },
            0,
        );
        // one message in twelve is prompt, however many late ones are stored
        for number in 0..20_000 {
            let end = number * 52 * MS + 9_000;
            store.message_began(id, (number % 12 != 0).then_some((204 * MS, end)));
        }
        let starts = &store.get(id).unwrap().starts;
        assert_eq!((starts.cork_waits.len(), starts.prompt_count), (1_024, 94));
        assert_eq!(cork_use(starts, 0, 0), (true, true));
    }

    #[test]
    fn what_waited_less_than_the_timer_is_prompt() {
        let mut mixed = starts(10, 1);
        mixed.cork_waits.push((200 * MS - 1, 900 * MS));
        assert_eq!(cork_use(&mixed, 0, 0), (true, false));
        let mut timer = starts(10, 1);
        timer.cork_waits.push((200 * MS, 900 * MS));
        assert_eq!(cork_use(&timer, 0, 0), (true, true), "as long as the timer");
        let mut far = starts(10, 1);
        far.cork_waits.push((201 * MS, 900 * MS));
        assert_eq!(cork_use(&far, 2 * MS, 0), (true, false), "less the path");
    }
}
