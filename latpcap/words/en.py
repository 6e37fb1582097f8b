"""The English catalogue: templates by id. `words/__init__.py` documents the templates.

A finding's sentence has no full stop and begins in lower case, unless with a name, because it may follow other words.
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
    "sites_folders": (
        "private addresses serve in captures of {n} folders and may be another machine in each: each folder is "
        "counted by itself (--sites one counts them as one)"
    ),
    "sites_captures": (
        "private addresses are other machines in some of the {n} captures, by their handshakes: each capture is "
        "counted by itself (--sites one counts them as one)"
    ),
    # before a connection: name lookups
    "dns_dead": (
        "DNS: {n} {n:lookup|lookups} waited {span_ms} for the name server {server}, which never answered; then "
        "{other} was asked, and answered in {other_ms} ({name})"
    ),
    "dns_dead.fix": (
        "Take {server} out of resolv.conf or mend it; until then a short time-out (options timeout:1 attempts:2), or "
        "a caching resolver on the host."
    ),
    "frozen": (
        "{server} answered nothing for {span_ms}: {n} requests on {streams} connections, which came one by one, then "
        "got their answers within {ends_ms} of each other; the first of them was {name} (frame {frame})"
        "{times:|, the longest of {times} such waits}"
    ),
    "frozen.fix": (
        "See what stopped the whole program of {server}: {name} itself, if requests are worked on one at a time, "
        "garbage collection, a disk that is flushed, a program without its processor."
    ),
    "stampede": (
        "{client} asked {server} for the same thing {n} times at once, and nobody between ({name}, frame {frame}): "
        "each took {span_ms}{times:|, in {times} such bursts}"
    ),
    "stampede.fix": (
        "Let one of them do the work for all who wait: a lock or single flight where a cache entry expires "
        "(proxy_cache_lock), or renew it before it does (stale-while-revalidate); and make this request cheaper."
    ),
    "pool_before": (
        "{server} passes {workers:one request|{workers} requests} at a time on to {behind}: {n} requests waited in it "
        "for their turn (each takes {each_ms} at {behind}, the last waited {most_ms})"
    ),
    "pool_before.fix": (
        "Raise the limit of connections to {behind} (HAProxy: maxconn of the server line; nginx: max_conns; a client's "
        "pool), put more servers beside it, or shorten each request there: {behind} takes as long however many wait."
    ),
    "behind_session": (
        "{server}: {n} {n:request|requests} waited {span_ms} ({name}, frame {frame}) until another of the same client "
        "was done ({other}, frame {other_frame}; {after_ms} behind it), while others got the same thing at once"
    ),
    "behind_session.fix": (
        "Let {other} give the session's lock back early (PHP: session_write_close() before long work; ASP.NET: "
        "EnableSessionState ReadOnly), or keep sessions where several requests read them at a time."
    ),
    "broker_blocked": (
        "{server} blocked its publishers (connection.blocked, frame {frame}): {n} {n:request|requests} waited "
        "{span_ms} until it took messages again ({name})"
    ),
    "broker_blocked.fix": (
        "Mend the alarm of the broker {server} (rabbitmqctl status: memory or disk): drain its queues, give it memory "
        "or disk, raise vm_memory_high_watermark or disk_free_limit; let publishers heed connection.blocked."
    ),
    "client_id_twice": (
        "{client} and {other} log in to {server} with one client id, {id}: each log-in ended the other's session, {n} "
        "times, after {lasted_ms} each at the median (frame {frame}); away for {span_ms}"
    ),
    "client_id_twice.fix": (
        "Give each of {client} and {other} a client id of its own: a broker keeps one session for each id."
    ),
    "session_idled": (
        "{server} closes connections that are idle for {idle_ms:s}: {n} of {client}, which opened the next {span_ms} "
        "later (frame {frame})"
    ),
    "session_idled.fix": (
        "Have either side say something more often than every {idle_ms:s} (WebSocket pings, keep-alives, heartbeats: "
        "every {half_ms:s}), or raise the idle time-out of {server} or of the balancer in front of it."
    ),
    "reset_between": (
        "an RST in the name of {who} ended {n} {n:connection|connections} with {other} (frame {frame}), but {who} went "
        "on acknowledging what it got: something between sent it, or {who} got packets whose addresses were not "
        "translated back (NAT)"
    ),
    "reset_between.fix": (
        "Look at the NAT, firewall or balancer between for packets that its connection tracking calls invalid: drop "
        "them (ct state invalid drop) or let them be translated (net.netfilter.nf_conntrack_tcp_be_liberal=1)."
    ),
    "took_nothing_server": (
        "{server} took no data for {span_ms}{n:| each time}: its receive window was closed (from frame {frame} on"
        "{still}), because its program did not read"
    ),
    "took_nothing_server.fix": (
        "See what the program at {server} waited for then: a queue, disk or lock, garbage collection, a broker's "
        "memory or disk alarm. A larger receive buffer only delays it."
    ),
    "took_nothing_client": (
        "{client} took no data of {server} for {span_ms}{n:| each time}: its receive window was closed (from frame "
        "{frame} on{still}), because its program did not read"
    ),
    "still_closed": ", to the end",
    "took_nothing_client.fix": (
        "See what the program at {client} did when it did not read: work between its reads, a full queue or disk, a "
        "debugger, a paused player. A larger receive buffer only delays it."
    ),
    "client_onward": (
        "{server} does not answer {client}: while {other} waited for {client}, {n} {n:connection|connections} of it to "
        "{server} waited {span_ms} for SYNs that nobody answered"
    ),
    "client_onward.fix": (
        "Open the way to {server}, or spare {client} what it asks there before it goes on (revocation of a "
        "certificate: OCSP stapling, a CRL; a licence or log-in service), or let it give up sooner."
    ),
    "behind_one": (
        "{server}: {n} {n:request|requests} waited for {name} (frame {frame}, {span_ms}) and got their answers within "
        "{ends_ms} of its own, though they came one by one; others were answered meanwhile"
    ),
    "behind_one.fix": (
        "See which lock {name} holds on {server} while it runs: a session's (PHP: session_write_close() before long "
        "work), a row's or a table's (shorter transactions), a mutex."
    ),
    "ftp_address": (
        "{server} had its client connect to {other} for the data (PASV), another address than its own: nobody answered "
        "there, and {n} {n:transfer|transfers} waited {span_ms}"
    ),
    "ftp_address.fix": (
        "Let {server} name the address that its clients reach (vsftpd: pasv_address; ProFTPD: MasqueradeAddress), or "
        "use EPSV, which names none."
    ),
    "ftp_port": (
        "{server} had its client connect to {other} for the data (passive mode): nobody answered there, and {n} "
        "{n:transfer|transfers} waited {span_ms}"
    ),
    "ftp_port.fix": (
        "Open the ports of passive mode in the firewall before {server} (vsftpd: pasv_min_port, pasv_max_port; Linux: "
        "nf_conntrack_ftp)."
    ),
    "dns_reverse": (
        "{server} looked up the name of its client's address ({name}) at {other}, and {came}: {n} "
        "{n:request|requests} waited {span_ms} for that"
    ),
    "dns_reverse.fix": (
        "On {server}: mend or replace the name server {other}, or look up no names of clients (sshd: UseDNS no; "
        "MariaDB, MySQL: skip-name-resolve; Apache: HostnameLookups off)."
    ),
    "reverse_never": "no answer came",
    "reverse_late": "the answer came late",
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
    # what most of the capture is
    "mostly_other": "Mostly no TCP: {other}; {rest}",
    # causes of slow responses
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
    "at_a_rate": (
        "{server} lets out one answer each {each_ms}, on whichever connection, while others wait: {n} requests waited "
        "{span_ms} for their turn, for a limit of their rate, or for one worker that takes as long each time"
    ),
    "at_a_rate.fix": (
        "Look for a limit of the request rate at {server} (nginx: limit_req with a burst and without nodelay; HAProxy; "
        "an API gateway), and raise it, or ask less often; else for its one worker."
    ),
    "behind_other": (
        "{server} works on one request at a time, or on these: {n} {n:request|requests} waited {span_ms} ({name}, "
        "frame {frame}) and got {n:its answer|their answers} only when another was done ({other} of {client}, frame "
        "{other_frame})"
    ),
    "behind_other.fix": (
        "Speed up {other}, or give it workers of its own; more workers or threads, so that quick requests need not "
        "wait for it."
    ),
    "transaction_lock": (
        "{server}: {n} {n:request|requests} waited {span_ms} for a transaction of {client} ({name}, frame {frame}): "
        "it had begun before (frame {other_frame}), and {after_ms} after its {other} the answer came: a lock that it "
        "held"
    ),
    "transaction_lock.fix": (
        "Commit sooner in the program at {client}: nothing that takes time between BEGIN and COMMIT (lock_timeout, "
        "idle_in_transaction_session_timeout bound it)."
    ),
    "transaction_pool": (
        "{server}: {n} {n:request|requests} waited {span_ms} in its pool for a connection ({name}, frame {frame}), and "
        "{n:was|were} passed on only when a transaction of {client} ended ({other}; begun in frame {other_frame})"
    ),
    "transaction_pool.fix": (
        "A larger pool (pgbouncer: default_pool_size), or one of its own for {client}, and shorter transactions there; "
        "the database itself is not what takes this time."
    ),
    "buffered_events": (
        "{server} buffers the event stream of {behind}: its first event was there after {first_ms}, and it passed "
        "events on only {held_ms} later, several at once ({name}, frame {frame})"
    ),
    "buffered_events.fix": _BUFFERED,
    "buffered": (
        "{server} collects the answer of {behind} before it passes it on: that began after {first_ms}, and its client "
        "got the first byte {held_ms} later ({name}, frame {frame})"
    ),
    "buffered.fix": _BUFFERED,
    "proxy_queue": (
        "{server} keeps {n} requests for {held_ms} at the median before it passes them on to {behind} (the longest is "
        "{name}, frame {frame}): it sends at most {limit} at a time, {behind_ms} each, and the next one goes when an "
        "answer has come"
    ),
    "proxy_queue.fix": (
        "Raise the limit of {server} if {behind} can do more at a time (maxconn, the pool of connections, the number "
        "of workers), or give it more servers like {behind}: the requests wait in a queue, and nobody works on them."
    ),
    # failed TLS handshakes and responses
    "tls_alert": (
        "{server}: {n} of {of} TLS {of:handshake|handshakes} failed: the {side} sent the alert {alert} (frame {frame})"
    ),
    "tls_alert.fix": "{hint}",
    # retried until accepted
    "refused_until": (
        "{server} refused {n} of {of} {of:connection|connections} (RST: nothing listened there yet): the client tried "
        "again, and was accepted {span_ms:s} after the first try (frame {frame})"
    ),
    "refused_until.fix": (
        "Begin when {server} listens (a readiness check, a start order), or try again sooner: the pauses between the "
        "tries are the client's."
    ),
    "later_until": (
        "{server} answered {n} of {of} {of:request|requests} with {status}, {name} among them (frame {frame}): the "
        "client asked again, and got its answer {span_ms:s} after the first request"
    ),
    "later_until.fix": (
        "See why {server} answers {status} (overload, a rate limit, what it depends on), and what Retry-After it "
        "sends: the client's pause follows it, or is the client's own."
    ),
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
    "path_mtu_answer": (
        "{sender} answered {name} (frame {request_frame}), but nothing of the answer arrives at {receiver}: {length} "
        "bytes are missing by the numbers of its later packets (frame {frame}), while small packets arrive: perhaps "
        "the large ones are larger than the path's MTU; so on {n} {n:connection|connections}, for {span_ms}"
    ),
    "path_mtu_perhaps": (
        "packets with {length} bytes of data from {sender} to {receiver} were repeated {repeats} times in {span_ms} "
        "and never acknowledged, while small ones had been and the receiver was alive: their size may be more than the "
        "path's MTU"
    ),
    "path_mtu_or_gone": (
        "packets with {length} bytes of data from {sender} to {receiver} were repeated {repeats} times in {span_ms} "
        "and never acknowledged, while small ones had been: they are larger than the path's MTU, or {receiver} is gone"
    ),
    "path_mtu_or_gone.fix": (
        "Ping with packets of that size (ping -M do -s 1400): where small ones pass and large ones do not, clamp the "
        'MSS to the path (nft: tcp option maxseg size set rt mtu), or let ICMP\'s "too big" messages reach the sender.'
    ),
    "path_mtu_all": (
        "nothing that {sender} sends to {receiver} gets through: packets with {length} bytes of data, repeated "
        "{repeats} times in {span_ms} and never acknowledged, though the small ones of the handshake passed: perhaps "
        "they are larger than the path's MTU"
    ),
    "path_mtu_all.fix": _MTU,
    "path_mtu_cut": (
        "packets with {length} bytes of data did not get through from {sender} to {receiver} (path MTU): after "
        "{span_ms} they were sent again with {cut} bytes, and passed; so on {n} {n:connection|connections}"
    ),
    "path_mtu_icmp": (
        "packets with {length} bytes of data are too big for the path from {sender} to {receiver}: ICMP said so "
        "{notices} {notices:time|times} (next hop MTU {mtu}), and the sender repeated them all the same, "
        "{repeats} times in {span_ms}"
    ),
    "path_mtu_icmp_heeded": (
        "packets with {length} bytes of data were too big for the path from {sender} to {receiver}: ICMP said so (next "
        "hop MTU {mtu}), and smaller ones followed after {span_ms}"
    ),
    "path_mtu.fix": _MTU,
    "path_mtu_in_vain.fix": _MTU,
    "path_mtu_answer.fix": _MTU,
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
    "idle_drop_push": (
        "after {idle_ms:s} idle what {server} sends to {client} is repeated {repeats} times and never acknowledged for "
        "{span_ms}, while {client} is there on another connection: a firewall, NAT or balancer between has dropped the "
        "idle one without a word"
    ),
    "idle_drop_push.fix": (
        "Send something on idle connections sooner than that (heartbeats, pings, SO_KEEPALIVE with "
        "net.ipv4.tcp_keepalive_time): the idle time-out on the way is {least}at most {idle_ms:s}{timer}."
    ),
    "peer_gone": (
        "{silent} answers no more: {repeats} keep-alive probes of {prober} got nothing for {span_ms}, after "
        "{idle_ms:s} idle{until}"
    ),
    "peer_gone.fix": (
        "Find what ended the other side without a word (a host that crashed or lost its network, a NAT or firewall "
        "that forgot the connection); shorter keep-alives (TCP_KEEPIDLE, TCP_KEEPINTVL) notice it sooner."
    ),
    "probed_reset": "; then it closed the connection with RST",
    "probed_on": "",
    "client_of": "the client of {server}",
    # fixes of TLS alerts
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
    # limits of transfers
    "transfer_window": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {receiver}'s receive window ({window}) allows no more at "
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
    "transfer_level": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: never more than {flight} are in flight, and each ACK lets the "
        "next ones go ({loaded_ms} of round trip): the {receiver}'s receive window or the {sender}'s send buffer; the "
        "handshake, which has the window's scale, is not in this capture"
    ),
    "transfer_level.fix": (
        "Raise the {receiver}'s receive buffer (net.ipv4.tcp_rmem, SO_RCVBUF) and the {sender}'s send buffer "
        "(net.ipv4.tcp_wmem, SO_SNDBUF), or use several connections; a capture that begins before the connection tells "
        "which of them it is."
    ),
    "transfer_far": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {sender} pauses while window and path have room: its "
        "program, a rate limit or its send buffer (a capture at the {sender} tells which)"
    ),
    "transfer_buffer": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {sender} never has more in flight than before, with room "
        "in window and path: probably its send buffer (SO_SNDBUF, net.ipv4.tcp_wmem)"
    ),
    "transfer_pacing": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {sender} sends at even times (pacing: "
        "SO_MAX_PACING_RATE, tc, or its own rate limit)"
    ),
    "transfer_lost": (
        "{end}: {what} of {size} at {rate}, {took_ms:s}: {lost} {lost:segment was|segments were} lost and sent again, "
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
        "{end}: {what} of {size} took {took_ms} at {rate}: slow start, which begins with ten segments and doubles them "
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
    "slow_in_queue": (
        "{server}: {n} of {of} requests are slow, {during} of them while that transfer filled the queue, where they "
        "waited, too; what seems a program's time then is not proven to be one"
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
        "{end}: {what} of {size} at {rate}, {took_ms:s}: the {receiver}'s HTTP/2 window {scope} ({window}) allows no "
        "more at {rtt_ms} of round trip{would}"
    ),
    "transfer_http2.fix": (
        "Raise the {receiver}'s HTTP/2 windows to {needed} and more, of streams (SETTINGS_INITIAL_WINDOW_SIZE) and of "
        "the connection (WINDOW_UPDATE on stream 0)."
    ),
    "transfer_of_stream": "of each stream",
    "transfer_of_connection": "of the connection",
    "queue_cost": (
        "{n} requests to {server} took {loaded_ms} while {what} of {end} filled the line, {idle_ms} before and after "
        "it: its queue cost them {cost_ms} each, {all_ms} in all"
    ),
    "queue_cost.fix": (
        "Manage the queue where the line begins (fq_codel, CAKE), pace the {sender} below the line's rate, or leave "
        "the transfer a window of {window}: it is as fast then, and requests are quick beside it."
    ),
    "queue_cost_server": (
        "{n} answers of {server} were acknowledged after {loaded_ms} while {what} of {end} filled the line, {idle_ms} "
        "before and after it: its queue cost them {cost_ms} each, {all_ms} in all"
    ),
    "queue_cost_server.fix": (
        "Manage the queue where the line begins (fq_codel, CAKE), pace the {sender} below the line's rate, or leave "
        "the transfer a window of {window}: it is as fast then, and answers are quick beside it."
    ),
    "queue_cost_or": (
        "{n} requests to {server} took {loaded_ms} while {what} of {end} filled the line, {idle_ms} before and after "
        "it: up to {cost_ms} of each may be its queue, the rest is not"
    ),
    "rival_queue_beside": "the queue of a transfer of the same hosts",
    "transfer_would": "; with {needed} up to the {burst} at which its segments follow each other",
    "transfer_or_pacing": "a rate limit",
    "transfer_or_receiver_window": "the receive window",
    "transfer_or_sender_program": "the sender's program",
    "transfer_or_sender_buffer": "the sender's buffer",
    "transfer_or_line": "the line",
    "transfer_or_congestion": "losses on the path",
    "transfer_or_http2_window": "HTTP/2's flow control, which TLS hides without keys",
    "transfer_rival_left": "this capture does not exclude it",
    "ended_client_fin": "{n} closed by the client's FIN",
    "ended_client_rst": "{n} closed by the client's RST",
    "ended_server_fin": "{n} closed by the server's FIN",
    "ended_server_rst": "{n} closed by the server's RST",
    "shook": "the path's round trip was {trip_ms} in their handshakes",
    "one_error": "{server} answers with an error: {status}",
    # parts of these sentences: how a silence ended, and known time-outs (s)
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
    # before a connection: ARP, NDP and tunnels
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
    # before a connection: addresses that do not answer
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
        "never came about (up to {longest_ms}): the answer was not translated back (NAT), so the client rejects it"
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
    "greeting_partial": (
        "{server} let {n} {n:connection|connections} wait {span_ms} for the rest of its greeting: the first line came "
        "at once, the last one so late, and only then the client spoke"
    ),
    "greeting_partial.fix": (
        "Look at what {server} waits for before it lets clients in: a greet delay against spam (postscreen_greet_wait, "
        "tarpit: have the client put on its list), or a lookup of the client's address."
    ),
    "greeting_reverse": (
        "{server} let {n} {n:connection|connections} wait {span_ms} for its greeting: meanwhile it looked up the name "
        "of its client's address at {other}, and {came}"
    ),
    "greeting_reverse.fix": (
        "On {server}: mend or replace the name server {other}, or look up no names of clients (sshd: UseDNS no; "
        "MariaDB, MySQL: skip-name-resolve; mail and FTP: reverse lookups off)."
    ),
    # UDP services
    "datagram_late": "{protocol}: {n} {n:request|requests} waited {span_ms} for the answer of {server}",
    "datagram_late.fix": (
        "Find what {server} waits for before it answers: its own work, a check, or a server behind it; or where the "
        "path drops requests, if clients had to repeat them."
    ),
    "datagram_failed": (
        "{protocol}: {server} answered {n} of {of} {of:request|requests} with {status} (requested in frame "
        "{frame}), and nothing else came of {n:it|them}"
    ),
    "datagram_failed.fix": (
        "Find on {server} why it answers {status}: its log has the reason; a round trip is all that the answer took."
    ),
    "datagram_dead": (
        "{protocol}: {server} never answered: {client} sent {repeats} requests and waited {span_ms}, doing nothing "
        "else{then}"
    ),
    "datagram_dead.fix": (
        "Mend {server} or the firewall before it, or take it out of the client's list; until then a shorter time-out, "
        "or do not wait for it."
    ),
    "datagram_then": "; then it sent one to {other}, which answered",
    "dhcp_checked": (
        "DHCP: {server} took {span_ms} to offer an address: it looked first whether {address} is in use ({checks} ARP "
        "{checks:request|requests} that nobody answered)"
    ),
    "dhcp_checked.fix": (
        "Accept it, or switch the check off where no address is given out twice (dnsmasq: no-ping; ISC dhcpd: "
        "ping-check false; Windows: conflict detection 0)."
    ),
    "dhcp_never": "DHCP: nobody answered: a client without an address asked {repeats} times in {span_ms}",
    "dhcp_never.fix": (
        "See whether a DHCP server, or a relay (ip helper-address), is on this VLAN, has free addresses left and "
        "answers this client; a switch port that waits for spanning tree (portfast) or 802.1X drops the first requests."
    ),
    # unanswered SYNs during a request
    "ftp_active": (
        "{other} connected to its client for the data (FTP's active mode: {server}), and nobody answered there: {n} "
        "{n:transfer|transfers} waited {span_ms}, {repeats} SYNs each"
    ),
    "ftp_active.fix": (
        "Use passive mode, or let connections from {other_address} (port 20) through the firewall and NAT in front of "
        "{address}."
    ),
    "callback_dead": (
        "{other} connected back to its client ({server}), and nobody answered its SYNs there: the client waited "
        "{span_ms} for that, {n} {n:time|times}"
    ),
    "callback_dead.fix": (
        "Reject instead of dropping, or let through, what {other_address} sends to {server} (port 113: ident, which "
        "can be switched off at the server)."
    ),
    "onward_dead": (
        "{address} does not answer {client}: while clients waited for {other}, {n} {n:connection|connections} of it to "
        "{server} waited {span_ms} for SYNs that nobody answered"
    ),
    "onward_dead.fix": (
        "Mend {address}, or take it out of DNS or of what {client} is configured with; let {client} give up sooner "
        "(connect time-out)."
    ),
    "connect_dead": (
        "{server} does not answer: {client} waited {span_ms} for SYNs that nobody answered, {n} {n:time|times}, and "
        "did nothing else meanwhile; it came there from an answer of {other}"
    ),
    "connect_dead.fix": (
        "Mend {address} or the firewall before it, or take it out of what leads there (a referral or redirect of "
        "{other}, DNS, a configured address); until then a shorter connect time-out."
    ),
    # needless round trips
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
    "redirects": (
        "{server}: {run} redirects in a row came before the answer to {name}: they took {whole_ms}, {connects} of them "
        "on {connects:a new connection|new connections}, a round trip of {trip_ms} for each request and each connection"
    ),
    "redirects.fix": "Link to the last address, or redirect there in one step; keep connections open meanwhile.",
    "blocks_in_turn": (
        "{client} sent {sent} to {server} in {n} blocks of {block}, each only when the one before had been answered: a "
        "round trip of {trip_ms} each, {whole_ms} in all, {path_ms} of it the path"
    ),
    "blocks_in_turn.fix": (
        "Let the program of {client} have several blocks on their way at a time (SFTP: more requests in flight, "
        "sftp -R, or larger blocks, -B; a pipeline or parallel uploads), or send the file as one stream."
    ),
    "messages_in_turn": (
        "{server} sends {client} its messages one at a time, the next only when {client} has acknowledged the one "
        "before: a round trip of {each_ms} each, {run} in a row in {whole_ms}"
    ),
    "messages_in_turn.fix": (
        "Let several be on their way: mosquitto max_inflight_messages, AMQP's prefetch (basic.qos), NATS "
        "max_ack_pending, a consumer's receive maximum; or acknowledge many at once."
    ),
    "consumer_in_turn": (
        "the consumer {client} takes {each_ms} for each message of {server}, which sends the next one as soon as it "
        "acknowledges: {run} in a row took {whole_ms}, and what else is in the queue waits behind them"
    ),
    "consumer_in_turn.fix": (
        "Make the program of {client} faster for each message, or have more consumers or workers take from the queue "
        "at {server}; the broker itself passes on at once."
    ),
    "in_turn": (
        "{n} requests to {server} were made one after the other, a round trip of {trip_ms} each: {run} in a row took "
        "{whole_ms}, {path_ms} of it the path{alike}"
    ),
    "in_turn_alike": "; {n} of these are {name}",
    "connects_in_turn": (
        "{client} fetched {n} things from {server} one after the other, each over a new connection: {whole_ms}, of "
        "which nearly all is the path, two round trips of {trip_ms} for each"
    ),
    "connects_in_turn.fix": (
        "Keep connections open (keep-alive, HTTP/2), fetch in parallel, or fetch less: bundles, a cache or proxy "
        "nearer to the client. The server's program has no part in it."
    ),
    "expect_continue": (
        "{n} of {of} uploads to {server} waited {span_ms} between their headers and their body: so long a client waits "
        "for a 100 Continue (Expect: 100-continue), and none came"
    ),
    "expect_continue.fix": (
        "Let the server answer the Expect header (100 Continue), or leave it out at the client (curl -H 'Expect:')."
    ),
    "in_turn.fix": (
        "Ask for many at once: one query for all rows (N+1), MGET, a batch or a pipeline, or requests in parallel."
    ),
    # beyond the servers examined
    "servers_left": (
        "{n} further {n:server|servers} with {requests} {requests:request|requests}, {slow} of them slow, have no rows "
        "of their own: the {most} with the most slow requests have"
    ),
    # punctuation and lists
    "between": "; ",
    "share_tiny": "under 0.1 %",
    "and_more": ", ",
    "sentence": "{text}.",
    "at_server": "{server}: ",
    "of_server": "{server}: {text}",
    "check_flow": "latpcap flow {file} --exchange {exchange:d} -o flow.png",
    "check_frames": "tshark -r {file} -Y {filter}",
    "for_owner": "For whoever runs the {owner}",
    "for_owner_of": "For whoever runs the {owner} {end}",
    "owner_took": "{cause} took {all_ms:s} of {n} of {of} requests: {median_ms} in the middle, {max_ms} at most",
    "but": "{headline}; {but}",
    "side_client": "client",
    "side_server": "server",
    "sure_proven": "",
    "sure_probable": "probably ",
    "sure_suspected": "perhaps ",
    "sure_unknown": "perhaps ",
    "requests": "{n} {n:request|requests}",
    "answered_requests": "{n} answered {n:request|requests}",
    "turns": "{n} {n:turn|turns}",
    # causes, as they are named in a headline
    "cause_network": "the path's round trip",
    "cause_queueing": "queues on the path",
    "cause_bandwidth": "the line: bytes leave only as fast as it, or the pacing, lets them",
    "cause_server_think": "the server's program",
    "cause_client_think": "the client's program",
    "cause_nagle": "Nagle's algorithm on the {owner}: a small segment waits for the ACK of the one before",
    "cause_delayed_ack": "ACKs that the {owner} holds back",
    "cause_cork": "a cork (TCP_CORK, MSG_MORE) on the {owner}",
    "cause_nagle + delayed_ack": "acknowledgements that the {holder} holds back, and the {owner} waits for",
    "cause_cwnd": "the {owner}'s congestion window",
    "cause_receive_window": "the {owner}'s receive window",
    "cause_zero_window": "a window of 0: the {owner}'s program does not read",
    "cause_fast_retransmit": "lost segments, repaired after duplicate ACKs",
    "cause_tlp": "lost segments, repaired by tail loss probes",
    "cause_rto": "lost segments, repaired only by the retransmission timer",
    "cause_host_drops": (
        "segments that reached the {owner}'s host, and that it took only when a timer or a probe sent them again"
    ),
    "cause_reordering": "segments that others overtook",
    "cause_both_repairs": "lost segments, repaired by tail loss probes and by the retransmission timer",
    "cause_alone": "{cause}, and nothing held it back",
    # headlines of captures without an answered request
    "capture_empty": "The capture is empty: it has no frame",
    "capture_no_tcp": "No TCP stream: nothing that latpcap could judge",
    "none_answered": "No complete request and answer, so there is no latency to judge; connections: {parts}",
    "none_answered_on": (
        "No complete request and answer on tcp.stream {stream}, so there is no latency to judge; connections: {parts}"
    ),
    "silent_unanswered": "{n} without an answer to the SYN",
    "silent_without_data": "{n} without any data",
    "silent_without_answer": "{n} with data but no complete answer{waited}",
    "silent_longest": " ({longest_ms} passed from a request to the end)",
    # headlines about requests
    "no_time": "{server}: its answers took no time that the capture's clock shows",
    "cannot_say": "{at}this capture cannot say where the time went: {why}",
    "slow_server": "{server} is slow: {part} {sure}goes to {cause}{second}{few}{each}",
    "waits_each": ": {wait_ms} at the median{most}",
    "waits_most": ", {most_ms} at most",
    "slow_at_server": "Requests to {server} are slow: {part} {sure}goes to {cause}{second}{few}{each}",
    "part_most": "most time",
    "part_largest": "the largest part of the time",
    "part_most_beyond": "beyond the path's round trip most time",
    "part_largest_beyond": "beyond the path's round trip the largest part of the time",
    "few_of_slow": ", in {n} of {of} slow {of:request|requests}",
    "second_cause": " ({first_share}; {share} to {cause})",
    "slow_one": (
        "{at}{name} took {took_ms}, {sure}because of {cause}{second}; the other {others:one is|{others} are} not slow"
    ),
    "slow_few": "{at}{n} of {of} {of:request|requests} are slow, {sure}because of {cause}{second}{each}",
    "slow_few_mixed": (
        "{at}{n} of {of} {of:request|requests} are slow; {part} {sure}goes to {cause}{second}, in {hit} of them{each}"
    ),
    "their_most": "most of their time",
    "their_largest": "the largest part of their time",
    "their_most_beyond": "beyond the path's round trip most of their time",
    "their_largest_beyond": "beyond the path's round trip the largest part of their time",
    "over": "over {limit:,.4g} ms",
    "over_beyond": "over {limit:,.4g} ms beyond the path's round trip",
    "log_in_quick": (
        "{server}: an interactive session ({protocol}): {of} {of:step|steps} of its log-in took {p50_ms} at p50, none "
        "is slow; what was typed then is not judged"
    ),
    "log_in_slow": (
        "{server}: an interactive session ({protocol}): {n} of {of} {of:step|steps} of its log-in took {over}, the "
        "slowest {most_ms}{why}; what was typed then is not judged"
    ),
    "log_in_because": ", {sure}because of {cause}{second}",
    "log_in_unknown": "; this capture cannot say why: {why}",
    "nothing_slow": "Nothing is slow at {server}: {many}",
    "nothing_slow_path": "Nothing is slow at {server}: {many}; what takes the time is {sure}the path's round trip",
    "long_path": "What takes the time at {server} is {sure}the path's round trip, {path_ms} of it: {many}",
    "long_path_halves": (
        "What takes the time at {server} is {sure}the path's round trip, {path_ms} of it: {many}; {n} of them began "
        "just as the answer before came: perhaps second parts of requests that Nagle's algorithm on the client held"
        " until then"
    ),
    "trip_to_clients": ", and {trip_ms} more at its clients: the way there and back",
    "with_pushes": "{n} messages that it pushed waited for nobody",
    "many_took": "{many}, p50 {p50_ms:n}, p99 {p99_ms}{few}{polls}{streams}",
    "few_took": " ({n} took {over}, {most_ms} at most)",
    "with_polls": "; {n} more {n:waits|wait} for an event on purpose (long polls)",
    "with_streams": ", of which {n} {n:streams|stream} events",
    "one_request_took": "its one request took {p50_ms}",
    "one_turn_took": "its one turn took {p50_ms}",
    "one_stream_took": "its one request, a stream of events, began to be answered after {p50_ms}",
    "one_stream_ticked": "its one request is a stream of events, which began with the first thing to report",
    "stall_slow": "{server} is {sure}slow because {why}{each}",
    "stall_few": "{at}{n} of {many} {n:is|are} slow, {sure}because {why}{each}",
    "stall_server": "its answers wait for acknowledgements that the clients hold back",
    "stall_client": "its clients' requests wait for acknowledgements that it holds back",
    "stall_server_and_client": "{why}, and {sure}its clients' requests for those that it holds back",
    "stall_client_and_server": "{why}, and {sure}its answers for those that the clients hold back",
    "behind_slow": "{server} is {sure}slow because {behind} is, which it asks: {why}{each}",
    "behind_few": (
        "{at}{n} of {of} {of:request|requests} are slow, {sure}because {behind} is, which it asks: {why}{each}"
    ),
    "behind_cause": "most time there goes to {cause}",
    "behind_stall_server": "answers from there wait for acknowledgements that this one holds back",
    "behind_stall_client": "requests to there wait for acknowledgements that it holds back",
    "behind_unknown": "another server",
    "session": (
        "{at}an interactive session ({protocol}): {n} of {many} took {over}, and a person may have been what "
        "they waited for"
    ),
    "tunnel": "{at}a tunnel ({protocol}): {n} of {many} took {over}, but packets inside answer nobody in turn",
    "sealed": (
        "{at}{many} took {over}, if {n:it was|they were} waited for ({reader}); {part} {sure}goes to "
        "{cause}{second}{each}"
    ),
    "sealed_many": "{n} of {of} turns",
    "sealed_one": "its one turn",
    "reader_tls": "inside TLS, without keys",
    "reader_blind": "what was asked cannot be read",
    "reader_none": "no reader knows this protocol",
    "trace_stall": "but the trace contradicts: the program wrote the late bytes late",
    "trace_program": "but the trace contradicts: the kernel held what the program had written",
    # lines of an answer
    "first_line": (
        "{file}: {frames} {frames:frame|frames}, {streams} TCP {streams:stream|streams}, {exchanges} "
        "{exchanges:exchange|exchanges}, {span}{place}"
    ),
    "first_line_filtered": (
        "{file} [{filter}]: {frames} {frames:frame|frames}, {streams} TCP {streams:stream|streams}, {exchanges} "
        "{exchanges:exchange|exchanges}, {span}{place}"
    ),
    "span": "{seconds:,.2f} s of traffic",
    "span_days": "{days:,.1f} days from the first frame to the last",
    "captured_at_client": ", captured at the client",
    "captured_at_server": ", captured at the server",
    "skipped": "{n} {n:frame|frames} of {of}: {reason}",
    "pings_in_probes": "{n} {n:ping|pings}, in the table probes with their round trips",
    "took_many": "p50 {p50_ms:n}, p99 {p99_ms} of {many}",
    "took_one": "{p50_ms} of {many}",
    "slow_over": "{n} slow ({over})",
    "cut_all": "not answered to the end: what was seen of {n:it|them}",
    "cut_some": "{n} of them not answered to the end: what was seen of {n:it|them}",
    "incomplete": "{n} incomplete",
    "incomplete_goodbyes": "{n} incomplete (last words before the client's FIN)",
    "incomplete_some_goodbyes": "{n} incomplete ({last} of them last words before the client's FIN)",
    "further_slow": ("{n} {n:server|servers}: {slow} slow {slow:request|requests} there"),
    "further_quick": "{n} {n:server|servers}: nothing is slow there",
    "further_hint": " (--top {top} lists them)",
    "server_line": ("{server}{behind}: {n} of {of} {of:request|requests} slow, p50 {p50_ms:n}, p99 {p99_ms}{family}"),
    "server_behind": ", behind {server}",
    "server_family": ", {family} ({grade})",
    "slow_time": "{part_share} of the slow requests' time: {causes} ms",
    "slow_time_waited": "{part_share} of the slow requests' time that was waited for: {causes} ms",
    "all_time": "{part_share} of the time: {causes} ms",
    "all_time_waited": "{part_share} of the time that was waited for: {causes} ms",
    "segments_lost": "{n} {n:segment|segments} lost",
    "share_of": (
        "{p50_ms:n} of {of_p50_ms} at p50 ({p50_share}), {p99_ms:n} of {of_p99_ms} at p99 ({p99_share}); {n} of {many}"
    ),
    "path_of_wait": "{path_ms} of each wait are the path's",
    "nagle_waits": (
        "nagle: a small segment ({second} {second:byte|bytes}) waits until the one before it ({first} "
        "{first:byte|bytes}) is acknowledged"
    ),
    "held": "delayed_ack: held {low} ms",
    "held_range": "delayed_ack: held {low}-{high} ms, median {median:.1f}",
    "timer_tick": "they end on a {tick:.4g} ms tick: a kernel timer",
    "timer_fitted": "a {timer:.0f} ms timer{tick}{whose}",
    "on_tick": " on a {tick:.4g} ms tick",
    "timer_of": " ({system})",
    "see": "frames {frames}",
    "see_stream": "frames {frames} (tcp.stream eq {stream:d})",
    "see_stall": (
        "frames {frames} (tcp.stream eq {stream:d}): segment, its ACK {ack:.1f} ms later, next segment {release_us} "
        "after that"
    ),
    "see_cause": "frames {frames} (tcp.stream eq {stream:d}): {time} of {cause}",
    "see_behind": "frames {frames} (to {server}): {time} of {cause}",
    "see_push": "{seen}: a segment, its ACK, and what waited {waited_ms} for that",
    "all_pieces": "{all_ms}",
    "longest_piece": "{longest_ms}, the longest of {n} pieces that make {all_ms}",
    "slowest": "{name} took {took_ms}{why}: frames {frames} (tcp.stream eq {stream:d})",
    "slowest_cause": ", {part_ms} of it {cause}",
    "gain": "p50 {then_ms} instead of {now_ms:n}",
    "gain_best": "p50 at best {best_ms} instead of {now_ms:n}",
    "gain_p99": "p99 at best {best_ms} instead of {now_ms:n}",
    "gain_rate": "{gain}, {times} times the requests/s; then the server's capacity is the limit",
    "gain_unseen": "the clients ask again at once: what the server can serve then is not in this capture",
    "next": "{cause} ({owner}, {part_share} of all time)",
    "next_there": "{cause} ({owner}, {part_share} of all time; TCP_NODELAY there, too, mends it)",
    "first_fast": "the first exchange of {n} {n:stream|streams} was fast (quick ACKs at the start)",
    "fin_released": "{n} {n:wait|waits} ended by the peer's FIN, not by its timer",
    "held_harmless": "{n} held {n:ACK|ACKs} that nobody waited for: harmless",
    "held_for_nobody": "{n} held {n:ACK|ACKs} that nobody waited for",
    "also_unanswered": "{n} {n:connection|connections} never answered{whose}",
    "also_unreachable": "{n} {n:connection|connections} unreachable{whose}",
    "also_traceroute": "{n} {n:connection|connections} answered by routers{whose}",
    "also_refused": "{n} {n:connection|connections} refused{whose}",
    "also_reset": "{n} {n:connection|connections} closed by RST{whose}",
    "also_half_open": "{n} {n:connection|connections} not completed{whose}",
    "of_one_server": " ({server})",
    "of_most_server": " (most of {server})",
    "of_servers": " (of {n} servers)",
    "paused": "clients paused {pause_ms} between requests, {n:once|{n} times}: no part of a latency",
    "passed_between": (
        "{pause_ms} passed from an answer to the next request, {n:once|{n} times}: no part of a latency"
    ),
    "on_stream": "{text} (tcp.stream eq {stream:d})",
    "not_network": "the path ({part_share})",
    "not_server_think": "server think ({part_share})",
    "not_client_think": "client think ({part_share})",
    "not_losses": "losses (none)",
    "lost_repaired": "{n} {n:segment|segments}, repaired in {repair_share} of the time",
    "lost_unnoticed": "{n} {n:segment|segments}; no request waited for their repair",
    "options": "{sender} TCP_NODELAY {nodelay} ({seen}); {receiver} delayed ACK {delayed_ack}, TCP_NODELAY {back}",
    "options_no_choice": (
        "{sender} TCP_NODELAY {nodelay} ({seen}); {receiver} delayed ACK {delayed_ack}, TCP_NODELAY {back} (it never "
        "had to choose)"
    ),
    "seen_off": "{off} for, {on} against",
    "seen_on": "{on} for, {off} against",
    "seen_mixed": "off on {n} of {of} connections",
    "seen_unknown": "{off} seen off, {on} on",
    "sure_rival": "{grade}; rival: {rival} ({lost})",
    "rival": "rival: {rival} ({lost})",
    "grade_unknown": "no",
    "freed": "{grade}: {which} left within {left_us} of the ACK",
    "freed_far": "{grade}: {which} left within {left_us} of the ACK (the path taken off)",
    "freed_one": "the one freed segment",
    "freed_most": "95 % of {n} freed segments",
    "freed_tight": "{n} of {of} freed segments",
    "gaps_follow": "gaps follow the ACKs (slope {slope:.2f}, a pause gives 0)",
    "no_named_cause": "{part_share} of the time has no named cause",
    "hidden_program": "how long the {sender}'s program took between its two writes: the wait hides it",
    "push_options": "{sender} TCP_NODELAY {nodelay}; {holder} delayed ACK {delayed_ack}",
    "sooner": "each leaves {sooner_ms} sooner",
    "sooner_at_best": "each leaves at best {best_ms} sooner",
    "push_line": "{text}, {grade}: {seen}; {fix}",
    "exchange": "exchange {exchange} (tcp.stream eq {stream:d}, number {index} on it)",
    "not_complete": "not complete (cut by {cut_by})",
    "exchange_took": "{took_ms} from frame {first} to {last}",
    "exchange_end": "the end",
    "cause_inside": "{cause} inside {parent}",
    "piece_frames": "frames {frames}  ({rule}, {grade})",
    "shorter_pieces": "in {n} shorter pieces",
    # where and when a fix applies
    "fix_at": "At {server}: {fix}",
    "fix_towards": "Towards {server}: {fix}",
    "fix_before_first": "{fix}; most of what it sends has it: set it before the first byte",
    "fix_set_from": "{fix}; from frame {frame} on it is set",
    "fix_set_before": "{fix}; it was set before frame {frame}",
    "gain_not_proven": "at worst nothing is won: too little of it is proven",
    # requests and responses
    "mixed_errors": "{server} answers with errors: {statuses} of {of}",
    "errors": "{n} of {of} {of:answer|answers} of {server} are {status}",
    "logins_refused": "{n} of {of} {of:answer|answers} of {server} are {status}: logins are refused",
    "redirect_loop": (
        "{n} of {of} {of:answer|answers} of {server} are {status}: a redirect loop, or a client that does not follow "
        "({target} was asked {again} times)"
    ),
    "traffic": "{many}, {protocol}",
    "traffic_for": "{many}, {protocol}, for {name}",
    "traffic_for_some": "{many}, {protocol}, for {name} and {n} other {n:name|names}",
    "traffic_answers": "answers {statuses}",
    "unnamed_handshake": "a handshake",
    "unnamed_message": "a message",
    "unnamed_content": "a mail's text",
    "unnamed_with": "{name} with {target}",
    # the line about DNS
    "dns_unanswered": "{n} of {of} {of:lookup|lookups} unanswered",
    "dns_before_connect": "DNS took {took_ms} before the connect to {name} (frame {frame})",
    "dns_took": "DNS took {took_ms} for {name} (frame {frame}); no connect here is known to have waited for it",
    "dns_only_unanswered": "the only lookup got no answer",
    "dns_none_answered": "none of {n} lookups got an answer",
    "dns_quick": "{n} {n:lookup|lookups} took {median_ms} at the median, {most_ms} at most",
    "dns_one_quick": "{n} {n:lookup|lookups} took {most_ms}",
    "dns_is_not_it": "it is not DNS: {took}",
    # limits of the capture
    "one_direction": "only one direction was captured of {n} of {of} streams: there nothing is more than suspected",
    "one_direction_all": "only one direction was captured of its one stream: there nothing is more than suspected",
    "twice": "{n} of {of} data segments are in the capture twice",
    "copies": "of {of} data segments {n} copies are in the capture",
    "doubled_on_path": "{seen}: doubled on the path, or by a mirror port",
    # the "any" device puts interface and direction before each packet (SLL2, 20 bytes): copies differ in them
    "doubled": (
        "{seen} (two points at once, or a mirror port): capture at one, or take the doubles out first (editcap -d; of "
        "tcpdump -i any: editcap -I 20 -D 100)"
    ),
    "gaps": (
        "packets, or their ends, are missing from the capture in {n} of {of} exchanges: {n:it is|these are} not judged "
        "by what is left"
    ),
    "gaps_in_one": (
        "packets, or their ends, are missing from the capture in its one exchange: it is not judged by what is left"
    ),
    "dropped": (
        "the interface dropped {n} {n:packet|packets} while capturing: what seems not to be there may have been"
    ),
    "passed_unseen": (
        "at least {n} {n:packet was|packets were} sent and {n:is|are} not in the capture (IPv4 identifications skip "
        "{n:it|them}): lost before this point, or missed by the capture"
    ),
    "clock_ahead": ("the capture's clock jumped ahead (by up to {seconds:.3g} s): the hosts' own time stamps did not"),
    "merged": (
        "recordings of {n} times, up to {days:,.0f} days apart, are in this file: an address need not be one host"
    ),
    "clock_back": "time stamps go back {n:once|{n} times}: short times are not to be trusted",
    "mid_stream": "{n} of {of} streams began before the capture: their MSS and window scale are guessed",
    # queues at the server
    "queue": (
        "{n} {n:request|requests} ahead at the median, answered {each_us} apart: {wait_ms:n} of {think_ms} of the "
        "server's time are probably the wait for those; with {fewest} ahead it takes {alone_ms}"
    ),
    "queue_empty": (
        "{n} {n:request|requests} ahead at the median, answered {each_us} apart: {wait_ms:n} of {think_ms} of the "
        "server's time are probably the wait for those; with none ahead it takes {alone_ms}"
    ),
    "rival_sharing": "requests that share a processor, or a lock, instead of waiting for their turn",
    "rival_sharing_lost": "not ruled out: both take longer the more others are there",
    # refused, unanswered and reset connections
    "some_connections": "{n} of {of} connections to {server}",
    "only_connection": "the only connection to {server}",
    "syn_flood": (
        "SYN flood: {n} of {of} connections from {sources} {sources:address|addresses} were never completed "
        "({rate:,.0f} a second; the server answered {answered})"
    ),
    "unanswered_waited": ", for {span_ms}",
    "unanswered_port": (
        "SYNs of {connections} were never answered{waited}: the port answered others, so they were dropped on the way, "
        "or by a full accept queue"
    ),
    "unanswered_host": (
        "SYNs of {connections} were never answered: the host answered on other ports, so a firewall drops them, or the "
        "path did"
    ),
    "unanswered_all": ("SYNs of {connections} were never answered: a firewall drops them, or the host is not there"),
    "traced": ("SYNs of {connections} were answered by routers on the way (ICMP time exceeded): a traceroute{rest}"),
    "traced_rest": "; {parts}",
    "traced_lost": "{n} got no answer",
    "traced_reached": "{n} reached it",
    "unreachable": ("SYNs of {connections} were answered by ICMP unreachable: no route, no host or no such port"),
    "half_open": (
        "{connections} got a SYN-ACK and never completed the handshake: probes, or the SYN-ACK did not arrive"
    ),
    "refused": "{connections} {n:was|were} refused with RST: nothing listens on that port",
    "zero_window": (
        "{server}: the {side} had no room left for data {n:once|{n} times} (zero window, first in frame {frame})"
    ),
    "ecn": (
        "{server}: the path marks packets instead of dropping them (ECN): {n} {n:ACK reports|ACKs report} it (ECE, "
        "first in frame {frame})"
    ),
    "reset_by_server": "{connections} {n:was|were} closed by the server's RST: it left bytes unread, or gave them up",
    "reset_by_client": (
        "{connections} {n:was|were} closed by the client's RST: programs that do not wait for the end do so"
    ),
    "elsewhere_too": "{text}; the same on {n} {n:connection|connections} to other servers or ports",
    # late set-up of connections
    "setup_syn_rto": (
        "{n} {n:connection|connections} took {span_ms} longer to be set up: a SYN or SYN-ACK was dropped, and only its "
        "timer repeated it"
    ),
    "setup_client_think": (
        "the client asked {span_ms} after the handshake on {n} {n:connection|connections}: its program took that time, "
        "not the server"
    ),
    "setup_cork": (
        "the client's requests left {span_ms} after the answer before them on {n} {n:connection|connections}, each "
        "with its kernel's timer: a cork (TCP_CORK, MSG_MORE) that is not taken off, or a program that sleeps as long"
    ),
    # silences
    "never_answered": "{server} never answered {name} (frame {frame:d}): {wait} passed without an answer",
    "never_answered_some": (
        "{server} never answered {n} of {of} {of:request|requests}; the longest wait is {wait}, for {name} (frame "
        "{frame:d})"
    ),
    "never_answered.fix": (
        "See what the program of {server} did with {name} (its log, a deadlock, a queue, a server behind it), and give "
        "the client a time-out of its own."
    ),
    "never_answered_some.fix": (
        "See what the program of {server} did with {name} (its log, a deadlock, a queue, a server behind it), and give "
        "the client a time-out of its own."
    ),
    "closed_instead": "{server} closed the connection instead of answering {name} (frame {frame:d}){after}",
    "closed_instead_one": (
        "{server} closed the connection instead of answering {name} (frame {frame:d}), 1 of {of} requests{after}"
    ),
    "closed_instead_some": (
        "{server} closed the connection instead of answering {n} of {of} {of:request|requests}, one of them {name} "
        "(frame {frame:d}){after}"
    ),
    "closed_instead.fix": (
        "Read the log of {server} for frame {frame:d}: a crash, a limit, a time-out, a restart. The client may ask "
        "again what has no side effects."
    ),
    "closed_instead_one.fix": (
        "Read the log of {server} for frame {frame:d}: a crash, a limit, a time-out, a restart. The client may ask "
        "again what has no side effects."
    ),
    "closed_instead_some.fix": (
        "Read the log of {server} for frame {frame:d}: a crash, a limit, a time-out, a restart. The client may ask "
        "again what has no side effects."
    ),
    "closed_after": ", after {wait_ms}",
    "nameless": "a message",
    "wait": "{wait_ms}",
    "wait_hour": "more than an hour",
    "silent_peer_server": (
        "{server} says nothing after frame {frame:d}: the client repeats its data {repeats} times in {wait_ms} and "
        "gets no acknowledgement{request}"
    ),
    "silent_request": " (it waits for {name})",
    "silent_peer_server.fix": (
        "Capture at the server, too: where the repeats do not arrive there, a firewall or the path drops them; where "
        "they do, its host does not answer."
    ),
    "silent_peer_client": (
        "the client of {server} says nothing after frame {frame:d}: the server repeats its data {repeats} times in "
        "{wait_ms} and gets no acknowledgement"
    ),
    "silent_peers": "{text}; the same on {n} connections",
    # socket options and held ACKs
    "option_off": (
        "from frame {frame} on small segments of the {side} of {server} wait for ACKs (TCP_NODELAY off): before it "
        "{before} left at once, from it on {after} waited"
    ),
    "option_on": (
        "from frame {frame} on small segments of the {side} of {server} wait for no ACKs any more (TCP_NODELAY on): "
        "before it {before} waited, from it on {after} left at once"
    ),
    "held_back_harmless": (
        "the {side} held {n} ACKs back ({low:.1f}-{high:.1f} ms) while nobody waited for them: harmless to {server}'s "
        "exchanges"
    ),
    "one_way_data": (
        "the {side} paused {n} times between two segments while it heard from its peer ({low:.1f}-{high:.1f} ms): "
        "Nagle on the {sender} and delayed ACKs of the {receiver} are suspected; without the {other}'s packets nobody "
        "can tell"
    ),
    "one_way_acks": (
        "the {side} held {n} ACKs back ({low:.1f}-{high:.1f} ms): Nagle on the {sender} and delayed ACKs of the "
        "{receiver} are suspected; without the {other}'s packets nobody can tell"
    ),
    "rival_pauses": "the {sender}'s program pauses between its writes",
    "rival_one_way_lost": "not ruled out: the other direction is not in the capture",
    # kinds of captures
    "trace_by_icmp": (
        "No TCP: a traceroute to {target} by ICMP: routers answered {n} of {of} echo {of:request|requests}"
    ),
    "trace_by_udp": "No TCP: a traceroute to {target} by UDP: routers answered {n}{of}{came}",
    "of_datagrams": " of {n} {n:datagram|datagrams}",
    "came_unreachable": ", {n} ended in ICMP unreachable",
    "no_tcp": "No TCP: {kinds}",
    "no_tcp_unreachable": "No TCP: {kinds}; {n} {n:datagram|datagrams} answered by ICMP unreachable",
    "all_frames": "all {of} frames are {kind}",
    "all_first_frames": "all the first {of} frames are {kind}",
    "one_frame": "its one frame is {kind}",
    "of_frames": "of {of} frames {n} {n:is|are} {kind}",
    "of_first_frames": "of the first {of} frames {n} {n:is|are} {kind}",
    "by_its_port": "UDP ({protocol} by its port)",
    "pings": "No TCP: {n} {n:ping|pings}, {came}",
    "pings_one_trip": "No TCP: {n} {n:ping|pings}, {came}; round trip {trip_ms}",
    "pings_trips": "No TCP: {n} {n:ping|pings}, {came}; round trips {low_ms:n} to {high_ms}, {mean_ms:n} in the mean",
    "pings_icmp": "{n} answered by ICMP {word}",
    "ping_icmp": "answered by ICMP {word}",
    "pings_lost": "{n} without an answer",
    "ping_lost": "without an answer",
    "pings_none": "none answered",
    "pings_all": "each answered",
    "ping_answered": "answered",
    "scan": (
        "A scan: {client} tried {n} {n:port|ports} of {host}: {shut} refused, {nothing} without an answer, {answered} "
        "answered"
    ),
    "hosts": "{n} hosts",
    "one_direction_capture": (
        "Only one direction was captured of {which}: no latency can be seen, capture both directions"
    ),
    "its_one_connection": "its one connection",
    "of_connections": "{n} of {of} connections",
    "idle": "Idle: {n} {n:connection|connections} without any data in {seconds:,.0f} s",
    # rival explanations, and why they were rejected
    "not_ruled_out": "not ruled out: {why}",
    "rival_left": "{name}, {meaning}",
    "rival_other_path_timer": (
        "delayed_ack, an ACK held on a connection of that host to another one, which is not in this capture"
    ),
    "rival_other_path_timer_lost": "not ruled out: the wait is as long as such a timer",
    "rival_by_itself": "the server's host asks by itself while it is asked",
    "rival_by_itself_lost": (
        "those requests lie inside these, from just behind the request to just before the answer, whenever that is"
    ),
    "rival_too_long": "a connection on which the host waited meanwhile",
    "rival_too_long_lost": "it is not in this capture",
    "rival_stall": "Nagle on the {owner}, delayed ACK on the {holder}",
    "rival_halves": "Nagle's algorithm on the client, which holds the second part of a request for a round trip",
    "rival_halves_lost": (
        "not ruled out: {n} turns began just as the answer to the one before came, and no reader sees what they are; "
        "set TCP_NODELAY on the client and measure again"
    ),
    "rival_programs": "the programs are slow",
    "rival_programs_lost": "the kernels' handshake, where no program is asked, took {took_ms}",
    "rival_programs_kernels": "the shortest answers of the kernels alone take as long",
    "rival_overtaken": "packets overtaken on the path",
    "rival_overtaken_lost": "duplicate or selective ACKs made the sender repeat them",
    "rival_repeated": "the program paused",
    "rival_repeated_lost": "bytes went out a second time, which no program does",
    "rival_cwnd": "the sender's congestion window",
    "rival_cwnd_lost": "what waited would not have fitted the announced window",
    "rival_any": "any other cause",
    "rival_any_lost": "the packets that would tell are not in the capture",
    "pause_on_some": "on {n} of {of} connections",
    "pause_follows": "the gaps follow the ACKs (slope {slope:.2f}; a pause would give 0)",
    "pause_left": "{n} of {of} segments left within {within:.3g} ms of theirs",
    "pause_left_before": "{n} left before",
    "pause_none_before": "none left before",
    "pause_left_before_elsewhere": "{n} left before, on other connections",
    "pause_none_before_elsewhere": "none left before, on other connections",
    "left_over": ("{n} small {n:segment|segments} left over {n:an unacknowledged one|unacknowledged ones}"),
    "stall_on_some": "not ruled out: {left}, but {n} with their ACK: TCP_NODELAY may not be set on all sockets",
    "stall_no_nagle": "{left}: Nagle does not act there",
    "stall_no_slope": "the gaps do not follow the ACKs that they end near (slope {slope:.2f})",
    "stall_late": "{n} of {of} gaps with a held ACK ended as soon after it as a kernel sends",
    "stall_all_late": "none of {of} gaps ended as soon after a held ACK as a kernel sends",
    "stall_too": "it is there too, as a finding of its own; this time is outside of it",
    "stall_without": "{n} of its gaps ended with a held ACK: what stands here is proven without them",
    "stall_none": "no small segment waited behind an unacknowledged one here",
    # fixes
    "nodelay": "TCP_NODELAY on the {owner}{known}, or both parts in one write (writev)",
    "nodelay_push": "TCP_NODELAY on the {owner}{known}, or all that it sends at once in one write",
    "host_drops": (
        "The packets reached the {owner}'s host (they are in this capture) and were not taken: look there for a full "
        "accept queue (nstat TcpExtListenOverflows, somaxconn), a firewall behind the capture, full socket buffers."
    ),
    "profile_server_think_if": "Profile the server for this request, once the rival is ruled out{how}.",
    "profile_client_think_if": "Profile the client, once the rival is ruled out{how}.",
    "ruled_out_nagle": " (set TCP_NODELAY on the {owner} and measure again)",
    "ruled_out_cork": " (strace -e trace=network on the {owner} shows TCP_CORK and MSG_MORE)",
    "ruled_out_delayed_ack": " (capture that host's other connections, too)",
    "ruled_out_network": " (capture at the {owner}, too)",
    "ruled_out_queueing": " (capture at the {owner}, too)",
    "cut_by_losses": "Find where the path drops packets: {n} lost {n:segment|segments} cut this window. {fix}",
    "or_long_poll": "{fix} (Or was this a long poll, which is meant to wait?)",
    "or_expected": (
        "{fix} (Or did it wait for a 100 Continue, as curl does for a second? Then answer its Expect header, or leave "
        "it out: curl -H 'Expect:'.)"
    ),
    "cost_nagle + delayed_ack": "more small packets where the program writes in small parts",
    "cost_nagle": "more small packets where the program writes in small parts",
    "cost_delayed_ack": "more ACK packets",
    "cost_cork": "more, smaller packets",
    "cost_receive_window": "memory of the receiver",
    "cost_cwnd": "bursts into a path that may not carry them",
    "cost_queueing": "some throughput at the bottleneck",
    "knob_nginx": " (nginx: tcp_nodelay on;)",
    "knob_openresty": " (OpenResty: tcp_nodelay on;)",
    "knob_tengine": " (Tengine: tcp_nodelay on;)",
    "knob_http.server": " (Python's http.server: disable_nagle_algorithm = True in the request handler's class)",
    "knob_wsgiref": " (Python's wsgiref: disable_nagle_algorithm = True in the request handler's class)",
    "knob_werkzeug": " (Werkzeug: disable_nagle_algorithm = True in the request handler's class)",
    "knob_webrick": " (WEBrick: socket.setsockopt(:TCP, :NODELAY, 1) in a subclass's accept_client)",
    "knob_libwww-perl": (" (Perl's HTTP::Daemon: $client->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1) behind accept)"),
    "knob_akka-http": " (Akka HTTP: akka.http.server.socket-options.tcp-no-delay = on)",
    "knob_pekko-http": " (Pekko HTTP: pekko.http.server.socket-options.tcp-no-delay = on)",
    "sets_apache-coyote": ' (Tomcat sets it unless its Connector has tcpNoDelay="false": is a proxy in front?)',
    "sets_apache": " (Apache httpd sets it by itself: is a proxy in front?)",
    "sets_jetty": " (Jetty sets it unless its ServerConnector has acceptedTcpNoDelay = false: is a proxy in front?)",
    "sets_kestrel": " (Kestrel sets it unless its options have NoDelay = false: is a proxy in front?)",
    "sets_gunicorn": " (gunicorn sets it by itself: is a proxy in front?)",
    "sets_uvicorn": " (uvicorn sets it by itself: is a proxy in front?)",
    "sets_hypercorn": " (Hypercorn sets it by itself: is a proxy in front?)",
    "sets_lighttpd": " (lighttpd sets it by itself: is a proxy in front?)",
    "sets_caddy": " (Caddy sets it by itself: is a proxy in front?)",
    "knobs_server_http": (
        " (Java's HttpServer: -Dsun.net.httpserver.nodelay=true; Node: createServer({{noDelay: true}}); HAProxy: "
        "option http-no-delay; Go sets it by itself)"
    ),
    "knobs_server_mqtt": " (mosquitto: set_tcp_nodelay true)",
    "knobs_client_http": (
        " (PHP's streams: 'tcp_nodelay' => true in the context's socket options; Perl's IO::Socket: "
        "setsockopt(IPPROTO_TCP, TCP_NODELAY, 1); Python's http.client, Node and Go set it by themselves)"
    ),
    "knobs_client_memcached": " (pymemcache: no_delay=True; libmemcached: MEMCACHED_BEHAVIOR_TCP_NODELAY)",
    "knobs_client_mqtt": " (libmosquitto: MOSQ_OPT_TCP_NODELAY)",
    "knobs_client_redis": " (redis-py and hiredis set it by themselves: a client of your own?)",
    # held pushes
    "acks": "acknowledgements",
    "acks_held_for_client": "acknowledgements that the server held back",
    "acks_held_for_server": "acknowledgements that the client held back",
    "push_waits": "{median_ms} at the median, {sum_ms} in all",
    "push_wait": "{sum_ms}",
    "unasked": (
        "what clients sent to {server} unasked {sure}waited in their kernels for {until}, {n:once|{n} times}: {wait}"
    ),
    "unasked_mqtt": (
        "what clients sent to {server} unasked (PUBACK and the like) {sure}waited in their kernels for {until}, "
        "{n:once|{n} times}: {wait}"
    ),
    "pushed": "{n} of {kind} that {server} pushed {sure}waited in its kernel for {until}: {wait}",
    "push_websocket": "{n} WebSocket {n:message|messages}",
    "push_mqtt": "{n} MQTT {n:message|messages}",
    "push_message": "{n} {protocol} {n:message|messages}",
    "push_messages": "{n} {n:message|messages}",
    # processes named in the capture
    "process_is": "{end} is {process}",
    "process_pid": "{name} (pid {pid:d})",
    "process_in": "{name} (pid {pid:d}) in {place}",
    "process_unnamed": "a process",
    "process_more": "{n} {n:other|others}",
    # system-call traces and access logs
    "log_none": ("none of {n} {n:line|lines} is about a request of this capture (other clocks, other names?)"),
    "log_found": (
        "{n} {n:line|lines} of {of} {of:request|requests} found: the server counts p50 {logged_ms} where the capture "
        "has {seen_ms:n}"
    ),
    "log_inside": "{share} of the time passed in the server by its own clock: the program, or what it asks",
    "log_outside": "{share} of the time passed after the server had written its answer, or before it read",
    "log_both": "{share} of the time passed in the server by its own clock, the rest outside it",
    "trace_none": "none of the trace's connections is one of this capture",
    "trace_options": "{side}'s sockets of {n} {n:connection|connections}: {options}",
    "side_client and server": "client and server",
    "trace_held": (
        "of {spent_ms} of stall, the late bytes lay written in the kernel for {share}: the trace says the same"
    ),
    "trace_held_not": (
        "of {spent_ms} of stall, the late bytes lay written in the kernel for {share}: the program wrote them late, it "
        "is no stall"
    ),
    "trace_held_part": (
        "of {spent_ms} of stall, the late bytes lay written in the kernel for {share}: the trace says so of a part"
    ),
    "trace_late": ("of {spent_ms} of the program's own time, {share} passed before it wrote: the trace says the same"),
    "trace_late_not": (
        "of {spent_ms} of the program's own time, {share} passed before it wrote: the kernel held what was written"
    ),
    "trace_late_part": (
        "of {spent_ms} of the program's own time, {share} passed before it wrote: the trace says so of a part"
    ),
    "one_turn": "one turn",
    "a_download": "a download",
    "an_upload": "an upload",
    # joined captures
    "comma": ", ",
    "join_title": "{a} + {b}: {both} of {all} packets at both points, {n} {n:exchange|exchanges}",
    "join_title_proxy": (
        "{a} + {b}: a proxy between (no packet is the same, requests are), {n} {n:exchange|exchanges}"
    ),
    "join_title_one": "{a}: both sides of a proxy, {n} {n:exchange|exchanges} with the request behind it",
    "join_title_points": "{names}: {n} {n:exchange|exchanges} at all {points} points",
    "join_held": "Answers wait for acknowledgements that the client's side holds back, as its own capture shows.",
    "join_lost": "Packets are lost between the two points, and requests wait until they are sent again.",
    "join_between": "Most of the time is spent between the two points.",
    "join_between_proxy": "Most of the time is spent between the two points: on the path and in the proxy.",
    "join_between_one": "Most of the time is spent in the proxy, or between it and the captured host.",
    "join_between_points": "Most of the time is spent between {a} and {b}.",
    "join_beyond": "Most of the time is spent beyond {a}.",
    "join_server": "Most of the time is spent on the server's side: {cause}.",
    "join_client": "Most of the time is spent on the client's side: {cause}.",
    "join_unknown": "Most of the time is of no known cause.",
    "join_none": "No exchange is whole in both captures.",
    "join_typical": "of {latency_ms} (the median request): {places}",
    "join_all": "{places}; {all_ms}",
    "join_held_part": "{part_ms:n} held by the client (proven at the client)",
    "join_client_part": "{part_ms:n} on the client's side",
    "join_way_part": "{part_ms:n} on the way",
    "join_way_part_within": "{part_ms:n} \N{PLUS-MINUS SIGN} {bound_ms:n} on the way",
    "join_proxy_part": "{part_ms:n} in the proxy",
    "join_between_points_part": "{part_ms:n} between {a} and {b}",
    "join_beyond_part": "{part_ms:n} beyond {a}",
    "join_lost_part": "{part_ms:n} until lost packets were sent again",
    "join_program_part": "{part_ms:n} in the server's program",
    "join_server_part": "{part_ms:n} elsewhere on the server's side",
    "join_unknown_part": "{part_ms:n} unknown",
    "join_split": "{out_ms} from A to B, {far_ms:n} until the answer left B, {back_ms:n} from B to A",
    "join_split_one": (
        "{out_ms} until the proxy asked, {far_ms:n} until it was answered, {back_ms:n} until it had passed that on"
    ),
    "join_split_within": "; there and back each \N{PLUS-MINUS SIGN} {bound_ms:n}, their sum exact",
    "join_one_clock": "one capture, one clock: every part is exact",
    "join_ahead": "{size} ahead of",
    "join_behind": "{size} behind",
    "join_clock": "B's clock is {offset} A's, within {bound_ms} (least round trip {gap_ms})",
    "join_clock_one_way": (
        "B's clock seems {offset} A's; packets of one direction do not show how much of that is the way"
    ),
    "join_rate_unknown": "; {seconds} s are too short for its rate",
    "join_rate_same": ", at the same rate",
    "join_rate_faster": ", {ppm} ppm faster",
    "join_rate_slower": ", {ppm} ppm slower",
    "join_steps": "; it was set by {steps}",
    "join_proven": "proven: {proofs}",
    "join_held_proof": (
        "the client's capture has when the data came and when the ACK left in {held} of {of} exchanges"
    ),
    "join_lost_proof": "{n} {n:wait|waits} for packets that one point sent and the other never got",
    "join_asymmetry": "how much of the way was there and how much back: the estimate takes both least delays as alike",
    "join_losses": "lost {losses}",
    "join_and": " and ",
    "join_lost_a_to_b": "{n} of {sent} packets from A to B ({share})",
    "join_lost_b_to_a": "{n} of {sent} packets from B to A ({share})",
    "join_no_loss": "none lost",
    "join_lacks": "{capture}'s capture lacks {n} that passed",
    "join_fate_doubled": "{n} came twice",
    "join_fate_made": "{n} came into being between the points (a middlebox answered)",
    "join_fate_unknown": (
        "of {n} it is not known whether they were lost: the capture at their receiver lacks others too"
    ),
    "way_no_router": "no router",
    "way_routers": "{some} {n:router|routers}",
    "way_or": " or ",
    "way_nothing": "nothing rewritten",
    "way_none": "none",
    "way_client": "client {old} becomes {new}{n:|, and others}",
    "way_client_port": "{n:client port|client ports} {old} {n:becomes|become} {new}{n:|, and so on}",
    "way_server": "server {old} becomes {new}{n:|, and others}",
    "way_server_port": "{n:server port|server ports} {old} {n:becomes|become} {new}{n:|, and so on}",
    "way_mss": "MSS {old} becomes {new}",
    "way_scale": "window scale {old} becomes {new}",
    "way_no_stamps": "option time stamps stripped",
    "way_no_sack": "option SACK stripped",
    "way_numbers": "sequence numbers rewritten",
    "way_identification": "IP identification rewritten",
    "way_stamps": "time stamps rewritten",
    "way_offload": "segments merged or cut (offload)",
    # report pages
    "page_answer": "Answer",
    "page_actions": "What users waited for",
    "page_servers": "Servers",
    "page_findings": "Findings",
    "page_rates": "How fast",
    "page_timeline": "When it was slow",
    "page_waterfall": "Where the longest exchanges' time went",
    "page_exchanges": "Exchanges",
    "page_flow": "The worst exchanges, packet by packet",
    "page_changed": "What changed",
    "page_latency": "Latency",
    "page_causes": "Causes, mean ms per exchange",
    "page_before": "Before: {title}",
    "page_after": "After: {title}",
    "page_before_waterfall": "Before: where the longest exchanges' time went",
    "page_after_waterfall": "After: where the longest exchanges' time went",
    "page_moved": "yes",
    "page_noise": "no more than noise",
    "page_unknown": "unknown",
    "page_actions_all": (
        "All {of} {of:action|actions}: what one client did to get one thing, and how long each part took."
    ),
    "page_actions_some": (
        "The {n} longest of {of} actions: what one client did to get one thing, and how long each part took."
    ),
    "page_more_servers": "and {n} more {n:server|servers} with less time",
    "page_more_findings": "and {n} more {n:finding|findings}",
    "page_dots": "{first} to {last} UTC; a dot is a request at its start.",
    "page_dots_merged": (
        "{first} to {last} UTC; a dot is a request at its start. Dots that fall on one place are one."
    ),
    "page_bars_one": "One exchange; white dashes: not proven.",
    "page_bars_all": "All {of}; white dashes: not proven.",
    "page_bars_some": "The {n} longest of {of}; white dashes: not proven.",
    "page_requests_all": "All {of} {of:request|requests}.",
    "page_requests_some": "The {n} slowest of {of} requests.",
    "page_unfinished": " {n} {n:has|have} no latency: the capture does not show {n:it|them} whole.",
    "page_find": "find: words of a row",
    "page_graph": "Exchange {exchange}: {about}",
    "page_graph_evidence": "The answer's evidence. {caption}",
    "page_graph_of": "Exchange {exchange}: {about}, top cause {cause}",
    "page_piece": "{cause}: {took_ms}",
    "page_piece_unproven": "{cause}: {took_ms}, not proven",
    "page_dashes": "white dashes",
    "page_dashes_mean": "not proven",
    "page_no_cause": "no top cause",
    "page_over_time": "latency over the clock",
    "column_name": "name",
    "column_before": "before",
    "column_after": "after",
    "column_change": "change",
    "column_low": "low",
    "column_high": "high",
    "column_moved": "moved",
    "column_server": "server",
    "column_what": "what",
    "column_ended": "ended",
    "column_total_ms": "total ms",
    "column_lookup_ms": "lookup ms",
    "column_connect_ms": "connect ms",
    "column_tls_ms": "tls ms",
    "column_greeting_ms": "greeting ms",
    "column_request_ms": "request ms",
    "column_other_ms": "other ms",
    "column_count": "count",
    "column_left_out": "left out",
    "column_mean_ms": "mean ms",
    "column_p50_ms": "p50 ms",
    "column_p90_ms": "p90 ms",
    "column_p99_ms": "p99 ms",
    "column_max_ms": "max ms",
    "column_requests_per_s": "requests per s",
    "column_cause": "cause",
    "column_owner": "owner",
    "column_grade": "grade",
    "column_exchanges": "exchanges",
    "column_of_p50_ms": "of p50 ms",
    "column_of_p99_ms": "of p99 ms",
    "column_fix": "what to do or to know",
    "column_filter": "filter",
    "column_exchange": "exchange",
    "column_latency_ms": "latency ms",
    "column_request": "request",
    "column_top_cause": "top cause",
    "column_status": "status",
    "column_stream": "stream",
    "column_started": "started, UTC",
    # flow graphs
    "no_font": (
        "no installed font has Chinese letters: the picture is in English (Debian, Ubuntu: apt install fonts-noto-cjk)"
    ),
    "flow_time": "Time",
    "flow_comment": "Comment",
    "flow_continued": "{text} (continued)",
    "flow_cut": "{time}, cut",
    "flow_to_scale": "; to scale, but no row is lower than {time}",
    "flow_no_cause": "no cause",
    "flow_no_cause_mean": "no row in the causes table explains this gap",
    "flow_not_tcp": "not TCP",
    "flow_clients": "{address} (clients)",
    "flow_segments": "{n} segments, {bytes} B",
    "flow_acks": "{n} {n:ACK|ACKs}",
    "flow_held": "held ACK",
    "flow_freed": "freed",
    "flow_part": "{part} of {whole} ms",
    "flow_wait": "{time} {cause}",
    "flow_wait_probable": "{time} {cause}, probable",
    "flow_wait_suspected": "{time} {cause}, suspected",
    "flow_wait_unknown": "{time} {cause}, unknown",
    "flow_waits": "{side} waits: {cause}",
    "flow_and_more": "{first} and {n} more",
    "flow_exchange": "exchange {exchange}: {about}",
    "flow_of_connect": "connection set-up",
    "flow_of_pause": "the client's pause",
    "flow_of_push": "sent unasked",
    "flow_of_held": "held by the client's kernel",
    "flow_of_one_way": "a stall is suspected",
    "flow_of_other": "beside the requests",
    "flow_cut_by": "not complete ({by})",
    "flow_counts": "{nodes} node(s), {n} item(s)",
    "flow_counts_of": "{nodes} node(s), {n} of {of} item(s)",
    "flow_counts_marked": "{nodes} node(s), {n} of {of} item(s); waits of at least {time} are marked",
    "flow_page": "page {page} of {of}; {status}",
    "flow_longest": " The longest wait, {time} of {cause}, is in frames {low}-{high}.",
    "flow_no_page": "{n} of {of} rows are on no page: the next ones are frames {low}-{high}.",
    "flow_rest": (
        "{n} of {of} rows are not shown: the next ones are frames {low}-{high}, all with {of} rows a page, or as pages."
    ),
    "flow_behind": "{n} more packets are behind them: choose frames, a stream or a filter.",
    "flow_before": "{n} of {of} rows are not shown: all with {of} rows a page, or as pages.",
    "flow_equal_heights": "equal heights are equal times since each side's first row",
    "flow_zero_window_probe": "zero-window probe",
    "flow_zero_window": "zero window",
    "flow_window_full": "window full",
    "flow_fast_retransmission": "fast retransmission",
    "flow_spurious_retransmission": "needless retransmission",
    "flow_retransmission": "retransmission",
    "flow_out_of_order": "out of order",
    "flow_lost_segment": "hole before it",
    "flow_ack_lost_segment": "ACK of unseen data",
    "flow_duplicate_ack": "duplicate ACK",
    "flow_keep_alive": "keep-alive",
    "flow_reused_ports": "ports used again",
    "flow_worst": "worst exchange",
    "flow_typical": "typical exchange",
    "flow_first": "first exchange",
    "flow_icmp": "ICMP flows",
    "flow_all": "all flows",
    "point_title": "what passed between the points",
    "point_exchange": "exchange {exchange}",
    "point_thirds": "{latency_ms}: {out_ms:n} from A to B, {far_ms:n} beyond B, {back_ms:n} from B to A",
    "point_within": "; there and back each \N{PLUS-MINUS SIGN} {bound_ms:n}",
    "point_first": "The first {n} of {of} packets.",
    "point_frame": "{time}  frame {frame}",
    "point_number": "{time}  #{frame}",
    "point_leg": "{way_ms:n} {way}",
    "point_legs": "{latency_ms}: {ways} there and back, {far_ms:n} beyond {name}",
    "point_lost": "never arrived",
    "point_doubled": "a second copy",
    "point_made": "came into being between",
    "point_unseen": "passed, and that capture lacks it",
    "point_outside": "that capture did not run",
    "point_unknown": "lost or unseen",
    "point_at_client": "client",
    "point_at_server": "server",
    "point_at_between": "way",
    "point_at_unknown": "?",
    "flow_frames": "frames {first} \N{RIGHTWARDS ARROW} {last}",
    # systems by delayed-ACK timer (ms)
    "timer_user_40": "Linux, or FreeBSD since 2020",
    "timer_user_50": "Solaris, or Windows",
    "timer_template": "{system} (its template for long paths)",
    "timer_user_100": "macOS, or FreeBSD before 2020",
    "timer_user_200": "Windows",
    "timer_user_250": "lwIP",
    # transactions
    "client_in_transaction": (
        "the client {client} took {span_ms} of a transaction's {took_ms} between its statements (frames {frame} to "
        "{commit_frame}): {server} had answered each of them and waited for the next, with the locks held"
        "{n:|; so in {n} transactions}"
    ),
    "client_in_transaction.fix": (
        "Let the program of {client} do its own work, and wait for people, outside the transaction: the database only "
        "waits for it, and others wait for its locks (idle_in_transaction_session_timeout ends such sessions)."
    ),
}
