//! Messages with a header of `N` bytes that gives the length of the body. Finds where each message ends and keeps its
//! header and the beginning of its body. Reads one direction of any protocol.

#[derive(Debug)]
pub(super) struct LengthPrefixed<const N: usize> {
    header: [u8; N],
    /// Bytes of the header read so far.
    have: usize,
    /// Bytes of the body not read yet.
    remaining: u64,
    /// The beginning of the body.
    head: Vec<u8>,
    /// Upper bound on the length of `head`.
    max_head: usize,
    /// A hole lies in the beginning: later bytes do not continue `head`.
    has_hole: bool,
    /// The body's length.
    len: u64,
    /// The message was read to its end.
    is_whole: bool,
}

/// How far a message was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All bytes were taken, and the message goes on.
    Partly,
    /// The message is whole; the bytes that remain follow it.
    Whole,
    /// The bytes are not a header of this protocol.
    Wrong,
}

impl<const N: usize> Default for LengthPrefixed<N> {
    fn default() -> Self {
        LengthPrefixed {
            header: [0; N],
            have: 0,
            remaining: 0,
            head: Vec::new(),
            max_head: 0,
            has_hole: false,
            len: 0,
            is_whole: false,
        }
    }
}

impl<const N: usize> LengthPrefixed<N> {
    /// Takes bytes up to the message's end off the front of `bytes`. `measure` returns, from the header, the body's
    /// length and the upper bound on the bytes to keep of it; `None` for a header that cannot be one.
    pub(super) fn next(
        &mut self,
        bytes: &mut &[u8],
        measure: impl FnOnce(&[u8; N]) -> Option<(u64, usize)>,
    ) -> Progress {
        if std::mem::take(&mut self.is_whole) {
            (self.have, self.has_hole) = (0, false);
            self.head.clear();
        }
        if self.have < N {
            let (header_bytes, rest) = crate::cursor::split(bytes, N - self.have);
            if let Some(slots) = self.header.get_mut(self.have..self.have + header_bytes.len()) {
                slots.copy_from_slice(header_bytes);
            }
            self.have += header_bytes.len();
            *bytes = rest;
            if self.have < N {
                return Progress::Partly;
            }
            let Some((len, max_head)) = measure(&self.header) else {
                return Progress::Wrong;
            };
            (self.len, self.remaining, self.max_head) = (len, len, max_head);
        }
        let (body, rest) = crate::cursor::split_left(bytes, &mut self.remaining);
        let room = self.max_head.saturating_sub(self.head.len());
        if !self.has_hole {
            self.head.extend_from_slice(body.get(..room).unwrap_or(body));
        }
        *bytes = rest;
        self.progress()
    }

    /// Passes over a hole. `None` where the hole covers a part of this message's header, or of the next one's.
    pub(super) fn skip(&mut self, missing: u64) -> Option<Progress> {
        if !self.is_inside() || missing > self.remaining {
            return None;
        }
        self.has_hole |= self.head.len() < self.max_head;
        self.remaining -= missing;
        Some(self.progress())
    }

    fn progress(&mut self) -> Progress {
        self.is_whole = self.remaining == 0;
        if self.is_whole {
            Progress::Whole
        } else {
            Progress::Partly
        }
    }

    /// Whether the header was read, and the body not to its end.
    pub(super) fn is_inside(&self) -> bool {
        self.have == N && !self.is_whole
    }

    pub(super) fn header(&self) -> &[u8; N] {
        &self.header
    }

    /// The kept beginning of the body.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether the body is longer than its kept beginning.
    pub(super) fn is_cut(&self) -> bool {
        (self.head.len() as u64) < self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(header: &[u8; 2]) -> Option<(u64, usize)> {
        (header[0] == b'm').then_some((u64::from(header[1]), 3))
    }

    #[test]
    fn messages_end_where_they_say() {
        for size in 1..9 {
            let (mut prefixed, mut heads) = (LengthPrefixed::<2>::default(), Vec::new());
            for mut chunk in b"m\x05abcdem\0m\x01zx".chunks(size) {
                while !chunk.is_empty() {
                    match prefixed.next(&mut chunk, measure) {
                        Progress::Whole => heads.push((prefixed.head().to_vec(), prefixed.is_cut())),
                        Progress::Partly => {}
                        Progress::Wrong => heads.push((Vec::new(), true)),
                    }
                }
            }
            let mut all = vec![
                (b"abc".to_vec(), true),
                (Vec::new(), false),
                (b"z".to_vec(), false),
            ];
            if size > 11 {
                all.push((Vec::new(), true));
            }
            assert_eq!(heads, all, "in chunks of {size}");
        }
    }

    #[test]
    fn holes_inside_a_body_are_counted() {
        let mut prefixed = LengthPrefixed::<2>::default();
        assert_eq!(prefixed.skip(1), None, "before a header");
        assert_eq!(prefixed.next(&mut &b"m\x09a"[..], measure), Progress::Partly);
        assert_eq!(prefixed.skip(9), None, "over its end");
        assert_eq!(prefixed.skip(2), Some(Progress::Partly));
        assert_eq!(prefixed.next(&mut &b"xyz"[..], measure), Progress::Partly);
        assert_eq!((prefixed.head(), prefixed.is_cut()), (&b"a"[..], true));
        assert_eq!(prefixed.skip(3), Some(Progress::Whole));
        assert_eq!(prefixed.skip(0), None);
        assert_eq!(prefixed.next(&mut &b"x\x01"[..], measure), Progress::Wrong);
    }
}
