"""A script as a user writes it: mypy reads it with `--strict`, and a test runs it."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import latpcap as lp
from latpcap.options import Group, TableName


def report(path: Path, pictures: Path) -> int:
    capture: lp.Capture = lp.read(path)
    answer = capture.why()
    print(answer)
    numbers = answer.to_dict()
    print(numbers["verdict"], numbers["confidence"])

    tables: tuple[TableName, ...] = ("events", "streams", "exchanges", "causes", "evidence", "findings", "issues")
    for name in tables:
        print(name, capture.arrow(name).num_rows)
    print(answer.verdict, answer.server, answer.confidence, capture.to_arrow("events").num_columns)
    slow = capture.exchanges.nlargest(3, "latency_ms")
    print(list(slow["latency_ms"]))

    stream: lp.Stream = capture.stream(int(slow["stream"].iloc[0]))
    print(stream.capture.title, stream.client, stream.server, stream.why(exchange=0))
    payload = capture.payloads(stream=stream.number)
    print(list(capture.headers.columns), len(payload), [len(one) for one in payload["payload"]])
    print(stream.follow().lost, len(stream.follow().payload(0)))

    groups: list[Group] = ["server", "method"]
    latency = capture.latency(by=groups, which="latency_ms", percentiles=(50, 99))
    print(latency.table[["count", "p99_ms"]])
    latency.plot(scale="log").save(pictures / "latency.png")
    capture.waterfall(sort="delayed_ack", align="clock", top=5).save(pictures / "waterfall.png")
    capture.timeline(scale="linear").save(pictures / "timeline.png")
    stream.time_sequence(sender="server", panels=("sequence", "rtt")).save(pictures / "sequence.png")
    capture.flow_graph(exchange="worst", time="delta_displayed").save(pictures / "flow.png")

    capture.to_html(pictures / "report.html")
    half: lp.Capture = lp.read(path, start=0.1, end=dt.datetime(2100, 1, 1), progress=False)
    print(half.display_filter, half.seconds)
    part = capture.filter("tcp.len > 0")
    print(part.unfiltered.frames, part.to_pcap(pictures / "part.pcapng"))
    record = capture.record(1)
    print(record.time_ns, len(record.data))

    change = lp.compare(capture, path)
    print(change.metrics)
    try:
        lp.read(b"no capture")
    except lp.CaptureError as problem:
        print(problem)

    done = lp.batch([str(path)], pictures / "results", quiet=True)
    results = lp.open_results(pictures / "results")
    print(done.summary, results.exchanges.count(), results.latency(by="server"))
    return capture.frames


if __name__ == "__main__":
    print(report(Path(sys.argv[1]), Path(sys.argv[2])))
