"""`latpcap.join`: two simulated captures whose clocks, losses and rewritings are known."""

from __future__ import annotations

import json
import random
import struct
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import golden
import pandas as pd
import pytest
from commands import answered, complains
from makepcap import EPOCH_NS, Ends, Segment, pcap
from twopoints import MS, MSS, Talker, Wire, capture, talk

import latpcap as lp
from latpcap.joined.chain import Chain

SECOND = 1000 * MS


def clock(offset_ms: float = 0, ppm: float = 0, step_ms: float = 0, step_at: int = 0) -> Callable[[int], int]:
    def shown(time: int) -> int:
        stepped = int(step_ms * MS) if step_ms and time >= step_at else 0
        return time + int(offset_ms * MS) + int(time * ppm / 1e6) + stepped

    return shown


def joined(wire: Wire, *, shown: Callable[[int], int] = int, **changes: Callable[[Segment], Segment]) -> lp.Joined:
    return lp.join(capture(wire.frames(False)), capture(wire.frames(True), clock=shown, **changes))


def check(wire: Wire, found: lp.Joined, *, within_ms: float | None = 0.1) -> None:
    """Each pair is one packet; each of B's instants lies within its bound and, on a quiet line, near the truth."""
    at_a, at_b = wire.frames(False), wire.frames(True)
    rows = found.packets
    both = rows[rows.a_frame.notna() & rows.b_frame.notna()]
    assert len(both) >= 0.999 * (wire.number - len(wire.lost))
    for row in both.itertuples():
        true_time, number, _ = at_b[int(row.b_frame) - 1]
        assert at_a[int(row.a_frame) - 1][1] == number
        wrong = abs(row.b_time.value - EPOCH_NS - true_time) / MS
        assert wrong <= row.clock_error_ms + 0.0021
        assert within_ms is None or wrong <= within_ms
    parts = found.exchanges
    assert (abs(parts.out_ms + parts.far_ms + parts.back_ms - parts.latency_ms) < 2e-6).all()
    assert (parts[["out_ms", "back_ms"]].min(axis=1) >= -parts.clock_error_ms - 0.002).all()


def test_parts_are_the_same_however_many_are_cut_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from latpcap.joined import shares

    pair = [Path(__file__).parents[1] / "sample_pcaps" / "two-points" / f"{name}.pcap" for name in ("client", "server")]
    whole = lp.join(*pair).parts
    monkeypatch.setattr(shares, "AT_ONCE", 7)
    pd.testing.assert_frame_equal(lp.join(*pair).parts, whole)
    assert whole.a_exchange.nunique() == 60


@pytest.mark.parametrize("offset_ms", [0.0, 1750.0, -3_600_000.5, 86_400_000_000.0])
@pytest.mark.parametrize("ppm", [0.0, 60.0, -200.0])
def test_offset_and_rate(offset_ms: float, ppm: float) -> None:
    wire = Wire(seed=int(ppm) + 1000)
    talk(wire, pause_ms=1200)
    found = joined(wire, shown=clock(offset_ms, ppm))
    check(wire, found)
    assert found.clock.seconds >= 10
    assert found.clock.ppm == pytest.approx(ppm, abs=2)
    assert not found.clock.steps
    assert len(found.exchanges) == 60


@pytest.mark.parametrize("step_ms", [-400.0, -12.5, -2.0, 1.0, 6.0, 25.0])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_a_step_is_found_where_it_was(step_ms: float, share: float) -> None:
    wire = Wire(seed=3)
    talk(wire)
    at = int(wire.frames(True)[-1][0] * share)
    found = joined(wire, shown=clock(300, 20, step_ms, at))
    check(wire, found)
    ((place, moved),) = found.clock.steps
    assert moved / MS == pytest.approx(step_ms, abs=0.1)
    true_place = sum(time < at for time, _, _ in wire.frames(True))
    assert abs(place - true_place) <= 2


def test_no_step_where_a_line_becomes_slower_for_good() -> None:
    wire = Wire(seed=5)
    talk(wire)
    wire.there_ms += 5  # one direction, as when a route changes: no clock does that
    talker = Talker(wire, Ends(("10.0.0.1", 41_000), ("10.0.0.2", 80)))
    now = talker.open(wire.frames(True)[-1][0] + 50 * MS)
    for asked in range(20):
        now = talker.ask(now + 20 * MS, f"/later/{asked}", 5.0, 100)
    found = joined(wire)
    assert not found.clock.steps
    check(wire, found, within_ms=None)


