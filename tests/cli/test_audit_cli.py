"""The audit log on the command line."""

from __future__ import annotations

import json

from support.command_line import called, store

from recollect import Memory


def test_entries_show_which_memories_and_a_few_words_of_them() -> None:
    kept, gone = store("Alice prefers tabs", "Bob is allergic to nuts")
    called("forget", gone.id)

    shown = called("audit").stdout
    assert f"{kept.id[-8:]} Alice prefers tabs" in shown
    assert gone.id[-8:] in shown
    assert "allergic" not in shown

    only = called("audit", "--action", "forget").stdout
    assert gone.id[-8:] in only
    assert kept.id[-8:] not in only
    (entry,) = json.loads(called("audit", "search", "--action", "forget", "--json").stdout)
    assert entry["named"] == {gone.id: ""}

    refused = called("audit", "--action", "For get", "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["field"] == "action"


def test_the_log_of_the_documents_is_called_by_its_name() -> None:
    with Memory("./memory") as memory:
        memory.remember("tea")
        memory.knowledge.add("We drink tea.", title="Tea")
    shown = called("audit", "verify").stdout
    assert "default/default" in shown
    assert "default (knowledge)" in shown
