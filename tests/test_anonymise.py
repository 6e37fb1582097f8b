"""Does an anonymised slice tell the same of the time, and nothing of the people?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import dpkt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import latpcap as lp
from latpcap.reading import anonymise, masks
from latpcap.reading.anonymise import KEPT_BITS, LOOPBACK, Names

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_pcaps"
SLOW = SAMPLES / "nginx-latency.pcap"
CAPTURES = [*sorted(SAMPLES.glob("**/*.pcap")), *sorted((ROOT / "tests" / "cases").glob("*/capture.*"))]
KEPT = {"http", "http2", "grpc", "dns", "tls", "turns", None}
"""Protocols whose messages stay. Others become turns; answers of WebSocket are told by ids inside the payload."""
SECRET = re.compile(rb"s.?e.?c.?r.?e.?t", re.IGNORECASE)


def sliced(source: Path, target: Path, key: bool | str = True) -> lp.Capture:
    lp.read(source).to_pcap(target, anonymise=key)
    return lp.read(target)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_answer_stays(path: Path, tmp_path: Path) -> None:
    """The verdict, its confidence, the latencies and each finding, of every sample and case."""
    before, after = (one.why().to_dict() for one in (lp.read(path), sliced(path, tmp_path / "a.pcapng")))
    # a slice carries no keys, no head of the PROXY protocol and no status of gRPC-Web, which lies in bodies: what lay
    # inside or behind is no request any more
    keyed = path.parent.name.endswith("_keys") or path.parent.name in ("proxy_protocol", "grpc_web_in_http1")
    if keyed or not set(lp.read(path).arrow("streams")["protocol"].to_pylist()) <= KEPT:
        assert before["streams"] == after["streams"]
        return
    lookups = str(before.get("verdict")).startswith("dns")  # UDP is left out, and what it said leads no more
    for name in ("p50_ms", "p99_ms") if lookups else ("verdict", "confidence", "p50_ms", "p99_ms"):
        assert before.get(name) == after.get(name), name
    told = [
        [
            (row["cause"], row["server_port"], row["owner"], row["grade"])
            for row in answer["findings"]
            if not lookups or not row["cause"].startswith("dns")
        ]
        for answer in (before, after)
    ]
    assert told[0] == told[1]


def test_times_and_lengths_stay(tmp_path: Path) -> None:
    before, after = lp.read(SLOW), sliced(SLOW, tmp_path / "a.pcap")
    for name in ("time", "len", "seq", "ack", "flags", "window", "tsval", "sport", "dport", "stream"):
        assert before.arrow("events")[name].to_pylist() == after.arrow("events")[name].to_pylist(), name
    assert [(r.original_len, len(r.data)) for r in before.records()] == [
        (r.original_len, len(r.data)) for r in after.records()
    ]


def test_nothing_is_left_of_who_and_what(tmp_path: Path) -> None:
    target = tmp_path / "a.pcapng"
    after = sliced(SLOW, target)
    written = target.read_bytes()
    for told in (b"\xc0\xa8\x00\x02", b"\xc0\xa8\x00\x1e", b"192.168", b"latpcap sample", b"6955b900", b"A small page"):
        assert told in SLOW.read_bytes() or told == b"192.168"
        assert told not in written, told
    assert b"nginx-latency" not in written
    macs = {bytes(record.data[at : at + 6]) for record in lp.read(SLOW).records() for at in (0, 6)}
    assert not any(mac in written for mac in macs)
    assert "nginx/1.22.1" in set(after.streams.server_software.dropna()), "the server's software stays"
    tls = tmp_path / "tls.pcapng"
    names = sliced(ROOT / "tests" / "cases" / "tls13" / "capture.pcap", tls).exchanges.query("method == 'handshake'")
    assert b"example" not in tls.read_bytes() and (names.target.str.len() == len("tls.example")).all()


def test_checksums_are_right(tmp_path: Path) -> None:
    """A receiver would take these packets: dpkt computes the same sums."""
    for record in sliced(SLOW, tmp_path / "a.pcap").records():
        frame = dpkt.ethernet.Ethernet(record.data)
        ip, tcp = frame.data, frame.data.data
        sums = ip.sum, tcp.sum
        ip.sum = tcp.sum = 0
        again = dpkt.ip.IP(bytes(ip))
        assert sums == (again.sum, again.data.sum), record.frame


def test_one_key_gives_one_set_of_names(tmp_path: Path) -> None:
    def ends(key: bool | str, name: str = "a.pcap") -> set[str]:
        return set(sliced(SLOW, tmp_path / name, key).streams.server)

    assert ends("k") == ends("k", "b.pcap") != ends("l")
    assert ends(True) != ends(True)
    (tmp_path / "c.pcap").unlink(missing_ok=True)
    lp.read(SAMPLES / "nginx-good.pcap").to_pcap(tmp_path / "c.pcap", anonymise="k")
    assert set(lp.read(tmp_path / "c.pcap").streams.server) == ends("k"), "the same host in another capture"


def shared_bits(one: bytes, other: bytes) -> int:
    differ = int.from_bytes(one, "big") ^ int.from_bytes(other, "big")
    return len(one) * 8 - differ.bit_length()


@given(st.sampled_from([4, 16]).flatmap(lambda n: st.tuples(*[st.binary(min_size=n, max_size=n)] * 2)), st.binary())
def test_neighbours_stay_neighbours(pair: tuple[bytes, bytes], key: bytes) -> None:
    names = Names(key)
    one, other = map(names.address, pair)
    home = LOOPBACK[len(one)]
    # what makes room for loopback addresses has other neighbours, but those that share as much as such addresses do
    if not any(name.startswith(home) or names._elsewhere(name).startswith(home) for name in pair):
        assert shared_bits(one, other) == shared_bits(*pair)
    kept = KEPT_BITS[len(one)]
    assert shared_bits(one, pair[0]) >= kept


def test_loopback_stays_loopback() -> None:
    """Whether a capture was taken at a host shows by it; and no other host's address turns into one."""
    names = Names(b"k")
    found = [names.address(bytes([first, 0, 0, 1])) for first in range(256)]
    assert found[127][0] == 127 and len({address[0] for address in found}) == 256
    assert names.address(bytes([127, 0, 0, 2])) not in (found[127], bytes([127, 0, 0, 2]))
    assert names.address(bytes(15) + b"\x01") == bytes(15) + b"\x01"


