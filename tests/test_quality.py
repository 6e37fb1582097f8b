"""Are the capture's own limits seen before anything is accused? The same talks, recorded well and badly."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from makepcap import Ends, Segment, get, pcap
from simulator import MS, Host, Path, Script, record

import latpcap as lp
from latpcap import findings
from latpcap.findings import quality
from latpcap.vocabulary import STALL, SUSPECTED

HEAD, BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n", b"b" * 600
ASK, NODELAY = ((0.0, get()),), Host(nodelay=True)
SCRIPTS = {
    "stall": (Script(ASK, ((0.0, HEAD), (0.05, BODY))), Host(), STALL),
    "fast": (Script(ASK, ((0.0, HEAD + BODY),)), NODELAY, "network"),
    "gap": (Script(ASK, ((0.0, HEAD), (43.0, BODY))), NODELAY, "server_think"),
    "think": (Script(ASK, ((0.0, HEAD + BODY),), server_think=(39.0, 41.0)), NODELAY, "server_think"),
}
PLACES = {"server": Path(1.0, 0.005), "client": Path(0.005, 3.0), "middle": Path(2.0, 2.0)}
Tape = list[Segment]


def tape_of(script: str, place: str) -> Tape:
    what, server, _ = SCRIPTS[script]
    return record(what, server=server, path=PLACES[place]).tape


def checks_of(capture: lp.Capture) -> dict[str, quality.Check]:
    return {c.check: c for c in quality.judge(findings.FinderTables(capture.arrow))}


def ends_of(tape: Tape) -> list[Ends]:
    return list(dict.fromkeys(s.ends for s in tape))


def later(tape: Tape, ns: int) -> Tape:
    return [replace(s, time_ns=s.time_ns + ns) for s in tape]


def doubled(tape: Tape, ns: int, client: bool | None = None) -> Tape:
    """Every packet again, or those of one side: a mirror port that copies what comes in and what goes out."""
    again = later([s for s in tape if client is None or s.from_client == client], ns)
    return sorted([*tape, *again], key=lambda s: s.time_ns)


def stepped(tape: Tape, ns: int) -> Tape:
    half = len(tape) // 2
    return tape[:half] + later(tape[half:], ns)


BAD: dict[str, tuple[str, Callable[[Tape], Tape]]] = {
    "doubled": ("doubles", lambda tape: doubled(tape, 5_000)),
    "doubled later": ("doubles", lambda tape: doubled(tape, 300_000)),
    "client doubled": ("doubles", lambda tape: doubled(tape, 5_000, client=True)),
    "server doubled": ("doubles", lambda tape: doubled(tape, 5_000, client=False)),
    "clock back": ("clock", lambda tape: stepped(tape, -500 * MS)),
    "clock ahead": ("clock_ahead", lambda tape: stepped(tape, 10_000 * MS)),
    "one direction": ("one_direction", lambda tape: [s for s in tape if s.from_client]),
    "other direction": ("one_direction", lambda tape: [s for s in tape if not s.from_client]),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_recording_accuses_nobody(bad: str, script: str, place: str) -> None:
    """What is said for sure, or probably, of a bad recording is what its talk was made for."""
    check, worsen = BAD[bad]
    whole, worse = tape_of(script, place), worsen(tape_of(script, place))
    assert not checks_of(lp.read(pcap(whole)))
    capture = lp.read(pcap(worse))
    found = checks_of(capture)
    if check in found:
        assert found[check].text in str(capture.why()) or found[check].most == 1
        if check == "doubles" and found[check].most < 1:
            assert "(editcap -d; of tcpdump -i any: editcap -I 20 -D 100)" in found[check].text
    else:  # where no exchange was going on, a jump harms nobody
        assert check == "clock_ahead"
    truth = {SCRIPTS[script][2], "network", "nagle"} | (
        {"server_think"} if place != "client" or script != "fast" else set()
    )
    for row in capture.arrow("findings").to_pylist():
        if row["kind"] == "latency" and row["grade"] in ("proven", "probable") and row["share"] > 0.1:
            assert row["cause"] in truth and (row["cause"] != "nagle" or script == "stall"), row
    if check == "doubles":  # the rows say no more than the findings
        for row in capture.arrow("causes").to_pylist():
            stall = row["cause"] in ("nagle", "delayed_ack") and script == "stall"
            assert row["confidence"] <= SUSPECTED or stall, row


def test_a_host_that_slept_is_no_clock() -> None:
    """What it had queued carries older stamps, and leaves all at once: its clock seems to run, for some ms."""
    slow = Script(ASK, ((0.0, HEAD), (20_000.0, BODY)), exchanges=2, client_think=(8.0, 9.0))
    script = replace(slow, alter=lambda number, s: replace(s, answer=((0.0, HEAD + BODY),)) if number else s)
    capture = lp.read(pcap(record(script, server=NODELAY, path=PLACES["server"], connections=1).tape))
    events = capture.arrow("events")
    rows = events.select(["time", "from_client", "tsval"]).to_pylist()
    [slept] = [i for i in range(1, len(rows)) if (rows[i]["time"] - rows[i - 1]["time"]).total_seconds() > 1]
    stamps = [None if r["from_client"] else r["tsval"] for r in rows]
    assert stamps[slept] is not None
    tables = dict(findings.FinderTables(capture.arrow))
    for queued_ms, clock in ((3_000, False), (19_990, True)):
        told = [*stamps[:slept], stamps[slept] - queued_ms, *stamps[slept + 1 :]]
        if clock:  # and from then on
            told[slept:] = [s and s - queued_ms for s in stamps[slept:]]
        column = pa.array(told, events.schema.field("tsval").type)
        tables["events"] = events.set_column(events.column_names.index("tsval"), "tsval", column)
        assert ("clock_ahead" in {c.check for c in quality.judge(tables)}) == clock


def test_packets_that_never_passed_are_counted() -> None:
    """Lost before the capture or missed by it: the IPv4 identifications know, at both ends of a direction's middle."""
    rng = random.Random(3)
    tape = tape_of("gap", "middle")
    inner = range(12, len(tape) - 12)
    lost = {at for at in inner if tape[at].payload and rng.random() < 0.1}
    capture = lp.read(pcap([s for at, s in enumerate(tape) if at not in lost]))
    found = checks_of(capture)["unseen_frames"]
    assert (found.count, found.of, found.most) == (len(lost), len(tape), 1.0)
    streams = capture.arrow("streams")
    assert sum(sum(streams[f"{side}_unseen_frames"].to_pylist()) for side in ("client", "server")) == len(lost)
    # without time stamps nothing shows that the client's counter is the connection's own, as the server's 0 does
    bare = [replace(s, options=tuple(o for o in s.options if o[0] != 8)) for at, s in enumerate(tape) if at not in lost]
    told = lp.read(pcap(bare)).arrow("streams").select(["client_unseen_frames", "server_unseen_frames"]).to_pylist()
    by_client = [sum(tape[at].from_client and tape[at].ends == e for at in lost) for e in ends_of(tape)]
    assert [s["client_unseen_frames"] for s in told] == [None if n else 0 for n in by_client]
    assert sum(s["server_unseen_frames"] for s in told) == len(lost) - sum(by_client)
    random_ids = [replace(s, ip_id=rng.randrange(1, 65_536)) for s in tape]
    assert set(lp.read(pcap(random_ids)).arrow("streams")["client_unseen_frames"].to_pylist()) == {None}


