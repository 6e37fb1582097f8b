//! Attributes the time of exchanges to causes. Reads observations, evidence and exchanges; returns rows without gap or
//! overlap: each row ends where the next one starts, to the nanosecond.
//!
//! Each hypothesis has a file, whose head gives its claim, its predictions that no other hypothesis makes, and its
//! rivals. Their thresholds are in `limits`, their words in `vocabulary`.

mod backend;
mod caps;
mod change;
mod cork;
mod cwnd;
mod elsewhere;
mod grounds;
mod inside;
mod line;
mod missing_frames;
mod nagle;
mod one_way;
mod partition;
mod path;
mod program;
mod repair;
mod sender;
pub mod transfer;
mod turn;
mod vocabulary;
mod window;
mod worth;

use ahash::AHashSet;

use crate::base::Side;
use crate::exchange::{Exchange, TimeSlice};
use crate::observe::{Candidate, Turn, TurnDoubt, Wait};

pub use backend::explain;
pub use caps::{
    cap_behind_answers, cap_doubled, cap_event_stream, cap_long_poll, cap_multipath, cap_piggyback,
    cap_unknown_protocol,
};
pub use change::Change;
pub use grounds::Grounds;
pub use inside::{Inside, Nesting, Span};
pub use nagle::{ProgramTime, Ruling, held_since};
use partition::Cutter;
pub use partition::{EvidenceFrames, Row};
pub use path::Paths;
pub use sender::{NagleUse, SenderMeasures, SenderVerdict, Senders, Tick};
pub use vocabulary::{Because, Cause, Family, Grade, Hypothesis, Limiter, Owner, Rival, Rule};

/// What a verdict on one exchange needs besides its steps: facts of the exchange, of its senders and of the capture.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeContext<'a> {
    pub paths: &'a Paths,
    /// The stream of the exchange.
    pub stream: u32,
    /// Indexed by the sender's number in the `SenderStore`.
    pub judged_senders: &'a [SenderVerdict],
    /// Parts of the exchange's messages may have passed on other connections (multipath).
    pub is_spread: bool,
    /// The server's host sent another request meanwhile, whose verdict explains this wait.
    pub calls_others: bool,
    /// One side sends many messages (pushes, events), each of which is judged alone.
    pub is_multi_message: bool,
    /// Frames of spurious retransmissions; None if the capture has none.
    pub spurious_frames: Option<&'a AHashSet<u64>>,
}

impl ExchangeContext<'_> {
    fn ruling(&self, judged: &SenderVerdict, sender: Side, candidate: &Candidate) -> Ruling {
        if self.is_multi_message {
            judged.rule_first(sender, candidate)
        } else {
            judged.rule(sender, candidate)
        }
    }

    /// Returns the verdict on a sender; None for senders beyond the bound on them.
    fn sender(&self, sender_id: u32) -> Option<&SenderVerdict> {
        self.judged_senders.get(sender_id as usize)
    }

    /// Whether this frame is a spurious retransmission.
    fn is_spurious(&self, frame: u64) -> bool {
        self.spurious_frames.is_some_and(|frames| frames.contains(&frame))
    }
}

/// Judges the time of one exchange slice by slice, in order, and appends the rows.
pub fn judge_exchange(exchange: &Exchange, context: &ExchangeContext<'_>, rows: &mut Vec<Row>) {
    if context.spurious_frames.is_some() || exchange.is_dialogue {
        return judge_with_spurious_or_dialogue(exchange, context, rows);
    }
    // two loops, so that the compiler specialises `judge` for each side
    let [client, server] = exchange.slices_by_side();
    for slice in client {
        judge(&slice, context, rows);
    }
    for slice in server {
        judge(&slice, context, rows);
    }
}

/// Judges an exchange with spurious retransmissions, or one in which both sides take turns.
#[cold]
fn judge_with_spurious_or_dialogue(exchange: &Exchange, context: &ExchangeContext<'_>, rows: &mut Vec<Row>) {
    let mut spurious: Option<TimeSlice<'_>> = None;
    exchange.slices(|mut slice| {
        let request = spurious.take();
        if let Some(request) = request {
            if slice.sender == Side::Server {
                // the request had arrived the first time, so its retransmission is part of the wait for the answer
                (slice.start_ns, slice.request_at_ns) = (request.start_ns, request.start_ns);
                slice.from_frame = request.from_frame;
            } else {
                judge_any(request, context, rows);
            }
        }
        if slice.sender == Side::Client
            && matches!(slice.step.wait, Wait::Repair(_))
            && context.is_spurious(slice.step.to.frame)
        {
            spurious = Some(slice);
        } else {
            judge_any(slice, context, rows);
        }
    });
    if let Some(request) = spurious {
        judge_any(request, context, rows);
    }
}

