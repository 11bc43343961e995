"""Tenants on several servers: each is found where it is, and moved while it is read and written."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import called, recollect
from support.common import LONG, Script
from support.postgres import DSN, Server

from recollect import AccessError, ConcurrencyError, InputError, Memory, MovedError, NotFoundError, RecollectError
from recollect.conformance.samples import sample
from recollect.stores import open_store
from recollect.stores.port import Place
from recollect.stores.postgres.admin.nearest import Indexer
from recollect.stores.postgres.connections import Location
from recollect.stores.postgres.store import Postgres
from recollect.stores.postgres.tenants import moving

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(DSN), reason="needs servers of its own")]

TABLES = ("places", "memories", "contents", "tags", "embeddings", "search", "vectors", "audit", "undo_items", "things")


class Pair:
    """Two servers: home, and b."""

    def __init__(self, home: Server, b: Server) -> None:
        self.home, self.b = home, b
        self.options = ("--store", home.url(), "--server", f"b={b.url()}")

    def memory(self) -> Memory:
        return Memory(self.home.url(), servers={"b": self.b.url()})

    def at(self, tenant: str) -> Memory:
        return self.memory().at(tenant=tenant, workspace="w")

    def move(self, tenant: str, to: str, told: Callable[..., None] = lambda *_: None, **how: Any) -> moving.MoveReceipt:
        store = Postgres(self.home.url(), servers={"b": self.b.url()})
        try:
            return moving.move(store._runner, tenant, to, told, **how)  # type: ignore[arg-type]
        finally:
            store.close()

    def roll_back(self, tenant: str) -> moving.MoveReceipt:
        store = Postgres(self.home.url(), servers={"b": self.b.url()})
        try:
            return moving.roll_back(store._runner, tenant)  # type: ignore[arg-type]
        finally:
            store.close()

    def left(self, name: str, tenant: str) -> int:
        """Rows of a tenant on a server."""
        parts = [f"SELECT FROM recollect.{table} WHERE tenant = '{tenant}'" for table in (*TABLES, "changes")]
        ((count,),) = {"home": self.home, "b": self.b}[name].psql(
            f"SELECT count(*) FROM ({' UNION ALL '.join(parts)}) x"
        )
        return count


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Server() as home, Server() as b:
        for server in (home, b):
            assert recollect("db", "upgrade", "--store", server.url()).returncode == 0
        yield Pair(home, b)


def exported(memory: Memory, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    target = folder / f"{time.monotonic_ns()}.jsonl"
    memory.export(target)
    return sorted(re.sub('"exported_at":"[^"]*"', "", line) for line in target.read_text().splitlines())


def test_a_moved_tenant_is_the_same_elsewhere(pair: Pair, tmp_path: Path) -> None:
    memory = pair.at("whole")
    texts = [f"memory {n} of a tenant that moves" for n in range(1200)]
    records = memory.remember_many([{"content": text, "tags": ["a.b"]} for text in texts])
    memory.at(conversation="talk").scratchpad.write("plan", {"step": 1})
    memory.revise(records[0].id, content="memory 0 was revised")
    memory.forget(records[1].id)
    before = exported(memory, tmp_path)
    for to, source in (("b", "home"), ("home", "b"), ("b", "home")):
        receipt = pair.move("whole", to)
        assert (receipt.state, receipt.source, receipt.target) == ("moved", source, to)
        assert receipt.memories == 1200
        assert pair.left(source, "whole") == 0
        assert exported(memory, tmp_path) == before
        assert len(memory.list(limit=5000)) == 1199
        assert memory.recall("revised", touch=False)[0].memory.content == "memory 0 was revised"
        assert memory.at(conversation="talk").scratchpad.read("plan") == {"step": 1}
        assert all(log.ok for log in memory.audit.verify())
        newest = memory.audit.search(action="move", limit=1)[0]
        assert newest.meta["details"]["checksum"] == receipt.checksum
        assert newest.meta["details"]["rows"]["memories"] == 1200
    assert memory.undo() is not None
    assert len(memory.audit.search(action="move")) == 3


def test_a_store_that_was_opened_directly_says_where_the_tenant_went(pair: Pair) -> None:
    pair.at("direct").remember("the office is in Porto")
    with Memory(pair.home.url()) as opened:
        memory = opened.at(tenant="direct", workspace="w")
        assert memory.recall("office")
        pair.move("direct", "b")
        for act in (
            lambda: memory.recall("office"),
            lambda: memory.list(),
            lambda: memory.stats(),
            lambda: memory.workspaces(),
            lambda: memory.audit.search(),
            lambda: memory.remember("the office has a door"),
        ):
            with pytest.raises(MovedError, match=r"server 'b'.*servers=") as told:
                act()
            assert told.value.server == "b"
    with Memory(pair.b.url()) as there:
        assert there.at(tenant="direct", workspace="w").recall("office")
    assert pair.left("home", "direct") == 0
    with pytest.raises(MovedError):
        Memory(pair.home.url(), servers={"c": pair.b.url()}).at(tenant="direct", workspace="w").list()


def test_whatever_is_changed_while_it_is_copied_arrives(pair: Pair, tmp_path: Path) -> None:
    """All of it after the rows were compared, so that nothing but the log of changes can have brought it."""
    memory = pair.at("changing")
    other, third = (
        pair.memory().at(tenant="changing", workspace="x"),
        pair.memory().at(tenant="changing", workspace="y"),
    )
    records = memory.remember_many([{"content": f"memory {n}"} for n in range(30)])
    other.remember_many([{"content": f"other {n}"} for n in range(5)])
    memory.at(conversation="talk").scratchpad.write("gone", 1)
    memory.at(conversation="talk").remember("Ann: hello")
    store: Any = memory._view.store
    place = Place("changing", "w")
    seen: list[list[str]] = []

    def change() -> None:
        memory.remember("a new one", tags=["x.y"])
        memory.revise(records[3].id, content="memory 3, revised")
        memory.forget(records[4].id)
        memory.undo()
        memory.forget(records[8].id)
        memory.archive(records[5].id)
        memory.at(account="zoe").remember("zoe likes tea", tier="account")
        memory.at(conversation="talk").remember("Ann: hello again")  # makes Ann the speaker of the first as well
        memory.at(conversation="talk").scratchpad.write("kept", 2)
        memory.at(conversation="talk").scratchpad.clear("gone")
        store.embed(place, "model", {records[6].id: b"\0\0\x80\x3f" * 4})
        memory.recall("memory 7")
        store._memories.settle_all()
        third.remember("a workspace that is new")
        other.forget(workspace="x")
        other.remember("begun anew")

    def told(what: str, done: int, total: int | None) -> None:
        if what == "comparing" and not seen:
            seen.append([])
            late.start()
            late.join()

    late = threading.Thread(target=lambda: (wait_for_the_log(pair, "changing"), change(), seen.append(all_of())))

    def all_of() -> list[str]:
        return [line for view in (memory, other, third) for line in exported(view, tmp_path)]

    # The comparison has pages of 500, so it is over for the memories when it is told of.
    assert pair.move("changing", "b", told).state == "moved"
    assert all_of() == seen[1]
    assert pair.left("home", "changing") == 0
    assert all(log.ok for view in (memory, other) for log in view.audit.verify())


def test_what_is_taken_back_while_it_is_copied_arrives_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes back with another number, behind those that were copied."""
    memory = pair.at("taken-back")
    records = memory.remember_many([{"content": f"memory {n}"} for n in range(40)])
    monkeypatch.setattr(moving, "_PAGE", 10)
    left = [records[0].id, records[15].id, records[39].id]

    def told(what: str, *_: object) -> None:
        if what == "copying" and left:
            memory.forget(left.pop(0))
            memory.undo()

    assert pair.move("taken-back", "b", told).memories == 40
    assert left == []
    assert Counter(record.id for record in memory.list(limit=100)) == Counter(record.id for record in records)
    assert memory.recall("memory 0")[0].memory.id == records[0].id


