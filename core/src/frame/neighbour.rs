//! Address resolution: ARP (RFC 826), and neighbour solicitation and advertisement of IPv6 (RFC 4861 4.3, 4.4). Returns
//! which host wants the address of which. Announcements (gratuitous ARP) and probes for duplicate addresses are
//! ignored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::tcp::Ends;
use super::{Neighbour, Packet, View};
use crate::cursor::Header;

const REQUEST: u16 = 1;
const REPLY: u16 = 2;
/// Types of ICMPv6 messages.
pub(super) const SOLICITATION: u8 = 135;
pub(super) const ADVERTISEMENT: u8 = 136;

/// Reads ARP for IPv4 on Ethernet.
#[inline(never)]
pub(super) fn arp(view: View<'_>) -> Packet<'_> {
    let Some(head) = Header::<28>::of(view.captured) else {
        return Packet::Other;
    };
    let sender = Ipv4Addr::from(head.be32::<14>());
    let target = Ipv4Addr::from(head.be32::<24>());
    let is_ethernet = head.be16::<0>() == 1 && head.be16::<2>() == 0x0800 && head.be16::<4>() == 0x0604;
    if !is_ethernet || sender == target || sender.is_unspecified() || target.is_unspecified() {
        return Packet::Other;
    }
    let (asker, target, is_answer) = match head.be16::<6>() {
        REQUEST => (sender, target, false),
        REPLY => (target, sender, true),
        _ => return Packet::Other,
    };
    Packet::Neighbour(Neighbour {
        asker: IpAddr::V4(asker),
        target: IpAddr::V4(target),
        is_answer,
    })
}

/// Reads a neighbour solicitation or advertisement.
pub(super) fn icmp6(view: View<'_>, carrier: Ends) -> Option<Packet<'_>> {
    let head = Header::<24>::of(view.captured)?;
    let target = IpAddr::V6(Ipv6Addr::from(head.bytes::<8, 16>()));
    let is_answer = head.u8::<0>() == ADVERTISEMENT;
    let asker = if is_answer { carrier.dst } else { carrier.src };
    (!asker.is_unspecified() && !asker.is_multicast() && asker != target).then_some(Packet::Neighbour(
        Neighbour {
            asker,
            target,
            is_answer,
        },
    ))
}
