"""Writes the files that are made from code, or says which of them are stale.

python -m generators [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from generators import clickhouse, dashboards, fleet, questions

ROOT: Final = Path(__file__).parent.parent

FILES: Final[dict[str, Callable[[], str]]] = {
    "collector-config/clickhouse/view.sql": clickhouse.view,
    "collector-config/clickhouse/table.sql": clickhouse.table,
    "collector-config/grafana/fleet.json": dashboards.FLEET.to_json,
    "collector-config/grafana/release.json": dashboards.RELEASE.to_json,
    "docs/fleet.jsonl": fleet.trips,
    "docs/questions.md": questions.page,
}
"""What makes each file; one may read those before it."""


def main() -> int:
    """Write or check the files, and return the exit code."""
    parser = argparse.ArgumentParser(description="Write the files that are made from code.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a file is stale")
    check: bool = parser.parse_args().check
    stale: list[str] = []
    for name, make in FILES.items():
        path = ROOT / name
        text = make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"written: {name}")
    if check and stale:
        print(
            f"stale: {', '.join(stale)}; run `python -m generators` and commit what it writes",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
