"""Checks of a capture's quality, and the number of lost segments.

`judge` looks for missing packets, a missing direction, duplicated packets, clock steps and damaged frames. Each check
that finds something limits the confidence of every verdict.

`lost` counts segments lost on the path. At the sender: retransmissions without the needless ones (DSACK). Elsewhere:
also IPv4 identifications that the capture point never saw. Wireshark's labels would count needless retransmissions too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from latpcap import arrays, spill, words
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, Completeness, request_mask
from latpcap.user_waits.segments import DATA, Silence, segments
from latpcap.vocabulary import SIDES, SUSPECTED, cause_names

CODES = ("clock_back", "dropped")
"""Codes of issues that have a check of their own."""
LOSS = cause_names(trait="of_data")
"""Causes whose time shows that a data segment was lost."""


@dataclass(frozen=True)
class Check:
    """One limit of the capture, found in `count` of `of` packets, streams or exchanges.

    `most` is the upper bound on the confidence of every verdict; 1.0 for a mere remark.
    """

    check: str
    count: int
    of: int
    most: float
    text: str

    @property
    def forbids(self) -> bool:
        """Whether it leaves no verdict above a suspicion."""
        return self.most <= SUSPECTED

    def to_dict(self) -> dict[str, Any]:
        """Return the check as plain values (for JSON)."""
        return asdict(self)


def judge(tables: Mapping[str, pa.Table]) -> list[Check]:
    """Return the limits of this capture, the lowest confidence first.

    `tables` holds "streams", "exchanges" and "issues" of one capture or one stream. With "events", duplicated packets,
    jumps of the clock and merged recordings are found as well.
    """
    checks = [
        *_directions(tables["streams"]),
        *_doubles(tables),
        *_gaps(tables["stretches"]),
        *_dropped(tables["issues"]),
        *_passed_unseen(tables["streams"], tables["stretches"]),
        *_jumps(tables),
        *_merged(tables),
        *_clock(tables["issues"], tables["streams"]),
        *_starts(tables["streams"]),
        *_reading(tables["issues"]),
    ]
    return sorted(checks, key=lambda check: check.most)


def ceiling(checks: list[Check]) -> float:
    """Return the upper bound on the confidence of a verdict from this capture."""
    return min((check.most for check in checks), default=1.0)


def one_way(streams: pa.Table) -> arrays.Array:
    """Return a mask of the streams that show only one direction, with more than unanswered SYNs in it."""
    columns = ("client_packets", "server_packets", "client_payload_bytes", "server_payload_bytes", "completeness")
    mask = np.zeros(streams.num_rows, bool)
    for span, rows in arrays.sliced(streams):
        client, server, requests, answered, code = (arrays.numbers(rows, column) for column in columns)
        mask[span] = ((client > 0) != (server > 0)) & (
            (requests > 0) | (answered > 0) | (code & ~np.uint8(Completeness.SYN) != 0)
        )
    return mask


def _directions(streams: pa.Table) -> list[Check]:
    one_sided = int(one_way(streams).sum())
    if not one_sided:
        return []
    total = streams.num_rows
    two_sided = 0
    for _, rows in arrays.sliced(streams):
        client, server = (arrays.numbers(rows, f"{side}_packets") for side in ("client", "server"))
        two_sided += int(((client > 0) & (server > 0)).sum())
    sentence = words.say("one_direction" if total > 1 else "one_direction_all", n=one_sided, of=total)
    return [Check("one_direction", one_sided, total, SUSPECTED if one_sided > two_sided else 1.0, sentence)]


def _doubles(tables: Mapping[str, pa.Table]) -> list[Check]:
    """Find data segments that were captured twice.

    An equal segment within `double_ns` is a copy; a retransmission comes later. If most segments of one side are
    copies, a second capture point or a mirror port made them and no verdict is possible; fewer were copied on the path.
    """
    streams = tables["streams"]
    sides = ("client", "server")
    retransmissions, packets = (
        sum(int(arrays.numbers(streams, f"{side}_{counter}").sum()) for side in sides)
        for counter in ("retransmissions", "packets")
    )
    events = segments(tables)
    if events is None or retransmissions < LIMITS["doubled_some_share"] * packets:
        return []
    data = events.data()
    columns = [np.nan_to_num(data[column].astype(float), nan=-1.0) for column in DATA[-2::-1]]
    time = data["time"]
    order = np.lexsort((time, *columns))
    are_equal = np.all([column[order][1:] == column[order][:-1] for column in columns], axis=0)
    doubled = order[1:][are_equal & (np.diff(time[order]) < LIMITS["double_ns"])]
    count = len(doubled)
    total = len(time) - count
    if not count or count < LIMITS["doubled_some_share"] * total:
        return []
    how_many = words.say("copies" if count > total else "twice", n=count, of=total)
    client = data["from_client"]
    by_side = [(int((client[doubled] == side).sum()), int((client == side).sum())) for side in (True, False)]
    if not any(twice > LIMITS["doubled_most_share"] * (all_ - twice) for twice, all_ in by_side):
        return [Check("doubles", count, total, 1.0, words.say("doubled_on_path", seen=how_many))]
    return [Check("doubles", count, total, SUSPECTED, words.say("doubled", seen=how_many))]


def _gaps(stretches: pa.Table) -> list[Check]:
    """Count the exchanges during which the capture lacks packets."""
    requests = request_mask(stretches)
    total = int(requests.sum())
    if not total:
        return []
    cut, cuts = arrays.codes(stretches, "cut_by")
    gap_code = arrays.code_of(cuts, "gap")
    count = 0
    for span, rows in arrays.sliced(stretches):
        count += int((requests[span] & ((arrays.numbers(rows, "capture_gap_ms") != 0) | (cut[span] == gap_code))).sum())
    if not count:
        return []
    gap_share = count / total
    confidence = 1.0
    for level in ("some", "most"):
        if gap_share > LIMITS[f"gaps_{level}_share"]:
            confidence = LIMITS[f"gaps_{level}_confidence"]
    sentence = words.say("gaps" if total > 1 else "gaps_in_one", n=count, of=total)
    return [Check("capture_gap", count, total, confidence, sentence)]


def _coded(issues: pa.Table, code: str) -> list[dict[str, Any]]:
    return [row for row in issues.select(["count", "code", "number"]).to_pylist() if row["code"] == code]


def _dropped(issues: pa.Table) -> list[Check]:
    """Count packets that the capturing interface reports as dropped (pcapng, option isb_ifdrop)."""
    count = sum((row["number"] or 0) * row["count"] for row in _coded(issues, "dropped"))
    if not count:
        return []
    return [Check("dropped", count, count, LIMITS["dropped_confidence"], words.say("dropped", n=count))]


def _passed_unseen(streams: pa.Table, stretches: pa.Table) -> list[Check]:
    """Count packets that never passed the capture point, by steps in the IPv4 identifications of their sender.

    Many steps mean that the host counts over all its connections: such streams are left out. The bound is higher for
    streams that show signs of loss.
    """
    parts = []
    for _, rows in arrays.sliced(stretches):
        for cause in (*LOSS, "capture_gap"):
            parts.append(arrays.distinct(arrays.numbers(rows, "stream")[arrays.numbers(rows, f"{cause}_ms") > 0]))
    lossy_streams = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    missing = sent = 0
    for _, rows in arrays.sliced(streams):
        has_loss = np.isin(arrays.numbers(rows, "stream"), lossy_streams)
        for side in ("client", "server"):
            for counter in ("retransmissions", "out_of_order", "sacks"):
                has_loss |= arrays.numbers(rows, f"{side}_{counter}") > 0
        max_share = np.where(has_loss, LIMITS["unseen_most_share"], LIMITS["unseen_few_share"])
        for side in ("client", "server"):
            skipped, packets = (arrays.numbers(rows, f"{side}_{counter}") for counter in ("unseen_frames", "packets"))
            trusted = skipped <= max_share * (skipped + packets)
            missing += int(skipped[trusted].sum())
            sent += int((skipped + packets)[trusted].sum())
    if not missing:
        return []
    return [Check("unseen_frames", missing, sent, 1.0, words.say("passed_unseen", n=missing))]


def _jumps(tables: Mapping[str, pa.Table]) -> list[Check]:
    """Find jumps of the capture's clock inside exchanges, while the hosts' TCP timestamps show no such time."""
    stretches = tables["stretches"]
    longest_ms = -1.0
    for _, rows in arrays.sliced(stretches):
        latency = np.nan_to_num(arrays.numbers(rows, "latency_ms").astype(float), nan=0.0)
        longest_ms = max(longest_ms, float(latency.max()))
    events = segments(tables)
    if events is None or longest_ms * NS_PER_MS < LIMITS["clock_ahead_ns"]:
        return []
    jumps = [silence for silence in events.silences() if _clock_only(silence)]
    if not jumps:
        return []
    start, end = arrays.numbers(stretches, "start"), arrays.numbers(stretches, "end")
    inside_ns = 0.0
    for jump in jumps:
        is_around = (start <= jump.begin) & (end >= jump.begin + jump.gap_ns)
        inside_ns += float(jump.gap_ns) * int(is_around.sum())
    total_ns = float((end - start).sum())
    sentence = words.say("clock_ahead", seconds=max(float(jump.gap_ns) for jump in jumps) / 1e9)
    confidence = SUSPECTED if inside_ns > LIMITS["clock_ahead_share"] * total_ns else 1.0
    return [Check("clock_ahead", len(jumps), events.count, confidence, sentence)]


def _merged(tables: Mapping[str, pa.Table]) -> list[Check]:
    """Find recordings of different times in one file. Equal addresses need not be the same hosts or paths there."""
    events = segments(tables)
    if events is None:
        return []
    starts, ends = (arrays.numbers(tables["streams"], name) for name in ("start", "end"))
    silences = [silence for silence in events.silences() if silence.gap_ns >= LIMITS["merged_ns"]]
    between_recordings = [
        silence for silence in silences if not ((starts <= silence.begin) & (ends > silence.begin)).any()
    ]
    if not between_recordings:
        return []
    sentence = words.say(
        "merged",
        n=len(between_recordings) + 1,
        days=max(silence.gap_ns for silence in between_recordings) / 1e9 / 86_400,
    )
    return [Check("merged", len(between_recordings), len(between_recordings), LIMITS["merged_confidence"], sentence)]


def _clock_only(silence: Silence) -> bool:
    """Return whether the capture's clock jumped in this silence, by the senders' TCP timestamps (RFC 7323).

    Each sender is compared over the silence: if its timestamps advanced, the time really passed, and one such sender
    suffices. If they did not, they stay behind the clock from then on; after a mere delay, a single packet is behind.
    """
    near, last_before = silence.near, silence.index_before
    timestamps = near["tsval"].astype(float)
    sender = near["stream"].astype(np.int64) * 2 + near["from_client"]
    time, gap = near["time"], float(silence.gap_ns)
    lagging = 0
    for key in np.unique(sender[~np.isnan(timestamps)]):
        rows = np.flatnonzero((sender == key) & ~np.isnan(timestamps))
        before, after = rows[rows <= last_before], rows[rows > last_before]
        if not len(before) or not len(after):
            continue
        tick_rates = [_rate(timestamps[group], time[group]) for group in (before, after) if len(group) > 1]
        # the lower rate: packets queued by a host that slept leave at once, so its timestamps seem to run fast
        rate = min((known_rate for known_rate in tick_rates if known_rate is not None), default=None)
        if rate is None:
            continue
        soon_after = after[time[after] <= time[after[:2][-1]] + gap]
        ticks = (timestamps[soon_after] - timestamps[before[-1]]) % 2**32
        if np.any(ticks > rate * ((time[soon_after] - time[before[-1]]).astype(float) - gap / 2)):
            return False
        lagging += len(after) > 1
    return lagging > 0


def _rate(timestamps: arrays.Array, time: arrays.Array) -> float | None:
    """Return ticks per ns of a sender's timestamps; None if the segments cover too little time."""
    ticks, ns = float((timestamps[-1] - timestamps[0]) % 2**32), float(time[-1] - time[0])
    return ticks / ns if ns >= LIMITS["stamp_rate_ns"] and 2 <= ticks < 2**31 else None


