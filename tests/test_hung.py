"""What never ended: answers that stop, packets too large for the path, idle connections that were closed or dropped.

Beside each what only looks like it.
"""

from __future__ import annotations

import struct
from dataclasses import replace

import dpkt
import pytest
from makepcap import Ends, Segment, Talk, answer, get, pcap, pcap_of
from rawip import icmp

import latpcap as lp
from latpcap.findings.schema import Finding

FULL = b"x" * 1460


def causes(capture: bytes) -> dict[str, Finding]:
    """The findings that are no latency, by cause."""
    return {f.cause: f for f in lp.read(capture).why().findings if f.kind != "latency"}


def sack(*blocks: tuple[int, int], isn: int = 5000) -> tuple[int, bytes]:
    """Selective acknowledgements, relative as `Talk` counts."""
    return 5, b"".join(struct.pack(">II", left + isn, right + isn) for left, right in blocks)


def black_hole(*, full: int = 2, tail: int = 300, passes: bool = True, repeats: int = 5) -> Talk:
    """The server answers with full segments and a tail; only the tail comes, and the first full one is repeated."""
    talk = Talk(server_leg=0.01, client_leg=8.0)
    talk.open()
    talk.client(20.0, get("/page"))
    head = answer(1460 * full + tail)[0]
    sent = head + b"x" * (1460 * full + tail - len(head))
    for number in range(full):
        talk.server(21.0, sent[1460 * number :][:1460])
    talk.server(21.0, sent[1460 * full :])
    if passes:
        talk.client(29.0, ack=1, options=[sack((1460 * full + 1, len(sent) + 1))])
    at, pause = 250.0, 200.0
    for _ in range(repeats):
        talk.server(at, sent[:1460], seq=1)
        at, pause = at + pause * 2, pause * 2
    talk.client(at, flags="FA", ack=1)
    talk.server(at + 0.1)
    return talk


def test_full_segments_that_never_arrive_are_the_paths_mtu() -> None:
    why = lp.read(pcap(black_hole().tape)).why()
    [found] = [f for f in why.findings if f.cause == "path_mtu"]
    assert (found.owner, found.grade) == ("network", "proven")
    assert "packets with 1,460 bytes of data do not get through from 10.0.0.2:80 to 10.0.0.1" in (found.text or "")
    assert "repeated up to 5 times" in (found.text or "")
    assert why.headline.startswith("Packets with 1,460 bytes") and why.grade == "proven"
    assert "clamp the MSS" in (why.fix or "")


def test_one_full_segment_that_passed_excludes_the_mtu() -> None:
    talk = black_hole(full=3, passes=False, repeats=0)
    talk.tape = talk.tape[:-2]
    talk.client(29.0, ack=1, options=[sack((1461, 4000))])  # the first is lost, the next full ones came
    for at in (250.0, 650.0, 1450.0, 3050.0, 6250.0):
        talk.server(at, FULL, seq=1)
    talk.client(9000.0, flags="FA", ack=1)
    assert "path_mtu" not in causes(pcap(talk.tape))


def test_a_full_segment_that_had_been_acknowledged_excludes_the_mtu() -> None:
    talk = Talk(server_leg=0.01, client_leg=8.0)
    talk.open()
    talk.client(20.0, get("/page"))
    head = answer(6000)[0]
    talk.server(21.0, head + b"x" * (1460 - len(head)))
    talk.client(29.0)
    talk.server(29.1, FULL)
    talk.server(29.1, b"y" * 200)
    talk.client(38.0, ack=1461, options=[sack((2921, 3121))])
    for at in (250.0, 650.0, 1450.0, 3050.0, 6250.0):
        talk.server(at, FULL, seq=1461)
    talk.client(9000.0, flags="FA", ack=1461)
    assert "path_mtu" not in causes(pcap(talk.tape))


def test_a_dead_host_is_no_mtu() -> None:
    talk = black_hole(passes=False)
    talk.tape = talk.tape[:-2]  # nothing is heard of the client any more
    found = causes(pcap(talk.tape))
    assert "path_mtu" not in found and "silent_peer" in found


