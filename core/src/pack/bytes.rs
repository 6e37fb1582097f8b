//! Flags and numbers as bytes, and back: whatever the bytes are, reading them cannot fail.
//!
//! A flag is a bit. A number is a bit that says whether it is more than 0, and if so seven bits a byte, the lowest
//! first; the zeros at the end of its first byte say how many bytes follow. Sixty-four bits stand before the bytes of
//! the numbers that they announce. Zeros at the end may be left out.
//!
//! Numbers that are about as large (`groups`) take as many bytes each as the largest needs, and three bits say how many;
//! or they stand in a row whose length is known, and one bit says so.

/// Bits that stand together.
const GROUP: u32 = 64;
const GROUP_BYTES: usize = 8;
/// A number with more bits stands behind an empty byte, as it is.
const MOST_BITS: u32 = 56;
const MOST_BYTES: usize = 9;
/// Bits that say how many bytes numbers take that are alike, and how many numbers those may be.
const WIDTH_BITS: u32 = 3;
const MOST_ALIKE: usize = 8;
/// The longest row.
pub(super) const MOST_ROW: usize = 64;
/// What each of 64 bits may announce, if it were a row's.
const GROUP_ROOM: usize = GROUP as usize * MOST_ROW;
const _: () = assert!(GROUP as usize * MOST_BYTES <= GROUP_ROOM);
const _: () = assert!((GROUP / WIDTH_BITS + 1) as usize * MOST_ALIKE * 8 <= GROUP_ROOM);

#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// The end of what was written; beyond it `out` holds anything.
    end: usize,
    bits: u64,
    filled: u32,
    bits_at: usize,
}

impl<'a> Writer<'a> {
    /// `out` is scratch: what it holds is written over.
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        let mut writer = Writer {
            out,
            end: GROUP_BYTES,
            bits: 0,
            filled: 0,
            bits_at: 0,
        };
        writer.room(GROUP_BYTES + GROUP_ROOM);
        writer
    }

    #[inline]
    pub(super) fn flag(&mut self, set: bool) {
        self.bits |= u64::from(set) << self.filled;
        self.filled += 1;
        if self.filled == GROUP {
            self.next_group();
        }
    }

    #[inline]
    pub(super) fn number(&mut self, number: u64) {
        self.flag(number != 0);
        if number != 0 {
            self.more(number);
        }
    }

    /// The lowest `count` bits, others being 0.
    #[inline]
    pub(super) fn bits(&mut self, bits: u64, count: u32) {
        self.bits |= bits << self.filled;
        self.filled += count;
        if self.filled >= GROUP {
            self.bits_beyond(bits, count);
        }
    }

    /// So many of the bits belong to the next 64.
    #[cold]
    fn bits_beyond(&mut self, bits: u64, count: u32) {
        let beyond = self.filled - GROUP;
        self.next_group();
        (self.bits, self.filled) = (if beyond > 0 { bits >> (count - beyond) } else { 0 }, beyond);
    }

    /// So many bytes to be filled.
    #[inline(always)]
    pub(super) fn row(&mut self, len: usize) -> Option<&mut [u8]> {
        let (start, end) = (self.end, self.end + len);
        self.end = end;
        self.out.get_mut(start..end)
    }

    /// All as wide as the largest.
    pub(super) fn alike(&mut self, numbers: &[u64]) {
        let all = numbers.iter().fold(0, |all, number| all | number);
        let code = (u64::BITS - all.leading_zeros()).div_ceil(8).min(7);
        self.bits(code.into(), WIDTH_BITS);
        if code > 0 {
            for number in numbers {
                self.word(self.end, *number);
                self.end += width_of(code);
            }
        }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let end = self.end + bytes.len();
        self.room(end + GROUP_ROOM);
        if let Some(place) = self.out.get_mut(self.end..end) {
            place.copy_from_slice(bytes);
        }
        self.end = end;
    }

    /// All that was written, `sparse`: without the zeros at the end.
    pub(super) fn finish(mut self, sparse: bool) -> &'a [u8] {
        self.next_group();
        let written = self.out.get(..self.bits_at).unwrap_or_default();
        if !sparse {
            return written;
        }
        let end = written.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        written.get(..end).unwrap_or_default()
    }

    fn more(&mut self, number: u64) {
        let bits = u64::BITS - number.leading_zeros();
        if bits > MOST_BITS {
            return self.whole(number);
        }
        let bytes = (bits * 9 + 64) / 64; // seven bits a byte
        self.word(self.end, (number << 1 | 1) << (bytes - 1));
        self.end += bytes as usize;
    }

    #[cold]
    fn whole(&mut self, number: u64) {
        self.word(self.end, 0);
        self.word(self.end + 1, number);
        self.end += MOST_BYTES;
    }

    /// Ends a group and leaves room for the next one.
    #[cold]
    fn next_group(&mut self) {
        self.word(self.bits_at, self.bits);
        (self.bits, self.filled, self.bits_at) = (0, 0, self.end);
        self.end += GROUP_BYTES;
        self.room(self.end + GROUP_ROOM);
    }

    /// Eight bytes at once, of which fewer may count.
    #[inline(always)]
    fn word(&mut self, at: usize, word: u64) {
        if let Some(place) = self.out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *place = word.to_le_bytes();
        }
    }

    fn room(&mut self, end: usize) {
        if self.out.len() < end {
            self.out.resize(end.next_power_of_two(), 0);
        }
    }
}

