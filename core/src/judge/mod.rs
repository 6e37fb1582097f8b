//! Whose time it was: the one place that concludes. Observations, evidence and exchanges in; rows out that follow each other
//! without gap or overlap: each row's end is the next one's start, to the nanosecond.
//!
//! Each hypothesis has a file: what it claims, what it predicts that others do not, and its rivals. All numbers
//! that they use stand in `limits`, all words in `vocabulary`.

mod backend;
mod change;
mod cork;
mod cwnd;
mod elsewhere;
mod gap;
mod grounds;
mod inside;
mod line;
mod nagle;
mod one_way;
mod partition;
mod path;
mod program;
mod repair;
mod sender;
pub mod transfer;
mod vocabulary;
mod window;
mod worth;

use ahash::AHashSet;

use crate::base::Side;
use crate::exchange::{Exchange, TimeSlice};
use crate::observe::{Candidate, Wait};

pub use backend::explain;
pub use change::Change;
pub use grounds::Grounds;
pub use inside::{Inside, Nesting, Span};
pub use nagle::{AckKind, Ruling, held_since};
use partition::Cutter;
pub use partition::{EvidenceFrames, Row};
pub use path::Paths;
pub use sender::{Judged, NagleUse, Senders, Tick};
pub use vocabulary::{Because, Cause, Family, Grade, Hypothesis, Limiter, Owner, Rival, Rule};

/// Facts of the whole capture that the verdicts on one exchange need.
#[derive(Debug, Clone, Copy)]
pub struct CaptureFacts<'a> {
    pub paths: &'a Paths,
    /// The stream of the exchange.
    pub stream: u32,
    /// By the numbers of the pools.
    pub judged_senders: &'a [Judged],
    /// Parts of its messages may have passed on other connections.
    pub spread: bool,
    /// Its server's host sent another request meanwhile, whose verdict explains this wait.
    pub calls_others: bool,
    /// One side sends many messages (pushes, events): each of them waits by itself.
    pub many: bool,
    /// Frames of repeats that were not needed, if there is any.
    pub needless: Option<&'a AHashSet<u64>>,
}

impl CaptureFacts<'_> {
    fn ruling(&self, judged: &Judged, sender: Side, c: &Candidate) -> Ruling {
        if self.many {
            judged.rule_first(sender, self.stream, c)
        } else {
            judged.rule(sender, self.stream, c)
        }
    }

    /// The packet of this frame was a repeat that was not needed.
    fn is_needless(&self, frame: u64) -> bool {
        self.needless.is_some_and(|needless| needless.contains(&frame))
    }
}

/// The time of one exchange, judged piece by piece, in order; added to `rows`.
pub fn judge_exchange(exchange: &Exchange, known: &CaptureFacts<'_>, rows: &mut Vec<Row>) {
    if known.needless.is_some() || exchange.dialogue {
        return judge_with_needless_or_dialogue(exchange, known, rows);
    }
    // each loop is compiled for its side
    let [client, server] = exchange.pieces_by_side();
    for piece in client {
        judge(&piece, known, rows);
    }
    for piece in server {
        judge(&piece, known, rows);
    }
}

/// Packets that are in the capture twice make waits of their own, and spoil the round trips: nothing but a proven stall is more
/// than suspected.
#[cold]
pub fn cap_doubled(rows: &mut [Row]) {
    let stall = |row: &Row| {
        matches!(row.cause, Cause::Nagle | Cause::DelayedAck) && row.grounds.grade == Grade::Proven
    };
    let most = Grounds::suspected(Because::TwiceInCapture, Hypothesis::SecondCopy);
    for row in rows.iter_mut().filter(|row| !stall(row)) {
        row.grounds.at_most(most);
    }
}

/// Parts of its messages may have passed on other connections: nothing is more than probable.
#[cold]
pub fn cap_multipath(rows: &mut [Row]) {
    let most = Grounds::probable(Because::OnOtherPaths, Hypothesis::OtherPath);
    for row in rows {
        row.grounds.at_most(most);
    }
}

/// No reader knows the protocol: the last data of one side need not be the request that the other answers. They may be a push, the
/// end of a poll that is meant to wait, or a person's key. A program's time is nothing more than probable then; the
/// server's may be, where it waits for it for certain (`for_server`).
pub fn cap_unknown_protocol(rows: &mut [Row], for_server: bool) {
    not_asked(rows, Because::OnlyTurns, for_server);
}

