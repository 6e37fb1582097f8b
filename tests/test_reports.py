"""Does a capture give the lines that wrk, ping, hping3, traceroute and curl printed while it was taken?"""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from commands import answered, run
from makepcap import Ends, Talk, answer, get, pcap, pcap_of
from rawip import file, icmp, packet

import latpcap as lp
from latpcap import reports
from latpcap.reports import report_text, wrk

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"


def printed(name: str) -> list[str]:
    return (SAMPLES / name).read_text(encoding="utf-8").splitlines()


def shape(lines: list[str]) -> list[str]:
    """Lines with a # for each number that was measured: digits, units and the blanks before them."""
    return [re.sub(r"[\s/]*\d[\d.]*(us|ms|s|k|KB|MB|%)?(?=\s|$|,|/)", "#", line) for line in lines]


def ms(text: str) -> float:
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    return float(value) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]


def test_wrk_printed_these_lines() -> None:
    told = lp.read(SAMPLES / "nginx-latency.pcap").report("wrk")
    theirs, ours = printed("nginx-latency.wrk.txt"), list(told.lines)
    assert shape(ours)[2:] == shape(theirs)[2:] and ours[0] == theirs[0]
    assert ours[10] == theirs[10] == "  920 requests in 1.00s, 772.97KB read"
    for mine, its in zip(ours[6:10], theirs[6:10], strict=True):  # the distribution
        assert mine.split()[0] == its.split()[0] and abs(ms(mine.split()[1]) - ms(its.split()[1])) < 0.1
    for mine, its in zip(ours[3].split()[1:4], theirs[3].split()[1:4], strict=True):
        assert ms(mine) == pytest.approx(ms(its), rel=0.03, abs=0.5)
    for mine, its in zip(ours[11:], theirs[11:], strict=True):
        assert float(re.findall(r"[\d.]+", mine)[0]) == pytest.approx(float(re.findall(r"[\d.]+", its)[0]), rel=0.03)
    assert told.numbers["cut"] == 40 and any("threads" in line for line in told.unknown)


@pytest.mark.parametrize(("pause", "waited"), [(1.1, 1.0), (1.2, None)])
def test_an_answer_waits_for_a_busy_client(pause: float, waited: float | None) -> None:
    """The quickest asks again after 0.1 ms. Who takes 1 ms more does so between two requests: wrk does not."""
    talk = Talk(client_leg=0.0)
    talk.open()
    at = 1.0
    for after in (0.1, pause, pause, pause, 0.0):
        talk.client(at, get())
        talk.server(at + 2.0, b"".join(answer(50)))
        at += 2.0 + after
    told = lp.read(pcap(talk.tape, nanos=True)).report("wrk")
    assert told.numbers["busy_ms"] == (None if waited is None else pytest.approx(0.6 * waited, rel=1e-3))
    assert told.numbers["max_ms"] == pytest.approx(2.0 + (waited or 0.0), abs=0.01)
    assert any("does not ask at once" in line for line in told.unknown) == (waited is None)


def test_wrks_correction_adds_what_a_stall_kept_from_being_asked() -> None:
    """One sample of 1,000 us in an interval of 100: wrk adds 900, 800 ... 200."""
    us = np.array([50] * 99 + [1000])
    corrected = wrk.statistics(us, 100.0 * 100, complete=100, connections=1)
    assert corrected["corrected"] == 8 and corrected["max_ms"] == 1.0
    assert wrk.statistics(us, 100.0 * 100, complete=100, connections=200)["corrected"] == 0
    assert wrk.statistics(np.array([50] * 99 + [199]), 100.0 * 100, complete=100, connections=1)["corrected"] == 0


def test_wrks_ranks() -> None:
    us = np.arange(1, 101) * 1000
    numbers = wrk.statistics(us, 1e12, complete=100, connections=1)
    assert (numbers["p50_ms"], numbers["p99_ms"]) == (51.0, 100.0)  # round(50.5) away from zero


@pytest.mark.parametrize(
    ("value", "text"), [(412.34, "412.34us"), (850, "0.85ms"), (849.9, "849.90us"), (2_010_000, "2.01s")]
)
def test_wrks_units(value: float, text: str) -> None:
    assert report_text.time_us(value) == text


def test_ping_printed_these_lines() -> None:
    told = lp.read(SAMPLES / "probes.pcap").report("ping")
    assert shape(list(told.lines)) == shape(printed("ping.txt"))
    assert told.lines[-2] == printed("ping.txt")[-2]  # packets, loss and time
    [run] = told.numbers["runs"]
    assert (run["sent"], run["received"], run["loss_percent"]) == (5, 5, 0)
    assert 0 < run["min_ms"] <= run["avg_ms"] <= run["max_ms"]


