"""What do frames say that are not TCP? dpkt writes them."""

from __future__ import annotations

from typing import Any

import dpkt
import pytest
from makepcap import EPOCH_NS, pcap_of

import latpcap as lp
from latpcap.reading import other_packets

A, B = b"\x0a\0\0\1", b"\x0a\0\0\2"
A6, B6 = bytes.fromhex("20010db8000000000000000000000001"), bytes.fromhex("20010db8000000000000000000000002")
HARD = b"\x02\0\0\0\0\1", b"\x02\0\0\0\0\2"


def ether(data: Any, kind: int = dpkt.ethernet.ETH_TYPE_IP, target: bytes = HARD[1]) -> bytes:
    return bytes(dpkt.ethernet.Ethernet(src=HARD[0], dst=target, type=kind, data=bytes(data)))


def four(inner: Any, number: int, *, back: bool = False, **more: Any) -> bytes:
    data = bytes(inner)
    packet = dpkt.ip.IP(src=B if back else A, dst=A if back else B, p=number, ttl=64, data=data, **more)
    packet.len = 20 + len(data)
    return ether(packet)


def six(inner: Any, number: int) -> bytes:
    data = bytes(inner)
    return ether(dpkt.ip6.IP6(src=A6, dst=B6, nxt=number, hlim=64, plen=len(data), data=data), 0x86DD)


def icmp(kind: int, code: int, data: bytes = b"\x12\x34\0\1xxxx") -> Any:
    return dpkt.icmp.ICMP(type=kind, code=code, data=data)


def udp(port: int, data: bytes) -> Any:
    return dpkt.udp.UDP(sport=40_000, dport=port, ulen=8 + len(data), data=data)


def arp(op: int) -> Any:
    return dpkt.arp.ARP(op=op, sha=HARD[0], spa=A, tha=HARD[1], tpa=B)


def told(*frames: bytes, only_icmp: bool = False) -> list[dict[str, Any]]:
    capture = lp.read(pcap_of((EPOCH_NS + i * 1_500_000, frame) for i, frame in enumerate(frames)))
    return list(other_packets.packets(capture.records(), only_icmp=only_icmp))


ASKED = dpkt.dns.DNS(id=7, qd=[dpkt.dns.DNS.Q(name="www.example.org")])
FRAMES = {
    "who has": (ether(arp(1), 0x0806, b"\xff" * 6), "ARP", "Who has 10.0.0.2?", "ARP: Tell 10.0.0.1"),
    "is at": (ether(arp(2), 0x0806), "ARP", "10.0.0.1 is at", "ARP: 02:00:00:00:00:01"),
    "another ARP": (ether(arp(9), 0x0806), "ARP", "ARP opcode 9", ""),
    "unreachable": (four(icmp(3, 3), 1), "ICMP", "Destination unreachable", "ICMP: Port unreachable"),
    "too old": (four(icmp(11, 0), 1), "ICMP", "Time-to-live exceeded", "ICMP: Time to live exceeded in transit"),
    "unknown code": (four(icmp(3, 77), 1), "ICMP", "Destination unreachable", "ICMP: code 77"),
    "unknown type": (four(icmp(77, 1), 1), "ICMP", "ICMP type 77", "ICMP: code 1"),
    "neighbours": (six(dpkt.icmp6.ICMP6(type=135, data=bytes(20)), 58), "ICMPv6", "Neighbor Solicitation", "ICMPv6"),
    "DNS": (four(udp(53, bytes(ASKED)), 17), "DNS", "DNS query", "DNS: www.example.org"),
    "no DNS": (four(udp(53, b"\xff" * 5), 17), "DNS", "DNS - Len: 5", "DNS"),
    "NTP": (four(udp(123, bytes(48)), 17), "NTP", "NTP - Len: 48", "NTP"),
    "plain UDP": (four(udp(9999, b"abc"), 17), "UDP", "UDP - Len: 3", "UDP"),
    "OSPF": (four(bytes(24), 89), "OSPF", "OSPF - Len: 24", "OSPF"),
    "unknown protocol": (four(bytes(24), 254), "IP protocol 254", "IP protocol 254 - Len: 24", "IP protocol 254"),
    "LLDP": (ether(bytes(30), 0x88CC), "LLDP", "LLDP - Len: 44", ""),
    "unknown frame": (ether(bytes(30), 0x1234), "0x1234", "0x1234 - Len: 44", ""),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_in_a_line(name: str) -> None:
    frame, protocol, label, comment = FRAMES[name]
    [row] = told(frame)
    assert (row["protocol"], row["label"], row["comment"]) == (protocol, label, comment)
    assert (row["frame"], row["time"], row["stream"]) == (1, EPOCH_NS, other_packets.NO_STREAM)
    assert [r["label"] for r in told(frame, only_icmp=True)] == ([label] if protocol.startswith("ICMP") else [])


def test_a_fragment_is_told_by_its_place() -> None:
    packet = dpkt.ip.IP(src=A, dst=B, p=17, ttl=64, id=0x1234, data=bytes(16))
    packet.len, packet.offset = 36, 1480
    [row] = told(ether(packet))
    assert (
        row["protocol"] == "IP" and row["label"] == "UDP fragment" and row["comment"].startswith("IP: id=0x1234, off=")
    )


def test_addresses_are_the_frames_own_where_there_is_no_other() -> None:
    [row] = told(FRAMES["LLDP"][0])
    assert (row["src"], row["dst"]) == ("02:00:00:00:00:01", "02:00:00:00:00:02")
    [row] = told(ether(bytes(30), 0x88CC, b"\xff" * 6))
    assert row["dst"] == "Broadcast"


def test_a_reply_is_told_with_its_request() -> None:
    ask, reply = four(icmp(8, 0), 1), four(icmp(0, 0), 1, back=True)
    first, second, third = told(ask, reply, reply)
    facts = "id=0x1234, seq=1/256, ttl=64"
    assert first["info"] == f"Echo (ping) request  {facts}" and first["comment"] == f"ICMP: {facts}"
    assert second["info"] == f"Echo (ping) reply    {facts} (request in 1)"
    assert second["comment"] == f"ICMP: {facts} (request in 1, 1.500 ms)"
    assert third["info"] == f"Echo (ping) reply    {facts}", "answered already"


def test_a_frame_that_cannot_be_read_says_so() -> None:
    [row] = told(ether(arp(1), 0x0806)[:10])
    assert row["label"] == "unreadable" and row["comment"]
