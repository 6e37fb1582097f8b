"""Do the notebooks run from top to bottom, with what is in this repository, and give what they are shipped with?

LATPCAP_WRITE_NOTEBOOKS=1 writes what they give.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES, WIDTH, COLOURS = 400_000, 1200, 48
WRITE = "LATPCAP_WRITE_NOTEBOOKS"
SECONDS = 300  # for one cell, on a machine that does other things as well


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_there_and_small(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES
    book = read(path)
    assert any(cell.get("outputs") for cell in book["cells"])
    for cell in book["cells"]:
        if cell["cell_type"] == "code":  # longer lines are cut off on the page
            assert max(map(len, "".join(cell["source"]).splitlines()), default=0) <= 120
            assert not any(output["output_type"] == "error" for output in cell["outputs"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    for cell in read(path)["cells"]:
        if cell["cell_type"] == "markdown":
            for target in re.findall(r"\]\(([^)#]+)\)", "".join(cell["source"])):
                assert (FOLDER / target).exists(), target


VARIES = re.compile(r"0x[0-9a-f]+|[\w./~-]*/(?:sites|archive)-[\w-]+|\d[\d,.:]*(?: ?[µumn]?s\b)?|\s+")
"""Addresses of objects, scratch folders, numbers and room."""


def shown(book: Any) -> list[str]:
    """What each cell prints or shows, as text without what varies; a picture by its kind."""
    found = []
    for cell in book["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            text = "".join(output.get("text", "") or data.get("text/plain", ""))
            picture = " image" if "image/png" in data else ""
            found.append(VARIES.sub(" ", text).strip() + picture)
    return found


def versions() -> dict[str, str]:
    """What shows tables and pictures: other versions show them otherwise."""
    return {name: ".".join(version(name).split(".")[:2]) for name in ("pandas", "matplotlib")}


def smaller(picture: str) -> str:
    """A PNG of few colours."""
    from PIL import Image

    out = io.BytesIO()
    whole = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    whole.thumbnail((WIDTH, 10 * WIDTH))
    whole.quantize(COLOURS).save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode()


def written(path: Path, book: Any) -> None:
    """Keeps the notebook with these outputs, without counts and times."""
    for cell in book["cells"]:
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell["execution_count"] = None
            for output in cell["outputs"]:
                output.pop("execution_count", None)
                if "image/png" in output.get("data", {}):
                    output["data"]["image/png"] = smaller(output["data"]["image/png"])
                    output["data"].pop("text/html", None)
                if output["output_type"] == "execute_result":
                    output["execution_count"] = None
                output["metadata"] = {} if output["output_type"] != "stream" else None
                if output["metadata"] is None:
                    del output["metadata"]
    plain = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book["metadata"] = {"kernelspec": plain, "language_info": {"name": "python"}, "shown_by": versions()}
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="pip install 'latpcap[test]' brings nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="pip install 'latpcap[test]' brings ipykernel")
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    shipped = shown(book) if book["metadata"].get("shown_by") == versions() else None
    where = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(book, timeout=SECONDS, kernel_name="python3", resources=where).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs), "no picture"
    markup = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    assert "<script" not in markup
    if os.environ.get(WRITE):
        written(path, book)
    elif shipped is not None:
        assert shown(book) == shipped, f"{WRITE}=1 python -m pytest {Path(__file__).name} writes what it gives now"
