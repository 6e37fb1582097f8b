//! Columns of one batch of the long tables, filled by row. Which rows have a value in columns with nulls is kept by
//! row, a bit a column, until the batch is built.

use std::sync::Arc;

use ahash::AHashMap;
use arrow_array::builder::StringBuilder;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, PrimitiveArray, StringArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};

use super::{BATCH_ROWS, Column, column, nullable};

/// Slots are cleared for so many rows at once, just before they are filled: in the innermost cache.
const STEP: usize = 128;

/// One value a row of a batch; 0 where none was set.
struct Slots<V>(Vec<V>);

impl<V> Default for Slots<V> {
    fn default() -> Self {
        Slots(Vec::new())
    }
}

impl<V: ArrowNativeType> Slots<V> {
    #[inline(always)]
    fn set(&mut self, row: usize, value: V) {
        match self.0.get_mut(row) {
            Some(slot) => *slot = value,
            None => self.set_first(row, value),
        }
    }

    #[cold]
    #[inline(never)]
    fn set_first(&mut self, row: usize, value: V) {
        if self.0.capacity() == 0 {
            self.0.reserve_exact(BATCH_ROWS);
        }
        self.0.resize(row - row % STEP + STEP, V::default());
        if let Some(slot) = self.0.get_mut(row) {
            *slot = value;
        }
    }

    fn take(&mut self, rows: usize) -> Vec<V> {
        let mut values = std::mem::take(&mut self.0);
        values.resize(rows, V::default());
        if rows < BATCH_ROWS {
            values.shrink_to_fit();
        }
        values
    }
}

/// Values of a column.
pub struct Full<T: ArrowPrimitiveType>(Slots<T::Native>);

impl<T: ArrowPrimitiveType> Default for Full<T> {
    fn default() -> Self {
        Full(Slots::default())
    }
}

impl<T: ArrowPrimitiveType> Full<T> {
    #[inline(always)]
    pub fn set(&mut self, row: usize, value: T::Native) {
        self.0.set(row, value);
    }

    pub fn take(&mut self, rows: usize) -> PrimitiveArray<T> {
        PrimitiveArray::new(ScalarBuffer::from(self.0.take(rows)), None)
    }

    pub fn column(&mut self, rows: usize, name: &str) -> Column {
        column(name, Arc::new(self.take(rows)))
    }

    /// Values only where `nulls` says so.
    pub fn array(&mut self, nulls: NullBuffer) -> PrimitiveArray<T> {
        let values = ScalarBuffer::from(self.0.take(nulls.len()));
        PrimitiveArray::new(values, Some(nulls))
    }

    pub fn some(&mut self, nulls: NullBuffer, name: &str) -> Column {
        nullable(name, Arc::new(self.array(nulls)))
    }
}

/// Bits by row.
#[derive(Default)]
pub struct Masks(Slots<u32>);

impl Masks {
    #[inline(always)]
    pub fn set(&mut self, row: usize, mask: u32) {
        self.0.set(row, mask);
    }

    pub fn take(&mut self, rows: usize) -> Taken {
        let masks = self.0.take(rows);
        let any = masks.iter().fold(0, |any, mask| any | mask);
        let all = masks.iter().fold(u32::MAX, |all, mask| all & mask);
        Taken { masks, any, all }
    }
}

/// The bits of a batch.
pub struct Taken {
    masks: Vec<u32>,
    any: u32,
    all: u32,
}

impl Taken {
    /// Whether a row has this bit; most bits are alike in all rows.
    fn bits(&self, bit: u32) -> BooleanBuffer {
        if self.any & bit == 0 {
            return BooleanBuffer::new_unset(self.masks.len());
        }
        if self.all & bit != 0 {
            return BooleanBuffer::new_set(self.masks.len());
        }
        let word = |masks: &[u32]| {
            let last_first = masks.iter().rev();
            last_first.fold(0u64, |word, mask| word << 1 | u64::from(mask & bit != 0))
        };
        let words: Vec<u64> = self.masks.chunks(64).map(word).collect();
        BooleanBuffer::new(Buffer::from_vec(words), 0, self.masks.len())
    }

    pub fn booleans(&self, bit: u32) -> ArrayRef {
        Arc::new(BooleanArray::new(self.bits(bit), None))
    }

    /// Only where `known` says so.
    pub fn some_booleans(&self, bit: u32, known: u32) -> BooleanArray {
        BooleanArray::new(self.bits(bit), Some(self.nulls(known)))
    }

