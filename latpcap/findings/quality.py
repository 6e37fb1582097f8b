"""Can this capture carry a verdict? Tables of one capture in, a list of what limits the answer out.

Judged before anything is accused: packets that the capture lacks, a direction that it does not hold, a clock that
stepped. Each check limits how far verdicts may go; most find nothing, and then there is no row.

How many segments were lost is counted here, too: at their sender what was sent again, less what the receiver had
already; elsewhere what never came by, where hosts number their packets. Wireshark's labels are no count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from latpcap import arrays, spill, words
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, SETUP, Completeness
from latpcap.user_waits.segments import DATA, Silence, segments
from latpcap.vocabulary import SIDES, SUSPECTED, cause_names

if TYPE_CHECKING:
    import pyarrow as pa

CODES = ("clock_back", "dropped")
"""Issues that have a check of their own."""
LOSS = cause_names(trait="of_data")


@dataclass(frozen=True)
class Check:
    """One limit of the capture: `most` is the confidence that no verdict may exceed because of it (1.0: a remark)."""

    check: str
    count: int
    of: int
    most: float
    text: str

    @property
    def forbids(self) -> bool:
        """Does it leave no verdict at all?"""
        return self.most <= SUSPECTED

    def to_dict(self) -> dict[str, Any]:
        """The check as plain values (for JSON)."""
        return asdict(self)


def judge(tables: Mapping[str, pa.Table]) -> list[Check]:
    """What limits the answers from this capture? The worst first; empty where nothing does.

    `tables` holds "streams", "exchanges" and "issues" of one capture or one stream; with "events" it is also
    seen whether packets were captured twice and whether the clock jumped ahead.
    """
    found = [
        *_directions(tables["streams"]),
        *_doubles(tables),
        *_gaps(tables["exchanges"]),
        *_dropped(tables["issues"]),
        *_passed_unseen(tables["streams"], tables["exchanges"]),
        *_jumps(tables),
        *_merged(tables),
        *_clock(tables["issues"], tables["streams"]),
        *_starts(tables["streams"]),
        *_reading(tables["issues"]),
    ]
    return sorted(found, key=lambda c: c.most)


def ceiling(checks: list[Check]) -> float:
    """How confident may a verdict from this capture be at most?"""
    return min((c.most for c in checks), default=1.0)


def one_way(streams: pa.Table) -> arrays.Array:
    """Which streams show only one of their two directions, with more in it than unanswered SYNs?"""
    import numpy as np

    columns = ("client_packets", "server_packets", "client_payload_bytes", "server_payload_bytes", "completeness")
    found = np.zeros(streams.num_rows, bool)
    for span, rows in arrays.sliced(streams):
        client, server, requests, answered, code = (arrays.numbers(rows, c) for c in columns)
        found[span] = ((client > 0) != (server > 0)) & (
            (requests > 0) | (answered > 0) | (code & ~np.uint8(Completeness.SYN) != 0)
        )
    return found


def _directions(streams: pa.Table) -> list[Check]:
    alone = int(one_way(streams).sum())
    if not alone:
        return []
    of = streams.num_rows
    has = 0
    for _, rows in arrays.sliced(streams):
        client, server = (arrays.numbers(rows, f"{side}_packets") for side in ("client", "server"))
        has += int(((client > 0) & (server > 0)).sum())
    sentence = words.say("one_direction" if of > 1 else "one_direction_all", n=alone, of=of)
    return [Check("one_direction", alone, of, SUSPECTED if alone > has else 1.0, sentence)]


def _doubles(tables: Mapping[str, pa.Table]) -> list[Check]:
    """Data segments that were captured twice: at two interfaces, or by a mirror port that sends both ways."""
    import numpy as np

    streams = tables["streams"]
    sides = ("client", "server")
    again, packets = (
        sum(int(arrays.numbers(streams, f"{side}_{what}").sum()) for side in sides)
        for what in ("retransmissions", "packets")
    )
    events = segments(tables)
    if events is None or again < LIMITS["doubled_some_share"] * packets:
        return []
    data = events.data()
    same = [np.nan_to_num(data[c].astype(float), nan=-1.0) for c in DATA[-2::-1]]
    time = data["time"]
    order = np.lexsort((time, *same))
    alike = np.all([c[order][1:] == c[order][:-1] for c in same], axis=0)
    doubled = order[1:][alike & (np.diff(time[order]) < LIMITS["double_ns"])]
    count = len(doubled)
    of = len(time) - count
    if not count or count < LIMITS["doubled_some_share"] * of:
        return []
    seen = words.say("copies" if count > of else "twice", n=count, of=of)
    client = data["from_client"]
    by_side = [(int((client[doubled] == side).sum()), int((client == side).sum())) for side in (True, False)]
    if not any(twice > LIMITS["doubled_most_share"] * (all_ - twice) for twice, all_ in by_side):
        return [Check("doubles", count, of, 1.0, words.say("doubled_on_path", seen=seen))]
    return [Check("doubles", count, of, SUSPECTED, words.say("doubled", seen=seen))]


def _gaps(exchanges: pa.Table) -> list[Check]:
    requests = ~arrays.equals(exchanges, "protocol", SETUP)  # set-ups and pauses are no exchanges
    of = int(requests.sum())
    if not of:
        return []
    cut, cuts = arrays.codes(exchanges, "cut_by")
    gap = arrays.code_of(cuts, "gap")
    count = 0
    for span, rows in arrays.sliced(exchanges):
        count += int((requests[span] & ((arrays.numbers(rows, "capture_gap_ms") != 0) | (cut[span] == gap))).sum())
    if not count:
        return []
    share = count / of
    most = 1.0
    for word in ("some", "most"):
        if share > LIMITS[f"gaps_{word}_share"]:
            most = LIMITS[f"gaps_{word}_confidence"]
    return [Check("capture_gap", count, of, most, words.say("gaps" if of > 1 else "gaps_in_one", n=count, of=of))]


def _rows(issues: pa.Table) -> list[dict[str, Any]]:
    """The issues as dicts."""
    rows: list[dict[str, Any]] = issues.select(["kind", "layer", "reason", "count", "code", "number"]).to_pylist()
    return rows


def _coded(issues: pa.Table, code: str) -> list[dict[str, Any]]:
    return [row for row in _rows(issues) if row["code"] == code]


def _dropped(issues: pa.Table) -> list[Check]:
    """Packets that the capturing interface reports as dropped (pcapng)."""
    count = sum((row["number"] or 0) * row["count"] for row in _coded(issues, "dropped"))
    if not count:
        return []
    return [Check("dropped", count, count, LIMITS["dropped_confidence"], words.say("dropped", n=count))]


def _passed_unseen(streams: pa.Table, exchanges: pa.Table) -> list[Check]:
    """Packets that never passed here, by the IPv4 identifications of hosts that count them up by connection."""
    import numpy as np

    hit = []
    for _, rows in arrays.sliced(exchanges):
        for cause in (*LOSS, "capture_gap"):
            hit.append(arrays.distinct(arrays.numbers(rows, "stream")[arrays.numbers(rows, f"{cause}_ms") > 0]))
    waited = np.concatenate(hit) if hit else np.zeros(0, np.int64)
    missing = sent = 0
    for _, rows in arrays.sliced(streams):
        signs = np.isin(arrays.numbers(rows, "stream"), waited)
        for side in ("client", "server"):
            for what in ("retransmissions", "out_of_order", "sacks"):
                signs |= arrays.numbers(rows, f"{side}_{what}") > 0
        share = np.where(signs, LIMITS["unseen_most_share"], LIMITS["unseen_few_share"])
        for side in ("client", "server"):
            skipped, packets = (arrays.numbers(rows, f"{side}_{what}") for what in ("unseen_frames", "packets"))
            trusted = skipped <= share * (skipped + packets)
            missing += int(skipped[trusted].sum())
            sent += int((skipped + packets)[trusted].sum())
    if not missing:
        return []
    return [Check("unseen_frames", missing, sent, 1.0, words.say("passed_unseen", n=missing))]


def _jumps(tables: Mapping[str, pa.Table]) -> list[Check]:
    """A clock that jumped ahead inside exchanges: the time stamps that the hosts send did not."""
    import numpy as np

    exchanges = tables["exchanges"]
    longest_ms = -1.0
    for _, rows in arrays.sliced(exchanges):
        latency = np.nan_to_num(arrays.numbers(rows, "latency_ms").astype(float), nan=0.0)
        longest_ms = max(longest_ms, float(latency.max()))
    events = segments(tables)
    if events is None or longest_ms * NS_PER_MS < LIMITS["clock_ahead_ns"]:
        return []
    jumps = [silence for silence in events.silences() if _clock_only(silence)]
    if not jumps:
        return []
    start, end = arrays.numbers(exchanges, "start"), arrays.numbers(exchanges, "end")
    inside = sum(float(j.gap_ns) * int(((start <= j.begin) & (end >= j.begin + j.gap_ns)).sum()) for j in jumps)
    spent = float((end - start).sum())
    sentence = words.say("clock_ahead", seconds=max(float(j.gap_ns) for j in jumps) / 1e9)
    most = SUSPECTED if inside > LIMITS["clock_ahead_share"] * spent else 1.0
    return [Check("clock_ahead", len(jumps), events.count, most, sentence)]


def _merged(tables: Mapping[str, pa.Table]) -> list[Check]:
    """Recordings of different times in one file: the same addresses need not be the same hosts, nor their paths."""
    events = segments(tables)
    if events is None:
        return []
    starts, ends = (arrays.numbers(tables["streams"], name) for name in ("start", "end"))
    months = [s for s in events.silences() if s.gap_ns >= LIMITS["merged_ns"]]
    apart = [s for s in months if not ((starts <= s.begin) & (ends > s.begin)).any()]
    if not apart:
        return []
    sentence = words.say("merged", n=len(apart) + 1, days=max(s.gap_ns for s in apart) / 1e9 / 86_400)
    return [Check("merged", len(apart), len(apart), LIMITS["merged_confidence"], sentence)]


def _clock_only(silence: Silence) -> bool:
    """Did the time between this packet and the next pass on the capture's clock alone?

    Every sender whose TCP time stamps are seen on both sides is asked: they counted on meanwhile, or they lag behind
    from then on (a packet that the path delayed lags alone). One that counted on is enough to acquit the clock.
    """
    import numpy as np

    near, here = silence.near, silence.here
    stamps = near["tsval"].astype(float)
    sender = near["stream"].astype(np.int64) * 2 + near["from_client"]
    when, gap = near["time"], float(silence.gap_ns)
    stood = 0
    for one in np.unique(sender[~np.isnan(stamps)]):
        rows = np.flatnonzero((sender == one) & ~np.isnan(stamps))
        before, after = rows[rows <= here], rows[rows > here]
        if not len(before) or not len(after):
            continue
        rates = [_rate(stamps[part], when[part]) for part in (before, after) if len(part) > 1]
        # of a host that slept, what had queued leaves at once and seems to count fast
        rate = min((r for r in rates if r is not None), default=None)
        if rate is None:
            continue
        soon = after[when[after] <= when[after[:2][-1]] + gap]
        ticks = (stamps[soon] - stamps[before[-1]]) % 2**32
        if np.any(ticks > rate * ((when[soon] - when[before[-1]]).astype(float) - gap / 2)):
            return False
        stood += len(after) > 1
    return stood > 0


def _rate(stamps: arrays.Array, when: arrays.Array) -> float | None:
    """Ticks of a sender's time stamps in a nanosecond; None where too few passed to tell."""
    ticks, ns = float((stamps[-1] - stamps[0]) % 2**32), float(when[-1] - when[0])
    return ticks / ns if ns >= LIMITS["stamp_rate_ns"] and 2 <= ticks < 2**31 else None


