//! Pairs messages into exchanges and keeps, per stream, the steps of both directions until the exchanges
//! that need them are settled. Segments in, exchanges with their time cut into steps out.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::assemble::{Assembler, Room};
use crate::facts::{Facts, flag};
use crate::messages::{At, Close, Messages, Note, Piece as Stretch, Side};
use crate::pool::Pools;
use crate::segment::{ACK, FIN, RST, SYN, Segment};
use crate::wait::{Answer, Data, Outcome, Release, Sender, Step, Wait};

/// Steps remembered per direction; beyond it neighbours are merged, the longer one names both.
const MAX_STEPS: usize = 8192;
/// Exchanges that one stream may have open (pipelining); the oldest are given up as incomplete beyond it.
const MAX_OPEN: usize = 4096;
/// Repeats of one message that are remembered; the newest replace the oldest.
const MAX_COPIES: usize = 8;
/// Relative sequence numbers below 1 exist (data from before the capture); offsets stay positive.
const BIAS: i64 = 1 << 33;
/// An ACK this soon after a repeat (as a share of the leg) was caused by the first copy.
const ANSWERED_SHARE: f64 = 0.95;

/// A step, cut to the exchange that it belongs to.
#[derive(Debug, Clone)]
pub struct Piece {
    pub start: i64,
    pub end: i64,
    pub sender: Side,
    pub step: Step,
}

#[derive(Debug, Clone, Default)]
pub struct Message {
    pub first: At,
    pub last: At,
    pub bytes: u64,
    pub complete: bool,
    /// Stream offset after its last byte.
    end_offset: i64,
    /// Repeats of its bytes: each may be the copy that arrived.
    copies: Vec<Repeat>,
}

/// A repeat of a message's bytes, and its TSval.
#[derive(Debug, Clone, Copy)]
struct Repeat {
    at: At,
    tsval: Option<u32>,
}

impl Message {
    fn repeated(&mut self, at: At, tsval: Option<u32>) {
        if self.copies.len() >= MAX_COPIES {
            self.copies.remove(0);
        }
        self.copies.push(Repeat { at, tsval });
    }

    /// The newest repeat, where it came after what counts as the message's end so far.
    fn newest_copy(&self) -> Option<At> {
        self.copies
            .last()
            .map(|copy| copy.at)
            .filter(|at| at.frame > self.last.frame)
    }
}

/// One request and its answer.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    pub id: u64,
    pub stream: u32,
    pub index: u32,
    pub protocol: &'static str,
    pub method: Option<Cow<'static, str>>,
    pub target: Option<String>,
    pub status: Option<u16>,
    pub request: Message,
    pub response: Option<Message>,
    pub complete: bool,
    pub cut_by: Option<&'static str>,
    pub pair: u32,
    pub pieces: Vec<Piece>,
}

impl Exchange {
    /// As new, with the buffers of the one before.
    fn reset(&mut self, id: u64, stream: u32, index: u32, pair: u32) {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        *self = Exchange {
            id,
            stream,
            index,
            pair,
            pieces,
            ..Exchange::default()
        };
    }

    pub fn start(&self) -> i64 {
        self.request.first.time_ns
    }

    pub fn end(&self) -> At {
        self.response.as_ref().map_or(self.request.last, |r| r.last)
    }
}

/// What all streams share while the capture is read.
#[derive(Debug, Default)]
pub struct Ledger {
    pub next_id: u64,
    pub pools: Pools,
    pub settled: Vec<Box<Exchange>>,
    /// Settled exchanges, to be used again: a capture has many, and each holds buffers.
    pub spare: Vec<Box<Exchange>>,
    pub steps_merged: u64,
    pub held_dropped: u64,
}

/// One segment as the tracker needs it beside the header itself.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a, 'b> {
    pub segment: &'a Segment<'b>,
    pub facts: &'a Facts,
    pub side: Side,
    pub at: At,
    pub mss: u32,
    pub rtt_ns: i64,
    pub syn_seen: bool,
    pub scale_known: bool,
    pub first_copy: Option<At>,
    /// Best round trips so far to the client and to the server, by `Side`.
    pub legs: [Option<i64>; 2],
    pub sacked: Option<i64>,
}

