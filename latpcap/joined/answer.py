"""The answer over joined captures: where the time went, the clocks, the changes between the points, the losses.

Reads finished tables, and decides from their numbers which sentences are printed; the sentences themselves are in the
catalogue (`latpcap/words`). Exchanges that only one capture has are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill, words
from latpcap.format import escaped, ms, shortest
from latpcap.joined import limits, tables
from latpcap.joined.shares import PartReason, Place
from latpcap.lazy import np, pa, pc
from latpcap.tables import NS_PER_MS

if TYPE_CHECKING:
    from latpcap.joined.clock import Clock
    from latpcap.joined.rewrites import Way


class _Why:
    """An answer: names of captures, numbers, and the language of its sentences."""

    def __init__(self, names: Sequence[str], numbers: dict[str, Any]):
        self.names, self._numbers = tuple(escaped(name) for name in shortest(names)), numbers
        self.lang = words.current()

    def to_dict(self) -> dict[str, Any]:
        """Return every number of the answer."""
        return dict(self._numbers)

    def __repr__(self) -> str:
        return str(self)


class JoinedWhy(_Why):
    """The answer over two captures; prints as lines, `to_dict()` has every number."""

    @property
    def headline(self) -> str:
        """The sentence on where the time went."""
        return str(self._numbers["verdict"])

    def between(self) -> list[str]:
        """Return the lines on the captures, their clocks, the path between them and the fates of packets."""
        with words.language(self.lang):
            return [_title(self.names, self._numbers), *_way(self._numbers)]

    def __str__(self) -> str:
        with words.language(self.lang):
            numbers = self._numbers
            lines = [_title(self.names, numbers), self.headline, *_times(numbers), *_proofs(numbers), *_way(numbers)]
            if numbers["clock"]["round_trip_ms"] is not None:
                lines.append(words.line("unknown", words.say("join_asymmetry")))
            return "\n".join(lines)


class ChainWhy(_Why):
    """The answer over more than two captures; prints as lines, `to_dict()` has every number, of each leg too."""

    def __init__(self, names: Sequence[str], numbers: dict[str, Any], legs: Sequence[JoinedWhy]):
        super().__init__(names, numbers)
        self._legs = legs

    @property
    def headline(self) -> str:
        """The sentence on where the time went."""
        with words.language(self.lang):
            places = self._numbers["places"]
            if not self._numbers["exchanges"]:
                return words.say("join_none")
            lead = max(places, key=lambda name: places[name])
            if lead == "far":
                return words.say("join_beyond", a=self.names[-1])
            if lead in self._ways():
                a, b = self._ways()[lead]
                return words.say("join_between_points", a=a, b=b)
            if lead == "client":
                return words.say("join_client", cause=words.say("meaning_unknown"))
            return words.say("join_unknown" if lead == "rest" else f"join_{lead}")

    def _ways(self) -> dict[str, tuple[str, str]]:
        letters = "abcdefghijklmnopqrstuvwxyz"
        return {f"{letters[n]}_{letters[n + 1]}": pair for n, pair in enumerate(pairwise(self.names))}

    def _places(self, places: dict[str, float]) -> str:
        named = {"held": "join_held_part", "client": "join_client_part", "rest": "join_unknown_part"}
        ways = self._ways()
        rows = []
        for name, time in places.items():
            if name in ways:
                rows.append((time, "join_between_points_part", {"a": ways[name][0], "b": ways[name][1]}))
            elif name == "far":
                rows.append((time, "join_beyond_part", {"a": self.names[-1]}))
            else:
                rows.append((time, named[name], {}))
        return _parts(rows)

    def __str__(self) -> str:
        with words.language(self.lang):
            numbers, typical = self._numbers, self._numbers["typical"]
            title = words.say("join_title_points", names=" + ".join(self.names), n=numbers["exchanges"],
                              points=len(self.names))  # fmt: skip
            lines = [title, self.headline]
            if typical is not None:
                lines += _both(typical["latency_ms"], self._places(typical["places"]),
                               numbers["latency_ms"], self._places(numbers["places"]))  # fmt: skip
            for leg in self._legs:
                lines += leg.between()
            return "\n".join(lines)


def numbers(
    packets: dict[str, Any], exchanges: pa.Table, parts: pa.Table, clock: Clock, way: Way, proxied: bool, one_file: bool
) -> dict[str, Any]:
    """Return everything in the answer, as numbers and words. `packets` are the counts of `tables.tally`."""
    result: dict[str, Any] = {"schema": 1, "proxied": proxied, "one_file": one_file, "exchanges": exchanges.num_rows}
    error = packets.pop("clock_error_ms")
    result["packets"] = packets
    result["places"] = _places(parts)
    result["losses_ms"] = _lost(parts)
    result["held_in"] = _count(parts, (("place", "client"), ("cause", "delayed_ack"), ("grade", "proven")))
    result["lost_in"] = _count(parts, (("because", PartReason.LOST_BETWEEN.word),))
    result["latency_ms"] = float(sum(exchanges["latency_ms"].to_pylist()))
    result["typical"] = _typical(exchanges, parts)
    result["clock"] = {
        "offset_ms": clock.offset_ns / NS_PER_MS,
        "error_ms": error,
        "skew_ppm": clock.ppm,
        "seconds": clock.seconds,
        "round_trip_ms": _least_gap(clock),
        "steps_ms": [moved / NS_PER_MS for _, moved in clock.steps],
    }
    result["way"] = way.sentence()
    result["lead"], result["verdict"] = _verdict(result)
    fixed = {"held": "nagle", "server": "server_think"}.get(result["lead"])
    result["fix"] = None if fixed is None else words.fix_of(fixed)
    return result


def _count(parts: pa.Table, wanted: tuple[tuple[str, str], ...]) -> int:
    return int(np.logical_and.reduce([arrays.equals(parts, column, value) for column, value in wanted]).sum())


def _least_gap(clock: Clock) -> float | None:
    """Return the least round trip between the points; None where only one direction was seen."""
    gaps = [section.gap_ns for section in clock.sections if section.gap_ns != float("inf")]
    return min(gaps) / NS_PER_MS if gaps else None


def _places(parts: pa.Table) -> dict[str, dict[str, float]]:
    """Return the milliseconds by place and cause."""
    times_ms: dict[str, dict[str, float]] = {place: {} for place in Place.words()}
    (places, place_names), (causes, cause_names) = (arrays.codes(parts, name) for name in ("place", "cause"))
    code_of = places.astype(np.int32) * len(cause_names) + causes
    sums = spill.sum_weights(code_of, arrays.numbers(parts, "duration_ms"), len(place_names) * len(cause_names))
    for code in np.unique(code_of).tolist():
        times_ms[place_names[code // len(cause_names)]][cause_names[code % len(cause_names)]] = float(sums[code])
    return times_ms


def _lost(parts: pa.Table) -> float:
    lost = arrays.equals(parts, "because", PartReason.LOST_BETWEEN.word)
    return float(arrays.numbers(parts, "duration_ms")[lost].sum())


def _typical(exchanges: pa.Table, parts: pa.Table) -> dict[str, Any] | None:
    """Return the median exchange, cut: its parts add up to its latency."""
    if not exchanges.num_rows:
        return None
    order = arrays.numbers(exchanges, "latency_ms").argsort(kind="stable")
    row = exchanges.slice(int(order[(len(order) - 1) // 2]), 1).to_pylist()[0]
    parts_of_it = parts.filter(pc.equal(parts["a_exchange"], row["a_exchange"]))
    return {**{name: row[name] for name in ("a_exchange", "b_exchange", "latency_ms", "out_ms", "far_ms", "back_ms",
                                            "clock_error_ms")},
            "places": _places(parts_of_it), "losses_ms": _lost(parts_of_it)}  # fmt: skip


def _verdict(numbers: dict[str, Any]) -> tuple[str, str]:
    """Return the place with most of the time, and its sentence."""
    sums = {place: sum(causes.values()) for place, causes in numbers["places"].items()}
    if not any(sums.values()):
        return "none", words.say("join_none")
    held = numbers["places"]["client"].get("delayed_ack", 0.0)
    lost = numbers["losses_ms"]
    times_ms = {**sums, "client": sums["client"] - held, "between": sums["between"] - lost, "held": held, "lost": lost}
    leading = max(times_ms, key=lambda place: times_ms[place])
    if leading in ("server", "client"):
        causes = dict(numbers["places"][leading])
        if leading == "client":
            causes.pop("delayed_ack", None)
        longest = max(causes, key=lambda name: causes[name])
        return leading, words.say(f"join_{leading}", cause=words.say(f"meaning_{longest}"))
    if leading == "between" and (numbers["one_file"] or numbers["proxied"]):
        return leading, words.say("join_between_one" if numbers["one_file"] else "join_between_proxy")
    return leading, words.say(f"join_{leading}")


def _parts(rows: Iterable[tuple[float, str, dict[str, Any]]]) -> str:
    """Return the parts of a latency in words, largest first. A row is the time, the id of the phrase and its other
    values.
    """
    rows = list(rows)
    min_time = sum(time for time, _, _ in rows) / limits.PART_DIVISOR
    shown = sorted((row for row in rows if row[0] > min_time), key=lambda row: -row[0])
    return words.say("comma").join(words.say(name, part_ms=time, **more) for time, name, more in shown)


def _shares(numbers: dict[str, Any], bound: float | None, one_file: bool) -> str:
    """Return the parts of a latency by place, in words."""
    places, lost = numbers["places"], numbers["losses_ms"]
    held = places["client"].get("delayed_ack", 0.0)
    program = places["server"].get("server_think", 0.0)
    way = "join_proxy_part" if one_file else "join_way_part" if bound is None else "join_way_part_within"
    return _parts([
        (held, "join_held_part", {}),
        (sum(places["client"].values()) - held, "join_client_part", {}),
        (lost, "join_lost_part", {}),
        (sum(places["between"].values()) - lost, way, {} if bound is None else {"bound_ms": bound}),
        (program, "join_program_part", {}),
        (sum(places["server"].values()) - program, "join_server_part", {}),
        (sum(places["unknown"].values()), "join_unknown_part", {}),
    ])  # fmt: skip


def _title(names: tuple[str, ...], numbers: dict[str, Any]) -> str:
    n = numbers["exchanges"]
    if len(names) == 1:
        return words.say("join_title_one", a=names[0], n=n)
    if numbers["proxied"]:
        return words.say("join_title_proxy", a=names[0], b=names[1], n=n)
    packets = numbers["packets"]
    all_packets = max(packets["a"], packets["b"])
    return words.say("join_title", a=names[0], b=names[1], both=packets["both"], all=all_packets, n=n)


def _both(typical_ms: float, typical_text: str, all_ms: float, all_text: str, split: Iterable[str] = ()) -> list[str]:
    """Return the lines of the median request and of all requests, with the lines `split` between them."""
    time = words.say("join_typical", latency_ms=typical_ms, places=typical_text)
    all_line = words.line("in all", words.say("join_all", places=all_text, all_ms=all_ms))
    return [words.line("time", time), *split, all_line]


def _times(numbers: dict[str, Any]) -> list[str]:
    typical, is_one_file = numbers["typical"], numbers["one_file"]
    if typical is None:
        return []
    bound = None if is_one_file else typical["clock_error_ms"]
    thirds = {f"{name}_ms": typical[f"{name}_ms"] for name in ("out", "far", "back")}
    split = words.say("join_split_one" if is_one_file else "join_split", **thirds)
    if bound is not None:
        split += words.say("join_split_within", bound_ms=bound)
    shares = _shares(typical, bound if numbers["proxied"] else None, is_one_file)
    return _both(typical["latency_ms"], shares, numbers["latency_ms"], _shares(numbers, None, is_one_file),
                 [words.line("split", split)])  # fmt: skip


def _proofs(numbers: dict[str, Any]) -> list[str]:
    proofs = []
    if numbers["held_in"]:
        proofs.append(words.say("join_held_proof", held=numbers["held_in"], of=numbers["exchanges"]))
    if numbers["lost_in"]:
        proofs.append(words.say("join_lost_proof", n=numbers["lost_in"]))
    lines = [words.line("sure?", words.say("join_proven", proofs=words.joined(proofs)))] if proofs else []
    return [*lines, words.line("fix", numbers["fix"])] if numbers["fix"] else lines


def _way(numbers: dict[str, Any]) -> list[str]:
    """Return the lines on the clocks, the path, and the packets that are not at both points."""
    clock = words.line("clock", words.say("join_one_clock") if numbers["one_file"] else _clock(numbers["clock"]))
    if numbers["proxied"]:
        return [clock]
    packets = words.joined(_packets(numbers["packets"]))
    return [clock, words.line("way", numbers["way"]), words.line("packets", packets)]


def _clock(clock: dict[str, Any]) -> str:
    offset = abs(clock["offset_ms"])
    where = words.say("join_ahead" if clock["offset_ms"] > 0 else "join_behind",
                      size=f"{offset / 1000:,.6g} s" if offset >= 1000 else f"{ms(offset)} ms")  # fmt: skip
    if clock["error_ms"] is None or clock["round_trip_ms"] is None:
        return words.say("join_clock_one_way", offset=where)
    steps = [f"{'+' if step > 0 else '-'}{ms(abs(step))} ms" for step in clock["steps_ms"]]
    text = words.say("join_clock", offset=where, bound_ms=clock["error_ms"], gap_ms=clock["round_trip_ms"])
    ppm = clock["skew_ppm"]
    if clock["seconds"] < limits.RATE_SECONDS:
        text += words.say("join_rate_unknown", seconds=f"{clock['seconds']:.1f}")
    elif abs(ppm) < limits.RATE_PPM:
        text += words.say("join_rate_same")
    else:
        text += words.say("join_rate_faster" if ppm > 0 else "join_rate_slower", ppm=f"{abs(ppm):.1f}")
    return text + (words.say("join_steps", steps=words.say("comma").join(steps)) if steps else "")


def _packets(counts: dict[str, Any]) -> list[str]:
    """Return the phrases on packets that are not at both points."""
    lost = []
    for direction in tables.DIRECTIONS:
        n, sent = counts[direction].get("lost", 0), counts[direction]["sent"]
        if n:
            lost.append(words.say(f"join_lost_{direction}", n=n, sent=sent, share=n / sent))
    parts = [words.say("join_losses", losses=words.say("join_and").join(lost)) if lost else words.say("join_no_loss")]
    for name in ("a", "b"):
        if counts[f"{name}_lacks"]:
            parts.append(words.say("join_lacks", capture=name.upper(), n=counts[f"{name}_lacks"]))
    for fate in ("doubled", "made", "unknown"):
        n = sum(counts[direction].get(fate, 0) for direction in tables.DIRECTIONS)
        if n:
            parts.append(words.say(f"join_fate_{fate}", n=n))
    return parts
