"""Is every sentence of the catalogue said, and only with values that it names?"""

from __future__ import annotations

import re
import string
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import latpcap as lp
from latpcap import page, words
from latpcap.answers import headline as answer
from latpcap.findings.schema import Finding, Harmful, grade, grade_and_confidence

SAMPLES = Path(__file__).parents[1] / "sample_pcaps"


def test_a_template_writes_times_counts_and_plurals(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"share_tiny": "little", "one": "{n} {n:lookup|lookups}, {span_ms}, {took_ms:s}, {name}"}
    monkeypatch.setitem(words.CATALOGUES, "en", made)
    assert words.say("one", n=1, span_ms=5036.2, took_ms=12.0, name="a") == "1 lookup, 5,036 ms, 12.0 ms, a"
    many = {"n": 1200, "span_ms": (1002.4, 7134.0), "took_ms": (1000.0, 61000.0), "name": "b"}
    assert words.say("one", **many) == "1,200 lookups, 1,002-7,134 ms, 1.00-61.00 s, b"
    assert words.fix("one", **many) is None


def named(template: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(template) if field}


def test_every_catalogue_has_the_same_sentences() -> None:
    first = words.CATALOGUES["en"]
    assert set(words.CATALOGUES) == {"en", "zh"} and len(first) > 600
    for sentences in words.CATALOGUES.values():
        assert sentences.keys() == first.keys()
        for sentence, template in sentences.items():
            assert named(template) <= named(first[sentence]) or sentence.endswith(".fix"), sentence
            assert not sentence.endswith(".fix") or sentence.removesuffix(".fix") in first, sentence


GRAMMAR = {"n", "of", "other", "repeats"}
"""Values that a language without plurals may leave out."""


def test_a_translation_names_the_same_values() -> None:
    first = words.CATALOGUES["en"]
    for sentence, template in words.CATALOGUES["zh"].items():
        assert named(first[sentence]) - named(template) <= GRAMMAR, sentence


ENGLISH = re.compile(r"[A-Za-z]{3,} [a-z]{3,} [a-z]{3,}")
"""Three words of a sentence."""
NO_SENTENCES = re.compile(r"tcp\.stream eq \d+ and frame\.number in|delayed ACK on")
"""Display filters and options, which are the same in all languages."""


def english_of(text: str) -> list[str]:
    return ENGLISH.findall(NO_SENTENCES.sub("", text))


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.pcap*")), ids=lambda path: path.name)
def test_an_answer_in_chinese_has_the_numbers_of_the_english_one(path: Path) -> None:
    capture = lp.read(path)
    english, chinese = capture.why(), capture.why(lang="zh")
    labels = [[line[:11] for line in str(why).splitlines()[2:]] for why in (english, chinese)]
    assert labels[0] == labels[1]
    assert (chinese.verdict, chinese.confidence) == (english.verdict, english.confidence)
    assert english.headline == capture.why().headline != chinese.headline
    assert not english_of(str(chinese))
    if capture.exchanges.complete.any():
        assert not english_of(str(capture.why(exchange="worst", lang="zh")))


def test_there_is_no_third_language() -> None:
    with pytest.raises(ValueError, match="no language 'fr'"):
        lp.read().why(lang="fr")


def test_the_answer_over_two_captures_in_chinese() -> None:
    pair = lp.join(*(SAMPLES / "two-points" / f"{name}.pcap" for name in ("client", "server")))
    english, chinese = (str(pair.why(lang=lang)) for lang in ("en", "zh"))
    assert not english_of(chinese)
    assert "1 台路由器" in chinese and "1 router" in english
    assert [line[:11] for line in chinese.splitlines()[2:]] == [line[:11] for line in english.splitlines()[2:]]
    drawn = pair.flow_graph(exchange="worst")
    assert drawn.lang == "en"


