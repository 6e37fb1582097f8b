//! HTTP/2 frames (RFC 9113 4.1, 6) of one direction: a header of 9 bytes (length, type, flags, stream) and a payload.
//! Splits bytes into headers and payloads, and finds frames in mid-stream.

use crate::cursor;

/// Bytes of a frame's header.
pub(super) const HEADER: usize = 9;
/// Upper bound on a payload in bytes. Receivers may allow longer ones, but none does.
const MAX_PAYLOAD: u32 = 1 << 20;
/// Upper bound on a payload in mid-stream: the default of SETTINGS_MAX_FRAME_SIZE (6.5.2).
const USUAL_PAYLOAD: u32 = 1 << 14;
/// Upper bound on the stream of a frame in mid-stream, to reject other protocols' bytes.
const MAX_STREAM_ID: u32 = 1 << 20;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

/// Flag of DATA and HEADERS; on SETTINGS and PING this bit is ACK.
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const WITH_PRIORITY: u8 = 0x20;

/// A frame's header.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) len: u32,
}

impl Frame {
    fn new(header: [u8; HEADER]) -> Frame {
        let [high, middle, low, kind, flags, stream @ ..] = header;
        Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & (u32::MAX >> 1),
            len: u32::from_be_bytes([0, high, middle, low]),
        }
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether length and stream are allowed for the frame's type (section 6).
    fn is_legal(self) -> bool {
        let on_stream = self.stream != 0;
        self.len <= MAX_PAYLOAD
            && match self.kind {
                DATA | CONTINUATION => on_stream,
                HEADERS => on_stream && self.len >= self.prefix_len(),
                PRIORITY => on_stream && self.len == 5,
                RST_STREAM => on_stream && self.len == 4,
                SETTINGS => {
                    !on_stream && self.len.is_multiple_of(6) && (self.flags & 1 == 0 || self.len == 0)
                }
                PUSH_PROMISE => on_stream && self.len >= self.prefix_len() + 4,
                PING => !on_stream && self.len == 8,
                GOAWAY => !on_stream && self.len >= 8,
                WINDOW_UPDATE => self.len == 4,
                _ => true, // extensions are ignored (5.5)
            }
    }

    /// Bytes of padding length and priority before a header block.
    fn prefix_len(self) -> u32 {
        u32::from(self.has(PADDED)) + 5 * u32::from(self.kind == HEADERS && self.has(WITH_PRIORITY))
    }

    /// Returns the promised stream, if the frame has one, and the part of the header block in the payload. `None` if
    /// the padding is longer than the payload.
    pub(super) fn fragment(self, payload: &[u8]) -> Option<(Option<u32>, &[u8])> {
        let mut rest = payload;
        if self.kind != CONTINUATION && self.has(PADDED) {
            let (padding, after) = rest.split_first()?;
            rest = after.get(..after.len().checked_sub(usize::from(*padding))?)?;
        }
        if self.kind == HEADERS && self.has(WITH_PRIORITY) {
            rest = rest.get(5..)?;
        }
        if self.kind != PUSH_PROMISE {
            return Some((None, rest));
        }
        let (promised, rest) = rest.split_first_chunk()?;
        Some((Some(u32::from_be_bytes(*promised) & (u32::MAX >> 1)), rest))
    }

    /// A stricter check for mid-stream: no extension, no undefined flag, the usual length, and a stream of the client.
    fn is_sure(self) -> bool {
        let flags = match self.kind {
            DATA => END_STREAM | PADDED,
            HEADERS => END_STREAM | END_HEADERS | PADDED | WITH_PRIORITY,
            SETTINGS | PING => 1,
            PUSH_PROMISE => END_HEADERS | PADDED,
            CONTINUATION => END_HEADERS,
            PRIORITY | RST_STREAM | GOAWAY | WINDOW_UPDATE => 0,
            _ => return false,
        };
        self.is_legal()
            && self.len <= USUAL_PAYLOAD
            && self.flags & !flags == 0
            && (self.stream == 0 || !self.stream.is_multiple_of(2) && self.stream < MAX_STREAM_ID)
    }
}

/// Returns SETTINGS_INITIAL_WINDOW_SIZE (6.5.2) of a SETTINGS frame, the last one if there are several.
pub(super) fn initial_window(payload: &[u8]) -> Option<u32> {
    let settings = payload.as_chunks::<6>().0.iter();
    let mut values = settings.filter_map(|[high, low, value @ ..]| {
        (u16::from_be_bytes([*high, *low]) == 4).then_some(u32::from_be_bytes(*value))
    });
    values.next_back()
}

