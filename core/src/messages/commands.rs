//! SMTP (RFC 5321), POP3 (RFC 1939), IMAP (RFC 9051) and FTP's control connection (RFC 959). Messages are lines; texts
//! up to a lone dot and literals of a given length are counted, not read. One exchange is a command and its reply.
//!
//! Replies come in the order of the commands; in IMAP each repeats its command's tag. The server's greeting is a
//! message of the connection's set-up. A mail's text is an exchange of its own (`content`) after the reply to DATA.
//! After STARTTLS the TLS reader continues.

mod answers;
mod imap;
mod recognise;
mod transfers;
mod verbs;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::lines::{Dots, Line};
use super::readers::AnyReader;
use super::sink::Sink;
use super::{Kind, Listener, MessageReader, Note, Outcome, Side, Stretch, tls};
use answers::Server;
pub(super) use recognise::{FTP, IMAP, POP3, SMTP};
use verbs::{Command, Dialect, Effect};

/// Upper bound on commands without a reply; beyond it the oldest is given up.
const MAX_WAITING: usize = 256;
/// Upper bound on a line. The longest legal one, a SASL response, has 12,288 bytes (RFC 4954 4).
const MAX_LINE: u64 = 1 << 16;
/// Method of the exchange in which a mail's text is sent.
const CONTENT: &str = "content";

#[derive(Debug)]
pub(super) struct Commands {
    dialect: Dialect,
    client: Client,
    server: Server,
    /// Commands without a complete reply, oldest first.
    waiting: VecDeque<PendingCommand>,
    /// Key of the next command.
    next_key: u64,
    /// The server replies to a mail's text once for each recipient (LMTP).
    per_recipient: bool,
    /// Recipients accepted for the next mail.
    recipients: u32,
    pairing: Pairing,
}

/// Whether the next reply can be paired with a command. After commands or replies were lost between others, no exchange
/// is reported until the client sends a command after a reply: then nothing older waits.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Pairing {
    #[default]
    Known,
    LostUntilReply,
    LostUntilCommand,
}

#[derive(Debug)]
struct PendingCommand {
    key: u64,
    /// IMAP's tag; empty in other protocols.
    tag: SmolStr,
    effect: Effect,
    /// Number of replies still to come.
    replies_left: u32,
    /// The reply has begun.
    has_begun: bool,
    has_failed: bool,
    /// The reply may have been in bytes that are not in the capture.
    may_be_answered: bool,
}

/// State of the client's direction.
#[derive(Debug, Default)]
struct Client {
    line: Line,
    reads: Reads,
    /// Key of the command that the next line belongs to: a round of its log-in, the end of IDLE.
    continued: Option<u64>,
    /// Key of the command whose line continues after a literal.
    literal: Option<u64>,
    /// Bytes before are not in the capture, so that a line may not be whole.
    is_after_hole: bool,
}

/// What the client's next bytes are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Reads {
    #[default]
    Lines,
    /// `remaining` octets of a literal or of BDAT, of the command with this key.
    Octets { key: u64, remaining: u64 },
    /// A mail's text; `key` is None until its first byte.
    Content {
        key: Option<u64>,
        dots: Dots,
        /// Part of the text is not in the capture, maybe with its end.
        has_hole: bool,
    },
}

/// Why this reader cannot go on.
enum Leave {
    Lost(&'static str),
    Tls,
}

impl Leave {
    /// Why the reader leaves after a cut line. One that cannot be read is skipped like the hole after it.
    fn skip_cut_line(self) -> Result<(), Leave> {
        match self {
            Leave::Lost(_) => Ok(()),
            Leave::Tls => Err(Leave::Tls),
        }
    }
}

impl PendingCommand {
    /// Counts bytes of the reply.
    fn count_reply(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u64) {
        if !std::mem::replace(&mut self.has_begun, true) {
            sink.exchange(self.key).begin_answer();
        }
        sink.unmark();
        if bytes > 0 {
            sink.exchange(self.key).piece(bytes);
        }
    }
}

impl MessageReader for Commands {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let (mut bytes, missing) = match stretch {
            Stretch::Bytes(bytes) => (bytes, None),
            Stretch::Missing(missing) => (&[][..], Some(missing)),
        };
        let read = match (sink.side(), missing) {
            (Side::Client, None) => self.read_client(&mut sink, &mut bytes),
            (Side::Server, None) => self.read_server(&mut sink, &mut bytes),
            (Side::Client, Some(missing)) => self.skip_client(&mut sink, missing),
            (Side::Server, Some(missing)) => self.skip_server(&mut sink, missing),
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

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        let next_key = self.next_key;
        *self = Commands::new(self.dialect);
        self.next_key = next_key;
    }
}

impl Commands {
    fn new(dialect: Dialect) -> Commands {
        Commands {
            dialect,
            client: Client::default(),
            server: Server::default(),
            waiting: VecDeque::new(),
            next_key: 0,
            per_recipient: false,
            recipients: 0,
            pairing: Pairing::Known,
        }
    }

