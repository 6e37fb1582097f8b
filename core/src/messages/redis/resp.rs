//! RESP, the serialisation of Redis: finds where a value ends, and keeps its first words. Reads one direction. Nested
//! arrays are counted on a stack, not read by recursion.

use memchr::memchr;

/// Upper bound on arrays inside arrays; no reply has more.
const MAX_DEPTH: usize = 32;
/// Upper bound on a string's length: the default of `proto-max-bulk-len`.
const MAX_BULK: u64 = 512 << 20;
/// Upper bound on an array's count.
const MAX_ELEMENTS: u64 = 1 << 32;
/// Upper bound on a line: Redis' `PROTO_INLINE_MAX_SIZE`.
const MAX_LINE: u64 = 64 << 10;
/// Upper bound on the words kept of a value.
const MAX_WORDS: usize = 12;
/// Upper bound on the bytes kept of a word.
const MAX_WORD: usize = 200;
/// Bytes of CR LF after a string.
const LINE_END: u64 = 2;

/// How far a value was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All bytes are read, and the value goes on.
    Partly,
    /// The value is whole; the bytes that are left follow it.
    Whole,
    /// Not RESP.
    Wrong,
}

/// The values of one direction.
#[derive(Debug, Default)]
pub(super) struct Resp {
    /// Type byte of the value; `*` for an inline command, 0 until it is known.
    pub(super) kind: u8,
    /// Some of the value was read.
    is_inside: bool,
    /// The line that is being read, as far as it is kept.
    line: Vec<u8>,
    /// Length of the line so far.
    line_len: u64,
    /// Bytes still to come of a string and its line end.
    remaining: u64,
    /// Stack of open arrays: the values still to come in each, itself included.
    counts: Vec<u64>,
    /// The first words of the value, joined.
    text: Vec<u8>,
    /// Where each word ends in `text`.
    ends: Vec<usize>,
    /// Elements of the outermost array; words of an inline command.
    pub(super) count: u64,
    /// The first word is whole.
    pub(super) has_word: bool,
}

impl Resp {
    /// Returns a word of the value that is being read, or was read last; empty if it has none there.
    pub(super) fn word(&self, index: usize) -> &[u8] {
        let start = match index.checked_sub(1) {
            Some(before) => self.ends.get(before).copied(),
            None => Some(0),
        };
        let end = self.ends.get(index).copied();
        start
            .zip(end)
            .and_then(|(start, end)| self.text.get(start..end))
            .unwrap_or_default()
    }

    /// Whether nothing of the next value was read.
    pub(super) fn is_between(&self) -> bool {
        !self.is_inside
    }

    /// Whether only a word's beginning was kept.
    pub(super) fn is_cut(&self, index: usize) -> bool {
        self.word(index).len() >= MAX_WORD
    }

    /// Number of words kept.
    pub(super) fn word_count(&self) -> usize {
        self.ends.len()
    }

    /// Skips bytes that are not in the capture. Returns false unless they lie inside a string.
    pub(super) fn skip(&mut self, missing: u64) -> bool {
        let is_within = missing < self.remaining;
        if is_within {
            self.remaining -= missing;
        }
        is_within
    }

    /// Reads on, up to the value's end. `is_client`: the values are commands.
    pub(super) fn next(&mut self, is_client: bool, bytes: &mut &[u8]) -> Progress {
        if !self.is_inside {
            self.begin();
        }
        while !bytes.is_empty() {
            if self.remaining > 0 {
                self.read_string(bytes);
                if self.remaining > 0 {
                    return Progress::Partly;
                }
                self.end_word();
            } else {
                match self.read_header(is_client, bytes) {
                    None => return Progress::Partly,
                    Some(false) => return Progress::Wrong,
                    Some(true) if self.remaining > 0 => continue,
                    Some(true) => {}
                }
            }
            if self.ends_value() {
                self.is_inside = false;
                return Progress::Whole;
            }
        }
        Progress::Partly
    }

    fn begin(&mut self) {
        (self.kind, self.count) = (0, 0);
        self.is_inside = true;
        self.counts.clear();
        self.counts.push(1);
        self.forget_words();
    }

    fn forget_words(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.has_word = false;
    }

    /// Counts a value as read, and each array that ends with it. Returns whether the outermost value is whole.
    fn ends_value(&mut self) -> bool {
        while let Some(count) = self.counts.last_mut() {
            *count = count.saturating_sub(1);
            if *count > 0 {
                return false;
            }
            self.counts.pop();
        }
        true
    }

    fn read_string(&mut self, bytes: &mut &[u8]) {
        let taken = self.remaining.min(bytes.len() as u64);
        let content = self.remaining.saturating_sub(LINE_END).min(taken);
        let (string, rest) = crate::cursor::split(bytes, taken as usize);
        self.keep(string.get(..content as usize).unwrap_or_default());
        self.remaining -= taken;
        *bytes = rest;
    }

