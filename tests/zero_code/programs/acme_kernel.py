"""Compiles a kernel of acme, at the level that the first argument names, if there is one."""

from __future__ import annotations

import sys

import acme

if len(sys.argv) > 1:
    from zero_code.programs.acme_plugin import PluginInstrumentor

    PluginInstrumentor().instrument(level=sys.argv[1])

acme.Compiler().compile("kernel", source="the text of the kernel")
