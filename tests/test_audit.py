"""The audit log: one entry for each change and refusal, in order, and any tampering shows."""

import io
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from support.stores import DATABASES, STORES, located

from recollect import AccessError, InputError, Memory, SecretError
from recollect.stores.audit import Entry
from recollect.stores.port import Place

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def log(memory: Memory) -> list[Entry]:
    return memory.audit.search(limit=1000)[::-1]


# One entry each


def _export(memory: Memory) -> io.BytesIO:
    out = io.BytesIO()
    memory.remember("a fox")
    memory.export(out)
    memory.forget(since="2000-01-01")
    return io.BytesIO(out.getvalue())


def _first(memory: Memory) -> str:
    return memory.list(state=None, newest_first=False)[0].id


def _archived(memory: Memory) -> str:
    return memory.archive(_first(memory))[0].id


CHANGES: dict[str, tuple[Callable[[Memory], Any], Callable[[Memory, Any], object], str]] = {
    "remember": (lambda m: None, lambda m, _: m.remember("a lynx", kind="finding"), "remembered a finding"),
    "remember_many": (lambda m: None, lambda m, _: m.remember_many(["a", "b", "c"]), "remembered 3 memories"),
    "revise": (_first, lambda m, one: m.revise(one, content="a robin"), "revised a fact"),
    "archive": (_first, lambda m, one: m.archive(one, reason="winter"), "archived 1 memory: winter"),
    "restore": (_archived, lambda m, one: m.restore(one), "restored 1 memory"),
    "forget": (_first, lambda m, one: m.forget(one, reason="asked"), "forgot 1 memory: asked"),
    "erase": (_first, lambda m, one: m.forget(one, erase=True), "forgot 1 memory"),
    "undo": (lambda m: None, lambda m, _: m.undo(), "undid: remembered a fact"),
    "import": (_export, lambda m, source: m.import_(source), "imported 2 memories"),
}


@pytest.mark.clause("ATL-06")
@pytest.mark.parametrize("verb", CHANGES)
def test_a_change_has_one_entry_with_actor_action_and_message(memory: Memory, verb: str) -> None:
    prepare, change, message = CHANGES[verb]
    me = memory.at(agent="atlas")
    me.remember("an owl")
    given = prepare(me)
    before = len(log(memory))
    change(me, given)
    (entry,) = log(memory)[before:]
    assert entry.action == verb.removesuffix("_many")
    assert (entry.message, entry.actor, entry.at) == (message, "atlas", NOW)
    assert entry.seq == before + 1


@pytest.mark.parametrize(
    "read",
    [
        lambda m: m.get(_first(m)),
        lambda m: m.list(),
        lambda m: m.recall("owl"),
        lambda m: m.history(_first(m)),
        lambda m: m.diagnose(_first(m)),
        lambda m: m.stats(),
        lambda m: m.doctor(),
        lambda m: m.maintain(),
        lambda m: m.compact(),
        lambda m: m.export(io.BytesIO()),
        lambda m: m.audit.verify(),
    ],
)
def test_reading_and_looking_after_leave_no_entry(memory: Memory, read: Callable[[Memory], object]) -> None:
    memory.remember("an owl")
    before = log(memory)
    read(memory)
    assert log(memory) == before


REFUSALS: dict[str, tuple[Callable[[Memory], object], str, str]] = {
    "remember": (lambda m: m.remember(""), "content", "InputError"),
    "many": (lambda m: m.remember_many(["fine", {"content": "x", "kind": "No"}]), "kind", "InputError"),
    "no list": (lambda m: m.remember_many("text"), "items", "InputError"),
    "secret": (lambda m: m.remember("the password" + ": hunter2"), "content", "SecretError"),
    "elsewhere": (lambda m: m.remember("x", channel="sales"), "channel", "AccessError"),
    "revise": (lambda m: m.revise(_first(m), importance=7), "importance", "InputError"),
    "forget": (lambda m: m.forget(), "id", "InputError"),
    "workspace": (lambda m: m.forget(workspace="default"), "workspace", "AccessError"),
    "archive": (lambda m: m.archive("../x"), "id", "InputError"),
    "restore": (lambda m: m.restore(["../x"]), "id", "InputError"),
    "undo": (lambda m: m.undo("../x"), "change", "InputError"),
    "import": (lambda m: m.import_(io.BytesIO(b"{}")), "source", "InputError"),
    "audit": (lambda m: m.audit.record("note", "the password" + ": hunter2"), "message", "SecretError"),
}


