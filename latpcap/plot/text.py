"""Measures lines of text and breaks them, in em (1 em = the size of the letters), before anything is drawn."""

from __future__ import annotations

from functools import lru_cache

from latpcap.plot.figure import drawable, face, font

WIDTH = 54.0
"""Least width of a picture in em: 8 inches on a new figure. Texts may make a flow graph wider."""
EM = 8 * 72 / WIDTH
"""Points per em on a new figure of this width. Its small letters can be read on a phone."""


def width_of(text: str, size: float = 1.0, bold: bool = False) -> float:
    """Return the width of a line of text in em, plus 4 % for the rounding of letters to pixels."""
    return _width(drawable(text), face(bold=bold)) * size * 1.04


@lru_cache(maxsize=4096)
def _width(text: str, file: str) -> float:
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, font(100, file=file), False)
    return float(width) / 100


def wrap(text: str, width: float, size: float = 1.0, bold: bool = False) -> list[str]:
    """Split the text into lines of at most `width` em, at blanks, or inside a word that is longer than a line."""
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".strip()
        if width_of(joined, size, bold) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        while len(word) > 1 and width_of(word, size, bold) > width:
            keep = max(1, int(len(word) * width / width_of(word, size, bold)) - 1)
            lines[-1], word = word[:keep], word[keep:]
            lines.append("")
        lines[-1] = word
    return lines
