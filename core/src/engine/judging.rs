//! Decides when finished exchanges are judged, hands the evidence of the whole capture to `judge`, and appends the
//! rows.

use super::Pipeline;
use crate::base::Side;
use crate::capture::RecordSink;
use crate::evidence::rtt::Rtt;
use crate::exchange::{Exchange, RowKind};
use crate::issue::{Issue, Kind};
use crate::judge::{self, ExchangeContext, Paths, Row};
use crate::limits::{RARE_SHARE, SOON_NS};
use crate::messages::{Kind as MessageKind, Protocol};
use crate::probe;
use crate::table::BATCH_ROWS;

/// Upper bound on the exchanges that wait for evidence from other exchanges; beyond it all are judged with the
/// evidence so far.
pub(super) const MAX_PENDING: usize = 8192;
/// Upper bound on the exchanges that wait for nothing but the best RTTs of their path, which a few exchanges measure.
/// Small, so that they stay in the processor's cache.
const MAX_PLAIN: usize = 128;
/// Upper bound on the finished streams that wait for evidence. Beyond it their set-ups are judged with the
/// evidence so far, and numbered among the requests. A whole batch of rows, so that stream ids rise within each batch.
const MAX_RETIRED: usize = BATCH_ROWS;

impl Pipeline {
    /// Judges the exchanges whose queue is full.
    #[inline(always)]
    pub(super) fn judge_some(&mut self) {
        if self.streams.context.pending_plain.len() >= MAX_PLAIN {
            self.judge_plain();
        }
        if self.streams.context.pending.len() >= MAX_PENDING {
            self.judge_pending(false);
        }
        if self.streams.retired.len() >= MAX_RETIRED {
            self.write_retired();
        }
    }

    /// Appends the rows of streams whose address and port pair a newer connection uses.
    #[cold]
    fn write_retired(&mut self) {
        self.judge_pending(false);
        let mut retired = std::mem::take(&mut self.streams.retired);
        retired.sort_unstable_by_key(|(id, _)| *id);
        for (id, stream) in retired {
            for probe in probe::syn_probes(id, &stream) {
                self.tables.probe(probe);
            }
            self.write_stream(id, &stream);
            self.streams.recycle(stream);
        }
    }

    /// Judges all pending exchanges with the evidence so far, in the order of their requests. `is_last`: the capture
    /// has ended.
    pub(super) fn judge_pending(&mut self, is_last: bool) {
        let mut pending = std::mem::take(&mut self.streams.context.pending);
        pending.append(&mut self.streams.context.pending_plain);
        pending.sort_by_key(|exchange| exchange.id);
        self.senders
            .judge(&self.streams.context.sender_store, &self.streams.pairs, is_last);
        if self.streams.context.sender_store.hosts.have_relay() {
            for exchange in &mut pending {
                self.apply_late_evidence(exchange);
            }
            self.judge_nested(pending, is_last);
        } else {
            for mut exchange in pending {
                self.apply_late_evidence(&mut exchange);
                let paths = self.paths(&exchange);
                self.judge_and_write(&exchange, &paths);
                self.streams.context.recycle(exchange);
            }
        }
        if self.streams.context.sender_store.should_evict() {
            self.evict();
        }
    }

    /// Corrects the times of an exchange by evidence that came after its end: retransmissions that proved to be
    /// spurious, and when the program wrote the first byte.
    #[inline]
    fn apply_late_evidence(&self, exchange: &mut Exchange) {
        let spurious = &self.streams.context.spurious;
        // A first copy that passed near the client's host has arrived. Farther away it may have been late.
        let is_near_client = || {
            self.paths(exchange)
                .best_rtt(Side::Client)
                .is_some_and(|rtt| rtt < SOON_NS.get())
        };
        if !spurious.is_empty() && is_near_client() {
            exchange.end_with_first_copy(spurious);
        }
        if exchange.held_before.is_some() {
            self.begin_before(exchange);
        }
    }

    /// Moves the start back to when the program made the request, if the kernel held it behind another message until
    /// an ACK.
    #[cold]
    fn begin_before(&self, exchange: &mut Exchange) {
        let paths = self.paths(exchange);
        let (side, judged_senders) = (exchange.first_sender(), self.senders.all());
        let since = (exchange.held_before.as_deref())
            .and_then(|step| judge::held_since(&step.wait, side, judged_senders, &paths));
        if let Some(since) = since {
            exchange.move_start_back(since);
        }
    }

    /// Evicts the evidence on the senders that were quiet longest, and reports that.
    #[cold]
    fn evict(&mut self) {
        self.senders
            .evict(&mut self.streams.context.sender_store, &self.streams.pairs);
        let reason = "much evidence on small segments; that on the least recently seen senders was evicted";
        self.issue(Issue::new(Kind::Distrusted, "tcp", reason).in_frame(self.frame));
    }

