"""Which knob on which side mends it, and at what cost? A finding's cause, side and server software in, words out."""

from __future__ import annotations

from dataclasses import dataclass

from latpcap.vocabulary import CAUSES, STALL

NODELAY = {
    "nginx": "tcp_nodelay on; (nginx)",
    "openresty": "tcp_nodelay on; (OpenResty)",
    "tengine": "tcp_nodelay on; (Tengine)",
    "apache-coyote": 'tcpNoDelay="true" on the Connector (Tomcat)',
    "basehttp": "disable_nagle_algorithm = True in the request handler class (Python http.server)",
    "simplehttp": "disable_nagle_algorithm = True in the request handler class (Python http.server)",
    "werkzeug": "disable_nagle_algorithm = True in the request handler class (Werkzeug)",
    "wsgiserver": "disable_nagle_algorithm = True in the request handler class (wsgiref)",
}
"""TCP_NODELAY in the words of servers that name themselves, by the beginning of that name in lower case."""

COSTS = {
    STALL: "more small packets where the program writes in small parts",
    "nagle": "more small packets where the program writes in small parts",
    "delayed_ack": "more ACK packets",
    "cork": "more, smaller packets",
    "receive_window": "memory of the receiver",
    "cwnd": "bursts into a path that may not carry them",
    "queueing": "some throughput at the bottleneck",
}


@dataclass(frozen=True)
class Fix:
    """`knob` in words, the `side` that turns it, what it costs; `knob` is None where nothing mends it."""

    knob: str | None
    side: str | None
    cost: str | None


LONG_MS = 2000.0
"""A server that is silent for so long may have had nothing to say."""


def fix(cause: str, owner: str, typical_ms: float, protocol: str | None, software: str | None) -> Fix:
    """What mends it? `owner` is the side whose setting it is; `software` is the server's own name, where it says it."""
    if cause in (STALL, "nagle"):
        words = _words(protocol, software) if owner == "server" else ""
        knob = f"TCP_NODELAY on the {owner}{words}, or both parts in one write (writev)"
    else:
        known = CAUSES.get(cause)
        if known is None or known.fix is None:
            return Fix(None, None, None)
        knob = known.fix
        if cause == "server_think" and typical_ms > LONG_MS:
            knob += " (Or was this a long poll, which is meant to wait?)"
    return Fix(knob, owner if owner in ("client", "server") else None, COSTS.get(cause))


def _words(protocol: str | None, software: str | None) -> str:
    if software is None:
        return " (for nginx: tcp_nodelay on;)" if protocol == "http" else ""
    name = software.lower()
    said = next((words for start, words in NODELAY.items() if name.startswith(start)), None)
    return f": {said}" if said else ""
