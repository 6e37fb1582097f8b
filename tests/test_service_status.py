"""Requests over UDP: how each protocol's answers end, as `status`, `status_text` and `error` of `lookups`."""

from __future__ import annotations

import struct

import pytest
from test_waits import Tape, udp

import latpcap as lp

CLIENT, COOKIE = ("10.0.0.1", 50_000), struct.pack(">I", 0x2112A442) + b"twelve bytes"


def tlv(tag: int, *inside: bytes) -> bytes:
    """A value of BER."""
    body = b"".join(inside)
    return bytes((tag, len(body))) + body


def snmp(unit: int, status: int = 0, version: int = 1) -> bytes:
    pdu = tlv(unit, tlv(2, b"\7"), tlv(2, bytes((status,))), tlv(2, b"\0"), tlv(0x30))
    if version == 3:
        return tlv(0x30, tlv(2, b"\3"), tlv(0x30), tlv(4), tlv(0x30, tlv(4), tlv(4), pdu))
    return tlv(0x30, tlv(2, bytes((version,))), tlv(4, b"public"), pdu)


def ntp(leap: int, stratum: int, code: bytes = b"GPS\0", mode: int = 4) -> bytes:
    """A client's stamp stands last, an answer's copy of it in front of two others."""
    head = bytes((leap << 6 | 4 << 3 | mode, stratum)) + bytes(10) + code + bytes(8)
    return head + (b"12345678" + bytes(16) if mode == 4 else bytes(16) + b"12345678")


def dhcp(op: int, kind: int) -> bytes:
    head = bytes((op, 1, 6, 0)) + b"abcd" + bytes(20) + b"\2\0\0\0\0\7" + bytes(202)
    return head + b"\x63\x82\x53\x63\0" + bytes((61, 1, 9, 53, 1, kind, 255))


def sip(line: str) -> bytes:
    return f"{line}\r\nCall-ID: a@b\r\nCSeq: 1 INVITE\r\n\r\n".encode()


def stun(kind: int, *attributes: bytes) -> bytes:
    return struct.pack(">HH", kind, sum(map(len, attributes))) + COOKIE + b"".join(attributes)


def kerberos(code: int) -> bytes:
    fields = tlv(0xA0, tlv(2, b"\5")), tlv(0xA1, tlv(2, b"\x1e")), tlv(0xA6, tlv(2, bytes((code,))))
    return tlv(0x7E, tlv(0x30, *fields))


INVITE, GET, PING = sip("INVITE sip:b@c SIP/2.0"), snmp(0xA0), ntp(3, 0, mode=3)
LOGIN, FETCH, LEASE = bytes((1, 7, 0, 20)) + bytes(16), b"\0\1boot\0octet\0", b"\1abc"
TEXTWARE = stun(1, struct.pack(">HH", 0x8022, 3) + b"abc\0")

CASES = [
    (123, PING, [ntp(0, 2)], (None, "ok", False)),
    (123, PING, [ntp(3, 2)], (None, "unsynchronised", True)),
    (123, PING, [ntp(0, 16)], (None, "unsynchronised", True)),
    (123, PING, [ntp(3, 0, b"RATE")], (None, "RATE", True)),
    (123, PING, [ntp(3, 0, b"XYZ\0")], (None, "unsynchronised", True)),
    (1812, LOGIN, [b"\2" + LOGIN[1:]], (None, "Access-Accept", False)),
    (1812, LOGIN, [b"\3" + LOGIN[1:]], (None, "Access-Reject", True)),
    (1812, LOGIN, [b"\x0b" + LOGIN[1:]], (None, "Access-Challenge", False)),
    (161, GET, [snmp(0xA2)], (0, "noError", False)),
    (161, GET, [snmp(0xA2, 2)], (2, "noSuchName", True)),
    (161, snmp(0xA0, version=3), [snmp(0xA8, version=3)], (None, "report", True)),
    (69, FETCH, [b"\0\5\0\1File not found\0"], (1, "File not found", True)),
    (69, FETCH, [b"\0\3\0\1data"], (None, "ok", False)),
    (5060, INVITE, [sip("SIP/2.0 100 Trying"), sip("SIP/2.0 486 Busy Here")], (486, "Busy Here", True)),
    (5060, INVITE, [sip("SIP/2.0 180 Ringing"), sip("SIP/2.0 200 OK")], (200, "OK", False)),
    (5060, INVITE, [sip("SIP/2.0 407 Proxy")], (407, "Proxy Authentication Required", False)),
    (5060, INVITE, [sip("SIP/2.0 603 No")], (603, "Decline", True)),
    (5060, INVITE, [sip("SIP/2.0 499 What")], (499, None, True)),
    (3478, TEXTWARE, [stun(0x101)], (None, "ok", False)),
    (3478, TEXTWARE, [stun(0x111, b"\x80\x22\0\1a\0\0\0", b"\0\t\0\4\0\0\4\3")], (403, "Forbidden", True)),
    (3478, TEXTWARE, [stun(0x111, b"\0\t\0\4\0\0\4\1")], (401, "Unauthenticated", False)),
    (88, b"\x6a\3abc", [kerberos(24)], (24, "KDC_ERR_PREAUTH_FAILED", True)),
    (88, b"\x6a\3abc", [kerberos(25)], (25, "KDC_ERR_PREAUTH_REQUIRED", False)),
    (88, b"\x6a\3abc", [b"\x6b\3abc"], (None, "ok", False)),
    (547, LEASE, [b"\2abc" + struct.pack(">HHH", 13, 2, 2)], (2, "NoAddrsAvail", True)),
    (547, LEASE, [b"\7abc" + struct.pack(">HH12xHHH", 3, 18, 13, 2, 4)], (4, "NotOnLink", True)),
    (547, LEASE, [b"\7abc" + struct.pack(">HH4x", 1, 4)], (0, "Success", False)),
    (67, dhcp(1, 3), [dhcp(2, 6)], (None, "NAK", True)),
    (67, dhcp(1, 3), [dhcp(2, 5)], (None, "ACK", False)),
]


def read(port: int, request: bytes, answers: list[bytes]) -> lp.Capture:
    tape, server = Tape(), ("10.0.0.9", port)
    udp(tape, 0.0, CLIENT, server, request)
    for number, answer in enumerate(answers, 1):
        udp(tape, number * 30.0, server, CLIENT, answer)
    return lp.read(tape.bytes())


@pytest.mark.parametrize(("port", "request_", "answers", "ends"), CASES)
def test_answers_have_their_ends(port: int, request_: bytes, answers: list[bytes], ends: tuple[object, ...]) -> None:
    capture = read(port, request_, answers)
    [row] = capture.arrow("lookups").to_pylist()
    assert (row["status"], row["status_text"], row["error"]) == ends
    headline = capture.why().headline
    assert (f"{row['method']}: 10.0.0.9:{port} answered 1 of 1 request with " in headline) == bool(ends[2] and ends[1])


def test_a_call_that_rings_has_its_time_until_it_rings_and_then_its_end() -> None:
    capture = read(5060, INVITE, [sip("SIP/2.0 100 Trying"), sip("SIP/2.0 180 Ringing"), sip("SIP/2.0 200 OK")])
    [row] = capture.arrow("lookups").to_pylist()
    assert (row["latency_ms"], row["status"]) == (60.0, 200)
    [row] = read(5060, INVITE, [sip("SIP/2.0 100 Trying")]).arrow("lookups").to_pylist()
    assert (row["latency_ms"], row["status"]) == (None, None)
