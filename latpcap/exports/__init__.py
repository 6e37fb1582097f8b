"""The tables in the formats of other tools: spans for trace viewers, column names of published schemas."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from latpcap import files
from latpcap.errors import OutputError

if TYPE_CHECKING:
    from latpcap.exports.spans import Span
    from latpcap.tables import HasTables

Form: TypeAlias = Literal["otlp", "perfetto"]
FORMS: tuple[Form, ...] = get_args(Form)


def parts(scope: HasTables, form: Form, title: str) -> tuple[int, Iterator[str]]:
    """Return the number of spans, and the text of the file in parts."""
    from importlib.metadata import version

    from latpcap.exports import otlp, perfetto, spans

    built_spans = spans.build_spans(scope)
    if form == "otlp":
        return len(built_spans), (f"{line}\n" for line in otlp.lines(built_spans, version("latpcap")))
    return len(built_spans), iter([perfetto.text(built_spans, _first(built_spans), title)])


def _first(built_spans: list[Span]) -> int:
    return min((span.start for span in built_spans), default=0)


def write(scope: HasTables, path: str | os.PathLike[str], form: Form, title: str) -> int:
    """Write the file, whole or not at all; return the number of spans."""
    count, text = parts(scope, form, title)
    try:
        with files.replacing(path) as part_path, open(part_path, "w", encoding="utf-8") as file:
            file.writelines(text)
    except OSError as problem:
        raise OutputError(f"{os.fspath(path)}: {problem.strerror or problem}") from None
    return count