@pytest.mark.parametrize("snaplen", [54, 66, 96, 120])
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_snap_length_changes_no_verdict(script: str, snaplen: int) -> None:
    tape = tape_of(script, "client")
    first, cut = (lp.read(pcap(tape, snaplen=n)).arrow("findings").to_pylist()[0] for n in (262_144, snaplen))
    assert (first["cause"], first["owner"]) == (cut["cause"], cut["owner"])
    if snaplen >= 66:  # with the time stamps
        # what was asked of a program is in the payload
        unread = snaplen == 66 and first["cause"] in ("server_think", "client_think")
        assert cut["grade"] == ("probable" if unread else first["grade"])
    assert first["cause"] == SCRIPTS[script][2]


@pytest.mark.parametrize(
    ("missing", "confidence", "says"),
    [
        (0, None, ""),
        (1, 1.0, "1 of 960 exchanges: it is not judged by what is left"),
        (96, 1.0, "96 of 960 exchanges: these are not judged by what is left"),
        (97, 0.95, "97 of 960"),
        (480, 0.95, "480 of 960"),
        (481, 0.88, "481 of 960"),
    ],
)
def test_missing_packets_lower_all_confidence_from_a_tenth_on(
    missing: int, confidence: float | None, says: str
) -> None:
    """Above a tenth of the exchanges, and further above half of them."""
    table = lp.read().arrow("exchanges")
    gaps = pa.array([0.5 if n < missing else 0.0 for n in range(table.num_rows)])
    table = table.set_column(table.column_names.index("capture_gap_ms"), "capture_gap_ms", gaps)
    found = quality._gaps(table)
    assert [check.most for check in found] == ([] if confidence is None else [confidence])
    assert all(says in check.text and check.count == missing for check in found)
