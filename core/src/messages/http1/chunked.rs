//! The chunked transfer coding (RFC 9112 7.1), with extensions and trailers. Finds where the body ends.

/// The position of the next byte in the coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunked {
    /// In a chunk's size; `None` before its first digit.
    Size(Option<u64>),
    /// After a chunk's size (the value): in an extension or the line's end.
    Extension(u64),
    /// In a chunk's data with this many bytes left.
    Data(u64),
    /// In the line end after a chunk's data.
    AfterData,
    /// In the trailers; true if the current line is not empty.
    Trailer(bool),
}

/// The outcome of `Chunked::read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// All bytes are of the body, which goes on.
    All,
    /// The body ended after this many bytes.
    Done(usize),
    /// The coding is broken, for this reason.
    Wrong(&'static str),
}

impl Chunked {
    pub(super) fn new() -> Self {
        Chunked::Size(None)
    }

    pub(super) fn read(&mut self, bytes: &[u8]) -> Step {
        let mut read_len = 0;
        while let Some(byte) = bytes.get(read_len) {
            read_len += 1;
            *self = match (*self, *byte) {
                (Chunked::Data(remaining), _) => {
                    // this byte and up to `remaining - 1` after it
                    let data_len = usize::try_from(remaining - 1)
                        .unwrap_or(usize::MAX)
                        .min(bytes.len() - read_len);
                    read_len += data_len;
                    match remaining - 1 - data_len as u64 {
                        0 => Chunked::AfterData,
                        remaining => Chunked::Data(remaining),
                    }
                }
                (Chunked::Size(Some(size)) | Chunked::Extension(size), b'\n') => match size {
                    0 => Chunked::Trailer(false),
                    size => Chunked::Data(size),
                },
                (Chunked::Size(Some(size)), b'\r' | b';' | b' ' | b'\t') => Chunked::Extension(size),
                (Chunked::Size(size), digit) => {
                    let digit = char::from(digit).to_digit(16).map(u64::from);
                    let Some(digit) = digit else {
                        return Step::Wrong("chunk size is not a number");
                    };
                    match size
                        .unwrap_or(0)
                        .checked_mul(16)
                        .and_then(|size| size.checked_add(digit))
                    {
                        Some(size) => Chunked::Size(Some(size)),
                        None => return Step::Wrong("chunk size is too large"),
                    }
                }
                (Chunked::Extension(size), _) => Chunked::Extension(size),
                (Chunked::AfterData, b'\r') => Chunked::AfterData,
                (Chunked::AfterData, b'\n') => Chunked::Size(None),
                (Chunked::AfterData, _) => return Step::Wrong("chunk is longer than its size"),
                (Chunked::Trailer(false), b'\n') => return Step::Done(read_len),
                (Chunked::Trailer(_), b'\n') => Chunked::Trailer(false),
                (Chunked::Trailer(line), b'\r') => Chunked::Trailer(line),
                (Chunked::Trailer(_), _) => Chunked::Trailer(true),
            }
        }
        Step::All
    }

    /// Passes over a hole in a chunk's data; `None` for any other hole. The hole may include the line end after the
    /// data (2 bytes), or that and the last chunk (2 + 5 bytes), as a snap length cuts a chunk that was sent at once.
    pub(super) fn skip(&mut self, missing: u64) -> Option<Step> {
        let Chunked::Data(remaining) = *self else {
            return None;
        };
        match missing.checked_sub(remaining) {
            None => *self = Chunked::Data(remaining - missing),
            Some(0) => *self = Chunked::AfterData,
            Some(2) => *self = Chunked::Size(None),
            Some(7) => return Some(Step::Done(0)),
            Some(_) => return None,
        }
        Some(Step::All)
    }
}
