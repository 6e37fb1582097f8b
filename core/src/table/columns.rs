//! Columns that grow a value at a time: what the long tables fill without a detour over rows.

use std::sync::Arc;

use ahash::AHashMap;
use arrow_array::builder::StringBuilder;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};

use super::{BATCH_ROWS, Column, column, nullable};

/// Values of a column without nulls.
pub struct Full<T: ArrowPrimitiveType>(Vec<T::Native>);

impl<T: ArrowPrimitiveType> Default for Full<T> {
    fn default() -> Self {
        Full(Vec::with_capacity(BATCH_ROWS))
    }
}

impl<T: ArrowPrimitiveType> Full<T> {
    /// One value a row: room is made once.
    #[inline]
    pub fn extend<R>(&mut self, rows: &[R], of: impl Fn(&R) -> T::Native) {
        self.0.extend(rows.iter().map(of));
    }

    pub fn take(&mut self) -> PrimitiveArray<T> {
        PrimitiveArray::new(ScalarBuffer::from(std::mem::take(self).0), None)
    }

    pub fn column(&mut self, name: impl Into<String>) -> Column {
        column(name, Arc::new(self.take()))
    }
}

/// Rows that are kept as they came before they become columns: so many that they stay in the innermost cache, and
/// as many as a word of `Bits` has room for.
pub const BLOCK_ROWS: usize = 64;

/// Bits, packed as they come: a builder that checks its room once in 64 values.
#[derive(Default)]
pub struct Bits {
    words: Vec<u64>,
    last: u64,
    len: usize,
}

impl Bits {
    #[inline(always)]
    fn push(&mut self, bit: bool) {
        self.last |= u64::from(bit) << (self.len % 64);
        self.len += 1;
        if self.len.is_multiple_of(64) {
            self.words.push(std::mem::take(&mut self.last));
        }
    }

    /// One bit a row, for blocks of `BLOCK_ROWS`; only the last one may be shorter.
    #[inline]
    pub fn extend<R>(&mut self, rows: &[R], of: impl Fn(&R) -> bool) {
        let bits = rows
            .iter()
            .rev()
            .fold(0, |word, row| word << 1 | u64::from(of(row)));
        self.word(bits, rows.len());
    }

    #[inline]
    fn word(&mut self, bits: u64, len: usize) {
        self.len += len;
        if len == BLOCK_ROWS {
            self.words.push(bits);
        } else {
            self.last = bits;
        }
    }

    pub fn take(&mut self) -> BooleanBuffer {
        let Bits { mut words, last, len } = std::mem::take(self);
        words.push(last);
        BooleanBuffer::new(Buffer::from_vec(words), 0, len)
    }
}

/// Values of a column with nulls.
pub struct Sparse<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    valid: Bits,
}

impl<T: ArrowPrimitiveType> Default for Sparse<T> {
    fn default() -> Self {
        Sparse {
            values: Vec::with_capacity(BATCH_ROWS),
            valid: Bits::default(),
        }
    }
}

impl<T: ArrowPrimitiveType> Sparse<T> {
    #[inline(always)]
    pub fn push(&mut self, value: Option<T::Native>) {
        self.values.push(value.unwrap_or_default());
        self.valid.push(value.is_some());
    }

    /// One value a row, for blocks of `BLOCK_ROWS`; only the last one may be shorter.
    #[inline]
    pub fn extend<R>(&mut self, rows: &[R], mut of: impl FnMut(&R) -> Option<T::Native>) {
        let mut valid = 0;
        self.values.extend(rows.iter().enumerate().map(|(index, row)| {
            let value = of(row);
            valid |= u64::from(value.is_some()) << (index % BLOCK_ROWS);
            value.unwrap_or_default()
        }));
        self.valid.word(valid, rows.len());
    }

    pub fn take(&mut self) -> PrimitiveArray<T> {
        let mut whole = std::mem::take(self);
        PrimitiveArray::new(
            ScalarBuffer::from(whole.values),
            Some(NullBuffer::new(whole.valid.take())),
        )
    }

    pub fn column(&mut self, name: impl Into<String>) -> Column {
        nullable(name, Arc::new(self.take()))
    }
}

/// Takes a batch's values and leaves room for as many.
pub fn renewed<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(values.len().max(BATCH_ROWS));
    std::mem::replace(values, room)
}

/// Values of a column that is nearly always null.
pub struct Rare<T: ArrowPrimitiveType> {
    set: Vec<(usize, T::Native)>,
}

impl<T: ArrowPrimitiveType> Default for Rare<T> {
    fn default() -> Self {
        Rare { set: Vec::new() }
    }
}

impl<T: ArrowPrimitiveType> Rare<T> {
    #[inline(always)]
    pub fn push(&mut self, row: usize, value: Option<T::Native>) {
        if let Some(value) = value {
            self.set.push((row, value));
        }
    }

