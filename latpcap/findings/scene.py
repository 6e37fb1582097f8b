"""What kind of capture is this, where no request tells? Streams, probes and what happened to connections in, a sentence
out: a scan, a traceroute, a refusal, a dead window, one direction only, idle connections, no TCP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.findings import presentation as show
from latpcap.findings.connections import DATA, SYN, SYN_ACK
from latpcap.findings.quality import one_way
from latpcap.findings.schema import Finding
from latpcap.findings.segments import segments
from latpcap.findings.totals import endpoint
from latpcap.words import say

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

MS = 1e6
RISING = 0.5
"""Echo requests of a traceroute: from this share on, routers answer them instead of their target."""


def of(tables: Mapping[str, pa.Table], events: Sequence[Finding], *, alone: bool) -> tuple[str, str] | None:
    """Kind and sentence of this capture, where it is of a kind of its own; `alone`: no request was judged in it."""
    found = next(_scan(tables["streams"]), None)
    if found is not None or not alone:
        return found
    for search in (_icmp(tables), _happened(events), _quiet(tables)):
        found = next(search, None)
        if found is not None:
            return found
    return None


def _icmp(tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, str]]:
    """Pings, and a traceroute by pings, where there is no TCP."""
    if tables["streams"].num_rows:
        return
    probes = tables["probes"]
    if not probes.num_rows:
        return
    answers, words = arrays.codes(probes, "answer")
    kinds, names = arrays.codes(probes, "kind")
    pings = kinds == (names.index("icmp_echo") if "icmp_echo" in names else -2)
    if not pings.any():
        return
    hit = {word: int((pings & (answers == code)).sum()) for code, word in enumerate(words)}
    total = int(pings.sum())
    if hit.get("time_exceeded", 0) >= RISING * sum(hit.values()) > 0:
        [row] = probes.select(["dst"]).slice(int(pings.argmax()), 1).to_pylist()
        yield "traceroute", say("trace_by_icmp", target=row["dst"], n=hit["time_exceeded"], of=total)
        return
    yield "ping", _pings(arrays.numbers(probes, "rtt_ms").astype(float)[pings], answers[pings], words)


def _pings(rtt: Array, answers: Array, words: list[str]) -> str:
    """How many pings came back, how soon, and what came in place of an answer."""
    import numpy as np

    other = {word: int((answers == code).sum()) for code, word in enumerate(words) if word != "echo_reply"}
    came = np.sort(rtt[~np.isnan(rtt) & np.isin(answers, [c for c, word in enumerate(words) if word not in other])])
    lost = len(rtt) - len(came) - sum(other.values())
    one = "ping" if len(rtt) == 1 else "pings"
    parts = [say(f"{one}_icmp", n=n, word=word.replace("_", " ")) for word, n in other.items() if n]
    parts += [say(f"{one}_lost", n=lost)] if lost else []
    if lost == len(rtt) > 1:
        parts = [say("pings_none")]
    values = {
        "n": len(rtt),
        "came": say("and_more").join(parts) or say("ping_answered" if len(rtt) == 1 else "pings_all"),
    }
    if not len(came):
        return say("pings", **values)
    low, high, mean = float(came[0]), float(came[-1]), float(came.mean())
    if len(came) == 1:
        return say("pings_one_trip", trip_ms=low, **values)
    return say("pings_trips", low_ms=low, high_ms=high, mean_ms=mean, **values)


def _scan(streams: pa.Table) -> Iterator[tuple[str, str]]:
    """One client that tries many ports or hosts, and gets next to nothing: most connections of the capture, or many to
    the same few ports. (Peers dial each other too, but on a port of each.)
    """
    import numpy as np

    if streams.num_rows < show.SCANNED:
        return
    code, answers = arrays.numbers(streams, "completeness"), arrays.numbers(streams, "server_packets")
    (client, clients), (server, servers) = arrays.codes(streams, "client"), arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port").astype(np.int64)
    closed, words = arrays.codes(streams, "closed_by")
    silent = (code & SYN != 0) & (code & DATA == 0)
    refused = silent & (closed == (words.index("server_rst") if "server_rst" in words else -2)) & (code & SYN_ACK == 0)
    failed = refused | (silent & (answers == 0))
    if not silent.any():
        return
    mostly = silent.sum() >= show.SCAN_SHARE * streams.num_rows
    vain = silent if mostly else failed
    if not vain.any():
        return
    who = int(np.bincount(client[vain]).argmax())
    mine = vain & (client == who)
    ends = np.unique(server[mine].astype(np.int64) << 16 | port[mine])
    ports, hosts = np.unique(ends & 0xFFFF), np.unique(ends >> 16)
    few = len(ports) <= show.SCAN_PORTS or len(hosts) == 1
    if len(ends) < (show.SCANNED if mostly else show.SCANNED_BESIDE) or not (mostly or few):
        return
    mine = (client == who) & np.isin(port, ports) & np.isin(server, hosts)
    shut, nothing = int((mine & refused).sum()), int((mine & failed & ~refused).sum())
    host = f"{servers[int(hosts[0])]}" if len(hosts) == 1 else say("hosts", n=len(hosts))
    yield "scan", say(
        "scan", client=clients[who], n=len(ports), host=host, shut=shut, nothing=nothing,
        answered=int(mine.sum()) - shut - nothing,
    )  # fmt: skip


_FIRST = ("traceroute", "refused", "unreachable", "unanswered", "half_open")


def _happened(events: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """What happened to the connections, the rarest kind of thing first."""
    for cause in _FIRST:
        rows = [e for e in events if e.cause == cause and e.says]
        if rows:
            more = sum(e.streams or 0 for e in rows[1:])
            text = rows[0].says or ""
            yield cause, say("elsewhere_too", text=text, n=more) if more else text


def _quiet(tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, str]]:
    """Connections on which nothing was asked and answered: of what kind?"""
    streams = tables["streams"]
    if not streams.num_rows:
        return
    alone = one_way(streams)
    if alone.any() and alone.sum() >= streams.num_rows / 2:
        which = "its_one_connection" if streams.num_rows == 1 else "of_connections"
        some = say(which, n=int(alone.sum()), of=streams.num_rows)
        yield "one_direction", say("one_direction_scene", which=some)
    events = segments(tables)
    shut = events.shut() if events is not None else None
    for side in ("server", "client"):
        dead = _windows(shut, streams, side) if shut is not None else None
        if dead:
            name, frame, waited, probes = dead
            again = say("probes_again", n=probes) if probes else ""
            yield (
                "dead_window",
                say(f"dead_window_{side}", server=name, frame=frame, wait_ms=waited, again=again),
            )
    data = arrays.numbers(streams, "client_payload_bytes") + arrays.numbers(streams, "server_payload_bytes")
    if not data.any():
        seconds = float(arrays.numbers(streams, "end").max() - arrays.numbers(streams, "start").min()) / 1e9
        if seconds >= show.IDLE_S:
            yield "idle", say("idle", n=streams.num_rows, seconds=seconds)


def _windows(events: pa.Table, streams: pa.Table, side: str) -> tuple[str, int, float, int] | None:
    """The window of 0 that lasts the longest on this side, to the end: whose, its first frame, ms, probes of it."""
    import numpy as np

    sent = arrays.numbers(events, "from_client").astype(bool) == (side == "client")
    shut, probe = (arrays.numbers(events, c).astype(bool) for c in ("zero_window", "zero_window_probe"))
    stream, time, frame = (arrays.numbers(events, c) for c in ("stream", "time", "frame"))
    flags, words = arrays.codes(events, "flags")
    living = sent & ~np.isin(flags, [code for code, word in enumerate(words) if "RST" in word])
    worst: tuple[float, int, int, int] | None = None
    for number in np.unique(stream[living & shut]).tolist():
        every = np.flatnonzero(stream == number)
        rows = every[living[every]]
        if not shut[rows[-1]]:
            continue
        opened = np.flatnonzero(~shut[rows])
        first = int(rows[int(opened[-1]) + 1 if len(opened) else 0])
        probes = int(probe[every[every > first]].sum())
        case = float(time[every[-1]] - time[first]) / MS, int(number), int(frame[first]), probes
        worst = case if worst is None else max(worst, case)
    if worst is None:
        return None
    waited, number, first_frame, probes = worst
    at = int(np.flatnonzero(arrays.numbers(streams, "stream") == number)[0])
    [row] = streams.select(["server", "server_port"]).slice(at, 1).to_pylist()
    return endpoint(row["server"], row["server_port"]), first_frame, waited, probes
