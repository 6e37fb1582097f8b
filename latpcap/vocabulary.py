"""What does each cause of latency mean, who owns it, what mends it, and which colour is it?

Reads nothing; gives the one list of causes that every table, filter, legend and report takes its words and
colours from; knows nothing of captures, tables or pictures. Names and their order are those of the `causes`
table.
"""

from __future__ import annotations

from dataclasses import dataclass

PROVEN = 0.9
"""Confidence from which a verdict is called proven; below it, probable."""

SUSPECTED = 0.5
"""Confidence that one direction alone gives at most; up to it a verdict is only suspected."""

STALL = "nagle + delayed_ack"
"""Nagle's wait together with the delayed ACKs inside it: one finding with two owners."""

OWNERS: dict[str, str] = {
    "client": "the side that opened the connection",
    "server": "the side that accepted the connection",
    "network": "the path between the two",
    "capture": "the capture itself: it does not hold what would be needed to tell",
}
"""Who can own a piece of latency: the values of the `owner` column of the `causes` table, each with its
meaning."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What is this cause of latency?

    `owner` is a key of `OWNERS`, or "sender" / "receiver" (of the bytes that had to wait) where only the
    stream tells which side that is: the `owner` column of the `causes` table holds the answer. `fix` is None
    where no setting of either side would help. `colour` is "#rrggbb".
    """

    name: str
    meaning: str
    owner: str
    fix: str | None
    colour: str


# Colours: families by hue, members by lightness (Okabe-Ito's vermillion and blue for nagle and delayed_ack,
# Paul Tol's muted set, darkened, for the rest). Each has a contrast of at least 3:1 on white (WCAG 2.1,
# graphics), so that it prints. Eighteen colours cannot all be told apart by everybody: pictures write the
# name beside the colour.
_ALL = (
    Cause(
        "network",
        "the path's round trip, as far as its minimum goes",
        "network",
        None,
        "#2A8C82",
    ),
    Cause(
        "queueing",
        "round trip above the path's minimum, when the packets say that it is the path",
        "network",
        "Shorten the queue at the bottleneck: fq_codel or CAKE there, or pacing (fq, BBR) at the sender.",
        "#117733",
    ),
    Cause(
        "bandwidth",
        "bytes leaving as fast as the line or the pacing lets them",
        "network",
        "Send fewer bytes (compress, cache) or use a faster line.",
        "#77801A",
    ),
    Cause(
        "server_think",
        "the server program had not produced the next byte, and nothing held it back",
        "server",
        "Profile the server for this request; TCP is not what is slow.",
        "#AA4499",
    ),
    Cause(
        "client_think",
        "the client program had not produced the next byte, and nothing held it back",
        "client",
        "Profile the client; the server and TCP were waiting for it.",
        "#C0679A",
    ),
    Cause(
        "nagle",
        "a small segment held while an earlier small one is unacknowledged",
        "sender",
        "Set TCP_NODELAY on the sending socket, or hand head and body to the kernel in one write (writev).",
        "#D55E00",
    ),
    Cause(
        "delayed_ack",
        "the receiver sits on an ACK that somebody waits for",
        "receiver",
        "Free the sender from waiting for it (TCP_NODELAY there), or set TCP_QUICKACK after each read.",
        "#0072B2",
    ),
    Cause(
        "cork",
        "a tail held by TCP_CORK or MSG_MORE until its timer, or an ACK",
        "sender",
        "Clear TCP_CORK after the last write, and do not set MSG_MORE on it.",
        "#A6761D",
    ),
    Cause(
        "cwnd",
        "the sender's congestion window lets nothing more out until an ACK comes",
        "sender",
        "Keep connections open and warm (tcp_slow_start_after_idle=0), or raise the route's initcwnd.",
        "#6A5ACD",
    ),
    Cause(
        "receive_window",
        "the receiver's window has no room for the next segment",
        "receiver",
        "Raise the receiver's buffer (tcp_rmem, no small SO_RCVBUF) and let its program read sooner.",
        "#332288",
    ),
    Cause(
        "zero_window",
        "the receiver announced a window of 0: its program does not read",
        "receiver",
        "Let the receiving program read sooner; a bigger buffer only moves the moment.",
        "#14104A",
    ),
    Cause(
        "fast_retransmit",
        "a lost segment, repaired after duplicate or selective ACKs",
        "network",
        "Find where the path drops packets (queue, policer, cable); the repair itself works.",
        "#CC6677",
    ),
    Cause(
        "tlp",
        "a lost tail, repaired by a tail loss probe",
        "network",
        "Find where the path drops packets; lost tails cost a probe timer of about two round trips.",
        "#B03A5B",
    ),
    Cause(
        "rto",
        "a lost segment, repaired only by the retransmission timer",
        "network",
        "Find where the path drops packets; with SACK and tail loss probes on, fewer losses need the timer.",
        "#882255",
    ),
    Cause(
        "syn_rto",
        "a lost SYN or SYN, ACK, repaired by its timer of 1 s or more",
        "network",
        "Look for a full accept queue (backlog, somaxconn) or a firewall dropping SYNs; reuse connections.",
        "#561035",
    ),
    Cause(
        "reordering",
        "segments overtaken on the path, waited for until they came",
        "network",
        "Find where one flow is split over several links (per-packet balancing); hash by flow there.",
        "#8C6D5E",
    ),
    Cause(
        "capture_gap",
        "the capture lacks packets that were on the wire here",
        "capture",
        "Capture again with a bigger buffer (tcpdump -B), a shorter snap length (-s) or a narrower filter.",
        "#4D4D4D",
    ),
    Cause(
        "unknown",
        "the capture cannot say",
        "capture",
        None,
        "#7A7A7A",
    ),
)

CAUSES: dict[str, Cause] = {cause.name: cause for cause in _ALL}
"""Every cause by its name, in the order of the `causes` table."""

SERIES = ("#0072B2", "#D55E00", "#117733", "#AA4499", "#A6761D", "#332288", "#2A8C82", "#4D4D4D")
"""Colours for things that are no causes (captures, groups, a sender's segments), in the order to take them: each
has a contrast of at least 3:1 on white, and neighbours differ in lightness or in blue and yellow, so that nobody needs
to tell red from green."""
