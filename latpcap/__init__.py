"""Why was each request in this packet capture slow, who waited for whom, and which frames show it?

    import latpcap as lp
    cap = lp.read("nginx-latency.pcap")
    cap.why()

`Capture` holds the tables (`events`, `streams`, `exchanges`, `causes`, `evidence`, `issues`) as pandas data
frames, and `arrow(name)` as pyarrow tables; `stream(n)` is what Wireshark shows for `tcp.stream eq n`.
"""

from importlib.metadata import version as _version

from latpcap.archive.batch import batch
from latpcap.capture import Capture, read
from latpcap.errors import CaptureError, Interrupted, LatpcapError, OutputError
from latpcap.stream import Stream

__all__ = ["Capture", "CaptureError", "Interrupted", "LatpcapError", "OutputError", "Stream", "batch", "read"]
__version__ = _version("latpcap")
