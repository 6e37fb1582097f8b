"""What kind of capture is this, where no request shows it? Streams, probes, findings and, without TCP, its first frames
in; a sentence out: a scan, a traceroute, a refusal, a dead window, one direction only, idle connections, no TCP.

What a port is for is only a port's word, and no frame inside a tunnel is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from latpcap import arrays, words
from latpcap import presentation as show
from latpcap.errors import CaptureError
from latpcap.findings.quality import one_way
from latpcap.findings.schema import Finding
from latpcap.reading.reread import Record, packet
from latpcap.tables import Completeness
from latpcap.words import say

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

RISING = 0.5
"""Echo requests of a traceroute: from this share on, routers answer them instead of their target."""


def kind_of(tables: Mapping[str, pa.Table], events: Sequence[Finding], *, alone: bool) -> tuple[str, str] | None:
    """Kind and sentence of this capture, where it is of a kind of its own; `alone`: no request was judged in it."""
    found = next(_scan(tables["streams"]), None)
    if found is not None or not alone:
        return found
    for search in (_icmp(tables), _happened(events), _quiet(tables, events)):
        found = next(search, None)
        if found is not None:
            return found
    return None


def _icmp(tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, str]]:
    """Pings, and a traceroute by pings, where there is no TCP."""
    if tables["streams"].num_rows:
        return
    probes = tables["probes"]
    if not probes.num_rows:
        return
    answers, texts = arrays.codes(probes, "answer")
    pings = arrays.equals(probes, "kind", "icmp_echo")
    if not pings.any():
        return
    hit = {word: int((pings & (answers == code)).sum()) for code, word in enumerate(texts)}
    total = int(pings.sum())
    if hit.get("time_exceeded", 0) >= RISING * sum(hit.values()) > 0:
        [row] = probes.select(["dst"]).slice(int(pings.argmax()), 1).to_pylist()
        yield "traceroute", say("trace_by_icmp", target=row["dst"], n=hit["time_exceeded"], of=total)
        return
    yield "ping", _pings(arrays.numbers(probes, "rtt_ms").astype(float)[pings], answers[pings], texts)


def _pings(rtt: Array, answers: Array, texts: list[str]) -> str:
    """How many pings came back, how soon, and what came in place of an answer."""
    import numpy as np

    other = {word: int((answers == code).sum()) for code, word in enumerate(texts) if word != "echo_reply"}
    came = np.sort(rtt[~np.isnan(rtt) & np.isin(answers, [c for c, word in enumerate(texts) if word not in other])])
    lost = len(rtt) - len(came) - sum(other.values())
    one = "ping" if len(rtt) == 1 else "pings"
    parts = [say(f"{one}_icmp", n=n, word=word.replace("_", " ")) for word, n in other.items() if n]
    parts += [say(f"{one}_lost", n=lost)] if lost else []
    if lost == len(rtt) > 1:
        parts = [say("pings_none")]
    values = {
        "n": len(rtt),
        "came": say("and_more").join(parts) or say("ping_answered" if len(rtt) == 1 else "pings_all"),
    }
    if not len(came):
        return say("pings", **values)
    low, high, mean = float(came[0]), float(came[-1]), float(came.mean())
    if len(came) == 1:
        return say("pings_one_trip", trip_ms=low, **values)
    return say("pings_trips", low_ms=low, high_ms=high, mean_ms=mean, **values)


def _scan(streams: pa.Table) -> Iterator[tuple[str, str]]:
    """One client that tries many ports or hosts, and gets next to nothing: most connections of the capture, or many to
    the same few ports. (Peers dial each other too, but on a port of each.)
    """
    import numpy as np

    if streams.num_rows < show.MIN_SCANNED:
        return
    code, answers = arrays.numbers(streams, "completeness"), arrays.numbers(streams, "server_packets")
    (client, clients), (server, servers) = arrays.codes(streams, "client"), arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port").astype(np.int64)
    silent = (code & Completeness.SYN != 0) & (code & Completeness.DATA == 0)
    refused = silent & arrays.equals(streams, "closed_by", "server_rst") & (code & Completeness.SYN_ACK == 0)
    failed = refused | (silent & (answers == 0))
    if not silent.any():
        return
    mostly = silent.sum() >= show.MIN_SCAN_SHARE * streams.num_rows
    vain = silent if mostly else failed
    if not vain.any():
        return
    who = int(np.bincount(client[vain]).argmax())
    mine = vain & (client == who)
    ends = np.unique(server[mine].astype(np.int64) << 16 | port[mine])
    ports, hosts = np.unique(ends & 0xFFFF), np.unique(ends >> 16)
    few = len(ports) <= show.MAX_SCAN_PORTS or len(hosts) == 1
    if len(ends) < (show.MIN_SCANNED if mostly else show.MIN_SCANNED_BESIDE) or not (mostly or few):
        return
    mine = (client == who) & np.isin(port, ports) & np.isin(server, hosts)
    shut, nothing = int((mine & refused).sum()), int((mine & failed & ~refused).sum())
    host = f"{servers[int(hosts[0])]}" if len(hosts) == 1 else say("hosts", n=len(hosts))
    yield "scan", say(
        "scan", client=clients[who], n=len(ports), host=host, shut=shut, nothing=nothing,
        answered=int(mine.sum()) - shut - nothing,
    )  # fmt: skip


_FIRST = ("traceroute", "refused", "unreachable", "unanswered", "half_open")


def _happened(events: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """What happened to the connections, the rarest kind of thing first."""
    for cause in _FIRST:
        rows = [e for e in events if e.cause == cause and e.text]
        if rows:
            more = sum(e.streams or 0 for e in rows[1:])
            text = rows[0].text or ""
            yield cause, say("elsewhere_too", text=text, n=more) if more else text


WAITED = ("setup", "wait", "silence")
"""Kinds of findings that say what somebody waited for: then connections without data were no idle ones."""


def _quiet(tables: Mapping[str, pa.Table], happened: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Connections on which no request was answered: of what kind?"""
    streams = tables["streams"]
    if not streams.num_rows:
        return
    alone = one_way(streams)
    if alone.any() and alone.sum() >= streams.num_rows / 2:
        which = "its_one_connection" if streams.num_rows == 1 else "of_connections"
        some = say(which, n=int(alone.sum()), of=streams.num_rows)
        yield "one_direction", say("one_direction_capture", which=some)
    data = arrays.numbers(streams, "client_payload_bytes") + arrays.numbers(streams, "server_payload_bytes")
    if not data.any() and not any(e.kind in WAITED for e in happened):
        seconds = float(arrays.numbers(streams, "end").max() - arrays.numbers(streams, "start").min()) / 1e9
        if seconds >= show.MIN_IDLE_S:
            yield "idle", say("idle", n=streams.num_rows, seconds=seconds)