def _clock(issues: pa.Table, streams: pa.Table) -> list[Check]:
    """Count steps of the capture's clock to an earlier time."""
    count = sum(row["count"] for row in _coded(issues, "clock_back"))
    if not count:
        return []
    packets = sum(int(arrays.numbers(streams, column).sum()) for column in ("client_packets", "server_packets"))
    confidence = LIMITS["clock_back_confidence"] if count > LIMITS["clock_back_share"] * packets else 1.0
    return [Check("clock", count, packets, confidence, words.say("clock_back", n=count))]


def _starts(streams: pa.Table) -> list[Check]:
    """Count streams whose handshake was not captured."""
    bits = arrays.numbers(streams, "completeness")
    count = int((bits & (Completeness.SYN | Completeness.SYN_ACK) == 0).sum())
    if not count:
        return []
    return [Check("mid_stream", count, len(bits), 1.0, words.say("mid_stream", n=count, of=len(bits)))]


def _reading(issues: pa.Table) -> Iterator[Check]:
    """Report frames that were damaged, cut or not understood, by layer and reason."""
    for row in issues.select(["kind", "layer", "reason", "count", "code"]).to_pylist():
        if row["code"] in CODES:
            continue
        sentence = words.say("of_server", server=row["layer"], text=row["reason"])
        yield Check(str(row["kind"]), row["count"], row["count"], 1.0, sentence)


