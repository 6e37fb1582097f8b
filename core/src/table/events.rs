//! `events`: one row per TCP segment, in frame order. The code of `push` runs once per packet, so its cost is the cost
//! of the whole table.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, StringArray, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::addresses::Addresses;
use super::columns::{
    Address, BatchBits, ColumnBuffer, EVERY_ROW, Flag, FlushedBlock, Instant, Optional, Rare, Required,
    batch_columns,
};
use super::words::{CodedWords, dictionary};
use super::{BATCH_ROWS, Batch, Column, column, ms, nullable};
use crate::facts::flag;
use crate::observe::Released;
use crate::segment::Options;
use crate::stream::Event;

/// Wireshark's names of the nine flags of the TCP header, from the lowest bit on.
const FLAG_NAMES: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
const FLAG_SETS: usize = 1 << FLAG_NAMES.len();

/// Bits of the optional columns and flags. They follow the bits of `facts::flag`, which have a column each.
mod bit {
    use crate::facts::flag;

    const FIRST: u32 = flag::NAMES.len() as u32;
    pub const FROM_CLIENT: u32 = 1 << FIRST;
    pub const TIMESTAMPS: u32 = 1 << (FIRST + 1);
    pub const ACKS: u32 = 1 << (FIRST + 2);
    pub const ACK_RTT: u32 = 1 << (FIRST + 3);
    pub const IN_FLIGHT: u32 = 1 << (FIRST + 4);
    pub const PUSH_BYTES: u32 = 1 << (FIRST + 5);
    pub const HOLD: u32 = 1 << (FIRST + 6);
    pub const RELEASED_BY: u32 = 1 << (FIRST + 7);
    pub const RELEASE_FRAME: u32 = 1 << (FIRST + 8);
    pub const WAITED: u32 = 1 << (FIRST + 9);
}

batch_columns! {
    struct Columns {
        frame: Required<UInt64Type> = "frame",
        time: Instant = "time",
        stream: Required<UInt32Type> = "stream",
        from_client: Flag<{ bit::FROM_CLIENT }> = "from_client",
        src: Address = "src",
        sport: Required<UInt16Type> = "sport",
        dst: Address = "dst",
        dport: Required<UInt16Type> = "dport",
        seq: Required<Int64Type> = "seq",
        ack: Required<Int64Type> = "ack",
        len: Required<UInt32Type> = "len",
        header_flags: CodedWords<FLAG_SETS, EVERY_ROW> = "flags",
        window: Required<UInt32Type> = "window",
        mss: Rare<UInt16Type> = "mss",
        wscale: Rare<UInt8Type> = "wscale",
        tsval: Optional<UInt32Type, { bit::TIMESTAMPS }> = "tsval",
        tsecr: Optional<UInt32Type, { bit::TIMESTAMPS }> = "tsecr",
        sack: SackBlocks = "sack",
        time_delta: Required<Float64Type> = "time_delta_ms",
        acks_frame: Optional<UInt64Type, { bit::ACKS }> = "acks_frame",
        ack_rtt: Optional<Float64Type, { bit::ACK_RTT }> = "ack_rtt_ms",
        bytes_in_flight: Optional<UInt32Type, { bit::IN_FLIGHT }> = "bytes_in_flight",
        push_bytes_sent: Optional<UInt32Type, { bit::PUSH_BYTES }> = "push_bytes_sent",
        facts: FactFlags = "",
        hold: Optional<Float64Type, { bit::HOLD }> = "ack_hold_ms",
        released_by: ReleasedBy = "released_by",
        release_frame: Optional<UInt64Type, { bit::RELEASE_FRAME }> = "release_frame",
        waited: Optional<Float64Type, { bit::WAITED }> = "waited_ms",
    }
}

/// Wireshark's analysis flags of a segment: a column for each name in `facts::flag`.
#[derive(Default)]
struct FactFlags;

impl ColumnBuffer for FactFlags {
    fn build(&mut self, bits: &BatchBits, _: Cow<'static, str>, columns: &mut Vec<Column>) {
        let flags = flag::NAMES.iter().enumerate();
        columns.extend(flags.map(|(bit, name)| column(*name, bits.booleans(1 << bit))));
    }
}

/// A word of `Released`. All of them are in the dictionary, and the key is the place in the enum.
#[derive(Default)]
struct ReleasedBy(Optional<Int32Type, { bit::RELEASED_BY }>);

impl ColumnBuffer for ReleasedBy {
    fn flush_block(&mut self, block: &FlushedBlock) {
        self.0.flush_block(block);
    }

    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let words: ArrayRef = Arc::new(StringArray::from_iter_values(Released::WORDS));
        columns.push(nullable(name, dictionary(self.0.take(bits), words)));
    }
}

#[derive(Default)]
pub struct Events {
    columns: Columns,
    addresses: Addresses,
}

