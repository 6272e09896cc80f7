"""Looks at an installation: what would be recorded here, what would not, and what to do about it.

Nothing is changed. Each module looks at one area and yields findings; `examination` goes through all.
"""
