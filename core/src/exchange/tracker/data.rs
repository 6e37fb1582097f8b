//! Reads a segment with data: finds why it left, stores what that shows about its sender, and keeps the step for the
//! exchanges that overlap it.

use super::listener::PairingListener;
use super::pairing::Pairing;
use super::{Stretch, Tracker, offset};
use crate::assemble::{Assembler, Caps};
use crate::base::{At, Side};
use crate::evidence::rtt::RoundTrips;
use crate::exchange::steps::merge_pairs;
use crate::exchange::{Context, Exchange, SeenSegment, pauses};
use crate::limits::{LARGE_RATIO, SEALED_SILENCE_NS, SILENCE_NS};
use crate::messages::TurnUnit;
use crate::observe::{Data, Outcome, Release, Sender, Step, TurnDoubt, Wait};
use crate::segment::{FIN, PSH, SYN};

/// Upper bound on the exchanges searched in each list, settling and open, for the one whose bytes are repeated.
const MAX_REPAIRED: usize = 64;
/// Upper bound on the steps kept per direction. Beyond it neighbours are merged, with the cause of the longer one.
const MAX_STEPS: usize = 8192;
/// Number of open and settling exchanges from which `FEW_STEPS` is the bound, since each exchange copies its share of
/// the steps.
const CROWDED_EXCHANGES: usize = 1024;
/// Upper bound on the steps per direction when all streams together hold `MAX_STEPS_IN_ALL`.
pub(super) const FEW_STEPS: usize = 512;
/// Number of steps in all streams from which each stream holds only `FEW_STEPS`.
const MAX_STEPS_IN_ALL: usize = 1 << 17;

impl Tracker {
    /// Reads a segment with data. `missing`: frames from its sender that the capture lacks before it; None if
    /// unknown.
    pub(super) fn data(
        &mut self,
        seen: &SeenSegment<'_, '_>,
        at: At,
        missing: Option<u16>,
        context: &mut Context,
        release: &mut Release,
    ) {
        let (side, segment) = (seen.side, seen.segment);
        let start = seen.facts.seq + i64::from(segment.has(SYN));
        let rtts = seen.rtts.map(|rtt| rtt.unwrap_or(0));
        let own_rtt_ns = *side.pick(&rtts);
        let data = Data {
            at,
            start_seq: start,
            end_seq: start + i64::from(segment.len),
            is_small: seen.small,
            has_fin: segment.has(FIN),
            is_pushed: segment.has(PSH),
            mss: seen.mss,
            tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
            tsecr: segment.options.timestamps.map(|(_, tsecr)| tsecr),
            has_sacks: seen.sacks,
            ip_id: segment.ip_id,
            rtt_ns: rtts.iter().sum(),
            own_rtt_ns,
            is_from_server: side == Side::Server,
            sender_id: *side.pick(&self.pairing.ids.sender_ids),
            stream: self.pairing.ids.stream,
        };
        (
            self.pairing.current.loss_shown_by,
            self.pairing.current.freed_since,
        ) = (None, None);
        if self.pairing.pauses.current.is_some() {
            self.pairing.pauses.current = None; // the check is cheaper than dropping None
        }
        let sender = side.pick_mut(&mut self.senders);
        if sender.has_too_many_holes(start) {
            context.distrust(
                "tcp",
                "too many holes at once; what fills the rest is taken for retransmissions",
                at,
            );
        }
        let outcome = sender.data(&data, missing, seen.facts.first_copy);
        if let Outcome::Forward(step) = &outcome {
            *release = step.release(own_rtt_ns);
            let freed = sender.take_freed();
            let gap = step.to.time_ns - step.from.time_ns;
            if gap >= SILENCE_NS.get() {
                self.silence(side, step, start, context);
            }
            self.forward(side, step, &data, seen.trips, context);
            if let Some(candidate) = freed {
                pauses::push_pause_before_ack(candidate, self.pairing.row_origin(), context);
            }
        }
        if let Outcome::Forward(step) = outcome {
            self.pairing.has_unread = self.messages.has_unreported_bytes();
            self.pairing.keep_step(side, step, context);
            if self.pairing.is_doubled {
                self.weigh_copies();
            }
        } else {
            self.weigh_copies();
        }
        let first = if seen.syn_seen { 1 } else { start };
        side.pick_mut(&mut self.assemblers).start(offset(first));
        self.read_data(seen, at, start, context);
        if self.pairing.current.is_freed {
            self.pairing.held_unsolicited(at, context);
        }
    }

