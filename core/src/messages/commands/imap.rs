//! The server's side of IMAP (RFC 9051 7): responses with literals, distinguished by the tag that they repeat. What has
//! no tag belongs to the oldest command that waits; where none does, and while IDLE waits, it is a push.

use super::answers::{greeted, status_word};
use super::verbs::{Does, is_tag};
use super::{Commands, Leave, MAX_LINE};
use crate::messages::Listener;
use crate::messages::sink::MessageSink;

impl Commands {
    /// Reads the server's bytes.
    pub(super) fn responses(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        bytes: &mut &[u8],
    ) -> Result<(), Leave> {
        while !bytes.is_empty() {
            let server = &mut self.server;
            if server.octets > 0 {
                let here = usize::try_from(server.octets)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                *bytes = bytes.get(here..).unwrap_or_default();
                server.octets -= here as u64;
                server.line.count(here as u64);
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
                self.response(sink)?;
            }
        }
        self.pieces(sink);
        Ok(())
    }

    /// What came of a response that goes on.
    fn pieces(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        if !self.server.line.text().starts_with(b"* ") {
            return;
        }
        if let Some(place) = self.owner()
            && let Some(owner) = self.waiting.get_mut(place)
        {
            owner.answer_bytes(sink, self.server.line.take_len());
        }
    }

    /// Whom untagged responses belong to.
    fn owner(&self) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.does != Does::Idle)
    }

    /// A response is whole.
    fn response(&mut self, sink: &mut MessageSink<'_, impl Listener>) -> Result<(), Leave> {
        self.pieces(sink);
        let line = std::mem::take(&mut self.server.line);
        if !line.is_text() {
            return Err(Leave::Lost("not a line of text"));
        }
        let mut words = line.text().split(|byte| *byte == b' ');
        let (tag, word) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match tag {
            b"*" => {
                if !std::mem::replace(&mut self.server.greeted, true) && self.next == 0 {
                    greeted(sink, line.text(), line.len());
                    return Ok(());
                }
                if self.owner().is_some() {
                    return Ok(()); // counted
                }
                let numbered = word.first().is_some_and(u8::is_ascii_digit);
                let name = if numbered {
                    words.next().unwrap_or_default()
                } else {
                    word
                };
                match std::str::from_utf8(name) {
                    Ok(name) if self.next > 0 && !self.client.holed && is_tag(name.as_bytes()) => {
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
                    if newest.does == Does::Rounds {
                        self.client.going = Some(newest.key);
                    }
                }
                Ok(())
            }
            tag if is_tag(tag) => self.tagged(sink, tag, word, line.len()),
            _ if self.server.holed => {
                sink.unmark();
                Ok(())
            }
            _ => Err(Leave::Lost("not an answer to a command")),
        }
    }

    fn tagged(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        tag: &[u8],
        word: &[u8],
        bytes: u64,
    ) -> Result<(), Leave> {
        let place = self
            .waiting
            .iter()
            .position(|waiting| waiting.tag.as_bytes() == tag);
        let Some(mut over) = place.and_then(|place| self.waiting.remove(place)) else {
            sink.unmark(); // of a command before the capture
            return Ok(());
        };
        self.server.holed = false;
        // those before it were answered in bytes that are missing
        while self
            .waiting
            .front()
            .is_some_and(|first| first.doubtful && first.key < over.key)
            && let Some(lost) = self.waiting.pop_front()
        {
            sink.exchange(lost.key).give_up();
        }
        let word = word.to_ascii_uppercase();
        let status = status_word(std::str::from_utf8(&word).unwrap_or_default());
        over.failed = status.error;
        over.answer_bytes(sink, bytes);
        sink.exchange(over.key).status(status);
        self.over(sink, &over)
    }

    /// Bytes of a response are not in the capture.
    pub(super) fn response_misses(&mut self, sink: &mut MessageSink<'_, impl Listener>, missing: u64) {
        if missing <= self.server.octets {
            self.server.octets -= missing;
            self.server.line.count(missing);
            return self.pieces(sink);
        }
        if !self.server.line.is_new() && self.server.octets == 0 {
            // cut by the snap length, mostly: the line ends in what is missing
            self.server.line.count(missing);
            let _ = self.response(sink);
        }
        self.waiting
            .iter_mut()
            .for_each(|waiting| waiting.doubtful = true);
        self.server.reset();
        sink.unmark();
    }
}
