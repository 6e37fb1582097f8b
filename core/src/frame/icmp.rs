//! ICMP (RFC 792) and ICMPv6 (RFC 4443): identifiers of echo messages, and the TCP segment or echo request that an
//! error quotes.

use super::ip;
use super::neighbour;
use super::tcp::Ends;
use super::{Echo, Icmp, Packet, View};
use crate::cursor::Header;

/// Length of a quoted packet on the wire, before its IP header is read: the longest possible packet.
const MAX_QUOTED_BYTES: u32 = 65_575;

/// Types of ICMP (IANA, ICMP Type Numbers).
mod v4 {
    pub(super) const ECHO_REPLY: u8 = 0;
    pub(super) const DESTINATION_UNREACHABLE: u8 = 3;
    pub(super) const SOURCE_QUENCH: u8 = 4;
    pub(super) const REDIRECT: u8 = 5;
    pub(super) const ECHO_REQUEST: u8 = 8;
    pub(super) const TIME_EXCEEDED: u8 = 11;
    pub(super) const PARAMETER_PROBLEM: u8 = 12;
    pub(super) const TIMESTAMP: u8 = 13;
    pub(super) const TIMESTAMP_REPLY: u8 = 14;
    /// Code of DESTINATION_UNREACHABLE.
    pub(super) const FRAGMENTATION_NEEDED: u8 = 4;
}

/// Types of ICMPv6 (RFC 4443).
mod v6 {
    pub(super) const DESTINATION_UNREACHABLE: u8 = 1;
    pub(super) const PACKET_TOO_BIG: u8 = 2;
    pub(super) const PARAMETER_PROBLEM: u8 = 4;
    pub(super) const ECHO_REQUEST: u8 = 128;
    pub(super) const ECHO_REPLY: u8 = 129;
}

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
    let (id, seq) = if has_id(kind, v6) {
        (head.be16::<4>(), head.be16::<6>())
    } else {
        (0, 0)
    };
    let quote = View {
        captured: view.skip(8).captured,
        wire: MAX_QUOTED_BYTES,
        is_quoted: true,
        depth: view.depth,
    };
    let quoted = match is_error(kind, v6) && !view.is_quoted {
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
            (false, v4::DESTINATION_UNREACHABLE, v4::FRAGMENTATION_NEEDED) => {
                Some(u32::from(head.be16::<6>()))
            }
            (true, v6::PACKET_TOO_BIG, _) => Some(head.be32::<4>()),
            _ => None,
        },
        id,
        seq,
        ttl: carrier.ttl,
        echo: quoted_echo(&quoted),
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

/// Whether a message of this type has an identifier and a sequence number.
fn has_id(kind: u8, v6: bool) -> bool {
    if v6 {
        return matches!(kind, v6::ECHO_REQUEST | v6::ECHO_REPLY);
    }
    matches!(
        kind,
        v4::ECHO_REPLY | v4::ECHO_REQUEST | v4::TIMESTAMP | v4::TIMESTAMP_REPLY
    )
}

/// Whether a message of this type quotes the packet that it is about.
fn is_error(kind: u8, v6: bool) -> bool {
    if v6 {
        return matches!(kind, v6::DESTINATION_UNREACHABLE..=v6::PARAMETER_PROBLEM);
    }
    matches!(
        kind,
        v4::DESTINATION_UNREACHABLE
            | v4::SOURCE_QUENCH
            | v4::REDIRECT
            | v4::TIME_EXCEEDED
            | v4::PARAMETER_PROBLEM
    )
}

/// Returns the echo request that an error quotes.
fn quoted_echo(quoted: &Packet<'_>) -> Option<Echo> {
    let Packet::Icmp(icmp) = quoted else {
        return None;
    };
    let request = if icmp.v6 {
        v6::ECHO_REQUEST
    } else {
        v4::ECHO_REQUEST
    };
    (icmp.kind == request).then_some(Echo {
        src: icmp.src,
        dst: icmp.dst,
        id: icmp.id,
        seq: icmp.seq,
    })
}
