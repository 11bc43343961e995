"""Pages as people meet them: by mouse and by keyboard, small and wide, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from server.pages.conftest import Filled
from support.browser import Watched

from recollect import Memory

pytestmark = pytest.mark.slow
Tab = Callable[..., Watched]


def test_every_page_is_accessible_and_fits(tab: Tab, filled: Filled) -> None:
    watched = tab()
    for name, path in filled.paths().items():
        assert watched.go(path).status == 200, name
        assert watched.violations_in_all_schemes() == [], name
        assert watched.widths_too_small() == [], name


@pytest.mark.parametrize("width", [360, 1400, 2560])
def test_who_is_not_logged_in_finds_the_form_in_the_middle(browser: Any, filled: Filled, tab: Tab, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto(f"{tab().url}/login")
    box = page.locator("section.card").bounding_box()
    context.close()
    assert box["width"] >= min(440, width - 40)
    assert abs(box["x"] + box["width"] / 2 - width / 2) < 12


def test_the_menu_is_whole_in_a_low_window(tab: Tab, filled: Filled) -> None:
    watched = tab(viewport={"width": 1200, "height": 500})
    watched.go("/memories")
    edge = watched.page.locator("header.top").bounding_box()["width"]
    boxes = [one.bounding_box() for one in watched.page.locator("header.top nav a").all()]
    assert len(boxes) > 8
    assert all(box["x"] < 40 and box["x"] + box["width"] <= edge for box in boxes)


def test_nothing_moves_while_a_page_loads(tab: Tab, filled: Filled) -> None:
    for width in (400, 1400):
        watched = tab(viewport={"width": width, "height": 800})
        for name, path in filled.paths().items():
            watched.go(path)
            assert watched.shift() < 0.01, (name, width)


def test_a_first_load_is_small(tab: Tab, browser: Any, filled: Filled) -> None:
    known = tab()
    fresh = browser.new_context(storage_state=known.context.storage_state())  # with the cookie, and nothing else
    page, sizes = fresh.new_page(), dict[str, int]()
    page.on("requestfinished", lambda one: sizes.update({one.url: one.sizes()["responseBodySize"]}))
    page.goto(f"{known.url}/")
    page.wait_for_load_state("networkidle")
    fresh.close()
    assert len(sizes) >= 5
    assert 20_000 < sum(sizes.values()) <= 100_000


def test_the_first_run_teaches(tab: Tab, memory: Memory) -> None:
    page = tab().page
    assert page.get_by_text('recollect remember "Ada').is_visible()
    page.get_by_role("link", name="Store the first memory").click()
    page.get_by_label("What to remember").fill("Ada likes green tea")
    page.get_by_role("button", name="Remember", exact=True).click()
    page.get_by_role("status").get_by_text("Remembered.").wait_for()
    assert [one.text for one in memory.list()] == ["Ada likes green tea"]


@pytest.mark.clause("INK-20")
def test_memories_are_browsed_searched_created_edited_and_deleted(tab: Tab, filled: Filled) -> None:
    watched = tab(viewport={"width": 1400, "height": 900})
    page, memory = watched.page, filled.memory
    watched.go("/memories")
    # The full width, beside the menu.
    box = page.locator("main").bounding_box()
    assert box is not None
    assert box["x"] + box["width"] == 1400
    # Search as you type, by recall, at an address that can be sent on.
    page.get_by_label("Search").press_sequentially("black te")
    page.get_by_text("Ada likes black tea with milk").wait_for()
    page.wait_for_url("**/memories?q=black+te")
    page.get_by_label("Search").fill("")
    # Filters by source and tier.
    page.get_by_label("Source").fill("chat")
    page.wait_for_url("**/memories?source=chat")
    page.locator(".count", has_text="1 shown").wait_for()
    page.get_by_label("Source").fill("")
    page.get_by_label("Tier").select_option("conversation")
    page.locator(".count", has_text="3 shown").wait_for()
    # Scratchpad entries of a conversation, to be read only.
    watched.go(f"/memories?conversation={filled.talk}")
    note = page.locator(".item.note")
    assert note.get_by_text("Working Note", exact=True).is_visible()
    assert "buy beans" in note.inner_text()
    assert note.locator("a, button, input, textarea").count() == 0
    # Create, edit, delete.
    watched.go("/memories?new=1")
    page.get_by_label("What to remember").fill("Chen drives a red car")
    page.get_by_role("button", name="Remember", exact=True).click()
    page.get_by_role("link", name="Chen drives a red car").click()
    page.get_by_text("Edit", exact=True).click()
    page.locator("textarea[name=content]").fill("Chen drives a blue car")
    page.get_by_role("button", name="Save as a new version").click()
    assert page.locator(".diff ins").inner_text() == "blue"
    assert page.locator(".diff del").inner_text() == "red"
    page.get_by_text("Forget or erase…").click()
    page.get_by_role("button", name="Forget", exact=True).click()
    page.get_by_text("Forgot 2 memories.").wait_for()
    assert memory.list(contains="Chen") == []
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Taken back.").wait_for()
    assert [one.text for one in memory.list(contains="Chen")] == ["Chen drives a blue car"]


def test_many_are_changed_at_once_and_taken_back(tab: Tab, filled: Filled) -> None:
    watched = tab()
    page, memory = watched.page, filled.memory
    watched.go("/memories?kind=finding")
    page.get_by_label("All on this page").check()
    page.get_by_role("button", name="Archive", exact=True).click()
    page.get_by_text("Archived 50 memories.").wait_for()
    assert len(memory.list(state="archived", kind="finding")) == 50
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Taken back.").wait_for()
    assert memory.list(state="archived", kind="finding") == []
    watched.go("/memories?kind=finding")
    page.locator("input[name=id]").first.check()
    page.get_by_text("Forget or erase…").click()
    erase = page.get_by_role("button", name="Erase")
    page.get_by_label("Type forget or erase").fill("forget")
    assert erase.is_disabled()
    page.get_by_label("Type forget or erase").fill("erase")
    erase.click()
    page.get_by_text("1 memory is gone").wait_for()
    assert len(memory.list(kind="finding")) == 54


def test_a_refusal_stands_beside_the_form(tab: Tab, filled: Filled) -> None:
    watched = tab()
    page = watched.page
    watched.go("/memories?new=1")
    typed = "the password is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
    page.get_by_label("What to remember").fill(typed)
    page.get_by_role("button", name="Remember", exact=True).click()
    assert "appears to contain a secret" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("What to remember").input_value() == typed


def test_a_question_is_tried_explained_and_saved(tab: Tab, filled: Filled) -> None:
    watched = tab(viewport={"width": 1400, "height": 900})
    page = watched.page
    watched.go("/lab")
    page.get_by_label("Question").fill("what does Ada like?")
    page.get_by_label("Beside").select_option("atlas")
    page.get_by_role("button", name="Ask").click()
    assert page.locator(".compare > section").count() == 2
    first = page.locator(".hits .item").first
    assert "Ada likes black tea with milk" in first.inner_text()
    shares = [float(text) for text in first.locator("tbody td:last-child").all_inner_texts()]
    assert sum(shares) == pytest.approx(float(first.locator("tfoot strong").inner_text()), abs=0.003)
    first.get_by_label("expected").check()
    page.get_by_role("button", name="Save “what does Ada like?”").click()
    page.get_by_text("Saved. 2 in the file of cases.").wait_for()
    assert filled.memory.cases.list()[1].ids == (filled.ada,)
    page.get_by_label("Why not this one").fill(filled.atlas)
    page.get_by_role("button", name="Ask").click()
    assert "it has no word of the question" in page.locator(".answer").first.inner_text()


def test_the_slider_goes_back_in_time(tab: Tab, filled: Filled, clock: Any) -> None:
    clock.forward(days=5)
    filled.memory.remember("Dora came today")
    watched = tab()
    watched.go("/timeline")
    watched.page.get_by_role("link", name="Dora came today").wait_for()
    watched.page.get_by_label("As of how many days ago").fill("4")
    watched.page.wait_for_url("**/timeline?back=4")
    watched.page.get_by_text("Known on 2026-03-02").wait_for()
    assert watched.page.get_by_role("link", name="Dora came today").count() == 0


def test_a_context_is_previewed(tab: Tab, filled: Filled) -> None:
    watched = tab()
    watched.go("/context")
    watched.page.get_by_label("Messages").fill("user: what does Ada like, tea?")
    watched.page.get_by_role("button", name="Preview").click()
    assert "Ada likes black tea with milk" in watched.page.locator(".messages").inner_text()
    assert watched.page.get_by_text("fits", exact=True).is_visible()


def test_a_memory_is_reached_and_archived_by_keyboard_alone(tab: Tab, filled: Filled) -> None:
    watched = tab(viewport={"width": 1400, "height": 900})
    page = watched.page
    watched.go(f"/memories/{filled.ada}")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == "Archive":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.keyboard.press("Enter")
    page.get_by_text("Archived: it is kept").wait_for()
    assert filled.memory.diagnose(filled.ada).status == "archived"


def test_a_wrong_source_of_an_answer_is_forgotten_and_brought_back(tab: Tab, filled: Filled) -> None:
    watched = tab()
    watched.go("/answers")
    watched.page.locator("main li a").first.click()
    watched.page.get_by_role("button", name="Forget the memory Ada likes black tea").click()
    watched.page.get_by_text("was forgotten").wait_for()
    watched.page.locator("[data-toast]").get_by_role("button", name="Undo").click()
    watched.page.get_by_role("link", name="Correct the memory Ada likes black tea").click()
    watched.page.locator("#edit textarea").fill("Ada likes coffee")
    watched.page.get_by_role("button", name="Save as a new version").click()
    watched.page.locator("[data-toast]").wait_for()
    assert [used.state for used in filled.memory.sources(filled.answer).memories if used.id == filled.ada] == [
        "superseded"
    ]