def wait_for_the_log(pair: Pair, tenant: str) -> None:
    assert pair.home.psql(f"SELECT state FROM recollect.moves WHERE tenant = '{tenant}'") == [("copying",)]


class Writers:
    """Threads that write all the time, and what they were told."""

    def __init__(self, pair: Pair, tenant: str, threads: int, pause: float) -> None:
        self.memory = pair.at(tenant)
        self._pause = pause
        self.kept: list[str] = []
        self.errors: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(n,)) for n in range(threads)]

    def _write(self, thread: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            text = f"thread {thread} wrote {number}"
            try:
                record = self.memory.remember(text)
                self.kept.append(text)
                if number % 5 == 0:
                    self.memory.forget(record.id)
                    self.kept.remove(text)
                elif number % 3 == 0:
                    self.memory.revise(record.id, content=f"{text}, revised")
                    self.kept[self.kept.index(text)] = f"{text}, revised"
            except RecollectError as error:
                self.errors.append(f"{text}: {error!r}")
            time.sleep(self._pause)

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        assert self.errors == []
        stored = Counter(record.text for record in self.memory.list(limit=100_000))
        assert {text: n for text, n in stored.items() if n > 1} == {}
        written = {text for text in stored if text.startswith("thread")}
        assert written == set(self.kept)
        assert len(self.kept) > 30
        assert all(log.ok for log in self.memory.audit.verify())


class Readers:
    """Threads that must always see the same memories, however the tenant moves."""

    def __init__(self, pair: Pair, tenant: str, number: int, pause: float) -> None:
        self._memory, self._number, self._pause = pair.at(tenant), number, pause
        self.looks, self.wrong = 0, list[str]()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._read)]

    def _read(self) -> None:
        while not self._stop.is_set():
            try:
                there = Counter(record.text for record in self._memory.list(tags=["fixed"], limit=100_000))
                found = self._memory.recall("fixed memory", tags=["fixed"], limit=3)
            except Exception as error:
                self.wrong.append(repr(error))
                continue
            self.looks += 1
            time.sleep(self._pause)
            if sum(there.values()) != self._number or len(there) != self._number or len(found) != 3:
                self.wrong.append(f"{len(there)} memories, {sum(there.values())} in all, {len(found)} found")

    def __enter__(self) -> Readers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


