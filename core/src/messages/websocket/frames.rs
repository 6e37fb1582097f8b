//! WebSocket frames (RFC 6455 5.2) of one direction: a header of 2 to 14 bytes (flags, opcode, length, mask) and a
//! payload. Splits bytes into headers and payloads, and recognises frames in mid-stream.

use crate::base::Side;
use crate::cursor;

/// Upper bound on a header in bytes: two, a length of eight, a mask of four.
const HEADER: usize = 14;
/// Upper bound on a payload in bytes, to reject other protocols' bytes in the place of a long length.
const MAX_PAYLOAD: u64 = 1 << 32;

pub(super) const CONTINUATION: u8 = 0;
pub(super) const TEXT: u8 = 1;
pub(super) const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
const PONG: u8 = 10;

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// The frame is the last of its message.
    pub(super) is_final: bool,
    /// RSV1: the message is compressed (RFC 7692).
    pub(super) is_compressed: bool,
    pub(super) opcode: u8,
    /// Length of the header in bytes.
    pub(super) header: u64,
    /// Length of the payload in bytes.
    pub(super) len: u64,
    mask: [u8; 4],
}

impl Frame {
    /// Whether this is a control frame, which may come between the frames of a message (5.4).
    pub(super) fn is_control(self) -> bool {
        self.opcode >= CLOSE
    }
}

/// Returns the length in bytes of a header that begins with these two bytes; `None` if no header does.
fn header_len(first: u8, second: u8) -> Option<usize> {
    let opcode = first & 0xf;
    let is_opcode = matches!(opcode, CONTINUATION | TEXT | BINARY | CLOSE..=PONG);
    // RSV2 and RSV3 have no meaning; control frames are short and whole
    let is_control = opcode >= CLOSE;
    let fits = !is_control || first & 0xc0 == 0x80 && second & 0x7f <= 125;
    let mask = usize::from(second & 0x80 != 0) * 4;
    (is_opcode && fits && first & 0x30 == 0).then_some(match second & 0x7f {
        126 => 4 + mask,
        127 => 10 + mask,
        _ => 2 + mask,
    })
}

/// Parses a whole header. `None` if `side` may not send it: the client masks, the server does not (5.1), and lengths
/// are in their shortest form.
fn frame(side: Side, header: &[u8]) -> Option<Frame> {
    let ([first, second], rest) = header.split_first_chunk::<2>()?;
    let is_masked = second & 0x80 != 0;
    let (len, rest, min_len) = match second & 0x7f {
        126 => {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            (u64::from(u16::from_be_bytes(*len)), rest, 126)
        }
        127 => {
            let (len, rest) = rest.split_first_chunk::<8>()?;
            (u64::from_be_bytes(*len), rest, 1 << 16)
        }
        short => (u64::from(short), rest, 0),
    };
    let mask = if is_masked {
        *rest.first_chunk::<4>()?
    } else {
        [0; 4]
    };
    let is_legal = is_masked == (side == Side::Client) && len >= min_len && len <= MAX_PAYLOAD;
    is_legal.then_some(Frame {
        is_final: first & 0x80 != 0,
        is_compressed: first & 0x40 != 0,
        opcode: first & 0xf,
        header: header.len() as u64,
        len,
        mask,
    })
}

/// How bytes in mid-stream fit frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    No,
    /// They fit, but the last frame is incomplete.
    Cut,
    /// They are whole frames.
    Whole,
}

/// How bytes fit frames of a side, the first of which begins a message or is a control frame.
pub(super) fn fit(side: Side, mut bytes: &[u8]) -> Fit {
    let mut fit = Fit::No;
    while let [first, second, ..] = *bytes {
        let header = header_len(first, second).and_then(|len| bytes.split_at_checked(len));
        let Some((frame, rest)) = header.and_then(|(header, rest)| Some((frame(side, header)?, rest))) else {
            return Fit::No;
        };
        if fit == Fit::No && frame.opcode == CONTINUATION {
            return Fit::No;
        }
        let Some(after) = usize::try_from(frame.len).ok().and_then(|len| rest.get(len..)) else {
            return Fit::Cut;
        };
        (fit, bytes) = (Fit::Whole, after);
    }
    if bytes.is_empty() { fit } else { Fit::No }
}

