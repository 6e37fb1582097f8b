//! memcached: the text protocol with its meta commands (protocol.txt of memcached), and the binary one. Answers come in
//! the order of the commands; what `noreply` or a quiet meta command leaves out is no answer to wait for. Values are
//! counted, never held.

mod binary;
mod command;
mod recognise;

use smol_str::SmolStr;

use super::framed::{self, Fit, Framed};
use super::lines::Line;
use super::pending_queue::PendingQueue;
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{Close, Kind, Listener, MessageReader, Outcome, RequestName, Side, Status, Stretch, text};
use command::{Answer, Command, Wants};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Memcached,
    sniff: recognise::sniff,
    begins_message: |side, first| {
        side == Side::Client && recognise::whole_line(first).is_some_and(Command::is_sure)
    },
    begins_inside_turn: |_, _| false, // what looks like it may lie inside a value
    reader: |_| AnyReader::Memcached(Box::default()),
    ..Recognition::NEVER
};

pub(super) const BINARY: Recognition = Recognition {
    protocol: Protocol::MemcachedBinary,
    sniff: framed::sniff::<binary::WireFormat>,
    begins_message: |side, first| framed::fit::<binary::WireFormat>(side, first) == Fit::Whole,
    begins_inside_turn: |side, first| framed::fit::<binary::WireFormat>(side, first) == Fit::Whole,
    reader: |_| AnyReader::MemcachedBinary(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Binary = Framed<binary::WireFormat>;

/// Longer lines are none: a multi-get names thousands of keys of at most 250 bytes.
const MAX_LINE: u64 = 1 << 20;
/// A value's line end.
const LINE_END: u64 = 2;

#[derive(Debug, Default)]
pub(super) struct Memcached {
    client: Line,
    server: Line,
    /// Bytes of the client's value that are still to come, and the key of its command, where a note covers it.
    storing: Option<(u64, Option<u64>)>,
    /// The value before did not end at its stated length: what looks like a command here may be the rest of it.
    torn: bool,
    value: Option<Value>,
    waiting: PendingQueue<Waits>,
    /// The beginning of the oldest command's answer has its note.
    begun: bool,
    /// `watch`: the server reports its events.
    watches: bool,
}

/// Of a command, until its answer is over.
#[derive(Debug)]
struct Waits {
    wants: Wants,
    quiet: bool,
    /// No note covers it: its success is not answered.
    silent: bool,
    /// What its answer may repeat, where it is quiet.
    opaque: SmolStr,
    target: SmolStr,
}

/// Bytes of the server's value that are still to come.
#[derive(Debug, Clone, Copy)]
struct Value {
    left: u64,
    /// With them the answer ends.
    last: bool,
}

/// Why it cannot go on, and what is not read.
type Stop<'a> = (&'static str, &'a [u8]);

impl MessageReader for Memcached {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let read = match (stretch, sink.side()) {
            (Stretch::Bytes(bytes), Side::Client) => self.asks(&mut sink, bytes),
            (Stretch::Bytes(bytes), Side::Server) => self.answers(&mut sink, bytes),
            (Stretch::Missing(missing), side) if self.misses(&mut sink, side, missing) => Ok(()),
            (Stretch::Missing(_), _) => {
                sink.lost("a line's beginning is not in the capture");
                return Outcome::Lost(stretch);
            }
        };
        match read {
            Ok(()) => Outcome::All,
            Err((reason, rest)) => {
                sink.lost(reason);
                Outcome::Lost(Stretch::Bytes(rest))
            }
        }
    }

    fn close(&mut self, _sink: &mut MessageSink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _inside: bool) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.clear();
        *self = Memcached {
            waiting,
            watches: self.watches,
            ..Memcached::default()
        };
    }
}

