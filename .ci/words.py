"""Writes the core's words into docs/causes.md, its limits into docs/thresholds.md and the names of causes into
latpcap/options.py (types of arguments are literal), or checks that they are there.

    words.py [--check]

The words stand between two comments of their page; everything else of it is written by hand. Of the limits it keeps
what .ci/sensitivity.py found out. Reads the latpcap that is installed.
"""

import re
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # PYTHONSAFEPATH leaves it out

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


def listed(title, says, words):
    return f"## {title}\n\n{says}\n\n" + table(
        ["word", "meaning"], [(f"`{word}`", text) for word, text in words.items()]
    )


def words():
    causes = [(f"`{c.name}`", c.family, c.owner, c.meaning, c.fix or "") for c in vocabulary.CAUSES.values()]
    hypotheses = {word: text for word, text in vocabulary.RIVALS.items() if word not in vocabulary.CAUSES}
    return (
        "## The causes\n\n"
        "`cause` and `parent`. The owner of some is the sender or the receiver of the bytes that waited; the column\n"
        "`owner` says which side that is. Causes add up to families in an answer.\n\n"
        + table(["cause", "family", "owner", "meaning", "fix"], causes)
        + listed("Grades", "`grade`, the surest first.", vocabulary.GRADES)
        + listed("Rules", "`rule`: the test that spoke.", vocabulary.RULES)
        + listed(
            "Because", "`because`: what excludes the rivals, or what is missing to prove the row.", vocabulary.BECAUSES
        )
        + listed("Rivals", "`rival` is a cause, or one of these.", hypotheses)
    )


def between(path, begin, end, new):
    """The file's text with what stands between these two replaced."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(f"{re.escape(begin)}.*?{re.escape(end)}", text, flags=re.DOTALL)
    if len(found) != 1:
        sys.exit(f"{path}: the lines around what is written are gone")
    return text.replace(found[0], f"{begin}{new}{end}")


def main():
    names = textwrap.fill(", ".join(f'"{name}"' for name in vocabulary.CAUSES), 116) + ","
    written = (
        (PAGE, between(PAGE, BEGIN, END, f"\n{words()}")),
        (LIMITS, sensitivity.table(_core.thresholds(), sensitivity.known_of(LIMITS))),
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
