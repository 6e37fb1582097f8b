//! What a reader reports of an exchange that it knows by a key.

use super::MessageSink;
use crate::base::At;
use crate::messages::tags::Tags;
use crate::messages::{ExchangeEvent, Kind, Listener, Note, RequestName, Side, Status};

/// One exchange of those that are answered in any order. Events of a key that is not open are dropped: its
/// beginning is not in the capture.
pub(in crate::messages) struct ExchangeSink<'s, 'a, L> {
    pub(super) sink: &'s mut MessageSink<'a, L>,
    pub(super) key: u64,
}

impl<L: Listener> ExchangeSink<'_, '_, L> {
    /// The client asks, with its first byte where the mark is. A request of this key that is still open is cut.
    pub(in crate::messages) fn begin_request(&mut self, kind: Kind) {
        let at = self.sink.open.take_mark(self.sink.side).unwrap_or(self.sink.at);
        self.note_at(at, ExchangeEvent::RequestBegin(kind));
    }

    /// The request's method and target; the last call counts. "" is unknown.
    pub(in crate::messages) fn name(&mut self, named: RequestName<'_>) {
        self.sink.open.recognised = true;
        self.note(ExchangeEvent::RequestName(named));
    }

    /// What the head of its request or of its answer names beside it.
    pub(in crate::messages) fn tags(&mut self, tags: &Tags) {
        if !tags.is_empty() {
            self.note(ExchangeEvent::Tags(tags));
        }
    }

    /// So many bytes of the request (the client speaks) or of the answer (the server does).
    pub(in crate::messages) fn count(&mut self, bytes: u64) {
        if bytes > 0 {
            self.note(ExchangeEvent::Bytes(bytes));
        }
    }

    /// The request is whole with what was counted.
    pub(in crate::messages) fn end_request(&mut self) {
        self.note(ExchangeEvent::RequestEnd);
    }

    /// The request is whole, and nobody answers it.
    pub(in crate::messages) fn end_unanswered(&mut self) {
        self.end_request();
        self.note(ExchangeEvent::Unanswered);
    }

    /// It subscribes: pushes with this number belong to it.
    pub(in crate::messages) fn subscribes(&mut self, subscription: u64) {
        self.note(ExchangeEvent::Subscribes(subscription));
    }

    /// The server answers, with its first byte where the mark is. Nothing where the answer has begun.
    pub(in crate::messages) fn begin_answer(&mut self) {
        let at = self.sink.open.take_mark(self.sink.side).unwrap_or(self.sink.at);
        self.note_at(at, ExchangeEvent::AnswerBegin);
    }

    /// How it ends; the last word counts.
    pub(in crate::messages) fn status(&mut self, status: Status<'_>) {
        self.sink.open.recognised = true;
        self.note(ExchangeEvent::Status(status));
    }

    /// The answer's pieces come when there is something to say.
    pub(in crate::messages) fn streams(&mut self) {
        self.note(ExchangeEvent::Streams);
    }

    /// `count` of a piece of the answer's body.
    pub(in crate::messages) fn piece(&mut self, bytes: u64) {
        self.count(bytes);
        if self.sink.side == Side::Server {
            self.note(ExchangeEvent::Piece);
        }
    }

    /// What came so far is no answer ("100", "pending"): that is still to come.
    pub(in crate::messages) fn interim(&mut self) {
        self.note(ExchangeEvent::Interim);
    }

    /// The answer is whole with what was counted, and the exchange over.
    pub(in crate::messages) fn end_answer(&mut self) {
        self.note(ExchangeEvent::AnswerEnd);
    }

    /// Both sides say more before its answer ends.
    pub(in crate::messages) fn dialogue(&mut self) {
        self.note(ExchangeEvent::Dialogue);
    }

    /// Either side gave it up.
    pub(in crate::messages) fn reset(&mut self) {
        self.note(ExchangeEvent::Reset);
    }

    /// Its answer is in bytes that are not in the capture, or cannot be distinguished from others.
    pub(in crate::messages) fn give_up(&mut self) {
        self.note(ExchangeEvent::GivenUp);
    }

    /// The oldest request that has no key is this one (HTTP/1's, when HTTP/2 answers it).
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
