"""Writes the words of the tables into docs/causes.md, and checks that they are the core's.

    words.py [--check]

The lists stand between two comments in the page; everything else of it is written by hand. Reads latpcap.vocabulary.
"""

import re
import sys
from pathlib import Path

from latpcap import vocabulary

PAGE = Path(__file__).resolve().parents[1] / "docs" / "causes.md"
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
    if "--check" in sys.argv:
        return 0 if new == page else f"{PAGE}: its words are not the core's; .ci/words.py writes them"
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
