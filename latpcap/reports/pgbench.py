"""What would pgbench have printed of these statements? Exchanges of PostgreSQL in, pgbench's summary out.

The formulas are pgbench's own (printResults of pgbench.c): transactions per second over the time behind the connecting,
latency as that time by clients and transactions; where its clients pause, as with -R, each transaction is measured. A
transaction is BEGIN to END, or a statement outside; several that every connection repeats in turn are one script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from latpcap.format import count, ms
from latpcap.reports.report_text import Report, Subject, ns_of
from latpcap.tables import Needed, TableSlice
from latpcap.user_waits.cause_totals import endpoint

BEGINS, ENDS = ("BEGIN", "START"), ("END", "COMMIT", "ROLLBACK", "ABORT")
OWN = ("select count(*) from pgbench_branches", "vacuum pgbench_branches")
"""What pgbench asks first, on a connection of its own that is no client's."""
FAILURES = ("40001", "40P01")
"""Serialization failure and deadlock: pgbench counts them as failed. Any other error ends its client."""
BUILTIN = {
    ("BEGIN", "UPDATE pgbench_accounts", "SELECT pgbench_accounts", "UPDATE pgbench_tellers", "UPDATE pgbench_branches",
     "INSERT pgbench_history", "END"): "<builtin: TPC-B (sort of)>",
    ("BEGIN", "UPDATE pgbench_accounts", "SELECT pgbench_accounts", "INSERT pgbench_history", "END"):
        "<builtin: simple update>",
    ("SELECT pgbench_accounts",): "<builtin: select only>",
}  # fmt: skip
"""The scripts that pgbench brings, by verb and table of their statements."""
MOST_PARTS, REPEATS = 8, 3
"""A script of at most this many transactions is recognised, where each connection repeats it so often."""
PACED = 0.5
"""From this share of the run on in which nobody waits for an answer, a rate paces it (-R), or the scripts sleep."""


@dataclass(frozen=True)
class _Run:
    """One transaction, or one script of several: its statements, when it began and ended (ns), how it went wrong."""

    words: tuple[str, ...]
    start: int
    end: int
    failed: bool
    fatal: bool


def report(capture: Subject, server: str | None) -> Report:
    """pgbench's summary of the server with the most transactions, or of this one. ValueError without any."""
    streams = capture.arrow("streams").select(["stream", "server", "server_port", "start"]).to_pylist()
    statements, logged_in = _statements(capture)
    ends: dict[str, list[int]] = {}
    opened: dict[int, int] = {}
    for row in streams:
        name = endpoint(row["server"], row["server_port"]) if row["server"] else "?"
        if server in (None, row["server"], name) and _by_clients(statements.get(row["stream"], [])):
            ends.setdefault(name, []).append(row["stream"])
            opened[row["stream"]] = ns_of(row["start"])
    if not ends:
        raise ValueError(f"no statement of PostgreSQL{f' to {server}' if server else ''} in this capture")
    name = max(ends, key=lambda one: sum(len(statements[stream]) for stream in ends[one]))
    mine = ends[name]
    alone = {stream: _transactions(statements[stream]) for stream in mine}
    runs, parts = _scripts([runs for runs in alone.values() if runs])
    if all(run.fatal for of_one in runs for run in of_one):
        raise ValueError(f"no transaction of {name} is whole in this capture")
    whole = [stream for stream in mine if alone[stream]]
    ready = [logged_in.get(stream, ns_of(statements[stream][0]["start"])) for stream in whole]
    numbers = _numbers(runs, [opened[stream] for stream in whole], ready, parts)
    mode = _mode([row for stream in mine for row in statements[stream]])
    numbers |= {"server": name, "type": _type(runs), "mode": mode}
    return Report("pgbench", _lines(numbers), _unknown(numbers), numbers)


def needed() -> Needed:
    """What `report` reads."""
    return {"exchanges": TableSlice(_COLUMNS, _of_postgres), "streams": TableSlice(("server", "server_port", "start"))}


def _of_postgres(exchanges: Any) -> Any:
    import pyarrow.compute as pc

    return pc.equal(exchanges["protocol"], "postgresql")


_COLUMNS = [
    "stream", "protocol", "kind", "method", "target", "status_text", "error", "complete", "start", "end",
    "request_bytes",
]  # fmt: skip


