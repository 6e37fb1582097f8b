"""The fields that are dissected from the frames' bytes, with their kinds, meanings and widths.

Their values are read by `dissect`, `tls`, `conversations` and `reassembly`.
"""

from __future__ import annotations

from latpcap.reading.filters.reassembly import NUMBERS

DISSECTED: list[tuple[str, str, str, int]] = []
"""Name, kind, meaning and bits of each field."""


def _add(field_kind: str, meanings: dict[str, str], bits: int = 16) -> None:
    DISSECTED.extend((name, field_kind, meaning, bits) for name, meaning in meanings.items())


_add("protocol", {
    "mdns": "multicast DNS", "llmnr": "link-local multicast names", "eth": "Ethernet", "vlan": "a VLAN tag",
    "arp": "ARP", "icmp": "ICMP", "icmpv6": "ICMPv6", "tls": "a frame that completes a TLS record",
})  # fmt: skip
_add("ether", {
    "eth.src": "source", "eth.dst": "destination", "eth.addr": "source and destination",
    "arp.src.hw_mac": "the sender's Ethernet address", "arp.dst.hw_mac": "the target's Ethernet address",
    "ipv6.slaac_mac": "Ethernet address inside an address", "ipv6.src_slaac_mac": "of the source",
    "ipv6.dst_slaac_mac": "of the destination",
})  # fmt: skip
_add("int", {
    "eth.type": "what it carries", "eth.len": "length, of IEEE 802.3", "vlan.id": "the VLAN's number",
    "vlan.priority": "priority", "vlan.etype": "what it carries", "arp.opcode": "1 asks, 2 answers",
    "arp.hw.type": "hardware", "arp.proto.type": "protocol", "ip.len": "total length", "ip.checksum": "header checksum",
    "ip.frag_offset": "fragment offset in bytes", "icmp.checksum": "checksum", "icmp.ident": "identifier",
    "icmp.seq": "sequence number", "icmp.seq_le": "the same, little-endian", "icmp.mtu": "the next hop's MTU",
    "icmpv6.checksum": "checksum", "icmpv6.echo.identifier": "identifier",
    "icmpv6.echo.sequence_number": "sequence number", "ipv6.plen": "payload length", "udp.length": "length",
    "udp.checksum": "checksum", "tcp.window_size_value": "window as it stands in the header",
    "tcp.checksum": "checksum", "tcp.urgent_pointer": "urgent pointer", "tcp.options.wscale.multiplier": "its factor",
    "dns.id": "transaction", "dns.flags": "the flags as a number", "dns.count.queries": "questions",
    "dns.count.answers": "answers", "dns.count.auth_rr": "authority records", "dns.count.add_rr": "additional records",
    "dns.qry.type": "wanted type: 1 A, 28 AAAA", "dns.qry.class": "wanted class",
    "dns.qry.name.len": "letters of the name in question", "dns.resp.type": "type of a record",
    "dns.resp.class": "class of a record", "dns.resp.len": "length of a record",
})  # fmt: skip
_add("ipv4", {
    "arp.src.proto_ipv4": "the sender", "arp.dst.proto_ipv4": "the wanted address", "dns.a": "addresses of an answer",
    "icmp.redir_gw": "gateway of a redirect",
})  # fmt: skip
_add("ipv6", {
    "dns.aaaa": "addresses of an answer", "icmpv6.nd.ns.target_address": "the wanted address",
    "icmpv6.nd.na.target_address": "who answers", "icmpv6.opt.prefix": "announced prefix",
})  # fmt: skip
_add("ms", {"icmp.resptime": "from the request to the reply, in ms"})
_add("label", {
    "icmp.no_resp": "an echo request without a reply",
    "arp.duplicate-address-detected": "an IPv4 address that another Ethernet address had",
    "tcp.options.nop": "option NOP", "tcp.options.sack_perm": "option SACK permitted",
    "tcp.options.eol": "end of options", "tls.record": "a record",
    "tls.handshake": "a message of the handshake, encrypted or not", "tls.change_cipher_spec": "ChangeCipherSpec",
    "tls.alert_message": "an alert, encrypted or not", "ipv6.hopopts": "hop-by-hop options",
    "ipv6.routing": "a routing header", "ipv6.dstopts": "destination options", "ipv6.fraghdr": "a fragment",
    "icmpv6.opt": "an option", "tcp.options.md5": "option MD5", "tcp.options.tfo": "option Fast Open",
    "tcp.options.tfo.request": "asks for a cookie", "tcp.options.experimental": "an experimental option",
    "tls.handshake.ciphersuites": "a list of suites", "tls.handshake.comp_methods": "a list of compressions",
    "tls.handshake.extensions_supported_groups": "a list of groups",
    "tls.handshake.extensions_ec_point_formats": "a list of point formats",
    "tls.handshake.sig_hash_algs": "a list of signature algorithms",
    "tls.handshake.extensions_alpn_list": "a list of protocols", "tls.handshake.certificates": "certificates",
    "tcp.segments": "completes a message that several frames carried", "dns.opt": "an option of EDNS0",
})  # fmt: skip
_add("bytes", {
    "tcp.payload": "what it carries", "tcp.options": "all options", "udp.payload": "what it carries",
    "tls.app_data": "encrypted data", "tls.handshake.random": "random bytes of the hello",
    "tls.handshake.session_id": "the session's id", "eth.padding": "zeros up to the shortest frame",
    "eth.trailer": "what stands behind the packet", "icmpv6.opt.linkaddr": "a link-layer address",
    "tcp.options.md5.digest": "its digest", "tcp.options.tfo.cookie": "its cookie",
    "tls.handshake.random_bytes": "random bytes behind the time",
    "tls.handshake.extensions_key_share_key_exchange": "key shares", "tls.handshake.certificate": "certificates",
    "tls.handshake.session_ticket": "ticket", "tls.handshake.server_point": "the server's key",
    "tls.handshake.client_point": "the client's key", "tcp.segment_data": "a part of such a message",
    "dns.opt.data": "what it carries",
})  # fmt: skip
_add("duration", {
    "frame.offset_shift": "time shift in Wireshark: none", "udp.time_relative": "since the conversation's first frame",
    "udp.time_delta": "since the conversation's previous frame",
})  # fmt: skip
_add("instant", {"tls.handshake.random_time": "the first bytes of the random as a time"})
_add("bool", {
    "eth.src.ig": "source: a group's address", "eth.dst.ig": "destination: a group's address",
    "eth.src.lg": "source: locally administered", "eth.dst.lg": "destination: locally administered",
    "eth.ig": "a group's address", "eth.lg": "locally administered", "arp.isgratuitous": "about the sender itself",
    "ip.flags.rb": "reserved bit", "ip.flags.df": "do not fragment", "ip.flags.mf": "more fragments",
    "dns.flags.truncated": "truncated", "dns.flags.recdesired": "recursion desired",
    "dns.flags.checkdisable": "checking disabled", "dns.flags.authoritative": "authoritative",
    "dns.flags.recavail": "recursion available", "dns.flags.authenticated": "answer authenticated",
    "vlan.dei": "drop eligible", "frame.marked": "marked in Wireshark: never",
    "frame.ignored": "ignored in Wireshark: never", "arp.isprobe": "asks whether an address is in use",
    "arp.isannouncement": "a gratuitous request", "dns.flags.z": "reserved bit", "dns.resp.z.do": "accepts DNSSEC",
    "ipv6.fraghdr.more": "more fragments", "icmpv6.nd.ra.flag.m": "addresses from DHCPv6",
    "icmpv6.nd.ra.flag.o": "other configuration from DHCPv6", "icmpv6.nd.ra.flag.h": "home agent",
    "icmpv6.nd.ra.flag.p": "proxy", "icmpv6.nd.na.flag.r": "router", "icmpv6.nd.na.flag.s": "solicited",
    "icmpv6.nd.na.flag.o": "override",
}, 1)  # fmt: skip
_add("int", {
    "ipv6.tclass": "traffic class", "ipv6.flow": "flow label", "icmpv6.mtu": "MTU", "dns.resp.ttl": "seconds to live",
    "frame.interface_id": "the interface's number, of pcapng", "ip.checksum.status": "2: not verified",
    "udp.checksum.status": "2: not verified, 3: none", "tcp.checksum.status": "2: not verified",
    "udp.stream": "the conversation's number", "icmp.resp_in": "the frame of the reply",
    "icmp.resp_to": "the frame of the request", "dns.txt.length": "length of a text", "dns.srv.priority": "priority",
    "dns.srv.weight": "weight", "dns.srv.port": "port", "dns.mx.preference": "preference",
    "dns.soa.serial_number": "serial number", "dns.soa.refresh_interval": "seconds",
    "dns.soa.retry_interval": "seconds", "dns.soa.expire_limit": "seconds", "dns.soa.minimum_ttl": "seconds",
    "dns.flags.opcode": "0 is a query", "arp.duplicate-address-frame": "the last frame in which that one had it",
    "tls.record.version": "version of the record", "tls.record.length": "length", "tls.handshake.length": "length",
    "tls.handshake.version": "version of the hello", "tls.handshake.ciphersuite": "offered or chosen",
    "tls.handshake.extension.type": "extensions of the hello",
    "tls.handshake.extensions.supported_version": "versions offered or chosen",
    "frame.encap_type": "the link layer, by Wireshark's own number: 1 is Ethernet", "eth.src.oui": "source: its maker",
    "eth.dst.oui": "destination: its maker", "eth.addr.oui": "both makers",
    "icmp.ident_le": "identifier, little-endian", "eth.fcs": "checksum of the frame, where it was captured",
    "ipv6.fraghdr.ident": "identification", "ipv6.fraghdr.offset": "offset in 8 bytes",
    "icmpv6.nd.ra.router_lifetime": "seconds", "icmpv6.nd.ra.reachable_time": "ms", "icmpv6.nd.ra.retrans_timer": "ms",
    "icmpv6.opt.mtu": "MTU", "icmpv6.opt.prefix.valid_lifetime": "seconds",
    "icmpv6.opt.prefix.preferred_lifetime": "seconds", "ip.opt.ra": "router alert",
    "dns.count.labels": "labels of the name in question", "dns.rr.udp_payload_size": "bytes that fit into an answer",
    "dns.resp.z": "flags of EDNS0", "tls.handshake.cipher_suites_length": "bytes of the offered suites",
    "tls.handshake.extensions_length": "bytes of the extensions",
    "tls.handshake.extension.len": "bytes of an extension",
    "tls.handshake.extensions_server_name_list_len": "bytes of the names", "tls.handshake.certificate_length": "bytes",
    "tls.handshake.extensions_server_name_len": "letters of the SNI", "tls.handshake.certificates_length": "bytes",
    "tls.handshake.extensions_supported_groups_length": "bytes", "tls.handshake.sig_hash_alg_len": "bytes",
    "tls.handshake.extensions_supported_group": "groups offered or chosen",
    "tls.handshake.sig_hash_alg": "signature algorithms", "tls.handshake.extensions_alpn_len": "bytes",
    "tls.handshake.extensions_key_share_client_length": "bytes", "tls.handshake.extensions_key_share_group": "group",
    "tls.handshake.extensions_key_share_key_exchange_length": "bytes",
    "tls.handshake.session_ticket_lifetime_hint": "seconds", "tls.handshake.session_ticket_length": "bytes",
    "tls.handshake.server_named_curve": "curve of the server's key",
    "dns.opt.code": "which option: 8 is the client's subnet, 10 a cookie", "dns.opt.len": "its bytes", **NUMBERS,
}, 32)  # fmt: skip
_add("int", {
    "ip.version": "4, or 6 of IPv6", "ip.hdr_len": "header length in bytes",
    "ip.dsfield": "differentiated services and ECN", "ip.flags": "the three flags as a number",
    "ip.proto": "protocol: 1 ICMP, 6 TCP, 17 UDP", "icmp.type": "type", "icmp.code": "code", "icmpv6.type": "type",
    "icmpv6.code": "code", "ipv6.version": "6", "ipv6.nxt": "next header", "tcp.hdr_len": "header length in bytes",
    "tcp.flags.res": "reserved bits", "tcp.option_kind": "kinds of its options",
    "tcp.option_len": "lengths of its options", "tls.record.content_type": "21 alert, 22 handshake, 23 data",
    "tls.record.opaque_type": "the same of TLS 1.3",
    "tls.handshake.type": "1 ClientHello, 2 ServerHello, 11 Certificate", "tls.alert_message.level": "2 is fatal",
    "tls.alert_message.desc": "which alert", "tls.handshake.session_id_length": "length of the session's id",
    "arp.hw.size": "bytes of a hardware address", "arp.proto.size": "bytes of a protocol address",
    "ip.opt.type": "types of its options", "ip.opt.len": "lengths of its options",
    "icmp.checksum.status": "0: wrong, 1: right, 2: not verified",
    "icmpv6.checksum.status": "0: wrong, 1: right, 2: not verified", "ipv6.fraghdr.nxt": "next header",
    "ipv6.routing.type": "type of the routing header", "ipv6.routing.segleft": "segments left",
    "icmpv6.nd.ra.cur_hop_limit": "hop limit", "icmpv6.nd.ra.flag": "flags", "icmpv6.nd.ra.flag.prf": "preference",
    "icmpv6.opt.type": "types of options", "icmpv6.opt.length": "lengths in 8 bytes",
    "icmpv6.opt.prefix.length": "bits of the prefix", "tcp.options.mptcp.subtype": "subtype",
    "tcp.options.mptcp.version": "version", "dns.resp.ext_rcode": "upper bits of the code",
    "dns.resp.edns0_version": "version of EDNS", "tls.handshake.comp_methods_length": "bytes",
    "tls.handshake.comp_method": "compression", "tls.handshake.extensions_server_name_type": "0: a host",
    "tls.handshake.extensions_ec_point_formats_length": "bytes",
    "tls.handshake.extensions_ec_point_format": "point formats", "tls.handshake.sig_hash_hash": "hash of a signature",
    "tls.handshake.sig_hash_sig": "algorithm of a signature", "tls.handshake.extensions_alpn_str_len": "letters",
    "tls.handshake.extensions.supported_versions_len": "bytes", "tls.handshake.extensions_reneg_info_len": "bytes",
    "tls.handshake.server_curve_type": "3: a named curve", "tls.handshake.server_point_len": "bytes",
    "tls.handshake.client_point_len": "bytes",
}, 8)  # fmt: skip
_add("text", {
    "dns.txt": "texts of an answer", "dns.srv.target": "server of a service", "dns.soa.mname": "main name server",
    "dns.soa.rname": "whom to write to", "ip.src_host": "source as text", "ip.dst_host": "destination as text",
    "ip.host": "both as text", "ipv6.src_host": "source as text", "ipv6.dst_host": "destination as text",
    "ipv6.host": "both as text", "tcp.flags.str": "the flags as Wireshark shows them",
    "dns.cname": "names of an answer", "dns.ns": "name servers", "dns.resp.name": "name of a record",
    "dns.ptr.domain_name": "name of an address", "dns.mx.mail_exchange": "mail servers",
    "tls.handshake.extensions_server_name": "SNI", "tls.handshake.extensions_alpn_str": "protocols offered or chosen",
    "tls.handshake.ja3": "JA3 of a ClientHello", "tls.handshake.ja3_full": "what it is made of",
    "tls.handshake.ja3s": "JA3S of a ServerHello", "tls.handshake.ja3s_full": "what it is made of",
    "frame.protocols": "the layers, as eth:ethertype:ip:tcp:http", "dns.srv.service": "service of a record's name",
    "dns.srv.proto": "protocol of a record's name", "dns.srv.name": "domain of a record's name",
})  # fmt: skip
