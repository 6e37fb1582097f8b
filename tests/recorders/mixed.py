"""Records tests/cases/mixed_* again (needs root, ip and tcpdump): SITUATION-END.pcap, and SITUATION.json with each
client port's socket option and pause.

    python tests/recorders/mixed.py FOLDER

Two network namespaces joined by a veth pair, a server and a client of plain sockets in them, tcpdump at both. The
server writes head and body of each answer apart. Its connections differ: PLANS.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

CLIENT, SERVER = "latpcap-c", "latpcap-s"
CLIENT_ADDRESS, ADDRESS = "10.77.0.1", "10.77.0.2"
PORT, CONNECTIONS, EXCHANGES = 8000, 6, 14
REQUEST = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
HEAD, BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 80\r\n\r\n", b"b" * 80
HELD, FREE = (False, "", 0.0), (True, "", 0.0)
"""TCP_NODELAY or not, and how the program pauses between head and body, for how many ms."""
PLANS = {
    "some": [HELD, FREE],
    "pauses": [FREE, (True, "sleep", 44.0)],
    "ticks": [FREE, (True, "tick", 40.0)],
}


def pause(how: str, ms: float) -> None:
    if how == "sleep":
        time.sleep(ms / 1000)
    elif how == "tick":  # a socket's timeout ends on the kernel's tick, as its delayed ACKs do
        one, other = socket.socketpair()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, int(ms * 1000)))
        with contextlib.suppress(BlockingIOError):
            one.recv(1)
        one.close()
        other.close()


def serve(plan: list[tuple[bool, str, float]], log: Path) -> None:
    listener, kinds = socket.create_server((ADDRESS, PORT)), {}
    for number in range(CONNECTIONS):
        connection, (_, port) = listener.accept()
        kinds[port] = plan[number % len(plan)]
        log.write_text(json.dumps({str(p): list(kind) for p, kind in kinds.items()}) + "\n")
        threading.Thread(target=answer, args=(connection, *kinds[port])).start()


def answer(connection: socket.socket, nodelay: bool, how: str, ms: float) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(nodelay))
    with connection:
        for _ in range(EXCHANGES):
            if not connection.recv(4096):
                return
            connection.sendall(HEAD)
            pause(how, ms)
            connection.sendall(BODY)


def ask() -> None:
    def one(number: int) -> None:
        rng = random.Random(number)
        with socket.create_connection((ADDRESS, PORT)) as connection:
            for _ in range(EXCHANGES):
                connection.sendall(REQUEST)
                got = b""
                while len(got) < len(HEAD + BODY):
                    got += connection.recv(4096)
                time.sleep(rng.uniform(0.2, 4) / 1000)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
        time.sleep(0.003)
    for thread in threads:
        thread.join()


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def record(name: str, folder: Path) -> None:
    script = (sys.executable, str(Path(__file__).resolve()))
    ends = {"client": CLIENT, "server": SERVER}
    captures = [
        subprocess.Popen(
            ["ip", "netns", "exec", space, "tcpdump", "-q", "-i", space, "-Z", "root", "--nano", "-w",
             str(folder / f"{name}-{end}.pcap"), "tcp"], stderr=subprocess.DEVNULL,
        )
        for end, space in ends.items()
    ]  # fmt: skip
    server = subprocess.Popen(["ip", "netns", "exec", SERVER, *script, "serve", name, str(folder / f"{name}.json")])
    time.sleep(1)
    try:
        run("ip", "netns", "exec", CLIENT, *script, "ask")
        time.sleep(0.5)
    finally:
        server.wait(5)
        for capture in captures:
            capture.terminate()
            capture.wait()


def main(folder: Path) -> None:
    try:
        for space in (CLIENT, SERVER):
            run("ip", "netns", "add", space)
        run("ip", "link", "add", CLIENT, "netns", CLIENT, "type", "veth", "peer", "name", SERVER, "netns", SERVER)
        for space, address in ((CLIENT, CLIENT_ADDRESS), (SERVER, ADDRESS)):
            run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", space)
            for device in ("lo", space):
                run("ip", "-n", space, "link", "set", device, "up")
        for name in PLANS:
            record(name, folder)
    finally:
        for space in (CLIENT, SERVER):
            subprocess.run(["ip", "netns", "del", space], check=False)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", name, log]:
            serve(PLANS[name], Path(log))
        case ["ask"]:
            ask()
        case arguments:
            main(Path(arguments[0]))
