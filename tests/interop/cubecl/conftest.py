from __future__ import annotations

import pytest

from interop.cubecl.producer import Programs, programs


@pytest.fixture(scope="session")
def built() -> Programs:
    """The programs of this folder, built on published crates."""
    return programs()
