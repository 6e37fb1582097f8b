"""Does a command end in an answer or in one line, with exit code 2, however little memory it may have?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

resource = pytest.importorskip("resource", reason="only POSIX systems limit memory so")
CLIP = Path(__file__).resolve().parents[1] / "sample_pcaps" / "clips" / "think40.pcap"
COMMANDS = ["why {a}", "flow {a}", "flow {a} -o {out}.svg", "report {a} -o {out}.html", "exchanges {a}",
            "slice {a} --anonymise -o {out}.pcap", "plot latency {a} -o {out}.png", "join {a} {a}"]  # fmt: skip
LIMITS = (300, 200, 450, 500, 350, 400, 550, 800)
START = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv.pop(1)) * 10**6,) * 2); \
from latpcap.cli import main; main()"


@pytest.mark.parametrize(("command", "limit"), list(zip(COMMANDS, LIMITS, strict=True)))
def test_little_memory_is_one_line(command: str, limit: int, tmp_path: Path) -> None:
    words = [word.format(a=CLIP, out=tmp_path / "out") for word in command.split()]
    ended = subprocess.run(
        [sys.executable, "-c", START, str(limit), *words], capture_output=True, text=True, check=False, timeout=100
    )
    assert ended.returncode in (0, 2), ended.stderr
    assert "this is a bug" not in ended.stderr and "Traceback" not in ended.stderr
    if ended.returncode:
        assert "memory" in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr
    else:  # what was written is named
        assert ended.stderr.count("\n") <= 1, ended.stderr


def test_a_limit_that_suffices_changes_no_code_and_no_message() -> None:
    def of(*words: str) -> tuple[int, str, str]:
        start = [sys.executable, "-c", START, "4000", *words]
        ended = subprocess.run(start, capture_output=True, text=True, check=False, timeout=100)
        return ended.returncode, ended.stdout, ended.stderr

    code, out, err = of("why", "/no/such/file.pcap")
    assert (code, out, err.count("\n")) == (3, "", 1) and "/no/such/file.pcap" in err
    code, out, err = of("why", str(CLIP))
    assert code == 0 and out and not err
