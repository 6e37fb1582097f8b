"""Do filters, stored results and captures that nobody meant to be read end in an answer or in one of our errors?

Reads the clips and the cases and changes them at random: a target per kind of input, a round per seed.
`.ci/hostile.py` runs rounds for a given time, tests/test_hostile.py a few of each.
"""

from __future__ import annotations

import gzip
import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import latpcap as lp
from latpcap.archive import layout

ROOT = Path(__file__).resolve().parents[1]
CLIPS = ROOT / "sample_pcaps" / "clips"
CASES = ROOT / "tests" / "cases"
EDGES = (0, 1, 0x7F, 0x80, 0xFF)

Round = Callable[[random.Random], None]


@cache
def captures() -> list[bytes]:
    packed = [*sorted(CASES.glob("*/capture.*")), *sorted(CLIPS.glob("*.pcap"))]
    found = (gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes() for p in packed)
    return [data for data in found if len(data) < 40_000]


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


TARGETS: dict[str, Round] = {"filters": filters, "results": results, "flips": flips, "captures": mutants}


def one(target: str, seed: int) -> None:
    """A round of this target; the same seed does the same."""
    TARGETS[target](random.Random(f"{target} {seed}"))
