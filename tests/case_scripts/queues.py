"""Messaging, directories and calls: what is a request there, what is pushed, what is told and never answered."""

from __future__ import annotations

import struct

from makepcap import Talk, pcap

from case_scripts.registry import case


def mqtt(first: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes([first, len(body)]) + body


def short(text: str) -> bytes:
    """A text behind its length of two bytes."""
    return struct.pack(">H", len(text)) + text.encode()


@case
def mqtt_requests_and_pushes() -> bytes:
    """A client of MQTT, 5 ms from the broker: CONNECT, SUBSCRIBE, a PUBLISH of each quality, a ping, and what the
    broker publishes meanwhile, which the client acknowledges.

    Not to be mistaken for: requests of what the broker pushes, or answers of the client's acknowledgements.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, mqtt(0x10, short("MQTT"), bytes([4, 2, 0, 60]), short("sensor")))
    talk.server(16, mqtt(0x20, b"\0\0"))
    talk.client(20, mqtt(0x82, b"\0\x01", short("house/#"), b"\x01"))
    talk.server(27, mqtt(0x90, b"\0\x01\x01"))
    talk.server(40, mqtt(0x32, short("house/door"), b"\0\x01", b"open"))
    talk.client(41, mqtt(0x40, b"\0\x01"))
    talk.client(60, mqtt(0x30, short("house/temp"), b"20"))
    talk.client(70, mqtt(0x32, short("house/temp"), b"\0\x02", b"21"))
    talk.server(74, mqtt(0x30, short("house/light"), b"on"))
    talk.server(90, mqtt(0x40, b"\0\x02"))
    talk.client(100, mqtt(0xC0))
    talk.server(106, mqtt(0xD0))
    talk.client(120, mqtt(0x34, short("house/alarm"), b"\0\x03", b"fire"))
    talk.server(126, mqtt(0x50, b"\0\x03"))
    talk.client(127, mqtt(0x62, b"\0\x03"))
    talk.server(133, mqtt(0x70, b"\0\x03"))
    return pcap(talk.tape)
