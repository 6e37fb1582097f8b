//! What a second reading wants beside the tables: one stream's segments with their payload, or what all headers say that
//! `events` does not keep. Takes segments as the streams give them, keeps them until they are taken; knows nothing of order,
//! repeats and holes.

use std::net::IpAddr;

use crate::facts::Facts;
use crate::segment::Segment;

/// One segment, with the bytes that the capture holds of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenPayload {
    pub frame: u64,
    /// Sent by whoever sent the stream's first segment.
    pub from_first: bool,
    /// Relative and unwrapped, as in `events`.
    pub seq: i64,
    pub ack: i64,
    pub flags: u16,
    /// By the IP header, payload beyond the snap length included.
    pub len: u32,
    pub payload: Vec<u8>,
}

/// What the headers of one segment say, raw: frame, sequence and acknowledgement number, IPv4 identification (-1: IPv6),
/// time to live, type of service.
pub type HeaderRow = [i64; 6];

/// What is in it is taken after each block, so it holds at most a block's payload.
#[derive(Debug)]
pub enum Watch {
    Stream {
        stream: u32,
        first: Option<(IpAddr, u16)>,
        seen: Vec<SeenPayload>,
    },
    Headers(Vec<HeaderRow>),
}

impl Watch {
    /// The payload of one stream.
    pub fn new(stream: u32) -> Self {
        Watch::Stream {
            stream,
            first: None,
            seen: Vec::new(),
        }
    }

    /// The headers of all segments.
    pub fn headers() -> Self {
        Watch::Headers(Vec::new())
    }

    /// One segment of any stream. Not as an event, so that LLVM keeps that in registers.
    pub fn segment(&mut self, frame: u64, stream: u32, segment: &Segment<'_>, facts: &Facts) {
        let (wanted, first, seen) = match self {
            Watch::Stream { stream, first, seen } => (*stream, first, seen),
            Watch::Headers(rows) => {
                return rows.push([
                    frame as i64,
                    segment.seq.into(),
                    segment.ack.into(),
                    segment.ip_id.map_or(-1, i64::from),
                    segment.ttl.into(),
                    segment.tos.into(),
                ]);
            }
        };
        if stream != wanted {
            return;
        }
        let sender = (segment.src, segment.sport);
        seen.push(SeenPayload {
            frame,
            from_first: *first.get_or_insert(sender) == sender,
            seq: facts.seq,
            ack: facts.ack,
            flags: segment.flags,
            len: segment.len,
            payload: segment.payload.to_vec(),
        });
    }

    pub fn take(&mut self) -> Vec<SeenPayload> {
        match self {
            Watch::Stream { seen, .. } => std::mem::take(seen),
            Watch::Headers(_) => Vec::new(),
        }
    }

    pub fn take_headers(&mut self) -> Vec<HeaderRow> {
        match self {
            Watch::Headers(rows) => std::mem::take(rows),
            Watch::Stream { .. } => Vec::new(),
        }
    }
}
