//! `events`: one row per TCP segment, in frame order. This table is as long as the capture, and every instruction
//! here is paid once per packet: so rows wait in a small block, and a block goes to the columns one by one.

use std::net::IpAddr;
use std::sync::Arc;

use ahash::AHashMap;
use arrow_array::types::{
    Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};

use super::columns::{BLOCK_ROWS, Bits, Full, Rare, Sparse, dictionary, renewed};
use super::{column, ms, nullable};
use crate::facts::{Facts, flag};
use crate::messages::At;
use crate::stream::Event;
use crate::wait::{Release, Released};

/// Wireshark's labels of the nine flags, in its order.
const LABELS: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
const LABEL_COUNT: usize = 1 << LABELS.len();

/// One row as it came, before it becomes columns.
#[derive(Clone, Copy)]
struct Row {
    at: At,
    stream: u32,
    src: i32,
    dst: i32,
    sport: u16,
    dport: u16,
    len: u32,
    flags: u16,
    from_client: bool,
    timestamps: Option<(u32, u32)>,
    time_delta: i64,
    facts: Facts,
    hold: Option<i64>,
    release: Release,
}

#[derive(Default)]
pub struct Events {
    block: Vec<Row>,
    rows: usize,
    frame: Full<UInt64Type>,
    time: Full<TimestampNanosecondType>,
    stream: Full<UInt32Type>,
    from_client: Bits,
    src: Full<Int32Type>,
    sport: Full<UInt16Type>,
    dst: Full<Int32Type>,
    dport: Full<UInt16Type>,
    seq: Full<Int64Type>,
    ack: Full<Int64Type>,
    len: Full<UInt32Type>,
    header_flags: Vec<u16>,
    window: Full<UInt32Type>,
    mss: Rare<UInt16Type>,
    wscale: Rare<UInt8Type>,
    tsval: Sparse<UInt32Type>,
    tsecr: Sparse<UInt32Type>,
    sack: Blocks,
    time_delta: Full<Float64Type>,
    acks_frame: Sparse<UInt64Type>,
    ack_rtt: Sparse<Float64Type>,
    bytes_in_flight: Sparse<UInt32Type>,
    push_bytes_sent: Sparse<UInt32Type>,
    marks: Vec<u16>,
    hold: Sparse<Float64Type>,
    released_by: Sparse<Int32Type>,
    release_frame: Sparse<UInt64Type>,
    waited: Sparse<Float64Type>,
    addresses: Addresses,
}

impl Events {
    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn push(&mut self, e: &Event<'_>) {
        let (segment, row) = (e.segment, self.rows);
        let (src, dst) = self.addresses.keys(e);
        self.mss.push(row, segment.options.mss);
        self.wscale.push(row, segment.options.wscale);
        self.sack.push(row, e.sack);
        self.block.push(Row {
            at: e.at,
            stream: e.stream,
            src,
            dst,
            sport: segment.sport,
            dport: segment.dport,
            len: segment.len,
            flags: segment.flags,
            from_client: e.from_client,
            timestamps: segment.options.timestamps,
            time_delta: e.time_delta,
            facts: *e.facts,
            hold: e.hold,
            release: e.release,
        });
        self.rows += 1;
        if self.block.len() >= BLOCK_ROWS {
            self.columns();
        }
    }

