"""Dissects the headers of one frame into fields with Wireshark's names.

Covers Ethernet, VLAN, ARP, IP, ICMP, UDP, TCP and DNS; rarer link types are read by `latpcap.reading.links`. Each field
has a list of values in the order of the frame: outer headers first, the packet quoted by an ICMP error last. Nothing is
reassembled.
"""

# ruff: noqa: D102  a method is named after its layer

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from latpcap.reading.filters.conversations import Conversations
from latpcap.reading.filters.tls import Tls
from latpcap.reading.links import Found, read

Values = dict[str, list[Any]]
Datagram = tuple[str, str, int, int]
"""Source, destination, protocol and identification of a fragmented datagram."""
_SNAP = b"\xaa\xaa\x03\0\0\0"
_MAX_DEPTH = 8
"""Upper bound on nested tunnels."""
_MIN_FRAME_BYTES, _MIN_FRAME_BYTES_WITH_FCS = 60, 64
"""Length of the shortest Ethernet frame, without and with its checksum."""
_MAX_NAME_BYTES = 255
"""Upper bound on a domain name (RFC 1035, 2.3.4)."""
_MAX_RECORDS = 256
"""Upper bound on the questions, and on the other records, that are read of a DNS message."""
_TAGS = {0x8100, 0x88A8, 0x9100}
_LINKS = {
    0: "null", 7: "arcnet", 9: "ppp", 12: "raw", 14: "raw", 50: "ppp", 101: "raw", 104: "chdlc", 108: "null",
    113: "sll", 129: "arcnet", 276: "sll",
}  # fmt: skip
_ABOVE_IP = {2: "igmp", 50: "esp", 88: "eigrp", 89: "ospf", 103: "pim", 112: "vrrp", 132: "sctp"}
"""Protocols above IP that are named in the layers, but not dissected."""
_ARCNET_PROTOCOL_OFFSETS = {7: 2, 129: 4}
"""Offset of the protocol number in an ARCnet frame (RFC 1201), by LINKTYPE_ number; 0xD5 is ARP."""
_LAYERS = {
    "arp", "ip", "ipv6", "icmp", "icmpv6", "udp", "tcp", "dns", "mdns", "llmnr", "ipv6.hopopts", "ipv6.routing",
    "ipv6.dstopts", "ipv6.fraghdr",
}  # fmt: skip
"""Fields that name a layer in `frame.protocols`, too."""
ABOVE_UDP = {
    67: "dhcp", 68: "dhcp", 69: "tftp", 123: "ntp", 137: "nbns", 138: "nbdgm", 161: "snmp", 162: "snmp", 500: "isakmp",
    514: "syslog", 520: "rip", 546: "dhcpv6", 547: "dhcpv6", 1812: "radius", 1813: "radius", 1900: "ssdp", 3478: "stun",
    5060: "sip",
}  # fmt: skip
"""Wireshark's name of the protocol that it expects on a UDP port."""
_DNS_PORTS = {53: "dns", 5353: "mdns", 5355: "llmnr"}
_UNVERIFIED, _ABSENT = 2, 3
"""Wireshark's status of a checksum; by default it does not verify those of IP, UDP and TCP."""
_FLAGS = ("fin", "syn", "reset", "push", "ack", "urg", "ece", "cwr", "ae")
_SOA = ("serial_number", "refresh_interval", "retry_interval", "expire_limit", "minimum_ttl")


def values(data: bytes, link: int | None, tls: Tls | None = None, conversations: Conversations | None = None) -> Values:
    """Return all fields of a frame. Fields of TLS and of conversations need their state."""
    frame = Frame(tls, conversations)
    with contextlib.suppress(IndexError, struct.error):  # truncated or damaged: the fields before it count
        frame.link(data, link)
    frame.out["frame"] = [data]
    frame.out["layers"] = frame.layers
    return frame.out


