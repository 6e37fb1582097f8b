//! HTTP/2 frames (RFC 9113 4.1, 6). Reads one direction's bytes, gives frame headers and payloads however the bytes
//! are cut; knows which headers are legal, and nothing of streams.

use crate::cursor;

pub(super) const HEADER: usize = 9;
/// A payload may be as long as its receiver allows; nobody allows as much as this.
const MAX_PAYLOAD: u32 = 1 << 20;
/// Payloads are no longer than this until SETTINGS say otherwise (6.5.2).
const USUAL_PAYLOAD: u32 = 1 << 14;

/// Connections that were joined in the middle have had fewer streams: 2^20 leaves other protocols' fields out.
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

/// On DATA and HEADERS; the same bit is ACK on SETTINGS and PING.
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
    fn of(header: [u8; HEADER]) -> Frame {
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

    /// Whether a peer may send this: lengths and stream 0 are as RFC 9113 has them for the frame.
    fn is_legal(self) -> bool {
        let own = self.stream != 0;
        self.len <= MAX_PAYLOAD
            && match self.kind {
                DATA | CONTINUATION => own,
                HEADERS => own && self.len >= self.least(),
                PRIORITY => own && self.len == 5,
                RST_STREAM => own && self.len == 4,
                SETTINGS => !own && self.len.is_multiple_of(6) && (self.flags & 1 == 0 || self.len == 0),
                PUSH_PROMISE => own && self.len >= self.least() + 4,
                PING => !own && self.len == 8,
                GOAWAY => !own && self.len >= 8,
                WINDOW_UPDATE => self.len == 4,
                _ => true, // extensions are ignored (5.5)
            }
    }

    /// What padding and priority take before a block.
    fn least(self) -> u32 {
        u32::from(self.has(PADDED)) + 5 * u32::from(self.kind == HEADERS && self.has(WITH_PRIORITY))
    }

    /// What the payload of a header block's frame holds of the block, and which stream it promises; `None` where the
    /// padding does not fit.
    pub(super) fn fragment(self, payload: &[u8]) -> Option<(Option<u32>, &[u8])> {
        let mut rest = payload;
        if self.kind != CONTINUATION && self.has(PADDED) {
            let (padding, behind) = rest.split_first()?;
            rest = behind.get(..behind.len().checked_sub(usize::from(*padding))?)?;
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

    /// Stricter, where a frame need not begin here: no extension, no flag without a meaning, the usual
    /// length, and streams that are not pushed.
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

/// SETTINGS_INITIAL_WINDOW_SIZE (6.5.2) in the payload of a SETTINGS frame; the last one counts.
pub(super) fn initial_window(payload: &[u8]) -> Option<u32> {
    let settings = payload.as_chunks::<6>().0.iter();
    let mut values = settings.filter_map(|[high, low, value @ ..]| {
        (u16::from_be_bytes([*high, *low]) == 4).then_some(u32::from_be_bytes(*value))
    });
    values.next_back()
}

/// Whether bytes from the middle of a connection are frames: the first is as the RFC wants, and what follows it, if
/// anything is there, begins like another. `None` where they may be the beginning of a header.
pub(super) fn chain(bytes: &[u8]) -> Option<bool> {
    let begins = matches!(
        bytes,
        [] | [0] | [0, _] | [0, _, _] | [0, _, _, DATA..=CONTINUATION, ..]
    );
    match chained(bytes) {
        Some(0) if begins => None,
        Some(0) | None => Some(false),
        Some(_) => Some(true),
    }
}

/// Where frames begin for sure, if not with the first byte: where at least two follow each other.
pub(super) fn find(bytes: &[u8]) -> Option<usize> {
    if chain(bytes) == Some(true) {
        return Some(0);
    }
    let sure = |at: &usize| chained(cursor::from(bytes, *at)).is_some_and(|frames| frames >= 2);
    (1..bytes.len()).find(sure)
}

/// How many frames' headers stand in these bytes; `None` where something else does.
fn chained(mut bytes: &[u8]) -> Option<u32> {
    let mut frames = 0;
    while let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() {
        let frame = Frame::of(*header);
        // behind one that is sure, pushes and extensions may stand; the reserved bit is never set (4.1)
        let fits = frame.is_sure() || frames > 0 && frame.is_legal() && frame.len <= USUAL_PAYLOAD;
        if !fits || header.get(5).is_some_and(|byte| byte & 0x80 != 0) {
            return None;
        }
        frames += 1;
        bytes = cursor::from(rest, frame.len as usize);
    }
    // three bytes of a header are its length
    let over = bytes.first().is_some_and(|first| *first != 0);
    (frames == 0 || !over).then_some(frames)
}

/// Whether a server that speaks first begins like this: with its SETTINGS, which are short (3.4).
pub(super) fn greets(bytes: &[u8]) -> bool {
    let settings = [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0];
    let mut given = bytes.iter().take(HEADER).zip(settings).enumerate();
    given.all(|(place, (byte, wanted))| *byte == wanted || place == 2)
}

/// The static index of the first field, where bytes from the middle of a connection begin with a header block: 1 to 7
/// are of a request, 8 to 14 of an answer (RFC 7541 Appendix A).
pub(super) fn first_field(bytes: &[u8]) -> Option<u8> {
    let (header, payload) = bytes.split_first_chunk::<HEADER>()?;
    let frame = Frame::of(*header);
    if frame.kind != HEADERS || chain(bytes) != Some(true) {
        return None;
    }
    let at = usize::try_from(frame.least()).ok()?;
    let index = match cursor::u8_at(payload, at)? {
        indexed @ 0x80.. => indexed & 0x7f,
        inserted @ 0x40.. => inserted & 0x3f,
        0x20.. => return None,
        literal => literal & 0xf,
    };
    (1..=14).contains(&index).then_some(index)
}

/// One direction's place between frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER],
    have: usize,
    /// Bytes of the payload that are still to come.
    left: u32,
}

/// What stands next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// So many bytes were of a header that is not whole yet.
    Partly,
    /// A header, of which these bytes held the end.
    Header(Frame),
    /// A piece of its payload, and whether it is the last. A frame without a payload has none.
    Payload(&'a [u8], bool),
    /// No frame may begin like this.
    Wrong,
}

impl Frames {
    /// Takes the next part off the front of `bytes`, which are not empty.
    pub(super) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Part<'a> {
        if self.left > 0 {
            let (here, rest) = cursor::split(bytes, self.left as usize);
            *bytes = rest;
            self.left -= here.len() as u32;
            return Part::Payload(here, self.left == 0);
        }
        let (here, rest) = cursor::split(bytes, HEADER - self.have);
        let room = self.header.get_mut(self.have..self.have + here.len());
        if let Some(room) = room {
            room.copy_from_slice(here);
        }
        self.have += here.len();
        *bytes = rest;
        if self.have < HEADER {
            return Part::Partly;
        }
        self.have = 0;
        let frame = Frame::of(self.header);
        if !frame.is_legal() {
            return Part::Wrong;
        }
        self.left = frame.len;
        Part::Header(frame)
    }

    /// So many bytes are not in the capture: whether they all lie within the payload that is being read, and whether
    /// that ends with them.
    pub(super) fn skip(&mut self, missing: u64) -> Option<bool> {
        let left = u64::from(self.left).checked_sub(missing)?;
        (self.left > 0).then(|| {
            self.left = left as u32;
            left == 0
        })
    }

    /// Nothing of a frame has been read.
    pub(super) fn is_between(&self) -> bool {
        self.left == 0 && self.have == 0
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
                    Part::Payload(here, _) => input.last_mut().unwrap().1.extend_from_slice(here),
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
        for place in 0..all.len() {
            let (first, last) = all.split_at(place);
            assert_eq!(read(&[first, last]), whole, "cut at {place}");
            assert_ne!(chain(first), Some(false), "cut at {place}");
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
        assert_eq!(frames.skip(1), None);
        let all = frame(DATA, 0, 1, b"hello");
        let mut bytes = &all[..10];
        assert!(matches!(frames.next(&mut bytes), Part::Header(_)));
        assert_eq!(frames.next(&mut bytes), Part::Payload(b"h", false));
        assert_eq!(
            (frames.skip(3), frames.skip(2), frames.skip(1)),
            (Some(false), None, Some(true))
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