/// The client's packet that acknowledges a response's end.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at: At,
    tsecr: Option<u32>,
    leg: Option<i64>,
}

impl Arrival {
    /// It answers something that was sent before `copy`: it echoes an older timestamp (RFC 7323 4.3: TSecr
    /// names what advanced the window), or came too soon after the copy.
    fn answers_earlier(&self, copy: &Repeat) -> bool {
        if let (Some(echo), Some(tsval)) = (self.tsecr, copy.tsval)
            && echo != tsval
        {
            return (echo.wrapping_sub(tsval) as i32) < 0;
        }
        self.leg
            .is_some_and(|leg| ((self.at.time_ns - copy.at.time_ns) as f64) < leg as f64 * ANSWERED_SHARE)
    }
}

/// A stream that carries data.
pub struct Tracker {
    stream: u32,
    pair: u32,
    /// The pools of both senders, by `Side`.
    pools: [u32; 2],
    senders: [Sender; 2],
    assemblers: [Assembler; 2],
    steps: [VecDeque<Step>; 2],
    messages: Messages,
    notes: Vec<Note>,
    // boxed: an exchange changes hands several times
    open: VecDeque<Box<Exchange>>,
    settling: VecDeque<Box<Exchange>>,
    interim: bool,
    unsolicited: bool,
    pub exchanges: u32,
    closed: [bool; 2],
    clock: i64,
}

fn pick<T>(two: &mut [T; 2], side: Side) -> &mut T {
    let [client, server] = two;
    match side {
        Side::Client => client,
        Side::Server => server,
    }
}

impl Tracker {
    pub fn new(stream: u32, pair: u32, pools: [u32; 2]) -> Self {
        Tracker {
            stream,
            pair,
            pools,
            senders: Default::default(),
            assemblers: [Assembler::new(), Assembler::new()],
            steps: Default::default(),
            messages: Messages::new(),
            notes: Vec::new(),
            open: VecDeque::new(),
            settling: VecDeque::new(),
            interim: false,
            unsolicited: false,
            exchanges: 0,
            closed: [false; 2],
            clock: i64::MIN,
        }
    }

    pub fn pair(&self) -> u32 {
        self.pair
    }

