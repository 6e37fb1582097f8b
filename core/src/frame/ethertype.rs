//! Layers that an ethertype announces, down to IP: VLAN and other tags, MPLS, LLC, PPP, and Ethernet in Ethernet.

use super::{Packet, View, ip, neighbour, skipped};
use crate::cursor::{self, Header};

pub(super) const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
/// Transparent Ethernet bridging (RFC 1701).
const ETHERNET: u16 = 0x6558;
/// 802.1Q, 802.1ad and the older QinQ tags.
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
const QINQ_1: u16 = 0x9100;
const QINQ_2: u16 = 0x9200;
const CISCO_METADATA: u16 = 0x8909;
const VN_TAG: u16 = 0x8926;
/// High-availability Seamless Redundancy (IEC 62439-3).
const HSR: u16 = 0x892f;
/// Sequence numbers of IEEE 802.1CB.
const REDUNDANCY_TAG: u16 = 0xf1c1;
const MACSEC: u16 = 0x88e5;
const MPLS: u16 = 0x8847;
const MPLS_UPSTREAM: u16 = 0x8848;
const PPPOE_SESSION: u16 = 0x8864;
const PPP: u16 = 0x880b;
const FABRIC_PATH: u16 = 0x8903;
/// Service tag of 802.1ah.
const BACKBONE_SERVICE: u16 = 0x88e7;
const TRILL: u16 = 0x22f3;
const NSH: u16 = 0x894f;
/// Lowest number of an ethertype (IEEE 802.3, 3.2.6).
pub(super) const MIN_ETHERTYPE: u16 = 0x0600;

/// PPP's protocol numbers (IANA's registry of PPP numbers).
mod ppp_protocol {
    pub const IPV4: u16 = 0x21;
    pub const IPV6: u16 = 0x57;
    pub const MPLS_UNICAST: u16 = 0x0281;
    pub const MPLS_MULTICAST: u16 = 0x0283;
    /// Van Jacobson header compression (RFC 1144).
    pub const COMPRESSED_TCP: u16 = 0x2d;
    pub const UNCOMPRESSED_TCP: u16 = 0x2f;
    pub const MULTILINK: u16 = 0x3d;
    pub const ENCRYPTED: u16 = 0x53;
    pub const ENCRYPTED_LINK: u16 = 0x55;
    pub const COMPRESSED_LINK: u16 = 0xfb;
    pub const COMPRESSED: u16 = 0xfd;
}

/// Largest value of the type field that is a length (IEEE 802.3, 3.2.6).
pub(super) const MAX_LENGTH: u16 = 1500;

