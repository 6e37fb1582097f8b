//! Columns of words and texts in the long tables. Words are dictionary-encoded: each is kept once per batch, numbered
//! in the order of its first row.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use ahash::AHashMap;
use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use smol_str::SmolStr;

use super::columns::{BatchBits, ColumnBuffer, EVERY_ROW, FlushedBlock, Values, zeros};
use super::{BATCH_ROWS, Column, column, nullable};

/// A column in which every row has the first word. Shared, so that its keys are validated only once.
static FIRST_WORD: LazyLock<DictionaryArray<Int32Type>> = LazyLock::new(|| {
    let word = Arc::new(StringArray::from(vec![""]));
    DictionaryArray::new(Int32Array::new(zeros(BATCH_ROWS), None), word)
});

/// Words that are constants of this crate and have no code; null in rows without `BIT`.
pub struct StaticWords<const BIT: u32> {
    keys: Values<i32>,
    words: Vec<&'static str>,
    /// A cache of keys, indexed by the lowest byte of the word's address in memory. A hit is confirmed by comparing the
    /// addresses.
    cache: [i32; 1 << u8::BITS],
}

impl<const BIT: u32> Default for StaticWords<BIT> {
    fn default() -> Self {
        StaticWords {
            keys: Values::default(),
            words: Vec::new(),
            cache: [0; 1 << u8::BITS],
        }
    }
}

impl<const BIT: u32> StaticWords<BIT> {
    #[inline(always)]
    pub fn set(&mut self, slot: usize, word: &'static str) {
        if let Some(key) = self.cache.get_mut(usize::from(word.as_ptr().addr() as u8)) {
            let cached = self.words.get(*key as usize);
            if !cached.is_some_and(|cached| std::ptr::eq(*cached, word)) {
                *key = key_of(&mut self.words, word);
            }
            self.keys.set(slot, *key);
        }
    }

    /// Sets the word if there is one. Returns the column's bit then, else 0.
    #[inline(always)]
    pub fn set_some(&mut self, slot: usize, word: Option<&'static str>) -> u32 {
        let Some(word) = word else {
            return 0;
        };
        self.set(slot, word);
        BIT
    }
}

impl<const BIT: u32> ColumnBuffer for StaticWords<BIT> {
    fn flush_block(&mut self, block: &FlushedBlock) {
        flush_keys::<BIT>(&mut self.keys, block, self.words.len());
    }

    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let words: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.words)));
        columns.push(dictionary_column::<BIT>(&mut self.keys, bits, words, name));
    }
}

/// Returns the index of `word` in `words`, and appends it if it is not there.
fn key_of(words: &mut Vec<&'static str>, word: &'static str) -> i32 {
    words.iter().position(|other| *other == word).unwrap_or_else(|| {
        words.push(word);
        words.len() - 1
    }) as i32
}

/// Words by their code, which is below `N`; null in rows without `BIT`. Only words that occur enter the dictionary.
pub struct CodedWords<const N: usize, const BIT: u32> {
    keys: Values<i32>,
    /// The key of each code; negative if it has not occurred in this batch.
    key_by_code: [i32; N],
    words: Vec<Cow<'static, str>>,
}

impl<const N: usize, const BIT: u32> Default for CodedWords<N, BIT> {
    fn default() -> Self {
        CodedWords {
            keys: Values::default(),
            key_by_code: [-1; N],
            words: Vec::new(),
        }
    }
}

impl<const N: usize, const BIT: u32> CodedWords<N, BIT> {
    #[inline(always)]
    pub fn set<W: Into<Cow<'static, str>>>(&mut self, slot: usize, code: usize, word: impl Fn(usize) -> W) {
        let seen_key = self.key_by_code.get(code).copied().filter(|key| *key >= 0);
        let key = seen_key.unwrap_or_else(|| self.add_word(code, word));
        self.keys.set(slot, key);
    }

    /// Sets a code and its word if there is one. Returns the column's bit then, else 0.
    #[inline(always)]
    pub fn set_some(&mut self, slot: usize, word: Option<(usize, &'static str)>) -> u32 {
        let Some((code, word)) = word else {
            return 0;
        };
        self.set(slot, code, |_| word);
        BIT
    }

    #[cold]
    #[inline(never)]
    fn add_word<W: Into<Cow<'static, str>>>(&mut self, code: usize, word: impl Fn(usize) -> W) -> i32 {
        let key = self.words.len() as i32;
        if let Some(slot) = self.key_by_code.get_mut(code) {
            *slot = key;
            self.words.push(word(code).into());
        }
        key
    }
}

impl<const N: usize, const BIT: u32> ColumnBuffer for CodedWords<N, BIT> {
    fn flush_block(&mut self, block: &FlushedBlock) {
        flush_keys::<BIT>(&mut self.keys, block, self.words.len());
    }

    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        self.key_by_code = [-1; N];
        let words = StringArray::from_iter_values(self.words.drain(..));
        columns.push(dictionary_column::<BIT>(
            &mut self.keys,
            bits,
            Arc::new(words),
            name,
        ));
    }
}

/// Texts that rarely repeat: a string column without a dictionary. With `NULLS` false, every row has a text.
#[derive(Default)]
pub struct Texts<const NULLS: bool = true> {
    texts: StringBuilder,
    /// Number of rows up to and including the last one with a text.
    rows: usize,
}

