"""The tests are for the installed latpcap. `python -m pytest` puts this repository first on the path, and the
folder `latpcap` in it has no core unless the install was an editable one.
"""

import os
import random
import secrets
import sys
from collections.abc import Iterator
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
