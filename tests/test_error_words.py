"""How answers end in every protocol: number, word, whether that is an error. One recorded or written capture each."""

from __future__ import annotations

import ssl
import struct
from pathlib import Path

import pytest
from makepcap import Talk, pcap

import latpcap as lp

CASES = Path(__file__).with_name("cases")

RECORDED = [
    ("amqp_confirms_and_deliveries", "amqp", 404, "not-found"),
    ("beanstalkd_queue", "beanstalkd", None, "NOT_FOUND"),
    ("dnp3_polls", "dnp3", None, "refused 4"),
    ("dns_over_tcp", "dns", 3, "NXDOMAIN"),
    ("enip_reads", "enip", 5, "path destination unknown"),
    ("fastcgi_behind_nginx", "fastcgi", 500, None),
    ("gearman_jobs", "gearman", None, "WORK_FAIL"),
    ("grpc_calls", "grpc", 5, "NOT_FOUND"),
    ("grpc_web_in_http1", "grpc-web", 7, "PERMISSION_DENIED"),
    ("http2_streams", "http2", 404, None),
    ("imap_idle", "imap", None, "NO"),
    ("iscsi_read_and_write", "iscsi", 2, "CHECK CONDITION"),
    ("json_rpc_in_websocket", "json-rpc", None, "-32601"),
    ("ldap_searches_at_once", "ldap", 32, "noSuchObject"),
    ("mail_pipelined", "smtp", 550, None),
    ("memcached_pipeline", "memcached", None, "SERVER_ERROR"),
    ("mms_reports", "mms", None, "object-non-existent"),
    ("modbus_polls", "modbus", 2, "exception 2"),
    ("mongodb_exhaust", "mongodb", 59, "CommandNotFound"),
    ("mysql_queries", "mysql", 1054, "42S22"),
    ("nfs_calls", "rpc", 2, "NOENT"),
    ("nfs_calls", "rpc", 3, "PROC_UNAVAIL"),
    ("opcua_services", "opcua", None, "BadNotWritable"),
    ("openflow_controller_asks", "openflow", None, "ROLE_REQUEST_FAILED/0"),
    ("rabbitmq_streams", "rabbitmq-streams", 2, "stream does not exist"),
    ("s7_reads", "s7comm", None, "error on supplies (8500)"),
    ("smb_files", "smb", None, "0xc0000034"),
    ("socks_tunnel", "socks", None, "connection refused"),
    ("stomp_receipts", "stomp", None, "not found"),
]  # fmt: skip
"""Case, protocol, number and word."""


def hello() -> bytes:
    """A ClientHello, as the standard library's TLS writes it."""
    sent, context = ssl.MemoryBIO(), ssl.create_default_context()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="lab").do_handshake()
    return sent.read()


def kafka(api: int, version: int, body: bytes, answer: bytes) -> tuple[bytes, bytes]:
    request = struct.pack(">HHIH3s", api, version, 7, 3, b"lab") + body
    return struct.pack(">I", len(request)) + request, struct.pack(">II", 4 + len(answer), 7) + answer


def dns(flags: int) -> bytes:
    message = struct.pack(">HHHHHH", 7, flags, 1, 0, 0, 0) + b"\3lab\0\0\1\0\1"
    return struct.pack(">H", len(message)) + message


TOPIC = b"\0\0\0\1\0\6orders\0\0\0\1"
"""One topic with one partition."""

WRITTEN = {
    "dns SERVFAIL": (dns(0x0100), dns(0x8182), 2, "SERVFAIL"),
    "http": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 503, None),
    "kafka Heartbeat": (*kafka(12, 1, b"\0\1g\0\0\0\1\0\1m", struct.pack(">IH", 0, 27)), 27, "REBALANCE_IN_PROGRESS"),
    "kafka Produce": (
        *kafka(0, 3, b"\xff\xff\0\1\0\0\3\xe8" + TOPIC, TOPIC + struct.pack(">IHqqI", 0, 3, -1, -1, 0)),
        3, "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    "kafka InitProducerId": (
        *kafka(22, 2, b"\0\0\0\0\3\xe8\0", b"\0" + struct.pack(">Ih", 0, -1)), 65535, "UNKNOWN_SERVER_ERROR",
    ),
    "ldap": (b"0\x0c\2\1\1`\7\2\1\3\4\0\x80\0", b"0\x0c\2\1\1a\7\n\1\x31\4\0\4\0", 49, "invalidCredentials"),
    "mqtt 3": (b"\x10\x0f\0\4MQTT\4\2\0\x3c\0\3web", b"\x20\2\0\5", 5, "Not authorized"),
    "mqtt 5": (b"\x10\x10\0\4MQTT\5\2\0\x3c\0\0\3web", b"\x20\3\0\x87\0", 135, "Not authorized"),
    "redis": (b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", b"-WRONGTYPE Operation\r\n", None, "WRONGTYPE"),
    "tls": (hello(), b"\x15\3\3\0\2\2\x28", None, "server alert handshake_failure"),
}  # fmt: skip
"""What the client sends, what the server answers, number and word."""


def is_error(row: dict[str, object], status: int | None, text: str | None) -> bool:
    number = None if row["status"] is None else row["status"]
    return row["error"] is True and number == status and row["status_text"] == text


@pytest.mark.parametrize(("case", "protocol", "status", "text"), RECORDED, ids=lambda value: str(value))
def test_errors_of_recorded_conversations(case: str, protocol: str, status: int | None, text: str | None) -> None:
    rows = lp.read(next((CASES / case).glob("capture.*"))).arrow("exchanges").to_pylist()
    assert any(row["protocol"] == protocol and is_error(row, status, text) for row in rows)


@pytest.mark.parametrize("name", WRITTEN)
def test_errors_of_one_answer(name: str) -> None:
    asks, answers, status, text = WRITTEN[name]
    talk = Talk(server_leg=5.0, client_leg=0.01)
    talk.open()
    talk.client(10, asks)
    talk.server(17, answers)
    (row,) = lp.read(pcap(talk.tape)).arrow("exchanges").to_pylist()
    assert row["protocol"] == name.split()[0] and is_error(row, status, text), row
