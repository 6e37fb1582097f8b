//! Commands in lines and their answers: SMTP (RFC 5321), POP3 (RFC 1939), IMAP (RFC 9051) and FTP's control connection
//! (RFC 959). Reads both sides' lines, commands are requests; texts and literals are counted, not looked at.
//!
//! Answers come in the order of the commands, but in IMAP, where each repeats its command's tag. The greeting answers
//! nothing: the client waits for it before it asks, and that is the connection's set-up. A mail's text is a request of
//! its own (`content`) behind the answer to DATA. Behind STARTTLS and its like another reader goes on.

mod answers;
mod imap;
mod recognise;
mod transfers;
mod verbs;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::lines::{Dots, Line};
use super::readers::AnyReader;
use super::sink::MessageSink;
use super::{Kind, Listener, MessageReader, Note, Outcome, RequestName, Side, Stretch, tls};
use answers::Server;
pub(super) use recognise::{FTP, IMAP, POP3, SMTP};
use verbs::{Command, Dialect, Does};

/// Commands that may wait for their answer; the oldest is given up beyond it.
const MAX_WAITING: usize = 256;
/// Longer lines are none: a SASL answer has at most 12,288 bytes (RFC 4954 4).
const MAX_LINE: u64 = 1 << 16;
/// What a mail's text is called.
const CONTENT: &str = "content";

#[derive(Debug)]
pub(super) struct Commands {
    dialect: Dialect,
    client: Client,
    server: Server,
    /// The commands that were not answered, oldest first.
    waiting: VecDeque<PendingCommand>,
    /// The key of the next command.
    next: u64,
    /// Each recipient's mail is answered for itself (LMTP), and so many were accepted.
    apart: bool,
    recipients: u32,
    /// Commands or answers are missing between others: no notes until the client speaks behind an answer.
    blind: Blind,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Blind {
    #[default]
    No,
    UntilAnswered,
    UntilCommand,
}

#[derive(Debug)]
struct PendingCommand {
    key: u64,
    tag: SmolStr,
    does: Does,
    /// Answers that are still to come.
    answers: u32,
    /// Its answer has begun.
    begun: bool,
    failed: bool,
    /// Its answer may be among bytes that are not in the capture.
    doubtful: bool,
}

#[derive(Debug, Default)]
struct Client {
    line: Line,
    reads: Reads,
    /// The next line belongs to this command: a round of its log-in, the end of IDLE.
    going: Option<u64>,
    /// The line goes on behind a literal.
    literal: Option<u64>,
    /// Bytes before are not in the capture: a line may not be whole.
    holed: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Reads {
    #[default]
    Lines,
    Octets {
        key: u64,
        left: u64,
    },
    /// A mail's text, once its first byte has come with its key.
    Content {
        key: Option<u64>,
        dots: Dots,
        holed: bool,
    },
}

/// Why this reader cannot go on.
enum Leave {
    Lost(&'static str),
    Tls,
}

impl PendingCommand {
    /// So many bytes of its answer are here.
    fn answer_bytes(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: u64) {
        let begins = !std::mem::replace(&mut self.begun, true);
        if begins {
            sink.exchange(self.key).begin_answer();
        }
        sink.unmark();
        if bytes > 0 {
            sink.exchange(self.key).piece(bytes);
        }
    }
}

impl MessageReader for Commands {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let mut bytes = match stretch {
            Stretch::Bytes(bytes) => bytes,
            Stretch::Missing(missing) => {
                match sink.side() {
                    Side::Client => self.client_misses(&mut sink, missing),
                    Side::Server => self.server_misses(&mut sink, missing),
                }
                return Outcome::All;
            }
        };
        let read = match sink.side() {
            Side::Client => self.asks(&mut sink, &mut bytes),
            Side::Server => self.answers(&mut sink, &mut bytes),
        };
        match read {
            Ok(()) => Outcome::All,
            Err(Leave::Tls) => {
                Outcome::Switch(AnyReader::Tls(Box::<tls::Tls>::default()), Stretch::Bytes(bytes))
            }
            Err(Leave::Lost(reason)) => {
                sink.unmark();
                sink.lost(reason);
                Outcome::Lost(Stretch::Bytes(bytes))
            }
        }
    }

