"""Who waited for an answer over UDP? Records of a capture in; findings out: a server that answers late, or never.

DHCP, NTP, SNMP, RADIUS, TFTP, SIP, STUN and Kerberos are read as far as it takes to pair an answer with its request;
DNS has a table of its own. A server that never answers is one only where its client did nothing else meanwhile: daemons
that ask in the background keep nobody waiting. It reads the first records of a capture only.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from latpcap import presentation as show
from latpcap import words
from latpcap.errors import CaptureError
from latpcap.findings.schema import Finding
from latpcap.limits import LIMITS
from latpcap.user_waits.cause_totals import endpoint

if TYPE_CHECKING:
    from latpcap.reading.reread import Record

PORTS = {
    67: "DHCP", 69: "TFTP", 88: "Kerberos", 123: "NTP", 161: "SNMP", 547: "DHCPv6", 1645: "RADIUS", 1812: "RADIUS",
    1813: "RADIUS", 3478: "STUN", 5060: "SIP",
}  # fmt: skip
"""Servers' ports by IANA's register."""
LINKS = {0: 4, 1: 14, 12: 0, 14: 0, 101: 0, 113: 16, 228: 0, 229: 0, 276: 20}
"""Link types, and where IP begins in their frames."""
UDP, VLAN, ARP = 17, (0x8100, 0x88A8), 0x0806
IPV4, IPV6, BOOTPS, ARP_OPERATION = 4, 6, 67, slice(6, 8)
ARP_BYTES, IPV4_BYTES, IPV6_BYTES, UDP_BYTES, NTP_BYTES, STUN_BYTES, DHCP_BYTES = 28, 20, 40, 8, 48, 20, 34
"""So much of each is read: RFC 826, 791, 8200, 768, 5905 7.3, 8489 5, 2131 2 (to the hardware address)."""
LATE_MS = 500.0
"""An answer of one of these protocols takes a round trip; what takes so long is felt."""
GIVEN_UP_NS = 30_000_000_000
"""A client asks again within this, or has given up."""
NEXT_NS = 1_000_000_000
"""What a client does because of an answer, or because none came, it does within this; or within its last time-out."""
DISCOVER = 1
NTP_CLIENT, NTP_SERVER = 3, 4
DHCPV6 = {1: True, 3: True, 5: True, 6: True, 11: True, 2: False, 7: False}
"""Which message types are requests, which answers: RFC 8415 7.3."""
CALL_ID, CSEQ = re.compile(rb"(?mi)^(?:call-id|i):\s*(\S+)"), re.compile(rb"(?mi)^cseq:\s*(\d+ \w+)")
"""What names a request of SIP: RFC 3261 8.1.1."""


class Datagram(NamedTuple):
    """What was read of one frame."""

    frame: int
    time: int
    source: tuple[str, int]
    target: tuple[str, int]
    data: bytes


@dataclass
class Wait:
    """A request, its repeats, and its answer where one came."""

    protocol: str
    client: str
    server: tuple[str, int]
    times: list[int]
    frames: list[int]
    end: int | None = None
    answer: int | None = None
    offered: str | None = None
    checks: int = 0


@dataclass
class _Seen:
    """What was read so far: waits by who waits for whom, the times at which each address sent something else."""

    open: dict[tuple[str, ...], Wait] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    other: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    stamps: dict[tuple[str, ...], set[bytes]] = field(default_factory=lambda: defaultdict(set))
    searched: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))


def found(records: Iterable[Record]) -> list[Finding]:
    """Servers that answered late or never, by protocol and server."""
    seen = _Seen()
    try:
        for record in islice(records, show.MOST_OTHERS):
            _read(record, seen)
    except CaptureError:
        return []
    groups: dict[tuple[str, str, str], list[tuple[float, Wait, Wait | None]]] = defaultdict(list)
    for wait in seen.waits:
        case = _answered(wait, seen) if wait.end is not None else _never(wait, seen)
        if case is not None:
            sentence, waited, then = case
            groups[sentence, wait.protocol, wait.server[0]].append((waited, wait, then))
    return [_finding(sentence, cases) for (sentence, *_), cases in groups.items()]


def _read(record: Record, seen: _Seen) -> None:
    data, at = record.data, LINKS.get(-1 if record.link is None else record.link)
    if at is None:
        return
    kind = int.from_bytes(data[12:14], "big") if record.link == 1 else 0
    while kind in VLAN:
        kind, at = int.from_bytes(data[at + 2 : at + 4], "big"), at + 4
    if kind == ARP and data[at : at + ARP_BYTES][ARP_OPERATION] == b"\0\1" and len(data) >= at + ARP_BYTES:
        sender, target = (str(ip_address(data[at + off : at + off + 4])) for off in (14, 24))
        seen.searched[sender, target].append(record.time_ns)
        return
    version = data[at] >> 4 if len(data) > at else 0
    if version == IPV4 and len(data) >= at + IPV4_BYTES:
        protocol, ends, then = data[at + 9], (at + 12, at + 16, at + 20), at + 4 * (data[at] & 15)
        if int.from_bytes(data[at + 6 : at + 8], "big") & 0x1FFF:
            return  # a later fragment
    elif version == IPV6 and len(data) >= at + IPV6_BYTES:
        protocol, ends, then = data[at + 6], (at + 8, at + 24, at + 40), at + 40
    else:
        return
    source, target = (str(ip_address(data[a:b])) for a, b in pairwise(ends))
    ports = [int.from_bytes(data[then + off : then + off + 2], "big") for off in (0, 2)]
    if protocol != UDP or len(data) < then + UDP_BYTES or not _of_ours(
        Datagram(record.frame, record.time_ns, (source, ports[0]), (target, ports[1]), data[then + 8 :]), seen
    ):  # fmt: skip
        seen.other[source].append(record.time_ns)


def _of_ours(one: Datagram, seen: _Seen) -> bool:
    """Takes a request or an answer of these protocols; False for other datagrams."""
    port, back = one.target[1], one.source[1]
    if BOOTPS in (port, back):
        return _dhcp(one, seen)
    protocol = PORTS.get(port) or PORTS.get(back)
    if protocol is None:  # a server of TFTP answers from another port
        _answer(one, ("TFTP", f"{one.target}", one.source[0], ""), seen)
        return False
    asks, thing = _kind(protocol, one, to_server=port in PORTS)
    if asks is None:
        return True
    client, server = (one.source, one.target) if asks else (one.target, one.source)
    # NTP's clients often take another port when they repeat
    key = protocol, client[0] if protocol in ("NTP", "SIP") else f"{client}", server[0], thing
    if asks:
        _ask(one, key, protocol, seen)
        return True
    if protocol != "NTP" or one.data[24:32] in seen.stamps[key]:
        _answer(one, key, seen)
    return True


def _kind(protocol: str, one: Datagram, *, to_server: bool) -> tuple[bool | None, str]:
    """Is it a request (True), an answer (False) or neither (None), and which one?"""
    data = one.data
    if protocol == "NTP":
        mode = data[0] & 7 if len(data) >= NTP_BYTES else 0
        return {NTP_CLIENT: True, NTP_SERVER: False}.get(mode), ""
    if protocol == "RADIUS":
        return to_server, data[1:2].hex()
    if protocol == "DHCPv6":
        return DHCPV6.get(data[0] if data else 0), data[1:4].hex()
    if protocol == "STUN":
        return {0: True, 1: False}.get(data[0] if len(data) >= STUN_BYTES else 2), data[8:20].hex()
    if protocol == "SIP":
        call, number = CALL_ID.search(data), CSEQ.search(data)
        if call is None or number is None or data.startswith(b"ACK "):
            return None, ""
        return not data.startswith(b"SIP/2.0 "), f"{call[1]!r} {number[1]!r}"
    return to_server, ""


def _dhcp(one: Datagram, seen: _Seen) -> bool:
    if len(one.data) < DHCP_BYTES:
        return False
    key = "DHCP", one.data[4:8].hex(), one.data[28:34].hex()  # transaction, hardware address
    if one.data[0] == DISCOVER:
        _ask(one, key, "DHCP", seen)
        return True
    wait = seen.open.get(key)
    if wait is not None:
        wait.server, wait.offered = one.source, str(ip_address(one.data[16:20]))
        sought = seen.searched.get((one.source[0], wait.offered), [])
        wait.checks = len(sought) - bisect_right(sought, wait.times[0])
    _answer(one, key, seen)
    return True


def _ask(one: Datagram, key: tuple[str, ...], protocol: str, seen: _Seen) -> None:
    if protocol == "NTP":
        seen.stamps[key].add(one.data[40:48])
    wait = seen.open.get(key)
    if wait is not None and one.time - wait.times[-1] <= GIVEN_UP_NS:
        wait.times.append(one.time)
        wait.frames.append(one.frame)
        return
    wait = seen.open[key] = Wait(protocol, one.source[0], one.target, [one.time], [one.frame])
    seen.waits.append(wait)


def _answer(one: Datagram, key: tuple[str, ...], seen: _Seen) -> None:
    wait = seen.open.pop(key, None)
    if wait is not None:
        wait.end, wait.answer = one.time, one.frame


def _answered(wait: Wait, seen: _Seen) -> tuple[str, float, Wait | None] | None:
    waited = ((wait.end or 0) - wait.times[0]) / 1e6
    if waited < LATE_MS:
        return None
    return ("dhcp_checked" if wait.checks else "datagram_late"), waited, None


def _never(wait: Wait, seen: _Seen) -> tuple[str, float, Wait | None] | None:
    """It waited until it sent something else: to another server of the protocol, or anything."""
    if len(wait.times) < 2:
        return None
    first, last = wait.times[0], wait.times[-1]
    until = last + 2 * (last - wait.times[-2]) + NEXT_NS
    others = [w for w in seen.waits if (w.client, w.protocol) == (wait.client, wait.protocol) and w is not wait]
    then = next((w for w in others if last < w.times[0] <= until), None)
    sent = seen.other[wait.client]
    place = bisect_right(sent, first)
    began = [sent[place]] if place < len(sent) else []
    began += [then.times[0]] if then is not None else []
    if not began or not last < min(began) <= until or any(first < w.times[0] <= last for w in others):
        return None  # it did something else meanwhile, or nobody is known to have waited for it
    waited = (min(began) - first) / 1e6
    return ("datagram_dead", waited, then) if waited >= LATE_MS else None


def _finding(sentence: str, cases: list[tuple[float, Wait, Wait | None]]) -> Finding:
    cases.sort(key=lambda case: case[0])
    waited, wait, then = cases[-1]
    other = endpoint(*then.server) if then is not None and then.end is not None else None
    values = {
        "protocol": wait.protocol, "n": len(cases), "span_ms": (cases[0][0], waited), "server": endpoint(*wait.server),
        "client": wait.client, "repeats": len(wait.times), "address": wait.offered or "", "checks": wait.checks,
        "then": words.say("datagram_then", other=other) if other else "",
    }  # fmt: skip
    sure = LIMITS["alert_confidence"] if wait.end is not None else LIMITS["hung_probable_confidence"]
    frames = [wait.frames[0], wait.answer or wait.frames[-1]]
    return Finding(
        kind="wait", server=wait.server[0], server_port=wait.server[1], cause=sentence,
        owner="network" if sentence == "datagram_dead" else "server",
        clients=len({one.client for _, one, _ in cases}), client=wait.client, total_ms=sum(case[0] for case in cases),
        median_ms=cases[len(cases) // 2][0], max_ms=waited, harm="late",
        grade="proven" if wait.end is not None else "probable", confidence=sure, worst_ms=waited,
        worst_frames=tuple(dict.fromkeys(frames)),
        filter=f"frame.number in {{{frames[0]}, {frames[1]}}}", sentence=sentence, values=values,
    )  # fmt: skip
