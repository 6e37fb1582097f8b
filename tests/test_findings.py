"""Do the findings name the right cause, owner, options and fix, with frames that show it, and accuse nobody else?"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import situations
from makepcap import Ends, Talk, answer, get, pcap
from simulator import Path as Way
from simulator import Script, record

import latpcap as lp
from latpcap import arrays, findings
from latpcap.findings import quality
from latpcap.vocabulary import CAUSES, OWNERS, STALL
from latpcap.words import say

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CLIPS = sorted((SAMPLES / "clips").glob("*.pcap"))


@cache
def read(name: str) -> lp.Capture:
    return lp.read(SAMPLES / name)


def rows_of(capture: lp.Capture) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = capture.arrow("findings").to_pylist()
    return found


def scripted(talk: Talk) -> lp.Capture:
    return lp.read(pcap(talk.tape))


@pytest.mark.parametrize("path", [*sorted(SAMPLES.glob("*.pcap")), *CLIPS], ids=lambda p: p.stem)
def test_findings_agree_with_the_tables(path: Path) -> None:
    """Every finding's counts, times and frames are those of the causes that it was made of."""
    capture = read(str(path.relative_to(SAMPLES)))
    found = rows_of(capture)
    assert capture.arrow("findings").schema.equals(findings.schema(), check_metadata=True)
    assert [field.name for field in fields(findings.Finding) if field.name != "values"] == list(findings.COLUMNS)
    assert [r["finding"] for r in found] == list(range(len(found)))
    streams = {s["stream"]: s for s in capture.arrow("streams").to_pylist()}
    latency = {e["exchange"]: e["latency_ms"] for e in capture.arrow("exchanges").to_pylist() if e["complete"]}
    frames = set(capture.arrow("events")["frame"].to_pylist())
    for row in (r for r in found if r["kind"] == "latency"):
        assert row["cause"] in {*CAUSES, STALL} and row["owner"] in OWNERS
        assert 0 < row["exchanges"] <= row["of_exchanges"] <= len(latency)
        assert 0 <= row["share"] <= 1 + 1e-9 and row["proven"] <= row["exchanges"]
        assert row["p10_ms"] <= row["median_ms"] <= row["p90_ms"] <= row["max_ms"] <= row["total_ms"] + 1e-9
        assert row["max_ms"] == pytest.approx(row["worst_ms"])
        assert {*row["worst_frames"], *row["typical_frames"]} <= frames
        assert latency[row["worst_exchange"]] >= row["worst_ms"] - 1e-6
        assert streams[row["typical_stream"]]["server"] == row["server"]
        for name in ("nodelay", "delayed_ack", "cork"):
            assert row[name] in ("on", "off", "unknown")
            assert row[f"{name}_opportunities"] >= max(row[f"{name}_seen_on"], row[f"{name}_seen_off"])
    for server in {(r["server"], r["server_port"]) for r in found if r["kind"] == "latency"}:
        shares = [r["share"] for r in found if r["kind"] == "latency" and (r["server"], r["server_port"]) == server]
        assert 0.9 < sum(shares) <= 1 + 1e-9  # the rest lies below MIN_SHARE


@pytest.mark.parametrize(
    ("name", "knob"),
    [
        (b"Werkzeug/3.0", " (Werkzeug: disable_nagle_algorithm = True in the request handler's class)"),
        (b"Apache/2.4.6", " (Apache httpd sets it by itself: is a proxy in front?)"),
        (b"Kestrel     ", " (Kestrel sets it unless its options have NoDelay = false: is a proxy in front?)"),
        (b"pekko-http/1", " (Pekko HTTP: pekko.http.server.socket-options.tcp-no-delay = on)"),
        (b"unknown\x1b[0m ", ""),
        (b"            ", ""),
    ],
    ids=lambda value: value.decode("ascii", "replace").strip() if isinstance(value, bytes) else "",
)
def test_the_fix_names_the_servers_own_setting(name: bytes, knob: str) -> None:
    """The sample with another name in its Server header: its knob where it is known, general words where it is not."""
    capture = lp.read((SAMPLES / "nginx-latency.pcap").read_bytes().replace(b"nginx/1.22.1", name))
    named = {s for s in capture.arrow("streams")["server_software"].to_pylist() if s}
    assert named == ({name.decode().strip()} if name.strip() else set())
    known = knob if named else say("knobs_server_http")
    assert rows_of(capture)[0]["fix"] == f"TCP_NODELAY on the server{known}, or both parts in one write (writev)"


