"""Are frames of rare link types, tunnels and fragments read? Held against dpkt's packets in a wrapping of our own."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import dpkt
import pytest
from makepcap import Ends, Segment, Talk, answer, get, pcap_of
from tsharkfacts import needs_tshark
from wrappings import ALONE, ETHERNET, MACS, WIFI, WRAPPINGS, amsdu, checked, concatenated, docsis, mpacket, pktap

import latpcap as lp
from latpcap.reading import links


def script() -> list[Segment]:
    talk = Talk()
    talk.open()
    talk.client(10, get())
    head, body = answer(1200)
    talk.server(12, head + body[:600])
    talk.server(12.5, body[600:])
    talk.client(13)
    return talk.tape


TAPE = script()


def held(found: links.Found) -> bytes:
    """The packet, or the layer around it."""
    one = found[0] if isinstance(found, list) else found
    inner = one[2] if isinstance(one, tuple) else one
    assert isinstance(inner, bytes)
    return inner


def wrapped(wrap: Any, link: int) -> bytes:
    """The script with each frame's IP packet in another wrapping."""
    data = pcap_of((s.time_ns, wrap(s.frame()[14:])) for s in TAPE)
    return data[:20] + struct.pack("<I", link) + data[24:]


ALL = WRAPPINGS | ALONE
PLAIN = lp.read(pcap_of((s.time_ns, s.frame()) for s in TAPE))


@pytest.mark.parametrize("name", ALL)
def test_every_wrapping_gives_the_same_rows(name: str) -> None:
    link, wrap = ALL[name]
    cap = lp.read(wrapped(wrap, link))
    assert cap.arrow("events").equals(PLAIN.arrow("events"))
    assert cap.arrow("exchanges").equals(PLAIN.arrow("exchanges"))
    assert cap.issues.empty


@pytest.mark.parametrize("name", ALL)
def test_every_wrapping_cut_at_every_length(name: str) -> None:
    """No exception but what is said, and never more than there was."""
    link, wrap = ALL[name]
    frame = wrap(TAPE[3].frame()[14:])
    layer, number = ("link", link) if link != 228 else ("ip", 108)
    frame = frame if layer == "link" else frame[20:]
    if (layer, number) not in links.READERS:  # one of the core's
        return
    whole = held(links.read(layer, number, frame))
    for size in range(len(frame)):
        found = links.read(layer, number, frame[:size])
        assert found in (None, "cut", "encrypted", "fragment", b"", []) or whole.startswith(held(found)), size


def test_what_is_not_understood_is_counted_by_type() -> None:
    beacon, protected = b"\x80\0" + bytes(40), b"\x08\x41" + bytes(30)
    frames = [beacon, protected, b"\x08\x01", protected]
    data = pcap_of((n, frame) for n, frame in enumerate(frames))
    cap = lp.read([data[:20] + struct.pack("<I", link) + data[24:] for link in (105, 147, 187)])
    rows = [(r.kind, r.layer, r.reason, r["count"], r.frame, r.last_frame) for _, r in cap.issues.iterrows()]
    assert sorted(row for row in rows if row[1] == "link") == [
        ("skipped", "link", "frame is cut or damaged (105)", 1, 3, 3),
        ("skipped", "link", "link type is not read (147)", 4, 5, 8),
        ("skipped", "link", "link type is not read (187)", 4, 9, 12),
        ("skipped", "link", "payload is encrypted (105)", 2, 2, 4),
    ]
    assert cap.frames == 12


def test_a_link_type_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    data = wrapped(lambda p: b"\1\2\3\4" + p, 147)
    assert lp.read(data).frames and lp.read(data).events.empty
    monkeypatch.setitem(links.READERS, ("link", 147), lambda frame: frame[4:])
    assert lp.read(data).arrow("events").equals(PLAIN.arrow("events"))

    def broken(frame: bytes) -> bytes:
        raise KeyError("my own mistake")

    monkeypatch.setitem(links.READERS, ("link", 147), broken)
    with pytest.raises(KeyError, match="my own mistake"):
        lp.read(data)


