"""The sentences of an answer in English: id to template, and nothing else. `words/__init__.py` says how they are read.

A finding's sentence has no full stop and begins in lower case, unless with a name: it also stands behind other words.
"""

from __future__ import annotations

SENTENCES = {
    # in front of a connection: names
    "dns_dead": (
        "DNS: {n} {n:lookup|lookups} waited {span_ms} for the name server {server}, which never answered; then "
        "{other} was asked, and answered in {other_ms} ({name})"
    ),
    "dns_dead.fix": (
        "Take {server} out of resolv.conf or mend it; until then a short time-out (options timeout:1 attempts:2), or a "
        "caching resolver on the host."
    ),
    "dns_lost": (
        "DNS: {n} {n:lookup|lookups} waited {span_ms} because a question to {server} or its answer was lost, and was "
        "asked again only after the resolver's time-out ({kind} of {name})"
    ),
    "dns_lost.fix": (
        "Find where UDP to {server} is lost; until then a short time-out (options timeout:1 in resolv.conf), or "
        "a caching resolver on the host."
    ),
    "dns_lost_pair": (
        "DNS: {n} {n:lookup|lookups} waited {span_ms} for the lost {kind} answer of {server}, while the other address "
        "family's was there at once: both are asked from one socket, and the resolver waits for its time-out ({name})"
    ),
    "dns_lost_pair.fix": (
        "options single-request-reopen timeout:1 in resolv.conf (two sockets, a short time-out), or a caching "
        "resolver on the host; look for a firewall or NAT that drops the second answer."
    ),
    "dns_search": (
        "DNS: {n} {n:lookup|lookups} took {span_ms} longer because {needless} {needless:name|names} of the search list "
        "{needless:was|were} tried first and {needless:does|do} not exist (NXDOMAIN; {tried} before {name})"
    ),
    "dns_search.fix": (
        "Lower ndots (options ndots:1 in resolv.conf, dnsConfig in Kubernetes), or write the name with a trailing dot."
    ),
    "dns_slow": "DNS: {n} {n:lookup|lookups} took {span_ms} at the name server {server} ({kind} of {name})",
    "dns_slow.fix": "Find what {server} waits for (its own forwarders, recursion), or put a cache before it.",
    "dns_failed": (
        "DNS: {n} {n:lookup|lookups} failed with {status} after {span_ms} at the name server {server} "
        "({kind} of {name})"
    ),
    "dns_failed.fix": "Find why {server} cannot resolve {name}: its forwarders, or the zone's own servers.",
    "dns_never": (
        "DNS: {n} {n:lookup was|lookups were} never answered by {server}; the client asked for {span_ms} ({kind} of "
        "{name})"
    ),
    "dns_never.fix": "Mend the name server {server} or the way to it, or take it out of resolv.conf.",
}
