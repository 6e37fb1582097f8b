//! The Arrow tables: what the analysis found becomes record batches here and nowhere else.
//!
//! Each table has a file (connects, pushes and gaps share one) with a list of its columns: name, type, and whether null
//! is possible. The order of the list is the order of the columns. The long tables (`events`, `streams`, `exchanges`,
//! `causes`) write each row into column buffers at once (`columns.rs`). The short ones keep rows as structs until a
//! batch is built (`cells.rs`).

mod addresses;
mod cause_times;
mod causes;
mod cells;
mod columns;
mod community;
mod connection_rows;
mod events;
mod evidence;
mod exchanges;
mod issues;
mod lookups;
mod probes;
mod streams;
mod transfers;
mod words;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::evidence::rtt::Pairs;
use crate::exchange::{Context, Exchange, RowKind};
use crate::issue::{Counted, Issue, Kind};
use crate::judge::{Cause, Paths, Row, SenderVerdict};
use crate::lookup::Lookup;
use crate::probe::Probe;
use crate::stream::{Event, Stream, Streams};

/// Version of the columns. Raise it whenever a column's name, type or place changes.
const LAYOUT: u32 = 21;

/// Returns the version of all tables: `LAYOUT`, and the number of causes, each of which has a column.
pub fn schema_version() -> String {
    format!("{LAYOUT}.{}", Cause::COUNT)
}

/// Rows per batch: small enough that the row buffer stays in the processor's cache.
pub const BATCH_ROWS: usize = 4096;

/// Rows per batch of connects, pushes, gaps, transfers and lookups, whose rows are kept as structs. Such rows are
/// larger, so a batch has fewer.
const SHORT_BATCH_ROWS: usize = 512;

/// Names of the tables.
pub const NAMES: [&str; 12] = [
    "events",
    "streams",
    "exchanges",
    "connects",
    "pushes",
    "gaps",
    "causes",
    "transfers",
    "evidence",
    "lookups",
    "probes",
    "issues",
];

/// `causes` and the tables whose rows it refers to. Their batches become available together (see `Tables::take`).
const LINKED: [&str; 5] = ["exchanges", "connects", "pushes", "gaps", "causes"];

/// A built column of one batch.
struct Column {
    name: Cow<'static, str>,
    nullable: bool,
    values: ArrayRef,
}

fn column(name: impl Into<Cow<'static, str>>, values: ArrayRef) -> Column {
    Column {
        name: name.into(),
        nullable: false,
        values,
    }
}

fn nullable(name: impl Into<Cow<'static, str>>, values: ArrayRef) -> Column {
    Column {
        name: name.into(),
        nullable: true,
        values,
    }
}

/// A table that writes each row into column buffers at once.
trait Batch {
    /// Number of rows since the last batch.
    fn rows(&self) -> usize;

    /// Returns the columns of these rows and empties the buffers.
    fn take(&mut self) -> Vec<Column>;
}

/// The schema of each table, in the order of `NAMES`. Taken from the columns of a batch without rows.
static SCHEMAS: LazyLock<[SchemaRef; NAMES.len()]> = LazyLock::new(|| {
    let metadata = HashMap::from([("latpcap.schema".to_string(), schema_version())]);
    NAMES.map(|name| {
        let columns = empty_columns(name);
        let field = |c: &Column| Field::new(&*c.name, c.values.data_type().clone(), c.nullable);
        let fields: Vec<Field> = columns.iter().map(field).collect();
        Arc::new(Schema::new_with_metadata(fields, metadata.clone()))
    })
});

/// Converts a duration from nanoseconds to the milliseconds of a column.
fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// Rows of every table, and the finished batches until Python takes them.
#[derive(Default)]
pub struct Tables {
    events: Box<events::Events>,
    exchanges: Box<exchanges::Exchanges>,
    causes: Box<causes::Causes>,
    connects: Vec<connection_rows::ConnectRow>,
    pushes: Vec<connection_rows::PushRow>,
    gaps: Vec<connection_rows::GapRow>,
    streams: Box<streams::StreamColumns>,
    transfers: Vec<transfers::Row>,
    lookups: Vec<Lookup>,
    probes: Vec<Probe>,
    /// Number of the first row in `probes`, counted over all batches.
    first_probe: u64,
    batches: Batches,
}

impl Tables {
    /// Adds a row to `events`.
    #[inline(always)]
    pub fn event(&mut self, event: &Event<'_>) {
        if self.events.push(event) {
            self.flush_events();
        }
    }

