"""The texts from which keys are made, and what is read of types and code."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.report import run_python
from numba import njit, types

from otel_kernel.instrumentors.numba.fields import (
    Target,
    build_text,
    code_digest,
    file_digest,
    kernel_name,
    key_text,
    signature_text,
    stamp_text,
)
from otel_kernel.records import KernelCacheKey

numba: Any = import_module("numba")  # typed in part only
VECTOR: dict[str, Any] = json.loads((Path(__file__).parent / "key_vector.json").read_text())


def test_the_committed_key_is_made_again() -> None:
    build = build_text(Target(**VECTOR["target"]), **VECTOR["versions"])
    key = key_text(**VECTOR["key"])

    assert VECTOR["build_text"] == build
    assert VECTOR["key_text"] == key
    assert KernelCacheKey.from_hex(id=VECTOR["id"], build_id=VECTOR["build_id"]) == KernelCacheKey.of_texts(
        build=build, rest=key
    )


@pytest.mark.parametrize("part", [*VECTOR["key"]])
def test_each_part_of_the_key_changes_its_id_only(part: str) -> None:
    build = build_text(Target(**VECTOR["target"]), **VECTOR["versions"])
    other = KernelCacheKey.of_texts(build=build, rest=key_text(**{**VECTOR["key"], part: "other"}))

    assert VECTOR["build_id"] == other.to_json()["build_id"]
    assert VECTOR["id"] != other.to_json()["id"]


@pytest.mark.parametrize("part", [*VECTOR["target"], *VECTOR["versions"]])
def test_each_part_of_the_build_changes_its_id(part: str) -> None:
    target = Target(**{name: "other" if name == part else text for name, text in VECTOR["target"].items()})
    versions = {name: "other" if name == part else text for name, text in VECTOR["versions"].items()}
    build = build_text(target, **versions)

    assert VECTOR["build_id"] != KernelCacheKey.of_texts(build=build, rest="").to_json()["build_id"]


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        ("()", ()),
        ("(int64,)", (types.int64,)),
        ("(int64, float32)", (types.int64, types.float32)),
        ("(array(float64, 2d, C),)", (numba.typeof(np.ones((2, 2))),)),
        ("(int64,) -> float64", types.float64(types.int64)),
        ("(float64[:], int64)", "(float64[:], int64)"),
    ],
)
def test_signatures_are_readable(text: str, signature: object) -> None:
    assert text == signature_text(signature)


def test_a_function_as_an_argument_has_the_same_text_in_every_process() -> None:
    def double(x: int) -> int:
        return x * 2

    dispatchers = [njit(double), njit(double)]
    one, again = (signature_text((numba.typeof(each),)) for each in dispatchers)

    assert one == again
    assert "0x" not in one
    assert f"{__name__}.test_a_function_as_an_argument_has_the_same_text_in_every_process" in one


def test_stamps_of_old_and_new_versions() -> None:
    assert "(1.5, 20)" == stamp_text((1.5, 20))
    assert "00ff" == stamp_text(b"\x00\xff")
    assert "abc" == stamp_text("abc")


def test_a_file_that_is_not_there_has_no_digest(tmp_path: Path) -> None:
    assert "no file" == file_digest(str(tmp_path / "none.py"))
    assert "no file" == file_digest("<ipython-input-1-abc>")


def test_a_changed_file_has_another_digest(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("a = 1")
    before = file_digest(str(path))
    path.write_text("a = 22")

    assert before != file_digest(str(path))


def made(text: str) -> Any:
    """Return the code of the lambda that a text stands for."""
    function: Callable[..., object] = eval(text)
    return function.__code__


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("lambda x: x + 1", "lambda x: x + 2"),
        ("lambda x: x.a", "lambda x: x.b"),
        ("lambda x: x", "lambda y: y"),
        ("lambda x: (lambda: 1)", "lambda x: (lambda: 2)"),
    ],
)
def test_different_code_has_different_digests(one: str, other: str) -> None:
    assert code_digest(made(one)) == code_digest(made(one))
    assert code_digest(made(one)) != code_digest(made(other))


def test_what_else_tells_kernels_apart_is_in_the_digest() -> None:
    code = made("lambda x: x")

    assert 3 == len({code_digest(code), code_digest(code, "<loop>", 1), code_digest(code, "<loop>", 2)})


def test_a_set_in_the_code_has_one_digest_in_every_process(tmp_path: Path) -> None:
    program = (
        "from conformance.harness import value\n"
        "from otel_kernel.instrumentors.numba.fields import code_digest\n"
        "value('digest', code_digest((lambda x: x in {'a', 'b', 'c', 'd', 'e'}).__code__))\n"
    )
    digests = {
        run_python(("-c", program), tmp_path, {"PYTHONHASHSEED": seed}).values["digest"] for seed in "1234"
    }

    assert 1 == len(digests)


def test_code_without_a_module_is_named_by_its_file() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def made(x):\n    return x", "/srv/generated.py", "exec"), namespace)

    assert "generated.made" == kernel_name(namespace["made"])
