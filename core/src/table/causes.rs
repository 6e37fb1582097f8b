//! `causes`: the partition of every exchange's time; the rows of one exchange are contiguous.

use std::sync::Arc;

use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt64Type};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field};

use super::columns::{Fixed, Full, instants, renewed};
use super::{column, ms, nullable};
use crate::cause::{Cause, Row};

#[derive(Default)]
pub struct Causes {
    exchange: Full<UInt64Type>,
    start: Full<TimestampNanosecondType>,
    end: Full<TimestampNanosecondType>,
    cause: Fixed,
    parent: Fixed,
    owner: Fixed,
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
        self.evidence_counts.len()
    }

    pub fn push(&mut self, exchange: u64, row: &Row) {
        self.exchange.push(exchange);
        self.start.push(row.start);
        self.end.push(row.end);
        self.cause.push(Some(row.cause.name()));
        self.parent.push(row.parent.map(Cause::name));
        self.owner.push(Some(row.owner.name()));
        self.duration.push(ms(row.end - row.start));
        self.from_frame.push(row.from_frame);
        self.to_frame.push(row.to_frame);
        let before = self.evidence.len();
        self.evidence
            .extend(row.evidence.iter().filter(|frame| **frame != 0));
        self.evidence_counts.push(self.evidence.len() - before);
        self.rule.push(Some(row.rule));
        self.confidence.push(row.confidence);
    }

    /// The rows so far as a batch; the next one begins empty.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
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
