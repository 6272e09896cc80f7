"""Names and key texts, which must not change from one version of ours to the next."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from otel_kernel.instrumentors.triton import fields
from otel_kernel.records import KernelCacheKey


def test_the_vector_of_a_key() -> None:
    build, rest = fields.key_texts(
        triton_key="3.9.0abc-def",
        backend="ptxas 12.8-90",
        source="5" * 64,
        options="0" * 64,
        environment="[]",
    )

    assert "3.9.0abc-def\nptxas 12.8-90" == build
    assert f"{'5' * 64}\n{'0' * 64}\n[]" == rest
    assert KernelCacheKey.from_hex(
        id="f46f87714eb8395443cf5d88bbcc2b37", build_id="1732189b72591e5aff4525579f7ebefd"
    ) == KernelCacheKey.of_texts(build=build, rest=rest)


def test_a_key_that_holds_more_has_a_line_more() -> None:
    parts = {"triton_key": "k", "backend": "b", "source": "s", "options": "o", "environment": "[]"}

    assert ("k\nb", "s\no\n[]\nwhole") == fields.key_texts(**parts, entry="whole")


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("shop.pricing", "shop.pricing.Cart.total"),
        ("__main__", "__main__.Cart.total"),
        ("torch._inductor.runtime.compile_tasks.c" + "x7" * 25, "Cart.total"),
        ("/tmp/torchinductor_root/ab/cab3kd7", "/tmp/torchinductor_root/ab/cab3kd7.Cart.total"),
    ],
)
def test_a_generated_module_is_left_out(module: str, expected: str) -> None:
    assert expected == fields.name_of(SimpleNamespace(__module__=module, __qualname__="Cart.total"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("module { tt.func public @add_kernel(%x: i32) { tt.return } }", "add_kernel"),
        ("tt.func private @helper() {}\ntt.func public @main.kernel() {}", "main.kernel"),
        (".visible .entry mul(\n.param .u64 x)", "mul"),
        ("nothing of the kind", "some.ttir"),
    ],
)
def test_the_name_of_an_ir_file(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "some.ttir"
    path.write_text(text)

    assert expected == fields.name_of_file(str(path))


def test_the_build_names_triton_and_the_assembler() -> None:
    backend = (
        "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 12.8, V12.8.93\n-90"
    )

    assert fields.build_name("3.6.0", "3.6.0abc", backend).startswith("triton 3.6.0; build ")
    assert fields.build_name("3.6.0", "3.6.0abc", backend).endswith("; ptxas V12.8.93")
    assert fields.build_name("3.6.0", "3.6.0abc", "hip:gfx942") != fields.build_name(
        "3.6.0", "3.6.0x", "hip:gfx942"
    )
