"""Copies of stores into stores of every kind: exact, whole or to be gone on with, and compared."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from support.common import LONG, Script, times
from support.copying import NOW, die, dump, fill, opened
from support.seeds import drawn, some_of
from support.stores import FILES, STORES, located

from recollect import ConcurrencyError, InputError, Memory, Record, StoreError
from recollect.cli import copying
from recollect.cli.app import cli
from recollect.stores import open_store
from recollect.stores.audit import Entry, check
from recollect.stores.copying import following
from recollect.stores.copying.copy import CLAIMS, Copied, Plan, copy, plan
from recollect.stores.port import Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.stores.undo import NO_UNDO, Undo

HERE = Place("default", "default")
EVERY = pytest.mark.parametrize("store", STORES)
PAIRS = [(one, other) for one in STORES for other in STORES]
BOTH = pytest.mark.parametrize(("one", "other"), PAIRS)
PAIRS_WITH_SQLITE = [pair for pair in PAIRS if "sqlite" in pair]
WITH_SQLITE = pytest.mark.parametrize(("one", "other"), PAIRS_WITH_SQLITE)
EACH_ONCE = pytest.mark.parametrize(
    ("one", "other"), PAIRS if LONG else [(one, STORES[number - 1]) for number, one in enumerate(STORES)]
)
"""Each kind of store once as the source and once as the target; all pairs where there is time."""


def copied(source: str, target: str, **how: Any) -> Copied:
    with closing(open_store(source)) as one, closing(open_store(target)) as other:
        return copy(one, other, **how)


def planned(source: str, target: str, **how: Any) -> Plan:
    with closing(open_store(source)) as one, closing(open_store(target)) as other:
        return plan(one, other, **how)


def exported(location: str) -> bytes:
    out = io.BytesIO()
    with opened(location) as memory:
        memory.export(out)
    return out.getvalue()


def renames(one: str, other: str) -> bool:
    return other == "notebook" != one


@pytest.fixture
def full(tmp_path: Path) -> Callable[[str], str]:
    """A store of a kind with some of everything."""

    def full(kind: str) -> str:
        location = located(kind, tmp_path / "full")
        fill(location)
        return location

    return full


@BOTH
def test_everything_is_copied_exactly(tmp_path: Path, full: Callable[[str], str], one: str, other: str) -> None:
    source, target, lost = full(one), located(other, tmp_path / "copy"), renames(one, other)
    done = copied(source, target, lossy=lost)
    assert dump(target, renamed=lost) == dump(source, renamed=lost)
    assert (done.resumed, done.rounds, bool(done.losses)) == (False, 1, lost)
    assert {(place.tenant, place.workspace) for place in done.places} == {
        ("Acme", "Shop"), ("default", "default"), ("default", " engine"), ("default", None)
    }  # fmt: skip
    assert (done.memories, sum(place.things for place in done.places)) == (20, 8)
    if not lost:
        assert exported(target) == exported(source)
        with opened(target) as memory:
            assert memory.undo().action  # as the source would have
            assert memory.doctor().ok
    with closing(open_store(target)) as store:
        assert [place for place in store.places("default") if place.workspace == CLAIMS] == []


@pytest.mark.parametrize("other", [kind for kind in STORES if kind not in ("sqlite", "notebook")])
def test_there_and_back_gives_the_same_export_to_the_byte(
    tmp_path: Path, full: Callable[[str], str], other: str
) -> None:
    source = full("sqlite")
    there, back = located(other, tmp_path / "there"), located("sqlite", tmp_path / "back")
    first, second = copied(source, there), copied(there, back)
    assert exported(back) == exported(source)
    assert dump(back) == dump(source)
    assert [place.checksum for place in first.places] == [place.checksum for place in second.places]


def test_where_ids_change_what_names_them_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_BATCH", 2)  # so that what names and what is named are stored at other times
    source, target = f"sqlite:{tmp_path}/full", f"notebook:{tmp_path}/copy"
    with opened(source) as memory:
        old = memory.remember("old")
        memory.remember_many([f"between {number}" for number in range(5)])
        new = memory.revise(old.id, content="new")
        memory.remember("about it", references=[old.id, "abc"])
    assert copied(source, target, lossy=True).rounds == 2
    with opened(target) as notes:
        by_text = {record.text: record for record in notes.list(state=None, limit=100)}
        assert by_text["old"].superseded_by == by_text["new"].id == "m-7"
        assert by_text["about it"].references == (by_text["old"].id, "abc")
        assert [one.text for one in notes.history(by_text["new"].id)] == ["old", "new"]
    assert new.superseded_by is None


# Killed


@pytest.fixture(scope="module")
def killer() -> Iterator[Script]:
    script = Script("from support.copying import serve; serve()")
    yield script
    script.kill()
    script.communicate()


def killed(killer: Script, source: str, target: str, at: int, after: bool) -> list[str] | None:
    """None if it was; else, what it called to write."""
    killer.tell(f"{source} {target} {at} {'after' if after else 'before'}")
    outcome, *calls = killer.line().split(" ")
    assert outcome in ("killed", "done"), (outcome, calls)
    return None if outcome == "killed" else calls


def points(calls: list[str]) -> Iterator[tuple[int, bool]]:
    """Before which calls a copy is killed: each (where there is time), else a twentieth; and at the end.

    What was written after one is what was written before the next.
    """
    yield from ((number, False) for number in some_of(range(1, len(calls) + 1), 0.05))
    yield len(calls), True


@pytest.mark.slow
@WITH_SQLITE
def test_killed_at_each_write_it_goes_on_where_it_was(
    tmp_path: Path, full: Callable[[str], str], killer: Script, one: str, other: str
) -> None:
    source, lost = full(one), renames(one, other)
    expected = dump(source, renamed=lost)
    calls = killed(killer, source, located(other, tmp_path / "whole"), 0, after=False)
    assert calls is not None
    assert len(calls) > 10
    for number, after in points(calls):
        target = located(other, tmp_path / f"copy-{number}-{after}")
        assert killed(killer, source, target, number, after) is None
        assert copied(source, target, lossy=lost).resumed or number == 1, calls[number - 1]
        assert dump(target, renamed=lost) == expected


@pytest.mark.slow
@WITH_SQLITE
def test_killed_again_and_again_it_comes_to_its_end(
    tmp_path: Path, full: Callable[[str], str], killer: Script, one: str, other: str
) -> None:
    source, target, lost = full(one), located(other, tmp_path / "copy"), renames(one, other)
    turns = 0
    while killed(killer, source, target, 12, after=True) is None:
        turns += 1
        assert turns < 100
    assert turns > 2
    assert dump(target, renamed=lost) == dump(source, renamed=lost)


@pytest.mark.slow
@pytest.mark.parametrize("other", FILES)
def test_the_command_killed_at_any_time_goes_on(tmp_path: Path, other: str) -> None:
    source, target = f"{'notebook' if other == 'notebook' else 'sqlite'}:{tmp_path}/full", f"{other}:{tmp_path}/copy"
    with opened(source) as memory:
        memory.remember_many([f"memory {number} " + "x" * 400 for number in range(3000)])
        for number in range(100):
            memory.remember(f"one by one {number}")
    chance, deaths = random.Random(other), 0
    command = [sys.executable, "-m", "recollect", "copy", source, target]
    for turn in range(60):
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not (tmp_path / "copy").exists() and running.poll() is None:  # it has hardly begun before
            time.sleep(0.005)
        try:
            # The first dies at once, however quick the machine; later ones come further and further.
            _, problem = running.communicate(timeout=chance.uniform(0.0, 0.3) * turn / 4)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            running.communicate()
            deaths += 1
            continue
        assert running.returncode == 0, problem
        break
    assert deaths
    assert dump(target) == dump(source)


COPYING = """
import sys
from contextlib import closing
from recollect import RecollectError
from recollect.stores import open_store
from recollect.stores.copying import copy
from recollect.stores.copying import following
following._BATCH = 2
source, *targets = sys.argv[1:]
for target in targets:
    print("ready", flush=True)
    sys.stdin.readline()
    with closing(open_store(source)) as one, closing(open_store(target)) as other:
        try:
            copy.copy(one, other)
            print("copied", flush=True)
        except RecollectError as error:
            print(str(error).splitlines()[0], flush=True)
