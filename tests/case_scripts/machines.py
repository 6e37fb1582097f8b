"""Controllers, switches and meters: who asks there, what is reported unasked, and protocols inside others."""

from __future__ import annotations

import struct

from makepcap import Talk, pcap

from case_scripts.registry import case


def openflow(kind: int, number: int, body: bytes = b"", version: int = 4) -> bytes:
    return struct.pack(">BBHI", version, kind, 8 + len(body), number) + body


@case
def openflow_controller_asks() -> bytes:
    """A switch opens the connection, 5 ms from its controller, and the controller asks: features, statistics in two
    parts, a barrier that the switch answers after 30 ms, and a command that it refuses. Echoes pass both ways.

    Not to be mistaken for: requests of the switch, whose next word comes 2 s after the controller's last.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, openflow(0, 1, struct.pack(">HHI", 1, 8, 16)))
    talk.server(16, openflow(0, 1))
    talk.server(18, openflow(5, 2))
    talk.client(19, openflow(6, 2, bytes(24)))
    talk.client(500, openflow(2, 9))
    talk.server(506, openflow(3, 9))
    talk.server(600, openflow(18, 3, struct.pack(">HHI", 1, 0, 0)))
    talk.client(601, openflow(19, 3, struct.pack(">HHI", 1, 1, 0) + bytes(40)))
    talk.client(602, openflow(19, 3, struct.pack(">HHI", 1, 0, 0) + bytes(20)))
    talk.server(700, openflow(20, 4))
    talk.client(730, openflow(21, 4))
    talk.server(800, openflow(24, 5, bytes(16)))
    talk.client(801, openflow(1, 5, struct.pack(">HH", 11, 0)))
    talk.client(2800, openflow(2, 10))
    talk.server(2806, openflow(3, 10))
    return pcap(talk.tape)


def iso(*data: bytes) -> bytes:
    """A unit of ISO transport on TCP that carries data."""
    body = b"\x02\xf0\x80" + b"".join(data)
    return struct.pack(">BBH", 3, 0, 4 + len(body)) + body


def iso_connect(kind: int) -> bytes:
    return b"\x03\x00\x00\x16\x11" + bytes([kind]) + b"\0\0\0\x01\0\xc0\x01\x0a\xc1\x02\x01\0\xc2\x02\x01\x02"


def s7(kind: int, number: int, parameter: bytes, error: bytes = b"") -> bytes:
    return iso(struct.pack(">BBHHHH", 0x32, kind, 0, number, len(parameter), 0), error, parameter)


@case
def s7_reads() -> bytes:
    """A panel reads variables of a controller of Siemens', 5 ms away: the set-up, a read of 40 ms, a write that is
    refused, and an alarm that nobody asked for.

    Not to be mistaken for: Remote Desktop, which opens its connections with the same words, or an answer of the alarm.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, iso_connect(0xE0))
    talk.server(16, iso_connect(0xD0))
    talk.client(20, s7(1, 1, b"\xf0\0\0\x01\0\x01\x01\xe0"))
    talk.server(26, s7(3, 1, b"\xf0\0\0\x01\0\x01\0\xf0", b"\0\0"))
    talk.client(30, s7(1, 2, b"\x04\x01\x12\x0a\x10\x02\0\x04\0\x01\x84\0\0\0"))
    talk.server(75, s7(3, 2, b"\x04\x01", b"\0\0"))
    talk.server(300, s7(7, 0, b"\0\x01\x12\x08\x12\x04\x03\0\0\0\0\0"))
    talk.client(400, s7(1, 3, b"\x05\x01\x12\x0a\x10\x02\0\x04\0\x01\x84\0\0\0"))
    talk.server(406, s7(3, 3, b"\x05\x01", b"\x85\0"))
    return pcap(talk.tape)


def ber(tag: int, *inside: bytes) -> bytes:
    body = b"".join(inside)
    return bytes([tag, len(body)]) + body


