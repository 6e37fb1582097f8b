"""The summary that pgbench would have printed for these PostgreSQL statements.

The formulas are those of printResults in pgbench.c. Transactions per second are counted over the run time without the
initial connections. The latency is that time, times the clients, by the transactions; if clients pause, as with -R, it
is measured per transaction. A transaction is BEGIN to END, or a statement outside; a sequence of transactions that
every connection repeats is one script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from latpcap.format import count, endpoint, ms
from latpcap.lazy import np, pc
from latpcap.reports.report_text import Report, Subject, ns_of
from latpcap.tables import Needed, TableSlice

BEGINS, ENDS = ("BEGIN", "START"), ("END", "COMMIT", "ROLLBACK", "ABORT")
OWN = ("select count(*) from pgbench_branches", "vacuum pgbench_branches")
"""Beginnings of the statements that pgbench sends before the run, on a connection of its own."""
FAILURES = ("40001", "40P01")
"""SQLSTATE of serialization failure and deadlock, which pgbench counts as failed; other errors end the client."""
BUILTIN = {
    ("BEGIN", "UPDATE pgbench_accounts", "SELECT pgbench_accounts", "UPDATE pgbench_tellers", "UPDATE pgbench_branches",
     "INSERT pgbench_history", "END"): "<builtin: TPC-B (sort of)>",
    ("BEGIN", "UPDATE pgbench_accounts", "SELECT pgbench_accounts", "INSERT pgbench_history", "END"):
        "<builtin: simple update>",
    ("SELECT pgbench_accounts",): "<builtin: select only>",
}  # fmt: skip
"""pgbench's built-in scripts, by verb and table of their statements."""
MAX_PARTS, MIN_REPEATS = 8, 3
"""Upper bound on the transactions of a script, and the times that each connection must repeat it."""
PACED = 0.5
"""Share of the run without any waiting client from which a rate limit (-R) or sleeping scripts are assumed."""
_COLUMNS = [
    "stream", "protocol", "kind", "method", "target", "status_text", "error", "complete", "start", "end",
    "request_bytes",
]  # fmt: skip
SIMPLE_BYTES = 20
"""Upper bound on the bytes of a simple query beyond its text: type, length and a zero. The extended protocol sends five
messages, which need more.
"""


@dataclass(frozen=True)
class _Run:
    """A transaction, or a script of several. Instants in ns."""

    words: tuple[str, ...]
    """Its statements, each as verb and table."""
    start: int
    end: int
    failed: bool
    """Whether it had an error that pgbench counts as failed."""
    fatal: bool
    """Whether it had an error that ends the client."""


def report(capture: Subject, server: str | None) -> Report:
    """Return pgbench's summary for `server`, or the server with the most statements. ValueError without any."""
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
    name = max(ends, key=lambda end: sum(len(statements[stream]) for stream in ends[end]))
    transactions = {stream: _transactions(statements[stream]) for stream in ends[name]}
    runs, parts = _scripts([runs for runs in transactions.values() if runs])
    if all(run.fatal for of_connection in runs for run in of_connection):
        raise ValueError(f"no transaction of {name} is whole in this capture")
    used = [stream for stream in ends[name] if transactions[stream]]
    ready = [logged_in.get(stream, ns_of(statements[stream][0]["start"])) for stream in used]
    numbers = _numbers(runs, [opened[stream] for stream in used], ready, parts)
    mode = _mode([row for stream in ends[name] for row in statements[stream]])
    numbers |= {"server": name, "type": _type(runs), "mode": mode}
    return Report("pgbench", _lines(numbers), _unknown(numbers), numbers)


def needed() -> Needed:
    """Return the columns that `report` reads."""
    return {"exchanges": TableSlice(_COLUMNS, _of_postgres), "streams": TableSlice(("server", "server_port", "start"))}


def _of_postgres(exchanges: Any) -> Any:
    return pc.equal(exchanges["protocol"], "postgresql")


def _statements(capture: Subject) -> tuple[dict[int, list[dict[str, Any]]], dict[int, int]]:
    """Return the statements of each connection in order of time, and the end of its log-in in ns."""
    statements: dict[int, list[dict[str, Any]]] = {}
    logged_in: dict[int, int] = {}
    rows = capture.arrow("exchanges").select(_COLUMNS).to_pylist()
    for row in sorted(rows, key=lambda row: ns_of(row["start"])):
        if row["protocol"] == "postgresql" and row["kind"] == "request" and row["method"]:
            statements.setdefault(row["stream"], []).append(row)
        elif row["protocol"] == "postgresql" and row["complete"] and row["stream"] not in statements:
            logged_in[row["stream"]] = ns_of(row["end"])
    return statements, logged_in


def _by_clients(rows: Sequence[dict[str, Any]]) -> bool:
    """Return whether these are statements of a client, and not those that pgbench sends before the run."""
    return bool(rows) and not (rows[0]["target"] or "").lower().startswith(OWN)


