"""Undo: any change can be taken back, last first, by the one who made it, until its traces are removed."""

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from support.common import Clock
from support.stores import STORES, located

from recollect import ConflictError, InputError, Memory, NotFoundError, Record
from recollect.memory import view_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def state(memory: Memory) -> list[Record]:
    return sorted(memory.list(state=None), key=lambda one: one.id)


def ident(memory: Memory, text: str) -> str:
    return next(one.id for one in memory.list(state=None) if one.text == text)


def exported() -> bytes:
    from tempfile import TemporaryDirectory

    out = io.BytesIO()
    with TemporaryDirectory() as folder, Memory(folder) as other:
        other.remember_many(["a bee", {"content": "a wasp", "tier": "workspace"}])
        other.export(out)
    return out.getvalue()


CHANGES: dict[str, Callable[[Memory], object]] = {
    "remember": lambda m: m.remember("a lynx"),
    "remember in the account": lambda m: m.remember("a lynx", tier="account"),
    "remember many": lambda m: m.remember_many(["a lynx", {"content": ["a", "wolf"]}, "an elk"]),
    "revise": lambda m: m.revise(ident(m, "an owl"), content="a robin", tags=["bird"]),
    "forget": lambda m: m.forget(ident(m, "an owl")),
    "forget in the account": lambda m: m.forget(ident(m, "a mole")),
    "forget by tag": lambda m: m.forget(tag="animal"),
    "forget with history": lambda m: m.forget(ident(m, "a newer fox")),
    "archive": lambda m: m.archive(ident(m, "an owl")),
    "restore": lambda m: m.restore(ident(m, "a dodo")),
    "import": lambda m: m.import_(io.BytesIO(exported())),
}


@pytest.fixture
def zoo(memory: Memory) -> Memory:
    memory.remember("an owl", tags=["animal"], embedding=[0.5, 1.5], embedding_model="mini", metadata={"a": [1]})
    memory.remember("a mole", tier="account")
    memory.revise(memory.remember("a fox", tags=["animal"]).id, content="a newer fox")
    memory.archive(memory.remember("a dodo").id, reason="extinct")
    memory.recall("owl")
    return memory


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_is_undone_leaves_everything_as_it_was(zoo: Memory, change: str) -> None:
    before = state(zoo)
    CHANGES[change](zoo)
    assert state(zoo) != before
    entry = zoo.undo()
    assert state(zoo) == before
    assert entry.action == "undo"
    assert entry.message.startswith("undid: ")
    assert [hit.memory.text for hit in zoo.recall("owl")] == ["an owl"]
    assert all(one.ok for one in zoo.audit.verify())
    assert zoo.doctor().ok


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_can_be_undone_by_the_id_of_its_entry(zoo: Memory, change: str) -> None:
    before = state(zoo)
    CHANGES[change](zoo)
    (entry,) = zoo.audit.search(limit=1)
    later = zoo.remember("something unrelated")
    undone = zoo.undo(entry.id)
    assert undone.meta["of"] == entry.id
    assert state(zoo) == sorted([*before, later], key=lambda one: one.id)


def test_undo_by_undo_goes_all_the_way_back(memory: Memory) -> None:
    steps = [state(memory)]
    owl = memory.remember("an owl")
    steps.append(state(memory))
    robin = memory.revise(owl.id, content="a robin")
    steps.append(state(memory))
    memory.archive(robin.id)
    steps.append(state(memory))
    memory.restore(robin.id)
    steps.append(state(memory))
    memory.forget(robin.id)
    while steps:
        memory.undo()
        assert state(memory) == steps.pop()
    with pytest.raises(NotFoundError, match="there is no change to undo"):
        memory.undo()


def test_what_was_undone_can_be_done_again(memory: Memory) -> None:
    owl = memory.remember("an owl")
    memory.revise(owl.id, content="a robin")
    memory.undo()
    memory.revise(owl.id, content="a heron")
    assert [one.text for one in memory.history(owl.id)] == ["an owl", "a heron"]
    memory.undo()
    assert [one.text for one in memory.list(state=None)] == ["an owl"]


