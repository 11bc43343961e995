"""Where a page is: always to be seen, to be changed from every page, and told where nothing is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support import plain
from support.browser import Watched, launched, need_browser
from support.served import Served, served

from recollect import Memory


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with Memory(tmp_path / "m", embedder="none") as memory, served(memory, single=True) as server:
        yield server


@pytest.fixture
def owner(site: Served) -> Iterator[httpx.Client]:
    with plain.Client(base_url=site.url, follow_redirects=True) as browser:
        browser.get("/enter", params={"ticket": site.serving.ticket()})
        yield browser


def logged_in(site: Served, name: str, **bound: str) -> httpx.Client:
    site.serving.accounts.people.add(name, "a long enough password", "member", **bound)
    token, _ = site.serving.accounts.logins.start(site.serving.accounts.people.thing(name, None).key)
    return plain.Client(base_url=site.url, cookies={"recollect": token}, follow_redirects=True)


def test_an_empty_page_says_where_the_memories_are(site: Served, owner: httpx.Client) -> None:
    assert "Nothing is remembered yet" in owner.get("/").text
    memory = site.serving.memory
    memory.at(tenant="acme", workspace="notes").remember("Ada likes tea")
    first = owner.get("/").text
    assert "Nothing is remembered yet" not in first
    assert "Nothing is remembered here" in first
    assert 'href="/?tenant=acme&amp;workspace=notes">acme / notes</a>' in first
    there = owner.get("/?tenant=acme&workspace=notes").text
    assert "Ada likes tea" in there


def test_every_page_says_where_it_is_and_leads_elsewhere(site: Served, owner: httpx.Client) -> None:
    memory = site.serving.memory
    memory.remember("Bora sails")
    memory.at(tenant="acme", workspace="notes").remember("Ada likes tea")
    for path in ("/", "/memories", "/lab", "/audit", "/settings"):
        text = owner.get(path).text
        assert "default / default</summary>" in text
        assert f'href="{path}?tenant=acme&amp;workspace=notes"' in text
    moved = owner.get("/memories?tenant=acme&workspace=notes").text
    assert "acme / notes</summary>" in moved
    assert "Ada likes tea" in moved


def test_nobody_is_led_out_of_what_they_are_bound_to(site: Served) -> None:
    memory = site.serving.memory
    for tenant, workspace in (("acme", "notes"), ("acme", "plans"), ("other", "secret-plans")):
        memory.at(tenant=tenant, workspace=workspace).remember("something")
    with logged_in(site, "ada", tenant="acme") as ada, logged_in(site, "bob", tenant="acme", workspace="notes") as bob:
        for path in ("/", "/memories"):
            text = ada.get(path).text
            assert 'workspace=plans"' in text
            assert "secret-plans" not in text
            bound = bob.get(path).text
            assert "acme / notes</p>" in bound
            assert "plans" not in bound


def test_what_was_kept_from_a_conversation_leads_to_it(site: Served, owner: httpx.Client) -> None:
    memory = site.serving.memory
    with memory.conversation("about databases") as talk:
        talk.say("user", "We decided to use PostgreSQL for the archive.")
    (kept,) = memory.list(kind="decision")
    page = owner.get(f"/memories/{kept.id}").text
    address = f"/conversations/{talk.memory.address.conversation}"
    assert f'href="{address}">the conversation about databases</a>' in page
    assert owner.get(address).status_code == 200
    # One that nobody started, as wrap has it, is what its turns are.
    memory.at(conversation="chat-7").remember("Ahoy", kind="conversation", role="user")
    other = memory.remember("Bora sails", references=["chat-7"])
    page = owner.get(f"/memories/{other.id}").text
    assert 'href="/memories?conversation=chat-7">the conversation chat-7</a>' in page
    assert "Ahoy" in owner.get("/memories?conversation=chat-7").text


def test_titles_and_the_menu_in_a_browser(site: Served) -> None:
    """What is loaded into a page does not rename it, and on a telephone the menu opens and leads on."""
    need_browser()
    memory = site.serving.memory
    memory.remember("Bora sails")
    memory.at(tenant="acme", workspace="notes").remember("Ada likes tea")
    with launched() as browser:
        link = f"{site.url}/enter?ticket={site.serving.ticket()}"
        watched = Watched(browser, site.url, link, viewport={"width": 360, "height": 740})
        page = watched.page
        page.wait_for_selector("#findings")
        assert page.title() == "Overview · recollect"
        assert not page.is_visible(".menu nav a")
        page.click(".menu summary")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        with page.expect_response(lambda answer: "/memories/known" in answer.url):
            page.click(".menu nav a:text-is('Memories')")
        page.wait_for_selector("datalist#talks", state="attached")
        assert page.title() == "Memories · recollect"
        assert not page.is_visible(".menu nav a")
        page.click(".where summary")
        page.click(".where a:text-is('acme / notes')")
        page.wait_for_selector("text=Ada likes tea")
        assert page.title() == "Memories · recollect"
        watched.check()
