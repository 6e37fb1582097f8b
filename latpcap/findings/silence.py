"""Find requests without an answer and peers that fell silent, with the reason that their packets show.

An unanswered request has no latency and is in no percentile, although it waits the longest. The repeats sent to a
silent peer are not a sign of loss on the path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from latpcap import words
from latpcap.findings.hung_streams import explained_by_packets
from latpcap.findings.pushes import Pushed
from latpcap.findings.schema import Finding
from latpcap.findings.unanswered import (
    MAX_WAIT_MS,
    UnansweredWait,
    silence_finding,
    silent_peers,
    unanswered_requests,
)
from latpcap.format import endpoint
from latpcap.lazy import pa
from latpcap.limits import LIMITS


def find(tables: Mapping[str, pa.Table], pushed: Pushed | None = None) -> list[Finding]:
    """Find requests that were never answered, and peers that fell silent; by server, the longest wait first.

    `pushed`: the streams on which servers send without requests.
    """
    unanswered, requests_of = unanswered_requests(tables, pushed)
    silent = list(silent_peers(tables))
    explained = explained_by_packets(tables, [*unanswered, *silent], requests_of)
    exchanges = explained.exchanges | {wait.exchange for wait in unanswered if wait.stream in explained.unseen_answers}
    groups: dict[tuple[str, str, int], list[UnansweredWait]] = defaultdict(list)
    for i, peer in enumerate(silent):
        requests = [wait for wait in unanswered if wait.stream == peer.stream and wait.cause == "unanswered_request"]
        if requests and peer.cause == "server" and peer.stream not in explained.reset:
            # the server answers nothing at all
            first = max(requests, key=lambda wait: wait.waited_ms)
            silent[i] = replace(peer, name=first.name, waited_ms=first.waited_ms, exchange=first.exchange)
            exchanges |= {wait.exchange for wait in requests}
    for wait in unanswered:
        if wait.cause and wait.exchange not in exchanges:
            groups[wait.cause, wait.server, wait.port].append(wait)
    findings = [
        _unexplained(cause, "server", waits, requests_of[server, port])
        for (cause, server, port), waits in groups.items()
    ]
    groups.clear()
    for peer in silent:
        if peer.stream not in explained.streams and peer.stream not in explained.reset:
            groups[peer.cause, peer.server, peer.port].append(peer)
    findings += [_unexplained("silent_peer", side, waits, 0) for (side, *_), waits in groups.items()]
    return sorted(explained.findings + findings, key=lambda finding: -(finding.max_ms or 0.0))


def _unexplained(cause: str, owner: str, waits: list[UnansweredWait], request_count: int) -> Finding:
    """Return the finding of waits that no answer ended; the longest is its worst case."""
    waits.sort(key=lambda wait: wait.waited_ms)
    worst = waits[-1]
    if cause == "silent_peer":
        sentence = f"silent_peer_{owner}"
    elif cause == "closed_on_request":
        sentence = "closed_instead" + ("_some" if len(waits) > 1 else "_one" if request_count > 1 else "")
    else:
        sentence = "never_answered_some" if len(waits) > 1 else "never_answered"
    values = {
        "server": endpoint(*worst.key), "name": worst.name, "frame": worst.frame, "n": len(waits), "of": request_count,
        "repeats": worst.repeats, "wait_ms": worst.waited_ms,
        "request": words.say("silent_request", name=worst.name) if cause == "silent_peer" and worst.name else "",
        "wait": words.say("wait" if worst.waited_ms < MAX_WAIT_MS else "wait_hour", wait_ms=worst.waited_ms),
    }  # fmt: skip
    is_late = cause == "closed_on_request" and worst.waited_ms >= LIMITS["setup_ms"]
    values["after"] = words.say("closed_after", wait_ms=worst.waited_ms) if is_late else ""
    fix = words.fix(sentence, **values)
    if cause == "silent_peer" and len(waits) > 1:
        values["text"], sentence = words.say(sentence, **values), "silent_peers"
    hit = len(waits) if request_count else None
    return silence_finding(
        worst, waits, cause, owner, sentence, values, exchanges=hit, of_exchanges=request_count or None, fix=fix
    )