PROTOCOLS = st.sampled_from(["http", "http2", "grpc", "websocket", "dns", "tls", "turns", "redis", ""])


@given(PROTOCOLS, st.binary(max_size=600), st.booleans())
def test_any_bytes_keep_their_length(protocol: str, data: bytes, from_client: bool) -> None:
    assert len(masks.masked(protocol, data, from_client, Names(b"k").word)) == len(data)


TOKENS = st.sampled_from(
    [
        b"GET /secret?secret=secret HTTP/1.1\r\n", b"HTTP/1.1 200 Secret\r\n", b"HTTP/1.1 204 No\r\n", b"secret\r\n",
        b"POST http://secret/ HTTP/1.1\r\n", b"Host: secret.secret\r\n", b"X-Secret: a secret\r\n", b"\r\n",
        b"Content-Length: 6\r\n", b"Content-Length: 60000\r\n", b"Transfer-Encoding: chunked\r\n", b"6;secret\r\n",
        b"Cookie: secret=1\r\n", b"6\r\nsecret\r\n", b"0\r\n", b"secret", b"\nSECRET", b"Connection: close\r\n",
        b"\x16\x03\x01\x00\x0a\x01\x00\x00\x06secret", b"\x17\x03\x03\x00\x06secret", b"\x14\x03\x03\x00\x01\x01",
        b"\x16\x03\x03\x00\x0a\x0b\x00\x00\x20secret", b"\x16\x03\x03\x00\x06secret", b"\x15\x03\x03\x00\x02\x01\x00",
        b"\x16\x03\x03\x00\x0a\x02\x00\x00\x06secret", b"Upgrade: websocket\r\n", b"HTTP/1.1 101 Secret\r\n",
        b"Content-Type: text/event-stream; secret\r\n", b":secret\n\ndata: secret\n", b"\x81\x06secret",
        b"\x81\x86keysSECRET", b"\x00\x20\x00\x01" + bytes(10) + b"\x06secret\x06secret\x00\x00\x01\x00\x01",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00\x00\x06\x00\x01\x00\x00\x00\x01secret",
        b"\x00\x00\x0b\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x06secret",
        b"\x00\x00\x08\x06\x00\x00\x00\x00\x00a secret",
        b"\x00\x00\x06\x01\x04\x00\x00\x00\x01secret", b"\x00\x00\x10\x07\x00\x00\x00\x00\x00" + bytes(8) + b"a secret",
        b"\x00\x00\x0c\x01\x2c\x00\x00\x00\x03\x02" + bytes(3) + b"secret\x00\x00",
    ]
)  # fmt: skip


