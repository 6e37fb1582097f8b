"""Does the MCP server answer an agent, and only about files that it may read? Asked by the mcp package's own client."""

from __future__ import annotations

import base64
import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import latpcap as lp
from latpcap.cli import mcp as ours

pytest.importorskip("mcp", reason="pip install 'latpcap[mcp]' brings mcp")

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
SLOW = "nginx-latency.pcap"


def asked(server: Any, talk: Callable[[Client], Awaitable[Any]]) -> Any:
    """What a conversation with the server gives."""

    async def main() -> Any:
        async with Client(server) as client:
            return await talk(client)

    return anyio.run(main)


def call(tool: str, /, *, root: Path = SAMPLES, **words: Any) -> Any:
    """One call of a tool: its structured answer or its text; ValueError with the text where it is an error."""

    async def talk(client: Client) -> Any:
        return await client.call_tool(tool, words)

    return answer(asked(ours.server([root]), talk))


def answer(found: Any) -> Any:
    if found.is_error:
        raise ValueError(found.content[0].text)
    if found.structured_content is not None:
        return found.structured_content.get("result", found.structured_content)
    return found.content[0]


def test_its_tools_say_what_they_do() -> None:
    async def talk(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in asked(ours.server([SAMPLES]), talk)}
    assert set(tools) == {"captures", "why", "tables", "flow", "follow"}
    assert all(tool.description for tool in tools.values())
    assert set(tools["why"].input_schema["required"]) == {"file"}
    without = asked(ours.server([SAMPLES], payload=False), talk)
    assert {tool.name for tool in without} == set(tools) - {"follow"}


def test_why_is_the_answer() -> None:
    capture = lp.read(SAMPLES / SLOW)
    assert call("why", file=SLOW) == str(capture.why())
    assert call("why", file=SLOW, stream=24, exchange=2) == str(capture.why(stream=24, exchange=2))
    assert json.loads(call("why", file=SLOW, numbers=True)) == json.loads(json.dumps(capture.why().to_dict()))
    narrowed = call("why", file=SLOW, display_filter="tcp.stream eq 24")
    assert "24 answered requests" in narrowed


