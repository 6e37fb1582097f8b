//! Columns of words, which are kept once a batch and numbered in the order in which they come, and of texts.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use ahash::AHashMap;
use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use smol_str::SmolStr;

use super::columns::{Block, EVERY, Moved, Slots, Taken, zeros};
use super::{BATCH_ROWS, Column, column, nullable};

/// Words from lists in this crate that have no code; of the rows with `BIT`.
pub struct Fixed<const BIT: u32> {
    keys: Slots<i32>,
    words: Vec<&'static str>,
    /// A key by the lowest bits of the word's address, where most rows find theirs: a guess, which the word confirms.
    near: [i32; 1 << u8::BITS],
}

impl<const BIT: u32> Default for Fixed<BIT> {
    fn default() -> Self {
        Fixed {
            keys: Slots::default(),
            words: Vec::new(),
            near: [0; 1 << u8::BITS],
        }
    }
}

impl<const BIT: u32> Fixed<BIT> {
    #[inline(always)]
    pub fn set(&mut self, row: usize, word: &'static str) {
        if let Some(key) = self.near.get_mut(usize::from(word.as_ptr().addr() as u8)) {
            let known = self.words.get(*key as usize);
            if !known.is_some_and(|known| std::ptr::eq(*known, word)) {
                *key = key_of(&mut self.words, word);
            }
            self.keys.set(row, *key);
        }
    }

    /// Gives the row's bit if there is a word.
    #[inline(always)]
    pub fn set_some(&mut self, row: usize, word: Option<&'static str>) -> u32 {
        let Some(word) = word else {
            return 0;
        };
        self.set(row, word);
        BIT
    }
}

impl<const BIT: u32> Block for Fixed<BIT> {
    fn keep(&mut self, moved: &Moved) {
        keep::<BIT>(&mut self.keys, moved, self.words.len());
    }

    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let words: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.words)));
        columns.push(keyed::<BIT>(&mut self.keys, taken, words, name));
    }
}

/// The word's number among those that have come so far.
pub fn key_of(words: &mut Vec<&'static str>, word: &'static str) -> i32 {
    words.iter().position(|known| *known == word).unwrap_or_else(|| {
        words.push(word);
        words.len() - 1
    }) as i32
}

/// Words by a code below `N`, of the rows with `BIT`; only those that occur become words of the batch.
pub struct Listed<const N: usize, const BIT: u32> {
    keys: Slots<i32>,
    /// By code; negative where it did not occur yet.
    known: [i32; N],
    words: Vec<Cow<'static, str>>,
}

impl<const N: usize, const BIT: u32> Default for Listed<N, BIT> {
    fn default() -> Self {
        Listed {
            keys: Slots::default(),
            known: [-1; N],
            words: Vec::new(),
        }
    }
}

impl<const N: usize, const BIT: u32> Listed<N, BIT> {
    #[inline(always)]
    pub fn set<W: Into<Cow<'static, str>>>(&mut self, row: usize, code: usize, word: impl Fn(usize) -> W) {
        let known = self.known.get(code).copied().filter(|key| *key >= 0);
        let key = known.unwrap_or_else(|| self.new_word(code, word));
        self.keys.set(row, key);
    }

    /// A code with its word, where there is one; gives the row's bit then.
    #[inline(always)]
    pub fn set_some(&mut self, row: usize, word: Option<(usize, &'static str)>) -> u32 {
        let Some((code, word)) = word else {
            return 0;
        };
        self.set(row, code, |_| word);
        BIT
    }

    /// A word that has not come before in this batch.
    #[cold]
    #[inline(never)]
    fn new_word<W: Into<Cow<'static, str>>>(&mut self, code: usize, word: impl Fn(usize) -> W) -> i32 {
        let key = self.words.len() as i32;
        if let Some(known) = self.known.get_mut(code) {
            *known = key;
            self.words.push(word(code).into());
        }
        key
    }
}

impl<const N: usize, const BIT: u32> Block for Listed<N, BIT> {
    fn keep(&mut self, moved: &Moved) {
        keep::<BIT>(&mut self.keys, moved, self.words.len());
    }

    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        self.known = [-1; N];
        let words = StringArray::from_iter_values(self.words.drain(..));
        columns.push(keyed::<BIT>(&mut self.keys, taken, Arc::new(words), name));
    }
}

/// Texts from the capture that differ; without `NULLS` every row has one.
#[derive(Default)]
pub struct Texts<const NULLS: bool = true> {
    texts: StringBuilder,
    /// Rows up to the last one that has a text.
    rows: usize,
}

