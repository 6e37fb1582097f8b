//! Responses of IMAP (RFC 9051 7), which may have literals. A tagged response ends the reply to the command with its
//! tag. An untagged one belongs to the oldest open command; if only IDLE is open, or none, it is a push.

use super::answers::{report_greeting, status_word};
use super::verbs::{Effect, is_tag};
use super::{Commands, Leave, MAX_LINE, PendingCommand};
use crate::cursor;
use crate::messages::Listener;
use crate::messages::pending_queue::take_first;
use crate::messages::sink::Sink;

impl Commands {
    /// Reads the server's bytes.
    pub(super) fn read_imap_server(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        bytes: &mut &[u8],
    ) -> Result<(), Leave> {
        while !bytes.is_empty() {
            let server = &mut self.server;
            if server.octets > 0 {
                let (octets, rest) = cursor::split_left(bytes, &mut server.octets);
                *bytes = rest;
                server.line.count(octets.len() as u64);
                continue;
            }
            if server.line.is_new() {
                sink.mark();
            }
            if !server.line.take(bytes) {
                if server.line.len() > MAX_LINE {
                    return Err(Leave::Lost("a line without end"));
                }
                continue;
            }
            server.octets = server.line.literal().unwrap_or(0);
            if server.octets == 0 {
                self.read_response(sink)?;
            }
        }
        self.count_pieces(sink);
        Ok(())
    }

    /// Reports the bytes of an untagged response that were read so far.
    fn count_pieces(&mut self, sink: &mut Sink<'_, impl Listener>) {
        if !self.server.line.text().starts_with(b"* ") {
            return;
        }
        if let Some(index) = self.owner()
            && let Some(owner) = self.waiting.get_mut(index)
        {
            owner.count_reply(sink, self.server.line.take_len());
        }
    }

    /// Index of the command that untagged responses belong to.
    fn owner(&self) -> Option<usize> {
        self.waiting
            .iter()
            .position(|waiting| waiting.effect != Effect::Idle)
    }

    /// Reads a whole response.
    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>) -> Result<(), Leave> {
        self.count_pieces(sink);
        let line = std::mem::take(&mut self.server.line);
        if !line.is_text() {
            return Err(Leave::Lost("not a line of text"));
        }
        let mut words = line.text().split(|byte| *byte == b' ');
        let (tag, word) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match tag {
            b"*" => {
                if !std::mem::replace(&mut self.server.has_greeted, true) && self.next_key == 0 {
                    report_greeting(sink, line.text(), line.len());
                    return Ok(());
                }
                if self.owner().is_some() {
                    return Ok(()); // `pieces` has counted it
                }
                let is_numbered = word.first().is_some_and(u8::is_ascii_digit);
                let name = if is_numbered {
                    words.next().unwrap_or_default()
                } else {
                    word
                };
                match std::str::from_utf8(name) {
                    Ok(name)
                        if self.next_key > 0 && !self.client.is_after_hole && is_tag(name.as_bytes()) =>
                    {
                        sink.push(name, "", line.len());
                    }
                    _ => sink.unmark(),
                }
                Ok(())
            }
            b"+" => {
                sink.unmark();
                if let Some(newest) = self.waiting.back() {
                    sink.exchange(newest.key).dialogue();
                    if newest.effect == Effect::Dialogue {
                        self.client.continued = Some(newest.key);
                    }
                }
                Ok(())
            }
            tag if is_tag(tag) => self.read_tagged(sink, tag, word, line.len()),
            _ if self.server.is_after_hole => {
                sink.unmark();
                Ok(())
            }
            _ => Err(Leave::Lost("not an answer to a command")),
        }
    }

    /// Ends the command with this tag.
    fn read_tagged(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        tag: &[u8],
        word: &[u8],
        bytes: u64,
    ) -> Result<(), Leave> {
        let has_tag = |command: &PendingCommand| command.tag.as_bytes() == tag;
        let Some(mut command) = take_first(&mut self.waiting, has_tag) else {
            sink.unmark(); // the command was sent before the capture
            return Ok(());
        };
        self.server.is_after_hole = false;
        // the replies to commands before this one were in the missing bytes
        while self
            .waiting
            .front()
            .is_some_and(|first| first.may_be_answered && first.key < command.key)
            && let Some(lost) = self.waiting.pop_front()
        {
            sink.exchange(lost.key).give_up();
        }
        let word = word.to_ascii_uppercase();
        let status = status_word(std::str::from_utf8(&word).unwrap_or_default());
        command.has_failed = status.error;
        command.count_reply(sink, bytes);
        sink.exchange(command.key).status(status);
        self.end_exchange(sink, &command)
    }

    /// Skips bytes of the server that are not in the capture.
    pub(super) fn skip_imap_server(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        missing: u64,
    ) -> Result<(), Leave> {
        if missing <= self.server.octets {
            self.server.octets -= missing;
            self.server.line.count(missing);
            self.count_pieces(sink);
            return Ok(());
        }
        if !self.server.line.is_new() && self.server.octets == 0 {
            // mostly cut by the snap length: the line ends in the missing bytes
            self.server.line.count(missing);
            self.read_response(sink).or_else(Leave::skip_cut_line)?;
        }
        self.waiting
            .iter_mut()
            .for_each(|waiting| waiting.may_be_answered = true);
        self.server.reset();
        sink.unmark();
        Ok(())
    }
}
