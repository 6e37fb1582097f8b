//! The state of one stream that carries data. For each segment, `Tracker::segment`:
//!
//! 1. updates both senders (`observe`) by what the segment acknowledges, and finishes the exchanges whose response
//!    arrived (`arrival`);
//! 2. finds why a segment with new data left, and keeps that as a step (`data`);
//! 3. gives the payload to the assembler, and the bytes in order to the protocol reader. The reader's notes go to the
//!    `PairingListener` (`listener`), which opens, extends and ends exchanges (`pairing`, and `keyed` for protocols
//!    that answer in any order).

mod arrival;
mod beats;
mod data;
mod keyed;
mod listener;
mod pairing;
mod pushes;

use super::setup::Beginning;
use super::{Context, SeenSegment, Symbol, pauses};
use crate::assemble::Assembler;
use crate::base::{At, Side};
use crate::facts::flag;
use crate::messages::{Close, Messages, Protocol, Stretch};
use crate::observe::transfer::ShutWindow;
use crate::observe::{OneWay, Passed, PeerPacket, Release, Sender, Wait};
use crate::segment::{FIN, RST, SYN};
use listener::PairingListener;
use pairing::Pairing;
pub use pairing::StreamIds;

/// Upper bound on the bytes that all streams hold out of order. The stream that exceeds it gives up its holes.
const MAX_HELD_IN_ALL: usize = 16 << 20;
/// Upper bound on the open exchanges of one stream (pipelining); beyond it the oldest ends as incomplete.
const MAX_OPEN: usize = 4096;
/// Added to relative sequence numbers, which are below 1 for data from before the capture, so that offsets stay
/// positive.
const BIAS: i64 = 1 << 33;
/// Upper bound on the trackers of ended streams that are kept for reuse.
const MAX_SPARE_TRACKERS: usize = 16;

/// What the data of a stream show about it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadSoFar {
    pub protocol: Option<Protocol>,
    /// Number of requests, without the dropped heartbeats.
    pub exchange_count: u32,
    /// Name and version that the server gives itself; set when the stream has ended.
    pub software: Option<Symbol>,
    /// Total time of all exchanges, in ns.
    pub busy_ns: i64,
    /// The capture contains each segment twice.
    pub is_doubled: bool,
    pub begun: Beginning,
    /// An RST ended it. A side that did not accept the RST may go on.
    pub is_cut: bool,
    /// Id of the two addresses in `Pairs`; 0 before any data.
    pub pair: u32,
}

/// State of one stream that carries data.
pub struct Tracker {
    senders: [Sender; 2],
    assemblers: [Assembler; 2],
    messages: Messages,
    pairing: Pairing,
    /// The side of which packets were captured, and its gaps, while the other side has none.
    one_way: Option<Box<(Side, OneWay)>>,
    /// Whether each side has ended.
    have_ended: [bool; 2],
    /// Time of the first data, in ns.
    first_data_ns: i64,
    /// Latest time of a packet, in ns.
    latest_ns: i64,
}

impl Tracker {
    fn new(ids: StreamIds) -> Self {
        Tracker {
            senders: Default::default(),
            assemblers: [Assembler::new(), Assembler::new()],
            messages: Messages::new(),
            pairing: Pairing::new(ids),
            one_way: None,
            have_ended: [false; 2],
            first_data_ns: 0,
            latest_ns: i64::MIN,
        }
    }

    /// Returns a tracker for a new stream, with the buffers of an ended one if possible.
    pub fn boxed(ids: StreamIds, context: &mut Context) -> Box<Self> {
        let Some(mut tracker) = context.spare_trackers.pop() else {
            return Box::new(Tracker::new(ids));
        };
        // In place, as a new value would be built on the stack and copied.
        let Tracker {
            senders,
            assemblers,
            messages,
            pairing,
            one_way,
            have_ended,
            first_data_ns,
            latest_ns,
        } = &mut *tracker;
        (*have_ended, *first_data_ns, *latest_ns) = ([false; 2], 0, i64::MIN);
        for (sender, assembler) in senders.iter_mut().zip(assemblers) {
            (*sender, *assembler) = (Sender::default(), Assembler::new());
        }
        messages.reset(&mut context.memory);
        *one_way = None;
        pairing.renew(ids);
        tracker
    }

