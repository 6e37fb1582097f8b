"""Spans for trace viewers have the structure that the viewers want; names are those of the published schemas."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from commands import USAGE, answered, complains
from makepcap import Talk, answer, get, pcap

import latpcap as lp
from latpcap.exports import spans

SAMPLES = Path(__file__).resolve().parents[1] / "sample_pcaps"
CASES = Path(__file__).parent / "cases"
STALLED = SAMPLES / "clips" / "split-nagle.pcap"
PLACES = [STALLED, *(next((CASES / name).glob("capture.*")) for name in (
    "dns_slow", "lost_segments_without_sacks", "silence_cut_off", "syn_ack_lost_at_server", "http2_streams", "tls12",
    "published_messages_held",
))]  # fmt: skip


@cache
def read(place: Path) -> lp.Capture:
    return lp.read(place)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.parent.name)
def test_spans_are_trees(place: Path) -> None:
    found = spans.build_spans(read(place))
    known = {span.span_id: span for span in found}
    assert found and len(known) == len(found), "each has an id of its own"
    for span in found:
        assert span.start <= span.end and re.fullmatch("[0-9a-f]{16}", span.span_id)
        assert re.fullmatch("[0-9a-f]{32}", span.trace_id)
        if span.parent_id is not None:
            parent = known[span.parent_id]
            assert parent.trace_id == span.trace_id and parent.start <= span.start <= span.end <= parent.end
    assert [span.span_id for span in spans.build_spans(lp.read(place))] == [*known], (
        "the same capture gives the same ids"
    )


def test_a_request_has_its_causes() -> None:
    cap = read(STALLED)
    row = cap.exchanges.sort_values("latency_ms").iloc[-1]
    found = spans.build_spans(cap)
    (request,) = [s for s in found if s.attributes.get("latpcap.exchange") == row.exchange]
    assert request.end - request.start == round(row.latency_ms * 1e6) and request.name == f"{row.method} {row.target}"
    causes = [span for span in found if span.parent_id == request.span_id]
    assert sum(span.end - span.start for span in causes) == request.end - request.start
    held = next(span for span in causes if span.name == "delayed_ack")
    assert held.attributes["latpcap.owner"] == "server" and len(held.attributes["latpcap.frames"]) > 1


def test_otlp(tmp_path: Path) -> None:
    """opentelemetry.io/docs/specs/otlp, JSON Protobuf encoding: hex ids, 64-bit numbers as text, enums as numbers."""
    path = tmp_path / "spans.jsonl"
    count = read(STALLED).to_otlp(path)
    rows: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        (resource,) = json.loads(line)["resourceSpans"]
        assert resource["resource"]["attributes"][0]["key"] == "service.name"
        (scope,) = resource["scopeSpans"]
        assert scope["scope"]["name"] == "latpcap"
        rows += scope["spans"]
    assert len(rows) == count > 30
    for row in rows:
        assert set(row) - {"parentSpanId"} == {
            "traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status",
        }  # fmt: skip
        assert isinstance(row["startTimeUnixNano"], str) and isinstance(row["kind"], int)
        for attribute in row["attributes"]:
            ((kind, value),) = attribute["value"].items()
            assert kind in ("stringValue", "intValue", "arrayValue", "doubleValue", "boolValue")
            assert kind != "intValue" or isinstance(value, str)


def test_a_request_belongs_to_the_trace_that_it_carries() -> None:
    talk = Talk()
    talk.open()
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    talk.client(10.0, get("/", "GET", f"traceparent: 00-{trace}-00f067aa0ba902b7-01"))
    talk.server(20.0, b"".join(answer(5)))
    found = spans.build_spans(lp.read(pcap(talk.tape)))
    assert {span.trace_id for span in found if span.kind in ("request", "action")} == {trace}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.parent.name)
def test_perfetto_nests(place: Path, tmp_path: Path) -> None:
    """Complete events of one thread must nest, or viewers drop them."""
    path = tmp_path / "trace.json"
    count = read(place).to_perfetto(path)
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    assert len(complete) == count and {event["ph"] for event in events} == {"M", "X"}
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    open_until: dict[tuple[int, int], list[float]] = {}
    for event in complete:
        thread = event["pid"], event["tid"]
        assert thread in named and event["dur"] >= 0 and event["ts"] >= 0
        stack = open_until.setdefault(thread, [])
        while stack and stack[-1] <= event["ts"] + 1e-6:
            stack.pop()
        assert not stack or event["ts"] + event["dur"] <= stack[-1] + 1e-3
        stack.append(event["ts"] + event["dur"])


def test_names() -> None:
    cap = read(STALLED)
    exchange, stream = cap.exchanges.iloc[1], cap.streams.iloc[0]
    ecs = cap.to_arrow(names="ecs").to_pylist()[1]
    assert ecs["event.duration"] == round(exchange.latency_ms * 1e6) and ecs["url.path"] == exchange.target
    assert ecs["http.response.status_code"] == 200 and ecs["@timestamp"] == ecs["event.start"]
    assert ecs["latpcap.delayed_ack_ms"] == exchange.delayed_ack_ms
    otel = cap.to_arrow(names="otel").to_pylist()[1]
    assert (otel["server.port"], otel["http.request.method"], otel["url.query"]) == (9000, "POST", None)
    zeek = cap.to_arrow("streams", names="zeek").to_pylist()[0]
    assert zeek["duration"] == pytest.approx((stream.end - stream.start).total_seconds())
    assert zeek["ts"] == pytest.approx(stream.start.timestamp()) and zeek["proto"] == "tcp"
    assert (zeek["id.orig_p"], zeek["resp_pkts"]) == (stream.client_port, stream.server_packets)
    lookups = read(CASES / "dns_slow" / "capture.pcap").to_arrow("lookups", names="zeek")
    assert lookups["query"][0].as_py() == "web.lab" and lookups["rtt"][0].as_py() == pytest.approx(5.012)
    with pytest.raises(ValueError, match="streams, exchanges, lookups"):
        cap.to_arrow("events", names="ecs")
    with pytest.raises(ValueError, match="otel, ecs, zeek"):
        cap.to_arrow(names="corelight")  # type: ignore[arg-type]


def test_commands(tmp_path: Path) -> None:
    first = answered("exchanges", STALLED, "--names", "ecs", "--jsonl", "--top", 1)
    assert json.loads(first)["http.request.method"] == "POST"
    chosen = answered("streams", STALLED, "--names", "zeek", "--columns", "ts,community_id", "--csv")
    assert chosen.startswith('"ts","community_id"')
    assert "these have: streams" in complains(USAGE, "waits", STALLED, "--names", "ecs")
    lines = answered("export", STALLED, "--to", "otlp", "--stream", 0).splitlines()
    assert "resourceSpans" in json.loads(lines[0])
    answered("export", STALLED, "--to", "perfetto", "-o", tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["otherData"]["title"] == STALLED.name
    assert "otlp, perfetto" in complains(USAGE, "export", STALLED, "--to", "jaeger")
    complains(USAGE, "export", STALLED, "--to", "otlp", "-o", tmp_path / "none" / "x.jsonl")
