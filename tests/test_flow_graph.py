"""Does the flow graph say what Wireshark says, put each wait in its place, and stay legible and the same?"""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from latpcap.plot import FlowGraph
from latpcap.plot.flow_artist import Ink, extent
from latpcap.vocabulary import CAUSES, OWNERS

START = 1_795_229_413_110_206_000
C, S = ("192.168.0.2", 53992), ("192.168.0.30", 8080)
STAMP = pa.timestamp("ns", tz="UTC")

Row = tuple[float, bool, str | None, int, int, int | None]

# frame 549 and its neighbours in nginx-latency.pcap: ms since START, from client, flags, len, seq, ack
STALL: list[Row] = [
    (3.966, True, "PSH, ACK", 43, 44, 851),
    (5.074, False, "PSH, ACK", 238, 851, 87),
    (47.671, True, "ACK", 0, 87, 1089),
    (47.675, False, "PSH, ACK", 612, 1089, 87),
    (47.763, True, "ACK", 0, 87, 1701),
]


def events_of(rows: list[Row], *, stream: int = 24, client: Any = C, server: Any = S, frame: int = 1) -> pa.Table:
    records = []
    for number, (ms, forward, flags, length, seq, ack) in enumerate(rows):
        (src, sport), (dst, dport) = (client, server) if forward else (server, client)
        records.append(
            {
                "frame": frame + number,
                "time": START + round(ms * 1e6),
                "stream": stream,
                "from_client": forward,
                "src": src,
                "sport": sport,
                "dst": dst,
                "dport": dport,
                "seq": seq,
                "ack": ack,
                "len": length,
                "flags": flags,
                "release_frame": None,
            }
        )
    table = pa.Table.from_pylist(records)
    place = table.schema.get_field_index("time")
    table = table.set_column(place, "time", table["time"].cast(STAMP))
    place = table.schema.get_field_index("release_frame")
    return table.set_column(place, "release_frame", table["release_frame"].cast(pa.uint64()))


def causes_of(*rows: tuple[float, float, str, str, str | None, int, int, float]) -> pa.Table:
    names = ("start", "end", "cause", "owner", "parent", "from_frame", "to_frame", "confidence")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    types = (STAMP, STAMP, pa.string(), pa.string(), pa.string(), pa.uint64(), pa.uint64(), pa.float64())
    arrays = []
    for name, values, kind in zip(names, columns, types, strict=True):
        values = [START + round(v * 1e6) for v in values] if name in ("start", "end") else list(values)  # type: ignore[operator]
        arrays.append(pa.array(values, type=kind))
    return pa.table(dict(zip(names, arrays, strict=True)))


STALL_CAUSES = causes_of(
    (3.966, 5.074, "server_think", "server", None, 1, 2, 0.95),
    (5.074, 47.671, "delayed_ack", "client", "nagle", 2, 3, 0.98),
    (47.671, 47.675, "nagle", "server", None, 3, 4, 0.98),
)


def graph(rows: list[Row] = STALL, causes: pa.Table | None = STALL_CAUSES, **options: Any) -> FlowGraph:
    return FlowGraph.from_tables(events_of(rows), causes, title="nginx-latency.pcap", **options)


def ink_of(ax: Any) -> Ink:
    (sheet,) = ax.artists
    ink: Ink = sheet.ink
    return ink


def assert_legible(drawn: Any) -> None:
    """No text leaves the picture or lies on another."""
    drawn.figure_.set_dpi(100)
    drawn.figure_.canvas.draw()
    renderer = drawn.figure_.canvas.get_renderer()
    boxes = [(word.text, extent(renderer, word, drawn.ax_.transData)) for word in ink_of(drawn.ax_).words]
    width, height = drawn.figure_.canvas.get_width_height()
    for words, (x0, y0, x1, y1) in boxes:
        assert x0 >= 0 and y0 >= 0 and x1 <= width and y1 <= height, words
    for (one, a), (other, b) in combinations(boxes, 2):
        over = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        assert min(over) <= 0.5, f"{one!r} lies on {other!r}"  # half a pixel of rounding


def waits(picture: FlowGraph) -> list[tuple[int, int, str]]:
    return [(picture.rows[m.upper].frame, picture.rows[m.lower].frame, m.text) for m in picture.marks]


# --- Wireshark's words ---


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
        ("RST, ACK, AE", 0, 1, 5_000_000_000, "RST, ACK, AE", "Seq = 1 Ack = 5000000000"),
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


# --- waits ---


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


# --- what is shown ---