@pytest.mark.clause("ATL-06", "AEG-03")
@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_has_one_entry_that_names_field_and_error_but_no_value(memory: Memory, what: str) -> None:
    refused, field, error = REFUSALS[what]
    me = memory.at(agent="atlas", channel="ops")
    me.remember("an owl")
    before = len(log(memory))
    with pytest.raises((InputError, AccessError)):
        refused(me)
    (entry,) = log(memory)[before:]
    assert (entry.action, entry.actor, entry.at) == ("refuse", "atlas", NOW)
    assert (entry.meta["field"], entry.meta["error"]) == (field, error)
    assert entry.message == f"{entry.meta['verb']} refused: {field} ({error})"
    assert "hunter2" not in repr(entry)


BAD: dict[str, Callable[[Memory], object]] = {
    "remember": lambda m: m.remember(""),
    "secret": lambda m: m.remember("the password" + ": hunter2"),
    "forget": lambda m: m.forget(),
    "recall": lambda m: m.recall("x", limit=0),
}


def refusals(memory: Memory, what: str) -> list[str]:
    """What the log says of a refused call."""
    before = len(log(memory))
    with pytest.raises(InputError):
        BAD[what](memory)
    return [entry.action for entry in log(memory)[before:]]


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("store", STORES)
def test_a_refusal_makes_no_place(tmp_path: Path, store: str, what: str) -> None:
    with Memory(located(store, tmp_path / "m"), embedder="none") as memory:
        logged = [] if what == "recall" else ["refuse"]  # what only reads leaves no entry
        nowhere = memory.at(workspace="nowhere")
        assert refusals(nowhere, what) == []
        assert memory._view.store.places("default") == []
        assert not [*tmp_path.rglob("*nowhere*")]
        memory.remember("an owl", tier="account")
        assert refusals(nowhere, what) == logged  # beside what the tenant has
        assert memory.workspaces() == []
        nowhere.remember("a fox")
        assert refusals(nowhere, what) == logged
        there = memory._view.store.entries(Place("default", "nowhere"))
        assert [entry.action for entry in there] == ["remember", *logged]


@pytest.mark.parametrize("store", DATABASES)
def test_a_refusal_makes_no_tenant(tmp_path: Path, store: str) -> None:
    with Memory(located(store, tmp_path / "m"), embedder="none") as memory:
        memory.remember("an owl")
        assert refusals(memory.at(tenant="nobody"), "remember") == []
        assert memory._view.store.places("nobody") == []


@pytest.mark.parametrize("store", STORES)
def test_the_first_call_of_a_memory_is_logged_if_it_is_refused(tmp_path: Path, store: str) -> None:
    with Memory(located(store, tmp_path / "m"), embedder="none") as memory:
        assert refusals(memory, "secret") == ["refuse"]


# Searching


@pytest.mark.clause("ATL-06")
@pytest.mark.parametrize(
    ("message", "query"),
    [
        ("Deployed to Bern", "deployed TO bern"),
        ("Deployed to Bern", "OYED"),
        ("in der Straße", "STRASSE"),
        ("in der STRASSE", "straße"),
        ("ΟΔΟΣ ΑΘΗΝΑΣ", "οδος"),
        ("Ärger im Café", "ärger IM cafÉ"),
        ("100% _done_", "% _DONE"),
        ('it\'s "quoted"', "'S \"Q"),
    ],
)
def test_a_search_finds_a_piece_of_the_message_in_any_case(memory: Memory, message: str, query: str) -> None:
    memory.audit.record("note", "something else")
    found = memory.audit.record("note", message)
    assert memory.audit.search(query) == [found]


@pytest.mark.clause("ATL-06")
def test_a_search_returns_the_newest_ten_first(memory: Memory) -> None:
    memory.at(workspace="shop").audit.record("note", "step 0")
    entries = [memory.audit.record("note", f"step {number}") for number in range(1, 13)]
    found = memory.audit.search("STEP")
    assert found == entries[:1:-1]
    assert len(found) == 10
    assert [entry.message for entry in memory.audit.search("step", limit=100)][-1] == "step 0"
    assert memory.audit.search(limit=2) == entries[:-3:-1]
    with pytest.raises(InputError, match=r"^limit: "):
        memory.audit.search(limit=0)


def test_a_search_can_be_about_one_memory(memory: Memory) -> None:
    owl, fox = memory.remember_many(["an owl"])[0], memory.remember("a fox")
    memory.archive(owl.id)
    assert [entry.action for entry in memory.audit.search(about=owl.id)] == ["archive", "remember"]
    assert [entry.action for entry in memory.audit.search(about=fox.id)] == ["remember"]
    assert memory.audit.search(about="0" * 32) == []
    assert [entry.action for entry in memory.audit.search("ARCHIVED", about=owl.id)] == ["archive"]


@pytest.mark.clause("ATL-06")
def test_each_tenant_has_its_own_log(memory: Memory) -> None:
    acme, other = memory.at(tenant="acme"), memory.at(tenant="other")
    acme.remember("an owl")
    acme.at(workspace="shop").audit.record("note", "in the shop")
    assert other.audit.search() == []
    assert [entry.action for entry in acme.audit.search()] == ["note", "remember"]
    assert [entry.action for entry in acme.at(workspace="shop").audit.search()] == ["note"]


