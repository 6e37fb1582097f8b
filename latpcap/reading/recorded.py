"""What `reading` needs of a capture whose bytes can be read again: a protocol, which `Capture` implements."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from latpcap.tables import HasTables

if TYPE_CHECKING:
    from latpcap.reading.foreign import Foreign
    from latpcap.reading.packets import Record, Segments


class Recorded(HasTables, Protocol):
    """A capture with its tables and, once more, its bytes."""

    format: str

    @property
    def files(self) -> Sequence[str]:
        """The names of its files, in the order in which they were read."""

    @property
    def unfiltered(self) -> Recorded:
        """The capture of which this is a part; itself where it is whole."""

    @property
    def others(self) -> list[int]:
        """The frames that pass its filter and are no segments; none without a filter."""

    def records(self, frames: Iterable[int] | None = None) -> Iterator[Record]:
        """These frames with their bytes, or all of them, in file order."""

    def foreign(self, frames: Container[int] | None = None) -> Foreign:
        """What a pcapng file holds besides its packets; of these frames, or of all."""

    def heads(self) -> Iterator[bytes]:
        """Instant and lengths of each frame, as `packets.heads` packs them."""

    def headers_again(self) -> Iterator[bytes]:
        """What headers say beside `events`, as `packets.headers` packs it."""

    def segments(self, stream: int) -> Segments:
        """This stream's segments with their payload, in file order."""
