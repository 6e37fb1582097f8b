//! The TCP header and its options (RFC 9293 3.1, RFC 7323, RFC 2018, RFC 8684). Reads one segment; knows nothing of
//! the stream it belongs to.

use std::net::IpAddr;

use super::{Packet, Unread, View};
use crate::cursor::{self, Cursor, Header};
use crate::segment::{Multipath, Options, Sack, Segment};

/// The header up to the window: all that is used of it lies there. Wireshark too analyses a segment whose
/// checksum and urgent pointer the snap length cut off.
const USED: u32 = 16;

/// What a segment takes from its IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub ip_id: Option<u16>,
    pub ttl: u8,
    pub tos: u8,
}

#[inline(always)]
pub(super) fn decode<'a>(view: View<'a>, at: impl Fn() -> Ends) -> Packet<'a> {
    let Some(head) = Header::<{ USED as usize }>::of(view.held) else {
        return short(view, at());
    };
    let size = u32::from(head.u8::<12>() >> 4) * 4;
    if size < 20 {
        let why = Unread::distrusted("tcp", "data offset is below its least", 20, size.into());
        return malformed(head, at(), why, Packet::BadDataOffset);
    }
    let Some(len) = view.wire.checked_sub(size) else {
        let reason = "data offset is beyond the packet";
        let why = Unread::distrusted("tcp", reason, size.into(), view.wire.into());
        return malformed(head, at(), why, Packet::Malformed);
    };
    // Nearly every segment of a Linux connection: two NOPs and the time stamps.
    if size == 32
        && let Some((whole, payload)) = Header::<32>::split(view.held)
        && whole.be32::<20>() == 0x0101_080a
    {
        let timestamps = Some((whole.be32::<24>(), whole.be32::<28>()));
        return segment(head, at(), len, payload, timestamps);
    }
    let payload = cursor::from(view.held, size as usize);
    let mut packet = segment(head, at(), len, payload, None);
    if let Packet::Tcp(segment) = &mut packet
        && size > 20
    {
        let bytes = cursor::from(cursor::upto(view.held, size as usize), 20);
        let _ = read_options(bytes, &mut segment.options);
        segment.options.cut = view.held.len() < size as usize;
    }
    packet
}

/// Of a quote that is cut, ports and sequence number are enough to tell whose it is.
#[cold]
#[inline(never)]
fn short<'a>(view: View<'a>, at: Ends) -> Packet<'a> {
    let cut = view.cut("tcp", USED);
    match cut {
        Packet::Unread(why) if view.quoted && view.held.len() >= 8 => {
            let mut head = [0; USED as usize];
            for (to, from) in head.iter_mut().zip(view.held.iter().take(8)) {
                *to = *from;
            }
            match Header::<{ USED as usize }>::of(&head) {
                Some(head) => malformed(head, at, why, Packet::BadDataOffset),
                None => cut,
            }
        }
        _ => cut,
    }
}

#[cold]
#[inline(never)]
fn malformed<'a>(
    head: Header<'_, { USED as usize }>,
    at: Ends,
    why: Unread,
    kind: fn(Segment<'a>, Unread) -> Packet<'a>,
) -> Packet<'a> {
    match segment(head, at, 0, &[], None) {
        Packet::Tcp(segment) => kind(segment, why),
        other => other,
    }
}

/// Inlined at each call, so that the segment is written where it is to be instead of being copied there.
#[inline(always)]
fn segment<'a>(
    head: Header<'_, { USED as usize }>,
    at: Ends,
    len: u32,
    payload: &'a [u8],
    timestamps: Option<(u32, u32)>,
) -> Packet<'a> {
    Packet::Tcp(Segment {
        src: at.src,
        dst: at.dst,
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
        ip_id: at.ip_id,
        ttl: at.ttl,
        tos: at.tos,
    })
}

/// Reads until the end of the list, the end of what was captured, or a length that cannot be. An option of
/// an odd length is passed over; of two of a kind the later counts, as in Linux's tcp_parse_options.
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
        // of blocks that the capture cut off, the first ones are there
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
