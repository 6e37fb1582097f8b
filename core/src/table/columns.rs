//! Columns of one batch of the long tables, filled by row. Which rows have a value in columns with nulls is kept by
//! row, a bit a column, until the batch is built.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::{Arc, LazyLock};

use arrow_array::types::{ArrowPrimitiveType, TimestampNanosecondType};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, PrimitiveArray, new_empty_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::words::dictionary;
use super::{BATCH_ROWS, Column, column, nullable};

/// Rows are written into a block that stays in the inner caches (34 KB of events); a full one is moved to the batch. A row's
/// place in it is its number modulo `BLOCK`, which the compiler knows to be in bounds: writing needs no check.
pub const BLOCK: usize = 256;
const _: () = assert!(BATCH_ROWS.is_multiple_of(BLOCK));

/// The bit of a column that every row sets.
pub const EVERY: u32 = 0;

/// A table's columns in their order, each with its kind and its name. All fill and move their blocks together: `place`
/// gives the next row, `done` ends it. `has` has for each row the columns with a value.
macro_rules! blocks {
    ($(#[$note:meta])* struct $name:ident { $($column:ident: $kind:ty = $called:expr,)* }) => {
        $(#[$note])*
        #[derive(Default)]
        struct $name {
            /// Of the batch so far.
            rows: usize,
            has: $crate::table::columns::Masks,
            $($column: $kind,)*
        }

        impl $name {
            #[inline(always)]
            fn place(&self) -> usize {
                self.rows % $crate::table::columns::BLOCK
            }

            /// True when the batch is full.
            #[inline(always)]
            fn done(&mut self, place: usize) -> bool {
                self.rows += 1;
                place == $crate::table::columns::BLOCK - 1 && self.block_full()
            }

            #[inline(never)]
            fn block_full(&mut self) -> bool {
                self.keep($crate::table::columns::BLOCK);
                self.rows >= $crate::table::BATCH_ROWS
            }

            /// Moves the block's first rows to the batch.
            fn keep(&mut self, rows: usize) {
                let moved = self.has.keep(rows);
                $($crate::table::columns::Block::keep(&mut self.$column, &moved);)*
            }

            /// Ends the batch: all its rows lie in the columns.
            fn end(&mut self) -> $crate::table::columns::Taken {
                self.keep(self.place());
                self.rows = 0;
                self.has.take()
            }

            /// The columns of the batch that has ended, each name behind `prefix`.
            fn columns(&mut self, taken: &$crate::table::columns::Taken, prefix: &str) -> Vec<$crate::table::Column> {
                let mut columns = Vec::new();
                $(
                    let name = match prefix {
                        "" => std::borrow::Cow::Borrowed($called),
                        _ => std::borrow::Cow::Owned(format!("{prefix}_{}", $called)),
                    };
                    $crate::table::columns::Block::build(&mut self.$column, taken, name, &mut columns);
                )*
                columns
            }
        }
    };
}
pub(super) use blocks;

/// What a kind of column does with a full block, and at the end of a batch.
pub trait Block {
    /// Moves the block to the batch; nothing where the rows are kept otherwise.
    fn keep(&mut self, _: &Moved) {}

    /// Adds the batch's column, or columns; the next batch begins empty.
    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>);
}

/// A block on its way to the batch.
pub struct Moved {
    /// Of the batch, before this block.
    pub before: usize,
    pub rows: usize,
    /// The bits that any of the block's rows has.
    pub any: u32,
}

/// Values of columns of which no row has one.
static ZEROS: LazyLock<Buffer> = LazyLock::new(|| Buffer::from_vec(vec![0u64; BATCH_ROWS]));

pub fn zeros<V: ArrowNativeType>(rows: usize) -> ScalarBuffer<V> {
    ScalarBuffer::new(ZEROS.clone(), 0, rows)
}

/// One value a row.
pub struct Slots<V> {
    block: [V; BLOCK],
    kept: Vec<V>,
}

impl<V: ArrowNativeType> Default for Slots<V> {
    fn default() -> Self {
        Slots {
            block: [V::default(); BLOCK],
            kept: Vec::new(),
        }
    }
}

impl<V: ArrowNativeType> Slots<V> {
    #[inline(always)]
    pub fn set(&mut self, row: usize, value: V) {
        if let Some(slot) = self.block.get_mut(row) {
            *slot = value;
        }
    }

    /// Of a column that every row sets.
    pub fn keep(&mut self, moved: &Moved) {
        if self.kept.capacity() == 0 {
            self.kept.reserve_exact(BATCH_ROWS);
        }
        self.kept.extend(self.block.iter().take(moved.rows));
    }

    /// Of a column whose blocks were not kept while every value was 0.
    pub fn keep_late(&mut self, moved: &Moved) {
        if self.kept.capacity() == 0 {
            self.kept.reserve_exact(BATCH_ROWS);
        }
        self.kept.resize(moved.before, V::default());
        self.keep(moved);
    }

    /// Of a column that not every row sets: the others have 0. A batch in which none does takes no memory.
    pub fn keep_some(&mut self, moved: &Moved, any: bool) {
        if any {
            if self.kept.capacity() == 0 {
                self.kept.reserve_exact(BATCH_ROWS);
            }
            self.kept.resize(moved.before, V::default());
            self.keep(moved);
            self.block.fill(V::default());
        } else if !self.kept.is_empty() {
            self.kept.resize(moved.before + moved.rows, V::default());
        }
    }

    pub fn take(&mut self, rows: usize) -> ScalarBuffer<V> {
        if self.kept.is_empty() {
            return zeros(rows);
        }
        let mut values = std::mem::take(&mut self.kept);
        if values.len() < BATCH_ROWS {
            values.shrink_to_fit();
        } else {
            // while the batch still holds its own: memory at the heap's end that is freed goes back to the system
            self.kept.reserve_exact(BATCH_ROWS);
        }
        ScalarBuffer::from(values)
    }
}

/// Values of a column that every row sets.
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
}

