"""TLS with keys: what opens, what stays sealed and why, and that keys go nowhere."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import subprocess
from pathlib import Path

import commands
import pytest

import latpcap as lp
from latpcap.errors import CaptureError

CASES = Path(__file__).parent / "cases"
NAMES = ("tls12_keys", "tls13_keys")
NAMED = ["stream", "index", "protocol", "method", "target", "status"]


def capture_of(name: str) -> Path:
    return CASES / name / "capture.pcapng"


def secrets(path: Path) -> bytes:
    """The text of the capture's own key log."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 10:
            (length,) = struct.unpack_from("<I", data, at + 12)
            return data[at + 16 : at + 16 + length]
        at += size
    raise AssertionError(f"{path} brings no keys")


@pytest.fixture(params=NAMES)
def parted(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """A capture without its keys, and a key log with them."""
    whole = capture_of(request.param)
    data, at, kept = whole.read_bytes(), 0, b""
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        kept += b"" if kind == 10 else data[at : at + size]
        at += size
    (tmp_path / "bare.pcapng").write_bytes(kept)
    (tmp_path / "keys.log").write_bytes(secrets(whole))
    return tmp_path / "bare.pcapng", tmp_path / "keys.log"


def rows(capture: lp.Capture, table: str = "exchanges") -> list[dict[str, object]]:
    found = capture.arrow(table)
    return found.drop_columns([c for c in ("file", "offset") if c in found.column_names]).to_pylist()


def protocols(capture: lp.Capture) -> set[str]:
    return set(capture.arrow("exchanges")["protocol"].to_pylist())


def sealed(capture: lp.Capture) -> list[tuple[str, int]]:
    return [(r["reason"], r["count"]) for r in capture.arrow("issues").to_pylist() if r["layer"] == "tls"]


@pytest.mark.parametrize("table", ["exchanges", "causes", "streams", "events", "issues"])
def test_a_key_log_tells_what_the_files_own_keys_tell(parted: tuple[Path, Path], table: str) -> None:
    bare, keylog = parted
    name = next(n for n in NAMES if secrets(capture_of(n)) == keylog.read_bytes())
    assert rows(lp.read(bare, keylog=keylog), table) == rows(lp.read(capture_of(name)), table)


def test_without_keys_records_are_turns(parted: tuple[Path, Path]) -> None:
    bare, keylog = parted
    plain, opened = lp.read(bare), lp.read(bare, keylog=keylog)
    assert protocols(plain) == {"tls"} and protocols(opened) == {"tls", "http"}
    assert sealed(plain) == []
    # what is on the wire is the same: frames of requests and of whole answers, the sums of the causes
    columns = ["stream", "index", "request_first_frame", "response_last_frame"]
    assert opened.arrow("exchanges").select(columns).equals(plain.arrow("exchanges").select(columns))


def test_a_wrong_key_log_is_an_issue_and_no_nonsense(parted: tuple[Path, Path]) -> None:
    bare, keylog = parted
    plain = rows(lp.read(bare))
    other = next(text for name in NAMES if (text := secrets(capture_of(name))) != keylog.read_bytes())
    lines = [line.split() for line in keylog.read_text().splitlines() if not line.startswith("#")]
    turned = [f"{label} {random} {secret[::-1]}" for label, random, secret in lines]
    for text, reason in (
        (other, "the key log has no key for this connection"),
        ("\n".join(turned).encode(), "the key log's key does not open its records"),
    ):
        keylog.write_bytes(text)
        capture = lp.read(bare, keylog=keylog)
        assert sealed(capture) == [(f"TLS stays sealed: {reason}", 4)]
        assert rows(capture) == plain


def test_a_file_that_is_no_key_log_says_so(parted: tuple[Path, Path]) -> None:
    bare, keylog = parted
    keylog.write_bytes(bare.read_bytes())
    issues = lp.read(bare, keylog=keylog).arrow("issues").to_pylist()
    reasons = [r["reason"].partition(" (")[0] for r in issues if r["layer"] == "keylog"]
    assert "key log holds no line that can be used" in reasons and "lines are no key log's" in reasons


def test_a_capture_from_the_middle_stays_sealed(parted: tuple[Path, Path], tmp_path: Path) -> None:
    bare, keylog = parted
    whole = lp.read(bare, keylog=keylog)
    whole.filter("tcp.stream == 0 and frame.number > 15").to_pcap(tmp_path / "middle.pcap")
    reasons = dict(sealed(lp.read(tmp_path / "middle.pcap", keylog=keylog)))
    assert reasons == {"TLS stays sealed: its handshake is not in the capture": 1}


def test_no_key_log_no_capture(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such key log"):
        lp.read(capture_of("tls13_keys"), keylog=tmp_path / "none.log")
    with pytest.raises(CaptureError, match="key log: is a directory"):
        lp.read(capture_of("tls13_keys"), keylog=tmp_path)
    with pytest.raises(CaptureError, match="key log: embedded null byte"):
        lp.read(capture_of("tls13_keys"), keylog="a\0b")


def test_the_environment_is_asked_for_or_ignored(parted: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    bare, keylog = parted
    monkeypatch.setenv("SSLKEYLOGFILE", str(keylog))
    assert protocols(lp.read(bare)) == {"tls"}


def test_follow_shows_plain_text(parted: tuple[Path, Path]) -> None:
    bare, keylog = parted
    said = lp.read(bare, keylog=keylog).stream(0).follow()
    assert said.payload(0).startswith(b"GET /0/300/1 HTTP/1.1\r\nHost: tls.example\r\n\r\n")
    assert said.payload(1).startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\nbbb")
    assert lp.read(bare).stream(0).follow().payload(0)[0] == 22  # a handshake record


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("name", NAMES)
def test_tshark_opens_the_same(name: str) -> None:
    capture = lp.read(capture_of(name))
    for stream in capture.arrow("streams")["stream"].to_pylist():
        command = ["tshark", "-r", str(capture_of(name)), "-q", "-z", f"follow,tls,raw,{stream}"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        said = [b"", b""]
        for line in lines[next(i for i, line in enumerate(lines) if line.startswith("Node 1")) + 1 : -1]:
            said[line.startswith("\t")] += bytes.fromhex(line.strip())
        ours = capture.stream(stream).follow()
        assert [ours.payload(0), ours.payload(1)] in (said, said[::-1])  # its node 0 may be the server


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("name", NAMES)
def test_tshark_sees_the_same_requests_in_the_same_frames(name: str) -> None:
    fields = ["tcp.stream", "http.request.uri", "frame.number"]
    command = ["tshark", "-r", str(capture_of(name)), "-Y", "http.request", "-T", "fields"]
    out = subprocess.run(
        [*command, *(word for field in fields for word in ("-e", field))], capture_output=True, text=True, check=True
    )
    theirs = sorted(tuple(line.split("\t")) for line in out.stdout.splitlines())
    ours = lp.read(capture_of(name)).arrow("exchanges").to_pylist()
    assert theirs == sorted(
        (str(r["stream"]), r["target"], str(r["request_last_frame"])) for r in ours if r["method"] == "GET"
    )


def test_commands_take_a_key_log(parted: tuple[Path, Path], tmp_path: Path) -> None:
    bare, keylog = parted

    def run(*words: str | Path) -> str:
        code, out, err = commands.run(*words)
        assert code == 0, err
        return out

    table = run("exchanges", bare, "--keylog", keylog, "--columns", "method,target")
    assert "/25/300/1" in table and "/25/300/1" not in run("exchanges", bare, "--columns", "method,target")
    assert "GET /0/300/1" in run("follow", bare, "--stream", "0", "--keylog", keylog)
    for words in (["why"], ["streams"], ["findings"], ["issues"], ["plot", "latency", "-o", tmp_path / "l.png"]):
        run(*words, bare, "--keylog", keylog)
    run("flow", bare, "--stream", "0", "-o", tmp_path / "f.txt", "--keylog", keylog)
    run("slice", bare, "-Y", 'http.request.uri contains "25"', "-o", tmp_path / "s.pcapng", "--keylog", keylog)
    run("compare", bare, bare, "--keylog", keylog)


def test_an_archive_takes_a_key_log_and_reads_anew_when_it_grew(parted: tuple[Path, Path], tmp_path: Path) -> None:
    bare, keylog = parted
    text = keylog.read_bytes()
    keylog.write_bytes(b"# not yet\n")
    out = tmp_path / "out"
    for content, read, spoken in (
        (b"# not yet\n", 1, {"tls"}),
        (text, 1, {"tls", "http"}),
        (text, 0, {"tls", "http"}),
    ):
        keylog.write_bytes(content)
        done = lp.batch(bare, out, quiet=True, keylog=keylog)
        assert done.finished == read
        found = lp.open_results(out).exchanges.to_arrow(columns=["protocol"])
        assert set(found["protocol"].to_pylist()) == spoken
    keys_nowhere(text, *(p.read_bytes() for p in out.rglob("*") if p.is_file()))


def keys_nowhere(keylog: bytes, *places: bytes) -> None:
    found = [line.split()[2] for line in keylog.splitlines() if not line.startswith(b"#")]
    assert found
    for secret in found:
        for place in places:
            assert secret not in place.lower() and bytes.fromhex(secret.decode()) not in place


def test_keys_go_nowhere(parted: tuple[Path, Path], tmp_path: Path) -> None:
    bare, keylog = parted
    text = keylog.read_bytes()
    capture = lp.read(bare, keylog=keylog)
    name = next(n for n in NAMES if secrets(capture_of(n)) == text)
    whole = lp.read(capture_of(name))
    kept = {k: v for k, v in capture.__dict__.items() if k != "_raw"} | {"tables": rows(capture)}
    whole.to_pcap(tmp_path / "copy.pcapng")
    whole.filter("tcp.stream == 0").to_pcap(tmp_path / "part.pcapng")
    keylog.write_bytes(text.replace(b"CLIENT", b"CLIEMT").replace(b"SERVER", b"SERVES"))
    broken = lp.read(bare, keylog=keylog)
    said = [
        repr(capture),
        str(capture.why()),
        json.dumps(capture.why().to_dict(), default=str),
        str(rows(broken, "issues")),
    ]
    keys_nowhere(
        text,
        pickle.dumps({k: v for k, v in kept.items() if k != "_origins"}),
        *(words.encode() for words in said),
        (tmp_path / "copy.pcapng").read_bytes(),
        (tmp_path / "part.pcapng").read_bytes(),
    )
    assert os.fspath(capture.__dict__["_keylog"]) == str(keylog)
