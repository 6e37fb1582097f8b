"""Find the exchanges and frames that show a finding, its strongest rival and why that lost, and names for sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

from latpcap import arrays, spill, words
from latpcap import presentation as show
from latpcap.findings.schema import Finding, wireshark_filter
from latpcap.findings.socket_options import Pool, mixed
from latpcap.format import printable
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.user_waits import slow_requests
from latpcap.user_waits.cause_totals import CauseTotal
from latpcap.user_waits.segments import HasSegments
from latpcap.user_waits.servers import Server
from latpcap.vocabulary import BACKEND, BECAUSES, PROGRAMS, PROVEN, RIVALS, SIDES, STALL
from latpcap.words import joined, say

if TYPE_CHECKING:
    from latpcap.arrays import Array

LOOPBACK = ("127.", "::1")
"""Beginnings of loopback addresses, over which a proxy reaches servers on its own host."""
OTHERS = {
    "fast_retransmit": "overtaken", "tlp": "repeated", "rto": "repeated", "receive_window": "cwnd",
    "zero_window": "cwnd",
}  # fmt: skip
"""The strongest rival of each cause whose proof does not count occurrences."""
TOGETHER = {("other_path", "timer_length"): "other_path_timer"}
"""Rivals with a sentence of their own for what is missing to exclude them."""
UNNAMED = ("handshake", "message", "content")
"""Methods that readers invent for requests without one on the wire."""


@dataclass(frozen=True)
class ExampleExchange:
    """One exchange that shows a finding: its number, its time of the cause, and the frames of the longest piece."""

    exchange: int
    stream: int
    ms: float
    frames: tuple[int, ...]
    elsewhere: bool = False
    """Whether the frames are of another connection, that to a backend."""

    @property
    def filter(self) -> str:
        """A display filter of Wireshark that shows the frames."""
        frames = ", ".join(str(frame) for frame in self.frames)
        if self.elsewhere:
            return f"frame.number in {{{frames}}}"
        return f"tcp.stream eq {self.stream}" + (f" and frame.number in {{{frames}}}" if frames else "")


def cases(item: CauseTotal, tables: Mapping[str, pa.Table]) -> tuple[ExampleExchange, ExampleExchange]:
    """Return the exchange with the most time of this cause, and a typical one.

    Half of the cause's time lies in exchanges with at most as much of it as the typical one. If a few long waits take
    most of the time, it is one of them, and not one of the many short ones.
    """
    middle = _half(item.ordered)
    typical_ms = item.ordered[middle]
    typical = _alike(item.ms, typical_ms, middle - int(np.searchsorted(item.ordered, typical_ms)))
    longest_ms = item.ordered[-1]
    worst = _alike(item.ms, longest_ms, len(item.ms) - 1 - int(np.searchsorted(item.ordered, longest_ms)))
    return _case(item, worst, tables), _case(item, typical, tables)


def _alike(values: Array, value: float, before: int) -> int:
    """Return the place of the value that has `before` equal ones before it."""
    for span in spill.parts(len(values)):
        equal = np.flatnonzero(values[span] == value)
        if before < len(equal):
            return int(span.start + equal[before])
        before -= len(equal)
    raise ValueError(f"{value} is not there so often")


def _half(values: Array) -> int:
    """Return the first place up to which half of the sum of the values lies."""

    def sums() -> Iterator[tuple[int, Array]]:
        before = 0.0
        for span in spill.parts(len(values)):
            total = np.cumsum(np.concatenate([[before], values[span]]))[1:]
            yield span.start, total
            before = float(total[-1])

    for _, total in sums():
        half = float(total[-1]) / 2
    return next(begin + int(np.searchsorted(total, half)) for begin, total in sums() if total[-1] >= half)


def _case(item: CauseTotal, index: int, tables: Mapping[str, pa.Table]) -> ExampleExchange:
    stretches, causes = tables["stretches"], tables["causes"]
    position = int(item.rows[index])
    number = stretches["exchange"][position].as_py()
    cause_rows = _pieces(item, number, causes)
    longest = int(cause_rows[np.argmax(arrays.numbers(causes, "duration_ms")[cause_rows])])
    frames = tables.frames(longest) if isinstance(tables, HasSegments) else causes["evidence"][longest].as_py()
    stream, is_elsewhere = stretches["stream"][position].as_py(), item.owner == BACKEND
    return ExampleExchange(number, stream, float(item.ms[index]), tuple(frames), is_elsewhere)


def _pieces(item: CauseTotal, exchange: int, causes: pa.Table) -> Array:
    """Return this cause's rows of "causes" in one exchange; of a stall those of the held ACK, if any."""
    numbers = arrays.numbers(causes, "exchange")
    spans = spill.parts(len(item.causes))
    row_parts = (item.causes[span] for span in spans)
    cause_rows: Array = np.concatenate([rows[numbers[rows] == exchange] for rows in row_parts])
    texts, names = arrays.codes(causes, "cause")
    if item.cause != STALL or "delayed_ack" not in names:
        return cause_rows
    held_rows: Array = cause_rows[texts[cause_rows] == names.index("delayed_ack")]
    return held_rows if len(held_rows) else cause_rows


