"""Whatever one thread does, another may recall meanwhile: on every store, in a workspace and of an account."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from support.common import LONG
from support.concepts import Concepts
from support.crowd import ASKED, number_apart
from support.stores import located
from support.watchdog import beside, opened, together

from recollect import Memory, NotFoundError, Record

ROUNDS = 30 if LONG else 3


class Scene:
    """A workspace and an account that both have something to recall, and what to do in them round after round."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.owner = memory.at(workspace="shop")
        self.ada = self.owner.at(account="ann", agent="ada")
        self.elsewhere = memory.at(workspace="barn", account="ann", agent="ada")
        self.talk = self.ada.at(conversation="c1")
        number_apart(memory, 50 * ROUNDS)
        self.private = self.remember("Ann likes the heron best", "account")
        self.shared = self.remember("a heron stands in the shop", "workspace")
        self.elsewhere.remember("a heron stands in the barn")
        self.ada.remember("a heron that nobody touches")  # the two places are read one after the other
        self.talk.scratchpad.write("plan", "count the herons")
        self.numbers = count()

    def remember(self, text: str, tier: str, tags: tuple[str, ...] = ()) -> Record:
        return self.ada.remember(text, kind="preference", tier=tier, tags=tags)  # type: ignore[arg-type]

    def fresh(self, tag: str = "") -> list[Record]:
        """One of the account and one of the workspace."""
        number, tags = next(self.numbers), (tag,) if tag else ()
        return [self.remember(f"heron {number} of the {tier}", tier, tags) for tier in ("account", "workspace")]

    def recall(self) -> None:
        assert self.ada.recall("heron")
        assert self.elsewhere.recall("heron")


def remember(scene: Scene) -> None:
    scene.fresh()


def remember_many(scene: Scene) -> None:
    tiers = ("account", "workspace", "account")
    scene.ada.remember_many({"content": "a heron", "tier": tier, "kind": "preference"} for tier in tiers)


def get(scene: Scene) -> None:
    assert scene.ada.get(scene.private.id).id == scene.private.id
    assert scene.ada.get(scene.shared.id).id == scene.shared.id


def list_(scene: Scene) -> None:
    assert len(scene.ada.list()) >= 2
    assert scene.ada.list(contains="eron", state=None)


def recall(scene: Scene) -> None:
    assert scene.ada.recall("heron", why_not=scene.private.id)


def context(scene: Scene) -> None:
    assert scene.talk.context(ASKED).messages


def consult(scene: Scene) -> None:
    assert scene.ada.consult("heron").failures == ()


def query(scene: Scene) -> None:
    scene.ada.query({"text": "heron", "limit": 5})


def revise(scene: Scene) -> None:
    scene.private = scene.ada.revise(scene.private.id, content=f"Ann likes heron {next(scene.numbers)}")
    scene.shared = scene.ada.revise(scene.shared.id, importance=0.5 + next(scene.numbers) % 5 / 10)


def forget_by_id(scene: Scene) -> None:
    assert scene.ada.forget([record.id for record in scene.fresh()]).count == 2


def forget_by_tag(scene: Scene) -> None:
    scene.fresh("passing")
    assert scene.ada.forget(tag="passing").count == 2


def erase(scene: Scene) -> None:
    assert scene.ada.forget([record.id for record in scene.fresh()], erase=True).count == 2


def history(scene: Scene) -> None:
    scene.private = scene.ada.revise(scene.private.id, content=f"Ann likes heron {next(scene.numbers)}")
    assert len(scene.ada.history(scene.private.id)) >= 2


def undo(scene: Scene) -> None:
    for record in (scene.private, scene.shared):
        scene.ada.revise(record.id, content=f"not for long {next(scene.numbers)}")
        scene.ada.undo()


def archive_and_restore(scene: Scene) -> None:
    ids = [record.id for record in scene.fresh()]
    assert len(scene.ada.archive(ids)) == 2
    assert len(scene.ada.restore(ids)) == 2


def diagnose(scene: Scene) -> None:
    scene.ada.diagnose(scene.private.id)
    scene.ada.diagnose(scene.shared.id)


def doctor(scene: Scene) -> None:
    scene.owner.doctor()


def verify(scene: Scene) -> None:
    assert scene.owner.verify() == []


def maintain(scene: Scene) -> None:
    scene.owner.maintain(early=True)


def compact(scene: Scene) -> None:
    scene.ada.forget([record.id for record in scene.fresh()])
    scene.owner.compact()


def stats(scene: Scene) -> None:
    assert scene.ada.stats().total >= 2


def workspaces(scene: Scene) -> None:
    assert scene.memory.workspaces() == ["barn", "shop"]


