"""Does a capture give the lines that pgbench printed while it was taken? Eight runs on loopback, PostgreSQL 15."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from makepcap import Talk, get, pcap

import latpcap as lp
from latpcap.reports import Report, pgbench

RUNS = Path(__file__).parent / "pgbench"
"""`pgbench -t` with: tpcb -c 2; prepared -S -M prepared -c 4; extended -N -M extended -c 2; rate -S -R 60 -c 2;
reconnect -S -C -c 2; failures: serializable transactions that collide, -c 4; aborted: a script that divides by zero;
script: two transactions and a pause, -c 3. Beside each what it printed."""
NAMES = sorted(path.stem for path in RUNS.glob("*.txt"))
NOT_KNOWN = ("scaling factor", "number of threads", "maximum number of tries", "number of transactions per client",
             "rate limit schedule lag", "pgbench (")  # fmt: skip


def said(name: str) -> Report:
    return lp.read(RUNS / f"{name}.pcap.gz").report("pgbench")


def labelled(lines: list[str]) -> dict[str, str]:
    return {found[1]: found[2] for line in lines if (found := re.match(r"([^:=]+?)(?:: | = )(.*)", line))}


def number(text: str) -> float:
    return float(re.match(r"[\d.]+", text)[0])  # type: ignore[index]


@pytest.mark.parametrize("name", NAMES)
def test_pgbench_printed_these_lines(name: str) -> None:
    printed = [line for line in (RUNS / f"{name}.txt").read_text().splitlines() if not line.startswith(NOT_KNOWN)]
    theirs, ours = labelled(printed), labelled(list(said(name).lines))
    assert list(ours) == list(theirs)
    for label in ("query mode", "number of clients", "number of failed transactions"):
        assert ours[label] == theirs[label]
    assert number(ours["number of transactions actually processed"]) == number(
        theirs["number of transactions actually processed"]
    )
    assert ours["transaction type"] == (theirs["transaction type"] if "builtin" in theirs["transaction type"] else "?")
    assert number(ours["tps"]) == pytest.approx(number(theirs["tps"]), rel=0.01)
    assert ours["tps"].split(" ", 1)[1] == theirs["tps"].split(" ", 1)[1]
    connecting = next(label for label in ours if label.endswith("connection time"))
    assert number(ours[connecting]) == pytest.approx(number(theirs[connecting]), abs=1.0)
    if name == "rate":  # what it began late is in pgbench's latency and in no capture
        assert number(ours["latency average"]) < number(theirs["latency average"])
    else:
        assert number(ours["latency average"]) == pytest.approx(number(theirs["latency average"]), rel=0.01)
        assert ("including failures" in ours["latency average"]) == ("including failures" in theirs["latency average"])


def test_what_no_capture_knows_is_said() -> None:
    assert any("threads" in line for line in said("tpcb").unknown)
    assert any("with -R pgbench adds how late" in line for line in said("rate").unknown)
    assert any("every connection repeats 2 transactions in turn" in line for line in said("script").unknown)
    assert any("2 transactions met an error that ends" in line for line in said("aborted").unknown)


def test_a_pause_paces_from_half_of_the_run_on() -> None:
    assert said("rate").numbers["idle_share"] > pgbench.PACED > said("script").numbers["idle_share"]


def test_other_captures_have_no_transactions() -> None:
    talk = Talk()
    talk.open()
    talk.client(5.0, get())
    with pytest.raises(ValueError, match="no statement of PostgreSQL in this capture"):
        lp.read(pcap(talk.tape)).report("pgbench")
    with pytest.raises(ValueError, match=r"no statement of PostgreSQL to 9\.9\.9\.9"):
        lp.read(RUNS / "tpcb.pcap.gz").report("pgbench", server="9.9.9.9")
