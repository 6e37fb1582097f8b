"""The tests are for the installed latpcap. `python -m pytest` puts this repository first on the path, and the
folder `latpcap` in it has no core unless the install was an editable one.
"""

import os
import random
import re
import secrets
import subprocess
import sys
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from slow import SLOW

ROOT = Path(__file__).resolve().parents[1]

if not any((ROOT / "latpcap").glob("_core*.so")):
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != ROOT]
    os.environ["PYTHONSAFEPATH"] = "1"  # the same for the Pythons that tests start

# how long it takes to draw or to try an input says how busy the machine is
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")


CHOICE = "LATPCAP_TESTS"
"""Variable of the environment: `quick` leaves the slow tests out, `2/4` takes the second quarter of them, `all` all."""
QUICK = "quick"


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """The whole suite runs on all processors where pytest-xdist is there (-n 0: on one), without what takes long."""
    worker = hasattr(config, "workerinput")  # of xdist: it begins no more of them
    if worker or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    os.environ.setdefault(CHOICE, QUICK)
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    plugins = config.pluginmanager  # pytest-cov has chosen by now how it measures: with it -n is the caller's
    parallel = plugins.hasplugin("xdist") and not plugins.hasplugin("_cov") and not config.option.usepdb
    if parallel and config.option.numprocesses is None and here > 1:
        config.option.numprocesses, config.option.dist = here, "worksteal"


def pytest_report_header() -> str | None:
    """What is left out is shown."""
    choice = os.environ.get(CHOICE, "all")
    if choice == "all":
        return None
    which = "" if choice == QUICK else f", but for part {choice} of them"
    return f"slow tests are left out{which}: {CHOICE}=all runs them, too"


def in_part(name: str, choice: str) -> bool:
    """Whether a slow test belongs to this choice: a part `2/4` has those whose names' checksum modulo 4 is 1."""
    part, _, parts = choice.partition("/")
    return choice != QUICK and zlib.crc32(name.encode()) % int(parts) == int(part) - 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what `slow.py` names. A name that no test of its file has is an error."""
    if (choice := os.environ.get(CHOICE, "all")) == "all":
        return
    if not re.fullmatch(rf"{QUICK}|[1-9]\d*/[1-9]\d*", choice):
        raise pytest.UsageError(f"{CHOICE} is {choice!r}, and not quick, all or a part as 2/4")
    names = {(item.path.name, getattr(item, "originalname", item.name)) for item in items}
    slow = {(file, name) for file, some in SLOW.items() for name in some}
    if gone := {(file, name) for file, name in slow - names if file in {of for of, _ in names}}:
        raise pytest.UsageError(f"tests/slow.py names what is no test: {sorted(gone)}")
    left_out = [
        item
        for item in items
        if (item.path.name, getattr(item, "originalname", item.name)) in slow and not in_part(item.name, choice)
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, as the tests' own is the user's alone."""
    import archives

    with archives.open_folder() as folder:
        yield folder


os.environ.setdefault("LATPCAP_SEED", str(secrets.randbits(32)))
SEED = int(os.environ["LATPCAP_SEED"])
"""Of all that is random in this run: another one each time, in all its processes, which a failure shows."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Gives hypothesis this seed before its plugin looks for one."""
    if config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(SEED)


@pytest.fixture
def rng() -> random.Random:
    """Random numbers of this run's seed."""
    return random.Random(SEED)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows what repeats a failure, and what a program printed that failed: its error alone names the command and the
    exit code.
    """
    report = yield
    if report.failed:
        report.sections.append(("the same random input", f"LATPCAP_SEED={SEED}"))
    problem = call.excinfo.value if call.excinfo else None
    if isinstance(problem, (subprocess.CalledProcessError, subprocess.TimeoutExpired)):
        for name in ("stdout", "stderr"):
            printed = getattr(problem, name) or b""
            text = printed.decode(errors="replace") if isinstance(printed, bytes) else printed
            report.sections.append((f"{name} of the program", text))
    return report
