//! memcached's text protocol with its meta commands (memcached's doc/protocol.txt); `binary.rs` has the binary one.
//! Messages are lines, some with a value after them whose length is in the line. One exchange is a command and its
//! response; responses come in the order of the commands. Commands with `noreply` are not requests; a quiet meta
//! command is answered by the response to a later one. Values are counted, not kept.

mod binary;
mod command;

use smol_str::SmolStr;

use super::framed::{self, Fit, Framed};
use super::lines::{Line, first_word};
use super::pending_queue::PendingQueue;
use super::readers::{AnyReader, Protocol, Recognition};
use super::recognise::MAX_UNDECIDED;
use super::sink::Sink;
use super::{Close, FirstBytes, Guess, Kind, Listener, MessageReader, Outcome, Side, Status, Stretch, text};
use super::{Stop, feed_outcome};
use command::{Answer, Command, Expects};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Memcached,
    sniff,
    begins_message: |side, first| side == Side::Client && whole_line(first).is_some_and(Command::is_sure),
    begins_inside_turn: |_, _| false, // the same bytes may stand inside a value
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

/// Returns the first line, without its line end; None if it is not whole.
fn whole_line(first: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b'\n', first)?;
    first.get(..end)?.strip_suffix(b"\r")
}

fn sniff(first: &FirstBytes<'_>) -> Guess {
    match (first.side, whole_line(first.input)) {
        (_, None)
            if !first
                .input
                .iter()
                .all(|byte| *byte > b' ' || b" \r".contains(byte)) =>
        {
            Guess::No
        }
        (Side::Client, None) if first.began == Side::Server && first.other.is_empty() => Guess::No,
        (Side::Server, None) if !command::may_answer(first.input) => Guess::No,
        (_, None) if first.input.len() < MAX_UNDECIDED => Guess::More,
        (Side::Client, None) if Command::is_known(first.input) => Guess::NeedsOtherSide, // many keys
        (_, None) => Guess::No,
        (Side::Client, Some(line)) if Command::is_sure(line) => Guess::Yes,
        (Side::Client, Some(line)) if !Command::is_known(line) => Guess::No,
        (Side::Server, Some(line)) if !command::is_answer(line) && !is_number(line) => Guess::No,
        (_, Some(_)) if first.other.is_empty() => Guess::NeedsOtherSide,
        (Side::Client, Some(_)) => sniff_pair(first.input, first.other),
        (Side::Server, Some(_)) => sniff_pair(first.other, first.input),
    }
}

fn is_number(line: &[u8]) -> bool {
    (1..=20).contains(&line.len()) && line.iter().all(u8::is_ascii_digit)
}

/// Whether the client's first command may have the server's first response.
fn sniff_pair(request: &[u8], input: &[u8]) -> Guess {
    let (Some(line), Some(answer)) = (whole_line(request), whole_line(input)) else {
        return Guess::NeedsOtherSide;
    };
    let expects = Command::of(line, false).expects;
    let fits = command::is_answer(answer)
        // these commands accept any line, which proves nothing
        || !matches!(expects, Expects::Line | Expects::Watch | Expects::Lines)
            && expects.answer(answer, false) != Answer::Other;
    if Command::is_known(line) && fits {
        Guess::Yes
    } else {
        Guess::No
    }
}

/// Upper bound on a line: a multi-get names thousands of keys of at most 250 bytes.
const MAX_LINE: u64 = 1 << 20;
/// Bytes of CR LF after a value.
const LINE_END: u64 = 2;

#[derive(Debug, Default)]
pub(super) struct Memcached {
    client: Line,
    server: Line,
    /// Bytes still to come of the client's value, and the key of its command, if that is an exchange.
    storing: Option<(u64, Option<u64>)>,
    /// The value before did not end at its stated length, so that the next line may be the rest of it.
    is_torn: bool,
    /// The server's value that is being read.
    value: Option<Value>,
    waiting: PendingQueue<Pending>,
    /// The oldest command's response has begun.
    has_begun: bool,
    /// The client has sent `watch`: the server reports its events.
    watches: bool,
}

/// A command without a complete response.
#[derive(Debug)]
struct Pending {
    expects: Expects,
    quiet: Quiet,
    /// Opaque word of a quiet command, which its response may repeat.
    opaque: SmolStr,
    /// Key of a quiet command, which its response may repeat.
    target: SmolStr,
}

/// Whether the server leaves out the usual response to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quiet {
    No,
    /// The client waits for what it gets, or for the response to the next command.
    Get,
    /// The client does not wait, so the command is not an exchange.
    Store,
}

impl Pending {
    fn is_exchange(&self) -> bool {
        self.quiet != Quiet::Store
    }
}

/// A value of the server that is being read.
#[derive(Debug, Clone, Copy)]
struct Value {
    /// Bytes still to come.
    remaining: u64,
    /// The response ends with the value.
    is_last: bool,
}

