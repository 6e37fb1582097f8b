"""The HTML report of a capture, of the results of a batch, or of a comparison: one file that fetches nothing."""

from latpcap.page.report import EXCHANGES, Subject, of_capture, of_comparison, of_parts, of_results, write

__all__ = ["EXCHANGES", "Subject", "of_capture", "of_comparison", "of_parts", "of_results", "write"]
