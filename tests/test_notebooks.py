"""Do the notebooks run from top to bottom, with what is in this repository, and are they kept without outputs?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 300  # for one cell, on a machine that does other things as well


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(path: Path) -> None:
    for cell in read(path)["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None, cell["source"]
        if cell["cell_type"] == "code":  # longer lines are cut off on the page
            assert max(map(len, "".join(cell["source"]).splitlines()), default=0) <= 120


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    for cell in read(path)["cells"]:
        if cell["cell_type"] == "markdown":
            for target in re.findall(r"\]\(([^)#]+)\)", "".join(cell["source"])):
                assert (FOLDER / target).exists(), target


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="pip install 'latpcap[test]' brings nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="pip install 'latpcap[test]' brings ipykernel")
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    where = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(book, timeout=SECONDS, kernel_name="python3", resources=where).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs), "no picture"
    shown = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    assert "<script" not in shown
