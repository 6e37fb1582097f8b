//! IPv4 (RFC 791) and IPv6 (RFC 8200) with extension headers. Reads addresses and lengths and passes the payload to
//! TCP, ICMP or a tunnel. Fragments are returned for reassembly (`fragment.rs`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::tcp::Ends;
use super::{Fragment, Packet, View, distrusted, fragment, icmp, skipped, tcp, tunnel};
use crate::cursor::{self, Cursor, Header};

const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const ICMPV6: u8 = 58;
const DESTINATION: u8 = 60;
const SHIM6: u8 = 140;

/// Reads IPv4 or IPv6, by the version field. Wireshark reads ethertype 0x0800 and raw IP like this.
#[inline(always)]
pub(super) fn any(view: View<'_>) -> Packet<'_> {
    match Header::<20>::of(view.captured) {
        Some(head) if head.u8::<0>() == 0x45 => v4::<20>(head, view, 20),
        Some(head) => any_slow(head, view),
        None => view.cut("ip", 20),
    }
}

/// Reads anything but an IPv4 header without options.
#[inline(never)]
fn any_slow<'a>(head: Header<'a, 20>, view: View<'a>) -> Packet<'a> {
    let first = head.u8::<0>();
    match (first >> 4, u32::from(first & 0xf) * 4) {
        (4, size @ 20..) => v4::<0>(head, view, size),
        (4, size) => distrusted("ipv4", "header length is below its least", 20, size.into()),
        (6, _) => v6(view),
        _ => distrusted("ip", "version is neither four nor six", 0, 0),
    }
}

/// Reads IPv4. `SIZE` is the header's length if it is known at compile time, else 0.
#[inline(always)]
fn v4<'a, const SIZE: u32>(head: Header<'a, 20>, view: View<'a>, size: u32) -> Packet<'a> {
    let size = if SIZE == 0 { size } else { SIZE };
    // With segmentation offload the total length can be 0; then the frame's length counts. A total length beyond the
    // frame is cut to the frame, as in Wireshark.
    let total = u32::from(head.be16::<2>());
    let packet = match total {
        0 if view.is_quoted => return distrusted("ipv4", "total length of a quoted packet is zero", 0, 0),
        0 => view,
        _ if total > view.wire => return length_beyond_frame(head, view, size),
        _ => view.limit(total),
    };
    v4_payload::<SIZE>(head, packet, size)
}

/// Reads a packet whose total length is beyond the end of the frame.
#[cold]
#[inline(never)]
fn length_beyond_frame<'a>(head: Header<'a, 20>, view: View<'a>, size: u32) -> Packet<'a> {
    match v4_payload::<0>(head, view, size) {
        Packet::Tcp(segment) if !view.is_quoted => {
            let missing = u32::from(head.be16::<2>()).saturating_sub(view.wire);
            let claimed = segment.len.saturating_add(missing);
            // inside a tunnel, a length of an outer header may have cut the packet instead of the frame
            let is_trusted = view.depth == 0 && is_checksum_right(cursor::upto(view.captured, size as usize));
            Packet::LengthBeyondFrame(segment, is_trusted.then_some(claimed))
        }
        packet => packet,
    }
}

/// Whether the checksum of an IPv4 header is right: the ones' complement sum over the header is all ones (RFC 791).
fn is_checksum_right(header: &[u8]) -> bool {
    let words = header
        .chunks_exact(2)
        .map(|word| word.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte)));
    let sum: u32 = words.sum();
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

/// Whether these bytes are an IP packet of about `wire` bytes. A frame may be up to 46 bytes longer, by its padding.
pub(super) fn is_packet(packet: &[u8], wire: u32) -> bool {
    let size = match (Header::<20>::of(packet), Header::<40>::of(packet)) {
        (Some(head), _) if matches!(head.u8::<0>(), 0x45..=0x4f) => {
            let header = cursor::upto(packet, usize::from(head.u8::<0>() & 0xf) * 4);
            Some(u32::from(head.be16::<2>())).filter(|_| is_checksum_right(header))
        }
        (_, Some(head)) if head.u8::<0>() >> 4 == 6 => Some(u32::from(head.be16::<4>()) + 40),
        _ => None,
    };
    size.is_some_and(|size| size <= wire && wire - size <= 46)
}

