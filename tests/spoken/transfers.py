"""Transfers that something limits, seen from either end."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import dpkt
from makepcap import EPOCH_NS
from test_waits import Tape
from transfer_simulator import Transfer

from spoken.registry import says

RECORDED = Path(__file__).parents[1] / "recorded"
DOWNLOADS = Path(__file__).parents[2] / "sample_pcaps" / "downloads"


def kept(name: str, folder: Path = RECORDED) -> bytes:
    return gzip.decompress((folder / f"{name}.pcap.gz").read_bytes())


@says(
    "requests to 10.78.0.2:8081 took ", "while a download of 10.78.0.2:8080 filled the line, ", "its queue cost them ",
    "or leave the transfer a window of ", "it is as fast then, and requests are quick beside it",
)  # fmt: skip
def requests_beside_a_download() -> bytes:
    return kept("beside", DOWNLOADS)


@says("answers of 10.78.0.2:8081 were acknowledged after ", "it is as fast then, and answers are quick beside it")
def answers_beside_a_download() -> bytes:
    return kept("beside_program-server")


@says("requests to 10.78.0.2:8081 took ", "of each may be its queue, the rest is not")
def a_slow_program_beside_a_download() -> bytes:
    return kept("beside_program-client")


@says(
    "the client's HTTP/2 window of each stream (65.5 kB) allows no more at 50", "Raise the client's HTTP/2 windows to "
)
def a_small_window_of_http2_streams() -> bytes:
    return kept("http2_stream-client")


@says("the client's HTTP/2 window of the connection (65.5 kB) allows no more at 50")
def a_small_window_of_an_http2_connection() -> bytes:
    return kept("http2_connection-server")


@says("HTTP/2's flow control, which TLS hides without keys")
def http2_inside_tls() -> bytes:
    return kept("http2_sealed-server")


@says(
    "a download of 2 MB at 16.7 Mbit/s",
    "the client's receive window (65.5 kB) allows no more at 30.0 ms of round trip",
    "Raise the client's receive buffer to",
)
def a_small_window() -> bytes:
    return Transfer(window=65_536).captures()["receiver"]


@says(
    "without window scaling the client's receive window (65.5 kB) allows no more at 45.0 ms of round trip",
    "Switch window scaling on at both ends",
)
def a_window_without_scaling() -> bytes:
    return Transfer(scaled=False, rtt=45).captures()["receiver"]


@says(
    "the server's receive window (65.5 kB) allows no more at 30.0 ms of round trip; with ", "segments follow each other"
)
def a_small_window_before_a_fast_line() -> bytes:
    return Transfer(window=65_536, download=False, line=90).captures()["receiver"]


@says("the client's program reads too slowly, and its receive window is full", "Read faster, or in larger pieces")
def a_slow_reader() -> bytes:
    return Transfer(window=131_072, reader=9).captures()["sender"]


@says("the server's program pauses between its writes", "Find what the server's program waits for between its writes")
def a_slow_writer() -> bytes:
    return Transfer(writes=(64_000, 50.0)).captures()["sender"]


@says("the server pauses while window and path have room: its program, a rate limit or its send buffer")
def a_slow_writer_from_afar() -> bytes:
    return Transfer(writes=(64_000, 50.0)).captures()["receiver"]


@says("rival: the sender's program (this capture does not exclude it)")
def a_small_send_buffer_from_afar() -> bytes:
    return Transfer(buffer=40_000, bytes=1_500_000).captures()["receiver"]


@says("rival: the line (this capture does not exclude it)")
def a_small_send_buffer_before_a_line_that_is_as_slow() -> bytes:
    return Transfer(buffer=30_000, line=8, rtt=30, bytes=1_500_000).captures()["receiver"]


@says("the server never has more in flight than before, with room in window and path: probably its send buffer")
def a_small_send_buffer() -> bytes:
    return Transfer(buffer=40_000, bytes=1_500_000).captures()["sender"]


@says("the server sends at even times (pacing:")
def a_paced_sender() -> bytes:
    return Transfer(pace=5, bytes=1_500_000).captures()["sender"]


@says("segments were lost and sent again, and the server slows down for each loss", "Find where the path drops packets")
def losses_of_a_transfer() -> bytes:
    return Transfer(lost=tuple(range(90, 1300, 60))).captures()["sender"]


@says("slow start, which begins with ten segments and doubles them each round trip (", "Keep connections open and warm")
def a_short_transfer_far_away() -> bytes:
    return Transfer(bytes=150_000, rtt=90).captures()["sender"]


@says("fills the line and the queue before it: round trips take ", "Manage the queue where the line begins (fq_codel")
def a_full_line_with_a_deep_queue() -> bytes:
    return Transfer(line=10, ceiling=200, download=False).captures()["receiver"]


def clicks_beside_it(slow: bool) -> bytes:
    """Requests to another server: quick before and after, and while the queue is full only if they are to be."""
    tape = Tape()
    packets = dpkt.pcap.Reader(io.BytesIO(a_full_line_with_a_deep_queue()))
    tape.frames = [((float(at) * 1e9 - EPOCH_NS) / 1e6, frame) for at, frame in packets]
    first, last = tape.frames[0][0], tape.frames[-1][0]
    for number in range(8):
        tape.talk(last + 100 + 50 * number, client="10.9.0.1", server=("10.9.0.2", 80))
        busy = first + (0.3 + 0.06 * number) * (last - first)
        tape.talk(busy, client="10.9.0.1", server=("10.9.0.2", 80), think=180.0 if slow else 0.1)
    return tape.bytes()


@says("while that transfer filled the queue, where they waited, too; what seems a program's time then is not proven")
def clicks_beside_a_full_line() -> bytes:
    return clicks_beside_it(slow=True)


@says("the line carries no more; round trips take ", "The line is full: send less (compression, caching)")
def a_full_line_with_a_short_queue() -> bytes:
    return Transfer(line=10, ceiling=45, rtt=40).captures()["sender"]


@says("segments come one by one at an even rate: perhaps the line, perhaps losses on the path")
def a_short_queue_beside_a_loss() -> bytes:
    return Transfer(line=10, ceiling=65, rtt=60, lost=(900,)).captures()["sender"]


@says("segments come one by one at an even rate: perhaps the line, perhaps a rate limit")
def an_even_rate_without_time_stamps() -> bytes:
    return Transfer(line=10, ceiling=200, stamped=False).captures()["receiver"]


@says("the path reorders segments, which the server takes for losses")
def segments_that_others_overtake() -> bytes:
    return Transfer(late=tuple(range(40, 1300, 14)), bytes=3_000_000, ceiling=100).captures()["receiver"]
