"""Which TLS handshakes failed, and why? Exchanges in, findings out: an alert in the clear says it (RFC 8446 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from latpcap import arrays, words
from latpcap.account.totals import endpoint
from latpcap.findings.hung import on_stream
from latpcap.findings.schema import Finding
from latpcap.limits import LIMITS

if TYPE_CHECKING:
    import pyarrow as pa

ALERT = " alert "
HINTS = {
    "trust": ("unknown_ca", "bad_certificate", "certificate_unknown", "unsupported_certificate", "certificate_revoked"),
    "expired": ("certificate_expired",),
    "versions": ("handshake_failure", "protocol_version", "insufficient_security", "inappropriate_fallback"),
    "name": ("no_application_protocol",),
    "client": ("certificate_required", "access_denied"),
}
"""What mends which alerts."""


def alerts(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Handshakes that an alert ended; by server and alert."""
    import numpy as np

    exchanges, streams = tables["exchanges"], tables["streams"]
    code, texts = arrays.codes(exchanges, "status_text")
    places = [place for place, text in enumerate(texts) if text and ALERT in text]
    if not places:
        return []
    shakes = _is(exchanges, "method", "handshake")
    rows = np.flatnonzero(np.isin(code, places) & shakes)
    stream = arrays.numbers(exchanges, "stream")
    names = ("server", "server_port", "client")
    ends = arrays.looked_up(streams, "stream", stream[rows], names)
    every = arrays.looked_up(streams, "stream", stream[np.flatnonzero(shakes)], names)
    groups: dict[tuple[str, int, str], list[tuple[int, str]]] = defaultdict(list)
    for row, (server, port, client) in zip(rows.tolist(), ends, strict=True):
        groups[server, port, texts[int(code[row])]].append((row, client))
    found = []
    for (server, port, text), mine in groups.items():
        side, _, alert = text.partition(ALERT)
        columns = ["exchange", "stream", "request_first_frame", "start", "end"]
        [first] = exchanges.select(columns).slice(mine[0][0], 1).to_pylist()
        kind = next((hint for hint, known in HINTS.items() if alert in known), "other")
        if kind == "trust" and side == "server":
            kind = "client"
        of = sum(1 for s, p, _ in every if (s, p) == (server, port))
        start, end = (arrays.numbers(exchanges, c)[[row for row, _ in mine]] for c in ("start", "end"))
        took = (end - start) / 1e6
        values = {
            "server": endpoint(server, port), "n": len(mine), "of": of, "side": side, "alert": alert,
            "frame": first["request_first_frame"], "hint": words.say(f"alert_{kind}"),
        }  # fmt: skip
        found.append(
            Finding(
                kind="wait", server=server, server_port=port, cause="tls_alert", owner=side,
                clients=len({client for _, client in mine}), exchanges=len(mine), of_exchanges=of,
                total_ms=float(took.sum()), max_ms=float(took.max()), grade="proven",
                confidence=LIMITS["alert_confidence"], worst_exchange=first["exchange"], worst_stream=first["stream"],
                worst_frames=(first["request_first_frame"],), filter=on_stream(first["stream"]), harm="never",
                sentence="tls_alert", values=values,
            )
        )  # fmt: skip
    return found


def _is(rows: pa.Table, column: str, word: str) -> arrays.Array:
    code, words_ = arrays.codes(rows, column)
    found: arrays.Array = code == (words_.index(word) if word in words_ else -2)
    return found
