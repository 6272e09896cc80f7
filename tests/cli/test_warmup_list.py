"""`warmup-list`: what to compile before serving."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from json_schemas import errors
from report.shop import COMPILED, INTERNAL, LOADED, WEB, WORKER, a_trip, key
from written_trips import write_otlp, write_recording

from cli.command import otel_kernel, refusal
from otel_kernel import semconv
from otel_kernel.records import AttributeValue


def serving(specialization: str, **more: str | int) -> dict[str, AttributeValue]:
    return {
        semconv.PHASE: "serving",
        semconv.SPECIALIZATION: specialization,
        semconv.TARGET: "cpu:znver3",
        semconv.CODE_FILE_PATH: "/srv/shop.py",
        semconv.CODE_LINE_NUMBER: 7,
        semconv.CODE_FUNCTION_NAME: "shop.price",
        **more,
    }


SIGNATURE = {semconv.KEY_COMPONENT + "signature": "(float64,)"}
TRIPS = (
    a_trip(WEB, 0, "shop.price", 0, 500, COMPILED, attributes={semconv.PHASE: "startup"}),
    a_trip(WEB, 1, "shop.price", 100, 200, COMPILED, attributes=serving("(int64,)")),
    a_trip(
        WEB, 2, "shop.price", 400, 300, COMPILED, key=key(1), attributes=serving("(float64,)", **SIGNATURE)
    ),
    a_trip(
        WORKER, 0, "shop.price", 400, 310, COMPILED, key=key(1), attributes=serving("(float64,)", **SIGNATURE)
    ),
    a_trip(WEB, 3, "shop.tax", 410, 100, COMPILED, parent=2, attributes=serving("(float64,)")),
    a_trip(WEB, 4, "shop.stock", 900, 20, LOADED, attributes=serving("(int64,)")),
    a_trip(WEB, 5, "numba.np.dot", 950, 20, COMPILED, attributes={**INTERNAL, **serving("(int64,)")}),
    a_trip(WEB, 6, "shop.broken", 990, 20, error_type="ValueError", attributes=serving("(int64,)")),
)


def read(*arguments: str | Path) -> dict[str, Any]:
    done = otel_kernel("warmup-list", "--json", *arguments)

    assert (0, "") == (done.returncode, done.stderr)
    data: dict[str, Any] = json.loads(done.stdout)
    assert [] == errors("warmup-list", data)
    return data


@pytest.mark.parametrize("write", [write_recording, write_otlp])
def test_specializations_that_compiled_while_serving_are_listed(write: Any, tmp_path: Path) -> None:
    data = read(write(tmp_path / "trips", TRIPS))
    (kernel,) = data["kernels"]

    assert ("serving", 1) == (data["phase"], data["internal"])
    assert ("shop.price", "/srv/shop.py", 7) == (kernel["kernel"], kernel["file"], kernel["line"])
    assert [
        ("(float64,)", 2, 2, 610_000_000, {"signature": "(float64,)"}),
        ("(int64,)", 1, 1, 200_000_000, {}),
    ] == [
        (each["specialization"], each["trips"], each["processes"], each["duration_ns"], each["components"])
        for each in kernel["specializations"]
    ]


def test_the_list_reads_like_this(tmp_path: Path) -> None:
    assert (
        """\
shop.price, numba
  /srv/shop.py:7
  (float64,)
      610 ms in 2 trips, cpu:znver3
  (int64,)
      200 ms in 1 trip, cpu:znver3

2 specializations of 1 kernel compiled in phase serving, 810 ms added up.
1 internal function of the runtimes left out.
"""
        == otel_kernel("warmup-list", write_recording(tmp_path / "r.db", TRIPS)).stdout
    )


def test_other_phases_are_listed_too(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", TRIPS)

    assert 1 == len(read(path, "--phase", "startup")["kernels"][0]["specializations"])
    assert 3 == len(read(path, "--phase", "all")["kernels"][0]["specializations"])
    assert "its phases are serving (6 records), startup (1 record)" in refusal(
        "warmup-list", path, "--phase", "night"
    )


def test_without_phases_it_says_what_to_do(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", [a_trip(WEB, 0, "shop.price", 0, 500, COMPILED)])
    said = refusal("warmup-list", path)

    assert "OTEL_KERNEL_SERVING_AFTER" in said
    assert "--phase all" in said


def test_nothing_compiled_is_nothing_to_warm_up(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "r.db", [TRIPS[5]])

    assert (
        "Nothing of the program was compiled in phase serving.\n" == otel_kernel("warmup-list", path).stdout
    )


PROGRAM = """
import otel_kernel
from numba import njit

@njit
def price(x):
    return x * 1.19

price(1.0)
otel_kernel.phase("serving")
price(1)
"""


def test_a_signature_of_the_list_compiles_before_serving(tmp_path: Path) -> None:
    """The list of one run, fed to Numba in the next, leaves nothing to compile while serving."""
    program, recording = tmp_path / "shop.py", tmp_path / "r.db"
    program.write_text(PROGRAM)

    def run() -> None:
        done = otel_kernel("run", "--recording", recording, "--", sys.executable, program)
        assert 0 == done.returncode, done.stderr

    run()
    ((one,),) = (kernel["specializations"] for kernel in read(recording)["kernels"])
    assert "(int64,)" == one["specialization"]
    warm = f"price.compile({one['specialization']!r})\notel_kernel.phase"
    program.write_text(PROGRAM.replace("otel_kernel.phase", warm))
    run()

    assert [] == [
        trip
        for trip in map(json.loads, otel_kernel("list", "--json", recording).stdout.splitlines())
        if trip["attributes"].get("compute.kernel.phase") == "serving" and trip["outcome"] == "compiled"
    ]
