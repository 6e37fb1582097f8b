"""Reads a capture's bytes a second time: chosen records, raw or as dpkt objects.

The tables have no payload, so a path is read again, and a file object is rewound. `slices` writes records to files,
`follow` reassembles payload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from latpcap import _core
from latpcap.errors import CaptureError
from latpcap.reading.drain import taken
from latpcap.reading.feed import Feed
from latpcap.reading.keylog import Keylog
from latpcap.reading.timestamps import Given

if TYPE_CHECKING:
    from latpcap.reading.sources import Origin

T = TypeVar("T")

RAW_LINKS = {12, 14, 101, 228, 229}
"""Link types whose frames begin with an IP header (LINKTYPE_RAW, its BSD numbers, IPV4, IPV6)."""


class Record(NamedTuple):
    """A frame's record in the file, uninterpreted.

    `frame` is Wireshark's frame.number, `time_ns` counts from 1970, `link` is the LINKTYPE_ number (None: a frame
    that is not a packet, such as a journal entry), `interface` the number in its pcapng section (0 in pcap), `data` the
    captured bytes, `original_len` the length on the wire.
    """

    frame: int
    time_ns: int
    link: int | None
    interface: int
    data: bytes
    original_len: int


def records(
    origins: Sequence[Origin], frames: Iterable[int] | None = None, *, broken: bool = False
) -> Iterator[Record]:
    """Yield frames with their bytes, in file order (None: every frame); reads the capture again.

    Frames that the capture does not have are left out. CaptureError where the source is gone, was changed, or cannot be
    read twice. `broken`: the first reading ended early as well, so that this is not an error.
    """
    reader = _core.Records(None if frames is None else list(frames))
    for batch in _through(reader, reader.push, origins, broken):
        for fields in batch:
            yield Record(*fields)


def heads(origins: Sequence[Origin], *, broken: bool = False) -> Iterator[bytes]:
    """Yield every frame's time, original and captured length.

    Three little-endian int64 per frame; raises as `records` does.
    """
    reader = _core.Records()
    return _through(reader, reader.heads, origins, broken)


def _through(reader: _core.Records, read: Callable[[bytes], T], origins: Sequence[Origin], broken: bool) -> Iterator[T]:
    for origin in origins:
        reader.next_file()
        try:
            for block in origin.blocks():
                yield read(block)
                if reader.done:
                    return
        except CaptureError:
            if not broken:
                raise


def headers(origins: Sequence[Origin], *, broken: bool = False, end: Given | None = None) -> Iterator[bytes]:
    """Yield the header fields that `events` lacks, as `_core.Analysis.headers` returns them."""
    feed = Feed((), end=end, reread=origins, was_broken=broken)
    feed.analysis.watch_headers()
    for _ in _analysed(feed):
        yield feed.analysis.headers()


def _analysed(feed: Feed) -> Iterator[None]:
    """Analyse the capture again; pauses after each block, for the caller to take something out."""
    for _ in feed.run(by_parts=True):
        yield
        taken(feed.analysis)  # discarded: the tables exist already


class Segments:
    """Yields what this stream's segments carried, by analysing the capture again while it is iterated.

    Fields as in `_core.Analysis.followed`. The analysis, unlike `records`, knows streams, tunnels and fragments.
    """

    def __init__(
        self,
        origins: Sequence[Origin],
        stream: int,
        *,
        broken: bool = False,
        keylog: Keylog | None = None,
        end: Given | None = None,
    ):
        self._feed = Feed((), keylog, end, reread=origins, was_broken=broken)
        self._feed.analysis.follow(stream)

    def __iter__(self) -> Iterator[tuple[int, bool, int, int, int, int, bytes]]:
        for _ in _analysed(self._feed):
            yield from self._feed.analysis.followed()

    def decryption(self) -> _core.Decryption | None:
        """Return a decryptor with the keys given or found, once the last segment was read; None without keys."""
        return self._feed.analysis.decryption()


def packet(record: Record, name: str) -> Any:
    """Return a frame's outermost layer as a dpkt object.

    CaptureError for a link type that dpkt does not read, or bytes that it cannot parse; `record.data` has them.
    """
    import dpkt

    layer = _layer(record)
    if layer is None:
        subject = "a frame that is no packet" if record.link is None else f"link type {record.link}"
        raise CaptureError(name, f"frame {record.frame:,}: dpkt does not read {subject}; record() has its bytes")
    try:
        return layer(record.data)
    except dpkt.UnpackError as problem:
        reason = f"frame {record.frame:,}: dpkt gives up on it ({problem}); record() has its bytes"
        raise CaptureError(name, reason, layer="dpkt") from None


def _layer(record: Record) -> Any:
    """dpkt's class for the outermost layer, or None."""
    import dpkt

    if record.link in RAW_LINKS:
        version = record.data[:1] and record.data[0] >> 4
        return dpkt.ip6.IP6 if version == 6 else dpkt.ip.IP
    return {
        0: dpkt.loopback.Loopback,
        1: dpkt.ethernet.Ethernet,
        9: dpkt.ppp.PPP,
        105: dpkt.ieee80211.IEEE80211,
        108: dpkt.loopback.Loopback,
        113: dpkt.sll.SLL,
        127: dpkt.radiotap.Radiotap,
        276: dpkt.sll2.SLL2,
    }.get(-1 if record.link is None else record.link)
