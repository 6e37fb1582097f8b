"""The Rust engine: capture bytes in, Arrow tables out."""

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
    """When was the first packet of the file that begins with these bytes, in ns since 1970? None: they do not say."""

@type_check_only
class _Vocabulary(TypedDict):
    """Lists of words with their meanings; causes: name, meaning, owner, family, fix, colour, traits; protocols: word,
    traits."""

    causes: list[tuple[str, str, str, str, str | None, str, list[str]]]
    protocols: list[tuple[str, list[str]]]
    owners: list[tuple[str, str]]
    families: list[tuple[str, str]]
    grades: list[tuple[str, str]]
    rules: list[tuple[str, str]]
    becauses: list[tuple[str, str]]
    hypotheses: list[tuple[str, str]]

def vocabulary() -> _Vocabulary:
    """The closed lists of words that tables use, in their order."""

def thresholds() -> list[tuple[str, float, str, str, str]]:
    """Every number that a row's verdict rests on: name, value, unit, source and meaning."""

def limits() -> dict[str, float]:
    """The limits that findings use, by name (`core/src/limits.rs`)."""

@final
class Pattern:
    """Does this regular expression fit anywhere in some bytes? Upper and lower case of ASCII are the same."""
    def __new__(cls, text: str) -> Pattern:
        """ValueError for what is no expression, or needs backtracking."""
    def search(self, data: bytes) -> bool: ...

@final
class Table:
    """Which rows are these? Batches of one table as an Arrow C stream, for pyarrow.table() and others."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __len__(self) -> int: ...

@final
class Analysis:
    """What is in this capture? Push its bytes in blocks of any size, finish, then take the tables."""
    def __new__(
        cls, links: Callable[[str, int, bytes], _Found | list[_Found]] | None = None, keylog: bytes | None = None
    ) -> Analysis:
        """`links` reads the layers that the core leaves to others, as `latpcap.reading.links.read` does.

        `keylog` is the text of a TLS key log; what it holds that cannot be used becomes issues.
        """
    def next_file(self, name: str = "") -> None:
        """What is pushed from now on belongs to this file; the one before, if there was one, has ended.

        Frames are counted on and streams go on, as if the files were one; `offset` of an issue counts in its file.
        """
    def follow(self, stream: int) -> None:
        """Keeps the payload of this tcp.stream for `followed`; call it before the first block."""
    def followed(self) -> list[tuple[int, bool, int, int, int, int, bytes]]:
        """Gives the followed stream's segments since the last call; after each block, or they add up.

        Each is frame number, sent by the sender of the stream's first segment, relative seq and ack, flag bits, length
        by the IP header, captured payload.
        """
    def watch_headers(self) -> None:
        """Keeps for `headers` what headers say beside `events`; call it before the first block."""
    def headers(self) -> bytes:
        """Gives them since the last call, six little-endian int64 a row of `events`.

        Frame, raw sequence and acknowledgement number, IPv4 identification (-1: IPv6), time to live, type of service.
        """
    def watch_packets(self) -> None:
        """Keeps for `packets` what recognises each packet in another capture; call it before the first block."""
    def packets(self) -> bytes:
        """Gives it since the last call, 64 bytes a row of `events`; `core/src/watch.rs` has the layout."""
    def end(self, ns: int, *, relative: bool = False) -> None:
        """Leaves out frames of this instant (ns since 1970, or since frame 1) and later ones; before the first block.

        `halted` says when nothing more is wanted of a file; `frames` counts up to the newest frame that was wanted.
        """
    def decryption(self) -> Decryption | None:
        """Opens a stream's TLS apart from the analysis, with the keys known so far; None where there are none."""
    def push(self, block: bytes) -> None:
        """Reads the next bytes of the capture file; never raises for what they hold, only what `links` raised."""
    def finish(self) -> None:
        """Settles what is still open; the file has ended."""
    def finish_some(self) -> bool:
        """A part of `finish`, for whoever takes the rows away in between; True while there is more to do."""
    def take(self, name: str) -> Table:
        """Gives the finished rows of a table, once. Raises KeyError for a name that is not in TABLES.

        Rows that belong together are finished together: between two blocks, `causes` has all those of the rows of
        `exchanges`, `connects`, `pushes` and `gaps`.
        """
    @property
    def frames(self) -> int: ...
    @property
    def format(self) -> str: ...
    @property
    def digits(self) -> int:
        """Decimals of a second that the capture's clock tells: 0 to 3, 6 or 9."""
    @property
    def streams(self) -> int: ...
    @property
    def zero_ns(self) -> int | None:
        """The instant of frame 1, from which Wireshark's relative times count."""
    @property
    def first_ns(self) -> int | None: ...
    @property
    def last_ns(self) -> int | None: ...
    @property
    def halted(self) -> bool:
        """Is the rest of this file of no use? Refused, or damaged so that no further record can be found."""
    @property
    def refused(self) -> tuple[str, int, str] | None:
        """File, offset and reason of what kept the first file from being read, where no file could be read."""

@final
class Decryption:
    """What was said inside TLS? Feed a stream's bytes in order; what comes out is plain text, from frames and sides."""
    def feed(self, frame: int, from_first: bool, data: bytes, lost: int) -> list[tuple[int, bool, bytes, int]]:
        """Reads the next bytes of one side, and so many missing ones behind them.

        Gives frame, sent by the sender of the stream's first segment, what was said, and how many bytes more are
        missing or stay sealed.
        """
    @property
    def opened(self) -> bool:
        """Was any record opened?"""

@final
class Records:
    """Which bytes do these frames hold? Push the same capture again; chosen records come out, none is kept."""
    def __new__(cls, frames: Sequence[int] | None = None) -> Records:
        """`frames` are the chosen frame numbers in any order; None chooses all."""
    def next_file(self) -> None:
        """What is pushed from now on is another file; frames are counted on."""
    def push(self, block: bytes) -> list[tuple[int, int, int | None, int, bytes, int]]:
        """Reads the next bytes of the capture file and gives the chosen records that end in them, in file order.

        Each is frame number, time in ns since 1970, LINKTYPE_ number (None: a frame that is no packet), interface,
        captured bytes, original length.
        """
    def heads(self, block: bytes) -> bytes:
        """As `push`, without the bytes: three little-endian int64 each, time in ns, original and captured length."""
    @property
    def done(self) -> bool:
        """Has every chosen frame been given?"""
    @property
    def frames(self) -> int: ...
