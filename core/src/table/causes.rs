//! `causes`: the partition of every exchange's time; the rows of one exchange are contiguous.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt64Builder};
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field};

use super::{column, durations, instants, nullable, plain, words};
use crate::cause::{Cause, Row};
use crate::engine::Settled;

pub fn batch(settled: &[Settled]) -> Result<RecordBatch, ArrowError> {
    type Of<'a> = (u64, &'a Row);
    let rows: Vec<Of<'_>> =
        settled.iter().flat_map(|s| s.causes.iter().map(|row| (s.exchange.id, row))).collect();
    super::batch(vec![
        column("exchange", plain::<UInt64Type, Of<'_>>(&rows, |r| r.0)),
        column("start", instants(&rows, |r| r.1.start)),
        column("end", instants(&rows, |r| r.1.end)),
        column("cause", words(&rows, |r| Some(r.1.cause.name()))),
        nullable("parent", words(&rows, |r| r.1.parent.map(Cause::name))),
        column("owner", words(&rows, |r| Some(r.1.owner.name()))),
        column("duration_ms", durations(&rows, |r| r.1.end - r.1.start)),
        column("from_frame", plain::<UInt64Type, Of<'_>>(&rows, |r| r.1.from_frame)),
        column("to_frame", plain::<UInt64Type, Of<'_>>(&rows, |r| r.1.to_frame)),
        column("evidence", evidence(&rows)),
        column("rule", words(&rows, |r| Some(r.1.rule))),
        column("confidence", plain::<Float64Type, Of<'_>>(&rows, |r| r.1.confidence)),
    ])
}

fn evidence(rows: &[(u64, &Row)]) -> ArrayRef {
    let item = Field::new("item", DataType::UInt64, false);
    let mut builder = ListBuilder::new(UInt64Builder::new()).with_field(item);
    for (_, row) in rows {
        for frame in row.evidence.iter().filter(|frame| **frame != 0) {
            builder.values().append_value(*frame);
        }
        builder.append(true);
    }
    Arc::new(builder.finish())
}