/// Reads the payload of an IPv4 packet whose length is already limited.
#[inline(always)]
fn v4_payload<'a, const SIZE: u32>(head: Header<'a, 20>, packet: View<'a>, size: u32) -> Packet<'a> {
    let size = if SIZE == 0 { size } else { SIZE };
    if packet.wire < size {
        let reason = "total length is below the header length";
        return distrusted("ipv4", reason, size.into(), packet.wire.into());
    }
    let mut dst = head.bytes::<16, 4>();
    if size > 20 {
        let options = cursor::upto(cursor::from(packet.captured, 20), (size - 20) as usize);
        dst = source_route(options).unwrap_or(dst);
    }
    // A closure, so that the addresses are built where they are stored. Copying them right after writing is slower.
    let ends = || Ends {
        src: IpAddr::V4(Ipv4Addr::from(head.bytes::<12, 4>())),
        dst: IpAddr::V4(Ipv4Addr::from(dst)),
        ip_id: Some(head.be16::<4>()),
        ttl: head.u8::<8>(),
        tos: head.u8::<1>(),
    };
    let payload = packet.skip(size as usize);
    let protocol = head.u8::<9>();
    if head.be16::<6>() & 0x3fff != 0 {
        return fragment_v4(head, payload, ends());
    }
    match protocol {
        TCP => tcp::decode(payload, ends),
        _ => upper(protocol, payload, ends()),
    }
}

#[cold]
#[inline(never)]
fn fragment_v4<'a>(head: Header<'a, 20>, payload: View<'a>, carrier: Ends) -> Packet<'a> {
    let word = head.be16::<6>();
    let key = fragment::Key {
        src: carrier.src,
        dst: carrier.dst,
        id: head.be16::<4>().into(),
        protocol: head.u8::<9>(),
    };
    let start = u32::from(word & 0x1fff) * 8;
    Fragment::of(key, start, word & 0x2000 != 0, head.u8::<9>(), payload, carrier)
}

