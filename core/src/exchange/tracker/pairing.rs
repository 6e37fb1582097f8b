//! Pairs messages into exchanges: requests wait in order, and each response belongs to the oldest request.

use std::num::NonZeroI64;

use super::beats::Beats;
use super::pauses::{Pauses, RowOrigin};
use super::pushes::Subscriptions;
use super::{BIAS, MAX_OPEN, pauses};
use crate::base::{At, Side};
use crate::evidence::rtt::KernelRtt;
use crate::exchange::setup::Beginning;
use crate::exchange::{Context, CutBy, Exchange, FlowControl, Message, few_steps};
use crate::messages::{Close, Kind, Protocol, Tags};
use crate::observe::Step;
use crate::queue::Queue;

/// Upper bound on the capacity of buffers that are kept for the next stream.
const SMALL_CAPACITY: usize = 64;

/// What identifies a stream in its exchanges.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamIds {
    pub stream: u32,
    /// Id of its pair of hosts.
    pub pair: u32,
    /// Ports of the client and of the server.
    pub ports: [u16; 2],
    /// Ids of the evidence on both senders, by `Side`.
    pub sender_ids: [u32; 2],
}

/// One stream's exchanges, and the steps of both directions that they will need.
#[derive(Default)]
pub(super) struct Pairing {
    pub(super) ids: StreamIds,
    /// By side: the steps that no exchange has taken yet, oldest first.
    pub(super) steps: [Vec<Step>; 2],
    /// Number of steps that are counted in `Context::step_count`; 0 while there are few.
    pub(super) counted_steps: usize,
    /// By side: recent RTTs of the path, at the end of that side's last turn.
    pub(super) kernel_rtts: [KernelRtt; 2],
    /// The capture contains each segment of the stream twice.
    pub(super) is_doubled: bool,
    /// Requests without a complete response, oldest first; boxed, as an exchange is moved several times.
    pub(super) open: Queue<Box<Exchange>>,
    /// Answered exchanges that later packets may still change, oldest first.
    pub(super) settling: Queue<Box<Exchange>>,
    /// When the newest complete response had passed, in ns.
    answered_until_ns: i64,
    /// The protocol that was recognised last.
    pub(super) protocol: Option<Protocol>,
    /// The client that a proxy's header names for the whole connection.
    pub(super) tags: Option<Box<Tags>>,
    /// The response that is being read is an interim one (1xx).
    pub(super) is_interim: bool,
    /// The message that is being read answers no request.
    pub(super) is_unsolicited: bool,
    /// Bytes were read that belong to no message yet.
    pub(super) has_unread: bool,
    /// The server has pushed a message: its steps are kept for the next one.
    pub(super) has_pushed: bool,
    /// The highest byte that each side has acknowledged, by `Side`.
    pub(super) acked_seqs: [i64; 2],
    pub(super) lost_answers: LostAnswers,
    /// State of HTTP/2 flow control, if the beginning of the connection was read.
    pub(super) flow_control: Option<Box<FlowControl>>,
    pub(super) current: CurrentSegment,
    pub(super) pauses: Pauses,
    /// Number of exchanges so far, and index of the next one.
    pub(super) exchange_count: u32,
    pub(super) keys: Keys,
    /// What preceded the first request.
    pub(super) begun: Beginning,
    /// Total time of all exchanges, in ns.
    pub(super) busy_ns: i64,
    /// Heartbeats, if the stream is read in turns.
    pub(super) beats: Option<Box<Beats>>,
    /// Requests after which the server pushes messages.
    pub(super) subscriptions: Option<Box<Subscriptions>>,
    /// The server sends no more.
    pub(super) has_server_ended: bool,
}

/// What is unknown of responses, as the capture lacks bytes.
#[derive(Default)]
pub(super) struct LostAnswers {
    /// Bytes of the server are missing, so that some responses may be missing.
    pub(super) has_hole: bool,
    /// What the client had acknowledged when it sent a series of requests whose responses are indistinguishable.
    mixed_since_seq: Option<i64>,
    /// The last response had no request: the capture may lack that request.
    is_last_unsolicited: bool,
    /// The newest open request was captured after its response (see `is_last_unsolicited`).
    is_newest_answered: bool,
}

/// What the tracker finds about the segment that is being read.
#[derive(Default)]
pub(super) struct CurrentSegment {
    pub(super) frame: u64,
    /// The packet that showed that the bytes of this one had been sent before.
    pub(super) loss_shown_by: Option<At>,
    /// The client's segment left when a small one before it was acknowledged; the newest step has its frame.
    pub(super) is_freed: bool,
    /// The packet that the server's segment answers, if an ACK released that segment.
    pub(super) freed_since: Option<At>,
}

