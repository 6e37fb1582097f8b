//! MongoDB's wire protocol: commands in OP_MSG (and what clients of old servers say), answers by the number of the
//! request that they name. What an exhaust cursor or an awaitable hello brings further, nobody requested: pushes.

mod bson;

use std::collections::VecDeque;

use smol_str::{SmolStr, ToSmolStr};

use super::length_prefixed::{LengthPrefixed, Progress};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{
    Close, Guess, Kind, Listener, MessageReader, Outcome, RequestName, Side, Status, Stretch, errors,
};
use bson::{COMPRESSED, HEADER, Header, MSG, QUERY, REPLY};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::MongoDb,
    sniff: |first| match first.side {
        Side::Client => bson::begins(Side::Client, first.input),
        Side::Server if first.other.is_empty() => bson::begins(Side::Server, first.input),
        Side::Server => Guess::No,
    },
    begins_message: |side, first| bson::begins(side, first) == Guess::Yes,
    begins_inside_turn: |_, _| false, // what looks like it may lie inside a document
    reader: |_| AnyReader::MongoDb(Box::default()),
    ..Recognition::NEVER
};
/// So much of a message is kept for its names.
const MAX_KEPT: usize = 512;
/// Commands whose names are remembered for what follows their answers.
const MAX_NAMES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct MongoDb {
    client: LengthPrefixed<HEADER>,
    server: LengthPrefixed<HEADER>,
    /// Bytes of a message that no note covers yet, by `Side`.
    unreported: [u64; 2],
    pending: VecDeque<Request>,
    /// The server's newest answer announced more: its number, and its request.
    follows: Option<(u32, Request)>,
    /// The answer that goes on has its notes.
    answering: bool,
}

#[derive(Debug)]
struct Request {
    id: u32,
    method: SmolStr,
    target: SmolStr,
}

impl MessageReader for MongoDb {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let side = sink.side();
        let Stretch::Bytes(mut bytes) = stretch else {
            let missing = stretch.len();
            let (prefixed, unreported) = self.half(side);
            if let Some(come) = prefixed.skip(missing) {
                *unreported += missing;
                self.come(&mut sink, come);
                return Outcome::All;
            }
            sink.lost("a message's beginning is not in the capture");
            return Outcome::Lost(stretch);
        };
        while !bytes.is_empty() {
            sink.mark();
            let here = bytes;
            let (prefixed, unreported) = self.half(side);
            let come = prefixed.next(&mut bytes, |header| {
                Some((Header::of(side, header)?.body(), MAX_KEPT))
            });
            *unreported += (here.len() - bytes.len()) as u64;
            if come == Progress::Wrong {
                sink.lost("not a message of MongoDB");
                return Outcome::Lost(Stretch::Bytes(here));
            }
            self.come(&mut sink, come);
        }
        Outcome::All
    }

    fn close(&mut self, _sink: &mut MessageSink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _inside: bool) {
        *self = MongoDb::default();
    }
}

impl MongoDb {
    fn half(&mut self, side: Side) -> (&mut LengthPrefixed<HEADER>, &mut u64) {
        let [client, server] = &mut self.unreported;
        match side {
            Side::Client => (&mut self.client, client),
            Side::Server => (&mut self.server, server),
        }
    }

    /// A message of the side that speaks has come so far.
    fn come(&mut self, sink: &mut MessageSink<'_, impl Listener>, come: Progress) {
        let side = sink.side();
        let (prefixed, unreported) = self.half(side);
        let (inside, bytes) = (prefixed.is_inside(), *unreported);
        let Some(header) = Header::of(side, prefixed.header()) else {
            return;
        };
        if come == Progress::Whole {
            *self.half(side).1 = 0;
            match side {
                Side::Client => self.asks(sink, header, bytes),
                Side::Server => self.answers(sink, header, bytes),
            }
            sink.unmark();
        } else if inside && side == Side::Server && self.pending.iter().any(|pending| pending.id == header.to)
        {
            // a long answer: its first byte counts
            *self.half(side).1 = 0;
            self.part(sink, header.to, bytes);
        }
    }

    fn part(&mut self, sink: &mut MessageSink<'_, impl Listener>, key: u32, bytes: u64) {
        let mut exchange = sink.exchange(u64::from(key));
        if !std::mem::replace(&mut self.answering, true) {
            exchange.begin_answer();
        }
        exchange.piece(bytes);
    }

    fn asks(&mut self, sink: &mut MessageSink<'_, impl Listener>, header: Header, bytes: u64) {
        let body = self.client.head();
        let flags = bson::u32_at(body, 0).unwrap_or(0);
        let command = match header.code {
            // nobody answers
            MSG if flags & bson::MORE_TO_COME != 0 => return,
            MSG => bson::Command::of(bson::document(body)),
            QUERY => bson::Command::of_query(body),
            COMPRESSED => bson::Command::default(),
            _ => return,
        };
        let kind = match &*command.method {
            _ if command.waits => Kind::LongPoll,
            "hello" | "isMaster" | "ismaster" | "saslStart" | "saslContinue" => Kind::Setup,
            _ => Kind::Request,
        };
        let mut exchange = sink.exchange(u64::from(header.id));
        exchange.begin_request(kind);
        exchange.name(RequestName {
            method: &command.method,
            target: &command.target,
            host: "",
        });
        exchange.count(bytes);
        exchange.end_request();
        if self.pending.len() >= MAX_NAMES {
            self.pending.pop_front();
        }
        self.pending.push_back(Request {
            id: header.id,
            method: command.method,
            target: command.target,
        });
    }

    fn answers(&mut self, sink: &mut MessageSink<'_, impl Listener>, header: Header, bytes: u64) {
        let more = header.code == MSG
            && bson::u32_at(self.server.head(), 0).is_some_and(|flags| flags & bson::MORE_TO_COME != 0);
        if let Some((_, pending)) = self.follows.take_if(|(id, _)| *id == header.to) {
            sink.push(&pending.method, &pending.target, bytes);
            self.follows = more.then_some((header.id, pending));
            return;
        }
        self.part(sink, header.to, bytes);
        self.answering = false;
        let failed = match header.code {
            MSG => bson::failed(bson::document(self.server.head())),
            REPLY => bson::failed(self.server.head().get(20..).unwrap_or_default()),
            _ => None,
        };
        let code = failed.and_then(|code| u16::try_from(code).ok());
        let word = failed.filter(|_| code.is_none()).map(|code| code.to_smolstr());
        let mut exchange = sink.exchange(u64::from(header.to));
        exchange.status(Status {
            code,
            text: word
                .as_deref()
                .or_else(|| code.and_then(|code| errors::word(errors::MONGODB, code)))
                .or(failed.is_none().then_some("ok")),
            error: failed.is_some(),
        });
        exchange.end_answer();
        let place = self.pending.iter().position(|pending| pending.id == header.to);
        let pending = place.and_then(|place| self.pending.remove(place));
        self.follows = pending.filter(|_| more).map(|pending| (header.id, pending));
    }
}
