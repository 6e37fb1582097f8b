"""Bytes of captures: sources and compression, second readings, display filters, and what is made of packets' bytes."""