def test_the_stall_of_the_sample() -> None:
    first = rows_of(read("nginx-latency.pcap"))[0]
    assert (first["cause"], first["owner"], first["held_by"], first["grade"]) == (STALL, "server", "client", "proven")
    assert (first["exchanges"], first["of_exchanges"], first["streams"], first["proven"]) == (880, 960, 40, 880)
    assert (first["nodelay"], first["nodelay_seen_off"], first["nodelay_seen_on"]) == ("off", 880, 0)
    assert (first["delayed_ack"], first["cork"]) == ("on", "off")
    assert (first["timer_ms"], first["tick_ms"]) == (40.0, 4.0) and first["tick_p"] < 1e-6
    assert "CONFIG_HZ=250" in first["os_hint"] and "slope" in first["rival_lost"]
    assert first["fix_side"] == "server" and "TCP_NODELAY on the server (nginx: tcp_nodelay on;)" in first["fix"]
    assert first["of_p50_share"] > 0.95 and first["gain_p50_low_ms"] < 1
    small, ack, freed = (
        e for e in read("nginx-latency.pcap").arrow("events").to_pylist() if e["frame"] in first["typical_frames"]
    )
    assert not small["from_client"] and ack["from_client"] and ack["len"] == 0 and not freed["from_client"]


def test_the_repaired_server_is_not_accused() -> None:
    found = rows_of(read("nginx-good.pcap"))
    assert not any(r["cause"] in (STALL, "nagle") for r in found)
    first = found[0]
    assert (first["nodelay"], first["nodelay_seen_off"]) == ("on", 0) and first["nodelay_seen_on"] > 100
    assert first["timer_ms"] is None


@pytest.mark.parametrize("leg", [0.01, 1.0, 20.0])
def test_pauses_are_the_programs_and_their_delayed_acks_harmless(leg: float) -> None:
    found = rows_of(scripted(situations.pause(16, 43.0, client_leg=leg)[0]))
    assert not any(r["cause"] == STALL for r in found)
    assert found[0]["cause"] == "server_think" and "Nagle" in found[0]["rival"]
    harmless = [r for r in found if r["kind"] == "harmless"]
    assert all(r["grade"] == "harmless" and r["owner"] == "client" and "nobody waited" in r["text"] for r in harmless)


def test_quick_acks_are_seen() -> None:
    found = rows_of(scripted(situations.quick(30)[0]))
    nagle = next(r for r in found if r["cause"] == "nagle")
    assert (nagle["nodelay"], nagle["delayed_ack"]) == ("unknown", "off") or nagle["nodelay"] == "off"
    assert nagle["delayed_ack_seen_on"] == 0


def flood(sources: int) -> bytes:
    tape: list[Any] = []
    for i in range(600):
        client = (f"10.1.{i % sources // 250}.{i % sources % 250 + 1}", 20_000 + i)
        Talk(ends=Ends(client), tape=tape).client(i * 2, flags="S")
    return pcap(tape)


def test_a_flood_is_called_one() -> None:
    first = rows_of(lp.read(flood(400)))[0]
    assert (first["cause"], first["streams"], first["clients"], first["grade"]) == ("syn_flood", 600, 400, "proven")
    assert "600 of 600 connections from 400 addresses" in first["text"]
    assert rows_of(lp.read(flood(1)))[0]["grade"] == "probable"


def test_resets_rank_below_what_took_time() -> None:
    talk, _ = situations.stall(12)
    for port in range(50):
        other = Talk(ends=Ends(("10.0.0.1", 41_000 + port)), tape=talk.tape)
        other.open(2000.0 + port)
        other.client(2001.5 + port, get())
        other.server(2002.0 + port, b"".join(answer(5)))
        other.client(2003.5 + port, flags="RA")
    found = rows_of(scripted(talk))
    assert found[0]["cause"] == STALL
    reset = next(r for r in found if r["cause"] == "reset")
    assert (reset["streams"], reset["of_streams"], reset["kind"]) == (50, 51, "connection")


def one_way(from_client: bool) -> lp.Capture:
    return lp.read(pcap([s for s in situations.stall(12)[0].tape if s.from_client == from_client]))


@pytest.mark.parametrize("from_client", [True, False])
def test_one_direction_is_never_a_verdict(from_client: bool) -> None:
    capture = one_way(from_client)
    checks = quality.judge(findings.FinderTables(capture.arrow))
    assert checks[0].check == "one_direction" and quality.ceiling(checks) <= 0.5
    assert not any(r["grade"] in ("proven", "probable") for r in rows_of(capture) if r["kind"] == "latency")
    why = str(capture.why())
    assert "only one direction was captured" in why and "proven" not in why


