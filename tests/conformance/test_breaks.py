"""There is a way to make every case fail; `python -m conformance.breaks` shows that it does."""

from __future__ import annotations

import pytest

from conformance import support
from conformance.breaks import BREAKS, ROOT


def test_there_is_a_break_for_every_case() -> None:
    assert set(support.read().cases) == BREAKS.keys()


@pytest.mark.parametrize("name", BREAKS)
def test_what_a_break_changes_is_there_once(name: str) -> None:
    broken = BREAKS[name]
    text = (ROOT / broken.file).read_text()

    assert 1 == text.count(broken.old)
    assert broken.old != broken.new
    assert compile(text.replace(broken.old, broken.new), broken.file, "exec")  # wrong, and yet Python
