"""Captures of one direction only: what may be suspected there, and what may not."""

from __future__ import annotations

import situations
from makepcap import Talk, answer, get, pcap
from simulator import Path, Script, record

from case_scripts.registry import case, variants

WAYS = {"at_client": Path(0.01, 1.5), "at_server": Path(1.5, 0.01), "between": Path(4.0, 4.0)}
HTTP = b"".join(answer(200))
SIDES = {
    f"{side}_{place}": {"from_client": side == "client", "place": place}
    for side in ("client", "server")
    for place in WAYS
}


@variants(**SIDES)
def one_way_stalls(from_client: bool, place: str) -> bytes:
    """Nagle's algorithm and delayed ACKs in three connections of 16 exchanges, of which only one direction was
    recorded. Each stall but the quick ones at the start is suspected, in rows beside the exchanges.

    Not to be mistaken for: proven stalls; the other direction would have to be seen.
    """
    both = Script(((0.0, get()),), tuple((0.0, part) for part in answer(400)), exchanges=16)
    return pcap([s for s in record(both, path=WAYS[place]).tape if s.from_client == from_client])


@case
def stall_both_directions() -> bytes:
    """The stall of stall_at_server, twelve times, with both directions: it is judged, so nothing is left to suspect.

    Not to be mistaken for: a capture of one direction.
    """
    return pcap(situations.stall(12)[0].tape)


@variants(client={"from_client": True}, server={"from_client": False})
def one_way_thinking(from_client: bool) -> bytes:
    """One direction of twelve exchanges whose program thinks for 45 ms and answers in one piece.

    Not to be mistaken for: a stall; nobody waits for an ACK.
    """
    talk = Talk(server_leg=1.0, client_leg=0.01)
    talk.open()
    for k in range(12):
        talk.client(10.0 + 100 * k, get())
        talk.server(55.0 + 100 * k, HTTP)
        talk.client(55.1 + 100 * k)
    return pcap([s for s in talk.tape if s.from_client == from_client])
