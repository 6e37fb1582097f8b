//! Redis (redis.io, "Redis serialization protocol specification", RESP2 and RESP3). Each value begins with a type byte
//! and a length, count or line. One exchange is a command and its reply; replies come in the order of the commands.
//! Messages of channels, invalidations and the lines of MONITOR are pushes. A blocking command is a long poll.

mod command;
mod recognise;
mod resp;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::lines::first_word;
use super::pending_queue::{PendingQueue, push_dropping_oldest};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, Close, Kind, Listener, MessageReader, Outcome, Side, Status, Stretch, text};
use super::{Stop, feed_outcome};
use command::{Answers, Command, MONITORED};
use recognise::{PUSHES, is_monitored};
use resp::{Progress, Resp};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Redis,
    sniff: recognise::sniff,
    begins_message: recognise::begins_message,
    // What looks like a command or a reply may lie inside a value. Only a push is sure; a client that has subscribed
    // may send nothing more for hours.
    begins_inside_turn: |side, first| side == Side::Server && recognise::begins_message(side, first),
    reader: |_| AnyReader::Redis(Box::default()),
    ..Recognition::NEVER
};
/// Upper bound on the channels and patterns kept; beyond it the oldest is dropped.
const MAX_SUBSCRIPTIONS: usize = 256;

/// A subscription: the first word of its messages, the channel's name, and the key of the command.
type Channel = (&'static [u8], Box<[u8]>, u64);

#[derive(Debug, Default)]
pub(super) struct Redis {
    /// The client's commands, and the server's values.
    resp: BySide<Resp>,
    /// Bytes of each side's present value that were not given to the sink yet.
    unreported: BySide<u64>,
    /// Commands without a complete reply.
    waiting: PendingQueue<Answers>,
    phase: Phase,
    command: ClientCommand,
    replies: Replies,
    value: Value,
    /// The beginning of the present reply was reported.
    is_reply_begun: bool,
    expected: ExpectedPushes,
    /// Number of channels that the client is subscribed to.
    channels: u64,
    /// Number of patterns that the client is subscribed to.
    patterns: u64,
    /// Subscriptions, oldest first.
    subscriptions: VecDeque<Channel>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Phase {
    /// All commands so far set up the connection.
    #[default]
    Setup,
    Commands,
    /// The client is a replica: the server sends its data and the changes to it.
    Replica,
}

/// What is known of the client's present command.
#[derive(Debug, Default, Clone, Copy)]
enum ClientCommand {
    #[default]
    Unnamed,
    /// It has its name, and gets no reply.
    Silent,
    /// It is the exchange with this key.
    Exchange(u64),
}

/// Which commands get replies, as CLIENT REPLY has set it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Replies {
    #[default]
    On,
    /// All but the next.
    SkipNext,
    Off,
}

/// The pushes that may come, as commands for them were confirmed.
#[derive(Debug, Default, Clone, Copy)]
struct ExpectedPushes {
    /// Messages of channels.
    messages: bool,
    /// Lines of MONITOR.
    monitor_lines: bool,
}

/// What the server's present value is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Value {
    #[default]
    Unknown,
    /// The answer to the request with this key.
    Answer(u64),
    Push,
    /// An answer to a command that is not in the capture.
    Stray,
}

impl MessageReader for Redis {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        if self.phase == Phase::Replica && self.waiting.is_empty() {
            return Outcome::All;
        }
        let read = match stretch {
            Stretch::Bytes(bytes) => self.read_values(&mut sink, bytes),
            Stretch::Missing(missing) => self.skip(&mut sink, missing),
        };
        feed_outcome(read, &mut sink, stretch)
    }

    fn close(&mut self, _sink: &mut Sink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.clear(); // keeps its key counter: keys are not used again
        *self = Redis {
            waiting,
            phase: Phase::Commands,
            expected: self.expected,
            ..Redis::default()
        };
    }
}

impl Replies {
    /// Takes the next command. Returns whether the server replies to it.
    fn take(&mut self, answers: Answers) -> bool {
        let before = *self;
        *self = match (answers, before) {
            (Answers::ReplyOn, _) => Replies::On,
            (Answers::ReplyOff, _) | (_, Replies::Off) => Replies::Off,
            (Answers::ReplySkip, _) => Replies::SkipNext,
            _ => Replies::On,
        };
        match answers {
            Answers::ReplyOn => true,
            Answers::ReplyOff | Answers::ReplySkip | Answers::Never => false,
            _ => before == Replies::On,
        }
    }
}

