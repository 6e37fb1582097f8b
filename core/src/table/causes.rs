//! `causes`: the partition of every exchange's time, and of connects, pushes and gaps; the rows of one are contiguous.

use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt64Type};

use super::columns::{EVERY, Full, Partial, blocks, instants};
use super::lists::Lists;
use super::words::Listed;
use super::{Column, column, ms, nullable};
use crate::exchange::RowKind;
use crate::judge::{Because, Cause, Grade, Owner, Rival, Row, Rule};

/// The row has a parent, a rival.
const PARENT: u32 = 1;
const RIVAL: u32 = 2;
/// Whose time it is.
const EXCHANGE: u32 = 4;
const CONNECT: u32 = 8;
const PUSH: u32 = 16;
const GAP: u32 = 32;

blocks! {
    struct Columns {
        exchange: Partial<UInt64Type, EXCHANGE>,
        connect: Partial<UInt64Type, CONNECT>,
        push: Partial<UInt64Type, PUSH>,
        gap: Partial<UInt64Type, GAP>,
        start: Full<TimestampNanosecondType>,
        end: Full<TimestampNanosecondType>,
        cause: Listed<{ Cause::COUNT }, EVERY>,
        parent: Listed<{ Cause::COUNT }, PARENT>,
        owner: Listed<{ Owner::COUNT }, EVERY>,
        duration: Full<Float64Type>,
        from_frame: Full<UInt64Type>,
        to_frame: Full<UInt64Type>,
        evidence: Lists,
        rule: Listed<{ Rule::COUNT }, EVERY>,
        grade: Listed<{ Grade::COUNT }, EVERY>,
        confidence: Full<Float64Type>,
        because: Listed<{ Because::COUNT }, EVERY>,
        rival: Listed<{ Rival::COUNT }, RIVAL>,
    }
}

#[derive(Default)]
pub struct Causes {
    columns: Columns,
}

impl Causes {
    pub fn len(&self) -> usize {
        self.columns.rows
    }

    /// True when the batch is full.
    #[inline(always)]
    pub fn push(&mut self, whose: RowKind, number: u64, r: &Row) -> bool {
        let columns = &mut self.columns;
        let row = columns.place();
        columns.start.set(row, r.start);
        columns.end.set(row, r.end);
        columns.cause.set(row, r.cause as usize, Cause::word);
        let number = Some(number);
        let mut has = match whose {
            RowKind::Exchange => columns.exchange.set_some(row, number),
            RowKind::Connect => columns.connect.set_some(row, number),
            RowKind::Push => columns.push.set_some(row, number),
            RowKind::Pause | RowKind::Held | RowKind::OneWay => columns.gap.set_some(row, number),
        };
        if let Some(parent) = r.parent {
            columns.parent.set(row, parent as usize, Cause::word);
            has |= PARENT;
        }
        columns.owner.set(row, r.owner as usize, Owner::word);
        columns.duration.set(row, ms(r.end - r.start));
        columns.from_frame.set(row, r.from_frame);
        columns.to_frame.set(row, r.to_frame);
        columns.rule.set(row, r.rule as usize, Rule::word);
        let grounds = r.grounds;
        columns.grade.set(row, grounds.grade as usize, Grade::word);
        columns.confidence.set(row, r.confidence());
        columns.because.set(row, grounds.because as usize, Because::word);
        if let Some(rival) = grounds.rival {
            columns.rival.set(row, rival.place(), Rival::word);
            has |= RIVAL;
        }
        columns.has.set(row, has);
        columns.evidence.set(row, &r.evidence);
        columns.done(row)
    }

    /// The columns of the rows so far; the next batch begins empty.
    pub fn take(&mut self) -> Vec<Column> {
        let c = &mut self.columns;
        let has = c.end();
        let rows = has.rows();
        vec![
            c.exchange.column(&has, "exchange"),
            c.connect.column(&has, "connect"),
            c.push.column(&has, "push"),
            c.gap.column(&has, "gap"),
            instants(&mut c.start, rows, "start"),
            instants(&mut c.end, rows, "end"),
            column("cause", c.cause.take(&has)),
            nullable("parent", c.parent.take(&has)),
            column("owner", c.owner.take(&has)),
            c.duration.column(rows, "duration_ms"),
            c.from_frame.column(rows, "from_frame"),
            c.to_frame.column(rows, "to_frame"),
            column("evidence", c.evidence.take()),
            column("rule", c.rule.take(&has)),
            column("grade", c.grade.take(&has)),
            c.confidence.column(rows, "confidence"),
            column("because", c.because.take(&has)),
            nullable("rival", c.rival.take(&has)),
        ]
    }
}
