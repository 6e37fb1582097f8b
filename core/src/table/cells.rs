//! Columns of the short tables, which are built from a slice of rows when a batch is complete. The Rust type of a
//! column's values decides its Arrow type.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::{
    Float64Type, Int32Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, StringArray};

use super::addresses::address_texts;
use super::{Column, column, ms, nullable};

/// A value of a column in a short table.
pub trait Cell: Sized {
    /// Builds the column's array; `None` is null.
    fn array(cells: Vec<Option<Self>>) -> ArrayRef;
}

/// A point in time in nanoseconds since the epoch: `timestamp[ns, UTC]`.
pub struct Time(pub i64);

/// A duration in nanoseconds; the column shows milliseconds as a float.
pub struct Ms(pub i64);

/// A text that rarely repeats: a plain string column. A `&str` is dictionary-encoded instead.
pub struct Text(pub String);

macro_rules! primitive_cells {
    ($($native:ty => $arrow:ty,)*) => {
        $(impl Cell for $native {
            fn array(cells: Vec<Option<Self>>) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::from(cells))
            }
        })*
    };
}

primitive_cells! {
    u8 => UInt8Type,
    u16 => UInt16Type,
    u32 => UInt32Type,
    u64 => UInt64Type,
    f64 => Float64Type,
}

impl Cell for bool {
    fn array(cells: Vec<Option<Self>>) -> ArrayRef {
        Arc::new(BooleanArray::from(cells))
    }
}

impl Cell for Time {
    fn array(cells: Vec<Option<Self>>) -> ArrayRef {
        let times = cells.into_iter().map(|cell| cell.map(|time| time.0));
        Arc::new(PrimitiveArray::<TimestampNanosecondType>::from_iter(times).with_timezone("UTC"))
    }
}

impl Cell for Ms {
    fn array(cells: Vec<Option<Self>>) -> ArrayRef {
        f64::array(
            cells
                .into_iter()
                .map(|cell| cell.map(|duration| ms(duration.0)))
                .collect(),
        )
    }
}

impl Cell for IpAddr {
    fn array(cells: Vec<Option<Self>>) -> ArrayRef {
        address_texts(cells.into_iter())
    }
}

/// Words that repeat: dictionary-encoded, numbered in the order of their first row.
impl Cell for &str {
    fn array(cells: Vec<Option<Self>>) -> ArrayRef {
        Arc::new(cells.into_iter().collect::<DictionaryArray<Int32Type>>())
    }
}

impl Cell for Text {
    fn array(cells: Vec<Option<Self>>) -> ArrayRef {
        Arc::new(
            cells
                .into_iter()
                .map(|cell| cell.map(|text| text.0))
                .collect::<StringArray>(),
        )
    }
}

/// A list of addresses as texts.
impl Cell for &[IpAddr] {
    fn array(cells: Vec<Option<Self>>) -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for cell in cells {
            for address in cell.unwrap_or_default() {
                lists.values().append_value(address.to_string());
            }
            lists.append(cell.is_some());
        }
        Arc::new(lists.finish())
    }
}

/// Builds a column in which every row has a value.
pub fn required<'a, R, C: Cell>(
    name: impl Into<Cow<'static, str>>,
    rows: &'a [R],
    cell: impl Fn(&'a R) -> C,
) -> Column {
    column(name, C::array(rows.iter().map(|row| Some(cell(row))).collect()))
}

/// Builds a column that is null in the rows for which `cell` returns `None`.
pub fn optional<'a, R, C: Cell>(
    name: impl Into<Cow<'static, str>>,
    rows: &'a [R],
    cell: impl Fn(&'a R) -> Option<C>,
) -> Column {
    nullable(name, C::array(rows.iter().map(cell).collect()))
}
