//! The partition of an exchange's time into named causes. Steps, legs and pooled evidence in, rows that
//! follow each other without gap or overlap out: each row's end is the next one's start, to the nanosecond.

mod clocked;
mod names;

use ahash::AHashSet;

use crate::exchange::{Exchange, Piece};
use crate::messages::{At, Side};
use crate::pool::{Judged, Ruling};
use crate::wait::{CORK_NS, Candidate, Repair, Wait};

use clocked::{clocked, lone};
pub use names::{Cause, Owner};

/// Up to three frames that a reader can look up in Wireshark.
pub type Evidence = [u64; 3];

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    pub start: i64,
    pub end: i64,
    pub cause: Cause,
    pub parent: Option<Cause>,
    pub owner: Owner,
    pub from_frame: u64,
    pub to_frame: u64,
    pub evidence: Evidence,
    pub rule: &'static str,
    pub confidence: f64,
}

/// The path as far as it is known: best round trips to the client and to the server, by `Side`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Legs {
    pub min: [Option<i64>; 2],
}

impl Legs {
    fn to(&self, side: Side) -> i64 {
        self.min.get(side.index()).copied().flatten().unwrap_or(0)
    }
}

/// What the whole capture says, for the judging of one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub legs: &'a Legs,
    /// The stream of the exchange.
    pub stream: u32,
    /// By the numbers of the pools.
    pub pools: &'a [Judged],
    /// Frames of repeats that were not needed.
    pub needless: &'a AHashSet<u64>,
}

struct Cutter<'a> {
    rows: &'a mut Vec<Row>,
    at: i64,
    end: i64,
    from_frame: u64,
    to_frame: u64,
}

impl Cutter<'_> {
    /// Gives the time up to `until` to a cause; nothing where that time has passed already.
    #[inline(always)]
    fn cut(&mut self, until: i64, mut row: Row) {
        let until = until.min(self.end);
        if until <= self.at {
            return;
        }
        (row.start, row.end) = (self.at, until);
        (row.from_frame, row.to_frame) = (self.from_frame, self.to_frame);
        self.at = until;
        match self.rows.last_mut() {
            // what one rule says twice in a row is one row; a stall keeps its own evidence
            Some(last)
                if last.end == row.start
                    && (last.cause, last.parent, last.owner, last.rule)
                        == (row.cause, row.parent, row.owner, row.rule)
                    && !matches!(row.cause, Cause::Nagle | Cause::DelayedAck) =>
            {
                last.end = row.end;
                last.to_frame = row.to_frame;
                last.confidence = last.confidence.min(row.confidence);
                if let Some(slot) = last.evidence.last_mut() {
                    *slot = row.to_frame;
                }
            }
            _ => self.rows.push(row),
        }
    }
}

fn row(cause: Cause, owner: Owner, rule: &'static str, confidence: f64, evidence: Evidence) -> Row {
    Row {
        start: 0,
        end: 0,
        cause,
        parent: None,
        owner,
        from_frame: 0,
        to_frame: 0,
        evidence,
        rule,
        confidence,
    }
}

fn think(side: Side) -> Cause {
    match side {
        Side::Client => Cause::ClientThink,
        Side::Server => Cause::ServerThink,
    }
}

/// The time of one exchange, judged piece by piece, in order; added to `rows`.
pub fn partition(exchange: &Exchange, known: &Known<'_>, rows: &mut Vec<Row>) {
    if known.needless.is_empty() {
        return exchange.pieces(|piece| judge(&piece, known, rows));
    }
    let mut needless: Option<Piece<'_>> = None;
    exchange.pieces(|mut piece| {
        match needless.take() {
            // the request had come the first time: what it waited for is the answer
            Some(request) if piece.sender == Side::Server => {
                (piece.start, piece.asked) = (request.start, request.start);
                piece.from_frame = request.from_frame;
            }
            Some(request) => judge(&request, known, rows),
            None => {}
        }
        if piece.sender == Side::Client
            && matches!(piece.step.wait, Wait::Repair { .. })
            && known.needless.contains(&piece.step.to.frame)
        {
            needless = Some(piece);
        } else {
            judge(&piece, known, rows);
        }
    });
    if let Some(request) = needless {
        judge(&request, known, rows);
    }
}