def forget_a_workspace(scene: Scene) -> None:
    passing = scene.memory.at(workspace="passing")
    passing.remember("a heron in passing")
    passing.at(account="ann").recall("heron")
    assert passing.forget(workspace="passing").count == 1


def export(scene: Scene) -> None:
    assert scene.ada.export(io.BytesIO()) >= 2


def import_(scene: Scene) -> None:
    kept = io.BytesIO()
    records = scene.fresh()
    scene.ada.export(kept)
    scene.ada.forget([record.id for record in records], erase=True)
    kept.seek(0)
    assert scene.ada.import_(kept).added >= 2


def audit(scene: Scene) -> None:
    scene.ada.audit.record("look", "saw the heron")
    assert scene.ada.audit.search("heron")
    assert all(log.ok for log in scene.memory.audit.verify())


def journal(scene: Scene) -> None:
    entry = scene.ada.journal.save(f"saw heron {next(scene.numbers)}")
    scene.ada.journal.edit(entry.id, f"saw no heron {next(scene.numbers)}")
    scene.ada.journal.save_core(f"herons are grey {next(scene.numbers)}")
    assert scene.ada.journal.for_prompt()
    assert scene.ada.journal.recent_first()
    scene.ada.journal.expired()
    assert scene.ada.journal.counts()
    assert scene.owner.journal.counts_by_agent()
    assert scene.ada.journal.context()
    scene.ada.journal.consolidate()


def whiteboard(scene: Scene) -> None:
    board = scene.ada.journal.whiteboard
    written = board.write(f"heron {next(scene.numbers)} is mine")
    assert board.entries()
    board.erase(written.id)


def scratchpad(scene: Scene) -> None:
    pad = scene.talk.scratchpad
    pad.write("count", next(scene.numbers))
    pad.read("count")
    assert pad.list()
    assert pad.clear("count") == 1


def moments(scene: Scene) -> None:
    scene.ada.moments.record_task("count the herons", "success")
    scene.ada.moments.record_tool("glass", "see a heron", "failure")
    scene.ada.moments.record_decision("feed the heron", "approved")
    scene.ada.moments.record_content("a post on herons", 0.5)
    scene.ada.moments.record_delegation("bob", "watch the heron", "success")
    for moment in ("task", "tool", "decision", "content", "delegation"):
        getattr(scene.ada.moments, moment)("heron")


VERBS: list[Callable[[Scene], None]] = [
    remember,
    remember_many,
    get,
    list_,
    recall,
    context,
    consult,
    query,
    revise,
    forget_by_id,
    forget_by_tag,
    erase,
    history,
    undo,
    archive_and_restore,
    diagnose,
    doctor,
    verify,
    maintain,
    compact,
    stats,
    workspaces,
    forget_a_workspace,
    export,
    import_,
    audit,
    journal,
    whiteboard,
    scratchpad,
    moments,
]


def rounds(verb: Callable[[Scene], None], scene: Scene, url: str) -> Callable[[], None]:
    number = max(1, ROUNDS // 4) if url.startswith("postgresql") else ROUNDS  # each is many round trips to a server

    def work() -> None:
        for _ in range(number):
            verb(scene)

    return work


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__.strip("_"))
def test_any_verb_beside_a_recall(url: str, verb: Callable[[Scene], None]) -> None:
    with opened(url) as memory:
        scene = Scene(memory)
        beside(rounds(verb, scene, url), scene.recall)
        scene.recall()


EMBEDDED = [remember, revise, undo, forget_by_tag, erase, compact, context, import_, scratchpad, recall]


@pytest.mark.parametrize("verb", EMBEDDED, ids=lambda verb: verb.__name__.strip("_"))
def test_any_verb_beside_a_recall_while_vectors_are_made(url: str, verb: Callable[[Scene], None]) -> None:
    with opened(url, embedder=Concepts()) as memory:
        scene = Scene(memory)
        beside(rounds(verb, scene, url), scene.recall)
        scene.recall()


SESSIONS = ("june", "july", "august", "september")


class Ledger(Scene):
    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.sessions = memory.sessions
        for name in SESSIONS:
            self.sessions.create("ann", session_id=name)
            self.sessions.add(name, {"type": "finding", "content": f"a heron in {name}"})

    def recall(self) -> None:
        super().recall()
        assert self.memory.at(workspace=SESSIONS[-1], account="ann").recall("heron")


def sessions_of_their_own(scene: Ledger) -> None:
    name = scene.sessions.create("ann").session_id
    scene.sessions.load(name)
    scene.sessions.add_many(name, [{"type": "finding", "content": "a heron"}] * 3)
    scene.sessions.close(name)
    assert name in [session.session_id for session in scene.sessions.list()]
    scene.sessions.delete_session(name)


