"""Which captures make `why` print which first sentence? One of each, true of its capture."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import dpkt
import numpy as np
import pyarrow as pa
import pytest
from makepcap import Ends, Talk, answer, get, pcap
from rawip import file, icmp, packet

import latpcap as lp
from latpcap import words
from latpcap.answers import traffic
from latpcap.cli import colour
from latpcap.findings import fixes, quality
from latpcap.user_waits import cause_totals
from latpcap.user_waits.slow_requests import by_family
from latpcap.vocabulary import CAUSES, STALL

CASES = Path(__file__).with_name("cases")


def asked(
    statuses: list[str], think: float = 1.0, slow: dict[int, float] | None = None, target: str = "/a", port: int = 80,
    leg: float = 0.01, pause: float = 100.0,
) -> bytes:  # fmt: skip
    """Requests on one connection, each answered after `think` ms; those of `slow` after as many more."""
    talk = Talk(ends=Ends(server=("10.0.0.2", port)), client_leg=0.01, server_leg=leg)
    talk.open()
    at = 50.0
    for number, status in enumerate(statuses):
        talk.client(at, get(target))
        done = at + leg + think + (slow or {}).get(number, 0.0)
        talk.server(done, b"".join(answer(50, status)))
        talk.client(done + 0.02)
        at = done + pause
    return pcap(talk.tape)


def turns(port: int, waits: list[float]) -> bytes:
    """Words that no reader knows, each answered after so many ms."""
    talk = Talk(ends=Ends(server=("10.0.0.2", port)))
    talk.open()
    at = 50.0
    for wait in waits:
        talk.client(at, b"\x01\x02\x03 tell me")
        talk.server(at + wait, b"\x04\x05 this")
        talk.client(at + wait + 0.1)
        at += wait + 100.0
    return pcap(talk.tape)


def alone(number: int) -> bytes:
    """So many requests, from the middle of a connection, answered by a program; no kernel says anything by itself."""
    talk = Talk()
    talk.open()
    for at in (10.0, 1_000.0)[:number]:
        talk.client(at, get("/a"))
        talk.server(at + 400.0, b"".join(answer(50)))
    return pcap(talk.tape[3:])


def scan(ports: int, last: str) -> bytes:
    tape: list = []
    for port in range(1, ports + 1):
        talk = Talk(ends=Ends(("10.0.0.1", 20_000 + port), ("10.0.0.2", port)), tape=tape)
        talk.client(port * 2.0, flags="S")
        if port > 2:
            talk.server(port * 2.0 + 0.1, flags=last)
    return pcap(tape)


def dead_window() -> bytes:
    talk = Talk()
    talk.open()
    talk.client(5.0, b"x" * 1000)
    talk.server(5.1, window=0)
    for again in (300.0, 900.0, 2100.0):
        talk.client(again, b"x", seq=1000)
        talk.server(again + 0.1, window=0)
    return pcap(talk.tape)


def idle() -> bytes:
    talk = Talk()
    talk.open()
    talk.client(5_000.0, flags="A")
    talk.server(5_000.1, flags="A")
    return pcap(talk.tape)


def pings(answers: bool) -> bytes:
    """Five echo requests; answered, or by routers on the way."""
    sent = [packet(1, 9, 1, icmp(8, struct.pack(">HH", 7, n)), ttl=n if not answers else 64) for n in range(1, 6)]
    if answers:
        replies = [packet(9, 1, 1, icmp(0, struct.pack(">HH", 7, n))) for n in range(1, 5)]
    else:
        replies = [packet(n + 1, 1, 1, icmp(11, bytes(4), sent[n - 1][:28])) for n in range(1, 6)]
    return file(*sent, *replies)


def one_direction() -> bytes:
    talk = Talk()
    for at in (5.0, 10.0, 15.0):
        talk.client(at, get())
    return pcap(talk.tape)


def refused() -> bytes:
    talk = Talk()
    talk.client(0, flags="S")
    talk.server(1, flags="RA")
    return pcap(talk.tape)


def unanswered() -> bytes:
    talk = Talk()
    talk.client(0, flags="S")
    other = Talk(ends=Ends(("10.0.0.1", 40_001)), tape=talk.tape)
    other.client(1000, flags="S")
    other.server(1001, flags="RA")
    return pcap(talk.tape)


MADE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a scan": (lambda: scan(30, "RA"), "A scan: 10.0.0.1 tried 30 ports of 10.0.0.2: 28 refused, 2 without"),
    "pings": (lambda: pings(True), "No TCP: 5 pings, 1 without an answer; round trips 5.00 to 5.00 ms"),
    "a traceroute by pings": (
        lambda: pings(False), "No TCP: a traceroute to 10.0.0.9 by ICMP: routers answered 5 of 5 echo requests.",
    ),
    "a dead window": (
        dead_window,
        "10.0.0.2:80 took no data for 2,095 ms: its receive window was closed (from frame 5 on, to the end), because",
    ),
    "idle": (idle, "Idle: 1 connection without any data in 5 s."),
    "one direction": (one_direction, "Only one direction was captured of its one connection: no latency can be seen"),
    "refused": (refused, "The only connection to 10.0.0.2:80 was refused with RST: nothing listens on that port."),
    "unanswered": (unanswered, "1 of 2 connections to 10.0.0.2:80 was refused with RST"),
    "nothing": (lambda: pcap([]), "The capture is empty: it has no frame."),
    "a redirect loop": (
        lambda: asked(["301 Moved Permanently"] * 5),
        "5 of 5 answers of 10.0.0.2:80 are 301: a redirect loop, or a client that does not follow (/a was asked"
    ),
    "redirects without a loop": (
        lambda: asked(["301 Moved Permanently"] * 5, pause=2_000.0), "Nothing is slow at 10.0.0.2:80: 5 requests",
    ),
    "errors": (lambda: asked(["404 Not Found"] * 5), "5 of 5 answers of 10.0.0.2:80 are 404; nothing is slow"),
    "different errors": (
        lambda: asked(["404 Not Found"] * 3 + ["500 Oops"] * 2),
        "10.0.0.2:80 answers with errors: 3 x 404, 2 x 500 of 5; nothing is slow",
    ),
    "logins": (lambda: asked(["401 Unauthorized"] * 5), "5 of 5 answers of 10.0.0.2:80 are 401: logins are refused"),
    "one redirect": (lambda: asked(["301 Moved Permanently"] + ["200 OK"] * 4), "Nothing is slow at 10.0.0.2:80: 5"),
    "one request": (lambda: asked(["200 OK"]), "Nothing is slow at 10.0.0.2:80: its one request took 1.01 ms."),
    "all slow": (lambda: asked(["200 OK"] * 5, 60.0), "10.0.0.2:80 is slow: most time "),
    "one of many": (
        lambda: asked(["200 OK"] * 20, 1.0, {7: 500.0}), "10.0.0.2:80: GET /a took 501 ms, ",
    ),
    "a tail": (
        lambda: asked(["200 OK"] * 20, 1.0, {7: 500.0, 9: 90.0, 15: 70.0}), "10.0.0.2:80: 3 of 20 requests are slow, ",
    ),
    "the path": (
        lambda: asked(["200 OK"] * 4, 0.0, leg=60.0),
        "What takes the time at 10.0.0.2:80 is probably the path's round trip, 60.0 ms of it: 4 requests",
    ),
    "an answer that nothing else measures": (
        lambda: alone(1), "What takes the time at 10.0.0.2:80 is perhaps the path's round trip, 400 ms of it: its one ",
    ),
    "two answers that nothing else measures": (
        lambda: alone(2), "What takes the time at 10.0.0.2:80 is probably the path's round trip, 400 ms of it: 2 req",
    ),
    "an unknown protocol": (
        lambda: turns(7777, [1.0, 400.0, 300.0]), "10.0.0.2:7777: 1 of 2 turns took over 20 ms, if it was waited for",
    ),
    "one turn": (lambda: turns(7777, [400.0]), "10.0.0.2:7777: its one turn took over 20 ms, if it was waited for"),
    "a person": (
        lambda: turns(22, [1.0, 400.0, 300.0]),
        "10.0.0.2:22: an interactive session (SSH by its port): 1 of 2 turns took over 20 ms, and a person",
    ),
    "a tunnel": (lambda: turns(1194, [1.0, 400.0, 1.0]), "10.0.0.2:1194: a tunnel (OpenVPN by its port): 1 of 2 turns"),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_the_first_sentence(name: str) -> None:
    make, said = MADE[name]
    why = lp.read(make()).why()
    assert why.headline.startswith(said), why.headline
    assert str(why).splitlines()[1] == why.headline == why.to_dict()["headline"]
    if " x 404, 2" not in said and "answered." not in said:
        assert why.headline.endswith(".")


@pytest.mark.parametrize("apart", [False, True])
def test_a_scan_beside_requests_and_peers_that_dial_each_other(apart: bool) -> None:
    """Sixty hosts that do not answer, all on port 445, or each on a port of its own as peers have them."""
    talk = Talk()
    talk.open()
    for n in range(90):
        talk.client(10.0 + n * 10, get())
        talk.server(11.0 + n * 10, b"".join(answer(5)))
        talk.client(11.1 + n * 10)
        other = Talk(ends=Ends(("10.0.0.1", 41_000 + n), (f"10.0.1.{n}", 5000 + n if apart else 445)), tape=talk.tape)
        if n < 60:
            other.client(12.0 + n * 10, flags="S")
        else:
            other.open(12.0 + n * 10)
            other.client(14.0 + n * 10, get())
            other.server(15.0 + n * 10, b"".join(answer(5)))
    why = lp.read(pcap(sorted(talk.tape, key=lambda segment: segment.time_ns))).why()
    scan = "A scan: 10.0.0.1 tried 1 port of 60 hosts: 0 refused, 60 without an answer, 0 answered."
    assert (why.headline == scan) is (not apart) and (why.verdict == "scan") is (not apart)
    assert "90 answered requests" in str(why)


def test_a_scan_is_told_as_one_and_a_few_connections_each() -> None:
    refused = "was refused with RST"
    assert refused not in str(lp.read(scan(30, "RA")).why())
    assert str(lp.read(scan(4, "RA")).why()).count(refused) == 2


def test_what_is_fast_has_nothing_to_mend() -> None:
    why = lp.read(asked(["200 OK"] * 5)).why()
    assert "  fix " not in str(why) and why.to_dict()["slow"]["how"] == "none" and why.grade is not None


def test_the_threshold_can_be_set_and_is_printed() -> None:
    capture = lp.read(asked(["200 OK"] * 10, 5.0, {3: 4.0}))
    assert "0 slow (over 20 ms)" in str(capture.why())
    assert capture.why(slow_ms=6).to_dict()["slow"]["count"] == 1 and "1 slow (over 6 ms)" in str(
        capture.why(slow_ms=6)
    )
    assert capture.why(slow_ms=1).to_dict()["slow"]["how"] == "typical"
    assert capture.stream(0).why(slow_ms=6).to_dict()["slow"]["count"] == 1


def test_the_headline_costs_users_most() -> None:
    """One server took 2 s once, the other 50 ms ten times: more requests were slow there."""
    tape: list = []
    once = Talk(ends=Ends(("10.0.0.1", 40_001), ("10.0.0.3", 80)), tape=tape)
    once.open()
    once.client(10.0, get("/once"))
    once.server(2010.0, b"".join(answer(50)))
    often = Talk(ends=Ends(("10.0.0.1", 40_002), ("10.0.0.2", 80)), tape=tape)
    often.open(5_000.0)
    for n in range(10):
        often.client(5_100.0 + n * 200, get("/often"))
        often.server(5_150.0 + n * 200, b"".join(answer(50)))
        often.client(5_150.1 + n * 200)
    capture = lp.read(pcap(tape))
    why = capture.why()
    assert why.headline.startswith("10.0.0.2:80 is slow")
    assert [(s["server"], s["slow"], s["requests"]) for s in why.servers] == [
        ("10.0.0.2:80", 10, 10),
        ("10.0.0.3:80", 1, 1),
    ]
    assert "  slow      10.0.0.3:80: 1 of 1 request slow, p50 2,000, p99 2,000 ms, server (" in str(why)
    assert "  further   10.0.0.3:80: 1 of 1 request slow, p50 2,000, p99 2,000 ms, server (" in str(capture.why(top=2))
    assert capture.why(server="10.0.0.3").server == "10.0.0.3:80"
    with pytest.raises(ValueError, match=r"no server 9\.9\.9\.9 .*there are: 10\.0\.0\.2:80"):
        capture.why(server="9.9.9.9")
    named = Talk(ends=Ends(("10.0.0.1", 40_003), ("10.0.0.4", 8080)), tape=tape)
    named.open(9_000.0)
    named.client(9_005.0, get().replace(b"Host: h", b"Host: Shop.example"))
    named.server(9_006.0, b"".join(answer(50)))
    capture = lp.read(pcap(tape))
    assert (capture.why().server, capture.why(server="shop.example").server) == ("10.0.0.2:80", "10.0.0.4:8080")


def test_losses_are_added_up_and_counted() -> None:
    why = lp.read(CASES / "tail_probe_and_timeout_at_sender" / "capture.pcap").why()
    [loss] = [f for f in why.to_dict()["families"] if f["family"] == "loss"]
    assert loss is why.to_dict()["families"][0] or loss["share"] == why.to_dict()["families"][0]["share"]
    assert set(loss["causes"]) <= {"tlp", "rto", "fast_retransmit", "reordering"} and why.to_dict()["lost"] >= 2
    assert f"{why.to_dict()['lost']:,} segments lost" in str(why) and "Profile the server" not in str(why)


def test_losses_are_what_is_slow_beyond_the_path() -> None:
    """The round trip puts other families first, and never losses behind it: what is slow is so beyond it."""

    def spent(cause: str, ms: float) -> cause_totals.CauseTotal:
        one = np.array([0])
        return cause_totals.CauseTotal(None, cause, "network", None, one, np.array([ms]), one, 0.9, 1)  # type: ignore[arg-type]

    slow = np.array([0])
    lossy = [spent("network", 50.0), spent("fast_retransmit", 21.0), spent("server_think", 22.0)]
    assert next(iter(by_family(lossy, slow, 1))) == "loss" and next(iter(by_family(lossy, slow[:0], 1))) == "path"
    assert next(iter(by_family([*lossy, spent("cwnd", 23.0)], slow, 1))) == "path"
    assert next(iter(by_family([lossy[0], lossy[2]], slow, 1))) == "path"


def test_a_round_trip_that_fast_requests_take_too_makes_none_slow() -> None:
    """One of two requests is slow: the path's round trip is no reason for it, however much of its time it is."""

    def spent(cause: str, ms: float) -> cause_totals.CauseTotal:
        one = np.array([0])
        return cause_totals.CauseTotal(None, cause, "network", None, one, np.array([ms]), one, 0.9, 1)  # type: ignore[arg-type]

    both, slow = [spent("network", 50.0), spent("server_think", 22.0)], np.array([0])
    assert next(iter(by_family(both, slow, 2))) == "server" and next(iter(by_family(both, slow, 1))) == "path"
    assert next(iter(by_family([*both, spent("queueing", 23.0)], slow, 2))) == "path"