/// Whether bytes in mid-stream are whole frames.
pub(super) fn are_whole_frames(side: Side, bytes: &[u8]) -> bool {
    fit(side, bytes) == Fit::Whole
}

/// Splits one direction into frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER],
    /// Bytes of the header read so far.
    have: usize,
    /// Length of the header, once two bytes are read.
    need: usize,
    /// Bytes of the payload not read yet.
    remaining: u64,
    mask: [u8; 4],
    /// The payload's next byte is masked by `mask[mask_index % 4]`.
    mask_index: usize,
}

/// The next part of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A part of a header that is not whole yet.
    Partly,
    /// The end of a header.
    Header(Frame),
    /// A piece of the payload as on the wire, masked. An empty payload has no piece.
    Payload(&'a [u8]),
    /// The header is not one of this side.
    Wrong,
}

impl Frames {
    /// Takes the next part off the front of `bytes`, which are not empty.
    pub(super) fn next<'a>(&mut self, side: Side, bytes: &mut &'a [u8]) -> Part<'a> {
        if self.remaining > 0 {
            let (payload, rest) = cursor::split_left(bytes, &mut self.remaining);
            *bytes = rest;
            self.mask_index += payload.len();
            return Part::Payload(payload);
        }
        while let Some((byte, rest)) = bytes.split_first() {
            if let Some(slot) = self.header.get_mut(self.have) {
                *slot = *byte;
            }
            self.have += 1;
            *bytes = rest;
            let [first, second, ..] = self.header;
            if self.have == 2 {
                let Some(need) = header_len(first, second) else {
                    return Part::Wrong;
                };
                self.need = need;
            }
            if self.have >= 2 && self.have == self.need {
                return self.whole(side);
            }
        }
        Part::Partly
    }

    fn whole<'a>(&mut self, side: Side) -> Part<'a> {
        let header = self.header.get(..self.have).unwrap_or_default();
        let Some(frame) = frame(side, header) else {
            return Part::Wrong;
        };
        self.have = 0;
        (self.remaining, self.mask, self.mask_index) = (frame.len, frame.mask, 0);
        Part::Header(frame)
    }

    /// Unmasks the piece of the payload that `next` returned last.
    pub(super) fn unmasked(&self, piece: &[u8]) -> impl Iterator<Item = u8> {
        let first = self.mask_index - piece.len();
        let masks = self.mask.into_iter().cycle().skip(first % 4);
        piece.iter().zip(masks).map(|(byte, mask)| byte ^ mask)
    }

    /// Whether a frame was read in part.
    pub(super) fn is_inside(&self) -> bool {
        self.remaining > 0 || self.have > 0
    }

    /// Passes over a hole in the payload that is being read. Returns false, and skips nothing, for any other hole.
    pub(super) fn skip(&mut self, missing: u64) -> bool {
        let is_within = self.remaining > 0 && missing <= self.remaining;
        if is_within {
            self.remaining -= missing;
            self.mask_index += (missing % 4) as usize;
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Side::{Client as C, Server as S};
    use proptest::prelude::*;

    pub(crate) fn written(side: Side, first: u8, payload: &[u8]) -> Vec<u8> {
        let bit = if side == C { 0x80 } else { 0 };
        let mut out = vec![first];
        match payload.len() {
            len @ 0..=125 => out.push(bit | len as u8),
            len @ 126..=0xffff => {
                out.push(bit | 126);
                out.extend((len as u16).to_be_bytes());
            }
            len => {
                out.push(bit | 127);
                out.extend((len as u64).to_be_bytes());
            }
        }
        let mask = if side == C {
            [0x37, 0xfa, 0x21, 0x3d]
        } else {
            [0; 4]
        };
        out.extend(mask.iter().take(if side == C { 4 } else { 0 }));
        out.extend(
            payload
                .iter()
                .zip(mask.into_iter().cycle())
                .map(|(byte, mask)| byte ^ mask),
        );
        out
    }

    fn read(side: Side, pieces: &[&[u8]]) -> (Vec<(Frame, Vec<u8>)>, bool) {
        let (mut frames, mut input) = (Frames::default(), Vec::<(Frame, Vec<u8>)>::new());
        for piece in pieces {
            let mut bytes = *piece;
            while !bytes.is_empty() {
                match frames.next(side, &mut bytes) {
                    Part::Header(frame) => input.push((frame, Vec::new())),
                    Part::Payload(here) => input.last_mut().unwrap().1.extend(frames.unmasked(here)),
                    Part::Partly => assert!(bytes.is_empty()),
                    Part::Wrong => return (input, false),
                }
            }
        }
        (input, true)
    }

    #[test]
    fn frames_are_the_same_however_they_are_cut() {
        for side in [C, S] {
            let texts = [&b"Hello"[..], b"", &[b'x'; 300], &[b'y'; 70_000]];
            let all: Vec<u8> = texts.iter().flat_map(|text| written(side, 0x81, text)).collect();
            let whole = read(side, &[&all]);
            assert!(whole.1);
            assert!(whole.0.iter().map(|(_, text)| text).eq(texts));
            assert!(are_whole_frames(side, &all));
            for size in [1, 2, 3, 5, 100] {
                assert!(
                    read(side, &all.chunks(size).collect::<Vec<_>>()) == whole,
                    "in chunks of {size}"
                );
            }
        }
    }

    #[test]
    fn the_masked_hello_of_rfc_6455_5_7() {
        let bytes = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(read(C, &[&bytes]).0[0].1, b"Hello");
        assert!(!read(S, &[&bytes]).1, "servers do not mask");
    }

    #[test]
    fn no_peer_sends_these() {
        let wrong: [&[u8]; 6] = [
            b"\x83\x00",                   // an opcode that is not defined
            b"\x91\x00",                   // RSV3
            b"\x09\x00",                   // a ping in parts
            b"\x89\x7e\x00\x7e",           // a long ping
            b"\x81\x7e\x00\x05",           // a short length in two bytes
            b"\x81\x7f\xff\0\0\0\0\0\0\0", // longer than any
        ];
        for bytes in wrong {
            assert!(!read(S, &[bytes]).1, "{bytes:x?}");
            assert!(!are_whole_frames(S, bytes), "{bytes:x?}");
        }
    }

    #[test]
    fn what_does_not_begin_a_message_is_no_beginning() {
        assert!(!are_whole_frames(S, &written(S, 0x80, b"the end of one")));
        assert!(!are_whole_frames(S, b"\x81"));
        assert!(!are_whole_frames(S, b"HTTP/1.1 200 OK\r\n"));
        assert!(are_whole_frames(
            S,
            &[written(S, 0x81, b"Hello"), written(S, 0x89, b"")].concat()
        ));
        assert!(!are_whole_frames(
            S,
            &[&written(S, 0x81, b"Hello")[..], b"\x81"].concat()
        ));
        assert!(!are_whole_frames(
            S,
            &[&written(S, 0x81, b"Hello")[..], b"no frame"].concat()
        ));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_the_same_however_they_are_cut(
            bytes in prop::collection::vec(prop_oneof![3 => 0x80..0x83u8, 1 => 0..3u8, 1 => any::<u8>()], 0..100),
            size in 1..20usize,
        ) {
            for side in [C, S] {
                prop_assert_eq!(read(side, &[&bytes]), read(side, &bytes.chunks(size).collect::<Vec<_>>()));
                are_whole_frames(side, &bytes);
            }
        }
    }
}
