"""What the documents say in passing, to the letter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.common import Clock
from support.stores import STORES, located

from recollect import AccessError, InputError, Memory, tools
from recollect.cli.app import cli


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "m")


@pytest.fixture
def notes(url: str) -> Iterator[Memory]:
    with Memory(url, preset="aegis") as memory:
        yield memory


@pytest.mark.clause("AEG-08")
def test_a_note_is_shown_with_its_first_tag(notes: Memory) -> None:
    kept = notes.remember("deploys run on Fridays", tags=["infra", "deploy"])
    assert f"- ({kept.id}, infra) deploys run on Fridays" in str(
        notes.context([{"role": "user", "content": "when do deploys run?"}]).messages
    )


@pytest.mark.clause("AEG-15")
def test_without_a_location_notes_are_in_the_workspace_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory(preset="aegis") as memory:
        memory.remember("deploys run on Fridays")
    assert '"deploys run on Fridays"' in (tmp_path / ".aegis/memory/memories.jsonl").read_text()
    found = CliRunner().invoke(cli, ["--preset", "aegis", "recall", "deploys", "--json"])
    assert "deploys run on Fridays" in found.output
    with Memory() as memory:
        memory.remember("elsewhere")
    assert (tmp_path / "memory").is_dir()


@pytest.mark.clause("AEG-15")
@pytest.mark.parametrize("tag", ["C++", "user pref", "a/b", 'the "best"', "back\\slash", "ünïcode", "a.b c"])
def test_any_tag_that_an_agent_may_choose_is_kept_and_found(notes: Memory, tag: str) -> None:
    stored = tools.call(notes, "memory_store", {"text": "she likes it", "tags": [tag, "other"]})
    assert stored["ok"] is True
    notes.remember("something else", tags=["other"])
    found = tools.call(notes, "memory_search", {"tag": tag})
    assert [one["id"] for one in found["memories"]] == [stored["id"]]
    assert [record.id for record in notes.list(tags=[tag])] == [stored["id"]]
    assert notes.forget(tag=tag).count == 1


@pytest.mark.clause("AEG-15")
def test_a_scope_is_stored_and_never_filters(notes: Memory) -> None:
    for scope in ("user", "workspace", "session"):
        assert tools.call(notes, "memory_store", {"text": f"of {scope}", "scope": scope})["ok"]
    assert tools.call(notes, "memory_search", {})["count"] == 3
    assert len(notes.list()) == 3


@pytest.mark.clause("AEG-15")
@pytest.mark.parametrize("text", ["Remember this: I like tea", "please remember my birthday", "don't forget the milk"])
def test_no_word_of_the_user_makes_a_note(notes: Memory, text: str) -> None:
    notes.context([{"role": "user", "content": text}])
    assert notes.list() == []


@pytest.mark.clause("AEG-15")
def test_the_tool_says_which_tags_are_accepted(notes: Memory) -> None:
    schema = str(next(tool for tool in tools.openai(notes) if "memory_store" in str(tool)))
    assert "c++, ci/cd" in schema
    assert "without spaces" not in schema
    assert tools.call(notes, "memory_store", {"text": "it builds", "tags": ["c++", "ci/cd", "two words", "t" * 32]})[
        "ok"
    ]


@pytest.mark.clause("AEG-15")
def test_notes_of_one_second_keep_their_order(url: str, clock: Clock) -> None:
    with Memory(url, preset="aegis", clock=clock) as memory:
        ids = [memory.remember(f"note number {n}").id for n in range(520)]
        kept = ids[-500:]
        assert [note.id for note in memory.list(limit=600)] == kept[::-1]
        assert [note.id for note in memory.list(limit=600, newest_first=False)] == kept
        found = tools.call(memory, "memory_search", {"query": "number"})
        assert [note["id"] for note in found["memories"]] == kept[::-1][:20]


@pytest.mark.clause("AEG-15")
@pytest.mark.parametrize("kind", STORES)
def test_a_note_that_was_begun_first_and_stored_last_is_the_newest(tmp_path: Path, clock: Clock, kind: str) -> None:
    url = located(kind, tmp_path / "memory")

    def slow() -> datetime:
        """Another process stores a note after this one looked at its clock."""
        now = clock()
        if waiting:
            clock.forward(microseconds=5)
            ids.append(other.remember(waiting.pop()).id)
            clock.forward(microseconds=5)
        return now

    ids: list[str] = []
    waiting: list[str] = []
    with Memory(url, preset="aegis", clock=clock) as other, Memory(url, preset="aegis", clock=slow) as memory:
        memory.remember("the first note")
        waiting.append("stored before the note that was begun before it")
        last = memory.remember("the last note")
        assert not waiting
        assert [note.id for note in memory.list()][:2] == [last.id, ids[0]]
        assert [note.id for note in other.list(newest_first=False)][1:] == [ids[0], last.id]
        found = tools.call(memory, "memory_search", {"query": "note"})
        assert [note["id"] for note in found["memories"]][:2] == [last.id, ids[0]]
        assert last.created_at == memory.get(last.id).created_at == clock.now
        assert memory.doctor().ok
        early = memory.remember("a note of last year", created_at="2025-01-01T00:00:00Z")
        assert memory.list(newest_first=False)[0].id == early.id


@pytest.mark.clause("AEG-15")
def test_processes_that_store_at_the_same_time_share_one_order(tmp_path: Path) -> None:
    path, each = tmp_path / "memories.jsonl", 130
    code = f"""