def test_without_selective_acks_the_size_is_suspected_only() -> None:
    talk = Talk(server_leg=0.01, client_leg=8.0)
    talk.open()
    talk.client(20.0, get("/page"))
    talk.server(21.0, answer(5840)[0])
    talk.client(30.0)
    start = talk.s.sent
    for _ in range(4):
        talk.server(31.0, FULL)
    for at in (250.0, 650.0, 1450.0, 3050.0, 6250.0):
        talk.server(at, FULL, seq=start)
    talk.client(9000.0, flags="FA", ack=start)
    found = causes(pcap(talk.tape))["path_mtu"]
    assert found.grade == "suspected" and "their size may be more than the path's MTU" in (found.text or "")


def test_smaller_copies_that_pass_prove_the_mtu() -> None:
    talk = black_hole(full=1, tail=0, passes=False, repeats=0)
    talk.tape = talk.tape[:-2]
    for at in (250.0, 650.0, 1450.0, 3050.0):
        talk.server(at, FULL, seq=1)
    talk.server(6250.0, FULL[:512], seq=1)
    talk.client(6260.0, ack=513)
    talk.server(6261.0, FULL[512:1024], seq=513)
    talk.client(6270.0, ack=1025)
    talk.server(6271.0, FULL[1024:], seq=1025)
    talk.client(6280.0, ack=1461)
    found = causes(pcap(talk.tape))["path_mtu"]
    assert "they were sent again with 512 bytes, and passed" in (found.text or "")


def test_at_the_receiver_a_hole_of_full_size_stays_open() -> None:
    tape = [s for s in black_hole().tape if len(s.payload) < 1460]  # the others never came here
    found = causes(pcap(tape))["path_mtu"]
    assert found.grade == "probable" and "never arrive here, smaller ones do" in (found.text or "")


def test_at_the_receiver_an_answer_whose_head_never_came_is_no_gap_of_the_capture() -> None:
    tape = [s for s in black_hole(passes=False).tape if len(s.payload) < 1460]
    tail = next(number for number, s in enumerate(tape) if s.payload and not s.from_client)
    ack = replace(tape[tail - 1], from_client=True, flags="A", ack=5001, seq=tape[tail].ack, payload=b"", options=(),
                  time_ns=tape[tail].time_ns + 1_000)  # fmt: skip
    found = causes(pcap([*tape[: tail + 1], ack, *tape[tail + 1 :]]))["path_mtu"]
    assert "2,920 bytes were missing" in (found.text or "")
    missed = replace(ack, ack=5001 + 2920 + 300)  # the client has all: only the capture misses bytes
    assert "path_mtu" not in causes(pcap([*tape[: tail + 1], missed]))


def test_at_the_receiver_later_packets_count_an_answer_that_never_came() -> None:
    def found(acked: int = 5001, **sizes: int) -> Finding | None:
        tape = black_hole(passes=False, **sizes).tape
        tape = [s for s in tape if not s.payload or s.from_client]  # of the answer, nothing came here
        return causes(pcap([replace(s, ack=acked) if "F" in s.flags else s for s in tape])).get("path_mtu")

    missing = found(full=2)
    assert missing is not None and (missing.owner, missing.grade) == ("network", "probable")
    assert "answered GET /page (frame 4), but nothing of the answer arrives at 10.0.0.1" in (missing.text or "")
    assert found(full=0) is None  # a small packet, which may have been lost
    assert found(full=2, acked=5001 + 3220) is None  # the client has it: the capture missed it


def with_icmp(tape: list[Segment], mtu: int) -> bytes:
    """A router's "fragmentation needed" behind every full segment."""
    packets = []
    for segment in tape:
        frame = segment.frame()
        packets.append((segment.time_ns, frame))
        if len(segment.payload) >= 1460:
            body = icmp(3, struct.pack(">HH", 0, mtu), frame[14 : 14 + 28])
            body = body[:1] + b"\x04" + body[2:]
            head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 1, 0)
            packets.append(
                (segment.time_ns + 300_000, frame[:14] + head + bytes([10, 9, 9, 9]) + bytes([10, 0, 0, 2]) + body)
            )
    return pcap_of(sorted(packets))


def test_icmp_that_is_not_heeded_names_the_mtu() -> None:
    capture = with_icmp(black_hole().tape, 1400)
    row = lp.read(capture).streams.iloc[0]
    assert (row["server_icmp_too_big"], row["server_icmp_next_mtu"]) == (7, 1400)
    assert row["client_icmp_too_big"] == 0
    why = lp.read(capture).why()
    assert "ICMP said so 7 times (next hop MTU 1,400)" in why.headline and why.grade == "proven"
    assert "clamp the MSS to 1,360" in (why.fix or "")


