"""No value that was typed is lost, and nothing is erased for good without being asked about."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import called, store, terminal

from recollect import Memory


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("forget", "--tag", "a", "--tag", "b", "--yes"),
        ("forget", "--tag=a", "--tag", "b", "--yes"),
        ("list", "--kind", "fact", "--kind", "task"),
        ("recall", "tea", "-n", "3", "--limit", "5"),
        ("recall", "tea", "-n3", "-n5"),
        ("audit", "search", "--action", "forget", "--action", "undo"),
    ],
)
def test_an_option_that_takes_one_value_is_not_given_twice(words: tuple[str, ...]) -> None:
    store("tea", tags=["a"])
    done = called(*words)
    assert done.returncode == 2
    assert done.stderr.count("is given twice, and takes one value") == 1
    with Memory("./memory") as memory:
        assert len(memory.list()) == 1


def test_options_that_take_several_and_the_shared_ones_may_be_repeated() -> None:
    """An alias of the shell may hold a --store."""
    done = called("remember", "tea", "--tag", "a", "--tag", "b", "--store", "./other", "--store", "./memory")
    assert done.returncode == 0, done.stderr
    with Memory("./memory") as memory:
        assert memory.list()[0].tags == ("a", "b")


def test_a_memory_is_erased_only_after_a_yes() -> None:
    (record,) = store("tea")
    refused = called("forget", record.id, "--erase")
    assert refused.returncode != 0
    assert "--yes" in refused.stderr
    shown, code = terminal("forget", record.id[-8:], "--erase", answer=b"n\n")
    assert (code, "tea" in shown, "for good" in shown) == (1, True, True)
    with Memory("./memory") as memory:
        assert [kept.id for kept in memory.list()] == [record.id]
    assert called("forget", record.id, "--erase", "--yes").returncode == 0
    with Memory("./memory") as memory:
        assert memory.list(state=None) == []


def test_one_memory_is_forgotten_without_a_question() -> None:
    """It can be taken back."""
    (record,) = store("tea")
    assert called("forget", record.id).returncode == 0
    assert called("undo").returncode == 0
    with Memory("./memory") as memory:
        assert [kept.id for kept in memory.list()] == [record.id]
