//! Pairs messages into exchanges and keeps, per stream, the steps of both directions until the exchanges
//! that need them are settled. Segments in, exchanges with their time cut into steps out.

mod context;
mod data_connections;
mod flow_control;
mod interner;
mod multipath;
mod pauses;
pub mod setup;
mod steps;
mod tracker;

use std::collections::VecDeque;

use ahash::AHashSet;
use smol_str::SmolStr;

use crate::base::{At, Side};
use crate::evidence::rtt::{KernelRtt, RoundTrips};
use crate::facts::{Facts, flag};
use crate::lookup::Found;
use crate::messages::{Close, Kind as MessageKind, Protocol, Tags, TlsSetup};
use crate::observe::{Data, Step, Wait};
use crate::segment::Segment;

pub use context::Context;
pub use data_connections::Carried;
use flow_control::FlowControl;
pub use interner::{Interner, Symbol};
pub use steps::TimeSlice;
use steps::{CutSteps, take_turns};
pub use tracker::Tracker;

/// Repeats of one message that are remembered; the newest replace the oldest.
const MAX_COPIES: usize = 8;
/// Room for steps that an exchange keeps when it is used again.
const MAX_SPARE_STEPS: usize = 64;

#[derive(Debug, Clone, Default)]
pub struct Message {
    pub first: At,
    pub last: At,
    /// When its end passed for the first time.
    whole: At,
    pub bytes: u64,
    pub complete: bool,
    /// Stream offset after its last byte.
    end_offset: i64,
    /// Repeats of its bytes: each may be the copy that arrived.
    copies: Copies,
}

/// The repeats of one message. Few messages have any.
#[derive(Debug, Clone, Default)]
#[allow(clippy::box_collection)] // 8 bytes in place of 32
struct Copies(Option<Box<VecDeque<Repeat>>>);

impl Copies {
    fn iter(&self) -> impl DoubleEndedIterator<Item = &Repeat> {
        self.0.iter().flat_map(|all| all.iter())
    }

    #[cold]
    fn push(&mut self, repeat: Repeat) {
        let all = self.0.get_or_insert_default();
        if all.len() >= MAX_COPIES {
            all.pop_front();
        }
        all.push_back(repeat);
    }
}

/// A repeat of a message's bytes, and its TSval.
#[derive(Debug, Clone, Copy)]
struct Repeat {
    at: At,
    start: i64,
    end: i64,
    tsval: Option<u32>,
}

impl Message {
    fn clear(&mut self) {
        let Message {
            first,
            last,
            whole,
            bytes,
            complete,
            end_offset,
            copies,
        } = self;
        (*first, *last, *whole) = (At::default(), At::default(), At::default());
        (*bytes, *end_offset, *complete) = (0, 0, false);
        copies.0 = None;
    }

    fn repeated(&mut self, at: At, data: &Data) {
        self.copies.push(Repeat {
            at,
            start: data.start,
            end: data.end,
            tsval: data.tsval,
        });
    }

    /// The newest repeat, where it came after what counts as the message's end so far.
    fn newest_copy(&self) -> Option<At> {
        self.copies
            .iter()
            .next_back()
            .map(|copy| copy.at)
            .filter(|at| at.frame > self.last.frame)
    }
}

/// What a row is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowKind {
    /// A request and its answer, or a turn and the other side's.
    #[default]
    Exchange,
    /// A connection's set-up.
    Connect,
    /// What a server sent without a request.
    Push,
    /// A client's pause between requests.
    Pause,
    /// The wait before what a client sent without waiting for an answer, which followed an ACK.
    Held,
    /// What one direction alone lets us suspect.
    OneWay,
}

/// What came before a connection's first request, and how long each took, in ns.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// What the client had looked up before.
    pub lookup: Option<Found>,
    /// From the first SYN to the ACK that made the connection.
    pub handshake_ns: Option<i64>,
    /// The TLS handshake, from its first byte to its last.
    pub tls_ns: Option<i64>,
    /// How TLS was set up, as its hellos tell.
    pub secured: Option<TlsSetup>,
    /// From that ACK to the first byte of a server that speaks first.
    pub greeting_ns: Option<i64>,
}

/// Why an exchange is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutBy {
    Fin,
    Rst,
    /// Either side gave it up, and the connection went on.
    Reset,
    CaptureEnd,
    /// Packets are missing, or too much was open at once.
    Gap,
}

impl CutBy {
    pub fn word(self) -> &'static str {
        match self {
            CutBy::Fin => "fin",
            CutBy::Rst => "rst",
            CutBy::Reset => "reset",
            CutBy::CaptureEnd => "capture_end",
            CutBy::Gap => "gap",
        }
    }
}

impl From<Close> for CutBy {
    fn from(how: Close) -> Self {
        match how {
            Close::Fin => CutBy::Fin,
            Close::Rst => CutBy::Rst,
            Close::CaptureEnd => CutBy::CaptureEnd,
        }
    }
}