fn judge(piece: &Piece<'_>, known: &Known<'_>, rows: &mut Vec<Row>) {
    let (legs, pools) = (known.legs, known.pools);
    let (from, to) = (piece.step.from, piece.step.to);
    let side = piece.sender;
    let mut cutter = Cutter {
        rows,
        at: piece.start,
        end: piece.end,
        from_frame: piece.from_frame,
        to_frame: piece.to_frame,
    };
    let end = piece.end;
    let ends = [piece.from_frame, piece.to_frame, 0];
    let program = |rule, confidence| row(think(side), Owner::of(side), rule, confidence, ends);
    match &piece.step.wait {
        Wait::Turn { since } => turn(&mut cutter, *since, piece, legs, &After::Program),
        Wait::QueuedTurn { since, queued } => turn(&mut cutter, *since, piece, legs, &After::Queue(*queued)),
        Wait::LateTurn { since, pool } => {
            let waited = to.time_ns - since.time_ns - legs.to(side);
            let corked = pools.get(*pool as usize).is_some_and(|judged| judged.corked);
            let after = if corked && CORK_NS.contains(&waited) {
                After::Cork
            } else {
                After::Program
            };
            turn(&mut cutter, *since, piece, legs, &after);
        }
        Wait::Suspected { held } => suspected(&mut cutter, *held, piece),
        Wait::App => {
            reach(&mut cutter, piece, legs);
            cutter.cut(end, program("app", 0.9));
        }
        Wait::FullBurst => {
            cutter.cut(end, row(Cause::Bandwidth, Owner::Network, "burst", 0.8, ends));
        }
        Wait::Burst => cutter.cut(end, program("write_gap", 0.9)),
        Wait::Spaced => cutter.cut(end, row(Cause::Bandwidth, Owner::Network, "spacing", 0.7, ends)),
        Wait::Small(c) => match pools.get(c.pool as usize) {
            Some(judged) => small(&mut cutter, c, judged.rule(known.stream, c), piece, legs),
            None => cutter.cut(end, row(Cause::Unknown, Owner::Capture, "no_pool", 0.3, ends)),
        },
        Wait::Clocked { ack, acked } => {
            let named = clocked(*ack, *acked, from, to, side, legs);
            if named.cause == think(side) {
                reach(&mut cutter, piece, legs);
            }
            cutter.cut(end, named);
        }
        Wait::LoneClocked {
            ack,
            acked,
            collapsed,
        } => lone(&mut cutter, *ack, *acked, *collapsed, piece, legs),
        Wait::Window { opened } | Wait::ZeroWindow { opened } => {
            let zero = matches!(piece.step.wait, Wait::ZeroWindow { .. });
            let cause = if zero {
                Cause::ZeroWindow
            } else {
                Cause::ReceiveWindow
            };
            let evidence = [from.frame, opened.frame, to.frame];
            cutter.cut(end, row(cause, Owner::of(side.other()), "window", 0.95, evidence));
        }
        Wait::Repair { how, .. } if known.needless.contains(&to.frame) => {
            let (cause, rule) = match how {
                Repair::Fast | Repair::Reordered => (Cause::Reordering, "overtaken"),
                // what looked lost was late, or its ACK was lost or late
                _ => (Cause::Queueing, "not_lost"),
            };
            cutter.cut(end, row(cause, Owner::Network, rule, 0.9, ends));
        }
        Wait::Repair { how, first, filled } => {
            let (cause, rule, confidence) = match (how, first) {
                (Repair::Fast, None) if filled.is_none() => (Cause::FastRetransmit, "copy_not_seen", 0.7),
                (Repair::Fast, _) => (Cause::FastRetransmit, "sack_or_duplicate_acks", 0.9),
                (Repair::TailProbe, Some(_)) => (Cause::Tlp, "tail_probe", 0.9),
                (Repair::Timeout, Some(_)) => (Cause::Rto, "timeout", 0.9),
                // bytes that were missing came, long after they were missed
                (Repair::TailProbe, None) if filled.is_some() => (Cause::Tlp, "hole_filled", 0.8),
                (Repair::Timeout, None) if filled.is_some() => (Cause::Rto, "hole_filled", 0.8),
                // only the gap in the sender's IP identifications tells
                (Repair::TailProbe, None) => (Cause::Tlp, "ip_id_gap", 0.7),
                (Repair::Timeout, None) => (Cause::Rto, "ip_id_gap", 0.7),
                (Repair::Reordered, _) => (Cause::Reordering, "overtaken", 0.8),
                (Repair::Syn, _) => (Cause::SynRto, "handshake_repeated", 0.95),
            };
            let evidence = [first.map_or(from.frame, |f| f.frame), to.frame, 0];
            cutter.cut(end, row(cause, Owner::Network, rule, confidence, evidence));
        }
        Wait::Cork => cutter.cut(end, row(Cause::Cork, Owner::of(side), "cork_timer", 0.7, ends)),
        Wait::Handshake => {
            // kernels answer at once: what is above the best is the path's, or a host without time for its packets
            match legs.min.get(side.index()).copied().flatten() {
                Some(_) => leg(&mut cutter, piece.start, side, legs),
                None => cutter.cut(end, row(Cause::Network, Owner::Network, "leg", 0.7, ends)),
            }
            cutter.cut(end, row(Cause::Queueing, Owner::Network, "handshake", 0.6, ends));
        }
        Wait::Hole => cutter.cut(
            end,
            row(Cause::CaptureGap, Owner::Capture, "frames_missing", 0.9, ends),
        ),
    }
}

