"""Does any table, answer or archive show a password or a token? Log-ins of every protocol that has one, end to end.

Names stay: people look for their own user, mail box and query. What only proves who somebody is never leaves a reader.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import string
import urllib.parse
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import run
from makepcap import Ends, Segment, Talk, pcap

import latpcap as lp

RANDOM = random.Random(os.environ["LATPCAP_SEED"])
SECRET = "{}2{}".format(*("".join(RANDOM.choices(string.ascii_letters, k=k)) for k in (6, 4)))
"""Another one in every run."""
NAME = "anna"
PLAIN = base64.b64encode(f"\0{NAME}\0{SECRET}".encode())
CODED = base64.b64encode(SECRET.encode())
HIDDEN = [
    SECRET,
    SECRET.upper(),
    SECRET.lower(),
    PLAIN.decode(),
    CODED.decode(),
    CODED.decode().upper(),
    SECRET.encode().hex(),
]

C, S = True, False
Lines = list[tuple[bool, bytes]]


def line(side: bool, *texts: str) -> Lines:
    return [(side, text.encode() + b"\r\n") for text in texts]


def length32(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def mysql(number: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "little") + bytes([number]) + body


def tlv(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes([tag, len(body)]) + body


def resp(*words: str) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words)


def mqtt_text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def amqp(class_: int, number: int, arguments: bytes) -> bytes:
    payload = class_.to_bytes(2, "big") + number.to_bytes(2, "big") + arguments
    return b"\x01\0\0" + len(payload).to_bytes(4, "big") + payload + b"\xce"


def kafka(api: int, number: int, body: bytes, version: int = 0) -> bytes:
    head = api.to_bytes(2, "big") + version.to_bytes(2, "big") + number.to_bytes(4, "big") + mqtt_text("me")
    return (len(head) + len(body)).to_bytes(4, "big") + head + body


def kafka_answer(number: int, body: bytes) -> bytes:
    return (4 + len(body)).to_bytes(4, "big") + number.to_bytes(4, "big") + body


OK = (S, mysql(2, bytes([0, 0, 0, 2, 0, 0, 0])))
GREETING = mysql(0, b"\x0a8.0.33\0\x07\0\0\0saltsalt\0\xff\xff\x08\x02\0\xff\xff\x15" + bytes(10) + b"saltsaltsalt\0")
READY = length32(b"Z", b"I")
HTTP = (
    f"GET /a?user={NAME}&access_token={SECRET}&Password={SECRET}&n=5 HTTP/1.1\r\nHost: h\r\n"
    f"Authorization: Bearer {SECRET}\r\nCookie: session={SECRET}\r\n\r\n"
).encode()
DIGEST = (
    f"REGISTER sip:lab.example SIP/2.0\r\nVia: SIP/2.0/TCP a;branch=z9hG4bK1\r\n"
    f"From: <sip:{NAME}@lab.example>;tag=1\r\n"
    f"To: <sip:{NAME}@lab.example>\r\nCall-ID: 1@a\r\nCSeq: 1 REGISTER\r\n"
    f'Authorization: Digest username="{NAME}", response="{SECRET}"\r\nContent-Length: 0\r\n\r\n'
).encode()
SIP_OK = (
    b"SIP/2.0 200 OK\r\nVia: SIP/2.0/TCP a;branch=z9hG4bK1\r\nCall-ID: 1@a\r\nCSeq: 1 REGISTER\r\n"
    b"Content-Length: 0\r\n\r\n"
)

TALKS: dict[str, tuple[str, Lines]] = {
    "smtp_plain": ("smtp", [
        *line(S, "220 mx ESMTP"), *line(C, "EHLO me"), *line(S, "250 AUTH PLAIN LOGIN"),
        (C, b"AUTH PLAIN " + PLAIN + b"\r\n"), *line(S, "235 ok"), *line(C, "QUIT"), *line(S, "221 bye"),
    ]),
    "smtp_login": ("smtp", [
        *line(S, "220 mx ESMTP"), *line(C, "EHLO me"), *line(S, "250 AUTH LOGIN"), *line(C, "AUTH LOGIN"),
        *line(S, "334 VXNlcm5hbWU6"), (C, base64.b64encode(NAME.encode()) + b"\r\n"), *line(S, "334 UGFzc3dvcmQ6"),
        (C, CODED + b"\r\n"), *line(S, "535 no"), *line(C, f"MAIL FROM:<{NAME}@lab>"), *line(S, "250 ok"),
    ]),
    "pop3": ("pop3", [
        *line(S, "+OK <1@lab>"), *line(C, f"USER {NAME}"), *line(S, "+OK"), *line(C, f"PASS {SECRET}"),
        *line(S, "-ERR no"), *line(C, f"APOP {NAME} {SECRET}"), *line(S, "+OK"), *line(C, "AUTH PLAIN"),
        *line(S, "+ "), (C, PLAIN + b"\r\n"), *line(S, "+OK"), *line(C, "QUIT"), *line(S, "+OK"),
    ]),
    "imap": ("imap", [
        *line(S, "* OK ready"), *line(C, f'a1 LOGIN {NAME} "{SECRET}"'), *line(S, "a1 NO no"),
        *line(C, f"a2 LOGIN {NAME} {{{len(SECRET)}}}"), *line(S, "+ go on"), *line(C, SECRET), *line(S, "a2 OK in"),
        *line(C, "a3 AUTHENTICATE PLAIN"), *line(S, "+ "), (C, PLAIN + b"\r\n"), *line(S, "a3 OK in"),
        (C, b"a4 AUTHENTICATE PLAIN " + PLAIN + b"\r\n"), *line(S, "a4 OK in"),
    ]),
    "ftp": ("ftp", [
        *line(S, "220 (vsFTPd 3.0.3)"), *line(C, f"USER {NAME}"), *line(S, "331 password"), *line(C, f"PASS {SECRET}"),
        *line(S, "230 in"), *line(C, f"ACCT {SECRET}"), *line(S, "202 no"), *line(C, f"SITE PSWD {SECRET} x"),
        *line(S, "500 no"), *line(C, f"XPWD {SECRET}"), *line(S, "500 no"), *line(C, "RETR a"), *line(S, "550 no"),
    ]),
    "redis": ("redis", [
        (C, resp("AUTH", NAME, SECRET)), (S, b"+OK\r\n"),
        (C, resp("HELLO", "2", "AUTH", NAME, SECRET)), (S, b"*2\r\n$7\r\nversion\r\n$5\r\n7.0.1\r\n"),
        (C, resp("CONFIG", "SET", "requirepass", SECRET)), (S, b"+OK\r\n"),
        (C, resp("ACL", "SETUSER", NAME, f">{SECRET}")), (S, b"+OK\r\n"),
        (C, resp("MIGRATE", "h", "6379", "k", "0", "9", "AUTH", SECRET)), (S, b"+OK\r\n"),
        (C, resp("SET", "k", SECRET)), (S, b"+OK\r\n"), (C, f"AUTH {SECRET}\r\n".encode()), (S, b"+OK\r\n"),
    ]),
    "memcached": ("memcached", [
        (C, b"set auth 0 0 %d\r\n%s %s\r\n" % (len(NAME) + 1 + len(SECRET), NAME.encode(), SECRET.encode())),
        (S, b"STORED\r\n"), (C, b"get auth\r\n"), (S, b"END\r\n"),
    ]),
    "memcached_binary": ("memcached", [
        (C, bytes([0x80, 0x21, 0, 5, 0, 0, 0, 0, 0, 0, 0, 5 + len(SECRET)]) + bytes(12) + b"PLAIN" + SECRET.encode()),
        (S, bytes([0x81, 0x21]) + bytes(22)), (C, bytes([0x80, 0x0A]) + bytes(22)),
        (S, bytes([0x81, 0x0A]) + bytes(22)),
    ]),
    "ldap": ("ldap", [
        (C, tlv(0x30, tlv(2, b"\1"), tlv(0x60, tlv(2, b"\3"), tlv(4, b"cn=anna"), tlv(0x80, SECRET.encode())))),
        (S, tlv(0x30, tlv(2, b"\1"), tlv(0x61, b"\x0a\1\0", tlv(4), tlv(4)))),
    ]),
    "postgresql": ("postgresql", [
        (C, b"\0\0\0\x14\0\3\0\0user\0anna\0\0"), (S, length32(b"R", b"\0\0\0\3")),
        (C, length32(b"p", SECRET.encode() + b"\0")), (S, length32(b"R", bytes(4)) + READY),
        (C, length32(b"Q", f"ALTER USER anna PASSWORD '{SECRET}'\0".encode())),
        (S, length32(b"C", b"ALTER ROLE\0") + READY),
    ]),
    "mysql": ("mysql", [
        (S, GREETING),
        (C, mysql(1, b"\5\xa2\0\0" + bytes(28) + b"anna\0" + bytes([len(SECRET)]) + SECRET.encode())),
        OK, *(one for statement in (
            f"ALTER USER anna IDENTIFIED BY '{SECRET}'", f"ALTER USER anna IDENTIFIED BY {SECRET}",
            f"SET PASSWORD = PASSWORD({SECRET})", f"ALTER USER anna PASSWORD {SECRET}")
            for one in ((C, mysql(0, b"\3" + statement.encode())), (S, mysql(1, bytes([0, 0, 0, 2, 0, 0, 0]))))),
    ]),
    "mqtt": ("mqtt", [
        (C, bytes([0x10, 16 + 4 + len(NAME) + len(SECRET)]) + mqtt_text("MQTT") + b"\4\xc2\0\x3c" + mqtt_text("me")
         + mqtt_text(NAME) + mqtt_text(SECRET)),
        (S, b"\x20\2\0\0"), (C, b"\x82\x06\0\1" + b"\0\1a\0"), (S, b"\x90\3\0\1\0"),
    ]),
    "amqp": ("amqp", [
        (C, b"AMQP\0\0\x09\1"), (S, amqp(10, 10, b"\0\x09\0\0\0\0\0\0\0\5PLAIN\0\0\0\5en_US")),
        (C, amqp(10, 11, b"\0\0\0\0\5PLAIN" + (2 + len(NAME) + len(SECRET)).to_bytes(4, "big")
                 + f"\0{NAME}\0{SECRET}".encode() + b"\5en_US")),
        (S, amqp(10, 30, bytes(8))), (C, amqp(10, 31, bytes(8)) + amqp(10, 40, b"\1/\0\0")), (S, amqp(10, 41, b"\0")),
    ]),
    "kafka": ("kafka", [
        (C, kafka(17, 1, mqtt_text("PLAIN"), 1)), (S, kafka_answer(1, bytes(6))),
        (C, kafka(36, 2, (2 + len(NAME) + len(SECRET)).to_bytes(4, "big") + f"\0{NAME}\0{SECRET}".encode())),
        (S, kafka_answer(2, bytes(8))),
    ]),
    "http": ("http", [(C, HTTP),
        (S, f"HTTP/1.1 200 OK\r\nSet-Cookie: s={SECRET}\r\nContent-Length: 0\r\n\r\n".encode()),
        (C, f"GET http://{NAME}:{SECRET}@h.example/b HTTP/1.1\r\nHost: h\r\n\r\n".encode()),
        (S, b"HTTP/1.1 204 No Content\r\n\r\n")]),
    "sip": ("sip", [(C, DIGEST), (S, SIP_OK)]),
    "rtsp": ("rtsp", [
        (C, f"OPTIONS rtsp://{NAME}:{SECRET}@cam.example/live RTSP/1.0\r\nCSeq: 1\r\n".encode()
         + f"Authorization: Basic {SECRET}\r\n\r\n".encode()),
        (S, b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"),
    ]),
}  # fmt: skip
TARGETS = [
    "/a?user[password]={}", "/a?%70assword={}", "/go?to=http%3A%2F%2Fanna%3A{}%40h%2F%3Ftoken%3D{}", "/a;jsessionid={}",
    "//anna:{}@h/x", "/a?sid={}", "/a?api-key={}", "/a?X-Amz-Signature={}", "/cb?code={}7{}&state=1", "/a?n=1;token={}",
    "/a?q={%22a%22:1,%22password%22:%22{}%22}", "http://anna:{}@h/b", "/reset-password/a{}7b{}", "/bot123456:A{}7{}/x",
    "/a/eyJ{}7.eyJ{}.{}/b", "/a?b=ghp_{}7{}&c", "/a?t=hf_{}7{}", "/a?newPwd={}", "/a?j={'password':'{}'}",
    "/a?x=%3Cpassword%3E{}%3C/password%3E",
    "/a?c=user=a%20password={}", "/a?token.value={}", "/a?pass%20word={}", "/bot12:{}7{}{}/x",
    "/a?%E5%AF%86%E7%A0%81={}", "/a?%D0%BF%D0%B0%D1%80%D0%BE%D0%BB%D1%8C={}", "/a?contrase%f1a={}", "/a?%u0070ass={}",
    "/a?pa%C0%B3%C0%B3={}", "/a?p\u0430ssword={}", "/a?id_token_hint={}", "/a?basic=A1b2C3d4E5{}", "/a?A1b2C3d4E5{}",
    "/a?hook=https%3A%2F%2Fh%2Fs%2FT0%2FA1b2C3d4E5{}", "/a?next=https%253A%252F%252Fh%252F%253Ftoken%253D{}",
    "/(S({}))/default.aspx", "/(X(1)A({})F({}))/a.aspx", "/a?header=Authorization:+Basic+{}", "/a?h=X-Api-Key:+{}",
    "/oauth?code={}&state=x", "/cb?iss=https://i&code={}", "/o?q-sign-algorithm=sha1&q-ak={}",
    "/c?verify=1700000000-{}",
    "/c?hdnea=exp=1~acl=/*~hmac={}", "/p/{}/n/ns/b/bucket/o/a", "/v1/AUTH_a/c?temp_url_sig={}",
    "/t_token={}&e=1/v.m3u8",
    "/image/upload/s--{}--/a.jpg", "/authz?request_uri=urn:ietf:params:oauth:request_uri:{}", "/services/T0AB/B0DE/{}",
    "/api/webhooks/123456789012345678/{}", "/hooks/catch/123/{}/", "/webhookb2/a@b/IncomingWebhook/{}/c",
    "/trigger/door/with/key/{}", "/bot123456:{}/sendMessage", "/reset/MQ/bk2x-{}/",
    "/accounts/password/reset/key/1a-{}/",
    "/magic-login/{}", "/email/verify/12/{}?expires=1", "/auth/magic?t={}", "/login/link/{}", "/share/{}",
    "/{}/announce",
    "/ical/a%40b/private-{}/basic.ics", "/a/password={}/b", "/a/password/{}", "/a/token:{}/b", "/a/jsessionid/{}",
    "/a?p[0][name]=password&p[0][value]={}", "/a?name=pwd&value={}", "/a?x=1,password={}", "/a?x=1|password={}",
    "/a?q=SELECT+1+WHERE+password='{}'", "/a?$filter=password%20eq%20'{}'", "/a?cmd=login+--password+{}",
    "/a?env=DB_PASSWORD={}", "/a?h=Basic+{}", "/session/{}/x", "/proxy/anna:{}@h/x", "/a?login=anna:{}",
    "/a?o=jdbc:oracle:thin:anna/{}@h:1521:x", "/a?g=https://{}{}@github.com/x", '/a?b="password"=>"{}"',
    '/a?l=[{"name":"password","value":"{}"}]', "http://anna:{}@h/reset/{}",
    "/a?u=anna&p={}", "/a?DSID={}", "/;stok={}/a", "/a?password;{}", "/a?token/{}", "/a?next=/reset/{}", "/#/reset/{}",
    "/a?u=https%3A%2F%2Fh%2Fbot12%3A{}%2Fx", "/a?u=%2F(S({}))%2Fx", "/a?pass\\u0077ord={}", "/a?signature_sha256={}",
]  # fmt: skip
STATEMENTS = [
    "SELECT '{}'", "SELECT /* /* ' */ ' */ '{}'", "SELECT $$ ' $$, $q$ {} $q$", r"SELECT E'\'{}'", r"SELECT '\' {} '",
    "SELECT 1 -- '\r, '\n{}'", 'SELECT "a", \'{}\'', "SELECT ` '{}' `", "SELECT \" '{}'", "SELECT U&'{}' UESCAPE '!'",
    r"SELECT E'a'\n'\' {}'", "SELECT N'{}', X'{}', B'{}'",
]  # fmt: skip
"""Ways to say a secret in a URL, and in PostgreSQL's SQL."""
DOCUMENTED = (Path(__file__).parents[1] / "docs" / "exchanges-and-causes.md").read_text().split("## What is never")[1]


