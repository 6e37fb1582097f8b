"""Builds DNS messages (RFC 1035) from the words of tcpdump and Wireshark.

A message has its header, its question, and the answers that are addresses or aliases; other records are only counted.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from dataclasses import dataclass, field

from latpcap.reading.text_formats.frames import Part

_TYPES = {
    "A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "HINFO": 13, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33,
    "NAPTR": 35, "OPT": 41, "DS": 43, "DNSKEY": 48, "SVCB": 64, "HTTPS": 65, "ANY": 255,
}  # fmt: skip
TYPE_NAMES = {number: name for name, number in _TYPES.items()}
_RCODES = {
    "formerr": 1, "servfail": 2, "nxdomain": 3, "notimp": 4, "refused": 5,
    "format error": 1, "server failure": 2, "no such name": 3, "not implemented": 4,
}  # fmt: skip
_TTL_S = 60
"""Time to live of every answer that is made."""
_ASK = re.compile(
    r"^(?P<id>\d{1,5})(?P<op> (?:update|notify|stat|inv_q))?(?P<marks>[+%]*)(?: \[[^]]*\])* (?P<type>[A-Z][\w-]*)"
    r"(?: \(Q[MU]\))?\? (?P<name>\S+)"
)
_ANSWER = re.compile(
    r"^(?P<id>\d{1,5})(?: (?P<rcode>[A-Z]\w+))?(?P<marks>[*|$-]*)(?: \[[^]]*\])*"
    r"(?: q: (?P<type>[A-Z][\w-]*)(?: \(Q[MU]\))?\? (?P<name>\S+))? (?P<counts>\d{1,9}/\d{1,9}/\d{1,9})(?P<rest>.*)",
    re.S,
)
_RECORD = re.compile(r"\b(A|AAAA|CNAME) (\S+?)\.?(?=,|\s|$)")
_STANDARD = re.compile(
    r"^(?:Standard|Unknown operation|Dynamic|Inverse)\w* (?:query|update)(?P<response> response)?"
    r" (?:0x(?P<id>[0-9a-f]{1,4}),? ?)?"
    r"(?P<rcode>Format error|Server failure|No such name|Not implemented|Refused)?,? ?"
    r"(?:(?P<type>[A-Z][\w]*) (?P<name>\S+))?(?P<rest>.*)",
    re.I | re.S,
)


@dataclass
class Message:
    """The parts of one message that the text shows."""

    ident: int
    response: bool
    kind: str = ""
    """Record type of the question, e.g. "AAAA"."""
    name: str = ""
    rcode: int = 0
    recursion: bool = True
    truncated: bool = False
    counts: tuple[int, int, int] = (0, 0, 0)
    """Records in the answer, authority and additional sections."""
    answers: list[tuple[str, str]] = field(default_factory=list)

    def packed(self, length: int) -> Part:
        """Return the message. The text gives `length` bytes; a name edited by hand may make the message longer."""
        flags = (0x8000 | 0x80 if self.response else 0) | self.rcode & 15
        flags |= (0x100 if self.recursion else 0) | (0x200 if self.truncated else 0)
        record_type, name = _number(self.kind), _name(self.name)
        records = b""
        for type_, value in self.answers:
            data = _data(type_, value)
            if data is not None and name is not None:
                records += struct.pack(">HHHIH", 0xC00C, _number(type_), 1, _TTL_S, len(data)) + data
        message = struct.pack(">HHHHHH", self.ident & 0xFFFF, flags, 1 if self.name else 0, *self.counts)
        if name is not None:
            message += name + struct.pack(">HH", record_type, 1) + records
        return Part(message, max(0, length - len(message)))


@dataclass
class Questions:
    """The questions of a text: tcpdump's responses do not repeat the question."""

    asked_of: dict[int, tuple[str, str]] = field(default_factory=dict)

    def tcpdump(self, text: str) -> Message | None:
        """Parse tcpdump's `31077+ A? www.example.com. (33)` or a response; return None for other text."""
        if match := _ASK.match(text):
            ident, name = int(match["id"]), match["name"].rstrip(".")
            self._remember(ident, match["type"], name)
            return Message(ident, False, match["type"], name, recursion="+" in match["marks"])
        match = _ANSWER.match(text)
        if not match or (match["rcode"] and match["rcode"].lower() not in _RCODES):
            return None
        ident = int(match["id"])
        record_type, name = (
            (match["type"], match["name"].rstrip(".")) if match["name"] else self.asked_of.get(ident, ("", ""))
        )
        answers, authority, additional = (min(int(count), 0xFFFF) for count in match["counts"].split("/"))
        return Message(
            ident,
            True,
            record_type,
            name,
            rcode=_RCODES[match["rcode"].lower()] if match["rcode"] else 0,
            truncated="|" in match["marks"],
            counts=(answers, authority, additional),
            answers=_RECORD.findall(re.sub(r"\[[^]]*\] ", "", match["rest"]))[:answers],
        )

    def wireshark(self, info: str) -> Message | None:
        """Parse Wireshark's `Standard query response 0x1234 A www.example.com A 192.0.2.1`; None for other text."""
        match = _STANDARD.match(info)
        if not match:
            return None
        ident = int(match["id"] or "0", 16)
        record_type, name = match["type"] or "", match["name"] or ""
        if record_type and _number(record_type) == 0:
            record_type = name = ""
        if not match["response"]:
            self._remember(ident, record_type, name)
            return Message(ident, False, record_type, name)
        if not name:
            record_type, name = self.asked_of.get(ident, ("", ""))
        answers = _RECORD.findall(match["rest"])
        rcode = _RCODES[match["rcode"].lower()] if match["rcode"] else 0
        return Message(
            ident, True, record_type, name, rcode=rcode, counts=(min(len(answers), 0xFFFF), 0, 0), answers=answers
        )

    def _remember(self, ident: int, record_type: str, name: str) -> None:
        if len(self.asked_of) > 0xFFFF:
            self.asked_of.clear()
        self.asked_of[ident] = (record_type, name)


def _number(record_type: str) -> int:
    if record_type.startswith("Type") and re.fullmatch(r"[0-9]{1,5}", record_type[4:]):
        return int(record_type[4:]) & 0xFFFF
    return _TYPES.get(record_type.upper(), 0)


def _name(name: str) -> bytes | None:
    """Encode a name; return None if it is empty or too long."""
    if not name:
        return None
    labels = [label.encode("utf-8", "replace") for label in name.rstrip(".").split(".") if label]
    if any(len(label) > 63 for label in labels) or sum(map(len, labels)) + len(labels) > 254:
        return None
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _data(record_type: str, value: str) -> bytes | None:
    try:
        if record_type == "A":
            return ipaddress.IPv4Address(value).packed
        if record_type == "AAAA":
            return ipaddress.IPv6Address(value).packed
    except ValueError:
        return None
    return _name(value)