#[inline(never)]
pub(super) fn v6(view: View<'_>) -> Packet<'_> {
    let Some(head) = Header::<40>::of(view.captured) else {
        return view.cut("ipv6", 40);
    };
    if head.u8::<0>() >> 4 != 6 {
        return distrusted("ipv6", "version is not six", 0, 0);
    }
    // Payload length 0: a jumbogram (RFC 2675), or segmentation offload (Linux "BIG TCP"). The jumbo option, if there
    // is one, sets the length below.
    let payload = view.skip(40);
    let payload = match u32::from(head.be16::<4>()) {
        0 if view.is_quoted => return distrusted("ipv6", "payload length of a quoted packet is zero", 0, 0),
        0 => payload,
        length => payload.limit(length),
    };
    let carrier = Ends {
        src: IpAddr::V6(Ipv6Addr::from(head.bytes::<8, 16>())),
        dst: IpAddr::V6(Ipv6Addr::from(head.bytes::<24, 16>())),
        ip_id: None,
        ttl: head.u8::<7>(),
        tos: (head.be16::<0>() >> 4) as u8,
    };
    match head.u8::<6>() {
        TCP => tcp::decode(payload, || carrier),
        HOP_BY_HOP if head.be16::<4>() == 0 => {
            let options = cursor::from(payload.captured, 2);
            let jumbo = payload.limit(jumbo_len(options).unwrap_or(u32::MAX));
            upper(HOP_BY_HOP, jumbo, carrier)
        }
        next => upper(next, payload, carrier),
    }
}

/// Reads the payload with this protocol number, after any extension headers.
#[inline(never)]
pub(super) fn upper(protocol: u8, view: View<'_>, carrier: Ends) -> Packet<'_> {
    let (mut next, mut view, mut carrier) = (protocol, view, carrier);
    // terminates, since each extension header takes at least eight bytes
    loop {
        let layer = match next {
            TCP => return tcp::decode(view, || carrier),
            ICMP if carrier.src.is_ipv4() => return icmp::decode(view, carrier, false),
            ICMPV6 if carrier.src.is_ipv6() => return icmp::decode(view, carrier, true),
            UDP => return tunnel::udp(view, carrier),
            HOP_BY_HOP => "ipv6 hop-by-hop options",
            ROUTING => "ipv6 routing header",
            FRAGMENT => "ipv6 fragment header",
            AUTHENTICATION => "authentication header",
            DESTINATION => "ipv6 destination options",
            SHIM6 => "shim6",
            50 => return skipped("esp", "payload is encrypted", 50),
            _ => return tunnel::over_ip(next, view),
        };
        let Some(head) = Header::<8>::of(view.captured) else {
            return view.cut(layer, 8);
        };
        let units = usize::from(head.u8::<1>());
        let size = match next {
            FRAGMENT if head.be16::<2>() & 0xfff9 != 0 => return fragment_v6(head, view.skip(8), carrier),
            FRAGMENT => 8,
            AUTHENTICATION => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        if next == ROUTING {
            let end = final_address(
                head,
                cursor::upto(cursor::from(view.captured, 8), size.saturating_sub(8)),
            );
            carrier.dst = end.unwrap_or(carrier.dst);
        }
        (next, view) = (head.u8::<0>(), view.skip(size));
    }
}

#[cold]
#[inline(never)]
fn fragment_v6<'a>(head: Header<'a, 8>, payload: View<'a>, carrier: Ends) -> Packet<'a> {
    let word = head.be16::<2>();
    let key = fragment::Key {
        src: carrier.src,
        dst: carrier.dst,
        id: head.be32::<4>(),
        protocol: FRAGMENT,
    };
    let start = u32::from(word & 0xfff8);
    Fragment::of(key, start, word & 1 != 0, head.u8::<0>(), payload, carrier)
}

/// Returns the final destination of a source route (RFC 791 3.1, options 131 and 137) that is not yet at its end. It is
/// the address of the TCP connection.
#[cold]
fn source_route(options: &[u8]) -> Option<[u8; 4]> {
    let mut cursor = Cursor::new(options);
    loop {
        match cursor.u8()? {
            0 => return None,
            1 => {}
            kind => {
                let len = usize::from(cursor.u8()?).checked_sub(2)?;
                let value = cursor.take(len)?;
                let (pointer, route) = value.split_first()?;
                if matches!(kind, 131 | 137) && usize::from(*pointer) <= value.len().saturating_add(2) {
                    return route.last_chunk().copied();
                }
            }
        }
    }
}

/// Returns the final destination of an IPv6 routing header with segments left: the last address for types 0 and 2, the
/// first for a segment routing header (RFC 8754), whose list is in reverse order.
#[cold]
fn final_address(head: Header<'_, 8>, addresses: &[u8]) -> Option<IpAddr> {
    let address: &[u8; 16] = match (head.u8::<2>(), head.u8::<3>()) {
        (_, 0) => None,
        (0 | 2, _) => addresses.last_chunk(),
        (4, _) => addresses.first_chunk(),
        _ => None,
    }?;
    Some(IpAddr::V6(Ipv6Addr::from(*address)))
}

/// Returns the jumbo payload length among hop-by-hop options, which counts from the end of the IPv6 header.
#[cold]
fn jumbo_len(options: &[u8]) -> Option<u32> {
    let mut cursor = Cursor::new(options);
    loop {
        match cursor.u8()? {
            0 => {}
            0xc2 => return (cursor.u8()? == 4).then(|| cursor.u32be())?,
            _ => {
                let len = usize::from(cursor.u8()?);
                cursor.take(len)?;
            }
        }
    }
}
