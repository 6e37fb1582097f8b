"""`FlowGraph`, Wireshark's flow graph with the causes of its waits, and `FlowPair`, two of them side by side.

Reads the `events`, `causes` and `exchanges` tables of one or a few streams, or packets that are not TCP. The other
modules split the work: pagination.py computes the content of a page, layout.py its places, drawing.py its strokes,
packet_rows.py tshark's text, figure.py the bytes of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from latpcap import files, words
from latpcap.bars import bar
from latpcap.errors import NoSuchRowError
from latpcap.lazy import pa, pc
from latpcap.options import FlowOptions
from latpcap.plot import figure as paper
from latpcap.plot.flow import drawing, layout, packet_rows, pagination
from latpcap.plot.flow.packet_rows import Clock, FlowRow, Record, seconds
from latpcap.plot.flow.pagination import FlowPages
from latpcap.plot.flow.wait_marks import FlowBracket, FlowMark
from latpcap.plot.numbers import tenths
from latpcap.plot.pen import Ink, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (*paper.SUFFIXES, ".txt")
"""File formats of `FlowGraph.save`, by suffix."""

MAX_PAGES = 200
"""Upper bound on the pages drawn; the last one names the frames that are missing."""

SCALE_NS = 1e6
"""Gaps of at least this length (1 ms) decide on the scale of a graph to scale, if there are any."""
_MIN_SIDE_WIDTH, _GUTTER = 38.0, 1.5
"""Least width of one graph of a pair, and the space between the two, in em."""


class FlowGraph:
    """A flow graph: who sent which packet when, and why the gaps between packets are there.

    The picture is Wireshark's Statistics > Flow Graph: a row per packet with its time, an arrow from sender to receiver
    with flags and payload length, and `Seq = S Ack = A` (relative numbers). latpcap adds: each wait of at least
    `mark_ms` is a coloured band at the lifeline of its owner, with its length in ms and its cause. The packet that
    ended the wait and the segment that it released have the same colours. Brackets join the rows of an exchange.

    Made by `from_tables` or `from_packets`. The constructor takes finished values: `nodes` are the titles of the
    lifelines; `rows` refer to them by index, `marks` and `brackets` to the rows. `note` names rows that are not shown
    (empty if there are none), `status` is a line of counts, `to_scale` is true where the space between rows stands
    for time, and `book` computes further pages (None: there is one page).

    Attributes: as given; after `plot`: `ax_`, the axes, and `figure_`, their figure; after `save`: `paths_`, the files
    written.
    """

    ax_: Axes
    figure_: Figure
    paths_: list[Path]

    def __init__(
        self,
        *,
        nodes: Sequence[str],
        rows: Sequence[FlowRow],
        marks: Sequence[FlowMark] = (),
        brackets: Sequence[FlowBracket] = (),
        title: str = "",
        note: str = "",
        status: str = "",
        to_scale: bool = False,
        book: FlowPages | None = None,
    ) -> None:
        """Store what a page shows; ValueError without a packet."""
        if not rows:
            raise ValueError("a flow graph needs at least one packet")
        self.nodes = tuple(nodes)
        self.rows = tuple(rows)
        self.marks = tuple(sorted(marks, key=lambda mark: mark.lower))
        self.brackets = tuple(brackets)
        self.title = title
        self.note = note
        self.lang = words.current()
        self.status = status or words.say("flow_counts", nodes=len(self.nodes), n=len(self.rows))
        self.to_scale = to_scale
        self._book = book

    @classmethod
    def from_tables(
        cls,
        events: pa.Table,
        causes: pa.Table | None = None,
        exchanges: pa.Table | None = None,
        *,
        title: str,
        options: FlowOptions | None = None,
        start_ns: int | None = None,
        digits: int | None = None,
        before: Mapping[int, int] | None = None,
        total: int | None = None,
    ) -> Self:
        """Compute the graph of one or a few streams from their tables.

        `events`: rows of the events table in frame order. `causes`: rows of the causes table of their exchanges
        (None: no causes known). `exchanges`: rows of the exchanges that get brackets (None: no brackets).
        Times count from `start_ns`, in ns since the epoch (default: the first of `events`; Wireshark takes the
        capture's first frame), and have `digits` decimals (default: 6, or 9 if an instant is not whole microseconds).
        `before` maps a frame to the instant of the frame before it, for the time format "delta". `total` is the number
        of packets of the capture where `events` holds only the first of them.

        A null payload length shows no `Len`, a null `seq` or `ack` no number; without `grade` the grade follows from
        `confidence`, and a null `confidence` shows none. The columns `from_client`, `release_frame` and `grade` may be
        missing. Raises ValueError if there is no packet to show, or for an option or cause that does not exist;
        KeyError for a missing column.
        """
        options = options or FlowOptions()
        table, first_ns = _select_frames(events, options.frames)
        if digits is None:
            digits = 9 if _has_nanoseconds(table) else 6
        clock = Clock(first_ns if start_ns is None else start_ns, digits, options.time, before or {})
        book = FlowPages(
            table,
            causes,
            exchanges,
            clock=clock,
            options=options,
            total=events.num_rows if total is None else total,
            beyond=0 if total is None else total - events.num_rows,
        )
        return cls._of_page(book, 0, title)

    @classmethod
    def from_packets(
        cls,
        packets: Sequence[Record],
        causes: pa.Table | None = None,
        exchanges: pa.Table | None = None,
        *,
        text_packets: Sequence[Record] | None = None,
        title: str,
        clock: Clock,
        options: FlowOptions,
    ) -> Self:
        """Compute the graph of packets that need not be TCP.

        Each packet has `frame`, `time` (ns), `stream` (negative where it is not TCP), `src`, `dst`, `sport`, `dport`,
        `label`, `comment`, `from_client` and `release_frame`; the last two may be None. `text_packets` replace
        `packets` in the text of `lines`. `causes` and `exchanges` belong to the TCP streams among the packets.
        ValueError without packets.
        """
        if not packets:
            raise ValueError("no packet: there is nothing to draw")
        book = FlowPages(
            packets,
            causes,
            exchanges,
            text_packets=text_packets,
            clock=clock,
            options=options,
            total=len(packets),
        )
        return cls._of_page(book, 0, title)

    @classmethod
    def _of_page(cls, book: FlowPages, number: int, title: str) -> Self:
        page = book.page(number)
        return cls(
            nodes=page.nodes,
            rows=page.rows,
            marks=page.marks,
            brackets=page.brackets,
            title=title,
            note=_missing_note(book, number) + _longest_wait_note(book, page),
            status=words.say(
                "flow_counts_marked" if any(row.stream >= 0 for row in page.rows) else "flow_counts_of",
                nodes=str(len(page.nodes)),
                n=str(sum(row.packets for row in page.rows)),
                of=str(book.total),
                time=f"{book.options.mark_ms:g} ms",
            ),
            to_scale=book.options.to_scale,
            book=book,
        )

    @property
    def pages(self) -> int:
        """Number of pages of at most `max_rows` rows each."""
        return 1 if self._book is None else self._book.pages

    def page(self, number: int) -> Self:
        """Return the graph of one page. `number` counts from 1; IndexError for a page that does not exist."""
        if self._book is None:
            if number != 1:
                raise NoSuchRowError(f"no page {number}: there is 1")
            return self
        with words.language(self.lang):
            return self._of_page(self._book, number - 1, self.title)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on these axes, scaled to fit into them, or on a new figure. Returns the graph itself, with `ax_` and
        `figure_`.
        """
        with words.language(self.lang), paper.house_style():
            page = layout.arrange(
                self.title, self.nodes, self.rows, self.marks, self.brackets,
                scale_ns=SCALE_NS if self.to_scale else None,
            )  # fmt: skip
            foot = drawing.footer(self.note, self.status, self.rows, self.marks, page.width, page.em_per_ns)
            pen = Ink.on(ax, page.width, page.height + drawing.footer_height(foot))
            drawing.draw_body(pen, page, self.rows)
            drawing.draw_footer(pen, page.height, foot, page.width, page.em_per_ns)
            pen.flush()
        self.ax_, self.figure_ = pen.ax, figure_of(pen.ax)
        return self

    def beside(self, other: FlowGraph, *, names: tuple[str, str] = ("", "")) -> FlowPair:
        """Return both graphs side by side on one time scale, to compare two streams, or before and after a change.

        Each counts its time from its first row. `names` are written above the graphs, before their titles.
        """
        return FlowPair(self, other, names=names)

    def save(self, path: str | Path, *, dpi: float = paper.DPI, pages: bool | None = None) -> Self:
        """Write PNG, SVG, PDF or text, by the path's suffix; the same input gives the same bytes.

        .txt holds every packet, byte for byte as `tshark -q -z flow,tcp,network` writes them. A picture is 8 inches
        wide or more: at the default `dpi`, pixels per inch, a PNG is 1,600 pixels wide.
        `pages`: whether all pages are written. A PDF holds them in one file (the default). PNG and SVG become a file
        per page, flow-1.png, flow-2.png ... (default: the first page, which names the missing frames). `paths_` lists
        the files. Raises ValueError for other suffixes, or if a PNG would be too high; OSError if a file cannot be
        written.
        """
        path = Path(path)
        suffix = paper.suffix_of(path, SUFFIXES)
        self.paths_ = [path]
        if suffix == ".txt":
            with files.replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in self.lines())
        elif self.pages == 1 or not (suffix == ".pdf" if pages is None else pages):
            files.write(path, self._render(suffix, dpi))
        elif suffix == ".pdf":
            printed = self._for_print()
            files.write(path, paper.render_pages((page.plot().figure_ for page in printed._all_pages()), dpi))
        else:
            digits = len(str(min(self.pages, MAX_PAGES)))
            self.paths_ = []
            for number, page in enumerate(self._all_pages(), 1):
                self.paths_.append(path.with_name(f"{path.stem}-{number:0{digits}}{path.suffix}"))
                drawn = paper.render(page.plot().figure_, suffix, dpi, colours=drawing.COLOURS)
                files.write(self.paths_[-1], drawn)
        return self

    def text(self) -> str:
        """Return the packets of all pages byte for byte as `tshark -q -z flow,tcp,network` writes them."""
        return "".join(f"{line}\n" for line in self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the lines of `text` without line feeds, one at a time: a long capture's need not fit in memory."""
        if self._book is not None:
            return self._book.text()
        rows = [
            packet_rows.TextRow(
                row.stream,
                row.time,
                self.nodes[row.source],
                self.nodes[row.target],
                row.sport,
                row.dport,
                row.label,
                row.comment,
            )
            for row in self.rows
        ]
        return iter(packet_rows.as_text(rows).splitlines())

    def _for_print(self) -> FlowGraph:
        """Return the graph with pages as long as a sheet of paper holds."""
        if self._book is None:
            return self
        with words.language(self.lang):
            return self._of_page(self._book.printed, 0, self.title)

    def _all_pages(self) -> Iterator[Self]:
        """Yield every page with its number in the status line; the last one drawn names the missing frames."""
        count = min(self.pages, MAX_PAGES)
        with bar("drawing", count, "page") as shown:
            for number in range(1, count + 1):
                page = self.page(number)
                page.note = ""
                with words.language(self.lang):
                    if number == count < self.pages and self._book is not None:
                        page.note = _missing_note(self._book, number - 1, earlier=True)
                    page.status = words.say("flow_page", page=number, of=self.pages, status=page.status)
                yield page
                shown.add(1)

    def _render(self, suffix: str, dpi: float) -> bytes:
        with words.language(self.lang):
            fresh = FlowGraph(
                nodes=self.nodes, rows=self.rows, marks=self.marks, brackets=self.brackets, title=self.title,
                note=self.note, status=self.status, to_scale=self.to_scale,
            ).plot()  # fmt: skip
        return paper.render(fresh.figure_, suffix, dpi, colours=drawing.COLOURS)

    def svg(self) -> str:
        """Return the picture as an SVG document whose words are text, to be put into a page."""
        return self._render(".svg", paper.DPI).decode()

    def _repr_png_(self) -> bytes:
        return self._render(".png", paper.DPI)

    def __repr__(self) -> str:
        return f"FlowGraph({self.title!r}: {self.status})"


def _select_frames(events: pa.Table, frames: tuple[int, int] | None) -> tuple[pa.Table, int]:
    """Return the events of these frames, and the instant of the first of all events in ns."""
    if events.num_rows == 0:
        raise ValueError("no TCP segment in the events table: there is nothing to draw")
    first_ns = int(pagination.nanoseconds(events.slice(0, 1)["time"])[0].as_py())
    if frames is None:
        return events, first_ns
    low, high = frames
    if low > high:
        raise ValueError(f"no frame is in {low}-{high}: the first number is the larger one")
    frame = events["frame"]
    chosen = events.filter(pc.and_(pc.greater_equal(frame, low), pc.less_equal(frame, high)))
    if chosen.num_rows == 0:
        first, last = events["frame"][0], events["frame"][-1]
        raise ValueError(f"frames {low}-{high} hold no packet of these streams, which are in frames {first}-{last}")
    return chosen, first_ns


def _has_nanoseconds(table: pa.Table) -> bool:
    instants = pagination.nanoseconds(table["time"])
    whole_us = pc.multiply(pc.divide(instants, pa.scalar(1000)), pa.scalar(1000))
    return not pc.all(pc.equal(instants, whole_us)).as_py()


def _longest_wait_note(book: FlowPages, page: pagination.Page) -> str:
    """Return the sentence that names the frames of the longest wait; empty if this page shows a wait half as long."""
    longest = book.longest_wait() if book.pages > 1 else None
    if longest is None or longest[0] <= 2 * max((mark.ms for mark in page.marks), default=0.0):
        return ""
    duration_ms, cause, low, high = longest
    return words.say("flow_longest", time=f"{tenths(duration_ms)} ms", cause=cause, low=str(low), high=str(high))


def _missing_note(book: FlowPages, number: int, *, earlier: bool = False) -> str:
    """Return the sentences on rows that are not shown; empty if all are. `earlier`: earlier pages are drawn too."""
    beyond = f" {words.say('flow_behind', n=f'{book.beyond:,}')}" if book.beyond else ""
    if book.pages == 1:
        return beyond
    return _other_pages_note(book, number, earlier=earlier) + beyond


def _other_pages_note(book: FlowPages, number: int, *, earlier: bool) -> str:
    """Return the sentence on rows of other pages. The next page begins with the last row of this one, as a wait may
    follow.
    """
    first, last = book.first_and_last(number)
    missing = len(book) - (last + 1 if earlier else last - first + 1)
    if earlier:
        low, high = book.frames(number + 1)[0], book.frames(book.pages - 1)[1]
        return words.say("flow_no_page", n=str(missing), of=str(len(book)), low=str(low), high=str(high))
    if number + 1 < book.pages:
        low, high = book.frames(number + 1)
        return words.say("flow_rest", n=str(missing), of=str(len(book)), low=str(low), high=str(high))
    return words.say("flow_before", n=str(missing), of=str(len(book)))


class FlowPair:
    """Two flow graphs side by side: equal heights are equal times after the first row of each.

    Made by `FlowGraph.beside`. `left` and `right` are the graphs, whose first pages are drawn; `names` are written
    before their titles. Gaps that would be lower than a row are drawn one row high, and not to scale.

    Attributes: as given; after `plot`: `ax_`, the axes, and `figure_`, their figure.
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, left: FlowGraph, right: FlowGraph, *, names: tuple[str, str] = ("", "")) -> None:
        self.left, self.right = left, right
        self.names = names
        self.lang = words.current()

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on these axes, scaled to fit into them, or on a new figure. Returns the pair itself."""
        with words.language(self.lang):
            pen = self._drawn(ax)
        self.ax_, self.figure_ = pen.ax, figure_of(pen.ax)
        return self

    def _drawn(self, ax: Axes | None) -> Ink:
        """Return the ink of both pictures side by side, with rows at equal heights."""
        sides = (self.left, self.right)
        rows = [_rows_from_zero(side) for side in sides]
        pages = [
            layout.columns(
                ": ".join(word for word in (name, side.title) if word),
                side.nodes,
                shown,
                side.marks,
                side.brackets,
                min_width=_MIN_SIDE_WIDTH,
                comments=False,
            )
            for side, name, shown in zip(sides, self.names, rows, strict=True)
        ]
        body = max(page.body[0] for page in pages)
        for page in pages:
            layout.lower_heads(page, body - page.body[0])
        em_per_ns = layout.scale_of([[row.at_ns for row in shown] for shown in rows], SCALE_NS)
        steps = [layout.steps(page, shown) for page, shown in zip(pages, rows, strict=True)]
        row_heights, breaks = layout.stack(steps, em_per_ns)
        for page, heights in zip(pages, row_heights, strict=True):
            layout.place_rows(page, heights, breaks, em_per_ns)
        width = pages[0].width + _GUTTER + pages[1].width
        bottom = max(page.height for page in pages)
        foot = drawing.footer(
            " ".join(side.note for side in sides if side.note),
            words.say("flow_equal_heights"),
            [],
            [*sides[0].marks, *sides[1].marks],
            width,
            em_per_ns,
        )
        with paper.house_style():
            pen = Ink.on(ax, width, bottom + drawing.footer_height(foot))
            drawing.draw_body(pen, pages[0], rows[0])
            drawing.draw_body(pen.moved(pages[0].width + _GUTTER, 0), pages[1], rows[1])
            drawing.draw_footer(pen, bottom, foot, width, em_per_ns)
            pen.flush()
        return pen

    def save(self, path: str | Path, *, dpi: float = paper.DPI) -> Self:
        """Write PNG, SVG or PDF, by the path's suffix; the same input gives the same bytes. ValueError for other
        suffixes; OSError if the file cannot be written.
        """
        files.write(path, self._render(paper.suffix_of(path), dpi))
        return self

    def _render(self, suffix: str, dpi: float) -> bytes:
        with words.language(self.lang):
            fresh = FlowPair(self.left, self.right, names=self.names).plot()
        return paper.render(fresh.figure_, suffix, dpi, colours=drawing.COLOURS)

    def _repr_png_(self) -> bytes:
        return self._render(".png", paper.DPI)

    def __repr__(self) -> str:
        return f"FlowPair({self.left!r}, {self.right!r})"


def _rows_from_zero(side: FlowGraph) -> list[FlowRow]:
    """Return the graph's rows with times counted from its first row, and as many decimals as before."""
    zero = side.rows[0].at_ns
    digits = max(len(row.time.rpartition(".")[2]) if "." in row.time else 0 for row in side.rows)
    return [replace(row, at_ns=row.at_ns - zero, time=seconds(row.at_ns - zero, digits)) for row in side.rows]
