"""Compare the coverage report of pytest-cov with floors for all files together and for each file.

    check_coverage.py COVERAGE.json [PART]

Exit code 1 if the total, or a file of at least MIN_STATEMENTS, is below its floor. Where PART is not `all`, only some
of the slow tests ran, and the total alone counts. Code that runs only in subprocesses is not counted. NOT_MEASURED are
files whose tests run in subprocesses, or need an extra that the README's command does not install.
"""

import json
import sys
from pathlib import Path

TOTAL_FLOOR = 95.0
"""Least percentage of statements covered in all files together."""
FILE_FLOOR = 85.0
"""Least percentage of statements covered in each file."""
MIN_STATEMENTS = 20
"""Statements from which a file has a floor of its own."""
LOWER_FLOORS = {
    "joined/packet_fates.py": 78.0, "joined/shares.py": 77.0, "filters/dissect.py": 73.0, "filters/tls.py": 74.0,
    "text_formats/columns.py": 83.0, "text_formats/fields.py": 77.0, "text_formats/icmp.py": 77.0,
}  # fmt: skip
"""Files that do not reach FILE_FLOOR yet. Raise these floors until the entries can be removed."""
NOT_MEASURED = ("cli/mcp.py", "cli/memory_limit.py", "latpcap/__init__.py")


def below(report: dict, files_count: bool) -> list[str]:
    """Return a line for each figure below its floor."""
    files = {name: file["summary"] for name, file in report["files"].items()}
    too_low = (
        []
        if (total := report["totals"]["percent_covered"]) >= TOTAL_FLOOR
        else [f"all files: {total:.1f} %, not {TOTAL_FLOOR} %"]
    )
    for name, file in sorted(files.items()) if files_count else ():
        if name.endswith(NOT_MEASURED):
            continue
        floor = next((minimum for end, minimum in LOWER_FLOORS.items() if name.endswith(end)), FILE_FLOOR)
        if file["num_statements"] >= MIN_STATEMENTS and file["percent_covered"] < floor:
            too_low.append(f"{name}: {file['percent_covered']:.1f} %, not {floor} %")
    return too_low


def main() -> int:
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    too_low = below(report, files_count=sys.argv[2:] in ([], ["all"]))
    print("\n".join([*too_low, f"{report['totals']['percent_covered']:.1f} % of {len(report['files'])} files"]))
    return 1 if too_low else 0


if __name__ == "__main__":
    sys.exit(main())
