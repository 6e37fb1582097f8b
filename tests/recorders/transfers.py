"""Records transfers whose limit is known by construction, at both ends, with the sending kernel's `tcp_info` beside.

    python tests/recorders/transfers.py FOLDER [--only NAME ...] [--drawn COUNT --seed SEED] [--score]

Needs root, /dev/net/tun, a C compiler and Linux: two network namespaces that live as long as their two processes, and
`line.c` between them. Each situation of PLANS becomes FOLDER/NAME/client.pcap, server.pcap and truth.json:
`limited_by`, the line, rate and bytes at the receiving program, and of the kernel `rtt_idle_ms` (its least), and over
the last two thirds `rtt_load_ms` (the median of its smoothed round trip) and `queue_ms` (their mean over the least).
`--drawn` records so many situations with random parameters in place of PLANS'. `--score` holds the table `transfers`
against what FOLDER has.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import random
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CLIENT, SERVER, PORT = "10.78.0.1", "10.78.0.2", 8080
SNAP = 120
TIOCOUTQ = 0x5411
CLONE_NEWNET, TUNSETIFF, IFF_TUN_NO_PI, TCP_INFO, TCP_CONGESTION = 0x40000000, 0x400454CA, 0x1001, 11, 13
SO_MAX_PACING_RATE, SO_RCVBUFFORCE = 47, 33
HERE = Path(__file__).parent


@dataclass
class Plan:
    """A transfer, and what limits it. Rates in Mbit/s, delays in ms of round trip."""

    limited_by: str
    rtt: float = 30.0
    line: float = 0.0
    """0: as fast as the machine."""
    queue_bdp: float = 1.0
    bytes: int = 4_000_000
    upload: bool = False
    cc: str = "cubic"
    loss: float = 0.0
    late: float = 0.0
    mark_bytes: int = 0
    receive_bytes: int = 0
    send_bytes: int = 0
    scaling: bool = True
    reader: tuple[int, float] | None = None
    """The receiving program reads so many bytes, then sleeps so many ms."""
    writer: tuple[int, float] | None = None
    pace: float = 0.0
    http2_window: int = 0
    beside: tuple[float, float, float] | None = None
    """On a second connection, small requests each so many ms; the server's program takes so long, and so long while
    the transfer lasts."""
    also: tuple[str, ...] = ()
    """Other answers that are right."""


def bdp(line: float, rtt: float) -> int:
    return int(line * 125 * rtt)


def plans() -> dict[str, Plan]:
    found: dict[str, Plan] = {}
    for line, rtt, share in ((20, 40, 0.1), (50, 20, 0.3), (10, 150, 0.5), (100, 30, 0.2), (5, 80, 0.6), (30, 10, 0.4)):
        size = max(int(bdp(line, rtt) * share), 8_000)
        moved = min(6_000_000, max(500_000, int(size / rtt * 1000 * 4)))
        found[f"window_{line}_{rtt}"] = Plan("receiver_window", rtt, line, bytes=moved, receive_bytes=size)
    found["window_up"] = Plan("receiver_window", 60, 50, receive_bytes=90_000, upload=True, bytes=3_000_000)
    found["window_bbr"] = Plan("receiver_window", 45, 40, receive_bytes=70_000, cc="bbr", bytes=2_500_000)
    for rtt in (25, 120):
        found[f"unscaled_{rtt}"] = Plan("receiver_window", rtt, 100, scaling=False, bytes=2_500_000)
    for line, rtt, queue, cc in ((2, 30, 4, "cubic"), (8, 50, 2, "reno"), (20, 20, 4, "cubic"), (50, 10, 3, "reno"),
                                 (5, 150, 2, "cubic"), (100, 20, 2, "cubic"), (10, 60, 8, "cubic"),
                                 (15, 30, 3, "bbr"), (200, 4, 4, "cubic")):  # fmt: skip
        moved = min(12_000_000, max(700_000, int(line * 125_000 * 4)))
        found[f"line_{line}_{rtt}_{cc}"] = Plan("line", rtt, line, queue, moved, cc=cc)
    found["line_up"] = Plan("line", 40, 10, 3, 4_000_000, upload=True)
    for line, rtt, cc in ((20, 30, "cubic"), (40, 15, "reno")):
        found[f"shallow_{line}_{cc}"] = Plan("line", rtt, line, 0.2, 6_000_000, cc=cc, also=("congestion",))
    for loss, rtt, cc in ((0.1, 60, "reno"), (0.5, 30, "cubic"), (1, 20, "cubic"), (3, 40, "reno"), (2, 2, "reno")):
        found[f"loss_{loss}_{rtt}_{cc}"] = Plan("congestion", rtt, 0, 1, 4_000_000, cc=cc, loss=loss)
    for size, rtt, buffer in ((65_536, 20, 150_000), (32_768, 60, 400_000)):
        found[f"reader_{size}"] = Plan(
            "receiver_program", rtt, 100, reader=(size, 50), receive_bytes=buffer, bytes=size * 90, upload=rtt == 60
        )
    found["reader_wide"] = Plan("receiver_program", 30, 200, reader=(100_000, 40), receive_bytes=3_000_000,
                                bytes=12_000_000)  # fmt: skip
    found["reader_all_held"] = Plan("line", 30, 50, 2, reader=(100_000, 40), receive_bytes=3_000_000,
                                    bytes=4_500_000, also=("receiver_program",))  # fmt: skip
    found["reader_bbr"] = Plan("receiver_program", 30, 100, reader=(40_000, 40), receive_bytes=200_000, cc="bbr",
                               bytes=3_000_000)  # fmt: skip
    for size, each, rtt in ((64_000, 60.0, 30), (20_000, 25.0, 8), (200_000, 300.0, 70)):
        found[f"writer_{size}"] = Plan("sender_program", rtt, 100, writer=(size, each), bytes=size * 40)
    for size, rtt in ((30_000, 20), (60_000, 80), (20_000, 5)):
        found[f"buffer_{size}"] = Plan("sender_buffer", rtt, 100, send_bytes=size, bytes=size * 80)
    for rate, rtt in ((4, 20), (12, 50), (30, 8)):
        found[f"paced_{rate}"] = Plan("pacing", rtt, 200, pace=rate, bytes=rate * 350_000)
    for window, rtt in ((65_535, 50), (131_072, 90)):
        found[f"http2_{window}"] = Plan("http2_window", rtt, 100, http2_window=window, bytes=3_000_000)
    found["marked"] = Plan("congestion", 30, 20, 2, 6_000_000, mark_bytes=8_000, also=("line",))
    found["reordered"] = Plan("congestion", 30, 0, 1, 4_000_000, late=4, receive_bytes=12_000_000, also=("none",))
    found["beside_queue"] = Plan("line", 30, 10, 4, 3_000_000, beside=(60, 3, 3))
    found["beside_queue_up"] = Plan("line", 20, 8, 6, 2_500_000, upload=True, beside=(50, 2, 2))
    found["beside_slow"] = Plan("receiver_window", 30, 50, receive_bytes=40_000, bytes=3_000_000, beside=(250, 3, 120))
    found["beside_both"] = Plan("line", 30, 10, 4, 3_000_000, beside=(400, 3, 150))
    found["start"] = Plan("start", 120, 0, bytes=400_000)
    return found


def drawn(count: int, seed: int) -> dict[str, Plan]:
    """Situations of every kind with random parameters: 2 to 150 ms, 2 to 200 Mbit/s, queues of 0.2 to 8 BDP."""
    by = random.Random(seed)
    kinds = [_window, _line, _loss, _reader, _writer, _window, _line, _paced, _buffer, _http2, _line, _reader]
    found = {}
    for number in range(count):
        made = kinds[number % len(kinds)]
        found[f"{number:02}{made.__name__}"] = made(by)
    return found


def _log(by: random.Random, low: float, high: float) -> float:
    return float(f"{low * (high / low) ** by.random():.3g}")


def _window(by: random.Random) -> Plan:
    line, rtt = _log(by, 5, 200), _log(by, 2, 150)
    while bdp(line, rtt) < 30_000:
        line, rtt = _log(by, 5, 200), _log(by, 2, 150)
    size = min(max(int(bdp(line, rtt) * by.uniform(0.1, 0.5)), 8_000), 1_500_000)
    moved = min(8_000_000, max(400_000, int(size / rtt * 4_000)))
    cc = by.choice(["cubic", "reno", "bbr"])
    unscaled = bdp(line, rtt) > 150_000 and by.random() < 0.4
    if unscaled:
        return Plan("receiver_window", rtt, line, bytes=min(3_000_000, moved), scaling=False, cc=cc)
    return Plan("receiver_window", rtt, line, bytes=moved, receive_bytes=size, cc=cc, upload=by.random() < 0.3)


def _line(by: random.Random) -> Plan:
    line, rtt, queue = _log(by, 2, 200), _log(by, 2, 150), _log(by, 0.2, 8)
    moved = min(14_000_000, max(700_000, int(line * 125_000 * 4), bdp(line, rtt) * 20))
    also = ("congestion",) if queue < 1 else ()
    cc = by.choice(["cubic", "reno", "bbr"])
    return Plan("line", rtt, line, queue, moved, cc=cc, also=also, upload=by.random() < 0.3)


def _loss(by: random.Random) -> Plan:
    loss, cc = _log(by, 0.1, 3), by.choice(["cubic", "reno"])
    return Plan("congestion", _log(by, 4, 100), 0, bytes=int(min(9e6, max(2e6, 3e7 / loss / 10))), cc=cc, loss=loss)


def _reader(by: random.Random) -> Plan:
    size, each = int(_log(by, 16_000, 120_000)), _log(by, 20, 90)
    buffer = by.choice([0, int(size * by.uniform(2, 6))])
    moved, cc = int(size * _log(by, 50, 90)), by.choice(["cubic", "bbr"])
    return Plan("receiver_program", _log(by, 4, 90), 200, reader=(size, each), receive_bytes=buffer, bytes=moved, cc=cc,
                upload=by.random() < 0.3)  # fmt: skip


def _writer(by: random.Random) -> Plan:
    size = int(_log(by, 10_000, 200_000))
    return Plan("sender_program", _log(by, 4, 60), 200, writer=(size, _log(by, 20, 300)), bytes=size * 30)


def _paced(by: random.Random) -> Plan:
    rate = _log(by, 2, 40)
    return Plan("pacing", _log(by, 4, 80), 200, pace=rate, bytes=int(rate * 350_000))


def _buffer(by: random.Random) -> Plan:
    size = int(_log(by, 15_000, 90_000))
    return Plan("sender_buffer", _log(by, 5, 90), 200, send_bytes=size, bytes=size * 60)


def _http2(by: random.Random) -> Plan:
    window = by.choice([65_535, 131_072, 262_144])
    return Plan("http2_window", _log(by, 20, 120), 200, http2_window=window, bytes=window * 30)


def tun(name: str, address: str, *settings: str) -> int:
    """Move this process into a network namespace of its own with one device; give the device."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "no network namespace")
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN_NO_PI))
    for words in (("link", "set", "lo", "up"), ("addr", "add", f"{address}/24", "dev", name),
                  ("link", "set", name, "txqueuelen", "10000", "up")):  # fmt: skip
        subprocess.run(["ip", *words], check=True)
    for setting in ("net.ipv4.tcp_rmem=4096 131072 33554432", "net.ipv4.tcp_wmem=4096 16384 16777216", *settings):
        key, value = setting.split("=")
        Path("/proc/sys", key.replace(".", "/")).write_text(value)
    return device