@pytest.mark.parametrize("name", ["clips/split-nagle.pcap", "more/lost-tail.pcap"])
def test_a_report_in_chinese(name: str, tmp_path: Path) -> None:
    from latpcap.plot import figure

    capture, out = lp.read(SAMPLES / name), tmp_path / "report.html"
    assert capture.findings is not None  # findings that were made in English are made again
    capture.to_html(out, lang="zh")
    made = out.read_text(encoding="utf-8")
    prose = made if figure._chinese() else re.sub(r"<svg.*?</svg>", "", made, flags=re.DOTALL)  # no font: English
    text = unescape(re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]+>", "\n", prose, flags=re.DOTALL))
    assert '<html lang="zh">' in made and "用户在等什么" in text
    assert not english_of(text)
    opens = re.search(r'<section id="(\w+)"', made)
    assert opens and opens[1] == "actions"


def test_a_flow_graph_in_chinese_or_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    from latpcap.plot import figure

    capture = lp.read(SAMPLES / "clips/split-nagle.pcap")

    def drawn() -> Any:
        graph = capture.flow_graph(exchange="worst", lang="zh")
        return graph, [word.text for word in graph.plot().ax_.artists[-1].ink.words]  # type: ignore[attr-defined]

    monkeypatch.setattr(figure, "_chinese", lambda: None)
    with pytest.warns(UserWarning, match="没有已安装的字体"):
        graph, texts = drawn()
    assert graph.lang == "en" and "Time" in texts
    monkeypatch.undo()
    with words.language("zh"):
        if figure._chinese() is None:
            pytest.skip("no font with Chinese letters")
    graph, texts = drawn()
    assert graph.lang == "zh" and "时间" in texts and not english_of("\n".join(texts))
    assert not any("\ufffd" in text for text in texts)


def test_what_stands_on_pages_and_pictures_is_named_in_code() -> None:
    """By its id, or by the part of it that is put in."""
    package = Path(page.__file__).parents[1]
    folders = ("page", "plot", "views", "joined", "user_waits")
    sources = "\n".join(path.read_text() for folder in folders for path in (package / folder).rglob("*.py"))
    unused = []
    for sentence in words.CATALOGUES["en"]:
        first, _, rest = sentence.partition("_")
        put_in = (rest, rest.rpartition("_")[2], rest.removesuffix("_ms"), rest.partition("_")[0])
        if first in ("page", "column", "flow", "point") and sentence not in sources:
            unused += [] if any(f'"{part}"' in sources for part in put_in) else [sentence]
    assert unused == []


def wait(harmful: Harmful | None, total: float, hit: int = 1, of: int = 1) -> Finding:
    return Finding(
        kind="wait", server="a", server_port=1, cause="x", owner="dns", grade="proven", confidence=0.95, harm=harmful,
        total_ms=total, exchanges=hit, of_exchanges=of,
    )  # fmt: skip


def test_what_was_never_got_comes_before_what_took_longer() -> None:
    late, never = wait("late", 9_000.0), wait("never", 1_000.0)
    assert answer.worst([late, never]) is never


def test_an_accident_counts_as_its_time() -> None:
    late, never = wait("late", 9_000.0), wait("never", 1_000.0, hit=1, of=100)
    assert answer.worst([late, never]) is late


def test_round_trips_count_for_less_than_what_was_waited_for_beyond_them() -> None:
    late, path = wait("late", 400.0), wait("path", 1_000.0)
    assert answer.worst([late, path]) is late
    assert answer.worst([wait("late", 200.0), path]) is path


def test_what_did_no_harm_never_leads() -> None:
    assert answer.worst([wait(None, 1e9)]) is None


def test_a_grade_is_not_rounded_up_to_the_next_ones_number() -> None:
    near = {
        0.8999: "probable (0.89)",
        0.9: "proven (0.90)",
        0.8999999761581421: "proven (0.90)",
        0.29: "suspected (0.29)",
    }
    assert {sure: grade_and_confidence(sure) for sure in near} == near
    assert all(grade_and_confidence(sure).startswith(grade("nagle", sure)) for sure in near)
