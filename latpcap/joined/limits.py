"""The numbers that joining two captures rests on, each with its unit and its source. Reads nothing."""

from __future__ import annotations

VOTES = 2
"""Packets that two connections must share before they count as one (count; two 64-bit keys do not agree by chance)."""
VOTE_SHARE = 0.5
"""Share of the smaller connection's data packets that must agree where numbers and time stamps were rewritten."""
WEAK_VOTES = 4
"""Packets that must agree there (count; each agrees in 16 bits of identification, length and payload hash)."""
SAMPLE = 50_000
"""What the way rewrites is looked for in the connections that have so many packets together (count)."""
KEPT_SHARE = 0.5
"""An identification or time stamp that is the same in so many packets is kept on the way, else rewritten (share)."""
SKEW_MOST = 1e-3
"""The most by which two clocks' rates differ (1,000 ppm: a quartz has 100, a virtual machine's clock 500)."""
SKEW_SIGMAS = 2.0
"""A rate that differs from A's by less than so many of its standard errors is taken as A's (factor)."""
RATE_SECONDS = 5.0
"""A clock's rate is reported from so many seconds on (s; 10 us of jitter are 2 ppm of them)."""
RATE_PPM = 0.5
"""Rates that differ by less count as the same (ppm)."""
SECTION_NS = 120_000_000_000
"""A clock's rate is taken as constant for so long (ns; the temperature of a quartz moves it by 0.1 ppm in minutes)."""
SECTION_LEAST = 8
"""Packets of each direction that a section of the clock needs (count)."""
STEP_WINDOW = 8
"""Packets of each direction before and behind a step that show it (count)."""
STEP_LEAST_NS = 300_000.0
"""The smallest step that is looked for (ns; a scheduler's delays of both directions at once are smaller)."""
STEP_NOISE = 5.0
"""A step is so many times what both directions' least delays otherwise move by together (factor)."""
STEP_ALIKE = 0.35
"""Both directions move by the same at a step, up to this share of it (share)."""
STAMP_NS = 2_000.0
"""Two processors' clocks in one host disagree by no more (ns)."""
HELD_NS = 10_000_000.0
"""An ACK that leaves so long after the data came was held by a timer (ns; the shortest delayed-ACK timers that systems
are set to: 10 ms on Windows, 40 ms on Linux)."""
CONTROLS = 50
"""So many packets that came the other way without one missing show that a capture is complete (count)."""
PAIRED_LEAST = 4
"""Packets that two captures must share to be of the same traffic (count)."""
PROXY_LEAST = 5
"""Requests that must nest before two captures count as both sides of a proxy (count)."""
PROXY_SHARE = 0.8
"""Share of the requests in the time that both captures ran that must nest (share)."""
PROXY_RIVAL = 0.7
"""Another offset that nests this share of them as well makes the match ambiguous (share)."""
PROXY_TRIES = 400
"""Requests of each capture that the offset between two proxied captures is looked for in (count)."""
