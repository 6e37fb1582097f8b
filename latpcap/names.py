"""How are files called where there is little room? Paths in, short names out; knows nothing of what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def shortest(paths: Sequence[str]) -> list[str]:
    """What is each of these paths called beside the others? Its last part, and the folders before it that it takes to
    tell them apart; the same path has the same name.
    """
    parts = {path: path.replace("\\", "/").rstrip("/").split("/") for path in paths}
    names = {path: words[-1] for path, words in parts.items()}
    deep = 1
    while True:
        many = Counter(names.values())
        alike = [path for path, name in names.items() if many[name] > 1 and len(parts[path]) > deep]
        if not alike:
            return [names[path] for path in paths]
        deep += 1
        for path in alike:
            names[path] = "/".join(parts[path][-deep:])
