"""A store with some of everything, all that a store holds, and copies that are killed."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect import Memory
from recollect.stores import open_store
from recollect.stores.audit import Entry, check
from recollect.stores.copying import copy as copying
from recollect.stores.copying import following
from recollect.stores.port import Administered, Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.stores.undo import Undo
from recollect.values.record import EPOCH, Address

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PRESETS = {"ledger": "ledger", "notebook": "aegis"}
LOADED = (
    "numpy",
    "psycopg",
    "recollect.stores.files.ledger",
    "recollect.stores.files.notebook",
    "recollect.stores.postgres.store",
    "recollect.stores.sqlite.store",
)
WRITES = ("put", "update", "embed", "delete", "append", "keep", "remove", "drop", "close", "transaction")


def opened(location: str, now: datetime = NOW) -> Memory:
    preset = PRESETS.get(location.partition(":")[0], "recollect")
    return Memory(location, preset=preset, clock=lambda: now, embedder="none")


def fill(location: str) -> None:
    """Several tenants, all kinds of places, all states and fields, ties in time, things of many versions, undo."""
    with opened(location) as memory:
        memory.at(agent="atlas", account="ada").remember(
            {"z": "grün", "a": {"steps": [1, 2.5, None, True, 10**30]}},
            kind="finding",
            importance=0.123456789,
            tags=["a.b", "größe"],
            role="tool_result",
            source="ci",
            conversation="c1",
            channel="ops",
            references=["abc"],
            metadata={"z": 1, "deep": {"er": ["x", {"y": 0.1}]}},
            embedding=[0.1, -2.5, 1e-20],
            embedding_model="mini",
        )
        memory.remember("one\ntwo\r\n\u2028 \x00 end", created_at="0001-01-01T00:00:00.000001Z")
        memory.remember("of the account", tier="account", lifetime="short_term")
        memory.remember("of the talk", tier="conversation", conversation="c2", expires_at=NOW + timedelta(days=1))
        memory.archive(memory.remember("archived", valid_from="2020-01-01", valid_until=NOW).id)
        memory.revise(memory.remember("old").id, content="new")
        ties = memory.remember_many([f"tie {number}" for number in range(12)])
        memory.forget(ties[4].id)
        memory.undo()  # now it comes last of those that were made at once
        memory.forget(memory.remember("gone", embedding=[1.0], embedding_model="mini").id)
        memory.recall("tie of the talk")
        memory.at(tenant="Acme", workspace="Shop").remember("a fox")
        work = memory.workflows.start("ship it")
        memory.workflows.step(work.id, "pack")
    with closing(open_store(location)) as store:
        _fill_shelves(store)


def _fill_shelves(store: Store) -> None:
    place, later = Place("default", "default"), NOW + timedelta(seconds=5)
    for number in range(7):
        store.keep(place, ShelfItem("notes", "often", {"n": number}, created_at=NOW, changed_at=later))
    for key in ("c", "gone", "a", "b"):
        store.keep(place, ShelfItem("notes", key, {"z": key, "a": 10**30}, parent="p", account="ada", agent="x"))
    store.remove(place, "notes", ["gone"])
    store.keep(place, ShelfItem("pages", "a", {}))
    store.keep(Place("default", " engine"), ShelfItem("notes", "own", {"of": "the engine"}))
    entry = Entry(0, "e-1", NOW, "test", "changed things 北京", None, {"n": [1, 2.5, None, {"": ""}]})
    store.append(
        place, entry, Undo(things=[ShelfItem("notes", "a", {"was": 1}, version=3), ShelfItem("notes", "new", {})])
    )


def dump(location: str, *, renamed: bool = False) -> dict[str, Any]:
    """All that a store holds, by place. `renamed`: without what changes where memories get other ids."""
    with closing(open_store(location)) as store:
        tenants = store.tenants() if isinstance(store, Administered) else ["Acme", "default"]
        places = [place for tenant in sorted(tenants) for place in store.places(tenant)]
        return {repr(place): _held(store, place, renamed) for place in places}


def _held(store: Store, place: Place, renamed: bool) -> Any:
    tiers: Any = () if place.workspace is None else ("workspace", "channel", "conversation")
    where = following.Filter(Address(place.tenant, place.workspace), EPOCH, state=None, tiers=tiers)
    records = list(store.scan(where))
    entries = list(store.entries(place))
    assert check(entries, store.written(place)) == []
    undo = [None if renamed else store.undo_of(place, entry.seq) for entry in entries]
    if renamed:
        at = {record.id: f"number {number}" for number, record in enumerate(records)}
        records = [
            replace(record, id=at[record.id], checksum="", superseded_by=at.get(record.superseded_by or ""))
            for record in records
        ]
    return msgspec.json.encode([records, list(store.shelf(place)), entries, undo]).decode()


def die(store: Store, at: int, after: bool) -> list[str]:
    """Kill this process before or after the call of that number which writes. Returns which calls there were."""
    calls: list[str] = []
    inside = False

    def dying(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **more: Any) -> Any:
            nonlocal inside
            if inside:  # a call of the store's own
                return call(*arguments, **more)
            calls.append(name)
            if len(calls) == at and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            inside = True
            try:
                result = call(*arguments, **more)
            finally:
                inside = False
            if len(calls) == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return count

    for name in WRITES:
        setattr(store, name, dying(name, getattr(store, name)))
    return calls


def serve() -> None:
    """For each line `source target number after`, a process that copies and is killed; says so, or what it called."""
    following._BATCH = 3  # so that there are many points
    for module in LOADED:  # once, and not in each process
        importlib.import_module(module)
    for line in sys.stdin:
        source, target, number, after = line.split()
        if (child := os.fork()) == 0:
            with closing(open_store(source)) as origin, closing(open_store(target)) as other:
                calls = die(other, int(number), after == "after")
                try:
                    copying.copy(origin, other, lossy=True)
                except BaseException as error:
                    print(f"failed {error!r}", flush=True)
                    os._exit(1)
                print("done", *calls, flush=True)
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            print("killed", flush=True)


if __name__ == "__main__":
    serve()