# Recording by hand


@pytest.mark.clause("ATL-06")
def test_an_agent_can_log_what_it_did(memory: Memory) -> None:
    entry = memory.at(agent="atlas").audit.record("deploy", "Deployed version 7", {"version": 7, "to": ["bern"]})
    assert (entry.action, entry.message, entry.actor, entry.at) == ("deploy", "Deployed version 7", "atlas", NOW)
    assert entry.meta == {"details": {"version": 7, "to": ["bern"]}}
    assert memory.audit.search("version 7") == [entry]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("No Action", "text"), "action"),
        (("note", ""), "message"),
        (("note", "x" * 10_001), "message"),
        (("note", 5), "message"),
        (("note", "\ud800"), "message"),
        (("note", "text", {"a": b""}), "meta"),
        (("note", "text", "no object"), "meta"),
    ],
)
def test_a_bad_entry_is_refused(memory: Memory, arguments: tuple[Any, ...], field: str) -> None:
    with pytest.raises(InputError) as caught:
        memory.audit.record(*arguments)
    assert caught.value.field == field
    assert [entry.action for entry in log(memory)] == ["refuse"]


@pytest.mark.clause("AEG-03")
def test_a_secret_is_not_logged(tmp_path: Path, memory: Memory) -> None:
    secret = "gh" + "p_a1B2c3D4e5F6g7H8"
    for arguments in (("note", f"used {secret}"), ("note", "fine", {"key": secret})):
        with pytest.raises(SecretError) as caught:
            memory.audit.record(*arguments)  # type: ignore[arg-type]
        assert secret not in repr(caught.value)
    memory.close()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


# Tampering


def database(tmp_path: Path) -> apsw.Connection:
    (path,) = (tmp_path / "memory").rglob("memory.db")
    return apsw.Connection(str(path))


@pytest.fixture
def sealed(tmp_path: Path, memory: Memory) -> Memory:
    """Five entries, and their file closed."""
    for number in range(1, 6):
        memory.at(agent="atlas").audit.record("note", f"step {number}", {"number": number})
    (result,) = memory.audit.verify()
    assert (result.ok, result.entries, result.tenant, result.workspace) == (True, 5, "default", "default")
    assert result.head == log(memory)[-1].hash
    memory.close()
    return memory


@pytest.mark.clause("ATL-06")
@pytest.mark.parametrize("sql", ["UPDATE audit SET message = 'forged'", "DELETE FROM audit WHERE seq = 5"])
def test_the_log_cannot_be_changed_while_its_guards_are_there(tmp_path: Path, sealed: Memory, sql: str) -> None:
    with database(tmp_path) as connection, pytest.raises(apsw.ConstraintError, match="append-only"):
        connection.execute(sql)
    assert sealed.audit.verify()[0].ok


UNGUARD = "DROP TRIGGER audit_is_append_only_update; DROP TRIGGER audit_is_append_only_delete;"

TAMPERING = {
    "message": ("UPDATE audit SET message = 'forged' WHERE seq = 3", 3),
    "meta": ("""UPDATE audit SET meta = '{"details":{"number":9}}' WHERE seq = 3""", 3),
    "actor": ("UPDATE audit SET actor = 'mallory' WHERE seq = 3", 3),
    "no actor": ("UPDATE audit SET actor = NULL WHERE seq = 1", 1),
    "time": ("UPDATE audit SET at = at + 1 WHERE seq = 5", 5),
    "action": ("UPDATE audit SET action = 'other' WHERE seq = 2", 2),
    "id": ("UPDATE audit SET id = 'other' WHERE seq = 2", 2),
    "hash": (f"UPDATE audit SET hash = '{'0' * 64}' WHERE seq = 4", 4),
    "first removed": ("DELETE FROM audit WHERE seq = 1", 2),
    "middle removed": ("DELETE FROM audit WHERE seq = 3", 4),
    "last removed": ("DELETE FROM audit WHERE seq = 5", 5),
    "last two removed": ("DELETE FROM audit WHERE seq > 3", 4),
    "all removed": ("DELETE FROM audit", 1),
    "removed and closed up": ("DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = seq - 1 WHERE seq > 3", 3),
    "two swapped": (
        "UPDATE audit SET seq = 99 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3;"
        "UPDATE audit SET seq = 3 WHERE seq = 99",
        2,
    ),
    "inserted between": (
        "UPDATE audit SET seq = 6 WHERE seq = 5;"
        "INSERT INTO audit SELECT 5, 'x', at, action, 'forged', actor, meta, hash FROM audit WHERE seq = 4",
        5,
    ),
    "inserted at the end": (
        "INSERT INTO audit SELECT 6, 'x', at, action, 'forged', actor, meta, hash FROM audit WHERE seq = 5",
        6,
    ),
}


