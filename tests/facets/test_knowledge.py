"""The knowledge base: what is published is found, what is not is not, and nothing is read twice."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.command_line import SECRET
from support.common import Clock
from support.concepts import Concepts
from support.stores import FILES, STORES, located, traces

from recollect import AccessError, InputError, Memory, NotFoundError, SecretError, SizeLimitError, tools
from recollect.documents.files import Raw
from recollect.facets.knowledge.documents import place_of
from recollect.memory import view_of
from recollect.stores.files.ledger import Ledger
from recollect.stores.port import Place

GUIDE = "# Guide\n\nHow to keep lynxes.\n\n## Feeding\n\nA lynx eats twice a day.\n\n## Housing\n\nGive it a den.\n"


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "m")


@pytest.fixture
def memory(url: str, clock: Clock) -> Iterator[Memory]:
    with Memory(url, clock=clock, embedder="none") as memory:
        yield memory


def texts(memory: Memory, query: str, **options: Any) -> list[str]:
    return [one.text for one in memory.knowledge.search(query, **options)]


def written(memory: Memory) -> int:
    """How often something was changed there."""
    return memory._view.store.written(Place(memory.address.tenant, " knowledge"))


@pytest.mark.clause("ATL-04")
def test_only_what_is_published_is_searched(memory: Memory) -> None:
    added = memory.knowledge.add(GUIDE)
    assert (added.title, added.category, added.status, added.chunks, added.version) == (
        "Guide",
        "general",
        "draft",
        3,
        1,
    )
    assert memory.knowledge.search("lynx") == []
    published = memory.knowledge.publish(added.id)
    assert (published.status, published.version) == ("published", 2)
    (best, *_) = memory.knowledge.search("how often does a lynx eat?")
    assert best.text == "Guide › Feeding\n\nA lynx eats twice a day."
    assert (best.trail, best.title, best.document, best.where) == (("Guide", "Feeding"), "Guide", added.id, "line 7")
    assert "text" in str(best.explain())
    assert memory.knowledge.withdraw(added.id).status == "draft"
    assert memory.knowledge.search("lynx") == []
    assert memory.knowledge.get(added.id).chunks == 3


@pytest.mark.clause("ATL-04")
def test_passages_have_vectors_made_in_the_background_and_are_found_by_meaning(url: str) -> None:
    with Memory(url, preset="recollect", embedder=Concepts()) as memory:
        memory.knowledge.add("# Garage\n\nThe automobile is red.\n\n# Kennel\n\nThe hound barks.", status="published")
        assert texts(memory, "which puppy?", limit=1) == ["Garage › Kennel\n\nThe hound barks."]


@pytest.mark.clause("ATL-04", "ATL-18")
def test_it_is_shared_by_the_tenant_and_unknown_to_others(memory: Memory) -> None:
    acme = memory.at(tenant="acme")
    added = acme.knowledge.add(GUIDE, status="published")
    for view in (acme.at(workspace="shop", agent="ada"), acme.at(account="zoe"), acme.at(channel="ops")):
        assert len(view.knowledge.search("lynx den")) >= 1
        assert view.knowledge.get(added.id) == added
    for view in (memory, memory.at(tenant="evil"), memory.at(tenant="evil", agent="ada")):
        assert view.knowledge.search("lynx") == []
        assert view.knowledge.list() == []
        with pytest.raises(NotFoundError, match="there is no document"):
            view.knowledge.get(added.id)
    with pytest.raises(NotFoundError):
        memory.at(tenant="evil").knowledge.remove(added.id)
    assert len(acme.knowledge.list()) == 1


@pytest.mark.clause("ATL-04", "ATL-22")
def test_an_agent_searches_its_categories_only(memory: Memory) -> None:
    kb = memory.knowledge
    kb.add("The lynx is paid monthly", title="Pay", category="hr", status="published")
    kb.add("The lynx ships in boxes", title="Ship", category="Sales & logistics", status="published")
    ada = memory.at(agent="ada")
    assert sorted(one.title for one in ada.knowledge.search("lynx")) == ["Pay", "Ship"]
    kb.allow("ada", ["hr"])
    assert kb.allowed("ada") == ["hr"]
    assert [one.title for one in ada.knowledge.search("lynx")] == ["Pay"]
    assert [one.title for one in ada.knowledge.search("lynx", categories=["hr", "Sales & logistics"])] == ["Pay"]
    assert ada.knowledge.search("lynx", categories=["Sales & logistics"]) == []
    assert [one.title for one in ada.knowledge.list()] == ["Pay"]
    found = tools.call(ada, "search_atlasux_knowledge", {"query": "lynx"})
    assert [one["title"] for one in found["results"]] == ["Pay"]
    assert [one.source for one in ada.consult("lynx", sources=["knowledge"])] == ["knowledge"]
    assert len(memory.at(agent="bob").knowledge.search("lynx")) == 2
    assert [one.title for one in kb.search("lynx", categories=["Sales & logistics"])] == ["Ship"]
    kb.allow("ada", [])
    assert ada.knowledge.search("lynx") == ada.knowledge.list() == []
    kb.allow("ada", None)
    assert len(ada.knowledge.search("lynx")) == 2


@pytest.mark.clause("ATL-18")
@pytest.mark.parametrize("bound", ["agent", "account", "channel", "conversation"])
def test_only_the_owner_writes(memory: Memory, bound: str) -> None:
    added = memory.knowledge.add(GUIDE)
    view = memory.at(**{bound: "x"}).knowledge
    for change in (
        lambda: view.add("# Mine\nx"),
        lambda: view.add_folder("."),
        lambda: view.publish(added.id),
        lambda: view.withdraw(added.id),
        lambda: view.remove(added.id),
        lambda: view.allow("x", None),
    ):
        with pytest.raises(AccessError, match=f"knowledge: a view bound to the {bound} reads it"):
            change()
    assert memory.knowledge.list() == [added]
    assert view.list() == []
    with pytest.raises(NotFoundError):
        view.get(added.id)


def test_what_has_not_changed_is_not_written_again(memory: Memory, clock: Clock) -> None:
    kb = memory.knowledge
    first = kb.add(GUIDE, status="published")
    before = written(memory)
    clock.forward(hours=1)
    assert kb.add(GUIDE) == kb.add(GUIDE, title="Guide", category="general", status="published") == first
    assert written(memory) == before
    changed = kb.add(GUIDE.replace("twice", "three times"))
    assert (changed.id, changed.version, changed.status) == (first.id, 2, "published")
    assert (changed.created_at, changed.updated_at) == (first.created_at, first.updated_at + timedelta(hours=1))
    assert texts(memory, "lynx eats", limit=1) == ["Guide › Feeding\n\nA lynx eats three times a day."]
    assert not any("twice" in text for text in texts(memory, "lynx eats twice", limit=50))
    moved = kb.add(GUIDE.replace("twice", "three times"), category="zoo")
    assert (moved.category, moved.version, moved.status) == ("zoo", 3, "published")
    assert texts(memory, "lynx", categories=["general"]) == []
    assert len(kb.list()) == 1


def test_what_has_not_changed_is_not_even_parsed(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.md").write_text(GUIDE)
    memory.knowledge.add(path=tmp_path / "a.md")
    monkeypatch.setattr(Raw, "read", lambda raw: pytest.fail("it was parsed again"))
    memory.knowledge.add(path=tmp_path / "a.md", status="published")
    assert memory.knowledge.add_folder(tmp_path / "a.md").unchanged == 1
    assert memory.knowledge.search("lynx eats")


def test_memories_are_no_passages(memory: Memory) -> None:
    memory.knowledge.add(GUIDE, status="published")
    memory.remember("a lynx of the account", kind="knowledge", tier="account", source="general")
    assert not any("account" in text for text in texts(memory, "lynx account", limit=9))


def test_a_given_title_stays_and_one_of_the_document_follows_it(memory: Memory, tmp_path: Path) -> None:
    kb, file = memory.knowledge, tmp_path / "a.md"
    file.write_text("# One\nx")
    assert kb.add(path=file).title == "One"
    file.write_text("# Two\nx")
    assert kb.add(path=file).title == "Two"
    assert kb.add(path=file, title="Mine").title == "Mine"
    file.write_text("# Three\nx")
    assert kb.add(path=file).title == "Mine"
    (tmp_path / "plain.txt").write_text("no heading")
    assert kb.add(path=tmp_path / "plain.txt").title == "plain.txt"


def test_documents_are_listed_and_found_by_what_they_are(memory: Memory, clock: Clock) -> None:
    kb = memory.knowledge
    one = kb.add("# Lynxes\nx", category="zoo", status="published")
    two = kb.add("# Otters\nx", category="zoo")
    three = kb.add("# Tea\nx", source="wiki/tea")
    assert kb.list() == [one, two, three]
    assert kb.list(category="zoo") == [one, two]
    assert kb.list(status="draft") == [two, three]
    assert kb.list(contains="LYNX") == [one]
    assert kb.list(contains="wiki/") == [three]
    assert kb.list(category="zoo", status="draft", contains="tt") == [two]


def test_removing_erases_it_and_says_so(memory: Memory, url: str) -> None:
    kb = memory.knowledge
    kept = kb.add("# Otters\n\nswim", status="published")
    gone = kb.add("# Lynxes\n\nzyxwvut sleeps", status="published")
    receipt = kb.remove(gone.id, reason="outdated")
    erased = not url.startswith("postgresql")  # a server keeps traces, and says so
    assert (receipt.count, receipt.reason, receipt.erased) == (1, "outdated", erased)
    assert kb.search("zyxwvut") == []
    assert kb.list() == [kept]
    with pytest.raises(NotFoundError):
        kb.remove(gone.id)
    memory.close()
    assert traces(url, b"zyxwvut") == []
    assert [one.title for one in kb.search("otters swim")] == ["Otters"]


def test_compacting_removes_what_was_replaced_and_nothing_else(memory: Memory, url: str, clock: Clock) -> None:
    memory.knowledge.add("# Lynxes\n\nzyxwvut sleeps", status="published")
    memory.knowledge.add("# Lynxes\n\nit sleeps", status="published")
    clock.forward(days=1000)
    memory.compact()
    memory.close()
    assert traces(url, b"zyxwvut") == []
    assert texts(memory, "sleeps") == ["Lynxes\n\nit sleeps"]


def test_the_size_limit_of_a_ledgers_sessions_is_not_one_of_its_documents(tmp_path: Path) -> None:
    with Memory(Ledger(tmp_path / "m", settings={"storage": {"max_session_size_mb": 0.02}}), preset="ledger") as memory:
        for number in range(30):
            memory.knowledge.add(f"# Page {number}\n\n{'The lynx sleeps. ' * 60}", status="published")
        assert len(memory.knowledge.search("lynx", limit=50)) == 30
        with pytest.raises(SizeLimitError):
            memory.remember_many("The lynx sleeps. " * 60 for _ in range(30))


def test_a_ledger_that_makes_room_keeps_its_documents(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "p.toml").write_text("name = 'p'\n[ranking]\nformula = 'product'\n[retention]\ncompact_below = 0.9\n")
    with Memory(f"ledger:{tmp_path / 'm'}", preset=tmp_path / "p.toml", clock=clock, embedder="none") as memory:
        memory.knowledge.add(GUIDE, status="published")
        memory.remember("a lynx", importance=0.1)
        memory.compact()
        assert memory.list(state=None) == []
        assert len(memory.knowledge.search("lynx")) >= 1


def test_passages_are_no_memories(memory: Memory) -> None:
    mine = memory.remember("the otter swims")
    memory.knowledge.add(GUIDE, status="published")
    assert [hit.memory.id for hit in memory.recall("lynx otter")] == [mine.id]
    assert [one.id for one in memory.list(state=None)] == [mine.id]
    assert memory.workspaces() == ["default"]
    assert memory.stats().states["live"] == 1
    exported = io.BytesIO()
    assert memory.export(exported) == 1
    assert b"lynx" not in exported.getvalue()
    assert memory.maintain().decayed == ()
    with pytest.raises(InputError):
        memory.at(workspace=" knowledge")
    assert memory.verify() == []
    assert all(log.ok for log in memory.audit.verify())


@pytest.mark.parametrize("url", FILES, indirect=True)
def test_a_copy_has_the_documents(memory: Memory, url: str, tmp_path: Path) -> None:
    memory.knowledge.add(GUIDE, status="published")
    memory.backup(tmp_path / "copy")
    with Memory(located(url.partition(":")[0], tmp_path / "copy")) as copy:
        assert len(copy.knowledge.list()) == 1


def test_they_do_not_count_towards_a_quota_and_do_not_fade(tmp_path: Path, clock: Clock) -> None:
    preset = tmp_path / "small.toml"
    preset.write_text(
        'name = "small"\n[retention]\nquota = 3\narchive_below = 0.1\n[decay]\ncurve = "weekly"\nrate = 0.5\n'
    )
    with Memory(tmp_path / "m", preset=preset, clock=clock, embedder="none") as memory:
        for number in range(5):
            memory.knowledge.add(f"# Page {number}\n\nlynx", status="published")
        for number in range(3):
            memory.remember(f"note {number}", importance=0.9)
        assert len(memory.list()) == 3
        clock.forward(days=365)
        memory.maintain()
        memory.remember("another note")
        assert len(memory.knowledge.search("lynx", limit=50)) == 5


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "text: or path must be given, and not both"),
        ({"text": "x", "path": "y.md"}, "text: or path must be given, and not both"),
        ({"text": 3, "title": "x"}, "text: must be text, not int"),
        ({"text": "no heading"}, "title: must be given, since the text has no heading"),
        ({"text": " \n", "title": "x"}, "text: has no text that could be searched"),
        ({"text": "x", "title": ""}, "title: '' must be 1 to 200 printable characters"),
        ({"text": "x", "title": "x", "category": "a\nb"}, "category: 'a.nb' must be 1 to 64 printable characters"),
        ({"text": "x", "title": "x", "status": "live"}, "status: 'live' must be one of draft, published"),
        ({"text": "x", "title": "x", "format": "pdf"}, "format: 'pdf' must be one of md, txt, html"),
        ({"text": "\ud800", "title": "x"}, "text: has a lone surrogate at character 0"),
        ({"path": "none.md"}, "path: there is no file"),
        ({"path": "x.exe"}, "path: x.exe is of no known format"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(memory: Memory, given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        memory.knowledge.add(**given)
    assert memory.knowledge.list() == []
    assert written(memory) == 0
    assert memory.audit.search("knowledge refused")


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda kb: kb.search("x", limit=0), "limit"),
        (lambda kb: kb.search(3), "query"),
        (lambda kb: kb.search("x", categories="hr"), "categories"),
        (lambda kb: kb.allow("", ["x"]), "agent"),
        (lambda kb: kb.allow("a", [""]), "categories"),
        (lambda kb: kb.list(status="live"), "status"),
        (lambda kb: kb.get("no such/id"), "id"),
        (lambda kb: kb.add_folder("none"), "path"),
    ],
)
def test_other_verbs_refuse_too(memory: Memory, call: Any, problem: str) -> None:
    with pytest.raises(InputError) as refused:
        call(memory.knowledge)
    assert refused.value.field == problem


def test_a_line_that_is_a_secret_is_left_out_and_named_by_its_place(memory: Memory) -> None:
    text = f"# Setup\n\nFirst.\n\n```\nx = 1\nkey = {SECRET}\n```\n\nAt last, the otter swims.\n"
    added = memory.knowledge.add(text, source="setup.md", status="published")
    (place,) = added.left_out
    assert place.startswith("line 7: ")
    assert memory.knowledge.get(added.id).left_out == added.left_out
    texts = [one.text for one in memory.knowledge.search("setup first otter x", limit=20)]
    assert "x = 1" in str(texts)
    assert "the otter swims" in str(texts)
    assert "[left out: it looks like a secret]" in str(texts)
    assert SECRET not in str(texts)
    assert holding_the_secret(memory) == []
    assert memory.knowledge.add(text.replace(SECRET, "…"), source="setup.md").left_out == ()


def holding_the_secret(memory: Memory) -> list[str]:
    store, place = view_of(memory).store, place_of(view_of(memory))
    things = [str(thing.body) for thing in store.shelf(place)]
    return [text for text in [*things, str(memory.audit.search(limit=100))] if SECRET in text]


def test_a_private_key_is_left_out_to_its_end(memory: Memory) -> None:
    body = "MIIEowIBAAKCAQEAx" + "0Ab1" * 10
    key = "-----BEGIN RSA PRIVATE" + f" KEY-----\n{body}\n\n{body}\nab12\n-----END RSA PRIVATE" + " KEY-----"
    added = memory.knowledge.add(f"Before it.\n\n{key}\n\nAfter it.\n", title="keys", status="published")
    texts = str([one.text for one in memory.knowledge.search("before after ab12 key", limit=20)])
    assert "Before it." in texts
    assert "After it." in texts
    assert "ab12" not in texts
    assert body not in texts
    assert len(added.left_out) == 2


def test_a_document_that_is_nothing_but_a_secret_is_refused(memory: Memory) -> None:
    with pytest.raises(SecretError) as refused:
        memory.knowledge.add(f"# Setup\n\n{SECRET}\n", source="setup.md")
    assert str(refused.value) == "setup.md, line 3: text appears to contain a secret — not stored"
    for field in ("title", "source", "category"):
        with pytest.raises(SecretError):
            memory.knowledge.add("x", **{"title": "x", field: SECRET})
    with pytest.raises(SecretError):
        memory.knowledge.allow(SECRET, None)
    assert memory.knowledge.list() == []


def test_the_documents_of_this_project_are_taken_whole(tmp_path: Path) -> None:
    docs = Path(__file__).parent.parent.parent / "docs"
    with Memory(tmp_path / "memory") as memory:
        report = memory.knowledge.add_folder(docs)
    assert report.added == len([*docs.rglob("*.md")])
    assert (report.refused, report.left_out) == ((), ())


def test_a_folder_is_added_file_by_file_and_only_what_changed_again(memory: Memory, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "a.md").write_text(GUIDE)
    (docs / "deep" / "b.txt").write_text("The otter swims")
    (docs / "c.html").write_text("<h1>Tea</h1><p>is at four</p>")
    (docs / "secret.md").write_text(SECRET)
    (docs / "empty.md").write_text("")
    (docs / "broken.txt").write_bytes(b"\xff\xff")
    done: list[int] = []
    report = memory.knowledge.add_folder(docs, category="zoo", status="published", progress=done.append)
    assert (report.added, report.changed, report.unchanged, report.chunks) == (3, 0, 0, 5)
    assert done == [1, 2, 3, 4, 5, 6]
    assert {Path(one.source).name: one.reason.partition(":")[0] for one in report.refused} == {
        "broken.txt": "path",
        "empty.md": "text",
        "secret.md": "secret.md, line 1",
    }
    assert SECRET not in str(report)
    assert {one.source for one in memory.knowledge.list()} == {str(docs / n) for n in ("a.md", "deep/b.txt", "c.html")}
    before = written(memory)
    again = memory.knowledge.add_folder(docs)
    assert (again.added, again.changed, again.unchanged, again.chunks) == (0, 0, 3, 0)
    assert written(memory) == before
    (docs / "a.md").write_text(GUIDE + "\nMore.")
    assert memory.knowledge.add_folder(docs).changed == 1


def test_a_file_whose_name_is_no_text_is_refused_and_the_others_go_on(memory: Memory, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# A\nx")
    (Path(os.fsdecode(os.fsencode(docs) + b"/b\xff.md"))).write_text("# B\nx")
    report = memory.knowledge.add_folder(docs)
    assert report.added == 1
    assert [one.source for one in report.refused] == [f"{docs}/b\\xff.md"]
    assert msgspec.json.encode(report)


def test_the_agent_of_the_stores_own_file_does_not_stop_the_owner(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "recollect.toml").write_text('agent = "ada"\n')
    with Memory(tmp_path / "m", embedder="none") as memory:
        added = memory.knowledge.add(GUIDE)
        assert memory.knowledge.list() == [added]
        memory.knowledge.publish(added.id)
        memory.knowledge.allow("ada", ["hr"])
        assert memory.knowledge.search("lynx") == []
        with pytest.raises(AccessError):
            memory.at(agent="ada").knowledge.withdraw(added.id)


def test_a_named_folder_is_the_same_wherever_it_is(memory: Memory, tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place / "sub").mkdir(parents=True)
        (tmp_path / place / "sub" / "a.md").write_text("# A\nx")
    assert memory.knowledge.add_folder(tmp_path / "here", name="handbook").added == 1
    assert memory.knowledge.add_folder(tmp_path / "there", name="handbook").unchanged == 1
    assert [one.source for one in memory.knowledge.list()] == ["handbook/sub/a.md"]


def test_a_knowledge_base_is_no_session_of_a_ledger(tmp_path: Path) -> None:
    with Memory(f"ledger:{tmp_path / 'm'}", preset="ledger") as memory:
        memory.remember("a lynx", tags=["zoo"])
        memory.knowledge.add(GUIDE, status="published")
        assert [one.session_id for one in memory.sessions.list()] == ["default"]
        assert memory.sessions.metrics()["memory.entries.total"] == 1
        assert memory.sessions.metrics()["memory.sessions.active"] == 1
        memory.close()
        assert not any("knowledge" in path.read_text() for path in (tmp_path / "m" / "indices").iterdir())


def test_vectors_of_passages_are_made_with_the_rest(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.knowledge.add(GUIDE)
        memory.remember("a dog")
    with Memory(url, embedder=Concepts()) as memory:
        memory.embed()
        assert memory.embed() == memory.embed(wait=False) == 0
        place = Place("default", " knowledge")
        ids = memory._view.store.find(place, "knowledge", [memory.knowledge.list()[0].id])[0].body["chunks"]
        assert all(record.embedding is not None for record in memory._view.store.get(place, ids))


def test_what_was_added_is_there_after_closing(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        added = memory.knowledge.add(GUIDE, status="published")
        memory.knowledge.allow("ada", ["zoo"])
    with Memory(url, embedder="none") as memory:
        assert memory.knowledge.list() == [added]
        assert len(memory.knowledge.search("lynx", limit=50)) >= 1
        assert memory.at(agent="ada").knowledge.search("lynx") == []
