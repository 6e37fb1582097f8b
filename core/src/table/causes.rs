//! `causes`: the time of every exchange, connect, push and gap, partitioned by cause. The rows of one of them are
//! contiguous.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{ListArray, UInt64Array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};

use super::columns::{
    BLOCK_ROWS, BatchBits, ColumnBuffer, EVERY_ROW, FlushedBlock, Instant, Optional, Required, batch_columns,
};
use super::words::CodedWords;
use super::{BATCH_ROWS, Batch, Column, column, ms};
use crate::exchange::RowKind;
use crate::judge::{Because, Cause, EvidenceFrames, Grade, Owner, Rival, Row, Rule};

/// Bits of the optional columns.
mod bit {
    pub const PARENT: u32 = 1 << 0;
    pub const RIVAL: u32 = 1 << 1;
    pub const EXCHANGE: u32 = 1 << 2;
    pub const CONNECT: u32 = 1 << 3;
    pub const PUSH: u32 = 1 << 4;
    pub const GAP: u32 = 1 << 5;
}

batch_columns! {
    struct Columns {
        exchange: Optional<UInt64Type, { bit::EXCHANGE }> = "exchange",
        connect: Optional<UInt64Type, { bit::CONNECT }> = "connect",
        push: Optional<UInt64Type, { bit::PUSH }> = "push",
        gap: Optional<UInt64Type, { bit::GAP }> = "gap",
        start: Instant = "start",
        end: Instant = "end",
        cause: CodedWords<{ Cause::COUNT }, EVERY_ROW> = "cause",
        parent: CodedWords<{ Cause::COUNT }, { bit::PARENT }> = "parent",
        owner: CodedWords<{ Owner::COUNT }, EVERY_ROW> = "owner",
        duration: Required<Float64Type> = "duration_ms",
        from_frame: Required<UInt64Type> = "from_frame",
        to_frame: Required<UInt64Type> = "to_frame",
        evidence: FrameLists = "evidence",
        rule: CodedWords<{ Rule::COUNT }, EVERY_ROW> = "rule",
        grade: CodedWords<{ Grade::COUNT }, EVERY_ROW> = "grade",
        confidence: Required<Float64Type> = "confidence",
        because: CodedWords<{ Because::COUNT }, EVERY_ROW> = "because",
        rival: CodedWords<{ Rival::COUNT }, { bit::RIVAL }> = "rival",
    }
}

#[derive(Default)]
pub struct Causes {
    columns: Columns,
}

impl Causes {
    /// Adds a row about the exchange, connect, push or gap with this number. Returns true if the batch is full.
    #[inline(always)]
    pub fn push(&mut self, kind: RowKind, number: u64, row: &Row) -> bool {
        let columns = &mut self.columns;
        let slot = columns.slot();
        columns.start.set(slot, row.start_ns);
        columns.end.set(slot, row.end_ns);
        columns.cause.set(slot, row.cause as usize, Cause::word_at);
        let number = Some(number);
        let mut bits = match kind {
            RowKind::Exchange => columns.exchange.set_some(slot, number),
            RowKind::Connect => columns.connect.set_some(slot, number),
            RowKind::Push => columns.push.set_some(slot, number),
            RowKind::Pause | RowKind::Held | RowKind::OneWay => columns.gap.set_some(slot, number),
        };
        if let Some(parent) = row.parent {
            columns.parent.set(slot, parent as usize, Cause::word_at);
            bits |= bit::PARENT;
        }
        columns.owner.set(slot, row.owner as usize, Owner::word_at);
        columns.duration.set(slot, ms(row.end_ns - row.start_ns));
        columns.from_frame.set(slot, row.from_frame);
        columns.to_frame.set(slot, row.to_frame);
        columns.rule.set(slot, row.rule as usize, Rule::word_at);
        let grounds = row.grounds;
        columns.grade.set(slot, grounds.grade as usize, Grade::word_at);
        columns.confidence.set(slot, row.confidence());
        columns
            .because
            .set(slot, grounds.because as usize, Because::word_at);
        if let Some(rival) = grounds.rival {
            columns.rival.set(slot, rival.index(), Rival::word_at);
            bits |= bit::RIVAL;
        }
        columns.row_bits.set(slot, bits);
        columns.evidence.set(slot, &row.evidence);
        columns.end_row(slot)
    }
}

impl Batch for Causes {
    fn rows(&self) -> usize {
        self.columns.rows
    }

    fn take(&mut self) -> Vec<Column> {
        let bits = self.columns.end_batch();
        self.columns.build(&bits, "")
    }
}

/// Upper bound on the frames of one row.
const MAX_FRAMES: usize = std::mem::size_of::<EvidenceFrames>() / std::mem::size_of::<u64>();

/// The column `evidence`: a short list of frames per row.
struct FrameLists {
    /// The lists of the block's rows, concatenated.
    block: [u64; MAX_FRAMES * BLOCK_ROWS],
    /// Number of frames in `block`.
    block_len: usize,
    /// Where the list of each row of the block ends, counted from the first frame of the batch.
    ends: [i32; BLOCK_ROWS],
    /// The lists of the batch's flushed rows, concatenated.
    frames: Vec<u64>,
    /// Where the list of each flushed row begins in `frames`, and the end of the last.
    offsets: Vec<i32>,
}

impl Default for FrameLists {
    fn default() -> Self {
        FrameLists {
            block: [0; MAX_FRAMES * BLOCK_ROWS],
            block_len: 0,
            ends: [0; BLOCK_ROWS],
            frames: Vec::new(),
            offsets: Vec::new(),
        }
    }
}

impl FrameLists {
    /// Sets the frames of the next row. Zeros in `evidence` are empty places.
    #[inline(always)]
    fn set(&mut self, slot: usize, evidence: &EvidenceFrames) {
        // copy without a branch per frame: a zero is written too, and the next frame overwrites it
        let free = self
            .block
            .get_mut(self.block_len..)
            .and_then(<[u64]>::first_chunk_mut::<MAX_FRAMES>);
        if let Some(free) = free {
            let mut count = 0;
            for frame in evidence {
                if let Some(free_frame) = free.get_mut(count) {
                    *free_frame = *frame;
                }
                count += usize::from(*frame != 0);
            }
            self.block_len += count;
        }
        if let Some(end) = self.ends.get_mut(slot) {
            *end = (self.frames.len() + self.block_len) as i32;
        }
    }
}

impl ColumnBuffer for FrameLists {
    fn flush_block(&mut self, block: &FlushedBlock) {
        if self.offsets.capacity() == 0 {
            self.offsets.reserve_exact(BATCH_ROWS + 1);
            self.offsets.push(0);
            self.frames.reserve(MAX_FRAMES * BATCH_ROWS);
        }
        self.frames
            .extend(self.block.iter().take(std::mem::take(&mut self.block_len)));
        self.offsets.extend(self.ends.iter().take(block.rows));
    }

    fn build(&mut self, _: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let mut frames = std::mem::take(&mut self.frames);
        frames.shrink_to_fit();
        let frames = UInt64Array::from(frames);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::take(&mut self.offsets)));
        let item = Arc::new(Field::new("item", DataType::UInt64, false));
        columns.push(column(
            name,
            Arc::new(ListArray::new(item, offsets, Arc::new(frames), None)),
        ));
    }
}
