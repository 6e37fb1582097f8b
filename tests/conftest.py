"""The tests are for the installed latpcap. `python -m pytest` puts this repository first on the path, and the
folder `latpcap` in it has no core unless the install was an editable one.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

if not any((ROOT / "latpcap").glob("_core*.so")):
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != ROOT]
    os.environ["PYTHONSAFEPATH"] = "1"  # the same for the Pythons that tests start
