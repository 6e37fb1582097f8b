"""Which knob on which side mends it, and at what cost? A finding's cause, side and server software in, words out."""

from __future__ import annotations

from dataclasses import dataclass

from latpcap.format import count
from latpcap.limits import LIMITS
from latpcap.vocabulary import CAUSES, STALL

_PYTHON = "disable_nagle_algorithm = True in the request handler's class"

KNOBS: dict[str, tuple[str, str]] = {
    "nginx": ("nginx", "tcp_nodelay on;"),
    "openresty": ("OpenResty", "tcp_nodelay on;"),
    "tengine": ("Tengine", "tcp_nodelay on;"),
    "basehttp": ("Python's http.server", _PYTHON),
    "simplehttp": ("Python's http.server", _PYTHON),
    "wsgiserver": ("Python's wsgiref", _PYTHON),
    "werkzeug": ("Werkzeug", _PYTHON),
    "webrick": ("WEBrick", "socket.setsockopt(:TCP, :NODELAY, 1) in a subclass's accept_client"),
    "libwww-perl": ("Perl's HTTP::Daemon", "$client->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1) behind accept"),
    "akka-http": ("Akka HTTP", "akka.http.server.socket-options.tcp-no-delay = on"),
    "pekko-http": ("Pekko HTTP", "pekko.http.server.socket-options.tcp-no-delay = on"),
}
"""Servers that leave Nagle's algorithm to their configuration, by the beginning of their name in lower case: what to
call them, and the setting that sets TCP_NODELAY."""

SETS_IT: dict[str, tuple[str, str | None]] = {
    "apache-coyote": ("Tomcat", 'its Connector has tcpNoDelay="false"'),
    "apache": ("Apache httpd", None),
    "jetty": ("Jetty", "its ServerConnector has acceptedTcpNoDelay = false"),
    "kestrel": ("Kestrel", "its options have NoDelay = false"),
    "gunicorn": ("gunicorn", None),
    "uvicorn": ("uvicorn", None),
    "hypercorn": ("Hypercorn", None),
    "lighttpd": ("lighttpd", None),
    "caddy": ("Caddy", None),
}
"""Servers that set TCP_NODELAY on every connection by themselves, and what takes it away, where something does.
(Apache httpd: core_pre_connection. gunicorn: on the listening socket. uvicorn, Hypercorn: asyncio. Caddy: Go's net
package. Tomcat, Jetty, Kestrel: the default of that setting.) Where such a server's answers wait for Nagle all the
same, somebody else sends them, or it was taken away."""

UNNAMED = {
    "http": (
        "Java's HttpServer: -Dsun.net.httpserver.nodelay=true; Node: createServer({noDelay: true}); HAProxy: option "
        "http-no-delay; Go sets it by itself"
    ),
    "mqtt": "mosquitto: set_tcp_nodelay true",
}
"""Servers that give no name, by protocol, and the setting of each."""
CLIENTS = {
    "http": (
        "PHP's streams: 'tcp_nodelay' => true in the context's socket options; Perl's IO::Socket: "
        "setsockopt(IPPROTO_TCP, TCP_NODELAY, 1); Python's http.client, Node and Go set it by themselves"
    ),
    "memcached": "pymemcache: no_delay=True; libmemcached: MEMCACHED_BEHAVIOR_TCP_NODELAY",
    "mqtt": "libmosquitto: MOSQ_OPT_TCP_NODELAY",
    "redis": "redis-py and hiredis set it by themselves: a client of your own?",
}
"""Clients by protocol, for they give no name: the setting of each."""
IN_ITS_WORDS = (STALL, "nagle")
"""The causes whose fix is said in the words of the server's software."""

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


