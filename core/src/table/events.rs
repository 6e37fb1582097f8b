//! `events`: one row per TCP segment, in frame order. Rows go straight into columns: this table is as long
//! as the capture, and every instruction here is paid once per packet.

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

use super::columns::{Full, Rare, Sparse, dictionary, renewed};
use super::{column, ms, nullable};
use crate::facts::flag;
use crate::stream::Event;
use crate::wait::Released;

/// Wireshark's labels of the nine flags, in its order.
const LABELS: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
const LABEL_COUNT: usize = 1 << LABELS.len();

#[derive(Default)]
pub struct Events {
    frame: Full<UInt64Type>,
    time: Full<TimestampNanosecondType>,
    stream: Full<UInt32Type>,
    from_client: Vec<bool>,
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
        self.marks.len()
    }

    pub fn push(&mut self, e: &Event<'_>) {
        let (segment, facts) = (e.segment, e.facts);
        self.frame.push(e.at.frame);
        self.time.push(e.at.time_ns);
        self.stream.push(e.stream);
        self.from_client.push(e.from_client);
        let (src, dst) = self.addresses.keys(e);
        self.src.push(src);
        self.sport.push(segment.sport);
        self.dst.push(dst);
        self.dport.push(segment.dport);
        self.seq.push(facts.seq);
        self.ack.push(facts.ack);
        self.len.push(segment.len);
        self.header_flags.push(segment.flags);
        self.window.push(facts.window);
        let row = self.marks.len();
        self.mss.push(row, segment.options.mss);
        self.wscale.push(row, segment.options.wscale);
        let (tsval, tsecr) = segment.options.timestamps.unzip();
        self.tsval.push(tsval);
        self.tsecr.push(tsecr);
        self.sack.push(row, e.sack);
        self.time_delta.push(ms(e.time_delta));
        let (acks_frame, rtt) = facts.acks.unzip();
        self.acks_frame.push(acks_frame);
        self.ack_rtt.push(rtt.filter(|rtt| *rtt != 0).map(ms));
        self.bytes_in_flight.push(facts.bytes_in_flight);
        self.push_bytes_sent.push(facts.push_bytes_sent);
        self.marks.push(facts.flags);
        self.hold.push(e.hold.map(ms));
        self.released_by.push(e.release.by.map(|word| word as i32));
        self.release_frame.push(e.release.frame);
        self.waited.push(e.release.waited.map(ms));
    }

    /// The rows so far as a batch; the next one begins empty.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let (rows, addresses) = (self.len(), self.addresses.take());
        let mut columns = vec![
            self.frame.column("frame"),
            column("time", Arc::new(self.time.take().with_timezone("UTC"))),
            self.stream.column("stream"),
            column(
                "from_client",
                Arc::new(BooleanArray::from(renewed(&mut self.from_client))),
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
    /// By stream: the batch that the keys belong to, the client's and the server's key.
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
        if let Some(&(batch, client, server)) = self.streams.get(index)
            && batch == self.batch
        {
            return if e.from_client {
                (client, server)
            } else {
                (server, client)
            };
        }
        let (src, dst) = (self.key(e.segment.src), self.key(e.segment.dst));
        let (client, server) = if e.from_client { (src, dst) } else { (dst, src) };
        if let Some(slot) = self.streams.get_mut(index) {
            *slot = (self.batch, client, server);
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
