"""Record the sample captures of this folder again, with real programs, on one Linux machine.

Two network namespaces, joined by a veth pair, play client and server:

    client 192.168.0.2  <---- veth, no delay added ---->  192.168.0.30 server
    wrk, ping, hping3, traceroute                         nginx, tcpdump

nginx listens twice, with one difference: on port 80 `tcp_nodelay` is on, on port 8080 it is off. Its answer
leaves in two small writes (head, then the file), so on 8080 Nagle's algorithm holds the body until the client
acknowledges the head, and the client's kernel delays that ACK: the stall that the samples show.

Nothing leaves the two namespaces. Both are removed at the end, also after a failure or Ctrl-C, and the files
of `--out` are replaced only when everything was recorded.

Exit codes: 0 recorded, 1 a step failed, 2 the machine lacks something.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

CLIENT_ADDRESS = "192.168.0.2"
SERVER_ADDRESS = "192.168.0.30"

LAB_PROGRAMS = {"ip": "iproute2", "tcpdump": "tcpdump"}
"""Programs that every recording needs, each with its Debian package."""

SAMPLE_PROGRAMS = LAB_PROGRAMS | {
    "nginx": "nginx-light",
    "wrk": "wrk",
    "ping": "iputils-ping",
    "hping3": "hping3",
    "traceroute": "traceroute",
    "stdbuf": "coreutils",
}

CONNECTIONS = 40
GOOD_PACKETS = 4000
"""Packets of nginx-good.pcap: without the stall, one second of wrk would be some 40 MB."""

PAGE_BYTES = 612

NGINX_CONF = """\
daemon off;
worker_processes 1;
pid {home}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    types {{ text/html html; }}
    sendfile on;              # head by writev, body by sendfile: two segments
    tcp_nopush off;           # on (TCP_CORK) would join them
    keepalive_requests 1000000;
    root {home}/www;
{temp_paths}
    server {{ listen {address}:80;   tcp_nodelay on; }}
    server {{ listen {address}:8080; tcp_nodelay off; }}
}}
"""


class MissingError(Exception):
    """The machine lacks a program or a permission; nothing was recorded (exit code 2)."""


class StepError(Exception):
    """A program did not do what the recording needs (exit code 1)."""


def require(programs: dict[str, str]) -> None:
    """Stop with one sentence unless this is Linux, we are root and every program is there."""
    if sys.platform != "linux":
        raise MissingError(f"network namespaces are Linux only, and this is {platform.system()}")
    if os.geteuid() != 0:
        raise MissingError("network namespaces and tcpdump need root: run it again with sudo")
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = [program for program in programs if shutil.which(program) is None]
    if lacking:
        packages = " ".join(dict.fromkeys(programs[program] for program in lacking))
        raise MissingError(f"not installed: {', '.join(lacking)} (Debian: apt-get install {packages})")


def wait_until(ready: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until `ready`, or fail with the sentence '<what> after <seconds> s'."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise StepError(f"{what} after {seconds:g} s")
        time.sleep(0.02)


class Lab:
    """The namespaces of client and server, as a context manager that removes them and ends their programs."""

    def __init__(self) -> None:
        self.client = f"latpcap-client-{os.getpid()}"
        self.server = f"latpcap-server-{os.getpid()}"
        self._undo = ExitStack()

    def __enter__(self) -> Lab:
        try:
            self.home = Path(self._undo.enter_context(tempfile.TemporaryDirectory(prefix="latpcap-")))
            self.home.chmod(0o755)  # nginx's worker is not root
            self._build()
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):  # a second Ctrl-C must not interrupt the removal
            signal.signal(number, signal.SIG_IGN)
        self._undo.close()

    def _build(self) -> None:
        for namespace in (self.client, self.server):
            self._undo.callback(subprocess.run, ["ip", "netns", "del", namespace], capture_output=True)
            done = subprocess.run(["ip", "netns", "add", namespace], capture_output=True, text=True, check=False)
            if done.returncode:
                raise MissingError(f"network namespaces are not allowed here: {done.stderr.strip()}")
        veth = f"ip link add eth0 address 02:00:00:00:00:02 netns {self.client} type veth"
        self._setup(f"{veth} peer name eth0 address 02:00:00:00:00:30 netns {self.server}")
        for namespace, address in ((self.client, CLIENT_ADDRESS), (self.server, SERVER_ADDRESS)):
            self._setup(f"ip -n {namespace} addr add {address}/24 dev eth0")
            self._setup(f"ip -n {namespace} link set lo up")
            self._setup(f"ip -n {namespace} link set eth0 addrgenmode none up")  # no IPv6 chatter

    def _setup(self, command: str) -> None:
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise StepError(f"{command}: {done.stderr.strip()}")

    def run(self, namespace: str, command: Sequence[str], seconds: float) -> str:
        """Run a program to its end, for at most `seconds`, and return its output."""
        argv = ["ip", "netns", "exec", namespace, *command]
        try:
            done = subprocess.run(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StepError(f"{' '.join(command)}: not finished after {seconds:g} s") from None
        if done.returncode:
            raise StepError(f"{' '.join(command)}: exit code {done.returncode}: {done.stdout.strip()}")
        return done.stdout

    @contextmanager
    def running(self, namespace: str, command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program during the block, with its output in `log`; its process group is ended with the block."""
        argv = ["ip", "netns", "exec", namespace, *command]
        with log.open("wb") as output:
            process = subprocess.Popen(argv, stdout=output, stderr=output, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    @contextmanager
    def capture(self, path: Path, only: str = "", count: int = 0) -> Iterator[None]:
        """Capture full packets at the server, at most `count` if given. StepError if the kernel dropped a packet."""
        command = f"tcpdump -i eth0 -n -Z root -B 32768 -w {path}".split()
        command += (["-c", str(count)] if count else []) + ([only] if only else [])
        log = self.home / f"{path.stem}.tcpdump"
        with self.running(self.server, command, log) as tcpdump:
            read_log = log.read_text
            wait_until(lambda: "listening on" in read_log(), 5, "tcpdump is not listening")
            yield
            time.sleep(1.5)  # the kernel hands frames over in blocks, a second late at most
            if tcpdump.poll() is None:
                tcpdump.send_signal(signal.SIGINT)
            tcpdump.wait(5)
        counts = re.search(r"(\d+) packets? captured\n.*\n0 packets dropped by kernel", read_log())
        if not counts:
            raise StepError(f"{path.name}: tcpdump did not see every packet: {read_log().strip()}")
        print(f"{path.name}: {counts[1]} packets, {path.stat().st_size} bytes, none dropped by the kernel")


@contextmanager
def nginx(lab: Lab) -> Iterator[None]:
    """Run nginx on ports 80 and 8080 of the server with one page of PAGE_BYTES bytes."""
    www = lab.home / "www"
    www.mkdir()
    page = www / "index.html"
    html = "<!DOCTYPE html>\n<html><head><title>latpcap sample</title></head>\n<body><p>A small page.</p>\n"
    end = "</body></html>\n"
    page.write_text(html + "x" * (PAGE_BYTES - len(html) - len(end) - 1) + "\n" + end)
    os.utime(page, (1_767_225_600, 1_767_225_600))  # 2026-01-01, so that ETag and Last-Modified stay the same
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")  # the default is /var/lib/nginx
    temp_paths = "\n".join(f"    {kind}_temp_path {lab.home}/{kind};" for kind in kinds)
    conf = lab.home / "nginx.conf"
    conf.write_text(NGINX_CONF.format(home=lab.home, address=SERVER_ADDRESS, temp_paths=temp_paths))
    log = lab.home / "nginx.log"
    with lab.running(lab.server, ["nginx", "-e", "stderr", "-c", str(conf)], log) as process:
        pid_file = lab.home / "nginx.pid"  # written once nginx listens

        def ready() -> bool:
            if process.poll() is not None:
                raise StepError(f"nginx did not start: {log.read_text().strip()}")
            return pid_file.exists()

        wait_until(ready, 5, "nginx does not listen")
        yield


def record_samples(lab: Lab, out: Path) -> None:
    """Fill `out` with the three captures and the output of the programs."""

    def client(command: str, output: str) -> None:
        (out / output).write_text(lab.run(lab.client, command.split(), seconds=20))

    with nginx(lab):
        with lab.capture(out / "probes.pcap"):
            client(f"ping -n -c 5 -i 0.2 {SERVER_ADDRESS}", "ping.txt")
            client(f"stdbuf -oL hping3 -S -p 80 -c 3 {SERVER_ADDRESS}", "hping3.txt")
            client(f"stdbuf -oL hping3 -S -p 81 -c 3 {SERVER_ADDRESS}", "hping3-81.txt")
            client(f"traceroute -n -T -p 80 {SERVER_ADDRESS}", "traceroute.txt")
        wrk = f"wrk --latency -t 1 -c {CONNECTIONS} -d 1s"
        with lab.capture(out / "nginx-latency.pcap", "tcp port 8080"):
            client(f"{wrk} http://{SERVER_ADDRESS}:8080/", "nginx-latency.wrk.txt")
        with lab.capture(out / "nginx-good.pcap", "tcp port 80", GOOD_PACKETS):
            client(f"{wrk} http://{SERVER_ADDRESS}/", "nginx-good.wrk.txt")


def main(programs: dict[str, str], record: Callable[[Lab, Path], None], about: str, default_out: Path) -> int:
    """The command line of both recording scripts: check the machine, record aside, copy to `--out`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    needs = [f"  {program:<11} {package}" for program, package in programs.items()]
    parser.epilog = "\n".join(["needs Linux, root, and these programs (with the Debian package of each):", *needs])
    parser.add_argument("--out", type=Path, default=default_out, help="folder to fill (default: beside the script)")
    out: Path = parser.parse_args().out
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        require(programs)
        with Lab() as lab:
            aside = lab.home / "out"
            aside.mkdir()
            record(lab, aside)
            out.mkdir(parents=True, exist_ok=True)
            for file in sorted(aside.iterdir()):
                shutil.copyfile(file, out / file.name)
    except MissingError as reason:
        print(f"{parser.prog}: {reason}", file=sys.stderr)
        return 2
    except (StepError, OSError, subprocess.SubprocessError) as reason:
        print(f"{parser.prog}: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(SAMPLE_PROGRAMS, record_samples, __doc__ or "", Path(__file__).resolve().parent))
