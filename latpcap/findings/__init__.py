"""The findings of a capture: what is wrong, who owns it, how sure that is, and what would mend it."""

from latpcap.findings.finders import FINDERS, rows, table
from latpcap.findings.schema import BRIEF, COLUMNS, Finding, LatencyFinding, grade, schema
from latpcap.findings.tables import FinderTables, by_server, pushes_of, read_from

__all__ = [
    "BRIEF",
    "COLUMNS",
    "FINDERS",
    "FinderTables",
    "Finding",
    "LatencyFinding",
    "by_server",
    "grade",
    "pushes_of",
    "read_from",
    "rows",
    "schema",
    "table",
]
