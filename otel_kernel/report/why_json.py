"""Why a kernel was compiled, as a JSON object that several commands print."""

from __future__ import annotations

from typing import Any

from otel_kernel.report.why import Why


def why_json(why: Why) -> dict[str, Any]:
    """Return the object; null where something is not known or not there."""
    earlier = why.earlier
    return {
        "reason": why.reason.value,
        "detail": why.detail,
        "differing": [
            {"name": part.name, "kind": part.kind.value, "before": part.before, "after": part.after}
            for part in why.differing
        ],
        "equal": list(why.equal),
        "earlier": None if earlier is None else {"session": earlier.session, "seq": earlier.seq},
    }
