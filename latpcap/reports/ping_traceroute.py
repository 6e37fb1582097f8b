"""The lines that ping, hping3 and traceroute would have printed for the probes of a capture.

Formats and formulas are those of iputils' ping, hping3 and Linux' traceroute. Times are measured at the point of
capture; next to the probed host they do not include the path.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from latpcap.format import count, endpoint
from latpcap.reports.probe_packets import Probe, probes
from latpcap.reports.probe_packets import needed as probed
from latpcap.reports.report_text import Report, Subject
from latpcap.tables import Needed, TableSlice

REACHED = ("reply", "syn_ack", "rst")
PORT_UNREACHABLE = 3
"""ICMP's code of a host without a program at the port, which the target of a traceroute sends."""
MIN_HOPS = 2
"""Number of different TTLs from which probes are a traceroute."""
BARE_SYN_BYTES = 20
"""Length of a SYN without options."""
MARKS = {0: "!N", 1: "!H", 2: "!P", 4: "!F", 9: "!X", 10: "!X", 13: "!X"}
WORDS = {"time_exceeded": "Time to live exceeded"}
UNREACHABLE = {0: "Destination Net Unreachable", 1: "Destination Host Unreachable", 3: "Destination Port Unreachable"}
HERE = "times are those of the point of capture: beside the probed host they have no path in them"
_ENDS = ("client", "client_port", "server", "server_port", "client_payload_bytes", "server_payload_bytes")


def ping(capture: Subject, server: str | None) -> Report:
    """Return ping's lines, one run after the other. ValueError without echo requests."""
    runs = _runs(
        (probe for probe in probes(capture) if probe.kind == "icmp"),
        lambda probe: (probe.ip.src, probe.ip.dst, probe.id),
        server,
    )
    runs = [run for run in runs if not _has_several_ttls(run)]
    if not runs:
        raise ValueError("no echo request in this capture: ping sends those")
    lines: list[str] = []
    numbers: list[dict[str, Any]] = []
    for run in runs:
        block, run_numbers = _ping(run)
        lines += [*([""] if lines else []), *block]
        numbers.append(run_numbers)
    return Report("ping", lines, (HERE, "names: a capture has addresses only"), {"runs": numbers})


def _ping(run: list[Probe]) -> tuple[list[str], dict[str, Any]]:
    """Return ping's lines for the requests to one target, and their numbers."""
    first = run[0]
    target, data = first.ip.dst, first.size - 8
    lines = [f"PING {target} ({target}) {data}({data + first.ip.length - len(first.ip.body) + 8}) bytes of data."]
    times: list[float] = []
    errors = 0
    for probe in run:
        answer, rtt = probe.answer, probe.rtt_ms
        if answer is None or rtt is None:
            continue
        if answer.kind == "reply":
            times.append(rtt)
            whom = f"{answer.size} bytes from {answer.ip.src}: icmp_seq={probe.seq} ttl={answer.ip.ttl}"
            lines.append(f"{whom} time={_time(rtt)} ms")
        else:
            errors += 1
            text = WORDS.get(answer.kind) or UNREACHABLE.get(answer.code, f"Dest Unreachable, Bad Code: {answer.code}")
            lines.append(f"From {answer.ip.src} icmp_seq={probe.seq} {text}")
    last = max(probe.time for probe in run)
    lost = 100 * (len(run) - len(times)) / len(run)
    summary = f"{len(run)} packets transmitted, {len(times)} received, "
    summary += f"+{errors} errors, " if errors else ""
    lines += ["", f"--- {target} ping statistics ---"]
    lines.append(f"{summary}{lost:g}% packet loss, time {(last - first.time) / 1e6:.0f}ms")
    numbers = {"target": target, "sent": len(run), "received": len(times), "errors": errors, "loss_percent": lost}
    if times:
        mean = sum(times) / len(times)
        mdev = math.sqrt(max(sum(ms * ms for ms in times) / len(times) - mean * mean, 0.0))
        lines.append(f"rtt min/avg/max/mdev = {min(times):.3f}/{mean:.3f}/{max(times):.3f}/{mdev:.3f} ms")
        numbers |= {"min_ms": min(times), "avg_ms": mean, "max_ms": max(times), "mdev_ms": mdev}
    return lines, numbers