"""


@pytest.mark.parametrize("other", [kind for kind in STORES if kind != "notebook"])
def test_two_that_copy_the_same_at_once_double_nothing(
    tmp_path: Path, full: Callable[[str], str], start: Callable[..., Script], other: str
) -> None:
    source = full("sqlite")
    targets = [located(other, tmp_path / f"copy{number}") for number in times(8)]
    both = [start(COPYING, source, *targets) for _ in range(2)]
    for target in targets:
        assert [one.line() for one in both] == ["ready"] * 2
        for one in both:
            one.tell("go")
        outcomes = [one.line() for one in both]
        copied(source, target)
        assert dump(target) == dump(source), outcomes
    for one in both:
        one.finish()


# Refusals


@EACH_ONCE
def test_a_target_that_holds_something_is_refused_and_left_alone(tmp_path: Path, one: str, other: str) -> None:
    source, target = located(one, tmp_path / "full"), located(other, tmp_path / "copy")
    with opened(source) as memory:
        memory.remember("a heron")
    with opened(target) as memory:
        memory.remember("there already")
    before = dump(target)
    for call in (planned, copied):
        with pytest.raises(InputError, match="target: holds something already, in the workspace default"):
            call(source, target)
    assert dump(target) == before


@EACH_ONCE
def test_a_second_copy_finds_all_of_it_there_and_writes_nothing(
    tmp_path: Path, full: Callable[[str], str], one: str, other: str
) -> None:
    source, target, lossy = full(one), located(other, tmp_path / "copy"), renames(one, other)
    first = copied(source, target, lossy=lossy)
    before = dump(target)
    with closing(open_store(source)) as from_, closing(open_store(target)) as to:
        calls = die(to, 0, after=False)  # which is never
        assert plan(from_, to).resumes
        again = copy(from_, to, lossy=lossy)
        assert calls == []
    assert (again.places, again.losses, again.resumed, again.rounds) == (first.places, first.losses, True, 1)
    assert dump(target) == before


@pytest.mark.parametrize("whose", ["source", "target"])
@EVERY
def test_a_second_copy_is_refused_where_one_of_them_was_written_to(
    tmp_path: Path, full: Callable[[str], str], store: str, whose: str
) -> None:
    source, target, lossy = full("sqlite"), located(store, tmp_path / "copy"), renames("sqlite", store)
    copied(source, target, lossy=lossy)
    written = source if whose == "source" else target
    with opened(written) as memory:  # as many as before, and then more
        newest = memory.remember("the newest")
        memory.archive(newest.id)
        changes = [lambda: memory.forget(newest.id), lambda: memory.remember("more")]
        for change in changes:
            change()
            before = dump(target)
            for call in (planned, copied):
                with pytest.raises(InputError, match="target: holds something already, in the workspace"):
                    call(source, target, **({"lossy": lossy} if call is copied else {}))
            assert dump(target) == before


@pytest.mark.parametrize("store", FILES)
def test_a_store_is_not_copied_into_itself(tmp_path: Path, store: str) -> None:
    source = f"{store}:{tmp_path}/full"
    fill(source)
    (tmp_path / "link").symlink_to(tmp_path / "full")
    before = sorted(tmp_path.rglob("*"))
    others = [source, f"{store}:{tmp_path}/link", f"sqlite:{tmp_path}/full", f"ledger:{tmp_path}/full/../full"]
    for target in others:
        with pytest.raises(InputError, match="target: is where the source is"):
            copied(source, target)
    if store != "notebook":
        with pytest.raises(InputError, match=r"target: .*is inside the store"):
            copied(source, f"sqlite:{tmp_path}/full/inside")
        with pytest.raises(InputError, match="is inside the store"):
            copied(source, f"sqlite:{tmp_path}")
    with closing(open_store(source)) as same, pytest.raises(InputError, match="is where the source is"):
        copy(same, same)
    assert sorted(tmp_path.rglob("*")) == before


@EVERY
def test_an_empty_source_and_an_unknown_tenant_are_refused(tmp_path: Path, store: str) -> None:
    source, target = located(store, tmp_path / "full"), located("sqlite", tmp_path / "copy")
    with pytest.raises(InputError, match="source: holds nothing"):
        copied(source, target)
    with opened(source) as memory:
        memory.remember("a heron")
    with pytest.raises(InputError, match="tenant: there is no 'acme' in the source"):
        copied(source, target, tenants=["default", "acme"])
    assert not (tmp_path / "copy").exists()


@EVERY
def test_tenants_are_copied_one_by_one_or_some_of_them(tmp_path: Path, full: Callable[[str], str], store: str) -> None:
    source, target = full("sqlite"), located(store, tmp_path / "copy")
    lossy = renames("sqlite", store)
    copied(source, target, tenants=["Acme"], lossy=lossy)
    assert list(dump(target)) == [repr(Place("Acme", "Shop"))]
    with pytest.raises(InputError, match="holds something already, in the workspace Shop of the tenant Acme"):
        copied(source, target, lossy=lossy)
    copied(source, target, tenants=["default", "default"], lossy=lossy)
    assert dump(target, renamed=lossy) == dump(source, renamed=lossy)


class StoppedError(Exception):
    pass


def stopping(at: int, phase: str = "Copying") -> Callable[..., None]:
    def told(what: str, done: int, total: int | None) -> None:
        if what == phase and done >= at:
            raise StoppedError

    return told


def begun(source: str, target: str, at: int = 9, **how: Any) -> None:
    """A copy that was stopped on its way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "_BATCH", 3)
        with pytest.raises(StoppedError):
            copied(source, target, progress=stopping(at), **how)


