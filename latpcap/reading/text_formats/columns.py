"""Reads packets from the columns of tshark and Wireshark, one frame per row.

Reads tshark's default columns, and Wireshark's packet list copied or exported as text or CSV, with or without a header,
and with additional columns for times and ports. A row of an application protocol shows no ports; its connection is
inferred from the rows around it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from latpcap.reading.text_formats import frames as wire
from latpcap.reading.text_formats.clock import Clock, are_deltas
from latpcap.reading.text_formats.ends import Ends, mac
from latpcap.reading.text_formats.frames import FLAG_BITS, Address, Frame, Network, Part, Tcp
from latpcap.reading.text_formats.names import Questions

_CHUNK_ROWS = 1 << 15
"""Rows that are held in memory at once."""
_MAX_ROWS_AHEAD = 400
"""Upper bound on the rows searched after a row that lacks ports or sequence numbers."""
_ETHERNET_HEADER_BYTES = 14
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
"""Lines of hex dumps and packet details between rows."""
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
"""Column by its title in a header, or by the field's name in `tshark -T fields -E header=y`."""
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
    """One row. `ports` is None, `flags` 0 and `values` empty if the row does not show them."""

    ns: int
    """Time in ns since 1970."""
    source: str
    destination: str
    protocol: str
    length: int
    info: str
    ports: tuple[int, int] | None = None
    flags: int = 0
    values: dict[str, int] = field(default_factory=dict)
    """Values of the column Info by name: Seq, Ack, Win, Len, MSS and so on."""
    edges: list[int] = field(default_factory=list)
    """Left and right edges of the SACK blocks, alternating."""
    is_tcp: bool = False
    shown: bytes = b""
    """Known first bytes of the payload."""


@dataclass
class _Flow:
    """State of one direction of a connection, from the rows so far."""

    next_seq: int | None = None
    """Sequence number after the last byte; None if unknown."""
    acked: int = 0
    window: int = 0xFFFF
    shift: int = 0
    """Window scale shift, from the SYN."""
    scaled: bool = False
    """Whether the SYN was seen, so that `shift` is known."""
    options: int = 0
    """Bytes of TCP options in the latest segment without SACK blocks."""
    is_closed: bool = False
    """Whether the latest segment had FIN or RST."""


def reader(lines: list[str]) -> Columns | None:
    """Return a reader for the layout of these first lines; None if they are not rows of columns."""
    lines = [line for line in lines if line.strip() and (_ROW.match(line) or not _DUMP.match(line))]
    for mark in (",", "\t", ";", "|"):
        for index, line in enumerate(lines[:5]):
            if line.count(mark) < 4:
                continue
            cells = cells_of(line, mark)
            names = [_HEADER.get(cell.strip().lower().strip("\ufeff"), "") for cell in cells]
            if {"from", "to"} <= set(names) and ("info" in names or "protocol" in names):
                return Columns(mark, names, index + 1)
        rows = [_unquoted(line, mark) for line in lines if line.count(mark) >= 5]
        if rows and sum(_ROW.match(row) is not None for row in rows) * 2 > len(lines):
            return Columns(mark, [], 0)
    row_count = sum(_ROW.match(line) is not None for line in lines)
    return Columns(" ", [], 0) if row_count and row_count * 4 >= len(lines) else None


