"""Records downloads over HTTP/2 from nginx whose windows are small, at both ends, plain and in TLS with keys.

    python tests/recorders/http2.py FOLDER [NAME ...]

Needs what `transfers.py` needs, nginx, nghttp, h2load and openssl. Each of RUNS becomes FOLDER/NAME/client.pcap and
server.pcap; of TLS keys.txt, too. nghttp takes windows as bits: -w of each stream, -W of the connection.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from recorders.transfers import CLIENT, H2, SERVER, bdp, built, frame, tun

PORT, SEALED = 8080, 8443
CONFIG = """daemon off; user root; worker_processes 1; pid {at}/pid; error_log {at}/error;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {at}; proxy_temp_path {at}; fastcgi_temp_path {at}; uwsgi_temp_path {at};
  scgi_temp_path {at};
  server {{ listen {ip}:8080 http2; root {at}; }}
  server {{ listen {ip}:8443 ssl http2; ssl_certificate {at}/cert; ssl_certificate_key {at}/key; root {at}; }}
}}
"""


@dataclass
class Run:
    """A client, and the path to nginx: ms of round trip, Mbit/s, and the queue in shares of what the path holds."""

    client: str
    rtt: float = 50
    line: float = 100
    queue: float = 1
    bytes: int = 500_000


PLAIN = f"http://{SERVER}:{PORT}/file"
RUNS = {
    "stream": Run(f"nghttp -n -w 16 -W 22 {PLAIN}"),
    "connection": Run(f"nghttp -n -w 22 -W 16 {PLAIN}"),
    "wide": Run(f"nghttp -n -w 24 -W 24 {PLAIN}", line=10, queue=2),
    "parallel": Run(f"h2load -n 6 -c 1 -m 3 -w 16 -W 17 {PLAIN}", rtt=40, bytes=200_000),
    "sealed": Run("sealed 32768", rtt=60, bytes=190_000),
}


def sealed(window: int, keys: str) -> None:
    """A client in TLS that writes down its keys, and gives each half of its window again when it has read it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    context.keylog_filename = keys
    with socket.create_connection((SERVER, SEALED)) as plain, context.wrap_socket(plain) as sock:
        settings = (4).to_bytes(2, "big") + window.to_bytes(4, "big")
        fields = bytes([0x82, 0x87, 0x04, 5]) + b"/file" + bytes([0x41, 1]) + b"a"
        sock.sendall(H2 + frame(4, 0, 0, settings) + frame(1, 5, 1, fields))
        rest, unread = b"", 0
        while data := sock.recv(1 << 16):
            rest += data
            while len(rest) >= 9 and len(rest) >= 9 + int.from_bytes(rest[:3], "big"):
                size = int.from_bytes(rest[:3], "big")
                unread += size * (rest[3] == 0)
                if rest[3] == 0 and rest[4] & 1:
                    return
                rest = rest[9 + size :]
            if unread >= window // 2:
                more = unread.to_bytes(4, "big")
                sock.sendall(frame(8, 0, 1, more) + frame(8, 0, 0, more))
                unread = 0


def end(role: str, command: str, keys: str, channel: socket.socket) -> None:
    """One end in a namespace of its own: gives its device, runs its program when told, and says when that is over."""
    device = tun(f"line-{role[0]}", CLIENT if role == "client" else SERVER)
    socket.send_fds(channel, [b"d"], [device])
    channel.recv(1)
    if command.startswith("sealed"):
        sealed(int(command.split()[1]), keys)
    else:
        program = subprocess.Popen(shlex.split(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if role == "server":
            time.sleep(1)
            channel.sendall(b"u")
            channel.recv(1)
            program.terminate()
        program.wait()
    channel.sendall(b"e")


def record(line: Path, run: Run, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (place / "file").write_bytes(bytes(run.bytes))
        (place / "config").write_text(CONFIG.format(at=place, ip=SERVER))
        made = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {place}/key -out {place}/cert -days 9 -subj /CN=a"
        subprocess.run(shlex.split(made), check=True, stderr=subprocess.DEVNULL)
        commands = {"server": f"nginx -p {place} -c {place}/config", "client": run.client}
        channels: dict[str, socket.socket] = {}
        devices: dict[str, int] = {}
        for role, command in commands.items():
            mine, theirs = socket.socketpair()
            ours = [sys.executable, __file__, "--end", role, command, str(folder / "keys.txt"), str(theirs.fileno())]
            process = subprocess.Popen(ours, pass_fds=[theirs.fileno()])
            stack.callback(process.kill)
            theirs.close()
            devices[role], channels[role] = socket.recv_fds(mine, 1, 1)[1][0], mine
            stack.callback(os.close, devices[role])
        words = [
            str(devices["server"]),
            str(devices["client"]),
            str(folder / "server.pcap"),
            str(folder / "client.pcap"),
        ]
        numbers: list[Any] = [65_535, run.line, int(run.queue * bdp(run.line, run.rtt)), int(run.rtt * 500)]
        between = subprocess.Popen(
            [line, *words, *map(str, [*numbers, 0, 0, 0, 0, 7])], pass_fds=list(devices.values())
        )
        stack.callback(between.wait)
        stack.callback(between.send_signal, signal.SIGTERM)
        for role in ("server", "client"):
            channels[role].sendall(b"g")
            channels[role].recv(1)
        channels["server"].sendall(b"x")
        channels["server"].recv(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--end"]:
        role, command, keys, number = sys.argv[2:6]
        end(role, command, keys, socket.socket(fileno=int(number)))
    else:
        program = built()
        for name in sys.argv[2:] or list(RUNS):
            record(program, RUNS[name], Path(sys.argv[1]) / name)
            sys.stdout.write(json.dumps(name) + "\n")
