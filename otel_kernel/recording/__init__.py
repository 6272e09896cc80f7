"""The recording: one SQLite file with every trip of one host's runs, open to plain SQL.

`schema` says what its tables and columns mean, `writer` is the sink that fills it, `reader` gives the trips
back, `file` makes and checks it, `pruning` keeps it small. Every error is a `RecordingError` of one line.
"""