    pub fn protocol(&self) -> &'static str {
        self.messages.protocol()
    }

    /// One segment of the stream; gives why it left when it carries data that brought the stream forward.
    pub fn segment(&mut self, seen: &Seen<'_, '_>, ledger: &mut Ledger) -> Release {
        // a clock that goes back must not make an interval negative
        self.clock = self.clock.max(seen.at.time_ns);
        let at = At {
            time_ns: self.clock,
            ..seen.at
        };
        let side = seen.side;
        let segment = seen.segment;
        for sender in &mut self.senders {
            if let Some(sure) = sender.settled_refutation(at.time_ns) {
                ledger.pools.refute(sure.pool);
            }
        }
        let id_jump = pick(&mut self.senders, side).id_seen(segment.ip_id);
        pick(&mut self.senders, side.other()).answer(&Answer {
            at,
            ack: seen.facts.ack,
            window: i64::from(seen.facts.window),
            scale_known: seen.scale_known,
            len: segment.len,
            fin: segment.has(FIN),
            duplicate: seen.facts.flags & flag::DUPLICATE_ACK != 0,
            sacked: seen.sacked,
            tsval: segment.options.timestamps.map(|t| t.0),
            covered: seen.facts.covered,
        });
        self.acknowledged(side, seen, at, ledger);

        let mut release = Release::default();
        let keep_alive = seen.facts.flags & flag::KEEP_ALIVE != 0 && segment.len <= 1;
        if segment.len > 0 && !keep_alive {
            release = self.data(seen, at, id_jump, ledger);
        }
        if segment.has(FIN) && !segment.has(SYN) {
            self.close(side, at, Close::Fin, ledger);
        }
        if segment.has(RST) {
            self.close(Side::Client, at, Close::Rst, ledger);
            self.close(Side::Server, at, Close::Rst, ledger);
        }
        release
    }

    fn data(&mut self, seen: &Seen<'_, '_>, at: At, id_jump: u16, ledger: &mut Ledger) -> Release {
        let (side, segment) = (seen.side, seen.segment);
        let start = seen.facts.seq + i64::from(segment.has(SYN));
        let [client_pool, server_pool] = self.pools;
        let leg_ns = seen.legs.get(side.index()).copied().flatten().unwrap_or(0);
        let data = Data {
            at,
            start,
            end: start + i64::from(segment.len),
            fin: segment.has(FIN),
            mss: seen.mss,
            tsval: segment.options.timestamps.map(|t| t.0),
            tsecr: segment.options.timestamps.map(|t| t.1),
            ip_id: segment.ip_id,
            rtt_ns: seen.rtt_ns,
            leg_ns,
            pool: if side == Side::Client {
                client_pool
            } else {
                server_pool
            },
        };
        let release = match pick(&mut self.senders, side).data(&data, id_jump, seen.first_copy) {
            Outcome::Needless => Release::default(),
            Outcome::Forward(step) => {
                pick(&mut self.senders, side.other()).peer_spoke(at);
                if let Wait::Small(candidate) = &step.wait {
                    ledger.pools.add(candidate);
                }
                let repaired = matches!(step.wait, Wait::Repair { .. });
                let release = step.release(leg_ns);
                self.keep(side, step, ledger);
                if repaired {
                    self.repaired(side, &data, at);
                }
                release
            }
        };
        let assembler = pick(&mut self.assemblers, side);
        if assembler.next().is_none() {
            assembler.start((if seen.syn_seen { 1 } else { start } + BIAS).max(0) as u64);
        }
        let (messages, notes) = (&mut self.messages, &mut self.notes);
        let offset = (start + BIAS).max(0) as u64;
        let room = assembler.data(
            offset,
            u64::from(segment.len),
            segment.payload,
            &mut |piece: Stretch<'_>| {
                messages.feed(side, at, piece, notes);
            },
        );
        if room == Room::Exceeded {
            ledger.held_dropped += 1;
        }
        self.read_notes(ledger);
        release
    }

    fn keep(&mut self, side: Side, step: Step, ledger: &mut Ledger) {
        let idle = self.open.is_empty() && self.settling.is_empty();
        let steps = pick(&mut self.steps, side);
        if idle {
            steps.clear();
        } else if steps.len() >= MAX_STEPS {
            ledger.steps_merged += 1;
            merge_pairs(steps);
        }
        steps.push_back(step);
    }

    /// The peer's ACK says what it has: holes below it are the capture's, and a finished response arrived.
    fn acknowledged(&mut self, side: Side, seen: &Seen<'_, '_>, at: At, ledger: &mut Ledger) {
        let ack = seen.facts.ack;
        let other = side.other();
        let (messages, notes) = (&mut self.messages, &mut self.notes);
        let assembler = pick(&mut self.assemblers, other);
        if seen.segment.has(ACK) {
            assembler.acked((ack + BIAS).max(0) as u64, &mut |piece: Stretch<'_>| {
                messages.feed(other, at, piece, notes);
            });
        }
        self.read_notes(ledger);
        if side == Side::Client {
            while let Some(first) = self.settling.front() {
                let arrived = first.response.as_ref().is_some_and(|r| ack >= r.end_offset);
                if !arrived && self.settling.len() <= MAX_OPEN {
                    break;
                }
                let [client_leg, _] = seen.legs;
                let tsecr = seen.segment.options.timestamps.map(|t| t.1);
                self.settle_first(
                    Some(Arrival {
                        at,
                        tsecr,
                        leg: client_leg,
                    }),
                    ledger,
                );
            }
        }
    }

    /// The exchange ends with the copy of its response that arrived.
    fn settle_first(&mut self, arrival: Option<Arrival>, ledger: &mut Ledger) {
        let Some(mut exchange) = self.settling.pop_front() else {
            return;
        };
        if let Some(response) = &mut exchange.response {
            let arrived = |copy: &&Repeat| arrival.is_none_or(|a| !a.answers_earlier(copy));
            let late = response.copies.iter().rev().find(arrived).map(|copy| copy.at);
            if let Some(copy) = late.filter(|at| at.frame > response.last.frame) {
                response.last = copy;
            }
        }
        self.finish(exchange, ledger);
    }

    /// A needed repeat may move the end of the message that holds its bytes.
    fn repaired(&mut self, side: Side, data: &Data, at: At) {
        let mut waiting = self.settling.iter_mut().chain(&mut self.open);
        match side {
            Side::Server => {
                // an open response has no end yet: the repeat is of its bytes
                let hit = waiting
                    .filter_map(|e| e.response.as_mut())
                    .find(|r| !r.complete || data.start < r.end_offset);
                if let Some(response) = hit {
                    response.repeated(at, data.tsval);
                }
            }
            Side::Client => {
                let hit = waiting.find(|e| {
                    e.response.is_none() && (!e.request.complete || data.start < e.request.end_offset)
                });
                if let Some(e) = hit {
                    e.request.repeated(at, data.tsval);
                    if e.request.complete {
                        e.request.last = at;
                    }
                }
            }
        }
    }

    fn read_notes(&mut self, ledger: &mut Ledger) {
        if self.notes.is_empty() {
            return;
        }
        let mut notes = std::mem::take(&mut self.notes);
        for note in notes.drain(..) {
            self.note(note, ledger);
        }
        self.notes = notes;
    }

    fn note(&mut self, note: Note, ledger: &mut Ledger) {
        match note {
            Note::Begin {
                side: Side::Client,
                at,
            } => self.open_exchange(at, ledger),
            Note::Begin {
                side: Side::Server,
                at,
            } => {
                self.interim = false;
                match self.open.front_mut() {
                    Some(e) => {
                        self.unsolicited = false;
                        e.response = Some(Message {
                            first: at,
                            last: at,
                            ..Message::default()
                        });
                    }
                    None => self.unsolicited = true, // a greeting, or a time-out notice: nobody asked
                }
            }
            Note::Request { method, target } => {
                if let Some(e) = self.open.back_mut() {
                    (e.method, e.target) = (Some(method), Some(target));
                }
            }
            Note::Response { status, interim } => {
                self.interim = interim;
                if let (Some(e), false, false) = (self.open.front_mut(), interim, self.unsolicited) {
                    e.status = Some(status);
                }
            }
            Note::End { side, at, bytes } => self.message_end(side, at, bytes, None),
            Note::Cut { side, at, bytes, by } => self.message_end(side, at, bytes, Some(by)),
            Note::Lost { .. } => {}
        }
    }

    fn open_exchange(&mut self, at: At, ledger: &mut Ledger) {
        if self.open.len() >= MAX_OPEN
            && let Some(mut oldest) = self.open.pop_front()
        {
            oldest.cut_by = Some("gap");
            self.finish(oldest, ledger);
        }
        let mut exchange = ledger.spare.pop().unwrap_or_default();
        exchange.reset(ledger.next_id, self.stream, self.exchanges, self.pair);
        exchange.request.first = at;
        exchange.request.last = at;
        self.open.push_back(exchange);
        ledger.next_id += 1;
        self.exchanges += 1;
    }

    fn message_end(&mut self, side: Side, at: At, bytes: u64, cut: Option<Close>) {
        let end_offset = pick(&mut self.assemblers, side)
            .next()
            .map_or(0, |n| n as i64 - BIAS);
        match side {
            Side::Client => {
                if let Some(e) = self.open.iter_mut().rev().find(|e| !e.request.complete) {
                    e.request.last = at;
                    e.request.last = e.request.newest_copy().unwrap_or(at);
                    e.request.bytes = bytes;
                    e.request.end_offset = end_offset;
                    e.request.complete = cut.is_none();
                }
            }
            Side::Server if self.interim || self.unsolicited => {
                if self.interim
                    && let Some(e) = self.open.front_mut()
                {
                    e.response = None; // 1xx: the answer is still to come
                }
                (self.interim, self.unsolicited) = (false, false);
            }
            Side::Server => {
                let Some(mut e) = self.open.pop_front() else {
                    return;
                };
                if let Some(r) = &mut e.response {
                    r.last = at;
                    r.bytes = bytes;
                    r.complete = cut.is_none();
                    r.end_offset = end_offset;
                }
                e.complete = cut.is_none();
                e.cut_by = cut.map(cut_word);
                self.settling.push_back(e);
            }
        }
    }

    /// A side ended. After it, what is still open on a server's side will not be answered.
    pub fn close(&mut self, side: Side, at: At, how: Close, ledger: &mut Ledger) {
        if std::mem::replace(pick(&mut self.closed, side), true) && how == Close::Fin {
            return;
        }
        self.messages.close(side, at, how, &mut self.notes);
        self.read_notes(ledger);
        if side == Side::Server {
            while let Some(mut e) = self.open.pop_front() {
                e.cut_by = Some(cut_word(how));
                self.finish(e, ledger);
            }
        }
        if how != Close::Fin {
            while !self.settling.is_empty() {
                self.settle_first(None, ledger);
            }
            for sender in &mut self.senders {
                if let Some(sure) = sender.last_refutation() {
                    ledger.pools.refute(sure.pool);
                }
            }
        }
    }

    /// The exchange leaves with its own part of the steps.
    fn finish(&mut self, mut exchange: Box<Exchange>, ledger: &mut Ledger) {
        exchange.protocol = self.messages.protocol();
        let (start, end) = (exchange.start(), exchange.end().time_ns.max(exchange.start()));
        // up to here the client's own segments made the time pass, from here on the server's
        let border = exchange.request.last.time_ns.clamp(start, end);
        let [client, server] = &self.steps;
        slice(client, Side::Client, start, border, &mut exchange.pieces);
        slice(server, Side::Server, border, end, &mut exchange.pieces);
        ledger.settled.push(exchange);
        if self.open.is_empty() && self.settling.is_empty() {
            self.steps.iter_mut().for_each(VecDeque::clear);
            return;
        }
        let needed = self
            .open
            .iter()
            .chain(&self.settling)
            .map(|e| e.start())
            .min()
            .unwrap_or(i64::MIN);
        for steps in &mut self.steps {
            while steps.front().is_some_and(|s| s.to.time_ns < needed) {
                steps.pop_front();
            }
        }
    }
}