def test_an_asymmetric_path_is_within_the_bound() -> None:
    wire = Wire(there_ms=1.0, back_ms=7.0)
    talk(wire)
    found = joined(wire)
    check(wire, found, within_ms=3.2)
    assert 3.9 < found.packets.clock_error_ms.median() < 4.6


def nat(segment: Segment) -> Segment:
    return replace(segment, ends=Ends(("192.0.2.1", segment.ends.client[1] + 10_000), ("198.51.100.7", 8080)))


def other_numbers(segment: Segment) -> Segment:
    up = segment.from_client
    mine, theirs = (1_000_003, 77) if up else (77, 1_000_003)
    return replace(segment, seq=segment.seq + mine, ack=segment.ack + theirs if "A" in segment.flags else 0)


def without_stamps(segment: Segment) -> Segment:
    return replace(segment, options=())


def other_ids(segment: Segment) -> Segment:
    return replace(segment, ip_id=(segment.ip_id * 7919 + 13) % 65536)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (nat, "client 10.0.0.1 becomes 192.0.2.1"),
        (other_numbers, "sequence numbers rewritten"),
        (without_stamps, "option time stamps stripped"),
        (other_ids, "IP identification rewritten"),
        (lambda segment: other_ids(nat(other_numbers(segment))), "sequence numbers rewritten"),
    ],
    ids=["nat", "numbers", "stamps", "identification", "all"],
)
def test_what_was_rewritten(change: Callable[[Segment], Segment], words: str) -> None:
    wire = Wire(seed=9)
    talk(wire)
    found = joined(wire, change=change)
    check(wire, found)
    assert words in found.way.sentence()
    assert len(found.exchanges) == 60


def test_without_time_stamps_numbers_are_recognised_by_identification() -> None:
    wire = Wire(seed=10)
    talk(wire, stamps=False)
    found = joined(wire, change=other_numbers)
    check(wire, found)
    assert "sequence numbers rewritten" in found.way.sentence()


@pytest.mark.parametrize("seed", range(6))
def test_lost_and_doubled_packets(seed: int) -> None:
    chance = random.Random(seed)
    losing = {number for number in range(4000) if chance.random() < 0.02}
    wire = Wire(seed=seed, lose=losing.__contains__, double=lambda number: number % 37 == 5)
    talk(wire)
    found = joined(wire, shown=clock(1000, 10))
    check(wire, found)
    rows = found.packets
    lost = rows[rows.fate == "lost"]
    at_a, at_b = wire.frames(False), wire.frames(True)
    numbers = {at_a[int(frame) - 1][1] for frame in lost.a_frame.dropna()}
    numbers |= {at_b[int(frame) - 1][1] for frame in lost.b_frame.dropna()}
    assert numbers <= set(wire.lost)
    assert len(numbers) >= 0.9 * len(wire.lost)  # those at the ends are outside
    assert (rows.fate == "doubled").sum() == len(wire.doubled)


@pytest.mark.parametrize("seed", range(6))
def test_a_frame_that_a_capture_lacks_is_never_called_lost(seed: int) -> None:
    wire = Wire(seed=seed)
    talk(wire)
    chance = random.Random(seed)
    kept = [seen for seen in wire.frames(True) if chance.random() > 0.05]
    rows = lp.join(capture(wire.frames(False)), capture(kept, clock=clock(50))).packets
    assert not (rows.fate == "lost").any()
    assert (rows.fate == "unseen").sum() > 4


def test_equal_packets_are_paired_in_their_order() -> None:
    """Three ACKs that are the same to the last bit, the first of which was longer on the way."""
    wire = Wire(seed=41)
    talk(wire)
    talker = Talker(wire, Ends(("10.0.0.1", 41_000), ("10.0.0.2", 80)))
    now = talker.open(wire.frames(True)[-1][0] + 50 * MS)
    one = talker.packet(now, True, "A")
    for late_ms, wire.there_ms in ((1.0, 4.9), (1.9, 4.1), (2.2, 4.2)):
        wire.send(now + int(late_ms * MS), one)
    check(wire, joined(wire), within_ms=None)