def test_the_mss_that_fits_a_path_of_ipv6_has_room_for_its_longer_header() -> None:
    ends = Ends(("2001:db8::1", 40_000), ("2001:db8::2", 80))
    packets = []
    for segment in black_hole().tape:
        frame = replace(segment, ends=ends).frame()
        packets.append((segment.time_ns, frame))
        if len(segment.payload) >= 1460:
            big = dpkt.icmp6.ICMP6.TooBig(mtu=1400, data=frame[14 : 14 + 60])
            body = dpkt.icmp6.ICMP6(type=2, code=0, data=big)
            router = dpkt.ip6.IP6(src=frame[22:37] + b"\x09", dst=frame[22:38], nxt=58, hlim=64, data=body)
            router.plen = len(body)
            packets.append((segment.time_ns + 300_000, frame[:14] + bytes(router)))
    assert "clamp the MSS to 1,340" in (lp.read(pcap_of(sorted(packets))).why().fix or "")


def test_icmp_that_is_heeded_late_is_said_so() -> None:
    talk = black_hole(full=1, tail=0, passes=False, repeats=0)
    talk.tape = talk.tape[:-2]
    for at in (250.0, 650.0, 1450.0):
        talk.server(at, FULL, seq=1)
    talk.server(3050.0, FULL[:1000], seq=1)
    talk.client(3060.0, ack=1001)
    talk.server(3061.0, FULL[1000:], seq=1001)
    talk.client(3070.0, ack=1461)
    found = causes(with_icmp(talk.tape, 1040))["path_mtu"]
    assert "and smaller ones followed after 3,039 ms" in (found.text or "")


def test_an_answer_that_stops_half_way_took_until_the_client_gave_up() -> None:
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    talk.client(20.0, get("/report"))
    talk.server(40.0, answer(9000)[0] + b"x" * 4000)
    talk.client(40.1)
    talk.client(7040.1, flags="FA")
    talk.server(7048.2)
    why = lp.read(pcap(talk.tape)).why()
    assert "stopped in the middle of its answer to GET /report (frame 4)" in why.headline
    assert "nothing more came for 7,000 ms, until the client gave up" in why.headline
    assert why.grade == "probable" and "stack dump" in (why.fix or "")


def test_several_that_stop_are_counted() -> None:
    tape: list[Segment] = []
    for number in range(4):
        talk = Talk(server_leg=8.0, client_leg=0.01, ends=Ends(("10.0.0.1", 40_000 + number)), tape=tape)
        at = 100.0 * number
        talk.open(at)
        talk.client(at + 20.0, get("/part"))
        talk.server(at + 40.0, b"".join(answer(2000)) if number % 2 else answer(2000)[0])
        talk.client(at + 40.1)
        talk.client(at + (41.0 if number % 2 else 2540.1), flags="FA")
        talk.server(at + (49.0 if number % 2 else 2548.1), flags="FA")
    tape.sort(key=lambda s: s.time_ns)
    assert "stopped in the middle of 2 of 4 answers" in lp.read(pcap(tape)).why().headline


def test_a_client_that_takes_nothing_more_is_not_the_servers_stop() -> None:
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    talk.client(20.0, get("/report"))
    talk.server(40.0, answer(9000)[0] + b"x" * 4000)
    talk.client(40.1, window=0)
    talk.client(7040.1, flags="FA", window=0)
    assert "stalled_answer" not in causes(pcap(talk.tape))


def test_an_answer_in_pieces_is_under_way() -> None:
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    talk.client(20.0, get("/slow"))
    talk.server(40.0, answer(9000)[0])
    for at in (1500.0, 3000.0, 4500.0, 6000.0):
        talk.server(at, b"x" * 100)
        talk.client(at + 0.1)
    talk.client(7500.0, get("/late")[:0], flags="A")
    assert "stalled_answer" not in causes(pcap(talk.tape))


def idle(pause: float, requests: int = 2) -> Talk:
    """Requests with their answers, and a last one after a pause."""
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    for number in range(requests):
        talk.client(20.0 + 100 * number, get("/a"))
        talk.server(30.0 + 100 * number, b"".join(answer(40)))
        talk.client(30.1 + 100 * number)
    return talk