@EVERY
def test_a_copy_of_something_else_is_not_gone_on_with(tmp_path: Path, full: Callable[[str], str], store: str) -> None:
    source, target, another = full("sqlite"), located(store, tmp_path / "copy"), f"sqlite:{tmp_path}/another"
    lossy = store == "notebook"
    fill(another)
    begun(source, target, lossy=lossy)
    before = dump(target)
    with pytest.raises(InputError, match="holds the beginning of a copy of something else"):
        copied(another, target, lossy=lossy)
    with pytest.raises(InputError, match="source: is itself a copy that was not finished"):
        copied(target, f"sqlite:{tmp_path}/more")
    assert dump(target) == before
    assert copied(source, target, lossy=lossy).resumed
    assert dump(target, renamed=lossy) == dump(source, renamed=lossy)


@EVERY
def test_what_somebody_wrote_into_an_unfinished_copy_is_not_lost(
    tmp_path: Path, full: Callable[[str], str], store: str
) -> None:
    source, target = full("sqlite"), located(store, tmp_path / "copy")
    lossy = store == "notebook"
    begun(source, target, lossy=lossy)
    with opened(target) as memory:
        mine = memory.remember("mine")
    with opened(source) as memory:
        memory.remember("the source goes on, too")
    with pytest.raises(InputError, match="has another audit log in the workspace default than the source"):
        copied(source, target, lossy=lossy)
    with opened(target) as memory:
        assert memory.get(mine.id).text == "mine"