    /// The block's rows go to the columns: each in one tight loop, and the next block begins empty.
    fn columns(&mut self) {
        let block = std::mem::take(&mut self.block);
        let rows = block.as_slice();
        self.frame.extend(rows, |r| r.at.frame);
        self.time.extend(rows, |r| r.at.time_ns);
        self.stream.extend(rows, |r| r.stream);
        self.from_client.extend(rows, |r| r.from_client);
        self.src.extend(rows, |r| r.src);
        self.sport.extend(rows, |r| r.sport);
        self.dst.extend(rows, |r| r.dst);
        self.dport.extend(rows, |r| r.dport);
        self.seq.extend(rows, |r| r.facts.seq);
        self.ack.extend(rows, |r| r.facts.ack);
        self.len.extend(rows, |r| r.len);
        self.header_flags.extend(rows.iter().map(|r| r.flags));
        self.window.extend(rows, |r| r.facts.window);
        self.tsval.extend(rows, |r| r.timestamps.map(|t| t.0));
        self.tsecr.extend(rows, |r| r.timestamps.map(|t| t.1));
        self.time_delta.extend(rows, |r| ms(r.time_delta));
        self.acks_frame.extend(rows, |r| r.facts.acks.map(|a| a.0));
        // Wireshark shows no round trip of 0
        self.ack_rtt.extend(rows, |r| {
            r.facts.acks.map(|a| a.1).filter(|rtt| *rtt != 0).map(ms)
        });
        self.bytes_in_flight.extend(rows, |r| r.facts.bytes_in_flight);
        self.push_bytes_sent.extend(rows, |r| r.facts.push_bytes_sent);
        self.marks.extend(rows.iter().map(|r| r.facts.flags));
        self.hold.extend(rows, |r| r.hold.map(ms));
        self.released_by
            .extend(rows, |r| r.release.by.map(|word| word as i32));
        self.release_frame.extend(rows, |r| r.release.frame);
        self.waited.extend(rows, |r| r.release.waited.map(ms));
        self.block = block;
        self.block.clear();
    }

    /// The rows so far as a batch; the next one begins empty.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        self.columns();
        let (rows, addresses) = (std::mem::take(&mut self.rows), self.addresses.take());
        let mut columns = vec![
            self.frame.column("frame"),
            column("time", Arc::new(self.time.take().with_timezone("UTC"))),
            self.stream.column("stream"),
            column(
                "from_client",
                Arc::new(BooleanArray::new(self.from_client.take(), None)),
            ),
            column("src", dictionary(self.src.take(), Arc::clone(&addresses))),
            self.sport.column("sport"),
            column("dst", dictionary(self.dst.take(), addresses)),
            self.dport.column("dport"),
            self.seq.column("seq"),
            self.ack.column("ack"),
            self.len.column("len"),
            column("flags", flag_labels(&renewed(&mut self.header_flags))),
            self.window.column("window"),
            self.mss.column(rows, "mss"),
            self.wscale.column(rows, "wscale"),
            self.tsval.column("tsval"),
            self.tsecr.column("tsecr"),
            nullable("sack", std::mem::take(&mut self.sack).column(rows)),
            self.time_delta.column("time_delta_ms"),
            self.acks_frame.column("acks_frame"),
            self.ack_rtt.column("ack_rtt_ms"),
            self.bytes_in_flight.column("bytes_in_flight"),
            self.push_bytes_sent.column("push_bytes_sent"),
        ];
        let marks = renewed(&mut self.marks);
        let any = marks.iter().fold(0, |any, m| any | m);
        for (bit, name) in flag::NAMES.iter().enumerate() {
            columns.push(column(*name, one_mark(&marks, any, 1 << bit)));
        }
        let words: ArrayRef = Arc::new(StringArray::from_iter_values(Released::WORDS));
        columns.extend([
            self.hold.column("ack_hold_ms"),
            nullable("released_by", dictionary(self.released_by.take(), words)),
            self.release_frame.column("release_frame"),
            self.waited.column("waited_ms"),
        ]);
        super::batch(columns)
    }
}

/// One bit of the facts as a column; nearly always all clear.
fn one_mark(marks: &[u16], any: u16, mask: u16) -> ArrayRef {
    let bits = if any & mask == 0 {
        BooleanBuffer::new_unset(marks.len())
    } else {
        BooleanBuffer::from_iter(marks.iter().map(|m| m & mask != 0))
    };
    Arc::new(BooleanArray::new(bits, None))
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