@dataclass
class Columns:
    """Reader of one text with columns, and its state."""

    mark: str
    """The character between columns; a space means that `_ROW` matches the whole line."""
    names: list[str]
    """Columns by place, if there is a header."""
    skipped: int
    """Lines up to and including the header."""
    read: int = 0
    """Rows with two addresses so far."""
    ends: Ends = field(default_factory=Ends)
    questions: Questions = field(default_factory=Questions)
    flows: dict[tuple[Address, int, Address, int], _Flow] = field(default_factory=dict)
    between: dict[tuple[Address, Address], list[tuple[int, int]]] = field(default_factory=dict)
    """Ports of the connections between two hosts, the latest last."""
    latest: dict[tuple[Address, Address], bytes] = field(default_factory=dict)
    """Start of the latest packet between two hosts, which an ICMP error quotes."""
    link: int = _ETHERNET_HEADER_BYTES
    """Bytes of a frame before its IP header."""

    def frames(self, lines: Iterable[str]) -> Iterator[Frame]:
        """Yield one frame for each row, with the time of the row."""
        clock, now, deltas = Clock(), 0, None
        rows = self._rows(islice(lines, self.skipped, None), clock)
        while chunk := list(islice(rows, _CHUNK_ROWS)):
            if deltas is None:
                deltas = are_deltas([row.ns for row in chunk])
            for row in chunk:
                now = now + row.ns if deltas else row.ns
                row.ns = now
            self._link_bytes(chunk)
            self._first_lines(chunk)
            for index, row in enumerate(chunk):
                yield self._frame(row, chunk, index)

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
        """Return a line's columns by name; None if it is not a row."""
        if self.names:
            cells = cells_of(line, self.mark)
            if len(cells) < len(self.names) - 1:
                return None
            by_name: dict[str, str] = {}
            for name, cell in zip(self.names, cells, strict=False):
                if name and not by_name.get(name, "").strip():  # the first time; the address of IPv4 or IPv6
                    by_name[name] = cell
            has_number = by_name.get("number", "").strip().isdecimal()  # a frame without addresses counts as one
            return by_name if has_number or (by_name.get("from") and by_name.get("to")) else None
        row = _ROW.match(_unquoted(line, self.mark) if self.mark != " " else line)
        if not row:
            return None
        by_name = {name: value for name, value in row.groupdict().items() if value}
        times = re.findall(_WHEN, row["times"])
        by_name["time"] = next((time for time in times if ":" in time), times[0])
        return by_name

    def _info(self, row: Row, cells: dict[str, str]) -> None:
        """Add to a row the ports and the TCP header fields that its column Info shows."""
        info = row.info
        ports = (cells.get("sport", ""), cells.get("dport", ""))
        if all(re.fullmatch(r"[0-9]{1,5}", port) for port in ports):
            row.ports = int(ports[0]), int(ports[1])
        tcp = _TCP_INFO.search(info)
        ports_match = tcp or (_PORTS.search(info) if row.protocol.upper() in ("UDP", "TCP") else None)
        if ports_match:
            source, destination = (
                self.ends.port(re.sub(r"^.*\((\d+)\)$", r"\1", ports_match[side])) for side in ("sport", "dport")
            )
            if source is not None and destination is not None:
                row.ports = row.ports or (source, destination)
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
        """Set `link` from the first row that shows both its frame length and its payload length."""
        for row in chunk:
            if row.values.get("Len", 0) > 0 and row.length:
                is_ipv6 = ":" in row.source
                link_bytes = row.length - row.values["Len"] - len(_padded(_options(row))) - 20 - (40 if is_ipv6 else 20)
                if 0 <= link_bytes <= 64:
                    self.link = link_bytes
                    return

    def _first_lines(self, chunk: list[Row]) -> None:
        """Move the first line of each HTTP message to the row of the message's first segment.

        Wireshark shows it in the row of the last segment.
        """
        first_segments: dict[tuple[str, str], Row] = {}
        for row in chunk:
            direction = row.source, row.destination
            if first_line := _HTTP.match(row.info) if row.protocol.upper().startswith("HTTP") else None:
                first_segments.pop(direction, row).shown = first_line[0].strip().encode("utf-8", "replace") + b"\r\n"
            elif _PIECE.search(row.info):
                first_segments.setdefault(direction, row)
            elif row.is_tcp and row.values.get("Len", 1):
                first_segments.pop(direction, None)

    def _frame(self, row: Row, chunk: list[Row], index: int) -> Frame:
        """Build the frame of a row, which is `chunk[place]`; an unreadable row gives a frame without bytes."""
        version = 6 if ":" in row.source and mac(row.source) is None else 4
        if row.protocol.upper() == "ARP":
            packet = self._arp(row)
            if packet is not None:
                self.read += 1
                return Frame(row.ns, packet, wire.ETHERNET)
            return Frame(row.ns, Part(b"", max(row.length, 1)))
        source, destination = self.ends.address(row.source, version), self.ends.address(row.destination, version)
        if source is None or destination is None or source.version != destination.version:
            return Frame(row.ns, Part(b"", max(row.length, 1)))
        if mac(row.source) or mac(row.destination):
            return Frame(row.ns, Part(b"", max(row.length, 1)))
        version = source.version
        room = max(0, row.length - self.link - (40 if version == 6 else 20))
        content: tuple[int, Part] | None
        row.is_tcp |= row.protocol.upper() == "DNS" and self._over_tcp(source, destination)
        network = Network(source, destination)
        if row.protocol.upper().startswith("ICMP"):
            content = self._icmp(row, network, room)
        elif row.is_tcp:
            content = self._tcp(row, (source, destination), room, chunk, index)
        elif row.protocol.upper() in _OVER_UDP:
            content = wire.UDP, self._udp(row, room)
        else:
            content = 59, Part(b"", room)
        if content is None:
            return Frame(row.ns, Part(b"", max(row.length, 1)))
        self.read += 1
        packed = network.around(*content)
        if content[0] in (wire.TCP, wire.UDP):
            self.latest[source, destination] = packed.known[: 28 if version == 4 else 48]
        return Frame(row.ns, packed)

    def _over_tcp(self, source: Address, destination: Address) -> bool:
        """Return whether the source has an open TCP connection on DNS's port to or from the destination."""
        for source_port, destination_port in self.between.get((source, destination), [])[-8:]:
            flow = self.flows.get((source, source_port, destination, destination_port))
            if _PORT_OF["DNS"] in (source_port, destination_port) and flow is not None and not flow.is_closed:
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
        """Return number and bytes of the ICMP message that a row describes."""
        is_ipv6 = network.source.version == 6
        protocol = wire.ICMP6 if is_ipv6 else wire.ICMP
        payload = max(0, room - 8)
        if echo := _ECHO.search(row.info):
            icmp_type = wire.echo_type(network.source.version, echo[1])
            network.ttl = int(echo[4]) if echo[4] else 64
            return protocol, wire.icmp(icmp_type, 0, int(echo[2], 16) << 16 | int(echo[3]) & 0xFFFF, Part(b"", payload))
        info = row.info.lower()
        reasons = _REASONS6 if is_ipv6 else _REASONS
        icmp_type, code = 0xFF, 0
        if "unreachable" in info:
            icmp_type = 1 if is_ipv6 else 3
            code = next((code for phrase, code in reasons.items() if f"({phrase}" in info), 0)
        elif "exceeded" in info:
            icmp_type = 3 if is_ipv6 else 11
        elif "too big" in info:
            icmp_type = 2
        mtu = re.search(r"mtu:? ?=?(\d{2,5})", info)
        packets_back = [quoted for (source, _), quoted in self.latest.items() if source == network.destination]
        quoted = packets_back[-1][: payload or None] if packets_back and icmp_type != 0xFF else b""
        return protocol, wire.icmp(
            icmp_type, code, int(mtu[1]) if mtu else 0, Part(quoted, max(0, payload - len(quoted)))
        )

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
        self, row: Row, hosts: tuple[Address, Address], room: int, chunk: list[Row], index: int
    ) -> tuple[int, Part] | None:
        """Return number and bytes of the segment that a row describes; None if its ports are unknown."""
        # 1. Find the connection and the state of its two directions.
        ports = row.ports or self._connection(row, hosts, chunk, index)
        if ports is None:
            return None
        flow_key = (hosts[0], ports[0], hosts[1], ports[1])
        ours = self.flows.setdefault(flow_key, _Flow())
        theirs = self.flows.setdefault((hosts[1], ports[1], hosts[0], ports[0]), _Flow())
        port_pairs = self.between.setdefault(hosts, [])
        if ports not in port_pairs[-8:]:
            port_pairs.append(ports)
            self.between.setdefault((hosts[1], hosts[0]), []).append((ports[1], ports[0]))
        # 2. Complete what the row does not show: payload length, sequence numbers, flags, window.
        options = _options(row) if "Seq" in row.values else b"\1" * ours.options
        payload = row.values.get("Len", max(0, room - 20 - len(_padded(options))))
        if not row.length and "Len" not in row.values:  # there is no column Length
            payload = self._payload_length(row, ours, chunk, index)
        if "Seq" not in row.values:
            row.ports = ports
            self._infer_numbers(row, payload, (ours, theirs), chunk, index)
        flags = row.flags or FLAG_BITS["ACK"] | FLAG_BITS["PSH"]
        if flags & FLAG_BITS["SYN"]:
            ours.scaled, ours.shift = True, max(0, row.values.get("WS", 1).bit_length() - 1)
            if not flags & FLAG_BITS["ACK"]:
                theirs.next_seq = None
        window = row.values.get("Win", ours.window)
        shift = ours.shift if ours.scaled and theirs.scaled and not flags & FLAG_BITS["SYN"] else 0
        seq = row.values.get("Seq", ours.next_seq or 0)
        acked = row.values.get("Ack", ours.acked if flags & FLAG_BITS["ACK"] else 0)
        # 3. Build the header and update the state.
        header = Tcp(*ports, seq, acked, flags, min(window >> shift, 0xFFFF), options, 0, row.values.get("Urg", 0))
        end = (seq + payload + bool(flags & 3)) % wire.MOD
        if ours.next_seq is None or (end - ours.next_seq) % wire.MOD < wire.MOD // 2:
            ours.next_seq = end
        ours.acked, ours.window = acked, window
        if "Seq" in row.values and not flags & FLAG_BITS["SYN"]:
            ours.options = len(_padded(options)) if not row.edges else ours.options
        ours.is_closed = bool(flags & (FLAG_BITS["FIN"] | FLAG_BITS["RST"]))
        if row.protocol.upper() == "DNS" and payload > 2 and (message := self.questions.wireshark(row.info)):
            row.shown = min(payload - 2, 0xFFFF).to_bytes(2, "big") + message.packed(payload - 2).known
        shown = row.shown if len(row.shown) <= payload else b""
        return wire.TCP, header.before(Part(shown, payload - len(shown)))

    def _connection(
        self, row: Row, hosts: tuple[Address, Address], chunk: list[Row], index: int
    ) -> tuple[int, int] | None:
        """Return the ports of a row that shows none; None if no connection of its hosts is known.

        It is the only connection of these hosts, or the one whose next rows continue at the end of this row's payload.
        The payload is estimated from the frame's length with 52 bytes of headers; up to 24 bytes of error are accepted.
        """
        port_pairs = self.between.get(hosts, [])[-8:]
        if len(port_pairs) == 1:
            return port_pairs[0]
        payload = max(0, row.length - self.link - 52)
        later_ports: tuple[int, int] | None = None
        for other in chunk[index + 1 : index + 1 + _MAX_ROWS_AHEAD]:
            if other.ports is None or "Seq" not in other.values:
                continue
            if (other.source, other.destination) == (row.source, row.destination):
                ports, seq = other.ports, other.values["Seq"]
            elif (other.destination, other.source) == (row.source, row.destination):
                ports, seq = (other.ports[1], other.ports[0]), other.values.get("Ack", -1)
            else:
                continue
            later_ports = later_ports or ports
            flow = self.flows.get((hosts[0], ports[0], hosts[1], ports[1]))
            if flow is not None and flow.next_seq is not None and abs(seq - flow.next_seq - payload) <= 24:
                return ports
        return port_pairs[-1] if port_pairs else later_ports

    def _payload_length(self, row: Row, ours: _Flow, chunk: list[Row], index: int) -> int:
        """Return a row's payload length, from the sequence numbers of the following rows.

        It is at least the number of bytes that the row shows.
        """
        min_bytes = max(1, len(row.shown))
        for other in chunk[index + 1 : index + 1 + _MAX_ROWS_AHEAD]:
            is_same_direction = (other.source, other.destination) == (row.source, row.destination)
            if "Seq" not in other.values:
                if is_same_direction:
                    return min_bytes
                continue
            seq = other.values["Seq"] if is_same_direction else other.values.get("Ack", 0)
            if is_same_direction or (other.destination, other.source) == (row.source, row.destination):
                size = seq - (ours.next_seq or 0)
                if size > 0 or is_same_direction:
                    return size if 0 < size <= 0xFFFF else min_bytes
        return min_bytes

    def _infer_numbers(self, row: Row, payload: int, flows: tuple[_Flow, _Flow], chunk: list[Row], index: int) -> None:
        """Set the sequence numbers of a connection before its first row that shows some.

        They are computed backwards from the next row with numbers, less the payload in between.
        """
        ours, theirs = flows
        if ours.next_seq is not None and theirs.next_seq is not None:
            ours.acked = max(ours.acked, theirs.next_seq)
            return
        sent = {True: payload, False: 0}
        for other in chunk[index + 1 : index + 1 + _MAX_ROWS_AHEAD]:
            is_same_direction = (other.source, other.destination) == (row.source, row.destination)
            if not is_same_direction and (other.destination, other.source) != (row.source, row.destination):
                continue
            if not other.is_tcp or (other.ports and other.ports not in (row.ports, row.ports and row.ports[::-1])):
                continue
            if "Seq" not in other.values:
                sent[is_same_direction] += max(0, other.length - self.link - 40 - ours.options)
                continue
            own_number, other_number = ("Seq", "Ack") if is_same_direction else ("Ack", "Seq")
            if ours.next_seq is None and own_number in other.values:
                ours.next_seq = (other.values[own_number] - sent[True]) % wire.MOD
            if theirs.next_seq is None and other_number in other.values:
                theirs.next_seq = (other.values[other_number] - sent[False]) % wire.MOD
            ours.acked = theirs.next_seq or 0
            ours.window = other.values.get("Win", ours.window) if is_same_direction else ours.window
            return