@pytest.mark.parametrize(("pause", "like"), [(363_000.0, "AWS NLB"), (1_234_000.0, None)])
def test_a_reset_after_idling_says_for_how_long(pause: float, like: str | None) -> None:
    talk = idle(pause)
    talk.client(130.1 + pause, get("/again"))
    talk.server(138.2 + pause, flags="R")
    why = lp.read(pcap(talk.tape)).why()
    seconds = f"{pause / 1000:,.2f} s"
    assert why.headline.startswith(f"After {seconds} idle 1 connection to 10.0.0.2:80 met an RST")
    assert why.grade == "probable" and "keep-alives" in (why.fix or "")
    assert ("that is like" in (why.fix or "")) == (like is not None) and (like or "") in (why.fix or "")


def test_a_message_of_any_protocol_may_meet_the_reset_of_an_idle_connection() -> None:
    talk = Talk(server_leg=8.0, client_leg=0.01, ends=Ends(server=("10.0.0.2", 7000)))
    talk.open()
    for at in (20.0, 120.0):
        talk.client(at, b"\x07\x01ask")
        talk.server(at + 10, b"\x07\x02told")
        talk.client(at + 10.1)
    talk.client(700_000.0, b"\x07\x01ask")
    talk.server(700_008.1, flags="R")
    why = lp.read(pcap(talk.tape)).why()
    assert why.headline.startswith("After 699.87 s idle 1 connection to 10.0.0.2:7000 met an RST at the next request")


@pytest.mark.parametrize("idled", [True, False])
def test_a_reset_at_once_is_not_for_idling(idled: bool) -> None:
    talk = Talk(server_leg=8.0, client_leg=0.01, ends=Ends(server=("10.0.0.2", 7000)))
    talk.open()
    talk.client(20.0, b"\x07\x01ask")
    talk.server(30.0, b"\x07\x02told")
    at = 90_000.0 if idled else 100.0
    talk.client(at, b"\x07\x01ask")
    talk.server(at + 8.1, flags="R")
    assert ("idle_reset" in causes(pcap(talk.tape))) == idled


@pytest.mark.parametrize(("by_client", "answered"), [(True, False), (False, False), (True, True)])
def test_a_peer_that_answers_no_keep_alive_has_gone(by_client: bool, answered: bool) -> None:
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    talk.client(20.0, get("/a"))
    talk.server(30.0, b"".join(answer(40)))
    talk.client(30.1)
    asks, other = (talk.client, talk.server) if by_client else (talk.server, talk.client)
    own = talk.c if by_client else talk.s
    for at in (20_000.0, 25_000.0, 30_000.0, 35_000.0):
        asks(at, flags="A", seq=own.sent - 1)
        if answered:
            other(at + 8.1, flags="A")
    asks(40_000.0, flags="RA")
    why = lp.read(pcap(talk.tape)).why()
    found = {f.cause for f in why.findings}
    assert ("peer_gone" in found) == (not answered)
    if not answered:
        gone = "10.0.0.2:80" if by_client else "The client of 10.0.0.2:80"
        assert why.headline.startswith(f"{gone} answers no more: 4 keep-alive probes of ")
        assert why.headline.endswith(
            "got nothing for 20,000 ms, after 19.97 s idle; then it closed the connection with RST."
        )


def test_probes_that_go_on_to_the_end_have_no_reset() -> None:
    talk = idle(0)
    for at in (20_000.0, 25_000.0, 30_000.0):
        talk.client(at, flags="A", seq=talk.c.sent - 1)
    found = causes(pcap(talk.tape))["peer_gone"]
    assert (found.text or "").endswith("got nothing for 10,000 ms, after 19.87 s idle")


@pytest.mark.parametrize(("size", "closed"), [(120, True), (19, False)])
def test_a_sealed_request_that_meets_the_close_is_not_answered(size: int, closed: bool) -> None:
    """A record as short as an alert is a client that closes, too."""
    record = b"\x17\x03\x03" + struct.pack(">H", size) + bytes(size)
    talk = Talk(server_leg=8.0, client_leg=0.01, ends=Ends(server=("10.0.0.2", 443)))
    talk.client(0.0, b"\x17\x03\x03\x01\x00" + bytes(256))
    talk.server(9.0, b"\x17\x03\x03\x01\x00" + bytes(256))
    talk.client(9.1)
    talk.client(100.0, record)
    talk.server(108.1)
    talk.server(590.0, flags="FA")
    found = causes(pcap(talk.tape))
    assert ("closed_on_request" in found) == closed
    if closed:
        assert "instead of answering a message (frame 4), 1 of 2 requests, after 490 ms" in (
            found["closed_on_request"].text or ""
        )


