"""Check that an installed wheel works with nothing but its dependencies.

Run it in an environment of its own, outside the source tree. Ends with exit code 1 and a sentence if something fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PNG = b"\x89PNG"


def main() -> None:
    program = shutil.which("latpcap", path=str(Path(sys.executable).parent)) or shutil.which("latpcap")
    if program is None:
        sys.exit("smoke: pip installed no command latpcap")
    answer = subprocess.run([program, "why", "--sample"], capture_output=True, text=True, check=False)
    if answer.returncode or "nagle" not in answer.stdout or answer.stderr:
        sys.exit(f"smoke: latpcap why --sample ended with {answer.returncode}: {answer.stdout}{answer.stderr}")

    import latpcap as lp

    capture = lp.read()
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "flow.png"
        capture.flow_graph(exchange="worst").save(picture)
        if not picture.read_bytes().startswith(PNG):
            sys.exit("smoke: the flow graph is no PNG")
    print(answer.stdout.splitlines()[1])
    print(f"smoke: latpcap {lp.__version__} answers: {capture!r}")


if __name__ == "__main__":
    main()
