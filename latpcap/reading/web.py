"""What does a web server hold under this address? Bytes by http and https, with the standard library alone.

Gives a download as a file object, and size and version without one. A transfer that ends before its length is an
error here: rows up to the break are kept, with an issue. A redirection leads to web servers alone, and a
password goes to the server that it was given for. Knows nothing of captures.

fsspec's http needs aiohttp, and requests and urllib3 would be dependencies as well; all three leave to the caller what
most of this file is: a body that ends early, sizes without HEAD, redirections, and a time limit over all of them.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import http.client
import io
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from latpcap import bars
from latpcap.reading.timeouts import within

_T = TypeVar("_T")
_SILENCE_S = 20.0
"""A server that sends nothing for so long is given up."""
BUDGET_S = 60.0
"""So long one download may wait in all: for its beginning, with all redirections, and between its bytes."""
_LEAST_BYTES_S = 1024
"""What comes slower than this is waited for; a modem was quicker."""
_SCHEMES = ("http", "https")
_PRIVATE = ("authorization", "cookie", "proxy-authorization")
"""Headers that are meant for one server."""
_UNQUOTED = "/:?#[]@!$&'()*+,;=%~"
"""Characters of a URL that have a meaning, or stand for others already."""
_WHOLE = 200
_NO_HEAD = (403, 405, 501)
"""What servers answer that refuse to tell a length alone."""


class State(NamedTuple):
    """What lies there? Bytes (None where the server does not tell), and a number that changes with the content."""

    size: int | None
    version: int


class _Budget:
    """The time that is left to wait for one download; a bar shows how much is gone."""

    def __init__(self) -> None:
        self._left_s = BUDGET_S

    def wait(self, call: Callable[[], _T], size: Callable[[_T], int] = lambda _: 0) -> _T:
        """What the call gives, which brings so many bytes. TimeoutError where nothing is left."""
        begin, why = time.monotonic(), f"the server was waited for {BUDGET_S:.0f} s in all"
        found = within(call, self._left_s, why, self._tick)
        took = time.monotonic() - begin - size(found) / _LEAST_BYTES_S
        self._left_s -= max(took, 0.0)
        if self._left_s <= 0:
            raise TimeoutError(why)
        return found

    def _tick(self, took_s: float) -> None:
        bars.note(f"waiting for the server, {BUDGET_S - self._left_s + took_s:.0f} of {BUDGET_S:.0f} s")


def look(url: str) -> State:
    """How long is it, and which version? FileNotFoundError, or OSError with the server's answer."""
    budget = _Budget()
    try:
        answer = _asked(url, "HEAD", budget)
    except urllib.error.HTTPError as problem:
        if problem.code not in _NO_HEAD:
            raise _refused(problem) from None
        try:
            answer = _asked(url, "GET", budget)
        except urllib.error.HTTPError as other:
            raise _refused(other) from None
    with answer:
        headers = answer.headers
        size = headers.get("Content-Length", "")
        state = headers.get("ETag") or ""
        changed = email.utils.parsedate_to_datetime(headers["Last-Modified"]) if _dated(headers) else None
    if changed is not None and not state:
        return State(int(size) if size.isdecimal() else None, int(changed.timestamp()) * 10**9)
    digest = int.from_bytes(hashlib.sha256(state.encode()).digest()[:7], "big") if state else 0
    return State(int(size) if size.isdecimal() else None, digest)


class Download(io.RawIOBase):
    """The bytes behind a URL, as they come. OSError where it cannot be opened, or breaks off."""

    def __init__(self, url: str):
        self._budget = _Budget()
        try:
            self.answer = _asked(url, "GET", self._budget)
        except urllib.error.HTTPError as problem:
            raise _refused(problem) from None
        self._left, self._given_up = self.answer.length, False

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """What has arrived, at most so many bytes; all of it for -1."""
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 16), b""))
        if self._left == 0:
            return b""
        try:
            most = size if self._left is None else min(size, self._left)
            data = self._budget.wait(lambda: bytes(self.answer.read1(most)), len)
        except (http.client.HTTPException, ValueError):
            raise ConnectionError("the connection was closed before the end") from None
        except TimeoutError as problem:
            self._given_up = True
            words = str(problem).replace("timed out", f"the server sent nothing for {_SILENCE_S:.0f} s")
            raise TimeoutError(words) from None
        if self._left is not None:
            self._left -= len(data)
            if not data and size:
                raise ConnectionError(f"the connection was closed {self._left:,} bytes before the end")
        return data

    def close(self) -> None:
        """Ends the connection; one that a thread still waits for ends with it."""
        if not self._given_up:
            self.answer.close()
        super().close()


def _asked(url: str, method: str, budget: _Budget) -> Any:
    """The server's answer, redirections followed. HTTPError for a refusal, OSError where nobody answers."""
    begin, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    name, at, host = host.rpartition("@")
    headers = {"User-Agent": "latpcap", "Accept-Encoding": "identity"}
    if at:
        secret = urllib.parse.unquote(name).encode()
        headers["Authorization"] = f"Basic {base64.b64encode(secret).decode()}"
    plain = begin + mark + host + slash + urllib.parse.quote(path, safe=_UNQUOTED)
    request = urllib.request.Request(plain, headers=headers, method=method)
    try:
        answer = budget.wait(lambda: _opener().open(request, timeout=_SILENCE_S))
        if answer.status != _WHOLE:  # no range was requested
            answer.close()
            raise ConnectionError(f"the server answered {answer.status}, expected the whole file (200)")
        return answer
    except urllib.error.HTTPError:
        raise
    except urllib.error.URLError as problem:
        reason = problem.reason
        raise reason if isinstance(reason, OSError) else ConnectionError(str(reason)) from None
    except (http.client.HTTPException, ValueError) as problem:
        raise ConnectionError(f"no answer that HTTP knows: {problem}") from None


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follows to web servers, each time with what the next one may know."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The request to the next place. ConnectionError for one that is not followed."""
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if after.scheme.lower() not in _SCHEMES:
            raise ConnectionError(f"the server redirects to {after.scheme}://, which is not followed")
        if "@" in after.netloc:
            newurl = after._replace(netloc=after.netloc.rpartition("@")[2]).geturl()
        found = super().redirect_request(req, fp, code, msg, headers, newurl)
        if found is not None and _server(before) != _server(after):
            for name in [name for name in found.headers if name.lower() in _PRIVATE]:
                found.remove_header(name)
        return found


def _server(parts: urllib.parse.SplitResult) -> tuple[str, str, int]:
    scheme = parts.scheme.lower()
    return scheme, (parts.hostname or "").lower(), parts.port or (443 if scheme == "https" else 80)


def _opener() -> urllib.request.OpenerDirector:
    """Speaks HTTP and HTTPS, through the proxies of the environment, and nothing else."""
    found = urllib.request.OpenerDirector()
    kinds = (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        _Redirections,
    )
    for kind in kinds:
        found.add_handler(kind())
    return found


def _refused(problem: urllib.error.HTTPError) -> OSError:
    problem.close()
    if problem.code in (404, 410):
        return FileNotFoundError("no such file")
    words = http.client.responses.get(problem.code, "")
    return ConnectionError(f"the server answered {problem.code} {words}".rstrip())


def _dated(headers: Any) -> bool:
    try:
        return bool(email.utils.parsedate_to_datetime(headers["Last-Modified"]))
    except (TypeError, ValueError):
        return False
