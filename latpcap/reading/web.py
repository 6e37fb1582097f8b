"""Downloads files over HTTP and HTTPS, with the standard library.

A transfer that ends before its length raises an error; the caller keeps what was read and adds an issue. Redirections
are followed to web servers only, and credentials are sent only to the server for which they were given.

aiohttp (of fsspec), requests and urllib3 would be further dependencies. All three also leave to the caller most of what
this file does: bodies that end early, sizes without HEAD, redirections, and one time limit over all of them.
"""

from __future__ import annotations

import base64
import contextlib
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
"""Time without any data after which a download fails."""
BUDGET_S = 60.0
"""Upper bound on the waiting time of one download: for its beginning, with all redirections, and between its bytes."""
_MIN_BYTES_PER_S = 1024
"""Transfer rate that uses none of the budget. Slower data counts as waiting; a modem was faster."""
_SCHEMES = ("http", "https")
_PRIVATE = ("authorization", "cookie", "proxy-authorization")
"""Headers that are removed when a redirection leads to another server."""
_UNQUOTED = "/:?#[]@!$&'()*+,;=%~"
"""Characters of a URL that are not quoted: delimiters, and "%" of characters that are quoted already."""
_OK = 200
"""HTTP's status of a complete file."""
_NO_HEAD = (403, 405, 501)
"""Statuses of servers that do not support HEAD."""


class State(NamedTuple):
    """Size of a file in bytes (None if unknown), and a number that changes with its content."""

    size: int | None
    version: int


class _Budget:
    """The remaining time to wait for one download; a progress bar shows the time used."""

    def __init__(self) -> None:
        self._left_s = BUDGET_S

    def wait(self, call: Callable[[], _T], size: Callable[[_T], int] = lambda _: 0) -> _T:
        """Return the call's result. Raises TimeoutError if the budget is used up.

        `size` returns the bytes of a result; the time that they may take is not deducted.
        """
        begin, why = time.monotonic(), f"the server was waited for {BUDGET_S:.0f} s in all"
        result = within(call, self._left_s, why, self._tick)
        waited_s = time.monotonic() - begin - size(result) / _MIN_BYTES_PER_S
        self._left_s -= max(waited_s, 0.0)
        if self._left_s <= 0:
            raise TimeoutError(why)
        return result

    def _tick(self, took_s: float) -> None:
        bars.note(f"waiting for the server, {BUDGET_S - self._left_s + took_s:.0f} of {BUDGET_S:.0f} s")


def look(url: str) -> State:
    """Return size and version of a file. Raises FileNotFoundError, or OSError with the server's status.

    The version is a hash of the ETag, or else the time of Last-Modified in ns, or else 0.
    """
    budget = _Budget()
    try:
        response = _request(url, "HEAD", budget)
    except urllib.error.HTTPError as problem:
        if problem.code not in _NO_HEAD:
            raise _os_error(problem) from None
        try:
            response = _request(url, "GET", budget)
        except urllib.error.HTTPError as other:
            raise _os_error(other) from None
    with response:
        size, tag = response.headers.get("Content-Length", ""), response.headers.get("ETag") or ""
        version = int.from_bytes(hashlib.sha256(tag.encode()).digest()[:7], "big") if tag else 0
        if not tag:
            with contextlib.suppress(TypeError, ValueError):  # no Last-Modified, or a malformed one
                version = int(email.utils.parsedate_to_datetime(response.headers["Last-Modified"]).timestamp()) * 10**9
    return State(int(size) if size.isdecimal() else None, version)


class Download(io.RawIOBase):
    """A file object of a URL's content. Raises OSError if it cannot be opened, or ends early."""

    def __init__(self, url: str):
        self._budget = _Budget()
        try:
            self._response = _request(url, "GET", self._budget)
        except urllib.error.HTTPError as problem:
            raise _os_error(problem) from None
        self._left: int | None = self._response.length
        """Bytes until the end; None if the server did not send a length."""
        self._timed_out = False

    def readable(self) -> bool:
        """Return True, as io.RawIOBase requires."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` of the bytes that have arrived; for -1 wait for all bytes."""
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 16), b""))
        if self._left == 0:
            return b""
        try:
            max_bytes = size if self._left is None else min(size, self._left)
            data = self._budget.wait(lambda: bytes(self._response.read1(max_bytes)), len)
        except (http.client.HTTPException, ValueError):
            raise ConnectionError("the connection was closed before the end") from None
        except TimeoutError as problem:
            self._timed_out = True
            reason = str(problem).replace("timed out", f"the server sent nothing for {_SILENCE_S:.0f} s")
            raise TimeoutError(reason) from None
        if self._left is not None:
            self._left -= len(data)
            if not data and size:
                raise ConnectionError(f"the connection was closed {self._left:,} bytes before the end")
        return data

    def close(self) -> None:
        """Close the connection, unless a thread that timed out still reads from it."""
        if not self._timed_out:
            self._response.close()
        super().close()


def _request(url: str, method: str, budget: _Budget) -> Any:
    """Return the server's response, after redirections. Raises HTTPError for its errors, OSError without a response."""
    begin, mark, location = url.partition("://")
    host, slash, path = location.partition("/")
    name, separator, host = host.rpartition("@")
    headers = {"User-Agent": "latpcap", "Accept-Encoding": "identity"}
    if separator:
        secret = urllib.parse.unquote(name).encode()
        headers["Authorization"] = f"Basic {base64.b64encode(secret).decode()}"
    plain = begin + mark + host + slash + urllib.parse.quote(path, safe=_UNQUOTED)
    request = urllib.request.Request(plain, headers=headers, method=method)
    try:
        response = budget.wait(lambda: _opener().open(request, timeout=_SILENCE_S))
        if response.status != _OK:  # no range was requested
            response.close()
            raise ConnectionError(f"the server answered {response.status}, expected the whole file (200)")
        return response
    except urllib.error.HTTPError:
        raise
    except urllib.error.URLError as problem:
        reason = problem.reason
        raise reason if isinstance(reason, OSError) else ConnectionError(str(reason)) from None
    except (http.client.HTTPException, ValueError) as problem:
        raise ConnectionError(f"no answer that HTTP knows: {problem}") from None


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follows redirections to web servers, without the credentials of other servers."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Return the next request. Raises ConnectionError for a redirection that is not followed."""
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if after.scheme.lower() not in _SCHEMES:
            raise ConnectionError(f"the server redirects to {after.scheme}://, which is not followed")
        if "@" in after.netloc:
            newurl = after._replace(netloc=after.netloc.rpartition("@")[2]).geturl()
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and _server(before) != _server(after):
            for name in [name for name in request.headers if name.lower() in _PRIVATE]:
                request.remove_header(name)
        return request


def _server(parts: urllib.parse.SplitResult) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL."""
    scheme = parts.scheme.lower()
    return scheme, (parts.hostname or "").lower(), parts.port or (443 if scheme == "https" else 80)


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for HTTP and HTTPS alone, through the proxies of the environment."""
    director = urllib.request.OpenerDirector()
    kinds = (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        _Redirections,
    )
    for handler_class in kinds:
        director.add_handler(handler_class())
    return director


def _os_error(problem: urllib.error.HTTPError) -> OSError:
    problem.close()
    if problem.code in (404, 410):
        return FileNotFoundError("no such file")
    phrase = http.client.responses.get(problem.code, "")
    return ConnectionError(f"the server answered {problem.code} {phrase}".rstrip())
