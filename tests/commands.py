"""The `latpcap` command in tests: as a program of its own, and in this process."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import traceback

import pytest

from latpcap.cli import main

MAIN = "from latpcap.cli import main; main()"
START = [sys.executable, "-c", MAIN]
USAGE, UNREADABLE = 2, 3
WROTE = re.compile(r"^wrote .*\n", re.MULTILINE)
"""The line that names what a command has written: `tests/test_cli.py` looks at it."""
PICTURE = re.compile(r"^  picture   latpcap flow .*\n", re.MULTILINE)
"""The command behind an answer that draws its evidence: `tests/test_ticket.py` looks at it."""


def program(*words: object, stdin: bytes | None = None) -> tuple[int, str, str]:
    """The command as a program of its own: exit code, standard output, standard error but for what it wrote."""
    done = subprocess.run([*START, *map(str, words)], input=stdin, capture_output=True, check=False, timeout=60)
    return done.returncode, PICTURE.sub("", done.stdout.decode()), WROTE.sub("", done.stderr.decode())


def run(*words: object) -> tuple[int, str, str]:
    """The same without a new interpreter, which takes half a second each time."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["latpcap", *map(str, words)])
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1 if end.code else 0
        except Exception:  # the interpreter shows it and ends with 1
            code = 1
            err.write(traceback.format_exc())
    return code, PICTURE.sub("", out.getvalue()), WROTE.sub("", err.getvalue())


def answered(*words: object) -> str:
    code, out, err = run(*words)
    assert (code, err) == (0, ""), err
    return out


def complains(code: int, *words: object) -> str:
    """One line on standard error, nothing else, and no traceback; gives the line."""
    got, out, err = run(*words)
    assert (got, out) == (code, ""), (got, out, err)
    assert re.fullmatch(r"latpcap: [^\n]+\n", err) and "Traceback" not in err, err
    return err
