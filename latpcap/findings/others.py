"""What is there in a capture without TCP? Its first frames once more in, a sentence out: how many of which protocol, or
a traceroute by UDP. What a port is for is said as the port's, and no frame inside a tunnel is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from latpcap import words
from latpcap.errors import CaptureError
from latpcap.findings import presentation as show
from latpcap.reading.packets import packet

if TYPE_CHECKING:
    from latpcap.reading.packets import Record

PROTOCOLS = {
    1: "ICMP", 2: "IGMP", 4: "IPIP", 17: "UDP", 33: "DCCP", 41: "6in4", 46: "RSVP", 47: "GRE", 50: "ESP",
    51: "AH", 58: "ICMPv6", 88: "EIGRP", 89: "OSPF", 103: "PIM", 112: "VRRP", 132: "SCTP",
}  # fmt: skip
"""What IP carries, by IANA's numbers."""
ETHERTYPES = {
    0x0806: "ARP", 0x8035: "RARP", 0x8137: "IPX", 0x8809: "LACP", 0x8863: "PPPoE", 0x888E: "EAPOL",
    0x88CC: "LLDP", 0x88E1: "HomePlug", 0x88F7: "PTP", 0x9000: "loopback",
}  # fmt: skip
UDP_PORTS = {
    53: "DNS", 67: "DHCP", 68: "DHCP", 69: "TFTP", 123: "NTP", 137: "NetBIOS", 138: "NetBIOS", 161: "SNMP",
    162: "SNMP", 443: "QUIC", 500: "IKE", 514: "syslog", 520: "RIP", 546: "DHCP", 547: "DHCP", 1194: "OpenVPN",
    1812: "RADIUS", 1900: "SSDP", 2055: "NetFlow", 2152: "GTP", 3478: "STUN", 4500: "IKE", 4739: "IPFIX",
    4789: "VXLAN", 5060: "SIP", 5353: "mDNS", 5355: "LLMNR", 6081: "Geneve", 51820: "WireGuard",
}  # fmt: skip
"""What a port is usually for (IANA's register). Only for words."""
UDP = 17
PPP, FRAMED = 9, b"\xff\x03"
TIME_EXCEEDED, UNREACHABLE = {(4, 11), (6, 3)}, {(4, 3), (6, 1)}
"""IP's version, and the type of the ICMP message."""


def of(records: Iterable[Record]) -> tuple[str, str] | None:
    """Kind and sentence; None where nothing of it is known, or the bytes cannot be read again."""
    if (counts := _counted(records)) is None:
        return None
    total, seen, asked, errors = counts
    routed = Counter({where: n for (word, where), n in errors.items() if word == "time_exceeded"})
    if routed:
        [(where, answers)] = routed.most_common(1)
        came = errors["unreachable", where]
        return "traceroute", words.say(
            "trace_by_udp", target=ip_address(where), n=answers,
            of=words.say("of_datagrams", n=asked[where]) if asked[where] >= answers else "",
            came=words.say("came_unreachable", n=came) if came else "",
        )  # fmt: skip
    if not seen:
        return None
    gone = sum(n for (word, _), n in errors.items() if word == "unreachable")
    return "no_tcp", words.say("no_tcp_unreachable" if gone else "no_tcp", kinds=_kinds(seen, total), n=gone)


def _counted(
    records: Iterable[Record],
) -> tuple[int, Counter[str], Counter[bytes], Counter[tuple[str, bytes]]] | None:
    """How many of the first records were looked at, their kinds, UDP's targets and ICMP's errors; None: unreadable."""
    seen, asked, errors = Counter[str](), Counter[bytes](), Counter[tuple[str, bytes]]()
    total = 0
    try:
        for record in records:
            total += 1
            _look(record, seen, asked, errors)
            if total == show.MOST_OTHERS:
                break
    except CaptureError:
        return None
    return total, seen, asked, errors


def mostly(records: Iterable[Record], segments: int) -> str | None:
    """What is most of a capture that has only so many segments of TCP, in a few words; None where that is not known."""
    if (counts := _counted(records)) is None:
        return None
    total, seen, _, _ = counts
    if not seen or seen.total() <= max(total / 2, segments):
        return None
    return _kinds(seen, total)


def _kinds(seen: Counter[str], total: int) -> str:
    """How many frames are of which kind?"""
    (kind, number), *more = seen.most_common(show.MOST_WORDS)
    some = "first_" if total == show.MOST_OTHERS else ""
    which = f"of_{some}frames" if number < total else f"all_{some}frames" if total > 1 else "one_frame"
    first = words.say(which, n=number, of=total, kind=kind)
    return words.say("and_more").join([first, *(f"{n:,} {word}" for word, n in more)])


def _look(record: Record, seen: Counter[str], asked: Counter[bytes], errors: Counter[tuple[str, bytes]]) -> None:
    """Counts one frame by what it carries; not at all where dpkt gives up on it."""
    import dpkt

    if record.link == PPP and not record.data.startswith(FRAMED):
        record = record._replace(data=FRAMED + record.data)  # RFC 1661: without what frames it (RFC 1662)
    try:
        layer: Any = packet(record, "") if record.link in READ else None
    except CaptureError:
        return
    kind = None
    while layer is not None and not isinstance(layer, (bytes, dpkt.ip.IP, dpkt.ip6.IP6)):
        kind = getattr(layer, "type", None) if isinstance(layer, dpkt.ethernet.Ethernet) else kind
        layer = getattr(layer, "data", None)
    if layer is None or isinstance(layer, bytes):
        if kind in ETHERTYPES:
            seen[ETHERTYPES[kind]] += 1
        return
    word = PROTOCOLS.get(_carried(layer))
    inner = layer.data
    if word is None:
        return
    if isinstance(inner, dpkt.udp.UDP):
        asked[bytes(layer.dst)] += 1
        ports = [port for port in (inner.sport, inner.dport) if port in UDP_PORTS]
        word = words.say("by_its_port", protocol=UDP_PORTS[min(ports)]) if ports else word
    seen[word] += 1
    quoted = _quoted(inner)
    if quoted is not None:
        errors[quoted] += 1


def _carried(layer: Any) -> int:
    """The number of what this IP packet carries: IPv6 has it behind its extension headers."""
    number = getattr(layer, "p", None)
    return int(layer.nxt if number is None else number)


READ = (0, 1, 9, 12, 14, 101, 108, 113, 228, 229, 276)
"""Link types of which dpkt gives the packet inside."""


def _quoted(inner: Any) -> tuple[str, bytes] | None:
    """Of an ICMP error: which, and to whom the UDP datagram went that it quotes."""
    import dpkt

    version = 4 if isinstance(inner, dpkt.icmp.ICMP) else 6 if isinstance(inner, dpkt.icmp6.ICMP6) else None
    if version is None:
        return None
    key = (version, inner.type)
    word = "time_exceeded" if key in TIME_EXCEEDED else "unreachable" if key in UNREACHABLE else None
    quoted = getattr(inner.data, "data", None)
    if word is None or not isinstance(quoted, (dpkt.ip.IP, dpkt.ip6.IP6)) or _carried(quoted) != UDP:
        return None
    return word, bytes(quoted.dst)