    pub fn column(&mut self, rows: usize, name: &str) -> Column {
        if self.set.is_empty() {
            return nullable(name, Arc::new(PrimitiveArray::<T>::new_null(rows)));
        }
        let mut values: Vec<Option<T::Native>> = vec![None; rows];
        for (row, value) in self.set.drain(..) {
            if let Some(slot) = values.get_mut(row) {
                *slot = Some(value);
            }
        }
        nullable(name, Arc::new(PrimitiveArray::<T>::from_iter(values)))
    }
}

/// Instants in UTC.
pub fn instants(values: &mut Full<TimestampNanosecondType>, name: &str) -> Column {
    column(name, Arc::new(values.take().with_timezone("UTC")))
}

/// Instants in UTC, some unknown.
pub fn some_instants(values: &mut Sparse<TimestampNanosecondType>, name: &str) -> Column {
    nullable(name, Arc::new(values.take().with_timezone("UTC")))
}

/// Words from lists in this crate, told apart by where they lie.
#[derive(Default)]
pub struct Fixed {
    keys: Sparse<Int32Type>,
    words: Vec<&'static str>,
}

impl Fixed {
    pub fn push(&mut self, word: Option<&'static str>) {
        let key = word.map(|word| key_of(&mut self.words, word));
        self.keys.push(key);
    }

    /// One word a row, for blocks of `BLOCK_ROWS`; only the last one may be shorter.
    #[inline]
    pub fn extend<R>(&mut self, rows: &[R], of: impl Fn(&R) -> Option<&'static str>) {
        let words = &mut self.words;
        self.keys
            .extend(rows, |row| of(row).map(|word| key_of(words, word)));
    }

    pub fn take(&mut self) -> ArrayRef {
        let words: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.words)));
        dictionary(self.keys.take(), words)
    }
}

#[inline(always)]
fn key_of(words: &mut Vec<&'static str>, word: &'static str) -> i32 {
    let same = |w: &&str| std::ptr::eq(w.as_ptr(), word.as_ptr()) && w.len() == word.len();
    words.iter().position(same).unwrap_or_else(|| {
        words.push(word);
        words.len() - 1
    }) as i32
}

/// Words of a list by their place in it; only those that occur become words of the batch.
pub struct Listed<const N: usize> {
    keys: Sparse<Int32Type>,
    known: [Option<i32>; N],
    words: Vec<&'static str>,
}

impl<const N: usize> Default for Listed<N> {
    fn default() -> Self {
        Listed {
            keys: Sparse::default(),
            known: [None; N],
            words: Vec::new(),
        }
    }
}

impl<const N: usize> Listed<N> {
    /// One place a row, for blocks of `BLOCK_ROWS`; only the last one may be shorter.
    #[inline]
    pub fn extend<R>(
        &mut self,
        rows: &[R],
        of: impl Fn(&R) -> Option<usize>,
        word: impl Fn(usize) -> &'static str,
    ) {
        let (known, words) = (&mut self.known, &mut self.words);
        self.keys.extend(rows, |row| {
            let place = of(row)?;
            let key = known.get_mut(place)?;
            Some(*key.get_or_insert_with(|| {
                words.push(word(place));
                words.len() as i32 - 1
            }))
        });
    }

    pub fn take(&mut self) -> ArrayRef {
        let mut whole = std::mem::take(self);
        dictionary(whole.keys.take(), Arc::new(StringArray::from(whole.words)))
    }
}

/// Texts from the capture that differ.
#[derive(Default)]
pub struct Texts(StringBuilder);

impl Texts {
    pub fn push(&mut self, text: Option<&str>) {
        self.0.append_option(text);
    }

    pub fn take(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// Words from the capture that repeat.
#[derive(Default)]
pub struct Heard {
    keys: Sparse<Int32Type>,
    known: AHashMap<String, i32>,
    words: Vec<String>,
    /// Of the newest word, which most often comes again.
    last: usize,
}

impl Heard {
    pub fn push(&mut self, word: Option<&str>) {
        let key = word.map(|word| self.key(word));
        self.keys.push(key);
    }

    fn key(&mut self, word: &str) -> i32 {
        if self.words.get(self.last).is_none_or(|last| last != word) {
            self.last = match self.known.get(word) {
                Some(key) => *key as usize,
                None => {
                    let key = self.words.len();
                    self.words.push(word.to_string());
                    self.known.insert(word.to_string(), key as i32);
                    key
                }
            };
        }
        self.last as i32
    }

    pub fn take(&mut self) -> ArrayRef {
        self.known.clear();
        let words: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.words)));
        dictionary(self.keys.take(), words)
    }
}

/// Words by their number in a list. The numbers are ours, so they are in range.
pub fn dictionary(keys: Int32Array, values: ArrayRef) -> ArrayRef {
    match DictionaryArray::<Int32Type>::try_new(keys, values) {
        Ok(array) => Arc::new(array),
        Err(_) => Arc::new(DictionaryArray::<Int32Type>::from_iter(std::iter::empty::<&str>())),
    }
}
