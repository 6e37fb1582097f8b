"""The lines that wrk, ping, hping3, traceroute, curl or pgbench would have printed for a capture, by their formulas.

Numbers are measured at the point of capture. Each report ends with the values that the capture does not contain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latpcap.reports.report_text import Report

if TYPE_CHECKING:
    from latpcap.options import Tool
    from latpcap.reports.report_text import Subject
    from latpcap.tables import Needed

TOOLS: tuple[Tool, ...] = ("wrk", "ping", "hping3", "traceroute", "curl", "pgbench")


def make_report(capture: Subject, tool: Tool, server: str | None = None) -> Report:
    """Return the lines of this tool for a capture; `server` limits them to one address, or address and port.

    ValueError for another tool, or for a capture without traffic of the tool's kind; CaptureError where the bytes of
    probes cannot be read again.
    """
    if tool == "wrk":
        from latpcap.reports import wrk

        return wrk.report(capture, server)
    if tool == "curl":
        from latpcap.reports import curl

        return curl.report(capture, server)
    if tool == "pgbench":
        from latpcap.reports import pgbench

        return pgbench.report(capture, server)
    if tool in TOOLS:
        from latpcap.reports import ping_traceroute

        return getattr(ping_traceroute, tool)(capture, server)
    raise ValueError(f"no tool {tool!r}; known are {', '.join(TOOLS)}")


def needed(tool: Tool) -> Needed:
    """Return the columns and rows that the report of this tool reads."""
    from latpcap.reports import curl, pgbench, ping_traceroute, wrk

    return {"wrk": wrk, "curl": curl, "pgbench": pgbench}.get(tool, ping_traceroute).needed()


__all__ = ["TOOLS", "Report", "make_report", "needed"]
