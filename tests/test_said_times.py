"""Times as people write them, the same in Python, in tools and on the command line."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from support.command_line import recollect
from support.common import Clock
from support.stores import STORES, located

from recollect import InputError, Memory, tools


@pytest.mark.parametrize("store", STORES)
def test_every_verb_that_takes_a_time_takes_words(tmp_path: Path, clock: Clock, store: str) -> None:
    with Memory(located(store, tmp_path / "m"), clock=clock) as memory:
        memory.remember("the old office is in Porto", tags=["place"])
        clock.now += timedelta(days=3)
        memory.remember("the new office is in Lisbon", tags=["place"])
        assert [one.text for one in memory.list(since="yesterday")] == ["the new office is in Lisbon"]
        assert [one.text for one in memory.list(until="1 day ago", tag="place")] == ["the old office is in Porto"]
        assert len(memory.recall("office", since="2d")) == 1
        assert len(memory.recall("office", as_of="2 days ago")) == 1
        found = tools.call(memory, "recall", {"query": "office", "since": "yesterday"})
        assert found["count"] == 1
        assert memory.query({"time_range": ("2 days ago", None)})[0].memory.text == "the new office is in Lisbon"
        assert memory.forget(until="2d").count == 1
        with pytest.raises(InputError, match=r"^since: .*yesterday"):
            memory.list(since="soon")
        refused = tools.call(memory, "recall", {"query": "office", "since": "soon"})
        assert refused["error"]["field"] == "since"


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recollect("remember", "tea", "--expires-at", "7d", "--metadata", "a=b", "--tag", "x")
    (stored,) = json.loads(recollect("list", "--since", "yesterday", "--tag", "x", "--json").stdout)
    assert stored["metadata"] == {"a": "b"}
    assert stored["expires_at"]
    assert json.loads(recollect("list", "--until", "2 weeks ago", "--json").stdout) == []
    refused = recollect("list", "--since", "soon", "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["field"] == "since"
