"""The sentences of an answer in English: id to template, and nothing else. `words/__init__.py` says how they are read.

A finding's sentence has no full stop and begins in lower case, unless with a name: it also stands behind other words.
"""

from __future__ import annotations

_MTU = (
    'Let ICMP "fragmentation needed" (IPv6: "packet too big") reach the sender, or clamp the MSS to the path '
    "(nft: tcp option maxseg size set rt mtu; iptables: TCPMSS --clamp-mss-to-pmtu), or lower the interface's MTU."
)
_STALLED = (
    "Find what the server's program waited for when it stopped (its log, a stack dump, the server behind it); the "
    "client should end such a wait with a time-out of its own and ask again."
)
_POOL = (
    "More workers (php-fpm: pm.max_children; gunicorn: --workers; more threads or processes), quicker work, or fewer "
    "requests at once."
)
_BUFFERED = (
    "Switch the proxy's buffering off for it (nginx: proxy_buffering off, or the answer's header X-Accel-Buffering: "
    "no; Apache: flushpackets=on), and no compression that waits for more."
)
"""Fixes that several sentences share."""

SENTENCES = {
    # in front of a connection: names
    "dns_dead": (
        "DNS: {n} {n:lookup|lookups} waited {span_ms} for the name server {server}, which never answered; then "
        "{other} was asked, and answered in {other_ms} ({name})"
    ),
    "dns_dead.fix": (
        "Take {server} out of resolv.conf or mend it; until then a short time-out (options timeout:1 attempts:2), or "
        "a caching resolver on the host."
    ),
    "dns_lost": (
        "DNS: {n} {n:lookup|lookups} waited {span_ms} because a question to {server} or its answer was lost, and was "
        "asked again only after the resolver's time-out ({kind} of {name})"
    ),
    "dns_lost.fix": (
        "Find where UDP to {server} is lost; until then a short time-out (options timeout:1 in resolv.conf), or a "
        "caching resolver on the host."
    ),
    "dns_lost_pair": (
        "DNS: {n} {n:lookup|lookups} waited {span_ms} for the lost {kind} answer of {server}, while the other "
        "address family's was there at once: both are asked from one socket, and the resolver waits for its time-out "
        "({name})"
    ),
    "dns_lost_pair.fix": (
        "options single-request-reopen timeout:1 in resolv.conf (two sockets, a short time-out), or a caching "
        "resolver on the host; look for a firewall or NAT that drops the second answer."
    ),
    "dns_search": (
        "DNS: {n} {n:lookup|lookups} took {span_ms} longer because {needless} {needless:name|names} of the search "
        "list {needless:was|were} tried first and {needless:does|do} not exist (NXDOMAIN; {tried} before {name})"
    ),
    "dns_search.fix": (
        "Lower ndots (options ndots:1 in resolv.conf, dnsConfig in Kubernetes), or write the name with a trailing dot."
    ),
    "dns_slow": "DNS: {n} {n:lookup|lookups} took {span_ms} at the name server {server} ({kind} of {name})",
    "dns_slow.fix": "Find what {server} waits for (its own forwarders, recursion), or put a cache before it.",
    "dns_failed": (
        "DNS: {n} {n:lookup|lookups} failed with {status} after {span_ms} at the name server {server} ({kind} of "
        "{name})"
    ),
    "dns_failed.fix": "Find why {server} cannot resolve {name}: its forwarders, or the zone's own servers.",
    "dns_never": (
        "DNS: {n} {n:lookup was|lookups were} never answered by {server}; the client asked for {span_ms} ({kind} of "
        "{name})"
    ),
    "dns_never.fix": "Mend the name server {server} or the way to it, or take it out of resolv.conf.",
    # what the capture is of
    "mostly_other": "Mostly no TCP: {other}; {rest}",
    # what takes the time of answered requests
    "late_close": (
        "the server's program, which closes the connection late: these answers end only with its FIN (no "
        "Content-Length)"
    ),
    "late_close.fix": (
        "Send Content-Length or chunked encoding, or close right behind the last byte: without a length the client has "
        "to wait for the connection's end."
    ),
    "pool_of_one": (
        "{server} answers one at a time: {n} requests that came together waited for each other (each takes {each_ms}, "
        "the last waited {most_ms})"
    ),
    "pool_of_one.fix": _POOL,
    "pool_of_some": (
        "{server} answers {workers} at a time: {n} requests that came together waited for each other (each takes "
        "{each_ms}, the last waited {most_ms})"
    ),
    "pool_of_some.fix": _POOL,
    "buffered_events": (
        "{server} buffers the event stream of {behind}: its first event was there after {first_ms}, and it passed "
        "events on only {held_ms} later, all at once ({name}, frame {frame})"
    ),
    "buffered_events.fix": _BUFFERED,
    "buffered": (
        "{server} collects the answer of {behind} before it passes it on: that began after {first_ms}, and its client "
        "got the first byte {held_ms} later ({name}, frame {frame})"
    ),
    "buffered.fix": _BUFFERED,
    # handshakes and answers that failed
    "tls_alert": (
        "{server}: {n} of {of} TLS {of:handshake|handshakes} failed: the {side} sent the alert {alert} (frame {frame})"
    ),
    "tls_alert.fix": "{hint}",
    # connections that hang
    "stalled_answer": (
        "{server} stopped in the middle of its answer to {name} (frame {frame}): after {bytes} bytes nothing more came "
        "for {span_ms}, until {until}"
    ),
    "stalled_answers": (
        "{server} stopped in the middle of {n} of {of} answers, one of them to {name} (frame {frame}): after {bytes} "
        "bytes nothing more came for {span_ms}, until {until}"
    ),
    "stalled_answer.fix": _STALLED,
    "stalled_answers.fix": _STALLED,
    "path_mtu": (
        "packets with {length} bytes of data do not get through from {sender} to {receiver}, smaller ones do (path MTU "
        "black hole): on {n} {n:connection|connections} they were repeated up to {repeats} times, for {span_ms}, and "
        "never acknowledged"
    ),
    "path_mtu_in_vain": (
        "full-size packets from {sender} to {receiver} never arrive here, smaller ones do (path MTU black hole): on "
        "{n} {n:connection|connections} {length} bytes were missing for {span_ms}"
    ),
    "path_mtu_perhaps": (
        "packets with {length} bytes of data from {sender} to {receiver} were repeated {repeats} times in {span_ms} "
        "and never acknowledged, while small ones had been and the receiver was alive: their size may be more than the "
        "path's MTU"
    ),
    "path_mtu_cut": (
        "packets with {length} bytes of data did not get through from {sender} to {receiver} (path MTU): after "
        "{span_ms} they were sent again with {cut} bytes, and passed; so on {n} {n:connection|connections}"
    ),
    "path_mtu_icmp": (
        "packets with {length} bytes of data are too big for the path from {sender} to {receiver}: ICMP said so {told} "
        "{told:time|times} (next hop MTU {mtu}), and the sender repeated them all the same, {repeats} times in "
        "{span_ms}"
    ),
    "path_mtu_icmp_heeded": (
        "packets with {length} bytes of data were too big for the path from {sender} to {receiver}: ICMP said so (next "
        "hop MTU {mtu}), and smaller ones followed after {span_ms}"
    ),
    "path_mtu.fix": _MTU,
    "path_mtu_in_vain.fix": _MTU,
    "path_mtu_perhaps.fix": _MTU,
    "path_mtu_cut.fix": _MTU,
    "path_mtu_icmp_heeded.fix": _MTU,
    "path_mtu_icmp.fix": (
        "Let the ICMP messages reach the sender's kernel (a firewall on the host, a balancer that does not pass them "
        "on), or clamp the MSS to {mss} at the router (tcp option maxseg size set rt mtu)."
    ),
    "keepalive_race": (
        "{server} closed {n} {n:connection that was|connections that were} idle for {idle_ms:s}, just as the next "
        "request was on its way ({name}, frame {frame}): its keep-alive time-out raced the client"
    ),
    "keepalive_race.fix": (
        "Let the client give up idle connections sooner than the server does ({idle_ms:s}{timer}), or raise the "
        "server's keep-alive time-out above the client's; a request that meets the close may be sent again on a new "
        "connection."
    ),
    "idle_reset": (
        "after {idle_ms:s} idle {n} {n:connection|connections} to {server} met an RST at the next request ({name}, "
        "frame {frame}): its other end, or a balancer or firewall between, had forgotten {n:it|them}"
    ),
    "idle_reset.fix": (
        "Close idle connections at the client sooner than that, or send TCP keep-alives before it "
        "(net.ipv4.tcp_keepalive_time, SO_KEEPALIVE): the idle time-out on the way is {least}at most "
        "{idle_ms:s}{timer}."
    ),
    "idle_drop": (
        "after {idle_ms:s} idle {n} {n:connection|connections} to {server} {n:was|were} dead: the client repeats its "
        "data {repeats} times and gets no acknowledgement for {span_ms}, while a new connection works: a firewall, NAT "
        "or balancer between has dropped the idle one without a word"
    ),
    "idle_drop.fix": (
        "Close idle connections at the client sooner than that, or send TCP keep-alives before it "
        "(net.ipv4.tcp_keepalive_time, SO_KEEPALIVE): the idle time-out on the way is {least}at most "
        "{idle_ms:s}{timer}; TCP_USER_TIMEOUT ends the wait for a dead connection."
    ),
    # what an alert asks for
    "alert_trust": (
        "The client does not trust the server's certificate: give the client that CA, or let the server send its "
        "intermediate certificates."
    ),
    "alert_expired": "Renew the certificate (or set the clock right).",
    "alert_versions": (
        "The two sides have no protocol version or cipher in common: allow one that both know (ssl_protocols, "
        "MinProtocol, the client's TLS version)."
    ),
    "alert_name": "Ask for a name or protocol that this server serves (SNI, ALPN).",
    "alert_client": "The server wants a client certificate that it trusts.",
    "alert_other": "The log of the side that sent the alert says more.",
    # what limits a transfer
    "transfer_window": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {receiver}'s receive window ({window}) "
        "allows no more at "
        "{rtt_ms} of round trip{would}"
    ),
    "transfer_window.fix": (
        "Raise the {receiver}'s receive buffer to {needed} and more: leave out SO_RCVBUF, or raise it and "
        "net.ipv4.tcp_rmem."
    ),
    "transfer_unscaled": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: without window scaling the {receiver}'s receive window "
        "({window}) allows no more at {rtt_ms} of round trip{would}"
    ),
    "transfer_unscaled.fix": (
        "Switch window scaling on at both ends (net.ipv4.tcp_window_scaling=1), or find the middlebox that removes the "
        "option from the SYN; a larger buffer alone changes nothing."
    ),
    "transfer_reader": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {receiver}'s program reads too slowly, and its receive "
        "window is full"
    ),
    "transfer_reader.fix": (
        "Read faster, or in larger pieces, in the {receiver}'s program: a larger window or line changes nothing."
    ),
    "transfer_program": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {sender}'s program pauses between its writes"
    ),
    "transfer_program.fix": (
        "Find what the {sender}'s program waits for between its writes: path and windows have room."
    ),
    "transfer_far": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {sender} pauses while window and path have room: its "
        "program, a rate limit or its send buffer (a capture at the {sender} tells which)"
    ),
    "transfer_buffer": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {sender} never has more in flight than "
        "before, with room "
        "in window and path: probably its send buffer (SO_SNDBUF, net.ipv4.tcp_wmem)"
    ),
    "transfer_pacing": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {sender} sends at even times (pacing: "
        "SO_MAX_PACING_RATE, tc, or its own rate limit)"
    ),
    "transfer_lost": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: {lost} {lost:segment was|segments were} lost "
        "and sent again, "
        "and the {sender} slows down for each loss"
    ),
    "transfer_lost.fix": (
        "Find where the path drops packets (cable, radio, duplex, policer): losses, not the line, set the rate."
    ),
    "transfer_marked": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the path marks segments (ECN), and the {sender} slows down "
        "for them"
    ),
    "transfer_reordered": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the path reorders segments, which the "
        "{sender} takes for losses"
    ),
    "transfer_start": (
        "{end}: {what} of {size} took {took_ms} at {rate}: slow start, which begins with ten segments "
        "and doubles them "
        "each round trip ({rtt_ms})"
    ),
    "transfer_start.fix": (
        "Keep connections open and warm (net.ipv4.tcp_slow_start_after_idle=0), move it nearer to the {receiver}, or "
        "raise the {sender}'s initial window (ip route ... initcwnd)."
    ),
    "transfer_line": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the line carries no more; round trips take {loaded_ms} "
        "meanwhile, {rtt_ms} when idle"
    ),
    "transfer_line.fix": (
        "The line is full: send less (compression, caching) or have more of it; fq_codel or CAKE before it keeps other "
        "traffic quick meanwhile."
    ),
    "transfer_bloat": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}, fills the line and the queue before it: round trips take "
        "{loaded_ms} meanwhile, {rtt_ms} when idle, for whatever else uses the line"
    ),
    "transfer_bloat.fix": (
        "Manage the queue where the line begins (fq_codel, CAKE), or pace the {sender} below the line's rate: other "
        "traffic is quick again; the transfer itself is as fast as the line."
    ),
    "transfer_line_or": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: segments come one by one at an even rate: perhaps the line, "
        "perhaps {rival}"
    ),
    "transfer_http2": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: HTTP/2 flow control: the {receiver}'s window lets through "
        "only so much before its next WINDOW_UPDATE, {rtt_ms} of round trip away"
    ),
    "transfer_http2.fix": (
        "Raise the {receiver}'s HTTP/2 windows, of streams (SETTINGS_INITIAL_WINDOW_SIZE) and of the connection."
    ),
    "transfer_would": "; with {needed} up to the {burst} at which its segments follow each other",
    "transfer_or_pacing": "a rate limit",
    "transfer_or_receiver_window": "the receive window",
    "one_error": "{server} answers with an error: {status}",
    # parts of these
    "clients": "its clients",
    "until_end": "the capture's end",
    "until_client": "the client gave up",
    "until_server": "it closed the connection",
    "timer_least": "more than {longest_ms:s} and ",
    "timer_like": "; that is like {whose}",
    "timer_5": "Node's keepAliveTimeout, Apache's KeepAliveTimeout",
    "timer_10": "a keep-alive time-out of 10 s",
    "timer_15": "a keep-alive time-out of 15 s",
    "timer_60": "an AWS ALB, HAProxy or proxy time-out of 60 s",
    "timer_65": "nginx's keepalive_timeout as shipped by some",
    "timer_75": "nginx's keepalive_timeout",
    "timer_120": "IIS, Go programs",
    "timer_240": "Azure's load balancer and NAT",
    "timer_300": "a firewall's or proxy's 5 min",
    "timer_350": "AWS NLB and NAT gateway",
    "timer_600": "Google Cloud's 10 min",
    "timer_900": "a firewall's 15 min",
    "timer_1800": "a firewall's 30 min",
    "timer_3600": "a firewall's hour",
    "timer_7200": "the kernel's tcp_keepalive_time",
    "timer_28800": "MySQL's wait_timeout",
    "timer_432000": "conntrack's 5 days",
    # in front of a connection: the link, and tunnels
    "arp_late": (
        "{what}: {address} did not answer who has its address: {client} asked {requests} times, and waited {span_ms} "
        "before it could send anything there"
    ),
    "arp_late.fix": (
        "Find why {address} does not answer at first: a switch port that is not forwarding yet (spanning tree: "
        "portfast), a wrong VLAN, a dropped broadcast, a host that sleeps."
    ),
    "tunnel_checksum": (
        "{n} of {of} {of:connection|connections} to {server} waited {span_ms} for {repeats} {repeats:SYN|SYNs} in a "
        "tunnel whose outer UDP checksum is wrong: the tunnel's other end drops them"
    ),
    "tunnel_checksum.fix": (
        "Switch off the checksum offload that breaks it (ethtool -K DEVICE tx off, tx-udp_tnl-csum-segmentation off) "
        "on the tunnel's device, or update its driver; unless the card fills it in behind the capture."
    ),
    # in front of a connection: addresses
    "family_dead": (
        "{family} to {server} is a black hole: {n} {n:connection|connections} waited {span_ms} for SYNs that nobody "
        "answered, before the client fell back to {other_family} ({other})"
    ),
    "family_dead.fix": (
        "Mend the {family} route or the firewall that drops it, or take that address out of DNS; until then let "
        "clients prefer {other_family} (gai.conf), or race both (Happy Eyeballs)."
    ),
    "address_dead": (
        "{address} does not answer: {n} {n:connection|connections} to {server} waited {span_ms} for SYNs that nobody "
        "answered, before the client tried the next address ({other})"
    ),
    "address_dead.fix": (
        "Take {address} out of DNS or mend it; let clients try the next address sooner (connect time-out)."
    ),
    "family_refused": (
        "{server} refused {n} {n:connection|connections} (RST; it does not listen on {family}): the client tried for "
        "{span_ms}, {repeats} {repeats:SYN|SYNs} each, before it used {other_family} ({other})"
    ),
    "family_refused.fix": (
        "Let the server listen on {family}, too, or name the {other_family} address (127.0.0.1 instead of "
        "localhost); or take the {family} address out of DNS and the hosts file."
    ),
    "address_refused": (
        "{server} refused {n} {n:connection|connections} (RST; it does not listen there): the client tried for "
        "{span_ms}, {repeats} {repeats:SYN|SYNs} each, before it used {other}"
    ),
    "address_refused.fix": "Let the server listen on {address}, too, or connect to the address that it listens on.",
    "syn_other_address": (
        "{n} of {of} {of:connection|connections} to {server} got the SYN-ACK from another address, {other}, and "
        "never came about: the answer was not translated back (NAT), so the client rejects it"
    ),
    "syn_other_address.fix": (
        "Let answers pass the NAT that translated the SYN: the same route back, conntrack on that node, masquerading "
        "of traffic from the same host or subnet (hairpin)."
    ),
    "data_other_address": (
        "an answer of {server} stopped half way for {span_ms}: its segments came from another address, {other}, not "
        "translated back (NAT), and the client answered them with RST"
    ),
    "data_other_address.fix": (
        "Drop packets that conntrack calls invalid (iptables -m conntrack --ctstate INVALID -j DROP), or set "
        "nf_conntrack_tcp_be_liberal=1, on the node that translates."
    ),
    "syn_old_stamp": (
        "{n} of {of} {of:connection|connections} to {server} got no answer to {repeats:its SYN|their SYNs} for "
        "{span_ms}: their time stamps (TSval) are older than those of others from {client}, whose SYNs are answered"
    ),
    "syn_old_stamp.fix": (
        "Switch off tcp_tw_recycle on the server (Linux before 4.12): behind a NAT it drops SYNs with older time "
        "stamps (PAWS)."
    ),
    "syn_challenged": (
        "{n} of {of} {of:connection|connections} to {server} took {span_ms} to be set up: the SYN met an old "
        "connection on the same port (TIME_WAIT), was answered with a challenge ACK, reset, and sent again"
    ),
    "syn_challenged.fix": (
        "Reuse connections instead of ports: keep them open, or widen ip_local_port_range, so that no port comes "
        "again while the server still has its old connection."
    ),
    "syn_ecn": (
        "{n} of {of} {of:connection|connections} to {server} took {span_ms} to be set up: SYNs that offer ECN (ECE, "
        "CWR) were dropped, those without it were answered"
    ),
    "syn_ecn.fix": (
        "Find the firewall that drops SYNs with ECN and let them pass; until then net.ipv4.tcp_ecn=2 on the client."
    ),
    "syn_queue_full": (
        "{n} of {of} {of:connection|connections} to {server} took {span_ms} to be set up: their SYNs reached the "
        "server's host, which did not answer until they came again; its accept queue was full"
    ),
    "syn_queue_full.fix": (
        "Let the server accept sooner, or raise its listen backlog and net.core.somaxconn (nstat: ListenOverflows "
        "counts them)."
    ),
    "greeting_late": (
        "{server} let {n} {n:connection|connections} wait {span_ms} for its greeting: it speaks first here, and said "
        "nothing after the handshake until then"
    ),
    "greeting_late.fix": (
        "Look for a reverse lookup of the client's address (MySQL: skip-name-resolve; SSH: UseDNS no; mail and FTP: "
        "reverse lookups, ident), or a greeting delay that is configured."
    ),
    # round trips
    "tls_certificates": (
        "{n} of {of} TLS {of:handshake|handshakes} with {server} took {span_ms} longer, one more round trip: the "
        "server's certificates are more than its initial congestion window lets out at once"
    ),
    "tls_certificates.fix": (
        "A shorter chain (no root, ECDSA instead of RSA keys), certificate compression, session resumption, or a "
        "larger initcwnd on the server's route; and keep connections open."
    ),
    "tls_each": (
        "each of {n} requests to {server} opened a new TLS connection: the handshakes took {span_ms} of each, "
        "several round trips of {trip_ms} where a kept connection takes one"
    ),
    "tls_each.fix": "Reuse connections (keep-alive, a pool, HTTP/2) on the client, or resume TLS sessions.",
    "in_turn": (
        "{n} requests to {server} were made one after the other, a round trip of {trip_ms} each: {run} in a row took "
        "{whole_ms}, nearly all of it the path"
    ),
    "in_turn.fix": (
        "Ask for many at once: one query for all rows (N+1), MGET, a batch or a pipeline, or requests in parallel."
    ),
    # beyond what is looked at
    "servers_left": (
        "{n} further {n:server|servers} with {requests} {requests:request|requests}, {slow} of them slow, have no rows "
        "of their own: the {most} with the most slow requests have"
    ),
}
