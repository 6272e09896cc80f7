"""The programs with the kernels, one module a runtime; a case runs a copy of it named `kernels.py`."""
