//! The partition of an exchange's time into named causes. Steps, legs and pooled evidence in, rows that
//! follow each other without gap or overlap out: each row's end is the next one's start, to the nanosecond.

mod clocked;
mod cutter;
mod legs;
mod names;

use ahash::AHashSet;

use crate::base::{At, Side};
use crate::exchange::{Exchange, Piece};
use crate::pool::{Freed, Judged, Ruling, Verdict};
use crate::wait::{CORK_NS, Candidate, NOISE_NS, Repair, Wait};

use clocked::{PROMPT_NS, clocked, lone};
use cutter::{Cutter, Named, row};
pub use legs::Legs;
pub use names::{Cause, Owner, Rule};

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
    pub rule: Rule,
    pub confidence: f64,
}

/// What the capture itself puts in doubt is no more than this.
const SUSPECTED: f64 = 0.5;
/// What connections that the capture does not put together put in doubt is no more than this.
const PROBABLE: f64 = 0.7;

/// What the whole capture says, for the judging of one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub legs: &'a Legs,
    /// The stream of the exchange.
    pub stream: u32,
    /// By the numbers of the pools.
    pub pools: &'a [Judged],
    /// Parts of its messages may have passed on other connections.
    pub spread: bool,
    /// Frames of repeats that were not needed, if there is any.
    pub needless: Option<&'a AHashSet<u64>>,
}

