"""Are the public signatures of use to somebody who checks types?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from latpcap import _core, options
from latpcap.vocabulary import CAUSES

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "tests" / "typing" / "user_script.py"

WRONG = {
    'cap.arrow("exchange")': "arg-type",
    "cap.latency(by=3)": "arg-type",
    'cap.flow_graph(exchange="longest")': "arg-type",
    'cap.stream("7")': "arg-type",
    'cap.why().findings_of("server")': "attr-defined",
}


def mypy(*files: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    run = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *map(str, files)]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def test_a_users_script_is_typed() -> None:
    found = mypy(SCRIPT)
    assert found.returncode == 0, found.stdout


def test_a_users_script_is_typed_for_pyright_too(tmp_path: Path) -> None:
    pytest.importorskip("pyright", reason="pip install pyright")
    place = os.pathsep.join(filter(None, [str(Path(_core.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    settings = tmp_path / "pyrightconfig.json"
    shutil.copy(SCRIPT, tmp_path)
    settings.write_text(json.dumps({"include": [SCRIPT.name], "extraPaths": place.split(os.pathsep)}))
    run = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(settings), "--pythonpath", sys.executable]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not start here: {done.stderr[-200:]}")
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] == 1
    assert [one["message"] for one in told["generalDiagnostics"] if one["severity"] == "error"] == []


def test_a_users_script_runs(tmp_path: Path) -> None:
    run = [sys.executable, str(SCRIPT), str(ROOT / "sample_pcaps" / "nginx-latency.pcap"), str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {
        "latency.png",
        "waterfall.png",
        "timeline.png",
        "sequence.png",
        "flow.png",
        "part.pcapng",
        "report.html",
    } <= {path.name for path in tmp_path.iterdir()}


def test_wrong_words_and_types_are_found(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text("\n".join(["import latpcap as lp", 'cap = lp.read("a.pcap")', *WRONG]) + "\n")
    told = mypy(script).stdout
    for line, (call, code) in enumerate(WRONG.items(), 3):
        assert any(f"wrong.py:{line}:" in said and f"[{code}]" in said for said in told.splitlines()), (call, told)


def test_the_words_of_types_are_those_of_the_core() -> None:
    assert list(get_args(options.CauseName)) == list(CAUSES)
    assert set(get_args(options.TableName)) == {*_core.TABLES, "findings", "waits", "actions", "groups"}