def _transactions(rows: Sequence[dict[str, Any]]) -> list[_Run]:
    """Return the transactions of a connection: BEGIN to END, or one statement. Incomplete ones are left out."""
    transactions: list[_Run] = []
    unfinished: list[dict[str, Any]] = []
    for row in rows:
        if row["method"] == "PREPARE":  # once for each statement of a client, inside its first transaction
            continue
        if unfinished or row["method"] in BEGINS:
            unfinished.append(row)
            if row["method"] not in ENDS:
                continue
        statements, unfinished = unfinished or [row], []
        if all(statement["complete"] for statement in statements):
            is_failure = [statement["status_text"] in FAILURES for statement in statements if statement["error"]]
            words = tuple(_word(statement) for statement in statements)
            ends = ns_of(statements[0]["start"]), ns_of(statements[-1]["end"])
            transactions.append(_Run(words, *ends, failed=any(is_failure), fatal=not all(is_failure)))
    return transactions


def _word(row: dict[str, Any]) -> str:
    """Return a statement's verb and the pgbench table in it."""
    tables = [word for word in (row["target"] or "").split() if word.startswith("pgbench_")]
    return " ".join([row["method"], *tables[:1]])


def _scripts(connections: list[list[_Run]]) -> tuple[list[list[_Run]], int]:
    """Return the runs of scripts by connection, and the number of transactions in a script.

    A script has the smallest number of transactions that every connection repeats.
    """
    for parts in range(1, MAX_PARTS + 1):
        if all(_repeats(runs, parts) for runs in connections):
            break
    else:
        parts = 1  # scripts in random order, or with conditions
    if parts == 1:
        return connections, 1
    joined = []
    for runs in connections:
        scripts = [runs[start : start + parts] for start in range(0, len(runs) - parts + 1, parts)]
        joined.append([_joined(runs_of_script) for runs_of_script in scripts])
    return joined, parts


def _joined(runs: list[_Run]) -> _Run:
    words = tuple(word for run in runs for word in run.words)
    failed, fatal = (any(getattr(run, name) for run in runs) for name in ("failed", "fatal"))
    return _Run(words, runs[0].start, runs[-1].end, failed=failed, fatal=fatal)


def _repeats(runs: list[_Run], parts: int) -> bool:
    if len(runs) < MIN_REPEATS * parts:
        return parts == 1 and len({run.words for run in runs}) <= 1
    return all(run.words == earlier.words for run, earlier in zip(runs[parts:], runs, strict=False))


def _numbers(
    connections: list[list[_Run]], opened: list[int], ready: list[int], parts: int
) -> dict[str, Any]:  # fmt: skip
    """pgbench's numbers. `opened` is the instant of each connection's SYN, `ready` the end of its log-in."""
    runs = [run for runs in connections for run in runs if not run.fatal]
    start, end = np.array([run.start for run in runs]), np.array([run.end for run in runs])
    # -C: a connection per transaction
    reconnects = len(connections) > 1 and all(len(runs) == 1 for runs in connections)
    begin = min(opened) if reconnects else min(max(ready), int(start.min()))
    seconds = max((max(run.end for runs in connections for run in runs) - begin) / 1e9, 1e-9)
    clients = _at_once(connections, opened) if reconnects else len(connections)
    failed = sum(run.failed for run in runs)
    took = (end - start) / 1e6
    waits = [(run.start, run.end) for runs in connections for run in runs]
    if reconnects:  # then clients wait for the connection, too
        waits = [(opened_ns, runs[-1].end) for opened_ns, notes in zip(opened, connections, strict=True)]
    connecting = [ready_ns - opened_ns for ready_ns, opened_ns in zip(ready, opened, strict=True)]
    return {
        "clients": clients,
        "transactions": len(runs) - failed,
        "failed": failed,
        "fatal": sum(run.fatal for runs in connections for run in runs),
        "statements_per_script": len(runs[0].words),
        "transactions_per_script": parts,
        "reconnects": reconnects,
        "idle_share": 1.0 - _busy(waits) / (1e9 * seconds),
        "runtime_s": seconds,
        "average_ms": 1e3 * seconds * clients / len(runs),
        "measured_average_ms": float(took.mean()),
        "measured_stddev_ms": float(took.std()),
        "connect_ms": (float(np.mean(connecting)) if reconnects else begin - min(opened)) / 1e6,
        "tps": (len(runs) - failed) / seconds,
    }


def _busy(waits: list[tuple[int, int]]) -> int:
    """Return the ns in which at least one client waited."""
    busy = until = 0
    for start, end in sorted(waits):
        busy += max(0, end - max(start, until))
        until = max(until, end)
    return busy


def _at_once(connections: list[list[_Run]], opened: list[int]) -> int:
    """Return the largest number of connections that were open at once."""
    steps = sorted([*((opened_ns, 1) for opened_ns in opened), *((runs[-1].end, -1) for runs in connections)])
    open_now = greatest = 0
    for _, step in steps:
        open_now += step
        greatest = max(greatest, open_now)
    return greatest


def _type(connections: list[list[_Run]]) -> str | None:
    kinds = {run.words for runs in connections for run in runs if not run.failed}
    return BUILTIN.get(next(iter(kinds))) if len(kinds) == 1 else None


def _mode(rows: list[dict[str, Any]]) -> str | None:
    """Return the query mode, by the bytes of a message beyond its text; None if masked values may fill them."""
    if any(row["method"] == "PREPARE" for row in rows):
        return "prepared"
    around = [(row["request_bytes"] - len(row["target"]), "?" in row["target"]) for row in rows if row["target"]]
    if any(size <= SIMPLE_BYTES for size, _ in around):
        return "simple"
    return "extended" if any(not masked for _, masked in around) else None


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
