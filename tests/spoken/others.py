"""Captures without TCP: what there is, a traceroute by UDP, datagrams that ICMP answers, bytes that nobody reads."""

from __future__ import annotations

import dpkt
from makepcap import pcap_of
from rawip import file, icmp, packet

from spoken.registry import says


def datagram(to: int, port: int, ttl: int = 64) -> bytes:
    """UDP from 10.0.0.1 to this host and port."""
    udp = dpkt.udp.UDP(sport=50_000, dport=port, data=b"hello")
    udp.ulen = len(udp)
    return packet(1, to, 17, bytes(udp), ttl=ttl)


def error(kind: int, of: bytes, whence: int) -> bytes:
    """The ICMP error of this host about a packet."""
    return packet(whence, 1, 1, icmp(kind, bytes(4), of[:28]))


@says("No TCP: all 3 frames are UDP (DNS by its port).")
def datagrams_of_one_kind() -> bytes:
    return file(*[datagram(9, 53)] * 3)


@says("No TCP: its one frame is OSPF.")
def one_frame_of_another_kind() -> bytes:
    return file(packet(1, 5, 89, bytes(40)))


@says("No TCP: of 4 frames 2 are UDP, 1 UDP (NTP by its port), 1 ICMP; 1 datagram answered by ICMP unreachable.")
def a_datagram_that_is_unreachable() -> bytes:
    sent = datagram(9, 9999)
    return file(datagram(9, 123), sent, sent, error(3, sent, 9))


@says("No TCP: a traceroute to 10.0.0.9 by UDP: routers answered 4 of 5 datagrams, 1 ended in ICMP unreachable.")
def a_traceroute_by_udp() -> bytes:
    sent = [datagram(9, 33_434 + n, ttl=n + 1) for n in range(5)]
    return file(*sent, *(error(11, one, 20 + n) for n, one in enumerate(sent[:4])), error(3, sent[4], 9))


@says("No TCP: all the first 10,000 frames are ARP.")
def many_frames_of_one_kind() -> bytes:
    arp = bytes(dpkt.ethernet.Ethernet(type=0x806, data=bytes(28)))
    return pcap_of([(10**18 + n, arp) for n in range(10_050)])


@says("No TCP stream: nothing that latpcap could judge.")
def frames_that_nobody_reads() -> bytes:
    return pcap_of([(10**18, bytes(60))])
