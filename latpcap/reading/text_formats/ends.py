"""Converts the hosts and services that a text shows to addresses and port numbers.

A host name gets an address of the benchmarking ranges (198.18.0.0/15, 2001:2::/48; RFC 2544, RFC 5180). It is the same
address wherever the name occurs in the text.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass, field

from latpcap.reading.text_formats.frames import Address

_DASHED = re.compile(r"^(?:[a-z]+\d*-)*(\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})(?![\d-])", re.I)
_LOOPBACK = {"localhost", "localhost.localdomain", "ip6-localhost", "localhost6", "loopback"}
_FIRST_IPV4 = int(ipaddress.IPv4Address("198.18.0.1"))
_FIRST_IPV6 = int(ipaddress.IPv6Address("2001:2::1"))
_MAX_NAMES = 1 << 16
"""Upper bound on the addresses for names; all further names share the last one."""
_PORTS = {
    "ftp-data": 20, "ftp": 21, "ssh": 22, "telnet": 23, "smtp": 25, "domain": 53, "bootps": 67, "bootpc": 68,
    "tftp": 69, "http": 80, "www": 80, "kerberos": 88, "pop3": 110, "sunrpc": 111, "ntp": 123, "epmap": 135,
    "netbios-ns": 137, "netbios-dgm": 138, "netbios-ssn": 139, "imap2": 143, "imap": 143, "snmp": 161, "snmptrap":
    162, "bgp": 179, "ldap": 389, "https": 443, "microsoft-ds": 445, "submissions": 465, "isakmp": 500, "syslog":
    514, "shell": 514, "submission": 587, "ldaps": 636, "imaps": 993, "pop3s": 995, "socks": 1080, "openvpn":
    1194, "ms-sql-s": 1433, "l2f": 1701, "mqtt": 1883, "nfs": 2049, "zookeeper": 2181, "iscsi-target": 3260,
    "mysql": 3306, "ms-wbt-server": 3389, "svn": 3690, "ipsec-nat-t": 4500, "vxlan": 4789, "sip": 5060,
    "xmpp-client": 5222, "mdns": 5353, "postgresql": 5432, "amqps": 5671, "amqp": 5672, "x11": 6000, "geneve":
    6081, "redis": 6379, "afs3-fileserver": 7000, "http-alt": 8080, "webcache": 8080, "http-proxy": 8080,
    "pcsync-https": 8443, "secure-mqtt": 8883, "cslistener": 9000, "jetdirect": 9100, "git": 9418, "amanda":
    10080, "memcache": 11211, "mongodb": 27017,
}  # fmt: skip


@dataclass
class Ends:
    """The host and service names of one text, with the addresses and ports chosen for them."""

    hosts: dict[tuple[str, int], Address] = field(default_factory=dict)
    services: dict[str, int] = field(default_factory=dict)

    def address(self, word: str, version: int = 4) -> Address | None:
        """Return the address of a word: a literal, a dashed `ec2-192-0-2-1`, or a name. None for other words.

        `version` is the IP version of the address for a name; a literal may have the other version.
        """
        word = word.strip().strip("[]")
        literal = word.partition("%")[0]
        try:
            return ipaddress.ip_address(literal)
        except ValueError:
            pass
        name = word.lower().rstrip(".")
        if name in _LOOPBACK:
            return ipaddress.ip_address("::1" if version == 6 or "6" in name else "127.0.0.1")
        if version == 4 and (dashed := _DASHED.match(name)) and all(int(part) < 256 for part in dashed.groups()):
            return ipaddress.IPv4Address(".".join(str(int(part)) for part in dashed.groups()))
        if not re.fullmatch(r"[\w.:%/-]+", word) or not re.search(r"[^\W\d]", word):
            return None
        address = self.hosts.get((name, version))
        if address is None:
            number = min(len(self.hosts), _MAX_NAMES)
            v6 = version == 6
            address = ipaddress.IPv6Address(_FIRST_IPV6 + number) if v6 else ipaddress.IPv4Address(_FIRST_IPV4 + number)
            self.hosts[name, version] = address
        return address

    def port(self, word: str) -> int | None:
        """Return the number of a port or service. Unregistered services get 1023 and lower numbers."""
        if re.fullmatch(r"\d{1,5}", word):
            return int(word) & 0xFFFF
        name = word.lower()
        if not re.fullmatch(r"[a-z][\w+./-]*", name):
            return None
        if name in _PORTS:
            return _PORTS[name]
        if name not in self.services:
            try:
                self.services[name] = socket.getservbyname(name)
            except OSError:
                self.services[name] = 1023 - len(self.services) % 512
        return self.services[name]

    def end(self, word: str, version: int = 4) -> tuple[Address, int] | None:
        """Return address and port of `192.0.2.1.80` or `web.example.https`; None if one of them is missing."""
        host, _, port = word.rpartition(".")
        if not host or (version == 4 and re.fullmatch(r"\d+\.\d+\.\d+", host)):
            return None
        address, number = self.address(host, version), self.port(port)
        return (address, number) if address is not None and number is not None else None


def mac(word: str) -> bytes | None:
    """Return the six bytes of `02:42:ac:11:00:02` or `Broadcast`; None for other words."""
    is_mac = re.match(r"(?:[0-9a-f]{1,2}[:-]){5}[0-9a-f]{1,2}$", word, re.I)
    if not is_mac:
        return b"\xff" * 6 if word.strip(",").lower() == "broadcast" else None
    return bytes(int(part, 16) for part in re.split("[:-]", word))
