//! Link layers: Ethernet with VLAN tags and LLC/SNAP, Linux cooked (v1 and v2), raw IP, BSD loopback. Reads
//! up to the network layer and hands on; another link type or a tunnel is `Skipped` with its number.

use super::{Packet, View, ip, skipped};
use crate::capture::NO_LINK;
use crate::cursor::Header;

const NULL: u32 = 0;
const ETHERNET: u32 = 1;
const LOOP: u32 = 108;
const SLL: u32 = 113;
const SLL2: u32 = 276;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// The largest value of the type field that is a length (IEEE 802.3, 3.2.6).
const LARGEST_LENGTH: u16 = 1500;

#[inline(always)]
pub(super) fn decode(link: u32, view: View<'_>) -> Packet<'_> {
    if link != ETHERNET {
        return others(link, view);
    }
    match Header::<14>::of(view.held) {
        Some(head) if head.be16::<12>() == IPV4 => ip::any(view.skip(14), false),
        Some(head) => ethertype(head.be16::<12>(), view.skip(14)),
        None => view.cut("ethernet", 14),
    }
}

#[inline(never)]
fn others(link: u32, view: View<'_>) -> Packet<'_> {
    match link {
        NULL => loopback::<false>(view),
        LOOP => loopback::<true>(view),
        SLL => match Header::<16>::of(view.held) {
            Some(head) => cooked(head.be16::<2>(), head.be16::<14>(), view.skip(16)),
            None => view.cut("sll", 16),
        },
        SLL2 => match Header::<20>::of(view.held) {
            Some(head) => cooked(head.be16::<8>(), head.be16::<0>(), view.skip(20)),
            None => view.cut("sll2", 20),
        },
        // RAW, and its values on OpenBSD and elsewhere, which files carry too.
        101 | 12 | 14 | 228 => ip::any(view, false),
        229 => ip::v6(view, false),
        NO_LINK => Packet::Other,
        _ => skipped("link", "link type is not read", link),
    }
}

/// What an ethertype, or a length in its place, says of the bytes after it.
#[inline(never)]
fn ethertype(kind: u16, view: View<'_>) -> Packet<'_> {
    let (mut kind, mut view) = (kind, view);
    loop {
        match kind {
            IPV4 => return ip::any(view, false),
            IPV6 => return ip::v6(view, false),
            // 802.1Q, 802.1ad and the older QinQ tag, in any order and number.
            0x8100 | 0x88a8 | 0x9100 => match Header::<4>::of(view.held) {
                Some(head) => (kind, view) = (head.be16::<2>(), view.skip(4)),
                None => return view.cut("vlan", 4),
            },
            // Cisco metadata (security group tag): version, length, option, tag, then an ethertype.
            0x8909 => match Header::<8>::of(view.held) {
                Some(head) => (kind, view) = (head.be16::<6>(), view.skip(8)),
                None => return view.cut("cisco metadata", 8),
            },
            0..=LARGEST_LENGTH => return llc(view),
            0x8847 | 0x8848 => return skipped("mpls", "label stack is not entered", kind.into()),
            0x8864 => return skipped("pppoe", "session is not entered", kind.into()),
            // Frames in frames: MACsec, transparent bridging, PBB, NSH, TRILL, FabricPath, VN-Tag, PPP.
            0x88e5 | 0x6558 | 0x88e7 | 0x894f | 0x22f3 | 0x8903 | 0x8926 | 0x880b => {
                return skipped("ethernet", "ethertype is not entered", kind.into());
            }
            _ => return Packet::Other,
        }
    }
}

/// IEEE 802.2 with IP directly (SAP 6), or in SNAP with an ethertype (RFC 1042; 0x0000f8 is Cisco's).
fn llc(view: View<'_>) -> Packet<'_> {
    match *view.held {
        [6, 6, 3, ..] => ip::any(view.skip(3), false),
        [0xaa, 0xaa, 3, 0, 0, 0 | 0xf8, high, low, ..] if high >= 6 => {
            ethertype(u16::from_be_bytes([high, low]), view.skip(8))
        }
        _ => Packet::Other,
    }
}

/// Linux cooked captures: the hardware type says how to read the protocol.
fn cooked(hardware: u16, protocol: u16, view: View<'_>) -> Packet<'_> {
    match (hardware, protocol) {
        (824, _) => Packet::Other, // netlink
        (803, _) => skipped("sll", "802.11 is not read", 803),
        (_, 4) => llc(view),
        (_, 0..=LARGEST_LENGTH) => Packet::Other,
        _ => ethertype(protocol, view),
    }
}

/// BSD loopback: an address family in the capturing host's byte order (LOOP: network byte order). The
/// family of IPv6 is another number on each system; some systems write an ethertype.
fn loopback<const BIG: bool>(view: View<'_>) -> Packet<'_> {
    let Some(head) = Header::<4>::of(view.held) else {
        return view.cut("null", 4);
    };
    let family = head.u32::<BIG, 0>();
    let family = if !BIG && family > 0xffff {
        family.swap_bytes()
    } else {
        family
    };
    let rest = view.skip(4);
    match family {
        2 => ip::any(rest, false),
        10 | 24 | 28 | 30 => ip::v6(rest, false),
        0x0600..=0xffff => ethertype(family as u16, rest),
        _ => Packet::Other,
    }
}
