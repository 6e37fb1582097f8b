"""Which files does an archive's input mean, on this machine and behind a URL?"""

from __future__ import annotations

import glob
from pathlib import Path

import pytest
from archives import SMALL, captures

import latpcap as lp
from latpcap.archive.inputs import find
from latpcap.format import phrase
from latpcap.reading import locations

NAMES = ["a.pcap", "b.pcapng.gz", "notes.txt", "x1/c.cap", "x1/y/d.pcap3", "x2/y/e.pcap", "x2/[f].pcap"]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "archive" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(name))
    return tmp_path / "archive"


def names(parts: dict[str, object], archive: Path) -> list[str]:
    return [name.removeprefix("file://").removeprefix(f"{archive}/") for name in parts]


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_folder_gives_its_captures(archive: Path, prefix: str) -> None:
    found = find(f"{prefix}{archive}")
    assert names(found.parts, archive) == [name for name in sorted(NAMES) if name != "notes.txt"]
    assert found.passed_over == 1 and found.failures == []
    assert [part.size for part in found.parts.values()] == [len(name) for name in names(found.parts, archive)]
    inside = find(f"{prefix}{archive}", leave_out=f"{prefix}{archive}/x1")
    assert len(inside.parts) == len(found.parts) - 2


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_named_file_is_taken_whatever_its_name(archive: Path, prefix: str) -> None:
    assert names(find(f"{prefix}{archive}/notes.txt").parts, archive) == ["notes.txt"]
    missing = find([f"{prefix}{archive}/none.pcap", f"{prefix}{archive}/a.pcap"])
    assert [f.reason for f in missing.failures] == ["no such file"] and names(missing.parts, archive) == ["a.pcap"]


PATTERNS = ["*.pcap", "**/*.pcap", "x*/y/*", "x1/**/d*", "[ab].*", "[!a].pcap*", "x2/[[]f].pcap", "**"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_means_the_same_behind_a_url(archive: Path, pattern: str) -> None:
    local = sorted(n for n in glob.glob(f"{archive}/{pattern}", recursive=True) if Path(n).is_file())
    assert local and [Path(n).is_file() for n in local]
    assert names(find(f"file://{archive}/{pattern}").parts, archive) == names(dict.fromkeys(local), archive)


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_pattern_that_nothing_matches(archive: Path, prefix: str) -> None:
    found = find(f"{prefix}{archive}/none*.pcap")
    assert [(f.file, f.reason) for f in found.failures] == [(f"{prefix}{archive}/none*.pcap", "nothing matches")]


def test_a_manifest_behind_a_url(archive: Path) -> None:
    (archive / "list").write_text(f"# the list\nfile://{archive}/a.pcap\n\n", encoding="utf-8")
    assert names(find(f"@file://{archive}/list").parts, archive) == ["a.pcap"]
    missing = find(f"@file://{archive}/none")
    assert missing.failures[0].reason.startswith("manifest cannot be read (")


def test_a_file_system_that_nobody_knows(archive: Path) -> None:
    found = find("nosuch://bucket/folder?key=secret")
    [failure] = found.failures
    assert (
        failure.reason.startswith("cannot be listed (no file system for nosuch:// (") and "secret" not in failure.file
    )


def test_a_batch_from_a_url(tmp_path: Path) -> None:
    done = lp.batch(f"file://{SMALL}", tmp_path / "results", quiet=True)
    assert done.failed == [] and len(captures(tmp_path / "results")) == 1
    opened, whole = lp.open_results(f"file://{tmp_path}/results"), lp.read(SMALL)
    assert opened.exchanges.to_arrow(columns=["latency_ms"]).equals(whole.arrow("exchanges").select(["latency_ms"]))
    assert lp.batch(f"file://{SMALL}", tmp_path / "results", quiet=True).skipped == [f"file://{SMALL}"]


def test_places_are_put_together() -> None:
    assert locations.join("s3://bucket/a/?region=x", "b.json") == "s3://bucket/a/b.json?region=x"
    assert locations.join("memory://a", "b.json") == "memory://a/b.json"
    assert locations.bare("gs://bucket/a?key=secret") == "gs://bucket/a"
    assert locations.bare("s3://key:secret@bucket/a@b") == "s3://bucket/a@b"
    assert locations.bare("https://host/a?token") == "https://host/a"
    assert phrase(OSError(28, "No space left on device")) == "no space left on device"
