"""Record the clips: small captures of one labelled situation each, for tests of verdicts.

A scripted HTTP client and server (plain sockets; this file run again inside the namespaces of `record.py`)
make 2 connections x 15 exchanges of each. `truth.json` beside the clips describes them: the options that the
programs set, the true causes, and the stalls by tshark's fields, independent of latpcap.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record import LAB_PROGRAMS, SERVER_ADDRESS, Lab, StepError, main, wait_until

PORT = 9000
CONNECTIONS = 2
EXCHANGES = 15
REQUEST_BODY = b"q" * 300
RESPONSE_BODY = b"r" * 400
JUDGED = ("nagle", "delayed_ack", "server_think")
LONG_WAIT_MS = 30.0
ACK_ALONE = 0x10  # tcp.flags of a segment without SYN, FIN, RST and PSH


@dataclass(frozen=True)
class Situation:
    """The behaviour of the two programs, and the causes that a diagnosis has to find."""

    holds: str
    causes: dict[str, str]  # cause -> owner; the rest of JUDGED must not be found
    client_split: bool = False  # head and body of the request in two writes
    client_nodelay: bool = False
    client_quickack: bool = False  # TCP_QUICKACK again after every read
    server_split: bool = False  # head and body of the answer in two writes
    server_nodelay: bool = False
    think_ms: float = 0  # before the answer's first byte
    gap_ms: float = 0  # between the answer's head and body


SITUATIONS = {
    "split-nagle": Situation(
        "the client writes head and body of its POST apart, Nagle on; the server delays the ACK of the head",
        causes={"nagle": "client", "delayed_ack": "server"},
        client_split=True,
    ),
    "split-nodelay": Situation(
        "the same two writes with TCP_NODELAY: nothing waits", {}, client_split=True, client_nodelay=True
    ),
    "gap43-nodelay": Situation(
        "decoy: TCP_NODELAY, and the server's program pauses 43 ms between head and body of the answer",
        causes={"server_think": "server"},
        server_split=True,
        server_nodelay=True,
        gap_ms=43,
    ),
    "think40": Situation(
        "decoy: the server's program works 40 ms before its answer, which leaves in one write (Nagle on)",
        causes={"server_think": "server"},
        think_ms=40,
    ),
    "quickack": Situation(
        "the server writes head and body apart, Nagle on; the client acknowledges at once: one round trip",
        causes={"nagle": "server"},
        client_quickack=True,
        server_split=True,
    ),
}


def read_message(sock: socket.socket, quickack: bool = False) -> bool:
    """Read one HTTP message with a Content-Length; False when the other side has closed."""
    data = b""
    while True:
        received = sock.recv(65536)
        if not received:
            return False
        if quickack:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        data += received
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        if end and length and len(body) >= int(length[1]):
            return True


def write_message(sock: socket.socket, start: str, body: bytes, split: bool, gap_ms: float = 0) -> None:
    """Send head and body in one write, or in two with a pause between them."""
    head = f"{start}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    if not split:
        sock.sendall(head + body)
        return
    sock.sendall(head)
    if gap_ms:  # even sleep(0) takes longer than an ACK
        time.sleep(gap_ms / 1000)
    sock.sendall(body)


def play_client(situation: Situation) -> None:
    def connection() -> None:
        with socket.create_connection((SERVER_ADDRESS, PORT), timeout=5) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, situation.client_nodelay)
            for number in range(EXCHANGES):
                start = f"POST /item/{number} HTTP/1.1\r\nHost: {SERVER_ADDRESS}:{PORT}"
                write_message(sock, start, REQUEST_BODY, situation.client_split)
                if not read_message(sock, situation.client_quickack):
                    raise ConnectionError("the server closed the connection")

    for _ in range(CONNECTIONS):
        threading.Thread(target=connection).start()
        time.sleep(0.007)


def play_server(situation: Situation) -> None:
    def serve(sock: socket.socket) -> None:
        with sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, situation.server_nodelay)
            while read_message(sock):
                time.sleep(situation.think_ms / 1000)
                split, gap_ms = situation.server_split, situation.gap_ms
                write_message(sock, "HTTP/1.1 200 OK", RESPONSE_BODY, split, gap_ms)

    with socket.create_server((SERVER_ADDRESS, PORT)) as listener:
        print("listening", flush=True)
        while True:
            threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()


def seen_by_tshark(pcap: Path, situation: Situation) -> dict[str, Any]:
    """Count exchanges, and waits: two data segments of one sender with a pure ACK between them."""
    fields = ["tcp.stream", "tcp.dstport", "frame.time_epoch", "tcp.len", "tcp.flags", "http.response.code"]
    argv = ["tshark", "-n", "-r", str(pcap), "-T", "fields", "-E", "separator=,"]
    argv += [f"-e{field}" for field in fields]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True)
    exchanges: Counter[int] = Counter()
    stalled: dict[int, list[int]] = {}
    counts: Counter[str] = Counter()
    last: dict[int, tuple[bool, float, bool]] = {}  # per stream: data from the client?, when, acknowledged?
    for line in shown.stdout.splitlines():
        stream, port, time_s, length, flags, code = line.split(",")
        key, from_client, now = int(stream), int(port) == PORT, float(time_s)
        sender, since, acked = last.get(key, (from_client, now, False))
        if length == "0":
            last[key] = (sender, since, acked or (from_client != sender and int(flags, 16) == ACK_ALONE))
            continue
        if sender == from_client and acked:
            nagle = not (situation.client_nodelay if from_client else situation.server_nodelay)
            long = (now - since) * 1000 >= LONG_WAIT_MS
            counts[("long" if long else "short") + (" nagle" if nagle else " nodelay")] += 1
            if long and nagle:
                stalled.setdefault(key, []).append(exchanges[key])
        last[key] = (from_client, now, False)
        exchanges[key] += code != ""
    return {
        "streams": len(exchanges),
        "exchanges": exchanges.total(),
        "stalls": counts["long nagle"],  # Nagle + delayed ACK, the true ones
        "stalled_exchanges": stalled,  # stream -> index of the exchange on it, from 0
        "look_alikes": counts["long nodelay"],  # the same shape on the wire, but Nagle is off
        "short_waits": counts["short nagle"],  # Nagle on, but the ACK came at once
    }


def record_clip(lab: Lab, name: str, pcap: Path) -> None:
    play = [sys.executable, __file__, "--play", name]
    log = lab.home / f"{name}.log"
    with lab.running(lab.server, [*play, "server"], log), lab.capture(pcap, f"tcp port {PORT}"):
        wait_until(lambda: "listening" in log.read_text(), 5, f"the server of {name} does not listen")
        lab.run(lab.client, [*play, "client"], seconds=20)


def record_clips(lab: Lab, out: Path) -> None:
    truth = {}
    for name, situation in SITUATIONS.items():
        pcap = out / f"{name}.pcap"
        record_clip(lab, name, pcap)
        seen = seen_by_tshark(pcap, situation)
        if seen["exchanges"] != CONNECTIONS * EXCHANGES:
            raise StepError(f"{pcap.name}: {seen['exchanges']} exchanges, not {CONNECTIONS * EXCHANGES}")
        nagle = {"client": not situation.client_nodelay, "server": not situation.server_nodelay}
        told = {"holds": situation.holds, "nagle_on": nagle, "expected_causes": situation.causes}
        must_not = [cause for cause in JUDGED if cause not in situation.causes]
        truth[pcap.name] = told | {"must_not": must_not} | seen
    (out / "truth.json").write_text(json.dumps(truth, indent=2) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--play"]:
        {"client": play_client, "server": play_server}[sys.argv[3]](SITUATIONS[sys.argv[2]])
        sys.exit()
    programs = LAB_PROGRAMS | {"tshark": "tshark"}
    sys.exit(main(programs, record_clips, __doc__ or "", Path(__file__).resolve().parent / "clips"))
