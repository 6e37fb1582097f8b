"""Turns matplotlib figures into PNG, SVG or PDF: the same bytes every time, without a screen.

The only module that sets backend, style, font and metadata. pyplot is never imported, as it keeps figures alive and
looks for a screen.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from latpcap import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

SUFFIXES = (".png", ".svg", ".pdf")
"""File formats of pictures, by suffix."""

DPI = 200
"""Default pixels per inch: twice those of a classic screen (96)."""

_METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
_MAX_PIXELS = 65_000
"""Upper bound on the pixels of a side; Agg's is 2**16."""
CHINESE = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "Microsoft YaHei", "PingFang SC", "Heiti SC", "SimHei", "Noto Sans CJK JP",
    "Droid Sans Fallback", "AR PL UMing CN", "Noto Serif CJK SC", "Noto Serif CJK JP",
)  # fmt: skip
"""Font families with simplified Chinese, in order of preference."""
PROBE = "请求服务器延迟确认丢弃"
"""Letters that a font must have to be used for simplified Chinese."""
BOLD_FROM = 600
"""Weight from which a font is bold, on the scale of CSS."""


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with matplotlib's default settings, whatever the user's own style is."""
    import matplotlib as mpl
    import matplotlib.style

    with (
        mpl.style.context("default"),
        mpl.rc_context({"svg.hashsalt": "latpcap", "svg.fonttype": "none", "hatch.linewidth": 0.7}),
    ):
        yield


def font(points: float, *, bold: bool = False, file: str = "") -> FontProperties:
    """Return the font of `file`, else of `face`."""
    from matplotlib.font_manager import FontProperties

    # the weight is for SVG, which names the font and not its file
    return FontProperties(fname=file or face(bold=bold), size=points, weight="bold" if bold else "normal")


def face(*, bold: bool = False) -> str:
    """Return the file of the font: matplotlib's own DejaVu Sans, never the system's version of it. For Chinese
    sentences, an installed font that has the letters.
    """
    chinese = _chinese() if words.current() == "zh" else None
    return (_latin() if chinese is None else chinese)[bold]


def drawn_in() -> str:
    """Return the language of a picture: the current one, or English with a warning if no font has its letters."""
    if words.current() == "zh" and _chinese() is None:
        warnings.warn(words.say("no_font"), stacklevel=2)
        return "en"
    return words.current()


@lru_cache(maxsize=1)
def _latin() -> tuple[str, str]:
    import matplotlib as mpl

    folder = Path(mpl.get_data_path(), "fonts", "ttf")
    return str(folder / "DejaVuSans.ttf"), str(folder / "DejaVuSans-Bold.ttf")


@lru_cache(maxsize=1)
def _chinese() -> tuple[str, str] | None:
    """Return the files of an installed font with Chinese letters, plain and bold; None if there is none."""
    from matplotlib.font_manager import fontManager
    from matplotlib.ft2font import FT2Font

    for family in CHINESE:
        files: dict[bool, str] = {}
        for entry in fontManager.ttflist:
            if entry.name == family and entry.style == "normal" and Path(entry.fname).exists():
                weight = entry.weight if isinstance(entry.weight, int) else 700 if entry.weight == "bold" else 400
                files.setdefault(weight >= BOLD_FROM, entry.fname)
        if files and {ord(letter) for letter in PROBE} <= set(FT2Font(next(iter(files.values()))).get_charmap()):
            plain = files.get(False) or files[True]
            return plain, files.get(True, plain)
    return None


def drawable(text: str) -> str:
    """Return the text with "�" for each letter that the font lacks.

    A file's name or a request's target may hold any letter, and a substitute font would give other pixels on another
    machine.
    """
    if text.isascii() and text.isprintable():
        return text
    drawable_letters = _letters(face(), face(bold=True))
    return "".join(letter if ord(letter) in drawable_letters else "\ufffd" for letter in text)


@lru_cache(maxsize=2)
def _letters(plain: str, bold: str) -> frozenset[int]:
    """Return the characters that both weights of a font have."""
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(plain).get_charmap()) & frozenset(FT2Font(bold).get_charmap())


def new_figure(width: float, height: float) -> Figure:
    """Return an empty white figure of this size in inches, without pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def suffix_of(path: str | Path, suffixes: Sequence[str] = SUFFIXES) -> str:
    """Return the path's suffix in lower case. Raises ValueError, with the known suffixes, for any other."""
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        given = f"suffix {suffix!r}" if suffix else "a path without a suffix"
        raise ValueError(f"{Path(path).name}: {given}, but a picture is saved as one of {', '.join(suffixes)}")
    return suffix


def render(figure: Figure, suffix: str, dpi: float, *, colours: Sequence[str] = ()) -> bytes:
    """Return the figure's bytes in the format of `suffix`, a PNG at `dpi` pixels per inch; equal figures give equal
    bytes.

    With `colours` ("#rrggbb") a PNG has a palette of 256 colours in which these are exact; a drawing of text becomes a
    quarter as large. Raises ValueError if a PNG would be larger than matplotlib can draw.
    """
    width, height = (round(side * dpi) for side in figure.get_size_inches())
    if suffix == ".png" and max(width, height) > _MAX_PIXELS:
        raise ValueError(
            f"a PNG of {width} x {height} pixels is over the limit of {_MAX_PIXELS} on a side: "
            "save as .svg or .pdf, or show fewer rows"
        )
    buffer = io.BytesIO()
    with house_style():
        if colours and suffix == ".png":
            return _with_palette(figure, dpi, colours)
        figure.savefig(buffer, format=suffix[1:], dpi=dpi, metadata=_METADATA[suffix], facecolor="white")
    return _with_text(buffer.getvalue()) if suffix == ".svg" else buffer.getvalue()


def _with_text(svg: bytes) -> bytes:
    """Add Verdana, whose letters are as wide, as the font for viewers without DejaVu Sans. Text stays searchable."""
    return re.sub(rb"font-family: 'DejaVu Sans'[^;\"]*", b"font-family: 'DejaVu Sans', Verdana, sans-serif", svg)


def _with_palette(figure: Figure, dpi: float, colours: Sequence[str]) -> bytes:
    """Return the figure as a PNG of 256 colours, with these colours exact."""
    from PIL import Image, ImageColor

    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba", dpi=dpi, facecolor="white")
    width = int(figure.get_size_inches()[0] * dpi)
    pixels = buffer.getvalue()
    picture = Image.frombuffer("RGBA", (width, len(pixels) // (4 * width)), pixels, "raw", "RGBA", 0, 1).convert("RGB")
    reduced = picture.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    palette = reduced.getpalette() or []
    for colour in colours:  # the quantizer's colours are averages of similar ones
        exact = ImageColor.getrgb(colour)[:3]
        distance, offset = min(
            (max(abs(a - b) for a, b in zip(exact, palette[start : start + 3], strict=True)), start)
            for start in range(0, len(palette), 3)
        )
        if distance <= 4:
            palette[offset : offset + 3] = exact
    reduced.putpalette(palette)
    buffer = io.BytesIO()
    reduced.save(buffer, "PNG", dpi=(dpi, dpi))
    return buffer.getvalue()


def render_pages(figures: Iterable[Figure], dpi: float) -> bytes:
    """Return the figures as the pages of one PDF, each drawn and released before the next."""
    from matplotlib.backends.backend_pdf import PdfPages

    buffer = io.BytesIO()
    with house_style(), PdfPages(buffer, metadata=_METADATA[".pdf"]) as file:
        for figure in figures:
            file.savefig(figure, dpi=dpi, facecolor="white")
    return buffer.getvalue()
