"""What a command shows is the same however many bytes it reads before it takes rows: text, numbers and pictures."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from archives import CLIPS, SAMPLES, later, plain
from commands import run

import latpcap as lp
from latpcap.archive import worker
from latpcap.cli import tables as printed
from latpcap.reading import drain, sources
from latpcap.tables import LINKS
from latpcap.views import projection
from latpcap.views.capture import read_stream

ROOT = Path(__file__).resolve().parents[1]
EVERYTHING = 1 << 40
COMMANDS = [
    "flow FILE --exchange {exchange} -o OUT.svg",
    "flow FILE --exchange worst",
    "flow FILE --stream {stream} -o OUT.svg",
    "plot time-sequence FILE --stream {stream} -o OUT.svg",
    "plot waterfall FILE -o OUT.svg --by server",
    "plot timeline FILE -o OUT.svg",
    "plot latency FILE -o OUT.svg",
    "report FILE -o OUT.html",
    "why FILE --json",
    "findings FILE --csv",
    "latency FILE --by top_cause",
    *(f"{name} FILE --csv" for name in lp.read(SAMPLES / "probes.pcap").tables()),
]


@contextmanager
def takes(size: int) -> Iterator[None]:
    """Rows are taken each time that so many bytes were read."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((drain, "TAKE_BYTES"), (projection, "TAKE_BYTES"), (printed, "_TAKE_BYTES")):
            patch.setattr(module, name, size)
        patch.setattr(sources, "BLOCK_BYTES", min(size, sources.BLOCK_BYTES))
        patch.setattr(worker, "_HAND_ON_BYTES", size)
        patch.setattr(projection, "COPY_ROWS", 64)
        yield


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thousands of exchanges, whose causes fill more than one of the engine's batches."""
    path = tmp_path_factory.mktemp("long") / "a.pcap"
    data = (SAMPLES / "nginx-latency.pcap").read_bytes()
    path.write_bytes(b"".join([data, *(later(data, 10 * n)[24:] for n in (1, 2))]))
    return path


def shown(command: str, path: Path, folder: Path) -> tuple[int, str, str, bytes]:
    """What a command prints and writes."""
    out = folder / ("out" + (re.findall(r"OUT(\.\w+)", command) or [""])[0])
    out.unlink(missing_ok=True)
    words = [str(path) if w == "FILE" else str(out) if w.startswith("OUT") else w for w in command.split()]
    code, text, said = run(*words)
    return code, text, said, out.read_bytes() if out.exists() else b""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_shows_the_same_for_any_portion(command: str, long: Path, tmp_path: Path, rng: random.Random) -> None:
    whole = lp.read(long)
    exchange = rng.choice(whole.arrow("exchanges")["exchange"].to_pylist())
    stream = rng.choice(whole.arrow("exchanges")["stream"].to_pylist())
    small = rng.choice(sorted(CLIPS.glob("*.pcap")))
    sizes_of_long = [1 << rng.randrange(15, 22), *([] if "OUT" in command else [1 << 17])]  # pictures take seconds
    for path, sizes in ((long, sizes_of_long), (small, [1 << 12])):
        words = command.format(exchange=exchange if path == long else "first", stream=stream if path == long else 0)
        with takes(EVERYTHING):
            expected = shown(words, path, tmp_path)
        for size in sizes:
            with takes(size):
                assert shown(words, path, tmp_path) == expected, (words, path, size)


def test_every_picture_of_an_exchange_has_its_causes(long: Path, rng: random.Random) -> None:
    """Also of the exchanges at the end of a batch, whose causes fill the next one."""
    whole = lp.read(long)
    size = 1 << rng.randrange(12, 20)
    with takes(size):
        for number in rng.sample(range(len(whole.streams)), 6):
            alone, mine = read_stream(long, number), whole.stream(number)
            for name in (*LINKS.values(), "causes", "events"):
                assert alone.arrow(name).to_pylist() == mine.arrow(name).to_pylist(), (name, number, size)  # type: ignore[arg-type]
        streams = range(len(whole.streams))
        together = projection.read(long, projection.of_streams(streams))
        assert together.arrow("causes").to_pylist() == whole.arrow("causes").to_pylist(), size


def test_rows_of_one_portion_belong_together(long: Path, rng: random.Random) -> None:
    size = 1 << rng.randrange(12, 18)
    parts: dict[str, list[pa.Table]] = {name: [] for name in drain.TABLES}
    with takes(size):
        feed = drain.Feed(long)
        for portion in drain.portions(feed, skip_tables=()):
            found = {name: drain.table(rows) for name, rows in portion.items()}
            for link, name in LINKS.items():
                mine = set(found["causes"][link].drop_null().to_pylist())
                assert mine == set(found[name][link].to_pylist()), (link, size)
            for name, rows in found.items():
                parts[name].append(rows)
    whole = lp.read(long)
    for name in drain.TABLES:
        rows = pa.concat_tables(parts[name])
        assert rows.num_rows == whole.rows(name)
        if name in LINKS.values():
            rows = rows.sort_by(rows.column_names[0])
        assert plain(rows).equals(plain(whole.arrow(name))), name


def test_one_place_takes_rows_out_of_the_engine() -> None:
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "latpcap").rglob("*.py")
        if re.search(r"(?:analysis|engine)\.take\(", path.read_text(encoding="utf-8"))
    }
    columns_alone = {"latpcap/tables.py"}
    assert naming - columns_alone == {"latpcap/reading/drain.py", "latpcap/joined/capture_point.py"}


def test_exchanges_take_their_turns_however_they_come(rng: random.Random) -> None:
    numbers = sorted(rng.sample(range(30_000), 15_000))
    numbers = [number for _, number in sorted((place + rng.randrange(40), n) for place, n in enumerate(numbers))]
    numbers.append(numbers.pop(0))
    rows = pa.table({"exchange": pa.array(numbers, pa.uint64())})
    found = []
    for most in (400, 3000, 10**6):
        turns, at, printed_rows = printed._Turns(), 0, []
        while at < len(numbers):
            size = rng.randrange(most + 1)  # nothing is a portion, too
            printed_rows += turns.ready(rows.slice(at, size))["exchange"].to_pylist()
            at += size
        found.append(printed_rows + turns.rest()["exchange"].to_pylist())
    assert sorted(found[0]) == sorted(numbers)
    assert found[0] == found[1] == found[2]
    assert sum(a > b for a, b in itertools.pairwise(found[0])) <= 1, "the one behind more than MAX_WAITING_ROWS"