impl<T: ArrowPrimitiveType> Block for Full<T> {
    fn keep(&mut self, moved: &Moved) {
        self.0.keep(moved);
    }

    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let values = PrimitiveArray::<T>::new(self.0.take(taken.rows), None);
        columns.push(column(name, Arc::new(values)));
    }
}

/// Values of a column that the rows with `BIT` set.
pub struct Partial<T: ArrowPrimitiveType, const BIT: u32>(Slots<T::Native>);

impl<T: ArrowPrimitiveType, const BIT: u32> Default for Partial<T, BIT> {
    fn default() -> Self {
        Partial(Slots::default())
    }
}

impl<T: ArrowPrimitiveType, const BIT: u32> Partial<T, BIT> {
    #[inline(always)]
    pub fn set(&mut self, row: usize, value: T::Native) {
        self.0.set(row, value);
    }

    /// Gives the row's bit if there is a value.
    #[inline(always)]
    pub fn set_some(&mut self, row: usize, value: Option<T::Native>) -> u32 {
        let Some(value) = value else {
            return 0;
        };
        self.set(row, value);
        BIT
    }

    pub fn take(&mut self, taken: &Taken) -> PrimitiveArray<T> {
        PrimitiveArray::new(self.0.take(taken.rows), taken.nulls(BIT))
    }
}

impl<T: ArrowPrimitiveType, const BIT: u32> Block for Partial<T, BIT> {
    fn keep(&mut self, moved: &Moved) {
        self.0.keep_some(moved, moved.any & BIT != 0);
    }

    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        columns.push(nullable(name, Arc::new(self.take(taken))));
    }
}

/// Instants in UTC, which every row sets.
#[derive(Default)]
pub struct Instant(Slots<i64>);

impl Instant {
    #[inline(always)]
    pub fn set(&mut self, row: usize, time_ns: i64) {
        self.0.set(row, time_ns);
    }
}

impl Block for Instant {
    fn keep(&mut self, moved: &Moved) {
        self.0.keep(moved);
    }

    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let times = PrimitiveArray::<TimestampNanosecondType>::new(self.0.take(taken.rows), None);
        columns.push(column(name, Arc::new(times.with_timezone("UTC"))));
    }
}

