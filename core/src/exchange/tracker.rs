//! A stream that carries data: its bytes in order, its messages paired, its steps kept until the exchanges
//! that need them are settled.

mod arrival;
mod data;
mod pairing;

use std::collections::VecDeque;

use super::aside::{self, Place};
use super::{Exchange, Ledger, Seen};
use crate::assemble::{Assembler, Room};
use crate::facts::flag;
use crate::messages::{At, Close, Messages, Piece as Stretch, Side};
use crate::segment::{FIN, RST, SYN};
use crate::wait::{Answer, OneWay, Passed, Release, Sender, Step};

/// What all streams may hold out of order; beyond it the stream that would hold more gives up its holes.
const MAX_HELD_IN_ALL: usize = 16 << 20;
/// Exchanges that one stream may have open (pipelining); the oldest are given up as incomplete beyond it.
const MAX_OPEN: usize = 4096;
/// Relative sequence numbers below 1 exist (data from before the capture); offsets stay positive.
const BIAS: i64 = 1 << 33;
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
}

/// A relative sequence number as the assembler's offset.
fn offset(number: i64) -> u64 {
    number.saturating_add(BIAS).max(0) as u64
}
