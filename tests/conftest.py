"""The tests are for the installed latpcap. `python -m pytest` puts this repository first on the path, and the
folder `latpcap` in it has no core unless the install was an editable one.
"""

import os
import random
import secrets
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

if not any((ROOT / "latpcap").glob("_core*.so")):
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != ROOT]
    os.environ["PYTHONSAFEPATH"] = "1"  # the same for the Pythons that tests start

# how long it takes to draw or to try an input says how busy the machine is
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, as the tests' own is the user's alone."""
    import archives

    with archives.open_folder() as folder:
        yield folder


@pytest.fixture
def rng() -> random.Random:
    """Another seed in every run, which a failure shows; LATPCAP_SEED repeats one."""
    seed = int(os.environ.get("LATPCAP_SEED") or secrets.randbits(32))
    sys.stdout.write(f"LATPCAP_SEED={seed}\n")
    return random.Random(seed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows what a program printed that failed: its error alone names the command and the exit code."""
    report = yield
    problem = call.excinfo.value if call.excinfo else None
    if isinstance(problem, (subprocess.CalledProcessError, subprocess.TimeoutExpired)):
        for name in ("stdout", "stderr"):
            printed = getattr(problem, name) or b""
            text = printed.decode(errors="replace") if isinstance(printed, bytes) else printed
            report.sections.append((f"{name} of the program", text))
    return report
