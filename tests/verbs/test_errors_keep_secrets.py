"""No error repeats what looks like a credential: errors are logged, and shown to models."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect import ConflictError, InputError, Memory, NotFoundError, RecollectError
from recollect.values import errors

TOKEN = "ghp_0123456789abcdefABCDEF01"
"""Short enough to pass for an id."""
SECRETS = [TOKEN, TOKEN + "23456789abcd", "password: hunter22", f"x {'y' * 60} {TOKEN}"]


def imported(memory: Memory, **changes: str) -> None:
    out = io.BytesIO()
    memory.remember("a heron")
    memory.export(out)
    document = json.loads(out.getvalue())
    if "format" in changes:
        document |= changes
    else:
        document["memories"][0] |= changes
    memory.import_(io.BytesIO(json.dumps(document).encode()))


VERBS: dict[str, Callable[[Any, Any], object]] = {
    "role": lambda m, s: m.remember("x", role=s),
    "tier": lambda m, s: m.remember("x", tier=s),
    "lifetime": lambda m, s: m.remember("x", lifetime=s),
    "created_at": lambda m, s: m.remember("x", created_at=s),
    "kind": lambda m, s: m.remember("x", kind=s),
    "tags": lambda m, s: m.remember("x", tags=[s + "!"]),
    "references": lambda m, s: m.remember("x", references=[s]),
    "forget by tag": lambda m, s: m.forget(tag=s + "\n"),
    "get": lambda m, s: m.get(s),
    "get several": lambda m, s: m.get([s]),
    "forget": lambda m, s: m.forget(s),
    "archive": lambda m, s: m.archive(s),
    "revise": lambda m, s: m.revise(s, content="x"),
    "undo": lambda m, s: m.undo(s),
    "record": lambda m, s: m.audit.record(s, "message", {}),
    "scratchpad": lambda m, s: m.at(conversation="c").scratchpad.read(s),
    "decay": lambda m, s: m.sessions.create("u", session_id="s", decay={s: 1}),
    "timestamp": lambda m, s: m.sessions.add("default", {"type": "finding", "content": "x", "timestamp": s}),
    "session": lambda m, s: m.sessions.stats(s),
    "import format": lambda m, s: imported(m, format=s),
    **{
        f"import {field}": lambda m, s, field=field: imported(m, **{field: s})
        for field in ("id", "tier", "role", "lifetime", "superseded_by", "kind", "created_at")
    },
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("secret", SECRETS)
def test_no_error_repeats_a_secret(tmp_path: Path, verb: str, secret: str) -> None:
    with Memory(f"ledger:{tmp_path / 'm'}", preset="ledger", embedder="none") as memory:
        try:
            VERBS[verb](memory, secret)
        except (RecollectError, TypeError) as error:
            said = [str(error), repr(error), str(error.args), str(getattr(error, "problem", ""))]
            assert not [one for one in said if TOKEN[:12] in one or "hunter22" in one]


def test_what_is_no_secret_is_still_named() -> None:
    for text in ("there is no memory 01a1e7587dfe7dcf9a0dc4fbc2fbb3b1", "'my note 1' must be short", "it's n't 5 %"):
        assert str(NotFoundError(text)) == str(ConflictError(text)) == text
        assert str(InputError("token", text)) == f"token: {text}"
    assert "looks like a credential" in str(NotFoundError(f"there is no memory {TOKEN}"))


def test_a_megabyte_where_a_name_belongs_is_refused_without_a_look_at_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screened: list[int] = []
    monkeypatch.setattr(errors, "_screens", [lambda text: screened.append(len(text))])
    with Memory(tmp_path / "m") as memory, pytest.raises(InputError, match="agent: 'xxx"):
        memory.at(agent="x" * 1_000_000)
    assert 0 < sum(screened) < 100_000