    /// Judges the exchanges that wait for the best RTTs of their path only. Those whose path has too few measured
    /// RTTs move to `pending`.
    fn judge_plain(&mut self) {
        let next = std::mem::take(&mut self.spare_pending);
        let mut plain = std::mem::replace(&mut self.streams.context.pending_plain, next);
        let joined = self.streams.context.multipath.joined;
        for exchange in plain.drain(..) {
            if !joined && self.streams.pairs.is_firm(exchange.pair) && !self.may_nest(&exchange) {
                let context = ExchangeContext {
                    paths: &self.paths(&exchange),
                    stream: exchange.stream,
                    judged_senders: &[],
                    spurious_frames: None,
                    is_spread: false,
                    calls_others: false,
                    is_multi_message: false,
                };
                self.rows.clear();
                judge_rows(&exchange, &context, &mut self.rows);
                self.tables
                    .judged(&exchange, &self.rows, context.paths, &self.streams.pairs);
                self.streams.context.recycle(exchange);
            } else {
                self.streams.context.pending.push(exchange);
            }
        }
        self.spare_pending = plain;
        if self.streams.context.sender_store.should_evict() {
            self.judge_pending(false);
        }
    }

    /// RTTs of both halves of the exchange's path.
    pub(super) fn paths(&self, exchange: &Exchange) -> Paths {
        let rounds = exchange.kernel_rtts;
        let Some(pair) = self.streams.pairs.get(exchange.pair) else {
            return Paths {
                kernel_rtts: rounds,
                by_program: [true; 2],
                ..Paths::default()
            };
        };
        let rtts = pair.rtts.each_ref();
        Paths {
            best_rtts_ns: rtts.map(Rtt::min),
            handshake_behind_middlebox_ns: rtts.map(Rtt::handshake_behind_middlebox),
            kernel_rtts: rounds,
            by_program: rtts.map(|rtt| !rtt.has_kernel_answer()),
            by_one_answer: rtts.map(Rtt::is_one_answer),
        }
    }

    /// Judges one exchange with the evidence of the whole capture, and appends its rows.
    pub(super) fn judge_and_write(&mut self, exchange: &Exchange, paths: &Paths) {
        let mut rows = std::mem::take(&mut self.rows);
        let context = self.exchange_context(exchange, paths, false);
        rows.clear();
        judge_rows(exchange, &context, &mut rows);
        self.tables.judged(exchange, &rows, paths, &self.streams.pairs);
        self.rows = rows;
    }

    /// Evidence of the whole capture for judging this exchange. `calls_others`: during it, the server's host sent
    /// requests of its own.
    pub(super) fn exchange_context<'a>(
        &'a self,
        exchange: &Exchange,
        paths: &'a Paths,
        calls_others: bool,
    ) -> ExchangeContext<'a> {
        let spurious = &self.streams.context.spurious;
        ExchangeContext {
            paths,
            stream: exchange.stream,
            judged_senders: self.senders.all(),
            is_spread: self.streams.context.multipath.is_spread(exchange.stream),
            calls_others,
            is_multi_message: exchange.row != RowKind::Exchange || exchange.kind == MessageKind::EventStream,
            spurious_frames: (!spurious.is_empty() && !exchange.is_plain()).then_some(spurious),
        }
    }
}

/// Judges an exchange, then lowers the confidence of causes by what is known about the whole exchange.
#[inline(always)]
pub(super) fn judge_rows(exchange: &Exchange, context: &ExchangeContext<'_>, rows: &mut Vec<Row>) {
    judge::judge_exchange(exchange, context, rows);
    let is_interactive = exchange.protocol.is_some_and(Protocol::is_interactive);
    if exchange.kind == MessageKind::Turn || is_interactive {
        // A TLS handshake is read and waits for its server. The client of an interactive session may wait for a person.
        judge::cap_unknown_protocol(rows, exchange.is_dialogue && !is_interactive);
    }
    if exchange.kind == MessageKind::LongPoll {
        judge::cap_long_poll(rows);
    }
    if let (MessageKind::EventStream, Some(answer)) = (exchange.kind, &exchange.response) {
        // a response whose head is at most as long after the request as the longest time between two events: the server
        // sent the head with the first event, so the wait for the head was a wait for that event
        let (began, gap) = (
            answer.first.time_ns - exchange.request.last.time_ns,
            exchange.pieces.longest_gap_ns,
        );
        let ticks = exchange.pieces.count > 2 && began as f64 <= gap as f64 * (1.0 + RARE_SHARE.get());
        let since = if ticks {
            exchange.request.last
        } else {
            answer.first
        };
        judge::cap_event_stream(rows, since.time_ns);
    }
    if let Some(until) = exchange.previous_response_until_ns {
        judge::cap_behind_answers(rows, until);
    }
    if exchange.row == RowKind::Pause {
        judge::cap_piggyback(rows);
    }
    if exchange.is_doubled {
        judge::cap_doubled(rows);
    }
    if context.is_spread {
        judge::cap_multipath(rows);
    }
}
