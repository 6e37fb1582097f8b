"""`View`: what a capture, a stream and an archive have in common: tables as data frames, reports and pictures.

It reads Arrow tables by name, which its subclasses provide. pandas, pyarrow and matplotlib are imported when they are
first needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from latpcap.lazy import pa, pc, pd
from latpcap.options import TableName
from latpcap.tables import of_rows, signed, sql, to_pandas, to_polars

if TYPE_CHECKING:
    import polars as pl

    from latpcap.exports.names import Names
    from latpcap.options import Align, EvidencePanel, Group, Scale, Sort, ThroughputGroup, Which
    from latpcap.plot.evidence import EvidencePlot
    from latpcap.plot.throughput import Throughput
    from latpcap.plot.timeline import Timeline
    from latpcap.plot.waterfall import Waterfall
    from latpcap.views.latency import Latency


_FOLDED: dict[TableName, list[str]] = {
    "findings": ["server", "server_port", "cause", "owner", "grade", "exchanges", "total_ms", "of_p50_ms", "of_p99_ms"],
    "exchanges": ["exchange", "stream", "index", "method", "target", "status", "latency_ms", "top_cause"],
    "streams": ["stream", "client", "client_port", "server", "server_port", "protocol", "exchanges", "initial_rtt_ms"],
    "issues": ["kind", "frame", "layer", "reason", "count"],
}
"""The tables below the answer in a notebook's card, with the columns that are shown."""


