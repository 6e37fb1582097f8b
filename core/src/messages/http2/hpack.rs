//! HPACK, the header compression of HTTP/2 (RFC 7541). Decodes the header blocks of one direction in their order and
//! returns the few fields that an exchange needs.
//!
//! A capture may begin in mid-stream, or lack a block: then the dynamic table has unknown entries. Indices count from
//! the newest entry, so entries inserted since then are found at their index. An index beyond them is a field with an
//! unknown name or value, and decoding goes on.
//!
//! SETTINGS_HEADER_TABLE_SIZE is not read, because an encoder sends the size that it uses (4.2), and uses 4,096 until
//! then.

use std::collections::VecDeque;

use super::huffman;
use super::statics::STATIC;
use crate::messages::tags::TagName;
use crate::messages::text;

/// Upper bound on a value in bytes; longer ones are truncated, as they only name an exchange.
const MAX_VALUE: usize = 2048;
/// Upper bound on the bytes compared of a name: longer than every name in `Name::of`.
const MAX_NAME: usize = 20;
/// Upper bound on the dynamic table in bytes. If an encoder uses a larger one, its oldest entries are unknown.
const MAX_TABLE: usize = 64 << 10;
/// The size of the table before the encoder sends another one (RFC 9113 6.5.2).
const FIRST_LIMIT: usize = 4096;
/// The size of an entry beside its name and value (4.1).
const ENTRY_OVERHEAD: usize = 32;
/// Upper bound on an integer (5.1 leaves it to the decoder).
const MAX_INTEGER: usize = 1 << 28;
/// Upper bound on the octets of an integer after its prefix: 28 bits, and one octet more for wasteful encoders.
const MAX_OCTETS: u32 = 5;

/// The name of a field, as far as an exchange needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Method,
    Path,
    Authority,
    Status,
    /// `:protocol` of an extended CONNECT (RFC 8441).
    Protocol,
    ContentType,
    ContentEncoding,
    GrpcStatus,
    Server,
    Tag(TagName),
    /// Any other name.
    Other,
    /// A name that the capture does not show.
    Unknown,
}

impl Name {
    fn of(name: &[u8]) -> Name {
        match name {
            b":method" => Name::Method,
            b":path" => Name::Path,
            b":authority" => Name::Authority,
            b":status" => Name::Status,
            b":protocol" => Name::Protocol,
            b"content-type" => Name::ContentType,
            b"content-encoding" => Name::ContentEncoding,
            b"grpc-status" => Name::GrpcStatus,
            b"server" => Name::Server,
            _ => TagName::of(name).map_or(Name::Other, Name::Tag),
        }
    }

    fn is_needed(self) -> bool {
        !matches!(self, Name::Other | Name::Unknown)
    }
}

/// Why a block cannot be decoded.
pub(super) type Wrong = &'static str;

/// An entry of the dynamic table. The value is kept only if an exchange needs it.
#[derive(Debug)]
struct Entry {
    name: Name,
    name_len: u16,
    size: u32,
    value: Option<Box<str>>,
}

/// One direction's decoder.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Newest first.
    table: VecDeque<Entry>,
    /// Size of the table in bytes (4.1).
    size: usize,
    /// Upper bound on `size`, as the encoder sets it.
    limit: usize,
    /// The encoder's table may have older entries, which are unknown.
    is_partial: bool,
}

/// A name with its length in bytes.
#[derive(Clone, Copy)]
struct SizedName {
    name: Name,
    len: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder for a connection from its beginning: the table is empty.
    pub(super) fn new() -> Self {
        Decoder {
            table: VecDeque::new(),
            size: 0,
            limit: FIRST_LIMIT,
            is_partial: false,
        }
    }

    /// A decoder in mid-stream: the table and its limit are unknown. If the limit is larger than assumed, entries that
    /// are dropped here become unknown.
    pub(super) fn joined() -> Self {
        Decoder {
            is_partial: true,
            ..Decoder::new()
        }
    }

    /// Makes the table unknown, because a block was not decoded and may have inserted entries.
    pub(super) fn forget(&mut self) {
        *self = Decoder::joined();
    }

    /// Decodes a whole block. Calls `emit` for each needed or unknown field, with `None` for an unknown value. After an
    /// error the table is unknown.
    pub(super) fn block(
        &mut self,
        block: &[u8],
        mut emit: impl FnMut(Name, Option<&str>),
    ) -> Result<(), Wrong> {
        let read = self.fields(&mut Block { rest: block }, &mut |name, value| {
            if name != Name::Other {
                emit(name, value);
            }
        });
        if read.is_err() {
            self.forget();
        }
        read
    }

    fn fields(
        &mut self,
        block: &mut Block<'_>,
        emit: &mut impl FnMut(Name, Option<&str>),
    ) -> Result<(), Wrong> {
        while let Some(first) = block.rest.first() {
            match first.leading_zeros() {
                0 => self.indexed(block.integer(7)?, emit)?,
                1 => self.literal(block, 6, true, emit)?,
                2 => self.resize(block.integer(5)?),
                // without indexing, or never indexed (6.2.2, 6.2.3)
                _ => self.literal(block, 4, false, emit)?,
            }
        }
        Ok(())
    }

