"""The tests of the verbs once more, through a server: a program moves there by changing one string."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from support import plain
from support.common import Clock
from support.served import served

from recollect import Memory

_MODULES = (
    "verbs.test_verbs",
    "verbs.test_undo",
    "verbs.test_forgetting",
    "verbs.test_repeats",
    "verbs.test_deduplicate",
    "facets.test_conversations",
    "facets.test_workflows",
    "facets.test_knowledge",
    "test_audit",
    "test_validation",
)


@pytest.fixture
def memory(store_url: str, clock: Clock, request: pytest.FixtureRequest) -> Iterator[Memory]:
    preset = "atlas" if "__test_workflows" in request.node.name else "recollect"
    with (
        Memory(store_url, preset=preset, clock=clock, embedder="none") as here,
        served(here) as server,
        server.memory(all_tenants=True) as there,
    ):
        if "__test_validation" in request.node.name:
            there.remember("something that is there already")
        yield there


_HERE = {
    # They look at files or at the store itself, or read folders, or give what only Python has.
    "test_knowledge": {
        "test_what_is_wrong_is_refused_and_changes_nothing",
        "test_what_has_not_changed_is_not_written_again",
        "test_what_has_not_changed_is_not_even_parsed",
        "test_only_the_owner_writes",
        "test_a_named_folder_is_the_same_wherever_it_is",
        "test_a_folder_is_added_file_by_file_and_only_what_changed_again",
        "test_a_file_whose_name_is_no_text_is_refused_and_the_others_go_on",
        "test_a_copy_has_the_documents",
        "test_a_line_that_is_a_secret_is_left_out_and_named_by_its_place",
    },
    "test_validation": {
        "test_a_bad_value_is_refused_by_field_and_limit_and_changes_nothing",
        "test_many_are_given_as_a_list",
        "test_each_of_many_is_text_or_a_dict",
        "test_an_unknown_field_is_named",
        "test_a_limit_is_a_whole_number_in_its_range",
        "test_a_condition_is_checked_like_the_field_it_is_about",
    },
    "test_audit": {"test_a_bad_entry_is_refused"},
    "test_deduplicate": {"test_all_places_or_none_are_merged"},
    "test_forgetting": {
        "test_forgetting_keeps_the_text_for_undo_until_it_is_compacted",
        "test_erasing_removes_the_text_from_the_disk_at_once",
        "test_a_workspace_is_forgotten_as_a_whole",
    },
}
_GIVEN = {"memory", "clock", "store_url", "tmp_path", "monkeypatch", "request", "caplog"}


def _over_http(test: object) -> bool:
    """Whether a test is about a memory and needs nothing that only its own module has."""
    wanted = set(inspect.signature(test).parameters)  # type: ignore[arg-type]
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            names = mark.args[0]
            wanted -= set(names.replace(" ", "").split(",") if isinstance(names, str) else names)
    return "memory" in wanted and wanted <= _GIVEN


for _module in _MODULES:
    _found = vars(import_module(_module))
    for _name, _test in _found.items():
        _short = _module.rpartition(".")[2]
        if _name.startswith("test_") and _over_http(_test) and _name not in _HERE.get(_short, ()):
            globals()[f"{_name}__{_short}"] = _test


def test_the_old_address_of_end_still_works_and_is_not_documented(tmp_path: Path) -> None:
    with Memory(tmp_path, embedder="none") as memory, served(memory) as server:
        headers = server.headers("member")
        started = plain.post(f"{server.url}/v1/conversations", json={"title": "foxes"}, headers=headers).json()
        ended = plain.post(f"{server.url}/v1/conversations/{started['id']}/idle", json={}, headers=headers)
        assert (ended.status_code, ended.json()["status"]) == (200, "idle")
        assert "/idle" not in plain.get(f"{server.url}/v1/openapi.json").text
