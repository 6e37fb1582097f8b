//! Replies of SMTP, POP3 and FTP: where each ends, and which command it answers. IMAP's are in `imap.rs`.

use super::super::lines::{Dots, Line, first_word};
use super::verbs::{Dialect, Effect};
use super::{Commands, Leave, MAX_LINE, Pairing, PendingCommand, Reads, transfers};
use crate::messages::sink::Sink;
use crate::messages::{Listener, Side, Status, server_software};

/// Reply code of a server that closes an idle connection (RFC 5321 3.8, RFC 959 4.2).
const CLOSING: u16 = 421;
/// Upper bound on the server's lines that begin no reply; with more of them the stream is another protocol.
const MAX_ODD: u8 = 3;

/// State of the server's direction.
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) line: Line,
    /// Code of the multi-line reply that is being read.
    multiline: Option<[u8; 3]>,
    /// A reply's text up to a lone dot is being read (POP3).
    text: Option<Dots>,
    /// Octets of a literal that are still to come (IMAP).
    pub(super) octets: u64,
    /// Bytes of the reply that were not given to the sink yet.
    unreported: u64,
    /// Bytes before are not in the capture.
    pub(super) is_after_hole: bool,
    /// Number of lines that began no reply.
    odd: u8,
    /// The server has sent a reply, so that what follows is not a greeting.
    pub(super) has_greeted: bool,
}

impl Server {
    /// Forgets the reply that is being read.
    pub(super) fn reset(&mut self) {
        (self.multiline, self.text, self.octets, self.unreported) = (None, None, 0, 0);
        self.line.clear();
    }
}

/// Returns the code at a line's beginning, and whether more lines follow: `250-SIZE` -> (250, true).
pub(super) fn code(line: &[u8]) -> Option<(u16, bool)> {
    let (digits, rest) = line.split_first_chunk::<3>()?;
    let number = |code: u16, digit: &u8| {
        Some(code * 10 + u16::from(digit.checked_sub(b'0').filter(|value| *value <= 9)?))
    };
    let code = digits.iter().try_fold(0, number)?;
    match rest.first() {
        None | Some(b' ') => Some((code, false)),
        Some(b'-') => Some((code, true)),
        Some(_) => None,
    }
    .filter(|(code, _)| (100..600).contains(code))
}

impl Commands {
    /// Reads the server's bytes.
    pub(super) fn read_server(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        bytes: &mut &[u8],
    ) -> Result<(), Leave> {
        if self.dialect == Dialect::Imap {
            return self.read_imap_server(sink, bytes);
        }
        while !bytes.is_empty() {
            if let Some(dots) = &mut self.server.text {
                let end = dots.end(bytes);
                let count = end.unwrap_or(bytes.len());
                *bytes = bytes.get(count..).unwrap_or_default();
                if let Some(first) = self.waiting.front() {
                    sink.exchange(first.key).piece(count as u64);
                }
                if end.is_some() {
                    self.server.text = None;
                    self.end_reply(sink, status_word("+OK"))?;
                }
                continue;
            }
            if self.server.line.is_new() && self.server.unreported == 0 {
                sink.mark();
            }
            if self.server.line.take(bytes) {
                self.read_reply_line(sink)?;
            } else if self.server.line.len() > MAX_LINE {
                return Err(Leave::Lost("a line without end"));
            }
        }
        Ok(())
    }

    /// Reads a whole line of the server.
    fn read_reply_line(&mut self, sink: &mut Sink<'_, impl Listener>) -> Result<(), Leave> {
        let line = std::mem::take(&mut self.server.line);
        let len = line.len();
        self.server.unreported = self.server.unreported.saturating_add(len);
        if self.dialect == Dialect::Pop3 {
            return self.read_pop3_reply(sink, line.text());
        }
        let reply_code = code(line.text());
        if let Some(first) = self.server.multiline {
            let is_same = line.text().starts_with(&first) || self.dialect == Dialect::Smtp;
            if is_same && let Some((code, false)) = reply_code {
                self.server.multiline = None;
                return self.read_reply(sink, code, line.text());
            }
            return Ok(());
        }
        match reply_code {
            Some((code, false)) => self.read_reply(sink, code, line.text()),
            Some((_, true)) => {
                if !self.server.has_greeted {
                    read_software(sink, line.text());
                }
                self.server.multiline = line.text().first_chunk().copied();
                Ok(())
            }
            None => self.read_odd_line(sink, line.is_text()),
        }
    }

