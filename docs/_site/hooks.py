"""What the site has beside the pages in `docs/`: pages from elsewhere in the repository, and notebooks that were run.

Links between all of these are written for somebody who reads the repository; here they are turned to where the site
has the page. A link to a file that the site does not have becomes plain text.
"""

from __future__ import annotations

import base64
import logging
import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md", "sample_pcaps/README.md")
SECONDS = 300  # for one cell of a notebook

log = logging.getLogger("mkdocs.hooks.latpcap")

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_PRE = re.compile(r"<pre\b.*?</pre>", re.DOTALL)
_CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages from elsewhere, the notebooks, and the pictures that pages show from elsewhere."""
    for name in OUTSIDE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    files.append(File.generated(config, "reference/command-line.md", content=_command_line()))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        text, pictures = _notebook(path)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, data in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=data))
    shown = set()
    for file in files.documentation_pages():
        for _, _, target, _ in _LINK.findall(file.content_string):
            place = _resolved(file.src_uri, target)
            if place.endswith(".png") and not place.startswith("docs/") and (ROOT / place).is_file():
                shown.add(place)
    for place in sorted(shown):
        files.append(File.generated(config, place, content=(ROOT / place).read_bytes()))
    return files


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: Any) -> str:
    """Turns the links of the repository into links of the site, outside of code."""

    def turned(match: re.Match[str]) -> str:
        picture, text, target, part = match.groups()
        if "://" in target or target.startswith("mailto:"):
            return match.group()
        here = page.file.src_uri
        place = _resolved(here, target)
        place = place.removesuffix(".ipynb") + ".md" if place.endswith(".ipynb") else place.removeprefix("docs/")
        if place == "README.md":
            place = "index.md"
        if place.rstrip("/") in ("notebooks", "benchmarks", "sample_pcaps"):
            place = {"notebooks": "notebooks/1-why-44-ms.md"}.get(place.rstrip("/"), f"{place.rstrip('/')}/README.md")
        if files.get_file_from_path(place) is None:
            if (ROOT / _resolved(here, target)).exists():
                return text
            return match.group()  # mkdocs says that it leads nowhere
        return f"{picture}[{text}]({posixpath.relpath(place, posixpath.dirname(here) or '.')}{part or ''})"

    pieces = _CODE.split(markdown)
    return "".join(piece if number % 2 else _LINK.sub(turned, piece) for number, piece in enumerate(pieces))


def _resolved(uri: str, target: str) -> str:
    """The place in the repository that a page's link means."""
    elsewhere = uri in OUTSIDE or uri.startswith("notebooks/")
    here = uri if elsewhere else f"docs/{uri}"
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), target))


def _command_line() -> str:
    """Every command with its options, from the program itself."""
    from typer.main import get_command

    from latpcap.cli.app import app

    top: Any = get_command(app)
    parts = [f"# Command line\n\n{_sentence(top.help)}\n\nExit codes: {_exit_codes()}"]

    def tell(name: str, command: Any) -> None:
        inner = getattr(command, "commands", None)
        if inner:
            for word, one in inner.items():
                tell(f"{name} {word}", one)
            return
        given = [p for p in command.params if p.param_type_name == "argument"]
        usage = " ".join([name, *map(_placeholder, given), "[OPTIONS]"])
        parts.append(f"## {name.removeprefix('latpcap ')}\n\n{_sentence(command.help)}\n\n```console\n$ {usage}\n```")
        rows = ["| words | meaning |", "| --- | --- |"]
        for one in command.params:
            words = ", ".join(f"`{word}`" for word in one.opts) if one not in given else f"`{one.name.upper()}`"
            if one.name != "help" and not getattr(one, "hidden", False):
                rows.append(f"| {words} | {_sentence(getattr(one, 'help', ''))}{_default(one)} |")
        if len(rows) > 2:
            parts.append("\n".join(rows))

    for word, command in top.commands.items():
        tell(f"latpcap {word}", command)
    return "\n\n".join(parts) + "\n"


def _placeholder(argument: Any) -> str:
    word = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def _default(param: Any) -> str:
    plain = isinstance(param.default, (str, int, float)) and not isinstance(param.default, bool)
    return f" Default: `{param.default}`." if plain and param.default != "" else ""


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _exit_codes() -> str:
    """The second paragraph of the module that gives them; the build fails where there is none."""
    from latpcap.cli.exit_codes import __doc__ as about

    return " ".join((about or "").split("\n\n")[1].split())


def _notebook(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as a page: its text and code, and what each cell gives. Tests hold what it is shipped with."""
    try:
        import nbclient
        import nbformat
    except ImportError:
        log.info("%s: shown without outputs, nbclient is not installed", path.name)
        import json

        book = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell | {"source": "".join(cell["source"])} for cell in book["cells"]]
    else:
        book = nbformat.read(path, as_version=4)
        bare = not any(cell.get("outputs") for cell in book["cells"])
        if bare and os.environ.get("LATPCAP_DOCS_NOTEBOOKS", "1") != "0":
            where = {"metadata": {"path": str(path.parent)}}
            nbclient.NotebookClient(book, timeout=SECONDS, kernel_name="python3", resources=where).execute()
        cells = book["cells"]
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            parts.append(cell["source"])
            continue
        parts.append(f"```python\n{cell['source']}\n```")
        for place, output in enumerate(cell.get("outputs", ())):
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}-{number}-{place}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![What the cell draws]({name})")
            elif "text/html" in data:
                # one line, so that Markdown takes none of it for its own; in <pre> lines stay lines
                html = _PRE.sub(lambda pre: pre.group().replace("\n", "&#10;"), "".join(data["text/html"]))
                html = " ".join(html.split("\n"))
                parts.append(f'<div class="notebook-output">{html}</div>')
            elif text := "".join(output.get("text", data.get("text/plain", ""))):
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n", pictures