impl Events {
    /// Adds a row. Returns true if the batch is full.
    #[inline(always)]
    pub fn push(&mut self, event: &Event<'_>) -> bool {
        let (segment, facts, slot) = (event.segment, event.facts, self.columns.slot());
        let ends = || [segment.src, segment.dst];
        let (src, dst) = self.addresses.keys(event.stream, !event.from_low, ends);
        if segment.options.mss.is_some() || segment.options.wscale.is_some() || event.sack.is_some() {
            self.push_rare(&segment.options, event.sack);
        }
        let columns = &mut self.columns;
        columns.frame.set(slot, event.at.frame);
        columns.time.set(slot, event.at.time_ns);
        columns.stream.set(slot, event.stream);
        columns.src.set(slot, src);
        columns.sport.set(slot, segment.sport);
        columns.dst.set(slot, dst);
        columns.dport.set(slot, segment.dport);
        columns.seq.set(slot, facts.seq);
        columns.ack.set(slot, facts.ack);
        columns.len.set(slot, segment.len);
        let flags = usize::from(segment.flags) % FLAG_SETS;
        columns.header_flags.set(slot, flags, flags_text);
        columns.window.set(slot, facts.window);
        columns.time_delta.set(slot, ms(event.time_delta_ns));
        let mut bits = u32::from(facts.flags);
        if event.from_client {
            bits |= bit::FROM_CLIENT;
        }
        if let Some((tsval, tsecr)) = segment.options.timestamps {
            columns.tsval.set(slot, tsval);
            columns.tsecr.set(slot, tsecr);
            bits |= bit::TIMESTAMPS;
        }
        if let Some((frame, rtt)) = facts.acks {
            columns.acks_frame.set(slot, frame);
            bits |= bit::ACKS;
            // Wireshark shows no round trip of 0
            bits |= columns.ack_rtt.set_some(slot, (rtt != 0).then(|| ms(rtt)));
        }
        bits |= columns.bytes_in_flight.set_some(slot, facts.bytes_in_flight);
        bits |= columns.push_bytes_sent.set_some(slot, facts.push_bytes_sent);
        bits |= columns.hold.set_some(slot, event.hold_ns.map(ms));
        let released_by = event.release.by.map(|word| word as i32);
        bits |= columns.released_by.0.set_some(slot, released_by);
        bits |= columns.release_frame.set_some(slot, event.release.frame);
        bits |= columns.waited.set_some(slot, event.release.waited_ns.map(ms));
        columns.row_bits.set(slot, bits);
        columns.end_row(slot)
    }

    /// Sets the columns that few rows have.
    #[cold]
    #[inline(never)]
    fn push_rare(&mut self, options: &Options, sack: Option<&[(i64, i64)]>) {
        let (row, columns) = (self.columns.rows, &mut self.columns);
        columns.mss.push(row, options.mss);
        columns.wscale.push(row, options.wscale);
        columns.sack.push(row, sack);
    }
}

impl Batch for Events {
    fn rows(&self) -> usize {
        self.columns.rows
    }

    fn take(&mut self) -> Vec<Column> {
        let mut bits = self.columns.end_batch();
        bits.addresses = Some(self.addresses.take());
        self.columns.build(&bits, "")
    }
}

/// Returns the names of the flags that are set: "PSH, ACK"; "<None>" if there are none.
fn flags_text(flags: usize) -> String {
    let set: Vec<&str> = FLAG_NAMES
        .iter()
        .enumerate()
        .filter(|(bit, _)| flags & (1 << bit) != 0)
        .map(|(_, name)| *name)
        .collect();
    if set.is_empty() {
        "<None>".to_string()
    } else {
        set.join(", ")
    }
}

impl ColumnBuffer for SackBlocks {
    fn build(&mut self, bits: &BatchBits, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        columns.push(nullable(name, self.take(bits.rows())));
    }
}

/// The column `sack`: lists of {left, right}, nearly always null.
#[derive(Default)]
struct SackBlocks {
    left: Vec<i64>,
    right: Vec<i64>,
    /// Number of the row in the batch, and how many blocks it has.
    rows: Vec<(usize, usize)>,
    /// The column of a batch without SACK blocks, which is built once.
    none: Option<ArrayRef>,
}

impl SackBlocks {
    fn push(&mut self, row: usize, blocks: Option<&[(i64, i64)]>) {
        if let Some(blocks) = blocks {
            self.left.extend(blocks.iter().map(|block| block.0));
            self.right.extend(blocks.iter().map(|block| block.1));
            self.rows.push((row, blocks.len()));
        }
    }

    fn take(&mut self, rows: usize) -> ArrayRef {
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
        let valid = BooleanBuffer::from_iter(counts.iter().map(|count| *count > 0));
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
