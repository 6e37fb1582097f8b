"""Do filters, results, captures and texts that nobody meant to be read end in an answer or in one of our errors?

Reads the clips and the cases, and the captures below the folder LATPCAP_HOSTILE where there is one, and changes them
at random: a target per kind of input, a round per seed. `.ci/hostile.py` runs rounds for a given time,
tests/test_hostile.py a few of each.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import pyarrow.parquet as pq
from makepcap import Talk, pcap
from packers import PACKERS

import latpcap as lp
from latpcap.archive import layout
from latpcap.cli import main

ROOT = Path(__file__).resolve().parents[1]
CLIPS = ROOT / "sample_pcaps" / "clips"
CASES = ROOT / "tests" / "cases"
BESIDE = ROOT / "tests" / "beside"
EDGES = (0, 1, 0x7F, 0x80, 0xFF)
MOST_BYTES = 40_000
"""Longer captures are left out: a round shall be short."""

Round = Callable[[random.Random], None]


@cache
def captures() -> list[bytes]:
    more = Path(os.environ["LATPCAP_HOSTILE"]).rglob("*.*cap*") if "LATPCAP_HOSTILE" in os.environ else []
    packed = chain(sorted(CASES.glob("*/capture.*")), sorted(CLIPS.glob("*.pcap")), sorted(more))
    held = [path.read_bytes() for path in packed if path.is_file() and path.stat().st_size < MOST_BYTES]
    for number, data in enumerate(held):
        with contextlib.suppress(OSError, EOFError, zlib.error):  # what is no gzip stays as it is
            held[number] = gzip.decompress(data)
    return [data for data in held if len(data) < MOST_BYTES]


def changed(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped, bytes set, a piece cut out, doubled or put elsewhere, the end missing."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if not out:
            return b""
        at, size = rng.randrange(len(out)), rng.choice((1, 2, 4, 16, 200))
        match rng.randrange(6):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at] = rng.choice(EDGES)
            case 2:
                out[at : at + 4] = rng.randbytes(4)
            case 3:
                del out[at : at + size]
            case 4:
                out[at:at] = out[at : at + size]
            case 5:
                del out[rng.randrange(len(out)) :]
    return bytes(out)


# filters

LANGUAGE = (
    "tcp.port tcp.stream tcp.len tcp.flags tcp.flags.syn tcp.analysis.flags tcp.analysis.ack_rtt ip.addr ip.src "
    "frame.number frame.time frame.time_delta tcp.time_relative http.request http.request.uri http.response.code "
    "http.time tcp.options.sack_le tcp.options.mss_val ip ipv6 tcp http == != !== === > < >= <= & contains matches "
    "in not and or xor all any ! && || ^^ ( ) { } [ ] .. , 0 1 80 0x10 07 -1 1.5 1e9 99999999999999999999 10.0.0.1 "
    "10.0.0.0/8 ::1 fe80::/10 True "
    '"GET" "/" "(" "\\x41" r"\\d+" \'a\' "2026-11-21 06:07:32" \\ " \N{SNOWMAN} \0 \n tcp.prot frame'
)
WORDS = LANGUAGE.split(" ")


@cache
def small() -> tuple[lp.Capture, set[int]]:
    capture = lp.read(CLIPS / "split-nagle.pcap")
    return capture, set(capture.arrow("events")["frame"].to_pylist())


def filters(rng: random.Random) -> None:
    """An expression of the language's own words is refused where it is wrong, or chooses frames; `not` the others."""
    capture, every = small()
    expression = " ".join(rng.choices(WORDS, k=rng.choice((1, 2, 3, 3, 3, 5, 7, 12))))
    if rng.random() < 0.5:
        expression = rng.choice(("tcp.port == 80 and ", "not ", "(tcp.len > 0) or ", "tcp.len in {")) + expression
    try:
        chosen = set(capture.filter(expression).arrow("events")["frame"].to_pylist())
    except lp.FilterError as problem:
        assert 0 <= problem.offset <= len(expression) and problem.reason and str(problem).count("\n") == 2
        return
    others = set(capture.filter(f"!({expression})").arrow("events")["frame"].to_pylist())
    assert not chosen & others and chosen | others == every, expression


