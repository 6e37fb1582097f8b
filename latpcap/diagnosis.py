"""Why were these requests slow? Tables in, one answer in plain words and numbers out.

Reads the Arrow tables of a capture or a stream; gives `Why`, whose `to_dict()` holds every number of its
text. The words of the text are in words.py; the numbers are computed here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latpcap.vocabulary import CAUSES, PROVEN, STALL

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.capture import Capture
    from latpcap.tables import Tables


class Why:
    """Why was it slow, who waited for whom, how sure is that, and what would mend it?

    `str(why)` is the answer in at most 15 lines; `to_dict()` has every number of it, durations in ms.
    """

    def __init__(self, data: dict[str, Any]):
        self._data = data

    @classmethod
    def of(cls, capture: Capture, scope: Tables) -> Why:
        """Why were the exchanges of this capture or stream slow?"""
        return cls(_overall(capture, scope))

    @classmethod
    def of_exchange(cls, capture: Capture, number: int) -> Why:
        """Why was this one exchange slow? IndexError where there is no such exchange."""
        return cls(_single(capture, number))

    def to_dict(self) -> dict[str, Any]:
        """Which numbers stand behind the answer? Plain dicts, lists, strings and numbers (for JSON)."""
        return self._data

    def __str__(self) -> str:
        from latpcap import words

        return words.of_exchange(self._data) if self._data["kind"] == "exchange" else words.overall(self._data)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html

        return '<pre style="background:#fff;color:#222">' + html.escape(str(self)) + "</pre>"


def _head(capture: Capture) -> dict[str, Any]:
    return {
        "file": Path(capture.name).name,
        "frames": capture.frames,
        "streams": capture.arrow("streams").num_rows,
        "exchanges": capture.arrow("exchanges").num_rows,
        "seconds": capture.seconds,
        "damage": capture.damage,
    }


def rank(ordered: list[float], share: float) -> float:
    """Which value is this percentile? Nearest rank, as wrk counts; `ordered` rises and is not empty."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _overall(capture: Capture, scope: Tables) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": "overall", **_head(capture)}
    data["scope"] = getattr(scope, "number", None)
    streams = {r["stream"]: r for r in _rows(scope.arrow("streams"), _STREAM)}
    columns = ["exchange", "stream", "index", "latency_ms", "complete", "response_first_frame"]
    spent = [f"{c}_ms" for c in CAUSES]
    exchanges = scope.arrow("exchanges").select([*columns, *spent])
    whole = exchanges.filter(exchanges["complete"])
    data["incomplete"] = exchanges.num_rows - whole.num_rows
    data["positions"] = sorted({r["position"] for r in streams.values() if r["position"]})
    data["retransmissions"] = sum(r["client_retransmissions"] + r["server_retransmissions"] for r in streams.values())
    data["cut"] = whole.num_rows == 0
    if data["cut"]:  # answers that began are better than nothing: their time until the capture lost sight of them
        whole = _begun(exchanges)
    if whole.num_rows == 0:
        data["verdict"] = "no_exchanges"
        data["silent"] = _silent(streams.values())
        return data
    server = _busiest(whole, streams)
    data["server"], data["servers"] = server, len({_server(s) for s in streams.values() if s["exchanges"]})
    mine = {n for n, s in streams.items() if _server(s) == server}
    rows = [r for r in whole.to_pylist() if r["stream"] in mine]
    rows.sort(key=lambda r: (r["latency_ms"], r["exchange"]))
    latencies = [r["latency_ms"] for r in rows]
    data["complete"] = len(rows)
    data["p50_ms"], data["p99_ms"] = rank(latencies, 0.50), rank(latencies, 0.99)
    data["total_ms"] = sum(latencies)
    wanted = {r["exchange"] for r in rows}
    causes = [c for c in scope.arrow("causes").select(_CAUSE).to_pylist() if c["exchange"] in wanted]
    data["causes"] = _totals(causes)
    _findings(data, rows, causes)
    _evidence(data, capture, server, mine)
    _fix(data)
    return data


_STREAM = [
    "stream", "client", "client_port", "server", "server_port", "position", "exchanges", "completeness",
    "client_packets", "server_packets", "client_retransmissions", "server_retransmissions", "client_rtt_ms",
    "server_rtt_ms", "closed_by",
]  # fmt: skip
_CAUSE = ["exchange", "cause", "parent", "owner", "duration_ms", "evidence", "rule", "confidence"]