/// The answer waits for an event, as the request wants (a fetch of a queue, a call that rings): nobody can tell
/// how much of that is the program's own time.
#[cold]
pub fn cap_long_poll(rows: &mut [Row]) {
    not_asked(rows, Because::WaitsForEvent, false);
}

/// The answer is a stream that began at this time: its next piece waits for an event. That is the first thing to say of
/// a program's time, also where something else makes it no more than probable.
#[cold]
pub fn cap_event_stream(rows: &mut [Row], since: i64) {
    let begun = rows.partition_point(|row| row.start < since);
    let most = Grounds::probable(Because::WaitsForEvent, Hypothesis::NotAsked);
    for row in rows
        .iter_mut()
        .skip(begun)
        .filter(|row| row.cause == Cause::ServerThink)
    {
        row.grounds = most.weaker(row.grounds);
    }
}

/// Until then the answers to the requests before it on its connection were still coming, and this one's could not pass
/// them: a program's time was theirs, its own, or both.
#[cold]
pub fn cap_behind_answers(rows: &mut Vec<Row>, until: i64) {
    let most = Grounds::probable(Because::BehindAnswers, Hypothesis::EarlierRequests);
    let mut at = 0;
    while let Some(row) = rows.get_mut(at).filter(|row| row.start < until) {
        at += 1;
        if row.cause != Cause::ServerThink || row.grounds.grade > Grade::Probable {
            continue;
        }
        let rest = (row.end > until).then_some(Row { start: until, ..*row });
        row.grounds = most;
        if let Some(rest) = rest {
            row.end = until;
            rows.insert(at, rest);
            at += 1;
        }
    }
}

fn not_asked(rows: &mut [Row], because: Because, for_server: bool) {
    let most = Grounds::probable(because, Hypothesis::NotAsked);
    // (it wrote again at once: that needs no protocol)
    let program = |row: &&mut Row| match row.cause {
        Cause::ServerThink => !for_server && row.rule != Rule::WriteGap,
        Cause::ClientThink => row.rule != Rule::WriteGap,
        _ => false,
    };
    for row in rows.iter_mut().filter(program) {
        row.grounds.at_most(most);
    }
}

/// Of rows beside the requests: a client that waits for an ACK that came with data may as well have written only when it was
/// answered. So its wait by Nagle's algorithm is no more than suspected.
#[cold]
pub fn cap_piggyback(rows: &mut [Row]) {
    let most = Grounds::suspected(Because::SenderNotKnown, Cause::ClientThink);
    for row in rows.iter_mut().filter(|row| row.rule == Rule::NaglePiggyback) {
        row.grounds.at_most(most);
    }
}

/// The time of an exchange in which some repeats were not needed, or both sides take turns.
#[cold]
fn judge_with_needless_or_dialogue(exchange: &Exchange, known: &CaptureFacts<'_>, rows: &mut Vec<Row>) {
    let mut needless: Option<TimeSlice<'_>> = None;
    exchange.pieces(|mut piece| {
        let request = needless.take();
        if let Some(request) = request {
            if piece.sender == Side::Server {
                // the request had come the first time: what it waited for is the answer
                (piece.start, piece.request_at) = (request.start, request.start);
                piece.from_frame = request.from_frame;
            } else {
                judge_outlined(&request, known, rows);
            }
        }
        if piece.sender == Side::Client
            && matches!(piece.step.wait, Wait::Repair(_))
            && known.is_needless(piece.step.to.frame)
        {
            needless = Some(piece);
        } else {
            judge_outlined(&piece, known, rows);
        }
    });
    if let Some(request) = needless {
        judge_outlined(&request, known, rows);
    }
}

#[inline(never)]
fn judge_outlined(piece: &TimeSlice<'_>, known: &CaptureFacts<'_>, rows: &mut Vec<Row>) {
    judge(piece, known, rows);
}

