"""Conversations, endpoints, protocol hierarchy and expert information: the numbers of tshark, and known ones."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from commands import USAGE, answered, complains

import latpcap as lp

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CASES = Path(__file__).parent / "cases"
PROBES = SAMPLES / "probes.pcap"
CAPTURES = [PROBES, SAMPLES / "clips" / "split-nagle.pcap", CASES / "dns_slow", CASES / "lost_segments_without_sacks"]
NAMES = {"eth": "Ethernet", "ip": "IPv4", "ipv6": "IPv6", "tcp": "TCP", "udp": "UDP"}
each_capture = pytest.mark.parametrize("place", CAPTURES, ids=lambda place: place.stem)


def path_of(place: Path) -> Path:
    return next(place.glob("capture.*")) if place.is_dir() else place


@cache
def read(place: Path) -> lp.Capture:
    return lp.read(path_of(place))


@cache
def tshark(place: Path) -> str:
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("needs tshark")
    asked = [word for layer in NAMES for kind in ("conv", "endpoints") for word in ("-z", f"{kind},{layer}")]
    words = [program, "-n", "-r", str(path_of(place)), "-q", *asked, "-z", "io,phs", "-z", "expert"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def section(text: str, title: str) -> list[str]:
    return re.split(r"^=+\n", text.partition(f"{title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0].splitlines()


def ethernet(*packets: bytes) -> bytes:
    """A pcap file of these IP packets."""
    frames = [bytes(12) + b"\x08\0" + packet for packet in packets]
    records = [struct.pack("<IIII", 1, at, len(frame), len(frame)) + frame for at, frame in enumerate(frames)]
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(records)


def end(address: str, port: Any) -> str:
    return address if port is None or port != port else f"{address}:{port:.0f}"


CONVERSATION = re.compile(
    r"(\S+)\s+<-> (\S+)\s+(\d+) \d+ ?\w+\s+(\d+) \d+ ?\w+\s+(\d+) \d+ ?\w+\s+(\d+\.\d+)\s+(\d+\.\d+)$"
)


@each_capture
def test_conversations_are_tsharks(place: Path) -> None:
    rows = read(place).conversations().to_dict("records")
    for layer, title in NAMES.items():
        theirs = []
        for line in section(tshark(place), f"{title} Conversations"):
            if found := CONVERSATION.match(line):
                a, b, back, forth, packets, start, took = found.groups()
                theirs.append((sorted([(a, int(forth)), (b, int(back))]), int(packets), float(start), float(took)))
        mine = []
        for r in rows:
            if r["layer"] == layer:
                a, b = end(r["a"], r["a_port"]), end(r["b"], r["b_port"])
                ways = sorted([(a, r["packets_a_to_b"]), (b, r["packets_b_to_a"])])
                mine.append((ways, r["packets"], r["start_s"], r["duration_s"]))
        for one, other in zip(sorted(mine), sorted(theirs), strict=True):
            assert one[:2] == other[:2] and one[2:] == pytest.approx(other[2:], abs=1e-4)


@each_capture
def test_endpoints_are_tsharks(place: Path) -> None:
    for layer, title in NAMES.items():
        if layer == "eth":
            continue
        theirs = Counter(
            tuple(line.split())
            for line in section(tshark(place), f"{title} Endpoints")
            if re.match(r"[\da-f:.]+ ", line)
        )
        counts = ("packets", "bytes", "packets_sent", "bytes_sent", "packets_received", "bytes_received")
        columns = ["address", *(["port"] if layer in ("tcp", "udp") else []), *counts]
        table = read(place).endpoints(layer)[columns]
        assert Counter(tuple(f"{v}" for v in row) for row in table.itertuples(index=False)) == theirs


@each_capture
def test_hierarchy_is_tsharks_up_to_tcp_and_udp(place: Path) -> None:
    mine = {r["path"]: (r["frames"], r["bytes"]) for r in read(place).hierarchy().to_dict("records")}
    above: list[str] = []
    lines = section(tshark(place).partition("Protocol Hierarchy")[2], "Filter: ")
    checked = 0
    for blanks, name, frames, size in re.findall(r"^( *)(\S+) +frames:(\d+) bytes:(\d+)$", "\n".join(lines), re.M):
        above = [*above[: len(blanks) // 2], name]
        if set(above) <= {"eth", "arp", "ip", "ipv6", "icmp", "icmpv6", "tcp", "udp", "dns"} or above[-1] == "dns":
            assert mine[":".join(above)] == (int(frames), int(size))
            checked += 1
    assert checked >= 3


SUMMARIES = {
    "reset (RST)": "connection reset (RST)",
    "establish request (SYN)": "connection requested (SYN)",
    "establish acknowledge (SYN+ACK)": "connection accepted (SYN+ACK)",
    "finish (FIN)": "end of one direction (FIN)",
    "initiates the connection closing": "closes the connection first",
    "undergoes the connection closing": "closes the connection second",
    "(suspected) retransmission": "retransmission",
    "(suspected) fast retransmission": "fast retransmission",
    "(suspected) spurious retransmission": "retransmission of acknowledged bytes",
    "out-of-order": "segment out of order",
    "Duplicate ACK": "duplicate ACK",
    "number field is nonzero while": "acknowledgement number without the flag ACK",
    "Previous segment": "a segment before this one is not in the capture",
    "segment that wasn't captured": "acknowledges a segment that is not in the capture",
    "window update": "window update",
    "completely full": "fills the receiver's window",
    "Zero Window segment": "the receiver's window is zero",
}


@each_capture
def test_expert_information_of_tcp_is_tsharks(place: Path) -> None:
    severity, theirs = "", Counter()
    for line in tshark(place).splitlines():
        if found := re.match(r"(Error|Warn|Note|Chat)s \(", line):
            severity = {"Warn": "warning"}.get(found[1], found[1].lower())
        elif severity and (found := re.match(r" +(\d+) +(\w+) +TCP +(.*)", line)):
            (name,) = [mine for part, mine in SUMMARIES.items() if part in found[3]]
            theirs[severity, found[2], name] += int(found[1])
    table = read(place).expert()
    mine = {(r.severity, r.group, r.summary): r.count for r in table[table.protocol == "TCP"].itertuples(name="Row")}
    assert mine == theirs


def test_without_tshark() -> None:
    """What stands in the sample's README: 10 ICMP packets, 22 SYNs of hping3, all reset."""
    cap = read(PROBES)
    tree = cap.hierarchy().set_index("path").frames
    assert tree["eth:ip:icmp"] == 10 and tree["eth:arp"] == 4 and tree["eth"] == cap.frames
    ((row),) = cap.conversations("ip").to_dict("records")
    assert (row["packets"], row["bytes"], row["packets_a_to_b"], row["bytes_b_to_a"]) == (73, 5034, 46, 2010)
    assert row["bits_per_s_a_to_b"] == pytest.approx(8 * 3024 / row["duration_s"])
    expert = cap.expert().set_index("summary")
    assert expert["count"]["connection reset (RST)"] == 22 == len(expert.frames["connection reset (RST)"])


