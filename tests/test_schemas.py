"""Is the JSON that latpcap writes of the form that its schemas tell, and would they notice another?"""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from commands import answered

import latpcap as lp
from latpcap import schemas

jsonschema = pytest.importorskip("jsonschema", reason="pip install 'latpcap[test]' brings jsonschema with nbclient")

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = [
    *sorted((ROOT / "sample_pcaps").glob("**/*.pcap")),
    *sorted((ROOT / "tests" / "cases").glob("*/capture.*")),
]


def command(*words: object) -> Any:
    out = answered(*words)
    return json.loads(out) if out else None


@cache
def validator(name: str) -> Any:
    return jsonschema.Draft202012Validator(schemas.of(name))


def check(name: str, data: Any) -> None:
    validator(name).validate(data)


@pytest.mark.parametrize("name", schemas.NAMES)
def test_a_schema_is_one(name: str) -> None:
    found = schemas.of(name)
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["$id"].startswith(f"urn:latpcap:{name}:") and command("schema", name) == found


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_answers_have_the_form(path: Path) -> None:
    capture = lp.read(path)
    check("why", json.loads(json.dumps(capture.why().to_dict())))
    if capture.arrow("exchanges").num_rows:
        check("why", json.loads(json.dumps(capture.why(exchange=0).to_dict())))


@pytest.mark.parametrize("name", ["findings", "exchanges"])
def test_tables_in_json_have_the_form(name: str, tmp_path: Path) -> None:
    for number, path in enumerate(CAPTURES[::40]):
        command(name, path, "-o", tmp_path / f"{number}.json")
        check(name, json.loads((tmp_path / f"{number}.json").read_text()))


def test_an_archive_answers_in_the_same_form(tmp_path: Path) -> None:
    lp.batch(ROOT / "sample_pcaps" / "clips", tmp_path / "results", quiet=True)
    check("why", command("why", tmp_path / "results", "--json"))


def test_another_form_is_noticed() -> None:
    answer = json.loads(json.dumps(lp.read().why().to_dict()))
    for harm in (
        lambda it: it.pop("verdict"),
        lambda it: it.update(schema=0),
        lambda it: it.update(confidence=1.1),
        lambda it: it["findings"][0].pop("cause"),
        lambda it: it.update(kind="exchange"),
    ):
        other = copy.deepcopy(answer)
        harm(other)
        with pytest.raises(jsonschema.ValidationError):
            check("why", other)
    check("why", answer | {"a_key_of_tomorrow": 1})
    with pytest.raises(KeyError, match="no schema 'x'"):
        schemas.of("x")
