//! HTTP/2 (RFC 9113): after its preface, after an upgrade of HTTP/1, or in mid-stream. Frames with a header of 9 bytes
//! carry header blocks and data of numbered streams. Each stream is an exchange, with its number as the key.
//!
//! A hole inside a payload is counted. After any other hole it is not known where the next frame begins: this side is
//! then searched for consecutive frames, and the entries of its header table before the hole are unknown.

mod calls;
mod fields;
mod frames;
mod hpack;
mod huffman;
mod statics;

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, FirstBytes, FlowEvent, Guess, Listener, MessageReader, Outcome, Side, Stretch};
use crate::cursor;
use calls::Calls;
use fields::Fields;
pub(super) use fields::grpc_status;
use frames::{Frame, Frames, Part};
use hpack::Decoder;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Http2,
    sniff,
    begins_message,
    begins_inside_turn: |side, first| {
        side == Side::Client && first.starts_with(PREFACE) || frames::chain(first) == Some(true)
    },
    takes_over_turn: |side, first| side == Side::Client && first.starts_with(PREFACE),
    reader: |_| AnyReader::Http2(Box::default()),
};

/// The first bytes of a client (3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Upper bound on a header block over all its frames. No server accepts larger ones.
const MAX_BLOCK: usize = 64 << 10;
/// Upper bound on the bytes kept of RST_STREAM, GOAWAY and WINDOW_UPDATE: a stream, an error code, an increment.
const MAX_SMALL: usize = 8;
/// Upper bound on the bytes kept of SETTINGS: six settings of 6 bytes (6.5.2), and a few extensions.
const MAX_SETTINGS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Http2 {
    sides: BySide<Half>,
    /// The connection's beginning was read, so the server's first byte begins a frame.
    from_beginning: bool,
    calls: Calls,
}

/// Per-direction state.
#[derive(Debug, Default)]
struct Half {
    phase: Phase,
    frames: Frames,
    /// The frame whose payload is being read.
    frame: Frame,
    /// The payload so far, for types that are interpreted as a whole. While searching, a possible frame header.
    unread: Vec<u8>,
    /// Bytes left of the data in a DATA frame, without padding; `None` before the padding's length.
    data_left: Option<u32>,
    block: Option<Block>,
    decoder: Decoder,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was read.
    #[default]
    Start,
    /// In the preface, after this many bytes.
    Preface(usize),
    Frames,
    /// It is not known where the next frame begins.
    Searching,
}

/// A header block, which may take several frames (6.10).
#[derive(Debug, Default)]
struct Block {
    stream: u32,
    /// The stream that a PUSH_PROMISE announces.
    promised: Option<u32>,
    /// END_STREAM: the message ends with this block.
    is_last: bool,
    /// Bytes on the wire, with the frames' headers.
    bytes: u64,
    fragments: Vec<u8>,
    /// It cannot be decoded, because of a hole or its length.
    is_lost: bool,
}

fn sniff(first: &FirstBytes<'_>) -> Guess {
    let input = first.input;
    let prefix = PREFACE.get(..input.len()).unwrap_or(PREFACE);
    if first.side == Side::Client && input.starts_with(prefix) {
        return if input.len() < PREFACE.len() {
            Guess::More
        } else {
            Guess::Yes
        };
    }
    match frames::chain(input) {
        Some(true) => Guess::Yes,
        Some(false) => Guess::No,
        None => Guess::More,
    }
}

/// Whether a turn begins with the preface or a header block of its side: of the fields in the static table, `:method`
/// and others of a request have indices below 8, `:status` the next ones.
fn begins_message(side: Side, first: &[u8]) -> bool {
    match side {
        Side::Client => {
            first.starts_with(PREFACE) || frames::first_field(first).is_some_and(|index| index < 8)
        }
        Side::Server => frames::first_field(first).is_some_and(|index| index >= 8),
    }
}

