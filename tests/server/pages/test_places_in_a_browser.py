"""Conversations, agents, knowledge, review, jobs, audit, keys and settings, as people meet them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.browser import Watched
from support.common import Clock
from support.furnished import EVIL, Furnished
from support.seeds import some_of
from support.served import Served, served

from recollect import Memory

pytestmark = pytest.mark.slow
Tab = Callable[..., Watched]
_WIDE = {"viewport": {"width": 1400, "height": 900}}
_OPEN = "document.querySelectorAll('main details').forEach(one => { one.removeAttribute('name'); one.open = true; })"


@pytest.fixture
def furnished(site: Served, store_url: str, clock: Clock) -> Furnished:
    return Furnished(site.serving, store_url, clock)


def test_every_page_is_accessible_and_fits_with_all_that_can_be_opened(tab: Tab, furnished: Furnished) -> None:
    watched = tab()
    unnamed = "[...document.querySelectorAll('input:not([type=hidden]):not([hidden]), select, textarea')]"
    unnamed += ".filter(one => !one.labels.length && !one.ariaLabel).map(one => one.outerHTML)"
    also_closed = some_of(list(furnished.paths()), 0.3)  # opened, a page shows all that it shows closed
    for name, path in furnished.paths().items():
        assert watched.go(path).status == 200, name
        assert watched.page.evaluate(unnamed) == [], f"{name}: fields without a name"
        for state in ("closed", "opened") if name in also_closed else ("opened",):
            if state == "opened":
                watched.page.evaluate(_OPEN)
            assert watched.violations_in_all_schemes() == [], f"{name}, {state}"
            assert watched.widths_too_small() == [], f"{name}, {state}"


def test_a_conversation_from_start_to_end(tab: Tab, furnished: Furnished) -> None:
    watched = tab(**_WIDE)
    page, memory = watched.page, furnished.memory
    watched.go("/channels")
    page.get_by_label("Name").fill("garden")
    page.get_by_role("button", name="Create").click()
    page.get_by_text("There is a channel garden now.").wait_for()
    watched.go("/conversations")
    page.get_by_role("link", name="Start one").click()
    page.get_by_label("Title", exact=True).fill("Beans in May")
    page.locator("form.compose").get_by_label("Channel").select_option("garden")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("heading", name="Beans in May").wait_for()
    assert page.get_by_text("Nothing was said yet").is_visible()
    talk = memory.conversations.list(channel="garden")[0]
    memory.conversations.say(talk.id, "user", "I prefer runner beans.")
    page.reload()
    assert page.locator(".turn .text").all_inner_texts() == ["I prefer runner beans."]
    page.get_by_role("button", name="End it").click()
    page.get_by_text("Ended. What matters of it was kept.").wait_for()
    assert page.get_by_text("The turns are cleared").is_visible()
    assert page.locator("aside").get_by_text("I prefer runner beans.").is_visible()
    page.get_by_role("button", name="Archive").click()
    page.get_by_text("Archived: it is out of the lists.").wait_for()
    assert memory.conversations.get(talk.id).status == "archived"
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Taken back.").wait_for()
    assert memory.conversations.get(talk.id).status == "idle"


@pytest.fixture
def diary(browser: Any, store_url: str, clock: Clock) -> Iterator[tuple[Memory, Watched]]:
    """An agent's journal in a tab of whoever looks after it."""
    with Memory(store_url, preset="journal", clock=clock) as memory:
        atlas = memory.at(agent="atlas")
        atlas.journal.save("an old day")
        clock.forward(days=8)
        atlas.journal.save("today")
        atlas.journal.save_core(f"I am called Atlas {EVIL}")
        with served(memory, single=True) as site:
            watched = Watched(browser, site.url, f"{site.url}/enter?ticket={site.serving.ticket()}", **_WIDE)
            yield memory, watched
            watched.context.close()
            watched.check()


