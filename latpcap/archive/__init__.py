"""Analyses many captures: finds them, reads them, writes a Parquet data set, reads it. `public` has the entry points.

locations ─ model ─ output                    values, where bytes are, where results go
inputs ─ series ─ packs ─ plan             which captures, which are one, which share files, what is left to do
rotation ─ packfile ─ worker               a pack of captures, from bytes to Parquet
progress ─ run                             all packs, on threads or on a cluster
checked ─ dataset ─ archive_view ─ results stored bytes compared with checksums, tables, many captures as one
"""
