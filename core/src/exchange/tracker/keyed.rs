//! Exchanges of protocols that answer in any order (HTTP/2): several are open at once, and a key, such as the HTTP/2
//! stream id, finds the request of a response.

use super::MAX_OPEN;
use super::pairing::Pairing;
use crate::base::{At, Side};
use crate::exchange::{Context, CutBy, Exchange, Message};
use crate::messages::{ExchangeEvent, Kind, RequestName, Status};

/// Upper bound on the open exchanges of one stream whose keys do not rise, since finding one is a linear search.
/// HTTP/2 peers mostly allow 100 to 256. Beyond it the oldest ends as incomplete. Rising keys are found by binary
/// search, up to `MAX_OPEN`.
const MAX_KEYED: usize = 256;

impl Exchange {
    /// Sets the status of the response; fields that are None keep their value.
    pub(super) fn set_status(&mut self, status: Status<'_>) {
        self.status = status.code.or(self.status);
        if let Some(text) = status.text {
            self.status_text = Some(text.into());
        }
        self.is_error |= status.error;
    }

    fn named(&mut self, named: RequestName<'_>) {
        let slots = [&mut self.method, &mut self.target, &mut self.host];
        for (slot, text) in slots.into_iter().zip([named.method, named.target, named.host]) {
            if !text.is_empty() {
                *slot = Some(text.into());
            }
        }
    }
}

impl Pairing {
    /// Records a packet with a part of the response to the oldest request.
    #[inline(always)]
    pub(super) fn piece(&mut self, at: At) {
        let (at, _) = self.seen(at);
        if let Some(exchange) = self.answered_exchange() {
            exchange.pieces.add(at);
        }
    }

    /// Applies a reader's event to the exchange with this key. `read_until` is how far this side's stream has been
    /// read.
    #[inline(never)]
    pub(super) fn keyed(
        &mut self,
        key: u64,
        side: Side,
        at: At,
        event: ExchangeEvent<'_>,
        read_until: i64,
        context: &mut Context,
    ) {
        match event {
            ExchangeEvent::RequestBegin(kind) => return self.ask(key, side, kind, at, context),
            ExchangeEvent::Adopt => return self.adopt(key),
            ExchangeEvent::AnswerEnd
            | ExchangeEvent::Unanswered
            | ExchangeEvent::Reset
            | ExchangeEvent::GivenUp => {
                return self.end_keyed(key, event, at, read_until, context);
            }
            ExchangeEvent::Subscribes(number) => {
                let subscribing = self.find(key).map(|exchange| {
                    exchange.kind = Kind::Subscription;
                    exchange.id
                });
                if let Some(exchange) = subscribing {
                    self.subscribes(exchange, number, context);
                }
                return;
            }
            _ => {}
        }
        let (at, is_unseen) = self.seen(at);
        let Some(exchange) = self.find(key) else { return };
        let is_request = side == exchange.requester();
        match (event, is_request) {
            (ExchangeEvent::RequestName(named), _) => exchange.named(named),
            (ExchangeEvent::Tags(tags), _) => exchange.add_tags(tags),
            // A complete request may get more bytes before its response: the next round of a log-in.
            (ExchangeEvent::Bytes(bytes), true)
                if !exchange.request.is_complete || exchange.response.is_none() =>
            {
                exchange.request.bytes = exchange.request.bytes.saturating_add(bytes);
                exchange.request.last = at;
            }
            (ExchangeEvent::Bytes(bytes), false) => {
                let response = exchange.answer(at);
                response.bytes = response.bytes.saturating_add(bytes);
                response.last = at;
            }
            (ExchangeEvent::RequestEnd, _) => {
                exchange.request.whole = exchange.request.last;
                exchange.request.last = exchange.request.newest_copy().unwrap_or(exchange.request.last);
                (exchange.request.is_complete, exchange.request.end_offset) = (true, read_until);
            }
            (ExchangeEvent::AnswerBegin, false) => drop(exchange.answer(at)),
            (ExchangeEvent::Status(status), _) => exchange.set_status(status),
            (ExchangeEvent::IsEventStream, _) => exchange.kind = Kind::EventStream,
            (ExchangeEvent::Piece, false) => exchange.pieces.add(at),
            (ExchangeEvent::Dialogue, _) => exchange.is_dialogue = true,
            (ExchangeEvent::Interim, _) => (exchange.response, exchange.pieces) = (None, Default::default()),
            _ => {}
        }
        if is_unseen {
            exchange.cut_by = Some(CutBy::Gap);
        }
    }

