"""What is read for one report or picture alone: the same rows, and so the same words and pixels, as of the whole."""

from __future__ import annotations

import contextlib
import gc
import io
import lzma
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest

import latpcap as lp
from latpcap import page, reports
from latpcap.archive.comparison import needed as compared
from latpcap.archive.comparison import sample_of
from latpcap.cli import main
from latpcap.options import Pick, Sort, Tool, Which
from latpcap.plot import timeline, waterfall_rows
from latpcap.tables import Needed, TableSlice
from latpcap.views import answer_view, flows, groups, projection
from latpcap.views.capture import read_stream
from latpcap.views.latency import needed as timed
from latpcap.views.page_source import PageSource

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_pcaps"
CASES = Path(__file__).parent / "cases"
SLOW = SAMPLES / "nginx-latency.pcap"
EMPTY = (SAMPLES / "nginx-good.pcap").read_bytes()[:24]
CAPTURES = [
    SLOW,
    SAMPLES / "probes.pcap",
    CASES / "closed_without_answer" / "capture.pcap",
    *sorted(CASES.glob("postgres*/capture.pcap"))[:3],
    *sorted((SAMPLES / "clips").glob("*.pcap"))[:6],
]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rows are taken and copied many times, so that a capture need not be long."""
    monkeypatch.setattr(projection, "TAKE_BYTES", 1 << 15)
    monkeypatch.setattr(projection, "COPY_ROWS", 64)
    yield


@pytest.fixture(scope="module", params=CAPTURES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def both(request: pytest.FixtureRequest) -> tuple[Path, lp.Capture]:
    return request.param, lp.read(request.param)


def part(path: Path, needed: Needed) -> projection.Projection:
    found = projection.read(path, needed)
    for name, kept in needed.items():
        assert set(kept.columns) <= set(found.arrow(name).column_names)
    return found


def said(work: object) -> str:
    """What it says, or why it says nothing."""
    try:
        return str(work() if callable(work) else work)
    except (ValueError, lp.LatpcapError) as problem:
        return repr(problem)


def test_each_tool_prints_the_same_lines(both: tuple[Path, lp.Capture]) -> None:
    path, whole = both
    for tool in get_args(Tool):
        found = part(path, reports.needed(tool))
        assert said(lambda: reports.make_report(found, tool)) == said(lambda: whole.report(tool)), tool  # noqa: B023


def test_the_pictures_show_the_same(both: tuple[Path, lp.Capture]) -> None:
    path, whole = both
    drawn = part(path, timeline.needed())
    assert said(lambda: drawn.timeline().svg()) == said(lambda: whole.timeline().svg())
    sorts: list[Sort] = ["latency_ms", "start", "exchange", "delayed_ack"]
    for sort in sorts:
        columns = waterfall_rows.needed(groups.needed(["server", "status"]), sort)
        bars = part(path, columns)
        of = {"by": ["server", "status"], "sort": sort}
        assert said(lambda: bars.waterfall(**of).svg()) == said(lambda: whole.waterfall(**of).svg()), sort  # type: ignore[arg-type]  # noqa: B023


def test_of_events_few_are_kept() -> None:
    events = lp.read(SLOW).arrow("events").num_rows
    kept = {"timeline": timeline.needed(), "curl": reports.needed("curl")}
    for name, needed in kept.items():
        assert 0 < part(SLOW, needed).arrow("events").num_rows < events / 20, name


def test_latencies_are_the_same() -> None:
    whole = lp.read(SLOW)
    for which in get_args(Which):
        for by in (
            None,
            ["server", "status"],
            *([name] for name in ("client", "stream", "uri", "host", "error", "capture", "100ms")),
        ):
            found = part(SLOW, {"exchanges": TableSlice(timed(by, which))})
            table = whole.latency(by, which=which)
            pd.testing.assert_frame_equal(found.latency(by, which=which).table, table.table)
            assert str(found.latency(by, which=which)) == str(table)
            with pytest.raises(KeyError, match="no table 'events'"):
                found.arrow("events")


def test_a_table_alone_is_that_of_the_whole(both: tuple[Path, lp.Capture]) -> None:
    path, whole = both
    for name in whole.tables():
        found = projection.read(path, {name: TableSlice(None)}).arrow(name)
        assert found.schema.equals(whole.arrow(name).schema, check_metadata=True), name
        assert found.to_pylist() == whole.arrow(name).to_pylist(), name


def test_a_stream_alone_is_that_of_the_whole(both: tuple[Path, lp.Capture]) -> None:
    path, whole = both
    for number in [0, 24, len(whole.streams) - 1]:
        if number >= len(whole.streams):
            with pytest.raises(IndexError, match=f"no stream {number}: .* has {len(whole.streams)} TCP stream"):
                read_stream(path, number)
            continue
        alone, of_whole = read_stream(path, number), whole.stream(number)
        for name in ("streams", "events", "exchanges", "connects", "pushes", "gaps", "causes"):
            assert alone.arrow(name).to_pylist() == of_whole.arrow(name).to_pylist(), name
        assert alone.flow_graph().svg() == of_whole.flow_graph().svg() and alone.title == of_whole.title
        assert said(lambda: alone.time_sequence().svg()) == said(lambda: of_whole.time_sequence().svg())  # noqa: B023
        assert alone.follow().text(frames=True) == of_whole.follow().text(frames=True)


def test_damage_is_told(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((SAMPLES / "nginx-good.pcap").read_bytes()[:-1000])
    needed: Needed = {"exchanges": TableSlice(timed(None, "latency_ms"))}
    assert projection.read(cut, needed).damage == lp.read(cut).damage != []
    assert str(projection.read(EMPTY, needed).latency()) == str(lp.read(EMPTY).latency())
    assert projection.read(EMPTY, {"exchanges": TableSlice(timed("uri", "latency_ms"))}).latency("uri").table.empty


def test_a_comparison_reads_its_captures_again_for_its_page(tmp_path: Path) -> None:
    fast = tmp_path / "fast.pcap"
    fast.write_bytes((SAMPLES / "nginx-good.pcap").read_bytes())
    whole, found = lp.compare(lp.read(SLOW), lp.read(fast)), lp.compare(SLOW, fast)
    assert found.to_dict() == whole.to_dict() and str(found) == str(whole)
    whole.to_html(tmp_path / "whole.html")
    found.to_html(tmp_path / "found.html")
    assert (tmp_path / "found.html").read_bytes() == (tmp_path / "whole.html").read_bytes()
    fast.unlink()
    with pytest.raises(lp.CaptureError):
        found.to_html(tmp_path / "gone.html")
    assert sample_of(projection.read(SLOW, compared())).name == sample_of(lp.read(SLOW)).name


def test_the_text_of_a_flow_graph_is_written_line_by_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system writes 2 GB at once at most; a text in one piece ended there."""
    monkeypatch.setattr("sys.argv", ["latpcap", "flow", str(SLOW)])
    written: list[int] = []

    class Noted(io.StringIO):
        def write(self, text: str) -> int:
            written.append(len(text))
            return super().write(text)

    out = Noted()
    monkeypatch.setattr("sys.stdout", out)
    main()
    assert out.getvalue() == lp.read(SLOW).flow_graph().text() and max(written) < 2000