def _statements(capture: Subject) -> tuple[dict[int, list[dict[str, Any]]], dict[int, int]]:
    """The statements of each connection behind its log-in, in order of time; and when that was over."""
    found: dict[int, list[dict[str, Any]]] = {}
    logged_in: dict[int, int] = {}
    rows = capture.arrow("exchanges").select(_COLUMNS).to_pylist()
    for row in sorted(rows, key=lambda row: ns_of(row["start"])):
        if row["protocol"] == "postgresql" and row["kind"] == "request" and row["method"]:
            found.setdefault(row["stream"], []).append(row)
        elif row["protocol"] == "postgresql" and row["complete"] and row["stream"] not in found:
            logged_in[row["stream"]] = ns_of(row["end"])
    return found, logged_in


def _by_clients(rows: Sequence[dict[str, Any]]) -> bool:
    """Are these a client's, and not what pgbench looks up before it begins?"""
    return bool(rows) and not (rows[0]["target"] or "").lower().startswith(OWN)


def _transactions(rows: Sequence[dict[str, Any]]) -> list[_Run]:
    """From BEGIN to END, or one statement; what is not answered to its end is none."""
    found: list[_Run] = []
    open_: list[dict[str, Any]] = []
    for row in rows:
        if row["method"] == "PREPARE":  # once for each statement of a client, inside its first transaction
            continue
        if open_ or row["method"] in BEGINS:
            open_.append(row)
            if row["method"] not in ENDS:
                continue
        whole, open_ = open_ or [row], []
        if all(part["complete"] for part in whole):
            wrong = [part["status_text"] in FAILURES for part in whole if part["error"]]
            words = tuple(_word(part) for part in whole)
            ends = ns_of(whole[0]["start"]), ns_of(whole[-1]["end"])
            found.append(_Run(words, *ends, failed=any(wrong), fatal=not all(wrong)))
    return found


def _word(row: dict[str, Any]) -> str:
    """A statement's verb and the table of pgbench's that it is about."""
    tables = [word for word in (row["target"] or "").split() if word.startswith("pgbench_")]
    return " ".join([row["method"], *tables[:1]])


def _scripts(connections: list[list[_Run]]) -> tuple[list[list[_Run]], int]:
    """The transactions by connection, those of one script put together, and of how many a script is made."""
    for parts in range(1, MOST_PARTS + 1):
        if all(_repeats(runs, parts) for runs in connections):
            break
    else:
        parts = 1  # of scripts in turn, or with conditions
    if parts == 1:
        return connections, 1
    joined = []
    for runs in connections:
        whole = [runs[at : at + parts] for at in range(0, len(runs) - parts + 1, parts)]
        joined.append([_joined(one) for one in whole])
    return joined, parts


def _joined(runs: list[_Run]) -> _Run:
    words = tuple(word for run in runs for word in run.words)
    failed, fatal = (any(getattr(run, name) for run in runs) for name in ("failed", "fatal"))
    return _Run(words, runs[0].start, runs[-1].end, failed=failed, fatal=fatal)


def _repeats(runs: list[_Run], parts: int) -> bool:
    if len(runs) < REPEATS * parts:
        return parts == 1 and len({run.words for run in runs}) <= 1
    return all(run.words == earlier.words for run, earlier in zip(runs[parts:], runs, strict=False))


def _numbers(
    connections: list[list[_Run]], opened: list[int], ready: list[int], parts: int
) -> dict[str, Any]:  # fmt: skip
    """pgbench's sums; `opened`: when each connection began, `ready`: when it could be statements."""
    import numpy as np

    runs = [run for runs in connections for run in runs if not run.fatal]
    start, end = np.array([run.start for run in runs]), np.array([run.end for run in runs])
    again = len(connections) > 1 and all(len(runs) == 1 for runs in connections)  # -C: a connection for each
    begin = min(opened) if again else min(max(ready), int(start.min()))
    seconds = max((max(run.end for runs in connections for run in runs) - begin) / 1e9, 1e-9)
    clients = _at_once(connections, opened) if again else len(connections)
    failed = sum(run.failed for run in runs)
    took = (end - start) / 1e6
    waits = [(run.start, run.end) for runs in connections for run in runs]
    if again:  # then connecting is waited for, too
        waits = [(at, runs[-1].end) for at, notes in zip(opened, connections, strict=True)]
    connecting = [done - at for done, at in zip(ready, opened, strict=True)]
    return {
        "clients": clients,
        "transactions": len(runs) - failed,
        "failed": failed,
        "fatal": sum(run.fatal for runs in connections for run in runs),
        "statements_per_script": len(runs[0].words),
        "transactions_per_script": parts,
        "reconnects": again,
        "idle_share": 1.0 - _busy(waits) / (1e9 * seconds),
        "runtime_s": seconds,
        "average_ms": 1e3 * seconds * clients / len(runs),
        "measured_average_ms": float(took.mean()),
        "measured_stddev_ms": float(took.std()),
        "connect_ms": (float(np.mean(connecting)) if again else begin - min(opened)) / 1e6,
        "tps": (len(runs) - failed) / seconds,
    }