class View:
    """The tables as data frames and as Arrow tables, with their reports and pictures."""

    def arrow(self, name: TableName) -> pa.Table:
        """Return a table as a pyarrow.Table, without a copy.

        `name` is one of "events", "streams", "exchanges", "connects", "pushes", "gaps", "causes", "evidence",
        "transfers", "lookups", "probes", "issues", "waits", "actions", "groups" and "findings"; KeyError otherwise.
        """
        raise NotImplementedError

    def rows(self, name: TableName) -> int:
        """Return the number of rows of a table."""
        return int(self.arrow(name).num_rows)

    def _findings(self) -> pa.Table:
        """Return the table that is computed from the others; cached per language."""
        from latpcap import findings, words

        by_language: dict[str, pa.Table] = self.__dict__.setdefault("_found", {})
        if words.current() not in by_language:
            by_language[words.current()] = findings.table(findings.read_from(self))
        return by_language[words.current()]

    def to_arrow(self, name: TableName = "exchanges", *, names: Names | None = None) -> pa.Table:
        """Return `arrow(name)` with every integer as int64, so that differences do not wrap around.

        `names`, "otel", "ecs" or "zeek", renames the columns of "streams", "exchanges" and "lookups" to those of
        OpenTelemetry, Elastic Common Schema or Zeek's logs, in their units (docs/exports.md); ValueError for others.
        """
        table = signed(self.arrow(name))
        if names is None:
            return table
        from latpcap.exports.names import renamed

        return renamed(table, name, names)

    def to_polars(self, name: TableName = "exchanges") -> pl.DataFrame:
        """Return a table as a polars frame: integers Int64, words Categorical. ImportError without polars."""
        return to_polars(self.arrow(name))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the exchanges by Arrow's protocol: for `polars.DataFrame(cap)`, `pyarrow.table(cap)` and others."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def sql(self, query: str) -> pd.DataFrame:
        """Query the tables in SQL: `cap.sql("select target, max(latency_ms) from exchanges group by 1")`.

        Runs in duckdb (ImportError where it is not installed), in UTC and to the microsecond. Tables have the names
        that `arrow` takes; a capture also has `headers`. An invalid query raises duckdb's own error.
        """
        return sql(query, self._by_name())

    def _by_name(self) -> dict[str, Callable[[], pa.Table]]:
        """Return the tables that SQL may name, each with the function that makes it."""
        return {name: partial(self.arrow, name) for name in get_args(TableName)}

    def __dir__(self) -> list[str]:
        """Return the public names, for completion at a prompt."""
        return [name for name in super().__dir__() if not name.startswith("_") or name.endswith("__")]

    def to_otlp(self, path: str | os.PathLike[str]) -> int:
        """Write the actions of clients as OpenTelemetry spans (OTLP/JSON, one line per server); return their number.

        There is a span per action, per wait in it, and per cause; docs/exports.md has their names and attributes.
        OutputError where the file cannot be written.
        """
        from latpcap import exports

        return exports.write(self, path, "otlp", self.title)

    def to_perfetto(self, path: str | os.PathLike[str]) -> int:
        """Write the actions of clients as Chrome trace events, for ui.perfetto.dev; return the number of spans.

        Spans as in `to_otlp`; a server is a process, a stream a thread. OutputError where the file cannot be written.
        """
        from latpcap import exports

        return exports.write(self, path, "perfetto", self.title)

    @property
    def title(self) -> str:
        """The title of reports and pictures: the file, stream and filter."""
        raise NotImplementedError

    def latency(
        self,
        by: Group | Sequence[Group] | None = None,
        *,
        which: Which = "latency_ms",
        percentiles: Sequence[float] = (50.0, 75.0, 90.0, 99.0),
    ) -> Latency:
        """Summarise how long the requests took: count, mean, deviation, maximum and percentiles, as wrk does.

        `by` groups: "server", "client", "uri", "method", "status", "capture", "folder", any other column of exchanges
        that is no duration, a time span ("10s", "5min", "hour"), or a list of them. "process", "container" and "pod"
        need a capture that names them (see `Capture.processes`). `which` is "latency_ms" (first request byte to last
        response byte, at the capture) or "client_latency_ms" (an estimate for the client's own clock). `.table` is a
        data frame, `.plot()` the picture. ValueError for another word.
        """
        from latpcap.views.latency import Latency

        rows = self._of_processes(self.arrow("exchanges"), by)
        return Latency.from_tables(
            rows, by=by, which=which, percentiles=percentiles, title=self.title, files=self._files
        )

    def _of_processes(self, exchanges: pa.Table, by: Group | Sequence[Group] | None) -> pa.Table:
        """Return the exchanges, with a column per word of `by` that names processes, containers or pods."""
        from latpcap.views import groups

        if not (process_groups := groups.of_processes(by)):
            return exchanges

        from latpcap.reading.processes import by_stream

        capture: Any = getattr(self, "capture", self)
        if not hasattr(capture, "processes"):
            raise ValueError(f"{process_groups[0]} is known of captures, not of the results of a batch")
        for name in process_groups:
            name_of = by_stream(capture.unfiltered._processes(), name)
            names = [name_of.get(stream) for stream in exchanges["stream"].to_pylist()]
            exchanges = exchanges.append_column(name, pa.array(names, pa.string()))
        return exchanges

    def waterfall(
        self,
        *,
        by: Group | Sequence[Group] | None = None,
        sort: Sort = "latency_ms",
        align: Align = "start",
        top: int | None = None,
        max_rows: int = 60,
    ) -> Waterfall:
        """Draw where each exchange's time went: a horizontal bar each, divided into causes; areas are time.

        `sort` is "latency_ms" (longest first), "start", or a cause (most of it first); `by` groups as in `latency`.
        `align="clock"` puts each bar at its time in the capture, for the first `max_rows` only. `top` limits the
        number of exchanges. Without it, bars have no names above `max_rows` exchanges; above 80 each is the mean of
        several, as the picture states. ValueError for another word or without exchanges.
        """
        from latpcap.plot.waterfall import Waterfall
        from latpcap.views import groups

        exchanges = self._of_processes(self.arrow("exchanges"), by)
        return Waterfall.from_tables(
            exchanges,
            of_rows(self.arrow("causes"), {"exchange": exchanges["exchange"]}),
            title=self.title,
            groups=groups.names(exchanges, by, self._files),
            sort=sort,
            align=align,
            top=top,
            max_rows=max_rows,
            start_ns=self._start_ns,
            place=self._stream_name,
        )

    def timeline(self, *, scale: Scale = "auto") -> Timeline:
        """Draw when requests were slow and what happened on the wire: a dot per exchange over the capture's time.

        Dots have the colour of the top cause; below are retransmissions, zero windows, resets and the like. `scale` of
        the latency is "log", "linear" or "auto". ValueError where there is nothing to draw.
        """
        from latpcap.plot.timeline import Timeline

        tables = self.arrow("exchanges"), self.arrow("events")
        return Timeline.from_tables(*tables, title=self.title, start_ns=self._start_ns, scale=scale)

    def throughput(self, *, by: ThroughputGroup = "direction") -> Throughput:
        """Draw the payload in Mbit/s over time, stacked by its group, as Wireshark's I/O graph.

        `by` is "direction", "server" or "stream"; the groups after the seventh are drawn as one. ValueError for another
        word, or without payload.
        """
        from latpcap.plot.throughput import Throughput

        tables = self.arrow("events"), self.arrow("streams")
        return Throughput.from_tables(*tables, by=by, title=self.title, start_ns=self._start_ns)

    def distributions(
        self, *, server: str | None = None, panels: Sequence[EvidencePanel] = ("path", "kernel", "program", "holds")
    ) -> EvidencePlot:
        """Draw the measurements that the verdicts on one server rest on.

        `server` is an address or address:port; default: the server with the most evidence. `panels`: some of "path"
        (round trips over time), "kernel" (from an ACK to the segment it released), "program" (gaps between two small
        segments, held and not) and "holds" (delays of ACKs). ValueError for others, or where nothing was measured.
        """
        from latpcap.plot.evidence import EvidencePlot

        tables = self.arrow("events"), self.arrow("streams"), self.arrow("evidence")
        return EvidencePlot.from_tables(*tables, server=server, panels=panels, start_ns=self._start_ns)

    def to_har(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Return the requests of HTTP/1, HTTP/2 and gRPC as an HTTP Archive (HAR 1.2), and write it to `path`.

        The dict has `log`. `timings` of an entry are in ms (-1: unknown): `blocked, dns, connect, ssl` for the first
        request of a connection, as far as `connects` has them, then TRANSUM's `send, wait, receive`. Headers but Host
        and bodies are missing. `_exchange` and `_frame` locate it. OutputError where the file cannot be written.
        http://www.softwareishard.com/blog/har-12-spec/
        """
        from latpcap.views import har

        log = har.har_log(self)
        if path is not None:
            har.write(log, path)
        return log

    def _folded(self) -> dict[str, pa.Table]:
        """Return the tables below the answer in a notebook's card, by caption: a few columns of a few rows."""
        by_caption = {}
        for name, columns in _FOLDED.items():
            table = self.arrow(name)
            if not table.num_rows or (name == "streams" and table.num_rows == 1):
                continue
            words = f"{table.num_rows:,} {name if table.num_rows > 1 else name[:-1]}"
            if name == "exchanges":
                first = pc.select_k_unstable(table, 10, [("latency_ms", "descending")])
                table, words = table.take(first), f"{words}, the longest"
            by_caption[words] = table.select(columns)
        return by_caption

    _stream_name: Callable[[int], str] | None = None
    """Returns a name for a stream, in results of several captures, whose streams are numbered in one series."""

    @property
    def _files(self) -> Sequence[str]:
        """The names of the captures, in the order of their numbers."""
        return [self.title]

    @property
    def _start_ns(self) -> int:
        """The instant of Wireshark's time 0: the capture's first frame, in ns since 1970."""
        raise NotImplementedError

    def _frame(self, name: TableName) -> pd.DataFrame:
        cache: dict[str, pd.DataFrame] = self.__dict__.setdefault("_frames", {})
        if name not in cache:
            cache[name] = to_pandas(self.arrow(name))
        return cache[name]

    @property
    def events(self) -> pd.DataFrame:
        """One row per TCP segment, in frame order, with Wireshark's analysis.

        Identity: `frame, time, stream, from_client, src, sport, dst, dport, time_delta_ms`. Header: `seq, ack`
        (relative, unwrapped to 64 bits), `len, flags, window` (scaled), `mss, wscale, tsval, tsecr, sack`.
        Wireshark 4.0's analysis: `acks_frame, ack_rtt_ms, bytes_in_flight, push_bytes_sent` and the flags of
        tcp.analysis (`retransmission` to `reused_ports`), `dsack`. latpcap's own: `ack_hold_ms` (how long the receiver
        delayed the ACK), `released_by, release_frame, waited_ms` (what released this data). Null where Wireshark shows
        nothing, or nothing is known. docs/events-and-streams.md has each column.
        """
        return self._frame("events")

    @property
    def streams(self) -> pd.DataFrame:
        """One row per TCP connection, numbered as Wireshark's tcp.stream.

        Ends: `client, client_port, server, server_port`, and `roles_by`, how the client was recognised (`syn` and
        `syn_ack` are certain, `content` nearly, `port` and `first_packet` a guess). Time: `start, end, first_frame,
        last_frame`. Handshake: `completeness` (Wireshark's code), `initial_rtt_ms`. Path: `client_rtt_ms` and
        `server_rtt_ms` (the best from the capture to that end and back), `position`; `…_rtt_samples, …_rtt_mean_ms,
        …_rtt_stdev_ms, …_rtt_max_ms` leave out ACKs as late as a delayed-ACK timer makes them (counted in
        `…_held_acks`), unless two full segments or the handshake obliged the receiver. By side: packets, bytes,
        retransmissions, out-of-order, `…_unseen_frames` (lost before the capture, by the IPv4 identifications), SACKs
        and DSACKs, the SYN's options, `…_window_min`. The end: `closed_by` (the first side to close), `closed_how`
        (`fin, half, rst, fin_rst`; null where the capture ended before). Null is unknown;
        docs/events-and-streams.md has each column.
        """
        return self._frame("streams")

    @property
    def exchanges(self) -> pd.DataFrame:
        """One row per request and its response, with its time in ms by cause.

        Identity: `exchange, stream, index, protocol, method, target, host`, and `kind` (null where no protocol shows
        that it is a request; `server_asks` where the accepting side requests). Correlation: `trace_id, request_id,
        forwarded_for`. Result: `status, status_text, error`.
        Time: `start, end`, and of request and response the first and last frame, instants and bytes. Durations:
        `latency_ms` (at the capture), `client_latency_ms` (the client's clock, estimated), `ttfb_ms`, TRANSUM's
        `request_spread_ms, service_ms, response_spread_ms`; of a streamed body `pieces, first_chunk_ms,
        longest_gap_ms`; a column `…_ms` for each cause (0 where it has none), `top_cause`. The latencies are null
        where the exchange is not `complete`; `cut_by` has the reason. docs/exchanges-and-causes.md has each column.
        """
        return self._frame("exchanges")

    @property
    def connects(self) -> pd.DataFrame:
        """One row per connection whose set-up mattered: a SYN was repeated, no request followed, TLS was set up, or it
        took a tenth of the connection's time.

        From the first SYN to the client's first byte: `connect, stream, start, end, duration_ms`, its frames, and the
        time in ms by cause with `top_cause`, as in `exchanges`. `dns_ms, dns_name, lookup`: the client's DNS lookup
        before (null: not seen); `handshake_ms`: SYN to ACK (null: not completed); `tls_ms`: the TLS handshake
        (null: none seen), with `tls_version, tls_round_trips, tls_resumed, tls_server_name, tls_alpn,
        tls_alpn_offered` (null: hidden, or not seen); `greeting_ms`: until the first data of a server that sends first
        (null: it does not); `cut_by`: `rst` (refused, or given up) or `capture_end` (no answer).
        docs/exchanges-and-causes.md has each column.
        """
        return self._frame("connects")

    @property
    def pushes(self) -> pd.DataFrame:
        """One row per message that a server sent without a request, as far as the protocol shows such messages.

        `push, stream, protocol, method, target`, when it passed, its frames and `bytes`, and in ms by cause what
        delayed its parts. docs/exchanges-and-causes.md has each column.
        """
        return self._frame("pushes")

    @property
    def gaps(self) -> pd.DataFrame:
        """One row per gap that belongs to no request.

        `kind` "pause": the client waited 20 ms or more before its next request (`index`), more than once, and such
        pauses are a tenth of its connection's time. "held": its kernel held back what it wrote. "one_way": only one
        direction was captured, and a gap in it may be a stall. With frames and the time in ms by cause.
        docs/exchanges-and-causes.md has each column.
        """
        return self._frame("gaps")

    @property
    def causes(self) -> pd.DataFrame:
        """The time of each exchange, divided into causes without gap or overlap, to the nanosecond.

        `exchange`, `connect`, `push` or `gap` is the row whose time it is (the others are null); `start, end,
        duration_ms`; `cause`, its `parent` cause if it lies inside another (else null) and its `owner` (`client,
        server, network, capture, backend`); `from_frame, to_frame` bound it, `evidence` lists the frames that show it,
        `rule` names the test that found it. `grade`: `proven, probable, suspected` or `unknown`; `confidence` is the
        measured accuracy of that rule and grade (from 0.9 on proven, above 0.5 probable, up to 0.5 suspected);
        `because` names what excludes the rivals or what is missing, `rival` another explanation (null: none). The rows
        of an incomplete exchange cover the seen part only: leave them out of sums. docs/exchanges-and-causes.md has
        each column, docs/causes.md how each cause is recognised.
        """
        return self._frame("causes")

    @property
    def evidence(self) -> pd.DataFrame:
        """One row per sender and peer, with the counts for and against Nagle's algorithm.

        `server, server_port, client`, and the `sender` whose segments were counted. `verdict`: `nagle`, `nodelay`,
        `pause` (the program's own), `mixed` (its connections differ), `open` (too little to say). Counts:
        `opportunities`, `held` and of these `tight` (left with the late ACK), `refuted` (left before it), `prompt`
        (ACKs of lone small segments that were not held). `slope`: 1 where the gap follows the ACK, 0 where it does
        not. In ms: `sender_rtt_ms, receiver_rtt_ms` (0: none measured),
        `tight_ms`, `hold_…_ms` of the receiver's ACKs, `release_…_ms` from the ACK to what it freed; the receiver's
        `tick_ms` with the chance `tick_p` that it is luck. Connections: `streams, nagle_streams, nodelay_streams`.
        An option that changed: `changed_frame, changed_to, changed_before, changed_after, changed_grade`.
        Null: nothing was held, or too little. docs/exchanges-and-causes.md has each column.
        """
        return self._frame("evidence")

    @property
    def findings(self) -> pd.DataFrame:
        """One row per server and cause: what is wrong, who owns it, how certain that is, and what would mend it.

        In the order of `latpcap.findings.FINDERS`: floods of SYNs, causes of the requests' time, other waits,
        connections, then socket options that nobody waited for.
        The columns and their meanings: `latpcap.findings.COLUMNS`, and docs/exchanges-and-causes.md.
        """
        return to_pandas(self._findings())

    @property
    def lookups(self) -> pd.DataFrame:
        """One row per question to a name server, or request to another service over UDP.

        `lookup, stream` (null: over UDP), `client, client_port, server, server_port, id`; the question: `method` (A,
        AAAA ...; NTP, DHCP ...), `target`; the answer: `status, status_text` (NOERROR, NXDOMAIN ...), `error,
        addresses`. `start, end, latency_ms` from the first question to the answer, `last_sent` and `repeats`:
        retransmissions of the question; frames. Null: not answered. A lookup over TCP is an exchange, too, with causes.
        The lookups that connections waited for are in `dns_ms` of `connects`. RFC 1035.
        """
        return self._frame("lookups")

    @property
    def transfers(self) -> pd.DataFrame:
        """One row per direction that moved 30 kB or more in one go: its rate, and what limited it.

        `stream, direction` ("to_client", "to_server"), ends; `start, end, bytes, segments`; `duration_ms` (at the
        receiver, without waits for the other side's data), `rate_mbit` of that, `burst_mbit`: of segments that follow
        each other. `limited_by`: receiver_window, receiver_program, sender_program, sender_buffer, congestion, start,
        line, pacing, http2_window, none; its `owner` and `grade`, the `rival` that is left, and what `cut_by` the
        congestion window (losses, ecn, reordering). `rtt_idle_ms, rtt_load_ms`, the standing queue `queue_ms,
        queue_bytes`; `window_bytes` (the largest), `window_needed_bytes` (burst rate x idle round trip),
        `window_scaling, wscale`; `retransmissions, ecn_marks, at_sender`; shares of the time by what the sender can
        have waited for. Null: not seen. docs/events-and-streams.md has each column.
        """
        return self._frame("transfers")

    @property
    def waits(self) -> pd.DataFrame:
        """One row per lookup, connect, TLS handshake, greeting, request, push or transfer that somebody waited for.

        `kind`; `action`: the number of the action that it belongs to, null of a push; `client, server, server_port`,
        `name` (a host, a URL, SQL ...); `start, end, waited_ms`; `ended`: `answered, error, refused, reset, given_up`
        (another address was tried), `never, open` (at the capture's end), `cut`; `family, cause, owner` and `grade`,
        its grade; `stream`, and `table` and `row` with more about it. docs/exchanges-and-causes.md has each column.
        """
        return self._frame("waits")

    @property
    def actions(self) -> pd.DataFrame:
        """One row per action: what a client did to get one thing, and how long each part took.

        A lookup, the addresses that were tried, TLS, the greeting and the first request are one action; each further
        request on the connection is another. `total_ms` is the sum of `lookup_ms, connect_ms, tls_ms, greeting_ms,
        request_ms` and `other_ms` (no wait that the capture shows), to the nanosecond: where two waits overlap, the
        time is the earlier one's. docs/exchanges-and-causes.md has each column.
        """
        return self._frame("actions")

    @property
    def groups(self) -> pd.DataFrame:
        """One row per pipeline, transaction, statement or subscription: requests that are one thing to the user.

        `kind`: `pipeline` (requests that left before the first was answered), `transaction` (MULTI to EXEC, BEGIN to
        COMMIT), `statement` (prepared and executed next), and what goes on: `subscription`, `event_stream`, `long_poll`
        (two and more on a connection), with `pieces, first_chunk_ms, longest_gap_ms`; ends, `protocol`, `method` and
        `target` of its requests, how many `exchanges`, and the first and last one; `start, end, duration_ms`; of it
        `sent_ms` until the last request was out, `held_ms` that the client's own kernel held a part of it, `client_ms`
        in which no request was under way; `error`: one of them failed; `complete`. Null: not known.
        docs/exchanges-and-causes.md has each column.
        """
        return self._frame("groups")

    @property
    def probes(self) -> pd.DataFrame:
        """One row per ping, and per SYN of a connection that never carried data: of hping3, a port scan, a TCP
        traceroute, or a refused connect.

        `probe` counts from 0 in the order sent; `kind` is "icmp_echo" or "tcp_syn". What was sent: `src, dst`, of a SYN
        `stream, sport, dport`, of a ping `id, seq` (null for the other kind), `ttl`, `sent_frame, sent`, and `repeats`,
        how often it was sent again. The first answer to it: `answer` ("echo_reply", "syn_ack", "rst", and ICMP's
        "time_exceeded" and "unreachable"), `answer_from` (a router's address in a traceroute), `answer_frame, answered`
        and `rtt_ms` since the first copy; all null where none came before the capture's end. UDP is not among them.
        docs/events-and-streams.md has each column. RFC 792, RFC 4443, RFC 9293 3.10.7.3.
        """
        return self._frame("probes")

    @property
    def issues(self) -> pd.DataFrame:
        """One row per kind of data that could not be read or trusted, with its first place and its count.

        `file`; `kind`: `refused`, `damaged` (rows up to there are given), `skipped` (not understood), `distrusted`;
        `offset` in bytes after decompression, `frame` and `last_frame` (null where it has no such place), `layer`,
        `reason` in words, `count`; `code` and `number` for programs. docs/exchanges-and-causes.md has each column.
        """
        return self._frame("issues")