/// Keys of requests, in protocols that answer in any order.
#[derive(Default)]
pub(super) struct Keys {
    /// The highest key of any request.
    pub(super) highest: Option<u64>,
    /// The keys of the open exchanges rise.
    pub(super) are_rising: bool,
}

impl Pairing {
    pub(super) fn new(ids: StreamIds) -> Self {
        Pairing {
            ids,
            steps: few_steps(),
            ..Pairing::default()
        }
    }

    /// Resets it for another stream and keeps the buffers.
    pub(super) fn renew(&mut self, ids: StreamIds) {
        let mut steps = std::mem::take(&mut self.steps);
        let mut open = std::mem::take(&mut self.open);
        let mut settling = std::mem::take(&mut self.settling);
        steps.iter_mut().for_each(Vec::clear);
        open.clear();
        settling.clear();
        *self = Pairing {
            ids,
            steps,
            open,
            settling,
            ..Pairing::default()
        };
    }

    /// The exchange whose response is being read; None while an unsolicited message is read.
    #[inline(always)]
    pub(super) fn answered_exchange(&mut self) -> Option<&mut Box<Exchange>> {
        self.open.front_mut().filter(|_| !self.is_unsolicited)
    }

    /// The exchange whose request began last.
    #[inline(always)]
    pub(super) fn newest_request(&mut self) -> Option<&mut Box<Exchange>> {
        self.open.back_mut()
    }

    /// Whether its buffers are no larger than those of most streams.
    pub(super) fn is_small(&self) -> bool {
        let steps = self.steps.iter().map(Vec::capacity).max();
        let capacities = [steps.unwrap_or(0), self.open.capacity(), self.settling.capacity()];
        capacities.iter().all(|capacity| *capacity <= SMALL_CAPACITY)
    }

    /// Where a row beside the requests belongs.
    pub(super) fn row_origin(&self) -> RowOrigin {
        RowOrigin {
            stream: self.ids.stream,
            index: self.exchange_count,
            pair: self.ids.pair,
            rounds: self.kernel_rtts,
            doubled: self.is_doubled,
        }
    }

