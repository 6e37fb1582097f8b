"""The manual page `latpcap(1)`, generated from the commands and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_ENVIRONMENT = {"NO_COLOR": "No colours, if set.", "COLUMNS": "The width of the terminal, if it reports none."}
_EXIT = {
    "0": "The capture was analysed.",
    "1": "A rule of \\fBcompare \\-\\-fail\\-on\\fR fails.",
    "2": "Wrong usage, or an output that cannot be written.",
    "3": "A capture could not be read.",
}


def page(top: Any, version: str) -> str:
    """Return the page in roff, for `man -l`. `top` is the program's click command."""
    return "\n".join(_lines(top, version)) + "\n"


def _lines(top: Any, version: str) -> Iterator[str]:
    yield f'.TH LATPCAP 1 "" "latpcap {_text(version)}" "User Commands"'
    yield from (".SH NAME", "latpcap \\- why was each request in a packet capture slow?")
    yield from (".SH SYNOPSIS", ".B latpcap", "[\\fICOMMAND\\fR] [\\fIOPTION\\fR ...] \\fIFILE\\fR ...")
    yield from (".SH DESCRIPTION", _text(top.help), "Without a command: \\fBwhy\\fR.")
    yield ".SH COMMANDS"
    for name, command in top.commands.items():
        yield from _command(name, command)
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT.items():
        yield from (".TP", f".B {code}", meaning)
    yield ".SH ENVIRONMENT"
    for name, meaning in _ENVIRONMENT.items():
        yield from (".TP", f".B {name}", meaning)
    yield from (".SH SEE ALSO", ".BR tcpdump (8), tshark (1), wireshark (1)")


def _command(name: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner:
        for word, subcommand in inner.items():
            yield from _command(f"{name} {word}", subcommand)
        return
    given = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    words = " ".join(
        f"\\fI{_text(argument.name.upper())}\\fR" + (" ..." if argument.nargs == -1 else "") for argument in given
    )
    yield from (f".SS {_text(name)} {words}".rstrip(), _text(command.help))
    for param in command.params:
        if param in given or getattr(param, "hidden", False):
            continue
        flags = ", ".join(f"\\fB{_text(word)}\\fR" for word in param.opts)
        value = "" if param.is_flag else f" \\fI{_text(max(param.opts, key=len).strip('-').upper())}\\fR"
        yield from (".TP", flags + value, _text(param.help))


def _text(words: str | None) -> str:
    """Plain text, escaped for roff."""
    line = " ".join((words or "").split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line
