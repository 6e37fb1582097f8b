"""`Code`, the numbers of a column of words, each declared beside its word."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """Numbers from 0 on in the order of declaration; each member is declared as its word or sentence."""

    word: str

    def __new__(cls, word: str) -> Code:
        """Return the member with the next number."""
        number = len(cls.__members__)
        code = int.__new__(cls, number)
        code._value_ = number
        code.word = word
        return code

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """Return the words in the order of their numbers."""
        return tuple(code.word for code in cls)


class Grade(Code):
    """How sure a cause is."""

    UNKNOWN = "unknown"
    SUSPECTED = "suspected"
    PROBABLE = "probable"
    PROVEN = "proven"