/// Whether bytes in mid-stream are consecutive frames. `None` where they may be the beginning of a header.
pub(super) fn chain(bytes: &[u8]) -> Option<bool> {
    let may_begin_header = matches!(
        bytes,
        [] | [0] | [0, _] | [0, _, _] | [0, _, _, DATA..=CONTINUATION, ..]
    );
    match chained(bytes) {
        Some(0) if may_begin_header => None,
        Some(0) | None => Some(false),
        Some(_) => Some(true),
    }
}

/// Returns the index of the first frame: 0 if the bytes are consecutive frames, else where at least two begin.
pub(super) fn find(bytes: &[u8]) -> Option<usize> {
    if chain(bytes) == Some(true) {
        return Some(0);
    }
    let begins_two = |at: &usize| chained(cursor::from(bytes, *at)).is_some_and(|frames| frames >= 2);
    (1..bytes.len()).find(begins_two)
}

/// Number of frame headers in bytes that are consecutive frames; `None` for other bytes.
fn chained(mut bytes: &[u8]) -> Option<u32> {
    let mut frames = 0;
    while let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() {
        let frame = Frame::new(*header);
        // after the first frame, pushes and extensions are accepted; the reserved bit is never set (4.1)
        let may_follow = frame.is_sure() || frames > 0 && frame.is_legal() && frame.len <= USUAL_PAYLOAD;
        if !may_follow || header.get(5).is_some_and(|byte| byte & 0x80 != 0) {
            return None;
        }
        frames += 1;
        bytes = cursor::from(rest, frame.len as usize);
    }
    // the rest begins with the first of three length bytes, which is 0 up to `USUAL_PAYLOAD`
    let is_too_long = bytes.first().is_some_and(|first| *first != 0);
    (frames == 0 || !is_too_long).then_some(frames)
}

/// Whether bytes begin with a short SETTINGS frame, the first of every server (3.4).
pub(super) fn greets(bytes: &[u8]) -> bool {
    let settings = [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0];
    let mut pairs = bytes.iter().take(HEADER).zip(settings).enumerate();
    pairs.all(|(offset, (byte, wanted))| *byte == wanted || offset == 2)
}

/// Returns the static table's index of the first field, if bytes in mid-stream begin with a header block: 1 to 7 are of
/// a request, 8 to 14 of an answer (RFC 7541 Appendix A).
pub(super) fn first_field(bytes: &[u8]) -> Option<u8> {
    let (header, payload) = bytes.split_first_chunk::<HEADER>()?;
    let frame = Frame::new(*header);
    if frame.kind != HEADERS || chain(bytes) != Some(true) {
        return None;
    }
    let at = usize::try_from(frame.prefix_len()).ok()?;
    let index = match cursor::u8_at(payload, at)? {
        indexed @ 0x80.. => indexed & 0x7f,
        inserted @ 0x40.. => inserted & 0x3f,
        0x20.. => return None,
        literal => literal & 0xf,
    };
    (1..=14).contains(&index).then_some(index)
}

/// Splits one direction into frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER],
    /// Bytes of the header read so far.
    have: usize,
    /// Bytes of the payload not read yet.
    remaining: u32,
}

/// The next part of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A part of a header that is not whole yet.
    Partly,
    /// The end of a header.
    Header(Frame),
    /// A piece of the payload, and whether it is the last. An empty payload has no piece.
    Payload(&'a [u8], bool),
    /// The header is not legal.
    Wrong,
}