def mms(kind: int, *body: bytes) -> bytes:
    return iso(b"\x01\0\x01\0", ber(0x61, ber(0x30, b"\x02\x01\x03", ber(0xA0, ber(kind, *body)))))


@case
def mms_reports() -> bytes:
    """A client of MMS, 5 ms from a protection relay: it reads, the relay reports each second, and the relay asks the
    client who it is.

    Not to be mistaken for: an answer that takes a second. Reports answer nothing.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, iso_connect(0xE0))
    talk.server(16, iso_connect(0xD0))
    talk.client(20, iso(b"\x0d\x04\x05\x02\0\0"))
    talk.server(27, iso(b"\x0e\x04\x05\x02\0\0"))
    talk.client(30, mms(0xA0, b"\x02\x01\x07", ber(0xA4, b"\xa1\0")))
    talk.server(37, mms(0xA1, b"\x02\x01\x07", ber(0xA4, b"\xa1\0")))
    for second in (1, 2, 3):
        talk.server(1000 * second, mms(0xA3, ber(0xA0, b"\xa1\0")))
    talk.server(3200, mms(0xA0, b"\x02\x01\x01", b"\x82\0"))
    talk.client(3202, mms(0xA1, b"\x02\x01\x01", b"\xa2\0"))
    talk.client(3500, mms(0xA0, b"\x02\x01\x08", ber(0xA4, b"\xa1\0")))
    talk.server(3508, mms(0xA2, b"\x80\x01\x08", ber(0xA2, ber(0xA0, b"\x87\x01\x02"))))
    return pcap(talk.tape)


def phasors(kind: int, body: bytes) -> bytes:
    """A frame of C37.118 of station 7, with its checksum."""
    frame = struct.pack(">BBHHII", 0xAA, kind << 4 | 1, 16 + len(body), 7, 1_700_000_000, 0) + body
    crc = 0xFFFF
    for byte in frame:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return frame + struct.pack(">H", crc)


@case
def phasors_on_command() -> bytes:
    """A collector asks a phasor measurement unit, 5 ms away, for its configuration and switches its data on: 20 frames,
    one each 20 ms.

    Not to be mistaken for: an answer of 400 ms to the command. Nobody waits for the last frame.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, phasors(4, struct.pack(">H", 5)))
    talk.server(17, phasors(3, bytes(100)))
    talk.client(20, phasors(4, struct.pack(">H", 2)))
    for tick in range(20):
        talk.server(30 + 20 * tick, phasors(0, bytes(20)))
    return pcap(talk.tape)


def frame(first: int, payload: bytes, mask: bytes = b"") -> bytes:
    """A frame of WebSocket; the client's has a mask."""
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload)) if mask else payload
    return bytes([first, len(payload) | (0x80 if mask else 0)]) + mask + masked


@case
def mqtt_in_websocket() -> bytes:
    """A client of MQTT in a browser, 5 ms from the broker: each packet goes out as two frames of WebSocket, its head
    and the rest.

    Not to be mistaken for: one request a frame, of which the second would take as long as the client thinks.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    mask = b"\x37\xfa\x21\x3d"

    def packet(at: float, data: bytes) -> None:
        talk.client(at, frame(0x82, data[:2], mask))
        talk.client(at + 0.2, frame(0x82, data[2:], mask))

    talk.open()
    ask = b"GET /ws HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    talk.client(10, ask + b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n")
    talk.server(16, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    packet(20, b"\x10\x0f\x00\x04MQTT\x04\x02\0\x3c\0\x03web")
    talk.server(27, frame(0x82, b"\x20\x02\0\0"))
    packet(200, b"\x82\x06\0\x01\0\x01#\0")
    talk.server(208, frame(0x82, b"\x90\x03\0\x01\0"))
    talk.server(500, frame(0x82, b"\x30\x05\0\x01a20"))
    talk.client(900, frame(0x89, b"", mask))
    talk.server(906, frame(0x8A, b""))
    return pcap(talk.tape)