impl MessageReader for Memcached {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let read = match (stretch, sink.side()) {
            (Stretch::Bytes(bytes), Side::Client) => self.read_client(&mut sink, bytes),
            (Stretch::Bytes(bytes), Side::Server) => self.read_server(&mut sink, bytes),
            (Stretch::Missing(missing), _) => self.skip(&mut sink, missing),
        };
        feed_outcome(read, &mut sink, stretch)
    }

    fn close(&mut self, _sink: &mut Sink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
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
    fn read_client<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        while !bytes.is_empty() {
            if let Some((remaining, _)) = self.storing {
                let count = usize::try_from(remaining).unwrap_or(usize::MAX).min(bytes.len());
                let (value, rest) = crate::cursor::split(bytes, count);
                bytes = rest;
                self.is_torn = value.last() != Some(&b'\n');
                self.count_client_value(sink, count as u64);
                continue;
            }
            let before = bytes;
            if self.client.is_new() {
                sink.mark();
            }
            if self.client.take(&mut bytes) {
                self.read_command(sink)
                    .map_err(|reason| Stop::Lost(reason, Some(before)))?;
            } else if self.client.len() > MAX_LINE {
                return Err(Stop::Lost("a line without end", Some(before)));
            }
        }
        Ok(())
    }

    /// Counts bytes of the client's value.
    fn count_client_value(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u64) {
        let Some((remaining, key)) = &mut self.storing else {
            return;
        };
        *remaining = remaining.saturating_sub(bytes);
        let (remaining, key) = (*remaining, *key);
        if let Some(key) = key {
            sink.exchange(key).count(bytes);
        }
        if remaining == 0 {
            self.storing = None;
            if let Some(key) = key {
                sink.exchange(key).end_request();
            }
        }
    }

    /// Reads a whole command line.
    fn read_command(&mut self, sink: &mut Sink<'_, impl Listener>) -> Result<(), &'static str> {
        let line = std::mem::take(&mut self.client);
        if !line.is_text() {
            sink.unmark();
            return Err("not a line of text");
        }
        let mut command = Command::of(line.text(), line.ends_with(b" noreply"));
        if std::mem::take(&mut self.is_torn) && !Command::is_known(line.text()) {
            command.method = command::unknown();
        }
        self.is_torn = command.has_value() && command.value.is_none();
        let key = self.begin_request(sink, &command)?;
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

    /// Queues a command. Returns its key, if it is an exchange.
    fn begin_request(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        command: &Command,
    ) -> Result<Option<u64>, &'static str> {
        // an empty line is not a command
        if command.has_no_response || command.method.is_empty() {
            return Ok(None);
        }
        let (mut opaque, mut target) = (SmolStr::default(), SmolStr::default());
        if command.is_quiet {
            (opaque, target) = (command.opaque.clone(), command.target.clone());
        }
        let pending = Pending {
            expects: command.expects,
            quiet: match command.is_quiet {
                false => Quiet::No,
                true if command.is_get() => Quiet::Get,
                true => Quiet::Store,
            },
            opaque,
            target,
        };
        let is_exchange = pending.is_exchange();
        let key = self.waiting.push(pending).ok_or("too many commands wait")?;
        if !is_exchange {
            return Ok(None);
        }
        let watches = command.expects == Expects::Watch;
        let kind = if watches { Kind::Setup } else { Kind::Request };
        sink.exchange(key).request(kind, &command.method, &command.target);
        Ok(Some(key))
    }

    /// Reads the server's bytes.
    fn read_server<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        while !bytes.is_empty() {
            if let Some(value) = self.value {
                let value_left = usize::try_from(value.remaining).unwrap_or(usize::MAX);
                let count = value_left.min(bytes.len());
                bytes = bytes.get(count..).unwrap_or_default();
                self.count_server_value(sink, count as u64);
                continue;
            }
            let before = bytes;
            if self.server.is_new() {
                sink.mark();
            }
            if self.server.take(&mut bytes) {
                self.read_server_line(sink)
                    .map_err(|reason| Stop::Lost(reason, Some(before)))?;
            } else if self.server.len() > MAX_LINE {
                return Err(Stop::Lost("a line without end", Some(before)));
            }
        }
        Ok(())
    }

    /// Counts bytes of the server's value.
    fn count_server_value(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u64) {
        let Some(value) = &mut self.value else {
            return;
        };
        value.remaining = value.remaining.saturating_sub(bytes);
        let Value { remaining, is_last } = *value;
        self.count_piece(sink, bytes);
        if remaining == 0 {
            self.value = None;
            if is_last {
                self.end_response(sink);
            }
        }
    }

    /// Counts bytes of the oldest command's response.
    fn count_piece(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u64) {
        if let Some((key, pending)) = self.waiting.first()
            && pending.is_exchange()
        {
            sink.exchange(key).answer_piece(&mut self.has_begun, bytes);
        }
        sink.unmark();
    }

    /// Ends the oldest command's response.
    fn end_response(&mut self, sink: &mut Sink<'_, impl Listener>) {
        if let Some((key, pending)) = self.waiting.first() {
            if pending.is_exchange() {
                sink.exchange(key).end_answer();
            }
            self.watches |= pending.expects == Expects::Watch;
            self.waiting.pop();
        }
        self.has_begun = false;
    }

    /// Reads a whole line of the server.
    fn read_server_line(&mut self, sink: &mut Sink<'_, impl Listener>) -> Result<(), &'static str> {
        let line = std::mem::take(&mut self.server);
        let input = line.text();
        if !line.is_text() {
            sink.unmark();
            return Err("not a line of text");
        }
        let Some(answer) = self.match_line(sink, input)? else {
            // an event for `watch`, or the response to a command that is not in the capture
            if self.watches {
                sink.push("watch", "", line.len());
            }
            sink.unmark();
            let stray_answer = match input.split(|byte| *byte == b' ').next() {
                Some(b"VALUE") => Expects::Values.answer(input, false),
                Some(b"VA") => Expects::Meta(command::Meta::Get).answer(input, false),
                _ => Answer::Last,
            };
            if let Answer::Value(value) | Answer::LastValue(value) = stray_answer {
                self.begin_value(value, false);
            }
            return Ok(());
        };
        self.count_piece(sink, line.len());
        match answer {
            Answer::More | Answer::Other => read_version(sink, input),
            Answer::Value(value) => self.begin_value(value, false),
            Answer::LastValue(value) => {
                self.report_status(sink, input);
                self.begin_value(value, true);
            }
            Answer::Last => {
                read_version(sink, input);
                self.report_status(sink, input);
                self.end_response(sink);
            }
        }
        Ok(())
    }

    fn begin_value(&mut self, len: u64, is_last: bool) {
        let remaining = len + LINE_END;
        self.value = Some(Value { remaining, is_last });
    }

    /// Finds the oldest command that this line can answer, and how it does. Ends quiet commands before that one, which
    /// the server has answered by silence. None if no command waits.
    fn match_line(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        input: &[u8],
    ) -> Result<Option<Answer>, &'static str> {
        loop {
            let Some((key, pending)) = self.waiting.first() else {
                return Ok(None);
            };
            let is_quiet = pending.quiet != Quiet::No;
            let answer = pending.expects.answer(input, is_quiet);
            let is_other = is_quiet && command::repeats_other(input, &pending.opaque, &pending.target);
            if answer != Answer::Other && !is_other {
                return Ok(Some(answer));
            }
            if !is_quiet {
                return Err("an answer to another command");
            }
            if pending.is_exchange() {
                let mut exchange = sink.exchange(key);
                exchange.answer(Status::new(Some(0), Some("EN"), false));
                exchange.end_answer();
            }
            self.has_begun = false;
            self.waiting.pop();
        }
    }

    /// Reports the status of the oldest command's response, by its line.
    fn report_status(&mut self, sink: &mut Sink<'_, impl Listener>, input: &[u8]) {
        let Some((key, pending)) = self.waiting.first() else {
            return;
        };
        if !pending.is_exchange() {
            return;
        }
        let first = first_word(input);
        let is_error = command::is_error(first);
        let word = match pending.expects {
            Expects::Number if first.iter().all(u8::is_ascii_digit) => SmolStr::new_static("ok"),
            Expects::Version if !is_error => SmolStr::new_static("ok"),
            _ => text::name_up_to(first, 32, false),
        };
        sink.exchange(key)
            .status(Status::new((!is_error).then_some(0), Some(&word), is_error));
    }

    /// Skips bytes that are not in the capture. An error unless they lie inside a value.
    fn skip(&mut self, sink: &mut Sink<'_, impl Listener>, missing: u64) -> Result<(), Stop<'static>> {
        match (sink.side(), self.storing, self.value) {
            (Side::Client, Some((remaining, _)), _) if missing <= remaining => {
                self.count_client_value(sink, missing)
            }
            (Side::Server, _, Some(value)) if missing <= value.remaining => {
                self.count_server_value(sink, missing)
            }
            _ => return Err(Stop::Lost("a line's beginning is not in the capture", None)),
        }
        Ok(())
    }
}

/// Reads the server's version in its response to `version` or `stats`.
fn read_version(sink: &mut Sink<'_, impl Listener>, input: &[u8]) {
    let version = input
        .strip_prefix(b"VERSION ")
        .or_else(|| input.strip_prefix(b"STAT version "));
    if let Some(version) = version {
        sink.software(format!("memcached {}", text::name_up_to(version, 64, false)).into());
    }
}
