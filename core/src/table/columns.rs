//! Column buffers of the long tables, which are filled row by row.
//!
//! A batch of `BATCH_ROWS` rows is filled block by block. The current block has `BLOCK_ROWS` rows and stays in the
//! processor's inner caches. Which optional columns have a value is kept as one bit mask per row until the batch is
//! built; then each bit becomes the null buffer of its columns.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::{Arc, LazyLock};

use arrow_array::types::{ArrowPrimitiveType, TimestampNanosecondType};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, PrimitiveArray, new_empty_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::words::dictionary;
use super::{BATCH_ROWS, Column, column, nullable};

/// Rows per block: 34 KB of `events`. A row's slot in its block is its number modulo `BLOCK_ROWS`, which the compiler
/// knows to be in bounds, so writing a value needs no check.
pub const BLOCK_ROWS: usize = 256;
const _: () = assert!(BATCH_ROWS.is_multiple_of(BLOCK_ROWS));

/// The bit of a column that every row sets.
pub const EVERY_ROW: u32 = 0;

/// Declares a table's columns in their order: `field: Kind = "name of the column"`.
///
/// To write a row: get its `slot()`, set the columns, set `row_bits` to the bits of the optional columns that have a
/// value, and call `end_row`. To end a batch: call `end_batch`, then `build`.
macro_rules! batch_columns {
    ($(#[$note:meta])* struct $name:ident { $($column:ident: $kind:ty = $title:expr,)* }) => {
        $(#[$note])*
        #[derive(Default)]
        struct $name {
            /// Rows of the batch so far.
            rows: usize,
            row_bits: $crate::table::columns::RowBits,
            $($column: $kind,)*
        }

        impl $name {
            /// Returns the slot of the next row in the block.
            #[inline(always)]
            fn slot(&self) -> usize {
                self.rows % $crate::table::columns::BLOCK_ROWS
            }

            /// Ends a row. Returns true if the batch is full.
            #[inline(always)]
            fn end_row(&mut self, slot: usize) -> bool {
                self.rows += 1;
                slot == $crate::table::columns::BLOCK_ROWS - 1 && self.flush_full_block()
            }

            #[inline(never)]
            fn flush_full_block(&mut self) -> bool {
                self.flush_block($crate::table::columns::BLOCK_ROWS);
                self.rows >= $crate::table::BATCH_ROWS
            }

            /// Moves the first `rows` of the block to the batch.
            fn flush_block(&mut self, rows: usize) {
                let block = self.row_bits.flush_block(rows);
                $($crate::table::columns::ColumnBuffer::flush_block(&mut self.$column, &block);)*
            }

            /// Moves the last block to the batch and begins the next batch.
            fn end_batch(&mut self) -> $crate::table::columns::BatchBits {
                self.flush_block(self.slot());
                self.rows = 0;
                self.row_bits.take()
            }

            /// Builds the columns of the batch that has ended, each with `prefix` and "_" before its name.
            fn build(&mut self, bits: &$crate::table::columns::BatchBits, prefix: &str) -> Vec<$crate::table::Column> {
                let mut columns = Vec::new();
                $(
                    let name = match prefix {
                        "" => std::borrow::Cow::Borrowed($title),
                        _ => std::borrow::Cow::Owned([prefix, "_", $title].concat()),
                    };
                    $crate::table::columns::ColumnBuffer::build(&mut self.$column, bits, name, &mut columns);
                )*
                columns
            }
        }
    };
}
pub(super) use batch_columns;

/// The buffer of a column, or of several columns that are filled together.
pub trait ColumnBuffer {
    /// Moves a block to the batch. Does nothing for buffers that are not organised in blocks.
    fn flush_block(&mut self, _: &FlushedBlock) {}

    /// Appends the batch's column, or columns, to `columns` and empties the buffer.
    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>);
}

/// A block that is being moved to the batch.
pub struct FlushedBlock {
    /// Rows of the batch before this block.
    pub rows_before: usize,
    pub rows: usize,
    /// The bits that any row of the block has.
    pub any_bits: u32,
}

/// Zeros, shared by all columns in which no row of the batch has a value.
static ZEROS: LazyLock<Buffer> = LazyLock::new(|| Buffer::from_vec(vec![0u64; BATCH_ROWS]));

pub fn zeros<V: ArrowNativeType>(rows: usize) -> ScalarBuffer<V> {
    ScalarBuffer::new(ZEROS.clone(), 0, rows)
}

/// The values of one column: one per row.
pub struct Values<V> {
    block: [V; BLOCK_ROWS],
    batch: Vec<V>,
}

impl<V: ArrowNativeType> Default for Values<V> {
    fn default() -> Self {
        Values {
            block: [V::default(); BLOCK_ROWS],
            batch: Vec::new(),
        }
    }
}

impl<V: ArrowNativeType> Values<V> {
    #[inline(always)]
    pub fn set(&mut self, slot: usize, value: V) {
        if let Some(cell) = self.block.get_mut(slot) {
            *cell = value;
        }
    }

    /// Flushes a block of a column that every row sets.
    pub fn flush(&mut self, block: &FlushedBlock) {
        if self.batch.capacity() == 0 {
            self.batch.reserve_exact(BATCH_ROWS);
        }
        self.batch.extend(self.block.iter().take(block.rows));
    }

    /// Flushes a block of a column whose earlier blocks may not have been flushed, because all their values were 0.
    pub fn flush_padded(&mut self, block: &FlushedBlock) {
        if self.batch.capacity() == 0 {
            self.batch.reserve_exact(BATCH_ROWS);
        }
        self.batch.resize(block.rows_before, V::default());
        self.flush(block);
    }

    /// Flushes a block of an optional column; `is_set` is whether any row of the block has a value. Rows without a
    /// value get 0. A batch in which no row has a value allocates nothing.
    pub fn flush_optional(&mut self, block: &FlushedBlock, is_set: bool) {
        if is_set {
            self.flush_padded(block);
            self.block.fill(V::default());
        } else if !self.batch.is_empty() {
            self.batch.resize(block.rows_before + block.rows, V::default());
        }
    }

    pub fn take(&mut self, rows: usize) -> ScalarBuffer<V> {
        if self.batch.is_empty() {
            return zeros(rows);
        }
        let mut values = std::mem::take(&mut self.batch);
        if values.len() < BATCH_ROWS {
            values.shrink_to_fit();
        } else {
            // reserve the next batch's memory while this batch is alive: the allocator returns freed memory at the end
            // of the heap to the system
            self.batch.reserve_exact(BATCH_ROWS);
        }
        ScalarBuffer::from(values)
    }
}

/// Returns the array, with UTC as the time zone of time stamps.
fn with_zone<T: ArrowPrimitiveType>(array: PrimitiveArray<T>) -> ArrayRef {
    match T::DATA_TYPE {
        DataType::Timestamp(unit, None) => {
            Arc::new(array.with_data_type(DataType::Timestamp(unit, Some("UTC".into()))))
        }
        _ => Arc::new(array),
    }
}

/// A column that every row sets.
pub struct Required<T: ArrowPrimitiveType>(Values<T::Native>);

/// Points in time, which every row sets.
pub type Instant = Required<TimestampNanosecondType>;

impl<T: ArrowPrimitiveType> Default for Required<T> {
    fn default() -> Self {
        Required(Values::default())
    }
}

impl<T: ArrowPrimitiveType> Required<T> {
    #[inline(always)]
    pub fn set(&mut self, slot: usize, value: T::Native) {
        self.0.set(slot, value);
    }
}

impl<T: ArrowPrimitiveType> ColumnBuffer for Required<T> {
    fn flush_block(&mut self, block: &FlushedBlock) {
        self.0.flush(block);
    }

    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let values = PrimitiveArray::<T>::new(self.0.take(bits.rows), None);
        columns.push(column(name, with_zone(values)));
    }
}

