//! Messages to exchanges: requests wait in order, and each answer belongs to the oldest of them.

use std::num::NonZeroI64;

use super::beats::Beats;
use super::pauses::RowPlace;
use super::subscriptions::Subscriptions;
use super::{BIAS, MAX_OPEN, pauses};
use crate::base::{At, Side};
use crate::evidence::rtt::KernelRtt;
use crate::exchange::setup::Begun;
use crate::exchange::{Context, CutBy, Exchange, FlowControl, Message, few_steps};
use crate::messages::{Close, Kind, Protocol, Tags};
use crate::observe::Step;
use crate::queue::Queue;

/// Buffers for more are not kept for the next stream.
const SMALL_CAPACITY: usize = 64;

/// One stream's exchanges, and the steps of both directions that they will need.
#[derive(Default)]
pub(super) struct Pairing {
    /// The stream's number.
    pub(super) stream: u32,
    /// The number of its pair of hosts.
    pub(super) pair: u32,
    /// The client's port and the server's.
    ports: [u16; 2],
    /// Where evidence on the server as a sender is pooled.
    sender_id: u32,
    /// By side: the steps that no exchange has taken yet, oldest first.
    pub(super) steps: [Vec<Step>; 2],
    /// By side: the path's recent round trip, when that side's last turn was over.
    pub(super) rounds: [KernelRtt; 2],
    /// The stream's segments are in the capture twice.
    pub(super) doubled: bool,
    /// Steps that the context counts towards its cap; it learns of long messages only.
    pub(super) counted: usize,
    /// Requests without a whole answer, oldest first.
    // boxed: an exchange changes hands several times
    pub(super) open: Queue<Box<Exchange>>,
    /// Answered exchanges that later packets may still change, oldest first.
    pub(super) settling: Queue<Box<Exchange>>,
    /// When the newest whole answer had passed.
    answered_until: i64,
    /// The protocol that was recognised last.
    pub(super) protocol: Option<Protocol>,
    /// The client that a proxy's head names for the whole connection.
    pub(super) tags: Option<Box<Tags>>,
    /// The answer that is being read is an interim one (1xx).
    pub(super) interim: bool,
    /// The message that is being read answers no request.
    pub(super) unsolicited: bool,
    /// Bytes were read that no message covers yet.
    pub(super) has_unread: bool,
    /// The server has pushed a message: its steps are kept for the next one.
    pub(super) pushes: bool,
    /// The highest byte that the client has acknowledged.
    pub(super) client_ack: i64,
    /// The highest byte that the server has acknowledged.
    pub(super) server_ack: i64,
    /// Where the last answers ended is not known: some may not be in the capture.
    pub(super) answers_lost: bool,
    /// What had been acknowledged when a series of requests was sent, whose answers can no longer be distinguished.
    mixed: Option<i64>,
    /// An answer came without a request: the capture may lack it.
    was_unsolicited: bool,
    /// The newest open request was captured behind its answer, which came without one (`was_unsolicited`).
    answered: bool,
    /// The packet that showed that the bytes of the present one had been sent before.
    pub(super) shown: Option<At>,
    /// Of HTTP/2, where the connection was read from its beginning.
    pub(super) flow_control: Option<Box<FlowControl>>,
    /// The client's step that the present packet ends, where it is a pause.
    pub(super) paused: Option<Step>,
    /// A client's segment has left with the ACK of a small one before it: the newest step has its frame.
    pub(super) freed: bool,
    /// What the server's segment in the present packet answers, where an ACK has freed it.
    pub(super) freed_since: Option<At>,
    /// A short pause without another so far, and the index of the request after it.
    lone_pause: Option<Box<(Step, u32)>>,
    /// The client has paused between requests before.
    pauses: bool,
    /// Exchanges so far; the next one's number.
    pub(super) exchanges: u32,
    /// The highest key that a request had.
    pub(super) highest: Option<u64>,
    /// The open exchanges' keys rise.
    pub(super) sorted: bool,
    /// What came before the first request.
    pub(super) begun: Begun,
    /// The time that all exchanges took together.
    pub(super) busy: i64,
    /// The time of all the client's pauses between exchanges together.
    pub(super) idle: i64,
    /// The packet that is being read.
    pub(super) frame: u64,
    /// Heartbeats, where the stream is read in turns.
    pub(super) beats: Option<Box<Beats>>,
    /// Requests whose answers are pushed.
    pub(super) subscriptions: Option<Box<Subscriptions>>,
    /// The server sends no more.
    pub(super) over: bool,
}