    /// Keeps the tracker of an ended stream for reuse.
    pub fn recycle(self: Box<Self>, context: &mut Context) {
        if context.spare_trackers.len() < MAX_SPARE_TRACKERS && self.pairing.is_small() {
            context.spare_trackers.push(self);
        }
    }

    /// Records TSval and time of a packet of the handshake.
    pub fn handshake_stamp(&mut self, side: Side, time_ns: i64, tsval: u32) {
        side.pick_mut(&mut self.senders).handshake_stamp(time_ns, tsval);
    }

    /// Records that this side's SYN was captured.
    pub fn syn_seen(&mut self, side: Side) {
        side.pick_mut(&mut self.senders).syn_seen();
    }

    /// Records the time of the first data.
    pub fn begin(&mut self, time_ns: i64) {
        self.first_data_ns = time_ns;
    }

    /// Continues a stream whose earlier tracker was dropped.
    pub fn resume(&mut self, read: &ReadSoFar) {
        let pairing = &mut self.pairing;
        (pairing.exchange_count, pairing.busy_ns, pairing.begun) =
            (read.exchange_count, read.busy_ns, read.begun);
        (pairing.is_doubled, pairing.protocol) = (read.is_doubled, read.protocol);
        if let Some(carried) = read.begun.carries {
            self.carry(carried);
        }
    }

    /// Marks the stream as a data connection of another stream's request.
    pub fn carry(&mut self, carried: Symbol) {
        self.messages.read_as_data_connection();
        self.pairing.protocol = Some(Protocol::FtpData);
        self.pairing.begun.carries = Some(carried);
    }

    /// Marks that the capture lacks the beginning of the stream.
    pub fn set_mid_stream(&mut self) {
        self.messages.set_mid_stream();
    }

    pub fn pair(&self) -> u32 {
        self.pairing.ids.pair
    }

    /// What the data have shown about the stream, without the fields that are set at its end.
    pub fn read_so_far(&self) -> ReadSoFar {
        let pairing = &self.pairing;
        let heartbeats = pairing.beats.as_ref().map_or(0, |beats| beats.dropped);
        ReadSoFar {
            protocol: pairing.protocol,
            exchange_count: pairing.exchange_count - heartbeats,
            software: None,
            busy_ns: pairing.busy_ns,
            is_doubled: pairing.is_doubled,
            begun: pairing.begun,
            is_cut: false,
            pair: pairing.ids.pair,
        }
    }

    /// Keeps the newest retransmissions when the stream ends: a late first copy may still be acknowledged.
    pub fn keep_last_retransmission(&self, context: &mut Context) {
        for (side, sender) in Side::BOTH.into_iter().zip(&self.senders) {
            if let Some(retransmission) = sender.newest_retransmission() {
                context.keep_last_retransmission(self.pairing.ids.stream, side, retransmission);
            }
        }
    }

    /// The HTTP/2 window that was empty after the last data of this side, if what the side acknowledges opens it.
    pub fn opened(&self, side: Side, acked: i64) -> Option<ShutWindow> {
        self.pairing.flow_control.as_ref()?.opened(side, acked)
    }

    /// Records that only this side has been captured so far.
    pub fn one_way(&mut self, side: Side) {
        self.one_way = Some(Box::new((side, OneWay::default())));
    }

    /// Whether both sides have ended, and no exchange is open.
    pub fn is_done(&self) -> bool {
        self.have_ended == [true; 2] && self.pairing.is_idle()
    }

    /// Name and version that the server gives itself.
    pub fn software(&self) -> Option<&str> {
        self.messages.software()
    }

