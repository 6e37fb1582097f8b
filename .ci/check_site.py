"""Check that the built site loads nothing from other hosts, and that every file it loads exists.

    python .ci/check_site.py SITE

Only loaded files count, not links. Ends with exit code 1 and the places of the violations.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
}
NOT_LOADED = {"canonical", "next", "prev", "alternate", "edit"}
AT_RUN_TIME = ("mermaid", "arithmatex")
"""Classes for which the theme's script fetches a library from elsewhere."""


class Loads(HTMLParser):
    """Collect the URLs that a page loads, and its classes that make the theme fetch a library."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and NOT_LOADED & set((given.get("rel") or "").split()):
            return
        self.found += [given[name] or "" for name in LOADED.get(tag, ()) if given.get(name)]
        self.fetched += [word for word in (given.get("class") or "").split() if word in AT_RUN_TIME]


def problems(site: Path) -> list[str]:
    """Return a line for each violation."""
    violations = []
    for page in sorted(site.rglob("*.html")):
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        name = page.relative_to(site)
        violations += [f"{name}: {word} is fetched when the page is read" for word in loads.fetched]
        for url in loads.found:
            parts = urlsplit(url)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                violations.append(f"{name}: loads {url}")
                continue
            path = unquote(parts.path)
            target = site / path.lstrip("/") if path.startswith("/") else page.parent / path
            if page.name != "404.html" and not target.exists():
                violations.append(f"{name}: {url} is not there")
    for sheet in sorted(site.rglob("*.css")):
        text = sheet.read_text(encoding="utf-8")
        outside = re.findall(r"""(?:@import\s+|url\(\s*)["']?((?:https?:)?//[^"')\s]+)""", text)
        violations += [f"{sheet.relative_to(site)}: loads {url}" for url in outside]
    return violations


def main() -> None:
    site = Path(sys.argv[1])
    pages = len(list(site.rglob("*.html")))
    if not pages:
        sys.exit(f"no pages in {site}")
    if errors := problems(site):
        sys.exit("\n".join(errors))
    print(f"{pages} pages load nothing from elsewhere")


if __name__ == "__main__":
    main()