def documented(begin: str, end: str = "") -> list[str]:
    """The names of secrets in the documentation's row that begins so."""
    row = next(row for row in DOCUMENTED.splitlines() if row.startswith(f"| {begin}"))
    return [f"{name}{end}" for name in re.findall("`([a-z0-9]+)`", row.split(" | ")[0]) if name not in ("key", "code")]


NAMES = [*documented("holds `"), *documented("ends with `pwd`"), *documented("ends with `key`", "key"),
         *documented("ends with `code`", "code"), *documented("is, or has in brackets"),
         *documented("is, or has as its last word"), "user[pass]", "newPass", "otp_code",
         "contrase\u00f1a"]  # fmt: skip


def quoted(text: str) -> str:
    """With signs of these as they are, or in other words."""
    return "".join(f"%{ord(sign):02x}" if RANDOM.random() < 0.2 else urllib.parse.quote(sign) for sign in text)


def target(deep: int) -> str:
    """A URL that holds the secret: as a parameter, before a host, behind `#`, or in a URL that a parameter holds."""
    name = RANDOM.choice(NAMES)
    name = RANDOM.choice((name, name.upper(), f"x-{name}", f"a[{name}]", f"{name}2"))
    match RANDOM.randrange(6 if deep else 4):
        case 0:
            return f"/a?b=c&{quoted(name)}={SECRET}&d"
        case 1:
            return f"/a;{name}={SECRET}"
        case 2:
            return f"http://{NAME}:{SECRET}@h/b"
        case 3:
            return f"/a?b=c#{name}={SECRET}"
        case 4:
            return f"/a?b={RANDOM.choice((quoted, urllib.parse.quote_plus))(target(deep - 1))}&d=e"
        case _:
            return f"/a/{urllib.parse.quote_plus(target(deep - 1))}"