def test_a_reset_is_not_for_idling_where_longer_pauses_were_survived() -> None:
    tape: list[Segment] = []
    first = Talk(server_leg=8.0, client_leg=0.01, ends=Ends(("10.0.0.1", 41_000)), tape=tape)
    first.open()
    for at in (20.0, 9000.0):
        first.client(at, get("/a"))
        first.server(at + 10, b"".join(answer(40)))
        first.client(at + 10.1)
    talk = Talk(server_leg=8.0, client_leg=0.01, tape=tape)
    talk.open(50.0)
    talk.client(70.0, get("/a"))
    talk.server(80.0, b"".join(answer(40)))
    talk.client(80.1)
    talk.client(5000.0, get("/again"))
    talk.server(5008.1, flags="R")
    tape.sort(key=lambda s: s.time_ns)
    found = causes(pcap(tape))
    assert "idle_reset" not in found and "closed_on_request" in found


def test_a_close_that_crosses_the_request_is_a_race() -> None:
    talk = idle(0)
    seen = talk.c.sent
    talk.client(5133.0, get("/again"))
    talk.server(5137.0, flags="FA", ack=seen)  # it had not seen the request
    talk.server(5141.2, flags="R")
    why = lp.read(pcap(talk.tape)).why()
    assert "closed 1 connection that was idle for 5.01 s, just as the next request was on its way" in why.headline
    assert why.grade == "proven" and "Node's keepAliveTimeout" in (why.fix or "")


def test_a_close_that_has_seen_the_request_is_no_race() -> None:
    talk = idle(0)
    talk.client(5133.0, get("/again"))
    talk.server(5141.1)
    talk.server(5160.0, flags="FA")
    found = causes(pcap(talk.tape))
    assert "keepalive_race" not in found and "closed_on_request" in found


@pytest.mark.parametrize("works", [True, False])
def test_an_idle_connection_that_is_dead_while_others_work_was_dropped(works: bool) -> None:
    talk = idle(0)
    at = 601_130.0
    start = talk.c.sent
    talk.client(at, get("/again"))
    for pause in (300.0, 900.0, 2100.0, 4500.0, 9300.0):
        talk.client(at + pause, get("/again"), seq=start)
    other = Talk(server_leg=8.0, client_leg=0.01, ends=Ends(("10.0.0.1", 41_000)), tape=talk.tape)
    if works:
        other.open(at + 15_000)
        other.client(at + 15_020, get("/a"))
        other.server(at + 15_030, b"".join(answer(40)))
    found = causes(pcap(talk.tape))
    assert ("idle_drop" in found) == works and ("silent_peer" in found) != works
    if works:
        assert "After 601.00 s idle" in lp.read(pcap(talk.tape)).why().headline
        assert "gets no acknowledgement for 15,000 ms" in (found["idle_drop"].text or "")
        assert "Google Cloud's 10 min" in (found["idle_drop"].fix or "")


@pytest.mark.parametrize("late", [0.05, 400.0])
def test_an_answer_that_ends_with_its_connection_ends_when_the_server_closes(late: float) -> None:
    talk = Talk(server_leg=0.01, client_leg=8.0)
    talk.open()
    talk.client(20.0, get("/old"))
    talk.server(21.0, b"HTTP/1.0 200 OK\r\n\r\nhello")
    talk.client(29.0)
    talk.server(29.0 + late, flags="FA")
    talk.client(37.1 + late, flags="FA")
    capture = lp.read(pcap(talk.tape))
    rows = capture.causes
    assert "capture_gap" not in set(rows["cause"])
    closing = rows[rows["rule"] == "late_close"]
    assert closing["duration_ms"].sum() == pytest.approx(8.0 + late, abs=0.1)
    assert set(closing["owner"]) == {"server"}


