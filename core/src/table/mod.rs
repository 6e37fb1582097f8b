//! Rows become Arrow columns here and nowhere else. Each table has one file that names its columns, their
//! types and how a row fills them; the order of the list is the order of the columns.

mod causes;
mod events;
mod evidence;
mod exchanges;
mod issues;
mod streams;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use crate::engine::{Counted, Settled};
use crate::pool::Judged;
use crate::stream::{Event, Streams};

/// Raised whenever a column's name, type or place changes.
pub const SCHEMA_VERSION: &str = "1";
/// Rows per batch: small enough that the row buffer stays in the processor's cache.
const BATCH_ROWS: usize = 4096;

pub const NAMES: [&str; 6] = ["events", "streams", "exchanges", "causes", "evidence", "issues"];

/// A column: name, whether it may be null, values.
struct Column {
    name: String,
    nullable: bool,
    values: ArrayRef,
}

fn column(name: impl Into<String>, values: ArrayRef) -> Column {
    Column { name: name.into(), nullable: false, values }
}

fn nullable(name: impl Into<String>, values: ArrayRef) -> Column {
    Column { name: name.into(), nullable: true, values }
}

fn batch(columns: Vec<Column>) -> Result<RecordBatch, ArrowError> {
    let fields: Vec<Field> =
        columns.iter().map(|c| Field::new(&c.name, c.values.data_type().clone(), c.nullable)).collect();
    let metadata = HashMap::from([("latpcap.schema".to_string(), SCHEMA_VERSION.to_string())]);
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    RecordBatch::try_new(schema, columns.into_iter().map(|c| c.values).collect())
}

/// Values of a plain column.
fn plain<T: ArrowPrimitiveType, R>(rows: &[R], of: impl Fn(&R) -> T::Native) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(rows.iter().map(of)))
}

/// Values of a column with nulls.
fn option<T: ArrowPrimitiveType, R>(rows: &[R], of: impl Fn(&R) -> Option<T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter(rows.iter().map(of)))
}

fn instants<R>(rows: &[R], of: impl Fn(&R) -> i64) -> ArrayRef {
    let values = PrimitiveArray::<TimestampNanosecondType>::from_iter_values(rows.iter().map(of));
    Arc::new(values.with_timezone("UTC"))
}

fn instant_options<R>(rows: &[R], of: impl Fn(&R) -> Option<i64>) -> ArrayRef {
    let values = PrimitiveArray::<TimestampNanosecondType>::from_iter(rows.iter().map(of));
    Arc::new(values.with_timezone("UTC"))
}

/// The only place where nanoseconds become floats.
fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

fn durations<R>(rows: &[R], of: impl Fn(&R) -> i64) -> ArrayRef {
    plain::<Float64Type, R>(rows, |r| ms(of(r)))
}

fn duration_options<R>(rows: &[R], of: impl Fn(&R) -> Option<i64>) -> ArrayRef {
    option::<Float64Type, R>(rows, |r| of(r).map(ms))
}

fn booleans<R>(rows: &[R], of: impl Fn(&R) -> bool) -> ArrayRef {
    Arc::new(rows.iter().map(|r| Some(of(r))).collect::<BooleanArray>())
}

/// Words that repeat: dictionary-encoded.
fn words<'a, R>(rows: &'a [R], of: impl Fn(&'a R) -> Option<&'a str>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    for row in rows {
        match of(row) {
            Some(word) => builder.append_value(word),
            None => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}

/// Finished batches of every table, until they are taken.
#[derive(Debug, Default)]
pub struct Tables {
    events: Vec<Event>,
    settled: Vec<Settled>,
    batches: BTreeMap<&'static str, Vec<RecordBatch>>,
}

impl Tables {
    pub fn event(&mut self, event: Event) {
        self.events.push(event);
        if self.events.len() >= BATCH_ROWS {
            self.flush_events();
        }
    }

    pub fn settled(&mut self, settled: Settled) {
        self.settled.push(settled);
        if self.settled.len() >= BATCH_ROWS {
            self.flush_settled();
        }
    }

    /// The tables that are known only when the capture has ended.
    pub fn finish<'a>(
        &mut self,
        streams: &Streams,
        judged: &[Judged],
        issues: impl Iterator<Item = &'a Counted>,
    ) {
        self.flush_events();
        self.flush_settled();
        self.keep("streams", streams::batch(streams));
        self.keep("evidence", evidence::batch(streams, judged));
        self.keep("issues", issues::batch(&issues.collect::<Vec<_>>()));
    }

    /// The batches of one table that are ready, with its schema; they are given once.
    pub fn take(&mut self, name: &str) -> Option<(SchemaRef, Vec<RecordBatch>)> {
        let name = NAMES.iter().find(|known| **known == name)?;
        let batches = self.batches.remove(name).unwrap_or_default();
        let schema = match batches.first() {
            Some(first) => first.schema(),
            None => empty(name)?.schema(),
        };
        Some((schema, batches))
    }

    fn flush_events(&mut self) {
        if !self.events.is_empty() {
            let built = events::batch(&self.events);
            self.events.clear();
            self.keep("events", built);
        }
    }

    fn flush_settled(&mut self) {
        if !self.settled.is_empty() {
            let built = exchanges::batch(&self.settled);
            self.keep("exchanges", built);
            let built = causes::batch(&self.settled);
            self.keep("causes", built);
            self.settled.clear();
        }
    }

    fn keep(&mut self, name: &'static str, built: Result<RecordBatch, ArrowError>) {
        // columns of one batch have one length and the types of their own data: this cannot fail
        if let Ok(batch) = built {
            self.batches.entry(name).or_default().push(batch);
        }
    }
}

/// A batch without rows, for the schema.
fn empty(name: &str) -> Option<RecordBatch> {
    match name {
        "events" => events::batch(&[]),
        "streams" => streams::batch(&Streams::default()),
        "exchanges" => exchanges::batch(&[]),
        "causes" => causes::batch(&[]),
        "evidence" => evidence::batch(&Streams::default(), &[]),
        "issues" => issues::batch(&[]),
        _ => return None,
    }
    .ok()
}