def test_a_part_counts_its_own_frames() -> None:
    part = read(PROBES).filter("tcp.port == 81 or icmp")
    assert part.conversations("ip").packets.tolist() == [16]
    assert set(part.hierarchy().protocol) == {"eth", "ip", "icmp", "tcp"}
    assert part.expert()["count"].max() < read(PROBES).expert()["count"].max()


def test_fragments_count_where_the_datagram_is_whole() -> None:
    def fragment(offset: int, data: bytes, more: bool) -> bytes:
        place = offset // 8 | (0x2000 if more else 0)
        head = bytes([0x45, 0, 0, 20 + len(data), 0, 7, place >> 8, place & 255, 64, 17, 0, 0])
        return head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + data

    datagram = bytes.fromhex("1388 1770 0018 0000") + bytes(16)
    cap = lp.read(ethernet(fragment(8, datagram[8:], False), fragment(0, datagram[:8], True)))
    (row,) = cap.conversations("udp").to_dict("records")
    assert (row["a_port"], row["b_port"], row["packets"], row["bytes"]) == (5000, 6000, 1, 42)
    assert cap.hierarchy().set_index("path").frames["eth:ip"] == 2


def test_layers_without_fields_are_named() -> None:
    def packet(protocol: int, data: bytes) -> bytes:
        head = bytes([0x45, 0, 0, 20 + len(data), 0, 7, 0, 0, 64, protocol, 0, 0])
        return head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + data

    def udp(port: int, data: bytes) -> bytes:
        return packet(17, struct.pack(">HHHH", 5000, port, 8 + len(data), 0) + data)

    inner = packet(132, bytes(12))
    six = b"\x60" + bytes(5) + b"\x3b\x40" + bytes(32)
    frames = ethernet(
        packet(2, bytes(8)),
        udp(123, bytes(48)),
        udp(3544, six),
        udp(3544, bytes.fromhex("0001 0000") + bytes(9) + bytes(8) + six),
        udp(3544, b"no IPv6" + bytes(8)),
        udp(4789, bytes(8) + bytes(12) + b"\x08\0" + inner),
    )
    tree = lp.read(frames).hierarchy().set_index("path").frames
    below = {path.removeprefix("eth:ip:"): count for path, count in tree.items() if path.count(":") > 1}
    assert below == {
        "igmp": 1, "udp": 5, "udp:ntp": 1, "udp:teredo": 2, "udp:teredo:ipv6": 2, "udp:vxlan": 1,
        "udp:vxlan:eth": 1, "udp:vxlan:eth:ip": 1, "udp:vxlan:eth:ip:sctp": 1,
    }  # fmt: skip


