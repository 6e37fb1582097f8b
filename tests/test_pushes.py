"""Which messages that nobody asked for waited in their sender's kernel, and where is that said?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import latpcap as lp
from latpcap import findings
from latpcap.answers import headline as answer
from latpcap.answers.types import WithRequests
from latpcap.findings.pushes import COLUMNS, Pushed
from latpcap.findings.schema import Finding
from latpcap.options import TableName

CASES = Path(__file__).with_name("cases")
HELD = CASES / "pushes_held_behind_an_answer/capture.pcap"
ANSWERS = CASES / "answers_to_pushes_held/capture.pcap"


def pushed(capture: lp.Capture, size: int) -> Pushed:
    """Its tables, so many rows at a time, causes before what they are of."""
    found = Pushed()
    for name in ("causes", "gaps", "pushes"):
        table = capture.arrow(name)
        for begin in range(0, table.num_rows, size):
            found.add(name, table.select([*COLUMNS[name]]).slice(begin, size))
    return found


@pytest.mark.parametrize("path", [HELD, ANSWERS], ids=["pushes", "answers"])
@pytest.mark.parametrize("size", [1, 7])
def test_rows_may_come_in_any_pieces(path: Path, size: int) -> None:
    capture = lp.read(path)
    whole, parts = pushed(capture, 1 << 20).held(), pushed(capture, size).held()
    assert whole is not None and parts is not None
    for name in ("number", "stream", "by_client", "ms", "proven_ms", "acks_ms", "confidence"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()
    assert [whole.frames(row) for row in range(len(whole.ms))] == [parts.frames(row) for row in range(len(parts.ms))]


def test_nothing_is_held_where_nothing_is() -> None:
    assert pushed(lp.read(CASES / "pushes_in_bursts_decoy_nodelay/capture.pcap"), 100).held() is None
    assert Pushed().held() is None


def test_stored_tables_say_the_same_with_gaps_and_pushes() -> None:
    whole = lp.read(HELD)
    names: tuple[TableName, ...] = ("streams", "exchanges", "causes", "evidence", "issues", "connects", "gaps")
    tables = {name: whole.arrow(name) for name in names}
    assert "push" not in findings.table(tables)["kind"].to_pylist()
    stored = findings.table({**tables, "pushes": whole.arrow("pushes")}).to_pylist()
    [here], [there] = (
        [row["text"] for row in rows if row["kind"] == "push"] for rows in (stored, whole.arrow("findings").to_pylist())
    )
    assert here == there


def test_a_threshold_of_ones_own_counts_for_pushes_too() -> None:
    capture = lp.read(HELD)
    took = sorted(capture.pushes["duration_ms"])
    limit = (took[19] + took[20]) / 2
    assert [f.exchanges for f in capture.why(slow_ms=limit).findings if f.kind == "push"] == [10]
    assert not [f for f in capture.why(slow_ms=took[-1] + 0.001).findings if f.kind == "push"]


def test_the_headline_speaks_of_pushes_from_a_tenth_of_them_on() -> None:
    facts = lp.read(HELD).why().data.facts
    requests = facts.requests
    [found] = facts.common.of_kind("push")

    def leading_push(push: Finding, requests: WithRequests = requests) -> Finding | None:
        common = replace(requests.common, other_findings=[push])
        return answer.pushed(replace(facts, requests=replace(requests, common=common)))

    for held, leads in ((30, True), (3, True), (2, False)):
        some = replace(found, exchanges=held)
        assert (leading_push(some) is not None) == leads
    # beside slow requests they have to be more
    late = replace(requests, slow={**requests.slow, "count": 5})
    for total, leads in ((requests.total_ms + 1, True), (requests.total_ms, False)):
        some = replace(found, total_ms=total)
        assert (leading_push(some, late) is not None) == leads
    # those of another server only where all its requests took less, and none was slow
    other = replace(found, server_port=1)
    assert leading_push(other) is other
    assert leading_push(other, late) is None


def test_pictures_name_them() -> None:
    texts = {b.text.partition(": ")[2] for b in lp.read(HELD).flow_graph(frames=(8, 12)).brackets}
    assert "sent unasked, 51.7 ms" in texts
    texts = {b.text.partition(": ")[2] for b in lp.read(ANSWERS).flow_graph(frames=(33, 38)).brackets}
    assert texts == {"held by the client's kernel, 47.3 ms"}


def test_results_of_many_captures_say_it(tmp_path: Path) -> None:
    lp.batch([HELD, ANSWERS], tmp_path / "out")
    answer = lp.open_results(tmp_path / "out", sites="one").why()
    assert "30 of 30 WebSocket messages that 10.67.1.40:9000 pushed probably waited" in str(answer)
    rows = [row for row in answer.to_dict()["events"] if row["kind"] == "push"]
    assert [(row["owner"], row["exchanges"], row["of_streams"]) for row in rows] == [
        ("server", 30, 1),
        ("client", 12, 1),
    ]