def test_a_capture_at_two_points_at_once_carries_no_verdict() -> None:
    """Every packet twice, 1.5 ms apart: round trips look like nothing, and every segment like a repeat."""
    both = Script(((0.0, get()),), tuple((0.0, part) for part in answer(400)))
    tape = record(both, path=Way(1.0, 0.01)).tape
    twice = sorted([*tape, *(replace(s, time_ns=s.time_ns + 1_500_000) for s in tape)], key=lambda s: s.time_ns)
    capture = lp.read(pcap(twice))
    checks = quality.judge(findings.FinderTables(capture.arrow))
    assert (checks[0].check, checks[0].count) == ("doubles", sum(1 for s in tape if s.payload))
    rows = [r for r in rows_of(capture) if r["kind"] == "latency"]
    assert all(r["grade"] == "unknown" for r in rows if r["cause"] != STALL)
    assert "captured" in str(capture.why()) or "twice" in str(capture.why())
    assert "doubles" not in {c.check for c in quality.judge(findings.FinderTables(lp.read(pcap(tape)).arrow))}


@pytest.mark.parametrize(("back_ns", "grade"), [(900_000, "proven"), (1_500_000, "probable")])
def test_swapped_frames_do_not_weaken_a_verdict(back_ns: int, grade: str) -> None:
    """A frame that stands a little too early was handed over by another processor; a clock that is set steps back."""
    tape = situations.stall(12)[0].tape
    late = replace(tape[21], time_ns=tape[20].time_ns - back_ns)
    capture = lp.read(pcap([*tape[:21], late, *tape[22:]]))
    row = next(r for r in rows_of(capture) if r["cause"] == STALL)
    assert (row["grade"], "clock" in row["limited_by"]) == (grade, grade != "proven")


@pytest.mark.parametrize("from_client", [True, False])
def test_one_direction_lets_a_stall_be_suspected(from_client: bool) -> None:
    """Half of the packets of a stall: the server's show its pauses, the client's its late ACKs."""
    both = Script(((0.0, get()),), tuple((0.0, part) for part in answer(400)))
    tape = [s for s in record(both, path=Way(1.0, 0.01)).tape if s.from_client == from_client]
    capture = lp.read(pcap(tape))
    rows = [r for r in rows_of(capture) if r["kind"] == "one_way"]
    assert [(r["cause"], r["owner"], r["grade"]) for r in rows] == [(STALL, "server", "suspected")]
    assert 40 <= rows[0]["median_ms"] <= 50 and rows[0]["confidence"] <= 0.5
    assert "suspected" in str(capture.why())


def test_a_client_that_asks_late_is_told() -> None:
    talk = Talk()
    talk.open()
    talk.client(1500.0, get())
    talk.server(1500.2, b"".join(answer(5)))
    row = next(r for r in rows_of(scripted(talk)) if r["kind"] == "setup")
    assert (row["owner"], row["cause"], row["streams"]) == ("client", "client_think", 1)
    assert row["total_ms"] == pytest.approx(1499, abs=1)
    assert "1,499 ms after the handshake" in str(scripted(talk).why())


def test_a_lost_syn_is_not_the_clients_fault() -> None:
    """The SYN goes out again after a second; who looks at the capture sees a client that asks late."""
    talk = Talk()
    talk.client(0.0, flags="S", options=[(2, b"\x05\xb4")])
    talk.client(1004.0, flags="S", options=[(2, b"\x05\xb4")], seq=0)
    talk.server(1004.1, flags="SA", options=[(2, b"\x05\xb4")])
    talk.client(1005.1)
    talk.client(1006.0, get())
    talk.server(1006.2, b"".join(answer(5)))
    capture = scripted(talk)
    row = next(r for r in rows_of(capture) if r["kind"] == "setup")
    assert (row["cause"], row["owner"]) == ("syn_rto", "network") and row["total_ms"] == pytest.approx(1004, abs=2)
    assert "client asked" not in str(capture.why()) and "a SYN or SYN-ACK was dropped" in str(capture.why())


def test_an_exchange_that_never_ends_is_judged_by_what_was_seen() -> None:
    """One quick answer, then an upload that stalls on a closed window until the capture ends."""
    talk = Talk(scale=None)
    talk.s.window = 1460
    talk.open()
    talk.client(5.0, get())
    talk.server(5.5, b"".join(answer(5)))
    talk.client(20.0, get("/upload", "POST", "Content-Length: 300000") + b"x" * 1200)
    for i in range(40):
        at = 21.0 + 100 * i + i % 3 * i % 7 * 9
        talk.server(at, flags="A", window=0)
        talk.server(at + 40, flags="A", window=1460)
        talk.client(at + 41, b"x" * 1460, window=64_240)
    first = rows_of(scripted(talk))[0]
    assert first["cause"] in ("zero_window", "receive_window") and first["owner"] == "server"
    assert first["grade"] != "proven" and first["of_exchanges"] == 2


