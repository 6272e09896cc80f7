"""What stands around a graph: the Python frame that Dynamo compiles, and what AOTAutograd knows of it."""

from __future__ import annotations

import weakref
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any

from torch._guards import CompileContext, TracingContext
from torch.nn import Module

from otel_kernel import semconv
from otel_kernel.beside import SideSpan, start_parent
from otel_kernel.records import Abandoned, AttributeValue
from otel_kernel.shapes import Call
from otel_kernel.trip import error_type

RUNTIME = "torch"
FRAME_LAYER = "torch.dynamo"
AUTOGRAD_LAYER = "torch.aot_autograd"


class Frame:
    """One round of compiling one Python frame, and the lookup of its graph in AOTAutograd's store."""

    def __init__(self, name: str, code: Any, module: str, *, is_whole: bool) -> None:
        self.name = name
        self.is_whole = is_whole
        """Whether the program asked for one graph, so that what Dynamo cannot do is its own error."""
        self.reason: str | None = None
        """Why an earlier round of it did not hold."""
        self.autograd_key: str | None = None
        self.code: dict[str, AttributeValue] = {}
        if code is not None:
            self.code = {
                semconv.CODE_FUNCTION_NAME: f"{module}.{_qualname(code)}",
                semconv.CODE_FILE_PATH: code.co_filename,
                semconv.CODE_LINE_NUMBER: code.co_firstlineno,
            }


_frame: ContextVar[Frame | None] = ContextVar("otel_kernel_torch_frame", default=None)

_frames: weakref.WeakKeyDictionary[Any, Frame] = weakref.WeakKeyDictionary()
"""By the tracing context, which a backward that is compiled later still has."""


class _Lookup:
    """What AOTAutograd's store said, in the words of `store.lookup`."""

    def __init__(self) -> None:
        self.state = "disabled"
        self.key: str | None = None
        self.reason: str | None = None


_lookup: ContextVar[_Lookup | None] = ContextVar("otel_kernel_torch_lookup", default=None)


def current_frame() -> Frame | None:
    """Return the frame whose graph is compiled by this code, also for a backward long after the forward."""
    context = TracingContext.try_get()
    known = _frames.get(context) if context is not None else None
    return known if known is not None else _frame.get()


def compile_id() -> str | None:
    """Return Dynamo's `frame/recompile`, or None outside of it."""
    number = CompileContext.current_compile_id()
    return str(number) if number is not None else None


def gives_up(error: BaseException, frame: Frame | None) -> bool:
    """Whether Dynamo answers `error` by something else than an exception for the program.

    Args:
        error: what left a part of the compiler.
        frame: that is being compiled; None outside of Dynamo.
    """
    from torch._dynamo import config, exc

    if isinstance(error, (exc.RestartAnalysis, exc.SkipFrame)):
        return True
    if frame is None or frame.is_whole:
        return False
    if isinstance(error, exc.UncapturedHigherOrderOpError):
        return False
    soft = isinstance(error, (exc.Unsupported, exc.UserError))
    return soft or bool(config.suppress_errors)


def read_frame(call: Call) -> Generator[SideSpan | None, None, None]:
    """Read `_compile`, which is entered under Dynamo's lock, for every frame and every round of it."""
    code = call.argument("code")
    module = str(call.argument("globals").get("__name__", "?"))
    name = _name_inside(code, call.argument("locals")) or f"{module}.{_qualname(code)}"
    frame = Frame(name, code, module, is_whole=bool(call.argument("one_graph")))
    number = {semconv.COMPILE_ID: str(call.argument("compile_id"))}
    span = start_parent(RUNTIME, "dynamo.frame", frame.name, FRAME_LAYER, {**frame.code, **number})
    token = _frame.set(frame)
    yield span
    _frame.reset(token)
    if span is None:
        return
    told: dict[str, AttributeValue] = {}
    if frame.reason is not None:
        told[semconv.REASON] = frame.reason
    error = call.error
    if error is not None and gives_up(error, frame):
        is_limit = "recompile limit" in str(error)
        why = "the recompile limit is reached" if is_limit else error_type(error)
        reasons = [frame.reason] if frame.reason is not None else []
        told[semconv.REASON] = "; ".join([*reasons, f"runs as plain Python: {why}"])
        told[semconv.ABANDONED] = Abandoned.RETRY.value
        error = None
    span.end(error, told)


