//! Link layers: Ethernet, Linux cooked (v1 and v2), raw IP, BSD loopback, PPP, Cisco HDLC, MPLS and TZSP. Every other
//! link type becomes `Packet::Foreign`. The constants are LINKTYPE_ numbers.

use super::ethertype::{IPV4, MAX_LENGTH, chdlc, ethernet, ethertype, llc, mpls, ppp, pppoe};
use super::{Packet, View, ip, skipped, tunnel};
use crate::capture::NO_LINK;
use crate::cursor::Header;

const NULL: u32 = 0;
const ETHERNET: u32 = 1;
const PPP: u32 = 9;
const ENC_OPENBSD: u32 = 13;
const PPP_HDLC: u32 = 50;
const PPP_ETHER: u32 = 51;
const C_HDLC: u32 = 104;
const LOOP: u32 = 108;
const ENC: u32 = 109;
const C_HDLC_NETBSD: u32 = 112;
const SLL: u32 = 113;
const TZSP: u32 = 128;
const PPP_PPPD: u32 = 166;
const PPP_WITH_DIR: u32 = 204;
const MPLS: u32 = 219;
const SLL2: u32 = 276;

#[inline(always)]
pub(super) fn decode(link: u32, view: View<'_>) -> Packet<'_> {
    if link != ETHERNET {
        return decode_rare(link, view);
    }
    match Header::<14>::of(view.captured) {
        Some(head) if head.be16::<12>() == IPV4 => ip::any(view.skip(14)),
        _ => ethernet(view),
    }
}

#[inline(never)]
fn decode_rare(link: u32, view: View<'_>) -> Packet<'_> {
    match link {
        NULL => loopback::<false>(view),
        LOOP => loopback::<true>(view),
        SLL => match Header::<16>::of(view.captured) {
            Some(head) => cooked(head.be16::<2>(), head.be16::<14>(), view.skip(16)),
            None => view.cut("sll", 16),
        },
        SLL2 => match Header::<20>::of(view.captured) {
            Some(head) => cooked(head.be16::<8>(), head.be16::<0>(), view.skip(20)),
            None => view.cut("sll2", 20),
        },
        // RAW, its numbers on OpenBSD and other systems (found in files too), and IPV4
        101 | 12 | 14 | 228 => ip::any(view),
        229 => ip::v6(view),
        PPP | PPP_HDLC => ppp_or_hdlc(view),
        // a byte with the direction is before the frame, or (PPPD) in place of the address byte
        PPP_WITH_DIR => ppp(view.skip(1)),
        PPP_PPPD => match *view.captured {
            [0 | 1, 3, ..] => ppp(view.skip(2)),
            _ => ppp(view),
        },
        PPP_ETHER => pppoe(view),
        C_HDLC | C_HDLC_NETBSD => chdlc(view),
        TZSP => tunnel::tzsp(view),
        MPLS => mpls(view),
        ENC | ENC_OPENBSD => encapsulated(view),
        NO_LINK => Packet::Other,
        _ => view.foreign("link", link),
    }
}

/// PPP in HDLC-like framing; a first byte of 0x0f or 0x8f announces Cisco HDLC (RFC 1547 4.3.1).
fn ppp_or_hdlc(view: View<'_>) -> Packet<'_> {
    match view.captured {
        [0x0f | 0x8f, ..] => chdlc(view),
        _ => ppp(view),
    }
}

/// A Linux cooked capture. The hardware type (ARPHRD_) decides what the protocol field means.
fn cooked(hardware: u16, protocol: u16, view: View<'_>) -> Packet<'_> {
    match (hardware, protocol) {
        (824, _) => Packet::Other, // netlink
        (801, _) => view.foreign("link", 105),
        (802, _) => view.foreign("link", 119),
        (803, _) => view.foreign("link", 127),
        (778, 0x0800 | 0x86dd) => ip::any(view), // GRE
        (_, 4) => llc(view),
        (_, 0..=MAX_LENGTH) => Packet::Other,
        _ => ethertype(protocol, view),
    }
}

/// BSD loopback: an address family in the byte order of the capturing host (LOOP: network byte order). The number of
/// the IPv6 family depends on the system, and some systems write an ethertype instead.
fn loopback<const BIG: bool>(view: View<'_>) -> Packet<'_> {
    let Some(head) = Header::<4>::of(view.captured) else {
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
        2 => ip::any(rest),
        10 | 24 | 28 | 30 => ip::v6(rest),
        0x0600..=0xffff => ethertype(family as u16, rest),
        _ => Packet::Other,
    }
}

/// The IPsec interface of OpenBSD: address family, security parameter index and flags, in the host's byte order.
fn encapsulated(view: View<'_>) -> Packet<'_> {
    match Header::<12>::of(view.captured) {
        Some(head) if head.u32::<false, 8>() & 0x0c00_000c == 0 => ip::any(view.skip(12)),
        Some(_) => skipped("enc", "payload is encrypted", 0),
        None => view.cut("enc", 12),
    }
}