@given(PROTOCOLS, st.lists(TOKENS, max_size=12), st.booleans(), st.integers(0, 40))
@example("http", [b"\x81\x86keysSECRET", b"GET /secret HTTP/1.1\r\n"], True, 0)  # a verb with a body's end before it
def test_no_secret_gets_through(protocol: str, tokens: list[bytes], from_client: bool, cut: int) -> None:
    """However messages are put together and wherever the capture begins, nothing of what they say is left."""
    data = b"".join(tokens)[cut:]
    found = masks.masked(protocol, data, from_client, Names(b"k").word)
    assert not SECRET.search(found), found


def test_a_certificate_in_two_records_stays_hidden() -> None:
    """Where the second record's bytes look like a hello, of which the cipher suites would stay."""
    hello_like = b"\x01\x00\x00\x40" + bytes(35) + b"\x00\x08a secret" + bytes(19)
    first = b"\x16\x03\x03\x00\x0a\x0b\x00\x00\x4asecret"
    data = first + b"\x16\x03\x03" + len(hello_like).to_bytes(2, "big") + hello_like
    found = masks.masked("tls", data, False, Names(b"k").word)
    assert not SECRET.search(found) and found[15:20] == data[15:20]


def test_what_is_no_plain_segment_is_left_out(tmp_path: Path) -> None:
    code = "import sys; sys.argv = ['latpcap', *sys.argv[1:]]; from latpcap.cli import main; main()"
    words = ["slice", str(SAMPLES / "probes.pcap"), "--anonymise", "-o", str(tmp_path / "a.pcapng")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    left = lp.read(SAMPLES / "probes.pcap").frames - lp.read(tmp_path / "a.pcapng").frames
    assert left > 0 and f"{left} of 77 frames are no plain TCP segments and were left out" in done.stderr
    words = ["slice", str(SLOW), "--key", "k", "-o", str(tmp_path / "b.pcapng")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--anonymise" in done.stderr


@pytest.mark.parametrize("data", [b"", b"\x00" * 13, b"\x00" * 12 + b"\x08\x00" + b"\x45" * 3, b"\xff" * 200])
@pytest.mark.parametrize("link", [0, 1, 12, 101, 113, 276, 999, None])
def test_frames_that_cannot_be_read_have_no_layout(link: int | None, data: bytes) -> None:
    assert anonymise.layout(link, data) is None


def test_vlan_tags_and_ipv6_are_read() -> None:
    segment = bytes(dpkt.tcp.TCP(sport=1, dport=2, data=b"abc"))
    packet = bytes(dpkt.ip6.IP6(src=b"\xfd" * 16, dst=b"\xfe" * 16, nxt=6, plen=len(segment), data=segment))
    frame = b"\x01" * 12 + b"\x88\xa8\x00\x05\x81\x00\x00\x07\x86\xdd" + packet + b"padding"
    found = anonymise.layout(1, frame)
    assert found is not None and frame[found.payload : found.end] == b"abc" and found.whole