    /// Handles a sender that continues after a silence. Without a known protocol the silence ends its turn, if the
    /// other side has acknowledged all of the turn: what follows is unsolicited.
    #[cold]
    fn silence(&mut self, side: Side, step: &Step, start: i64, context: &mut Context) {
        let pairing = &self.pairing;
        let acknowledged = *side.other().pick(&pairing.acked_seqs);
        let over = i64::from(pairing.exchange_count) - (pairing.open.len() + pairing.settling.len()) as i64;
        let rhythm = pairing.busy_ns / over.max(1);
        let min_quiet = match self.messages.turn_unit() {
            Some(TurnUnit::Segments) => SILENCE_NS.get(),
            // a client does not pause between two parts of one request
            Some(TurnUnit::Records) if side == Side::Client => SILENCE_NS.get(),
            Some(TurnUnit::Records) => SEALED_SILENCE_NS.get(),
            None => return,
        };
        let quiet_since = match &step.wait {
            Wait::App | Wait::Unsure | Wait::Filled { .. } | Wait::Early { .. } | Wait::Cork => step.from,
            Wait::Small(candidate) => candidate.ack,
            Wait::Clocked { ack, .. } | Wait::LoneClocked { ack, .. } | Wait::Corked { ack, .. } => *ack,
            _ => return,
        };
        let (at, quiet) = (step.to, step.to.time_ns - quiet_since.time_ns);
        if acknowledged < start || quiet < rhythm.saturating_mul(LARGE_RATIO.get()).max(min_quiet) {
            return;
        }
        let (assembler, other) = side.split_mut(&mut self.assemblers);
        let next = assembler.next().unwrap_or(offset(start));
        let mut listener = PairingListener::new(&mut self.pairing, context, side, next, other.next());
        self.messages.silence(side, at, &mut listener);
        if side == Side::Client {
            self.pairing.drop_unanswered(context);
        }
    }

    /// Reads the payload of a segment. The fast path is a segment that is the next in order.
    fn read_data(&mut self, seen: &SeenSegment<'_, '_>, at: At, start: i64, context: &mut Context) {
        let (side, segment, from) = (seen.side, seen.segment, offset(start));
        let len = u64::from(segment.len);
        let (assembler, other) = side.split_mut(&mut self.assemblers);
        let captured = segment.payload.len() as u64;
        if captured <= len && assembler.take_if_next(from, len) {
            let mut listener = PairingListener {
                pairing: &mut self.pairing,
                context,
                side,
                from,
                to: from + captured,
                other: other.next(),
            };
            let stretch = Stretch::Bytes(segment.payload);
            self.messages.feed(side, at, stretch, &mut listener);
            if captured < len {
                (listener.from, listener.to) = (from + captured, from + len);
                let stretch = Stretch::Missing(len - captured);
                self.messages.feed(side, at, stretch, &mut listener);
            }
            return;
        }
        let mut room = Caps::Sufficed;
        let read = |assembler: &mut Assembler, mut give: &mut dyn FnMut(Stretch<'_>)| {
            room = assembler.data(from, len, segment.payload, &mut give);
        };
        self.read(side, at, from, read, context);
        if room == Caps::Exceeded {
            context.distrust("tcp", "too many bytes out of order; a hole was passed over", at);
        }
    }

    /// Stores what the step of a segment with new data shows about its sender.
    #[inline(always)]
    pub(super) fn forward(
        &mut self,
        side: Side,
        step: &Step,
        data: &Data,
        trips: &RoundTrips,
        context: &mut Context,
    ) {
        let at = data.at;
        side.other().pick_mut(&mut self.senders).peer_spoke(at);
        match &step.wait {
            Wait::Small(candidate) => {
                self.pairing.current.is_freed = side == Side::Client;
                if !context.sender_store.add(candidate) {
                    let reason = "too much evidence on delayed ACKs; the rest is only counted";
                    context.distrust("tcp", reason, at);
                }
            }
            Wait::Turn(turn) => {
                *side.pick_mut(&mut self.pairing.kernel_rtts) = trips.round(data.tsval.is_some());
                let (waited, senders) = (at.time_ns - turn.since.time_ns, &mut context.sender_store);
                if let Some(TurnDoubt::CorkLength { sender_id, .. }) = turn.doubt {
                    senders.message_began(sender_id, Some((waited, at.time_ns)));
                } else if data.is_small {
                    senders.message_began(data.sender_id, None);
                }
                if let Some(TurnDoubt::HoldLength { sender_id }) = turn.doubt {
                    senders.answered_late(sender_id, waited, at.time_ns);
                }
            }
            Wait::FreedTurn { since, .. } => {
                self.pairing.current.freed_since = Some(*since).filter(|_| side == Side::Server);
                self.pairing.current.is_freed = side == Side::Client;
                *side.pick_mut(&mut self.pairing.kernel_rtts) = trips.round(data.tsval.is_some());
            }
            Wait::Repair(repaired) => {
                self.pairing.current.loss_shown_by = repaired.filled;
                self.pairing.repaired(side, data, at);
            }
            _ => {}
        }
        if side == Side::Client {
            let Pairing { pauses, busy_ns, .. } = &mut self.pairing;
            pauses.read(step, data.own_rtt_ns, *busy_ns);
        }
    }

