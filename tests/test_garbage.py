"""Whatever an argument of whatever operation is, the answer is a value or a typed error, and the next call works."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.seeds import some_of

from recollect import Memory
from recollect.operations import all_operations, bound_method, signature
from recollect.values.errors import RecollectError

ALWAYS: list[Callable[[], Any]] = [lambda: None, object]
"""What is tried on every argument. The others are drawn: some in each run, all of them in the long one."""
VALUES: list[Callable[[], Any]] = [
    lambda: 0,
    lambda: -1,
    lambda: 1.5,
    lambda: 10**30,
    lambda: float("nan"),
    lambda: True,
    lambda: "",
    lambda: " ",
    lambda: "x",
    lambda: "\x00",
    lambda: "\ud800",
    lambda: "é" * 300,
    list,
    lambda: [None],
    lambda: [1],
    lambda: ["x"],
    dict,
    lambda: {"a": object()},
    lambda: {1: 2},
    lambda: b"x",
    lambda: datetime(1, 1, 1),
    lambda: datetime.now(UTC),
    set,
    lambda: iter([1]),
    lambda: lambda: 0,
    lambda: msgspec.UNSET,
]
REQUIRED: dict[str, Any] = {
    "id": "0" * 32,
    "ids": ["0" * 32],
    "items": ["x"],
    "messages": [{"role": "user", "content": "x"}],
}
"""Values of arguments that must be given, where `x` would be none."""


@pytest.mark.parametrize("owner", ["sqlite", "ledger"])
@pytest.mark.parametrize("name", [name for name in all_operations() if name != "close"])
def test_an_argument_may_be_anything(tmp_path: Path, name: str, owner: str) -> None:
    preset = "ledger" if owner == "ledger" else None
    operation = signature(name)
    with Memory(f"{owner}:{tmp_path / 'm'}", preset=preset) as memory:
        view = memory.at(agent="a", conversation="c")
        required = {p.name: REQUIRED.get(p.name, "x") for p in operation.takes if p.is_required}
        if "path" in operation.left_out:
            (tmp_path / "folder").mkdir()
            required["path"] = tmp_path / "folder"
        for parameter in operation.takes:
            for make in (*ALWAYS, *some_of(VALUES)):
                with suppress(RecollectError):
                    bound_method(view, name)(**{**required, parameter.name: make()})
        memory.remember("and the next call works")
