"""The benchmark of causes: labels that can be read, a score that counts as its page says, adapters that answer."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "causes"
LABELS: list[dict[str, Any]] = json.loads((FOLDER / "labels.json").read_text(encoding="utf-8"))


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


score = module("score")
run = module("run")


def test_labels_are_of_captures_in_this_repository() -> None:
    assert len({label["capture"] for label in LABELS}) == len(LABELS)
    for label in LABELS:
        assert (ROOT / label["capture"]).is_file() and label["about"]
        assert label["origin"] in ("recorded", "simulated") and set(label["causes"]) <= score.CAUSES
    page = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert f"{len(LABELS)} small captures" in page and all(f"`{word}`" in page for word in score.CAUSES)


def test_it_counts_right_wrong_sure_and_unknown() -> None:
    labels = [{"capture": name, "causes": ["stall", "window"]} for name in "abcde"]
    answers = {
        "a": {"cause": "window", "sure": True}, "b": {"cause": "server", "sure": False},
        "c": {"cause": "loss", "sure": True}, "d": {"cause": None, "sure": True},
    }  # fmt: skip
    assert score.score(labels, answers) == {"right": 1, "wrong": 2, "wrong and sure": 1, "unknown": 2}
    assert "| mine | 1 | 2 | 1 | 2 |" in score.table(labels, {"mine": answers})
    with pytest.raises(ValueError, match="'gremlins' is not one of client"):
        score.score(labels, {"a": {"cause": "gremlins", "sure": True}})


def test_labels_of_recordings(tmp_path: Path) -> None:
    for name, causes in (("held", {"nagle": "client", "delayed_ack": "server"}), ("quick", {})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "truth.json").write_text(json.dumps({"expected_causes": causes}))
        (tmp_path / name / "client.pcap.gz").touch()
    assert [label["causes"] for label in score.labels_of(tmp_path)] == [["stall"], ["nobody", "path"]]


SPLIT, THINK, QUICK = (
    ROOT / "sample_pcaps" / "clips" / f"{name}.pcap" for name in ("split-nagle", "think40", "quickack")
)


def test_latpcap_answers() -> None:
    assert run.latpcap(SPLIT) == {"cause": "stall", "sure": True}
    assert run.latpcap(THINK)["cause"] == "server" and run.latpcap(QUICK)["cause"] == "nobody"
    assert run.latpcap(ROOT / "tests" / "cases" / "dns_slow" / "capture.pcap")["cause"] == "lookup"
    assert run.latpcap(ROOT / "tests" / "cases" / "setup_refused" / "capture.pcap")["cause"] == "refused"


@pytest.mark.parametrize(
    ("tool", "program"), [("transum", "tshark"), ("tcptrace", "tcptrace"), ("netverdict", "netverdict")]
)
def test_other_tools_answer(tool: str, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    ask = run.TOOLS[tool][1]
    closed = ask(ROOT / "tests" / "cases" / "zero_window" / "capture.pcap")
    assert closed["cause"] is None or closed["cause"] in score.CAUSES
    if tool == "transum":
        assert ask(THINK)["cause"] == "server"
    if tool == "tcptrace":
        assert closed["cause"] == "window" and ask(THINK) == run.UNKNOWN


def test_the_page_has_the_row_of_latpcap() -> None:
    """The page's table is what `run.py --write` makes of it."""
    answers = {label["capture"]: run.latpcap(ROOT / label["capture"]) for label in LABELS}
    row = score.table(LABELS, {"latpcap": answers}).splitlines()[-1]
    assert row in (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8").splitlines()


def test_the_command_writes_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, page = tmp_path / "labels.json", tmp_path / "page.md"
    labels.write_text(json.dumps([label for label in LABELS if label["capture"].endswith("think40.pcap")]))
    page.write_text("before\n<!-- results -->\nold\n| tcptrace | 1 | 2 | 3 | 4 |\n<!-- end -->\nbehind\n")
    monkeypatch.setattr(
        sys, "argv", ["run.py", "latpcap", "--labels", str(labels), "--write", str(page), "--out", str(tmp_path)]
    )
    run.main()
    text = page.read_text(encoding="utf-8")
    assert (
        "| latpcap | 1 | 0 | 0 | 0 |\n| tcptrace | 1 | 2 | 3 | 4 |\n<!-- end -->" in text
        and "old" not in text
        and text.endswith("behind\n")
    )
    assert json.loads((tmp_path / "latpcap.json").read_text())