    pub fn nulls(&self, bit: u32) -> NullBuffer {
        NullBuffer::new(self.bits(bit))
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
pub fn instants(values: &mut Full<TimestampNanosecondType>, rows: usize, name: &str) -> Column {
    column(name, Arc::new(values.take(rows).with_timezone("UTC")))
}

/// Instants in UTC, some unknown.
pub fn some_instants(values: &mut Full<TimestampNanosecondType>, nulls: NullBuffer, name: &str) -> Column {
    nullable(name, Arc::new(values.array(nulls).with_timezone("UTC")))
}

/// Words from lists in this crate, told apart by where they lie.
#[derive(Default)]
pub struct Fixed {
    keys: Full<Int32Type>,
    words: Vec<&'static str>,
}

impl Fixed {
    #[inline(always)]
    pub fn set(&mut self, row: usize, word: &'static str) {
        self.keys.set(row, key_of(&mut self.words, word));
    }

    /// A word in every row, or only where `nulls` says so.
    pub fn take(&mut self, rows: usize, nulls: Option<NullBuffer>) -> ArrayRef {
        let words: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.words)));
        keyed(&mut self.keys, rows, nulls, words)
    }
}

/// The word's number among those that have come so far.
#[inline(always)]
pub fn key_of(words: &mut Vec<&'static str>, word: &'static str) -> i32 {
    let same = |w: &&str| std::ptr::eq(w.as_ptr(), word.as_ptr()) && w.len() == word.len();
    words.iter().position(same).unwrap_or_else(|| {
        words.push(word);
        words.len() - 1
    }) as i32
}

/// Words of a list by their place in it; only those that occur become words of the batch.
pub struct Listed<const N: usize> {
    keys: Full<Int32Type>,
    known: [Option<i32>; N],
    words: Vec<&'static str>,
}

impl<const N: usize> Default for Listed<N> {
    fn default() -> Self {
        Listed {
            keys: Full::default(),
            known: [None; N],
            words: Vec::new(),
        }
    }
}

impl<const N: usize> Listed<N> {
    #[inline(always)]
    pub fn set(&mut self, row: usize, place: usize, word: impl Fn(usize) -> &'static str) {
        let Some(key) = self.known.get_mut(place) else {
            return;
        };
        let key = *key.get_or_insert_with(|| {
            self.words.push(word(place));
            self.words.len() as i32 - 1
        });
        self.keys.set(row, key);
    }

    /// A word in every row, or only where `nulls` says so.
    pub fn take(&mut self, rows: usize, nulls: Option<NullBuffer>) -> ArrayRef {
        self.known = [None; N];
        let words: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.words)));
        keyed(&mut self.keys, rows, nulls, words)
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
    keys: Full<Int32Type>,
    known: AHashMap<String, i32>,
    words: Vec<String>,
    /// Of the newest word, which most often comes again.
    last: usize,
}

impl Heard {
    pub fn set(&mut self, row: usize, word: &str) {
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
        self.keys.set(row, self.last as i32);
    }

    pub fn take(&mut self, nulls: NullBuffer) -> ArrayRef {
        self.known.clear();
        let words: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.words)));
        keyed(&mut self.keys, nulls.len(), Some(nulls), words)
    }
}

fn keyed(keys: &mut Full<Int32Type>, rows: usize, nulls: Option<NullBuffer>, words: ArrayRef) -> ArrayRef {
    dictionary(
        Int32Array::new(ScalarBuffer::from(keys.0.take(rows)), nulls),
        words,
    )
}

/// Words by their number in a list. The numbers are ours, so they are in range.
pub fn dictionary(keys: Int32Array, values: ArrayRef) -> ArrayRef {
    match DictionaryArray::<Int32Type>::try_new(keys, values) {
        Ok(array) => Arc::new(array),
        Err(_) => Arc::new(DictionaryArray::<Int32Type>::from_iter(std::iter::empty::<&str>())),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::types::UInt32Type;

    use super::*;

    #[test]
    fn rows_without_a_value_are_null_and_the_next_batch_begins_empty() {
        let (mut values, mut masks) = (Full::<UInt32Type>::default(), Masks::default());
        for rows in [1, 64, 65, STEP + 1, BATCH_ROWS] {
            for row in (0..rows).step_by(3) {
                values.set(row, row as u32 + 1);
                masks.set(row, 2);
            }
            let taken = masks.take(rows);
            let array = values.array(taken.nulls(2));
            let want: Vec<Option<u32>> = (0..rows)
                .map(|row| (row % 3 == 0).then_some(row as u32 + 1))
                .collect();
            assert_eq!(array.iter().collect::<Vec<_>>(), want);
            assert_eq!(taken.nulls(1).null_count(), rows, "a bit that no row has");
        }
        assert_eq!(values.take(3).values(), &[0, 0, 0]);
    }

    #[test]
    fn words_are_numbered_anew_in_each_batch() {
        let mut words = Listed::<3>::default();
        let name = |place| ["a", "b", "c"].get(place).copied().unwrap_or_default();
        for (place, want) in [(2, "c"), (0, "a")] {
            words.set(0, place, name);
            let array = words.take(1, None);
            let array = array.as_any().downcast_ref::<DictionaryArray<Int32Type>>();
            let texts = array.and_then(|a| {
                a.downcast_dict::<StringArray>()
                    .map(|d| d.into_iter().collect::<Vec<_>>())
            });
            assert_eq!(texts, Some(vec![Some(want)]));
        }
    }
}
