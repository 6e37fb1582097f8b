"""Reads packets from tcpdump's text, one frame per printed packet: frame n is the n-th packet of the text.

Understands names and numbers, the options `-e -n -q -S -t… -v… -x -X -i any`, tunnels, and the format of tcpdump 3.
Bytes that a line does not show (payload, other protocols) count as not captured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from latpcap.reading.text_formats import frames as wire
from latpcap.reading.text_formats.clock import Clock, are_deltas
from latpcap.reading.text_formats.ends import Ends, mac
from latpcap.reading.text_formats.frames import Frame, Network, Part, Tcp
from latpcap.reading.text_formats.icmp import message as icmp_message
from latpcap.reading.text_formats.names import Questions

_MAX_PACKET_CHARACTERS = 1 << 16
"""Upper bound on the text kept of one packet."""
_LOOK_AHEAD = 64
"""Packets from whose times it is decided whether times are differences (`-ttt`)."""
_TIME = r"(?:\d{1,10}|(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d)\.\d{3,9}"
_START = re.compile(rf"^\s*(?:\d+\s+)?({_TIME})\s+(?=\S)")
_FAMILY = r"(?:IP6?|ip6?|ARP|arp|RARP|STP|LLDP|MPLS|PPPoE|802\.3|EAPOL|CDPv\d|IPX|Loopback|LLC)\b"
_DIRECTION = re.compile(r"^(?:\S+ +)??(?:In|Out|B|M|P|Br) +(?:ifindex \d+ +)?")
_MAC = r"(?:[0-9a-f]{1,2}:){5}[0-9a-f]{1,2}"
_LINK = re.compile(
    rf"^(?:(?P<from>{_MAC})(?: \(oui [^)]*\))? > (?P<to>{_MAC}|Broadcast)(?: \(oui [^)]*\))?,|{_MAC}) +"
    r"(?:ethertype )?(?P<type>[^\s,]+(?: [^\s,(]+)??)(?: \(0x(?P<code>[0-9a-f]{4})\))?"
    r", length (?P<length>\d{1,10})(?:: |, )"
)
_TAG = re.compile(
    r"^vlan \d+, p \d+,(?: DEI,)?(?: ethertype)? ?(?P<type>[^\s,(]+)(?: \(0x(?P<code>[0-9a-f]{4})\))?[,:]? "
)
_LINK_WORDS = re.compile(
    r"^(?:ip: (?=\((?:tos|hlim|class|flowlabel))"
    r"|[^\n]*?\b(?:ethertype|AF|family) IPv(?P<version>[46]) \((?:0x)?[0-9a-f]+\), length \d+: )"
)
_ENDS = re.compile(r"(?:^|(?<=\s))(\S+) > (\S+):(?:\s|$)(.*)", re.S)
_HEX = re.compile(r"^\s*0x([0-9a-f]{4}): +((?:[0-9a-f]{2,4} ?){1,8})", re.I)
_FLAGS = re.compile(r"^(?:\[[^]]*\] )?Flags \[([^]]*)\]")
_TCPDUMP3_FLAGS = re.compile(r"^(?:\[[^]]*\] )?([SFPRWEU.]+)(?: \[[^]]*\])?(?: (?=\d)| (?=ack)| (?=win)|$)")
_SEQUENCE = re.compile(r"(?:\bseq |^[SFPRWEU.]+ (?:\[[^]]*\] )?)(\d{1,10})(?::(\d{1,10}))?(?:\((\d{1,10})\))?")
_ACK = re.compile(r"\back (\d{1,10})")
_WINDOW = re.compile(r"\bwin (\d{1,10})")
_URGENT = re.compile(r"\burg (\d{1,10})")
_OPTIONS = re.compile(r"options \[([^]]*)\]|<([^>]*)>")
_CHECKSUM = re.compile(r"\bcksum 0x([0-9a-f]{4})")
_LENGTH = re.compile(r"\blength:? (\d{1,10})")
_BRACKETED = re.compile(r"\((\d{1,10})\)\s*$")
_QUIET = re.compile(r"^(tcp|UDP, length|udp) (\d{1,10})")
_TEXT = re.compile(r"\blength \d+: (?:HTTP|FTP|SMTP|RTSP|POP3|IMAP|SIP): (.+)", re.S)
_LINES = re.compile(r"\blength \d+: HTTP, length: \d+\n(.+)", re.S)
_TTL = re.compile(r"\b(?:ttl|hlim) (\d{1,10})")
_IDENT = re.compile(r"\bid (\d{1,10}), offset (\d{1,10}), flags \[([^]]*)\]")
_TOS = re.compile(r"\b(?:tos|class) 0x([0-9a-f]{1,2})")
_TOTAL = re.compile(r"\blength:? (\d{1,10})(?:,|\))")
_ARP_ASK = re.compile(r"who-has (\S+?),?(?: \(([^)]*)\))? tell (\S+?),?(?:\s|$)")
_ARP_REPLY = re.compile(r"[Rr]eply (\S+) is-at (\S+?),?(?:\s|$)")
_BITS = {"F": 0x01, "S": 0x02, "R": 0x04, "P": 0x08, ".": 0x10, "U": 0x20, "E": 0x40, "W": 0x80, "e": 0x100}
_TUNNELS = re.compile(
    r"^(?:\[[^]]*\] )?(?P<kind>VXLAN|OTV|Geneve|GRE)[^\n]*?(?P<id>vni (?:0x[0-9a-f]+|\d+))?"
    r"(?P<rest>(?:: |[\n ])\s*(?:IP6?|ARP)[ ,].*|\n.*)$",
    re.S,
)
_IP = re.compile(r"^(?:MPLS .*?\) ?|PPPoE +\[[^]]*\] )*(IP6?|ip6?)[ ,]\s*", re.S)


@dataclass
class _Sender:
    """State of one sender of a connection."""

    base: int | None = None
    """Sequence number from which relative numbers count; None while numbers are printed as they are."""
    next_seq: int = 0
    """Sequence number after its last byte."""

    def absolute(self, printed: int) -> int:
        """Return the sequence number of a printed one.

        tcpdump prints numbers relative to the first packet, or with -S absolute ones. The interpretation nearer to the
        expected sequence number is chosen.
        """
        if self.base is None:
            return printed % wire.MOD
        counted = (self.base + printed) % wire.MOD
        return min(counted, printed % wire.MOD, key=lambda number: _distance(number, self.next_seq))


def begins_packet(line: str) -> bool:
    """Return whether this line looks like the first line of a packet."""
    start = _START.match(line)
    if not start:
        return False
    packet_text = _DIRECTION.sub("", line[start.end() :])
    return bool(re.match(_FAMILY + r"[ ,]", packet_text) or _LINK.match(packet_text) or _LINK_WORDS.match(packet_text))


@dataclass
class Printed:
    """Reader of the text of one run of tcpdump, and its state."""

    read: int = 0
    """Packets that were understood so far."""
    ends: Ends = field(default_factory=Ends)
    senders: dict[tuple[str, str], _Sender] = field(default_factory=dict)
    """By printed source and destination."""
    questions: Questions = field(default_factory=Questions)
    latest: dict[tuple[wire.Address, wire.Address], bytes] = field(default_factory=dict)
    """Start of the latest packet between two hosts, which an ICMP error quotes."""

    def frames(self, lines: Iterable[str]) -> Iterator[Frame]:
        """Yield one frame for each printed packet."""
        clock = Clock()
        packets = _packets(lines)
        first = [(clock.ns(stamp) or 0, text) for stamp, text in islice(packets, _LOOK_AHEAD)]
        deltas = are_deltas([ns for ns, _ in first]) and first[0][0] < 10**9
        now = 0
        for ns, text in chain(first, ((clock.ns(stamp) or 0, text) for stamp, text in packets)):
            now = now + ns % (86_400 * 10**9) if deltas else ns
            yield self._frame(now, text)

    def _frame(self, ns: int, text: str) -> Frame:
        text, dumped = _dump(text)
        text = _DIRECTION.sub("", text)
        part, link = self._linked(text)
        if dumped and (real := _whole(dumped, part, link)):
            self.read += 1
            return Frame(ns, *real)
        if part is None:
            return Frame(ns, Part(b"", max(1, _number(_LENGTH, text))))
        self.read += 1
        return Frame(ns, part, link)

    def _linked(self, text: str) -> tuple[Part | None, int]:
        """Parse a packet with or without a link header; return it and its interface (RAW or ETHERNET)."""
        header = _LINK.match(text)
        if not header:
            if re.match(r"(?:ARP|arp)[ ,]", text):
                inner = self._arp(text)
                return (None, wire.RAW) if inner is None else (wire.ethernet(wire.ARP_TYPE, inner), wire.ETHERNET)
            if around := _LINK_WORDS.match(text):
                text = _family(text[around.end() :], around["version"] == "6")
            return self._network(text), wire.RAW
        ethertype, payload_text, tags = _ethertype(header), text[header.end() :], b""
        while (tag := _TAG.match(payload_text)) and len(tags) < 16:
            vlan = int(re.findall(r"\d{1,9}", payload_text)[0]) & 0xFFFF
            tags += wire.VLAN_TYPE.to_bytes(2, "big") + vlan.to_bytes(2, "big")
            ethertype, payload_text = _ethertype(tag), payload_text[tag.end() :]
        if ethertype == wire.ARP_TYPE:
            inner = self._arp(payload_text)
        else:
            prefix = {wire.IPV4_TYPE: "IP ", wire.IPV6_TYPE: "IP6 "}.get(ethertype, "")
            inner = self._network(prefix + payload_text)
        if inner is None or header["from"] is None:
            return inner, wire.ETHERNET if ethertype == wire.ARP_TYPE and inner is None else wire.RAW
        head = (mac(header["to"]) or bytes(6)) + (mac(header["from"]) or bytes(6))
        return inner.behind(head + tags + ethertype.to_bytes(2, "big")), wire.ETHERNET

    def _arp(self, text: str) -> Part | None:
        if ask := _ARP_ASK.search(text):
            target, sender = self.ends.address(ask[1]), self.ends.address(ask[3])
            if target is None or sender is None or target.version == 6 or sender.version == 6:
                return None
            return wire.arp(1, sender, None, target, mac(ask[2] or ""))
        if (reply := _ARP_REPLY.search(text)) and (sender := self.ends.address(reply[1])) and sender.version == 4:
            return wire.arp(2, sender, mac(reply[2]), type(sender)(0), None)
        return None

    def _network(self, text: str) -> Part | None:
        """Parse an IP packet; return None if the text shows none."""
        family = _IP.match(text)
        if not family:
            return None
        version = 6 if family[1].endswith("6") else 4
        ends = _ENDS.search(text, family.end())
        if not ends:
            return None
        head, body = text[family.end() : ends.start()], ends[3].strip("\n")
        source, target = self.ends.end(ends[1], version), self.ends.end(ends[2], version)
        hosts = (self.ends.address(ends[1], version), self.ends.address(ends[2], version))
        total = _number(_TOTAL, head) - (20 if version == 4 and head.startswith("(") else 0)
        content = None
        ident = _IDENT.search(head)
        if source and target and not (ident and int(ident[2])) and not body.startswith(("ICMP", "GRE")):
            hosts = (source[0], target[0])
            content = self._ported((ends[1], ends[2]), (source[1], target[1]), body, total)
        if hosts[0] is None or hosts[1] is None or hosts[0].version != hosts[1].version:
            return None
        version = hosts[0].version
        network = Network(
            hosts[0],
            hosts[1],
            ttl=_number(_TTL, head) or 64,
            ident=int(ident[1]) if ident else 0,
            dont_fragment="DF" in ident[3] if ident else True,
            tos=int(tos[1], 16) if (tos := _TOS.search(head)) else 0,
            more="+" in ident[3] if ident else False,
            offset=int(ident[2]) if ident else 0,
        )
        if content is None:
            content = self._portless(body, version, (hosts[0], hosts[1]), total)
        if content is None:
            return None
        packed = network.around(*content)
        if len(self.latest) > 0xFFFF:
            self.latest.clear()
        if content[0] in (wire.TCP, wire.UDP):
            self.latest[hosts[0], hosts[1]] = packed.known[: 28 if version == 4 else 48]
        return packed

    def _ported(self, names: tuple[str, str], ports: tuple[int, int], body: str, total: int) -> tuple[int, Part] | None:
        """Return IP protocol and content of a TCP or UDP packet."""
        if flags := _FLAGS.match(body) or _TCPDUMP3_FLAGS.match(body):
            header, payload = self._tcp(names, ports, flags[1], body)
            shown = _shown(body, payload)
            return wire.TCP, header.before(Part(shown, payload - len(shown)))
        quiet = _QUIET.match(body)
        if quiet and quiet[1] == "tcp":  # -q prints only the payload's length
            sender = self.senders.setdefault(names, _Sender())
            payload = int(quiet[2])
            header = Tcp(*ports, sender.next_seq, 0, wire.FLAG_BITS["ACK"], 0xFFFF)
            sender.next_seq += payload
            return wire.TCP, header.before(Part(b"", payload))
        sum_ = re.search(r"^\[bad udp cksum 0x([0-9a-f]{4})", body)
        body = re.sub(r"^\[[^]]*\] ", "", body)
        inner = self._tunnel(body)
        if inner is None:
            length = total - 8 if total >= 8 else _number(_BRACKETED, body) or _number(_LENGTH, body)
            message = self.questions.tcpdump(body)
            inner = message.packed(length) if message else Part(b"", length)
        return wire.UDP, wire.udp(*ports, inner, int(sum_[1], 16) if sum_ else 0)

    def _portless(
        self, body: str, version: int, hosts: tuple[wire.Address, wire.Address], total: int
    ) -> tuple[int, Part] | None:
        """Return IP protocol and content of a packet without ports: ICMP, tunnels, fragments and others."""
        if body.startswith("ICMP"):
            return icmp_message(
                re.sub(r"^(ICMP6?),? ", r"\1 ", body),
                lambda text: self._network(("IP6 " if version == 6 else "IP ") + text),
                lambda word: (
                    self.latest.get((hosts[1], address)) if (address := self.ends.address(word, version)) else None
                ),
                lambda word: address.packed if (address := self.ends.address(word, version)) else bytes(4),
                (hosts[1].packed, version),
            )
        if (tunnel := _TUNNELS.match(body)) and tunnel["kind"] == "GRE":
            text = tunnel["rest"].lstrip(": \n")
            inner = self._network(text)
            if inner is None:
                return None
            ethertype = wire.IPV6_TYPE if text.startswith("IP6") else wire.IPV4_TYPE
            return wire.GRE, inner.behind(b"\0\0" + ethertype.to_bytes(2, "big"))
        if re.match(r"IP6? |\((?:tos|hlim|class|flowlabel) ", body):
            text = _family(body) if body.startswith("(") else body
            inner = self._network(text)
            return None if inner is None else (wire.IPV6 if text.startswith("IP6") else wire.IPIP, inner)
        if "[|" in body:
            return None
        length = total if total > 0 else _number(_LENGTH, body) or _number(_BRACKETED, body)
        printed_protocol = re.search(r"\bip-proto-(\d{1,3})\b", body)
        by_name = {"tcp": wire.TCP, "udp": wire.UDP}.get(body.split(" ")[0].lower(), 59)
        return int(printed_protocol[1]) & 0xFF if printed_protocol else by_name, Part(b"", length)

    def _tunnel(self, body: str) -> Part | None:
        """Parse VXLAN or Geneve; return None for other text."""
        tunnel = _TUNNELS.match(body)
        if not tunnel or tunnel["kind"] == "GRE":
            return None
        inner, link = self._linked(tunnel["rest"].lstrip(": \n"))
        if inner is None:
            return None
        network = re.search(r"(?:vni|instance) (0x[0-9a-f]{1,8}|\d{1,8})", body)
        number = (int(network[1], 16 if "x" in network[1] else 10) & 0xFFFFFF) << 8 if network else 0
        if link == wire.RAW:
            is_ipv6 = inner.known[:1] >= b"\x60"
            inner = wire.ethernet(wire.IPV6_TYPE if is_ipv6 else wire.IPV4_TYPE, inner)
        # tcpdump prints port 8472, Linux's former port of VXLAN, as OTV.
        head = b"\0\0\x65\x58" if tunnel["kind"] == "Geneve" else b"\x08\0\0\0"
        return inner.behind(head + number.to_bytes(4, "big"))

    def _tcp(self, names: tuple[str, str], ports: tuple[int, int], letters: str, text: str) -> tuple[Tcp, int]:
        """Return a TCP header and the length of its payload in bytes."""
        is_tcpdump3 = not _FLAGS.match(text)
        bits = sum(_BITS.get(letter, 0) for letter in set(letters.replace("none", "")))
        ack = _ACK.search(text)
        if is_tcpdump3:  # tcpdump 3 prints "." if no other flag is set
            bits = bits & ~_BITS["."] | (_BITS["."] if ack else 0)
        source, destination = names
        if len(self.senders) > 1 << 17:
            self.senders.clear()
        ours = self.senders.setdefault((source, destination), _Sender())
        theirs = self.senders.setdefault((destination, source), _Sender())
        printed = _SEQUENCE.search(text)
        payload = _number(_LENGTH, text)
        if printed and printed[3]:
            payload = int(printed[3])
        elif printed and printed[2] and not payload:
            payload = (int(printed[2]) - int(printed[1])) % wire.MOD
        payload = min(payload, wire.MAX_LENGTH)
        if bits & _BITS["S"]:
            ours.base = None
            if not bits & _BITS["."]:
                theirs.base = None
        sequence = ours.absolute(int(printed[1])) if printed else ours.next_seq
        acknowledged = theirs.absolute(int(ack[1])) if ack else 0
        if ack:  # relative numbers count from the first packet with an ACK
            if ours.base is None:
                ours.base = sequence
            if theirs.base is None:
                theirs.base = (acknowledged - 1) % wire.MOD
                theirs.next_seq = acknowledged
            elif 0 < (acknowledged - theirs.next_seq) % wire.MOD < wire.MOD // 2:  # of packets missing in the text
                theirs.next_seq = acknowledged
        ours.next_seq = (sequence + payload + bool(bits & (_BITS["S"] | _BITS["F"]))) % wire.MOD
        checksum = int(match[1], 16) if (match := _CHECKSUM.search(text)) else 0
        window, urgent = _number(_WINDOW, text), _number(_URGENT, text)
        options = _options(text, theirs)
        return Tcp(*ports, sequence, acknowledged, bits, window, options, checksum, urgent), payload


def _packets(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each packet's time and text. With `-v`, `-x` or tunnels a packet has several lines."""
    stamp, kept, size = "", list[str](), 0
    for line in lines:
        if start := _START.match(line):
            if kept:
                yield stamp, "\n".join(kept)
            stamp, kept, size = start[1], [line[start.end() :].rstrip()[:_MAX_PACKET_CHARACTERS]], 0
        elif (
            kept and size < _MAX_PACKET_CHARACTERS and (line[:1].isspace() or re.match(_FAMILY + "[ ,]|" + _MAC, line))
        ):
            kept.append(line.rstrip("\r\n") if line.startswith("\t") else line.strip())
            size += len(line)
    if kept:
        yield stamp, "\n".join(kept)