# results


@cache
def stored() -> tuple[Path, dict[Path, bytes]]:
    """A folder of results, and what its files hold."""
    place = Path(tempfile.mkdtemp(prefix="latpcap-hostile-"))
    sources = [CLIPS / "split-nagle.pcap", CLIPS / "think40.pcap", CASES / "closed_without_answer" / "capture.pcap"]
    lp.batch(sources, place, quiet=True)
    return place, {path: path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}


def results(rng: random.Random) -> None:
    """A stored file that is damaged, missing or another's gives an answer, or one of our errors."""
    place, files = stored()
    path = rng.choice(list(files))
    try:
        match rng.randrange(8):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(b"")
            case 2:
                path.write_bytes(rng.choice(list(files.values())))
            case _:
                path.write_bytes(changed(files[path], rng))
        opened = lp.open_results(place)
        str(opened.why()), opened.findings, repr(opened), opened.failed
        opened.exchanges.to_arrow([("latency_ms", ">", 1.0)]), opened.latency("server")
        opened.slice(server="10.0.0.2").why().to_dict()
    except lp.LatpcapError as problem:
        assert str(problem) and "\n" not in str(problem), problem
    finally:
        path.write_bytes(files[path])


@cache
def told() -> dict[str, object]:
    """What the results say while they are whole, table by table."""
    opened = lp.open_results(stored()[0])
    return {name: getattr(opened, name).to_arrow().to_pylist() for name in layout.TABLES}


def flips(rng: random.Random) -> None:
    """A bit that is flipped anywhere gives the same rows, or an error, or a failure that says what is left out."""
    place, files = stored()
    whole = told()
    path = rng.choices(list(files), [len(data) for data in files.values()])[0]
    at = rng.randrange(len(files[path]))
    data = bytearray(files[path])
    data[at] ^= 1 << rng.randrange(8)
    try:
        path.write_bytes(data)
        opened = lp.open_results(place)
        names = [path.parent.name] if path.parent.name in layout.TABLES else layout.TABLES
        if not opened.failed:
            for name in names:
                assert getattr(opened, name).to_arrow().to_pylist() == whole[name], (path, at)
    except lp.LatpcapError as problem:
        assert str(problem) and "\n" not in str(problem), problem
    finally:
        path.write_bytes(files[path])


# captures


def mutants(rng: random.Random) -> None:
    """A changed capture gives rows and answers, or a CaptureError of one line."""
    data = changed(rng.choice(captures()), rng)
    try:
        capture = lp.read(data)
    except lp.CaptureError as problem:
        assert problem.reason and "\n" not in str(problem)
        return
    str(capture.why()), repr(capture), capture.findings, capture.latency(by="server")
    for number in {0, len(capture.streams) - 1} if len(capture.streams) else ():
        stream = capture.stream(number)
        str(stream.why()), stream.follow().hex()
    frames = capture.arrow("events")["frame"].to_pylist()
    if frames:
        capture.flow_graph().text()
    assert frames == sorted(frames) and len(frames) <= capture.frames


# files of several kinds, as a command is given them


@cache
def folder() -> Path:
    """A folder for the files of a round."""
    return Path(tempfile.mkdtemp(prefix="latpcap-hostile-"))


@contextlib.contextmanager
def files(**held: bytes) -> Iterator[dict[str, Path]]:
    """Files with these bytes, which are gone afterwards."""
    paths = {name: folder() / name for name in held}
    try:
        for name, path in paths.items():
            path.write_bytes(held[name])
        yield paths
    finally:
        for path in folder().iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def packed(rng: random.Random) -> None:
    """A capture that is changed, compressed and changed again; also as one of several files."""
    data = rng.choice(captures())
    pack = rng.choice(list(PACKERS.values()))
    members = [changed(pack(changed(data, rng)), rng) for _ in range(rng.choice((1, 1, 3)))]
    with contextlib.suppress(lp.CaptureError):
        str(lp.read(members[0] if len(members) == 1 else members).why())


