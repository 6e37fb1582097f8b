//! Heads in several stretches, heads without their end, and holes.

use memchr::memchr;

use super::chunked::Step;
use super::head::{self, MethodKind, Start};
use super::lines::end_of_head;
use super::recognise::{VERSION, may_start};
use super::{Half, Http1, MAX_HEAD, MAX_SEARCHED, State, is_interim};
use crate::cursor;
use crate::messages::sink::Sink;
use crate::messages::{Listener, Side};

impl Http1 {
    /// Passes over a hole. The error is the length that is left of it, after `Lost` was noted.
    #[inline(never)]
    pub(super) fn skip_hole(&mut self, mut sink: Sink<'_, impl Listener>, missing: u64) -> Result<(), u64> {
        let half = &mut self.sides[sink.side()];
        if let State::StreamedLength(remaining) = half.state {
            (half.pieces, half.state) = (None, State::Length(remaining));
        }
        match &mut half.state {
            State::Length(remaining) | State::StreamedLength(remaining) => {
                let skipped = missing.min(*remaining);
                *remaining -= skipped;
                sink.piece(skipped);
                if *remaining == 0 {
                    half.state = State::Head;
                    sink.end();
                }
                if skipped < missing {
                    self.skip_hole(sink.lend(), missing - skipped)
                } else {
                    Ok(())
                }
            }
            State::UntilClose | State::Tunnel => {
                half.skip_pieces(missing);
                sink.piece(missing);
                Ok(())
            }
            State::Chunked(chunked) => match chunked.skip(missing) {
                Some(Step::All) => {
                    half.skip_pieces(missing);
                    sink.piece(missing);
                    Ok(())
                }
                Some(Step::Done(_)) => {
                    half.state = State::Head;
                    sink.piece(missing);
                    sink.end();
                    Ok(())
                }
                Some(Step::Wrong(_)) | None => {
                    sink.lost("a chunk's beginning is not in the capture");
                    Err(missing)
                }
            },
            State::Head => {
                self.lose_head(&mut sink);
                Err(missing)
            }
        }
    }

    /// Passes over the rest of a head, or over a whole one. The missing head was that of a request or a response.
    fn lose_head(&mut self, sink: &mut Sink<'_, impl Listener>) {
        let side = sink.side();
        let reason = match self.sides[side].head.is_empty() {
            true => "a head is not in the capture",
            false => "a head is not whole in the capture",
        };
        if !self.name_unfinished(sink, true) {
            match side {
                Side::Client => self.push_request(sink, MethodKind::Other),
                Side::Server => drop(self.pending.pop_front()),
            }
        }
        sink.lost(reason);
    }

    /// Reads a part of a head that is not whole in this stretch, or that cannot be parsed. Returns the bytes after it.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_part_of_head<'a>(
        &mut self,
        mut sink: Sink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], &'a [u8]> {
        let side = sink.side();
        let half = &mut self.sides[side];
        if half.head.is_empty()
            && let Some(cache) = &mut sink.memory().head_cache
        {
            half.head = std::mem::take(&mut cache.spare);
            if let Some(cut) = cache.cut(side, bytes) {
                half.has_line = cut.has_line;
                half.head.extend_from_slice(bytes);
                sink.count(bytes.len() as u64);
                return Ok(&[]);
            }
        }
        let end = end_of_head(&half.head, bytes);
        let room = MAX_HEAD.saturating_sub(half.head.len());
        let (taken, rest) = cursor::split(bytes, end.unwrap_or(bytes.len()).min(room));
        half.head.extend_from_slice(taken);
        sink.count(taken.len() as u64);
        if half.is_wrong(side, taken) {
            half.head = Vec::new();
            sink.lost("not an HTTP/1 start line");
            return Err(rest);
        }
        if end.is_some_and(|end| end <= room) {
            let head_bytes = std::mem::take(&mut half.head);
            half.has_line = false;
            if let Some(head) = head::parse(side, &head_bytes) {
                if side == Side::Server && self.searched < MAX_SEARCHED {
                    self.search_software(sink.lend(), &head_bytes);
                }
                return self.begin_message(&mut sink, &head, rest);
            }
            self.sides[side].head = head_bytes;
            self.name_unfinished(&mut sink, false);
            sink.lost("head cannot be read");
            return Err(rest);
        }
        if half.head.len() >= MAX_HEAD {
            self.name_unfinished(&mut sink, false);
            sink.lost("head is too long");
            return Err(rest);
        }
        Ok(rest)
    }

    /// Names the message of an incomplete head by its start line. Returns whether that was possible. `is_cut`: a hole
    /// follows the bytes, so the start line itself may be incomplete.
    #[cold]
    pub(super) fn name_unfinished(&mut self, sink: &mut Sink<'_, impl Listener>, is_cut: bool) -> bool {
        let side = sink.side();
        let half = &mut self.sides[side];
        if half.head.is_empty() {
            return false;
        }
        let (mut bytes, has_line) = (std::mem::take(&mut half.head), half.has_line);
        // taken out of the sink, so that the sink can be used while the start line is borrowed
        let mut cache = sink.memory().head_cache.take().unwrap_or_default();
        let read = || head::start_line(side, &bytes, is_cut);
        let is_named = if is_cut {
            self.name_by(sink, cache.or_read_cut(side, &bytes, has_line, read))
        } else {
            self.name_by(sink, read().as_ref())
        };
        bytes.clear();
        cache.spare = bytes;
        sink.memory().head_cache = Some(cache);
        is_named
    }

    fn name_by(&mut self, sink: &mut Sink<'_, impl Listener>, start: Option<&Start>) -> bool {
        match start {
            Some(Start::Request {
                method,
                target,
                host: _,
                kind,
            }) => {
                self.push_request(sink, *kind);
                sink.request(method, target);
            }
            Some(&Start::Response { status }) => {
                let is_interim = is_interim(status);
                if !is_interim {
                    self.pending.pop_front();
                }
                sink.response(status, is_interim);
            }
            None => return false,
        }
        true
    }
}

impl Half {
    /// Whether `head`, of which `new` are the newest bytes, cannot be a head of HTTP/1.
    fn is_wrong(&mut self, side: Side, new: &[u8]) -> bool {
        if side == Side::Server {
            let begin = self.head.get(..VERSION.len()).unwrap_or(&self.head);
            if !VERSION.starts_with(begin) {
                return true;
            }
        }
        if self.has_line {
            return false;
        }
        let Some(end) = memchr(b'\n', new) else {
            return false;
        };
        self.has_line = true;
        let line = cursor::upto(&self.head, self.head.len() - new.len() + end);
        !may_start(side, line.strip_suffix(b"\r").unwrap_or(line))
    }
}
