//! `events`: one row per TCP segment, in frame order. This table is as long as the capture, and every instruction
//! here is paid once per packet.

use std::net::IpAddr;
use std::sync::Arc;

use ahash::AHashMap;
use arrow_array::types::{
    Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, SchemaRef};

use super::columns::{Full, Masks, Rare, dictionary, instants};
use super::{column, ms, nullable};
use crate::facts::flag;
use crate::stream::Event;
use crate::wait::Released;

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

#[derive(Default)]
pub struct Events {
    rows: usize,
    schema: Option<SchemaRef>,
    has: Masks,
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
    header_flags: Full<UInt16Type>,
    window: Full<UInt32Type>,
    mss: Rare<UInt16Type>,
    wscale: Rare<UInt8Type>,
    tsval: Full<UInt32Type>,
    tsecr: Full<UInt32Type>,
    sack: Blocks,
    time_delta: Full<Float64Type>,
    acks_frame: Full<UInt64Type>,
    ack_rtt: Full<Float64Type>,
    bytes_in_flight: Full<UInt32Type>,
    push_bytes_sent: Full<UInt32Type>,
    hold: Full<Float64Type>,
    released_by: Full<Int32Type>,
    release_frame: Full<UInt64Type>,
    waited: Full<Float64Type>,
    addresses: Addresses,
}

impl Events {
    pub fn len(&self) -> usize {
        self.rows
    }

    /// There must be room: fewer than `BATCH_ROWS` rows.
    #[inline(always)]
    pub fn push(&mut self, e: &Event<'_>) {
        let (segment, facts, row) = (e.segment, e.facts, self.rows);
        let (src, dst) = self.addresses.keys(e);
        self.frame.set(row, e.at.frame);
        self.time.set(row, e.at.time_ns);
        self.stream.set(row, e.stream);
        self.src.set(row, src);
        self.sport.set(row, segment.sport);
        self.dst.set(row, dst);
        self.dport.set(row, segment.dport);
        self.seq.set(row, facts.seq);
        self.ack.set(row, facts.ack);
        self.len.set(row, segment.len);
        self.header_flags.set(row, segment.flags);
        self.window.set(row, facts.window);
        self.mss.push(row, segment.options.mss);
        self.wscale.push(row, segment.options.wscale);
        self.sack.push(row, e.sack);
        self.time_delta.set(row, ms(e.time_delta));
        let mut has = u32::from(facts.flags);
        if e.from_client {
            has |= has::FROM_CLIENT;
        }
        if let Some((tsval, tsecr)) = segment.options.timestamps {
            self.tsval.set(row, tsval);
            self.tsecr.set(row, tsecr);
            has |= has::TIMESTAMPS;
        }
        if let Some((frame, rtt)) = facts.acks {
            self.acks_frame.set(row, frame);
            has |= has::ACKS;
            if rtt != 0 {
                // Wireshark shows no round trip of 0
                self.ack_rtt.set(row, ms(rtt));
                has |= has::ACK_RTT;
            }
        }
        if let Some(bytes) = facts.bytes_in_flight {
            self.bytes_in_flight.set(row, bytes);
            has |= has::IN_FLIGHT;
        }
        if let Some(bytes) = facts.push_bytes_sent {
            self.push_bytes_sent.set(row, bytes);
            has |= has::PUSH_BYTES;
        }
        if let Some(hold) = e.hold {
            self.hold.set(row, ms(hold));
            has |= has::HOLD;
        }
        if let Some(word) = e.release.by {
            self.released_by.set(row, word as i32);
            has |= has::RELEASED_BY;
        }
        if let Some(frame) = e.release.frame {
            self.release_frame.set(row, frame);
            has |= has::RELEASE_FRAME;
        }
        if let Some(waited) = e.release.waited {
            self.waited.set(row, ms(waited));
            has |= has::WAITED;
        }
        self.has.set(row, has);
        self.rows += 1;
    }

