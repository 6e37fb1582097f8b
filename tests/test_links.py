"""Are frames of rare link types, tunnels and fragments read? Held against dpkt's packets in a wrapping of our own."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise
from typing import Any

import dpkt
import pytest
from makepcap import Segment, Talk, answer, get, pcap_of

import latpcap as lp
from latpcap import links


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


def wrapped(wrap: Any, link: int) -> bytes:
    """The script with each frame's IP packet in another wrapping."""
    data = pcap_of((s.time_ns, wrap(s.frame()[14:])) for s in TAPE)
    return data[:20] + struct.pack("<I", link) + data[24:]


PLAIN = lp.read(pcap_of((s.time_ns, s.frame()) for s in TAPE))
SNAP = b"\xaa\xaa\x03\0\0\0\x08\0"
MACS = b"\x02\0\0\0\0\1\x02\0\0\0\0\2"
WIFI = b"\x08\x01\0\0" + bytes(18) + b"\0\0" + SNAP
QOS = b"\x88\x02\0\0" + bytes(18) + b"\0\0" + b"\0\0" + SNAP


def nflog(packet: bytes) -> bytes:
    size = len(packet) + 4
    return struct.pack("<BBH", 2, 0, 0) + struct.pack("<HH", 5, 10) + b"a\0\0\0" + struct.pack("<HH", size, 9) + packet


def deflated(packet: bytes) -> bytes:
    inner = zlib.compressobj(wbits=-15)
    payload = b"\x04\0\0\x02" + inner.compress(packet) + inner.flush()
    return bytes(dpkt.ip.IP(src=b"\1\1\1\1", dst=b"\2\2\2\2", p=108, len=20 + len(payload), data=payload))


WRAPPINGS = {
    "802.11": (105, lambda p: WIFI + p),
    "802.11, QoS": (105, lambda p: QOS + p),
    "radiotap": (127, lambda p: b"\0\0\x08\0\0\0\0\0" + WIFI + p),
    "prism": (119, lambda p: struct.pack("<II", 0x44, 144) + bytes(136) + WIFI + p),
    "avs": (163, lambda p: struct.pack(">II", 0x80211001, 64) + bytes(56) + WIFI + p),
    "avs in prism": (119, lambda p: struct.pack(">II", 0x80211001, 64) + bytes(56) + WIFI + p),
    "ppi": (192, lambda p: struct.pack("<BBHI", 0, 0, 8, 105) + WIFI + p),
    "ppi, ethernet": (192, lambda p: struct.pack("<BBHI", 0, 0, 8, 1) + MACS + b"\x08\0" + p),
    "token ring": (6, lambda p: b"\x10\x40" + MACS + SNAP + p),
    "token ring, routed": (6, lambda p: b"\x10\x40" + MACS[:6] + b"\x82" + MACS[7:] + b"\x06\0\0\0\0\0" + SNAP + p),
    "arcnet": (7, lambda p: b"\1\2\xd4\0\0\1" + p),
    "arcnet, linux": (129, lambda p: b"\1\2\0\0\xd4\0\0\1" + p),
    "arcnet, linux, RFC 1051": (129, lambda p: b"\1\2\0\0\xf0" + p),
    "slip": (8, lambda p: bytes(16) + p),
    "fddi": (10, lambda p: b"\x50" + MACS + SNAP + p),
    "atm": (100, lambda p: SNAP + p),
    "atm, routed": (106, lambda p: p),
    "atm of sun": (123, lambda p: b"\x02\0\0\1" + SNAP + p),
    "frame relay": (107, lambda p: b"\x18\x41\x03\xcc" + p),
    "frame relay, SNAP": (107, lambda p: b"\x18\x41\x03\0\x80\0\0\0\x08\0" + p),
    "frame relay of cisco": (107, lambda p: b"\x18\x41\x08\0" + p),
    "pflog": (117, lambda p: b"\x3d\x02" + bytes(62) + p),
    "fibre channel": (122, lambda p: bytes(16) + SNAP + p),
    "firewire": (138, lambda p: bytes(16) + b"\x08\0" + p),
    "ipnet": (226, lambda p: b"\1\2" + bytes(22) + p),
    "nflog": (239, nflog),
    "netanalyzer": (240, lambda p: bytes(4) + MACS + b"\x08\0" + p),
    "infiniband": (242, lambda p: bytes(40) + b"\x08\0\0\0" + p),
    "exported": (252, lambda p: b"\0\x0c\0\x04ip\0\0" + bytes(4) + p),
    "switch tag": (281, lambda p: MACS + b"\0\0\0\1\x08\0" + p),
    "switch tag, eight": (285, lambda p: MACS + b"\xda\xda\0\0\0\0\0\1\x08\0" + p),
    "compressed": (228, deflated),
    "vlan in llc": (10, lambda p: b"\x50" + MACS + b"\xaa\xaa\x03\0\0\0\x81\0\0\1\x08\0" + p),
}


@pytest.mark.parametrize("name", WRAPPINGS)
def test_every_wrapping_gives_the_same_rows(name: str) -> None:
    link, wrap = WRAPPINGS[name]
    cap = lp.read(wrapped(wrap, link))
    assert cap.arrow("events").equals(PLAIN.arrow("events"))
    assert cap.arrow("exchanges").equals(PLAIN.arrow("exchanges"))
    assert cap.issues.empty


@pytest.mark.parametrize("name", WRAPPINGS)
def test_every_wrapping_cut_at_every_length(name: str) -> None:
    """No exception but what is said, and never more than there was."""
    link, wrap = WRAPPINGS[name]
    frame = wrap(TAPE[3].frame()[14:])
    layer, number = ("link", link) if link != 228 else ("ip", 108)
    frame = frame if layer == "link" else frame[20:]
    whole = links.read(layer, number, frame)
    assert isinstance(whole, bytes)
    for size in range(len(frame)):
        found = links.read(layer, number, frame[:size])
        assert found is None or found in ("cut", "encrypted", b"") or whole.startswith(found), size


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
