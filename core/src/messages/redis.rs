//! Redis (RESP2 and RESP3): commands, and the replies that answer them in order. What the server says unasked
//! (messages of channels, invalidations, the lines of MONITOR) is pushes. A blocking command waits for an event.

mod command;
mod resp;

use smol_str::SmolStr;

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::waiting::Waiting;
use super::{Close, First, Guess, Kind, Listener, MessageReader, Named, Read, Side, Status, Stretch, text};
use command::{Answers, Command};
use resp::{Come, Resp};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Redis,
    sniff,
    opens,
    resumes: |_, _| false, // what looks like it may lie inside a value
    joins: |_, _| false,
    reader: |_| AnyReader::Redis(Box::default()),
};
/// What begins a message of a channel, or a notice.
const PUSHES: [&[u8]; 4] = [b"message", b"pmessage", b"smessage", b"invalidate"];

#[derive(Debug, Default)]
pub(super) struct Redis {
    client: Resp,
    server: Resp,
    /// Bytes of the client's command, and of the server's value, of which nothing was said yet.
    asked: u64,
    said: u64,
    waiting: Waiting<Answers>,
    /// The client's command has a name; its key, if anybody is told of it.
    named: bool,
    begun: Option<u64>,
    value: Value,
    /// The beginning of the answer that it is has been told.
    answers: bool,
    /// Channels and patterns that the client has subscribed to.
    channels: u64,
    patterns: u64,
    subscribed: bool,
    monitors: bool,
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
    /// Nobody is known to have asked.
    Stray,
}

fn sniff(first: &First<'_>) -> Guess {
    match first.side {
        // who asks in words speaks first
        Side::Client if first.began == Side::Server && asks(first.said) != Guess::Yes => Guess::No,
        Side::Client => asks(first.said),
        Side::Server if first.other.is_empty() => pushes(first.said),
        // a line of words: the answer tells
        Side::Server if first.began == Side::Client && asks(first.other) == Guess::Other => {
            answers(first.said)
        }
        Side::Server => Guess::No,
    }
}

fn opens(side: Side, first: &[u8]) -> bool {
    match side {
        Side::Client => asks(first) == Guess::Yes,
        Side::Server => pushes(first) == Guess::Yes,
    }
}

/// Whether a client says a command: an array whose first string is a word.
fn asks(said: &[u8]) -> Guess {
    if said.first().is_some_and(u8::is_ascii_alphabetic) {
        return match memchr::memchr(b'\n', said).and_then(|end| said.get(..end)) {
            Some(line) if command::is_inline(line) => Guess::Other,
            None if said.is_ascii() => Guess::More,
            _ => Guess::No,
        };
    }
    let is_verb = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'_' | b'-');
    match array(said, b'*') {
        Ok(_) if pushes(said) == Guess::Yes => Guess::No,
        Ok((_, word)) if !word.is_empty() && word.iter().all(is_verb) => Guess::Yes,
        Ok(_) => Guess::No,
        Err(guess) => guess,
    }
}

/// Whether a server says unasked what only this protocol has.
fn pushes(said: &[u8]) -> Guess {
    if said.strip_prefix(b"+").is_some_and(is_monitored) {
        return Guess::Yes;
    }
    let kind = said.first().copied().filter(|kind| matches!(kind, b'*' | b'>'));
    match kind.map_or(Err(Guess::No), |kind| array(said, kind)) {
        Ok((3 | 4, word)) if PUSHES.contains(&word) => Guess::Yes,
        Ok((2, b"invalidate")) => Guess::Yes,
        Ok(_) => Guess::No,
        Err(guess) => guess,
    }
}