/// A column that is null in rows without `BIT`.
pub struct Optional<T: ArrowPrimitiveType, const BIT: u32>(Values<T::Native>);

impl<T: ArrowPrimitiveType, const BIT: u32> Default for Optional<T, BIT> {
    fn default() -> Self {
        Optional(Values::default())
    }
}

impl<T: ArrowPrimitiveType, const BIT: u32> Optional<T, BIT> {
    #[inline(always)]
    pub fn set(&mut self, slot: usize, value: T::Native) {
        self.0.set(slot, value);
    }

    /// Sets the value if there is one. Returns the column's bit then, else 0.
    #[inline(always)]
    pub fn set_some(&mut self, slot: usize, value: Option<T::Native>) -> u32 {
        let Some(value) = value else {
            return 0;
        };
        self.set(slot, value);
        BIT
    }

    pub fn take(&mut self, bits: &BatchBits) -> PrimitiveArray<T> {
        PrimitiveArray::new(self.0.take(bits.rows), bits.nulls(BIT))
    }
}

impl<T: ArrowPrimitiveType, const BIT: u32> ColumnBuffer for Optional<T, BIT> {
    fn flush_block(&mut self, block: &FlushedBlock) {
        self.0.flush_optional(block, block.any_bits & BIT != 0);
    }

    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        columns.push(nullable(name, with_zone(self.take(bits))));
    }
}

