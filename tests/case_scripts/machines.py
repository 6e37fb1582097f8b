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


def iscsi(operation: int, flags: int, tag: int, rest: bytes = b"", data: bytes = b"", third: int = 0) -> bytes:
    """A unit of iSCSI: 16 bytes, the tag, what is behind, and its data."""
    head = struct.pack(">BBHI", operation, flags, third, len(data)) + bytes(8) + struct.pack(">I", tag)
    return (head + rest).ljust(48, b"\0") + data + bytes(-len(data) % 4)


@case
def iscsi_read_and_write() -> bytes:
    """An initiator of iSCSI, 5 ms from the target: a log-in, a read of 40 ms, a write that the target wants the data of
    first, and a command that fails. A sign of life passes.

    Not to be mistaken for: a write that takes one round trip. Its data go out when the target is ready.
    """

    def command(tag: int, flags: int, *bytes_: int) -> bytes:
        return iscsi(1, flags, tag, bytes(12) + bytes(bytes_))

    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, iscsi(0x43, 0x87, 1, data=b"InitiatorName=iqn.2026-01.lab:a\0"))
    talk.server(16, iscsi(0x23, 0x87, 1, data=b"TargetPortalGroupTag=1\0"))
    talk.client(20, command(2, 0xC1, 0x28, 0, 0, 0, 0, 0, 0, 0, 1))
    talk.server(64, iscsi(0x25, 0x80, 2, data=bytes(512)))
    talk.server(65, iscsi(0x21, 0x80, 2))
    talk.client(100, command(3, 0xA1, 0x2A, 0, 0, 0, 0, 0, 0, 0, 1))
    talk.server(106, iscsi(0x31, 0x80, 3))
    talk.client(107, iscsi(5, 0x80, 3, data=bytes(512)))
    talk.server(115, iscsi(0x21, 0x80, 3))
    talk.server(500, iscsi(0x20, 0x80, 0xFFFFFFFF))
    talk.client(600, command(4, 0x81, 0))
    talk.server(606, iscsi(0x21, 0x80, 4, third=2))
    return pcap(talk.tape)


def stream_command(key: int, body: bytes) -> bytes:
    return struct.pack(">IHH", 4 + len(body), key, 1) + body


@case
def rabbitmq_streams() -> bytes:
    """A consumer of RabbitMQ's streams, 5 ms from the broker: it says who it is, opens and subscribes, the broker asks
    which offset to begin at and delivers; one stream does not exist.

    Not to be mistaken for: Kafka, whose requests begin with the same lengths and numbers, or answers of what is
    delivered.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, stream_command(17, struct.pack(">II", 1, 0)))
    talk.server(16, stream_command(0x8011, struct.pack(">IHI", 1, 1, 0)))
    talk.client(20, stream_command(21, struct.pack(">I", 2) + short("/")))
    talk.server(27, stream_command(0x8015, struct.pack(">IHI", 2, 1, 0)))
    talk.client(30, stream_command(7, struct.pack(">IB", 3, 0) + short("orders") + struct.pack(">HHI", 1, 10, 0)))
    talk.server(38, stream_command(0x8007, struct.pack(">IH", 3, 1)))
    talk.server(39, stream_command(26, struct.pack(">IBBI", 1, 0, 1, 0)))
    talk.client(41, stream_command(0x801A, struct.pack(">IHH", 1, 1, 1)))
    for tick in range(3):
        talk.server(100 + 200 * tick, stream_command(8, bytes(60)))
        talk.client(101 + 200 * tick, stream_command(9, struct.pack(">BH", 0, 1)))
    talk.client(800, stream_command(14, struct.pack(">I", 4) + short("none")))
    talk.server(806, stream_command(0x800E, struct.pack(">IH", 4, 2)))
    talk.client(900, stream_command(23, b""))
    return pcap(talk.tape)


def short(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def opcua(kind: bytes, number: int, service: int, body: bytes = b"") -> bytes:
    inside = struct.pack("<IIIIHH", 1, 1, number, number, 1, service) + body
    return kind + struct.pack("<I", 8 + len(inside)) + inside


@case
def opcua_services() -> bytes:
    """A client of OPC UA, 5 ms from the server: hello, a channel, a read of 50 ms, a publish that waits for a change
    for 2 s, and a write that is refused meanwhile.

    Not to be mistaken for: a publish that is slow. It waits for an event.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    done = bytes(12)
    talk.open()
    talk.client(10, b"HELF" + struct.pack("<IIIIIII", 32, 0, 65536, 65536, 0, 0, 0))
    talk.server(16, b"ACKF" + struct.pack("<IIIIII", 28, 0, 65536, 65536, 0, 0))
    talk.client(20, b"OPNF" + struct.pack("<I", 40) + bytes(32))
    talk.server(27, b"OPNF" + struct.pack("<I", 48) + bytes(40))
    talk.client(30, opcua(b"MSGF", 2, 631, bytes(40)))
    talk.server(80, opcua(b"MSGF", 2, 634, done + bytes(4) + bytes(30)))
    talk.client(100, opcua(b"MSGF", 3, 826, bytes(30)))
    talk.client(500, opcua(b"MSGF", 4, 673, bytes(40)))
    talk.server(506, opcua(b"MSGF", 4, 397, done + struct.pack("<I", 0x803B0000)))
    talk.server(2100, opcua(b"MSGF", 3, 829, done + bytes(4) + bytes(30)))
    return pcap(talk.tape)