def pieces(item: CauseTotal, exchange: int, causes: pa.Table) -> tuple[int, float]:
    """Return the number of pieces of this cause in one exchange, and the longest in ms."""
    ms = arrays.numbers(causes, "duration_ms")[_pieces(item, exchange, causes)]
    return len(ms), float(ms.max())


def rival_left(item: CauseTotal, causes: pa.Table) -> tuple[str, str] | None:
    """Return the rival that the rows leave for the longest time, and what is missing to exclude it, or None."""
    (codes, rivals), (missing, becauses) = arrays.codes(causes, "rival"), arrays.codes(causes, "because")
    cause_rows = spill.long_lived_copy(item.causes[spill.take(codes, item.causes) >= 0])
    if not len(cause_rows):
        return None
    ms = arrays.numbers(causes, "duration_ms")
    first = int(spill.sum_weights(codes, ms, len(rivals), cause_rows).argmax())
    cause_rows = spill.long_lived_copy(cause_rows[(codes[cause_rows] == first) & (missing[cause_rows] >= 0)])
    if not len(cause_rows):
        return None
    return rivals[first], becauses[int(spill.sum_weights(missing, ms, len(becauses), cause_rows).argmax())]


def hardest_client(item: CauseTotal, tables: Mapping[str, pa.Table]) -> tuple[str | None, float | None]:
    """Return the client address with the most time of this cause, and its share."""
    streams, stretches = tables["streams"], tables["stretches"]
    client, names = arrays.codes(streams, "client")
    stream_numbers = spill.take(arrays.numbers(stretches, "stream"), item.rows)
    rows = spill.positions_of(arrays.numbers(streams, "stream"), stream_numbers)
    spent_ms: dict[int, float] = {}
    for span in spill.parts(len(rows)):
        for key, part_ms in zip(
            *(column.tolist() for column in arrays.sums(client[rows[span]], item.ms[span])), strict=True
        ):
            spent_ms[key] = spent_ms.get(key, 0.0) + part_ms
    keys, ms = np.array(sorted(spent_ms), np.int64), np.array([spent_ms[key] for key in sorted(spent_ms)])
    if not len(keys):
        return None, None
    largest = int(np.argmax(ms))
    return names[int(keys[largest])], float(ms[largest] / ms.sum()) if ms.sum() > 0 else 1.0


def streams_hit(item: CauseTotal, tables: Mapping[str, pa.Table]) -> int:
    """Return the number of streams with this cause."""
    return len(arrays.distinct(spill.take(arrays.numbers(tables["stretches"], "stream"), item.rows)))


def handshake_ms(server: Server, tables: Mapping[str, pa.Table]) -> float | None:
    """Return the handshake's round trip on the stream of the slowest exchange; None if not captured."""
    stream = arrays.numbers(tables["stretches"], "stream")[server.rows[-1]]
    row = int(np.flatnonzero(arrays.numbers(tables["streams"], "stream") == stream)[0])
    return tables["streams"]["initial_rtt_ms"][row].as_py()


