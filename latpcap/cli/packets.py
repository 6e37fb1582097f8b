"""The `follow`, `slice`, `har` and `export` commands: text, packets, requests for browsers and for trace viewers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from latpcap.cli import opening
from latpcap.cli.options import File, KeylogOption, Scope, over_time


@over_time
def follow(
    file: File,
    stream: Annotated[int, typer.Option("--stream", help="This tcp.stream.", min=0)],
    mode: Annotated[str, typer.Option("--as", help="text, hex or raw.")] = "text",
    frames: Annotated[bool, typer.Option("--frames", help="Say which frame brought which bytes.")] = False,
    keylog: KeylogOption = None,
) -> None:
    """What did the two ends say? Wireshark's Follow TCP Stream, printed as tshark -z follow prints it."""
    from latpcap.reading.follow import MODES

    if mode not in MODES:
        raise typer.BadParameter(f"expected {', '.join(MODES)}, got {mode!r}", param_hint="--as")
    text = opening.open_stream(file, stream, reread=True, keylog=keylog).follow()
    typer.echo(getattr(text, mode)(frames=frames), nl=False)


@over_time
def har(
    file: File,
    output: Annotated[Path, typer.Option("-o", "--output", help="The archive: .har; - is standard output.")],
    scope: Scope,
) -> None:
    """Open the requests in a browser's tools: HTTP/1, HTTP/2 and decrypted ones as a HAR 1.2 file."""
    capture = scope.of(opening.read, file)
    if str(output) == "-":
        typer.echo(json.dumps(capture.to_har(), indent=1))
    else:
        capture.to_har(output)


@over_time
def export_(
    file: File,
    to: Annotated[str, typer.Option("--to", help="otlp (OpenTelemetry) or perfetto (Chrome's trace events).")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file; - is standard output.")] = Path("-"),
    *,
    scope: Scope,
) -> None:
    """Open requests and their causes in a trace viewer: spans as OTLP/JSON lines, or for ui.perfetto.dev."""
    from latpcap import exports

    if to not in exports.FORMS:
        raise typer.BadParameter(f"expected {', '.join(exports.FORMS)}, got {to!r}", param_hint="--to")
    capture = scope.of(opening.read, file)
    if str(output) != "-":
        exports.write(capture, output, to, capture.title)
        return
    for piece in exports.parts(capture, to, capture.title)[1]:
        typer.echo(piece, nl=False)


@over_time
def slice_(
    file: File,
    output: Annotated[Path, typer.Option("-o", "--output", help="The slice: .pcap or .pcapng (also with .gz).")],
    scope: Scope,
    anonymise: Annotated[
        bool,
        typer.Option("--anonymise", help="Other addresses and names, masked payload; the same times and lengths."),
    ] = False,
    key: Annotated[
        str | None, typer.Option("--key", help="With --anonymise: the same replacements wherever this key is used.")
    ] = None,
) -> None:
    """Which packets does a colleague need? Writes a stream, or what a filter leaves, for Wireshark."""
    if key is not None and not anonymise:
        raise typer.BadParameter("is for --anonymise", param_hint="--key")
    capture = scope.of(opening.read, file, reread=True)
    written = capture.to_pcap(output, anonymise=key or anonymise)
    chosen_count = capture.frames if scope.is_whole else capture.arrow("events").num_rows
    if anonymise and written < chosen_count:
        left_out = f"{chosen_count - written:,} of {chosen_count:,} frames"
        typer.echo(f"latpcap: {left_out} are no plain TCP segments and were left out", err=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(follow)
    app.command()(har)
    app.command("export")(export_)
    app.command("slice")(slice_)