WRITER = """
import json, sys, threading
from recollect import Memory, RecollectError
home, b, name = sys.argv[1:]
memory = Memory(home, servers={"b": b}).at(tenant="busy", workspace="w")
stop, kept, errors = threading.Event(), [], []
def write(thread):
    number = 0
    while not stop.is_set():
        number += 1
        text = f"{name} {thread} wrote {number}"
        try:
            memory.remember(text)
            kept.append(text)
        except RecollectError as error:
            errors.append(repr(error))
threads = [threading.Thread(target=write, args=(n,)) for n in range(2)]
for thread in threads: thread.start()
print("ready", flush=True)
sys.stdin.readline()
stop.set()
for thread in threads: thread.join()
print(json.dumps([kept, errors]))
"""


def test_a_tenant_moves_back_and_forth_while_many_write_and_read(pair: Pair) -> None:
    memory = pair.at("busy")
    memory.remember_many([{"content": f"fixed memory {n}", "tags": ["fixed"]} for n in range(1300)])
    others = [Script(WRITER, pair.home.url(), pair.b.url(), f"process-{n}") for n in range(2)]
    for process in others:
        assert process.line() == "ready"
    with Writers(pair, "busy", 2, 0.002) as writers, Readers(pair, "busy", 1300, 0.01) as readers:
        for to in ("b", "home", "b"):
            done = recollect("tenants", "move", "busy", "--to", to, "--json", *pair.options)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["target"] == to
            time.sleep(0.1)
    told = []
    for process in others:
        process.tell("stop")
        told.append(json.loads(process.finish()))
        process.communicate()
    assert readers.wrong == []
    assert readers.looks > 5
    writers.check()
    stored = Counter(record.text for record in memory.list(limit=100_000) if record.text.startswith("process"))
    assert stored == Counter(text for kept, _ in told for text in kept)
    assert [error for _, errors in told for error in errors] == []
    assert pair.left("home", "busy") == 0


