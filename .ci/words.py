"""Write the core's words into docs/causes.md, its limits into docs/thresholds.md and the names of causes into
latpcap/options.py, where they are a literal type. With --check, only compare.

    words.py [--check]

In docs/causes.md only the part between two comments is replaced. In docs/thresholds.md the results of
.ci/sensitivity.py are kept. The words come from the installed latpcap.
"""

import re
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

import sensitivity

from latpcap import _core, vocabulary

ROOT = Path(__file__).resolve().parents[1]
PAGE, LIMITS = ROOT / "docs" / "causes.md", ROOT / "docs" / "thresholds.md"
OPTIONS = ROOT / "latpcap" / "options.py"
CAUSES = "CauseName: TypeAlias = Literal[\n"
BEGIN, END = "<!-- words: written by .ci/words.py -->\n", "<!-- end of the words -->\n"


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines) + "\n"


def section(title, introduction, words):
    return f"## {title}\n\n{introduction}\n\n" + table(
        ["word", "meaning"], [(f"`{word}`", text) for word, text in words.items()]
    )


def words():
    causes = [
        (f"`{cause.name}`", cause.family, cause.owner, cause.meaning, cause.fix or "")
        for cause in vocabulary.CAUSES.values()
    ]
    hypotheses = {word: text for word, text in vocabulary.RIVALS.items() if word not in vocabulary.CAUSES}
    return (
        "## The causes\n\n"
        "`cause` and `parent`. The owner of some is the sender or the receiver of the bytes that waited; the column\n"
        "`owner` says which side that is. Causes add up to families in an answer.\n\n"
        + table(["cause", "family", "owner", "meaning", "fix"], causes)
        + section("Grades", "`grade`, the surest first.", vocabulary.GRADES)
        + section("Rules", "`rule`: the test that spoke.", vocabulary.RULES)
        + section(
            "Because", "`because`: what excludes the rivals, or what is missing to prove the row.", vocabulary.BECAUSES
        )
        + section("Rivals", "`rival` is a cause, or one of these.", hypotheses)
    )


def between(path, begin, end, new):
    """Return the text of the file with the part between `begin` and `end` replaced by `new`."""
    text = path.read_text(encoding="utf-8")
    parts = re.findall(f"{re.escape(begin)}.*?{re.escape(end)}", text, flags=re.DOTALL)
    if len(parts) != 1:
        sys.exit(f"{path}: the lines around what is written are gone")
    return text.replace(parts[0], f"{begin}{new}{end}")


def main():
    names = textwrap.fill(", ".join(f'"{name}"' for name in vocabulary.CAUSES), 116) + ","
    written = (
        (PAGE, between(PAGE, BEGIN, END, f"\n{words()}")),
        (LIMITS, sensitivity.table(_core.thresholds(), sensitivity.results_on_page(LIMITS))),
        (OPTIONS, between(OPTIONS, CAUSES, "\n]", textwrap.indent(names, "    "))),
    )
    for path, text in written:
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif text != path.read_text(encoding="utf-8"):
            return f"{path}: not what the core says; .ci/words.py writes it"
    return 0


if __name__ == "__main__":
    sys.exit(main())