impl<const NULLS: bool> Texts<NULLS> {
    /// Sets the text of a row, which is counted from the first of the batch. Rows without a text cost nothing.
    #[inline(always)]
    pub fn set(&mut self, row: usize, text: Option<&str>) {
        if let Some(text) = text {
            self.append(row, text);
        }
    }

    fn append(&mut self, row: usize, text: &str) {
        self.fill_nulls(row);
        self.texts.append_value(text);
        self.rows = row + 1;
    }

    /// Appends nulls until there are `rows` rows.
    fn fill_nulls(&mut self, rows: usize) {
        if rows > self.rows {
            self.texts.append_nulls(rows - self.rows);
        }
    }
}

impl<const NULLS: bool> ColumnBuffer for Texts<NULLS> {
    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        self.fill_nulls(bits.rows());
        self.rows = 0;
        let texts = Arc::new(self.texts.finish());
        columns.push(if NULLS {
            nullable(name, texts)
        } else {
            column(name, texts)
        });
    }
}

/// Words from the capture that repeat; null in rows without `BIT`.
#[derive(Default)]
pub struct CaptureWords<const BIT: u32> {
    keys: Values<i32>,
    key_by_word: AHashMap<SmolStr, i32>,
    words: Vec<String>,
    /// The word of the row before and its key: consecutive rows often have the same word.
    last: (SmolStr, i32),
}

impl<const BIT: u32> CaptureWords<BIT> {
    #[inline(always)]
    pub fn set(&mut self, slot: usize, word: &SmolStr) {
        if self.last.0 != *word || self.words.is_empty() {
            self.last = (word.clone(), self.key(word));
        }
        self.keys.set(slot, self.last.1);
    }

    /// Sets the word if there is one. Returns the column's bit then, else 0.
    #[inline(always)]
    pub fn set_some(&mut self, slot: usize, word: Option<&SmolStr>) -> u32 {
        let Some(word) = word else {
            return 0;
        };
        self.set(slot, word);
        BIT
    }

    #[cold]
    #[inline(never)]
    fn key(&mut self, word: &SmolStr) -> i32 {
        let words = &mut self.words;
        *self.key_by_word.entry(word.clone()).or_insert_with(|| {
            words.push(word.to_string());
            words.len() as i32 - 1
        })
    }
}

impl<const BIT: u32> ColumnBuffer for CaptureWords<BIT> {
    fn flush_block(&mut self, block: &FlushedBlock) {
        flush_keys::<BIT>(&mut self.keys, block, self.words.len());
    }

    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        self.key_by_word.clear();
        let words: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.words)));
        columns.push(dictionary_column::<BIT>(&mut self.keys, bits, words, name));
    }
}

/// Flushes a block of keys. While the batch has only one word, all keys are 0 and need not be kept.
fn flush_keys<const BIT: u32>(keys: &mut Values<i32>, block: &FlushedBlock, words: usize) {
    if words < 2 {
        return;
    }
    if BIT == EVERY_ROW {
        keys.flush_padded(block);
    } else {
        keys.flush_optional(block, block.any_bits & BIT != 0);
    }
}

/// Builds a dictionary column; nullable unless every row sets it.
fn dictionary_column<const BIT: u32>(
    keys: &mut Values<i32>,
    bits: &BatchBits,
    words: ArrayRef,
    name: Cow<'static, str>,
) -> Column {
    let nulls = bits.nulls(BIT);
    let values = if words.len() == 1 && nulls.is_none() {
        Arc::new(
            FIRST_WORD
                .slice(0, bits.rows().min(BATCH_ROWS))
                .with_values(words),
        )
    } else {
        dictionary(Int32Array::new(keys.take(bits.rows()), nulls), words)
    };
    if BIT == EVERY_ROW {
        column(name, values)
    } else {
        nullable(name, values)
    }
}

/// Builds a dictionary array. The keys were made for these words, so they are in range and this does not fail.
pub fn dictionary(keys: Int32Array, values: ArrayRef) -> ArrayRef {
    match DictionaryArray::<Int32Type>::try_new(keys, values) {
        Ok(array) => Arc::new(array),
        Err(_) => Arc::new(DictionaryArray::<Int32Type>::from_iter(std::iter::empty::<&str>())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::batch_columns;
    use super::*;

    batch_columns! {
        struct Columns {
            word: CodedWords<3, EVERY_ROW> = "word",
        }
    }

    #[test]
    fn words_are_numbered_anew_in_each_batch() {
        let mut columns = Columns::default();
        let name = |index| ["a", "b", "c"].get(index).copied().unwrap_or_default();
        for (word, want) in [(2, "c"), (0, "a")] {
            let slot = columns.slot();
            columns.word.set(slot, word, name);
            columns.end_row(slot);
            let bits = columns.end_batch();
            let built = columns.build(&bits, "");
            let array = built.first().and_then(|column| {
                column
                    .values
                    .as_any()
                    .downcast_ref::<DictionaryArray<Int32Type>>()
            });
            let texts = array.and_then(|array| {
                array
                    .downcast_dict::<StringArray>()
                    .map(|texts| texts.into_iter().collect::<Vec<_>>())
            });
            assert_eq!(texts, Some(vec![Some(want)]));
        }
    }
}
