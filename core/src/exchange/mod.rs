//! Pairs messages into exchanges and cuts their time into steps. Reads segments with their facts, and the message
//! events of the protocol readers. Returns exchanges, each with the steps of both directions, for `judge`.
//!
//! `Tracker` holds the state of one stream, `Context` the state that all streams share.

mod context;
mod data_connections;
mod flow_control;
mod interner;
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
use crate::observe::{Data, Step};
use crate::segment::Segment;

pub use context::Context;
pub use data_connections::Carried;
use flow_control::FlowControl;
pub use interner::{Interner, Symbol};
pub use steps::TimeSlice;
use steps::{CutSteps, take_turns};
pub use tracker::{ReadSoFar, StreamIds, Tracker};

/// Upper bound on the retransmissions kept per message; the newest replace the oldest.
const MAX_COPIES: usize = 8;
/// Upper bound on the step capacity that a reused exchange keeps.
const MAX_SPARE_STEPS: usize = 64;

/// One message: a request or a response.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pub first: At,
    pub last: At,
    /// The packet in which all its bytes had passed for the first time.
    whole: At,
    pub bytes: u64,
    /// Whether its end was seen.
    pub is_complete: bool,
    /// Stream offset after its last byte.
    end_offset: i64,
    /// Repeats of its bytes. Any of them may be the copy that the receiver got.
    retransmissions: Retransmissions,
}

/// The retransmissions of one message, allocated only if there are any.
#[derive(Debug, Clone, Default)]
#[allow(clippy::box_collection)] // 8 bytes in place of 32
struct Retransmissions(Option<Box<VecDeque<RetransmittedBytes>>>);

impl Retransmissions {
    fn iter(&self) -> impl DoubleEndedIterator<Item = &RetransmittedBytes> {
        self.0.iter().flat_map(|list| list.iter())
    }

    #[cold]
    fn push(&mut self, retransmission: RetransmittedBytes) {
        let list = self.0.get_or_insert_default();
        if list.len() >= MAX_COPIES {
            list.pop_front();
        }
        list.push_back(retransmission);
    }
}

/// Bytes of a message that were sent again.
#[derive(Debug, Clone, Copy)]
struct RetransmittedBytes {
    at: At,
    start_seq: i64,
    end_seq: i64,
    tsval: Option<u32>,
}

impl Message {
    fn clear(&mut self) {
        let Message {
            first,
            last,
            whole,
            bytes,
            is_complete,
            end_offset,
            retransmissions,
        } = self;
        (*first, *last, *whole) = (At::default(), At::default(), At::default());
        (*bytes, *end_offset, *is_complete) = (0, 0, false);
        retransmissions.0 = None;
    }

    fn repeated(&mut self, at: At, data: &Data) {
        self.retransmissions.push(RetransmittedBytes {
            at,
            start_seq: data.start_seq,
            end_seq: data.end_seq,
            tsval: data.tsval,
        });
    }

    /// The newest retransmission, if it came after the packet that counts as the message's end.
    fn newest_copy(&self) -> Option<At> {
        self.retransmissions
            .iter()
            .next_back()
            .map(|copy| copy.at)
            .filter(|at| at.frame > self.last.frame)
    }
}

/// The table that an exchange becomes a row of: `exchanges`, `connects`, `pushes` or `gaps`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowKind {
    /// A request and its response, or the turns of a dialogue.
    #[default]
    Exchange,
    /// A connection's set-up.
    Connect,
    /// A message that the server sent without a request.
    Push,
    /// The client's pause between a response and its next request, or before data that waited for an ACK.
    Pause,
    /// The wait before data that the client sent without waiting for a response, and that an ACK released.
    Held,
    /// A suspected stall in a capture of one direction.
    OneWay,
}

/// What preceded a connection's first request, with times in ns.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// The DNS lookup before the first SYN.
    pub lookup: Option<Found>,
    /// From the first SYN to the ACK that completed the handshake.
    pub handshake_ns: Option<i64>,
    /// The TLS handshake, from its first byte to its last.
    pub tls_ns: Option<i64>,
    /// Version, cipher and other properties of the TLS handshake, as read from its hellos.
    pub secured: Option<TlsSetup>,
    /// From the ACK that completed the handshake to the first byte of a server that speaks first.
    pub greeting_ns: Option<i64>,
}

/// Why an exchange is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutBy {
    Fin,
    Rst,
    /// Either side cancelled it, and the connection went on.
    Reset,
    CaptureEnd,
    /// Packets are missing in the capture, or too many exchanges were open at once.
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

/// Times of the parts of a response body, as the protocol reader splits it (the events of an event stream, say).
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

