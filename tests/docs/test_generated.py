"""The files that are made from the operations are as `make docs` makes them."""

from __future__ import annotations

import pytest
from support.generated import FILES, ROOT


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text("utf-8") == FILES[name](), f"{name} is out of date: run `make docs`"