def _clock(issues: pa.Table, streams: pa.Table) -> list[Check]:
    count = sum(row["count"] for row in _coded(issues, "clock_back"))
    if not count:
        return []
    of = sum(int(arrays.numbers(streams, c).sum()) for c in ("client_packets", "server_packets"))
    most = LIMITS["clock_back_confidence"] if count > LIMITS["clock_back_share"] * of else 1.0
    return [Check("clock", count, of, most, words.say("clock_back", n=count))]


def _starts(streams: pa.Table) -> list[Check]:
    bits = arrays.numbers(streams, "completeness")
    count = int((bits & (Completeness.SYN | Completeness.SYN_ACK) == 0).sum())
    if not count:
        return []
    return [Check("mid_stream", count, len(bits), 1.0, words.say("mid_stream", n=count, of=len(bits)))]


def _reading(issues: pa.Table) -> list[Check]:
    """Frames that were damaged, cut or not understood."""
    found = []
    for row in _rows(issues):
        if row["code"] in CODES:
            continue
        sentence = words.say("of_server", server=row["layer"], text=row["reason"])
        found.append(Check(str(row["kind"]), row["count"], row["count"], 1.0, sentence))
    return found


def lost(streams: pa.Table, exchanges: pa.Table) -> int:
    """Segments lost on the way, both directions of all streams; those that the capture alone lacks are none of them."""
    import numpy as np

    hit = []
    for _, rows in arrays.sliced(exchanges):
        waited = sum(
            (np.nan_to_num(arrays.numbers(rows, f"{cause}_ms").astype(float)) for cause in LOSS),
            np.zeros(rows.num_rows),
        )
        hit.append(arrays.distinct(arrays.numbers(rows, "stream")[waited > 0]))
    mended = np.concatenate(hit) if hit else np.zeros(0, np.int64)
    total = 0
    for _, rows in arrays.sliced(streams):
        repairs = np.isin(arrays.numbers(rows, "stream"), mended)
        for side, peer in SIDES.items():
            again, late, needless, spurious, packets = (
                arrays.numbers(rows, f"{whose}_{what}").astype(np.int64)
                for whose, what in (
                    (side, "retransmissions"),
                    (side, "out_of_order"),
                    (peer, "dsacks"),
                    (side, "spurious_retransmissions"),
                    (side, "packets"),
                )
            )
            ours, theirs = (arrays.equals(rows, "position", f"at_{s}") for s in (side, peer))
            needless = np.maximum(needless, spurious)  # a DSACK may tell of the same repeat
            # what is out of order where it is sent was sent before; nobody overtakes there
            repaired = np.maximum(np.where(ours, again + late, again) - needless, 0)
            skipped = arrays.numbers(rows, f"{side}_unseen_frames").astype(float)
            unseen = np.nan_to_num(skipped).astype(np.int64)
            trusted = (unseen <= LIMITS["unseen_most_share"] * (unseen + packets)) & repairs
            repaired = np.maximum(repaired, np.where(trusted, unseen, 0))
            # at the receiver each number came by, or was lost
            repaired = np.where(theirs & ~np.isnan(skipped) & (unseen == 0), 0, repaired)
            total += int(repaired.sum())
    return total


def of_exchanges(rows: arrays.Array, tables: Mapping[str, pa.Table]) -> int:
    """Segments lost on the streams of these rows of the exchanges."""
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    numbers = arrays.distinct(spill.take(arrays.numbers(exchanges, "stream"), rows))
    mine = np.flatnonzero(np.isin(arrays.numbers(streams, "stream"), numbers))
    return lost(streams.take(arrays.column(mine)), exchanges)