def lost(streams: pa.Table, stretches: pa.Table) -> int:
    """Count the segments lost on the path, in both directions of all streams. Packets that only the capture lacks are
    not counted.
    """
    parts = []
    for _, rows in arrays.sliced(stretches):
        waited_ms = sum(
            (np.nan_to_num(arrays.numbers(rows, f"{cause}_ms").astype(float)) for cause in LOSS),
            np.zeros(rows.num_rows),
        )
        parts.append(arrays.distinct(arrays.numbers(rows, "stream")[waited_ms > 0]))
    lossy_streams = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    total = 0
    for _, rows in arrays.sliced(streams):
        has_repairs = np.isin(arrays.numbers(rows, "stream"), lossy_streams)
        for side, peer in SIDES.items():
            retransmissions, out_of_order, needless, spurious, packets = (
                arrays.numbers(rows, f"{counted_side}_{counter}").astype(np.int64)
                for counted_side, counter in (
                    (side, "retransmissions"),
                    (side, "out_of_order"),
                    (peer, "dsacks"),
                    (side, "spurious_retransmissions"),
                    (side, "packets"),
                )
            )
            at_sender, at_receiver = (arrays.equals(rows, "position", f"at_{side_name}") for side_name in (side, peer))
            needless = np.maximum(needless, spurious)  # a DSACK and Wireshark's rule may be about one segment
            # at the sender nothing is overtaken: an out-of-order segment is a retransmission
            repaired = np.maximum(np.where(at_sender, retransmissions + out_of_order, retransmissions) - needless, 0)
            skipped = arrays.numbers(rows, f"{side}_unseen_frames").astype(float)
            unseen_frames = np.nan_to_num(skipped).astype(np.int64)
            trusted = (unseen_frames <= LIMITS["unseen_most_share"] * (unseen_frames + packets)) & has_repairs
            repaired = np.maximum(repaired, np.where(trusted, unseen_frames, 0))
            # at the receiver nothing was lost if no IPv4 identification is missing
            repaired = np.where(at_receiver & ~np.isnan(skipped) & (unseen_frames == 0), 0, repaired)
            total += int(repaired.sum())
    return total


def of_exchanges(rows: arrays.Array, tables: Mapping[str, pa.Table]) -> int:
    """Count the segments lost on the streams of these rows of the exchanges."""
    streams, stretches = tables["streams"], tables["stretches"]
    numbers = arrays.distinct(spill.take(arrays.numbers(stretches, "stream"), rows))
    stream_rows = np.flatnonzero(np.isin(arrays.numbers(streams, "stream"), numbers))
    return lost(streams.take(arrays.column(stream_rows)), stretches)
