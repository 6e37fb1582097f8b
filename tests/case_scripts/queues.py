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


def amqp(channel: int, kind: int, number: int, *arguments: bytes) -> bytes:
    return amqp_frame(1, channel, struct.pack(">HH", kind, number), *arguments)


def amqp_frame(kind: int, channel: int, *parts: bytes) -> bytes:
    payload = b"".join(parts)
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def amqp_content(channel: int, body: bytes) -> bytes:
    return amqp_frame(2, channel, struct.pack(">HHQH", 60, 0, len(body), 0)) + amqp_frame(3, channel, body)


def word(text: str) -> bytes:
    """A text behind its length of one byte."""
    return bytes([len(text)]) + text.encode()


@case
def amqp_confirms_and_deliveries() -> bytes:
    """A client of AMQP 0-9-1, 5 ms from the broker: its log-in, a queue, two publishes without confirms, two with,
    confirmed together, while the broker delivers; last a queue that there is not, and the channel is closed.

    Not to be mistaken for: requests without an answer, as publishes without confirms and acknowledgements seem to be.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, b"AMQP\0\0\x09\x01")
    talk.server(16, amqp(0, 10, 10, b"\0\x09", struct.pack(">I", 0)))
    talk.client(17, amqp(0, 10, 11, bytes(12)))
    talk.server(23, amqp(0, 10, 30, bytes(8)))
    talk.client(24, amqp(0, 10, 31, bytes(8)) + amqp(0, 10, 40, word("/"), bytes(2)))
    talk.server(30, amqp(0, 10, 41, b"\0"))
    talk.client(40, amqp(1, 20, 10, b"\0"))
    talk.server(46, amqp(1, 20, 11, bytes(4)))
    talk.client(50, amqp(1, 50, 10, bytes(2), word("work"), bytes(5)))
    talk.server(58, amqp(1, 50, 11, word("work"), bytes(8)))
    publish = amqp(1, 60, 40, bytes(2), word("ex"), word("key"), b"\0") + amqp_content(1, b"job")
    talk.client(60, publish * 2)
    talk.client(70, amqp(1, 85, 10, b"\0"))
    talk.server(76, amqp(1, 85, 11))
    talk.client(80, publish)
    talk.client(82, publish)
    deliver = amqp(1, 60, 60, word("me"), bytes(9), word("ex"), word("key"))
    talk.server(88, deliver + amqp_content(1, b"done"))
    talk.client(89, amqp(1, 60, 80, struct.pack(">QB", 1, 0)))
    talk.server(100, amqp(1, 60, 80, struct.pack(">QB", 2, 1)))
    talk.client(110, amqp(1, 50, 30, bytes(2), word("none"), b"\0"))
    talk.server(116, amqp(1, 20, 40, struct.pack(">H", 404), word("NOT_FOUND"), struct.pack(">HH", 50, 30)))
    talk.client(117, amqp(1, 20, 41))
    return pcap(talk.tape)


def kafka(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I", len(body)) + body


@case
def kafka_fetches_that_wait() -> bytes:
    """A client of Kafka, 5 ms from the broker: the broker's APIs, two messages in a row, one of which wants no answer,
    and two fetches: one that waits 100 ms in vain, one that is answered at once.

    Not to be mistaken for: a broker that thinks for 100 ms. The client asked it to wait for messages.
    """

    def ask(api: int, version: int, number: int, *body: bytes) -> bytes:
        return kafka(struct.pack(">HHI", api, version, number), short("app"), *body)

    def produce(number: int, acks: int) -> bytes:
        return ask(0, 7, number, struct.pack(">hhiI", -1, acks, 1000, 1), short("orders"), bytes(300))

    def fetch(number: int) -> bytes:
        session = struct.pack(">iiiibII", -1, 100, 1, 1 << 20, 0, 0, 0)
        return ask(1, 7, number, session, struct.pack(">I", 1), short("orders"), bytes(20))

    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, ask(18, 0, 1))
    talk.server(16, kafka(struct.pack(">I", 1), bytes(40)))
    talk.client(20, produce(2, 0) + produce(3, -1))
    talk.server(32, kafka(struct.pack(">I", 3), bytes(30)))
    talk.client(40, fetch(4))
    talk.server(146, kafka(struct.pack(">I", 4), bytes(30)))
    talk.client(150, fetch(5))
    talk.server(157, kafka(struct.pack(">I", 5), bytes(900)))
    return pcap(talk.tape)


def ber(tag: int, *parts: bytes) -> bytes:
    value = b"".join(parts)
    return bytes([tag, 0x82]) + struct.pack(">H", len(value)) + value


def ldap(number: int, operation: int, *parts: bytes) -> bytes:
    return ber(0x30, ber(2, bytes([number])), ber(operation, *parts))


def result(number: int, operation: int, code: int) -> bytes:
    return ldap(number, operation, bytes([10, 1, code, 4, 0, 4, 0]))


@case
def ldap_searches_at_once() -> bytes:
    """A client of LDAP, 5 ms from the directory: bind, two searches at once, the second answered first, the first
    with three entries over 40 ms; a comparison that is false, and an entry that there is not; unbind.

    Not to be mistaken for: one long turn, or an error: "compareFalse" is an answer.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, ldap(1, 0x60, b"\x02\x01\x03", ber(4, b"cn=app,dc=lab"), ber(0x80, b"secret")))
    talk.server(18, result(1, 0x61, 0))
    search = b"\x0a\x01\x02\x0a\x01\0\x02\x01\0\x02\x01\0\x01\x01\0" + ber(0x87, b"objectClass") + ber(0x30)
    people, groups = (ldap(n, 0x63, ber(4, base), search) for n, base in ((2, b"ou=people,dc=lab"), (3, b"ou=none")))
    talk.client(20, people + groups)
    talk.server(28, result(3, 0x65, 32))
    for at in (30, 50, 70):
        talk.server(at, ldap(2, 0x64, ber(4, b"cn=one,ou=people,dc=lab"), ber(0x30, bytes(60))))
    talk.server(71, result(2, 0x65, 0))
    talk.client(80, ldap(4, 0x6E, ber(4, b"cn=one,ou=people,dc=lab"), ber(0x30, ber(4, b"sn"), ber(4, b"x"))))
    talk.server(87, result(4, 0x6F, 5))
    talk.client(90, ldap(5, 0x42))
    return pcap(talk.tape)