@pytest.mark.clause("ATL-06")
@pytest.mark.parametrize("what", TAMPERING)
def test_tampering_is_found_and_located(tmp_path: Path, sealed: Memory, what: str) -> None:
    sql, where = TAMPERING[what]
    with database(tmp_path) as connection:
        connection.execute(UNGUARD + sql)
    (result,) = sealed.audit.verify()
    assert not result.ok
    assert result.breaks[0].seq == where
    assert ("missing" in result.breaks[0].problem) is (what.endswith("removed"))
    health = sealed.doctor()
    assert not health.ok
    assert "audit log broken" in [finding.problem for finding in health.findings]


def test_a_broken_log_still_takes_entries_and_keeps_its_break(tmp_path: Path, sealed: Memory) -> None:
    with database(tmp_path) as connection:
        connection.execute(UNGUARD + "UPDATE audit SET message = 'forged' WHERE seq = 3")
    sealed.remember("an owl")
    (result,) = sealed.audit.verify()
    assert [one.seq for one in result.breaks] == [3]
    assert result.entries == 6


def test_the_log_is_as_durable_as_the_change(tmp_path: Path, memory: Memory) -> None:
    class Broken:
        asked = 0

        def __call__(self) -> datetime:
            self.asked += 1
            if self.asked > 1:
                raise RuntimeError("no time left")
            return NOW

    with Memory(tmp_path / "memory", clock=Broken()) as broken, pytest.raises(RuntimeError):
        broken.remember("an owl")
    assert memory.list(state=None) == []
    assert log(memory) == []


@pytest.mark.clause("ATL-06")
def test_the_log_is_the_organisations_and_ids_and_reasons_are_their_owners(tmp_path: Path) -> None:
    with Memory(tmp_path / "m", preset="atlas") as memory:
        ada = memory.at(agent="ada", workspace="shop")
        kept = [ada.remember(f"note {number}") for number in range(3)]
        ada.forget(kept[0].id, reason="a private matter")
        ada.audit.record("delegate", "sent the invoice to the client", {"to": "bob"})
        assert str(ada.audit.search("private matter"))
        lab = memory.at(agent="bob", workspace="lab")
        assert lab.audit.search(limit=100) == [], "a view that is bound to a workspace looks in no other"
        for other in (memory.at(agent="bob"), memory.at(agent="bob", workspace="shop")):
            entries = other.audit.search(limit=100)
            assert [entry.action for entry in entries] == ["delegate", "forget", "remember", "remember", "remember"]
            assert entries[0].message == "sent the invoice to the client"
            assert "private" not in str(entries)
            assert not any(record.id in str(entries) for record in kept)
            assert other.audit.search("private matter") == []
            assert other.audit.search(about=kept[0].id) == []
            assert other.diagnose(kept[0].id).status == "unknown"
            assert "private matter" not in str(other.consult("private matter"))
        ann = memory.at(account="ann", workspace="shop")
        assert ann.diagnose(kept[0].id).status == "unknown"
        assert "private" not in str(ann.audit.search(limit=100))
        assert memory.at(tenant="elsewhere").audit.search(limit=100) == []


# What an entry is about


@pytest.mark.parametrize("store", STORES)
def test_entries_are_searched_by_action_and_name_what_they_are_about(tmp_path: Path, store: str) -> None:
    with Memory(located(store, tmp_path / "m")) as memory:
        kept = memory.remember("Alice prefers tabs over spaces, in all of her many Python files")
        gone = memory.remember("Bob is allergic to nuts")
        memory.forget(gone.id, reason="asked")
        with pytest.raises(SecretError):
            memory.remember("password: hunter2")

        (forgot,) = memory.audit.search(action="forget")
        assert memory.audit.named(forgot) == {gone.id: ""}
        first = memory.audit.search(action="remember", limit=10)[-1]
        assert memory.audit.named(first) == {kept.id: "Alice prefers tabs over spaces, in all of…"}
        (refused,) = memory.audit.search(action="refuse")
        assert memory.audit.named(refused) == {}
        assert memory.audit.search(action="revise") == []
        assert memory.audit.search("forgot", action="remember") == []
        with pytest.raises(InputError, match=r"^action: "):
            memory.audit.search(action="For get")


def test_a_view_is_told_no_words_of_what_it_does_not_see(memory: Memory) -> None:
    memory.at(agent="zoe").remember("a private thought")
    other = memory.at(agent="max")
    (entry,) = other.audit.search(action="remember")
    assert other.audit.named(entry) == {}
    (own,) = memory.audit.search(action="remember")
    assert list(other.audit.named(own).values()) == [""]