/// Instants in UTC of the rows that set `BIT`.
#[derive(Default)]
pub struct SomeInstant<const BIT: u32>(Slots<i64>);

impl<const BIT: u32> SomeInstant<BIT> {
    #[inline(always)]
    pub fn set(&mut self, row: usize, time_ns: i64) {
        self.0.set(row, time_ns);
    }
}

impl<const BIT: u32> Block for SomeInstant<BIT> {
    fn keep(&mut self, moved: &Moved) {
        self.0.keep_some(moved, moved.any & BIT != 0);
    }

    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let times = PrimitiveArray::<TimestampNanosecondType>::new(self.0.take(taken.rows), taken.nulls(BIT));
        columns.push(nullable(name, Arc::new(times.with_timezone("UTC"))));
    }
}

/// Addresses by their keys in the batch's list (`Taken::addresses`).
#[derive(Default)]
pub struct Address(Slots<i32>);

impl Address {
    #[inline(always)]
    pub fn set(&mut self, row: usize, key: i32) {
        self.0.set(row, key);
    }
}

impl Block for Address {
    fn keep(&mut self, moved: &Moved) {
        self.0.keep(moved);
    }

    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let keys = Int32Array::new(self.0.take(taken.rows), None);
        let addresses = taken
            .addresses
            .clone()
            .unwrap_or_else(|| new_empty_array(&DataType::Utf8));
        columns.push(column(name, dictionary(keys, addresses)));
    }
}

/// Whether a row has `BIT`.
#[derive(Default)]
pub struct Flag<const BIT: u32>;

impl<const BIT: u32> Block for Flag<BIT> {
    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        columns.push(column(name, taken.booleans(BIT)));
    }
}

/// Whether a row has `BIT`, where it has `KNOWN`; else null.
#[derive(Default)]
pub struct SomeFlag<const BIT: u32, const KNOWN: u32>;

impl<const BIT: u32, const KNOWN: u32> Block for SomeFlag<BIT, KNOWN> {
    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let values = BooleanArray::new(taken.bits(BIT), taken.nulls(KNOWN));
        columns.push(nullable(name, Arc::new(values)));
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

    pub fn keep(&mut self, rows: usize) -> Moved {
        let moved = Moved {
            before: self.0.kept.len(),
            rows,
            any: self.0.block.iter().take(rows).fold(0, |any, mask| any | mask),
        };
        self.0.keep(&moved);
        moved
    }

    pub fn take(&mut self) -> Taken {
        let masks = &mut self.0.kept;
        let rows = masks.len();
        let any = masks.iter().fold(0, |any, mask| any | mask);
        let all = masks.iter().fold(u32::MAX, |all, mask| all & mask);
        masks.resize(rows.next_multiple_of(8), 0);
        let bytes = |byte: usize| match (any & !all) >> (8 * byte) & 0xff {
            0 => Vec::new(),
            _ => masks.iter().map(|mask| (mask >> (8 * byte)) as u8).collect(),
        };
        let bytes = std::array::from_fn(bytes);
        masks.clear();
        Taken {
            rows,
            bytes,
            any,
            all,
            nulls: Default::default(),
            addresses: None,
        }
    }
}

/// The bits of a batch.
pub struct Taken {
    rows: usize,
    /// The lowest byte of every row, the next, ...; none where all rows are alike.
    bytes: [Vec<u8>; 4],
    any: u32,
    all: u32,
    /// By bit: columns share them.
    nulls: [OnceCell<NullBuffer>; u32::BITS as usize],
    /// The words of columns of addresses, where the table has such.
    pub addresses: Option<ArrayRef>,
}

