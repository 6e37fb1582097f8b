"""Pushes the bytes of a source into the core, block by block, and records what could not be read.

The caller may take rows out of the core between two blocks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import cast

from latpcap import _core
from latpcap.errors import CaptureError
from latpcap.format import escaped
from latpcap.reading import keylog as keys
from latpcap.reading import links, sources
from latpcap.reading.keylog import Keylog
from latpcap.reading.timestamps import Given
from latpcap.reading.unpack import SUFFIXES

_PACKED = tuple(f".{suffix}" for suffix in SUFFIXES)


class Feed:
    """A source that is pushed into `analysis`; `broken` are the files that could not be read completely."""

    def __init__(
        self,
        source: sources.Source,
        keylog: Keylog | None = None,
        end: Given | None = None,
        *,
        reread: Sequence[sources.Origin] = (),
        was_broken: bool = False,
    ):
        """`reread`: the origins of an earlier reading, instead of a source. Read errors are ignored if the first
        reading had some (`was_broken`); changes since then are a CaptureError.
        """
        self.origins = reread or sources.origins(source)
        self._reread, self._was_broken = bool(reread), was_broken
        self.analysis = _core.Analysis(links.read, keys.text(keylog))
        if end is not None:
            self.analysis.end(end.ns, relative=end.relative)
        self.broken: list[CaptureError] = []

    @property
    def name(self) -> str:
        """The name of the capture; of several files: "ring_1.pcap and 9 more"."""
        files = [origin.name for origin in self.origins]
        return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"

    @property
    def size(self) -> int | None:
        """The bytes to read; None where that is unknown, as for pipes and compressed files."""
        total = 0
        for origin in self.origins:
            path = origin.source
            if not isinstance(path, (str, os.PathLike)) or os.fspath(path).endswith(_PACKED):
                return None
            try:
                total += os.stat(cast(str, path)).st_size
            except (OSError, ValueError):
                return None
        return total

    def run(self, *, by_parts: bool = False) -> Iterator[int]:
        """Push every block and yield its length. CaptureError where nothing could be read.

        `by_parts`: finish the analysis in parts at the end, and yield 0 after each.
        """
        analysis, lost = self.analysis, 0
        for origin in self.origins:
            before, opened = analysis.frames, False
            try:
                for block in origin.blocks() if self._reread else origin.first_blocks():
                    if not opened:
                        analysis.next_file(escaped(origin.name))
                        opened = True
                    analysis.push(block)
                    yield len(block)
                    if analysis.halted:
                        break
                if not opened:
                    analysis.next_file(escaped(origin.name))
            except CaptureError as problem:
                if self._reread:
                    if self._was_broken:
                        continue
                    raise
                problem.__context__ = None  # its frames hold the decompressor: 64 MB and more for xz
                self.broken.append(problem.with_traceback(None))
                lost += analysis.frames == before
        while by_parts and analysis.finish_some():
            yield 0
        analysis.finish()
        if self.broken and lost == len(self.origins):
            raise self.broken[0]
        if analysis.refused is not None and not analysis.frames:
            file, offset, reason = analysis.refused
            raise CaptureError(file, reason, offset=offset, layer="file")
