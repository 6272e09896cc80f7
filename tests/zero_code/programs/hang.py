"""Compiles a kernel that does not come to an end before standard input does."""

from __future__ import annotations

import sys

import acme

compiler = acme.Compiler()
compiler.compile("outer", lambda: compiler.compile("inner", sys.stdin.read))
