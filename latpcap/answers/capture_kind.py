"""The kind of a capture without requests: a scan, a traceroute, refused or idle connections, one direction, no TCP.

Reads streams, probes, findings and, without TCP, the first frames; returns a word for the kind and a sentence. Names of
protocols over UDP come from the port only. Frames inside a tunnel are not examined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from itertools import chain
from typing import TYPE_CHECKING, Any

from latpcap import arrays, words
from latpcap import presentation as show
from latpcap.errors import CaptureError
from latpcap.findings.quality import one_way
from latpcap.findings.schema import Finding
from latpcap.lazy import np, pa
from latpcap.reading.reread import Record, packet
from latpcap.tables import Completeness
from latpcap.words import say

if TYPE_CHECKING:
    from latpcap.arrays import Array
_BY_RARITY = ("traceroute", "refused", "unreachable", "unanswered", "half_open")
WAIT_KINDS = ("setup", "wait", "silence")
"""Kinds of findings about waits, which show that connections without data were not idle."""


def kind_of(tables: Mapping[str, pa.Table], findings: Sequence[Finding], *, alone: bool) -> tuple[str, str] | None:
    """Return kind and sentence of a capture that is of a special kind, else None; `alone`: it has no requests."""
    scan = next(_scan(tables["streams"]), None)
    if scan is not None or not alone:
        return scan
    return next(chain(_icmp(tables), _happened(findings), _quiet(tables, findings)), None)


def _icmp(tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, str]]:
    """Find pings, and a traceroute by pings, where there is no TCP."""
    if tables["streams"].num_rows:
        return
    probes = tables["probes"]
    if not probes.num_rows:
        return
    answer_codes, answers = arrays.codes(probes, "answer")
    pings = arrays.equals(probes, "kind", "icmp_echo")
    if not pings.any():
        return
    counts = {word: int((pings & (answer_codes == code)).sum()) for code, word in enumerate(answers)}
    total = int(pings.sum())
    if counts.get("time_exceeded", 0) >= show.MIN_EXCEEDED_SHARE * sum(counts.values()) > 0:
        [row] = probes.select(["dst"]).slice(int(pings.argmax()), 1).to_pylist()
        yield "traceroute", say("trace_by_icmp", target=row["dst"], n=counts["time_exceeded"], of=total)
        return
    yield "ping", _pings(arrays.numbers(probes, "rtt_ms").astype(float)[pings], answer_codes[pings], answers)


def _pings(rtt: Array, answers: Array, texts: list[str]) -> str:
    """Describe pings: how many were answered, their round trips, and the errors that came instead."""
    errors = {word: int((answers == code).sum()) for code, word in enumerate(texts) if word != "echo_reply"}
    trips = np.sort(
        rtt[~np.isnan(rtt) & np.isin(answers, [code for code, word in enumerate(texts) if word not in errors])]
    )
    lost = len(rtt) - len(trips) - sum(errors.values())
    is_one = len(rtt) == 1
    by_icmp, without_answer = ("ping_icmp", "ping_lost") if is_one else ("pings_icmp", "pings_lost")
    parts = [say(by_icmp, n=n, word=word.replace("_", " ")) for word, n in errors.items() if n]
    parts += [say(without_answer, n=lost)] if lost else []
    if lost == len(rtt) > 1:
        parts = [say("pings_none")]
    outcome = say("and_more").join(parts) or say("ping_answered" if is_one else "pings_all")
    values = {"n": len(rtt), "came": outcome}
    if not len(trips):
        return say("pings", **values)
    low, high, mean = float(trips[0]), float(trips[-1]), float(trips.mean())
    if len(trips) == 1:
        return say("pings_one_trip", trip_ms=low, **values)
    return say("pings_trips", low_ms=low, high_ms=high, mean_ms=mean, **values)


def _scan(streams: pa.Table) -> Iterator[tuple[str, str]]:
    """Find one client that tried many ports or hosts and got almost no data.

    Its attempts are most of the capture's connections, or many to the same few ports or one host. Peers of one network
    also connect to many hosts, but each on another port.
    """
    if streams.num_rows < show.MIN_SCANNED:
        return
    completeness, server_packets = arrays.numbers(streams, "completeness"), arrays.numbers(streams, "server_packets")
    (client, clients), (server, servers) = arrays.codes(streams, "client"), arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port").astype(np.int64)
    silent = (completeness & Completeness.SYN != 0) & (completeness & Completeness.DATA == 0)
    refused = silent & arrays.equals(streams, "closed_by", "server_rst") & (completeness & Completeness.SYN_ACK == 0)
    failed = refused | (silent & (server_packets == 0))
    if not silent.any():
        return
    is_main = silent.sum() >= show.MIN_SCAN_SHARE * streams.num_rows
    attempts = silent if is_main else failed
    if not attempts.any():
        return
    scanner = int(np.bincount(client[attempts]).argmax())
    in_scan = attempts & (client == scanner)
    ends = np.unique(server[in_scan].astype(np.int64) << 16 | port[in_scan])
    ports, hosts = np.unique(ends & 0xFFFF), np.unique(ends >> 16)
    is_narrow = len(ports) <= show.MAX_SCAN_PORTS or len(hosts) == 1
    if len(ends) < (show.MIN_SCANNED if is_main else show.MIN_SCANNED_BESIDE) or not (is_main or is_narrow):
        return
    in_scan = (client == scanner) & np.isin(port, ports) & np.isin(server, hosts)
    refused_count, unanswered_count = int((in_scan & refused).sum()), int((in_scan & failed & ~refused).sum())
    host = f"{servers[int(hosts[0])]}" if len(hosts) == 1 else say("hosts", n=len(hosts))
    yield "scan", say(
        "scan", client=clients[scanner], n=len(ports), host=host, shut=refused_count, nothing=unanswered_count,
        answered=int(in_scan.sum()) - refused_count - unanswered_count,
    )  # fmt: skip


def _happened(findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Return the failed connections, the rarest kind first."""
    for cause in _BY_RARITY:
        rows = [finding for finding in findings if finding.cause == cause and finding.text]
        if rows:
            elsewhere_count = sum(finding.streams or 0 for finding in rows[1:])
            text = rows[0].text or ""
            yield cause, say("elsewhere_too", text=text, n=elsewhere_count) if elsewhere_count else text