@case
def modbus_polls() -> bytes:
    """A master of Modbus/TCP, 5 ms from the device: two registers read with two requests in one packet, a coil that is
    written, and a read that the device refuses.

    Not to be mistaken for: one request of two messages. The answers are 10 ms apart.
    """

    def modbus(number: int, *body: int) -> bytes:
        return struct.pack(">HHHB", number, 0, len(body) + 1, 1) + bytes(body)

    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, modbus(1, 3, 0, 16, 0, 1) + modbus(2, 3, 0, 17, 0, 1))
    talk.server(17, modbus(1, 3, 2, 0, 7))
    talk.server(27, modbus(2, 3, 2, 0, 8))
    talk.client(30, modbus(3, 5, 0, 1, 255, 0))
    talk.server(36, modbus(3, 5, 0, 1, 255, 0))
    talk.client(40, modbus(4, 4, 0, 99, 0, 1))
    talk.server(48, modbus(4, 0x84, 2))
    return pcap(talk.tape)


def dnp3(client: bool, said: bytes) -> bytes:
    """A frame of DNP3 between master 1 and outstation 10, with the checksums of head and blocks."""

    def checked(block: bytes) -> bytes:
        crc = 0
        for byte in block:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ 0xA6BC if crc & 1 else crc >> 1
        return block + struct.pack("<H", crc ^ 0xFFFF)

    control, ends = (0xC4, (10, 1)) if client else (0x44, (1, 10))
    head = checked(struct.pack("<HBBHH", 0x6405, len(said) + 5, control, *ends))
    return head + b"".join(checked(said[at : at + 16]) for at in range(0, len(said), 16))


