"""Which knob on which side mends it, and at what cost? A finding's cause, side and server software in, words out."""

from __future__ import annotations

from dataclasses import dataclass

from latpcap import words
from latpcap.limits import LIMITS
from latpcap.vocabulary import CAUSES, STALL

KNOBS = {
    "nginx": "nginx", "openresty": "openresty", "tengine": "tengine", "basehttp": "http.server",
    "simplehttp": "http.server", "wsgiserver": "wsgiref", "werkzeug": "werkzeug", "webrick": "webrick",
    "libwww-perl": "libwww-perl", "akka-http": "akka-http", "pekko-http": "pekko-http",
}  # fmt: skip
"""Servers that leave Nagle's algorithm to their configuration, by the beginning of their name in lower case: the id of
the setting that sets TCP_NODELAY."""
SETS_IT = (
    "apache-coyote", "apache", "jetty", "kestrel", "gunicorn", "uvicorn", "hypercorn", "lighttpd", "caddy",
)  # fmt: skip
"""Servers that set TCP_NODELAY on every connection by themselves; of some a setting takes it away. (Apache httpd:
core_pre_connection. gunicorn: on the listening socket. uvicorn, Hypercorn: asyncio. Caddy: Go's net package. Tomcat,
Jetty, Kestrel: the default of that setting.) Where such a server's answers wait for Nagle all the same, somebody else
sends them, or it was taken away."""
SERVERS, CLIENTS = ("http", "mqtt"), ("http", "memcached", "mqtt", "redis")
"""Protocols of programs that give no name and whose settings are known."""
IN_ITS_WORDS = (STALL, "nagle")
"""The causes whose fix is said in the words of the server's software."""

COSTS = (STALL, "nagle", "delayed_ack", "cork", "receive_window", "cwnd", "queueing")
"""Causes whose fix costs something."""


@dataclass(frozen=True)
class Fix:
    """`knob` in words, the `side` that turns it, what it costs; `knob` is None where nothing mends it."""

    knob: str | None
    side: str | None
    cost: str | None


THINK = ("server_think", "client_think")
"""A program's time: its fix says who is not to blame, where that is proven."""
RULED_OUT = ("nagle", "cork", "delayed_ack", "network", "queueing")
"""Rivals of a program's time that a test rules out."""
LOSSES = ("tlp", "rto")


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
        knob = words.say("nodelay", owner=owner, known=_known(owner, software, protocol))
    elif cause in LOSSES and owner in ("client", "server"):
        knob = words.say("host_drops", owner=owner)  # bytes sent again though their first copy had come
    else:
        known = CAUSES.get(cause)
        if known is None or known.fix is None:
            return Fix(None, None, None)
        knob = known.fix
        if cause in THINK and not proven:
            fix_ = knob.partition(";")[0].rstrip(".")
            knob = words.say("once_ruled_out", fix=fix_, how=_ruled_out(rival, owner))
        if cause == "cwnd" and lost:
            knob = words.say("cut_by_losses", n=lost, fix=knob)
        if cause == "server_think" and typical_ms > LIMITS["long_poll_ms"]:
            knob = words.say("or_long_poll", fix=knob)
        if cause == "client_think" and LIMITS["continue_least_ms"] < typical_ms < LIMITS["continue_most_ms"]:
            knob = words.say("or_expected", fix=knob)
    cost = words.say(f"cost_{cause}") if cause in COSTS else None
    return Fix(knob, owner if owner in ("client", "server") else None, cost)


def of_pushes(owner: str, software: str | None, protocol: str | None) -> Fix:
    """What mends pushes, or messages of clients, that Nagle's algorithm holds."""
    knob = words.say("nodelay_push", owner=owner, known=_known(owner, software, protocol))
    return Fix(knob, owner, words.say(f"cost_{STALL}"))


def _ruled_out(rival: str | None, owner: str) -> str:
    """How, in brackets; nothing where no plain way is known."""
    name = (rival or "").partition(",")[0].partition(" ")[0].lower()
    return words.say(f"ruled_out_{name}", owner=owner) if name in RULED_OUT else ""


def _known(owner: str, software: str | None, protocol: str | None) -> str:
    """The knob in the words of this server, or of the programs that it may be; nothing where that says little."""
    if owner == "server" and software:
        name = software.lower()
        for start, program in KNOBS.items():
            if name.startswith(start):
                return words.say(f"knob_{program}")
        return next((words.say(f"sets_{start}") for start in SETS_IT if name.startswith(start)), "")
    side = "client" if owner == "client" else "server"
    return words.say(f"knobs_{side}_{protocol}") if protocol in (CLIENTS if side == "client" else SERVERS) else ""