def test_fragments_are_put_together() -> None:
    packets = []
    for s in TAPE:
        ip = dpkt.ip.IP(s.frame()[14:])
        payload = bytes(ip.data)
        edges = [*range(0, len(payload), 64), len(payload)]
        for a, b in pairwise(edges):
            part = dpkt.ip.IP(src=ip.src, dst=ip.dst, p=6, id=ip.id, ttl=64, data=payload[a:b])
            part.len = 20 + b - a
            part._flags_offset = a // 8 | (0x2000 if b < len(payload) else 0)
            packets.append((s.time_ns, MACS + b"\x08\0" + bytes(part)))
    cap = lp.read(pcap_of(packets))
    assert len(cap.events) == len(PLAIN.events) and cap.frames > len(cap.events)
    for column in ("seq", "ack", "len", "flags", "ack_rtt_ms", "stream"):
        assert cap.arrow("events")[column].equals(PLAIN.arrow("events")[column]), column
    assert cap.exchanges.response_bytes.tolist() == PLAIN.exchanges.response_bytes.tolist()
    assert cap.issues.empty


def test_frames_that_were_cut_without_a_word() -> None:
    """A tool that cuts frames and writes the shorter length as the original one: the IP headers know better."""
    talk = Talk()
    talk.open()
    for n in range(4):
        talk.client(10 * n + 10, get())
        head, body = answer(1200)
        talk.server(10 * n + 12, head + body)
    frames = [(s.time_ns, s.frame()) for s in talk.tape]
    whole = lp.read(pcap_of(frames))
    cut = lp.read(pcap_of((time, frame[:70]) for time, frame in frames))
    # the first one may be damage as well, and counts by its frame, as in Wireshark
    assert cut.arrow("events")["len"].to_pylist()[4:] == whole.arrow("events")["len"].to_pylist()[4:]
    assert cut.events.len[3] == 16
    rows = {(r["reason"], r["count"]) for r in cut.arrow("issues").to_pylist() if r["layer"] == "ipv4"}
    assert rows == {
        ("total length is beyond the frame, which counts instead", 1),
        ("frames are cut and do not say so: the total length counts", 7),
    }
    # of different lengths, each is damage of its own
    odd = lp.read(pcap_of((time, frame[: 70 + n]) for n, (time, frame) in enumerate(frames)))
    assert odd.events.len.max() < 100


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def of_links(frames: list[tuple[int, int, bytes]]) -> bytes:
    """A pcapng file of frames with their link types and times in ns."""
    links_ = list(dict.fromkeys(link for link, _, _ in frames))
    out = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    out += [block(1, struct.pack("<HHIHHB3xHH", link, 0, 0, 9, 1, 9, 0, 0)) for link in links_]
    for link, ns, frame in frames:
        head = struct.pack("<IIIII", links_.index(link), ns >> 32, ns & 0xFFFFFFFF, len(frame), len(frame))
        out.append(block(6, head + frame))
    return b"".join(out)