    /// Updates whether the capture contains each segment of this stream twice.
    #[cold]
    fn weigh_copies(&mut self) {
        self.pairing.is_doubled = self.senders.iter().any(Sender::is_doubled);
    }

    /// Stops counting the steps of a stream that has ended.
    pub fn forget_steps(&mut self, context: &mut Context) {
        self.pairing.forget_steps(context);
    }
}

impl Pairing {
    /// Keeps the step for the exchanges that overlap it, merging or dropping older ones where there are too many.
    #[inline(always)]
    pub(super) fn keep_step(&mut self, side: Side, step: Step, context: &mut Context) {
        let is_idle = self.is_idle() && !self.needs_steps();
        let steps = side.pick_mut(&mut self.steps);
        if is_idle && (!self.has_pushed || steps.len() >= FEW_STEPS) {
            steps.clear();
        } else if steps.len() >= FEW_STEPS
            && (steps.len() >= MAX_STEPS
                || context.step_count >= MAX_STEPS_IN_ALL
                || self.open.len() + self.settling.len() >= CROWDED_EXCHANGES)
        {
            context.distrust("tcp", "a long exchange is judged in coarser steps", step.to);
            merge_pairs(steps);
        }
        steps.push(step);
        if self.counted_steps > 0 || steps.len() >= FEW_STEPS {
            self.count_steps(context);
        }
    }

    /// Keeps a FIN without data as a step, if it ends a response that lasts until its connection's end.
    #[cold]
    pub(super) fn keep_fin(&mut self, side: Side, at: At, wait: Wait, context: &mut Context) {
        let begun = (self.open.iter().rev()).find_map(|exchange| {
            exchange
                .response
                .as_ref()
                .filter(|response| !response.is_complete)
                .map(|response| response.last)
        });
        if let (Side::Server, Some(from)) = (side, begun)
            && from.time_ns < at.time_ns
        {
            self.keep_step(side, Step { from, to: at, wait }, context);
        }
    }

    /// Records a needed retransmission in the message that contains its bytes: it may move the message's end.
    pub(super) fn repaired(&mut self, side: Side, data: &Data, at: At) {
        // With many exchanges, skip those whose request or response ends before the repeated bytes.
        let are_few = self.settling.len() + self.open.len() <= MAX_REPAIRED;
        let answered = |exchange: &Exchange| {
            exchange
                .response
                .as_ref()
                .is_some_and(|response| response.end_offset <= data.start_seq)
        };
        let sent = |exchange: &Exchange| {
            exchange.request.is_complete && exchange.request.end_offset <= data.start_seq
        };
        let settling = self
            .settling
            .iter_skipping(|exchange| !are_few && (side == Side::Client || answered(exchange)));
        let open = self
            .open
            .iter_skipping(|exchange| !are_few && side == Side::Client && sent(exchange));
        for exchange in settling.take(MAX_REPAIRED).chain(open.take(MAX_REPAIRED)) {
            if exchange.requester() != side {
                // an open response has no end yet: the retransmission is of its bytes
                let hit = exchange.response.as_mut();
                if let Some(response) =
                    hit.filter(|response| !response.is_complete || data.start_seq < response.end_offset)
                {
                    return response.repeated(at, data);
                }
            } else if exchange.response.is_none()
                && (!exchange.request.is_complete || data.start_seq < exchange.request.end_offset)
            {
                exchange.request.repeated(at, data);
                if exchange.request.is_complete {
                    exchange.request.last = at;
                }
                return;
            }
        }
    }

    /// Updates the number of steps that all streams hold.
    #[cold]
    pub(super) fn count_steps(&mut self, context: &mut Context) {
        let [client, server] = &self.steps;
        let before = std::mem::replace(&mut self.counted_steps, client.len() + server.len());
        context.step_count = (context.step_count + self.counted_steps).saturating_sub(before);
    }

    /// Removes this stream's steps from that number.
    pub(super) fn forget_steps(&mut self, context: &mut Context) {
        context.step_count = context
            .step_count
            .saturating_sub(std::mem::take(&mut self.counted_steps));
    }
}
