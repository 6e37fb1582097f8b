//! A stream that carries data: its bytes in order, its messages paired, its steps kept until the exchanges
//! that need them are settled.

mod pairing;

use std::collections::VecDeque;

use super::aside::{self, Place};
use super::steps::{merge_pairs, slice, take_turns};
use super::{Exchange, Ledger, Repeat, Seen};
use crate::assemble::{Assembler, Room};
use crate::facts::flag;
use crate::messages::{At, Close, Messages, Piece as Stretch, Side};
use crate::segment::{ACK, FIN, RST, SYN};
use crate::wait::{Answer, Data, OneWay, Outcome, Passed, Release, Sender, Step, Wait};

/// Steps remembered per direction; beyond it neighbours are merged, the longer one names both.
const MAX_STEPS: usize = 8192;
/// The same where all streams together remember `MAX_STEPS_IN_ALL`.
const FEW_STEPS: usize = 512;
const MAX_STEPS_IN_ALL: usize = 1 << 17;
/// What all streams may hold out of order; beyond it the stream that would hold more gives up its holes.
const MAX_HELD_IN_ALL: usize = 16 << 20;
/// Exchanges that one stream may have open (pipelining); the oldest are given up as incomplete beyond it.
const MAX_OPEN: usize = 4096;
/// Relative sequence numbers below 1 exist (data from before the capture); offsets stay positive.
const BIAS: i64 = 1 << 33;
/// An ACK this soon after a repeat (as a share of the leg) was caused by the first copy.
const ANSWERED_SHARE: f64 = 0.95;

/// The client's packet that acknowledges a response's end.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at: At,
    tsecr: Option<u32>,
    leg: Option<i64>,
    /// Bytes that it reports as having come twice.
    twice: Option<(i64, i64)>,
}

