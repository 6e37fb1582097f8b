//! Lines and texts of mail, FTP and memcached however their bytes are cut. Reads one side's bytes, finds where a line or a text
//! ends; keeps a line's beginning and end, and nothing of a text.

/// So much of a line's beginning is kept: whatever names it.
const MAX_KEPT: usize = 512;
/// And of its end: `{4294967295+}` (RFC 9051 4.3).
const MAX_TAIL: usize = 16;

/// A line that is being read, or several that are one.
#[derive(Debug, Default)]
pub(super) struct Line {
    kept: Vec<u8>,
    tail: Vec<u8>,
    len: u64,
}

impl Line {
    /// Takes the line up to its end off the front; whether that has come.
    pub(super) fn take(&mut self, bytes: &mut &[u8]) -> bool {
        let end = memchr::memchr(b'\n', bytes);
        let here = end.map_or(bytes.len(), |end| end + 1);
        let (piece, rest) = bytes.split_at_checked(here).unwrap_or((bytes, &[]));
        *bytes = rest;
        let room = MAX_KEPT.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(piece.get(..room).unwrap_or(piece));
        let last = piece.len().saturating_sub(MAX_TAIL);
        self.tail.extend_from_slice(piece.get(last..).unwrap_or_default());
        let much = self.tail.len().saturating_sub(MAX_TAIL);
        self.tail.drain(..much);
        self.count(piece.len() as u64);
        end.is_some()
    }

    /// Nothing of it has come.
    pub(super) fn is_new(&self) -> bool {
        self.kept.is_empty() && self.len == 0
    }

    /// So many bytes belong to it that are not looked at.
    pub(super) fn count(&mut self, bytes: u64) {
        self.len = self.len.saturating_add(bytes);
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Its beginning, without its end.
    pub(super) fn text(&self) -> &[u8] {
        let end = memchr::memchr(b'\n', &self.kept).unwrap_or(self.kept.len());
        let text = self.kept.get(..end).unwrap_or_default();
        let returns = text.iter().rev().take_while(|byte| **byte == b'\r').count();
        text.get(..text.len() - returns).unwrap_or_default()
    }

    /// Ends what was read: the next line begins.
    pub(super) fn clear(&mut self) {
        (self.len, self.kept, self.tail) = (0, Vec::new(), Vec::new());
    }

    /// Ends what was counted: the same line goes on.
    pub(super) fn counted(&mut self) -> u64 {
        std::mem::take(&mut self.len)
    }

    /// The octets behind this line that belong to it (a literal), where it ends with their number.
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

    /// Makes a reply's line its last one, whose end is not in the capture.
    pub(super) fn ends(&mut self, code: Option<[u8; 3]>) {
        if let Some(code) = code {
            self.kept = code.to_vec();
        }
        if let Some(more @ b'-') = self.kept.get_mut(3) {
            *more = b' ';
        }
    }

    /// Whether these are its last bytes, before its end.
    pub(super) fn ends_with(&self, word: &[u8]) -> bool {
        self.tail.trim_ascii_end().ends_with(word)
    }

    /// Whether a person could read it: no protocol of lines has other bytes.
    pub(super) fn is_text(&self) -> bool {
        self.text().iter().all(|byte| *byte >= b' ' || *byte == b'\t')
    }
}

/// At most ten digits.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    let plain = text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// How far a text has come that ends with a dot alone on its line (RFC 5321 4.1.1.4, RFC 1939 3).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dots {
    #[default]
    LineStart,
    Dot,
    DotReturn,
    Inside,
}

impl Dots {
    /// The place behind the text's end, where that lies in these bytes.
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
            let found = text.chunks(1).position(|byte| dots.end(byte).is_some());
            assert_eq!(found.map(|at| at + 1), end, "{text:?}");
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