def info(sock: socket.socket) -> dict[str, float]:
    """What the kernel counts of a connection (linux/tcp.h, struct tcp_info)."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256)
    words = struct.unpack_from("<24I", raw, 8)
    busy, window, buffer = struct.unpack_from("<3Q", raw, 168)
    least, sent = struct.unpack_from("<I", raw, 148)[0], struct.unpack_from("<I", raw, 156)[0]
    return {"rtt_ms": words[15] / 1e3, "min_rtt_ms": least / 1e3, "cwnd": words[18], "retransmissions": words[23],
            "segments": sent, "marks": struct.unpack_from("<I", raw, 196)[0], "busy_ms": busy / 1e3,
            "rwnd_limited_ms": window / 1e3, "sndbuf_limited_ms": buffer / 1e3}  # fmt: skip


def prepared(sock: socket.socket, plan: Plan, sends: bool) -> None:
    """Buffers have to be set before the connection, as the window scale follows from them."""
    if plan.http2_window:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sends:
        sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, plan.cc.encode())
        if plan.pace:
            sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, int(plan.pace * 125_000))
    elif plan.receive_bytes:
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, plan.receive_bytes)


def frame(kind: int, flags: int, stream: int, data: bytes) -> bytes:
    return struct.pack(">I", len(data))[1:] + struct.pack(">BBI", kind, flags, stream) + data


def sent(sock: socket.socket, plan: Plan, head: bytes) -> list[dict[str, float]]:
    """Send the body, and watch the kernel: `at_ms` since the first byte."""
    begin, seen, over = time.monotonic(), [], threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            seen.append({"at_ms": (time.monotonic() - begin) * 1e3, **info(sock)})

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        sock.sendall(head)
        if plan.http2_window:
            _frames(sock, plan)
        elif plan.writer:
            size, each = plan.writer
            for number in range(plan.bytes // size):
                rest = begin + number * each / 1e3 - time.monotonic()
                time.sleep(max(rest, 0))
                sock.sendall(b"\0" * size)
        elif plan.send_bytes:
            _bounded(sock, plan)
        else:
            sock.sendall(bytes(plan.bytes))
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(65_536):
            pass
    finally:
        seen.append({"at_ms": (time.monotonic() - begin) * 1e3, **info(sock)})
        over.set()
        watcher.join()
    return seen


def _bounded(sock: socket.socket, plan: Plan) -> None:
    """What a send buffer of that size does (SO_SNDBUF bounds nothing before a TUN device, which orphans what it gets):
    the program goes on when a third of it is free (sk_stream_write_space)."""
    left = plan.bytes
    while left:
        held = struct.unpack("i", fcntl.ioctl(sock, TIOCOUTQ, bytes(4)))[0]
        if held > plan.send_bytes * 2 // 3:
            time.sleep(50e-6)
            continue
        size = min(left, plan.send_bytes - held)
        sock.sendall(bytes(size))
        left -= size


def _frames(sock: socket.socket, plan: Plan) -> None:
    """DATA frames up to the window that the client gives; its WINDOW_UPDATEs are read as they come."""
    room, left, rest = plan.http2_window, plan.bytes, b""
    while left:
        size = min(room, left, 16_384)
        if size >= min(left, 16_384) or (size > 0 and not rest and room < 16_384):
            left, room = left - size, room - size
            sock.sendall(frame(0, int(not left), 1, bytes(size)))
            continue
        rest += sock.recv(4096)
        while len(rest) >= 9 and len(rest) >= 9 + int.from_bytes(rest[:3], "big"):
            length = int.from_bytes(rest[:3], "big")
            if rest[3] == 8 and rest[5:9] == b"\0\0\0\1":
                room += int.from_bytes(rest[9:13], "big")
            rest = rest[9 + length :]


def received(sock: socket.socket, plan: Plan, first: bytes) -> dict[str, float]:
    """Read to the end; bytes and time between the first and the last."""
    count, begin, unread, slow = len(first), time.monotonic(), 0, plan.reader
    end = begin
    while True:
        data = sock.recv(slow[0] if slow else 1 << 18)
        if not data:
            break
        count, unread, end = count + len(data), unread + len(data), time.monotonic()
        if slow:
            time.sleep(slow[1] / 1e3 * len(data) / slow[0])
        if plan.http2_window and unread >= plan.http2_window // 2:
            given = struct.pack(">I", unread)
            sock.sendall(frame(8, 0, 1, given) + frame(8, 0, 0, given))
            unread = 0
    return {"bytes": count, "seconds": end - begin}


H2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def small(sock: socket.socket, plan: Plan, over: threading.Event, begun: threading.Event) -> list[tuple[float, bool]]:
    """The client of the second connection: how long each request took in ms, and whether the transfer lasted."""
    assert plan.beside
    took = []
    for number in range(1 << 20):
        if over.is_set() and number > 8:
            break
        loaded, start = begun.is_set() and not over.is_set(), time.monotonic()
        sock.sendall(b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n")
        sock.recv(4096)
        took.append(((time.monotonic() - start) * 1e3, loaded and not over.is_set()))
        time.sleep(plan.beside[0] / 1e3)
    return took


def served(sock: socket.socket, plan: Plan, busy: threading.Event) -> None:
    """The server of the second connection."""
    assert plan.beside
    _, idle, loaded = plan.beside
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while sock.recv(4096):
        time.sleep((loaded if busy.is_set() else idle) / 1e3)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def server(plan: Plan) -> dict[str, Any]:
    busy = threading.Event()
    if not plan.beside:
        return _server(plan, busy)
    with socket.create_server((SERVER, PORT + 1)) as second:
        beside = threading.Thread(target=lambda: served(second.accept()[0], plan, busy))
        beside.start()
        found = _server(plan, busy)
        busy.clear()
        beside.join()
    return found


def _server(plan: Plan, busy: threading.Event) -> dict[str, Any]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        prepared(listener, plan, not plan.upload)
        listener.bind((SERVER, PORT))
        listener.listen()
        os.write(1, b"up\n")
        sock, _ = listener.accept()
    with sock:
        busy.set()
        if plan.upload:
            first = sock.recv(4096)
            found = received(sock, plan, first)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return found
        sock.recv(4096)
        if plan.http2_window:
            head = frame(4, 0, 0, b"") + frame(4, 1, 0, b"") + frame(1, 4, 1, b"\x88")
        else:
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % plan.bytes
        return {"seen": sent(sock, plan, head)}


def client(plan: Plan) -> dict[str, Any]:
    if not plan.beside:
        return _client(plan)
    over, begun, took = threading.Event(), threading.Event(), []
    with socket.create_connection((SERVER, PORT + 1)) as second:
        second.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        beside = threading.Thread(target=lambda: took.extend(small(second, plan, over, begun)))
        beside.start()
        time.sleep(0.8)
        begun.set()
        found = _client(plan)
        over.set()
        beside.join()
    found["beside_idle_ms"] = statistics.median(ms for ms, loaded in took if not loaded)
    found["beside_load_ms"] = statistics.median(ms for ms, loaded in took if loaded)
    found["beside"] = sum(loaded for _, loaded in took)
    return found


def _client(plan: Plan) -> dict[str, Any]:
    with socket.socket() as sock:
        prepared(sock, plan, plan.upload)
        sock.connect((SERVER, PORT))
        time.sleep(0.05)
        if plan.upload:
            return {"seen": sent(sock, plan, b"PUT /f HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % plan.bytes)}
        if plan.http2_window:
            window = struct.pack(">HI", 4, plan.http2_window)
            wider = frame(8, 0, 0, struct.pack(">I", plan.http2_window - 65_535)) if plan.http2_window > 65_535 else b""
            fields = bytes([0x82, 0x84, 0x86, 0x41, 1]) + b"a"
            sock.sendall(H2 + frame(4, 0, 0, window) + wider + frame(1, 5, 1, fields))
        else:
            sock.sendall(b"GET /f HTTP/1.1\r\nHost: a\r\n\r\n")
        return received(sock, plan, sock.recv(4096))


def end(role: str, plan: Plan, channel: socket.socket) -> None:
    """One end, in a process of its own: gives its device, waits for the line, runs its program, prints what it saw."""
    settings = [f"net.ipv4.tcp_window_scaling={int(plan.scaling)}", f"net.ipv4.tcp_ecn={int(plan.mark_bytes > 0)}"]
    device = tun(f"line-{role[0]}", CLIENT if role == "client" else SERVER, *settings)
    socket.send_fds(channel, [b"d"], [device])
    channel.recv(1)
    found = {"client": client, "server": server}[role](plan)
    os.write(1, json.dumps(found).encode() + b"\n")


def built() -> Path:
    """The line's program; compiled once a run."""
    path = Path(tempfile.mkdtemp(prefix="latpcap-line-")) / "line"
    subprocess.run(["cc", "-O2", "-o", path, HERE / "line.c"], check=True)
    return path