impl Memcached {
    /// Reads the client's bytes.
    fn asks<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        while !bytes.is_empty() {
            if let Some((left, _)) = self.storing {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let (value, rest) = crate::cursor::split(bytes, here);
                bytes = rest;
                self.torn = value.last() != Some(&b'\n');
                self.stores(sink, here as u64);
                continue;
            }
            let here = bytes;
            if self.client.is_new() {
                sink.mark();
            }
            if self.client.take(&mut bytes) {
                self.command(sink).map_err(|reason| (reason, here))?;
            } else if self.client.len() > MAX_LINE {
                return Err(("a line without end", here));
            }
        }
        Ok(())
    }

    /// So many bytes of the client's value.
    fn stores(&mut self, sink: &mut MessageSink<'_, impl Listener>, here: u64) {
        let Some((left, key)) = &mut self.storing else {
            return;
        };
        *left = left.saturating_sub(here);
        let (left, key) = (*left, *key);
        if let Some(key) = key {
            sink.exchange(key).count(here);
        }
        if left == 0 {
            self.storing = None;
            if let Some(key) = key {
                sink.exchange(key).end_request();
            }
        }
    }

    /// A command's line is whole.
    fn command(&mut self, sink: &mut MessageSink<'_, impl Listener>) -> Result<(), &'static str> {
        let line = std::mem::take(&mut self.client);
        if !line.is_text() {
            sink.unmark();
            return Err("not a line of text");
        }
        let mut command = Command::of(line.text(), line.ends_with(b" noreply"));
        if std::mem::take(&mut self.torn) && !Command::is_known(line.text()) {
            command.method = command::unknown();
        }
        self.torn = command.stores() && command.value.is_none();
        let key = self.ask(sink, &command)?;
        if let Some(key) = key {
            sink.exchange(key).count(line.len());
        }
        sink.unmark();
        match (command.value, key) {
            (Some(value), key) => self.storing = Some((value + LINE_END, key)),
            (None, Some(key)) => sink.exchange(key).end_request(),
            (None, None) => {}
        }
        Ok(())
    }

    /// Another command waits for its answer: its key, where a note covers it.
    fn ask(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        command: &Command,
    ) -> Result<Option<u64>, &'static str> {
        // a bare line end is no command of anybody's
        if command.silent || command.method.is_empty() {
            return Ok(None);
        }
        // who asks quietly for a value wants to know; who stores one does not
        let silent = command.quiet && !command.looks();
        let (mut opaque, mut target) = (SmolStr::default(), SmolStr::default());
        if command.quiet {
            (opaque, target) = (command.opaque.clone(), command.target.clone());
        }
        let waits = Waits {
            wants: command.wants,
            quiet: command.quiet,
            silent,
            opaque,
            target,
        };
        let key = self.waiting.push(waits).ok_or("too many commands wait")?;
        if silent {
            return Ok(None);
        }
        let watches = command.wants == Wants::Watch;
        let mut exchange = sink.exchange(key);
        exchange.begin_request(if watches { Kind::Setup } else { Kind::Request });
        exchange.name(RequestName {
            method: &command.method,
            target: &command.target,
            host: "",
        });
        Ok(Some(key))
    }

    /// Reads the server's bytes.
    fn answers<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        while !bytes.is_empty() {
            if let Some(value) = self.value {
                let left = usize::try_from(value.left).unwrap_or(usize::MAX);
                let here = left.min(bytes.len());
                bytes = bytes.get(here..).unwrap_or_default();
                self.value(sink, here as u64);
                continue;
            }
            let here = bytes;
            if self.server.is_new() {
                sink.mark();
            }
            if self.server.take(&mut bytes) {
                self.line(sink).map_err(|reason| (reason, here))?;
            } else if self.server.len() > MAX_LINE {
                return Err(("a line without end", here));
            }
        }
        Ok(())
    }

    /// So many bytes of the server's value.
    fn value(&mut self, sink: &mut MessageSink<'_, impl Listener>, here: u64) {
        let Some(value) = &mut self.value else {
            return;
        };
        value.left = value.left.saturating_sub(here);
        let Value { left, last } = *value;
        self.piece(sink, here);
        if left == 0 {
            self.value = None;
            if last {
                self.over(sink);
            }
        }
    }

    /// So many bytes belong to the answer of the oldest command.
    fn piece(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: u64) {
        if let Some((key, waits)) = self.waiting.first()
            && !waits.silent
        {
            if !std::mem::replace(&mut self.begun, true) {
                sink.exchange(key).begin_answer();
            }
            sink.exchange(key).piece(bytes);
        }
        sink.unmark();
    }

    /// The oldest command's answer is over.
    fn over(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        if let Some((key, waits)) = self.waiting.first() {
            let (silent, watches) = (waits.silent, waits.wants == Wants::Watch);
            if !silent {
                sink.exchange(key).end_answer();
            }
            self.watches |= watches;
            self.waiting.pop();
        }
        self.begun = false;
    }

    /// A line of the server is whole.
    fn line(&mut self, sink: &mut MessageSink<'_, impl Listener>) -> Result<(), &'static str> {
        let line = std::mem::take(&mut self.server);
        let input = line.text();
        if !line.is_text() {
            sink.unmark();
            return Err("not a line of text");
        }
        let Some(answer) = self.whose(sink, input)? else {
            // the beginning of what it answers is not in the capture, or it is what happens in the server
            if self.watches {
                sink.push("watch", "", line.len());
            }
            sink.unmark();
            let left = input.split(|byte| *byte == b' ').next().unwrap_or_default();
            let stray = match left {
                b"VALUE" => Wants::Values.answer(input, false),
                b"VA" => Wants::Meta(command::Meta::Get).answer(input, false),
                _ => Answer::Last,
            };
            if let Answer::Value(value) | Answer::LastValue(value) = stray {
                let left = value + LINE_END;
                self.value = Some(Value { left, last: false });
            }
            return Ok(());
        };
        self.piece(sink, line.len());
        match answer {
            Answer::More | Answer::Other => self.software(sink, input),
            Answer::Value(value) => {
                let left = value + LINE_END;
                self.value = Some(Value { left, last: false });
            }
            Answer::LastValue(value) => {
                self.status(sink, input);
                let left = value + LINE_END;
                self.value = Some(Value { left, last: true });
            }
            Answer::Last => {
                self.software(sink, input);
                self.status(sink, input);
                self.over(sink);
            }
        }
        Ok(())
    }

    /// What this line is to the oldest command that it can answer. Quiet commands before that one have been answered
    /// by their silence. None where no command waits.
    fn whose(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        input: &[u8],
    ) -> Result<Option<Answer>, &'static str> {
        loop {
            let Some((key, waits)) = self.waiting.first() else {
                return Ok(None);
            };
            let Waits { quiet, silent, .. } = *waits;
            let answer = waits.wants.answer(input, quiet);
            let apart = quiet && command::is_apart(input, &waits.opaque, &waits.target);
            if answer != Answer::Other && !apart {
                return Ok(Some(answer));
            }
            if !quiet {
                return Err("an answer to another command");
            }
            if !silent {
                let mut exchange = sink.exchange(key);
                exchange.begin_answer();
                exchange.status(Status {
                    code: Some(0),
                    text: Some("EN"),
                    error: false,
                });
                exchange.end_answer();
            }
            self.begun = false;
            self.waiting.pop();
        }
    }

    fn status(&mut self, sink: &mut MessageSink<'_, impl Listener>, input: &[u8]) {
        let Some((key, waits)) = self.waiting.first() else {
            return;
        };
        if waits.silent {
            return;
        }
        let first = input.split(|byte| *byte == b' ').next().unwrap_or_default();
        let error = command::is_error(first);
        let word = match waits.wants {
            Wants::Number if first.iter().all(u8::is_ascii_digit) => SmolStr::new_static("ok"),
            Wants::Version if !error => SmolStr::new_static("ok"),
            _ => text::name_up_to(first, 32, false),
        };
        sink.exchange(key).status(Status {
            code: (!error).then_some(0),
            text: Some(&word),
            error,
        });
    }

    /// The server's version, in its answer to `version` or `stats`.
    fn software(&self, sink: &mut MessageSink<'_, impl Listener>, input: &[u8]) {
        let version = input
            .strip_prefix(b"VERSION ")
            .or_else(|| input.strip_prefix(b"STAT version "));
        if let Some(version) = version {
            sink.software(format!("memcached {}", text::name_up_to(version, 64, false)).into());
        }
    }

    /// So many bytes of `side` are not in the capture; whether reading can go on.
    fn misses(&mut self, sink: &mut MessageSink<'_, impl Listener>, side: Side, missing: u64) -> bool {
        match side {
            Side::Client => match self.storing {
                Some((left, _)) if missing <= left => {
                    self.stores(sink, missing);
                    true
                }
                _ => false,
            },
            Side::Server => match self.value {
                Some(value) if missing <= value.left => {
                    self.value(sink, missing);
                    true
                }
                _ => false,
            },
        }
    }
}
