"""Stalls of programs that have a name, of receivers with other timers, and what mending them would be worth."""

from __future__ import annotations

from dataclasses import replace

from makepcap import Ends, Segment, Talk, answer, get, held, pcap
from simulator import Host, Script, record

from spoken.registry import ASK, SPOKEN, Spoken, in_time, says


def hung_up(software: str, think: tuple[float, float] = (30.0, 38.0)) -> bytes:
    """Answers of a server of this name whose body waits for the ACK of their head; its clients take their time."""
    head = f"HTTP/1.1 200 OK\r\nServer: {software}\r\nContent-Length: 600\r\n\r\n".encode()
    script = Script(ASK, ((0.0, head), (0.0, b"b" * 600)), exchanges=12, client_think=think)
    return pcap(record(script, client=Host(quick=2)).tape)


KNOBS = {
    "BaseHTTP/0.6 Python/3.12": "(Python's http.server: disable_nagle_algorithm = True in the request handler's class)",
    "SimpleHTTP/0.6 Python/3.12": "(Python's http.server: disable_nagle_algorithm = True in the request handler's cl",
    "WSGIServer/0.2 CPython/3.12": "(Python's wsgiref: disable_nagle_algorithm = True in the request handler's class)",
    "openresty/1.25": "(OpenResty: tcp_nodelay on;)",
    "Tengine/3.1": "(Tengine: tcp_nodelay on;)",
    "gunicorn": "(gunicorn sets it by itself: is a proxy in front?)",
    "uvicorn": "(uvicorn sets it by itself: is a proxy in front?)",
    "hypercorn-h11": "(Hypercorn sets it by itself: is a proxy in front?)",
    "lighttpd/1.4": "(lighttpd sets it by itself: is a proxy in front?)",
    "Caddy": "(Caddy sets it by itself: is a proxy in front?)",
    "Werkzeug/3.0": "(Werkzeug: disable_nagle_algorithm = True in the request handler's class)",
    "WEBrick/1.8": "(WEBrick: socket.setsockopt(:TCP, :NODELAY, 1) in a subclass's accept_client)",
    "libwww-perl-daemon/6": "(Perl's HTTP::Daemon: $client->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1) behind accept)",
    "akka-http/10.2": "(Akka HTTP: akka.http.server.socket-options.tcp-no-delay = on)",
    "pekko-http/1.0": "(Pekko HTTP: pekko.http.server.socket-options.tcp-no-delay = on)",
    "Apache-Coyote/1.1": '(Tomcat sets it unless its Connector has tcpNoDelay="false": is a proxy in front?)',
    "Apache/2.4": "(Apache httpd sets it by itself: is a proxy in front?)",
    "Jetty(9.4)": "(Jetty sets it unless its ServerConnector has acceptedTcpNoDelay = false: is a proxy in front?)",
    "Kestrel": "(Kestrel sets it unless its options have NoDelay = false: is a proxy in front?)",
}
for software, knob in KNOBS.items():
    SPOKEN[software] = Spoken(
        lambda software=software: hung_up(software),  # type: ignore[misc]
        (f"  fix       TCP_NODELAY on the server {knob}", "  gain      p50 "),
    )


@says("  fix       TCP_NODELAY on the client (redis-py and hiredis set it by themselves: a client of your own?), or b")
def a_redis_client_of_two_writes() -> bytes:
    asks = ((0.0, b"*2\r\n$3\r\nGET\r\n"), (0.0, b"$1\r\nk\r\n"))
    script = Script(asks, ((0.0, b"$1\r\nv\r\n"),), exchanges=12)
    return pcap(record(script, server=Host(quick=2), ends=Ends(server=("10.0.0.2", 6379))).tape)


@says("  fix       TCP_NODELAY on the client (pymemcache: no_delay=True; libmemcached: MEMCACHED_BEHAVIOR_TCP_NODELAY")
def a_memcached_client_of_two_writes() -> bytes:
    asks = ((0.0, b"set k 0 0 5\r\n"), (0.0, b"value\r\n"))
    script = Script(asks, ((0.0, b"STORED\r\n"),), exchanges=12)
    return pcap(record(script, server=Host(quick=2), ends=Ends(server=("10.0.0.2", 11211))).tape)


@says(
    " is slow because its clients' requests wait for acknowledgements that it holds back, and its answers for those "
    "that the clients hold back: ",
    "  next      nagle + delayed_ack (server, 50 % of all time; TCP_NODELAY there, too, mends it)",
)
def both_write_in_two_parts() -> bytes:
    asks = ((0.0, b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), (0.0, b"value"))
    script = Script(asks, tuple((0.0, part) for part in answer(600)), exchanges=12)
    return pcap(record(script, client=Host(quick=2), server=Host(quick=2)).tape)


@says("because its answers wait for acknowledgements that the clients hold back: ", " a 200 ms timer (Windows)")
def a_timer_of_200ms() -> bytes:
    return held_by_timer(200.0)


@says("because its answers wait for acknowledgements that the clients hold back: ", " a 250 ms timer (lwIP)")
def a_timer_of_250ms() -> bytes:
    return held_by_timer(250.0)


@says(
    "because its answers wait for acknowledgements that the clients hold back: ", " a 100 ms timer (macOS, or FreeBSD"
)
def a_timer_of_100ms() -> bytes:
    return held_by_timer(100.0)


@says(
    "because its answers wait for acknowledgements that the clients hold back: ", " a 50 ms timer (Solaris, or Windows"
)
def a_timer_of_50ms() -> bytes:
    return held_by_timer(50.0)


def held_by_timer(timer_ms: float) -> bytes:
    script = Script(ASK, ((0.0, answer(600)[0]), (0.0, b"b" * 600)), exchanges=12, client_think=(2.0, 9.0))
    return pcap(record(script, client=Host(quick=2, delack_ms=timer_ms, tick_ms=0.1)).tape)


def crowd(clients: int, rounds: int, each_ms: float, first_ms: float = 0.1) -> bytes:
    """So many clients of a server that answers one by one. Each body waits for an ACK that the client's host holds to
    its tick, so that all ask again as one.
    """
    tape: list[Segment] = []
    talks = [Talk(ends=Ends(("10.0.0.1", 40_000 + n)), tape=tape, client_leg=0.02) for n in range(clients)]
    for talk in talks:
        talk.open()
    head, body = answer(600)
    at = 10.05
    for _ in range(rounds):
        tick = held(at + first_ms + 40.0)
        for place, talk in enumerate(talks):
            talk.client(at + place / 1000, get())
            talk.server(at + first_ms + each_ms * place, head)
            talk.client(tick + place / 1000)
            talk.server(tick + place / 1000 + 0.01, body)
        at = tick + 0.1
    return in_time(tape)


@says(" times the requests/s; then the server's capacity is the limit")
def a_crowd_that_asks_again_at_once() -> bytes:
    return crowd(40, 10, 0.09, 0.9)


@says("10.0.0.2:80: 6 of 90 requests are slow", "  gain      p99 at best 0.")
def a_few_answers_in_two_writes() -> bytes:
    whole, parts = ((0.0, b"".join(answer(600))),), tuple((0.0, part) for part in answer(600))
    script = Script(ASK, whole, 30, alter=lambda n, s: replace(s, answer=parts) if n in (11, 23) else s)
    return pcap(record(script, client=Host(quick=2)).tape)


@says(", 16.2 times the requests/s; then the server's capacity is the limit")
def a_crowd_whose_server_is_steady() -> bytes:
    return crowd(30, 10, 0.09)
