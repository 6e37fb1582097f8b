"""Many captures at once: found, analysed and written as a Parquet data set. The way in is public.py.

places ─ model ─ output         values, where bytes lie, where results go
inputs ─ series ─ plan          which captures, which files are one, what is left to do
rotation ─ tablefile ─ worker   one capture from bytes to Parquet
progress ─ run ─ batch          all of them, on threads or on a cluster
"""
