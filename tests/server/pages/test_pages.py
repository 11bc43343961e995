"""What pages answer, without a browser: their twins in JSON, who may what, and what must be typed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from server.pages.conftest import HOSTILE, Filled
from support import plain
from support.page_data import page_data
from support.served import Served

from recollect import NotFoundError


@pytest.fixture
def client(site: Served) -> Iterator[httpx.Client]:
    with plain.Client(base_url=site.url, headers=site.headers("member")) as client:
        yield client


def test_every_page_is_there_and_is_html(client: httpx.Client, filled: Filled) -> None:
    for path in filled.paths().values():
        assert isinstance(page_data(client, path), dict)
    for asked in ({"params": {"format": "json"}}, {"headers": {"accept": "application/json"}}):
        answer = client.get("/memories", **asked)  # a program is answered by the API alone
        assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_no_page_holds_what_was_stored_as_markup(client: httpx.Client, filled: Filled) -> None:
    for name, path in filled.paths().items():
        text = client.get(path).text
        assert "<script>alert" not in text, name
        assert "<img src=x" not in text, name
        assert 'style="' not in text, name


def test_pages_go_on_where_the_last_ended(client: httpx.Client, filled: Filled) -> None:
    whole = [one.id for one in filled.memory.list(limit=1000)]
    seen: list[str] = []
    after = ""
    while True:
        data = page_data(client, "/memories", {"after": after})
        seen += [one["id"] for one in data["memories"]]
        after = data["next"]
        if not after:
            break
    assert seen == whole


@pytest.mark.parametrize(
    ("asked", "texts"),
    [
        ({"kind": "preference"}, ["Ada likes black tea with milk"]),
        ({"tag": "drinks", "state": "superseded"}, ["Ada likes green tea"]),
        ({"source": "chat"}, ["Ada likes black tea with milk"]),
        ({"state": "archived"}, ["An old plan that nobody follows"]),
        ({"q": "black tea"}, ["Ada likes black tea with milk"]),
        ({"q": "old plan", "state": "archived"}, ["An old plan that nobody follows"]),
        ({"q": "rotat"}, ["The deploy key rotates on Monday"]),
        ({"tier": "conversation", "order": "oldest"}, ["Beans?", "Beans in May", "Roses too"]),
        ({"kind": "procedure", "agent": "bora"}, []),
        ({"kind": "procedure", "agent": "atlas"}, ["The deploy key rotates on Monday"]),
    ],
)
def test_memories_are_filtered_and_searched(
    client: httpx.Client, filled: Filled, asked: dict[str, str], texts: list[str]
) -> None:
    found = page_data(client, "/memories", asked)["memories"]
    assert [one["text"] for one in found][: len(texts) or None] == texts


def test_a_filter_that_cannot_be_is_told_beside_the_form(client: httpx.Client) -> None:
    answer = client.get("/memories", params={"kind": "not a kind!"})
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text
    assert 'id="results"' in answer.text


def test_searching_counts_no_retrieval(client: httpx.Client, filled: Filled) -> None:
    def counts() -> dict[str, int]:
        return {one.id: one.access_count for one in filled.memory.list(limit=1000, state=None)}

    before = counts()
    for path in filled.paths().values():
        client.get(path)
    assert counts() == before


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("/memories/new", {"content": "x"}),
    ("/memories/bulk", {"do": "archive", "id": "{ada}"}),
    ("/memories/{ada}/revise", {"content": "x"}),
    ("/memories/{ada}/archive", {}),
    ("/memories/{ada}/restore", {}),
    ("/memories/{ada}/forget", {}),
    ("/lab/save?q=tea", {"texts": "tea"}),
    ("/lab/remove", {"question": "tea"}),
    ("/undo", {}),
]


@pytest.mark.parametrize(("path", "form"), CHANGES, ids=[path for path, _ in CHANGES])
def test_a_reader_looks_and_changes_nothing(site: Served, filled: Filled, path: str, form: dict[str, Any]) -> None:
    before = filled.memory.audit.search(limit=1)[0].id
    filling = {name: value.format(ada=filled.ada) for name, value in form.items()}
    answer = plain.post(site.url + path.format(ada=filled.ada), data=filling, headers=site.headers("reader"))
    assert answer.status_code == 403
    changes = [one for one in filled.memory.audit.search(limit=5) if one.action != "refuse"]
    assert changes[0].id == before
    shown = plain.get(f"{site.url}/memories/{filled.ada}", headers=site.headers("reader")).text
    assert "Save as a new version" not in shown
    assert "Erase" not in shown


@pytest.mark.parametrize("typed", ["", "forget", "ERASE", "erase!"])
def test_nothing_is_erased_unless_the_word_is_typed(client: httpx.Client, filled: Filled, typed: str) -> None:
    for path, form in (
        (f"/memories/{filled.ada}/forget", {"do": "erase"}),
        ("/memories/bulk", {"do": "erase", "id": filled.ada}),
    ):
        answer = client.post(path, data={**form, "confirm": typed})
        assert answer.status_code == 400
        assert "type erase to go on" in answer.text
    assert filled.memory.get(filled.ada).text == "Ada likes black tea with milk"


def test_many_are_forgotten_only_by_the_word(client: httpx.Client, filled: Filled) -> None:
    form = {"do": "forget", "id": [filled.ada, filled.atlas]}
    assert client.post("/memories/bulk", data=form).status_code == 400
    assert filled.memory.get(filled.ada)
    assert client.post("/memories/bulk", data={**form, "confirm": "forget"}).status_code == 303
    for ident in (filled.ada, filled.atlas):
        with pytest.raises(NotFoundError):
            filled.memory.get(ident)


def test_erasing_gives_a_receipt(client: httpx.Client, filled: Filled) -> None:
    form = {"do": "erase", "confirm": "erase", "reason": "asked to"}
    answer = client.post(f"/memories/{filled.ada}/forget", data=form)
    assert answer.status_code == 200
    assert filled.ada in answer.text
    assert "2 memories are gone" in answer.text  # with the version before
    assert filled.memory.diagnose(filled.ada).status == "forgotten"


@pytest.mark.parametrize("path", ["/memories/new", "/memories/{ada}/revise"])
def test_what_was_typed_is_still_there_when_it_is_refused(client: httpx.Client, filled: Filled, path: str) -> None:
    typed = "my token is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
    answer = client.post(path.format(ada=filled.ada), data={"content": typed, "tags": "one, two", "kind": "fact"})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert "appears to contain a secret" in answer.text
    assert typed in answer.text
    assert "one, two" in answer.text


def test_a_form_leads_back_to_no_other_site(client: httpx.Client, filled: Filled) -> None:
    for at, back in enumerate(("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)")):
        form = {"do": "restore" if at % 2 else "archive", "id": filled.ada, "back": back}
        answer = client.post("/memories/bulk", data=form)
        assert answer.headers["location"] == "/memories"


def test_a_case_is_saved_and_given_as_a_file(client: httpx.Client, filled: Filled) -> None:
    answer = client.post("/lab/save", params={"q": "what does Ada like?"}, data={"id": filled.ada, "limit": "5"})
    assert answer.status_code == 303
    file = client.get("/lab/cases")
    assert file.headers["content-disposition"] == 'attachment; filename="cases.jsonl"'
    assert f'"ids":["{filled.ada}"]' in file.text
    refused = client.post("/lab/save", params={"q": "what?"}, data={"limit": "5"})
    assert refused.status_code == 400
    assert "name at least one memory" in refused.text


def test_the_parts_of_a_score_add_up(client: httpx.Client, filled: Filled) -> None:
    data = page_data(client, "/lab", {"q": "black tea", "against": "atlas"})
    assert [side["preset"] for side in data["sides"]] == ["recollect", "atlas"]
    for side in data["sides"]:
        for hit in side["hits"]:
            assert sum(part["share"] for part in hit["parts"]) == pytest.approx(hit["score"])
            assert hit["parts"][-1]["end"] == pytest.approx(hit["score"])
    assert filled.memory.preset.name == "recollect"


def test_a_context_is_what_the_verb_makes(client: httpx.Client, filled: Filled) -> None:
    asked = {"messages": "user: what does Ada like, tea?", "budget": "500"}
    shown = page_data(client, "/context", asked)["result"]
    made = filled.memory.context([{"role": "user", "content": "what does Ada like, tea?"}], budget=500)
    assert [one["text"] for one in shown["messages"]] == [one["content"] for one in made.messages]
    assert shown["tokens"] == sum(one["tokens"] for one in shown["sections"]) == made.report.tokens


def test_the_timeline_shows_what_was_known_then(client: httpx.Client, filled: Filled, clock: Any) -> None:
    clock.forward(days=10)
    filled.memory.revise(filled.ada, content="Ada likes coffee now")
    then = page_data(client, "/timeline", {"as_of": "2026-03-01"})
    now = page_data(client, "/timeline")
    assert "Ada likes coffee now" not in [one["text"] for one in then["memories"]]
    assert now["memories"][0]["text"] == "Ada likes coffee now"
    assert sum(day["superseded"] for day in now["days"]) == 2


def test_what_is_not_there_is_told_as_such(client: httpx.Client, filled: Filled) -> None:
    assert client.get("/memories/nowhere").status_code == 404
    filled.memory.forget(filled.ada)
    gone = client.get(f"/memories/{filled.ada}")
    assert (gone.status_code, "Forgotten" in gone.text) == (200, True)


def test_hostile_text_is_what_it_claims(filled: Filled) -> None:
    assert filled.memory.get(filled.hostile).text == HOSTILE


@pytest.mark.clause("INK-20")
def test_working_notes_are_shown_in_the_tier_of_conversations(client: httpx.Client, filled: Filled) -> None:
    filled.memory.at(conversation="never started").scratchpad.write("when", "in May")

    def notes(**asked: str) -> list[tuple[str, str]]:
        data = page_data(client, "/memories", asked)
        return sorted((one["key"], one["conversation"]) for one in data["notes"])

    both = [("plan", filled.talk), ("when", "never started")]
    assert notes(tier="conversation") == both
    assert notes(conversation=filled.talk) == both[:1]
    assert notes(tier="conversation", q="BEANS") == both[:1]
    for others in ({}, {"tier": "workspace"}, {"tier": "conversation", "kind": "fact"}):
        assert notes(**others) == []
    page = client.get("/memories", params={"tier": "conversation"}).text
    assert page.count("Working Note") == 2
    assert "<pre>{\n  &#34;next&#34;: &#34;buy beans&#34;," in page
    assert "in May" in page


@pytest.mark.clause("INK-20")
def test_the_filter_offers_the_sources_that_there_are(client: httpx.Client, filled: Filled) -> None:
    assert page_data(client, "/memories/known")["sources"] == sorted({"import", "chat", HOSTILE[:60]})
    assert 'list="sources"' in client.get("/memories").text
    assert '<option value="import">' in client.get("/memories/known").text


def test_an_answer_shows_its_sources_with_a_button_to_forget_and_a_link_to_correct(
    client: httpx.Client, filled: Filled
) -> None:
    (listed,) = page_data(client, "/answers")["answers"]
    assert listed["id"] == filled.answer
    answer = page_data(client, f"/answers/{filled.answer}")["answer"]
    (used,) = [used for used in answer["memories"] if used["id"] == filled.ada]
    assert used["content"] == "Ada likes black tea with milk"
    text = client.get(f"/answers/{filled.answer}").text
    assert f'href="/memories/{filled.ada}?edit=1#edit"' in text
    assert '<details id="edit" class="card edit" open>' in client.get(f"/memories/{filled.ada}?edit=1").text
    there = f"/answers/{filled.answer}"
    sent = client.post(f"/memories/{filled.ada}/forget", data={"do": "forget", "back": there})
    assert (sent.status_code, sent.headers["location"]) == (303, there)
    assert "was forgotten" in client.get(there).text
    filled.memory.undo()
    assert "was forgotten" not in client.get(there).text
    assert client.get(f"/answers/{'0' * 32}").status_code == 404


def test_the_profile_shows_each_statement_with_a_button_to_forget_and_a_link_to_correct(
    client: httpx.Client, filled: Filled
) -> None:
    mara = filled.memory.remember("Mara lives in Rome").id
    assert [line["id"] for line in page_data(client, "/profile")["profile"]["lines"]] == [filled.home]
    assert [line["id"] for line in page_data(client, "/profile?subject=Mara")["profile"]["lines"]] == [mara]
    text = client.get("/profile?subject=Mara").text
    assert f'href="/memories/{mara}"' in text
    assert f'href="/memories/{mara}?edit=1#edit"' in text
    assert "since <time" in text
    there = "/profile?subject=Mara"
    sent = client.post(f"/memories/{mara}/forget", data={"do": "forget", "back": there})
    assert (sent.status_code, sent.headers["location"]) == (303, there)
    assert "Nothing known" in client.get(there).text
    assert 'role="alert">subject' in client.get(f"/profile?subject={'x' * 300}").text
    assert 'href="/profile"' in client.get("/memories").text
