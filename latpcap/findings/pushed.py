"""What of the pushes do findings ask? Rows of `pushes`, `gaps` and `causes` in, as they come; those that a sender's
kernel held are kept, and how many pushes each stream had.

A push is what a server says without being asked, a gap of the kind "held" what a client does. Whoever has whole tables
hands them over in one piece, whoever reads a capture in many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.vocabulary import PROVEN

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

HELD = "held"
"""The `kind` of gaps in which a client's kernel held what it sent unasked."""
STALL = ("nagle", "delayed_ack")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "pushes": ("push", "stream", "protocol", "method", *(f"{name}_ms" for name in STALL)),
    "gaps": ("gap", "stream", "kind"),
    "causes": ("push", "gap", "cause", "duration_ms", "confidence", "evidence"),
}


@dataclass
class Held:
    """The messages that their senders' kernels held, by number: `ms` in all, of which `proven_ms` are proven and
    `acks_ms` are the peer's held ACKs. `name` is a place in `names`, protocol and method; those of clients have none.
    """

    number: Array
    stream: Array
    by_client: Array
    name: Array
    names: list[tuple[str, str]]
    ms: Array
    proven_ms: Array
    acks_ms: Array
    confidence: Array
    """Of each one's longest piece, as are the frames."""
    _longest: Array
    _causes: pa.Table

    def frames(self, row: int) -> tuple[int, ...]:
        """The segment before it, the ACK of that, and the one that it let go."""
        return tuple(self._causes["evidence"][int(self._longest[row])].as_py())


class Pushed:
    """What findings need of pushes; `add` takes the next rows of a table."""

    def __init__(self) -> None:
        import numpy as np

        self._count = np.zeros(0, np.uint32)
        self._kept: dict[str, list[pa.Table]] = {name: [] for name in COLUMNS}

    @classmethod
    def of(cls, pushes: pa.Table, gaps: pa.Table, causes: pa.Table) -> Pushed:
        """Those of whole tables."""
        found = cls()
        for name, table in (("pushes", pushes), ("gaps", gaps), ("causes", causes)):
            found.add(name, table)
        return found

    def add(self, name: str, rows: pa.Table) -> None:
        """Takes what matters of the next rows of "pushes", "gaps" or "causes"."""
        if not rows.num_rows:
            return
        which = {"pushes": self._pushes, "gaps": _gaps, "causes": _causes}[name](rows)
        if which is not None and which.any():
            picked = rows.select(COLUMNS[name]).take(arrays.column(which.nonzero()[0]))
            self._kept[name].append(picked.combine_chunks())

    def _pushes(self, rows: pa.Table) -> Array:
        import numpy as np

        count = np.bincount(arrays.numbers(rows, "stream"), minlength=len(self._count))
        count[: len(self._count)] += self._count
        self._count = count.astype(np.uint32)
        held: Array = sum((arrays.numbers(rows, f"{name}_ms") for name in STALL), np.zeros(rows.num_rows)) > 0
        return held

    def of_streams(self, streams: Array) -> Array:
        """How many pushes had each of these streams?"""
        import numpy as np

        many = np.append(self._count, 0)
        found: Array = many[np.minimum(streams, len(many) - 1)]
        return found

    def held(self) -> Held | None:
        """The messages that were held; None where none was."""
        import numpy as np
        import pyarrow as pa

        if not self._kept["causes"]:
            return None
        causes = pa.concat_tables(self._kept["causes"]).unify_dictionaries().combine_chunks()
        number, ms = _numbers(causes), arrays.numbers(causes, "duration_ms")
        order = np.lexsort((-ms, number))
        first = np.flatnonzero(np.diff(number[order], prepend=-1))
        longest, which = order[first], np.zeros(len(number), np.int64)
        which[order] = np.repeat(np.arange(len(first)), np.diff(first, append=len(order)))
        confidence, (cause, words) = arrays.numbers(causes, "confidence"), arrays.codes(causes, "cause")
        behind = cause == (words.index(STALL[1]) if STALL[1] in words else -2)
        sums = [np.bincount(which, ms * part) for part in (1.0, confidence >= PROVEN, behind)]
        rows = self._rows(number[longest])
        if rows is None:
            return None
        there, stream, by_client, name, names = rows
        total, proven, acks = (of[there] for of in sums)
        mine = longest[there]
        return Held(
            number[mine], stream, by_client, name, names, total, proven, acks, confidence[mine], mine, causes
        )  # fmt: skip

    def _rows(self, number: Array) -> tuple[Array, Array, Array, Array, list[tuple[str, str]]] | None:
        """Which of these numbers have a row in `pushes` or in held `gaps`; of each its stream, sender and name."""
        import numpy as np

        names: dict[tuple[str, str], int] = {}
        found: list[tuple[Array, Array, Array, Array]] = []
        for table in self._kept["pushes"]:
            (spoken, protocols), (method, methods) = (arrays.codes(table, name) for name in ("protocol", "method"))
            pairs, place = np.unique(spoken * (len(methods) + 1) + method + 1, return_inverse=True)
            called = [(protocols[p // (len(methods) + 1)], ["", *methods][p % (len(methods) + 1)]) for p in pairs]
            of = np.array([names.setdefault(one, len(names)) for one in called])[place]
            found.append((*_ends(table, "push"), np.zeros(len(of), bool), of))
        for table in self._kept["gaps"]:
            found.append((*_ends(table, "gap"), np.ones(table.num_rows, bool), np.full(table.num_rows, -1)))
        if not found:
            return None
        known, stream, by_client, name = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(known)
        at = order[np.minimum(np.searchsorted(known[order], number), len(known) - 1)]
        there = known[at] == number
        at = at[there]
        return there, stream[at], by_client[at], name[at], list(names)


def _ends(table: pa.Table, number: str) -> tuple[Array, Array]:
    return arrays.numbers(table, number).astype("int64"), arrays.numbers(table, "stream")


def _gaps(rows: pa.Table) -> Array:
    code, words = arrays.codes(rows, "kind")
    held: Array = code == (words.index(HELD) if HELD in words else -2)
    return held


def _causes(rows: pa.Table) -> Array | None:
    """The stalls of pushes and gaps."""
    import numpy as np

    if all(rows[link].null_count == rows.num_rows for link in ("push", "gap")):
        return None
    code, words = arrays.codes(rows, "cause")
    stalls = np.isin(code, [words.index(name) for name in STALL if name in words])
    found: Array = stalls & (_is_there(rows, "push") | _is_there(rows, "gap"))
    return found


def _is_there(rows: pa.Table, link: str) -> Array:
    import numpy as np

    found: Array = ~np.isnan(arrays.numbers(rows, link).astype(float))
    return found


def _numbers(causes: pa.Table) -> Array:
    """Of the push or the gap that each row is of."""
    import numpy as np

    push, gap = (arrays.filled(causes, link, 0).astype("int64") for link in ("push", "gap"))
    found: Array = np.where(_is_there(causes, "push"), push, gap)
    return found
