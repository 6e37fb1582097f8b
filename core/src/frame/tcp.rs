//! The TCP header and its options (RFC 9293 3.1, RFC 7323, RFC 2018, RFC 8684).

use std::net::IpAddr;

use super::{Packet, Unread, View};
use crate::cursor::{self, Cursor, Header};
use crate::segment::{Multipath, Options, Sack, Segment};

/// Length of the header up to the window field; checksum and urgent pointer are not used. Wireshark too analyses a
/// segment whose checksum and urgent pointer are cut off by the snap length.
const USED_HEADER: u32 = 16;

/// Fields of the IP header that a segment keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub ip_id: Option<u16>,
    pub ttl: u8,
    pub tos: u8,
}

#[inline(always)]
pub(super) fn decode<'a>(view: View<'a>, ends: impl Fn() -> Ends) -> Packet<'a> {
    let Some(head) = Header::<{ USED_HEADER as usize }>::of(view.captured) else {
        return short(view, ends());
    };
    let size = u32::from(head.u8::<12>() >> 4) * 4;
    if size < 20 {
        let why = Unread::distrusted("tcp", "data offset is below its least", 20, size.into());
        return malformed(head, ends(), why, Packet::BadDataOffset);
    }
    let Some(len) = view.wire.checked_sub(size) else {
        let reason = "data offset is beyond the packet";
        let why = Unread::distrusted("tcp", reason, size.into(), view.wire.into());
        return malformed(head, ends(), why, Packet::Malformed);
    };
    // fast path for nearly every segment of a Linux connection: the options are two NOPs and the time stamps
    if size == 32
        && let Some((header, payload)) = Header::<32>::split(view.captured)
        && header.be32::<20>() == 0x0101_080a
    {
        let timestamps = Some((header.be32::<24>(), header.be32::<28>()));
        return segment(head, ends(), len, payload, timestamps);
    }
    let payload = cursor::from(view.captured, size as usize);
    let mut packet = segment(head, ends(), len, payload, None);
    if let Packet::Tcp(segment) = &mut packet
        && size > 20
    {
        let bytes = cursor::from(cursor::upto(view.captured, size as usize), 20);
        let _ = read_options(bytes, &mut segment.options);
        segment.options.cut = view.captured.len() < size as usize;
    }
    packet
}

/// Reads a header that is cut. In the quote of an ICMP error, ports and sequence number suffice to find the stream.
#[cold]
#[inline(never)]
fn short<'a>(view: View<'a>, ends: Ends) -> Packet<'a> {
    let cut = view.cut("tcp", USED_HEADER);
    match cut {
        Packet::Unread(why) if view.is_quoted && view.captured.len() >= 8 => {
            let mut head = [0; USED_HEADER as usize];
            for (to, from) in head.iter_mut().zip(view.captured.iter().take(8)) {
                *to = *from;
            }
            match Header::<{ USED_HEADER as usize }>::of(&head) {
                Some(head) => malformed(head, ends, why, Packet::BadDataOffset),
                None => cut,
            }
        }
        _ => cut,
    }
}

#[cold]
#[inline(never)]
fn malformed<'a>(
    head: Header<'_, { USED_HEADER as usize }>,
    ends: Ends,
    why: Unread,
    kind: fn(Segment<'a>, Unread) -> Packet<'a>,
) -> Packet<'a> {
    match segment(head, ends, 0, &[], None) {
        Packet::Tcp(segment) => kind(segment, why),
        other => other,
    }
}

/// Builds the segment. Inlined at each call, so that it is written to its final place and not copied.
#[inline(always)]
fn segment<'a>(
    head: Header<'_, { USED_HEADER as usize }>,
    ends: Ends,
    len: u32,
    payload: &'a [u8],
    timestamps: Option<(u32, u32)>,
) -> Packet<'a> {
    Packet::Tcp(Segment {
        src: ends.src,
        dst: ends.dst,
        sport: head.be16::<0>(),
        dport: head.be16::<2>(),
        seq: head.be32::<4>(),
        ack: head.be32::<8>(),
        flags: head.be16::<12>() & 0x1ff,
        window: head.be16::<14>(),
        len,
        payload,
        options: Options {
            mss: None,
            wscale: None,
            sack_permitted: false,
            timestamps,
            sack: Sack {
                count: 0,
                blocks: [(0, 0); 4],
            },
            multipath: Multipath::Nothing,
            cut: false,
        },
        ip_id: ends.ip_id,
        ttl: ends.ttl,
        tos: ends.tos,
    })
}

/// Reads options up to the end of the list, the end of the captured bytes, or an invalid length. An option of
/// unexpected length is skipped. Of two options of a kind the later counts, as in Linux's tcp_parse_options.
#[inline(never)]
fn read_options(bytes: &[u8], options: &mut Options) -> Option<()> {
    let mut cursor = Cursor::new(bytes);
    loop {
        let kind = match cursor.u8()? {
            0 => return Some(()),
            1 => continue,
            kind => kind,
        };
        let len = usize::from(cursor.u8()?).checked_sub(2)?;
        // SACK blocks that the snap length cut: read those that are captured
        let value = match kind {
            5 => cursor.take(len.min(cursor.left()))?,
            _ => cursor.take(len)?,
        };
        match (kind, value) {
            (2, &[high, low]) => options.mss = Some(u16::from_be_bytes([high, low])),
            (3, &[shift]) => options.wscale = Some(shift),
            (4, []) => options.sack_permitted = true,
            (5, blocks) => {
                options.sack.count = 0;
                let mut blocks = Cursor::new(blocks);
                for block in &mut options.sack.blocks {
                    let (Some(left), Some(right)) = (blocks.u32be(), blocks.u32be()) else {
                        break;
                    };
                    *block = (left, right);
                    options.sack.count += 1;
                }
            }
            (8, times) => {
                if let (8, Some(head)) = (times.len(), Header::<8>::of(times)) {
                    options.timestamps = Some((head.be32::<0>(), head.be32::<4>()));
                }
            }
            (30, &[first, ..]) => {
                options.multipath = match first >> 4 {
                    0 => Multipath::Capable,
                    1 => Multipath::Joins,
                    _ => options.multipath,
                };
            }
            _ => {}
        }
    }
}
