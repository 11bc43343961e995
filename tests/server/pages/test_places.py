"""Conversations, agents, knowledge and review, without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from support import plain
from support.common import Clock
from support.furnished import EVIL, SECRET, Furnished, lax
from support.page_data import page_data
from support.served import Served, served

from recollect import Memory, NotFoundError
from recollect.memory import view_of
from recollect.server.reviews import Reviews


@pytest.fixture
def furnished(site: Served, store_url: str, clock: Clock) -> Furnished:
    return Furnished(site.serving, store_url, clock)


@pytest.fixture
def client(site: Served) -> Iterator[httpx.Client]:
    with plain.Client(base_url=site.url, headers=site.headers("owner", all_tenants=True), timeout=30) as client:
        yield client


def test_every_page_is_there_and_is_html(client: httpx.Client, furnished: Furnished) -> None:
    for path in furnished.paths().values():
        assert isinstance(page_data(client, path), dict)


def test_no_page_holds_what_was_stored_as_markup(client: httpx.Client, furnished: Furnished) -> None:
    evil = 0
    for name, path in furnished.paths().items():
        text = client.get(path).text
        assert "<script>alert" not in text, name
        assert "<img src=x" not in text, name
        assert "style=" not in text, name
        evil += "&lt;script&gt;alert" in text
    assert evil >= 12, "what is hostile is hardly shown, so that nothing is proved"


def test_a_refusal_repeats_what_was_typed_and_runs_nothing(client: httpx.Client, furnished: Furnished) -> None:
    forms: list[tuple[str, dict[str, str]]] = [
        ("/conversations/start", {"title": EVIL, "channel": "nowhere"}),
        ("/channels/create", {"name": EVIL, "description": "again"}),
        ("/knowledge/add", {"text": "", "title": EVIL}),
        ("/knowledge/allow", {"agent": EVIL, "how": "neither"}),
        ("/access/keys", {"name": EVIL, "rank": "king"}),
        ("/access/people", {"name": EVIL, "password": "short"}),
    ]
    for path, form in forms:
        answer = client.post(path, data=form)
        assert answer.status_code in (400, 404, 409), path
        assert 'role="alert"' in answer.text
        assert "&lt;script&gt;alert(&#39;x&#39;)" in answer.text, path
        assert "<script>alert" not in answer.text


DANGEROUS: list[tuple[str, dict[str, str], str]] = [
    ("/agents/{agent}/memories/{core}/delete", {}, "delete"),
    ("/knowledge/{handbook}/remove", {}, "remove"),
    ("/review/erase", {"key": "found:{secret}"}, "erase"),
    ("/jobs/run", {"job": "undo"}, "run"),
    ("/access/keys/{key}/rotate", {}, "rotate"),
    ("/access/keys/{key}/revoke", {}, "revoke"),
    ("/access/people/{person}/remove", {}, EVIL.lower()),
]


@pytest.mark.parametrize(("path", "form", "word"), DANGEROUS, ids=[one[0] for one in DANGEROUS])
def test_what_cannot_be_taken_back_wants_its_word(
    client: httpx.Client, furnished: Furnished, path: str, form: dict[str, str], word: str
) -> None:
    parts = {**vars(furnished), "agent": quote(EVIL, safe=""), "person": quote(EVIL.lower(), safe="")}
    there = path.format(**parts)
    filled = {name: value.format(**parts) for name, value in form.items()}
    before = _all(furnished)
    for typed in ("", word.upper(), f"{word}!", "yes"):
        answer = client.post(there, data={**filled, "confirm": typed})
        assert answer.status_code == 400, typed
        assert "to go on; nothing was changed" in answer.text
        assert _all(furnished) == before
    assert client.post(there, data={**filled, "confirm": word}).status_code in (200, 303)


def _all(furnished: Furnished) -> Any:
    accounts = furnished.serving.accounts
    memories = {one.id for one in furnished.memory.list(state=None, limit=1000)}
    documents = [one.id for one in furnished.memory.knowledge.list()]
    keys = sorted((one.id, one.revoked_at is None) for one in accounts.keys.list())
    return memories, documents, keys, [one.name for one in accounts.people.list()]


# Conversations


def test_conversations_are_filtered_paged_and_searched(client: httpx.Client, furnished: Furnished) -> None:
    talks = furnished.memory.conversations
    for number in range(60):
        talks.start(f"talk {number}")
    talks.archive(talks.start("put away").id)

    def titles(**asked: str) -> list[str]:
        found = page_data(client, "/conversations", asked)
        return [one["title"] for one in found["conversations"]]

    assert titles(q="talk 5") == [f"talk {n}" for n in (59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 5)]
    assert titles(channel=EVIL) == [EVIL]
    assert titles(status="archived") == ["put away"]
    first = page_data(client, "/conversations")
    second = page_data(client, "/conversations", {"after": first["next"]})
    seen = [one["title"] for one in first["conversations"] + second["conversations"]]
    assert seen == [*(f"talk {n}" for n in range(59, -1, -1)), EVIL]
    assert second["next"] is None


def test_a_conversation_is_started_ended_and_put_away(client: httpx.Client, furnished: Furnished) -> None:
    made = client.post("/conversations/start", data={"title": "Tea", "channel": "general"})
    there = made.headers["location"]
    talk = furnished.memory.conversations.get(there.rpartition("/")[2])
    furnished.memory.conversations.say(talk.id, "user", "I prefer e-mail to calls.")
    shown = page_data(client, there)
    assert [(one["role"], one["text"]) for one in shown["turns"]] == [("user", "I prefer e-mail to calls.")]
    assert client.post(f"{there}/idle").status_code == 303
    after = page_data(client, there)
    assert (after["conversation"]["status"], after["turns"]) == ("idle", [])
    assert [one["text"] for one in after["kept"]] == ["I prefer e-mail to calls."]
    again = client.post(f"{there}/idle")
    assert again.status_code == 409
    assert 'role="alert"' in again.text
    assert client.post(f"{there}/archive").status_code == 303
    assert furnished.memory.conversations.get(talk.id).status == "archived"


def test_a_scratchpad_is_shown_and_not_to_be_changed(client: httpx.Client, furnished: Furnished) -> None:
    text = client.get(f"/conversations/{furnished.talk}").text
    pad = text.partition('id="notes"')[2].partition("</section>")[0]
    assert "Working Note" in pad
    assert "<form" not in pad
    assert "<input" not in pad


# Agents


@pytest.fixture
def diary(store_url: str, clock: Clock) -> Iterator[Memory]:
    with Memory(store_url, preset="journal", clock=clock) as memory:
        yield memory


@pytest.mark.clause("JRN-08")
def test_an_agents_page_has_the_latest_hundred_newest_first(diary: Memory, clock: Clock) -> None:
    atlas = diary.at(agent="atlas")
    for number in range(105):
        clock.forward(minutes=1)
        (atlas.journal.save_core if number % 2 else atlas.journal.save)(f"number {number}")
    with served(diary) as server:
        shown = page_data(plain, f"{server.url}/agents/atlas", headers=server.headers("admin"))
    assert [one["content"] for one in shown["memories"]] == [f"number {n}" for n in range(104, 4, -1)]
    assert {one["memory_type"] for one in shown["memories"]} == {"core", "journal"}
    assert shown["told"] == "52 core memories, 53 journal entries"


@pytest.mark.clause("JRN-08", "JRN-11")
def test_core_and_journal_are_told_apart_and_what_expired_is_dimmed(diary: Memory, clock: Clock) -> None:
    atlas = diary.at(agent="atlas")
    atlas.journal.save("an old day")
    atlas.journal.save_core("I am called Atlas")
    clock.forward(days=8, hours=1)
    atlas.journal.save("today")
    with served(diary) as server:
        text = plain.get(f"{server.url}/agents/atlas", headers=server.headers("admin")).text
    entries = re.findall(r'<li class="item entry ([a-z ]+)">(.*?)</li>', text, re.DOTALL)
    assert [kind for kind, _ in entries] == ["journal", "core", "journal faded"]
    assert [re.findall(r'class="badge expired">.*?expired', body, re.DOTALL) != [] for _, body in entries] == [
        False,
        False,
        True,
    ]
    icons = [re.findall(r"<svg.*?</svg>", body, re.DOTALL)[0] for _, body in entries]
    assert icons[0] == icons[2] != icons[1]
    assert [re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d", body)[0] for _, body in entries] == [
        "2026-03-09 13:00",
        "2026-03-01 12:00",
        "2026-03-01 12:00",
    ]
    assert (
        "Review and manage this agent&#39;s memories. Core memories are permanent; journal entries fade after a week."
        in text
    )
    assert "1 core memories, 2 journal entries" in text


@pytest.mark.clause("JRN-08", "JRN-11")
def test_a_memory_of_an_agent_is_deleted_for_good(client: httpx.Client, furnished: Furnished) -> None:
    there = f"/agents/{quote(EVIL, safe='')}"
    assert "Delete this memory permanently?" in client.get(there).text
    answer = client.post(f"{there}/memories/{furnished.core}/delete", data={"confirm": "delete"})
    assert (answer.status_code, answer.headers["location"]) == (303, there)
    with pytest.raises(NotFoundError):
        furnished.memory.get(furnished.core)
    assert furnished.memory.get(furnished.entry)
    assert furnished.memory.audit.search(about=furnished.core, limit=1)[0].action == "erase"
    other = client.post(f"{there}/memories/{furnished.secret}/delete", data={"confirm": "delete"})
    assert other.status_code == 404
    assert furnished.memory.get(furnished.secret), "what is not the agent's own is not deleted on its page"


@pytest.mark.clause("JRN-08", "JRN-11")
def test_an_agent_without_memories_has_the_documents_words(client: httpx.Client, furnished: Furnished) -> None:
    assert (
        "This agent has no memories yet. Memories will appear here as the agent creates them using save_to_journal or "
        "save_to_core tools."
    ) in client.get("/agents/nobody").text


def test_what_a_preset_keeps_for_ever_does_not_fade(client: httpx.Client, furnished: Furnished) -> None:
    assert "fade after a week" not in client.get("/agents/nobody").text


# Knowledge


@pytest.mark.parametrize(
    "name", ["guide.md", "<img src=x onerror=alert(1)>.md", "../../etc/passwd.txt", "a\\b\\c.html"]
)
def test_a_file_is_uploaded_whatever_it_is_called(client: httpx.Client, furnished: Furnished, name: str) -> None:
    files = {"file": (name, b"# Guide\n\nFerries leave at nine.", "text/plain")}
    answer = client.post("/knowledge/add", files=files, data={"category": "travel", "publish": "1"})
    assert answer.status_code == 303, answer.text
    known = furnished.memory.knowledge.get(answer.headers["location"].rpartition("/")[2])
    assert known.source == re.split(r"[\\/]", name)[-1]
    assert (known.category, known.status) == ("travel", "published")
    shown = client.get(answer.headers["location"]).text
    assert "Ferries leave at nine." in shown
    assert "<img src=x" not in shown


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [("x.exe", b"MZ", "no known format"), (".md", b"x", "such as guide.pdf"), ("x.md", SECRET.encode(), "secret")],
)
def test_a_file_that_cannot_be_taken_says_why(
    client: httpx.Client, furnished: Furnished, name: str, content: bytes, told: str
) -> None:
    before = len(furnished.memory.knowledge.list())
    answer = client.post("/knowledge/add", files={"file": (name, content)}, data={"title": "kept"})
    assert answer.status_code == 400
    assert told in answer.text
    assert 'value="kept"' in answer.text
    assert len(furnished.memory.knowledge.list()) == before


def test_documents_are_published_withdrawn_found_and_removed(client: httpx.Client, furnished: Furnished) -> None:
    base, there = furnished.memory.knowledge, f"/knowledge/{furnished.prices}"

    def answers() -> list[str]:
        found = page_data(client, "/knowledge", {"q": "what does tea cost?"})["passages"]
        return [one["title"] for one in found]

    assert "Prices" not in answers()
    assert client.post(f"{there}/publish").status_code == 303
    assert "Prices" in answers()
    assert client.post(f"{there}/withdraw").status_code == 303
    assert "Prices" not in answers()
    assert client.post(f"{there}/remove", data={"confirm": "remove"}).status_code == 303
    assert [one.id for one in base.list()] == [furnished.handbook]
    assert client.get(there).status_code == 404


def test_a_reader_sees_what_is_published_and_no_drafts(site: Served, furnished: Furnished) -> None:
    headers = site.headers("reader", account="acme")
    shown = page_data(plain, f"{site.url}/knowledge", headers=headers)
    assert [one["id"] for one in shown["documents"]] == [furnished.handbook]
    assert not shown["may_change"]
    assert plain.get(f"{site.url}/knowledge/{furnished.prices}", headers=headers).status_code == 404


def test_who_may_search_what_is_changed(client: httpx.Client, furnished: Furnished) -> None:
    base = furnished.memory.knowledge
    client.post("/knowledge/allow", data={"agent": "atlas", "how": "some", "categories": "shop, people"})
    assert base.allowed("atlas") == ["shop", "people"]
    client.post("/knowledge/allow", data={"agent": "atlas", "how": "some", "categories": ""})
    assert base.allowed("atlas") == []
    client.post("/knowledge/allow", data={"agent": "atlas", "how": "all"})
    assert base.allowed("atlas") is None


# Review


def _review(client: httpx.Client) -> dict[str, Any]:
    return page_data(client, "/review")


def test_a_review_finds_doubles_contradictions_and_secrets(client: httpx.Client, furnished: Furnished) -> None:
    found = _review(client)
    assert [[one["keep"]["id"], *(other["id"] for other in one["others"])] for one in found["doubles"]] == [
        furnished.doubles[::-1]
    ]
    assert [(one["memory"]["text"], one["by"]["text"]) for one in found["contradictions"]] == [
        ("The limit is 100", "The limit is 250")
    ]
    assert [one["memory"]["id"] for one in found["secrets"]] == [furnished.secret]


def test_what_is_accepted_is_done_and_can_be_taken_back(client: httpx.Client, furnished: Furnished) -> None:
    memory, found = furnished.memory, _review(client)
    client.post("/review/merge", data={"key": found["doubles"][0]["key"]})
    assert [one.id for one in memory.list(contains="office")] == [furnished.doubles[-1]]
    client.post("/review/apply", data={"key": found["contradictions"][0]["key"], "do": "accept"})
    assert [one.text for one in memory.list(contains="limit")] == ["The limit is 250"]
    memory.undo()
    assert len(memory.list(contains="limit")) == 2
    assert _review(client)["doubles"] == []


def test_a_possible_change_is_decided_in_review(client: httpx.Client, furnished: Furnished) -> None:
    memory = furnished.memory
    for accept in (False, True):
        memory.remember("My name is Ada and I live in Lisbon.")
        with memory.conversation("a talk") as talk:
            talk.say("user", f"I moved to {'Porto' if accept else 'Braga'} last month.")
        (found,) = [one for one in _review(client)["contradictions"] if one["perhaps"]]
        done = client.post("/review/apply" if accept else "/review/reject", data={"key": found["key"], "do": "accept"})
        assert done.status_code == 303
        assert [one for one in _review(client)["contradictions"] if one["perhaps"]] == []
        assert len(memory.list(contains="Lisbon")) == (0 if accept else 1)
        memory.forget([record.id for record in memory.list(contains="last month")])


def test_what_is_turned_down_stays_hidden_audited_and_exported(
    client: httpx.Client, furnished: Furnished, tmp_path: Any
) -> None:
    memory, found = furnished.memory, _review(client)
    for section in ("doubles", "contradictions", "secrets"):
        assert client.post("/review/reject", data={"key": found[section][0]["key"]}).status_code == 303
    after = _review(client)
    assert (after["doubles"], after["contradictions"], after["secrets"], after["hidden"]) == ([], [], [], 3)
    assert len(memory.list(contains="limit")) == 2
    entries = memory.audit.search(action="review")
    assert [one.message for one in entries] == ["turned down 1 suggestion"] * 3
    memory.export(tmp_path / "all.json")
    with Memory(tmp_path / "copy", preset=lax()) as copy:
        copy.import_(tmp_path / "all.json")
        assert {one.key for one in Reviews(view_of(copy)).list()} == {
            one.key for one in Reviews(view_of(memory)).list()
        }
    memory.undo(entries[0].id)
    assert [one["memory"]["id"] for one in _review(client)["secrets"]] == [furnished.secret]
    shown = client.get("/review", params={"hidden": "1"}).text
    assert found["doubles"][0]["key"] in shown
    client.post("/review/again", data={"key": found["doubles"][0]["key"]})
    assert len(_review(client)["doubles"]) == 1


def test_what_changed_meanwhile_is_not_merged(client: httpx.Client, furnished: Furnished) -> None:
    key = _review(client)["doubles"][0]["key"]
    furnished.memory.revise(furnished.doubles[0], content="the office moved")
    answer = client.post("/review/merge", data={"key": key})
    assert answer.status_code == 409
    assert "changed meanwhile" in answer.text
    assert len(furnished.memory.list(contains="office")) == 3


def test_a_suggestion_that_nobody_made_is_not_kept(client: httpx.Client, furnished: Furnished) -> None:
    for key in ("double:0000", f"found:{furnished.core}", EVIL):
        assert client.post("/review/reject", data={"key": key}).status_code == 409
    assert Reviews(view_of(furnished.memory)).list() == []
    assert client.post("/review/apply", data={"key": f"compact:{furnished.core}"}).status_code == 400


def test_a_secret_is_erased_from_the_disk(client: httpx.Client, furnished: Furnished, tmp_path: Any) -> None:
    form = {"key": f"found:{furnished.secret}", "confirm": "erase"}
    answer = client.post("/review/erase", data=form)
    assert "1 memory is gone from the disk" in answer.text
    furnished.memory.close()
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"Z7QX4MPL2RWT9KDN" not in files
