//! Messages behind a header of a fixed size with their length: where each ends, its header, and as much of its
//! body as is wanted. Reads one side, counts what it does not keep; knows no protocol.

#[derive(Debug)]
pub(super) struct LengthPrefixed<const N: usize> {
    header: [u8; N],
    have: usize,
    /// Bytes of the body that are still to come.
    left: u64,
    /// As much of the body as is wanted, and how much that is.
    head: Vec<u8>,
    room: usize,
    /// Part of what is wanted is not in the capture.
    torn: bool,
    /// The body's length.
    len: u64,
    /// The next byte begins another message.
    over: bool,
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All bytes are read, and it goes on.
    Partly,
    /// It is whole; what is left is behind it.
    Whole,
    /// Its header is none.
    Wrong,
}

impl<const N: usize> Default for LengthPrefixed<N> {
    fn default() -> Self {
        LengthPrefixed {
            header: [0; N],
            have: 0,
            left: 0,
            head: Vec::new(),
            room: 0,
            torn: false,
            len: 0,
            over: false,
        }
    }
}

impl<const N: usize> LengthPrefixed<N> {
    /// Reads on up to the message's end. `measure` gives the body's length and how much of it is wanted.
    pub(super) fn next(
        &mut self,
        bytes: &mut &[u8],
        measure: impl FnOnce(&[u8; N]) -> Option<(u64, usize)>,
    ) -> Progress {
        if std::mem::take(&mut self.over) {
            (self.have, self.torn) = (0, false);
            self.head.clear();
        }
        if self.have < N {
            let (part, rest) = crate::cursor::split(bytes, N - self.have);
            if let Some(slots) = self.header.get_mut(self.have..self.have + part.len()) {
                slots.copy_from_slice(part);
            }
            self.have += part.len();
            *bytes = rest;
            if self.have < N {
                return Progress::Partly;
            }
            let Some((len, room)) = measure(&self.header) else {
                return Progress::Wrong;
            };
            (self.len, self.left, self.room) = (len, len, room);
        }
        let here = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let (part, rest) = crate::cursor::split(bytes, here);
        let wanted = self.room.saturating_sub(self.head.len());
        if !self.torn {
            self.head.extend_from_slice(part.get(..wanted).unwrap_or(part));
        }
        self.left -= here as u64;
        *bytes = rest;
        self.come()
    }

    /// So many bytes are not in the capture: how far the message has come with them. None where they hide its header,
    /// or the next one's.
    pub(super) fn skip(&mut self, missing: u64) -> Option<Progress> {
        if !self.is_inside() || missing > self.left {
            return None;
        }
        self.torn |= self.head.len() < self.room;
        self.left -= missing;
        Some(self.come())
    }

    fn come(&mut self) -> Progress {
        self.over = self.left == 0;
        if self.over {
            Progress::Whole
        } else {
            Progress::Partly
        }
    }

    /// The header of the message was read, and its body goes on.
    pub(super) fn is_inside(&self) -> bool {
        self.have == N && !self.over
    }

    pub(super) fn header(&self) -> &[u8; N] {
        &self.header
    }

    /// The body, as far as it was kept.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The body goes on behind what was kept.
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
