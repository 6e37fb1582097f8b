//! The part of the sink for exchanges that have a key. `request`, `count`, `end_request` while the client's bytes are
//! read, then `answer`, `piece`, `end_answer` while the server's are.

use super::Sink;
use crate::base::At;
use crate::messages::tags::Tags;
use crate::messages::{ExchangeEvent, Kind, Listener, Note, RequestName, Side, Status};

/// One exchange. Events of a key whose request was not begun are dropped: it began before the capture.
pub(in crate::messages) struct ExchangeSink<'s, 'a, L> {
    pub(super) sink: &'s mut Sink<'a, L>,
    pub(super) key: u64,
}

impl<L: Listener> ExchangeSink<'_, '_, L> {
    /// Begins and names a request whose head is read. Use `begin_request` and `name` where the request begins before
    /// its name is known, or where it has a host.
    pub(in crate::messages) fn request(&mut self, kind: Kind, method: &str, target: &str) {
        self.begin_request(kind);
        self.name(RequestName::new(method, target));
    }

    /// Begins the request, at the mark or else at this packet. Cuts an open exchange with this key.
    pub(in crate::messages) fn begin_request(&mut self, kind: Kind) {
        let at = self.sink.open.take_mark(self.sink.side).unwrap_or(self.sink.at);
        self.note_at(at, ExchangeEvent::RequestBegin(kind));
    }

    /// Sets the request's method and target, "" where unknown. A later call replaces them.
    pub(in crate::messages) fn name(&mut self, named: RequestName<'_>) {
        self.sink.open.is_recognised = true;
        self.note(ExchangeEvent::RequestName(named));
    }

    /// Adds tags from the head of the request or the answer.
    pub(in crate::messages) fn tags(&mut self, tags: &Tags) {
        if !tags.is_empty() {
            self.note(ExchangeEvent::Tags(tags));
        }
    }

    /// Adds bytes to the request (while the client's bytes are read) or to the answer.
    pub(in crate::messages) fn count(&mut self, bytes: u64) {
        if bytes > 0 {
            self.note(ExchangeEvent::Bytes(bytes));
        }
    }

    /// Ends the request with the bytes counted.
    pub(in crate::messages) fn end_request(&mut self) {
        self.note(ExchangeEvent::RequestEnd);
    }

    /// Ends a request that gets no answer.
    pub(in crate::messages) fn end_unanswered(&mut self) {
        self.end_request();
        self.note(ExchangeEvent::Unanswered);
    }

    /// Makes the request a subscription: pushes with this number belong to it.
    pub(in crate::messages) fn subscribes(&mut self, subscription: u64) {
        self.note(ExchangeEvent::Subscribes(subscription));
    }

    /// Begins an answer that gives its status first. Use `begin_answer`, and `status` before `end_answer`, where the
    /// status follows later, as after rows, or may be missing.
    pub(in crate::messages) fn answer(&mut self, status: Status<'_>) {
        self.begin_answer();
        self.status(status);
    }

    /// Begins the answer, at the mark or else at this packet. Without effect if it has begun.
    pub(in crate::messages) fn begin_answer(&mut self) {
        let at = self.sink.open.take_mark(self.sink.side).unwrap_or(self.sink.at);
        self.note_at(at, ExchangeEvent::AnswerBegin);
    }

    /// Sets the answer's status. A later call replaces it.
    pub(in crate::messages) fn status(&mut self, status: Status<'_>) {
        self.sink.open.is_recognised = true;
        self.note(ExchangeEvent::Status(status));
    }

    /// Reports that the answer is a stream of events.
    pub(in crate::messages) fn mark_event_stream(&mut self) {
        self.note(ExchangeEvent::IsEventStream);
    }

    /// Counts the last bytes of a piece of the answer's body.
    pub(in crate::messages) fn piece(&mut self, bytes: u64) {
        self.count(bytes);
        if self.sink.side == Side::Server {
            self.note(ExchangeEvent::Piece);
        }
    }

    /// `piece` of an answer that begins with its first piece. `begun` is the reader's record that it has begun.
    pub(in crate::messages) fn answer_piece(&mut self, begun: &mut bool, bytes: u64) {
        if !std::mem::replace(begun, true) {
            self.begin_answer();
        }
        self.piece(bytes);
    }

    /// Reports that the answer so far was interim ("100", "pending"): the final one follows.
    pub(in crate::messages) fn interim(&mut self) {
        self.note(ExchangeEvent::Interim);
    }

    /// Ends the answer with the bytes counted, and the exchange.
    pub(in crate::messages) fn end_answer(&mut self) {
        self.note(ExchangeEvent::AnswerEnd);
    }

    /// Reports that both sides send more before the answer ends.
    pub(in crate::messages) fn dialogue(&mut self) {
        self.note(ExchangeEvent::Dialogue);
    }

    /// Ends the exchange because either side aborted it.
    pub(in crate::messages) fn reset(&mut self) {
        self.note(ExchangeEvent::Reset);
    }

    /// Ends the exchange because its answer cannot be identified.
    pub(in crate::messages) fn give_up(&mut self) {
        self.note(ExchangeEvent::GivenUp);
    }

    /// Gives this key to the oldest request without one (of HTTP/1, when HTTP/2 answers it).
    pub(in crate::messages) fn adopt(&mut self) {
        self.note(ExchangeEvent::Adopt);
    }

    fn note(&mut self, event: ExchangeEvent<'_>) {
        self.note_at(self.sink.at, event);
    }

    fn note_at(&mut self, at: At, event: ExchangeEvent<'_>) {
        let (key, side) = (self.key, self.sink.side);
        self.sink.listener.note(Note::Keyed { key, side, at, event });
    }
}
