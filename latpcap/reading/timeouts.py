"""Call a function with a time limit, in a thread that is abandoned when the limit is over."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

_TICK_S = 1.0
"""Interval at which `tick` is called."""
_T = TypeVar("_T")


def within(call: Callable[[], _T], seconds: float, why: str, tick: Callable[[float], None] | None = None) -> _T:
    """Return the result of `call`, or raise TimeoutError(why) after `seconds`; its thread then goes on alone.

    Signals are handled meanwhile. `tick` is called about once a second with the seconds that have passed.
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
            result, problem = answers.get(timeout=max(min(_TICK_S, seconds - took), 0.001))
            break
        except queue.Empty:
            took = time.monotonic() - begin
            if took >= seconds:
                raise TimeoutError(why) from None
            if tick is not None:
                tick(took)
    if problem is not None:
        raise problem
    return result  # type: ignore[return-value]
