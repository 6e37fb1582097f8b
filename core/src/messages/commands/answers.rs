//! The server's side of SMTP, POP3 and FTP: where an answer ends, and whose it is. IMAP's is in `imap.rs`.

use super::super::lines::{Dots, Line};
use super::verbs::{Dialect, Does};
use super::{Blind, Commands, Leave, MAX_LINE, PendingCommand, Reads, transfers};
use crate::messages::sink::MessageSink;
use crate::messages::{Listener, Side, Status, server_software};

/// Status lines of a server before it closes an idle connection (RFC 5321 3.8, RFC 959 4.2).
const CLOSING: u16 = 421;
/// Lines of a server that begin no answer; more of them, and this is another protocol.
const MAX_ODD: u8 = 3;

#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) line: Line,
    /// The code of an answer of several lines.
    several: Option<[u8; 3]>,
    /// An answer's text up to a lone dot (POP3).
    text: Option<Dots>,
    /// A literal's octets that are still to come (IMAP).
    pub(super) octets: u64,
    /// Bytes of the answer before the present line.
    unreported: u64,
    /// Bytes before are not in the capture.
    pub(super) holed: bool,
    /// Lines that began no answer.
    odd: u8,
    /// It has spoken: what follows is no greeting.
    pub(super) greeted: bool,
}

impl Server {
    /// Forgets what was half read.
    pub(super) fn reset(&mut self) {
        (self.several, self.text, self.octets, self.unreported) = (None, None, 0, 0);
        self.line.clear();
    }
}