class Frame:
    """Walks through one frame, layer by layer, and passes each field to `add`.

    Subclasses override `add` or the method of a layer to collect something else.
    """

    def __init__(self, tls: Tls | None, conversations: Conversations | None) -> None:
        self.out: Values = {}
        self.layers: list[str] = []
        """Wireshark's names of the layers, as in frame.protocols."""
        self.tls = tls
        self.conversations = conversations
        self.hosts = ("", "")
        """Source and destination of the innermost IP header so far."""
        self.quoted = False
        """Whether the current packet is quoted by an ICMP error."""
        self.whole = True
        """Whether the IP packet was captured completely, so that its ICMP checksum can be verified."""

    def add(self, name: str, value: Any) -> None:
        if name in _LAYERS:
            self.layers.append(name)
        self.out.setdefault(name, []).append(value)

    def layer(self, *names: str) -> None:
        """Add layers that have no fields."""
        self.layers += names

    def link(self, data: bytes, link: int | None, depth: int = 0) -> None:
        """Add the fields of a frame with this LINKTYPE_ number."""
        if link in _LINKS:
            self.layers.append(_LINKS[link])
        if link == 1:
            self.ethernet(data, depth)
        elif link in (12, 14, 101, 228, 229):
            self.ip(data, depth)
        elif link in (0, 108):
            self.ip(data[4:], depth)
        elif link == 113:
            self.by_ethertype(struct.unpack_from(">H", data, 14)[0], data[16:], 0)
        elif link == 276:
            self.by_ethertype(struct.unpack_from(">H", data, 0)[0], data[20:], 0)
        elif link in _ARCNET_PROTOCOL_OFFSETS and data[_ARCNET_PROTOCOL_OFFSETS[link]] == 0xD5:
            self.arp(data[_ARCNET_PROTOCOL_OFFSETS[link] + 4 :])
        elif link == 104 or (link in (9, 50) and data[:1] in (b"\x0f", b"\x8f")):  # Cisco's HDLC
            self.by_ethertype(struct.unpack_from(">H", data, 2)[0], data[4:], 0)
        elif link in (9, 50):
            skip = 2 if data[:2] == b"\xff\x03" else 0
            protocol = struct.unpack_from(">H", data, skip)[0]
            self.by_ethertype({0x21: 0x800, 0x57: 0x86DD, 0x281: 0x8847}.get(protocol, 0), data[skip + 2 :], 0)
        elif link is not None:
            self.go_on_with(read("link", link, data), depth)

    def go_on_with(self, inner: Found, depth: int) -> None:
        """Go on with the packet or layer that a reader of `links` found."""
        if isinstance(inner, bytes):
            self.ip(inner, depth)
        elif isinstance(inner, tuple) and depth <= _MAX_DEPTH:
            layer, number, data = inner
            if layer == "link":
                self.ethernet(data, depth) if number == 1 else self.link(data, number, depth + 1)
            elif layer == "ethertype":
                self.by_ethertype(number, data, depth)

    def ethernet(self, data: bytes, depth: int = 0) -> None:
        """Add the fields of an Ethernet frame, and of what it carries."""
        target, source, ethertype = data[:6], data[6:12], struct.unpack_from(">H", data, 12)[0]
        self.layers += ["eth", "ethertype" if ethertype >= 0x600 else "llc"]
        self.add("eth", data)
        for name, address in (("dst", target), ("src", source)):
            self.add(f"eth.{name}", address)
            self.add("eth.addr", address)
            for word in (f"{name}.oui", "addr.oui"):
                self.add(f"eth.{word}", int.from_bytes(address[:3], "big"))
            for bit, word in ((1, "ig"), (2, "lg")):
                self.add(f"eth.{name}.{word}", int(bool(address[0] & bit)))
                self.add(f"eth.{word}", int(bool(address[0] & bit)))
        if ethertype >= 0x600:
            self.add("eth.type", ethertype)
            self.by_ethertype(ethertype, data[14:], depth)
            self.trailer(ethertype, data)
        else:
            self.add("eth.len", ethertype)
            if data[14:20] == _SNAP:
                self.by_ethertype(struct.unpack_from(">H", data, 20)[0], data[22:], depth)

    def trailer(self, ethertype: int, data: bytes) -> None:
        """Split the bytes after the packet into padding, trailer and frame check sequence, as Wireshark does.

        Zeros up to the minimum frame length are padding.
        """
        if ethertype == 0x800:
            used = struct.unpack_from(">H", data, 16)[0]
        elif ethertype == 0x86DD:
            used = 40 + struct.unpack_from(">H", data, 18)[0]
        else:
            used = 8 + 2 * (data[18] + data[19]) if ethertype == 0x806 else len(data)
        trailer = data[14 + used :] if used else b""
        padding = trailer[: max(0, _MIN_FRAME_BYTES - 14 - used)]
        if padding and len(data) >= _MIN_FRAME_BYTES and not any(padding):
            self.add("eth.padding", padding)
            trailer = trailer[len(padding) :]
        if len(data) >= _MIN_FRAME_BYTES_WITH_FCS and len(trailer) >= 4:
            self.add("eth.fcs", int.from_bytes(trailer[-4:], "big"))
            trailer = trailer[:-4]
        if trailer:
            self.add("eth.trailer", trailer)

    def by_ethertype(self, ethertype: int, data: bytes, depth: int) -> None:
        """Add the fields of VLAN tags, and of the protocol with this number."""
        while ethertype in _TAGS:
            tag, ethertype = struct.unpack_from(">HH", data, 0)
            self.add("vlan", data)
            self.layers += ["vlan", "ethertype"]
            self.add("vlan.id", tag & 0xFFF)
            self.add("vlan.priority", tag >> 13)
            self.add("vlan.dei", tag >> 12 & 1)
            self.add("vlan.etype", ethertype)
            data = data[4:]
        if ethertype in (0x800, 0x86DD):
            self.ip(data, depth)
        elif ethertype in (0x806, 0x8035):  # RARP has ARP's format
            self.arp(data)
        elif ethertype == 0x8909:  # Cisco's metadata
            self.layer("cmd", "ethertype")
            self.by_ethertype(struct.unpack_from(">H", data, 6)[0], data[8:], depth)
        elif ethertype == 0x8903:  # FabricPath
            self.ethernet(data[2:], depth + 1)
        elif ethertype == 0x8864 and data[6:8] in (b"\0\x21", b"\0\x57"):
            self.ip(data[8 : 6 + struct.unpack_from(">H", data, 4)[0]], depth)
        elif ethertype == 0x8847:
            while not data[2] & 1:
                data = data[4:]
            self.ip(data[4:], depth)

    def arp(self, data: bytes) -> None:
        """Add the fields of ARP, and Wireshark's marks for probes, announcements and duplicate addresses."""
        hardware, protocol, hlen, plen, opcode = struct.unpack_from(">HHBBH", data, 0)
        self.add("arp", data[: 8 + 2 * (hlen + plen)])
        self.add("arp.hw.type", hardware)
        self.add("arp.proto.type", protocol)
        self.add("arp.opcode", opcode)
        self.add("arp.hw.size", hlen)
        self.add("arp.proto.size", plen)
        if (protocol, plen) != (0x800, 4) or len(data) < 16 + 2 * hlen:
            return
        ends = [(data[start : start + hlen], data[start + hlen : start + hlen + 4]) for start in (8, 12 + hlen)]
        for name, (owner, address) in zip(("src", "dst"), ends, strict=True):
            if hlen == 6:
                self.add(f"arp.{name}.hw_mac", owner)
            self.add(f"arp.{name}.proto_ipv4", str(IPv4Address(address)))
        (_, source), (target_mac, target) = ends
        if source == target:
            self.add("arp.isgratuitous", 1)
            if opcode == 1:
                self.add("arp.isannouncement", 1)
        elif opcode == 1 and not any(source):
            self.add("arp.isprobe", 1)
        if self.conversations and hlen == 6 and opcode in (1, 2):
            # A request names the sender's pair of addresses; only a reply also names a real pair of the target.
            has_target = opcode == 2 and source != target and target_mac not in (bytes(6), b"\xff" * 6)
            for owner, address in ends if has_target else ends[:1]:
                if frame := self.conversations.claimed(address, owner):
                    self.add("arp.duplicate-address-detected", 1)
                    self.add("arp.duplicate-address-frame", frame)

    def ip(self, data: bytes, depth: int) -> None:
        if depth > _MAX_DEPTH:
            return
        version = data[0] >> 4
        if version == 4:
            self.ip4(data, depth)
        elif version == 6:
            self.ip6(data, depth)

    def ip4(self, data: bytes, depth: int) -> None:
        """Add the fields of an IPv4 header, and of what it carries."""
        head, tos, total, ident, flags_and_offset, ttl, protocol, checksum = struct.unpack_from(">BBHHHBBH", data, 0)
        size = (head & 15) * 4
        if size < 20 or len(data) < 20:
            return
        self.add("ip", data)
        self.add("ip.version", 4)
        self.add("ip.hdr_len", size)
        self.add("ip.dsfield", tos)
        self.add("ip.dsfield.dscp", tos >> 2)
        self.add("ip.dsfield.ecn", tos & 3)
        self.add("ip.len", total)
        self.add("ip.id", ident)
        self.add("ip.flags", flags_and_offset >> 13)
        self.add("ip.flags.rb", flags_and_offset >> 15)
        self.add("ip.flags.df", flags_and_offset >> 14 & 1)
        self.add("ip.flags.mf", flags_and_offset >> 13 & 1)
        offset = (flags_and_offset & 0x1FFF) * 8
        self.add("ip.frag_offset", offset)
        self.add("ip.ttl", ttl)
        self.add("ip.proto", protocol)
        self.add("ip.checksum", checksum)
        self.add("ip.checksum.status", _UNVERIFIED)
        self.addresses("ip", str(IPv4Address(data[12:16])), str(IPv4Address(data[16:20])))
        self.options4(data[20:size])
        self.whole = len(data) >= total
        carried = data[size : total if size <= total else None]
        if offset == 0 and not flags_and_offset & 0x2000:
            self.by_ip_protocol(protocol, carried, depth)
        else:
            self.fragment((*self.hosts, protocol, ident), offset, not flags_and_offset & 0x2000, carried, depth)

    def options4(self, data: bytes) -> None:
        """Add the options of an IPv4 header."""
        offset = 0
        while offset < len(data):
            option = data[offset]
            self.add("ip.opt.type", option)
            if option == 0:
                return
            length = 1
            if option != 1:  # NOP has no length
                length = data[offset + 1]
                if length < 1:
                    return
                self.add("ip.opt.len", length)
            if option == 148 and length == 4:
                self.add("ip.opt.ra", struct.unpack_from(">H", data, offset + 2)[0])
            offset += length

    def ip6(self, data: bytes, depth: int) -> None:
        """Add the fields of an IPv6 header with its extensions, and of what it carries."""
        first, length, following, hops = struct.unpack_from(">IHBB", data, 0)
        if len(data) < 40:
            return
        self.add("ipv6", data)
        self.add("ipv6.version", 6)
        self.add("ip.version", 6)
        self.add("ipv6.tclass", first >> 20 & 0xFF)
        self.add("ipv6.tclass.dscp", first >> 22 & 0x3F)
        self.add("ipv6.tclass.ecn", first >> 20 & 3)
        self.add("ipv6.flow", first & 0xFFFFF)
        self.add("ipv6.plen", length)
        self.add("ipv6.nxt", following)
        self.add("ipv6.hlim", hops)
        self.addresses("ipv6", str(IPv6Address(data[8:24])), str(IPv6Address(data[24:40])))
        self.whole = len(data) >= 40 + length
        for word, start in (("src", 8), ("dst", 24)):
            if data[start + 11 : start + 13] == b"\xff\xfe":
                mac = bytes([data[start + 8] ^ 2]) + data[start + 9 : start + 11] + data[start + 13 : start + 16]
                self.add(f"ipv6.{word}_slaac_mac", mac)
                self.add("ipv6.slaac_mac", mac)
        extensions = data[40 : 40 + length if length else None]
        for _ in range(16):
            if following in (0, 43, 60):
                self.add({0: "ipv6.hopopts", 43: "ipv6.routing", 60: "ipv6.dstopts"}[following], 1)
                if following == 43:
                    self.add("ipv6.routing.type", extensions[2])
                    self.add("ipv6.routing.segleft", extensions[3])
                following, extensions = extensions[0], extensions[8 + extensions[1] * 8 :]
            elif following == 44:
                word, ident = struct.unpack_from(">HI", extensions, 2)
                self.add("ipv6.fraghdr", 1)
                self.add("ipv6.fraghdr.nxt", extensions[0])
                self.add("ipv6.fraghdr.offset", word >> 3)
                self.add("ipv6.fraghdr.more", word & 1)
                self.add("ipv6.fraghdr.ident", ident)
                if word & 0xFFF9:
                    return self.fragment(
                        (*self.hosts, extensions[0], ident), word & 0xFFF8, not word & 1, extensions[8:], depth
                    )
                following, extensions = extensions[0], extensions[8:]
            else:
                break
        self.by_ip_protocol(following, extensions, depth)

    def fragment(self, datagram: Datagram, offset: int, last: bool, data: bytes, depth: int) -> None:
        """Ignore a fragment; subclasses may reassemble its datagram."""

    def addresses(self, name: str, source: str, target: str) -> None:
        self.hosts = source, target
        for word, address in (("src", source), ("dst", target)):
            self.add(f"{name}.{word}", address)
            self.add(f"{name}.{word}_host", address)
            self.add(f"{name}.addr", address)
            self.add(f"{name}.host", address)

    def by_ip_protocol(self, protocol: int, data: bytes, depth: int) -> None:
        reader: Callable[[bytes, int], None] | None = {
            1: self.icmp, 4: self._ip_in_ip, 6: self.tcp, 17: self.udp, 41: self._ip_in_ip, 47: self.gre,
            51: self.ah, 58: self.icmp6,
        }.get(protocol)  # fmt: skip
        if reader is not None:
            reader(data, depth)
        elif protocol in _ABOVE_IP:
            self.layer(_ABOVE_IP[protocol])

    def _ip_in_ip(self, data: bytes, depth: int) -> None:
        self.ip(data, depth + 1)

    def ah(self, data: bytes, depth: int) -> None:
        self.layer("ah")
        self.by_ip_protocol(data[0], data[(data[1] + 2) * 4 :], depth)

    def gre(self, data: bytes, depth: int) -> None:
        flags, ethertype = struct.unpack_from(">HH", data, 0)
        self.layers.append("gre")
        if flags & 7:
            return
        payload = data[4 + 4 * (bool(flags & 0x8000) + bool(flags & 0x2000) + bool(flags & 0x1000)) :]
        if ethertype == 0x6558:
            self.ethernet(payload, depth + 1)
        elif ethertype == 0x88BE:  # ERSPAN: type I, without a GRE sequence number, has no header of its own
            if flags & 0x1000:
                self.layer("erspan")
            self.ethernet(payload[8 if flags & 0x1000 else 0 :], depth + 1)
        else:
            self.by_ethertype(ethertype, payload, depth + 1)

    def icmp(self, data: bytes, depth: int) -> None:
        """Add the fields of an ICMP message, and of the packet that it quotes."""
        icmp_type, code, checksum = struct.unpack_from(">BBH", data, 0)
        self.add("icmp", data)
        self.add("icmp.type", icmp_type)
        self.add("icmp.code", code)
        self.add("icmp.checksum", checksum)
        self.add("icmp.checksum.status", int(_sum(data) == 0xFFFF) if self.whole else _UNVERIFIED)
        if icmp_type in (0, 8):
            ident, seq = struct.unpack_from(">HH", data, 4)
            swapped = struct.unpack_from("<HH", data, 4)
            for value in (ident, swapped[0]):
                self.add("icmp.ident", value)
            self.add("icmp.ident_le", swapped[0])
            self.add("icmp.seq", seq)
            self.add("icmp.seq_le", swapped[1])
            self.layers += ["data"] if len(data) > 8 else []
            if self.conversations is not None and not self.quoted:
                self.conversations.echo(icmp_type, frozenset(self.hosts), checksum, (ident, seq))
        elif icmp_type in (3, 4, 5, 11, 12):
            if icmp_type == 3 and code == 4:
                self.add("icmp.mtu", struct.unpack_from(">H", data, 6)[0])
            if icmp_type == 5:
                self.add("icmp.redir_gw", str(IPv4Address(data[4:8])))
            self.quoted = True
            self.ip(data[8:], depth + 1)

    def icmp6(self, data: bytes, depth: int) -> None:
        """Add the fields of an ICMPv6 message, and of the packet that it quotes."""
        icmp_type, code, checksum = struct.unpack_from(">BBH", data, 0)
        self.add("icmpv6", data)
        self.add("icmpv6.type", icmp_type)
        self.add("icmpv6.code", code)
        self.add("icmpv6.checksum", checksum)
        pseudo = IPv6Address(self.hosts[0]).packed + IPv6Address(self.hosts[1]).packed if ":" in self.hosts[0] else b""
        head = pseudo + struct.pack(">II", len(data), 58)
        self.add("icmpv6.checksum.status", int(_sum(head + data) == 0xFFFF) if self.whole else _UNVERIFIED)
        if icmp_type in (128, 129):
            ident, seq = struct.unpack_from(">HH", data, 4)
            self.add("icmpv6.echo.identifier", ident)
            self.add("icmpv6.echo.sequence_number", seq)
            self.layers += ["data"] if len(data) > 8 else []
        elif icmp_type in (135, 136) and len(data) >= 24:
            word = "ns" if icmp_type == 135 else "na"
            self.add(f"icmpv6.nd.{word}.target_address", str(IPv6Address(data[8:24])))
            if icmp_type == 136:
                for bit, name in enumerate("rso"):
                    self.add(f"icmpv6.nd.na.flag.{name}", data[4] >> (7 - bit) & 1)
            self.options6(data[24:])
        elif icmp_type == 133:
            self.options6(data[8:])
        elif icmp_type == 134:
            hops, flags, lifetime, reachable, retransmission = struct.unpack_from(">BBHII", data, 4)
            self.add("icmpv6.nd.ra.cur_hop_limit", hops)
            self.add("icmpv6.nd.ra.flag", flags)
            for bit, name in ((7, "m"), (6, "o"), (5, "h"), (2, "p")):
                self.add(f"icmpv6.nd.ra.flag.{name}", flags >> bit & 1)
            self.add("icmpv6.nd.ra.flag.prf", flags >> 3 & 3)
            self.add("icmpv6.nd.ra.router_lifetime", lifetime)
            self.add("icmpv6.nd.ra.reachable_time", reachable)
            self.add("icmpv6.nd.ra.retrans_timer", retransmission)
            self.options6(data[16:])
        elif icmp_type in (1, 2, 3, 4):
            if icmp_type == 2:
                self.add("icmpv6.mtu", struct.unpack_from(">I", data, 4)[0])
            self.quoted = True
            self.ip(data[8:], depth + 1)

    def options6(self, data: bytes) -> None:
        """Add the options of neighbour discovery (RFC 4861, section 4.6)."""
        while len(data) >= 8 and data[1]:
            option, length = data[0], data[1] * 8
            self.add("icmpv6.opt", 1)
            self.add("icmpv6.opt.type", option)
            self.add("icmpv6.opt.length", data[1])
            if option in (1, 2):
                self.add("icmpv6.opt.linkaddr", data[2:length])
            elif option == 3 and len(data) >= 32:
                self.add("icmpv6.opt.prefix.length", data[2])
                self.add("icmpv6.opt.prefix.valid_lifetime", struct.unpack_from(">I", data, 4)[0])
                self.add("icmpv6.opt.prefix.preferred_lifetime", struct.unpack_from(">I", data, 8)[0])
                self.add("icmpv6.opt.prefix", str(IPv6Address(data[16:32])))
            elif option == 5:
                self.add("icmpv6.opt.mtu", struct.unpack_from(">I", data, 4)[0])
            data = data[length:]

    def udp(self, data: bytes, depth: int) -> None:
        """Add the fields of a UDP header, and of DNS or a tunnel in it."""
        source, target, length, checksum = struct.unpack_from(">HHHH", data, 0)
        self.add("udp", data)
        self.add("udp.srcport", source)
        self.add("udp.dstport", target)
        self.add("udp.port", source)
        self.add("udp.port", target)
        self.add("udp.length", length)
        self.add("udp.checksum", checksum)
        self.add("udp.checksum.status", _UNVERIFIED if checksum else _ABSENT)
        if self.conversations is not None:
            number, first, last = self.conversations.udp((self.hosts[0], source), (self.hosts[1], target))
            self.add("udp.stream", number)
            self.add("udp.time_relative", first)
            self.add("udp.time_delta", last)
        payload = data[8 : length if length >= 8 else None]
        if payload:
            self.add("udp.payload", payload)
        if ports := _DNS_PORTS.keys() & {source, target}:
            self.dns(payload, _DNS_PORTS[min(ports)])
        elif above := ABOVE_UDP.get(min(source, target)) or ABOVE_UDP.get(max(source, target)):
            self.layer(above)
        elif 2152 in (source, target) and payload[:1] and payload[0] >> 5 == 1 and payload[1] == 0xFF:  # GTP-U
            self.layer("gtp")
            self.ip(payload[12 if payload[0] & 7 else 8 :], depth + 1)
        elif target == 4789:
            self.layer("vxlan")
            self.ethernet(payload[8:], depth + 1)
        elif 3544 in (source, target):
            self.teredo(payload, depth)
        elif target == 6081:
            self.layer("geneve")
            ethertype = struct.unpack_from(">H", payload, 2)[0]
            inner = payload[8 + (payload[0] & 63) * 4 :]
            self.ethernet(inner, depth + 1) if ethertype == 0x6558 else self.by_ethertype(ethertype, inner, depth + 1)

    def teredo(self, data: bytes, depth: int) -> None:
        """Read IPv6 in UDP, after optional authentication and origin headers (RFC 4380, section 5.1.1)."""
        if data[:2] == b"\0\1":
            data = data[13 + data[2] + data[3] :]
        if data[:2] == b"\0\0":
            data = data[8:]
        if len(data) >= 40 and data[0] >> 4 == 6:
            self.layer("teredo")
            self.ip(data, depth + 1)

    def tcp(self, data: bytes, depth: int) -> None:
        """Add the fields of a TCP header, and of TLS in its payload."""
        source, target = struct.unpack_from(">HH", data, 0)
        for name, value in (("srcport", source), ("dstport", target), ("port", source), ("port", target)):
            self.add(f"tcp.{name}", value)
        if len(data) < 20:
            self.add("tcp", data)
            return
        word, window, checksum, urgent = struct.unpack_from(">HHHH", data, 12)
        size, flags = (word >> 12) * 4, word & 0xFFF
        self.add("tcp", data)
        self.add("tcp.hdr_len", size)
        self.add("tcp.flags", flags)
        self.add("tcp.flags.res", flags >> 9)
        self.add("tcp.flags.str", "".join(_letter(flags, bit) for bit in range(11, -1, -1)))
        for bit, name in enumerate(_FLAGS):
            self.add(f"tcp.flags.{name}", flags >> bit & 1)
        self.add("tcp.window_size_value", window)
        self.add("tcp.checksum", checksum)
        self.add("tcp.checksum.status", _UNVERIFIED)
        self.add("tcp.urgent_pointer", urgent)
        if size > 20:
            self.add("tcp.options", data[20:size])
            self.options(data[20:size])
        payload = data[size:]
        if self.tls is not None and not self.quoted:
            hosts = (
                (self.out.get("ip.src") or self.out["ipv6.src"])[-1],
                (self.out.get("ip.dst") or self.out["ipv6.dst"])[-1],
            )
            ends = ((hosts[0], source), (hosts[1], target))
            self.tls.segment(ends, struct.unpack_from(">I", data, 4)[0], bool(flags & 2), payload, self.out)
        if payload:
            self.add("tcp.payload", payload)
            whole_dns = len(payload) > 14 and int.from_bytes(payload[:2], "big") == len(payload) - 2
            if 53 in (source, target) and whole_dns:
                self.dns(payload[2:], "dns")

    def options(self, data: bytes) -> None:
        """Add the fields of TCP options, up to one that is damaged."""
        offset = 0
        while offset < len(data):
            option = data[offset]
            self.add("tcp.option_kind", option)
            if option == 0:
                self.add("tcp.options.eol", 1)
                return
            if option == 1:
                self.add("tcp.options.nop", 1)
                offset += 1
                continue
            length = data[offset + 1]
            if length < 2:
                return
            self.add("tcp.option_len", length)
            if option == 4:
                self.add("tcp.options.sack_perm", 1)
            elif option == 3 and length == 3:
                self.add("tcp.options.wscale.multiplier", 1 << min(data[offset + 2], 14))
            elif option == 19:
                self.add("tcp.options.md5", 1)
                self.add("tcp.options.md5.digest", data[offset + 2 : offset + length])
            elif option == 30 and length > 2:
                self.add("tcp.options.mptcp.subtype", data[offset + 2] >> 4)
                if not data[offset + 2] >> 4:
                    self.add("tcp.options.mptcp.version", data[offset + 2] & 15)
            elif option == 34:
                self.add("tcp.options.tfo", 1)
                if length == 2:
                    self.add("tcp.options.tfo.request", 1)
                else:
                    self.add("tcp.options.tfo.cookie", data[offset + 2 : offset + length])
            elif option in (253, 254):
                self.add("tcp.options.experimental", 1)
            offset += length

    def dns(self, data: bytes, protocol: str) -> None:
        """Add the fields of a DNS message."""
        if len(data) < 12:
            return
        ident, flags, *counts = struct.unpack_from(">HHHHHH", data, 0)
        self.add(protocol, data)
        self.add("dns.id", ident)
        self.add("dns.flags", flags)
        response = flags >> 15
        bits = [("response", 15), ("truncated", 9), ("recdesired", 8), ("z", 6), ("checkdisable", 4)]
        if response:
            bits += [("authoritative", 10), ("recavail", 7), ("authenticated", 5)]
            self.add("dns.flags.rcode", flags & 15)
        for name, bit in bits:
            self.add(f"dns.flags.{name}", flags >> bit & 1)
        self.add("dns.flags.opcode", flags >> 11 & 15)
        for name, count in zip(("queries", "answers", "auth_rr", "add_rr"), counts, strict=True):
            self.add(f"dns.count.{name}", count)
        offset = 12
        for _ in range(min(counts[0], _MAX_RECORDS)):
            offset = self._dns_question(data, offset)
        for _ in range(min(sum(counts[1:]), _MAX_RECORDS)):
            offset = self._dns_record(data, offset)

    def _dns_question(self, data: bytes, offset: int) -> int:
        """Add the question at an offset; return the offset after it."""
        name, offset = name_at(data, offset)
        record_type, class_ = struct.unpack_from(">HH", data, offset)
        self.add("dns.qry.name", name or "<Root>")
        self.add("dns.qry.name.len", len(name) if name else 6)
        self.add("dns.count.labels", name.count(".") + 1 if name else 1)
        self.add("dns.qry.type", record_type)
        self.add("dns.qry.class", class_)
        return offset + 4

    def _dns_record(self, data: bytes, offset: int) -> int:
        """Add the resource record at an offset; return the offset after it."""
        owner, offset = name_at(data, offset)
        record_type, class_, ttl, length = struct.unpack_from(">HHIH", data, offset)
        offset += 10
        end: int = offset + length
        self.add("dns.resp.name", owner or "<Root>")
        self.add("dns.resp.type", record_type)
        if record_type != 41:
            self.add("dns.resp.class", class_)
            self.add("dns.resp.ttl", ttl)
        else:  # OPT: class and TTL hold the payload size and flags (RFC 6891, section 6.1.3)
            self.add("dns.rr.udp_payload_size", class_)
            self.add("dns.resp.ext_rcode", ttl >> 24)
            self.add("dns.resp.edns0_version", ttl >> 16 & 0xFF)
            self.add("dns.resp.z", ttl & 0xFFFF)
            self.add("dns.resp.z.do", ttl >> 15 & 1)
            self.edns(data[offset:end])
        self.add("dns.resp.len", length)
        self._dns_content(record_type, owner, data, offset, data[offset:end])
        return end

    def _dns_content(self, record_type: int, owner: str, data: bytes, offset: int, content: bytes) -> None:
        """Add the content of a resource record, which begins at `offset`: names in it may point elsewhere in `data`."""
        if record_type == 1 and len(content) == 4:
            self.add("dns.a", str(IPv4Address(content)))
        elif record_type == 28 and len(content) == 16:
            self.add("dns.aaaa", str(IPv6Address(content)))
        elif record_type in (2, 5, 12):
            word = {2: "dns.ns", 5: "dns.cname", 12: "dns.ptr.domain_name"}[record_type]
            self.add(word, name_at(data, offset)[0] or "<Root>")
        elif record_type == 15:
            self.add("dns.mx.preference", struct.unpack_from(">H", data, offset)[0])
            self.add("dns.mx.mail_exchange", name_at(data, offset + 2)[0])
        elif record_type == 16:
            for text in _texts(content):
                self.add("dns.txt.length", len(text))
                self.add("dns.txt", text.decode("utf-8", "replace"))
        elif record_type == 33:
            for name, value in zip(("priority", "weight", "port"), struct.unpack_from(">HHH", content), strict=True):
                self.add(f"dns.srv.{name}", value)
            self.add("dns.srv.target", name_at(data, offset + 6)[0] or "<Root>")
            for word, label in zip(("service", "proto", "name"), owner.split(".", 2), strict=False):
                self.add(f"dns.srv.{word}", label)
        elif record_type == 6:
            main, end = name_at(data, offset)
            mailbox, end = name_at(data, end)
            self.add("dns.soa.mname", main or "<Root>")
            self.add("dns.soa.rname", mailbox or "<Root>")
            for name, value in zip(_SOA, struct.unpack_from(">IIIII", data, end), strict=True):
                self.add(f"dns.soa.{name}", value)

    def edns(self, data: bytes) -> None:
        """Add the options of EDNS0 (RFC 6891, section 6.1.2)."""
        while len(data) >= 4:
            code, length = struct.unpack_from(">HH", data)
            self.add("dns.opt", 1)
            self.add("dns.opt.code", code)
            self.add("dns.opt.len", length)
            if length:
                self.add("dns.opt.data", data[4 : 4 + length])
            data = data[4 + length :]


