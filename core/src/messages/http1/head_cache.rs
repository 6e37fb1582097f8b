//! A cache of parsed heads. Programs repeat requests byte for byte, and a server's response heads are equal within one
//! second of its `Date`. A comparison costs much less than parsing. Incomplete heads, as a short snap length makes
//! them, are cached by all their bytes.

use super::head::{Head, Start};
use crate::messages::Side;

/// Slots of the cache. The slot of a head depends on its first bytes and the length of its stretch.
const SLOTS: usize = 16;
/// Upper bound on a cached head in bytes. Longer heads (mostly with cookies) are seldom equal.
const MAX_HEAD_BYTES: usize = 1024;

#[derive(Debug, Default)]
pub(in crate::messages) struct HeadCache {
    kept: [Kept; SLOTS],
    /// The newest head that is too long for a slot.
    long: Option<Head>,
    cut: [Cut; SLOTS],
    /// A buffer for the next head in several stretches, reused.
    pub(super) spare: Vec<u8>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    head: Option<(Side, Head)>,
}

/// A head whose end is not in the capture.
#[derive(Debug, Default)]
pub(super) struct Cut {
    bytes: Vec<u8>,
    side: Option<Side>,
    /// Its start line is whole.
    pub(super) has_line: bool,
    /// Its parsed start line.
    start: Option<Start>,
}

impl HeadCache {
    /// Returns the head at the beginning of `bytes`: from the cache, else by `read`.
    #[inline(always)]
    pub(super) fn or_read(
        &mut self,
        side: Side,
        bytes: &[u8],
        read: impl FnOnce(Side, &[u8]) -> Option<Head>,
    ) -> Option<&Head> {
        let kept = self.kept.get_mut(slot(side, bytes))?;
        let is_cached = match &kept.head {
            Some((whose, _)) => *whose == side && bytes.starts_with(&kept.bytes),
            None => false,
        };
        if !is_cached {
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

    /// Returns the incomplete head that is exactly these bytes, if it is cached.
    #[inline(always)]
    pub(super) fn cut(&self, side: Side, bytes: &[u8]) -> Option<&Cut> {
        known_cut(&self.cut, side, bytes)
    }

    /// Returns the start line of an incomplete head: from the cache, else by `read`.
    pub(super) fn or_read_cut(
        &mut self,
        side: Side,
        bytes: &[u8],
        has_line: bool,
        read: impl FnOnce() -> Option<Start>,
    ) -> Option<&Start> {
        let cut = self.cut.get_mut(slot(side, bytes))?;
        if !cut.is_head(side, bytes) {
            cut.bytes.clear();
            cut.bytes.extend_from_slice(bytes);
            (cut.side, cut.has_line, cut.start) = (Some(side), has_line, read());
        }
        cut.start.as_ref()
    }
}

impl Cut {
    fn is_head(&self, side: Side, bytes: &[u8]) -> bool {
        self.side == Some(side) && self.bytes == bytes
    }
}

fn known_cut<'a>(cuts: &'a [Cut; SLOTS], side: Side, bytes: &[u8]) -> Option<&'a Cut> {
    let cut = cuts.get(slot(side, bytes))?;
    cut.is_head(side, bytes).then_some(cut)
}

impl Kept {
    /// Stores the head, or returns it if it is too long.
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

fn slot(side: Side, bytes: &[u8]) -> usize {
    let first = bytes
        .first_chunk::<8>()
        .map_or(0, |first| u64::from_le_bytes(*first));
    let mixed = (first ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed as usize ^ side.index()) % SLOTS
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
                for side in Side::BOTH {
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
        assert!(again.cut(Side::Server, bytes).is_some_and(|cut| cut.has_line));
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