    fn keep(&mut self, part: &[u8]) {
        let word_len = self.text.len() - self.ends.last().copied().unwrap_or(0);
        let room = if self.ends.len() < MAX_WORDS {
            MAX_WORD.saturating_sub(word_len)
        } else {
            0
        };
        self.text.extend_from_slice(part.get(..room).unwrap_or(part));
    }

    fn end_word(&mut self) {
        if self.ends.len() < MAX_WORDS {
            self.ends.push(self.text.len());
        }
        self.has_word = true;
    }

    /// Reads a header line. None while it is not whole; false if it is not RESP.
    fn read_header(&mut self, is_client: bool, bytes: &mut &[u8]) -> Option<bool> {
        let end = memchr(b'\n', bytes);
        let part_len = end.map_or(bytes.len(), |end| end + 1);
        let (part, rest) = crate::cursor::split(bytes, part_len);
        let room = (MAX_WORD * 2).saturating_sub(self.line.len());
        self.line.extend_from_slice(part.get(..room).unwrap_or(part));
        self.line_len += part.len() as u64;
        *bytes = rest;
        let is_outermost = self.counts.len() == 1;
        let first = self.line.first().copied().unwrap_or_default();
        let fits = if is_client {
            fits_client(is_outermost, first)
        } else {
            b"+-:_,#($=!*~>%|".contains(&first)
        };
        if is_outermost && self.kind == 0 {
            self.kind = first;
        }
        if !fits || self.line_len > MAX_LINE {
            return Some(false);
        }
        end?;
        let line = std::mem::take(&mut self.line);
        let is_resp = self.read_line(is_client, is_outermost, &line);
        (self.line, self.line_len) = (line, 0);
        self.line.clear();
        Some(is_resp)
    }

    /// Reads a whole header line; `is_outermost`: outside of arrays. Returns false if it is not RESP.
    fn read_line(&mut self, is_client: bool, is_outermost: bool, line: &[u8]) -> bool {
        let line = line.trim_ascii_end();
        let Some((kind, text)) = line.split_first() else {
            return is_client && is_outermost; // an empty line between commands
        };
        if is_outermost {
            self.kind = *kind;
            self.forget_words();
        }
        match kind {
            b'$' | b'=' | b'!' => match number(text) {
                Some(None) => self.end_word(),
                Some(Some(length)) if length <= MAX_BULK => self.remaining = length + LINE_END,
                _ => return false,
            },
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                let Some(count) = number(text).filter(|count| count.unwrap_or(0) <= MAX_ELEMENTS) else {
                    return false;
                };
                let has_pairs = matches!(kind, b'%' | b'|');
                return self.begin_array(*kind, count.unwrap_or(0) << u32::from(has_pairs), is_outermost);
            }
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' if !is_client => {
                self.keep(text);
                self.end_word();
            }
            _ => {
                // an inline command
                self.kind = b'*';
                for word in line
                    .split(u8::is_ascii_whitespace)
                    .filter(|word| !word.is_empty())
                {
                    self.keep(word);
                    self.end_word();
                    self.count += 1;
                }
            }
        }
        true
    }

    /// Begins an array of `count` values. Returns false if it is nested too deep.
    fn begin_array(&mut self, kind: u8, count: u64, is_outermost: bool) -> bool {
        if is_outermost {
            self.count = count;
        }
        if is_outermost && kind == b'|' {
            self.kind = 0; // attributes precede the value
        }
        if kind == b'|' {
            // attributes count at this depth, and are not a value by themselves
            if let Some(remaining) = self.counts.last_mut() {
                *remaining = remaining.saturating_add(count).saturating_add(1);
            }
        } else if count > 0 {
            if self.counts.len() >= MAX_DEPTH {
                return false;
            }
            // one more for the array itself
            self.counts.push(count.saturating_add(1));
        }
        true
    }
}

/// Whether a client's value may begin with this byte: a command is an array of strings, or an inline command.
fn fits_client(is_outermost: bool, first: u8) -> bool {
    match first {
        b'*' => is_outermost,
        b'$' => !is_outermost,
        _ => is_outermost && (first.is_ascii_alphabetic() || first.is_ascii_whitespace()),
    }
}

/// Parses a length or a count; `Some(None)` for -1, which stands for a null value.
pub(super) fn number(text: &[u8]) -> Option<Option<u64>> {
    if text == b"-1" {
        return Some(None);
    }
    let digits = text.iter().all(u8::is_ascii_digit) && !text.is_empty();
    let text = std::str::from_utf8(text).ok().filter(|_| digits)?;
    Some(Some(text.parse().ok()?))
}