/// Judges one slice: the frequent kinds without a call, the others in `judge_any`.
#[inline(always)]
fn judge(slice: &TimeSlice<'_>, context: &ExchangeContext<'_>, rows: &mut Vec<Row>) {
    let cutter = &mut Cutter::new(slice, context.paths, rows);
    if !judge_frequent(slice, cutter) {
        judge_any(*slice, context, rows);
    }
}

/// Judges a slice of a frequent kind; false for all others.
#[inline(always)]
fn judge_frequent(slice: &TimeSlice<'_>, cutter: &mut Cutter<'_>) -> bool {
    match &slice.step.wait {
        Wait::Turn(turn @ Turn { doubt: None, .. }) => turn::judge(cutter, turn),
        Wait::App => program::paused(cutter, Grounds::proven(Because::NothingOpen)),
        Wait::FullBurst => line::judge(cutter, Rule::Burst, Because::FullSegments),
        Wait::Burst => program::wrote_again(cutter),
        Wait::Spaced => line::judge(cutter, Rule::Spacing, Because::EvenPace),
        Wait::Clocked { ack, acked } => cwnd::clocked(cutter, *ack, *acked),
        _ => return false,
    }
    true
}

/// Judges a slice of any kind, passed by value so that LLVM keeps it in registers.
#[inline(never)]
fn judge_any(slice: TimeSlice<'_>, context: &ExchangeContext<'_>, rows: &mut Vec<Row>) {
    let slice = &slice;
    let cutter = &mut Cutter::new(slice, context.paths, rows);
    match &slice.step.wait {
        Wait::Turn(turn) => judge_turn(cutter, turn, context),
        Wait::Suspected { held_ack } => one_way::suspected(cutter, *held_ack),
        Wait::Small(candidate) => match context.sender(candidate.sender_id) {
            Some(judged) => {
                nagle::attribute(cutter, candidate, context.ruling(judged, slice.sender, candidate))
            }
            None => missing_frames::unjudged(cutter),
        },
        Wait::FreedTurn { since, candidate } => {
            let ruling = context
                .sender(candidate.sender_id)
                .map(|judged| context.ruling(judged, slice.sender, candidate));
            nagle::judge_turn(cutter, *since, candidate, ruling);
        }
        Wait::LoneClocked { ack, acked, single } => cwnd::lone(cutter, *ack, *acked, *single),
        Wait::Window { opened, was_zero } => window::opened(cutter, *opened, *was_zero),
        Wait::FillsWindow { since } => window::filled(cutter, *since),
        Wait::Repair(repaired) => repair::judge(cutter, repaired, context),
        Wait::TailLossProbe { small, sender_id } => repair::probe(cutter, *small, *sender_id, context),
        Wait::Unsure => {
            let grounds = Grounds::suspected(Because::LineMayBeBusy, Cause::Bandwidth);
            program::paused(cutter, grounds);
        }
        Wait::Filled { sender_id } => nagle::filled(cutter, context.sender(*sender_id), context.stream),
        Wait::Early { sender_id, bytes } => {
            let waited = slice.end_ns - slice.start_ns;
            let grounds = context
                .sender(*sender_id)
                .map_or(Grounds::proven(Because::LeftBeforeAck), |judged| {
                    judged.early_grounds(waited, *bytes)
                });
            program::paused(cutter, grounds);
        }
        Wait::Close => program::closed_late(cutter),
        Wait::Cork => cork::tail(cutter),
        Wait::Corked { small, ack } => cork::unfinished(cutter, *small, *ack),
        Wait::Handshake => path::handshake(cutter),
        Wait::Hole => missing_frames::hole(cutter),
        Wait::App | Wait::FullBurst | Wait::Burst | Wait::Spaced | Wait::Clocked { .. } => {
            let is_judged = judge_frequent(slice, cutter);
            debug_assert!(is_judged, "the list above and that of `judge_frequent` differ");
        }
    }
}

