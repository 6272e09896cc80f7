"""Feeds a decoder what a coverage-guided fuzzer makes up: `python -m fuzz NAME [OPTIONS OF LIBFUZZER]`.

Run by hand, in an environment that has atheris, with `tests` and the checkout on PYTHONPATH:

    python -m fuzz line -runs=1000000 -rss_limit_mb=1024 -timeout=10

It starts from the corpus of the decoder beside this file, and keeps there what finds new ways.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

atheris: Any = importlib.import_module("atheris")

with atheris.instrument_imports(include=["otel_kernel"]):
    from fuzz.decoders import DECODERS

name, *options = sys.argv[1:]
corpus = Path(__file__).parent / "corpus" / name
atheris.Setup([sys.argv[0], str(corpus), "-max_len=4096", *options], DECODERS[name])
atheris.Fuzz()
