"""Does the `latpcap` command answer, and does it say in one line what went wrong? As functions, and as a program."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from commands import PICTURE, START, UNREADABLE, USAGE, answered, complains, program, run
from makepcap import Talk, answer, get, pcap, pcapng

import latpcap as lp
from latpcap import _core
from latpcap.format import escaped

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
SMALL = SAMPLES / "clips" / "quickack.pcap"
STALL = SAMPLES / "clips" / "split-nagle.pcap"
# answers


def test_why_is_the_answer_of_python() -> None:
    assert answered("why", STALL) == f"{lp.read(STALL).why()}\n"
    assert answered("why", STALL, "--stream", 1) == f"{lp.read(STALL).why(stream=1)}\n"
    assert answered("why", STALL, "--exchange", 3) == f"{lp.read(STALL).why(exchange=3)}\n"
    assert answered("why", STALL, "--stream", 1, "--exchange", 3) == f"{lp.read(STALL).stream(1).why(exchange=3)}\n"


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "latpcap", "why", str(STALL)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, PICTURE.sub("", done.stdout)) == (0, f"{lp.read(STALL).why()}\n")


def test_why_as_json() -> None:
    assert json.loads(answered("why", STALL, "--json")) == lp.read(STALL).why().to_dict()


def test_standard_input() -> None:
    data = STALL.read_bytes()
    said = f"{lp.read(STALL).why()}\n".replace(STALL.name, "<stdin>")
    assert program("why", "-", "-Y", "tcp", stdin=data)[1].startswith("<stdin> [tcp]: ")
    for content in (data, gzip.compress(data)):
        assert program("why", "-", stdin=content) == (0, said, "")


@pytest.mark.parametrize("table", _core.TABLES)
def test_tables_as_text(table: str) -> None:
    capture, out = lp.read(SMALL), answered(table, SMALL)
    rows = out.splitlines()
    if capture.arrow(table).num_rows:
        assert rows[0].split() == capture.arrow(table).column_names
        assert len(rows) == capture.arrow(table).num_rows + 1
    else:
        assert out == "no rows\n"


def test_stream_sort_and_top(tmp_path: Path) -> None:
    out = tmp_path / "slow.json"
    assert not answered("exchanges", STALL, "--sort", "latency_ms", "--top", 3, "-o", out)
    rows = json.loads(out.read_text())
    slowest = lp.read(STALL).exchanges["latency_ms"].nlargest(3)
    assert [r["latency_ms"] for r in rows] == slowest.tolist()
    assert len(answered("events", STALL, "--stream", 1, "--top", 5).splitlines()) == 6
    answered("events", STALL, "--stream", 1, "-o", out)
    assert {r["stream"] for r in json.loads(out.read_text())} == {1}
    assert answered("causes", STALL, "--top", 0) == "no rows\n"


@pytest.mark.parametrize("column", ["flags", "src", "released_by", "sack", "time"])
def test_any_column_sorts_or_says_that_it_cannot(column: str) -> None:
    code, _, err = run("events", SMALL, "--sort", column, "--top", 1)
    assert "Traceback" not in err and code in (0, USAGE) and len(err.splitlines()) == bool(code), err


@pytest.mark.parametrize("table", _core.TABLES)
def test_round_trips(table: str, tmp_path: Path) -> None:
    want = lp.read(SMALL).arrow(table)
    if table == "issues":
        want = lp.read(SAMPLES / "probes.pcap").arrow(table)
    source = SAMPLES / "probes.pcap" if table == "issues" else SMALL
    files = {s: tmp_path / f"out{s}" for s in (".parquet", ".csv", ".json")}
    for path in files.values():
        answered(table, source, "-o", path)
    back = pq.read_table(files[".parquet"])
    rows = [{**r, "file": str(source)} if "file" in r else r for r in want.to_pylist()]
    assert back.column_names == want.column_names and back.to_pylist() == rows
    types = [[str(f.type).replace("element:", "item:") for f in schema] for schema in (back.schema, want.schema)]
    assert types[0] == types[1]  # Parquet has a name of its own for the items of a list
    assert _core.SCHEMA_VERSION.encode() in (back.schema.metadata or {}).values()
    plain = json.loads(files[".json"].read_text(encoding="utf-8"))
    for got, row in zip(plain, rows, strict=True):
        assert list(got) == list(row)
        for name, value in row.items():
            if hasattr(value, "nanosecond"):
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", got[name])
                assert got[name] == f"{value:%Y-%m-%dT%H:%M:%S.%f}{value.nanosecond:03}Z"
            else:
                assert got[name] == value, name
    lines = list(csv.reader(io.StringIO(files[".csv"].read_text(encoding="utf-8"))))
    assert lines[0] == want.column_names and len(lines) == want.num_rows + 1
    if want.num_rows:
        table_back = pa_csv.read_csv(files[".csv"])
        for name in ("frame", "len", "latency_ms", "duration_ms", "exchange", "status", "count"):
            if name in want.column_names:
                assert table_back[name].to_pylist() == want[name].to_pylist()


def test_a_capture_cannot_write_on_the_terminal(tmp_path: Path) -> None:
    """Escape sequences of a hostile request are shown, not obeyed; files keep the target as it was.

    (A title is set here: click itself drops colours, but only where the output is no terminal.)
    """
    talk = Talk()
    talk.open()
    talk.client(5, b"GET /\x1b]0;owned\x07red HTTP/1.1\r\n\r\n")
    talk.server(6, b"".join(answer(5)))
    path, out = tmp_path / "hostile.pcap", tmp_path / "out.json"
    path.write_bytes(pcap(talk.tape))
    for words in (["why", path], ["why", path, "--exchange", 0], ["exchanges", path]):
        text = answered(*words)
        assert all(c.isprintable() or c == "\n" for c in text), repr(text)
    answered("exchanges", path, "-o", out)
    assert json.loads(out.read_text())[0]["target"] == "/\x1b]0;owned\x07red"


def test_flow_draws_a_picture(tmp_path: Path) -> None:
    out = tmp_path / "flow.png"
    answered("flow", STALL, "--stream", 0, "-o", out, "--frames", "1-30")
    assert out.read_bytes().startswith(b"\x89PNG\r\n")


def test_help_and_version() -> None:
    assert answered("--version") == f"latpcap {lp.__version__}\n"
    listed = answered("--help")
    assert all(f"\n  {name} " in listed for name in ("why", "flow", *_core.TABLES))
    summaries = [text.partition("Commands:")[2] for text in (listed, answered("plot", "--help"))]
    assert all(summaries) and not any("..." in text for text in summaries), "a summary is cut"
    code, out, err = run()
    assert (code, out) == (USAGE, "") and "Usage" in err and "Traceback" not in err


def test_what_was_written_is_named_at_the_end(tmp_path: Path) -> None:
    table, picture = tmp_path / "a b\x1b.csv", tmp_path / "flow.png"
    for words in (("exchanges", SMALL, "-o", table), ("flow", SMALL, "--exchange", "worst", "-o", picture)):
        done = subprocess.run([*START, *map(str, words)], capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == f"wrote {escaped(str(words[-1]))}\n" and "\x1b" not in done.stderr
    done = subprocess.run([*START, "why", str(SMALL)], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == "", "an answer writes no file"
    refused = subprocess.run(
        [*START, "events", str(SMALL), "-o", str(SMALL)], capture_output=True, text=True, check=False
    )
    assert refused.returncode == USAGE and "wrote" not in refused.stderr


# complaints


def test_exit_codes_of_the_program(tmp_path: Path) -> None:
    calls = [(0, ["why", SMALL]), (USAGE, ["events", SMALL, "--sort", "x"]), (UNREADABLE, ["why", tmp_path])]
    for code, words in calls:
        assert program(*words) == run(*words)
        assert program(*words)[0] == code


def test_files_that_are_no_capture(tmp_path: Path) -> None:
    text, empty, cut = (tmp_path / name for name in ("text.pcap", "empty.pcap", "cut.pcap"))
    text.write_text("once upon a time\n")
    empty.write_bytes(b"")
    cut.write_bytes(SMALL.read_bytes()[:17])
    for words in (("why",), ("events",), ("issues",)):
        assert "none.pcap: no such file" in complains(UNREADABLE, *words, tmp_path / "none.pcap")
        assert "is a directory" in complains(UNREADABLE, *words, tmp_path)
        assert "byte 0: not a pcap or pcapng file" in complains(UNREADABLE, *words, text)
        assert "byte 0: file is empty" in complains(UNREADABLE, *words, empty)
        assert "needed 24 bytes, had 17" in complains(UNREADABLE, *words, cut)


def test_results_where_a_capture_is_expected(tmp_path: Path) -> None:
    lp.batch(SMALL, tmp_path, quiet=True)
    for words in (
        ("streams",),
        ("exchanges",),
        ("events", "--csv"),
        ("plot", "throughput", "-o", "x.png"),
        ("why", "--stream", 0, "-Y", "tcp"),
    ):
        code, _, err = run(*words, tmp_path)
        assert code and "is a directory" not in err and ("results of a batch" in err or "its file instead" in err)


def test_columns_are_chosen(tmp_path: Path) -> None:
    words = ("exchanges", SMALL, "--sort", "latency_ms", "--top", 2, "--columns", "top_cause, stream")
    rows = answered(*words).splitlines()
    assert rows[0].split() == ["top_cause", "stream"] and len(rows) == 3
    assert answered(*words, "-o", tmp_path / "x.csv") == ""
    assert (tmp_path / "x.csv").read_text().splitlines()[0] == '"top_cause","stream"'
    assert answered("findings", SMALL, "--columns", "fix").splitlines()[0].split() == ["fix"]
    assert "no column 'latency'; near: latency_ms" in complains(
        USAGE, "exchanges", SMALL, "--columns", "stream,latency"
    )


def test_wrong_usage(tmp_path: Path) -> None:
    assert "no exchange 30: those of quickack.pcap are 0 to 29" in complains(USAGE, "why", SMALL, "--exchange", 30)
    assert "no column 'latency'" in complains(USAGE, "exchanges", SMALL, "--sort", "latency")
    assert "latency_ms" in complains(USAGE, "exchanges", SMALL, "--sort", "latency")  # the near one is named
    assert "unknown suffix '.xlsx'" in complains(USAGE, "events", SMALL, "-o", tmp_path / "out.xlsx")
    assert "no stream 2: quickack.pcap has 2 TCP streams" in complains(USAGE, "why", SMALL, "--stream", 2)
    assert "no stream 2" in complains(USAGE, "events", SMALL, "--stream", 2)
    assert "no exchange 30" in complains(USAGE, "why", SMALL, "--exchange", 30)
    assert "FIRST-LAST" in complains(USAGE, "flow", SMALL, "--stream", 0, "-o", tmp_path / "x.png", "--frames", "9")
    for words in (("why", SMALL, "--stream", -1), ("why", SMALL, "--stream", "x"), ("nonsense", SMALL), ("why",)):
        complains(USAGE, *words)


def test_a_number_beyond_all_exchanges() -> None:
    assert "no exchange" in complains(USAGE, "why", SMALL, "--exchange", 10**30)


@pytest.mark.parametrize("name", ["no/such/folder/out.csv", "folder.csv"])
def test_outputs_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert name in complains(USAGE, "events", SMALL, "-o", tmp_path / name)
    picture = tmp_path / name.replace(".csv", ".png")
    if name == "folder.csv":
        picture.mkdir()
    assert picture.name in complains(USAGE, "flow", SMALL, "--stream", 0, "-o", picture)


def test_a_failed_output_leaves_what_was_there(tmp_path: Path) -> None:
    old = tmp_path / "out.xlsx"
    old.write_text("mine")
    complains(USAGE, "events", SMALL, "-o", old)
    assert old.read_text() == "mine"


def four_exchanges() -> Talk:
    talk = Talk()
    talk.open()
    for i in range(4):
        talk.client(10 * i + 5, get())
        talk.server(10 * i + 8, b"".join(answer(20)))
    return talk


def damaged(kind: str) -> tuple[bytes, int, int]:
    """A capture whose seventh frame lies about its length; the offset of that record and the frame's number."""
    tape = four_exchanges().tape
    write = pcap if kind == "pcap" else pcapng
    before, data = len(write(tape[:6])), bytearray(write(tape))
    if kind == "pcap":
        data[before + 8 : before + 12] = struct.pack("<I", 0x7FFFFFFF)
    else:
        data[before + 4 : before + 8] = struct.pack("<I", 0x7FFFFFFF)
    return bytes(data), before, 7


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_lying_length_gives_the_rows_before_it(kind: str, tmp_path: Path) -> None:
    data, offset, frame = damaged(kind)
    path, out = tmp_path / "lies.pcap", tmp_path / "out.json"
    path.write_bytes(data)
    for words in (("why",), ("events", "-o", out)):
        code, _, err = run(words[0], path, *words[1:])
        assert code == 0 and re.fullmatch(rf"latpcap: warning: [^\n]*byte {offset}, frame {frame}: [^\n]+\n", err), err
    assert [r["frame"] for r in json.loads(out.read_text())] == [1, 2, 3, 4, 5, 6]
    code, _, _ = run("issues", path, "-o", out)
    (row,) = json.loads(out.read_text())
    assert code == 0
    assert (row["kind"], row["offset"], row["frame"], row["layer"]) == ("damaged", offset, frame, kind)
    assert row["file"] == str(path) and row["count"] == 1


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_file_cut_inside_a_record_gives_the_rows_before_it(kind: str, tmp_path: Path) -> None:
    write = pcap if kind == "pcap" else pcapng
    tape = four_exchanges().tape
    path, offset = tmp_path / "cut.pcap", len(write(tape[:6]))
    for more in (1, 9, 30, 60):
        path.write_bytes(write(tape)[: offset + more])
        code, out, err = run("streams", path)
        assert code == 0 and len(out.splitlines()) == 2
        # of a pcapng block whose type is cut nobody knows whether it is a frame
        frame = "" if (kind, more) == ("pcapng", 1) else ", frame 7"
        assert re.fullmatch(rf"latpcap: warning: [^\n]*byte {offset}{frame}: [^\n]+\n", err), err


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`latpcap events … | head -1`: 5 MB of text for a pipe that closes after one line."""
    command = [*START, "events", str(SAMPLES / "nginx-latency.pcap")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert b"frame" in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


# filters and slices


def test_a_filter_limits_the_answer_the_tables_and_the_slice(tmp_path: Path) -> None:
    expression = "tcp.stream == 1 and tcp.time_delta > 0.03"
    part = lp.read(STALL).filter(expression)
    assert answered("why", STALL, "-Y", expression) == f"{part.why()}\n"
    answered("exchanges", STALL, "--filter", expression, "-o", tmp_path / "x.csv")
    assert pa_csv.read_csv(tmp_path / "x.csv")["exchange"].to_pylist() == part.exchanges["exchange"].tolist()
    assert answered("slice", STALL, "-Y", expression, "-o", tmp_path / "part.pcap") == ""
    assert len(lp.read(tmp_path / "part.pcap").events) == len(part.events) > 0
    answered("slice", STALL, "--stream", 1, "-o", tmp_path / "one.pcapng")
    assert len(lp.read(tmp_path / "one.pcapng").events) == len(lp.read(STALL).stream(1).events)
    assert "is the capture itself" in complains(USAGE, "slice", STALL, "-o", STALL)


def test_a_mistake_in_a_filter_is_shown_under_its_character() -> None:
    code, out, err = run("why", STALL, "-Y", "tcp.prot == 80")
    lines = err.splitlines()
    assert (code, out, len(lines)) == (USAGE, "", 3)
    assert lines[0].startswith("latpcap: filter: 'tcp.prot' is no field that latpcap filters by; near: tcp.port")
    assert lines[1:] == ["    tcp.prot == 80", "    ^~~~~~~~"]
    assert run("why", "no such file", "-Y", "tcp and")[0] == USAGE  # said before the file is read


def test_follow_prints_what_python_gives() -> None:
    said = lp.read(STALL).stream(1).follow()
    assert answered("follow", STALL, "--stream", 1) == said.text()
    assert answered("follow", STALL, "--stream", 1, "--frames") == str(said)
    assert answered("follow", STALL, "--stream", 1, "--as", "hex") == said.hex()
    code, out, err = program("follow", "-", "--stream", 1, "--as", "raw", stdin=STALL.read_bytes())
    assert (code, out, err) == (0, said.raw(), "")
    assert "expected text, hex, raw, got 'yaml'" in complains(USAGE, "follow", STALL, "--stream", 1, "--as", "yaml")
    assert "no stream 99" in complains(USAGE, "follow", STALL, "--stream", 99)
