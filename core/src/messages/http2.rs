//! HTTP/2 (RFC 9113) on plain TCP: after its preface, after an upgrade of HTTP/1, or joined in the middle. Reads both
//! sides' frames, gives each stream's request and answer by its number; refuses to know what a body means.
//!
//! A hole inside a payload is counted. Any other hole hides where the next frame begins: this side is then searched
//! for a chain of frames, its header table is unknown from there on, and the other side is read on.

mod calls;
mod fields;
mod frames;
mod hpack;
mod huffman;
mod statics;

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
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

/// What a client sends first (3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The longest header block, over all its frames. Nobody accepts more.
const MAX_BLOCK: usize = 64 << 10;
/// Of other payloads so much is kept: a GOAWAY's last stream, an error code, an increment.
const MAX_SMALL: usize = 8;
/// And of SETTINGS: there are six of them (6.5.2), of 6 bytes each, and few extensions.
const MAX_SETTINGS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Http2 {
    sides: BySide<Half>,
    /// The connection's beginning was read: the server's first frame begins with its first byte.
    whole: bool,
    calls: Calls,
}

/// One side.
#[derive(Debug, Default)]
struct Half {
    place: Phase,
    frames: Frames,
    /// The frame whose payload is being read.
    frame: Frame,
    /// Its payload up to here, where it has to be whole.
    held: Vec<u8>,
    /// Bytes of its data that are still to come; `None` before the length of the padding.
    data: Option<u32>,
    block: Option<Block>,
    decoder: Decoder,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing has been read.
    #[default]
    Start,
    /// So much of the preface has been read.
    Preface(usize),
    Frames,
    /// Where the next frame begins is not known.
    Searching,
}

/// A header block, which may take several frames (6.10).
#[derive(Debug, Default)]
struct Block {
    stream: u32,
    /// The stream that is promised.
    promised: Option<u32>,
    /// The block's message ends with it.
    last: bool,
    /// As on the wire, with the frames' headers.
    bytes: u64,
    fragments: Vec<u8>,
    /// Bytes of it are missing, or it is too long.
    lost: bool,
}

