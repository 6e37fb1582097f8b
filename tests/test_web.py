"""Do captures behind http:// read like files, and do downloads that break keep their rows and say so?"""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.server
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import latpcap as lp
from latpcap import bars
from latpcap.reading import timeouts, web

DATA = (Path(__file__).resolve().parents[1] / "sample_pcaps" / "nginx-good.pcap").read_bytes()
SIZE, PART = len(DATA), 600_000


class Server(http.server.BaseHTTPRequestHandler):
    """A web server with all the faults that a path's first word asks for."""

    protocol_version = "HTTP/1.1"
    asked: list[str]
    private: list[str | None]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        name = self.path.partition("?")[0].strip("/").partition(".")[0].split("/")[-1]
        getattr(self, name, self.gone)()

    def answer(self, code: int = 200, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for key, value in ({"Content_Length": str(len(body))} | headers).items():
            if value:
                self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def leave(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        if self.command == "GET":
            self.connection.shutdown(socket.SHUT_RDWR)

    def whole(self) -> None:
        self.answer(body=DATA, ETag='"one"')

    def cut(self) -> None:
        self.answer(body=DATA[:PART], Content_Length=str(SIZE))
        self.leave()

    def reset(self) -> None:
        self.answer(body=DATA[:PART], Content_Length=str(SIZE))
        if self.command == "GET":
            time.sleep(0.1)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        self.close_connection = True

    def long(self) -> None:
        self.answer(body=DATA, Content_Length=str(SIZE + 5000))
        self.leave()

    def short(self) -> None:
        self.answer(body=DATA, Content_Length=str(PART))
        self.leave()

    def nolength(self) -> None:
        self.answer(body=DATA, Content_Length="", Connection="close")
        self.close_connection = True

    def chunks(self, end: int) -> None:
        self.answer(Content_Length="", Transfer_Encoding="chunked")
        if self.command == "GET":
            for at in range(0, end, 50_000):
                piece = DATA[at : min(at + 50_000, end)]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def chunked(self) -> None:
        self.chunks(SIZE)
        if self.command == "GET":
            self.wfile.write(b"0\r\n\r\n")

    def chunkcut(self) -> None:
        self.chunks(PART)
        self.leave()

    def slow(self) -> None:
        self.answer(Content_Length=str(SIZE))
        for at in range(0, SIZE if self.command == "GET" else 0, 300_000):
            self.wfile.write(DATA[at : at + 300_000])
            self.wfile.flush()
            time.sleep(0.05)

    def packed(self) -> None:
        self.answer(body=gzip.compress(DATA, 1), Content_Encoding="gzip")

    def nohead(self) -> None:
        if self.command == "HEAD":
            self.answer(405)
        else:
            self.answer(body=DATA, Last_Modified="Sat, 21 Nov 2026 06:07:32 GMT")

    def moved(self) -> None:
        self.answer(302, Location="/whole.pcap")

    def away(self) -> None:
        """To another server: the same one by another name."""
        port = self.server.server_port  # type: ignore[attr-defined]
        self.answer(302, Location=f"http://localhost:{port}/open.pcap")

    def near(self) -> None:
        self.answer(302, Location="/secret.pcap")

    def downgraded(self) -> None:
        self.answer(302, Location="ftp://127.0.0.1/whole.pcap")

    def open(self) -> None:
        self.private.append(self.headers["Authorization"])
        self.answer(body=DATA)

    def part(self) -> None:
        self.answer(206, DATA[:PART])

    def circle(self) -> None:
        self.answer(302, Location="/circle.pcap")

    def gone(self) -> None:
        self.answer(404)

    def broken(self) -> None:
        self.answer(500)

    def secret(self) -> None:
        told = f"Basic {base64.b64encode(b'me:p@ss').decode()}"
        self.answer(200 if self.headers["Authorization"] == told else 401, DATA)

    def garbage(self) -> None:
        self.wfile.write(b"\0\1 no answer at all\r\n\r\n")
        self.close_connection = True

    def silent(self) -> None:
        time.sleep(0.5)
        self.close_connection = True

    def dripping(self) -> None:
        """A byte now and then: no silence is long."""
        self.send_response(200)
        self.send_header("Content-Length", "4000")
        self.end_headers()
        with contextlib.suppress(OSError):
            for byte in DATA[:200]:
                self.wfile.write(bytes([byte]))
                time.sleep(0.01)
        self.close_connection = True


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    Server.asked, Server.private = [], []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", ["whole", "nolength", "chunked", "slow", "packed", "moved", "nohead"])
def test_a_download_reads_like_a_file(name: str, place: str) -> None:
    cap = lp.read(f"{place}/{name}.pcap")
    assert cap.frames == 4000 and cap.issues.empty
    assert cap.record(7).data == lp.read(DATA).record(7).data, "its bytes can be asked for again"


CUT = [
    ("cut", "the connection was closed 572,114 bytes before the end"),
    ("reset", "connection reset by peer"),
    ("chunkcut", "the connection was closed before the end"),
]


@pytest.mark.parametrize(("name", "why"), CUT)
def test_a_break_keeps_the_rows_up_to_it(name: str, why: str, place: str) -> None:
    cap, whole = lp.read(f"{place}/{name}.pcap"), lp.read(DATA[:PART])
    assert cap.frames == whole.frames == 2093
    assert cap.arrow("events").equals(whole.arrow("events"))
    rows = cap.arrow("issues").to_pylist()
    assert [r["reason"] for r in rows if r["layer"] == "file"] == [f"cannot be read ({why})"]
    assert cap.damage


def test_lengths_that_lie(place: str) -> None:
    """Bytes that were promised and never came are missed; what follows the length is no part of the file."""
    cap = lp.read(f"{place}/long.pcap")
    assert cap.frames == 4000
    assert cap.issues.reason.tolist() == ["cannot be read (the connection was closed 5,000 bytes before the end)"]
    cap = lp.read(f"{place}/short.pcap")
    assert cap.frames == 2093 and [r["layer"] for r in cap.arrow("issues").to_pylist()] == ["pcap"]


REFUSED = [
    ("none", "no such file"),
    ("broken", r"cannot be opened \(the server answered 500 Internal Server Error\)"),
    ("secret", r"cannot be opened \(the server answered 401 Unauthorized\)"),
    ("downgraded", r"cannot be opened \(the server redirects to ftp://, which is not followed\)"),
    ("part", r"cannot be opened \(the server answered 206, expected the whole file \(200\)\)"),
    ("circle", r"cannot be opened \(the server answered 302 Found\)"),
    ("garbage", r"cannot be opened \(no answer that HTTP knows: .*no answer at all\)"),
]


@pytest.mark.parametrize(("name", "why"), REFUSED)
def test_a_refusal_is_one_sentence(name: str, why: str, place: str) -> None:
    with pytest.raises(lp.CaptureError, match=rf"/{name}\.pcap: {why}$") as refused:
        lp.read(f"{place}/{name}.pcap?token=hidden")
    assert "hidden" not in str(refused.value) and "\n" not in str(refused.value)


def test_a_silent_server_is_given_up(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_SILENCE_S", 0.1)
    with pytest.raises(lp.CaptureError, match=r"cannot be opened \(timed out\)"):
        lp.read(f"{place}/silent.pcap")


def test_all_that_is_waited_for_one_download_is_bounded(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the bar tells how much of it is gone."""
    notes: list[str] = []
    monkeypatch.setattr(web, "BUDGET_S", 0.3)
    monkeypatch.setattr(timeouts, "_TICK_S", 0.02)
    monkeypatch.setattr(bars, "note", notes.append)
    begin = time.monotonic()
    with pytest.raises(lp.CaptureError, match=r"cannot be opened \(the server was waited for 0 s in all\)"):
        lp.read(f"{place}/silent.pcap")
    assert notes[-1] == "waiting for the server, 0 of 0 s"
    cap = lp.read([f"{place}/whole.pcap", f"{place}/dripping.pcap"])
    assert cap.issues.reason.tolist()[-1] == "cannot be read (the server was waited for 0 s in all)"
    assert time.monotonic() - begin < 5


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/a.pcap"
        with pytest.raises(lp.CaptureError, match=r"cannot be opened \(connection refused\)"):
            lp.read(url)
    for odd in ("http://", "http://127.0.0.1:port/a.pcap", "https://a b/c.pcap"):
        with pytest.raises(lp.CaptureError, match="cannot be opened"):
            lp.read(odd)


def test_names_and_passwords(place: str) -> None:
    """Letters that no URL holds are quoted; a password is used and never shown."""
    assert lp.read(f"{place}/caf\N{LATIN SMALL LETTER E WITH ACUTE} [1]/whole.pcap").frames == 4000
    assert Server.asked[-1] == "GET /caf%C3%A9%20[1]/whole.pcap"
    cap = lp.read(place.replace("//", "//me:p%40ss@") + "/secret.pcap")
    assert cap.frames == 4000 and cap.name == f"{place}/secret.pcap"


def test_a_password_goes_to_its_own_server_alone(place: str) -> None:
    with_password = place.replace("//", "//me:p%40ss@")
    assert lp.read(f"{with_password}/near.pcap").frames == 4000, "the same server is asked with it"
    assert lp.read(f"{with_password}/away.pcap").frames == 4000
    assert Server.private == [None]
    assert lp.read(f"{with_password}/open.pcap").frames == 4000
    assert Server.private[1] is not None


def test_a_batch_of_downloads(place: str, tmp_path: Path) -> None:
    """What broke is tried again, what is whole is not; neither is a capture of which the server tells no length."""
    names = ["whole", "cut", "chunked", "nohead", "none"]
    urls = [f"{place}/{name}.pcap?token=hidden" for name in names]
    done = lp.batch(urls, tmp_path, quiet=True)
    assert [str(f) for f in done.failed] == [f"{place}/none.pcap: no such file"]
    assert (done.summary["captures"], done.summary["frames"], done.summary["damaged"]) == (4, 3 * 4000 + 2093, 1)
    again = lp.batch(urls, tmp_path, quiet=True)
    assert sorted(again.skipped) == [f"{place}/{name}.pcap" for name in ("chunked", "nohead", "whole")]
    assert not any(b"hidden" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(lp.OutputError, match="neither be listed nor written"):
        lp.batch(urls[0], f"{place}/out", quiet=True)