    fn resume(&mut self, _side: Side, _inside: bool) {
        let next = self.next;
        *self = Commands::new(self.dialect);
        self.next = next;
    }
}

impl Commands {
    fn new(dialect: Dialect) -> Commands {
        Commands {
            dialect,
            client: Client::default(),
            server: Server::default(),
            waiting: VecDeque::new(),
            next: 0,
            apart: false,
            recipients: 0,
            blind: Blind::No,
        }
    }

    /// Reads the client's bytes.
    fn asks(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: &mut &[u8]) -> Result<(), Leave> {
        while !bytes.is_empty() {
            match self.client.reads {
                Reads::Octets { key, left } => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    *bytes = bytes.get(here..).unwrap_or_default();
                    self.octets(sink, key, left, here as u64);
                }
                Reads::Content { .. } => self.content(sink, bytes),
                Reads::Lines => {
                    if self.client.line.is_new() {
                        sink.mark();
                    }
                    if self.client.line.take(bytes) {
                        self.command(sink)?;
                    } else if self.client.line.len() > MAX_LINE {
                        return Err(Leave::Lost("a line without end"));
                    }
                }
            }
        }
        Ok(())
    }

    /// So many octets of a command's literal, or of a mail's part; `left` were to come.
    fn octets(&mut self, sink: &mut MessageSink<'_, impl Listener>, key: u64, left: u64, here: u64) {
        sink.exchange(key).count(here);
        let left = left - here;
        self.client.reads = Reads::Octets { key, left };
        if left == 0 {
            self.client.reads = Reads::Lines;
            if self.client.literal.is_none() {
                sink.exchange(key).end_request();
            }
        }
    }

    /// A mail's text.
    fn content(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: &mut &[u8]) {
        let Reads::Content { key, mut dots, holed } = self.client.reads else {
            return;
        };
        let key = key.unwrap_or_else(|| {
            let answers = if self.apart { self.recipients.max(1) } else { 1 };
            self.recipients = 0;
            sink.mark();
            let method = CONTENT.into();
            self.ask(
                sink,
                Command {
                    method,
                    ..Command::default()
                },
                answers,
            )
        });
        let end = dots.end(bytes);
        let here = end.unwrap_or(bytes.len());
        *bytes = bytes.get(here..).unwrap_or_default();
        sink.exchange(key).count(here as u64);
        self.client.reads = match end {
            Some(_) => {
                sink.exchange(key).end_request();
                Reads::Lines
            }
            None => Reads::Content {
                key: Some(key),
                dots,
                holed,
            },
        };
    }

    /// A line of the client is whole.
    fn command(&mut self, sink: &mut MessageSink<'_, impl Listener>) -> Result<(), Leave> {
        let line = std::mem::take(&mut self.client.line);
        if !line.is_text() {
            return Err(Leave::Lost("not a line of text"));
        }
        let belongs = self.client.literal.take().or(self.client.going.take());
        if let Some(key) = belongs {
            sink.unmark();
            sink.exchange(key).count(line.len());
            self.goes_on(sink, key, &line, 0);
            return Ok(());
        }
        self.blind = match self.blind {
            Blind::UntilCommand => Blind::No,
            blind => blind,
        };
        let command = self.dialect.command(line.text());
        let holed = std::mem::take(&mut self.client.holed);
        let blank = line.text().is_empty();
        if self.blind != Blind::No || command.is_none() && (holed || blank || self.dialect == Dialect::Imap) {
            self.client.holed = holed && self.dialect == Dialect::Smtp;
            sink.unmark();
            return Ok(());
        }
        let command = command.unwrap_or_default();
        if command.is_odd(self.dialect) && (holed || !self.waiting.is_empty()) {
            // a client that sends an unknown command waits for its answer: this is a mail's text
            self.client.holed = true;
            sink.unmark();
            self.give_up(sink);
            return Ok(());
        }
        self.forget_doubtful(sink);
        let does = command.does;
        let octets = if let Does::Octets(octets) = does {
            octets
        } else {
            0
        };
        self.apart |= does == Does::Apart;
        if self.dialect == Dialect::Ftp {
            if let Some(port) = transfers::port_in_command(&command.method, &command.target) {
                transfers::tell_port(sink, port);
            } else if transfers::is_transfer(&command.method) {
                let (method, target) = (&command.method, &command.target);
                sink.listener().note(Note::Transfer { method, target });
            }
        }
        let key = self.ask(sink, command, 1);
        sink.exchange(key).count(line.len());
        if does == Does::Idle {
            self.client.going = Some(key);
        } else {
            self.goes_on(sink, key, &line, octets);
        }
        Ok(())
    }