def test_stored_tables_give_the_same_findings(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    capture = read("nginx-latency.pcap")
    stored = {}
    for name in ("streams", "exchanges", "causes", "evidence", "issues"):
        pq.write_table(capture.arrow(name), tmp_path / f"{name}.parquet")
        stored[name] = pq.read_table(tmp_path / f"{name}.parquet")
    kept = [r for r in rows_of(capture) if r["kind"] != "harmless"]
    assert [r for r in findings.table(stored).to_pylist() if r["kind"] != "harmless"] == kept


def test_a_capture_without_tcp_has_no_findings() -> None:
    found = lp.read(pcap([])).arrow("findings")
    assert found.num_rows == 0 and found.schema.equals(findings.schema())
    assert isinstance(found, pa.Table)


@pytest.mark.parametrize("how", ["str(lp.read(file).why())", "sys.argv = ['latpcap', 'why', file]; main()"])
def test_the_answer_needs_no_pandas(how: str) -> None:
    """Importing pandas costs as much as everything else that `latpcap why` does on a small capture."""
    code = (
        "import contextlib, sys, latpcap as lp; from latpcap.cli import main; file = sys.argv[1]\n"
        f"with contextlib.suppress(SystemExit): {how}\n"
        "sys.exit(', '.join(m for m in ('pandas', 'matplotlib') if m in sys.modules) or None)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, SAMPLES / "nginx-latency.pcap"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_saturated_closed_loop_is_not_predicted_by_subtraction() -> None:
    """nginx-good.pcap is what nginx-latency.pcap became: 40 connections that ask again at once."""
    before, after = read("nginx-latency.pcap"), read("nginx-good.pcap")
    first = rows_of(before)[0]
    latency = sorted(e["latency_ms"] for e in after.arrow("exchanges").to_pylist() if e["complete"])
    assert first["gain_p50_low_ms"] < latency[len(latency) // 2] < first["gain_p50_high_ms"]
    assert first["gain_open"] is None


def test_at_worst_only_proven_waits_go_and_without_any_nothing_does() -> None:
    """The same stalls, once as they are and once with no row proven."""
    tables = {n: read("nginx-latency.pcap").arrow(n) for n in ("streams", "exchanges", "causes", "evidence", "issues")}
    proven = findings.rows(tables)[0]
    causes = tables["causes"]
    at = causes.column_names.index("confidence")
    doubted = causes.set_column(at, "confidence", pa.array([0.6] * causes.num_rows, causes["confidence"].type))
    probable = findings.rows({**tables, "causes": doubted})[0]
    assert probable.grade == "probable" and probable.cause == proven.cause
    assert probable.gain_p50_low_ms is not None and probable.gain_p50_low_ms <= (proven.gain_p50_low_ms or 0.0)
    assert probable.gain_open == say("gain_not_proven") and proven.gain_open is None
    assert probable.gain_p50_high_ms is not None and probable.gain_p50_high_ms >= (proven.gain_p50_high_ms or 99.0)
    latency = sorted(e["latency_ms"] for e in tables["exchanges"].to_pylist() if e["complete"])
    assert probable.gain_p50_high_ms >= latency[len(latency) // 2]


def test_a_pause_has_no_knob_to_gain_from() -> None:
    first = rows_of(scripted(situations.pause(16, 43.0)[0]))[0]
    assert first["gain_p50_low_ms"] is None and first["fix"] == CAUSES["server_think"].fix


def test_answers_without_any_time() -> None:
    talk = Talk(server_leg=0.0, client_leg=0.0)
    talk.open()
    talk.client(1.0, get())
    talk.server(1.0, b"".join(answer(5)))
    capture = scripted(talk)
    assert rows_of(capture) == [] and capture.why().to_dict()["verdict"] == "no_time"
    assert "took no time" in str(capture.why())


def test_the_filter_shows_the_frames() -> None:
    for row in rows_of(read("nginx-latency.pcap")):
        numbers = {int(n) for n in re.findall(r"\d+", row["filter"].partition("frame.number")[2])}
        assert numbers == set(row["typical_frames"])


@pytest.mark.parametrize("values", [[], [3], [1, 1, 2], [2, 1, 2, 1], [5, 4, 3]], ids=str)
def test_distinct_values_rise(values: list[int]) -> None:
    import numpy as np

    assert arrays.distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


@pytest.mark.parametrize(
    ("offer", "accepts", "reports"),
    [("SEC", "SA", "AE"), ("SEC", "SAEC", "AE"), ("S", "SA", "AE"), ("SEC", "SAE", "A"), ("SEC", "SAE", "ARE")],
)
def test_no_mark_is_reported_where_ecn_was_not_accepted_or_nothing_was_marked(
    offer: str, accepts: str, reports: str
) -> None:
    talk = Talk()
    talk.client(0.0, flags=offer)
    talk.server(0.01, flags=accepts)
    talk.client(1.0, b"x" * 1000)
    talk.server(1.01, flags=reports, window=0 if "R" in reports else None)
    found = {row["cause"] for row in rows_of(scripted(talk))}
    assert not found & {"zero_window", "ecn"}