fn cut_word(how: Close) -> &'static str {
    match how {
        Close::Fin => "fin",
        Close::Rst => "rst",
        Close::CaptureEnd => "capture_end",
    }
}

/// The steps that overlap [start, end], without gap: what no step covers is unknown.
fn slice(steps: &VecDeque<Step>, sender: Side, start: i64, end: i64, pieces: &mut Vec<Piece>) {
    let mut at = start;
    let from = steps.partition_point(|s| s.to.time_ns <= start);
    for step in steps.range(from..) {
        if at >= end || step.from.time_ns >= end {
            break;
        }
        if step.from.time_ns > at {
            pieces.push(unseen(at, step.from.time_ns, sender, step));
            at = step.from.time_ns;
        }
        let until = step.to.time_ns.min(end);
        if until > at {
            pieces.push(Piece {
                start: at,
                end: until,
                sender,
                step: step.clone(),
            });
            at = until;
        }
    }
    if at < end {
        let last = steps.back().cloned();
        let step = last.unwrap_or(Step {
            from: At::default(),
            to: At::default(),
            wait: Wait::Hole,
        });
        pieces.push(unseen(at, end, sender, &step));
    }
}

fn unseen(start: i64, end: i64, sender: Side, near: &Step) -> Piece {
    Piece {
        start,
        end,
        sender,
        step: Step {
            wait: Wait::Hole,
            ..near.clone()
        },
    }
}

/// Halves the number of steps: two neighbours become one under the longer one's name.
fn merge_pairs(steps: &mut VecDeque<Step>) {
    let mut merged = VecDeque::with_capacity(steps.len() / 2 + 1);
    while let Some(a) = steps.pop_front() {
        match steps.pop_front() {
            Some(b) => {
                let longer = if b.to.time_ns - b.from.time_ns > a.to.time_ns - a.from.time_ns {
                    &b
                } else {
                    &a
                };
                merged.push_back(Step {
                    from: a.from,
                    to: b.to,
                    wait: longer.wait.clone(),
                });
            }
            None => merged.push_back(a),
        }
    }
    *steps = merged;
}
