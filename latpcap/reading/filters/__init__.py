"""Which packets does a Wireshark display filter choose?

`grammar.py` reads the text, `fields.py` finds a field's values in the tables, `values.py` what a word means
for a field, `evaluate.py` tests all segments at once, `limit.py` makes the tables of the smaller capture.
"""
