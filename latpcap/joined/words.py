"""The answer over two captures: whose time it was, the clocks, what lies between, what was lost. Reads finished tables.

Every sentence is a template with named values in `CATALOGUE`; which of them are printed is decided here, from numbers
alone. Nothing is claimed of exchanges that only one capture has.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill
from latpcap.format import count, escaped, ms, percent, shortest
from latpcap.joined import limits, tables
from latpcap.joined.shares import BETWEEN, CLIENT, PLACES, SERVER, UNKNOWN
from latpcap.vocabulary import CAUSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from latpcap.joined.clock import Clock

CATALOGUE = {
    "title": "{a} + {b}: {packets}, {exchanges}",
    "packets": "{both:,} of {all:,} packets at both points",
    "proxy": "a proxy between (no packet is the same, requests are)",
    "held": "Answers wait for acknowledgements that the client's side holds back, as its own capture shows.",
    "lost": "Packets are lost between the two points, and requests wait until they are sent again.",
    "way": "Most of the time is spent between the two points.",
    "way_proxy": "Most of the time is spent between the two points: on the path and in the proxy.",
    "server": "Most of the time is spent on the server's side: {cause}.",
    "client": "Most of the time is spent on the client's side: {cause}.",
    "unknown": "Most of the time is of no known cause.",
    "none": "No exchange is whole in both captures.",
    "one_file": "{a}: both sides of a proxy, {exchanges} with the request behind it",
    "way_one_file": "Most of the time is spent in the proxy, or between it and the captured host.",
    "proxy_part": "{time} in the proxy",
    "split_one_file": "{out} ms until the proxy asked, {far} until it was answered, {back} until it had passed that on",
    "same_clock": "one capture, one clock: every part is exact",
    "points": "{names}: {exchanges} at all {points} points",
    "way_of": "Most of the time is spent between {a} and {b}.",
    "far_of": "Most of the time is spent beyond {a}.",
    "way_of_part": "{time} between {a} and {b}",
    "far_of_part": "{time} beyond {a}",
    "typical": "of {latency} ms (the median request): {places}",
    "held_part": "{time} held by the client (proven at the client)",
    "client_part": "{time} on the client's side",
    "way_part": "{time}{bound} on the way",
    "lost_part": "{time} until lost packets were sent again",
    "program_part": "{time} in the server's program",
    "server_part": "{time} elsewhere on the server's side",
    "unknown_part": "{time} unknown",
    "total": "{places}; {latency} ms",
    "split": "{out} ms from A to B, {far} until the answer left B, {back} from B to A{bound}",
    "split_bound": "; there and back each \N{PLUS-MINUS SIGN} {bound}, their sum exact",
    "clock": "B's clock is {offset} A's, within {bound} ms (least round trip {gap} ms){skew}{steps}",
    "one_way": "B's clock seems {offset} A's; packets of one direction do not show how much of that is the way",
    "rate_unknown": "; {seconds} s are too short for its rate",
    "rate_same": ", at the same rate",
    "rate_faster": ", {ppm} ppm faster",
    "rate_slower": ", {ppm} ppm slower",
    "held_proof": "the client's capture has when the data came and when the ACK left in {held} of {all} exchanges",
    "lost_proof": "{all} for packets that one point sent and the other never got",
    "asymmetry": "how much of the way was there and how much back: the estimate takes both least delays as alike",
    "loss": "{lost} of {sent:,} packets {direction} ({share})",
    "unseen": "{a} capture lacks {count} that passed",
    "doubled": "{count} came twice",
    "made": "{count} came into being between the points ({what})",
    "doubt": "of {count} it is not known whether they were lost: the capture at their receiver lacks others too",
}
DIRECTIONS = dict(zip(tables.DIRECTIONS, ("from A to B", "from B to A"), strict=True))


class JoinedWhy:
    """The answer over two captures; prints as lines, `to_dict()` has every number."""

    def __init__(self, names: tuple[str, ...], numbers: dict[str, Any]):
        self.names, self._numbers = names, numbers

    @property
    def headline(self) -> str:
        """Whose time it was, in a sentence."""
        return str(self._numbers["verdict"])

    def to_dict(self) -> dict[str, Any]:
        """Every number of the answer."""
        return dict(self._numbers)

    def between(self) -> list[str]:
        """The captures, their clocks, what lies between them and what became of packets: no exchanges."""
        kept = ("  clock ", "  way ", "  packets ")
        lines = _lines(self.names, self._numbers)
        return [lines[0], *(line for line in lines[1:] if line.startswith(kept))]

    def __str__(self) -> str:
        return "\n".join(_lines(self.names, self._numbers))

    __repr__ = __str__


class ChainWhy:
    """The answer over more than two captures; prints as lines, `to_dict()` has every number, of each leg too."""

    def __init__(self, names: Sequence[str], numbers: dict[str, Any], legs: Sequence[JoinedWhy]):
        self.names, self._numbers, self._legs = tuple(escaped(name) for name in shortest(names)), numbers, legs

    @property
    def headline(self) -> str:
        """Whose time it was, in a sentence."""
        places = self._numbers["places"]
        if not self._numbers["exchanges"]:
            return CATALOGUE["none"]
        lead = max(places, key=lambda name: places[name])
        if lead == "far":
            return CATALOGUE["far_of"].format(a=self.names[-1])
        if lead in self._ways():
            a, b = self._ways()[lead]
            return CATALOGUE["way_of"].format(a=a, b=b)
        if lead == "client":
            return CATALOGUE["client"].format(cause=CAUSES["unknown"].meaning)
        return CATALOGUE["unknown" if lead == "rest" else lead]

    def to_dict(self) -> dict[str, Any]:
        """Every number of the answer."""
        return dict(self._numbers)

    def _ways(self) -> dict[str, tuple[str, str]]:
        letters = "abcdefghijklmnopqrstuvwxyz"
        return {f"{letters[n]}_{letters[n + 1]}": pair for n, pair in enumerate(pairwise(self.names))}

    def _places(self, places: dict[str, float]) -> str:
        """The parts of a latency, largest first; what is under 0.05 % of it is left out."""
        texts = {"held": CATALOGUE["held_part"], "client": CATALOGUE["client_part"], "rest": CATALOGUE["unknown_part"],
                 "far": CATALOGUE["far_of_part"].replace("{a}", self.names[-1])}  # fmt: skip
        for name, (a, b) in self._ways().items():
            texts[name] = CATALOGUE["way_of_part"].replace("{a}", a).replace("{b}", b)
        least = sum(places.values()) / 2000
        shown = sorted((name for name in places if places[name] > least), key=lambda name: -places[name])
        return ", ".join(texts[name].format(time=ms(places[name])) for name in shown)

    def __str__(self) -> str:
        found = self._numbers
        exchanges = count(found["exchanges"], "exchange")
        names = " + ".join(self.names)
        lines = [CATALOGUE["points"].format(names=names, exchanges=exchanges, points=len(self.names)), self.headline]
        typical = found["typical"]
        if typical is not None:
            latency = ms(typical["latency_ms"])
            lines.append(
                f"  {'time':9} " + CATALOGUE["typical"].format(latency=latency, places=self._places(typical["places"]))
            )
            total = CATALOGUE["total"].format(places=self._places(found["places"]), latency=ms(found["latency_ms"]))
            lines.append(f"  {'in all':9} {total}")
        for leg in self._legs:
            lines += leg.between()
        return "\n".join(lines)

    __repr__ = __str__


def numbers(
    packets: dict[str, Any], exchanges: pa.Table, parts: pa.Table, clock: Clock, way: str, proxied: bool, one_file: bool
) -> dict[str, Any]:
    """Everything that the answer says, as numbers and words. `packets` is what `tables.tally` counts."""
    found: dict[str, Any] = {"schema": 1, "proxied": proxied, "one_file": one_file, "exchanges": exchanges.num_rows}
    error = packets.pop("clock_error_ms")
    found["packets"] = packets
    found["places"] = _places(parts)
    found["losses_ms"] = _lost(parts)
    found["held_in"] = _count(parts, (("place", CLIENT), ("cause", "delayed_ack"), ("grade", "proven")))
    found["lost_in"] = _count(parts, (("because", "lost between the points"),))
    found["latency_ms"] = float(sum(exchanges["latency_ms"].to_pylist()))
    found["typical"] = _typical(exchanges, parts)
    found["clock"] = {
        "offset_ms": clock.offset_ns / 1e6,
        "error_ms": error,
        "skew_ppm": clock.ppm,
        "seconds": clock.seconds,
        "round_trip_ms": _least_gap(clock),
        "steps_ms": [moved / 1e6 for _, moved in clock.steps],
    }
    found["way"] = way
    found["lead"], found["verdict"] = _verdict(found)
    fixed = {"held": "nagle", SERVER: "server_think"}.get(found["lead"])
    found["fix"] = None if fixed is None else CAUSES[fixed].fix
    return found


def _count(parts: pa.Table, wanted: tuple[tuple[str, str], ...]) -> int:
    import numpy as np

    return int(np.logical_and.reduce([arrays.equals(parts, column, value) for column, value in wanted]).sum())


def _least_gap(clock: Clock) -> float | None:
    """The least round trip between the points; None where only one direction was seen."""
    gaps = [section.gap_ns for section in clock.sections if section.gap_ns != float("inf")]
    return min(gaps) / 1e6 if gaps else None


def _places(parts: pa.Table) -> dict[str, dict[str, float]]:
    """Milliseconds by place and cause."""
    import numpy as np

    found: dict[str, dict[str, float]] = {place: {} for place in PLACES}
    (places, place_names), (causes, cause_names) = (arrays.codes(parts, name) for name in ("place", "cause"))
    both = places.astype(np.int32) * len(cause_names) + causes
    sums = spill.weighed(both, arrays.numbers(parts, "duration_ms"), len(place_names) * len(cause_names))
    for code in np.unique(both).tolist():
        found[place_names[code // len(cause_names)]][cause_names[code % len(cause_names)]] = float(sums[code])
    return found


def _lost(parts: pa.Table) -> float:
    lost = arrays.equals(parts, "because", "lost between the points")
    return float(arrays.numbers(parts, "duration_ms")[lost].sum())


def _typical(exchanges: pa.Table, parts: pa.Table) -> dict[str, Any] | None:
    """The median exchange, cut: its parts add up to its latency."""
    import pyarrow.compute as pc

    if not exchanges.num_rows:
        return None
    order = arrays.numbers(exchanges, "latency_ms").argsort(kind="stable")
    row = exchanges.slice(int(order[(len(order) - 1) // 2]), 1).to_pylist()[0]
    mine = parts.filter(pc.equal(parts["a_exchange"], row["a_exchange"]))
    return {**{name: row[name] for name in ("a_exchange", "b_exchange", "latency_ms", "out_ms", "far_ms", "back_ms",
                                            "clock_error_ms")},
            "places": _places(mine), "losses_ms": _lost(mine)}  # fmt: skip


def _verdict(found: dict[str, Any]) -> tuple[str, str]:
    """Which place has most of the time, and its sentence."""
    sums = {place: sum(causes.values()) for place, causes in found["places"].items()}
    if not any(sums.values()):
        return "none", CATALOGUE["none"]
    held = found["places"][CLIENT].get("delayed_ack", 0.0)
    lost = found["losses_ms"]
    rest = {**sums, CLIENT: sums[CLIENT] - held, BETWEEN: sums[BETWEEN] - lost, "held": held, "lost": lost}
    lead = max(rest, key=lambda place: rest[place])
    if lead == BETWEEN:
        return lead, CATALOGUE["way_one_file" if found["one_file"] else "way_proxy" if found["proxied"] else "way"]
    if lead in (SERVER, CLIENT):
        causes = {name: time for name, time in found["places"][lead].items() if (lead, name) != (CLIENT, "delayed_ack")}
        return lead, CATALOGUE[lead].format(cause=CAUSES[max(causes, key=lambda name: causes[name])].meaning)
    return lead, CATALOGUE[lead]


def _shares(places: dict[str, dict[str, float]], lost: float, bound: float | None, way: str = "way_part") -> str:
    """The parts of a latency, largest first; what is under 0.05 % of it is left out."""
    held = places[CLIENT].get("delayed_ack", 0.0)
    program = places[SERVER].get("server_think", 0.0)
    known = f" \N{PLUS-MINUS SIGN} {ms(bound)}" if bound is not None else ""
    times = [
        ("held_part", held, ""),
        ("client_part", sum(places[CLIENT].values()) - held, ""),
        ("lost_part", lost, ""),
        (way, sum(places[BETWEEN].values()) - lost, known),
        ("program_part", program, ""),
        ("server_part", sum(places[SERVER].values()) - program, ""),
        ("unknown_part", sum(places[UNKNOWN].values()), ""),
    ]
    least = sum(time for _, time, _ in times) / 2000
    shown = sorted((row for row in times if row[1] > least), key=lambda row: -row[1])
    return ", ".join(CATALOGUE[name].format(time=ms(time), bound=more) for name, time, more in shown)


def _lines(names: tuple[str, ...], found: dict[str, Any]) -> list[str]:
    alone = len(names) == 1
    packets = CATALOGUE["proxy"] if found["proxied"] else CATALOGUE["packets"].format(
        both=found["packets"]["both"], all=max(found["packets"]["a"], found["packets"]["b"]))  # fmt: skip
    exchanges = count(found["exchanges"], "exchange")
    title = CATALOGUE["one_file"].format(a=escaped(shortest(names)[0]), exchanges=exchanges)
    if not alone:
        a, b = map(escaped, shortest(names))
        title = CATALOGUE["title"].format(a=a, b=b, packets=packets, exchanges=exchanges)
    lines = [title, found["verdict"]]

    def line(label: str, text: str) -> None:
        lines.append(f"  {label:9} {text}")

    typical, clock = found["typical"], found["clock"]
    if typical is not None:
        bound, way = None if alone else typical["clock_error_ms"], "proxy_part" if alone else "way_part"
        shares = _shares(typical["places"], typical["losses_ms"], bound if found["proxied"] else None, way)
        line("time", CATALOGUE["typical"].format(latency=ms(typical["latency_ms"]), places=shares))
        thirds = {name: ms(typical[f"{name}_ms"]) for name in ("out", "far", "back")}
        known = "" if bound is None else CATALOGUE["split_bound"].format(bound=ms(bound))
        line("split", CATALOGUE["split_one_file" if alone else "split"].format(**thirds, bound=known))
        shares = _shares(found["places"], found["losses_ms"], None, way)
        line("in all", CATALOGUE["total"].format(places=shares, latency=ms(found["latency_ms"])))
    proofs = []
    if found["held_in"]:
        proofs.append(CATALOGUE["held_proof"].format(held=found["held_in"], all=found["exchanges"]))
    if found["lost_in"]:
        proofs.append(CATALOGUE["lost_proof"].format(all=count(found["lost_in"], "wait")))
    if proofs:
        line("sure?", "proven: " + "; ".join(proofs))
    if found["fix"]:
        line("fix", found["fix"])
    line("clock", CATALOGUE["same_clock"] if alone else _clock(clock))
    if not found["proxied"]:
        line("way", found["way"])
        line("packets", "; ".join(_packets(found["packets"])))
    if clock["round_trip_ms"] is not None:
        line("unknown", CATALOGUE["asymmetry"])
    return lines


def _clock(clock: dict[str, Any]) -> str:
    offset = clock["offset_ms"]
    size = f"{abs(offset) / 1000:,.6g} s" if abs(offset) >= 1000 else f"{ms(abs(offset))} ms"
    steps = [f"{'+' if step > 0 else '-'}{ms(abs(step))} ms" for step in clock["steps_ms"]]
    known = clock["error_ms"]
    if known is None or clock["round_trip_ms"] is None:
        return CATALOGUE["one_way"].format(offset=f"{size} {'ahead of' if offset > 0 else 'behind'}")
    return CATALOGUE["clock"].format(
        offset=f"{size} {'ahead of' if offset > 0 else 'behind'}",
        bound=ms(known),
        gap=ms(clock["round_trip_ms"]),
        skew=_rate(clock),
        steps=f"; it was set by {', '.join(steps)}" if steps else "",
    )


def _rate(clock: dict[str, Any]) -> str:
    ppm = clock["skew_ppm"]
    if clock["seconds"] < limits.RATE_SECONDS:
        return CATALOGUE["rate_unknown"].format(seconds=f"{clock['seconds']:.1f}")
    if abs(ppm) < limits.RATE_PPM:
        return CATALOGUE["rate_same"]
    return CATALOGUE["rate_faster" if ppm > 0 else "rate_slower"].format(ppm=f"{abs(ppm):.1f}")


def _packets(found: dict[str, Any]) -> list[str]:
    """What became of packets that are not at both points."""
    said = []
    for direction, words in DIRECTIONS.items():
        lost, sent = found[direction].get("lost", 0), found[direction]["sent"]
        if lost:
            said.append(CATALOGUE["loss"].format(lost=lost, sent=sent, direction=words, share=percent(lost / sent)))
    said = [f"lost {' and '.join(said)}" if said else "none lost"]
    for name in ("a", "b"):
        if found[f"{name}_lacks"]:
            said.append(CATALOGUE["unseen"].format(a=f"{name.upper()}'s", count=found[f"{name}_lacks"]))
    tallies = {fate: sum(found[d].get(fate, 0) for d in DIRECTIONS) for fate in ("doubled", "made", "unknown")}
    if tallies["doubled"]:
        said.append(CATALOGUE["doubled"].format(count=tallies["doubled"]))
    if tallies["made"]:
        said.append(CATALOGUE["made"].format(count=tallies["made"], what="a middlebox answered"))
    if tallies["unknown"]:
        said.append(CATALOGUE["doubt"].format(count=tallies["unknown"]))
    return said
