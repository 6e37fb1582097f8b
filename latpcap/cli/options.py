"""The options that several commands of `latpcap` have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from latpcap.views.recording import Recording

SAMPLE = "--sample"
"""Stands for the sample's path wherever a command takes a file."""

File = Annotated[
    str,
    typer.Argument(
        help=f"A pcap or pcapng file (also .gz .zst .lz4 .bz2 .xz); - reads stdin, {SAMPLE} takes the sample."
    ),
]
StreamOption = Annotated[int | None, typer.Option("--stream", help="Only this tcp.stream.", min=0)]
KeylogOption = Annotated[
    str | None,
    typer.Option("--keylog", help="TLS keys to decrypt with: a file as written for SSLKEYLOGFILE."),
]
FilterOption = Annotated[
    str | None, typer.Option("-Y", "--filter", help="Only what this Wireshark display filter leaves (docs/filters.md).")
]


def warn(capture: Recording) -> None:
    """Says on standard error where a capture is damaged."""
    for sentence in capture.damage:
        typer.echo(f"latpcap: warning: {sentence}; rows up to there are given", err=True)