impl Taken {
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether a row has this bit; most bits are alike in all rows.
    fn bits(&self, bit: u32) -> BooleanBuffer {
        if self.any & bit == 0 {
            return BooleanBuffer::new(ZEROS.clone(), 0, self.rows);
        }
        if self.all & bit != 0 {
            return BooleanBuffer::new_set(self.rows);
        }
        let at = bit.trailing_zeros();
        let bytes = self.bytes.get(at as usize / 8).map_or(&[][..], Vec::as_slice);
        let (eights, _) = bytes.as_chunks::<8>();
        // one bit of each of eight rows; the factor moves them side by side into the highest byte
        let gather = |rows: &[u8; 8]| {
            let bits = u64::from_le_bytes(*rows) >> (at % 8) & 0x0101_0101_0101_0101;
            (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
        };
        let gathered: Vec<u8> = eights.iter().map(gather).collect();
        BooleanBuffer::new(Buffer::from_vec(gathered), 0, self.rows)
    }

    pub fn booleans(&self, bit: u32) -> ArrayRef {
        Arc::new(BooleanArray::new(self.bits(bit), None))
    }

    /// None where every row has the bit, and for `EVERY`.
    pub fn nulls(&self, bit: u32) -> Option<NullBuffer> {
        if self.all & bit != 0 {
            return None;
        }
        let nulls = self.nulls.get(bit.trailing_zeros() as usize)?;
        Some(nulls.get_or_init(|| NullBuffer::new(self.bits(bit))).clone())
    }
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
    /// `row` counts from the batch's first.
    pub fn push(&mut self, row: usize, value: Option<T::Native>) {
        if let Some(value) = value {
            self.set.push((row, value));
        }
    }

    fn take(&mut self, rows: usize) -> PrimitiveArray<T> {
        if self.set.is_empty() {
            let nulls = NullBuffer::new(BooleanBuffer::new(ZEROS.clone(), 0, rows));
            return PrimitiveArray::new(zeros(rows), Some(nulls));
        }
        let (mut values, mut bits) = (vec![T::Native::default(); rows], vec![0u8; rows.div_ceil(8)]);
        for (row, value) in self.set.drain(..) {
            if let (Some(slot), Some(byte)) = (values.get_mut(row), bits.get_mut(row / 8)) {
                *slot = value;
                *byte |= 1 << (row % 8);
            }
        }
        let nulls = NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, rows));
        PrimitiveArray::new(values.into(), Some(nulls))
    }
}

impl<T: ArrowPrimitiveType> Block for Rare<T> {
    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        columns.push(nullable(name, Arc::new(self.take(taken.rows))));
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::types::UInt32Type;

    use super::*;

    blocks! {
        struct Columns {
            some: Partial<UInt32Type, 2> = "some",
            none: Partial<UInt32Type, 1> = "none",
        }
    }

    #[test]
    fn rows_without_a_value_are_null_and_the_next_batch_begins_empty() {
        let mut columns = Columns::default();
        for (rows, first) in [
            (1, 0),
            (64, 0),
            (65, 64),
            (BLOCK + 1, BLOCK),
            (BATCH_ROWS, 0),
            (BLOCK * 3, BLOCK),
        ] {
            let set = |row: usize| row >= first && row.is_multiple_of(3);
            for row in 0..rows {
                let place = columns.place();
                columns.has.set(place, 0);
                if set(row) {
                    columns.some.set(place, row as u32 + 1);
                    columns.has.set(place, 2);
                }
                assert_eq!(columns.done(place), row + 1 == BATCH_ROWS);
            }
            let has = columns.end();
            assert_eq!(has.rows(), rows);
            let array = columns.some.take(&has);
            let want: Vec<Option<u32>> = (0..rows).map(|row| set(row).then_some(row as u32 + 1)).collect();
            assert_eq!(array.iter().collect::<Vec<_>>(), want);
            let unset = |(value, want): (&u32, &Option<u32>)| want.is_some() || *value == 0;
            assert!(array.values().iter().zip(&want).all(unset));
            assert_eq!(columns.none.take(&has).null_count(), rows);
            let names: Vec<_> = columns
                .columns(&has, "side")
                .into_iter()
                .map(|c| c.name)
                .collect();
            assert_eq!(names, ["side_some", "side_none"]);
        }
    }
}