/// What a side's first segment waited for, beside the path at its best.
enum After {
    Program,
    Cork,
    /// The program, and then so long the path.
    Queue(i64),
}

/// From the peer's last byte to the answer's first: the path there and back, then the program, or its cork.
fn turn(cutter: &mut Cutter<'_>, since: At, piece: &Piece<'_>, legs: &Legs, after: &After) {
    if piece.sender == Side::Server {
        reach(cutter, piece, legs);
        return rest(cutter, Side::Server, legs, after);
    }
    if since.time_ns > cutter.at {
        // inside a request: until the server has spoken ("100 Continue") the client waits for it
        let (end, to_frame) = (cutter.end, cutter.to_frame);
        (cutter.end, cutter.to_frame) = (since.time_ns.min(end), since.frame);
        leg(cutter, cutter.at, Side::Server, legs);
        think_on(cutter, Side::Server, legs);
        (cutter.end, cutter.from_frame, cutter.to_frame) = (end, since.frame, to_frame);
    }
    leg(cutter, cutter.at, Side::Client, legs);
    rest(cutter, Side::Client, legs, after);
}

fn rest(cutter: &mut Cutter<'_>, side: Side, legs: &Legs, after: &After) {
    match after {
        After::Program => think_on(cutter, side, legs),
        After::Cork => cork(cutter, side),
        After::Queue(queued) => {
            // the answer's time stamp says when it left its host
            let (end, evidence) = (cutter.end, [cutter.from_frame, cutter.to_frame, 0]);
            cutter.end = end.saturating_sub(*queued).max(cutter.at);
            think_on(cutter, side, legs);
            cutter.end = end;
            let late = row(Cause::Queueing, Owner::Network, "timestamps", 0.8, evidence);
            cutter.cut(end, late);
        }
    }
}