def enip(command: int, body: bytes, context: int = 0, session: int = 7) -> bytes:
    return struct.pack("<HHIIQI", command, len(body), session, 0, context, 0) + body


def cip(data: bytes, number: int | None = None) -> bytes:
    """What carries a message of CIP: unconnected, or of a connection with its number."""
    if number is None:
        return struct.pack("<IHHHHHH", 0, 0, 2, 0, 0, 0xB2, len(data)) + data
    inside = struct.pack("<H", number) + data
    return struct.pack("<IHHHHIHH", 0, 0, 2, 0xA1, 4, 9, 0xB1, len(inside)) + inside


@case
def enip_reads() -> bytes:
    """A client of EtherNet/IP, 5 ms from a controller: it registers, opens a connection, reads a tag, which takes
    30 ms, and writes one that is not there; two reads are under way at once.

    Not to be mistaken for: answers in the order of the requests.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, enip(0x65, b"\x01\0\0\0", session=0))
    talk.server(16, enip(0x65, b"\x01\0\0\0"))
    talk.client(20, enip(0x6F, cip(b"\x54\x02\x20\x06\x24\x01"), context=5))
    talk.server(28, enip(0x6F, cip(b"\xd4\0\0\0"), context=5))
    talk.client(40, enip(0x70, cip(b"\x4c\x02\x91\x02ab\x01\0", 1)))
    talk.client(42, enip(0x70, cip(b"\x0e\x02\x20\x01\x24\x01", 2)))
    talk.server(49, enip(0x70, cip(b"\x8e\0\0\0\x01\0", 2)))
    talk.server(75, enip(0x70, cip(b"\xcc\0\0\0\xc4\0", 1)))
    talk.client(100, enip(0x70, cip(b"\x4d\x02\x91\x02cd\x01\0", 3)))
    talk.server(106, enip(0x70, cip(b"\xcd\0\x05\0", 3)))
    return pcap(talk.tape)


@case
def nats_requests() -> bytes:
    """A client of NATS, 5 ms from the server: it asks a service, which answers after 60 ms, and hears of a subject that
    it has subscribed to; pings pass both ways.

    Not to be mistaken for: an answer of what was published without a reply, or of the ping.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.server(6, b'INFO {"server_id":"X","version":"2.10.0","max_payload":1048576}\r\n')
    talk.client(10, b'CONNECT {"verbose":false}\r\nPING\r\n')
    talk.server(16, b"PONG\r\n")
    talk.client(20, b"SUB news.* 1\r\nSUB _INBOX.a.* 2\r\n")
    talk.client(30, b"PUB orders.get _INBOX.a.1 5\r\nhello\r\n")
    talk.server(50, b"MSG news.lab 1 2\r\nhi\r\n")
    talk.server(90, b"MSG _INBOX.a.1 2 4\r\nbest\r\n")
    talk.client(200, b"PUB log 2\r\nok\r\n")
    talk.server(900, b"PING\r\n")
    talk.client(901, b"PONG\r\n")
    talk.server(1500, b"MSG news.lab 1 2\r\nyo\r\n")
    return pcap(talk.tape)


@case
def beanstalkd_queue() -> bytes:
    """A worker of beanstalkd, 5 ms away: it puts a job, reserves one, which takes 2 s to come, and deletes two, of
    which one is not there.

    Not to be mistaken for: memcached, whose deletes look the same, or a reserve that is slow.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, b"use mail\r\n")
    talk.server(16, b"USING mail\r\n")
    talk.client(20, b"put 10 0 60 5\r\nhello\r\n")
    talk.server(27, b"INSERTED 7\r\n")
    talk.client(30, b"reserve\r\n")
    talk.server(2030, b"RESERVED 8 4\r\nwork\r\n")
    talk.client(2040, b"delete 8\r\ndelete 9\r\n")
    talk.server(2046, b"DELETED\r\nNOT_FOUND\r\n")
    return pcap(talk.tape)


def _gearman(magic: bytes, kind: int, arguments: bytes = b"") -> bytes:
    return magic + struct.pack(">II", kind, len(arguments)) + arguments


@case
def gearman_jobs() -> bytes:
    """A client of Gearman, 5 ms away: a job of 300 ms in two parts, one in the background, one that fails, and a
    worker's sleep of 2 s on the same connection.

    Not to be mistaken for: a job server that is slow, because it answers each job twice; the sleep is a long poll.
    """
    ask, say = b"\0REQ", b"\0RES"
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, _gearman(ask, 7, b"resize\0\0image"))
    talk.server(16, _gearman(say, 8, b"H:1"))
    talk.server(200, _gearman(say, 28, b"H:1\0half"))
    talk.server(310, _gearman(say, 13, b"H:1\0whole"))
    talk.client(320, _gearman(ask, 18, b"mail\0\0hello"))
    talk.server(326, _gearman(say, 8, b"H:2"))
    talk.client(330, _gearman(ask, 7, b"crash\0\0x"))
    talk.server(336, _gearman(say, 8, b"H:3"))
    talk.server(356, _gearman(say, 14, b"H:3"))
    talk.client(400, _gearman(ask, 9))
    talk.server(406, _gearman(say, 10))
    talk.client(410, _gearman(ask, 4))
    talk.server(2410, _gearman(say, 6))
    return pcap(talk.tape)
