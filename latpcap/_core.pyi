"""The Rust core: takes the bytes of captures, returns Arrow tables."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypedDict, final, type_check_only

__all__ = [
    "SCHEMA_VERSION",
    "TABLES",
    "Analysis",
    "Decryption",
    "Pattern",
    "Records",
    "Table",
    "first_ns",
    "limits",
    "thresholds",
    "vocabulary",
]

TABLES: Final[list[str]]
SCHEMA_VERSION: Final[str]
_Found = bytes | str | tuple[str, int, bytes] | None

def first_ns(head: bytes) -> int | None:
    """The time of the first packet of a file that begins with these bytes, in ns since 1970; None where unknown."""

@type_check_only
class _Vocabulary(TypedDict):
    """Words with their meanings. `causes`: name, meaning, owner, family, fix, colour, traits. `protocols`: word,
    traits.
    """

    causes: list[tuple[str, str, str, str, str | None, str, list[str]]]
    protocols: list[tuple[str, list[str]]]
    owners: list[tuple[str, str]]
    families: list[tuple[str, str]]
    grades: list[tuple[str, str]]
    rules: list[tuple[str, str]]
    becauses: list[tuple[str, str]]
    hypotheses: list[tuple[str, str]]

def vocabulary() -> _Vocabulary:
    """The closed vocabularies of the tables, in their order."""

def thresholds() -> list[tuple[str, float, str, str, str]]:
    """Every threshold of the causes: name, value, unit, source and meaning."""

def limits() -> dict[str, float]:
    """The thresholds that findings use, by name (`core/src/limits.rs`)."""

@final
class Pattern:
    """A regular expression that is searched in bytes, ignoring the case of ASCII letters."""
    def __new__(cls, text: str) -> Pattern:
        """ValueError for an invalid expression, or one that needs backtracking."""
    def search(self, data: bytes) -> bool: ...

@final
class Table:
    """Batches of rows of one table, as an Arrow C stream for pyarrow.table() and others."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __len__(self) -> int: ...

@final
class Analysis:
    """The analysis of one capture: push its bytes in blocks of any size, `finish`, then take the tables."""
    def __new__(
        cls, links: Callable[[str, int, bytes], _Found | list[_Found]] | None = None, keylog: bytes | None = None
    ) -> Analysis:
        """`links` reads link layers that the core does not read, as `latpcap.reading.links.read` does.

        `keylog` is the text of a TLS key log; lines that cannot be used become issues.
        """
    def next_file(self, name: str = "") -> None:
        """Begin another file; the file pushed before, if any, has ended.

        Frames are numbered on and streams continue as in one file; `offset` of an issue counts within its file.
        """
    def follow(self, stream: int) -> None:
        """Keep the payload of this tcp.stream for `followed`; call before the first block."""
    def followed(self) -> list[tuple[int, bool, int, int, int, int, bytes]]:
        """Return the followed stream's segments since the last call; call after each block to bound memory.

        Each is: frame number; sent by the sender of the stream's first segment; relative seq and ack; flag bits; length
        by the IP header; captured payload.
        """
    def watch_headers(self) -> None:
        """Keep header fields that `events` does not have for `headers`; call before the first block."""
    def headers(self) -> bytes:
        """Return these fields since the last call: six little-endian int64 per row of `events`.

        Frame, raw sequence and acknowledgement number, IPv4 identification (-1: IPv6), time to live, type of service.
        """
    def watch_packets(self) -> None:
        """Keep what identifies each packet in another capture for `packets`; call before the first block."""
    def packets(self) -> bytes:
        """Return these since the last call, 64 bytes per row of `events`; `core/src/watch.rs` has the layout."""
    def end(self, ns: int, *, relative: bool = False) -> None:
        """Ignore frames from this instant on (ns since 1970, or since frame 1); call before the first block.

        `halted` is true when the rest of a file is not needed; `frames` counts up to the last frame before `ns`.
        """
    def decryption(self) -> Decryption | None:
        """Return a decryptor for single TLS streams, with the keys known at this point; None without keys."""
    def push(self, block: bytes) -> None:
        """Read the next bytes of the capture file; only raises what `links` raised, never for the bytes."""
    def finish(self) -> None:
        """End the last file and complete all open rows."""
    def finish_some(self) -> bool:
        """Do a part of `finish`, so that rows can be taken in between; True while more is to be done."""
    def take(self, name: str) -> Table:
        """Return the finished rows of a table, once. Raises KeyError for a name that is not in TABLES.

        Related rows are finished together: between two blocks, `causes` has all rows of the finished rows of
        `exchanges`, `connects`, `pushes` and `gaps`.
        """
    @property
    def frames(self) -> int: ...
    @property
    def format(self) -> str: ...
    @property
    def digits(self) -> int:
        """Decimals of a second in the capture's timestamps: 0 to 3, 6 or 9."""
    @property
    def streams(self) -> int: ...
    @property
    def zero_ns(self) -> int | None:
        """The instant of frame 1, in ns since 1970: the zero of Wireshark's relative times."""
    @property
    def first_ns(self) -> int | None: ...
    @property
    def last_ns(self) -> int | None: ...
    @property
    def halted(self) -> bool:
        """Whether the rest of this file is not needed: refused, past `end`, or damaged beyond the next record."""
    @property
    def refused(self) -> tuple[str, int, str] | None:
        """File, offset and reason of why the first file could not be read, if no file could be read."""

@final
class Decryption:
    """Decrypts TLS of one stream: takes the stream's bytes in order, returns plain text with frames and directions."""
    def feed(self, frame: int, from_first: bool, data: bytes, lost: int) -> list[tuple[int, bool, bytes, int]]:
        """Read the next bytes of one direction, and the number of lost bytes after them.

        Each item: frame; sent by the sender of the stream's first segment; plain text; bytes after it that are lost or
        stay encrypted.
        """
    @property
    def opened(self) -> bool:
        """Whether any record was decrypted."""

@final
class Records:
    """Returns the records of chosen frames: push the same capture again; nothing is kept."""
    def __new__(cls, frames: Sequence[int] | None = None) -> Records:
        """`frames` are the chosen frame numbers in any order; None chooses all."""
    def next_file(self) -> None:
        """Begin another file; frames are numbered on."""
    def push(self, block: bytes) -> list[tuple[int, int, int | None, int, bytes, int]]:
        """Read the next bytes of the file, and return the chosen records that end in them, in file order.

        Each is: frame number; time in ns since 1970; LINKTYPE_ number (None: no packet); interface; captured bytes;
        original length.
        """
    def heads(self, block: bytes) -> bytes:
        """As `push`, without the bytes: three little-endian int64 each, time in ns, original and captured length."""
    @property
    def done(self) -> bool:
        """Whether every chosen frame was returned."""
    @property
    def frames(self) -> int: ...