impl Pairing {
    pub(super) fn new(stream: u32, pair: u32, ports: [u16; 2], sender_id: u32) -> Self {
        Pairing {
            stream,
            pair,
            ports,
            sender_id,
            steps: few_steps(),
            ..Pairing::default()
        }
    }

    /// For another stream, in the buffers of the one before.
    pub(super) fn renew(&mut self, stream: u32, pair: u32, ports: [u16; 2], sender_id: u32) {
        // in place: a new one would be made elsewhere and moved; named one by one, so that no field is forgotten
        let Pairing {
            stream: own_stream,
            pair: own_pair,
            ports: own_ports,
            sender_id: own_sender_id,
            steps,
            rounds,
            doubled,
            counted,
            open,
            settling,
            answered_until,
            protocol,
            tags,
            interim,
            unsolicited,
            has_unread,
            pushes,
            client_ack,
            server_ack,
            answers_lost,
            mixed,
            was_unsolicited,
            answered,
            shown,
            flow_control,
            paused,
            freed,
            freed_since,
            lone_pause,
            pauses,
            exchanges,
            highest,
            sorted,
            begun,
            busy,
            idle,
            frame,
            beats,
            subscriptions,
            over,
        } = self;
        (*own_stream, *own_pair, *own_ports, *own_sender_id) = (stream, pair, ports, sender_id);
        (*protocol, *tags, *exchanges) = (None, None, 0);
        (*counted, *client_ack, *server_ack, *answered_until) = (0, 0, 0, 0);
        (*busy, *idle, *frame, *highest, *begun) = (0, 0, 0, None, Begun::default());
        (*interim, *unsolicited, *answers_lost, *was_unsolicited) = (false, false, false, false);
        (*answered, *pauses, *doubled, *has_unread) = (false, false, false, false);
        (*pushes, *freed, *sorted, *over) = (false, false, false, false);
        (*beats, *subscriptions) = (None, None);
        *rounds = Default::default();
        *flow_control = None;
        (*mixed, *shown, *paused, *lone_pause, *freed_since) = (None, None, None, None, None);
        steps.iter_mut().for_each(Vec::clear);
        open.clear();
        settling.clear();
    }

    /// Whether its buffers are no larger than most streams need them.
    pub(super) fn is_small(&self) -> bool {
        let steps = self.steps.iter().map(Vec::capacity).max();
        let most = [steps.unwrap_or(0), self.open.capacity(), self.settling.capacity()];
        most.iter().all(|capacity| *capacity <= SMALL_CAPACITY)
    }

    pub(super) fn place(&self) -> RowPlace {
        RowPlace {
            stream: self.stream,
            index: self.exchanges,
            pair: self.pair,
            rounds: self.rounds,
            doubled: self.doubled,
        }
    }

