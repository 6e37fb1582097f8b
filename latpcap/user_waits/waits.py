"""The tables "waits" and "actions": what users waited for, and which waits belong to one thing that a client did.

A wait is a lookup of a name, a connect, a TLS handshake, a greeting, a request, a push or a transfer, with its end:
answered, refused, or another one. An action is what a client did to get one thing: the lookup, the addresses tried,
the handshakes, and the first request. Each further request on a connection is an action of its own. Every nanosecond of
an action is in exactly one of its parts: where two waits overlap, it belongs to the earlier one until that ends.

A push belongs to no action, since no request preceded it. A transfer has the action of its request, whose time contains
it. Causes, owners and grades are those of the core.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.lazy import np, pa
from latpcap.tables import NS_PER_MS
from latpcap.user_waits import services
from latpcap.user_waits.connection_attempts import Pair, Streams, fallbacks, names_of
from latpcap.user_waits.connects import Opened, Opens, opened_streams
from latpcap.user_waits.lookups import SERVICES, Question, Resolution, late, owner_of, questions, resolutions
from latpcap.vocabulary import CAUSES, OWNERS, grade_of, worth

if TYPE_CHECKING:
    from latpcap.options import TableName

KINDS = ("lookup", "connect", "tls", "greeting", "request")
"""Kinds of waits that are the parts of an action, in their usual order. Waits outside actions: push, transfer."""
LEADS_NS = 1_000_000_000
"""Longest time from a lookup to the connect that it led to; a later connect may have used a cached address."""
GREETED_NS = 1_000_000
"""Shortest time from the handshake to a greeting that counts as a wait."""
READS: tuple[TableName, ...] = (
    "streams", "exchanges", "lookups", "events", "connects", "pushes", "transfers", "causes",
)  # fmt: skip
"""The tables that waits and actions are computed from."""
CUT = {"fin": "reset", "rst": "reset", "capture_end": "open", "gap": "cut"}
"""The end (column `ended`) of a request without a complete answer, by `cut_by`."""
LIMITED = {
    "receiver_window": "windows", "http2_window": "windows", "sender_buffer": "windows", "start": "windows",
    "line": "line", "congestion": "loss",
}  # fmt: skip
"""The family of a transfer's limit; a limit that is a program has the family of its side."""
LOOKED_UP = {"dns_lost": "loss", "dns_lost_pair": "loss", "dns_search": "client"}
"""The family of a late lookup's cause; all other causes are the name server's."""


@dataclass(slots=True)
class Wait:
    """One row of "waits"; instants in ns. `table` and `row` name the row that it was made of."""

    kind: str
    client: str
    server: str
    server_port: int
    name: str | None
    start: int
    end: int
    ended: str
    stream: int | None
    table: str
    row: int
    cause: str | None = None
    action: int | None = None
    owner: str | None = None
    grade: str | None = None
    family: str | None = None


@dataclass(slots=True)
class Action:
    """One row of "actions": the waits of one client for one thing."""

    waits: list[Wait] = field(default_factory=list)

    def parts(self) -> dict[str, int]:
        """Return its time in ns by kind of wait, and as "other" the time outside its waits."""
        spent = dict.fromkeys((*KINDS, "other"), 0)
        rows = sorted(self.waits, key=lambda wait: (wait.start, wait.end))
        reached_ns = rows[0].start
        for wait in rows:
            if wait.start > reached_ns:
                spent["other"] += wait.start - reached_ns
                reached_ns = wait.start
            if wait.end > reached_ns:
                spent[wait.kind] += wait.end - reached_ns
                reached_ns = wait.end
        return spent


