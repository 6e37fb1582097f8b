"""`Capture`, which `read` returns, and `Stream`, one connection of it: the public API of a capture.

`read` pushes a capture's bytes into the core. `Capture` provides the tables, and the answers, graphs and files made of
them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latpcap.bars import bar
from latpcap.errors import NoSuchRowError
from latpcap.format import count, endpoint
from latpcap.lazy import pa, pc, pd
from latpcap.options import FlowOptions
from latpcap.reading import sources, timestamps
from latpcap.reading.feed import Feed
from latpcap.reading.keylog import Keylog
from latpcap.reading.timestamps import Instant
from latpcap.tables import LINKS, SETUP, card, of_rows, read_stretches, to_pandas
from latpcap.views.recording import Recording
from latpcap.views.view import View

if TYPE_CHECKING:
    from latpcap.answers.why import Why
    from latpcap.findings import FinderTables
    from latpcap.options import Flows, Pick, SequencePanel, Side, TableName, TimeFormat, Tool
    from latpcap.plot.flow.graph import FlowGraph
    from latpcap.plot.timeseq import TimeSequence
    from latpcap.reading.follow import Follow
    from latpcap.reports import Report
    from latpcap.statistics.conversations import Layer

MANY_ROWS = 1 << 16
"""Requests from which findings read few columns, which are stored in files (`latpcap.spill`)."""


def read(
    source: sources.Source = sources.SAMPLE,
    *,
    start: Instant | None = None,
    end: Instant | None = None,
    keylog: Keylog | None = None,
    progress: bool = False,
) -> Capture:
    """Read and analyse a capture; without a source, the sample that comes with latpcap.

    `source` is a path, a glob ("ring_*.pcap"), a URL (http:// and https://; s3://, gs:// ... by pyarrow, others by
    fsspec), "-" for standard input, bytes, or a binary file object; pcap, pcapng, snoop or Network Monitor's format,
    plain or compressed with gzip, zstd, lz4, bz2 or xz. A list of these, or a glob, is one capture cut into files: they
    are read in the order of their first packets, frames are counted on and streams go on from one to the next. The
    whole capture is analysed; its tables are held in memory.

    `keylog` is a file of TLS keys as browsers, curl and Python write them for SSLKEYLOGFILE: with it TLS 1.2 and 1.3
    are decrypted, and requests inside are read. Keys inside a pcapng file are used as well. `Capture.issues` has what
    stays encrypted, and why. Keys are never stored, shown or pickled.

    `start` and `end` limit the time: ISO text or a datetime (UTC where it names no zone), or seconds since the first
    frame. Reading stops at `end` (excluded), as if the file ended there. What lies before `start` is read, because
    streams and verdicts depend on it, and then left out as by `filter`: segments from `start` on are kept, with their
    whole exchanges. Both are in `display_filter`. ValueError for an invalid instant.

    Files of a list that show the same packets, such as captures at two points, cause a UserWarning: use `join` for
    them.

    `progress` shows a bar in a notebook or terminal where that takes longer than a second.

    Raises CaptureError when nothing can be read: no such file or key log, no capture, a truncated header. A capture
    that is damaged further on has its rows up to the damage, and so has each file of several; `Capture.issues` has
    the file, place and reason.
    """
    since, until = timestamps.given(start, "start"), timestamps.given(end, "end")
    feed = Feed(source, keylog, until)
    with bar(f"reading {feed.name}", feed.size, shown=None if progress else False) as shown:
        for size in feed.run():
            shown.add(size)
    capture = Capture(feed.name, feed.analysis, feed.broken, origins=feed.origins, keylog=keylog, end=until)
    if len(feed.origins) > 1:
        _warn_of_copies(feed.origins)
    if since is None or capture.zero_ns is None:
        return capture
    return capture.filter(f'frame.time >= "{timestamps.text(since.since_1970(capture.zero_ns))}"')


def _warn_of_copies(origins: Sequence[sources.Origin]) -> None:
    """Warn where files show the same packets: they are not the files of one ring buffer."""
    import warnings

    from latpcap.reading import same_traffic

    for sentence in same_traffic.warnings(origins):
        warnings.warn(sentence, stacklevel=3)


class Capture(Recording):
    """A capture: its tables, and the answers, graphs and files made of them. Made by `latpcap.read`.

    `name` is the file's name as given, `files` the names of all files in the order in which they were read, `frames`
    counts every record, `format` is "pcap", "pcap (ns)", "pcap (modified)", "pcapng", "snoop" or "netmon" (of several
    files the last one's), `digits` are the decimals of a second of its clock. `first_ns` and `last_ns` bound it in ns
    since 1970; `zero_ns` is the instant of frame 1, Wireshark's time 0 (None without packets). `display_filter` is the
    filter that it was limited by, or None.
    """

    @property
    def kept(self) -> FinderTables | None:
        """The columns that findings read, of a capture of many requests; None where they read its tables."""
        if self._whole is not None or self.rows("exchanges") < MANY_ROWS:
            return None
        if "_kept" not in self.__dict__:
            from latpcap.views import answer_columns

            self.__dict__["_kept"] = answer_columns.compact_tables(self)
        return self.__dict__["_kept"]

    def stream(self, number: int) -> Stream:
        """Return one TCP connection; `number` is Wireshark's tcp.stream. IndexError where there is none."""
        have = len(self._raw["streams"])
        if not (0 <= number < have if self._whole is None else number in self.arrow("streams")["stream"].to_pylist()):
            raise _missing(self, number, have)
        return Stream(self, number)

    def why(
        self,
        *,
        stream: int | None = None,
        exchange: int | Pick | None = None,
        slow_ms: float | None = None,
        server: str | None = None,
        top: int | None = None,
        strace: str | Path | None = None,
        access_log: str | Path | None = None,
        lang: str | None = None,
    ) -> Why:
        """Explain why the requests were slow, who waited for whom, and which frames show it.

        Prints as at most 15 lines; `to_dict()` has every number of the text, `.headline`, `.fix`, `.grade`, `.findings`
        and `.servers` the most important. `stream` limits the answer to one tcp.stream, `exchange` to one row of
        `exchanges`, or with `stream` to its number there, or to the "worst", "typical" or "first" one. A request is
        slow if it takes `slow_ms` or more beyond the path's round trip (None: the protocol's default). `server`, an
        address, "address:port" or a name that clients requested, selects the server; default: the one with the most
        slow requests. `top` limits the list of servers.
        `strace` and `access_log` are files recorded beside the capture (docs/capture.md), for whole captures only:
        their sentences are added, the grades stay the capture's. `lang` is "en" (the default) or "zh".
        IndexError where there is no such stream or exchange, ValueError for another word, server or language,
        LatpcapError where one of these files cannot be read.
        """
        from latpcap import words

        with words.language(lang):
            return self._why(stream, exchange, slow_ms, server, top, strace, access_log)

    def _why(
        self, stream: int | None, exchange: int | Pick | None, slow_ms: float | None, server: str | None,
        top: int | None, strace: str | Path | None, access_log: str | Path | None,
    ) -> Why:  # fmt: skip
        from latpcap import side_sources
        from latpcap.answers.why import Question, Why

        external = side_sources.read_sources(self, strace=strace, access_log=access_log)
        if external and (stream is not None or exchange is not None):
            raise ValueError("strace and access_log are for whole captures, without stream and exchange")
        if exchange is not None:
            if stream is not None:
                return self.stream(stream).why(exchange=exchange)
            return Why.of_exchange(self, _picked(self, exchange))
        if stream is not None:
            return self.stream(stream).why(slow_ms=slow_ms)
        from latpcap.side_sources import processes

        answer = Why.of(self, self, question=Question(slow_ms, server, top))
        return answer.with_beside([*processes.name_processes(self), *external])

    def report(self, tool: Tool, *, server: str | None = None) -> Report:
        """Return what a tool would have printed: the lines of "wrk", "ping", "hping3", "traceroute", "curl" or
        "pgbench", by its own formulas, and what it or the capture cannot know.

        `server`, an address or "address:port", limits them. `.lines`, `.unknown` and `.numbers` are its parts.
        ValueError for another tool, or where the capture has no such traffic; CaptureError where the bytes cannot be
        read again.
        """
        from latpcap import reports

        return reports.make_report(self, tool, server)

    def conversations(self, layer: Layer | None = None) -> pd.DataFrame:
        """Return one row per pair of ends, as in Wireshark's Conversations.

        Of one `layer` ("eth", "ip", "ipv6", "tcp" or "udp") or of all; reads the capture again. `stream`: of TCP and
        UDP, as in Wireshark. `a, a_port` sent the first packet to `b, b_port`; `packets, bytes` (whole frames on the
        wire) and both for each way: `packets_a_to_b, bytes_a_to_b, packets_b_to_a, bytes_b_to_a`; `start`, `start_s`
        (since the capture's first frame), `duration_s`, `bits_per_s_a_to_b, bits_per_s_b_to_a` (null without a
        duration). Largest first. Packets quoted in ICMP errors do not count. ValueError for another layer;
        CaptureError where the source cannot be read twice.
        """
        from latpcap.statistics.conversations import conversations

        return to_pandas(conversations(self, layer))

    def endpoints(self, layer: Layer | None = None) -> pd.DataFrame:
        """Return one row per address (of TCP and UDP: address and port), as in Wireshark's Endpoints.

        `layer` and errors as in `conversations`; `address, port, packets, bytes`, `packets_sent, bytes_sent`,
        `packets_received, bytes_received`, `start, start_s, duration_s`.
        """
        from latpcap.statistics.conversations import endpoints

        return to_pandas(endpoints(self, layer))

    def hierarchy(self) -> pd.DataFrame:
        """Return one row per protocol below the protocol that carries it, as in Wireshark's Protocol Hierarchy.

        `path` ("eth:ip:tcp:http"), `protocol`, its `level`, `frames, bytes`, `frames_share, bytes_share` (of all), and
        `end_frames`, in which no further protocol was recognised. Equal to Wireshark up to TCP and UDP; above TCP, all
        segments with payload count. CaptureError where the source cannot be read twice.
        """
        from latpcap.statistics.hierarchy import hierarchy

        return to_pandas(hierarchy(self))

    def expert(self) -> pd.DataFrame:
        """Return one row per remark of Wireshark's expert information: of TCP, HTTP, DNS, ICMP and damage.

        `severity` ("error", "warning", "note", "chat") and `group` as in Wireshark 4.0, `protocol`, `summary`, `count`,
        `first_frame`, the display `filter` that finds them (null where Wireshark has none) and the first 100 `frames`.
        """
        from latpcap.statistics.expert import expert

        return to_pandas(expert(self))

    def flow_graph(
        self,
        *,
        filter: str | None = None,
        flows: Flows = "tcp",
        exchange: int | Pick | None = None,
        server: str | None = None,
        frames: tuple[int, int] | None = None,
        time: TimeFormat = "relative",
        to_scale: bool = False,
        max_rows: int | None = None,
        mark_ms: float = 5.0,
        collapse: bool | None = None,
        lang: str | None = None,
    ) -> FlowGraph:
        """Draw which packets went between whom and where the time went: the flow graph of all TCP streams.

        As `Stream.flow_graph`; `exchange` is "worst", "typical", "first" or a number of the table `exchanges`. The word
        picks from one server: `server` (address, address:port or name), or the one that `why` names; `server` alone
        draws all of its packets. `filter` is a display filter (FilterError). `flows` is "tcp", "icmp" (and ICMPv6),
        "all" (every frame) or "any" (every frame, with the text of `tshark -z flow,any,network`); all but "tcp" read
        the file again (CaptureError where that fails) and take no filter. `lang`: "en" (the default) or "zh"; a
        UserWarning, and English, where no installed font has its letters. ValueError for an unknown server.
        """
        from latpcap.views.flows import graph, of_server

        limited = self if filter is None else self.filter(filter)
        if server is not None and exchange is None:
            limited = limited.filter(of_server(limited, server))
        options = FlowOptions(frames, time, to_scale, max_rows, mark_ms, collapse)
        return graph(limited, limited, options, flows=flows, exchange=exchange, server=server, lang=lang)

    def to_html(self, path: str | os.PathLike[str], *, lang: str | None = None) -> None:
        """Write one HTML page: actions, answer, servers, findings, rates, times, waterfall, exchanges, flow graphs.

        The file fetches nothing and runs only its own script; tables sort, pictures zoom. `lang` is the language of
        its answer, as in `why`. OutputError where it cannot be written, or for another suffix than .html.
        """
        from latpcap import page, words

        with words.language(lang):
            page.write(path, page.of_capture(self))

    def __repr__(self) -> str:
        streams, exchanges = len(self._raw["streams"]), self.arrow("exchanges").num_rows
        part = "" if self._whole is None else f"{len(self._raw['events']):,} of "
        return (
            f"{self.title}: {part}{count(self.frames, 'frame')}, {count(streams, 'TCP stream')}, "
            f"{count(exchanges, 'exchange')}, {self.seconds:.2f} s"
        )

    def _repr_html_(self) -> str:
        return card(repr(self), self.why().text.below_title, self._folded())


def _picked(view: View, exchange: int | Pick) -> int:
    """Return the number of the exchange that a number or one of the words of `Pick` selects."""
    if not isinstance(exchange, str):
        return exchange
    from latpcap.views.flows import chosen

    return int(chosen(view, exchange)["exchange"])


def read_stream(source: sources.Source, number: int, *, keylog: Keylog | None = None, progress: bool = False) -> Stream:
    """Read one stream: as `read(source).stream(number)`, without the other streams' rows in memory."""
    from latpcap.views import projection

    capture: Any = projection.read(source, projection.of_stream(number), keylog=keylog, progress=progress)
    stream_count = capture.arrow("streams").num_rows
    if not 0 <= number < stream_count:
        raise _missing(capture, number, stream_count)
    return Stream(capture, number)


def _missing(capture: Recording, number: int, stream_count: int) -> NoSuchRowError:
    return NoSuchRowError(f"no stream {number}: {capture.title} has {count(stream_count, 'TCP stream')}")


class Stream(View):
    """One TCP connection: a view of its capture, limited to one tcp.stream."""

    def __init__(self, capture: Capture, number: int):
        self.capture = capture
        self.number = number
        self._arrow: dict[str, pa.Table] = {}

    @property
    def client(self) -> str:
        """The client as "address:port"."""
        return self._end("client")

    @property
    def server(self) -> str:
        """The server as "address:port"."""
        return self._end("server")

    def _end(self, side: Side) -> str:
        row = self.arrow("streams").select([side, f"{side}_port"]).to_pylist()[0]
        return endpoint(*row.values())

    def __getstate__(self) -> dict[str, object]:
        return {"capture": self.capture, "number": self.number, "_arrow": {}}

    @property
    def title(self) -> str:
        """The file's name and the display filter of the stream."""
        return f"{self.capture.title}, tcp.stream eq {self.number}"

    @property
    def _files(self) -> Sequence[str]:
        return [self.capture.name]

    @property
    def _start_ns(self) -> int:
        return self.capture.zero_ns or 0

    def arrow(self, name: TableName) -> pa.Table:
        """Return this stream's rows of a table as a pyarrow.Table; KeyError for a wrong name.

        `evidence` and `issues` are about endpoints and files: they are the whole capture's. `probes` are this
        stream's SYNs, if it never carried data.
        """
        if name == "findings":
            return self._findings()
        if name not in self._arrow:
            table = self.capture.arrow(name)
            if name == "causes":
                table = of_rows(table, {link: self.arrow(linked)[link] for link, linked in LINKS.items()})
            elif name == "actions":
                table = of_rows(table, {"action": self.arrow("waits")["action"]})
            elif "stream" in table.column_names:
                table = table.filter(pc.equal(table["stream"], pa.scalar(self.number, pa.uint32())))
            self._arrow[name] = table
        return self._arrow[name]

    def why(self, *, exchange: int | Pick | None = None, slow_ms: float | None = None) -> Why:
        """Explain why this stream's requests were slow. `exchange` counts from 0 on this stream (`index`), or is a word
        as in `Capture.why`, as is `slow_ms`.
        """
        from latpcap.answers.why import Question, Why

        if exchange is None:
            return Why.of(self.capture, self, stream=self.number, question=Question(slow_ms))
        if isinstance(exchange, str):
            return Why.of_exchange(self.capture, _picked(self, exchange))
        rows = read_stretches(self).select(["exchange", "index", "protocol", "method"]).to_pylist()
        # a pause has the index of the request after it, and a set-up that of the first request
        rows = [row for row in rows if row["protocol"] != SETUP] or [row for row in rows if row["method"] == "connect"]
        number = next((row["exchange"] for row in rows if row["index"] == exchange), None)
        if number is None:
            have = count(len(rows), "exchange")
            raise NoSuchRowError(f"no exchange {exchange}: tcp.stream {self.number} has {have}, counted from 0")
        return Why.of_exchange(self.capture, number)

    def flow_graph(
        self,
        *,
        exchange: int | Pick | None = None,
        frames: tuple[int, int] | None = None,
        time: TimeFormat = "relative",
        to_scale: bool = False,
        max_rows: int | None = None,
        mark_ms: float = 5.0,
        collapse: bool | None = None,
        lang: str | None = None,
    ) -> FlowGraph:
        """Draw the packets of this stream and where the time went: Wireshark's flow graph, with the causes.

        `exchange` shows one exchange: "worst", "typical", "first" or its number on this stream (`index`). `frames`
        limits the graph to a range of frame numbers (both included). `time` is "relative" (seconds since the capture's
        first frame), "delta" (since the frame before), "delta_displayed" (since the row before), "date" or "epoch".
        With `to_scale` distances are proportional to time. Waits of at least `mark_ms` are marked. A page has at most
        `max_rows` rows (default 60; 36 in a PDF), and the picture states what is left out. A long run of data segments
        without events is one row, "11 x 1448 B, 12 ms"; `collapse` True does so with short runs too, False with none
        (tshark's text has every packet). Draws itself in a notebook; `.save("flow.png")` writes PNG, SVG, PDF, or
        tshark's text (.txt). ValueError for invalid options, IndexError where there is no such exchange.
        """
        from latpcap.views.flows import graph

        options = FlowOptions(frames, time, to_scale, max_rows, mark_ms, collapse)
        return graph(self.capture, self, options, stream=self.number, exchange=exchange, lang=lang)

    def follow(self) -> Follow:
        """Return what both ends sent, with the frame of each piece: Wireshark's "Follow TCP Stream".

        `.text()`, `.hex()` and `.raw()` are what tshark prints, with `frames=True` the frames beside it; `.chunks` are
        the pieces, `.payload(0)` one end's bytes; plain text where the keys of TLS are known (`read(..., keylog=)`). Of
        the whole stream, whatever filter its capture has. Reads the capture again: CaptureError where that cannot be
        done.
        """
        from latpcap.reading.follow import follow

        return follow(self.capture, self.number)

    def to_pcap(self, path: str | os.PathLike[str], *, anonymise: bool | str | bytes = False) -> int:
        """Write this stream's segments to a file, as `Capture.to_pcap` does; return their number."""
        from latpcap.reading.slices import write_slice

        about = f"{self.title}; comments have its frame numbers"
        return write_slice(self.capture, self, path, about, anonymise=anonymise)

    def time_sequence(
        self,
        *,
        sender: Side | None = None,
        frames: tuple[int, int] | None = None,
        panels: Sequence[SequencePanel] = ("sequence", "flight", "rtt", "throughput"),
        mark_ms: float = 5.0,
    ) -> TimeSequence:
        """Draw sequence numbers over time, with the stalls: tcptrace's time-sequence graph.

        `sender` is "client" or "server" (default: the side that sends more bytes), `frames` a range of frame numbers,
        `panels` some of "sequence", "flight" (bytes in flight, and the window), "rtt" and "throughput". Waits of at
        least `mark_ms` have the colour of their cause, transfers that of their limit. ValueError for another word, or
        where that side sends no data.
        """
        from latpcap.plot.timeseq import TimeSequence

        return TimeSequence.from_tables(
            self.arrow("events"),
            self.arrow("causes"),
            title=self.title,
            sender=sender,
            frames=frames,
            panels=panels,
            mark_ms=mark_ms,
            start_ns=self._start_ns,
            transfers=self.arrow("transfers"),
        )

    def __repr__(self) -> str:
        row = self.arrow("streams").to_pylist()[0]
        packets = row["client_packets"] + row["server_packets"]
        packets_text = (
            f"{self.client} to {self.server}, {count(packets, 'segment')}, {count(row['exchanges'], 'exchange')}"
        )
        return f"tcp.stream {self.number}: {packets_text}"

    def _repr_html_(self) -> str:
        return card(repr(self), str(self.why()), self._folded())
