//! `events`: one row per TCP segment, in frame order. This table is as long as the capture, and each instruction
//! here is paid once per packet.

use std::sync::Arc;

use arrow_array::types::{
    Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, StringArray, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::addresses::Addresses;
use super::columns::{EVERY, Full, Partial, Rare, blocks, instants};
use super::words::{Listed, dictionary};
use super::{BATCH_ROWS, Column, column, ms, nullable};
use crate::facts::flag;
use crate::observe::Released;
use crate::segment::Options;
use crate::stream::Event;

/// Wireshark's labels of the nine flags, in its order.
const LABELS: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
const LABEL_COUNT: usize = 1 << LABELS.len();

/// What a row has, a bit each; the bits of `flag` come first.
mod has {
    use crate::facts::flag;

    const FREE: u32 = flag::NAMES.len() as u32;
    pub const FROM_CLIENT: u32 = 1 << FREE;
    pub const TIMESTAMPS: u32 = 1 << (FREE + 1);
    pub const ACKS: u32 = 1 << (FREE + 2);
    pub const ACK_RTT: u32 = 1 << (FREE + 3);
    pub const IN_FLIGHT: u32 = 1 << (FREE + 4);
    pub const PUSH_BYTES: u32 = 1 << (FREE + 5);
    pub const HOLD: u32 = 1 << (FREE + 6);
    pub const RELEASED_BY: u32 = 1 << (FREE + 7);
    pub const RELEASE_FRAME: u32 = 1 << (FREE + 8);
    pub const WAITED: u32 = 1 << (FREE + 9);
}

blocks! {
    struct Columns {
        frame: Full<UInt64Type>,
        time: Full<TimestampNanosecondType>,
        stream: Full<UInt32Type>,
        src: Full<Int32Type>,
        sport: Full<UInt16Type>,
        dst: Full<Int32Type>,
        dport: Full<UInt16Type>,
        seq: Full<Int64Type>,
        ack: Full<Int64Type>,
        len: Full<UInt32Type>,
        header_flags: Listed<LABEL_COUNT, EVERY>,
        window: Full<UInt32Type>,
        tsval: Partial<UInt32Type, { has::TIMESTAMPS }>,
        tsecr: Partial<UInt32Type, { has::TIMESTAMPS }>,
        time_delta: Full<Float64Type>,
        acks_frame: Partial<UInt64Type, { has::ACKS }>,
        ack_rtt: Partial<Float64Type, { has::ACK_RTT }>,
        bytes_in_flight: Partial<UInt32Type, { has::IN_FLIGHT }>,
        push_bytes_sent: Partial<UInt32Type, { has::PUSH_BYTES }>,
        hold: Partial<Float64Type, { has::HOLD }>,
        released_by: Partial<Int32Type, { has::RELEASED_BY }>,
        release_frame: Partial<UInt64Type, { has::RELEASE_FRAME }>,
        waited: Partial<Float64Type, { has::WAITED }>,
    }
}

#[derive(Default)]
pub struct Events {
    columns: Columns,
    mss: Rare<UInt16Type>,
    wscale: Rare<UInt8Type>,
    sack: Blocks,
    addresses: Addresses,
}

impl Events {
    pub fn len(&self) -> usize {
        self.columns.rows
    }

    /// True when the batch is full.
    #[inline(always)]
    pub fn push(&mut self, e: &Event<'_>) -> bool {
        let (segment, facts, row) = (e.segment, e.facts, self.columns.place());
        let ends = || [segment.src, segment.dst];
        let (src, dst) = self.addresses.keys(e.stream, !e.from_low, ends);
        if segment.options.mss.is_some() || segment.options.wscale.is_some() || e.sack.is_some() {
            self.push_rare(&segment.options, e.sack);
        }
        let columns = &mut self.columns;
        columns.frame.set(row, e.at.frame);
        columns.time.set(row, e.at.time_ns);
        columns.stream.set(row, e.stream);
        columns.src.set(row, src);
        columns.sport.set(row, segment.sport);
        columns.dst.set(row, dst);
        columns.dport.set(row, segment.dport);
        columns.seq.set(row, facts.seq);
        columns.ack.set(row, facts.ack);
        columns.len.set(row, segment.len);
        let flags = usize::from(segment.flags) % LABEL_COUNT;
        columns.header_flags.set(row, flags, label);
        columns.window.set(row, facts.window);
        columns.time_delta.set(row, ms(e.time_delta));
        let mut has = u32::from(facts.flags);
        if e.from_client {
            has |= has::FROM_CLIENT;
        }
        if let Some((tsval, tsecr)) = segment.options.timestamps {
            columns.tsval.set(row, tsval);
            columns.tsecr.set(row, tsecr);
            has |= has::TIMESTAMPS;
        }
        if let Some((frame, rtt)) = facts.acks {
            columns.acks_frame.set(row, frame);
            has |= has::ACKS;
            if rtt != 0 {
                // Wireshark shows no round trip of 0
                columns.ack_rtt.set(row, ms(rtt));
                has |= has::ACK_RTT;
            }
        }
        if let Some(bytes) = facts.bytes_in_flight {
            columns.bytes_in_flight.set(row, bytes);
            has |= has::IN_FLIGHT;
        }
        if let Some(bytes) = facts.push_bytes_sent {
            columns.push_bytes_sent.set(row, bytes);
            has |= has::PUSH_BYTES;
        }
        if let Some(hold) = e.hold {
            columns.hold.set(row, ms(hold));
            has |= has::HOLD;
        }
        if let Some(word) = e.release.by {
            columns.released_by.set(row, word as i32);
            has |= has::RELEASED_BY;
        }
        if let Some(frame) = e.release.frame {
            columns.release_frame.set(row, frame);
            has |= has::RELEASE_FRAME;
        }
        if let Some(waited) = e.release.waited {
            columns.waited.set(row, ms(waited));
            has |= has::WAITED;
        }
        columns.has.set(row, has);
        columns.done(row)
    }

    /// What few rows have.
    #[cold]
    #[inline(never)]
    fn push_rare(&mut self, options: &Options, sack: Option<&[(i64, i64)]>) {
        let row = self.columns.rows;
        self.mss.push(row, options.mss);
        self.wscale.push(row, options.wscale);
        self.sack.push(row, sack);
    }

    /// The columns of the rows so far; the next batch begins empty.
    pub fn take(&mut self) -> Vec<Column> {
        let addresses = self.addresses.take();
        let c = &mut self.columns;
        let has = c.end();
        let rows = has.rows();
        let mut columns = vec![
            c.frame.column(rows, "frame"),
            instants(&mut c.time, rows, "time"),
            c.stream.column(rows, "stream"),
            column("from_client", has.booleans(has::FROM_CLIENT)),
            column("src", dictionary(c.src.take(rows), Arc::clone(&addresses))),
            c.sport.column(rows, "sport"),
            column("dst", dictionary(c.dst.take(rows), addresses)),
            c.dport.column(rows, "dport"),
            c.seq.column(rows, "seq"),
            c.ack.column(rows, "ack"),
            c.len.column(rows, "len"),
            column("flags", c.header_flags.take(&has)),
            c.window.column(rows, "window"),
            self.mss.column(rows, "mss"),
            self.wscale.column(rows, "wscale"),
            c.tsval.column(&has, "tsval"),
            c.tsecr.column(&has, "tsecr"),
            nullable("sack", self.sack.column(rows)),
            c.time_delta.column(rows, "time_delta_ms"),
            c.acks_frame.column(&has, "acks_frame"),
            c.ack_rtt.column(&has, "ack_rtt_ms"),
            c.bytes_in_flight.column(&has, "bytes_in_flight"),
            c.push_bytes_sent.column(&has, "push_bytes_sent"),
        ];
        for (bit, name) in flag::NAMES.iter().enumerate() {
            columns.push(column(*name, has.booleans(1 << bit)));
        }
        let words: ArrayRef = Arc::new(StringArray::from_iter_values(Released::WORDS));
        let released_by = c.released_by.take(&has);
        columns.extend([
            c.hold.column(&has, "ack_hold_ms"),
            nullable("released_by", dictionary(released_by, words)),
            c.release_frame.column(&has, "release_frame"),
            c.waited.column(&has, "waited_ms"),
        ]);
        columns
    }
}

/// "PSH, ACK"; "<None>" without any flag.
fn label(flags: usize) -> String {
    let set: Vec<&str> = LABELS
        .iter()
        .enumerate()
        .filter(|(bit, _)| flags & (1 << bit) != 0)
        .map(|(_, l)| *l)
        .collect();
    if set.is_empty() {
        "<None>".to_string()
    } else {
        set.join(", ")
    }
}

/// The SACK column: lists of {left, right}; nearly always null.
#[derive(Default)]
struct Blocks {
    left: Vec<i64>,
    right: Vec<i64>,
    rows: Vec<(usize, usize)>,
    /// A batch without any.
    none: Option<ArrayRef>,
}

impl Blocks {
    fn push(&mut self, row: usize, blocks: Option<&[(i64, i64)]>) {
        if let Some(blocks) = blocks {
            self.left.extend(blocks.iter().map(|b| b.0));
            self.right.extend(blocks.iter().map(|b| b.1));
            self.rows.push((row, blocks.len()));
        }
    }

    fn column(&mut self, rows: usize) -> ArrayRef {
        let fields = Fields::from(vec![
            Field::new("left", DataType::Int64, false),
            Field::new("right", DataType::Int64, false),
        ]);
        let item = Arc::new(Field::new("item", DataType::Struct(fields.clone()), false));
        if self.rows.is_empty() {
            let none = || -> ArrayRef { Arc::new(ListArray::new_null(item, BATCH_ROWS)) };
            return self.none.get_or_insert_with(none).slice(0, rows.min(BATCH_ROWS));
        }
        let mut counts = vec![0; rows];
        for (row, count) in self.rows.drain(..) {
            if let Some(slot) = counts.get_mut(row) {
                *slot = count;
            }
        }
        let valid = BooleanBuffer::from_iter(counts.iter().map(|c| *c > 0));
        let offsets = OffsetBuffer::from_lengths(counts);
        let sides: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(std::mem::take(&mut self.left))),
            Arc::new(Int64Array::from(std::mem::take(&mut self.right))),
        ];
        let blocks = StructArray::new(fields, sides, None);
        Arc::new(ListArray::new(
            item,
            offsets,
            Arc::new(blocks),
            Some(NullBuffer::new(valid)),
        ))
    }
}
