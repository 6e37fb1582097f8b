"""Does a command end in an answer or in one line, with exit code 2, however little memory it may have?"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

resource = pytest.importorskip("resource", reason="only POSIX systems limit memory so")
CLIP = Path(__file__).resolve().parents[1] / "sample_pcaps" / "clips" / "think40.pcap"
COMMANDS = ["why {a}", "flow {a}", "flow {a} -o {out}.svg", "report {a} -o {out}.html", "exchanges {a}",
            "slice {a} --anonymise -o {out}.pcap", "plot latency {a} -o {out}.png", "join {a} {a}",
            "batch {a} -o {out}"]  # fmt: skip
LIMITS = (300, 200, 450, 500, 350, 400, 550, 800, 480)
START = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv.pop(1)) * 10**6,) * 2); \
from latpcap.cli import main; main()"


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs it with its children, for 60 s at most; one of them that lived on would hold the pipes."""
    start = [sys.executable, "-c", program, *words]
    with subprocess.Popen(
        start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as p:
        try:
            out, err = p.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(start, p.returncode, out, err)


@pytest.mark.parametrize(("command", "limit"), list(zip(COMMANDS, LIMITS, strict=True)))
def test_little_memory_is_one_line(command: str, limit: int, tmp_path: Path) -> None:
    words = [word.format(a=CLIP, out=tmp_path / "out") for word in command.split()]
    ended = run(START, str(limit), *words)
    assert ended.returncode in (0, 2), ended.stderr
    assert "this is a bug" not in ended.stderr and "Traceback" not in ended.stderr
    if ended.returncode:
        assert "memory" in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr
    else:  # what was written is named
        assert ended.stderr.count("\n") <= 1, ended.stderr


def test_a_limit_that_suffices_changes_no_code_and_no_message() -> None:
    def of(*words: str) -> tuple[int, str, str]:
        ended = run(START, "4000", *words)
        return ended.returncode, ended.stdout, ended.stderr

    code, out, err = of("why", "/no/such/file.pcap")
    assert (code, out, err.count("\n")) == (3, "", 1) and "/no/such/file.pcap" in err
    code, out, err = of("why", str(CLIP))
    assert code == 0 and out and not err


def test_a_thread_that_cannot_be_started_stops_no_filter() -> None:
    """Arrow waits for such a thread without end."""
    ended = run(
        "import resource; from latpcap.cli import memory_limit; memory_limit._prepare()\n"
        "import pyarrow as pa, pyarrow.acero, pyarrow.compute as pc; table = pa.table({'a': list(range(9))})\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + 7 * 10**6\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used, used)); print(table.filter(pc.field('a') > 5).num_rows)"
    )
    assert (ended.returncode, ended.stdout) == (0, "3\n"), ended.stderr


def test_the_child_ends_with_its_parent() -> None:
    start = [sys.executable, "-c", START, "2000", "why", "-"]
    with subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as parent:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        while not children.read_text():
            assert parent.poll() is None
        parent.kill()
        ready, _, _ = select.select([parent.stdout], [], [], 30)
        if not ready:  # the child holds the pipe, and its input goes on
            os.killpg(parent.pid, signal.SIGKILL)
        assert ready
