"""Does the flow graph say what Wireshark says, and put each wait in its place?"""

from __future__ import annotations

import pyarrow as pa
import pytest
from flowtables import STALL, STALL_CAUSES, START, Row, causes_of, events_of, graph, ink_of, waits

from latpcap.options import FlowOptions
from latpcap.plot import FlowGraph


@pytest.mark.parametrize(
    ("flags", "length", "seq", "ack", "label", "comment"),
    [
        ("SYN", 0, 0, None, "SYN", "Seq = 0"),
        ("SYN", 0, 0, 77, "SYN", "Seq = 0"),  # the acknowledgement field is filled, the flag is not set
        ("SYN, ACK", 0, 0, 1, "SYN, ACK", "Seq = 0 Ack = 1"),
        ("SYN, ECE, CWR", 0, 0, None, "SYN, ECE, CWR", "Seq = 0"),
        ("PSH, ACK", 43, 44, 851, "PSH, ACK - Len: 43", "Seq = 44 Ack = 851"),
        ("FIN, PSH, ACK", 612, 1, 1, "FIN, PSH, ACK - Len: 612", "Seq = 1 Ack = 1"),
        ("RST", 0, 87, None, "RST", "Seq = 87"),
        ("RST, ACK, AE", 0, 1, 2**32 + 5, "RST, ACK, AE", "Seq = 1 Ack = 5"),
        ("", 0, 1, None, "<None>", "Seq = 1"),
        (None, 5, 1, None, "<None> - Len: 5", "Seq = 1"),
    ],
)
def test_labels_and_comments_are_wiresharks(
    flags: str | None, length: int, seq: int, ack: int | None, label: str, comment: str
) -> None:
    (row,) = graph([(0.0, True, flags, length, seq, ack)], None).rows
    assert (row.label, row.comment) == (label, comment)


def test_rows_say_who_and_when() -> None:
    picture = graph(start_ns=START)
    assert picture.nodes == ("192.168.0.2", "192.168.0.30")
    assert [row.time for row in picture.rows] == ["0.003966", "0.005074", "0.047671", "0.047675", "0.047763"]
    assert [(row.source, row.target) for row in picture.rows] == [(0, 1), (1, 0), (0, 1), (1, 0), (0, 1)]
    assert {(row.sport, row.dport) for row in picture.rows} == {(53992, 8080), (8080, 53992)}


def test_time_zero_and_digits() -> None:
    assert graph().rows[0].time == "0.000000"
    assert graph(frames=(3, 4)).rows[0].time == "0.043705"  # not since the first row shown
    assert graph(start_ns=START + 4_000_000).rows[0].time == "-0.000034"
    nanoseconds = [(0.0, True, "SYN", 0, 0, None), (37_000.000_001, False, "SYN, ACK", 0, 0, 1)]
    assert [row.time for row in graph(nanoseconds, None).rows] == ["0.000000000", "37.000000001"]


def test_client_stands_left_even_if_the_server_is_seen_first() -> None:
    assert graph(frames=(2, 4)).nodes == ("192.168.0.2", "192.168.0.30")


def test_a_wait_stands_between_its_packets_with_cause_owner_and_waiter() -> None:
    picture = graph()
    assert waits(picture) == [(2, 3, "42.6 ms delayed_ack (client)")]
    (mark,) = picture.marks
    assert (mark.client, mark.server) == (0, 1)
    assert mark.waiter_text == "server waits: nagle"


def test_held_ack_and_freed_segment_have_the_causes_colours() -> None:
    assert [row.cause for row in graph().rows] == [None, None, "delayed_ack", "nagle", None]


def test_freed_segment_is_the_one_that_the_event_says() -> None:
    events = events_of(STALL)
    place = events.schema.get_field_index("release_frame")
    events = events.set_column(place, "release_frame", pa.array([None, None, None, 3, None], pa.uint64()))
    only_hold = STALL_CAUSES.slice(1, 1)
    rows = FlowGraph.from_tables(events, only_hold, title="").rows
    assert [row.cause for row in rows] == [None, None, "delayed_ack", "nagle", None]