    /// Reads the client's bytes.
    fn read_client(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: &mut &[u8]) -> Result<(), Leave> {
        while !bytes.is_empty() {
            match self.client.reads {
                Reads::Octets { key, remaining } => {
                    let count = usize::try_from(remaining).unwrap_or(usize::MAX).min(bytes.len());
                    *bytes = bytes.get(count..).unwrap_or_default();
                    self.count_octets(sink, key, remaining, count as u64);
                }
                Reads::Content { .. } => self.read_content(sink, bytes),
                Reads::Lines => {
                    if self.client.line.is_new() {
                        sink.mark();
                    }
                    if self.client.line.take(bytes) {
                        self.read_command(sink)?;
                    } else if self.client.line.len() > MAX_LINE {
                        return Err(Leave::Lost("a line without end"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts octets of a command's literal, or of BDAT, of which `remaining` were to come.
    fn count_octets(&mut self, sink: &mut Sink<'_, impl Listener>, key: u64, remaining: u64, count: u64) {
        sink.exchange(key).count(count);
        let remaining = remaining - count;
        self.client.reads = Reads::Octets { key, remaining };
        if remaining == 0 {
            self.client.reads = Reads::Lines;
            if self.client.literal.is_none() {
                sink.exchange(key).end_request();
            }
        }
    }

    /// Reads a mail's text, up to its lone dot.
    fn read_content(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: &mut &[u8]) {
        let Reads::Content {
            key,
            mut dots,
            has_hole,
        } = self.client.reads
        else {
            return;
        };
        let key = key.unwrap_or_else(|| {
            let replies = if self.per_recipient {
                self.recipients.max(1)
            } else {
                1
            };
            self.recipients = 0;
            sink.mark();
            let command = Command {
                method: CONTENT.into(),
                ..Command::default()
            };
            self.begin_request(sink, command, replies)
        });
        let end = dots.end(bytes);
        let count = end.unwrap_or(bytes.len());
        *bytes = bytes.get(count..).unwrap_or_default();
        sink.exchange(key).count(count as u64);
        self.client.reads = match end {
            Some(_) => {
                sink.exchange(key).end_request();
                Reads::Lines
            }
            None => Reads::Content {
                key: Some(key),
                dots,
                has_hole,
            },
        };
    }

    /// Reads a whole line of the client.
    fn read_command(&mut self, sink: &mut Sink<'_, impl Listener>) -> Result<(), Leave> {
        let line = std::mem::take(&mut self.client.line);
        if !line.is_text() {
            return Err(Leave::Lost("not a line of text"));
        }
        // 1. a line that continues a command
        let continued = self.client.literal.take().or(self.client.continued.take());
        if let Some(key) = continued {
            sink.unmark();
            sink.exchange(key).count(line.len());
            self.end_line(sink, key, &line, 0);
            return Ok(());
        }
        // 2. lines that may not be a command: after lost bytes, or a mail's text
        if self.pairing == Pairing::LostUntilCommand {
            self.pairing = Pairing::Known;
        }
        let command = self.dialect.command(line.text());
        let is_after_hole = std::mem::take(&mut self.client.is_after_hole);
        let is_ignored = is_after_hole || line.text().is_empty() || self.dialect == Dialect::Imap;
        if self.pairing != Pairing::Known || command.is_none() && is_ignored {
            self.client.is_after_hole = is_after_hole && self.dialect == Dialect::Smtp;
            sink.unmark();
            return Ok(());
        }
        let command = command.unwrap_or_default();
        if command.is_odd(self.dialect) && (is_after_hole || !self.waiting.is_empty()) {
            // a client does not pipeline an unknown command, so this is a mail's text
            self.client.is_after_hole = true;
            sink.unmark();
            self.give_up(sink);
            return Ok(());
        }
        // 3. a command
        self.drop_maybe_answered(sink);
        let effect = command.effect;
        let octets = if let Effect::Octets(octets) = effect {
            octets
        } else {
            0
        };
        self.per_recipient |= effect == Effect::PerRecipient;
        if self.dialect == Dialect::Ftp {
            if let Some(port) = transfers::port_in_command(&command.method, &command.target) {
                transfers::announce_port(sink, port);
            } else if transfers::is_transfer(&command.method) {
                let (method, target) = (&command.method, &command.target);
                sink.listener().note(Note::Transfer { method, target });
            }
        }
        let key = self.begin_request(sink, command, 1);
        sink.exchange(key).count(line.len());
        if effect == Effect::Idle {
            self.client.continued = Some(key);
        } else {
            self.end_line(sink, key, &line, octets);
        }
        Ok(())
    }

    /// Expects the octets after a command's line, or ends its request.
    fn end_line(&mut self, sink: &mut Sink<'_, impl Listener>, key: u64, line: &Line, octets: u64) {
        let literal = line.literal().filter(|_| self.dialect == Dialect::Imap);
        let remaining = literal.unwrap_or(octets);
        self.client.literal = literal.map(|_| key);
        if remaining > 0 {
            self.client.reads = Reads::Octets { key, remaining };
        } else if literal.is_none() {
            sink.exchange(key).end_request();
        }
    }

    /// Begins and names a request, which gets this many replies. Returns its key.
    fn begin_request(&mut self, sink: &mut Sink<'_, impl Listener>, command: Command, replies: u32) -> u64 {
        let key = self.next_key;
        self.next_key += 1;
        if self.waiting.len() >= MAX_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            sink.exchange(oldest.key).give_up();
        }
        let is_idle = command.effect == Effect::Idle;
        let kind = if is_idle { Kind::LongPoll } else { Kind::Request };
        sink.exchange(key).request(kind, &command.method, &command.target);
        self.waiting.push_back(PendingCommand {
            key,
            tag: command.tag,
            effect: command.effect,
            replies_left: replies,
            has_begun: false,
            has_failed: false,
            may_be_answered: false,
        });
        key
    }

    /// Gives up the oldest commands whose replies may be lost: as the client sends its next command, it has them.
    fn drop_maybe_answered(&mut self, sink: &mut Sink<'_, impl Listener>) {
        if self.dialect == Dialect::Imap {
            return;
        }
        while self.waiting.front().is_some_and(|first| first.may_be_answered)
            && let Some(lost) = self.waiting.pop_front()
        {
            sink.exchange(lost.key).give_up();
            self.server.reset();
        }
    }

    /// Skips bytes of the client that are not in the capture.
    fn skip_client(&mut self, sink: &mut Sink<'_, impl Listener>, missing: u64) -> Result<(), Leave> {
        self.client.is_after_hole = true;
        match &mut self.client.reads {
            Reads::Octets { key, remaining } if missing <= *remaining => {
                let (key, remaining) = (*key, *remaining);
                self.count_octets(sink, key, remaining, missing);
                return Ok(());
            }
            Reads::Content {
                key: Some(key),
                dots,
                has_hole,
            } => {
                (*dots, *has_hole) = (Dots::Inside, true);
                sink.exchange(*key).count(missing);
                return Ok(());
            }
            _ => {}
        }
        self.client.reads = Reads::Lines;
        if !self.client.line.is_new() {
            // mostly cut by the snap length: the line ends in the missing bytes
            self.client.line.count(missing);
            self.read_command(sink).or_else(Leave::skip_cut_line)?;
        } else if !self.waiting.is_empty() && self.dialect != Dialect::Imap {
            // a command may be missing, so the replies cannot be paired
            self.give_up(sink);
        }
        self.client.line.clear();
        (self.client.literal, self.client.continued) = (None, None);
        sink.unmark();
        Ok(())
    }

    /// Gives up all open commands: their replies cannot be paired any more.
    pub(super) fn give_up(&mut self, sink: &mut Sink<'_, impl Listener>) {
        for lost in self.waiting.drain(..) {
            sink.exchange(lost.key).give_up();
        }
        self.pairing = Pairing::LostUntilReply;
    }
}