impl Arrival {
    /// It answers something that was sent before `copy`: it echoes an older timestamp (RFC 7323 4.3: TSecr
    /// names what advanced the window), or came too soon after the copy.
    fn answers_earlier(&self, copy: &Repeat) -> bool {
        if self
            .twice
            .is_some_and(|(start, end)| copy.start < end && copy.end > start)
        {
            return true; // the first copy had come before
        }
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
    /// How many of them the ledger knows of; it hears of long messages only.
    counted: usize,
    messages: Messages,
    // boxed: an exchange changes hands several times
    open: VecDeque<Box<Exchange>>,
    settling: VecDeque<Box<Exchange>>,
    interim: bool,
    unsolicited: bool,
    /// What the client has acknowledged.
    client_ack: i64,
    /// Where the last answers ended is not known: some may not be in the capture.
    answers_lost: bool,
    /// What had been acknowledged when a series of requests was sent, whose answers can no longer be told apart.
    mixed: Option<i64>,
    /// An answer came although nobody had asked: the capture may lack the request.
    unasked: bool,
    /// The newest open request is such a one: its answer has been seen.
    answered: bool,
    /// The packet that showed that the bytes of the present one had been sent before.
    shown: Option<At>,
    /// The client's step that the present packet ends, where it is a pause.
    paused: Option<Step>,
    /// A short pause without another so far, and the index of the request after it.
    lone_pause: Option<Box<(Step, u32)>>,
    /// Whether there was one before.
    pauses: bool,
    /// While only this side has been captured.
    alone: Option<Box<(Side, OneWay)>>,
    pub exchanges: u32,
    /// The time that all exchanges took together.
    pub busy: i64,
    /// And the client's pauses between them.
    idle: i64,
    closed: [bool; 2],
    clock: i64,
    /// The packet that is being read.
    frame: u64,
}

crate::pack::packed!(struct Tracker {
    stream, pair, pools, senders, assemblers, steps, counted, messages, open, settling, interim, unsolicited, client_ack,
    answers_lost, mixed, unasked, answered, shown, paused, lone_pause, pauses, alone,
    exchanges, busy, idle, closed, clock, frame,
});

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
            counted: 0,
            messages: Messages::new(),
            open: VecDeque::new(),
            settling: VecDeque::new(),
            interim: false,
            unsolicited: false,
            client_ack: 0,
            answers_lost: false,
            mixed: None,
            unasked: false,
            answered: false,
            shown: None,
            paused: None,
            lone_pause: None,
            pauses: false,
            alone: None,
            exchanges: 0,
            busy: 0,
            idle: 0,
            closed: [false; 2],
            clock: i64::MIN,
            frame: 0,
        }
    }

    pub fn pair(&self) -> u32 {
        self.pair
    }

    /// Only this side has been captured so far.
    pub fn alone(&mut self, side: Side) {
        self.alone = Some(Box::new((side, OneWay::default())));
    }

    fn place(&self) -> Place {
        Place {
            stream: self.stream,
            index: self.exchanges,
            pair: self.pair,
        }
    }

    /// Tells how many steps are remembered now.
    #[cold]
    fn count_steps(&mut self, ledger: &mut Ledger) {
        let [client, server] = &self.steps;
        let before = std::mem::replace(&mut self.counted, client.len() + server.len());
        ledger.steps = (ledger.steps + self.counted).saturating_sub(before);
    }

    /// The stream is over.
    pub fn forget_steps(&mut self, ledger: &mut Ledger) {
        ledger.steps = ledger.steps.saturating_sub(std::mem::take(&mut self.counted));
    }

    /// Both sides have ended, and no exchange waits for anything.
    pub fn is_done(&self) -> bool {
        self.closed == [true; 2] && self.open.is_empty() && self.settling.is_empty()
    }

    pub fn protocol(&self) -> &'static str {
        self.messages.protocol()
    }

    /// What the server calls itself.
    pub fn software(&self) -> Option<&str> {
        self.messages.software()
    }

    /// One segment of the stream; gives why it left when it carries data that brought the stream forward.
    #[inline(always)]
    pub fn segment(&mut self, seen: &Seen<'_, '_>, ledger: &mut Ledger) -> Release {
        // a clock that goes back must not make an interval negative
        self.clock = self.clock.max(seen.at.time_ns);
        let at = At {
            time_ns: self.clock,
            ..seen.at
        };
        self.frame = at.frame;
        let side = seen.side;
        let segment = seen.segment;
        if self.alone.is_some() {
            self.listen(seen, at);
        }
        for sender in &mut self.senders {
            sender.settle_refutation(at.time_ns);
        }
        let id_jump = pick(&mut self.senders, side).id_seen(segment.ip_id);
        let [client_pool, server_pool] = self.pools;
        let peer = pick(&mut self.senders, side.other());
        let sure = peer.sure_refutations(id_jump > 1);
        if sure > 0 {
            let pool = if side == Side::Server {
                client_pool
            } else {
                server_pool
            };
            ledger.pools.refute(pool, sure);
        }
        peer.answer(&Answer {
            at,
            ack: seen.facts.ack,
            window: i64::from(seen.facts.window),
            scale_known: seen.scale_known,
            len: segment.len,
            fin: segment.has(FIN),
            duplicate: seen.facts.flags & flag::DUPLICATE_ACK != 0,
            sacked: seen.sacked(),
            tsval: segment.options.timestamps.map(|t| t.0),
            covered: seen.facts.covered,
        });
        if let Some(twice) = seen.came_twice()
            && let Some(repeat) = pick(&mut self.senders, side.other()).came_twice(twice)
        {
            ledger.not_needed(repeat);
        }
        self.acknowledged(side, seen, at, ledger);

        let mut release = Release::default();
        let keep_alive = seen.facts.flags & flag::KEEP_ALIVE != 0 && segment.len <= 1;
        if segment.len == 0 && !segment.has(SYN) && !segment.has(RST) {
            pick(&mut self.senders, side).passed(seen.facts.seq, at, segment.ip_id);
        }
        if segment.len > 0 && !keep_alive {
            release = self.data(seen, at, id_jump, ledger);
        }
        if segment.has(FIN) && !segment.has(SYN) {
            let end = seen.facts.seq + i64::from(segment.len);
            self.read(
                side,
                at,
                u64::MAX,
                |assembler, give| assembler.fin(offset(end), give),
                ledger,
            );
        }
        for side in [Side::Client, Side::Server] {
            // a FIN may come before bytes that are still to be sent again
            if pick(&mut self.assemblers, side).ended() {
                self.close(side, at, Close::Fin, ledger);
            }
        }
        if segment.has(RST) {
            self.end(at, Close::Rst, ledger);
        }
        release
    }

    /// Lets the assembler give what is in order now, and takes note of what the messages say. Missing bytes
    /// below `holes` were lost by the capture (others were cut off by its snap length): no packet brought
    /// them, and frame 0 says so.
    fn read(
        &mut self,
        side: Side,
        at: At,
        holes: u64,
        work: impl FnOnce(&mut Assembler, &mut dyn FnMut(Stretch<'_>)),
        ledger: &mut Ledger,
    ) {
        let (messages, notes) = (&mut self.messages, &mut ledger.notes);
        let assembler = pick(&mut self.assemblers, side);
        let mut next = assembler.next().unwrap_or(holes);
        let before = assembler.weight();
        let mut give = |piece: Stretch<'_>| {
            let lost = matches!(piece, Stretch::Missing(_)) && next < holes;
            notes.offset = next;
            next = next.saturating_add(piece.len());
            let frame = if lost { 0 } else { at.frame };
            messages.feed(side, At { frame, ..at }, piece, notes)
        };
        work(assembler, &mut give);
        let after = assembler.weight();
        if before != after {
            ledger.held = (ledger.held + after).saturating_sub(before);
            if ledger.held > MAX_HELD_IN_ALL && after > before {
                assembler.finish(&mut give);
                ledger.held = ledger.held.saturating_sub(after);
                ledger.distrust(
                    "tcp",
                    "too many bytes out of order in all streams; a hole was passed over",
                    at,
                );
            }
        }
        self.read_notes(ledger);
    }

    /// The other side was not captured yet.
    #[cold]
    fn listen(&mut self, seen: &Seen<'_, '_>, at: At) {
        match &mut self.alone {
            Some(alone) if alone.0 == seen.side => alone.1.packet(Passed {
                at,
                start: seen.facts.seq,
                len: seen.segment.len,
                ack: seen.facts.ack,
                mss: seen.mss,
                stamps: seen.segment.options.timestamps,
            }),
            alone => *alone = None,
        }
    }

    /// Nothing more will come: a reset, or the end of the capture.
    pub fn end(&mut self, at: At, how: Close, ledger: &mut Ledger) {
        self.frame = at.frame;
        if let Some(alone) = self.alone.take() {
            for found in alone.1.suspects() {
                aside::suspect(found, alone.0, self.place(), ledger);
            }
        }
        for side in [Side::Client, Side::Server] {
            self.read(
                side,
                at,
                u64::MAX,
                |assembler, give| assembler.finish(give),
                ledger,
            );
        }
        for side in [Side::Client, Side::Server] {
            self.close(side, at, how, ledger);
        }
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
        (self.shown, self.paused) = (None, None);
        if pick(&mut self.senders, side).too_many_holes(start) {
            ledger.distrust(
                "tcp",
                "too many holes at once; what fills the rest is taken for repeats",
                at,
            );
        }
        let mut release = Release::default();
        let outcome = pick(&mut self.senders, side).data(&data, id_jump, seen.first_copy);
        if let Outcome::Forward(step) = &outcome {
            release = step.release(leg_ns);
            self.forward(side, step, &data, ledger);
        }
        if let Outcome::Forward(step) = outcome {
            self.keep(side, step, ledger);
        }
        let first = if seen.syn_seen { 1 } else { start };
        pick(&mut self.assemblers, side).start(offset(first));
        let mut room = Room::Enough;
        let read = |assembler: &mut Assembler, mut give: &mut dyn FnMut(Stretch<'_>)| {
            room = assembler.data(offset(start), u64::from(segment.len), segment.payload, &mut give);
        };
        self.read(side, at, offset(start), read, ledger);
        if room == Room::Exceeded {
            ledger.distrust("tcp", "too many bytes out of order; a hole was passed over", at);
        }
        release
    }

    /// A segment brought its side forward: what its step says to others than the exchange.
    #[inline(always)]
    fn forward(&mut self, side: Side, step: &Step, data: &Data, ledger: &mut Ledger) {
        let at = data.at;
        pick(&mut self.senders, side.other()).peer_spoke(at);
        match &step.wait {
            Wait::Small(candidate) if !ledger.pools.add(candidate) => ledger.distrust(
                "tcp",
                "too much evidence on delayed ACKs; the rest is only counted",
                at,
            ),
            Wait::Turn { .. } | Wait::QueuedTurn { .. } if data.is_small() => {
                ledger.pools.began(data.pool, None)
            }
            Wait::LateTurn { since, pool } => {
                let waited = at.time_ns - since.time_ns;
                ledger.pools.began(*pool, Some((waited, at.time_ns)));
            }
            Wait::Repair { filled, .. } => {
                self.shown = *filled;
                self.repaired(side, data, at);
            }
            _ => {}
        }
        if side == Side::Client {
            let pause = aside::paused(step, data.leg_ns);
            self.idle = self.idle.saturating_add(pause);
            if pause > 0 && aside::matters(self.idle, self.busy) {
                self.paused = Some(step.clone());
            }
        }
    }

    fn keep(&mut self, side: Side, step: Step, ledger: &mut Ledger) {
        let idle = self.open.is_empty() && self.settling.is_empty();
        let steps = pick(&mut self.steps, side);
        if idle {
            steps.clear();
        } else if steps.len() >= FEW_STEPS && (steps.len() >= MAX_STEPS || ledger.steps >= MAX_STEPS_IN_ALL) {
            ledger.distrust("tcp", "a long exchange is judged in coarser steps", step.to);
            merge_pairs(steps);
        }
        steps.push_back(step);
        if self.counted > 0 || steps.len() >= FEW_STEPS {
            self.count_steps(ledger);
        }
    }

    /// The peer's ACK says what it has: holes below it are the capture's, and a finished response arrived.
    #[inline(always)]
    fn acknowledged(&mut self, side: Side, seen: &Seen<'_, '_>, at: At, ledger: &mut Ledger) {
        let ack = seen.facts.ack;
        let other = side.other();
        if seen.segment.has(ACK) && !pick(&mut self.assemblers, other).acked_in_order(offset(ack)) {
            self.read(
                other,
                at,
                u64::MAX,
                |assembler, give| assembler.acked(offset(ack), give),
                ledger,
            );
        }
        if side == Side::Client {
            self.client_ack = self.client_ack.max(ack);
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
                        twice: seen.came_twice(),
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
                    response.repeated(at, data);
                }
            }
            Side::Client => {
                let hit = waiting.find(|e| {
                    e.response.is_none() && (!e.request.complete || data.start < e.request.end_offset)
                });
                if let Some(e) = hit {
                    e.request.repeated(at, data);
                    if e.request.complete {
                        e.request.last = at;
                    }
                }
            }
        }
    }

    /// The exchange leaves with its own part of the steps.
    fn finish(&mut self, mut exchange: Box<Exchange>, ledger: &mut Ledger) {
        if exchange.protocol.is_empty() {
            exchange.protocol = self.messages.protocol();
        }
        let start = exchange.request.first;
        let end = later(exchange.end(), start);
        // up to here the client's own segments made the time pass, from here on the server's
        let asked = later(exchange.request.last, start);
        let border = if asked.time_ns < end.time_ns { asked } else { end };
        let last = self.open.is_empty() && self.settling.is_empty();
        let [client, server] = &mut self.steps;
        if exchange.dialogue {
            take_turns([client, server], start, end, &mut exchange.pieces);
        } else {
            slice(client, last, Side::Client, start, border, &mut exchange.pieces);
            slice(server, last, Side::Server, border, end, &mut exchange.pieces);
        }
        self.busy = self.busy.saturating_add(end.time_ns - start.time_ns);
        ledger.settle(exchange);
        if last {
            self.steps.iter_mut().for_each(VecDeque::clear);
            self.forget_steps(ledger);
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

/// A relative sequence number as the assembler's offset.
fn offset(number: i64) -> u64 {
    number.saturating_add(BIAS).max(0) as u64
}

/// `at`, or `floor` where that is later.
fn later(at: At, floor: At) -> At {
    if at.time_ns < floor.time_ns { floor } else { at }
}