OK_HTTP = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
TALKS["targets"] = ("http", [
    one for place in [*TARGETS, *(f"/a?{name}={{}}" for name in NAMES), *(target(2) for _ in range(60))] for one in (
        (C, f"GET {place.replace('{}', SECRET)} HTTP/1.1\r\nHost: {NAME}:{SECRET}@h\r\n\r\n".encode()), (S, OK_HTTP))
])  # fmt: skip
TALKS["statements"] = ("postgresql", [
    (C, b"\0\0\0\x14\0\3\0\0user\0anna\0\0"), (S, length32(b"R", bytes(4)) + READY),
    *(one for statement in STATEMENTS for one in (
        (C, length32(b"Q", statement.replace("{}", SECRET).encode() + b"\0")),
        (S, length32(b"E", b"SERROR\0C42601\0Msyntax error\0\0") + READY))),
])  # fmt: skip


def mongo(number: int, answers: int, **members: object) -> bytes:
    body = b""
    for name, value in members.items():
        key = name.encode() + b"\0"
        if isinstance(value, str):
            body += b"\2" + key + (len(value) + 1).to_bytes(4, "little") + value.encode() + b"\0"
        elif isinstance(value, bytes):
            body += b"\5" + key + len(value).to_bytes(4, "little") + b"\0" + value
        else:
            body += b"\x10" + key + b"\1\0\0\0"
    section = bytes(5) + (len(body) + 5).to_bytes(4, "little") + body + b"\0"
    heads = (16 + len(section), number, answers, 2013)
    return b"".join(head.to_bytes(4, "little") for head in heads) + section


