//! ICMP (RFC 792) and ICMPv6 (RFC 4443): identifiers of echo messages, and the TCP segment or echo request that an
//! error quotes.

use super::ip;
use super::neighbour;
use super::tcp::Ends;
use super::{Echo, Icmp, Packet, View};
use crate::cursor::Header;

/// Length of a quoted packet on the wire, before its IP header is read: the longest possible packet.
const MAX_QUOTED_BYTES: u32 = 65_575;

#[inline(never)]
pub(super) fn decode<'a>(view: View<'a>, carrier: Ends, v6: bool) -> Packet<'a> {
    let Some(head) = Header::<8>::of(view.captured) else {
        return view.cut(if v6 { "icmpv6" } else { "icmp" }, 8);
    };
    let kind = head.u8::<0>();
    if v6
        && matches!(kind, neighbour::SOLICITATION | neighbour::ADVERTISEMENT)
        && let Some(packet) = neighbour::icmp6(view, carrier)
    {
        return packet;
    }
    let has_id = if v6 {
        matches!(kind, 128 | 129)
    } else {
        matches!(kind, 0 | 8 | 13 | 14)
    };
    let (id, seq) = if has_id {
        (head.be16::<4>(), head.be16::<6>())
    } else {
        (0, 0)
    };
    let is_error = if v6 {
        matches!(kind, 1..=4)
    } else {
        matches!(kind, 3 | 4 | 5 | 11 | 12)
    };
    let quote = View {
        captured: view.skip(8).captured,
        wire: MAX_QUOTED_BYTES,
        quoted: true,
        depth: view.depth,
    };
    let quoted = match is_error && !view.quoted {
        true if v6 => ip::v6(quote),
        true => ip::any(quote),
        false => Packet::Other,
    };
    Packet::Icmp(Icmp {
        src: carrier.src,
        dst: carrier.dst,
        v6,
        kind,
        code: head.u8::<1>(),
        next_mtu: match (v6, kind, head.u8::<1>()) {
            (false, 3, 4) => Some(u32::from(head.be16::<6>())),
            (true, 2, _) => Some(head.be32::<4>()),
            _ => None,
        },
        id,
        seq,
        ttl: carrier.ttl,
        echo: match &quoted {
            Packet::Icmp(icmp) if icmp.kind == if icmp.v6 { 128 } else { 8 } => Some(Echo {
                src: icmp.src,
                dst: icmp.dst,
                id: icmp.id,
                seq: icmp.seq,
            }),
            _ => None,
        },
        brief: match quoted {
            Packet::BadDataOffset(segment, _) => Some(segment),
            _ => None,
        },
        quoted: match quoted {
            Packet::Tcp(segment) => Some(segment),
            _ => None,
        },
    })
}
