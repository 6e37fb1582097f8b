"""Names that are looked up before connections: slow, prompt, another client's, long before."""

from __future__ import annotations

import socket

import dpkt
from makepcap import EPOCH_NS, Ends, Talk, pcap_of

from case_scripts.registry import case, variants
from case_scripts.repairs import ask

RESOLVER = "10.0.0.53"


def datagram(ms: float, client: str, number: int, answer: str | None = None, asks: bool = True) -> tuple[int, bytes]:
    """A question for web.lab of this client, or its answer, and when it passed."""
    dns = dpkt.dns.DNS(id=number, qd=[dpkt.dns.DNS.Q(name="web.lab", type=dpkt.dns.DNS_A)])
    if not asks:
        dns.qr, dns.rcode = 1, 3 if answer is None else 0
    if answer is not None:
        dns.an = [dpkt.dns.DNS.RR(name="web.lab", type=dpkt.dns.DNS_A, ttl=60, ip=socket.inet_aton(answer))]
    src, dst, sport, dport = (client, RESOLVER, 5353 + number, 53) if asks else (RESOLVER, client, 53, 5353 + number)
    udp = dpkt.udp.UDP(sport=sport, dport=dport, data=bytes(dns))
    udp.ulen = len(udp)
    ip = dpkt.ip.IP(src=socket.inet_aton(src), dst=socket.inet_aton(dst), p=dpkt.ip.IP_PROTO_UDP, data=udp)
    ip.len = len(ip)
    return EPOCH_NS + round(ms * 1e6), bytes(dpkt.ethernet.Ethernet(data=ip))


def connection(ms: float, client: str = "10.0.0.1", port: int = 40_000) -> list[tuple[int, bytes]]:
    """A connection of this client to 10.0.0.2 with one request, from this instant on."""
    talk = Talk(server_leg=2.0, client_leg=0.05, ends=Ends((client, port), ("10.0.0.2", 80)))
    talk.open(ms)
    ask(talk, ms + 2.2, 5.0)
    return [(s.time_ns, s.frame()) for s in talk.tape]


@case
def dns_slow() -> bytes:
    """The resolver's first question is lost and asked again after 5 s; the client connects 0.2 ms after the answer, and
    once more 300 ms later.

    Not to be mistaken for: a lookup for each connection. The second one used what was known.
    """
    names = [datagram(0, "10.0.0.1", 1), datagram(5000, "10.0.0.1", 1)]
    names.append(datagram(5012, "10.0.0.1", 1, "10.0.0.2", asks=False))
    return pcap_of([*names, *connection(5012.2), *connection(5320, port=40_001)], nanos=True)


@case
def dns_over_tcp() -> bytes:
    """Two questions in one packet over TCP, answered in the other order, the second one after 60 ms; then the client
    connects.

    Not to be mistaken for: a connection that waited for nothing, or lookups of UDP.
    """
    talk = Talk(server_leg=2.0, client_leg=0.05, ends=Ends(("10.0.0.1", 39_000), (RESOLVER, 53)))
    talk.open()

    def over_tcp(number: int, answer: str | None = None, asks: bool = True) -> bytes:
        _, frame = datagram(0, "10.0.0.1", number, answer, asks)
        message = frame[14 + 20 + 8 :]
        return len(message).to_bytes(2, "big") + message

    talk.client(5, over_tcp(7) + over_tcp(8))
    talk.server(10, over_tcp(8, asks=False))
    talk.client(10.1)
    talk.server(65, over_tcp(7, "10.0.0.2", asks=False))
    talk.client(65.1)
    return pcap_of([*((s.time_ns, s.frame()) for s in talk.tape), *connection(65.3)], nanos=True)


@variants(
    of_another_client={"asker": "10.0.0.7", "late": 0.2}, long_before={"asker": "10.0.0.1", "late": 1500.0},
)  # fmt: skip
def dns_decoy(asker: str, late: float) -> bytes:
    """A lookup of 900 ms and a connection to its address, which did not wait for it: another client asked, or it was
    answered 1.5 s before.

    Not to be mistaken for: a connection that waited for DNS.
    """
    names = [datagram(0, asker, 1), datagram(900, asker, 1, "10.0.0.2", asks=False)]
    return pcap_of([*names, *connection(900 + late)], nanos=True)


@case
def dns_quick() -> bytes:
    """A lookup of 3 ms before a connection, one that names no host, and one without an answer.

    Not to be mistaken for: slow DNS.
    """
    names = [datagram(0, "10.0.0.1", 1), datagram(3, "10.0.0.1", 1, "10.0.0.2", asks=False)]
    others = [datagram(20, "10.0.0.1", 2), datagram(22, "10.0.0.1", 2, asks=False), datagram(30, "10.0.0.1", 3)]
    return pcap_of([*names, *connection(3.2), *others], nanos=True)