/// The code at a line's beginning, and whether more lines follow.
pub(super) fn code(line: &[u8]) -> Option<(u16, bool)> {
    let (digits, rest) = line.split_first_chunk::<3>()?;
    let number =
        |code: u16, digit: &u8| Some(code * 10 + u16::from(digit.checked_sub(b'0').filter(|d| *d <= 9)?));
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
    pub(super) fn answers(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        bytes: &mut &[u8],
    ) -> Result<(), Leave> {
        if self.dialect == Dialect::Imap {
            return self.responses(sink, bytes);
        }
        while !bytes.is_empty() {
            if let Some(dots) = &mut self.server.text {
                let end = dots.end(bytes);
                let here = end.unwrap_or(bytes.len());
                *bytes = bytes.get(here..).unwrap_or_default();
                if let Some(first) = self.waiting.front() {
                    sink.exchange(first.key).piece(here as u64);
                }
                if end.is_some() {
                    self.server.text = None;
                    let status = status_word("+OK");
                    self.answered(sink, status)?;
                }
                continue;
            }
            if self.server.line.is_new() && self.server.unreported == 0 {
                sink.mark();
            }
            if self.server.line.take(bytes) {
                self.reply_line(sink)?;
            } else if self.server.line.len() > MAX_LINE {
                return Err(Leave::Lost("a line without end"));
            }
        }
        Ok(())
    }

    /// A line of the server is whole.
    fn reply_line(&mut self, sink: &mut MessageSink<'_, impl Listener>) -> Result<(), Leave> {
        let line = std::mem::take(&mut self.server.line);
        let len = line.len();
        self.server.unreported = self.server.unreported.saturating_add(len);
        if self.dialect == Dialect::Pop3 {
            return self.indicator(sink, line.text());
        }
        let found = code(line.text());
        if let Some(several) = self.server.several {
            let same = line.text().starts_with(&several) || self.dialect == Dialect::Smtp;
            let Some((code, false)) = found.filter(|_| same) else {
                return Ok(());
            };
            self.server.several = None;
            return self.reply(sink, code, line.text());
        }
        match found {
            Some((code, false)) => self.reply(sink, code, line.text()),
            Some((_, true)) => {
                if !self.server.greeted {
                    greeting(sink, line.text());
                }
                self.server.several = line.text().first_chunk().copied();
                Ok(())
            }
            None => self.nonsense(sink, line.is_text()),
        }
    }

    /// A line that begins no answer. Some servers say one now and then, and clients take it for a refusal.
    pub(super) fn nonsense(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        is_text: bool,
    ) -> Result<(), Leave> {
        // before any command a line is the text of an answer that the capture begins inside
        if self.server.holed || self.next == 0 && is_text {
            sink.unmark();
            self.server.unreported = 0;
            return Ok(());
        }
        self.server.odd += 1;
        if !is_text || self.server.odd > MAX_ODD || self.waiting.is_empty() {
            return Err(Leave::Lost("not an answer to a command"));
        }
        self.count(sink);
        let refused = Status {
            error: true,
            ..Status::default()
        };
        self.answered(sink, refused)
    }

    /// POP3: `+OK`, `-ERR`, or `+` for the next round of a log-in.
    fn indicator(&mut self, sink: &mut MessageSink<'_, impl Listener>, line: &[u8]) -> Result<(), Leave> {
        let first = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        match first {
            b"+OK" => {
                if self.waiting.front().is_some_and(|first| first.does == Does::Text) {
                    self.count(sink);
                    self.server.text = Some(Dots::default());
                    return Ok(());
                }
                self.final_reply(sink, status_word("+OK"), line)
            }
            b"-ERR" => self.final_reply(sink, status_word("-ERR"), line),
            b"+" => {
                self.next_round(sink);
                Ok(())
            }
            _ => self.nonsense(sink, !line.contains(&0)),
        }
    }

    /// SMTP and FTP: an answer with this code is whole.
    fn reply(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        code: u16,
        line: &[u8],
    ) -> Result<(), Leave> {
        let smtp = self.dialect == Dialect::Smtp;
        if !smtp && code < 200 {
            // the answer begins: the transfer is on its way
            self.count(sink);
            return Ok(());
        }
        if self.dialect == Dialect::Ftp
            && let Some(port) = transfers::port_in_reply(code, line)
        {
            transfers::tell_port(sink, port);
        }
        if smtp && code == 354 {
            self.client.reads = Reads::Content {
                key: None,
                dots: Dots::default(),
                holed: false,
            };
        }
        if smtp
            && code == 334
            && self
                .waiting
                .front()
                .is_some_and(|first| first.does == Does::Rounds)
        {
            self.next_round(sink);
            return Ok(());
        }
        let status = Status {
            code: Some(code),
            text: None,
            error: code >= 400,
        };
        self.final_reply(sink, status, line)
    }

    /// The server wants another line of the oldest command.
    fn next_round(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        sink.unmark();
        (self.server.unreported, self.server.greeted) = (0, true);
        if let Some(first) = self.waiting.front() {
            sink.exchange(first.key).dialogue();
            self.client.going = Some(first.key);
        }
    }

    /// What came so far belongs to the oldest command.
    fn count(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        let unreported = std::mem::take(&mut self.server.unreported);
        (self.server.holed, self.server.greeted) = (false, true);
        match self.waiting.front_mut() {
            Some(first) => first.answer_bytes(sink, unreported),
            None => sink.unmark(),
        }
    }

    fn final_reply(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        status: Status<'_>,
        line: &[u8],
    ) -> Result<(), Leave> {
        self.blind = match self.blind {
            Blind::UntilAnswered => Blind::UntilCommand,
            blind => blind,
        };
        if self.waiting.is_empty() {
            let unsolicited = self.server.greeted && self.next > 0 && !self.client.holed;
            let bytes = std::mem::take(&mut self.server.unreported);
            let greets = !std::mem::replace(&mut self.server.greeted, true) && self.next == 0;
            match status.code {
                Some(CLOSING) if unsolicited => sink.push("421", "", bytes),
                _ if greets => greeted(sink, line, bytes),
                _ => sink.unmark(),
            }
            // the command may be in a hole that is not seen yet: what follows may be its answer's text
            self.server.holed = !greets;
            return Ok(());
        }
        self.count(sink);
        self.answered(sink, status)
    }

    /// The oldest command has an answer.
    fn answered(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        status: Status<'_>,
    ) -> Result<(), Leave> {
        let Some(first) = self.waiting.front_mut() else {
            return Ok(());
        };
        first.answers = first.answers.saturating_sub(1);
        if !first.failed {
            sink.exchange(first.key).status(status);
            first.failed = status.error;
        }
        if first.answers > 0 {
            return Ok(());
        }
        match self.waiting.pop_front() {
            Some(over) => self.over(sink, &over),
            None => Ok(()),
        }
    }

    /// An exchange has its last answer.
    pub(super) fn over(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        over: &PendingCommand,
    ) -> Result<(), Leave> {
        let mut exchange = sink.exchange(over.key);
        exchange.end_answer();
        if self.client.going == Some(over.key) {
            self.client.going = None;
        }
        match self.client.reads {
            // refused before it was sent, or its end is not in the capture
            Reads::Octets { key, .. } if key == over.key && over.failed => {
                (self.client.reads, self.client.literal) = (Reads::Lines, None);
            }
            Reads::Content {
                key: Some(key),
                holed: true,
                ..
            } if key == over.key => {
                self.client.reads = Reads::Lines;
            }
            _ => {}
        }
        match over.does {
            Does::Recipient if !over.failed => self.recipients += 1,
            Does::Tls if !over.failed => return Err(Leave::Tls),
            Does::Opaque if !over.failed => return Err(Leave::Lost("compressed from here on")),
            _ => {}
        }
        Ok(())
    }

    /// Bytes of the server are not in the capture.
    pub(super) fn server_misses(&mut self, sink: &mut MessageSink<'_, impl Listener>, missing: u64) {
        let by_snap_length = sink.at().frame != 0;
        self.server.holed = true;
        if self.dialect == Dialect::Imap {
            return self.response_misses(sink, missing);
        }
        if self.server.text.is_some() && self.waiting.len() > 1 {
            // the text may end in what is missing, and the next answer begin
            self.give_up(sink);
            self.server.reset();
            return sink.unmark();
        }
        if let Some(dots) = &mut self.server.text {
            *dots = Dots::Inside;
            if let Some(first) = self.waiting.front_mut() {
                sink.exchange(first.key).count(missing);
                first.doubtful = true;
            }
            return;
        }
        if by_snap_length && self.server.unreported + self.server.line.len() > 0 {
            // the answer ends in what is missing
            self.server.line.count(missing);
            let several = self.server.several.take();
            self.server.line.make_last(several);
            let _ = self.reply_line(sink);
        } else if self.waiting.len() > 1 {
            self.give_up(sink);
        } else if let Some(first) = self.waiting.front_mut() {
            first.doubtful = true;
            sink.exchange(first.key).count(missing);
        }
        self.server.reset();
        sink.unmark();
    }
}

/// What the server sends first may say what it is.
pub(super) fn greeting(sink: &mut MessageSink<'_, impl Listener>, line: &[u8]) {
    if sink.side() == Side::Server
        && let Some(name) = server_software::of_greeting(&[line, b"\n"].concat())
    {
        sink.software(name);
    }
}

/// The server's first words are whole: they answer nothing, and the client waits for them.
pub(super) fn greeted(sink: &mut MessageSink<'_, impl Listener>, line: &[u8], bytes: u64) {
    greeting(sink, line);
    sink.count(bytes);
    sink.end();
}

/// A word of an answer, as its status.
pub(super) fn status_word(word: &str) -> Status<'_> {
    let error = !matches!(word, "+OK" | "OK" | "PREAUTH");
    Status {
        code: (!error).then_some(0),
        text: Some(word),
        error,
    }
}