def segments_of_tshark(path: Path, version: str = "ip") -> list[tuple[int, str, str, int, int, int, int, int]]:
    """Frame, addresses, ports, number, length and stream of each segment; a frame may have several."""
    names = ["frame.number", *(f"{version}.{n}" for n in ("src", "dst"))]
    names += [f"tcp.{n}" for n in ("srcport", "dstport", "seq", "len", "stream")]
    command = ["tshark", "-n", "-r", str(path), "-Y", "tcp", "-T", "fields", *(x for n in names for x in ("-e", n))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = []
    for line in done.stdout.splitlines():
        frame, *fields = line.split("\t")
        ports = [field.split(",") for field in fields]
        count = len(ports[2])
        for n in range(count):
            src, dst = (side[len(side) - count + n] for side in ports[:2])  # the innermost
            sport, dport, seq, size, stream = (int(side[n]) for side in ports[2:])
            rows.append((int(frame), src, dst, sport, dport, seq, size, stream))
    return rows


def segments(path: Path) -> list[tuple[int, str, str, int, int, int, int, int]]:
    names = ("frame", "src", "dst", "sport", "dport", "seq", "len", "stream")
    return [tuple(row[n] for n in names) for row in lp.read(path).arrow("events").to_pylist()]


@needs_tshark
@pytest.mark.parametrize("version", ["ip", "ipv6"])
def test_tshark_finds_the_same_segments(version: str, tmp_path: Path) -> None:
    """Each wrapping in one capture, a stream of its own."""
    six = Ends(("2001:db8::1", 40_000), ("2001:db8::2", 80))
    tape = TAPE if version == "ip" else [replace(s, ends=six) for s in TAPE]
    frames = []
    for n, (link, wrap) in enumerate(WRAPPINGS.values()):
        frames += [(link, s.time_ns + n * 10**9, wrap(s.frame()[14:])) for s in tape]
    path = tmp_path / "all.pcapng"
    path.write_bytes(of_links(frames))
    found = segments(path)
    assert len(found) == len(frames)
    assert found == segments_of_tshark(path, version)


ASKS = [checked(b"\xc4\1\0\7"), checked(b"\xc8\0\1\0\7")]
"""A cable modem's requests: for slots, for bytes."""


def four_addresses(*packets: bytes) -> bytes:
    plain = amsdu(*packets)
    return plain[:1] + b"\3" + plain[2:24] + bytes(6) + plain[24:]


def cable(*packets: bytes) -> bytes:
    """tshark 4.0 says how many there are, and looks into none."""
    return concatenated(*ASKS, *(docsis(ETHERNET + packet) for packet in packets))


SEVERAL = {
    "A-MSDU": (105, amsdu),
    "A-MSDU, four addresses": (105, four_addresses),
    "cable": (143, cable),
}
"""Frames that hold several packets."""


@needs_tshark
@pytest.mark.parametrize("name", SEVERAL)
def test_frames_with_several_packets(name: str, tmp_path: Path) -> None:
    link, wrap = SEVERAL[name]
    packets = [s.frame()[14:] for s in TAPE]
    held = [packets[:1], packets[1:2], packets[2:4], packets[4:7]]
    path = tmp_path / "several.pcapng"
    path.write_bytes(of_links([(link, TAPE[n].time_ns, wrap(*some)) for n, some in enumerate(held)]))
    found = segments(path)
    assert [row[0] for row in found] == [1, 2, 3, 3, 4, 4, 4]
    assert name == "cable" or found == segments_of_tshark(path)
    assert lp.read(path).exchanges.response_bytes.tolist() == PLAIN.exchanges.response_bytes.tolist()
    assert lp.read(path).issues.empty


def test_frames_in_parts_are_counted() -> None:
    packet = TAPE[3].frame()[14:]
    frames = [
        (105, WIFI[:1] + b"\5" + WIFI[2:] + packet),
        (105, WIFI[:22] + b"\1\0" + WIFI[24:] + packet),
        (143, docsis(packet, 0xC6)),
        (143, docsis(ETHERNET + packet, extension=b"\x45\1\x80\0\0\0")),
        (274, mpacket(b"\xe6", ETHERNET + packet)[:-1] + b"\0"),
        (274, b"\x55" * 6 + b"\x61\xe6" + packet),
        (258, bytes(120)),
        (258, pktap(1, b"")[:4] + bytes(104)),
        (149, bytes(120)),
        (197, bytes(16)),
    ]
    cap = lp.read(of_links([(link, n, frame) for n, (link, frame) in enumerate(frames)]))
    rows = {(r["reason"], r["count"]) for r in cap.arrow("issues").to_pylist()}
    assert rows == {
        ("fragments are not put together (105)", 2),
        ("fragments are not put together (143)", 1),
        ("fragments are not put together (274)", 2),
        ("payload is encrypted (143)", 1),
        ("frame is cut or damaged (258)", 1),
        ("link type is not read (149)", 1),
        ("link type is not read (197)", 1),
    }


def test_layers_in_layers_end() -> None:
    """Headers that say that they hold themselves, in Python and back in the core."""
    frames = [(258, pktap(258, b"") * 2000), (10, b"\x50" + MACS + b"\xaa\xaa\x03\0\0\0\x81\0\0\1\0\x40" * 5000)]
    cap = lp.read(of_links([(link, n, frame) for n, (link, frame) in enumerate(frames)]))
    assert cap.issues.reason.tolist() == ["tunnels are nested too deep"]
    assert cap.issues["count"].tolist() == [2]
