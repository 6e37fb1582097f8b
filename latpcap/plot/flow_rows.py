"""Which rows does a flow graph show?

Reads packets as plain values (rows of the `events` table, or of other frames); gives nodes and rows in Wireshark's
words (Statistics > Flow Graph); knows nothing of fonts, pixels or matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from latpcap.plot.flow_clock import Clock

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FlowRow:
    """What does one packet's row show?

    `source` and `target` index the graph's nodes; `time` is the Time column's text, `at_ns` its instant in ns since
    1970, `since` how long after the row above it came; `said` is the request or the status that begins with it; `fact`
    is what Wireshark marks it with; `packets` is how many the row tells of; `cause` is the key of `CAUSES` that colours
    the arrow, or None; `tag` says beside the label what the packet has to do with a wait (`held ACK`, `freed`), or
    nothing.
    """

    frame: int
    time: str
    source: int
    target: int
    sport: int
    dport: int
    label: str
    comment: str
    stream: int
    cause: str | None = None
    tag: str = ""
    at_ns: int = 0
    said: str = ""
    fact: str = ""
    since: str = ""
    packets: int = 1


def label(flags: str | None, length: int | None) -> str:
    """What does Wireshark write above the arrow? The flags, or `<None>`, and ` - Len: N` if there is
    payload.
    """
    words = flags or "<None>"
    return f"{words} - Len: {length}" if length else words


def comment(flags: str | None, seq: int | None, ack: int | None) -> str:
    """What does Wireshark write in the Comment column? `Seq = S Ack = A`, without `Ack` if the ACK flag is
    not set.
    """
    text = "" if seq is None else f"Seq = {seq}"
    return f"{text} Ack = {ack}".strip() if ack is not None and "ACK" in (flags or "").split(", ") else text


def rows_of(events: Sequence[Record], clock: Clock) -> tuple[tuple[str, ...], tuple[FlowRow, ...]]:
    """Which nodes and rows do these packets give? Nodes in order of appearance, as in Wireshark, but the
    client first.

    (So the picture does not turn round when it starts at a packet of the server.) A packet from an address to
    itself (loopback) would be an arrow from a line to itself: such an address is drawn as one node for the
    server (`address:port`) and one for its client (`address:port`, or `address (clients)` if there are
    several client ports). Packets are rows of `events`, or have a `label` and a `comment` of their own.
    """
    client_ports: dict[str, set[int]] = {}
    for event in events:
        if event["src"] == event["dst"]:
            ports = client_ports.setdefault(event["src"], set())
            ports.add(event["sport"] if event["from_client"] is not False else event["dport"])

    def title(address: str, port: int, client: bool, loop: bool) -> str:
        if not loop:
            return address
        if client and len(client_ports[address]) > 1:
            return f"{address} (clients)"
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    nodes: dict[str, int] = {}
    rows: list[FlowRow] = []
    before: int | None = None
    for event in events:
        loop = event["src"] == event["dst"] and event["sport"] != event["dport"]
        forward = event["from_client"] is not False
        source = title(event["src"], event["sport"], forward, loop)
        target = title(event["dst"], event["dport"], not forward, loop)
        for node in (source, target) if forward else (target, source):
            nodes.setdefault(node, len(nodes))
        words, remark = words_of(event)
        rows.append(
            FlowRow(
                frame=event["frame"],
                time=clock.text(event["frame"], event["time"], before),
                source=nodes[source],
                target=nodes[target],
                sport=event["sport"],
                dport=event["dport"],
                label=words,
                comment=remark,
                stream=event["stream"],
                at_ns=event["time"],
                since="" if before is None or "delta" in clock.kind else since(event["time"] - before),
            )
        )
        before = event["time"]
    return tuple(nodes), tuple(rows)


def since(ns: int) -> str:
    """How long after the row above did a packet come: +105 µs, +43.9 ms, +2.1 s?"""
    sign, ns = ("+", ns) if ns >= 0 else ("-", -ns)
    if ns < 999_500:
        return f"{sign}{ns / 1e3:.0f} µs" if ns >= 500 or ns == 0 else f"{sign}{ns} ns"
    return f"{sign}{ns / 1e6:.1f} ms" if ns < 999_950_000 else f"{sign}{ns / 1e9:,.1f} s"


def words_of(event: Record) -> tuple[str, str]:
    """What stands above a packet's arrow, and in its Comment column?"""
    if "label" in event:
        return event["label"], event["comment"]
    return label(event["flags"], event["len"]), comment(event["flags"], event["seq"], event["ack"])
