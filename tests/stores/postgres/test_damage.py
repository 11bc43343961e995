"""Rows that somebody has changed or lost: verify and doctor find them, as they find damage in files."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from support.stores import STORES, located

from recollect import Memory

pytestmark = pytest.mark.skipif("postgresql" not in STORES, reason="without PostgreSQL")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return located("postgresql", tmp_path / "m")


def broken(url: str, sql: str) -> None:
    server, _, schema = url.rpartition("schema=")
    with psycopg.connect(server.rstrip("?&"), autocommit=True) as connection:
        connection.execute(sql.replace("{s}", f'"{schema}"').encode())


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE {s}.contents SET text = reverse(text)", "does not match its checksum"),
        ("DELETE FROM {s}.contents", "has lost its content"),
        ("DELETE FROM {s}.search", "is missing from the text index"),
        ("DELETE FROM {s}.places", "no row in places"),
        ("UPDATE {s}.places SET live_memories = 2", "is counted as 2 memories of 20 bytes, and has 1 of 20"),
        ("UPDATE {s}.places SET content_bytes = 0", "of 0 bytes, and has 1 of 20: run `recollect db recount`"),
    ],
)
def test_what_was_changed_or_lost_is_found(url: str, sql: str, problem: str) -> None:
    with Memory(url, embedder="none") as memory:
        kept = memory.remember("a heron in the reeds")
        assert memory.verify() == []
        broken(url, sql)
        (damage,) = memory.verify()
        assert problem in damage.problem
        assert damage.where in (kept.id, "default/default")
        (found,) = [one for one in memory.doctor().findings if one.problem == "corrupt"]
        assert problem in found.examples[0]
        assert not memory.doctor().ok
