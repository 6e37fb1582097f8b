//! Lines and dot-terminated texts of mail, FTP and memcached, however their bytes are split into segments. Keeps the
//! beginning and the end of a line, and nothing of a text.

/// Upper bound on the bytes kept of a line's beginning, which names the command.
const MAX_KEPT: usize = 512;
/// Upper bound on the bytes kept of a line's end: `{4294967295+}` (RFC 9051 4.3).
const MAX_TAIL: usize = 16;

/// A line that is being read, or several that make one command.
#[derive(Debug, Default)]
pub(super) struct Line {
    kept: Vec<u8>,
    tail: Vec<u8>,
    len: u64,
}

impl Line {
    /// Takes bytes up to the line's end off the front of `bytes`. Returns whether the line is whole.
    pub(super) fn take(&mut self, bytes: &mut &[u8]) -> bool {
        let end = memchr::memchr(b'\n', bytes);
        let piece_len = end.map_or(bytes.len(), |end| end + 1);
        let (piece, rest) = bytes.split_at_checked(piece_len).unwrap_or((bytes, &[]));
        *bytes = rest;
        let room = MAX_KEPT.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(piece.get(..room).unwrap_or(piece));
        let tail_start = piece.len().saturating_sub(MAX_TAIL);
        self.tail
            .extend_from_slice(piece.get(tail_start..).unwrap_or_default());
        let excess = self.tail.len().saturating_sub(MAX_TAIL);
        self.tail.drain(..excess);
        self.count(piece.len() as u64);
        end.is_some()
    }

    /// Whether nothing of the line was read.
    pub(super) fn is_new(&self) -> bool {
        self.kept.is_empty() && self.len == 0
    }

    /// Counts bytes of the line that are not read.
    pub(super) fn count(&mut self, bytes: u64) {
        self.len = self.len.saturating_add(bytes);
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The kept beginning, up to the first line end.
    pub(super) fn text(&self) -> &[u8] {
        let end = memchr::memchr(b'\n', &self.kept).unwrap_or(self.kept.len());
        let text = self.kept.get(..end).unwrap_or_default();
        let returns = text.iter().rev().take_while(|byte| **byte == b'\r').count();
        text.get(..text.len() - returns).unwrap_or_default()
    }

    /// Resets the state for the next line.
    pub(super) fn clear(&mut self) {
        (self.len, self.kept, self.tail) = (0, Vec::new(), Vec::new());
    }

    /// Takes the number of bytes counted since the last call; the same line goes on.
    pub(super) fn take_len(&mut self) -> u64 {
        std::mem::take(&mut self.len)
    }

    /// The length of the IMAP literal that follows this line: 12 for `a APPEND x {12}`.
    pub(super) fn literal(&self) -> Option<u64> {
        let end = self.tail.strip_suffix(b"\n")?;
        let end = end.strip_suffix(b"\r").unwrap_or(end);
        let end = end.strip_suffix(b"}")?;
        let end = end
            .strip_suffix(b"+")
            .or_else(|| end.strip_suffix(b"-"))
            .unwrap_or(end);
        let digits = end.get(memchr::memrchr(b'{', end)? + 1..)?;
        number(digits)
    }

    /// Makes the line the last one of its reply, because the reply's end is not in the capture. `code` replaces the
    /// line's code.
    pub(super) fn make_last(&mut self, code: Option<[u8; 3]>) {
        if let Some(code) = code {
            self.kept = code.to_vec();
        }
        if let Some(more @ b'-') = self.kept.get_mut(3) {
            *more = b' ';
        }
    }

    /// Whether the line ends with this word, before white space.
    pub(super) fn ends_with(&self, word: &[u8]) -> bool {
        self.tail.trim_ascii_end().ends_with(word)
    }

    /// Whether the line has no control characters except tabs, as in all protocols of lines.
    pub(super) fn is_text(&self) -> bool {
        self.text().iter().all(|byte| *byte >= b' ' || *byte == b'\t')
    }
}

/// Parses a decimal number of at most ten digits.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    let is_plain = text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// The position in a text that ends with a line of a single dot (RFC 5321 4.1.1.4, RFC 1939 3).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dots {
    #[default]
    LineStart,
    Dot,
    DotReturn,
    Inside,
}

impl Dots {
    /// Returns the index after the text's end, if it lies in these bytes.
    pub(super) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            *self = match (*self, byte) {
                (Dots::Inside, _) => {
                    let rest = bytes.get(at..)?;
                    let end = memchr::memchr(b'\n', rest)?;
                    at += end;
                    Dots::LineStart
                }
                (Dots::LineStart, b'.') => Dots::Dot,
                (Dots::Dot, b'\r') => Dots::DotReturn,
                (Dots::DotReturn, b'\n') => return Some(at + 1),
                (_, b'\n') => Dots::LineStart,
                _ => Dots::Inside,
            };
            at += 1;
        }
        None
    }
}

/// Returns the bytes before the first space.
pub(super) fn first_word(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_with_a_lone_dot_however_it_is_cut() {
        for (text, end) in [
            (&b"a\r\n.\r\nQUIT"[..], Some(6)),
            (b".\r\n", Some(3)),
            (b"a\r\n..\r\n.x\r\n.\r\n", Some(14)),
            (b"a.\r\nb\r\n", None),
            (b".\n\r\n", None),
            (b"a\r\n.\r", None),
        ] {
            assert_eq!(Dots::default().end(text), end, "{text:?}");
            let mut dots = Dots::default();
            let cut = text.chunks(1).position(|byte| dots.end(byte).is_some());
            assert_eq!(cut.map(|at| at + 1), end, "{text:?}");
        }
    }

    #[test]
    fn a_line_ends_with_the_length_of_its_literal() {
        for (text, literal) in [
            ("a APPEND x {12}\r\n", Some(12)),
            ("a APPEND x {12+}\r\n", Some(12)),
            ("a LOGIN {0}\n", Some(0)),
            ("{12345678901}\r\n", None),
            ("a {x}\r\n", None),
            ("a {-1}\r\n", None),
            ("a {1} \r\n", None),
            ("a {1}", None),
        ] {
            let long = format!("{}{text}", "x".repeat(600));
            for text in [text, &long] {
                let (mut line, mut bytes) = (Line::default(), text.as_bytes());
                line.take(&mut bytes);
                assert_eq!(line.literal(), literal, "{text}");
                assert!(line.kept.len() <= MAX_KEPT && line.len() == text.len() as u64);
            }
        }
    }
}