def _quiet(tables: Mapping[str, pa.Table], findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Find captures of one direction, and of connections without data."""
    streams = tables["streams"]
    if not streams.num_rows:
        return
    one_sided = one_way(streams)
    if one_sided.any() and one_sided.sum() >= streams.num_rows / 2:
        noun = "its_one_connection" if streams.num_rows == 1 else "of_connections"
        share = say(noun, n=int(one_sided.sum()), of=streams.num_rows)
        yield "one_direction", say("one_direction_capture", which=share)
    data = arrays.numbers(streams, "client_payload_bytes") + arrays.numbers(streams, "server_payload_bytes")
    if not data.any() and not any(finding.kind in WAIT_KINDS for finding in findings):
        seconds = float(arrays.numbers(streams, "end").max() - arrays.numbers(streams, "start").min()) / 1e9
        if seconds >= show.MIN_IDLE_S:
            yield "idle", say("idle", n=streams.num_rows, seconds=seconds)


IP_PROTOCOLS = {
    1: "ICMP", 2: "IGMP", 4: "IPIP", 17: "UDP", 33: "DCCP", 41: "6in4", 46: "RSVP", 47: "GRE", 50: "ESP",
    51: "AH", 58: "ICMPv6", 88: "EIGRP", 89: "OSPF", 103: "PIM", 112: "VRRP", 132: "SCTP",
}  # fmt: skip
"""Protocols over IP, by IANA number."""
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
"""Usual protocols of UDP ports (IANA register); used only in sentences."""
UDP = 17
PPP = 9
"""Link type of PPP."""
PPP_FRAMING = b"\xff\x03"
"""Address and control bytes that HDLC-like framing puts before a packet (RFC 1662)."""
TIME_EXCEEDED = {(4, 11), (6, 3)}
"""ICMP's Time Exceeded as (IP version, type)."""
UNREACHABLE = {(4, 3), (6, 1)}
"""ICMP's Destination Unreachable as (IP version, type)."""
READ = (0, 1, 9, 12, 14, 101, 108, 113, 228, 229, 276)
"""Link types whose frames are counted by what they carry."""


def without_tcp(records: Iterable[Record]) -> tuple[str, str] | None:
    """Return kind and sentence of a capture without TCP; None if its frames are unknown or unreadable."""
    if (counts := _counted_frames(records)) is None:
        return None
    total, kinds, datagrams, errors = counts
    exceeded = Counter({target: n for (word, target), n in errors.items() if word == "time_exceeded"})
    if exceeded:
        [(target, answers)] = exceeded.most_common(1)
        unreachable = errors["unreachable", target]
        return "traceroute", words.say(
            "trace_by_udp", target=ip_address(target), n=answers,
            of=words.say("of_datagrams", n=datagrams[target]) if datagrams[target] >= answers else "",
            came=words.say("came_unreachable", n=unreachable) if unreachable else "",
        )  # fmt: skip
    if not kinds:
        return None
    count = sum(n for (word, _), n in errors.items() if word == "unreachable")
    return "no_tcp", words.say("no_tcp_unreachable" if count else "no_tcp", kinds=_kinds(kinds, total), n=count)


def _counted_frames(
    records: Iterable[Record],
) -> tuple[int, Counter[str], Counter[bytes], Counter[tuple[str, bytes]]] | None:
    """Count the first frames: their number, their kinds, UDP datagrams by target, and ICMP errors by (word, target).

    None if the capture's file cannot be read again.
    """
    kinds, datagrams, errors = Counter[str](), Counter[bytes](), Counter[tuple[str, bytes]]()
    total = 0
    try:
        for record in records:
            total += 1
            _count_frame(record, kinds, datagrams, errors)
            if total == show.MAX_OTHER_FRAMES:
                break
    except CaptureError:
        return None
    return total, kinds, datagrams, errors


def mostly(records: Iterable[Record], segments: int) -> str | None:
    """Return words for the kind of most frames; None if TCP segments are as many, or the kinds are unknown."""
    if (counts := _counted_frames(records)) is None:
        return None
    total, kinds, _, _ = counts
    if not kinds or kinds.total() <= max(total / 2, segments):
        return None
    return _kinds(kinds, total)


def _kinds(counts: Counter[str], total: int) -> str:
    """Return words for how many frames are of which kind."""
    (kind, count), *other_kinds = counts.most_common(show.MAX_WORDS)
    sentence = "of_frames" if count < total else "all_frames" if total > 1 else "one_frame"
    if total == show.MAX_OTHER_FRAMES:
        sentence = "of_first_frames" if count < total else "all_first_frames"
    first = words.say(sentence, n=count, of=total, kind=kind)
    return words.say("and_more").join([first, *(f"{n:,} {word}" for word, n in other_kinds)])


def _count_frame(
    record: Record, kinds: Counter[str], datagrams: Counter[bytes], errors: Counter[tuple[str, bytes]]
) -> None:
    """Count one frame by its protocol. Frames that dpkt cannot decode are not counted."""
    import dpkt

    if record.link == PPP and not record.data.startswith(PPP_FRAMING):
        record = record._replace(data=PPP_FRAMING + record.data)  # a bare PPP packet (RFC 1661)
    try:
        layer: Any = packet(record, "") if record.link in READ else None
    except CaptureError:
        return
    ethertype = None
    while layer is not None and not isinstance(layer, (bytes, dpkt.ip.IP, dpkt.ip6.IP6)):
        ethertype = getattr(layer, "type", None) if isinstance(layer, dpkt.ethernet.Ethernet) else ethertype
        layer = getattr(layer, "data", None)
    if layer is None or isinstance(layer, bytes):
        if ethertype in ETHERTYPES:
            kinds[ETHERTYPES[ethertype]] += 1
        return
    word = IP_PROTOCOLS.get(_carried(layer))
    inner = layer.data
    if word is None:
        return
    if isinstance(inner, dpkt.udp.UDP):
        datagrams[bytes(layer.dst)] += 1
        ports = [port for port in (inner.sport, inner.dport) if port in UDP_PORTS]
        word = words.say("by_its_port", protocol=UDP_PORTS[min(ports)]) if ports else word
    kinds[word] += 1
    quoted = _quoted(inner)
    if quoted is not None:
        errors[quoted] += 1


def _carried(layer: Any) -> int:
    """Return the protocol number of an IP packet's payload; in IPv6 it follows the extension headers."""
    number = getattr(layer, "p", None)
    return int(layer.nxt if number is None else number)


def _quoted(inner: Any) -> tuple[str, bytes] | None:
    """Return an ICMP error's word and the target of the UDP datagram that it quotes; None for other messages."""
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
