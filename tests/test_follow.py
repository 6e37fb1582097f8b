"""Does Follow give every byte once, in order, with its frame, and print what tshark prints?"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from makepcap import Ends, Talk, pcap
from randomtalk import crowd

import latpcap as lp
from latpcap.reading.follow import MODES, Chunk, Follow, Segment, chunks

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
RULE = "=" * 67


def followed(talk: Talk, **more: int) -> Follow:
    return lp.read(pcap(talk.tape, **more)).stream(0).follow()


def pieces(follow: Follow) -> list[tuple[int, int, int, bytes, int]]:
    return [tuple(chunk) for chunk in follow.chunks]


def test_text_hex_and_raw() -> None:
    talk = Talk()
    talk.open()
    talk.client(10, b"GET /\r\n\x00\xff\tend ")
    talk.server(20, b"0123456789abcdef ghi")
    talk.server(30, b"8 bytes ")
    said = followed(talk)
    head = f"\n{RULE}\nFollow: tcp,%s\nFilter: tcp.stream eq 0\nNode 0: 10.0.0.1:40000\nNode 1: 10.0.0.2:80\n"
    assert said.text() == head % "ascii" + (
        f"14\nGET /\r\n...end \n\t20\n0123456789abcdef ghi\n\t8\n8 bytes \n{RULE}\n"
    )
    assert said.hex() == head % "hex" + (
        "00000000  47 45 54 20 2f 0d 0a 00  ff 09 65 6e 64 20        GET /... ..end\n"
        "\t00000000  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  01234567 89abcdef\n"
        "\t00000010  20 67 68 69                                        ghi\n"
        "\t00000014  38 20 62 79 74 65 73 20                           8 bytes \n"
        f"{RULE}\n"
    )
    assert said.raw() == head % "raw" + (
        "474554202f0d0a00ff09656e6420\n\t3031323334353637383961626364656620676869\n\t3820627974657320\n" + f"{RULE}\n"
    )
    assert said.text(frames=True) == str(said)
    assert "# frame 5, node 1, bytes 0-19\n\t20\n0123" in str(said)
    assert "# frame 6, node 1, bytes 20-27\n\t8\n8 b" in str(said)
    assert repr(said) == "tcp.stream 0: 10.0.0.1:40000 sent 14 bytes, 10.0.0.2:80 sent 28 bytes in 3 pieces"
    assert said.payload(1) == b"0123456789abcdef ghi8 bytes "


def test_each_byte_once_whatever_the_order() -> None:
    talk = Talk()
    talk.open()
    late = talk.client(10, b"cd", seq=3)
    overlap = talk.client(11, b"bc", seq=2)
    first = talk.client(12, b"ab", seq=1)
    talk.client(13, b"abcd", seq=1)
    more = talk.client(14, b"cdef", seq=3)
    said = followed(talk)
    assert pieces(said) == [
        (first, 0, 0, b"ab", 0),
        (late, 0, 2, b"cd", 0),
        (more, 0, 4, b"ef", 0),
    ]
    assert overlap not in [c.frame for c in said.chunks]
    assert said.payload(0) == b"abcdef" and said.lost == 0


def test_a_hole_is_said_when_the_peer_has_the_bytes() -> None:
    talk = Talk()
    talk.open()
    talk.client(10, b"aaaa")
    talk.c.sent += 100  # never captured
    behind = talk.client(11, b"bbbb")
    acks = talk.server(12)
    after = talk.server(13, b"ok")
    said = followed(talk)
    assert pieces(said) == [
        (4, 0, 0, b"aaaa", 0),
        (acks, 0, 4, b"", 100),
        (behind, 0, 104, b"bbbb", 0),
        (after, 1, 0, b"ok", 0),
    ]
    assert said.chunks[1].missing and said.lost == 100
    assert "36\n[100 bytes missing in capture file].\n4\nbbbb\n" in said.text()
    assert f"# node 0: 100 bytes missing before frame {acks} acknowledged them\n# frame {behind}," in str(said)
    assert "[100 bytes" not in str(said)
    assert repr(said).endswith("; 100 bytes are not in the capture")


def test_what_nobody_acknowledged_stays_out() -> None:
    talk = Talk()
    talk.open()
    talk.c.sent += 5
    talk.client(11, b"bbbb")
    assert followed(talk).chunks == []


def test_a_cut_segment_says_how_much_is_lost() -> None:
    talk = Talk()
    talk.open()
    talk.client(10, b"x" * 500)
    talk.client(11, b"y" * 10)
    said = followed(talk, snaplen=154)
    assert pieces(said) == [(4, 0, 0, b"x" * 100, 400), (5, 0, 500, b"y" * 10, 0)]
    assert "# frame 4, node 0, bytes 0-99, 400 more cut off\n100\nxxx" in str(said)


def test_who_spoke_first_is_node_0_and_ipv6_has_brackets() -> None:
    talk = Talk(ends=Ends(("2001:db8::1", 40_000), ("2001:db8::2", 80)))
    talk.c.sent = talk.s.sent = 1
    talk.server(1, b"hello")
    talk.client(2, b"hi")
    said = followed(talk)
    assert said.nodes == ("[2001:db8::2]:80", "[2001:db8::1]:40000")
    assert [(c.node, c.data) for c in said.chunks] == [(0, b"hello"), (1, b"hi")]


def test_a_filter_does_not_take_bytes_away() -> None:
    cap = lp.read(SAMPLES / "nginx-latency.pcap")
    assert cap.filter("tcp.stream == 24 and http.request").stream(24).follow().text() == cap.stream(24).follow().text()


def test_the_bytes_of_an_exchange_are_its_messages() -> None:
    cap = lp.read(SAMPLES / "nginx-latency.pcap")
    said, rows = cap.stream(7).follow(), cap.stream(7).exchanges
    assert len(said.payload(0)) == rows["request_bytes"].sum()
    assert len(said.payload(1)) == rows["response_bytes"].sum()
    assert said.payload(0).count(b"GET / HTTP/1.1") == len(rows)


def test_many_early_segments_take_no_time_to_speak_of() -> None:
    """One lost byte at the front, then a hundred thousand segments, twice each, backwards."""
    many = [Segment(i, True, 2 * i + 2, 0, 16, 2, b"xy") for i in range(50_000, 0, -1)]
    start = [Segment(1, True, 1, 0, 16, 1, b"a"), *many, *many]
    assert len(list(chunks(start))) == 1
    end = Segment(200_000, False, 1, 10**6, 16, 0, b"")
    found = list(chunks([*start, end]))
    assert len(found) == 50_002 and found[1] == Chunk(200_000, 0, 1, b"", 2)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("seed", [1, 2])
def test_tshark_prints_the_same(tmp_path: Path, seed: int) -> None:
    """Losses, repeats, overlaps and (seed 2) a snap length; all streams in all three forms."""
    path = tmp_path / "random.pcap"
    path.write_bytes(pcap(crowd(seed, 10), snaplen=300 if seed == 2 else 262_144))
    cap = lp.read(path)
    numbers = range(len(cap.streams))
    forms = dict(zip(MODES, ("ascii", "hex", "raw"), strict=True))
    words = ["tshark", "-n", "-q", "-r", str(path)]
    for number in numbers:
        for form in forms.values():
            words += ["-z", f"follow,tcp,{form},{number}"]
    said = subprocess.run(words, capture_output=True, check=True, timeout=120).stdout.decode("latin1")
    parts = re.split(rf"(?=\n{RULE}\nFollow: )", said)
    theirs = {tuple(re.findall(r"(?:Follow: tcp,|stream eq )(\w+)", part)[:2]): part for part in parts if part}
    for number in numbers:
        follow = cap.stream(number).follow()
        for mode, form in forms.items():
            assert getattr(follow, mode)() == theirs[form, str(number)], (number, mode)


def test_there_are_two_nodes() -> None:
    said = lp.read(SAMPLES / "clips" / "quickack.pcap").stream(0).follow()
    assert said.payload(0) and said.payload(1)
    for node in (2, -1):
        with pytest.raises(IndexError, match=rf"no node {node}: 0 is 192.168.0.2:\d+, 1 is 192.168.0.30:9000"):
            said.payload(node)


def test_a_stream_whose_only_header_is_damaged_says_nothing() -> None:
    """Found by tests/hostile.py: such a stream has a row, as Wireshark counts it, and no event."""
    talk = Talk()
    talk.open()
    data = bytearray(pcap(talk.tape))
    other = Talk(ends=Ends(("10.0.0.1", 40_001)))
    other.client(5)
    frame = bytearray(pcap(other.tape)[24:])
    frame[16 + 14 + 20 + 12] = 0x40  # a data offset of 16 bytes
    capture = lp.read(bytes(data + frame))
    assert len(capture.streams) == 2 and capture.events.stream.max() == 0
    said = capture.stream(1).follow()
    assert said.text().count("Node ") == 2 and "10.0.0.1:40001" in said.text() and said.chunks == []