fn answers(said: &[u8]) -> Guess {
    let line = memchr::memchr(b'\n', said).and_then(|end| said.get(..end));
    match (said.first(), line) {
        (Some(b'+' | b'-' | b':' | b'$' | b'*' | b'_' | b'%'), None) => Guess::More,
        (Some(b'+' | b'-'), Some(line))
            if line.ends_with(b"\r") && line.get(1).is_some_and(u8::is_ascii_uppercase) =>
        {
            Guess::Yes
        }
        (Some(b':' | b'$' | b'*' | b'%'), Some([_, number @ .., b'\r']))
            if resp::number(number).is_some() =>
        {
            Guess::Yes
        }
        _ => Guess::No,
    }
}

/// An array's count and its first string, which must be a short one.
fn array(said: &[u8], kind: u8) -> Result<(u64, &[u8]), Guess> {
    let (count, rest) = header(said, kind)?;
    let (len, rest) = header(rest, b'$')?;
    let whole = rest.get(..len as usize + 2).ok_or(Guess::More)?;
    if !(1..=32).contains(&len) || count == 0 {
        return Err(Guess::No);
    }
    whole
        .strip_suffix(b"\r\n")
        .map(|word| (count, word))
        .ok_or(Guess::No)
}

fn header(said: &[u8], kind: u8) -> Result<(u64, &[u8]), Guess> {
    let Some((first, text)) = said.split_first() else {
        return Err(Guess::More);
    };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = crate::cursor::split(text, digits);
    if *first != kind || digits > 7 {
        return Err(Guess::No);
    }
    match rest {
        [b'\r', b'\n', rest @ ..] if digits > 0 => Ok((resp::number(number).flatten().unwrap_or(0), rest)),
        [] | [b'\r'] => Err(Guess::More),
        _ => Err(Guess::No),
    }
}

/// A line of MONITOR, behind its `+`: `1339518083.107412 [0 127.0.0.1:60866] "GET" "x"`.
fn is_monitored(line: &[u8]) -> bool {
    let time = line
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
        .count();
    time > 10 && line.get(time..).is_some_and(|rest| rest.starts_with(b" ["))
}

impl MessageReader for Redis {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Read<'a> {
        if self.replica && self.waiting.is_empty() {
            return Read::All;
        }
        let read = match (stretch, sink.side()) {
            (Stretch::Bytes(bytes), Side::Client) => self.commands(&mut sink, bytes),
            (Stretch::Bytes(bytes), Side::Server) => self.values(&mut sink, bytes),
            (Stretch::Missing(missing), side) => self.missing(&mut sink, side, missing),
        };
        match read {
            Ok(()) => Read::All,
            Err((reason, rest)) => {
                sink.lost(reason);
                Read::Lost(rest.map_or(stretch, Stretch::Bytes))
            }
        }
    }

    fn close(&mut self, _sink: &mut MessageSink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _inside: bool) {
        let (mut waiting, subscribed, monitors) =
            (std::mem::take(&mut self.waiting), self.subscribed, self.monitors);
        waiting.forget();
        *self = Redis {
            waiting,
            subscribed,
            monitors,
            late: true,
            ..Redis::default()
        };
    }
}

/// Why it cannot go on, and what is not read.
type Left<'a> = (&'static str, Option<&'a [u8]>);