    fn find(&mut self, key: u64) -> Option<&mut Box<Exchange>> {
        // the usual case: requests are answered in their order
        if self
            .open
            .front()
            .is_some_and(|exchange| exchange.key == Some(key))
        {
            return self.open.front_mut();
        }
        if self.keys.are_rising {
            return self.open.find_sorted(|exchange| exchange.key.cmp(&Some(key)));
        }
        self.open
            .iter_mut()
            .rev()
            .find(|exchange| exchange.key == Some(key))
    }

    fn ask(&mut self, key: u64, side: Side, kind: Kind, at: At, context: &mut Context) {
        let is_rising = self.keys.highest < Some(key);
        self.keys.highest = self.keys.highest.max(Some(key));
        let is_sorted = match self.open.back() {
            Some(newest) => self.keys.are_rising && newest.key.is_some_and(|newest| newest < key),
            None => true,
        };
        let max_open = if is_sorted { MAX_OPEN } else { MAX_KEYED };
        if !is_rising && let Some(before) = self.take(key) {
            self.give_up(before, context);
        }
        while self.open.len() >= max_open
            && let Some(oldest) = self.open.pop_front()
        {
            context.distrust(
                "tcp",
                "too many requests are open at once; the oldest is given up",
                at,
            );
            self.give_up(oldest, context);
        }
        match side {
            Side::Client => self.open_exchange(at, context),
            Side::Server => self.open_by_server(at, context),
        }
        if let Some(request) = self.newest_request() {
            (request.key, request.kind) = (Some(key), kind);
        }
        self.keys.are_rising = is_sorted;
    }

    /// Removes and returns the exchange with this key.
    fn take(&mut self, key: u64) -> Option<Box<Exchange>> {
        if self.keys.are_rising {
            return self.open.take_sorted(|exchange| exchange.key.cmp(&Some(key)));
        }
        self.open.take(|exchange| exchange.key == Some(key))
    }

    fn adopt(&mut self, key: u64) {
        if let Some(exchange) = self.open.iter_mut().find(|exchange| exchange.key.is_none()) {
            (exchange.key, exchange.response) = (Some(key), None);
        }
    }

    /// Ends the exchange with this key.
    fn end_keyed(
        &mut self,
        key: u64,
        event: ExchangeEvent<'_>,
        at: At,
        read_until: i64,
        context: &mut Context,
    ) {
        let (at, is_unseen) = self.seen(at);
        let Some(mut exchange) = self.take(key) else {
            return;
        };
        if is_unseen {
            exchange.cut_by = Some(CutBy::Gap);
        }
        exchange.protocol = self.protocol;
        if let ExchangeEvent::Reset | ExchangeEvent::GivenUp = event {
            let by = if event == ExchangeEvent::Reset {
                CutBy::Reset
            } else {
                CutBy::Gap
            };
            exchange.cut_by.get_or_insert(by);
            return self.finish(exchange, context);
        }
        if event == ExchangeEvent::Unanswered {
            exchange.is_complete = exchange.cut_by.is_none();
            return self.finish(exchange, context);
        }
        let response = exchange.answer(at);
        (response.last, response.end_offset, response.is_complete) = (at, read_until, true);
        exchange.is_complete = exchange.cut_by.is_none();
        if exchange.by_server {
            return self.finish(exchange, context); // arrival is only tracked at the client
        }
        self.settles(exchange, at);
    }

    /// Ends all open exchanges with a key, as the reader has lost the stream.
    pub(super) fn lose_keyed(&mut self, context: &mut Context) {
        while let Some(exchange) = self.open.take(|exchange| exchange.key.is_some()) {
            self.give_up(exchange, context);
        }
    }

    fn give_up(&mut self, mut exchange: Box<Exchange>, context: &mut Context) {
        exchange.cut_by.get_or_insert(CutBy::Gap);
        self.finish(exchange, context);
    }
}

impl Exchange {
    /// Its response, which begins at `at` if it has not begun before.
    fn answer(&mut self, at: At) -> &mut Message {
        self.response.get_or_insert_with(|| Message {
            first: at,
            last: at,
            ..Message::default()
        })
    }
}