def session_entries(scene: Ledger) -> None:
    ident = scene.sessions.add("june", {"type": "finding", "content": "a heron", "tags": ["bird"]})
    assert scene.sessions.get("june", ident)
    assert scene.sessions.query("june", {"text": "heron"})
    assert scene.sessions.search_by_topic("june", "bird")
    assert scene.sessions.search_by_type("june", "finding")
    assert scene.sessions.search_by_time_range("june", "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z")
    assert scene.sessions.delete("june", ident)
    scene.sessions.add("june", {"type": "finding", "content": "an owl", "tags": ["owl"]})
    assert scene.sessions.delete_by_topic("june", "owl") == 1


def session_search(scene: Ledger) -> None:
    assert len(scene.sessions.search("heron")) >= len(SESSIONS)


def session_care(scene: Ledger) -> None:
    assert scene.sessions.export("july")
    scene.sessions.compact("july")
    assert scene.sessions.rebuild_index("july") == 1
    scene.sessions.migrate("july")
    scene.sessions.metrics()
    assert scene.sessions.stats("july")


@pytest.mark.parametrize("verb", [sessions_of_their_own, session_entries, session_search, session_care])
def test_sessions_beside_a_recall(tmp_path: Path, verb: Callable[[Ledger], None]) -> None:
    with opened(f"ledger:{tmp_path / 'memory'}", preset="ledger") as memory:
        scene = Ledger(memory)

        def work() -> None:
            for _ in range(ROUNDS):
                verb(scene)

        beside(work, scene.recall)
        scene.recall()


def test_two_search_all_sessions_while_a_third_recalls_in_the_last(tmp_path: Path) -> None:
    with opened(f"ledger:{tmp_path / 'memory'}", preset="ledger") as memory:
        scene = Ledger(memory)
        search = [lambda: [session_search(scene) for _ in range(40)]] * 2
        together(*search, lambda: [scene.recall() for _ in range(40)])


def test_a_program_of_one_thread_searches_sessions_while_their_vectors_are_made(tmp_path: Path) -> None:
    with opened(f"ledger:{tmp_path / 'memory'}", embedder=Concepts()) as memory:
        names = [*SESSIONS, *(f"week_{n}" for n in range(8))]

        def alone() -> None:
            for n in range(10):
                for name in names:
                    memory.sessions.add(name, {"type": "finding", "content": f"a dog {n} in {name}"})
                assert memory.sessions.search("dog")

        for name in names:
            memory.sessions.create("ann", session_id=name)
        together(alone)


def test_an_import_that_begins_with_an_account_beside_a_recall(store: str, tmp_path: Path) -> None:
    """What is written first is locked first, whichever comes first in the file."""
    kept = tmp_path / "kept.json"
    with opened(located(store, tmp_path / "before")) as before:
        ada = before.at(workspace="shop", account="ann", agent="ada")
        number_apart(before)  # so that a notebook's ids are not those of the one it is read into
        ada.forget([record.id for record in ada.remember_many("passing" for _ in range(10))], erase=True)
        ada.remember("Ann likes the heron", kind="preference", tier="account", created_at="2025-01-01T00:00:00Z")
        ada.remember_many(f"heron {n} in the shop" for n in range(20))
        ada.remember("Ann likes the owl", kind="preference", tier="account")
        ada.export(kept)
    assert kept.read_text().index("likes the heron") < kept.read_text().index("heron 0 in the shop")
    for n in range(12):
        with opened(located(store, tmp_path / f"memory-{n}")) as memory:
            ada = memory.at(workspace="shop", account="ann", agent="ada")
            ada.remember("a heron in the shop")
            ada.remember("Ann has a heron", kind="preference", tier="account")
            beside(partial(ada.import_, kept), partial(ada.recall, "heron"))
            assert ada.stats().total == 24


def test_a_memory_is_forgotten_for_good_while_it_is_recalled(url: str) -> None:
    """A recall gives what was there before or after, and never fails over what went away meanwhile."""
    with opened(url) as memory:
        scene = Scene(memory)

        def pass_by() -> None:
            for _ in range(ROUNDS):
                records = scene.fresh("passing")
                scene.ada.forget([record.id for record in records], erase=True)
                for record in records:
                    with pytest.raises(NotFoundError):
                        scene.ada.get(record.id)

        def look() -> None:
            for hit in scene.ada.recall("heron", limit=50):
                assert hit.memory.digest() == hit.memory.checksum

        beside(pass_by, look)
