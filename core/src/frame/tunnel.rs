//! Tunnels over IP and UDP: reads their headers and the packet inside. A UDP tunnel is recognised by its port and by a
//! header that fits the tunnel's format. Other datagrams become `Packet::Udp`.

use std::net::IpAddr;

use super::ethertype::{MIN_ETHERTYPE, ethernet, ethertype, mpls, next_protocol, ppp};
use super::ip;
use super::tcp::Ends;
use super::{Packet, Udp, View, skipped};
use crate::cursor::{self, Header};
use crate::segment::SYN;

/// IP protocol numbers (IANA's registry).
mod protocol {
    pub const IPV4: u8 = 4;
    pub const UDP: u8 = 17;
    pub const IPV6: u8 = 41;
    pub const GRE: u8 = 47;
    pub const MINIMAL_ENCAPSULATION: u8 = 55;
    pub const IPIP: u8 = 94;
    pub const ETHER_IP: u8 = 97;
    pub const COMPRESSED: u8 = 108;
    pub const L2TP: u8 = 115;
    pub const MPLS: u8 = 137;
    pub const ETHERNET: u8 = 143;
}

/// GRE's protocol types for packets that are not announced by their own ethertype.
mod gre_type {
    pub const KEEP_ALIVE: u16 = 0;
    /// ERSPAN (draft-foschiano-erspan) types I and II, and III.
    pub const ERSPAN: u16 = 0x88be;
    pub const ERSPAN_3: u16 = 0x22eb;
    pub const WCCP: u16 = 0x883e;
}

