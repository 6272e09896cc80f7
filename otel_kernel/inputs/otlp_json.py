"""OTLP JSON: export requests, as the file exporters of SDKs and of the Collector write them, one a line.

Writers disagree about details, so both spellings of names (`traceId`, `trace_id`), numbers as numbers or as
strings, and ids in hex or base64 are read. What is none of that is a problem of its line or of its span, and
the other spans still count.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from reprlib import repr as shortened
from typing import Any, Final, TypeGuard

from otel_kernel.inputs.problems import Problem
from otel_kernel.kinds import Stamped
from otel_kernel.mapping import NotATrip, Reject, SpanView
from otel_kernel.record_mapping import read_any
from otel_kernel.records import Trip
from otel_kernel.texts import TextFiles

_OTHER_SIGNALS: Final = {
    "resourceMetrics",
    "resource_metrics",
    "resourceLogs",
    "resource_logs",
    "resourceProfiles",
    "resource_profiles",
}
"""A Collector may write several signals into one file."""

_NOTHING: Final[dict[str, Any]] = {}


class _MalformedError(ValueError):
    """Says what is not as OTLP has it."""


def read_request(
    request: object, where: str, texts: TextFiles | None = None
) -> Iterator[Trip | Stamped | NotATrip | Problem]:
    """Yield what the spans of one request stand for, and a problem for each one that is lost.

    Args:
        request: parsed JSON.
        where: names the request in problems.
        texts: where to look for texts that a span does not carry whole.
    """
    try:
        for scope, span in _spans(request):
            try:
                found = read_any(_view(scope, span), texts)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                yield Problem(where, f"malformed span {shortened(span)}: {error or type(error).__name__}")
                continue
            if isinstance(found, Reject):
                ids = f"trace {found.trace_id}, span {found.span_id}"
                yield Problem(where, f"{found.reason} ({ids})")
            else:
                yield found
    except _MalformedError as error:
        yield Problem(where, str(error), is_whole=True)


def _spans(request: Any) -> Iterator[tuple[str, Any]]:
    """Yield each span with the name of its scope."""
    if not is_object(request):
        raise _MalformedError(f"not OTLP: an object is needed, got {shortened(request)}")
    if "resourceSpans" not in request and "resource_spans" not in request:
        if request and not _OTHER_SIGNALS & request.keys():
            raise _MalformedError(f"not OTLP: no resourceSpans in {shortened(request)}")
        return
    for resource_spans in _objects(request, "resourceSpans", "resource_spans"):
        for scope_spans in _objects(resource_spans, "scopeSpans", "scope_spans"):
            scope = scope_spans.get("scope")
            name = scope.get("name") if is_object(scope) else None
            for span in _list(scope_spans, "spans", "spans"):
                yield name if isinstance(name, str) else "", span


def _objects(owner: Mapping[str, Any], camel: str, snake: str) -> list[dict[str, Any]]:
    items = _list(owner, camel, snake)
    if not all(is_object(item) for item in items):
        raise _MalformedError(f"not OTLP: {camel} must hold objects, got {shortened(items)}")
    return items


def _list(owner: Mapping[str, Any], camel: str, snake: str) -> list[Any]:
    value = _either(owner, camel, snake, None)
    if value is None:
        return []
    if not is_list(value):
        raise _MalformedError(f"not OTLP: {camel} must be a list, got {shortened(value)}")
    return value


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether parsed JSON is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether parsed JSON is a list."""
    return isinstance(value, list)


def _view(scope: str, span: dict[str, Any]) -> SpanView:
    attributes: dict[str, object] = {}
    for item in span.get("attributes") or ():
        value = item.get("value") or _NOTHING
        # Nearly all values are of these two kinds, and this loop is much of the time that reading takes.
        if "stringValue" in value:
            attributes[item["key"]] = value["stringValue"]
        elif "intValue" in value:
            number = value["intValue"]
            attributes[item["key"]] = int(number) if type(number) is str else _int(number)
        else:
            attributes[item["key"]] = _any_value(value)
    status = span.get("status")
    return SpanView(
        scope,
        attributes,
        _int(_either(span, "startTimeUnixNano", "start_time_unix_nano", 0)),
        _id(_either(span, "traceId", "trace_id", ""), 16),
        _id(_either(span, "spanId", "span_id", ""), 8),
        status.get("message") or "" if status else "",
    )


def _either(span: Mapping[str, Any], camel: str, snake: str, default: object) -> Any:
    value = span.get(camel)
    return value if value is not None else span.get(snake, default)


def _id(text: str, size: int) -> str:
    """Return an id of `size` bytes in lower-case hex; it comes as hex, or as base64, which is shorter."""
    if len(text) == 2 * size:
        return text.lower()
    data = b64decode(text, validate=True)
    if len(data) != size:
        raise _MalformedError(f"an id must have {size} bytes in hex or base64, got {shortened(text)}")
    return data.hex()


def _any_value(value: Any) -> object:
    """Return what an `AnyValue` holds; one that holds nothing stands for None."""
    for kind, content in (value or _NOTHING).items():
        decode = _KINDS.get(kind)
        if decode is not None:
            return decode(content)
    return None


def _int(content: Any) -> int:
    if isinstance(content, str) or type(content) is int or (type(content) is float and content.is_integer()):
        return int(content)
    raise _MalformedError(f"an integer is needed, got {shortened(content)}")


def _typed(kind: type) -> Callable[[Any], object]:
    def check(content: Any) -> object:
        if type(content) is not kind:
            raise _MalformedError(f"a {kind.__name__} is needed, got {shortened(content)}")
        return content

    return check


def _array(content: Any) -> list[object]:
    return [_any_value(value) for value in content.get("values") or ()]


def _key_values(content: Any) -> dict[str, object]:
    return {item["key"]: _any_value(item.get("value")) for item in content.get("values") or ()}


_KINDS: Final[dict[str, Callable[[Any], object]]] = {
    name: decode
    for names, decode in (
        (("stringValue", "string_value"), _typed(str)),
        (("intValue", "int_value"), _int),
        (("boolValue", "bool_value"), _typed(bool)),
        (("doubleValue", "double_value"), float),
        (("bytesValue", "bytes_value"), b64decode),
        (("arrayValue", "array_value"), _array),
        (("kvlistValue", "kvlist_value"), _key_values),
    )
    for name in names
}