IP_PROTOCOLS = {
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


def without_tcp(records: Iterable[Record]) -> tuple[str, str] | None:
    """Kind and sentence; None where nothing of it is known, or the bytes cannot be read again."""
    if (counts := _counted_frames(records)) is None:
        return None
    total, seen, receivers, errors = counts
    routed = Counter({where: n for (word, where), n in errors.items() if word == "time_exceeded"})
    if routed:
        [(where, answers)] = routed.most_common(1)
        came = errors["unreachable", where]
        return "traceroute", words.say(
            "trace_by_udp", target=ip_address(where), n=answers,
            of=words.say("of_datagrams", n=receivers[where]) if receivers[where] >= answers else "",
            came=words.say("came_unreachable", n=came) if came else "",
        )  # fmt: skip
    if not seen:
        return None
    gone = sum(n for (word, _), n in errors.items() if word == "unreachable")
    return "no_tcp", words.say("no_tcp_unreachable" if gone else "no_tcp", kinds=_kinds(seen, total), n=gone)


def _counted_frames(
    records: Iterable[Record],
) -> tuple[int, Counter[str], Counter[bytes], Counter[tuple[str, bytes]]] | None:
    """How many of the first records were looked at, their kinds, UDP's targets and ICMP's errors; None: unreadable."""
    seen, receivers, errors = Counter[str](), Counter[bytes](), Counter[tuple[str, bytes]]()
    total = 0
    try:
        for record in records:
            total += 1
            _look(record, seen, receivers, errors)
            if total == show.MAX_OTHER_FRAMES:
                break
    except CaptureError:
        return None
    return total, seen, receivers, errors


def mostly(records: Iterable[Record], segments: int) -> str | None:
    """What is most of a capture that has only so many segments of TCP, in a few words; None where that is not known."""
    if (counts := _counted_frames(records)) is None:
        return None
    total, seen, _, _ = counts
    if not seen or seen.total() <= max(total / 2, segments):
        return None
    return _kinds(seen, total)


def _kinds(seen: Counter[str], total: int) -> str:
    """How many frames are of which kind?"""
    (kind, number), *more = seen.most_common(show.MAX_WORDS)
    some = "first_" if total == show.MAX_OTHER_FRAMES else ""
    which = f"of_{some}frames" if number < total else f"all_{some}frames" if total > 1 else "one_frame"
    first = words.say(which, n=number, of=total, kind=kind)
    return words.say("and_more").join([first, *(f"{n:,} {word}" for word, n in more)])


def _look(record: Record, seen: Counter[str], receivers: Counter[bytes], errors: Counter[tuple[str, bytes]]) -> None:
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
    word = IP_PROTOCOLS.get(_carried(layer))
    inner = layer.data
    if word is None:
        return
    if isinstance(inner, dpkt.udp.UDP):
        receivers[bytes(layer.dst)] += 1
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
