"""Reads packets from tshark's exports: `-T json`, `-T ek`, `-T pdml`, `-T fields -E header=y` and `-V`.

Fields have Wireshark's names; bytes of a packet that no field shows count as not captured.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from latpcap.reading.text_formats import frames as wire
from latpcap.reading.text_formats.clock import Clock
from latpcap.reading.text_formats.columns import cells_of
from latpcap.reading.text_formats.ends import mac
from latpcap.reading.text_formats.frames import FLAG_BITS, Address, Frame, Network, Part, Tcp
from latpcap.reading.text_formats.names import TYPE_NAMES, Message

Fields = dict[str, list[str]]
"""Values of a packet's fields as text, by Wireshark's name, in the order of the packet."""
_MAX_JSON_CHARACTERS = 1 << 28
"""Upper bound on the text of a JSON export, which is held in memory."""
_NAMES = re.compile(r'^"?(?:_ws\.col|frame|ip|ipv6|tcp|udp|eth|icmp|dns|arp|http|tls)\.[\w.]+"?$')
_FLAT = re.compile(r"^(?:frame|eth|ip|ipv6|tcp|udp|icmp|icmpv6|dns|arp)\.")
_DETAILS = [
    (re.compile(pattern), names)
    for pattern, names in [
    (r"^Frame (\d+): (\d+) bytes on wire", ("frame.number", "frame.len")),
    (r"^\s+(?:UTC )?Arrival Time: (.*)", ("frame.time",)),
    (r"^\s+Epoch (?:Arrival )?Time: ([\d.]+)", ("frame.time_epoch",)),
    (r"^Internet Protocol(?: Version 4)?, Src: (?:\S+ \()?([\d.]+)\)?, Dst: (?:\S+ \()?([\d.]+)",
     ("ip.src", "ip.dst")),
    (r"^Internet Protocol Version 6, Src: (?:\S+ \()?([0-9a-f:]+)\)?, Dst: (?:\S+ \()?([0-9a-f:]+)",
     ("ipv6.src", "ipv6.dst")),
    (r"^\s+Time to [Ll]ive: (\d+)", ("ip.ttl",)),
    (r"^\s+Hop Limit: (\d+)", ("ipv6.hlim",)),
    (r"^\s+Identification: (0x[0-9a-f]+)", ("ip.id",)),
    (r"^\s+Total Length: (\d+)", ("ip.len",)),
    (r"^Transmission Control Protocol, Src Port: (?:\S+ \()?(\d+)\)?, Dst Port: (?:\S+ \()?(\d+)\)?",
     ("tcp.srcport", "tcp.dstport")),
    (r"^\s+\[?TCP Segment Len: (\d+)", ("tcp.len",)),
    (r"^\s+Sequence [Nn]umber: (\d+)", ("tcp.seq",)),
    (r"^\s+Sequence Number \(raw\): (\d+)", ("tcp.seq_raw",)),
    (r"^\s+Acknowledgment [Nn]umber: (\d+)", ("tcp.ack",)),
    (r"^\s+Acknowledgment number \(raw\): (\d+)", ("tcp.ack_raw",)),
    (r"^    Flags: (0x[0-9a-f]{3}) ", ("tcp.flags",)),
    (r"^\s+Window(?: size value)?: (\d+)", ("tcp.window_size_value",)),
    (r"^\s+MSS Value: (\d+)", ("tcp.options.mss_val",)),
    (r"^\s+Shift count: (\d+)", ("tcp.options.wscale.shift",)),
    (r"^\s+TCP Option - SACK permitted()", ("tcp.options.sack_perm",)),
    (r"^\s+Timestamp value: (\d+)", ("tcp.options.timestamp.tsval",)),
    (r"^\s+Timestamp echo reply: (\d+)", ("tcp.options.timestamp.tsecr",)),
    (r"^\s+left edge = (\d+)", ("tcp.options.sack_le",)),
    (r"^\s+right edge = (\d+)", ("tcp.options.sack_re",)),
    (r"^User Datagram Protocol, Src Port: (?:\S+ \()?(\d+)\)?, Dst Port: (?:\S+ \()?(\d+)\)?",
     ("udp.srcport", "udp.dstport")),
    (r"^\s+Transaction ID: (0x[0-9a-f]{4})", ("dns.id",)),
    (r"^    Flags: (0x[0-9a-f]{4}) Standard query", ("dns.flags",)),
    (r"^\s+Name: (\S+)", ("dns.qry.name",)),
    (r"^\s+Type: \S+ \([^)]*\) \((\d+)\)|^\s+Type: [A-Z]+ \((\d+)\)", ("dns.qry.type",)),
    (r"^\s+Address: ([\d.]+)$", ("dns.a",)),
]
]  # fmt: skip
_FLAG_FIELDS = {"PSH": "push", "RST": "reset", "ECE": "ece"}
_EK_NAMES = {
    name.replace(".", "_"): name
    for name in (
        "tcp.options.mss_val", "tcp.options.wscale.shift", "tcp.options.sack_perm", "tcp.options.timestamp.tsval",
        "tcp.options.timestamp.tsecr", "tcp.options.sack_le", "tcp.options.sack_re", "ip.flags.df",
        "arp.src.proto_ipv4", "arp.dst.proto_ipv4", "arp.src.hw_mac", "arp.dst.hw_mac", "dns.qry.name", "dns.qry.type",
        "dns.flags.response", "dns.flags.rcode", "icmpv6.echo.identifier", "icmpv6.echo.sequence_number",
    )
}  # fmt: skip
"""Fields whose names have more than one dot, by their name with underscores."""


def looks_like(head: str) -> str | None:
    """Return the kind of export that a text begins like: json, ek, pdml, fields or details; None for other text.

    Fields that show TCP only in the column Info are left to `columns`.
    """
    start = head.lstrip("\ufeff \t\r\n")
    if re.match(r"\[\s*\{", start) and ('"layers"' in head or '"_source"' in head):
        return "json"
    if start.startswith("{") and ('"index"' in head or '"layers"' in head):
        return "ek" if start.startswith('{"') and "}\n" in head[:4096] else "json"
    if (start.startswith("<?xml") and "<pdml" in head) or start.startswith("<pdml") or start.startswith("<packet"):
        return "pdml"
    first = start.partition("\n")[0].strip()
    mark = _mark(first)
    names = first.split(mark) if mark else []
    if len(names) > 2 and sum(_NAMES.match(name.strip()) is not None for name in names) * 2 > len(names):
        titles = {name.strip().strip('"').lower() for name in names}
        return None if "_ws.col.info" in titles and not titles & {"tcp.flags", "tcp.len"} else "fields"
    return "details" if re.match(r"Frame \d+: \d+ bytes on wire", start) else None


@dataclass
class Exported:
    """Reader of one export; `read` counts the packets with two addresses."""

    kind: str
    read: int = 0
    clock: Clock = field(default_factory=Clock)

    def frames(self, lines: Iterable[str]) -> Iterator[Frame]:
        """Yield one frame for each packet."""
        packets = {
            "json": _from_json, "ek": _from_ek, "pdml": _from_pdml, "fields": _from_rows, "details": _from_details,
        }[self.kind]  # fmt: skip
        for fields in packets(lines):
            yield self._frame(fields)

    def _frame(self, fields: Fields) -> Frame:
        stamp = _one(fields, "frame.time_epoch") or _one(fields, "frame.time") or _one(fields, "frame.time_relative")
        ns = self.clock.ns(re.sub(r"^(\d+)$", r"\1.0", stamp)) or 0
        if raw := _raw(fields):
            self.read += 1
            return Frame(ns, *raw)
        part = _packet(fields)
        if part is None:
            return Frame(ns, Part(b"", max(1, _int(fields, "frame.len"))))
        self.read += 1
        return Frame(ns, part, wire.ETHERNET if "arp.opcode" in fields and "tcp.srcport" not in fields else wire.RAW)


def _packet(fields: Fields) -> Part | None:
    """Build the packet; None if it has no pair of addresses.

    With tunnels the innermost IP header counts, with ICMP errors the outermost: the inner one is quoted.
    """
    if "arp.opcode" in fields:
        sender, target = _address(_one(fields, "arp.src.proto_ipv4")), _address(_one(fields, "arp.dst.proto_ipv4"))
        if sender is None or target is None:
            return None
        ours, theirs = mac(_one(fields, "arp.src.hw_mac")), mac(_one(fields, "arp.dst.hw_mac"))
        return wire.ethernet(wire.ARP_TYPE, wire.arp(_int(fields, "arp.opcode"), sender, ours, target, theirs), ours)
    quoting = "icmp.type" in fields or "icmpv6.type" in fields
    which = 0 if quoting else -1
    sources, targets = fields.get("ip.src") or fields.get("ipv6.src"), fields.get("ip.dst") or fields.get("ipv6.dst")
    if not quoting and "ipv6.src" in fields and "ip.src" in fields:
        sources, targets = fields["ipv6.src"], fields["ipv6.dst"]
    if not sources or not targets:
        return None
    source, target = _address(sources[which]), _address(targets[which])
    if source is None or target is None or source.version != target.version:
        return None
    four = source.version == 4
    df = _one(fields, "ip.flags.df")
    network = Network(
        source,
        target,
        ttl=_int(fields, "ip.ttl" if four else "ipv6.hlim", which) or 64,
        ident=_int(fields, "ip.id", which),
        dont_fragment=df.lower() not in ("0", "false", "not set") if df else True,
        tos=_int(fields, "ip.dsfield" if four else "ipv6.tclass", which),
    )
    room = (_int(fields, "ip.len", which) - 20 if four else _int(fields, "ipv6.plen", which)) or max(
        0, _int(fields, "frame.len") - (34 if four else 54)
    )
    if quoting:
        quoted = b""
        if len(sources) > 1 and (inner := _address(sources[1])) and (other := _address(targets[-1])):
            quoted = _quoted(fields, inner, other)
        return network.around(*_icmp(fields, four, max(0, room - 8), quoted))
    if "tcp.srcport" in fields:
        return network.around(wire.TCP, _tcp(fields, max(0, room)))
    if "udp.srcport" in fields:
        length = max(0, (_int(fields, "udp.length", -1) or room) - 8)
        ports = _int(fields, "udp.srcport", -1), _int(fields, "udp.dstport", -1)
        return network.around(wire.UDP, wire.udp(*ports, _datagram(fields, length)))
    return network.around(_int(fields, "ip.proto", which) & 0xFF or 59, Part(b"", max(0, room)))


def _tcp(fields: Fields, room: int) -> Part:
    """Return the segment that these fields describe."""
    options = _hex(_one(fields, "tcp.options")) or _options(fields)
    head = 20 + len(options) + -len(options) % 4
    payload = min(_int(fields, "tcp.len"), wire.MAX_LENGTH) if "tcp.len" in fields else max(0, room - head)
    shown = _hex(_one(fields, "tcp.payload"))[:payload]
    flags = _one(fields, "tcp.flags")
    if re.fullmatch(r"0x[0-9a-fA-F]{1,8}|[0-9]{1,8}", flags):
        bits = _whole(flags)
    else:
        bits = sum(
            bit
            for name, bit in FLAG_BITS.items()
            if _one(fields, f"tcp.flags.{_FLAG_FIELDS.get(name, name.lower())}") in ("1", "True", "true")
        )
    window = _int(fields, "tcp.window_size_value") or _int(fields, "tcp.window_size")
    header = Tcp(
        _int(fields, "tcp.srcport"),
        _int(fields, "tcp.dstport"),
        _int(fields, "tcp.seq_raw") if "tcp.seq_raw" in fields else _int(fields, "tcp.seq"),
        _int(fields, "tcp.ack_raw") if "tcp.ack_raw" in fields else _int(fields, "tcp.ack"),
        bits,
        window,
        options,
        _int(fields, "tcp.checksum"),
    )
    return header.before(Part(shown, payload - len(shown)))


def _options(fields: Fields) -> bytes:
    options = b""
    if mss := _int(fields, "tcp.options.mss_val"):
        options += wire.option(2, (mss & 0xFFFF).to_bytes(2, "big"))
    if "tcp.options.sack_perm" in fields and _one(fields, "tcp.options.sack_perm") not in ("False", "0"):
        options += wire.option(4)
    if "tcp.options.timestamp.tsval" in fields:
        pair = _int(fields, "tcp.options.timestamp.tsval"), _int(fields, "tcp.options.timestamp.tsecr")
        options += wire.option(8, wire.pack_numbers(pair))
    if "tcp.options.wscale.shift" in fields:
        options += wire.option(3, bytes([_int(fields, "tcp.options.wscale.shift") & 0xFF]))
    base = _int(fields, "tcp.ack_raw") - _int(fields, "tcp.ack") if {"tcp.ack", "tcp.ack_raw"} <= fields.keys() else 0
    edges = b""
    lefts, rights = fields.get("tcp.options.sack_le", [])[:4], fields.get("tcp.options.sack_re", [])
    for block in zip(lefts, rights, strict=False):
        edges += wire.pack_numbers(_whole(edge) + base for edge in block)
    return options + (wire.option(5, edges) if edges and len(options) + len(edges) <= 38 else b"")


def _datagram(fields: Fields, length: int) -> Part:
    if shown := _hex(_one(fields, "udp.payload", -1))[:length]:
        return Part(shown, length - len(shown))
    if "dns.id" not in fields:
        return Part(b"", length)
    flags, record_type = _int(fields, "dns.flags"), _int(fields, "dns.qry.type")
    response = bool(flags & 0x8000) or _one(fields, "dns.flags.response") in ("1", "True")
    answers = [(type_, value) for type_ in ("A", "AAAA") for value in fields.get(f"dns.{type_.lower()}", [])]
    message = Message(
        _int(fields, "dns.id"),
        response,
        TYPE_NAMES.get(record_type, "A" if not record_type else f"Type{record_type}"),
        _one(fields, "dns.qry.name"),
        rcode=flags & 15 or _int(fields, "dns.flags.rcode"),
        truncated=bool(flags & 0x200),
        counts=(len(answers), 0, 0),
        answers=answers if response else [],
    )
    return message.packed(length)


def _icmp(fields: Fields, four: bool, payload: int, quoted: bytes) -> tuple[int, Part]:
    name = "icmp" if four else "icmpv6"
    icmp_type, code = _int(fields, f"{name}.type"), _int(fields, f"{name}.code")
    echo = ("ident", "seq") if four else ("echo.identifier", "echo.sequence_number")
    ident, seq = (f"{name}.{word}" for word in echo)
    second_word = _int(fields, ident) << 16 | _int(fields, seq) if ident in fields else _int(fields, f"{name}.mtu")
    shown = quoted[: payload or None]
    return (wire.ICMP if four else wire.ICMP6), wire.icmp(
        icmp_type, code, second_word, Part(shown, max(0, payload - len(shown)))
    )


def _quoted(fields: Fields, source: Address, target: Address) -> bytes:
    """Build the headers that an ICMP error quotes."""
    if "tcp.srcport" in fields:
        inner = (wire.TCP, _tcp(fields, 20))
    elif "udp.srcport" in fields:
        inner = (wire.UDP, wire.udp(_int(fields, "udp.srcport"), _int(fields, "udp.dstport"), Part()))
    else:
        return b""
    return Network(source, target).around(*inner).known if source.version == target.version else b""


def _raw(fields: Fields) -> tuple[Part, int] | None:
    """Return the packet's bytes and its interface, if the export has them (`-x`)."""
    data = _hex(_one(fields, "frame_raw"))
    if not data:
        return None
    length = max(len(data), _int(fields, "frame.len"))
    if _one(fields, "frame.encap_type") in ("", "1"):
        return Part(data, length - len(data)), wire.ETHERNET
    ip_position = fields.get("ip_raw@") or fields.get("ipv6_raw@")
    if not ip_position or not re.fullmatch(r"[0-9]{1,9}", ip_position[0]):
        return None
    skip = int(ip_position[0])
    return Part(data[skip:], length - len(data)), wire.RAW


