"""Answers that are written part by part, and which of the parts Nagle's algorithm holds."""

from __future__ import annotations

import random

from makepcap import Talk, answer, get, pcap

from case_scripts.registry import variants

WORKS = {
    "parts": [[0.1, 20.0, 20.0, 20.0]] * 24,
    "growing": [[4.0 + n, 4.0 + n, 4.0 + n, 30.0] for n in range(24)],
    "rare": [[0.1, 0.1, 25.0, 0.1]] * 3 + [[25.0, 0.1, 0.1, 25.0], [0.1, 25.0, 0.1, 0.1]] * 10,
}


@variants(
    once={"work": "parts", "free": 1},
    decoy_grows={"work": "growing"},
    decoy_at_times={"work": "rare"},
)
def answers_in_parts(work: str, free: int = 3) -> bytes:
    """Answers that are written in parts, over Nagle's algorithm: heads' ACKs are held for 40 to 44 ms, but those of
    the `free` first answers come at once. Of one program the body's first part follows the head at once, and it works
    for 20 ms before each other: with the first part two more leave when the ACK comes, and the last of these was
    written a moment before. Only that moment is the stall's beyond doubt, and nothing where only one answer left freely
    (`once`). Seen beside the server.

    Of the decoys one works before each part, a little longer each time, and one before any part at times.

    Not to be mistaken for: a pause of the program behind the head; of the decoys, stalls that are proven whole because
    the parts that left freely behind a head were quick.
    """
    talk, rng = Talk(server_leg=0.01, client_leg=1.0), random.Random(14)
    talk.open()
    at = 5.0
    for n, works in enumerate(WORKS[work]):
        head, body = answer(100 * len(works))
        talk.client(at, get())
        left = at + 0.2
        talk.server(left, head)
        acked = left + 1.0 + (rng.uniform(40.0, 44.0) if n >= free else 0.0)
        written = [left + sum(works[: part + 1]) for part in range(len(works))]
        while written:
            talk.client(acked)
            many = sum(one <= acked for one in written) or 1
            left = max(written[0], acked) + 0.02
            talk.server(left, body[: 100 * many])
            body, written, acked = body[100 * many :], written[many:], left + 1.0
        talk.client(acked)
        at = acked + 3.0
    return pcap(talk.tape)


@variants(at_the_end={}, decoy_nodelay={"held": False}, decoy_no_longer={"pause": 7.0})
def flushed(held: bool = True, pause: float = 28.0) -> bytes:
    """Answers whose four parts are written 7 ms apart, and at whose end the program sets TCP_NODELAY, as Tornado does:
    what waits for a held ACK of the head leaves then, all of it, before that ACK. Only the first answer's ACKs come at
    once. One decoy has TCP_NODELAY all the time: each part leaves when it is written, the first one 28 ms after the
    head. Another writes all at once, but no later than it pauses elsewhere. Seen beside the server.

    Not to be mistaken for: a pause that is proven the program's; of the decoys, a wait of the kernel's.
    """
    talk = Talk(server_leg=0.01, client_leg=1.0)
    talk.open()
    at = 5.0
    for n in range(16):
        head, body = answer(400)
        talk.client(at, get())
        left = at + 0.2
        talk.server(left, head)
        if n == 0:
            for part in range(4):
                talk.client(left + 1.0)
                left += 7.0
                talk.server(left, body[100 * part : 100 * part + 100])
        else:
            left += pause
            talk.server(left, body if held else body[:100])
            if not held:
                for part in range(1, 4):
                    talk.server(left + 7.0 * part, body[100 * part : 100 * part + 100])
                left += 21.0
        talk.client(left + 1.0)
        at = left + 4.0
    return pcap(talk.tape)