def _rows(table: pa.Table, columns: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.select(columns).to_pylist()
    return rows


def _server(stream: dict[str, Any]) -> str:
    address = stream["server"]
    return f"[{address}]:{stream['server_port']}" if ":" in address else f"{address}:{stream['server_port']}"


def _silent(streams: Any) -> dict[str, int]:
    """Connections without any exchange, by how far they got."""
    counts: dict[str, int] = defaultdict(int)
    for s in streams:
        if s["completeness"] & 1 and not s["server_packets"]:
            counts["unanswered"] += 1
        elif not s["completeness"] & 8:
            counts["without_data"] += 1
        else:
            counts["without_answer"] += 1
    return dict(counts)


def _begun(exchanges: pa.Table) -> pa.Table:
    """Exchanges whose answer began but did not end in the capture, with the time that was seen of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    begun = exchanges.filter(pc.is_valid(exchanges["response_first_frame"]))
    seen = pa.array([0.0] * begun.num_rows, pa.float64())
    for cause in CAUSES:
        seen = pc.add(seen, begun[f"{cause}_ms"])
    return begun.set_column(begun.column_names.index("latency_ms"), "latency_ms", seen)


def _busiest(whole: pa.Table, streams: dict[int, dict[str, Any]]) -> str:
    """The server whose exchanges took the most time together."""
    spent: dict[str, float] = defaultdict(float)
    for number, latency in zip(whole["stream"].to_pylist(), whole["latency_ms"].to_pylist(), strict=True):
        spent[_server(streams[number])] += latency
    return max(sorted(spent), key=lambda s: spent[s])


def _totals(causes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Time and exchanges per cause and owner, the most time first."""
    time: dict[tuple[str, str], float] = defaultdict(float)
    hit: dict[tuple[str, str], set[int]] = defaultdict(set)
    sure: dict[tuple[str, str], float] = defaultdict(float)
    for c in causes:
        key = (c["cause"], c["owner"])
        time[key] += c["duration_ms"]
        hit[key].add(c["exchange"])
        if c["confidence"] >= PROVEN:
            sure[key] += c["duration_ms"]
    order = sorted(time, key=lambda k: (-time[k], k))
    return [
        {"cause": k[0], "owner": k[1], "total_ms": time[k], "exchanges": len(hit[k]), "proven_ms": sure[k]}
        for k in order
    ]


def _findings(data: dict[str, Any], rows: list[dict[str, Any]], causes: list[dict[str, Any]]) -> None:
    """The cause that took the most time, with Nagle and the delayed ACKs inside it counted as one."""
    stalled: dict[int, float] = defaultdict(float)
    held: dict[int, dict[str, Any]] = {}
    fin_released = set()
    for c in causes:
        if c["cause"] == "nagle" or c["parent"] == "nagle":
            stalled[c["exchange"]] += c["duration_ms"]
        if c["cause"] == "delayed_ack":
            best = held.get(c["exchange"])
            if best is None or c["duration_ms"] > best["duration_ms"]:
                held[c["exchange"]] = c
        if c["rule"] == "nagle_fin_release":
            fin_released.add(c["exchange"])
    alone = {t["cause"]: t["total_ms"] for t in reversed(data["causes"]) if t["cause"] not in ("nagle", "delayed_ack")}
    stall_ms = sum(stalled.values())
    top, top_ms = max(alone.items(), key=lambda i: i[1], default=("unknown", 0.0))
    main = STALL if held and stall_ms >= top_ms else "nagle" if stalled and stall_ms >= top_ms else top
    hit = held if main == STALL else stalled if main == "nagle" else None
    per_exchange = {
        r["exchange"]: stalled.get(r["exchange"], 0.0) if hit is not None else r[f"{main}_ms"] for r in rows
    }
    touched = [r for r in rows if (r["exchange"] in hit if hit is not None else per_exchange[r["exchange"]] > 0)]
    proven = [e for e in held if held[e]["confidence"] >= PROVEN]
    data["verdict"] = main
    data["hit"] = len(touched)
    data["proven"] = len(proven) if main == STALL else None
    data["share"] = {
        "p50": _cohort(rows, per_exchange, data["p50_ms"], 0.45, 0.55),
        "p99": _cohort(rows, per_exchange, data["p99_ms"], 0.985, 0.995),
        "all": sum(per_exchange.values()) / data["total_ms"] if data["total_ms"] else 0.0,
    }
    data["fin_released"] = len(fin_released)
    data["first_fast"] = _first_fast(rows, held) if main == STALL else 0
    typical = touched[len(touched) // 2] if touched else rows[len(rows) // 2]
    data["typical"] = _typical(typical, causes, main)
    data["confidence"] = data["typical"]["confidence"]


def _cohort(
    rows: list[dict[str, Any]], of: dict[int, float], latency: float, low: float, high: float
) -> dict[str, float]:
    """What the cause took of the exchanges around a percentile, on average."""
    start = min(int(low * len(rows)), len(rows) - 1)
    end = max(start + 1, int(high * len(rows)))
    around = rows[start:end]
    mean = sum(of[r["exchange"]] for r in around) / len(around)
    return {"ms": mean, "of_ms": latency, "share": min(1.0, mean / latency) if latency else 0.0}


def _first_fast(rows: list[dict[str, Any]], held: dict[int, Any]) -> int:
    """First exchanges of streams that were spared while later ones stalled (quick ACKs at the start)."""
    later = {r["stream"] for r in rows if r["exchange"] in held and r["index"] > 0}
    return sum(1 for r in rows if r["index"] == 0 and r["exchange"] not in held and r["stream"] in later)


def _typical(row: dict[str, Any], causes: list[dict[str, Any]], main: str) -> dict[str, Any]:
    """The exchange in the middle of those that were hit, with the frames to look up."""
    name = "delayed_ack" if main == STALL else main
    mine = [c for c in causes if c["exchange"] == row["exchange"]]
    best = max((c for c in mine if c["cause"] == name), key=lambda c: c["duration_ms"], default=None)
    best = best or max(mine, key=lambda c: c["duration_ms"], default=None)
    if best is None:
        return {"exchange": row["exchange"], "stream": row["stream"], "frames": [], "ms": 0.0, "owner": "capture",
                "confidence": 0.0, "latency_ms": row["latency_ms"]}  # fmt: skip
    return {
        "exchange": row["exchange"],
        "stream": row["stream"],
        "latency_ms": row["latency_ms"],
        "frames": best["evidence"],
        "ms": best["duration_ms"],
        "owner": best["owner"],
        "confidence": best["confidence"],
    }


def _evidence(data: dict[str, Any], capture: Capture, server: str, streams: set[int]) -> None:
    """What was counted for and against Nagle at this server, and what its frames carry."""
    rows = [r for r in capture.arrow("evidence").to_pylist() if _server(r) == server]
    rows.sort(key=lambda r: -r["opportunities"])
    data["senders"] = {side: _merge([r for r in rows if r["sender"] == side]) for side in ("server", "client")}
    frames = data["typical"]["frames"]
    if data["verdict"] != STALL or len(frames) != 3:
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    events = capture.arrow("events").select(["frame", "time", "len", "from_client"])
    seen = events.filter(pc.is_in(events["frame"], value_set=pa.array(frames, pa.uint64())))
    times = seen["time"].cast(pa.int64()).to_pylist()
    lengths, from_client = seen["len"].to_pylist(), seen["from_client"].to_pylist()
    if len(times) == 3:
        data["typical"]["bytes"] = [lengths[0], lengths[2]]
        data["typical"]["sender"] = "client" if from_client[0] else "server"
        data["typical"]["ack_after_ms"] = (times[1] - times[0]) / 1e6
        data["typical"]["release_us"] = (times[2] - times[1]) / 1e3


def _fix(data: dict[str, Any]) -> None:
    """Who owns the wait, and which knob on which side mends it."""
    main = data["verdict"]
    if main == STALL:
        sender = data["typical"].get("sender", "server")
        data["owners"] = {"nagle": sender, "delayed_ack": "client" if sender == "server" else "server"}
        hint = " (nginx: tcp_nodelay on;)" if sender == "server" else ""
        data["fix"] = f"TCP_NODELAY on the {sender}{hint}, or both parts in one write (writev)"
    else:
        data["owners"] = {main: data["typical"]["owner"]}
        data["fix"] = CAUSES[main].fix


def _merge(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Several clients of one server as one row; times are those of the client with the most held ACKs."""
    if not rows:
        return {"opportunities": 0, "held": 0, "tight": 0, "refuted": 0, "verdict": "open"}
    most = max(rows, key=lambda r: (r["held"], r["opportunities"]))
    merged = dict(most)
    for column in ("opportunities", "held", "tight", "refuted"):
        merged[column] = sum(r[column] for r in rows)
    for column, pick in (("hold_min_ms", min), ("hold_max_ms", max)):
        values = [r[column] for r in rows if r[column] is not None]
        merged[column] = pick(values) if values else None
    return merged


def _single(capture: Capture, number: int) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = capture.arrow("exchanges")
    found = (
        table.filter(pc.equal(table["exchange"], pa.scalar(number, pa.uint64()))) if 0 <= number < 2**63 else table[:0]
    )
    if found.num_rows == 0:
        raise IndexError(f"no exchange {number}: {Path(capture.name).name} has {table.num_rows:,} exchanges")
    row = found.select(
        ["exchange", "stream", "index", "protocol", "method", "target", "status", "latency_ms", "client_latency_ms",
         "ttfb_ms", "complete", "cut_by", "request_first_frame", "response_last_frame", "top_cause"]
    ).to_pylist()[0]  # fmt: skip
    causes = capture.arrow("causes")
    mine = causes.filter(pc.equal(causes["exchange"], pa.scalar(number, pa.uint64())))
    data = {"kind": "exchange", **_head(capture), **row}
    data["causes"] = mine.select(
        [
            "cause",
            "parent",
            "owner",
            "duration_ms",
            "from_frame",
            "to_frame",
            "evidence",
            "rule",
            "confidence",
        ]
    ).to_pylist()
    return data
