"""Writes the core's words into docs/causes.md and its limits into docs/thresholds.md, or checks that they are there.

    words.py [--check]

The words stand between two comments of their page; everything else of it is written by hand. Of the limits it keeps
what .ci/sensitivity.py found out. Reads the latpcap that is installed.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # PYTHONSAFEPATH leaves it out

import sensitivity

from latpcap import _core, vocabulary

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, LIMITS = DOCS / "causes.md", DOCS / "thresholds.md"
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


def main():
    page = PAGE.read_text(encoding="utf-8")
    between = f"{re.escape(BEGIN)}.*?{re.escape(END)}"
    new, found = re.subn(between, lambda _: f"{BEGIN}\n{words()}{END}", page, flags=re.DOTALL)
    if found != 1:
        return f"{PAGE}: the comments around the words are gone"
    for path, text in ((PAGE, new), (LIMITS, sensitivity.table(_core.thresholds(), sensitivity.known_of(LIMITS)))):
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif text != path.read_text(encoding="utf-8"):
            return f"{path}: not what the core says; .ci/words.py writes it"
    return 0


if __name__ == "__main__":
    sys.exit(main())
