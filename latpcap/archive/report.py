"""`Batch`: the summary of a batch: counts, failures and what was done before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latpcap.format import count
from latpcap.tables import card

if TYPE_CHECKING:
    from latpcap.archive.inputs import FoundFiles
    from latpcap.archive.model import Failure, Outcome
    from latpcap.archive.plan import Plan
    from latpcap.archive.results import Results


class Batch:
    """The summary of a batch. Made by `latpcap.batch`; prints as a few lines.

    `output` is the place of the results. `failed` lists the files that are not in them, each with `file`, `reason` and
    `offset`; `damaged` the captures of which only a part could be read; `changed` the files that changed while they
    were read; `skipped` what was done before.
    """

    def __init__(self, output: str, plan: Plan, files: FoundFiles):
        self.output = output
        self.skipped = plan.skipped
        self.failed: list[Failure] = list(files.failures)
        self.changed: list[str] = []
        self.finished = 0
        self._passed_over = files.passed_over
        self._captures: list[dict[str, Any]] = []
        for outcome in plan.done:
            self._take(outcome)

    def add(self, outcome: Outcome) -> None:
        """Count a finished task."""
        self.finished += 1
        self._take(outcome)

    def _take(self, outcome: Outcome) -> None:
        self._captures += outcome.captures
        self.failed += outcome.failures
        self.failed.sort(key=lambda f: f.file)
        self.changed += outcome.changed

    @property
    def damaged(self) -> list[str]:
        """The captures that are incomplete, by their first file; `issues` has the place and reason."""
        return sorted(capture["files"][0] for capture in self._captures if capture["damaged"])

    @property
    def summary(self) -> dict[str, Any]:
        """Counts over all captures of these inputs, whether analysed now or before."""
        totals = {
            name: sum(capture[name] for capture in self._captures)
            for name in ("bytes", "frames", "streams", "exchanges")
        }
        return {
            "captures": len(self._captures),
            "files": sum(len(capture["files"]) for capture in self._captures),
            **totals,
            "damaged": len(self.damaged),
            "changed": len(self.changed),
            "failed": len(self.failed),
            "skipped": len(self.skipped),
            "passed_over": self._passed_over,
        }

    def results(self) -> Results:
        """Return the results, as `latpcap.open_results` returns them."""
        from latpcap.archive.results import open_results

        return open_results(self.output)

    def __str__(self) -> str:
        totals = self.summary
        files = f" of {count(totals['files'], 'file')}" if totals["files"] != totals["captures"] else ""
        lines = [
            f"{self.output}: {count(totals['captures'], 'capture')}{files}, {count(totals['frames'], 'frame')}, "
            f"{count(totals['streams'], 'TCP stream')}, {count(totals['exchanges'], 'exchange')}"
        ]
        if self.skipped:
            lines.append(f"  done before: {count(len(self.skipped), 'file')}")
        if self._passed_over:
            lines.append(f"  passed over: {count(self._passed_over, 'file')} whose names are no capture's")
        lines += [
            f"  damaged: {name}; its rows up to the damage are kept, issues says where" for name in self.damaged[:10]
        ]
        lines += [f"  changed while it was read: {name}; run again" for name in self.changed[:10]]
        lines += [f"  failed: {failure}" for failure in self.failed[:20]]
        if len(self.failed) > 20:
            lines.append(f"  failed: {len(self.failed) - 20:,} more")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        first, _, rest = str(self).partition("\n")
        return card(first, rest)