    /// No exchange waits for anything.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.settling.is_empty()
    }

    /// Steps are needed though no exchange is open.
    #[inline(always)]
    pub(super) fn waits(&self) -> bool {
        self.has_unread || self.unsolicited
    }

    /// An answer begins, in a piece at this offset; `asking` is how far an open request has come.
    pub(super) fn answer(&mut self, at: At, offset: u64, asking: Option<(At, u64)>, context: &mut Context) {
        let (at, unseen) = self.seen(at);
        (self.interim, self.answered) = (false, false);
        if unseen || self.answers_lost || self.mixed.is_some() {
            self.give_up_answered(offset as i64 - BIAS, context);
            self.answers_lost = unseen;
        }
        let Some(e) = self.open.front_mut() else {
            self.unsolicited = true; // a greeting, or a time-out notice
            if self.exchanges == 0 {
                self.begun.greeted = self.begun.greeted.or(NonZeroI64::new(at.time_ns));
            }
            return;
        };
        self.unsolicited = false;
        if let (false, Some((last, bytes))) = (e.request.complete, asking) {
            // answered before it was whole; if it never is, this is the request
            (e.request.last, e.request.bytes) = (last, bytes);
        }
        e.answered_from = self.freed_since.filter(|since| {
            e.kind == Kind::Turn && (e.request.first.frame..e.request.last.frame).contains(&since.frame)
        });
        e.response = Some(Message {
            first: at,
            last: at,
            ..Message::default()
        });
        if unseen {
            e.cut_by = Some(CutBy::Gap);
        }
    }

    /// Where a note stands, and whether the capture lacks the packet that would say it: then it is not known
    /// when it came, and the packet that showed the hole stands for it.
    pub(super) fn seen(&self, at: At) -> (At, bool) {
        let unseen = at.frame == 0;
        let frame = if unseen { self.frame } else { at.frame };
        (At { frame, ..at }, unseen)
    }

    /// An answer begins at `offset`, behind some that may not be in the capture. A client that sent a new request with more acknowledged
    /// than before had its answer; and what a client had before its request is not the answer to it.
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
        self.mixed = self.mixed.filter(still);
    }

    pub(super) fn open_exchange(&mut self, at: At, context: &mut Context) {
        let (at, unseen) = self.seen(at);
        if self.answered || self.open.len() >= MAX_OPEN {
            self.make_room(at, context);
        }
        self.answered = unseen && self.was_unsolicited;
        self.was_unsolicited = false;
        if self.paused.is_some() {
            self.end_pause(context);
        }
        let mut exchange = context.open(self.stream, self.exchanges, self.pair);
        // a request that was lost on its way was sent no later than the packet that showed its absence
        exchange.request.first = self.shown.filter(|shown| shown.frame < at.frame).unwrap_or(at);
        exchange.request.last = at;
        (exchange.sender_id, exchange.ports) = (self.sender_id, self.ports);
        exchange.ack_at_request = self.client_ack;
        exchange.kind = self.protocol.map_or(Kind::Turn, Protocol::kind);
        exchange.cut_by = unseen.then_some(CutBy::Gap);
        if self.tags.is_some() {
            exchange.tags.clone_from(&self.tags);
        }
        if self.freed {
            exchange.before = self.waited_behind(at);
        }
        self.open.push_back(exchange);
        self.sorted = false;
        self.exchanges += 1;
    }

    /// The server asks: what its client pauses for, or had held, is no part of that.
    #[cold]
    pub(super) fn open_by_server(&mut self, at: At, context: &mut Context) {
        let (paused, freed) = (self.paused.take(), std::mem::take(&mut self.freed));
        self.open_exchange(at, context);
        (self.paused, self.freed) = (paused, freed);
        if let Some(e) = self.open.back_mut() {
            (e.by_server, e.sender_id) = (true, u32::MAX);
        }
    }

    /// The layer that an issue with these messages names: the protocol that is read.
    pub(super) fn layer(&self) -> &'static str {
        self.protocol.map_or("tcp", Protocol::word)
    }

    /// The newest request has been answered, or too many wait.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, at: At, context: &mut Context) {
        if std::mem::take(&mut self.answered)
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

    /// The client paused before its request, unless it waits for an answer.
    #[inline(never)]
    fn end_pause(&mut self, context: &mut Context) {
        if let Some(step) = self.paused.take().filter(|_| self.open.is_empty()) {
            self.pause(step, context);
        }
    }

    /// The wait that the client's segment in this packet ended, where an ACK has freed it.
    #[cold]
    #[inline(never)]
    fn waited_behind(&mut self, at: At) -> Option<Box<Step>> {
        let [client, _] = &self.steps;
        let newest = client.last().filter(|step| step.to.frame == at.frame);
        self.freed = newest.is_some(); // more requests may have left with it
        newest.map(|step| Box::new(step.clone()))
    }

    /// The client's segment in this packet asks for nothing (it answers pushes, say), and an ACK has freed it.
    #[cold]
    #[inline(never)]
    pub(super) fn held_unsolicited(&mut self, at: At, context: &mut Context) {
        self.freed = false;
        if self.protocol.map_or(Kind::Turn, Protocol::kind) == Kind::Turn {
            return; // all its bytes are part of a turn
        }
        let asks = |e: &Exchange| !e.request.complete || e.request.last.frame == at.frame;
        let [client, _] = &self.steps;
        if let Some(step) = client.last().filter(|step| step.to.frame == at.frame)
            && !self.open.iter().any(|e| asks(e))
        {
            pauses::held_unsolicited(step.clone(), self.place(), context);
        }
    }

    /// One short pause may be a busy host's; it has a row when another one comes.
    #[cold]
    fn pause(&mut self, step: Step, context: &mut Context) {
        let place = self.place();
        if !std::mem::replace(&mut self.pauses, true) && pauses::is_short(&step) {
            self.lone_pause = Some(Box::new((step, place.index)));
            return;
        }
        if let Some(first) = self.lone_pause.take() {
            let (first, index) = *first;
            pauses::pause(first, RowPlace { index, ..place }, context);
        }
        pauses::pause(step, place, context);
    }

    /// A message has ended, or stops here.
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
        let (at, unseen) = self.seen(at);
        if let Some(e) = self.asking() {
            let request = &mut e.request;
            (request.whole, request.last) = (at, at);
            request.last = request.newest_copy().unwrap_or(at);
            request.bytes = bytes;
            request.end_offset = end_offset;
            request.complete = cut.is_none();
            if unseen {
                e.cut_by = Some(CutBy::Gap);
            }
        }
    }

    /// The newest exchange whose request is not whole yet.
    #[inline(always)]
    fn asking(&mut self) -> Option<&mut Box<Exchange>> {
        if self.open.back().is_some_and(|newest| !newest.request.complete) {
            return self.open.back_mut();
        }
        self.open.iter_mut().rev().find(|e| !e.request.complete)
    }

    fn response_end(&mut self, at: At, bytes: u64, end_offset: i64, cut: Option<Close>) {
        if self.interim || self.unsolicited {
            if self.interim
                && let Some(e) = self.open.front_mut()
            {
                e.response = None; // 1xx: the answer is still to come
            }
            self.was_unsolicited |= self.unsolicited;
            (self.interim, self.unsolicited) = (false, false);
            return;
        }
        let Some(mut e) = self.open.pop_front() else {
            return;
        };
        let (at, unseen) = self.seen(at);
        if let Some(r) = &mut e.response {
            r.last = at;
            r.bytes = bytes;
            r.complete = cut.is_none();
            r.end_offset = end_offset;
        }
        if self.answers_lost
            && let Some(next) = self.open.front()
            && next.request.first.frame < at.frame
        {
            // its end may be in what was lost, and the answers to requests made meanwhile or together with it
            self.mixed = Some(e.ack_at_request);
        }
        e.cut_by = if unseen || self.mixed == Some(e.ack_at_request) {
            Some(CutBy::Gap)
        } else {
            e.cut_by.or(cut.map(CutBy::from))
        };
        e.complete = e.cut_by.is_none();
        e.protocol = self.protocol;
        self.settles(e, at);
    }

    /// The answer of this exchange ended at `at`.
    #[inline(always)]
    pub(super) fn settles(&mut self, mut e: Box<Exchange>, at: At) {
        let before = std::mem::replace(&mut self.answered_until, at.time_ns);
        if before > e.request.last.time_ns && self.protocol.is_some_and(Protocol::answers_in_order) {
            e.behind_until = Some(before);
        }
        self.settling.push_back(e);
    }

    /// The client sends again, and its message before was not answered: that was no request.
    #[cold]
    pub(super) fn drop_unanswered(&mut self, context: &mut Context) {
        let unanswered =
            |e: &Exchange| e.kind == Kind::Turn && e.key.is_none() && e.response.is_none() && !e.dialogue;
        while let Some(pending) = self.open.take(|e| unanswered(e)) {
            context.done(pending);
            self.beats.get_or_insert_default().alone += 1;
            self.exchanges = self.exchanges.saturating_sub(1); // it was among the newest
        }
    }

    /// The newest request has no end, and will not be answered: its length so far.
    #[cold]
    pub(super) fn asked_so_far(&mut self, bytes: u64) {
        if let Some(e) = self.asking().filter(|e| e.key.is_none()) {
            e.request.bytes = bytes;
        }
    }

    /// A side sends no more; after the server's end, what is still open will not be answered.
    pub(super) fn close(&mut self, side: Side, how: Close, context: &mut Context) {
        if side == Side::Server {
            while let Some(mut e) = self.open.pop_front() {
                e.cut_by.get_or_insert(CutBy::from(how));
                self.finish(e, context);
            }
        }
        while how != Close::Fin && !self.settling.is_empty() {
            self.settle_first(None, context);
        }
        if side == Side::Server || how != Close::Fin {
            self.over = true;
            self.release_turns(context);
            if self.subscriptions.is_some() {
                self.leave_subscriptions(context);
            }
        }
    }
}