@pytest.mark.parametrize("how", ["added", "changed"])
def test_a_memory_that_no_copy_put_there_is_refused(tmp_path: Path, full: Callable[[str], str], how: str) -> None:
    source, target = full("sqlite"), f"ledger:{tmp_path}/copy"
    begun(source, target)
    with closing(open_store(target)) as store:
        (first, *_) = store.scan(following.memories_of(HERE))
        forged = replace(first, content="forged", id="f" * 32 if how == "added" else first.id)
        if how == "changed":
            store.delete(HERE, [first.id])
        store.put(HERE, [replace(forged, checksum=forged.digest())])
    before = dump(target)
    with pytest.raises(
        InputError, match=f"holds the memory {forged.id} in the workspace default and the source does not"
    ):
        copied(source, target)
    assert dump(target) == before


# What a target cannot hold


def test_ids_that_a_notebook_would_change_are_named_before(tmp_path: Path, full: Callable[[str], str]) -> None:
    source, target = full("sqlite"), f"notebook:{tmp_path}/copy"
    with pytest.raises(InputError, match=r"workspace default: 18 would get other ids .*`lossy` copies the rest"):
        copied(source, target)
    losses = planned(source, target).losses
    assert [(loss.tenant, loss.workspace, loss.fields) for loss in losses] == [
        ("Acme", "Shop", ("id", "checksum")),
        ("default", "default", ("id", "checksum")),
        ("default", None, ("id", "checksum")),
    ]
    assert not (tmp_path / "copy").exists()
    copied(source, target, lossy=True)
    with opened(target) as notes:
        assert {record.id for record in notes.list(state=None, limit=100)} == {
            *(f"m-{number}" for number in range(1, 19)), "m-1000000001"
        }  # fmt: skip


def test_a_ledger_that_is_too_small_is_named_before(tmp_path: Path) -> None:
    source, target = f"sqlite:{tmp_path}/full", f"ledger:{tmp_path}/copy"
    with opened(source) as memory:
        memory.at(workspace="small").remember("a heron")
        memory.remember_many([f"{number} " + "x" * 20_000 for number in range(60)])
    (tmp_path / "copy").mkdir()
    config = tmp_path / "copy" / "config.json"
    config.write_text('{"storage": {"max_session_size_mb": 1}}')
    for lossy in (False, True):
        with pytest.raises(
            InputError, match=r"workspace default: takes .* storage.max_session_size_mb .* to 2 or more"
        ):
            copied(source, target, lossy=lossy)
    (loss,) = planned(source, target).losses
    assert (loss.workspace, loss.possible, loss.fields) == ("default", False, ())
    assert os.listdir(tmp_path / "copy") == ["config.json"]
    config.write_text('{"storage": {"max_session_size_mb": 2}}')
    assert copied(source, target).losses == ()
    assert dump(target) == dump(source)


def test_settings_and_who_a_session_is_for_are_named(tmp_path: Path) -> None:
    source = f"ledger:{tmp_path}/full"
    with opened(source) as memory:
        memory.sessions.create("alice", session_id="hers", decay={"half_life_hours": 12})
        memory.at(workspace="hers").remember("a heron")
        memory.remember("a fox")
    problems = [str(loss) for loss in planned(source, f"sqlite:{tmp_path}/copy").losses]
    assert [problem.partition(": ")[0] for problem in problems] == ["the workspace hers"] * 2
    assert "settings" in problems[0]
    assert "who the session is for" in problems[1]
    copied(source, f"sqlite:{tmp_path}/copy", lossy=True)
    assert dump(f"sqlite:{tmp_path}/copy") == dump(source)


