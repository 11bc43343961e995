"""Files that are not what was written: said so in words, never served as memories, never made worse."""

from __future__ import annotations

import io
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import disks
from support.common import LONG
from support.seeds import drawn

from recollect import CorruptionError, Memory, RecollectError

if TYPE_CHECKING:
    from support.common import Script

VERBS: dict[str, Callable[[Memory, str], object]] = {
    "recall": lambda memory, ident: memory.recall("heron"),
    "recall by pattern": lambda memory, ident: memory.recall("her?n"),
    "list": lambda memory, ident: memory.list(state=None),
    "get": lambda memory, ident: memory.get(ident),
    "history": lambda memory, ident: memory.history(ident),
    "stats": lambda memory, ident: memory.stats(),
    "diagnose": lambda memory, ident: memory.diagnose(ident),
    "audit.search": lambda memory, ident: memory.audit.search("remembered"),
    "audit.verify": lambda memory, ident: memory.audit.verify(),
    "doctor": lambda memory, ident: memory.doctor(),
    "export": lambda memory, ident: memory.export(io.BytesIO()),
    "remember": lambda memory, ident: memory.remember("a new heron"),
    "remember_many": lambda memory, ident: memory.remember_many(["a new heron", "a new fox"]),
    "revise": lambda memory, ident: memory.revise(ident, content="a revised heron"),
    "archive": lambda memory, ident: memory.archive(ident),
    "undo": lambda memory, ident: memory.undo(),
    "forget": lambda memory, ident: memory.forget(ident),
    "compact": lambda memory, ident: memory.compact(),
}


@pytest.fixture
def ids(store_url: str) -> list[str]:
    """Memories in two workspaces, and what they take to be damaged: long texts, undo data, tags, JSON."""
    with Memory(store_url) as memory:
        items = [
            {
                "content": f"heron number {n} " * 30 if n % 2 else {"heron": [n, "grey"] * 20},
                "tags": [f"tag{n}", "birds.herons"],
                "metadata": {"seen": n},
                "references": ["a" * 32],
                "embedding": [0.5] * 64,
            }
            for n in range(60)
        ]
        shop = memory.at(workspace="shop")
        ids = [record.id for record in shop.remember_many(items)]
        shop.revise(ids[-1], content="a revised heron")
        shop.forget(ids[-2])
        memory.at(workspace="lab").remember("a heron in the lab")
    return ids[:-2]


def path(store_url: str, workspace: str = "shop") -> Path:
    return Path(store_url, "default", "workspaces", workspace, "memory.db")


def overwrite(file: Path, at: int, data: bytes) -> None:
    with open(file, "r+b") as stream:
        stream.seek(at)
        stream.write(data)


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - {"doctor"}))
def test_a_file_without_its_header_is_reported_and_left_alone(store_url: str, ids: list[str], verb: str) -> None:
    overwrite(path(store_url), 0, b"this is no database at all" * 10)
    before = disks.fingerprint(Path(store_url))
    with Memory(store_url) as memory:
        with pytest.raises(CorruptionError, match=r"shop/memory\.db is damaged"):
            VERBS[verb](memory.at(workspace="shop"), ids[0])
        assert memory.at(workspace="lab").recall("heron")
        memory.at(workspace="lab").remember("life goes on")
    after = disks.fingerprint(Path(store_url))
    assert {name: mark for name, mark in after.items() if "shop" in name} == {
        name: mark for name, mark in before.items() if "shop" in name
    }


def test_the_doctor_tells_of_a_file_that_cannot_be_opened(store_url: str, ids: list[str]) -> None:
    overwrite(path(store_url), 0, bytes(100))
    with Memory(store_url) as memory:
        assert memory.at(workspace="lab").doctor().ok
        report = memory.at(workspace="shop").doctor()
        assert not report.ok
        assert "shop/memory.db" in report.findings[0].examples[0]


def test_once_the_damaged_file_is_moved_away_the_workspace_begins_anew(store_url: str, ids: list[str]) -> None:
    overwrite(path(store_url), 0, bytes(100))
    with Memory(store_url) as memory:
        shop = memory.at(workspace="shop")
        with pytest.raises(CorruptionError):
            shop.remember("a heron")
        path(store_url).rename(path(store_url).with_suffix(".damaged"))
        shop.remember("a heron")
        assert len(shop.list()) == 1


@pytest.mark.parametrize("seed", range(100) if LONG else drawn("garbage").sample(range(100), 10))
def test_garbage_anywhere_in_a_file_is_an_error_of_ours_or_no_error(store_url: str, ids: list[str], seed: int) -> None:
    draw = random.Random(seed)
    sound = path(store_url)
    size = sound.stat().st_size
    for _ in range(draw.randint(1, 4)):
        length = draw.choice((1, 8, 100, 4096))
        overwrite(sound, draw.randrange(100, size - length), draw.randbytes(length))
    damaged = sound.read_bytes()
    for name, verb in VERBS.items():
        sound.write_bytes(damaged)
        with Memory(store_url) as memory:
            try:
                verb(memory.at(workspace="shop"), draw.choice(ids))
            except RecollectError:
                pass
            except Exception as error:
                raise AssertionError(f"{name} raised {error!r}") from error
            assert len(memory.at(workspace="lab").recall("heron")) == 1
        for companion in sound.parent.glob("memory.db-*"):
            companion.unlink()


def test_garbage_in_the_middle_of_the_pages_is_found(store_url: str, ids: list[str]) -> None:
    pages = path(store_url).stat().st_size // 4096
    for page in range(2, pages):
        overwrite(path(store_url), page * 4096, random.Random(page).randbytes(2000))
    with Memory(store_url) as memory:
        shop = memory.at(workspace="shop")
        for verb in ("list", "export", "recall", "audit.verify", "remember"):
            with pytest.raises(CorruptionError):
                VERBS[verb](shop, ids[0])
        assert not shop.doctor().ok