/// 0 to 6 bytes, or 8.
fn width_of(code: u32) -> usize {
    if code > 6 { 8 } else { code as usize }
}

#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    bits: u64,
    left: u32,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut reader = Reader {
            rest: bytes,
            bits: 0,
            left: 0,
        };
        reader.next_group();
        reader
    }

    #[inline]
    pub(super) fn flag(&mut self) -> bool {
        let set = self.bits & 1 != 0;
        self.bits >>= 1;
        self.left -= 1;
        if self.left == 0 {
            self.next_group();
        }
        set
    }

    #[inline]
    pub(super) fn number(&mut self) -> u64 {
        if self.flag() { self.more() } else { 0 }
    }

    #[inline]
    pub(super) fn bits(&mut self, count: u32) -> u64 {
        let bits = self.bits & !(u64::MAX << count);
        if count < self.left {
            self.bits >>= count;
            self.left -= count;
            bits
        } else {
            self.bits_beyond(bits, count)
        }
    }

    #[cold]
    fn bits_beyond(&mut self, bits: u64, count: u32) -> u64 {
        let (had, beyond) = (self.left, count - self.left);
        self.next_group();
        let more = self.bits & !(u64::MAX << beyond);
        self.bits >>= beyond;
        self.left -= beyond;
        if beyond > 0 { bits | more << had } else { bits }
    }

    /// The next bytes, where there are so many.
    #[inline(always)]
    pub(super) fn row(&mut self, len: usize) -> Option<&'a [u8]> {
        let (row, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(row)
    }

    /// The last bytes, with the zeros that were left out.
    #[cold]
    pub(super) fn last_row(&mut self) -> [u8; MOST_ROW] {
        let mut row = [0; MOST_ROW];
        row.iter_mut()
            .zip(self.rest)
            .for_each(|(place, byte)| *place = *byte);
        self.rest = &[];
        row
    }

    pub(super) fn alike(&mut self, numbers: &mut [u64]) {
        let code = self.bits(WIDTH_BITS) as u32;
        if code > 0 {
            let width = width_of(code);
            for number in numbers {
                *number = self.word() & u64::MAX >> (u64::BITS - 8 * width as u32);
                self.skip(width);
            }
        }
    }

    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = self.rest.get(..len).unwrap_or(self.rest).to_vec();
        self.skip(len);
        bytes.resize(len, 0);
        bytes
    }

    fn more(&mut self) -> u64 {
        let word = self.word();
        let bytes = word.trailing_zeros() + 1;
        if bytes > u64::BITS / 8 {
            return self.whole();
        }
        self.skip(bytes as usize);
        word >> bytes & u64::MAX >> (u64::BITS - 7 * bytes)
    }

    #[cold]
    fn whole(&mut self) -> u64 {
        self.skip(1);
        let number = self.word();
        self.skip(MOST_BYTES - 1);
        number
    }

    #[cold]
    fn next_group(&mut self) {
        (self.bits, self.left) = (self.word(), GROUP);
        self.skip(GROUP_BYTES);
    }

    /// The next eight bytes.
    #[inline]
    fn word(&self) -> u64 {
        match self.rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => self.last_word(),
        }
    }

    #[cold]
    fn last_word(&self) -> u64 {
        self.rest
            .iter()
            .rfold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    #[inline]
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }
}