@pytest.mark.parametrize(
    ("later", "steps"),
    [
        (lambda m, one: m.archive(one), 1),
        (lambda m, one: m.revise(one, content="a robin"), 1),
        (lambda m, one: (m.archive(one), m.restore(one)), 2),
    ],
    ids=["archived", "revised", "archived and restored"],
)
def test_a_change_that_others_built_on_is_undone_after_them(
    memory: Memory, later: Callable[[Memory, str], object], steps: int
) -> None:
    owl = memory.remember("an owl")
    (first,) = memory.audit.search(limit=1)
    later(memory, owl.id)
    before = state(memory)
    with pytest.raises(ConflictError, match=r"was built on by .*; undo that first"):
        memory.undo(first.id)
    assert state(memory) == before
    for _ in range(steps):
        with pytest.raises(ConflictError):
            memory.undo(first.id)
        memory.undo()
    memory.undo(first.id)
    assert state(memory) == []


def test_a_change_is_undone_once(memory: Memory) -> None:
    memory.remember("an owl")
    (entry,) = memory.audit.search(limit=1)
    memory.undo(entry.id)
    with pytest.raises(NotFoundError, match=f"there is no change {entry.id} to undo"):
        memory.undo(entry.id)


def test_what_was_compacted_away_cannot_be_undone(memory: Memory) -> None:
    owl = memory.remember("an owl")
    memory.forget(owl.id)
    memory.compact()
    with pytest.raises(ConflictError, match="can no longer be undone"):
        memory.undo()
    assert state(memory) == []


def test_what_was_erased_cannot_be_undone(memory: Memory) -> None:
    owl, fox = memory.remember_many(["an owl", "a fox"])
    memory.archive([owl.id, fox.id])
    (archived,) = memory.audit.search(limit=1)
    memory.forget(owl.id, erase=True)
    before = state(memory)
    (erased,) = memory.audit.search(limit=1)
    for entry in (erased.id, None):
        with pytest.raises(ConflictError, match="can no longer be undone"):
            memory.undo(entry)
    assert state(memory) == before
    memory.undo(archived.id)  # what it did to the other memory
    assert [record.id for record in memory.list()] == [fox.id]


def test_a_view_undoes_what_its_own_agent_did(memory: Memory) -> None:
    ada, bob = memory.at(agent="ada"), memory.at(agent="bob")
    mine = ada.remember("an owl")
    (entry,) = memory.audit.search(limit=1)
    shared = memory.remember("shared by all")
    with pytest.raises(NotFoundError):
        bob.undo()
    with pytest.raises(NotFoundError):
        bob.undo(entry.id)
    ada.undo()
    assert memory.list(state=None) == [shared]
    with pytest.raises(NotFoundError):
        ada.get(mine.id)
    with pytest.raises(NotFoundError):
        ada.undo()


def test_the_owner_may_undo_what_an_agent_did(memory: Memory) -> None:
    memory.at(agent="ada").remember("an owl")
    assert memory.undo().actor is None
    assert state(memory) == []


@pytest.mark.parametrize("change", ["missing", "0" * 32])
def test_an_unknown_change_is_not_found(zoo: Memory, change: str) -> None:
    before = state(zoo)
    with pytest.raises(NotFoundError, match=f"there is no change {change} to undo"):
        zoo.undo(change)
    assert state(zoo) == before


def test_the_id_of_a_memory_is_not_a_change(zoo: Memory) -> None:
    with pytest.raises(NotFoundError):
        zoo.undo(ident(zoo, "an owl"))


@pytest.mark.parametrize("change", ["../x", "", "x" * 33, 5, ["a"]])
def test_what_cannot_be_an_entry_is_refused(zoo: Memory, change: object) -> None:
    with pytest.raises(InputError, match=r"^change: "):
        zoo.undo(change)  # type: ignore[arg-type]


def test_what_an_agent_writes_into_the_log_does_not_disturb_undoing(zoo: Memory) -> None:
    before = state(zoo)
    zoo.remember("a lynx")
    (entry,) = zoo.audit.search(limit=1)
    for action in ("undo", "remember", "forget"):
        zoo.audit.record(action, "by hand", {"of": entry.id, "created": [ident(zoo, "an owl")]})
    zoo.undo()
    assert state(zoo) == before