impl Redis {
    fn skip(&mut self, sink: &mut Sink<'_, impl Listener>, missing: u64) -> Result<(), Stop<'static>> {
        let side = sink.side();
        if !self.resp[side].skip(missing) {
            return Err(Stop::Lost("a value's beginning is not in the capture", None));
        }
        self.unreported[side] += missing;
        if side == Side::Server {
            self.continue_value(sink);
        }
        Ok(())
    }

    /// Reads the commands of the client, or the values of the server.
    fn read_values<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        let side = sink.side();
        while !bytes.is_empty() {
            if self.phase == Phase::Replica && side == Side::Server && self.resp.server.is_between() {
                // empty lines keep the connection to a replica alive while the server prepares its data
                while let Some(rest) = bytes.strip_prefix(b"\n") {
                    bytes = rest;
                }
                if bytes.is_empty() {
                    break;
                }
            }
            sink.mark();
            let before = bytes;
            let progress = self.resp[side].next(side == Side::Client, &mut bytes);
            self.unreported[side] += (before.len() - bytes.len()) as u64;
            match (progress, side) {
                (Progress::Wrong, Side::Client) => {
                    return Err(Stop::Lost("not a command of Redis", Some(before)));
                }
                (Progress::Wrong, Side::Server) => {
                    return Err(Stop::Lost("not a reply of Redis", Some(before)));
                }
                (Progress::Partly, Side::Client) => {
                    // a long value follows: the request begins before it is whole
                    if self.resp.client.word_count() > 1 && Command::is_plain(self.resp.client.word(0)) {
                        self.begin_command(sink)?;
                    }
                }
                (Progress::Partly, Side::Server) => self.continue_value(sink),
                (Progress::Whole, Side::Client) => self.end_command(sink)?,
                (Progress::Whole, Side::Server) => {
                    self.classify(true);
                    self.end_value(sink);
                    (self.unreported.server, self.value) = (0, Value::Unknown);
                    sink.unmark();
                    if self.phase == Phase::Replica && self.waiting.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the request, if the client's command is one.
    fn end_command(&mut self, sink: &mut Sink<'_, impl Listener>) -> Result<(), Stop<'static>> {
        if self.resp.client.word_count() > 0 {
            self.begin_command(sink)?;
        }
        if let ClientCommand::Exchange(key) = std::mem::take(&mut self.command) {
            let mut exchange = sink.exchange(key);
            exchange.count(self.unreported.client);
            exchange.end_request();
        }
        sink.unmark();
        self.unreported.client = 0;
        Ok(())
    }

    /// Begins and names the request, once, unless the server does not reply to this command.
    fn begin_command(&mut self, sink: &mut Sink<'_, impl Listener>) -> Result<(), Stop<'static>> {
        if !matches!(self.command, ClientCommand::Unnamed) {
            return Ok(());
        }
        let command = Command::of(&self.resp.client, self.phase == Phase::Setup);
        if command.answers == Answers::Replica {
            self.phase = Phase::Replica;
        } else if self.phase == Phase::Setup && command.kind != Kind::Setup {
            self.phase = Phase::Commands;
        }
        if !self.replies.take(command.answers) {
            self.command = ClientCommand::Silent;
            return Ok(());
        }
        let key = self.waiting.push(command.answers);
        let key = key.ok_or(Stop::Lost("too many commands wait", None))?;
        let mut exchange = sink.exchange(key);
        exchange.request(command.kind, &command.method, &command.target);
        self.command = ClientCommand::Exchange(key);
        if let Some(word) = command.pushes {
            exchange.subscribes(key);
            // the words that name channels; MONITOR has none, and its own word stands for them
            let channels = if word == MONITORED {
                0..1
            } else {
                1..self.resp.client.word_count()
            };
            for index in channels {
                let name = self.resp.client.word(index).into();
                push_dropping_oldest(&mut self.subscriptions, MAX_SUBSCRIPTIONS, (word, name, key));
            }
        }
        Ok(())
    }

    /// Reports the part of the server's value that this packet brought.
    fn continue_value(&mut self, sink: &mut Sink<'_, impl Listener>) {
        self.classify(false);
        if let Value::Answer(key) = self.value {
            self.report_piece(sink, key);
        }
    }

    /// Gives the unreported bytes to the exchange with this key.
    fn report_piece(&mut self, sink: &mut Sink<'_, impl Listener>, key: u64) {
        let bytes = std::mem::take(&mut self.unreported.server);
        sink.exchange(key).answer_piece(&mut self.is_reply_begun, bytes);
    }

    /// Finds what the server's value is, as soon as its first word (of an array or a push) or its end (of a line) shows
    /// it.
    fn classify(&mut self, is_whole: bool) {
        if self.value != Value::Unknown {
            return;
        }
        let oldest = self.waiting.first().map(|(key, answers)| (key, *answers));
        let answer = oldest.map_or(Value::Stray, |(key, _)| Value::Answer(key));
        let may_be_message = self.expected.messages || oldest.is_none();
        let may_be_monitor_line = self.expected.monitor_lines || oldest.is_none();
        let value = &self.resp.server;
        let has_first_word = value.has_word || is_whole;
        // the arms that wait come first, so that those after them may compare the first word
        self.value = match value.kind {
            0 if !is_whole => return,
            b'>' if !has_first_word => return,
            b'*' if may_be_message && !has_first_word => return,
            b'+' if may_be_monitor_line && !is_whole => return,
            b'>' if !oldest.is_some_and(|(_, answers)| confirms(answers, value.word(0))) => Value::Push,
            b'*' if may_be_message && PUSHES.contains(&value.word(0)) => Value::Push,
            b'+' if may_be_monitor_line && is_monitored(value.word(0)) => Value::Push,
            _ => answer,
        };
    }

    /// Reports the end of the server's value.
    fn end_value(&mut self, sink: &mut Sink<'_, impl Listener>) {
        match self.value {
            Value::Answer(key) => self.end_answer(sink, key),
            Value::Push => {
                let (method, target) = self.push_name();
                let (first, subscription) = (sink.marked(), self.subscription());
                sink.push_since(first, &method, &target, self.unreported.server, subscription);
            }
            Value::Stray | Value::Unknown => {}
        }
    }

    /// Returns method and target of a push: `message` and its channel.
    fn push_name(&self) -> (SmolStr, SmolStr) {
        let value = &self.resp.server;
        let word = |index| text::name(value.word(index));
        match (value.kind, value.word(0)) {
            (b'+', _) => (SmolStr::new_static("monitor"), SmolStr::default()),
            (_, b"pmessage") => (word(0), word(2)),
            _ => (word(0), word(1)),
        }
    }

    /// Returns the key of the command that subscribed to the server's push.
    fn subscription(&self) -> Option<u64> {
        let value = &self.resp.server;
        let (word, name) = match value.kind {
            b'+' => (MONITORED, None),
            _ => (value.word(0), Some(value.word(1))),
        };
        let matches = |(first_word, channel, _): &&Channel| {
            *first_word == word && name.is_none_or(|name| **channel == *name)
        };
        self.subscriptions
            .iter()
            .rev()
            .find(matches)
            .map(|(.., key)| *key)
    }

    /// Ends the reply, unless the command gets one confirmation per channel and more are to come.
    fn end_answer(&mut self, sink: &mut Sink<'_, impl Listener>, key: u64) {
        let Some((_, &mut answers)) = self.waiting.first() else {
            return;
        };
        let is_error = matches!(self.resp.server.kind, b'-' | b'!');
        let subscribed = confirms(answers, self.resp.server.word(0)).then(|| self.read_confirmation());
        let to_come = match (answers, subscribed) {
            (Answers::Confirmed(to_come), Some(_)) => to_come.saturating_sub(1),
            (Answers::AllConfirmed, Some(subscribed)) => subscribed,
            _ => 0,
        };
        self.report_piece(sink, key);
        if to_come > 0 {
            if let (Some((_, oldest)), Answers::Confirmed(_)) = (self.waiting.first(), answers) {
                *oldest = Answers::Confirmed(to_come);
            }
            return;
        }
        let error_word = text::name(first_word(self.resp.server.word(0)));
        let mut exchange = sink.exchange(key);
        exchange.status(Status::word(if is_error { &error_word } else { "ok" }, is_error));
        exchange.end_answer();
        self.is_reply_begun = false;
        match answers {
            Answers::Monitor => self.expected.monitor_lines |= !is_error,
            Answers::Hello | Answers::Info if !is_error => self.read_version(sink, answers),
            _ => {}
        }
        self.waiting.pop();
    }

    /// Reads a confirmation. Returns the number of channels, or of patterns, that stay subscribed.
    fn read_confirmation(&mut self) -> u64 {
        let value = &self.resp.server;
        // counts channels and patterns together
        let total: u64 = std::str::from_utf8(value.word(2))
            .ok()
            .and_then(|count| count.parse().ok())
            .unwrap_or(0);
        self.expected.messages = true;
        match value.word(0) {
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

    /// Reads the server's version in its reply to HELLO or INFO.
    fn read_version(&self, sink: &mut Sink<'_, impl Listener>, answers: Answers) {
        let value = &self.resp.server;
        let version = match answers {
            Answers::Info => {
                let mut lines = value.word(0).split(|byte| *byte == b'\n');
                lines.find_map(|line| line.strip_prefix(b"redis_version:"))
            }
            _ => (0..value.word_count())
                .find(|index| value.word(*index) == b"version")
                .map(|index| value.word(index + 1)),
        };
        if let Some(version) = version
            .map(<[u8]>::trim_ascii)
            .filter(|version| !version.is_empty())
        {
            sink.software(format!("Redis {}", text::name(version)).into());
        }
    }
}

/// Whether this first word of a reply confirms the (un)subscription of a command with these `answers`.
fn confirms(answers: Answers, word: &[u8]) -> bool {
    matches!(answers, Answers::Confirmed(_) | Answers::AllConfirmed)
        && word.ends_with(b"subscribe")
        && word.len() <= b"punsubscribe".len()
}
