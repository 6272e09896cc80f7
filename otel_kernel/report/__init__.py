"""Reports: SQL on a recording, computed by `summary`, written by `render` and `as_json`.

An INPUT of another kind is first imported into a temporary recording by `opening`, so that there is one way
to compute a report.
"""