def pasted(rng: random.Random) -> None:
    """Text that tcpdump might have printed is a capture of headers, or none."""
    text = rng.choice(sorted((ROOT / "tests" / "pasted").glob("*.txt"))).read_bytes()
    if rng.random() < 0.5:
        lines = text.splitlines(keepends=True)
        text = b"".join(rng.choices(lines, k=rng.choice((1, 5, 40))))
    try:
        capture = lp.read(changed(text, rng))
    except lp.CaptureError as problem:
        assert "\n" not in str(problem)
        return
    str(capture.why()), capture.headers, [record.data for record in capture.records()]


@cache
def traced() -> lp.Capture:
    return lp.read(BESIDE / "nginx.pcap.gz")


def beside(rng: random.Random) -> None:
    """A trace or a log that is changed says less, or why it says nothing."""
    name, file = rng.choice((("strace", "nginx.strace"), ("access_log", "access.log")))
    lines = (BESIDE / file).read_bytes().splitlines(keepends=True)
    begin = rng.randrange(len(lines))
    data = b"".join(lines[begin : begin + rng.choice((1, 20, 400))])
    for _ in range(rng.choice((0, 1, 10))):
        data = changed(data, rng)
    with files(beside=data) as paths, contextlib.suppress(lp.LatpcapError):
        given = {name: paths["beside"]}
        told = traced().why(**given)  # type: ignore[arg-type]
        str(told), told.to_dict()


@cache
def sealed() -> list[tuple[bytes, bytes]]:
    """Captures of TLS, and the key logs that they bring."""
    found = []
    for path in sorted(CASES.glob("*/capture.pcapng")):
        data = path.read_bytes()
        begin = max(data.find(b"CLIENT_HANDSHAKE"), data.find(b"CLIENT_RANDOM "))
        if begin > 0:
            found.append((data, data[begin : begin + 4000]))
    return found


def keys(rng: random.Random) -> None:
    """A key log that is changed opens less."""
    data, text = rng.choice(sealed())
    with files(keys=changed(text, rng)) as paths, contextlib.suppress(lp.CaptureError):
        capture = lp.read(changed(data, rng) if rng.random() < 0.5 else data, keylog=paths["keys"])
        str(capture.why()), capture.issues


ASKED = (
    "why {a}|why {a} --json|why {a} --stream 0|why {a} --exchange worst|why {a} --top 3|why {a} {b}|"
    "why {a} {b} --together|why {a} -Y tcp.len>0|{a}|why {a} --start 0.01|why {a} --end 0.5|streams {a}|"
    "events {a} --csv|exchanges {a} --json|exchanges {a} -o {out}.parquet|exchanges {a} -Y frame.number>5 --jsonl|"
    "connects {a}|pushes {a}|gaps {a}|causes {a}|findings {a}|evidence {a}|lookups {a}|probes {a}|issues {a}|"
    "batch {a} {b} -o {out} --quiet|compare {a} {b}|compare {a} {b} --json|compare {a} {b} -o {out}.html|"
    "flow {a} -o -|flow {a} --stream 0 -o {out}.svg|flow {a} --flows all -o {out}.txt|"
    "flow {a} --flows icmp -o {out}.txt|flow {a} --exchange worst -o {out}.png|"
    "flow {a} --stream 0 --beside {b} --beside-stream 0 -o {out}.png|follow {a} --stream 0|"
    "follow {a} --stream 1 --as hex|har {a} -o {out}.har|slice {a} --stream 0 -o {out}.pcap|"
    "slice {a} --anonymise -o {out}.pcap|slice {a} -Y tcp -o {out}.pcapng.gz|latency {a}|"
    "latency {a} --by server --json|report {a} -o {out}.html|report {a} --as wrk|report {a} --as ping|"
    "report {a} --as curl|report {a} --as hping3|report {a} --as traceroute|plot waterfall {a} -o {out}.png|"
    "plot timeline {a} -o {out}.svg|plot latency {a} -o {out}.png|plot time-sequence {a} --stream 0 -o {out}.png|"
    "plot throughput {a} -o {out}.svg|plot evidence {a} -o {out}.png|plot delay {a} {b} -o {out}.png|transfers {a}|"
    "waits {a} --json|actions {a}|groups {a} --csv|conversations {a}|endpoints {a} --csv|hierarchy {a}|processes {a}|"
    "expert {a}|expert {a} --json|export {a} --to otlp -o {out}.jsonl|export {a} --to perfetto -o {out}.json|"
    "join {a} {b}|join {a} {b} --table packets --csv|join {a} --table parts|why {a} --actions|why {a} --for-owner|"
    "exchanges {a} --names otel --json|exchanges {a} -Y http.file_data -o {out}.csv|"
    "slice {a} --anonymise -Y tcp.segment_data -o {out}.pcapng"
)
COMMANDS = ASKED.split("|")