    /// Decodes an indexed field (6.1): name and value of an entry.
    fn indexed(&mut self, index: usize, emit: &mut impl FnMut(Name, Option<&str>)) -> Result<(), Wrong> {
        let field = index.checked_sub(1).ok_or("header index 0")?;
        match STATIC.get(field) {
            Some((name, value)) => emit(Name::of(name.as_bytes()), Some(value)),
            None => match self.entry(field)? {
                Some(entry) => emit(entry.name, entry.value.as_deref()),
                None => emit(Name::Unknown, None),
            },
        }
        Ok(())
    }

    /// Returns the dynamic entry at an index after the static ones; `None` if it is unknown.
    fn entry(&self, field: usize) -> Result<Option<&Entry>, Wrong> {
        match self.table.get(field - STATIC.len()) {
            None if !self.is_partial => Err("header index behind the table"),
            entry => Ok(entry),
        }
    }

    /// Decodes a literal field (6.2): a value, after a name or the index of one.
    fn literal(
        &mut self,
        block: &mut Block<'_>,
        prefix: u32,
        inserts: bool,
        emit: &mut impl FnMut(Name, Option<&str>),
    ) -> Result<(), Wrong> {
        let mut kept = Vec::new();
        let named = match block.integer(prefix)?.checked_sub(1) {
            None => {
                let len = block.string(MAX_NAME, &mut kept)?;
                let name = Name::of(&kept);
                kept.clear();
                SizedName { name, len }
            }
            Some(field) => self.name_of(field)?,
        };
        let max_len = if named.name.is_needed() { MAX_VALUE } else { 0 };
        let len = block.string(max_len, &mut kept)?;
        let value = named.name.is_needed().then(|| shown(&kept, len > max_len));
        emit(named.name, value.as_deref());
        if inserts {
            self.insert(named, value, len);
        }
        Ok(())
    }

    fn name_of(&self, field: usize) -> Result<SizedName, Wrong> {
        let named = |name, len| SizedName { name, len };
        Ok(match STATIC.get(field) {
            Some((name, _)) => named(Name::of(name.as_bytes()), name.len()),
            None => match self.entry(field)? {
                Some(entry) => named(entry.name, usize::from(entry.name_len)),
                None => named(Name::Unknown, 0),
            },
        })
    }

    /// Inserts an entry (4.4). One that is larger than the table empties it.
    fn insert(&mut self, named: SizedName, value: Option<Box<str>>, value_len: usize) {
        let size = named.len + value_len + ENTRY_OVERHEAD;
        self.shrink(self.limit.saturating_sub(size));
        if size > self.limit {
            return;
        }
        self.size += size;
        self.table.push_front(Entry {
            name: named.name,
            name_len: u16::try_from(named.len).unwrap_or(u16::MAX),
            size: size as u32, // within the limit
            value,
        });
    }

    /// Sets the table's limit (6.3).
    fn resize(&mut self, limit: usize) {
        // a limit of 0 empties the encoder's table: no entry is unknown any more
        if limit == 0 {
            self.is_partial = false;
        }
        if limit > MAX_TABLE {
            self.is_partial = true;
        }
        self.limit = limit.min(MAX_TABLE);
        self.shrink(self.limit);
    }

    /// Removes the oldest entries (4.3).
    fn shrink(&mut self, max_size: usize) {
        while self.size > max_size
            && let Some(oldest) = self.table.pop_back()
        {
            self.size -= oldest.size as usize;
        }
    }
}

fn shown(kept: &[u8], is_cut: bool) -> Box<str> {
    let value = if is_cut {
        text::cut_name(kept)
    } else {
        text::name(kept)
    };
    value.as_str().into()
}

/// The rest of a block.
struct Block<'a> {
    rest: &'a [u8],
}

impl<'a> Block<'a> {
    fn byte(&mut self) -> Result<u8, Wrong> {
        let (first, rest) = self.rest.split_first().ok_or("a header block ends in a field")?;
        self.rest = rest;
        Ok(*first)
    }

    /// Decodes an integer (5.1) with a prefix of this many bits in the first byte.
    fn integer(&mut self, prefix: u32) -> Result<usize, Wrong> {
        let full = (1usize << prefix) - 1;
        let mut value = usize::from(self.byte()?) & full;
        if value < full {
            return Ok(value);
        }
        for octet in 0..MAX_OCTETS {
            let byte = self.byte()?;
            value += usize::from(byte & 0x7f) << (7 * octet);
            if value > MAX_INTEGER {
                break;
            }
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a header's integer is too large")
    }

    /// Decodes a string (5.2). Appends at most `max_len` bytes to `kept` and returns the whole length.
    fn string(&mut self, max_len: usize, kept: &mut Vec<u8>) -> Result<usize, Wrong> {
        let is_coded = self.rest.first().is_some_and(|first| first & 0x80 != 0);
        let len = self.integer(7)?;
        let (bytes, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or("a header block ends in a string")?;
        self.rest = rest;
        if is_coded {
            return huffman::decode(bytes, max_len, kept).map_err(|_| "a header's text is not coded right");
        }
        kept.extend_from_slice(bytes.get(..max_len).unwrap_or(bytes));
        Ok(len)
    }
}

#[cfg(test)]
mod tests;