def read_reasons(call: Call) -> Generator[None, None, None]:
    """Read what asks which guards an earlier round has failed by; Dynamo calls it once a recompilation."""
    yield
    frame = _frame.get()
    if frame is not None and call.result:
        frame.reason = _without_code(str(call.result[0]))


def _without_code(reason: str) -> str:
    """Return a failed guard without the lines of the program that it comes from."""
    guard = reason.partition("User stack trace")[0]
    return "; ".join(line.partition("  #")[0].strip() for line in guard.splitlines() if line.strip())


def read_autograd(call: Call) -> Generator[SideSpan | None, None, None]:
    """Read `aot_module_simplified`: the lookup and, on a miss, all that is compiled at once."""
    frame = _frame.get()
    context = TracingContext.try_get()
    if frame is None:
        frame = Frame(type(call.argument("mod")).__name__, None, "", is_whole=True)
    if context is not None:
        _frames[context] = frame
    number = compile_id()
    known: dict[str, AttributeValue] = {} if number is None else {semconv.COMPILE_ID: number}
    span = start_parent(RUNTIME, "aot_autograd", frame.name, AUTOGRAD_LAYER, {**frame.code, **known})
    lookup = _Lookup()
    token = _lookup.set(lookup)
    yield span
    _lookup.reset(token)
    if span is None:
        return
    told: dict[str, AttributeValue] = {semconv.STORE_LOOKUP: lookup.state}
    if lookup.key is not None:
        told[semconv.STORE_ENTRY] = lookup.key
    if lookup.reason is not None:
        told[semconv.REASON] = lookup.reason
    error = call.error
    if error is not None and gives_up(error, frame):
        told[semconv.ABANDONED] = Abandoned.RETRY.value
        error = None
    span.end(error, told)


def read_autograd_load(call: Call) -> Generator[None, None, None]:
    """Read `AOTAutogradCache.try_load`, which returns on a hit and on a miss."""
    lookup = _lookup.get()
    if lookup is not None:
        lookup.state = "miss"
    yield
    if lookup is None:
        return
    result: Any = call.result  # from 2.12 on with a configuration
    if (result[0] if type(result) is tuple else result) is not None:
        lookup.state, lookup.reason = "hit", None
    elif lookup.state == "miss" and lookup.reason is None:
        lookup.reason = "no entry under this key"


def read_autograd_key(call: Call) -> Generator[None, None, None]:
    """Read `autograd_cache_key`, which raises for a graph that cannot be stored."""
    yield
    lookup = _lookup.get()
    if lookup is None:
        return
    if call.error is not None:
        lookup.state = "bypass"
        lookup.reason = _first_line(call.error)
        return
    lookup.key = call.result[0]
    frame = current_frame()
    if frame is not None:
        frame.autograd_key = lookup.key


def read_autograd_lookup(call: Call) -> Generator[None, None, None]:
    """Read `AOTAutogradCache._lookup`, which looks at the guards of each entry under the key."""
    yield
    lookup = _lookup.get()
    if lookup is None or call.result is not None:
        return
    if call.error is not None:
        lookup.state, lookup.reason = "bypass", error_type(call.error)
    elif call.argument("cache_info", {}).get("cache_status_detailed") == "guard_miss":
        lookup.state, lookup.reason = "guard_miss", "the entries under this key hold for other sizes"


def tell_of_failed_entry(error: BaseException) -> None:
    """Say why AOTAutograd could not use the entry that it had found."""
    lookup = _lookup.get()
    if lookup is None:
        return
    if type(error).__name__ == "FXGraphCacheMiss":
        lookup.state = "miss"
        lookup.reason = "its entry names a graph that the FX graph cache has not, or not for these sizes"
    else:
        lookup.state, lookup.reason = "bypass", f"its entry could not be loaded: {error_type(error)}"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{error_type(error)}: {lines[0][:200]}" if lines else error_type(error)


def _name_inside(code: Any, local: Any) -> str | None:
    """Return the name of what stands in a frame that Dynamo has put around it, such as a module of torch."""
    if code.co_name != "inner" or not code.co_filename.endswith("external_utils.py"):
        return None
    function = local.get("fn")
    owner = getattr(function, "__self__", function)
    named = type(owner) if isinstance(owner, Module) else function
    name = getattr(named, "__qualname__", None)
    return None if name is None else f"{named.__module__}.{name}"


def _qualname(code: Any) -> str:
    return str(getattr(code, "co_qualname", code.co_name))  # Python 3.10 has the bare name only