def find_actions(tables: Mapping[str, pa.Table]) -> list[Action]:
    """Return the actions of a capture, in order of time. `tables`: those of `READS`."""
    if not tables["streams"].num_rows and not tables["lookups"].num_rows:
        return []
    opens = Opens()
    for _, events in arrays.sliced(tables["events"]):
        names = ("stream", "time", "frame", "tsval", "from_client", "seq", "len")
        opens.add({name: arrays.numbers(events, name) for name in names}, *arrays.codes(events, "flags"))
    rows, lookups = opens.by_stream(), tables["lookups"]
    streams = Streams(tables["streams"], rows)
    openings = opened_streams(rows)
    pairs = fallbacks([(opened, streams.ends(opened.stream)) for opened in openings], streams, names_of(lookups))
    fallback_by_stream = {pair.opened.stream: pair for pair in pairs}
    all_actions = _connections(openings, streams, fallback_by_stream, resolutions(lookups))
    all_actions += _services(questions(lookups), tables["streams"])
    _requests(tables["exchanges"], streams, all_actions)
    actions = [action for action in all_actions if action.waits]
    actions.sort(key=lambda action: (action.waits[0].start, action.waits[0].row))
    for number, action in enumerate(actions):
        action.waits.sort(key=lambda wait: (wait.start, wait.end))
        for wait in action.waits:
            wait.action = number
    _grade([wait for action in actions for wait in action.waits], tables)
    return actions


def beside(tables: Mapping[str, pa.Table], actions: Sequence[Action]) -> list[Wait]:
    """Return the pushes and transfers of a capture, in order of time; transfers with the action of their request."""
    requests: dict[int, list[Wait]] = defaultdict(list)
    for action in actions:
        for wait in action.waits:
            if wait.kind == "request" and wait.stream is not None:
                requests[wait.stream].append(wait)
    streams = Streams(tables["streams"], {})
    waits_beside = [*_pushes(tables["pushes"], streams), *_transfers(tables["transfers"], requests)]
    _grade(waits_beside, tables)
    return sorted(waits_beside, key=lambda wait: (wait.start, wait.end))


def _pushes(pushes: pa.Table, streams: Streams) -> Iterator[Wait]:
    names = ("push", "stream", "protocol", "method", "target", "top_cause")
    columns = {name: pushes[name].to_pylist() for name in names}
    start, end = (arrays.numbers(pushes, name).tolist() for name in ("start", "end"))
    for row, stream in enumerate(columns["stream"]):
        ends = streams.ends(stream)
        words = [word for word in (columns["method"][row] or columns["protocol"][row], columns["target"][row]) if word]
        yield Wait(
            kind="push", client=ends.client, server=ends.server, server_port=ends.server_port, name=" ".join(words),
            start=start[row], end=end[row], ended="answered", stream=stream,
            table="pushes", row=columns["push"][row], cause=columns["top_cause"][row],
        )  # fmt: skip


def _transfers(transfers: pa.Table, requests: Mapping[int, Sequence[Wait]]) -> Iterator[Wait]:
    names = ("stream", "direction", "client", "server", "server_port", "limited_by", "owner", "grade")
    columns = {name: transfers[name].to_pylist() for name in names}
    start, end = (arrays.numbers(transfers, name).tolist() for name in ("start", "end"))
    for row, stream in enumerate(columns["stream"]):
        request = next(
            (wait for wait in requests.get(stream, ()) if wait.start <= end[row] and start[row] <= wait.end), None
        )
        limit, owner = columns["limited_by"][row], columns["owner"][row]
        is_limited = limit != "none"
        yield Wait(
            kind="transfer", client=columns["client"][row], server=columns["server"][row],
            server_port=columns["server_port"][row], name=columns["direction"][row], start=start[row], end=end[row],
            ended="answered" if request is None else request.ended, stream=stream, table="transfers", row=row,
            cause=limit if is_limited else None, action=None if request is None else request.action, owner=owner,
            grade=columns["grade"][row] if is_limited else None,
            family=LIMITED.get(limit, owner) if is_limited else None,
        )  # fmt: skip


