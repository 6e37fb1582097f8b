"""Packets of the columns of tshark and Wireshark.

Rows in, frames out, one a row: tshark's default columns, Wireshark's list copied as text or exported as text or CSV,
with or without a header, with more columns for times and ports. Where a row shows no ports (an application's protocol),
the rows around it say which connection it belongs to.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from latpcap.reading.text_formats import frames as wire
from latpcap.reading.text_formats.clock import Clock, count_from_before
from latpcap.reading.text_formats.ends import Ends, mac
from latpcap.reading.text_formats.frames import FLAG_BITS, Address, Frame, Network, Part, Tcp
from latpcap.reading.text_formats.names import Questions

_ROWS = 1 << 15  # rows that are looked at together
_AHEAD = 400
_ETHERNET_BYTES = 14
_ARROW = r"(?:→|->|⟶|➜|=>|>|\?|\uFFFD)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[A-Z]{3,4})?Z?"
_WHEN = rf"(?:(?:\d{{4}}-\d\d-\d\d[ T]|[A-Z][a-z]{{2}} +\d{{1,2}}, \d{{4}} )?{_CLOCK}|\d{{1,10}}[.,]\d{{1,9}})"
_HOST = r"(?!\d+(?:\.\d+)?\s)[\w.:%-]+(?:, ?[\w.:%-]+)*"
_ROW = re.compile(
    rf"^\s*(?:(?P<number>\d{{1,10}})\s+)?(?P<times>{_WHEN}(?:\s+{_WHEN})*)"
    rf"\s+(?P<from>{_HOST})\s+(?:{_ARROW}\s+)?(?P<to>{_HOST})"
    rf"\s+(?:(?P<sport>\d{{1,5}})\s+(?:{_ARROW}\s+)?(?P<dport>\d{{1,5}})\s+)?"
    r"(?P<protocol>[A-Za-z0-9][\w./+-]*)(?:\s+(?P<length>\d{1,7})(?!\s*(?:→|->|>|\?)))?\s+(?P<info>\S.*)$"
)
_DUMP = re.compile(
    r"^\s*[0-9a-f]{4,8}  (?:[0-9a-f]{2} ){1,16}|^[A-Z][\w ,./()-]+: |^ {4,}\S|^Frame \d+: |"
    r"^[A-Z][\w ]+ \(\d+ bytes\):$",
    re.I,
)
"""Lines of bytes, and of details, between rows."""
_HEADER = {
    "no.": "number", "no": "number", "number": "number", "frame": "number", "time": "time", "source": "from",
    "src": "from", "source address": "from", "destination": "to", "dst": "to", "destination address": "to",
    "dest": "to", "protocol": "protocol", "proto": "protocol", "length": "length", "len": "length", "info": "info",
    "information": "info", "source port": "sport", "src port": "sport", "srcport": "sport", "sport": "sport",
    "destination port": "dport", "dest port": "dport", "dst port": "dport", "dstport": "dport", "dport": "dport",
    "utc time": "time", "absolute time": "time", "arrival time": "time", "timestamp": "time", "date": "time",
    "frame.number": "number", "frame.time_epoch": "time", "frame.time": "time", "frame.time_relative": "time",
    "ip.src": "from", "ip.dst": "to", "ipv6.src": "from", "ipv6.dst": "to", "tcp.srcport": "sport",
    "tcp.dstport": "dport", "udp.srcport": "sport", "udp.dstport": "dport", "frame.len": "length",
    "_ws.col.no.": "number", "_ws.col.number": "number", "_ws.col.time": "time", "_ws.col.source": "from",
    "_ws.col.destination": "to", "_ws.col.def_src": "from", "_ws.col.def_dst": "to", "_ws.col.protocol": "protocol",
    "_ws.col.length": "length", "_ws.col.info": "info",
}  # fmt: skip
"""Names of columns, and of fields of `tshark -T fields -E header=y`."""
_PORT = r"[\w.-]+(?:\(\d+\))?"
_TCP_INFO = re.compile(
    rf"(?:^|\s|\])(?P<sport>{_PORT})\s*{_ARROW}\s*(?P<dport>{_PORT})\s+\[(?P<flags>[A-Z][A-Z, ]*|<None>)\]"
)
_PORTS = re.compile(
    rf"(?:^|\]\s*)(?:Source port: )?(?P<sport>{_PORT})\s+(?:{_ARROW}|Destination port:)\s*(?P<dport>{_PORT})(?: |$)"
)
_VALUE = re.compile(r"\b(Seq|Ack|Win|Len|MSS|WS|SACK_PERM|TSval|TSV|TSecr|TSER|SLE|SRE|Urg)(?:=(\d{1,10})|\b)")
_ECHO = re.compile(
    r"Echo \(ping\) (request|reply)\s+id=0x([0-9a-f]{4}), seq=(\d{1,9})(?:/\d+)?(?:, (?:ttl|hop limit)=(\d{1,9}))?"
)
_ASK = re.compile(r"Who has ([\d.]+)\?\s+Tell ([\d.]+)")
_IS_AT = re.compile(r"([\d.]+) is at ([0-9a-f:]{17})", re.I)
_PIECE = re.compile(r"\[TCP (?:segment of a reassembled PDU|PDU reassembled in \d+)\]")
_HTTP = re.compile(r"(?:[A-Z]{3,10} \S+ HTTP/1\.[01]|HTTP/1\.[01] \d{3}(?: [^(]*?)?)(?=\s*(?:\(|,|\[|$))")
_OVER_UDP = {
    "UDP", "DNS", "MDNS", "LLMNR", "NBNS", "NTP", "DHCP", "DHCPV6", "BOOTP", "SSDP", "SNMP", "TFTP", "QUIC", "GQUIC",
    "RTP", "RTCP", "STUN", "SYSLOG", "RADIUS", "WIREGUARD", "ISAKMP", "UDPENCAP", "DTLS", "DTLSV1.2", "CLDAP", "SIP",
    "SIP/SDP", "BROWSER", "NBDS",
}  # fmt: skip
_PORT_OF = {
    "DNS": 53, "MDNS": 5353, "LLMNR": 5355, "NBNS": 137, "NTP": 123, "DHCP": 67, "BOOTP": 67, "DHCPV6": 547,
    "SSDP": 1900, "SNMP": 161, "TFTP": 69, "QUIC": 443, "SYSLOG": 514, "RADIUS": 1812, "ISAKMP": 500, "SIP": 5060,
}  # fmt: skip
_NOT_IP = {"ARP", "RARP", "STP", "RSTP", "LLDP", "CDP", "EAPOL", "LOOP", "802.11", "LLC", "PPP", "PPPOED", "0X"}
_REASONS = {
    "network unreachable": 0, "host unreachable": 1, "protocol unreachable": 2, "port unreachable": 3,
    "fragmentation needed": 4, "source route failed": 5, "network administratively prohibited": 9,
    "host administratively prohibited": 10, "communication administratively filtered": 13,
}  # fmt: skip
_REASONS6 = {
    "no route to destination": 0, "administratively prohibited": 1, "address unreachable": 3, "port unreachable": 4,
}  # fmt: skip


@dataclass
class Row:
    """One row, read as far as its columns go."""

    ns: int
    source: str
    destination: str
    protocol: str
    length: int
    info: str
    ports: tuple[int, int] | None = None
    flags: int = 0
    values: dict[str, int] = field(default_factory=dict)
    edges: list[int] = field(default_factory=list)
    is_tcp: bool = False
    shown: bytes = b""


@dataclass
class _Flow:
    """One direction of a connection."""

    at: int | None = None
    acked: int = 0
    window: int = 0xFFFF
    shift: int = 0
    scaled: bool = False
    options: int = 0
    over: bool = False
    """Its sender has closed it."""


def reader(lines: list[str]) -> Columns | None:
    """Whether these first lines are rows of columns, and how they are laid out; None where they are not."""
    lines = [line for line in lines if line.strip() and (_ROW.match(line) or not _DUMP.match(line))]
    for mark in (",", "\t", ";", "|"):
        for place, line in enumerate(lines[:5]):
            if line.count(mark) < 4:
                continue
            cells = cells_of(line, mark)
            names = [_HEADER.get(cell.strip().lower().strip("\ufeff"), "") for cell in cells]
            if {"from", "to"} <= set(names) and ("info" in names or "protocol" in names):
                return Columns(mark, names, place + 1)
        rows = [_unquoted(line, mark) for line in lines if line.count(mark) >= 5]
        if rows and sum(_ROW.match(row) is not None for row in rows) * 2 > len(lines):
            return Columns(mark, [], 0)
    found = sum(_ROW.match(line) is not None for line in lines)
    return Columns(" ", [], 0) if found and found * 4 >= len(lines) else None


@dataclass
class Columns:
    """The layout of one text; `read` counts the rows with two addresses."""

    mark: str
    names: list[str]
    skipped: int
    read: int = 0
    ends: Ends = field(default_factory=Ends)
    questions: Questions = field(default_factory=Questions)
    flows: dict[tuple[Address, int, Address, int], _Flow] = field(default_factory=dict)
    between: dict[tuple[Address, Address], list[tuple[int, int]]] = field(default_factory=dict)
    latest: dict[tuple[Address, Address], bytes] = field(default_factory=dict)
    link: int = _ETHERNET_BYTES

    def frames(self, lines: Iterable[str]) -> Iterator[Frame]:
        """One frame for each row, with the time of the row."""
        clock, now, deltas = Clock(), 0, None
        rows = self._rows(islice(lines, self.skipped, None), clock)
        while chunk := list(islice(rows, _ROWS)):
            if deltas is None:
                deltas = count_from_before([row.ns for row in chunk])
            for row in chunk:
                now = now + row.ns if deltas else row.ns
                row.ns = now
            self._link_bytes(chunk)
            self._first_lines(chunk)
            for place, row in enumerate(chunk):
                yield self._frame(row, chunk, place)

    def _rows(self, lines: Iterable[str], clock: Clock) -> Iterator[Row]:
        for line in lines:
            cells = self._cells(line)
            if cells is None:
                continue
            ns = clock.ns(cells.get("time", "").strip().removesuffix("Z"))
            if ns is None:
                continue
            number = cells.get("length", "").replace(",", "").strip()
            row = Row(
                ns,
                cells.get("from", "").split(",")[0].strip(),
                cells.get("to", "").split(",")[0].strip(),
                cells.get("protocol", "").strip(),
                min(int(number), wire.MAX_LENGTH) if re.fullmatch(r"[0-9]{1,9}", number) else 0,
                cells.get("info", "").strip(),
            )
            self._info(row, cells)
            yield row

    def _cells(self, line: str) -> dict[str, str] | None:
        """A line's columns by name."""
        if self.names:
            cells = cells_of(line, self.mark)
            if len(cells) < len(self.names) - 1:
                return None
            found: dict[str, str] = {}
            for name, cell in zip(self.names, cells, strict=False):
                if name and not found.get(name, "").strip():  # of two times the first, of IPv4 and IPv6 what is there
                    found[name] = cell
            numbered = found.get("number", "").strip().isdecimal()  # a frame, if one without addresses
            return found if numbered or (found.get("from") and found.get("to")) else None
        row = _ROW.match(_unquoted(line, self.mark) if self.mark != " " else line)
        if not row:
            return None
        found = {name: value for name, value in row.groupdict().items() if value}
        times = re.findall(_WHEN, row["times"])
        found["time"] = next((time for time in times if ":" in time), times[0])
        return found

    def _info(self, row: Row, cells: dict[str, str]) -> None:
        """What the column Info shows of TCP's header, or of the ports."""
        info = row.info
        ports = (cells.get("sport", ""), cells.get("dport", ""))
        if all(re.fullmatch(r"[0-9]{1,5}", port) for port in ports):
            row.ports = int(ports[0]), int(ports[1])
        tcp = _TCP_INFO.search(info)
        found = tcp or (_PORTS.search(info) if row.protocol.upper() in ("UDP", "TCP") else None)
        if found:
            one, other = (self.ends.port(re.sub(r"^.*\((\d+)\)$", r"\1", found[side])) for side in ("sport", "dport"))
            if one is not None and other is not None:
                row.ports = row.ports or (one, other)
        name = row.protocol.upper()
        row.is_tcp = tcp is not None or (
            name not in _OVER_UDP
            and name not in _NOT_IP
            and not name.startswith(("ICMP", "0X", "IGMP", "OSPF", "ESP", "GRE", "VRRP", "PIM"))
        )
        if tcp:
            names = {"ECN": "ECE", "AE": "AE"}
            row.flags = sum(FLAG_BITS.get(names.get(flag.strip(), flag.strip()), 0) for flag in tcp["flags"].split(","))
            for name, value in _VALUE.findall(info[tcp.end() :]):
                if name in ("SLE", "SRE"):
                    row.edges.append(int(value or 0))
                else:
                    row.values.setdefault({"TSV": "TSval", "TSER": "TSecr"}.get(name, name), int(value or 1))

    def _link_bytes(self, chunk: list[Row]) -> None:
        """How many bytes a frame has before its IP header, by rows that show their payload."""
        for row in chunk:
            if row.values.get("Len", 0) > 0 and row.length:
                six = ":" in row.source
                rest = row.length - row.values["Len"] - len(_padded(_options(row))) - 20 - (40 if six else 20)
                if 0 <= rest <= 64:
                    self.link = rest
                    return

    def _first_lines(self, chunk: list[Row]) -> None:
        """The first line of an HTTP message belongs to the first segment of the message."""
        begun: dict[tuple[str, str], Row] = {}
        for row in chunk:
            way = row.source, row.destination
            if found := _HTTP.match(row.info) if row.protocol.upper().startswith("HTTP") else None:
                begun.pop(way, row).shown = found[0].strip().encode("utf-8", "replace") + b"\r\n"
            elif _PIECE.search(row.info):
                begun.setdefault(way, row)
            elif row.is_tcp and row.values.get("Len", 1):
                begun.pop(way, None)

    def _frame(self, row: Row, chunk: list[Row], place: int) -> Frame:
        version = 6 if ":" in row.source and mac(row.source) is None else 4
        if row.protocol.upper() == "ARP":
            packet = self._arp(row)
            if packet is not None:
                self.read += 1
                return Frame(row.ns, packet, wire.ETHERNET)
            return Frame(row.ns, Part(b"", max(row.length, 1)))
        source, destination = self.ends.address(row.source, version), self.ends.address(row.destination, version)
        if (
            source is None
            or destination is None
            or source.version != destination.version
            or mac(row.source)
            or mac(row.destination)
        ):
            return Frame(row.ns, Part(b"", max(row.length, 1)))
        version = source.version
        room = max(0, row.length - self.link - (40 if version == 6 else 20))
        inner: tuple[int, Part] | None
        row.is_tcp |= row.protocol.upper() == "DNS" and self._over_tcp(source, destination)
        network = Network(source, destination)
        if row.protocol.upper().startswith("ICMP"):
            inner = self._icmp(row, network, room)
        elif row.is_tcp:
            inner = self._tcp(row, (source, destination), room, chunk, place)
        elif row.protocol.upper() in _OVER_UDP:
            inner = wire.UDP, self._udp(row, room)
        else:
            inner = 59, Part(b"", room)
        if inner is None:
            return Frame(row.ns, Part(b"", max(row.length, 1)))
        self.read += 1
        packed = network.around(*inner)
        if inner[0] in (wire.TCP, wire.UDP):
            self.latest[source, destination] = packed.held[: 28 if version == 4 else 48]
        return Frame(row.ns, packed)

    def _over_tcp(self, source: Address, destination: Address) -> bool:
        """Whether these hosts have a connection to a name server that this one may still send on."""
        for one, other in self.between.get((source, destination), [])[-8:]:
            flow = self.flows.get((source, one, destination, other))
            if _PORT_OF["DNS"] in (one, other) and flow is not None and not flow.over:
                return True
        return False

    def _arp(self, row: Row) -> Part | None:
        if ask := _ASK.search(row.info):
            target, sender = self.ends.address(ask[1]), self.ends.address(ask[2])
            if target and sender:
                return wire.ethernet(wire.ARP_TYPE, wire.arp(1, sender, mac(row.source), target, None), mac(row.source))
        if (reply := _IS_AT.search(row.info)) and (sender := self.ends.address(reply[1])):
            return wire.ethernet(
                wire.ARP_TYPE, wire.arp(2, sender, mac(reply[2]), type(sender)(0), None), mac(reply[2])
            )
        return None

    def _icmp(self, row: Row, network: Network, room: int) -> tuple[int, Part]:
        six = network.source.version == 6
        protocol = wire.ICMP6 if six else wire.ICMP
        payload = max(0, room - 8)
        if echo := _ECHO.search(row.info):
            kind = {(False, "request"): 8, (False, "reply"): 0, (True, "request"): 128, (True, "reply"): 129}[
                six, echo[1]
            ]
            network.ttl = int(echo[4]) if echo[4] else 64
            return protocol, wire.icmp(kind, 0, int(echo[2], 16) << 16 | int(echo[3]) & 0xFFFF, Part(b"", payload))
        info = row.info.lower()
        reasons = _REASONS6 if six else _REASONS
        kind, code = 0xFF, 0
        if "unreachable" in info:
            kind = 1 if six else 3
            code = next((code for words, code in reasons.items() if f"({words}" in info), 0)
        elif "exceeded" in info:
            kind = 3 if six else 11
        elif "too big" in info:
            kind = 2
        mtu = re.search(r"mtu:? ?=?(\d{2,5})", info)
        ways = [held for (source, _), held in self.latest.items() if source == network.destination]
        held = ways[-1][: payload or None] if ways and kind != 0xFF else b""
        return protocol, wire.icmp(kind, code, int(mtu[1]) if mtu else 0, Part(held, max(0, payload - len(held))))

    def _udp(self, row: Row, room: int) -> Part:
        length = max(0, room - 8)
        name = row.protocol.upper()
        message = self.questions.wireshark(row.info) if name in ("DNS", "MDNS", "LLMNR") else None
        ports = row.ports
        if ports is None:
            server, client = _PORT_OF.get(name, 9), 49_152
            if message is not None:
                client += message.ident & 0x3FFF
            ports = (server, client) if message is not None and message.response else (client, server)
        if message is not None:
            return wire.udp(*ports, message.packed(length))
        shown = re.search(r"\bLen=(\d{1,6})", row.info)
        return wire.udp(*ports, Part(b"", int(shown[1]) if shown else length))

    def _tcp(
        self, row: Row, hosts: tuple[Address, Address], room: int, chunk: list[Row], place: int
    ) -> tuple[int, Part] | None:
        ports = row.ports or self._connection(row, hosts, chunk, place)
        if ports is None:
            return None
        way = (hosts[0], ports[0], hosts[1], ports[1])
        ours = self.flows.setdefault(way, _Flow())
        theirs = self.flows.setdefault((hosts[1], ports[1], hosts[0], ports[0]), _Flow())
        known = self.between.setdefault(hosts, [])
        if ports not in known[-8:]:
            known.append(ports)
            self.between.setdefault((hosts[1], hosts[0]), []).append((ports[1], ports[0]))
        options = _options(row) if "Seq" in row.values else b"\1" * ours.options
        payload = row.values.get("Len", max(0, room - 20 - len(_padded(options))))
        if not row.length and "Len" not in row.values:  # no column for it
            payload = self._until(row, ours, chunk, place)
        if "Seq" not in row.values:
            row.ports = ports
            self._place(row, payload, (ours, theirs), chunk, place)
        flags = row.flags or FLAG_BITS["ACK"] | FLAG_BITS["PSH"]
        if flags & FLAG_BITS["SYN"]:
            ours.scaled, ours.shift = True, max(0, row.values.get("WS", 1).bit_length() - 1)
            if not flags & FLAG_BITS["ACK"]:
                theirs.at = None
        window = row.values.get("Win", ours.window)
        shift = ours.shift if ours.scaled and theirs.scaled and not flags & FLAG_BITS["SYN"] else 0
        seq = row.values.get("Seq", ours.at or 0)
        acked = row.values.get("Ack", ours.acked if flags & FLAG_BITS["ACK"] else 0)
        header = Tcp(*ports, seq, acked, flags, min(window >> shift, 0xFFFF), options, 0, row.values.get("Urg", 0))
        end = (seq + payload + bool(flags & 3)) % wire.MOD
        if ours.at is None or (end - ours.at) % wire.MOD < wire.MOD // 2:
            ours.at = end
        ours.acked, ours.window = acked, window
        if "Seq" in row.values and not flags & FLAG_BITS["SYN"]:
            ours.options = len(_padded(options)) if not row.edges else ours.options
        ours.over = bool(flags & (FLAG_BITS["FIN"] | FLAG_BITS["RST"]))
        if row.protocol.upper() == "DNS" and payload > 2 and (message := self.questions.wireshark(row.info)):
            row.shown = min(payload - 2, 0xFFFF).to_bytes(2, "big") + message.packed(payload - 2).held
        shown = row.shown if len(row.shown) <= payload else b""
        return wire.TCP, header.before(Part(shown, payload - len(shown)))

    def _connection(
        self, row: Row, hosts: tuple[Address, Address], chunk: list[Row], place: int
    ) -> tuple[int, int] | None:
        """The ports of a row that shows none: its hosts' only connection, or the one that the rows around fit."""
        known = self.between.get(hosts, [])[-8:]
        if len(known) == 1:
            return known[0]
        payload = max(0, row.length - self.link - 52)
        later: tuple[int, int] | None = None
        for other in chunk[place + 1 : place + 1 + _AHEAD]:
            if other.ports is None or "Seq" not in other.values:
                continue
            if (other.source, other.destination) == (row.source, row.destination):
                ports, at = other.ports, other.values["Seq"]
            elif (other.destination, other.source) == (row.source, row.destination):
                ports, at = (other.ports[1], other.ports[0]), other.values.get("Ack", -1)
            else:
                continue
            later = later or ports
            flow = self.flows.get((hosts[0], ports[0], hosts[1], ports[1]))
            if flow is not None and flow.at is not None and abs(at - flow.at - payload) <= 24:
                return ports
        return known[-1] if known else later

    def _until(self, row: Row, ours: _Flow, chunk: list[Row], place: int) -> int:
        """How many bytes a row carried, by the numbers of the rows behind it; at least what it shows of them."""
        least = max(1, len(row.shown))
        for other in chunk[place + 1 : place + 1 + _AHEAD]:
            same = (other.source, other.destination) == (row.source, row.destination)
            if "Seq" not in other.values:
                if same:
                    return least
                continue
            at = other.values["Seq"] if same else other.values.get("Ack", 0)
            if same or (other.destination, other.source) == (row.source, row.destination):
                size = at - (ours.at or 0)
                if size > 0 or same:
                    return size if 0 < size <= 0xFFFF else least
        return least

    def _place(self, row: Row, payload: int, flows: tuple[_Flow, _Flow], chunk: list[Row], place: int) -> None:
        """Where a row without numbers lies in its connection, where no row before it shows it."""
        ours, theirs = flows
        if ours.at is not None and theirs.at is not None:
            ours.acked = max(ours.acked, theirs.at)
            return
        sent = {True: payload, False: 0}
        for other in chunk[place + 1 : place + 1 + _AHEAD]:
            same = (other.source, other.destination) == (row.source, row.destination)
            if not same and (other.destination, other.source) != (row.source, row.destination):
                continue
            if not other.is_tcp or (other.ports and other.ports not in (row.ports, row.ports and row.ports[::-1])):
                continue
            if "Seq" not in other.values:
                sent[same] += max(0, other.length - self.link - 40 - ours.options)
                continue
            mine, yours = ("Seq", "Ack") if same else ("Ack", "Seq")
            if ours.at is None and mine in other.values:
                ours.at = (other.values[mine] - sent[True]) % wire.MOD
            if theirs.at is None and yours in other.values:
                theirs.at = (other.values[yours] - sent[False]) % wire.MOD
            ours.acked = theirs.at or 0
            ours.window = other.values.get("Win", ours.window) if same else ours.window
            return