def _busy(waits: list[tuple[int, int]]) -> int:
    """For how long, in ns, did somebody wait?"""
    busy = until = 0
    for start, end in sorted(waits):
        busy += max(0, end - max(start, until))
        until = max(until, end)
    return busy


def _at_once(connections: list[list[_Run]], opened: list[int]) -> int:
    """How many connections were open at the same time, at most?"""
    steps = sorted([*((at, 1) for at in opened), *((runs[-1].end, -1) for runs in connections)])
    open_ = most = 0
    for _, step in steps:
        open_ += step
        most = max(most, open_)
    return most


def _type(connections: list[list[_Run]]) -> str | None:
    kinds = {run.words for runs in connections for run in runs if not run.failed}
    return BUILTIN.get(next(iter(kinds))) if len(kinds) == 1 else None


def _mode(rows: list[dict[str, Any]]) -> str | None:
    """How statements are sent, by what their messages have around their text; None where values may fill it."""
    if any(row["method"] == "PREPARE" for row in rows):
        return "prepared"
    around = [(row["request_bytes"] - len(row["target"]), "?" in row["target"]) for row in rows if row["target"]]
    if any(size <= SIMPLE_BYTES for size, _ in around):
        return "simple"
    return "extended" if any(not masked for _, masked in around) else None


SIMPLE_BYTES = 20
"""A simple query has its type, length and a zero around its text, the extended protocol five messages."""


def _lines(n: dict[str, Any]) -> list[str]:
    total = n["transactions"] + n["failed"]
    lines = [
        f"transaction type: {n['type'] or '?'}",
        f"query mode: {n['mode'] or '?'}",
        f"number of clients: {n['clients']}",
        f"number of transactions actually processed: {n['transactions']}",
        f"number of failed transactions: {n['failed']} ({100 * n['failed'] / total:.3f}%)",
    ]
    if n["idle_share"] < PACED:
        including = " (including failures)" if n["failed"] else ""
        lines.append(f"latency average = {n['average_ms']:.3f} ms{including}")
    else:
        lines.append(f"latency average = {n['measured_average_ms']:.3f} ms")
        lines.append(f"latency stddev = {n['measured_stddev_ms']:.3f} ms")
    if n["reconnects"]:
        lines.append(f"average connection time = {n['connect_ms']:.3f} ms")
        return [*lines, f"tps = {n['tps']:.6f} (including reconnection times)"]
    lines.append(f"initial connection time = {n['connect_ms']:.3f} ms")
    return [*lines, f"tps = {n['tps']:.6f} (without initial connection time)"]


def _unknown(n: dict[str, Any]) -> list[str]:
    notes = ["scaling factor, threads, tries: no capture knows them; a transaction that is tried again counts twice"]
    if n["type"] is None:
        notes.append(f"the script's name: its first run here has {count(n['statements_per_script'], 'statement')}")
    if n["transactions_per_script"] > 1:
        notes.append(f"every connection repeats {n['transactions_per_script']} transactions in turn: one script each")
    if n["fatal"]:
        notes.append(f"{count(n['fatal'], 'transaction')} met an error that ends pgbench's client: counted nowhere")
    if n["mode"] is None:
        notes.append("the query mode: no statement here shows it without its values")
    measured = f"{n['measured_average_ms']:.3f} ms, stddev {n['measured_stddev_ms']:.3f} ms"
    if n["idle_share"] < PACED:
        notes.append(f"from first statement to last answer a transaction took {measured} at this point of capture")
    else:
        notes.append(
            f"with -R pgbench adds how late a transaction began; without -R or -P it prints {ms(n['average_ms'])} ms"
        )
    return notes


__all__ = ["report"]
