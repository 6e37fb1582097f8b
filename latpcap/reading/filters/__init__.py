"""Wireshark display filters: `grammar` parses the text, `fields` finds a field's values in the tables, `values` what a
literal means for a field, `evaluate` tests all segments at once, `limit` makes the tables of the filtered capture.
"""
