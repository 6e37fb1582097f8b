//! Rows become Arrow columns here and nowhere else. Each table has one file that names its columns, their
//! types and how a row fills them; the order of the list is the order of the columns.

mod addresses;
mod causes;
mod columns;
mod community;
mod connection_rows;
mod events;
mod evidence;
mod exchanges;
mod issues;
mod lists;
mod lookups;
mod probes;
mod spent;
mod streams;
mod transfers;
mod words;

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use arrow_array::builder::StringBuilder;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::evidence::rtt::Pairs;
use crate::exchange::{Context, Exchange, RowKind};
use crate::issue::Counted;
use crate::judge::{Cause, Judged, Paths, Row};
use crate::lookup::Lookup;
use crate::probe::Probe;
use crate::stream::{Event, Stream, Streams};

/// Raised whenever a column's name, type or place changes.
const LAYOUT: u32 = 21;

/// The version of all tables: their layout, and how many causes have columns.
pub fn schema_version() -> String {
    format!("{LAYOUT}.{}", Cause::COUNT)
}

/// Rows per batch: small enough that the row buffer stays in the processor's cache.
pub const BATCH_ROWS: usize = 4096;

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

/// `causes`, and the tables whose rows its own are of.
const LINKED: [&str; 5] = ["exchanges", "connects", "pushes", "gaps", "causes"];

/// A column: name, whether it may be null, values.
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

/// A table whose rows are written into columns as they come.
trait Batch {
    /// Since the last batch.
    fn rows(&self) -> usize;

    /// The columns of these rows; the next batch begins empty.
    fn take(&mut self) -> Vec<Column>;
}

/// As in `NAMES`.
static SCHEMAS: LazyLock<[SchemaRef; NAMES.len()]> = LazyLock::new(|| {
    let metadata = HashMap::from([("latpcap.schema".to_string(), schema_version())]);
    NAMES.map(|name| {
        let columns = without_rows(name);
        let field = |c: &Column| Field::new(&*c.name, c.values.data_type().clone(), c.nullable);
        let fields: Vec<Field> = columns.iter().map(field).collect();
        Arc::new(Schema::new_with_metadata(fields, metadata.clone()))
    })
});

/// Values of a plain column.
fn plain<T: ArrowPrimitiveType, R>(rows: &[R], of: impl Fn(&R) -> T::Native) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(rows.iter().map(of)))
}

/// Values of a column with nulls.
fn option<T: ArrowPrimitiveType, R>(rows: &[R], of: impl Fn(&R) -> Option<T::Native>) -> ArrayRef {
    let values: Vec<T::Native> = rows.iter().map(|row| of(row).unwrap_or_default()).collect();
    let known = BooleanBuffer::collect_bool(rows.len(), |row| {
        rows.get(row).is_some_and(|row| of(row).is_some())
    });
    let nulls = NullBuffer::new(known);
    Arc::new(PrimitiveArray::<T>::new(values.into(), Some(nulls)))
}

fn instants<R>(rows: &[R], of: impl Fn(&R) -> i64) -> ArrayRef {
    let values = PrimitiveArray::<TimestampNanosecondType>::from_iter_values(rows.iter().map(of));
    Arc::new(values.with_timezone("UTC"))
}

/// The only place where a table's nanoseconds become floats.
fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

fn durations<R>(rows: &[R], of: impl Fn(&R) -> i64) -> ArrayRef {
    plain::<Float64Type, R>(rows, |r| ms(of(r)))
}

fn duration_options<R>(rows: &[R], of: impl Fn(&R) -> Option<i64>) -> ArrayRef {
    option::<Float64Type, R>(rows, |r| of(r).map(ms))
}

/// Addresses as text. The standard library's way takes ten times as long for the common ones, and the same one often
/// comes again.
fn addresses(addresses: impl ExactSizeIterator<Item = Option<IpAddr>>) -> ArrayRef {
    let mut texts = StringBuilder::with_capacity(addresses.len(), USUAL_ADDRESS * addresses.len());
    let mut text = String::with_capacity(40);
    let (mut last, mut times) = (None, 0);
    let mut append = |address: Option<IpAddr>, times| match address {
        None => texts.append_nulls(times),
        Some(address) => {
            text.clear();
            write_address(address, &mut text);
            texts.append_value_n(&text, times);
        }
    };
    for address in addresses {
        if address != last {
            append(last, times);
            (last, times) = (address, 0);
        }
        times += 1;
    }
    append(last, times);
    Arc::new(texts.finish())
}

/// Bytes of an IPv4 address as text, at most.
const USUAL_ADDRESS: usize = 15;

fn write_address(address: IpAddr, text: &mut String) {
    let IpAddr::V4(v4) = address else {
        return text.push_str(&address.to_string());
    };
    for (place, octet) in v4.octets().into_iter().enumerate() {
        if place > 0 {
            text.push('.');
        }
        for (least, unit) in [(100, 100), (10, 10), (0, 1)] {
            if octet >= least {
                text.push(char::from(b'0' + octet / unit % 10));
            }
        }
    }
}

/// Words from the capture: dictionary-encoded.
fn interned_words<R>(rows: &[R], of: impl Fn(&R) -> Option<&str>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<DictionaryArray<Int32Type>>())
}

