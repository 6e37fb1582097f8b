"""Archives of several sites that use the same private addresses; and findings that were stored with the tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run
from makepcap import Ends, Talk, answer, get, pcap

import latpcap as lp
from latpcap.archive import sites, stored_findings
from latpcap.archive.results import READABLE

PRIVATE, PUBLIC = "10.0.0.2", "93.184.216.34"


def slow(*, server: str = PRIVATE, wait_ms: float = 300.0, scale: int = 7, times: int = 4) -> bytes:
    """A server whose program takes so long for each request."""
    talk = Talk(ends=Ends(server=(server, 80)), scale=scale)
    talk.open()
    for number in range(times):
        begun = 10.0 + number * 1000
        talk.client(begun, get(f"/{number}"))
        for part in answer(100):
            talk.server(begun + wait_ms, part)
    return pcap(talk.tape)


def written(root: Path, files: dict[str, bytes]) -> Path:
    """Results of captures of these names."""
    for name, data in files.items():
        (root / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "in" / name).write_bytes(data)
    lp.batch(root / "in", root / "out", quiet=True)
    return root / "out"


SEVERAL = {
    "folders": {"berlin/a.pcap": slow(), "paris/a.pcap": slow(wait_ms=500.0)},
    "machines": {"a.pcap": slow(), "b.pcap": slow(scale=9)},
}
"""Archives whose private addresses are several machines."""


def servers(place: Path, **more: str) -> list[tuple[str, int]]:
    """Each server of the answer, with its requests."""
    rows = lp.open_results(place, **more).why().servers  # type: ignore[arg-type]
    return sorted((row["server"], row["requests"]) for row in rows)


def test_folders_that_share_a_private_server_are_counted_apart(tmp_path: Path) -> None:
    place = written(tmp_path, SEVERAL["folders"])
    assert servers(place) == [(f"{PRIVATE}%berlin:80", 4), (f"{PRIVATE}%paris:80", 4)]
    assert servers(place, sites="one") == [(f"{PRIVATE}:80", 8)]
    results = lp.open_results(place)
    found = results.findings
    assert list(found) == list(READABLE) and set(found.server) == {f"{PRIVATE}%berlin", f"{PRIVATE}%paris"}
    every = results.to_pandas("findings")
    assert set(every.server) == {PRIVATE} and set(every.site) == {"berlin", "paris"}
    assert set(lp.open_results(place, sites="one").findings.server) == {PRIVATE}
    assert "captures of 2 folders" in str(results.why()) and results.why().to_dict()["sites"] == ["berlin", "paris"]
    assert set(results.latency(by="server").table.server) == {f"{PRIVATE}%berlin:80", f"{PRIVATE}%paris:80"}
    assert results.why(server=f"{PRIVATE}%paris").to_dict()["p50_ms"] > 400


def test_equal_captures_have_one_order_wherever_they_are(tmp_path: Path) -> None:
    answers = set()
    for number in range(8):  # names of captures have a hash of the whole location
        root = tmp_path / str(number)
        paragraphs = lp.open_results(written(root, {"berlin/a.pcap": slow(), "paris/a.pcap": slow()})).why().for_owner()
        answers.add("\n".join(paragraphs).replace(str(root), "ROOT"))
    (answer_of_all,) = answers
    assert "latpcap flow ROOT/in/berlin/a.pcap --exchange " in answer_of_all


def test_the_command_to_check_has_the_numbers_of_its_file(tmp_path: Path) -> None:
    place = written(tmp_path, {"berlin/a.pcap": slow(), "paris/a.pcap": slow(wait_ms=500.0)})
    first, *_ = lp.open_results(place).why().for_owner()
    (command,) = [line.split(maxsplit=1)[1] for line in first.splitlines() if line.startswith("  check")]
    _, name, *arguments = command.split()
    assert arguments[0] == str(tmp_path / "in" / "paris" / "a.pcap")
    assert run(name, *arguments[:-1], tmp_path / "flow.svg")[0] == 0 and (tmp_path / "flow.svg").exists()


def test_what_is_no_second_site(tmp_path: Path) -> None:
    """A public server is one machine everywhere, folders that are dates are one place."""
    place = written(tmp_path / "public", {f"{name}/a.pcap": slow(server=PUBLIC) for name in ("berlin", "paris")})
    assert servers(place) == [(f"{PUBLIC}:80", 8)]
    place = written(
        tmp_path / "days", {f"{name}/a.pcap": slow() for name in ("2026-11-20", "2026-11-21", "2026/11/22")}
    )
    assert servers(place) == [(f"{PRIVATE}:80", 12)]
    place = written(tmp_path / "flat", {"a.pcap": slow(), "b.pcap": slow(wait_ms=500.0)})
    assert servers(place) == [(f"{PRIVATE}:80", 8)] and "sites" not in lp.open_results(place).why().to_dict()
    assert servers(place, sites="capture") == [(f"{PRIVATE}%a.pcap:80", 4), (f"{PRIVATE}%b.pcap:80", 4)]


def test_a_slice_is_called_what_it_is_limited_to(tmp_path: Path) -> None:
    place = written(tmp_path, {"paris/a.pcap": slow(), "paris/b.pcap": slow()})
    first = str(lp.open_results(place).slice(file="*/paris/*").why()).splitlines()[0]
    assert first.startswith("out (2 captures (*/paris/*)): ")


def test_machines_of_one_folder_that_cannot_be_the_same(tmp_path: Path) -> None:
    place = written(tmp_path, SEVERAL["machines"])
    assert servers(place) == [(f"{PRIVATE}%a.pcap:80", 4), (f"{PRIVATE}%b.pcap:80", 4)]
    assert "other machines in some of the 2 captures" in str(lp.open_results(place).why())
    code, out, _ = run("why", place, "--sites", "one", "--json")
    assert code == 0 and [row["server"] for row in json.loads(out)["servers"]] == [f"{PRIVATE}:80"]
    code, _, err = run("why", place, "--sites", "street")
    assert code == 2 and "expected one of auto, one, folder, capture" in err
    with pytest.raises(ValueError, match="expected one of"):
        lp.open_results(place, sites="street")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "private"),
    [("10.1.2.3", True), ("127.0.0.1", True), ("100.64.0.1", True), ("fd00::1", True), ("8.8.8.8", False),
     ("224.0.0.251", False), ("2606:4700::1111", False)],
)  # fmt: skip
def test_private_addresses(address: str, private: bool) -> None:
    assert sites.is_private(address) == private


def test_findings_are_stored_with_many_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those that the tables give; of other tables, or damaged, they are made anew."""
    monkeypatch.setattr(stored_findings, "MIN_CAPTURES", 2)
    place = written(tmp_path, {"a.pcap": slow(), "b.pcap": slow(wait_ms=500.0)})
    [kept] = (place / stored_findings.FOLDER).iterdir()
    made = lp.open_results(place)._answered(lambda held: held.found())
    assert stored_findings.find(*lp.open_results(place)._stored.whole, "auto").equals(made)
    assert lp.open_results(place)._found().equals(made)
    assert not lp.open_results(place).slice(file="a.pcap").keep_findings()
    data = kept.read_bytes()
    kept.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert stored_findings.find(*lp.open_results(place)._stored.whole, "auto") is None
    assert lp.open_results(place)._found().equals(made)
    (tmp_path / "in" / "c.pcap").write_bytes(slow(server=PUBLIC))
    lp.batch(tmp_path / "in", place, quiet=True)
    [other] = (place / stored_findings.FOLDER).iterdir()
    assert other.name != kept.name and PUBLIC in set(lp.open_results(place).findings.server)
