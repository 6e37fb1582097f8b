"""Numbers of UDP conversations, and which ICMP echo reply answers which request, over all frames of a capture.

Frames in the capture's order in; a conversation's number at once, the pairs of echoes when all frames are known.
"""

from __future__ import annotations

from typing import Any

_MAX = 1 << 20
FIELDS = {
    "udp.stream",
    "udp.time_relative",
    "udp.time_delta",
    "icmp.resp_in",
    "icmp.resp_to",
    "icmp.resptime",
    "icmp.no_resp",
    "arp.duplicate-address-detected",
    "arp.duplicate-address-frame",
}
"""Fields that need every frame of the capture, in order."""


class Conversations:
    """What the frames before this one were about."""

    def __init__(self) -> None:
        self.frame = 0
        self.time = 0
        self._owners: dict[bytes, tuple[bytes, int]] = {}
        self._udp: dict[frozenset[Any], tuple[int, int, int]] = {}
        self._pending: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._answered: dict[int, int] = {}
        self._requests: list[int] = []
        self._took: list[tuple[int, int]] = []

    def udp(self, source: tuple[Any, int], target: tuple[Any, int]) -> tuple[int, int, int]:
        """The number of the conversation, in the order of their first frames, and the ns since its first frame and
        since the one before.
        """
        if len(self._udp) > _MAX:
            self._udp.clear()
        key = frozenset((source, target))
        number, first, last = self._udp.get(key, (len(self._udp), self.time, self.time))
        self._udp[key] = number, first, self.time
        return number, self.time - first, self.time - last

    def claimed(self, address: bytes, owner: bytes) -> int | None:
        """The last frame in which this IPv4 address was another Ethernet address's; None where it was not."""
        if len(self._owners) > _MAX:
            self._owners.clear()
        known, frame = self._owners.setdefault(address, (owner, self.frame))
        if known != owner:
            return frame
        self._owners[address] = owner, self.frame
        return None

    def echo(self, kind: int, ends: frozenset[str], checksum: int, echo: tuple[int, int]) -> None:
        """An ICMP echo request (8) or reply (0); a reply's checksum is the request's with the type taken out."""
        if kind == 8:
            total = (checksum ^ 0xFFFF) + (0x0800 ^ 0xFFFF)
            checksum = ((total & 0xFFFF) + (total >> 16)) ^ 0xFFFF
            if len(self._pending) > _MAX:
                self._pending.clear()
            self._pending[ends, checksum, echo] = self.frame, self.time
            self._requests.append(self.frame)
        elif (request := self._pending.get((ends, checksum, echo))) and request[0] not in self._answered:
            self._answered[request[0]] = self.frame
            self._took.append((self.frame, self.time - request[1]))

    def finished(self) -> dict[str, list[tuple[int, int]]]:
        """By field: frames and values of the pairs of echoes."""
        return {
            "icmp.resp_in": list(self._answered.items()),
            "icmp.resp_to": [(reply, request) for request, reply in self._answered.items()],
            "icmp.resptime": self._took,
            "icmp.no_resp": [(request, 1) for request in self._requests if request not in self._answered],
        }