/// Gives the time of a piece to what it was spent on: here what nearly all are.
#[inline(always)]
fn judge(piece: &TimeSlice<'_>, known: &CaptureFacts<'_>, rows: &mut Vec<Row>) {
    let paths = known.paths;
    let mut cutter = Cutter::of(piece, rows);
    match &piece.step.wait {
        Wait::Turn { since, acked } => program::turn(&mut cutter, *since, *acked, piece, paths),
        Wait::App => program::paused(&mut cutter, Grounds::proven(Because::NothingOpen), piece, paths),
        Wait::FullBurst => line::burst(&mut cutter, piece),
        Wait::Burst => program::wrote_again(&mut cutter, piece),
        Wait::Spaced => line::spaced(&mut cutter, piece),
        Wait::Clocked { ack, acked } => cwnd::clocked(&mut cutter, *ack, *acked, piece, paths),
        _ => judge_rare(*piece, known, rows),
    }
}

/// Gives the time of a piece of the rarer kinds. It is passed by value so that LLVM keeps it in registers.
#[inline(never)]
fn judge_rare(piece: TimeSlice<'_>, known: &CaptureFacts<'_>, rows: &mut Vec<Row>) {
    let (paths, piece) = (known.paths, &piece);
    let sender = |sender_id: u32| known.judged_senders.get(sender_id as usize);
    let cutter = &mut Cutter::of(piece, rows);
    match &piece.step.wait {
        Wait::QueuedTurn {
            since,
            acked,
            late,
            queued,
            fine,
        } => {
            path::queued_turn(cutter, *since, *acked, [*late, *queued], *fine, piece, paths);
        }
        Wait::AgainTurn { since, acked } => {
            program::turn(cutter, *since, *acked, piece, paths);
            repair::may_be_again(cutter, piece);
        }
        Wait::LateTurn {
            since,
            acked,
            late,
            sender_id,
            again,
        } => {
            cork::late_turn(cutter, *since, [*acked, *late], sender(*sender_id), piece, paths);
            if *again {
                repair::may_be_again(cutter, piece);
            }
        }
        Wait::TimedTurn {
            since,
            acked,
            sender_id,
        } => {
            let judged = sender(*sender_id).filter(|_| !known.calls_others);
            elsewhere::turn(cutter, *since, *acked, judged, piece, paths);
        }
        Wait::Suspected { held } => one_way::suspected(cutter, *held, piece),
        Wait::Small(c) => match sender(c.sender_id) {
            Some(judged) => nagle::cut(cutter, c, known.ruling(judged, piece.sender, c), piece, paths),
            None => gap::unjudged(cutter, piece),
        },
        Wait::FreedTurn { since, candidate } => {
            let ruling = sender(candidate.sender_id).map(|j| known.ruling(j, piece.sender, candidate));
            nagle::in_turn(cutter, *since, candidate, ruling, piece, paths);
        }
        Wait::LoneClocked { ack, acked, alone } => cwnd::lone(cutter, *ack, *acked, *alone, piece, paths),
        Wait::Window { opened } => window::opened(cutter, *opened, false, piece),
        Wait::FillsWindow { since } => window::filled(cutter, *since, piece),
        Wait::ZeroWindow { opened } => window::opened(cutter, *opened, true, piece),
        Wait::Repair(repaired) => repair::repeat(cutter, **repaired, piece, known),
        Wait::Probe { small, sender_id } => repair::probe(cutter, *small, *sender_id, piece, known),
        Wait::Unsure => {
            let grounds = Grounds::suspected(Because::LineMayBeBusy, Cause::Bandwidth);
            program::paused(cutter, grounds, piece, paths);
        }
        Wait::Filled { sender_id } => nagle::filled(cutter, sender(*sender_id), known.stream, piece, paths),
        Wait::Early { sender_id, bytes } => {
            let took = piece.end - piece.start;
            let grounds =
                sender(*sender_id).map_or(Grounds::proven(Because::LeftBeforeAck), |j| j.early(took, *bytes));
            program::paused(cutter, grounds, piece, paths);
        }
        Wait::Close => program::closed_late(cutter, piece, paths),
        Wait::Cork => cork::tail(cutter, piece),
        Wait::Corked { small, ack } => cork::unfinished(cutter, *small, *ack, piece, paths),
        Wait::Handshake => path::handshake(cutter, piece, paths),
        Wait::Hole => gap::hole(cutter, piece),
        Wait::Turn { .. }
        | Wait::App
        | Wait::FullBurst
        | Wait::Burst
        | Wait::Spaced
        | Wait::Clocked { .. } => {}
    }
}