/// Reads an IP protocol that is neither TCP, UDP nor ICMP.
#[inline(never)]
pub(super) fn over_ip(number: u8, view: View<'_>) -> Packet<'_> {
    match number {
        protocol::IPV4 | protocol::IPIP => view.enter(ip::any),
        protocol::IPV6 => view.enter(ip::v6),
        protocol::GRE => view.enter(gre),
        protocol::ETHER_IP => view.skip(2).enter(ethernet),
        protocol::L2TP => l2tp_session(view, "ip", number.into()),
        protocol::ETHERNET => view.enter(ethernet),
        protocol::MPLS => view.enter(mpls),
        protocol::COMPRESSED => view.foreign("ip", number.into()),
        // minimal encapsulation of Mobile IP (RFC 2004)
        protocol::MINIMAL_ENCAPSULATION => skipped("ip", "tunnel is not entered", number.into()),
        _ => Packet::Other,
    }
}

/// GRE (RFC 2784, 2890), with source routes (RFC 1701) and in the variant of PPTP (RFC 2637).
fn gre(view: View<'_>) -> Packet<'_> {
    let Some(head) = Header::<4>::of(view.captured) else {
        return view.cut("gre", 4);
    };
    let (flags, protocol) = (head.be16::<0>(), head.be16::<2>());
    let (routed, keyed, numbered) = (flags & 0x4000 != 0, flags & 0x2000 != 0, flags & 0x1000 != 0);
    let optional_words = [flags & 0xc000 != 0, keyed, numbered, flags & 0x0087 == 0x0081];
    let size = 4 + 4 * optional_words.iter().filter(|is_there| **is_there).count();
    let mut inner = view.skip(size);
    if flags & 7 == 1 {
        // PPTP: the upper half of the key is the payload's length
        return match cursor::be16_at(view.captured, 4) {
            Some(length @ 1..) => ppp(inner.limit(length.into())),
            _ => Packet::Other, // only an acknowledgement
        };
    }
    let mut more = routed;
    while more {
        let Some(entry) = Header::<4>::of(inner.captured) else {
            return inner.cut("gre", 4);
        };
        inner = inner.skip(4 + usize::from(entry.u8::<3>()));
        more = entry.be32::<0>() != 0;
    }
    match protocol {
        gre_type::KEEP_ALIVE => Packet::Other,
        // type I has no sequence number and no header
        gre_type::ERSPAN if !numbered => ethernet(inner),
        gre_type::ERSPAN => ethernet(inner.skip(8)),
        gre_type::ERSPAN_3 => erspan(inner),
        // version 2 has a redirect header of four bytes before the packet
        gre_type::WCCP => match inner.captured.first() {
            Some(first) if first >> 4 == 4 => ip::any(inner),
            _ => ip::any(inner.skip(4)),
        },
        MIN_ETHERTYPE.. => ethertype(protocol, inner),
        _ => Packet::Other,
    }
}

/// ERSPAN type III: a header of twelve bytes, eight more if its last bit is set, then a frame or a packet.
fn erspan(view: View<'_>) -> Packet<'_> {
    let Some(head) = Header::<12>::of(view.captured) else {
        return view.cut("erspan", 12);
    };
    let platform_len = if head.u8::<11>() & 1 != 0 { 8 } else { 0 };
    let inner = view.skip(12 + platform_len);
    match head.u8::<10>() >> 2 & 0x1f {
        2 => ip::any(inner),
        _ => ethernet(inner),
    }
}

/// Reads a UDP datagram, or the packet inside it if it is a tunnel.
#[inline(never)]
pub(super) fn udp(view: View<'_>, carrier: Ends) -> Packet<'_> {
    let Some(head) = Header::<8>::of(view.captured) else {
        return Packet::Other;
    };
    // the length is 0 in a jumbogram and with segmentation offload
    let inner = match u32::from(head.be16::<4>()) {
        length @ 8.. => view.limit(length).skip(8),
        _ => view.skip(8),
    };
    let (sport, dport) = (head.be16::<0>(), head.be16::<2>());
    let read = tunnel_reader(sport.min(dport)).or_else(|| tunnel_reader(sport.max(dport)));
    match read {
        Some(read) => match inner.enter(read) {
            Packet::Tcp(segment) if segment.has(SYN) && !is_checksum_right(view, carrier) => {
                Packet::BadTunnelChecksum(segment)
            }
            packet => packet,
        },
        None if !view.is_quoted => Packet::Udp(Udp {
            src: carrier.src,
            dst: carrier.dst,
            sport,
            dport,
            payload: inner.captured,
        }),
        None => Packet::Other,
    }
}

/// Whether a datagram's checksum is right (RFC 768). True also if it cannot be checked: it is 0, or the datagram is
/// cut.
#[cold]
fn is_checksum_right(view: View<'_>, carrier: Ends) -> bool {
    let (length, sum) = (
        cursor::be16_at(view.captured, 4),
        cursor::be16_at(view.captured, 6),
    );
    let size = usize::from(length.unwrap_or(0));
    if sum == Some(0) || size < 8 || size > view.captured.len() || view.is_quoted {
        return true;
    }
    let mut total = u32::from(protocol::UDP) + size as u32;
    for end in [carrier.src, carrier.dst] {
        total += match end {
            IpAddr::V4(end) => sum_of_words(&end.octets()),
            IpAddr::V6(end) => sum_of_words(&end.octets()),
        };
    }
    total += sum_of_words(cursor::upto(view.captured, size));
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total == 0xffff
}

/// Returns the sum of the big-endian 16-bit words; a last odd byte is padded with 0. At most 2^15 words, so it does not
/// wrap.
fn sum_of_words(bytes: &[u8]) -> u32 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum: u32 = pairs
        .iter()
        .map(|pair| u32::from(u16::from_be_bytes(*pair)))
        .sum();
    sum + rest.iter().map(|byte| u32::from(*byte) << 8).sum::<u32>()
}

type Read = for<'a> fn(View<'a>) -> Packet<'a>;

/// Returns the reader of the tunnel with this UDP port.
fn tunnel_reader(port: u16) -> Option<Read> {
    Some(match port {
        1701 => l2tp,
        2152 => gtp,
        3386 => gtp_prime,
        3544 => teredo,
        4341 => lisp,
        4754 => gre,
        4789 | 8472 => vxlan,
        4790 => vxlan_gpe,
        5072 => ayiya,
        5247 => capwap,
        6081 => geneve,
        6343 => sflow,
        6635 => mpls,
        37008 => tzsp,
        _ => return None,
    })
}

/// sFlow: sampled headers of packets on other links. A stream made of samples would be misleading, so they are not
/// read.
fn sflow(_: View<'_>) -> Packet<'_> {
    skipped("sflow", "sampled headers are not read as traffic", 0)
}

/// Reads IPv4 or IPv6 by the version in the first byte. Other bytes are not an error.
fn by_version(view: View<'_>) -> Packet<'_> {
    match view.captured.first().map(|byte| byte >> 4) {
        Some(4) => ip::any(view),
        Some(6) => ip::v6(view),
        _ => Packet::Other,
    }
}

/// VXLAN (RFC 7348 5): a header with the flag of a valid identifier, then an Ethernet frame.
fn vxlan(view: View<'_>) -> Packet<'_> {
    match view.captured {
        [flags, ..] if flags & 0x08 != 0 && view.captured.len() >= 22 => ethernet(view.skip(8)),
        _ => Packet::Other,
    }
}

/// VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe 3.1): as VXLAN, with a next protocol field if its flag is set.
fn vxlan_gpe(view: View<'_>) -> Packet<'_> {
    match *view.captured {
        [flags, _, _, protocol, ..] if flags & 0x0c == 0x0c => next_protocol(protocol, view.skip(8)),
        _ => vxlan(view),
    }
}

/// GENEVE (RFC 8926 3.4): a header, options whose length is given in words, then the payload by its protocol type
/// field.
fn geneve(view: View<'_>) -> Packet<'_> {
    match Header::<8>::of(view.captured) {
        Some(head) if head.u8::<0>() >> 6 == 0 => {
            let inner = view.skip(8 + usize::from(head.u8::<0>() & 0x3f) * 4);
            match head.be16::<2>() {
                kind @ 0x0600.. => ethertype(kind, inner),
                _ => Packet::Other,
            }
        }
        _ => Packet::Other,
    }
}

/// GTP-U (3GPP TS 29.281 5.1): a G-PDU, its optional fields and extension headers, then IP.
fn gtp(view: View<'_>) -> Packet<'_> {
    let Some(head) = Header::<8>::of(view.captured) else {
        return Packet::Other;
    };
    let flags = head.u8::<0>();
    match (flags >> 4, head.u8::<1>()) {
        (3, 255) => {}
        (1, 255) => return by_version(view.skip(20)), // version 0 (3GPP TS 09.60)
        _ => return Packet::Other,
    }
    let mut inner = view.skip(8);
    if flags & 7 != 0 {
        let mut next = cursor::u8_at(inner.captured, 3).unwrap_or(0);
        inner = inner.skip(4);
        while flags & 4 != 0 && next != 0 {
            // a length of 0 words is invalid
            let size = usize::from(cursor::u8_at(inner.captured, 0).unwrap_or(0)) * 4;
            let Some(following) = size
                .checked_sub(1)
                .and_then(|at| cursor::u8_at(inner.captured, at))
            else {
                return Packet::Other;
            };
            (next, inner) = (following, inner.skip(size));
        }
    }
    by_version(inner)
}

/// GTP version 0, on its own port.
fn gtp_prime(view: View<'_>) -> Packet<'_> {
    match *view.captured {
        [flags, 255, ..] if flags >> 4 == 1 => by_version(view.skip(20)),
        _ => Packet::Other,
    }
}

/// Teredo (RFC 4380 5.1.1): optional authentication and origin headers, then an IPv6 packet.
fn teredo(view: View<'_>) -> Packet<'_> {
    let mut view = view;
    if let [0, 1, id, auth, ..] = *view.captured {
        view = view.skip(13 + usize::from(id) + usize::from(auth));
    }
    if let [0, 0, ..] = *view.captured {
        view = view.skip(8);
    }
    match view.captured {
        [first, ..] if first >> 4 == 6 => ip::v6(view),
        _ => Packet::Other,
    }
}

/// L2TP: in version 2 (RFC 2661 3.1) a data message carries PPP.
fn l2tp(view: View<'_>) -> Packet<'_> {
    let flags = match cursor::be16_at(view.captured, 0) {
        Some(flags) if flags & 0x800f == 2 => flags,
        Some(flags) if flags & 0x800f == 3 => return l2tp_session(view.skip(4), "l2tp", 3),
        _ => return Packet::Other,
    };
    let length = if flags & 0x4000 != 0 { 2 } else { 0 };
    let numbers = if flags & 0x0800 != 0 { 4 } else { 0 };
    let mut size = 6 + length + numbers;
    if flags & 0x0200 != 0 {
        size += 2 + usize::from(cursor::be16_at(view.captured, size).unwrap_or(0));
    }
    ppp(view.skip(size))
}

/// A session of L2TP version 3 (RFC 3931 4.1). The length of its cookie, its sublayer and its payload type are
/// negotiated out of band. So the packet is searched at every possible offset; the length in its IP header confirms it.
fn l2tp_session<'a>(view: View<'a>, layer: &'static str, detail: u32) -> Packet<'a> {
    match cursor::be32_at(view.captured, 0) {
        Some(0) => return Packet::Other, // control
        Some(_) => {}
        None => return view.cut("l2tp", 4),
    }
    for size in [4, 8, 12, 16] {
        let inner = view.skip(size);
        if let Some(packet) = find_packet(inner) {
            return packet.enter(ip::any);
        }
    }
    skipped(layer, "tunnel is not entered", detail)
}

/// Finds the IP packet after an Ethernet header (with or without a tag), a Cisco HDLC or PPP header, or no header.
fn find_packet(view: View<'_>) -> Option<View<'_>> {
    let kind = |at| matches!(cursor::be16_at(view.captured, at), Some(0x0800 | 0x86dd));
    let is_hdlc_or_ppp = match *view.captured {
        [0x0f | 0x8f, 0, ..] => kind(2),
        [0xff, 3, 0, 0x21 | 0x57, ..] => true,
        _ => false,
    };
    let is_tagged = cursor::be16_at(view.captured, 12) == Some(0x8100) && kind(16);
    let headers = [(is_hdlc_or_ppp, 4), (kind(12), 14), (is_tagged, 18), (true, 0)];
    let mut packets = headers
        .iter()
        .filter(|(fits, _)| *fits)
        .map(|(_, size)| view.skip(*size));
    packets.find(|packet| ip::is_packet(packet.captured, packet.wire))
}

/// The data channel of CAPWAP (RFC 5415 4.3): a header with its length, then an Ethernet or an 802.11 frame.
fn capwap(view: View<'_>) -> Packet<'_> {
    let Some(head) = Header::<8>::of(view.captured) else {
        return Packet::Other;
    };
    let words = head.be32::<0>();
    let inner = view.skip((words >> 19 & 0x1f) as usize * 4);
    match (words >> 24, words >> 9 & 0x1f) {
        (1, _) => skipped("capwap", "payload is encrypted", 0),
        (0, _) if words & 0x88 == 0x08 || words >> 19 & 0x1f < 2 => Packet::Other, // keep-alive, no header
        (0, _) if words & 0x80 != 0 => skipped("capwap", "fragments are not put together", 0),
        (0, _) if words & 0x100 == 0 => ethernet(inner),
        (0, 1) => inner.foreign("capwap", 1),
        _ => Packet::Other,
    }
}

/// LISP (RFC 9300 5.3): a header of eight bytes, then IP.
fn lisp(view: View<'_>) -> Packet<'_> {
    by_version(view.skip(8))
}

/// AYIYA (draft-massar-v6ops-ayiya): a header, identity and signature whose lengths its first bytes give, then IP.
fn ayiya(view: View<'_>) -> Packet<'_> {
    match *view.captured {
        [identity, signature, _, 4 | 41, ..] => {
            let identity = 1usize.checked_shl(u32::from(identity >> 4)).unwrap_or(0);
            by_version(view.skip(8 + identity + usize::from(signature >> 4) * 4))
        }
        _ => Packet::Other,
    }
}

/// TZSP: a header, tagged fields, then a frame of the type that the header names.
pub(super) fn tzsp(view: View<'_>) -> Packet<'_> {
    let encapsulated = match *view.captured {
        [1, 0 | 1, high, low, ..] => u16::from_be_bytes([high, low]),
        _ => return Packet::Other,
    };
    let mut view = view.skip(4);
    loop {
        view = match *view.captured {
            [1, ..] => break,
            [0, ..] => view.skip(1),
            [_, length, ..] => view.skip(2 + usize::from(length)),
            _ => return Packet::Other,
        };
    }
    let inner = view.skip(1);
    match encapsulated {
        1 => ethernet(inner),
        18 => inner.foreign("link", 105),
        119 => inner.foreign("link", 119),
        _ => Packet::Other,
    }
}
