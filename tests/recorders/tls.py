"""Records tests/cases/tls12 and tls13 again (needs root, ip, tcpdump, openssl, editcap): NAME.pcap, and in NAME.json
what the client's clock said of each handshake and request. NAME.pcapng has the client's keys inside, as tls12_keys and
tls13_keys have; they were recordings of their own.

    python tests/recorders/tls.py FOLDER

Two network namespaces, a server and a client of Python's ssl in them, tcpdump at the client. The client waits 15 ms
between its requests; of each it writes down when it began to send and when it had read the last byte.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CLIENT, SERVER, ADDRESS = "latpcap-c", "latpcap-s", "10.77.0.2"
VERSIONS = {"tls12": ssl.TLSVersion.TLSv1_2, "tls13": ssl.TLSVersion.TLSv1_3}
ONCE, APART, SPLIT = 1, 2, 3
"""How the server writes: head and body at once; 12 ms apart; in two writes, with Nagle's algorithm on."""
SPLIT_PORT = 10
"""So much higher is the port of the server with Nagle's algorithm."""
PLAN = [
    [(0, 300, ONCE), (25, 300, ONCE), (0, 4000, ONCE), (3, 600, APART)],
    [(40, 100, ONCE), (1, 2000, APART)],
    [(0, 500, SPLIT)] * 12,
    [(8, 50, ONCE)],
]
"""Think time in ms, bytes of the body and way of writing of each request, by connection; behind the last connection's
client says no more (a FIN) before it reads one more answer."""
LAST = (30, 700, ONCE)


def context(server: bool, name: str, secrets: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = made.maximum_version = VERSIONS[name]
    if server:
        made.load_cert_chain(secrets / "cert.pem", secrets / "key.pem")
    else:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def serve(name: str, port: int, secrets: Path) -> None:
    made = context(True, name, secrets)
    listener = socket.create_server((ADDRESS, port))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(made, connection, port % 100 >= 40), daemon=True).start()


def answer(made: ssl.SSLContext, connection: socket.socket, split: bool) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(not split))
    with made.wrap_socket(connection, server_side=True) as tls:
        buffer = b""
        while True:
            while b"\r\n\r\n" not in buffer:
                more = tls.recv(65536)
                if not more:
                    return
                buffer += more
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            think, size, way = (int(word) for word in head.split()[1].strip(b"/").split(b"/"))
            time.sleep(think / 1000)
            parts = [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, b"b" * size]
            for part in [b"".join(parts)] if way == ONCE else parts:
                tls.sendall(part)
                time.sleep(0.012 if way == APART and part is parts[0] else 0)


def ask(name: str, port: int, secrets: Path) -> list[dict[str, object]]:
    made, session, log = context(False, name, secrets), None, []
    made.keylog_filename = str(secrets / f"{name}.keys")

    def now() -> int:
        return time.clock_gettime_ns(time.CLOCK_REALTIME)

    def note(connection: int, start: int, **more: object) -> None:
        log.append({"connection": connection, "clock_ms": (now() - start) / 1e6, **more})

    def read(tls: ssl.SSLSocket, size: int) -> None:
        got = b""
        while len(got.partition(b"\r\n\r\n")[2]) < size:
            got += tls.recv(65536)

    for number, requests in enumerate(PLAN):
        split = requests[0][2] == SPLIT
        connection = socket.create_connection((ADDRESS, port + SPLIT_PORT * split))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = now()
        tls = made.wrap_socket(connection, server_hostname="tls.example", session=session)
        note(number, start, handshake=True, resumed=bool(tls.session_reused))
        time.sleep(0.03)
        for think, size, way in requests:
            start = now()
            tls.sendall(b"GET /%d/%d/%d HTTP/1.1\r\nHost: tls.example\r\n\r\n" % (think, size, way))
            read(tls, size)
            note(number, start, think_ms=think, bytes=size, way=way)
            time.sleep(0.015)
        session = tls.session
        if number == len(PLAN) - 1:
            think, size, way = LAST
            start = now()
            tls.sendall(b"GET /%d/%d/%d HTTP/1.1\r\nHost: tls.example\r\n\r\n" % LAST)
            with socket.socket(fileno=os.dup(tls.fileno())) as raw:
                raw.shutdown(socket.SHUT_WR)
            read(tls, size)
            note(number, start, think_ms=think, bytes=size, way=way, half_closed=True)
        tls.close()
        time.sleep(0.02)
    return log


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def inside(namespace: str, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["ip", "netns", "exec", namespace, *command], stderr=subprocess.DEVNULL)


def record(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=tls.example",
            "-keyout", f"{scratch}/key.pem", "-out", f"{scratch}/cert.pem")  # fmt: skip
        for namespace in (CLIENT, SERVER):
            run("ip", "netns", "add", namespace)
        try:
            run("ip", "link", "add", "vc", "netns", CLIENT, "type", "veth", "peer", "name", "vs", "netns", SERVER)
            for namespace, device, address in ((CLIENT, "vc", "10.77.0.1/24"), (SERVER, "vs", f"{ADDRESS}/24")):
                run("ip", "-n", namespace, "addr", "add", address, "dev", device)
                run("ip", "-n", namespace, "link", "set", device, "up")
            for port, name in enumerate(VERSIONS, 4430):
                me = [sys.executable, str(Path(__file__).resolve()), str(folder)]
                server = inside(SERVER, *me, "serve", name, str(port), scratch)
                split = inside(SERVER, *me, "serve", name, str(port + SPLIT_PORT), scratch)
                capture = folder / f"{name}.pcap"
                tap = inside(CLIENT, "tcpdump", "-i", "vc", "-U", "--immediate-mode", "-w", str(capture), "tcp")
                time.sleep(1.5)
                inside(CLIENT, *me, "ask", name, str(port), scratch).wait(30)
                time.sleep(0.5)
                for process in (tap, server, split):
                    process.terminate()
                    process.wait(5)
                run(
                    "editcap", "--inject-secrets", f"tls,{scratch}/{name}.keys", str(capture), f"{folder}/{name}.pcapng"
                )
        finally:
            for namespace in (CLIENT, SERVER):
                run("ip", "netns", "del", namespace)


if __name__ == "__main__":
    folder, *rest = Path(sys.argv[1]), *sys.argv[2:]
    if not rest:
        record(folder.resolve())
    elif rest[0] == "serve":
        serve(rest[1], int(rest[2]), Path(rest[3]))
    else:
        log = ask(rest[1], int(rest[2]), Path(rest[3]))
        (folder / f"{rest[1]}.json").write_text(json.dumps(log, indent=1) + "\n")
