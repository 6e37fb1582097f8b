"""Does a picture still look as it did when somebody looked at it?

    golden.check("waterfall", display._repr_png_())

holds a PNG against `tests/golden/NAME.png`. Both are blurred a little before they are compared, so that another
version of matplotlib or FreeType, which places letters half a pixel elsewhere, passes; a missing label, band or
colour does not. After a change that is wanted: `LATPCAP_WRITE_GOLDEN=1 python -m pytest`, then look at every
picture that changed. A golden picture has less than 300 kB.
"""

from __future__ import annotations

import io
import os
from itertools import combinations
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("golden")
LARGEST_BYTES = 300_000

BLUR = 3  # pixels to each side: an edge that moves by 1 pixel changes by 1/7 of its contrast, 36 of 255
FAR = 48  # difference of a blurred colour, of 255, from which a pixel counts
SHARE = 0.0004  # of the pixels that may differ so much: 160 on a page of 800 x 500, less than a short word
SIDE = 0.01  # share by which a side may be longer or shorter


def distance(one: bytes, other: bytes) -> float:
    """The share of pixels that differ visibly; 1.0 if the sizes are not about the same."""
    import numpy as np
    from PIL import Image, ImageFilter

    pictures = [Image.open(io.BytesIO(png)).convert("RGB") for png in (one, other)]
    (w0, h0), (w1, h1) = (picture.size for picture in pictures)
    if abs(w0 - w1) > max(2, SIDE * w0) or abs(h0 - h1) > max(2, SIDE * h0):
        return 1.0
    box = (0, 0, min(w0, w1), min(h0, h1))
    a, b = (np.asarray(p.filter(ImageFilter.BoxBlur(BLUR)).crop(box), dtype=np.int16) for p in pictures)
    return float((abs(a - b).max(axis=2) > FAR).mean())


def check(name: str, png: bytes, *, share: float = SHARE) -> None:
    """Fails if this PNG is not what `tests/golden/NAME.png` shows; the new picture is then kept beside it as
    NAME.new.png (which git ignores).
    """
    assert png.startswith(b"\x89PNG"), f"{name}: no PNG"
    assert len(png) < LARGEST_BYTES, f"{name}: {len(png):,} bytes are too many for a golden picture"
    path, new = FOLDER / f"{name}.png", FOLDER / f"{name}.new.png"
    if os.environ.get("LATPCAP_WRITE_GOLDEN"):
        if not path.exists() or distance(path.read_bytes(), png) > 0:  # bytes that show the same stay as they are
            path.write_bytes(png)
        return
    assert path.exists(), f"{path} is not there; LATPCAP_WRITE_GOLDEN=1 makes it"
    off = distance(path.read_bytes(), png)
    if off <= share:
        new.unlink(missing_ok=True)
        return
    new.write_bytes(png)
    raise AssertionError(f"{name}: {off:.2%} of the pixels are others than in {path.name}; see {new}")


def texts(figure: Any, dpi: float = 100) -> list[tuple[str, Any]]:
    """Every visible text of a figure with its box in pixels."""
    from matplotlib.text import Text

    figure.set_dpi(dpi)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    found = []
    for text in figure.findobj(Text):
        if (text.get_visible() and text.get_text().strip() and text.axes is not None) or text in figure.texts:
            box = text.get_window_extent(renderer)
            if box.width > 0 and (text.get_clip_box() is None or not text.get_clip_on()):
                found.append((text.get_text(), box))
    return found


def assert_legible(figure: Any, *, dpi: float = 100) -> None:
    """No text leaves the figure or lies on another."""
    boxes = texts(figure, dpi)
    assert boxes, "no text at all"
    width, height = figure.canvas.get_width_height()
    for words, box in boxes:
        inside = box.x0 >= -0.5 and box.y0 >= -0.5 and box.x1 <= width + 0.5 and box.y1 <= height + 0.5
        assert inside, f"{words!r} leaves the picture: {box}"
    for (one, a), (other, b) in combinations(boxes, 2):
        over = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(over) <= 1, f"{one!r} lies on {other!r}"
