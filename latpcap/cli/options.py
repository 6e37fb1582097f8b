"""The options that several commands of `latpcap` share."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import re
import typing
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from latpcap.errors import OutputError

if TYPE_CHECKING:
    from latpcap.views.capture import Capture
    from latpcap.views.recording import Recording

_FIRST = re.compile(r".*?[.?](?=\s|$)", re.DOTALL)


class Listed(typer.core.TyperGroup):
    """A group of commands that is listed with the whole first sentence of each command's help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands below the options."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                text = inspect.cleandoc(command.help or "")
                first = _FIRST.match(text)
                rows.append((name, " ".join((first[0] if first else text).split())))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


EXIT_UNREADABLE = 3
"""The exit code for a file that cannot be read."""
SAMPLE = "--sample"
"""An argument that stands for the sample's path, wherever a command takes a file."""

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
ExchangeOption = Annotated[
    str | None,
    typer.Option(
        "--exchange", help="Only this one: worst, typical, first, or a number; with --stream: its number there."
    ),
]
ServerOption = Annotated[str | None, typer.Option("--server", help="Only this server: address, address:port or name.")]
FramesOption = Annotated[str | None, typer.Option("--frames", help="Only these frames, as FIRST-LAST (frame.number).")]
MarkOption = Annotated[float, typer.Option("--mark-ms", help="Mark waits of at least so many ms.")]
ByOption = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        help="Group by server, client, uri, status, capture, folder, any other column of exchanges, or a span of "
        "time (10s, 5min, hour); repeat.",
    ),
]
ScaleOption = Annotated[str, typer.Option("--scale", help="Of the latencies: auto, log or linear.")]
PictureOption = Annotated[Path, typer.Option("-o", "--output", help="The picture: .png, .svg or .pdf.")]
DpiOption = Annotated[float, typer.Option("--dpi", help="Pixels per inch of a PNG 8 inches wide.", min=20, max=1200)]


_MEANT = "ISO time (UTC), or seconds since the first frame"
_TIMES = {
    "start": Annotated[str | None, typer.Option("--start", help=f"Only from this instant on: {_MEANT}.")],
    "end": Annotated[str | None, typer.Option("--end", help=f"Only before this instant: {_MEANT}.")],
}
_LANG = Annotated[str | None, typer.Option("--lang", help="The language of sentences: en or zh.")]
_span: ContextVar[dict[str, Any] | None] = ContextVar("_span", default=None)


@dataclass(frozen=True)
class Scope:
    """Options that choose a part of a capture."""

    stream: StreamOption = None
    display_filter: FilterOption = None
    keylog: KeylogOption = None

    @property
    def is_whole(self) -> bool:
        """Whether neither stream nor filter nor time is limited."""
        return self.stream is None and self.display_filter is None and not span()

    def of(self, read: Callable[..., Capture], file: str, **how: bool) -> Any:
        """Read the selected part: a `Capture` or a `Stream`."""
        capture = read(file, self.display_filter, keylog=self.keylog, **how)
        return capture if self.stream is None else capture.stream(self.stream)


@dataclass(frozen=True, kw_only=True)
class Canvas:
    """Options for the file of a picture, and its resolution."""

    output: PictureOption
    dpi: DpiOption = 200

    def save(self, picture: Callable[[], Any]) -> None:
        """Draw and write the picture."""
        save(picture, self.output, dpi=self.dpi)


@dataclass(frozen=True, kw_only=True)
class Drawn(Canvas, Scope):
    """Options for a picture of a part of a capture."""


def _with_parameters(
    command: Callable[..., None], wrapper: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Return `wrapper` with the name and help of `command`, and these parameters."""
    functools.update_wrapper(wrapper, command)
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def _optional(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Turn parameters of a command that are dataclasses into one option per field."""
    signature = inspect.signature(command, eval_str=True)
    types = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    groups: dict[str, Any] = {name: type_ for name, type_ in types.items() if is_dataclass(type_)}
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.name not in groups:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        kinds = typing.get_type_hints(groups[parameter.name], include_extras=True)
        for field in fields(groups[parameter.name]):
            default = parameter.empty if field.default is dataclasses.MISSING else field.default
            parameters.append(
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[field.name]
                )
            )

    def spread(**options: Any) -> None:
        made = {name: group(**{f.name: options.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**options, **made)

    return _with_parameters(command, spread, parameters)


def over_time(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--start` and `--end`, which `span` returns, to a command that reads captures; as well as `grouped`."""
    command = grouped(command)
    signature = inspect.signature(command, eval_str=True)

    def timed(*words: Any, start: str | None = None, end: str | None = None, **options: Any) -> None:
        given = {"start": start, "end": end}
        token = _span.set({name: _instant(name, text) for name, text in given.items() if text is not None})
        try:
            command(*words, **options)
        finally:
            _span.reset(token)

    times = [_optional(name, annotation) for name, annotation in _TIMES.items()]
    return _with_parameters(command, timed, [*signature.parameters.values(), *times])


def in_language(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--lang` to a command that writes sentences."""
    signature = inspect.signature(command, eval_str=True)

    def written(*words: Any, lang: str | None = None, **options: Any) -> None:
        with spoken(lang):
            command(*words, **options)

    return _with_parameters(command, written, [*signature.parameters.values(), _optional("lang", _LANG)])


def _instant(name: str, text: str) -> str | float:
    """Return the value for `latpcap.read`; a mistake is reported before a file is read."""
    from latpcap.reading import timestamps

    value: str | float = text
    with contextlib.suppress(ValueError):
        value = float(text)
    try:
        timestamps.given(value, name)
    except ValueError as problem:
        raise typer.BadParameter(str(problem).partition("=")[2], param_hint=f"--{name}") from None
    return value


def span() -> dict[str, Any]:
    """`--start` and `--end` of the running command as arguments of `latpcap.read`; empty without them."""
    return _span.get() or {}


def warn(capture: Recording) -> None:
    """Print on standard error where a capture is damaged."""
    for sentence in capture.damage:
        typer.echo(f"latpcap: warning: {sentence}; rows up to there are given", err=True)


def frames_range(text: str | None) -> tuple[int, int] | None:
    """Return the first and last frame of --frames, both included; None without the option."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise typer.BadParameter(f"expected FIRST-LAST, as in 690-1180, got {text!r}", param_hint="--frames")
    return int(first), int(last)


def save(picture: Callable[[], Any], output: Path, **how: Any) -> None:
    """Draw and write a picture; OutputError where it cannot be drawn or written."""
    try:
        picture().save(output, **how)
    except (OSError, ValueError) as problem:
        reason = str(getattr(problem, "strerror", None) or problem)
        for name in (str(output), output.name):
            reason = reason.removeprefix(f"{name}: ")
        raise OutputError(f"{output}: {reason}") from None


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Report a ValueError inside as wrong usage of the options."""
    try:
        yield
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None


@contextlib.contextmanager
def drawable_language() -> Iterator[str]:
    """Use a language inside that a picture's fonts have; print a note where that is English instead."""
    from latpcap import words
    from latpcap.plot import figure

    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        lang = figure.drawn_in()
    for note in noted:
        typer.echo(f"latpcap: note: {note.message}", err=True)
    with words.language(lang):
        yield lang


@contextlib.contextmanager
def spoken(lang: str | None) -> Iterator[None]:
    """Inside, answers are in this language."""
    from latpcap import words

    if lang is not None and lang not in words.CATALOGUES:
        raise typer.BadParameter(f"expected {', '.join(words.CATALOGUES)}, got {lang!r}", param_hint="--lang")
    with words.language(lang):
        yield
