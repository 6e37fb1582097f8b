"""Which command does a data connection of FTP serve? Held against tshark's `ftp-data.command`."""

from __future__ import annotations

from conftest import ROOT
from tsharkfacts import needs_tshark, tshark

import latpcap as lp

CASE = ROOT / "tests" / "cases" / "ftp_data" / "capture.pcap"


@needs_tshark
def test_data_connections_serve_the_commands_that_tshark_says() -> None:
    wanted = tshark(CASE, ["tcp.stream", "ftp-data.command"])
    said = {int(stream): command for stream, command in wanted if command}
    rows = lp.read(CASE).arrow("streams").select(["stream", "command"]).to_pylist()
    assert len(said) == 2
    assert {row["stream"]: row["command"] for row in rows if row["command"]} == said
