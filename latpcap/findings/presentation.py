"""What is worth a line of an answer, and how it is said: no verdict rests on these, only how much is printed.

Shares are of 1. Each was chosen by reading the answers of the samples and cases; no standard knows them.
"""

from __future__ import annotations

MOST_LINES = 15
"""Lines of an answer: they fit a screen and a ticket."""
LEAST_SHARE = 0.005
LEAST_P99_SHARE = 0.05
"""Causes below both shares, of a server's time and of its 99th percentile, are no finding: nobody waits for them."""
NOTHING = 0.005
"""A share of time without a named cause is said from here on; below it is rounding."""
HOLDS_UP = 0.1
"""A cause beside the path's round trip is named in the first sentence from this share of the time on."""
MOST_TIME = 0.5
"""From this share on a cause takes "most time", below it "the largest part"."""
FAST_MS = 2.0
"""A server whose 99th percentile is below this answers fast: nothing to mend, in ms."""
RARE_OF_P50, RARE_OF_EXCHANGES = 0.1, 0.2
"""A cause below both shares, of the median and of the exchanges, is one of a few exchanges."""
SLOWEST_OF_P99, SLOWEST_TIMES = 0.3, 1.5
"""The slowest exchanges get a line where a cause takes this share of the 99th percentile, so many times the first's."""
NEXT_SHARE = 0.05
"""Further findings are listed from this share of the time on."""
NOT_SHARE = 0.2
"""A suspect that took less than this share is said not to be the reason."""
SAME = 0.9
"""What is left of a latency, or shown of a wait, above this share is the same in words."""
PATH_OF_WAIT, PATH_OF_RELEASE = 0.05, 0.1
"""The path's share of a wait, and of a release, is said from here on."""
UNSEEN = "these clients ask again at once, and what the server could serve then was not seen"
"""What a closed loop leaves open where its server never was the limit."""
