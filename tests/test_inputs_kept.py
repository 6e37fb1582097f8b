"""No output takes the place of an input, and a capture that changed is read a second time by nobody."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from archives import SAMPLES
from commands import run

import latpcap as lp

DATA = (SAMPLES / "nginx-good.pcap").read_bytes()
COMMANDS = {
    ".html": ["report FILE -o OUT"],
    ".svg": ["flow FILE --exchange worst -o OUT", "plot waterfall FILE -o OUT", "plot latency FILE -o OUT"],
    ".pcap": ["slice FILE -o OUT", "slice FILE --anonymise -o OUT"],
    ".csv": ["exchanges FILE -o OUT", "events FILE -o OUT"],
    ".txt": ["flow FILE --stream 3 -o OUT"],
}


@pytest.mark.parametrize("suffix", COMMANDS)
@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
def test_an_output_that_is_an_input_is_refused(suffix: str, link: str, tmp_path: Path) -> None:
    source = tmp_path / f"a{suffix}"  # a capture may have any name
    source.write_bytes(DATA)
    out = source if link == "same" else tmp_path / f"b{suffix}"
    if link == "symbolic":
        out.symlink_to(source)
    elif link == "hard":
        os.link(source, out)
    for command in COMMANDS[suffix]:
        code, printed, said = run(*(str({"FILE": source, "OUT": out}.get(w, w)) for w in command.split()))
        assert code == 2 and printed == "" and said.count("\n") == 1, (command, code, said)
        assert source.read_bytes() == DATA == out.read_bytes(), command
        assert "is a file that was read" in said or "is the capture itself" in said


def test_a_key_log_is_kept_too(tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("# no key\n")
    code, _, said = run("exchanges", str(SAMPLES / "nginx-good.pcap"), "--keylog", str(keys), "-o", str(keys))
    assert code == 2 and "is a file that was read" in said and keys.read_text() == "# no key\n"


def test_outside_commands_a_file_may_be_read_and_written_in_turn(tmp_path: Path) -> None:
    out = tmp_path / "a.pcap"
    for _ in range(2):
        lp.read(SAMPLES / "nginx-good.pcap").filter("tcp.stream == 1").to_pcap(out)
        assert lp.read(out).frames


@pytest.mark.parametrize("how", ["first", "last", "middle", "cut", "replaced"])
def test_a_capture_that_changed_is_an_error_at_the_second_reading(how: str, tmp_path: Path, rng: random.Random) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(DATA)
    capture = lp.read(path)
    assert len(list(capture.records())) == capture.frames
    if how == "cut":
        path.write_bytes(DATA[: rng.randrange(len(DATA))])
    elif how == "replaced":
        path.rename(tmp_path / "b.pcap")
        path.write_bytes(DATA)
    else:
        at = {"first": 30, "last": len(DATA) - 5, "middle": rng.randrange(5000, len(DATA) - 5000)}[how]
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(bytes([DATA[at] ^ 0xFF]))
        os.utime(path, ns=(1, 1))  # whatever the clock's steps are
    with pytest.raises(lp.CaptureError, match="since it was read"):
        list(capture.records())


def test_a_capture_that_grows_is_read_up_to_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(DATA)
    capture = lp.read(path)
    with open(path, "ab") as file:
        file.write(DATA[24:])
    assert len(list(capture.records())) == capture.frames
