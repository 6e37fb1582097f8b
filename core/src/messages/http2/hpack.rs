//! Compressed headers (RFC 7541). Reads the header blocks of one direction in their order, gives the few fields that
//! an exchange needs; refuses to guess what an index means whose entry the capture does not show.
//!
//! A capture may begin in the middle, or lack a block: then the dynamic table holds entries that nobody can name.
//! Positions count from the newest entry, so those that were inserted since are right at their index, and an index
//! behind them is a field with an unknown name or value. It reads on, with `None` for the value.
//!
//! The limit that SETTINGS set need not be read: an encoder sends the size it uses (4.2), and until then it is 4,096.

use std::collections::VecDeque;

use super::huffman;
use super::statics::STATIC;
use crate::messages::tags::TagName;
use crate::messages::text;

/// Longer values are cut: they only name an exchange.
const MAX_VALUE: usize = 2048;
/// So much of a name is looked at: more than the longest that matters.
const MAX_NAME: usize = 20;
/// The largest table that is kept. Encoders that use a larger one refer to entries that are unknown here.
const MAX_TABLE: usize = 64 << 10;
/// What an empty table may grow to before its encoder sends another size (RFC 9113 6.5.2).
const FIRST_LIMIT: usize = 4096;
/// What an entry is counted beside its name and value (4.1).
const ENTRY: usize = 32;
/// Integers beyond this are of no header (5.1 leaves the bound to the decoder).
const MAX_INTEGER: usize = 1 << 28;
/// Octets of an integer behind its prefix: 28 bits and what a wasteful encoder adds.
const MAX_OCTETS: u32 = 5;

/// The names that an exchange needs.
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

    fn matters(self) -> bool {
        !matches!(self, Name::Other | Name::Unknown)
    }
}

/// Why a block cannot be read.
pub(super) type Wrong = &'static str;

/// An entry of the dynamic table. Names and values are kept only of what an exchange needs.
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
    size: usize,
    limit: usize,
    /// Entries that are not here may lie behind those that are.
    partial: bool,
}

/// A field's name while it is read.
#[derive(Clone, Copy)]
struct RequestName {
    name: Name,
    len: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    /// From the connection's beginning: the table is empty.
    pub(super) fn new() -> Self {
        Decoder {
            table: VecDeque::new(),
            size: 0,
            limit: FIRST_LIMIT,
            partial: false,
        }
    }

    /// In the middle of a connection: the table is unknown. So is its limit; with a larger one, entries are forgotten
    /// here that the encoder still knows, and are unknown again.
    pub(super) fn joined() -> Self {
        Decoder {
            partial: true,
            ..Decoder::new()
        }
    }

    /// A block was not seen or not understood: what it inserted is unknown, so no position is right any more.
    pub(super) fn forget(&mut self) {
        *self = Decoder::joined();
    }

    /// Reads one whole block and gives its fields: the value where it is known, and `None` where it is not. Of other
    /// names only that a field is unknown. A block that cannot be read to its end is forgotten.
    pub(super) fn block(
        &mut self,
        block: &[u8],
        mut tell: impl FnMut(Name, Option<&str>),
    ) -> Result<(), Wrong> {
        let read = self.fields(&mut Block { rest: block }, &mut tell);
        if read.is_err() {
            self.forget();
        }
        read
    }

    fn fields(
        &mut self,
        block: &mut Block<'_>,
        tell: &mut impl FnMut(Name, Option<&str>),
    ) -> Result<(), Wrong> {
        while let Some(first) = block.rest.first() {
            match first.leading_zeros() {
                0 => self.indexed(block.integer(7)?, tell)?,
                1 => self.literal(block, 6, true, tell)?,
                2 => self.resize(block.integer(5)?)?,
                // without indexing, or never indexed (6.2.2, 6.2.3): the same here
                _ => self.literal(block, 4, false, tell)?,
            }
        }
        Ok(())
    }

    /// 6.1: name and value are an entry's.
    fn indexed(&mut self, index: usize, tell: &mut impl FnMut(Name, Option<&str>)) -> Result<(), Wrong> {
        let place = index.checked_sub(1).ok_or("header index 0")?;
        match STATIC.get(place) {
            Some((name, value)) => emit(tell, Name::of(name.as_bytes()), Some(value)),
            None => match self.entry(place)? {
                Some(entry) => emit(tell, entry.name, entry.value.as_deref()),
                None => tell(Name::Unknown, None),
            },
        }
        Ok(())
    }

