//! Checked reads of numbers and sub-slices from bytes. No other file indexes input; a read beyond the end gives `None`.
//!
//! The length of a fixed-size header is checked once, in `Header::of`. Its fields are then read without checks: their
//! offsets are constants, which the compiler compares with the size. `Cursor` reads fields of variable size in order.

#![allow(clippy::indexing_slicing)]

macro_rules! numbers_in_either_order {
    ($($number:ident: $bytes:literal),*) => {
        $(
            /// Returns the number at offset `AT`, in big-endian byte order if `BIG`. For file formats with both orders.
            #[inline(always)]
            pub fn $number<const BIG: bool, const AT: usize>(self) -> $number {
                let bytes = self.bytes::<AT, $bytes>();
                if BIG { $number::from_be_bytes(bytes) } else { $number::from_le_bytes(bytes) }
            }
        )*
    };
}

macro_rules! numbers_in_order {
    ($($name:ident: $number:ident::$convert:ident),*) => {
        $(
            #[inline]
            pub fn $name(&mut self) -> Option<$number> {
                self.array().map($number::$convert)
            }
        )*
    };
}

/// A header of `N` bytes.
#[derive(Clone, Copy)]
pub struct Header<'a, const N: usize>(&'a [u8; N]);

impl<'a, const N: usize> Header<'a, N> {
    /// Returns the header at the beginning of `data`, or `None` if `data` is shorter.
    #[inline(always)]
    pub fn of(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Header)
    }

    /// Returns the header and the bytes after it.
    #[inline(always)]
    pub fn split(data: &'a [u8]) -> Option<(Self, &'a [u8])> {
        data.split_first_chunk().map(|(head, rest)| (Header(head), rest))
    }

    /// Returns the `LEN` bytes at offset `AT`.
    #[inline(always)]
    pub fn bytes<const AT: usize, const LEN: usize>(self) -> [u8; LEN] {
        const { assert!(AT + LEN <= N, "offset outside the header") };
        // the assertion makes the fallback unreachable; without it this could compile to a panic
        self.0[AT..].first_chunk().copied().unwrap_or([0; LEN])
    }

    #[inline(always)]
    pub fn u8<const AT: usize>(self) -> u8 {
        const { assert!(AT < N, "offset outside the header") };
        self.0[AT]
    }

    #[inline(always)]
    pub fn be16<const AT: usize>(self) -> u16 {
        u16::from_be_bytes(self.bytes::<AT, 2>())
    }

    #[inline(always)]
    pub fn be32<const AT: usize>(self) -> u32 {
        u32::from_be_bytes(self.bytes::<AT, 4>())
    }

    numbers_in_either_order! { u16: 2, u32: 4, u64: 8 }
}

/// Reads fields in order. A read that does not fit returns `None` and does not advance.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    #[inline]
    pub fn new(data: &'a [u8]) -> Self {
        Cursor { rest: data }
    }

    /// Number of bytes that are not yet read.
    #[inline]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes that are not yet read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*head)
    }

    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    numbers_in_order! {
        u16be: u16::from_be_bytes, u32be: u32::from_be_bytes, u64be: u64::from_be_bytes,
        u16le: u16::from_le_bytes, u32le: u32::from_le_bytes, u64le: u64::from_le_bytes
    }

    /// Reads a BER element: its tag, and a cursor over its contents (X.690 8.1). Contents beyond the end are cut.
    /// `None` for a tag without a length, and for lengths of more than two bytes.
    pub fn tagged(&mut self) -> Option<(u8, Cursor<'a>)> {
        let (tag, first) = (self.u8()?, self.u8()?);
        let len = match first {
            0..=0x7F => usize::from(first),
            0x81 => usize::from(self.u8()?),
            0x82 => usize::from(self.u16be()?),
            _ => return None,
        };
        let contents = self.take(len.min(self.left()))?;
        Some((tag, Cursor::new(contents)))
    }

    /// Returns the remaining bytes as one big-endian number; of more than four bytes the last four.
    pub fn number(self) -> u32 {
        self.rest
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    /// Reads the next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }
}

/// Returns the bytes from offset `at` on; empty if the data ends before.
#[inline(always)]
pub fn from(data: &[u8], at: usize) -> &[u8] {
    data.get(at..).unwrap_or(&[])
}

/// Returns at most the first `len` bytes.
#[inline(always)]
pub fn upto(data: &[u8], len: usize) -> &[u8] {
    data.get(..len).unwrap_or(data)
}

/// Returns at most the first `len` bytes, and the bytes after them.
#[inline]
pub fn split(data: &[u8], len: usize) -> (&[u8], &[u8]) {
    data.split_at_checked(len).unwrap_or((data, &[]))
}

/// Returns the bytes of a part with `left` bytes to come, which it lowers by them, and the bytes after the part.
#[inline(always)]
pub fn split_left<'a>(data: &'a [u8], left: &mut u64) -> (&'a [u8], &'a [u8]) {
    let (part, rest) = split(data, usize::try_from(*left).unwrap_or(usize::MAX));
    *left -= part.len() as u64;
    (part, rest)
}

#[inline]
pub fn u8_at(data: &[u8], at: usize) -> Option<u8> {
    data.get(at).copied()
}

#[inline]
pub fn be16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?
        .first_chunk()
        .map(|bytes| u16::from_be_bytes(*bytes))
}

#[inline]
pub fn be32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

#[inline]
pub fn le16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?
        .first_chunk()
        .map(|bytes| u16::from_le_bytes(*bytes))
}

#[inline]
pub fn le32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_does_not_fit_moves_nothing() {
        let mut cursor = Cursor::new(&[1, 2, 3]);
        assert_eq!(cursor.u32be(), None);
        assert_eq!(cursor.u16be(), Some(0x0102));
        assert_eq!(cursor.u16le(), None);
        assert_eq!(cursor.take(2), None);
        assert_eq!((cursor.left(), cursor.rest()), (1, &[3][..]));
        assert_eq!(
            (cursor.u8(), cursor.u8(), cursor.is_empty()),
            (Some(3), None, true)
        );
    }

    #[test]
    fn byte_orders() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let (head, rest) = Header::<8>::split(&data).unwrap();
        assert_eq!(rest, [9]);
        assert_eq!(
            (head.be16::<1>(), head.be32::<4>(), head.u8::<7>()),
            (0x0203, 0x0506_0708, 8)
        );
        assert_eq!((head.u16::<false, 0>(), head.u16::<true, 0>()), (0x0201, 0x0102));
        assert_eq!(
            (head.u32::<false, 0>(), head.u32::<true, 0>()),
            (0x0403_0201, 0x0102_0304)
        );
        assert_eq!(head.u64::<true, 0>(), 0x0102_0304_0506_0708);
        assert_eq!(head.u64::<false, 0>(), 0x0807_0605_0403_0201);
        assert!(Header::<10>::of(&data).is_none());
        assert_eq!(
            (be16_at(&data, 7), be16_at(&data, 8), be16_at(&data, usize::MAX)),
            (Some(0x0809), None, None)
        );
        assert_eq!(
            (be32_at(&data, 5), be32_at(&data, 6), u8_at(&data, 9)),
            (Some(0x0607_0809), None, None)
        );
        assert_eq!((from(&data, 99), upto(&data, 99)), (&[][..], &data[..]));
        assert_eq!(split(&data, 99), (&data[..], &[][..]));
    }
}