def _sum(data: bytes) -> int:
    """Return the ones' complement sum of 16-bit words (RFC 1071): 0xFFFF if the checksum among them is right."""
    padded = data + b"\0" * (len(data) & 1)
    total = int(sum(struct.unpack(f">{len(padded) // 2}H", padded)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _texts(content: bytes) -> Iterator[bytes]:
    """Yield the strings of a TXT record."""
    offset = 0
    while offset < len(content):
        yield content[offset + 1 : offset + 1 + content[offset]]
        offset += 1 + content[offset]


def _letter(flags: int, bit: int) -> str:
    return "FSRPAUECA···"[bit] if flags >> bit & 1 and bit < 9 else "·"


def name_at(data: bytes, offset: int) -> tuple[str, int]:
    """Return the DNS name at an offset, and the offset after it. Compression pointers must point backwards."""
    labels: list[str] = []
    end, size = 0, 0
    while (length := data[offset]) and size < _MAX_NAME_BYTES:
        if length >= 0xC0:
            end = end or offset + 2
            target = (length & 0x3F) << 8 | data[offset + 1]
            if target >= offset:
                break
            offset = target
            continue
        labels.append(data[offset + 1 : offset + 1 + length].decode("utf-8", "replace"))
        offset += 1 + length
        size += 1 + length
    return ".".join(labels), end or offset + 1