def _from_json(lines: Iterable[str]) -> Iterator[Fields]:
    text, size = [], 0
    for line in lines:
        size += len(line) + 1
        if size > _MAX_JSON_CHARACTERS:
            break
        text.append(line)
    document = "\n".join(text).strip()
    decoder, offset = json.JSONDecoder(object_pairs_hook=_pairs), 1 if document.startswith("[") else 0
    while offset < len(document):
        start = document.find("{", offset)
        if start < 0:
            return
        try:
            packet, offset = decoder.raw_decode(document, start)
        except (json.JSONDecodeError, RecursionError):
            return
        yield _flat(packet)


def _from_ek(lines: Iterable[str]) -> Iterator[Fields]:
    for line in lines:
        if '"layers"' not in line:
            continue
        try:
            packet = json.loads(line, object_pairs_hook=_pairs)
        except (json.JSONDecodeError, RecursionError):
            continue
        yield _flat(packet)


def _pairs(pairs: list[tuple[str, object]]) -> list[tuple[str, object]]:
    """Return a JSON object as pairs, since tshark repeats keys."""
    return pairs


def _flat(packet: object) -> Fields:
    """Collect the fields of a nested JSON packet. `x_raw` has bytes, which `x_raw@` gets the offset of."""
    fields: Fields = {}
    stack: list[tuple[str, object]] = [("", packet)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            stack.extend((key, inner) for key, inner in reversed(value))
        elif name.endswith("_raw") and isinstance(value, list):
            flat = value[0] if value and isinstance(value[0], list) else value
            fields.setdefault(name, []).append(str(flat[0]) if flat else "")
            fields.setdefault(name + "@", []).append(str(flat[1]) if len(flat) > 1 else "")
        elif isinstance(value, list):
            stack.extend((name, inner) for inner in reversed(value))
        else:
            fields.setdefault(_dotted(name), []).append("" if value is None else str(value))
    return fields


def _dotted(name: str) -> str:
    """Return Wireshark's name of a key in Elasticsearch's form: `ip_ip_src` becomes `ip.src`."""
    match = re.match(r"(frame|eth|ip|ipv6|tcp|udp|icmp|icmpv6|dns|arp)_\1_(.+)$", name)
    if not match:
        return name
    return _EK_NAMES.get(f"{match[1]}_{match[2]}", f"{match[1]}.{match[2]}")


def _from_pdml(lines: Iterable[str]) -> Iterator[Fields]:
    parser: ElementTree.XMLPullParser[Any] = ElementTree.XMLPullParser(["end"])
    try:
        for line in lines:
            if "<!DOCTYPE" in line or "<!ENTITY" in line:
                return
            parser.feed(line + "\n")
            events: Iterable[Any] = parser.read_events()
            for _, element in events:
                if element.tag == "packet":
                    yield _of_element(element)
                    element.clear()
    except ElementTree.ParseError:
        return


def _of_element(packet: ElementTree.Element) -> Fields:
    fields: Fields = {}
    for element in packet.iter("field"):
        name = element.get("name", "")
        if _FLAT.match(name):
            bytes_ = name in ("tcp.payload", "tcp.options", "udp.payload")
            fields.setdefault(name, []).append(element.get("value" if bytes_ else "show", ""))
    for element in packet.iter("proto"):
        if element.get("name") == "geninfo":
            for inner in element.iter("field"):
                if inner.get("name") == "timestamp":
                    fields.setdefault("frame.time", []).append(inner.get("show", ""))
    return fields


def _from_rows(lines: Iterable[str]) -> Iterator[Fields]:
    names: list[str] = []
    mark = "\t"
    for line in lines:
        if not names:
            if not line.strip():
                continue
            mark = _mark(line.strip()) or "\t"
            names = [name.strip().strip('"') for name in line.strip().split(mark)]
            continue
        cells = cells_of(line, mark)
        if any(cells):
            inner = "," if mark != "," else ";" if ";" in line else ","
            yield {
                name: [value] if name in ("frame.time", "dns.qry.name") else value.split(inner)
                for name, value in zip(names, cells, strict=False)
                if value
            }


def _from_details(lines: Iterable[str]) -> Iterator[Fields]:
    fields: Fields = {}
    for line in lines:
        if line.startswith("Frame ") and fields:
            yield fields
            fields = {}
        for pattern, names in _DETAILS:
            if match := pattern.match(line):
                for name, value in zip(names, [group for group in match.groups() if group is not None], strict=False):
                    fields.setdefault(name, []).append(value)
                break
    if fields:
        yield fields


def _mark(line: str) -> str | None:
    """Return the character between the names of a header."""
    match = re.search(r"[^\w.\"-]", line)
    return match[0] if match else None


def _one(fields: Fields, name: str, which: int = 0) -> str:
    values = fields.get(name)
    return values[which].strip() if values else ""


def _whole(text: str) -> int:
    """Convert a number of up to 20 digits, or 16 hex digits; 0 for other text."""
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text):
        return int(text, 16)
    return int(text) if re.fullmatch(r"[0-9]{1,20}", text) else 0


def _int(fields: Fields, name: str, which: int = 0) -> int:
    return _whole(_one(fields, name, which))


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text.replace(":", ""))
    except ValueError:
        return b""


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.strip())
    except ValueError:
        return None