def fastcgi(kind: int, body: bytes) -> bytes:
    return bytes([1, kind, 0, 1]) + len(body).to_bytes(2, "big") + bytes(2) + body


def websocket(side: bool, text: str) -> tuple[bool, bytes]:
    return side, bytes([0x81, (0x80 if side else 0) | len(text)]) + (bytes(4) if side else b"") + text.encode()


TALKS["nats"] = ("nats", [
    (S, b'INFO {"server_id":"x"}\r\n'),
    (C, f'CONNECT {{"user":"{NAME}","pass":"{SECRET}","auth_token":"{SECRET}"}}\r\nPING\r\n'.encode()),
    (S, b"PONG\r\n"), (C, b"SUB inbox.1 1\r\nPUB a inbox.1 2\r\nhi\r\n"), (S, b"MSG inbox.1 1 2\r\nok\r\n"),
])  # fmt: skip
TALKS["stomp"] = ("stomp", [
    (C, f"CONNECT\nlogin:{NAME}\npasscode:{SECRET}\n\n\0".encode()), (S, b"CONNECTED\nversion:1.2\n\n\0"),
    (C, f"SEND\ndestination:/q/a\nreceipt:1\ntoken:{SECRET}\n\n{SECRET}\0".encode()),
    (S, b"RECEIPT\nreceipt-id:1\n\n\0"),
])  # fmt: skip
TALKS["mongodb"] = ("mongodb", [
    (C, mongo(1, 0, saslStart=1, mechanism="PLAIN", payload=f"\0{NAME}\0{SECRET}".encode())), (S, mongo(2, 1, ok=1)),
    (C, mongo(3, 0, createUser=NAME, pwd=SECRET)), (S, mongo(4, 3, ok=1)), 
    (C, mongo(5, 0, find="users", filter=SECRET)), (S, mongo(6, 5, errmsg=f"bad password {SECRET}")),
])  # fmt: skip
TALKS["socks"] = ("socks", [
    (C, b"\5\1\2"), (S, b"\5\2"), (C, b"\1\4anna" + bytes([len(SECRET)]) + SECRET.encode()), (S, b"\1\0"),
    (C, b"\5\1\0\3\6h.test\0\x50"), (S, b"\5\0\0\1" + bytes(6)), (C, HTTP), (S, OK_HTTP),
])  # fmt: skip
TALKS["fastcgi"] = ("fastcgi", [
    (C, fastcgi(1, b"\0\1" + bytes(6)) + fastcgi(4, b"".join(
        bytes([len(name), len(value)]) + name.encode() + value.encode() for name, value in {
            "REQUEST_METHOD": "GET", "REQUEST_URI": f"/a?token={SECRET}", "QUERY_STRING": f"token={SECRET}",
            "HTTP_AUTHORIZATION": f"Bearer {SECRET}"}.items())) + fastcgi(4, b"") + fastcgi(5, b"")),
    (S, fastcgi(6, f"Status: 200 OK\r\nSet-Cookie: {SECRET}\r\n\r\nhi".encode()) + fastcgi(3, bytes(8))),
])  # fmt: skip
TALKS["websocket"] = ("json-rpc", [
    (C, b"GET /w HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: aaaaaaaaaaaaaaaaaaaaaa==\r\nSec-WebSocket-Version: 13\r\n\r\n"),
    (S, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: x\r\n\r\n"),
    websocket(C, f'{{"jsonrpc":"2.0","id":1,"method":"auth","params":["{SECRET}"]}}'),
    websocket(S, f'{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"not {SECRET}"}}}}'),
])  # fmt: skip
TALKS["proxied"] = ("http", [
    (C, f"CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\nProxy-Authorization: Basic {SECRET}\r\n\r\n".encode()),
    (S, b"HTTP/1.1 200 OK\r\n\r\n"),
    (C, f"GET /a HTTP/1.1\r\nHost: h\r\nReferer: http://h/?token={SECRET}\r\nX-Api-Key: {SECRET}\r\n\r\n".encode()),
    (S, f"HTTP/1.1 302 Found\r\nLocation: http://{NAME}:{SECRET}@h/\r\nContent-Length: 0\r\n\r\n".encode()),
])  # fmt: skip


def bytes_of(said: Lines, port: int = 40_000) -> bytes:
    return pcap(tape_of(said, port), nanos=True)


def tape_of(said: Lines, port: int) -> list[Segment]:
    talk = Talk(server_leg=1.0, client_leg=0.05, ends=Ends(("10.0.0.1", port), ("10.0.0.2", 9000)))
    talk.open()
    ms = 3.0
    for from_client, payload in said:
        (talk.client if from_client else talk.server)(ms, payload)
        (talk.server if from_client else talk.client)(ms + 1.5)
        ms += 5.0
    return talk.tape


@cache
def read(name: str) -> lp.Capture:
    return lp.read(bytes_of(TALKS[name][1]))


def shown(capture: lp.Capture) -> Iterator[tuple[str, str]]:
    """All that a user can see of this capture but its packets: tables, the answer, the archive for browsers."""
    for table in ("exchanges", "connects", "pushes", "gaps", "lookups", "streams", "causes", "findings", "issues"):
        yield table, json.dumps(capture.arrow(table).to_pylist(), default=str)
    yield "why", f"{capture.why()} {capture.why().to_dict()}"
    yield "har", json.dumps(capture.to_har())


@pytest.mark.parametrize("name", TALKS)
def test_no_reader_shows_a_password_or_a_token(name: str) -> None:
    capture, protocol = read(name), TALKS[name][0]
    # that it was read at all, and names are told
    assert protocol in set(capture.arrow("exchanges")["protocol"].to_pylist())
    assert any(capture.arrow("exchanges")["method"].to_pylist())
    for where, text in shown(capture):
        for hidden in HIDDEN:
            assert hidden not in text, f"{where}: {text}"


@pytest.mark.parametrize(
    ("name", "method", "target"),
    [
        ("smtp_login", "MAIL", f"{NAME}@lab"), ("pop3", "USER", NAME), ("imap", "LOGIN", NAME), ("ftp", "USER", NAME),
        ("ldap", "bind", "cn=anna"), ("http", "GET", f"/a?user={NAME}&access_token=?&Password=?&n=5"),
        ("http", "GET", f"http://{NAME}:?@h.example/b"), ("ftp", "RETR", "a"), ("ftp", "SITE", "PSWD"),
    ],
)  # fmt: skip
def test_names_stay(name: str, method: str, target: str) -> None:
    rows = read(name).arrow("exchanges").select(["method", "target"]).to_pylist()
    assert {"method": method, "target": target} in rows


def test_a_lost_challenge_makes_no_name_of_a_secret() -> None:
    """Joined inside of a log-in, the line with the password looks like a command."""
    word = base64.b64encode(b"hunter").decode().strip("=")  # letters alone
    said = [
        *line(S, "220 mx ESMTP"),
        *line(C, "EHLO me"),
        *line(S, "250 AUTH LOGIN"),
        *line(C, word),
        *line(S, "535 no"),
    ]
    text = json.dumps(lp.read(bytes_of(said)).arrow("exchanges").to_pylist(), default=str)
    assert "EHLO" in text and word not in text and word.upper() not in text


TABLES = ("exchanges", "connects", "pushes", "gaps", "lookups", "streams", "events", "causes", "findings", "waits",
          "actions", "transfers", "evidence", "probes", "issues")  # fmt: skip
OUTPUTS = [
    *([table] for table in TABLES), *([table, "--json"] for table in TABLES), *([table, "--csv"] for table in TABLES),
    ["why"], ["why", "--json"], ["why", "--top", "9"], ["why", "--exchange", "worst"],
    ["why", "--exchange", "3", "--json"], ["flow"], ["flow", "-o", "flow.svg"], ["report", "-o", "a.html"],
    ["flow", "--exchange", "worst", "-o", "worst.svg"], ["har", "-o", "a.har"], ["latency", "--by", "uri"], 
    ["plot", "waterfall", "-o", "waterfall.svg"],
    ["plot", "timeline", "-o", "timeline.svg"], ["plot", "latency", "--by", "uri", "-o", "latency.svg"],
    ["plot", "time-sequence", "--stream", "0", "-o", "sequence.svg"], ["exchanges", "-Y", "http", "-o", "a.csv"],
    ["slice", "--anonymise", "-o", "a.pcapng"], ["batch", "-o", "out", "--quiet"],
    ["export", "--to", "otlp"], ["export", "--to", "perfetto"], ["groups"], ["conversations"], ["expert"],
    ["why", "--json", "--actions"], ["why", "--for-owner"], ["flow", "--flows", "any"],
    ["exchanges", "--names", "otel"], ["exchanges", "-Y", 'http.file_data or http.cookie contains "="', "--json"],
    ["events", "-Y", "tcp.segment_data", "--json"], ["why", "-Y", "tcp.reassembled_in", "--json"],
    ["flow", "-Y", 'tcp.payload matches "a"'], ["expert", "-Y", "tcp.segments or http.chunk_data"],
]  # fmt: skip
"""Every command that says something of a capture; `follow`, `payloads` and plain slices give what was sent."""


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All talks in one capture."""
    tape = [one for number, (_, said) in enumerate(TALKS.values()) for one in tape_of(said, 40_000 + number)]
    folder = tmp_path_factory.mktemp("every")
    (folder / "all.pcap").write_bytes(pcap(sorted(tape, key=lambda segment: segment.time_ns), nanos=True))
    return folder / "all.pcap"


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_no_output_of_any_command_shows_one(
    words: list[str], every: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(words[0], every, *words[1:]) if words[0] != "plot" else run(*words[:2], every, *words[2:])
    assert code == 0, err
    said = {"out": out, "err": err}
    for path in tmp_path.rglob("*"):
        if path.suffix == ".parquet":
            said[path.name] = json.dumps(pq.read_table(path).to_pylist(), default=str)
        elif path.is_file():
            said[path.name] = path.read_bytes().decode("latin-1")
    for where, text in said.items():
        for hidden in HIDDEN:
            at = text.find(hidden)
            assert at < 0, f"{where}: {text[max(0, at - 80) : at + 80]}"


@pytest.mark.parametrize("tool", ["why", *TABLES])
def test_no_tool_shows_one(tool: str, every: Path) -> None:
    pytest.importorskip("mcp", reason="pip install 'latpcap[mcp]' brings mcp")
    from test_mcp import call

    text = str(call("why", root=every.parent, file=every.name, numbers=True) if tool == "why" else
               call("tables", root=every.parent, file=every.name, table=tool, top=500))  # fmt: skip
    assert not [hidden for hidden in HIDDEN if hidden in text]