@pytest.mark.clause("JRN-08", "JRN-11")
def test_an_agents_memories_are_looked_through_and_deleted(diary: tuple[Memory, Watched]) -> None:
    memory, watched = diary
    page = watched.page
    watched.go("/agents")
    assert page.get_by_text("1 core memories, 2 journal entries").is_visible()
    page.get_by_role("link", name="atlas", exact=True).click()
    entries = page.locator(".entry")
    assert entries.locator(".text").all_inner_texts() == [f"I am called Atlas {EVIL}", "today", "an old day"]
    # Core and journal by icon and by colour.
    marks = [entries.nth(at).locator(".mark") for at in range(3)]
    drawn = [mark.inner_html() for mark in marks]
    colours = [mark.evaluate("one => getComputedStyle(one).color") for mark in marks]
    assert drawn[0] != drawn[1] == drawn[2]
    assert colours[0] != colours[1] == colours[2]
    # What has left the prompt is dimmed, and says why.
    texts = [entries.nth(at).locator(".text").evaluate("one => getComputedStyle(one).color") for at in range(3)]
    assert texts[0] == texts[1] != texts[2]
    assert [one.strip() for one in page.locator(".badge.expired").all_inner_texts()] == ["expired"]
    assert entries.nth(2).locator(".badge.expired").is_visible()
    # Deleted only after the question, and its word.
    entries.nth(1).locator("summary").click()
    panel = entries.nth(1).locator(".panel")
    assert panel.get_by_text("Delete this memory permanently?").is_visible()
    assert panel.get_by_role("button", name="Delete").is_disabled()
    panel.get_by_label("Type delete").fill("delete")
    panel.get_by_role("button", name="Delete").click()
    page.get_by_role("status").get_by_text("Memory deleted").wait_for()
    assert [one.text for one in memory.at(agent="atlas").journal.recent_first()] == [
        f"I am called Atlas {EVIL}",
        "an old day",
    ]
    watched.go("/agents/nobody")
    assert page.get_by_text("This agent has no memories yet.").is_visible()


def test_a_document_is_uploaded_published_asked_and_removed(tab: Tab, furnished: Furnished) -> None:
    watched = tab(**_WIDE)
    page, base = watched.page, furnished.memory.knowledge
    watched.go("/knowledge?new=1")
    name = "<img src=x onerror=alert(3)>.md"
    file: Any = {"name": name, "mimeType": "text/markdown", "buffer": b"# Ferries\n\nFerries leave at nine."}
    page.get_by_label("A file").set_input_files(file)
    page.locator("form.compose").get_by_label("Category").fill("travel")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("heading", name="Ferries").wait_for()
    known = base.list(category="travel")[0]
    assert (known.source, known.status) == (name, "draft")
    page.get_by_role("button", name="Publish").click()
    page.get_by_text("Published: agents find it from now on.").wait_for()
    watched.go("/knowledge")
    page.get_by_label("Ask the documents").fill("when do ferries leave?")
    page.get_by_role("button", name="Ask").click()
    assert "Ferries leave at nine." in page.locator(".answer .passage").first.inner_text()
    page.locator(".answer").get_by_role("link", name="Ferries").click()
    page.get_by_text("Remove…").click()
    assert page.get_by_role("button", name="Remove for good").is_disabled()
    page.get_by_label("Type remove").fill("remove")
    page.get_by_role("button", name="Remove for good").click()
    page.get_by_text("Removed for good").wait_for()
    assert base.list(category="travel") == []


def test_suggestions_are_accepted_taken_back_and_turned_down(tab: Tab, furnished: Furnished) -> None:
    watched = tab(**_WIDE)
    page, memory = watched.page, furnished.memory
    watched.go("/review")
    assert page.locator(".group-of del").inner_text() == "100"
    assert page.locator(".group-of ins").inner_text() == "250"
    page.get_by_role("button", name="Merge 3 into one").click()
    page.get_by_text("Merged 3 into one.").wait_for()
    assert len(memory.list(contains="office")) == 1
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Taken back.").wait_for()
    assert len(memory.list(contains="office")) == 3
    watched.go("/review")
    page.get_by_role("button", name="Both hold").click()
    page.get_by_text("not shown again").wait_for()
    assert page.get_by_role("heading", name="Contradictions").count() == 0
    page.get_by_text("Erase…").click()
    page.get_by_label("Type erase").fill("erase")
    page.get_by_role("button", name="Erase for good").click()
    page.get_by_text("1 memory is gone from the disk").wait_for()
    watched.go("/review")
    page.get_by_role("link", name="Show the 1 turned down").click()
    page.get_by_role("button", name="Show again").click()
    page.get_by_role("heading", name="Contradictions").wait_for()


