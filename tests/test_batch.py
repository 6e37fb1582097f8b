"""Does an archive become the tables of its captures, each once, whatever else lies there?"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from archives import CLIPS, PACKERS, SMALL, TABLES, as_nobody, captures, rotated, same, stored, tree

import latpcap as lp
from latpcap.archive import layout, packs
from latpcap.archive.model import Part, Task, identity
from latpcap.archive.packfile import ROW_GROUP


def archive(folder: Path) -> dict[str, Path]:
    """Everything that an archive may hold; gives the readable captures, each with a file of the same tables."""
    folder.mkdir(exist_ok=True)
    data = SMALL.read_bytes()
    expected: dict[str, Path] = {}
    for clip in sorted(CLIPS.glob("*.pcap")):
        shutil.copy(clip, folder)
        expected[clip.name] = clip
    packed = folder / "packed"
    packed.mkdir()
    for suffix, pack in PACKERS.items():
        name = f"copy.pcap.{suffix}"
        (packed / name).write_bytes(pack(data))
        expected[name] = SMALL
    parts = folder / "rotated"
    parts.mkdir()
    for number, part in enumerate(rotated(data, 4)):
        (parts / f"dump.pcap{number or ''}").write_bytes(part)
    expected["dump.pcap"] = SMALL
    odd = folder / "odd.pcap"  # a folder, whatever its name says
    odd.mkdir()
    (odd / "inside.pcap").write_bytes(data)
    expected["inside.pcap"] = SMALL
    cut = folder / "cut.pcap"
    cut.write_bytes(data[:-7])
    expected["cut.pcap"] = cut
    half = folder / "half.pcap.gz"
    packed_data = PACKERS["gz"](data)
    half.write_bytes(packed_data[: len(packed_data) // 2])
    expected["half.pcap.gz"] = half
    (folder / "empty.pcap").touch()
    (folder / "text.pcap").write_text("no capture, whatever its name says")
    (folder / "notes.txt").write_text("passed over")
    secret = folder / "secret.pcap"
    secret.write_bytes(data)
    secret.chmod(0)
    return expected


def test_an_archive_gives_exactly_its_tables_and_failures(open_folder: Path) -> None:
    source, results = open_folder / "archive", open_folder / "results"
    expected = archive(source)
    with as_nobody():
        done = lp.batch(source, results, jobs=2, quiet=True)
    assert {(Path(f.file).name, f.reason, f.offset) for f in done.failed} == {
        ("empty.pcap", "file is empty", 0),
        ("text.pcap", 'not a pcap or pcapng file (it looks like text: "no capture, what")', 0),
        ("secret.pcap", "cannot be opened (permission denied)", None),
    }
    assert [Path(name).name for name in done.damaged] == ["cut.pcap", "half.pcap.gz"]
    assert done.skipped == [] and done.changed == [] and done.summary["passed_over"] == 1
    found = captures(results)
    assert sorted(found) == sorted(expected)
    for name, like in expected.items():
        whole = lp.read(like)
        for table in TABLES:
            got, wanted = stored(results, table, str(found[name]["capture"])), whole.arrow(table)
            if table == "issues":  # they name the file, which lies elsewhere
                got, wanted = got.drop_columns(["file"]), wanted.drop_columns(["file"])
            assert same(got, wanted), f"{table} of {name}"
        assert found[name]["frames"] == whole.frames and found[name]["damaged"] == bool(whole.damage)
    assert done.summary["frames"] == sum(row["frames"] for row in found.values())
    assert found["dump.pcap"]["rotation"] == "tcpdump -C" and len(found["dump.pcap"]["files"]) == 4


def test_files_tell_where_their_rows_come_from(tmp_path: Path) -> None:

    lp.batch(SMALL, tmp_path / "out", quiet=True)
    (capture,) = captures(tmp_path / "out").values()
    for table in (*TABLES, "captures"):
        told = pq.read_metadata(tmp_path / "out" / layout.file_of(table, str(capture["capture"]))).metadata
        (source,) = json.loads(told[b"latpcap.inputs"])
        data = SMALL.read_bytes()
        assert source == {"file": str(SMALL), "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        assert told[b"latpcap.version"].decode() == lp.__version__
        assert told[b"latpcap.schema"] and json.loads(told[b"latpcap.options"]) == {"events": True}
    assert capture["sha256"] == [source["sha256"]]


def test_events_are_left_out_when_asked(tmp_path: Path) -> None:
    lp.batch(SMALL, tmp_path, quiet=True)
    assert (tmp_path / "events").exists()
    done = lp.batch(SMALL, tmp_path, events=False, quiet=True)
    assert done.skipped == [], "another set of tables: the capture is done again"
    assert not any((tmp_path / "events").rglob("*.parquet"))
    assert captures(tmp_path)[SMALL.name]["events"] is None
    assert stored(tmp_path, "exchanges", identity(str(SMALL))).num_rows == len(lp.read(SMALL).exchanges)


def test_row_groups_are_found_by_time(tmp_path: Path) -> None:
    """A long table has row groups of one size that follow each other in time, however the rows came."""
    from latpcap.archive.packfile import TableFile

    events = lp.read(SMALL).arrow("events")
    rows = ds.dataset([events] * (1 + 2 * ROW_GROUP // events.num_rows)).to_table()
    for pieces, name in ((977, "a"), (50_000, "b")):
        file = TableFile(tmp_path / name)
        for at in range(0, rows.num_rows, pieces):
            file.add(rows[at : at + pieces])
        file.close({"who": "test"})
        told = pq.read_metadata(tmp_path / name)
        sizes = [told.row_group(i).num_rows for i in range(told.num_row_groups)]
        assert sizes == [ROW_GROUP, ROW_GROUP, rows.num_rows - 2 * ROW_GROUP]
        column = told.row_group(0).column(told.schema.names.index("time"))
        assert column.statistics.has_min_max and column.compression == "ZSTD"
        assert "DELTA_BINARY_PACKED" in column.encodings
        assert pq.read_table(tmp_path / name).equals(rows.unify_dictionaries().combine_chunks()) or same(
            pq.read_table(tmp_path / name), rows
        )


def test_short_captures_share_packs_and_long_ones_do_not() -> None:
    def task(name: str, size: int) -> Task:
        return Task(name, (Part(f"/{name}", size, 0),))

    small = [task(f"{number:04}", 1000) for number in range(1000)]
    mixed = packs.make_packs([*small, task("0500-long", 1 << 30), task("zipped.gz", packs.MAX_BYTES // 4)])
    assert [p.name for p in mixed[:1]] == ["0500-long"] and sum(len(p.tasks) for p in mixed) == 1002
    assert "zipped.gz" in [p.name for p in mixed], "what is compressed counts more"
    assert all(len(p.tasks) <= packs.MAX_TASKS for p in mixed) and len(mixed) <= 6
    assert packs.make_packs(small[::-1]) == packs.make_packs(small)


class Here:
    """A client that does at once what a cluster does elsewhere; test_batch_cluster.py has a real one."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.cancelled: list[object] = []

    def submit(self, work: Any, *of: object, key: str, retries: int) -> object:
        self.keys.append(key)
        result = work(*of)
        return SimpleNamespace(key=key, result=lambda: result, release=lambda: None)

    def cancel(self, futures: list[object]) -> None:
        self.cancelled = futures


def test_another_client_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(as_completed=iter))
    monkeypatch.setattr(packs, "MAX_TASKS", 3)
    lp.batch(CLIPS, tmp_path / "here", quiet=True)
    client = Here()
    there = lp.batch(CLIPS, tmp_path / "there", client=client, quiet=True)
    assert tree(tmp_path / "here") == tree(tmp_path / "there")
    assert len(client.keys) == len(set(client.keys)) == len(client.cancelled) > 1
    assert there.summary["captures"] == len(list(CLIPS.glob("*.pcap")))

    class Ending(Here):
        def submit(self, work: Any, *of: object, key: str, retries: int) -> object:
            def result() -> None:
                raise KeyboardInterrupt

            return SimpleNamespace(key=key, result=result, release=lambda: None)

    with pytest.raises(lp.Interrupted, match="interrupted; 0 captures done and kept"):
        lp.batch(CLIPS, tmp_path / "again", client=Ending(), quiet=True)