/// Judges a turn by what besides the best path and the program may have taken it.
fn judge_turn(cutter: &mut Cutter<'_>, turn: &Turn, context: &ExchangeContext<'_>) {
    match turn.doubt {
        None => turn::judge(cutter, turn),
        Some(TurnDoubt::Queued {
            late_ns,
            queued_ns,
            is_clock_fine,
        }) => {
            turn::judge_queued(cutter, turn, late_ns, queued_ns, is_clock_fine);
        }
        Some(TurnDoubt::Retransmission) => {
            turn::judge(cutter, turn);
            repair::may_be_retransmission(cutter);
        }
        Some(TurnDoubt::CorkLength {
            late_ns,
            sender_id,
            may_be_retransmission,
        }) => {
            cork::judge_turn(cutter, turn, late_ns, context.sender(sender_id));
            if may_be_retransmission {
                repair::may_be_retransmission(cutter);
            }
        }
        Some(TurnDoubt::HoldLength { sender_id }) => {
            let judged = context.sender(sender_id).filter(|_| !context.calls_others);
            elsewhere::judge_turn(cutter, turn, judged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::partition::slices::{slice, step};
    use super::sender::paused;
    use super::*;
    use crate::base::At;
    use crate::observe::Repair;

    /// One wait of every kind, each 206 ms long.
    fn waits() -> Vec<Wait> {
        let at = |frame, time_ns| At { frame, time_ns };
        let (since, ack) = (at(1, 0), at(5, 204_000_000));
        let candidate = Candidate {
            small: since,
            held_from: since,
            ack,
            ack_lacks_data: true,
            freed: at(9, 206_000_000),
            ..Candidate::default()
        };
        let (acked, late, sender_id) = (0, 0, 0);
        let turn = |doubt| {
            Wait::Turn(Turn {
                since,
                acked_ns: acked,
                doubt,
            })
        };
        vec![
            turn(None),
            turn(Some(TurnDoubt::Queued {
                late_ns: 1_000_000,
                queued_ns: 0,
                is_clock_fine: true,
            })),
            turn(Some(TurnDoubt::CorkLength {
                late_ns: late,
                sender_id,
                may_be_retransmission: false,
            })),
            turn(Some(TurnDoubt::Retransmission)),
            turn(Some(TurnDoubt::HoldLength { sender_id })),
            Wait::App,
            Wait::Unsure,
            Wait::Filled { sender_id },
            Wait::Early {
                sender_id,
                bytes: 100,
            },
            Wait::Burst,
            Wait::FullBurst,
            Wait::Small(Box::new(candidate)),
            Wait::FreedTurn {
                since,
                candidate: Box::new(candidate),
            },
            Wait::Spaced,
            Wait::Clocked { ack, acked: since },
            Wait::LoneClocked {
                ack,
                acked: since,
                single: false,
            },
            Wait::Window {
                opened: ack,
                was_zero: false,
            },
            Wait::FillsWindow { since },
            Wait::Window {
                opened: ack,
                was_zero: true,
            },
            Wait::repair(Repair::Timeout, Some(since), None, true),
            Wait::TailLossProbe {
                small: since,
                sender_id,
            },
            Wait::Cork,
            Wait::Corked { small: since, ack },
            Wait::Close,
            Wait::Handshake,
            Wait::Hole,
            Wait::Suspected { held_ack: None },
        ]
    }

    /// An exchange is judged at once where no step needs evidence, and at the end of the capture otherwise: both must
    /// give the same rows.
    #[test]
    fn evidence_changes_the_rows_of_the_waits_that_need_it_alone() {
        let judged = |wait: &Wait, judged_senders: &[SenderVerdict], spurious: Option<&AHashSet<u64>>| {
            let mut step = step(206_000_000);
            step.wait = wait.clone();
            let paths = Paths::default();
            let context = ExchangeContext {
                paths: &paths,
                stream: 0,
                judged_senders,
                is_spread: false,
                calls_others: false,
                is_multi_message: false,
                spurious_frames: spurious,
            };
            let mut rows = Vec::new();
            for sender in Side::BOTH {
                judge(&slice(&step, sender), &context, &mut rows);
            }
            rows
        };
        let nagle = |nagle_use| SenderVerdict {
            nagle_use,
            ..paused(0, &[1_000_000; 20])
        };
        let with = |set: fn(&mut SenderMeasures)| {
            let mut verdict = nagle(NagleUse::Unknown);
            set(&mut verdict.measures);
            verdict
        };
        let corked = with(|measures| measures.is_always_corked = true);
        let timed = with(|measures| measures.is_sometimes_corked = true);
        let elsewhere = with(|measures| measures.waits_elsewhere = true);
        let verdicts = [
            nagle(NagleUse::Acts),
            nagle(NagleUse::Off),
            nagle(NagleUse::AppPause),
            corked,
            timed,
            elsewhere,
        ];
        let spurious = AHashSet::from_iter([9]);
        for wait in &waits() {
            let alone = judged(wait, &[], None);
            let differs = verdicts
                .iter()
                .any(|verdict| alone != judged(wait, std::slice::from_ref(verdict), Some(&spurious)));
            assert_eq!(differs, wait.needs_evidence(), "{wait:?}");
        }
    }
}