    /// Reads one segment of the stream. Fills in `release` (why it left) if it carries new data.
    #[inline(always)]
    pub fn segment(&mut self, seen: &SeenSegment<'_, '_>, context: &mut Context, release: &mut Release) {
        // no interval may be negative where the capture's clock goes back
        self.latest_ns = self.latest_ns.max(seen.at.time_ns);
        let at = At {
            time_ns: self.latest_ns,
            ..seen.at
        };
        self.pairing.current.frame = at.frame;
        let side = seen.side;
        let segment = seen.segment;
        if self.one_way.is_some() {
            self.read_one_way(seen, at);
        }
        let (own, peer) = side.split_mut(&mut self.senders);
        peer.settle_refutation(at.time_ns);
        if segment.len == 0 && !segment.has(SYN) && !segment.has(RST) {
            own.passed(seen.facts.seq, at, segment.ip_id);
        }
        if peer.has_awaiting() {
            let confirmed = peer.confirmed_refutations(seen.missing.is_some_and(|count| count > 0));
            let sender_id = *side.other().pick(&self.pairing.ids.sender_ids);
            context
                .sender_store
                .refute(sender_id, self.pairing.ids.stream, confirmed.as_slice());
        }
        if peer.newest_retransmission().is_some()
            && let Some(retransmission) = first_copy_answered(peer, seen, at)
        {
            context.mark_spurious(retransmission);
        }
        peer.answer(&PeerPacket {
            at,
            ack: seen.facts.ack,
            window: i64::from(seen.facts.window),
            is_scale_known: seen.scale_known,
            len: segment.len,
            has_fin: segment.has(FIN),
            is_duplicate: seen.facts.flags & flag::DUPLICATE_ACK != 0,
            highest_sacked: seen.highest_sacked(),
            tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
            tsecr: None,
            is_echoed: own.is_acknowledged(),
            covered: seen.facts.covered,
        });
        if segment.len == 0 && peer.is_acknowledged() {
            own.kernel_answered(at, segment.options.timestamps.map(|(tsval, _)| tsval));
        }
        if let Some(twice) = seen.dsack_block()
            && let Some(retransmission) = peer.came_twice(twice)
        {
            context.mark_spurious(retransmission);
        }
        self.acknowledged(side, seen, at, context);

        let is_keep_alive = seen.facts.flags & flag::KEEP_ALIVE != 0 && segment.len <= 1;
        if segment.len > 0 && !is_keep_alive && !self.is_beyond_window(seen, at, context) {
            // If other connections use the same IP ID counter, only "no frame is missing" can be concluded from it.
            let missing = seen.missing.filter(|count| seen.own_ids || *count == 0);
            self.data(seen, at, missing, context, release);
        }
        if segment.has(FIN) && !segment.has(SYN) {
            let end = seen.facts.seq + i64::from(segment.len);
            let acknowledged = side.pick_mut(&mut self.senders).is_acknowledged();
            if segment.len == 0 && !side.pick_mut(&mut self.assemblers).has_pending() {
                let wait = if acknowledged { Wait::Close } else { Wait::Unsure };
                self.pairing.keep_fin(side, at, wait, context);
            }
            self.read(
                side,
                at,
                u64::MAX,
                |assembler, give| assembler.fin(offset(end), give),
                context,
            );
        }
        if segment.has(RST) || self.assemblers.iter().any(Assembler::has_fin) {
            self.closing(segment.has(RST), at, context);
        }
    }

    /// Whether the receiver never had room for this data; such data is not read.
    #[inline(always)]
    fn is_beyond_window(&mut self, seen: &SeenSegment<'_, '_>, at: At, context: &mut Context) -> bool {
        let beyond = seen.side.pick_mut(&mut self.senders).is_beyond(seen.facts.seq);
        if beyond {
            context.distrust("tcp", "data far beyond the receiver's window; not read", at);
        }
        beyond
    }

    /// Closes the sides that have ended, after a FIN or RST.
    #[cold]
    fn closing(&mut self, reset: bool, at: At, context: &mut Context) {
        let [client, server] = &self.senders;
        if client.has_sent() != server.has_sent() {
            let StreamIds { pair, stream, .. } = self.pairing.ids;
            let carried = self
                .pairing
                .begun
                .carries
                .and_then(|symbol| context.carried.get(symbol));
            let control = carried.map(|carried| carried.control);
            context
                .data_connections
                .ended(pair, stream, control, self.first_data_ns, at.time_ns);
        }
        for side in Side::BOTH {
            // a FIN may arrive before bytes that are retransmitted later
            if side.pick_mut(&mut self.assemblers).is_ended() {
                self.close(side, at, Close::Fin, context);
            }
        }
        if reset {
            self.end(at, Close::Rst, context);
        }
    }