    /// Adds a finished exchange, connect, push or gap, and the rows of `causes` that partition its time.
    pub fn judged(&mut self, exchange: &Exchange, causes: &[Row], paths: &Paths, pairs: &Pairs) {
        if exchange.row != RowKind::Exchange {
            return self.other_wait(exchange, causes);
        }
        let swapped: Vec<Row>;
        let causes = if exchange.by_server {
            swapped = causes.iter().map(Row::with_sides_swapped).collect();
            &swapped
        } else {
            causes
        };
        for row in causes {
            self.exchanges.add_cause(row);
            if self.causes.push(exchange.row, exchange.id, row) {
                self.flush_causes();
            }
        }
        if self.exchanges.push(exchange, paths, pairs) {
            self.flush_exchanges();
        }
    }

    /// Adds a row to `connects`, `pushes` or `gaps`, and its rows in `causes`.
    #[cold]
    fn other_wait(&mut self, row: &Exchange, causes: &[Row]) {
        for cause in causes {
            if self.causes.push(row.row, row.id, cause) {
                self.flush_causes();
            }
        }
        let rows = match row.row {
            RowKind::Exchange => 0,
            RowKind::Connect => {
                self.connects.push(connection_rows::ConnectRow::new(row, causes));
                self.connects.len()
            }
            RowKind::Push => {
                self.pushes.push(connection_rows::PushRow::new(row, causes));
                self.pushes.len()
            }
            RowKind::Pause | RowKind::Held | RowKind::OneWay => {
                self.gaps.push(connection_rows::GapRow::new(row, causes));
                self.gaps.len()
            }
        };
        if rows >= SHORT_BATCH_ROWS {
            self.flush_connection_rows();
        }
    }

    /// Adds a stream that has ended to `streams`, and its bulk transfers to `transfers`.
    pub fn stream(&mut self, id: u32, stream: &Stream, context: &Context) {
        if self.streams.push(id, stream, context) {
            self.flush_streams();
        }
        transfers::push_transfers(id, stream, &mut self.transfers);
        if self.transfers.len() >= SHORT_BATCH_ROWS {
            self.flush_transfers();
        }
    }

    /// Adds a lookup that was answered or given up.
    pub fn lookup(&mut self, lookup: Lookup) {
        self.lookups.push(lookup);
        if self.lookups.len() >= SHORT_BATCH_ROWS {
            self.flush_lookups();
        }
    }

    /// Adds a probe that was answered or given up.
    pub fn probe(&mut self, probe: Probe) {
        self.probes.push(probe);
        if self.probes.len() >= BATCH_ROWS {
            self.flush_probes();
        }
    }

    /// Builds the last batch of every table. `evidence` and `issues` are complete only now, at the end of the capture.
    pub fn finish<'a>(
        &mut self,
        streams: &Streams,
        judged: &[SenderVerdict],
        files: &[String],
        issues: impl Iterator<Item = &'a Counted>,
    ) {
        self.flush_events();
        self.flush_exchanges();
        self.flush_connection_rows();
        self.flush_causes();
        self.flush_streams();
        self.flush_transfers();
        self.flush_lookups();
        self.flush_probes();
        self.batches.add("evidence", evidence::columns(streams, judged));
        let misfits = std::mem::take(&mut self.batches.misfits);
        let mut issues: Vec<&Counted> = issues.collect();
        issues.extend(&misfits);
        self.batches.add("issues", issues::columns(files, &issues));
        // the columns of `issues` come from one list of rows, so they always fit
        debug_assert!(self.batches.misfits.is_empty(), "issues do not fit their table");
    }

    /// Removes and returns the finished batches of one table, with its schema. `None` if there is no such table.
    ///
    /// A row of `causes` and the row it refers to must be taken in the same pass. Their batches fill at different
    /// times, so as soon as one of the `LINKED` tables has a full batch, the others are flushed too.
    pub fn take(&mut self, name: &str) -> Option<(SchemaRef, Vec<RecordBatch>)> {
        let index = NAMES.iter().position(|listed| *listed == name)?;
        let ready =
            |(table, batches): (&&str, &Vec<RecordBatch>)| LINKED.contains(table) && !batches.is_empty();
        if LINKED.contains(&name) && NAMES.iter().zip(&self.batches.finished).any(ready) {
            self.flush_exchanges();
            self.flush_connection_rows();
            self.flush_causes();
        }
        let batches = std::mem::take(self.batches.finished.get_mut(index)?);
        Some((Arc::clone(SCHEMAS.get(index)?), batches))
    }

    #[inline(never)]
    fn flush_events(&mut self) {
        self.batches.add_filled("events", &mut *self.events);
    }

    #[inline(never)]
    fn flush_exchanges(&mut self) {
        self.batches.add_filled("exchanges", &mut *self.exchanges);
    }

    #[inline(never)]
    fn flush_causes(&mut self) {
        self.batches.add_filled("causes", &mut *self.causes);
    }

    fn flush_streams(&mut self) {
        self.batches.add_filled("streams", &mut *self.streams);
    }

    fn flush_connection_rows(&mut self) {
        self.batches
            .add_rows("connects", &mut self.connects, connection_rows::connects);
        self.batches
            .add_rows("pushes", &mut self.pushes, connection_rows::pushes);
        self.batches
            .add_rows("gaps", &mut self.gaps, connection_rows::gaps);
    }

    fn flush_transfers(&mut self) {
        self.batches
            .add_rows("transfers", &mut self.transfers, transfers::columns);
    }

    fn flush_lookups(&mut self) {
        self.batches
            .add_rows("lookups", &mut self.lookups, lookups::columns);
    }

    fn flush_probes(&mut self) {
        let (first, rows) = (self.first_probe, self.probes.len() as u64);
        let columns = |rows: &[Probe]| probes::columns(first, rows);
        self.batches.add_rows("probes", &mut self.probes, columns);
        self.first_probe += rows;
    }
}