def streams(position: str, **counted: float | None) -> pa.Table:
    """One stream with these counts of its server's segments, which its client waited for."""
    names = ("packets", "retransmissions", "out_of_order", "spurious_retransmissions", "dsacks", "unseen_frames")
    sides = {f"{side}_{name}": [0.0] for side in ("client", "server") for name in names}
    found = {"stream": [0], "position": [position], **sides, "server_packets": [100.0]}
    return pa.table(found | {name: pa.array([value], pa.float64()) for name, value in counted.items()})


def test_a_loss_is_counted_by_who_sees_it() -> None:
    """At the sender each repeat tells of one, however Wireshark calls it; at the receiver the numbers that are skipped
    do, and late packets whose numbers are all there were overtaken."""
    waited = pa.table({"stream": [0], "fast_retransmit_ms": [20.0], "tlp_ms": [0.0], "rto_ms": [0.0]})
    repeats = {"server_retransmissions": 7.0, "server_out_of_order": 3.0}
    assert quality.lost(streams("at_server", **repeats, client_dsacks=2.0, server_unseen_frames=0.0), waited) == 8
    assert quality.lost(streams("at_client", **repeats, server_unseen_frames=4.0), waited) == 7
    assert quality.lost(streams("at_client", **repeats, server_unseen_frames=0.0), waited) == 0
    assert quality.lost(streams("at_client", **repeats, server_unseen_frames=None), waited) == 7
    assert quality.lost(streams("", **repeats, server_unseen_frames=0.0), waited) == 7