def test_recalls_in_between_are_no_changes(zoo: Memory) -> None:
    zoo.remember("a lynx")
    zoo.recall("lynx")
    zoo.recall("owl")
    zoo.undo()
    assert "a lynx" not in [one.text for one in zoo.list(state=None)]
    assert zoo.get(ident(zoo, "an owl")).access_count == 2


def test_a_quota_that_archived_can_be_undone(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text("[retention]\nquota = 2\n")
    times = (NOW + timedelta(seconds=n) for n in range(1000))
    with Memory(tmp_path / "memory", preset=tmp_path / "small.toml", clock=lambda: next(times)) as memory:
        owl, fox = memory.remember_many([{"content": "an owl", "importance": 0.1}, "a fox"])
        before = state(memory)
        memory.remember("an elk")
        assert memory.get(owl.id).archived_at is not None
        assert memory.undo().message == "undid: archived 1 memory over the quota of 2"
        assert memory.get(owl.id) == owl
        memory.undo()
        assert state(memory) == before
        assert memory.get(fox.id) == fox


def test_a_change_in_two_places_is_undone_as_one(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        stored = memory.remember_many(["here", {"content": "everywhere", "tier": "account"}])
        memory.archive([record.id for record in stored])
        memory.undo()
        assert len(memory.list()) == 2
        memory.forget([record.id for record in stored])
        memory.undo()
        assert len(memory.list()) == 2
        memory.undo()
        assert memory.list() == []


@pytest.mark.parametrize("kind", STORES)
def test_undo_goes_on_to_nothing_older_when_somebody_forgot_the_latest(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "m")) as memory:
        ada = memory.at(agent="ada")
        older = ada.remember("an older note")
        latest = ada.remember("the latest note")
        memory.forget(latest.id)
        with pytest.raises(ConflictError, match="was forgotten since, by someone else"):
            ada.undo()
        assert ada.get(older.id).text == "an older note"
        memory.undo()
        ada.undo()
        assert [record.id for record in ada.list()] == [older.id]


@pytest.mark.parametrize("part", ["account", "conversation", "channel"])
@pytest.mark.parametrize("store", STORES)
def test_what_one_erases_keeps_nobody_else_from_undoing(tmp_path: Path, store: str, part: str) -> None:
    with Memory(located(store, tmp_path / "m")) as memory:
        ada, bob = memory.at(**{part: "ada"}), memory.at(**{part: "bob"})
        tier = {} if part == "account" else {"tier": part}
        hers = ada.remember("an owl", **tier)
        older, his = bob.remember("a fox", **tier), bob.remember("a lynx", **tier)
        ada.archive(hers.id)
        ada.forget(hers.id, erase=True)
        assert bob.undo().message == "undid: remembered a fact"
        assert [record.id for record in bob.list()] == [older.id]
        with pytest.raises(ConflictError, match="can no longer be undone: what it replaced was erased"):
            ada.undo()
        bob.forget(older.id, erase=True)
        with pytest.raises(ConflictError, match="can no longer be undone: what it replaced was erased"):
            bob.undo()
        assert his.id not in [record.id for record in memory.list(state=None)]


@pytest.mark.parametrize("store", STORES)
def test_undo_of_an_account_goes_on_to_nothing_older_when_its_latest_is_gone(tmp_path: Path, store: str) -> None:
    with Memory(located(store, tmp_path / "m")) as memory:
        ada = memory.at(account="ada")
        older, latest = ada.remember("an older note"), ada.remember("the latest note")
        memory.forget(latest.id, erase=True)
        with pytest.raises(ConflictError, match="was forgotten since, by someone else"):
            ada.undo()
        assert ada.list() == [older]


def test_the_audit_log_does_not_name_an_account(tmp_path: Path) -> None:
    with Memory(f"ledger:{tmp_path / 'm'}") as memory:
        record = memory.at(account="ada-lovelace").remember("an owl")
        memory.at(account="ada-lovelace").forget(record.id, erase=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"lovelace" in path.read_bytes()]


@pytest.mark.parametrize("first", ["account", "workspace"])
@pytest.mark.parametrize("store", STORES)
def test_the_change_that_happened_last_is_undone_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, first: str
) -> None:
    second = "workspace" if first == "account" else "account"
    hours = iter(range(20, 0, -1))

    def as_after_a_restart() -> str:
        """Ids as another process makes them, whose clock is behind."""
        return f"{next(hours):06x}{uuid4().hex[6:]}"

    for module in ("recollect.view", "recollect.verbs.remember.draft"):
        monkeypatch.setattr(f"{module}.new_id", as_after_a_restart)
    with Memory(located(store, tmp_path / "m")) as memory:
        for number, tier in enumerate((first, second, first, second)):
            memory.remember(f"note {number}", tier=tier, kind="preference")  # type: ignore[arg-type]
        for number in (3, 2, 1, 0):
            memory.undo()
            assert sorted(record.text for record in memory.list()) == [f"note {one}" for one in range(number)]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("call", "undone"), [("transaction", "alpha"), ("entries", "alpha")])