/// Words from a list in this crate: dictionary-encoded.
fn fixed_words<R>(rows: &[R], of: impl Fn(&R) -> Option<&'static str>) -> ArrayRef {
    let mut known = Vec::new();
    let keys = rows
        .iter()
        .map(|row| of(row).map(|word| words::key_of(&mut known, word)));
    let keys: Int32Array = keys.collect();
    words::dictionary(keys, Arc::new(StringArray::from(known)))
}

/// Finished batches of every table, until they are taken.
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
    /// The number of the first of these.
    probe: u64,
    batches: Batches,
}

impl Tables {
    #[inline(always)]
    pub fn event(&mut self, event: &Event<'_>) {
        if self.events.push(event) {
            self.flush_events();
        }
    }

    /// A finished exchange and its partition.
    pub fn judged(&mut self, exchange: &Exchange, causes: &[Row], paths: &Paths, pairs: &Pairs) {
        if exchange.row != RowKind::Exchange {
            return self.other_wait(exchange, causes);
        }
        let turned: Vec<Row>;
        let causes = if exchange.by_server {
            turned = causes.iter().map(Row::turned).collect();
            &turned
        } else {
            causes
        };
        for row in causes {
            self.exchanges.spend(row);
            if self.causes.push(exchange.row, exchange.id, row) {
                self.flush_causes();
            }
        }
        if self.exchanges.push(exchange, paths, pairs) {
            self.flush_exchanges();
        }
    }

    /// A wait that is no request (a connect, a push, a transfer), and its partition.
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
        if rows >= connection_rows::ROWS {
            self.flush_beside();
        }
    }

    /// A stream that is over.
    pub fn stream(&mut self, id: u32, stream: &Stream, context: &Context) {
        if self.streams.push(id, stream, context) {
            self.flush_streams();
        }
        transfers::of_stream(id, stream, &mut self.transfers);
        if self.transfers.len() >= connection_rows::ROWS {
            self.flush_transfers();
        }
    }

    /// A lookup that is over.
    pub fn lookup(&mut self, lookup: Lookup) {
        self.lookups.push(lookup);
        if self.lookups.len() >= connection_rows::ROWS {
            self.flush_lookups();
        }
    }

    /// A probe that is over.
    pub fn probe(&mut self, probe: Probe) {
        self.probes.push(probe);
        if self.probes.len() >= BATCH_ROWS {
            self.flush_probes();
        }
    }

    /// The tables that are known only when the capture has ended.
    pub fn finish<'a>(
        &mut self,
        streams: &Streams,
        judged: &[Judged],
        files: &[String],
        issues: impl Iterator<Item = &'a Counted>,
    ) {
        self.flush_events();
        self.flush_exchanges();
        self.flush_beside();
        self.flush_causes();
        self.flush_streams();
        self.flush_transfers();
        self.flush_lookups();
        self.flush_probes();
        self.batches.add("evidence", evidence::columns(streams, judged));
        self.batches
            .add("issues", issues::columns(files, &issues.collect::<Vec<_>>()));
    }

    /// The batches of one table that are ready, with its schema; they are given once. Of rows that belong together
    /// (an exchange, connect, push or gap and its causes) all are ready, or none is: their batches fill at other times,
    /// so the first full one makes all of them ready.
    pub fn take(&mut self, name: &str) -> Option<(SchemaRef, Vec<RecordBatch>)> {
        let place = NAMES.iter().position(|known| *known == name)?;
        let ready =
            |(known, batches): (&&str, &Vec<RecordBatch>)| LINKED.contains(known) && !batches.is_empty();
        if LINKED.contains(&name) && NAMES.iter().zip(&self.batches.0).any(ready) {
            self.flush_exchanges();
            self.flush_beside();
            self.flush_causes();
        }
        let batches = std::mem::take(self.batches.0.get_mut(place)?);
        Some((Arc::clone(SCHEMAS.get(place)?), batches))
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

    fn flush_beside(&mut self) {
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
        let (first, rows) = (self.probe, self.probes.len() as u64);
        let columns = |rows: &[Probe]| probes::columns(first, rows);
        self.batches.add_rows("probes", &mut self.probes, columns);
        self.probe += rows;
    }
}

/// Finished batches by table, as in `NAMES`.
#[derive(Default)]
struct Batches([Vec<RecordBatch>; NAMES.len()]);

impl Batches {
    fn add(&mut self, name: &str, columns: Vec<Column>) {
        let place = NAMES.iter().position(|known| *known == name);
        let values = columns.into_iter().map(|c| c.values).collect();
        let built = place
            .and_then(|place| SCHEMAS.get(place))
            .map(|schema| RecordBatch::try_new(Arc::clone(schema), values));
        let batches = place.and_then(|place| self.0.get_mut(place));
        // columns of one batch have one length and the types of their table: this cannot fail
        if let (Some(Ok(batch)), Some(batches)) = (built, batches) {
            batches.push(batch);
        }
    }

    /// Adds the rows that were written so far.
    fn add_filled(&mut self, name: &str, table: &mut impl Batch) {
        if table.rows() > 0 {
            self.add(name, table.take());
        }
    }

    /// Adds rows that were kept as they came.
    fn add_rows<R>(&mut self, name: &str, rows: &mut Vec<R>, columns: impl Fn(&[R]) -> Vec<Column>) {
        if !rows.is_empty() {
            self.add(name, columns(rows));
            rows.clear();
        }
    }
}

/// A table's columns.
fn without_rows(name: &str) -> Vec<Column> {
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
