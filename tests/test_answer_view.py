"""Does a capture that is read for its answer alone give the answer of the whole one?"""

from __future__ import annotations

import json
import pickle
import random
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from archives import CLIPS, SAMPLES
from commands import PICTURE, START
from hostile import CASES
from makepcap import Talk, answer, get, pcap

import latpcap as lp
from latpcap import spill
from latpcap.findings import FinderTables
from latpcap.reading import drain
from latpcap.user_waits.segments import Segments
from latpcap.user_waits.segments import segments as of_tables
from latpcap.views import answer_columns, answer_view
from latpcap.views import capture as capture_module

FILES = sorted([*CASES.glob("*/capture.*"), *CLIPS.glob("*.pcap"), *SAMPLES.glob("*.pcap")])


def told(why: object) -> tuple[str, str]:
    return json.dumps(why.to_dict(), default=str), str(why)  # type: ignore[attr-defined]


@pytest.mark.parametrize("part", range(8))
def test_the_same_answer_to_the_last_digit(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where rows come in small portions, and columns of more than a few rows lie in files."""
    monkeypatch.setattr(drain, "TAKE_BYTES", 20_000)
    if part % 2:
        monkeypatch.setattr(spill, "MIN_FILE_BYTES", 256)
        monkeypatch.setattr(spill, "BLOCK", 128)
    for file in FILES[part::8]:
        try:
            capture = lp.read(file)
            whole = told(capture.why())
        except lp.CaptureError as problem:
            with pytest.raises(lp.CaptureError) as refused:
                answer_view.read(file)
            assert str(refused.value) == str(problem)
            continue
        few = answer_view.read(file)
        assert told(few.why()) == whole, file
        assert few.arrow("findings").equals(capture.arrow("findings")), file
        with monkeypatch.context() as many:
            many.setattr(capture_module, "MANY_ROWS", 0)
            projection = lp.read(file)
            assert projection.kept is not None
            assert told(projection.why()) == whole, file
            assert projection.arrow("findings").equals(capture.arrow("findings")), file


def test_what_an_answer_quotes_is_told_by_its_packets_alone() -> None:
    few, whole = answer_view.read(SAMPLES / "nginx-latency.pcap"), lp.read(SAMPLES / "nginx-latency.pcap").events
    columns = ["frame", "from_client", "len"]
    mine = whole[whole.stream == 3].iloc[4:8]
    assert few._quoted(3, mine.frame.tolist()).select(columns).to_pylist() == mine[columns].to_dict("records")
    frames = whole.groupby("stream").frame.max().tolist()[:2]  # of two streams: nothing is told
    assert not few._quoted(0, frames).num_rows and not few._quoted(0, []).num_rows


def test_tables_without_what_no_answer_asks_for() -> None:
    few, whole = answer_view.read(SAMPLES / "nginx-latency.pcap"), lp.read(SAMPLES / "nginx-latency.pcap")
    assert few.arrow("events").num_rows == 0 < whole.arrow("events").num_rows
    for name in ("stretches", "causes"):
        here, there = few.kept[name], FinderTables(whole.arrow)[name]
        assert here.num_rows == there.num_rows and here.num_columns < there.num_columns
        for column in ("exchange", "latency_ms") if name == "stretches" else ("exchange", "duration_ms"):
            assert here[column].to_pylist() == there[column].to_pylist()
        for column in ("method", "cut_by") if name == "stretches" else ("cause", "rival", "because"):
            assert here[column].to_pylist() == there[column].to_pylist()
    assert [few.kept.frames(row) for row in range(100)] == whole.arrow("causes")["evidence"][:100].to_pylist()
    sure = [FinderTables(of.arrow)["causes"] if of is whole else few.kept["causes"] for of in (few, whole)]
    assert sure[0]["confidence"].to_pylist() == sure[1]["confidence"].to_pylist()
    assert few.arrow("exchanges").num_rows == whole.arrow("exchanges").num_rows


READS = re.compile(r'(?:numbers|codes|equals)\(\s*(?:tables\["streams"\]|streams),\s*f?"([^"]+)"')


def test_what_findings_read_of_streams_is_kept() -> None:
    """A column that is not kept is missed only where a capture needs it."""
    package = Path(lp.__file__).parent
    sources = [path.read_text() for folder in ("findings", "user_waits") for path in (package / folder).glob("*.py")]
    read = {name.replace("{side}", "client") for text in sources for name in READS.findall(text)}
    assert len(read) > 10
    assert {name for name in read if "{" not in name} <= set(answer_columns.Streams.COLUMNS)


def kept(found: Segments, streams: np.ndarray) -> list[object]:  # type: ignore[type-arg]
    silences = [
        (s.position, s.gap_ns, s.begin, s.index_before, *(v.astype(float).tolist() for v in s.near.values()))
        for s in found.silences()
    ]
    held = [column.tolist() for column in found.held()]
    return [held, repr(silences), found.gone(streams), found.count]


@pytest.mark.parametrize("name", ["nginx-latency.pcap", "nginx-good.pcap"])
@pytest.mark.parametrize("limits", [{}, {"clock_ahead_ns": 20_000.0, "held_ms": 0.01}], ids=["as they are", "lower"])
def test_segments_are_the_same_however_they_come(
    name: str, limits: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    from latpcap.limits import LIMITS
    from latpcap.user_waits import segments

    monkeypatch.setattr(segments, "LIMITS", {**LIMITS, **limits})
    monkeypatch.setattr(segments, "NEARBY", 300)
    monkeypatch.setattr(segments, "_MAX_REPEATS", 3)
    capture = lp.read(SAMPLES / name)
    events, streams = capture.arrow("events"), np.arange(len(capture.streams))
    # from the middle on no server says anything that a client acknowledges, and every tenth segment is a repeat
    early = pc.less(events["frame"], events.num_rows // 2)
    acked = pc.if_else(early, events["ack"], pa.scalar(1, events["ack"].type))
    events = events.set_column(events.schema.get_field_index("ack"), "ack", acked)
    events = events.filter(pc.or_(events["from_client"], early))
    again = np.arange(events.num_rows) % 10 == 0
    at = events.schema.get_field_index("retransmission")
    events = events.set_column(at, "retransmission", pa.array(again))
    whole = Segments.of(events)
    rng, pieces, at = random.Random(name), Segments(tuple), 0
    while at < events.num_rows:
        size = rng.choice((1, 2, 50, 1000))
        pieces.add(events.slice(at, size))
        at += size
    assert kept(pieces, streams) == kept(whole, streams)
    assert not limits or (len(whole.silences()) == segments.MAX_JUMPS and whole.gone(streams))


def test_what_was_captured_twice_is_read_again(tmp_path: Path) -> None:
    """Whether segments are there twice is asked of all of them, which are not held."""
    talk = Talk()
    talk.open()
    for number in range(40):
        talk.client(10.0 * number + 1, get())
        for piece in answer(200):
            talk.server(10.0 * number + 5, piece)
    twice = [replace(s, time_ns=s.time_ns + late) for s in talk.tape for late in (0, 1000)]
    (tmp_path / "a.pcap").write_bytes(pcap(twice))
    checks = answer_view.read(tmp_path / "a.pcap").why().to_dict()["quality"]
    assert checks == lp.read(tmp_path / "a.pcap").why().to_dict()["quality"]
    assert "doubles" in [check["check"] for check in checks]


def test_tables_without_events_have_no_segments() -> None:
    assert of_tables({}) is None
    assert Segments(tuple).held()[0].tolist() == [] and Segments(tuple).gone(np.arange(3)) == []


def test_columns_hold_what_they_were_given() -> None:
    numbers, words, rng = answer_columns.Numbers(None), answer_columns.Words(), np.random.default_rng(1)
    given, said = [], []
    for size, top in ((3, 1), (70_000, 1), (10, 2**32 + 5), (200_000, 300), (5, 2**20)):
        values = rng.integers(0, top, size, np.int64)
        numbers.add(values)
        given.append(values)
        codes = rng.integers(-1, 3, size)
        words.add(codes, ["a", f"b{size}", "c"])
        said += [None if c < 0 else ["a", f"b{size}", "c"][c] for c in codes.tolist()]
    whole = np.concatenate(given)
    order = rng.permutation(len(whole))
    assert np.array_equal(numbers.values(order), whole[order])
    assert words.arrow(order).to_pylist() == [said[i] for i in order.tolist()]
    empty = answer_columns.Numbers("float64")
    empty.add(np.zeros(5))
    empty.add(np.array([0.0, np.nan]))
    assert empty.arrow(None).to_pylist() == [0.0] * 6 + [None]


def test_the_command_reads_for_the_answer_alone(tmp_path: Path) -> None:
    """A pipe, which cannot be read again, and a file give the same."""
    file = SAMPLES / "nginx-latency.pcap"
    of_file = subprocess.run([*START, "why", str(file)], capture_output=True, check=True, timeout=60)
    of_pipe = subprocess.run([*START, "why", "-"], input=file.read_bytes(), capture_output=True, check=True, timeout=60)
    read_file = PICTURE.sub("", of_file.stdout.decode())  # a pipe has no name for a picture's command
    assert read_file.split("\n")[1:] == of_pipe.stdout.decode().split("\n")[1:] and len(of_file.stdout) > 500
    two = subprocess.run([*START, "why", str(file), str(file)], capture_output=True, check=True, timeout=60)
    assert two.stdout.count(b"960 requests") == 2


def test_a_capture_that_is_replaced_meanwhile_is_no_wrong_answer(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes((SAMPLES / "nginx-latency.pcap").read_bytes())
    few = answer_view.read(path)
    path.unlink()
    path.write_bytes(CLIPS.joinpath("think40.pcap").read_bytes())
    with pytest.raises(lp.CaptureError, match="was replaced since it was read"):
        few.why()


def test_of_many_requests_findings_read_few_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_module, "MANY_ROWS", 100)
    whole = lp.read(SAMPLES / "nginx-latency.pcap")
    answer = told(whole.why())
    assert {"exchanges", "causes"} <= set(whole._raw), "no table was put in order for the answer"
    assert whole.kept is whole.kept is not None
    part = whole.filter("tcp.stream == 3")
    again = pickle.loads(pickle.dumps(whole))
    assert part.kept is None and part.rows("exchanges") < whole.rows("exchanges")
    assert told(again.why()) == answer == told(whole.why())
    monkeypatch.setattr(capture_module, "MANY_ROWS", 1 << 16)
    plain = lp.read(SAMPLES / "nginx-latency.pcap")
    assert plain.kept is None and told(plain.why()) == answer
    assert told(plain.filter("tcp.stream == 3").why()) == told(part.why())


def test_what_is_kept_in_part_is_read_again_where_all_of_it_is_asked_for() -> None:
    rows = dict.fromkeys(("streams", "connects", "gaps"), 0)
    for file in (SAMPLES / "nginx-latency.pcap", *sorted(CASES.glob("*/capture.pcap"))[::12]):
        few, whole = answer_view.read(file), lp.read(file)
        for name in rows:
            assert few.rows(name) == whole.rows(name)
            assert few.arrow(name).equals(whole.arrow(name)), (file, name)
            rows[name] += whole.rows(name)
        assert few.kept["streams"].num_columns < few.arrow("streams").num_columns
        for column in few.kept["streams"].column_names:
            kept, there = few.kept["streams"][column], whole.arrow("streams")[column]
            assert (
                kept.cast(pa.int64() if column in ("start", "end") else kept.type).to_pylist()
                == (there.cast(pa.int64()) if column in ("start", "end") else there).to_pylist()
            ), (file, column)
    assert all(rows.values()), rows


def test_words_stand_in_the_order_in_which_the_rows_name_them() -> None:
    words = answer_columns.Words()
    words.add(np.array([0, 1, -1, 2]), ["a", "b", "c"])
    words.add(np.array([0, 1]), ["c", "d"])
    order = np.array([5, 2, 3, 1, 0, 4])
    found = answer_columns._as_named(words.arrow(order))
    assert found.to_pylist() == ["d", None, "c", "b", "a", "c"]
    assert found.dictionary.to_pylist() == ["d", "c", "b", "a"]
    nothing = answer_columns.Words()
    nothing.add(np.array([-1, -1]), [])
    assert answer_columns._as_named(nothing.arrow(np.array([1, 0]))).to_pylist() == [None, None]