fn sniff(first: &FirstBytes<'_>) -> Guess {
    let input = first.input;
    let begun = PREFACE.get(..input.len()).unwrap_or(PREFACE);
    if first.side == Side::Client && input.starts_with(begun) {
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

/// Headers say which side they are of: only a request has a method, only an answer a status.
fn begins_message(side: Side, first: &[u8]) -> bool {
    match side {
        Side::Client => {
            first.starts_with(PREFACE) || frames::first_field(first).is_some_and(|index| index < 8)
        }
        Side::Server => frames::first_field(first).is_some_and(|index| index >= 8),
    }
}

impl MessageReader for Http2 {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        match stretch {
            Stretch::Bytes(bytes) => match self.bytes(&mut sink, bytes) {
                Ok(()) => Outcome::All,
                Err(rest) => Outcome::Lost(Stretch::Bytes(rest)),
            },
            Stretch::Missing(missing) => {
                self.missing(&mut sink, missing);
                Outcome::All
            }
        }
    }

    fn resume(&mut self, _side: Side, _inside: bool) {
        *self = Http2::default();
    }
}

impl Http2 {
    /// Behind a 101: the request with the upgrade is stream 1, answered here (RFC 7540 3.2).
    pub(super) fn upgraded() -> Box<Http2> {
        let mut reader = Http2 {
            whole: true,
            ..Http2::default()
        };
        reader.calls.adopted();
        Box::new(reader)
    }

    /// Reads bytes; the error is the rest that is no HTTP/2, after `Lost` has been written.
    fn bytes<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), &'a [u8]> {
        let side = sink.side();
        while !bytes.is_empty() {
            let whole = self.whole;
            let half = &mut self.sides[side];
            match half.place {
                Phase::Start => {
                    half.place = begins(side, whole, bytes);
                    if half.place == Phase::Searching {
                        half.decoder.forget();
                    }
                }
                Phase::Preface(have) => {
                    let (here, rest) = cursor::split(bytes, PREFACE.len() - have);
                    if !cursor::from(PREFACE, have).starts_with(here) {
                        sink.lost("not the preface of HTTP/2");
                        return Err(bytes);
                    }
                    bytes = rest;
                    let have = have + here.len();
                    half.place = if have < PREFACE.len() {
                        Phase::Preface(have)
                    } else {
                        Phase::Frames
                    };
                    self.whole = true;
                    if have == PREFACE.len() {
                        sink.flow(FlowEvent::Begins);
                    }
                }
                Phase::Searching => {
                    // a header that is cut in its beginning is held: TLS hands on a record's first byte alone
                    let held = std::mem::take(&mut half.held);
                    let joined = [&held, bytes].concat();
                    let Some(place) = frames::find(&joined) else {
                        if frames::chain(&joined).is_none() {
                            half.held = joined;
                            sink.mark();
                        } else {
                            sink.unmark();
                        }
                        return Ok(());
                    };
                    let mut first = cursor::from(&held, place);
                    while !first.is_empty() && half.frames.next(&mut first) == Part::Partly {}
                    bytes = cursor::from(bytes, place.saturating_sub(held.len()));
                    half.place = Phase::Frames;
                    if place >= held.len() {
                        sink.unmark();
                    }
                    sink.mark();
                }
                Phase::Frames => {
                    let here = bytes;
                    if half.frames.is_between() {
                        sink.mark();
                    }
                    let fits = match half.frames.next(&mut bytes) {
                        Part::Partly => true,
                        Part::Header(frame) => self.frame_begins(sink, frame),
                        Part::Payload(piece, last) => self.payload(sink, piece, last),
                        Part::Wrong => false,
                    };
                    if !fits {
                        sink.lost("not a frame of HTTP/2");
                        return Err(here);
                    }
                }
            }
        }
        Ok(())
    }

    /// A frame's header is read: whether it may stand here.
    fn frame_begins(&mut self, sink: &mut MessageSink<'_, impl Listener>, frame: Frame) -> bool {
        let side = sink.side();
        let half = &mut self.sides[side];
        half.frame = frame;
        half.held.clear();
        let goes_on = frame.kind == frames::CONTINUATION;
        match &half.block {
            Some(block) if !goes_on || block.stream != frame.stream => return false,
            // reading began inside a header block
            None if goes_on => {
                half.block = Some(Block {
                    stream: frame.stream,
                    lost: true,
                    ..Block::default()
                });
            }
            _ => {}
        }
        match frame.kind {
            frames::HEADERS | frames::PUSH_PROMISE | frames::CONTINUATION => {}
            frames::DATA => {
                half.data = (!frame.has(frames::PADDED)).then_some(frame.len);
                sink.unmark();
                let (stream, bytes) = (frame.stream, frame.len);
                sink.flow(FlowEvent::Sends { stream, bytes });
                self.calls.count(sink, frame.stream, frames::HEADER as u64);
            }
            _ => sink.unmark(),
        }
        frame.len > 0 || self.frame_ends(sink, &[])
    }

    /// A piece of the frame's payload, which may be its last: whether it may stand here.
    fn payload(&mut self, sink: &mut MessageSink<'_, impl Listener>, piece: &[u8], last: bool) -> bool {
        let half = &mut self.sides[sink.side()];
        let most = match half.frame.kind {
            frames::DATA => {
                let data = half.data_of(piece);
                let (stream, around) = (half.frame.stream, (piece.len() - data.len()) as u64);
                // only where the frame begins with these bytes, and holds no more
                let whole = last && piece.len() == half.frame.len as usize;
                self.calls.data(sink, stream, around, data, whole);
                return !last || self.frame_ends(sink, &[]);
            }
            frames::HEADERS | frames::PUSH_PROMISE | frames::CONTINUATION => MAX_BLOCK,
            frames::RST_STREAM | frames::GOAWAY | frames::WINDOW_UPDATE => MAX_SMALL,
            frames::SETTINGS => MAX_SETTINGS,
            _ => 0,
        };
        if last && half.held.is_empty() {
            return self.frame_ends(sink, piece);
        }
        let room = most.saturating_sub(half.held.len());
        half.held.extend_from_slice(cursor::upto(piece, room));
        if piece.len() > room
            && let Some(block) = &mut half.block
        {
            block.lost = true;
        }
        if !last {
            return true;
        }
        let held = std::mem::take(&mut half.held);
        self.frame_ends(sink, &held)
    }

    /// The frame is whole; of a payload that is not data, this is the beginning at least.
    fn frame_ends(&mut self, sink: &mut MessageSink<'_, impl Listener>, payload: &[u8]) -> bool {
        let half = &mut self.sides[sink.side()];
        let frame = half.frame;
        match frame.kind {
            frames::DATA => {
                let last = frame.has(frames::END_STREAM);
                sink.flow(FlowEvent::Sent { last });
                if last {
                    self.calls.ends(sink, frame.stream);
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
                return self.fragment(sink, frame, payload);
            }
            frames::RST_STREAM => self.calls.reset(sink, frame.stream),
            frames::GOAWAY => {
                let last = cursor::be32_at(payload, 0).unwrap_or(u32::MAX);
                self.calls.goes_away(sink, last & (u32::MAX >> 1));
            }
            _ => {}
        }
        true
    }

    /// A frame of a header block is whole: whether its padding fits.
    fn fragment(&mut self, sink: &mut MessageSink<'_, impl Listener>, frame: Frame, payload: &[u8]) -> bool {
        let half = &mut self.sides[sink.side()];
        let mut block = half.block.take().unwrap_or_else(|| Block {
            stream: frame.stream,
            last: frame.has(frames::END_STREAM),
            ..Block::default()
        });
        block.bytes += u64::from(frame.len) + frames::HEADER as u64;
        if block.fragments.len() + payload.len() > MAX_BLOCK || payload.len() < frame.len as usize {
            block.lost = true;
        }
        let fragment = if block.lost {
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
        if block.lost {
            half.decoder.forget();
        } else if half
            .decoder
            .block(text, |name, value| fields.hear(name, value))
            .is_err()
        {
            fields = Fields::default();
        }
        self.calls.headers(sink, &block, &fields);
        true
    }

    /// So many bytes are not in the capture.
    fn missing(&mut self, sink: &mut MessageSink<'_, impl Listener>, missing: u64) {
        let half = &mut self.sides[sink.side()];
        let frame = half.frame;
        let within = half.place == Phase::Frames && half.frames.skip(missing).is_some();
        if !within || half.data.is_none() && frame.kind == frames::DATA {
            // what was begun is of no use: its end, and what came behind it, may be in the hole
            sink.flow(FlowEvent::Lost);
            *half = Half {
                place: Phase::Searching,
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
                let data = u64::from(half.data.unwrap_or_default()).min(missing);
                half.data = half.data.map(|left| left - data as u32);
                self.calls.skip(sink, frame.stream, missing, data);
            }
            frames::HEADERS | frames::PUSH_PROMISE | frames::CONTINUATION => {
                let block = half.block.get_or_insert_with(|| Block {
                    stream: frame.stream,
                    last: frame.has(frames::END_STREAM),
                    ..Block::default()
                });
                block.lost = true;
            }
            _ => {}
        }
        if self.sides[sink.side()].frames.is_between() {
            self.frame_ends(sink, &[]);
        }
    }
}

/// Where a side's first bytes stand.
fn begins(side: Side, whole: bool, bytes: &[u8]) -> Phase {
    let prefix = cursor::upto(PREFACE, bytes.len());
    match side {
        Side::Client if bytes.starts_with(prefix) => Phase::Preface(0),
        Side::Server if whole || bytes.len() >= frames::HEADER && frames::greets(bytes) => Phase::Frames,
        _ => Phase::Searching,
    }
}

impl Half {
    /// What a piece of a DATA frame's payload holds of the data: the rest is padding (6.1).
    fn data_of<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let (left, piece) = match (self.data, piece.split_first()) {
            (Some(left), _) => (left, piece),
            (None, Some((padding, rest))) => (self.frame.len.saturating_sub(1 + u32::from(*padding)), rest),
            (None, None) => return &[],
        };
        let data = cursor::upto(piece, left as usize);
        self.data = Some(left - data.len() as u32);
        data
    }
}
