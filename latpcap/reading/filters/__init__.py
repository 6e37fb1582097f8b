"""Wireshark display filters.

`grammar` parses the text, `fields` reads the values of each field from the tables or the frames, `values` converts
literals, `evaluate` tests all frames at once, and `limit` reduces the capture's tables to the rows that pass.
"""