    /// Reads a line that begins no reply. Some servers send one now and then, and clients take it for a refusal.
    fn read_odd_line(&mut self, sink: &mut Sink<'_, impl Listener>, is_text: bool) -> Result<(), Leave> {
        // before the first command: the capture begins inside the text of a reply
        if self.server.is_after_hole || self.next_key == 0 && is_text {
            sink.unmark();
            self.server.unreported = 0;
            return Ok(());
        }
        self.server.odd += 1;
        if !is_text || self.server.odd > MAX_ODD || self.waiting.is_empty() {
            return Err(Leave::Lost("not an answer to a command"));
        }
        self.count_reply(sink);
        let refused = Status {
            error: true,
            ..Status::default()
        };
        self.end_reply(sink, refused)
    }

    /// Reads a line of POP3: `+OK`, `-ERR`, or `+` for the next round of a log-in.
    fn read_pop3_reply(&mut self, sink: &mut Sink<'_, impl Listener>, line: &[u8]) -> Result<(), Leave> {
        let first = first_word(line);
        match first {
            b"+OK" => {
                let has_text = |first: &PendingCommand| first.effect == Effect::Text;
                if self.waiting.front().is_some_and(has_text) {
                    self.count_reply(sink);
                    self.server.text = Some(Dots::default());
                    return Ok(());
                }
                self.end_reply_with(sink, status_word("+OK"), line)
            }
            b"-ERR" => self.end_reply_with(sink, status_word("-ERR"), line),
            b"+" => {
                self.next_round(sink);
                Ok(())
            }
            _ => self.read_odd_line(sink, !line.contains(&0)),
        }
    }

    /// Reads a whole reply of SMTP or FTP.
    fn read_reply(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        code: u16,
        line: &[u8],
    ) -> Result<(), Leave> {
        let is_smtp = self.dialect == Dialect::Smtp;
        if !is_smtp && code < 200 {
            // FTP's preliminary reply: the transfer has begun
            self.count_reply(sink);
            return Ok(());
        }
        if self.dialect == Dialect::Ftp
            && let Some(port) = transfers::port_in_reply(code, line)
        {
            transfers::announce_port(sink, port);
        }
        if is_smtp && code == 354 {
            self.client.reads = Reads::Content {
                key: None,
                dots: Dots::default(),
                has_hole: false,
            };
        }
        let is_dialogue = |first: &PendingCommand| first.effect == Effect::Dialogue;
        if is_smtp && code == 334 && self.waiting.front().is_some_and(is_dialogue) {
            self.next_round(sink);
            return Ok(());
        }
        let status = Status::reply_code(code);
        self.end_reply_with(sink, status, line)
    }

    /// The server requests another line of the oldest command.
    fn next_round(&mut self, sink: &mut Sink<'_, impl Listener>) {
        sink.unmark();
        (self.server.unreported, self.server.has_greeted) = (0, true);
        if let Some(first) = self.waiting.front() {
            sink.exchange(first.key).dialogue();
            self.client.continued = Some(first.key);
        }
    }

    /// Gives the unreported bytes to the oldest command's reply.
    fn count_reply(&mut self, sink: &mut Sink<'_, impl Listener>) {
        let unreported = std::mem::take(&mut self.server.unreported);
        (self.server.is_after_hole, self.server.has_greeted) = (false, true);
        match self.waiting.front_mut() {
            Some(first) => first.count_reply(sink, unreported),
            None => sink.unmark(),
        }
    }

    /// Handles a reply that is not preliminary. Without an open command it is a greeting, or the server closes.
    fn end_reply_with(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        status: Status<'_>,
        line: &[u8],
    ) -> Result<(), Leave> {
        if self.pairing == Pairing::LostUntilReply {
            self.pairing = Pairing::LostUntilCommand;
        }
        if self.waiting.is_empty() {
            let is_unsolicited = self.server.has_greeted && self.next_key > 0 && !self.client.is_after_hole;
            let bytes = std::mem::take(&mut self.server.unreported);
            let greets = !std::mem::replace(&mut self.server.has_greeted, true) && self.next_key == 0;
            match status.code {
                Some(CLOSING) if is_unsolicited => sink.push("421", "", bytes),
                _ if greets => report_greeting(sink, line, bytes),
                _ => sink.unmark(),
            }
            // the command may be in a hole that is not seen yet, and the text of its reply may follow
            self.server.is_after_hole = !greets;
            return Ok(());
        }
        self.count_reply(sink);
        self.end_reply(sink, status)
    }

