"""Record the pair of captures of docs/two-captures.md: one connection's packets at the client and at the server.

Four network namespaces of one machine:

    client 10.77.1.2 <-- line: 4 ms each way, drops a few packets --> router, NAT <--> 10.77.2.7 server
    requests, tcpdump                                                                  nginx on port 8080, tcpdump

nginx writes its answers in two parts with `tcp_nodelay off`, so the second waits for the client's ACK. The line is
this program: it hands frames from one interface to the other, 4 ms later. Both captures are stamped by one clock;
afterwards the server's is set: 2.5 s ahead and 40 ppm faster, as a server without NTP would have it.

usage: sudo python3 sample_pcaps/two_points.py --out DIR (needs iproute2, ethtool, nftables, tcpdump,
nginx-light)
"""

from __future__ import annotations

import argparse
import heapq
import http.client
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

CLIENT, SERVER, PORT = "10.77.1.2", "10.77.2.7", 8080
DELAY_S = 0.004
AHEAD_NS, PPM = 2_500_000_000, 40
REQUESTS, CONNECTIONS = 60, 2
DROPPED = 40
"""One data frame in 40 is dropped."""

NGINX = """\
daemon off; worker_processes 1; pid {home}/nginx.pid; error_log stderr warn;
events {{ worker_connections 64; }}
http {{ access_log off; sendfile on; tcp_nopush off; tcp_nodelay off; client_body_temp_path {home}/a;
  proxy_temp_path {home}/b; fastcgi_temp_path {home}/c; uwsgi_temp_path {home}/d; scgi_temp_path {home}/e;
  server {{ listen {port}; root {home}/www; }} }}
"""


def run(*words: str) -> None:
    """Run a command that has to succeed."""
    subprocess.run(words, check=True)


def inside(name: str, *words: str) -> list[str]:
    """Return the words that run a command in a namespace."""
    return ["ip", "netns", "exec", f"two-{name}", *words]


def line(left: str, right: str) -> None:
    """Forward frames between both interfaces with a delay and losses; runs until it is stopped."""
    ports = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2)]
    for port, name in zip(ports, (left, right), strict=True):
        port.bind((name, 0))
    chance, waiting, count = random.Random(7), [], 0
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for port in select.select(ports, [], [], pause)[0]:
            frame, where = port.recvfrom(65536)
            if where[2] == socket.PACKET_OUTGOING:
                continue
            count += 1
            data = len(frame) > 100
            if data and chance.randrange(DROPPED) == 0:
                continue
            heapq.heappush(waiting, (time.monotonic() + DELAY_S, count, frame, ports[1 - ports.index(port)]))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, frame, port = heapq.heappop(waiting)
            port.send(frame)


def lay(stack: ExitStack) -> None:
    """Make the namespaces and join them; all of it goes at the end."""
    for name in ("client", "line", "router", "server"):
        run("ip", "netns", "add", f"two-{name}")
        stack.callback(run, "ip", "netns", "del", f"two-{name}")
        run(*inside(name, "ip", "link", "set", "lo", "up"))
    pairs = (("client", "c0", "line", "l0"), ("line", "l1", "router", "r0"), ("router", "r1", "server", "s0"))
    for one, here, other, there in pairs:
        run(
            "ip",
            "link",
            "add",
            here,
            "netns",
            f"two-{one}",
            "type",
            "veth",
            "peer",
            "name",
            there,
            "netns",
            f"two-{other}",
        )
        run(*inside(one, "ip", "link", "set", here, "up"))
        run(*inside(other, "ip", "link", "set", there, "up"))
    for name, device in (("client", "c0"), ("router", "r0"), ("router", "r1"), ("server", "s0")):
        run(*inside(name, "ethtool", "-K", device, "tx", "off", "tso", "off", "gso", "off", "gro", "off"))
    for name, device, address in (
        ("client", "c0", f"{CLIENT}/24"),
        ("router", "r0", "10.77.1.1/24"),
        ("router", "r1", "10.77.2.1/24"),
        ("server", "s0", f"{SERVER}/24"),
    ):
        run(*inside(name, "ip", "addr", "add", address, "dev", device))
    run(*inside("client", "ip", "route", "add", "default", "via", "10.77.1.1"))
    run(*inside("server", "ip", "route", "add", "default", "via", "10.77.2.1"))
    run(*inside("router", "sysctl", "-qw", "net.ipv4.ip_forward=1"))
    rules = 'table ip nat { chain out { type nat hook postrouting priority 100; oifname "r1" masquerade; }; }'
    run(*inside("router", "nft", rules))


def ask() -> None:
    """The client's requests, one after the other on each connection."""
    for _ in range(CONNECTIONS):
        connection = http.client.HTTPConnection(SERVER, PORT)
        for number in range(REQUESTS // CONNECTIONS):
            connection.request("GET", "/page.html")
            connection.getresponse().read()
            time.sleep(0.01 + 0.002 * (number % 7))
        connection.close()


def set_clock(path: Path) -> None:
    """Stamp a capture as a clock would that is ahead and fast."""
    data, out, at, first = path.read_bytes(), bytearray(), 24, None
    out += data[:24]
    unit = 1 if struct.unpack_from("<I", data)[0] == 0xA1B23C4D else 1000
    while at < len(data):
        seconds, rest, kept, whole = struct.unpack_from("<IIII", data, at)
        instant = seconds * 10**9 + rest * unit
        first = instant if first is None else first
        seconds, rest = divmod(instant + AHEAD_NS + (instant - first) * PPM // 10**6, 10**9)
        out += struct.pack("<IIII", seconds, rest // unit, kept, whole) + data[at + 16 : at + 16 + kept]
        at += 16 + kept
    path.write_bytes(out)


def record(out: Path) -> None:
    """The whole recording."""
    with ExitStack() as stack:
        lay(stack)
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        home.chmod(0o755)
        (home / "www").mkdir()
        (home / "www" / "page.html").write_text("x" * 612)
        (home / "nginx.conf").write_text(NGINX.format(home=home, port=PORT))

        def start(*words: str) -> None:
            process = subprocess.Popen(words)
            stack.callback(process.wait)
            stack.callback(process.send_signal, signal.SIGINT)

        start(*inside("line", sys.executable, __file__, "--line"))
        start(*inside("server", "nginx", "-c", str(home / "nginx.conf"), "-p", str(home)))
        for name, device in (("client", "c0"), ("server", "s0")):
            target = str(out / f"{name}.pcap")
            start(*inside(name, "tcpdump", "-i", device, "-n", "-U", "-s", "128", "-w", target, f"tcp port {PORT}"))
        time.sleep(1.5)
        run(*inside("client", sys.executable, __file__, "--ask"))
        time.sleep(0.5)
    set_clock(out / "server.pcap")


def main() -> None:
    """Record, or play one of the parts that run in a namespace."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "two-points")
    parser.add_argument("--line", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ask", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.line:
        line("l0", "l1")
    elif asked.ask:
        ask()
    else:
        if os.geteuid():
            sys.exit("needs root: it makes network namespaces")
        asked.out.mkdir(parents=True, exist_ok=True)
        record(asked.out)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
