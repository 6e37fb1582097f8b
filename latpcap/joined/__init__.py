"""Captures of the same traffic on one clock: where between two points the time went."""

from latpcap.joined.joined import TABLES, Joined
from latpcap.joined.joining import join

__all__ = ["TABLES", "Joined", "join"]