def test_cut_is_said_in_the_picture() -> None:
    picture = graph(max_rows=3)
    assert len(picture.rows) == 3
    assert picture.note == (
        "2 of 5 rows are not shown: see the next ones with frames=(3, 5), or all with max_rows=5 or pages=True."
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
        events = FlowGraph.from_tables(events_of(STALL), None, title="", max_rows=2, frames=(last - 1, 5))
        a, b = events.note.split("frames=(")[1].split(")")[0].split(", ")
        frames = (int(a), int(b))
    assert seen == {1, 2, 3, 4, 5}
    assert found == set(waits(graph()))


def test_impossible_requests_are_refused_with_their_reason() -> None:
    with pytest.raises(ValueError, match=r"frames=\(90, 99\) holds no packet .* in frames 1 to 5"):
        graph(frames=(90, 99))
    with pytest.raises(ValueError, match=r"frames=\(4, 2\) is empty"):
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


# --- the picture ---


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_same_input_same_bytes(tmp_path: Any, suffix: str) -> None:
    graph().save(tmp_path / f"a{suffix}")
    import matplotlib as mpl

    with mpl.rc_context({"font.family": "monospace", "path.sketch": (9, 9, 9), "svg.fonttype": "none"}):
        graph().save(tmp_path / f"b{suffix.upper()}")  # whatever the user's own settings are
    first = (tmp_path / f"a{suffix}").read_bytes()
    assert first == (tmp_path / f"b{suffix.upper()}").read_bytes()
    assert first.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix])
    assert b"CreationDate" not in first and b"<dc:date>" not in first
    graph(causes=None).save(tmp_path / f"c{suffix}")
    assert first != (tmp_path / f"c{suffix}").read_bytes()


def test_png_is_1600_pixels_wide_and_shows_itself_in_a_notebook() -> None:
    png = graph()._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 1600


@pytest.mark.parametrize("name", ["flow.gif", "flow.text", "flow"])
def test_other_suffixes_are_refused(tmp_path: Any, name: str) -> None:
    with pytest.raises(ValueError, match=r"\.png, \.svg, \.pdf, \.txt"):
        graph().save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_too_high_a_png_is_refused(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match=r"over the limit of 65000 on a side: save as \.svg or \.pdf"):
        graph().save(tmp_path / "flow.png", dpi=20_000)


def test_ax_is_accepted_and_kept() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8))
    left, right = figure.subplots(1, 2)
    picture = graph()
    assert picture.plot(ax=right) is picture
    assert picture.ax_ is right and picture.figure_ is figure
    assert len(ink_of(right).words) > 10 and not left.artists
    picture.plot()
    assert picture.figure_ is not figure


