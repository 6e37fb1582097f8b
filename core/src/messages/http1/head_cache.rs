//! Heads that come again, byte for byte: a program asks for the same thing, a server answers the same for as long
//! as its `Date` stands. Comparing one with a head that was read before costs much less than reading it. The same
//! for heads that end in the middle, as all do where the snap length is short.

use super::head::{Head, Start};
use crate::messages::Side;

/// Heads kept, each in a place by its first bytes and its piece's length.
const PLACES: usize = 16;
/// Longer heads (cookies, mostly) are seldom the same, and are read each time.
const MAX_HEAD_BYTES: usize = 1024;

#[derive(Debug, Default)]
pub(in crate::messages) struct HeadCache {
    kept: [Kept; PLACES],
    /// The newest of those that are not kept.
    long: Option<Head>,
    cut: [Cut; PLACES],
    /// Room for the next head that comes in parts.
    pub(super) spare: Vec<u8>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    head: Option<(Side, Head)>,
}

/// All that was captured of a head: the beginning of one beyond doubt, but without its end.
#[derive(Debug, Default)]
pub(super) struct Cut {
    bytes: Vec<u8>,
    side: Option<Side>,
    /// Its start line is whole.
    pub(super) line: bool,
    /// Its parsed start line.
    start: Option<Start>,
}

impl HeadCache {
    /// `read` of these bytes, from the cache if they begin with a head that was read.
    #[inline(always)]
    pub(super) fn or_read(
        &mut self,
        side: Side,
        bytes: &[u8],
        read: impl FnOnce(Side, &[u8]) -> Option<Head>,
    ) -> Option<&Head> {
        let kept = self.kept.get_mut(place(side, bytes))?;
        let same = match &kept.head {
            Some((whose, _)) => *whose == side && bytes.starts_with(&kept.bytes),
            None => false,
        };
        if !same {
            if known_cut(&self.cut, side, bytes).is_some() {
                return None;
            }
            let head = read(side, bytes)?;
            if let Some(long) = kept.keep(side, bytes, head) {
                return Some(self.long.insert(long));
            }
        }
        kept.head.as_ref().map(|(_, head)| head)
    }

    /// What is known of these bytes, if a head ended with them before it was whole.
    #[inline(always)]
    pub(super) fn cut(&self, side: Side, bytes: &[u8]) -> Option<&Cut> {
        known_cut(&self.cut, side, bytes)
    }

    /// `read` of the start line of a head that ends with these bytes before it is whole.
    pub(super) fn or_read_cut(
        &mut self,
        side: Side,
        bytes: &[u8],
        line: bool,
        read: impl FnOnce() -> Option<Start>,
    ) -> Option<&Start> {
        let cut = self.cut.get_mut(place(side, bytes))?;
        if !cut.is(side, bytes) {
            cut.bytes.clear();
            cut.bytes.extend_from_slice(bytes);
            (cut.side, cut.line, cut.start) = (Some(side), line, read());
        }
        cut.start.as_ref()
    }
}

impl Cut {
    fn is(&self, side: Side, bytes: &[u8]) -> bool {
        self.side == Some(side) && self.bytes == bytes
    }
}

fn known_cut<'a>(known: &'a [Cut; PLACES], side: Side, bytes: &[u8]) -> Option<&'a Cut> {
    let cut = known.get(place(side, bytes))?;
    cut.is(side, bytes).then_some(cut)
}

impl Kept {
    /// Gives the head back if it is too long to be kept.
    #[cold]
    fn keep(&mut self, side: Side, bytes: &[u8], head: Head) -> Option<Head> {
        let input = bytes.get(..head.len).unwrap_or(bytes);
        if input.len() > MAX_HEAD_BYTES {
            return Some(head);
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(input);
        self.head = Some((side, head));
        None
    }
}

fn place(side: Side, bytes: &[u8]) -> usize {
    let first = bytes
        .first_chunk::<8>()
        .map_or(0, |first| u64::from_le_bytes(*first));
    let mixed = (first ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed as usize ^ side.index()) % PLACES
}

#[cfg(test)]
mod tests {
    use super::super::head::parse;
    use super::*;

    #[test]
    fn what_is_remembered_is_what_would_be_read() {
        let mut again = HeadCache::default();
        let heads: [&[u8]; 6] = [
            b"GET /a HTTP/1.1\r\n\r\n",
            b"GET /b HTTP/1.1\r\n\r\n",
            b"GET /a HTTP/1.1\r\n\r\nGET",
            b"GET /a HTTP/1.1\r\nA: b\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx",
        ];
        for _ in 0..3 {
            for bytes in heads {
                for side in [Side::Client, Side::Server] {
                    assert_eq!(again.or_read(side, bytes, parse), parse(side, bytes).as_ref());
                }
            }
        }
    }

    #[test]
    fn a_cut_head_is_known_by_all_its_bytes_and_its_side() {
        let mut again = HeadCache::default();
        let bytes = b"HTTP/1.1 200 OK\r\nDate: Mon";
        let start = Start::Response { status: 200 };
        for read in [Some(start.clone()), None] {
            let known = again.or_read_cut(Side::Server, bytes, true, || read);
            assert_eq!(known, Some(&start));
        }
        assert!(again.cut(Side::Server, bytes).is_some_and(|cut| cut.line));
        assert!(again.cut(Side::Client, bytes).is_none());
        assert!(again.cut(Side::Server, b"HTTP/1.1 200 OK\r\nDate: Mo").is_none());
        assert!(again.cut(Side::Server, b"HTTP/1.1 200 OK\r\nDate: Tue").is_none());
    }

    #[test]
    fn the_second_time_is_from_memory() {
        let mut again = HeadCache::default();
        let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let first = again.or_read(Side::Client, bytes, parse).cloned();
        let second = again.or_read(Side::Client, bytes, |_, _| None).cloned();
        assert!(first.is_some());
        assert_eq!(first, second);
        assert_eq!(again.or_read(Side::Server, bytes, |_, _| None), None);
    }
}
