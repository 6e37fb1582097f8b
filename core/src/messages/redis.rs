//! Redis (RESP2 and RESP3): commands, and the replies that answer them in order. What the server sends without a request
//! (messages of channels, invalidations, the lines of MONITOR) is pushes. A blocking command waits for an event.

mod command;
mod recognise;
mod resp;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::pending_queue::PendingQueue;
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{Close, Kind, Listener, MessageReader, Outcome, RequestName, Side, Status, Stretch, text};
use super::{Stop, feed_outcome};
use command::{Answers, Command, MONITORED};
use recognise::{PUSHES, is_monitored};
use resp::{Progress, Resp};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Redis,
    sniff: recognise::sniff,
    begins_message: recognise::begins_message,
    // a command or reply that looks like one may lie inside a value; who subscribed may say nothing more for hours
    begins_inside_turn: |side, first| side == Side::Server && recognise::begins_message(side, first),
    reader: |_| AnyReader::Redis(Box::default()),
    ..Recognition::NEVER
};
/// Channels and patterns that are remembered; beyond it the oldest is forgotten.
const MAX_SUBSCRIPTIONS: usize = 256;

/// The first word of its messages, its name, and the key of what subscribed.
type Channel = (&'static [u8], Box<[u8]>, u64);

#[derive(Debug, Default)]
pub(super) struct Redis {
    client: Resp,
    server: Resp,
    /// Bytes of the client's command, and of the server's value, that no note covers yet.
    unreported_command: u64,
    unreported: u64,
    waiting: PendingQueue<Answers>,
    /// The client's command has a name; its key, if a note covers it.
    named: bool,
    begun: Option<u64>,
    value: Value,
    /// The beginning of its answer has its note.
    answers: bool,
    /// Channels and patterns that the client has subscribed to.
    channels: u64,
    patterns: u64,
    subscribed: bool,
    monitors: bool,
    /// What the client subscribed to, as the first word of its messages and its name, and the key of that command.
    subscriptions: VecDeque<Channel>,
    /// The client wants no answers; or not to its next command.
    silent: bool,
    skips: bool,
    /// The server sends its data, and the changes to it.
    replica: bool,
    /// Another command than those that set up the connection was read.
    late: bool,
}

/// What the server's present value is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Value {
    #[default]
    Unknown,
    /// The answer to the request with this key.
    Answer(u64),
    Push,
    /// No request is known.
    Stray,
}

impl MessageReader for Redis {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        if self.replica && self.waiting.is_empty() {
            return Outcome::All;
        }
        let read = match stretch {
            Stretch::Bytes(bytes) => self.values(&mut sink, bytes),
            Stretch::Missing(missing) => self.missing(&mut sink, missing),
        };
        feed_outcome(read, &mut sink, stretch)
    }

    fn close(&mut self, _sink: &mut MessageSink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _inside: bool) {
        let (mut waiting, subscribed, monitors) =
            (std::mem::take(&mut self.waiting), self.subscribed, self.monitors);
        waiting.clear();
        *self = Redis {
            waiting,
            subscribed,
            monitors,
            late: true,
            ..Redis::default()
        };
    }
}