impl Redis {
    fn missing(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        side: Side,
        missing: u64,
    ) -> Result<(), Left<'static>> {
        let (half, count) = match side {
            Side::Client => (&mut self.client, &mut self.asked),
            Side::Server => (&mut self.server, &mut self.said),
        };
        if !half.skip(missing) {
            return Err(("a value's beginning is not in the capture", None));
        }
        *count += missing;
        if side == Side::Server {
            self.goes_on(sink);
        }
        Ok(())
    }

    fn commands<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Left<'a>> {
        while !bytes.is_empty() {
            sink.mark();
            let here = bytes;
            let come = self.client.next(true, &mut bytes);
            self.asked += (here.len() - bytes.len()) as u64;
            match come {
                Come::Wrong => return Err(("not a command of Redis", Some(here))),
                Come::Partly if self.client.words() > 1 && Command::is_plain(self.client.word(0)) => {
                    self.ask(sink)?
                }
                Come::Partly => {}
                Come::Whole => self.command(sink)?,
            }
        }
        Ok(())
    }

    /// A command is whole.
    fn command(&mut self, sink: &mut MessageSink<'_, impl Listener>) -> Result<(), Left<'static>> {
        if self.client.words() > 0 {
            self.ask(sink)?;
        }
        if let Some(key) = self.begun.take() {
            let mut exchange = sink.of(key);
            exchange.count(self.asked);
            exchange.asked();
        }
        sink.unmark();
        (self.asked, self.named) = (0, false);
        Ok(())
    }

    /// The command has a name.
    fn ask(&mut self, sink: &mut MessageSink<'_, impl Listener>) -> Result<(), Left<'static>> {
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
        if quiet || command.answers == Answers::ReplySkip {
            return Ok(());
        }
        let key = self
            .waiting
            .push(command.answers)
            .ok_or(("too many commands wait", None))?;
        let mut exchange = sink.of(key);
        exchange.ask(command.kind);
        exchange.name(Named {
            method: &command.method,
            target: &command.target,
            host: "",
        });
        self.begun = Some(key);
        Ok(())
    }

    fn values<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Left<'a>> {
        while !bytes.is_empty() {
            sink.mark();
            let here = bytes;
            let come = self.server.next(false, &mut bytes);
            self.said += (here.len() - bytes.len()) as u64;
            match come {
                Come::Wrong => return Err(("not a reply of Redis", Some(here))),
                Come::Partly => self.goes_on(sink),
                Come::Whole => {
                    self.weigh(true);
                    self.ends(sink);
                    (self.said, self.value) = (0, Value::Unknown);
                    sink.unmark();
                    if self.replica && self.waiting.is_empty() {
                        return Ok(());
                    }
                }
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
        let mut exchange = sink.of(key);
        if !std::mem::replace(&mut self.answers, true) {
            exchange.answer();
        }
        exchange.piece(std::mem::take(&mut self.said));
    }

    /// What the server's value is, as soon as that is known.
    fn weigh(&mut self, whole: bool) {
        if self.value != Value::Unknown {
            return;
        }
        let first = self.waiting.first().map(|(key, answers)| (key, *answers));
        let unasked = first.is_none();
        self.value = match self.server.kind {
            b'>' if self.server.worded || whole => match first {
                Some((key, answers)) if confirms(answers, self.server.word(0)) => Value::Answer(key),
                _ => Value::Push,
            },
            b'*' if (self.subscribed || unasked) && (self.server.worded || whole) => {
                match (PUSHES.contains(&self.server.word(0)), first) {
                    (true, _) => Value::Push,
                    (false, Some((key, _))) => Value::Answer(key),
                    (false, None) => Value::Stray,
                }
            }
            b'+' if whole && (self.monitors || unasked) && is_monitored(self.server.word(0)) => Value::Push,
            b'+' if !whole && (self.monitors || unasked) => return,
            b'*' if !whole && (self.subscribed || unasked) => return,
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
                sink.push(&method, &target, self.said);
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
        let mut exchange = sink.of(key);
        exchange.status(Status {
            code: None,
            text: Some(if failed { &error } else { "ok" }),
            error: failed,
        });
        exchange.answered();
        self.answers = false;
        match answers {
            Answers::Monitor => self.monitors |= !failed,
            Answers::Hello | Answers::Info if !failed => self.names_itself(sink, answers),
            _ => {}
        }
        self.waiting.pop();
    }

    /// A confirmation says how many subscriptions there are now: how many of its kind.
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

/// Whether this word confirms a (un)subscription that somebody asked for.
fn confirms(answers: Answers, word: &[u8]) -> bool {
    matches!(answers, Answers::Confirmed(_) | Answers::AllConfirmed)
        && (word.ends_with(b"subscribe") && word.len() <= b"punsubscribe".len())
}