def _grade(waits: Sequence[Wait], tables: Mapping[str, pa.Table]) -> None:
    """Set each wait's grade to that of the longest row of "causes" with its cause."""
    causes = tables["causes"]
    connects = dict(zip(*(tables["connects"][name].to_pylist() for name in ("stream", "connect")), strict=True))
    wanted_by_link: dict[str, list[tuple[int, int, Wait]]] = defaultdict(list)
    (code, words), (grade, grades) = arrays.codes(causes, "cause"), arrays.codes(causes, "grade")
    code_of_word = {word: number for number, word in enumerate(words)}
    for wait in waits:
        link = {"exchanges": "exchange", "pushes": "push"}.get(wait.table, "connect")
        row = connects.get(wait.stream) if wait.kind in ("connect", "greeting") else wait.row
        if wait.grade is None and row is not None and wait.cause in code_of_word:
            wanted_by_link[link].append((row, code_of_word[wait.cause], wait))
    for link, wanted_of_link in wanted_by_link.items():
        key = arrays.filled(causes, link, -1).astype(np.int64) * len(words) + code
        order = np.lexsort((arrays.numbers(causes, "duration_ms"), key))
        keys = key[order]
        wanted_keys = np.array([row * len(words) + cause for row, cause, _ in wanted_of_link], np.int64)
        last_rows = np.maximum(np.searchsorted(keys, wanted_keys, side="right") - 1, 0)
        grade_codes = np.where(keys[last_rows] == wanted_keys, grade[order[last_rows]], -1)
        for (*_, wait), grade_code in zip(wanted_of_link, grade_codes.tolist(), strict=True):
            wait.grade = grades[grade_code] if grade_code >= 0 else None


class _Actions(list[Action]):
    """Actions; `open` has those whose connection had no request yet, by stream."""

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[int, Action] = {}


def _connections(
    openings: Sequence[Opened], streams: Streams, fallback_by_stream: Mapping[int, Pair], resolved: Sequence[Resolution]
) -> _Actions:
    """Return an action for each resolution and each connection; those that belong together share one."""
    actions = _Actions()
    answers_by_address: dict[tuple[str, str], list[tuple[int, Action]]] = defaultdict(list)
    late_lookups = late(list(resolved))
    for index, resolution in enumerate(resolved):
        action = Action([_lookup(resolution, late_lookups.get(index))])
        actions.append(action)
        for address in {address for question in resolution.questions for address in question.addresses}:
            answers_by_address[resolution.client, address].append((resolution.end, action))
    failed_before: dict[int, Action] = {}  # actions of failed connections, by the stream that the client opened instead
    for opened in sorted(openings, key=lambda opened: opened.syns[0]):
        ends = streams.ends(opened.stream)
        action_so_far = failed_before.get(opened.stream)
        lookups_of_address = answers_by_address.get((ends.client, ends.server), [])
        if action_so_far is None:
            recent = [lookup for lookup in lookups_of_address if 0 <= opened.syns[0] - lookup[0] <= LEADS_NS]
            if recent:
                action_so_far = recent[-1][1]
                lookups_of_address.remove(recent[-1])
        action = action_so_far or Action()
        if action_so_far is None:
            actions.append(action)
        pair = fallback_by_stream.get(opened.stream)
        action.waits.append(_connect(opened, streams, None if pair is None else pair.begin))
        if pair is not None:
            failed_before[pair.stream] = action
        elif opened.answered is not None:
            actions.open[opened.stream] = action
            greeted = opened.greeted
            if greeted is not None and greeted - opened.answered >= GREETED_NS:
                wait = Wait(
                    kind="greeting", client=ends.client, server=ends.server, server_port=ends.server_port, name=None,
                    start=opened.answered, end=greeted, ended="answered", stream=opened.stream,
                    table="streams", row=opened.stream,
                )  # fmt: skip
                action.waits.append(wait)
    return actions


