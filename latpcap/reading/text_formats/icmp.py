"""ICMP messages from the words that tcpdump and Wireshark have for them.

Words in, bytes out. An error quotes the packet that it answers: as the text prints it (`-v`), else the last packet of
the text that went the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from latpcap.reading.text_formats import frames as wire
from latpcap.reading.text_formats.frames import Part

_ECHO = re.compile(r"echo (request|reply)(?:, id (\d{1,10}))?, seq (\d{1,10})")
_LENGTH = re.compile(r",? length (\d{1,10})\s*(?:\n|$)")
_MTU = re.compile(r"\bmtu (\d{1,10})")
_PORT = re.compile(r"(\S+) (udp|tcp) port (\S+) unreachable")
_PROTOCOL = re.compile(r"(\S+) protocol (\d{1,3})(?: port \d+)? unreachable")
_PLACE = re.compile(r"(?:(host|net) )?(\S+) unreachable(?: - (.*?))?(?:,|$)")
_TARGET = re.compile(r"(\S+?) (?:(?:udp|tcp) port|unreachable)|unreachable port, (\S+) (?:udp|tcp)")
_WORDS = {
    "need to frag": 4, "source route failed": 5, "admin prohibited filter": 13, "admin prohibited": 10,
    "tos prohibited": 12, "host precedence violation": 14, "precedence cutoff": 15,
}  # fmt: skip
_ERRORS4 = [
    (r"time exceeded in-transit", 11, 0),
    (r"ip reassembly time exceeded", 11, 1),
    (r"redirect (\S+) to net", 5, 0),
    (r"redirect (\S+) to", 5, 1),
    (r"source quench", 4, 0),
    (r"parameter problem", 12, 0),
]
_ERRORS6 = [
    (r"packet too big", 2, 0),
    (r"unreachable route|no route", 1, 0),
    (r"prohibited", 1, 1),
    (r"beyond scope", 1, 2),
    (r"unreachable address", 1, 3),
    (r"unreachable port", 1, 4),
    (r"destination unreachable", 1, 3),
    (r"time exceeded in-transit|time exceeded", 3, 0),
    (r"parameter problem", 4, 0),
]
_OTHERS6 = {"router solicitation": 133, "router advertisement": 134, "neighbor solicitation": 135,
            "neighbor advertisement": 136, "redirect": 137}  # fmt: skip
_OTHERS4 = {"time stamp query": 13, "time stamp reply": 14, "address mask request": 17, "router advertisement": 9}
_NO_PORTS = bytes(8)


def message(
    text: str,
    packet: Callable[[str], Part | None],
    latest: Callable[[str], bytes | None],
    packed: Callable[[str], bytes],
    sender: tuple[bytes, int],
) -> tuple[int, Part] | None:
    """The protocol and bytes of `ICMP host 192.0.2.9 unreachable, length 36`.

    `packet` reads a quoted packet, `latest` gives the start of the last one to a host, `packed` a host's address;
    `sender` is the address of the quoted packet's sender and the version of IP.
    """
    first, _, quoted = text.partition("\n")
    six = first.startswith("ICMP6")
    protocol, body = (wire.ICMP6 if six else wire.ICMP), first.partition(" ")[2]
    length = int(found[1]) if (found := _LENGTH.search(first)) else 8
    if echo := _ECHO.match(body):
        kind = {(False, "request"): 8, (False, "reply"): 0, (True, "request"): 128, (True, "reply"): 129}[six, echo[1]]
        number = (int(echo[2] or 0) & 0xFFFF) << 16 | int(echo[3]) & 0xFFFF
        return protocol, wire.icmp(kind, 0, number, Part(b"", max(0, length - 8)))
    error = _error6(body) if six else _error4(body)
    if error is None:
        others = _OTHERS6 if six else _OTHERS4
        kind = next((kind for word, kind in others.items() if body.startswith(word)), 0xFF)
        return protocol, wire.icmp(kind, 0, 0, Part(b"", max(0, length - 8)))
    kind, code = error
    mtu = min(int(found[1]), 0xFFFF) if (found := _MTU.search(body)) else 0
    inside = packet(quoted.lstrip()) if quoted else None
    held = inside.held if inside else _quoted(body, latest, packed, sender)
    return protocol, wire.icmp(kind, code, mtu, Part(held[: max(length - 8, 0)], max(0, length - 8 - len(held))))


def _error4(body: str) -> tuple[int, int] | None:
    if _PORT.match(body):
        return 3, 3
    if _PROTOCOL.match(body):
        return 3, 2
    if place := _PLACE.match(body):
        word = (place[3] or "").partition(" (")[0]
        if word == "unknown":
            return 3, 6 if place[1] == "net" else 7
        if word == "admin prohibited" and place[1] == "net":
            return 3, 9
        return 3, _WORDS.get(word, 0 if place[1] == "net" else 1)
    return next(((kind, code) for pattern, kind, code in _ERRORS4 if re.match(pattern, body)), None)


def _error6(body: str) -> tuple[int, int] | None:
    return next(((kind, code) for pattern, kind, code in _ERRORS6 if re.search(pattern, body)), None)


def _quoted(
    body: str,
    latest: Callable[[str], bytes | None],
    packed: Callable[[str], bytes],
    sender: tuple[bytes, int],
) -> bytes:
    """The header of the packet that an error answers, as far as it is known."""
    body = re.sub(r"^(?:host|net) ", "", body)
    found = _TARGET.search(body)
    target = found and (found[1] or found[2])
    if not target:
        return b""
    if known := latest(target):
        return known
    source, version = sender
    destination = packed(target)
    if version == 4 and len(source) == len(destination) == 4:
        return b"\x45" + bytes(7) + bytes([64, 0, 0, 0]) + source + destination + _NO_PORTS
    return b""