    /// Gives the protocol reader what `work` makes the assembler return in order.
    ///
    /// Missing bytes below the offset `holes` were lost by the capture, so no packet has them, and their frame is 0.
    /// Other missing bytes were cut off by the snap length.
    #[inline(never)]
    fn read(
        &mut self,
        side: Side,
        at: At,
        holes: u64,
        work: impl FnOnce(&mut Assembler, &mut dyn FnMut(Stretch<'_>)),
        context: &mut Context,
    ) {
        let (assembler, other) = side.split_mut(&mut self.assemblers);
        let (messages, before) = (&mut self.messages, assembler.held_memory());
        let next = assembler.next().unwrap_or(holes);
        let mut listener = PairingListener::new(&mut self.pairing, context, side, next, other.next());
        work(assembler, &mut |stretch| {
            listener.read(messages, at, holes, stretch)
        });
        let after = assembler.held_memory();
        if before == after {
            return;
        }
        let held = &mut listener.context.held_bytes;
        *held = (*held + after).saturating_sub(before);
        if *held > MAX_HELD_IN_ALL && after > before {
            *held = held.saturating_sub(after);
            assembler.finish(&mut |stretch| listener.read(messages, at, holes, stretch));
            context.distrust(
                "tcp",
                "too many bytes out of order in all streams; a hole was passed over",
                at,
            );
        }
    }

    /// Ends a side. When the server ends, requests that are still open will not be answered.
    fn close(&mut self, side: Side, at: At, how: Close, context: &mut Context) {
        if std::mem::replace(side.pick_mut(&mut self.have_ended), true) && how == Close::Fin {
            return;
        }
        let (assembler, other) = side.split_mut(&mut self.assemblers);
        let next = assembler.next().unwrap_or(BIAS as u64);
        let mut listener = PairingListener::new(&mut self.pairing, context, side, next, other.next());
        self.messages.close(side, at, how, &mut listener);
        if let (Side::Server, Some(bytes)) = (side, self.messages.open_request_bytes()) {
            self.pairing.set_unfinished_length(bytes);
        }
        self.pairing.close(side, how, context);
        if how != Close::Fin {
            let StreamIds {
                stream, sender_ids, ..
            } = self.pairing.ids;
            for (sender, sender_id) in self.senders.iter_mut().zip(sender_ids) {
                let last = sender.last_refutations();
                context.sender_store.refute(sender_id, stream, last.as_slice());
            }
        }
    }

    /// Reads a segment while only one side has been captured; ends that when it is the other side's.
    #[cold]
    fn read_one_way(&mut self, seen: &SeenSegment<'_, '_>, at: At) {
        match &mut self.one_way {
            Some(one_way) if one_way.0 == seen.side => one_way.1.take(Passed {
                at,
                start_seq: seen.facts.seq,
                len: seen.segment.len,
                ack: seen.facts.ack,
                mss: seen.mss,
                stamps: seen.segment.options.timestamps,
            }),
            one_way => *one_way = None,
        }
    }

    /// Ends the stream: an RST, or the end of the capture.
    pub fn end(&mut self, at: At, how: Close, context: &mut Context) {
        self.pairing.current.frame = at.frame;
        if let Some(one_way) = self.one_way.take() {
            for suspect in one_way.1.suspects() {
                pauses::push_suspected(suspect, one_way.0, self.pairing.row_origin(), context);
            }
        }
        for side in Side::BOTH {
            if side.pick_mut(&mut self.assemblers).has_pending() {
                self.read(
                    side,
                    at,
                    u64::MAX,
                    |assembler, give| assembler.finish(give),
                    context,
                );
            }
        }
        for side in Side::BOTH {
            self.close(side, at, how, context);
        }
    }
}

/// Returns the retransmission that this packet of the peer shows to be spurious. Not inlined, so that the usual packet
/// stays in registers.
#[cold]
#[inline(never)]
fn first_copy_answered(peer: &mut Sender, seen: &SeenSegment<'_, '_>, at: At) -> Option<At> {
    let answer = PeerPacket {
        at,
        ack: seen.facts.ack,
        len: seen.segment.len,
        is_duplicate: seen.facts.flags & flag::DUPLICATE_ACK != 0,
        highest_sacked: seen.highest_sacked(),
        tsecr: seen.segment.options.timestamps.map(|(_, tsecr)| tsecr),
        ..PeerPacket::default()
    };
    peer.answers_first_copy(&answer, *seen.side.pick(seen.rtts))
}

/// A relative sequence number as the offset for the assembler.
fn offset(number: i64) -> u64 {
    number.wrapping_add(BIAS) as u64
}