def _lookup(resolution: Resolution, reason: tuple[str, float, Question] | None) -> Wait:
    questions = resolution.questions
    has_failed = resolution.answered and not any(question.addresses for question in questions)
    answering = next((question for question in reversed(questions) if question.end is not None), questions[0])
    return Wait(
        kind="lookup", client=resolution.client, server=answering.server, server_port=answering.server_port,
        name=resolution.name, start=resolution.start, end=resolution.end,
        ended="error" if has_failed else "answered" if resolution.answered else "never", stream=None,
        table="lookups", row=questions[0].number, cause=None if reason is None else reason[0],
        owner=None if reason is None else owner_of(reason[0]),
        grade=None if reason is None else grade_of(worth(reason[0])),
        family=None if reason is None else LOOKED_UP.get(reason[0], "server"),
    )  # fmt: skip


def _services(questions: Sequence[Question], streams: pa.Table) -> list[Action]:
    """Return an action for each UDP request but lookups; one to a dead server includes that to the next one."""
    late_waits = services.late(questions, streams)
    actions: dict[int, Action] = {}
    for question in questions:
        if question.kind not in SERVICES:
            continue
        late_wait = late_waits.get(question.number)
        never = "given_up" if late_wait is not None else "never"
        end = question.last if question.end is None else question.end
        wait = Wait(
            kind="request", client=question.client, server=question.server, server_port=question.server_port,
            name=f"{question.kind} {question.name}".strip(), start=question.start,
            end=end if late_wait is None else late_wait.until, ended=never if question.end is None else "answered",
            stream=None, table="lookups", row=question.number,
        )  # fmt: skip
        if late_wait is not None:
            wait.cause, wait.owner, wait.family = late_wait.reason, services.owner_of(late_wait.reason), "server"
            wait.grade = grade_of(worth(late_wait.reason))
        action = actions.setdefault(question.number, Action())
        action.waits.append(wait)
        if late_wait is not None and late_wait.then is not None:
            actions[late_wait.then.number] = action
    return list({id(action): action for action in actions.values()}.values())


def _connect(opened: Opened, streams: Streams, given_up: int | None) -> Wait:
    ends = streams.ends(opened.stream)
    end, ended = opened.settled, "answered"
    if opened.answered is None:
        ended = "refused" if opened.refused is not None else "given_up" if given_up is not None else "never"
        end = given_up or max(opened.syns[-1], opened.refused or 0)
    is_repeated = len(opened.syns) > 1
    return Wait(
        kind="connect", client=ends.client, server=ends.server, server_port=ends.server_port, name=None,
        start=opened.syns[0], end=end, ended=ended, stream=opened.stream, table="streams", row=opened.stream,
        cause="syn_rto" if is_repeated else "network",
        grade="proven" if opened.answered is not None and not is_repeated else None,  # no program takes part
    )  # fmt: skip


def _requests(exchanges: pa.Table, streams: Streams, actions: _Actions) -> None:
    """Add each connection's first request to the action of the connection, and other requests as actions."""
    names = ("exchange", "stream", "protocol", "method", "target", "kind", "complete", "cut_by", "error", "top_cause")
    columns = {name: exchanges[name].to_pylist() for name in names}
    start, end = (arrays.numbers(exchanges, name).tolist() for name in ("start", "end"))
    order = sorted(range(exchanges.num_rows), key=lambda row: (start[row], columns["exchange"][row]))
    for row in order:
        stream = columns["stream"][row]
        ends = streams.ends(stream)
        is_tls = columns["method"][row] == "handshake" and columns["protocol"][row] == "tls"
        words = [word for word in (columns["method"][row], columns["target"][row]) if word]
        if columns["complete"][row]:
            ended = "error" if columns["error"][row] else "answered"
        else:
            ended = CUT.get(columns["cut_by"][row] or "capture_end", "cut")
        wait = Wait(
            kind="tls" if is_tls else "request", client=ends.client, server=ends.server, server_port=ends.server_port,
            name=" ".join(words) or None, start=start[row], end=max(end[row], start[row]), ended=ended, stream=stream,
            table="exchanges", row=columns["exchange"][row], cause=columns["top_cause"][row],
        )  # fmt: skip
        action = actions.open.get(stream)
        if action is None:
            action = Action()
            actions.append(action)
        action.waits.append(wait)
        if not is_tls and columns["kind"][row] != "handshake":
            actions.open.pop(stream, None)