    /// The rows so far as a batch; the next one begins empty.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let (rows, addresses) = (std::mem::take(&mut self.rows), self.addresses.take());
        let taken = self.has.take(rows);
        let nulls = |bit| taken.nulls(bit);
        let mut columns = vec![
            self.frame.column(rows, "frame"),
            instants(&mut self.time, rows, "time"),
            self.stream.column(rows, "stream"),
            column("from_client", taken.booleans(has::FROM_CLIENT)),
            column("src", dictionary(self.src.take(rows), Arc::clone(&addresses))),
            self.sport.column(rows, "sport"),
            column("dst", dictionary(self.dst.take(rows), addresses)),
            self.dport.column(rows, "dport"),
            self.seq.column(rows, "seq"),
            self.ack.column(rows, "ack"),
            self.len.column(rows, "len"),
            column("flags", flag_labels(self.header_flags.take(rows).values())),
            self.window.column(rows, "window"),
            self.mss.column(rows, "mss"),
            self.wscale.column(rows, "wscale"),
            self.tsval.some(nulls(has::TIMESTAMPS), "tsval"),
            self.tsecr.some(nulls(has::TIMESTAMPS), "tsecr"),
            nullable("sack", std::mem::take(&mut self.sack).column(rows)),
            self.time_delta.column(rows, "time_delta_ms"),
            self.acks_frame.some(nulls(has::ACKS), "acks_frame"),
            self.ack_rtt.some(nulls(has::ACK_RTT), "ack_rtt_ms"),
            self.bytes_in_flight
                .some(nulls(has::IN_FLIGHT), "bytes_in_flight"),
            self.push_bytes_sent
                .some(nulls(has::PUSH_BYTES), "push_bytes_sent"),
        ];
        for (bit, name) in flag::NAMES.iter().enumerate() {
            columns.push(column(*name, taken.booleans(1 << bit)));
        }
        let words: ArrayRef = Arc::new(StringArray::from_iter_values(Released::WORDS));
        let released_by = self.released_by.array(nulls(has::RELEASED_BY));
        columns.extend([
            self.hold.some(nulls(has::HOLD), "ack_hold_ms"),
            nullable("released_by", dictionary(released_by, words)),
            self.release_frame
                .some(nulls(has::RELEASE_FRAME), "release_frame"),
            self.waited.some(nulls(has::WAITED), "waited_ms"),
        ]);
        super::next_batch(&mut self.schema, columns)
    }
}

/// The batch's addresses as words. Streams remember theirs, so that a packet costs no look-up.
#[derive(Default)]
struct Addresses {
    known: AHashMap<IpAddr, i32>,
    words: Vec<String>,
    /// By stream: the batch that the keys belong to, the smaller and the larger endpoint's key (roles may change).
    streams: Vec<(u32, i32, i32)>,
    batch: u32,
}

impl Addresses {
    /// Keys of source and destination.
    #[inline]
    fn keys(&mut self, e: &Event<'_>) -> (i32, i32) {
        let index = e.stream as usize;
        if self.streams.len() <= index {
            self.streams.resize(index + 1, (u32::MAX, 0, 0));
        }
        if let Some(&(batch, low, high)) = self.streams.get(index)
            && batch == self.batch
        {
            return if e.from_low { (low, high) } else { (high, low) };
        }
        let (src, dst) = (self.key(e.segment.src), self.key(e.segment.dst));
        let (low, high) = if e.from_low { (src, dst) } else { (dst, src) };
        if let Some(slot) = self.streams.get_mut(index) {
            *slot = (self.batch, low, high);
        }
        (src, dst)
    }

    fn key(&mut self, address: IpAddr) -> i32 {
        let words = &mut self.words;
        *self.known.entry(address).or_insert_with(|| {
            words.push(address.to_string());
            words.len() as i32 - 1
        })
    }

    fn take(&mut self) -> ArrayRef {
        self.known.clear();
        self.batch = (self.batch + 1) % u32::MAX;
        Arc::new(StringArray::from(std::mem::take(&mut self.words)))
    }
}

fn flag_labels(flags: &[u16]) -> ArrayRef {
    let mut known = [-1i32; LABEL_COUNT];
    let mut words = Vec::new();
    let mut keys = Vec::with_capacity(flags.len());
    for flags in flags {
        let Some(slot) = known.get_mut(usize::from(*flags) % LABEL_COUNT) else {
            continue;
        };
        if *slot < 0 {
            words.push(label(*flags));
            *slot = words.len() as i32 - 1;
        }
        keys.push(*slot);
    }
    dictionary(Int32Array::from(keys), Arc::new(StringArray::from(words)))
}

/// "PSH, ACK"; "<None>" without any flag.
fn label(flags: u16) -> String {
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
}

impl Blocks {
    #[inline(always)]
    fn push(&mut self, row: usize, blocks: Option<&[(i64, i64)]>) {
        if let Some(blocks) = blocks {
            self.left.extend(blocks.iter().map(|b| b.0));
            self.right.extend(blocks.iter().map(|b| b.1));
            self.rows.push((row, blocks.len()));
        }
    }

    fn column(self, rows: usize) -> ArrayRef {
        let fields = Fields::from(vec![
            Field::new("left", DataType::Int64, false),
            Field::new("right", DataType::Int64, false),
        ]);
        if self.rows.is_empty() {
            let blocks = DataType::Struct(fields);
            let item = Arc::new(Field::new("item", blocks, false));
            return Arc::new(ListArray::new_null(item, rows));
        }
        let mut counts = vec![0; rows];
        for (row, count) in self.rows {
            if let Some(slot) = counts.get_mut(row) {
                *slot = count;
            }
        }
        let valid = BooleanBuffer::from_iter(counts.iter().map(|c| *c > 0));
        let offsets = OffsetBuffer::from_lengths(counts);
        let sides: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(self.left)),
            Arc::new(Int64Array::from(self.right)),
        ];
        let blocks = StructArray::new(fields, sides, None);
        let item = Arc::new(Field::new("item", blocks.data_type().clone(), false));
        Arc::new(ListArray::new(
            item,
            offsets,
            Arc::new(blocks),
            Some(NullBuffer::new(valid)),
        ))
    }
}