impl Known<'_> {
    /// The packet of this frame was a repeat that was not needed.
    fn is_needless(&self, frame: u64) -> bool {
        self.needless.is_some_and(|needless| needless.contains(&frame))
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
    if known.needless.is_some() || exchange.dialogue {
        return partition_rare(exchange, known, rows);
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

/// Packets that are in the capture twice make waits of their own, and spoil the legs: nothing is more than suspected, but
/// stalls whose evidence holds together all the same.
#[cold]
pub fn doubt(rows: &mut [Row]) {
    let stall = |row: &Row| matches!(row.cause, Cause::Nagle | Cause::DelayedAck) && row.confidence >= 0.9;
    for row in rows.iter_mut().filter(|row| !stall(row)) {
        row.confidence = row.confidence.min(SUSPECTED);
    }
}

/// Parts of its messages may have passed on other connections: nothing is more than probable.
#[cold]
pub fn spread(rows: &mut [Row]) {
    for row in rows {
        row.confidence = row.confidence.min(PROBABLE);
    }
}

/// The same where some repeats were not needed, or both sides take turns.
#[cold]
fn partition_rare(exchange: &Exchange, known: &Known<'_>, rows: &mut Vec<Row>) {
    let mut needless: Option<Piece<'_>> = None;
    exchange.pieces(|mut piece| {
        let request = needless.take();
        if let Some(request) = request {
            if piece.sender == Side::Server {
                // the request had come the first time: what it waited for is the answer
                (piece.start, piece.asked) = (request.start, request.start);
                piece.from_frame = request.from_frame;
            } else {
                judge_apart(&request, known, rows);
            }
        }
        if piece.sender == Side::Client
            && matches!(piece.step.wait, Wait::Repair { .. })
            && known.is_needless(piece.step.to.frame)
        {
            needless = Some(piece);
        } else {
            judge_apart(&piece, known, rows);
        }
    });
    if let Some(request) = needless {
        judge_apart(&request, known, rows);
    }
}

#[inline(never)]
fn judge_apart(piece: &Piece<'_>, known: &Known<'_>, rows: &mut Vec<Row>) {
    judge(piece, known, rows);
}

/// Gives the time of a piece to what it was spent on: here what nearly all are.
#[inline(always)]
fn judge(piece: &Piece<'_>, known: &Known<'_>, rows: &mut Vec<Row>) {
    let (legs, side) = (known.legs, piece.sender);
    let mut cutter = Cutter::of(piece, rows);
    let ends = [piece.from_frame, piece.to_frame, 0];
    let program = |rule, confidence| row(think(side), Owner::of(side), rule, confidence, ends);
    let rest = match &piece.step.wait {
        Wait::Turn { since } => {
            approach(&mut cutter, *since, piece, legs);
            thought(&cutter, side, legs, 0)
        }
        Wait::App => {
            reach(&mut cutter, piece, legs);
            program(Rule::App, 0.9)
        }
        Wait::FullBurst => row(Cause::Bandwidth, Owner::Network, Rule::Burst, 0.8, ends),
        Wait::Burst => program(Rule::WriteGap, 0.9),
        Wait::Spaced => row(Cause::Bandwidth, Owner::Network, Rule::Spacing, 0.7, ends),
        Wait::Clocked { ack, acked } => {
            let named = clocked(*ack, *acked, piece.step.from, piece.step.to, side, legs);
            if named.cause == think(side) {
                reach(&mut cutter, piece, legs);
            }
            named
        }
        _ => return judge_rare(*piece, known, rows),
    };
    cutter.cut(piece.end, rest);
}

/// The same of the others. By value: a piece that nobody points to stays in registers.
#[inline(never)]
fn judge_rare(piece: Piece<'_>, known: &Known<'_>, rows: &mut Vec<Row>) {
    let (legs, pools, side, end) = (known.legs, known.pools, piece.sender, piece.end);
    let mut cutter = Cutter::of(&piece, rows);
    let (from, to) = (piece.step.from, piece.step.to);
    let ends = [piece.from_frame, piece.to_frame, 0];
    let rest = match &piece.step.wait {
        Wait::QueuedTurn { since, late, queued } => {
            approach(&mut cutter, *since, &piece, legs);
            if *queued == 0 {
                thought(&cutter, side, legs, *late)
            } else {
                // the answer's time stamp says when it left its host
                cutter.end = end.saturating_sub(i64::from(*queued)).max(cutter.at);
                think_on(&mut cutter, side, legs);
                cutter.end = end;
                let evidence = [cutter.from_frame, cutter.to_frame, 0];
                row(Cause::Queueing, Owner::Network, Rule::Timestamps, 0.8, evidence)
            }
        }
        Wait::LateTurn { since, pool } => {
            approach(&mut cutter, *since, &piece, legs);
            let waited = to.time_ns - since.time_ns - legs.to(side);
            let judged = pools.get(*pool as usize).filter(|_| CORK_NS.contains(&waited));
            if judged.is_some_and(|judged| judged.corked) {
                // a program that sleeps on the same tick would look alike
                let evidence = [cutter.from_frame, cutter.to_frame, 0];
                row(Cause::Cork, Owner::of(side), Rule::CorkPool, 0.6, evidence)
            } else {
                let mut named = thought(&cutter, side, legs, 0);
                if judged.is_some_and(|judged| judged.timed) {
                    named.confidence = f64::min(named.confidence, 0.7); // it may have been a cork
                }
                named
            }
        }
        Wait::Suspected { held } => return suspected(&mut cutter, *held, &piece),
        Wait::Small(c) => match pools.get(c.pool as usize) {
            Some(judged) => return small(&mut cutter, c, judged.rule(known.stream, c), &piece, legs),
            None => row(Cause::Unknown, Owner::Capture, Rule::NoPool, 0.3, ends),
        },
        Wait::LoneClocked {
            ack,
            acked,
            collapsed,
        } => return lone(&mut cutter, *ack, *acked, *collapsed, &piece, legs),
        Wait::Window { opened } | Wait::ZeroWindow { opened } => {
            let zero = matches!(piece.step.wait, Wait::ZeroWindow { .. });
            let cause = if zero {
                Cause::ZeroWindow
            } else {
                Cause::ReceiveWindow
            };
            let evidence = [from.frame, opened.frame, to.frame];
            row(cause, Owner::of(side.other()), Rule::Window, 0.95, evidence)
        }
        Wait::Repair { how, .. } if known.is_needless(to.frame) => {
            let (cause, rule) = match how {
                Repair::Fast | Repair::Reordered => (Cause::Reordering, Rule::Overtaken),
                // what looked lost was late, or its ACK was lost or late
                _ => (Cause::Queueing, Rule::NotLost),
            };
            row(cause, Owner::Network, rule, 0.9, ends)
        }
        Wait::Repair { how, first, filled } => {
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
            if matches!(how, Repair::TailProbe | Repair::Timeout)
                && first.is_some()
                && legs.beside(side.other())
            {
                // the first copy had come as far as its host
                row(cause, Owner::of(side.other()), rule, 0.8, evidence)
            } else {
                row(cause, Owner::Network, rule, confidence, evidence)
            }
        }
        Wait::Probe { small, pool } => {
            let judged = pools.get(*pool as usize);
            match judged.map_or(Verdict::Open, |judged| judged.verdict_on(known.stream)) {
                Verdict::Proven => {
                    let evidence = [small.frame, to.frame, 0];
                    row(Cause::Tlp, Owner::Network, Rule::TailProbe, 0.9, evidence)
                }
                verdict => {
                    reach(&mut cutter, &piece, legs);
                    let sure = if verdict == Verdict::Open { 0.6 } else { 0.9 };
                    row(think(side), Owner::of(side), Rule::App, sure, ends)
                }
            }
        }
        Wait::Unsure => {
            reach(&mut cutter, &piece, legs);
            row(think(side), Owner::of(side), Rule::App, 0.7, ends)
        }
        Wait::Queued => {
            reach(&mut cutter, &piece, legs);
            row(Cause::Queueing, Owner::Network, Rule::Timestamps, 0.8, ends)
        }
        Wait::Cork => row(Cause::Cork, Owner::of(side), Rule::CorkTimer, 0.7, ends),
        Wait::Corked { small, ack } => {
            let evidence = [small.frame, ack.frame, to.frame];
            if to.time_ns - ack.time_ns - legs.to(side) <= PROMPT_NS {
                row(Cause::Cork, Owner::of(side), Rule::CorkAck, 0.7, evidence)
            } else {
                reach(&mut cutter, &piece, legs);
                row(think(side), Owner::of(side), Rule::App, 0.7, ends)
            }
        }
        Wait::Handshake => {
            // kernels answer at once: what is above the best is the path's, or a host without time for its packets
            match legs.min.get(side.index()).copied().flatten() {
                Some(_) => leg(&mut cutter, piece.start, side, legs),
                None => cutter.cut(end, row(Cause::Network, Owner::Network, Rule::Leg, 0.7, ends)),
            }
            row(Cause::Queueing, Owner::Network, Rule::Handshake, 0.6, ends)
        }
        Wait::Hole => row(Cause::CaptureGap, Owner::Capture, Rule::FramesMissing, 0.9, ends),
        _ => return, // judged already
    };
    cutter.cut(end, rest);
}

/// From the peer's last byte to the answer's first: the path there and back. What follows is the program's, mostly.
#[inline(always)]
fn approach(cutter: &mut Cutter<'_>, since: At, piece: &Piece<'_>, legs: &Legs) {
    if piece.sender == Side::Server {
        return reach(cutter, piece, legs);
    }
    if since.time_ns > cutter.at {
        continued(cutter, since, legs);
    }
    leg(cutter, cutter.at, Side::Client, legs);
}

/// Inside a request: until the server has spoken ("100 Continue") the client waits for it.
#[cold]
fn continued(cutter: &mut Cutter<'_>, since: At, legs: &Legs) {
    let (end, to_frame) = (cutter.end, cutter.to_frame);
    (cutter.end, cutter.to_frame) = (since.time_ns.min(end), since.frame);
    leg(cutter, cutter.at, Side::Server, legs);
    think_on(cutter, Side::Server, legs);
    (cutter.end, cutter.from_frame, cutter.to_frame) = (end, since.frame, to_frame);
}

/// One direction alone: the peer's ACK may have been waited for (seen from the sender), or this side's late ACK may
/// have been (seen from the receiver, where a round trip passes on either side of it).
fn suspected(cutter: &mut Cutter<'_>, held: Option<At>, piece: &Piece<'_>) {
    let sender = piece.sender;
    let middle = held.map_or(0, |ack| ack.frame);
    let evidence = [piece.from_frame, middle, piece.to_frame];
    let sure = if held.is_some() { 0.4 } else { 0.5 };
    let nagle = row(Cause::Nagle, Owner::of(sender), Rule::OneWay, sure, evidence);
    let delayed = Named {
        parent: Some(Cause::Nagle),
        ..row(
            Cause::DelayedAck,
            Owner::of(sender.other()),
            Rule::OneWay,
            sure,
            evidence,
        )
    };
    if let Some(ack) = held {
        let round = cutter.end.saturating_sub(ack.time_ns);
        let path = row(Cause::Network, Owner::Network, Rule::OneWay, sure, evidence);
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
        row(Cause::Network, Owner::Network, Rule::Leg, 0.9, evidence),
    );
}

/// This side's program had the turn; its segment passed so much later than at best, by its clock. Where the larger part
/// of the time may be the path's, that is no proof against it.
#[inline(always)]
fn thought(cutter: &Cutter<'_>, side: Side, legs: &Legs, late: u32) -> Named {
    let evidence = [cutter.from_frame, cutter.to_frame, 0];
    let sure = match legs.min.get(side.index()).copied().flatten() {
        None => 0.6,
        Some(leg) => {
            let round = legs.rounds.get(side.index()).copied().unwrap_or_default();
            let beyond = round.beyond(leg) + i64::from(late);
            let doubt = beyond >= NOISE_NS && beyond > (cutter.end - cutter.at) / 2;
            if doubt { 0.7 } else { 0.9 }
        }
    };
    row(think(side), Owner::of(side), Rule::Turn, sure, evidence)
}

/// The rest of the cutter's time is this side's program's.
fn think_on(cutter: &mut Cutter<'_>, side: Side, legs: &Legs) {
    let named = thought(cutter, side, legs, 0);
    cutter.cut(cutter.end, named);
}

fn small(cutter: &mut Cutter<'_>, c: &Candidate, ruling: Ruling, piece: &Piece<'_>, legs: &Legs) {
    let side = piece.sender;
    let evidence = [c.small.frame, c.ack.frame, c.freed.frame];
    let nagle = |rule, confidence| row(Cause::Nagle, Owner::of(side), rule, confidence, evidence);
    match ruling {
        Ruling::Held { hold, confidence } => {
            let rule = Rule::NagleDelayedAck;
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
                Named {
                    parent: Some(Cause::Nagle),
                    ..held
                },
            );
            cutter.cut(cutter.end, nagle(rule, confidence));
        }
        Ruling::Waited { freed, confidence } => {
            let rule = match freed {
                Freed::ByAck => Rule::NagleWait,
                Freed::ByData => Rule::NaglePiggyback,
                Freed::ByFin => Rule::NagleFinRelease,
            };
            cutter.cut(cutter.end, nagle(rule, confidence));
        }
        Ruling::Pause { confidence } => {
            reach(cutter, piece, legs);
            cutter.cut(
                cutter.end,
                row(
                    think(side),
                    Owner::of(side),
                    Rule::LookAlike,
                    confidence,
                    evidence,
                ),
            );
        }
    }
}
