"""How long may somebody else's server take? Waits for a call, and gives it up; knows nothing of what is called."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

_TICK_S = 1.0
_T = TypeVar("_T")


def within(call: Callable[[], _T], seconds: float, why: str, tick: Callable[[float], None] | None = None) -> _T:
    """What the call gives. TimeoutError with these words where that takes too long: the thread that waits then is left
    to itself. Signals are handled meanwhile; `tick` is given the seconds that it takes, about once a second.
    """
    answers: queue.SimpleQueue[tuple[_T | None, BaseException | None]] = queue.SimpleQueue()

    def waits() -> None:
        try:
            answers.put((call(), None))
        except BaseException as problem:
            answers.put((None, problem))

    begin = time.monotonic()
    threading.Thread(target=waits, daemon=True).start()
    while True:
        took = time.monotonic() - begin
        try:
            found, problem = answers.get(timeout=max(min(_TICK_S, seconds - took), 0.001))
            break
        except queue.Empty:
            took = time.monotonic() - begin
            if took >= seconds:
                raise TimeoutError(why) from None
            if tick is not None:
                tick(took)
    if problem is not None:
        raise problem
    return found  # type: ignore[return-value]
