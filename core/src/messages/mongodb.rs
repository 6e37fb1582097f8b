//! MongoDB's wire protocol (mongodb.com, "MongoDB Wire Protocol"). Each message begins with a 16-byte header, which has
//! its length. One exchange is a command (OP_MSG, or the older OP_QUERY) and the response whose `responseTo` is its id.
//! Further responses of an exhaust cursor or an awaitable hello are pushes.

mod bson;

use std::collections::VecDeque;

use smol_str::{SmolStr, ToSmolStr};

use super::length_prefixed::{LengthPrefixed, Progress};
use super::pending_queue::{push_dropping_oldest, take_first};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, Close, Guess, Kind, Listener, MessageReader, Outcome, Side, Status, Stretch, errors};
use crate::cursor;
use bson::{COMPRESSED, HEADER, Header, MSG, QUERY, REPLY};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::MongoDb,
    sniff: |first| match first.side {
        Side::Client => bson::begins(Side::Client, first.input),
        Side::Server if first.other.is_empty() => bson::begins(Side::Server, first.input),
        Side::Server => Guess::No,
    },
    begins_message: |side, first| bson::begins(side, first) == Guess::Yes,
    begins_inside_turn: |_, _| false, // the same bytes may stand inside a document
    reader: |_| AnyReader::MongoDb(Box::default()),
    ..Recognition::NEVER
};
/// Upper bound on the bytes kept of a message: enough for the names of command and collection.
const MAX_KEPT: usize = 512;
/// Upper bound on open commands whose names are kept, for the pushes after their responses.
const MAX_NAMES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct MongoDb {
    sides: BySide<Half>,
    /// Commands without a response, oldest first.
    pending: VecDeque<Request>,
    /// Id and request of the server's newest response, if it announced another one (moreToCome).
    more_to_come: Option<(u32, Request)>,
    /// The response that is being read has begun.
    is_answer_begun: bool,
}

/// Per-direction state of the reader.
#[derive(Debug, Default)]
struct Half {
    message: LengthPrefixed<HEADER>,
    /// Bytes of the message that were not given to the sink yet.
    unreported: u64,
}

#[derive(Debug)]
struct Request {
    id: u32,
    method: SmolStr,
    target: SmolStr,
}

impl MessageReader for MongoDb {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let side = sink.side();
        let Stretch::Bytes(mut bytes) = stretch else {
            let missing = stretch.len();
            let half = &mut self.sides[side];
            if let Some(progress) = half.message.skip(missing) {
                half.unreported += missing;
                self.read_message(&mut sink, progress);
                return Outcome::All;
            }
            sink.lost("a message's beginning is not in the capture");
            return Outcome::Lost(stretch);
        };
        while !bytes.is_empty() {
            sink.mark();
            let before = bytes;
            let half = &mut self.sides[side];
            let progress = half.message.next(&mut bytes, |header| {
                Some((Header::of(side, header)?.body(), MAX_KEPT))
            });
            half.unreported += (before.len() - bytes.len()) as u64;
            if progress == Progress::Wrong {
                sink.lost("not a message of MongoDB");
                return Outcome::Lost(Stretch::Bytes(before));
            }
            self.read_message(&mut sink, progress);
        }
        Outcome::All
    }

    fn close(&mut self, _sink: &mut Sink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        *self = MongoDb::default();
    }
}

impl MongoDb {
    /// Handles the sender's message after each read: reports a response's part, or the whole message.
    fn read_message(&mut self, sink: &mut Sink<'_, impl Listener>, progress: Progress) {
        let side = sink.side();
        let half = &mut self.sides[side];
        let (is_inside, bytes) = (half.message.is_inside(), half.unreported);
        let Some(header) = Header::of(side, half.message.header()) else {
            return;
        };
        if progress == Progress::Whole {
            half.unreported = 0;
            match side {
                Side::Client => self.read_request(sink, header, bytes),
                Side::Server => self.read_response(sink, header, bytes),
            }
            sink.unmark();
        } else if is_inside
            && side == Side::Server
            && self.pending.iter().any(|pending| pending.id == header.to)
        {
            // a long response begins with its first byte, not with its last
            half.unreported = 0;
            self.count_part(sink, header.to, bytes);
        }
    }

    /// Counts bytes of a response.
    fn count_part(&mut self, sink: &mut Sink<'_, impl Listener>, key: u32, bytes: u64) {
        sink.exchange(u64::from(key))
            .answer_piece(&mut self.is_answer_begun, bytes);
    }

    fn read_request(&mut self, sink: &mut Sink<'_, impl Listener>, header: Header, bytes: u64) {
        let body = self.sides.client.message.head();
        let flags = cursor::le32_at(body, 0).unwrap_or(0);
        let command = match header.code {
            // not answered
            MSG if flags & bson::MORE_TO_COME != 0 => return,
            MSG => bson::Command::of(bson::document(body)),
            QUERY => bson::Command::of_query(body),
            COMPRESSED => bson::Command::default(),
            _ => return,
        };
        let kind = match &*command.method {
            _ if command.is_long_poll => Kind::LongPoll,
            "hello" | "isMaster" | "ismaster" | "saslStart" | "saslContinue" => Kind::Setup,
            _ => Kind::Request,
        };
        let mut exchange = sink.exchange(u64::from(header.id));
        exchange.request(kind, &command.method, &command.target);
        exchange.count(bytes);
        exchange.end_request();
        let request = Request {
            id: header.id,
            method: command.method,
            target: command.target,
        };
        push_dropping_oldest(&mut self.pending, MAX_NAMES, request);
    }

    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>, header: Header, bytes: u64) {
        let has_more = header.code == MSG
            && cursor::le32_at(self.sides.server.message.head(), 0)
                .is_some_and(|flags| flags & bson::MORE_TO_COME != 0);
        if let Some((_, pending)) = self.more_to_come.take_if(|(id, _)| *id == header.to) {
            sink.push(&pending.method, &pending.target, bytes);
            self.more_to_come = has_more.then_some((header.id, pending));
            return;
        }
        self.count_part(sink, header.to, bytes);
        self.is_answer_begun = false;
        let error = match header.code {
            MSG => bson::error_code(bson::document(self.sides.server.message.head())),
            REPLY => bson::error_code(self.sides.server.message.head().get(20..).unwrap_or_default()),
            _ => None,
        };
        let code = error.and_then(|code| u16::try_from(code).ok());
        let large_code = error.filter(|_| code.is_none()).map(|code| code.to_smolstr());
        let mut exchange = sink.exchange(u64::from(header.to));
        let text = large_code
            .as_deref()
            .or_else(|| code.and_then(|code| errors::word(errors::MONGODB, code)))
            .or(error.is_none().then_some("ok"));
        exchange.status(Status::new(code, text, error.is_some()));
        exchange.end_answer();
        let pending = take_first(&mut self.pending, |pending| pending.id == header.to);
        self.more_to_come = pending.filter(|_| has_more).map(|pending| (header.id, pending));
    }
}