def test_a_gap_without_causes_is_grey_with_its_length() -> None:
    for causes in (None, causes_of()):
        picture = graph(causes=causes)
        assert waits(picture) == [(2, 3, "42.6 ms")]
        assert picture.marks[0].cause is None
        assert all(row.cause is None for row in picture.rows)


def test_mark_ms_decides() -> None:
    assert waits(graph(mark_ms=1.0))[0] == (1, 2, "1.1 ms server_think (server)")
    assert waits(graph(mark_ms=42.597)) == [(2, 3, "42.6 ms delayed_ack (client)")]
    assert waits(graph(mark_ms=42.598)) == []


def test_a_gap_of_several_causes_shows_each_in_order_of_time() -> None:
    rows: list[Row] = [(0, True, "PSH, ACK", 9, 1, 1), (60, False, "PSH, ACK", 9, 1, 10)]
    causes = causes_of(
        (0, 7.6, "network", "network", None, 1, 2, 0.95),
        (7.6, 40, "server_think", "server", None, 1, 2, 0.6),
    )
    assert waits(graph(rows, causes)) == [
        (1, 2, "7.6 ms network"),
        (1, 2, "32.4 ms server_think (server), probable"),
        (1, 2, "20.0 ms"),  # what is left is not passed over
    ]
    assert graph(rows, causes).rows[1].cause == "server_think"


@pytest.mark.parametrize(
    ("grade", "confidence", "grade_words"),
    [
        ("proven", 0.95, ""),
        ("probable", 0.6, ", probable"),
        ("suspected", 0.5, ", suspected"),
        ("unknown", 0.0, ", unknown"),
        (None, 0.5, ", suspected"),  # a table without grades
    ],
)
def test_a_wait_has_the_grade_of_its_cause(grade: str | None, confidence: float, grade_words: str) -> None:
    rows: list[Row] = [(0, True, "PSH, ACK", 9, 1, 1), (40, False, "PSH, ACK", 9, 1, 10)]
    causes = causes_of((0, 40, "server_think", "server", None, 1, 2, confidence))
    if grade is not None:
        causes = causes.append_column("grade", pa.array([grade]))
    assert waits(graph(rows, causes)) == [(1, 2, f"40.0 ms server_think (server){grade_words}")]


def test_the_longest_wait_of_a_gap_colours_its_packet() -> None:
    rows: list[Row] = [(0, True, "PSH, ACK", 9, 1, 1), (60, False, "PSH, ACK", 9, 1, 10)]
    causes = causes_of(
        (0, 50, "server_think", "server", None, 1, 2, 0.95), (50, 60, "network", "network", None, 1, 2, 0.95)
    )
    assert graph(rows, causes).rows[1].cause == "server_think"


def test_a_gap_of_many_small_causes_names_the_largest() -> None:
    rows: list[Row] = [(0, True, "PSH, ACK", 9, 1, 1), (6, False, "PSH, ACK", 9, 1, 10)]
    causes = causes_of(
        (0, 2, "network", "network", None, 1, 2, 0.95), (2, 6, "server_think", "server", None, 1, 2, 0.95)
    )
    assert waits(graph(rows, causes)) == [(1, 2, "4.0 of 6.0 ms server_think (server)")]


def test_a_wait_over_several_packets_is_one_wait() -> None:
    rows: list[Row] = [
        (0, False, "ACK", 1448, 1, 1),
        (20, False, "ACK", 1448, 1449, 1),
        (21, True, "ACK", 0, 1, 1),
        (220, False, "ACK", 1448, 1, 1),
    ]
    causes = causes_of((0, 220, "rto", "network", None, 1, 4, 0.95))
    assert waits(graph(rows, causes)) == [(1, 4, "220.0 ms rto (network)")]


