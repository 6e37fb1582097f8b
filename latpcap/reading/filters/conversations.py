"""State across frames for filter fields: UDP conversations, ICMP echo pairs and duplicate IPv4 addresses in ARP.

Frames are added in the capture's order. Conversation numbers are known at once, echo pairs when all frames are read.
"""

from __future__ import annotations

from typing import Any

_MAX_ENTRIES = 1 << 20
"""Upper bound on the entries of each table; a full table is cleared, so that memory stays bounded."""
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
"""Fields that need every frame of the capture, in order, even if the filter tests only some frames."""


class Conversations:
    """State of the frames read before the current one."""

    def __init__(self) -> None:
        self.frame = 0
        """Number of the current frame; set by the caller, like its time."""
        self.time_ns = 0
        self._owners: dict[bytes, tuple[bytes, int]] = {}
        """Ethernet address of each IPv4 address, and the last frame that announced it."""
        self._udp: dict[frozenset[Any], tuple[int, int, int]] = {}
        """Number of each UDP conversation, and the times of its first and latest frame."""
        self._pending: dict[tuple[Any, ...], tuple[int, int]] = {}
        """Frame and time of echo requests, by hosts, checksum and (identifier, sequence number)."""
        self._reply_frames: dict[int, int] = {}
        """Frame of the reply, by frame of the echo request."""
        self._requests: list[int] = []
        self._response_times: list[tuple[int, int]] = []
        """Frame of each echo reply, and ns since its request."""

    def udp(self, source: tuple[Any, int], target: tuple[Any, int]) -> tuple[int, int, int]:
        """Return the conversation's number, and ns since its first and since its previous frame.

        Numbers count from 0 in the order of the first frames.
        """
        if len(self._udp) > _MAX_ENTRIES:
            self._udp.clear()
        key = frozenset((source, target))
        number, first, last = self._udp.get(key, (len(self._udp), self.time_ns, self.time_ns))
        self._udp[key] = number, first, self.time_ns
        return number, self.time_ns - first, self.time_ns - last

    def claimed(self, address: bytes, owner: bytes) -> int | None:
        """Return the last frame in which another Ethernet address announced this IPv4 address; None if none did."""
        if len(self._owners) > _MAX_ENTRIES:
            self._owners.clear()
        first_owner, frame = self._owners.setdefault(address, (owner, self.frame))
        if first_owner != owner:
            return frame
        self._owners[address] = owner, self.frame
        return None

    def echo(self, icmp_type: int, ends: frozenset[str], checksum: int, echo: tuple[int, int]) -> None:
        """Add an ICMP echo request (type 8) or reply (type 0).

        A reply repeats the request except for its type. The request's checksum with the type subtracted is therefore
        the reply's checksum, which distinguishes requests with one identifier and sequence number.
        """
        if icmp_type == 8:
            total = (checksum ^ 0xFFFF) + (0x0800 ^ 0xFFFF)
            checksum = ((total & 0xFFFF) + (total >> 16)) ^ 0xFFFF
            if len(self._pending) > _MAX_ENTRIES:
                self._pending.clear()
            self._pending[ends, checksum, echo] = self.frame, self.time_ns
            self._requests.append(self.frame)
        elif (request := self._pending.get((ends, checksum, echo))) and request[0] not in self._reply_frames:
            self._reply_frames[request[0]] = self.frame
            self._response_times.append((self.frame, self.time_ns - request[1]))

    def finished(self) -> dict[str, list[tuple[int, int]]]:
        """Return frames and values of the ICMP fields, by field."""
        return {
            "icmp.resp_in": list(self._reply_frames.items()),
            "icmp.resp_to": [(reply, request) for request, reply in self._reply_frames.items()],
            "icmp.resptime": self._response_times,
            "icmp.no_resp": [(request, 1) for request in self._requests if request not in self._reply_frames],
        }