def test_payload_of_no_known_protocol_is_data() -> None:
    tree = read(Path(__file__).with_name("cases") / "decoy_commands_in_two_parts").hierarchy()
    assert "data" in set(tree.protocol) and "turns" not in set(tree.protocol)


def test_commands(tmp_path: Path) -> None:
    rows = json.loads(answered("conversations", PROBES, "--layer", "ip", "--json"))
    assert [row["packets"] for row in rows] == [73]
    assert answered("endpoints", PROBES, "--layer", "ip", "--csv").count("\n") == 3
    assert "eth:ip:icmp" in answered("hierarchy", PROBES) and "connection reset" in answered("expert", PROBES)
    answered("expert", PROBES, "-o", tmp_path / "expert.parquet")
    assert "expected eth, ip" in complains(USAGE, "conversations", PROBES, "--layer", "sctp")
    assert "near: " in complains(USAGE, "expert", PROBES, "--columns", "nothing")
    with pytest.raises(ValueError, match="eth, ip, ipv6, tcp, udp"):
        read(PROBES).endpoints("sctp")  # type: ignore[arg-type]


def test_requests_are_chats_and_damage_is_an_error() -> None:
    rows = read(SAMPLES / "clips" / "split-nagle.pcap").expert()
    assert {"request POST"} <= set(rows[rows.protocol == "HTTP"].summary) and rows.severity.iloc[-1] == "chat"
    cut = lp.read((SAMPLES / "clips" / "split-nagle.pcap").read_bytes()[:-7])
    assert cut.expert().iloc[0][["severity", "group"]].tolist() == ["error", "Malformed"]


def test_community_id_of_the_specification() -> None:
    """128.232.110.120:34855 to 66.35.250.204:80 and back, github.com/corelight/community-id-spec."""
    tcp = bytes.fromhex("8827 0050 00000001 00000000 5002 2000 0000 0000")
    ip = bytes.fromhex("4500 0028 0001 0000 4006 0000 80e86e78 4223facc")
    cap = lp.read(ethernet(ip + tcp))
    assert cap.streams.community_id.tolist() == ["1:LQU9qZlK+B5F3KDmev6m5PMibrg="]


def test_filters_of_remarks_find_their_frames() -> None:
    """Those that latpcap's own filters know; the others are for Wireshark."""
    cap, tried = read(PROBES), 0
    for row in cap.expert().itertuples():
        if row.protocol == "TCP" and not row.filter.startswith("tcp.connection.fin_"):
            assert cap.filter(row.filter).arrow("events")["frame"].to_pylist() == list(row.frames)
            tried += 1
    assert tried >= 4
    assert cap.filter("tcp.connection.syn").arrow("events").num_rows == 22
    assert cap.filter("tcp.connection.rst or tcp.connection.synack").arrow("events").num_rows == 41
