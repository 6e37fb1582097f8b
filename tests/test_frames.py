"""Are the tables what pandas, polars, duckdb and other processes expect?"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import get_args

import pandas as pd
import pyarrow as pa
import pytest
from makepcap import Segment, pcap

import latpcap as lp
from latpcap.options import TableName

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "sample_pcaps" / "nginx-latency.pcap"


@pytest.fixture(scope="module")
def capture() -> lp.Capture:
    return lp.read(SAMPLE)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> object:
    place = tmp_path_factory.mktemp("results")
    lp.batch([str(SAMPLE)], place, quiet=True)
    return lp.open_results(place)


def test_differences_of_columns_are_differences(capture: lp.Capture) -> None:
    events = capture.events
    assert (events.len - events.window).min() == -65_536  # unsigned, it was 4294901760
    waits = (events.release_frame - events.frame).dropna()
    assert len(waits) and (waits < 0).all()
    assert (events.len.iloc[:1] - 1).tolist() == [-1]


def test_one_kind_of_types(capture: lp.Capture) -> None:
    kinds = {str(dtype) for name in get_args(TableName) for dtype in getattr(capture, name).dtypes}
    texts = {"object", "str"}
    assert kinds - texts == {"int64", "Int64", "float64", "bool", "boolean", "category", "datetime64[ns, UTC]"}
    assert capture.causes.evidence.tolist() == capture.arrow("causes")["evidence"].to_pylist()
    lossy = lp.read(ROOT / "tests" / "cases" / "fast_retransmit_at_sender" / "capture.pcap")
    assert lossy.events["sack"].tolist() == lossy.arrow("events")["sack"].to_pylist()
    assert 0 < lossy.events["sack"].notna().sum() < len(lossy.events)


def test_numbers_beyond_31_bits_keep_their_value() -> None:
    tape = [Segment(True, "S", 2**32 - 1, 0), Segment(False, "SA", 2**32 - 1, 0)]
    frame = lp.read(pcap(tape)).events
    assert frame.seq.tolist() == [0, 0] and frame.ack.iloc[1] == 1


@pytest.mark.parametrize("name", get_args(TableName))
def test_arrow_and_polars_have_the_same_rows(capture: lp.Capture, name: TableName) -> None:
    table = capture.to_arrow(name)
    integers = {str(field.type) for field in table.schema if pa.types.is_integer(field.type)}
    assert integers <= {"int64"} and table.num_rows == capture.arrow(name).num_rows
    polars = pytest.importorskip("polars")
    frame = capture.to_polars(name)
    assert frame.shape == (table.num_rows, table.num_columns)
    unsigned = (polars.UInt8, polars.UInt16, polars.UInt32, polars.UInt64)
    assert not set(frame.dtypes) & set(unsigned)


def test_arrows_protocol_gives_the_exchanges(capture: lp.Capture, results: object) -> None:
    for source in (capture, capture.stream(24), results, results.exchanges):  # type: ignore[attr-defined]
        table = pa.RecordBatchReader.from_stream(source).read_all()
        assert "latency_ms" in table.column_names and table.num_rows == len(source.to_arrow())


def test_sql(capture: lp.Capture, results: object) -> None:
    duckdb = pytest.importorskip("duckdb")
    query = "select count(*) as n, max(latency_ms) as longest, min(start) as first from exchanges where complete"
    complete = capture.exchanges[capture.exchanges.complete]
    for source in (capture, results):
        found = source.sql(query).iloc[0]  # type: ignore[attr-defined]
        assert (found.n, found.longest) == (len(complete), complete.latency_ms.max())
        assert found["first"] == complete.start.min().floor("us")
    assert len(capture.stream(24).sql("select * from exchanges")) == len(capture.stream(24).exchanges)
    joined = capture.sql('select max("window" - len) as m from events join streams using (stream)')
    assert joined.m.item() == (capture.events.window - capture.events.len).max()
    assert capture.sql("select cause from findings").cause.tolist() == capture.findings.cause.tolist()
    with pytest.raises(duckdb.Error):
        capture.sql("select nothing from nowhere")


def test_what_is_not_installed_is_named(capture: lp.Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, ask in {"duckdb": lambda: capture.sql("select 1"), "polars": lambda: capture.to_polars()}.items():
        monkeypatch.setitem(__import__("sys").modules, name, None)
        with pytest.raises(ImportError, match=f"{name} is not installed: pip install {name}"):
            ask()


def test_pickles(capture: lp.Capture, results: object) -> None:
    again = pickle.loads(pickle.dumps(capture))
    assert repr(again) == repr(capture) and str(again.why()) == str(capture.why())
    pd.testing.assert_frame_equal(again.events, capture.events)
    assert again.record(3) == capture.record(3) and again.stream(24).follow().payload(0)
    part = pickle.loads(pickle.dumps(capture.filter("tcp.stream == 24")))
    assert len(part.streams) == 1 and len(part.unfiltered.streams) == 41
    stream = pickle.loads(pickle.dumps(capture.stream(24)))
    assert str(stream.why()) == str(capture.stream(24).why())
    other = pickle.loads(pickle.dumps(results.slice(file=SAMPLE.name)))  # type: ignore[attr-defined]
    assert other.title == results.slice(file=SAMPLE.name).title and other.exchanges.count() == 960  # type: ignore[attr-defined]
    for made in (capture.why(), capture.latency(), capture.waterfall(), capture.flow_graph(exchange="worst")):
        assert type(pickle.loads(pickle.dumps(made))) is type(made)


def test_bytes_are_not_pickled_and_are_missed() -> None:
    again = pickle.loads(pickle.dumps(lp.read(SAMPLE.read_bytes())))
    assert len(again.events) == 4966
    with pytest.raises(lp.CaptureError, match="its bytes are not known any more"):
        again.record(1)


def test_dir_shows_what_is_public(capture: lp.Capture, results: object) -> None:
    for thing in (capture, capture.stream(0), results):
        names = [name for name in dir(thing) if not name.startswith("__")]
        assert "why" in names and "sql" in names and not [name for name in names if name.startswith("_")]
    assert set(dir(lp)) == {*lp.__all__, "__version__"}


def test_attributes(capture: lp.Capture) -> None:
    why, one = capture.why(), capture.why(exchange=160)
    assert (why.verdict, why.server) == ("nagle + delayed_ack", "192.168.0.30:8080")
    assert why.confidence == why.to_dict()["confidence"]
    assert one.verdict == one.to_dict()["top_cause"] and (one.server, one.confidence) == (None, None)
    stream = capture.stream(24)
    assert stream.server == "192.168.0.30:8080" and stream.client.startswith("192.168.0.2:")
    six = lp.read(ROOT / "tests" / "cases" / "stall_ipv6" / "capture.pcap").stream(0)
    assert six.server.startswith("[2001:db8::2]:80")
