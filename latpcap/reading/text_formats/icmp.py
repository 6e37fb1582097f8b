"""Builds ICMP messages from the words of tcpdump.

An error quotes the packet that caused it: as the text prints it (`-v`), or else the last packet of the text between the
same hosts.
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
    ("time exceeded in-transit", 11, 0), ("ip reassembly time exceeded", 11, 1), (r"redirect (\S+) to net", 5, 0),
    (r"redirect (\S+) to", 5, 1), ("source quench", 4, 0), ("parameter problem", 12, 0),
]  # fmt: skip
"""Pattern, type and code of ICMP errors; the first pattern that matches counts."""
_ERRORS6 = [
    ("packet too big", 2, 0), ("unreachable route|no route", 1, 0), ("prohibited", 1, 1), ("beyond scope", 1, 2),
    ("unreachable address", 1, 3), ("unreachable port", 1, 4), ("destination unreachable", 1, 3),
    ("time exceeded", 3, 0), ("parameter problem", 4, 0),
]  # fmt: skip
"""Pattern, type and code of ICMPv6 errors."""
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
    """Return IP protocol and bytes of a message such as `ICMP host 192.0.2.9 unreachable, length 36`.

    `packet` parses a quoted packet. `latest` returns the start of the last packet to a host, `packed` a host's address
    as bytes. `sender` is the address of the quoted packet's sender, and the IP version.
    """
    first, _, quoted = text.partition("\n")
    six = first.startswith("ICMP6")
    protocol, body = (wire.ICMP6 if six else wire.ICMP), first.partition(" ")[2]
    length = int(match[1]) if (match := _LENGTH.search(first)) else 8
    if echo := _ECHO.match(body):
        icmp_type = wire.echo_type(6 if six else 4, echo[1])
        number = (int(echo[2] or 0) & 0xFFFF) << 16 | int(echo[3]) & 0xFFFF
        return protocol, wire.icmp(icmp_type, 0, number, Part(b"", max(0, length - 8)))
    if six:
        error = next(((icmp_type, code) for pattern, icmp_type, code in _ERRORS6 if re.search(pattern, body)), None)
    else:
        error = _error4(body)
    if error is None:
        others = _OTHERS6 if six else _OTHERS4
        icmp_type = next((icmp_type for word, icmp_type in others.items() if body.startswith(word)), 0xFF)
        return protocol, wire.icmp(icmp_type, 0, 0, Part(b"", max(0, length - 8)))
    icmp_type, code = error
    mtu = min(int(match[1]), 0xFFFF) if (match := _MTU.search(body)) else 0
    inside = packet(quoted.lstrip()) if quoted else None
    content = inside.known if inside else _quoted(body, latest, packed, sender)
    return protocol, wire.icmp(
        icmp_type, code, mtu, Part(content[: max(length - 8, 0)], max(0, length - 8 - len(content)))
    )


def _error4(body: str) -> tuple[int, int] | None:
    """Return type and code of an ICMP error; None for other messages."""
    if _PORT.match(body):
        return 3, 3
    if _PROTOCOL.match(body):
        return 3, 2
    if match := _PLACE.match(body):
        word = (match[3] or "").partition(" (")[0]
        if word == "unknown":
            return 3, 6 if match[1] == "net" else 7
        if word == "admin prohibited" and match[1] == "net":
            return 3, 9
        return 3, _WORDS.get(word, 0 if match[1] == "net" else 1)
    return next(((icmp_type, code) for pattern, icmp_type, code in _ERRORS4 if re.match(pattern, body)), None)


def _quoted(
    body: str,
    latest: Callable[[str], bytes | None],
    packed: Callable[[str], bytes],
    sender: tuple[bytes, int],
) -> bytes:
    """Return the header of the packet that caused an error, if its destination is known."""
    body = re.sub(r"^(?:host|net) ", "", body)
    match = _TARGET.search(body)
    target = match and (match[1] or match[2])
    if not target:
        return b""
    if packet := latest(target):
        return packet
    source, version = sender
    destination = packed(target)
    if version == 4 and len(source) == len(destination) == 4:
        return b"\x45" + bytes(7) + bytes([64, 0, 0, 0]) + source + destination + _NO_PORTS
    return b""