def cells_of(line: str, mark: str) -> list[str]:
    """Return the cells of a line of CSV; an empty list if it is malformed."""
    try:
        return next(csv.reader([line.replace("\r", " ")], delimiter=mark), [])
    except csv.Error:
        return []


def _unquoted(line: str, mark: str) -> str:
    """Return the cells of a line joined by spaces, as `_ROW` matches them."""
    return "  ".join(cell.strip() for cell in cells_of(line, mark) if cell.strip())


def _options(row: Row) -> bytes:
    """Return the TCP options that a row shows, in the order of the row."""
    options, values = b"", row.values
    for name in values:
        if name == "MSS":
            options += wire.option(2, (values[name] & 0xFFFF).to_bytes(2, "big"))
        elif name == "WS":
            options += wire.option(3, bytes([max(0, values[name].bit_length() - 1) & 0xFF]))
        elif name == "SACK_PERM":
            options += wire.option(4)
        elif name == "TSval":
            options += wire.option(8, wire.pack_numbers((values["TSval"], values.get("TSecr", 0))))
    if edges := row.edges[: len(row.edges) // 2 * 2][:8]:
        options += wire.option(5, wire.pack_numbers(edges))
    return options


def _padded(options: bytes) -> bytes:
    return options + b"\1" * (-len(options) % 4)