def test_damage_is_said(tmp_path: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes((SAMPLES / SLOW).read_bytes()[:100_000])
    assert call("why", root=tmp_path, file="cut.pcap").startswith("warning: ")


def test_tables_are_rows() -> None:
    found = call("tables", file=SLOW, table="exchanges", columns=["exchange", "latency_ms"], sort="latency_ms", top=3)
    exchanges = lp.read(SAMPLES / SLOW).exchanges
    worst = exchanges.nlargest(3, "latency_ms")
    assert found["of_rows"] == len(exchanges)
    assert [row["latency_ms"] for row in found["rows"]] == worst.latency_ms.tolist()
    few = {"columns": ["frame", "len"], "top": 10**9}
    assert len(call("tables", file=SLOW, table="events", **few)["rows"]) == ours.MAX_ROWS
    assert call("tables", file=SLOW, table="findings")["rows"][0]["cause"] == "nagle + delayed_ack"


def test_flow_is_a_picture() -> None:
    found = call("flow", file=SLOW, stream=24, exchange="typical")
    assert found.type == "image" and base64.b64decode(found.data).startswith(b"\x89PNG")


def test_follow_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "GET / HTTP/1.1" in call("follow", file=SLOW, stream=24)
    monkeypatch.setattr(ours, "MAX_CHARACTERS", 100)
    assert call("follow", file=SLOW, stream=24)[100:].endswith("characters more]")


def test_captures_are_listed() -> None:
    listed = call("captures")
    assert str((SAMPLES / SLOW).resolve()) in [row["file"] for row in listed]
    assert len(listed) == len(list(SAMPLES.rglob("*.pcap*")))


@pytest.mark.parametrize(
    "words",
    [
        {"file": "none.pcap"},
        {"file": "../tests/cases/tls13/capture.pcap"},
        {"file": "/etc/passwd"},
        {"file": "outside.pcap"},
        {"file": "http://127.0.0.1:9/x.pcap"},
        {"file": "s3://bucket/x.pcap"},
        {"file": "-"},
        {"file": "*.pcap"},
        {"file": "."},
    ],
    ids=lambda words: words["file"],
)
def test_only_files_below_its_folders_are_read(words: dict[str, str], tmp_path: Path) -> None:
    """No path, link, URL, glob or standard input leads out of them."""
    inside = tmp_path / "inside"
    inside.mkdir()
    shutil.copy(SAMPLES / SLOW, inside)
    shutil.copy(SAMPLES / SLOW, tmp_path / "secret.pcap")
    (inside / "outside.pcap").symlink_to(tmp_path / "secret.pcap")
    with pytest.raises(ValueError, match="no file below"):
        call("why", root=inside, **words)


@pytest.mark.parametrize(
    ("tool", "words", "says"),
    [
        ("why", {"stream": 99}, "no stream 99"),
        ("why", {"display_filter": "tcp.prot == 1"}, "near: tcp.port"),
        ("tables", {"columns": ["latncy"]}, "no column 'latncy'"),
        ("flow", {"exchange": 10**6}, "no exchange"),
    ],
)
def test_mistakes_are_sentences(tool: str, words: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call(tool, file=SLOW, **words)


def test_a_capture_is_read_again_only_when_it_changed(tmp_path: Path) -> None:
    desk = ours.Desk([tmp_path])
    shutil.copy(SAMPLES / SLOW, tmp_path)
    first = desk.capture(SLOW)
    assert desk.capture(SLOW) is first
    (tmp_path / SLOW).write_bytes((SAMPLES / "nginx-good.pcap").read_bytes())
    assert desk.capture(SLOW).frames == 4000


def test_the_command_speaks_over_stdin_and_stdout(tmp_path: Path) -> None:
    """As an agent's program starts it: a process of its own, that writes nothing but the protocol."""
    code = "import sys; sys.argv = ['latpcap', 'mcp', '--root', sys.argv[1]]; from latpcap.cli import main; main()"
    starts = StdioServerParameters(command=sys.executable, args=["-c", code, str(SAMPLES)], cwd=tmp_path)

    async def talk(client: Client) -> Any:
        return await client.call_tool("why", {"file": SLOW})

    assert answer(asked(stdio_client(starts), talk)) == str(lp.read(SAMPLES / SLOW).why())


def test_an_argument_that_a_tool_does_not_have_is_refused() -> None:
    """`filter=` for `display_filter=` gave the answer for the whole capture."""
    for tool in ("why", "tables", "flow"):
        with pytest.raises(ValueError, match="filter"):
            call(tool, file=SLOW, filter="tcp.stream == 3")


def test_no_answer_is_longer_than_an_agent_reads() -> None:
    async def talk(client: Client) -> Any:
        words = {"file": SLOW, "table": "exchanges", "top": 500}
        return await client.call_tool("tables", words), await client.call_tool("captures", {})

    for found in asked(ours.server([SAMPLES]), talk):
        structured = len(json.dumps(found.structured_content))
        assert sum(len(one.text) for one in found.content) <= ours.MAX_CHARACTERS and structured <= ours.MAX_CHARACTERS
    rows = call("tables", file=SLOW, table="exchanges", top=500)
    left = 500 - len(rows["rows"])
    assert 0 < left < 500 and rows["left_out"].startswith(f"{left} more rows")
    assert "left_out" not in call("tables", file=SLOW, table="exchanges", top=3)


def test_nothing_outside_its_folders_is_listed(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other.pcap"
    root.mkdir()
    shutil.copy(SAMPLES / SLOW, root / "a.pcap")
    shutil.copy(SAMPLES / SLOW, other)
    (root / "link.pcap").symlink_to(other)
    (root / "near.pcap").symlink_to(root / "a.pcap")
    assert {Path(row["file"]).name for row in call("captures", root=root)} == {"a.pcap", "near.pcap"}
    for name in ("../other.pcap", "link.pcap"):
        with pytest.raises(ValueError, match="no file below"):
            call("why", root=root, file=name)


def test_a_name_of_any_length_is_no_bug() -> None:
    with pytest.raises(ValueError, match="no file below") as refused:
        call("why", file="x" * 5000)
    assert len(str(refused.value)) < 600


def test_every_text_is_bounded_errors_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "MAX_CHARACTERS", 200)
    for words in ({}, {"stream": 24, "exchange": 2}):
        assert len(call("why", file=SLOW, **words)) < 250
    with pytest.raises(ValueError, match="characters more") as refused:
        call("tables", file=SLOW, columns=["x" * 5000])
    assert len(str(refused.value)) < 300


def test_what_is_opened_is_what_was_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads elsewhere between the two is an error."""
    from latpcap.cli.mcp import Desk

    root, outside = tmp_path / "root", tmp_path / "outside.pcap"
    root.mkdir()
    outside.write_bytes((SAMPLES / "clips" / "think40.pcap").read_bytes())
    inside = root / "a.pcap"
    inside.write_bytes((SAMPLES / "clips" / "think40.pcap").read_bytes())
    desk = Desk([root])
    assert desk.capture("a.pcap").frames and len(str(desk.capture("a.pcap").stream(0).follow()))
    checked = desk.path

    def swapped(file: str) -> Path:
        found = checked(file)
        inside.unlink()
        inside.symlink_to(outside)
        return found

    monkeypatch.setattr(desk, "path", swapped)
    desk._captures.clear()
    with pytest.raises(ValueError, match="was replaced"):
        desk.capture("a.pcap")