def test_jobs_are_run_by_a_word(tab: Tab, furnished: Furnished) -> None:
    watched = tab(**_WIDE)
    page = watched.page
    watched.go("/jobs")
    run = page.get_by_role("button", name="Run the chosen jobs")
    assert run.is_disabled()
    page.get_by_label("Choose the job undo").check()
    page.get_by_label("Type run").fill("run")
    run.click()
    page.get_by_role("status").get_by_text("There was nothing to do.").wait_for()
    row = page.locator("tr", has_text="Drops what it takes to undo")
    assert "just now" in row.inner_text() or "ago" in row.inner_text()


def test_the_log_is_searched_verified_and_taken_along(tab: Tab, furnished: Furnished) -> None:
    watched = tab(**_WIDE)
    page = watched.page
    watched.go("/audit")
    page.get_by_role("link", name="Verify the chain").click()
    page.get_by_role("heading", name="The chain is whole").wait_for()
    page.get_by_label("Action").fill("channel")
    page.get_by_role("button", name="Search").click()
    assert set(page.locator(".trail tbody .badge").all_inner_texts()) == {"channel"}
    with page.expect_download() as download:
        page.get_by_role("link", name="Export NDJSON").click()
    assert download.value.suggested_filename == "audit.ndjson"
    page.get_by_role("link", name="Server").click()
    page.get_by_text("made key").first.wait_for()


def test_a_key_is_made_copied_and_revoked(tab: Tab, furnished: Furnished) -> None:
    watched = tab(**_WIDE, permissions=["clipboard-read", "clipboard-write"])
    page, accounts = watched.page, furnished.serving.accounts
    watched.go("/access")
    page.get_by_text("Make a key").click()
    page.get_by_label("Name, such as where it is used").fill("laptop")
    page.get_by_role("button", name="Make the key").click()
    secret = page.locator("#secret").inner_text()
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    made = accounts.keys.caller_of(secret)
    assert (made.name, made.rank) == ("laptop", "member")
    page.get_by_role("link", name="Done, I have it").click()
    assert secret not in page.content()
    row = page.locator("tr", has_text="laptop")
    row.get_by_text("Revoke").first.click()
    row.get_by_label("Type revoke").fill("revoke")
    row.get_by_role("button", name="Revoke").click()
    page.get_by_text("is revoked, and worth nothing").wait_for()
    assert accounts.keys.get(made.id).revoked_at is not None


def test_a_person_is_added_by_keyboard_alone(tab: Tab, furnished: Furnished) -> None:
    watched = tab(**_WIDE)
    page = watched.page
    watched.go("/access")
    _reach(page, "Add a person")
    page.keyboard.press("Enter")
    for typed in ("bora", "a long enough password"):
        page.keyboard.press("Tab")
        page.keyboard.type(typed)
    page.keyboard.press("Enter")
    page.get_by_text("bora can log in now.").wait_for()
    assert furnished.serving.accounts.people.get("bora").rank == "member"


def _reach(page: Any, text: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == text:
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    raise AssertionError(f"{text} is not reached by keyboard")


def test_settings_lead_to_another_workspace(tab: Tab, furnished: Furnished) -> None:
    watched = tab(**_WIDE)
    page = watched.page
    watched.go("/settings")
    page.get_by_role("link", name="lab", exact=True).click()
    page.wait_for_url("**/settings?workspace=lab")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Memories").click()
    page.get_by_text("a note of the lab").wait_for()
    assert page.get_by_text("The limit is 250").count() == 0