def together(count: int, workers: int, each: float = 50.0, jitter: float = 0.0) -> bytes:
    """Requests that come together to so many workers, each of which takes so long for one."""
    tape: list[Segment] = []
    free = [0.0] * workers
    for number in range(count):
        talk = Talk(server_leg=2.0, client_leg=0.01, ends=Ends(("10.0.0.1", 42_000 + number)), tape=tape)
        at = 1.5 * number
        talk.open(at)
        talk.client(at + 3.0, get("/work"))
        talk.server(at + 5.0)
        worker = free.index(min(free))
        free[worker] = max(at + 4.0, free[worker]) + each + jitter * (number % 3)
        talk.server(free[worker] + 1.0, b"".join(answer(30)))
        talk.client(free[worker] + 1.1)
    tape.sort(key=lambda s: s.time_ns)
    return pcap(tape)


@pytest.mark.parametrize(("workers", "said"), [(1, "answers one at a time: 9 requests"), (2, "answers 2 at a time")])
def test_requests_that_wait_for_a_worker_are_a_pool(workers: int, said: str) -> None:
    why = lp.read(together(9, workers)).why()
    assert said in why.headline and "each takes 5" in why.headline
    assert why.verdict == "pool" and why.grade == "probable" and "max_children" in (why.fix or "")


def test_slow_work_side_by_side_is_no_pool() -> None:
    assert "pool" not in causes(together(9, 9))


def test_work_of_any_length_is_no_pool() -> None:
    assert "pool" not in causes(together(9, 1, each=20.0, jitter=60.0))