    /// The dynamic entry of a place behind the static ones; `None` where it is not known.
    fn entry(&self, place: usize) -> Result<Option<&Entry>, Wrong> {
        match self.table.get(place - STATIC.len()) {
            None if !self.partial => Err("header index behind the table"),
            entry => Ok(entry),
        }
    }

    /// 6.2: the value, and perhaps the name, are spelled out.
    fn literal(
        &mut self,
        block: &mut Block<'_>,
        prefix: u32,
        inserts: bool,
        tell: &mut impl FnMut(Name, Option<&str>),
    ) -> Result<(), Wrong> {
        let mut kept = Vec::new();
        let named = match block.integer(prefix)?.checked_sub(1) {
            None => {
                let len = block.string(MAX_NAME, &mut kept)?;
                let name = Name::of(&kept);
                kept.clear();
                RequestName { name, len }
            }
            Some(place) => self.name_of(place)?,
        };
        let most = if named.name.matters() { MAX_VALUE } else { 0 };
        let len = block.string(most, &mut kept)?;
        let value = named.name.matters().then(|| shown(&kept, len > most));
        emit(tell, named.name, value.as_deref());
        if inserts {
            self.insert(named, value, len);
        }
        Ok(())
    }

    fn name_of(&self, place: usize) -> Result<RequestName, Wrong> {
        let named = |name, len| RequestName { name, len };
        Ok(match STATIC.get(place) {
            Some((name, _)) => named(Name::of(name.as_bytes()), name.len()),
            None => match self.entry(place)? {
                Some(entry) => named(entry.name, usize::from(entry.name_len)),
                None => named(Name::Unknown, 0),
            },
        })
    }

    /// 4.4: an entry larger than the table empties it.
    fn insert(&mut self, named: RequestName, value: Option<Box<str>>, value_len: usize) {
        let size = named.len + value_len + ENTRY;
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

    /// 6.3: the encoder sets the size of its table.
    fn resize(&mut self, limit: usize) -> Result<(), Wrong> {
        // an encoder that shrinks its table to nothing and lets it grow again has emptied it
        if limit == 0 {
            self.partial = false;
        }
        if limit > MAX_TABLE {
            self.partial = true;
        }
        self.limit = limit.min(MAX_TABLE);
        self.shrink(self.limit);
        Ok(())
    }

    /// 4.3: the oldest go.
    fn shrink(&mut self, most: usize) {
        while self.size > most
            && let Some(oldest) = self.table.pop_back()
        {
            self.size -= oldest.size as usize;
        }
    }
}

/// A value as it is shown, cut between characters.
fn shown(kept: &[u8], cut: bool) -> Box<str> {
    let value = if cut {
        text::cut_name(kept)
    } else {
        text::name(kept)
    };
    value.as_str().into()
}

fn emit(tell: &mut impl FnMut(Name, Option<&str>), name: Name, value: Option<&str>) {
    if name != Name::Other {
        tell(name, value);
    }
}

/// What is left of a block.
struct Block<'a> {
    rest: &'a [u8],
}

impl<'a> Block<'a> {
    fn byte(&mut self) -> Result<u8, Wrong> {
        let (first, rest) = self.rest.split_first().ok_or("a header block ends in a field")?;
        self.rest = rest;
        Ok(*first)
    }

    /// 5.1: what the first byte holds behind `8 - prefix` bits of something else, and the octets that continue it.
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

    /// 5.2: puts at most `most` bytes into `kept`; gives the whole length.
    fn string(&mut self, most: usize, kept: &mut Vec<u8>) -> Result<usize, Wrong> {
        let coded = self.rest.first().is_some_and(|first| first & 0x80 != 0);
        let len = self.integer(7)?;
        let (bytes, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or("a header block ends in a string")?;
        self.rest = rest;
        if coded {
            return huffman::decode(bytes, most, kept).map_err(|_| "a header's text is not coded right");
        }
        kept.extend_from_slice(bytes.get(..most).unwrap_or(bytes));
        Ok(len)
    }
}

#[cfg(test)]
mod tests;