def _time(ms: float) -> str:
    """Write a time as ping does: fewer digits the longer it is, without rounding."""
    us = int(ms * 1000)
    if us >= 100_000:
        return f"{us // 1000}"
    if us >= 10_000:
        return f"{us // 1000}.{us % 1000 // 100}"
    return f"{us // 1000}.{us % 1000 // 10:02}" if us >= 1000 else f"{us // 1000}.{us % 1000:03}"


def hping3(capture: Subject, server: str | None) -> Report:
    """Return hping3's lines for SYNs of connections without data, and for echo requests that count from 0. ValueError
    without any.
    """
    with_data = _ends_with_data(capture)
    candidates = [
        probe
        for probe in probes(capture)
        if probe.kind == "icmp" or (_is_bare_syn(probe) and _ends(probe) not in with_data)
    ]
    runs = _runs(candidates, lambda probe: (probe.kind, probe.ip.src, probe.ip.dst, probe.id or probe.dport), server)
    runs = [run for run in runs if not _has_several_ttls(run) and (run[0].kind == "tcp" or run[0].seq == 0)]
    if not runs:
        raise ValueError(
            "no SYN without a connection behind it, no echo request that counts from 0: hping3 sends those"
        )
    lines: list[str] = []
    numbers: list[dict[str, Any]] = []
    for run in runs:
        target = run[0].ip.dst
        times = [probe.rtt_ms for probe in run if probe.answer and probe.answer.kind in REACHED and probe.rtt_ms]
        mode = "S set, 40" if run[0].kind == "tcp" else "icmp mode set, 28"
        lines += [*([""] if lines else []), f"HPING {target} (? {target}): {mode} headers + 0 data bytes"]
        for number, probe in enumerate(run):
            lines += _hping(number, probe)
        lost = 100 * (len(run) - len(times)) // len(run)
        shortest, longest = (min(times), max(times)) if times else (0.0, 0.0)
        mean = sum(times) / len(times) if times else 0.0
        lines += ["", f"--- {target} hping statistic ---"]
        lines.append(f"{len(run)} packets transmitted, {len(times)} packets received, {lost}% packet loss")
        lines.append(f"round-trip min/avg/max = {shortest:.1f}/{mean:.1f}/{longest:.1f} ms")
        numbers.append(
            {
                "target": target, "port": run[0].dport, "sent": len(run), "received": len(times),
                "min_ms": shortest, "avg_ms": mean, "max_ms": longest,
            }
        )  # fmt: skip
    unknown = (HERE, "hping3's rtt has its own process's scheduling in it, some tenths of a ms", "the interface's name")
    return Report("hping3", lines, unknown, {"runs": numbers})


def _hping(number: int, probe: Probe) -> list[str]:
    """Return the line of a probe's answer; empty without an answer."""
    answer = probe.answer
    if answer is None:
        return []
    if answer.kind not in REACHED:
        texts = {0: "Network Unreachable", 1: "Host Unreachable", 3: "Port Unreachable"}
        text = "TTL 0 during transit" if answer.kind == "time_exceeded" else texts.get(answer.code, "Unreachable")
        return [f"ICMP {text} from ip={answer.ip.src}"]
    keep = " DF" if answer.ip.keep else ""
    start = f"len={answer.ip.length} ip={answer.ip.src} ttl={answer.ip.ttl}{keep} id={answer.ip.number}"
    if probe.kind == "icmp":
        swapped = probe.seq >> 8 | (probe.seq & 0xFF) << 8  # hping3 counts in its host's byte order
        return [f"{start} icmp_seq={swapped} rtt={probe.rtt_ms:.1f} ms"]
    fields = f"sport={probe.dport} flags={answer.flags} seq={number} win={answer.window}"
    return [f"{start} {fields} rtt={probe.rtt_ms:.1f} ms"]