def software_of(server: Server, tables: Mapping[str, pa.Table]) -> str | None:
    """Return the software that this server names on most of its streams; None if on no stream."""
    return next(iter(_words_of(server, tables["streams"], "server_software")), None)


def names_of(server: Server, tables: Mapping[str, pa.Table]) -> list[str]:
    """Return the host names that clients used for this server, the most frequent first; addresses are not names."""
    return [name for name in _words_of(server, tables["streams"], "server_name") if _is_name(name)]


def _words_of(server: Server, streams: pa.Table, column: str) -> list[str]:
    """Return the values of this column on the streams of this server, the most frequent first."""
    (address, addresses), (word, texts) = arrays.codes(streams, "server"), arrays.codes(streams, column)
    is_of_server = address == (addresses.index(server.address) if server.address in addresses else -2)
    is_of_server &= arrays.numbers(streams, "server_port") == server.port
    counts = np.bincount(word[is_of_server & (word >= 0)], minlength=1)
    return [texts[i] for i in np.argsort(-counts, kind="stable").tolist() if counts[i]]


def _is_name(host: str) -> bool:
    """Return whether `host` is a name, not an address with or without a port, nor "localhost"."""
    bare = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host
    bare = bare.partition(":")[0] if bare.count(":") == 1 else bare
    try:
        ip_address(bare)
    except ValueError:
        return bare != "localhost"
    return False


def protocol_of(item: CauseTotal, tables: Mapping[str, pa.Table]) -> str | None:
    """Return the protocol of most exchanges with this cause; None without exchanges."""
    code, texts = arrays.codes(tables["stretches"], "protocol")
    return texts[int(np.bincount(code[item.rows]).argmax())] if len(item.rows) else None


class Rival(NamedTuple):
    """The strongest other explanation."""

    text: str
    lost: str
    """Why it lost, or that it did not."""
    cause: str | None = None
    """The cause that it is; None where it is not a single one."""


def rival(
    item: CauseTotal, pools: Mapping[str, Pool], handshake_ms: float | None, open_rival: tuple[str, str] | None = None
) -> Rival:
    """Return the strongest other explanation.

    `left`: the rival that the cause's own rows leave, and what is missing to exclude it (`rival_left`).
    """
    if open_rival is not None and item.confidence < PROVEN and not (item.owner in pools and mixed(pools[item.owner])):
        name, missing = open_rival
        if open_rival in TOGETHER:
            return _pair(TOGETHER[open_rival], "delayed_ack")
        clause = say("rival_left", name=name, meaning=say(f"meaning_{name}") if name in RIVALS else name)
        why = say(f"because_{missing}") if missing in BECAUSES else missing
        return Rival(clause, say("not_ruled_out", why=why), name)
    if item.owner == BACKEND:
        return _pair("by_itself")
    if item.cause == STALL:
        return Rival(say("rival_pauses", sender=item.owner), _against_pause(pools[item.owner]))
    if item.cause in PROGRAMS:
        if float(item.ordered[0]) > LIMITS["held_most_ms"]:
            return _pair("too_long")
        stall = say("rival_stall", owner=item.owner, holder=SIDES[item.owner])
        return Rival(stall, _against_stall(pools[item.owner]), "nagle")
    if item.cause == "network":
        kernels = "rival_programs_lost" if handshake_ms is not None else "rival_programs_kernels"
        return Rival(say("rival_programs"), say(kernels, took_ms=handshake_ms or 0.0))
    return _pair(OTHERS.get(item.cause, "any"))


def _pair(name: str, cause: str | None = None) -> Rival:
    return Rival(say(f"rival_{name}"), say(f"rival_{name}_lost"), cause)