def test_damaged_xz_leaves_its_dictionary() -> None:
    """What says why a file could not be read held what had unpacked it: 64 MB for each file of `xz -9`."""
    packed = lzma.compress((SAMPLES / "nginx-good.pcap").read_bytes(), preset=9)
    tracemalloc.start()
    try:
        capture = lp.read([packed[:-5000], packed[:-6000]])
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert capture.damage and held < 20e6, "both dictionaries are 64 MB, or as long as what is packed"


@pytest.mark.parametrize("exchange", [*get_args(Pick), 0, 5])
def test_an_exchange_is_drawn_of_its_stream_alone(both: tuple[Path, lp.Capture], exchange: Pick | int) -> None:
    path, capture = both
    rows: list[int] = []

    def read(needed: Needed) -> projection.Projection:
        found = projection.read(path, needed)
        if "events" in needed:
            rows.extend(found.arrow("events")["stream"].to_pylist())
        return found

    def drawn(scope: lp.Capture | flows.Around) -> list[str] | str:
        try:
            graph = scope.flow_graph(exchange=exchange, time="delta")
            return [graph.svg(), *graph.lines()]
        except IndexError as problem:
            return str(problem)

    assert drawn(flows.Around(read)) == drawn(capture)
    assert len(set(rows)) <= 1


def test_a_page_of_parts_is_the_page_of_the_whole(both: tuple[Path, lp.Capture]) -> None:
    path, capture = both
    kept: list[set[str]] = []

    def read(needed: Needed) -> projection.Projection:
        kept.append(set(needed))
        return projection.read(path, needed)

    page_source = PageSource(lambda: answer_view.read(path), read)
    assert page.of_parts(page_source, page_source.around) == page.of_capture(capture)
    moved = bool(capture.arrow("transfers").num_rows)
    assert kept[0] == {"exchanges", "causes", "transfers"} and len(kept) == 3 + moved  # for its actions and its rates


def test_the_reports_command_writes_that_page_and_warns_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cut, out = tmp_path / "cut.pcap", tmp_path / "out.html"
    cut.write_bytes(SLOW.read_bytes()[:-7])
    for command in (["report", str(cut), "-o", str(out)], ["flow", str(cut), "--exchange", "worst", "-o", "-"]):
        monkeypatch.setattr("sys.argv", ["latpcap", *command])
        with contextlib.suppress(SystemExit):
            main()
        assert capfd.readouterr().err.count("record data is cut") == 1
    assert out.read_text() == page.of_capture(lp.read(cut))