impl Redis {
    fn missing(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        missing: u64,
    ) -> Result<(), Stop<'static>> {
        let side = sink.side();
        let (half, count) = self.half(side);
        if !half.skip(missing) {
            return Err(Stop::Lost("a value's beginning is not in the capture", None));
        }
        *count += missing;
        if side == Side::Server {
            self.goes_on(sink);
        }
        Ok(())
    }

    fn half(&mut self, side: Side) -> (&mut Resp, &mut u64) {
        match side {
            Side::Client => (&mut self.client, &mut self.unreported_command),
            Side::Server => (&mut self.server, &mut self.unreported),
        }
    }

    /// Reads the values of a side: commands, or replies.
    fn values<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        let side = sink.side();
        while !bytes.is_empty() {
            if self.replica && side == Side::Server && self.server.is_between() {
                // a server that prepares its data for a replica keeps the connection alive with empty lines
                while let Some(rest) = bytes.strip_prefix(b"\n") {
                    bytes = rest;
                }
                if bytes.is_empty() {
                    break;
                }
            }
            sink.mark();
            let here = bytes;
            let (half, count) = self.half(side);
            let come = half.next(side == Side::Client, &mut bytes);
            *count += (here.len() - bytes.len()) as u64;
            match (come, side) {
                (Progress::Wrong, Side::Client) => {
                    return Err(Stop::Lost("not a command of Redis", Some(here)));
                }
                (Progress::Wrong, Side::Server) => {
                    return Err(Stop::Lost("not a reply of Redis", Some(here)));
                }
                (Progress::Partly, Side::Client) => {
                    if self.client.words() > 1 && Command::is_plain(self.client.word(0)) {
                        self.ask(sink)?;
                    }
                }
                (Progress::Partly, Side::Server) => self.goes_on(sink),
                (Progress::Whole, Side::Client) => self.command(sink)?,
                (Progress::Whole, Side::Server) => {
                    self.weigh(true);
                    self.ends(sink);
                    (self.unreported, self.value) = (0, Value::Unknown);
                    sink.unmark();
                    if self.replica && self.waiting.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// A command is whole.
    fn command(&mut self, sink: &mut MessageSink<'_, impl Listener>) -> Result<(), Stop<'static>> {
        if self.client.words() > 0 {
            self.ask(sink)?;
        }
        if let Some(key) = self.begun.take() {
            let mut exchange = sink.exchange(key);
            exchange.count(self.unreported_command);
            exchange.end_request();
        }
        sink.unmark();
        (self.unreported_command, self.named) = (0, false);
        Ok(())
    }

    /// The command has a name.
    fn ask(&mut self, sink: &mut MessageSink<'_, impl Listener>) -> Result<(), Stop<'static>> {
        if std::mem::replace(&mut self.named, true) {
            return Ok(());
        }
        let command = Command::of(&self.client, !self.late);
        self.late |= command.kind != Kind::Setup;
        match command.answers {
            Answers::ReplyOff => self.silent = true,
            Answers::ReplySkip => self.skips = true,
            Answers::ReplyOn => self.silent = false,
            Answers::Replica => self.replica = true,
            _ => {}
        }
        let quiet = self.silent || command.answers != Answers::ReplySkip && std::mem::take(&mut self.skips);
        if quiet || matches!(command.answers, Answers::ReplySkip | Answers::Never) {
            return Ok(());
        }
        let key = self
            .waiting
            .push(command.answers)
            .ok_or(Stop::Lost("too many commands wait", None))?;
        let mut exchange = sink.exchange(key);
        exchange.begin_request(command.kind);
        exchange.name(RequestName {
            method: &command.method,
            target: &command.target,
            host: "",
        });
        self.begun = Some(key);
        if let Some(word) = command.pushes {
            exchange.subscribes(key);
            // (of MONITOR there is one)
            let names = if word == MONITORED {
                0..1
            } else {
                1..self.client.words()
            };
            for place in names {
                if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
                    self.subscriptions.pop_front();
                }
                let name = self.client.word(place).into();
                self.subscriptions.push_back((word, name, key));
            }
        }
        Ok(())
    }

    /// The server's value goes on with the next packet.
    fn goes_on(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        self.weigh(false);
        if let Value::Answer(key) = self.value {
            self.piece(sink, key);
        }
    }

    /// What was read belongs to this answer.
    fn piece(&mut self, sink: &mut MessageSink<'_, impl Listener>, key: u64) {
        let mut exchange = sink.exchange(key);
        if !std::mem::replace(&mut self.answers, true) {
            exchange.begin_answer();
        }
        exchange.piece(std::mem::take(&mut self.unreported));
    }

    /// What the server's value is, as soon as that is known.
    fn weigh(&mut self, whole: bool) {
        if self.value != Value::Unknown {
            return;
        }
        let first = self.waiting.first().map(|(key, answers)| (key, *answers));
        let unsolicited = first.is_none();
        self.value = match self.server.kind {
            b'>' if self.server.worded || whole => match first {
                Some((key, answers)) if confirms(answers, self.server.word(0)) => Value::Answer(key),
                _ => Value::Push,
            },
            b'*' if (self.subscribed || unsolicited) && (self.server.worded || whole) => {
                match (PUSHES.contains(&self.server.word(0)), first) {
                    (true, _) => Value::Push,
                    (false, Some((key, _))) => Value::Answer(key),
                    (false, None) => Value::Stray,
                }
            }
            b'+' if whole && (self.monitors || unsolicited) && is_monitored(self.server.word(0)) => {
                Value::Push
            }
            b'+' if !whole && (self.monitors || unsolicited) => return,
            b'*' if !whole && (self.subscribed || unsolicited) => return,
            0 | b'>' if !whole => return,
            _ => first.map_or(Value::Stray, |(key, _)| Value::Answer(key)),
        };
    }

    /// The server's value is whole.
    fn ends(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        match self.value {
            Value::Answer(key) => self.answers(sink, key),
            Value::Push => {
                let (method, target) = self.pushed();
                let (first, subscription) = (sink.marked(), self.subscription());
                sink.push_since(first, &method, &target, self.unreported, subscription);
            }
            Value::Stray | Value::Unknown => {}
        }
    }

    fn pushed(&self) -> (SmolStr, SmolStr) {
        let word = |place| text::name(self.server.word(place));
        match (self.server.kind, self.server.word(0)) {
            (b'+', _) => (SmolStr::new_static("monitor"), SmolStr::default()),
            (_, b"pmessage") => (word(0), word(2)),
            _ => (word(0), word(1)),
        }
    }

    /// Which command subscribed to the server's message.
    fn subscription(&self) -> Option<u64> {
        let (word, name) = match (self.server.kind, self.server.word(0)) {
            (b'+', _) => (MONITORED, None),
            (_, word) => (word, Some(self.server.word(1))),
        };
        let fits = |(own, named, _): &&Channel| *own == word && name.is_none_or(|name| **named == *name);
        self.subscriptions.iter().rev().find(fits).map(|(.., key)| *key)
    }

    fn answers(&mut self, sink: &mut MessageSink<'_, impl Listener>, key: u64) {
        let Some((_, &mut answers)) = self.waiting.first() else {
            return;
        };
        let failed = matches!(self.server.kind, b'-' | b'!');
        let subscribed = confirms(answers, self.server.word(0)).then(|| self.confirmed());
        let left = match (answers, subscribed) {
            (Answers::Confirmed(left), Some(_)) => left.saturating_sub(1),
            (Answers::AllConfirmed, Some(left)) => left,
            _ => 0,
        };
        self.piece(sink, key);
        if left > 0 {
            if let (Some((_, waits)), Answers::Confirmed(_)) = (self.waiting.first(), answers) {
                *waits = Answers::Confirmed(left);
            }
            return;
        }
        let error = text::name(
            self.server
                .word(0)
                .split(|byte| *byte == b' ')
                .next()
                .unwrap_or_default(),
        );
        let mut exchange = sink.exchange(key);
        exchange.status(Status {
            code: None,
            text: Some(if failed { &error } else { "ok" }),
            error: failed,
        });
        exchange.end_answer();
        self.answers = false;
        match answers {
            Answers::Monitor => self.monitors |= !failed,
            Answers::Hello | Answers::Info if !failed => self.names_itself(sink, answers),
            _ => {}
        }
        self.waiting.pop();
    }

    /// A confirmation has the number of subscriptions now: how many of its kind.
    fn confirmed(&mut self) -> u64 {
        let word = self.server.word(0);
        let total = std::str::from_utf8(self.server.word(2))
            .ok()
            .and_then(|count| count.parse().ok());
        let total: u64 = total.unwrap_or(0);
        self.subscribed = true;
        // the server counts channels and patterns together
        match word {
            b"psubscribe" | b"punsubscribe" => {
                self.patterns = total.saturating_sub(self.channels);
                self.patterns
            }
            b"subscribe" | b"unsubscribe" => {
                self.channels = total.saturating_sub(self.patterns);
                self.channels
            }
            _ => total,
        }
    }

    /// The server's version, in its answer to HELLO or INFO.
    fn names_itself(&self, sink: &mut MessageSink<'_, impl Listener>, answers: Answers) {
        let words = &self.server;
        let version = match answers {
            Answers::Info => {
                let version = words.word(0).split(|byte| *byte == b'\n');
                version
                    .filter_map(|line| line.strip_prefix(b"redis_version:"))
                    .next()
            }
            _ => (0..words.words())
                .find(|place| words.word(*place) == b"version")
                .map(|place| words.word(place + 1)),
        };
        if let Some(version) = version
            .map(<[u8]>::trim_ascii)
            .filter(|version| !version.is_empty())
        {
            sink.software(format!("Redis {}", text::name(version)).into());
        }
    }
}

/// Whether this word confirms a (un)subscription that somebody requested.
fn confirms(answers: Answers, word: &[u8]) -> bool {
    matches!(answers, Answers::Confirmed(_) | Answers::AllConfirmed)
        && (word.ends_with(b"subscribe") && word.len() <= b"punsubscribe".len())
}
