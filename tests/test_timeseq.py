"""Does the time-sequence graph show tcptrace's facts of the right direction, and the stalls in their places?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import golden
import numpy as np
import pyarrow as pa
import pytest
from commands import run

import latpcap as lp
from latpcap.plot import TimeSequence
from latpcap.plot.evidence import _choose_server
from latpcap.plot.timeseq_data import COLUMNS, Spans, _joined, _thinned

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CASES = Path(__file__).with_name("cases")


@pytest.fixture(scope="module")
def slow() -> lp.Stream:
    return lp.read(SAMPLES / "nginx-latency.pcap").stream(24)


def case(name: str) -> lp.Stream:
    return lp.read(CASES / name / "capture.pcap").stream(0)


def seconds(stream: lp.Stream, rows: Any) -> Any:
    return (rows["time"].astype("int64").to_numpy() - stream.capture.first_ns) / 1e9


def test_segments_are_the_senders_new_data(slow: lp.Stream) -> None:
    data = slow.time_sequence().data
    sent = slow.events[~slow.events["from_client"] & (slow.events["len"] > 0)]
    assert data.sender == "server" and data.payload == int(sent["len"].sum())
    assert np.allclose(data.segments.seconds, seconds(slow, sent))
    assert data.segments.low.tolist() == sent["seq"].tolist()
    assert (data.segments.high - data.segments.low).tolist() == sent["len"].tolist()
    other = slow.time_sequence(sender="client").data
    assert other.payload == int(slow.events.loc[slow.events["from_client"], "len"].sum()) and len(other.segments) == 24


def test_the_ack_line_and_the_window_are_the_receivers(slow: lp.Stream) -> None:
    data = slow.time_sequence().data
    acks = slow.events[slow.events["from_client"] & slow.events["flags"].astype(str).str.contains("ACK")]
    assert data.ack.values.tolist() == acks["ack"].cummax().tolist()
    assert data.window is not None
    assert data.window.values.tolist() == (acks["ack"] + acks["window"]).tolist()
    assert data.flight.values.max() == slow.events.loc[~slow.events["from_client"], "bytes_in_flight"].max()


@pytest.mark.parametrize(
    ("grade", "legend"), [("probable", "probable"), ("suspected", "not proven"), ("unknown", "not proven")]
)
def test_the_legend_calls_probable_only_what_is(slow: lp.Stream, grade: str, legend: str) -> None:
    causes = slow.arrow("causes")
    confidence = {"probable": 0.6, "suspected": 0.5, "unknown": 0.0}[grade]
    for name, value in (("grade", grade), ("confidence", confidence)):
        causes = causes.set_column(causes.column_names.index(name), name, pa.array([value] * causes.num_rows))
    picture = TimeSequence.from_tables(slow.arrow("events"), causes)
    keys = {key.name: key for key in TimeSequence.keys(picture)}
    assert (keys["dashed bar"].words, keys["dashed bar"].alone) == (
        f"{legend}: confidence below 0.9",
        f"dashed bar: {legend}",
    )


def test_stalls_are_the_causes_rows(slow: lp.Stream) -> None:
    data = slow.time_sequence(mark_ms=20).data
    long = slow.causes[slow.causes["duration_ms"] >= 20]
    assert [(s.cause, s.from_frame, s.to_frame) for s in data.stalls] == [
        (str(c), a, b) for c, a, b in zip(long["cause"], long["from_frame"], long["to_frame"], strict=True)
    ]
    assert np.allclose([s.ms for s in data.stalls], long["duration_ms"])
    assert {"delayed_ack", "nagle"} <= {key.name for key in slow.time_sequence().keys()}  # noqa: SIM118


def test_repeats_sacks_and_duplicates_are_wiresharks() -> None:
    stream = case("fast_retransmit_at_sender")
    events, data = stream.events, stream.time_sequence().data
    mine = events["from_client"] == (data.sender == "client")
    kinds = events[["retransmission", "fast_retransmission", "spurious_retransmission"]].any(axis=1)
    assert len(data.repeats) == int((kinds & mine).sum()) > 0
    assert len(data.duplicates.seconds) == int((events["duplicate_ack"] & ~mine).sum()) > 0
    blocks = [block for sack in events.loc[~mine, "sack"].dropna() for block in sack]
    assert list(zip(data.sacks.low.tolist(), data.sacks.high.tolist(), strict=True)) == [
        (block["left"], block["right"]) for block in blocks
    ]
    gids = {artist.get_gid() for artist in stream.time_sequence().plot().ax_.collections}
    assert {"segments", "retransmission"} <= gids


def test_zero_windows_are_marked() -> None:
    stream = case("zero_window")
    data = stream.time_sequence().data
    mine = stream.events["from_client"] == (data.sender == "client")
    assert len(data.zero_windows.seconds) == int((stream.events["zero_window"] & ~mine).sum()) > 0
    assert any(stall.cause == "zero_window" for stall in data.stalls)


def test_rates_hold_all_bytes(slow: lp.Stream) -> None:
    data = slow.time_sequence().data
    edges, sent, acknowledged = data.bins
    assert (sent * np.diff(edges)).sum() * 1e6 / 8 == pytest.approx(data.payload)
    assert (acknowledged * np.diff(edges)).sum() * 1e6 / 8 == pytest.approx(data.ack.values[-1] - data.ack.values[0])


def test_frames_limit_it(slow: lp.Stream) -> None:
    data = slow.time_sequence(frames=(241, 700)).data
    assert [round(s.ms, 1) for s in data.stalls] == [42.6, 43.6]
    with pytest.raises(ValueError, match="the server sends no data in frames 1 to 3"):
        slow.time_sequence(frames=(1, 3))


def test_without_a_syn_there_is_no_window_line(slow: lp.Stream) -> None:
    events = slow.arrow("events")
    rest = events.filter(pa.compute.greater(events["frame"], 316))
    picture = TimeSequence.from_tables(rest, None, title="middle")
    assert picture.data.window is None and "SYN is not in the capture" in picture.note
    assert "window" not in [key.name for key in TimeSequence.keys(picture)]


def test_joined_marks_cover_the_same_bytes() -> None:
    rng = np.random.default_rng(2)
    n = 60_000
    when = np.sort(rng.uniform(0, 10, n))
    low = np.arange(n) * 1000
    low[rng.integers(0, n, 500)] += 3_000_000  # some that touch nobody
    joined = _joined(when, low, low + 1000, (0.0, 10.0))
    assert isinstance(joined, Spans) and COLUMNS // 2 < len(joined) < n // 4
    column = (when / 10 * COLUMNS).astype(int)
    for at in (0, 17, n // 2, n - 1):
        inside = ((joined.seconds / 10 * COLUMNS).astype(int) == column[at]) & (joined.low <= low[at])
        assert (inside & (joined.high >= low[at] + 1000)).any()
    few = _joined(when[:100], low[:100], low[:100] + 1000, (0.0, 10.0))
    assert few.low.tolist() == low[:100].tolist()


def test_a_thinned_line_keeps_each_columns_ends_and_extremes() -> None:
    rng = np.random.default_rng(4)
    when, values = np.sort(rng.uniform(0, 10, 50_000)), rng.normal(size=50_000)
    line = _thinned(when, values, (0.0, 10.0))
    assert len(line.seconds) <= 4 * (COLUMNS + 1)
    before, after = (when / 10 * COLUMNS).astype(int), (line.seconds / 10 * COLUMNS).astype(int)
    for column in (0, 5, 800, 1599):
        whole, kept = values[before == column], line.values[after == column]
        assert (whole.min(), whole.max(), whole[0], whole[-1]) == (kept.min(), kept.max(), kept[0], kept[-1])


PICTURES = [
    "fast_retransmit_at_sender",
    "zero_window",
    "stall_at_client",
    "tail_probe_and_timeout_at_sender",
    "chunked",
]


@pytest.mark.parametrize("name", PICTURES)
def test_texts_do_not_collide(name: str) -> None:
    golden.assert_legible(case(name).time_sequence().plot().figure_)


def test_pictures_are_as_they_were(slow: lp.Stream) -> None:
    golden.check("time-sequence", slow.time_sequence(frames=(1, 900))._render(".png", 100))
    golden.check(
        "time-sequence-loss", case("fast_retransmit_at_sender").time_sequence(panels=["sequence"])._render(".png", 100)
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sender": "nginx"}, "no sender 'nginx'; known are client and server"),
        ({"panels": ["cwnd"]}, "no panel 'cwnd'"),
        ({"panels": []}, "no panel"),
        ({"mark_ms": 0}, "must be more than 0 ms"),
    ],
)
def test_wrong_words_are_refused(slow: lp.Stream, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        slow.time_sequence(**options)


def test_command(tmp_path: Path) -> None:
    out = tmp_path / "s.svg"
    words = ("plot", "time-sequence", SAMPLES / "nginx-latency.pcap", "--stream", 24, "--panels", "sequence,rtt")
    assert run(*words, "--frames", "241-700", "-o", out) == (0, "", "")
    assert 'id="segments"' in out.read_text()
    code, _, err = run(*words, "--sender", "me", "-o", out)
    assert code == 2 and "no sender 'me'" in err and err.count("\n") == 1
    code, _, err = run("plot", "time-sequence", SAMPLES / "nginx-latency.pcap", "--stream", 0, "-o", out)
    assert code == 2 and "sends no data" in err
    assert run(*words, "--frames", "7", "-o", out)[0] == 2


@pytest.mark.parametrize("name", ["[2001:db8::1]:443", "[2001:db8::1]", "2001:db8::1"])
def test_evidence_finds_an_ipv6_server_by_each_of_its_names(name: str) -> None:
    end = {"server": ["2001:db8::1"], "server_port": [443]}
    streams, evidence = pa.table({"stream": [7], **end}), pa.table({**end, "opportunities": [3]})
    chosen, rows = _choose_server(streams, evidence, name)
    assert (chosen, list(rows)) == ("[2001:db8::1]:443", [7])