def test_undo_beside_a_workspace_that_is_begun_takes_back_one_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, call: str, undone: str
) -> None:
    with Memory(located(store, tmp_path / "m"), embedder="none") as memory:
        view = memory.at(workspace="w")
        memory.remember("a mole", tier="account")
        kept = view._view.store
        real = getattr(kept, call)

        def begun_before(*arguments: Any, **options: Any) -> Any:
            monkeypatch.undo()
            other = Thread(target=view.remember, args=("alpha",))
            other.start()
            other.join()
            return real(*arguments, **options)

        monkeypatch.setattr(kept, call, begun_before)
        assert view.undo().action == "undo"
        assert {one.text for one in state(view)} == {"alpha", "a mole"} - {undone}


LITTLE = """
name = "little"
[maintenance]
undo_mb = 0.02
"""


def kept_for_undo(memory: Memory) -> int:
    view = view_of(memory)
    return sum(size.bytes for size in view.store.undo_sizes(view.place))


@pytest.fixture
def little(tmp_path: Path) -> str:
    preset = tmp_path / "little.toml"
    preset.write_text(LITTLE)
    return str(preset)


@pytest.mark.parametrize("kind", STORES)
def test_undo_data_stays_below_its_limit_and_the_oldest_goes_first(tmp_path: Path, kind: str, little: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), preset=little) as memory:
        notes = memory.remember_many([f"heron {n} " + "x" * 400 for n in range(200)])
        for note in notes:
            memory.forget(note.id)
        assert kept_for_undo(memory) < 0.02 * 1024 * 1024 + 64 * 1500  # it is looked at after every 64 changes
        memory.maintain(jobs=["undo"])
        assert 0 < kept_for_undo(memory) <= 0.02 * 1024 * 1024
        changes = {entry.meta["deleted"][0]: entry.id for entry in memory.audit.search(action="forget", limit=200)}
        with pytest.raises(ConflictError, match="can no longer be undone"):
            memory.undo(changes[notes[0].id])
        memory.undo(changes[notes[-1].id])
        assert [record.content for record in memory.list()] == [notes[-1].content]


@pytest.mark.parametrize("kind", STORES)
def test_the_last_change_can_be_undone_however_large_it_was(tmp_path: Path, kind: str, little: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), preset=little) as memory:
        memory.remember_many([{"content": f"heron {n} " + "x" * 400, "tags": ["bird"]} for n in range(100)])
        memory.forget(tag="bird")
        memory.maintain(jobs=["undo"])
        memory.undo()
        assert len(memory.list(limit=200)) == 100


@pytest.mark.parametrize("kind", STORES)
def test_undo_data_expires_also_where_nobody_maintains(tmp_path: Path, kind: str, clock: Clock) -> None:
    with Memory(located(kind, tmp_path / "memory"), clock=clock) as memory:
        for n in range(20):
            memory.forget(memory.remember(f"heron {n}").id)
        before = kept_for_undo(memory)
        clock.now += timedelta(days=31)
        for n in range(64):
            memory.remember(f"owl {n}")
        assert before > kept_for_undo(memory) == 0


@pytest.mark.parametrize("kind", STORES)
def test_erasing_drops_undo_data_that_has_expired(tmp_path: Path, kind: str, clock: Clock) -> None:
    with Memory(located(kind, tmp_path / "memory"), clock=clock) as memory:
        memory.forget(memory.remember("a heron").id)
        owl = memory.remember("an owl")
        clock.now += timedelta(days=31)
        memory.forget(owl.id, erase=True)
        assert kept_for_undo(memory) == 0