impl MessageReader for Http2 {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        match stretch {
            Stretch::Bytes(bytes) => match self.read_bytes(&mut sink, bytes) {
                Ok(()) => Outcome::All,
                Err(rest) => Outcome::Lost(Stretch::Bytes(rest)),
            },
            Stretch::Missing(missing) => {
                self.skip_hole(&mut sink, missing);
                Outcome::All
            }
        }
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        *self = Http2::default();
    }
}

impl Http2 {
    /// The reader after a 101. It answers the request of HTTP/1 as stream 1 (RFC 7540 3.2).
    pub(super) fn upgraded() -> Box<Http2> {
        let mut reader = Http2 {
            from_beginning: true,
            ..Http2::default()
        };
        reader.calls.open_upgraded();
        Box::new(reader)
    }

    /// Reads bytes. The error is the rest that is not HTTP/2, after `Lost` was noted.
    fn read_bytes<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), &'a [u8]> {
        let side = sink.side();
        while !bytes.is_empty() {
            let from_beginning = self.from_beginning;
            let half = &mut self.sides[side];
            match half.phase {
                Phase::Start => {
                    half.phase = first_phase(side, from_beginning, bytes);
                    if half.phase == Phase::Searching {
                        half.decoder.forget();
                    }
                }
                Phase::Preface(have) => {
                    if !self.read_preface(sink, have, &mut bytes) {
                        sink.lost("not the preface of HTTP/2");
                        return Err(bytes);
                    }
                }
                Phase::Searching => {
                    if !half.search(sink, &mut bytes) {
                        return Ok(());
                    }
                }
                Phase::Frames => {
                    let unread = bytes;
                    if half.frames.is_between() {
                        sink.mark();
                    }
                    let is_legal = match half.frames.next(&mut bytes) {
                        Part::Partly => true,
                        Part::Header(frame) => self.begin_frame(sink, frame),
                        Part::Payload(piece, last) => self.read_payload(sink, piece, last),
                        Part::Wrong => false,
                    };
                    if !is_legal {
                        sink.lost("not a frame of HTTP/2");
                        return Err(unread);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads on in the preface, after its first `have` bytes. Returns false if these bytes are not of it.
    fn read_preface(&mut self, sink: &mut Sink<'_, impl Listener>, have: usize, bytes: &mut &[u8]) -> bool {
        let (preface_bytes, rest) = cursor::split(bytes, PREFACE.len() - have);
        if !cursor::from(PREFACE, have).starts_with(preface_bytes) {
            return false;
        }
        *bytes = rest;
        self.from_beginning = true;
        let have = have + preface_bytes.len();
        let is_whole = have == PREFACE.len();
        self.sides[sink.side()].phase = if is_whole {
            Phase::Frames
        } else {
            Phase::Preface(have)
        };
        if is_whole {
            sink.flow(FlowEvent::Begins);
        }
        true
    }

    /// Takes a frame's header. Returns false if the frame is not allowed after the frames before it.
    fn begin_frame(&mut self, sink: &mut Sink<'_, impl Listener>, frame: Frame) -> bool {
        let side = sink.side();
        let half = &mut self.sides[side];
        half.frame = frame;
        half.unread.clear();
        let continues = frame.kind == frames::CONTINUATION;
        match &half.block {
            Some(block) if !continues || block.stream != frame.stream => return false,
            // reading began inside a header block
            None if continues => {
                half.block = Some(Block {
                    stream: frame.stream,
                    is_lost: true,
                    ..Block::default()
                });
            }
            _ => {}
        }
        match frame.kind {
            frames::HEADERS | frames::PUSH_PROMISE | frames::CONTINUATION => {}
            frames::DATA => {
                half.data_left = (!frame.has(frames::PADDED)).then_some(frame.len);
                sink.unmark();
                let (stream, bytes) = (frame.stream, frame.len);
                sink.flow(FlowEvent::Sends { stream, bytes });
                self.calls.count(sink, frame.stream, frames::HEADER as u64);
            }
            _ => sink.unmark(),
        }
        frame.len > 0 || self.end_frame(sink, &[])
    }

    /// Takes a piece of the frame's payload. Returns false if the frame is not valid.
    fn read_payload(&mut self, sink: &mut Sink<'_, impl Listener>, piece: &[u8], is_last: bool) -> bool {
        let half = &mut self.sides[sink.side()];
        let max_kept = match half.frame.kind {
            frames::DATA => {
                let data = half.data_of(piece);
                let (stream, around) = (half.frame.stream, (piece.len() - data.len()) as u64);
                let is_whole = is_last && piece.len() == half.frame.len as usize;
                self.calls.read_data(sink, stream, around, data, is_whole);
                return !is_last || self.end_frame(sink, &[]);
            }
            frames::HEADERS | frames::PUSH_PROMISE | frames::CONTINUATION => MAX_BLOCK,
            frames::RST_STREAM | frames::GOAWAY | frames::WINDOW_UPDATE => MAX_SMALL,
            frames::SETTINGS => MAX_SETTINGS,
            _ => 0,
        };
        if is_last && half.unread.is_empty() {
            return self.end_frame(sink, piece);
        }
        let room = max_kept.saturating_sub(half.unread.len());
        half.unread.extend_from_slice(cursor::upto(piece, room));
        if piece.len() > room
            && let Some(block) = &mut half.block
        {
            block.is_lost = true;
        }
        if !is_last {
            return true;
        }
        let unread = std::mem::take(&mut half.unread);
        self.end_frame(sink, &unread)
    }

    /// Interprets a whole frame. `payload` is empty for DATA, and may be cut off for types that are not interpreted.
    fn end_frame(&mut self, sink: &mut Sink<'_, impl Listener>, payload: &[u8]) -> bool {
        let half = &mut self.sides[sink.side()];
        let frame = half.frame;
        match frame.kind {
            frames::DATA => {
                let last = frame.has(frames::END_STREAM);
                sink.flow(FlowEvent::Sent { last });
                if last {
                    self.calls.end_side(sink, frame.stream);
                }
            }
            frames::WINDOW_UPDATE => {
                if let Some(bytes) = cursor::be32_at(payload, 0) {
                    let (stream, bytes) = (frame.stream, bytes & (u32::MAX >> 1));
                    sink.flow(FlowEvent::Grants { stream, bytes });
                }
            }
            frames::SETTINGS => {
                if let Some(bytes) = frames::initial_window(payload) {
                    sink.flow(FlowEvent::Initial(bytes));
                }
            }
            frames::HEADERS | frames::PUSH_PROMISE | frames::CONTINUATION => {
                return self.read_fragment(sink, frame, payload);
            }
            frames::RST_STREAM => self.calls.reset(sink, frame.stream),
            frames::GOAWAY => {
                let last = cursor::be32_at(payload, 0).unwrap_or(u32::MAX);
                self.calls.reset_beyond(sink, last & (u32::MAX >> 1));
            }
            _ => {}
        }
        true
    }

    /// Takes a whole frame of a header block, and decodes the block with its last one. Returns false if the padding is
    /// longer than the frame.
    fn read_fragment(&mut self, sink: &mut Sink<'_, impl Listener>, frame: Frame, payload: &[u8]) -> bool {
        let half = &mut self.sides[sink.side()];
        let mut block = half.block.take().unwrap_or_else(|| Block {
            stream: frame.stream,
            is_last: frame.has(frames::END_STREAM),
            ..Block::default()
        });
        block.bytes += u64::from(frame.len) + frames::HEADER as u64;
        if block.fragments.len() + payload.len() > MAX_BLOCK || payload.len() < frame.len as usize {
            block.is_lost = true;
        }
        let fragment = if block.is_lost {
            &[]
        } else {
            let Some((promised, fragment)) = frame.fragment(payload) else {
                return false;
            };
            block.promised = block.promised.or(promised);
            fragment
        };
        if !frame.has(frames::END_HEADERS) {
            block.fragments.extend_from_slice(fragment);
            half.block = Some(block);
            return true;
        }
        let joined;
        let text = if block.fragments.is_empty() {
            fragment
        } else {
            joined = [&block.fragments, fragment].concat();
            &joined
        };
        let mut fields = Fields::default();
        if block.is_lost {
            half.decoder.forget();
        } else if half
            .decoder
            .block(text, |name, value| fields.add(name, value))
            .is_err()
        {
            fields = Fields::default();
        }
        self.calls.read_headers(sink, &block, &fields);
        true
    }

    /// Passes over a hole.
    fn skip_hole(&mut self, sink: &mut Sink<'_, impl Listener>, missing: u64) {
        let half = &mut self.sides[sink.side()];
        let frame = half.frame;
        let is_within = half.phase == Phase::Frames && half.frames.skip(missing);
        if !is_within || half.data_left.is_none() && frame.kind == frames::DATA {
            // the hole may hide the end of the frame or block, and others after it
            sink.flow(FlowEvent::Lost);
            *half = Half {
                phase: Phase::Searching,
                ..Half::default()
            };
            half.decoder.forget();
            sink.unmark();
            if sink.side() == Side::Client {
                self.calls.lost();
            }
            return;
        }
        match frame.kind {
            frames::DATA => {
                let data = u64::from(half.data_left.unwrap_or_default()).min(missing);
                half.data_left = half.data_left.map(|remaining| remaining - data as u32);
                self.calls.skip(sink, frame.stream, missing, data);
            }
            frames::HEADERS | frames::PUSH_PROMISE | frames::CONTINUATION => {
                let block = half.block.get_or_insert_with(|| Block {
                    stream: frame.stream,
                    is_last: frame.has(frames::END_STREAM),
                    ..Block::default()
                });
                block.is_lost = true;
            }
            _ => {}
        }
        if self.sides[sink.side()].frames.is_between() {
            self.end_frame(sink, &[]);
        }
    }
}

/// The phase of a side whose first bytes these are.
fn first_phase(side: Side, from_beginning: bool, bytes: &[u8]) -> Phase {
    let prefix = cursor::upto(PREFACE, bytes.len());
    match side {
        Side::Client if bytes.starts_with(prefix) => Phase::Preface(0),
        Side::Server if from_beginning || bytes.len() >= frames::HEADER && frames::greets(bytes) => {
            Phase::Frames
        }
        _ => Phase::Searching,
    }
}

impl Half {
    /// Searches for a frame's header, and moves `bytes` to it. Returns false if there is none so far.
    fn search(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: &mut &[u8]) -> bool {
        // bytes that may begin a header are held: of a TLS record, the first byte is fed by itself
        let unread = std::mem::take(&mut self.unread);
        let joined = [&unread, *bytes].concat();
        let Some(header_at) = frames::find(&joined) else {
            if frames::chain(&joined).is_none() {
                self.unread = joined;
                sink.mark();
            } else {
                sink.unmark();
            }
            return false;
        };
        let mut first = cursor::from(&unread, header_at);
        while !first.is_empty() && self.frames.next(&mut first) == Part::Partly {}
        *bytes = cursor::from(bytes, header_at.saturating_sub(unread.len()));
        self.phase = Phase::Frames;
        if header_at >= unread.len() {
            sink.unmark();
        }
        sink.mark();
        true
    }

    /// Returns the data in a piece of a DATA frame's payload, without padding and its length (6.1).
    fn data_of<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let (remaining, piece) = match (self.data_left, piece.split_first()) {
            (Some(remaining), _) => (remaining, piece),
            (None, Some((padding, rest))) => (self.frame.len.saturating_sub(1 + u32::from(*padding)), rest),
            (None, None) => return &[],
        };
        let data = cursor::upto(piece, remaining as usize);
        self.data_left = Some(remaining - data.len() as u32);
        data
    }
}