def test_damage_is_named_and_the_rest_can_be_copied(tmp_path: Path) -> None:
    source, target = f"ledger:{tmp_path}/full", f"sqlite:{tmp_path}/copy"
    with opened(source) as memory:
        memory.remember("a heron")
        memory.remember("a fox")
        memory.remember("an owl")
    log = tmp_path / "full/sessions/default/memory.jsonl"
    log.write_text(log.read_text().replace("a fox", "a cat"))
    entries = tmp_path / "full/sessions/default/audit.jsonl"
    lines = entries.read_text().splitlines(keepends=True)
    entries.write_text(lines[0] + lines[1].replace("fact", "gossip").replace("remember", "forget") + lines[2])
    with pytest.raises(InputError, match=r"checksum.*entry 2 does not match its hash"):
        copied(source, target)
    assert not (tmp_path / "copy").exists()
    done = copied(source, target, lossy=True)
    assert (done.memories, done.places[0].entries) == (2, 1)  # a log is not sealed anew behind a break
    with opened(target) as memory:
        assert sorted(record.text for record in memory.list()) == ["a heron", "an owl"]
        assert all(log.ok for log in memory.audit.verify())


def test_a_plan_writes_nothing(tmp_path: Path, full: Callable[[str], str]) -> None:
    source = full("sqlite")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    for kind in FILES:
        shown = planned(source, f"{kind}:{tmp_path}/copy")
        assert (shown.tenants, len(shown.places), shown.memories, shown.resumes) == (("Acme", "default"), 4, 20, False)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.db")}
    assert files == {path: at for path, at in before.items() if path.suffix == ".db"}
    assert not (tmp_path / "copy").exists()


# A source that is written to


def named(memory: Memory, text: str) -> Record:
    return next(record for record in memory.list(state=None, limit=1000) if record.text == text)


def forget_first(memory: Memory) -> None:
    memory.forget(min(memory.list(state=None, limit=1000), key=lambda record: record.created_at).id)


def forget_and_undo(memory: Memory) -> None:
    """It comes last then of those of its time."""
    memory.forget(named(memory, "tie 2").id)
    memory.undo()


def reshelve(store: Store) -> None:
    store.remove(HERE, "notes", ["a"])
    store.keep(HERE, ShelfItem("notes", "a", {"again": 1}))
    store.keep(HERE, ShelfItem("notes", "c", {"changed": 1}))
    store.keep(HERE, ShelfItem("notes", "last", {}))


def on_store(change: Callable[[Store], object]) -> Callable[[Memory], object]:
    return lambda memory: change(memory._view.store)


CHANGES: dict[str, Callable[[Memory], object]] = {
    "remember": lambda memory: memory.remember("new"),
    "remember old": lambda memory: memory.remember("older than all", created_at="0001-01-01T00:00:00Z"),
    "forget": lambda memory: memory.forget(named(memory, "archived").id),
    "forget first": forget_first,
    "forget and undo": forget_and_undo,
    "revise": lambda memory: memory.revise(named(memory, "tie 3").id, content="revised"),
    "restore": lambda memory: memory.restore(named(memory, "archived").id),
    "retrieve": lambda memory: memory.recall("tie"),
    "embed": on_store(lambda store: store.embed(HERE, "mini", {first(store).id: b"\0\0\x80?"})),
    "begin a workspace": lambda memory: memory.at(workspace="new").remember("in a new one"),
    "drop a workspace": on_store(lambda store: store.drop(Place("Acme", "Shop"))),
    "shelves": on_store(reshelve),
}


WHEN = [("Copying", 14), ("Verifying", 39), ("Copying", 20), ("Verifying", 1)]
MEANWHILE = [(*pair, what, when) for what in CHANGES for when in WHEN for pair in PAIRS_WITH_SQLITE]
"""Each change at each time on each pair; where there is no time for all of them, each change on two pairs."""
if not LONG:
    _draw = drawn("copying meanwhile").choice
    MEANWHILE = [(*_draw(PAIRS_WITH_SQLITE), what, _draw(WHEN)) for what in CHANGES for _ in range(2)]
    MEANWHILE = list(dict.fromkeys(MEANWHILE))


def first(store: Store) -> Record:
    return next(iter(store.scan(following.memories_of(HERE))))


@pytest.mark.parametrize(("one", "other", "what", "when"), MEANWHILE)
def test_what_is_written_meanwhile_is_in_the_copy_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: str, other: str, what: str, when: tuple[str, int]
) -> None:
    monkeypatch.setattr(following, "_BATCH", 2)
    source, target, lossy = located(one, tmp_path / "full"), located(other, tmp_path / "copy"), renames(one, other)
    fill(source)
    told = Writing(source, when, CHANGES[what], lossy)
    done = copied(source, target, lossy=lossy, progress=told)
    assert told.before not in ({}, dump(source, renamed=lossy))
    assert done.rounds <= 3
    after, held = dump(source, renamed=lossy), dump(target, renamed=lossy)
    if when[0] == "Copying":
        assert held == after
    else:  # the copy is of a moment before all was compared, or after what was then different was gone through again
        assert held in (told.before, after)