def test_an_ack_whose_echo_leaves_at_once_is_not_lost() -> None:
    """B lacks it, and nothing else; what the server sent upon it has its time stamp."""
    wire = Wire(seed=42)
    talk(wire)
    talker = Talker(wire, Ends(("10.0.0.1", 41_000), ("10.0.0.2", 80)))
    now = talker.open(wire.frames(True)[-1][0] + 50 * MS)
    number = wire.number
    arrived = wire.send(now + 30 * MS, talker.packet(now + 30 * MS, True, "A"))
    assert arrived is not None
    came = wire.send(arrived + 5_000, talker.packet(arrived + 5_000, False, "PA", b"x" * 100))
    assert came is not None
    talker.ask(came + 20 * MS, "/later", 5.0, 100)
    wire.at_b = [seen for seen in wire.at_b if seen[1] != number]
    rows = joined(wire).packets
    (fate,) = rows[rows.a_frame.notna() & rows.b_frame.isna()].fate
    assert fate == "unseen"


@pytest.mark.parametrize("snap", [58, 70])
def test_options_that_a_snap_length_cuts_off(snap: int) -> None:
    """58 bytes end behind the first option bytes of each packet, 70 behind a time stamp but not behind a payload."""
    wire = Wire(seed=43, lose=lambda number: number in (40, 90))
    talk(wire)
    seen = [replace(one, time_ns=EPOCH_NS + time) for time, _, one in wire.frames(True)]
    found = lp.join(capture(wire.frames(False)), pcap(seen, snaplen=snap))
    check(wire, found)
    assert "time stamps" not in found.way.sentence()
    assert set(found.packets.fate) == {"passed", "lost"}


