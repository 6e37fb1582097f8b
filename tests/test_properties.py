"""What holds for every capture, whole, cut, damaged or random?"""

from __future__ import annotations

import io
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import situations
from case_scripts import SCRIPTS
from hypothesis import example, given, settings
from hypothesis import strategies as st
from makepcap import Ends, Segment, Talk, answer, get, pcap, pcapng
from randomtalk import conversation, crowd

import latpcap as lp
from latpcap import _core
from latpcap.vocabulary import CAUSES

CLIPS = Path(__file__).resolve().parents[1] / "sample_pcaps" / "clips"
few = settings(deadline=None, max_examples=60, database=None)
SEEDS = st.integers(0, 10**6)


class Sips(io.RawIOBase):
    """A file whose reads give as many bytes as `sizes` say, in turn."""

    def __init__(self, data: bytes, sizes: list[int]):
        self.data, self.sizes, self.at, self.turn = data, sizes, 0, 0

    def read(self, size: int = -1) -> bytes:
        want = self.sizes[self.turn % len(self.sizes)]
        self.turn += 1
        part = self.data[self.at : self.at + want]
        self.at += len(part)
        return part


def tables(capture: lp.Capture) -> dict[str, pa.Table]:
    return {name: capture.arrow(name) for name in _core.TABLES}


def assert_same(one: lp.Capture, other: lp.Capture) -> None:
    for name in _core.TABLES:
        a, b = one.arrow(name), other.arrow(name)
        assert a.schema == b.schema
        if name == "issues":
            a, b = a.drop_columns(["file"]), b.drop_columns(["file"])
        assert a.equals(b) or a.to_pylist() == b.to_pylist(), name


