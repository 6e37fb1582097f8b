"""Many captures at once: found, analysed and written as a Parquet data set. The way in is public.py.

places ─ model ─ output                    values, where bytes lie, where results go
inputs ─ series ─ packs ─ plan ─ clear     which captures, which are one, which share files, what is left, what goes
rotation ─ packfile ─ worker               a pack of captures from bytes to Parquet
progress ─ run                             all of them, on threads or on a cluster
checked ─ dataset ─ union ─ results        stored bytes held against their checksums, tables, many captures as one
"""
