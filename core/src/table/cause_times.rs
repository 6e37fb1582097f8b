//! The columns of `exchanges` with the time of each cause.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::Float64Array;

use super::columns::{BatchBits, ColumnBuffer, FlushedBlock, Values};
use super::{Column, column, ms};
use crate::judge::{Cause, Row};

// the causes of a row are kept as bits of a u32
const _: () = assert!(Cause::COUNT <= u32::BITS as usize);

/// One column per cause, with milliseconds.
#[derive(Default)]
pub struct CauseTimes {
    columns: [Values<f64>; Cause::COUNT],
    /// The causes that any row of the block has, one bit each.
    block_causes: u32,
    /// Nanoseconds of each cause in the next row; 0 between rows.
    row_ns: [i64; Cause::COUNT],
    /// The causes of the next row, one bit each.
    row_causes: u32,
}

impl CauseTimes {
    /// Adds a cause to the next row.
    #[inline(always)]
    pub fn add(&mut self, row: &Row) {
        if let Some(sum) = self.row_ns.get_mut(row.cause as usize) {
            *sum += row.end_ns - row.start_ns;
            self.row_causes |= 1 << row.cause as usize;
        }
    }

    /// Writes the row. Returns the index of the cause that took the most time, of equals the first.
    pub fn set(&mut self, slot: usize) -> Option<usize> {
        let mut causes = std::mem::take(&mut self.row_causes);
        self.block_causes |= causes;
        let mut top = (0, None);
        while causes != 0 {
            let index = causes.trailing_zeros() as usize;
            causes &= causes - 1;
            let time = self.row_ns.get_mut(index).map_or(0, std::mem::take);
            if time > 0
                && let Some(column) = self.columns.get_mut(index)
            {
                column.set(slot, ms(time));
            }
            if time > top.0 {
                top = (time, Some(index));
            }
        }
        top.1
    }
}

impl ColumnBuffer for CauseTimes {
    fn flush_block(&mut self, block: &FlushedBlock) {
        let causes = std::mem::take(&mut self.block_causes);
        for (index, column) in self.columns.iter_mut().enumerate() {
            column.flush_optional(block, causes & 1 << index != 0);
        }
    }

    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        for (times, cause) in self.columns.iter_mut().zip(Cause::WORDS) {
            let times = Float64Array::new(times.take(bits.rows()), None);
            columns.push(column([cause, "_", &name].concat(), Arc::new(times)));
        }
    }
}