def proxied(*, late: bool, near: bool = True, lumps: int = 1, n: int = 6) -> bytes:
    """A server behind a proxy sends `n` events; the proxy passes on each, so many at once, or all at the end."""
    tape: list[Segment] = []
    front = Talk(server_leg=0.01, client_leg=5.0, tape=tape)
    host = "127.0.0.1" if near else "10.7.7.7"
    back = Talk(server_leg=0.01, client_leg=0.01, ends=Ends((host, 50_000), ("127.0.0.1", 9000)), tape=tape)
    front.open()
    front.client(10.0, get("/events", "GET", "Accept: text/event-stream"))
    back.open(10.2)
    back.client(10.4, get("/events", "GET", "Accept: text/event-stream"))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    event = b"9\r\ndata: x\n\n\r\n"
    events = [head, *[event] * n, b"0\r\n\r\n"]
    for number, part in enumerate(events):
        at = 11.0 + 500.0 * number
        back.server(at, part)
        back.client(at + 0.05)
        if not late and (number % lumps == lumps - 1 or part is events[-1]):
            front.server(at + 0.2, b"".join(events[number // lumps * lumps : number + 1]))
    if late:
        front.server(11.5 + 500.0 * (len(events) - 1), b"".join(events))
    tape.sort(key=lambda s: s.time_ns)
    return pcap(tape)


def test_a_proxy_that_keeps_events_until_the_end_buffers() -> None:
    why = lp.read(proxied(late=True)).why()
    assert "10.0.0.2:80 buffers the event stream of 127.0.0.1:9000" in why.headline
    assert "proxy_buffering off" in (why.fix or "")


def test_a_proxy_that_passes_events_on_in_lumps_buffers() -> None:
    why = lp.read(proxied(late=False, lumps=5, n=18)).why()
    assert "10.0.0.2:80 buffers the event stream of 127.0.0.1:9000" in why.headline
    assert "several at once" in why.headline and "proxy_buffering off" in (why.fix or "")


@pytest.mark.parametrize(("late", "near"), [(False, True), (True, False)])
def test_a_proxy_that_passes_events_on_does_not(late: bool, near: bool) -> None:
    assert "buffered" not in causes(proxied(late=late, near=near))


def tls(by_client: bool, alert: int, level: int = 2) -> bytes:
    """A handshake that an alert ends."""
    hello = b"\x01\x00\x00\x26\x03\x03" + b"r" * 32 + b"\x00\x00\x02\x00\x2f\x01\x00"[:6]
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    talk.client(10.0, b"\x16\x03\x01" + struct.pack(">H", len(hello)) + hello)
    said = b"\x15\x03\x03\x00\x02" + bytes([level, alert])
    if by_client:
        reply = b"\x02\x00\x00\x26\x03\x03" + b"s" * 32 + b"\x00\x00\x2f\x00"
        talk.server(19.0, b"\x16\x03\x03" + struct.pack(">H", len(reply)) + reply)
        talk.client(19.5, said)
        talk.client(19.6, flags="RA")
    else:
        talk.server(19.0, said)
        talk.server(19.1, flags="FA")
    return pcap(talk.tape)


@pytest.mark.parametrize(
    ("by_client", "alert", "said", "fix"),
    [
        (True, 48, "the client sent the alert unknown_ca", "does not trust the server's certificate"),
        (False, 70, "the server sent the alert protocol_version", "in common"),
        (False, 116, "the server sent the alert certificate_required", "client certificate"),
        (True, 45, "the client sent the alert certificate_expired", "Renew"),
        (False, 120, "the server sent the alert no_application_protocol", "ALPN"),
        (False, 80, "the server sent the alert internal_error", "log of the side"),
    ],
)
def test_an_alert_that_ends_a_handshake_is_the_answer(by_client: bool, alert: int, said: str, fix: str) -> None:
    capture = lp.read(tls(by_client, alert))
    row = capture.exchanges.iloc[0]
    assert row["error"] and row["status_text"].split(" alert ")[0] == ("client" if by_client else "server")
    why = capture.why()
    assert said in why.headline and "1 of 1 TLS handshake failed" in why.headline
    assert why.verdict == "tls_alert" and fix in (why.fix or "")


def test_a_close_notify_is_no_failure() -> None:
    assert "tls_alert" not in causes(tls(False, 0, level=1))


def test_what_the_server_said_unseen_is_an_answer() -> None:
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    talk.client(20.0, get("/a"))
    talk.server(28.0)
    talk.server(5028.0, flags="FA", seq=1625)  # 1,624 bytes before it are not in the capture
    assert "unanswered_request" not in causes(pcap(talk.tape))


def events(first: float, between: float) -> bytes:
    """A stream of events: the time until its first one, and between two."""
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    talk.client(20.0, get("/events", "GET", "Accept: text/event-stream"))
    talk.server(28.1)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    for number in range(5):
        at = 20.0 + first + between * number
        talk.server(at, (head if number == 0 else b"") + b"9\r\ndata: x\n\n\r\n")
        talk.client(at + 0.05)
    talk.client(21.0 + first + between * 5, flags="RA")
    return pcap(talk.tape)


@pytest.mark.parametrize(("first", "between", "slow"), [(2000.0, 2000.0, 0), (2000.0, 300.0, 1), (9.0, 2000.0, 0)])
def test_a_stream_is_slow_where_its_first_event_is_later_than_the_others(
    first: float, between: float, slow: int
) -> None:
    data = lp.read(events(first, between)).why().to_dict()
    assert data["slow"]["count"] == slow


@pytest.mark.parametrize("resets", [True, False])
def test_who_has_reset_its_connection_is_not_silent(resets: bool) -> None:
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    talk.client(20.0, get("/a"))
    talk.server(29.0, b"".join(answer(30)))
    talk.client(29.1)
    if resets:
        talk.client(40.0, flags="RA")
    start = talk.s.sent
    for at in (48.0, 300.0, 800.0, 1800.0, 3800.0):
        talk.server(at, b"more of it", seq=start)
    assert ("silent_peer" in causes(pcap(talk.tape))) != resets


def test_a_keyed_request_that_is_repeated_in_vain_ended_when_it_was_sent() -> None:
    """An LDAP search whose repeats carry more than it did: it has an end, and the wait begins there."""
    bind, bound = b"0\x0c\x02\x01\x01`\x07\x02\x01\x03\x04\0\x80\0", b"0\x0c\x02\x01\x01a\x07\x0a\x01\0\x04\0\x04\0"
    search = b"0%\x02\x01\x02c \x04\0\x0a\x01\x02\x0a\x01\0\x02\x01\0\x02\x01\0\x01\x01\0\x87\x0bobjectclass0\0"
    talk = Talk(ends=Ends(server=("10.0.0.2", 389)))
    talk.open()
    talk.client(5.0, bind)
    talk.server(6.0, bound)
    talk.client(10.0, search)
    talk.client(20.0, b"0\x05\x02\x01\x03B\0")
    for again in (300.0, 900.0, 2100.0, 4500.0):
        talk.client(again, search + b"0\x05\x02\x01\x03B\0", seq=1 + len(bind))
    capture = lp.read(pcap(talk.tape))
    [asked] = [row for row in capture.exchanges.to_dict("records") if row["method"] == "search"]
    assert asked["request_first_frame"] == asked["request_last_frame"] == 6
    assert asked["request_end"] == asked["start"]
    assert "4,490 ms and gets no acknowledgement (it waits for search" in capture.why().headline
