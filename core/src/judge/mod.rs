//! Attributes the time of exchanges to causes. Reads observations, evidence and exchanges; returns rows without gap or
//! overlap: each row ends where the next one starts, to the nanosecond.
//!
//! Each hypothesis has a file, whose head gives its claim, its predictions that no other hypothesis makes, and its
//! rivals. Their thresholds are in `limits`, their words in `vocabulary`.

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

/// Facts of the capture that the verdicts on one exchange need.
#[derive(Debug, Clone, Copy)]
pub struct CaptureFacts<'a> {
    pub paths: &'a Paths,
    /// The stream of the exchange.
    pub stream: u32,
    /// Indexed by the sender's number in the `SenderStore`.
    pub judged_senders: &'a [Judged],
    /// Parts of the exchange's messages may have passed on other connections (multipath).
    pub spread: bool,
    /// The server's host sent another request meanwhile, whose verdict explains this wait.
    pub calls_others: bool,
    /// One side sends many messages (pushes, events), each of which is judged alone.
    pub many: bool,
    /// Frames of needless retransmissions; None if the capture has none.
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

    /// Whether this frame is a needless retransmission.
    fn is_needless(&self, frame: u64) -> bool {
        self.needless.is_some_and(|needless| needless.contains(&frame))
    }
}

/// Judges the time of one exchange piece by piece, in order, and appends the rows.
pub fn judge_exchange(exchange: &Exchange, known: &CaptureFacts<'_>, rows: &mut Vec<Row>) {
    if known.needless.is_some() || exchange.dialogue {
        return judge_with_needless_or_dialogue(exchange, known, rows);
    }
    // two loops, so that the compiler specialises `judge` for each side
    let [client, server] = exchange.slices_by_side();
    for piece in client {
        judge(&piece, known, rows);
    }
    for piece in server {
        judge(&piece, known, rows);
    }
}

/// Caps all but proven stalls at suspected where packets are in the capture twice: second copies look like waits, and
/// they spoil the round trips.
#[cold]
pub fn cap_doubled(rows: &mut [Row]) {
    let is_stall = |row: &Row| {
        matches!(row.cause, Cause::Nagle | Cause::DelayedAck) && row.grounds.grade == Grade::Proven
    };
    let most = Grounds::suspected(Because::TwiceInCapture, Hypothesis::SecondCopy);
    for row in rows.iter_mut().filter(|row| !is_stall(row)) {
        row.grounds.at_most(most);
    }
}

/// Caps all rows at probable where parts of the messages may have passed on other connections.
#[cold]
pub fn cap_multipath(rows: &mut [Row]) {
    let most = Grounds::probable(Because::OnOtherPaths, Hypothesis::OtherPath);
    for row in rows {
        row.grounds.at_most(most);
    }
}

/// Caps a program's time at probable where no reader knows the protocol. The last data of one side need not be a
/// request that the other answers: they may be a push, the end of a long poll, or a keystroke. `for_server` exempts the
/// server's time, for callers that know that the client waited for it.
pub fn cap_unknown_protocol(rows: &mut [Row], for_server: bool) {
    cap_programs(rows, Because::OnlyTurns, for_server);
}

/// Caps a program's time at probable where the answer waits for an event, as the request wants (a fetch from a queue, a
/// call that rings): the capture does not show how much of it was work.
#[cold]
pub fn cap_long_poll(rows: &mut [Row]) {
    cap_programs(rows, Because::WaitsForEvent, false);
}

/// Caps the server program's time at probable from the begin of an answer that is a stream of events, as each piece
/// waits for an event. This reason replaces others of the same grade.
#[cold]
pub fn cap_event_stream(rows: &mut [Row], since: i64) {
    let first = rows.partition_point(|row| row.start < since);
    let most = Grounds::probable(Because::WaitsForEvent, Hypothesis::NotAsked);
    for row in rows
        .iter_mut()
        .skip(first)
        .filter(|row| row.cause == Cause::ServerThink)
    {
        row.grounds = most.weaker(row.grounds);
    }
}

/// Caps the server program's time at probable before `until`, when earlier answers on the connection ended: this answer
/// could not overtake them, so the program may have worked on those. Cuts the row that lasts beyond `until`.
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

/// Caps the programs' time at probable, but for gaps between two writes, which no protocol explains otherwise.
fn cap_programs(rows: &mut [Row], because: Because, for_server: bool) {
    let most = Grounds::probable(because, Hypothesis::NotAsked);
    let is_program = |row: &&mut Row| match row.cause {
        Cause::ServerThink => !for_server && row.rule != Rule::WriteGap,
        Cause::ClientThink => row.rule != Rule::WriteGap,
        _ => false,
    };
    for row in rows.iter_mut().filter(is_program) {
        row.grounds.at_most(most);
    }
}

/// Caps waits for an ACK with data at suspected, in time that belongs to no request: the client may have written only
/// upon the answer.
#[cold]
pub fn cap_piggyback(rows: &mut [Row]) {
    let most = Grounds::suspected(Because::SenderNotKnown, Cause::ClientThink);
    for row in rows.iter_mut().filter(|row| row.rule == Rule::NaglePiggyback) {
        row.grounds.at_most(most);
    }
}

/// Judges an exchange with needless retransmissions, or one in which both sides take turns.
#[cold]
fn judge_with_needless_or_dialogue(exchange: &Exchange, known: &CaptureFacts<'_>, rows: &mut Vec<Row>) {
    let mut needless: Option<TimeSlice<'_>> = None;
    exchange.slices(|mut piece| {
        let request = needless.take();
        if let Some(request) = request {
            if piece.sender == Side::Server {
                // the request had arrived the first time, so its retransmission is part of the wait for the answer
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

/// Judges one piece: the frequent kinds are matched here, the others in `judge_rare`.
#[inline(always)]
fn judge(piece: &TimeSlice<'_>, known: &CaptureFacts<'_>, rows: &mut Vec<Row>) {
    let paths = known.paths;
    let mut cutter = Cutter::new(piece, rows);
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

/// Judges a piece of a rarer kind, passed by value so that LLVM keeps it in registers.
#[inline(never)]
fn judge_rare(piece: TimeSlice<'_>, known: &CaptureFacts<'_>, rows: &mut Vec<Row>) {
    let (paths, piece) = (known.paths, &piece);
    let sender = |sender_id: u32| known.judged_senders.get(sender_id as usize);
    let cutter = &mut Cutter::new(piece, rows);
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
        Wait::LoneClocked { ack, acked, single } => cwnd::lone(cutter, *ack, *acked, *single, piece, paths),
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
            let waited = piece.end - piece.start;
            let grounds = sender(*sender_id).map_or(Grounds::proven(Because::LeftBeforeAck), |j| {
                j.early(waited, *bytes)
            });
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