def tables(actions: Sequence[Action], waits_beside: Sequence[Wait] = ()) -> tuple[pa.Table, pa.Table]:
    """Return "waits", with those outside actions last, and "actions" as Arrow tables."""
    rows = [*(wait for action in actions for wait in action.waits), *waits_beside]
    return _waits_table(rows), _actions_table(actions)


def _waits_table(waits: Sequence[Wait]) -> pa.Table:
    text, instant = pa.string(), pa.timestamp("ns", "UTC")
    owners = {name: cause.owner if cause.owner in OWNERS else None for name, cause in CAUSES.items()}
    families = [CAUSES[wait.cause].family if wait.cause in CAUSES else wait.family for wait in waits]
    return pa.table(
        {
            "wait": pa.array(range(len(waits)), pa.uint64()),
            "action": pa.array([wait.action for wait in waits], pa.uint64()),
            "kind": pa.array([wait.kind for wait in waits], text),
            "client": pa.array([wait.client for wait in waits], text),
            "server": pa.array([wait.server for wait in waits], text),
            "server_port": pa.array([wait.server_port for wait in waits], pa.uint16()),
            "name": pa.array([wait.name for wait in waits], text),
            "start": pa.array([wait.start for wait in waits], instant),
            "end": pa.array([wait.end for wait in waits], instant),
            "waited_ms": pa.array([(wait.end - wait.start) / NS_PER_MS for wait in waits], pa.float64()),
            "ended": pa.array([wait.ended for wait in waits], text),
            "family": pa.array(families, text),
            "cause": pa.array([wait.cause for wait in waits], text),
            "owner": pa.array([wait.owner or owners.get(wait.cause or "") for wait in waits], text),
            "grade": pa.array([wait.grade for wait in waits], text),
            "stream": pa.array([wait.stream for wait in waits], pa.uint32()),
            "table": pa.array([wait.table for wait in waits], text),
            "row": pa.array([wait.row for wait in waits], pa.uint64()),
        }
    )


def _actions_table(actions: Sequence[Action]) -> pa.Table:
    text, instant, duration = pa.string(), pa.timestamp("ns", "UTC"), pa.float64()
    firsts, lasts = [action.waits[0] for action in actions], [action.waits[-1] for action in actions]
    starts, ends = [wait.start for wait in firsts], [max(wait.end for wait in action.waits) for action in actions]
    names = [next((wait.name for wait in reversed(action.waits) if wait.name), None) for action in actions]
    parts = [action.parts() for action in actions]
    ms = {kind: [part[kind] / NS_PER_MS for part in parts] for kind in (*KINDS, "other")}
    return pa.table(
        {
            "action": pa.array(range(len(actions)), pa.uint64()),
            "client": pa.array([wait.client for wait in firsts], text),
            "server": pa.array([wait.server for wait in lasts], text),
            "server_port": pa.array([wait.server_port for wait in lasts], pa.uint16()),
            "name": pa.array(names, text),
            "start": pa.array(starts, instant),
            "end": pa.array(ends, instant),
            "total_ms": pa.array(
                [(end - start) / NS_PER_MS for start, end in zip(starts, ends, strict=True)], duration
            ),
            **{f"{kind}_ms": pa.array(values, duration) for kind, values in ms.items()},
            "waits": pa.array([len(action.waits) for action in actions], pa.uint32()),
            "ended": pa.array([wait.ended for wait in lasts], text),
        }
    )