def test_a_text_changed_behind_our_back_is_found(store_url: str, ids: list[str]) -> None:
    data = path(store_url).read_bytes()
    at = data.index(b"heron number 7 ")
    overwrite(path(store_url), at, b"eagle")
    with Memory(store_url) as memory:
        shop = memory.at(workspace="shop")
        report = shop.doctor()
        assert not report.ok
        (finding,) = (finding for finding in report.findings if finding.problem == "corrupt")
        assert finding.count == 1
        assert ids[7] in finding.examples[0]
        assert len(shop.list()) == len(ids), "the rest is served"


def test_an_audit_log_cut_off_at_its_end_is_found_even_after_new_entries(store_url: str, ids: list[str]) -> None:
    with closing(sqlite3.connect(path(store_url))) as raw:
        raw.execute("DROP TRIGGER audit_is_append_only_delete")
        raw.execute("DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)")
        raw.commit()
    with Memory(store_url) as memory:
        shop = memory.at(workspace="shop")
        assert not shop.audit.verify()[0].ok
        shop.remember("an entry in its place")
        assert not shop.audit.verify()[0].ok


@pytest.mark.parametrize("left", [50, 99, 100, 3000, 4096, 5000, 20_000])
def test_a_file_cut_short_is_reported(store_url: str, ids: list[str], left: int) -> None:
    with open(path(store_url), "r+b") as file:
        file.truncate(left)
    with Memory(store_url) as memory:
        shop = memory.at(workspace="shop")
        for verb in ("list", "remember"):
            with pytest.raises(CorruptionError):
                VERBS[verb](shop, ids[0])
        assert memory.at(workspace="lab").recall("heron")


FOREIGN = ["CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('Ann')", "PRAGMA user_version = 2"]


@pytest.mark.parametrize("script", [*FOREIGN, "PRAGMA application_id = 1196444487"])
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_database_of_someone_else_is_refused_and_left_untouched(store_url: str, script: str, mode: str) -> None:
    file = path(store_url)
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as foreign:
        foreign.execute(f"PRAGMA journal_mode = {mode}")
        foreign.executescript(script)
    before = disks.fingerprint(Path(store_url))
    with Memory(store_url) as memory:
        for verb in ("remember", "list", "recall", "compact", "audit.verify"):
            with pytest.raises(CorruptionError, match="left untouched"):
                VERBS[verb](memory.at(workspace="shop"), "a" * 32)
    assert disks.fingerprint(Path(store_url)) == before


def test_a_folder_where_the_file_should_be_is_an_error_of_ours(store_url: str) -> None:
    path(store_url).mkdir(parents=True)
    with Memory(store_url) as memory:
        for verb in ("remember", "list", "recall"):
            with pytest.raises(RecollectError):
                VERBS[verb](memory.at(workspace="shop"), "a" * 32)
    assert list(path(store_url).iterdir()) == []


def test_a_damaged_account_leaves_other_tenants_alone(store_url: str) -> None:
    with Memory(store_url) as memory:
        for tenant in ("acme", "umbrella"):
            memory.at(tenant=tenant).remember("a heron for all", tier="account")
            memory.at(tenant=tenant).remember("a heron here")
    overwrite(Path(store_url, "acme", "account.db"), 0, b"garbage " * 20)
    with Memory(store_url) as memory:
        with pytest.raises(CorruptionError, match=r"account\.db"):
            memory.at(tenant="acme").recall("heron")
        assert len(memory.at(tenant="umbrella").recall("heron")) == 2


def test_a_log_deleted_after_a_crash_costs_what_was_only_in_it_and_no_more(
    store_url: str, start: Callable[..., Script]
) -> None:
    with Memory(store_url) as memory:
        kept = memory.remember("in the file itself").id
    holder = start(HOLD, store_url)
    assert holder.line() == "stored"
    holder.kill()
    holder.wait()
    for companion in path(store_url, "default").parent.glob("memory.db-*"):
        companion.unlink()
    with Memory(store_url) as memory:
        assert [record.id for record in memory.list()] == [kept]
        memory.remember("afterwards")
        assert all(log.ok for log in memory.audit.verify())
        assert memory.doctor().ok


def test_a_log_deleted_while_it_is_in_use_is_survived_or_reported(store_url: str, start: Callable[..., Script]) -> None:
    with Memory(store_url) as memory:
        kept = memory.remember("in the file itself").id
    holder = start(HOLD, store_url)
    assert holder.line() == "stored"
    path(store_url, "default").with_name("memory.db-wal").unlink()
    with Memory(store_url) as memory, suppress(RecollectError):
        assert memory.get(kept).content == "in the file itself"
        memory.remember("meanwhile")
        assert memory.doctor().ok
    holder.kill()
    holder.wait()
    with Memory(store_url) as memory:
        assert memory.get(kept).content == "in the file itself"
        memory.remember("afterwards")
        assert memory.doctor().ok


HOLD = """
import sys
from recollect import Memory
memory = Memory(sys.argv[1])
memory.remember("only in the log")
print("stored", flush=True)
sys.stdin.readline()
"""


def test_a_copy_of_a_folder_in_use_opens_as_it_was(store_url: str, tmp_path: Path) -> None:
    with Memory(store_url) as memory:
        ids = {memory.remember(f"heron number {n}").id for n in range(5)}
        shutil.copytree(store_url, tmp_path / "copy")
    with Memory(tmp_path / "copy") as copy:
        assert {record.id for record in copy.list()} == ids
        assert copy.doctor().ok
