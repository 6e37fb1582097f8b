"""Converts the literals of a filter to values of a field's kind: numbers, times, networks, texts and bytes."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from latpcap import _core
from latpcap.errors import FilterError
from latpcap.reading.filters.fields import Field
from latpcap.reading.filters.grammar import Text, Word

KINDS = {
    "int": "a number",
    "signed": "a number",
    "bool": "a boolean",
    "duration": "a time in seconds",
    "ms": "a time in ms",
    "instant": "a date and time",
    "seconds": "a time in seconds since 1970",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "text": "a string",
    "bytes": "bytes",
    "protocol": "bytes",
    "ether": "an Ethernet address",
}
"""Kinds of fields with a value, and their names in error messages."""
_TIMES = {
    "duration": "a time in seconds, as in 0.04", "ms": "a time in ms, as in 0.4",
    "seconds": "in seconds since 1970, as in 1700000000.5",
}  # fmt: skip
_MAX_CHARACTERS = 200
"""Upper bound on the characters of a number, an address or a time."""
_TRUTHS = {"True": 1, "TRUE": 1, "Set": 1, "False": 0, "FALSE": 0, "Not set": 0}
NAMES: dict[str, dict[str, int]] = {
    "arp.opcode": {"request": 1, "reply": 2},
    "ip.proto": {"ICMP": 1, "IGMP": 2, "TCP": 6, "UDP": 17, "GRE": 47, "ESP": 50, "AH": 51, "SCTP": 132},
    "ipv6.nxt": {"TCP": 6, "UDP": 17, "ICMPv6": 58},
    "eth.type": {"IPv4": 0x0800, "ARP": 0x0806, "IPv6": 0x86DD},
    "dns.flags.rcode": {
        "No error": 0, "Format error": 1, "Server failure": 2, "No such name": 3, "Not implemented": 4, "Refused": 5,
    },
    "tls.handshake.type": {
        "Client Hello": 1, "Server Hello": 2, "New Session Ticket": 4, "Certificate": 11, "Server Key Exchange": 12,
        "Server Hello Done": 14, "Client Key Exchange": 16, "Finished": 20,
    },
    "tls.record.content_type": {"Change Cipher Spec": 20, "Alert": 21, "Handshake": 22, "Application Data": 23},
}  # fmt: skip
"""Wireshark's names of values, which a filter may use in place of the number, by field."""
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*")
_OCTETS = re.compile(r"[0-9A-Fa-f]{2}([:.-][0-9A-Fa-f]{2})+")
_DATES = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%b %d, %Y %H:%M:%S", "%b %d, %Y %H:%M", "%b %d, %Y")