class Writing:
    """Progress that writes to the source when it has come that far."""

    def __init__(self, source: str, when: tuple[str, int], change: Callable[[Memory], object], renamed: bool) -> None:
        self.source, self.when, self.change, self.renamed = source, when, change, renamed
        self.before: dict[str, Any] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if not self.before and what == self.when[0] and done >= self.when[1]:
            self.before = dump(self.source, renamed=self.renamed)
            with opened(self.source) as memory:
                self.change(memory)


@EVERY
def test_a_source_that_never_rests_gives_no_torn_copy(tmp_path: Path, store: str) -> None:
    source, target = located("sqlite", tmp_path / "full"), located(store, tmp_path / "copy")
    lossy = renames("sqlite", store)
    fill(source)

    def told(what: str, done: int, total: int | None) -> None:
        if what == "Verifying" and done == 1:
            with opened(source) as memory:
                memory.remember("one more", again=True)

    with pytest.raises(ConcurrencyError, match="the source is written to all the time, last in"):
        copied(source, target, lossy=lossy, progress=told)
    with closing(open_store(target)) as unfinished:
        assert any(place.workspace == CLAIMS for place in unfinished.places("Acme"))
    assert copied(source, target, lossy=lossy).resumed
    assert dump(target, renamed=lossy) == dump(source, renamed=lossy)


WRITER = """
import sys, time
from support.copying import opened
number = 0
with opened(sys.argv[1]) as memory:
    while True:
        left, right = memory.remember_many([f"heron {number} left", f"heron {number} right"])
        memory.revise(left.id, content=f"heron {number} left again")
        memory.forget(right.id)
        memory.undo()
        number += 1
        print(number, flush=True)
        time.sleep(float(sys.argv[2]))
"""


@pytest.mark.slow
@EVERY
def test_while_another_process_writes_a_copy_is_of_one_moment_or_none(
    tmp_path: Path, start: Callable[..., Script], store: str
) -> None:
    source = located(store, tmp_path / "full")
    with opened(source) as memory:
        memory.remember_many([f"fox {number}" for number in range(300)])
    writer = start(WRITER, source, 0.15)
    for _ in range(3):
        assert writer.line()
    whole = refused = 0
    for number in times(12):
        target = located("sqlite", tmp_path / f"copy{number}")
        try:
            copied(source, target)
        except ConcurrencyError:
            refused += 1
            continue
        whole += 1
        with opened(target) as memory:
            assert_of_one_moment(memory)
    writer.kill()
    writer.wait()
    assert whole, f"{refused} refused"
    copied(source, located("sqlite", tmp_path / "after"))
    assert dump(located("sqlite", tmp_path / "after")) == dump(source)


def assert_of_one_moment(memory: Memory) -> None:
    records = memory.list(state=None, limit=10_000)
    held, made = {record.id for record in records}, set[str]()
    for entry in memory.audit.search(limit=10_000):
        made.update(entry.meta.get("created", ()))
    deleted = made - held
    assert held <= made
    assert len(deleted) <= 1  # what was forgotten, and not brought back at that moment
    assert {record.superseded_by for record in records} - {None} <= held
    assert all(log.ok for log in memory.audit.verify())
    assert memory.doctor().ok


# What is compared


def test_a_target_that_loses_something_is_found_out(tmp_path: Path, full: Callable[[str], str]) -> None:
    source = full("sqlite")

    def losing(name: str, change: Callable[[Any], Any]) -> None:
        with closing(open_store(source)) as one, closing(open_store(f"sqlite:{tmp_path}/{name}")) as other:
            target: Any = other
            put, keep, append = target.put, target.keep, target.append
            change((target, put, keep, append))
            with pytest.raises(StoreError, match=r"target (does not hold|seals)"):
                copy(one, other)
            assert Place("Acme", CLAIMS) in other.places("Acme")

    def no_tags(parts: Any) -> None:
        parts[0].put = lambda place, records: parts[1](place, [replace(one, tags=()) for one in records])
        parts[0].update = lambda place, records: None

    def no_vectors(parts: Any) -> None:
        parts[0].put = lambda place, records: parts[1](place, [replace(one, embedding=None) for one in records])
        parts[0].embed = lambda place, model, vectors: None

    def cut(parts: Any) -> None:
        parts[0].put = lambda place, records: parts[1](place, [replace(one, content=one.text[:4]) for one in records])

    def one_less(parts: Any) -> None:
        parts[0].put = lambda place, records: parts[1](place, records[:-1])

    def other_order(parts: Any) -> None:
        parts[0].put = lambda place, records: parts[1](place, records[::-1])

    def versions(parts: Any) -> None:
        parts[0].keep = lambda place, thing, expect=None, exact=False: parts[2](place, thing, expect=expect)

    def no_undo(parts: Any) -> None:
        parts[0].append = lambda place, entry, undo=NO_UNDO: parts[3](place, entry)

    def words(parts: Any) -> None:
        def append(place: Place, entry: Entry, undo: Undo = NO_UNDO) -> Entry:
            return parts[3](place, replace(entry, message="shorter"), undo)

        parts[0].append = append

    for change in (no_tags, no_vectors, cut, one_less, other_order, versions, no_undo, words):
        losing(change.__name__, change)