/// The pool says that this side's messages leave with the kernel's timer. A program that sleeps on the same tick
/// would look alike.
fn cork(cutter: &mut Cutter<'_>, side: Side) {
    let evidence = [cutter.from_frame, cutter.to_frame, 0];
    let named = row(Cause::Cork, Owner::of(side), "cork_pool", 0.6, evidence);
    cutter.cut(cutter.end, named);
}

/// One direction alone: the peer's ACK may have been waited for (seen from the sender), or this side's late ACK may
/// have been (seen from the receiver, where a round trip passes on either side of it).
fn suspected(cutter: &mut Cutter<'_>, held: Option<At>, piece: &Piece<'_>) {
    let sender = piece.sender;
    let middle = held.map_or(0, |ack| ack.frame);
    let evidence = [piece.from_frame, middle, piece.to_frame];
    let sure = if held.is_some() { 0.4 } else { 0.5 };
    let nagle = row(Cause::Nagle, Owner::of(sender), "one_way", sure, evidence);
    let delayed = Row {
        parent: Some(Cause::Nagle),
        ..row(
            Cause::DelayedAck,
            Owner::of(sender.other()),
            "one_way",
            sure,
            evidence,
        )
    };
    if let Some(ack) = held {
        let round = cutter.end.saturating_sub(ack.time_ns);
        let path = row(Cause::Network, Owner::Network, "one_way", sure, evidence);
        cutter.cut(cutter.at.saturating_add(round), path);
        cutter.cut(ack.time_ns, delayed);
        cutter.cut(cutter.end, nagle);
    } else {
        cutter.cut(cutter.end, delayed);
    }
}

/// Until the request has reached the server and an answer could be back: the path. A pipelined request is
/// still on its way while earlier answers come.
#[inline(always)]
fn reach(cutter: &mut Cutter<'_>, piece: &Piece<'_>, legs: &Legs) {
    if piece.sender == Side::Server {
        leg(cutter, piece.asked, Side::Server, legs);
    }
}

#[inline(always)]
fn leg(cutter: &mut Cutter<'_>, from: i64, side: Side, legs: &Legs) {
    let evidence = [cutter.from_frame, cutter.to_frame, 0];
    cutter.cut(
        from + legs.to(side),
        row(Cause::Network, Owner::Network, "leg", 0.9, evidence),
    );
}

/// The rest of the cutter's time is this side's program's.
#[inline(always)]
fn think_on(cutter: &mut Cutter<'_>, side: Side, legs: &Legs) {
    let evidence = [cutter.from_frame, cutter.to_frame, 0];
    let known = legs.min.get(side.index()).copied().flatten().is_some();
    let sure = if known { 0.9 } else { 0.6 };
    cutter.cut(
        cutter.end,
        row(think(side), Owner::of(side), "turn", sure, evidence),
    );
}

fn small(cutter: &mut Cutter<'_>, c: &Candidate, ruling: Ruling, piece: &Piece<'_>, legs: &Legs) {
    let side = piece.sender;
    let evidence = [c.small.frame, c.ack.frame, c.freed.frame];
    let nagle = |rule, confidence| row(Cause::Nagle, Owner::of(side), rule, confidence, evidence);
    match ruling {
        Ruling::Held { hold, confidence } => {
            let rule = "nagle_delayed_ack";
            cutter.cut(c.ack.time_ns - hold, nagle(rule, confidence));
            let held = row(
                Cause::DelayedAck,
                Owner::of(side.other()),
                rule,
                confidence,
                evidence,
            );
            cutter.cut(
                c.ack.time_ns,
                Row {
                    parent: Some(Cause::Nagle),
                    ..held
                },
            );
            cutter.cut(cutter.end, nagle(rule, confidence));
        }
        Ruling::Waited { rule, confidence } => cutter.cut(cutter.end, nagle(rule, confidence)),
        Ruling::Pause { confidence } => {
            reach(cutter, piece, legs);
            cutter.cut(
                cutter.end,
                row(think(side), Owner::of(side), "look_alike", confidence, evidence),
            );
        }
    }
}
