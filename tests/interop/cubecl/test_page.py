"""The page on CubeCL, run as it is written, against Jaeger."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from servers.building import BUILD_SECONDS as SERVER_SECONDS
from servers.building import missing
from servers.jaeger import Jaeger
from servers.waiting import eventually

from interop.cubecl.producer import BUILD_SECONDS, STEPS, Programs, variables
from otel_kernel.cubecl.reading import read_environment
from otel_kernel.inputs import Problem, open_input
from otel_kernel.kinds import Stamped
from otel_kernel.records import Trip

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "cubecl.md").read_text()

pytestmark = [pytest.mark.timeout(BUILD_SECONDS + SERVER_SECONDS), pytest.mark.slow]


def blocks(language: str) -> list[str]:
    """Return what stands in the page's fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def commands(port: int) -> str:
    """Return the commands that the page says to type, but for installing, with Jaeger's port."""
    (typed,) = blocks("console")
    lines = [line.removeprefix("$ ") for line in typed.splitlines()]
    assert ["pip", "./shop", "otel-kernel"] == [line.split()[0] for line in lines]
    return "\n".join(lines[1:]).replace(":4317 ", f":{port} ")


def test_the_page_names_the_jaeger_that_is_deployed() -> None:
    (image,) = re.findall(
        r"image: (jaegertracing/\S+)", (ROOT / "collector-config" / "compose.yaml").read_text()
    )

    assert f" {image}\n" in PAGE


def test_the_page_shows_a_program_in_jaeger(built: Programs, tmp_path: Path) -> None:
    lacking = missing()
    if lacking is not None:
        assert not os.environ.get("OTEL_KERNEL_REQUIRE_ALL"), lacking
        pytest.skip(lacking)
    (settings,) = blocks("toml")
    (tmp_path / "cubecl.toml").write_text(settings)
    program = tmp_path / "shop"
    steps = " ".join(f"'{step}'" for step in STEPS[0])
    program.write_text(f"#!/bin/sh\nexec {built.first} {steps}\n")
    program.chmod(0o755)
    (tmp_path / "jaeger").mkdir()
    with Jaeger(tmp_path / "jaeger") as jaeger:
        done = subprocess.run(
            ["bash", "-e", "-c", commands(jaeger.otlp_port)],
            cwd=tmp_path,
            env={**variables(), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, done.stderr
        (trace,) = re.findall(r"^trace ([0-9a-f]{32})  ", done.stdout, re.MULTILINE)
        expected = [
            each
            for each in read_environment(tmp_path / "environments" / "shop.db")
            if not isinstance(each, Problem)
        ]

        def shown() -> list[Trip | Stamped]:
            try:
                with urllib.request.urlopen(f"{jaeger.api}/api/v3/traces/{trace}") as answer:
                    found = json.load(answer)["result"]
            except urllib.error.HTTPError as error:
                error.close()
                return []  # none yet
            path = tmp_path / "jaeger.jsonl"
            path.write_text(json.dumps(found) + "\n")
            records = [each for each in open_input(path).all() if not isinstance(each, Problem)]
            if len(records) < len(expected):
                return []
            return sorted(
                (
                    replace(each, trace_id=None, span_id=None) if isinstance(each, Trip) else each
                    for each in records
                ),
                key=lambda each: each.seq,
            )

        assert expected == eventually(shown)
        with urllib.request.urlopen(f"{jaeger.api}/api/v3/services") as answer:
            assert ["cubecl"] == json.load(answer)["services"]
