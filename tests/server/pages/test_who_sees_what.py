"""Who sees what: every page and every form by every role, in one's own tenant and in another's, and without its token.

The tables are compared with the registry: whoever adds a page or a form says here who may.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

import httpx
import pytest
from support import plain
from support.served import Served, served

from recollect import Memory
from recollect.operations import RANKS, Rank
from recollect.server.pages import all_pages, site
from recollect.server.serving import COOKIE

all_pages()
SEEN: dict[str, Rank] = {
    "/": "reader",
    "/health": "reader",
    "/memories": "reader",
    "/memories/known": "reader",
    "/memories/{id}": "reader",
    "/lab": "reader",
    "/lab/cases": "reader",
    "/context": "reader",
    "/timeline": "reader",
    "/answers": "reader",
    "/profile": "reader",
    "/answers/{id}": "reader",
    "/conversations": "reader",
    "/conversations/{id}": "reader",
    "/channels": "reader",
    "/agents": "admin",
    "/agents/{name}": "admin",
    "/knowledge": "reader",
    "/knowledge/{id}": "reader",
    "/review": "admin",
    "/jobs": "admin",
    "/audit": "reader",
    "/audit/export": "reader",
    "/audit/server": "owner",
    "/access": "admin",
    "/settings": "reader",
    "/api": "reader",
}
DONE: dict[str, Rank] = {
    "/undo": "member",
    "/memories/new": "member",
    "/memories/bulk": "member",
    "/memories/{id}/revise": "member",
    "/memories/{id}/archive": "member",
    "/memories/{id}/restore": "member",
    "/memories/{id}/forget": "member",
    "/lab/save": "member",
    "/lab/remove": "member",
    "/conversations/start": "member",
    "/conversations/{id}/idle": "member",
    "/conversations/{id}/archive": "member",
    "/channels/create": "member",
    "/agents/{name}/memories/{id}/delete": "admin",
    "/knowledge/add": "admin",
    "/knowledge/allow": "admin",
    "/knowledge/{id}/publish": "admin",
    "/knowledge/{id}/withdraw": "admin",
    "/knowledge/{id}/remove": "admin",
    "/review/merge": "admin",
    "/review/apply": "admin",
    "/review/erase": "admin",
    "/review/reject": "admin",
    "/review/again": "admin",
    "/jobs/run": "admin",
    "/audit/undo": "member",
    "/access/keys": "admin",
    "/access/keys/{id}/rotate": "admin",
    "/access/keys/{id}/revoke": "admin",
    "/access/people": "admin",
    "/access/people/{name}/password": "admin",
    "/access/people/{name}/remove": "admin",
    "/settings/password": "reader",
}
OF_ALL = {"/audit/server"}
"""For whoever has every tenant: an owner of one tenant is refused."""
OF_THE_SERVER = {
    "/access",
    "/api",
    "/settings/password",
    *OF_ALL,
    *(path for path in DONE if path.startswith("/access/")),
}
"""About no memory, so that the query can choose none; what belongs to another tenant is refused by itself."""
PASSWORD = "a long enough password"


class Theirs(NamedTuple):
    """Ids of what one tenant has."""

    memory: str
    answer: str
    core: str
    talk: str
    document: str
    key: str
    person: str


class Scene:
    def __init__(self, server: Served) -> None:
        self.server, self.memory = server, server.serving.memory
        self.mine, self.other = self._fill("mine", "boats"), self._fill("other", "kites")
        self.logins = {rank: self._login(f"{rank}-of-mine", rank) for rank in RANKS}

    def _fill(self, tenant: str, word: str) -> Theirs:
        memory, accounts = self.memory.at(tenant=tenant), self.server.serving.accounts
        talk = memory.conversations.start(f"a talk about {word}")
        memory.conversations.say(talk.id, "user", f"are there {word}?")
        known = memory.remember(f"what this tenant knows about {word}").id
        return Theirs(
            known,
            memory.context([{"role": "user", "content": f"what is known about {word}?"}], min_relevance=0.0).id,
            memory.at(agent="atlas").journal.save_core(f"I fly {word}").id,
            talk.ref_code,
            memory.knowledge.add(f"# {word}\n\nAll about {word}.", title=word, status="published").id,
            accounts.keys.create(f"a key for {word}", "reader", tenant=tenant).key.id,
            accounts.people.add(f"of-{tenant}", PASSWORD, "reader", tenant=tenant).name,
        )

    def _login(self, name: str, rank: Rank) -> tuple[str, str]:
        accounts = self.server.serving.accounts
        accounts.people.add(name, PASSWORD, rank, tenant="mine")
        token, caller = accounts.logins.start(accounts.people.thing(name, None).key)
        return token, caller.session

    def get(self, path: str, rank: Rank, **more: Any) -> httpx.Response:
        cookies = f"{COOKIE}={self.logins[rank][0]}"
        return plain.get(self.server.url + path, headers={"cookie": cookies, **more.pop("headers", {})}, **more)

    def post(
        self, path: str, rank: Rank, form: dict[str, Any], token: str | None = None, **more: Any
    ) -> httpx.Response:
        cookie, known = self.logins[rank]
        data = {**form, "form": known if token is None else token}
        return plain.post(self.server.url + path, headers={"cookie": f"{COOKIE}={cookie}"}, data=data, **more)

    def state(self, tenant: str) -> Any:
        """All that a change would change."""
        memory, accounts = self.memory.at(tenant=tenant), self.server.serving.accounts
        entries = [entry for entry in memory.audit.search(limit=1000) if entry.action != "refuse"]
        records = [(one.id, one.state(one.created_at)) for one in memory.list(state=None, limit=1000)]
        return len(entries), records, accounts.keys.list(tenant), [one.name for one in accounts.people.list(tenant)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Memory(tmp_path_factory.mktemp("m")) as memory, served(memory) as server:
        yield Scene(server)


def address(path: str, theirs: Theirs) -> str:
    """With ids of what is there, as far as the path has room for them."""
    ident = {
        "answers": theirs.answer,
        "conversations": theirs.talk,
        "knowledge": theirs.document,
        "agents": theirs.core,
        "access": theirs.key,
    }
    name = {"agents": "atlas", "access": theirs.person}
    first = path.split("/")[1]
    return path.replace("{id}", ident.get(first, theirs.memory)).replace("{name}", name.get(first, ""))


def filling(path: str, theirs: Theirs) -> dict[str, Any]:
    """A form that would be taken."""
    words = {"delete": "delete", "erase": "erase", "run": "run", "rotate": "rotate", "revoke": "revoke"}
    last = path.rsplit("/", 1)[1]
    confirm = theirs.person if path.startswith("/access/people") else words.get(last, "remove")
    special: dict[str, dict[str, Any]] = {
        "/memories/new": {"content": "something new"},
        "/memories/{id}/forget": {"do": "forget"},
        "/memories/bulk": {"do": "archive", "id": theirs.memory},
        "/memories/{id}/revise": {"content": "something else"},
        "/lab/save": {"texts": "tea"},
        "/lab/remove": {"question": "tea"},
        "/channels/create": {"name": "garden"},
        "/knowledge/add": {"text": "# New\n\nText"},
        "/knowledge/allow": {"agent": "atlas", "how": "some", "categories": "a"},
        "/review/erase": {"key": f"found:{theirs.memory}"},
        "/review/apply": {"key": f"decay:{theirs.memory}"},
        "/jobs/run": {"job": "undo"},
        "/access/keys": {"name": "k", "tenant": "other"},
        "/access/people": {"name": "p", "password": PASSWORD, "tenant": "other"},
        "/access/people/{name}/password": {"password": PASSWORD},
        "/settings/password": {"current": "wrong", "password": PASSWORD},
    }
    return {"confirm": confirm, **special.get(path, {})}


def test_every_page_and_form_has_a_rule_here() -> None:
    assert {page.path: page.rank for page in site.PAGES} == SEEN
    assert {action.path: action.rank for action in site.ACTIONS} == DONE
    assert {action.again for action in site.ACTIONS} <= {"", *SEEN}


@pytest.mark.parametrize("path", SEEN)
def test_a_page_is_for_its_rank_and_above(scene: Scene, path: str) -> None:
    there = address(path, scene.mine)
    anybody = plain.get(scene.server.url + there)
    assert (anybody.status_code, anybody.headers["location"]) == (303, f"/login?next={there}")
    for rank in RANKS:
        allowed = RANKS.index(rank) >= RANKS.index(SEEN[path]) and path not in OF_ALL
        answer = scene.get(there, rank)
        assert answer.status_code == (200 if allowed else 403), (rank, answer.text[:300])
        assert allowed or not _tells(answer.text, "boats")


@pytest.mark.parametrize("path", DONE)
def test_whoever_sends_a_form_too_late_is_led_from_the_login_to_a_page(scene: Scene, path: str) -> None:
    """To where its form is, and not to where it is sent, which nothing can be read from."""
    there = address(path, scene.mine)
    sent = plain.post(scene.server.url + there, data={"content": "x"})
    login, _, back = sent.headers["location"].partition("?next=")
    assert (sent.status_code, login) == (303, "/login")
    assert scene.get(unquote(back), "owner").status_code == 200


def _tells(text: str, word: str) -> bool:
    return word in text


@pytest.mark.parametrize("rank", RANKS)
def test_the_menu_shows_what_one_may_see(scene: Scene, rank: Rank) -> None:
    shown = scene.get("/settings", rank).text.partition("<main")[0]
    for page in site.PAGES:
        if page.nav:
            allowed = RANKS.index(rank) >= RANKS.index(page.rank)
            assert (f'href="{page.path}"' in shown) is allowed or page.path == "/", page.path


@pytest.mark.parametrize("path", SEEN)
def test_no_page_shows_another_tenants(scene: Scene, path: str) -> None:
    moved = scene.get(address(path, scene.other), "owner", params={"tenant": "other"})
    assert not _tells(moved.text, "kites")
    assert path in OF_THE_SERVER or moved.status_code == 403
    guessed = scene.get(address(path, scene.other), "owner")
    assert not _tells(guessed.text, "kites")
    if "{id}" in path:
        assert guessed.status_code == 404


@pytest.mark.parametrize("path", DONE)
def test_a_form_is_for_its_rank_and_above(scene: Scene, path: str) -> None:
    lower = RANKS[: RANKS.index(DONE[path])]
    before = scene.state("mine")
    for rank in lower:
        answer = scene.post(address(path, scene.mine), rank, filling(path, scene.mine))
        assert answer.status_code == 403, rank
        again = next(action.again for action in site.ACTIONS if action.path == path)
        if again and RANKS.index(rank) < RANKS.index(SEEN[again]):
            assert not _tells(answer.text, "boats"), "a refusal shows the page that has the form"
    assert scene.state("mine") == before


@pytest.mark.parametrize("path", DONE)
def test_no_form_changes_another_tenants(scene: Scene, path: str) -> None:
    before = scene.state("other")
    for params in ({}, {"tenant": "other"}):
        where = address(path, scene.other)
        if not params and where == path and path not in OF_THE_SERVER:
            continue  # without an id or a tenant it is about one's own
        answer = scene.post(where, "owner", filling(path, scene.other), params=params)
        assert answer.status_code in (400, 403, 404), answer.text[:300]
        assert not _tells(answer.text, "kites")
    assert scene.state("other") == before


@pytest.mark.parametrize("path", DONE)
@pytest.mark.parametrize("token", ["", "wrong", None], ids=["none", "wrong", "another's"])
def test_a_form_without_its_token_is_refused(scene: Scene, path: str, token: str | None) -> None:
    before = scene.state("mine")
    given = scene.logins["reader"][1] if token is None else token
    answer = scene.post(address(path, scene.mine), "owner", filling(path, scene.mine), token=given)
    assert answer.status_code == 403
    assert "this was not sent by a page of ours" in answer.text
    assert scene.state("mine") == before


@pytest.mark.parametrize("path", DONE)
def test_a_form_says_who_sent_it_in_every_page_that_has_it(scene: Scene, path: str) -> None:
    """Wherever a form stands, its token stands in it."""
    again = next(action.again for action in site.ACTIONS if action.path == path)
    text = scene.get(address(again, scene.mine), "owner").text
    forms = [part.partition("</form>")[0] for part in text.split("<form")[1:]]
    for form in forms:
        if 'method="post"' in form:
            assert f'name="form" value="{scene.logins["owner"][1]}"' in form


@pytest.mark.clause("JRN-09")
@pytest.mark.parametrize("path", ["/agents", "/agents/atlas"])
def test_an_agents_memories_are_for_an_admin_of_its_account_only(scene: Scene, path: str) -> None:
    assert [scene.get(path, rank).status_code for rank in RANKS] == [403, 403, 200, 200]
    for rank in ("reader", "member"):
        assert 'href="/agents"' not in scene.get("/", rank).text
    assert 'href="/agents"' in scene.get("/", "admin").text


@pytest.mark.clause("JRN-09")
def test_an_agents_page_has_its_own_memories_only(scene: Scene) -> None:
    mine = scene.memory.at(tenant="mine")
    nova = mine.at(agent="nova").journal.save_core("nova's own secret garden")
    shown = scene.get("/agents/atlas", "admin").text
    assert "I fly boats" in shown
    assert "secret garden" not in shown
    answer = scene.post(f"/agents/atlas/memories/{nova.id}/delete", "admin", {"confirm": "delete"})
    assert answer.status_code == 404
    assert mine.get(nova.id).text == "nova's own secret garden"
    bound = scene.server.headers("admin", tenant="mine", agent="atlas")
    assert plain.get(f"{scene.server.url}/agents/atlas", headers=bound).status_code == 200
    assert plain.get(f"{scene.server.url}/agents/nova", headers=bound).status_code == 403
    assert "nova" not in plain.get(f"{scene.server.url}/agents", headers=bound).text


def test_whoever_has_every_tenant_sees_the_servers_log(scene: Scene) -> None:
    every = scene.server.headers("owner", all_tenants=True)
    answer = plain.get(f"{scene.server.url}/audit/server", headers=every)
    assert answer.status_code == 200
    assert "made key" in answer.text
    assert 'href="/audit/server"' in plain.get(f"{scene.server.url}/audit", headers=every).text
    assert 'href="/audit/server"' not in scene.get("/audit", "owner").text
    assert (
        plain.get(
            f"{scene.server.url}/audit/server", headers=scene.server.headers("admin", all_tenants=True)
        ).status_code
        == 403
    )