def test_hping3_printed_these_lines() -> None:
    told = lp.read(SAMPLES / "probes.pcap").report("hping3")
    theirs = [*printed("hping3.txt"), "", *printed("hping3-81.txt")]
    fields = re.compile(r" rtt=.*|\(\S+ |= .* ms$")
    assert [fields.sub("", line) for line in told.lines] == [fields.sub("", line) for line in theirs]
    only = lp.read(SAMPLES / "probes.pcap").report("hping3", server="192.168.0.30:81")
    assert [run["port"] for run in only.numbers["runs"]] == [81]


def test_traceroute_printed_this_hop() -> None:
    told = lp.read(SAMPLES / "probes.pcap").report("traceroute")
    assert shape(list(told.lines))[1:] == shape(printed("traceroute.txt"))[1:]
    [run] = told.numbers["runs"]
    assert [hop["from"] for hop in run["hops"]] == [["192.168.0.30"] * 3]


def test_hops_that_answer_and_hops_that_do_not() -> None:
    """Probes by UDP: two routers, one that is silent, and the target's port unreachable."""
    sent = []
    for ttl in (1, 2, 3, 4):
        for _ in range(2):
            port = 33434 + len(sent)
            sent.append(packet(1, 9, 17, struct.pack(">HHHH", 40_000, port, 8, 0), ttl=ttl))
    answers = [packet(n // 2 + 2, 1, 1, icmp(11, bytes(4), sent[n][:28])) for n in (0, 1, 2, 3)]
    answers += [packet(9, 1, 1, b"\x03\x03" + icmp(3, bytes(4), sent[n][:28])[2:]) for n in (6, 7)]
    told = lp.read(file(*sent, *answers)).report("traceroute")
    hops = [re.sub(r"\d+\.\d{3} ms", "T", line).split() for line in told.lines[1:]]
    assert [hop[0] for hop in hops] == ["1", "2", "3", "4"]
    assert [len(hop) - 1 for hop in hops] == [3, 3, 2, 3] and hops[2][1:] == ["*", "*"]
    assert hops[0][1] != hops[1][1] and hops[0].count("T") == 2


def test_curls_phases_of_a_first_request() -> None:
    talk = Talk(client_leg=0.0, server_leg=5.0)
    talk.open()
    talk.client(30, get())
    talk.server(60, b"".join(answer(200)))
    [one] = lp.read(pcap(talk.tape)).report("curl").numbers["requests"]
    assert one["time_connect"] == pytest.approx(one["time_pretransfer"] - (30 - 10) / 1000, abs=0.011)
    assert one["time_starttransfer"] - one["time_pretransfer"] == pytest.approx(0.030, abs=1e-4)
    assert one["http_code"] == 200 and one["time_appconnect"] is None


@pytest.mark.parametrize("tool", reports.TOOLS)
def test_a_capture_without_it_says_so(tool: lp.options.Tool) -> None:
    with pytest.raises(ValueError, match=r"no .* in this capture|no SYN"):
        lp.read(pcap_of([])).report(tool)


def test_a_connection_that_carries_data_is_no_probe() -> None:
    talk = Talk(ends=Ends(("10.0.0.1", 40_001)))
    talk.open()
    talk.client(5.0, get("/x"))
    talk.server(6.0, b"".join(answer(5)))
    with pytest.raises(ValueError, match="no SYN without"):
        lp.read(pcap(talk.tape)).report("hping3")
    with pytest.raises(ValueError, match="known are wrk, ping"):
        lp.read(pcap(talk.tape)).report("dig")  # type: ignore[arg-type]


def test_the_command_says_what_it_cannot_do(tmp_path: Path) -> None:
    sample = SAMPLES / "probes.pcap"
    code, _, said = run("report", sample, "--as", "dig")
    assert code == 2 and "expected wrk, ping" in said and "'dig'" in said
    code, _, said = run("report", sample, "--json")
    assert code == 2 and "is for --as" in said
    assert json.loads(answered("report", sample, "--as", "ping", "--json"))
    code, _, said = run("report", sample, "--as", "ping", "--server", "nowhere")
    assert code == 2 and "no echo request" in said
    lp.batch(sample, tmp_path / "results", quiet=True)
    code, _, said = run("report", tmp_path / "results", "--as", "wrk")
    assert code == 2 and "not for the results of a batch" in said
    assert run("report", tmp_path / "results", "-o", tmp_path / "page.html")[0] == 0
    assert "<html" in (tmp_path / "page.html").read_text()