impl Frames {
    /// Takes the next part off the front of `bytes`, which are not empty.
    pub(super) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Part<'a> {
        if self.remaining > 0 {
            let (payload, rest) = cursor::split(bytes, self.remaining as usize);
            *bytes = rest;
            self.remaining -= payload.len() as u32;
            return Part::Payload(payload, self.remaining == 0);
        }
        let (header_bytes, rest) = cursor::split(bytes, HEADER - self.have);
        let room = self.header.get_mut(self.have..self.have + header_bytes.len());
        if let Some(room) = room {
            room.copy_from_slice(header_bytes);
        }
        self.have += header_bytes.len();
        *bytes = rest;
        if self.have < HEADER {
            return Part::Partly;
        }
        self.have = 0;
        let frame = Frame::new(self.header);
        if !frame.is_legal() {
            return Part::Wrong;
        }
        self.remaining = frame.len;
        Part::Header(frame)
    }

    /// Passes over a hole in the payload that is being read. Returns false, and skips nothing, for any other hole.
    pub(super) fn skip(&mut self, missing: u64) -> bool {
        let is_within = self.remaining > 0 && missing <= u64::from(self.remaining);
        if is_within {
            self.remaining -= missing as u32;
        }
        is_within
    }

    /// Whether the next byte begins a frame.
    pub(super) fn is_between(&self) -> bool {
        self.remaining == 0 && self.have == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let len = (payload.len() as u32).to_be_bytes();
        [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    /// Headers and payloads, joined again.
    fn read(pieces: &[&[u8]]) -> (Vec<(Frame, Vec<u8>)>, bool) {
        let (mut frames, mut input) = (Frames::default(), Vec::<(Frame, Vec<u8>)>::new());
        for piece in pieces {
            let mut bytes = *piece;
            while !bytes.is_empty() {
                match frames.next(&mut bytes) {
                    Part::Header(frame) => input.push((frame, Vec::new())),
                    Part::Payload(payload, _) => input.last_mut().unwrap().1.extend_from_slice(payload),
                    Part::Partly => assert!(bytes.is_empty()),
                    Part::Wrong => return (input, false),
                }
            }
        }
        (input, true)
    }

    #[test]
    fn frames_are_the_same_however_they_are_cut() {
        let all = [
            frame(SETTINGS, 0, 0, &[0; 12]),
            frame(SETTINGS, 1, 0, &[]),
            frame(HEADERS, 5, 1, b"\x82\x84"),
            frame(DATA, 0, 1, b"hello"),
            frame(DATA, 1, 1, b""),
            frame(0x10, 0, 0, b"priority update"),
        ]
        .concat();
        let whole = read(&[&all]);
        assert_eq!((whole.0.len(), whole.1), (6, true));
        assert_eq!(whole.0[3].1, b"hello");
        assert_eq!(read(&all.chunks(1).collect::<Vec<_>>()), whole);
        for cut in 0..all.len() {
            let (first, last) = all.split_at(cut);
            assert_eq!(read(&[first, last]), whole, "cut at {cut}");
            assert_ne!(chain(first), Some(false), "cut at {cut}");
        }
    }

    #[test]
    fn no_peer_sends_these() {
        let wrong = [
            frame(DATA, 0, 0, b"x"),
            frame(HEADERS, PADDED | WITH_PRIORITY, 1, &[0; 5]),
            frame(SETTINGS, 0, 1, &[]),
            frame(SETTINGS, 0, 0, &[0; 5]),
            frame(SETTINGS, 1, 0, &[0; 6]),
            frame(PING, 0, 0, &[0; 7]),
            frame(WINDOW_UPDATE, 0, 0, &[0; 3]),
            frame(RST_STREAM, 0, 0, &[0; 4]),
            frame(GOAWAY, 0, 0, &[0; 7]),
            frame(PUSH_PROMISE, 0, 1, &[0; 3]),
            frame(DATA, 0, 1, &vec![0; MAX_PAYLOAD as usize + 1]),
            b"GET / HTTP/1.1\r\n".to_vec(),
        ];
        for bytes in wrong {
            assert!(!read(&[&bytes]).1, "{:x?}", &bytes[..HEADER]);
            assert_eq!(chain(&bytes), Some(false), "{:x?}", &bytes[..HEADER]);
        }
    }

    #[test]
    fn a_chain_is_stricter_than_a_frame() {
        let first = frame(HEADERS, 5, 3, b"\x82");
        assert_eq!(chain(&first), Some(true));
        assert_eq!(chain(&[&first[..], b"\0\0"].concat()), Some(true));
        assert_eq!(chain(&first[..8]), None);
        assert_eq!(chain(&[&first[..], b"GET / HTTP/1.1"].concat()), Some(false));
        assert_eq!(chain(&frame(HEADERS, 5, 2, b"\x82")), Some(false));
        assert_eq!(chain(&frame(0x10, 0, 0, b"")), Some(false));
        assert_eq!(chain(&frame(HEADERS, 0xff, 3, &[0; 9])), Some(false));
        assert_eq!(chain(&frame(DATA, 0, 3 | 1 << 31, b"x")), Some(false));
    }

    #[test]
    fn a_hole_is_passed_over_inside_a_payload_only() {
        let mut frames = Frames::default();
        assert!(!frames.skip(1));
        let all = frame(DATA, 0, 1, b"hello");
        let mut bytes = &all[..10];
        assert!(matches!(frames.next(&mut bytes), Part::Header(_)));
        assert_eq!(frames.next(&mut bytes), Part::Payload(b"h", false));
        assert_eq!(
            (frames.skip(3), frames.skip(2), frames.skip(1)),
            (true, false, true)
        );
        assert!(frames.is_between());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_the_same_however_they_are_cut(
            bytes in prop::collection::vec(prop_oneof![6 => 0..10u8, 1 => any::<u8>()], 0..200),
            size in 1..20usize,
        ) {
            prop_assert_eq!(read(&[&bytes]), read(&bytes.chunks(size).collect::<Vec<_>>()));
            chain(&bytes);
        }
    }
}
