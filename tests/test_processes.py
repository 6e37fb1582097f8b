"""Processes that a capture names: every form of it, whose side they are on, and what is shown of them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from commands import answered
from makepcap import Talk, answer, get

import latpcap as lp
from latpcap.views.view import View

OUT, IN = 2, 1
Option = tuple[int, bytes]


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack(f"{order}II", kind, size) + body + struct.pack(f"{order}I", size)


def options(order: str, *some: Option) -> bytes:
    packed = [struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4) for code, value in some]
    return b"".join(packed) + bytes(4)


def talked() -> list[tuple[bool, int, bytes]]:
    """Three requests that are answered late: direction, instant in us, frame."""
    talk = Talk()
    talk.open()
    for number in range(3):
        talk.client(10.0 + 500 * number, get())
        talk.server(400.0 + 500 * number, b"".join(answer(50)))
    return [(segment.from_client, segment.time_ns // 1000, segment.frame()) for segment in talk.tape]


def pcapng(order: str, named: Callable[[bool], list[Option]], *blocks: tuple[int, bytes], link: int = 1) -> bytes:
    out = block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(order, 1, struct.pack(f"{order}HHI", link, 0, 0))
    out += b"".join(block(order, kind, body) for kind, body in blocks)
    for from_client, at, frame in talked():
        head = struct.pack(f"{order}IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(frame), len(frame))
        body = head + frame + bytes(-len(frame) % 4) + options(order, *named(from_client))
        out += block(order, 6, body)
    return out


def wireshark(order: str) -> bytes:
    """Ids of processes on the packets, and Wireshark 5's block for one of them."""
    entry = struct.pack("<I", 70_000) + options(
        "<", (3, b"/usr/sbin/nginx"), (4, b"nginx\0-g\0daemon off;"), (7, b"www")
    )
    body = struct.pack(f"{order}I", 32622) + struct.pack("<II", 3, len(entry)) + entry

    def named(from_client: bool) -> list[Option]:
        way = struct.pack(f"{order}I", IN if from_client else OUT)
        return [(2, way), (8, struct.pack(f"{order}II", 70_000, 1))]

    return pcapng(order, named, (0xBAD, body))


def apple(order: str) -> bytes:
    """Apple's blocks: the first acts for the second, whose number the packets have as the effective one."""
    some = [
        struct.pack(f"{order}I", pid) + options(order, (2, name)) for pid, name in ((1, b"launchd"), (88, b"Safari"))
    ]

    def named(from_client: bool) -> list[Option]:
        way = struct.pack(f"{order}I", OUT if from_client else IN)
        return [(2, way), (0x8001, struct.pack(f"{order}I", 0)), (0x8003, struct.pack(f"{order}I", 1))]

    return pcapng(order, named, *((0x80000001, body) for body in some))


def ptcpdump() -> bytes:
    comment = (
        b"PID: 12\nCmd: /app/worker\nArgs: /app/worker --all\nContainerName: web\nPodName: web-7f\nPodNamespace: shop"
    )
    return pcapng("<", lambda _: [(1, comment)])


def pktap() -> bytes:
    """Direction and process stand in the header of each frame."""
    records = []
    for from_client, at, frame in talked():
        head = struct.pack("<III24sI", 108, 1, 1, b"en0", OUT if from_client else IN).ljust(52, b"\0")
        head += struct.pack("<i20s", 77, b"curl").ljust(108 - 52, b"\0")
        data = head + frame
        records.append(struct.pack("<IIII", at // 10**6, at % 10**6, len(data), len(data)) + data)
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 258) + b"".join(records)


FORMS: dict[str, tuple[bytes, tuple[Any, ...]]] = {
    "wireshark, little-endian": (wireshark("<"), ("server", 70_000, "nginx", "nginx -g daemon off;", None)),
    "wireshark, big-endian": (wireshark(">"), ("server", 70_000, "nginx", "nginx -g daemon off;", None)),
    "apple, little-endian": (apple("<"), ("client", 88, "Safari", None, None)),
    "apple, big-endian": (apple(">"), ("client", 88, "Safari", None, None)),
    "pktap": (pktap(), ("client", 77, "curl", None, None)),
    "ptcpdump": (ptcpdump(), (None, 12, "worker", "/app/worker --all", "web-7f")),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form(form: str) -> None:
    data, expected = FORMS[form]
    cap = lp.read(data)
    (row,) = cap.processes().astype(object).to_dict("records")
    shown = [None if row[name] != row[name] else row[name] for name in ("side", "pid", "process", "command", "pod")]
    assert tuple(shown) == expected and row["frames"] == len(talked())
    assert f"{expected[2]} (pid {expected[1]})" in str(cap.why())


def test_the_host_that_all_named_frames_share_is_the_recorder() -> None:
    """Without a direction, frames of two servers tell which end the process is on."""
    one, other = ptcpdump(), ptcpdump().replace(bytes([10, 0, 0, 2]), bytes([10, 0, 0, 3]))
    cap = lp.read([one, other])
    assert cap.processes()[["stream", "side", "address"]].values.tolist() == [
        [0, "client", "10.0.0.1"], [1, "client", "10.0.0.1"],
    ]  # fmt: skip


def test_what_names_nobody() -> None:
    comments = [b"PID: x\nCmd: /bin/sh", b"see ticket 7", b"PID: 7"]
    for comment in comments:
        cap = lp.read(pcapng("<", lambda _, comment=comment: [(1, comment)]))
        assert cap.processes().empty and "process" not in cap.why().to_dict().get("beside", [])
    unknown = lp.read(pcapng("<", lambda _: [(8, bytes(8)), (0x8001, struct.pack("<I", 5))]))
    assert unknown.processes().empty


def test_results_of_a_batch_name_none() -> None:
    class Rows(View):
        def arrow(self, name: Any) -> Any:
            return lp.read(ptcpdump()).arrow(name)

    with pytest.raises(ValueError, match="process is known of captures"):
        Rows().latency("process")


def test_commands(tmp_path: Any) -> None:
    path = tmp_path / "named.pcapng"
    path.write_bytes(ptcpdump())
    assert json.loads(answered("processes", path, "--json"))[0]["namespace"] == "shop"
    assert "worker" in answered("latency", path, "--by", "process")
    assert "web-7f" in answered("latency", path, "--by", "pod", "--by", "process")
    path.write_bytes(wireshark("<"))
    text = answered("streams", path, "--columns", "stream,client_process,server_process,server_pid", "--csv")
    assert text.splitlines()[1] == '0,,"nginx",70000'
    assert "  process   10.0.0.2:80 is nginx (pid 70000)" in answered("why", path)
    assert lp.read(path).latency("process").table.process.tolist() == ["nginx"]
    lengths = answered("events", path, "--columns", "frame,frame_len", "--csv").splitlines()
    assert lengths[1] == f"2,{len(talked()[0][2])}"
