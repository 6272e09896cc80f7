"""A small runtime that compiles: the program that the core's tests instrument."""

from acme.compiler import Compiler, build

__all__ = ["Compiler", "build"]