@case
def dnp3_polls() -> bytes:
    """A master of DNP3, 5 ms from the outstation: two polls, between them an event that nobody asked for and its
    confirmation, and a command that the outstation refuses.

    Not to be mistaken for: a poll that takes 890 ms. The event answers nothing, and so does the next poll's silence.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, dnp3(True, bytes([0xC0, 0xC1, 1, 60, 2, 6])))
    talk.server(16, dnp3(False, bytes([0xC0, 0xC1, 0x81, 0, 0])))
    talk.server(500, dnp3(False, bytes([0xC0, 0xD1, 0x82, 0, 0, 2, 1])))
    talk.client(510, dnp3(True, bytes([0xC0, 0xD1, 0])))
    talk.client(1400, dnp3(True, bytes([0xC0, 0xC2, 1, 60, 2, 6])))
    talk.server(1407, dnp3(False, bytes([0xC0, 0xC2, 0x81, 0, 0])))
    talk.client(1500, dnp3(True, bytes([0xC0, 0xC3, 5, 12, 1])))
    talk.server(1508, dnp3(False, bytes([0xC0, 0xC3, 0x81, 0, 4])))
    return pcap(talk.tape)


@case
def nfs_calls() -> bytes:
    """A client of NFS 3, 5 ms from the server: a lookup and a read at once, the read answered first; a lookup of what
    there is not; a call of a procedure that there is not.

    Not to be mistaken for: four calls that went well, as RPC says of the third.
    """

    def call(number: int, procedure: int) -> bytes:
        body = struct.pack(">IIIIIIIIII", number, 0, 2, 100003, 3, procedure, 0, 0, 0, 0) + bytes(40)
        return struct.pack(">I", len(body) | 1 << 31) + body

    def reply(number: int, accepted: int, *more: int) -> bytes:
        words = (number, 1, 0, 0, 0, accepted, *more)
        return struct.pack(f">I{len(words)}I", 4 * len(words) | 1 << 31, *words)

    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, call(71, 3) + call(72, 6))
    talk.server(17, reply(72, 0, 0, *range(90)))
    talk.server(30, reply(71, 0, 0, *range(20)))
    talk.client(40, call(73, 3))
    talk.server(46, reply(73, 0, 2))
    talk.client(50, call(74, 99))
    talk.server(56, reply(74, 3))
    return pcap(talk.tape)


@case
def smb_files() -> bytes:
    """A client of SMB2, 5 ms from the server: a file that is opened, read and closed, where the read is "pending" after
    6 ms and answered after 40; a file that there is not; a wait for changes in a folder, which come after 200 ms.

    Not to be mistaken for: a read that took 6 ms, or a server that thinks for 200 ms.
    """

    def smb(number: int, command: int, status: int, flags: int, body: bytes) -> bytes:
        head = b"\xfeSMB" + struct.pack("<HHIHHIIQ", 64, 0, status, command, 1, flags, 0, number) + bytes(32)
        return struct.pack(">I", len(head + body)) + head + body

    def ask(number: int, command: int, body: bytes) -> bytes:
        return smb(number, command, 0, 0, body)

    def answer(number: int, command: int, body: bytes = bytes(9), status: int = 0) -> bytes:
        return smb(number, command, status, 1, body)

    def create(name: str) -> bytes:
        return bytes(44) + struct.pack("<HH", 120, 2 * len(name)) + bytes(8) + name.encode("utf-16-le")

    file = bytes([7] * 16)
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, ask(4, 5, create("notes.txt")))
    talk.server(17, answer(4, 5, bytes(64) + file + bytes(8)))
    talk.client(20, ask(5, 8, bytes(16) + file + bytes(16)))
    talk.server(26, smb(5, 8, 0x103, 3, bytes(9)))
    talk.server(60, answer(5, 8, bytes(500)))
    talk.client(70, ask(6, 6, bytes(8) + file) + ask(7, 5, create("none.txt")))
    talk.server(76, answer(6, 6) + answer(7, 5, status=0xC0000034))
    talk.client(80, ask(8, 15, bytes(8) + file + bytes(8)))
    talk.server(285, answer(8, 15, bytes(40)))
    return pcap(talk.tape)


def lines(*said: str, body: bytes = b"") -> bytes:
    return "\r\n".join([*said, f"Content-Length: {len(body)}", "", ""]).encode() + body


@case
def sip_call() -> bytes:
    """A phone and a proxy that speak SIP over TCP, 5 ms apart: it registers with a log-in, calls a number that rings
    for a second before somebody answers, acknowledges, and hangs up. The proxy asks for its options meanwhile.

    Not to be mistaken for: a proxy that thinks for a second, a register that failed, or an ACK that was never answered.
    """

    def call(first: str, number: int, method: str, name: str = "a1@phone", body: bytes = b"") -> bytes:
        return lines(first, f"Call-ID: {name}", f"CSeq: {number} {method}", body=body)

    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, call("REGISTER sip:lab SIP/2.0", 1, "REGISTER", "r1"))
    talk.server(16, call("SIP/2.0 401 Unauthorized", 1, "REGISTER", "r1"))
    talk.client(20, call("REGISTER sip:lab SIP/2.0", 2, "REGISTER", "r1"))
    talk.server(27, call("SIP/2.0 200 OK", 2, "REGISTER", "r1"))
    talk.client(100, call("INVITE sip:4930123@lab SIP/2.0", 1, "INVITE", body=b"v=0\r\n"))
    talk.server(106, call("SIP/2.0 100 Trying", 1, "INVITE"))
    talk.server(120, call("SIP/2.0 180 Ringing", 1, "INVITE"))
    talk.server(600, call("OPTIONS sip:phone SIP/2.0", 9, "OPTIONS", "o1"))
    talk.client(601, call("SIP/2.0 200 OK", 9, "OPTIONS", "o1"))
    talk.server(1100, call("SIP/2.0 200 OK", 1, "INVITE", body=b"v=0\r\n"))
    talk.client(1101, call("ACK sip:4930123@lab SIP/2.0", 1, "ACK"))
    talk.client(3000, call("BYE sip:4930123@lab SIP/2.0", 2, "BYE"))
    talk.server(3006, call("SIP/2.0 200 OK", 2, "BYE"))
    return pcap(talk.tape)


@case
def memcached_pipeline() -> bytes:
    """A client of memcached, 5 ms from the server: a get by itself, then five commands in one packet (two keys in one
    get, a value to store, one that wants no answer, a quiet meta get) whose answers come together 8 ms later.

    Not to be mistaken for: one request of five commands, or an answer to the command that ends in `noreply`.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, b"get user:1\r\n")
    talk.server(16, b"VALUE user:1 0 3\r\nEND\r\nEND\r\n")
    talk.client(
        30,
        b"get user:1 user:2\r\nset user:2 0 60 6\r\nsecret\r\n"
        b"delete user:3 noreply\r\nmg user:4 v q\r\nincr hits 1\r\n",
    )
    talk.server(38, b"VALUE user:1 0 1\r\nx\r\nEND\r\nSTORED\r\n42\r\n")
    talk.client(50, b"touch user:2 60\r\n")
    talk.server(60, b"SERVER_ERROR out of memory\r\n")
    return pcap(talk.tape)


