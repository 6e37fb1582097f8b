"""Do stored results answer as the captures did, and can other tools read them?"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.dataset as ds
import pytest
from archives import CLIPS, SAMPLES, SMALL, TABLES, captures, later, same
from commands import START

import latpcap as lp
from latpcap.answers.why import Why
from latpcap.archive import layout
from latpcap.archive.archive_view import Summed
from latpcap.archive.model import identity
from latpcap.archive.results import READABLE, Results
from latpcap.findings import FinderTables, table
from latpcap.format import shortest

LATENCY = SAMPLES / "nginx-latency.pcap"
NAMES = ("gap43-nodelay", "quickack", "split-nagle", "split-nodelay", "think40")
FILES = [LATENCY, SAMPLES / "nginx-good.pcap", SAMPLES / "probes.pcap", *(CLIPS / f"{name}.pcap" for name in NAMES)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    place = tmp_path_factory.mktemp("results")
    lp.batch(FILES, place, quiet=True)
    return lp.open_results(place)


def test_results_print_what_they_are(results: Results) -> None:
    like = [lp.read(file) for file in FILES]
    frames, streams, rows = (
        sum(n) for n in zip(*((c.frames, len(c.streams), len(c.exchanges)) for c in like), strict=True)
    )
    exchanges = results.why().to_dict()["exchanges"]
    assert exchanges == rows and results.captures.to_pandas().exchanges.sum() == exchanges
    assert repr(results) == f"{results.title}, {frames:,} frames, {streams} TCP streams, {exchanges:,} exchanges"
    assert results.title.endswith(": 8 captures")
    assert repr(results.exchanges).startswith("exchanges of ") and f"{rows:,} rows" in repr(results.exchanges)
    assert "<pre" in results._repr_html_() and results.failed == []


def test_tables_are_lazy_and_filtered(results: Results) -> None:
    slow = results.exchanges.to_pandas([("latency_ms", ">", 43.9)], ["capture", "stream", "latency_ms"])
    assert list(slow) == ["capture", "stream", "latency_ms"] and slow.latency_ms.min() > 43.9
    whole = lp.read(LATENCY).exchanges
    mine = slow[slow.capture == identity(str(LATENCY))]
    assert sorted(mine.latency_ms) == sorted(whole.latency_ms[whole.latency_ms > 43.9])
    expression = (ds.field("method") == "GET") & (ds.field("status") == 200)
    assert results.exchanges.count(expression) == len(results.exchanges.to_pandas(expression))
    assert isinstance(results.dataset("events"), ds.Dataset)
    with pytest.raises(KeyError, match="no table 'packets'"):
        results.dataset("packets")


@pytest.mark.parametrize("table", TABLES)
def test_a_slice_of_one_file_is_its_capture(results: Results, table: str) -> None:
    mine = getattr(results.slice(file="nginx-latency.pcap"), table).to_arrow()
    assert same(mine, lp.read(LATENCY).arrow(table))


def test_the_answer_of_one_file_is_its_captures(results: Results) -> None:
    """The same numbers and words; the frames with the file's name."""
    one, capture = results.slice(file="*/nginx-lat*"), lp.read(LATENCY)
    assert str(one.why()).replace("nginx-latency.pcap, tcp.stream", "tcp.stream") == str(capture.why())
    mine, whole = one.to_pandas("findings").drop(columns=["worst_file", "typical_file"]), capture.findings
    whole = whole[whole.kind != "harmless"]
    pd.testing.assert_frame_equal(mine, whole.reset_index(drop=True))
    assert one.latency("server").table.equals(capture.latency("server").table)
    told = one.why().to_dict()
    assert told["captures"] == 1 and told["typical"]["file"] == str(LATENCY)
    json.dumps(told)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Every third case as one archive: connects, gaps, pushes, damage and one-way streams among them."""
    place = tmp_path_factory.mktemp("cases")
    lp.batch(sorted(Path(__file__).with_name("cases").glob("*/capture.pcap*"))[::3], place, quiet=True)
    return lp.open_results(place)


@pytest.mark.parametrize("part", [{}, {"time": (None, "2023-11-14T22:13:30")}, {"server": "10.0.0.2:80"}])
def test_few_columns_answer_as_whole_tables_do(cases: Results, part: dict[str, Any]) -> None:
    held = cases.slice(**part)._together()
    whole, few = (Why.of(of, of).to_dict() for of in (held, Summed(held)))
    assert whole["exchanges"] > 100 and whole["events"]
    assert json.dumps(few, default=str) == json.dumps(whole, default=str)
    assert held.arrow("findings").equals(table(FinderTables(held.arrow)))


def test_streams_of_two_files_stay_apart(tmp_path: Path) -> None:
    """Both files have a tcp.stream 0 between the same ends: an exchange belongs to one of them."""
    data = SMALL.read_bytes()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.pcap").write_bytes(data)
    (tmp_path / "in" / "b.pcap").write_bytes(later(data, 100_000))
    lp.batch(tmp_path / "in", tmp_path / "out", quiet=True)
    both, one = lp.open_results(tmp_path / "out"), lp.read(SMALL)
    together, alone = both.to_pandas("findings").iloc[0], one.findings.iloc[0]
    assert together.exchanges == 2 * alone.exchanges and together.streams == 2 * alone.streams
    assert together.share == pytest.approx(alone.share) and together.cause == alone.cause
    place = both.captures.to_pandas().set_index("capture").files
    streams = both.streams.to_pandas([("exchanges", ">", 0)])
    for case in ("worst", "typical"):
        assert [together[f"{case}_file"]] in place.map(list).to_list()
        assert together[f"{case}_stream"] in set(streams.stream)
    assert f"tcp.stream eq {together.typical_stream}" in together["filter"]
    text = str(both.why())
    assert (
        text.startswith("out (2 captures): ") and "a.pcap, tcp.stream eq " in text
    ) or "b.pcap, tcp.stream eq " in text
    assert both.why().to_dict()["exchanges"] == 2 * one.why().to_dict()["exchanges"]
    with pytest.raises(ValueError, match="within their capture"):
        both.latency(by="stream")
    each = both.latency(by=["capture", "stream"]).table
    assert set(each["capture"]) == {"a.pcap", "b.pcap"}
    assert each["count"].sum() == 2 * one.latency().table["count"][0]
    assert list(both.findings) == list(READABLE) and len(READABLE) == 15
    named = both.findings["typical_file"].dropna()
    assert len(named) and set(named) <= {file for files in place for file in files}
    bars = both.waterfall(top=6).plan.bars
    assert {bar.name.split()[0] for bar in bars} <= {"a.pcap", "b.pcap"}
    dots, alone_dots = both.timeline(), one.timeline()
    assert dots.total == 2 * alone_dots.total
    assert {name: len(at) for name, at in dots.lanes.items()} == {n: 2 * len(at) for n, at in alone_dots.lanes.items()}
    assert both.slice(file="a.pcap").latency(by="stream").table.equals(one.latency(by="stream").table)


def test_slices_by_time_and_server(results: Results) -> None:
    whole = lp.read(LATENCY).exchanges
    middle = whole.start.sort_values().iloc[len(whole) // 2]
    one = results.slice(file="nginx-latency.pcap")
    early, late = one.slice(time=(None, middle)), one.slice(time=(middle, None))
    assert len(early.exchanges) == (whole.start < middle).sum() and len(late.exchanges) == (whole.start >= middle).sum()
    assert len(early.causes) + len(late.causes) == len(one.causes)
    assert early.why().to_dict()["exchanges"] == early.exchanges.to_arrow().num_rows
    assert len(one.slice(time=("2001-01-01", "2001-01-02")).captures) == 0
    server = results.slice(server="192.168.0.30:8080")
    assert len(server.exchanges) == len(whole) and len(server.events) == 4966
    assert len(server.causes) == len(lp.read(LATENCY).causes)
    assert set(server.streams.to_pandas().server_port) == {8080}
    assert len(results.slice(server="192.168.0.30").streams) == len(results.streams)
    assert len(results.slice(server="10.9.9.9").exchanges) == 0
    assert (
        "no exchange" in str(results.slice(server="10.9.9.9").why()).lower() or results.slice(server="10.9.9.9").why()
    )
    for wrong in ("nginx", "10.0.0.1:http", "10.0.0.1:99999"):
        with pytest.raises(ValueError, match="expected a server"):
            results.slice(server=wrong)
    with pytest.raises(ValueError, match="expected an instant"):
        results.slice(time=("noon", None))


def test_the_answer_needs_no_events(tmp_path: Path) -> None:
    lp.batch(LATENCY, tmp_path, events=False, quiet=True)
    found = lp.open_results(tmp_path)
    told, whole = found.why().to_dict(), lp.read(LATENCY).why().to_dict()
    assert len(found.events) == 0
    for name in ("verdict", "p50_ms", "p99_ms", "hit", "fix", "share", "causes"):
        assert told[name] == whole[name], name


def test_a_capture_that_is_not_whole_is_not_seen(tmp_path: Path) -> None:
    for file in (SMALL, CLIPS / "quickack.pcap"):
        lp.batch(file, tmp_path, quiet=True)
    (tmp_path / layout.manifest_of(identity(str(SMALL)))).unlink()
    found = lp.open_results(tmp_path)
    assert len(found.captures) == 1
    assert len(found.exchanges) == len(lp.read(CLIPS / "quickack.pcap").exchanges)


def test_what_failed_is_said(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "empty.pcap").touch()
    shutil.copy(SMALL, tmp_path / "in")
    lp.batch(tmp_path / "in", tmp_path / "out", quiet=True)
    found = lp.open_results(tmp_path / "out")
    assert [Path(f.file).name for f in found.failed] == ["empty.pcap"]
    assert repr(found).endswith("; 1 file failed")
    assert str(found.why()).splitlines()[-1] == "  failed    1 file not in the results; failed says which, and why"


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        (tmp_path / day).mkdir()
        shutil.copy(SMALL, tmp_path / day / "web.pcap")
    lp.batch([tmp_path / "monday", tmp_path / "tuesday"], tmp_path / "out", quiet=True)
    assert "day/web.pcap, tcp.stream eq " in str(lp.open_results(tmp_path / "out").why())
    assert shortest(["/a/b/x.pcap", "/a/c/x.pcap", "y.pcap"]) == ["b/x.pcap", "c/x.pcap", "y.pcap"]
    assert shortest(["x.pcap", "x.pcap"]) == ["x.pcap", "x.pcap"]
    assert shortest(["/x.pcap", "d/x.pcap", "s3://bucket/d/x.pcap"]) == ["/x.pcap", "d/x.pcap", "bucket/d/x.pcap"]


@pytest.mark.parametrize("place", ["nowhere", "empty"])
def test_what_is_no_result_is_said(place: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(lp.CaptureError, match=f"{place}: holds no results of latpcap batch"):
        lp.open_results(tmp_path / place)


# without latpcap


def test_pandas_reads_them(results: Results) -> None:
    frame = pd.read_parquet(f"{results.place}/exchanges", filters=[("latency_ms", ">", 40)])
    assert len(frame) == results.exchanges.count([("latency_ms", ">", 40)])
    assert str(frame.start.dtype) == "datetime64[ns, UTC]"


def test_duckdb_reads_them(results: Results) -> None:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(
        f"select capture, count(*), max(latency_ms), sum(nagle_ms + delayed_ack_ms) "
        f"from read_parquet('{results.place}/exchanges/**/*.parquet', hive_partitioning=true) group by 1"
    ).fetchall()
    expected = results.exchanges.to_pandas().assign(stall=lambda f: f.nagle_ms + f.delayed_ack_ms).groupby("capture")
    for capture, rows, longest, stall in found:
        mine = expected.get_group(capture)
        assert rows == len(mine) and stall == pytest.approx(mine.stall.sum())
        assert (longest is None and mine.latency_ms.isna().all()) or longest == mine.latency_ms.max()
    assert len(found) == len(expected)
    joined = duckdb.sql(
        f"select count(*) from read_parquet('{results.place}/events/**/*.parquet', hive_partitioning=true) e "
        f"join read_parquet('{results.place}/streams/**/*.parquet', hive_partitioning=true) s using (capture, stream) "
        "where s.server_port = 8080 and e.flags like '%PSH%' and e.src = s.server"
    ).fetchall()[0]
    events = lp.read(LATENCY).events
    assert joined[0] == (events["flags"].astype(str).str.contains("PSH") & ~events.from_client).sum()


def test_polars_reads_them(results: Results) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.scan_parquet(f"{results.place}/exchanges/**/*.parquet", hive_partitioning=True)
    assert frame.select(polars.len()).collect().item() == len(results.exchanges)


# the command


def test_why_of_results(results: Results) -> None:
    words = [*START, "why", results.place]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout == f"{results.why()}\n"
    told = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False, timeout=60)
    assert json.loads(told.stdout)["verdict"] == "nagle + delayed_ack"
    wrong = subprocess.run([*words, "--stream", "0"], capture_output=True, text=True, check=False, timeout=60)
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1


def test_captures_tell_their_files(results: Results) -> None:
    rows = captures(Path(results.place))
    assert sorted(rows) == sorted(p.name for p in FILES)
