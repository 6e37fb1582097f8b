"""Is a drawn flow graph the same each time, legible, and in the colours and places of its waits?"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from flowtables import STALL, STALL_CAUSES, C, Row, assert_legible, causes_of, events_of, graph, ink_of

import latpcap as lp
from latpcap.options import FlowOptions
from latpcap.plot import FlowGraph
from latpcap.vocabulary import CAUSES


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
        "import sys, latpcap.plot, latpcap.plot.flow.drawing\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from latpcap.plot.flow.packet_rows import FlowRow\n"
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
    return FlowGraph.from_tables(
        events, STALL_CAUSES, title="a/long/path/" * 20 + " $x$", options=FlowOptions(max_rows=4)
    )


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


def test_requests_and_statuses_stand_on_their_arrows() -> None:

    graph = lp.read().flow_graph(exchange="worst")
    assert [row.message for row in graph.rows] == ["GET /", "200", "", "", ""]
    assert "GET /" not in graph.text(), "the text is tshark's"
    assert_legible(graph.plot())