def commands(rng: random.Random) -> None:
    """A command on a changed capture ends with a code that means something, and with one line where it is not 0."""
    one, other = (changed(rng.choice(captures()), rng) for _ in range(2))
    words = rng.choice(COMMANDS)
    with files(a=one, b=other) as paths:
        said = [word.format(out=folder() / "out", **paths) for word in words.split()]
        out, err, code = io.TextIOWrapper(io.BytesIO()), io.StringIO(), 0
        with (
            mock.patch.object(sys, "argv", ["latpcap", *said]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as end:
                assert isinstance(end.code, int)
                code = end.code
        text = "".join(line for line in err.getvalue().splitlines(True) if not line.startswith("latpcap: warning: "))
        assert code in (0, 1, 2, 3), (words, code, text)
        assert "this is a bug" not in text and "out of range" not in text, (words, text)
        assert code in (0, 1) or text.count("\n") == 1, (words, text)
        if not code:
            out.flush()
            said_out = out.buffer.getvalue()  # type: ignore[attr-defined]
            made = [path for path in folder().rglob("*") if path.is_file() and path not in paths.values()]
            whole("-", said_out, words)
            for path in made:
                whole("".join(path.suffixes[-1:]), path.read_bytes(), words)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What nobody may write on a terminal or a page: controls, separators of lines, marks that turn text round."""
_SCRIPT = re.compile(rb"<script", re.IGNORECASE)


def whole(kind: str, data: bytes, words: str) -> None:
    """An output is what its name says, can be read again, and writes nothing of its own on a terminal."""
    if kind in ("-", ".txt", ".csv"):
        text = data.decode()
        if words.startswith("follow"):  # what was sent keeps its ends of lines
            text = text.replace("\r", "")
        found = _CONTROL.search(text)
        assert found is None, (words, found)
    elif kind in (".har", ".json"):
        json.loads(data)
    elif kind == ".svg":
        names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(data).iter()}
        assert not names & {"script", "foreignObject", "image"}, (words, names)
    elif kind == ".html":
        assert len(_SCRIPT.findall(data)) == 1 and not _CONTROL.search(data.decode()), words
    elif kind == ".png":
        assert data.startswith(b"\x89PNG") and data.endswith(b"IEND\xaeB\x60\x82"), words
    elif kind in (".pcap", ".gz", ".pcapng"):
        again = lp.read(gzip.decompress(data) if kind == ".gz" else data)
        assert not again.damage, (words, again.damage)
    elif kind == ".parquet":
        pq.read_table(io.BytesIO(data))


@cache
def tools() -> Any:
    """The MCP server's tools, without its client."""
    from latpcap.cli import mcp

    return mcp.server([folder()])


def agents(rng: random.Random) -> None:
    """A tool's answer about a changed capture is one that an agent can read, or an error of some length."""
    try:
        import anyio
        from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError

        from latpcap.cli.mcp import MAX_CHARACTERS

        serves = tools()
    except ModuleNotFoundError:
        return
    table = rng.choice(["exchanges", "events", "findings", "causes", "waits", "actions", "streams", "issues"])
    name, given = rng.choice([
        ("why", {}), ("why", {"numbers": True}), ("why", {"stream": 0, "exchange": 0}), ("why", {"filter": "tcp"}),
        ("tables", {"table": table, "top": rng.choice((1, 500, -1, 10**9))}), ("flow", {}), ("follow", {"stream": 0}),
        ("tables", {"table": table, "sort": rng.choice(("latency_ms", "start", "no"))}), ("captures", {}),
        ("why", {"display_filter": "frame matches \"(a+)+b\""}),
    ])  # fmt: skip
    with files(**{"a.pcap": changed(rng.choice(captures()), rng)}):
        file = {} if name == "captures" else {"file": rng.choice(("a.pcap", "a.pcap", "a.pcap", "../x", "/etc/passwd"))}
        try:
            found = anyio.run(lambda: serves.call_tool(name, {**file, **given}))
            text = "".join(getattr(one, "text", "") for one in found.content)
        except UnexpectedToolError:
            raise
        except ToolError as problem:
            text = str(problem)
        assert len(text) <= MAX_CHARACTERS + 100 and "Traceback" not in text, (name, given)
        assert "root:" not in text


_URLS = (
    "/ ? & ; # = : @ % %25 %3A %3D %2526 + , | [ ] ( ) { } \" ' < > . - -- ~ x=1; a=b& (S( )) reset/ hooks/ bot12: key "
    "token password user name value state= code= http:// //a:b@ jdbc: eyJ Basic+ Authorization: +eq+ 7f3Ka9 \u00e9"
)
IN_URLS = _URLS.split(" ")
MOST_URL_S = 5.0
"""A URL of some kilobytes takes a few milliseconds."""


def urls(rng: random.Random) -> None:
    """Whatever a URL nests, it is shown in time, its secret is not, and what is masked is so once more."""
    pieces = rng.choices(rng.sample(IN_URLS, rng.choice((1, 2, 5, len(IN_URLS)))), k=rng.choice((3, 20, 300, 3000)))
    secret = "".join(rng.choices("abcdefgh", k=5)) + "7" + "".join(rng.choices("ijklmnop", k=5))
    begin = rng.choice(("/a?password=", "/a?n=1&api_key=", "/reset/", "/(S(", "/a;sid=", "http://me:"))
    end = {"h": "@h", "(": "))"}.get(begin[-1] if begin[-1] == "(" else begin[0], "")
    for url in ("".join(pieces), f"{begin}{secret}{end}", f"{begin}{secret}{end}/{''.join(pieces)}"):
        line = b"GET /" + url.replace(" ", "+").lstrip("/").encode()
        line = line if not url.startswith("http") else b"GET " + url.encode()
        talk = Talk()
        talk.open()
        for at in range(0, len(line), 1400):
            talk.client(3.0 + at / 1e5, line[at : at + 1400])
        talk.client(4.0, b" HTTP/1.1\r\nHost: h\r\n\r\n")
        talk.server(9.0, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        before = time.process_time()
        target = lp.read(pcap(talk.tape, nanos=True)).arrow("exchanges")["target"].to_pylist()
        assert time.process_time() - before < MOST_URL_S, url[:200]
        assert secret not in str(target), (url[:200], target)


TARGETS: dict[str, Round] = {
    "filters": filters,
    "results": results,
    "flips": flips,
    "captures": mutants,
    "packed": packed,
    "pasted": pasted,
    "beside": beside,
    "keys": keys,
    "commands": commands,
    "agents": agents,
    "urls": urls,
}


def one(target: str, seed: int) -> None:
    """A round of this target; the same seed does the same."""
    TARGETS[target](random.Random(f"{target} {seed}"))
