"""One suite for every runtime: `adapter.py` says what a runtime must bring to be run by it."""
