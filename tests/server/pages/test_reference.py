"""The reference of the API: complete, found by its words, and readable wherever it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import msgspec
import pytest
from support import plain
from support.browser import Watched
from support.page_data import page_data
from support.served import Served

from recollect.server import openapi

Tab = Callable[..., Watched]


@pytest.fixture
def client(site: Served) -> Iterator[httpx.Client]:
    with plain.Client(base_url=site.url, headers=site.headers("reader")) as client:
        yield client


def calls(client: httpx.Client, q: str = "") -> dict[str, dict[str, Any]]:
    found = page_data(client, "/api", {"q": q})
    listed = {one["id"]: one for group in found["groups"] for one in group["calls"]}
    assert len(listed) == found["count"]
    return listed


def test_every_call_is_there_as_the_document_has_it(client: httpx.Client) -> None:
    document = msgspec.json.decode(openapi.document())
    listed = calls(client)
    text = client.get("/api").text
    told = {
        one["operationId"]: (m.upper(), path, one) for path, ms in document["paths"].items() for m, one in ms.items()
    }
    assert listed.keys() == told.keys()
    for ident, (method, path, one) in told.items():
        shown = listed[ident]
        assert (shown["method"], shown["path"], shown["role"]) == (method, path, one["x-role"])
        assert {a["name"] for a in shown["takes"]} >= {p["name"] for p in one["parameters"] if p["in"] != "header"}
        assert f'id="{ident}"' in text
        assert f'href="#{ident}"' in text


def test_arguments_have_their_types_and_defaults(client: httpx.Client) -> None:
    listed = calls(client)
    takes = {one["name"]: one for one in listed["list"]["takes"]}
    assert takes["limit"] == {
        "name": "limit",
        "in": "query",
        "type": [["integer", ""]],
        "required": False,
        "default": "100",
    }
    assert takes["state"]["type"] == [["archived | expired | live | superseded", ""]]
    assert (takes["state"]["default"], takes["kind"]["default"]) == ('"live"', None)
    query = next(one for one in listed["recall"]["takes"] if one["name"] == "query")
    assert (query["in"], query["required"]) == ("body", True)
    assert listed["remember"]["gives"] == [["Record", "Record"]]
    assert listed["people.remove"]["gives"] == [["nothing", ""]]


def test_every_link_leads_somewhere(client: httpx.Client) -> None:
    for q in ("", "recall", "keys"):
        text = client.get("/api", params={"q": q}).text
        ids = re.findall(r' id="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)


@pytest.mark.parametrize(
    ("q", "some", "none"),
    [
        ("RECALL", "recall", "keys.create"),
        ("delete people", "people.remove", "people.add"),
        ("as_of", "recall", "keys.list"),
        ("/v1/keys", "keys.create", "recall"),
    ],
)
def test_calls_are_found_by_their_words(client: httpx.Client, q: str, some: str, none: str) -> None:
    listed = calls(client, q)
    assert some in listed
    assert none not in listed


def test_what_was_asked_for_is_escaped(client: httpx.Client) -> None:
    text = client.get("/api", params={"q": '"><script>alert(1)</script>'}).text
    assert "<script>alert" not in text
    assert "No call is like that" in text


def test_nobody_reads_it_who_is_not_known(site: Served) -> None:
    assert plain.get(f"{site.url}/api").status_code == 303


@pytest.mark.slow
def test_it_is_read_by_keyboard_and_without_scripts(tab: Tab) -> None:
    watched = tab(java_script_enabled=False)
    watched.page.goto(f"{watched.url}/api")
    page = watched.page
    page.get_by_label("Filter", exact=True).fill("revise")
    page.keyboard.press("Enter")
    page.wait_for_url("**/api?q=revise")
    link = page.get_by_role("navigation", name="Calls").get_by_role("link", name="revise", exact=True)
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/api?q=revise#revise")
    call = page.get_by_role("article", name="revise", exact=True)
    assert call.is_visible()
    call.get_by_role("link", name="Record").first.click()
    assert page.get_by_role("heading", name="Record", exact=True).is_visible()
    page.get_by_role("link", name="Show all").click()
    assert page.get_by_role("article", name="recall", exact=True).count() == 1


@pytest.mark.slow
def test_it_is_accessible(tab: Tab) -> None:
    watched = tab()
    for path in ("/api?q=recall", "/api?q=nothing+like+that"):
        watched.go(path)
        assert watched.violations_in_all_schemes() == [], path
    watched.go("/api")
    assert watched.violations() == [], "all of it, which is long, only in the light"


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 2560])
def test_it_fits(tab: Tab, width: int) -> None:
    watched = tab(viewport={"width": width, "height": 800})
    watched.go("/api")
    assert watched.too_wide() <= 0
