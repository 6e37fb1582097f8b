//! `events`: one row per TCP segment, in frame order.

use std::net::IpAddr;
use std::sync::Arc;

use ahash::AHashMap;
use arrow_array::types::{Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};

use super::{booleans, column, duration_options, durations, instants, nullable, option, plain, words};
use crate::facts::flag;
use crate::stream::Event;

/// Wireshark's labels of the nine flags, in its order.
const LABELS: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];

pub fn batch(rows: &[Event]) -> Result<RecordBatch, ArrowError> {
    let facts = |f: fn(&crate::facts::Facts) -> Option<u64>| option::<UInt64Type, Event>(rows, move |r| f(&r.facts));
    let mut columns = vec![
        column("frame", plain::<UInt64Type, Event>(rows, |r| r.frame)),
        column("time", instants(rows, |r| r.time)),
        column("stream", plain::<UInt32Type, Event>(rows, |r| r.stream)),
        column("from_client", booleans(rows, |r| r.from_client)),
        column("src", addresses(rows, |r| r.src.0)),
        column("sport", plain::<UInt16Type, Event>(rows, |r| r.src.1)),
        column("dst", addresses(rows, |r| r.dst.0)),
        column("dport", plain::<UInt16Type, Event>(rows, |r| r.dst.1)),
        column("seq", plain::<Int64Type, Event>(rows, |r| r.facts.seq)),
        column("ack", plain::<Int64Type, Event>(rows, |r| r.facts.ack)),
        column("len", plain::<UInt32Type, Event>(rows, |r| r.len)),
        column("flags", flag_labels(rows)),
        column("window", plain::<UInt32Type, Event>(rows, |r| r.facts.window)),
        nullable("mss", option::<UInt16Type, Event>(rows, |r| r.mss)),
        nullable("wscale", option::<UInt8Type, Event>(rows, |r| r.wscale)),
        nullable("tsval", option::<UInt32Type, Event>(rows, |r| r.timestamps.map(|t| t.0))),
        nullable("tsecr", option::<UInt32Type, Event>(rows, |r| r.timestamps.map(|t| t.1))),
        nullable("sack", sack(rows)),
        column("time_delta_ms", durations(rows, |r| r.time_delta)),
        nullable("acks_frame", facts(|f| f.acks.map(|a| a.0))),
        nullable("ack_rtt_ms", duration_options(rows, |r| r.facts.acks.map(|a| a.1).filter(|rtt| *rtt != 0))),
        nullable("bytes_in_flight", option::<UInt32Type, Event>(rows, |r| r.facts.bytes_in_flight)),
        nullable("push_bytes_sent", option::<UInt32Type, Event>(rows, |r| r.facts.push_bytes_sent)),
    ];
    for (bit, name) in flag::NAMES.iter().enumerate() {
        columns.push(column(*name, marks(rows, 1 << bit)));
    }
    columns.extend([
        nullable("ack_hold_ms", duration_options(rows, |r| r.hold)),
        nullable("released_by", words(rows, |r| r.released_by)),
        nullable("release_frame", option::<UInt64Type, Event>(rows, |r| r.release_frame)),
        nullable("waited_ms", duration_options(rows, |r| r.waited)),
    ]);
    super::batch(columns)
}

/// One bit of the facts as a column; nearly always all clear.
fn marks(rows: &[Event], mask: u16) -> ArrayRef {
    if rows.iter().all(|r| r.facts.flags & mask == 0) {
        return Arc::new(BooleanArray::new(BooleanBuffer::new_unset(rows.len()), None));
    }
    booleans(rows, |r| r.facts.flags & mask != 0)
}

/// A column of words from a short list that is made on the way.
fn dictionary(keys: Vec<i32>, values: Vec<String>) -> ArrayRef {
    let values: ArrayRef = Arc::new(StringArray::from(values));
    let keys = Int32Array::from(keys);
    match DictionaryArray::<Int32Type>::try_new(keys, values) {
        Ok(array) => Arc::new(array),
        Err(_) => Arc::new(DictionaryArray::<Int32Type>::from_iter(std::iter::empty::<&str>())),
    }
}

fn addresses(rows: &[Event], of: impl Fn(&Event) -> IpAddr) -> ArrayRef {
    let mut known: AHashMap<IpAddr, i32> = AHashMap::new();
    let mut values = Vec::new();
    let keys = rows
        .iter()
        .map(|row| {
            let address = of(row);
            *known.entry(address).or_insert_with(|| {
                values.push(address.to_string());
                values.len() as i32 - 1
            })
        })
        .collect();
    dictionary(keys, values)
}

fn flag_labels(rows: &[Event]) -> ArrayRef {
    let mut known = [-1i32; 512];
    let mut values = Vec::new();
    let keys = rows
        .iter()
        .map(|row| {
            let Some(slot) = known.get_mut(usize::from(row.header_flags & 0x1FF)) else { return 0 };
            if *slot < 0 {
                values.push(label(row.header_flags));
                *slot = values.len() as i32 - 1;
            }
            *slot
        })
        .collect();
    dictionary(keys, values)
}

/// "PSH, ACK"; "<None>" without any flag.
fn label(flags: u16) -> String {
    let set: Vec<&str> =
        LABELS.iter().enumerate().filter(|(bit, _)| flags & (1 << bit) != 0).map(|(_, l)| *l).collect();
    if set.is_empty() { "<None>".to_string() } else { set.join(", ") }
}

fn sack(rows: &[Event]) -> ArrayRef {
    let (mut left, mut right, mut lengths) = (Vec::new(), Vec::new(), Vec::with_capacity(rows.len()));
    for row in rows {
        for (l, r) in row.sack.iter().flat_map(|blocks| blocks.iter()) {
            left.push(*l);
            right.push(*r);
        }
        lengths.push(row.sack.as_ref().map_or(0, |blocks| blocks.len()));
    }
    let fields = Fields::from(vec![
        Field::new("left", DataType::Int64, false),
        Field::new("right", DataType::Int64, false),
    ]);
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(left)), Arc::new(Int64Array::from(right))];
    let valid: Buffer = Buffer::from_iter(rows.iter().map(|r| r.sack.is_some()));
    let nulls = NullBuffer::new(BooleanBuffer::new(valid, 0, rows.len()));
    let blocks = StructArray::new(fields.clone(), columns, None);
    let item = Arc::new(Field::new("item", blocks.data_type().clone(), false));
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), Arc::new(blocks), Some(nulls)))
}
