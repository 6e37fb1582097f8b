//! Nested exchanges: a server that received a request makes requests of its own before it answers. The inner ones are
//! judged first, and their causes explain the server time of the outer one.

use super::Pipeline;
use super::judging::judge_rows;
use crate::base::Side;
use crate::exchange::{Exchange, RowKind};
use crate::judge::{self, Because, Inside, Nesting, Row, Span};
use crate::limits::AT_ENDPOINT_NS;

/// Upper bound on the judged exchanges that are kept because their outer exchange may end later.
const MAX_WAITING: usize = 256;

/// State that is kept from one judging to the next.
#[derive(Default)]
pub(super) struct Nested {
    nesting: Nesting,
    /// Judged exchanges without an outer one so far.
    waiting: Vec<(Span, Vec<Row>)>,
}

/// An exchange that may be an outer or an inner one.
struct Entry {
    span: Span,
    /// Index into the rows.
    index: usize,
    /// Inner exchanges: index among the entries, and the reason for doubt, if any.
    inside: Vec<(usize, Option<Because>)>,
}

impl Pipeline {
    /// Whether its client host also serves requests, or its server host also makes some.
    pub(super) fn may_nest(&self, exchange: &Exchange) -> bool {
        let store = &self.streams.context.sender_store;
        store.hosts.have_relay()
            && (store.key(exchange.sender_id))
                .is_some_and(|key| store.hosts.asks(&key) || store.hosts.serves(&key))
    }

    /// Judges these exchanges, inner ones first, and appends their rows in the order of the requests.
    #[cold]
    #[allow(clippy::vec_box)] // boxed, as an exchange is moved several times
    pub(super) fn judge_nested(&mut self, pending: Vec<Box<Exchange>>, is_last: bool) {
        let before = std::mem::take(&mut self.nested.waiting);
        let mut rows: Vec<Vec<Row>> = vec![Vec::new(); pending.len()];
        let mut entries: Vec<Entry> = Vec::new();
        for (index, exchange) in pending.iter().enumerate() {
            match self.span(exchange) {
                Some(span) => entries.push(Entry {
                    span,
                    index,
                    inside: Vec::new(),
                }),
                None => self.judge_into(exchange, false, rows.get_mut(index)),
            }
        }
        for (span, earlier_rows) in before {
            entries.push(Entry {
                span,
                index: rows.len(),
                inside: Vec::new(),
            });
            rows.push(earlier_rows);
        }
        entries.sort_by_key(|entry| entry.span.start_ns);
        let outers = self.find_outer(&mut entries, pending.len(), is_last);
        for entry in entries.iter().rev() {
            let Some(exchange) = pending.get(entry.index) else {
                continue; // judged earlier
            };
            let mut own_rows = Vec::new();
            self.judge_into(exchange, !entry.inside.is_empty(), Some(&mut own_rows));
            for (inner, doubt) in &entry.inside {
                let inner = entries.get(*inner).and_then(|inner| rows.get(inner.index));
                judge::explain(&mut own_rows, inner.map_or(&[], Vec::as_slice), *doubt);
            }
            if let Some(slot) = rows.get_mut(entry.index) {
                *slot = own_rows;
            }
        }
        for (index, exchange) in pending.into_iter().enumerate() {
            let paths = self.paths(&exchange);
            let rows = rows.get(index).map_or(&[] as &[Row], Vec::as_slice);
            self.tables.judged(&exchange, rows, &paths, &self.streams.pairs);
            self.streams.context.recycle(exchange);
        }
        let newest_first = entries.iter().zip(&outers).rev();
        self.nested.waiting = newest_first
            .filter(|(entry, inside)| entry.span.may_be_inner && inside.is_none())
            .take(MAX_WAITING)
            .filter_map(|(entry, _)| Some((entry.span, std::mem::take(rows.get_mut(entry.index)?))))
            .collect();
    }

    /// Finds the outer exchange of each entry and fills `inside`. Entries whose `index` is `fresh` or more were
    /// searched before.
    fn find_outer(&mut self, entries: &mut [Entry], fresh: usize, is_last: bool) -> Vec<Option<Inside>> {
        let spans: Vec<Span> = entries.iter().map(|entry| entry.span).collect();
        let is_searched: Vec<bool> = entries.iter().map(|entry| entry.index >= fresh).collect();
        let outers = self.nested.nesting.look(&spans, &is_searched, is_last);
        for (inner, inside) in outers.iter().enumerate() {
            if let Some(inside) = inside
                && let Some(front) = entries.get_mut(inside.front)
            {
                front.inside.push((inner, inside.doubt));
            }
        }
        for entry in entries {
            // parallel inner requests: the outer response waited for the one that ended last
            (entry.inside)
                .sort_by_key(|(inner, _)| spans.get(*inner).map(|span| std::cmp::Reverse(span.end_ns)));
        }
        outers
    }

    /// Appends the cause rows of an exchange to `rows`.
    fn judge_into(&self, exchange: &Exchange, calls_others: bool, rows: Option<&mut Vec<Row>>) {
        let Some(rows) = rows else { return };
        let paths = self.paths(exchange);
        let context = self.exchange_context(exchange, &paths, calls_others);
        judge_rows(exchange, &context, rows);
    }

    /// Times of request and response, if the exchange was answered and may nest.
    fn span(&self, exchange: &Exchange) -> Option<Span> {
        if exchange.row != RowKind::Exchange || !exchange.is_complete {
            return None;
        }
        let store = &self.streams.context.sender_store;
        let answer = exchange.response.as_ref()?;
        let key = store.key(exchange.sender_id)?;
        let (may_be_outer, may_be_inner) = (store.hosts.asks(&key), store.hosts.serves(&key));
        let is_at_host = Side::BOTH.map(|side| {
            let rtt = self.streams.pairs.min(exchange.pair, side);
            rtt.is_some_and(|rtt| rtt < AT_ENDPOINT_NS.get())
        });
        (may_be_outer || may_be_inner).then(|| Span {
            key,
            start_ns: exchange.start(),
            request_end_ns: exchange.request.last.time_ns,
            answered_ns: answer.first.time_ns,
            end_ns: exchange.end().time_ns,
            is_at_host,
            may_be_outer,
            may_be_inner,
        })
    }
}