def test_importing_does_not_import_matplotlib_and_drawing_does_not_import_pyplot() -> None:
    code = (
        "import sys, latpcap.plot, latpcap.plot.flow_draw\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from latpcap.plot.flow_rows import FlowRow\n"
        "row = FlowRow(1, '0.0', 0, 1, 1, 2, 'SYN', 'Seq = 0', 0)\n"
        "latpcap.plot.FlowGraph(nodes=('a', 'b'), rows=[row])._repr_png_()\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def colour_at(picture: FlowGraph, gid: str) -> str | None:
    (band,) = [stroke for stroke in ink_of(picture.ax_).strokes if stroke.gid == gid]
    return band.fill


def test_bands_stand_at_their_owners_lifelines_between_their_rows() -> None:
    picture = graph().plot()
    strokes = ink_of(picture.ax_).strokes
    lines = {stroke.gid: stroke for stroke in strokes if stroke.gid}
    assert colour_at(picture, "wait-2-3") == CAUSES["delayed_ack"].colour
    assert colour_at(picture, "wait-2-3-waiter") == CAUSES["nagle"].colour
    lifelines = [stroke.path[0][0] for stroke in strokes if stroke.dashed]
    for gid, end in (("wait-2-3", min), ("wait-2-3-waiter", max)):
        x0, x1 = (edge(x for x, _ in lines[gid].path) for edge in (min, max))
        y0, y1 = (edge(y for _, y in lines[gid].path) for edge in (min, max))
        assert x0 < end(lifelines) < x1
        assert lines["frame-2"].path[0][1] < y0 < y1 < lines["frame-3"].path[0][1]
    assert lines["frame-3"].colour == CAUSES["delayed_ack"].colour
    assert lines["frame-4"].colour == CAUSES["nagle"].colour
    assert lines["frame-1"].colour == "#000000"


def test_legend_holds_the_causes_present_and_no_others() -> None:
    texts = {word.text for word in ink_of(graph().plot().ax_).words}
    assert {name for name in CAUSES if name in texts} == {"nagle", "delayed_ack"}
    assert CAUSES["nagle"].meaning in texts


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_names_with_dollars_are_not_read_as_mathematics(tmp_path: Any, suffix: str) -> None:
    FlowGraph.from_tables(events_of(STALL), None, title="$HOME/a_b^{c$.pcap $\\frac{").save(tmp_path / f"x.{suffix}")


LONG = ("2001:db8:85a3:1234:5678:8a2e:1370:7334", "fe80:1234:5678:9abc:def0:1234:5678:9abc")


def crowd() -> FlowGraph:
    """Five addresses, two of them long; waits of all owners at the same time."""
    hosts = ["10.0.0.1", "10.0.0.2", *LONG, "10.0.0.5"]
    tables, rows = [], []
    for number, host in enumerate(hosts[1:]):
        shifted = [(ms + number * 3, *rest) for ms, *rest in STALL] + [(400.0 + number, True, "RST", 0, 1, None)]
        first = 10 * number + 1
        tables.append(
            events_of(shifted, stream=number, client=(hosts[0], 50000 + number), server=(host, 443), frame=first)
        )
        begin = number * 3
        hold = (begin + 5.074, begin + 47.671, "delayed_ack", "client", "nagle", first + 1, first + 2, 0.5)
        rows += [hold, (begin + 47.763, 400.0 + number, "rto", "network", None, first + 4, first + 5, 0.95)]
    return FlowGraph.from_tables(pa.concat_tables(tables).sort_by("time"), causes_of(*rows), title="five hosts")


def long_addresses() -> FlowGraph:
    events = events_of(STALL, client=(LONG[0], 50000), server=(LONG[1], 443))
    return FlowGraph.from_tables(events, STALL_CAUSES, title="a/long/path/" * 20 + " $x$", max_rows=4)


def all_flags() -> FlowGraph:
    flags = "FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, AE"
    return graph([(0.0, True, flags, 65_000, 2**40, 2**41), (9e9, True, flags, 65_000, 2**40, 2**41)], None)


def alone() -> FlowGraph:
    rows: list[Row] = [(0, True, "SYN", 0, 0, None), (9, True, "SYN, ACK", 0, 0, 1)]
    return FlowGraph.from_tables(events_of(rows, client=C, server=C), None, title="one endpoint")


@pytest.mark.parametrize("picture", [graph, crowd, long_addresses, all_flags, alone])
@pytest.mark.parametrize("to_scale", [False, True])
def test_no_text_is_cut_or_lies_on_another(picture: Any, to_scale: bool) -> None:
    drawn = picture()
    drawn.to_scale = to_scale
    assert_legible(drawn.plot())


# --- words and colours ---


def test_causes_are_the_designs_in_its_order() -> None:
    assert list(CAUSES) == [
        "network",
        "queueing",
        "bandwidth",
        "server_think",
        "client_think",
        "nagle",
        "delayed_ack",
        "cork",
        "cwnd",
        "receive_window",
        "zero_window",
        "fast_retransmit",
        "tlp",
        "rto",
        "syn_rto",
        "reordering",
        "capture_gap",
        "unknown",
    ]
    assert all(name == cause.name for name, cause in CAUSES.items())
    assert {cause.owner for cause in CAUSES.values()} <= {*OWNERS, "sender", "receiver"}
    assert len({cause.colour for cause in CAUSES.values()}) == len(CAUSES)


def linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


@pytest.mark.parametrize("name", CAUSES)
def test_colours_print_on_white(name: str) -> None:
    red, green, blue = linear(CAUSES[name].colour)
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 3  # WCAG 2.1, 1.4.11


# Machado, Oliveira, Fernandes 2009: how protanopes, deuteranopes and tritanopes see linear RGB
BLIND = {
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


@pytest.mark.parametrize("kind", BLIND)
def test_nagle_and_delayed_ack_are_told_apart_by_everybody(kind: str) -> None:
    one, other = linear(CAUSES["nagle"].colour), linear(CAUSES["delayed_ack"].colour)
    seen = [[sum(m * c for m, c in zip(row, colour, strict=True)) for row in BLIND[kind]] for colour in (one, other)]
    assert sum((a - b) ** 2 for a, b in zip(*seen, strict=True)) ** 0.5 > 0.3


def test_requests_and_statuses_stand_on_their_arrows() -> None:
    import latpcap as lp

    graph = lp.read().flow_graph(exchange="worst")
    assert [row.said for row in graph.rows] == ["GET /", "200", "", "", ""]
    assert "GET /" not in graph.text(), "the text is tshark's"
    assert_legible(graph.plot())
