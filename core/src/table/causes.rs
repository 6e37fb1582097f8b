//! `causes`: the partition of every exchange's time; the rows of one exchange are contiguous.

use std::sync::Arc;

use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt64Type};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};

use super::columns::{Fixed, Full, Listed, Masks, instants, renewed};
use super::{column, ms, nullable};
use crate::cause::{Cause, Owner, Row};

const CAUSES: usize = Cause::ALL.len();
const OWNERS: usize = Owner::ALL.len();
/// The row has a parent.
const PARENT: u32 = 1;

#[derive(Default)]
pub struct Causes {
    rows: usize,
    schema: Option<SchemaRef>,
    exchange: Full<UInt64Type>,
    start: Full<TimestampNanosecondType>,
    end: Full<TimestampNanosecondType>,
    cause: Listed<CAUSES>,
    parent: Listed<CAUSES>,
    has: Masks,
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
    pub fn len(&self) -> usize {
        self.rows
    }

    /// There must be room: fewer than `BATCH_ROWS` rows.
    pub fn push(&mut self, exchange: u64, r: &Row) {
        let row = self.rows;
        self.rows += 1;
        self.exchange.set(row, exchange);
        self.start.set(row, r.start);
        self.end.set(row, r.end);
        self.cause.set(row, r.cause as usize, Cause::word);
        if let Some(parent) = r.parent {
            self.parent.set(row, parent as usize, Cause::word);
            self.has.set(row, PARENT);
        }
        self.owner.set(row, r.owner as usize, Owner::word);
        self.duration.set(row, ms(r.end - r.start));
        self.from_frame.set(row, r.from_frame);
        self.to_frame.set(row, r.to_frame);
        let before = self.evidence.len();
        self.evidence
            .extend(r.evidence.iter().filter(|frame| **frame != 0));
        self.evidence_counts.push(self.evidence.len() - before);
        self.rule.set(row, r.rule);
        self.confidence.set(row, r.confidence);
    }

    /// The rows so far as a batch; the next one begins empty.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let (has, evidence) = (self.has.take(rows), self.lists());
        super::next_batch(
            &mut self.schema,
            vec![
                self.exchange.column(rows, "exchange"),
                instants(&mut self.start, rows, "start"),
                instants(&mut self.end, rows, "end"),
                column("cause", self.cause.take(rows, None)),
                nullable("parent", self.parent.take(rows, Some(has.nulls(PARENT)))),
                column("owner", self.owner.take(rows, None)),
                self.duration.column(rows, "duration_ms"),
                self.from_frame.column(rows, "from_frame"),
                self.to_frame.column(rows, "to_frame"),
                column("evidence", evidence),
                column("rule", self.rule.take(rows, None)),
                self.confidence.column(rows, "confidence"),
            ],
        )
    }

    fn lists(&mut self) -> ArrayRef {
        let frames = UInt64Array::from(renewed(&mut self.evidence));
        let offsets = OffsetBuffer::from_lengths(renewed(&mut self.evidence_counts));
        let item = Arc::new(Field::new("item", DataType::UInt64, false));
        debug_assert_eq!(frames.data_type(), item.data_type());
        Arc::new(ListArray::new(item, offsets, Arc::new(frames), None))
    }
}