/// The pieces of an answer's body, as its reader cuts it.
#[derive(Debug, Clone, Copy, Default)]
pub struct BodyPartStats {
    pub count: u32,
    pub first_ns: i64,
    last_ns: i64,
    pub longest_gap_ns: i64,
}

impl BodyPartStats {
    #[inline(always)]
    pub(in crate::exchange) fn add(&mut self, at: At) {
        if self.count == 0 {
            self.first_ns = at.time_ns;
        } else {
            self.longest_gap_ns = self.longest_gap_ns.max(at.time_ns - self.last_ns);
        }
        self.count = self.count.saturating_add(1);
        self.last_ns = at.time_ns;
    }
}

/// One request and its answer, or another stretch of a connection's time that has a row.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    pub id: u64,
    pub stream: u32,
    pub index: u32,
    pub row: RowKind,
    /// Of a connection's set-up.
    pub opening: Option<Box<Opening>>,
    pub kind: MessageKind,
    /// The side that accepted the connection asks, and the one that opened it answers (an OpenFlow controller).
    pub by_server: bool,
    /// By which its answer is known, in protocols that answer in any order.
    key: Option<u64>,
    pub protocol: Option<Protocol>,
    pub method: Option<SmolStr>,
    pub target: Option<SmolStr>,
    pub host: Option<SmolStr>,
    pub tags: Option<Box<Tags>>,
    pub status: Option<u16>,
    pub status_text: Option<SmolStr>,
    pub error: bool,
    pub pieces: BodyPartStats,
    pub request: Message,
    /// What the client had acknowledged when it began to ask: the answer lies beyond.
    ack_at_request: i64,
    pub response: Option<Message>,
    /// What its first segment answers, where an ACK has freed that and more had been sent meanwhile.
    answered_from: Option<At>,
    /// Both sides spoke in turn before it was over.
    pub dialogue: bool,
    pub complete: bool,
    pub cut_by: Option<CutBy>,
    pub pair: u32,
    /// Client's and server's.
    pub ports: [u16; 2],
    /// Of its request's sender.
    pub sender_id: u32,
    /// What the path to each side took by the answers of its kernel.
    pub rounds: [KernelRtt; 2],
    /// Its connection's segments are in the capture twice.
    pub doubled: bool,
    /// When the answer to the request before it had passed, where this request was whole by then and the protocol
    /// keeps the order of the requests.
    pub behind_until: Option<i64>,
    /// The wait that its first segment ended behind another message of the same sender's, whose ACK let it go.
    pub before: Option<Box<Step>>,
    /// Both senders' steps that overlap it, and maybe others.
    pub steps: [Vec<Step>; 2],
}

/// No steps, and room for two on each side. (The first step of a list without room would take room for four, and an open
/// stream has six lists that hold one or two.)
fn few_steps() -> [Vec<Step>; 2] {
    [Vec::with_capacity(2), Vec::with_capacity(2)]
}

impl Exchange {
    /// As new, with the buffers of the one before.
    fn clear(&mut self) {
        // in place: a new value would be built on the stack and copied; all fields are named, so that none is forgotten
        let Exchange {
            id: _,
            stream: _,
            index: _,
            pair: _,
            ports: _,
            sender_id,
            rounds,
            doubled,
            behind_until,
            row,
            opening,
            kind,
            by_server,
            key,
            protocol,
            method,
            target,
            host,
            tags,
            status,
            status_text,
            error,
            pieces,
            request,
            ack_at_request,
            response,
            answered_from,
            dialogue,
            complete,
            cut_by,
            before,
            steps,
        } = self;
        (*row, *kind, *key, *by_server) = (RowKind::Exchange, MessageKind::Turn, None, false);
        (*opening, *before) = (None, None);
        (*protocol, *method, *target, *host, *tags) = (None, None, None, None, None);
        (*status, *status_text, *error) = (None, None, false);
        (*pieces, *cut_by, *response, *answered_from) = (BodyPartStats::default(), None, None, None);
        (*dialogue, *complete, *ack_at_request, *sender_id) = (false, false, 0, u32::MAX);
        (*rounds, *doubled, *behind_until) = (Default::default(), false, None);
        request.clear();
        for steps in steps {
            steps.clear();
            if steps.capacity() > MAX_SPARE_STEPS {
                *steps = Vec::new();
            }
        }
    }

    #[cold]
    fn tag(&mut self, more: &Tags) {
        self.tags.get_or_insert_default().join(more);
    }

    pub fn start(&self) -> i64 {
        self.request.first.time_ns
    }

    /// Who sends its request.
    #[inline(always)]
    pub fn asker(&self) -> Side {
        if self.by_server {
            Side::Server
        } else {
            Side::Client
        }
    }

    /// Who sends the first message of it.
    pub fn begun_by(&self) -> Side {
        match self.row {
            RowKind::Push => Side::Server,
            _ => self.asker(),
        }
    }