@pytest.mark.parametrize("store", FILES)
def test_what_is_changed_behind_its_back_is_found_out(tmp_path: Path, full: Callable[[str], str], store: str) -> None:
    source, target = full("notebook"), f"{store}:{tmp_path}/copy"

    def told(what: str, done: int, total: int | None) -> None:
        if what == "Verifying" and done == 1:  # all is copied by then
            with closing(open_store(target)) as other:
                last = next(iter(other.scan(following.memories_of(HERE), order="newest", limit=1)))
                other.delete(HERE, [last.id])
                forged = replace(last, content="forged")
                other.put(HERE, [replace(forged, checksum=forged.digest())])

    with pytest.raises(StoreError, match="does not hold what it was given: holds the memory"):
        copied(source, target, progress=told)


def test_undo_that_the_source_drops_meanwhile_is_dropped_in_the_target(
    tmp_path: Path, full: Callable[[str], str]
) -> None:
    source, target = full("sqlite"), f"sqlite:{tmp_path}/copy"
    told = Writing(source, ("Verifying", 1), lambda memory: memory.compact(), renamed=False)
    assert copied(source, target, progress=told).rounds > 1
    assert dump(target) == dump(source)
    with closing(open_store(target)) as store:
        assert store.undo_sizes(HERE) == []


def test_the_checksums_are_of_all_that_is_there(tmp_path: Path) -> None:
    sums = set[str]()
    for number, change in enumerate([None, "memory", "thing", "entry", "undo"]):
        source = f"sqlite:{tmp_path}/full{number}"
        with closing(open_store(source)) as store:
            record = Record("a" * 32, following.Address(), "workspace", "fact", "x", 0.5, NOW, NOW)
            store.put(HERE, [replace(record, importance=0.6 if change == "memory" else 0.5)])
            store.keep(HERE, ShelfItem("notes", "a", {"n": change == "thing"}))
            entry = Entry(0, "e", NOW, "test", str(change == "entry"), None, {})
            store.append(HERE, entry, Undo.of([replace(record, importance=0.1 if change == "undo" else 0.2)], ()))
        (place,) = copied(source, f"sqlite:{tmp_path}/copy{number}", lossy=True).places
        sums.add(place.checksum)
    assert len(sums) == 5


# Large ones


@pytest.mark.slow
@EVERY
def test_many_memories_stream(tmp_path: Path, store: str) -> None:
    source, target = f"sqlite:{tmp_path}/full", located(store, tmp_path / "copy")
    many = 10_000 if LONG else 4_000 if store == "sqlite" else 2_000
    with opened(source) as memory:
        for begin in range(0, many, 1000):
            memory.remember_many(
                [{"content": f"memory {n} " + "x" * 300, "created_at": NOW} for n in range(begin, begin + 1000)]
            )
    lossy = renames("sqlite", store)
    seen: list[tuple[str, int, int | None]] = []
    if store == "sqlite":
        tracemalloc.start()
    done = copied(source, target, lossy=lossy, progress=lambda *told: seen.append(told) if told[1] % 500 == 0 else None)
    if store == "sqlite":
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3_000_000, peak  # the whole of it takes a kilobyte for each memory, and more
    assert done.memories == many
    assert ("Copying", many, many) in seen
    assert ("Verifying", 2 * many, 2 * many) in seen
    assert dump(target, renamed=lossy) == dump(source, renamed=lossy)


@EVERY
def test_logs_and_shelves_of_many_pages_are_copied(tmp_path: Path, store: str) -> None:
    source, target = f"sqlite:{tmp_path}/full", located(store, tmp_path / "copy")
    with closing(open_store(source)) as one, one.transaction(HERE):
        for number in range(1300):
            undo = Undo(things=[ShelfItem("a", "b", {})])
            one.append(HERE, Entry(0, f"e{number}", NOW, "test", f"{number}", None, {}), undo)
            one.keep(HERE, ShelfItem(f"shelf {number % 3}", f"{number // 2}", {"n": number}))
    copied(source, target)
    assert dump(target) == dump(source)
    with closing(open_store(target)) as other:
        assert check(other.entries(HERE), other.written(HERE)) == []
        assert other.written(HERE) == 1300


# The command