def cells_of(line: str, mark: str) -> list[str]:
    """The cells of a line of CSV; none where it is none."""
    try:
        return next(csv.reader([line.replace("\r", " ")], delimiter=mark), [])
    except csv.Error:
        return []


def _unquoted(line: str, mark: str) -> str:
    """A line of cells as one of words."""
    return "  ".join(cell.strip() for cell in cells_of(line, mark) if cell.strip())


def _options(row: Row) -> bytes:
    """TCP's options in the order in which Wireshark shows them."""
    out, values = b"", row.values
    for name in values:
        if name == "MSS":
            out += wire.option(2, (values[name] & 0xFFFF).to_bytes(2, "big"))
        elif name == "WS":
            out += wire.option(3, bytes([max(0, values[name].bit_length() - 1) & 0xFF]))
        elif name == "SACK_PERM":
            out += wire.option(4)
        elif name == "TSval":
            out += b"".join((values.get(key, 0) % wire.MOD).to_bytes(4, "big") for key in ("TSval", "TSecr")).join(
                [b"\x08\x0a", b""]
            )
    if edges := row.edges[: len(row.edges) // 2 * 2][:8]:
        out += wire.option(5, b"".join((edge % wire.MOD).to_bytes(4, "big") for edge in edges))
    return out


def _padded(options: bytes) -> bytes:
    return options + b"\1" * (-len(options) % 4)
