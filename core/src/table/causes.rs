//! `causes`: the partition of every exchange's time; the rows of one exchange are contiguous.

use std::sync::Arc;

use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt64Type};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field};

use super::columns::{BLOCK_ROWS, Fixed, Full, Listed, instants, renewed};
use super::{column, ms, nullable};
use crate::cause::{Cause, Owner, Row};

const CAUSES: usize = Cause::ALL.len();
const OWNERS: usize = Owner::ALL.len();

/// Rows wait in a small block; a full one goes to the columns one by one, as in `events`.
#[derive(Default)]
pub struct Causes {
    block: Vec<(u64, Row)>,
    exchange: Full<UInt64Type>,
    start: Full<TimestampNanosecondType>,
    end: Full<TimestampNanosecondType>,
    cause: Listed<CAUSES>,
    parent: Listed<CAUSES>,
    owner: Listed<OWNERS>,
    duration: Full<Float64Type>,
    from_frame: Full<UInt64Type>,
    to_frame: Full<UInt64Type>,
    evidence: Vec<u64>,
    evidence_counts: Vec<usize>,
    rule: Fixed,
    confidence: Full<Float64Type>,
}

impl Causes {
    /// Rows that are in the columns or wait for them.
    pub fn len(&self) -> usize {
        self.evidence_counts.len() + self.block.len()
    }

    pub fn push(&mut self, exchange: u64, row: &Row) {
        self.block.push((exchange, *row));
        if self.block.len() >= BLOCK_ROWS {
            self.columns();
        }
    }

    fn columns(&mut self) {
        let block = std::mem::take(&mut self.block);
        let rows = block.as_slice();
        self.exchange.extend(rows, |(exchange, _)| *exchange);
        self.start.extend(rows, |(_, r)| r.start);
        self.end.extend(rows, |(_, r)| r.end);
        self.cause
            .extend(rows, |(_, r)| Some(r.cause as usize), Cause::word);
        self.parent
            .extend(rows, |(_, r)| r.parent.map(|p| p as usize), Cause::word);
        self.owner
            .extend(rows, |(_, r)| Some(r.owner as usize), Owner::word);
        self.duration.extend(rows, |(_, r)| ms(r.end - r.start));
        self.from_frame.extend(rows, |(_, r)| r.from_frame);
        self.to_frame.extend(rows, |(_, r)| r.to_frame);
        for (_, row) in rows {
            let before = self.evidence.len();
            self.evidence
                .extend(row.evidence.iter().filter(|frame| **frame != 0));
            self.evidence_counts.push(self.evidence.len() - before);
        }
        self.rule.extend(rows, |(_, r)| Some(r.rule));
        self.confidence.extend(rows, |(_, r)| r.confidence);
        self.block = block;
        self.block.clear();
    }

    /// The rows so far as a batch; the next one begins empty.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        self.columns();
        super::batch(vec![
            self.exchange.column("exchange"),
            instants(&mut self.start, "start"),
            instants(&mut self.end, "end"),
            column("cause", self.cause.take()),
            nullable("parent", self.parent.take()),
            column("owner", self.owner.take()),
            self.duration.column("duration_ms"),
            self.from_frame.column("from_frame"),
            self.to_frame.column("to_frame"),
            column("evidence", self.lists()),
            column("rule", self.rule.take()),
            self.confidence.column("confidence"),
        ])
    }

    fn lists(&mut self) -> ArrayRef {
        let frames = UInt64Array::from(renewed(&mut self.evidence));
        let offsets = OffsetBuffer::from_lengths(renewed(&mut self.evidence_counts));
        let item = Arc::new(Field::new("item", DataType::UInt64, false));
        debug_assert_eq!(frames.data_type(), item.data_type());
        Arc::new(ListArray::new(item, offsets, Arc::new(frames), None))
    }
}
