//! A column of short lists of frames.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{Array, ListArray, UInt64Array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};

use super::columns::{BLOCK, Block, Moved, Taken};
use super::{BATCH_ROWS, Column, column};
use crate::judge::EvidenceFrames;

/// Frames of one list.
const MAX_FRAMES: usize = std::mem::size_of::<EvidenceFrames>() / std::mem::size_of::<u64>();

/// The evidence of each row.
pub struct Lists {
    /// Of the block's rows, one list behind the other.
    block: [u64; MAX_FRAMES * BLOCK],
    len: usize,
    /// Where the lists of the block's rows end.
    ends: [i32; BLOCK],
    frames: Vec<u64>,
    offsets: Vec<i32>,
}

impl Default for Lists {
    fn default() -> Self {
        Lists {
            block: [0; MAX_FRAMES * BLOCK],
            len: 0,
            ends: [0; BLOCK],
            frames: Vec::new(),
            offsets: Vec::new(),
        }
    }
}

impl Lists {
    /// Rows come in order; 0 is no frame.
    #[inline(always)]
    pub fn set(&mut self, row: usize, evidence: &EvidenceFrames) {
        // without a branch: a zero is overwritten by the next frame
        let place = self
            .block
            .get_mut(self.len..)
            .and_then(<[u64]>::first_chunk_mut::<MAX_FRAMES>);
        if let Some(place) = place {
            let mut behind = 0;
            for frame in evidence {
                if let Some(slot) = place.get_mut(behind) {
                    *slot = *frame;
                }
                behind += usize::from(*frame != 0);
            }
            self.len += behind;
        }
        if let Some(end) = self.ends.get_mut(row) {
            *end = (self.frames.len() + self.len) as i32;
        }
    }
}

impl Block for Lists {
    fn keep(&mut self, moved: &Moved) {
        if self.offsets.capacity() == 0 {
            self.offsets.reserve_exact(BATCH_ROWS + 1);
            self.offsets.push(0);
            self.frames.reserve(MAX_FRAMES * BATCH_ROWS);
        }
        self.frames
            .extend(self.block.iter().take(std::mem::take(&mut self.len)));
        self.offsets.extend(self.ends.iter().take(moved.rows));
    }

    fn build(&mut self, _: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let mut frames = std::mem::take(&mut self.frames);
        frames.shrink_to_fit();
        let frames = UInt64Array::from(frames);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::take(&mut self.offsets)));
        let item = Arc::new(Field::new("item", DataType::UInt64, false));
        debug_assert_eq!(frames.data_type(), item.data_type());
        columns.push(column(
            name,
            Arc::new(ListArray::new(item, offsets, Arc::new(frames), None)),
        ));
    }
}
