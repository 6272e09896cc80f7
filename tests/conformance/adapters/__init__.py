"""One module a runtime, named after it, with an `ADAPTER` in it."""