    /// Ends a reply to the oldest command, and with its last reply the exchange.
    fn end_reply(&mut self, sink: &mut Sink<'_, impl Listener>, status: Status<'_>) -> Result<(), Leave> {
        let Some(first) = self.waiting.front_mut() else {
            return Ok(());
        };
        first.replies_left = first.replies_left.saturating_sub(1);
        if !first.has_failed {
            sink.exchange(first.key).status(status);
            first.has_failed = status.error;
        }
        if first.replies_left > 0 {
            return Ok(());
        }
        match self.waiting.pop_front() {
            Some(command) => self.end_exchange(sink, &command),
            None => Ok(()),
        }
    }

    /// Ends the exchange of a command that has its last reply, and applies the command's effect.
    pub(super) fn end_exchange(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        command: &PendingCommand,
    ) -> Result<(), Leave> {
        sink.exchange(command.key).end_answer();
        if self.client.continued == Some(command.key) {
            self.client.continued = None;
        }
        match self.client.reads {
            // the server refused the literal before it was sent
            Reads::Octets { key, .. } if key == command.key && command.has_failed => {
                (self.client.reads, self.client.literal) = (Reads::Lines, None);
            }
            // the end of the mail's text is not in the capture
            Reads::Content {
                key: Some(key),
                has_hole: true,
                ..
            } if key == command.key => {
                self.client.reads = Reads::Lines;
            }
            _ => {}
        }
        match command.effect {
            _ if command.has_failed => {}
            Effect::Recipient => self.recipients += 1,
            Effect::Tls => return Err(Leave::Tls),
            Effect::Compression => return Err(Leave::Lost("compressed from here on")),
            _ => {}
        }
        Ok(())
    }

    /// Skips bytes of the server that are not in the capture.
    pub(super) fn skip_server(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        missing: u64,
    ) -> Result<(), Leave> {
        let is_cut_by_snap_length = sink.at().frame != 0;
        self.server.is_after_hole = true;
        if self.dialect == Dialect::Imap {
            return self.skip_imap_server(sink, missing);
        }
        if self.server.text.is_some() && self.waiting.len() > 1 {
            // the text may end in the missing bytes, and the next reply begin
            self.give_up(sink);
            self.server.reset();
            sink.unmark();
            return Ok(());
        }
        if let Some(dots) = &mut self.server.text {
            *dots = Dots::Inside;
            if let Some(first) = self.waiting.front_mut() {
                sink.exchange(first.key).count(missing);
                first.may_be_answered = true;
            }
            return Ok(());
        }
        if is_cut_by_snap_length && self.server.unreported + self.server.line.len() > 0 {
            // the reply ends in the missing bytes
            self.server.line.count(missing);
            let code = self.server.multiline.take();
            self.server.line.make_last(code);
            self.read_reply_line(sink).or_else(Leave::skip_cut_line)?;
        } else if self.waiting.len() > 1 {
            self.give_up(sink);
        } else if let Some(first) = self.waiting.front_mut() {
            first.may_be_answered = true;
            sink.exchange(first.key).count(missing);
        }
        self.server.reset();
        sink.unmark();
        Ok(())
    }
}

/// Reads the server's software in the first line of its greeting.
fn read_software(sink: &mut Sink<'_, impl Listener>, line: &[u8]) {
    if sink.side() == Side::Server
        && let Some(name) = server_software::of_greeting(&[line, b"\n"].concat())
    {
        sink.software(name);
    }
}

/// Reports a whole greeting: a message of the server that answers no command, and that the client waits for.
pub(super) fn report_greeting(sink: &mut Sink<'_, impl Listener>, line: &[u8], bytes: u64) {
    read_software(sink, line);
    sink.count(bytes);
    sink.end();
}

/// Returns the status of a reply of POP3 or IMAP.
pub(super) fn status_word(word: &str) -> Status<'_> {
    let is_error = !matches!(word, "+OK" | "OK" | "PREAUTH");
    Status::new((!is_error).then_some(0), Some(word), is_error)
}