impl<const NULLS: bool> Texts<NULLS> {
    /// The text of the batch's row with this number. Rows without one cost nothing.
    #[inline(always)]
    pub fn set(&mut self, row: usize, text: Option<&str>) {
        if let Some(text) = text {
            self.append(row, text);
        }
    }

    fn append(&mut self, row: usize, text: &str) {
        self.fill(row);
        self.texts.append_value(text);
        self.rows = row + 1;
    }

    fn fill(&mut self, rows: usize) {
        if rows > self.rows {
            self.texts.append_nulls(rows - self.rows);
        }
    }
}

impl<const NULLS: bool> Block for Texts<NULLS> {
    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        self.fill(taken.rows());
        self.rows = 0;
        let texts = Arc::new(self.texts.finish());
        columns.push(if NULLS {
            nullable(name, texts)
        } else {
            column(name, texts)
        });
    }
}

/// Words from the capture that repeat, of the rows with `BIT`.
#[derive(Default)]
pub struct Interned<const BIT: u32> {
    keys: Slots<i32>,
    known: AHashMap<SmolStr, i32>,
    words: Vec<String>,
    /// The newest word, which most often comes again, and its key.
    last: (SmolStr, i32),
}

impl<const BIT: u32> Interned<BIT> {
    #[inline(always)]
    pub fn set(&mut self, row: usize, word: &SmolStr) {
        if self.last.0 != *word || self.words.is_empty() {
            self.last = (word.clone(), self.key(word));
        }
        self.keys.set(row, self.last.1);
    }

    #[cold]
    #[inline(never)]
    fn key(&mut self, word: &SmolStr) -> i32 {
        let words = &mut self.words;
        *self.known.entry(word.clone()).or_insert_with(|| {
            words.push(word.to_string());
            words.len() as i32 - 1
        })
    }
}

impl<const BIT: u32> Block for Interned<BIT> {
    fn keep(&mut self, moved: &Moved) {
        keep::<BIT>(&mut self.keys, moved, self.words.len());
    }

    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        self.known.clear();
        let words: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.words)));
        columns.push(keyed::<BIT>(&mut self.keys, taken, words, name));
    }
}

/// While there is one word only, all keys are 0, and nothing is kept.
fn keep<const BIT: u32>(keys: &mut Slots<i32>, moved: &Moved, words: usize) {
    if words < 2 {
        return;
    }
    if BIT == EVERY {
        keys.keep_late(moved);
    } else {
        keys.keep_some(moved, moved.any & BIT != 0);
    }
}

/// A column that may be null where not every row sets it.
fn keyed<const BIT: u32>(
    keys: &mut Slots<i32>,
    taken: &Taken,
    words: ArrayRef,
    name: Cow<'static, str>,
) -> Column {
    let nulls = taken.nulls(BIT);
    let values = if words.len() == 1 && nulls.is_none() {
        Arc::new(FIRST.slice(0, taken.rows().min(BATCH_ROWS)).with_values(words))
    } else {
        dictionary(Int32Array::new(keys.take(taken.rows()), nulls), words)
    };
    if BIT == EVERY {
        column(name, values)
    } else {
        nullable(name, values)
    }
}

/// The first word in every row: its keys are looked at once for all batches.
static FIRST: LazyLock<DictionaryArray<Int32Type>> = LazyLock::new(|| {
    let word = Arc::new(StringArray::from(vec![""]));
    DictionaryArray::new(Int32Array::new(zeros(BATCH_ROWS), None), word)
});

/// Words by their number in a list. The numbers are ours, so they are in range.
pub fn dictionary(keys: Int32Array, values: ArrayRef) -> ArrayRef {
    match DictionaryArray::<Int32Type>::try_new(keys, values) {
        Ok(array) => Arc::new(array),
        Err(_) => Arc::new(DictionaryArray::<Int32Type>::from_iter(std::iter::empty::<&str>())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::blocks;
    use super::*;

    blocks! {
        struct Columns {
            word: Listed<3, EVERY> = "word",
        }
    }

    #[test]
    fn words_are_numbered_anew_in_each_batch() {
        let mut columns = Columns::default();
        let name = |place| ["a", "b", "c"].get(place).copied().unwrap_or_default();
        for (word, want) in [(2, "c"), (0, "a")] {
            let row = columns.place();
            columns.word.set(row, word, name);
            columns.done(row);
            let has = columns.end();
            let built = columns.columns(&has, "");
            let array = built
                .first()
                .and_then(|c| c.values.as_any().downcast_ref::<DictionaryArray<Int32Type>>());
            let texts = array.and_then(|a| {
                a.downcast_dict::<StringArray>()
                    .map(|d| d.into_iter().collect::<Vec<_>>())
            });
            assert_eq!(texts, Some(vec![Some(want)]));
        }
    }
}