THINK = ("server_think", "client_think")
"""A program's time: its fix says who is not to blame, where that is proven."""
RULES_OUT = {
    "nagle": "set TCP_NODELAY on the {owner} and measure again",
    "cork": "strace -e trace=network on the {owner} shows TCP_CORK and MSG_MORE",
    "delayed_ack": "capture that host's other connections, too",
    "network": "capture at the {owner}, too",
    "queueing": "capture at the {owner}, too",
}
"""What tells a program's time from its rival, by the rival's word."""
LOSSES = ("tlp", "rto")
HOST_DROPS = (
    "The packets reached the {owner}'s host (they are in this capture) and were not taken: look there for a full "
    "accept queue (nstat TcpExtListenOverflows, somaxconn), a firewall behind the capture, full socket buffers."
)
"""What to do about bytes that were sent again though their first copy had come."""
EXPECTED = (
    " (Or did it wait for a 100 Continue, as curl does for a second? Then answer its Expect header, or leave it out: "
    "curl -H 'Expect:'.)"
)


def fix(
    cause: str,
    owner: str,
    typical_ms: float,
    software: str | None,
    *,
    proven: bool,
    protocol: str | None = None,
    rival: str | None = None,
    lost: int = 0,
) -> Fix:
    """What mends it? `owner` is the side whose setting it is; `software` is the server's own name, where it says it;
    `protocol` tells which programs it may be where nobody says a name; `lost`: segments, on the connections it hit.

    What is not `proven` clears nobody else: the fix does not say so then, but how its `rival` is ruled out.
    """
    if cause in IN_ITS_WORDS:
        words = _words(software) if owner == "server" and software else _unnamed(owner, protocol)
        knob = f"TCP_NODELAY on the {owner}{words}, or both parts in one write (writev)"
    elif cause in LOSSES and owner in ("client", "server"):
        knob = HOST_DROPS.format(owner=owner)
    else:
        known = CAUSES.get(cause)
        if known is None or known.fix is None:
            return Fix(None, None, None)
        knob = known.fix
        if cause in THINK and not proven:
            knob = f"{knob.partition(';')[0].rstrip('.')}, once the rival is ruled out{_ruled_out(rival, owner)}."
        if cause == "cwnd" and lost:
            knob = f"Find where the path drops packets: {count(lost, 'lost segment')} cut this window. {knob}"
        if cause == "server_think" and typical_ms > LIMITS["long_poll_ms"]:
            knob += " (Or was this a long poll, which is meant to wait?)"
        if cause == "client_think" and LIMITS["continue_least_ms"] < typical_ms < LIMITS["continue_most_ms"]:
            knob += EXPECTED
    return Fix(knob, owner if owner in ("client", "server") else None, COSTS.get(cause))


def of_pushes(owner: str, software: str | None, protocol: str | None) -> Fix:
    """What mends pushes, or messages of clients, that Nagle's algorithm holds."""
    words = _words(software) if owner == "server" and software else _unnamed(owner, protocol)
    return Fix(f"TCP_NODELAY on the {owner}{words}, or all that it sends at once in one write", owner, COSTS[STALL])


def _ruled_out(rival: str | None, owner: str) -> str:
    """How, in brackets; nothing where no plain way is known."""
    how = RULES_OUT.get((rival or "").partition(",")[0].partition(" ")[0].lower())
    return f" ({how.format(owner=owner)})" if how else ""


def _unnamed(owner: str, protocol: str | None) -> str:
    """The knob of the programs that it may be; nothing where that says little."""
    known = (CLIENTS if owner == "client" else UNNAMED).get(protocol or "")
    return f" ({known})" if known else ""


def _words(software: str) -> str:
    """The knob in the words of this server; nothing where its name is not known here."""
    name = software.lower()
    for start, (called, setting) in KNOBS.items():
        if name.startswith(start):
            return f" ({called}: {setting})"
    for start, (called, without) in SETS_IT.items():
        if name.startswith(start):
            undone = f" unless {without}" if without else " by itself"
            return f" ({called} sets it{undone}: is a proxy in front?)"
    return ""
