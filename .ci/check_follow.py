"""Compare `follow` with tshark byte for byte: `check_follow.py DIR` reads tshark's texts in DIR/oracle/follow.

The oracle has the text of stream 0 of the small captures. Hex and raw come from tshark, if it is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import latpcap as lp

ENDING = ".stream0.txt"
FORMS = {"text": "ascii", "hex": "hex", "raw": "raw"}


def main() -> int:
    folder = Path(sys.argv[1])
    texts = sorted((folder / "oracle" / "follow").glob(f"*{ENDING}"))
    checked = differing = 0
    for text in texts:
        name = text.name.removesuffix(ENDING)
        path = next(p for sub in ("tcp", "link", "icmp", "broken") if (p := folder / sub / name).exists())
        conversation = lp.read(path).stream(0).follow()
        wanted = {"text": text.read_bytes()}
        if shutil.which("tshark"):
            for mode in ("hex", "raw"):
                command = ["tshark", "-n", "-q", "-r", str(path), "-z", f"follow,tcp,{FORMS[mode]},0"]
                wanted[mode] = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
        for mode, theirs in wanted.items():
            checked += 1
            if getattr(conversation, mode)().encode() != theirs:
                differing += 1
                print(f"{name}: {mode} differs")
    print(f"follow: {checked - differing} of {checked} texts of {len(texts)} captures are equal, byte for byte")
    return 1 if differing or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