class Meaning:
    """Converts the literals of one expression to values of a field's kind."""

    def __init__(self, expression: str):
        self.expression = expression

    def error(self, node: Word | Text, reason: str) -> FilterError:
        """Return an error that points at this literal."""
        length = len(node.text) + 2 * isinstance(node, Text)
        return FilterError(self.expression, node.offset, reason, length=max(length, 1))

    def value(self, node: Word | Text, field: Field, name: str) -> Any:
        """Return an int for numbers, booleans and times (ns), a network for addresses, a str or bytes for the rest."""
        if node.text in NAMES.get(name, ()):
            return NAMES[name][node.text]
        named = isinstance(node, Text) and field.kind == "bool" and node.text in _TRUTHS
        if isinstance(node, Text) and not named and field.kind not in ("text", "instant", "bytes", "protocol"):
            wanted = KINDS[field.kind]
            raise self.error(node, f'{name} is {wanted}, "{node.text}" is a string: write it without quotes')
        if len(node.text) > _MAX_CHARACTERS and field.kind not in ("text", "bytes", "protocol"):
            raise self.error(node, f"a value of {len(node.text):,} characters is too long for {name}")
        if field.kind in _TIMES:
            ns = self._nanos(node, f"{name} is {_TIMES[field.kind]}")
            return ns // 1000 if field.kind == "ms" else ns
        if field.kind in ("ipv4", "ipv6"):
            return self._network(node, name, int(field.kind[-1]))
        convert: Callable[[Word | Text, Field, str], Any] = getattr(self, f"_{field.kind}")
        return convert(node, field, name)

    def _int(self, node: Word | Text, field: Field, name: str) -> int:
        if node.text.startswith("-"):
            raise self.error(node, f"{name} has no negative values")
        if not _NUMBER.fullmatch(node.text):
            raise self.error(node, f"{node.text!r} is no number, and {name} is one{_named(name)}")
        text = node.text
        number = int(text, 8) if re.fullmatch(r"0[0-7]+", text) else int(text, 0)
        if number >= 2**field.bits:
            raise self.error(node, f"{number} is too big for {name}, whose greatest value is {2**field.bits - 1}")
        return number

    def _signed(self, node: Word | Text, field: Field, name: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,9}", node.text):
            raise self.error(node, f"{node.text!r} is no number, and {name} is one")
        return int(node.text)

    def _bool(self, node: Word | Text, field: Field, name: str) -> int:
        if node.text in _TRUTHS:
            return _TRUTHS[node.text]
        if _NUMBER.fullmatch(node.text):
            return int(node.text.strip("0") != "")
        raise self.error(node, f"{name} is a boolean: 1 and True, or 0 and False")

    def _nanos(self, node: Word | Text, reason: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,11}(\.[0-9]*)?", node.text):
            raise self.error(node, f"{node.text!r} is no such time: {reason}")
        return int((Decimal(node.text) * 1_000_000_000).to_integral_value())

    def _instant(self, node: Word | Text, field: Field, name: str) -> int:
        """Return a date and time in ns since 1970; without a zone it is local."""
        reason = f'{name} takes a date and time, as in "2026-11-21 06:07:32.5" (local) or "2026-11-21T06:07:32Z"'
        match = re.fullmatch(r"(.*?)(\.[0-9]{1,9})?\s*(Z|UTC|[+-][0-9]{2}:?[0-9]{2})?", node.text)
        if match is None:
            raise self.error(node, reason)
        text, fraction, zone = match.groups()
        for form in _DATES:
            for separator in ("T", " "):
                try:
                    moment = datetime.strptime(text, form.replace(" %H", f"{separator}%H"))
                except ValueError:
                    continue
                if zone in ("Z", "UTC"):
                    moment = moment.replace(tzinfo=UTC)
                elif zone:
                    moment = moment.replace(tzinfo=datetime.strptime(zone.replace(":", ""), "%z").tzinfo)
                try:
                    return int(moment.timestamp()) * 1_000_000_000 + int(Decimal(fraction or 0) * 1_000_000_000)
                except (OverflowError, ValueError, OSError, InvalidOperation):
                    break
        raise self.error(node, f"{node.text!r} is no such time: {reason}")

    def _network(self, node: Word | Text, name: str, version: int) -> Any:
        try:
            network = ipaddress.ip_network(node.text, strict=False)
        except ValueError:
            reason = f"{node.text!r} is no IPv{version} address (10.0.0.1) and no prefix (10.0.0.0/8)"
            if version == 6:
                reason = f"{node.text!r} is no IPv6 address (2001:db8::1) and no prefix (2001:db8::/32)"
            raise self.error(node, reason) from None
        if network.version != version:
            other = name.replace("ipv6", "ip") if version == 6 else name.replace("ip", "ipv6")
            raise self.error(node, f"{name} is an IPv{version} address, {node.text} is not: {other} has those")
        return network

    def _text(self, node: Word | Text, field: Field, name: str) -> str:
        return node.text

    def _ether(self, node: Word | Text, field: Field, name: str) -> bytes:
        match = re.fullmatch(r"[0-9A-Fa-f]{2}([:.-]?[0-9A-Fa-f]{2}){5}", node.text)
        if not match:
            raise self.error(node, f"{node.text!r} is no Ethernet address, as in 02:42:ac:11:00:02")
        return bytes.fromhex(re.sub("[:.-]", "", node.text))

    def _bytes(self, node: Word | Text, field: Field, name: str) -> bytes:
        if isinstance(node, Word) and re.fullmatch(r"(?:0x)?[0-9A-Fa-f]{1,2}", node.text):
            return bytes([int(node.text, 16)])
        return self.octets(node)

    _protocol = _bytes

    def octets(self, node: Word | Text) -> bytes:
        """Return the bytes of a string, or of bytes written as `47:45:54`."""
        if isinstance(node, Text):
            return node.text.encode()
        if re.fullmatch(r"[0-9A-Fa-f]{2}", node.text):
            return bytes.fromhex(node.text)
        if not _OCTETS.fullmatch(node.text):
            raise self.error(node, f'{node.text!r} is neither a string in quotes nor bytes, as in "GET" or 47:45:54')
        return bytes.fromhex(re.sub("[:.-]", "", node.text))

    def pattern(self, node: Word | Text) -> _core.Pattern:
        """Compile a regular expression, which searches bytes."""
        try:
            return _core.Pattern(node.text)
        except ValueError as problem:
            raise self.error(node, f"is no regular expression that latpcap knows: {problem}") from None


def _named(name: str) -> str:
    names = NAMES.get(name)
    return f" (or {', '.join(names)})" if names else ""


@functools.lru_cache(maxsize=65_536)
def address(word: str) -> Any:
    """Parse an address as the tables have it."""
    return ipaddress.ip_address(word)