/// Finished batches of each table, in the order of `NAMES`.
#[derive(Default)]
struct Batches {
    finished: [Vec<RecordBatch>; NAMES.len()],
    /// One issue for each table that lost batches because their columns did not fit the schema; it counts the batches.
    misfits: Vec<Counted>,
}

impl Batches {
    fn add(&mut self, name: &'static str, columns: Vec<Column>) {
        let index = NAMES.iter().position(|listed| *listed == name);
        let values = columns.into_iter().map(|column| column.values).collect();
        let built = index
            .and_then(|index| SCHEMAS.get(index))
            .and_then(|schema| RecordBatch::try_new(Arc::clone(schema), values).ok());
        let batches = index.and_then(|index| self.finished.get_mut(index));
        if let (Some(batch), Some(batches)) = (built, batches) {
            batches.push(batch);
            return;
        }
        self.count_misfit(name);
    }

    #[cold]
    fn count_misfit(&mut self, table: &'static str) {
        let is_same = |misfit: &&mut Counted| misfit.issue.detail.as_deref() == Some(table);
        if let Some(misfit) = self.misfits.iter_mut().find(is_same) {
            misfit.count += 1;
            return;
        }
        let reason = "rows lost: columns do not fit the table";
        self.misfits.push(Counted {
            issue: Issue::new(Kind::Damaged, "table", reason).detail(table),
            count: 1,
            last_frame: None,
        });
    }

    /// Adds a batch with the rows of `table`, if there are any.
    fn add_filled(&mut self, name: &'static str, table: &mut impl Batch) {
        if table.rows() > 0 {
            self.add(name, table.take());
        }
    }

    /// Adds a batch with `rows`, if there are any, and clears them.
    fn add_rows<R>(&mut self, name: &'static str, rows: &mut Vec<R>, columns: impl Fn(&[R]) -> Vec<Column>) {
        if !rows.is_empty() {
            self.add(name, columns(rows));
            rows.clear();
        }
    }
}

/// Returns the columns of a table without rows.
fn empty_columns(name: &str) -> Vec<Column> {
    match name {
        "events" => events::Events::default().take(),
        "streams" => streams::StreamColumns::default().take(),
        "exchanges" => exchanges::Exchanges::default().take(),
        "connects" => connection_rows::connects(&[]),
        "pushes" => connection_rows::pushes(&[]),
        "gaps" => connection_rows::gaps(&[]),
        "causes" => causes::Causes::default().take(),
        "transfers" => transfers::columns(&[]),
        "evidence" => evidence::columns(&Streams::default(), &[]),
        "lookups" => lookups::columns(&[]),
        "probes" => probes::columns(0, &[]),
        "issues" => issues::columns(&[], &[]),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_does_not_fit_its_table_is_an_issue() {
        let mut batches = Batches::default();
        batches.add("probes", Vec::new());
        batches.add("probes", Vec::new());
        batches.add("probes", empty_columns("probes"));
        let misfits = batches
            .misfits
            .iter()
            .map(|misfit| (misfit.issue.sentence(), misfit.count));
        let sentence = "rows lost: columns do not fit the table (probes)".to_string();
        assert_eq!(misfits.collect::<Vec<_>>(), [(sentence, 2)]);
    }
}