    /// Its first message was written by then, behind another one, and its kernel held it until that was acknowledged.
    #[cold]
    pub fn begins_before(&mut self, since: At) {
        let side = self.begun_by();
        if let Some(step) = self.before.take() {
            self.request.first = since;
            if side == Side::Server {
                self.request.last = since; // no request
            }
            let [client, server] = &mut self.steps;
            let steps = if side == Side::Server { server } else { client };
            steps.retain(|kept| kept.to.time_ns > step.to.time_ns);
            steps.insert(0, *step);
        }
    }

    /// Its time by the steps, in order and without gap.
    pub fn pieces<'a>(&'a self, mut give: impl FnMut(TimeSlice<'a>)) {
        if self.dialogue {
            let (start, _, end) = self.parts();
            let [client, server] = &self.steps;
            take_turns([client, server], start, end, &mut give);
        } else {
            self.pieces_by_side().into_iter().flatten().for_each(give);
        }
    }

    /// Steps of an exchange that is no dialogue: first the client's, then the server's.
    #[inline(always)]
    pub fn pieces_by_side(&self) -> [impl Iterator<Item = TimeSlice<'_>>; 2] {
        let (start, border, end) = self.parts();
        let [client, server] = &self.steps;
        let (request_steps, answer_steps) = if self.by_server {
            (server, client)
        } else {
            (client, server)
        };
        [
            CutSteps::new(request_steps, self.asker(), start, border),
            CutSteps::new(answer_steps, self.asker().other(), border, end),
        ]
    }

    /// Where it begins and where it ends.
    fn span(&self) -> (At, At) {
        let start = self.request.first;
        (start, later(self.end(), start))
    }

    /// Where it begins, where the client's steps end and the server's begin, and where it ends.
    fn parts(&self) -> (At, At, At) {
        let (start, end) = self.span();
        let request_end = later(self.answered_from.unwrap_or(self.request.last), start);
        let border = if request_end.time_ns < end.time_ns {
            request_end
        } else {
            end
        };
        (start, border, end)
    }

    /// Whether the evidence of other exchanges cannot change its causes: nothing of Nagle's, nothing that a cork may have
    /// held, and nothing repeated.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        let [client, server] = &self.steps;
        self.before.is_none()
            && (!(client.iter().any(Step::depends) || server.iter().any(Step::depends))
                || self.pieces_are_plain())
    }

    /// Its steps, where it may share a step with other exchanges.
    #[inline(never)]
    fn pieces_are_plain(&self) -> bool {
        let mut plain = true;
        self.pieces(|piece| plain &= !piece.step.depends());
        plain
    }

    /// The copy that the answer ended with was not needed: it had come the first time.
    #[cold]
    pub fn ends_with_first(&mut self, needless: &AHashSet<u64>) {
        if let Some(answer) = self
            .response
            .as_mut()
            .filter(|answer| needless.contains(&answer.last.frame))
            && (answer.first.frame..answer.last.frame).contains(&answer.whole.frame)
        {
            answer.last = answer.whole;
        }
    }

    pub fn end(&self) -> At {
        self.response.as_ref().map_or(self.request.last, |r| r.last)
    }
}

impl Step {
    /// The evidence of other exchanges decides what it waited for.
    fn depends(&self) -> bool {
        matches!(
            self.wait,
            Wait::Small(_)
                | Wait::FreedTurn { .. }
                | Wait::Repair(_)
                | Wait::LateTurn { .. }
                | Wait::TimedTurn { .. }
        )
    }
}

/// `at`, or `floor` where that is later.
fn later(at: At, floor: At) -> At {
    if at.time_ns < floor.time_ns { floor } else { at }
}

/// One segment as the tracker needs it beside the header itself.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a, 'b> {
    pub segment: &'a Segment<'b>,
    pub facts: &'a Facts,
    pub side: Side,
    pub at: At,
    pub mss: u32,
    /// Less than a full segment, or with a small tail, and the end of what the program wrote.
    pub small: bool,
    pub syn_seen: bool,
    /// Both sides have agreed on selective ACKs.
    pub sacks: bool,
    /// Best round trips so far to the client and to the server, by `Side`.
    pub rtts: &'a [Option<i64>; 2],
    /// Round trips to this side that its kernel answered.
    pub trips: &'a RoundTrips,
    /// SACK blocks, relative and unwrapped.
    pub sack: Option<&'a [(i64, i64)]>,
    pub scale_known: bool,
    /// Frames of its sender that the capture lacks before it, by IPv4 identifications.
    pub missing: Option<u16>,
    /// Those identifications count on this connection alone.
    pub own_ids: bool,
}

impl Seen<'_, '_> {
    /// The block that reports bytes which came twice (RFC 2883).
    fn came_twice(&self) -> Option<(i64, i64)> {
        let first = self.sack?.first()?;
        (self.facts.flags & flag::DSACK != 0).then_some(*first)
    }

    /// The highest byte that arrived beyond a hole.
    fn sacked(&self) -> Option<i64> {
        let ends = self.sack?.iter().map(|block| block.1);
        ends.max().filter(|end| *end > self.facts.ack)
    }
}
