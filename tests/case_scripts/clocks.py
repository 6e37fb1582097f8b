"""What the server's time stamps tell of the path: the same delay held by a queue, or by the program."""

from __future__ import annotations

from collections.abc import Callable

from makepcap import Talk, answer, get, pcap, timestamps
from simulator import Host, Path, Script, record

from case_scripts.registry import case, variants

HTTP = b"".join(answer(200))


def timed(sent: Callable[[int], float], came: Callable[[int], float], leg: float, tick: float = 1.0) -> bytes:
    """24 exchanges whose answers left `sent(k)` ms after the request came and took `came(k)` ms more than the path at
    its best; the server's clock counts ticks of so many ms, in units of 1 ms.
    """
    talk = Talk(server_leg=leg, client_leg=0.01)
    talk.open()
    at = 5.0 + leg
    for k in range(24):
        talk.client(at, get(), options=[timestamps(int(at), 0)])
        left = at + leg / 2 + sent(k)
        done = left + leg / 2 + came(k)
        talk.server(done, HTTP, options=[timestamps(int(70_000 + left // tick * tick), int(at))])
        at = done + 1.37
    return pcap(talk.tape)


@case
def queue_or_program() -> bytes:
    """At the client, 6 ms from the server: every eighth answer is 12 ms late though its time stamp says that it left
    in time (the path's queue); every ninth left 25 ms late (the program).

    Not to be mistaken for: each other. Both come late, and only the sender's clock tells them apart.
    """
    return timed(lambda k: 25.0 if k % 9 == 8 else 0.2, lambda k: 12.0 if k % 8 == 7 else 0.0, 6.0)


@variants(
    at_server={"leg": 0.01, "late": 12.0},
    within_a_tick={"leg": 6.0, "late": 2.5},
    coarse_clock={"leg": 6.0, "late": 0.0, "tick": 16.0},
)
def clock_tells_nothing(leg: float, late: float, tick: float = 1.0) -> bytes:
    """Every eighth answer is late, but the server's time stamps cannot say where it was: the capture is at the server,
    the delay is about a tick and noise, or the clock is coarse.

    Not to be mistaken for: a queue on the path.
    """
    return timed(lambda k: 0.2 + k % 5, lambda k: late if k % 8 == 7 else 0.0, leg, tick)


@case
def clock_of_another_unit() -> bytes:
    """Every eighth answer takes 20 ms more, and the server's time stamps count units of 4 ms (HZ=250), which the first
    ten exchanges show.

    Not to be mistaken for: a clock of 1 ms, by which all of it would be the path's.
    """
    talk = Talk(server_leg=6.0, client_leg=0.01)
    talk.open()
    for k in range(40):
        at = 11.0 + 300 * k
        talk.client(at, get(), options=[timestamps(int(at), 0)])
        late = 20.0 if k % 8 == 7 else 0.2
        talk.server(at + 6.0 + late, HTTP, options=[timestamps(int((at + 3.2) / 4), int(at))])
    return pcap(talk.tape)


@variants(held={}, decoy_pauses={"pause": 64.0}, decoy_coarse_clock={"clock_ms": 4})
def slow_line(pause: float = 0.0, clock_ms: int = 1) -> bytes:
    """Head and body with Nagle's algorithm on, over a line of 256 kbit/s, seen at its client: a body takes 6 ms longer
    than a handshake. By the server's clock it was sent when the ACK came.

    Not to be mistaken for: a program that writes it 64 ms behind the head, a moment after the ACK or before it. And by
    a clock that stands still for 4 ms nothing is proven.
    """
    head, body = answer(200)
    script = Script(((0.0, get()),), ((0.0, head), (pause, body)), exchanges=16, client_think=(3.0, 9.0))
    path = Path(0.005, 8.0, kbit_s=256.0)
    return pcap(record(script, server=Host(clock_ms=clock_ms), path=path, connections=2, seed=5).tape)