def traceroute(capture: Subject, server: str | None) -> Report:
    """Return traceroute's lines, one run after the other, for probes by UDP, ICMP or TCP. ValueError without any."""
    with_data = _ends_with_data(capture)
    candidates = [probe for probe in probes(capture) if probe.kind != "tcp" or _ends(probe) not in with_data]
    ports = {"udp": 0, "icmp": 0}  # traceroute by UDP uses another port for each probe

    def key(probe: Probe) -> tuple[Any, ...]:
        return probe.kind, probe.ip.src, probe.ip.dst, probe.id, ports.get(probe.kind, probe.dport), probe.ip.length

    runs = _runs(candidates, key, server)
    runs = [run for run in runs if _has_several_ttls(run)]
    if not runs:
        raise ValueError("no probes of rising TTL in this capture: traceroute sends those")
    lines: list[str] = []
    numbers: list[dict[str, Any]] = []
    for run in runs:
        target, hops = run[0].ip.dst, _hops(run)
        head = f"traceroute to {target} ({target}), {count(len(hops), 'hop')} seen, {run[0].ip.length} byte packets"
        lines += [*([""] if lines else []), head, *(_hop(ttl, probes_of_hop) for ttl, probes_of_hop in hops)]
        numbers.append({"target": target, "protocol": run[0].kind, "hops": [_numbers(*hop) for hop in hops]})
    unknown = (
        "the hop is the probe's TTL at the capture: behind a router it is one less than at its sender",
        "how many hops it would have gone at most, and names",
        HERE,
    )
    return Report("traceroute", lines, unknown, {"runs": numbers})


def _numbers(ttl: int, probes_of_hop: list[Probe]) -> dict[str, Any]:
    answered = [probe.answer.ip.src if probe.answer else None for probe in probes_of_hop]
    return {"ttl": ttl, "rtt_ms": [probe.rtt_ms for probe in probes_of_hop], "from": answered}


def _hops(run: list[Probe]) -> list[tuple[int, list[Probe]]]:
    """Return the probes by TTL, up to the first hop at which the target itself answered."""
    probes_by_ttl: dict[int, list[Probe]] = {}
    for probe in run:
        probes_by_ttl.setdefault(probe.ip.ttl, []).append(probe)
    hops = []
    for ttl in sorted(probes_by_ttl):
        hops.append((ttl, probes_by_ttl[ttl]))
        if any(probe.answer and probe.answer.ip.src == probe.ip.dst for probe in probes_by_ttl[ttl]):
            break
    return hops


def _hop(ttl: int, probes_of_hop: list[Probe]) -> str:
    line, last = f"{ttl:2} ", None
    for probe in probes_of_hop:
        answer = probe.answer
        if answer is None:
            line += " *"
            continue
        if answer.ip.src != last:
            line += f" {answer.ip.src}"
            last = answer.ip.src
        line += f"  {probe.rtt_ms:.3f} ms"
        if answer.kind == "unreachable" and answer.code != PORT_UNREACHABLE:
            line += f" {MARKS.get(answer.code, f'!<{answer.code}>')}"
    return line


def _is_bare_syn(probe: Probe) -> bool:
    """Return whether this is a SYN without options, which no kernel sends."""
    return probe.kind == "tcp" and probe.size == BARE_SYN_BYTES


def _has_several_ttls(run: list[Probe]) -> bool:
    """Return whether these probes have several TTLs, as those of traceroute."""
    return len({probe.ip.ttl for probe in run}) >= MIN_HOPS


def _ends(probe: Probe) -> tuple[str, int, str, int]:
    return probe.ip.src, probe.sport, probe.ip.dst, probe.dport


def needed() -> Needed:
    """Return the columns that the reports of probes read."""
    return {**probed(), "streams": TableSlice(_ENDS)}


def _ends_with_data(capture: Subject) -> set[tuple[str, int, str, int]]:
    """Return the endpoints of connections that carried data, whose SYNs are not probes."""
    streams = capture.arrow("streams")
    rows = zip(*(streams[column].to_pylist() for column in _ENDS), strict=True)
    return {row[:4] for row in rows if row[4] or row[5]}


def _runs(sent: Iterable[Probe], key: Callable[[Probe], tuple[Any, ...]], server: str | None) -> list[list[Probe]]:
    """Return the probes grouped by `key` into runs, each in the order of sending."""
    runs: dict[tuple[Any, ...], list[Probe]] = {}
    for probe in sent:
        if server in (None, probe.ip.dst, endpoint(probe.ip.dst, probe.dport)):
            runs.setdefault(key(probe), []).append(probe)
    return list(runs.values())