def test_each_stream_has_its_own_waits() -> None:
    other = [(ms + 1, *rest) for ms, *rest in STALL]
    tables = [events_of(STALL), events_of(other, stream=25, client=("192.168.0.2", 54000), frame=11)]
    events = pa.concat_tables(tables).sort_by("time")
    causes = causes_of((6.074, 48.671, "delayed_ack", "client", "nagle", 12, 13, 0.98))
    picture = FlowGraph.from_tables(events, causes, title="")
    assert waits(picture) == [(2, 3, "42.6 ms"), (12, 13, "42.6 ms delayed_ack (client)")]


def test_pipelined_exchanges_share_a_wait() -> None:
    twice = pa.concat_tables([STALL_CAUSES, STALL_CAUSES])
    assert waits(graph(causes=twice)) == waits(graph())


def test_unknown_cause_is_refused() -> None:
    with pytest.raises(ValueError, match="'gremlins' is not one of network, "):
        graph(causes=causes_of((5.074, 47.671, "gremlins", "client", None, 2, 3, 0.9)))


def test_cut_is_said_in_the_picture() -> None:
    picture = graph(max_rows=3)
    assert len(picture.rows) == 3
    assert picture.note == (
        "2 of 5 rows are not shown: the next ones are frames 3-5, all with 5 rows a page, or as pages."
    )
    picture.plot()
    drawn = " ".join(word.text for word in ink_of(picture.ax_).words)
    assert picture.note in drawn
    assert graph(max_rows=5).note == ""


def test_following_the_sentence_shows_every_packet_and_wait() -> None:
    seen, found, frames = set(), set(), None
    for _ in range(9):
        picture = graph(max_rows=2, frames=frames)
        seen |= {row.frame for row in picture.rows}
        found |= set(waits(picture))
        last = max(row.frame for row in picture.rows)
        if last == 5:
            break
        events = FlowGraph.from_tables(events_of(STALL), None, title="", options=FlowOptions((last - 1, 5), max_rows=2))
        a, b = events.note.split("frames ")[1].split(",")[0].split(".")[0].split("-")
        frames = (int(a), int(b))
    assert seen == {1, 2, 3, 4, 5}
    assert found == set(waits(graph()))


def test_impossible_requests_are_refused_with_their_reason() -> None:
    with pytest.raises(ValueError, match=r"frames 90-99 hold no packet .* in frames 1-5"):
        graph(frames=(90, 99))
    with pytest.raises(ValueError, match="no frame is in 4-2"):
        graph(frames=(4, 2))
    with pytest.raises(ValueError, match="max_rows is 0"):
        graph(max_rows=0)
    with pytest.raises(ValueError, match="mark_ms is 0"):
        graph(mark_ms=0)
    with pytest.raises(ValueError, match="no TCP segment"):
        FlowGraph.from_tables(events_of(STALL).slice(0, 0), None, title="")
    with pytest.raises(KeyError, match="column 'flags' is missing"):
        FlowGraph.from_tables(events_of(STALL).drop_columns(["flags"]), None, title="")


def test_loopback_has_two_ends() -> None:
    one = FlowGraph.from_tables(
        events_of(STALL, client=("127.0.0.1", 5000), server=("127.0.0.1", 80)), STALL_CAUSES, title=""
    )
    assert one.nodes == ("127.0.0.1:5000", "127.0.0.1:80")
    assert [(row.source, row.target) for row in one.rows[:2]] == [(0, 1), (1, 0)]
    other = events_of(STALL, stream=25, client=("127.0.0.1", 5001), server=("127.0.0.1", 80), frame=9)
    both = pa.concat_tables([events_of(STALL, client=("127.0.0.1", 5000), server=("127.0.0.1", 80)), other])
    assert FlowGraph.from_tables(both, None, title="").nodes == ("127.0.0.1 (clients)", "127.0.0.1:80")
    six = FlowGraph.from_tables(events_of(STALL, client=("::1", 5000), server=("::1", 80)), None, title="")
    assert six.nodes == ("[::1]:5000", "[::1]:80")
