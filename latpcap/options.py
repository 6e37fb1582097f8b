"""Types of the words that public methods take as options, for completion in editors and for mypy.

Each method also checks its options and raises ValueError for another word.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

TableName: TypeAlias = Literal[
    "events", "streams", "exchanges", "connects", "pushes", "gaps", "causes", "transfers", "evidence", "findings",
    "lookups", "probes", "issues", "waits", "actions", "groups",
]  # fmt: skip
"""What `arrow(name)` gives: the tables of the core, and the findings and the account, which are computed from them."""
"""The names that `arrow(name)` takes: the core's tables, and those computed from them (findings, waits, ...)."""
CauseName: TypeAlias = Literal[
    "network", "queueing", "bandwidth", "server_think", "client_think", "nagle", "delayed_ack", "cork", "cwnd",
    "receive_window", "zero_window", "fast_retransmit", "tlp", "rto", "syn_rto", "reordering", "capture_gap", "unknown",
]  # fmt: skip
"""The causes of the table of causes, in its order."""
"""The values of the `cause` column, in the order of the `causes` table."""
Side: TypeAlias = Literal["client", "server"]
"""The two ends of a connection."""

Group: TypeAlias = (
    Literal["server", "client", "stream", "uri", "method", "status", "protocol", "top_cause", "capture", "folder"] | str
)
"""What exchanges are grouped by: one of these, another column of exchanges, or a time span ("10s", "5min", "hour")."""

Which: TypeAlias = Literal["latency_ms", "client_latency_ms"]
"""Which latency: as measured at the capture, or on the client's own clock (an estimate)."""

Scale: TypeAlias = Literal["auto", "log", "linear"]
"""The scale of a latency axis; "auto" is logarithmic where the latencies differ much."""

LatencyPanel: TypeAlias = Literal["ecdf", "histogram"]
"""The panels of a latency picture."""

EvidencePanel: TypeAlias = Literal["path", "kernel", "program", "holds"]
"""The panels of an evidence picture, from the top."""

SequencePanel: TypeAlias = Literal["sequence", "flight", "rtt", "throughput"]
"""The panels of a time-sequence graph."""

ThroughputGroup: TypeAlias = Literal["direction", "server", "stream"]
"""What one area of a throughput picture stands for."""

Sort: TypeAlias = Literal["latency_ms", "start", "exchange"] | CauseName
"""The order of the bars of a waterfall."""

Align: TypeAlias = Literal["start", "clock"]
"""Where the bars of a waterfall begin: all at 0, or at their time in the capture."""

TimeFormat: TypeAlias = Literal["relative", "delta", "delta_displayed", "date", "epoch"]
"""How a flow graph writes times, in Wireshark's words."""


class FlowOptions(NamedTuple):
    """How a flow graph shows its packets: keyword arguments that `Capture.flow_graph` and `Stream.flow_graph` share."""

    frames: tuple[int, int] | None = None
    """First and last frame shown, both included; None shows all."""
    time: TimeFormat = "relative"
    to_scale: bool = False
    """Whether the space between rows grows with the time between them."""
    max_rows: int | None = None
    """Upper bound on the rows of a page; None stands for 60 (36 in a PDF of several pages)."""
    mark_ms: float = 5.0
    """Waits of at least this length are marked."""
    collapse: bool | None = None
    """Whether a run of data segments is one row; None: long runs only."""


Flows: TypeAlias = Literal["tcp", "icmp", "all", "any"]
"""Wireshark's flow types: TCP segments; ICMP and ICMPv6; every frame."""

Pick: TypeAlias = Literal["worst", "typical", "first"]
"""An exchange chosen by a rule: the longest, the one at the median (nearest rank), or the earliest complete one."""

Tool: TypeAlias = Literal["wrk", "ping", "hping3", "traceroute", "curl", "pgbench"]
"""The tool whose output a report imitates."""