def test_a_fix_where_there_is_something_to_mend() -> None:
    """None where nothing is slow; of a program's time that is not proven, how the rival is ruled out."""
    assert lp.read(asked(["200 OK"] * 5)).why().fix is None
    probable = fixes.fix("server_think", "server", 40.0, None, proven=False, rival="nagle").knob
    assert probable is not None and probable.endswith("out (set TCP_NODELAY on the server and measure again).")
    unknown = fixes.fix("server_think", "server", 40.0, None, proven=False, rival="busy_host").knob
    assert unknown is not None and unknown.endswith(", once the rival is ruled out.")
    assert (fixes.fix("cwnd", "server", 40.0, None, proven=False, lost=6).knob or "").startswith(
        "Find where the path drops packets: 6 lost segments cut this window. Keep connections"
    )


def test_every_cause_has_its_phrase() -> None:
    named = {word.removeprefix("cause_") for word in words.CATALOGUES["en"] if word.startswith("cause_")}
    assert named >= {*CAUSES, STALL} - {"syn_rto", "capture_gap", "unknown"}


def test_a_knob_in_the_words_of_the_program() -> None:
    def knob(owner: str, software: str | None, protocol: str) -> str:
        return fixes.fix(STALL, owner, 40.0, software, proven=True, protocol=protocol).knob or ""

    assert "WEBrick: socket.setsockopt(:TCP, :NODELAY, 1)" in knob("server", "WEBrick/1.8.1", "http")
    assert "-Dsun.net.httpserver.nodelay=true" in knob("server", None, "http") and "Java" not in knob(
        "server", "nginx", "http"
    )
    assert "'tcp_nodelay' => true" in knob("client", "nginx", "http") and "no_delay=True" in knob(
        "client", None, "memcached"
    )
    assert knob("client", None, "smtp") == "TCP_NODELAY on the client, or both parts in one write (writev)"