def _against_pause(pool: Pool) -> str:
    parts = []
    if pool.verdict == "mixed":
        parts.append(say("pause_on_some", n=pool.nagle_streams, of=pool.streams))
    if pool.slope is not None and pool.slope > LIMITS["slope_follows"]:
        parts.append(say("pause_follows", slope=pool.slope))
    parts.append(say("pause_left", n=pool.tight, of=pool.held, within=pool.tight_ms or 0.0))
    before = "pause_left_before" if pool.refuted else "pause_none_before"
    parts.append(say(f"{before}_elsewhere" if pool.verdict == "mixed" else before, n=pool.refuted))
    return joined(parts) if pool.acts else say("not_ruled_out", why=joined(parts))


def _against_stall(pool: Pool) -> str:
    left_over = say("left_over", n=pool.refuted)
    if mixed(pool):
        return say("stall_on_some", left=left_over, n=pool.tight)
    if pool.verdict == "nodelay" or (pool.refuted and not pool.acts):
        return say("stall_no_nagle", left=left_over)
    if pool.verdict == "pause" and pool.slope is not None and pool.slope <= LIMITS["slope_follows"]:
        return say("stall_no_slope", slope=pool.slope)
    if pool.verdict == "pause":
        return say("stall_late" if pool.tight else "stall_all_late", n=pool.tight, of=pool.held)
    if pool.acts:
        return say("stall_too")
    if pool.held:  # rows that the held ACKs leave in doubt have their own rival
        return say("stall_without", n=pool.held)
    return say("stall_none")


def slow_answers(server: Server, stretches: pa.Table) -> Array:
    """Return the rows of the server's slow requests without polls and event streams, which are meant to last."""
    return spill.selected(server.slow, ~slow_requests.long_polls(stretches) & ~slow_requests.event_streams(stretches))


def sent_by_host(server: Server, tables: Mapping[str, pa.Table], rows: Array | slice) -> Array:
    """Return whether each of these exchanges was sent by this server's host: its address, or a loopback address."""
    client, names = arrays.codes(tables["streams"], "client")
    hosts = [code for code, name in enumerate(names) if name == server.address or name.startswith(LOOPBACK)]
    streams = arrays.numbers(tables["stretches"], "stream")[rows]
    return np.isin(client[spill.positions_of(arrays.numbers(tables["streams"], "stream"), streams)], hosts)


def request(stretches: pa.Table, row: int) -> dict[str, Any]:
    """Return the columns of one exchange that a finding shows: its number, stream, first frame, method and target."""
    names = ["exchange", "stream", "request_first_frame", "method", "target"]
    [columns] = stretches.select(names).slice(row, 1).to_pylist()
    return dict(columns)


def wait_finding(
    server: Server, worst: Mapping[str, Any], max_ms: float, sentence: str, values: Mapping[str, Any], **columns: Any
) -> Finding:
    """Return a finding about requests of `server` that waited; `worst` is the `request` that waited for `max_ms`.

    `columns` are further columns, or others than the defaults: the server's fault, named as its sentence.
    """
    return Finding(**{
        "kind": "wait", "server": server.address, "server_port": server.port, "cause": sentence, "owner": "server",
        "of_exchanges": len(server.rows), "max_ms": max_ms, "worst_exchange": worst["exchange"],
        "worst_stream": worst["stream"], "worst_ms": max_ms, "worst_frames": (worst["request_first_frame"],),
        "filter": wireshark_filter(worst["stream"]), "harm": "late", "sentence": sentence, "values": values, **columns,
    })  # fmt: skip


def called(method: str | None, target: str | None) -> str:
    """Return a request's name for sentences: method and target, or "one turn". SQL begins with its method."""
    parts = [printable(word)[: show.MAX_NAME_LETTERS] for word in (method, target) if word]
    if method in UNNAMED:
        name = words.say(f"unnamed_{method}")
        return words.say("unnamed_with", name=name, target=parts[1]) if len(parts) > 1 else name
    if not parts:
        return words.say("one_turn")
    return " ".join(parts[1:] if len(parts) > 1 and parts[1].upper().startswith(parts[0].upper()) else parts)
