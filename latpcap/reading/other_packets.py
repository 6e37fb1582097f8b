"""Rows of a flow graph for frames that are not TCP.

Reads records with dpkt; returns the sender, the receiver and a line for each: for ICMP and ARP as in Wireshark's Info
column, shorter for others. Echo requests are paired with their replies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latpcap.reading.reread import Record

NO_STREAM = -1
"""The stream of a packet that is not TCP."""

_UNREACHABLE = {
    0: "Network unreachable",
    1: "Host unreachable",
    2: "Protocol unreachable",
    3: "Port unreachable",
    4: "Fragmentation needed",
    9: "Network administratively prohibited",
    10: "Host administratively prohibited",
    13: "Communication administratively filtered",
}
_ICMP = {
    3: ("Destination unreachable", _UNREACHABLE),
    4: ("Source quench", {}),
    5: ("Redirect", {0: "Redirect for network", 1: "Redirect for host"}),
    11: ("Time-to-live exceeded", {0: "Time to live exceeded in transit", 1: "Fragment reassembly time exceeded"}),
    12: ("Parameter problem", {}),
}
_ICMP6 = {
    1: "Destination Unreachable",
    2: "Packet Too Big",
    3: "Time Exceeded",
    4: "Parameter Problem",
    128: "Echo (ping) request",
    129: "Echo (ping) reply",
    130: "Multicast Listener Query",
    131: "Multicast Listener Report",
    133: "Router Solicitation",
    134: "Router Advertisement",
    135: "Neighbor Solicitation",
    136: "Neighbor Advertisement",
    137: "Redirect",
    143: "Multicast Listener Report",
}
NAMED_PORTS = {53: "DNS", 67: "DHCP", 68: "DHCP", 123: "NTP", 137: "NBNS", 138: "NBDS", 161: "SNMP", 443: "QUIC"}
NAMED_PORTS |= {500: "ISAKMP", 514: "Syslog", 546: "DHCPv6", 547: "DHCPv6", 1900: "SSDP", 5353: "MDNS", 5355: "LLMNR"}
"""Ports of UDP whose protocol a row is named after."""
_ETHER = {0x88CC: "LLDP", 0x8863: "PPPoED", 0x8864: "PPPoES", 0x8847: "MPLS", 0x888E: "EAPOL", 0x9000: "LOOP"}
_PROTOCOLS = {2: "IGMP", 6: "TCP", 17: "UDP", 47: "GRE", 50: "ESP", 51: "AH", 89: "OSPF", 112: "VRRP", 132: "SCTP"}


def packets(records: Iterable[Record], *, only_icmp: bool = False) -> Iterator[dict[str, Any]]:
    """Yield a row of a flow graph for each frame; with `only_icmp` those of ICMP and ICMPv6 alone.

    `label` and `comment` are for the picture. `info` is Wireshark's Info column where it is reproduced exactly (echo
    requests and replies of IPv4), else None. A frame that dpkt cannot read has a row with the reason.
    """
    requests: dict[tuple[Any, ...], Record] = {}
    for record in records:
        row = _row(record, requests)
        if not only_icmp or row["protocol"] in ("ICMP", "ICMPv6"):
            yield row


def _row(record: Record, requests: dict[tuple[Any, ...], Record]) -> dict[str, Any]:
    """Return the row of a packet that is not TCP."""
    import dpkt

    from latpcap.errors import CaptureError
    from latpcap.reading.reread import packet

    row: dict[str, Any] = {"frame": record.frame, "time": record.time_ns, "stream": NO_STREAM, "from_client": None}
    row |= {"src": "?", "dst": "?", "sport": 0, "dport": 0, "release_frame": None, "info": None}
    row |= {"protocol": "?", "label": "unreadable", "comment": "", "code": 0}
    try:
        outer = packet(record, "")
    except CaptureError as problem:
        return row | {"comment": problem.reason.partition(": ")[2]}
    # link layers above IP have names of their own for what they carry
    layer, hardware = outer, _hardware(outer)
    while not isinstance(layer, (dpkt.ip.IP, dpkt.ip6.IP6, dpkt.arp.ARP, bytes)) and hasattr(layer, "data"):
        layer = layer.data
    row |= {"src": hardware[0], "dst": hardware[1]}
    if isinstance(layer, dpkt.arp.ARP):
        return row | _arp(layer)
    if isinstance(layer, (dpkt.ip.IP, dpkt.ip6.IP6)):
        row |= {"src": str(ip_address(layer.src)), "dst": str(ip_address(layer.dst))}
        return row | _ip(layer, record, requests)
    ethertype: Any = getattr(outer, "type", None)
    name = _ETHER.get(
        ethertype, "LLC" if hasattr(outer, "llc") else f"0x{ethertype:04x}" if isinstance(ethertype, int) else "frame"
    )
    return row | {"protocol": name, "label": f"{name} - Len: {record.original_len}"}


def _hardware(outer: Any) -> tuple[str, str]:
    """Return the Ethernet addresses, for frames without any other."""
    source, target = getattr(outer, "src", None), getattr(outer, "dst", None)
    if not (isinstance(source, bytes) and isinstance(target, bytes) and len(source) == len(target) == 6):
        return "?", "?"
    return source.hex(":"), "Broadcast" if target == b"\xff" * 6 else target.hex(":")


def _arp(layer: Any) -> dict[str, Any]:
    sender, target = (str(ip_address(raw)) if len(raw) == 4 else raw.hex() for raw in (layer.spa, layer.tpa))
    if layer.op == 1:
        info = f"Who has {target}? Tell {sender}"
        return {"protocol": "ARP", "label": f"Who has {target}?", "comment": f"ARP: Tell {sender}", "info": info}
    if layer.op == 2:
        info = f"{sender} is at {layer.sha.hex(':')}"
        return {"protocol": "ARP", "label": f"{sender} is at", "comment": f"ARP: {layer.sha.hex(':')}", "info": info}
    return {"protocol": "ARP", "label": f"ARP opcode {layer.op}"}


def _ip(layer: Any, record: Record, requests: dict[tuple[Any, ...], Record]) -> dict[str, Any]:
    """Return what a row shows of an IP packet that is not TCP."""
    import dpkt

    inner = layer.data
    if isinstance(inner, dpkt.icmp.ICMP):
        return {"protocol": "ICMP", "code": inner.type * 256 + inner.code} | _icmp(layer, inner, record, requests)
    if isinstance(inner, dpkt.icmp6.ICMP6):
        label = _ICMP6.get(inner.type, f"Type {inner.type}")
        return {"protocol": "ICMPv6", "label": label, "comment": "ICMPv6", "code": inner.type * 256 + inner.code}
    if isinstance(inner, dpkt.udp.UDP):
        name = NAMED_PORTS.get(min(inner.sport, inner.dport), "UDP")
        label = f"{name} - Len: {max(0, inner.ulen - 8)}"
        row = {"protocol": name, "label": label, "comment": name, "sport": inner.sport, "dport": inner.dport}
        return row | (_dns(bytes(inner.data), name) if name in ("DNS", "MDNS", "LLMNR") else {})
    number = layer.p if isinstance(layer, dpkt.ip.IP) else layer.nxt
    name = _PROTOCOLS.get(number, f"IP protocol {number}")
    if isinstance(layer, dpkt.ip.IP) and (layer.mf or layer.offset):
        return {
            "protocol": "IP",
            "label": f"{name} fragment",
            "comment": f"IP: id=0x{layer.id:04x}, off={layer.offset}",
        }
    return {"protocol": name, "label": f"{name} - Len: {len(inner)}", "comment": name}


def _icmp(layer: Any, inner: Any, record: Record, requests: dict[tuple[Any, ...], Record]) -> dict[str, Any]:
    """Return what a row shows of an ICMP message; an echo reply names its request."""
    if inner.type not in (0, 8):
        name, codes = _ICMP.get(inner.type, (f"ICMP type {inner.type}", {}))
        meaning = codes.get(inner.code, f"code {inner.code}")
        return {"label": name, "comment": f"ICMP: {meaning}"}
    raw = bytes(inner)[4:8]
    number, sequence = int.from_bytes(raw[:2], "big"), int.from_bytes(raw[2:], "big")
    swapped = int.from_bytes(raw[2:], "little")
    facts = f"id=0x{number:04x}, seq={sequence}/{swapped}, ttl={layer.ttl}"
    if inner.type == 8:
        requests[(layer.src, layer.dst, raw)] = record
        info = f"Echo (ping) request  {facts}"
        return {"label": "Echo (ping) request", "comment": f"ICMP: {facts}", "info": info}
    request = requests.pop((layer.dst, layer.src, raw), None)
    request_text = "" if request is None else f" (request in {request.frame})"
    took = "" if request is None else f", {(record.time_ns - request.time_ns) / 1e6:.3f} ms"
    info = f"Echo (ping) reply    {facts}{request_text}"
    return {
        "label": "Echo (ping) reply",
        "comment": f"ICMP: {facts}{request_text[:-1]}{took})" if request_text else f"ICMP: {facts}",
        "info": info,
    }


def _dns(data: bytes, name: str) -> dict[str, Any]:
    """Return the question's name; whatever does not read as DNS keeps its length only."""
    import dpkt

    try:
        message = dpkt.dns.DNS(data)
        question = message.qd[0].name if message.qd else ""
    except (dpkt.UnpackError, IndexError, ValueError, UnicodeError):
        return {}
    plain = "".join(letter if letter.isprintable() else "?" for letter in question)[:60]
    direction = "response" if message.qr else "query"
    return {"label": f"{name} {direction}", "comment": f"{name}: {plain}" if plain else name}
