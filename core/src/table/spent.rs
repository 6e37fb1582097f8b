//! Milliseconds by cause, a column each, of rows whose time is cut into causes.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::Float64Array;

use super::columns::{Block, Moved, Slots, Taken};
use super::{Column, column, ms};
use crate::judge::{Cause, Row};

pub const CAUSES: usize = Cause::COUNT;
/// One bit each for those that a row has.
const _: () = assert!(CAUSES <= u32::BITS as usize);

/// Milliseconds by cause: a column each.
#[derive(Default)]
pub struct Spent {
    columns: [Slots<f64>; CAUSES],
    /// The causes that any row of the block has, a bit each.
    any: u32,
    /// By cause, of the row that is being summed, and which causes it has; 0 between rows.
    sums: [i64; CAUSES],
    touched: u32,
}

impl Spent {
    #[inline(always)]
    pub fn add(&mut self, row: &Row) {
        if let Some(sum) = self.sums.get_mut(row.cause as usize) {
            *sum += row.end - row.start;
            self.touched |= 1 << row.cause as usize;
        }
    }

    /// Gives the cause that took the most time (the first of equals in the table's order).
    pub fn set(&mut self, row: usize) -> Option<usize> {
        let mut touched = std::mem::take(&mut self.touched);
        self.any |= touched;
        let mut top = (0, None);
        while touched != 0 {
            let at = touched.trailing_zeros() as usize;
            touched &= touched - 1;
            let time = self.sums.get_mut(at).map_or(0, std::mem::take);
            if time > 0
                && let Some(column) = self.columns.get_mut(at)
            {
                column.set(row, ms(time));
            }
            if time > top.0 {
                top = (time, Some(at));
            }
        }
        top.1
    }
}

impl Block for Spent {
    fn keep(&mut self, moved: &Moved) {
        let any = std::mem::take(&mut self.any);
        for (cause, column) in self.columns.iter_mut().enumerate() {
            column.keep_some(moved, any & 1 << cause != 0);
        }
    }

    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        for (times, cause) in self.columns.iter_mut().zip(Cause::WORDS) {
            let times = Float64Array::new(times.take(taken.rows()), None);
            columns.push(column(format!("{cause}_{name}"), Arc::new(times)));
        }
    }
}