/// One request with its response, or another interval of a connection that has a row. What `request` and `response` are
/// depends on `row`:
///
/// - `Exchange`: the two messages. `response` is None if none began.
/// - `Connect`: the SYNs; and from the answer to them (SYN-ACK or RST) to the last packet of the set-up.
/// - `Push`: an empty message where the push begins; and the push itself.
/// - `Pause`: from the response's last byte, or the client's small segment before, to the client's next data; and None.
/// - `Held`: from the segment before, or the server's last data, to the segment that an ACK released; and None.
/// - `OneWay`: from the packet before the suspected stall to the one after it; and None.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    pub id: u64,
    pub stream: u32,
    pub index: u32,
    pub row: RowKind,
    /// What preceded the first request; only of a connection's set-up.
    pub opening: Option<Box<Opening>>,
    pub kind: MessageKind,
    /// The side that accepted the connection sends the requests (an OpenFlow controller).
    pub by_server: bool,
    /// Identifier that request and response share, in protocols that answer in any order.
    key: Option<u64>,
    pub protocol: Option<Protocol>,
    pub method: Option<SmolStr>,
    pub target: Option<SmolStr>,
    pub host: Option<SmolStr>,
    pub tags: Option<Box<Tags>>,
    pub status: Option<u16>,
    pub status_text: Option<SmolStr>,
    pub is_error: bool,
    pub pieces: BodyPartStats,
    pub request: Message,
    /// Highest byte that the client had acknowledged when it began the request: the response lies beyond it.
    ack_at_request: i64,
    pub response: Option<Message>,
    /// The packet that the response answers, if an ACK released the response's first segment after more had been
    /// sent.
    answered_from: Option<At>,
    /// Both sides sent in turn before it was over.
    pub is_dialogue: bool,
    pub is_complete: bool,
    pub cut_by: Option<CutBy>,
    /// Id of the pair of hosts, for their RTTs.
    pub pair: u32,
    /// Ports of the client and of the server.
    pub ports: [u16; 2],
    /// Id of the evidence on its request's sender.
    pub sender_id: u32,
    /// RTTs to each side that its kernel answered.
    pub kernel_rtts: [KernelRtt; 2],
    /// The capture contains every segment of the connection twice.
    pub is_doubled: bool,
    /// Time in ns of the previous response's end, if this request was complete before it and the protocol keeps the
    /// order of requests: until then the server may not have begun on this one.
    pub previous_response_until_ns: Option<i64>,
    /// The step that the first segment ended, if its kernel held it behind another message of its sender until an
    /// ACK.
    pub held_before: Option<Box<Step>>,
    /// All steps of client and server that overlap the exchange; others may be among them.
    pub steps: [Vec<Step>; 2],
}

/// Empty lists with room for two steps each. A list without capacity would allocate room for four with its first
/// step, and an open stream has six lists of one or two steps.
fn few_steps() -> [Vec<Step>; 2] {
    [Vec::with_capacity(2), Vec::with_capacity(2)]
}

impl Exchange {
    /// Resets the exchange and keeps its buffers.
    fn clear(&mut self) {
        // In place, as a new value would be built on the stack and copied. All fields are named, so that none is
        // forgotten.
        let Exchange {
            id: _,
            stream: _,
            index: _,
            pair: _,
            ports: _,
            sender_id,
            kernel_rtts,
            is_doubled,
            previous_response_until_ns,
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
            is_error,
            pieces,
            request,
            ack_at_request,
            response,
            answered_from,
            is_dialogue,
            is_complete,
            cut_by,
            held_before,
            steps,
        } = self;
        (*row, *kind, *key, *by_server) = (RowKind::Exchange, MessageKind::Turn, None, false);
        (*opening, *held_before) = (None, None);
        (*protocol, *method, *target, *host, *tags) = (None, None, None, None, None);
        (*status, *status_text, *is_error) = (None, None, false);
        (*pieces, *cut_by, *response, *answered_from) = (BodyPartStats::default(), None, None, None);
        (*is_dialogue, *is_complete, *ack_at_request, *sender_id) = (false, false, 0, u32::MAX);
        (*kernel_rtts, *is_doubled, *previous_response_until_ns) = (Default::default(), false, None);
        request.clear();
        for steps in steps {
            steps.clear();
            if steps.capacity() > MAX_SPARE_STEPS {
                *steps = Vec::new();
            }
        }
    }

    #[cold]
    fn add_tags(&mut self, more: &Tags) {
        self.tags.get_or_insert_default().join(more);
    }

    pub fn start(&self) -> i64 {
        self.request.first.time_ns
    }

    /// The side that sends the request.
    #[inline(always)]
    pub fn requester(&self) -> Side {
        if self.by_server {
            Side::Server
        } else {
            Side::Client
        }
    }

    /// The side that sends the first message.
    pub fn first_sender(&self) -> Side {
        match self.row {
            RowKind::Push => Side::Server,
            _ => self.requester(),
        }
    }