def record(line: Path, plan: Plan, folder: Path, snap: int = SNAP) -> dict[str, Any]:
    """Run one transfer; its truth. Captures go to client.pcap and server.pcap of the folder, `snap` bytes a packet."""
    folder.mkdir(parents=True, exist_ok=True)
    ends, devices = {}, {}
    with contextlib.ExitStack() as stack:
        for role in ("server", "client"):
            mine, theirs = socket.socketpair()
            words = [sys.executable, __file__, "--end", role, json.dumps(asdict(plan)), str(theirs.fileno())]
            process = subprocess.Popen(words, stdout=subprocess.PIPE, pass_fds=[theirs.fileno()])
            stack.callback(process.kill)
            theirs.close()
            devices[role] = socket.recv_fds(mine, 1, 1)[1][0]
            stack.callback(os.close, devices[role])
            ends[role] = (process, mine)
        roles = ("client", "server") if plan.upload else ("server", "client")
        queue = max(plan.queue_bdp * bdp(plan.line, plan.rtt), 4_500) if plan.line else 1e9
        numbers = [str(devices[role]) for role in roles] + [str(folder / f"{role}.pcap") for role in roles]
        snap = 65_535 if plan.http2_window else snap
        numbers += map(str, (snap, plan.line, int(queue), int(plan.rtt * 500), int(plan.loss * 1e4),
                             int(plan.late * 1e4), int(plan.rtt * 200), plan.mark_bytes, 7))  # fmt: skip
        between = subprocess.Popen([line, *numbers], pass_fds=list(devices.values()))
        stack.callback(between.wait)
        stack.callback(between.send_signal, signal.SIGTERM)
        found = {}
        for role in ("server", "client"):
            ends[role][1].sendall(b"g")
            if role == "server":
                assert ends[role][0].stdout.readline() == b"up\n"
        for role in ("client", "server"):
            found[role] = json.loads(ends[role][0].stdout.readline())
            ends[role][0].wait()
    sender, receiver = roles
    seen, got = found[sender]["seen"], found[receiver]
    last = seen[-1]
    loaded = [one for one in seen if one["at_ms"] >= got["seconds"] * 1e3 / 3 and one["at_ms"] <= got["seconds"] * 1e3]
    trips = [one["rtt_ms"] for one in loaded or seen]
    truth = {
        "case": folder.name, "limited_by": plan.limited_by, "also": plan.also, "sender": sender, "receiver": receiver,
        "bytes": got["bytes"], "seconds": got["seconds"], "rate_mbit": got["bytes"] * 8e-6 / max(got["seconds"], 1e-9),
        "line": asdict(plan), **{name: value for name, value in found["client"].items() if name.startswith("beside")},
        "kernel": {**last, "rtt_idle_ms": last["min_rtt_ms"], "rtt_load_ms": statistics.median(trips),
                   "queue_ms": statistics.mean(trips) - last["min_rtt_ms"]},
    }  # fmt: skip
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    return truth