def run(*words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(cli, ["copy", *words])
    assert done.exit_code == code, done.output
    return done


def test_the_command_copies_and_tells(tmp_path: Path, full: Callable[[str], str]) -> None:
    source, target = full("sqlite"), f"ledger:{tmp_path}/copy"
    shown = run(source, target, "--dry-run").stdout
    assert "Would copy 20 memories in 4 places to" in shown
    assert "Nothing would be lost." in shown
    assert not (tmp_path / "copy").exists()
    said = run(source, target).stdout
    assert [line.split()[:4] for line in said.splitlines()[:5]] == [
        ["workspace", "memories", "things", "audit"],
        ["Acme/Shop", "1", "0", "1"],
        ["engine", "0", "1", "0"],
        ["default", "18", "5", said.splitlines()[3].split()[3]],
        ["(accounts)", "1", "2", said.splitlines()[4].split()[3]],
    ]
    assert f"Copied 20 memories to {target}; all of it compared." in said
    assert dump(target) == dump(source)
    assert "All of it was there already: 20 memories" in run(source, target).stdout
    with opened(source) as memory:
        memory.remember("a fox")
    assert "target: holds something already" in run(source, target, code=1).stderr
    assert "is where the source is" in run(source, source, code=1).stderr


@EVERY
def test_the_command_copies_to_any_store_and_back(tmp_path: Path, full: Callable[[str], str], store: str) -> None:
    source, there, back = full("sqlite"), located(store, tmp_path / "there"), f"sqlite:{tmp_path}/back"
    lossy = ["--lossy"] if store == "notebook" else []
    assert "Copied 20 memories" in run(source, there, *lossy).stdout
    assert "Copied 20 memories" in run(there, back).stdout
    assert dump(back, renamed=bool(lossy)) == dump(source, renamed=bool(lossy))


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("postgresql://ann:hunter2@db/shop", "postgresql://ann:…@db/shop"),
        ("postgresql://db/shop?sslpassword=hunter2&password=hunter2&user=ann", "postgresql://db/shop?sslpassword=…&password=…&user=ann"),
        ("ledger:./a:b@c", "ledger:./a:b@c"),
    ],
)  # fmt: skip
def test_the_command_shows_no_password(location: str, shown: str) -> None:
    assert copying._shown(location) == shown


def test_the_command_tells_programs(tmp_path: Path, full: Callable[[str], str]) -> None:
    source = full("sqlite")
    shown = json.loads(run(source, f"notebook:{tmp_path}/notes", "--dry-run", "--json").stdout)
    assert (shown["memories"], len(shown["places"]), shown["resumes"], len(shown["losses"])) == (20, 4, False, 3)
    done = json.loads(
        run(source, f"sqlite:{tmp_path}/copy", "--json", "--tenant", "Acme", "--tenant", "default").stdout
    )
    assert (done["memories"], done["verified"], done["resumed"], done["losses"]) == (20, True, False, [])
    assert all(place["checksum"].startswith("sha256:") for place in done["places"])
    one = json.loads(run(source, f"sqlite:{tmp_path}/one", "--json", "--tenant", "Acme").stdout)
    assert [place["workspace"] for place in one["places"]] == ["Shop"]
    error = json.loads(run(source, f"sqlite:{tmp_path}/one", "--json", code=1).stdout)["error"]
    assert (error["type"], error["field"]) == ("InputError", "target")


def test_the_command_names_what_is_lost(tmp_path: Path, full: Callable[[str], str]) -> None:
    source, target = full("sqlite"), f"notebook:{tmp_path}/notes"
    assert "would be lost  the workspace default: 18 would get other ids" in run(source, target, "--dry-run").stdout
    refused = run(source, target, code=1)
    assert "18 would get other ids" in refused.stderr
    assert "--lossy copies the rest" in refused.stderr
    assert not (tmp_path / "notes").exists()
    assert "was lost  the workspace default: 18 would get other ids" in run(source, target, "--lossy").stdout


def test_the_command_goes_on(tmp_path: Path, full: Callable[[str], str]) -> None:
    source, target = full("sqlite"), f"ledger:{tmp_path}/copy"
    begun(source, target)
    assert "Would go on with a copy of 20 memories" in run(source, target, "--dry-run").stdout
    assert "Went on, and copied 20 memories" in run(source, target).stdout
    assert "All of it is there already: 20 memories" in run(source, target, "--dry-run").stdout
    assert "All of it was there already: 20 memories" in run(source, target).stdout


def test_the_command_refuses_what_makes_no_sense(tmp_path: Path, full: Callable[[str], str]) -> None:
    source, target = full("sqlite"), f"sqlite:{tmp_path}/copy"
    assert "leave out --store" in run(source, target, "--store", "x", code=2).stderr
    assert "leave out --workspace" in run(source, target, "--workspace", "x", code=1).stderr
    assert "there is no memory at" in run(f"{tmp_path}/nothing", target, code=1).stderr
    assert "there is no 'nobody'" in run(source, target, "--tenant", "nobody", code=1).stderr
    assert not (tmp_path / "copy").exists()