    /// What stands behind a line of this command: octets, or nothing more of it.
    fn goes_on(&mut self, sink: &mut MessageSink<'_, impl Listener>, key: u64, line: &Line, octets: u64) {
        let literal = line.literal().filter(|_| self.dialect == Dialect::Imap);
        let left = literal.unwrap_or(octets);
        self.client.literal = literal.map(|_| key);
        if left > 0 {
            self.client.reads = Reads::Octets { key, left };
        } else if literal.is_none() {
            sink.exchange(key).end_request();
        }
    }

    /// A request begins where the mark is.
    fn ask(&mut self, sink: &mut MessageSink<'_, impl Listener>, command: Command, answers: u32) -> u64 {
        let key = self.next;
        self.next += 1;
        if self.waiting.len() >= MAX_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            sink.exchange(oldest.key).give_up();
        }
        let idle = command.does == Does::Idle;
        let mut exchange = sink.exchange(key);
        exchange.begin_request(if idle { Kind::LongPoll } else { Kind::Request });
        exchange.name(RequestName {
            method: &command.method,
            target: &command.target,
            host: "",
        });
        self.waiting.push_back(PendingCommand {
            key,
            tag: command.tag,
            does: command.does,
            answers,
            begun: false,
            failed: false,
            doubtful: false,
        });
        key
    }

    /// The client asks anew: what it may have been answered in lost bytes, it was answered.
    fn forget_doubtful(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        if self.dialect == Dialect::Imap {
            return;
        }
        while self.waiting.front().is_some_and(|first| first.doubtful)
            && let Some(lost) = self.waiting.pop_front()
        {
            sink.exchange(lost.key).give_up();
            self.server.reset();
        }
    }

    /// Bytes of the client are not in the capture.
    fn client_misses(&mut self, sink: &mut MessageSink<'_, impl Listener>, missing: u64) {
        self.client.holed = true;
        match &mut self.client.reads {
            Reads::Octets { key, left } if missing <= *left => {
                let (key, left) = (*key, *left);
                return self.octets(sink, key, left, missing);
            }
            Reads::Content {
                key: Some(key),
                dots,
                holed,
            } => {
                (*dots, *holed) = (Dots::Inside, true);
                return sink.exchange(*key).count(missing);
            }
            _ => {}
        }
        self.client.reads = Reads::Lines;
        if !self.client.line.is_new() {
            // cut by the snap length, mostly: the line ends in what is missing
            self.client.line.count(missing);
            let _ = self.command(sink);
        } else if !self.waiting.is_empty() && self.dialect != Dialect::Imap {
            // of a series of commands one is missing: which answer is whose is not known
            self.give_up(sink);
        }
        self.client.line.clear();
        (self.client.literal, self.client.going) = (None, None);
        sink.unmark();
    }

    /// Nobody can tell any more which answer is whose.
    pub(super) fn give_up(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        for lost in self.waiting.drain(..) {
            sink.exchange(lost.key).give_up();
        }
        self.blind = Blind::UntilAnswered;
    }
}