/// Addresses by their keys in the batch's dictionary (`BatchBits::addresses`).
#[derive(Default)]
pub struct Address(Values<i32>);

impl Address {
    #[inline(always)]
    pub fn set(&mut self, slot: usize, key: i32) {
        self.0.set(slot, key);
    }
}

impl ColumnBuffer for Address {
    fn flush_block(&mut self, block: &FlushedBlock) {
        self.0.flush(block);
    }

    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let keys = Int32Array::new(self.0.take(bits.rows), None);
        let addresses = bits
            .addresses
            .clone()
            .unwrap_or_else(|| new_empty_array(&DataType::Utf8));
        columns.push(column(name, dictionary(keys, addresses)));
    }
}

/// A boolean column: whether a row has `BIT`.
#[derive(Default)]
pub struct Flag<const BIT: u32>;

impl<const BIT: u32> ColumnBuffer for Flag<BIT> {
    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        columns.push(column(name, bits.booleans(BIT)));
    }
}

/// A boolean column that is null in rows without `KNOWN_BIT`: whether a row has `BIT`.
#[derive(Default)]
pub struct OptionalFlag<const BIT: u32, const KNOWN_BIT: u32>;

impl<const BIT: u32, const KNOWN_BIT: u32> ColumnBuffer for OptionalFlag<BIT, KNOWN_BIT> {
    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let values = BooleanArray::new(bits.values(BIT), bits.nulls(KNOWN_BIT));
        columns.push(nullable(name, Arc::new(values)));
    }
}

/// The bit mask of each row.
#[derive(Default)]
pub struct RowBits(Values<u32>);

impl RowBits {
    #[inline(always)]
    pub fn set(&mut self, slot: usize, bits: u32) {
        self.0.set(slot, bits);
    }

    pub fn flush_block(&mut self, rows: usize) -> FlushedBlock {
        let block = FlushedBlock {
            rows_before: self.0.batch.len(),
            rows,
            any_bits: self.0.block.iter().take(rows).fold(0, |any, bits| any | bits),
        };
        self.0.flush(&block);
        block
    }

    pub fn take(&mut self) -> BatchBits {
        let rows_bits = &mut self.0.batch;
        let rows = rows_bits.len();
        let any = rows_bits.iter().fold(0, |any, bits| any | bits);
        let all = rows_bits.iter().fold(u32::MAX, |all, bits| all & bits);
        rows_bits.resize(rows.next_multiple_of(8), 0);
        let bytes = |byte: usize| match (any & !all) >> (8 * byte) & 0xff {
            0 => Vec::new(),
            _ => rows_bits.iter().map(|bits| (bits >> (8 * byte)) as u8).collect(),
        };
        let bytes = std::array::from_fn(bytes);
        rows_bits.clear();
        BatchBits {
            rows,
            bytes,
            any,
            all,
            nulls: Default::default(),
            addresses: None,
        }
    }
}

/// The bit masks of all rows of a batch that has ended.
pub struct BatchBits {
    rows: usize,
    /// The masks cut into bytes: of each row the lowest byte, then of each row the next, and so on. Empty where all
    /// rows have the same byte.
    bytes: [Vec<u8>; 4],
    /// The bits that any row has.
    any: u32,
    /// The bits that all rows have.
    all: u32,
    /// The null buffer of each bit, shared by its columns.
    nulls: [OnceCell<NullBuffer>; u32::BITS as usize],
    /// The dictionary of the `Address` columns, in tables that have some.
    pub addresses: Option<ArrayRef>,
}

