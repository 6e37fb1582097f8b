"""Do stored results that were changed ever say something else without a word? Bits are flipped all over them."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import hostile
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import CLIPS, SMALL, TABLES, same

import latpcap as lp
from latpcap.archive import checked, layout
from latpcap.archive.dataset import Stored
from latpcap.archive.model import identity
from latpcap.cli import main

OTHER = CLIPS / "quickack.pcap"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two captures, each with files of its own."""
    for file in (SMALL, OTHER):
        lp.batch(file, tmp_path / "out", quiet=True)
    return tmp_path / "out"


def file_of(results: Path, table: str, capture: Path = SMALL) -> Path:
    return results / layout.file_of(table, identity(str(capture)))


def flip(file: Path, at: int, bit: int = 0) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1 << bit
    file.write_bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_no_flipped_bit_reads_as_another_value(seed: int) -> None:
    for number in range(100):
        hostile.one("flips", 1000 * seed + number)


def test_the_answer_is_that_of_the_rest_and_says_so(results: Path) -> None:
    file = file_of(results, "exchanges")
    flip(file, file.stat().st_size // 2)
    found = lp.open_results(results)
    with pytest.raises(lp.CaptureError, match="byte 0: damaged: its checksum does not fit; remove it and run the same"):
        found.exchanges.to_arrow()
    told = found.why().to_dict()
    alone = lp.read(OTHER)
    assert told["exchanges"] == alone.why().to_dict()["exchanges"] and told["captures"] == 1
    (failure,) = found.failed
    assert failure.file.startswith(f"{file}: byte ") and "damaged" in failure.reason
    assert str(found.why()).endswith("  failed    1 file not in the results; failed says which, and why")
    assert same(found.exchanges.to_arrow(), alone.arrow("exchanges")), "known to be damaged, it is left out"


def test_everything_is_checked_when_asked(results: Path) -> None:
    flip(file_of(results, "events"), 100)
    assert lp.open_results(results).failed == [], "events were not read"
    found = lp.open_results(results, check=True)
    assert len(found.failed) == 1 and len(found.captures) == 1 and "events" in found.failed[0].file


def test_what_is_missing_or_cut_is_said(results: Path) -> None:
    file_of(results, "causes").unlink()
    found = lp.open_results(results)
    assert [f.reason for f in found.failed] == [
        f"causes/{identity(str(SMALL))}.parquet is missing; run the same batch again"
    ]
    with file_of(results, "streams", OTHER).open("r+b") as cut:
        cut.truncate(10)
    with pytest.raises(lp.CaptureError, match=r"has 10 bytes, [\d,]+ were written; run the same batch again \(1 more"):
        lp.open_results(results)


def test_a_damaged_manifest_and_the_way_out(results: Path) -> None:
    manifest = results / layout.manifest_of(identity(str(SMALL)))
    flip(manifest, manifest.stat().st_size // 2)
    (failure,) = lp.open_results(results).failed
    assert failure.file == str(manifest) and failure.reason.endswith("; remove it and run the same batch again")
    assert len(lp.batch(OTHER, results, quiet=True).skipped) == 1
    assert file_of(results, "events").exists(), "what may be read again one day is not thrown away"
    manifest.unlink()
    lp.batch([SMALL, OTHER], results, quiet=True)
    again = lp.open_results(results, check=True)
    assert again.failed == [] and len(again.captures) == 2


def test_tables_of_another_version_are_refused(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from latpcap import _core

    monkeypatch.setattr(_core, "SCHEMA_VERSION", "999")
    with pytest.raises(lp.CaptureError, match=r"has tables of version .*, this latpcap reads 999; run the same batch"):
        lp.open_results(results)


def test_another_layout_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "_tasks").mkdir()
    (tmp_path / "_tasks" / "a.json").write_text(json.dumps({"task": "a", "fingerprint": "0", "captures": []}))
    with pytest.raises(lp.CaptureError, match="holds results of another version of latpcap"):
        lp.open_results(tmp_path)
    with pytest.raises(lp.OutputError, match="holds results of another version of latpcap"):
        lp.batch(SMALL, tmp_path, quiet=True)


def test_results_travel(results: Path, tmp_path: Path) -> None:
    """They name no place of their own."""
    shutil.move(results, tmp_path / "elsewhere")
    assert lp.open_results(tmp_path / "elsewhere", check=True).failed == []


def test_other_tools_find_the_pages_checksums(results: Path) -> None:
    file = file_of(results, "events")
    whole = pq.read_table(file, page_checksum_verification=True)
    column = pq.read_metadata(file).row_group(0).column(0)
    flip(file, column.data_page_offset + column.total_compressed_size - 2)
    with pytest.raises(OSError, match=r"checksum|CRC|crc"):
        pq.read_table(file, page_checksum_verification=True)
    assert whole.num_rows == lp.read(SMALL).arrow("events").num_rows


def test_a_checked_file_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked, "BLOCK_BYTES", 100)
    data = random.Random(1).randbytes(1050)
    (tmp_path / "a").write_bytes(data)
    told = checked.digests(tmp_path / "a")
    with checked.CheckedFile((tmp_path / "a").open("rb"), told, "a", "p") as file:
        assert file.read(10) == data[:10] and file.read(5) == data[10:15] and file.tell() == 15
        file.seek(-60, 2)
        assert file.read() == data[-60:] and file.read(1) == b"" and file.size() == 1050
        file.seek(95)
        held = bytearray(310)
        assert file.readinto(held) == 310 and bytes(held) == data[95:405]
        assert file.seekable() and file.readable()
    flip(tmp_path / "a", 1049)
    with checked.CheckedFile((tmp_path / "a").open("rb"), told, "a", "p") as file:
        assert file.read(1000) == data[:1000]
        with pytest.raises(checked.DamagedError, match=r"^a: byte 1,000: damaged"):
            file.read()


def test_a_part_of_a_pack_is_chosen_by_its_rows(tmp_path: Path) -> None:
    lp.batch([SMALL, OTHER], tmp_path, quiet=True)
    stored = Stored(str(tmp_path))
    for table in TABLES:
        mine = stored.dataset(table, [identity(str(OTHER))]).to_table()
        assert pa.types.is_dictionary(mine.schema.field("capture").type)
        assert same(mine.drop_columns(["capture"]), lp.open_results(tmp_path).slice(file=OTHER.name).dataset(table)
                    .to_table().drop_columns(["capture"]))  # fmt: skip


def test_the_command_says_it_in_one_line(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in results.glob("_tasks/*"):
        file.write_text("{")
    monkeypatch.setattr("sys.argv", ["latpcap", "why", str(results)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 3 and said.count("\n") == 1 and "remove it and run the same batch again" in said
