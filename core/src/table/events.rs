//! `events`: one row per TCP segment, in frame order. This table is as long as the capture, and each instruction
//! here is paid once per packet.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, StringArray, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::addresses::Addresses;
use super::columns::{Address, Block, EVERY, Flag, Full, Instant, Moved, Partial, Rare, Taken, blocks};
use super::words::{Listed, dictionary};
use super::{BATCH_ROWS, Batch, Column, column, ms, nullable};
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
        frame: Full<UInt64Type> = "frame",
        time: Instant = "time",
        stream: Full<UInt32Type> = "stream",
        from_client: Flag<{ has::FROM_CLIENT }> = "from_client",
        src: Address = "src",
        sport: Full<UInt16Type> = "sport",
        dst: Address = "dst",
        dport: Full<UInt16Type> = "dport",
        seq: Full<Int64Type> = "seq",
        ack: Full<Int64Type> = "ack",
        len: Full<UInt32Type> = "len",
        header_flags: Listed<LABEL_COUNT, EVERY> = "flags",
        window: Full<UInt32Type> = "window",
        mss: Rare<UInt16Type> = "mss",
        wscale: Rare<UInt8Type> = "wscale",
        tsval: Partial<UInt32Type, { has::TIMESTAMPS }> = "tsval",
        tsecr: Partial<UInt32Type, { has::TIMESTAMPS }> = "tsecr",
        sack: Blocks = "sack",
        time_delta: Full<Float64Type> = "time_delta_ms",
        acks_frame: Partial<UInt64Type, { has::ACKS }> = "acks_frame",
        ack_rtt: Partial<Float64Type, { has::ACK_RTT }> = "ack_rtt_ms",
        bytes_in_flight: Partial<UInt32Type, { has::IN_FLIGHT }> = "bytes_in_flight",
        push_bytes_sent: Partial<UInt32Type, { has::PUSH_BYTES }> = "push_bytes_sent",
        marks: Marks = "",
        hold: Partial<Float64Type, { has::HOLD }> = "ack_hold_ms",
        released_by: AckKind = "released_by",
        release_frame: Partial<UInt64Type, { has::RELEASE_FRAME }> = "release_frame",
        waited: Partial<Float64Type, { has::WAITED }> = "waited_ms",
    }
}

/// Wireshark's remarks on a segment: a column each, under the names of `flag`.
#[derive(Default)]
struct Marks;

impl Block for Marks {
    fn build(&mut self, taken: &Taken, _: Cow<'static, str>, columns: &mut Vec<Column>) {
        let marks = flag::NAMES.iter().enumerate();
        columns.extend(marks.map(|(bit, name)| column(*name, taken.booleans(1 << bit))));
    }
}

/// A word of `Released` by its place there.
#[derive(Default)]
struct AckKind(Partial<Int32Type, { has::RELEASED_BY }>);

impl Block for AckKind {
    fn keep(&mut self, moved: &Moved) {
        self.0.keep(moved);
    }

    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        let words: ArrayRef = Arc::new(StringArray::from_iter_values(Released::WORDS));
        columns.push(nullable(name, dictionary(self.0.take(taken), words)));
    }
}

#[derive(Default)]
pub struct Events {
    columns: Columns,
    addresses: Addresses,
}

impl Events {
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
            columns.released_by.0.set(row, word as i32);
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
        let mut taken = self.columns.end();
        taken.addresses = Some(self.addresses.take());
        self.columns.columns(&taken, "")
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

impl Block for Blocks {
    fn build(&mut self, taken: &Taken, name: Cow<'static, str>, columns: &mut Vec<Column>) {
        columns.push(nullable(name, self.take(taken.rows())));
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
