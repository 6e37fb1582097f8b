"""What `connects` tells of TLS: is it what tshark reads in the hellos, and does an archive for browsers have it?"""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from conftest import ROOT
from tsharkfacts import needs_tshark

import latpcap as lp

CASES = ROOT / "tests" / "cases"
TLS = ("tls12", "tls13", "tls12_keys", "tls13_keys", "one_port_tls12", "one_port_tls13", "kind_mariadb_tls")
FIELDS = {
    "tls_version": "tls.handshake.version", "since_1.3": "tls.handshake.extensions.supported_version",
    "tls_server_name": "tls.handshake.extensions_server_name", "alpn": "tls.handshake.extensions_alpn_str",
}  # fmt: skip
VERSIONS = {"0x0303": "TLS 1.2", "0x0304": "TLS 1.3"}


def hellos(path: Any, kind: int) -> dict[int, dict[str, str | None]]:
    """The first hello of each stream in plain sight, as tshark reads it; 1: the client's, 2: the server's."""
    # without the keys in the file, as who looks at the hellos alone
    command = [
        "tshark",
        "-n",
        "-r",
        str(path),
        "-Y",
        f"tls.handshake.type == {kind}",
        "-T",
        "fields",
        "-E",
        "occurrence=a",
    ]
    wanted = ["tcp.stream", *FIELDS.values()]
    done = subprocess.run(
        [*command, *(x for n in wanted for x in ("-e", n))], capture_output=True, text=True, check=True
    )
    found: dict[int, dict[str, str | None]] = {}
    for line in done.stdout.splitlines():
        stream, *values = line.split("\t")
        found.setdefault(int(stream), dict(zip(FIELDS, (v or None for v in values), strict=True)))
    return found


@needs_tshark
@pytest.mark.parametrize("name", TLS)
def test_connects_tell_of_tls_what_tshark_reads(name: str) -> None:
    path = next((CASES / name).glob("capture.*"))
    rows = [row for row in lp.read(path).arrow("connects").to_pylist() if row["tls_version"]]
    assert rows, "no connect tells of TLS"
    asked, answered = hellos(path, 1), hellos(path, 2)
    for row in rows:
        client, server = asked[row["stream"]], answered[row["stream"]]
        version = server["since_1.3"] or str(server["tls_version"]).split(",")[0]
        assert row["tls_version"] == VERSIONS[version]
        assert row["tls_server_name"] == client["tls_server_name"]
        assert row["tls_alpn_offered"] == client["alpn"]
        # tshark opens EncryptedExtensions with the file's own keys, too, but in another message
        if version == "0x0303":
            assert row["tls_alpn"] == server["alpn"]


@pytest.mark.parametrize(
    ("name", "whole", "resumed"), [("tls12", ("TLS 1.2", 2), ("TLS 1.2", 1)), ("tls13", ("TLS 1.3", 1), ("TLS 1.3", 1))]
)
def test_round_trips_of_a_handshake(name: str, whole: tuple[str, int], resumed: tuple[str, int]) -> None:
    """The second connection of these cases takes the session of the first."""
    rows = lp.read(next((CASES / name).glob("capture.*"))).arrow("connects").to_pylist()
    told = [(row["tls_version"], row["tls_round_trips"], row["tls_resumed"]) for row in rows]
    assert told == [(*whole, False), (*resumed, True), (*whole, False), (*whole, False)]


def test_an_archive_for_browsers_says_how_tls_was_set_up() -> None:
    entries = lp.read(next((CASES / "tls12_keys").glob("capture.*"))).to_har()["log"]["entries"]
    told = {"version": "TLS 1.2", "roundTrips": 2, "resumed": False, "serverName": "tls.example"}
    assert entries[0]["_tls"] == told
    assert [entry["connection"] for entry in entries if "_tls" in entry] == ["0", "1", "2", "3"]