    /// Whether no exchange is open or settling.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.settling.is_empty()
    }

    /// Whether steps are needed although no exchange is open.
    #[inline(always)]
    pub(super) fn needs_steps(&self) -> bool {
        self.has_unread || self.is_unsolicited
    }

    /// Begins a response, in a piece at this offset. `asking` is the last packet and the length of a request that is
    /// not complete.
    pub(super) fn answer(&mut self, at: At, offset: u64, asking: Option<(At, u64)>, context: &mut Context) {
        let (at, is_unseen) = self.seen(at);
        (self.is_interim, self.lost_answers.is_newest_answered) = (false, false);
        if is_unseen || self.lost_answers.has_hole || self.lost_answers.mixed_since_seq.is_some() {
            self.give_up_answered(offset as i64 - BIAS, context);
            self.lost_answers.has_hole = is_unseen;
        }
        let Some(exchange) = self.open.front_mut() else {
            self.is_unsolicited = true; // a greeting, or a notice before the server closes
            if self.exchange_count == 0 {
                self.begun.greeted = self.begun.greeted.or(NonZeroI64::new(at.time_ns));
            }
            return;
        };
        self.is_unsolicited = false;
        if let (false, Some((last, bytes))) = (exchange.request.is_complete, asking) {
            // answered before it was complete; if it never is, this is the request
            (exchange.request.last, exchange.request.bytes) = (last, bytes);
        }
        exchange.answered_from = self.current.freed_since.filter(|since| {
            exchange.kind == Kind::Turn
                && (exchange.request.first.frame..exchange.request.last.frame).contains(&since.frame)
        });
        exchange.response = Some(Message {
            first: at,
            last: at,
            ..Message::default()
        });
        if is_unseen {
            exchange.cut_by = Some(CutBy::Gap);
        }
    }

    /// The packet of a note, and whether the capture lacks it (frame 0). In that case its time is unknown, and the
    /// packet that showed the hole stands in.
    pub(super) fn seen(&self, at: At) -> (At, bool) {
        let is_unseen = at.frame == 0;
        let frame = if is_unseen { self.current.frame } else { at.frame };
        (At { frame, ..at }, is_unseen)
    }

    /// Ends requests whose response the capture may lack, when a response begins at `offset`. A client that sent a
    /// new request after it had acknowledged more had got its response. And bytes that a client had before its
    /// request do not answer it.
    #[cold]
    fn give_up_answered(&mut self, offset: i64, context: &mut Context) {
        while let (Some(first), Some(next)) = (self.open.front(), self.open.second())
            && first.ack_at_request < next.ack_at_request
            && next.ack_at_request <= offset
            && let Some(mut lost) = self.open.pop_front()
        {
            lost.cut_by = Some(CutBy::Gap);
            self.finish(lost, context);
        }
        let still = |mixed: &i64| {
            self.open
                .front()
                .is_some_and(|first| first.ack_at_request == *mixed)
        };
        self.lost_answers.mixed_since_seq = self.lost_answers.mixed_since_seq.filter(still);
    }

    /// Begins a request.
    pub(super) fn open_exchange(&mut self, at: At, context: &mut Context) {
        let (at, is_unseen) = self.seen(at);
        if self.lost_answers.is_newest_answered || self.open.len() >= MAX_OPEN {
            self.make_room(at, context);
        }
        self.lost_answers.is_newest_answered = is_unseen && self.lost_answers.is_last_unsolicited;
        self.lost_answers.is_last_unsolicited = false;
        if self.pauses.current.is_some() {
            self.end_pause(context);
        }
        let mut exchange = context.open(self.ids.stream, self.exchange_count, self.ids.pair);
        // a request that was lost before the capture point was sent no later than the packet that showed the loss
        exchange.request.first = self
            .current
            .loss_shown_by
            .filter(|loss_shown_by| loss_shown_by.frame < at.frame)
            .unwrap_or(at);
        exchange.request.last = at;
        (exchange.sender_id, exchange.ports) = (self.ids.sender_ids[0], self.ids.ports);
        [exchange.ack_at_request, _] = self.acked_seqs;
        exchange.kind = self.protocol.map_or(Kind::Turn, Protocol::kind);
        exchange.cut_by = is_unseen.then_some(CutBy::Gap);
        if self.tags.is_some() {
            exchange.tags.clone_from(&self.tags);
        }
        if self.current.is_freed {
            exchange.held_before = self.waited_behind(at);
        }
        self.open.push_back(exchange);
        self.keys.are_rising = false;
        self.exchange_count += 1;
    }

    /// Begins a request of the server. A pause or held data of the client stays for the client's next request.
    #[cold]
    pub(super) fn open_by_server(&mut self, at: At, context: &mut Context) {
        let (paused, freed) = (
            self.pauses.current.take(),
            std::mem::take(&mut self.current.is_freed),
        );
        self.open_exchange(at, context);
        (self.pauses.current, self.current.is_freed) = (paused, freed);
        if let Some(request) = self.newest_request() {
            (request.by_server, request.sender_id) = (true, u32::MAX);
        }
    }

    /// The protocol that issues about these messages name.
    pub(super) fn layer(&self) -> &'static str {
        self.protocol.map_or("tcp", Protocol::word)
    }

    /// Ends the newest request if it was answered before it was captured, and the oldest if there are too many.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, at: At, context: &mut Context) {
        if std::mem::take(&mut self.lost_answers.is_newest_answered)
            && let Some(lost) = self.open.pop_back()
        {
            self.finish(lost, context);
        }
        if self.open.len() >= MAX_OPEN
            && let Some(mut oldest) = self.open.pop_front()
        {
            context.distrust(self.layer(), "too many requests wait; the oldest is given up", at);
            oldest.cut_by = Some(CutBy::Gap);
            self.finish(oldest, context);
        }
    }

    /// Adds the client's pause before its request, unless a response is outstanding.
    #[inline(never)]
    fn end_pause(&mut self, context: &mut Context) {
        if let Some(step) = self.pauses.current.take().filter(|_| self.open.is_empty()) {
            let origin = self.row_origin();
            self.pauses.end(step, origin, context);
        }
    }

    /// The step that the client's current segment ended, if an ACK released it.
    #[cold]
    #[inline(never)]
    fn waited_behind(&mut self, at: At) -> Option<Box<Step>> {
        let [client, _] = &self.steps;
        let newest = client.last().filter(|step| step.to.frame == at.frame);
        self.current.is_freed = newest.is_some(); // the same segment may contain more requests
        newest.map(|step| Box::new(step.clone()))
    }

    /// Adds the row of the client's current segment, if an ACK released it and it contains no request (it answers
    /// pushes, say).
    #[cold]
    #[inline(never)]
    pub(super) fn held_unsolicited(&mut self, at: At, context: &mut Context) {
        self.current.is_freed = false;
        if self.protocol.map_or(Kind::Turn, Protocol::kind) == Kind::Turn {
            return; // all its bytes are part of a turn
        }
        let asks =
            |exchange: &Exchange| !exchange.request.is_complete || exchange.request.last.frame == at.frame;
        let [client, _] = &self.steps;
        if let Some(step) = client.last().filter(|step| step.to.frame == at.frame)
            && !self.open.iter().any(|exchange| asks(exchange))
        {
            pauses::push_held_data(step.clone(), self.row_origin(), context);
        }
    }

    /// Ends a message: complete, or cut by `cut`.
    #[inline(always)]
    pub(super) fn message_end(
        &mut self,
        side: Side,
        at: At,
        bytes: u64,
        end_offset: i64,
        cut: Option<Close>,
    ) {
        match side {
            Side::Client => self.request_end(at, bytes, end_offset, cut),
            Side::Server => self.response_end(at, bytes, end_offset, cut),
        }
    }

    fn request_end(&mut self, at: At, bytes: u64, end_offset: i64, cut: Option<Close>) {
        let (at, is_unseen) = self.seen(at);
        if let Some(exchange) = self.newest_incomplete() {
            let request = &mut exchange.request;
            (request.whole, request.last) = (at, at);
            request.last = request.newest_copy().unwrap_or(at);
            request.bytes = bytes;
            request.end_offset = end_offset;
            request.is_complete = cut.is_none();
            if is_unseen {
                exchange.cut_by = Some(CutBy::Gap);
            }
        }
    }

    /// The newest exchange whose request is not complete.
    #[inline(always)]
    fn newest_incomplete(&mut self) -> Option<&mut Box<Exchange>> {
        if self.open.back().is_some_and(|newest| !newest.request.is_complete) {
            return self.open.back_mut();
        }
        self.open
            .iter_mut()
            .rev()
            .find(|exchange| !exchange.request.is_complete)
    }

    fn response_end(&mut self, at: At, bytes: u64, end_offset: i64, cut: Option<Close>) {
        if self.is_interim || self.is_unsolicited {
            if self.is_interim
                && let Some(exchange) = self.open.front_mut()
            {
                exchange.response = None; // 1xx: the final response follows
            }
            self.lost_answers.is_last_unsolicited |= self.is_unsolicited;
            (self.is_interim, self.is_unsolicited) = (false, false);
            return;
        }
        let Some(mut exchange) = self.open.pop_front() else {
            return;
        };
        let (at, is_unseen) = self.seen(at);
        if let Some(response) = &mut exchange.response {
            response.last = at;
            response.bytes = bytes;
            response.is_complete = cut.is_none();
            response.end_offset = end_offset;
        }
        if self.lost_answers.has_hole
            && let Some(next) = self.open.front()
            && next.request.first.frame < at.frame
        {
            // the missing bytes may contain its end, and the responses to requests sent meanwhile or together with it
            self.lost_answers.mixed_since_seq = Some(exchange.ack_at_request);
        }
        exchange.cut_by = if is_unseen || self.lost_answers.mixed_since_seq == Some(exchange.ack_at_request) {
            Some(CutBy::Gap)
        } else {
            exchange.cut_by.or(cut.map(CutBy::from))
        };
        exchange.is_complete = exchange.cut_by.is_none();
        exchange.protocol = self.protocol;
        self.settles(exchange, at);
    }

    /// Moves an exchange whose response ended at `at` to `settling`.
    #[inline(always)]
    pub(super) fn settles(&mut self, mut exchange: Box<Exchange>, at: At) {
        let before = std::mem::replace(&mut self.answered_until_ns, at.time_ns);
        if before > exchange.request.last.time_ns && self.protocol.is_some_and(Protocol::answers_in_order) {
            exchange.previous_response_until_ns = Some(before);
        }
        self.settling.push_back(exchange);
    }

    /// Drops unanswered turns of the client, which sends once more: they were no requests.
    #[cold]
    pub(super) fn drop_unanswered(&mut self, context: &mut Context) {
        let unanswered = |exchange: &Exchange| {
            exchange.kind == Kind::Turn
                && exchange.key.is_none()
                && exchange.response.is_none()
                && !exchange.is_dialogue
        };
        while let Some(pending) = self.open.take(|exchange| unanswered(exchange)) {
            context.recycle(pending);
            self.beats.get_or_insert_default().unmatched += 1;
            self.exchange_count = self.exchange_count.saturating_sub(1); // it was among the newest
        }
    }

    /// Sets the length of the newest request, which has no end and will not be answered.
    #[cold]
    pub(super) fn set_unfinished_length(&mut self, bytes: u64) {
        if let Some(exchange) = self.newest_incomplete().filter(|exchange| exchange.key.is_none()) {
            exchange.request.bytes = bytes;
        }
    }

    /// Ends a side. After the server's end, open requests will not be answered.
    pub(super) fn close(&mut self, side: Side, how: Close, context: &mut Context) {
        if side == Side::Server {
            while let Some(mut exchange) = self.open.pop_front() {
                exchange.cut_by.get_or_insert(CutBy::from(how));
                self.finish(exchange, context);
            }
        }
        while how != Close::Fin && !self.settling.is_empty() {
            self.settle_first(None, context);
        }
        if side == Side::Server || how != Close::Fin {
            self.has_server_ended = true;
            self.release_turns(context);
            if self.subscriptions.is_some() {
                self.leave_subscriptions(context);
            }
        }
    }
}
