"""Gives the engine the bytes of a source, block by block, and keeps count of what could not be read.

Reads files; knows nothing of tables. Whoever drives it may take rows out between two blocks.
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
    """A source on its way into the engine: `analysis`; `broken` are the files that could not be read whole."""

    def __init__(
        self,
        source: sources.Source,
        keylog: Keylog | None = None,
        end: Given | None = None,
        *,
        reread: Sequence[sources.Origin] = (),
        was_broken: bool = False,
    ):
        """`reread`: the origins of an earlier reading, instead of a source. What could not be read of them then
        (`was_broken`) is no news; what changed since is a CaptureError.
        """
        self.origins = reread or sources.origins(source)
        self._reread, self._was_broken = bool(reread), was_broken
        self.analysis = _core.Analysis(links.read, keys.text(keylog))
        if end is not None:
            self.analysis.end(end.ns, relative=end.relative)
        self.broken: list[CaptureError] = []

    @property
    def name(self) -> str:
        """What several files are called together: "ring_1.pcap and 9 more"."""
        files = [origin.name for origin in self.origins]
        return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"

    @property
    def size(self) -> int | None:
        """How many bytes will be read? None where that is not known before, as of pipes and packed files."""
        known = 0
        for origin in self.origins:
            path = origin.source
            if not isinstance(path, (str, os.PathLike)) or os.fspath(path).endswith(_PACKED):
                return None
            try:
                known += os.stat(cast(str, path)).st_size
            except (OSError, ValueError):
                return None
        return known

    def run(self, *, by_parts: bool = False) -> Iterator[int]:
        """Pushes every block; gives its length after each. CaptureError where nothing at all could be read.

        `by_parts`: what is still open at the end is settled part by part, and gives 0 after each.
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
                problem.__context__ = None  # its frames hold what unpacked the file: 64 MB and more of xz
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