def nanoseconds(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with instants as integers."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, table[field.name].cast(pa.int64()))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


STRETCHES = {"exchange": "exchanges", "connect": "connects", "push": "pushes", "gap": "gaps"}


def assert_exact(capture: lp.Capture) -> None:
    """The rows of `causes` fill each stretch's time without gap or overlap, to the nanosecond."""
    rows: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for c in nanoseconds(capture.arrow("causes")):
        [what] = [what for what in STRETCHES if c[what] is not None]
        rows[what, c[what]].append(c)
    for what, table in STRETCHES.items():
        for e in nanoseconds(capture.arrow(table)):
            reached, spent = e["start"], dict.fromkeys(CAUSES, 0)
            for c in rows.pop((what, e[what]), []):
                assert c["start"] == reached < c["end"], (e, c)
                assert c["duration_ms"] == (c["end"] - c["start"]) / 1e6
                assert 0 <= c["confidence"] <= 1
                spent[c["cause"]] += c["end"] - c["start"]
                reached = c["end"]
            assert reached == e["end"], e
            assert {name: e[f"{name}_ms"] for name in spent} == {name: ns / 1e6 for name, ns in spent.items()}
            most = max(spent.values())
            assert e["top_cause"] == (next(c for c in CAUSES if spent[c] == most) if most else None)
            if what == "exchange":
                answered = e["complete"] and e["response_first_frame"] is not None  # a subscription may have no answer
                assert e["latency_ms"] == ((e["end"] - e["start"]) / 1e6 if answered else None)
                assert (e["cut_by"] is None) == e["complete"]
    assert not rows  # no rows of what does not exist


def read_or_refused(data: bytes) -> lp.Capture | None:
    """The capture, exact, or None where it was refused with a CaptureError; anything else raises."""
    try:
        capture = lp.read(data)
    except lp.CaptureError as problem:
        assert str(problem).startswith("<bytes>: ") and "\n" not in str(problem)
        return None
    assert_exact(capture)
    str(capture.why()), repr(capture), capture._repr_html_()
    return capture


@cache
def specimens() -> list[bytes]:
    """Small captures of every format and of many situations."""
    cases = [script.capture() for script in SCRIPTS.values()]
    stall = situations.stall(3)[0].tape
    return [*cases, pcapng(stall), pcapng(stall, big=True), pcap(stall, big=True, nanos=True), pcap(crowd(7, 3))]


any_specimen = st.integers(0, 100).map(lambda i: specimens()[i % len(specimens())])


@few
@given(any_specimen, st.lists(st.integers(1, 900), min_size=1, max_size=8))
@example(pcapng(situations.stall(2)[0].tape), [1])
def test_blocks_may_be_cut_anywhere(data: bytes, sizes: list[int]) -> None:
    assert_same(lp.read(data), lp.read(Sips(data, sizes)))


@few
@given(st.sampled_from(sorted(CLIPS.glob("*.pcap"))), st.floats(0, 1))
def test_truncated_sample(path: Path, share: float) -> None:
    data = path.read_bytes()
    capture = read_or_refused(data[: int(share * len(data))])
    assert capture is not None or share * len(data) < 24
    whole = lp.read(data)
    if capture is not None:  # what is there is what the whole file gives for the same frames
        have = capture.arrow("events")
        assert have.to_pylist() == whole.arrow("events")[: have.num_rows].to_pylist()


@few
@given(any_specimen, st.integers(0, 5000))
def test_truncated_anywhere(data: bytes, size: int) -> None:
    cut = data[: min(size, len(data))]
    capture = read_or_refused(cut)
    if capture is not None and len(cut) < len(data) and not capture.damage:
        assert_same(capture, lp.read(cut))  # cut between two records: a whole, shorter capture


@settings(few, max_examples=250)
@given(any_specimen, st.lists(st.tuples(st.integers(0, 10**5), st.integers(0, 255)), min_size=1, max_size=6))
def test_flipped_bytes(data: bytes, flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(data)
    for place, value in flips:
        damaged[place % len(data)] = value
    read_or_refused(bytes(damaged))


@few
@given(st.binary(max_size=300), st.integers(0, 5))
def test_noise_behind_a_header(noise: bytes, which: int) -> None:
    starts = [b"", *(s[:24] for s in specimens()[-4:]), pcapng([])]
    read_or_refused(starts[which] + noise)


@few
@given(SEEDS)
def test_random_conversations_are_exact(seed: int) -> None:
    capture = read_or_refused(pcap(crowd(seed, 3)))
    assert capture is not None and not capture.damage


def assert_frames_exist(capture: lp.Capture) -> None:
    """Frames count from 1; a row that names none cannot be looked up."""
    for c in capture.arrow("causes").to_pylist():
        assert c["evidence"], c
        assert all(1 <= frame <= capture.frames for frame in (c["from_frame"], c["to_frame"], *c["evidence"])), c


@few
@given(SEEDS)
@example(98596653)
def test_every_row_names_frames_that_exist(seed: int) -> None:
    assert_frames_exist(lp.read(pcap(conversation(seed))))


def lost_answer() -> bytes:
    """The second answer was acknowledged, so there was one, but the capture has only the FIN behind it."""
    talk = Talk()
    talk.open()
    for at in (5, 15):
        talk.client(at, get())
        talk.server(at + 1, b"".join(answer(60)))
        talk.client(at + 2)
    del talk.tape[-2]
    talk.server(18, flags="FA")
    return pcap(talk.tape)


def test_an_answer_that_the_capture_lacks_names_frames() -> None:
    capture = lp.read(lost_answer())
    assert_exact(capture)
    assert_frames_exist(capture)


def test_an_answer_that_the_capture_lacks_is_not_complete() -> None:
    """Nobody can say when it came: its latency is not known."""
    row = lp.read(lost_answer()).arrow("exchanges").to_pylist()[1]
    assert (row["complete"], row["cut_by"], row["latency_ms"], row["status"]) == (False, "gap", None, None)


@few
@given(SEEDS, st.lists(st.integers(1, 4000), min_size=1, max_size=5))
def test_random_conversations_in_blocks(seed: int, sizes: list[int]) -> None:
    data = pcapng(crowd(seed, 2))
    assert_same(lp.read(data), lp.read(Sips(data, sizes)))


# what must not matter

SAME = (
    "exchange",
    "cause",
    "parent",
    "owner",
    "duration_ms",
    "from_frame",
    "to_frame",
    "evidence",
    "rule",
    "confidence",
)


def judged(tape: list[Segment]) -> list[tuple[Any, ...]]:
    return [tuple(row[k] for k in SAME) for row in lp.read(pcapng(tape)).arrow("causes").to_pylist()]


@few
@given(SEEDS, st.integers(-1_500_000_000 * 10**9, 2_800_000_000 * 10**9))
def test_time_shift(seed: int, shift: int) -> None:
    tape = conversation(seed)
    assert judged([replace(s, time_ns=s.time_ns + shift) for s in tape]) == judged(tape)


OTHER_ENDS = [
    lambda e: Ends(("10.0.0.2", e.client[1]), ("10.0.0.1", e.server[1])),
    lambda e: Ends(("192.168.200.1", e.client[1]), ("8.8.4.4", e.server[1])),
]


@few
@given(SEEDS, st.sampled_from(OTHER_ENDS))
def test_other_addresses(seed: int, rename: Any) -> None:
    tape = conversation(seed)
    assert judged([replace(s, ends=rename(s.ends)) for s in tape]) == judged(tape)


@few
@given(SEEDS)
def test_ip_version(seed: int) -> None:
    """IPv6 has no identification, so the IPv4 packets go without (0 in all of them), too."""
    tape = [replace(s, ip_id=0) for s in conversation(seed)]
    six = [replace(s, ends=Ends(("fd00::2", s.ends.client[1]), ("fd00::1", s.ends.server[1]))) for s in tape]
    assert judged(six) == judged(tape)


def told(capture: lp.Capture, client: str) -> list[tuple[Any, ...]]:
    """The causes of a client's exchanges, without what counts over the whole capture: numbers, and the wait for
    missing packets of one without an end (it lasts to the last packet of anybody, so alone it may be none).
    """
    streams = {s["stream"] for s in capture.arrow("streams").to_pylist() if client in (s["client"], s["server"])}
    mine = {e["exchange"]: e for e in capture.arrow("exchanges").to_pylist() if e["stream"] in streams}
    keys = ("cause", "parent", "owner", "duration_ms", "rule", "confidence")
    rows = [c for c in capture.arrow("causes").to_pylist() if c["exchange"] in mine]
    cut = {number for number, e in mine.items() if e["cut_by"] == "capture_end"}
    rows = [c for c in rows if c["cause"] != "capture_gap" or c["exchange"] not in cut]
    return [(mine[c["exchange"]]["index"], *(c[k] for k in keys)) for c in rows]


@few
@given(SEEDS)
def test_other_hosts_do_not_matter(seed: int) -> None:
    tapes = [
        [replace(s, ends=Ends((f"10.1.0.{i}", 40_000 + i), (f"10.2.0.{i}", 80))) for s in conversation(seed + i)]
        for i in range(3)
    ]
    together = lp.read(pcap(sorted((s for tape in tapes for s in tape), key=lambda s: s.time_ns)))
    for i, tape in enumerate(tapes):
        assert told(together, f"10.1.0.{i}") == told(lp.read(pcap(tape)), f"10.1.0.{i}")


@few
@given(st.integers(9, 14), st.sampled_from([(0.01, 1.0), (20.0, 0.01), (5.0, 5.0)]), st.booleans())
def test_the_stall_is_proven_wherever_it_is_seen(n: int, legs: tuple[float, float], stamped: bool) -> None:
    server_leg, client_leg = legs
    talk, truth = situations.stall(n, server_leg=server_leg, client_leg=client_leg, stamped=stamped)
    causes = lp.read(pcap(talk.tape)).arrow("causes").to_pylist()
    held = {c["exchange"]: c["duration_ms"] for c in causes if c["cause"] == "delayed_ack" and c["confidence"] >= 0.9}
    wanted = {i: e.hold for i, e in enumerate(truth) if e.hold is not None}
    assert held.keys() == wanted.keys()
    assert all(abs(held[i] - hold) < 1e-3 for i, hold in wanted.items() if hold is not None)


@few
@given(st.integers(9, 14), st.floats(40, 46), st.sampled_from([(0.01, 1.0), (20.0, 0.01), (5.0, 5.0)]))
def test_pauses_are_never_called_stalls(n: int, length: float, legs: tuple[float, float]) -> None:
    server_leg, client_leg = legs
    talk: Talk = situations.pause(n, length, server_leg=server_leg, client_leg=client_leg)[0]
    causes = lp.read(pcap(talk.tape)).arrow("causes").to_pylist()
    assert not [c for c in causes if c["cause"] in ("nagle", "delayed_ack") and c["confidence"] >= 0.9]