@case
def answers_behind_others() -> bytes:
    """Two requests of HTTP in one packet, 5 ms from the server: the first is answered after 60 ms, the second 10 ms
    after that. Then two by themselves.

    Not to be mistaken for: a second request that took 70 ms of the server's program. Its first 60 ms are behind the
    other's answer, whatever the program did then.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    talk.client(10, b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\nGET /quick HTTP/1.1\r\nHost: h\r\n\r\n")
    talk.server(70, answer)
    talk.server(80, answer)
    for at in (100, 130):
        talk.client(at, b"GET /alone HTTP/1.1\r\nHost: h\r\n\r\n")
        talk.server(at + 20, answer)
    return pcap(talk.tape)


@case
def answers_side_by_side() -> bytes:
    """Two questions of DNS in one packet over TCP, 5 ms from the server: the first is answered after 60 ms, the second
    10 ms after that.

    Not to be mistaken for: an answer that had to wait for the one before it. DNS over TCP answers in any order.
    """
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()

    def message(number: int, flags: int) -> bytes:
        body = struct.pack(">HHHHHH", number, flags, 1, 0, 0, 0) + b"\x01a\x03lab\0\0\x01\0\x01"
        return struct.pack(">H", len(body)) + body

    talk.client(10, message(1, 0x0100) + message(2, 0x0100))
    talk.server(70, message(1, 0x8180))
    talk.server(80, message(2, 0x8180))
    return pcap(talk.tape)