    /// Moves the start back to `since`: the first message was written by then, and its kernel held it behind another
    /// message until that was acknowledged.
    #[cold]
    pub fn move_start_back(&mut self, since: At) {
        let side = self.first_sender();
        if let Some(step) = self.held_before.take() {
            self.request.first = since;
            if side == Side::Server {
                self.request.last = since; // no request
            }
            let steps = side.pick_mut(&mut self.steps);
            steps.retain(|kept| kept.to.time_ns > step.to.time_ns);
            steps.insert(0, *step);
        }
    }

    /// Calls `give` for the slices of its time, in order and without holes.
    pub fn slices<'a>(&'a self, mut give: impl FnMut(TimeSlice<'a>)) {
        if self.is_dialogue {
            let (start, _, end) = self.boundaries();
            let [client, server] = &self.steps;
            take_turns([client, server], start, end, &mut give);
        } else {
            self.slices_by_side().into_iter().flatten().for_each(give);
        }
    }

    /// Slices of an exchange that is no dialogue: first the requester's, then the other side's.
    #[inline(always)]
    pub fn slices_by_side(&self) -> [impl Iterator<Item = TimeSlice<'_>>; 2] {
        let (start, border, end) = self.boundaries();
        let (first, second) = (self.requester(), self.requester().other());
        [
            CutSteps::new(first.pick::<Vec<Step>>(&self.steps), first, start, border),
            CutSteps::new(second.pick::<Vec<Step>>(&self.steps), second, border, end),
        ]
    }

    /// Its first and last packet.
    fn span(&self) -> (At, At) {
        let start = self.request.first;
        (start, later(self.end(), start))
    }

    /// Its first packet, the packet where the requester's steps end and the other side's begin, and its last packet.
    fn boundaries(&self) -> (At, At, At) {
        let (start, end) = self.span();
        let request_end = later(self.answered_from.unwrap_or(self.request.last), start);
        let border = if request_end.time_ns < end.time_ns {
            request_end
        } else {
            end
        };
        (start, border, end)
    }

    /// Whether the evidence of other exchanges cannot change its causes.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        let [client, server] = &self.steps;
        self.held_before.is_none()
            && (!client.iter().chain(server).any(|step| step.wait.needs_evidence())
                || self.slices_are_plain())
    }

    /// `is_plain` by the slices, as a step that depends on evidence may lie outside of the exchange.
    #[inline(never)]
    fn slices_are_plain(&self) -> bool {
        let mut plain = true;
        self.slices(|piece| plain &= !piece.step.wait.needs_evidence());
        plain
    }

    /// Ends the response with its first copy, if the retransmission that it ended with was spurious (`spurious`:
    /// frames).
    #[cold]
    pub fn end_with_first_copy(&mut self, spurious: &AHashSet<u64>) {
        if let Some(answer) = self
            .response
            .as_mut()
            .filter(|answer| spurious.contains(&answer.last.frame))
            && (answer.first.frame..answer.last.frame).contains(&answer.whole.frame)
        {
            answer.last = answer.whole;
        }
    }

    pub fn end(&self) -> At {
        self.response
            .as_ref()
            .map_or(self.request.last, |response| response.last)
    }
}

/// The later one of the two; `at` if both have the same time.
fn later(at: At, floor: At) -> At {
    if at.time_ns < floor.time_ns { floor } else { at }
}

/// One segment as the tracker needs it, with its facts and what its stream knows.
#[derive(Debug, Clone, Copy)]
pub struct SeenSegment<'a, 'b> {
    pub segment: &'a Segment<'b>,
    pub facts: &'a Facts,
    pub side: Side,
    pub at: At,
    /// Largest payload of a segment in this direction, in bytes.
    pub mss: u32,
    /// Smaller than a full segment, or with a small tail, and the end of what the program wrote.
    pub small: bool,
    /// The capture contains the SYN of the stream.
    pub syn_seen: bool,
    /// Both sides have agreed on selective ACKs.
    pub sacks: bool,
    /// Best RTTs so far to the client and to the server, in ns; None if unknown.
    pub rtts: &'a [Option<i64>; 2],
    /// Round trips to this side that its kernel answered.
    pub trips: &'a RoundTrips,
    /// SACK blocks, relative and unwrapped.
    pub sack: Option<&'a [(i64, i64)]>,
    /// The window scale is known, so that the window has a size in bytes.
    pub scale_known: bool,
    /// Number of frames from its sender that the capture lacks before it, by IPv4 identifications.
    pub missing: Option<u16>,
    /// The sender counts these identifications on this connection alone.
    pub own_ids: bool,
}

impl SeenSegment<'_, '_> {
    /// The D-SACK block: bytes that arrived twice (RFC 2883).
    fn dsack_block(&self) -> Option<(i64, i64)> {
        let first = self.sack?.first()?;
        (self.facts.flags & flag::DSACK != 0).then_some(*first)
    }

    /// End of the highest SACK block beyond the cumulative ACK.
    fn highest_sacked(&self) -> Option<i64> {
        let ends = self.sack?.iter().map(|block| block.1);
        ends.max().filter(|end| *end > self.facts.ack)
    }
}