from recollect import Memory
with Memory("notebook:{path}", preset="aegis") as memory:
    for n in range({each}):
        memory.remember(f"note number {{n}}")
"""
    with ExitStack() as stack:
        for process in [stack.enter_context(subprocess.Popen([sys.executable, "-c", code])) for _ in range(4)]:
            assert process.wait(300) == 0
    with Memory(f"notebook:{path}", preset="aegis") as memory:
        ids = [note.id for note in memory.list(limit=600, newest_first=False)]
        numbers = [int(ident.removeprefix("m-")) for ident in ids]  # which count up as notes are stored
        assert numbers == list(range(4 * each - 500 + 1, 4 * each + 1))
        assert [note.id for note in memory.list(limit=600)] == ids[::-1]
        found = tools.call(memory, "memory_search", {"query": "number"})
        assert [note["id"] for note in found["memories"]] == ids[::-1][:20]


def test_other_presets_keep_to_letters_and_levels(tmp_path: Path) -> None:
    with Memory(tmp_path / "m") as memory, pytest.raises(InputError, match="tags"):
        memory.remember("x", tags=["C++"])


@pytest.mark.parametrize("kind", ["fact", "finding", "decision", "task", None])
def test_an_account_holds_preferences_and_procedures_only(url: str, kind: str | None) -> None:
    with Memory(url, preset="inklings") as memory:
        ann = memory.at(account="ann")
        with pytest.raises(InputError, match="kind: the tier account holds preference and procedure only"):
            ann.remember("the budget is 500", kind=kind, tier="account")
        for allowed in ("preference", "procedure"):
            ann.remember(f"a {allowed}", kind=allowed, tier="account")
            with pytest.raises(InputError, match="embedding: the tier account holds no vectors"):
                ann.remember("x", kind=allowed, tier="account", embedding=[0.1] * 768)
        assert [record.embedding for record in memory.list(tier="account")] == [None, None]
        assert memory.audit.search("remember refused")


@pytest.mark.clause("ATL-11")
@pytest.mark.parametrize("importance", [None, 0.3])
def test_what_was_asked_to_be_remembered_never_expires(url: str, clock: Clock, importance: float | None) -> None:
    with Memory(url, preset="atlas", clock=clock) as memory:
        kept = memory.remember(
            "remember this: the gate code is by the door", kind="conversation", importance=importance
        )
        routine = memory.remember("the weather was fine", kind="conversation", importance=importance)
        assert kept.expires_at is None
        assert routine.expires_at is not None
        clock.now += timedelta(days=365)
        assert [hit.memory.id for hit in memory.recall("gate code", limit=1)] == [kept.id]


@pytest.mark.clause("JRN-11")
def test_removing_an_agent_removes_its_memories_and_keeps_the_log(url: str) -> None:
    with Memory(url) as memory:
        ada, bob = memory.at(agent="ada"), memory.at(agent="bob")
        mine = [ada.remember("of ada").id, ada.journal.save_core("who I am").id]
        others = [bob.remember("of bob").id, memory.remember("shared").id]
        entries = len(memory.audit.search(limit=100))
        with pytest.raises(AccessError, match="agent: this view is bound to bob"):
            bob.forget(agent="ada")
        receipt = memory.forget(agent="ada", reason="removed")
        assert set(receipt.ids) == set(mine)
        assert {record.id for record in memory.list()} == set(others)
        assert len(memory.audit.search(limit=100)) > entries
        assert all(log.ok for log in memory.audit.verify())


@pytest.mark.clause("JRN-11")
def test_an_agent_that_forgets_in_bulk_leaves_what_is_shared(url: str) -> None:
    with Memory(url) as memory:
        ada = memory.at(agent="ada")
        own, shared = ada.remember("mine", tags=["x"]), memory.remember("shared", tags=["x"])
        assert ada.forget(since="2000-01-01").ids == (own.id,)
        assert ada.forget(tag="x").count == 0
        assert ada.forget(tag="x", shared=True).ids == (shared.id,)
        memory.undo()
        assert ada.forget(shared.id).count == 1
