"""The thresholds of joining two captures, each with its unit and its reason."""

from __future__ import annotations

VOTES = 2
"""Packets that two connections must share to be the same connection: two 64-bit keys do not agree by chance."""
VOTE_SHARE = 0.5
"""Share of the smaller connection's data packets that must agree where numbers and time stamps were rewritten."""
WEAK_VOTES = 4
"""Packets that must agree where numbers and time stamps were rewritten. Each agrees in 16 bits of identification, in
length and in a hash of the payload.
"""
SAMPLE = 50_000
"""Packets after which no further connection is examined for fields that the path rewrites."""
KEPT_SHARE = 0.5
"""Share of packets with an unchanged field from which the path counts as keeping the field."""
MAX_SKEW = 1e-3
"""Upper bound on the difference of two clocks' rates: 1,000 ppm. A quartz has 100, a virtual machine 500."""
SKEW_SIGMAS = 2.0
"""Standard errors by which B's rate must differ from A's; below, both rates are taken as equal."""
RATE_SECONDS = 5.0
"""Shortest section of a clock, in s, whose rate is reported: 10 us of jitter are 2 ppm of 5 s."""
RATE_PPM = 0.5
"""Difference of two rates, in ppm, below which they are reported as equal."""
SECTION_NS = 120_000_000_000
"""Longest time, in ns, for which a clock's rate is constant: temperature moves a quartz by 0.1 ppm in minutes."""
MIN_SECTION_PACKETS = 8
"""Packets of each direction that a section of the clock needs."""
STEP_WINDOW = 8
"""Packets of each direction, before and after a step of the clock, whose least delays are compared."""
MIN_STEP_NS = 300_000.0
"""Smallest step of a clock, in ns: a scheduler delays both directions at once by less."""
STEP_NOISE = 5.0
"""Factor by which a step exceeds the usual movement of both directions' least delays."""
STEP_ALIKE = 0.35
"""Share of a step by which the two directions may differ in how far they move."""
STAMP_NS = 2_000.0
"""Upper bound, in ns, on the disagreement of two processors' clocks in one host."""
HELD_NS = 10_000_000.0
"""Time in ns from the data to its ACK from which a timer held the ACK. The shortest delayed-ACK timers that systems can
be set to are 10 ms on Windows and 40 ms on Linux.
"""
CONTROLS = 50
"""Packets of one direction, all of them seen at both points, that show a capture to be complete."""
MIN_PAIRED = 4
"""Packets that two captures must share to be of the same traffic."""
MIN_PROXY_REQUESTS = 5
"""Requests that must nest before two captures count as the two sides of a proxy."""
PROXY_SHARE = 0.8
"""Share that must nest of the requests in the time that both captures cover."""
PROXY_RIVAL = 0.7
"""Share of the nested requests that another clock offset may nest too before the match is ambiguous."""
PROXY_TRIES = 400
"""Requests of each capture from which the clock offset across a proxy is estimated."""
LASTING_PACKETS = 4096
"""Packets (or all to the end) for which both floors must stay moved after a step."""
MIN_BLOCK_PACKETS = 3
"""Packets of each direction that a block needs to be compared."""
HOPS_DIVISOR = 20
"""A number of hops is reported if at least one packet in 20 has it."""
PART_DIVISOR = 2000
"""A part of at most 1/2000 (0.05 %) of a latency is left out of its line."""