MOVER = """
import os, signal, sys
from recollect import InputError, NotFoundError
from recollect.stores.postgres.tenants import moving
from recollect.stores.postgres.store import Postgres
from recollect.stores.postgres.tenants.transfer import Side
home, b, tenant = sys.argv[1:]
begun, part = Side.transaction, ["start", 0]
def counted(name, method):
    def run(self, *given, **named):
        part[:] = [name, 0]
        return method(self, *given, **named)
    return run
for name in ("_claim", "_copy", "_compare", "_freeze", "_finish"):
    setattr(moving.Mover, name, counted(name[1:], getattr(moving.Mover, name)))
for line in sys.stdin:
    to, where, left = line.split()
    pid = os.fork()
    if not pid:
        store = Postgres(home, servers={"b": b})
        def transaction(self, *given, **named):
            part[1] += 1
            if part == [where, int(left)]:
                os.kill(os.getpid(), signal.SIGKILL)
            return begun(self, *given, **named)
        Side.transaction = transaction
        try:
            if to == "back":
                moving.roll_back(store._runner, tenant)
            else:
                moving.move(store._runner, tenant, to)
        except InputError:
            os._exit(3)
        except NotFoundError:
            os._exit(4)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
DONE, KILLED, ARRIVED, NOTHING = "0", "-9", "3", "4"


KILLS = [
    ("start", 3),
    *(("claim", n) for n in ((1, 2, 3) if LONG else (2,))),
    *(("copy", n) for n in (2, 5)),
    ("compare", 3),
    *(("freeze", n) for n in (range(1, 12) if LONG else (1, 4, 7, 9))),
    *(("finish", n) for n in (1, 2, 3)),
]
"""In which part of a move, and before which of its transactions."""


def test_a_move_that_is_killed_anywhere_is_finished_or_taken_back(pair: Pair) -> None:
    memory = pair.at("killed")
    memory.remember_many([{"content": f"fixed memory {n}", "tags": ["fixed"]} for n in range(100)])
    taken_back, finished = 0, 0
    with Script(MOVER, pair.home.url(), pair.b.url(), "killed") as mover:

        def run(to: str, part: str = "", dies_at: int = 0) -> str:
            mover.tell(f"{to} {part or '-'} {dies_at}")
            return mover.line()

        assert [run("b"), run("home")] == [DONE, DONE]
        with Writers(pair, "killed", 2, 0.05) as writers, Readers(pair, "killed", 100, 0.05) as readers:
            for number, (part, dies_at) in enumerate(KILLS):
                at, elsewhere = where(pair, "killed")
                ended = run(elsewhere, part, dies_at)
                assert ended == KILLED or (ended == DONE and part == "freeze" and dies_at > 8), (part, dies_at)
                if ended == DONE:
                    continue
                assert len(writable(pair, "killed")) <= 1
                if number % 2:
                    if number % 4 == 1:
                        assert run("back", "start", 3 + number // 4 % 4) in (KILLED, DONE, ARRIVED, NOTHING)
                        assert len(writable(pair, "killed")) <= 1
                    answer = run("back")
                    if answer in (DONE, NOTHING):
                        assert writable(pair, "killed") == [at]
                        assert pair.left(elsewhere, "killed") == 0
                        taken_back += 1
                        continue
                    assert answer == ARRIVED
                assert run(elsewhere) == DONE
                assert writable(pair, "killed") == [elsewhere]
                assert pair.left(at, "killed") == 0
                finished += 1
        mover.stdin.close()  # type: ignore[union-attr]
    assert (taken_back > 1, finished > 3) == (True, True)
    assert readers.wrong == []
    writers.check()


def where(pair: Pair, tenant: str) -> tuple[str, str]:
    rows = pair.home.psql(f"SELECT server FROM recollect.placements WHERE tenant = '{tenant}'")
    at = rows[0][0] if rows else "home"
    return at, "b" if at == "home" else "home"


def writable(pair: Pair, tenant: str) -> list[str]:
    """Servers on which somebody could write, whoever it is."""
    sql = f"SELECT state FROM recollect.moves WHERE tenant = '{tenant}' AND state <> 'copying'"
    return [name for name, server in (("home", pair.home), ("b", pair.b)) if not server.psql(sql)]


def test_a_run_that_was_taken_over_does_nothing_any_more(pair: Pair) -> None:
    memory = pair.at("contested")
    memory.remember_many([{"content": f"memory {n}"} for n in range(20)])
    done: list[str] = []

    def told(what: str, *_: object) -> None:
        if what == "comparing" and not done:
            done.append(pair.move("contested", "b").state)
            memory.remember("written on b")

    with pytest.raises(ConcurrencyError, match="another run"):
        pair.move("contested", "b", told)
    assert done == ["moved"]
    assert len(memory.list(limit=100)) == 21
    assert pair.left("home", "contested") == 0

    def taken_back(what: str, *_: object) -> None:
        if what == "comparing" and len(done) == 1:
            done.append(pair.roll_back("contested").state)
            memory.remember("written on b again")

    with pytest.raises(ConcurrencyError, match="another run"):
        pair.move("contested", "home", taken_back)
    assert done == ["moved", "rolled back"]
    assert len(memory.list(limit=100)) == 22
    assert pair.left("home", "contested") == 0
    assert where(pair, "contested") == ("b", "home")


def test_a_move_that_is_taken_back_at_the_last_moment_is_taken_back(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = pair.at("late")
    memory.remember_many([{"content": f"memory {n}"} for n in range(20)])
    counts = moving.transfer.counts

    def counted(run: Any) -> dict[str, int]:
        found = counts(run)
        if run.side.name == "b":  # all is compared: now it would be told that the tenant is there
            pair.roll_back("late")
        return found

    monkeypatch.setattr(moving.transfer, "counts", counted)
    with pytest.raises(ConcurrencyError, match="another run"):
        pair.move("late", "b")
    assert where(pair, "late") == ("home", "b")
    memory.remember("it stayed where it was")
    assert len(memory.list(limit=100)) == 21
    assert pair.left("b", "late") == 0


def test_a_copy_that_is_not_like_what_was_copied_is_not_used(pair: Pair) -> None:
    memory = pair.at("spoiled")
    memory.remember_many([{"content": f"memory {n}"} for n in range(20)])

    def told(what: str, *_: object) -> None:
        if what == "copying":
            pair.b.psql("UPDATE recollect.contents SET text = 'spoiled' WHERE tenant = 'spoiled' AND seq = 7")

    with pytest.raises(RecollectError, match="is not like what was copied"):
        pair.move("spoiled", "b", told)
    assert where(pair, "spoiled") == ("home", "b")
    assert pair.roll_back("spoiled").state == "rolled back"
    memory.remember("it stayed where it was")
    assert len(memory.list(limit=100)) == 21
    assert pair.left("b", "spoiled") == 0


def test_a_source_that_had_more_than_was_copied_is_not_emptied(pair: Pair) -> None:
    """Changed behind the back of the log, after the rows were compared."""
    memory = pair.at("behind")
    memory.remember_many([{"content": f"memory {n}"} for n in range(20)])

    def told(what: str, *_: object) -> None:
        if what == "comparing":
            pair.home.psql("UPDATE recollect.contents SET text = 'other' WHERE tenant = 'behind' AND seq = 7")

    for _ in range(2):
        with pytest.raises(RecollectError, match="Both are kept"):
            pair.move("behind", "b", told)
    assert pair.left("home", "behind") > 20
    assert len(memory.list(limit=100)) == 20
    pair.home.psql("UPDATE recollect.moves SET position = '' WHERE tenant = 'behind'")
    assert pair.move("behind", "b").state == "moved"
    assert pair.left("home", "behind") == 0


def test_what_cannot_be_moved_is_told(pair: Pair) -> None:
    memory = pair.at("refused")
    memory.remember("it is here")
    with pytest.raises(NotFoundError, match="--empty"):
        pair.move("no-such-tenant", "b")
    with pytest.raises(InputError, match="known: home, b"):
        pair.move("refused", "c")
    with pytest.raises(NotFoundError, match="nothing to roll back"):
        pair.roll_back("refused")
    with Memory(pair.b.url()) as there:
        there.at(tenant="refused", workspace="w").remember("somebody else's")
    with pytest.raises(InputError, match="holds something"):
        pair.move("refused", "b")
    same = Postgres(pair.home.url(), servers={"b": pair.home.url()})
    with pytest.raises(InputError, match="same database"):
        moving.move(same._runner, "refused", "b")  # type: ignore[arg-type]
    same.close()
    assert memory.remember("it can still be written")
    assert pair.move("refused", "home").state == "there already"
    assert pair.move("to-come", "b", empty=True).memories == 0
    pair.at("to-come").remember("begins on b")
    assert pair.left("home", "to-come") == 0
    assert pair.left("b", "to-come") > 0


def test_only_the_owner_moves_tenants(pair: Pair) -> None:
    pair.at("owned").remember("it is here")
    for server in (pair.home, pair.b):
        server.psql("CREATE ROLE app LOGIN IN ROLE recollect_app")
    urls = pair.home.url(user="app"), pair.b.url(user="app")
    store = Postgres(urls[0], servers={"b": urls[1]})
    with pytest.raises(AccessError, match="owner of the tables"):
        moving.move(store._runner, "owned", "b")  # type: ignore[arg-type]
    store.close()
    pair.move("owned", "b")
    with Memory(urls[0], servers={"b": urls[1]}) as memory:  # which needs no more than before
        memory.at(tenant="owned", workspace="w").remember("and can be written")
        assert len(memory.at(tenant="owned", workspace="w").list()) == 2


def test_the_command_lists_moves_and_takes_back(pair: Pair) -> None:
    pair.at("shop").remember_many([{"content": f"memory {n}"} for n in range(3)])

    def listed() -> dict[str, dict[str, Any]]:
        done = called("tenants", "list", "--json", *pair.options)
        assert done.returncode == 0, done.stderr
        return {one["tenant"]: one for one in json.loads(done.stdout)}

    shop = {"tenant": "shop", "server": "home", "memories": 3, "moving_to": None, "bytes": 24, "limits": None}
    assert listed()["shop"] == shop
    done = called("tenants", "move", "shop", "--to", "b", *pair.options)
    assert done.stdout.startswith("Moved shop from home to b: 3 memories.")
    assert "writers waited" in done.stdout
    assert listed()["shop"]["server"] == "b"
    assert "shop" in called("tenants", *pair.options).stdout
    done = called("tenants", "move", "shop", "--to", "b", *pair.options)
    assert done.stdout == "shop is on b already.\n"
    done = called("tenants", "move", "shop", "--rollback", "--json", *pair.options)
    assert (done.returncode, json.loads(done.stdout)["error"]["type"]) == (1, "NotFoundError")
    assert called("tenants", "move", "shop", *pair.options).returncode == 2
    done = called("tenants", "move", "shop", "--to", "b", "--store", pair.home.url(), "--server", "b")
    assert done.returncode == 1
    assert "needs a URL" in done.stderr


def test_what_is_about_all_tenants_names_those_that_are_elsewhere(pair: Pair, tmp_path: Path) -> None:
    for tenant in ("aa-stays", "aa-leaves"):  # the first ones are told by name
        pair.at(tenant).remember("the office is in Porto")
    pair.move("aa-leaves", "b")
    home = ("--store", pair.home.url())
    listed = {one["tenant"]: one for one in json.loads(called("tenants", "--json", *home).stdout)}
    uncounted = {"memories": None, "bytes": None, "limits": None}
    assert listed["aa-leaves"] == {"tenant": "aa-leaves", "server": "b", "moving_to": None, **uncounted}
    assert listed["aa-stays"]["memories"] == 1
    assert "leaves" in called("tenants", *home).stdout
    for words in (["maintain", "--all-tenants", "--dry-run"], ["verify"]):
        assert "leaves on b" in called(*words, *home).stderr, words
    done = called("copy", pair.home.url(), f"sqlite:{tmp_path / 'all'}", "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["type"], "leaves on b" in error["message"]) == (1, "MovedError", True)
    assert called("copy", pair.home.url(), f"sqlite:{tmp_path / 'one'}", "--tenant", "aa-stays").returncode == 0
    done = called("copy", pair.home.url(), f"sqlite:{tmp_path / 'other'}", "--tenant", "aa-leaves")
    assert (done.returncode, "was moved to the server 'b'" in done.stderr) == (1, True)


def test_an_index_that_does_not_move_along_is_told_and_made_there(pair: Pair) -> None:
    place, rng = Place("dense", "w"), np.random.default_rng(7)
    store = open_store(pair.home.url())
    vectors = [row.astype("<f4").tobytes() for row in rng.standard_normal((200, 8))]
    fields = {"tenant": "dense", "workspace": "w", "embedding_model": "test"}
    store.put(place, [sample(f"memory {n}", embedding=vector, **fields) for n, vector in enumerate(vectors)])
    store.close()
    assert [change.action for change in Indexer(Location.of(pair.home.url()), 100).run()] == ["build"]
    done = recollect("tenants", "move", "dense", "--to", "b", "--json", *pair.options)
    advice = json.loads(done.stdout)["advice"]
    assert advice.startswith("an index of the vectors of dense did not move along")
    assert advice in done.stderr
    (command,) = re.findall("`recollect (db index .*)`", advice)
    done = recollect(*command.split(), "--above", "100", "--json")
    assert [one["action"] for one in json.loads(done.stdout)["changes"]] == ["build"], done.stderr
    done = recollect("tenants", "move", "shallow", "--to", "b", "--empty", "--json", *pair.options)
    assert (json.loads(done.stdout)["advice"], done.stderr) == ("", "")


def test_servers_have_names_and_are_for_a_store_on_a_server(pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="servers"):
        Memory(tmp_path / "memory", servers={"b": pair.b.url()})
    for name in ("home", "", "B", "a b"):
        with pytest.raises(InputError, match="servers"):
            Memory(pair.home.url(), servers={name: pair.b.url()})
    with pytest.raises(InputError, match="needs a URL"):
        Memory(pair.home.url(), servers={"b": "./memory"})