impl BatchBits {
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns for each row whether it has `bit`.
    fn values(&self, bit: u32) -> BooleanBuffer {
        if self.any & bit == 0 {
            return BooleanBuffer::new(ZEROS.clone(), 0, self.rows);
        }
        if self.all & bit != 0 {
            return BooleanBuffer::new_set(self.rows);
        }
        let position = bit.trailing_zeros();
        let bytes = self
            .bytes
            .get(position as usize / 8)
            .map_or(&[][..], Vec::as_slice);
        let (eights, _) = bytes.as_chunks::<8>();
        // take one bit of each of eight rows; the multiplication gathers the eight bits in the highest byte
        let gather = |rows: &[u8; 8]| {
            let bits = u64::from_le_bytes(*rows) >> (position % 8) & 0x0101_0101_0101_0101;
            (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
        };
        let gathered: Vec<u8> = eights.iter().map(gather).collect();
        BooleanBuffer::new(Buffer::from_vec(gathered), 0, self.rows)
    }

    pub fn booleans(&self, bit: u32) -> ArrayRef {
        Arc::new(BooleanArray::new(self.values(bit), None))
    }

    /// Returns the null buffer of the columns with `bit`. `None` if every row has it, and for `EVERY_ROW`.
    pub fn nulls(&self, bit: u32) -> Option<NullBuffer> {
        if self.all & bit != 0 {
            return None;
        }
        let nulls = self.nulls.get(bit.trailing_zeros() as usize)?;
        Some(nulls.get_or_init(|| NullBuffer::new(self.values(bit))).clone())
    }
}

/// A column that is nearly always null. Keeps only the rows that have a value.
pub struct Rare<T: ArrowPrimitiveType> {
    /// Number of the row in the batch, and its value.
    values: Vec<(usize, T::Native)>,
}

impl<T: ArrowPrimitiveType> Default for Rare<T> {
    fn default() -> Self {
        Rare { values: Vec::new() }
    }
}

impl<T: ArrowPrimitiveType> Rare<T> {
    /// Sets the value of a row, which is counted from the first of the batch.
    pub fn push(&mut self, row: usize, value: Option<T::Native>) {
        if let Some(value) = value {
            self.values.push((row, value));
        }
    }

    fn take(&mut self, rows: usize) -> PrimitiveArray<T> {
        if self.values.is_empty() {
            let nulls = NullBuffer::new(BooleanBuffer::new(ZEROS.clone(), 0, rows));
            return PrimitiveArray::new(zeros(rows), Some(nulls));
        }
        let (mut values, mut bits) = (vec![T::Native::default(); rows], vec![0u8; rows.div_ceil(8)]);
        for (row, value) in self.values.drain(..) {
            if let (Some(slot), Some(byte)) = (values.get_mut(row), bits.get_mut(row / 8)) {
                *slot = value;
                *byte |= 1 << (row % 8);
            }
        }
        let nulls = NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, rows));
        PrimitiveArray::new(values.into(), Some(nulls))
    }
}

impl<T: ArrowPrimitiveType> ColumnBuffer for Rare<T> {
    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        columns.push(nullable(name, Arc::new(self.take(bits.rows))));
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::types::UInt32Type;

    use super::*;

    batch_columns! {
        struct Columns {
            some: Optional<UInt32Type, 2> = "some",
            none: Optional<UInt32Type, 1> = "none",
        }
    }

    #[test]
    fn rows_without_a_value_are_null_and_the_next_batch_begins_empty() {
        let mut columns = Columns::default();
        for (rows, first) in [
            (1, 0),
            (64, 0),
            (65, 64),
            (BLOCK_ROWS + 1, BLOCK_ROWS),
            (BATCH_ROWS, 0),
            (BLOCK_ROWS * 3, BLOCK_ROWS),
        ] {
            let set = |row: usize| row >= first && row.is_multiple_of(3);
            for row in 0..rows {
                let slot = columns.slot();
                columns.row_bits.set(slot, 0);
                if set(row) {
                    columns.some.set(slot, row as u32 + 1);
                    columns.row_bits.set(slot, 2);
                }
                assert_eq!(columns.end_row(slot), row + 1 == BATCH_ROWS);
            }
            let bits = columns.end_batch();
            assert_eq!(bits.rows(), rows);
            let array = columns.some.take(&bits);
            let want: Vec<Option<u32>> = (0..rows).map(|row| set(row).then_some(row as u32 + 1)).collect();
            assert_eq!(array.iter().collect::<Vec<_>>(), want);
            let unset = |(value, want): (&u32, &Option<u32>)| want.is_some() || *value == 0;
            assert!(array.values().iter().zip(&want).all(unset));
            assert_eq!(columns.none.take(&bits).null_count(), rows);
            let names: Vec<_> = columns
                .build(&bits, "side")
                .into_iter()
                .map(|column| column.name)
                .collect();
            assert_eq!(names, ["side_some", "side_none"]);
        }
    }
}
