"""What is worth a line of an answer, and how it is worded; MIN_NESTED_SHARE, SCAN_* and MIN_CAUSE_SHARE also decide
what a proxy or a scan is and which finding leads, the others only how much is printed.

Shares are of 1. Each was chosen by reading the answers of the samples and cases; no standard knows them.
"""

from __future__ import annotations

MAX_LINES = 15
"""Lines of an answer: they fit a screen and a ticket."""
MIN_SHARE = 0.005
MIN_P99_SHARE = 0.05
"""Causes below both shares, of a server's time and of its 99th percentile, are no finding: nobody waits for them."""
MIN_UNNAMED_SHARE = 0.005
"""A share of time without a named cause is printed from here on; below it is rounding."""
MIN_CAUSE_SHARE = 0.1
"""The smallest share worth naming: of the time, for a cause; of the requests or messages, for a silence or a push."""
MOST_TIME_SHARE = 0.5
"""From this share on a cause takes "most time", below it "the largest part"."""
LONGEST_TO_MEDIAN = 2.0
"""A longest wait so many times the median is named beside it."""
MIN_FELT_MS, MIN_FELT_SUM_MS = 100.0, 200.0
"""A few slow requests none of which took as long as the first, and all of which took less than the second beyond the
path, are no wait that a person notices (Nielsen: 0.1 s)."""
TYPICAL_SHARE, OUTLIER_SHARE = 0.5, 0.01
"""From the first share of slow requests on all are called slow; up to the second, or one request, they are outliers."""
UNREAD_WEIGHT = 0.5
"""What a slow turn of an unknown protocol counts beside a slow request where servers are put in order."""
MIN_P50_SHARE = 0.1
"""A cause below this share of the median is one of some exchanges: its fix is shown at the 99th percentile."""
MAX_SLOPE_ERROR = 0.5
"""A slope of gaps against their ACKs as near as this to 1 follows them; beyond, the gaps vary too little."""
MIN_NEXT_SHARE = 0.05
"""Further findings are listed from this share of the time on."""
MAX_EXCLUDED_SHARE = 0.2
"""A suspect that took less than this share is named as not the reason."""
SAME_SHARE = 0.9
"""What is left of a latency, or shown of a wait, above this share is the same in words."""
MIN_PATH_OF_WAIT, MIN_PATH_OF_RELEASE = 0.05, 0.1
"""The path's share of a wait, and of a release, is printed from here on."""
MAX_PUSHES = 2
"""So many findings about unrequested messages that waited have a line."""
MAX_WORDS = 4
"""So many methods, and statuses, are named."""
MIN_ANSWERS, MOST_ANSWERS_SHARE = 3, 0.8
"""From so many answers on, and this share of them, one status is the server's answer."""
MAX_FIRST_EVENT_RATIO = 1.5
"""The first piece of a stream of events is late where it takes more than so many times the time between two others."""
MIN_PUSHES_PER_REQUEST = 10
"""A server that pushed so many messages for each request is not known by its requests."""
MIN_HALVES, MAX_HALF_GAP_MS, NEAR_MS = 5, 0.1, 0.1
"""Turns that may be second halves of requests: so many, each so soon after the answer before, captured so near to the
client."""
MIN_HALVES_SHARE = 0.33
"""And this share of all turns: about every second one."""
MIN_FRAMES = 100
"""Of so many frames and more what most are is named first, where that is no TCP."""
MIN_ERROR_SHARE = 0.5
"""From this share of errors on they are its answer; of HTTP, where pages may be missing, from MIN_ANSWERS on."""
MIN_LOOP_REQUESTS, MAX_LOOP_GAP_S = 5, 1.0
"""Asked for so often, and mostly again so soon after the redirect, a page is in a loop: programs follow 20 times and
more, and at once."""
MIN_SCANNED, MIN_SCAN_SHARE = 10, 0.8
"""A client that tried so many ports or hosts, and this share of the capture's connections carry no data, scans."""
MIN_SCANNED_BESIDE, MAX_SCAN_PORTS = 50, 3
"""Beside other traffic so many that gave no answer make a scan, on one host, or on so few ports."""
MIN_IDLE_S = 1.0
"""Connections without data are called idle from so many seconds on."""
MIN_PATH_OF_SLOW = 0.05
"""The path's round trip is named beside the threshold from this share of it on."""
MIN_LOSS_RATIO = 0.95
"""Loss is named first where it took at least this share of the longest family's time."""
MAX_FAMILIES = 3
"""So many families of causes are added up in lines of their own."""
MIN_NESTED_SHARE = 0.8
"""A server stands behind another one whose host asks it, where this share of its requests lies inside that one's."""
MIN_NESTED_DEVIATIONS = 3
"""And more of them than luck would put there, by so many of its standard deviations."""
MAX_LEGS = 2
"""So many servers behind the first one have a line."""
MAX_SLOW_SERVERS = 5
"""So many servers with slow requests have a line each, the headline's own among them."""
MAX_OTHER_FRAMES = 10_000
"""So many frames of a capture without TCP are looked at once more: what is there shows early."""
MIN_SERVERS_EXAMINED = 100
"""Of so many servers the main family is looked for."""
MAX_NAME_LETTERS = 60
"""A request's target is cut to so many characters in a sentence."""
