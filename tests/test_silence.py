"""Does the answer name what never came: requests without an answer, peers that are gone, SYNs that ICMP answered?"""

from __future__ import annotations

from pathlib import Path

import dpkt
from case_scripts import SCRIPTS
from rawip import file, icmp, packet

import latpcap as lp


def said(name: str) -> tuple[dict[str, str | None], str]:
    """The findings of a case that are sentences, by cause; and the whole answer."""
    why = lp.read(SCRIPTS[name].capture()).why()
    return {f.cause: f.text for f in why.findings if f.kind in ("silence", "connection")}, str(why)


def test_a_request_without_an_answer_is_said_first() -> None:
    found, text = said("silence_never_answered")
    assert found["unanswered_request"] is not None
    assert "never answered GET /report (frame 4): 30,000 ms passed" in found["unanswered_request"]
    assert "never answered GET /report" in text.splitlines()[1]


def test_a_client_that_is_gone_repairs_nothing() -> None:
    found, text = said("silence_client_gone")
    assert "client of 10.0.0.2:80 says nothing after frame 4" in (found["silent_peer"] or "")
    assert "the server repeats its data 7 times in 25,401 ms" in (found["silent_peer"] or "")
    assert "says nothing after frame 4" in text and "rto" not in text


def test_a_server_that_is_gone_is_named() -> None:
    found, text = said("silence_server_gone")
    assert "10.0.0.2:80 says nothing after frame 5" in (found["silent_peer"] or "")
    assert "never answered" not in text and "(it waits for GET /second)" in text


def test_one_silence_on_many_connections_is_one_line() -> None:
    from makepcap import Ends, Talk, get, pcap

    tape: list = []
    for port in (40_001, 40_002):
        talk = Talk(ends=Ends(("10.0.0.1", port)), tape=tape)
        talk.open(port - 40_000)
        talk.client(5.0, get("/x"))
        for again in (400.0, 1200.0, 2800.0):
            talk.client(again + port - 40_000, get("/x"), seq=1)
    tape.sort(key=lambda s: s.time_ns)
    whys = {f.cause: f.text or "" for f in lp.read(pcap(tape)).why().findings}
    assert "the same on 2 connections" in whys["silent_peer"]
    assert "unanswered_request" not in whys  # once is enough


def test_a_request_behind_the_servers_fin_waits_for_nothing() -> None:
    from makepcap import Ends, Talk, answer, get, pcap

    talk = Talk()
    talk.open()
    talk.client(5.0, get("/x"))
    talk.server(6.0, b"".join(answer(50)))
    talk.server(6.1, flags="FA")
    talk.client(6.2, get("/late"))
    talk.client(6.3, flags="FA")
    talk.server(6.4)
    other = Talk(ends=Ends(("10.0.0.1", 40_001)), tape=talk.tape)
    other.open(60_000.0)
    causes = {f.cause for f in lp.read(pcap(talk.tape)).why().findings}
    assert "unanswered_request" not in causes


def test_one_direction_does_not_show_that_a_syn_was_never_answered() -> None:
    from makepcap import Ends, Talk, get, pcap

    tape: list = []
    for port in range(40_000, 40_004):
        talk = Talk(ends=Ends(("10.0.0.1", port)), tape=tape)
        talk.client(port - 40_000.0, flags="S")
        talk.client(port - 39_900.0, get())
    Talk(ends=Ends(("10.0.0.1", 41_000), ("10.0.0.7", 443)), tape=tape).client(50.0, flags="S")
    tape.sort(key=lambda s: s.time_ns)
    why = lp.read(pcap(tape)).why()
    assert "unanswered" not in {f.cause for f in why.findings}
    assert why.headline.startswith("Only one direction was captured of 4 of 5 connections")


def test_routers_that_answer_syns_make_a_traceroute() -> None:
    syns = [packet(1, 9, 6, bytes(dpkt.tcp.TCP(sport=4000 + n, dport=80, seq=77, flags=2)), ttl=n) for n in (1, 2, 3)]
    answers = [packet(n, 1, 1, icmp(kind, bytes(4), syns[n - 1][:28])) for n, kind in ((1, 11), (2, 11), (3, 3))]
    last = packet(1, 9, 6, bytes(dpkt.tcp.TCP(sport=4009, dport=80, seq=77, flags=2)))
    found = {f.cause: (f.streams, f.text) for f in lp.read(file(*syns, *answers, last)).why().findings}
    assert found["traceroute"][0] == 2 and "answered by routers on the way" in (found["traceroute"][1] or "")
    assert found["unreachable"][0] == 1 and "ICMP unreachable" in (found["unreachable"][1] or "")
    assert "unanswered" not in found


def test_an_answer_that_cannot_be_read_is_not_missing() -> None:
    from makepcap import Talk, get, pcap

    def asked(answered: bytes) -> set[str]:
        talk = Talk()
        talk.open()
        talk.client(5.0, get("/x"))
        talk.server(6.0)
        if answered:
            talk.server(7.0, answered, seq=50_000)  # of another connection with the same ports: it fits nowhere
        talk.client(20_000.0)
        return {f.cause for f in lp.read(pcap(talk.tape)).why().findings}

    assert "unanswered_request" in asked(b"")
    assert "unanswered_request" not in asked(b"HTTP/1.1 200 OK\r\n\r\n")


def test_whose_acknowledgements_go_on_hears_a_peer_that_the_capture_lacks() -> None:
    from makepcap import Talk, get, pcap

    def gone(hears: int) -> bool:
        talk = Talk()
        talk.open()
        talk.client(5.0, get("/x"))
        talk.server(6.0)
        for number, again in enumerate((400.0, 1200.0, 2800.0)):
            talk.client(again, get("/x"), seq=1, ack=1 + hears * number)
        return "silent_peer" in {f.cause for f in lp.read(pcap(talk.tape)).why().findings}

    assert gone(0) and not gone(100)


def test_a_capture_of_an_archive_ends_with_its_own_last_packet(tmp_path: Path) -> None:
    """One ends 1 ms behind a request, the other 30 s behind; what begins a day later says nothing of either."""
    from makepcap import Ends, Talk, answer, get, pcap

    day = 86_400_000.0 / 2000
    for name, start, after in (("early", 0.0, 1.0), ("late", day, 30_000.0), ("other", 2 * day, 1.0)):
        tape: list = []
        talk, other = Talk(tape=tape), Talk(ends=Ends(("10.0.0.1", 40_001)), tape=tape)
        for number, one in enumerate((talk, other)):
            one.open(start + number)
            one.client(start + 5 + number, get("/a"))
            one.server(start + 8 + number, b"".join(answer(5)))
        talk.client(start + 20, get(f"/{name}"))
        other.client(start + 20 + after, get("/last"))
        tape.sort(key=lambda s: s.time_ns)
        (tmp_path / f"{name}.pcap").write_bytes(pcap(tape))
    lp.batch(tmp_path, tmp_path / "out", jobs=1, quiet=True)
    told = [f.text for f in lp.open_results(tmp_path / "out").why().findings if f.cause == "unanswered_request"]
    assert len(told) == 1 and "GET /late" in (told[0] or "") and "30,000 ms" in (told[0] or ""), told
