"""The pictures, one class per file. matplotlib is imported only when a picture is drawn."""

from __future__ import annotations

from latpcap.plot.delays import DelayPlot
from latpcap.plot.evidence import EvidencePlot
from latpcap.plot.flow.graph import FlowGraph
from latpcap.plot.flow.lifelines import PointsGraph
from latpcap.plot.latency import LatencyPlot
from latpcap.plot.throughput import Throughput
from latpcap.plot.timeline import Timeline
from latpcap.plot.timeseq import TimeSequence
from latpcap.plot.waterfall import Waterfall

__all__ = [
    "DelayPlot", "EvidencePlot", "FlowGraph", "LatencyPlot", "PointsGraph", "Throughput", "TimeSequence", "Timeline",
    "Waterfall",
]  # fmt: skip
