"""What is answered to an export request: the messages of OTLP, in the encoding of the request."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"


class Answer(NamedTuple):
    """An answer over HTTP."""

    code: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def taken(content_type: str, rejected: int, reason: str) -> Answer:
    """Return that a request was taken, all but for some spans.

    Args:
        content_type: of the request and so of the answer.
        rejected: number of spans that were not taken and never will be.
        reason: what is wrong with them; what is worth saying where there are none.
    """
    if content_type == JSON:
        partial = {"rejectedSpans": str(rejected), "errorMessage": reason}
        return Answer(200, json.dumps({"partialSuccess": partial} if rejected else {}).encode())
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTracePartialSuccess,
        ExportTraceServiceResponse,
    )

    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.CopyFrom(
            ExportTracePartialSuccess(rejected_spans=rejected, error_message=reason)
        )
    return Answer(200, response.SerializeToString())


def refused(content_type: str, code: int, reason: str, *headers: tuple[str, str]) -> Answer:
    """Return that a request was not taken: the `Status` that OTLP wants there."""
    is_protobuf = content_type == PROTOBUF
    body = _status(reason.encode()) if is_protobuf else json.dumps({"message": reason}).encode()
    return Answer(code, body, headers)


def _status(message: bytes) -> bytes:
    """Return a `google.rpc.Status` that has a message only: its field 2."""
    length, size = b"", len(message)
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return b"\x12" + length + bytes([size]) + message