FAR = {"sender_program", "sender_buffer", "pacing", "http2_window", "none"}
"""What cannot be told apart away from the sender."""


def right(truth: dict[str, Any], row: dict[str, Any], at_sender: bool) -> bool:
    """Does the limit agree? Away from the sender one of its side is right, too."""
    want, got = truth["limited_by"], row["limited_by"]
    if got in {want, *truth["also"]} or (want, got) == ("receiver_program", "receiver_window"):
        return True  # a slow reader's window need not close
    return not at_sender and ((got in FAR and want in FAR) or got.split("_")[0] == want.split("_")[0] == "receiver")


def near(got: float | None, want: float, share: float, least: float) -> bool:
    return got is not None and abs(got - want) <= max(share * want, least)


def score(folder: Path) -> None:
    """Print what is not right, and the shares: of the time for `limited_by`, else of the recordings."""
    import latpcap

    sums: dict[str, list[float]] = {}

    def add(name: str, good: bool, weight: float = 1) -> None:
        sums.setdefault(name, [0, 0])
        sums[name] = [sums[name][0] + weight * good, sums[name][1] + weight]

    for path in sorted(folder.glob("*/truth.json")):
        truth = json.loads(path.read_text())
        for end in ("client", "server"):
            rows = latpcap.read(path.parent / f"{end}.pcap").arrow("transfers").to_pylist()
            row, at_sender = max(rows, key=lambda row: row["bytes"]), truth["sender"] == end
            good, kernel = right(truth, row, at_sender), truth["kernel"]
            fast = near(row["rate_mbit"], truth["rate_mbit"], 0.01, 0)
            add("limit at the " + ("sender" if at_sender else "receiver"), good, truth["seconds"])
            add("wrong and proven", not good and row["grade"] == "proven")
            add("rate", fast)
            if at_sender:
                add("idle round trip", near(row["rtt_idle_ms"], kernel["rtt_idle_ms"], 0.1, 0.3))
            if at_sender and truth["limited_by"] == "line":
                add("standing queue", near(row["queue_ms"], kernel["queue_ms"], 0.1, 1))
            if not good or not fast:
                shown = {name: row[name] for name in ("limited_by", "grade", "rival", "rate_mbit")}
                sys.stdout.write(f"{truth['case']} {end} {shown} of {truth['limited_by']} {truth['rate_mbit']}\n")
    for name, (have, all_) in sums.items():
        sys.stdout.write(f"{name:22} {have:8.1f} of {all_:8.1f}: {have / all_:.3f}\n")


def missing() -> str | None:
    """Why nothing can be recorded here; None where it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs root on Linux"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "needs /dev/net/tun"
    lacking = [name for name in ("cc", "ip") if shutil.which(name) is None]
    return f"needs {', '.join(lacking)}" if lacking else None


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--only", nargs="*")
    options.add_argument("--drawn", type=int, default=0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--score", action="store_true")
    chosen = options.parse_args()
    if chosen.score:
        return score(chosen.folder)
    line = built()
    made = drawn(chosen.drawn, chosen.seed) if chosen.drawn else plans()
    for name, plan in made.items():
        if chosen.only is None or name in chosen.only:
            truth = record(line, plan, chosen.folder / name)
            sys.stdout.write(f"{name} {truth['rate_mbit']:.2f} {truth['kernel']}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--end"]:
        role, words, number = sys.argv[2:5]
        end(role, Plan(**json.loads(words)), socket.socket(fileno=int(number)))
    else:
        main()
