"""The Rust engine: capture bytes in, Arrow tables out."""

from typing import Any, Final, final

__all__ = ["CAUSES", "SCHEMA_VERSION", "TABLES", "Analysis", "Table"]

TABLES: Final[list[str]]
CAUSES: Final[list[str]]
SCHEMA_VERSION: Final[str]

@final
class Table:
    """Which rows are these? Batches of one table as an Arrow C stream, for pyarrow.table() and others."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __len__(self) -> int: ...

@final
class Analysis:
    """What is in this capture? Push its bytes in blocks of any size, finish, then take the tables."""
    def __new__(cls) -> Analysis: ...
    def push(self, block: bytes) -> None:
        """Reads the next bytes of the capture file; never raises for what they hold."""
    def finish(self) -> None:
        """Settles what is still open; the file has ended."""
    def take(self, name: str) -> Table:
        """Gives the finished rows of a table, once. Raises KeyError for a name that is not in TABLES."""
    @property
    def frames(self) -> int: ...
    @property
    def format(self) -> str: ...
    @property
    def streams(self) -> int: ...
    @property
    def first_ns(self) -> int | None: ...
    @property
    def last_ns(self) -> int | None: ...
    @property
    def refused(self) -> tuple[int, str] | None:
        """Offset and reason of what kept the file from being read at all."""