def test_a_terminal_gets_lines_that_fit() -> None:
    text = "  fix       " + "word " * 40
    lines = colour.wrapped(text.rstrip(), 60).splitlines()
    assert all(len(line) <= 60 for line in lines) and len(lines) > 3
    assert all(line.startswith(" " * 12) for line in lines[1:])
    assert colour.wrapped("short", 60) == "short"


def test_nothing_of_it_needs_icmp() -> None:
    """A capture of something else than IP says what it is, and invents nothing."""
    arp = bytes(dpkt.ethernet.Ethernet(type=0x806, data=bytes(28)))
    from makepcap import pcap_of

    assert lp.read(pcap_of([(10**18, arp)])).why().headline.startswith("No TCP: its one frame is ARP.")


def test_numbers_of_a_status_have_names() -> None:
    why = lp.read(CASES / "smb_files" / "capture.pcap").why()
    assert " x SUCCESS" in str(why) and "0x00000000" in why.to_dict()["traffic"]["statuses"]


def test_errors_without_an_answer_are_no_kind_of_answers() -> None:
    """Damage may leave an exchange that counts as an error, and no status of any."""
    found = {"protocol": "redis", "errors": 1, "answers": 0, "asked_again": 0}
    assert traffic._kind(found, 0, 0) is None  # type: ignore[arg-type]
    assert traffic._kind(found | {"answers": 1}, 0, 0) == "errors"  # type: ignore[arg-type]


@pytest.mark.parametrize("copies", [(720.0,), (240.0, 720.0)])
def test_what_was_captured_at_its_host_was_not_lost_before(copies: tuple[float, ...]) -> None:
    talk = Talk(server_leg=0.01, client_leg=20.0)
    talk.open()
    at = 60.0
    for number in range(6):
        asked, begin = get(f"/{number}"), talk.c.sent
        for again in (0.0, *copies) if number % 2 else (0.0,):
            talk.client(at + again, asked, seq=begin)
        at += copies[-1] if number % 2 else 0.0
        talk.server(at + 0.02)
        talk.server(at + 1.0, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        talk.client(at + 21.0)
        at += 60.0
    why = lp.read(pcap(talk.tape)).why()
    assert words.say("cause_host_drops", owner="server") in why.headline and "lost" not in why.headline
