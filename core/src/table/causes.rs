//! `causes`: the partition of every exchange's time, and of connects, pushes and gaps; the rows of one are contiguous.

use arrow_array::types::{Float64Type, UInt64Type};

use super::columns::{EVERY, Full, Instant, Partial, blocks};
use super::lists::Lists;
use super::words::Listed;
use super::{Batch, Column, ms};
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
        exchange: Partial<UInt64Type, EXCHANGE> = "exchange",
        connect: Partial<UInt64Type, CONNECT> = "connect",
        push: Partial<UInt64Type, PUSH> = "push",
        gap: Partial<UInt64Type, GAP> = "gap",
        start: Instant = "start",
        end: Instant = "end",
        cause: Listed<{ Cause::COUNT }, EVERY> = "cause",
        parent: Listed<{ Cause::COUNT }, PARENT> = "parent",
        owner: Listed<{ Owner::COUNT }, EVERY> = "owner",
        duration: Full<Float64Type> = "duration_ms",
        from_frame: Full<UInt64Type> = "from_frame",
        to_frame: Full<UInt64Type> = "to_frame",
        evidence: Lists = "evidence",
        rule: Listed<{ Rule::COUNT }, EVERY> = "rule",
        grade: Listed<{ Grade::COUNT }, EVERY> = "grade",
        confidence: Full<Float64Type> = "confidence",
        because: Listed<{ Because::COUNT }, EVERY> = "because",
        rival: Listed<{ Rival::COUNT }, RIVAL> = "rival",
    }
}

#[derive(Default)]
pub struct Causes {
    columns: Columns,
}

impl Causes {
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
}

impl Batch for Causes {
    fn rows(&self) -> usize {
        self.columns.rows
    }

    fn take(&mut self) -> Vec<Column> {
        let taken = self.columns.end();
        self.columns.columns(&taken, "")
    }
}