def _dump(text: str) -> tuple[str, bytes]:
    """Split a packet's text into the text without its hex dump (`-x`, `-X`), and the dumped bytes."""
    if "0x0000:" not in text:
        return text, b""
    text_lines, dumped = [], bytearray()
    for line in text.split("\n"):
        dumped_row = _HEX.match(line)
        if not dumped_row:
            text_lines.append(line)
        elif int(dumped_row[1], 16) == len(dumped):
            dumped += bytes.fromhex(dumped_row[2].replace(" ", "")[: len(dumped_row[2].replace(" ", "")) // 2 * 2])
    return "\n".join(text_lines), bytes(dumped)


def _whole(dumped: bytes, part: Part | None, link: int) -> tuple[Part, int] | None:
    """Return the packet of a hex dump and its interface; None if the dump is not IP or ARP.

    `-x` dumps the packet from its IP header on, `-xx` with its link header of 14 bytes, or 18 with a VLAN tag. A dump
    from the IP header on has to agree with the printed packet's IP version.
    """
    for skip, interface in ((0, wire.RAW), (14, wire.ETHERNET), (18, wire.ETHERNET)):
        head = dumped[skip:]
        if len(head) >= 20 and head[0] >> 4 == 4 and head[0] & 15 >= 5:
            total = int.from_bytes(head[2:4], "big")
        elif len(head) >= 40 and head[0] >> 4 == 6:
            total = 40 + int.from_bytes(head[4:6], "big")
        else:
            continue
        if interface == wire.ETHERNET and dumped[skip - 2 : skip] not in (b"\x08\0", b"\x86\xdd"):
            continue
        is_raw = interface == wire.RAW == link and part is not None
        if is_raw and part and part.known[:1] and part.known[0] >> 4 != head[0] >> 4:
            continue
        return Part(dumped, max(0, skip + total - len(dumped))), interface
    if len(dumped) >= 42 and dumped[12:14] == b"\x08\x06":
        return Part(dumped), wire.ETHERNET
    return None


def _shown(body: str, payload: int) -> bytes:
    """Return the first bytes of a payload that the text shows: a first line, or with `-v` the lines of HTTP."""
    if match := _LINES.search(body):
        rows = [row.lstrip("\t ") for row in match[1].split("\n")]
    elif match := _TEXT.search(body):
        rows = match[1].split("\n")[:1]
    else:
        return b""
    shown = b""
    for row in rows:
        line = row.encode("utf-8", "replace") + b"\r\n"
        if row.startswith("[!") or len(shown) + len(line) > payload:
            break
        shown += line
    return shown


def _options(text: str, theirs: _Sender) -> bytes:
    """Return the printed TCP options. SACK edges count from the other sender's base."""
    match = _OPTIONS.search(text)
    options = b""
    for word in (match[1] or match[2] or "").split(",") if match else ():
        name = word.split()[0] if word.strip() else ""
        numbers = [int(value) for value in re.findall(r"\d{1,10}", word)]
        if name == "mss" and numbers:
            options += wire.option(2, (numbers[0] & 0xFFFF).to_bytes(2, "big"))
        elif name == "wscale" and numbers:
            options += wire.option(3, bytes([numbers[0] & 0xFF]))
        elif name == "sackOK":
            options += wire.option(4)
        elif name in ("TS", "timestamp") and len(numbers) == 2:
            options += wire.option(8, wire.pack_numbers(numbers))
        elif name == "sack" and len(numbers) >= 3:
            edges = [theirs.absolute(number) for number in numbers[1:9]]
            options += wire.option(5, wire.pack_numbers(edges[: len(edges) // 2 * 2]))
        elif name == "tfo":
            cookie = re.search(r"cookie ([0-9a-f]{2,32})\b", word)
            options += wire.option(34, bytes.fromhex(cookie[1][: len(cookie[1]) // 2 * 2]) if cookie else b"")
        elif name == "nop":
            options += b"\x01"
    return options[:40]


def _family(text: str, is_ipv6: bool = False) -> str:
    """Prefix the text of an IP packet with the word for its version."""
    return ("IP " if text.startswith("(tos") or not (is_ipv6 or text.startswith("(")) else "IP6 ") + text


def _ethertype(header: re.Match[str]) -> int:
    if header["code"]:
        return int(header["code"], 16)
    return {"IPv4": wire.IPV4_TYPE, "IPv6": wire.IPV6_TYPE, "ARP": wire.ARP_TYPE}.get(header["type"], 0)


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return min(int(match[1]), wire.MAX_LENGTH) if match else 0


def _distance(a: int, b: int) -> int:
    ahead = (a - b) % wire.MOD
    return min(ahead, wire.MOD - ahead)