def test_a_capture_that_began_late_and_ended_early() -> None:
    wire = Wire(seed=4)
    talk(wire)
    frames = wire.frames(True)
    part = frames[len(frames) // 4 : -len(frames) // 4]
    rows = lp.join(capture(wire.frames(False)), capture(part, clock=clock(-9))).packets
    assert set(rows[rows.b_frame.isna()].fate) == {"outside"}


def merged(seen: list[tuple[int, int, Segment]]) -> list[tuple[int, int, Segment]]:
    """Full segments that follow each other closely are one, as a receiver's offload makes them."""
    out: list[tuple[int, int, Segment]] = []
    for time, number, segment in seen:
        last = out[-1][2] if out else None
        if (
            last is not None
            and segment.payload
            and last.from_client == segment.from_client
            and last.ends == segment.ends
            and last.options == segment.options
            and last.seq + len(last.payload) == segment.seq
            and len(last.payload) % MSS == 0
            and last.payload
        ):
            out[-1] = (out[-1][0], number, replace(last, payload=last.payload + segment.payload))
        else:
            out.append((time, number, segment))
    return out


@pytest.mark.parametrize("at_b", [True, False], ids=["sender", "receiver"])
def test_segments_that_offload_merged(at_b: bool) -> None:
    wire = Wire(seed=6, jitter_ms=0.001)
    talk(wire)
    a, b = wire.frames(False), wire.frames(True)
    whole = len(b) if at_b else len(a)
    a, b = (a, merged(b)) if at_b else (merged(a), b)
    assert whole - 20 > len(b if at_b else a)
    found = lp.join(capture(a), capture(b, clock=clock(77)))
    rows = found.packets
    assert set(rows.fate) == {"passed"}
    assert rows.part.sum() > 40
    assert len(found.exchanges) == 60
    assert "offload" in found.way.sentence()


def test_other_traffic_is_refused_in_one_sentence() -> None:
    one, other = Wire(seed=1), Wire(seed=2)
    talk(one)
    talk(other)
    with pytest.raises(lp.LatpcapError, match=r"have no traffic in common") as refused:
        lp.join(capture(one.frames(False)), capture(other.frames(True)))
    assert "\n" not in str(refused.value)


def test_the_other_way_round() -> None:
    wire = Wire(seed=8)
    talk(wire)
    found = lp.join(capture(wire.frames(True), clock=clock(5)), capture(wire.frames(False)))
    rows = found.packets
    assert set(rows.fate) == {"passed"}
    assert rows.delay_ms.min() > 3.9
    syn = rows.iloc[0]
    assert syn.direction == "b_to_a"


def test_wrong_table() -> None:
    wire = Wire(seed=8)
    talk(wire)
    with pytest.raises(KeyError, match="packets"):
        joined(wire).arrow("streams")


class Stall(Talker):
    """Answers in two parts: the second waits until the client acknowledges the first, which it holds."""

    def stalled(self, time_ns: int, target: str, held_ms: float) -> int:
        text = f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        came = self.wire.send(time_ns, self.packet(time_ns, True, "PA", text))
        assert came is not None
        wrote = came + MS
        head = self.wire.send(wrote, self.packet(wrote, False, "PA", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"))
        assert head is not None
        acked = head + int(held_ms * MS)
        freed = self.wire.send(acked, self.packet(acked, True, "A"))
        assert freed is not None
        over = self.wire.send(freed + MS // 100, self.packet(freed + MS // 100, False, "PA", b"012345678"))
        assert over is not None
        self.wire.send(over, self.packet(over, True, "A"))
        return over


def stalled(held: list[float], shown: Callable[[int], int] = int) -> lp.Joined:
    wire = Wire(seed=12)
    talker = Stall(wire, Ends(("10.0.0.1", 40_000), ("10.0.0.2", 80)))
    now = talker.open(0)
    for asked, held_ms in enumerate(held):
        now = talker.stalled(now + 15 * MS, f"/{asked}", held_ms)
    return joined(wire, shown=shown)


@pytest.mark.parametrize("shown", [int, clock(-700, 90), clock(5000, -300)], ids=["same", "behind", "ahead"])
def test_how_long_an_ack_was_held_is_measured_where_it_was_held(shown: Callable[[int], int]) -> None:
    held = [40.0 + number % 5 for number in range(30)]
    found = stalled(held, shown)
    rows = found.parts[(found.parts.place == "client") & (found.parts.cause == "delayed_ack")]
    assert len(rows) == 30
    assert rows.duration_ms.to_numpy() == pytest.approx(held, abs=0.01)
    assert set(rows.grade) == {"proven"}
    assert (rows.clock_error_ms == 0).all()
    sums = found.parts.groupby("a_exchange").duration_ms.sum()
    assert sums.to_numpy() == pytest.approx(found.exchanges.latency_ms.to_numpy(), abs=2e-6)
    text = str(found.why())
    assert "acknowledgements that the client's side holds back" in text
    assert "held by the client (proven at the client)" in text


def test_a_prompt_ack_on_a_long_way_is_not_the_clients() -> None:
    wire = Wire(there_ms=20, back_ms=20, seed=13)
    talker = Stall(wire, Ends(("10.0.0.1", 40_000), ("10.0.0.2", 80)))
    now = talker.open(0)
    for asked in range(30):
        now = talker.stalled(now + 15 * MS, f"/{asked}", 0.02)
    found = joined(wire)
    client = found.parts[found.parts.place == "client"]
    assert client.duration_ms.sum() < 0.05 * 30
    assert "between the two points" in found.why().headline


def test_losses_are_between_the_points() -> None:
    wire = Wire(seed=2, lose=lambda number: number % 23 == 11)
    talk(wire, requests=40)
    answer = joined(wire).why()
    assert answer.to_dict()["packets"]["a_to_b"].get("lost", 0) + answer.to_dict()["packets"]["b_to_a"].get("lost", 0)
    assert "until lost packets were sent again" in str(answer)


def test_the_answer_of_the_command(tmp_path: Path) -> None:
    wire = Wire(seed=14)
    talk(wire)
    a, b, other = (tmp_path / name for name in ("a.pcap", "b.pcap", "other.pcap"))
    a.write_bytes(capture(wire.frames(False)))
    b.write_bytes(capture(wire.frames(True), clock=clock(1500)))
    said = answered("why", "--join", str(a), str(b))
    assert said.startswith(f"a.pcap + b.pcap: {wire.number} of {wire.number} packets at both points, 60 exchanges\n")
    assert "B's clock is 1.5 s ahead of A's" in said or "B's clock is 1.50" in said
    rows = json.loads(answered("join", str(a), str(b), "--json"))
    assert len(rows) == 60
    assert rows[0]["out_ms"] + rows[0]["far_ms"] + rows[0]["back_ms"] == pytest.approx(rows[0]["latency_ms"], abs=2e-6)
    stranger = Wire(seed=15)
    talk(stranger)
    other.write_bytes(capture(stranger.frames(True)))
    assert "have no traffic in common" in complains(2, "why", "--join", str(a), str(other))


def test_the_same_traffic_read_twice_is_noticed(tmp_path: Path) -> None:
    wire = Wire(seed=21)
    talk(wire)
    seen = wire.frames(True)
    a, b, first, second = (tmp_path / name for name in ("a.pcap", "b.pcap", "ring1.pcap", "ring2.pcap"))
    a.write_bytes(capture(wire.frames(False)))
    b.write_bytes(capture(seen, clock=clock(900), change=nat))
    with pytest.warns(UserWarning, match="show the same packets"):
        lp.read([a, b])
    first.write_bytes(capture(seen[:100]))
    second.write_bytes(capture(seen[100:]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lp.read([first, second])


@pytest.mark.parametrize("seed", range(4))
def test_losses_and_missing_frames_together(seed: int) -> None:
    chance = random.Random(seed)
    losing = {number for number in range(4000) if chance.random() < 0.03}
    wire = Wire(seed=seed, lose=losing.__contains__)
    talk(wire, requests=30)
    kept = [seen for seen in wire.frames(True) if chance.random() > 0.03]
    at_a = wire.frames(False)
    found = lp.join(capture(at_a), capture(kept, clock=clock(500, 30)))
    lost = found.packets[found.packets.fate == "lost"]
    numbers = {at_a[int(frame) - 1][1] for frame in lost.a_frame.dropna()}
    numbers |= {kept[int(frame) - 1][1] for frame in lost.b_frame.dropna()}
    assert numbers
    assert numbers <= set(wire.lost)
    parts = found.exchanges
    assert (parts[["out_ms", "back_ms"]].min(axis=1) >= -parts.clock_error_ms - 0.003).all()


def proxied(
    seed: int, requests: int = 40, even: bool = False, pauses_ms: tuple[float, float] = (1, 9)
) -> tuple[bytes, Wire]:
    """A proxy between two connections; what the client's side and what the server's side saw."""
    front, back = Wire(there_ms=2, back_ms=2, seed=seed), Wire(there_ms=0.5, back_ms=0.5, seed=seed + 100)
    one = Talker(front, Ends(("10.0.0.1", 40_000), ("10.0.1.1", 80)))
    other = Talker(back, Ends(("10.0.2.1", 50_000), ("10.0.2.2", 8080)))
    now = max(one.open(0), other.open(0))
    for asked in range(requests):
        now += 30 * MS if even else int(front.random.uniform(5, 60) * MS)
        text = (
            b"GET /same HTTP/1.1\r\nHost: a\r\n\r\n"
            if even
            else f"GET /{asked % 3} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        )
        came = front.send(now, one.packet(now, True, "PA", text))
        assert came is not None
        passed = back.send(came + MS // 10, other.packet(came + MS // 10, True, "PA", text))
        assert passed is not None
        ready = passed + int(front.random.uniform(*pauses_ms) * MS)
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd"
        there = back.send(ready, other.packet(ready, False, "PA", answer))
        assert there is not None
        over = front.send(there + MS // 10, one.packet(there + MS // 10, False, "PA", answer))
        assert over is not None
        now = over
    return capture(front.frames(False)), back


def test_through_a_proxy_requests_nest() -> None:
    a, back = proxied(1)
    found = lp.join(a, capture(back.frames(True), clock=clock(-2200, 30)))
    assert found.proxied
    rows = found.exchanges
    assert len(rows) == 40
    assert rows.b_exchange.is_monotonic_increasing and rows.b_exchange.is_unique
    assert (abs(rows.out_ms + rows.far_ms + rows.back_ms - rows.latency_ms) < 2e-6).all()
    assert rows.out_ms.to_numpy() == pytest.approx(2.6, abs=0.3)
    assert set(found.packets.fate) == {"unknown"}
    assert "a proxy between" in str(found.why())


def one_file(front: bytes, back: Wire, tmp_path: Path) -> Path:
    """What a capture beside the proxy has: both legs, in order of time."""
    frames = sorted(
        [(header, data) for name in (front, capture(back.frames(False))) for header, data in records(name)],
        key=lambda frame: frame[0],
    )
    path = tmp_path / "proxy.pcap"
    path.write_bytes(front[:24] + b"".join(data for _, data in frames))
    return path


def records(pcap: bytes) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """Of each record its time and all its bytes."""
    at = 24
    while at < len(pcap):
        *time, size, _ = struct.unpack_from("<IIII", pcap, at)
        yield tuple(time), pcap[at : at + 16 + size]
        at += 16 + size


def test_both_legs_of_a_proxy_in_one_capture(tmp_path: Path) -> None:
    path = one_file(*proxied(1), tmp_path)
    found = lp.join(path)
    rows = found.exchanges
    assert found.one_file
    assert len(rows) == 40
    assert rows.b_exchange.is_unique and not set(rows.a_exchange) & set(rows.b_exchange)
    assert (abs(rows.out_ms + rows.far_ms + rows.back_ms - rows.latency_ms) < 2e-6).all()
    assert rows.out_ms.to_numpy() == pytest.approx(2.1, abs=0.3)
    assert (rows.clock_error_ms == 0).all()
    text = answered("why", "--join", str(path))
    assert text.startswith("proxy.pcap: both sides of a proxy, 40 exchanges with the request behind it\n")
    assert "in the proxy" in text
    assert len(json.loads(answered("join", str(path), "--json"))) == 40
    assert "only exchanges" in complains(2, "join", str(path), "--table", "packets")
    with pytest.raises(KeyError, match="no table 'packets'"):
        found.arrow("packets")


def test_a_client_that_asks_two_servers_is_no_proxy(tmp_path: Path) -> None:
    front, back = proxied(1)
    ends = Ends(("10.0.0.1", 50_000), ("10.0.2.2", 8080))
    back.at_a = [(time, number, replace(one, ends=ends)) for time, number, one in back.at_a]
    with pytest.raises(lp.LatpcapError, match="no two legs of a proxy"):
        lp.join(one_file(front, back, tmp_path))


def test_three_points_in_a_row(tmp_path: Path) -> None:
    """The third is 0.1 ms behind the second, by another clock."""
    wire = Wire(seed=33)
    talk(wire)
    paths = [tmp_path / name for name in ("a.pcap", "b.pcap", "c.pcap")]
    behind = [(time + MS // 10 * (1 if one.from_client else -1), number, one) for time, number, one in wire.at_b]
    seen = (
        (wire.frames(False), int),
        (wire.frames(True), clock(900, 20)),
        (sorted(behind, key=lambda one: one[0]), clock(-70)),
    )
    for path, (frames, shown) in zip(paths, seen, strict=True):
        path.write_bytes(capture(frames, clock=shown))
    chain = lp.join(*paths)
    assert isinstance(chain, Chain)
    rows = chain.exchanges
    two = lp.join(*paths[:2]).exchanges
    assert list(rows.a_exchange) == list(two.a_exchange)
    ways = ["a_b_out_ms", "b_c_out_ms", "far_ms", "b_c_back_ms", "a_b_back_ms"]
    assert (abs(rows[ways].sum(axis=1) - rows.latency_ms) < 2e-6).all()
    assert list(rows.a_b_out_ms) == list(two.out_ms)
    assert (abs(rows[["b_c_out_ms", "b_c_back_ms"]] - 0.1) <= rows[["b_c_clock_error_ms"]].to_numpy() + 0.003).all(
        axis=None
    )
    places = chain.places()
    assert sum(places.values()) == pytest.approx(rows.latency_ms.sum())
    assert places["b_c"] < 0.05 * places["a_b"]
    text = answered("why", "--join", *map(str, paths))
    assert text.startswith("a.pcap + b.pcap + c.pcap: 60 exchanges at all 3 points\n")
    assert "between a.pcap and b.pcap" in text
    assert text.count("  clock ") == 2
    assert chain.why().to_dict()["legs"][1]["packets"]["both"] == wire.number
    assert len(json.loads(answered("join", *map(str, paths), "--json"))) == 60
    picture = chain.flow_graph(exchange="worst")
    assert picture.spans[0].begin_ms == 0
    assert picture.spans[-1].end_ms == pytest.approx(rows.latency_ms.max(), abs=1e-3)
    assert {"A-B", "B-C", "server"} <= {span.place for span in picture.spans}
    golden.assert_legible(picture.plot().figure_)
    ends = {(one.leg, one.b_frame): one.b_ms for one in picture.arrows}
    met = [one for one in picture.arrows if one.leg == 1 and (0, one.a_frame) in ends]
    assert met and all(one.a_ms == pytest.approx(ends[0, one.a_frame], abs=1e-5) for one in met)
    stream = chain.flow_graph(frames=(40, 42))
    assert sorted(one.a_frame or 0 for one in stream.arrows if one.leg == 0) == [40, 41, 42]
    assert sum(one.leg == 1 for one in stream.arrows) == 3
    assert answered("flow", "--join", *map(str, paths), "--stream", "0").startswith(
        "a.pcap (A)   b.pcap (B)   c.pcap (C)"
    )
    assert "exchange 999 of A is not whole" in complains(2, "flow", "--join", *map(str, paths), "--exchange", "999")


def test_requests_of_another_run_do_not_nest() -> None:
    a, _ = proxied(1)
    _, back = proxied(2)
    with pytest.raises(lp.LatpcapError, match="no traffic in common"):
        lp.join(a, capture(back.frames(True)))


def test_requests_in_an_even_beat_nest_at_many_offsets() -> None:
    a, _ = proxied(3, even=True)
    _, back = proxied(4, even=True)
    with pytest.raises(lp.LatpcapError, match="no traffic in common"):
        lp.join(a, capture(back.frames(True)))


@pytest.mark.parametrize("step_ms", [5.0, -5.0])
@pytest.mark.parametrize("share", [0.25, 0.41, 0.7])
def test_a_step_smaller_than_the_round_trip_between_few_packets_is_no_rate(step_ms: float, share: float) -> None:
    wire = Wire(seed=17)
    talk(wire, connections=2, requests=25, pause_ms=1000)
    at = int(wire.frames(True)[-1][0] * share)
    found = joined(wire, shown=clock(-20.5, 60, step_ms, at))
    check(wire, found)
    assert len(found.clock.steps) == 1
    assert found.clock.ppm == pytest.approx(60, abs=6)


def held(wire: Wire, *, requests: int, hold_ms: int, split_request: bool) -> None:
    """Answers in two writes, the second behind an ACK that the client holds; requests too, which the server holds."""
    talker = Talker(wire, Ends(("10.0.0.1", 40_000), ("10.0.0.2", 80)))
    now = talker.open(0) + 5 * MS

    def turn(now: int, from_client: bool, parts: list[bytes]) -> int:
        came = now
        for place, part in enumerate(parts):
            came = wire.send(now, talker.packet(now, from_client, "PA", part)) or 0
            if place + 1 < len(parts):
                ack = came + hold_ms * MS
                now = (wire.send(ack, talker.packet(ack, not from_client, "A")) or 0) + MS // 50
        return came

    for number in range(requests):
        head = f"POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 200\r\n\r\n".encode()
        parts = [head, b"x" * 200] if split_request else [head + b"x" * 200]
        came = turn(now, True, parts)
        answer = [b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n", b"y" * 300]
        over = turn(came + MS // 10, False, answer)
        wire.send(over, talker.packet(over, True, "A"))
        now = over + 3 * MS


def test_a_wait_inside_the_request_leaves_the_answer_s_parts_whole() -> None:
    wire = Wire(seed=4)
    held(wire, requests=20, hold_ms=41, split_request=True)
    parts = joined(wire).parts
    mine = parts[(parts.place == "client") & (parts.cause == "delayed_ack") & (parts.grade == "proven")]
    assert len(mine) >= 19 and mine.duration_ms.between(40.9, 41.1).all()
    assert parts[parts.place == "unknown"].duration_ms.sum() < 1


@pytest.mark.parametrize(("hold_ms", "cause"), [(40, "delayed_ack"), (0, "network")])
def test_a_hold_is_no_path_however_long_the_path_is(hold_ms: int, cause: str) -> None:
    wire = Wire(seed=6, there_ms=30, back_ms=30, jitter_ms=60)
    held(wire, requests=20, hold_ms=hold_ms, split_request=False)
    parts = joined(wire).parts
    mine = parts[(parts.place == "client") & (parts.because == "A had the data and sent its acknowledgement later")]
    assert set(mine.cause) <= {cause} and len(mine) >= (20 if hold_ms else 0)
