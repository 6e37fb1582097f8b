"""Thresholds of answers: how they are worded, how long they are, and which finding leads.

Those that `user_waits` and `findings` read also decide what is slow and what is a finding; those that
`answers/capture_kind.py` reads decide what a scan or a traceroute is. Shares are of 1. Each value was chosen by reading
the answers to the samples and test cases; no standard has them.
"""

from __future__ import annotations

MAX_LINES = 15
"""Upper bound on the lines of an answer, so that it fits on a screen and in a ticket."""
MIN_SHARE = 0.005
MIN_P99_SHARE = 0.05
"""A cause below both shares, of a server's time and of its time at the 99th percentile, is not a finding."""
MIN_UNNAMED_SHARE = 0.005
"""Smallest share of time without a named cause that is printed; less is a rounding error."""
MIN_CAUSE_SHARE = 0.1
"""Smallest share that is named: of the time, for a cause; of the requests or messages, for a silence or a push."""
MOST_TIME_SHARE = 0.5
"""From this share on a cause takes "most time"; below it, "the largest part"."""
LONGEST_TO_MEDIAN = 2.0
"""The longest wait is named beside the median where it is at least this multiple of it."""
MIN_FELT_MS = 100.0
"""Shortest of a few slow requests that a person notices (Nielsen: 0.1 s)."""
MIN_FELT_SUM_MS = 200.0
"""Shortest sum of their times beyond the round trip that a person notices."""
TYPICAL_SHARE = 0.5
"""From this share of slow requests on, all are called slow."""
OUTLIER_SHARE = 0.01
"""Up to this share of slow requests, or one request, they are called outliers."""
UNREAD_WEIGHT = 0.5
"""Weight of a slow turn of an unknown protocol, relative to a slow request, where servers are ranked."""
MIN_P50_SHARE = 0.1
"""A cause below this share at the median affects few exchanges: its fix is shown at the 99th percentile."""
MAX_SLOPE_ERROR = 0.5
"""Largest distance from 1 at which the slope of gaps over ACK delays shows that gaps follow ACKs."""
MIN_NEXT_SHARE = 0.05
"""Smallest share of the time of a finding that is listed after the first one."""
MAX_EXCLUDED_SHARE = 0.2
"""A suspected cause below this share is named as not the reason."""
SAME_SHARE = 0.9
"""Above this share, a part of a latency or wait is worded as all of it."""
MIN_PATH_OF_WAIT = 0.05
"""Smallest share of a wait at which the path's part of it is printed."""
MIN_PATH_OF_RELEASE = 0.1
"""Smallest share of the time from ACK to release at which the path's part of it is printed."""
MAX_PUSHES = 2
"""Upper bound on the lines about delayed messages that no request asked for."""
MAX_WORDS = 4
"""Upper bound on the methods, and on the statuses, that are named."""
MIN_ANSWERS = 3
"""Fewest responses whose most frequent status may describe the server ("answers with errors")."""
MOST_ANSWERS_SHARE = 0.8
"""Smallest share of the responses whose status describes the server."""
MAX_FIRST_EVENT_RATIO = 1.5
"""The first event of a stream is late where it takes more than this multiple of the time between two later events."""
MIN_PUSHES_PER_REQUEST = 10
"""A server with more pushed messages per request than this is not described by its requests."""
MIN_HALVES = 5
"""Fewest turns of TLS that may be second halves of requests."""
MAX_HALF_GAP_MS = 0.1
"""Longest time from the response before to such a turn."""
NEAR_MS = 0.1
"""Longest round trip to the client of a capture that shows them."""
MIN_HALVES_SHARE = 0.33
"""Smallest share of such turns among all: about every second turn."""
MIN_FRAMES = 100
"""Smallest capture whose most frequent kind of frame is named first, where most frames are not TCP."""
MIN_ERROR_SHARE = 0.5
"""Share of errors that makes them the server's typical response; over HTTP, where pages may be missing, at least
MIN_ANSWERS.
"""
MIN_LOOP_REQUESTS = 5
"""Fewest requests for one page that make a redirect loop; programs follow about 20 redirects."""
MAX_LOOP_GAP_S = 1.0
"""Longest time from redirect to request in such a loop; programs follow at once."""
MIN_SCANNED = 10
"""Fewest ports or hosts that a client tried in a scan."""
MIN_SCAN_SHARE = 0.8
"""Smallest share of connections without data in a scan."""
MIN_SCANNED_BESIDE = 50
"""Fewest attempts without an answer that make a scan in a capture with other traffic."""
MAX_SCAN_PORTS = 3
"""Most ports of such a scan, unless it is on one host."""
MIN_IDLE_S = 1.0
"""Shortest duration of connections without data that are called idle."""
MIN_PATH_OF_SLOW = 0.05
"""Smallest ratio of round trip to slowness threshold at which the round trip is named."""
MIN_LOSS_RATIO = 0.95
"""Loss is named first where its time is at least this share of the largest family's."""
MAX_FAMILIES = 3
"""Upper bound on the lines with the time of a family of causes."""
MIN_NESTED_SHARE = 0.8
"""A server is behind a proxy where this share of its requests lies within requests to the proxy."""
MIN_NESTED_DEVIATIONS = 3
"""Standard deviations by which the nested requests must exceed what chance would nest."""
MAX_LEGS = 2
"""Upper bound on the servers after the first one that have a line."""
MAX_SLOW_SERVERS = 5
"""Upper bound on the lines about servers with slow requests, including the headline's."""
MAX_OTHER_FRAMES = 10_000
"""Upper bound on the frames of a capture without TCP that are read again for their kind; the first ones are enough."""
MIN_SERVERS_EXAMINED = 100
"""Servers for which the main family of causes is computed, at least."""
MAX_NAME_LETTERS = 60
"""Upper bound on the letters of a request's target in a sentence."""
MIN_FAILED_SHARE = 0.1
"""Minimum share of the actions that fail for which failures rank before waits; rarer ones rank by their time."""
PATH_WEIGHT = 0.25
"""Weight of the path's round trips, relative to other waits."""
MIN_EXCEEDED_SHARE = 0.5
"""Minimum share of "time exceeded" among the answers to pings for which the pings are a traceroute."""
