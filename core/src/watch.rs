//! What a second reading of the capture collects beside the tables: the payload of one stream, header fields that
//! `events` does not keep, or packets in a form that recognises them in another capture. Rows stay until the caller
//! takes them.

use std::net::IpAddr;

use crate::facts::Facts;
use crate::segment::Segment;
use crate::stream::Event;

/// One segment, with the captured bytes of its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenPayload {
    pub frame: u64,
    /// Sent by the sender of the stream's first segment.
    pub from_first: bool,
    /// Relative and unwrapped, as in `events`.
    pub seq: i64,
    pub ack: i64,
    pub flags: u16,
    /// Payload bytes by the IP header, beyond the snap length as well.
    pub len: u32,
    pub payload: Vec<u8>,
}

/// Raw header fields of one segment: frame, sequence number, acknowledgement number, IPv4 identification (-1: IPv6),
/// time to live, type of service.
pub type HeaderRow = [i64; 6];

/// What is collected. The caller takes the rows after each block, so that at most one block's payload is held.
#[derive(Debug)]
pub enum Watch {
    Stream {
        stream: u32,
        first: Option<(IpAddr, u16)>,
        seen: Vec<SeenPayload>,
    },
    Headers(Vec<HeaderRow>),
    Packets(Vec<u8>),
}

/// Number of payload bytes that are hashed: as many as a snap length of 96 leaves after any usual header.
const HASHED_BYTES: usize = 16;

/// Bits of the `bits` byte of a packet.
mod bit {
    pub const FROM_LOW: u8 = 1;
    pub const FROM_CLIENT: u8 = 2;
    pub const TIMESTAMPS: u8 = 4;
    pub const SACK_PERMITTED: u8 = 8;
    pub const OPTIONS_CUT: u8 = 16;
    pub const HASHED: u8 = 32;
}

/// Size of one packet in `Watch::Packets`.
pub const PACKET_BYTES: usize = 64;

/// FNV-1a. Unlike the standard library's hash, equal in every process, as comparing two captures requires.
fn hash(payload: &[u8]) -> u64 {
    payload.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Appends what recognises a packet in another capture, little-endian:
///
/// - 64 bits each: time, frame, payload hash;
/// - 32 bits each: stream, raw sequence number, raw acknowledgement number, length, TSval, TSecr, IPv4 identification
///   (-1: IPv6);
/// - 16 bits each: flags, raw window, MSS;
/// - 8 bits each: window scale (255: none), time to live, type of service, bits, two unused bytes.
fn packet(out: &mut Vec<u8>, event: &Event<'_>) {
    let (segment, options) = (event.segment, &event.segment.options);
    let wanted = HASHED_BYTES.min(segment.len as usize);
    let begin = segment.payload.get(..wanted);
    let (tsval, tsecr) = options.timestamps.unwrap_or((0, 0));
    for wide in [event.at.time_ns as u64, event.at.frame, begin.map_or(0, hash)] {
        out.extend_from_slice(&wide.to_le_bytes());
    }
    let ip_id = segment.ip_id.map_or(u32::MAX, u32::from);
    for word in [
        event.stream,
        segment.seq,
        segment.ack,
        segment.len,
        tsval,
        tsecr,
        ip_id,
    ] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for half in [segment.flags, segment.window, options.mss.unwrap_or(0)] {
        out.extend_from_slice(&half.to_le_bytes());
    }
    let bits = [
        (event.from_low, bit::FROM_LOW),
        (event.from_client, bit::FROM_CLIENT),
        (options.timestamps.is_some(), bit::TIMESTAMPS),
        (options.sack_permitted, bit::SACK_PERMITTED),
        (options.cut, bit::OPTIONS_CUT),
        (begin.is_some(), bit::HASHED),
    ];
    let bits = bits
        .iter()
        .fold(0, |all, (set, bit)| if *set { all | bit } else { all });
    let wscale = options.wscale.unwrap_or(u8::MAX);
    out.extend_from_slice(&[wscale, segment.ttl, segment.tos, bits, 0, 0]);
}

impl Watch {
    /// Collects the payload of one stream.
    pub fn new(stream: u32) -> Self {
        Watch::Stream {
            stream,
            first: None,
            seen: Vec::new(),
        }
    }

    /// Collects the header fields of all segments.
    pub fn headers() -> Self {
        Watch::Headers(Vec::new())
    }

    /// Collects what recognises each packet in another capture.
    pub fn packets() -> Self {
        Watch::Packets(Vec::new())
    }

    /// Takes one segment of any stream.
    #[inline(always)] // so that an event which is not kept is never built in memory
    pub fn event(&mut self, event: &Event<'_>) {
        match self {
            Watch::Packets(out) => packet(out, event),
            _ => self.segment(event.at.frame, event.stream, event.segment, event.facts),
        }
    }

    /// Takes one segment for `Stream` or `Headers`. Its parameters are not an `Event`, so that LLVM keeps that in
    /// registers.
    fn segment(&mut self, frame: u64, stream: u32, segment: &Segment<'_>, facts: &Facts) {
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
            Watch::Packets(_) => return,
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
            Watch::Headers(_) | Watch::Packets(_) => Vec::new(),
        }
    }

    pub fn take_headers(&mut self) -> Vec<HeaderRow> {
        match self {
            Watch::Headers(rows) => std::mem::take(rows),
            Watch::Stream { .. } | Watch::Packets(_) => Vec::new(),
        }
    }

    /// Returns `PACKET_BYTES` bytes for each segment since the last call.
    pub fn take_packets(&mut self) -> Vec<u8> {
        match self {
            Watch::Packets(rows) => std::mem::take(rows),
            Watch::Stream { .. } | Watch::Headers(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn the_hash_is_fnv_1a() {
        // vectors of its authors (draft-eastlake-fnv, appendix C)
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