#[inline(never)]
pub(super) fn ethernet(view: View<'_>) -> Packet<'_> {
    match Header::<14>::of(view.captured) {
        Some(head) => ethertype(head.be16::<12>(), view.skip(14)),
        None => view.cut("ethernet", 14),
    }
}

/// Reads the layer that an ethertype announces, or LLC if the field is a length.
#[inline(never)]
pub(super) fn ethertype(kind: u16, view: View<'_>) -> Packet<'_> {
    let (mut kind, mut view) = (kind, view);
    loop {
        // a tag: its name, the offset of the next ethertype, its length
        let (layer, at, size) = match kind {
            IPV4 => return ip::any(view),
            IPV6 => return ip::v6(view),
            ARP => return neighbour::arp(view),
            0..=MAX_LENGTH => return llc(view),
            // in any order and number
            VLAN | SERVICE_VLAN | QINQ_1 | QINQ_2 => ("vlan", 2, 4),
            // security group tag: version, length, option, tag, then an ethertype
            CISCO_METADATA => ("cisco metadata", 6, 8),
            VN_TAG => ("vntag", 4, 6),
            HSR => ("hsr", 4, 6),
            REDUNDANCY_TAG => ("802.1cb", 4, 6),
            MACSEC => match macsec(view.captured) {
                Some(size) => ("macsec", size - 2, size),
                None => return skipped("macsec", "payload is encrypted", kind.into()),
            },
            MPLS | MPLS_UPSTREAM => return view.enter(mpls),
            PPPOE_SESSION => return view.enter(pppoe),
            PPP => return view.enter(ppp),
            ETHERNET => return view.enter(ethernet),
            FABRIC_PATH => return fabric_path(view),
            BACKBONE_SERVICE => return view.skip(4).enter(ethernet),
            TRILL => return trill(view),
            NSH => return nsh(view),
            _ if kind < MIN_ETHERTYPE || carries_no_ip(kind) => return Packet::Other,
            _ => return view.foreign("ethertype", kind.into()),
        };
        let Some(next) = cursor::be16_at(view.captured, at) else {
            return view.cut(layer, size as u32);
        };
        (kind, view) = (next, view.skip(size));
    }
}

/// Whether an ethertype is known to carry no IP: reverse ARP, spanning tree, discovery, storage, industrial and time
/// protocols, IS-IS, Wake-on-LAN.
fn carries_no_ip(kind: u16) -> bool {
    matches!(
        kind,
        0x8035 | 0x0842 | 0x22f0 | 0x22ea | 0x6000..=0x6007 | 0x809b | 0x80f3 | 0x8137 | 0x8808 | 0x8809
            | 0x8819 | 0x8863 | 0x886d | 0x8870 | 0x887b | 0x888e | 0x8892 | 0x889a | 0x88a2 | 0x88a4 | 0x88ab
            | 0x88b5..=0x88bb | 0x88c7 | 0x88ca | 0x88cc | 0x88cd | 0x88dc | 0x88e1 | 0x88e3 | 0x88f5..=0x88f8
            | 0x88fb | 0x8902 | 0x8906 | 0x890d | 0x8914 | 0x8915 | 0x891d | 0x8940 | 0x8980 | 0x9000 | 0x9998
            | 0xfefe | 0x0600 | 0x0bad | 0x2000..=0x2004 | 0x8181 | 0x8203 | 0x86df | 0x8912 | 0x893a | 0xe6fb
    )
}

/// LLC (IEEE 802.2) with IP directly (SAP 6), or SNAP with an ethertype (RFC 1042; OUI 0x0000f8 is Cisco's).
pub(super) fn llc(view: View<'_>) -> Packet<'_> {
    match *view.captured {
        [6, 6, 3, ..] => ip::any(view.skip(3)),
        [0xaa, 0xaa, 3, 0, 0, 0 | 0xf8, high, low, ..] if high >= 6 => {
            let kind = u16::from_be_bytes([high, low]);
            view.skip(8).enter(|view| ethertype(kind, view))
        }
        _ => Packet::Other,
    }
}

/// Returns the length of a MACsec tag and the ethertype after it. `None` if the payload is encrypted (IEEE 802.1AE
/// 9.3).
fn macsec(tag: &[u8]) -> Option<usize> {
    let control = cursor::u8_at(tag, 0).unwrap_or(0);
    let identifier = if control & 0x20 != 0 { 8 } else { 0 };
    (control & 0x0c == 0).then_some(6 + identifier + 2)
}

/// An MPLS label stack (RFC 3032). The payload has no type field, so its first four bits decide: 4 is IPv4, 6 is IPv6.
/// For others, an Ethernet frame is recognised by its ethertype, with or without a pseudowire control word (RFC 4385)
/// before it.
pub(super) fn mpls(view: View<'_>) -> Packet<'_> {
    let mut view = view;
    loop {
        let Some(label) = cursor::be32_at(view.captured, 0) else {
            return view.cut("mpls", 4);
        };
        view = view.skip(4);
        if label & 0x100 != 0 {
            break;
        }
    }
    match view.captured.first().map(|byte| byte >> 4) {
        Some(4) => ip::any(view),
        Some(6) => ip::v6(view),
        Some(1) => Packet::Other, // associated channel (OAM)
        Some(first) => {
            let kinds = [(16, 4), (12, 0)].map(|(at, skip)| (cursor::be16_at(view.captured, at), skip));
            let frame = kinds
                .iter()
                .find(|(kind, _)| kind.is_some_and(is_common_ethertype))
                .or_else(|| {
                    kinds
                        .iter()
                        .find(|(kind, _)| kind.is_some_and(|kind| kind <= MAX_LENGTH))
                });
            match frame {
                Some((_, 4)) if first != 0 => Packet::Other,
                Some((_, skip)) => ethernet(view.skip(*skip)),
                None => Packet::Other,
            }
        }
        None => view.cut("mpls", 4),
    }
}

fn is_common_ethertype(kind: u16) -> bool {
    matches!(
        kind,
        IPV4 | IPV6 | ARP | VLAN | SERVICE_VLAN | MPLS | PPPOE_SESSION
    )
}

/// A PPPoE session (RFC 2516): a header of six bytes, then PPP.
pub(super) fn pppoe(view: View<'_>) -> Packet<'_> {
    match Header::<6>::of(view.captured) {
        Some(head) if head.be16::<0>() == 0x1100 => ppp(view.skip(6).limit(head.be16::<4>().into())),
        Some(_) => Packet::Other,
        None => view.cut("pppoe", 6),
    }
}

/// PPP (RFC 1661). Address and control bytes before the protocol are optional, and so is the protocol's first byte.
pub(super) fn ppp(view: View<'_>) -> Packet<'_> {
    let view = match *view.captured {
        [0xff, 3, ..] => view.skip(2),
        _ => view,
    };
    let (protocol, view) = match *view.captured {
        [low, ..] if low & 1 != 0 => (u16::from(low), view.skip(1)),
        [high, low, ..] => (u16::from_be_bytes([high, low]), view.skip(2)),
        _ => return view.cut("ppp", 2),
    };
    match protocol {
        ppp_protocol::IPV4 => ip::any(view),
        ppp_protocol::IPV6 => ip::v6(view),
        ppp_protocol::MPLS_UNICAST | ppp_protocol::MPLS_MULTICAST => view.enter(mpls),
        ppp_protocol::COMPRESSED_TCP | ppp_protocol::UNCOMPRESSED_TCP => {
            skipped("ppp", "header compression is not undone", protocol.into())
        }
        // multilink (RFC 1990): a fragment that is both the first and the last is a whole packet
        ppp_protocol::MULTILINK if matches!(*view.captured, [flags, _, _, _, ..] if flags >= 0xc0) => {
            view.skip(4).enter(ppp)
        }
        ppp_protocol::MULTILINK => {
            skipped("ppp", "multilink fragments are not put together", protocol.into())
        }
        ppp_protocol::ENCRYPTED
        | ppp_protocol::ENCRYPTED_LINK
        | ppp_protocol::COMPRESSED_LINK
        | ppp_protocol::COMPRESSED => skipped("ppp", "payload is compressed or encrypted", protocol.into()),
        _ => Packet::Other,
    }
}

/// Cisco HDLC: address, control, ethertype.
pub(super) fn chdlc(view: View<'_>) -> Packet<'_> {
    match Header::<4>::of(view.captured) {
        Some(head) => ethertype(head.be16::<2>(), view.skip(4)),
        None => view.cut("chdlc", 4),
    }
}

/// TRILL (RFC 6325 3): a header of six bytes and options, then an Ethernet frame.
fn trill(view: View<'_>) -> Packet<'_> {
    match Header::<6>::of(view.captured) {
        Some(head) => {
            let options = usize::from(head.be16::<0>() >> 6 & 0x1f) * 4;
            view.skip(6 + options).enter(ethernet)
        }
        None => view.cut("trill", 6),
    }
}

/// FabricPath: a tag, then an Ethernet frame. The last four bytes are taken as the checksum of the outer frame even if
/// it was not captured, as in Wireshark, so that lengths agree.
fn fabric_path(view: View<'_>) -> Packet<'_> {
    let inner = view.skip(2);
    inner.limit(inner.wire.saturating_sub(4)).enter(ethernet)
}

/// Network service header (RFC 8300 2.2): its length is given in words, its payload by a next protocol field.
pub(super) fn nsh(view: View<'_>) -> Packet<'_> {
    match Header::<8>::of(view.captured) {
        Some(head) => {
            let inner = view.skip(usize::from(head.be16::<0>() & 0x3f) * 4);
            inner.enter(|inner| next_protocol(head.u8::<3>(), inner))
        }
        None => view.cut("nsh", 8),
    }
}

/// Reads the layer that a next protocol field of NSH or VXLAN-GPE announces.
pub(super) fn next_protocol(protocol: u8, view: View<'_>) -> Packet<'_> {
    match protocol {
        1 => ip::any(view),
        2 => ip::v6(view),
        3 => ethernet(view),
        4 => view.enter(nsh),
        5 => mpls(view),
        _ => Packet::Other,
    }
}
