//! Streamed bodies: each event or record is reported as a piece, not each packet.

use super::chunked::{Chunked, Step};
use super::{Half, State, http2};
use crate::cursor;
use crate::messages::Listener;
use crate::messages::pieces::BodySplitter;
use crate::messages::sink::Sink;

impl Half {
    /// Reads a part of the body. Returns the bytes after it; the error is the rest after a broken coding.
    #[cold]
    pub(super) fn read_streamed<'a>(
        &mut self,
        mut sink: Sink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<&'a [u8], &'a [u8]> {
        let (state, Some(pieces)) = (&mut self.state, &mut self.pieces) else {
            return Ok(bytes);
        };
        let chunked = match state {
            State::Chunked(chunked) => chunked,
            State::StreamedLength(remaining) => {
                let (body, rest) = cursor::split_left(bytes, remaining);
                let ends = *remaining == 0;
                report_pieces(&mut sink, pieces, body);
                if ends {
                    *self = Half::default();
                    sink.end();
                }
                return Ok(rest);
            }
            _ => {
                report_pieces(&mut sink, pieces, bytes);
                return Ok(&[]);
            }
        };
        while !bytes.is_empty() {
            let data = match *chunked {
                Chunked::Data(remaining) => usize::try_from(remaining).unwrap_or(usize::MAX),
                _ => 0,
            };
            let (chunk, rest) = cursor::split(bytes, data.clamp(1, bytes.len()));
            let step = chunked.read(chunk);
            if let Step::Wrong(reason) = step {
                sink.lost(reason);
                return Err(bytes);
            }
            bytes = rest;
            if data > 0 {
                report_pieces(&mut sink, pieces, chunk);
            } else {
                sink.count(chunk.len() as u64);
            }
            if let Step::Done(_) = step {
                *self = Half::default();
                sink.end();
                break;
            }
        }
        Ok(bytes)
    }

    /// Passes over a hole in the body. The splitter is dropped if it cannot find later pieces.
    pub(super) fn skip_pieces(&mut self, missing: u64) {
        if self.pieces.as_mut().is_some_and(|pieces| !pieces.skip(missing)) {
            self.pieces = None;
        }
    }
}

/// Counts bytes of the body, and reports the pieces that end in them.
fn report_pieces(sink: &mut Sink<'_, impl Listener>, pieces: &mut BodySplitter, mut bytes: &[u8]) {
    while let Some(piece) = pieces.next(&mut bytes) {
        sink.piece(piece.len() as u64);
        if pieces.is_later_message() {
            sink.mark_event_stream();
        }
    }
    sink.count(bytes.len() as u64);
    if let Some(code) = pieces.take_status() {
        sink.status(http2::grpc_status(code));
    }
}
